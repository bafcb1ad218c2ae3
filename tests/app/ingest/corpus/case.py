"""A case of the corpus: a file, the fields sent with it, the rule that it tests, and the expected outcome."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.ingest.errors import BadTable
from app.ingest.formats import ARROW, ARROW_FILE, CSV, NDJSON, PARQUET
from app.ingest.pairs import ingest_pairs
from tests.app.uploads import LIMITS, read

TYPED = (PARQUET, ARROW, ARROW_FILE)
SHORT = {CSV: "csv", NDJSON: "ndjson", PARQUET: "parquet", ARROW: "stream", ARROW_FILE: "file"}
ITEMS = ["a", "b", "c", "é", "7"]
"""The items that lists of pairs are about."""


@dataclass(frozen=True)
class Table:
    """The table is read: these columns hold exactly this, None where a value is missing."""

    columns: Mapping[str, Sequence[Any]]
    types: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    """Members of the result, such as which label value is positive."""


@dataclass(frozen=True)
class Refused:
    """The table is refused; of the errors told, the first is this one."""

    detail: str
    line: int | None = None
    column: str | None = None
    code: str = "invalid_table"
    total: int = 1


@dataclass(frozen=True)
class Case:
    """One file. `said` are the arguments of `uploads.read`; for a list of pairs, of `read_pairs`.

    What is refused is so by a strict caller: with others rare values that do not fit their column pass as missing.
    """

    name: str
    rule: str
    body: bytes
    expected: Table | Refused
    content_type: str = CSV
    said: Mapping[str, Any] = field(default_factory=dict)
    pairs: bool = False
    beside: bytes | None = None
    """The nearest file that is read."""

    def check(self, folder: Path) -> None:
        """Read the file; raises AssertionError, or what else went wrong, unless the outcome is the expected one."""
        try:
            found = self.read(folder, self.body)
        except BadTable as refusal:
            _check_refusal(refusal, self.expected)
            return
        assert isinstance(self.expected, Table), f"read, and not refused: {found}"
        assert not [*(folder / "work").glob("plain-*")], "what was decompressed is left"
        if self.pairs:
            assert found == self.expected.columns
        else:
            _check_table(found, self.expected)

    def read(self, folder: Path, body: bytes) -> Any:
        """Read a body as this case's; raises BadTable."""
        if self.pairs:
            return read_pairs(folder, body, self.content_type, **self.said)
        strict = {"strict": isinstance(self.expected, Refused)}
        return read(folder, body, self.content_type, **strict | dict(self.said))


def _check_refusal(refusal: BadTable, expected: Table | Refused) -> None:
    assert isinstance(expected, Refused), refusal.detail
    first = refusal.errors[0]
    told = (refusal.code, first.get("line"), first.get("column"), refusal.total)
    assert told == (expected.code, expected.line, expected.column, expected.total), refusal.detail
    assert expected.detail in first["detail"]
    assert len(refusal.detail) < 4_000
    assert len(first["detail"]) < 4_000


def _check_table(found: Any, expected: Table) -> None:
    assert expected.columns.keys() <= found.columns.keys()
    columns = {name: found.columns[name] for name in expected.columns}
    assert _bits(columns) == _bits(expected.columns)
    assert {name: found.column(name)["type"] for name in expected.types} == expected.types
    assert {name: found.column(name)["role"] for name in expected.roles} == expected.roles
    assert {name: found.result[name] for name in expected.result} == expected.result
    rows = {len(values) for values in expected.columns.values()}
    assert rows in ({found.result["rows"]}, set())


def _bits(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
    """Values in writing: −0.0 equals 0.0, but is not the same."""
    return {name: [repr(value) for value in values] for name, values in columns.items()}


def read_pairs(folder: Path, body: bytes, content_type: str, **limits: Any) -> dict[str, list[Any]]:
    """Read a list of pairs of `ITEMS`; returns its columns, which name items by their rows."""
    items, workdir = folder / "items.parquet", folder / "work"
    workdir.mkdir(exist_ok=True)
    pq.write_table(pa.table({"item": ITEMS}), items)
    (folder / "upload").write_bytes(body)
    payload = {
        "path": str(folder / "upload"),
        "content_type": content_type,
        "content_encoding": limits.pop("encoding", None),
        "items": {"path": str(items), "column": "item"},
        "workdir": str(workdir),
        "limits": LIMITS | limits,
    }
    found = ingest_pairs(payload, lambda step, of, info: None)
    columns: dict[str, list[Any]] = pq.read_table(workdir / found["file"]).to_pydict()
    return columns


def column_of(cells: Sequence[str], delimiter: str = ",", end: str = "\n") -> bytes:
    """Write a CSV of one feature `a`, cells as they stand, beside labels 0 and 1 in turn."""
    lines = [f"a{delimiter}y", *(f"{cell}{delimiter}{i % 2}" for i, cell in enumerate(cells))]
    return end.join([*lines, ""]).encode()


def typed_body(table: pa.Table, content_type: str, **options: Any) -> bytes:
    """Serialise a table as Parquet or Arrow."""
    sink = io.BytesIO()
    if content_type == PARQUET:
        pq.write_table(table, sink, **options)
    else:
        new = pa.ipc.new_file if content_type == ARROW_FILE else pa.ipc.new_stream
        with new(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def typed_column(array: pa.Array, content_type: str) -> bytes:
    """Serialise one feature `a` beside labels 0 and 1 in turn."""
    labels = pa.array([i % 2 for i in range(len(array))], pa.int64())
    return typed_body(pa.table({"a": array, "y": labels}), content_type)
