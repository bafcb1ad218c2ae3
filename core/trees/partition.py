"""Kernels that divide lists of row numbers: by the codes of a column, or by a row number."""

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic

from core.kernels import INNER

from .coding import LANES

# Rows between prefetching a row and using it, about the time that memory takes.
PREFETCH_PARTITION = 256


@intrinsic
def prefetch(typing_context, array, index):  # type: ignore[no-untyped-def]
    """Emit an LLVM prefetch of array[index] into the cache; array is 1-D of any dtype."""

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


@numba.njit(**INNER)
def find_first(rows, start, stop, least):  # type: ignore[no-untyped-def]
    """Return the first index in start:stop whose row number is at least `least`; rows: (n,) uint32, ascending there."""
    while start < stop:
        middle = (start + stop) // 2
        if rows[middle] < least:
            start = middle + 1
        else:
            stop = middle
    return start


@numba.njit(**INNER)
def partition_rows(words, row_words, lane, above, start, stop, rows, upper, partitioned):  # type: ignore[no-untyped-def]
    """Partition rows[start:stop] by the codes of a column of a group; return the number of rows above.

    words: uint64, the group's codes; lane: the column in its group; above: (n_codes,) uint8, 1 for the codes above;
    rows, upper, partitioned: (n,) uint32. Rows above go to the front of upper[start:stop] in their order, the others to
    the back of partitioned[start:stop] in reverse. `upper` may be `rows` itself.
    """
    per_word = LANES // row_words
    bits = np.uint64(8 * row_words)
    one_code = (np.uint64(1) << bits) - np.uint64(1)
    at = np.uint64(lane // per_word)
    shift = bits * np.uint64(lane % per_word)
    low = np.uint64(start)
    high = np.uint64(stop - 1)
    last = stop - 1
    for i in range(start, stop):
        prefetched = np.int64(rows[np.uint64(min(i + PREFETCH_PARTITION, last))])
        prefetch(words, prefetched * row_words + np.int64(at))
        row = rows[np.uint64(i)]
        # written to both ends, one of which is written again: no branch to mispredict
        upper[low] = row
        partitioned[high] = row
        code = (words[np.uint64(row) * np.uint64(row_words) + at] >> shift) & one_code
        is_above = np.uint64(above[code])
        low += is_above
        high -= np.uint64(1) - is_above
    return np.int64(low) - start


@numba.njit(**INNER)
def gather_rows(partitioned, start, middle, stop, rows, above, below):  # type: ignore[no-untyped-def]
    """Copy partitioned[start:middle] to rows[above:], partitioned[middle:stop] reversed to rows[below:]; uint32."""
    for i in range(middle - start):
        rows[np.uint64(above + i)] = partitioned[np.uint64(start + i)]
    for i in range(stop - middle):
        rows[np.uint64(below + i)] = partitioned[np.uint64(stop - 1 - i)]
