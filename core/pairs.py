"""Crucial pairs as a list: which item should stand above which, and how much that matters."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import InvalidData
from .target import check_range


class Pairs(NamedTuple):
    """Checked pairs of weight above 0.

    Attributes
    ----------
    better, worse : ndarray of shape (n_pairs,), int64
        Rows; `better` should be scored above `worse`.
    weight : ndarray of shape (n_pairs,), float64
    """

    better: npt.NDArray[np.int64]
    worse: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


def check_pairs(pairs: Any, pair_weight: Any, n_items: int) -> Pairs:
    """Check a list of pairs, and leave out those of weight 0.

    Parameters
    ----------
    pairs : array-like of int, shape (n_pairs, 2)
        Rows (better, worse). Cycles, contradictions and repetitions are welcome.
    pair_weight : array-like of float, shape (n_pairs,), or None
        0 or between 1e-100 and 1e100, as of rows, and not all 0; None is 1 for each pair.
    n_items : int
        Number of rows that pairs may name.

    Returns
    -------
    Pairs

    Raises
    ------
    InvalidData
        Something breaks one of the rules above; the message names it.

    Notes
    -----
    O(n_pairs) time and memory.
    """
    rows = _check_rows(pairs, n_items)
    better, worse = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    if pair_weight is None:
        return Pairs(better, worse, np.ones(len(better)))
    weight = _check_weight(pair_weight, len(better))
    present = weight > 0
    if not present.all():
        better, worse, weight = better[present], worse[present], weight[present]
    return Pairs(better, worse, weight)


def _check_rows(pairs: Any, n_items: int) -> npt.NDArray[Any]:
    try:
        rows = np.asarray(pairs)
    except ValueError as error:
        raise InvalidData("pairs must be rows of two, got rows of different lengths") from error
    if rows.size == 0:
        raise InvalidData(f"pairs must not be empty, got shape {rows.shape}")
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise InvalidData(f"pairs must be of shape (n_pairs, 2), got {rows.shape}")
    if rows.dtype.kind not in "iu":
        raise InvalidData(f"pairs must hold integers, the rows of X, got {rows.dtype}")
    outside = (rows < 0) | (rows >= n_items)
    if outside.any():
        pair, side = divmod(int(outside.argmax()), 2)
        raise InvalidData(
            f"pairs must name rows of X, from 0 to {n_items - 1}, "
            f"got {rows[pair, side]} in pair {pair}"
        )
    same = rows[:, 0] == rows[:, 1]
    if same.any():
        pair = int(same.argmax())
        raise InvalidData(
            f"a pair must hold two different rows, got ({rows[pair, 0]}, {rows[pair, 1]}) "
            f"as pair {pair}"
        )
    return rows


def _check_weight(pair_weight: Any, n_pairs: int) -> npt.NDArray[np.float64]:
    try:
        weight = np.asarray(pair_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"pair_weight must hold numbers: {error}") from error
    if weight.shape != (n_pairs,):
        raise InvalidData(
            f"pair_weight must hold one weight per pair ({n_pairs}), got shape {weight.shape}"
        )
    check_range("pair_weight", weight, "for pair")
    if not weight.any():
        raise InvalidData("pair_weight must leave some pair a weight, got 0 for every pair")
    return weight
