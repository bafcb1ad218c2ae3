"""Errands: work that must happen soon after a request, and must never hold the request up."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class Errand:
    """One background thread that runs `work` after each `ask`, or every `every` seconds.

    Asks that arrive while it runs are answered by one more run. An error is logged and forgotten:
    whatever matters for good is in the database, and someone else sees to it later.
    """

    def __init__(self, name: str, work: Callable[[], object], *, every: float | None = None) -> None:
        self._work = work
        self._every = every
        self._asked = threading.Event()
        self._stopping = False
        # A daemon: a broker that hangs must not hold up the end of the process.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Have the work done soon. Returns at once."""
        self._asked.set()

    def close(self, timeout: float = 3.0) -> None:
        """Finish the run under way and stop."""
        self._stopping = True
        self._asked.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            self._asked.wait(self._every)
            self._asked.clear()
            if self._stopping:
                return
            try:
                self._work()
            except Exception as error:
                log.warning("%s failed: %s", self._thread.name, error)
