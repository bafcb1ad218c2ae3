"""Search of tables for the rows of an entity, and new tables without them. It runs in the fit process.

A table is read in the form of its upload, because a key column may be dropped from the typed table. The rows that are
left are written to a new file in the place of the upload, and that is read like an upload. So everything that is
computed from a table (types, categories, profile, warnings) is computed again, without the rows of the entity.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from app.datasets.tasks import hash_appended, read_file
from app.ingest.build import hash_file
from app.ingest.errors import BadTable, Errors
from app.ingest.formats import CSV, JSON_ARRAY, NDJSON, PARQUET, notation_fields
from app.ingest.pairs import BETTER, WORSE, ingest_pairs
from app.ingest.readers import open_source
from app.ingest.rows import Rows, Source
from app.ingest.stream import TableBytes
from app.ingest.value_columns import (
    NAMES,
    MissingTokens,
    as_categories,
    as_text,
    encode_names,
)

Json = dict[str, Any]
Mask = npt.NDArray[np.bool_]
Report = Callable[[int, int, Mapping[str, float]], None]

UPLOAD_FILE, PAIRS_UPLOAD = "upload", "pairs_upload"
_CODECS = ("utf-8", "utf-16-le", "utf-16-be", "latin-1")
_PIECE = 1 << 20
_GONE = frozenset({"no_rows", "one_class", "no_features"})
"""Codes of the errors for a table that lost a class, all its rows, or all features with values."""


def find_rows(rows: Rows, keys: Sequence[str], entity: str) -> Mask:
    """Find the entity in one of the key columns, as text without surrounding spaces; integers have no decimal point."""
    found = np.zeros(rows.batch.num_rows, dtype=bool)
    for name in keys:
        if name not in rows.batch.schema.names:
            continue
        coded = encode_names(rows.batch.column(name))
        same = pc.equal(coded.dictionary, entity).fill_null(False)
        codes = np.flatnonzero(same.to_numpy(zero_copy_only=False))
        if len(codes):
            indices = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            found |= np.isin(indices, codes)
    return found


class Searched(NamedTuple):
    """The numbers of rows of a table, and of those that belong to the entity."""

    rows: int
    found: int


def search_upload(table: Mapping[str, Any], entity: str) -> bool:
    """Search key columns or, if they cannot be read, all bytes of an upload that is no valid table."""
    try:
        with ExitStack() as stack:
            source = open_source(table, stack, NAMES)
            keys = [name for name in table["keys"] if name in source.names]
            errors = Errors()
            if keys and any(
                find_rows(rows, keys, entity).any() for rows in source.batches(errors, keys)
            ):
                return True
            if keys and not errors.total:
                return False
    except BadTable:
        pass
    return any(_has_bytes(table, entity.encode(codec, "replace")) for codec in _CODECS)


def _has_bytes(table: Mapping[str, Any], wanted: bytes) -> bool:
    upload = TableBytes(Path(table["path"]), table["content_encoding"], table["limits"]["bytes"])
    before = b""
    try:
        with upload.open() as stream:
            while piece := stream.read(_PIECE):
                if wanted in before + piece:
                    return True
                before = piece[-len(wanted) :]
    except BadTable:  # damaged: nothing can be said about the rest
        return True
    return False


def search_result(path: str, keys: Sequence[str], entity: str) -> bool:
    """The file is Parquet."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        keys = [name for name in keys if name in file.schema_arrow.names]
        return bool(keys) and any(
            find_rows(Rows(batch, 0), keys, entity).any()
            for batch in file.iter_batches(columns=keys)
        )


class _Files:
    """A dataset's upload, of one file or of several."""

    def __init__(self, version: Mapping[str, Any]) -> None:
        self._version = version
        self._missing = MissingTokens(version["reading"]["missing"])
        self.first: Source

    def read(self, errors: Errors, columns: Collection[str] | None = None) -> Iterator[Rows]:
        """Yield batches of all files. JSON is read without dropped columns, which may be nested."""
        for number, file in enumerate(self._version["files"]):
            described = {**self._version["reading"], **file}
            with ExitStack() as stack:
                source = open_source(described, stack, self._missing)
                if number == 0:
                    self.first = source
                wanted = [name for name in source.names if columns is None or name in columns]
                if file["content_type"] in (NDJSON, JSON_ARRAY):
                    dropped = {*(self._version["reading"]["drop"] or ())} - {*self._version["keys"]}
                    wanted = [name for name in wanted if name not in dropped]
                yield from source.batches(errors, wanted)


class Rewritten(NamedTuple):
    """A version that was read: its rows, those that were found, and the items that these were."""

    rows: int
    found: int
    items: frozenset[str]


