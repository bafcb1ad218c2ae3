"""BLAS on one thread."""

import threading
from typing import Any

import pytest
import scipy.linalg  # noqa: F401 - whose BLAS is one of those that are limited
from threadpoolctl import threadpool_info

from core.linear.blas import one_blas_thread
from tests.waiting import patience


def blas_threads() -> set[Any]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_blas_has_one_thread_until_the_last_fit_has_left() -> None:
    """Two fits at once: the first to end does not give the other more threads."""
    before = blas_threads()
    if before == {1}:
        pytest.skip("BLAS has one thread anyhow")
    with one_blas_thread(), one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before

    inside, leave, seen = threading.Event(), threading.Event(), []

    def fit() -> None:
        with one_blas_thread():
            seen.append(blas_threads())
            inside.set()
            assert leave.wait(patience())
            seen.append(blas_threads())

    other = threading.Thread(target=fit)
    other.start()
    try:
        assert inside.wait(patience())
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    finally:
        leave.set()
        other.join()
    assert seen == [{1}, {1}]
    assert blas_threads() == before

    def keeps_until_told() -> None:
        with one_blas_thread():
            inside.set()
            assert leave.wait(patience())

    inside.clear()
    leave.clear()
    with one_blas_thread():
        other = threading.Thread(target=keeps_until_told)
        other.start()
        assert inside.wait(patience())
    try:
        assert blas_threads() == {1}  # the first has left, the other is inside
    finally:
        leave.set()
        other.join()
    assert blas_threads() == before
