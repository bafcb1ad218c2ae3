"""The dispatcher: sends the wake-ups that are owed, reaps lost leases, sweeps blobs that no row names."""

from __future__ import annotations

import logging
import threading
import time

from app.db import blobs as blob_rows
from app.db import idempotency as idempotency_rows
from app.db import outbox
from app.db import parts as part_rows
from app.db import workers as worker_rows
from app.db.session import Database
from app.errors import Unavailable
from app.infra import faults
from app.infra.blobs import BlobStore
from app.infra.producer import BrokerAway, Producer
from app.infra.settings import Settings
from app.services.idempotency import KEPT_SECONDS
from app.services.reap import Reaped, Reaper

log = logging.getLogger(__name__)

OUTBOX_SECONDS = 0.5
_DAY = 86400.0
_SWEEPS_A_GRACE = 24
_KEYS_A_QUERY = 500


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


def sweep(db: Database, blobs: BlobStore, settings: Settings) -> int:
    """Remove the blobs that no row names once their grace is over, and rows nobody needs; returns how many blobs."""
    grace = settings.blob_grace_seconds
    with db.write() as session:
        idempotency_rows.prune(session, KEPT_SECONDS)
        worker_rows.prune(session, _DAY)
        part_rows.prune(session, _DAY)
        outbox.prune(session, _DAY)
        spare_staging = blob_rows.runs_since(session, grace)
    old = list(blobs.older_than(grace))
    staging = [key for key in old if key.startswith("staging/")]
    stored = [key for key in old if not key.startswith("staging/")]
    doomed = [] if spare_staging else staging
    for start in range(0, len(stored), _KEYS_A_QUERY):
        keys = stored[start : start + _KEYS_A_QUERY]
        with db.read() as session:
            named = blob_rows.named(session, keys)
        doomed += [key for key in keys if key not in named]
    removed = 0
    for key in doomed:
        # Equal bytes may have been published while the rows were read.
        if blobs.is_older(key, grace):
            faults.reach("sweep")
            blobs.delete(key)
            removed += 1
    return removed


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
        sweep_seconds = self._settings.blob_grace_seconds / _SWEEPS_A_GRACE
        reap_at = sweep_at = time.monotonic()
        while not stop.is_set():
            now = time.monotonic()
            try:
                if now >= reap_at:
                    reap_at = now + self._reap_in(self._reaper.reap())
                self._publish()
                if now >= sweep_at:
                    sweep_at = now + sweep_seconds
                    removed = sweep(self._db, self._blobs, self._settings)
                    if removed:
                        log.info("removed %d blobs that no row names", removed)
                self._database(None)
            except Unavailable as error:
                self._database(error)
            except OSError:
                log.exception("the blob store could not be swept")
            stop.wait(min(OUTBOX_SECONDS, max(0.0, reap_at - time.monotonic())))

    def _reap_in(self, reaped: Reaped) -> float:
        # Not a whole interval later than a watched lease runs out: "runs again within 90 s" leaves no room.
        due = reaped.due_seconds
        return self._settings.reap_seconds if due is None else min(self._settings.reap_seconds, due)

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
