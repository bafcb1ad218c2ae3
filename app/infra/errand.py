"""Errands: work that should happen right after a request, and must never hold it up."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

MOST_WAITING = 1000


class Errand:
    """One background thread that runs `work` for every item asked for, in order.

    As best effort: an error is logged and forgotten, and what is over the bound is dropped. So it is for work
    that something else sees to in the end.
    """

    def __init__(self, name: str, work: Callable[[str], object]) -> None:
        self._work = work
        self._items: queue.Queue[str | None] = queue.Queue(MOST_WAITING)
        # A daemon: a broker that hangs must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self, item: str) -> None:
        """Have the work done soon. Returns at once."""
        try:
            self._items.put_nowait(item)
        except queue.Full:
            log.debug("%s has too much to do; dropped %s", self._thread.name, item)

    def close(self, timeout: float = 3.0) -> None:
        """Finish what was asked for, as far as the time allows."""
        try:
            self._items.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout)

    def _run(self) -> None:
        while (item := self._items.get()) is not None:
            try:
                self._work(item)
            except Exception as error:
                log.warning("%s failed: %s", self._thread.name, error)
