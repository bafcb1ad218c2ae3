"""Tables of rows to score: columns by name in any order, parsed like datasets, as numbers in the model's order.

The API reads a small table from memory, as CSV, NDJSON or Arrow, whose size is known before anything is decoded. Only
workers read Parquet, under their memory limit: a page may claim any size, and its encodings can repeat a long text any
number of times.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from app.datasets.description import Format, refuse_clash, refuse_foreign
from app.ingest.errors import MAX_COUNTED_ERRORS, BadTable, Errors, show, too_many_rows
from app.ingest.fields import (
    MAX_LIST_LENGTH,
    NamesField,
    QueryFields,
    TextField,
    TextFields,
    TokensField,
    WholeField,
)
from app.ingest.formats import (
    ARROW,
    ARROW_FILE,
    CSV,
    NDJSON,
    Dialect,
    DialectField,
    TextDialect,
    merge,
    notation_fields,
    passed_on,
)
from app.ingest.rows import CELL_BYTES, Rows, Source, errors_of_cells, most_rows
from app.ingest.values import BOOLEAN, NUMERIC
from app.models.reading import codes_of
from app.platform.documents import ModelFeature, TableDialect
from app.platform.errors import MAX_ERRORS, UnsupportedMedia, refuse_all, shown
from app.platform.settings import Settings
from app.platform.sql import Json
from app.scoring.features import FeatureIndex

if TYPE_CHECKING:
    import pyarrow as pa

    from app.ingest.csv import UnnamedColumns
    from app.ingest.stream import Look
    from app.ingest.value_columns import MissingTokens
    from app.scoring.reader import FeatureReader
    from core.base.ranker import Floats

ID, IGNORE, KEEP, MISSING = "id", "ignore", "keep", "missing"
FILE_NAME = "file_name"
ALL = "*"
"""In `ignore`: every column that is no feature."""

TOP = "top"
MAX_NAMES = 1_000
MAX_FILE_NAME = 255
MAX_TOP = 1_000_000
"""Most rows that a batch can keep as its best: they are held in memory."""
READ_AT_ONCE = (CSV, NDJSON, ARROW, ARROW_FILE)
"""The formats that are read where they arrive."""

_BLOCK_CELLS = 1 << 16
_TIMES_MESSAGES = 16  # a file may have so many times the messages of a stream in memory


class IdFields(QueryFields):
    """The fields with options for rows, in every protocol."""

    id: Annotated[str | None, TextField(max_length=MAX_LIST_LENGTH)] = Field(
        default=None,
        description="Field or column with the id of each row, which is returned with its score.",
        examples=["customer_id"],
    )


class JsonRowFields(IdFields):
    """The fields with options for rows in JSON."""

    marks = (b"id=", b"ignore=")

    ignore: Annotated[list[str] | None, NamesField(max_names=MAX_NAMES)] = Field(
        default=None,
        description="Fields or columns that are not features and should be ignored; `*`: all of them.",
        examples=["customer_id,left"],
    )


class _MissingFields(JsonRowFields):
    """The field with the tokens for missing values."""

    missing: Annotated[list[str] | None, TokensField()] = Field(
        default=None,
        description="For a table: strings that mean a missing value. An empty cell is always missing. Default: as "
        "in the training dataset.",
        examples=["NA,unknown,-999"],
    )


class RowFields(TextDialect, _MissingFields):
    """The fields with options for rows to score, in any format."""

    @classmethod
    def unset(cls, choice: DialectField) -> str:
        """Describe the behaviour without the field."""
        if not choice.passes_on:
            return choice.unset
        if choice.fits:
            return f"as in the training dataset if that fits the table; otherwise {choice.unset}"
        return "as in the training dataset"


@dataclass(frozen=True)
class FileName(TextField):
    """A field with the name of a file, without folders."""

    max_length: int = MAX_FILE_NAME

    def read(self, name: str, text: str) -> str:
        if text != tidy_name(text):
            raise ValueError(
                f"{name} must have 1 to {self.max_length} printable characters without / and \\ and without "
                f"surrounding spaces, got {shown(text)}"
            )
        return text


def tidy_name(given: str | None) -> str | None:
    """Remove folders and unprintable characters; None if nothing remains."""
    last = re.split(r"[/\\]", given or "")[-1]
    return "".join(filter(str.isprintable, last)).strip()[:MAX_FILE_NAME] or None


class _BatchFields(TextFields):
    """The fields that only batch scores have."""

    model: Annotated[str | None, TextField(max_length=MAX_LIST_LENGTH)] = Field(
        default=None,
        description="The model, as id, name, name:version or name@alias. Only for rows sent with the request.",
    )
    keep: Annotated[list[str] | None, NamesField(max_names=MAX_NAMES)] = Field(
        default=None, description="Columns to copy to the result."
    )
    top: Annotated[int | None, WholeField(least=1, most=MAX_TOP)] = Field(
        default=None,
        description="Keep only this many rows: those with the highest scores, best first.",
    )
    file_name: Annotated[str | None, FileName()] = Field(
        default=None,
        description="Name of the file, stored with the batch score. Default: that of a form's file.",
    )


class BatchFields(RowFields, Dialect, _BatchFields):
    """The fields with options for rows that a job scores."""


@dataclass(frozen=True)
class TableOptions:
    """Options for reading a caller's table; None: as in the model's training table, or as detected.

    Columns that are not features are rejected unless they are in `ignore` or `keep`, or the caller is lenient. A
    lenient caller's absent features count as missing, too.
    """

    ignore: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    missing: tuple[str, ...] | None = None
    dialect: Mapping[str, str] = field(default_factory=dict)
    lenient: bool = False
    top: int | None = None
    """Of a batch: how many of the best rows are kept."""
    id: str | None = None
    """Of a batch: the first kept column, if the result has it as the column `id`."""

    def as_json(self) -> Json:
        """Return JSON for a job's row."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> TableOptions:
        """Inverse of `as_json`."""
        missing = kept["missing"]
        return cls(
            ignore=tuple(kept[IGNORE]),
            keep=tuple(kept[KEEP]),
            missing=None if missing is None else tuple(missing),
            dialect=kept["dialect"],
            lenient=kept["lenient"],
            top=kept[TOP],
            id=kept[ID],
        )

    def missing_of(self, features: FeatureIndex) -> MissingTokens:
        """Return the missing-value codes of the table, by default the model's."""
        from app.ingest.value_columns import tokens_of

        return features.missing if self.missing is None else tokens_of(self.missing)

    def tokens_of(self, table_dialect: TableDialect | None) -> Sequence[str] | None:
        """Return the tokens of `missing_of` for a job; None for the defaults."""
        if self.missing is not None or table_dialect is None:
            return self.missing
        return table_dialect["missing"]

    def dialect_of(self, table_dialect: TableDialect | None) -> Dialect:
        """By default the notation is that of the training table. Raises Invalid."""
        dialect = merge(notation_fields(table_dialect), self.dialect)
        refuse_clash(dialect)
        return Dialect(**dialect)

    def inherited_of(self, table_dialect: TableDialect | None) -> dict[str, str]:
        """Return the training table's dialect fields that apply only where they fit, without the table's own."""
        notation = notation_fields(table_dialect)
        return {
            name: word
            for name, word in passed_on(table_dialect).items()
            if name not in notation and name not in self.dialect
        }


