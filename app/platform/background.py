"""Errands: work that should happen right after a request, and must never hold it up."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)

MOST_WAITING = 1000


class Errands:
    """One background thread that does what it is asked, in order.

    As best effort: an error is logged and forgotten, and what is over the bound is dropped. So it is for work
    that something else sees to in the end.
    """

    def __init__(self, name: str) -> None:
        self._works: queue.Queue[Callable[[], object] | None] = queue.Queue(MOST_WAITING)
        # A daemon: a broker that hangs must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self, work: Callable[[], object]) -> None:
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
