"""One watcher per process: all requests that wait for a job share a single query."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from app.platform.errors import Unavailable
from app.platform.tables import FINAL_STATES

log = logging.getLogger(__name__)

FASTEST, SLOWEST = 0.005, 0.25  # seconds between two polls
SHARE = 0.05  # delay of a poll, as a fraction of the time waited so far


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job's state at one poll; None for a deleted job."""

    state: str | None
    seq: int

    @property
    def final(self) -> bool:
        """Return True if nothing more will happen to the job."""
        return self.state is None or self.state in FINAL_STATES


Poll = Callable[[Iterable[str]], dict[str, tuple[str, int]]]


@dataclass(eq=False, slots=True)
class _Waiter:
    until: Callable[[Snapshot], bool]
    since: float
    answer: asyncio.Future[Snapshot | None]


class Watcher:
    """Polls the jobs that someone waits for, all in one query: often at first, ever less as the wait grows.

    `poll` maps job ids to (state, last event's number); ids that are gone are missing from its answer.
    """

    def __init__(self, poll: Poll) -> None:
        self._poll = poll
        self._waiters: defaultdict[str, set[_Waiter]] = defaultdict(set)
        self.closed = False
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(
        self, job_id: str, until: Callable[[Snapshot], bool], seconds: float
    ) -> Snapshot | None:
        """Wait until `until` is true for the job; None when the time is up or the server is closing."""
        if self.closed:
            return None
        loop = asyncio.get_running_loop()
        waiter = _Waiter(until, time.monotonic(), loop.create_future())
        self._waiters[job_id].add(waiter)
        self._asked.set()
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        try:
            return await asyncio.wait_for(waiter.answer, seconds)
        except TimeoutError:
            return None
        finally:
            self._waiters[job_id].discard(waiter)
            if not self._waiters[job_id]:
                del self._waiters[job_id]

    def release(self) -> None:
        """Release every waiter, and never wait again."""
        self.closed = True
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.answer.done():
                    waiter.answer.set_result(None)

    async def close(self) -> None:
        """Release every waiter, and stop polling."""
        self.release()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        while True:
            if not self._waiters:
                self._asked.clear()
                await self._asked.wait()
            polled = list(self._waiters)
            try:
                seen = await run_in_threadpool(self._poll, polled)
            except Exception as error:
                if not isinstance(error, Unavailable):  # `Database` logs an outage, once
                    log.warning("the watcher could not poll: %s", error)
                await asyncio.sleep(SLOWEST)
                continue
            for job_id in polled:
                self._answer(job_id, Snapshot(*seen.get(job_id, (None, 0))))
            await self._pause()

    def _answer(self, job_id: str, snapshot: Snapshot) -> None:
        for waiter in self._waiters.get(job_id, ()):
            if waiter.answer.done():
                continue
            try:
                if waiter.until(snapshot):
                    waiter.answer.set_result(snapshot)
            except Exception as error:  # the error of one waiter: the others still wait
                waiter.answer.set_exception(error)

    async def _pause(self) -> None:
        """Sleep a fraction of the shortest wait so far, so that each waiter is late by at most that fraction. A new
        waiter ends the sleep.
        """
        youngest = max(
            (waiter.since for group in self._waiters.values() for waiter in group), default=None
        )
        if youngest is None:
            return
        pause = min(max((time.monotonic() - youngest) * SHARE, FASTEST), SLOWEST)
        self._asked.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), pause)
