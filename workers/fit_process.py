"""The parent's side of a fit process: starts it, exchanges messages, measures its memory, stops and kills it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socketpair
from typing import Any

from app.platform.forking import Starter, spawn_module
from app.platform.processes import child_environment, describe_exit
from app.platform.settings import Settings

Message = dict[str, Any]

STOP_SECONDS = 1.0
MAX_STOPPED_LOOKS = 60
"""After so many looks, one a second, at which a fit process was stopped by a signal, it counts as hung."""
# Variables that name database, broker, sources or a caller's key. Those of PostgreSQL's client library begin with PG,
# and those of OpenTelemetry may have a password.
_SECRETS = (
    *(
        f"RANKWRIGHT_{name}".upper()
        for name in Settings.model_fields
        if name.startswith(("database_", "broker_", "connections_"))
    ),
    "RANKWRIGHT_API_KEY",
    "PG",
    "OTEL_",
)
WARM_MODULES = ("app.jobs.execution", "app.training.tasks", "app.datasets.tasks")
"""What every job needs. Not numba, which with LLVM takes 70 MB: the first job imports it in a third of a second."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class FitProcessDied(Exception):
    """The fit process ended by itself; the message is the reason."""


class FitProcess:
    """A running `workers.child`. Start it from a thread that lives as long as the slot: the kernel ends the process
    with that thread, unless `start` has the supervisor fork it, which then ends it with the worker.
    """

    def __init__(self, threads: int, start: Starter = spawn_module) -> None:
        ours, theirs = socketpair()
        with theirs:
            environment = environment_of_fit(child_environment(), threads)
            self._process = start("workers.child", theirs.fileno(), environment)
        self.connection = Connection(ours.detach())
        self.pid = self._process.pid
        self._memory_at_start = 0
        self._n_stopped = 0
        self._look_at = 0.0

    @property
    def alive(self) -> bool:
        """True if the process is running."""
        return self._process.poll() is None

    def _is_hung(self) -> bool:
        """Return True if the process has been stopped by a signal for `MAX_STOPPED_LOOKS` looks. Looks are counted, not
        seconds: after a pause of the whole machine the process has as many left as before.
        """
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + 1.0
        self._n_stopped = self._n_stopped + 1 if is_stopped(self.pid) else 0
        return self._n_stopped >= MAX_STOPPED_LOOKS

    def start_job(self, payload: Mapping[str, Any], memory_bytes: int | None) -> None:
        """Send a job to the idle process, and note its memory."""
        self._memory_at_start = private_bytes(self.pid)
        self._send({"type": "job", "payload": payload, "memory_bytes": memory_bytes})

    def receive(self, timeout: float) -> Message | None:
        """Return the next message, or None if none came in time. Raises `FitProcessDied`, also for a process that was
        stopped by a signal for a minute: it is killed.
        """
        try:
            if not self.connection.poll(timeout):
                if self._is_hung():
                    self.kill()
                    raise FitProcessDied(
                        f"fit process {self.pid} was stopped, and did not continue"
                    )
                return None
            message: Message = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise FitProcessDied(self._obituary()) from None
        return message

    def job_memory_bytes(self) -> int:
        """Return the private bytes that the process has allocated since the job began; 0 if unknown."""
        return max(0, private_bytes(self.pid) - self._memory_at_start)

    def leave_out(self, n_bytes: int) -> None:
        """Exclude `n_bytes` bytes from the job's memory."""
        self._memory_at_start += n_bytes

    def end_early(self) -> None:
        """Request that the running job ends with its best result so far. A job that is already ending ignores this."""
        self._send({"type": "end_early"})

    def give_way(self) -> None:
        """Request that the running job stops as soon as it has made a checkpoint. It then sends `stopped`, as for
        `stop_job`. A job that can make none continues.
        """
        self._send({"type": "give_way"})

    def stop_job(self, *, keep: bool = False, seconds: float = STOP_SECONDS) -> list[Message]:
        """Stop the running job: request it, wait `seconds` for the answer, then kill the process. Check `alive`
        afterwards.

        With `keep`, the process first makes a checkpoint if it can. Returns its messages, without those of progress.
        """
        deadline = time.monotonic() + seconds
        said: list[Message] = []
        try:
            self._send({"type": "stop", "keep": keep})
            while (left := deadline - time.monotonic()) > 0:
                message = self.receive(left)
                if message is None or message["type"] in ("progress", "loading", "loaded"):
                    continue
                said.append(message)
                if message["type"] != "checkpoint":
                    return said
        except FitProcessDied:
            pass
        self.kill()
        return said

    def kill(self) -> None:
        """Kill the process and its group now, and wait for it."""
        if self.alive:
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self.connection.close()

    def _send(self, message: Message) -> None:
        try:
            self.connection.send_bytes(json.dumps(message).encode())
        except OSError:
            raise FitProcessDied(self._obituary()) from None

    def _obituary(self) -> str:
        """Return how the process ended, for a message."""
        # The pipe is closed, so the process ends in a moment.
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return f"fit process {self.pid} closed its pipe"
        return f"fit process {self.pid} {describe_exit(code)}"


def is_stopped(pid: int) -> bool:
    """Return True if a process is stopped by SIGSTOP or a similar signal; False if unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(") ")[2].startswith("T")


def private_bytes(pid: int | str) -> int:
    """Return the bytes of memory that a process shares with no other; 0 if unknown."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * _PAGE


def environment_of_fit(inherited: Mapping[str, str], threads: int) -> dict[str, str]:
    """Return the environment of a fit process: with the variables that numeric libraries read at import, and without
    those for database, broker or key, because it parses callers' files and needs none of these.
    """
    names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    # `omp` kills forked children and `workqueue` aborts when two threads enter: here is one job, no fork.
    return (
        {name: value for name, value in inherited.items() if not name.startswith(_SECRETS)}
        | {"NUMBA_THREADING_LAYER": "workqueue"}
        | dict.fromkeys(names, str(threads))
    )


def warm_up(job_waits: Callable[[], bool] = lambda: False) -> None:
    """Import the modules that the first job needs, one by one, until `job_waits` returns True. A fit process calls this
    while it is idle; one that is forked shares what its parent has imported.
    """
    from app.preload import import_sklearn

    import_sklearn()
    for name in WARM_MODULES:
        if job_waits():
            return
        import_module(name)
