"""Trees against trees by the book, over explicit rows and pairs."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from core import RankBoost
from core.boosting import LogitBoost
from tests.core.oracles import TreeOracle, groups, pair_loss, score_of_side
from tests.long_form import LONG_FORM


def make_rows(
    seed: int, n: int = 60, d: int = 3, missing: bool = True, ties: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if ties:
        X = np.round(2 * X)
    positive = X[:, 0] * X[:, 1] + rng.normal(size=n) > 0.3
    positive[:2] = (True, False)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, positive, rng.uniform(0.5, 2.0, n)


def normalised(positive: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
    """Masses (p, q) of each row, each class summing to 1, and the mean mass of a row."""
    mass = np.stack([weight * positive, weight * ~positive], axis=1)
    mass /= mass.sum(axis=0)
    squares = (mass**2 / weight[:, None]).sum(axis=0)
    return mass, 0.5 * squares.sum()


def leaves_of(ranker: RankBoost | LogitBoost, X: Any) -> set[Any]:
    """The rows of each leaf of the first tree, by the scores that it gives."""
    scores = ranker.decision_function(X)
    return groups([np.flatnonzero(scores == score) for score in np.unique(scores)])


SHAPES = [
    {"max_depth": 1, "max_leaves": None},
    {"max_depth": 3, "max_leaves": None},
    {"max_depth": 12, "max_leaves": 5},
    {"max_depth": 2, "max_leaves": 4},
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("leaf", ["closed", "newton"])
@pytest.mark.parametrize("push", [1.0, 3.0])
@pytest.mark.parametrize(("missing", "ties"), list(itertools.product([False, True], repeat=2)))
def test_a_tree_divides_rows_as_brute_force_does(
    shape: dict[str, Any], leaf: str, push: float, missing: bool, ties: bool
) -> None:
    for seed in range(40 if LONG_FORM else 1):
        X, positive, weight = make_rows(seed, missing=missing, ties=ties)
        ranker = RankBoost(
            n_rounds=1,
            weak_ranker="tree",
            leaf=leaf,
            push=push,
            smoothing=0.7,
            min_samples_leaf=2.0,
            **shape,
        ).fit(X, positive, weight)
        mass, unit = normalised(positive, weight)
        oracle = TreeOracle(X, mass, leaf, push, 0.7 * unit, 2.0 * unit)
        assert leaves_of(ranker, X) == groups(oracle.grow(**shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_a_logistic_tree_divides_rows_as_brute_force_does(
    shape: dict[str, Any], missing: bool
) -> None:
    for seed in range(40 if LONG_FORM else 2):
        X, positive, weight = make_rows(seed, missing=missing)
        ranker = LogitBoost(n_rounds=1, smoothing=0.7, min_samples_leaf=2.0, **shape)
        ranker.fit(X, positive, weight)
        share = weight[positive].sum() / weight.sum()
        bend = share * (1 - share)
        mass = weight[:, None] * np.stack([positive - share, np.full(len(X), bend)], axis=1)
        unit = 0.25  # of any weights of the classes
        oracle = TreeOracle(X, mass, "gradient", 1.0, 0.7 * unit, 2.0 * unit)
        leaves = oracle.grow(**shape)
        assert leaves_of(ranker, X) == groups(leaves)
        scores = ranker.decision_function(X)
        for rows in leaves:
            gradient, curvature = mass[rows].sum(axis=0)
            newton = gradient / (curvature + 0.7 * unit)
            up, down = (np.abs(mass[rows, 0])[positive[rows] == k].sum() for k in (True, False))
            bound = np.log((up + 0.7 * unit) / (down + 0.7 * unit))
            step = 0.1 * min(newton, bound, key=abs)
            assert scores[rows] == pytest.approx(ranker.intercept_ + step)


@pytest.mark.parametrize("leaf", ["closed", "newton"])
@pytest.mark.parametrize(("digits", "max_bins"), [(1, 255), (9, 1000)])  # codes of a byte, of two
def test_columns_that_exclude_one_another_divide_rows_as_they_do_alone(
    leaf: str, digits: int, max_bins: int
) -> None:
    """Beside a number, 20 of 0 and 1 of which one row has one 1: they are one column of codes to the grower."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(20, 900, p=rng.dirichlet(np.full(20, 2.0)))
    X = np.column_stack([rng.normal(size=900).round(digits), *(kinds == k for k in range(20))])
    positive = rng.normal(size=20)[kinds] + X[:, 0] + rng.normal(size=900) > 0.5
    weight = rng.uniform(0.5, 2.0, 900)
    ranker = RankBoost(n_rounds=1, weak_ranker="tree", leaf=leaf, max_leaves=9, smoothing=0.7)
    ranker.set_params(min_samples_leaf=5.0, max_bins=max_bins).fit(X, positive, weight)
    mass, unit = normalised(positive, weight)
    oracle = TreeOracle(X, mass, leaf, 1.0, 0.7 * unit, 5.0 * unit)
    assert leaves_of(ranker, X) == groups(oracle.grow(max_depth=12, max_leaves=9))
    asked = ranker.get_state()[0]["split_feature"]
    assert (asked > 0).sum() > 2


