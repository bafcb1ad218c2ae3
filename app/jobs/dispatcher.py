"""The dispatcher: requeues the jobs of silent workers, asks long jobs to give way, and runs housekeeping."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from app import __version__
from app.jobs import child_jobs, queue, queue_repository, repository
from app.jobs.queue import BACKOFF_MAX, backoff_seconds, retry_locked
from app.jobs.queue_repository import RunningJob
from app.platform import failpoints
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.ids import new_id
from app.platform.processes import note_step, note_wait
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import JobState, Role

log = logging.getLogger(__name__)


@dataclass
class ReapedJobs:
    """The results of one round of the reaper. `recovered` are jobs that waited for child jobs that do not exist."""

    requeued: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    recovered: list[str] = field(default_factory=list)


class Reaper:
    """Requeues or ends jobs with expired leases. It has no state, so any other dispatcher can replace it."""

    def __init__(
        self, db: Database, settings: Settings, beat: Callable[[], object] = lambda: None
    ) -> None:
        """`beat` is called between two jobs: after an outage there may be thousands of jobs."""
        self._db = db
        self._settings = settings
        self._beat = beat

    def reap(self) -> ReapedJobs:
        """Requeue, fail or cancel jobs with expired leases, release misdated ones, and ask a long job to give way."""
        reaped = ReapedJobs()
        # Each job in a transaction of its own, so that none delays the others.
        for leased in self._db.reading(queue_repository.expired, self._settings.lease_seconds):
            self.reap_job(leased, reaped)
            self._beat()
        for job_id in self._db.reading(queue_repository.stuck):
            if (state := self._db.writing(child_jobs.recover_stuck, job_id)) is not None:
                log.warning("job %s waited for child jobs that do not exist; now %s", job_id, state)
                reaped.recovered.append(job_id)
            self._beat()
        self._db.writing(queue_repository.release_misdated, BACKOFF_MAX)
        if (asked := self._db.writing(queue.request_yield, self._settings)) is not None:
            log.info("job %s is asked to give way to another owner's job", asked)
        return reaped

    def reap_job(self, leased: RunningJob, reaped: ReapedJobs) -> None:
        """Note the result of `reap_job`."""
        failpoints.reach("reap")
        reaped_job = self._db.writing(reap_job, self._settings, leased)
        if reaped_job is None:
            return
        failpoints.reach("reaped")
        log.warning("job %s: %s; now %s", leased.job_id, reaped_job.reason, reaped_job.state)
        ended = {
            JobState.QUEUED: reaped.requeued,
            JobState.FAILED: reaped.failed,
            JobState.CANCELLED: reaped.cancelled,
        }
        ended[reaped_job.state].append(leased.job_id)


class ReapResult(NamedTuple):
    """The new state of a job with a silent worker, and the reason, for its owner."""

    state: JobState
    reason: str


def reap_job(session: Session, settings: Settings, leased: RunningJob) -> ReapResult | None:
    """Requeue or end the job of a silent worker; None if it has changed meanwhile, or another transaction locks it."""
    # A process that hangs in the middle of a transaction must not block the recovery of all other jobs.
    job = queue_repository.lock(
        session, leased.job_id, leased.token, leased.parent_id, leased.heartbeat_count, wait=False
    )
    if job is None:
        return None
    reason = f"worker {job.worker_id} sent no heartbeat for {settings.lease_seconds:g} s"
    delay = _delay_seconds(job.attempt, settings)
    state = retry_locked(session, job, reason, delay_seconds=delay)
    failpoints.reach("take")
    return ReapResult(state, reason)


def _delay_seconds(attempt: int, settings: Settings) -> float:
    """There is none after the first attempt."""
    # After the first lost worker the job is retried without a delay: machines die. If it loses several workers, the job
    # may be the cause, and the retry is delayed. The time since its worker's last heartbeat counts, so by the default
    # lease it runs again at once, too.
    if attempt == 1:
        return 0.0
    return max(0.0, backoff_seconds(attempt - 1) - settings.lease_seconds)


class Dispatcher:
    """The loop of `rankwright dispatcher`. Several can run at once, because rows are locked."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        *beside: Callable[[threading.Event], object],
    ) -> None:
        """Each of `beside` (housekeeping, sealing) runs in a thread of its own until its event is set."""
        self._db = db
        self._settings = settings
        self._beside = beside
        self._reaper = Reaper(db, settings, self._beat)
        self._id = new_id("dsp")
        self._beat_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """No error ends the loop: it waits for the end of an outage, and logs other errors."""
        # In a thread: a million old rows, or a slow disk, must not delay the search for lost leases.
        threads = [
            threading.Thread(target=work, args=(stop,), name=f"beside-{number}")
            for number, work in enumerate(self._beside)
        ]
        for thread in threads:
            thread.start()
        try:
            self._dispatch(stop)
            with suppress(Unavailable):  # the row is pruned later
                self._db.writing(repository.deregister, self._id)
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _dispatch(self, stop: threading.Event) -> None:
        reap_at = time.monotonic()
        while not stop.is_set():
            note_step("dispatcher")
            now = time.monotonic()
            try:
                self._beat()
                if now >= reap_at:
                    self._reaper.reap()
                    reap_at = now + self._settings.reap_seconds
            except Unavailable:
                pass  # `Database` logs it
            except Exception:
                log.exception("the dispatcher continues after an error")
            note_wait("dispatcher")
            stop.wait(max(0.0, min(reap_at, self._beat_at) - time.monotonic()))

    def _beat(self) -> None:
        """Write a heartbeat every few seconds, so that a dispatcher that hangs is detected."""
        note_step("dispatcher")
        now = time.monotonic()
        if now >= self._beat_at:
            self._db.writing(self._write_row)
            self._beat_at = now + repository.DISPATCHER_BEAT_SECONDS

    def _write_row(self, session: Session) -> None:
        if not repository.seen(session, self._id):
            repository.register(
                session,
                self._id,
                host=socket.gethostname(),
                version=__version__,
                slots=0,
                role=Role.DISPATCHER,
            )
