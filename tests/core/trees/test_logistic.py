"""Exponentials and logarithms of our own beside those of numpy."""

from typing import Any

import numba
import numpy as np
import pytest

from core.kernels import kernel
from core.trees.derivatives import ROWS_AT_ONCE
from core.trees.logistic import exp_of_negative, log_of_one_and, write_derivatives

MARGINS = np.concatenate(
    [np.random.default_rng(0).normal(size=5000) * 10, [0.0, -0.0, 1e-20, -1e-20, 36.8, -690.0]]
)


@kernel(numba.types.UniTuple(numba.float64[::1], 2)(numba.float64[::1], numba.float64[::1]))
def both(x: Any, y: Any) -> Any:
    exponentials, logarithms = np.empty(len(x)), np.empty(len(y))
    for i in range(len(x)):
        exponentials[i], logarithms[i] = exp_of_negative(x[i]), log_of_one_and(y[i])
    return exponentials, logarithms


def test_exponentials_and_logarithms_are_exact_to_some_last_places() -> None:
    x = -np.abs(MARGINS)
    exponentials, logarithms = both(x, np.exp(x))
    assert exponentials == pytest.approx(np.exp(x), rel=1e-15, abs=0)
    assert logarithms == pytest.approx(np.log1p(np.exp(x)), rel=1e-15, abs=0)


def test_the_exponential_of_what_is_too_low_is_almost_nothing() -> None:
    x = np.array([-709.0, -800.0, -1e300])
    assert (both(x, np.zeros(3))[0] < 1e-300).all()


@kernel(
    numba.void(
        numba.float64[::1],
        numba.float64,
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
    )
)
def write(margins: Any, sign: Any, counts: Any, weights: Any, losses: Any) -> None:
    write_derivatives(margins, sign, counts, weights, losses)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_those_of_the_loss(sign: float, weighted: bool) -> None:
    n = len(MARGINS)
    counts = np.random.default_rng(1).uniform(0.5, 3.0, n if weighted else 0)
    weights, losses = np.empty(2 * n), np.empty(n)
    starts = range(0, n, ROWS_AT_ONCE)
    for start in starts:
        own = slice(start, start + ROWS_AT_ONCE)
        of_both = slice(2 * start, 2 * (start + ROWS_AT_ONCE))
        write(MARGINS[own].copy(), sign, counts[own], weights[of_both], losses[own])
    weight = counts if weighted else np.ones(n)
    # 1 - share of the right class, by either of two forms, so that none loses places
    wrong = np.exp(-np.logaddexp(0.0, MARGINS))
    right = np.exp(-np.logaddexp(0.0, -MARGINS))
    expected = np.add.reduceat(weight * np.logaddexp(0.0, -MARGINS), starts)
    assert np.add.reduceat(losses, starts) == pytest.approx(expected, rel=1e-13, abs=0)
    assert weights[::2] == pytest.approx(weight * sign * wrong, rel=1e-12, abs=0)
    assert weights[1::2] == pytest.approx(weight * wrong * right, rel=1e-12, abs=0)
