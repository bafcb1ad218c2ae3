"""Fits of these tests use one thread: threads that look for tasks take CPU from the other tests.

A test of threads asks for the fixture `all_threads`, or calls `on_one_thread_and_on_all`.
"""

from collections.abc import Iterator

import numba
import pytest


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Let fits of a module use one thread."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture
def all_threads() -> Iterator[int]:
    """Let fits of a test use all threads, and say how many."""
    n_threads: int = numba.config.NUMBA_NUM_THREADS
    numba.set_num_threads(n_threads)
    yield n_threads
    numba.set_num_threads(1)
