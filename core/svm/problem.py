"""Rows, their classes and a surrogate: risk and planes as functions of w, and the axes along which scores vary."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from core.linear.design import Ints, Rows, Sample
from core.ranker import Floats

from .surrogates import Surrogate, Violations, Window

# The variance of scores is estimated from so many rows for each coordinate, and from these at least and at most; where
# that would be more numbers, from fewer. Products are those of the coordinates of greatest variance.
ROWS_PER_COORDINATE, FEWEST_ROWS, MOST_ROWS, MOST_NUMBERS = 10, 500, 5000, 2**22
AXES_BLOCK = 512

# Rows, and their weight, up to which all are read: their order is of no effect then, beyond that within the tolerance.
READ_WHOLE = 1200

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

    def range(self) -> float:
        """Give the distance from the lowest to the highest score."""
        parts = (self.positive, self.negative)
        return float(max(part.max() for part in parts) - min(part.min() for part in parts))


class Plane(NamedTuple):
    """R(w) >= loss + gradient · w."""

    loss: float
    gradient: Floats


class PrincipalAxes(NamedTuple):
    """Axes along which scores vary independently, as far as some rows tell.

    `block` (k,) lists the coordinates of greatest variance, the others are axes themselves; `axes` (k, k) has an
    orthogonal column for each axis of the block; `variance` (size,) is that along each.
    """

    block: Ints
    axes: Floats
    variance: Floats

    def rotated(self, w: Floats) -> Floats:
        """Write vectors of coordinates, which are the last dimension, along the axes."""
        turned = w.copy()
        turned[..., self.block] = w[..., self.block] @ self.axes
        return turned

    def rotated_back(self, turned: Floats) -> Floats:
        """Write a vector along the axes in coordinates."""
        w = turned.copy()
        w[self.block] = self.axes @ turned[self.block]
        return w


@dataclass(frozen=True, eq=False)
class Problem:
    """The risk R of some rows of each class as a function of w; the surrogate knows their weights."""

    rows: Rows
    positives: Ints
    negatives: Ints
    surrogate: Surrogate

    @property
    def size(self) -> int:
        """Number of coordinates of w."""
        return self.rows.size

    def find_axes(self) -> PrincipalAxes | None:
        """Find how the differences of a positive's and a negative's score vary; None where that is beyond numbers."""
        positive, negative = np.zeros(self.rows.n_rows), np.zeros(self.rows.n_rows)
        positive[self.positives], negative[self.negatives] = self.surrogate.weights
        return find_axes(self.rows, positive, negative)

    def deviation(self, scores: Scores) -> float:
        """Give the standard deviation of the negatives' scores, or a share of the classes' distance where that is more.

        Where the classes can be parted perfectly all negatives may score alike.
        """
        weight = self.surrogate.weights[1] / self.surrogate.window.total
        mean = float((weight * scores.negative).sum())
        own = float(np.sqrt((weight * (scores.negative - mean) ** 2).sum()))
        above = float(np.average(scores.positive, weights=self.surrogate.weights[0])) - mean
        return max(own, LEAST_DEVIATION * abs(above))

    def zero_scores(self) -> Scores:
        """Give the scores of w = 0."""
        return Scores(np.zeros(len(self.positives)), np.zeros(len(self.negatives)))

    def scores(self, w: Floats) -> Scores:
        """Score the rows; the one product with the table in an iteration."""
        scores = self.rows.scores(w)
        return Scores(scores[self.positives], scores[self.negatives])

    def at(self, scores: Scores) -> Violations:
        """Evaluate R at the scores of some w."""
        return self.surrogate.at(*scores)

    def plane(self, violations: Violations) -> Plane:
        """Lay down the plane that touches R where it was evaluated."""
        share = np.zeros(self.rows.n_rows)
        share[self.positives] = violations.of_positives
        crossed = self.negatives if violations.rows is None else self.negatives[violations.rows]
        share[crossed] = violations.of_negatives
        return Plane(violations.loss, self.rows.weighted_sum(share))


def problem_of(sample: Sample, window: Window, *, naive: bool = False) -> Problem:
    """Give the risk of a sample's rows on a window, by a convex surrogate."""
    weights = sample.weights(sample.positives), sample.weights(sample.negatives)
    surrogate = Surrogate(*weights, window, naive=naive)
    return Problem(sample.rows, sample.positives, sample.negatives, surrogate)


def find_axes(rows: Rows, positive: Floats, negative: Floats) -> PrincipalAxes | None:
    """Find the axes of the covariance of differences between a positive and a negative: the sum of both classes'.

    `positive` and `negative` are the rows' weights in each class, 0 for those of the other. None where the covariance
    is beyond floating point.
    """
    asked = min(ROWS_PER_COORDINATE * rows.size, MOST_ROWS, MOST_NUMBERS // max(rows.width, 1))
    most = max(asked, FEWEST_ROWS) // 2  # of each class
    share = positive + negative
    if np.count_nonzero(share) <= READ_WHOLE and share.sum() <= READ_WHOLE:
        most = READ_WHOLE
    drawn = [_draw_by_mass(weight, most) for weight in (positive, negative)]
    taken = np.unique(np.concatenate([rows_of_class for rows_of_class, _ in drawn]))
    sample = rows.take(taken)
    both, means = np.zeros(sample.n_rows), []
    for rows_of_class, times in drawn:
        share = np.zeros(sample.n_rows)
        share[np.searchsorted(taken, rows_of_class)] = times / times.sum()
        both += share
        means.append(sample.weighted_sum(share))
    with np.errstate(all="ignore"):
        variance = np.maximum(sample.squares(both) - sum(mean**2 for mean in means), 0.0)
        block = np.sort(np.argsort(-variance, kind="stable")[:AXES_BLOCK])
        covariance = sample.products(block, both)[:-1, :-1]
        covariance -= sum(np.outer(mean[block], mean[block]) for mean in means)
    if not (np.isfinite(covariance).all() and np.isfinite(variance).all()):
        return None
    along, axes = np.linalg.eigh(covariance)
    variance[block] = np.maximum(along, 0.0)
    return PrincipalAxes(block, axes, variance)


def _draw_by_mass(weight: Floats, most: int) -> tuple[Ints, Floats]:
    """Take rows at even distances of weight; all, where they are few. Give which, rising, and how often each counts."""
    mass = np.cumsum(weight)
    if np.count_nonzero(weight) <= most and mass[-1] <= most:
        taken = np.flatnonzero(weight)
        return taken, weight[taken]
    places = (np.arange(most) + 0.5) * (mass[-1] / most)
    found = np.minimum(np.searchsorted(mass, places, side="right"), len(weight) - 1)
    taken, times = np.unique(found, return_counts=True)
    return taken, times.astype(np.float64)
