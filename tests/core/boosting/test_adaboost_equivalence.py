"""RankBoost is confidence-rated AdaBoost whose classes are rebalanced every round."""

import numpy as np
import pytest

from core import RankBoost


def balanced_confidence_rated_adaboost(X, positive, n_rounds):
    """Schapire & Singer 1999 on stumps, the class totals set to ½ before each round.

    A stump splits the rows in two; it predicts ½ ln(W₊/W₋) on each side and minimises
    Z = 2 Σ √(W₊ W₋).
    """
    scores = np.zeros(len(X))
    weight = np.ones(len(X))
    for _ in range(n_rounds):
        for rows in (positive, ~positive):
            weight[rows] /= 2 * weight[rows].sum()
        best = (np.inf, None, None)
        for column in X.T:
            for threshold in np.unique(column)[:-1]:
                above = column > threshold
                sides = [(weight[s & positive].sum(), weight[s & ~positive].sum())
                         for s in (above, ~above)]  # fmt: skip
                z = 2 * sum(np.sqrt(p * n) for p, n in sides)
                if z < best[0] - 1e-12:
                    best = (z, above, sides)
        _, above, sides = best
        confidence = np.where(above, *(0.5 * np.log(p / n) for p, n in sides))
        scores += confidence
        weight = weight * np.exp(np.where(positive, -confidence, confidence))
    return scores


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_scores_are_equal_up_to_a_constant(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (400, 3)).astype(float)
    positive = X.sum(axis=1) + 6 * rng.normal(size=400) > 18
    expected = balanced_confidence_rated_adaboost(X, positive, 30)
    ranker = RankBoost(n_rounds=30, smoothing=0.0).fit(X, positive)
    assert (ranker.rounds_["d_minus"] > 0).all()  # else a confidence is infinite
    difference = ranker.decision_function(X) - expected
    assert np.ptp(difference) < 1e-12 * np.ptp(expected) * 30
