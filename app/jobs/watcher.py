"""The watcher of a process: all requests that wait for jobs share a single query."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from app.platform.errors import Unavailable
from app.platform.tables import FINAL_STATES

log = logging.getLogger(__name__)

FASTEST, SLOWEST = 0.005, 0.25  # seconds between two polls for one waiter
SHARE = 0.05  # delay of a poll, as a fraction of the time waited so far
NEARLY_DUE = 0.5  # fraction of a waiter's delay that may be left when its job is polled with others


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State and last event number at one poll; None for a deleted job."""

    state: str | None
    seq: int

    @property
    def final(self) -> bool:
        """The job cannot change any more."""
        return self.state is None or self.state in FINAL_STATES


Poll = Callable[[Iterable[str]], dict[str, tuple[str, int]]]


@dataclass(eq=False, slots=True)
class Turn:
    """The time at which one waiter's job is polled next."""

    job_id: str
    since: float
    due: float
    delay: float


class Schedule:
    """When jobs are polled: each waiter's polls become less frequent as its wait grows.

    A job is polled when one of its waiters is due. Others that are nearly due are polled with it, so that many waiters
    cost few queries.
    """

    def __init__(self) -> None:
        self._turns: set[Turn] = set()

    def add(self, job_id: str, since: float, now: float) -> Turn:
        """Add a waiter that has waited since `since`."""
        turn = Turn(job_id, since, now, 0.0)
        self._turns.add(turn)
        self._delay(turn, now)
        return turn

    def remove(self, turn: Turn) -> None:
        self._turns.discard(turn)

    def next_due(self) -> float | None:
        """Return None without waiters."""
        return min((turn.due for turn in self._turns), default=None)

    def take_due(self, now: float) -> list[str]:
        """Return the jobs to poll now, and set the next time of all their waiters."""
        if not any(turn.due <= now for turn in self._turns):
            return []
        jobs = {turn.job_id for turn in self._turns if turn.due - NEARLY_DUE * turn.delay <= now}
        for turn in self._turns:
            if turn.job_id in jobs:
                self._delay(turn, now)
        return sorted(jobs)

    def _delay(self, turn: Turn, now: float) -> None:
        turn.delay = min(max((now - turn.since) * SHARE, FASTEST), SLOWEST)
        turn.due = now + turn.delay


@dataclass(eq=False, slots=True)
class _Waiter:
    """A request that waits for a job: its condition, and the future of its answer."""

    until: Callable[[Snapshot], bool]
    answer: asyncio.Future[Snapshot | None]


class _Seen(NamedTuple):
    """A job at one poll, with the token and the time before it."""

    snapshot: Snapshot
    token: bytes | None
    at: float


class Watcher:
    """Polls the jobs for which requests wait; all jobs that are due are read by one query.

    `poll` maps job ids to (state, last event's number); ids that are gone are missing from its answer. `token` reads
    the `HostTokens.jobs` of this host. If the last change came with another token, the workers are on this host, and a
    job is read only after the token has changed, or after `SLOWEST` seconds.
    """

    def __init__(self, poll: Poll, token: Callable[[], bytes | None] = lambda: None) -> None:
        self._poll = poll
        self._token = token
        self._is_told = False
        self._seen: dict[str, _Seen] = {}
        self._waiters: defaultdict[str, set[_Waiter]] = defaultdict(set)
        self._schedule = Schedule()
        self.closed = False
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def wait(
        self,
        job_id: str,
        until: Callable[[Snapshot], bool],
        seconds: float,
        since: float | None = None,
    ) -> Snapshot | None:
        """Wait until `until(snapshot)`; returns None when the time is up or the server is closing.

        `since` is the time of `time.monotonic()` at which the caller began to wait, if this wait continues others.
        """
        if self.closed:
            return None
        loop = asyncio.get_running_loop()
        waiter = _Waiter(until, loop.create_future())
        self._waiters[job_id].add(waiter)
        now = time.monotonic()
        turn = self._schedule.add(job_id, now if since is None else since, now)
        self._asked.set()
        if self._task is None:
            # In no request's context: the polls outlive the request, and belong to no trace.
            self._task = asyncio.create_task(self._watch(), context=contextvars.Context())
        try:
            return await asyncio.wait_for(waiter.answer, seconds)
        except TimeoutError:
            return None
        finally:
            self._schedule.remove(turn)
            self._waiters[job_id].discard(waiter)
            if not self._waiters[job_id]:
                del self._waiters[job_id]
                self._seen.pop(job_id, None)

    def release(self) -> None:
        """Release every waiter; later waits return at once."""
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
        """Poll the jobs that are due and answer their waiters, until cancelled."""
        while True:
            self._asked.clear()
            now = time.monotonic()
            due = self._schedule.take_due(now)
            if not due:
                await self._pause()
                continue
            token = self._token()
            polled = [job_id for job_id in due if self._may_have_changed(job_id, token, now)]
            if not polled:
                continue
            try:
                seen = await run_in_threadpool(self._poll, polled)
            except Exception as error:
                if not isinstance(error, Unavailable):  # `Database` logs an outage, once
                    log.warning("the watcher could not poll: %s", error)
                await asyncio.sleep(SLOWEST)
                continue
            for job_id in polled:
                snapshot = Snapshot(*seen.get(job_id, (None, 0)))
                self._note(job_id, _Seen(snapshot, token, now))
                self._answer(job_id, snapshot)

    def _may_have_changed(self, job_id: str, token: bytes | None, now: float) -> bool:
        """Return False if the job was read after the last change on its worker's host."""
        seen = self._seen.get(job_id)
        if token is None or not self._is_told or seen is None:
            return True
        return seen.token != token or now >= seen.at + SLOWEST

    def _note(self, job_id: str, found: _Seen) -> None:
        if job_id not in self._waiters:
            return
        before = self._seen.get(job_id)
        if before is not None and before.snapshot != found.snapshot:
            # The token now, because the change may have come between the token before the poll and the poll.
            self._is_told = before.token != self._token()
        self._seen[job_id] = found

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
        """Sleep until a job is due, or until there is a new waiter."""
        due = self._schedule.next_due()
        pause = None if due is None else due - time.monotonic()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), pause)
