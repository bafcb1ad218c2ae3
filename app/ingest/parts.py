"""A table of several files, its *parts*: each is read by itself, and the table is then assembled in their order.

The result equals that of one file with all rows. `plan` reads the headers and the first rows of the first part, and
guesses the types, as for one file. `read_part` reads a part with these types, whatever its own values suggest, writes
its rows as a typed table (a *piece*), and returns its statistics. `assemble` combines the statistics of all parts. If a
guess was wrong, the parts are read again with the right types; otherwise the pieces are copied into one table.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import numba
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from app.ingest.build import (
    Appending,
    Build,
    Extended,
    FoundOrder,
    NoRows,
    describe_table,
    hash_file,
    system_memory,
)
from app.ingest.columns import Converter, holds_text
from app.ingest.errors import MAX_ROWS, BadTable, Errors, brief, show, too_many_rows
from app.ingest.formats import JSON_ARRAY, NDJSON, Dialect
from app.ingest.profile import Survey, TableReader
from app.ingest.readers import open_source
from app.ingest.rows import ErrorCells, Rows, Source
from app.ingest.value_columns import MissingTokens, is_dated
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC
from app.ingest.writer import TableWriter
from app.platform.blobs import stamp_of

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]

STATE_FILE = "found.json"
"""Two lines: the head of the file, and what its rows have shown."""
_LETTERS = {NUMERIC: "n", BOOLEAN: "b", DATETIME: "d", CATEGORICAL: "c"}
_TYPES = {letter: kind for kind, letter in _LETTERS.items()}


class Guess(FoundOrder):
    """The types and label values that all parts are read with. It is stored with the job of each part, so it is short.

    `types` has a letter for each feature, upper-case if the type is known and does not depend on values. `surveyed` has
    "1" for each feature that is not an identifier, judging by the first rows. `pairs` has the values of each label in
    the form of the converter. `typed` is True if the format has types. `names` is a hash of the columns' names.
    """

    types: str
    surveyed: str
    pairs: dict[str, list[str]]
    typed: bool
    names: str


def plan(payload: Mapping[str, Any], callback: Callback) -> Guess:
    """Return the types and label values with which to read the parts. Raises BadTable if their columns differ.

    The payload is that of `ingest`; in place of one file it has `parts`, each with number, path, content_type,
    content_encoding and stamp. With a `parent`, as of `append`, the parts are read to its types.
    """
    missing = MissingTokens(payload["missing"])
    with system_memory():
        if (parent := payload["parent"]) is not None:
            rows, most = parent["rows"], payload["limits"]["rows"]
            for part, source in _heads(payload, missing):
                with _errors_of(part):
                    _AppendedPiece(source, missing, payload, callback)  # which checks the columns
                rows += source.rows or 0
            if rows > most:
                raise too_many_rows(most, rows, setting=MAX_ROWS)
            return _AppendedPiece.of_parent(missing, payload, callback).guess()
        return _Plan(_Parts(payload, missing), missing, payload, callback).guess()


def read_part(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Read one part with the types of `guess`; returns its number of rows, and its files with path and hash.

    The payload is that of `ingest`, with `part`, `guess` and `parent_id`, the job that assembles the parts. Both files
    contain its id, so that no other job's files have the same bytes, and they may be deleted once that job has ended.
    With a `parent`, part 0 has its rows.
    """
    missing = MissingTokens(payload["missing"])
    folder = Path(payload["workdir"])
    files, rows = {"state": folder / STATE_FILE}, 0
    state: Json = {}
    with system_memory(), _opened_piece(payload, missing, callback) as (source, build):
        head = {
            "job": payload["parent_id"],
            "names": source.names,
            "unnamed": sorted(source.unnamed),
            "error_cells": {name: [*each] for name, each in source.error_cells.items()},
        }
        if build is not None:
            converter, errors = build.read()
            state |= converter.state() | {"survey": build.survey.state()}
            files |= {} if errors else {"piece": build.path}
            rows = converter.rows
    (folder / STATE_FILE).write_bytes(orjson.dumps(head) + b"\n" + orjson.dumps(state))
    part = payload["part"]
    if part["stamp"] is not None:
        sha256 = hash_file(Path(part["path"]))
        with _errors_of(part):
            _check_unchanged(part)  # what was read is what was hashed
    else:
        sha256 = part["sha256"]
    return {
        "rows": rows,
        "sha256": sha256,
        "files": {
            name: {"path": str(path), "sha256": hash_file(path)} for name, path in files.items()
        },
    }


