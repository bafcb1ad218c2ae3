"""One attempt at one job: passes it to the fit process, extends the lease, enforces the limits, and records the
outcome.
"""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from app.jobs import child_jobs, execution, queue
from app.jobs.fetching import Fetching
from app.jobs.kinds import Claim, kind_of
from app.jobs.progress import COMPILING, PROGRESS_SECONDS, clocked, seconds_between_events
from app.jobs.queue_repository import Requests
from app.operations.sweeping import discard
from app.platform import catalogue, failpoints, trace, tracing
from app.platform.blobs import BlobDamaged, BlobMissing, BlobStore
from app.platform.database import Database
from app.platform.errors import CancelRequested, LeaseLost, Overtaken, Unavailable
from app.platform.processes import note_step, note_wait
from app.platform.settings import Settings
from app.platform.tables import FINAL_STATES, JobState
from core.kernels import WorkClock
from workers.fit_process import FitProcess, FitProcessDied, Message

log = logging.getLogger(__name__)

CHECKPOINTS = "checkpoints"  # their kind in the blob store
CLUSTER_LOST = "cluster_lost"
"""The code of an attempt's end; the file of this name among the kept codes tells the next attempt."""
SPANS = "spans.ndjson"
"""The file in the work folder to which the fit process writes its spans."""
POLL_SECONDS = 0.1
FIRST_PROGRESS_SECONDS = 0.25
"""A job that ends sooner writes no progress: a commit beside it would slow it down."""
RETRY_SECONDS = 1.0
LONG_WAIT_SECONDS = 1.0  # for a kernel: each takes half a second of a core that does nothing else

# The end of an attempt: a transaction on the token, which may be repeated if the database is away. It returns the
# job's state afterwards.
Ending = Callable[[], JobState]
LOST = "lost"
Result = TypeVar("Result")


