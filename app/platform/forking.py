"""Forked processes: children of a process that has imported their modules, with which they share its memory.

A forked child takes milliseconds to start and only the memory that it changes. A process with several threads is not
forked, because a lock that another thread holds would never be released in the child; nor is one that is not on Linux.
Their children are started by `subprocess` and import for themselves, so whoever calls `start` need not know.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

from app.platform.processes import die_with_parent, python_command, trim_heap

_PYTHON = python_command("")[:-1]
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
_NUMBER = struct.Struct("=q")


class Process(Protocol):
    """The part of `subprocess.Popen` that callers use."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None if the process is running."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code. Raises subprocess.TimeoutExpired."""


def can_fork() -> bool:
    """Return True if children of this process can be forked."""
    return sys.platform.startswith("linux") and len(os.listdir("/proc/self/task")) == 1


def can_fork_to(command: Sequence[str]) -> bool:
    """Return True if `start` would fork this command, because it runs one of our modules."""
    return command[: len(_PYTHON)] == _PYTHON and can_fork()


def start(
    command: Sequence[str], *, environment: Mapping[str, str], pass_fds: Sequence[int]
) -> Process:
    """Start a command in its own process group, by a fork if possible.

    A forked child ends with this process. One that is not forked must watch for that itself.
    """
    if can_fork_to(command):
        return _Fork(command[len(_PYTHON) :], environment, pass_fds)
    return _spawn(command, environment, pass_fds)


def _spawn(
    command: Sequence[str], environment: Mapping[str, str], pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env=environment, pass_fds=pass_fds, stdin=subprocess.DEVNULL, process_group=0
    )


@contextmanager
def importing() -> Iterator[None]:
    """Import modules in the block for children to share: without threads, exempt from garbage collection, which would
    write to the shared memory, and without free memory, of which each child would get its own copy.
    """
    former = os.environ.get(_BLAS_THREADS)
    os.environ[_BLAS_THREADS] = "1"  # OpenBLAS starts its threads when it is loaded
    gc.disable()
    try:
        yield
        if "numpy" in sys.modules:
            import threadpoolctl  # noqa: F401 - every child needs it
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
        trim_heap()
        del os.environ[_BLAS_THREADS]
        if former is not None:
            os.environ[_BLAS_THREADS] = former


class _Fork:
    """A forked child that runs a module as `python -m` would."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], pass_fds: Sequence[int]
    ) -> None:
        # Until the child has its own handlers, a signal to it would be written to this process's wake-up pipe.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._process = get_context("fork").Process(
                target=_run, args=(words, environment, pass_fds, os.getpid(), mask)
            )
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        assert self._process.pid is not None
        self.pid = self._process.pid
        with suppress(
            ProcessLookupError, PermissionError
        ):  # it has done so itself, and may have ended
            os.setpgid(self.pid, self.pid)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        if (code := self.poll()) is not None:
            return code
        # `Process.join` watches a pipe that the child closes with all others.
        ended = os.pidfd_open(self.pid)
        try:
            if not select.select([ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        finally:
            os.close(ended)
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


def _run(
    words: Sequence[str],
    environment: Mapping[str, str],
    pass_fds: Sequence[int],
    parent_pid: int,
    mask: set[signal.Signals],
) -> None:
    """Run a module in this forked child, without anything that is only its parent's."""
    os.setpgid(0, 0)
    die_with_parent(parent_pid)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _close_all_but({0, 1, 2, *pass_fds})
    os.environ.clear()
    os.environ.update(environment)
    _show([*_PYTHON, *words], environment)
    if "numpy" in sys.modules:
        _become_independent()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    sys.argv = list(words)
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def _close_all_but(kept: set[int]) -> None:
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in kept:
            with suppress(OSError):  # the one that read the folder
                os.close(descriptor)


def _show(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Have the system show a command line and an environment as those of this process, such as in `ps`, in place of
    those that the parent was started with. What exceeds the space of the parent's is cut off.

    libc no longer uses that memory after `os.environ` has been replaced.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(") ")[2].split()
    # arg_start, arg_end, env_start and env_end of proc(5); 0 where they are hidden
    places = map(int, fields[45:49])
    variables = [f"{name}={value}" for name, value in environment.items()]
    for words, first, last in zip((command, variables), places, places, strict=True):
        text = b"".join(os.fsencode(word) + b"\0" for word in words)[: max(last - first - 1, 0)]
        ctypes.memmove(first, text.ljust(last - first, b"\0"), last - first)


def _become_independent() -> None:
    """Give the numeric libraries that the parent has loaded this process's own threads and random numbers."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    threads = os.environ.get(_BLAS_THREADS)
    threadpool_limits(int(threads) if threads else len(os.sched_getaffinity(0)))
    if "numpy.random" in sys.modules:  # its global state would be the same in all children
        np.random.seed()


class ForkServer:
    """Starts processes for a child that has threads of its own and therefore cannot fork.

    Pass `channel` to the child, which calls `request`. The processes are children of this one. Call `serve` whenever
    `fileno` is readable, and after SIGCHLD.
    """

    def __init__(self) -> None:
        self._socket, self.channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        self._running: list[tuple[Process, int]] = []

    def fileno(self) -> int:
        return self._socket.fileno()

    def serve(self) -> None:
        """Start what was requested, and report the exit codes of those that have ended.

        If a process cannot be started, `request` raises the error.
        """
        self._report()
        while True:
            try:
                _, (passed, status, content), _, _ = socket.recv_fds(self._socket, 1, 3)
            except BlockingIOError:
                return
            with open(content, "rb") as file:
                file.seek(0)
                asked = json.load(file)
            command = python_command(asked["module"], str(passed), str(os.getpid()))
            try:
                process = start(command, environment=asked["environment"], pass_fds=[passed])
            except OSError:  # too many processes, or no memory
                os.close(status)
                continue
            finally:
                os.close(passed)
            self._running.append((process, status))
            _write(status, process.pid)

    def kill(self) -> None:
        """Kill all processes, because the child that requested them has ended."""
        for process, _ in self._running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._report()

    def close(self) -> None:
        """Kill all processes and accept no more requests."""
        self.kill()
        self._socket.close()
        self.channel.close()

    def _report(self) -> None:
        running = []
        for process, status in self._running:
            if (code := process.poll()) is None:
                running.append((process, status))
            else:
                _write(status, code)
                os.close(status)
        self._running = running


def _write(status: int, number: int) -> None:
    with suppress(BrokenPipeError):  # whoever requested the process has ended
        os.write(status, _NUMBER.pack(number))


class _Requested:
    """A process that the parent started for this one."""

    def __init__(self, status: int) -> None:
        self._status = status
        self._code: int | None = None
        pid = self._read(None)
        if pid is None:
            os.close(status)
            raise ChildProcessError(errno.ECHILD, "the parent process could not start the process")
        self.pid = pid

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            code = self._read(timeout)
            os.close(self._status)
            self._code = -signal.SIGKILL if code is None else code  # the parent has ended
        return self._code

    def _read(self, timeout: float | None) -> int | None:
        """Return the next number of the parent; None if it has closed the pipe."""
        if not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self._status), timeout or 0.0)
        data = os.read(self._status, _NUMBER.size)
        return _NUMBER.unpack(data)[0] if data else None


Starter = Callable[[str, int, Mapping[str, str]], Process]
"""Starts `python -m MODULE FD PARENT_PID` with an inherited descriptor and an environment."""


def spawn_module(module: str, descriptor: int, environment: Mapping[str, str]) -> Process:
    """Start a module in a new interpreter, as a child of this process."""
    command = python_command(module, str(descriptor), str(os.getpid()))
    return _spawn(command, environment, [descriptor])


def request_from(channel: int) -> Starter:
    """Return the function that has the parent, whose `ForkServer.channel` this is, start a module."""
    parent = socket.socket(fileno=channel)

    def request(module: str, descriptor: int, environment: Mapping[str, str]) -> Process:
        asked = json.dumps({"module": module, "environment": dict(environment)}).encode()
        reader, writer = os.pipe()
        # An environment may be larger than a message.
        with os.fdopen(writer, "wb"), os.fdopen(os.memfd_create("request"), "wb") as content:
            content.write(asked)
            content.flush()
            socket.send_fds(parent, [b"?"], [descriptor, writer, content.fileno()])
        return _Requested(reader)

    return request
