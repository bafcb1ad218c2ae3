"""The p-norm push of stumps and columns: its loss over explicit pairs, its best cut and step by trying all of them."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from core import CoordinateRankBoost, RankBoost
from core.boosting import stumps
from core.coding.best_split import Criterion, find_best_split
from tests.core.oracles import pair_loss

Floats = np.ndarray

PUSHES = [1.5, 4.0, 64.0]


def make_rows(seed: int, n: int = 24) -> tuple[Floats, Floats, Floats]:
    """Return rows with ties and gaps, labels of both classes, and whole weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (n, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] + rng.normal(0, 2, n) > 4).astype(int)
    y[:2] = 0, 1
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, rng.integers(1, 4, n).astype(float)


def least_loss(h: Floats, y: Floats, weight: Floats, push: float) -> float:
    """Return the least loss of the scores α h, over all α that are not cut off (at d-/d+ = 2^-52)."""
    longest = 52.0 * np.log(2.0) / (1.0 + push)
    found = minimize_scalar(
        lambda alpha: np.log(pair_loss(alpha * h, y == 1, weight, push)),
        bounds=(-longest, longest),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(np.exp(found.fun))


def cuts(X: Floats) -> list[Floats]:
    """Return every cut of every column, with the missing on both sides, as 0 and 1."""
    found = []
    for column in X.T:
        gap = np.isnan(column)
        for threshold in [-np.inf, *np.unique(column[~gap])]:
            above = np.where(gap, False, column > threshold)
            found += [above.astype(float), (above | gap).astype(float)]
    return found


def log_losses(ranker: Any, push: float) -> Floats:
    arrays, _ = ranker.get_state()
    return np.asarray(push * arrays["log_f_plus"] + arrays["log_f_minus"])


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("weak_ranker", ["stump", "column"])
@pytest.mark.parametrize("algorithm", [RankBoost, CoordinateRankBoost])
def test_the_loss_is_the_sum_over_pairs_and_never_rises(
    algorithm: Any, weak_ranker: str, push: float
) -> None:
    X, y, weight = make_rows(0)
    ranker = algorithm(weak_ranker=weak_ranker, n_rounds=12, push=push, learning_rate=0.5)
    ranker.fit(X, y, weight)
    told = log_losses(ranker, push)
    for k, scores in enumerate(ranker.staged_decision_function(X)):
        assert told[k + 1] == pytest.approx(
            np.log(pair_loss(scores, y == 1, weight, push)), abs=1e-9
        )
    assert (np.diff(told) <= 1e-12).all()
    assert told[-1] < told[0] - 0.01


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("seed", range(4))
def test_the_first_stump_and_its_step_are_the_best_of_all(seed: int, push: float) -> None:
    X, y, weight = make_rows(
        seed, 90
    )  # so many that every cut has pairs on both sides: no step is cut off
    ranker = RankBoost(n_rounds=1, push=push, smoothing=0.0).fit(X, y, weight)
    best = min(least_loss(h, y, weight, push) for h in cuts(X))
    assert np.exp(log_losses(ranker, push)[1]) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("push", PUSHES)
@pytest.mark.parametrize("seed", range(4))
def test_the_first_column_and_its_step_are_the_best_of_all(seed: int, push: float) -> None:
    X, y, weight = make_rows(seed)
    X[:, 2] = np.nan_to_num(X[:, 2]) > 2  # one of 0 and 1 alone
    ranker = RankBoost(weak_ranker="column", n_rounds=1, push=push, smoothing=0.0)
    ranker.fit(X, y, weight)
    best = min(least_loss(h, y, weight, push) for h in np.nan_to_num(X).T)
    assert np.exp(log_losses(ranker, push)[1]) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("push", PUSHES)
def test_a_smoothed_step_is_the_same_along_a_stump_and_along_its_column(push: float) -> None:
    """The line search of a column of 0 and 1 with some halves in between must end near the closed form."""
    rng = np.random.default_rng(5)
    h = rng.integers(0, 2, 60).astype(float)
    y = (h + rng.normal(0, 1, 60) > 0.7).astype(int)
    for smoothing in (0.01, 0.3):
        of: dict[str, Any] = {"n_rounds": 1, "push": push, "smoothing": smoothing}
        stump = RankBoost(**of).fit(h[:, None], y)
        column = RankBoost(weak_ranker="column", **of).fit(h[:, None], y)
        searched = RankBoost(weak_ranker="column", **of).fit(3.0 * h[:, None], y)
        step = float(stump.rounds_["alpha"][0])
        assert float(column.rounds_["alpha"][0]) == pytest.approx(step, rel=1e-9)
        assert 3.0 * float(searched.rounds_["alpha"][0]) == pytest.approx(step, rel=1e-6)


def test_a_push_of_one_is_rankboost() -> None:
    """The cut that the push's criterion prefers is eq. 5's, by a gain that rises with eq. 5's."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        histograms = rng.dirichlet(np.ones(6), (3, 2))
        histograms[:, :, 3] = 0.0
        n_bins, has_missing = np.full(3, 5), np.array([True, False, True])
        plain = find_best_split(histograms, n_bins, has_missing, Criterion.LOSS)
        pushed = find_best_split(histograms, n_bins, has_missing, Criterion.PUSH, push=1.0)
        assert pushed[:3] == plain[:3]
        assert 1.0 - (1.0 - pushed.gain) ** 2 == pytest.approx(plain.gain, abs=1e-12)
    X, y, weight = make_rows(1)
    near = RankBoost(n_rounds=8, push=1.0 + 1e-9).fit(X, y, weight).decision_function(X)
    expected = RankBoost(n_rounds=8).fit(X, y, weight).decision_function(X)
    assert near == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("weak_ranker", ["stump", "column"])
def test_a_row_of_weight_k_is_k_rows_and_one_of_weight_zero_none(weak_ranker: str) -> None:
    X, y, weight = make_rows(2)
    weight[3] = 0.0
    times = weight.astype(int)
    ranker = RankBoost(weak_ranker=weak_ranker, n_rounds=10, push=8.0)
    weighted = ranker.fit(X, y, weight).decision_function(X)
    ranker.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert ranker.decision_function(X) == pytest.approx(weighted, abs=1e-9)


def test_listed_changes_of_weights_are_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, weight = make_rows(3, 300)
    ranker = RankBoost(n_rounds=40, push=6.0)
    expected = ranker.fit(X, y, weight).decision_function(X)
    monkeypatch.setattr(stumps, "MIN_LISTED_CELLS", 0)
    assert ranker.fit(X, y, weight).decision_function(X) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("weak_ranker", ["stump", "column"])
def test_a_strong_push_on_separable_rows_of_huge_weight_stays_finite(weak_ranker: str) -> None:
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    y = (X[:, 0] > 0.0).astype(int)
    for smoothing in (0.0, 0.01):
        ranker = RankBoost(
            weak_ranker=weak_ranker, n_rounds=50, push=64.0, smoothing=smoothing
        ).fit(X, y, np.full(40, 1e90))
        scores = ranker.decision_function(X)
        assert np.isfinite(scores).all()
        assert scores[y == 1].min() > scores[y == 0].max()
        assert ranker.structure()["losses"].keys() == {"f", "f_skew", "f_tilde"}


def test_the_highest_negatives_weigh_most() -> None:
    """A few negatives share a mark with most positives: the push takes the second column, which tells them apart."""
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], [200, 2000])
    mark = np.where(y == 1, rng.random(2200) < 0.95, rng.random(2200) < 0.05)
    clear = np.where(y == 1, rng.random(2200) < 0.6, np.arange(2200) == 999)
    X = np.column_stack([mark, clear, rng.random(2200) < 0.3]).astype(float)

    def first_column(push: float) -> int:
        return int(RankBoost(n_rounds=1, push=push).fit(X, y).rounds_["feature"][0])

    assert (first_column(1.0), first_column(64.0)) == (0, 1)
