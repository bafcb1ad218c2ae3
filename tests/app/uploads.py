"""Read bytes as an upload, without a server."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.ingest.build import ingest
from app.platform import catalogue
from app.platform.blobs import Blob, BlobStore
from app.platform.database import Database

LIMITS = {
    "rows": 1_000_000,
    "columns": 2_000,
    "bytes": 1 << 30,
    "categories": 10_000,
    "category_length": 255,
}


PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"


def put(blobs: BlobStore, kind: str, content: bytes, db: Database | None = None) -> Blob:
    """Store a blob, with an entry in the catalogue of a database if one is given."""
    blob = blobs.put(kind, io.BytesIO(content))
    if db is not None:
        db.writing(catalogue.add, [blob])
    return blob


def halves(table: pa.Table, content_type: str) -> bytes:
    """Serialise a table in two batches."""
    sink = io.BytesIO()
    half = -(-table.num_rows // 2)
    if content_type == PARQUET:
        pq.write_table(table, sink, row_group_size=half)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=half)
    return sink.getvalue()


@dataclass
class Ready:
    """The outcome of an upload: the result and the typed table."""

    result: dict[str, Any]
    columns: dict[str, list[Any]]

    def column(self, name: str) -> dict[str, Any]:
        """Return a column's profile."""
        return next(column for column in self.result["columns"] if column["name"] == name)


def read(
    folder: Path,
    body: bytes | str,
    content_type: str = "text/csv",
    *,
    encoding: str | None = None,
    kind: str = "bipartite",
    label: str | None = None,
    labels: list[str] | None = None,
    positive: str | None = None,
    weight: str | None = None,
    group: str | None = None,
    query: str | None = None,
    item: str | None = None,
    categorical: list[str] | None = None,
    numeric: list[str] | None = None,
    drop: list[str] | None = None,
    protected: list[str] | None = None,
    missing: list[str] | None = None,
    strict: bool = False,
    dialect: dict[str, str] | None = None,
    **limits: int,
) -> Ready:
    """Ingest a body; raises BadTable as a worker would see it. NaN in the table reads None here."""
    path = folder / "upload"
    path.write_bytes(body.encode() if isinstance(body, str) else body)
    workdir = folder / "work"
    workdir.mkdir(exist_ok=True)
    payload = {
        "path": str(path),
        "content_type": content_type,
        "content_encoding": encoding,
        "dataset_kind": kind,
        "label": label,
        "labels": labels,
        "positive": positive,
        "item": item,
        "weight": weight,
        "group": group,
        "query": query,
        "categorical": categorical,
        "numeric": numeric,
        "drop": drop,
        "protected": protected,
        "missing": missing,
        "strict": strict,
        "dialect": dialect,
        "workdir": str(workdir),
        "limits": LIMITS | limits,
    }
    result = ingest(payload, lambda step, of, info: None)
    table = pq.read_table(workdir / result["file"])
    columns = {
        name: [
            None if isinstance(v, float) and np.isnan(v) else v
            for v in table.column(name).to_pylist()
        ]
        for name in table.column_names
    }
    return Ready(result, columns)
