"""Trees on listed pairs: against explicit pairs, and against the trees of two classes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import RankBoost, load, save
from core.metrics import pair_order
from tests.core.boosting.test_fit_pairs import random_pairs, small_lists
from tests.core.oracles import TreeOracle, pairs_of_classes
from tests.long_form import LONG_FORM


def loss_of(scores: np.ndarray, pairs: np.ndarray, weight: np.ndarray) -> float:
    return (weight * np.exp(scores[pairs[:, 1]] - scores[pairs[:, 0]])).sum()


def roles(scores: np.ndarray, pairs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return for each item the weight of its pairs as the better one and as the worse one."""
    terms = weight * np.exp(scores[pairs[:, 1]] - scores[pairs[:, 0]])
    mass = np.zeros((len(scores), 2))
    for (better, worse), term in zip(pairs, terms / terms.sum(), strict=True):
        mass[better, 0] += term
        mass[worse, 1] += term
    return mass


def unit_of(mass: np.ndarray) -> float:
    """Mean mass of a row, of each role."""
    return 0.5 * (mass**2).sum()


def tree_of(ranker: RankBoost, t: int, X: np.ndarray) -> np.ndarray:
    """Return the part of tree t in each item's score."""
    stages = [np.full(len(X), 0.0), *ranker.staged_decision_function(X)]
    return stages[t + 1] - stages[t]


@pytest.mark.parametrize("leaf", ["closed", "newton"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("smoothing", [0.0, 2.0])
def test_every_tree_is_the_one_that_the_pairs_ask_for(
    leaf: str, missing: float, smoothing: float
) -> None:
    for seed in range(3 if LONG_FORM else 1):
        X, pairs, weight = random_pairs(seed, n=24, d=3, n_pairs=150, missing=missing)
        present = weight > 0
        occurs = np.unique(pairs[present])
        ranker = RankBoost(
            n_rounds=4,
            weak_ranker="tree",
            leaf=leaf,
            max_depth=3,
            max_leaves=5,
            min_samples_leaf=1.0,
            smoothing=smoothing,
            learning_rate=0.3,
        ).fit_pairs(X, pairs, weight)
        scores = np.zeros(len(X))
        for t in range(len(ranker.rounds_)):
            mass = roles(scores, pairs, weight)
            unit = unit_of(mass)
            added = tree_of(ranker, t, X)
            oracle = TreeOracle(
                X[occurs], mass[occurs], leaf, smoothing=smoothing * unit, least=unit
            )
            leaves = [occurs[rows] for rows in oracle.grow(max_depth=3, max_leaves=5)]
            assert len(leaves) == ranker.rounds_["n_leaves"][t]
            for rows in leaves:
                b, w = mass[rows].sum(axis=0)
                s = max(smoothing * unit, 2.0**-52 if leaf == "closed" else 0.0)
                best = (
                    0.5 * np.log((b + s) / (w + s)) if leaf == "closed" else (b - w) / (b + w + s)
                )
                assert added[rows] == pytest.approx(np.full(len(rows), 0.3 * best), abs=1e-9)
            scores += added
            assert ranker.loss_[t] == pytest.approx(loss_of(scores, pairs, weight))


@pytest.mark.parametrize("leaf", ["closed", "newton"])
@pytest.mark.parametrize("learning_rate", [1.0, 0.4])
@given(listed=small_lists(), smoothing=st.sampled_from([0.0, 1.0]))
@settings(max_examples=600 if LONG_FORM else 15)
def test_the_loss_never_rises(
    leaf: str,
    learning_rate: float,
    listed: tuple[np.ndarray, np.ndarray, np.ndarray],
    smoothing: float,
) -> None:
    X, pairs, weight = listed
    ranker = RankBoost(
        n_rounds=5,
        weak_ranker="tree",
        leaf=leaf,
        learning_rate=learning_rate,
        smoothing=smoothing,
        min_samples_leaf=0.0,
    ).fit_pairs(X, pairs, weight)
    losses = np.concatenate([[weight.sum()], ranker.loss_])
    assert (np.diff(losses) <= 1e-9 * weight.sum()).all()
    scores = ranker.decision_function(X)
    assert losses[-1] == pytest.approx(loss_of(scores, pairs, weight), rel=1e-6)


@pytest.mark.parametrize("leaf", ["closed", "newton"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("drawn", [{}, {"subsample": 0.5, "max_features": 0.6}])
def test_all_pairs_of_two_classes_are_the_bipartite_way(
    leaf: str, missing: float, drawn: dict[str, Any]
) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 5))
    X[:, 3] = np.round(X[:, 3])
    y = (X[:, 0] - X[:, 1] + rng.normal(size=150) > 0.5).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    given_ = {"n_rounds": 30, "weak_ranker": "tree", "leaf": leaf, **drawn}
    listed = RankBoost(**given_).fit_pairs(X, pairs_of_classes(y))
    bipartite = RankBoost(**given_).fit(X, y)
    assert (listed.rounds_["n_leaves"] == bipartite.rounds_["n_leaves"]).all()
    assert listed.loss_ == pytest.approx(bipartite.loss_)
    difference = bipartite.decision_function(X) - listed.decision_function(X)
    assert difference == pytest.approx(np.full(150, bipartite.intercept_))
    assert listed.intercept_ == 0.0


def test_a_tree_needs_no_more_than_the_items_and_their_masses() -> None:
    X, pairs, weight = random_pairs(7, n=40, n_pairs=600)
    given_ = {"n_rounds": 20, "weak_ranker": "tree"}
    ranker = RankBoost(**given_).fit_pairs(X, pairs, weight)
    order = np.random.default_rng(0).permutation(len(pairs))
    again = RankBoost(**given_).fit_pairs(X, pairs[order], weight[order])
    assert save(again) == save(ranker)
    some = np.concatenate([pairs[:100], pairs])
    halves = np.concatenate([weight[:100] / 2, np.r_[weight[:100] / 2, weight[100:]]])
    assert save(RankBoost(**given_).fit_pairs(X, some, halves)) == save(ranker)
    loaded = load(save(ranker))
    scores = ranker.decision_function(X)
    assert (loaded.decision_function(X) == scores).all()
    assert scores == pytest.approx(ranker.offset_ + ranker.contributions(X).sum(axis=1))
    assert loaded.structure()["trees"]


def test_trees_learn_what_stumps_cannot() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    worth = X[:, 0] * X[:, 1]
    ends = rng.integers(0, 300, (6000, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    pairs = np.where((worth[ends[:, 0]] > worth[ends[:, 1]])[:, None], ends, ends[:, ::-1])
    learnt = ((pairs < 200).all(axis=1), (pairs >= 200).all(axis=1))
    values = {
        kind: pair_order(
            RankBoost(n_rounds=60, weak_ranker=kind)
            .fit_pairs(X, pairs[learnt[0]])
            .decision_function(X),
            pairs[learnt[1]],
        )
        for kind in ("stump", "tree")
    }
    assert values["tree"] > 0.85 > 0.65 > values["stump"]


def test_a_cycle_has_nothing_to_learn() -> None:
    X = np.arange(3.0)[:, None]
    ranker = RankBoost(weak_ranker="tree").fit_pairs(X, [(0, 1), (1, 2), (2, 0)])
    assert ranker.stop_reason_ == "no_edge"
    assert ranker.decision_function(X).tolist() == [0.0, 0.0, 0.0]
