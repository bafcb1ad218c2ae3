"""Signals as something to wait for, instead of code that runs between any two lines of the main thread."""

from __future__ import annotations

import contextlib
import select
import signal
import socket
from collections.abc import Iterable
from types import TracebackType
from typing import Self


class Signals:
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
