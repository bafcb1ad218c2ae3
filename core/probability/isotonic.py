"""Isotonic regression of binary labels on a score, and Venn–Abers pairs of probabilities.

**Isotonic regression** is the non-decreasing function of the score with the least Brier score. Pooling adjacent
violators finds it in one pass over the distinct scores: neighbours whose positive fractions fall are pooled into one
block. On the cumulative diagram (mass, positive mass), the values are the slopes of the greatest convex minorant.

**Venn–Abers.** A new row is either positive or negative. The isotonic regression is fitted twice, with the row added as
a negative and as a positive; p0 and p1 are its values at the row. If rows are exchangeable, one of the two is perfectly
calibrated, without any other assumption. The pair is no confidence interval: p1 − p0 falls faster with the number of
rows than the error of the isotonic regression.

No refit is needed. With the row added to tie group i, the points of the diagram from i on are moved by (1, y), and the
value is the slope of the line that touches the lower hull of the points before i and that of the moved points from i
on, both from below. As i grows, both points of contact move to the right only. So one pass over the groups finds p0 of
all scores, and another one p1: O(n) after the sort, as in the paper's algorithm.

References
----------
Ayer, Brunk, Ewing, Reid & Silverman, "An empirical distribution function for sampling with incomplete information",
Annals of Mathematical Statistics 26 (1955).
Vovk, Petej & Fedorova, "Large-scale probabilistic predictors with and without guarantees of validity", NeurIPS 28
(2015).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidData
from core.kernels import kernel
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    ScoreGroups,
    check_rows,
    effective_units,
    tie_groups,
)
from core.metrics.intervals import effective_of

# Steps of p0 and of p1 that are stored. Neighbouring steps beyond it are merged to the outer of their values.
MAX_STEPS = 20_000

MIN_CLASS_SHARE = 1e-12
"""Of the weight of all rows: a class of less is lost in rounding, and says nothing of probabilities."""


class ScoreMasses(NamedTuple):
    """The distinct scores, ascending, with the weight of all rows and of the positives at each.

    All arrays have the shape (n_scores,), float64.
    """

    scores: FloatArray
    mass: FloatArray
    positive: FloatArray

    def in_cells(self, max_cells: int) -> ScoreMasses:
        """Return at most `max_cells` distinct scores: neighbours are merged into cells of about equal weight."""
        if self.scores.size <= max_cells:
            return self
        sums = np.cumsum(self.mass)
        marks = np.arange(max_cells) / max_cells * sums[-1]
        starts = np.unique(np.searchsorted(sums, marks, side="right"))
        mass = np.add.reduceat(self.mass, starts)
        largest = np.abs(self.scores[[0, -1]]).max() or 1.0  # so that no sum overflows
        scores = np.add.reduceat(self.scores / largest * self.mass, starts) / mass * largest
        return ScoreMasses(scores, mass, np.add.reduceat(self.positive, starts))


def masses_of(rows: EvaluatedRows, effective: tuple[float, float] | None = None) -> ScoreMasses:
    """Return the row weights by distinct score, scaled so that they sum to the effective number of rows.

    So a weight of 5 in each row is not five rows. Without weights and units every row counts 1. `effective` are the
    effective rows of the positives and of the negatives; by default those of `effective_units`.

    InvalidData: a class has less than `MIN_CLASS_SHARE` of the weight.
    """
    groups = tie_groups(rows)
    check_class_shares(groups)
    positive = np.ascontiguousarray(groups.positive[::-1])
    mass = positive + groups.negative[::-1]
    if rows.weight is not None or rows.unit is not None:
        scale = sum(effective or effective_units(rows)) / mass.sum()
        positive, mass = positive * scale, mass * scale
    return ScoreMasses(np.ascontiguousarray(groups.scores[::-1]), mass, positive)


def cells_of(groups: ScoreGroups, max_cells: int) -> ScoreMasses:
    """Return `masses_of` for rows without groups, given their tie groups (in memory or in files).

    Of more than about `max_cells` scores they are the masses of cells of neighbours, see `ScoreMasses.in_cells`.
    InvalidData: as `masses_of`.
    """
    check_class_shares(groups)
    total = float(groups.flagged_positive[-1]) + float(groups.flagged_negative[-1])
    parts = []
    for block in groups.blocks():
        positive = np.ascontiguousarray(block.positive[::-1])
        mass = positive + block.negative[::-1]
        part = ScoreMasses(np.ascontiguousarray(block.scores[::-1]), mass, positive)
        if len(groups) > max_cells:
            part = part.in_cells(max(1, round(max_cells * float(mass.sum()) / total)))
        parts.append(part)
    scores, mass, positive = (np.concatenate(each) for each in zip(*parts[::-1], strict=True))
    scale = sum(effective_of(groups)) / mass.sum()
    return ScoreMasses(scores, mass * scale, positive * scale)


def check_class_shares(groups: ScoreGroups) -> None:
    of_classes = float(groups.flagged_positive[-1]), float(groups.flagged_negative[-1])
    for name, mass in zip(("positive", "negative"), of_classes, strict=True):
        if mass < MIN_CLASS_SHARE * sum(of_classes):
            raise InvalidData(
                f"sample_weight must give each class at least {MIN_CLASS_SHARE:g} of the total weight for "
                f"probabilities, got {mass:g} of {sum(of_classes):g} for the {name} rows"
            )


@dataclass(frozen=True, eq=False)
class Isotonic:
    """A non-decreasing, piecewise linear function, constant outside its knots."""

    scores: FloatArray
    """Knots, strictly increasing. Shape (n_knots,)."""
    values: FloatArray
    """Values at the knots, non-decreasing, in [0, 1]; InvalidData otherwise. Shape (n_knots,)."""

    def __post_init__(self) -> None:
        for name in ("scores", "values"):
            column = np.asarray(getattr(self, name), dtype=np.float64).view()
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        if self.scores.ndim != 1 or self.scores.shape != self.values.shape or not self.scores.size:
            shapes = f"{self.scores.shape} and {self.values.shape}"
            raise InvalidData(f"scores and values must be vectors of the same length, got {shapes}")
        if not (np.all(np.isfinite(self.scores)) and np.all(np.diff(self.scores) > 0)):
            raise InvalidData("the scores of an isotonic function must be finite and increasing")
        in_range = np.all((self.values >= 0.0) & (self.values <= 1.0))
        if not (in_range and np.all(np.diff(self.values) >= 0)):
            raise InvalidData(
                "the values of an isotonic function must be in [0, 1] and non-decreasing"
            )

    def __call__(self, scores: ArrayLike) -> FloatArray:
        at = np.asarray(scores, dtype=np.float64)
        found: FloatArray = np.interp(at, self.scores, self.values)
        return found


def smoothed_isotonic(masses: ScoreMasses) -> Isotonic:
    """Return the isotonic regression with values in (0, 1), so that its log loss is finite on any rows.

    Only the first block can be 0 and only the last one 1. Its value is replaced by the fraction of positives after
    adding one row with the prevalence π as label: π / (m + 1) for a first block of m rows, 1 − (1 − π) / (m + 1) for a
    last one; but never beyond the neighbouring block.
    """
    of, starts, values = _blocks_of(masses)
    prevalence = float(masses.positive.sum() / masses.mass.sum())
    mass = np.add.reduceat(masses.mass, starts)
    if values[0] <= 0.0:
        values[0] = min(prevalence / (mass[0] + 1.0), values[1])
    if values[-1] >= 1.0:
        values[-1] = max(1.0 - (1.0 - prevalence) / (mass[-1] + 1.0), values[-2])
    return _with_knots(of, starts, values)


def isotonic_values(mass: FloatArray, positive: FloatArray) -> FloatArray:
    """Return the isotonic regression's value at each distinct score, shape (n_scores,). O(n_scores)."""
    values = np.empty(mass.size)
    _pool(mass, positive, np.empty(mass.size, dtype=np.int64), values)
    return values


