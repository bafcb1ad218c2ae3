"""A fallback for the database during an outage: its last answers, for a limited time."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from app.platform.background import TtlCache
from app.platform.errors import Unavailable

Value = TypeVar("Value")

PATIENCE_SECONDS = 1.0
"""How long a look-up waits whose last answer is known. A frozen server would hold it for much longer."""
PAUSE_SECONDS = 1.0
"""How long nobody asks again after that, but for what is not known."""
_THREADS = 4


class OutageMemory:
    """The last answers of the database, each usable for `seconds` after its look-up while that is unavailable.

    All threads of a process share them. With 0 seconds, an answer is never used again.
    """

    def __init__(self, seconds: float) -> None:
        self._answers: TtlCache[Hashable, Any] = TtlCache(lambda _: None, seconds=seconds)
        self._lookups = _Lookups()
        self._away_since: float | None = None
        self._ask_again_at = 0.0

    @property
    def away_seconds(self) -> float | None:
        """The seconds since the first use of a last answer; None if the database has answered since."""
        since = self._away_since
        return None if since is None else time.monotonic() - since

    def ask(self, key: Hashable, look_up: Callable[[], Value | None]) -> Value | None:
        """Look up; if the database is unavailable, return the last answer for this key, unless that was None."""
        known: Value | None = self._answers.get(key)
        if known is None:
            return self._look(key, look_up)
        if time.monotonic() < self._ask_again_at:
            return known
        try:
            return self._lookups.run(lambda: self._look(key, look_up), PATIENCE_SECONDS)
        except Unavailable:
            now = time.monotonic()
            self._away_since = self._away_since or now
            self._ask_again_at = now + PAUSE_SECONDS
            return known

    def _look(self, key: Hashable, look_up: Callable[[], Value | None]) -> Value | None:
        looked_at = time.monotonic()
        try:
            found = look_up()
        except Unavailable:
            raise
        except Exception:  # the resource no longer exists
            self._answers.drop(key)
            raise
        if found is None:
            self._answers.drop(key)
        else:
            self._answers.put(key, found, looked_at)
        self._away_since, self._ask_again_at = None, 0.0
        return found


class _Lookup:
    """A function, its result, and a lock released at its end: the cheapest way to wait."""

    __slots__ = ("abandoned", "done", "error", "result", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: Exception | None = None
        self.abandoned = False
        self.done = threading.Lock()
        self.done.acquire()


class _Lookups:
    """A few threads for look-ups, so that a caller can stop waiting for one that hangs.

    The threads are daemons: a frozen database must not delay the end of the process.
    """

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[_Lookup] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def run(self, work: Callable[[], Value], seconds: float) -> Value:
        """Run `work` in a thread. Raises Unavailable after `seconds`."""
        if len(self._threads) < _THREADS:
            thread = threading.Thread(target=self._serve, name="look-up", daemon=True)
            self._threads.append(thread)
            thread.start()
        lookup = _Lookup(work)
        self._waiting.put(lookup)
        if not lookup.done.acquire(timeout=seconds):
            lookup.abandoned = True
            raise Unavailable(
                f"the database did not respond within {seconds:g} s", code="database_unavailable"
            )
        if lookup.error is not None:
            raise lookup.error
        result: Value = lookup.result
        return result

    def _serve(self) -> None:
        while True:
            lookup = self._waiting.get()
            if lookup.abandoned:
                continue
            try:
                lookup.result = lookup.work()
            except Exception as error:  # raised in the waiting thread
                lookup.error = error
            lookup.done.release()
