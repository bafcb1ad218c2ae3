"""The fit process of one slot: takes jobs over a pipe and runs them one by one, `python -m workers.child FD PARENT`.

It accesses neither database nor broker. Messages are small JSON objects:

- to the child: `{"type": "job", "payload": …, "memory_bytes": …}`, `{"type": "stop", "keep": …}`, where `keep` requests
  a checkpoint, `{"type": "end_early"}`, which requests the best result so far, and `{"type": "give_way"}`, which stops
  the job as soon as it has made a checkpoint; the child ends when the pipe is closed;
- to the parent: `ready` once, then for each job any number of `progress`, `checkpoint`, `loading` and `loaded`, and
  exactly one of `result`, `stopped`, `memory` and `error`.

It is ready at once. While idle, it imports the scientific libraries, which a first job interrupts, and later returns
memory to the system. Only after a job that has left much memory behind must the next job wait for that.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import logging
import math
import os
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from errno import ENOMEM
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from app.platform import failpoints, trace, tracing
from app.platform.processes import die_with_parent, trim_heap
from workers.fit_process import Message, private_bytes, warm_up

OOM_SCORE = 500  # of 1000
PROGRESS_SECONDS = 1.0  # the parent writes one a second at most
# A value of a step that took a greater part of the time since the last report is not read again.
EXPENSIVE_SHARE = 0.005
# Stacks of threads that a library starts: refused one, it may abort the process.
SLACK_BYTES = 64 * 1024**2
# A checkpoint is made so seldom that all of them together take at most a hundredth of the fit's time.
MIN_PAUSE = 100.0
# The parent puts it on disk while the job's heartbeat, and a cancel, wait.
MAX_CHECKPOINT_BYTES = 512 * 1024**2
_OF_PHASE = ("trial", "algorithm", "fold")
IDLE_SECONDS = 0.5
"""Without a job for so long, the process counts as idle."""
LARGE_BYTES = 64 * 1024**2
"""A job that leaves more than this behind is followed by a collection at once."""
# Elsewhere RLIMIT_DATA does not cover what numpy allocates; the parent's watch remains.
_HAS_LIMIT = sys.platform.startswith("linux")

log = logging.getLogger("workers.child")


class Stopped(BaseException):
    """Raised in a fit because the parent requested its end. Not an Exception, so that no algorithm catches it."""


class Orders:
    """The parent's requests about the current job: to stop, with or without a checkpoint, to end early with the best
    model so far, or to stop as soon as a checkpoint is made.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.keep = False
        self.end_early = False
        self.give_way = False

    def clear(self) -> None:
        """Discard requests that arrived after the previous job's end: they were for that job."""
        self.stop.clear()
        self.keep = self.end_early = self.give_way = False


