"""The same work on one thread and on all of them, those of BLAS too."""

from collections.abc import Callable
from typing import TypeVar

import numba
from threadpoolctl import threadpool_limits

T = TypeVar("T")


def on_one_thread_and_on_all(work: Callable[[], T]) -> tuple[T, T]:
    """Return the results on one thread, and on all available threads."""
    return on_threads(1, work), on_threads(numba.config.NUMBA_NUM_THREADS, work)


def on_threads(n_threads: int, work: Callable[[], T]) -> T:
    """Return the result on this number of threads."""
    before = numba.get_num_threads()
    numba.set_num_threads(n_threads)
    try:
        with threadpool_limits(n_threads):
            return work()
    finally:
        numba.set_num_threads(before)
