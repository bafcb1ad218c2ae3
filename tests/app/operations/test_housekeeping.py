"""Rows that have outlived their use go, a few at a time; what something still needs stays."""

from __future__ import annotations

import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text, update

from app.access import service
from app.access import service as keys
from app.http import repository as idempotency_rows
from app.jobs import child_jobs as parts
from app.jobs import repository as worker_rows
from app.jobs import service as jobs
from app.jobs.repository import insert_output
from app.models import aliases
from app.operations import housekeeping, seal_repository
from app.operations import repository as housekeeping_rows
from app.operations.housekeeping import Housekeeper
from app.platform import audit as audit_rows
from app.platform.audit_keys import AuditKeys
from app.platform.blobs import BlobStore, FolderStore
from app.platform.database import Database
from app.platform.errors import NotFound
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.tables import (
    AuditEntry,
    Dataset,
    DatasetName,
    DatasetPairs,
    DatasetStatus,
    Evaluation,
    Idempotency,
    Job,
    JobEvent,
    Model,
    ModelAliasHistory,
    Worker,
)
from tests.app.queue_steps import (
    OWNER,
    add_dataset,
    add_model,
    change,
    claimed,
    find_dataset,
    finish,
    seen,
    submit,
)

SETTINGS = Settings(keep_events_days=7, keep_jobs_days=30)
LONG_AGO = 1.5  # a time of the database's clock


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return FolderStore(tmp_path / "blobs")


def tidy(db: Database, blobs: BlobStore, **settings: Any) -> Counter[str]:
    """One round of a new housekeeper."""
    given = SETTINGS.model_dump() | settings
    return Housekeeper(db, blobs, Settings(**given), threading.Event()).round()


def ended(db: Database, *, finished_at: float | None = LONG_AGO, **values: Any) -> str:
    """A job that was cancelled; it did so long ago, unless it is said to have done so now."""
    job_id = submit(db, **values).id
    db.writing(jobs.cancel, OWNER, job_id)
    if finished_at is not None:
        change(db, job_id, finished_at=finished_at)
    return job_id


def ids(db: Database) -> set[str]:
    with db.read() as session:
        return set(session.scalars(select(Job.id)))


def test_jobs_that_nothing_needs_go_and_the_others_stay(db: Database, blobs: BlobStore) -> None:
    gone, young = ended(db), ended(db, finished_at=None)
    queued = submit(db).id
    running = claimed(db).job_id
    of_model, of_dataset, of_evaluation, of_pairs = (ended(db) for _ in range(4))
    add_model(db, job_id=of_model)
    dataset = add_dataset(db, of_dataset, status=DatasetStatus.INVALID)
    change(db, of_dataset, dataset_id=dataset.id)
    with db.write() as session:
        insert_output(
            session,
            Evaluation,
            id=new_id("evl"),
            owner=OWNER,
            job_id=of_evaluation,
            model_id="mdl",
            model_name="churn",
            model_version=1,
            kind="bipartite",
            dataset_id="ds",
            dataset_name="table",
            windows=[],
            level=0.95,
            warnings=[],
        )
        session.add(
            DatasetPairs(  # which came along from an earlier version, that was deleted
                id=dataset.id,
                status=DatasetStatus.READY,
                job_id=of_pairs,
                content_type="text/csv",
                upload_key="uploads/cd/" + "cd" * 32,
                bytes=1,
                sha256="cd" * 32,
                errors=[],
                created_at=LONG_AGO,
            )
        )
    others = {young, queued, running, of_model, of_dataset, of_evaluation, of_pairs}
    assert ids(db) == {gone} | others
    assert tidy(db, blobs)["jobs"] == 1
    assert ids(db) == others
    with pytest.raises(NotFound):
        db.reading(jobs.find, OWNER, gone)
    with db.read() as session:
        assert not session.scalar(select(func.count()).where(JobEvent.job_id == gone))
    assert not tidy(db, blobs)
    with db.write() as session:  # what needed it has gone
        session.delete(session.scalars(select(Model)).one())
    assert tidy(db, blobs) == {"jobs": 1}
    assert of_model not in ids(db)


