"""How a job in parts ends before its time: failure, cancel, deadline, from above and from below."""

from __future__ import annotations

import functools

import pytest
from sqlalchemy import select

from app.datasets import repository as dataset_rows
from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.platform.database import Database
from app.platform.errors import CancelRequested
from app.platform.sql import db_now
from app.platform.tables import JobState
from tests.app.child_job_steps import SETTINGS, divided, end_part, fan_out, of, states
from tests.app.queue_steps import OWNER, at_once, change, claimed, seen, submit
from tests.long_form import LONG_FORM
from tests.sentences import Sentences

ROUNDS = 5 if LONG_FORM else 2
PROBLEM = {"code": "invalid_data", "title": "t", "detail": "d", "errors": []}


class TestEnds:
    def test_a_part_that_fails_takes_all_with_it(self, db: Database) -> None:
        job = divided(db, 3)
        done, failing, running = (claimed(db) for _ in range(3))
        end_part(db, done)
        db.writing(queue.fail, failing, PROBLEM)
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.error) == ("failed", PROBLEM)
        assert states(db, job)[1] == ["succeeded", "failed", "running"]
        assert db.reading(queue.poll_requests, running).cancel
        with pytest.raises(CancelRequested):
            end_part(db, running)
        db.writing(queue.fail, running, None, state=JobState.CANCELLED)
        assert states(db, job) == ("failed", ["succeeded", "failed", "cancelled"])
        assert db.writing(queue.claim, SETTINGS, "wrk_a") is None
        assert seen(db, job.id)[-1][2] == "failed"

    def test_a_part_whose_attempts_are_spent_fails_the_job(self, db: Database) -> None:
        job = divided(db, 2)
        for _ in range(SETTINGS.job_max_attempts):
            claim = claimed(db)
            db.writing(queue.retry_later, claim, "disk full")
            change(db, claim.job_id, not_before=0.0)
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.error and kept.error["code"]) == ("failed", "attempts_spent")
        assert states(db, job)[1] == ["failed", "cancelled"]

    def test_cancel_of_a_waiting_job_ends_it_at_once(self, db: Database) -> None:
        job = divided(db, 3)
        done, running = claimed(db), claimed(db)
        end_part(db, done)
        _, changed = db.writing(jobs.cancel, OWNER, job.id)
        assert changed
        assert states(db, job) == ("cancelled", ["succeeded", "running", "cancelled"])
        assert db.writing(jobs.cancel, OWNER, job.id)[1] is False
        # The last part's worker dies: the part is not run again for nobody.
        assert db.writing(queue.retry_later, running, "died") == JobState.CANCELLED
        assert states(db, job)[0] == "cancelled"
        assert seen(db, job.id)[-1][2] == "cancelled"

    def test_cancel_or_join_has_one_outcome(self, db: Database) -> None:
        for _ in range(ROUNDS):
            job = divided(db, 2)
            first, second = claimed(db), claimed(db)
            outcomes = at_once(
                functools.partial(db.writing, jobs.cancel, OWNER, job.id),
                functools.partial(end_part, db, first),
                functools.partial(end_part, db, second),
            )
            assert db.reading(jobs.find, OWNER, job.id).state == "cancelled"
            assert outcomes[0][1] is True
            for claim, outcome in zip((first, second), outcomes[1:], strict=True):
                if outcome is not None:
                    assert isinstance(outcome, CancelRequested)
                    db.writing(queue.fail, claim, None, state=JobState.CANCELLED)
            expected = ["succeeded" if outcome is None else "cancelled" for outcome in outcomes[1:]]
            assert states(db, job)[1] == expected

    def test_fail_or_finish_has_one_outcome(self, db: Database) -> None:
        for _ in range(ROUNDS):
            job = divided(db, 2)
            first, second = claimed(db), claimed(db)
            failed, finished, _ = at_once(
                functools.partial(db.writing, queue.fail, first, PROBLEM),
                functools.partial(end_part, db, second),
                functools.partial(db.writing, queue.heartbeat, SETTINGS, second, {"fraction": 0.5}),
            )
            assert failed == JobState.FAILED
            assert db.reading(jobs.find, OWNER, job.id).state == "failed"
            if finished is None:
                assert states(db, job)[1] == ["failed", "succeeded"]
            else:
                assert isinstance(finished, CancelRequested)
                assert states(db, job)[1] == ["failed", "running"]

    def test_a_cancel_races_claims_and_no_part_is_left_behind(self, db: Database) -> None:
        for _ in range(ROUNDS):
            job = divided(db, 3)
            *claims, _ = at_once(
                *[functools.partial(db.writing, queue.claim, SETTINGS, "wrk_a")] * 2,
                functools.partial(db.writing, jobs.cancel, OWNER, job.id),
            )
            for claim in filter(None, claims):
                assert db.reading(queue.poll_requests, claim).cancel
                db.writing(queue.fail, claim, None, state=JobState.CANCELLED)
            assert states(db, job) == ("cancelled", ["cancelled"] * 3)

    def test_a_retry_of_the_job_begins_anew(self, db: Database) -> None:
        job = divided(db, 2)
        db.writing(jobs.cancel, OWNER, job.id)
        with db.write() as session:
            again = jobs.retry(session, SETTINGS, OWNER, job.id)
        claim = claimed(db)
        assert (claim.job_id, claim.attempt) == (again.id, 1)
        assert of(db, again) == []

    def test_the_dataset_is_needed_by_the_job_and_not_by_its_parts(self, db: Database) -> None:
        job = divided(db, 2, dataset_id="ds_x")
        with db.read() as session:
            assert dataset_rows.unfinished_jobs(session, OWNER, "ds_x") == [job.id]


