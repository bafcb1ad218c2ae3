"""The scale of credit scoring: points in place of log odds (Siddiqi, *Credit Risk Scorecards*, 2006, chapter 6)."""

import math
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PointsScale:
    """`base_score` points where there are `base_odds` negatives to one positive, `pdo` more at twice these odds.

    Points fall as the log odds of the positives rise. They only rescale scores: the order of rows is reversed.
    """

    pdo: float = 20.0
    base_score: float = 600.0
    base_odds: float = 50.0

    @property
    def factor(self) -> float:
        """Points for one unit of log odds."""
        return self.pdo / math.log(2.0)

    def points(self, log_odds: float) -> float:
        """Return the points of a part of a score, the log odds of a positive."""
        return 0.0 - self.factor * log_odds  # no -0

    @overload
    def total(self, score: float) -> float: ...
    @overload
    def total(self, score: Floats) -> Floats: ...
    def total(self, score: float | Floats) -> float | Floats:
        """Return the points of rows with these scores, the log odds of the positives."""
        return self.base_score - self.factor * (math.log(self.base_odds) + score)

    def least_score(self, points: float) -> float:
        """Return the least score with at most `points`: a row has so few exactly if it scores at least this."""
        near = (self.base_score - points) / self.factor - math.log(self.base_odds)
        step = 1e-12 * max(1.0, abs(near))
        above, at_most = near - step, near + step
        while self.total(above) <= points or self.total(at_most) > points:
            step *= 2.0
            above, at_most = near - step, near + step
        while above < (middle := 0.5 * (above + at_most)) < at_most:
            if self.total(middle) > points:
                above = middle
            else:
                at_most = middle
        return at_most
