"""Background tasks: work that should happen right after a request, and must never hold it up; and a cache with a
time to live, which has its answers looked up anew in the background.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

MOST_WAITING = 1000


class BackgroundTasks:
    """One background thread that does what it is asked, in order.

    As best effort: an error is logged and forgotten, and what is over the bound is dropped. So it is for work
    that something else sees to in the end.
    """

    def __init__(self, name: str) -> None:
        self._works: queue.Queue[Callable[[], object] | None] = queue.Queue(MOST_WAITING)
        # A daemon: a broker that hangs must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, work: Callable[[], object]) -> None:
        """Have the work done soon. Returns at once."""
        try:
            self._works.put_nowait(work)
        except queue.Full:
            log.debug("%s has too much to do; dropped %s", self._thread.name, work)

    def close(self, timeout: float = 3.0) -> None:
        """Finish what was asked for, as far as the time allows."""
        try:
            self._works.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout)

    def _run(self) -> None:
        while (work := self._works.get()) is not None:
            try:
                work()
            except Exception as error:
                log.warning("%s: %s", self._thread.name, error)


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class TtlCache(Generic[Key, Value]):
    """Answers that stay good for `seconds`, counted from before the look that gave them.

    Half that time into its life an answer that is still in use is looked up anew, by `refresh`, while requests go
    on with the old one: so a busy process never waits for the database, and never has all its requests ask at once.
    """

    def __init__(
        self, refresh: Callable[[Key], object], *, seconds: float = 0.9, size: int = 10_000
    ) -> None:
        self._refresh = refresh
        self.seconds = seconds
        self._size = size
        self._known: dict[Key, tuple[float, float, Value]] = {}  # refresh at, good until, answer

    def get(self, key: Key) -> Value | None:
        """The answer, if there is a good one. Never waits."""
        entry = self._known.get(key)
        if entry is None:
            return None
        refresh_at, good_until, value = entry
        now = time.monotonic()
        if now > refresh_at:
            if now > good_until:
                return None
            self._known[key] = (good_until, good_until, value)  # once is enough
            self._refresh(key)
        return value

    def put(self, key: Key, value: Value, looked_at: float) -> None:
        """Remember what a look that began at this monotonic time gave."""
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[key] = (looked_at + self.seconds / 2, looked_at + self.seconds, value)

    def drop(self, key: Key) -> None:
        """Forget one answer."""
        self._known.pop(key, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._known.clear()