def test_a_job_that_went_stays_counted(db: Database, blobs: BlobStore) -> None:
    for values in ({}, {}, {"kind": "evaluate"}, {"finished_at": None}):
        ended(db, **values)
    submit(db)
    finish(db, claimed(db))
    submit(db)
    counts = {("evaluate", "cancelled"): 1, ("train", "cancelled"): 3, ("train", "succeeded"): 1}
    with db.read() as session:
        assert housekeeping_rows.ended_counts(session) == counts
    for _ in range(2):
        tidy(db, blobs)
        with db.read() as session:
            assert housekeeping_rows.ended_counts(session) == counts
    assert len(ids(db)) == 3
    ended(db)
    tidy(db, blobs)
    with db.read() as session:
        assert housekeeping_rows.ended_counts(session) == counts | {("train", "cancelled"): 4}


def test_parts_go_before_their_job(db: Database, blobs: BlobStore) -> None:
    job = submit(db)
    db.writing(parts.fan_out, claimed(db), {"stage": 1, "parts": [{"n": n} for n in range(3)]})
    db.writing(jobs.cancel, OWNER, job.id)
    assert tidy(db, blobs) == {}
    change(db, job.id, finished_at=LONG_AGO)
    removed = tidy(db, blobs)
    assert (removed["parts of jobs"], removed["jobs"]) == (3, 1)
    assert ids(db) == set()


