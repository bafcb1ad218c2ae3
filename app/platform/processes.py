"""Functions for long-running processes: starting a child, watchdogs for a parent that dies and for a child that stops
responding, a start gate, and signals.

A process under the watchdog ends with its parent, even if the parent is killed with SIGKILL. Run as a program, this
module replaces itself by a command under the watchdog:

    python -I -S processes.py PARENT_PID PIPE COMMAND ...

    python -I -S processes.py --watch COMMAND ...

runs a command and ends with its code. It kills a command that stops responding, and ends with code 1: so a container
whose process stops responding ends, and is started again.

PIPE is the number of an inherited descriptor: the read end of a pipe whose other end only the parent has. It is read
where the kernel cannot signal a parent's death: there a guardian process waits for its end. This module imports only
the standard library, so that the program starts in 20 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

_PR_SET_PDEATHSIG = 1

MAX_DESCRIPTORS = 8192
"""Files and connections that an API process may have open."""

MAX_API_PROCESSES = 64  # more cores than a machine of this service has


def python_command(module: str, *words: str) -> list[str]:
    """Return the command line that runs one of our modules, independent of the current folder.

    `python -m` searches the current folder first, and would run another project's `app` or `core`.
    """
    return [sys.executable, "-P", "-m", module, *words]


def child_environment() -> dict[str, str]:
    """Return this process's environment plus the folder of its code, if a child would not find it by itself.

    This is the case when `python -m` found the code in the current folder, which `python_command` ignores.
    """
    root = str(Path(__file__).parents[2].resolve())
    if sys.flags.safe_path or root in sys.path[1:]:
        return dict(os.environ)
    paths = filter(None, [root, os.environ.get("PYTHONPATH")])
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def descriptor_limit() -> int:
    """Return the maximum number of open files and connections of this process, at most `MAX_DESCRIPTORS`."""
    return _at_most(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_descriptor_limit() -> None:
    """Raise the limit of open files as far as the system allows; most systems start with 1,024."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if descriptor_limit() < (most := _at_most(hard)):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _at_most(limit: int) -> int:
    return MAX_DESCRIPTORS if limit == resource.RLIM_INFINITY else min(MAX_DESCRIPTORS, limit)


def die_with_parent(parent_pid: int) -> bool:
    """Make the kernel kill this process when the thread that started it ends; returns False if it cannot.

    The rule is bound to the *thread* that started the process: it must live as long as the parent. A parent that died
    before the call would not be noticed, so its pid is compared afterwards.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        return False
    if os.getppid() != parent_pid:
        os._exit(1)
    return True


def trim_heap() -> None:
    """Return free memory to the system: glibc would retain it for later use."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def wait_until_closed(pipe: int) -> None:
    """Wait until all copies of the other end of a pipe are closed. A process can import its modules before it is
    allowed to begin.
    """
    while os.read(pipe, 1):
        pass


def guard(pipe: int) -> None:
    """Fork a guardian that kills this process's group when a pipe's other end closes. It ends with this process."""
    guarded, group = os.getpid(), os.getpgrp()
    if os.fork() != 0:
        return
    os.setpgid(0, 0)
    while os.getppid() == guarded:
        closed, _, _ = select.select([pipe], [], [], 1.0)
        if closed:
            os.killpg(group, signal.SIGKILL)
            break
    os._exit(0)


PULSE_SECONDS = 1.0
MISSED_PULSES = 15
"""After so many looks without a pulse, a process counts as unresponsive."""


MAX_IDLE_PULSES = 900
"""Number of pulses without a step of a main loop after which the pulse stops. A step is a few transactions. It takes
three minutes or less even if the database fails, because each statement, connection and lock has a time limit."""
_MAX_IDLE = {"api": 60}
"""The same for the loops that never wait for a database or a disk: that of the API only passes events on."""

_steps = count()
_last_steps: dict[str, int] = {}
"""The number of the last step of each main loop that must make progress. A waiting loop has no entry."""


def note_step(loop: str) -> None:
    """Record progress of a main loop, which from now on must make progress at least every `MAX_IDLE_PULSES`, or as
    `_MAX_IDLE` says. If several threads run the same loop, the progress of one suffices, so that their jobs are not
    lost because one hangs.
    """
    _last_steps[loop] = next(_steps)


def note_wait(loop: str) -> None:
    """Record that a main loop now waits without a time limit, until its next `note_step`."""
    _last_steps.pop(loop, None)


def start_pulse(pipe: int) -> None:
    """Start a thread that writes to a pipe every second. Its reader sees that this process is not stopped, and that its
    main loops make progress (`note_step`).
    """
    os.set_inheritable(pipe, False)
    os.set_blocking(pipe, False)
    os.write(pipe, b".")  # at once: from here on it is noticed if this process is stopped
    threading.Thread(target=_pulse, args=(pipe,), name="pulse", daemon=True).start()