class TestDeadline:
    def test_the_timeout_counts_from_the_first_start_over_all_stages(self, db: Database) -> None:
        job = submit(db, timeout_seconds=1000.0)
        claim = claimed(db)
        assert claim.seconds_left == 1000.0
        change(db, job.id, started_at=_now(db) - 400.0)
        fan_out(db, claim, 1)
        part = claimed(db)
        assert part.timeout_seconds == 1000.0
        assert part.seconds_left == pytest.approx(600.0, abs=5.0)
        end_part(db, part)
        assert claimed(db).seconds_left == pytest.approx(600.0, abs=5.0)

    def test_a_part_out_of_time_ends_the_job(self, db: Database) -> None:
        job = divided(db, 2)
        db.writing(queue.time_out, claimed(db))
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.error and kept.error["code"]) == ("timed_out", "timed_out")
        assert states(db, job)[1] == ["timed_out", "cancelled"]

    def test_the_reaper_ends_a_job_whose_parts_nobody_claims_in_time(
        self, db: Database, sentences: Sentences
    ) -> None:
        job = divided(db, 2, timeout_seconds=1000.0)
        change(db, job.id, deadline_at=1.0)
        for part in of(db, job):
            change(db, part.id, priority=-1)
        patient = divided(db, 1)
        assert Reaper(db, SETTINGS).reap().recovered == [job.id]
        assert states(db, job) == ("timed_out", ["cancelled"] * 2)
        error = db.reading(jobs.find, OWNER, job.id).error
        assert error is not None
        sentences(error)
        assert states(db, patient) == ("waiting", ["queued"])

    def test_the_reaper_queues_a_job_with_nothing_to_wait_for(self, db: Database) -> None:
        job = divided(db, 1)
        change(db, of(db, job)[0].id, state="succeeded")
        assert Reaper(db, SETTINGS).reap().recovered == [job.id]
        assert claimed(db).job_id == job.id


def _now(db: Database) -> float:
    with db.read() as session:
        return float(session.scalar(select(db_now())) or 0.0)
