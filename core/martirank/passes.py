"""Passes over the rows: a histogram of every node of a layer at once, and the step to the next layer.

A row is in several nodes of a layer, with a probability in each. Its *masses* are those
probabilities times its weight. They lie in blocks of four neighbouring positions, as (n_blocks,
n_rows, 4): one addition of four numbers serves four nodes, so that a layer of t nodes costs t/4
passes over the codes, not t.
"""

from typing import Any

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
from numba.extending import intrinsic

from core.kernel import kernel

POSITIONS = 4  # in a block: the doubles of a vector register
ROWS = 1 << 13  # whose masses, one block of them, stay in a core's own cache

_MASSES = numba.float64[:, :, ::1]


def n_blocks(n_positions: int) -> int:
    """Blocks that hold so many positions."""
    return -(-n_positions // POSITIONS)


@intrinsic
def add_four(typing_context, sums, to, terms, at):  # type: ignore[no-untyped-def]
    """Add terms[at : at + 4] to sums[to : to + 4] in one vector addition.

    The compiler sees four additions and leaves them four; numba's switch for joining them is global.
    """

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        vector = llvmlite.ir.VectorType(llvmlite.ir.DoubleType(), POSITIONS).as_pointer()

        def find(array: int, index: int) -> Any:
            data = context.make_array(signature.args[array])(
                context, builder, arguments[array]
            ).data
            return builder.bitcast(builder.gep(data, [arguments[index]]), vector)

        target = find(0, 1)
        added = builder.fadd(builder.load(target, align=8), builder.load(find(2, 3), align=8))
        builder.store(added, target, align=8)
        return context.get_dummy_value()

    return numba.types.void(sums, numba.types.uint64, terms, numba.types.uint64), generate


@numba.njit(inline="always")
def _add(column, masses, start, stop, histogram):  # type: ignore[no-untyped-def]
    """Add the masses of rows[start:stop] to histogram[code * 4 + position]."""
    for i in range(start, stop):
        row = np.uint64(i)
        four = np.uint64(POSITIONS)
        add_four(histogram, np.uint64(column[row]) * four, masses, row * four)


def _add_layer(first, step, n_features, codes, masses, n_positives, histograms):  # type: ignore[no-untyped-def]
    """Add up both classes' mass per node, feature and code, of every step-th feature.

    codes : (n_features, n_rows), positives first.
    masses : (n_blocks, 4 * n_rows).
    histograms : (n_blocks, n_features, 2, n_codes * 4), added to.
    """
    n_rows = codes.shape[1]
    for block in range(len(masses)):
        for start in range(0, n_rows, ROWS):
            stop = min(start + ROWS, n_rows)
            middle = min(max(n_positives, start), stop)
            for j in range(first, n_features, step):
                _add(codes[j], masses[block], start, middle, histograms[block, j, 0])
                _add(codes[j], masses[block], middle, stop, histograms[block, j, 1])


def _take_step(first, step, n_pieces, codes, features, rises, masses):  # type: ignore[no-untyped-def]
    """Move the masses of every step-th run of rows to the next layer.

    features : (n_nodes,), the column that each node of the layer looks at.
    rises : (n_nodes, n_codes), the share that goes one position up, by code.
    masses : (n_blocks, 4 * n_rows), changed in place; one position more is in use afterwards.
    """
    n_rows = codes.shape[1]
    for piece in range(first, n_pieces, step):
        start, stop = piece * ROWS, min(piece * ROWS + ROWS, n_rows)
        # From the highest position down: what rises joins rows that have been moved already.
        for position in range(len(features) - 1, -1, -1):
            column, rise = codes[features[position]], rises[position]
            here, k = masses[position // POSITIONS], position % POSITIONS
            up, u = masses[(position + 1) // POSITIONS], (position + 1) % POSITIONS
            for i in range(start, stop):
                at = np.uint64(i) * np.uint64(POSITIONS)
                moved = here[at + np.uint64(k)] * rise[np.uint64(column[np.uint64(i)])]
                up[at + np.uint64(u)] += moved
                here[at + np.uint64(k)] -= moved


_CODES = (numba.uint8[:, ::1], numba.uint16[:, ::1])
_I8 = numba.int64

add_layer = kernel(
    *[
        numba.void(_I8, _I8, _I8, codes, numba.float64[:, ::1], _I8, numba.float64[:, :, :, ::1])
        for codes in _CODES
    ]
)(_add_layer)

take_step = kernel(
    *[
        numba.void(
            _I8, _I8, _I8, codes, numba.int64[::1], numba.float64[:, ::1], numba.float64[:, ::1]
        )
        for codes in _CODES
    ]
)(_take_step)