def assemble(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Assemble the table; returns the same as `ingest`, or a better `Guess`, with which all parts must be read again.

    The payload is that of `plan`, with `read`: for each part, in order, its number and the paths `state` and `piece`;
    `guess`, and whether that was the `last` one.
    """
    missing = MissingTokens(payload["missing"])
    kind = _Assembly if payload["parent"] is None else _AppendedAssembly
    with system_memory():
        build = kind(_Read(payload, missing), missing, payload, callback)
        found: Json = build.run()
        return found if "types" in found else describe_table(build, found)


@contextmanager
def _opened(
    payload: Mapping[str, Any], part: Mapping[str, Any], missing: MissingTokens
) -> Iterator[Source]:
    """Its errors have the number of the part."""
    with _errors_of(part), ExitStack() as stack:
        _check_unchanged(part)
        file = {name: part[name] for name in ("path", "content_type", "content_encoding")}
        yield open_source({**payload, **file}, stack, missing)


@contextmanager
def _opened_piece(
    payload: Mapping[str, Any], missing: MissingTokens, callback: Callback
) -> Iterator[tuple[Source, _Piece | None]]:
    """Yield a part's source and its builder, which is None if the columns differ: `assemble` reports that."""
    part, parent = payload["part"], payload["parent"]
    if parent is not None and part["number"] == 0:
        build = _AppendedPiece.of_parent(missing, payload, callback)
        yield build.source, build
        return
    with _opened(payload, part, missing) as source:
        if parent is not None:
            build = _AppendedPiece(source, missing, payload, callback)
            build.source.has_parent = False
            yield build.source, build
        elif _hash_names(source.names) == payload["guess"]["names"]:
            yield source, _Piece(source, missing, payload, callback)
        else:
            yield source, None


@contextmanager
def _errors_of(part: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except BadTable as refusal:
        raise refusal.of_part(part["number"]) from refusal


def _check_unchanged(part: Mapping[str, Any]) -> None:
    """Raise BadTable if a file outside the store has changed since it was added to the upload."""
    if part["stamp"] is None:
        return
    name, path = show(part["name"]), Path(part["path"])
    try:
        now = path.lstat()
        moved = path.resolve(strict=True) != path
    except OSError as error:
        raise BadTable(
            f"the file {name} can no longer be read: {error.strerror}", code="file_not_found"
        ) from error
    if moved or stamp_of(now) != part["stamp"]:
        raise BadTable(
            f"the file {name} must not change after it is added; it was replaced or modified"
        )


def _heads(
    payload: Mapping[str, Any], missing: MissingTokens
) -> Iterator[tuple[Mapping[str, Any], Source]]:
    """Yield each part with its opened source; for JSON only the first: names are known only after reading everything.

    As many are opened at once as there are threads: those compressed as a whole must be decompressed first.
    """
    parts, n = payload["parts"], numba.get_num_threads()
    if parts[0]["content_type"] in (NDJSON, JSON_ARRAY):
        parts = parts[:1]
    with ThreadPoolExecutor(n) as pool:
        for start in range(0, len(parts), n):
            some, stack = parts[start : start + n], ExitStack()
            try:
                opened = [
                    pool.submit(stack.enter_context, _opened(payload, part, missing))
                    for part in some
                ]
                wait(opened)
                yield from zip(some, (each.result() for each in opened), strict=True)
            finally:
                stack.close()  # without the error: it is that of one part


class _Parts(Source):
    def __init__(self, payload: Mapping[str, Any], missing: MissingTokens) -> None:
        self._payload = payload
        self._missing = missing
        self.rows = 0
        types, first = _Types(payload), payload["parts"][0]
        for part, source in _heads(payload, missing):
            if part is first:
                self.names, self.unnamed = source.names, source.unnamed
                self.notation, self.schema = source.notation, source.schema
            with _errors_of(part):
                _check_names(self.names, source.names, first["number"])
                if source.schema is not None:
                    types.add(source)
            whole = None if self.rows is None else source.rows
            self.rows = None if whole is None else (self.rows or 0) + whole
        if self.schema is not None:
            self.schema = types.schema()

    def progress(self) -> tuple[int, int]:
        """It is 0, because only the first rows are read."""
        return 0, 1

    def batches(
        self, errors: Errors, columns: Sequence[str] | None = None, numeric: Collection[str] = ()
    ) -> Iterator[Rows]:
        for part in self._payload["parts"]:
            with self._open(part) as source:
                _check_names(self.names, source.names, self._payload["parts"][0]["number"])
                yield from map(_untyped, source.batches(errors, columns, numeric))

    def _open(self, part: Mapping[str, Any]) -> Any:
        return _opened(self._payload, part, self._missing)


class _Read(_Parts):
    """Parts that were read before, whose headers need not be read again."""

    def __init__(self, payload: Mapping[str, Any], missing: MissingTokens) -> None:
        self._payload = payload
        self._missing = missing
        heads = [_head_of(each) for each in payload["read"]]
        self.names, self.unnamed = heads[0]["names"], heads[0]["unnamed"]
        self.error_cells = _joined(payload["read"], heads)
        self.notation = Dialect(**payload["dialect"] or {}).notation
        self.done, self.rows = 0, sum(each["rows"] for each in payload["read"])

    def progress(self) -> tuple[int, int]:
        """The unit is rows."""
        return self.done, self.rows or 1


def _head_of(part: Mapping[str, Any]) -> Json:
    """Return the head of a part's state; the rest may be as large as the part."""
    with Path(part["state"]).open("rb") as file:
        head: Json = orjson.loads(file.readline())
    return head


def _joined(parts: Sequence[Mapping[str, Any]], heads: Sequence[Json]) -> dict[str, ErrorCells]:
    """Return the columns with errors in cells of any part, with the first cell of the first part."""
    found: dict[str, ErrorCells] = {}
    for part, head in zip(parts, heads, strict=True):
        for name, (cells, line, errors, _) in head["error_cells"].items():
            before = found.get(name, ErrorCells(0, line, [], part["number"]))
            more = [error for error in errors if error not in before.errors]
            found[name] = before._replace(
                cells=before.cells + cells, errors=[*before.errors, *more]
            )
    return found


def _hash_names(names: Sequence[str]) -> str:
    return hashlib.sha256(orjson.dumps(names)).hexdigest()


def _check_names(names: Sequence[str], own: Sequence[str], first: int) -> None:
    """Raise BadTable unless a part has the first part's columns, in the same order."""
    rule = f"all parts must have the columns of part {first} in the same order"
    if names == own:
        return
    for what, odd in (
        ("lacks", [name for name in names if name not in own]),
        ("also has", [name for name in own if name not in names]),
    ):
        if odd:
            listed = ", ".join(map(show, odd[:10])) + (", …" if len(odd) > 10 else "")
            raise BadTable(f"{rule}; it {what} {listed}", column=odd[0], code="parts_differ")
    at = next(i for i, (name, other) in enumerate(zip(names, own, strict=True)) if name != other)
    raise BadTable(
        f"{rule}; its column {at + 1} is {show(own[at])} instead of {show(names[at])}",
        column=own[at],
        code="parts_differ",
    )


class _Types:
    """The column types of typed parts, which must agree. A column without values agrees with any type."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        # Two types may write one value in two ways.
        roles = {payload[role] for role in ("group", "query", "item")}
        self._written_out = roles | set(payload["categorical"] or ())
        self._labels = {payload["label"], *(payload["labels"] or ())}
        self._dropped = set(payload["drop"] or ())
        self._declared: dict[str, pa.DataType] = {}
        self._found: dict[str, pa.DataType] = {}

    def add(self, source: Source) -> None:
        """BadTable: a column has another kind than before, or another type if its values are compared as text."""
        assert source.schema is not None
        for name, type_ in zip(source.names, source.schema.types, strict=True):
            if pa.types.is_null(self._declared.setdefault(name, type_)):
                self._declared[name] = type_
            before = self._found.get(name)
            if before is None:
                if not (pa.types.is_null(type_) or source.is_empty(name)):
                    self._found[name] = type_
                continue
            is_written_out = name in self._written_out or (
                name in self._labels and is_dated(type_)  # numbers are labels as numbers
            )
            kind_of = _spelling_of if is_written_out else _kind_of
            if kind_of(type_) not in ("null", kind_of(before)) and not (
                name in self._dropped or source.is_empty(name)
            ):
                raise BadTable(
                    f"a column must have the same type in all parts; {show(name)} is {brief(type_)} here, but "
                    f"{brief(before)} in an earlier part",
                    column=name,
                    code="parts_differ",
                )

    def schema(self) -> pa.Schema:
        return pa.schema(list((self._declared | self._found).items()))


def _untyped(rows: Rows) -> Rows:
    """Give columns of only nulls the null type: another part may have values of any type."""
    batch = rows.batch
    for at, column in enumerate(batch.columns):
        if column.null_count == len(column) and not pa.types.is_null(column.type):
            batch = batch.set_column(at, batch.schema.names[at], pa.nulls(len(column)))
    return Rows(batch, rows.first, rows.count_lines, rows.chosen)


def _spelling_of(type_: pa.DataType) -> str:
    """Return what determines how the values of a typed column are written as text."""
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    if holds_text(type_):
        return "text"
    return "integers" if pa.types.is_integer(type_) else str(type_)


def _kind_of(type_: pa.DataType) -> str:
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    if holds_text(type_):
        return "text"
    if is_dated(type_):
        return "dates"
    if any(
        fits(type_) for fits in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    ):
        return "numbers"
    return str(type_)


class _Plan(Build):
    """Determines the roles, the label values and the types of a table from its first rows."""

    def guess(self) -> Guess:
        """Raises BadTable."""
        if (count := self.source.rows or 0) > (most := self._payload["limits"]["rows"]):
            raise too_many_rows(most, count, setting=MAX_ROWS)
        if self.source.schema is not None:
            self._check_types(self.source.schema)
        pairs, known = self._find_pairs(), self._known_types()
        rows = next(self._batches(known), None)
        if rows is None:
            if self._errors.total:
                raise self._errors.summarise()
            self._check_rows(0)
        assert rows is not None
        converter = self._make_converter(pairs, self._first_types(rows, known), {})
        converter.convert(rows)
        surveyed = self._surveyed(converter)
        letters = [
            _LETTERS[converter.types[name]].upper()
            if name in known
            else _LETTERS[converter.types[name]]
            for name in self._roles.features
        ]
        return {
            "types": "".join(letters),
            "surveyed": "".join("01"[name in surveyed] for name in self._roles.features),
            "pairs": {label: list(pair) for label, pair in pairs.items()},
            "typed": self.source.schema is not None,
            "names": _hash_names(self.source.names),
            **self._found_order(),
        }


class _Guessed(Build):
    """A builder for a table whose types were guessed before."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if (order := (self._payload.get("guess") or {}).get("dates")) is not None:
            self.notation = replace(self.notation, dates=order)

    def _name_label(self, given: Mapping[str, Any]) -> str | None:
        """The declared label, else that of the guess."""
        pairs = (self._payload.get("guess") or {}).get("pairs") or {}
        alone = given["label"] is None and given["labels"] is None
        return next(iter(pairs), None) if alone else cast(str | None, given["label"])

    @property
    def _guess(self) -> Guess:
        return cast(Guess, self._payload["guess"])

    @property
    def _types(self) -> dict[str, str]:
        letters = self._guess["types"].lower()
        return {
            name: _TYPES[letter] for name, letter in zip(self._roles.features, letters, strict=True)
        }

    def _known_types(self) -> dict[str, str]:
        letters = zip(self._types.items(), self._guess["types"], strict=True)
        return {name: kind for (name, kind), letter in letters if letter.isupper()}

    def _find_pairs(self) -> Mapping[str, tuple[str, ...]]:
        return {label: tuple(pair) for label, pair in self._guess["pairs"].items()}

    def _type_of(self, evidence: Any) -> str:
        read = evidence.text_type if self._guess["typed"] else evidence.type
        kind: str = read(self.notation.dates)
        return kind

    def _make_survey(self, converter: Converter) -> Survey:
        chosen = map("1".__eq__, self._guess["surveyed"])
        return self._survey_of(list(itertools.compress(self._roles.features, chosen)), self._rows())

    def _rows(self) -> int:
        return 0


class _Piece(_Guessed):
    """Builds the piece of the table with the rows of one part."""

    @property
    def metadata(self) -> Mapping[str, str]:  # type: ignore[override]
        """The piece names the job that assembles the parts."""
        return {"job": self._payload["parent_id"]}

    def read(self) -> tuple[Converter, bool]:
        """Read the part; returns its converter, and True if it has errors."""
        converter = self._read(self._find_pairs(), self._types, {})
        if not hasattr(self, "survey"):
            self.survey = self._make_survey(converter)
        return converter, self._errors.total > 0

    def _batches(self, types: Mapping[str, str]) -> Iterator[Rows]:
        return map(_untyped, super()._batches(types))

    def _is_void(self, *_: object) -> bool:
        return False  # other parts may show something else


class _Assembly(_Guessed):
    source: _Read

    def run(self) -> Any:
        """Return the table's description, or a better guess."""
        converter = self._make_converter(self._find_pairs(), self._types, {})
        self.survey = self._make_survey(converter)
        read = self._payload["read"]
        for each in read:
            first, _, rest = Path(each["state"]).read_bytes().partition(b"\n")
            head, state = orjson.loads(first), orjson.loads(rest)
            with _errors_of(each):
                _check_names(self.source.names, head["names"], read[0]["number"])
            converter.items.parts.append((each["number"], converter.rows))
            converter.absorb(state, each["number"])
            self.survey.absorb(state["survey"])
        rows, most = converter.rows + converter.unlabelled.total, self._payload["limits"]["rows"]
        if rows > most:
            raise too_many_rows(most, rows, setting=MAX_ROWS)
        if self._errors.total:
            self._check_value_errors(converter)
            raise self._refusal(converter)
        for name, column in converter.text.items():
            if column.undercounted and not column.is_identifier():
                column.recount(_column_of([each["piece"] for each in read], name))
        if not self._payload["last"]:
            order = self.notation.dates
            self._settle_order(converter)
            found = self._settle_types(converter, self._roles.features)
            if (found, self.notation.dates) != (converter.types, order):
                letters = (_LETTERS[found[name]] for name in self._roles.features)
                better = {**self._guess, "types": "".join(letters)}
                better.pop("dates", None)
                return better | self._found_order()
        self._copy(converter, [each["piece"] for each in read])
        return self._conclude(converter)

    def _rows(self) -> int:
        return self.source.rows or 0

    def _copy(self, converter: Converter, pieces: Sequence[str]) -> None:
        fields = self._fields(converter)
        names = [field.name for field in fields]
        kept = {
            name: words
            for name, column in converter.text.items()
            if (words := column.most_frequent()) is not None
        }
        if kept:
            self.survey.forget_duplicates()
        with TableWriter(self.path, fields) as writer:
            for table in itertools.chain.from_iterable(map(_row_groups, pieces)):
                arrays = {name: table.column(i).combine_chunks() for i, name in enumerate(names)}
                for name, words in kept.items():
                    arrays[name] = converter.text[name].pool(arrays[name], words)
                if self._roles.item:
                    batch = pa.RecordBatch.from_arrays([arrays[self._roles.item]], ["item"])
                    converter.items.add(Rows(batch, self.source.done), batch.column(0))
                writer.write(list(arrays.values()))
                self.survey.sample(arrays, table.num_rows)
                self.source.done += table.num_rows
                self.report(self.source.done)


class _AppendedPiece(_Piece, Appending):
    """Builds the piece of one part, or of the table that the parts are appended to."""

    source: Extended

    def __init__(self, source: Source, *others: Any) -> None:
        super().__init__(source, *others)
        self.rows_before = 0

    @classmethod
    def of_parent(
        cls, missing: MissingTokens, payload: Mapping[str, Any], callback: Callback
    ) -> Self:
        """Return the builder for the table that the parts are appended to."""
        return cls(NoRows(payload["parent"]), missing, payload, callback)

    def guess(self) -> Guess:
        """The types are those of the table that the parts are appended to."""
        types, identifiers = Appending._known_types(self), self._identifiers()
        features = self._roles.features
        return {
            "types": "".join(_LETTERS[types[name]].upper() for name in features),
            "surveyed": "".join("01"[name not in identifiers] for name in features),
            "pairs": {label: list(pair) for label, pair in Appending._find_pairs(self).items()},
            "typed": False,
            "names": _hash_names(self.source.names),
        }


class _AppendedAssembly(_Assembly, Appending):
    def __init__(self, source: _Read, *others: Any) -> None:
        super().__init__(source, *others)
        self.source = source  # the parts have the table's columns, in its order


def _column_of(pieces: Sequence[str], name: str) -> Iterator[pa.Array]:
    for path in pieces:
        with TableReader(Path(path)) as piece:
            yield from piece.column(name)


def _row_groups(path: str) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number, use_threads=False)
