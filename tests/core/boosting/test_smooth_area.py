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
