"""The queue as a worker sees it: claims, fencing, ends."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import text

from app.access import service as access
from app.jobs import queue, queue_repository, repository
from app.jobs import service as jobs
from app.jobs.kinds import Claim
from app.platform import logging as logs
from app.platform.blobs import Blob
from app.platform.database import Database
from app.platform.errors import CancelRequested, LeaseLost
from app.platform.settings import Settings
from app.platform.tables import Dataset, DatasetStatus, JobState
from tests.app.queue_steps import (
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
from tests.long_form import LONG_FORM, long_form, rest
from tests.raising import raises

SETTINGS = Settings()


def ran(db: Database, owner: str, seconds: float, *, ago: float = 0.0, **values: Any) -> None:
    """A job of the owner that took these seconds of a slot, and ended that many seconds ago."""
    job = submit(db, owner=owner)
    finish(db, claimed(db))
    ended = db.reading(jobs.find, owner, job.id).finished_at
    assert ended is not None
    change(db, job.id, started_at=ended - ago - seconds, finished_at=ended - ago, **values)


LATER = 4e9  # a time of the database's clock that no test lives to see


class TestClaim:
    def test_it_hands_out_lease_token_and_attempt(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db, Settings(lease_seconds=60.0), "wrk_a")
        assert (claim.job_id, claim.attempt, claim.token) == (job.id, 1, 1)
        assert (claim.owner, claim.kind, claim.spec) == (OWNER, "train", {"seed": 0})
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.worker_id) == ("running", "wrk_a")
        assert kept.started_at is not None
        assert kept.lease_expires_at == pytest.approx(kept.started_at + 60.0, abs=1.0)
        assert seen(db, job.id)[-1] == (2, "state", "running")

    def test_an_empty_queue_gives_none(self, db: Database) -> None:
        assert not db.reading(queue.has_work, SETTINGS)
        assert db.writing(queue.claim, SETTINGS, "wrk_a") is None
        submit(db)
        assert db.reading(queue.has_work, SETTINGS)
        claimed(db)
        assert not db.reading(queue.has_work, SETTINGS)
        assert db.writing(queue.claim, SETTINGS, "wrk_a") is None

    def test_priority_comes_before_age(self, db: Database) -> None:
        old, urgent, young = submit(db), submit(db, priority=1), submit(db)
        order = [claimed(db).job_id for _ in range(3)]
        assert order == [urgent.id, old.id, young.id]

    def test_priority_does_not_come_before_another_owner(self, db: Database) -> None:
        urgent = [submit(db, priority=100).id for _ in range(3)]
        other = submit(db, owner="bob", priority=-100).id
        assert claimed(db).job_id == urgent[0]
        assert claimed(db).job_id == other

    @pytest.mark.parametrize(
        ("of_bob", "goes_first"), [(100.0, "bob"), *rest((140.0, OWNER))], ids=["fewer", "more"]
    )
    def test_one_slot_is_shared_by_seconds_not_by_jobs(
        self, db: Database, of_bob: float, goes_first: str
    ) -> None:
        ran(db, OWNER, 600.0)
        for _ in range(5):
            ran(db, "bob", of_bob)
        submit(db, priority=100), submit(db, owner="bob")
        assert claimed(db).owner == goes_first

    def test_neither_old_seconds_count_nor_time_in_which_a_job_waited_for_its_parts(
        self, db: Database
    ) -> None:
        ran(db, OWNER, 3000.0, ago=3700.0)
        ran(db, OWNER, 3000.0, deadline_at=LATER)
        ran(db, "bob", 60.0)
        submit(db, owner="bob"), submit(db)
        assert claimed(db).owner == OWNER

    @long_form
    def test_one_slot_is_kept_free_for_other_owners(self, db: Database) -> None:
        with db.write() as session:
            repository.register(session, "wrk_a", host="a", version="1", slots=3)
            access.create(session, OWNER, "a key", ["train"])
        for _ in range(4):
            submit(db)
        claims = [claimed(db), claimed(db)]
        assert db.reading(queue.has_work, SETTINGS)  # it is the only owner with a key
        db.writing(access.create, "bob", "a key", ["train"])
        assert not db.reading(queue.has_work, SETTINGS)
        assert db.writing(queue.claim, SETTINGS, "wrk_a") is None
        assert db.reading(queue.has_work, Settings(quota_running_jobs=3))
        other = submit(db, owner="bob")
        assert claimed(db).job_id == other.id
        finish(db, claims.pop())
        assert claimed(db).owner == OWNER

    def test_a_job_waits_for_its_time(self, db: Database) -> None:
        job = submit(db, not_before=LATER)
        assert not db.reading(queue.has_work, SETTINGS)
        assert db.writing(queue.claim, SETTINGS, "wrk_a") is None
        change(db, job.id, not_before=1.0)
        assert db.reading(queue.has_work, SETTINGS)
        assert claimed(db).job_id == job.id

    def test_a_kind_that_the_worker_does_not_know_is_left_in_the_queue(self, db: Database) -> None:
        job = submit(db)
        known = {"ingest", "evaluate"}
        assert not db.reading(queue.has_work, SETTINGS, known)
        assert db.writing(queue.claim, SETTINGS, "wrk_old", known) is None
        assert db.writing(queue.claim, SETTINGS, "wrk_old", ()) is None
        assert db.reading(queue.has_work, SETTINGS, {job.kind, *known})
        claim = db.writing(queue.claim, SETTINGS, "wrk_new", {job.kind, *known})
        assert claim is not None
        assert claim.job_id == job.id

    def test_a_clock_set_back_does_not_hide_a_new_job(self, db: Database) -> None:
        job = submit(db)
        change(db, job.id, created_at=LATER)
        assert claimed(db).job_id == job.id

    def test_many_claimers_take_each_job_exactly_once(self, db: Database) -> None:
        ids = {submit(db, owner=f"owner{n % 3}").id for n in range(40 if LONG_FORM else 16)}

        def work(worker: str) -> list[Claim]:
            claims = []
            # An eager claimer may find every job locked by the others: only an empty queue ends it.
            while db.reading(queue.has_work, SETTINGS):
                claim = db.writing(queue.claim, SETTINGS, worker)
                if claim is not None:
                    claims.append(claim)
            return claims

        taken = at_once(*(functools.partial(work, f"wrk_{n}") for n in range(8)))
        counts = Counter(claim.job_id for claims in taken for claim in claims)
        assert counts == dict.fromkeys(ids, 1)
        assert {claim.token for claims in taken for claim in claims} == {1}

    def test_on_postgresql_a_claim_waits_for_no_other(self, postgres_url: str) -> None:
        db = Database(postgres_url)
        other = Database(postgres_url)  # a worker's: no thread writes within its own transaction
        first, second = submit(db), submit(db)
        with db.write() as slow:
            taken = queue_repository.claim(slow, "wrk_a", 60.0)
            with other.write() as quick:
                quick.execute(text("SET LOCAL lock_timeout = '20s'"))  # waiting would be for good
                also_taken = queue_repository.claim(quick, "wrk_b", 60.0)
        assert taken is not None
        assert also_taken is not None
        assert (taken[0].id, also_taken[0].id) == (first.id, second.id)
        other.close()
        db.close()


class TestFencing:
    def test_a_stale_token_can_do_nothing(self, db: Database) -> None:
        job = submit(db)
        stale = claimed(db, worker="wrk_a")
        db.writing(queue.give_back, stale)  # the attempt number repeats: the token alone must tell
        fresh = claimed(db, worker="wrk_b")
        assert (fresh.attempt, fresh.token) == (stale.attempt, stale.token + 1)
        before = seen(db, job.id)
        for act in (
            lambda: db.writing(queue.heartbeat, SETTINGS, stale, {"step": 1}),
            lambda: db.reading(queue.poll_requests, stale),
            lambda: finish(db, stale, model_id="mdl_stale"),
            lambda: db.writing(queue.fail, stale, {"code": "x"}),
            lambda: db.writing(queue.retry_later, stale, "x"),
            lambda: db.writing(queue.give_back, stale),
        ):
            with raises(LeaseLost, job.id):
                act()
        assert seen(db, job.id) == before
        finish(db, fresh, model_id="mdl_fresh")
        assert db.reading(jobs.find, OWNER, job.id).model_id == "mdl_fresh"

    def test_a_job_that_ended_cannot_end_again(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        finish(db, claim)
        for act in (
            lambda: finish(db, claim),
            lambda: db.writing(queue.fail, claim, None),
            lambda: db.writing(queue.heartbeat, SETTINGS, claim),
            lambda: db.writing(queue.give_back, claim),
        ):
            with pytest.raises(LeaseLost):
                act()
        assert seen(db, job.id)[-1] == (3, "state", "succeeded")

    def test_what_a_stale_worker_wrote_is_rolled_back(self, db: Database) -> None:
        submit(db)
        stale = claimed(db)
        db.writing(queue.give_back, stale)
        dataset = add_dataset(db)

        def complete() -> None:
            with db.write() as session:
                session.get_one(Dataset, dataset.id).rows = 99
                session.flush()
                queue.finish(session, stale)

        with pytest.raises(LeaseLost):
            complete()
        assert find_dataset(db, dataset.id).rows is None

    def test_of_many_who_finish_one_succeeds(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        results = at_once(
            *(functools.partial(finish, db, claim, model_id=f"mdl_{n}") for n in range(6))
        )
        assert [type(result) for result in results].count(LeaseLost) == 5
        winner = results.index(None)
        assert db.reading(jobs.find, OWNER, job.id).model_id == f"mdl_{winner}"


class TestHeartbeat:
    def test_it_prolongs_the_lease_and_tells_progress(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        change(db, job.id, lease_expires_at=1.0)
        assert not db.writing(queue.heartbeat, SETTINGS, claim).cancel_requested
        kept = db.reading(jobs.find, OWNER, job.id)
        assert kept.lease_expires_at is not None
        assert kept.lease_expires_at > 1.0
        assert (kept.heartbeat_count, kept.progress, kept.event_seq) == (1, {}, 2)
        db.writing(queue.heartbeat, SETTINGS, claim, {"fraction": 0.5, "step": 1, "of": 2})
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.heartbeat_count, kept.event_seq) == (2, 3)
        assert kept.progress == {"fraction": 0.5, "step": 1, "of": 2}
        assert seen(db, job.id)[-1] == (3, "progress", None)
        db.writing(queue.heartbeat, SETTINGS, claim, {"fraction": 0.75}, is_event=False)
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.heartbeat_count, kept.progress, kept.event_seq) == (3, {"fraction": 0.75}, 3)
        assert seen(db, job.id)[-1] == (3, "progress", None)

    def test_it_hears_of_a_cancel(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        assert not db.reading(queue.poll_requests, claim).cancel
        db.writing(jobs.cancel, OWNER, job.id)
        assert db.writing(queue.heartbeat, SETTINGS, claim).cancel_requested
        assert db.reading(queue.poll_requests, claim).cancel

    def test_event_numbers_have_no_gap_whoever_writes_at_once(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        heartbeat_count = [
            functools.partial(db.writing, queue.heartbeat, SETTINGS, claim, {"step": n})
            for n in range(7)
        ]
        at_once(*heartbeat_count, functools.partial(db.writing, jobs.cancel, OWNER, job.id))
        db.writing(queue.fail, claim, None, state=JobState.CANCELLED)
        assert [seq for seq, _, _ in seen(db, job.id)] == list(range(1, 12))

    def test_event_numbers_go_on_in_the_next_attempt(self, db: Database) -> None:
        job = submit(db)
        db.writing(queue.give_back, claimed(db))
        finish(db, claimed(db))
        assert [(seq, state) for seq, _, state in seen(db, job.id)] == [
            (1, "queued"),
            (2, "running"),
            (3, "queued"),
            (4, "running"),
            (5, "succeeded"),
        ]


class TestCheckpoint:
    def test_the_latest_is_handed_to_the_next_attempt(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        assert claim.checkpoint_key is None
        db.writing(queue.keep_checkpoint, claim, Blob("checkpoints/ab/abc", "", 1))
        db.writing(queue.keep_checkpoint, claim, Blob("checkpoints/cd/cde", "", 1))
        assert db.writing(queue.give_back, claim) == "queued"
        claim = claimed(db)
        assert (claim.attempt, claim.checkpoint_key) == (1, "checkpoints/cd/cde")
        db.writing(queue.retry_later, claim, "a dead process")
        change(db, job.id, not_before=0.0)
        claim = claimed(db)
        assert (claim.attempt, claim.checkpoint_key) == (2, "checkpoints/cd/cde")
        finish(db, claim)
        assert db.reading(jobs.find, OWNER, job.id).checkpoint_key is None

    def test_whoever_lost_the_lease_can_keep_none(self, db: Database) -> None:
        job = submit(db)
        stale = claimed(db)
        db.writing(queue.give_back, stale)
        with pytest.raises(LeaseLost):
            db.writing(queue.keep_checkpoint, stale, Blob("checkpoints/ab/abc", "", 1))
        claim = claimed(db)
        with pytest.raises(LeaseLost):
            db.writing(queue.keep_checkpoint, stale, Blob("checkpoints/ab/abc", "", 1))
        assert db.reading(jobs.find, OWNER, job.id).checkpoint_key is None
        db.writing(queue.fail, claim, None, state=JobState.CANCELLED)
        with pytest.raises(LeaseLost):
            db.writing(queue.keep_checkpoint, claim, Blob("checkpoints/ab/abc", "", 1))


class TestCancelOrSucceed:
    def test_a_success_after_a_cancel_is_refused(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        db.writing(jobs.cancel, OWNER, job.id)
        with pytest.raises(CancelRequested):
            finish(db, claim, model_id="mdl_x")
        db.writing(queue.fail, claim, None, state=JobState.CANCELLED)
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.model_id, kept.error) == ("cancelled", None, None)

    @pytest.mark.parametrize("round_", [*range(3), *rest(*range(3, 10))])
    def test_the_race_has_one_outcome(self, db: Database, round_: int) -> None:
        job = submit(db)
        claim = claimed(db)
        finished, cancelled = at_once(
            functools.partial(finish, db, claim, model_id="mdl_x"),
            functools.partial(db.writing, jobs.cancel, OWNER, job.id),
        )
        kept = db.reading(jobs.find, OWNER, job.id)
        if finished is None:
            assert (kept.state, kept.model_id) == ("succeeded", "mdl_x")
            assert kept.cancel_requested_at is None
            assert cancelled.code == "job_finished"
        else:
            assert isinstance(finished, CancelRequested)
            assert (kept.state, kept.model_id) == ("running", None)
            assert cancelled[1] is True

    def test_a_cancel_of_a_queued_job_races_a_claim(self, db: Database) -> None:
        for _ in range(10 if LONG_FORM else 4):
            job = submit(db)
            claim, cancelled = at_once(
                functools.partial(db.writing, queue.claim, SETTINGS, "wrk_a"),
                functools.partial(db.writing, jobs.cancel, OWNER, job.id),
            )
            assert cancelled[1] is True
            kept = db.reading(jobs.find, OWNER, job.id)
            assert kept.state == ("cancelled" if claim is None else "running")
            assert kept.cancel_requested_at is not None
            if claim is not None:
                db.writing(queue.fail, claim, None, state=JobState.CANCELLED)


class TestEnds:
    def test_a_failure_keeps_its_problem(self, db: Database) -> None:
        job = submit(db)
        error = {"code": "one_class", "title": "t", "detail": "d", "errors": []}
        db.writing(queue.fail, claimed(db), error)
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.state, kept.error, kept.lease_expires_at) == ("failed", error, None)
        assert kept.finished_at is not None
        assert db.reading(jobs.events, OWNER, job.id)[-1].data == {
            "state": "failed",
            "attempt": 1,
            "code": "one_class",
        }

    def test_a_job_times_out(self, db: Database) -> None:
        job = submit(db)
        db.writing(queue.fail, claimed(db), {"code": "timeout"}, state=JobState.TIMED_OUT)
        assert db.reading(jobs.find, OWNER, job.id).state == JobState.TIMED_OUT

    @pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED])
    def test_fail_is_for_ends_without_a_result(self, db: Database, state: JobState) -> None:
        submit(db)
        claim = claimed(db)
        with raises(ValueError, state):
            db.writing(queue.fail, claim, None, state=state)

    def test_an_upload_that_fails_leaves_no_dataset_processing(self, db: Database) -> None:
        job = submit(db, kind="ingest")
        dataset = add_dataset(db, job.id)
        faults = [{"line": 3, "column": "age", "detail": "not a number"}]
        db.writing(queue.fail, claimed(db), {"code": "bad_table", "detail": "d", "errors": faults})
        kept = find_dataset(db, dataset.id)
        assert (kept.status, kept.errors) == (DatasetStatus.INVALID, faults)

    def test_a_dataset_that_is_decided_already_is_left_alone(self, db: Database) -> None:
        job = submit(db, kind="ingest")
        dataset = add_dataset(db, job.id, status=DatasetStatus.INVALID, errors=[{"detail": "a"}])
        db.writing(queue.fail, claimed(db), {"code": "bad_table", "detail": "b", "errors": []})
        assert find_dataset(db, dataset.id).errors == [{"detail": "a"}]


class TestRetryLater:
    def test_it_waits_longer_each_time_and_fails_once_attempts_are_spent(
        self, db: Database
    ) -> None:
        settings = Settings(job_max_attempts=3)
        job = submit(db, settings)
        for attempt, delay in ((1, 5.0), (2, 20.0)):
            claim = claimed(db)
            assert claim.attempt == attempt
            assert db.writing(queue.retry_later, claim, "disk full") == JobState.QUEUED
            assert db.writing(queue.claim, settings, "wrk_a") is None
            kept = db.reading(jobs.find, OWNER, job.id)
            event = db.reading(jobs.events, OWNER, job.id, limit=200)[-1]
            assert kept.not_before == pytest.approx(event.at + delay, abs=2.0)
            assert event.data["reason"] == "disk full"
            change(db, job.id, not_before=0.0)
        assert db.writing(queue.retry_later, claimed(db), "disk full") == JobState.FAILED
        kept = db.reading(jobs.find, OWNER, job.id)
        assert kept.error is not None
        assert kept.error["code"] == "attempts_spent"
        assert "3 attempts" in kept.error["detail"]
        assert "disk full" in kept.error["detail"]

    def test_a_job_that_was_asked_to_stop_is_not_tried_again(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        db.writing(jobs.cancel, OWNER, job.id)
        assert db.writing(queue.retry_later, claim, "x") == JobState.CANCELLED
        assert db.reading(jobs.find, OWNER, job.id).state == JobState.CANCELLED


class TestGiveBack:
    def test_the_attempt_is_restored(self, db: Database) -> None:
        settings = Settings(job_max_attempts=1)
        job = submit(db, settings)
        assert db.writing(queue.give_back, claimed(db)) == JobState.QUEUED
        kept = db.reading(jobs.find, OWNER, job.id)
        assert (kept.attempt, kept.not_before, kept.worker_id) == (0, 0.0, None)
        assert claimed(db).attempt == 1

    def test_a_job_that_was_asked_to_stop_ends(self, db: Database) -> None:
        job = submit(db)
        claim = claimed(db)
        db.writing(jobs.cancel, OWNER, job.id)
        assert db.writing(queue.give_back, claim) == JobState.CANCELLED


# --- the log ----------------------------------------------------------------------------------------


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The fields of the lines about jobs; none of them holds what the owner wrote."""
    records = [record for record in caplog.records if record.name == "rankwright.jobs"]
    for record in records:
        assert "churn" not in record.getMessage()
        assert str(record.fields["job_id"]) in record.getMessage()  # type: ignore[attr-defined]
    found = [record.fields for record in records]  # type: ignore[attr-defined]
    caplog.clear()
    return found


