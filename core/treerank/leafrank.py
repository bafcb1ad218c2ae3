"""LeafRank: split a node by a small tree of thresholds whose leaves are merged into two sides (Fig. 5).

`core.trees.grower` grows a cut tree in each cell. Here the leaves of each are merged into two sides, and the cuts that
are left become a rule of the ranking tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numba
import numpy as np
import numpy.typing as npt

from core.base.ranker import Callback, Floats
from core.coding import Bins
from core.coding.categories import INFINITE_ESS, effective_counts, measure_inverse_ess, pack
from core.kernels import kernel
from core.trees.coding import Table, code_table
from core.trees.grower import TreeGrower
from core.trees.partition import find_first
from core.trees.records import NODE
from core.trees.splitting import SPLIT, Objective, SplitCriterion

from .cuts import CutRules
from .growth import EPS_GAIN, Cell, CellSplit, TreeLimits, TreeRows, grow
from .tree import Booleans, Integers, RankingTree

MAX_NODES = 1 << 12  # of all cut trees that are grown in one call: bounds its memory


def _record(integers: str, floats: str = "") -> np.dtype[np.void]:
    fields = [(name, np.int64) for name in integers.split()]
    return np.dtype(fields + [(name, np.float64) for name in floats.split()], align=True)


CELL = _record("start stop", "positive negative")
"""Of a cell: its rows, `start` to `stop` of the grower's, and the mass of each class."""

MERGED = _record("start middle stop n_leaves n_merged", "top_positive top_negative gain")
"""Of a cell whose leaves were merged into two sides: its rows, those of the top side before `middle`; the number of
leaves of its cut tree; the number of cuts that were dropped, as both their leaves went to one side; the masses of the
top side; the gain Λ of the split in masses, 0 if there is no split."""

CUT_NODE = _record("feature cut missing_above node to_top")
"""Of a node of a cut tree: the feature it splits on, -1 for a leaf; the code it cuts above; where missing values go;
`node`, its index among the nodes as they were grown; of a leaf, whether its rows go to the top."""


class CodedSample(NamedTuple):
    """A training sample with its columns binned into codes."""

    bins: Bins
    table: Table
    order: npt.NDArray[np.uint32]
    """By row of `table`: its index in the sample. Positives come first. Shape (n_rows,)."""
    n_categories: Integers


def code_sample(sample: TreeRows, max_bins: int) -> CodedSample:
    """Return the sample with columns binned into at most `max_bins` (and 255) bins each.

    O(n_features · n_rows log n_rows).
    """
    order = np.argsort(~sample.positive, kind="stable").astype(np.uint32)
    n_positives = int(sample.positive.sum())
    most = max_bins, max_bins
    read = sample.X if sample.stored is None else sample.stored
    bins, table = code_table(read, order, n_positives, sample.weight, most, sample.n_categories)
    return CodedSample(bins, table, order, sample.n_categories)


