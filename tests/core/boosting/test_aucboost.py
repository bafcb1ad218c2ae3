"""AUCBoost: the bound of paper 1's Theorem 2, and any scikit-learn estimator as weak ranker."""

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from core import AUCBoost, RankBoost, load, save
from core.coding import two_sided
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.metrics import auc
from tests.core.artifact_bytes import put_together, take_apart
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

WEAK = {
    "stump": "stump",
    "tree": DecisionTreeClassifier(max_depth=2, random_state=0),
    "logistic": LogisticRegression(),
    "ours": RankBoost(n_rounds=3),
}
NAMES = ["linear_svm", "logistic", "random_forest"]


def table(seed: int = 0, n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1.5).astype(int)
    return X, y, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("weak_ranker", [*WEAK.values(), *NAMES], ids=[*WEAK, *NAMES])
def test_the_auc_keeps_the_bound_in_every_round(weak_ranker: Any) -> None:
    X, y, weight = table()
    n_rounds = 20 if LONG_FORM else 6
    ranker = AUCBoost(n_rounds=n_rounds, weak_ranker=weak_ranker).fit(X, y, weight)
    bound = np.cumprod(ranker.z_**2)
    # one classifier's Z is at most √(1 - r²), r its edge
    edge = 1 - 2 * ranker.rounds_["d_minus"]
    assert (np.cumprod(ranker.z_) <= np.cumprod(np.sqrt(1 - edge**2)) * (1 + 1e-9)).all()
    stages = list(ranker.staged_decision_function(X))
    assert stages[-1] == pytest.approx(ranker.decision_function(X), abs=1e-9)
    for scores, limit in zip(stages, bound, strict=True):
        assert 1 - auc(y, scores, weight) <= limit + 1e-12
    assert auc(y, stages[-1], weight) > 0.8


def test_each_round_of_stumps_is_the_definitions() -> None:
    X, y, weight = table(1, n=60)
    X = np.round(X)
    positive = y == 1
    ranker = AUCBoost(n_rounds=15).fit(X, y, weight)
    f = np.zeros(len(y))
    for row in ranker.rounds_:
        d = weight * np.exp(np.where(positive, -f, f))
        d = d / np.where(positive, d[positive].sum(), d[~positive].sum())
        best = 0.0
        for j in range(X.shape[1]):
            for threshold in np.unique(X[:, j])[:-1]:
                above = X[:, j] > threshold
                best = max(best, abs(d[positive & above].sum() - d[~positive & above].sum()))
        high_side = (X[:, row["feature"]] > row["threshold"]) == (row["sign"] > 0)
        p_plus, p_minus = d[positive & ~high_side].sum(), d[~positive & high_side].sum()
        assert 1 - p_plus - p_minus == pytest.approx(best)
        h = two_sided(p_plus, p_minus)
        assert (row["high"], row["low"], row["d_minus"]) == pytest.approx(h, abs=1e-12)
        assert row["alpha"] == pytest.approx(0.5 * math.log((1 - h.error) / h.error))
        f += row["alpha"] * np.where(high_side, h.above, h.below)
    assert ranker.decision_function(X) == pytest.approx(f, abs=1e-9)


def test_an_estimator_is_cloned_not_fitted() -> None:
    X, y, _ = table()
    template = LogisticRegression()
    AUCBoost(n_rounds=2, weak_ranker=template).fit(X, y)
    assert not hasattr(template, "coef_")


def test_a_booster_of_estimators_can_be_cloned_and_searched() -> None:
    ranker = AUCBoost(weak_ranker=DecisionTreeClassifier(max_depth=1))
    assert clone(ranker).get_params()["weak_ranker__max_depth"] == 1


def test_foreign_estimators_are_not_saved(sentences: Sentences) -> None:
    X, y, _ = table()
    ranker = AUCBoost(n_rounds=2, weak_ranker=LogisticRegression()).fit(X, y)
    with sentences.raises(ArtifactError):
        save(ranker)
    with sentences.raises(InvalidParameter):
        ranker.contributions(X)


@pytest.mark.parametrize("name", ["alpha", "above", "below"])
def test_steps_whose_scores_would_be_infinite_are_not_loaded(
    name: str, sentences: Sentences
) -> None:
    X, y, _ = table()
    data = save(AUCBoost(n_rounds=2, weak_ranker="logistic").fit(X, y))
    header, arrays = take_apart(data)
    arrays[name][0] = 1e308
    with sentences.raises(ArtifactError):
        load(put_together(header, arrays))


def test_rounds_of_a_forest_draw_anew_and_the_same_again() -> None:
    X, y, _ = table()
    one, other = (
        AUCBoost(n_rounds=3, weak_ranker="random_forest", random_state=seed).fit(X, y)
        for seed in (1, 1)
    )
    assert one.get_state()[0]["threshold"].tolist() == other.get_state()[0]["threshold"].tolist()
    arrays = one.get_state()[0]
    half = len(arrays["forest_column"]) // 3
    assert not np.array_equal(arrays["forest_column"][:50], arrays["forest_column"][half:][:50])


class Mute(BaseEstimator):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return self


@pytest.mark.parametrize(
    ("weak_ranker", "shown"),
    [
        (Mute(), "Mute"),
        ("forest", "'forest'"),
        (LogisticRegression, "LogisticRegression"),
        (None, "None"),
    ],
)
def test_what_is_no_weak_ranker_is_refused(weak_ranker: Any, shown: str) -> None:
    X, y, _ = table()
    with raises(InvalidParameter, "weak_ranker", shown):
        AUCBoost(weak_ranker=weak_ranker).fit(X, y)


def test_an_estimator_that_tells_nothing_ends_the_run() -> None:
    ranker = AUCBoost(weak_ranker=DecisionTreeClassifier()).fit(np.zeros((4, 1)), [0, 1, 0, 1])
    assert (ranker.stop_reason_, len(ranker.rounds_)) == ("no_edge", 0)
    assert ranker.decision_function(np.zeros((2, 1))).tolist() == [0.0, 0.0]


def test_a_perfect_estimator_ends_the_run() -> None:
    X = np.arange(6.0)[:, None]
    ranker = AUCBoost(weak_ranker=DecisionTreeClassifier()).fit(X, [0, 1, 1, 0, 1, 0])
    assert (ranker.stop_reason_, len(ranker.rounds_)) == ("perfect_ranker", 1)
    assert ranker.predict(X).tolist() == [0, 1, 1, 0, 1, 0]


def test_what_an_estimator_refuses_is_said_of_it(sentences: Sentences) -> None:
    X, y = np.array([[0.0], [np.nan], [1.0], [2.0]]), np.array([0, 1, 0, 1])
    with sentences.raises(InvalidData):
        AUCBoost(weak_ranker=LogisticRegression()).fit(X, y)
