"""People of every kind of column, and tables of them in every format that can be scored."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.app.live_service import Service

CSV, NDJSON = "text/csv", "application/x-ndjson"
ARROW, FILE = "application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file"
PARQUET = "application/vnd.apache.parquet"
FEATURES = ("age", "balance", "plan", "member", "since")
LABEL = "left"
# The dataset's fields about its values; the model's tables are read in the same way.
DIALECT = {"delimiter": "semicolon", "decimal": "comma", "missing": "NA,-999"}

Row = dict[str, Any]


def draw(rows: int, seed: int = 0) -> list[Row]:
    """Rows as JSON has them; each column has gaps but the first."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(rows):
        age, balance, flip = rng.normal(size=3).round(3).tolist()
        row: Row = {
            "age": age,
            "balance": None if k % 7 == 3 else balance,
            "plan": (None, "a,b", "two year", "x")[rng.integers(4)],
            "member": (None, True, False)[rng.integers(3)],
            "since": None if k % 11 == 5 else f"2024-0{k % 9 + 1}-15T12:30:00",
        }
        found.append(row | {LABEL: "yes" if age + flip / 2 > 0 else "no"})
    return found


def as_csv(rows: list[Row], names: tuple[str, ...] = FEATURES, *, comma: bool = True) -> bytes:
    """Return the rows as CSV with semicolons and decimal commas, like the dataset; missing numbers are -999."""

    def cell(name: str, value: Any) -> str:
        if value is None:
            return "-999" if name == "balance" else "na"
        if isinstance(value, bool):
            return str(value)
        return str(value).replace(".", ",") if isinstance(value, float) and comma else str(value)

    mark = ";" if comma else "|"
    lines = [mark.join(names)]
    lines += [mark.join(cell(name, row[name]) for name in names) for row in rows]
    return ("\r\n".join(lines) + "\r\n").encode()


def as_ndjson(rows: list[Row], names: tuple[str, ...] = FEATURES) -> bytes:
    return "".join(json.dumps({name: row[name] for name in names}) + "\n" for row in rows).encode()


def as_table(rows: list[Row], names: tuple[str, ...] = FEATURES) -> pa.Table:
    """Typed: dates are dates, words are a dictionary."""
    columns = {name: [row[name] for row in rows] for name in names}
    if "since" in columns:
        dates = [
            None if text is None else datetime.fromisoformat(text) for text in columns["since"]
        ]
        columns["since"] = pa.array(dates, pa.timestamp("us"))
    if "plan" in columns:
        columns["plan"] = pa.array(columns["plan"], pa.string()).dictionary_encode()
    return pa.table(columns)


def as_arrow(table: pa.Table, compression: str | None = None, *, file: bool = False) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    start = pa.ipc.new_file if file else pa.ipc.new_stream
    with start(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=40 if len(table) < 1000 else None)
    return sink.getvalue()


def as_parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def bodies(rows: list[Row]) -> dict[str, tuple[str, str | None, bytes]]:
    """The same rows in every way that POST score takes: name -> content type, encoding, bytes."""
    table = as_table(rows)
    csv, text = as_csv(rows), as_csv(rows, FEATURES[::-1])
    stream, file = as_arrow(table), as_arrow(table, "lz4", file=True)
    zstd = pa.compress(csv, "zstd", asbytes=True)
    return {
        "csv": (CSV, None, csv),
        "csv, columns the other way round, UTF-16": (
            f"{CSV}; charset=utf-16",
            None,
            text.decode().encode("utf-16"),
        ),
        "csv, gzip": (CSV, "gzip", gzip.compress(csv)),
        "csv, zstd": (CSV, "zstd", zstd),
        "ndjson": (NDJSON, None, as_ndjson(rows)),
        "arrow stream": (ARROW, None, stream),
        "arrow stream, compressed buffers": (ARROW, None, as_arrow(table, "zstd")),
        "arrow stream, gzip": (ARROW, "gzip", gzip.compress(stream)),
        "arrow file": (FILE, None, file),
    }


def headers(content_type: str, encoding: str | None = None, **more: str) -> dict[str, str]:
    found = {"Content-Type": content_type, **more}
    return found if encoding is None else found | {"Content-Encoding": encoding}


@contextmanager
def answering(service: Service) -> Iterator[str]:
    """Train a model of these people in a service; return its id."""
    client = service.client(service.key())
    names = (*FEATURES, LABEL)
    text = as_csv(draw(160), names).decode()
    dataset_id = service.upload(client, text, label=LABEL, categorical="plan", **DIALECT)
    assert client.get(f"/v1/datasets/{dataset_id}").json()["status"] == "ready"
    yield service.train(client, dataset_id)["output"]["id"]