@kernel(
    numba.void(
        numba.from_dtype(NODE)[::1],
        numba.from_dtype(SPLIT)[::1],
        numba.uint32[::1],
        numba.int64,
        numba.from_dtype(MERGED)[::1],
        numba.from_dtype(CUT_NODE)[:, ::1],
        numba.float64[:, :, ::1],
    )
)
def merge_leaves(nodes, splits, rows, n_positives, merged, cut_nodes, cut_masses):  # type: ignore[no-untyped-def]
    """Merge the leaves of each cell's small tree into two sides, sort its rows by side and class, and store the tree.

    The partition-based rule (Fig. 4) sorts the leaves by β/α and takes the best prefix, the shortest among equals: all
    leaves where β > α.

    nodes, splits, rows: see `core.trees.grower.CellTrees`; rows are sorted in place, those below n_positives first.
    merged: (n_cells,) `MERGED`, written. cut_nodes: (n_cells, 2 * max_leaves - 1) `CUT_NODE`, written in preorder.
    cut_masses: (n_cells, max_leaves, 2) float64, written: the masses of the cut tree's leaves and, from the last index
    back, (feature, gain in masses) of each cut that was dropped.
    """
    max_leaves = cut_masses.shape[1]
    leaf_node, leaf_p, leaf_q = (
        np.empty(max_leaves, np.int64),
        np.empty(max_leaves),
        np.empty(max_leaves),
    )
    to_top = np.empty(max_leaves, np.bool_)
    # of each split the node that it divided, and its subtrees: a leaf, or ~ a split
    split_node, above, below = np.empty((3, max_leaves), np.int64)
    subtree = np.empty(max_leaves, np.int64)  # that each leaf stands for, as trees grow together
    waiting = np.empty(2 * max_leaves, np.int64)
    for c in range(len(merged)):
        cell, root = merged[c], nodes[c]
        cell.start = cell.middle = root.start
        cell.stop = root.stop
        cell.gain = cell.top_positive = cell.top_negative = 0.0
        n_leaves, n_waiting = 0, 1
        waiting[0] = c
        while n_waiting > 0:
            n_waiting -= 1
            number = waiting[n_waiting]
            node = nodes[number]
            if node.is_split:
                split_node[nodes[node.below].leaf - 1] = number
                waiting[n_waiting], waiting[n_waiting + 1] = node.below, node.above
                n_waiting += 2
            else:
                leaf_node[node.leaf] = number
                n_leaves += 1
        total_p = total_q = 0.0
        for k in range(n_leaves):
            leaf_p[k], leaf_q[k] = nodes[leaf_node[k]].positive, nodes[leaf_node[k]].negative
            total_p += leaf_p[k]
            total_q += leaf_q[k]
        n_top = 0
        for k in range(n_leaves):
            to_top[k] = leaf_p[k] * total_q - leaf_q[k] * total_p > EPS_GAIN * total_p * total_q
            if to_top[k]:
                n_top += 1
                cell.top_positive += leaf_p[k]
                cell.top_negative += leaf_q[k]
        if not 0 < n_top < n_leaves:
            continue
        cell.gain = cell.top_positive * total_q - cell.top_negative * total_p
        sorted_rows = np.empty(cell.stop - cell.start, np.uint32)
        n = 0
        for part in range(4):  # positives and negatives of the top, then of the bottom
            if part == 2:
                cell.middle = cell.start + n
            for k in range(n_leaves):
                if to_top[k] == (part < 2):
                    node = nodes[leaf_node[k]]
                    middle = find_first(rows, node.start, node.stop, n_positives)
                    first, last = (node.start, middle) if part % 2 == 0 else (middle, node.stop)
                    for i in range(first, last):
                        sorted_rows[n] = rows[i]
                        n += 1
        for i in range(n):
            rows[cell.start + i] = sorted_rows[i]
        # trees as they grow together, backwards, without splits both of whose sides go the same way
        cell.n_merged = 0
        for k in range(n_leaves):
            subtree[k] = k
        for s in range(n_leaves - 2, -1, -1):
            divided = split_node[s]
            old = nodes[divided].leaf
            over, under = subtree[old], subtree[s + 1]
            if over >= 0 and under >= 0 and to_top[over] == to_top[under]:
                cell.n_merged += 1  # one leaf less, so there is room for both
                cut_masses[c, -cell.n_merged, 0] = splits[divided].feature
                cut_masses[c, -cell.n_merged, 1] = abs(
                    leaf_p[over] * leaf_q[under] - leaf_q[over] * leaf_p[under]
                )
                leaf_p[over] += leaf_p[under]
                leaf_q[over] += leaf_q[under]
            else:
                above[s], below[s] = over, under
                subtree[old] = ~s
        n_nodes = cell.n_leaves = 0
        waiting[0], n_waiting = subtree[0], 1
        while n_waiting > 0:
            n_waiting -= 1
            this = waiting[n_waiting]
            node = cut_nodes[c, n_nodes]
            n_nodes += 1
            if this >= 0:
                node.feature, node.to_top = -1, to_top[this]
                node.cut = node.missing_above = node.node = 0
                cut_masses[c, cell.n_leaves, 0] = leaf_p[this]
                cut_masses[c, cell.n_leaves, 1] = leaf_q[this]
                cell.n_leaves += 1
            else:
                split = splits[split_node[~this]]
                node.feature, node.cut, node.to_top = split.feature, split.cut, 0
                node.missing_above, node.node = split.missing_above, split_node[~this]
                waiting[n_waiting], waiting[n_waiting + 1] = below[~this], above[~this]
                n_waiting += 2


class CutTree(NamedTuple):
    """The small tree of thresholds that splits one cell."""

    nodes: npt.NDArray[np.void]
    """In preorder. Shape (n_nodes,), `CUT_NODE`."""
    masses: Floats
    """Positive and negative. Shape (n_leaves, 2)."""
    above: npt.NDArray[np.uint8]
    """Which codes lie above each cut of a categorical feature, in the order of the nodes. Shape (n_categorical,
    n_codes)."""
    merged: Floats
    """Feature and gain (in masses) of each cut that was dropped, as both its leaves went to one side. Shape (n_merged,
    2)."""


