"""Windows of false positive rates, and shared checks of rates, prevalences and confidence levels."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from numbers import Real
from typing import Annotated, Literal

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from core.base.parameters import check_items, check_value
from core.errors import MAX_VALUE, InvalidParameter, shorten

# Parameters of the estimators that have a window; `check_window` checks them together.
FprMin = Annotated[float, Ge(0), Lt(1), Doc("Lower end of the window of false positive rates.")]
FprMax = Annotated[float, Gt(0), Le(1), Doc("Upper end of the window of false positive rates.")]

Window = tuple[float, float]

WHOLE: Window = (0.0, 1.0)
"""The window of the AUC."""

# Below this every whole number is a double.
MAX_WHOLE = 2.0**53

# Increase of an area, in [0, 1], that is more than rounding: only then is one ranking better than another.
MIN_RISE = 1e-9

# Least width of a window of false positive rates: no sample resolves less, and the square of the width stays above 0.
MIN_WIDTH = 1e-9

# Error of a rate that was computed: two units in the last place of 1, as of 1 - 0.95.
RATE_ROUNDING = 2.0 * sys.float_info.epsilon

# Groups of one comparison of groups: the matrix across groups has their square.
MAX_GROUPS = 32

# Cuts of the groups' own: at one FPR within each group, or at one TPR.
Cutoffs = Literal["equal_fpr", "equal_tpr"]
CUTOFFS = ("equal_fpr", "equal_tpr")


def check_rate(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(f"{name} must be a number in [0, 1], got {value!r}")
    if not 0.0 <= value <= 1.0:
        raise InvalidParameter(f"{name} must be in [0, 1], got {value}")
    return float(value)


def check_prevalence(prevalence: float, name: str = "prevalence") -> float:
    if isinstance(prevalence, bool) or not isinstance(prevalence, Real) or not 0 < prevalence < 1:
        raise InvalidParameter(f"{name} must be strictly between 0 and 1, got {prevalence!r}")
    return float(prevalence)


def check_window(fpr_min: float, fpr_max: float) -> tuple[float, float]:
    """Return the window as floats, 0 ≤ fpr_min < fpr_max ≤ 1.

    InvalidParameter: a rate lies outside [0, 1], or the window is empty or narrower than `MIN_WIDTH`.
    """
    low, high = check_rate("fpr_min", fpr_min), check_rate("fpr_max", fpr_max)
    if low >= high:
        raise InvalidParameter(f"fpr_max must be greater than fpr_min ({low}), got {high}")
    if high - low < MIN_WIDTH:
        raise InvalidParameter(
            f"fpr_max must be at least {MIN_WIDTH:g} above fpr_min ({low}), got {high}"
        )
    return low, high


def check_windows(
    windows: Sequence[tuple[float, float]], *, least: int = 0
) -> list[tuple[float, float]]:
    checked = []
    for window in check_items("windows", windows):
        try:
            low, high = window
        except (TypeError, ValueError) as error:
            shown = shorten(repr(window), MAX_VALUE)
            raise InvalidParameter(
                f"windows must be pairs (fpr_min, fpr_max), got {shown}"
            ) from error
        checked.append(check_window(low, high))
    if len(checked) < least:
        raise InvalidParameter("windows must contain at least one window, got none")
    return checked


def check_level(level: float) -> float:
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 < level < 1.0:
        raise InvalidParameter(f"level must be strictly between 0 and 1, got {level!r}")
    return float(level)


def window_counts(n_negatives: int, fpr_min: float, fpr_max: float) -> tuple[int, int]:
    """Return the ranks of the negatives in a window: j_α = ⌊nα⌋ and j_β = ⌈nβ⌉.

    A product within rounding of a whole number counts as that number, because rates are rounded decimals. In floating
    point ⌈100 · 0.07⌉ is 8, and ⌊9 · (1 / 3)⌋ of the exact product is 2.

    Parameters
    ----------
    n_negatives : int
        Number of negatives, at least 1.
    fpr_min, fpr_max : float
        A window as `check_window` returns it.

    Returns
    -------
    (int, int)
        The window has the negatives ranked j_α + 1 … j_β, at least one.

    References
    ----------
    Narasimhan & Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", eq. 2.

    Examples
    --------
    >>> from core.metrics import window_counts
    >>> window_counts(100, 0.0, 0.07)
    (0, 7)
    """
    check_value("n_negatives", Annotated[int, Ge(1)], n_negatives)
    fpr_min, fpr_max = check_window(fpr_min, fpr_max)
    low, high = (_snap(n_negatives * float(rate), n_negatives) for rate in (fpr_min, fpr_max))
    return math.floor(low), math.ceil(high)


def _snap(rank: float, n: int) -> float:
    """Return a rank n · rate, rounded to a whole number if it is one up to the rounding error of the rate."""
    nearest = round(rank)
    return nearest if abs(rank - nearest) <= RATE_ROUNDING * n else rank


def window_weights(
    total: float, fpr_min: float, fpr_max: float, *, whole: bool
) -> tuple[float, float]:
    """Return the weight of negatives above each end of a window, given the total weight of the negatives.

    `whole` says that all weights are whole numbers: a row of weight k is k rows, and the ends are their ranks
    (`window_counts`). Else the ends are total · fpr_min and total · fpr_max, since fractions of rows have no ranks.
    """
    if whole and total < MAX_WHOLE:
        first, last = window_counts(round(total), fpr_min, fpr_max)
        return float(first), float(last)
    return total * fpr_min, total * fpr_max
