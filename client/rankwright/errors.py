"""Errors that calls of the client raise. Every one is a `RankwrightError`."""

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
    """Base class of all errors of the client.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> try:
    ...     client.models.get("no-such-model")
    ... except rankwright.RankwrightError as error:
    ...     print(type(error).__name__)
    NotFound
    """


class ConnectionFailed(RankwrightError):
    """The service could not be reached, or the connection broke and retries did not help.

    Examples
    --------
    >>> import rankwright
    >>> rankwright.Client("http://127.0.0.1:9", "key", retries=0).health()
    Traceback (most recent call last):
        ...
    rankwright.errors.ConnectionFailed: no service responds at http://127.0.0.1:9: ...
    """


class ConfigurationError(RankwrightError):
    """The client does not know the address of the service, or cannot send what it was given.

    Examples
    --------
    >>> import rankwright
    >>> rankwright.Client("localhost")
    Traceback (most recent call last):
        ...
    rankwright.errors.ConfigurationError: the address of a service must start with http:// or https://, got 'localhost'
    """


class JobFailed(RankwrightError):
    """A job that you waited for ended without a result.

    Attributes
    ----------
    job_id : str
        Id of the job.
    state : {"failed", "cancelled", "timed_out"}
        How it ended.
    error : dict or None
        The problem that the service reported.

    Examples
    --------
    >>> import rankwright
    >>> error = rankwright.JobFailed("job_1", "failed", {"detail": "the disk is full"})
    >>> error.state, str(error)
    ('failed', 'job job_1 ended as failed: the disk is full')
    """

    def __init__(self, job_id: str, state: str, error: Mapping[str, Any] | None) -> None:
        self.job_id = job_id
        self.state = state
        self.error = dict(error) if error else None
        detail = f": {self.error['detail']}" if self.error and self.error.get("detail") else ""
        super().__init__(f"job {job_id} ended as {state}{detail}")


class SeveralLabels(RankwrightError):
    """You asked for a single score of a model that has one score per label."""


class SecretLost(RankwrightError):
    """A key was created, but the response with its secret, which is shown only once, was lost.

    Parameters
    ----------
    message : str
        What happened.
    key_id : str or None
        The key whose secret was lost; None if its id is unknown.

    Attributes
    ----------
    key_id : str or None
        The key whose secret is unknown; None if the service does not say it any more. `keys.rotate(key_id)` replaces
        it, and `keys.revoke(key_id)` ends it.

    Examples
    --------
    >>> import rankwright
    >>> rankwright.SecretLost("the secret of key_1 was lost", "key_1").key_id
    'key_1'
    """

    def __init__(self, message: str, key_id: str | None) -> None:
        self.key_id = key_id
        super().__init__(message)


class InvalidTable(RankwrightError):
    r"""The uploaded table cannot be used; `errors` has line and column of each problem.

    Attributes
    ----------
    resource_id : str
        Id of the dataset.
    errors : list of dict
        Each has "detail", and "line" and "column" if they are known.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> try:
    ...     client.upload([{"age": 20, "churned": word} for word in ("yes", "no", "maybe")], label="churned")
    ... except rankwright.InvalidTable as error:
    ...     print(error.errors[0]["column"])
    churned
    """

    def __init__(self, resource_id: str, errors: list[dict[str, Any]]) -> None:
        self.resource_id = resource_id
        self.errors = errors
        super().__init__(
            "\n".join([f"the table of {resource_id} is not valid", *describe_errors(errors)])
        )


class ProblemError(RankwrightError):
    """The service rejected a request: a problem document (RFC 9457).

    Its subclasses stand for HTTP statuses, such as `rankwright.errors.NotFound` for 404.

    Parameters
    ----------
    status : int
        HTTP status.
    problem : mapping of str to Any
        The problem document; empty if the response was not one.
    retry_after : float, optional
        Seconds after which you may try again.

    Attributes
    ----------
    status : int
        HTTP status.
    code : str
        Stable name of the problem, such as "unknown_parameter"; empty if the response was not a problem document.
    title, detail : str
        The problem in general, and in this case.
    errors : list of dict
        What is wrong with each part of the input: "detail", and "pointer", "parameter", "line" or "column".
    request_id : str or None
        Id of the request in the logs of the service.
    retry_after : float or None
        Seconds after which you may try again.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> try:
    ...     client.models.get("no-such-model")
    ... except rankwright.ProblemError as error:
    ...     print(error.status, error.code)
    404 not_found
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
        """Return the same error with line numbers shifted by the rows of earlier requests.

        Parameters
        ----------
        count : int
            Number of rows before those of this request.

        Returns
        -------
        ProblemError
            A new error of the same class.
        """
        detail = re.sub(r"\bline (\d+)", lambda found: f"line {int(found[1]) + count}", self.detail)
        errors = [
            {**error, "line": error["line"] + count} if error.get("line") is not None else error
            for error in self.errors
        ]
        problem = {**self.problem, "detail": detail, "errors": errors}
        return type(self)(self.status, problem, self.retry_after)

    @property
    def pointer(self) -> str | None:
        """JSON pointer or parameter of the first error; None if the problem names neither."""
        for error in self.errors:
            where = error.get("pointer") or error.get("parameter")
            if where is not None:
                return str(where)
        return None


class Malformed(ProblemError):
    """400: the request could not be read."""


class Unauthorised(ProblemError):
    """401: the API key is missing, or is not valid."""


class Forbidden(ProblemError):
    """403: the API key lacks a scope."""


class NotFound(ProblemError):
    """404: the resource does not exist, or belongs to another owner."""


class Conflict(ProblemError):
    """409, 412 or 428: the state of the resource does not allow the request."""


class TooLarge(ProblemError):
    """413, 414 or 431: the request exceeds a limit of the service."""


class Invalid(ProblemError):
    """422: the request is not valid; `errors` says where."""


class TooMany(ProblemError):
    """429: too many requests, or a quota is exhausted; `retry_after` says how long to wait."""


class Unavailable(ProblemError):
    """5xx: the service cannot do this now, or has a fault."""


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
    line = "line"  # of a file; the lines of a sheet are its rows
    if error.get("sheet") is not None:
        line = "cell" if error.get("cell") is not None else "row"
    where = [
        f"{shown} {error[name]}"
        for shown, name in (
            ("part", "part"),
            ("sheet", "sheet"),
            (line, "cell" if line == "cell" else "line"),
            ("column", "column"),
            ("pointer", "pointer"),
            ("parameter", "parameter"),
        )
        if error.get(name) is not None
    ]
    detail = str(error.get("detail", ""))
    return f"{', '.join(where)}: {detail}" if where else detail