def join(trees: Sequence[CutTree], table: CodedSample) -> CutRules:
    """Return cut trees as flat arrays, with codes replaced by feature values and categories."""
    n_codes = trees[0].above.shape[1] if trees else 0
    none = np.empty((0, n_codes), dtype=np.uint8)
    no_tree = CutTree(np.empty(0, dtype=CUT_NODE), np.empty((0, 2)), none, np.empty((0, 2)))
    nodes, masses, above, merged = map(np.concatenate, zip(no_tree, *trees, strict=True))
    feature, is_leaf = nodes["feature"].copy(), nodes["feature"] < 0
    # a feature in a bundle has one cut, and its code there is the bundle's
    nodes["cut"][table.table.locations["code"][feature] > 0] = 0
    by_category = ~is_leaf & table.bins.is_categorical[feature]
    sets = _sets(nodes[by_category], above, table)
    n_words = np.zeros(len(nodes), dtype=np.int64)
    n_words[by_category] = [len(words) for words in sets]
    threshold = _thresholds(nodes, is_leaf | by_category, table)
    threshold[by_category] = table.n_categories[feature[by_category]]
    n_merged = np.array([len(tree.merged) for tree in trees], dtype=np.int64)
    return CutRules(
        n_categories=table.n_categories,
        n_leaves=np.array([len(tree.masses) for tree in trees], dtype=np.int64),
        feature=feature,
        threshold=threshold,
        missing_above=nodes["missing_above"] != 0,
        speaks_of_missing=~is_leaf & table.bins.has_missing[feature],
        n_words=n_words,
        to_top=nodes["to_top"] != 0,
        leaf_positive=masses[:, 0].copy(),
        leaf_negative=masses[:, 1].copy(),
        words=np.concatenate([np.empty(0, dtype=np.uint64), *sets]),
        merged_rule=np.repeat(np.arange(len(trees)), n_merged),
        merged_feature=merged[:, 0].astype(np.int64),
        merged_gain=merged[:, 1].copy(),
    )


def _thresholds(
    nodes: npt.NDArray[np.void], has_none: npt.NDArray[np.bool_], table: CodedSample
) -> Floats:
    """Return the feature threshold of each split; -inf for a split below all bins, which separates missing values."""
    edges = table.bins.edges
    first = np.cumsum([0, *(len(of_feature) for of_feature in edges)])
    threshold = np.zeros(len(nodes))
    at = ~has_none & (nodes["cut"] >= 0)
    threshold[at] = np.concatenate(edges)[first[nodes["feature"][at]] + nodes["cut"][at]]
    threshold[~has_none & (nodes["cut"] < 0)] = -np.inf
    return threshold


def _sets(
    nodes: npt.NDArray[np.void], above: npt.NDArray[np.uint8], table: CodedSample
) -> list[npt.NDArray[np.uint64]]:
    """Return 64-bit words by categorical split; a category that no row has goes with the missing values."""
    sets = []
    for node, codes in zip(nodes, above, strict=True):
        bins = table.bins.category_bins[node["feature"]]
        assert bins is not None  # these nodes' features are categorical
        is_above = np.where(bins >= 0, codes[bins], node["missing_above"]) != 0
        sets.append(pack(is_above))
    return sets


class Shape(NamedTuple):
    """The size limits of LeafRank's small trees."""

    max_depth: int
    """1 for a single cut."""
    max_leaves: int
    """If below 2**max_depth, the leaf that gains most is split first."""
    min_mass: float
    """Smallest mass (sum of sample weight) of a leaf."""

    @classmethod
    def of(
        cls, depth: int, max_leaves: int | None, min_samples_leaf: float, sample: TreeRows
    ) -> "Shape":
        """Return the limits that the parameters give; weights with a mean below 1 are divided by their mean."""
        complete = 2**depth
        min_mass = min_samples_leaf * min(float(sample.weight.mean()), 1.0)
        return cls(depth, min(max_leaves or complete, complete), min_mass)


@dataclass(frozen=True)
class FeatureDraw:
    """Draws the features on which each cell may be split: n_drawn of n_features at random."""

    n_features: int
    n_drawn: int
    generator: np.random.Generator

    def draw(self, n_cells: int) -> Booleans:
        every = np.tile(np.arange(self.n_features), (n_cells, 1))
        drawn = self.generator.permuted(every, axis=1)[:, : self.n_drawn]
        taken = np.zeros((n_cells, self.n_features), dtype=np.bool_)
        np.put_along_axis(taken, drawn, True, axis=1)
        return taken


