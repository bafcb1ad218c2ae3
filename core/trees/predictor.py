"""Routing rows through trees: coded rows while trees are grown; few or many raw rows to be scored.

Many rows are coded first. The thresholds of a feature, of all trees together, divide it into intervals; once a row's
values are coded by interval, x > threshold is a comparison of small numbers, exactly. A block of rows then meets each
split of a tree once: a handful of vector instructions on bytes, whatever the depth.

Few rows go from node to node. Inside nodes of a tree come first, then its leaves, each of which is its own child:
every row then takes as many steps as the tree is deep, with no branch to mispredict. Several nodes may lead to one
child, as those of LeafRank's small trees do.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.base.mixed import MixedRows
from core.base.ranker import Floats
from core.coding import ThreadPool
from core.coding.categories import unpack
from core.kernels import kernel

from .category_sets import NO_SET
from .coding import Integers, find_bins

MAX_NUMBERED_SPLITS = 255  # splits of a tree whose leaf numbers fit a byte
MAX_NARROW_CODES = 256  # codes of a feature that fit uint8, that of the missing included
MAX_CODES = 1 << 16  # codes of a feature that fit uint16

# Bytes of all subsets of categories, one per split and category: more are not worth the memory.
MAX_SUBSETS_BYTES = 1 << 26

CODED_AT_ONCE = 1024  # rows that are coded together
# Rows that walk through a single tree together: their values of some thirty columns stay in the first-level cache.
WALKED_AT_ONCE = 64
# Rows that walk through each of several trees together: more, since the nodes of each tree must be fetched, too.
ROWS_PER_TREE = 512
# Rows of a task.
TASK_ROWS = 1 << 14
# Pairs of a task, for all of which a tree is read once.
PAIRS_PER_TASK = 512
# Features of a path, at most, for its leaf's worth in all orders to be a double.
MAX_PATH_FEATURES = 500


CODED_SPLIT = np.dtype(
    [
        ("leaf", np.int64),  # that it splits
        ("column", np.int64),  # its index among the columns that the tree splits on
        ("first", np.int64),  # code above the cut
        ("n_more", np.int64),  # codes that follow it above the cut, round the greatest code
        ("subset", np.int64),  # where the codes above are told in place of an interval; -1 for none
    ],
    align=True,
)
_CODED_SPLITS = numba.from_dtype(CODED_SPLIT)[::1]


@kernel(
    numba.void(
        numba.uint8[:, ::1],
        _CODED_SPLITS,
        numba.uint8[::1],
        numba.uint8[::1],
        numba.uint16[::1],
    ),
    numba.void(
        numba.uint16[:, ::1],
        _CODED_SPLITS,
        numba.uint8[::1],
        numba.uint8[::1],
        numba.uint16[::1],
    ),
    inner=True,
)
def find_leaves(columns, splits, subsets, spare, leaf_numbers):  # type: ignore[no-untyped-def]
    """Write the leaf of each row of a block of coded rows.

    columns: (n_columns, n_rows or more) uint8 or uint16, codes of the columns that the tree splits on; splits:
    (n_splits,) `CODED_SPLIT`; subsets: uint8, 1 for each code above, for all splits by subsets; spare: (n_rows,) uint8,
    memory; leaf_numbers: (n_rows,) uint16, written.

    All rows start in leaf 0 and meet each split once: those in its leaf and below its cut move on. This takes a few
    vector instructions, whatever the depth. If a byte cannot number the splits, each row meets only those on its path.
    """
    code = columns.dtype.type
    if len(splits) > MAX_NUMBERED_SPLITS:
        # The split that a leaf's rows meet next; of a leaf that is not divided again its number, inverted.
        n_splits = len(splits)
        following = np.empty(n_splits + 1, dtype=np.int64)
        ways = np.empty((n_splits, 2), dtype=np.int64)
        for number in range(n_splits + 1):
            following[number] = ~number
        for s in range(n_splits - 1, -1, -1):
            ways[s, 0], ways[s, 1] = following[s + 1], following[splits[s].leaf]
            following[splits[s].leaf] = s
        for i in range(len(leaf_numbers)):
            at = np.int64(0)
            while at >= 0:
                split = splits[at]
                c = columns[split.column, i]
                above = code(c - code(split.first)) <= code(split.n_more)
                if split.subset >= 0:
                    above = subsets[split.subset + c] != 0
                at = ways[at, 1 if above else 0]
            leaf_numbers[i] = ~at
        return
    leaves = spare[: len(leaf_numbers)]
    for i in range(len(leaves)):
        leaves[i] = 0
    for s in range(len(splits)):
        split = splits[s]
        leaf, new, codes = np.uint8(split.leaf), np.uint8(s + 1), columns[split.column]
        if split.subset >= 0:
            above = subsets[split.subset :]
            for i in range(len(leaves)):
                below = above[codes[i]] == 0
                leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]
        else:
            first, width = code(split.first), code(split.n_more)
            for i in range(len(leaves)):
                below = code(codes[i] - first) > width
                leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]
    for i in range(len(leaves)):
        leaf_numbers[i] = leaves[i]


class BinnedTrees(NamedTuple):
    """Trees whose splits compare codes."""

    features: Any
    """Features that the trees split on. Shape (n_asked,), int64."""
    tables: Any
    """Their thresholds, as `coding.find_bins` reads them."""
    starts: Any
    n_steps: Any
    missing: Any
    """For each feature the start of its table, the steps of its search, and the code of a missing value. Shape
    (n_asked,), int64."""
    n_splits: Any
    """Shape (n_trees,), int64."""
    splits: Any
    """Columns are indices of `features`. Shape (n_splits,), `CODED_SPLIT`."""
    subsets: Any
    """For each split by a subset 1 for each category above, then for the missing."""
    values: Any
    """Values of the leaves. Shape (n_splits + n_trees,), float64."""


_I1, _F1 = numba.int64[::1], numba.float64[::1]
_BINNED_TREES = numba.types.NamedTuple(
    (_I1, _F1, _I1, _I1, _I1, _I1, _CODED_SPLITS, numba.uint8[::1], _F1), BinnedTrees
)


@dataclass(frozen=True)
class BinnedPredictor:
    """Trees whose splits compare codes, and whether all codes fit uint8."""

    trees: BinnedTrees
    is_narrow: bool

    def add_scores(self, X: Floats, scores: Floats, is_float32: bool) -> None:
        n_blocks = -(-len(X) // CODED_AT_ONCE)
        pool = ThreadPool(len(X) * len(self.trees.n_splits))
        pool.run(_add_coded_scores, n_blocks, X, self.trees, self.is_narrow, is_float32, scores)


def bin_trees(
    n_leaves: Integers,
    splits: npt.NDArray[np.void],
    values: Floats,
    sets: npt.NDArray[np.uint64],
    n_categories: Integers,
) -> BinnedPredictor | None:
    """Return trees whose thresholds are codes, to score many rows; None if there are too many codes.

    For the arrays see `TreeSum`.
    """
    features, asked = np.unique(splits["feature"], return_inverse=True)
    is_set = splits["set"] != NO_SET
    edges = [np.empty(0)] * len(features)
    first = np.zeros(len(splits), dtype=np.int64)
    for u in range(len(features)):
        here = (asked == u) & ~is_set
        thresholds = splits["threshold"][here]
        edges[u] = np.unique(thresholds[thresholds > -np.inf])
        first[here] = np.searchsorted(edges[u], thresholds, side="right")
    n_bins = np.maximum(n_categories[features], [len(column) + 1 for column in edges])
    # Splits often share a set, which is then expanded once.
    named = 2 * (asked * len(sets) + splits["set"]) + splits["missing_above"]
    _, one, which = np.unique(named[is_set], return_index=True, return_inverse=True)
    shared, of_shared = splits[is_set][one], asked[is_set][one]
    n_members = n_bins[of_shared] + 1
    if n_bins.max(initial=0) >= MAX_CODES or n_members.sum() > MAX_SUBSETS_BYTES:
        return None
    n_steps = np.array([len(column).bit_length() for column in edges], dtype=np.int64)
    tables = [np.full((1 << k) - 1, np.inf) for k in n_steps.tolist()]
    for table, column in zip(tables, edges, strict=True):
        table[: len(column)] = column
    n_steps[n_categories[features] > 0] = -1
    last = n_bins[asked] - 1 + splits["missing_above"]
    coded = np.empty(len(splits), dtype=CODED_SPLIT)
    coded["leaf"], coded["column"], coded["subset"] = splits["leaf"], asked, -1
    coded["first"], coded["n_more"] = first, last - first
    coded["subset"][is_set] = (np.cumsum(n_members) - n_members)[which]
    subsets = [
        np.append(unpack(sets, split["set"], n_bins[u]), split["missing_above"])
        for split, u in zip(shared, of_shared.tolist(), strict=True)
    ]
    trees = BinnedTrees(
        features,
        np.concatenate([np.empty(0), *tables]),
        np.cumsum([0, *map(len, tables)])[:-1].astype(np.int64),
        n_steps,
        n_bins,
        n_leaves - 1,
        coded,
        np.concatenate([np.empty(0, dtype=np.uint8), *subsets]).astype(np.uint8),
        values.copy(),  # the kernel takes no read-only arrays
    )
    return BinnedPredictor(trees, bool(n_bins.max(initial=0) < MAX_NARROW_CODES))


_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)


@numba.njit(inline="always")
def _round(scores):  # type: ignore[no-untyped-def]
    """Round scores, (n,), to float32: the sum of two float32 rounded once is their float32 sum."""
    for i in range(len(scores)):
        scores[i] = np.float64(np.float32(scores[i]))


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        _MATRIX,
        _BINNED_TREES,
        numba.boolean,
        numba.boolean,
        _F1,
    )
)
def _add_coded_scores(  # type: ignore[no-untyped-def]
    first, step, n_blocks, X, trees, is_narrow, is_float32, scores
):
    """Add the sum of all trees to the scores, for every step-th block of rows. is_narrow: all codes fit uint8."""
    n_asked = len(trees.features)
    narrow = np.empty((n_asked if is_narrow else 0, CODED_AT_ONCE), dtype=np.uint8)
    wide = np.empty((0 if is_narrow else n_asked, CODED_AT_ONCE), dtype=np.uint16)
    column, codes = np.empty(CODED_AT_ONCE), np.empty(CODED_AT_ONCE, dtype=np.int64)
    leaves = np.empty(CODED_AT_ONCE, dtype=np.uint16)
    spare = np.empty(CODED_AT_ONCE, dtype=np.uint8)
    for block in range(first, n_blocks, step):
        low = block * CODED_AT_ONCE
        n = min(CODED_AT_ONCE, len(X) - low)
        for u in range(n_asked):
            feature, missing, n_steps = trees.features[u], trees.missing[u], trees.n_steps[u]
            for i in range(n):
                x = X[low + i, feature]
                known = n_steps >= 0 or 0.0 <= x < missing
                column[i] = x if known else np.nan
            if n_steps >= 0:
                find_bins(column[:n], trees.tables[trees.starts[u] :], n_steps, missing, codes[:n])
            else:
                for i in range(n):
                    codes[i] = missing if np.isnan(column[i]) else np.int64(column[i])
            if is_narrow:
                for i in range(n):
                    narrow[u, i] = codes[i]
            else:
                for i in range(n):
                    wide[u, i] = codes[i]
        at = leaves[:n]
        s = 0
        for t in range(len(trees.n_splits)):
            values = trees.values[s + t :]
            splits = trees.splits[s : s + trees.n_splits[t]]
            if is_narrow:
                find_leaves(narrow, splits, trees.subsets, spare, at)
            else:
                find_leaves(wide, splits, trees.subsets, spare, at)
            s += trees.n_splits[t]
            for i in range(n):
                scores[low + i] += values[at[i]]
            if is_float32:
                _round(scores[low : low + n])


class Nodes(NamedTuple):
    """Trees as linked nodes. All arrays but `root`, `depth` and `sets` have a value per node."""

    root: Any
    depth: Any
    """Shape (n_trees,), int64."""
    feature: Any
    threshold: Any
    """For a categorical feature its number of categories."""
    missing_above: Any
    set: Any
    """For a categorical feature the index of the first word of the set above, else -1."""
    child: Any
    """Children of node k: below at 2k, above at 2k + 1."""
    mean: Any
    """Value of a leaf; for another node the mean of its leaves, weighted by mass."""
    sets: Any
    """Shape (n_words,), uint64."""


_I1, _I4, _F1 = numba.int64[::1], numba.int32[::1], numba.float64[::1]
_NODES = numba.types.NamedTuple(
    (_I1, _I1, _I4, _F1, numba.boolean[::1], _I1, _I4, _F1, numba.uint64[::1]), Nodes
)


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.uint16[::1],
        _F1,
        _F1,
        _NODES,
    ),
    error_model="numpy",
)
def _link_tree(tree, root, split_leaf, values, weights, nodes):  # type: ignore[no-untyped-def]
    """Write the linked nodes of one tree into `nodes`, from index `root` on. values, weights: of the leaves."""
    n_splits = len(split_leaf)
    hangs_at = np.empty(n_splits + 1, dtype=np.int64)  # which entry of `child` names a leaf
    level = np.empty(n_splits + 1, dtype=np.int64)
    weight = np.empty(2 * n_splits + 1)
    depth = level[0] = 0
    for s in range(n_splits):
        leaf = split_leaf[s]
        if s > 0:
            nodes.child[hangs_at[leaf]] = root + s
        hangs_at[leaf] = 2 * (root + s) + 1
        hangs_at[s + 1] = 2 * (root + s)
        level[leaf] += 1
        level[s + 1] = level[leaf]
        depth = max(depth, level[leaf])
    for leaf in range(n_splits + 1):
        node = root + n_splits + leaf
        nodes.child[hangs_at[leaf]] = node
        nodes.child[2 * node] = nodes.child[2 * node + 1] = node
        nodes.mean[node] = values[leaf]
        weight[n_splits + leaf] = weights[leaf]
    for s in range(n_splits - 1, -1, -1):  # children come after their parents
        below, above = nodes.child[2 * (root + s)], nodes.child[2 * (root + s) + 1]
        weight[s] = weight[below - root] + weight[above - root]
        share = weight[above - root] / weight[s] if weight[s] > 0.0 else 0.5
        nodes.mean[root + s] = share * nodes.mean[above] + (1.0 - share) * nodes.mean[below]
    nodes.root[tree] = root
    nodes.depth[tree] = depth


def link(
    n_leaves: Integers,
    splits: npt.NDArray[np.void],
    values: Floats,
    weights: Floats,
    sets: npt.NDArray[np.uint64],
    n_categories: Integers,
) -> Nodes:
    """Return trees, given as lists of splits, as linked nodes; see `boosting.tree_sum.TreeSum` for the arrays."""
    n_trees, n_nodes = len(n_leaves), int(2 * n_leaves.sum()) - len(n_leaves)
    nodes = Nodes(
        np.empty(n_trees, dtype=np.int64),
        np.empty(n_trees, dtype=np.int64),
        np.zeros(n_nodes, dtype=np.int32),
        np.zeros(n_nodes),
        np.zeros(n_nodes, dtype=np.bool_),
        np.full(n_nodes, NO_SET),
        np.empty(2 * n_nodes, dtype=np.int32),
        np.empty(n_nodes),
        sets.copy(),
    )
    # Copied, since the kernel takes no read-only arrays.
    split_leaf, values, weights = splits["leaf"].copy(), values.copy(), weights.copy()
    first_split = first_leaf = 0
    for t, n in enumerate(n_leaves.tolist()):
        root = first_split + first_leaf
        of_splits, of_leaves = (
            slice(first_split, first_split + n - 1),
            slice(first_leaf, first_leaf + n),
        )
        _link_tree(t, root, split_leaf[of_splits], values[of_leaves], weights[of_leaves], nodes)
        for name in ("feature", "threshold", "missing_above", "set"):
            getattr(nodes, name)[root : root + n - 1] = splits[name][of_splits]
        first_split, first_leaf = of_splits.stop, of_leaves.stop
    is_set = nodes.set != NO_SET
    nodes.threshold[is_set] = n_categories[nodes.feature[is_set]]
    return nodes


_U8 = numba.uint64


@kernel(_U8(_MATRIX, _NODES, numba.boolean, _U8, _U8), inner=True, forceinline=True, _nrt=False)
def _step(X, nodes, with_sets, row, node):  # type: ignore[no-untyped-def]
    x = X[row, np.uint64(nodes.feature[node])]
    above = (x > nodes.threshold[node]) | (np.isnan(x) & nodes.missing_above[node])
    if with_sets and nodes.set[node] != NO_SET:
        above = nodes.missing_above[node]
        if 0.0 <= x < nodes.threshold[node]:  # a value that is no category counts as missing
            category = np.uint64(x)
            word = nodes.sets[np.uint64(nodes.set[node]) + (category >> np.uint64(6))]
            above = ((word >> (category & np.uint64(63))) & np.uint64(1)) != 0
    return np.uint64(nodes.child[np.uint64(2) * node + np.uint64(above)])


@numba.njit(inline="always")
def _walk_rows(X, nodes, with_sets, tree, low, high, at):  # type: ignore[no-untyped-def]
    """Write the nodes at which rows end in a tree to `at`.

    Eight rows walk at a time: their steps do not wait for each other, and stay in registers.
    """
    root, depth = np.uint64(nodes.root[tree]), nodes.depth[tree]
    eights = low + (high - low) // 8 * 8
    for k in range(low, eights, 8):
        i = np.uint64(k)
        a = b = c = d = e = f = g = h = root
        for _ in range(depth):
            a = _step(X, nodes, with_sets, i, a)
            b = _step(X, nodes, with_sets, i + np.uint64(1), b)
            c = _step(X, nodes, with_sets, i + np.uint64(2), c)
            d = _step(X, nodes, with_sets, i + np.uint64(3), d)
            e = _step(X, nodes, with_sets, i + np.uint64(4), e)
            f = _step(X, nodes, with_sets, i + np.uint64(5), f)
            g = _step(X, nodes, with_sets, i + np.uint64(6), g)
            h = _step(X, nodes, with_sets, i + np.uint64(7), h)
        j = k - low
        at[j], at[j + 1], at[j + 2], at[j + 3] = a, b, c, d
        at[j + 4], at[j + 5], at[j + 6], at[j + 7] = e, f, g, h
    for k in range(eights, high):
        a, before = root, np.uint64(len(nodes.feature))
        while a != before:  # a leaf is its own child
            before = a
            a = _step(X, nodes, with_sets, np.uint64(k), a)
        at[k - low] = a


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        _MATRIX,
        _NODES,
        numba.int64,
        numba.int64,
        numba.boolean,
        _F1,
    )
)
def _add_scores(  # type: ignore[no-untyped-def]
    first_task, step, n_tasks, X, nodes, first, last, is_float32, scores
):
    """Add the sum of trees first:last to the scores, for every step-th task; see `add_scores`."""
    size = WALKED_AT_ONCE if last - first == 1 else ROWS_PER_TREE
    at = np.empty(ROWS_PER_TREE, dtype=np.int64)
    for task in range(first_task, n_tasks, step):
        stop = min((task + 1) * TASK_ROWS, X.shape[0])
        for low in range(task * TASK_ROWS, stop, size):
            high = min(low + size, stop)
            for tree in range(first, last):
                if len(nodes.sets) > 0:
                    _walk_rows(X, nodes, True, tree, low, high, at)
                else:
                    _walk_rows(X, nodes, False, tree, low, high, at)
                for k in range(high - low):
                    scores[low + k] += nodes.mean[at[k]]
                if is_float32:
                    _round(scores[low:high])


def add_scores(
    X: Floats, nodes: Nodes, first: int, last: int, scores: Floats, is_float32: bool = False
) -> None:
    """Add the sum of trees first:last to the scores of rows, tree by tree, in threads if that pays.

    scores: (n_rows,); the sum of a row does not depend on the other rows.
    is_float32: whether the sum is rounded to float32 after each tree.

    O(n_rows · n_trees · depth).
    """
    n_tasks = -(-len(X) // TASK_ROWS)
    if n_tasks == 1:
        _add_scores(0, 1, 1, X, nodes, first, last, is_float32, scores)
    else:
        pool = ThreadPool(len(X) * int(nodes.depth[first:last].sum()))
        pool.run(_add_scores, n_tasks, X, nodes, first, last, is_float32, scores)


@kernel(numba.void(_MATRIX, _NODES, numba.float64[:, ::1]))
def add_parts(X, nodes, parts):  # type: ignore[no-untyped-def]
    """Add to parts[row, feature] the change of the mean score at each node on the row's path that splits on it.

    X, parts: (n_rows, n_features) float64.
    """
    for i in range(X.shape[0]):
        for t in range(len(nodes.root)):
            node = np.uint64(nodes.root[t])
            for _ in range(nodes.depth[t]):
                child = _step(X, nodes, True, np.uint64(i), node)
                parts[i, nodes.feature[node]] += nodes.mean[child] - nodes.mean[node]
                node = child


def cover_nodes(nodes: Nodes, leaf_weight: Floats) -> Floats:
    """Return the sample weight of the training rows in each node; `leaf_weight` is that of all leaves, tree by tree."""
    cover = np.zeros(len(nodes.mean))
    cover[nodes.child[::2] == np.arange(len(cover))] = leaf_weight
    levels, at = [], nodes.root
    while len(at):
        inner = at[nodes.child[2 * at] != at]
        levels.append(inner)
        at = np.concatenate([nodes.child[2 * inner], nodes.child[2 * inner + 1]])
    for inner in reversed(levels):
        cover[inner] = cover[nodes.child[2 * inner]] + cover[nodes.child[2 * inner + 1]]
    return cover


@kernel(numba.void(_MATRIX, _NODES, _F1, _F1, _F1, numba.float64[:, ::1]), error_model="numpy")
def _add_shapley(X, nodes, cover, points, masses, parts):  # type: ignore[no-untyped-def]
    """Add the Shapley values of rows to `parts`; see `add_shapley`. points, masses: a quadrature rule on [0, 1]."""
    deepest = 1
    for t in range(len(nodes.root)):
        deepest = max(deepest, nodes.depth[t])
    # By level of the walk: the node, the children that were visited, and the features on the path to it. A row that is
    # unknown but for some features goes with it (`follows`) where it is known, else a fraction of its mass does.
    at = np.empty(deepest + 1, dtype=np.int64)
    visited = np.empty(deepest + 1, dtype=np.int64)
    length = np.empty(deepest + 1, dtype=np.int64)
    feature = np.empty((deepest + 1, deepest), dtype=np.int64)
    fraction = np.empty((deepest + 1, deepest))
    follows = np.empty((deepest + 1, deepest))
    before, others = np.empty(deepest + 1), np.empty(deepest)
    for i in range(X.shape[0]):
        for t in range(len(nodes.root)):
            level, at[0], visited[0], length[0] = 0, nodes.root[t], 0, 0
            mean = nodes.mean[nodes.root[t]]
            while level >= 0:
                node, n = at[level], length[level]
                if nodes.child[2 * node] == node:
                    for k in range(n):
                        others[k] = 0.0
                    for q in range(len(points)):
                        x, product = points[q], masses[q]
                        for k in range(n):
                            before[k] = product
                            product *= follows[level, k] * x + fraction[level, k] * (1.0 - x)
                        product = 1.0
                        for k in range(n - 1, -1, -1):
                            others[k] += before[k] * product
                            product *= follows[level, k] * x + fraction[level, k] * (1.0 - x)
                    for k in range(n):
                        gain = follows[level, k] - fraction[level, k]
                        parts[i, feature[level, k]] += (nodes.mean[node] - mean) * gain * others[k]
                    level -= 1
                    continue
                if visited[level] == 2:
                    level -= 1
                    continue
                child = nodes.child[2 * node + visited[level]]
                visited[level] += 1
                share = cover[child] / cover[node] if cover[node] > 0.0 else 0.5
                followed = np.int64(_step(X, nodes, True, np.uint64(i), np.uint64(node))) == child
                if share == 0.0 and not followed:
                    continue  # nothing comes here
                split, last = nodes.feature[node], n
                for k in range(n):
                    feature[level + 1, k] = feature[level, k]
                    fraction[level + 1, k] = fraction[level, k]
                    follows[level + 1, k] = follows[level, k]
                    if feature[level, k] == split:
                        last = k
                if last == n:
                    feature[level + 1, n] = split
                    fraction[level + 1, n] = follows[level + 1, n] = 1.0
                    n += 1
                fraction[level + 1, last] *= share
                follows[level + 1, last] *= 1.0 if followed else 0.0
                level += 1
                at[level], visited[level], length[level] = child, 0, n


def _count_points(nodes: Nodes, n_features: int) -> int:
    """Return the number of Gauss quadrature points that makes the Shapley values of every leaf exact."""
    return (min(int(nodes.depth.max(initial=1)), n_features) + 1) // 2


def count_shapley_steps(nodes: Nodes, n_features: int) -> int:
    """Return the greatest number of elementary steps that `add_shapley` takes for one row."""
    n_leaves = (len(nodes.mean) + len(nodes.root)) // 2
    points = _count_points(nodes, n_features)
    return 4 * points * points * n_leaves


def add_shapley(X: Floats, nodes: Nodes, cover: Floats, parts: Floats) -> None:
    """Add the exact Shapley values of each row's features, for a sum of trees, to `parts`.

    The game: of a row only some features are known. At a split on one of them the row goes its way; at any other it is
    divided between both children by the training mass in them, and v is the mean value of the leaves that it reaches.
    The Shapley value of a feature is its mean gain v(with it) - v(without it) over all orders in which the features
    become known (Lundberg, Erion & Lee 2018). The mean is an integral over [0, 1] of a polynomial for each leaf, and
    Gauss's quadrature is exact for it; all its terms are positive, so that none cancel.

    nodes: trees; no node has two parents.
    cover: (n_nodes,); see `cover_nodes`.
    parts: (n_rows, n_features).

    O(n_rows · n_leaves · d²), where d is the number of features on a path.
    """
    points, masses = np.polynomial.legendre.leggauss(_count_points(nodes, X.shape[1]))
    _add_shapley(X, nodes, cover, 0.5 * (points + 1.0), 0.5 * masses, parts)


@kernel(
    numba.boolean(
        _MATRIX, _MATRIX, _F1, _NODES, numba.float64[:, ::1], numba.int64, numba.float64[:, ::1]
    )
)
def _add_mixed(X, references, shares, nodes, orders, most, parts):  # type: ignore[no-untyped-def]
    """Add Shapley values against reference rows to `parts`; return False after visiting more than `most` nodes.

    orders[a, b] = a! b! / (a + b + 1)!.
    """
    deepest = 1
    for t in range(len(nodes.root)):
        deepest = max(deepest, nodes.depth[t])
    # By level of the walk: the node, and how many of its children are still to be visited on which side.
    at = np.empty(deepest + 1, dtype=np.uint64)
    stage = np.empty(deepest + 1, dtype=np.int64)
    # Of each feature whose value a path takes from one of the two rows: 1 for the row, 2 for the reference.
    side = np.zeros(X.shape[1], dtype=np.int64)
    taken = np.empty(deepest + 1, dtype=np.int64)
    visited = 0
    for i in range(X.shape[0]):
        row = np.uint64(i)
        for r in range(len(shares)):
            reference = np.uint64(r)
            for t in range(len(nodes.root)):
                level, n_row, n_reference = 0, 0, 0
                at[0], stage[0] = np.uint64(nodes.root[t]), 0
                while level >= 0:
                    node = at[level]
                    if np.uint64(nodes.child[np.uint64(2) * node]) == node:
                        value = shares[r] * nodes.mean[node]
                        for k in range(n_row + n_reference):
                            j = taken[k]
                            if side[j] == 1:
                                parts[i, j] += value * orders[n_row - 1, n_reference]
                            else:
                                parts[i, j] -= value * orders[n_row, n_reference - 1]
                        level -= 1
                        continue
                    j = nodes.feature[node]
                    if stage[level] == 0:
                        visited += 1
                        if visited > most:
                            return False
                        mine = _step(X, nodes, True, row, node)
                        other = _step(references, nodes, True, reference, node)
                        stage[level] = 3
                        following = other if side[j] == 2 else mine
                        if side[j] == 0 and mine != other:
                            stage[level], side[j] = 1, 1
                            taken[n_row + n_reference] = j
                            n_row += 1
                        level += 1
                        at[level], stage[level] = following, 0
                    elif stage[level] == 1:
                        stage[level], side[j] = 2, 2
                        n_row, n_reference = n_row - 1, n_reference + 1
                        level += 1
                        at[level], stage[level] = _step(references, nodes, True, reference, node), 0
                    else:
                        if stage[level] == 2:
                            side[j] = 0
                            n_reference -= 1
                        level -= 1
    return True


def count_mixed(nodes: Nodes, n_features: int, most: int) -> int:
    """Return an upper bound, at most `most`, on the nodes that `mixed_shapley` visits per row and reference row.

    Each inner node is visited once for each way to it, and each way takes a side of a feature once.
    """
    depth = np.maximum(nodes.depth, 1)
    ways = np.exp2(np.minimum(np.minimum(depth, n_features), 62))
    most = int(min(most, (depth * ways).sum()))
    at, counts = np.unique(nodes.root, return_counts=True)
    times: npt.NDArray[Any] = counts
    total = 0.0
    while total < most:
        inner = nodes.child[2 * at] != at
        at, times = at[inner], times[inner]
        if not len(at):
            return int(total)
        total += times.sum()
        children = np.concatenate([nodes.child[2 * at], nodes.child[2 * at + 1]])
        at, place = np.unique(children, return_inverse=True)
        times = np.bincount(place, weights=np.concatenate([times, times]))
    return most


def mixed_shapley(
    x: Floats, references: Floats, shares: Floats, nodes: Nodes, most: int
) -> Floats | None:
    """Return the exact Shapley values of one row against reference rows; None if that takes more than `most` nodes.

    The game is that of `core.explain.shapley_estimate`: an unknown feature has its value in a reference row. Where the
    row and the reference part, both sides are followed. A leaf that takes a features from the row and b from the
    reference is reached by all sets that have the first and not the others, which settles its value for each (Lundberg
    et al. 2020, Algorithm 3). Several nodes may lead to one child.

    references: (n_references, n_features). shares: (n_references,), their weights. Of `nodes` only `mean` of the leaves
    is read.
    """
    size = min(int(nodes.depth.max(initial=1)), len(x)) + 1
    if size > MAX_PATH_FEATURES:
        return None
    counts = range(size)
    orders = np.array([[1.0 / ((a + b + 1) * math.comb(a + b, a)) for b in counts] for a in counts])
    parts = np.zeros((1, len(x)))
    done = _add_mixed(x[np.newaxis], references, shares, nodes, orders, most, parts)
    return parts[0] if done else None


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        _MATRIX,
        _MATRIX,
        _I1,
        _I1,
        numba.int64[:, :, ::1],
        _I1,
        _I1,
        _NODES,
        _F1,
    )
)
def _add_mixed_scores(  # type: ignore[no-untyped-def]
    first_task, step, n_tasks, X, references, row, reference, position, size, start, nodes, scores
):
    """Write each mixed row's sum of all trees; see `add_mixed_scores`. position: (n_pairs, n_orders, n_features)."""
    n_orders, deepest, most_nodes = position.shape[1], 1, 1
    for t in range(len(nodes.root)):
        end = nodes.root[t + 1] if t + 1 < len(nodes.root) else len(nodes.mean)
        most_nodes, deepest = max(most_nodes, end - nodes.root[t]), max(deepest, nodes.depth[t])
    # Whether a row, or a reference, goes above at a node.
    goes = np.zeros((most_nodes, X.shape[0]), dtype=np.uint8)
    goes_reference = np.zeros((most_nodes, references.shape[0]), dtype=np.uint8)
    # A path takes some features from the row and some from the reference. Of each order, the last and the first place
    # of the former, then of the latter. The way that is gone comes first, then those that are still to be gone, with
    # the reference's value of a feature.
    places = np.empty((deepest + 2, n_orders, 4), dtype=np.int64)
    at, feature = np.empty(deepest + 2, np.uint64), np.empty(deepest + 2, np.int64)
    n_before = np.empty(deepest + 2, np.int64)
    side = np.zeros(X.shape[1], dtype=np.int64)  # 1: the row's value; 2: the reference's
    taken = np.empty(deepest + 1, dtype=np.int64)
    room_start = np.empty(PAIRS_PER_TASK, dtype=np.int64)
    for task in range(first_task, n_tasks, step):
        begin, end = task * PAIRS_PER_TASK, min((task + 1) * PAIRS_PER_TASK, len(size))
        low_row, high_row, n_room = row[begin], row[begin], 0
        for p in range(begin, end):
            low_row, high_row = min(low_row, row[p]), max(high_row, row[p])
            room_start[p - begin] = n_room
            n_room += 2 * n_orders * (size[p] + 1)
        # Of each run of a pair's mixed rows: how the sum changes with the k-th feature, k from 0 to n.
        room = np.zeros(n_room)
        for t in range(len(nodes.root)):
            root = np.uint64(nodes.root[t])
            last = nodes.root[t + 1] if t + 1 < len(nodes.root) else len(nodes.mean)
            for q in range(root, last):
                node = np.uint64(q)
                above = np.uint64(nodes.child[np.uint64(2) * node + np.uint64(1)])
                if above != node:
                    for k in range(low_row, high_row + 1):
                        goes[node - root, k] = _step(X, nodes, True, np.uint64(k), node) == above
                    for k in range(references.shape[0]):
                        goes_above = _step(references, nodes, True, np.uint64(k), node) == above
                        goes_reference[node - root, k] = goes_above
            for p in range(begin, end):
                i, r, n = np.uint64(row[p]), np.uint64(reference[p]), size[p]
                for o in range(n_orders):
                    places[0, o, 0] = places[0, o, 2] = -1
                    places[0, o, 1] = places[0, o, 3] = n
                n_taken, n_left, node = 0, 0, root
                while True:
                    is_reached = True
                    while np.uint64(nodes.child[np.uint64(2) * node]) != node:
                        mine = np.uint64(goes[node - root, i])
                        other = np.uint64(goes_reference[node - root, r])
                        if mine != other:
                            j = nodes.feature[node]
                            if side[j] == 2:
                                mine = other
                            elif side[j] == 0:
                                by_row = by_reference = False
                                for o in range(n_orders):
                                    place = position[p, o, j]
                                    last_row, first_row = places[0, o, 0], places[0, o, 1]
                                    last_other, first_other = places[0, o, 2], places[0, o, 3]
                                    # Some number of features, from 1 to n - 1, is such that all of the row's are known
                                    # and none of the reference's: forwards, or backwards.
                                    by_reference |= max(last_row, 0) < min(
                                        first_other, place, n - 1
                                    )
                                    by_reference |= max(n - first_row, 1) < n - max(
                                        last_other, place
                                    )
                                    by_row |= max(last_row, place) < min(first_other, n - 1)
                                    by_row |= max(n - min(first_row, place), 1) < min(
                                        n - last_other, n
                                    )
                                if by_reference:
                                    n_left += 1
                                    at[n_left] = nodes.child[np.uint64(2) * node + other]
                                    feature[n_left], n_before[n_left] = j, n_taken
                                    for o in range(n_orders):
                                        place = position[p, o, j]
                                        places[n_left, o, 0] = places[0, o, 0]
                                        places[n_left, o, 1] = places[0, o, 1]
                                        places[n_left, o, 2] = max(places[0, o, 2], place)
                                        places[n_left, o, 3] = min(places[0, o, 3], place)
                                if not by_row:
                                    is_reached = False
                                    break
                                for o in range(n_orders):
                                    place = position[p, o, j]
                                    places[0, o, 0] = max(places[0, o, 0], place)
                                    places[0, o, 1] = min(places[0, o, 1], place)
                                side[j], taken[n_taken] = 1, j
                                n_taken += 1
                        node = np.uint64(nodes.child[np.uint64(2) * node + mine])
                    if is_reached:
                        value = nodes.mean[node]
                        for o in range(n_orders):
                            first = room_start[p - begin] + 2 * o * (n + 1)
                            low, high = max(places[0, o, 0] + 1, 1), min(places[0, o, 3], n - 1)
                            added = value if low <= high else 0.0
                            room[first + low] += added
                            room[first + high + 1] -= added
                            low, high = n - places[0, o, 1], n - 1 - places[0, o, 2]
                            low, high = max(low, 1), min(high, n - 1)
                            added = value if low <= high else 0.0
                            room[first + n + 1 + low] += added
                            room[first + n + 1 + high + 1] -= added
                    kept = 0 if n_left == 0 else n_before[n_left]
                    for k in range(kept, n_taken):
                        side[taken[k]] = 0
                    if n_left == 0:
                        break
                    j, node = feature[n_left], at[n_left]
                    side[j], taken[kept] = 2, j
                    n_taken = kept + 1
                    for o in range(n_orders):
                        for k in range(4):
                            places[0, o, k] = places[n_left, o, k]
                    n_left -= 1
        for p in range(begin, end):
            for part in range(2 * n_orders):
                total, first = 0.0, room_start[p - begin] + part * (size[p] + 1)
                for k in range(1, size[p]):
                    total += room[first + k]
                    scores[start[p] + part * (size[p] - 1) + k - 1] = total


def add_mixed_scores(mixed: MixedRows, nodes: Nodes, scores: Floats) -> None:
    """Write the score (sum of all trees) of each mixed row to `scores`, which are 0 before.

    A path on which the row and the reference of a pair part is followed to both sides, as far as some mixed row goes
    there. A leaf that needs some features of the row and some of the reference is reached by one run of each order:
    from where the last of the former is known to where the first of the latter is. So a tree is walked once for a pair,
    and not once for each mixed row.

    nodes: `mean` of the leaves is all that is read of it. The nodes of a tree follow its root.
    scores: (n_mixed,); those of a pair do not depend on the other pairs.
    """
    n_tasks = -(-len(mixed.size) // PAIRS_PER_TASK)
    pool = ThreadPool(len(scores) * int(nodes.depth.sum()))
    of_pairs = mixed.row, mixed.reference, mixed.position, mixed.size, mixed.start
    pool.run(_add_mixed_scores, n_tasks, mixed.rows, mixed.references, *of_pairs, nodes, scores)
