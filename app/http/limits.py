"""How much somebody may ask for, in each API process for itself: a rate for each key or address, and a share of what is
open at once for each owner.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.platform.errors import ServiceError, TooMany

_MOST_BUCKETS = 10_000


class RateLimiter:
    """Each request takes a token; so many come back a second, and a bucket holds so many at most.

    Of many buckets those that are full again are forgotten, and all where that is not enough. Not locked: it is asked
    on the event loop alone. `rule` and `code` are what is said to who asks too fast.
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
        """Take a token out of this bucket, or raise TooMany that says when to come back."""
        now = self._clock()
        tokens, at = self._buckets.get(name, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._per_second)
        if tokens < 1.0:
            wait = (1.0 - tokens) / self._per_second
            raise TooMany(self._rule, code=self._code, retry_after=math.ceil(wait))
        if len(self._buckets) >= _MOST_BUCKETS and name not in self._buckets:
            self._forget_full(now)
        self._buckets[name] = (tokens - 1.0, now)

    def give_back(self, name: str) -> None:
        """Put back a token that was taken for what turned out to cost none."""
        if name in self._buckets:
            tokens, at = self._buckets[name]
            self._buckets[name] = (tokens + 1.0, at)

    def _forget_full(self, now: float) -> None:
        refilled_in = self._burst / self._per_second
        self._buckets = {
            name: bucket for name, bucket in self._buckets.items() if now - bucket[1] < refilled_in
        }
        if len(self._buckets) >= _MOST_BUCKETS:  # as many addresses as it takes are made up at will
            self._buckets.clear()


RETRY_SECONDS = 5


@dataclass(eq=False)
class Permit:
    """One of the permits, and how many bytes its upload has: what it says, or what has come where that is more."""

    size: int = 0


class FairSemaphore:
    """A semaphore that does not block: whoever finds no permit is told at once to come back. For the event loop alone.

    An owner may have no more than are left free: half of them alone, a third beside another who has as many, and so on.
    So the next owner finds one, without a share that would have to be set anew for each number of owners.

    `what` is held, and `full` is what an owner is told where others have taken all.
    """

    def __init__(self, most: int, what: str, full: type[ServiceError]) -> None:
        self._most = most
        self._what = what
        self._full = full
        self._permits: defaultdict[str, set[Permit]] = defaultdict(set)
        self.taken = 0

    def refusal(self, owner: str) -> ServiceError | None:
        """What the owner is told who asks for one more; None where it may have one."""
        has, free = len(self._permits.get(owner, ())), self._most - self.taken
        if 0 < free > has:
            return None
        code, headers = f"too_many_{self._what}", {"Retry-After": str(RETRY_SECONDS)}
        if free <= 0:
            detail = f"{self._most} {self._what} are open here, which is the most at once: try again soon"
            return self._full(detail, code=code, headers=headers)
        detail = (
            f"an owner may have no more {self._what} open here than places are free, this one has {has} "
            f"and {free} of {self._most} are free: try again soon"
        )
        return TooMany(detail, code=code, headers=headers)

    @contextmanager
    def hold(self, owner: str) -> Iterator[Permit]:
        """Hold a permit for the length of a block; raises what `refusal` says."""
        permit = self.acquire(owner)
        try:
            yield permit
        finally:
            self.release(owner, permit)

    def acquire(self, owner: str) -> Permit:
        """Take a permit until `release`; raises what `refusal` says."""
        if (refusal := self.refusal(owner)) is not None:
            raise refusal
        permit = Permit()
        self._permits[owner].add(permit)
        self.taken += 1
        return permit

    def release(self, owner: str, permit: Permit) -> None:
        """Give a permit back."""
        self._permits[owner].remove(permit)
        self.taken -= 1
        if not self._permits[owner]:
            del self._permits[owner]

    def size_of(self, owner: str) -> int:
        """Bytes of the uploads that the owner is sending. Any thread may ask."""
        return sum(permit.size for permit in tuple(self._permits.get(owner, ())))
