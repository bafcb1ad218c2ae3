"""Importance of features in ranking trees, against gains counted on the rows themselves."""

import numpy as np
import pytest

from core import load, save
from core.metrics import auc
from core.treerank import TreeRank, TreeRankForest
from core.treerank.cuts import sum_gains
from tests.core.treerank.treerank_oracle import Rows, cuts_of, goes_top, make_rows, masses
from tests.sentences import Sentences


def table(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X[:, 1] + 0.5 * X[:, 3] * (X[:, 1] > 0) + 0.5 * rng.normal(size=n) > 0
    return X, y, rng.integers(1, 4, n).astype(float)


def gains_by_hand(
    ranker: TreeRank, X: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Walk the rows down an axis tree; count each split's ΔAUC on the whole sample, twice over."""
    tree = ranker.tree_
    cells = {0: np.ones(len(y), dtype=bool)}
    squared, linear = np.zeros((2, X.shape[1]))
    score = np.zeros(len(y))
    for node in np.flatnonzero(tree.rule >= 0).tolist():
        rule = int(tree.rule[node])
        top = np.zeros(len(y), dtype=bool)
        rows = np.flatnonzero(cells[node])
        top[rows] = goes_top(tree.rules, rule, X[rows])
        cells[tree.top[node]], cells[tree.bottom[node]] = top, cells[node] & ~top
        before = auc(y, score, weight)
        score = score * 2.0
        score[top] += 1.0  # the cell's own rows alone are told apart
        delta = auc(y, score, weight) - before
        feature = int(tree.rules.feature[tree.rules.start[rule]])
        squared[feature] += delta**2
        linear[feature] += delta
    return squared, linear


def test_each_cut_adds_what_it_adds_to_the_auc() -> None:
    X, y, weight = table()
    ranker = TreeRank(splitter="axis", max_depth=4).fit(X, y, weight)
    squared, linear = gains_by_hand(ranker, X, y, weight)
    assert ranker.feature_importances_ == pytest.approx(squared, abs=1e-12)
    assert ranker.auc_gains_ == pytest.approx(linear, abs=1e-12)
    assert ranker.auc_gains_.sum() == pytest.approx(ranker.tree_.auc - 0.5)


def test_by_hand() -> None:
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10, dtype=float)
    y = np.array([0, 0, 0, 1] * 10)
    ranker = TreeRank(splitter="axis", max_depth=2, min_samples_leaf=1).fit(X, y)
    # x0 > 0: β = 1, α = ⅓, ΔAUC = ⅓. Of its rows x1 > 0: α(C) = ⅓, so ΔAUC = ⅓ · 1 / 2.
    assert ranker.feature_importances_ == pytest.approx([1 / 9, 1 / 36])
    assert ranker.auc_gains_ == pytest.approx([1 / 3, 1 / 6])


def test_leafrank_counts_the_cuts_in_its_nodes() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((800, 3))
    X[:, 1] = 7.0
    y = ((X[:, 0] > 0.5) ^ (X[:, 2] > 0.5)) ^ (rng.random(800) < 0.05)
    ranker = TreeRank(max_depth=1, leafrank_depth=2).fit(X, y)
    gains = ranker.auc_gains_
    assert min(gains[0], gains[2]) > 0
    assert gains[1] == ranker.feature_importances_[1] == 0
    rules = ranker.tree_.rules
    cuts = np.flatnonzero(rules.feature >= 0)
    p, n = rules.positive, rules.negative
    total = np.abs(n[cuts] * p[cuts + 1] - p[cuts] * n[cuts + 1]).sum() / 2
    assert gains.sum() == pytest.approx(total / y.sum() / (~y).sum())


def cuts_by_hand(rows: Rows, depth: int, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Grow one node's cut tree by brute force: what each feature's cuts gain, Σ ΔAUC and Σ ΔAUC²."""
    total_p, total_n = masses(rows, np.ones(len(rows.positive), bool))
    linear, squared = np.zeros((2, rows.X.shape[1]))
    cells = [np.ones(len(rows.positive), bool)]
    for _ in range(depth):
        children = []
        for cell in cells:
            p, n = masses(rows, cell)
            if min(p, n) == 0.0 or p + n < 2 * least:
                continue
            best, feature, mask = -1.0, -1, cell
            for j in range(rows.X.shape[1]):
                for above in cuts_of(rows.X[:, j], 0, rows.weight * cell, least):
                    top_p, top_n = masses(rows, cell & above)
                    gain = abs(top_p * n - top_n * p)
                    enough = min(top_p + top_n, p + n - top_p - top_n) >= least
                    if enough and gain > best + 1e-12 * p * n:
                        best, feature, mask = gain, j, above
            if feature >= 0:
                linear[feature] += best / (2 * total_p * total_n)
                squared[feature] += (best / (2 * total_p * total_n)) ** 2
                children += [cell & mask, cell & ~mask]
        cells = children
    return linear, squared


@pytest.mark.parametrize("seed", range(4))
def test_every_cut_of_a_node_counts_also_one_whose_leaves_go_the_same_way(seed: int) -> None:
    rows = make_rows(80, seed=seed)
    ranker = TreeRank(max_depth=1, leafrank_depth=3, min_samples_leaf=3.0)
    ranker.fit(rows.X, rows.positive, rows.weight)
    linear, squared = cuts_by_hand(rows, 3, 3.0)
    assert ranker.tree_.rules.n_leaves[0] < 7  # cuts that decide nothing are no part of the rule
    assert ranker.auc_gains_ == pytest.approx(linear, abs=1e-12)
    assert ranker.feature_importances_ == pytest.approx(squared, abs=1e-12)
    again = load(save(ranker))
    assert again.auc_gains_.tolist() == ranker.auc_gains_.tolist()


@pytest.mark.parametrize("splitter", ["grid", "logistic"])
def test_splits_that_are_no_cuts_have_none(splitter: str, sentences: Sentences) -> None:
    X, y, _ = table(200)
    ranker = TreeRank(splitter=splitter, max_depth=2).fit(X, y)
    assert not hasattr(ranker, "feature_importances_")
    with sentences.raises(AttributeError):
        _ = ranker.auc_gains_


def test_a_forest_has_the_mean_of_its_trees() -> None:
    X, y, weight = table()
    forest = TreeRankForest(n_trees=5).fit(X, y, weight)
    each = [sum_gains([tree], 4) for tree in forest.trees_]
    assert forest.feature_importances_ == pytest.approx(np.mean([one.squared for one in each], 0))
    assert forest.auc_gains_ == pytest.approx(np.mean([one.linear for one in each], 0))
    assert np.argsort(-forest.feature_importances_)[0] == 1
