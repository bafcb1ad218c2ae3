"""The reaper: a silent worker's job runs again, and only then."""

from __future__ import annotations

import functools

import pytest
from queue_steps import (
    OWNER,
    add_dataset,
    at_once,
    change,
    claimed,
    find_dataset,
    finish,
    seen,
    submit,
)
from sqlalchemy import select, text

from app.db.session import Database
from app.db.tables import DatasetStatus, Job, JobState, Outbox
from app.errors import LeaseLost
from app.infra.settings import Settings
from app.services import jobs, queue
from app.services.reap import Reaper

SETTINGS = Settings(lease_seconds=60.0, job_max_attempts=2)
LATER = 4e9


class Clock:
    """A monotonic clock that a test moves by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reaper(db: Database, clock: Clock) -> Reaper:
    return Reaper(db, SETTINGS, clock)


def let_lease_run_out(db: Database, reaper: Reaper, clock: Clock, *ids: str) -> None:
    """A lease's time goes by on the clock that counts: the database's, or on SQLite the reaper's own."""
    assert reaper.reap().requeued == []  # a first look, which begins SQLite's watch
    for id_ in ids:
        change(db, id_, lease_expires_at=1.0)
    clock.now += SETTINGS.lease_seconds


def test_on_postgresql_a_job_that_somebody_stands_still_with_holds_up_no_other(
    postgres_url: str, clock: Clock
) -> None:
    db = Database(postgres_url)
    frozen, lost = submit(db), submit(db)
    claimed(db), claimed(db)
    reaper = Reaper(db, SETTINGS, clock)
    let_lease_run_out(db, reaper, clock, frozen.id, lost.id)
    with db.write() as session:
        session.execute(select(Job).where(Job.id == frozen.id).with_for_update())
        assert reaper.reap().requeued == [lost.id]
        assert session.scalar(text("SHOW idle_in_transaction_session_timeout")) == "1min"
    assert reaper.reap().requeued == [frozen.id]
    db.close()


class TestLostLease:
    def test_the_job_is_queued_again_at_once_and_its_old_worker_is_fenced_off(
        self, db: Database, reaper: Reaper, clock: Clock
    ) -> None:
        job = submit(db, SETTINGS)
        stale = claimed(db, worker="wrk_dead")
        let_lease_run_out(db, reaper, clock, job.id)
        assert reaper.reap().requeued == [job.id]
        with pytest.raises(LeaseLost):
            queue.heartbeat(db, SETTINGS, stale)
        fresh = claimed(db, worker="wrk_b")
        assert (fresh.job_id, fresh.attempt, fresh.token) == (job.id, 2, 2)
        with pytest.raises(LeaseLost):
            finish(db, stale, model_id="mdl_stale")
        finish(db, fresh, model_id="mdl_fresh")
        assert jobs.get(db, OWNER, job.id).model_id == "mdl_fresh"
        events = jobs.events(db, OWNER, job.id)
        assert [event.data["state"] for event in events] == [
            *("queued", "running", "queued", "running", "succeeded")
        ]
        assert "wrk_dead" in events[2].data["reason"]
        with db.read() as session:
            assert session.scalars(select(Outbox.attempt).order_by(Outbox.attempt)).all() == [1, 2]

    def test_the_second_loss_waits(self, db: Database, reaper: Reaper, clock: Clock) -> None:
        job = submit(db, Settings(job_max_attempts=3))
        for _ in range(2):
            claimed(db)
            let_lease_run_out(db, reaper, clock, job.id)
            assert reaper.reap().requeued == [job.id]
        assert queue.claim(db, SETTINGS, "wrk_a") is None
        assert jobs.get(db, OWNER, job.id).not_before > 0

    def test_it_fails_once_attempts_are_spent(
        self, db: Database, reaper: Reaper, clock: Clock
    ) -> None:
        job = submit(db, Settings(job_max_attempts=1), kind="ingest")
        dataset = add_dataset(db, job.id)
        claimed(db)
        let_lease_run_out(db, reaper, clock, job.id)
        assert reaper.reap().failed == [job.id]
        kept = jobs.get(db, OWNER, job.id)
        assert kept.state == JobState.FAILED
        assert kept.error is not None
        assert kept.error["code"] == "attempts_spent"
        assert find_dataset(db, dataset.id).status == DatasetStatus.INVALID

    def test_a_job_that_was_asked_to_stop_is_cancelled(
        self, db: Database, reaper: Reaper, clock: Clock
    ) -> None:
        job = submit(db)
        claimed(db)
        jobs.cancel(db, OWNER, job.id)
        let_lease_run_out(db, reaper, clock, job.id)
        assert reaper.reap().cancelled == [job.id]
        assert jobs.get(db, OWNER, job.id).state == JobState.CANCELLED

    def test_a_heartbeat_keeps_the_job(self, db: Database, reaper: Reaper, clock: Clock) -> None:
        job = submit(db)
        claim = claimed(db)
        for _ in range(4):
            let_lease_run_out(db, reaper, clock, job.id)
            queue.heartbeat(db, SETTINGS, claim)
            assert reaper.reap().requeued == []
        finish(db, claim)

    def test_a_heartbeat_between_look_and_take_keeps_the_job(
        self, db: Database, clock: Clock
    ) -> None:
        job = submit(db)
        claim = claimed(db)

        class Slow(Reaper):
            """The worker comes back just after the reaper has read its row."""

            def _take(self, *args: object) -> None:
                queue.heartbeat(db, SETTINGS, claim)
                super()._take(*args)  # type: ignore[arg-type]

        slow = Slow(db, SETTINGS, clock)
        let_lease_run_out(db, slow, clock, job.id)
        assert slow.reap().requeued == []
        finish(db, claim)

    def test_reapers_at_once_requeue_each_job_once(self, db: Database) -> None:
        ids = [submit(db, Settings(job_max_attempts=9)).id for _ in range(6)]
        clocks = [Clock() for _ in range(4)]
        reapers = [Reaper(db, SETTINGS, clock) for clock in clocks]
        for _ in ids:
            claimed(db)
        for each, clock in zip(reapers, clocks, strict=True):
            each.reap()
            clock.now += SETTINGS.lease_seconds
        for id_ in ids:
            change(db, id_, lease_expires_at=1.0)
        rounds = at_once(*(each.reap for each in reapers))
        assert sorted(id_ for done in rounds for id_ in done.requeued) == sorted(ids)
        for id_ in ids:
            assert [state for _, _, state in seen(db, id_)] == ["queued", "running", "queued"]

    def test_reaper_and_worker_at_once_leave_one_outcome(self, db: Database) -> None:
        for _ in range(8):
            job = submit(db)
            claim = claimed(db)
            clock = Clock()
            reaper = Reaper(db, SETTINGS, clock)
            let_lease_run_out(db, reaper, clock, job.id)
            finished, reaped = at_once(
                functools.partial(finish, db, claim, model_id="mdl_x"), reaper.reap
            )
            kept = jobs.get(db, OWNER, job.id)
            if finished is None:
                assert (kept.state, reaped.requeued) == ("succeeded", [])
            else:
                assert isinstance(finished, LeaseLost)
                assert (kept.state, kept.model_id, reaped.requeued) == ("queued", None, [job.id])
                finish(db, claimed(db))


