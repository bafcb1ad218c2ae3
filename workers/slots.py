"""Slots of a worker: each is a thread that owns one fit process, claims jobs for it and records their outcomes.

The thread itself never computes, so no fit can delay its heartbeats. It claims a job only while its process is alive,
and a process that died is replaced before the next claim. `Presence` maintains the worker's row in the database.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from prometheus_client import CollectorRegistry

from app import __version__
from app.jobs import queue, repository
from app.platform import logging as logs
from app.platform import resources, trace, tracing
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.errors import OutOfSpace, Unavailable
from app.platform.metrics import WorkerMetrics
from app.platform.processes import note_step, note_wait
from app.platform.settings import Settings
from app.platform.sql import Session
from workers.fit_process import FitProcess, FitProcessDied

if TYPE_CHECKING:
    from app.jobs.kinds import Claim

log = logging.getLogger(__name__)

Found = Literal["message", "poll"]

PAUSE_SECONDS = 1.0
LEFT_BYTES = 512 * 1024**2
POLLS_TO_WORRY = 5
READY_SECONDS = 0.1  # between two checks whether to stop waiting for a slot


class Slots:
    """The slots of a worker, and the wake-ups that they share."""

    def __init__(
        self,
        db: Database,
        blobs: BlobStore,
        settings: Settings,
        worker_id: str,
        metrics: WorkerMetrics | None = None,
        start_fit: Callable[[int], FitProcess] = FitProcess,
    ) -> None:
        self.db = db
        self.blobs = blobs
        self.settings = settings
        self.worker_id = worker_id
        self.metrics = metrics or WorkerMetrics(CollectorRegistry())
        self.start_fit = start_fit
        self.memory_bytes = memory_per_fit(settings)
        self.stopping = threading.Event()
        self.ready = threading.Event()  # a slot has been ready for work
        self.waited_at = -math.inf  # when a job last waited long for a kernel
        self.by_message = 0
        self.by_poll = 0
        self.polls_in_a_row = 0
        self._changed = threading.Condition()
        self.idle = 0
        self._wake_ups = 0
        self.slots = [_Slot(self, number) for number in range(settings.worker_slots)]

    def start(self) -> None:
        """Start every slot; a slot is ready when its fit process is."""
        for slot in self.slots:
            slot.start()

    def wake(self) -> None:
        """Wake an idle slot, because there is a job in the queue.

        Waits while every slot is busy: a busy worker that swallowed wake-ups would keep them from an idle one.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._wake_ups < self.idle or self.stopping.is_set())
            if not self.stopping.is_set():
                self._wake_ups += 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Stop claiming jobs, stop the fits, return their jobs to the queue, and end the processes. Returns when all is
        done.
        """
        self.stopping.set()
        with self._changed:
            self._changed.notify_all()
        for slot in self.slots:
            if slot.is_alive():
                slot.join()

    def wait_for_work(self) -> Found | None:
        """Block an idle slot until a message arrives or a poll of the jobs table is due; returns which, or None when
        the worker stops.
        """
        with self._changed:
            self.idle += 1
            note_wait("worker")
            self._changed.notify_all()  # a wake-up may be waiting for an idle slot
            try:
                self._changed.wait_for(
                    lambda: self._wake_ups or self.stopping.is_set(), self.settings.poll_seconds
                )
                if self.stopping.is_set():
                    return None
                if self._wake_ups:
                    self._wake_ups -= 1
                    return "message"
                return "poll"
            finally:
                note_step("worker")
                self.idle -= 1

    def note_wait(self) -> None:
        """Note that a job has waited long for a kernel, so that the compiling processes give way."""
        self.waited_at = time.monotonic()

    def note_found(self, found: Found) -> None:
        """Count how a slot found its job. Repeatedly finding jobs by polling means that messages do not arrive."""
        with self._changed:
            if found == "message":
                self.by_message += 1
                self.polls_in_a_row = 0
            else:
                self.by_poll += 1
                self.polls_in_a_row += 1


class _Slot(threading.Thread):
    """The thread of one slot. It lives as long as the worker, because the kernel ends its fit process with it."""

    def __init__(self, slots: Slots, number: int) -> None:
        super().__init__(name=f"slot-{number}")
        self._slots = slots
        self.process: FitProcess | None = None

    def run(self) -> None:
        """Run jobs until the worker stops. An error here causes a pause, but never ends the slot."""
        stopping = self._slots.stopping
        while not stopping.is_set():
            note_step("worker")
            try:
                self._serve()
            except Unavailable as error:
                if isinstance(error, OutOfSpace):  # `Database` logs an outage, once
                    log.warning("%s", error)
                stopping.wait(PAUSE_SECONDS)
            except FitProcessDied as error:
                log.error("%s while idle", error)
                stopping.wait(PAUSE_SECONDS)
            except Exception:
                log.exception("unexpected error in %s", self.name)
                self._drop_process()
                stopping.wait(PAUSE_SECONDS)
        self._drop_process()
        note_wait("worker")

    def _serve(self) -> None:
        """Wait for a job, then run jobs until there are none."""
        from app.jobs.kinds import KINDS
        from workers.attempt import Attempt

        slots = self._slots
        if self._warm_process() is None or (found := slots.wait_for_work()) is None:
            return
        if found == "poll" and not slots.db.reading(queue.has_work, slots.settings, KINDS):
            return
        first = True
        while (process := self._warm_process()) is not None:
            note_step("worker")
            resources.check(slots.settings)  # a job that is started without room loses an attempt
            started = time.perf_counter()
            claim = slots.db.writing(queue.claim, slots.settings, slots.worker_id, KINDS)
            if claim is None:
                return
            claimed = time.perf_counter()
            slots.metrics.claims.observe(claimed - started)
            if claim.waited_seconds is not None:
                slots.metrics.waits.labels(claim.kind).observe(claim.waited_seconds)
            if first:
                slots.note_found(found)
                first = False
            origin = logs.request_id.set(claim.request_id)
            attempt = Attempt(
                claim,
                process,
                db=slots.db,
                blobs=slots.blobs,
                settings=slots.settings,
                memory_bytes=slots.memory_bytes,
                stopping=slots.stopping,
                on_long_wait=slots.note_wait,
            )
            try:
                with (
                    trace.resumed(claim.traceparent),
                    tracing.attempt(claim.job_id, claim.token, **_described(claim)) as span,
                ):
                    outcome = attempt.run()
                    if span is not None:
                        span.set("rankwright.job.outcome", outcome)
            finally:
                logs.request_id.reset(origin)
            slots.metrics.fits.labels(claim.kind).observe(time.perf_counter() - claimed)
            slots.metrics.attempts.labels(claim.kind, outcome).inc()

    def _warm_process(self) -> FitProcess | None:
        """Return this slot's fit process, started again if it died; None if the worker stops meanwhile."""
        if self.process is not None and self.process.alive:
            return None if self._slots.stopping.is_set() else self.process
        self._drop_process()
        self.process = self._slots.start_fit(threads_per_fit(self._slots.settings))
        # While the process starts: the services, which the first job needs.
        importlib.import_module("workers.attempt")
        while not self._slots.stopping.is_set():  # it reports that it is ready, or dies
            note_step("worker")
            if self.process.receive(timeout=0.1) is not None:
                self._slots.ready.set()
                return self.process
        return None

    def _drop_process(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process = None


def _described(claim: Claim) -> dict[str, str | int]:
    """Return the attributes of the span for an attempt."""
    return {
        "rankwright.job.id": claim.job_id,
        "rankwright.job.kind": claim.kind,
        "rankwright.job.attempt": claim.attempt,
        "rankwright.owner": claim.owner,
    }


class Presence(threading.Thread):
    """Inserts the worker's row once a slot is ready, updates it with every heartbeat, and deletes it at the end."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(name="presence", daemon=True)
        self._slots = slots
        self._end = threading.Event()
        self._worried = False

    def run(self) -> None:
        """Send heartbeats until `end`. An error is logged, and the next heartbeat retries."""
        while not self._slots.ready.wait(READY_SECONDS):
            if self._end.is_set():
                return
        log.info("worker %s is ready", self._slots.worker_id)
        while not self._end.is_set():
            try:
                self._beat()
            except Unavailable:
                pass  # `Database` logs it
            except Exception:
                log.exception("the worker's row could not be written")
            self._end.wait(self._slots.settings.heartbeat_seconds)

    def end(self) -> None:
        """Stop the heartbeats and delete the row, because this worker ends normally."""
        self._end.set()
        self.join()
        with suppress(Unavailable):  # the row grows old, and is pruned
            self._slots.db.writing(repository.deregister, self._slots.worker_id)

    def _beat(self) -> None:
        self._slots.db.writing(self._write, self._note())

    def _write(self, session: Session, note: str | None) -> None:
        """Update the worker's row, or insert it."""
        slots = self._slots
        known = repository.seen(
            session,
            slots.worker_id,
            by_message=slots.by_message,
            by_poll=slots.by_poll,
            note=note,
        )
        if not known:
            repository.register(
                session,
                slots.worker_id,
                host=socket.gethostname(),
                version=__version__,
                slots=slots.settings.worker_slots,
            )

    def _note(self) -> str | None:
        """Return a note for the worker's row if jobs are found only by polling, and log it once; else None."""
        polls = self._slots.polls_in_a_row
        worried, self._worried = self._worried, polls >= POLLS_TO_WORRY
        if not self._worried:
            return None
        note = f"the last {polls} jobs were found by polling the table: no messages come from the broker"
        if not worried:
            log.warning("%s", note)
        return note


def memory_per_fit(settings: Settings) -> int | None:
    """Return the memory limit of one job in bytes: the setting, or this worker's part of the available memory; None if
    unknown.

    A quarter of that memory, and at least 512 MiB, is left to the processes themselves and to others.
    """
    if settings.job_memory_bytes is not None:
        return settings.job_memory_bytes
    total = resources.total_bytes()
    if total is None or not sys.platform.startswith("linux"):  # other systems have no limit
        return None
    return max(min(3 * total // 4, total - LEFT_BYTES), total // 4) // settings.worker_slots


def threads_per_fit(settings: Settings) -> int:
    """Return the number of threads of one fit: the setting, or this process's cores divided by the number of slots."""
    if settings.job_threads is not None:
        return settings.job_threads
    usable = getattr(os, "sched_getaffinity", None)  # Linux: the cores this process may run on
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    return max(1, cores // settings.worker_slots)
