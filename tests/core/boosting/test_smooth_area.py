"""The smoothed partial AUC against its definition, pair by pair."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from core.boosting.smooth_pauc import SmoothArea
from core.metrics import partial_auc

WINDOWS = [(0.0, 1.0), (0.0, 0.2), (0.1, 0.4), (0.3, 1.0)]
ERROR = norm(scale=math.sqrt(0.5))


def make_scores(n: int, scale: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores with ties, of both classes, with weights."""
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(size=n)
    scores[:3] = scores[3]
    positive = rng.random(n) < 0.4
    positive[:2] = True, False
    return scores, positive, rng.uniform(0.5, 2.0, n)


def by_pairs(
    scores: np.ndarray, positive: np.ndarray, weight: np.ndarray, low: float, high: float
) -> float:
    """Share of the pairs whose noisy scores are in order, the negative's being within the window."""
    share = np.where(positive, weight / weight[positive].sum(), weight / weight[~positive].sum())
    ends = scores.min() - 8.0, scores.max() + 8.0

    def fpr(c: Any) -> Any:
        return share[~positive] @ ERROR.sf(c - scores[~positive])

    top = ends[1] if low == 0.0 else brentq(lambda c: fpr(c) - low, *ends, xtol=1e-14)
    bottom = ends[0] if high == 1.0 else brentq(lambda c: fpr(c) - high, *ends, xtol=1e-14)
    total = 0.0
    for i in np.flatnonzero(positive):
        for k in np.flatnonzero(~positive):

            def in_order(c: Any, i: Any = i, k: Any = k) -> Any:
                return (
                    ndtr(math.sqrt(2.0) * (scores[i] - c))
                    * math.exp(-((scores[k] - c) ** 2))
                    / math.sqrt(math.pi)
                )

            middle = np.clip(scores[k], bottom, top)
            sides = [quad(in_order, *s, epsabs=1e-13)[0] for s in ((bottom, middle), (middle, top))]
            total += share[i] * share[k] * sum(sides)
    return total / (high - low)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_value_is_the_sum_over_pairs(window: tuple[float, float], scale: float) -> None:
    scores, positive, weight = make_scores(9, scale)
    area = SmoothArea(positive, weight, *window)
    expected = by_pairs(scores, positive, weight, *window)
    assert area.at(scores).value == pytest.approx(expected, abs=1e-10)


def test_of_all_rates_it_is_the_mean_of_phi() -> None:
    scores, positive, weight = make_scores(40, 2.0)
    w, v = weight[positive], weight[~positive]
    differences = scores[positive][:, None] - scores[~positive]
    expected = w @ norm.cdf(differences) @ v / (w.sum() * v.sum())
    area = SmoothArea(positive, weight, 0.0, 1.0)
    assert area.at(scores).value == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("scale", [0.0, 1.0, 20.0])
def test_gradient_and_curvature_by_differences(window: tuple[float, float], scale: float) -> None:
    scores, positive, weight = make_scores(30, scale)
    area = SmoothArea(positive, weight, *window)
    h = np.random.default_rng(1).normal(size=30)
    step = 1e-4
    here, above, below = (area.at(scores + s * step * h) for s in (0.0, 1.0, -1.0))
    slope = (above.value - below.value) / (2.0 * step)
    assert here.gradient() @ h == pytest.approx(slope, abs=2e-8)
    bend = (above.gradient() @ h - below.gradient() @ h) / (2.0 * step)
    assert here.curvature(h) == pytest.approx(bend, abs=1e-7)
    assert (here.gradient()[positive] >= -1e-12).all()
    assert (here.gradient()[~positive] <= 1e-12).all()


@pytest.mark.parametrize("window", WINDOWS)
def test_equal_scores_have_the_diagonal(window: tuple[float, float]) -> None:
    _, positive, weight = make_scores(20, 1.0)
    value = SmoothArea(positive, weight, *window).at(np.full(20, 3.7)).value
    assert value == pytest.approx(sum(window) / 2.0, abs=1e-12)


@pytest.mark.parametrize("window", WINDOWS)
def test_far_apart_scores_have_the_empirical_area(window: tuple[float, float]) -> None:
    scores, positive, weight = make_scores(20, 1.0)
    scores = 100.0 * np.argsort(np.argsort(scores, kind="stable"))
    value = SmoothArea(positive, weight, *window).at(scores).value
    expected = partial_auc(positive, scores, *window, sample_weight=weight)
    assert value == pytest.approx(expected, abs=1e-10)


def test_weight_k_is_k_rows_and_scale_does_not_matter() -> None:
    scores, positive, _ = make_scores(25, 2.0)
    weight = np.random.default_rng(2).integers(1, 4, 25)
    one = SmoothArea(positive, 1e140 * weight, 0.1, 0.4).at(scores)
    repeated = np.repeat(scores, weight)
    other = SmoothArea(np.repeat(positive, weight), np.ones(weight.sum()), 0.1, 0.4).at(repeated)
    assert one.value == pytest.approx(other.value, abs=1e-12)
    h = np.arange(25.0)
    assert one.curvature(h) == pytest.approx(other.curvature(np.repeat(h, weight)), abs=1e-10)


def test_threshold_in_a_gap_between_negatives() -> None:
    """If no negative is near, the threshold's position has no effect, and nothing is divided by 0."""
    positive = np.array([True, False, True, False])
    scores = np.array([300.0, 200.0, 0.0, -100.0])
    at = SmoothArea(positive, np.ones(4), 0.0, 0.5).at(scores)
    assert at.value == pytest.approx(0.5, abs=1e-12)
    assert at.gradient() == pytest.approx(np.zeros(4), abs=1e-12)
    assert at.curvature(np.arange(4.0)) == pytest.approx(0.0, abs=1e-12)
