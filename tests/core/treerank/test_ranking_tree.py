"""The arithmetic of ranking trees: places, masses, Λ, curve, scores, pruning."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from core.errors import ArtifactError
from core.metrics import auc
from core.treerank import pruning
from core.treerank.cuts import CutRules
from core.treerank.tree import RankingTree
from tests.sentences import Sentences


def make_tree(shape: str, seed: int = 0, whole: bool = True) -> RankingTree:
    """A tree of a shape in preorder ("i" inside, "l" leaf), each rule a cut of one feature."""
    rng = np.random.default_rng(seed)
    is_leaf = np.array([flag == "l" for flag in shape])
    n_leaves = int(is_leaf.sum())
    n_rules = len(is_leaf) - n_leaves
    draw = rng.integers(0, 9, (2, n_leaves)) if whole else rng.random((2, n_leaves))
    positive, negative = draw + 0.0
    positive[0] += 1.0
    negative[-1] += 1.0
    nodes = 3 * n_rules
    feature = np.tile([0, -1, -1], n_rules)
    cut_masses = np.ones(2 * n_rules)
    rules = CutRules(
        np.zeros(1, np.int64),
        np.full(n_rules, 2),
        feature,
        np.repeat(rng.normal(size=n_rules), 3) * (feature >= 0),
        np.zeros(nodes, bool),
        np.zeros(nodes, bool),
        np.zeros(nodes, np.int64),
        np.tile([False, True, False], n_rules),
        cut_masses,
        cut_masses,
        np.empty(0, np.uint64),
        np.zeros(min(n_rules, 1), np.int64),
        np.zeros(min(n_rules, 1), np.int64),
        np.ones(min(n_rules, 1)),
    )
    return RankingTree(is_leaf, positive, negative, rules)


def random_shape(n_inside: Any, seed: Any) -> Any:
    rng = np.random.default_rng(seed)
    shape = "l"
    for _ in range(n_inside):
        leaves = [k for k, flag in enumerate(shape) if flag == "l"]
        k = rng.choice(leaves)
        shape = shape[:k] + "ill" + shape[k + 1 :]
    return shape


KNOWN = {"rules": CutRules, "n_features": 1, "n_categories": np.zeros(1, np.int64)}

SHAPES = ["l", "ill", "iilll", "ilill", "iillill"] + [random_shape(n, n) for n in (5, 9, 14)]


@pytest.mark.parametrize("shape", SHAPES)
def test_gains_add_up_to_the_area(shape: str) -> None:
    tree = make_tree(shape)
    leaf = np.concatenate([np.arange(tree.n_leaves)] * 2)
    label = np.repeat([1, 0], tree.n_leaves)
    weight = np.concatenate([tree.leaf_positive, tree.leaf_negative])
    expected = auc(label, -leaf.astype(float), weight)
    assert tree.auc == pytest.approx(expected, abs=1e-14)
    fpr, tpr = tree.roc_knots
    assert np.trapezoid(tpr, fpr) == pytest.approx(expected, abs=1e-14)
    order = np.argsort(-tree.paper_scores(), kind="stable")
    assert order.tolist() == list(range(tree.n_leaves))
    # the concave order falls in β/α, whose greatest area no other has (Theorem 1)
    order = tree.concave_order
    p, n = tree.leaf_positive[order], tree.leaf_negative[order]
    assert (p[:-1] * n[1:] >= p[1:] * n[:-1]).all()


def test_the_paper_sums_the_last_level_only() -> None:
    """Fig. 2's output, ½ + ½ Σ of the last level, leaves out what the levels above have gained."""
    tree = make_tree("iillill", seed=3)
    last_level = tree.gain[tree.depth == 1].sum()
    assert tree.auc - (0.5 + 0.5 * last_level) == pytest.approx(tree.gain[0] / 2)
    assert abs(tree.gain[0]) > 0.01


def subtrees(tree: RankingTree, node: int = 0) -> Iterator[frozenset[Any]]:
    """Every way to collapse what hangs below a node: sets of inside nodes that stay."""
    yield frozenset()
    if tree.rule[node] >= 0:
        for top in subtrees(tree, node + 1):
            for bottom in subtrees(tree, int(tree.bottom[node])):
                yield top | bottom | {node}


