"""Measurement of what owners store, at intervals, for the check of their storage quota."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

from app.access import quotas, repository
from app.access.quotas import Usage
from app.platform import resources
from app.platform.settings import Settings
from app.platform.sql import Reading, Session

ROWS_KNOWN_SECONDS = 1.0
"""How long a measurement of an owner's usage is used, at least."""
ROWS_KNOWN_FACTOR = 50.0
"""How long a measurement is used, in multiples of the time that it took."""
LIMIT_KNOWN_SECONDS = 1.0
"""How long a limit of an owner is used after it was read."""
MAX_OWNERS_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class _Measurement:
    """Valid until `time.monotonic` reaches a time."""

    usage: Usage
    valid_until: float


class UsageCache:
    """The bytes in files and rows that each owner stores, as this process last measured them.

    Measuring takes time in proportion to the rows. So it happens outside of write transactions, once at a time for each
    owner, and for at most a fiftieth of the time. Between two measurements, an owner may exceed the quota.
    """

    def __init__(self, reading: Reading, settings: Settings) -> None:
        self._reading = reading
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[str, _Measurement] = {}
        self._own_limits: dict[str, tuple[int | None, float]] = {}
        self._pending: dict[str, Future[Usage]] = {}

    def get(self, owner: str) -> Usage:
        """Measured now or recently. Raises Unavailable without a database."""
        with self._lock:
            known = self._known.get(owner)
            if known is not None and time.monotonic() < known.valid_until:
                return known.usage
            pending = self._pending.get(owner)
            if pending is None:
                measured = self._pending[owner] = Future()
        if pending is not None:
            return pending.result()
        try:
            measurement = self._measure(owner)
        except BaseException as error:
            with self._lock:
                del self._pending[owner]
            measured.set_exception(error)
            raise
        with self._lock:
            if len(self._known) >= MAX_OWNERS_KNOWN:
                self._known.clear()
            self._known[owner] = measurement
            del self._pending[owner]
        measured.set_result(measurement.usage)
        return measurement.usage

    def _measure(self, owner: str) -> _Measurement:
        """The slower the measurement, the longer the result is valid."""
        begun = time.monotonic()
        usage = self._reading(measure, owner)
        ended = time.monotonic()
        lasts = max(ROWS_KNOWN_SECONDS, ROWS_KNOWN_FACTOR * (ended - begun))
        return _Measurement(usage, ended + lasts)

    def quota_check_for(self, owner: str) -> Callable[[], None]:
        """Measure now if there is a quota; the returned function raises if the owner may not store more."""
        limit = self._limit(owner)
        if limit is None:
            return partial(resources.check, self._settings)
        usage = self.get(owner)
        if usage.counted > limit:  # what has just been deleted must not count any more
            usage = replace(usage, files=self._reading(repository.stored_bytes, owner))
        return partial(quotas.check_usage, self._settings, limit, usage)

    def _limit(self, owner: str) -> int | None:
        """Return the owner's limit, at most `LIMIT_KNOWN_SECONDS` old, or the setting."""
        with self._lock:
            own, valid_until = self._own_limits.get(owner, (None, -math.inf))
        if time.monotonic() >= valid_until:
            own = self._reading(quotas.set_by_operator, owner).bytes
            with self._lock:
                if len(self._own_limits) >= MAX_OWNERS_KNOWN:
                    self._own_limits.clear()
                self._own_limits[owner] = own, time.monotonic() + LIMIT_KNOWN_SECONDS
        return self._settings.quota_bytes if own is None else own


def measure(session: Session, owner: str) -> Usage:
    """It takes time in proportion to the owner's rows."""
    return Usage(repository.stored_bytes(session, owner), repository.row_bytes(session, owner))
