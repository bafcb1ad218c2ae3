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

Window = tuple[float, float]

# No sample tells narrower windows apart, and squares of the width must not vanish.
MIN_WIDTH = 1e-9


def check_rate(name: str, value: float) -> float:
    """`value` as a float in [0, 1]; InvalidParameter, if it is not a real number there."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidParameter(f"{name} must be a number in [0, 1], got {value!r}")
    rate = float(value)
    if not 0.0 <= rate <= 1.0:
        raise InvalidParameter(f"{name} must lie in [0, 1], got {rate}")
    return rate


def check_window(fpr_min: float, fpr_max: float) -> tuple[float, float]:
    """The window as floats, 0 ≤ fpr_min < fpr_max ≤ 1.

    InvalidParameter, if a rate lies outside [0, 1], or the window is empty or narrower than 1e-9.
    """
    low, high = check_rate("fpr_min", fpr_min), check_rate("fpr_max", fpr_max)
    if low >= high:
        raise InvalidParameter(f"fpr_max must be greater than fpr_min ({low}), got {high}")
    if high - low < MIN_WIDTH:
        raise InvalidParameter(
            f"fpr_max must be at least {MIN_WIDTH:g} above fpr_min ({low}), got {high}"
        )
    return low, high


def check_level(level: float) -> float:
    """A confidence level, strictly between 0 and 1; InvalidParameter, if it is not."""
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


def froc_window(
    per_image_min: float, per_image_max: float, n_images: int, n_negatives: int
) -> tuple[float, float]:
    """Turn a window of false positives per image into one of false positive rates.

    The FROC curve has the false positives per image on its axis, where the ROC curve has their share of all negatives:
    the axes differ by a factor, the curves do not.

    InvalidParameter, if a number is not positive, or the rates are no window of `check_window`.

    Parameters
    ----------
    per_image_min, per_image_max : float
        False positives per image, on average; not above n_negatives / n_images.
    n_images, n_negatives : int
        Images, and candidate regions without a finding in all of them; at least 1.

    Returns
    -------
    (float, float)
        The rates times n_images / n_negatives: `fpr_min` and `fpr_max` of an estimator, or of a job's objective.

    References
    ----------
    Narasimhan & Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve", §8.2: the
    factor 6848/101671 of the KDD Cup 2008.
    """
    for name, count in (("n_images", n_images), ("n_negatives", n_negatives)):
        if count < 1:
            raise InvalidParameter(f"{name} must be at least 1, got {count}")
    rates: list[float] = []
    for name, value in (("per_image_min", per_image_min), ("per_image_max", per_image_max)):
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise InvalidParameter(f"{name} must be a finite number, got {value!r}")
        # exactly, as `window_counts`: 1.5 · 20 / 100 in floating point is more than .3
        rates.append(float(Fraction(repr(float(value))) * n_images / n_negatives))
    return check_window(rates[0], rates[1])
