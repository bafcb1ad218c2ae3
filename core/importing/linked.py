"""Trees as the packages store them, linked by node numbers, and their conversion to a `TreeSum`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from core.base.state import Integers
from core.boosting.tree_sum import MAX_LEAF_VALUE, MAX_LEAVES, ROUND, SPLITS, TreeSum
from core.coding.categories import count_words
from core.errors import InvalidModelFile
from core.trees.category_sets import NO_SET, Sets

MAX_DEPTH = 1000
"""Most splits on a path: the memory of Shapley values is quadratic in it."""

MAX_SET_WORDS = 1 << 23
"""Most 64-bit words of all category sets: a set takes a bit per category, however few it names."""


class LinkedTree(NamedTuple):
    """A tree of an untrusted file. A child is the index of a node, or ~i for leaf i; node 0 is the root.

    Arguments have an entry per node, and `value` and `weight` one per leaf. No node: the tree is leaf 0.
    """

    above: Sequence[int]
    """Where x > threshold leads, or a category of the node's set. Of an ordered category, x is the code."""
    below: Sequence[int]
    feature: Sequence[int]
    threshold: Sequence[float]
    missing_above: Sequence[bool]
    codes: Mapping[int, Sequence[int] | Integers]
    """The category codes of each categorical node's set."""
    value: Sequence[float]
    weight: Sequence[float]


class Columns(NamedTuple):
    """The model's features: names, and for each categorical one the category that each code stands for."""

    names: Sequence[str]
    words: Sequence[Sequence[Any] | None]
    """Texts, numbers or booleans until `make_ranker` has made them texts."""

    @property
    def n_categories(self) -> Integers:
        return np.array([len(words or ()) for words in self.words], dtype=np.int64)

    @property
    def categories(self) -> tuple[tuple[str, ...] | None, ...]:
        return tuple(None if words is None else tuple(sorted(words)) for words in self.words)


def collect(trees: Sequence[LinkedTree], start: float, columns: Columns) -> TreeSum:
    """Return `start` plus the trees, which are checked, as a sum; O(bytes of the file).

    InvalidModelFile: a tree is not a tree of these columns.
    """
    builder = _Builder(columns)
    for number, tree in enumerate(trees):
        builder.add(number, tree)
    rounds = np.empty(len(trees), dtype=ROUND)
    rounds["alpha"], rounds["d_plus"], rounds["d_minus"] = 1.0, math.nan, math.nan
    rounds["n_leaves"] = builder.n_leaves
    return TreeSum(
        columns.n_categories,
        rounds,
        np.array(builder.splits, dtype=SPLITS),
        np.array(builder.values),
        np.array(builder.weights),
        np.array([start]),
        builder.sets.words,
    )


