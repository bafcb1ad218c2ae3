"""`rankwright score`: one row from the command line, or a file of any size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from app.cli.api_client import ApiClient, ClientError, content_headers, describe_errors
from app.cli.client import err, out, sending, service, split_assignment
from app.cli.options import Decimal, Delimiter, Encoding, Key, Missing, Url, given

IN_ONE_REQUEST = 4 << 20
"""Most bytes of a file that is scored by one request: below the service's default limit."""

_STDOUT = "-"
_FORMATS = {
    ".csv": ("csv", "text/csv"),
    ".parquet": ("parquet", "application/vnd.apache.parquet"),
}
_PARQUET_FILE = "application/vnd.apache.parquet"

File = Annotated[
    Path | None,
    typer.Option(
        exists=True, dir_okay=False, help="File of rows; the same as a file after the model."
    ),
]


def score(
    model: Annotated[str, typer.Argument(help="The model: id, name, name:version or name@alias.")],
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            help="A file of rows (CSV, NDJSON, Parquet, Arrow), or one row as name=value …. A value may be empty."
        ),
    ] = None,
    *,
    file: File = None,
    output: Annotated[
        str, typer.Option("--out", help="Write to this .csv or .parquet file; -: print CSV.")
    ] = _STDOUT,
    keep: Annotated[
        str | None, typer.Option(help="Columns to copy to the result, separated by commas.")
    ] = None,
    missing: Missing = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Score one row given as name=value, or every row of a file.

    Of a file come score, fpr and tpr; of a model with several labels a score for each of them, by its name. Columns
    that are no feature are passed over, missing values and decimals are read as in the table that the model learnt
    from. A large file is scored by a job.
    """
    path = file if file is not None else _as_file(rows or [])
    if (file is not None and rows) or (path is None and not rows):
        raise typer.BadParameter("give features as name=value or a file, not both")
    asked = given(
        keep=keep, missing=missing, encoding=encoding, delimiter=delimiter, decimal=decimal
    )
    with service(url, key) as client:
        if path is not None:
            _score_file(client, model, path, output, asked)
            return
        if asked or output != _STDOUT:
            raise typer.BadParameter("these options need a file; one row is only printed")
        row = dict(split_assignment(text) for text in rows or [])
        out.print_json(data=client.model(model, "score", **row))


def _as_file(words: list[str]) -> Path | None:
    """Return the path if there is one word and it names a file."""
    if len(words) != 1 or "=" in words[0]:
        return None
    path = Path(words[0])
    return path if path.is_file() else None


def _score_file(
    client: ApiClient, model: str, path: Path, output: str, asked: dict[str, str]
) -> None:
    """Score a small file in one request; a large one, or one with kept columns, by a job."""
    format, media_type = _format_of(output)
    params = {"ignore": "*"} | asked
    by_workers_alone = content_headers(path)["Content-Type"] == _PARQUET_FILE
    if "keep" not in asked and not by_workers_alone and path.stat().st_size <= IN_ONE_REQUEST:
        scores = client.score_table(model, path, media_type, params)
        with _opened(output) as sink:
            sink.write(scores)
        return
    with sending(path) as sent:
        batch = client.score_batch(model, path, sent, params)
    if batch["status"] != "ready":
        problem = batch["error"] or {}
        reason = problem.get("detail", "no reason is known")
        errors = describe_errors(problem.get("errors", []))
        client.forget_batch(batch["id"])
        raise ClientError(
            "\n".join([f"{path} was not scored ({batch['status']}): {reason}", *errors])
        )
    with _opened(output) as sink:
        client.take_result(batch["id"], format, sink)
    client.forget_batch(batch["id"])
    err.print(f"{batch['rows']:,} rows scored by {batch['model_name']}:{batch['model_version']}")


def _format_of(output: str) -> tuple[str, str]:
    """Return the service's names for the format of the output, by the file's ending."""
    ending = ".csv" if output == _STDOUT else Path(output).suffix.lower()
    if ending not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise typer.BadParameter(f"--out must end in one of {known}, or be -, got {output!r}")
    return _FORMATS[ending]


@contextmanager
def _opened(output: str) -> Iterator[BinaryIO]:
    if output == _STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with Path(output).open("wb") as file:
            yield file
