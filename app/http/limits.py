"""How fast somebody may go on: a bucket of tokens for each key or address, in each API process for itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from app.platform.errors import TooMany

_MOST_BUCKETS = 10_000


class Pace:
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
