"""Windows of false positive rates, and the checks of rates and levels that the metrics share."""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Real
from typing import Annotated

from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt

from core.errors import InvalidParameter

# Parameters of the estimators that are told a window; `check_window` holds them together.
FprMin = Annotated[float, Ge(0), Lt(1), Doc("Lower end of the window of false positive rates.")]
FprMax = Annotated[float, Gt(0), Le(1), Doc("Upper end of the window of false positive rates.")]

# No sample tells narrower windows apart, and squares of the width must not vanish.
LEAST_WIDTH = 1e-9


def check_rate(name: str, value: float) -> float:
    """`value` as a float in [0, 1].

    Raises
    ------
    InvalidParameter
        If it is not a real number in [0, 1].
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(f"{name} must be a number in [0, 1], got {value!r}")
    rate = float(value)
    if not 0.0 <= rate <= 1.0:
        raise InvalidParameter(f"{name} must lie in [0, 1], got {rate}")
    return rate


def check_window(fpr_min: float, fpr_max: float) -> tuple[float, float]:
    """The window as floats, 0 ≤ fpr_min < fpr_max ≤ 1.

    Raises
    ------
    InvalidParameter
        If a rate lies outside [0, 1], or the window is empty or narrower than 1e-9.
    """
    low, high = check_rate("fpr_min", fpr_min), check_rate("fpr_max", fpr_max)
    if low >= high:
        raise InvalidParameter(f"fpr_max must be greater than fpr_min ({low}), got {high}")
    if high - low < LEAST_WIDTH:
        raise InvalidParameter(
            f"fpr_max must be at least {LEAST_WIDTH:g} above fpr_min ({low}), got {high}"
        )
    return low, high


def check_level(level: float) -> float:
    """A confidence level, strictly between 0 and 1.

    Raises
    ------
    InvalidParameter
        If it is not.
    """
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 < float(level) < 1.0:
        raise InvalidParameter(f"level must lie strictly between 0 and 1, got {level!r}")
    return float(level)


def window_counts(n_negatives: int, fpr_min: float, fpr_max: float) -> tuple[int, int]:
    """First and last rank of the negatives in a window: j_α = ⌊nα⌋ and j_β = ⌈nβ⌉.

    The rates are read as the decimals they print as, and the products are exact: in floating point
    ⌈100 · 0.07⌉ is 8.

    Parameters
    ----------
    n_negatives : int
        At least 1.
    fpr_min, fpr_max : float
        A window as `check_window` returns it.

    Returns
    -------
    (int, int)
        The window holds the negatives ranked j_α + 1 … j_β, at least one.

    References
    ----------
    Narasimhan & Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", eq. 2.
    """
    low, high = (Fraction(repr(float(rate))) for rate in (fpr_min, fpr_max))
    return math.floor(n_negatives * low), math.ceil(n_negatives * high)
