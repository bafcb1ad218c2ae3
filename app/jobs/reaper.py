"""The reaper: the one authority that gives a job to another worker when the first one is silent."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from app.jobs import child_jobs as parts
from app.jobs import outbox_repository as outbox
from app.jobs import queue_repository as queue
from app.jobs.queue import BACKOFF_MAX, backoff_seconds, retry_held
from app.jobs.queue_repository import Held
from app.platform import failpoints as faults
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import Job, JobState

log = logging.getLogger(__name__)

# A wake-up says "there is work", so a few of them wake every idle slot; each job's own would flood a broker
# whose workers are all busy.
_RESENT_A_ROUND = 10


@dataclass
class Reaped:
    """What a round did; `tended` are jobs that waited for their parts in vain."""

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

    def reap(self) -> Reaped:
        """One round: silent jobs are queued again, failed or cancelled; wake-ups long unanswered are owed again."""
        reaped = Reaped()
        with self._db.read() as session:
            silent = queue.silent(session, self._settings.lease_seconds)
        for held in silent:
            self._take(held, reaped)
        reaped.tended = parts.tend(self._db)
        with self._db.write() as session:
            queue.release_misdated(session, BACKOFF_MAX)
            reaped.resent = outbox.owe_again(
                session, self._settings.resend_seconds, _RESENT_A_ROUND
            )
        return reaped

    def _take(self, held: Held, reaped: Reaped) -> None:
        faults.reach("reap")
        with self._db.write() as session:
            # Whoever stands still in the middle of a transaction must not hold up the taking of all other jobs.
            job = queue.hold(
                session, held.job_id, held.token, held.parent_id, held.beats, patient=False
            )
            if job is None:
                return  # it moved since it was read, or is moving: a heartbeat, an end, another reaper
            reason = f"worker {job.worker_id} was silent for {self._settings.lease_seconds:g} s"
            state = retry_held(session, job, reason, delay_seconds=self._delay_seconds(job))
            faults.reach("take")
        faults.reach("reaped")
        log.warning("job %s: %s; now %s", held.job_id, reason, state)
        ended = {
            JobState.QUEUED: reaped.requeued,
            JobState.FAILED: reaped.failed,
            JobState.CANCELLED: reaped.cancelled,
        }
        ended[state].append(held.job_id)

    def _delay_seconds(self, job: Job) -> float:
        # The first loss costs no wait: machines die. A job that loses worker after worker may be why, and waits; what
        # it has waited since its worker fell silent counts, so that by the default lease it runs again at once, too.
        if job.attempt == 1:
            return 0.0
        return max(0.0, backoff_seconds(job.attempt - 1) - self._settings.lease_seconds)
