"""A clock that is paused while kernels are compiled.

Compiling happens once on a machine. So it is neither a cost of the fit that waits for it, nor a part of a time budget.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter


class WorkClock:
    """A clock in seconds that excludes the time in which kernels were compiled.

    It must listen to compilations: `when_compiling(clock.listen)`.

    compiling: float; seconds of compiling so far, without a compilation that is under way.

    Examples
    --------
    >>> now = [0.0]
    >>> clock = WorkClock(lambda: now[0])
    >>> clock.listen("a kernel")
    >>> now[0] = 5.0
    >>> clock()
    0.0
    >>> clock.listen(None)
    >>> now[0] = 6.0
    >>> clock(), clock.compiling
    (1.0, 5.0)
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.compiling = 0.0
        self._clock = clock
        self._since: float | None = None

    def __call__(self) -> float:
        """Return the seconds since some fixed time."""
        now, since = self._clock(), self._since
        return (now if since is None else since) - self.compiling

    def listen(self, kernel: str | None) -> None:
        """Record that a compilation begins, or (None) that all have ended; see `when_compiling`."""
        now = self._clock()
        if kernel is not None:
            self._since = now if self._since is None else self._since
        elif self._since is not None:
            self.compiling += now - self._since
            self._since = None
