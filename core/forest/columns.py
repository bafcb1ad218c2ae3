"""The columns on which forests grow: codes that are all ordered, and the way back from codes to values.

A split of a categorical feature divides the order of its categories by their fraction of positives among all training
rows. An order once for all is as good as a new one in each node (Wright & König 2019), and few distinct sets of
categories occur in a forest.

References
----------
M. N. Wright and I. R. König, "Splitting on categorical predictors in random forests", PeerJ 7:e6339, 2019.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.base.state import Integers
from core.base.training import TrainingData
from core.boosting.tree_sum import SPLITS
from core.coding.bins import Bins, Codes, code_columns, learn_bins
from core.coding.categories import Words, effective_counts
from core.coding.folds import PRIOR_ROWS
from core.coding.rows import positives_first
from core.trees.category_sets import NO_SET, Sets
from core.trees.target_encoding import Encoded, encode

from .growth import N_CODES

MOST_CATEGORIES = 30
"""Categories of a feature above which numbers replace them; see `core.trees.target_encoding`."""


@dataclass(frozen=True)
class ForestColumns:
    """The coded training rows, positives first, and what their codes stand for."""

    codes: Codes
    """Shape (n_columns, n_rows), uint8."""
    n_positives: int
    mass: Floats
    """Number of rows that each row stands for. Shape (n_rows,)."""
    bins: Bins
    """The categories of a feature have bins in the order of their fractions of positives."""
    encoded: Encoded

    @classmethod
    def of(cls, data: TrainingData, max_bins: int, seed: int) -> "ForestColumns":
        encoded = encode(data, MOST_CATEGORIES, seed)
        rows, n_positives = positives_first(data.positive)
        mass = effective_counts(data.weight)
        bins = learn_bins(
            encoded.X, np.arange(len(rows)), data.weight, max_bins, encoded.n_categories
        )
        category_bins = tuple(
            None if own is None else _in_order(encoded.X[:, j], own, data.positive, mass)
            for j, own in enumerate(bins.category_bins)
        )
        bins = replace(bins, category_bins=category_bins)
        codes = code_columns(encoded.X, rows, bins)
        return cls(codes, n_positives, mass[rows], bins, encoded)

    @property
    def values(self) -> Floats:
        """The middle of each numeric bin, and the number of each bin of categories. Shape (n_columns, 256)."""
        values = np.tile(np.arange(float(N_CODES)), (len(self.codes), 1))
        for own, edges in zip(values, self.bins.edges, strict=True):
            if len(edges):
                bounds = np.concatenate([edges[:1], edges, edges[-1:]])
                own[: len(edges) + 1] = 0.5 * bounds[:-1] + 0.5 * bounds[1:]
        return values

    def turn(self, splits: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.void], Words]:
        """Return splits of codes as splits of values, and the sets of categories that they name.

        splits: (n_splits,) `growth.NODE_SPLIT`.

        Result: (n_splits,) `SPLITS`.
        """
        bins, column, cut = self.bins, splits["column"], splits["cut"]
        turned = np.empty(len(splits), dtype=SPLITS)
        turned["leaf"], turned["feature"] = splits["leaf"], self.encoded.feature[column]
        turned["missing_above"] = splits["missing_above"]
        turned["speaks_of_missing"] = bins.has_missing[column]
        turned["threshold"], turned["set"] = -math.inf, NO_SET
        has_edge = (cut >= 0) & ~bins.is_categorical[column]
        n_edges = np.array([len(edges) for edges in bins.edges])
        first = np.cumsum(n_edges) - n_edges
        edge = first[column[has_edge]] + cut[has_edge]
        turned["threshold"][has_edge] = np.concatenate([*bins.edges, np.empty(0)])[edge]
        is_encoded = np.array([numbers is not None for numbers in self.encoded.numbers])
        by_set = np.flatnonzero((bins.is_categorical | is_encoded)[column])
        distinct, which = np.unique(
            splits[["column", "cut", "missing_above"]][by_set], return_inverse=True
        )
        sets = Sets()
        words, sides = np.empty(len(distinct), dtype=np.int64), np.empty(len(distinct), np.bool_)
        for k, split in enumerate(distinct):
            members, sides[k] = self._above(*split.tolist())
            words[k] = sets.add(int(self.encoded.feature[split["column"]]), members)
        turned["set"][by_set], turned["missing_above"][by_set] = words[which], sides[which]
        turned["threshold"][by_set] = math.nan
        return turned, sets.words

    def _above(
        self, column: int, cut: int, missing_above: bool
    ) -> tuple[npt.NDArray[np.bool_], bool]:
        """Return which categories are above a cut of a column of categories or their numbers, and whether missing are.

        Categories without training rows go with the missing.
        """
        own, edges = self.bins.category_bins[column], self.bins.edges[column]
        if own is not None:
            return np.where(own >= 0, own > cut, missing_above), missing_above
        threshold = float(edges[cut]) if cut >= 0 else -math.inf
        is_known = bool(self.bins.has_missing[column])
        return self.encoded.above(column, threshold, missing_above if is_known else None)


def _in_order(
    column: Floats, bins: Integers, positive: npt.NDArray[np.bool_], mass: Floats
) -> Integers:
    """Return the bins of a feature's categories, numbered by their fraction of positives."""
    known = ~np.isnan(column)
    own, weight = bins[column[known].astype(np.int64)], mass[known]
    n_bins = int(bins.max(initial=-1)) + 1
    total = np.bincount(own, weight, n_bins)
    hits = np.bincount(own, weight * positive[known], n_bins)
    mean = float(mass[positive].sum() / mass.sum())
    fraction = (hits + PRIOR_ROWS * mean) / (total + PRIOR_ROWS)
    place: Any = np.empty(n_bins + 1, dtype=np.int64)
    place[np.argsort(fraction, kind="stable")] = np.arange(n_bins)
    place[-1] = -1  # of a category that no row has
    return np.asarray(place[bins])
