"""What a call can raise. Every error of this package is a `RankwrightError`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MAX_SHOWN = 10
"""Errors of one problem that the message lists; `errors` has them all."""
_MAX_SHOWN_OF_COLUMN = 3
"""Those of one column: they are usually alike."""


class RankwrightError(Exception):
    """Base class of all errors of the client."""


class ConnectionFailed(RankwrightError):
    """The service could not be reached, or the connection broke, and trying again did not help."""


class ConfigurationError(RankwrightError):
    """The client does not know which service to ask, or cannot send what it was handed."""


class JobFailed(RankwrightError):
    """A job that was waited for ended without a result.

    Attributes
    ----------
    job_id : str
    state : str
        `failed`, `cancelled` or `timed_out`.
    error : dict or None
        What the service says went wrong.
    """

    def __init__(self, job_id: str, state: str, error: Mapping[str, Any] | None) -> None:
        self.job_id = job_id
        self.state = state
        self.error = dict(error) if error else None
        detail = f": {self.error['detail']}" if self.error and self.error.get("detail") else ""
        super().__init__(f"job {job_id} ended as {state}{detail}")


class SeveralLabels(RankwrightError):
    """A call for a single score was made of a model with a score per label."""


class SecretLost(RankwrightError):
    """A key was made, but its secret, which the service shows only once, was in an answer that was lost on its way.

    Attributes
    ----------
    key_id : str or None
        The key without a known secret. `keys.rotate(key_id)` makes another in its place; `keys.revoke(key_id)` ends it.
        None if the service does not say any more.
    """

    def __init__(self, message: str, key_id: str | None) -> None:
        self.key_id = key_id
        super().__init__(message)


class InvalidTable(RankwrightError):
    """The table that was uploaded could not be used: `errors` says where, with line and column."""

    def __init__(self, resource_id: str, errors: list[dict[str, Any]]) -> None:
        self.resource_id = resource_id
        self.errors = errors
        super().__init__(
            "\n".join([f"the table of {resource_id} is not valid", *describe_errors(errors)])
        )


class ProblemError(RankwrightError):
    """The service refused a request: a problem document (RFC 9457).

    Attributes
    ----------
    status : int
        HTTP status.
    code : str
        Stable name of the problem, such as `unknown_parameter`; empty if the answer was no problem document.
    title, detail : str
    errors : list of dict
        What is wrong with each part of the input: `detail`, and `pointer`, `parameter`, `line` or `column`.
    request_id : str or None
        Names the request in the logs of the service.
    retry_after : float or None
        Seconds after which the service asks to be asked again.
    """

    def __init__(
        self, status: int, problem: Mapping[str, Any], retry_after: float | None = None
    ) -> None:
        self.status = status
        self.problem = dict(problem)
        self.code = str(problem.get("code") or "")
        self.title = str(problem.get("title") or f"HTTP status {status}")
        self.detail = str(problem.get("detail") or "")
        errors = problem.get("errors")
        self.errors: list[dict[str, Any]] = (
            [each for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
        )
        self.request_id: str | None = problem.get("request_id")
        self.retry_after = retry_after
        first = f"{self.title}: {self.detail}" if self.detail else self.title
        # The message would say the same sentence twice.
        repeated = len(self.errors) == 1 and self.errors[0].get("detail") == self.detail
        super().__init__("\n".join([first, *([] if repeated else describe_errors(self.errors))]))

    def of_lines_after(self, count: int) -> ProblemError:
        """Return the same error of rows that stand behind `count` others: its lines are counted from the first row."""
        detail = re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) + count}", self.detail)
        errors = [
            {**error, "line": error["line"] + count} if error.get("line") is not None else error
            for error in self.errors
        ]
        problem = {**self.problem, "detail": detail, "errors": errors}
        return type(self)(self.status, problem, self.retry_after)

    @property
    def pointer(self) -> str | None:
        """Where the first error is: a JSON pointer, or the name of a parameter; None if the problem names no place."""
        for error in self.errors:
            where = error.get("pointer") or error.get("parameter")
            if where is not None:
                return str(where)
        return None


class Malformed(ProblemError):
    """400: the request could not be read."""


class Unauthorised(ProblemError):
    """401: no key, or one that is not valid (any more)."""


class Forbidden(ProblemError):
    """403: the key lacks a scope."""


class NotFound(ProblemError):
    """404: there is no such thing, or it belongs to another owner."""


class Conflict(ProblemError):
    """409, 412 or 428: the thing is in a state that does not allow this."""


class TooLarge(ProblemError):
    """413, 414 or 431: more than a limit of the service allows."""


class Invalid(ProblemError):
    """422: understood, but wrong: `errors` says where."""


class TooMany(ProblemError):
    """429: too many requests, or over a quota; `retry_after` says how long to wait."""


class Unavailable(ProblemError):
    """5xx: the service cannot do this now, or made an error of its own."""


_BY_STATUS: dict[int, type[ProblemError]] = {
    400: Malformed,
    401: Unauthorised,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: TooLarge,
    414: TooLarge,
    422: Invalid,
    428: Conflict,
    429: TooMany,
    431: TooLarge,
}


def problem_error(
    status: int, problem: Mapping[str, Any], retry_after: float | None
) -> ProblemError:
    """Return the exception for an answer of this status with this problem document."""
    kind = Unavailable if status >= 500 else _BY_STATUS.get(status, ProblemError)
    return kind(status, problem, retry_after)


def describe_errors(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the first errors, one per line, and how many more there are. Those of one column are usually alike."""
    shown: list[Mapping[str, Any]] = []
    of_column: Counter[str | None] = Counter()
    for error in errors:
        column = error.get("column")
        of_column[column] += 1
        if column is None or of_column[column] <= _MAX_SHOWN_OF_COLUMN:
            shown.append(error)
    lines = [f"  {_describe(error)}" for error in shown[:MAX_SHOWN]]
    if more := len(errors) - len(lines):
        lines.append(f"  … and {more} more")
    return lines


def _describe(error: Mapping[str, Any]) -> str:
    where = [
        f"{name} {error[name]}"
        for name in ("part", "line", "column", "pointer", "parameter")
        if error.get(name) is not None
    ]
    detail = str(error.get("detail", ""))
    return f"{', '.join(where)}: {detail}" if where else detail