class Attempt:
    """One attempt at a claimed job, until its end is written or its lease is lost."""

    def __init__(
        self,
        claim: Claim,
        process: FitProcess,
        *,
        db: Database,
        blobs: BlobStore,
        settings: Settings,
        memory_bytes: int | None,
        stopping: threading.Event,
        on_long_wait: Callable[[], object],
    ) -> None:
        """`on_long_wait` is called when the fit process waits for a kernel for more than a moment."""
        self._db = db
        self._blobs = blobs
        self._settings = settings
        self._memory_bytes = memory_bytes
        self._claim = claim
        self._process = process
        self._stopping = stopping
        self._on_long_wait = on_long_wait
        self._waits_since = math.inf  # for a kernel
        self._began = started = time.monotonic()
        self._deadline = started + claim.seconds_left
        self._next_beat = started + settings.heartbeat_seconds
        self._next_progress = started + FIRST_PROGRESS_SECONDS
        self._next_requests = started + POLL_SECONDS
        self._next_event = started
        self._progress: dict[str, Any] | None = None
        self._last_sent: dict[str, Any] | None = None
        self._fit_progress: dict[str, Any] = {"fraction": 0.0}
        self._improvements = list(claim.improvements)
        self._started = started - (claim.timeout_seconds - claim.seconds_left)
        self._end_early_sent = claim.keep_requested
        self._give_way_sent = False
        self._is_loading = False
        self._working = WorkClock(time.monotonic)
        self._checkpoint_key = claim.checkpoint_key
        self._codes = blobs.job_dir("codes", claim.job_id)
        self._published: execution.Published | None = None
        self._keeps_codes = False
        self._has_lost_cluster = False
        self._is_last = 1 < claim.attempt == claim.max_attempts

    def run(self) -> str:
        """Run the attempt, and return the state in which it leaves the job.

        A lost lease is not an error: another attempt owns the job, and this attempt's result is dropped. The same
        applies to a worker that ends during an outage of the database.
        """
        workdir: Path | None = None
        failpoints.reach("claimed")
        try:
            try:
                workdir = self._blobs.staging_dir()
                with tracing.span("prepare"):
                    prepared = self._db.reading(
                        execution.prepare, self._settings, self._claim, workdir
                    )
                with tracing.span("fetch files"):
                    payload = self._beside_lease(partial(execution.fetch, self._blobs, prepared))
                self._has_lost_cluster = self._ask_lost_cluster()
                if payload.get("cluster") and self._has_lost_cluster and self._is_last:
                    payload["cluster"] |= {"is_lost": True}
                added = {
                    "checkpoint": self._checkpoint_options(workdir),
                    "started": self._began,
                    "memory_bytes": self._memory_bytes,
                    "codes_folder": str(self._codes),
                    "spans": str(workdir / SPANS) if tracing.is_recording() else None,
                }
                payload, stopped = self._fetch_source(payload)
                with tracing.span("fit process"):
                    added["traceparent"] = trace.current_traceparent()
                    ending = stopped or self._fit(payload | added)
                tracing.export_file(workdir / SPANS)
            except LeaseLost:
                raise
            except Exception as error:
                ending = self._failure(error)
            with tracing.span("write the outcome"):
                outcome = self._write(ending)
            failpoints.reach("finished")
            if outcome in FINAL_STATES or not (self._keeps_codes or outcome == LOST):
                shutil.rmtree(self._codes, ignore_errors=True)
            is_first = self._claim.parent_id is None and self._claim.token == 1  # no child jobs yet
            if outcome in FINAL_STATES and not is_first:
                self._drop_parts(self._claim.parent_id or self._claim.job_id)
            return outcome
        except LeaseLost:
            log.warning(
                "%s: the lease was lost; the work of this attempt is dropped", self._claim.job_id
            )
            return LOST
        finally:
            if workdir is not None:
                shutil.rmtree(workdir, ignore_errors=True)
            self._drop_checkpoint(self._checkpoint_key)

    def _fetch_source(self, payload: dict[str, Any]) -> tuple[dict[str, Any], Ending | None]:
        """Run the step of the job's kind that reads from outside of the service, if it has one, in a thread; returns
        its payload, and the ending if the job must stop. Raises its error.
        """
        if kind_of(self._claim.kind).fetch is None:
            return payload, None
        note_wait("worker")
        fetching, ending = Fetching(self._settings), None
        with tracing.span("fetch the source"), ThreadPoolExecutor(max_workers=1) as pool:
            work = partial(execution.fetch_source, self._settings, self._claim, payload, fetching)
            done = pool.submit(copy_context().run, work)
            try:
                while ending is None and not wait([done], POLL_SECONDS).done:
                    ending = self._reason_to_stop_fetching()
                    if fetching.progress is not None:
                        self._progress = self._on_top(fetching.progress)
                    self._keep_lease()
            finally:
                fetching.stop()  # the pool then waits for the end of the thread
        note_step("worker")
        return (payload, ending) if ending is not None else (done.result(), None)

    def _reason_to_stop_fetching(self) -> Ending | None:
        """Return the ending if the job must stop before its fit: this worker ends, a request to cancel, the time limit;
        else None.
        """
        if self._stopping.is_set():
            return partial(self._db.writing, queue.give_back, self._claim)
        now = time.monotonic()
        if now >= self._next_requests:
            self._next_requests = now + POLL_SECONDS
            if self._requests().cancel:
                return self._cancelled()
        if now > self._deadline:
            return partial(self._db.writing, queue.time_out, self._claim)
        return None

    def _fit(self, payload: dict[str, Any]) -> Ending:
        """Run the fit, supervise it, and return how it ended. The fit process is idle or dead afterwards."""
        try:
            self._process.start_job(payload, self._memory_bytes)
            while True:
                note_step("worker")
                message = self._process.receive(POLL_SECONDS)
                if message is not None and (ending := self._handle(message)) is not None:
                    return ending
                if self._stopping.is_set():
                    return self._give_back()
                if (ending := self._reason_to_stop()) is not None:
                    self._process.stop_job()
                    return ending
                if time.monotonic() > self._waits_since + LONG_WAIT_SECONDS:
                    self._on_long_wait()
                self._keep_lease()
        except FitProcessDied as error:
            self._keeps_codes = True
            return self._retry_later(str(error))
        except Exception:
            self._process.stop_job()  # its late answer must not be taken for the next job's
            raise

    def _handle(self, message: Message) -> Ending | None:
        """Handle a message of the fit process; returns the ending if the message ends the job, else None."""
        match message["type"]:
            case "progress":
                self._fit_progress = message["progress"]
                self._progress = self._on_top(message["progress"])
                return None
            case "loading":
                self._is_loading = True
                if message["detail"] is not None:
                    self._waits_since = time.monotonic()
                    self._working.listen(message["detail"])
                    compiling = {"phase": COMPILING, "detail": message["detail"]}
                    self._progress = self._on_top(self._fit_progress | compiling)
                return None
            case "loaded":
                self._is_loading = False
                self._waits_since = math.inf
                self._working.listen(None)
                self._process.leave_out(message["bytes"])
                return None
            case "checkpoint":
                self._keep_checkpoint(message)
                return None
            case "stopped" if self._give_way_sent:
                self._keeps_codes = True
                return partial(self._db.writing, queue.give_way, self._claim)
            case "result":
                return partial(self._complete, message["result"])
            case "memory" if self._memory_bytes is not None:
                return self._over_memory(self._memory_bytes)
            case "memory":
                return self._retry_later("the memory of this machine was used up")
            case "error" if message["user_fault"]:
                return partial(self._db.writing, queue.fail, self._claim, message["problem"])
            case "error":
                if message["problem"]["code"] == CLUSTER_LOST:
                    self._keep_lost_cluster()
                return self._retry_later(message["problem"]["detail"])
        raise RuntimeError(f"unknown message from the fit process: {message['type']!r}")

    def _complete(self, result: dict[str, Any]) -> JobState:
        """Store the result's files, once, then write it in a transaction, repeated after an outage of the database."""
        if self._published is None:
            self._published = self._beside_lease(
                partial(execution.publish, self._blobs, self._claim, result)
            )
        self._db.writing(execution.complete, self._claim, result, self._published)
        return JobState.WAITING if "fan_out" in result else JobState.SUCCEEDED

    def _beside_lease(self, work: Callable[[], Result]) -> Result:
        """Run work that waits for a disk in a thread, and extend the lease meanwhile; returns its result. Raises
        LeaseLost after the work has ended.
        """
        note_wait("worker")
        with ThreadPoolExecutor(max_workers=1) as pool:
            done = pool.submit(copy_context().run, work)  # its log lines name the request, too
            while not wait([done], POLL_SECONDS).done:
                self._keep_lease()
        note_step("worker")
        return done.result()

    def _reason_to_stop(self) -> Ending | None:
        """Return the ending if the fit must stop (a request to cancel, the memory limit, the time limit), else None.
        Also passes on a request to end early or to give way.
        """
        now = time.monotonic()
        if now >= self._next_requests:
            self._next_requests = now + POLL_SECONDS
            asked = self._requests()
            if asked.cancel:
                return self._cancelled()
            if asked.keep and not self._end_early_sent:
                self._process.end_early()
                self._end_early_sent = True
            if asked.give_way and not self._give_way_sent:
                self._process.give_way()
                self._give_way_sent = True
        limit = self._memory_bytes
        if limit is not None and not self._is_loading and self._process.job_memory_bytes() > limit:
            self._process.kill()  # a request would give it a second to take more
            return self._over_memory(limit)
        if now > self._deadline:
            return partial(self._db.writing, queue.time_out, self._claim)
        return None

    def _give_back(self) -> Ending:
        """Stop the fit, with a checkpoint for another worker if it supports that; returns the ending. The fit may end
        by itself at the same time.
        """
        note_wait("worker")
        for message in self._process.stop_job(keep=True, seconds=self._settings.stop_seconds):
            if message["type"] != "stopped" and (ending := self._handle(message)) is not None:
                return ending
        self._keeps_codes = True
        if self._has_lost_cluster:
            self._keep_lost_cluster()  # this attempt does not count
        return partial(self._db.writing, queue.give_back, self._claim)

    def _keep_lost_cluster(self) -> None:
        """Preserve the coded table's files for the next attempt, and create a marker file there: this attempt lost the
        Dask cluster.
        """
        self._keeps_codes = True
        try:
            self._codes.mkdir(parents=True, exist_ok=True)
            (self._codes / CLUSTER_LOST).touch()
        except OSError as error:
            log.warning("%s: the next attempt will not know: %s", self._claim.job_id, error)

    def _ask_lost_cluster(self) -> bool:
        """Return True if the previous attempt lost the Dask cluster, and delete the marker file for it."""
        try:
            (self._codes / CLUSTER_LOST).unlink()
        except OSError:
            return False
        return True

    def _checkpoint_options(self, workdir: Path) -> dict[str, Any]:
        """Return the options for checkpoints: `resume` is a path or None, `every` is in seconds, 0 for never.

        The last of several attempts starts from the beginning, in case the checkpoint caused the losses; except after
        the loss of a cluster, which then was the cause.
        """
        starts_anew = self._is_last and not self._has_lost_cluster
        return {
            "job_id": self._claim.job_id,
            "resume": None if starts_anew else self._fetch_checkpoint(workdir),
            "every": self._settings.checkpoint_seconds,
        }

    def _fetch_checkpoint(self, workdir: Path) -> str | None:
        """Return the path of the last checkpoint; None if there is none, or if its file is missing or damaged."""
        if self._checkpoint_key is None:
            return None
        try:
            blob = self._db.reading(catalogue.find, self._checkpoint_key)
            return str(self._beside_lease(partial(self._blobs.pin, blob, workdir)))
        except (BlobMissing, BlobDamaged) as error:
            log.warning("%s starts again: %s", self._claim.job_id, error)
            return None

    def _keep_checkpoint(self, made: Message) -> None:
        """Store a checkpoint as a blob, write its key into the job's row, and delete the previous one.

        The job does not need it: an error here ends no attempt.
        """
        try:
            blob = self._beside_lease(
                partial(self._blobs.publish, Path(made["path"]), CHECKPOINTS, made["sha256"])
            )
            self._db.writing(queue.keep_checkpoint, self._claim, blob)
        except (OSError, Unavailable) as error:
            log.warning("%s: a checkpoint could not be stored: %s", self._claim.job_id, error)
            return
        before, self._checkpoint_key = self._checkpoint_key, blob.key
        self._drop_checkpoint(before)

    def _drop_checkpoint(self, key: str | None) -> None:
        """Delete a checkpoint, unless the job's row refers to it. The sweeper deletes what remains."""
        if key is not None:
            self._discard([key])

    def _drop_parts(self, job_id: str) -> None:
        """Delete the files of the child jobs if their parent has ended. The sweeper deletes what remains."""
        try:
            self._discard(self._db.reading(child_jobs.unneeded_files, job_id))
        except Unavailable as error:
            log.warning("%s: files of its parts are left: %s", self._claim.job_id, error)

    def _discard(self, keys: list[str]) -> None:
        try:
            discard(self._db, self._blobs, self._settings, keys)
        except (OSError, Unavailable) as error:
            log.warning("%s: %s could not be removed: %s", self._claim.job_id, keys, error)

    def _requests(self) -> Requests:
        try:
            return self._db.reading(queue.poll_requests, self._claim)
        except Unavailable:
            return Requests(cancel=False, keep=False, give_way=False)  # asked again soon

    def _keep_lease(self) -> None:
        """Send a heartbeat when it is due, with the fit's progress at most once a second."""
        now = time.monotonic()
        news = self._progress is not None and now >= self._next_progress
        if not news and now < self._next_beat:
            return
        # Each heartbeat repeats the last progress of a fit that reports nothing for long, so that its time advances.
        self._last_sent = progress = self._progress or self._last_sent
        if progress is not None:
            if self._improvements:
                progress = progress | {"improvements": self._improvements}
            compiling = now - self._working()
            progress = clocked(progress, self._claim.spec, now - self._started, compiling)
            self._improvements = progress.get("improvements", [])
        try:
            # Two transactions: the first locks the child job's row, and a parent's row must be locked before a child's.
            is_event = now >= self._next_event
            self._db.writing(
                queue.heartbeat, self._settings, self._claim, progress, is_event=is_event
            )
            failpoints.reach("beat")
            if progress is not None and self._claim.parent_id is not None:
                self._db.writing(child_jobs.report_progress, self._claim.parent_id, progress)
        except Unavailable as error:
            # Only the token shows whether the lease is lost; a locked or unreachable database does not.
            log.warning("%s: no heartbeat: %s", self._claim.job_id, error)
            self._next_beat = self._next_progress = now + RETRY_SECONDS
            return
        self._progress = None
        self._next_progress = now + PROGRESS_SECONDS
        if is_event and progress is not None:
            self._next_event = now + seconds_between_events(now - self._started)
        self._next_beat = now + self._settings.heartbeat_seconds

    def _on_top(self, progress: dict[str, Any]) -> dict[str, Any]:
        """Return the progress of the whole job, including the part that earlier attempts and stages have done."""
        done = self._claim.fraction_done
        return progress | {"fraction": done + (1.0 - done) * progress["fraction"]}

    def _failure(self, error: Exception) -> Ending:
        """Return the ending for an exception in the steps of this process: the job fails for a user's error, and is
        retried for others.
        """
        problem, user_fault = execution.problem_of(error)
        if user_fault:
            return partial(self._db.writing, queue.fail, self._claim, problem)
        if not isinstance(error, Unavailable):  # its message says what is wrong
            log.error(
                "%s: attempt %d failed", self._claim.job_id, self._claim.attempt, exc_info=error
            )
        return self._retry_later(problem["detail"])

    def _retry_later(self, reason: str) -> Ending:
        log.warning("%s: attempt %d: %s", self._claim.job_id, self._claim.attempt, reason)
        return partial(self._db.writing, queue.retry_later, self._claim, reason)

    def _cancelled(self) -> Ending:
        return partial(self._db.writing, queue.fail, self._claim, None, state=JobState.CANCELLED)

    def _over_memory(self, limit: int) -> Ending:
        """Return the ending of a job that exceeds its memory limit."""
        is_set = self._settings.job_memory_bytes is not None
        whose = "which is set" if is_set else "the share of one job in the memory of this machine"
        detail = (
            f"the job needs more memory than the limit of {limit} bytes, {whose}: "
            "RANKWRIGHT_JOB_MEMORY_BYTES of the worker changes it"
        )
        error = queue.problem("memory_limit", "Memory limit exceeded", detail)
        return partial(self._db.writing, queue.fail, self._claim, error)

    def _write(self, ending: Ending) -> str:
        """Write the ending; returns the job's state. During an outage of the database, the write is repeated."""
        failed = False
        while True:
            note_step("worker")
            try:
                return ending()
            except Unavailable as error:
                log.warning("%s: cannot finish: %s", self._claim.job_id, error)
                if self._stopping.wait(RETRY_SECONDS):
                    return LOST  # the reaper will give the job to another worker
            except CancelRequested:
                ending = self._cancelled()
            except Overtaken as error:
                ending = partial(self._db.writing, queue.give_back, self._claim, str(error))
            except LeaseLost:
                raise
            except Exception as error:
                if failed:
                    raise
                failed, ending = True, self._failure(error)
