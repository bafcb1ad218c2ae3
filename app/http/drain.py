"""The last moments of an API process: it says that it is going, lets go who waits, and only then closes."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import FrameType

import uvicorn


class Drain:
    """Whether this process is about to end. Who holds requests open asks to be told."""

    def __init__(self) -> None:
        self.begun = False
        self._told: list[Callable[[], object]] = []

    def tell(self, listener: Callable[[], object]) -> None:
        """Call `listener` when it begins."""
        self._told.append(listener)

    def begin(self) -> None:
        """Begin, in the event loop."""
        self.begun = True
        for listener in self._told:
            listener()


class DrainingServer(uvicorn.Server):
    """uvicorn, which goes on answering for `seconds` after it was told to end, so that a proxy can look elsewhere."""

    def __init__(self, config: uvicorn.Config, drain: Drain, seconds: float) -> None:
        super().__init__(config)
        self._drain = drain
        self._seconds = seconds
        self._asked = 0
        self._until = 0.0

    def end(self, *_: object) -> None:
        """Handle a signal: the first begins the end, the second hurries it."""
        self._asked += 1

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take the place of uvicorn's handler, which closes at once."""
        self.end()

    async def on_tick(self, counter: int) -> bool:
        """Look whether it was told to end: uvicorn asks ten times a second."""
        if self._asked and not self._drain.begun:
            self._until = time.monotonic() + self._seconds
            self._drain.begin()
        if self._asked > 1 or (self._asked and time.monotonic() >= self._until):
            self.should_exit = True
        return await super().on_tick(counter)
