"""How trees see a table: its codes row by row, and where things lie in the arrays.

All columns of one row are read at once, to add it to histograms; that is one row of few after a few
splits. So a row of 32 columns, a block, is 32 bytes of one cache line, or 64 where there are more
than 255 bins; its histogram, up to 256 codes × 32 columns of float64, 64 KiB, stays in a core's own
cache. Nothing is kept by columns: dividing the rows of a leaf reads one code of each, which costs
no more so long as the rows are asked for early enough, and routing turns a block of rows at a time.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.coding.by_row import COLUMNS

# Columns of `Table.blocks`: words in use of a row; codes, the last of which is the missing one's;
# whether a column has missing values; where the block's cells start in a histogram of all blocks; bins of its
# numeric columns, 0 without any.
N_WORDS, N_CODES, HAS_MISSING, FIRST_CELL, N_ORDERED = range(5)

Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """A coded table, its rows by class: positives first.

    Attributes
    ----------
    words : ndarray of shape (n_blocks, n_words), uint64
        Codes row by row, in blocks of 32 columns padded with 0. A block starts at a cache line, so
        that no row lies across two. The greatest code of a block is the missing one's.
    per_word : int
        Codes in a word: 8 of uint8 or 4 of uint16.
    n_rows, n_positives, n_features : int
    blocks : ndarray of shape (n_blocks, 5), int64
        See above.
    categorical : ndarray of shape (n_blocks, 32), bool
        Which columns have no order.
    """

    words: Words
    per_word: int
    n_rows: int
    n_positives: int
    n_features: int
    blocks: Integers
    categorical: npt.NDArray[np.bool_]

    @property
    def n_cells(self) -> int:
        """Cells of a histogram of all blocks, of one class."""
        return int(self.blocks[:, N_CODES].sum()) * COLUMNS
