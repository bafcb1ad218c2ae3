"""The shape of miscalibration: a smooth test of errors that Cox's line cannot show, and their size.

Cox's line (`core.metrics.cox`) finds probabilities that are too high or too low, and log odds that are too far apart
or too close together. Probabilities whose error changes its sign, such as an S-shaped one, may have intercept 0 and
slope 1. This is Neyman's smooth test for such a remainder. Let p̂ be the probabilities of the fitted line, and u in
[0, 1] the share of the information Σ w p̂ (1 − p̂) at smaller probabilities (at ties: the middle). The directions of the
score test are the Legendre polynomials P_2, …, P_5 of 2u − 1, each without its regression on 1 and the log odds. If the
log odds are linear, the statistic has a χ² distribution with four degrees of freedom.

The information orders the rows, and not the probability itself: where p is near 0 or 1, many rows say as little as a
few elsewhere.

**Why not a calibration belt.** The GiViTI test adds powers of the log odds one by one, and stops at the first that is
not significant. A symmetric S-shape has no second power, so that the search stops before the third, which would show
it. Here all four components are tested together.

References
----------
Neyman, "Smooth test for goodness of fit", Skandinavisk Aktuarietidskrift 20 (1937).
Rayner & Best, *Smooth Tests of Goodness of Fit* (1989), chapter 6: with fitted parameters.
Nattino, Finazzi & Bertolini, "A new calibration test and a reappraisal of the calibration belt for the assessment of
prediction models based on dichotomous outcomes", Statistics in Medicine 33 (2014): the GiViTI test.
Van Calster, McLernon, van Smeden, Wynants & Steyerberg, "Calibration: the Achilles heel of predictive analytics", BMC
Medicine 17 (2019): calibration in the large, by slope and by curve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.metrics.equivalence import POWER
from core.metrics.estimates import Interval
from core.metrics.groups import EvaluatedRows, FloatArray
from core.metrics.logistic import log_odds, sigmoid
from core.probability.score_test import (
    cells_of,
    odds_cells,
    score_test,
    size_of,
    without_line,
)

DEGREES = 4
"""Components that are tested: the polynomials of degree 2 to 5."""
MIN_INFORMATION = 10.0
"""Σ p (1 − p) below which the statistic is not near its χ² distribution."""
_MAX_CELLS = 1 << 14  # distinct probabilities


class Shape(NamedTuple):
    """Distance between the log-odds of the outcome and a line in the log-odds of its probability.

    Examples
    --------
    >>> import numpy as np
    >>> from core.probability import reliability
    >>> p = np.linspace(0.05, 0.95, 500)
    >>> found = reliability(p > np.random.default_rng(0).random(500), p, n_bootstrap=20).shape
    >>> found.degrees, found.p_value > 0.05
    (4, True)
    """

    size: Interval
    """Root mean square distance in log-odds, corrected for chance. At least 0."""
    p_value: float
    """For H₀: they are on a line."""
    degrees: int
    """Degrees of freedom of the test: 4, or fewer if there are few distinct probabilities."""
    information: float
    """Σ p (1 − p) of the equivalent number of independent rows of equal weight."""


def shape_of(rows: EvaluatedRows, intercept: float, slope: float, level: float) -> Shape | None:
    """Return the estimated shape error of probabilities, with a test; None with too few rows or groups.

    rows: their score is the probability, in [0, 1].
    intercept, slope: Cox's line on these rows.
    level: float in (0, 1); level of the interval of the size.
    """
    cell, odds = odds_cells(log_odds(rows.scores[0]), rows.weight, _MAX_CELLS)
    cells = cells_of(rows, sigmoid(intercept + slope * odds)[cell], cell, odds.size)
    if cells.total < MIN_INFORMATION:
        return None
    test = score_test(cells, _basis(odds, cells.information))
    if test is None or test.information < MIN_INFORMATION:
        return None
    return Shape(Interval(*size_of(test, level)), test.p_value, test.degrees, test.information)


def _basis(odds: FloatArray, information: FloatArray) -> FloatArray:
    """Return polynomials in the log-odds minus their regression on a line, shape (n_cells, DEGREES)."""
    middle = (np.cumsum(information) - information / 2.0) / information.sum()
    every = np.asarray(
        np.polynomial.legendre.legvander(2.0 * middle - 1.0, DEGREES + 1), np.float64
    )
    orthonormal: FloatArray = every[:, 2:] * np.sqrt(2.0 * np.arange(2, DEGREES + 2) + 1.0)
    return without_line(orthonormal, odds, information)


def information_needed(margin: float, level: float = 0.95, degrees: int = DEGREES) -> float:
    """Return the information Σ p (1 − p) needed for the test to show that the shape error is below `margin`.

    If the log odds are on a line, the interval of the size then excludes `margin` with probability `equivalence.POWER`.
    """
    from scipy.special import chdtri, chndtrinc

    found = float(chdtri(degrees, 1.0 - POWER))
    return float(chndtrinc(found, degrees, (1.0 - level) / 2.0)) / margin**2
