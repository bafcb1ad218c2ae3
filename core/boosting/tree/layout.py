"""How trees see a table: its codes by columns and by rows, and where things lie in the arrays.

Codes are kept twice. By columns they are routed and partitioned: one column is read for many rows.
By rows they are added to histograms: all columns are read for one row, which after a few splits is
one of few. Columns go in blocks of 32, so that a row of a block is 32 bytes, four words of 8 codes,
and its histogram, 256 codes × 32 columns of float64, 64 KiB, stays in a core's own cache.
"""

from dataclasses import dataclass

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils
from numba.extending import intrinsic

from core.scan import N_CODES, Bins

COLUMNS = 32  # in a block
WORDS = 4  # of a row in a block
CELLS = N_CODES * COLUMNS

Codes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """A coded table.

    Attributes
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8
        Column-major; positives first; 255 is missing.
    words : ndarray of shape (n_blocks, 4 * n_rows), uint64
        The same codes row by row, in blocks of 32 columns padded with 0.
    n_positives : int
    blocks : ndarray of shape (n_blocks, 3), int64
        Of each block: its number of words in use, the greatest number of bins of its columns, and
        whether one of them has missing values.
    """

    codes: Codes
    words: Words
    n_positives: int
    blocks: Integers

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])


def lay_out(bins: Bins, codes: Codes, n_positives: int) -> Table:
    """Give the codes of a table both ways.

    Parameters
    ----------
    bins : Bins
    codes : ndarray of shape (n_features, n_rows), uint8
        Positives first.
    n_positives : int

    Returns
    -------
    Table

    Notes
    -----
    O(n_features · n_rows); adds as many bytes as codes has, rounded up to 32 columns.
    """
    n_features, n_rows = codes.shape
    n_blocks = -(-n_features // COLUMNS)
    words = np.zeros((n_blocks, WORDS * n_rows), dtype=np.uint64)
    blocks = np.empty((n_blocks, 3), dtype=np.int64)
    for b in range(n_blocks):
        columns = slice(b * COLUMNS, min((b + 1) * COLUMNS, n_features))
        transpose(codes[columns], words[b].view(np.uint8))
        n_used = columns.stop - columns.start
        blocks[b] = (
            -(-n_used // 8),
            max(int(bins.n_bins[columns].max()), 1),
            bins.has_missing[columns].any(),
        )
    return Table(codes, words, n_positives, blocks)


@numba.njit(numba.void(numba.uint8[:, ::1], numba.uint8[::1]), nogil=True, cache=True)
def transpose(codes, by_row):  # type: ignore[no-untyped-def]
    """Write the codes of up to 32 columns row by row, 32 bytes each."""
    n_rows = codes.shape[1]
    for start in range(0, n_rows, 512):  # so many rows of 32 bytes stay in the first-level cache
        stop = min(start + 512, n_rows)
        for j in range(codes.shape[0]):
            for i in range(start, stop):
                by_row[np.uint64(i * 32 + j)] = codes[j, i]


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Ask for array[index] to be brought into the cache."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = llvmlite.ir.IntType(8).as_pointer(), llvmlite.ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        kind = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # for reading, into all levels, data rather than instructions
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return numba.types.void(array, numba.types.int64), generate
