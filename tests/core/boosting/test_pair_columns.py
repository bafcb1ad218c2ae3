"""Given columns on listed pairs, Figure 1's own setting: against explicit pairs, and two classes."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from test_columns import cyclic, greatest_margin  # noqa: F401 - a fixture
from test_fit_pairs import random_pairs, two_classes

from core import CoordinateRankBoost, RankBoost, SmoothMarginRank, load, save
from core.errors import InvalidData

ALL = pytest.mark.parametrize("algorithm", [RankBoost, CoordinateRankBoost, SmoothMarginRank])


def z(alpha, d, differences):
    """The loss after a step, over the loss before it."""
    return (d * np.exp(-alpha * differences)).sum()


def some_pairs(seed, kind):
    X, pairs, weight = random_pairs(seed, n=20, d=4, n_pairs=90, missing=0.1)
    if kind == "binary":
        X = np.where(np.isnan(X), X, X > 0)
    if kind == "mixed":
        X[:, 0] = X[:, 0] > 0
        X[:, 3] = 7.3  # constant: it ranks nothing
    return X, pairs, weight


@pytest.mark.parametrize("algorithm", [RankBoost, CoordinateRankBoost])
@pytest.mark.parametrize("kind", ["binary", "real", "mixed"])
def test_every_round_is_the_one_that_the_pairs_ask_for(algorithm, kind):
    for seed in range(3):
        X, pairs, weight = some_pairs(seed, kind)
        ranker = algorithm(n_rounds=8, weak_ranker="column", smoothing=0.0)
        ranker.fit_pairs(X, pairs, weight)
        h = np.nan_to_num(X)[pairs]
        differences = h[:, 0] - h[:, 1]
        scores = np.zeros(len(pairs))
        for taken, loss in zip(ranker.rounds_, ranker.loss_, strict=True):
            terms = weight * np.exp(-scores)
            d = terms / terms.sum()

            best = [minimize_scalar(z, args=(d, x), bounds=(-20, 20)).fun for x in differences.T]
            slopes = np.abs(d @ differences)
            j, alpha = taken["feature"], taken["alpha"] * taken["sign"]
            if algorithm is RankBoost:
                assert best[j] == pytest.approx(min(best), abs=1e-6)
            else:
                assert slopes[j] == pytest.approx(slopes.max())
            assert z(alpha, d, differences[:, j]) == pytest.approx(best[j], abs=1e-6)
            signed = taken["sign"] * differences[:, j]
            assert taken["d_plus"] == pytest.approx(d[signed > 0].sum())
            assert taken["d_minus"] == pytest.approx(d[signed < 0].sum())
            scores += alpha * differences[:, j]
            assert loss == pytest.approx((weight * np.exp(-scores)).sum())
        f = ranker.decision_function(X)[pairs]
        assert f[:, 0] - f[:, 1] == pytest.approx(scores)


@ALL
@pytest.mark.parametrize("kind", ["binary", "real"])
def test_all_pairs_of_two_classes_are_the_bipartite_way(algorithm, kind):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] - X[:, 1] + rng.normal(size=60) > 0).astype(int)
    if kind == "binary":
        X = (X > 0).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    listed = algorithm(n_rounds=25, weak_ranker="column").fit_pairs(X, two_classes(y))
    bipartite = algorithm(n_rounds=25, weak_ranker="column").fit(X, y)
    assert (listed.rounds_["feature"] == bipartite.rounds_["feature"]).all()
    for field in ("alpha", "d_plus", "d_minus"):
        assert listed.rounds_[field] == pytest.approx(bipartite.rounds_[field], rel=1e-6)
    assert listed.loss_ == pytest.approx(bipartite.loss_)
    difference = bipartite.decision_function(X) - listed.decision_function(X)
    assert difference == pytest.approx(np.full(60, bipartite.intercept_))


def test_smooth_margin_ranking_goes_to_the_greatest_margin(cyclic):  # noqa: F811 - pytest's way
    """Figure 1's matrix M as pairs of their own items: row i is x_better - x_worse of pair i."""
    M, _, _ = cyclic
    better, worse = np.maximum(M, 0.0), np.maximum(-M, 0.0)
    X = np.stack([better, worse], axis=1).reshape(16, 8)
    pairs = np.arange(16).reshape(8, 2)
    rho = greatest_margin(M)
    stalled = RankBoost(n_rounds=3000, weak_ranker="column", smoothing=0.0).fit_pairs(X, pairs)
    climbs = SmoothMarginRank(n_rounds=3000, weak_ranker="column").fit_pairs(X, pairs)
    assert rho == pytest.approx(3 / 8)
    f = stalled.decision_function(X)[pairs]
    assert (f[:, 0] - f[:, 1]).min() / stalled.rounds_["alpha"].sum() < 0.34
    assert climbs.margin_[-1] == pytest.approx(rho, abs=5e-3)
    assert (np.diff(climbs.smooth_margin_[climbs.smooth_margin_ > 0]) >= -1e-12).all()


@ALL
def test_the_ranker_is_one_like_any_other(algorithm):
    X, pairs, weight = some_pairs(5, "mixed")
    ranker = algorithm(n_rounds=15, weak_ranker="column").fit_pairs(X, pairs, weight)
    again = load(save(ranker))
    scores = ranker.decision_function(X)
    assert (again.decision_function(X) == scores).all()
    assert scores == pytest.approx(ranker.offset_ + ranker.contributions(X).sum(axis=1))
    items = np.bincount(pairs[:, 0], weight, len(X)) + np.bincount(pairs[:, 1], weight, len(X))
    assert ranker.offset_ == pytest.approx(np.average(scores, weights=items))
    stopped = algorithm(n_rounds=30, weak_ranker="column", early_stopping_rounds=3)
    with pytest.warns(UserWarning, match="items are too few"):
        assert len(stopped.fit_pairs(X, pairs, weight).validation_auc_) > 0


def test_values_too_great_are_refused_where_a_pair_names_them():
    X = np.array([[1.0], [2.0], [1e200]])
    RankBoost(weak_ranker="column", n_rounds=2).fit_pairs(X, [(1, 0)])
    with pytest.raises(InvalidData, match="values up to 1e\\+100, got 1e\\+200"):
        RankBoost(weak_ranker="column").fit_pairs(X, [(1, 2)])


@pytest.mark.parametrize("fit", ["fit", "fit_pairs"])
def test_a_constant_column_is_no_ranker(fit):
    """The slope of a constant is rounding, not knowledge."""
    X = np.full((9, 2), 5.1)
    X[:, 1] = 1e6 / 3
    learnt = np.arange(9) % 2 if fit == "fit" else np.array([(i, (i + 2) % 9) for i in range(9)])
    ranker = getattr(RankBoost(weak_ranker="column"), fit)(X, learnt)
    assert ranker.stop_reason_ == "no_edge"
