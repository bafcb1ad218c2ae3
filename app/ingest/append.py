"""Rows added to a table: the typed rows that are there, and after them those of an upload, read as the table is.

A column keeps its type and its role, and a label its two values, so that what was learnt from the one version can be
judged on the next. New categories may come. What else does not fit is a fault, told as those of any upload are; and
the profile, the counts and the limits are those of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.ingest.build import DROP, Build, Callback, ingest
from app.ingest.columns import Converter, check_type
from app.ingest.errors import Fault, Faults
from app.ingest.evidence import BOOLEAN, CATEGORICAL, NUMERIC
from app.ingest.profile import Floats
from app.ingest.rows import Rows, Source
from app.ingest.times import is_dated
from app.ingest.values import MissingTokens

_STEPS = 1000
_DROPPED, _IDENTIFIER, _FEATURE, _WEIGHT = "dropped", "identifier", "feature", "weight"


def append(payload: Mapping[str, Any], callback: Callback) -> dict[str, Any]:
    """Write the table of the rows of `payload["parent"]` and of the upload; all else is as `ingest` has it.

    The parent has `path` (its typed table), `rows`, `columns` (name, type, role) and `pairs` (of each label the
    negative and the positive value).
    """
    return ingest(payload, callback, _Appending)


class _Extended(Source):
    """A source that has the rows of a typed table, and then its own."""

    schema = None  # the types are those of the table, whatever the upload's are

    def __init__(self, parent: Mapping[str, Any], upload: Source) -> None:
        self.names = [column["name"] for column in parent["columns"]]
        self.decimal = upload.decimal
        self._parent = parent
        self._upload = upload
        self._types = {column["name"]: column["type"] for column in parent["columns"]}
        self._rows_read = 0

    def progress(self) -> tuple[int, int]:
        """Return how far both are, each in a thousand steps."""
        done, whole = self._upload.progress()
        own = _STEPS * self._rows_read // self._parent["rows"]
        return own + _STEPS * done // max(whole, 1), 2 * _STEPS

    def batches(
        self, faults: Faults, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        """Yield the table's rows by row groups, and the upload's as it has them."""
        wanted = list(self.names if columns is None else columns)
        self._rows_read = 0
        with pq.ParquetFile(self._parent["path"]) as file:
            for number in range(file.num_row_groups):
                group = file.read_row_group(number, columns=wanted, use_threads=False)
                for batch in group.to_batches():
                    arrays = [self._as_uploaded(name, batch.column(name)) for name in wanted]
                    read = pa.RecordBatch.from_arrays(arrays, names=wanted)
                    yield Rows(read, self._rows_read)
                    self._rows_read += batch.num_rows
        yield from self._upload.batches(faults, wanted, numeric)

    def _as_uploaded(self, name: str, column: pa.Array) -> pa.Array:
        """Return a column of the typed table as the converter takes it: labels in words, true and false as such."""
        if (pair := self._parent["pairs"].get(name)) is not None:
            return pa.DictionaryArray.from_arrays(column.cast(pa.int32()), pa.array(pair))
        if self._types[name] == "boolean" and pa.types.is_floating(column.type):
            return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.bool_()), pc.equal(column, 1.0))
        return column


class _AppendingConverter(Converter):
    """A converter that meets typed rows first."""

    hint = "; with mode=append a column keeps its type, with mode=replace types are settled anew"

    def _date(self, rows: Rows, name: str) -> Floats:
        column = rows.batch.column(name)
        if not pa.types.is_floating(column.type):  # the check of types lets no such date pass
            return super()._date(rows, name)
        values: Floats = column.to_numpy()
        self.profiles[name].update(values)
        return values


class _Appending(Build):
    """Adds an upload to a table."""

    converter = _AppendingConverter

    def __init__(
        self,
        source: Source,
        missing: MissingTokens,
        payload: Mapping[str, Any],
        callback: Callback,
    ) -> None:
        self._parent = parent = payload["parent"]
        self._features = {
            column["name"]: column
            for column in parent["columns"]
            if column["role"] in (_FEATURE, _IDENTIFIER)
        }
        self.rows_before = parent["rows"]
        known = {column["name"]: column["role"] for column in parent["columns"]}
        _check_names(
            parent["columns"],
            [name for name in source.names if name in known or name not in source.unnamed],
        )
        if source.schema is not None:
            _check_types(
                parent["columns"], dict(zip(source.names, source.schema.types, strict=True))
            )
        kept = self._names(lambda c: c["type"] == CATEGORICAL and c["role"] == _FEATURE)
        dropped = [name for name, role in known.items() if role == _DROPPED]
        said = {**payload, CATEGORICAL: kept, DROP: dropped}
        super().__init__(_Extended(parent, source), missing, said, callback)

    def _names(self, which: Callable[[Mapping[str, Any]], bool]) -> list[str]:
        return [name for name, column in self._features.items() if which(column)]

    def _make_converter(self, *said: Any) -> Converter:
        converter = super()._make_converter(*said)
        converter.items.rows_before = self.rows_before
        return converter

    def _takes_rest(self) -> bool:
        positive = self._payload["positive"]
        negatives = [pair[0] for pair in self._parent["pairs"].values()]
        return positive is not None and negatives == [f"not {positive}"]

    def _find_pairs(self) -> Mapping[str, tuple[str, ...]]:
        pairs: Mapping[str, tuple[str, ...]] = self._parent["pairs"]
        return pairs

    def _known_types(self) -> dict[str, str]:
        return {name: column["type"] for name, column in self._features.items()}

    def _judge(self, converter: Converter, names: Iterable[str]) -> dict[str, str]:
        """A column keeps its type; one without a value so far may be of true and false."""
        kinds = {name: converter.types[name] for name in names}
        for name, kind in kinds.items():
            found = converter.evidence(name)
            if kind == NUMERIC and found.booleans == found.known > 0:
                kinds[name] = BOOLEAN
        return kinds

    def _identifiers(self, converter: Converter) -> list[str]:
        """Identifiers stay what they are, and so do features."""
        return self._names(lambda column: column["role"] == _IDENTIFIER)


def _check_names(columns: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Raise BadTable unless the upload has the table's columns, in whatever order; dropped ones may be away."""
    known = [column["name"] for column in columns]
    faults = Faults()
    for column in columns:
        if column["name"] not in names and column["role"] != _DROPPED:
            detail = (
                "the column is missing: with mode=append an upload has those of the version before"
            )
            faults.add(Fault(detail, None, column["name"]))
    for name in names:
        if name not in known:
            detail = (
                "there is no such column in the version before; with mode=append none can be added"
            )
            faults.add(Fault(detail, None, name))
    if faults.total:
        raise faults.summarise()


def _check_types(columns: Sequence[Mapping[str, Any]], types: Mapping[str, pa.DataType]) -> None:
    """Raise BadTable for a typed column that no value of the table's type can be in."""
    faults = Faults()
    for column in columns:
        name, kind = column["name"], column["type"]
        if column["role"] not in (_FEATURE, _WEIGHT) or kind == CATEGORICAL:
            continue
        check_type(name, types[name], text=column["role"] == _FEATURE)
        if not _may_hold(types[name], kind):
            detail = f"the column has the type {types[name]}, and is {kind} in the version before"
            faults.add(Fault(detail, None, name))
    if faults.total:
        raise faults.summarise()


def _may_hold(type_: pa.DataType, kind: str) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_null(type_):
        return True
    if kind == "datetime":
        return not (
            pa.types.is_boolean(type_)
            or pa.types.is_integer(type_)
            or pa.types.is_floating(type_)
            or pa.types.is_decimal(type_)
        )
    return not is_dated(type_)