@pytest.mark.parametrize("leaf", ["closed", "newton"])
@pytest.mark.parametrize("missing", [False, True])
def test_a_set_of_categories_is_the_best_of_all(leaf: str, missing: bool) -> None:
    rng = np.random.default_rng(1)
    word = rng.integers(0, 6, 200)
    positive = rng.random(200) < np.array([0.1, 0.8, 0.4, 0.6, 0.3, 0.5])[word]
    names = np.array(list("abcdef"), dtype=object)[word]
    if missing:
        names[rng.random(200) < 0.2] = None
    table = pd.DataFrame({"word": names})
    options = {"n_rounds": 1, "weak_ranker": "tree", "max_leaves": 2, "category_penalty": 0.0}
    ranker = RankBoost(leaf=leaf, smoothing=0.0, min_samples_leaf=0.0, **options)
    ranker.fit(table, positive)
    mass, _ = normalised(positive, np.ones(200))

    def gain(above: np.ndarray) -> float:
        sides = (mass[side].sum(axis=0) for side in (above, ~above))
        return sum(score_of_side(leaf, up, down, 1.0, 1e-300) for up, down in sides)

    values = [*"abcdef", *[None] * missing]
    masks = [names == value for value in values]
    best = max(
        gain(np.logical_or.reduce([mask for mask, t in zip(masks, taken, strict=True) if t]))
        for taken in itertools.product([False, True], repeat=len(values))
        if any(taken) and not all(taken)
    )
    above, _ = (np.isin(np.arange(200), list(rows)) for rows in leaves_of(ranker, table))
    assert gain(above) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("push", [1.0, 2.0])
def test_closed_leaves_minimise_the_loss_over_all_pairs(push: float) -> None:
    X, positive, weight = make_rows(1, n=150)
    ranker = RankBoost(
        n_rounds=1,
        weak_ranker="tree",
        learning_rate=1.0,
        smoothing=0.0,
        max_leaves=4,
        min_samples_leaf=25.0,
        push=push,
    ).fit(X, positive, weight)
    scores = ranker.decision_function(X)
    values, leaf = np.unique(scores, return_inverse=True)
    assert len(values) == 4

    def log_loss(steps: Any) -> Any:
        return np.log(pair_loss(steps[leaf], positive, weight, push))

    best = minimize(log_loss, np.zeros(4), tol=1e-10)
    # scores matter up to a constant
    assert values - values[0] == pytest.approx(best.x - best.x[0], abs=1e-4)
    assert log_loss(values) <= best.fun + 1e-12


@pytest.mark.parametrize("push", [1.0, 2.5])
@pytest.mark.parametrize("leaf", ["closed", "newton"])
@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_the_loss_is_the_sum_over_pairs_after_each_round(
    push: float, leaf: str, subsample: float
) -> None:
    X, positive, weight = make_rows(3)
    ranker = RankBoost(
        n_rounds=12,
        weak_ranker="tree",
        leaf=leaf,
        push=push,
        learning_rate=0.5,
        subsample=subsample,
        max_features=0.7,
    ).fit(X, positive, weight)
    stages = list(ranker.staged_decision_function(X))
    assert len(stages) == len(ranker.loss_) == 12
    for loss, scores in zip(ranker.loss_, stages, strict=True):
        assert loss == pytest.approx(pair_loss(scores, positive, weight, push), rel=1e-9)
    assert stages[-1] == pytest.approx(ranker.decision_function(X), abs=1e-12)


