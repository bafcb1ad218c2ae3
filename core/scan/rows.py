"""Rows by class: lists of them, positives first, and their weights."""

import numba
import numpy as np
import numpy.typing as npt


@numba.njit(numba.types.Tuple((numba.uint32[::1], numba.int64))(numba.boolean[:]), cache=True)
def positives_first(positive):  # type: ignore[no-untyped-def]
    """List the rows of the positives, then those of the others; return how many are positive."""
    rows = np.empty(len(positive), dtype=np.uint32)
    n_positives = np.sum(positive)
    ends = np.array([n_positives, 0])
    for i in range(len(positive)):
        which = np.int64(positive[i])
        rows[ends[which]] = i
        ends[which] += 1
    return rows, n_positives


def take_weights(
    weight: npt.NDArray[np.float64], rows: npt.NDArray[np.uint32]
) -> npt.NDArray[np.float64]:
    """Give the weights of rows; where all weigh the same, a view of one number, without memory."""
    if (weight != weight[0]).any():
        return np.asarray(weight[rows])
    return np.broadcast_to(weight[0], len(rows))
