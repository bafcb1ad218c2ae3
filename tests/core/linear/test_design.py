"""Moments of columns, standardised columns, and BLAS on one thread."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - whose BLAS is one of those that are limited
from scipy import sparse
from threadpoolctl import threadpool_info

from core.linear.blas import one_blas_thread
from core.linear.design import column_moments, column_scales, standardise
from tests.waiting import patience


def table(n: int = 500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)) * [1.0, 1e-3, 1e6, 1.0, 0.0] + [0.0, 5.0, -2e7, 0.0, 3.7]
    X[rng.random(n) < 0.3, 1] = np.nan
    X[:, 3] *= rng.random(n) < 0.2
    return X, rng.integers(1, 5, n).astype(float)


@pytest.mark.parametrize("lay", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array])
def test_moments_are_those_of_the_values_that_are_there(
    lay: Callable[..., Any] | type[Any],
) -> None:
    X, weight = table()
    found = column_moments(lay(X), weight)
    for j, column in enumerate(X.T):
        there = ~np.isnan(column)
        x, w = column[there], weight[there]
        mean = np.average(x, weights=w)
        deviation = np.sqrt(np.average((x - mean) ** 2, weights=w))
        assert found.mean[j] == pytest.approx(mean, rel=1e-12, abs=1e-15)
        assert found.deviation[j] == pytest.approx(deviation, rel=1e-9, abs=1e-12)
        assert (found.low[j], found.high[j]) == (x.min(), x.max())
        assert found.absent[j] == weight[~there].sum()


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_units_are_of_no_effect(scale: float) -> None:
    X, weight = table()
    X /= abs(np.nan_to_num(X)).max(axis=0)
    expected = standardise(X, *column_scales(X, weight))
    center, size = column_scales(scale * X, weight)
    assert standardise(scale * X, center, size) == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_constant_and_empty_columns_are_0_or_missing() -> None:
    X = np.column_stack([np.full(4, 0.1), np.full(4, np.nan), np.array([0.0, 1e300, -1e300, 0])])
    center, scale = column_scales(X, np.ones(4))
    assert scale[:2].tolist() == [1.0, 1.0]
    z = standardise(X, center, scale)
    assert not z[:, 0].any()
    assert np.isnan(z[:, 1]).all()
    assert standardise(np.array([[1e308, 0, 1]]), center, scale)[0, 0] == 1e9


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
