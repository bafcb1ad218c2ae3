"""The reaper: the one authority that gives a job to another worker when the first one is silent."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from app.db import outbox, queue
from app.db.queue import Held
from app.db.session import Database
from app.db.tables import JobState
from app.infra import faults
from app.infra.settings import Settings
from app.services import parts
from app.services.queue import BACKOFF_MAX, backoff_seconds, retry_held

log = logging.getLogger(__name__)

# A wake-up says "there is work", so a few of them wake every idle slot; each job's own would flood a broker
# whose workers are all busy.
_RESENT_A_ROUND = 10


@dataclass
class Reaped:
    """What a round did; `tended` are jobs that waited for their parts in vain, `due_seconds` is when a lease that is
    being watched may run out (SQLite).
    """

    requeued: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    tended: list[str] = field(default_factory=list)
    resent: int = 0
    due_seconds: float | None = None


class Reaper:
    """Looks for lost leases, round by round.

    On PostgreSQL the lease is compared with the database's clock. SQLite has only the clock of whichever process
    asks, which may be set at any moment, forth or back. There the reaper watches each running job by its own
    monotonic time, and takes it when the heartbeat's count has stood still for a whole lease.
    """

    def __init__(
        self,
        db: Database,
        settings: Settings,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = db
        self._settings = settings
        self._monotonic = monotonic
        self._first_seen: dict[Held, float] = {}

    def reap(self) -> Reaped:
        """One round: silent jobs are queued again, failed or cancelled; wake-ups long unanswered are owed again."""
        reaped = Reaped()
        for held in self._silent(reaped):
            self._take(held, reaped)
        reaped.tended = parts.tend(self._db)
        with self._db.write() as session:
            queue.release_misdated(session, BACKOFF_MAX)
            reaped.resent = outbox.owe_again(
                session, self._settings.resend_seconds, _RESENT_A_ROUND
            )
        return reaped

    def _silent(self, reaped: Reaped) -> list[Held]:
        if self._db.dialect != "sqlite":
            with self._db.read() as session:
                return list(queue.running(session, expired_only=True))
        with self._db.read() as session:
            running = queue.running(session, expired_only=False)
        now = self._monotonic()
        # A beat, a new attempt or an end makes another `Held`: the watch starts anew, or is dropped.
        self._first_seen = {held: self._first_seen.get(held, now) for held in running}
        left = {
            held: self._settings.lease_seconds - (now - since)
            for held, since in self._first_seen.items()
        }
        reaped.due_seconds = min((due for due in left.values() if due > 0), default=None)
        return [held for held, due in left.items() if due <= 0]

    def _take(self, held: Held, reaped: Reaped) -> None:
        faults.reach("reap")
        with self._db.write() as session:
            # Whoever stands still in the middle of a transaction must not hold up the taking of all other jobs.
            job = queue.hold(
                session, held.job_id, held.token, held.parent_id, held.beats, patient=False
            )
            if job is None:
                return  # it moved since it was read, or is moving: a heartbeat, an end, another reaper
            # The first loss costs no wait: machines die, and a job should run again within the minute. A job
            # that loses worker after worker may be why.
            delay = 0.0 if job.attempt == 1 else backoff_seconds(job.attempt - 1)
            reason = f"worker {job.worker_id} was silent for {self._settings.lease_seconds:g} s"
            state = retry_held(session, job, reason, delay_seconds=delay)
            faults.reach("take")
        faults.reach("reaped")
        log.warning("job %s: %s; now %s", held.job_id, reason, state)
        ended = {
            JobState.QUEUED: reaped.requeued,
            JobState.FAILED: reaped.failed,
            JobState.CANCELLED: reaped.cancelled,
        }
        ended[state].append(held.job_id)
