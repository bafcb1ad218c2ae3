"""The baseline of comparisons: logistic regression on normal scores, with a chosen C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from core import Logistic
from core.linear.normal_scores import COSTS, NormalScores, NormalScoresLogistic
from core.metrics import auc_interval

N = 4_000


def heavy(seed: int) -> tuple[Any, Any]:
    """Columns with heavy tails, whose logarithms are what matters."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(N, 5))
    return np.exp(2.5 * z), rng.random(N) < expit(z @ [1.0, -0.8, 0.5, 0.0, 0.0] - 1.0)


def auc(ranker: Any, X: Any, y: Any) -> float:
    return float(auc_interval(y, ranker.decision_function(X)).value)


def test_tails_do_not_decide_the_fit() -> None:
    (X, y), (newer, labels) = heavy(0), heavy(1)
    plain, scored = Logistic().fit(X, y), NormalScoresLogistic().fit(X, y)
    assert auc(scored, newer, labels) > auc(plain, newer, labels) + 0.03
    # What rises with a column is the same column to it.
    squeezed = NormalScoresLogistic().fit(np.log(X), y)
    both = squeezed.decision_function(np.log(X)), scored.decision_function(X)
    assert np.corrcoef(*both)[0, 1] > 0.999


def test_columns_that_are_normal_lose_nothing() -> None:
    (X, y), (newer, labels) = heavy(2), heavy(3)
    plain, scored = Logistic().fit(np.log(X), y), NormalScoresLogistic().fit(np.log(X), y)
    assert auc(scored, np.log(newer), labels) > auc(plain, np.log(newer), labels) - 0.005


@pytest.mark.parametrize(("n_columns", "cost"), [(2, max(COSTS)), (300, min(COSTS))])
def test_the_cost_is_chosen_by_rows_that_are_held_out(n_columns: int, cost: float) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, n_columns))
    y = rng.random(400) < expit(2.0 * X[:, 0])
    found = NormalScoresLogistic().fit(X, y)
    assert cost == found.C_


def test_missing_values_constants_and_values_beyond_those_learnt() -> None:
    X = np.array(
        [[1.0, 5.0, np.nan], [2.0, 5.0, np.nan], [np.nan, 5.0, np.nan], [2.0, 5.0, np.nan]]
    )
    scores = NormalScores.fit(X, np.zeros(3, dtype=np.int64))
    found = scores.transform(np.array([[-9.0, 9.0, 1.0], [99.0, 0.0, np.nan], [np.nan, 5.0, 2.0]]))
    assert found[0, 0] < found[1, 0]
    assert found[1, 0] == scores.transform(X)[1, 0]
    assert (found[:, 1] == 0.0).all()
    assert np.isnan(found[2, 0])
    assert found[0, 2] == 1.0  # a column without values is left as it is
