"""Requests that wait for jobs share one poll."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from app.jobs.watcher import Snapshot, Watcher


def test_a_waiter_that_fails_leaves_the_others_watched() -> None:
    def fails(snapshot: Snapshot) -> bool:
        raise ZeroDivisionError

    async def wait() -> None:
        watcher = Watcher(lambda ids: dict.fromkeys(ids, ("succeeded", 1)))
        for _ in range(2):  # the second finds a watcher that still watches
            first = asyncio.create_task(watcher.wait("a", fails, 30))
            second = asyncio.create_task(watcher.wait("a", lambda seen: seen.final, 30))
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
        seen = await watcher.wait("a", lambda seen: seen.final, 30)
        await watcher.close()
        return seen

    assert asyncio.run(wait()) == Snapshot("succeeded", 1)


def test_nobody_waits_for_a_job_that_is_gone() -> None:
    async def wait() -> Snapshot | None:
        watcher = Watcher(lambda ids: {})
        seen = await watcher.wait("a", lambda seen: seen.final, 1e9)
        await watcher.close()
        return seen

    assert asyncio.run(asyncio.wait_for(wait(), 30)) == Snapshot(None, 0)