class _Builder:
    def __init__(self, columns: Columns) -> None:
        self.names = columns.names
        self.n_categories = columns.n_categories.tolist()
        self.ranks = [_rank(words) for words in columns.words]
        self.splits: list[tuple[int, int, float, int, bool, bool]] = []
        self.values: list[float] = []
        self.weights: list[float] = []
        self.n_leaves: list[int] = []
        self.sets, self.n_words = Sets(), 0

    def add(self, number: int, tree: LinkedTree) -> None:
        where = f"tree {number}"
        n_nodes = len(tree.above)
        if n_nodes >= MAX_LEAVES:
            raise InvalidModelFile(
                f"{where}: a tree must have at most {MAX_LEAVES} leaves, got {n_nodes + 1}"
            )
        if n_nodes == 0:
            self._add_leaf(where, tree)
            return
        order, held, levels = [0], [0], [1]
        reached, ends = {0}, [0] * (n_nodes + 1)
        seen_leaves: set[int] = set()
        for s, node in enumerate(order):  # grows
            for child, leaf in (tree.above[node], held[s]), (tree.below[node], s + 1):
                is_node = child >= 0
                known, seen = (n_nodes, reached) if is_node else (len(tree.value), seen_leaves)
                index = child if is_node else ~child
                kind = "node" if is_node else "leaf"
                if index >= known:
                    raise InvalidModelFile(
                        f"{where}, node {node}: a child must be one of {known} {kind}s from 0, got {index}"
                    )
                if index in seen:
                    raise InvalidModelFile(
                        f"{where}, node {node}: each {kind} must have one parent, got a second for {index}"
                    )
                seen.add(index)
                if not is_node:
                    ends[leaf] = index
                    continue
                if levels[s] == MAX_DEPTH:
                    raise InvalidModelFile(
                        f"{where}, node {node}: a path must have at most {MAX_DEPTH} splits, got more"
                    )
                order.append(child)
                held.append(leaf)
                levels.append(levels[s] + 1)
            self._add_split(f"{where}, node {node}", tree, node, held[s])
        for leaf in ends[: len(order) + 1]:
            self._end_leaf(where, tree, leaf)
        self.n_leaves.append(len(order) + 1)

    def _add_leaf(self, where: str, tree: LinkedTree) -> None:
        """A tree of one leaf becomes two equal ones, of which one is empty."""
        is_set = self.n_categories[0] > 0
        first = self._add_set(0, []) if is_set else NO_SET
        self.splits.append((0, 0, math.nan if is_set else 0.0, first, True, False))
        self._end_leaf(where, tree, 0)
        self.values.append(self.values[-1])
        self.weights.append(0.0)
        self.n_leaves.append(2)

    def _end_leaf(self, where: str, tree: LinkedTree, leaf: int) -> None:
        value, weight = tree.value[leaf], tree.weight[leaf]
        if not abs(value) <= MAX_LEAF_VALUE:
            raise InvalidModelFile(
                f"{where}, leaf {leaf}: a value must be from {-MAX_LEAF_VALUE} to {MAX_LEAF_VALUE}, got {value}"
            )
        if not 0.0 <= weight <= MAX_LEAF_VALUE:
            raise InvalidModelFile(
                f"{where}, leaf {leaf}: a weight must be from 0 to {MAX_LEAF_VALUE}, got {weight}"
            )
        self.values.append(value)
        self.weights.append(weight)

    def _add_split(self, where: str, tree: LinkedTree, node: int, leaf: int) -> None:
        feature, threshold, first = tree.feature[node], tree.threshold[node], NO_SET
        if not 0 <= feature < len(self.names):
            raise InvalidModelFile(
                f"{where}: a feature must be from 0 to {len(self.names) - 1}, got {feature}"
            )
        name, codes = self.names[feature], tree.codes.get(node)
        n = self.n_categories[feature]
        if codes is None and math.isnan(threshold):
            raise InvalidModelFile(
                f"{where}, feature {name!r}: a threshold must be a number, got nan"
            )
        if codes is not None and n == 0:
            raise InvalidModelFile(
                f"{where}, feature {name!r}: a numeric feature must have thresholds, got a set"
            )
        if codes is None and n > 0:  # a category whose order is compared
            codes = range(math.floor(min(max(threshold, -1.0), n - 1.0)) + 1, n)
        if codes is not None:
            threshold = math.nan
            beyond = np.asarray(codes, dtype=np.int64)
            beyond = beyond[(beyond < 0) | (beyond >= n)]
            if len(beyond):
                raise InvalidModelFile(
                    f"{where}, feature {name!r}: a code must be one of {n} categories from 0, got {beyond[0]}"
                )
            first = self._add_set(feature, codes)
        threshold = min(threshold, np.finfo(np.float64).max)  # the same for finite x
        self.splits.append((leaf, feature, threshold, first, tree.missing_above[node], True))

    def _add_set(self, feature: int, codes: Sequence[int] | Integers) -> int:
        n = self.n_categories[feature]
        self.n_words += count_words(n)
        if self.n_words > MAX_SET_WORDS:
            raise InvalidModelFile(
                f"the category sets must take at most {8 * MAX_SET_WORDS >> 20} MiB, got more at feature "
                f"{self.names[feature]!r} with {n} categories"
            )
        members = np.zeros(n, dtype=np.bool_)
        members[self.ranks[feature][codes]] = True
        return self.sets.add(feature, members)


def _rank(words: Sequence[str] | None) -> Integers:
    """Return the place of each code's category among the sorted categories."""
    ranks = np.empty(len(words or ()), dtype=np.int64)
    if words:
        ranks[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
    return ranks
