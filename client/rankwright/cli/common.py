"""What several commands share: options with their help, the client that they use, and what they print."""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rankwright.client import TIMEOUT, Client, find_service
from rankwright.errors import (
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    InvalidTable,
    JobFailed,
    NotFound,
    ProblemError,
    RankwrightError,
    TooMany,
    Unauthorised,
    Unavailable,
)
from rankwright.tables import Progress, ending_of
from rankwright.transport import RETRIED, BrokenConnection, HttpTransport, Pause, Response, Step

if TYPE_CHECKING:
    from rich.table import Table

# Soft wrap: a terminal breaks long lines, a pipe must not.
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

Model = Annotated[str, typer.Argument(help="The model: id, name, name:version or name@alias.")]

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="RANKWRIGHT_URL", help="Address of the service."),
]
Key = Annotated[
    str | None,
    typer.Option("--key", envvar="RANKWRIGHT_API_KEY", help="API key.", show_default=False),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the service's answer as JSON, and an error to stderr."),
]
Svg = Annotated[Path | None, typer.Option(help="Write the ROC curve to this SVG file.")]

# Of `upload`; the service's own fields have the same names.
STDIN = Path("-")


def existing(path: Path | None) -> Path | None:
    """Return a path that exists, or `-`: typer's own check knows no `-` of a `Path`."""
    if path is not None and path != STDIN and not path.exists():
        raise typer.BadParameter(f"{str(path)!r} does not exist")
    return path


TableOrFolder = Annotated[
    Path,
    typer.Argument(
        callback=existing,
        help="CSV or Parquet file, or a folder of such files, which become one dataset; -: standard input.",
    ),
]
Label = Annotated[str | None, typer.Option(help="Column of the label.")]
Positive = Annotated[str | None, typer.Option(help="Value of the label that counts as positive.")]
DatasetName = Annotated[str | None, typer.Option(help="Name of the dataset. Default: `table`.")]
Weight = Annotated[str | None, typer.Option(help="Column of the row weights.")]
Group = Annotated[
    str | None,
    typer.Option(help="Column of groups: rows with the same value stay on one side of a split."),
]
Query = Annotated[
    str | None,
    typer.Option(help="Column of queries: rows are put in order within each query."),
]
Kind = Annotated[
    str | None,
    typer.Option(
        help="bipartite (default): rows with a label of two values. preferences: items to compare. multilabel: rows "
        "with several labels. graded: rows with a label of grades, whole numbers from 0 to 31."
    ),
]
Item = Annotated[str | None, typer.Option(help="For preferences: column of the items' names.")]
Labels = Annotated[
    str | None, typer.Option(help="For multilabel: columns of the labels, separated by commas.")
]
Categorical = Annotated[
    str | None,
    typer.Option(
        help="Columns to read as categories although they hold numbers, separated by commas."
    ),
]
Numeric = Annotated[
    str | None,
    typer.Option(
        help="Columns to read as numbers, separated by commas. Any other text in them counts as missing."
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a table with values that do not fit their column, or with rows without a label. Default: only "
        "warn.",
    ),
]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")]
Missing = Annotated[
    str | None,
    typer.Option(
        help=r"Texts that mean a missing value, separated by commas. Default: NA,N/A,#N/A,<NA>,null,\N,NaN,?"
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="For a CSV: utf-8, utf-16, latin-1 or windows-1252.")
]
Delimiter = Annotated[str | None, typer.Option(help="For a CSV: comma, semicolon, tab or pipe.")]
Decimal = Annotated[str | None, typer.Option(help="For a CSV: the decimal sign, point or comma.")]
Thousands = Annotated[
    str | None,
    typer.Option(
        help="For a CSV: what stands between thousands, as in 1.234,56: point, comma, space or apostrophe."
    ),
]
Dates = Annotated[
    str | None,
    typer.Option(help="What 03/04/2026 means: day_first or month_first. 03.04.2026 needs it not."),
]
AppendTo = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Append the rows to this dataset. Creates a new version with the same name and roles of columns.",
    ),
]
InPlaceOf = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Replace the rows of this dataset. Creates a new version with the same name and roles of columns.",
    ),
]
PairsFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="For preferences: file of the pairs, with the columns better and worse, and optionally weight.",
    ),
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


class Exit(IntEnum):
    """Exit codes: what a script can tell apart. 130 is for Ctrl-C."""

    OTHER = 1
    BAD_INPUT = 2
    NOT_FOUND = 3
    REFUSED_KEY = 4
    NO_SERVICE = 5
    FAILED_JOB = 6


