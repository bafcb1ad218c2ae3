"""What several commands share: options with their help, the client that they use, and what they print."""

from __future__ import annotations

import codecs
import inspect
import io
import json
import math
import shutil
import sys
import tempfile
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, cast

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment

from rankwright import printable
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
from rankwright.operations import HEADER, REPEATED
from rankwright.tables import Progress, ending_of
from rankwright.transport import RETRIED, BrokenConnection, HttpTransport, Pause, Response, Step

if TYPE_CHECKING:
    from rich.table import Table


class _Escaped(io.RawIOBase):
    """Bytes of UTF-8 on their way to a terminal, with what would steer it escaped."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        sys.stdout.write(printable.lines(self._decoder.decode(bytes(data))))
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()


def standard_output() -> BinaryIO:
    """Return where a command writes a document or a table: as it is to a file or a pipe, escaped to a terminal."""
    return cast(BinaryIO, _Escaped()) if sys.stdout.isatty() else sys.stdout.buffer


class Terminal(Console):
    """A console that escapes what would steer a terminal: names and messages come from others."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of what is printed; control codes of rich's own are not escaped."""
        for segment in super().render(renderable, options):
            yield (
                segment if segment.control else segment._replace(text=printable.lines(segment.text))
            )

    def print_line(self, text: str, *, style: str | None = None) -> None:
        """Print one line, whatever the text contains."""
        self.print(printable.one_line(text), style=style, markup=False)


# Soft wrap: a terminal breaks long lines, a pipe must not.
out = Terminal(highlight=False, soft_wrap=True)
err = Terminal(stderr=True, highlight=False, soft_wrap=True)

Model = Annotated[str, typer.Argument(help="The model: id, name, name:version or name@alias.")]

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="RANKWRIGHT_URL", help="Address of the service."),
]
Key = Annotated[
    str | None,
    typer.Option("--key", envvar="RANKWRIGHT_API_KEY", help="API key.", show_default=False),
]
Svg = Annotated[Path | None, typer.Option(help="Write the ROC curve to this SVG file.")]

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
        help="CSV or Parquet file, or a folder of such files, which become one dataset. -: standard input.",
    ),
]
DatasetName = Annotated[
    str | None, typer.Option(help="Name of the dataset. Default: the name of the file.")
]
AppendTo = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Append the rows to this dataset. Creates a new version with the same name and column roles.",
    ),
]
InPlaceOf = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Replace the rows of this dataset. Creates a new version with the same name and column roles.",
    ),
]
PairsFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="For preferences: file of pairs with the columns better and worse, and optionally weight.",
    ),
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are set."""
    return {name: value for name, value in options.items() if value not in (None, [])}


def takes(
    *operations: type[Any], only: Collection[str] | None = None, but: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that gives a command an option for every keyword of an operation of `api`.

    The command gets the options that are set as further keywords. It has no such option for a header, for a keyword
    that it has itself, and for one in `but`, or outside `only`. Of several operations it has the options of each.
    """

    def put(command: Callable[..., None]) -> Callable[..., None]:
        hints = typing.get_type_hints(command, include_extras=True)
        own = [
            each.replace(annotation=hints[each.name])
            for each in inspect.signature(command).parameters.values()
            if each.kind is not each.VAR_KEYWORD
        ]
        left_out = {*but, *(each.name for each in own)}
        found: dict[str, list[Any]] = {}
        for operation in operations:
            for name, hint in typing.get_type_hints(operation, include_extras=True).items():
                if name not in left_out and (only is None or name in only):
                    found.setdefault(name, []).append(hint)
        added = {
            name: inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(keywords)
            )
            for name, keywords in found.items()
            if HEADER not in typing.get_args(keywords[0])
        }

        def call(*client: Service, **words: Any) -> None:
            command(*client, **given(**{name: words.pop(name) for name in added}), **words)

        return _with_parameters(call, command, [*own, *added.values()])

    return put


