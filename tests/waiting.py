"""Waiting for what other threads and processes do: until it happens, with one limit against hangs."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from functools import cache
from typing import Any

LIMIT_SECONDS = 120.0
"""What nothing takes on an idle machine of usual speed: a test that waits longer hangs."""
USUAL_SECONDS = 0.05
"""CPU seconds of `_slowness`'s computation on such a machine."""


@cache
def _slowness() -> float:
    """Return how many times as long as usual this machine computes; at least 1."""
    block = bytes(1 << 20)
    started = time.process_time()
    for _ in range(32):
        hashlib.blake2b(block).digest()
    return max(1.0, (time.process_time() - started) / USUAL_SECONDS)


def patience() -> float:
    """Return the limit against hangs in seconds, which grows with the programs that share the cores at the moment."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    return LIMIT_SECONDS * _slowness() * max(1.0, busy)


def eventually(condition: Callable[[], Any], *, every: float = 0.01) -> Any:
    """Wait until `condition` is true and return what it returned; fail after the limit against hangs.

    It is checked every `every` seconds, and the longer it takes the less often, down to ten times a second: each time
    takes CPU from the processes that the test waits for.
    """
    started = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - started
        assert waited < patience(), f"not within {waited:.0f} s: {condition}"
        time.sleep(max(every, min(waited / 10, 0.1)))
    return value
