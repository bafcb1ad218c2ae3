"""Rows coded once, of which draws are taken that follow from their values."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.coding import Bins, Codes, count_rows, fit_bins
from core.holdout import row_keys, scramble_keys
from core.ranker import Floats

from .node import Mass

Rows = npt.NDArray[np.int64]


class CodedRows(NamedTuple):
    """Coded rows, positives first, with their shares of all weight."""

    bins: Bins
    codes: Codes
    shares: Floats
    n_positives: int
    keys: npt.NDArray[np.uint64]
    stands_for: Floats

    @property
    def mass(self) -> Mass:
        """Weight of each class, as labelled."""
        m = self.n_positives
        return Mass(float(self.shares[:m].sum()), float(self.shares[m:].sum()))

    def draw(self, subsample: float, seed: int) -> tuple[Rows, int]:
        """Draw a share of the rows of each class, equal rows together; say how many are positive."""
        return draw_rows(self.keys, self.n_positives, subsample, seed)


def draw_rows(
    keys: npt.NDArray[np.uint64], n_positives: int, subsample: float, seed: int
) -> tuple[Rows, int]:
    """Draw a share of the rows of each class, positives first, by their keys; see `CodedRows.draw`."""
    drawn = scramble_keys(keys, seed)
    rows = []
    for first, of_class in ((0, drawn[:n_positives]), (n_positives, drawn[n_positives:])):
        most = max(np.uint64(subsample * (2.0**64 - 2.0**11)), of_class.min())  # at least one
        rows.append(first + np.flatnonzero(of_class <= most))
    return np.concatenate(rows), len(rows[0])


def code_rows(
    X: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    max_bins: int,
    n_categories: Rows,
) -> CodedRows:
    """Learn the bins of every column, and code the rows with them, positives first."""
    rows = np.concatenate([np.flatnonzero(positive), np.flatnonzero(~positive)])
    bins, codes = fit_bins(X, rows, weight[rows], max_bins, n_categories)
    keys = row_keys(X, positive, weight)[rows]
    shares = weight[rows] / weight.sum()
    return CodedRows(bins, codes, shares, int(positive.sum()), keys, count_rows(weight[rows]))