def rising(tree: RankingTree) -> RankingTree:
    """The same tree with what growth guarantees: each split gains."""
    share = np.linspace(0.95, 0.05, tree.n_leaves)
    mass = tree.leaf_positive + tree.leaf_negative + 1.0
    return RankingTree(tree.is_leaf, mass * share, mass * (1 - share), tree.rules)


@pytest.mark.parametrize("shape", SHAPES[:-1])
@pytest.mark.parametrize("seed", [0, 1])
def test_weakest_links_equal_dynamic_programming(shape: str, seed: int) -> None:
    tree = rising(make_tree(shape, seed, whole=False))
    critical = pruning.critical_penalties(tree)
    path = pruning.trace_path(tree, critical)
    assert path.n_leaves[0] == tree.n_leaves
    assert path.n_leaves[-1] == 1
    assert (np.diff(path.n_leaves) < 0).all()
    assert path.auc[0] == pytest.approx(tree.auc)
    every = [(sum(tree.gain[list(kept)]) / 2, len(kept) + 1) for kept in subtrees(tree)]
    middle = pruning.middles(path.penalty)
    for penalty in (*path.penalty, *middle):
        best = max(gain - penalty * leaves for gain, leaves in every)
        smallest = min(n for gain, n in every if gain - penalty * n >= best - 1e-12)
        kept = tree.collapse(critical <= penalty)
        assert kept.auc - 0.5 - penalty * kept.n_leaves == pytest.approx(best, abs=1e-12)
        if penalty in middle:
            assert kept.n_leaves == smallest
    for k, penalty in enumerate(path.penalty):
        kept = tree.collapse(critical <= penalty)
        assert kept.n_leaves == path.n_leaves[k]
        assert kept.auc == pytest.approx(path.auc[k], abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES[:-1])
def test_best_subtree_on_other_rows_equals_trying_all(shape: str) -> None:
    tree = make_tree(shape)
    gain = np.random.default_rng(1).normal(size=tree.n_nodes) * (tree.rule >= 0)
    kept = tree.collapse(pruning.best_subtree(tree, gain))
    best = max(sum(gain[list(inside)]) for inside in subtrees(tree))
    inside = np.ones(tree.n_nodes, bool)
    for node in range(1, tree.n_nodes):
        parent = tree.parent[node]
        inside[node] = inside[parent] and not pruning.best_subtree(tree, gain)[parent]
    inside &= (tree.rule >= 0) & ~pruning.best_subtree(tree, gain)
    assert gain[inside].sum() == pytest.approx(best)
    assert kept.n_leaves == inside.sum() + 1


@pytest.mark.parametrize("flags", ["", "i", "li", "il", "ll", "illl", "iill"])
def test_flags_that_are_no_tree(flags: str, sentences: Sentences) -> None:
    tree = make_tree("ill")
    is_leaf = np.array([flag == "l" for flag in flags], dtype=bool)
    masses = np.ones(int(is_leaf.sum()))
    arrays = tree.arrays() | {"leaf_positive": masses, "leaf_negative": masses}
    with sentences.raises(ArtifactError):
        RankingTree.from_arrays(arrays | {"is_leaf": is_leaf}, KNOWN)


def test_a_tree_too_deep_is_refused(sentences: Sentences) -> None:
    shape = "i" * 63 + "l" * 64
    tree = make_tree(shape)
    with sentences.raises(ArtifactError):
        RankingTree.from_arrays(tree.arrays(), KNOWN)


def test_sets_must_be_where_features_are_categorical(sentences: Sentences) -> None:
    arrays = make_tree("iillill").arrays()
    known = KNOWN | {"n_categories": np.array([70])}
    with sentences.raises(ArtifactError):
        RankingTree.from_arrays(arrays, known)
    arrays["cut_n_words"] = 2 * (arrays["cut_feature"] >= 0)
    with sentences.raises(ArtifactError):
        RankingTree.from_arrays(arrays, known)
    arrays["cut_words"] = np.zeros(6, np.uint64)
    with sentences.raises(ArtifactError):
        RankingTree.from_arrays(arrays, known)
    arrays["cut_threshold"] = np.where(arrays["cut_feature"] >= 0, 70.0, arrays["cut_threshold"])
    assert (RankingTree.from_arrays(arrays, known).rules.threshold[[0, 3, 6]] == 70).all()
