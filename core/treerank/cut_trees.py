"""Cut trees as they were grown -> rules: codes become values and categories."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.coding import N_CODES
from core.coding.category_sets import pack
from core.ranker import Floats

from .coding import CodedTable
from .cuts import CutRules
from .preorder import Integers
from .workspace import ASKED, AT, MISSING_SIDE, TO_TOP

NO_CODES = np.empty((0, N_CODES), dtype=np.uint8)


class CutTree(NamedTuple):
    """A cell's cut tree as it was grown.

    Attributes
    ----------
    nodes : ndarray of shape (2 * n_leaves - 1, 5), int64
        In preorder, as in `workspace`.
    masses : ndarray of shape (n_leaves, 2), float64
        Positive and negative.
    above : ndarray of shape (n_categorical, 256), uint8
        Which codes lie above the cuts of categorical features, in the order of the nodes.
    merged : ndarray of shape (n_merged, 2), float64
        Feature and gain, in masses, of each cut that is no part of the tree, as both its leaves went to one side.
    """

    nodes: Integers
    masses: Floats
    above: npt.NDArray[np.uint8]
    merged: Floats


def join(trees: Sequence[CutTree], table: CodedTable) -> CutRules:
    """Put cut trees into flat arrays."""
    if not trees:
        return CutRules.join([])
    nodes = np.concatenate([tree.nodes for tree in trees])
    masses = np.concatenate([tree.masses for tree in trees])
    feature, is_leaf = nodes[:, ASKED].copy(), nodes[:, ASKED] < 0
    merged = np.concatenate([tree.merged for tree in trees])
    by_category = ~is_leaf & table.bins.is_categorical[feature]
    sets = _sets(trees, nodes[by_category], table)
    n_words = np.zeros(len(nodes), dtype=np.int64)
    n_words[by_category] = [len(words) for words in sets]
    threshold = _thresholds(nodes, is_leaf | by_category, table)
    n_categories = [0 if bins is None else len(bins) for bins in table.bins.category_bins]
    threshold[by_category] = np.array(n_categories)[feature[by_category]]
    return CutRules(
        n_leaves=np.array([len(tree.masses) for tree in trees]),
        feature=feature,
        threshold=threshold,
        missing_above=nodes[:, MISSING_SIDE] != 0,
        speaks_of_missing=~is_leaf & table.bins.has_missing[feature],
        n_words=n_words,
        to_top=nodes[:, TO_TOP] != 0,
        leaf_positive=masses[:, 0].copy(),
        leaf_negative=masses[:, 1].copy(),
        words=np.concatenate([np.empty(0, dtype=np.uint64), *sets]),
        merged_rule=np.repeat(np.arange(len(trees)), [len(tree.merged) for tree in trees]),
        merged_feature=merged[:, 0].astype(np.int64),
        merged_gain=merged[:, 1].copy(),
    )


def _thresholds(nodes: Integers, has_none: npt.NDArray[np.bool_], table: CodedTable) -> Floats:
    """Give the edge at each cut; a cut below all bins sets the missing apart."""
    edges = table.bins.edges
    first = np.cumsum([0, *(len(of_feature) for of_feature in edges)])
    threshold = np.zeros(len(nodes))
    at = ~has_none & (nodes[:, AT] >= 0)
    threshold[at] = np.concatenate(edges)[first[nodes[at, ASKED]] + nodes[at, AT]]
    threshold[~has_none & (nodes[:, AT] < 0)] = -np.inf
    return threshold


def _sets(
    trees: Sequence[CutTree], nodes: Integers, table: CodedTable
) -> list[npt.NDArray[np.uint64]]:
    """Give the words of the set of each cut by category; one that no row has goes with the missing."""
    above = np.concatenate([tree.above for tree in trees])
    sets = []
    for node, codes in zip(nodes, above, strict=True):
        bins = table.bins.category_bins[node[ASKED]]
        assert bins is not None  # these nodes' features are categorical
        held = np.where(bins >= 0, codes[bins], node[MISSING_SIDE]) != 0
        sets.append(pack(held))
    return sets
