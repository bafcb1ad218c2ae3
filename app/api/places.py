"""How many uploads one API process receives at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Unavailable

RETRY_SECONDS = 5


class Places:
    """So many places: whoever finds none free is told at once to come back. Asked on the event loop alone."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0

    @contextmanager
    def take(self) -> Iterator[None]:
        """Hold a place for the length of a block; raises Unavailable where none is free."""
        if self.taken >= self._most:
            raise Unavailable(
                f"{self._most} uploads are being received here, which is the most at once: try again soon",
                code="too_many_uploads",
                retry_after=RETRY_SECONDS,
            )
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
