"""Lists of rows: positives first, and what they weigh."""

import numpy as np
import numpy.typing as npt


def positives_first(positive: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.uint32], int]:
    """List the rows of the positives, then those of the others; return how many are positive."""
    rows, n_positives = np.empty(len(positive), dtype=np.uint32), int(np.count_nonzero(positive))
    rows[:n_positives] = np.flatnonzero(positive)
    rows[n_positives:] = np.flatnonzero(~positive)
    return rows, n_positives


def take_weights(
    weight: npt.NDArray[np.float64], rows: npt.NDArray[np.uint32]
) -> npt.NDArray[np.float64]:
    """Give the weights of rows; where all weigh the same, a view of one number, without memory."""
    if (weight != weight[0]).any():
        return np.asarray(weight[rows])
    return np.broadcast_to(weight[0], len(rows))
