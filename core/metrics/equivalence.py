"""Non-inferiority: how many rows are needed to decide whether a change is smaller than a margin.

That a test finds no change does not show that there is none: few rows never find one. A change is shown to be small if
its interval excludes everything beyond a margin. If the interval includes both no change and the margin, the rows do
not decide, and more of them would.

References
----------
Piaggio, Elbourne, Pocock, Evans & Altman, "Reporting of noninferiority and equivalence randomized trials", JAMA 308
(2012).
Julious, "Sample sizes for clinical trials with normal data", Statistics in Medicine 23 (2004).
"""

from __future__ import annotations

from core.base.parameters import check_value
from core.errors import InvalidParameter
from core.metrics.estimates import normal_quantile
from core.metrics.window import check_level

POWER = 0.8
"""Probability with which the number of rows decides, if there is no change."""


def rows_factor(
    varying: float, margin: float, level: float = 0.95, *, change: float = 0.0, fixed: float = 0.0
) -> float | None:
    """Compute by which factor the rows must grow so that they decide whether a change is within a margin.

    They decide if the interval excludes the margin, or no change. The factor is the greater one of two: if the change
    is as observed, the interval around it does so; if there is no change, it excludes the margin with probability
    `POWER`. The half-width is assumed to fall with the square root of the rows: the variance per row stays as it is.

    Parameters
    ----------
    varying : float
        Half of the interval's width at `level` that comes from the rows.
    margin : float
        The smallest change that matters, above 0.
    level : float in (0, 1)
        Confidence level of the interval.
    change : float
        The observed change; a positive one is towards the margin.
    fixed : float
        Half of the width that comes from rows that stay as they are, such as those of a validation.

    Returns
    -------
    float or None
        The factor; None if no number of rows suffices, because of `fixed`.

    Examples
    --------
    >>> from core.metrics import rows_factor
    >>> round(rows_factor(0.1, 0.1), 2)  # the interval reaches to the margin: half of the samples would decide
    2.04
    """
    check_value("varying", float, varying)
    check_value("margin", float, margin)
    check_value("change", float, change)
    check_value("fixed", float, fixed)
    if varying < 0.0 or fixed < 0.0:
        raise InvalidParameter(
            f"the half-widths varying and fixed must not be negative, got {varying} and {fixed}"
        )
    if not margin > 0.0:
        raise InvalidParameter(f"margin must be positive, got {margin}")
    z = normal_quantile(check_level(level))
    unchanged = margin * z / (z + normal_quantile(2.0 * POWER - 1.0))
    half = min(unchanged, max(margin - change, change))
    return None if half <= fixed else varying**2 / (half**2 - fixed**2)
