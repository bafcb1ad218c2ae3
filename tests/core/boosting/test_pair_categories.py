"""Categories with listed pairs: the chosen set, its gain, and agreement with two classes."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import CoordinateRankBoost, RankBoost, SmoothMarginRank, load, save
from tests.core.oracles import pairs_of_classes

ALL = pytest.mark.parametrize("algorithm", [RankBoost, CoordinateRankBoost, SmoothMarginRank])


def table(
    n: int = 200, n_categories: int = 8, missing: float = 0.0, seed: int = 0
) -> tuple[pd.DataFrame, np.ndarray]:
    """A number, a category with a worth, and a category that tells nothing."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, n_categories, n)
    noise = rng.integers(0, 5, n)
    x = rng.normal(size=n)
    worth = rng.normal(size=n_categories)[place] + 0.5 * x
    names = np.array([f"c{k}" for k in range(max(n_categories, 5))])
    absent = rng.random((2, n)) < missing
    columns = {
        "x": x,
        "place": pd.Series(names[place]).mask(absent[0]),
        "noise": pd.Series(names[noise]).mask(absent[1]),
    }
    return pd.DataFrame(columns), worth


def pairs_by(worth: np.ndarray, n_pairs: int, seed: int = 1, noise: float = 1.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, len(worth), (n_pairs, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    seen = worth[ends] + noise * rng.normal(size=ends.shape)
    return np.where((seen[:, 0] > seen[:, 1])[:, None], ends, ends[:, ::-1])


@ALL
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("max_bins", [5, 255])
def test_all_pairs_of_two_classes_are_the_bipartite_way(
    algorithm: type[Any], missing: float, max_bins: int
) -> None:
    X, worth = table(missing=missing)
    y = (worth + 0.7 * np.random.default_rng(2).normal(size=len(X)) > 0).astype(int)
    listed = algorithm(n_rounds=25, max_bins=max_bins).fit_pairs(X, pairs_of_classes(y))
    bipartite = algorithm(n_rounds=25, max_bins=max_bins).fit(X, y)
    assert 1 in listed.rounds_["feature"]
    assert (listed.rounds_["feature"] == bipartite.rounds_["feature"]).all()
    for field in ("alpha", "d_plus", "d_minus"):
        assert listed.rounds_[field] == pytest.approx(bipartite.rounds_[field], rel=1e-6)
    difference = bipartite.decision_function(X) - listed.decision_function(X)
    assert difference == pytest.approx(np.full(len(X), bipartite.intercept_))


@ALL
def test_what_a_round_says_of_itself_is_what_the_pairs_say(algorithm: type[Any]) -> None:
    X, worth = table(missing=0.1)
    pairs = pairs_by(worth, 1500)
    weight = np.random.default_rng(3).integers(1, 4, len(pairs)).astype(float)
    ranker = algorithm(n_rounds=12).fit_pairs(X, pairs, weight)
    scores = np.zeros(len(X))
    for taken, after in zip(ranker.rounds_, ranker.staged_decision_function(X), strict=True):
        d = weight * np.exp(scores[pairs[:, 1]] - scores[pairs[:, 0]])
        d /= d.sum()
        h = (after - scores)[pairs]
        rises = h[:, 0] - h[:, 1]
        assert d[rises > 1e-9].sum() == pytest.approx(taken["d_plus"])
        assert d[rises < -1e-9].sum() == pytest.approx(taken["d_minus"], abs=1e-12)
        scores = after
    assert {1, 0} == set(ranker.rounds_["feature"].tolist())  # not the one that tells nothing
    again = load(save(ranker))
    assert (again.decision_function(X) == ranker.decision_function(X)).all()


def test_a_believed_category_is_cut_where_its_slope_is_greatest() -> None:
    """Compare with the best of all 2^K sets of categories, with enough pairs that shares are exact."""
    X, worth = table(n=3000, n_categories=6)
    X = X[["place"]]
    pairs = pairs_by(worth, 30_000)
    ranker = CoordinateRankBoost(n_rounds=1, smoothing=0.0).fit_pairs(X, pairs)
    codes = X["place"].astype("category").cat.codes.to_numpy()[pairs]
    edges = []
    for subset in range(2**6):
        inside = (subset >> codes) & 1
        edges.append(abs((inside[:, 0] - inside[:, 1]).mean()))
    taken = ranker.rounds_[0]
    assert taken["d_plus"] - taken["d_minus"] == pytest.approx(max(edges), abs=1e-12)


@ALL
def test_an_identifier_is_never_chosen(algorithm: type[Any]) -> None:
    X, worth = table(n=120)
    X["id"] = [f"item {i}" for i in range(len(X))]
    ranker = algorithm(n_rounds=15).fit_pairs(X, pairs_by(worth, 800))
    assert 3 not in ranker.rounds_["feature"]


@pytest.mark.parametrize("leaf", ["closed", "newton"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("max_bins", [5, 255])
def test_trees_on_all_pairs_of_two_classes_are_the_bipartite_way(
    leaf: str, missing: float, max_bins: int
) -> None:
    X, worth = table(missing=missing)
    y = (worth + 0.7 * np.random.default_rng(2).normal(size=len(X)) > 0).astype(int)
    given = {"n_rounds": 25, "weak_ranker": "tree", "leaf": leaf, "max_bins": max_bins}
    listed = RankBoost(**given).fit_pairs(X, pairs_of_classes(y))
    bipartite = RankBoost(**given).fit(X, y)
    assert listed.loss_ == pytest.approx(bipartite.loss_)
    difference = bipartite.decision_function(X) - listed.decision_function(X)
    assert difference == pytest.approx(np.full(len(X), bipartite.intercept_))
    assert (load(save(listed)).decision_function(X) == listed.decision_function(X)).all()


@pytest.mark.parametrize("leaf", ["closed", "newton"])
def test_trees_lower_the_loss_of_listed_pairs_by_categories(leaf: str) -> None:
    X, worth = table(missing=0.1)
    pairs = pairs_by(worth, 1500)
    ranker = RankBoost(n_rounds=40, weak_ranker="tree", leaf=leaf).fit_pairs(X, pairs)
    losses = np.concatenate([[len(pairs)], ranker.loss_])
    assert (np.diff(losses) < 0).all()
    f = ranker.decision_function(X)[pairs]
    assert np.exp(f[:, 1] - f[:, 0]).sum() == pytest.approx(losses[-1])
    assert " in {" in str(ranker.structure())
