"""Models in SQL: versions without gaps or clashes, and nobody sees another owner's."""

from __future__ import annotations

from typing import Any

import pytest
from queue_steps import at_once
from sqlalchemy.exc import IntegrityError

from app.models import repository as models
from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.tables import Model, ModelCurve, ModelMetrics

OWNER = "ann"


def values(**changes: Any) -> dict[str, Any]:
    """Return what a model's row needs."""
    given = {
        "id": new_id("mdl"),
        "owner": OWNER,
        "name": "churn",
        "job_id": new_id("job"),
        "dataset_id": new_id("ds"),
        "algorithm": "rankboost",
        "parameters": {"n_rounds": 10},
        "objective": {"metric": "auc"},
        "validation": {"method": "none"},
        "optimised_for": {"metric": "auc"},
        "selected_by": None,
        "features": [{"name": "a", "type": "numeric", "missing": False}],
        "label": "y",
        "positive": "1",
        "negative": "0",
        "seed": 0,
        "tags": {},
        "warnings": [],
        "fit_seconds": 0.1,
        "artifact_sha256": "00",
        "artifact_bytes": 1,
    }
    return given | changes


def insert(db: Database, **changes: Any) -> Model:
    """Add a model in a transaction of its own."""
    with db.write() as session:
        return models.insert(session, **values(**changes))


def test_versions_count_by_owner_and_name(db: Database) -> None:
    assert [insert(db).version for _ in range(3)] == [1, 2, 3]
    assert insert(db, name="fraud").version == 1
    assert insert(db, owner="bob").version == 1
    assert insert(db).version == 4


def test_the_version_of_a_deleted_model_is_never_given_again(db: Database) -> None:
    insert(db)
    second = insert(db)
    with db.write() as session:
        models.delete(session, OWNER, second.id)
    assert insert(db).version == 3


def test_transactions_that_end_at_once_take_their_turns(db: Database) -> None:
    """Each that is not the first must wait for the one before."""
    versions = at_once(*[lambda: insert(db).version] * 8)
    assert sorted(versions) == list(range(1, 9))


def test_one_model_a_job(db: Database) -> None:
    job_id = new_id("job")
    insert(db, job_id=job_id)
    with pytest.raises(IntegrityError):
        insert(db, job_id=job_id, name="other")


def test_a_failed_transaction_leaves_no_version_behind(db: Database) -> None:
    def fail() -> None:
        with db.write() as session:
            models.insert(session, **values())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert insert(db).version == 1


def test_reads_are_the_owners_own(db: Database) -> None:
    model = insert(db)
    with db.read() as session:
        for owner, found in ((OWNER, model.id), ("bob", None)):
            for row in (
                models.find(session, owner, model.id),
                models.find_version(session, owner, "churn", 1),
                models.find_latest(session, owner, "churn"),
            ):
                assert (row.id if row else None) == found
            page = models.list_page(session, owner, name=None, limit=10, after=None)
            assert [row.id for row in page.data] == ([found] if found else [])


def test_delete_takes_metrics_and_curves_along(db: Database) -> None:
    model = insert(db)
    with db.write() as session:
        session.add(
            ModelMetrics(
                model_id=model.id,
                part="train",
                auc=0.5,
                auc_low=0.4,
                auc_high=0.6,
                level=0.95,
                positives=1,
                negatives=1,
                positive_weight=1.0,
                negative_weight=1.0,
                positive_effective=1.0,
                negative_effective=1.0,
                ties=0.0,
            )
        )
        session.add(
            ModelCurve(model_id=model.id, part="train", points=0, fpr=b"", tpr=b"", thresholds=b"")
        )
    with db.write() as session:
        models.delete(session, "bob", model.id)
    with db.read() as session:
        assert models.find_metrics(session, model.id, "train") is not None
    with db.write() as session:
        models.delete(session, OWNER, model.id)
    with db.read() as session:
        assert models.find(session, OWNER, model.id) is None
        assert models.find_metrics(session, model.id, "train") is None
        assert models.find_curve(session, model.id, "train") is None
