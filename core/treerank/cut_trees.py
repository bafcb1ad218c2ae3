"""Cut trees as they were grown -> rules: codes become values and categories, and what says nothing goes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.ranker import Floats

from .coding import CodedTable
from .cuts import WORD_BITS, CutRules
from .preorder import Booleans, Integers


class CutTree(NamedTuple):
    """A cell's cut tree as it was grown.

    Attributes
    ----------
    splits : ndarray of shape (n_leaves - 1, 5), int64
        Leaf that keeps what is above, new leaf, feature, cut and side of the missing, in the order
        of growth; leaves are numbered 0 to n_leaves - 1, the root being 0.
    above : ndarray of shape (n_leaves - 1, 256), uint8
        Which codes lie above each cut.
    masses : ndarray of shape (n_leaves, 2), float64
        Positive and negative.
    to_top : ndarray of shape (n_leaves,), bool
    """

    splits: Integers
    above: npt.NDArray[np.uint8]
    masses: Floats
    to_top: Booleans


class _Node(NamedTuple):
    """A node of a cut tree: the split it makes, -1 for a leaf, and its children, or a leaf's figures."""

    split: int
    children: tuple["_Node", ...]
    to_top: bool
    masses: Floats


def join(trees: Sequence[CutTree], table: CodedTable) -> CutRules:
    """Put cut trees into flat arrays.

    A cut both of whose sides go the same way throughout is left out: it decides nothing.
    """
    return CutRules.join([_flatten(tree, table) for tree in trees])


def _link(tree: CutTree) -> _Node:
    """Link a tree's nodes, backwards: the last split's children are leaves."""
    nodes = [
        _Node(-1, (), bool(to_top), masses)
        for to_top, masses in zip(tree.to_top, tree.masses, strict=True)
    ]
    for s in range(len(tree.splits) - 1, -1, -1):
        old, new = tree.splits[s, 0], tree.splits[s, 1]
        above, below = nodes[old], nodes[new]
        masses = above.masses + below.masses
        same = above.split < 0 and below.split < 0 and above.to_top == below.to_top
        nodes[old] = (
            _Node(-1, (), above.to_top, masses)
            if same
            else _Node(s, (above, below), above.to_top, masses)
        )
    return nodes[0]


def _flatten(tree: CutTree, table: CodedTable) -> CutRules:
    nodes = []
    waiting = [_link(tree)]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        waiting += reversed(node.children)
    split = np.array([node.split for node in nodes])
    is_leaf = split < 0
    feature = np.where(is_leaf, -1, tree.splits[split, 2])
    cuts = [_cut(s, tree, table) for s in split.tolist()]
    leaves = [node for node in nodes if node.split < 0]
    masses = np.array([leaf.masses for leaf in leaves])
    return CutRules(
        n_leaves=np.array([len(leaves)]),
        feature=feature,
        threshold=np.array([threshold for threshold, _ in cuts]),
        missing_above=~is_leaf & (tree.splits[split, 4] != 0),
        speaks_of_missing=~is_leaf & table.bins.has_missing[feature],
        n_words=np.array([len(words) for _, words in cuts]),
        to_top=is_leaf & np.array([node.to_top for node in nodes]),
        leaf_positive=masses[:, 0],
        leaf_negative=masses[:, 1],
        words=np.concatenate([words for _, words in cuts]),
    )


def _cut(split: int, tree: CutTree, table: CodedTable) -> tuple[float, npt.NDArray[Any]]:
    """Give a split's threshold, and the words of its set where it asks for a category."""
    none = np.empty(0, dtype=np.uint64)
    if split < 0:
        return 0.0, none
    feature, cut, missing_above = tree.splits[split, 2:].tolist()
    bins = table.bins.category_bins[feature]
    if bins is None:
        return (float(table.bins.edges[feature][cut]) if cut >= 0 else -np.inf), none
    above = np.where(bins >= 0, tree.above[split, bins] != 0, missing_above != 0)
    n_words = -(-len(bins) // WORD_BITS)
    bits = np.zeros(n_words * WORD_BITS, dtype=np.uint8)
    bits[: len(bins)] = above
    return 0.0, np.packbits(bits, bitorder="little").view(np.uint64)
