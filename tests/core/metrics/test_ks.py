"""The point of a ROC curve with the greatest TPR − FPR, against a search over all thresholds."""

from __future__ import annotations

import numpy as np
import pytest

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
