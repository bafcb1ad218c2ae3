"""`rankwright score`: one row from the command line, or a file of any size."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from rankwright import api
from rankwright.cli.common import (
    STDIN,
    CommandFailed,
    Exit,
    Model,
    Service,
    asks,
    err,
    existing,
    out,
    sending,
    split_assignment,
    standard_output,
    table_file,
    takes,
)
from rankwright.errors import JobFailed, SeveralLabels, describe_errors
from rankwright.records import Record
from rankwright.tables import SCORED_AT_ONCE, body_of

IN_ONE_REQUEST = 4 << 20
"""Most bytes of a file that is scored by one request: below the service's default limit."""

_STDOUT = "-"
_FORMATS = {".csv": "csv", ".parquet": "parquet"}

File = Annotated[
    Path | None,
    typer.Option(
        callback=existing,
        help="File of rows, or - for standard input; same as a file after the model.",
    ),
]


@asks(json="Print one JSON object per row instead of CSV, and errors to stderr.")
@takes(api.CreateBatchScore, but=["ignore", "file_name"])
def score(
    client: Service,
    model: Model,
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            help="File of rows (CSV, NDJSON, Parquet, Arrow), - for standard input, or one row as name=value "
            "…. A value may be empty."
        ),
    ] = None,
    *,
    file: File = None,
    output: Annotated[
        str, typer.Option(help="Write to this .csv or .parquet file; -: print CSV.")
    ] = _STDOUT,
    **fields: Any,
) -> None:
    """Score one row given as name=value, or every row of a file.

    For a file, the output has score, fpr, tpr and probability; for a model with several labels, it has one score per
    label. Columns that are not features are ignored. Missing values, numbers and dates are read as in the model's
    training table. A large file is scored by a job.
    """
    path = file if file is not None else _as_file(rows or [])
    if (file is not None and rows) or (path is None and not rows):
        raise typer.BadParameter("pass either features as name=value or a file, not both")
    if client.as_json and output != _STDOUT:
        raise typer.BadParameter("--json prints to the terminal; a file is CSV or Parquet")
    if path is not None:
        with table_file(path) as table:
            _score_file(client, model, table, output, fields, path)
        return
    if fields.keys() - api.ScoreRow.__annotations__.keys() or output != _STDOUT:
        raise typer.BadParameter("these options require a file of rows")
    row = dict(split_assignment(text) for text in rows or [])
    found: Record
    try:
        found = client.models[model].score_row(row, **fields)
    except SeveralLabels:
        found = client.models[model].score_row_by_label(
            row, **{name: value for name, value in fields.items() if name == "id"}
        )
    out.print_json(data=found.to_json())


def _as_file(words: list[str]) -> Path | None:
    """Return the path if there is one word and it names a file."""
    if len(words) != 1 or "=" in words[0]:
        return None
    path = Path(words[0])
    return path if path == STDIN or path.is_file() else None


def _score_file(
    client: Service,
    model: str,
    path: Path,
    output: str,
    fields: dict[str, Any],
    typed: Path,
) -> None:
    """Score a small file in one request; a large one, or one with kept columns, best rows or reasons, by a job.

    `typed` is its name for the user: `-` for standard input.
    """
    format = _format_of(output)
    by_workers_alone = body_of(path).media_type not in SCORED_AT_ONCE
    if (
        "reasons" not in fields
        and fields.keys() <= api.ScoreRows.__annotations__.keys()
        and not by_workers_alone
        and path.stat().st_size <= IN_ONE_REQUEST
    ):
        scores = client.models[model].score_to_bytes(path, format, ignore="*", **fields)
        with _opened(output) as sink:
            if client.as_json:
                _write_objects(io.BytesIO(scores), sink, ["id"])
            else:
                sink.write(scores)
        return
    with sending(path) as progress:
        batch = client.score_batch(model, path, ignore="*", **fields, progress=progress, wait=False)
    try:
        batch.wait()
    except JobFailed as failed:
        problem = failed.error or {}
        reason = problem.get("detail", "the reason is unknown")
        errors = describe_errors(problem.get("errors", []))
        batch.delete()
        raise CommandFailed(
            "\n".join([f"{typed} was not scored ({failed.state}): {reason}", *errors]),
            Exit.BAD_INPUT if errors else Exit.FAILED_JOB,
            problem.get("errors", ()),
        ) from failed
    try:
        with _opened(output) as sink:
            if client.as_json:
                with tempfile.TemporaryFile() as file:
                    batch.result(file, format=format)
                    file.seek(0)
                    kept = ["id", *next(csv.reader([fields.get("keep", "")]), [])]
                    _write_objects(file, sink, kept)
            else:
                batch.result(sink, format=format)
        summary = batch.summary()
    finally:
        batch.delete()
    if client.as_json:
        return
    found = batch.data
    err.print(f"{found.rows:,} rows scored by {found.model_name}:{found.model_version}")
    if summary.flagged is not None:
        share = summary.flagged / max(summary.rows, 1)
        err.print(
            f"{summary.flagged:,} flagged ({100.0 * share:.1f} %) by the cutoff of {found.alias}"
        )


_WORDS = re.compile(r"reason_\d+_(code|text|error)")
"""Columns of texts among the scores."""


def _write_objects(table: BinaryIO, sink: BinaryIO, kept: Sequence[str]) -> None:
    """Write a CSV of scores as one JSON object a line. Kept columns, and those of words, stay texts."""
    for row in csv.DictReader(io.TextIOWrapper(table, encoding="utf-8", newline="")):
        line = {
            name: (value or None) if name in kept or _WORDS.fullmatch(name) else _number(value)
            for name, value in row.items()
        }
        sink.write(json.dumps(line).encode() + b"\n")


def _number(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def _format_of(output: str) -> str:
    """Return the service's name for the format of the output, by the file's ending."""
    ending = ".csv" if output == _STDOUT else Path(output).suffix.lower()
    if ending not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise typer.BadParameter(f"--output must end in one of {known}, or be -, got {output!r}")
    return _FORMATS[ending]


@contextmanager
def _opened(output: str) -> Iterator[BinaryIO]:
    if output == _STDOUT:
        sink = standard_output()
        yield sink
        sink.flush()
    else:
        try:
            with Path(output).open("wb") as file:
                yield file
        except OSError as error:
            raise CommandFailed(f"{output} cannot be written: {error.strerror}") from error
