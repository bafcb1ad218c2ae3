"""The point of a ROC curve with the greatest TPR − FPR, against a search over all thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import kolmogorov

from core import metrics


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_scores", [3, 20, 10_000])
def test_the_point_is_the_best_of_all_thresholds(n_scores: int, weighted: bool) -> None:
    rng = np.random.default_rng(n_scores)
    for _ in range(20):
        y = np.append(rng.random(60) < 0.2, [True, False])
        scores = rng.integers(0, n_scores, y.size) + 0.3 * n_scores * y
        weight = rng.integers(1, 5, y.size).astype(float) if weighted else np.ones(y.size)

        def difference(threshold: float) -> float:
            flagged = scores >= threshold  # noqa: B023
            of_class = [weight[y == c].sum() for c in (True, False)]  # noqa: B023
            caught = [weight[flagged & (y == c)].sum() for c in (True, False)]  # noqa: B023
            return float(caught[0] / of_class[0] - caught[1] / of_class[1])

        curve = metrics.roc_curve(y, scores, weight)
        thresholds = sorted([*set(scores.tolist()), np.inf], reverse=True)
        greatest = max(map(difference, thresholds))
        first = next(t for t in thresholds if difference(t) > greatest - 1e-12)
        assert curve.thresholds[curve.ks_point] == first


def test_a_ranking_worse_than_chance_flags_nothing() -> None:
    curve = metrics.roc_curve([1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4])
    assert curve.ks_point == 0
    assert curve.ks == 1.0


def test_random_scores_have_a_distance_only_if_smirnovs_test_finds_one() -> None:
    """The threshold that nine tenths of the rows choose is that of all rows: without the test, 10 % are above 0."""
    rng, above = np.random.default_rng(0), 0
    y = np.repeat([1, 0], [300, 300])
    for seed in range(60):
        found = metrics.ks_interval(y, rng.normal(size=600), random_state=seed)
        p_value = kolmogorov(np.sqrt(150.0) * found.value)
        assert p_value < 0.05 or found.low == 0.0
        above += found.low > 0.0
    assert above <= 8
