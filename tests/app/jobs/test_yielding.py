"""Which running job is asked to give way to another owner's, and what follows in the queue."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from sqlalchemy import update

from app.jobs import queue, repository
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.jobs.kinds import Claim
from app.platform.database import Database
from app.platform.errors import LeaseLost
from app.platform.settings import Settings
from app.platform.tables import Worker
from tests.app.queue_steps import (
    OWNER,
    at_once,
    change,
    claimed,
    finish,
    hear_nothing,
    seen,
    submit,
)
from tests.long_form import long_form, one_in

SETTINGS = Settings()
CHECKPOINT = "checkpoints/ab/abcd"


def staff(db: Database, slots: int = 1) -> None:
    """Have one worker with so many slots."""
    with db.write() as session:
        repository.register(session, "wrk_a", host="a", version="1", slots=slots)


def running(db: Database, seconds: float = 100.0, owner: str = OWNER, **values: Any) -> Claim:
    """Claim a new job that has run for so many seconds, and has a checkpoint unless told otherwise."""
    submit(db, owner=owner)
    claim = claimed(db)
    assert claim.owner == owner
    row = db.reading(jobs.find, owner, claim.job_id)
    assert row.started_at is not None
    values = {"checkpoint_key": CHECKPOINT, "started_at": row.started_at - seconds} | values
    change(db, claim.job_id, **values)
    return claim


def ask(db: Database) -> str | None:
    return db.writing(queue.request_yield, SETTINGS)


def test_a_long_job_gives_way_and_comes_back(db: Database) -> None:
    staff(db)
    long = running(db)
    assert ask(db) is None  # nobody waits
    submit(db)
    assert ask(db) is None  # one owner alone never yields
    other = submit(db, owner="bob")
    assert not db.reading(queue.poll_requests, long).give_way
    assert ask(db) == long.job_id
    assert db.reading(queue.poll_requests, long).give_way
    assert ask(db) is None  # it is asked once
    assert db.writing(queue.give_way, long) == "queued"
    given = db.reading(jobs.find, OWNER, long.job_id)
    assert (given.attempt, given.checkpoint_key, given.yield_requested_at) == (0, CHECKPOINT, None)
    assert given.yielded_seconds == pytest.approx(100.0, abs=50.0)
    short = claimed(db)
    assert short.job_id == other.id  # not the older job that has just given way
    finish(db, short)
    back = claimed(db)
    assert (back.job_id, back.attempt, back.checkpoint_key) == (long.job_id, 1, CHECKPOINT)
    assert back.token > long.token
    finish(db, back)
    states = [state for _, _, state in seen(db, long.job_id)]
    assert states == ["queued", "running", "queued", "running", "succeeded"]
    with pytest.raises(LeaseLost):
        db.writing(queue.give_way, long)


@pytest.mark.parametrize(
    "values",
    one_in(
        3,
        [
            {"checkpoint_key": None},
            {"seconds": 30.0},
            {"yielded_seconds": 300.0},
            {"cancel_requested_at": 1.0},
            {"keep_requested_at": 1.0},
            {"attempt": 3, "max_attempts": 3},
            {"deadline_at": 4e9},
        ],
    ),
    ids=str,
)
def test_these_jobs_are_not_asked(db: Database, values: dict[str, Any]) -> None:
    staff(db)
    running(db, **values)
    submit(db, owner="bob")
    assert ask(db) is None


def test_these_jobs_are_asked(db: Database) -> None:
    staff(db)
    claim = running(db, yielded_seconds=90.0, attempt=2)
    submit(db, owner="bob")
    with db.write() as session:  # one beat of the worker is missed
        late = 2 * SETTINGS.heartbeat_seconds
        session.execute(update(Worker).values(seen_at=Worker.seen_at - late))
    assert ask(db) == claim.job_id


def test_nothing_is_asked_while_a_slot_is_free_or_no_worker_is_there(db: Database) -> None:
    long = running(db)
    submit(db, owner="bob")
    assert ask(db) is None
    staff(db, slots=2)
    assert ask(db) is None
    second = running(db, 70.0) if claimed(db).owner == OWNER else None
    assert second is None  # the free slot went to the other owner
    assert ask(db) is None  # who waits no more
    submit(db, owner="cleo")
    assert ask(db) is None  # two owners share the slots
    assert db.reading(jobs.find, OWNER, long.job_id).yield_requested_at is None


def test_a_job_that_may_not_begin_yet_is_not_waited_for(db: Database) -> None:
    staff(db)
    running(db)
    submit(db, owner="bob", not_before=4e9)
    assert ask(db) is None


@long_form
def test_of_several_jobs_the_longest_with_a_checkpoint_is_asked_first(db: Database) -> None:
    staff(db, slots=3)
    running(db, 300.0, checkpoint_key=None)
    longer, shorter = running(db, 200.0), running(db, 100.0)
    submit(db, owner="bob")
    assert ask(db) == longer.job_id
    assert ask(db) is None
    change(db, longer.job_id, yield_requested_at=1.0)  # it does not follow
    assert ask(db) == shorter.job_id


def test_an_owner_who_had_more_of_the_only_slot_waits(db: Database) -> None:
    staff(db)
    submit(db, owner="bob")
    finish(db, first := claimed(db))
    ended = db.reading(jobs.find, "bob", first.job_id).finished_at
    assert ended is not None
    change(db, first.job_id, started_at=ended - 500.0)
    long = running(db, 400.0)
    submit(db, owner="bob")
    assert ask(db) is None  # it would be claimed again at once
    row = db.reading(jobs.find, OWNER, long.job_id)
    assert row.started_at is not None
    change(db, long.job_id, started_at=row.started_at - 200.0)
    assert ask(db) == long.job_id


@long_form
def test_two_long_jobs_take_turns_of_growing_length(db: Database) -> None:
    staff(db)
    claim = running(db, 61.0)
    submit(db, owner="bob")
    slices: list[tuple[str, float]] = []
    slice_seconds = 61.0
    while len(slices) < 6:
        if ask(db) is None:  # the slice goes on
            slice_seconds += 30.0
            row = db.reading(jobs.find, claim.owner, claim.job_id)
            assert row.started_at is not None
            change(db, claim.job_id, started_at=row.started_at - 30.0)
            continue
        slices.append((claim.owner, slice_seconds))
        db.writing(queue.give_way, claim)
        claim = claimed(db)
        change(db, claim.job_id, checkpoint_key=CHECKPOINT)
        slice_seconds = 0.0
    assert [owner for owner, _ in slices] == [OWNER, "bob"] * 3
    for before, after in zip(slices, slices[2:], strict=False):
        assert after[1] >= before[1]


def test_dispatchers_ask_one_job_together(db: Database) -> None:
    staff(db, slots=2)
    claims = {running(db).job_id, running(db).job_id}
    submit(db, owner="bob"), submit(db, owner="cleo")
    answers = at_once(*[functools.partial(ask, db)] * 4)
    assert len([each for each in answers if each in claims]) == 1
    assert answers.count(None) == 3


def test_a_request_ends_with_the_attempt(db: Database) -> None:
    staff(db)
    claim = running(db)
    submit(db, owner="bob")
    assert ask(db) == claim.job_id
    hear_nothing(db)
    assert Reaper(db, SETTINGS).reap().requeued == [claim.job_id]
    assert db.reading(jobs.find, OWNER, claim.job_id).yield_requested_at is None


def test_a_cancelled_job_does_not_come_back(db: Database) -> None:
    claim = running(db)
    db.writing(jobs.cancel, OWNER, claim.job_id)
    assert db.writing(queue.give_way, claim) == "cancelled"
