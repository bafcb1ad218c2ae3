"""Rows to score in JSON: objects of features, or lists of values under one list of names. Each may have an id."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from app.ingest import json_text
from app.ingest.delimiters import has_more_delimiters
from app.ingest.rows import MIN_ROWS
from app.ingest.values import spell
from app.platform.errors import MAX_ERRORS, Invalid, Malformed, escape, invalid, refuse_all, shown
from app.scoring.features import FeatureIndex
from app.scoring.table_rows import ALL, ID, IGNORE, Bounds, JsonRowFields

if TYPE_CHECKING:
    import pyarrow as pa

    from core.base.ranker import Floats

SHAPE = (
    'the body must be {"rows": [{…}, …]} or {"columns": […], "data": [[…], …]}, with no other '
    'members than "id" and "ignore"'
)


class IdAndIgnored(NamedTuple):
    """The fields of rows that are not features: the field or column of the ids, and the fields to ignore (`*`: all)."""

    id: str | None = None
    ignore: Sequence[str] = ()

    @classmethod
    def of(cls, fields: JsonRowFields) -> IdAndIgnored:
        """Return the fields that the query names."""
        return cls(fields.id, tuple(fields.ignore or ()))

    def of_body(self, given: dict[str, Any]) -> IdAndIgnored:
        """Add the fields that the body names, which are removed from it. Raises Invalid."""
        for name in (ID, IGNORE):
            if name in given and getattr(self, name):
                raise invalid(
                    f"/{name}", f"{name} must be given only once, in the query or in the body"
                )
        id_, ignore = given.pop(ID, self.id), given.pop(IGNORE, self.ignore)
        if id_ is not None and (not isinstance(id_, str) or not id_):
            raise invalid("/id", f"id must name a field or column, got {shown(id_)}")
        ignore = () if ignore is None else ignore
        if not isinstance(ignore, list | tuple) or not all(isinstance(n, str) for n in ignore):
            raise invalid("/ignore", f"ignore must be a list of names, got {shown(ignore)}")
        return IdAndIgnored(id_, ignore)

    def check(self, features: Collection[str]) -> None:
        """Raise Invalid if `ignore` names a feature, except a feature named `*`."""
        errors = [
            {"detail": f"{shown(name)} cannot be ignored: it is a feature of the model"}
            for name in self.ignore[:MAX_ERRORS]
            if name in features and name != ALL
        ]
        refuse_all(errors, "column_in_two_roles")

    def ignores(self, name: object, features: Collection[str]) -> bool:
        return name not in features and (ALL in self.ignore or name in self.ignore)


_BRACKETS_BESIDE = 8
"""Opening brackets of a body besides those of its rows, and some more: of the body, of `rows` or `data`, of lists of
names.
"""
MIN_ROW_BYTES = len("[1],")
"""Bytes of the shortest row that has a value."""


class JsonRows(NamedTuple):
    """Rows of float64, shape (rows, features), and the id of each if there are ids."""

    X: Floats
    ids: pa.Array | None


def read(
    features: FeatureIndex,
    body: bytes | memoryview,
    beside: IdAndIgnored,
    bounds: Bounds,
    *,
    lenient: bool = False,
) -> JsonRows:
    """Raises Malformed and Invalid. The number of rows is limited as for a table: absent features take no bytes."""
    max_rows = bounds.max_rows(len(features.names))
    required = 0 if lenient else features.may_miss.count(False)
    check_brackets(body, max_rows, MIN_ROW_BYTES + len(",1") * max(0, required - 1))
    if beside == IdAndIgnored():
        parsed = features.parse_rows(body, lenient=lenient)
        if parsed is not None:
            check_count(len(parsed), max_rows)
            return JsonRows(features.matrix_of_parsed(parsed), None)
        X = features.matrix_of_number_table(body, max_rows, lenient=lenient)
        if X is not None:
            return JsonRows(X, None)
    try:
        given = json_text.parse(body)
    except orjson.JSONDecodeError as error:
        raise Malformed(f"the body is not valid JSON: {error}", code="malformed_json") from error
    if not isinstance(given, dict):
        raise Invalid(SHAPE)
    match given:
        case {"rows": list(rows), **rest} if rest.keys() <= {ID, IGNORE}:
            return of_objects(features, rows, beside.of_body(given), max_rows, lenient=lenient)
        case {"columns": list(columns), "data": list(data), **rest} if rest.keys() <= {ID, IGNORE}:
            beside = beside.of_body(given)
            return of_lists(features, columns, data, beside, max_rows, lenient=lenient)
    raise Invalid(SHAPE)


def check_brackets(body: bytes | memoryview, max_rows: int, row_bytes: int = MIN_ROW_BYTES) -> None:
    """Raise Invalid for more lists and objects than `max_rows` rows have, or than the bytes can hold as rows.

    A row has at least `row_bytes`; a few thousand empty rows are always allowed. This must come before the body is
    parsed: an empty list takes twenty times its bytes in memory.
    """
    most = min(max_rows, max(MIN_ROWS, len(body) // row_bytes))
    if has_more_delimiters(body, most + _BRACKETS_BESIDE, "{["):
        raise _too_many_rows(most, "more, counted by their opening brackets")


def of_objects(
    features: FeatureIndex,
    rows: list[Any],
    beside: IdAndIgnored,
    max_rows: int,
    *,
    lenient: bool = False,
) -> JsonRows:
    """Convert objects to rows and ids. Raises Invalid for too many rows, bad ids, ignored features and bad values."""
    check_count(len(rows), max_rows)
    beside.check(features.names)
    ids: list[Any] | None = None
    known = frozenset(features.names)
    if (name := beside.id) is not None:
        ids = [None] * len(rows)
        errors: list[Mapping[str, str]] = []
        for number, row in enumerate(rows):
            if not isinstance(row, dict):  # refused below
                continue
            if name not in row:
                detail = f"row {number} must have the field {shown(name)}, which has its id"
                errors.append({"pointer": f"/rows/{number}", "detail": detail})
            else:
                ids[number] = row[name] if name in known else row.pop(name)
                if (wrong := _wrong_id(ids[number])) is not None:
                    pointer = f"/rows/{number}/{escape(name)}"
                    errors.append({"pointer": pointer, "detail": wrong})
            if len(errors) >= MAX_ERRORS:
                break
        refuse_all(errors, "invalid_id")
    if beside.ignore:
        rows = [
            {name: row[name] for name in row if not beside.ignores(name, known)}
            if isinstance(row, dict) and not row.keys() <= known
            else row
            for row in rows
        ]
    X = features.matrix_of_rows(rows, lenient=lenient)
    return JsonRows(X, None if ids is None else _as_array(ids))


def of_lists(
    features: FeatureIndex,
    columns: list[Any],
    data: list[Any],
    beside: IdAndIgnored,
    max_rows: int,
    *,
    lenient: bool = False,
) -> JsonRows:
    """Convert lists under one list of names. Raises Invalid."""
    check_count(len(data), max_rows)
    beside.check(features.names)
    known = frozenset(features.names)
    id_at = None
    if beside.id is not None:
        if beside.id not in columns:
            detail = f"columns must include {shown(beside.id)}, which has the ids"
            raise invalid("/columns", detail, code="invalid_id")
        id_at = columns.index(beside.id)
    kept = [
        i
        for i, name in enumerate(columns)
        if not (isinstance(name, str) and beside.ignores(name, known))
        and (i != id_at or name in known)
    ]
    if id_at is None and len(kept) == len(columns):
        return JsonRows(features.matrix_of_table(columns, data, lenient=lenient), None)
    errors: list[Mapping[str, str]] = []
    for number, row in enumerate(data):
        if not isinstance(row, list) or len(row) != len(columns):
            detail = f"row {number} of data must be a list of {len(columns)} values, one per column"
            errors.append({"pointer": f"/data/{number}", "detail": detail})
        elif id_at is not None and (wrong := _wrong_id(row[id_at])) is not None:
            pointer = f"/data/{number}/{id_at}"
            errors.append({"pointer": pointer, "detail": wrong, "code": "invalid_id"})
        if len(errors) >= MAX_ERRORS:
            break
    refuse_all(errors)
    ids = None if id_at is None else _as_array([row[id_at] for row in data])
    columns, data = [columns[i] for i in kept], [[row[i] for i in kept] for row in data]
    return JsonRows(features.matrix_of_table(columns, data, lenient=lenient), ids)


def check_count(rows: int, max_rows: int) -> None:
    """Raise Invalid for more rows than one request may have."""
    if rows > max_rows:
        raise _too_many_rows(max_rows, rows)


def _too_many_rows(max_rows: int, got: object) -> Invalid:
    return Invalid(f"a body can have at most {max_rows} rows here, got {got}", code="too_many_rows")


def _as_array(ids: list[Any]) -> pa.Array:
    """Keep ids of one type; convert mixed ones, and those above 64 bits, to text."""
    import pyarrow as pa

    if len({type(value) for value in ids if value is not None}) <= 1:
        for kind in (None, pa.uint64()):
            with suppress(OverflowError, pa.ArrowInvalid, pa.ArrowTypeError):
                return pa.array(ids, kind)
    texts = [each if each is None or isinstance(each, str) else spell(each) for each in ids]
    return pa.array(texts, pa.string())


def _wrong_id(value: object) -> str | None:
    """Return the error message for an invalid id."""
    if value is None or isinstance(value, str | int):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else "an id can have at most 300 digits"
    return f"an id must be a string, a number, true, false or null, got {shown(value)}"
