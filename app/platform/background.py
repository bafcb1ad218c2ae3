"""Background tasks: work right after a request that must not hold it up. And a cache with a time to live, which is
refreshed in the background.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

MAX_WAITING = 1000


class BackgroundTasks:
    """A background thread that does its tasks in order.

    It promises nothing: an error is logged, and tasks over the bound are dropped. So it is for work that something
    else makes good in the end.
    """

    def __init__(self, name: str) -> None:
        self._works: queue.Queue[Callable[[], object] | None] = queue.Queue(MAX_WAITING)
        # A daemon: a broker that hangs must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, work: Callable[[], object]) -> None:
        """Add a task. Returns at once."""
        try:
            self._works.put_nowait(work)
        except queue.Full:
            log.debug("%s has too much to do; dropped %s", self._thread.name, work)

    def close(self, timeout: float = 3.0) -> None:
        """Finish the tasks, as far as the time allows."""
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
    """Answers that stay good for `seconds`, counted from before the look-up that gave them.

    After half that time, an answer that is still used is looked up again by `refresh`; requests go on with the old one
    meanwhile. So a busy process never waits for the database, and its requests never ask all at once.
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
        """Keep the answer of a look-up that began at this monotonic time."""
        if len(self._known) >= self._size:
            self._known.clear()
        self._known[key] = (looked_at + self.seconds / 2, looked_at + self.seconds, value)

    def drop(self, key: Key) -> None:
        """Forget one answer."""
        self._known.pop(key, None)

    def clear(self) -> None:
        """Forget all answers."""
        self._known.clear()
