"""The dispatcher: sends the wake-ups that are owed, reaps lost leases, and beside that keeps house."""

from __future__ import annotations

import logging
import threading
import time

from app.jobs import outbox_repository as outbox
from app.jobs.reaper import Reaper
from app.operations.housekeeping import Housekeeper
from app.platform import failpoints as faults
from app.platform.blobs import BlobStore
from app.platform.broker import BrokerAway, Producer
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.settings import Settings

log = logging.getLogger(__name__)

OUTBOX_SECONDS = 0.5


def publish_after_commit(producer: Producer, job_id: str) -> None:
    """Wake a worker for a job that was just accepted, as best effort.

    The outbox row stays as it is. Marking it here would be a second commit right when the worker comes to claim,
    and on SQLite the two would wait for each other; the dispatcher marks it, in a batch, and sends it if it must.
    """
    faults.reach("accepted")
    try:
        producer.wake()
    except BrokerAway as error:
        log.debug("job %s: no wake-up sent, the dispatcher will: %s", job_id, error)


def publish_pending(db: Database, producer: Producer, limit: int = 100) -> int:
    """Send the wake-ups that are owed and due, then mark them; returns how many were marked.

    A crash between the two sends them again, which does no harm. Those whose attempt has begun by itself are
    marked without being sent. Raises `BrokerAway` once everything that can be marked is.
    """
    with db.read() as session:
        owed = outbox.unpublished(session, limit)
    settled: list[outbox.Owed] = []
    away: BrokerAway | None = None
    for wake_up in owed:
        if wake_up.needed and away is None:
            try:
                producer.wake()
            except BrokerAway as error:
                away = error
        if away is None or not wake_up.needed:
            settled.append(wake_up)
    if settled:
        faults.reach("published")
        with db.write() as session:
            outbox.mark_published(session, settled)
            faults.reach("mark")
    if away is not None:
        raise away
    return len(settled)


class Dispatcher:
    """The loop behind `rankwright dispatcher`. Two of them do no harm: rows are guarded, and wake-ups may repeat."""

    def __init__(
        self, db: Database, blobs: BlobStore, settings: Settings, producer: Producer
    ) -> None:
        self._db = db
        self._blobs = blobs
        self._settings = settings
        self._producer = producer
        self._reaper = Reaper(db, settings)
        self._broker_away = False
        self._database_away = False

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set. Outages of database and broker are waited out, and logged once each."""
        # In a thread: a million old rows, or a slow disk, must not hold up a wake-up or a lost lease.
        keeper = Housekeeper(self._db, self._blobs, self._settings, stop)
        thread = threading.Thread(target=keeper.run, name="housekeeping")
        thread.start()
        try:
            self._dispatch(stop)
        finally:
            stop.set()
            thread.join()

    def _dispatch(self, stop: threading.Event) -> None:
        reap_at = time.monotonic()
        while not stop.is_set():
            now = time.monotonic()
            try:
                if now >= reap_at:
                    self._reaper.reap()
                    reap_at = now + self._settings.reap_seconds
                self._publish()
                self._database(None)
            except Unavailable as error:
                self._database(error)
            stop.wait(min(OUTBOX_SECONDS, max(0.0, reap_at - time.monotonic())))

    def _publish(self) -> None:
        try:
            while publish_pending(self._db, self._producer):
                pass
        except BrokerAway as error:
            if not self._broker_away:
                log.warning("%s; accepted jobs wait in the database", error)
            self._broker_away = True
        else:
            if self._broker_away:
                log.info("the broker is back")
            self._broker_away = False

    def _database(self, away: Unavailable | None) -> None:
        if away is not None and not self._database_away:
            log.warning("%s; trying again", away)
        elif self._database_away and away is None:
            log.info("the database is back")
        self._database_away = away is not None
