"""Rules that boosted trees keep for any data: bits, artifacts, explanations, refusals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import RankBoost, load, save
from core.base.table import CodedTable
from core.boosting import LogitBoost
from core.boosting.tree_sum import SPLITS, describe_leaves
from tests.core.threads import on_one_thread_and_on_all
from tests.sentences import Sentences

BOOSTERS = {
    "closed": lambda **options: RankBoost(weak_ranker="tree", **options),
    "newton": lambda **options: RankBoost(weak_ranker="tree", leaf="newton", **options),
    "push": lambda **options: RankBoost(weak_ranker="tree", push=2.0, **options),
    "logistic": LogitBoost,
}
boosters = pytest.mark.parametrize("make", BOOSTERS.values(), ids=BOOSTERS)
SAMPLED = {"subsample": 0.3, "max_features": 0.6}


def make_table(
    n: int = 500, d: int = 5, seed: int = 0, missing: float = 0.05
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) > 0.8
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


@pytest.mark.parametrize(
    ("leaf", "options"),
    [
        ("closed", {"max_depth": 4, "max_leaves": None}),
        ("closed", SAMPLED | {"max_depth": 12, "max_leaves": 12}),
        ("logistic", {"max_depth": 12, "max_leaves": 12}),
        ("logistic", SAMPLED | {"max_depth": 4, "max_leaves": None}),
    ],
    ids=["levels", "best first, sampled", "logistic, best first", "logistic, levels, sampled"],
)
def test_one_thread_or_two_same_bits(leaf: str, options: dict[str, Any]) -> None:
    X, y = make_table(n=40_000, d=34)
    one, all_of_them = on_one_thread_and_on_all(
        lambda: save(BOOSTERS[leaf](n_rounds=2, **options).fit(X, y))
    )
    assert one == all_of_them


@boosters
@pytest.mark.parametrize("scale", [1e-96, 0.01])
def test_the_scale_of_weights_below_one_row_does_not_matter(
    make: Callable[..., Any] | type[Any], scale: float
) -> None:
    X, y = make_table()
    weight = np.random.default_rng(1).random(len(X))  # of mean 1/2: no numbers of rows
    one, other = (
        make(n_rounds=8, early_stopping_rounds=3).fit(X, y, weight * factor)
        for factor in (1.0, scale)
    )
    assert len(other.rounds_) == len(one.rounds_) > 0
    assert other.validation_auc_ == pytest.approx(one.validation_auc_, abs=1e-9)
    assert other.decision_function(X) == pytest.approx(one.decision_function(X), abs=1e-9)


@boosters
@pytest.mark.parametrize(("n", "leaf_rows"), [(1000, 20.0), (4000, 5.0)])
def test_many_rows_have_smaller_leaves_of_more_smoothing(
    make: Callable[..., Any], n: int, leaf_rows: float
) -> None:
    X, y = make_table(n)
    smoothing = 1.0 if n == 1000 else 10.0 if make is LogitBoost else 5.0
    weight = np.full(n, 1e-3)  # a mean below 1 counts as one row

    def scores(**options: Any) -> np.ndarray:
        return make(n_rounds=2, **options).fit(X, y, weight).decision_function(X)

    own = scores()
    assert (own == scores(min_samples_leaf=leaf_rows, smoothing=smoothing)).all()
    assert (own != scores(min_samples_leaf=20.0, smoothing=2.0)).any()
    # one that is given leaves the other as it is for few rows
    assert (scores(smoothing=2.0) == scores(min_samples_leaf=20.0, smoothing=2.0)).all()
    assert (scores(min_samples_leaf=9.0) == scores(min_samples_leaf=9.0, smoothing=1.0)).all()


def test_a_contribution_follows_the_path() -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 4)
    y = (X == 1).all(axis=1)
    y[:4] = [False, True, False, True]
    ranker = RankBoost(n_rounds=1, weak_ranker="tree", max_leaves=3, min_samples_leaf=0.0).fit(X, y)
    scores = dict(zip(map(tuple, X), ranker.decision_function(X), strict=True))
    first = np.mean([ranker.decision_function(X)[X[:, 1] == v].mean() for v in (0.0, 1.0)])
    of_second = ranker.decision_function(X)[X[:, 1] == 1.0].mean()
    parts = ranker.contributions(np.array([[1.0, 1.0]]))[0]
    assert parts == pytest.approx([scores[1.0, 1.0] - of_second, of_second - first])


@boosters
def test_sampling_all_rows_is_no_sampling_and_seeds_tell(
    make: Callable[..., Any] | type[Any],
) -> None:
    X, y = make_table()
    plain = make(n_rounds=5).fit(X, y).decision_function(X)
    assert (make(n_rounds=5, random_state=7).fit(X, y).decision_function(X) == plain).all()
    one, two, same = (
        make(n_rounds=5, random_state=seed, **SAMPLED).fit(X, y).decision_function(X)
        for seed in (1, 2, 1)
    )
    assert (one == same).all()
    assert (one != two).any()


@boosters
def test_early_stopping_keeps_the_best_rounds(make: Callable[..., Any] | type[Any]) -> None:
    X, y = make_table(1500)
    y ^= np.random.default_rng(0).random(len(y)) < 0.2
    ranker = make(n_rounds=400, learning_rate=0.5, early_stopping_rounds=10).fit(X, y)
    assert ranker.stop_reason_ == "validation"
    assert len(ranker.rounds_) == np.nanargmax(ranker.validation_auc_) + 1 < 400


def test_rules_are_sentences(sentences: Sentences) -> None:
    X = np.array([[1.0], [2.0], [np.nan], [4.0]] * 6)
    ranker = RankBoost(n_rounds=1, weak_ranker="tree", min_samples_leaf=0.0, smoothing=1.0)
    leaves = ranker.fit(X, [0, 0, 1, 1] * 6).structure()["trees"][0]["leaves"]
    added = 0.05 * np.log((1 + 1 / 12) / (1 / 12))
    for leaf in leaves:
        sentences(leaf["rule"])
    assert [leaf["adds"] for leaf in leaves] == pytest.approx([added, -added])


def test_the_questions_about_a_feature_become_one(sentences: Sentences) -> None:
    def describe(splits: Any) -> Any:
        return describe_leaves(splits, np.empty(0, np.uint64), "ab".__getitem__, (None, None))

    splits = np.array(
        [
            (0, 0, 1.0, -1, False, True),
            (0, 0, 3.0, -1, True, True),
            (2, 1, -np.inf, -1, False, True),
        ],
        dtype=SPLITS,
    )
    for rule in describe(splits):
        sentences(rule)
    splits["missing_above"][0] = True
    splits["speaks_of_missing"][1:] = False
    assert describe(splits)[:2] == ["a > 3", "a <= 1"]
    splits["speaks_of_missing"][1:] = True
    for rule in describe(splits)[:2]:
        sentences(rule)


@boosters
@pytest.mark.parametrize("max_bins", [255, 2000])
def test_trees_of_a_thousand_leaves_score_as_they_were_trained(
    make: Callable[..., Any] | type[Any], max_bins: int
) -> None:
    X, y = make_table(n=6000)
    X[:, 4] = np.floor(8 * np.nan_to_num(X[:, 4], nan=0.0)) + 40  # many categories
    names = [f"{k:03d}" for k in range(100)]
    table = CodedTable(X, tuple("abcde"), (None, None, None, None, tuple(names)))
    shape = {"max_leaves": 1024, "max_depth": 64, "min_samples_leaf": 0.01, "max_bins": max_bins}
    ranker = make(n_rounds=3, **shape, learning_rate=1.0).fit(table, y)
    n_leaves = ranker.rounds_["n_leaves"]
    assert 400 < n_leaves.max() <= 1024
    many = ranker.decision_function(table)  # as in training, a block at a time
    rows = ranker.checked_rows(table)
    few = np.concatenate([ranker.score_rows(rows[k : k + 1]) for k in range(0, 6000, 97)]).tolist()
    assert many[::97].tolist() == few
    *_, last = ranker.staged_decision_function(table)
    np.testing.assert_allclose(last, many, rtol=0, atol=1e-9)
    weight = ranker.get_state()[0]["leaf_weight"][: n_leaves[0]]
    assert weight.sum() == 6000  # each row is in one leaf of the first tree
    again = load(save(ranker))
    assert (again.decision_function(table) == many).all()


def test_extreme_separation_stays_finite() -> None:
    X = np.arange(40.0)[:, None]
    for make in BOOSTERS.values():
        for smoothing in (0.0, 1.0):
            ranker = make(n_rounds=100, smoothing=smoothing, learning_rate=1.0).fit(X, X[:, 0] > 19)
            assert np.isfinite(ranker.decision_function(X)).all()
            load(save(ranker))
