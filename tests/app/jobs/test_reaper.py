"""The reaper: a silent worker's job runs again, and only then."""

from __future__ import annotations

import functools
import subprocess
import sys
import time

import pytest
from sqlalchemy import select, text

from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.platform.database import Database
from app.platform.errors import LeaseLost
from app.platform.settings import Settings
from app.platform.sql import machine_now
from app.platform.tables import DatasetStatus, Job, JobState
from tests.app.queue_steps import (
    OWNER,
    add_dataset,
    at_once,
    change,
    claimed,
    find_dataset,
    finish,
    hear_nothing,
    seen,
    submit,
)
from tests.long_form import LONG_FORM, long_form

SETTINGS = Settings(lease_seconds=60.0, job_max_attempts=2)
LATER = 4e9


@pytest.fixture
def reaper(db: Database) -> Reaper:
    return Reaper(db, SETTINGS)


def test_on_postgresql_a_job_that_somebody_stands_still_with_holds_up_no_other(
    postgres_url: str,
) -> None:
    db = Database(postgres_url)
    frozen, lost = submit(db), submit(db)
    claimed(db), claimed(db)
    reaper = Reaper(db, SETTINGS)
    hear_nothing(db)
    somebody = Database(postgres_url)
    with somebody.write() as session:
        session.execute(select(Job).where(Job.id == frozen.id).with_for_update())
        assert reaper.reap().requeued == [lost.id]
        assert session.scalar(text("SHOW idle_in_transaction_session_timeout")) == "1min"
    assert reaper.reap().requeued == [frozen.id]
    somebody.close()
    db.close()


class TestLostLease:
    def test_the_job_is_queued_again_at_once_and_its_old_worker_is_fenced_off(
        self, db: Database, reaper: Reaper
    ) -> None:
        job = submit(db, SETTINGS)
        stale = claimed(db, worker="wrk_dead")
        hear_nothing(db, job.id)
        assert reaper.reap().requeued == [job.id]
        with pytest.raises(LeaseLost):
            db.writing(queue.heartbeat, SETTINGS, stale)
        fresh = claimed(db, worker="wrk_b")
        assert (fresh.job_id, fresh.attempt, fresh.token) == (job.id, 2, 2)
        with pytest.raises(LeaseLost):
            finish(db, stale, model_id="mdl_stale")
        finish(db, fresh, model_id="mdl_fresh")
        assert db.reading(jobs.find, OWNER, job.id).model_id == "mdl_fresh"
        events = db.reading(jobs.events, OWNER, job.id)
        assert [event.data["state"] for event in events] == [
            *("queued", "running", "queued", "running", "succeeded")
        ]
        assert "wrk_dead" in events[2].data["reason"]

    def test_later_losses_wait_and_the_silence_counts(self, db: Database) -> None:
        short = Settings(job_max_attempts=9, lease_seconds=3.0, heartbeat_seconds=1.0)
        job = submit(db, short)
        for delay in (0.0, 2.0, 17.0, 57.0, 57.0):
            change(db, job.id, not_before=0.0)
            claimed(db, short)
            hear_nothing(db, seconds=3.5)
            before = time.time()
            assert Reaper(db, short).reap().requeued == [job.id]
            not_before = db.reading(jobs.find, OWNER, job.id).not_before
            if delay:
                assert before + delay - 0.01 <= not_before <= time.time() + delay + 0.01
            else:
                assert not_before == 0.0

    def test_it_fails_once_attempts_are_spent(self, db: Database, reaper: Reaper) -> None:
        job = submit(db, Settings(job_max_attempts=1), kind="ingest")
        dataset = add_dataset(db, job.id)
        claimed(db)
        hear_nothing(db, job.id)
        assert reaper.reap().failed == [job.id]
        kept = db.reading(jobs.find, OWNER, job.id)
        assert kept.state == JobState.FAILED
        assert kept.error is not None
        assert kept.error["code"] == "attempts_spent"
        assert find_dataset(db, dataset.id).status == DatasetStatus.INVALID

    def test_a_job_that_was_asked_to_stop_is_cancelled(self, db: Database, reaper: Reaper) -> None:
        job = submit(db)
        claimed(db)
        db.writing(jobs.cancel, OWNER, job.id)
        hear_nothing(db, job.id)
        assert reaper.reap().cancelled == [job.id]
        assert db.reading(jobs.find, OWNER, job.id).state == JobState.CANCELLED

    def test_a_heartbeat_keeps_the_job(self, db: Database, reaper: Reaper) -> None:
        job = submit(db)
        claim = claimed(db)
        for _ in range(4):
            hear_nothing(db, job.id)
            db.writing(queue.heartbeat, SETTINGS, claim)
            assert reaper.reap().requeued == []
        finish(db, claim)

    def test_a_heartbeat_between_look_and_take_keeps_the_job(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)

        class Slow(Reaper):
            """The worker comes back just after the reaper has read its row."""

            def reap_job(self, *args: object) -> None:
                db.writing(queue.heartbeat, SETTINGS, claim)
                super().reap_job(*args)  # type: ignore[arg-type]

        slow = Slow(db, SETTINGS)
        hear_nothing(db, job.id)
        assert slow.reap().requeued == []
        finish(db, claim)

    def test_reapers_at_once_requeue_each_job_once(self, db: Database) -> None:
        ids = [submit(db, Settings(job_max_attempts=9)).id for _ in range(6)]
        for _ in ids:
            claimed(db)
        hear_nothing(db)
        rounds = at_once(*(Reaper(db, SETTINGS).reap for _ in range(4)))
        assert sorted(id_ for done in rounds for id_ in done.requeued) == sorted(ids)
        for id_ in ids:
            assert [state for _, _, state in seen(db, id_)] == ["queued", "running", "queued"]

    def test_reaper_and_worker_at_once_leave_one_outcome(self, db: Database) -> None:
        for _ in range(8 if LONG_FORM else 4):
            job = submit(db)
            claim = claimed(db)
            reaper = Reaper(db, SETTINGS)
            hear_nothing(db, job.id)
            finished, reaped = at_once(
                functools.partial(finish, db, claim, model_id="mdl_x"), reaper.reap
            )
            kept = db.reading(jobs.find, OWNER, job.id)
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
        db.writing(queue.retry_later, claimed(db), "disk full")
        reaper.reap()
        assert db.writing(queue.claim, SETTINGS, "wrk_a") is None  # its delay is one that we give
        change(db, retried.id, not_before=LATER)
        reaper.reap()
        assert claimed(db).job_id == retried.id
        assert db.reading(jobs.find, OWNER, scheduled.id).not_before == LATER


