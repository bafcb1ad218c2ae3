"""The shape of miscalibration: found where Cox's line is right, and seldom elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2

from core.metrics.groups import check_rows
from core.probability import Shape, reliability
from core.probability.score_test import odds_cells
from core.probability.shape import shape_of
from tests.long_form import LONG_FORM

Floats = npt.NDArray[np.float64]


def shape(y: Any, p: Any, **options: Any) -> Shape | None:
    return reliability(y, p, n_bootstrap=20, **options).shape


def s_shaped(odds: Floats) -> Floats:
    """Return the log odds of an outcome that is off by up to .12 in probability, but with Cox's line 0 + 1 · odds."""
    design = np.stack((np.ones(odds.size), odds), axis=1)
    off = odds + 1.2 * np.sin(2.0 * np.pi * expit(odds))
    for _ in range(50):
        q = expit(off)
        hessian = design.T @ (design * (q * (1.0 - q))[:, np.newaxis])
        off = off - design @ np.linalg.solve(hessian, design.T @ (q - expit(odds)))
    return off


def test_an_s_shape_with_slope_1_is_found() -> None:
    odds = np.random.default_rng(0).normal(0.0, 1.5, 20_000)
    true = s_shaped(odds)
    assert 0.1 < np.abs(expit(true) - expit(odds)).max() < 0.14
    rng = np.random.default_rng(1)
    for n in (1_000, 20_000):
        for _ in range(5):
            drawn = rng.permutation(odds.size)[:n]
            y = rng.random(n) < expit(true[drawn])
            evaluated = reliability(y, expit(odds[drawn]), n_bootstrap=20)
            assert evaluated.shape is not None
            assert evaluated.shape.p_value < 0.001
            assert evaluated.shape.size.low > 0.1
            slope = evaluated.slope.low - 0.05, evaluated.slope.high + 0.05
            assert slope[0] < 1.0 < slope[1]
    size = evaluated.shape.size.value
    v = expit(odds) * expit(-odds)
    root_mean_square = np.sqrt(np.average((true - odds) ** 2, weights=v))
    assert 0.7 * root_mean_square < size < 1.05 * root_mean_square  # great errors count for less


@pytest.mark.parametrize(
    ("n", "mean", "steps", "unit", "weighted"),
    [
        (100, 0.0, None, 1, False),
        (1_000, -4.0, None, 1, False),
        (1_000, 0.0, 10, 1, False),
        (1_000, 0.0, None, 1, True),
        (500, 0.0, None, 5, False),
    ],
)
def test_right_probabilities_are_seldom_said_to_be_wrong(
    n: int, mean: float, steps: int | None, unit: int, weighted: bool
) -> None:
    rng = np.random.default_rng(2)
    found = []
    for _ in range(150 if LONG_FORM else 40):
        odds = rng.normal(mean, 1.5, n)
        if steps is not None:
            odds = logit(np.clip(np.round(expit(odds) * steps) / steps, 0.01, 0.99))
        options: dict[str, Any] = {}
        y = rng.random(n) < expit(odds)
        if weighted:
            options["sample_weight"] = np.exp(-odds / 2.0)
        if unit > 1:  # copies
            at = np.arange(n) // unit * unit
            odds, y, options["group"] = odds[at], y[at], at
        one = shape(y, expit(odds), **options)
        assert one is not None
        found.append(one.p_value)
    assert np.count_nonzero(np.array(found) < 0.05) <= (15 if LONG_FORM else 7)
    assert np.count_nonzero(np.array(found) > 0.5) >= (40 if LONG_FORM else 8)


def test_it_is_the_score_test_written_out() -> None:
    rng = np.random.default_rng(3)
    odds = np.round(rng.normal(size=400), 1)
    weight = rng.exponential(size=400)
    y = rng.random(400) < expit(odds)
    found = shape_of(check_rows(y, {"p": expit(odds)}, weight, None), 0.1, 0.9, 0.95)
    assert found is not None

    p = expit(0.1 + 0.9 * odds)
    v = weight * p * (1.0 - p)
    below = np.array([v[odds < each].sum() for each in odds])
    u = (below + np.array([v[odds == each].sum() for each in odds]) / 2.0) / v.sum()
    basis = np.polynomial.legendre.legvander(2.0 * u - 1.0, 5)[:, 2:]
    line = np.stack((np.ones(400), odds), axis=1)
    fitted = np.linalg.solve(line.T @ (line * v[:, None]), line.T @ (basis * v[:, None]))
    basis = basis - line @ fitted
    scores = basis.T @ (weight * (y - p))
    covariance = basis.T @ (basis * (weight**2 * p * (1.0 - p))[:, None])
    statistic = scores @ np.linalg.solve(covariance, scores)
    assert found.degrees == 4
    assert found.p_value == pytest.approx(chi2.sf(statistic, 4), rel=1e-6)
    assert found.information == pytest.approx(v.sum() ** 2 / (weight * v).sum(), rel=1e-9)


def test_what_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    p = expit(rng.normal(size=500))
    y = rng.random(500) < p
    weight = rng.exponential(size=500)
    first = shape(y, p, sample_weight=weight)
    assert first is not None
    assert first == shape(y, p, sample_weight=weight)
    doubled = shape(y, p, sample_weight=2.0 * weight)
    assert doubled is not None
    assert doubled.p_value == pytest.approx(first.p_value, rel=1e-6)
    # A unit of its own for each row is no unit.
    alone, each = shape(y, p), shape(y, p, group=np.arange(500))
    assert alone is not None
    assert each is not None
    assert each.p_value == pytest.approx(alone.p_value, rel=1e-9)
    # Copies that are known to be copies add nothing.
    copies = shape(np.tile(y, 3), np.tile(p, 3), group=np.tile(np.arange(500), 3))
    assert copies is not None
    assert copies.information == pytest.approx(alone.information, rel=0.2)


def test_too_few_rows_are_not_tested() -> None:
    rng = np.random.default_rng(5)
    p = expit(rng.normal(size=600))
    y = rng.random(600) < p
    assert shape(y[:30], p[:30]) is None
    assert shape(y, p, group=np.arange(600) % 20) is None
    assert shape(y, np.full(600, 0.5)) is None
    two = shape(y, np.where(p > 0.5, 0.6, 0.4))
    assert two is None  # a line goes through two points


def test_many_distinct_log_odds_become_cells_of_equal_mass() -> None:
    odds = np.sort(np.random.default_rng(6).normal(size=5_000))
    cell, of_cells = odds_cells(odds, None, 100)
    sizes = np.bincount(cell)
    assert of_cells.size == 100
    assert sizes.min() >= 49
    assert sizes.max() <= 51
    assert np.all(np.diff(of_cells) > 0.0)
    assert np.abs(odds - of_cells[cell]).mean() < 0.05
