"""Cox's line: coverage with weights, units and sampled classes, and contrasts after a shift that all rows share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from core.metrics.cox import contrast_of, level_of, slope_of
from core.metrics.groups import check_rows
from core.probability import reliability
from tests.long_form import LONG_FORM

RUNS = 1000 if LONG_FORM else 250


def sigmoid(z: np.ndarray) -> np.ndarray:
    return np.asarray(1.0 / (1.0 + np.exp(-z)))


DESIGNS = (
    "positives with lognormal weights",
    "one in ten negatives, of weight 10",
    "positives in rings of four, negatives alone",
)


def draw(
    design: str, rng: np.random.Generator, n: int = 1500
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return labels, their true log odds, and weights or groups."""
    z = rng.normal(-2.2, 1.0, n)
    y = rng.random(z.size) < sigmoid(z)
    if design == "positives with lognormal weights":
        return y, z, {"sample_weight": np.where(y, rng.lognormal(-0.5, 1.0, z.size), 1.0)}
    if design == "one in ten negatives, of weight 10":
        kept = y | (rng.random(z.size) < 0.1)
        return y[kept], z[kept], {"sample_weight": np.where(y[kept], 1.0, 10.0)}
    ring, negative = np.flatnonzero(y & (rng.random(z.size) < 0.25)), np.flatnonzero(~y)
    rows = np.concatenate([negative, np.repeat(ring, 4)])
    return y[rows], z[rows], {"group": rows}


@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_of_level_and_slope_keep_their_level(design: str) -> None:
    inside = np.zeros(2)
    for run in range(RUNS):
        y, z, options = draw(design, np.random.default_rng((1, run)))
        rows = check_rows(y, {"z": z}, **options)
        slope = slope_of(rows, z)
        assert slope is not None
        for i, (found, truth) in enumerate(((level_of(rows, z), 0.0), (slope, 1.0))):
            low, high = found.interval(0.95)[1:]
            inside[i] += low <= truth <= high
    error = np.sqrt(0.95 * 0.05 / RUNS)
    assert np.all(inside / RUNS >= 0.94 - 3.0 * error)
    assert np.all(inside / RUNS <= 0.96 + 3.0 * error)


def test_a_reliability_has_the_level_and_the_slope_of_the_line() -> None:
    y, z, options = draw(DESIGNS[2], np.random.default_rng(2))
    found, rows = (
        reliability(y, sigmoid(z), n_bootstrap=20, **options),
        check_rows(y, {"z": z}, **options),
    )
    slope = slope_of(rows, z)
    assert slope is not None
    assert found.in_the_large == pytest.approx(level_of(rows, z).interval(0.95))
    assert found.slope == pytest.approx(slope.interval(0.95))


def test_a_shift_of_all_rows_does_not_widen_a_contrast() -> None:
    """The variance under H₀ has an intercept of its own: it is that of repetitions, before and after the shift."""
    values, errors = [], []
    for run in range(RUNS):
        rng = np.random.default_rng((3, run))
        z, of = rng.normal(-5.0, 1.0, 4000), (rng.random(4000) < 0.3).astype(np.float64)
        y = rng.random(4000) < sigmoid(z + 3.0)
        found = contrast_of(check_rows(y, {"z": z}), z, of)
        values.append(found.value)
        errors.append(np.sqrt(found.null_variance))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


def test_equal_probabilities_have_a_level_and_no_slope() -> None:
    rows = check_rows(np.arange(400) % 4 == 0, {"z": np.zeros(400)})
    assert slope_of(rows, np.zeros(400)) is None
    assert level_of(rows, np.zeros(400)).value == pytest.approx(np.log(1 / 3))


def test_probabilities_that_separate_the_classes_have_a_level_and_no_slope() -> None:
    """A third of a row more than predicted is no evidence, however small the residuals are."""
    p = np.r_[np.full(100, 0.02), np.full(50, 0.97)]
    y = p > 0.5
    found = reliability(y, p, n_bootstrap=20)
    assert found.separated
    assert math.isnan(found.slope.value)
    assert found.shape is None
    assert found.in_the_large.low < 0.0 < found.in_the_large.high
    for wrong in (0, -1):
        labels = y.copy()
        labels[wrong] = not labels[wrong]
        mixed = reliability(labels, p, n_bootstrap=20)
        assert not mixed.separated
        assert math.isfinite(mixed.slope.value)
