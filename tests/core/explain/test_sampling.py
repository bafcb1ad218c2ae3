"""Shapley values against reference rows: all sets beside the definition, samples beside all sets and their errors."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from core import (
    AUCSVM,
    AdaBoostMH,
    AUCBoost,
    Logistic,
    LogitBoost,
    MartiRank,
    RankAverage,
    RankBoost,
    TreeRank,
    TreeRankForest,
)
from core.base.mixed import MixedRows
from core.base.table import CodedTable
from core.errors import InvalidData, InvalidParameter
from core.explain import mean_reference, shapley_estimate
from core.treerank import forest, treerank
from tests.core.threads import on_one_thread_and_on_all
from tests.long_form import LONG_FORM, one_in
from tests.raising import raises
from tests.sentences import Sentences

MEMBERS = [
    Logistic(),
    RankBoost(weak_ranker="tree", n_rounds=5),
    LogitBoost(n_rounds=5),
    TreeRank(min_samples_leaf=5),
]
ENSEMBLE = RankAverage(members=MEMBERS, weights=[1, 2, 1, 1])
OTHERS = [
    ENSEMBLE,
    MartiRank(),
    TreeRank(min_samples_leaf=5),
    TreeRank(splitter="logistic", min_samples_leaf=10),
    TreeRankForest(n_trees=3),
    AUCSVM(feature_map="fourier", n_components=5),
    AUCBoost(weak_ranker="logistic", n_rounds=2),
]


def rows(n: int, d: int, *, missing: float = 0.0, seed: int = 0) -> tuple[Any, Any]:
    """Return numbers with ties and a constant column, and labels that depend on features alone and in threes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)
    y = X[:, 0] * X[:, 1] * X[:, 2] + X[:, 0] + 0.5 * X[:, d - 2] + 0.3 * rng.normal(size=n) > 0
    X[:, d - 1] = 7.0
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def by_orders(ranker: Any, X: Any, references: Any, weight: Any) -> Any:
    """Return the values by their definition: the mean gain over all orders in which features become known."""
    n, d = X.shape
    values = np.zeros((n, d))
    for order in itertools.permutations(range(d)):
        at = np.repeat(references[np.newaxis], n, axis=0)
        before = np.stack([ranker.decision_function(each) for each in at]) @ weight
        for j in order:
            at[:, :, j] = X[:, np.newaxis, j]
            after = np.stack([ranker.decision_function(each) for each in at]) @ weight
            values[:, j] += (after - before) / math.factorial(d)
            before = after
    return values


def by_sets(ranker: Any, x: Any, references: Any) -> Any:
    """Return the values of a row by all sets of its features."""
    d = len(x)
    sets = np.array(list(itertools.product((False, True), repeat=d)))
    scored = [ranker.decision_function(np.where(sets, x, z)) for z in references]
    game = dict(zip(map(tuple, sets.tolist()), np.mean(scored, axis=0), strict=True))
    values = np.zeros(d)
    for known, of_known in game.items():
        for j in np.flatnonzero(~np.array(known)):
            share = 1.0 / (d * math.comb(d - 1, sum(known)))
            values[j] += share * (game[(*known[:j], True, *known[j + 1 :])] - of_known)
    return values


@pytest.mark.parametrize("ranker", OTHERS, ids=repr)
def test_few_features_have_the_values_of_the_definition(ranker: Any) -> None:
    X, y = rows(150, 4)
    ranker.fit(X, y)
    weight = np.array([0.5, 0.2, 0.3])
    found = shapley_estimate(ranker, X[:4], X[10:13], 3 * weight)
    np.testing.assert_allclose(found.values, by_orders(ranker, X[:4], X[10:13], weight), atol=1e-9)
    assert found.exact.all()
    assert not found.errors.any()
    assert not found.values[:, 3].any()  # a column that never changes


def test_missing_values_and_categories_are_values_like_others() -> None:
    X, y = rows(150, 4, missing=0.3)
    X[:, 3] = np.arange(150) % 3
    categories = (None, None, None, ("a", "b", "c"))
    names = ("p", "q", "r", "s")
    ranker = RankAverage(
        members=[RankBoost(weak_ranker="tree", n_rounds=5), LogitBoost(n_rounds=5)]
    )
    ranker.fit(CodedTable(X, names, categories), y ^ (X[:, 3] == 1))
    some, references = X[:5], X[20:24]
    assert np.isnan(some).any()
    assert np.isnan(references).any()

    class Numbers:
        decision_function = staticmethod(ranker.score_rows)

    tables = (CodedTable(each, names, categories) for each in (some, references))
    found = shapley_estimate(ranker, *tables)
    expected = by_orders(Numbers, some, references, np.full(4, 0.25))
    np.testing.assert_allclose(found.values, expected, atol=1e-12)