class Rewriting:
    """Searches and rewrites the versions of datasets, in the order of their numbers."""

    def __init__(self, payload: Mapping[str, Any], report: Report) -> None:
        self._payload = payload
        self._entity: str = payload["entity"]
        self._report = report
        self._items: dict[str, frozenset[str]] = {}
        self._words: dict[str, dict[str, set[str]]] = {}
        """By version and column, the categories of the rows that are gone."""
        self._tables: dict[str, Json] = {}
        """What a new version says to those that continue it, by the id of the version that it replaces."""
        self.searched = Searched(0, 0)
        self.written = 0

    def run(self) -> list[Json]:
        """Return by version: `id`, `rows`, `words` that it no longer has, by column, and `new`, unless its new table is
        invalid.
        """
        changed = []
        versions = self._payload["versions"]
        for number, version in enumerate(versions):
            self._report(number, len(versions) or 1, {"rows": self.searched.rows})
            found = self._search(version)
            self.searched = Searched(
                self.searched.rows + found.rows, self.searched.found + found.found
            )
            parent = version["append_to"]
            if found.found or parent in self._items:
                self._items[version["id"]] = found.items | self._items.get(parent, frozenset())
                changed.append(self._rewrite(version, number, found))
        return changed

    def _search(self, version: Mapping[str, Any]) -> Rewritten:
        files, rows, found, items = _Files(version), 0, 0, set[str]()
        item = version["item"]
        columns = {*version["keys"]} | ({item} if item else set())
        for batch in files.read(Errors(), columns):
            mask = find_rows(batch, version["keys"], self._entity)
            rows, found = rows + len(mask), found + int(mask.sum())
            if item and mask.any():
                names = as_text(batch.keep(mask).batch.column(item), NAMES)
                items |= {*names.drop_null().to_pylist()}
        return Rewritten(rows, found, frozenset(items))

    def _rewrite(self, version: Mapping[str, Any], number: int, found: Rewritten) -> Json:
        folder = Path(self._payload["workdir"]) / str(number)
        folder.mkdir()
        parent = version["append_to"]
        earlier = self._words.get(parent, {})
        words = {name: {*earlier.get(name, ())} for name in version["categorical"]}
        self._words[version["id"]] = words
        made: Json = {"id": version["id"], "rows": found.found, "words": {}, "new": None}
        if parent is not None and parent in self._items and parent not in self._tables:
            return made  # there is nothing to continue
        try:
            new = self._write(version, folder)
            made["words"] = _absent(words, folder / new["found"]["file"])
            if version["pairs"] is not None:
                new["pairs"] = self._write_pairs(version, new, folder)
        except BadTable as error:
            if error.code not in _GONE:
                raise
            return made
        self._tables[version["id"]] = {
            "path": str(folder / new["found"]["file"]),
            "sha256": new["found"]["content_sha256"],
            "rows": new["found"]["rows"],
            **new.pop("continued"),
        }
        self.written += new["bytes"]
        return {**made, "new": new}

    def _write(self, version: Mapping[str, Any], folder: Path) -> Json:
        upload = folder / UPLOAD_FILE
        files = _Files(version)
        content_type, names, nameless = self._write_rows(version, files, upload)
        own, size = hash_file(upload), upload.stat().st_size
        drop = [
            name
            for name in version["reading"]["drop"] or ()
            if name in names or version["append_to"] is not None
        ]
        dialect = notation_fields(version["dialect"])
        if content_type == CSV:
            dialect |= {"delimiter": "comma", "encoding": "utf-8"}
        else:
            dialect = {name: word for name, word in dialect.items() if name == "dates"}
        reading = {"drop": [*drop, *(each for each in nameless if each not in drop)] or None}
        parent = version["parent"]
        if version["append_to"] in self._tables:
            parent = self._tables[version["append_to"]]
        read: Any = {
            **version["reading"],
            **reading,
            "path": str(upload),
            "content_type": content_type,
            "content_encoding": None,
            "dialect": dialect or None,
            "parent": parent,
            "workdir": str(folder),
        }
        result: Json = dict(read_file(read, lambda *_: self._report(0, 1, {})))
        content = own if parent is None else hash_appended(parent["sha256"], own)
        found = {**result, "content_sha256": content}
        found.setdefault("dialect", dialect or None)
        labels = found["labels"] or [{name: found[member] for name, member in _OF_LABEL.items()}]
        continued = {
            "columns": [
                {member: column[member] for member in ("name", "type", "role")}
                for column in found["columns"]
            ],
            "pairs": {
                label["name"]: [
                    label["negative"],
                    label["positive"],
                    *_several(found["columns"], label["name"]),
                ]
                for label in labels
                if label["name"] is not None and label["positive"] is not None
            },
        }
        return {
            "folder": str(folder),
            "upload": {"file": UPLOAD_FILE, "sha256": own, "content_type": content_type},
            "bytes": size,
            "reading": reading,
            "found": found,
            "pairs": None,
            "continued": continued,
        }

    def _write_rows(
        self, version: Mapping[str, Any], files: _Files, path: Path
    ) -> tuple[str, Collection[str], Collection[str]]:
        """Return the format, the names of the columns, and the names given to unnamed columns."""
        errors = Errors()
        writer: Any = None
        content_type, names, unnamed = CSV, list[str](), set[str]()
        with path.open("wb") as file, ExitStack() as stack:
            for rows in files.read(errors):
                mask = find_rows(rows, version["keys"], self._entity)
                self._note_words(version, rows.batch.filter(pa.array(mask)))
                batch = rows.batch.filter(pa.array(~mask))
                names = batch.schema.names
                if writer is None:
                    unnamed = {*files.first.unnamed}
                    if files.first.schema is not None:
                        content_type = PARQUET
                    schema = pa.schema(
                        [(each.name, _plain_type(each.type)) for each in batch.schema]
                    )
                    if content_type == CSV:
                        file.write(_header(names))
                        options = pa_csv.WriteOptions(include_header=False, quoting_style="needed")
                        writer = stack.enter_context(
                            pa_csv.CSVWriter(file, schema, write_options=options)
                        )
                    else:
                        writer = stack.enter_context(
                            pq.ParquetWriter(file, schema, compression="zstd")
                        )
                # Without dictionaries, which would keep the values of rows that are gone.
                writer.write_batch(batch.cast(schema))
        if errors.total or writer is None:
            raise errors.summarise() if errors.total else BadTable("no rows", code="no_rows")
        return content_type, names, [name for name in names if name in unnamed]

    def _note_words(self, version: Mapping[str, Any], gone: pa.RecordBatch) -> None:
        missing = MissingTokens(version["reading"]["missing"])
        for name, words in self._words[version["id"]].items():
            if name in gone.schema.names:
                words |= {*as_categories(gone.column(name), missing).drop_null().to_pylist()}

    def _write_pairs(self, version: Mapping[str, Any], new: Json, folder: Path) -> Json | None:
        """Keep pairs of remaining items; None if there are none."""
        pairs, gone = version["pairs"], pa.array(sorted(self._items[version["id"]]), pa.string())
        upload, kept = folder / PAIRS_UPLOAD, 0
        with ExitStack() as stack:
            source = open_source({**pairs, "workdir": str(folder)}, stack, NAMES)
            typed = source.schema is not None
            file = stack.enter_context(upload.open("wb"))
            writer: Any = None
            for rows in source.batches(Errors()):
                texts = [as_text(rows.batch.column(name), NAMES) for name in (BETTER, WORSE)]
                named = pc.or_(*(pc.is_in(text, gone) for text in texts))
                batch = rows.batch.filter(pc.invert(named))
                kept += batch.num_rows
                schema = pa.schema([(each.name, _plain_type(each.type)) for each in batch.schema])
                if writer is None and typed:
                    writer = stack.enter_context(pq.ParquetWriter(file, schema))
                elif writer is None:
                    file.write(_header(batch.schema.names))
                    options = pa_csv.WriteOptions(include_header=False, quoting_style="needed")
                    writer = stack.enter_context(
                        pa_csv.CSVWriter(file, schema, write_options=options)
                    )
                writer.write_batch(batch.cast(schema))
        if not kept:
            return None
        content_type = PARQUET if typed else CSV
        dialect = None if typed else {"delimiter": "comma", "encoding": "utf-8"}
        found = ingest_pairs(
            {
                "path": str(upload),
                "content_type": content_type,
                "content_encoding": None,
                "dialect": dialect,
                "workdir": str(folder),
                "limits": pairs["limits"],
                "items": {
                    "path": str(folder / new["found"]["file"]),
                    "column": version["item"],
                },
            },
            lambda *_: None,
        )
        return {
            **found,
            "upload": {
                "file": PAIRS_UPLOAD,
                "sha256": hash_file(upload),
                "content_type": content_type,
            },
            "bytes": upload.stat().st_size,
        }


def _absent(words: Mapping[str, set[str]], table: Path) -> dict[str, list[str]]:
    """Return the words that a table does not have."""
    left = {name: {*of} for name, of in words.items() if of}
    with pq.ParquetFile(table, pre_buffer=False) as file:
        names = [name for name in left if name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=names) if names else ():
            for name in names:
                left[name] -= {*pc.unique(batch.column(name)).to_pylist()}
    return {name: sorted(of) for name, of in left.items() if of}


_OF_LABEL = {"name": "label", "negative": "negative", "positive": "positive"}


def _several(columns: Sequence[Json], label: str) -> list[str]:
    column = next(each for each in columns if each["name"] == label)
    found = [each["value"] for each in column.get("values") or () if each["positive"]]
    return found if len(found) > 1 else []


def _plain_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _header(names: Sequence[str]) -> bytes:
    quoted = (name.replace('"', '""') for name in names)
    return (",".join(f'"{name}"' for name in quoted) + "\n").encode()