def _blocks_of(masses: ScoreMasses) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Return the scores, the first score index of each isotonic block, and each block's value."""
    starts, values = np.empty(masses.mass.size, dtype=np.int64), np.empty(masses.mass.size)
    n_blocks = _pool(masses.mass, masses.positive, starts, values)
    starts = starts[:n_blocks]
    return masses.scores, starts, values[starts]


def _with_knots(scores: FloatArray, starts: NDArray[np.int64], values: FloatArray) -> Isotonic:
    """Return the piecewise linear function with knots at the first and the last score of each block."""
    ends = np.append(starts[1:], scores.size) - 1
    at = np.stack((starts, ends), axis=1).ravel()
    first = np.append(True, at[1:] > at[:-1])
    return Isotonic(scores[at[first]], np.repeat(values, 2)[first])


@kernel(
    numba.int64(
        numba.float64[::1],
        numba.float64[::1],
        numba.int64[::1],
        numba.float64[::1],
    )
)
def _pool(mass, positive, starts, values):  # type: ignore[no-untyped-def]
    """Pool adjacent violators of the isotonic order; write the blocks, and return their number.

    mass, positive: of all rows and of the positives at each score, ascending; starts, values: (n_scores,), where each
    block begins, and the value at each score.
    """
    n = len(mass)
    sums = np.empty(n)
    totals = np.empty(n)
    n_blocks = 0
    for i in range(n):
        start, total, above = i, mass[i], positive[i]
        while n_blocks > 0 and sums[n_blocks - 1] * total >= above * totals[n_blocks - 1]:
            n_blocks -= 1
            start = starts[n_blocks]
            total += totals[n_blocks]
            above += sums[n_blocks]
        starts[n_blocks], totals[n_blocks], sums[n_blocks] = start, total, above
        n_blocks += 1
    for block in range(n_blocks):
        end = starts[block + 1] if block + 1 < n_blocks else n
        value = min(sums[block] / totals[block], 1.0)
        for i in range(starts[block], end):
            values[i] = value
    return n_blocks


