"""Mixed rows: some features from one row, the others from a reference row; used to compute Shapley values."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MixedRows:
    """The mixed rows between rows and reference rows, as features switch from one to the other in some order.

    A pair that differs in n features has several orders of them. In each order the first 1 to n - 1 features are the
    row's and the others the reference's (forwards), then the last 1 to n - 1 are the row's (backwards). The mixed rows
    of all pairs are numbered in this sequence: by pair, order, direction, number of features.

    >>> import numpy as np
    >>> row, reference = np.array([[1.0, 2.0, 3.0]]), np.array([[0.0, 2.0, 0.0]])
    >>> one, n = np.zeros(1, dtype=np.int64), np.array([2])
    >>> mixed = MixedRows(row, reference, one, one, np.array([[[2, 0, 1]]]), n)
    >>> mixed.table
    array([[0., 2., 3.],
           [1., 2., 0.]])
    """

    rows: Floats
    """Shape (n_rows, n_features), float64, C-contiguous."""
    references: Floats
    """Shape (n_references, n_features), float64, C-contiguous."""
    row: Integers
    """The row of each pair, shape (n_pairs,), int64."""
    reference: Integers
    """The reference row of each pair, shape (n_pairs,), int64."""
    order: Integers
    """The orders: the features that differ, then those that agree. Shape (n_pairs, n_orders, n_features), int64,
    C-contiguous."""
    size: Integers
    """Features in which the two rows of a pair differ: 2 or more. Shape (n_pairs,), int64."""

    @cached_property
    def start(self) -> Integers:
        """Index of the first mixed row of each pair, then the number of mixed rows; shape (n_pairs + 1,), int64."""
        counts = 2 * self.order.shape[1] * (self.size - 1)
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])

    @cached_property
    def position(self) -> Integers:
        """Position, from 0, of each feature in each order, in the shape of `order`."""
        return np.argsort(self.order, axis=2)

    @cached_property
    def table(self) -> Floats:
        pair = np.repeat(np.arange(len(self.size)), np.diff(self.start))
        size = self.size[pair]
        part, known = np.divmod(np.arange(len(pair)) - self.start[pair], size - 1)
        position, known = self.position[pair, part // 2], (known + 1)[:, np.newaxis]
        backwards = (part % 2 == 1)[:, np.newaxis]
        ends = size[:, np.newaxis]
        is_rows = np.where(backwards, position >= ends - known, position < known)
        return np.where(is_rows, self.rows[self.row[pair]], self.references[self.reference[pair]])
