"""The job that erases an entity from tables: by format, version and kind, with everything that is derived from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets import service as datasets
from app.erasure import service as erasures
from app.erasure.service import ShownErasure
from app.platform.callers import Caller
from app.platform.tables import Dataset, Job
from tests.app.workbench import OWNER, Workbench, on_both

MARK = "marker-7f3a"
CALLER = Caller(owner=OWNER, scopes=frozenset({"train"}), name="dpo")


def rows_of(n: int = 200, *, marked: tuple[int, ...] = (3, 77), seed: int = 0) -> list[list[Any]]:
    """Rows of customer, two features, a word and a label; the marked ones belong to the entity."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, (x, z) in enumerate(rng.normal(size=(n, 2)).round(4).tolist()):
        customer = MARK if number in marked else f"c{seed}-{number // 2}"
        label = "yes" if x + rng.normal() * 0.5 > 0 else "no"
        rows.append([customer, x, z, "abc"[number % 3], label])
    return rows


NAMES = ["customer", "x", "z", "word", "left"]


def as_csv(rows: list[list[Any]]) -> str:
    return "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in rows), ""])


def request(
    bench: Workbench, entity: str = MARK, keys: tuple[str, ...] = ("customer",), **more: Any
) -> ShownErasure:
    with bench.db.write() as session:
        more = {"retire_models": False} | more
        return erasures.create(session, bench.settings, CALLER, entity, keys, **more)


def erase(bench: Workbench, *args: Any, **more: Any) -> tuple[ShownErasure, Job]:
    """Request an erasure and run its job, round by round."""
    made = request(bench, *args, **more)
    job = bench.work()
    while job.state == "queued":
        job = bench.work()
    return bench.db.reading(erasures.find, OWNER, made.erasure.id), job


def whole(bench: Workbench, dataset: Dataset) -> pa.Table:
    assert dataset.table_key is not None
    return pq.read_table(bench.fetch(dataset.table_key))


def all_datasets(bench: Workbench) -> list[Dataset]:
    with bench.db.read() as session:
        page = datasets.list_page(session, OWNER, limit=100, after=None)
        return [datasets.find(session, OWNER, each.id) for each in page.data]


def assert_no_blob_has(bench: Workbench, text: str) -> None:
    """Check the parsed Parquet files and the bytes of all blobs that a row names."""
    for dataset in all_datasets(bench):
        for key in (dataset.upload_key, dataset.table_key):
            path = Path(bench.fetch(key or ""))
            if path.read_bytes()[:4] == b"PAR1":
                assert text not in str(pq.read_table(path).to_pydict())
            assert text.encode() not in path.read_bytes()


@on_both
def test_rows_of_a_person_leave_a_table(bench: Workbench) -> None:
    rows = rows_of()
    old = bench.ready(as_csv(rows), label="left", drop="customer", name="people")
    found, job = erase(bench)
    assert job.state == "succeeded", job.error
    assert found.state == "settling"
    (new,) = all_datasets(bench)
    assert (new.id != old.id, new.version, new.rows) == (True, 1, 198)
    report = found.erasure.report
    assert report is not None
    assert report["datasets"] == [
        {"dataset_id": old.id, "name": "people", "version": 1, "rows": 2, "replaced_by": new.id}
    ]
    assert report["verified_at"] is not None and report["rounds"] == 2
    expected = bench.ready(
        as_csv([row for row in rows if row[0] != MARK]), label="left", drop="customer"
    )
    assert whole(bench, new).equals(whole(bench, expected))
    assert new.columns == expected.columns
    assert_no_blob_has(bench, MARK)
