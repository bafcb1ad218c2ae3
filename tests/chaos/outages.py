"""Outages of minutes: once in a long run the broker is away, and once the database, while the kills go on."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from tests.chaos.deployments import Outage

EARLIEST, LATEST = 0.1, 0.8
"""The shares of a run's kills between which an outage begins."""


class Outages:
    """Takes away one server after the other, at random moments, never two at once."""

    def __init__(self, planned: Sequence[Outage], kills: int, seed: int) -> None:
        rng = random.Random(seed)
        moments = sorted(kills * rng.uniform(EARLIEST, LATEST) for _ in planned)
        shuffled = rng.sample(list(planned), len(planned))
        self._planned = list(zip(moments, shuffled, strict=True))
        self._now: Outage | None = None
        self._until = 0.0
        self.done: Counter[str] = Counter()

    @property
    def away(self) -> str | None:
        """Return what is away now."""
        return None if self._now is None else self._now.what

    @property
    def left(self) -> bool:
        """Return True if an outage is under way or to come."""
        return self._now is not None or bool(self._planned)

    def tend(self, kills: int, *, calm: bool) -> None:
        """End the outage whose time is over, or start the one that is due, while no shorter one is under way."""
        now = time.monotonic()
        if self._now is not None:
            if now >= self._until:
                self.done[f"{self._now.what} away for {self._now.seconds:g} s"] += 1
                self.relent()
        elif calm and self._planned and kills >= self._planned[0][0]:
            _, self._now = self._planned.pop(0)
            self._until = now + self._now.seconds
            self._now.begin()

    def relent(self) -> None:
        """End the outage under way, if there is one."""
        if self._now is not None:
            self._now.end()
            self._now = None
