"""Both rankers against their definition over explicit pairs."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import CoordinateRankBoost, RankBoost
from core.boosting import stumps as stumps_module
from tests.core.oracles import PairBoosting, Stump
from tests.long_form import LONG_FORM, one_in

ALGORITHMS = [(RankBoost, "loss"), (CoordinateRankBoost, "slope")]


@pytest.fixture(params=["filled", "changed"])
def histograms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables fill their histograms every round; large ones change them. Try both ways."""
    if request.param == "changed":
        monkeypatch.setattr(stumps_module, "MIN_LISTED_CELLS", 0)


def random_table(
    seed: int,
    n: int = 40,
    d: int = 4,
    missing: float = 0.0,
    ties: bool = False,
    weighted: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.3).astype(int)
    y[:2] = 0, 1
    if ties:
        X = np.round(X)
    X[rng.random(X.shape) < missing] = np.nan
    weight = rng.integers(1, 5, n).astype(float) if weighted else np.ones(n)
    return X, y, weight


def follow(ranker: CoordinateRankBoost | RankBoost, oracle: PairBoosting) -> None:
    """Compare each round with what the oracle would do next, given the same scores so far."""
    taken = ranker.rounds_
    for t, row in enumerate(taken):
        expected = oracle.round()
        if expected is None:  # too slight an edge for the oracle's arithmetic
            assert row["d_plus"] - row["d_minus"] < 1e-4
            return
        stump, alpha, d_plus, d_minus = expected
        assert row["feature"] == stump.feature, f"round {t}"
        assert row["threshold"] == stump.threshold, f"round {t}"
        assert row["sign"] == stump.sign, f"round {t}"
        if oracle.has_missing[stump.feature]:
            assert row["missing_above"] == stump.missing_above, f"round {t}"
        assert row["alpha"] == pytest.approx(alpha, rel=1e-9)
        assert row["d_plus"] == pytest.approx(d_plus, abs=1e-12)
        assert row["d_minus"] == pytest.approx(d_minus, abs=1e-12)
        assert ranker.loss_[t] == pytest.approx(oracle.loss(), rel=1e-9)


@pytest.mark.usefixtures("histograms")
@pytest.mark.parametrize(("algorithm", "criterion"), ALGORITHMS)
@pytest.mark.parametrize(
    ("missing", "ties", "weighted", "smoothing"),
    one_in(5, [0.0, 0.2], [False, True], [False, True], [0.0, 0.01]),
)
def test_every_round_is_the_one_that_the_pairs_ask_for(
    algorithm: type[Any],
    criterion: str,
    missing: float,
    ties: bool,
    weighted: bool,
    smoothing: float,
) -> None:
    for seed in range(20 if LONG_FORM else 1):
        n = 40 if smoothing else 120
        X, y, weight = random_table(seed, n, missing=missing, ties=ties, weighted=weighted)
        if not smoothing:
            # Every cut of few values errs: a cut without errors has a test of its own.
            X = X.round().clip(-1.0, 1.0)
        ranker = algorithm(n_rounds=8, smoothing=smoothing).fit(X, y, weight)
        oracle = PairBoosting.of_classes(X, y, weight, criterion, smoothing or 2.0**-52)
        assert smoothing or (ranker.rounds_["d_minus"] > 0.0).all()
        assert len(ranker.rounds_) > 2
        follow(ranker, oracle)


