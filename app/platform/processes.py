"""What long-running processes share: the parent-death watchdog, a gate to wait at, and signals to wait for.

A process under the watchdog ends with its parent, even when the parent is killed with SIGKILL. Run as a program this
module puts a command under it, in place of itself:

    python -I -S processes.py PARENT_PID PIPE COMMAND ...

PIPE is the number of an inherited descriptor: the read end of a pipe whose other end only the parent holds.
It is read where the kernel cannot signal a parent's death; there a guardian process waits for its end.
This module imports the standard library alone, so that the program starts in 20 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Self

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> bool:
    """Have the kernel kill this process when the thread that started it ends. Returns False where it cannot.

    The rule binds to the creating *thread*: start such children from a thread that lives as long as the process.
    A parent that died before the call would never be noticed, so its pid is compared after it.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        return False
    if os.getppid() != parent_pid:
        os._exit(1)
    return True


def wait_until_closed(pipe: int) -> None:
    """Wait until nobody holds the other end of a pipe any more: a start that comes later than its imports."""
    while os.read(pipe, 1):
        pass


def guard(pipe: int) -> None:
    """Fork a guardian that kills this process's group once the pipe's other end is closed; it ends with us."""
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


def main(arguments: list[str]) -> None:
    """Put the rest of the command line in place of this process."""
    parent_pid, pipe, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    if not die_with_parent(parent_pid):
        guard(pipe)
    os.close(pipe)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the caller's own command, no shell
    except OSError as error:
        sys.exit(f"cannot start {command[0]}: {error.strerror}")


def describe_exit(code: int) -> str:
    """Say how a process ended, by the code that `subprocess` gives."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"


class SignalWaiter:
    """Collects the named signals for `wait`. To be made in the main thread, one at a time."""

    def __init__(self, numbers: Iterable[signal.Signals]) -> None:
        self._numbers = list(numbers)
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def __enter__(self) -> Self:
        # A lost wake-up would be one of thousands unread ones, so a full buffer is nothing to warn of.
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

    def wait(self, timeout: float | None = None) -> set[signal.Signals]:
        """The signals that came since the last call; waits for one, or until the time is over."""
        select.select([self._reader], [], [], timeout)
        with contextlib.suppress(BlockingIOError):
            received = self._reader.recv(4096)
            return {signal.Signals(number) for number in received} & set(self._numbers)
        return set()


if __name__ == "__main__":
    main(sys.argv[1:])