def test_a_sum_has_the_values_that_its_parts_have() -> None:
    """Two ways: its parts less those of the average row, and what any score gains; pairs of orders are exact."""
    X, y = rows(200, 12, missing=0.1)
    ranker = RankBoost(n_rounds=20).fit(X, y)
    found = shapley_estimate(ranker, X[:5], X[100:120])
    parts = ranker.shapley_values(X[:5]) - mean_reference(ranker, X[100:120]).parts
    np.testing.assert_allclose(found.values, parts, atol=1e-12)
    np.testing.assert_allclose(found.errors, 0.0, atol=1e-12)
    assert not found.exact.any()


@pytest.mark.parametrize(
    "ranker",
    [
        TreeRank(min_samples_leaf=5),
        TreeRank(splitter="axis", order="concave"),
        TreeRankForest(n_trees=3),
    ],
    ids=repr,
)
def test_ranking_trees_are_exact_with_many_features(
    ranker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the paths of two rows through the trees, and by all sets; where that takes too long, by samples."""
    X, y = rows(300, 9, missing=0.1)
    X[:, 8] = np.arange(300) * 3 % 70
    names, categories = tuple("abcdefghi"), (*(None,) * 8, tuple(f"c{k:02d}" for k in range(70)))
    ranker.fit(CodedTable(X, names, categories), y ^ (X[:, 8] % 7 > 4))
    some, references = X[:6], X[100:110]
    tables = [CodedTable(each, names, categories) for each in (some, references)]
    found = shapley_estimate(ranker, *tables)
    assert found.exact.all()
    assert not found.errors.any()

    class Numbers:
        decision_function = staticmethod(ranker.score_rows)

    expected = np.stack([by_sets(Numbers, x, references) for x in some])
    np.testing.assert_allclose(found.values, expected, atol=1e-9)
    assert np.count_nonzero(np.abs(expected) > 1e-3) > 20
    most = ranker.count_visited(len(references))
    for module in (treerank, forest):
        monkeypatch.setattr(module, "MAX_VISITED", most)
    assert shapley_estimate(ranker, *tables).exact.all()
    for module in (treerank, forest):
        monkeypatch.setattr(module, "MAX_VISITED", 3)
    assert ranker.count_visited(len(references)) == 3
    sampled = shapley_estimate(ranker, *tables)
    assert not sampled.exact.any()
    np.testing.assert_allclose(sampled.values.sum(axis=1), found.values.sum(axis=1), atol=1e-9)


def test_samples_are_as_near_as_their_errors_say() -> None:
    X, y = rows(400, 10)
    X[:, 9] = np.arange(400) % 11
    ranker = ENSEMBLE.fit(X, y)
    references = X[100:164]
    found = shapley_estimate(ranker, X[:6], references)
    assert not found.exact.any()
    expected = np.stack([by_sets(ranker, x, references) for x in X[:6]])
    drawn = found.errors > 1e-9
    assert drawn.mean() > 0.5
    np.testing.assert_allclose(found.values[~drawn], expected[~drawn], atol=1e-9)
    off = np.abs(found.values - expected)[drawn] / found.errors[drawn]
    assert 0.85 < (off < 2.0).mean() <= 1.0
    assert off.max() < 6.0
    assert 0.5 < np.sqrt((off**2).mean()) < 1.5
    sums = ranker.decision_function(X[:6]) - ranker.decision_function(references).mean()
    np.testing.assert_allclose(found.values.sum(axis=1), sums, atol=1e-12)


@pytest.mark.parametrize(
    "ranker",
    [
        RankBoost(weak_ranker="tree", n_rounds=20),
        LogitBoost(n_rounds=20, min_samples_leaf=1, max_leaves=80),
        LogitBoost(n_rounds=5, crosses=2),
        RankAverage(members=[LogitBoost(n_rounds=5), Logistic()]),
    ],
    ids=repr,
)
def test_mixed_rows_have_the_scores_of_their_table(ranker: Any) -> None:
    """Along orders of the features each tree is walked once for a pair of rows, and not once for each mixed row."""
    X, y = rows(400, 9, missing=0.1)
    X[:, 6] = np.arange(400) % 3
    X[:, 8] = np.arange(400) * 3 % 70
    names = tuple("abcdefghi")
    some = tuple(f"c{k:02d}" for k in range(70))
    categories = (*(None,) * 6, ("p", "q", "r"), None, some)
    ranker.fit(CodedTable(X, names, categories), y ^ (X[:, 8] % 7 > 4) ^ (X[:, 6] == 1))
    rng = np.random.default_rng(0)
    row, reference = np.divmod(np.arange(600), 30)
    differs = ~((X[row] == X[200 + reference]) | np.isnan(X[row]) & np.isnan(X[200 + reference]))
    order = np.lexsort((rng.random((600, 2, 9)), np.repeat(~differs[:, np.newaxis], 2, axis=1)))
    size = differs.sum(axis=1)
    assert len(set(size)) > 3
    mixed = MixedRows(X[:20], np.ascontiguousarray(X[200:230]), row, reference, order, size)
    expected = ranker.score_rows(mixed.table)
    assert len(np.unique(expected)) > 500
    np.testing.assert_allclose(ranker.score_mixed(mixed), expected, atol=1e-12)
    known = mixed.table[:: 4 * (size[0] - 1)][:1]  # the first in the first order of the first pair
    first = order[0, 0, 0]
    np.testing.assert_equal(known[0], np.where(np.arange(9) == first, X[0], X[200]))


@pytest.mark.parametrize("ranker", OTHERS, ids=repr)
def test_a_row_has_the_same_values_beside_any_rows_and_with_any_threads(ranker: Any) -> None:
    X, y = rows(300, 14)
    ranker.fit(X, y)
    references = X[100:110]
    for together in on_one_thread_and_on_all(lambda: shapley_estimate(ranker, X[:7], references)):
        for i in (0, 6):
            alone = shapley_estimate(ranker, X[i : i + 1], references)
            assert alone.values.tobytes() == together.values[i].tobytes()
            assert alone.errors.tobytes() == together.errors[i].tobytes()
    zero = X[:1].copy()
    zero[0, 3] = 0.0
    found = [
        shapley_estimate(ranker, each, references).values.tolist() for each in (zero, zero * 1)
    ]
    zero[0, 3] = -0.0
    assert shapley_estimate(ranker, zero, references).values.tolist() == found[0] == found[1]


@pytest.mark.parametrize("weight", one_in(2, [None, [8.0, 1.0, 1.0, 1.0]]))
def test_two_errors_hold_the_large_parts_of_few_reference_rows(weight: Any) -> None:
    """A variance of four pairs has four degrees of freedom: two plain standard errors would hold 80 %."""
    X, y = rows(400, 10, seed=3)
    X, n = X[:, :9], 40 if LONG_FORM else 20
    ranker = LogitBoost(max_leaves=16, n_rounds=8).fit(X, y)
    found = shapley_estimate(ranker, X[:n], X[-4:], weight)
    share = np.full(4, 0.25) if weight is None else np.array(weight) / np.sum(weight)
    held = []
    for i in range(n):
        own = [by_sets(ranker, X[i], X[len(X) - 4 + k : len(X) - 3 + k]) for k in range(4)]
        expected = share @ np.array(own)
        large = np.argsort(-np.abs(expected))[:3]
        off = np.abs(found.values[i] - expected)[large]
        held += (off <= 2.0 * found.errors[i, large] + 1e-12).tolist()
    assert np.mean(held) > 0.9
    assert not found.exact.any()


def test_what_cannot_be_divided(sentences: Sentences) -> None:
    X, y = rows(100, 4)
    ranker = Logistic().fit(X, y)
    for none in ((X[:1], X[:0]), (X[:0], X[:1])):
        with raises(InvalidData, (0, 4)):
            shapley_estimate(ranker, *none)
    for weight in ([1.0], [1.0, -1.0], [1.0, np.nan]):
        with raises(InvalidData, "weight"):
            shapley_estimate(ranker, X[:1], X[:2], weight)
    with pytest.raises(InvalidData):
        shapley_estimate(ranker, X[:1, :3], X[:2])
    several = AdaBoostMH(n_rounds=2).fit(X, np.column_stack([y, ~y]))
    with sentences.raises(InvalidParameter):
        shapley_estimate(several, X[:1], X[:2])
