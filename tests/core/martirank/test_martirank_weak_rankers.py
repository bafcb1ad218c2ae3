"""MartiRank with classifiers and estimators in its nodes."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from core import MartiRank, SampledMartiRank, save
from core.errors import ArtifactError, InvalidParameter
from core.martirank import any_ranker
from core.metrics import auc
from tests.raising import raises
from tests.sentences import Sentences


def table(seed: int = 0, n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 3))
    return X, ((X[:, 0] + X[:, 1] > 0) ^ (X[:, 2] > 1)).astype(int), draw.uniform(0.5, 2.0, n)


WEAK = {
    "logistic": "logistic",
    "linear_svm": "linear_svm",
    "estimator": LogisticRegression(),
    "probabilities": DecisionTreeClassifier(max_depth=2, random_state=0),
}


@pytest.mark.parametrize("weak_ranker", WEAK.values(), ids=WEAK)
def test_layers_of_any_ranker_get_further_than_one(weak_ranker: Any) -> None:
    X, y, weight = table()
    X_new, y_new, _ = table(seed=1)
    one, six = (
        auc(
            y_new,
            MartiRank(n_rounds=t, weak_ranker=weak_ranker)
            .fit(X, y, weight)
            .decision_function(X_new),
        )
        for t in (1, 6)
    )
    assert six > max(one, 0.8)


class Weigher(LogisticRegression):
    """Remembers the share of the weight that each fit had on positives."""

    shares: list[float] = []  # noqa: RUF012 - of the class, as each fit is of a clone

    def fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit, and remember."""
        self.shares.append(np.average(y, weights=sample_weight))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("balance", [False, True])
def test_classes_weigh_what_is_there_unless_they_are_to_be_balanced(balance: bool) -> None:
    X, y, weight = table()
    weight = np.where(y == 1, 0.2 * weight, weight)
    Weigher.shares.clear()
    ranker = MartiRank(n_rounds=2, weak_ranker=Weigher(), balance_classes=balance)
    ranker.fit(X, y, weight)
    share = np.average(y, weights=weight)
    here, there = ranker.nodes_["positive"] * share, ranker.nodes_["negative"] * (1 - share)
    expected = [0.5] * 3 if balance else (here / (here + there))[[0, 2, 1]]  # from the highest down
    assert Weigher.shares == pytest.approx(expected, rel=1e-4)


def test_no_two_seeds_share_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = table(n=200)
    drawn: list[Any] = []
    fit = any_ranker.fit_classifier
    monkeypatch.setattr(
        any_ranker, "fit_classifier", lambda *given: drawn.append(given[-1]) or fit(*given)
    )
    for seed in (5, 6, 7):
        MartiRank(n_rounds=2, weak_ranker="random_forest", random_state=seed).fit(X, y)
    assert len(drawn) == len(set(drawn)) > 4


def test_each_cut_errs_alike_on_both_classes() -> None:
    X, y, weight = table()
    ranker = MartiRank(n_rounds=3, weak_ranker="logistic").fit(X, y, weight)
    (program,) = ranker.programs_
    mass = np.zeros((4, len(y)))
    mass[0] = weight
    for t in range(3):
        for position in range(t, -1, -1):
            node = t * (t + 1) // 2 + position
            rises = program.rises(node, X, np.ones(len(y), dtype=bool))
            here = mass[position]
            if program.number[node] >= 0:
                fallen = np.average(1 - rises[y == 1], weights=here[y == 1])
                risen = np.average(rises[y == 0], weights=here[y == 0])
                assert ranker.nodes_[node]["error"] == pytest.approx(fallen, abs=1e-4)
                assert ranker.nodes_[node]["error"] == pytest.approx(risen, abs=1e-4)
            mass[position + 1] += here * rises
            mass[position] = here * (1 - rises)


def test_estimators_cannot_be_saved() -> None:
    X, y, _ = table()
    ranker = MartiRank(n_rounds=1, weak_ranker=LogisticRegression()).fit(X, y)
    with raises(ArtifactError, "LogisticRegression"):
        save(ranker)


class Mute(BaseEstimator):
    """Neither decision_function nor predict_proba."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn nothing."""
        return self


@pytest.mark.parametrize("algorithm", [MartiRank, SampledMartiRank])
@pytest.mark.parametrize("weak_ranker", [Mute(), "forest", 3])
def test_wrong_weak_rankers_are_named(algorithm: type[Any], weak_ranker: Any) -> None:
    X, y, _ = table()
    with raises(InvalidParameter, "weak_ranker"):
        algorithm(n_rounds=1, weak_ranker=weak_ranker).fit(X, y)


class Column(BaseEstimator):
    """The one column as it is, or upside down: cut in two it is the best stump."""

    def fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Find the side that positives prefer."""
        best = [0.0, 0.0]
        for value in np.unique(X):
            rates = [
                np.average(X[y == k, 0] > value, weights=sample_weight[y == k]) for k in (0, 1)
            ]
            best = np.maximum(best, [rates[1] - rates[0], rates[0] - rates[1]])
        self.sign_ = 1.0 if best[0] >= best[1] else -1.0
        return self

    def decision_function(self, X: Any) -> Any:
        """Score by the column."""
        return self.sign_ * X[:, 0]


@pytest.mark.parametrize("output", ["position", "vote"])
@pytest.mark.parametrize(("noise", "subsample"), [(0.0, 0.5), (0.2, 1.0)])
def test_sampled_programs_of_any_ranker_are_those_of_stumps(
    noise: float, subsample: float, output: str
) -> None:
    """Draws, noise correction, freezing, coins: everything that stumps do on histograms."""
    draw = np.random.default_rng(0)
    X = draw.integers(0, 12, (600, 1)).astype(float)
    y = (X[:, 0] + draw.normal(size=600) > 7).astype(int)
    y = np.where(draw.random(600) < noise, 1 - y, y)
    weight = draw.integers(1, 3, 600).astype(float)
    parameters: dict[str, Any] = {"n_rounds": 8, "epsilon": 0.9, "noise_rate": noise, "n_bags": 3}
    parameters |= {"output": output, "subsample": subsample}
    stumps, columns = (
        SampledMartiRank(weak_ranker=weak, **parameters).fit(X, y, weight)
        for weak in ("stump", Column())
    )
    assert stumps.nodes_["frozen"].any()
    assert (stumps.nodes_["frozen"] == columns.nodes_["frozen"]).all()
    for field in ("positive", "negative", "error"):
        assert columns.nodes_[field] == pytest.approx(stumps.nodes_[field], nan_ok=True)
    assert columns.expected_position(X) == pytest.approx(stumps.expected_position(X), abs=1e-9)


def test_a_stream_takes_stumps_only(sentences: Sentences) -> None:
    X, y, _ = table()
    with sentences.raises(InvalidParameter):
        SampledMartiRank(weak_ranker="logistic", noise_rate=0.0).partial_fit(X, y)
