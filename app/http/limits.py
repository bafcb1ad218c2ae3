"""Limits of one API process: the request rate of each key or address, and each owner's number of open requests."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from app.platform.errors import ServiceError, TooMany, Unavailable

MAX_BUCKETS = 10_000


class RateLimiter:
    """A token bucket for each name. A request takes one token; `per_second` tokens are refilled, up to `burst`.

    If there are too many buckets, full ones are dropped; if that is not enough, the fuller half is. So a name that has
    used up its tokens is not forgotten because others are made up. There is no lock, because only the event loop uses
    it. `rule` and `code` are the message and the code of the error.
    """

    def __init__(
        self,
        per_second: float,
        burst: int,
        rule: str,
        code: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._rule = rule
        self._code = code
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Raises TooMany with the time of the next token."""
        now = self._clock()
        tokens, at = self._buckets.get(name, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._per_second)
        if tokens < 1.0:
            wait = (1.0 - tokens) / self._per_second
            raise TooMany(self._rule, code=self._code, retry_after=math.ceil(wait))
        if len(self._buckets) >= MAX_BUCKETS and name not in self._buckets:
            self._forget_full(now)
        self._buckets[name] = (tokens - 1.0, now)

    def give_back(self, name: str) -> None:
        """Used for a request that does not count."""
        if name in self._buckets:
            tokens, at = self._buckets[name]
            self._buckets[name] = (tokens + 1.0, at)

    def _forget_full(self, now: float) -> None:
        """Drop full buckets, and the fuller half of the others if there are still too many."""
        refilled_in = self._burst / self._per_second
        self._buckets = {
            name: bucket for name, bucket in self._buckets.items() if now - bucket[1] < refilled_in
        }
        if len(self._buckets) >= MAX_BUCKETS:  # a caller can make up any number of addresses

            def tokens(name: str) -> float:
                left, at = self._buckets[name]
                return left + (now - at) * self._per_second

            emptiest = sorted(self._buckets, key=tokens)[: MAX_BUCKETS // 2]
            self._buckets = {name: self._buckets[name] for name in emptiest}


RETRY_SECONDS = 5


class MemoryBudget:
    """The bytes of request bodies and waiting responses in memory; for the event loop only.

    An owner may occupy at most as many bytes as are free, so that one owner always leaves space for the next one.
    `show` is called with the difference whenever the number of bytes changes.
    """

    def __init__(self, most: int, show: Callable[[int], object] = lambda change: None) -> None:
        self._most = most
        self._show = show
        self._held: defaultdict[str, int] = defaultdict(int)
        self.held = 0

    def add(self, owner: str, size: int) -> None:
        """Raises Unavailable, and counts nothing, if the owner may not have more now."""
        free = self._most - self.held
        held = self._held.get(owner, 0)
        if held + size > free:
            detail = (
                "your requests and responses can use at most as much memory in this process as is free; they "
                f"use {held} bytes, this request needs {size} more, and {free} of {self._most} are free: try "
                "again soon"
            )
            headers = {"Connection": "close"}  # the rest of the body is not read
            raise Unavailable(
                detail, code="too_many_bytes", retry_after=RETRY_SECONDS, headers=headers
            )
        self._change(owner, size)

    def remove(self, owner: str, size: int) -> None:
        """Stop counting bytes that `add` counted."""
        self._change(owner, -size)

    def _change(self, owner: str, change: int) -> None:
        self._held[owner] += change
        if not self._held[owner]:
            del self._held[owner]
        self.held += change
        self._show(change)


def release_at_end(scope: MutableMapping[str, Any], release: Callable[[], object]) -> None:
    """Call `release` once when the request of an ASGI scope has ended, however it ends."""
    earlier = scope.get("release")

    def release_all() -> None:
        try:
            release()
        finally:
            if earlier is not None:
                earlier()

    scope["release"] = release_all


@dataclass(eq=False)
class Permit:
    """A permit of a `FairSemaphore`, and its upload's size in bytes: the larger of announced and received."""

    size: int = 0


class FairSemaphore:
    """A semaphore with permits per owner that never blocks a thread. It raises an error if none is free, or waits.

    Used only on the event loop. An owner may have at most as many permits as are free: half of all permits if alone, a
    third next to another owner with as many, and so on. So no owner can exhaust a large number of permits, but a small
    number may be exhausted: two owners can have all of three permits. Waiting owners take turns.

    `what` is the name of the limited resource, and `whose` the name of those who share it, for messages. `full` is the
    class of the error when all permits are in use.
    """

    def __init__(
        self,
        most: int,
        what: str,
        full: type[ServiceError],
        *,
        whose: str = "an owner",
    ) -> None:
        self._most = most
        self._whose = whose
        self._what = what
        self._full = full
        self._permits: defaultdict[str, set[Permit]] = defaultdict(set)
        self._waiting: dict[
            str, deque[asyncio.Future[Permit]]
        ] = {}  # owners in the order of their turns
        self.taken = 0
        self.refused = 0

    def usage(self) -> tuple[int, int]:
        """Return permits in use, and how many were ever refused. Thread-safe."""
        return self.taken, self.refused

    def refusal(self, owner: str) -> ServiceError | None:
        """Return the error for one more permit; None if the owner may have one."""
        has, free = len(self._permits.get(owner, ())), self._most - self.taken
        if 0 < free > has:
            return None
        code, headers = f"too_many_{self._what}", {"Retry-After": str(RETRY_SECONDS)}
        if free <= 0:
            detail = f"{self._most} {self._what} are open in this process, which is the maximum: try again soon"
            return self._full(detail, code=code, headers=headers)
        detail = (
            f"{self._whose} can have at most as many {self._what} open in this process as there are free "
            f"places; this one has {has}, and {free} of {self._most} places are free: try again soon"
        )
        return TooMany(detail, code=code, headers=headers)

    @contextmanager
    def hold(self, owner: str) -> Iterator[Permit]:
        """Raises the error of `refusal`."""
        permit = self.acquire(owner)
        try:
            yield permit
        finally:
            self.release(owner, permit)

    @asynccontextmanager
    async def turn(self, owner: str, seconds: float) -> AsyncIterator[Permit]:
        """Hold a permit, for which to wait at most `seconds`. Raises the error of `refusal`."""
        permit = await self._wait(owner, seconds)
        try:
            yield permit
        finally:
            self.release(owner, permit)

    async def _wait(self, owner: str, seconds: float) -> Permit:
        """Raises the error of `refusal`."""
        if self.refusal(owner) is None:
            return self.acquire(owner)
        given: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(given)
        try:
            await asyncio.wait([given], timeout=seconds)
        except asyncio.CancelledError:
            if given.done():
                self.release(owner, given.result())
            raise
        finally:
            if not given.done():
                self._waiting[owner].remove(given)
                if not self._waiting[owner]:
                    del self._waiting[owner]
        return given.result() if given.done() else self.acquire(owner)

    def _serve_next(self) -> None:
        """Give free permits to waiting owners in turn."""
        while eligible := [each for each in self._waiting if self.refusal(each) is None]:
            owner = eligible[0]
            queue = self._waiting.pop(owner)
            queue.popleft().set_result(self.acquire(owner))
            if queue:
                self._waiting[owner] = queue  # to the end of the order

    def acquire(self, owner: str) -> Permit:
        """Give the permit back by `release`. Raises the error of `refusal`."""
        if (refusal := self.refusal(owner)) is not None:
            self.refused += 1
            raise refusal
        permit = Permit()
        self._permits[owner].add(permit)
        self.taken += 1
        return permit

    def release(self, owner: str, permit: Permit) -> None:
        self._permits[owner].remove(permit)
        self.taken -= 1
        if not self._permits[owner]:
            del self._permits[owner]
        self._serve_next()

    def size_of(self, owner: str) -> int:
        """Return the bytes of the owner's running uploads. Thread-safe."""
        return sum(permit.size for permit in tuple(self._permits.get(owner, ())))
