"""The same work on one thread and on all of them, those of BLAS too."""

from collections.abc import Callable
from typing import TypeVar

import numba
from threadpoolctl import threadpool_limits

T = TypeVar("T")


def on_one_thread_and_on_all(work: Callable[[], T]) -> tuple[T, T]:
    """Return the results on one thread, and on all available threads."""
    most = numba.get_num_threads()
    found = []
    try:
        for n_threads in (1, most):
            numba.set_num_threads(n_threads)
            with threadpool_limits(n_threads):
                found.append(work())
    finally:
        numba.set_num_threads(most)
    return found[0], found[1]