def test_each_end_of_a_job_is_one_line(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    def begin(request: str) -> Claim:
        token = logs.request_id.set(request)
        submit(db)
        logs.request_id.reset(token)
        claim = claimed(db)
        (line,) = lines(caplog)
        assert (line["outcome"], line["worker"]) == ("claimed", "wrk_a")
        assert (line["job_id"], line["request_id"]) == (claim.job_id, request)
        return claim

    def ended(outcome: str, claim: Claim, **more: object) -> None:
        (line,) = lines(caplog)
        assert line.pop("seconds") >= 0
        assert line == {
            "job_id": claim.job_id,
            "parent_id": None,
            "kind": "train",
            "owner": OWNER,
            "attempt": 1,
            "outcome": outcome,
            "request_id": claim.request_id,
            **more,
        }

    finish(db, claim := begin("req-1"))
    ended("succeeded", claim)
    error = {"code": "bad_table", "detail": "churn is not a number"}
    db.writing(queue.fail, claim := begin("req-2"), error)
    ended("failed", claim, code="bad_table")
    db.writing(queue.time_out, claim := begin("req-3"))
    ended("timed_out", claim, code="timed_out")
    db.writing(queue.retry_later, claim := begin("req-4"), "it died")
    ended("queued", claim, reason="it died")
    change(db, claim.job_id, not_before=4e9)
    db.writing(jobs.cancel, OWNER, claim.job_id)  # of a request of its own, and not of req-4
    ended("cancelled", claim)
    db.writing(queue.give_back, claim := begin("req-5"))
    ended("queued", claim, reason="the worker is shutting down")


def test_what_is_undone_is_not_logged(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    submit(db)
    claim = claimed(db)
    lines(caplog)

    def finish_and_break() -> None:
        with db.write() as session:
            queue.finish(session, claim)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        finish_and_break()
    assert lines(caplog) == []