class LeafRank:
    """Splits cells of one sample by LeafRank, many cells at a time.

    rows: (n_rows_in_use,), int64; rows of `coded.table` to grow on, ascending, of weight above 0.
    weight, count: (n_rows,); by row of `coded.table`: its weight, and for how many rows it stands.
    features: which features each cell may be split on; None: all.

    Memory: the table, and that of `core.trees.grower.TreeGrower` with one weight per row.
    """

    def __init__(
        self,
        coded: CodedSample,
        rows: Integers,
        weight: Floats,
        count: Floats,
        shape: Shape,
        features: "FeatureDraw | None" = None,
    ) -> None:
        self._coded = coded
        self._shape = shape
        self._features = features
        table = coded.table
        middle = int(np.searchsorted(rows, table.n_positives))
        masses = [float(weight[part].sum()) for part in (rows[:middle], rows[middle:])]
        self.root = Cell((0, len(rows)), *masses)
        self._has_categories = bool(coded.bins.is_categorical.any())
        inverse_ess = INFINITE_ESS  # categories only
        if self._has_categories:
            inverse_ess = measure_inverse_ess(weight[rows], count[rows], middle)
        self._rule = SplitCriterion(
            int(Objective.YOUDEN),
            push=0.0,
            smoothing=0.0,
            least_mass=shape.min_mass,
            category_penalty=0.0,
            category_mass=0.0,
            category_smoothing=0.0,
            class_positive=masses[0],
            class_negative=masses[1],
            inverse_ess_positive=inverse_ess.positive,
            inverse_ess_negative=inverse_ess.negative,
        )
        max_leaves = min(2**shape.max_depth, shape.max_leaves)
        self._max_leaves = max_leaves
        self._max_cells = max(MAX_NODES // (2 * max_leaves - 1), 1)
        self._grower = TreeGrower(
            table,
            np.where(weight > 0.0, weight, 1.0),  # values of other rows do not matter
            1,
            shape.max_depth,
            max_leaves if max_leaves < 2**shape.max_depth else None,
            rows.astype(np.uint32),
            n_cells=self._max_cells,
        )
        self._grower.weights[:, 0] = weight

    def split_cells(self, cells: Sequence[Cell]) -> list[CellSplit | None]:
        splits: list[CellSplit | None] = []
        for first in range(0, len(cells), self._max_cells):
            splits += self._split_at_once(cells[first : first + self._max_cells])
        return splits

    def collect(self, trees: Sequence[CutTree]) -> CutRules:
        return join(trees, self._coded)

    def _split_at_once(self, cells: Sequence[Cell]) -> list[CellSplit | None]:
        n, max_leaves = len(cells), self._max_leaves
        records = np.array([(*cell.rows, cell.positive, cell.negative) for cell in cells], CELL)
        features = np.ones((1, 1), dtype=np.bool_)
        if self._features is not None:
            features = self._features.draw(n)
        grown = self._grower.grow_cells(self._rule, records, features)
        merged = np.zeros(n, dtype=MERGED)
        cut_nodes = np.zeros((n, 2 * max_leaves - 1), dtype=CUT_NODE)
        cut_masses = np.zeros((n, max_leaves, 2))
        n_positives = self._coded.table.n_positives
        merge_leaves(
            grown.nodes, grown.splits, grown.rows, n_positives, merged, cut_nodes, cut_masses
        )
        splits: list[CellSplit | None] = [None] * n
        for c, cell in enumerate(merged.tolist()):
            start, middle, stop, n_leaves, n_merged, positive, negative, gain = cell
            if gain == 0.0:
                continue
            nodes = cut_nodes[c, : 2 * n_leaves - 1]
            above = grown.subsets[:0]
            if self._has_categories:
                feature = nodes["feature"]
                by_category = (feature >= 0) & self._coded.bins.is_categorical[feature]
                above = grown.subsets[nodes["node"][by_category]]
            masses = cut_masses[c]
            rule = CutTree(nodes, masses[:n_leaves], above, masses[max_leaves - n_merged :])
            bottom = masses[:n_leaves][nodes["to_top"][nodes["feature"] < 0] == 0].sum(axis=0)
            splits[c] = CellSplit(
                Cell((start, middle), positive, negative),
                Cell((middle, stop), *bottom.tolist()),
                rule,
            )
        return splits


@dataclass(frozen=True)
class CutGrower:
    """Grows ranking trees by LeafRank or single thresholds, on subsets of one binned sample."""

    coded: CodedSample
    weight: Floats
    count: Floats
    """See `LeafRank`. Shape (n_rows,)."""
    shape: Shape

    @classmethod
    def of(cls, sample: TreeRows, max_bins: int, shape: Shape) -> Self:
        coded = code_sample(sample, max_bins)
        weight = sample.weight[coded.order]
        return cls(coded, weight, effective_counts(weight), shape)

    def with_leaves(self, max_leaves: int) -> Self:
        return replace(self, shape=self.shape._replace(max_leaves=max_leaves))

    def sizes(self) -> list[int]:
        """Return the numbers of leaves of small trees to try, ascending: each about 1.5 times the last."""
        largest = self.shape.max_leaves
        return [*(n for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128) if n < largest), largest]

    def grow(self, rows: Integers, limits: TreeLimits, callback: Callback) -> RankingTree:
        taken = np.zeros(len(self.weight), dtype=np.bool_)
        taken[rows] = True
        coded_rows = np.flatnonzero(taken[self.coded.order])
        splitter = LeafRank(self.coded, coded_rows, self.weight, self.count, self.shape)
        return grow(splitter, limits, callback)
