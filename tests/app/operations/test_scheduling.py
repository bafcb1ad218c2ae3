"""Runs of schedules: one for each due time, whatever dies and whoever works at once; as who created the schedule."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import load_only

from app.access import service as keys
from app.operations.scheduling import LOOK_SECONDS, Scheduler
from app.platform import failpoints
from app.platform.blobs import BlobStore, FolderStore
from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import db_now, read_clock
from app.platform.tables import (
    ApiKey,
    AuditEntry,
    Dataset,
    DatasetStatus,
    Job,
    JobState,
    Principal,
    Schedule,
)
from app.schedules import due_repository
from tests.app.queue_steps import OWNER, add_dataset
from tests.waiting import eventually

ISSUER = "https://login.example"
SOURCE = {"kind": "object", "connection": "exports", "url": "s3://exports/people.csv"}


@pytest.fixture
def connections(tmp_path: Path) -> Path:
    file = tmp_path / "connections.json"
    store = {"driver": "s3", "owners": [OWNER], "prefix": "s3://exports"}
    file.write_text(json.dumps({"exports": store}))
    return file


@pytest.fixture
def roles(tmp_path: Path) -> Path:
    file = tmp_path / "roles.json"
    rule = {"issuer": ISSUER, "group": "ds", "owner": OWNER, "role": "trainer"}
    file.write_text(json.dumps([rule]))
    return file


@pytest.fixture
def settings(connections: Path, roles: Path) -> Settings:
    return Settings(connections_file=connections, roles_file=roles)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return FolderStore(tmp_path / "blobs")


@pytest.fixture
def scheduler(db: Database, blobs: BlobStore, settings: Settings) -> Scheduler:
    return Scheduler(db, blobs, settings)


def key(db: Database, *scopes: str) -> ApiKey:
    return db.writing(keys.create, OWNER, "nightly", scopes or ("train",))[0]


def sourced(db: Database, **values: Any) -> str:
    more = {"status": DatasetStatus.READY, "source": SOURCE, "name": new_id("ds")} | values
    return add_dataset(db, new_id("job"), **more).id


def schedule(
    db: Database, principal_id: str | None = None, *, late: float = 1.0, **values: Any
) -> str:
    """Write the row of a schedule that has been due for so many seconds."""
    row = {
        "id": new_id("sch"),
        "owner": OWNER,
        "dataset_id": values.pop("dataset_id", None) or sourced(db),
        "cron": "*/5 * * * *",
        "principal_id": principal_id or key(db).principal_id,
        "author": "nightly",
        "created_at": 1.5,
    } | values
    with db.write() as session:
        session.add(Schedule(**row))
        session.flush()
        session.execute(
            update(Schedule).where(Schedule.id == row["id"]).values(due_at=db_now() - late)
        )
    return str(row["id"])


def make_due(db: Database, schedule_id: str) -> None:
    with db.write() as session:
        session.execute(
            update(Schedule).where(Schedule.id == schedule_id).values(due_at=db_now() - 1)
        )


def found(db: Database, schedule_id: str) -> Schedule:
    with db.read() as session:
        return session.get_one(Schedule, schedule_id)


def now(db: Database) -> float:
    return db.reading(read_clock)


def refreshes(db: Database, dataset_id: str | None = None) -> Sequence[Dataset]:
    with db.read() as session:
        statement = select(Dataset).where(Dataset.refresh_of.is_not(None))
        if dataset_id is not None:
            statement = statement.where(Dataset.refresh_of == dataset_id)
        return session.scalars(statement.options(load_only(Dataset.id, Dataset.job_id))).all()


def end(db: Database, schedule_id: str, state: JobState) -> None:
    """End the last job of a schedule."""
    row = found(db, schedule_id)
    with db.write() as session:
        session.execute(update(Job).where(Job.id == row.last_job_id).values(state=state))
        if state == JobState.SUCCEEDED:
            session.execute(
                update(Dataset)
                .where(Dataset.id == row.last_dataset_id)
                .values(status=DatasetStatus.READY)
            )


def code(row: Schedule) -> str | None:
    return None if row.last_error is None else str(row.last_error["code"])


def test_a_due_schedule_queues_a_refresh_and_sets_the_next_time(
    db: Database, scheduler: Scheduler
) -> None:
    id_ = schedule(db)
    before = found(db, id_)
    assert scheduler.run_due() == 1
    row = found(db, id_)
    (made,) = refreshes(db, before.dataset_id)
    assert (row.last_dataset_id, row.last_job_id) == (made.id, made.job_id)
    assert row.last_error is None
    assert row.due_at is not None
    assert now(db) < row.due_at <= now(db) + 300
    assert row.due_at % 300 == 0
    assert scheduler.run_due() == 0


def test_the_run_acts_as_its_principal_in_the_audit_log(db: Database, scheduler: Scheduler) -> None:
    made_by = key(db)
    id_ = schedule(db, made_by.principal_id)
    scheduler.run_due()
    row = found(db, id_)
    with db.read() as session:
        entry = session.scalars(select(AuditEntry)).one()
    assert (entry.owner, entry.principal_id, entry.key_id) == (
        OWNER,
        made_by.principal_id,
        made_by.id,
    )
    assert (entry.author, entry.path) == ("nightly", f"/v1/schedules/{id_}")
    assert {row.last_job_id, row.last_dataset_id} <= set(entry.made)


def test_times_that_were_missed_are_run_once(db: Database, scheduler: Scheduler) -> None:
    id_ = schedule(db, late=7 * 86_400.0)
    assert [scheduler.run_due() for _ in range(3)] == [1, 0, 0]
    due_at = found(db, id_).due_at
    assert due_at is not None
    assert due_at > now(db)


def test_each_run_refreshes_what_the_last_successful_one_has_made(
    db: Database, scheduler: Scheduler
) -> None:
    id_ = schedule(db)
    first = found(db, id_).dataset_id
    scheduler.run_due()
    second = found(db, id_).last_dataset_id
    end(db, id_, JobState.SUCCEEDED)
    make_due(db, id_)
    scheduler.run_due()
    (third,) = refreshes(db, second)
    end(db, id_, JobState.FAILED)
    make_due(db, id_)
    scheduler.run_due()
    assert {each.id for each in refreshes(db, second)} > {third.id}
    assert len(refreshes(db, first)) == 1


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
def test_a_time_is_skipped_while_the_earlier_run_has_not_ended(
    db: Database, scheduler: Scheduler, state: JobState
) -> None:
    id_ = schedule(db)
    scheduler.run_due()
    end(db, id_, state)
    make_due(db, id_)
    assert scheduler.run_due() == 0
    row = found(db, id_)
    assert code(row) == "run_in_progress"
    assert len(refreshes(db)) == 1
    assert row.due_at is not None
    assert row.due_at > now(db)
    end(db, id_, JobState.CANCELLED)
    make_due(db, id_)
    assert scheduler.run_due() == 1
    assert found(db, id_).last_error is None


def test_any_number_of_dispatchers_run_each_due_time_once(
    db: Database, blobs: BlobStore, settings: Settings
) -> None:
    ids = [schedule(db) for _ in range(5)]
    schedulers = [Scheduler(db, blobs, settings) for _ in range(4)]
    start = threading.Barrier(len(schedulers))
    queued: list[int] = []

    def run(each: Scheduler) -> None:
        start.wait()
        queued.append(each.run_due())

    threads = [threading.Thread(target=run, args=(each,)) for each in schedulers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while schedulers[0].run_due():  # what was locked by another one and given back, if any
        pass
    assert sum(queued) == len(refreshes(db)) == len(ids)
    assert len({found(db, id_).last_dataset_id for id_ in ids}) == len(ids)


def test_an_error_of_one_schedule_is_recorded_and_stops_no_other(
    db: Database, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed, fine = schedule(db, late=2), schedule(db)
    monkeypatch.setattr(failpoints, "armed", failpoints.parse("schedule=raise"))
    assert scheduler.run_due() == 1
    assert (code(found(db, failed)), code(found(db, fine))) == ("internal_error", None)
    assert len(refreshes(db)) == 1


def revoke(db: Database, held: ApiKey) -> None:
    db.writing(keys.revoke, OWNER, held.id)


def expire(db: Database, held: ApiKey) -> None:
    with db.write() as session:
        session.execute(update(ApiKey).where(ApiKey.id == held.id).values(expires_at=db_now()))


@pytest.mark.parametrize("ends", [revoke, expire])
def test_a_schedule_whose_key_has_ended_is_paused(
    db: Database, scheduler: Scheduler, ends: Any
) -> None:
    held = key(db)
    id_ = schedule(db, held.principal_id)
    ends(db, held)
    assert scheduler.run_due() == 0
    row = found(db, id_)
    assert (row.paused_reason, row.due_at, refreshes(db)) == ("key_ended", None, [])
    assert row.paused_at is not None
    with db.read() as session:
        assert session.scalars(select(AuditEntry.action)).all() == ["paused schedule"]


def test_a_key_that_its_owner_rotates_still_runs_the_schedule(
    db: Database, scheduler: Scheduler
) -> None:
    held = key(db)
    schedule(db, held.principal_id)
    db.writing(keys.rotate, OWNER, held.id)
    assert scheduler.run_due() == 1


def test_a_key_without_the_scope_runs_nothing(db: Database, scheduler: Scheduler) -> None:
    id_ = schedule(db, key(db, "read", "admin").principal_id)
    assert scheduler.run_due() == 0
    assert found(db, id_).paused_reason == "scope_missing"


def person(db: Database) -> str:
    row = Principal(
        id=new_id("prn"),
        kind="person",
        issuer=ISSUER,
        subject="u1",
        name="Ann",
        created_at=1.5,
    )
    with db.write() as session:
        session.add(row)
    return row.id


def test_a_person_runs_a_schedule_as_long_as_the_roles_allow_it(
    db: Database, blobs: BlobStore, settings: Settings, roles: Path
) -> None:
    ann = person(db)
    allowed = schedule(db, ann, groups=["ds", "staff"])
    refused = schedule(db, ann, groups=["staff"])
    assert Scheduler(db, blobs, settings).run_due() == 1
    assert found(db, allowed).last_error is None
    assert found(db, refused).paused_reason == "role_missing"
    end(db, allowed, JobState.SUCCEEDED)
    make_due(db, allowed)
    viewer = {"issuer": ISSUER, "group": "ds", "owner": OWNER, "role": "viewer"}
    roles.write_text(json.dumps([viewer]))
    assert Scheduler(db, blobs, settings).run_due() == 0
    assert found(db, allowed).paused_reason == "role_missing"


def test_a_deleted_dataset_pauses_the_schedule(db: Database, scheduler: Scheduler) -> None:
    id_ = schedule(db, dataset_id=sourced(db, deleted_at=2.5))
    assert scheduler.run_due() == 0
    assert found(db, id_).paused_reason == "dataset_deleted"


def test_a_connection_that_was_taken_away_is_the_error_of_the_run(
    db: Database, scheduler: Scheduler, connections: Path
) -> None:
    connections.write_text("{}")
    id_ = schedule(db)
    assert scheduler.run_due() == 0
    row = found(db, id_)
    assert code(row) == "source_not_allowed"
    assert (row.paused_at, refreshes(db)) == (None, [])
    assert row.due_at is not None
    assert row.due_at > now(db)


def test_a_quota_is_the_error_of_the_run(
    db: Database, blobs: BlobStore, connections: Path, roles: Path
) -> None:
    settings = Settings(connections_file=connections, roles_file=roles, quota_queued_jobs=1)
    ids = [schedule(db), schedule(db)]
    assert Scheduler(db, blobs, settings).run_due() == 1
    assert sorted(str(code(found(db, id_))) for id_ in ids) == ["None", "quota_exceeded"]


def test_a_paused_schedule_is_not_due(db: Database, scheduler: Scheduler) -> None:
    id_ = schedule(db, paused_at=2.5, paused_reason="requested")
    with db.write() as session:
        session.execute(update(Schedule).where(Schedule.id == id_).values(due_at=None))
    assert scheduler.run_due() == 0
    assert db.reading(due_repository.seconds_until_due) is None


def test_the_time_until_the_next_run_is_known(db: Database) -> None:
    schedule(db, late=-100.0)
    schedule(db, late=-5.0)
    until = db.reading(due_repository.seconds_until_due)
    assert until is not None
    assert 0 < until <= 5.0 <= LOOK_SECONDS


def test_a_look_reads_an_index_only(db: Database) -> None:
    for statement in (
        "SELECT min(due_at) FROM schedules",
        "SELECT id FROM schedules WHERE due_at <= 1 ORDER BY due_at LIMIT 100",
    ):
        with db.read() as session:
            if db.dialect == "postgresql":
                session.execute(text("SET LOCAL enable_seqscan = off"))
            explain = "EXPLAIN" if db.dialect == "postgresql" else "EXPLAIN QUERY PLAN"
            plan = str(session.execute(text(f"{explain} {statement}")).all())
        assert "ix_schedules_due_at" in plan


def test_the_loop_runs_what_is_due_and_stops(db: Database, scheduler: Scheduler) -> None:
    schedule(db)
    stop = threading.Event()
    thread = threading.Thread(target=scheduler.run, args=(stop,))
    thread.start()
    try:
        eventually(lambda: refreshes(db))
    finally:
        stop.set()
        thread.join()
    assert len(refreshes(db)) == 1
