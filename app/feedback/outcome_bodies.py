"""Bodies of outcomes: JSON or a table, read with the limits of rows to score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from app.datasets.description import Format
from app.feedback.outcomes import COLUMNS, MAX_ROWS, STORED, TIMES, Outcomes, Report, check
from app.ingest import json_text
from app.ingest.delimiters import has_more_delimiters
from app.ingest.errors import MAX_COUNTED_ERRORS, Errors, too_many_rows
from app.ingest.formats import Dialect
from app.ingest.values import Notation
from app.platform.errors import (
    MAX_ERRORS,
    Invalid,
    Malformed,
    TooLarge,
    UnsupportedMedia,
    escape,
    refuse_all,
    shown,
)
from app.scoring.json_rows import check_brackets, check_count
from app.scoring.table_rows import READ_AT_ONCE, Bounds

if TYPE_CHECKING:
    import pyarrow as pa

    from app.ingest.rows import Rows, Source

SHAPE = 'the body must be {"rows": [{…}, …]} or {"columns": […], "data": [[…], …]}, with no other members'

_TEXTS = frozenset({"decision_id", "id", "source"})
"""Columns whose texts are not interpreted."""

CheckLabels = Callable[[Sequence[str | None], Report], None]
"""Reports the labels of a batch that are not label values of any model."""


@dataclass(frozen=True)
class Body:
    """How to read a body: its format (None: JSON), its dialect, the time it was received, and limits."""

    table: Format | None
    dialect: Mapping[str, str]
    encoding: str | None
    now: float
    bounds: Bounds

    def read(self, body: bytes, check_labels: CheckLabels) -> Outcomes:
        """Raises Malformed, Invalid and BadTable with every error."""
        if self.table is None:
            return self._read_json(body, check_labels)
        return self._read_table(body, self.table, check_labels)

    def _read_json(self, body: bytes, check_labels: CheckLabels) -> Outcomes:
        if self.encoding is not None:
            from app.ingest.stream import Stream

            with Stream(body, self.encoding, self.bounds.bytes) as stream:
                body = stream.read()
        check_brackets(body, MAX_ROWS)
        most = MAX_ROWS * (len(COLUMNS) + 1)
        if has_more_delimiters(body, most, ","):
            raise TooLarge(f"a body can have at most {most} commas outside strings")
        try:
            given = json_text.parse(body)
        except orjson.JSONDecodeError as error:
            raise Malformed(
                f"the body is not valid JSON: {error}", code="malformed_json"
            ) from error
        match given:
            case {"rows": list(rows), **rest} if not rest:
                columns, count = _columns_of_objects(rows), len(rows)
                pointer = _pointer_of_row()
            case {"columns": list(names), "data": list(data), **rest} if not rest:
                columns = _columns_of_lists(names, data)
                pointer, count = _pointer_of_list(names), len(data)
            case _:
                raise Invalid(SHAPE)
        if not count:
            raise Invalid("the body must have at least one row", code="empty_body")
        errors: list[dict[str, Any]] = []

        def report(row: int, column: str | None, detail: str) -> bool:
            errors.append({"pointer": pointer(row, column), "detail": f"row {row}: {detail}"})
            return len(errors) < MAX_ERRORS

        outcomes = check(columns, count, self.now, report)
        if not errors:
            check_labels(outcomes.label, report)
        refuse_all(errors, "invalid_outcome")
        return outcomes

    def _read_table(self, body: bytes, table: Format, check_labels: CheckLabels) -> Outcomes:
        if table.content_type not in READ_AT_ONCE:
            raise UnsupportedMedia(
                f"Content-Type must be one of {', '.join(READ_AT_ONCE)} or application/json, got "
                f"{table.content_type}: send the rows as Arrow, which has the same types"
            )
        source = _source_of(body, table, Dialect(**self.dialect), self.bounds)
        _check_columns(source.names)
        if source.schema is not None:
            _check_types(source.names, source.schema)
        errors = Errors()
        parts: list[Outcomes] = []
        count = 0
        wanted = [name for name in COLUMNS if name in source.names]
        for rows in source.batches(errors, wanted):
            count += rows.batch.num_rows
            if count > MAX_ROWS:
                raise too_many_rows(MAX_ROWS)
            parts.append(self._check_batch(rows, source.notation, errors, check_labels))
            if errors.total >= MAX_COUNTED_ERRORS:
                break
        if errors.total:
            raise errors.summarise()
        if not count:
            raise Invalid("the table must have at least one row", code="empty_body")
        return _joined(parts)

    def _check_batch(
        self, rows: Rows, notation: Notation, errors: Errors, check_labels: CheckLabels
    ) -> Outcomes:
        columns, in_seconds = _values_of(rows.batch)

        def report(row: int, column: str | None, detail: str) -> bool:
            errors.add(rows.error(row, column, detail))
            return errors.total < MAX_COUNTED_ERRORS

        before = errors.total
        outcomes = check(
            columns,
            rows.batch.num_rows,
            self.now,
            report,
            notation=notation,
            in_seconds=in_seconds,
        )
        if errors.total == before:
            check_labels(outcomes.label, report)
        return outcomes


def _joined(parts: Sequence[Outcomes]) -> Outcomes:
    if len(parts) == 1:
        return parts[0]
    return Outcomes(
        **{name: [value for part in parts for value in getattr(part, name)] for name in STORED}
    )


def _pointer_of_row() -> Callable[[int, str | None], str]:
    def pointer(row: int, column: str | None) -> str:
        return f"/rows/{row}" if column is None else f"/rows/{row}/{escape(column)}"

    return pointer


def _pointer_of_list(names: Sequence[str]) -> Callable[[int, str | None], str]:
    def pointer(row: int, column: str | None) -> str:
        absent = column is None or column not in names
        return f"/data/{row}" if absent else f"/data/{row}/{names.index(column)}"

    return pointer


def _columns_of_objects(rows: list[Any]) -> dict[str, list[Any]]:
    """Return JSON objects by column. Raises Invalid for other rows, and for unknown or absent members."""
    check_count(len(rows), MAX_ROWS)
    errors: list[dict[str, Any]] = []
    known = frozenset(COLUMNS)
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            detail = f"row {number} must be an object, got {shown(row)}"
            errors.append({"pointer": f"/rows/{number}", "detail": detail})
        else:
            if not row.keys() <= known:
                errors += [
                    {
                        "pointer": f"/rows/{number}/{escape(name)}",
                        "detail": f"row {number}: {_unknown(name)}",
                    }
                    for name in list(row)[:MAX_ERRORS]
                    if name not in known
                ]
            if "label" not in row:
                detail = f"row {number} must have a label; null withdraws the outcome"
                errors.append({"pointer": f"/rows/{number}", "detail": detail})
        if len(errors) >= MAX_ERRORS:
            break
    refuse_all(errors, "invalid_outcome")
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def _columns_of_lists(names: list[Any], data: list[Any]) -> dict[str, list[Any]]:
    """Raises Invalid."""
    check_count(len(data), MAX_ROWS)
    for i, name in enumerate(names[: len(COLUMNS) + 1]):
        if not isinstance(name, str):
            detail = f"columns must be names, got {shown(name)}"
            refuse_all([{"pointer": f"/columns/{i}", "detail": detail}])
    _check_columns(names, "/columns")
    errors: list[dict[str, Any]] = []
    for number, row in enumerate(data):
        if not isinstance(row, list) or len(row) != len(names):
            detail = f"row {number} of data must be a list of {len(names)} values, one per column"
            errors.append({"pointer": f"/data/{number}", "detail": detail})
            if len(errors) >= MAX_ERRORS:
                break
    refuse_all(errors, "invalid_outcome")
    return {name: [row[i] for row in data] for i, name in enumerate(names)}


def _unknown(name: object) -> str:
    return f"an outcome has the columns {', '.join(COLUMNS)}, got {shown(name)}"


def _check_columns(names: Sequence[str], pointer: str | None = None) -> None:
    """Raise Invalid for unknown, repeated or absent columns."""
    errors: list[dict[str, Any]] = []

    def add(column: str, detail: str) -> None:
        place = {"column": column[:1000]} if pointer is None else {"pointer": pointer}
        errors.append({**place, "detail": detail})

    seen: set[str] = set()
    for name in names[:MAX_ERRORS]:
        if name not in COLUMNS:
            add(name, _unknown(name))
        elif name in seen:
            add(name, f"the column {name} must occur once")
        seen.add(name)
    if not errors:
        if "label" not in seen:
            add("label", "the table must have the column label")
        if not seen & {"decision_id", "id"}:
            add("decision_id", "the table must have the column decision_id or id")
    refuse_all(errors, "invalid_outcome")


def _source_of(body: bytes, table: Format, dialect: Dialect, bounds: Bounds) -> Source:
    """Raises BadTable for a table that is, or claims to be, too large."""
    from app.ingest.readers import source_in_memory
    from app.ingest.stream import TableBytes
    from app.ingest.value_columns import MissingTokens

    upload = TableBytes(body, table.content_encoding, bounds.bytes)
    most = (bounds.columns, min(bounds.rows, MAX_ROWS), None)
    return source_in_memory(upload, table.content_type, dialect, most, MissingTokens())


def _check_types(names: Sequence[str], schema: pa.Schema) -> None:
    """Raise BadTable for a type that outcomes cannot have."""
    from app.ingest.columns import check_type

    for name, kind in zip(names, schema.types, strict=True):
        check_type(name, kind, text=True)


def _values_of(batch: pa.RecordBatch) -> tuple[dict[str, Sequence[Any]], frozenset[str]]:
    """Return values by column, None where missing, and the columns with times in seconds."""
    import pyarrow as pa

    from app.ingest.value_columns import NAMES, MissingTokens, as_text, is_dated, typed_seconds

    missing = MissingTokens()
    found: dict[str, Sequence[Any]] = {}
    in_seconds: set[str] = set()
    for name in batch.schema.names:
        column = batch.column(name)
        if name in TIMES and is_dated(column.type):
            seconds = typed_seconds(column).tolist()
            found[name] = [None if value != value else value for value in seconds]  # noqa: PLR0124 - NaN
            in_seconds.add(name)
        elif name in ("weight", "amount") and pa.types.is_floating(column.type):
            found[name] = column.to_pylist()
        else:
            tokens = NAMES if name in _TEXTS else missing
            found[name] = as_text(column, tokens).to_pylist()
    return found, frozenset(in_seconds)
