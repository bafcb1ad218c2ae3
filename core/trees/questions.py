"""Trees as questions to many rows at a time: by which an ensemble scores a table.

The thresholds of a feature, of all trees together, divide it into intervals; once a row's values are
coded by interval, x > threshold is a comparison of small numbers, exactly. A block of rows then
meets each split of a tree once, as in training (`routing`): a handful of vector instructions on
bytes, whatever the depth.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.coding import Team
from core.coding.categories import unpack
from core.kernel import kernel
from core.ranker import Floats
from core.trees.cuts import NO_SET

from .coding import Integers, find_bins
from .routing import find_leaves

MOST_NARROW = 256  # codes, the missing one's among them, that uint8 has room for
MOST_CODES = 1 << 16

# Sides of categories, a byte each for every split: more are not worth the memory.
MOST_SIDES = 1 << 26

ROWS_AT_ONCE = 1024


class Forest(NamedTuple):
    """Trees as questions.

    Attributes
    ----------
    features : ndarray of shape (n_asked,), int64
        Those that are asked for.
    tables : ndarray of float64
        Their thresholds, as `coding.find_bins` wants them.
    starts, n_steps, missing : ndarray of shape (n_asked,), int64
        Where the table of each starts, the steps of its search, the code of a missing value.
    n_splits : ndarray of shape (n_trees,), int64
    splits : ndarray of shape (n_splits, 5), int64
        The leaf, the place of the feature in `features`, the first code above the cut, how many
        codes follow it above the cut, and the place of the sides in `sides`, -1 if it has none;
        where it has some, first and number mean nothing.
    sides : ndarray of uint8
        1 for each category above, then for the missing.
    values : ndarray of shape (n_splits + n_trees,), float64
        Of the leaves.
    """

    features: Any
    tables: Any
    starts: Any
    n_steps: Any
    missing: Any
    n_splits: Any
    splits: Any
    sides: Any
    values: Any


_I1, _F1 = numba.int64[::1], numba.float64[::1]
_FOREST = numba.types.NamedTuple(
    (_I1, _F1, _I1, _I1, _I1, _I1, numba.int64[:, ::1], numba.uint8[::1], _F1), Forest
)


@dataclass(frozen=True)
class Questions:
    """Trees as questions, and whether the codes that answer them have room in uint8."""

    forest: Forest
    is_narrow: bool

    def add_scores(self, X: Floats, scores: Floats) -> None:
        """Add the values of all trees to the scores, tree by tree."""
        n_blocks = -(-len(X) // ROWS_AT_ONCE)
        team = Team(len(X) * len(self.forest.n_splits))
        team.run(_add_scores, n_blocks, X, self.forest, self.is_narrow, scores)


def ask(
    n_leaves: Integers,
    splits: npt.NDArray[np.void],
    values: Floats,
    sets: npt.NDArray[np.uint64],
    n_categories: Integers,
) -> Questions | None:
    """Turn trees into questions; None where there are too many codes. See `tree_sum.TreeSum`."""
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
    n_sides = int((n_bins[asked[is_set]] + 1).sum())
    if n_bins.max(initial=0) >= MOST_CODES or n_sides > MOST_SIDES:
        return None
    n_steps = np.array([len(column).bit_length() for column in edges], dtype=np.int64)
    tables = [np.full((1 << k) - 1, np.inf) for k in n_steps.tolist()]
    for table, column in zip(tables, edges, strict=True):
        table[: len(column)] = column
    n_steps[n_categories[features] > 0] = -1
    last = n_bins[asked] - 1 + splits["missing_above"]
    questions = np.column_stack(
        [splits["leaf"], asked, first, last - first, np.full_like(first, -1)]
    )
    sides = []
    n_so_far = 0
    for s in np.flatnonzero(is_set).tolist():
        held = unpack(sets, splits["set"][s], n_bins[asked[s]])
        sides.append(np.append(held, splits["missing_above"][s]))
        questions[s, 4] = n_so_far
        n_so_far += len(sides[-1])
    forest = Forest(
        features,
        np.concatenate([np.empty(0), *tables]),
        np.cumsum([0, *map(len, tables)])[:-1].astype(np.int64),
        n_steps,
        n_bins,
        n_leaves - 1,
        questions,
        np.concatenate([np.empty(0, dtype=np.uint8), *sides]).astype(np.uint8),
        values.copy(),  # as the kernel takes none that forbid writing
    )
    return Questions(forest, bool(n_bins.max(initial=0) < MOST_NARROW))


_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)


@kernel(numba.void(numba.int64, numba.int64, numba.int64, _MATRIX, _FOREST, numba.boolean, _F1))
def _add_scores(first, step, n_blocks, X, forest, is_narrow, scores):  # type: ignore[no-untyped-def]
    """Add the trees' values to the scores of every step-th block of rows.

    is_narrow: whether uint8 has room for all codes.
    """
    n_asked = len(forest.features)
    narrow = np.empty((n_asked if is_narrow else 0, ROWS_AT_ONCE), dtype=np.uint8)
    wide = np.empty((0 if is_narrow else n_asked, ROWS_AT_ONCE), dtype=np.uint16)
    column, found = np.empty(ROWS_AT_ONCE), np.empty(ROWS_AT_ONCE, dtype=np.int64)
    leaves = np.empty(ROWS_AT_ONCE, dtype=np.uint16)
    room = np.empty(ROWS_AT_ONCE, dtype=np.uint8)
    for block in range(first, n_blocks, step):
        low = block * ROWS_AT_ONCE
        n = min(ROWS_AT_ONCE, len(X) - low)
        for u in range(n_asked):
            feature, missing, n_steps = forest.features[u], forest.missing[u], forest.n_steps[u]
            for i in range(n):
                x = X[low + i, feature]
                known = n_steps >= 0 or 0.0 <= x < missing
                column[i] = x if known else np.nan
            if n_steps >= 0:
                find_bins(
                    column[:n], forest.tables[forest.starts[u] :], n_steps, missing, found[:n]
                )
            else:
                for i in range(n):
                    found[i] = missing if np.isnan(column[i]) else np.int64(column[i])
            if is_narrow:
                for i in range(n):
                    narrow[u, i] = found[i]
            else:
                for i in range(n):
                    wide[u, i] = found[i]
        at = leaves[:n]
        s = 0
        for t in range(len(forest.n_splits)):
            values = forest.values[s + t :]
            splits = forest.splits[s : s + forest.n_splits[t]]
            if is_narrow:
                find_leaves(narrow, splits, forest.sides, room, at)
            else:
                find_leaves(wide, splits, forest.sides, room, at)
            s += forest.n_splits[t]
            for i in range(n):
                scores[low + i] += values[at[i]]
