"""The surrogates of the partial AUC risk, as functions of the scores and of w, and their tangent planes.

The convex ones are `Surrogate` and, for the highest negative alone, `TopSurrogate`. `SigmoidSurrogate` is 1 - pAUC
itself with its steps smoothed:

    R(w) = (2/m) Σ_i (1/B) Σ_b σ(θ_b - s_i),    σ(t) = 1 / (1 + e^-t)

The negatives between the ranks j_α and j_β are divided, in the order of their scores, into B blocks of equal mass. The
threshold θ_b, which positives are compared with, is the mean score of block b. With at most MAX_BLOCKS negatives in the
window each block is one negative, and R is the mean of 2σ(z_j - s_i) over the pairs of eq. 9, in which the paper has
the hinge loss. 2σ(t) >= 1[t >= 0], so R is above 1 - pAUC of the thresholds, and R(0) = 1, as for the convex
surrogates. Unlike theirs its loss levels off: a positive that scores far too low has no more influence than others, and
the mean of the positives does not decide whether w = 0 is the optimum. The price is that R is not convex. ‖w‖, and so
C, controls how steep the steps are: there is no other scale.

References
----------
L. Yan, R. Dodier, M. Mozer and R. Wolniewicz, "Optimizing classifier performance via an approximation to the
Wilcoxon-Mann-Whitney statistic", ICML 2003: smooth steps in the place of the AUC's.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.kernels import kernel
from core.metrics.window import window_weights

from .design import Ints, LinearRows, LinearSample

# Blocks of negatives that the sigmoid surrogate compares positives with.
MAX_BLOCKS = 100

_F = numba.float64
_OUT = numba.float64[::1]
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)

# Least deviation of the scores, as a fraction of the distance between the classes' mean scores.
MIN_DEVIATION = 0.03


# Score ranges below this are searched by bisection alone: the guide table's scale would overflow.
MIN_SPAN = 1e-200


class MassWindow(NamedTuple):
    """A window of false positive rates, as weights of negatives counted from the highest score."""

    low: float
    """j_α."""
    high: float
    """j_β."""
    total: float
    """Of all negatives."""


def window_of(weight: Floats, fpr_min: float, fpr_max: float) -> MassWindow:
    """Return a window of false positive rates as a `MassWindow`, given the weights of the negatives.

    fpr_max = 0 stands for the highest negative alone: the window then has the mass of the lightest one.

    The masses are ⌊nα⌋ and ⌈nβ⌉ (eq. 2) if all weights are whole: a row of weight k is k rows. Else
    they are nα and nβ themselves, as in `core.metrics.partial_auc`: fractions of rows have no ranks.
    """
    if fpr_max == 0.0:
        return MassWindow(0.0, float(weight.min()), float(weight.sum()))
    total, whole = float(weight.sum()), bool((weight == np.floor(weight)).all())
    return MassWindow(*window_weights(total, fpr_min, fpr_max, whole=whole), total)


class Violations(NamedTuple):
    """The surrogate R at given scores, and its tangent plane loss + g·w there.

    The gradient is g = Σ weight · x over the rows; the weights of all rows sum to 0.
    """

    value: float
    """R."""
    loss: float
    rows: npt.NDArray[np.intp] | None
    """Negatives with a weight in g; None for all of them."""
    of_negatives: Floats
    """Weights of these negatives in g."""
    of_positives: Floats
    """Weights of the positives in g, at most 0."""

    def slope(self, s: Floats, z: Floats) -> float:
        """Return g·w, given the scores s of the positives and z of the negatives for w."""
        crossed = z if self.rows is None else z[self.rows]
        return _dot(self.of_positives, s) + _dot(self.of_negatives, crossed)


class Surrogate:
    """R as a function of the rows' scores: an upper bound of 1 - pAUC, convex in w.

    positive_weight: (m,).
    negative_weight: (n,).
    naive: whether positives are also compared with the negatives below the window, with margin 0 (eq. 11); else the
        tight surrogate (eq. 14 if low is 0, eq. 18).

    Everything is divided by m (j_β - j_α), including the feature map of the naive surrogate, for which the paper prints
    mn: only then tight <= naive. Tied negatives have weights in proportion to their own, so that the plane does not
    depend on the order of rows. At w = 0, R = 1.

    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: eqs. 11, 14, 18; Algorithms 2 and 3; Appendix B.1.
    """

    def __init__(
        self,
        positive_weight: Floats,
        negative_weight: Floats,
        window: MassWindow,
        *,
        naive: bool = False,
    ) -> None:
        self.window = window
        self.naive = naive
        self.weights = positive_weight, negative_weight
        self._p = positive_weight / positive_weight.sum()
        self._q = negative_weight
        self._unweighted = bool((negative_weight == 1.0).all())
        self._top = window.total if naive else window.high
        self._unit = window.high - window.low
        self._is_whole = window.low == 0.0 and window.high == window.total

    def at(self, s: Floats, z: Floats) -> Violations:
        """Return R and its tangent plane.

        s: (m,); scores of the positives.
        z: (n,); scores of the negatives.

        O((m + j_β) log j_β + n) if tight and unweighted; O((m + n) log n) if naive or weighted; O((m + n) log m) for
        the whole curve with fewer positives than negatives.
        """
        if self._is_whole and len(s) < len(z):
            return self._at_whole(s, z)
        rows = self._highest(z)
        runs, crossed = np.empty(len(s)), np.empty(len(rows))
        low, high, _ = self.window
        q = self._q[: len(rows)] if self._unweighted else self._q[rows]
        value, loss = find_violations(s, self._p, z[rows], q, low, high, self._top, runs, crossed)
        crossed /= self._unit
        runs *= self._p
        runs /= -self._unit
        value, loss = value / self._unit, loss / self._unit
        if len(rows) < len(z):
            return Violations(value, loss, rows, crossed, runs)
        of_row = np.empty(len(z))
        of_row[rows] = crossed
        return Violations(value, loss, None, of_row, runs)

    def _at_whole(self, s: Floats, z: Floats) -> Violations:
        order = np.argsort(s)
        of_order, crossed = np.empty(len(s)), np.empty(len(z))
        value, loss = find_pair_violations(s[order], self._p[order], z, self._q, of_order, crossed)
        runs = np.empty(len(s))
        runs[order] = of_order
        runs *= self._p
        runs /= -self._unit
        crossed /= self._unit
        return Violations(value / self._unit, loss / self._unit, None, crossed, runs)

    def _highest(self, z: Floats) -> npt.NDArray[np.intp]:
        """Return the indices of the highest negatives with total weight `top`, descending, last ties included."""
        n = len(z)
        if self._unweighted and self._top < n:
            last = n - int(np.ceil(self._top))
            rows = np.flatnonzero(z >= np.partition(z, last)[last])
            return rows[np.argsort(-z[rows])]
        order = np.argsort(-z)
        if self._top == self.window.total:
            return order
        above = np.cumsum(self._q[order])
        end = int(np.searchsorted(above, self._top, side="left"))
        end = min(end, n - 1)
        while end + 1 < n and z[order[end + 1]] == z[order[end]]:
            end += 1
        return order[: end + 1]


class TopSurrogate(Surrogate):
    """The squared hinge loss of each positive against the highest negative.

        R(w) = Σ_i p_i (1 + max_j z_j - s_i)₊²,    Σ p_i = 1

    An upper bound of the mass of the positives that do not score above all negatives, convex in w; R(0) = 1. Negatives
    that are tied at the top share in the plane in proportion to their weights. Otherwise a negative's weight does not
    matter: the highest of k equal rows scores as one of them.

    N. Li, R. Jin and Z.-H. Zhou, "Top Rank Optimization in Linear Time", NIPS 2014: eqs. 2 and 3.
    """

    def at(self, s: Floats, z: Floats) -> Violations:
        """Return R and its tangent plane in O(m + n); see `Surrogate.at`."""
        highest = z.max()
        rows = np.flatnonzero(z == highest)
        short = np.maximum(1.0 + (highest - s), 0.0)
        of_positives = -2.0 * self._p * short
        share = self._q[rows] / self._q[rows].sum()
        crossed = -float(of_positives.sum()) * share
        value = float((self._p * short * short).sum())
        slope = _dot(of_positives, s) + _dot(crossed, z[rows])
        return Violations(value, value - slope, rows, crossed, of_positives)


def _dot(a: Floats, b: Floats) -> float:
    """Return the scalar product a · b without BLAS, whose result depends on its number of threads."""
    return float(np.einsum("i,i->", a, b))


class SigmoidSurrogate(Surrogate):
    """The partial AUC risk with sigmoids for steps, as a function of the rows' scores; not convex.

    Tied negatives share their blocks in proportion to their weights, so that nothing depends on the order of rows. A
    block may end within a weighted row.
    """

    def at(self, s: Floats, z: Floats) -> Violations:
        """Return R and its tangent plane, not below R here; see `Surrogate.at`. O(m B + n + j_β log j_β), B blocks."""
        low, high, _ = self.window
        rows = self._highest(z)
        first = np.flatnonzero(np.append(True, np.diff(z[rows]) != 0.0))  # of each run of ties
        mass = np.add.reduceat(self._q[rows], first)
        ends = np.cumsum(mass)
        ends[-1] = max(ends[-1], high)
        whole = bool((self._q == np.floor(self._q)).all())
        n_blocks = int(min(MAX_BLOCKS, self._unit)) if whole else MAX_BLOCKS
        bounds = low + self._unit * (np.arange(n_blocks + 1) / n_blocks)
        inside = ends[(ends > low) & (ends < high)]
        edges = np.unique(np.concatenate([bounds, inside]))
        # a piece is the part of a run of ties that lies in one block
        piece = np.diff(edges) * (n_blocks / self._unit)
        run = np.searchsorted(ends, edges[:-1], side="right")
        block = np.minimum(np.searchsorted(bounds, edges[:-1], side="right") - 1, n_blocks - 1)
        thresholds = np.bincount(block, piece * z[rows][first][run], n_blocks)
        s_slope, threshold_slope = np.empty(len(s)), np.zeros(n_blocks)
        value = sum_sigmoids(s, self._p, thresholds, s_slope, threshold_slope)
        of_run = np.bincount(run, piece * threshold_slope[block], len(first)) / mass
        lengths = np.diff(np.append(first, len(rows)))
        crossed = np.repeat(of_run, lengths) * self._q[rows]
        slope = float((s_slope * s).sum()) + float((crossed * z[rows]).sum())
        return Violations(value, value - slope, rows, crossed, s_slope)


class Scores(NamedTuple):
    """The scores of the positives and of the negatives for some w; linear in w."""

    positive: Floats
    negative: Floats

    def scaled(self, factor: float) -> "Scores":
        return Scores(factor * self.positive, factor * self.negative)

    def toward(self, other: "Scores", t: float) -> "Scores":
        moved = Scores(np.empty_like(self.positive), np.empty_like(self.negative))
        for start, end, part in zip(self, other, moved, strict=True):
            np.subtract(end, start, out=part)
            np.multiply(part, t, out=part)
            np.add(part, start, out=part)
        return moved

    def range(self) -> float:
        parts = (self.positive, self.negative)
        return float(max(part.max() for part in parts) - min(part.min() for part in parts))


class Plane(NamedTuple):
    """A lower bound of R: loss + gradient·w."""

    loss: float
    gradient: Floats


@dataclass(frozen=True, eq=False)
class Problem:
    """The risk R as a function of w, for the rows `positives` and `negatives`; the surrogate has their weights."""

    rows: LinearRows
    positives: Ints
    negatives: Ints
    surrogate: Surrogate

    @property
    def size(self) -> int:
        return self.rows.size

    def deviation(self, scores: Scores) -> float:
        """Return the standard deviation of the negatives' scores.

        At least `MIN_DEVIATION` times the distance between the classes' means: if the classes can be separated, all
        negatives may score alike.
        """
        weight = self.surrogate.weights[1] / self.surrogate.window.total
        mean = float((weight * scores.negative).sum())
        own = float(np.sqrt((weight * (scores.negative - mean) ** 2).sum()))
        above = float(np.average(scores.positive, weights=self.surrogate.weights[0])) - mean
        return max(own, MIN_DEVIATION * abs(above))

    def zero_scores(self) -> Scores:
        return Scores(np.zeros(len(self.positives)), np.zeros(len(self.negatives)))

    def scores(self, w: Floats) -> Scores:
        """Return the scores of the rows for w: the only product with the table in an iteration."""
        scores = self.rows.scores(w)
        return Scores(scores[self.positives], scores[self.negatives])

    def at(self, scores: Scores) -> Violations:
        """Return R at the scores of some w, with its tangent plane in terms of the rows."""
        return self.surrogate.at(*scores)

    def plane(self, violations: Violations) -> Plane:
        """Return the tangent plane in terms of the coordinates."""
        row_weight = np.zeros(self.rows.n_rows)
        row_weight[self.positives] = violations.of_positives
        crossed = self.negatives if violations.rows is None else self.negatives[violations.rows]
        row_weight[crossed] = violations.of_negatives
        return Plane(violations.loss, self.rows.weighted_sum(row_weight))


def problem_of(
    sample: LinearSample,
    window: MassWindow,
    kind: type[Surrogate] = Surrogate,
    *,
    naive: bool = False,
) -> Problem:
    weights = sample.weights(sample.positives), sample.weights(sample.negatives)
    surrogate = kind(*weights, window, naive=naive)
    return Problem(sample.rows, sample.positives, sample.negatives, surrogate)


@kernel(numba.float64(_FLOATS, _FLOATS, _FLOATS, _OUT, _OUT))
def sum_sigmoids(s, p, thresholds, s_slope, threshold_slope):  # type: ignore[no-untyped-def]
    """Return Σ_i p_i (2/B) Σ_b σ(θ_b - s_i); write derivatives by s_i, add those by θ_b."""
    scale = 2.0 / len(thresholds)
    value = 0.0
    for i in range(len(s)):
        own = slope = 0.0
        for b in range(len(thresholds)):
            small = math.exp(-abs(thresholds[b] - s[i]))
            sigmoid = 1.0 / (1.0 + small)
            step = small * sigmoid * sigmoid
            own += sigmoid if thresholds[b] >= s[i] else small * sigmoid
            slope += step
            threshold_slope[b] += scale * p[i] * step
        value += scale * p[i] * own
        s_slope[i] = -scale * p[i] * slope
    return value


@kernel(numba.int64(_OUT, _F), inner=True)
def _count_at_least(z, bound):  # type: ignore[no-untyped-def]
    """Return how many values of z, (n,) float64, descending, are at least `bound`."""
    first, last = 0, len(z)
    while first < last:
        middle = (first + last) >> 1
        if z[middle] >= bound:
            first = middle + 1
        else:
            last = middle
    return first


@kernel(numba.types.Tuple((_F, _F))(_OUT, _OUT, _OUT, _OUT, _F, _F, _F, _OUT, _OUT))
def find_violations(s, p, z, q, low, high, top, runs, crossed):  # type: ignore[no-untyped-def]
    """Find for each positive the run of highest negatives that maximises its loss H.

    s, p: (m,), float64; scores and weights of the positives, in any order.
    z, q: (k,), float64; scores, falling, and weights of the highest negatives: of mass `top` or more, the last ones
        tied.
    low, high, top: float; masses of negatives, 0 <= low < high <= top.
    runs: (m,), float64; receives the mass of each positive's run.
    crossed: (k,), float64; receives Σ p over the positives whose run holds the negative, times its mass; divided in
        proportion to their weights among negatives of equal score, so that their order does not matter.

    value, loss: float; Σ p H, and the part of it that does not depend on the scores.

    O(m log k + k).
    """
    k = len(z)
    above, sums = np.empty(k + 1), np.empty(k + 1)
    above[0] = sums[0] = 0.0
    for j in range(k):
        above[j + 1] = min(above[j] + q[j], top)
        sums[j + 1] = sums[j] + (above[j + 1] - above[j]) * z[j]
    sum_low = sum_high = 0.0  # of the scores of this mass from the top
    row = 0
    for end in range(2):
        mass = low if end == 0 else high
        while row < k - 1 and above[row + 1] <= mass:
            row += 1
        sum_low, sum_high = sum_high, sums[row] + (mass - above[row]) * z[row]
    for j in range(k):
        crossed[j] = 0.0  # first the positive mass by the last row of its run
    stop_low = stop_high = 0.0  # and at the ends of the window, which may lie within a row
    value = loss = 0.0
    for i in range(len(s)):
        # in the window, whose margin is 1
        end = _count_at_least(z, s[i] - 1.0)
        if above[end] <= low:
            run, gain, end = low, sum_low - low * s[i], -1
        elif above[end] >= high:
            run, gain, end = high, sum_high - high * s[i] + (high - low), -2
        else:
            run = above[end]
            gain = sums[end] - run * s[i] + (run - low)
        if low > 0.0 or top > high:
            other = _count_at_least(z, s[i])
            if above[other] < low and sums[other] - above[other] * s[i] > gain:
                run, end = above[other], other
                gain = sums[other] - run * s[i]
            elif above[other] > high and (sums[other] - above[other] * s[i] + (high - low) > gain):
                run, end = above[other], other
                gain = sums[other] - run * s[i] + (high - low)
        runs[i] = run
        value += p[i] * gain
        loss += p[i] * (min(max(run, low), high) - low)
        if end == -1:
            stop_low += p[i]
        elif end == -2:
            stop_high += p[i]
        elif end > 0:
            crossed[end - 1] += p[i]
    longer = 0.0
    for j in range(k - 1, -1, -1):
        longer += crossed[j]
        mass = above[j + 1] - above[j]
        crossed[j] = (
            longer * mass
            + stop_low * min(max(low - above[j], 0.0), mass)
            + stop_high * min(max(high - above[j], 0.0), mass)
        )
    first = 0
    while first < k:  # divide among negatives of one score
        last = first + 1
        together, weight = crossed[first], q[first]
        while last < k and z[last] == z[first]:
            together += crossed[last]
            weight += q[last]
            last += 1
        if last - first > 1:
            for j in range(first, last):
                crossed[j] = together * (q[j] / weight)
        first = last
    return value, loss


@kernel(numba.types.Tuple((_F, _F))(_OUT, _OUT, _OUT, _OUT, _OUT, _OUT))
def find_pair_violations(s, p, z, q, runs, crossed):  # type: ignore[no-untyped-def]
    """Do the same as `find_violations` for the whole ROC curve, by sorting only the positives.

    If there are fewer positives than negatives, sorting them is quicker. Parameters and returns as `find_violations`,
    but the scores `s` rise, and `z` are all negatives, in any order.

    O(n log m + m).
    """
    m = len(s)
    bound, below = np.empty(m), np.empty(m + 1)
    below[0] = 0.0
    for i in range(m):
        bound[i] = s[i] - 1.0
        below[i + 1] = below[i] + p[i]
    mass, sums = np.zeros(m + 1), np.zeros(m + 1)
    # a guide table: m stretches of equal length, each with the index of its first bound
    span = bound[m - 1] - bound[0]
    scale = m / span if span > MIN_SPAN else 0.0
    first, last = np.zeros(m + 1, np.int64), 0
    for i in range(m):
        stretch = min(int((bound[i] - bound[0]) * scale), m - 1)
        while last < stretch:
            last += 1
            first[last] = i
    while last < m:
        last += 1
        first[last] = m
    for j in range(len(z)):
        x = z[j]
        position = (x - bound[0]) * scale
        stretch = 0 if position <= 0.0 else (m - 1 if position >= m - 1 else int(position))
        count, end = first[stretch], first[stretch + 1]
        while count < end:
            middle = (count + end) >> 1
            if bound[middle] <= x:
                count = middle + 1
            else:
                end = middle
        crossed[j] = below[count] * q[j]
        mass[count] += q[j]
        if count > 0:  # by differences: sums of huge scores would cancel
            sums[count] += q[j] * (x - s[count - 1])
    value = loss = run = excess = 0.0
    for i in range(m - 1, -1, -1):
        if i < m - 1:
            excess += run * (s[i + 1] - s[i])
        excess += sums[i + 1]
        run += mass[i + 1]
        runs[i] = run
        value += p[i] * (excess + run)
        loss += p[i] * run
    return value, loss