def index_of(
    features: Sequence[ModelFeature],
    categories: Sequence[Sequence[str] | None],
    table_dialect: TableDialect | None,
) -> FeatureIndex:
    """Return the features of a model, which reads values as its training table was read."""
    notation = Dialect(**notation_fields(table_dialect)).notation
    return FeatureIndex(features, categories, notation, codes_of(table_dialect))


def describe(fields: RowFields, *, lenient: bool) -> TableOptions:
    """Convert the fields to options."""
    return TableOptions(
        ignore=tuple(fields.ignore or ()),
        keep=() if fields.id is None else (fields.id,),
        missing=None if fields.missing is None else tuple(fields.missing),
        dialect=fields.dialect or {},
        lenient=lenient,
    )


def check_options(options: TableOptions, table: Format) -> TableOptions:
    """Add the charset of the Content-Type. Raises Invalid for a dialect if the table is not a CSV."""
    refuse_foreign(options.dialect, table)
    if table.charset is None:
        return options
    return replace(options, dialect={"encoding": table.charset} | dict(options.dialect))


@dataclass(frozen=True)
class Bounds:
    """Limits of a table in memory: columns, bytes (decompressed, and as float64 for the model), and rows."""

    columns: int
    bytes: int
    rows: int

    def max_rows(self, n_features: int) -> int:
        return min(self.rows, self.bytes // (CELL_BYTES * n_features))


def bounds_of(settings: Settings, sent: int) -> Bounds:
    """Return the limits for a table of `sent` bytes in the API's process."""
    return Bounds(settings.max_columns, settings.max_score_bytes, most_rows(sent))


@dataclass(frozen=True)
class FileBounds(Bounds):
    """Limits of a table in a file that is read in blocks: columns, decompressed bytes (also the most cells), rows, and
    bytes in memory at once besides the file's.
    """

    held: int

    def max_rows(self, n_features: int) -> int:
        return min(self.rows, self.bytes // n_features)


@dataclass(frozen=True)
class Batch:
    """Parsed rows: features by position in the model, and columns to copy. `texts` are categorical features, as read,
    and `times` when each row was, NaN where it is unknown; None without a column of times.
    """

    size: int
    features: Mapping[int, Floats]
    kept: Sequence[pa.Array]
    texts: Mapping[int, pa.DictionaryArray]
    times: Floats | None = None

    def blocks(self, n_features: int) -> Iterator[Floats]:
        """Yield blocks of shape (rows, n_features) that fit the CPU's cache, in one buffer; absent features are NaN."""
        size = max(1, min(self.size, _BLOCK_CELLS // n_features))
        block = np.full((size, n_features), np.nan)
        for start in range(0, self.size, size):
            X = block[: self.size - start]
            for index, values in self.features.items():
                X[:, index] = values[start : start + size]
            yield X

    def identified(self, n_features: int) -> Iterator[tuple[Floats, pa.Array | None]]:
        """Yield `blocks` with the rows' ids: the values of the first copied column, or None."""
        start = 0
        for X in self.blocks(n_features):
            yield X, ids_of(self.kept[0].slice(start, len(X))) if self.kept else None
            start += len(X)


def ids_of(column: pa.Array) -> pa.Array:
    """Keep texts, numbers and booleans; convert other values to text."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    types = pa.types
    is_plain = (types.is_boolean, types.is_integer, types.is_floating)
    return column if any(test(column.type) for test in is_plain) else column.cast(pa.string())


class RowReader:
    """Reads the features of one model from any source. Columns in `unread` are allowed but not read.

    `time` reads the column of times of the training table, if the source has it.
    """

    def __init__(
        self,
        features: FeatureIndex,
        options: TableOptions,
        missing: MissingTokens,
        max_rows: int,
        unread: Collection[str] = (),
        time: FeatureReader | None = None,
    ) -> None:
        self._features = features
        self._time = time
        self._unread = frozenset(unread)
        self._options = options
        self._missing = missing
        self._max_rows = max_rows
        self._kept = frozenset(options.keep)
        self._passes_all = options.lenient or ALL in options.ignore

    def _numeric(self, names: Sequence[str]) -> list[str]:
        """Return the numeric features that are not copied: copied columns stay text."""
        numbers = {
            name
            for name, kind in zip(self._features.names, self._features.types, strict=True)
            if kind == NUMERIC
        }
        return [name for name in names if name in numbers and name not in self._kept]

    def unread(self, names: Sequence[str]) -> list[str]:
        used = self._kept.union(self._features.names)
        return [name for name in names if name not in used]

    def batches(self, source: Source) -> Iterator[Batch]:
        """Raises Invalid for wrong columns, and BadTable for wrong values."""
        self._check_columns(source.names, source.unnamed)
        if source.schema is not None:
            self._check_types(source.names, source.schema)
        index = {name: i for i, name in enumerate(self._features.names)}
        present = [name for name in source.names if name in index]
        time = self._time if self._time is not None and self._time.name in source.names else None
        named = [*present, *self._options.keep, *([] if time is None else [time.name])]
        wanted = list(dict.fromkeys(named)) or source.names[:1]
        from app.ingest.value_columns import MissingTokens, blank_to_null

        if source.error_cells:
            tokens = [*self._missing.codes.tokens, *errors_of_cells(source)]
            self._missing = MissingTokens(tokens)
        errors = Errors()
        count = 0
        for rows in source.batches(errors, wanted, self._numeric(source.names)):
            count += rows.batch.num_rows
            if count > self._max_rows:
                raise too_many_rows(self._max_rows)
            texts: dict[int, pa.DictionaryArray] = {}
            values = {
                index[n]: self._read(rows, n, index[n], source, errors, texts) for n in present
            }
            if errors.total >= MAX_COUNTED_ERRORS:
                break
            if not errors.total and rows.batch.num_rows:
                kept = [rows.batch.column(name) for name in self._options.keep]
                if source.schema is None:  # all readers of a format must return the same text
                    kept = [blank_to_null(column) for column in kept]
                times = None
                if time is not None:
                    times = self._times(time, rows.batch.column(time.name), source)
                yield Batch(rows.batch.num_rows, values, kept, texts, times)
        if errors.total:
            raise errors.summarise()

    def _times(self, time: FeatureReader, column: pa.Array, source: Source) -> Floats:
        """Return NaN for what is no time: the column orders rows, and is no reason to refuse them."""
        import pyarrow as pa

        if pa.types.is_floating(column.type):  # seconds, in the table of a dataset
            seconds: Floats = column.to_numpy(zero_copy_only=False).astype(np.float64)
            return seconds
        values, bad, _ = time.read_column(column, self._missing, source.notation)
        return values if bad is None else np.where(bad, np.nan, values)

    def _check_columns(self, names: Sequence[str], unnamed: Collection[str]) -> None:
        """Raise Invalid for unused columns, absent required features, and unknown names."""
        features, options = self._features, self._options
        known, there = set(features.names), set(names)
        used = known.union(options.ignore, options.keep, self._unread, unnamed)
        unknown = () if self._passes_all else (name for name in names if name not in used)
        errors = [
            _error(name, features.unknown(name), "unknown_feature")
            for name in islice(unknown, MAX_ERRORS)
        ]
        absent = (
            (name, i)
            for i, name in enumerate(features.names)
            if name not in there and not options.lenient and not features.may_miss[i]
        )
        errors += [
            _error(name, features.absent(i), "absent_feature")
            for name, i in islice(absent, MAX_ERRORS)
        ]
        for role, listed in (("ignored", options.ignore), ("kept", options.keep)):
            for name in listed:
                if name not in there and not (name == ALL and role == "ignored"):
                    detail = f"the {role} column {show(name)} is not in the table"
                    errors.append(_error(name, detail, "unknown_column"))
        for name in options.ignore:
            if name in known and name != ALL:
                detail = f"column {show(name)} cannot be ignored: it is a feature of the model"
                errors.append(_error(name, detail, "column_in_two_roles"))
        refuse_all(errors)

    def _check_types(self, names: Sequence[str], schema: pa.Schema) -> None:
        from app.ingest.columns import check_type
        from app.ingest.value_columns import is_dated

        kinds = dict(zip(self._features.names, self._features.types, strict=True))
        for name, kind in zip(names, schema.types, strict=True):
            if name not in kinds and name not in self._kept:
                continue
            check_type(name, kind, text=True)
            if kinds.get(name) in (NUMERIC, BOOLEAN) and is_dated(kind):
                raise BadTable(
                    f"column {show(name)} has the type {kind}, but the feature is {kinds[name]}",
                    column=name,
                    code="unsupported_type",
                )

    def _read(
        self,
        rows: Rows,
        name: str,
        i: int,
        source: Source,
        errors: Errors,
        texts: dict[int, pa.DictionaryArray],
    ) -> Floats:
        """Return a column, NaN for missing and (reported) invalid values; a categorical one goes to `texts`."""
        reader, column = self._features.readers[i], rows.batch.column(name)
        values, bad, coded = reader.read_column(column, self._missing, source.notation)
        if coded is not None:
            texts[i] = coded
            words = (coded.dictionary[k].as_py() for k in coded.indices.drop_null()[:1].to_pylist())
            self._features.note(i, values, words)
        else:
            assert bad is not None

            def detail(row: int) -> str:
                return reader.wrong_type(column[row].as_py(), source.notation)

            rows.report(errors, name, bad, detail)
        return values


def read_body(
    body: bytes | pa.Buffer,
    table: Format,
    features: FeatureIndex,
    options: TableOptions,
    table_dialect: TableDialect | None,
    bounds: Bounds,
    unread: Collection[str] = (),
    *,
    may_lack_header: bool = False,
) -> tuple[RowReader, Source]:
    """Return the reader of a table in memory, and its source. Raises BadTable for one that is, or claims to be, too
    large.

    Columns of `unread` are allowed, and not read. With `may_lack_header`, the first line of a CSV decides whether it is
    a header, unless the format says so.
    """
    from app.ingest.readers import source_in_memory
    from app.ingest.stream import TableBytes

    refuse_for_workers(table)
    dialect = options.dialect_of(table_dialect)
    missing = options.missing_of(features)
    max_rows = bounds.max_rows(len(features.names))
    reader = RowReader(features, options, missing, max_rows, unread)
    upload = TableBytes(body, table.content_encoding, bounds.bytes)
    most = (bounds.columns, max_rows, None)
    inherited = options.inherited_of(table_dialect)
    unnamed = _unnamed_columns(table, features, may_lack_header=may_lack_header)
    how = (upload, table.content_type, dialect, most, missing, inherited, unnamed)
    return reader, source_in_memory(*how)


def _unnamed_columns(
    table: Format, features: FeatureIndex, *, may_lack_header: bool = False
) -> UnnamedColumns | None:
    """Return how to read a CSV whose first line may have values; None if it must have names."""
    from app.ingest.csv import UnnamedColumns

    if table.header or not (may_lack_header or table.header is False):
        return None
    pairs = zip(features.names, features.may_miss, strict=True)
    required = frozenset(name for name, may_miss in pairs if not may_miss)
    return UnnamedColumns(features.names, required, known=table.header is False)


def read_workbook(
    path: Path,
    table: Format,
    features: FeatureIndex,
    options: TableOptions,
    table_dialect: TableDialect | None,
    bounds: Bounds,
    unread: Collection[str],
    stack: ExitStack,
) -> tuple[RowReader, Source]:
    """Return the reader of a small workbook and its source, open until `stack` closes. Uses its folder for temporary
    files.

    Raises BadTable for a workbook that is, or claims to be, too large.
    """
    from app.ingest.readers import bounded, open_source

    missing = options.missing_of(features)
    max_rows = bounds.max_rows(len(features.names))
    limits = {"rows": max_rows, "columns": bounds.columns}
    given = (table.content_type, table.content_encoding, limits, bounds.bytes, path.parent)
    payload = {
        **bounded(path, *given),
        "workdir": str(path.parent),
        "dialect": options.dialect_of(table_dialect).dialect,
        "inherited": options.inherited_of(table_dialect),
    }
    reader = RowReader(features, options, missing, max_rows, unread)
    return reader, open_source(payload, stack, missing)


def refuse_for_workers(table: Format) -> None:
    """Raise UnsupportedMedia for a format that only workers may read."""
    if table.content_type not in READ_AT_ONCE:
        raise UnsupportedMedia(
            f"Content-Type must be one of {', '.join(READ_AT_ONCE)} or application/json here; "
            f"{table.content_type} can be read only by a worker: send it to POST /v1/batch-scores"
        )


def read_file(
    path: Path,
    table: Format,
    features: FeatureIndex,
    options: TableOptions,
    table_dialect: TableDialect | None,
    bounds: FileBounds,
    stack: ExitStack,
    look: Look,
) -> tuple[RowReader, Source]:
    """Read a file of any size. A decompressed copy of an Arrow table is written to the file's folder."""
    from app.ingest.arrow import MAX_MESSAGES, ArrowTable, check_claims, stream_of
    from app.ingest.readers import streamed_source
    from app.ingest.stream import TableBytes, map_file, plain_file

    dialect = options.dialect_of(table_dialect)
    missing = options.missing_of(features)
    max_rows = bounds.max_rows(len(features.names))
    reader = RowReader(features, options, missing, max_rows)
    if table.content_type in (ARROW, ARROW_FILE):
        plain = plain_file(path, table.content_encoding, bounds.bytes, path.parent, look)
        whole = map_file(stack.enter_context(plain))
        stream = whole if table.content_type == ARROW else stream_of(whole)
        source = ArrowTable(TableBytes(stream, None, bounds.bytes), bounds.columns, bounds.held)
        source.notation = dialect.notation.or_point
        # Each message costs a visit to every column, and a constant time.
        times = min(_TIMES_MESSAGES, bounds.columns // max(1, len(source.names)))
        claims = check_claims(stream, max_rows, bounds.bytes, MAX_MESSAGES * max(1, times))
        if claims.held > bounds.held:
            raise BadTable(
                f"a batch of an Arrow stream can have at most {bounds.held} bytes after decompression, "
                f"including its dictionaries; one has {claims.held}: write smaller batches",
                code="too_large",
            )
        return reader, source
    upload = TableBytes(path, table.content_encoding, bounds.bytes, look=look)
    most = (bounds.columns, max_rows, None)
    inherited = options.inherited_of(table_dialect)
    unnamed = _unnamed_columns(table, features)
    how = (upload, table.content_type, dialect, most, missing, inherited, unnamed)
    return reader, streamed_source(*how)


def _error(column: str, detail: str, code: str) -> dict[str, str]:
    return {"column": column[:1000], "detail": detail, "code": code}
