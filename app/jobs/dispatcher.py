"""The dispatcher: sends the wake-ups that are owed and reaps lost leases."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from app.jobs import child_jobs
from app.jobs import queue_repository as rows
from app.jobs.queue import BACKOFF_MAX, backoff_seconds, retry_locked
from app.jobs.queue_repository import RunningJob
from app.platform import failpoints
from app.platform.broker import BrokerAway, Producer
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.settings import Settings
from app.platform.tables import Job, JobState

log = logging.getLogger(__name__)

# A wake-up says "there is work", so a few of them wake every idle slot; each job's own would flood a broker
# whose workers are all busy.
_RESENT_A_ROUND = 10


@dataclass
class ReapedJobs:
    """What a round did; `tended` are jobs that waited for their child jobs in vain."""

    requeued: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    tended: list[str] = field(default_factory=list)
    resent: int = 0


class Reaper:
    """Looks for lost leases, round by round. It remembers nothing: one that dies is replaced by any other."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings

    def reap(self) -> ReapedJobs:
        """One round: jobs whose lease expired are queued again, failed or cancelled; wake-ups that nobody answered for
        long are owed again.
        """
        reaped = ReapedJobs()
        with self._db.read() as session:
            expired = rows.expired(session, self._settings.lease_seconds)
        for leased in expired:
            self._take(leased, reaped)
        reaped.tended = child_jobs.tend(self._db)
        with self._db.write() as session:
            rows.release_misdated(session, BACKOFF_MAX)
            reaped.resent = rows.owe_again(session, self._settings.resend_seconds, _RESENT_A_ROUND)
        return reaped

    def _take(self, leased: RunningJob, reaped: ReapedJobs) -> None:
        failpoints.reach("reap")
        with self._db.write() as session:
            # Whoever stands still in the middle of a transaction must not hold up the taking of all other jobs.
            job = rows.lock(
                session, leased.job_id, leased.token, leased.parent_id, leased.beats, wait=False
            )
            if job is None:
                return  # it moved since it was read, or is moving: a heartbeat, an end, another reaper
            reason = f"worker {job.worker_id} was silent for {self._settings.lease_seconds:g} s"
            state = retry_locked(session, job, reason, delay_seconds=self._delay_seconds(job))
            failpoints.reach("take")
        failpoints.reach("reaped")
        log.warning("job %s: %s; now %s", leased.job_id, reason, state)
        ended = {
            JobState.QUEUED: reaped.requeued,
            JobState.FAILED: reaped.failed,
            JobState.CANCELLED: reaped.cancelled,
        }
        ended[state].append(leased.job_id)

    def _delay_seconds(self, job: Job) -> float:
        # The first loss costs no wait: machines die. A job that loses worker after worker may be why, and waits; what
        # it has waited since its worker fell silent counts, so that by the default lease it runs again at once, too.
        if job.attempt == 1:
            return 0.0
        return max(0.0, backoff_seconds(job.attempt - 1) - self._settings.lease_seconds)


OUTBOX_SECONDS = 0.5


def publish_after_commit(producer: Producer, job_id: str) -> None:
    """Wake a worker for a job that was just accepted, as best effort.

    The outbox row stays as it is. Marking it here would be a second commit right when the worker comes to claim,
    and on SQLite the two would wait for each other; the dispatcher marks it, in a batch, and sends it if it must.
    """
    failpoints.reach("accepted")
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
        owed = rows.unpublished(session, limit)
    settled: list[rows.PendingWakeUp] = []
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
        failpoints.reach("published")
        with db.write() as session:
            rows.mark_published(session, settled)
            failpoints.reach("mark")
    if away is not None:
        raise away
    return len(settled)


class Dispatcher:
    """The loop behind `rankwright dispatcher`. Two of them do no harm: rows are guarded, and wake-ups may repeat."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        producer: Producer,
        beside: Callable[[threading.Event], object],
    ) -> None:
        """`beside` runs in a thread of its own until its event is set: housekeeping."""
        self._db = db
        self._settings = settings
        self._producer = producer
        self._beside = beside
        self._reaper = Reaper(db, settings)
        self._broker_away = False
        self._database_away = False

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set. Outages of database and broker are waited out, and logged once each."""
        # In a thread: a million old rows, or a slow disk, must not hold up a wake-up or a lost lease.
        thread = threading.Thread(target=self._beside, args=(stop,), name="housekeeping")
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
