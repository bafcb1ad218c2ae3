"""Rows, their classes and a surrogate: risk and planes as functions of w."""

from typing import NamedTuple

import numpy as np

from core.ranker import Floats

from .design import Ints, Rows, Spread, find_spread
from .surrogate import Surrogate, Violations

# Of the distance between the classes' mean scores.
LEAST_DEVIATION = 0.03


class Scores(NamedTuple):
    """Scores of the positives and of the negatives; linear in w."""

    positive: Floats
    negative: Floats

    def scaled(self, factor: float) -> "Scores":
        """Give the scores of factor · w."""
        return Scores(factor * self.positive, factor * self.negative)

    def toward(self, other: "Scores", t: float) -> "Scores":
        """Give the scores at t on the way to others, which are at 1."""
        moved = Scores(np.empty_like(self.positive), np.empty_like(self.negative))
        for start, end, part in zip(self, other, moved, strict=True):
            np.subtract(end, start, out=part)
            np.multiply(part, t, out=part)
            np.add(part, start, out=part)
        return moved

    def spread(self) -> float:
        """Give the distance from the lowest to the highest score."""
        parts = (self.positive, self.negative)
        return float(max(part.max() for part in parts) - min(part.min() for part in parts))


class Plane(NamedTuple):
    """R(w) >= loss + gradient · w."""

    loss: float
    gradient: Floats


class Problem:
    """The risk R as a function of w.

    Parameters
    ----------
    rows : Rows
    positives, negatives : ndarray of int64
        The rows that R is of, rising; others are scored and not looked at.
    surrogate : Surrogate
        Of their weights, in this order.
    """

    def __init__(self, rows: Rows, positives: Ints, negatives: Ints, surrogate: Surrogate) -> None:
        self.rows = rows
        self.surrogate = surrogate
        self._positives = positives
        self._negatives = negatives

    @property
    def size(self) -> int:
        """Number of coordinates of w."""
        return self.rows.size

    def find_spread(self) -> Spread | None:
        """Find how the differences of a positive's and a negative's score vary; None where that is beyond numbers."""
        positive, negative = np.zeros(self.rows.n_rows), np.zeros(self.rows.n_rows)
        positive[self._positives], negative[self._negatives] = self.surrogate.weights
        return find_spread(self.rows, positive, negative)

    def deviation(self, scores: Scores) -> float:
        """Give the standard deviation of the negatives' scores, or a share of the classes' distance where that is more.

        Where the classes can be parted perfectly all negatives may score alike.
        """
        weight = self.surrogate.weights[1] / self.surrogate.window.total
        mean = float((weight * scores.negative).sum())
        own = float(np.sqrt((weight * (scores.negative - mean) ** 2).sum()))
        above = float(np.average(scores.positive, weights=self.surrogate.weights[0])) - mean
        return max(own, LEAST_DEVIATION * abs(above))

    def nothing(self) -> Scores:
        """Give the scores of w = 0."""
        return Scores(np.zeros(len(self._positives)), np.zeros(len(self._negatives)))

    def scores(self, w: Floats) -> Scores:
        """Score the rows; the one product with the table in an iteration."""
        scores = self.rows.scores(w)
        return Scores(scores[self._positives], scores[self._negatives])

    def at(self, scores: Scores) -> Violations:
        """Evaluate R at the scores of some w."""
        return self.surrogate.at(*scores)

    def plane(self, violations: Violations) -> Plane:
        """Lay down the plane that touches R where it was evaluated."""
        share = np.zeros(self.rows.n_rows)
        share[self._positives] = violations.pushed
        crossed = self._negatives if violations.rows is None else self._negatives[violations.rows]
        share[crossed] = violations.crossed
        return Plane(violations.loss, self.rows.total(share))