def _pulse(pipe: int) -> None:
    """Write to the pipe every second while each main loop makes progress."""
    seen: dict[str, int] = {}
    n_idle: dict[str, int] = {}  # counts pulses, not seconds: a pause of the machine is not a hang
    while True:
        steps = _last_steps.copy()
        n_idle = {
            loop: n_idle[loop] + 1 if seen.get(loop) == step else 0 for loop, step in steps.items()
        }
        seen = steps
        for loop, n in n_idle.items():
            limit = _MAX_IDLE.get(loop, MAX_IDLE_PULSES)
            if n == limit + 1:
                seconds = limit * PULSE_SECONDS
                _log_error(f"the main loop of the {loop} has made no progress for {seconds:g} s")
        if all(n <= _MAX_IDLE.get(loop, MAX_IDLE_PULSES) for loop, n in n_idle.items()):
            with contextlib.suppress(BlockingIOError):  # nobody has read for hours
                try:
                    os.write(pipe, b".")
                except BrokenPipeError:
                    return
        time.sleep(PULSE_SECONDS)


class PulseReader:
    """Reads the pulse of a child, which `start_pulse` writes to `writer`; the child inherits `writer`, and the parent
    closes it.

    Checks are counted, not seconds: after a pause of the whole machine, the child has as many checks left as before. A
    child that has not begun to write is left alone, because it may import or wait for long.
    """

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._begun = False
        self._missed = 0
        self._look_at = 0.0

    def close_writer(self) -> None:
        """Close the parent's copy of the writing end; the child has its own."""
        os.close(self.writer)

    def is_unresponsive(self) -> bool:
        """Return True if the child has stopped responding. To be called every `PULSE_SECONDS`."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + PULSE_SECONDS
        beaten = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                beaten = True
        self._begun = self._begun or beaten
        self._missed = 0 if beaten else self._missed + 1
        return self._begun and self._missed >= MISSED_PULSES

    def close(self) -> None:
        """Close the reading end."""
        os.close(self._reader)


def watch(command: list[str]) -> int:
    """Run a command in a process group of its own, with `--pulse` and a pipe as its last arguments; return its exit
    code.

    Pass signals on to it. Kill a command that stops responding, and return 1.
    """
    pulse = PulseReader()
    guarded, held = os.pipe()
    with SignalWaiter([*_PASSED_ON, signal.SIGCHLD]) as signals:
        parent_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.close(held)
            for descriptor in (guarded, pulse.writer):
                os.set_inheritable(descriptor, True)
            words = [str(parent_pid), str(guarded), *command, "--pulse", str(pulse.writer)]
            os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, *words])  # noqa: S606
        pulse.close_writer()
        while True:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if pulse.is_unresponsive():
                _log_error("the process does not respond; killing it")
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return 1
            for number in signals.wait(PULSE_SECONDS) & _PASSED_ON:
                os.kill(pid, number)


_PASSED_ON = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


def _log_error(message: str) -> None:
    """Write a line in the form of `app.platform.logging`, with only the standard library."""
    level, logger, now = "ERROR", "rankwright", datetime.now(UTC)
    if os.environ.get("RANKWRIGHT_LOG_FORMAT") == "json":
        written = now.isoformat(timespec="milliseconds")
        line = {"time": written, "level": level, "pid": os.getpid(), "logger": logger}
        text = json.dumps(line | {"message": message}, separators=(",", ":"))
    else:
        stamp = now.replace(tzinfo=None).isoformat(timespec="milliseconds")
        text = f"{stamp}Z {level} {logger} {message}"
    sys.stderr.write(f"{text}\n")


def main(arguments: list[str]) -> None:
    """Replace this process by the command in the arguments, or watch it."""
    if arguments[0] == "--watch":
        sys.exit(watch(arguments[1:]))
    parent_pid, pipe, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    if not die_with_parent(parent_pid):
        guard(pipe)
    os.close(pipe)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the caller's own command, no shell
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


def describe_exit(code: int) -> str:
    """Return a phrase on how a process ended, from its return code in `subprocess`."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


class HasFileno(Protocol):
    """What `select` takes."""

    def fileno(self) -> int:
        """Return the descriptor."""


class SignalWaiter:
    """Collects signals for `wait`. Create it in the main thread, one at a time."""

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        self._numbers = list(numbers)
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def __enter__(self) -> Self:
        # The buffer is full only after thousands of unread wake-ups, so a lost one needs no warning.
        self._former_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._former = {n: signal.signal(n, lambda *_: None) for n in self._numbers}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._former_fd)
        self._reader.close()
        self._writer.close()

    def wait(self, timeout: float | None = None, *others: HasFileno) -> set[signal.Signals]:
        """Return the signals since the last call. Waits for one, until one of `others` is readable, or until the time
        is over.
        """
        select.select([self._reader, *others], [], [], timeout)
        with contextlib.suppress(BlockingIOError):
            received = self._reader.recv(4096)
            return {signal.Signals(number) for number in received} & set(self._numbers)
        return set()


if __name__ == "__main__":
    main(sys.argv[1:])
