"""Inner splits: which training rows a candidate is judged by."""

import numpy as np
import numpy.typing as npt

from core.errors import InvalidData, InvalidParameter
from core.holdout import row_keys, scramble_keys
from core.ranker import Floats


def split_rows(
    X: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_splits: int,
    *,
    fraction: float = 0.25,
    group: npt.NDArray[np.uint64] | None = None,
    seed: int = 0,
) -> list[npt.NDArray[np.bool_]]:
    """Part the rows into folds, or hold one part out; stratified, with what belongs together on one side.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    n_splits : int
        1 holds a part out; more are so many folds, each held out once.
    fraction : float in (0, 1), default=0.25
        Share of the rows that is held out where n_splits is 1.
    group : ndarray of shape (n_rows,), uint64, optional
        Rows with equal values are never parted. Without groups, equal rows are not.
    seed : int, default=0

    Returns
    -------
    list of ndarray of shape (n_rows,), bool
        Which rows each split holds out.

    Raises
    ------
    InvalidData
        A split would leave a side without one of the classes.
    InvalidParameter
        n_splits is below 1, or fraction is not between 0 and 1.

    Notes
    -----
    Groups with a positive row and groups without one are put in random order, and cut where the running share
    of their rows (of their positive ones) passes a fold's. The draw depends on the rows' values and the
    seed alone, not on their order. O(n_rows · n_features + n_rows log n_rows).
    """
    if n_splits < 1:
        raise InvalidParameter(f"n_splits must be at least 1, got {n_splits}")
    if not 0.0 < fraction < 1.0:
        raise InvalidParameter(f"fraction must be between 0 and 1, got {fraction}")
    keys = scramble_keys(row_keys(X, positive, weight) if group is None else group, seed)
    units, unit = np.unique(keys, return_inverse=True)  # ascending keys are a random order
    positives = np.bincount(unit, weights=positive, minlength=len(units))
    sizes = np.bincount(unit, minlength=len(units)).astype(np.float64)
    place = np.empty(len(units))
    for stratum, mass in ((positives > 0, positives), (positives == 0, sizes)):
        own = mass[stratum]
        place[stratum] = (np.cumsum(own) - 0.5 * own) / max(own.sum(), 1.0)
    if n_splits == 1:
        folds = [place < fraction]
    else:
        number = np.minimum((place * n_splits).astype(np.int64), n_splits - 1)
        folds = [number == k for k in range(n_splits)]
    splits = [fold[unit] for fold in folds]
    for held in splits:
        for side, rows in (("held out", held), ("learnt from", ~held)):
            if not (positive[rows].any() and (~positive[rows]).any()):
                raise InvalidData(
                    f"of {n_splits} inner splits one has no rows of a class that are {side}: "
                    "give more rows, or ask for fewer splits"
                )
    return splits
