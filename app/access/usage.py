"""What the rows of owners take, measured now and then."""

from __future__ import annotations

import time

from app.access import repository
from app.platform.sql import Reading

ROWS_KNOWN_SECONDS = 1.0
"""How long a measurement of an owner's rows is used, at least."""
ROWS_KNOWN_FACTOR = 50.0
"""How long a measurement is used, in multiples of the time that it took."""
MAX_OWNERS_KNOWN = 10_000


class RowUsage:
    """The bytes that the rows of owners take, as this process has measured them.

    To measure takes time in proportion to the rows, so it is done outside of writing transactions, and takes a fiftieth
    of the time at most. In between, an owner may exceed the quota.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._known: dict[str, tuple[int, float]] = {}

    def known(self, owner: str) -> int | None:
        """Return what was measured, if it is recent. Never waits."""
        n_bytes, measure_at = self._known.get(owner, (0, 0.0))
        return n_bytes if time.monotonic() < measure_at else None

    def measure(self, owner: str) -> int:
        """Return what the owner's rows take now."""
        begun = time.monotonic()
        n_bytes = self._reading(repository.row_bytes, owner)
        ended = time.monotonic()
        if len(self._known) >= MAX_OWNERS_KNOWN:
            self._known.clear()
        self._known[owner] = (
            n_bytes,
            ended + max(ROWS_KNOWN_SECONDS, ROWS_KNOWN_FACTOR * (ended - begun)),
        )
        return n_bytes
