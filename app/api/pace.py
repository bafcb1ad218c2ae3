"""How fast one key may ask: a bucket of tokens per key, in each API process for itself."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from app.errors import TooMany

_MOST_BUCKETS = 10_000


class Pace:
    """Each request takes a token; so many come back a second, and a bucket holds so many at most.

    Only keys that the database vouches for have a bucket, and of many those that are full again are forgotten. Not
    locked: it is asked on the event loop alone.
    """

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, key_id: str) -> None:
        """Let a request of this key pass, or raise TooMany that says when to come back."""
        now = self._clock()
        tokens, at = self._buckets.get(key_id, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._per_second)
        if tokens < 1.0:
            wait = (1.0 - tokens) / self._per_second
            raise TooMany(
                f"a key may ask {self._per_second:g} times a second, and {self._burst:g} times at once",
                code="rate_limited",
                retry_after=math.ceil(wait),
            )
        if len(self._buckets) >= _MOST_BUCKETS and key_id not in self._buckets:
            self._forget_full(now)
        self._buckets[key_id] = (tokens - 1.0, now)

    def _forget_full(self, now: float) -> None:
        refilled_in = self._burst / self._per_second
        self._buckets = {
            key_id: bucket
            for key_id, bucket in self._buckets.items()
            if now - bucket[1] < refilled_in
        }