@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_the_logistic_loss_is_the_sum_over_rows_after_each_round(subsample: float) -> None:
    X, positive, weight = make_rows(4)
    ranker = LogitBoost(n_rounds=12, subsample=subsample, learning_rate=0.5)
    ranker.fit(X, positive, weight)
    for loss, scores in zip(ranker.loss_, ranker.staged_decision_function(X), strict=True):
        margin = np.where(positive, scores, -scores)
        assert loss == pytest.approx((weight * np.log1p(np.exp(-margin))).sum(), rel=1e-9)


def test_a_push_shares_the_classes_at_its_intercept() -> None:
    X, positive, weight = make_rows(5)
    ranker = RankBoost(n_rounds=5, weak_ranker="tree", push=3.0).fit(X, positive, weight)
    scores = ranker.decision_function(X)
    plus = (weight * np.exp(-scores))[positive].sum()
    minus = (weight * np.exp(3.0 * scores))[~positive].sum()
    assert plus == pytest.approx(minus)


columns = st.sampled_from([[0.0], [0.0, 1.0], [0.0, 1.0, 2.0, np.nan], [np.nan]])


@settings(max_examples=600 if LONG_FORM else 20)
@given(st.data())
def test_ties_constants_and_empty_columns(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 12))
    n_columns = data.draw(st.integers(1, 3))
    X = np.array(
        [
            data.draw(st.lists(st.sampled_from(data.draw(columns)), min_size=n, max_size=n))
            for _ in range(n_columns)
        ]
    ).T
    positive = np.array(
        [True, False, *data.draw(st.lists(st.booleans(), min_size=n - 2, max_size=n - 2))]
    )
    weight = np.array(data.draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=n, max_size=n)))
    algorithm = data.draw(st.sampled_from([RankBoost, LogitBoost]))
    ranker = algorithm(
        n_rounds=5, weak_ranker="tree", min_samples_leaf=data.draw(st.sampled_from([0.0, 1.0]))
    ).fit(X, positive, weight)
    scores = ranker.decision_function(X)
    assert np.isfinite(scores).all()
    assert (np.diff(ranker.loss_) <= 1e-9 * ranker.loss_[:-1]).all()
    same = (X[:, None] == X[None]) | (np.isnan(X[:, None]) & np.isnan(X[None]))
    alike = same.all(axis=2)
    assert (scores[:, None] == scores[None])[alike].all()
    if alike.all():
        assert len(ranker.rounds_) == 0
        assert ranker.stop_reason_ == "no_edge"


def test_a_planted_cut_is_found() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 40))  # two blocks of columns
    positive = (X[:, 37] > 0.25) & (X[:, 3] <= 0.5) ^ (rng.random(4000) < 0.02)
    ranker = RankBoost(n_rounds=1, weak_ranker="tree", max_leaves=3, max_bins=255)
    ranker.fit(X, positive)
    leaves = ranker.structure()["trees"][0]["leaves"]
    assert len(leaves) == 3
    assert {word for leaf in leaves for word in leaf["rule"].split() if word[0] == "x"} == {
        "x3",
        "x37",
    }
    splits = ranker.get_state()[0]
    found = dict(zip(splits["split_feature"], splits["split_threshold"], strict=True))
    assert found == pytest.approx({37: 0.25, 3: 0.5}, abs=0.05)


def test_a_missing_value_that_fit_never_saw_follows_the_greater_mass() -> None:
    x = np.arange(10.0)
    ranker = RankBoost(n_rounds=1, weak_ranker="tree", min_samples_leaf=0.0)
    low, high, unknown = ranker.fit(x[:, None], x > 6).decision_function([[0.0], [9.0], [np.nan]])
    # masses of 1 above and 1 below: below by the rule for ties
    assert low < high
    assert unknown == low
