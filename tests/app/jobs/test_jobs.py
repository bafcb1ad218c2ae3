"""Jobs as their owner sees them."""

from __future__ import annotations

import base64
import itertools
import json
from typing import Any, cast

import pytest
from sqlalchemy import Table, event, func, insert, select, text

from app.datasets import service as datasets
from app.jobs import queue
from app.jobs import repository as job_rows
from app.jobs import service as jobs
from app.platform.database import Database
from app.platform.errors import Conflict, Invalid, NotFound
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import encode_cursor
from app.platform.tables import Dataset, DatasetStatus, Job, JobEvent, JobState
from tests.app.queue_steps import (
    OWNER,
    add_dataset,
    change,
    claimed,
    find_dataset,
    finish,
    seen,
    submit,
)
from tests.raising import raises
from tests.sentences import Sentences


class TestEnqueue:
    def test_job_and_first_event_are_accepted_together(self, db: Database) -> None:
        settings = Settings(job_timeout_seconds=7.0, job_max_attempts=5)
        job = submit(db, settings, tags={"team": "risk"})
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.attempt, kept.tags) == ("queued", 0, {"team": "risk"})
        assert (kept.timeout_seconds, kept.max_attempts) == (7.0, 5)
        assert (kept.error, kept.model_id, kept.started_at) == (None, None, None)
        assert seen(db, job.id) == [(1, "state", "queued")]

    def test_nothing_is_left_when_the_transaction_fails(self, db: Database) -> None:
        def accept() -> None:
            with db.write() as session:
                jobs.enqueue(session, Settings(), owner=OWNER, kind="train", name="x", spec={})
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            accept()
        with db.read() as session:
            for table in (Job, JobEvent):
                assert session.scalar(select(func.count()).select_from(table)) == 0

    def test_no_error_is_sql_null_not_json_null(self, db: Database) -> None:
        change(db, submit(db).id, error=None)
        with db.read() as session:
            assert session.scalars(select(Job).where(Job.error.is_(None))).one()


class TestGet:
    @pytest.mark.parametrize(
        "job_id",
        ["", "job_", "job_\0", "ds_" + "0" * 32, "job_" + "é" * 32, "job_\ud800", "x" * 9999],
    )
    def test_what_cannot_be_an_id_is_not_found(self, db: Database, job_id: str) -> None:
        with pytest.raises(NotFound):
            db.reading(jobs.find, OWNER, job_id)


class TestList:
    def test_equal_times_are_told_apart_by_id(self, db: Database) -> None:
        ids = [submit(db).id for _ in range(4)]
        submit(db, owner="eve")
        for id_ in ids:
            change(db, id_, created_at=1000.25)
        first = db.reading(jobs.list_page, OWNER, limit=2)
        change(db, submit(db).id, created_at=2000.5)  # newer than everything on the page to come
        second = db.reading(jobs.list_page, OWNER, limit=2, after=first.next)
        assert [job.id for job in first.data + second.data] == ids[::-1]
        assert (second.has_more, second.next) == (False, None)

    @pytest.mark.parametrize(
        "filters",
        [
            {"limit": 0},
            {"limit": 201},
            {"state": "done"},
            {"state": "\0"},
            {"kind": "a\0"},
            {"kind": "\ud800"},
            {"dataset_id": "ds_\0"},
            {"dataset_id": new_id("job")},
        ],
    )
    def test_bad_filters_name_the_rule(
        self, db: Database, filters: dict[str, Any], sentences: Sentences
    ) -> None:
        with sentences.raises(Invalid):
            db.reading(jobs.list_page, OWNER, **filters)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "!",
            "é",
            "A",
            "AAAA",
            "\0",
            *(
                base64.urlsafe_b64encode(json.dumps(value).encode()).decode()
                for value in (
                    1,
                    [],
                    [1.5],
                    [1, "job_x"],
                    ["1.5", "job_x"],
                    [True, "job_x"],
                    [1.5, 2],
                    [1.5, "a\0"],
                    [1.5, "\ud800"],
                    [float("nan"), "job_x"],
                    [float("inf"), "job_x"],
                    {"a": 1, "b": 2},
                )
            ),
            base64.urlsafe_b64encode(b"[" * 100_000).decode(),
        ],
    )
    def test_bad_cursors_are_refused(self, db: Database, text: str) -> None:
        with pytest.raises(Invalid) as caught:
            db.reading(jobs.list_page, OWNER, after=text)
        assert caught.value.code == "invalid_cursor"

    def test_a_cursor_behind_the_last_row_gives_an_empty_page(self, db: Database) -> None:
        submit(db)
        page = db.reading(jobs.list_page, OWNER, after=encode_cursor(0.0, "a"))
        assert (page.data, page.has_more, page.next) == ([], False, None)