class Inbox:
    """Reads the pipe in a separate thread, so that a fit in numpy or numba cannot delay a stop or hide the parent's
    end.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._jobs: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self.orders = Orders()
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def next_job(self, when_idle: Callable[[], object]) -> Message:
        """Return the next job; `when_idle` is called once if there is none for a moment."""
        with contextlib.suppress(queue.Empty):
            return self._jobs.get(timeout=IDLE_SECONDS)
        when_idle()
        return self._jobs.get()

    def is_empty(self) -> bool:
        """Return True if no job is waiting."""
        return self._jobs.empty()

    def _read(self) -> None:
        """Read messages until the pipe ends, and then end the process."""
        while True:
            try:
                message = json.loads(self._connection.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)  # the worker is gone; nobody waits for what runs here
            if message["type"] == "stop":
                self.orders.keep = message["keep"]
                self.orders.stop.set()
            elif message["type"] == "end_early":
                self.orders.end_early = True
            elif message["type"] == "give_way":
                self.orders.give_way = True
            else:
                self.orders.clear()
                self._jobs.put(message)


class CheckpointWriter:
    """Writes the checkpoints of one job's fits to files in its work folder.

    The parent stores each checkpoint as a blob and its key in the job's row; the next attempt, in any worker, receives
    it. A file begins with the id of its job, so that no two jobs share a blob, and each can be deleted with its job.
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        from core.base.checkpoint import Checkpoints

        asked = payload.get("checkpoint") or {"job_id": "", "resume": None, "every": 0.0}
        self._folder = payload.get("workdir", "")
        self.job_id: str = asked["job_id"]
        self._every: float = asked["every"]
        self._number = 0
        self._next = time.monotonic() + self._every
        self.checkpoints = Checkpoints(_read_checkpoint(asked["resume"], self.job_id))

    def due(self, now: float) -> bool:
        """Return True if a checkpoint is due."""
        return self._every > 0.0 and now >= self._next

    def make(self) -> dict[str, Any] | None:
        """Write a checkpoint of the running fit; returns its path and hash, or None if the fit supports none.

        An error here must not harm the fit.
        """
        started = time.monotonic()
        made = None
        try:
            data = self.checkpoints.take(MAX_CHECKPOINT_BYTES)
            if data is not None:
                made = self._write(data)
        except (MemoryError, OSError) as error:
            log.warning("%s: no checkpoint: %r", self.job_id, error)
        now = time.monotonic()
        self._next = now + max(self._every, MIN_PAUSE * (now - started))
        return made

    def _write(self, data: bytes) -> dict[str, Any]:
        """Write the data to a new file that begins with the job's id; returns its path and hash."""
        self._number += 1
        path = Path(self._folder, f"checkpoint-{self._number}")
        label = f"{self.job_id}\n".encode()
        with path.open("wb") as file:
            file.write(label)
            file.write(data)
        return {"path": str(path), "sha256": hashlib.sha256(label + data).hexdigest()}


def _read_checkpoint(path: str | None, job_id: str) -> bytes | None:
    """Return the checkpoint of an earlier attempt; None if the file does not exist or belongs to another job."""
    if path is None:
        return None
    try:
        label, _, data = Path(path).read_bytes().partition(b"\n")
    except OSError as error:
        log.warning("%s starts again, because its checkpoint cannot be read: %s", job_id, error)
        return None
    return data if label.decode(errors="replace") == job_id else None


class Progress:
    """The callback of a fit, called after every round: reports progress at intervals, and raises `Stopped`
    on request.
    """

    def __init__(
        self, send: Callable[[Message], None], orders: Orders, writer: CheckpointWriter
    ) -> None:
        self._send = send
        self._orders = orders
        self._writer = writer
        self._sent_at = -math.inf
        self._ended: tuple[int, int] | None = None
        self._under_way: tuple[Any, ...] = ()
        self._expensive: set[str] = set()
        self._phase = tracing.Phases()
        self._was_asked = False  # to give way

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._phase.end()

    def __call__(self, step: int, of: int, info: Mapping[str, float]) -> None:
        """Report that `step` of `of` steps is done; `of` is 0 for work without steps. `info` has values such as the
        loss.
        """
        from app.jobs.progress import Report

        job: Mapping[str, Any] = {}
        if isinstance(info, Report):
            if self._orders.end_early and info.end is not None:
                raise info.end
            job, info = {"fraction": info.fraction, **info.job}, info.metrics
        if self._orders.stop.is_set():
            if self._orders.keep:
                self._keep()
            raise Stopped
        now = time.monotonic()
        if of > 0:
            failpoints.reach("fit")
            if self._gives_way() or self._writer.due(now):
                is_kept = self._keep()
                if is_kept and self._orders.give_way:
                    raise Stopped
        under_way = (job.get("phase"), *(job.get(name) for name in _OF_PHASE))
        begins = under_way != self._under_way
        # Each column of a table ends with the same last row.
        ended = (step, of) if step >= of else None
        is_new = begins or (ended is not None and ended != self._ended)
        if not is_new and now < self._sent_at + PROGRESS_SECONDS:
            return
        fraction = min(step / of, 1.0) if of > 0 else 0.0
        progress: dict[str, Any] = {"fraction": fraction, **job}
        if of > 0:
            detail = ", ".join(f"{name} {value:.6g}" for name, value in self._read(info))
            progress |= {"step": step, "of": of, "detail": detail}
        if begins:
            self._phase.begin(under_way[0], dict(zip(_OF_PHASE, under_way[1:], strict=True)))
        self._send({"type": "progress", "progress": progress})
        self._sent_at, self._under_way, self._ended = now, under_way, ended

    def _read(self, info: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """Yield the values of `info`. A value that takes long is not computed again: the AUC of many rounds would take
        as long as the fit.
        """
        for name in info:
            if name in self._expensive:
                continue
            started = time.monotonic()
            yield name, info[name]
            if time.monotonic() - started > EXPENSIVE_SHARE * (started - self._sent_at):
                self._expensive.add(name)

    def _gives_way(self) -> bool:
        """Return True for the first step after a request to give way: it makes a checkpoint at once. If that fails, the
        job continues until the next one.
        """
        if not self._orders.give_way or self._was_asked:
            return False
        self._was_asked = True
        return True

    def _keep(self) -> bool:
        """Make a checkpoint; returns False if the fit supports none, or if it failed."""
        made = self._writer.make()
        if made is not None:
            self._send({"type": "checkpoint"} | made)
        return made is not None


def limit_memory(more_bytes: int | None) -> None:
    """Limit this process to `more_bytes` more than its current memory, plus some slack; None removes the limit.

    An allocation far above it then raises MemoryError, and the process remains usable. The parent enforces the exact
    limit by measuring the memory that is really used.
    """
    if not _HAS_LIMIT:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if more_bytes is None:
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        return
    soft = _data_bytes() + more_bytes + SLACK_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (_at_most(soft, hard), hard))


