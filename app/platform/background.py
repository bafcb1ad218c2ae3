"""Background tasks, which must not delay a request; and a cache with a time to live, refreshed in the background."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

MAX_WAITING_TASKS = 1000


class BackgroundTasks:
    """A background thread that runs its tasks in order.

    It guarantees nothing: errors are only logged, and tasks beyond the bound are dropped. So use it only for work that
    is repeated later anyway.
    """

    def __init__(self, name: str) -> None:
        self._works: queue.Queue[Callable[[], object] | None] = queue.Queue(MAX_WAITING_TASKS)
        # A daemon: a hanging broker must not delay the end of the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, work: Callable[[], object]) -> None:
        """Drop the task if too many are waiting. Returns at once."""
        try:
            self._works.put_nowait(work)
        except queue.Full:
            log.debug("%s is overloaded; dropped %s", self._thread.name, work)

    def close(self, timeout: float = 3.0) -> None:
        """Finish the queue, within `timeout` seconds."""
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
    """A cache of looked-up values, each valid for `seconds` from the start of its look-up.

    After half that time, an answer in use is looked up again by `refresh`, while requests still get the old one. So a
    busy process never waits for the database, and its requests never all look up at once.
    """

    def __init__(
        self, refresh: Callable[[Key], object], *, seconds: float = 0.9, size: int = 10_000
    ) -> None:
        self._refresh = refresh
        self.seconds = seconds
        self._size = size
        # time of refresh, time of expiry, answer
        self._known: OrderedDict[Key, tuple[float, float, Value]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Return a valid value, without waiting; an old one is refreshed in the background."""
        entry = self._known.get(key)
        if entry is None:
            return None
        refresh_at, good_until, value = entry
        now = time.monotonic()
        if now > refresh_at:
            if now > good_until:
                return None
            self._known[key] = (good_until, good_until, value)  # refresh only once
            self._refresh(key)
        return value

    def put(self, key: Key, value: Value, looked_at: float) -> None:
        """The look-up began at this monotonic time."""
        self._known.pop(key, None)  # the oldest stands first
        if len(self._known) >= self._size:
            self._known.popitem(last=False)
        self._known[key] = (looked_at + self.seconds / 2, looked_at + self.seconds, value)

    def drop(self, key: Key) -> None:
        self._known.pop(key, None)

    def drop_where(self, is_gone: Callable[[Key, Value], bool]) -> None:
        for key, (_, _, value) in list(self._known.items()):
            if is_gone(key, value):
                self.drop(key)

    def clear(self) -> None:
        self._known.clear()