def test_of_a_jobs_events_the_last_one_stays(
    db: Database, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    old = [submit(db).id for _ in range(3)]
    for _ in old:
        finish(db, claimed(db), messages=["one", "two"])
    for n, job_id in enumerate(old):
        change(db, job_id, finished_at=LONG_AGO + n)
    young = submit(db).id
    finish(db, claimed(db))
    keeper = Housekeeper(
        db, blobs, Settings(keep_events_days=7, keep_jobs_days=36500), threading.Event()
    )
    assert keeper.round() == {"events": 12}
    assert [seen(db, job_id) for job_id in old] == [[(5, "state", "succeeded")]] * 3
    assert [seq for seq, *_ in seen(db, young)] == [1, 2, 3]
    change(db, young, finished_at=LONG_AGO + 9)
    assert keeper.round() == {"events": 2}
    assert db.reading(jobs.find, OWNER, young).state == "succeeded"


def test_a_round_that_is_told_to_stop_goes_on_the_next_time(
    db: Database, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    for _ in range(5):
        ended(db)
    stop = threading.Event()
    stop.set()
    keeper = Housekeeper(db, blobs, SETTINGS, stop)
    assert keeper.round()["jobs"] == 2
    stop.clear()
    assert keeper.round()["jobs"] == 3


def test_rows_that_nobody_needs_go_too(db: Database, blobs: BlobStore) -> None:
    with db.write() as session:
        idempotency_rows.reserve(session, OWNER, "r", "old", "f")
        session.scalars(select(Idempotency)).one().created_at = LONG_AGO
        idempotency_rows.reserve(session, OWNER, "r", "new", "f")
        for id_ in ("wrk_old", "wrk_new"):
            worker_rows.register(session, id_, host="h", version="1", slots=1)
        session.get_one(Worker, "wrk_old").seen_at = LONG_AGO
    assert tidy(db, blobs) == {"remembered answers": 1, "workers": 1}
    with db.read() as session:
        assert session.scalars(select(Idempotency.key)).all() == ["new"]
        assert session.scalars(select(Worker.id)).all() == ["wrk_new"]


def test_the_audit_log_is_kept_for_so_many_days(db: Database, blobs: BlobStore) -> None:
    for name in ("old", "new"):
        with service.by_command(OWNER, f"make {name}"):
            db.writing(keys.create, OWNER, name, ["read"])
    with db.write() as session:
        first = AuditEntry.action == "make old"
        session.execute(update(AuditEntry).where(first).values(created_at=LONG_AGO))
    assert db.writing(seal_repository.seal_some, AuditKeys()) == 2
    assert tidy(db, blobs) == {"audit entries": 1}
    with db.read() as session:
        page = audit_rows.list_page(session, OWNER, limit=10, after=None)
    assert [entry.action for entry in page.data] == ["make new"]


def test_the_history_of_aliases_that_are_gone_goes(db: Database, blobs: BlobStore) -> None:
    model = add_model(db)
    for alias in ("there", "gone", "gone-lately"):
        db.writing(aliases.set_alias, OWNER, model.name, alias, model.id, if_revision=None)
    for alias in ("gone", "gone-lately"):
        db.writing(aliases.remove_alias, OWNER, model.name, alias, if_revision=1)
    with db.write() as session:
        old = ModelAliasHistory.alias != "gone-lately"
        session.execute(update(ModelAliasHistory).where(old).values(at=LONG_AGO))
    assert tidy(db, blobs, keep_audit_days=None) == {}
    assert tidy(db, blobs) == {"history of aliases": 2}  # that it was made, and that it was deleted
    with db.read() as session:
        left = session.scalars(select(ModelAliasHistory.alias)).all()
    assert sorted(left) == ["gone-lately", "gone-lately", "there"]


def test_datasets_go_only_where_that_is_asked_for(db: Database, blobs: BlobStore) -> None:
    invalid = add_dataset(db, status=DatasetStatus.INVALID).id
    unused, trained_on, busy, lately, evaluated_by = (
        add_dataset(db, status=DatasetStatus.READY).id for _ in range(5)
    )
    retried = add_dataset(db, status=DatasetStatus.INVALID).id
    young = add_dataset(db, status=DatasetStatus.INVALID, created_at=4e9).id
    add_model(db, dataset_id=trained_on)
    submit(db, dataset_id=busy)
    ended(db, dataset_id=lately, finished_at=None)
    ended(db, dataset_id=retried, finished_at=None)
    ended(db, spec={"validation": {"dataset_id": evaluated_by}}, finished_at=None)
    assert not tidy(db, blobs)
    assert tidy(db, blobs, keep_invalid_datasets_days=1) == {"invalid datasets": 1}
    assert tidy(db, blobs, keep_unused_datasets_days=1) == {"unused datasets": 1}
    with db.read() as session:
        assert set(session.scalars(select(Dataset.id))) == {
            *(trained_on, busy, lately, evaluated_by, retried, young)
        }
        log = audit_rows.list_page(session, OWNER, limit=10, after=None)
    assert [entry.action for entry in log.data] == ["housekeeping"] * 2
    assert find_dataset(db, busy).id not in {invalid, unused}


def test_a_dataset_is_found_unused_without_reading_whole_tables(db: Database) -> None:
    """Each table that may name the dataset is searched by an index; only the page of datasets is read in order."""
    found = select(Dataset.id).where(Dataset.id > "", *housekeeping_rows.is_unused(60.0))
    with db.write() as session:
        explain = "EXPLAIN QUERY PLAN "
        if session.get_bind().dialect.name == "postgresql":
            explain = "EXPLAIN "
            # The tables are empty: whether an index could be used, and not whether it is cheaper now. PostgreSQL knows
            # that they are empty once autovacuum has passed, and then finds a whole index as cheap as a part of it.
            unknown = "UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE relnamespace = 'public'::regnamespace"
            session.execute(text(unknown))
            for method in ("seqscan", "hashjoin", "mergejoin", "bitmapscan"):
                session.execute(text(f"SET LOCAL enable_{method} = off"))
        statement = found.order_by(Dataset.id).limit(500)
        compiled = statement.compile(session.get_bind(), compile_kwargs={"literal_binds": True})
        rows = session.connection().exec_driver_sql(explain + str(compiled))
        plan = [str(row[-1]) for row in rows]
    assert not [line for line in plan if line.startswith("SCAN ") or "Seq Scan" in line], plan
    if (
        explain == "EXPLAIN "
    ):  # an index read from end to end has no condition; that of one dataset may be
        searched = [
            after
            for line, after in pairwise(plan)
            if " using ix_" in line and "ix_datasets" not in line
        ]
        assert len(searched) > 5
        assert all("Index Cond:" in line for line in searched), plan


def test_a_name_that_no_dataset_has_any_more_goes(db: Database, blobs: BlobStore) -> None:
    kept = add_dataset(db, status=DatasetStatus.READY).name
    with db.write() as session:
        for owner, name in ((OWNER, kept), (OWNER, "gone"), ("another", kept)):
            session.add(DatasetName(owner=owner, name=name, last_version=2))
    assert tidy(db, blobs) == {"names of datasets": 2}
    with db.read() as session:
        left = session.execute(select(DatasetName.owner, DatasetName.name)).all()
    assert [tuple(each) for each in left] == [(OWNER, kept)]


def test_a_dataset_that_is_used_meanwhile_stays(
    db: Database, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    unused = add_dataset(db, status=DatasetStatus.READY).id
    find = housekeeping_rows.find_datasets

    def find_and_dawdle(*asked: Any) -> Any:
        found = find(*asked)
        if found:
            ended(db, dataset_id=unused, finished_at=None)
        return found

    monkeypatch.setattr(housekeeping_rows, "find_datasets", find_and_dawdle)
    assert not tidy(db, blobs, keep_unused_datasets_days=1)
    assert find_dataset(db, unused)