def is_refused_memory(error: BaseException | None) -> bool:
    """Return True if an error other than MemoryError was caused by the job's limit: it or its cause is a refused thread
    or mapping, and the job's memory exceeds its limit.
    """
    soft = resource.getrlimit(resource.RLIMIT_DATA)[0] if _HAS_LIMIT else resource.RLIM_INFINITY
    if soft == resource.RLIM_INFINITY or soft - _data_bytes() >= SLACK_BYTES:
        return False
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == ENOMEM):
            return True
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _at_most(soft: int, hard: int) -> int:
    return min(soft, sys.maxsize if hard == resource.RLIM_INFINITY else hard)


def _data_bytes() -> int:
    """Return the bytes of this process's data segment."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmData")


class Loading:
    """Notifies the parent that a job is importing a library or compiling, and excludes the memory for that from the
    job's.
    """

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self._n_kernels = 0
        self.under_way = False
        self._limit = self._data = self._private = 0
        self._span = tracing.Phases()

    def kernels(self, kernel: str | None) -> None:
        """Begin the compilation of a kernel; None: the last one that a call needs is compiled."""
        if kernel is None:
            self.end()
            return
        from workers.compile import compiled_so_far

        self._n_kernels += 1
        found = compiled_so_far()
        progress = (
            f"{self._n_kernels} so far" if found is None else f"{found[0]} of {found[1]} are there"
        )
        if not self.under_way:
            self._span.begin("compile kernels", {})
        self.begin(f"compiling kernels for this machine, once: {progress}")

    def begin(self, detail: str | None) -> None:
        """Remove the job's memory limit until `end`; `detail` is shown in the job's progress."""
        if not self.under_way:
            self.under_way = True
            self._private = private_bytes("self")
            if _HAS_LIMIT:
                self._limit, self._data = resource.getrlimit(resource.RLIMIT_DATA)[0], _data_bytes()
                limit_memory(None)
        self._send({"type": "loading", "detail": detail})

    def end(self) -> None:
        """Restore the memory limit, raised by the memory that was allocated meanwhile."""
        self.under_way = False
        self._span.end()
        if _HAS_LIMIT:
            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            more = max(0, _data_bytes() - self._data)
            soft = self._limit if self._limit == resource.RLIM_INFINITY else self._limit + more
            resource.setrlimit(resource.RLIMIT_DATA, (_at_most(soft, hard), hard))
        self._send({"type": "loaded", "bytes": max(0, private_bytes("self") - self._private)})


def run_job(message: Message, send: Callable[[Message], None], orders: Orders) -> Message:
    """Run one job and return its last message; `send` sends the messages before it."""
    loading = Loading(send)
    is_cold = "core.kernels.compiled" not in sys.modules
    if is_cold:
        loading.begin(None)  # the first job's memory is not that of the libraries
    from app.jobs import execution
    from core.kernels import when_compiling

    if is_cold:
        from app.preload import preload

        with tracing.span("load libraries"):
            preload()
        loading.end()
    try:
        limit_memory(message["memory_bytes"])
        writer = CheckpointWriter(message["payload"])
        with (
            tracing.span("run"),
            Progress(send, orders, writer) as progress,
            writer.checkpoints,
            when_compiling(loading.kernels),
        ):
            result = execution.run(message["payload"], progress)
    except Stopped:
        return {"type": "stopped"}
    except MemoryError:
        return {"type": "memory"}
    except Exception as error:
        if is_refused_memory(error):
            return {"type": "memory"}
        problem, user_fault = execution.problem_of(error)
        if not user_fault:
            log.exception("the fit failed")
        return {"type": "error", "problem": problem, "user_fault": user_fault}
    finally:
        limit_memory(None)
    if writer.checkpoints.resumed:
        log.info("%s continued from a checkpoint", writer.job_id)
    return {"type": "result", "result": result}


def main(arguments: list[str]) -> None:
    """Run jobs that arrive over the pipe, until its other end is closed."""
    descriptor, parent_pid = int(arguments[0]), int(arguments[1])
    die_with_parent(parent_pid)
    _go_first()
    # A Ctrl-C reaches every process of a terminal; the worker decides when to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection = Connection(descriptor)

    def send(message: Message) -> None:
        connection.send_bytes(json.dumps(message).encode())

    inbox = Inbox(connection)
    send({"type": "ready"})
    _prepare(inbox)
    memory = Memory()
    while True:
        message = inbox.next_job(memory.give_back)
        payload = message["payload"]
        with trace.resumed(payload.get("traceparent")), tracing.recording_to(payload.get("spans")):
            send(run_job(message, send, inbox.orders))
        if memory.is_much_left():
            memory.give_back()


class Memory:
    """Returns memory to the system after jobs.

    A collection visits all objects that are not exempt from it; for the imported modules alone that takes half as long
    as a small job. So the modules are exempt, and a collection waits until the process is idle or a job has left much
    memory behind.
    """

    def __init__(self) -> None:
        self._held = private_bytes("self")
        self._n_modules = 0

    def is_much_left(self) -> bool:
        """Return True if the process has much more memory than after the last collection."""
        return private_bytes("self") > self._held + LARGE_BYTES

    def give_back(self) -> None:
        """Collect garbage, and return free memory to the system."""
        gc.collect()
        if self._n_modules != len(sys.modules):
            self._n_modules = len(sys.modules)
            gc.freeze()
        trim_heap()
        self._held = private_bytes("self")


def _go_first() -> None:
    """Make this process the first that the kernel kills if the machine's memory runs out, before the service."""
    with contextlib.suppress(OSError):  # not Linux
        score = Path("/proc/self/oom_score_adj")
        score.write_text(str(max(OOM_SCORE, int(score.read_text()))))


def _prepare(inbox: Inbox) -> None:
    """Import modules before the first job arrives; a job waits only for an import that has begun."""
    from app.platform.logging import configure_logging
    from app.platform.settings import Settings

    settings = Settings()
    configure_logging(settings)
    if settings.warm_up:
        try:
            warm_up(lambda: not inbox.is_empty())
        except Exception:  # the first job is slower, and reports the error
            log.warning("a fit process starts without being warmed up", exc_info=True)


if __name__ == "__main__":
    main(sys.argv[1:])
