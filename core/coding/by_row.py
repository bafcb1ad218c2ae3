"""Codes row by row, in blocks of 32 columns: how LeafRank adds up the rows of a leaf.

By rows all columns of one row are read at once, which after a few splits is one row of few. A row
of a block is 32 bytes, four words of 8 codes, and its histogram, 256 codes × 32 columns of float64,
64 KiB, stays in a core's own cache.
"""

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils
from numba.extending import intrinsic

from core.kernel import kernel

from .bins import N_CODES

COLUMNS = 32  # in a block
PER_WORD = 8  # codes in a word
WORDS = COLUMNS // PER_WORD  # of a row in a block
CELLS = N_CODES * COLUMNS
CACHE_LINE = 64  # bytes

Words = npt.NDArray[np.uint64]


def _allocate_words(n_blocks: int, n_rows: int) -> Words:
    """Give room for codes row by row, all 0, each block from a cache line on, so that no row lies across two."""
    n_words = n_rows * WORDS
    n_words += -n_words % (CACHE_LINE // 8)
    room = np.zeros(n_blocks * n_words + CACHE_LINE // 8, dtype=np.uint64)
    first = -room.ctypes.data % CACHE_LINE // 8
    return room[first : first + n_blocks * n_words].reshape(n_blocks, n_words)


def by_row(codes: npt.NDArray[np.uint8]) -> Words:
    """Lay codes out row by row.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8
        Column-major.

    Returns
    -------
    ndarray of shape (n_blocks, n_words), uint64
        Blocks of 32 columns, padded with 0: four words a row, and some for the next cache line.

    Notes
    -----
    O(n_features · n_rows); takes as many bytes as codes, rounded up to 32 columns.
    """
    n_features, n_rows = codes.shape
    n_blocks = -(-n_features // COLUMNS)
    words = _allocate_words(n_blocks, n_rows)
    for block in range(n_blocks):
        columns = codes[block * COLUMNS : (block + 1) * COLUMNS]
        _transpose(columns, words[block].view(np.uint8))
    return words


@kernel(numba.void(numba.uint8[:, ::1], numba.uint8[::1]))
def _transpose(codes, words):  # type: ignore[no-untyped-def]
    """Write the codes of up to 32 columns row by row, 32 bytes each."""
    n_rows = codes.shape[1]
    for start in range(0, n_rows, 512):  # so many rows of 32 bytes stay in the first-level cache
        stop = min(start + 512, n_rows)
        for j in range(codes.shape[0]):
            for i in range(start, stop):
                words[np.uint64(i * 32 + j)] = codes[j, i]


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
