"""Making versions of a dataset in tests, without any server."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.datasets import service as datasets
from app.datasets.description import describe_version
from app.platform.tables import Dataset
from tests.app.workbench import OWNER, Workbench

PARQUET = "application/vnd.apache.parquet"
HEAD = "age,vip,since,town,zip,note,left,who"
FIRST = f"""{HEAD}
31,true,2026-01-01,Ulm,007,x,yes,a
?,false,2026-01-02T12:00Z,Bonn,7,y,no,b
40.5,,,,,z,no,a
"""
GIVEN = {"label": "left", "group": "who", "categorical": "zip", "drop": "note"}
MORE = """left,zip,since,town,vip,age,who
yes,12,2026-02-01,Köln,false,22,c
no,007,?,Ulm,true,,b
"""


def make(
    bench: Workbench,
    parent: str,
    body: str | bytes,
    *,
    content_type: str = "text/csv",
    **given: str,
) -> Dataset:
    """Accept a version as the API does; its job is queued."""
    upload = bench.received(body, content_type)
    with bench.db.write() as session:
        new = describe_version(given)
        return datasets.accept_version(session, bench.settings, OWNER, parent, new, upload)


def made(bench: Workbench, parent: str, body: str | bytes, **given: Any) -> Dataset:
    """Accept a version and read it."""
    version = make(bench, parent, body, **given)
    job = bench.work()
    assert job.state == "succeeded", job.error
    return bench.db.reading(datasets.find, OWNER, version.id)


def fault(bench: Workbench, parent: str, body: str | bytes, **given: Any) -> str:
    """Return the errors of an invalid version."""
    version = make(bench, parent, body, **given)
    job = bench.work()
    assert bench.db.reading(datasets.find, OWNER, version.id).status == "invalid"
    detail: str = job.error["detail"]
    return detail


def data(bench: Workbench, dataset: Dataset) -> list[dict[str, Any]]:
    """The rows of a dataset."""
    shown = datasets.preview(bench.fetch, bench.db.reading(datasets.find, OWNER, dataset.id), 100)
    return [dict(zip(shown["columns"], row, strict=True)) for row in shown["data"]]


def as_parquet(**columns: Any) -> bytes:
    """A table as Parquet."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()