class TestMisdated:
    def test_a_retry_dated_by_a_clock_that_was_set_back_is_let_go(
        self, db: Database, reaper: Reaper
    ) -> None:
        retried, scheduled = submit(db), submit(db, not_before=LATER)
        queue.retry_later(db, SETTINGS, claimed(db), "disk full")
        reaper.reap()
        assert queue.claim(db, SETTINGS, "wrk_a") is None  # its delay is one that we give
        change(db, retried.id, not_before=LATER)
        reaper.reap()
        assert claimed(db).job_id == retried.id
        assert jobs.get(db, OWNER, scheduled.id).not_before == LATER


class TestClocks:
    """SQLite has only the clock of the process that asks, which anybody may set."""

    @pytest.fixture
    def db(self, sqlite_url: str) -> Database:
        return Database(sqlite_url)

    def test_a_clock_set_forward_takes_no_job_from_a_living_worker(
        self, db: Database, reaper: Reaper, clock: Clock
    ) -> None:
        job = submit(db)
        claimed(db)
        reaper.reap()
        change(db, job.id, lease_expires_at=1.0)  # in the past at one blow
        clock.now += SETTINGS.lease_seconds - 1.0
        looked = reaper.reap()
        assert looked.requeued == []
        assert looked.due_seconds == pytest.approx(1.0)
        clock.now += 1.0
        assert reaper.reap().requeued == [job.id]

    def test_a_clock_set_back_does_not_keep_a_dead_workers_job(
        self, db: Database, reaper: Reaper, clock: Clock
    ) -> None:
        job = submit(db)
        claimed(db)
        change(db, job.id, lease_expires_at=LATER)
        reaper.reap()
        clock.now += SETTINGS.lease_seconds
        assert reaper.reap().requeued == [job.id]

    def test_a_new_attempt_is_watched_anew(
        self, db: Database, reaper: Reaper, clock: Clock
    ) -> None:
        submit(db)
        first = claimed(db)
        reaper.reap()
        queue.give_back(db, first)
        claimed(db)
        clock.now += SETTINGS.lease_seconds
        assert reaper.reap().requeued == []

    def test_nothing_runs_and_nothing_is_due(self, reaper: Reaper) -> None:
        assert reaper.reap().due_seconds is None


class TestResend:
    def test_a_wake_up_long_unanswered_is_owed_again(self, db: Database, reaper: Reaper) -> None:
        waiting, running, backing_off, recent, ended = (submit(db) for _ in range(5))
        claim = claimed(db)
        assert claim.job_id == waiting.id
        queue.give_back(db, claim)
        change(db, waiting.id, priority=-1)
        assert claimed(db).job_id == running.id
        change(db, backing_off.id, not_before=LATER)
        jobs.cancel(db, OWNER, ended.id)
        with db.write() as session:
            for row in session.scalars(select(Outbox)):
                row.published_at = LATER if row.job_id == recent.id else 1.0
        assert reaper.reap().resent == 1
        with db.read() as session:
            owed = session.scalars(select(Outbox.job_id).where(Outbox.published_at.is_(None)))
            assert owed.all() == [waiting.id]

    def test_a_full_queue_does_not_flood_the_broker(self, db: Database, reaper: Reaper) -> None:
        for _ in range(15):
            submit(db)
        with db.write() as session:
            for row in session.scalars(select(Outbox)):
                row.published_at = 1.0
        assert reaper.reap().resent == 10
