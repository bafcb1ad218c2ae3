"""Fits of small tables at once: each is too small to be shared out among threads, but there are several."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

import numba

from core.ranker import Callback

Result = TypeVar("Result")
Tell = Callable[[int, int, int, Mapping[str, float]], None]
"""Told (number of the fit, step, of, info)."""

MOST_CELLS = 100_000_000
"""Rows times features up to which fits run at once, each with a thread of its own: two fits so are done sooner than one
after the other with two threads each. Greater ones would take too much memory."""


def count_at_once(n_rows: int, n_features: int) -> int:
    """Say how many fits of a table should run at once: one, or as many as numba is set to use threads."""
    return int(numba.get_num_threads()) if n_rows * n_features <= MOST_CELLS else 1


def fit_together(
    fits: Sequence[Callable[[Callback], Result]], tell: Tell, at_once: int
) -> list[Result]:
    """Make several fits, some of them at once.

    Parameters
    ----------
    fits : sequence of callable (callback) -> Result
        Each passes the callback on to a ranker's fit.
    tell : callable (number, step, of, info) -> None
        Told of every step of every fit, by one thread at a time. What it raises stops all fits, each at its
        next step, and reaches the caller, be it `StopFit`.

    Returns
    -------
    list of Result
        In the order of the fits; the same whatever at_once is.
    """
    shared = _Shared(tell)
    if at_once == 1 or len(fits) == 1:
        results = []
        for k, fit in enumerate(fits):
            results.append(fit(shared.of(k)))
            if shared.raised is not None:  # a fit that was stopped may keep what it has, and return
                raise shared.raised
        return results
    of_each = max(int(numba.get_num_threads()) // at_once, 1)
    with ThreadPoolExecutor(
        at_once, initializer=numba.set_num_threads, initargs=(of_each,)
    ) as pool:
        futures = [pool.submit(fit, shared.of(k)) for k, fit in enumerate(fits)]
    if shared.raised is not None:
        raise shared.raised
    return [future.result() for future in futures]


class _Shared:
    """One callback for several fits."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._lock = Lock()
        self.raised: BaseException | None = None

    def of(self, k: int) -> Callback:
        """Give the callback of the k-th fit."""

        def step(done: int, of: int, info: Mapping[str, float]) -> None:
            with self._lock:
                if self.raised is not None:
                    raise self.raised
                try:
                    self._tell(k, done, of, info)
                except BaseException as error:
                    self.raised = error
                    raise

        return step