@dataclass(frozen=True, eq=False)
class VennAbers:
    """Venn–Abers predictor: a pair of probabilities (p0, p1) for every score, as two step functions.

    Parameters
    ----------
    low_scores, low_values : array_like of float64, shape (n_low,)
        p0 is `low_values[k]` from `low_scores[k]` on, up to the next. Below the first it is 0.
    high_scores, high_values : array_like of float64, shape (n_high,)
        p1 is `high_values[k]` up to `high_scores[k]`, from after the previous one. Above the last it is 1.

    Examples
    --------
    >>> from core.probability import VennAbers
    >>> low, high = VennAbers([1.0], [0.3], [2.0], [0.6])([0.0, 2.0, 3.0])
    >>> low.tolist(), high.tolist()
    ([0.0, 0.3, 0.3], [0.6, 0.6, 1.0])
    """

    low_scores: FloatArray
    low_values: FloatArray
    high_scores: FloatArray
    high_values: FloatArray

    def __post_init__(self) -> None:
        for side in ("low", "high"):
            steps = Isotonic(getattr(self, f"{side}_scores"), getattr(self, f"{side}_values"))
            object.__setattr__(self, f"{side}_scores", steps.scores)
            object.__setattr__(self, f"{side}_values", steps.values)

    @cached_property
    def _low(self) -> FloatArray:
        return np.append(0.0, self.low_values)

    @cached_property
    def _high(self) -> FloatArray:
        return np.append(self.high_values, 1.0)

    def __call__(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return (p0, p1) at scores of any shape. O(log n_steps) each."""
        low: FloatArray = self._low[np.searchsorted(self.low_scores, scores, side="right")]
        high: FloatArray = self._high[np.searchsorted(self.high_scores, scores, side="left")]
        return low, high


def fit_venn_abers(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> VennAbers:
    """Fit the inductive Venn–Abers predictor on scores of held-out rows.

    With weights, the new row counts as one of the effective number of rows. Validity is proven without weights only.

    Parameters
    ----------
    y, sample_weight, scores
        As for `fit_calibration`.

    Returns
    -------
    VennAbers
        The predictor. O(n log n).

    Examples
    --------
    >>> from core.probability import fit_venn_abers
    >>> pair = fit_venn_abers([0, 0, 1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> low, high = pair([0.0, 3.5, 7.0])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.333, 0.667], [0.333, 0.667, 1.0])
    """
    return venn_abers_of(masses_of(check_rows(y, {"scores": scores}, sample_weight)))


def venn_abers_of(masses: ScoreMasses, max_steps: int = MAX_STEPS) -> VennAbers:
    """Return the Venn–Abers predictor of scores; more than `max_steps` steps are merged conservatively."""
    W = np.append(0.0, np.cumsum(masses.mass))
    Y = np.append(0.0, np.cumsum(masses.positive))
    p0, p1 = np.empty(masses.mass.size), np.empty(masses.mass.size)
    _touch(W, Y, 0.0, p0)
    _touch(W, Y, 1.0, p1)
    # Rounding in the sums must not make a step fall.
    p0 = np.maximum.accumulate(np.clip(p0, 0.0, 1.0))
    p1 = np.maximum.accumulate(np.clip(p1, 0.0, 1.0))
    first = np.append(True, p0[1:] > p0[:-1])
    last = np.append(p1[1:] > p1[:-1], True)
    low, high = np.flatnonzero(first), np.flatnonzero(last)
    if low.size > max_steps:
        low = low[np.linspace(0, low.size - 1, max_steps).astype(np.intp)]
    if high.size > max_steps:
        high = high[np.linspace(0, high.size - 1, max_steps).astype(np.intp)]
    return VennAbers(masses.scores[low], p0[low], masses.scores[high], p1[high])


@kernel(
    numba.void(
        numba.float64[::1],
        numba.float64[::1],
        numba.float64,
        numba.float64[::1],
    )
)
def _touch(W, Y, label, values):  # type: ignore[no-untyped-def]
    """Write the isotonic value at each tie group after adding one row with this label (0 or 1) to it.

    W, Y: (n_scores + 1,), cumulative mass and positive mass, after a leading 0.
    """
    n = len(values)
    # The lower hull of the points from i on is i, following[i], following[following[i]], …
    following = np.empty(n + 1, dtype=np.int64)
    following[n] = -1
    for i in range(n - 1, 0, -1):
        j = i + 1
        while following[j] >= 0:
            k = following[j]
            if (Y[j] - Y[i]) * (W[k] - W[i]) < (Y[k] - Y[i]) * (W[j] - W[i]):
                break
            j = k
        following[i] = j
    hull = np.empty(n, dtype=np.int64)  # the lower hull of the points before i
    n_hull, left, right = 0, 0, 1
    for i in range(1, n + 1):
        new = i - 1
        while n_hull > 1:
            a, b = hull[n_hull - 2], hull[n_hull - 1]
            if (Y[b] - Y[a]) * (W[new] - W[a]) < (Y[new] - Y[a]) * (W[b] - W[a]):
                break
            n_hull -= 1
        hull[n_hull] = new
        n_hull += 1
        left, right = min(left, n_hull - 1), max(right, i)
        while True:
            a = hull[left]
            dw, dy = W[right] + 1.0 - W[a], Y[right] + label - Y[a]
            # From the point on the left, find the least slope; then see whether the next point touches below.
            while following[right] >= 0:
                k = following[right]
                kw, ky = W[k] + 1.0 - W[a], Y[k] + label - Y[a]
                if ky * dw > dy * kw:
                    break
                right, dw, dy = k, kw, ky
            if left + 1 == n_hull:
                break
            b = hull[left + 1]
            if (Y[b] - Y[a]) * dw > dy * (W[b] - W[a]):
                break
            left += 1
        values[i - 1] = dy / dw
