"""Lists of rows with the positives first, and their weights."""

import numpy as np
import numpy.typing as npt

from core.base.columns import ROWS_AT_ONCE


def positives_first(positive: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.uint32], int]:
    """Return the indices of all rows, (n_rows,) uint32, positives first; and the number of positives."""
    rows, n_positives = np.empty(len(positive), dtype=np.uint32), int(np.count_nonzero(positive))
    places = [0, n_positives]
    for start in range(0, len(positive), ROWS_AT_ONCE):  # a list of all would take 8 bytes a row
        some = positive[start : start + ROWS_AT_ONCE]
        for k, of_class in enumerate((some, ~some)):
            own = start + np.flatnonzero(of_class)
            rows[places[k] : places[k] + len(own)] = own
            places[k] += len(own)
    return rows, n_positives


def take_weights(
    weight: npt.NDArray[np.float64], rows: npt.NDArray[np.uint32]
) -> npt.NDArray[np.float64]:
    """Return weight[rows]; if all weights are equal, a view of one number, which takes no memory."""
    if (weight != weight[0]).any():
        return np.asarray(weight[rows])
    return np.broadcast_to(weight[0], len(rows))
