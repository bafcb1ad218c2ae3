"""The step of a job that reads from a system outside of the service: its limits, its progress, and its end on request.

It runs in a thread of the worker, beside the lease, because the fit process has no network.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from app.platform import resources
from app.platform.errors import Invalid
from app.platform.settings import Settings

PHASE = "reading the source"
"""The phase of a job during this step."""


class FetchStopped(Exception):
    """The worker no longer needs what is read: the job was cancelled, the worker ends, or the lease is lost."""


class SourceError(Invalid):
    """A source cannot be read, and another attempt would not help. Messages never have a host, a credential or data."""

    title = "The source cannot be read"

    def __init__(self, code: str, detail: str, **kwargs: Any) -> None:
        super().__init__(detail, code=code, **kwargs)


class Fetching:
    """Passed to the step, which calls `check` often and `report` as it reads, and registers with `on_stop`."""

    def __init__(self, settings: Settings) -> None:
        """The time limit starts now."""
        self.max_bytes = settings.source_bytes
        self.quota_bytes: int | None = None
        """Bytes that the owner may still store. None: no limit."""
        self._settings = settings
        self._seconds = settings.source_seconds
        self._deadline = time.monotonic() + settings.source_seconds
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._cancels: list[Callable[[], object]] = []
        self._done = (0, 0)

    @property
    def seconds_left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    @property
    def progress(self) -> dict[str, Any] | None:
        """This step is half of the job. None before anything was read."""
        done, total = self._done
        if not done:
            return None
        fraction = min(done / total, 1.0) / 2 if total else 0.0
        return {"fraction": fraction, "phase": PHASE, "detail": f"{done / 1e6:,.1f} MB"}

    def check(self) -> None:
        """Raise FetchStopped after a stop, and SourceError after the time limit."""
        if self._stopped.is_set():
            raise FetchStopped
        if not self.seconds_left:
            raise SourceError(
                "source_timed_out",
                f"the source must be read within {self._seconds:g} s (RANKWRIGHT_SOURCE_SECONDS)",
            )

    def check_size(self, size: int, adds: int = 0) -> None:
        """Raise SourceError for more bytes than allowed, and OutOfSpace without space for `adds` more."""
        if self.quota_bytes is not None and size > self.quota_bytes:
            raise SourceError(
                "quota_exceeded",
                f"the owner may store {self.quota_bytes:,} more bytes, and the source has {size:,} or more",
            )
        resources.check(self._settings, adds)
        if size > self.max_bytes:
            raise SourceError(
                "source_too_large",
                f"a source can have at most {self.max_bytes:,} bytes (RANKWRIGHT_SOURCE_BYTES), got {size:,} or more",
            )

    def wait(self, seconds: float) -> None:
        """Wait, but not beyond a stop or the time limit. Raises as `check` does."""
        self._stopped.wait(min(seconds, self.seconds_left))
        self.check()

    def report(self, done: int, total: int = 0) -> None:
        """Note that `done` of `total` bytes are read; `total` is 0 if unknown. Raises as `check` does."""
        self._done = (done, total)
        self.check()

    @contextmanager
    def on_stop(self, cancel: Callable[[], object]) -> Iterator[None]:
        """Call `cancel`, in another thread, if the worker stops the step during the block. It must not block."""
        with self._lock:
            self._cancels.append(cancel)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._cancels.remove(cancel)

    def stop(self) -> None:
        with self._lock:
            self._stopped.set()
            for cancel in self._cancels:
                with suppress(Exception):  # the step may have ended by itself
                    cancel()
