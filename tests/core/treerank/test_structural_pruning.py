"""Structural AUC maximisation: the printed penalties, and the choice against every subtree."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from core.errors import InvalidParameter
from core.treerank import TreeRank, pruning
from core.treerank.pruning import critical_penalties, trace_path
from core.treerank.tree import RankingTree
from tests.raising import raises

FOUR = np.array([4])


def test_the_printed_penalty_is_vacuous() -> None:
    half = pruning.penalty_of_cuts(FOUR, 1e6, 0.5, n_features=30, n_cuts=7)
    rare = pruning.penalty_of_cuts(FOUR, 1e6, 0.01, n_features=30, n_cuts=7)
    assert half[0] == pytest.approx(0.705, abs=5e-4)
    assert rare[0] == pytest.approx(17.8, abs=0.05)


def test_the_penalty_of_cubes_by_hand() -> None:
    # log(4 · 4^8) + 4 over 200, times 4.
    expected = 4 * np.sqrt((np.log(4.0**9) + 4) / 200)
    assert pruning.penalty_of_cubes(FOUR, 100.0, 0.5, n_cubes=8)[0] == pytest.approx(expected)


def test_the_penalty_of_hyperplanes_by_hand() -> None:
    expected = 4 * np.sqrt(32 * (np.log(16) + 2 * 4 * 3 * np.log(101) + 4) / 100)
    found = pruning.penalty_of_hyperplanes(FOUR, 100.0, 0.5, n_columns=2)
    assert found[0] == pytest.approx(expected)


def random_tree(n_inside: int, seed: int) -> RankingTree:
    """A tree in preorder with masses alone: rules are never asked."""
    rng = np.random.default_rng(seed)
    shape = [False]
    for _ in range(n_inside):
        k = rng.choice(np.flatnonzero(~np.array(shape)))
        shape[k : k + 1] = [True, False, False]
    inside = np.array(shape)
    share = np.sort(rng.random(n_inside + 1))[::-1]  # so that every split gains
    mass = rng.random(n_inside + 1) + 0.1
    return RankingTree(~inside, mass * share, mass * (1 - share), rules=None)


def all_subtrees(tree: RankingTree) -> Iterator[tuple[float, int]]:
    """The AUC and the leaves of every subtree with the same root."""
    inside = np.flatnonzero(tree.rule >= 0)
    for flags in product([False, True], repeat=len(inside)):
        kept = np.zeros(tree.n_nodes, dtype=bool)
        kept[inside] = flags
        parents = tree.parent[inside[kept[inside]]]
        if kept[parents[parents >= 0]].all():
            yield 0.5 + 0.5 * tree.gain[kept].sum(), int(kept.sum()) + 1


@pytest.mark.parametrize("seed", range(8))
def test_no_subtree_at_all_is_better(seed: int) -> None:
    tree = random_tree(8, seed)
    path = trace_path(tree, critical_penalties(tree))
    subtrees = list(all_subtrees(tree))
    penalties = (
        lambda K: pruning.penalty_of_cuts(K, 100.0, 0.5, 3, 2),
        lambda K: pruning.penalty_of_cubes(K, 1000.0, 0.5, 20),
    )
    for penalty in penalties:
        seen = set()
        for scale in np.r_[0.0, np.logspace(-4, 0.5, 30)]:
            chosen = pruning.choose_subtree(path, penalty(path.n_leaves), scale)
            value = path.auc[chosen] - scale * penalty(path.n_leaves[chosen])
            best = max(auc - scale * penalty(np.array(K)) for auc, K in subtrees)
            assert value == pytest.approx(best, abs=1e-12)
            seen.add(int(path.n_leaves[chosen]))
        assert {1, 9} <= seen  # from the whole tree to its root


def table(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] + rng.normal(size=n) > 0


@pytest.mark.parametrize("splitter", pruning.PENALISED)
def test_the_scale_goes_from_the_whole_tree_to_none(splitter: str) -> None:
    X, y = table(300)
    leaves = [
        TreeRank(splitter=splitter, max_depth=4, pruning="structural", penalty_scale=scale)
        .fit(X, y)
        .tree_.n_leaves
        for scale in (0.0, pruning.SCALE, 1.0)
    ]
    whole = TreeRank(splitter=splitter, max_depth=4).fit(X, y).tree_.n_leaves
    assert whole == leaves[0] >= leaves[1] >= 2
    assert leaves[2] == 1


@pytest.mark.parametrize(
    ("splitter", "shown"),
    [("random_forest", "'random_forest'"), (DecisionTreeClassifier(), "DecisionTreeClassifier")],
)
def test_what_has_no_penalty_is_refused(splitter: Any, shown: str) -> None:
    X, y = table(50)
    with raises(InvalidParameter, shown):
        TreeRank(splitter=splitter, pruning="structural").fit(X, y)
