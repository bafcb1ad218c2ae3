"""A table as LeafRank sees it: coded, row by row, positives first."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.coding import Bins, fit_bins
from core.coding.by_row import COLUMNS, by_row

from .preorder import Booleans, Integers
from .splitting import Sample


@dataclass(frozen=True)
class CodedTable:
    """A coded table.

    Attributes
    ----------
    bins : Bins
    words : ndarray of shape (n_blocks, n_words), uint64
        Codes row by row; see `core.coding.by_row`.
    order : ndarray of shape (n_rows,), int64
        Which row of the sample each is: positives first.
    n_positives : int
    blocks : ndarray of shape (n_blocks, 3), int64
        Of each block of 32 columns: its number of words in use, the greatest number of bins of its
        columns, and whether one of them has missing values.
    n_unordered : ndarray of shape (n_blocks, 32), int64
        Of a categorical column its number of bins, else 0.
    n_categories : ndarray of shape (n_features,), int64
    """

    bins: Bins
    words: npt.NDArray[np.uint64]
    order: Integers
    n_positives: int
    blocks: Integers
    n_unordered: Integers
    n_categories: Integers

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.order)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.bins.edges)


def code(sample: Sample, max_bins: int) -> CodedTable:
    """Code a table.

    Parameters
    ----------
    sample : Sample
    max_bins : int
        At most 255.

    Returns
    -------
    CodedTable

    Notes
    -----
    O(n_features · n_rows log n_rows).
    """
    order = np.concatenate([np.flatnonzero(sample.positive), np.flatnonzero(~sample.positive)])
    bins, codes = fit_bins(sample.X, order, sample.weight[order], max_bins, sample.n_categories)
    n_features = len(codes)
    n_blocks = -(-n_features // COLUMNS)
    n_bins = _pad(bins.n_bins, n_blocks)
    has_missing = _pad(bins.has_missing, n_blocks)
    n_used = np.clip(n_features - COLUMNS * np.arange(n_blocks), 0, COLUMNS)
    blocks = np.stack([-(-n_used // 8), n_bins.max(axis=1), has_missing.any(axis=1)], axis=1)
    return CodedTable(
        bins,
        by_row(codes),
        order,
        int(sample.positive.sum()),
        np.ascontiguousarray(blocks, dtype=np.int64),
        n_bins * _pad(bins.is_categorical, n_blocks),
        sample.n_categories,
    )


def _pad(of_features: npt.NDArray[np.int64] | Booleans, n_blocks: int) -> Integers:
    """Put a figure of each feature in blocks of 32, the last one filled up with 0."""
    padded = np.zeros(n_blocks * COLUMNS, dtype=np.int64)
    padded[: len(of_features)] = of_features
    return padded.reshape(n_blocks, COLUMNS)
