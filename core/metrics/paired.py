"""How much more partial AUC one scorer has than another on the same rows, and how surely."""

from typing import NamedTuple

from numpy.typing import ArrayLike

from core.metrics.differences import difference_error
from core.metrics.groups import check_rows
from core.metrics.influence import estimate_areas
from core.metrics.window import check_window


class Rise(NamedTuple):
    """Two partial AUCs on the same rows, and the standard error of their difference.

    Attributes
    ----------
    before, after : float in [0, 1]
        Interpolated, divided by the window's width.
    error : float
        Standard error of after - before; 1, as much as a difference can be, where a class has the weight of
        one unit only.
    """

    before: float
    after: float
    error: float


def partial_auc_rise(
    y: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    *,
    sample_weight: ArrayLike,
    unit: ArrayLike,
) -> Rise:
    """Compare two scorers by their partial AUC on the same rows.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    before, after : array_like of float, shape (n_samples,)
        The scores of either.
    fpr_min, fpr_max : float in [0, 1]
        The window, fpr_min < fpr_max.
    sample_weight : array_like of float, shape (n_samples,)
        Above 0. Shares, not counts: doubling all of them changes nothing.
    unit : array_like, shape (n_samples,)
        Rows of a class with the same value are one observation: equal rows, say.

    Returns
    -------
    Rise

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty.
    InvalidParameter
        If the window is empty or leaves [0, 1].

    Notes
    -----
    The error is that of `compare`, with a unit of each class on its own. O(n log n).
    """
    window = check_window(fpr_min, fpr_max)
    rows = check_rows(y, {"before": before, "after": after}, sample_weight, unit)
    assert rows.unit is not None
    areas = estimate_areas(rows._replace(unit=2 * rows.unit + rows.positive), [window])
    error = difference_error(areas, 1, 0, 0)
    values = areas.values[:, 0]
    return Rise(float(values[0]), float(values[1]), 1.0 if error is None else error)