class CommandFailed(RankwrightError):
    """A command cannot do what it was asked for, and ends with `exit_code`. `errors` are those of a table."""

    def __init__(
        self,
        message: str,
        exit_code: Exit = Exit.BAD_INPUT,
        errors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.errors = list(errors)


_EXITS: dict[type[RankwrightError], Exit] = {
    Conflict: Exit.OTHER,
    NotFound: Exit.NOT_FOUND,
    Unauthorised: Exit.REFUSED_KEY,
    Forbidden: Exit.REFUSED_KEY,
    ConnectionFailed: Exit.NO_SERVICE,
    TooMany: Exit.NO_SERVICE,
    Unavailable: Exit.NO_SERVICE,
    JobFailed: Exit.FAILED_JOB,
    ProblemError: Exit.BAD_INPUT,
    InvalidTable: Exit.BAD_INPUT,
    ConfigurationError: Exit.BAD_INPUT,
}


def _exit_code(error: RankwrightError) -> Exit:
    if isinstance(error, CommandFailed):
        return error.exit_code
    return next((code for kind, code in _EXITS.items() if isinstance(error, kind)), Exit.OTHER)


def _as_json(error: RankwrightError) -> dict[str, Any]:
    """Return an error as JSON: the service's problem, or a `detail` alone, with the exit code."""
    found: dict[str, Any] = {"detail": str(error)}
    if isinstance(error, ProblemError):
        found = {**error.problem}
    if isinstance(error, (InvalidTable, CommandFailed)) and error.errors:
        found["errors"] = error.errors
    return {"error": {**found, "exit_code": int(_exit_code(error))}}


MIN_TOLD_SECONDS = 2.0
"""Pauses between the tries of a request, in all, from which a command says why it waits."""


class _Transport(HttpTransport):
    """HTTP for somebody who waits: an address where nothing has answered yet is not tried again.

    Unless it is `quiet`, it says on standard error why it waits.
    """

    def __init__(self, url: str, api_key: str | None, *, quiet: bool) -> None:
        super().__init__(url, api_key, TIMEOUT)
        self._answered = False
        self._quiet = quiet
        self._waited = 0.0

    def do(self, step: Step) -> Any:
        if (
            isinstance(step, Pause)
            and step.reason
            and not self._quiet
            and step.is_allowed(self._retries, self._timeout)
        ):
            self._waited += step.seconds
            if self._waited >= MIN_TOLD_SECONDS:
                said = f"waiting {math.ceil(step.seconds)} s before another try: {step.reason}"
                err.print(said, markup=False)
        try:
            result = super().do(step)
        except BrokenConnection as error:
            if not self._answered:
                raise ConnectionFailed(str(error)) from error
            raise
        self._answered = True
        if isinstance(result, Response) and result.status not in RETRIED:
            self._waited = 0.0
        return result


@contextmanager
def service(url: str | None, key: str | None, *, as_json: bool = False) -> Iterator[Client]:
    """Open the client. One of its errors ends the command with a red sentence, and one of `Exit`.

    `as_json`: standard error has the error as JSON, and says nothing of waits.
    """
    try:
        transport = _Transport(*find_service(url, key, None), quiet=as_json)
        with Client(transport=transport) as client:
            yield client
    except RankwrightError as error:
        if as_json:
            err.print_json(data=_as_json(error))
        else:
            err.print(str(error), style="red", markup=False)
        raise typer.Exit(_exit_code(error)) from error


@contextmanager
def table_file(path: Path) -> Iterator[Path]:
    """Hand out a file or folder; for `-` a file with what standard input has, so that it can be sent again.

    Its first bytes tell its format: Parquet, Arrow, NDJSON or CSV, plain or compressed.
    """
    if path != STDIN:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        spooled = Path(folder) / "stdin"
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with spooled.open("rb") as file:
            ending = ending_of(file.read(8))
        yield spooled.rename(Path(folder) / f"stdin{ending}")


@contextmanager
def sending(path: Path) -> Iterator[Progress]:
    """Show how much of a file has been sent."""
    from rich import progress as bars

    columns = (
        bars.TextColumn("uploading"),
        bars.BarColumn(),
        bars.DownloadColumn(),
        bars.TransferSpeedColumn(),
    )
    with bars.Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as shown:
        bar = shown.add_task("", total=None if path.is_dir() else path.stat().st_size)
        yield lambda sent, total: shown.update(bar, completed=sent, total=total)


def new_table(*headings: str) -> Table:
    """Make an empty table without lines."""
    from rich.table import Table

    return Table(*headings, box=None, pad_edge=False, show_header=bool(headings))


def split_assignment(text: str) -> tuple[str, str]:
    """Split name=value. Raises CommandFailed for a text without a name or "="."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandFailed(f"a feature, parameter or tag must read name=value, got {text!r}")
    return name, value