class TestCancel:
    def test_a_queued_job_ends_at_once(self, db: Database) -> None:
        job = submit(db)
        cancelled, changed = db.writing(jobs.cancel, OWNER, job.id)
        assert changed
        assert cancelled.state == JobState.CANCELLED
        assert cancelled.finished_at is not None
        assert db.writing(queue.claim, Settings(), "wrk_a") is None
        assert seen(db, job.id) == [(1, "state", "queued"), (2, "state", "cancelled")]

    def test_a_running_job_is_asked_and_once_is_enough(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        asked, changed = db.writing(jobs.cancel, OWNER, job.id)
        assert (asked.state, changed) == ("running", True)
        assert asked.cancel_requested_at is not None
        again, changed = db.writing(jobs.cancel, OWNER, job.id)
        assert not changed
        assert again.cancel_requested_at == asked.cancel_requested_at
        assert db.reading(queue.poll_requests, claim).cancel
        assert [state for _, _, state in seen(db, job.id)] == ["queued", "running", "cancelling"]

    def test_a_cancelled_job_stays_so_and_a_finished_one_conflicts(self, db: Database) -> None:
        job = submit(db)
        db.writing(jobs.cancel, OWNER, job.id)
        assert db.writing(jobs.cancel, OWNER, job.id)[1] is False
        done = submit(db)
        finish(db, claimed(db))
        with pytest.raises(Conflict) as caught:
            db.writing(jobs.cancel, OWNER, done.id)
        assert caught.value.code == "job_finished"

    def test_the_dataset_of_a_cancelled_upload_is_invalid(self, db: Database) -> None:
        job = submit(db, kind="ingest")
        dataset = add_dataset(db, job.id)
        db.writing(jobs.cancel, OWNER, job.id)
        assert find_dataset(db, dataset.id).status == DatasetStatus.INVALID
        assert find_dataset(db, dataset.id).errors


def retry(db: Database, job_id: str, owner: str = OWNER) -> Job:
    with db.write() as session:
        return jobs.retry(session, Settings(), owner, job_id)


class TestRetry:
    def test_a_failed_job_is_queued_anew(self, db: Database) -> None:
        job = submit(db, tags={"a": "b"}, timeout_seconds=9.0, priority=3)
        db.writing(queue.fail, claimed(db), {"code": "broken"})
        new = retry(db, job.id)
        assert new.id != job.id
        assert (new.retry_of, new.state, new.spec, new.tags) == (
            job.id,
            "queued",
            job.spec,
            {"a": "b"},
        )
        assert (new.timeout_seconds, new.priority) == (9.0, 3)
        assert claimed(db).job_id == new.id

    def test_only_a_job_that_ended_badly(self, db: Database) -> None:
        job = submit(db)
        for state in ("queued", "running", "succeeded"):
            with raises(Conflict, job.id, state):
                retry(db, job.id)
            if state == "queued":
                claim = claimed(db)
            elif state == "running":
                finish(db, claim)
        with pytest.raises(NotFound):
            retry(db, job.id, owner="eve")

    def test_not_when_the_dataset_is_gone(self, db: Database) -> None:
        job = submit(db, dataset_id=new_id("ds"))
        db.writing(jobs.cancel, OWNER, job.id)
        with pytest.raises(Conflict) as caught:
            retry(db, job.id)
        assert caught.value.code == "dataset_deleted"

    def test_a_retry_needs_the_dataset_that_it_is_judged_by(self, db: Database) -> None:
        dataset, judge = (add_dataset(db, status=DatasetStatus.READY) for _ in range(2))
        spec = {"validation": {"method": "dataset", "dataset_id": judge.id}}
        submit(db, dataset_id=dataset.id, spec=spec)
        claim = claimed(db)
        db.writing(queue.fail, claim, {"code": "x", "title": "x", "detail": "x"})
        db.writing(datasets.delete, OWNER, judge.id)
        with (
            raises(Conflict, judge.id) as caught,
            db.write() as session,
        ):
            jobs.retry(session, Settings(), OWNER, claim.job_id)
        assert caught.value.code == "dataset_deleted"

    def test_a_retried_upload_is_processing_again(self, db: Database) -> None:
        def stopped(status: DatasetStatus) -> tuple[Dataset, Job]:
            id_ = new_id("ds")
            job = submit(db, kind="ingest", dataset_id=id_, spec={"dataset_id": id_})
            dataset = add_dataset(db, job.id, id=id_, status=status, errors=[{"detail": "x"}])
            db.writing(jobs.cancel, OWNER, job.id)
            return dataset, job

        _, job = stopped(DatasetStatus.READY)
        with raises(Conflict, DatasetStatus.READY):
            retry(db, job.id)
        broken, job = stopped(DatasetStatus.INVALID)
        new = retry(db, job.id)
        kept = find_dataset(db, broken.id)
        assert (kept.status, kept.errors, kept.job_id) == ("processing", [], new.id)


class TestEvents:
    def test_they_go_on_behind_a_number(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        for step in range(3):
            db.writing(queue.heartbeat, Settings(), claim, {"step": step})
        finish(db, claim, model_id="mdl_x")
        events = db.reading(jobs.events, OWNER, job.id)
        assert [event.seq for event in events] == [1, 2, 3, 4, 5, 6]
        assert [event.seq for event in db.reading(jobs.events, OWNER, job.id, after=4)] == [5, 6]
        assert [
            event.seq for event in db.reading(jobs.events, OWNER, job.id, after=2, limit=2)
        ] == [3, 4]
        assert db.reading(jobs.events, OWNER, job.id, after=6) == []
        assert events[3].data == {"step": 1}
        assert events[-1].data == {
            "state": "succeeded",
            "attempt": 1,
            "model_id": "mdl_x",
        }
        assert [event.at for event in events] == sorted(event.at for event in events)

    def test_bad_bounds(self, db: Database) -> None:
        job = submit(db)
        wrong: list[dict[str, Any]] = [
            {"after": -1},
            {"after": 2**63},
            {"limit": 0},
            {"limit": 201},
        ]
        for bounds in wrong:
            with raises(Invalid, *bounds.values()):
                db.reading(jobs.events, OWNER, job.id, **bounds)

    def test_states_of_many_jobs_in_one_look(self, db: Database) -> None:
        first, second = submit(db), submit(db)
        claimed(db)
        assert db.reading(job_rows.states, [first.id, second.id, new_id("job")]) == {
            first.id: ("running", 2),
            second.id: ("queued", 1),
        }
        assert db.reading(job_rows.states, []) == {}


def test_failures_that_nothing_has_made_good_are_found_by_indexes(db: Database) -> None:
    one = submit(db)
    with db.write() as session:  # so many that an index is worth its while
        stored = [column for column in Job.__table__.columns if column.computed is None]
        row = dict(session.execute(select(*stored).where(Job.id == one.id)).mappings().one())
        copies = [
            {**row, "id": new_id("job"), "name": f"model {n}", "state": state}
            for n, state in zip(range(400), itertools.cycle(["failed", "succeeded"]), strict=False)
        ]
        session.execute(insert(cast(Table, Job.__table__)), copies)
        if db.engine.dialect.name == "postgresql":
            session.execute(text("ANALYZE jobs"))
    asked: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        asked.append((statement, parameters))

    event.listen(db.engine, "before_cursor_execute", note)
    with db.read() as session:
        jobs.list_page(session, OWNER, state=None, kind="all", dataset_id=None, unresolved=True)
    event.remove(db.engine, "before_cursor_execute", note)
    statement, parameters = next(each for each in asked if "LIMIT" in each[0])
    with db.engine.connect() as connection:
        words = "EXPLAIN QUERY PLAN"
        if connection.dialect.name == "postgresql":
            words = "EXPLAIN"
            connection.exec_driver_sql("SET enable_seqscan = off")  # of few rows it would scan all
        plan = str(connection.exec_driver_sql(f"{words} {statement}", parameters).all())
    for index in ("ix_jobs_name_owner_kind_state_created_at", "ix_jobs_retry_of"):
        assert index in plan, plan
    assert "SCAN jobs" not in plan