def _with_parameters(
    call: Callable[..., None],
    command: Callable[..., None],
    parameters: Sequence[inspect.Parameter],
) -> Callable[..., None]:
    """Return a function that typer reads as the command with these parameters."""
    update_wrapper(call, command)
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _option(keywords: Sequence[Any]) -> Any:
    """Return the annotation of the option for a keyword, which may differ from operation to operation.

    An object is typed as JSON, and a list as several options.
    """
    values: list[Any] = []
    texts: dict[str, None] = {}
    marks: set[str] = set()
    for keyword in keywords:
        value, text, *more = typing.get_args(keyword)
        values += typing.get_args(value)
        texts[text] = None
        marks |= {*more}
    if REPEATED in marks:
        lists = [kind for kind in values if typing.get_origin(kind) is Sequence]
        items = [typing.get_args(each)[0] for each in lists]
        values = [kind for each in items for kind in (typing.get_args(each) or [each])]
    choices = dict.fromkeys(
        word for kind in values for word in typing.get_args(kind) if isinstance(word, str)
    )
    is_object = any(typing.get_origin(kind) is Mapping for kind in values)
    plain: Any = next((kind for kind in values if kind in (bool, int, float)), str)
    told = " ".join(texts)
    if any(choice not in told for choice in choices):
        told += f" One of {', '.join(choices)}."
    shown = typer.Option(help=escape(told), parser=_json if is_object else None)
    plain = Any if is_object else plain
    return Annotated[(list[plain] if REPEATED in marks else plain) | None, shown]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not JSON: {error}") from error


class Exit(IntEnum):
    """Exit codes: what a script can tell apart. 130 is for Ctrl-C."""

    OTHER = 1
    BAD_INPUT = 2
    NOT_FOUND = 3
    REFUSED_KEY = 4
    NO_SERVICE = 5
    FAILED_JOB = 6
    ALARM = 7


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
                said = f"retrying in {math.ceil(step.seconds)} s: {step.reason}"
                err.print_line(said)
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


class Service(Client):
    """The client of a command, which prints JSON if the command was called with --json."""

    def __init__(self, url: str | None, key: str | None, *, as_json: bool = False) -> None:
        super().__init__(transport=_Transport(*find_service(url, key, None), quiet=as_json))
        self.as_json = as_json

    def prints_json(self, data: Any) -> bool:
        """Print data and return True, if JSON was asked for."""
        if self.as_json:
            out.print_json(data=data)
        return self.as_json


def asks(
    *, json: str | None = "Print the response as JSON, and errors to stderr."
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command whose first parameter is the client: it has the options --url and --key in place
    of it, and --json with the text `json`, unless that is None.

    An error of the client ends the command with a red sentence, and one of `Exit`. With --json, standard error has the
    error as JSON, and says nothing of waits.
    """

    def put(command: Callable[..., None]) -> Callable[..., None]:
        hints = typing.get_type_hints(command, include_extras=True)
        _, *own = inspect.signature(command).parameters.values()
        options: dict[str, tuple[Any, Any]] = {"url": (Url, None), "key": (Key, None)}
        if json is not None:
            options["as_json"] = (Annotated[bool, typer.Option("--json", help=json)], False)

        def call(**words: Any) -> None:
            how = {name: words.pop(name) for name in options}
            try:
                with Service(**how) as client:
                    command(client, **words)
            except RankwrightError as error:
                if how.get("as_json"):
                    err.print_json(data=_as_json(error))
                else:
                    err.print(str(error), style="red", markup=False)
                raise typer.Exit(_exit_code(error)) from error

        added = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint
            )
            for name, (hint, default) in options.items()
        ]
        kept = [each.replace(annotation=hints[each.name]) for each in own]
        return _with_parameters(call, command, [*kept, *added])

    return put


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
    """Make an empty table without lines. Texts in its cells are shown on one line."""
    from rich.table import Table

    class Lineless(Table):
        def add_row(self, *cells: Any, **options: Any) -> None:
            shown = (printable.one_line(cell) if isinstance(cell, str) else cell for cell in cells)
            super().add_row(*shown, **options)

    shown = map(printable.one_line, headings)
    return Lineless(*shown, box=None, pad_edge=False, show_header=bool(headings))


def split_assignment(text: str) -> tuple[str, str]:
    """Split name=value. Raises CommandFailed for a text without a name or "="."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandFailed(
            f"a feature, parameter or tag must have the form name=value, got {text!r}"
        )
    return name, value


def print_lines(lines: Iterable[Sequence[str]]) -> None:
    """Print lines of cells in columns. Not a table of rich: it would cut ids to fit a narrow terminal."""
    shown = [[printable.one_line(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for line in shown:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        out.print("  ".join(cells).rstrip(), markup=False)


def split_alias(alias: str) -> tuple[str, str]:
    """Return the name of the models and that of the alias."""
    name, at, label = alias.partition("@")
    if not (name and at and label):
        raise CommandFailed(f"an alias must have the form name@alias, got {alias!r}")
    return name, label
