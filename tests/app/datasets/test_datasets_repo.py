"""Datasets in SQL: from processing to ready once, and only for their owner."""

from __future__ import annotations

from typing import Any

from app.datasets import repository as datasets
from app.datasets.fields import TableFields
from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.tables import Dataset, DatasetStatus

OWNER = "ann"
JOB = new_id("job")
FOUND: dict[str, Any] = {
    "table_key": "tables/ab/abcd",
    "rows": 3,
    "positives": 1,
    "negatives": 2,
    "label": "y",
    "positive": "1",
    "negative": "0",
    "columns": [{"name": "a", "role": "feature"}],
}


def insert(db: Database, owner: str = OWNER) -> Dataset:
    """Add a dataset as an upload does."""
    with db.write() as session:
        return datasets.insert_dataset(
            session,
            id=new_id("ds"),
            owner=owner,
            name="churn",
            kind="bipartite",
            job_id=JOB,
            content_type="text/csv",
            upload_key="uploads/00/00",
            bytes=1,
            sha256="00",
            reading=TableFields().reading(),
        )


def test_ready_once(db: Database) -> None:
    dataset = insert(db)
    assert (dataset.status, dataset.columns, dataset.rows) == (DatasetStatus.PROCESSING, [], None)
    with db.write() as session:
        assert datasets.mark_ready(session, Dataset, OWNER, dataset.id, JOB, FOUND)
    with db.read() as session:
        found = datasets.find(session, OWNER, dataset.id)
    assert found.status == DatasetStatus.READY
    assert {name: getattr(found, name) for name in FOUND} == FOUND
    with db.write() as session:
        assert not datasets.mark_ready(
            session, Dataset, OWNER, dataset.id, JOB, FOUND | {"rows": 99}
        )
    with db.read() as session:
        assert session.get_one(Dataset, dataset.id).rows == 3


def test_only_the_owners_own(db: Database) -> None:
    dataset = insert(db)
    with db.write() as session:
        assert not datasets.mark_ready(session, Dataset, "bob", dataset.id, JOB, FOUND)
        assert not datasets.mark_ready(
            session, Dataset, OWNER, dataset.id, "job_" + "1" * 32, FOUND
        )
        assert not datasets.mark_ready(session, Dataset, OWNER, new_id("ds"), JOB, FOUND)
        datasets.delete_dataset(session, "bob", dataset.id)
    with db.read() as session:
        assert datasets.find(session, "bob", dataset.id) is None
        assert datasets.list_page(session, "bob", limit=10, after=None).data == []
        assert datasets.find(session, OWNER, dataset.id) is not None