@st.composite
def small_tables(draw: Any) -> Any:
    """Few rows of few values: ties, constant and one-sided columns, missing values, d- = 0."""
    n = draw(st.integers(2, 9))
    d = draw(st.integers(1, 3))
    value = st.sampled_from([0.0, 1.0, 2.0, math.nan, -0.0])
    X = np.array(draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    y[:2] = 0, 1
    weight = draw(st.lists(st.integers(1, 3).map(float), min_size=n, max_size=n))
    return X, y, np.array(weight)


@pytest.mark.parametrize(("algorithm", "criterion"), ALGORITHMS)
@pytest.mark.usefixtures("histograms")
@given(table=small_tables())
@settings(
    max_examples=1000 if LONG_FORM else 20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # it holds for all examples
)
def test_small_tables_full_of_ties(
    algorithm: type[Any], criterion: str, table: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    X, y, weight = table
    ranker = algorithm(n_rounds=5, smoothing=0.01).fit(X, y, weight)
    oracle = PairBoosting.of_classes(X, y, weight, criterion, 0.01)
    follow(ranker, oracle)
    if ranker.stop_reason_ == "no_edge":
        assert oracle.round() is None
    if ranker.stop_reason_ == "perfect_ranker":
        plus, minus, zero = oracle.masses(_last_stump(ranker), oracle.d())
        assert (plus, minus, zero) == (pytest.approx(1.0), 0.0, 0.0)


def _last_stump(ranker: RankBoost | CoordinateRankBoost) -> Stump:
    feature, threshold, sign, missing_above = ranker.rounds_[-1][
        ["feature", "threshold", "sign", "missing_above"]
    ].item()
    return Stump(feature, threshold, sign, missing_above)


@pytest.mark.usefixtures("histograms")
@pytest.mark.parametrize(("algorithm", "criterion"), ALGORITHMS)
def test_loss_stays_exact_over_many_rounds(algorithm: type[Any], criterion: str) -> None:
    X, y, weight = random_table(5, n=120, d=6, missing=0.1, weighted=True)
    ranker = algorithm(n_rounds=300).fit(X, y, weight)
    f = ranker.decision_function(X)
    pairs = np.exp(-(f[y == 1][:, None] - f[y == 0][None, :]))
    explicit = (weight[y == 1][:, None] * weight[y == 0][None, :] * pairs).sum()
    assert ranker.loss_[-1] == pytest.approx(explicit, rel=1e-9)
    assert (np.diff(ranker.loss_) < 0).all()


def test_the_two_rules_choose_differently() -> None:
    # (P, N) = (.5, .2) on the first feature, (.2, 0) on the second: the slope prefers the first,
    # the loss the second, where no pair is ordered wrongly.
    X = np.zeros((20, 2))
    y = np.r_[np.ones(10, int), np.zeros(10, int)]
    X[:5, 0] = 1
    X[10:12, 0] = 1
    X[:2, 1] = 1
    slope = CoordinateRankBoost(n_rounds=1).fit(X, y).rounds_[0]
    loss = RankBoost(n_rounds=1).fit(X, y).rounds_[0]
    assert slope["feature"] == 0
    assert (slope["d_plus"], slope["d_minus"]) == pytest.approx((0.4, 0.1))
    assert loss["feature"] == 1
    assert (loss["d_plus"], loss["d_minus"]) == (pytest.approx(0.2), 0.0)


@pytest.mark.usefixtures("histograms")
def test_intercept_makes_both_classes_lose_alike() -> None:
    # Corollary 13: with b = ½ ln(F₊/F₋), AdaBoost's loss F = F₊e^{-b} + F₋e^{b} is 2√F̃.
    X, y, weight = random_table(3, n=200, weighted=True)
    ranker = RankBoost(n_rounds=30).fit(X, y, weight)
    f = ranker.decision_function(X)
    plus = (weight * np.exp(-f))[y == 1].sum()
    minus = (weight * np.exp(f))[y == 0].sum()
    assert plus == pytest.approx(minus, rel=1e-9)
    assert plus + minus == pytest.approx(2 * math.sqrt(ranker.loss_[-1]), rel=1e-9)


def test_plain_formula_is_cut_off_where_it_is_infinite() -> None:
    X = np.array([[0.0], [0.0], [1.0]])
    ranker = RankBoost(n_rounds=1, smoothing=0.0).fit(X, [0, 1, 1])
    assert ranker.rounds_["d_minus"][0] == 0.0
    assert ranker.rounds_["alpha"][0] == pytest.approx(0.5 * math.log(0.5 * 2.0**52), rel=1e-9)


def test_a_perfect_ranker_ends_the_run() -> None:
    X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    ranker = RankBoost(n_rounds=50).fit(X, [0, 0, 1, 1])
    assert ranker.stop_reason_ == "perfect_ranker"
    assert len(ranker.rounds_) == 1
    assert ranker.predict(X).tolist() == [0, 0, 1, 1]


@pytest.mark.usefixtures("histograms")
def test_scores_far_beyond_the_range_of_exp_do_not_underflow() -> None:
    # Separable data and full steps: after thousands of rounds e^{-f} is far below the least double.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X.sum(axis=1) > 0).astype(int)
    ranker = RankBoost(n_rounds=3000, smoothing=1e-6).fit(X, y)
    f = ranker.decision_function(X)
    assert ranker.stop_reason_ == "n_rounds"
    assert f[y == 1].min() - f[y == 0].max() > 750
    assert np.isfinite(f).all()
    assert ranker.loss_[-1] == 0.0  # below the least double, and said so


@pytest.mark.usefixtures("histograms")
def test_extreme_weights_keep_their_share() -> None:
    X, y, _ = random_table(2)
    weight = np.where(y == 1, 1e-100, 1e100)
    plain = RankBoost(n_rounds=20).fit(X, y)
    scaled = RankBoost(n_rounds=20).fit(X, y, weight)
    assert scaled.rounds_["feature"].tolist() == plain.rounds_["feature"].tolist()
    assert scaled.rounds_["alpha"] == pytest.approx(plain.rounds_["alpha"], rel=1e-9)


def test_changed_histograms_choose_as_filled_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, weight = random_table(4, n=3000, d=6, missing=0.1, weighted=True)
    filled = RankBoost(n_rounds=200).fit(X, y, weight)
    monkeypatch.setattr(stumps_module, "MIN_LISTED_CELLS", 0)
    changed = RankBoost(n_rounds=200).fit(X, y, weight)
    for field in ("feature", "threshold", "sign", "missing_above"):
        assert (changed.rounds_[field] == filled.rounds_[field]).all()
    assert changed.rounds_["alpha"] == pytest.approx(filled.rounds_["alpha"], rel=1e-9)
