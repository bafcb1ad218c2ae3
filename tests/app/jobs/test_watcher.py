"""Requests that wait for jobs share one poll."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable

import pytest

from app.jobs.watcher import FASTEST, SLOWEST, Schedule, Snapshot, Watcher
from tests.waiting import patience


def test_a_waiter_that_fails_leaves_the_others_watched() -> None:
    def fails(snapshot: Snapshot) -> bool:
        raise ZeroDivisionError

    async def wait() -> None:
        watcher = Watcher(lambda ids: dict.fromkeys(ids, ("succeeded", 1)))
        for _ in range(2):  # the second finds a watcher that still watches
            first = asyncio.create_task(watcher.wait("a", fails, patience()))
            second = asyncio.create_task(watcher.wait("a", lambda seen: seen.final, patience()))
            assert await second == Snapshot("succeeded", 1)
            with pytest.raises(ZeroDivisionError):
                await first
        await watcher.close()

    asyncio.run(wait())


def test_polls_that_fail_are_made_again() -> None:
    polls = 0

    def poll(ids: Iterable[str]) -> dict[str, tuple[str, int]]:
        nonlocal polls
        polls += 1
        if polls < 3:
            raise OSError("the database is away")
        return dict.fromkeys(ids, ("succeeded", 1))

    async def wait() -> Snapshot | None:
        watcher = Watcher(poll)
        seen = await watcher.wait("a", lambda seen: seen.final, patience())
        await watcher.close()
        return seen

    assert asyncio.run(wait()) == Snapshot("succeeded", 1)


def test_nobody_waits_for_a_job_that_is_gone() -> None:
    async def wait() -> Snapshot | None:
        watcher = Watcher(lambda ids: {})
        seen = await watcher.wait("a", lambda seen: seen.final, 1e9)
        await watcher.close()
        return seen

    assert asyncio.run(asyncio.wait_for(wait(), patience())) == Snapshot(None, 0)


class Work:
    """A job that a worker of this host, or of another, moves from event to event."""

    def __init__(self, *, here: bool) -> None:
        self.here, self.told, self.seq, self.token, self.polls = here, 0, 0, b"0", 0

    def read_token(self) -> bytes:
        return self.token

    def poll(self, ids: Iterable[str]) -> dict[str, tuple[str, int]]:
        self.polls += 1
        return dict.fromkeys(ids, ("running", self.seq))

    def is_newer(self, found: Snapshot) -> bool:
        return found.seq > self.told

    def happen(self) -> None:
        self.seq += 1
        if self.here:
            self.token = str(self.seq).encode()

    async def follow(self, watcher: Watcher, events: int) -> None:
        """See each event, one after the other."""
        for _ in range(events):
            self.told = self.seq
            waiting = asyncio.create_task(watcher.wait("a", self.is_newer, patience()))
            await asyncio.sleep(2 * FASTEST)
            self.happen()
            assert await waiting == Snapshot("running", self.seq)


def test_a_job_of_this_host_is_read_when_something_has_changed() -> None:
    work = Work(here=True)

    async def follow() -> int:
        watcher = Watcher(work.poll, work.read_token)
        other = asyncio.create_task(watcher.wait("a", lambda found: False, patience()))
        await work.follow(watcher, 2)
        before = work.polls
        idle = asyncio.get_running_loop().time()
        await asyncio.sleep(0.5 * SLOWEST)
        most = 1 + (asyncio.get_running_loop().time() - idle) / SLOWEST
        assert work.polls - before <= most
        await work.follow(watcher, 3)
        await watcher.close()
        await other
        return work.polls

    asyncio.run(follow())


def test_a_job_of_another_host_is_read_as_often_as_before() -> None:
    work = Work(here=False)

    async def follow() -> None:
        watcher = Watcher(work.poll, work.read_token)
        other = asyncio.create_task(watcher.wait("a", lambda found: False, patience()))
        await work.follow(watcher, 3)
        before = work.polls
        eventually = asyncio.get_running_loop().time() + patience()
        while work.polls < before + 3:  # not once in SLOWEST seconds
            assert asyncio.get_running_loop().time() < eventually
            await asyncio.sleep(FASTEST)
        await watcher.close()
        await other

    asyncio.run(follow())


class Polls:
    """The polls of a schedule, by a clock that goes from one poll to the next."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.now = 1000.0
        self.queries = 0
        self.by_job: Counter[str] = Counter()

    def run(self, seconds: float) -> None:
        """Poll for so long."""
        end = self.now + seconds
        while (due := self.schedule.next_due()) is not None and due <= end:
            self.now = due
            jobs = self.schedule.take_due(due)
            assert jobs
            self.queries += 1
            self.by_job.update(jobs)
        self.now = end


def test_a_new_waiter_does_not_raise_the_rate_of_those_that_wait_for_long() -> None:
    alone, beside = Polls(), Polls()
    for polls in (alone, beside):
        polls.schedule.add("old", polls.now - 3600.0, polls.now)
    alone.run(60.0)
    for number in range(600):
        turn = beside.schedule.add(f"new {number}", beside.now, beside.now)
        beside.run(0.1)
        beside.schedule.remove(turn)
    assert alone.by_job["old"] == 60.0 / SLOWEST
    assert beside.by_job["new 7"] >= 0.09 / FASTEST
    assert beside.by_job["old"] <= 2 * alone.by_job["old"] + 1


def test_many_waiters_cost_few_queries() -> None:
    """They began at different times, so none is due at the same time as another."""
    polls = Polls()
    for number in range(100):
        polls.schedule.add(f"job {number}", polls.now - 600.0, polls.now + number * 0.0021)
    polls.run(10.0)
    assert polls.queries <= 2 * 10.0 / SLOWEST + 1
    for number in range(100):
        assert 10.0 / SLOWEST - 2 <= polls.by_job[f"job {number}"] <= 2 * 10.0 / SLOWEST


def test_a_job_is_polled_as_often_as_its_youngest_waiter_needs() -> None:
    polls = Polls()
    polls.schedule.add("a", polls.now - 600.0, polls.now)
    turn = polls.schedule.add("a", polls.now, polls.now)
    polls.run(0.1)
    assert polls.by_job["a"] >= 0.09 / FASTEST
    polls.schedule.remove(turn)
    before = polls.by_job["a"]
    polls.run(1.0)
    assert polls.by_job["a"] - before <= 1.0 / SLOWEST
    assert Schedule().next_due() is None


def test_a_wait_that_continues_others_is_as_old_as_they_are() -> None:
    """A stream of events waits again after each of them: it polls no more often than before."""
    polls, began = Polls(), 1000.0
    polls.now += 600.0
    for _ in range(20):
        turn = polls.schedule.add("a", began, polls.now)
        polls.run(1.0)
        polls.schedule.remove(turn)
    assert polls.by_job["a"] <= 20.0 / SLOWEST