class TestClocks:
    """SQLite has only the clock of the process that asks, which anybody may set."""

    @pytest.fixture
    def db(self, sqlite_url: str) -> Database:
        return Database(sqlite_url)

    @pytest.mark.parametrize("wrong", [1.0, LATER], ids=["ahead", "behind"])
    def test_only_silence_counts_whatever_the_clock_says(
        self, db: Database, reaper: Reaper, wrong: float
    ) -> None:
        job = submit(db)
        claim = claimed(db)
        for _ in range(2):
            hear_nothing(db, seconds=SETTINGS.lease_seconds - 5.0)
            change(db, job.id, lease_expires_at=wrong)
            assert reaper.reap().requeued == []
            db.writing(queue.heartbeat, SETTINGS, claim)
        hear_nothing(db)
        change(db, job.id, lease_expires_at=wrong)
        assert reaper.reap().requeued == [job.id]
        claimed(db)
        assert reaper.reap().requeued == []

    def test_a_heartbeat_from_before_the_machine_was_started_is_of_no_living_worker(
        self, db: Database, reaper: Reaper
    ) -> None:
        job = submit(db)
        claimed(db)
        hear_nothing(db, seconds=-1000.0)  # the machine's clock begins anew
        assert reaper.reap().requeued == [job.id]

    @long_form
    def test_another_process_reads_the_same_clock(self, db: Database) -> None:
        ask = (
            "import sys; from sqlalchemy import select; from app.platform.database import Database; "
            "from app.platform.sql import machine_now\n"
            "with Database(sys.argv[1]).read() as session: print(session.scalar(select(machine_now())))"
        )
        with db.read() as session:
            before = session.scalars(select(machine_now())).one()
        command = [sys.executable, "-c", ask, db.url.render_as_string()]
        asked = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        with db.read() as session:
            after = session.scalars(select(machine_now())).one()
        assert before < asked < after
