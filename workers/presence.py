"""The worker's row in SQL: it says that this process lives, and how it finds its work."""

from __future__ import annotations

import logging
import socket
import threading

from app import __version__
from app.jobs import repository as rows
from app.platform.errors import Unavailable
from workers.slots import Slots

log = logging.getLogger(__name__)

LOOKS_TO_WORRY = 5
READY_SECONDS = 0.1  # between two looks whether to give up waiting for a slot


class Presence(threading.Thread):
    """Writes the row once a slot is ready, prolongs it every heartbeat, and removes it at the end."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(name="presence", daemon=True)
        self._slots = slots
        self._end = threading.Event()
        self._worried = False

    def run(self) -> None:
        """Beat until `end`. What goes wrong is logged, and tried again at the next beat."""
        while not self._slots.ready.wait(READY_SECONDS):
            if self._end.is_set():
                return
        log.info("worker %s is ready", self._slots.worker_id)
        while not self._end.is_set():
            try:
                self._beat()
            except Unavailable as error:
                log.warning("%s", error)
            except Exception:
                log.exception("the worker's row could not be written")
            self._end.wait(self._slots.settings.heartbeat_seconds)

    def end(self) -> None:
        """Take the row away: this worker ends in good order."""
        self._end.set()
        self.join()
        try:
            with self._slots.db.write() as session:
                rows.goodbye(session, self._slots.worker_id)
        except Unavailable as error:
            log.warning("%s", error)  # the row grows old, and is pruned

    def _beat(self) -> None:
        slots = self._slots
        with slots.db.write() as session:
            known = rows.seen(
                session,
                slots.worker_id,
                by_message=slots.by_message,
                by_look=slots.by_look,
                note=self._note(),
            )
            if not known:
                rows.hello(
                    session,
                    slots.worker_id,
                    host=socket.gethostname(),
                    version=__version__,
                    slots=slots.settings.worker_slots,
                )

    def _note(self) -> str | None:
        """Say, in the row and once in the log, that work is found but no messages come."""
        looks = self._slots.looks_in_a_row
        worried, self._worried = self._worried, looks >= LOOKS_TO_WORRY
        if not self._worried:
            return None
        note = (
            f"the last {looks} finds were by looking at the table: no messages come from the broker"
        )
        if not worried:
            log.warning("%s", note)
        return note
