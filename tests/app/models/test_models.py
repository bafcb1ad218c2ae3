"""Models in SQL: versions without gaps or clashes, nobody sees another owner's, and aliases that one caller moves."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from app.models import aliases, included, repository
from app.platform.database import Database
from app.platform.errors import NotFound, PreconditionFailed, PreconditionRequired
from app.platform.ids import new_id
from app.platform.tables import Measurement, ModelAliasHistory
from app.trash import service as trash
from tests.app.queue_steps import OWNER, add_model, at_once, model_values


def test_versions_count_by_owner_and_name(db: Database) -> None:
    assert [add_model(db).version for _ in range(3)] == [1, 2, 3]
    assert add_model(db, name="fraud").version == 1
    assert add_model(db, owner="bob").version == 1
    assert add_model(db).version == 4


def test_the_version_of_a_deleted_model_is_never_given_again(db: Database) -> None:
    add_model(db)
    second = add_model(db)
    with db.write() as session:
        repository.trash(session, OWNER, second.id)
        trash.delete(session, OWNER, second.id)
    assert add_model(db).version == 3


def test_transactions_that_end_at_once_take_their_turns(db: Database) -> None:
    """Each that is not the first must wait for the one before."""
    versions = at_once(*[lambda: add_model(db).version] * 8)
    assert sorted(versions) == list(range(1, 9))


def test_one_model_a_job(db: Database) -> None:
    job_id = new_id("job")
    add_model(db, job_id=job_id)
    with pytest.raises(IntegrityError):
        add_model(db, job_id=job_id, name="other")


def test_a_failed_transaction_leaves_no_version_behind(db: Database) -> None:
    def fail() -> None:
        with db.write() as session:
            repository.insert(session, **model_values())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert add_model(db).version == 1


def test_reads_are_the_owners_own(db: Database) -> None:
    model = add_model(db)
    with db.read() as session:
        for owner, found in ((OWNER, model.id), ("bob", None)):
            for row in (
                repository.find(session, owner, model.id),
                repository.find_version(session, owner, "churn", 1),
                repository.find_latest(session, owner, "churn"),
            ):
                assert (row.id if row else None) == found
            page = repository.list_page(session, owner, name=None, limit=10, after=None)
            assert [row.id for row in page.data] == ([found] if found else [])


def test_delete_takes_metrics_and_curves_along(db: Database) -> None:
    model = add_model(db)
    with db.write() as session:
        session.add(
            Measurement(
                id=Measurement.id_of(model.id, "train"),
                model_id=model.id,
                part="train",
                metrics={"auc": {"value": 0.5, "low": 0.4, "high": 0.6}},
                points=0,
                fpr=b"",
                tpr=b"",
                thresholds=b"",
            )
        )
    with db.write() as session:
        repository.trash(session, "bob", model.id)
    with db.read() as session:
        assert repository.find_metrics(session, model.id, "train") is not None
    with db.write() as session:
        repository.trash(session, OWNER, model.id)
        trash.delete(session, OWNER, model.id)
    with db.read() as session:
        assert repository.find(session, OWNER, model.id) is None
        assert repository.find_metrics(session, model.id, "train") is None
        assert repository.find_curve(session, model.id, "train") is None


# --- references and aliases ------------------------------------------------------------------------


@pytest.fixture
def ids(db: Database) -> list[str]:
    """Three versions of `churn`."""
    return [add_model(db).id for _ in range(3)]


def move(db: Database, model_id: str, revision: int | None, alias: str = "live") -> int:
    state, _ = db.writing(aliases.set_alias, OWNER, "churn", alias, model_id, if_revision=revision)
    return state.alias.revision


NOTHING = [
    *("", "churn:", "churn@", "churn:0", "churn:4", "churn:01", "churn:9999999999"),
    *("churn@live:1", "Churn", "mdl_x", "\0"),
]


def test_what_refers_to_nothing(db: Database, ids: list[str]) -> None:
    for owner, ref in [*((OWNER, ref) for ref in NOTHING), ("bob", "churn")]:
        with pytest.raises(NotFound):
            db.reading(included.get, owner, ref)


def test_of_many_movers_one_wins(db: Database, ids: list[str]) -> None:
    move(db, ids[0], None)
    moves = [functools.partial(move, db, model_id, 1) for model_id in ids * 2]
    assert Counter(map(type, at_once(*moves))) == {int: 1, PreconditionFailed: 5}
    assert len(db.reading(aliases.get_alias, OWNER, "churn", "live").history) == 2


def test_of_many_makers_one_wins(db: Database, ids: list[str]) -> None:
    makes = [functools.partial(move, db, model_id, None, "new") for model_id in ids * 2]
    assert Counter(map(type, at_once(*makes))) == {int: 1, PreconditionRequired: 5}
    assert db.reading(aliases.get_alias, OWNER, "churn", "new").alias.revision == 1


def test_of_an_alias_that_moves_often_the_newest_revisions_stay(
    db: Database, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aliases, "HISTORY_SHOWN", 3)
    for revision in (None, 1, 2, 3, 4):
        move(db, ids[(revision or 0) % 2], revision)
    with db.read() as session:
        kept = session.scalars(select(ModelAliasHistory.revision)).all()
    assert sorted(kept) == [3, 4, 5]
    db.writing(aliases.remove_alias, OWNER, "churn", "live", if_revision=5)
    move(db, ids[0], None)  # the deletion was revision 6
    state = db.reading(aliases.get_alias, OWNER, "churn", "live")
    assert state.alias.revision == 7
    assert [each.revision for each in state.history] == [7, 6, 5]
