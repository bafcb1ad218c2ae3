"""The weights of pairs, kept as one weight per row: d_ik ∝ v_i v_k."""

import math
from typing import NamedTuple

import numba
import numpy as np

from core.checkpoint import Resumable
from core.coding import (
    NO_SPREAD,
    Codes,
    Split,
    Spread,
    change_histograms,
    fill_histograms,
    measure_spread,
    missing_code,
)
from core.kernel import kernel
from core.ranker import Floats

# From this many cells on, listing the rows of the smaller side of a cut pays.
LISTED_CELLS = 1_000_000

# Changed histograms are filled anew after so many steps, or when a class's total has left this
# range: their rounding errors, some 1e-16 of the totals of the last filling, then stay below 1e-12
# of the present ones. Only the choice of a cut sees them; steps and losses come from the rows.
FILL_EVERY = 16
TOTALS = (1e-3, 1e3)


# A side of a cut is an interval of codes in the arithmetic of their type, which wraps around: `first`, and `width`
# codes after it. For a set of bins, and for wide codes, marks take their place: 1 above, 0 below. One thread walks over
# the rows: beside the histograms of all features that is little.
_CODE = numba.uint8


class Interval(NamedTuple):
    """The codes of one side of a cut."""

    first: int
    width: int


class Sides(NamedTuple):
    """A column of codes, and which of them are above a cut and below it."""

    column: Codes
    above: Interval
    below: Interval


def divide(column: Codes, split: Split) -> Sides:
    """Give the sides of a cut; of a categorical feature and of wide codes by marks in their place."""
    missing = missing_code(column.dtype)
    if split.bins_above is not None:
        marks = np.zeros(missing + 1, dtype=np.uint8)
        marks[: len(split.bins_above)] = split.bins_above
        marks[missing] = split.missing_above
        return Sides(marks[column], Interval(1, 0), Interval(2, 254))
    first = split.cut + 1
    width = missing - first - (0 if split.missing_above else 1)
    if column.dtype != np.uint8:
        inside = column - column.dtype.type(first) <= width
        return Sides(inside.view(np.uint8), Interval(1, 0), Interval(2, 254))
    below = Interval((first + width + 1) % (missing + 1), missing - 1 - width)
    return Sides(column, Interval(first, width), below)


@kernel(
    numba.types.Tuple((numba.float64, numba.float64, numba.int64))(
        _CODE[::1], _CODE, _CODE, numba.float64[::1]
    ),
    fastmath={"reassoc", "nsz", "nnan", "ninf"},
)
def sum_sides(column, first, width, weights):  # type: ignore[no-untyped-def]
    """Sum the weights inside and outside an interval, and count the rows inside."""
    inside = 0.0
    outside = 0.0
    n_inside = 0
    for i in range(len(column)):
        if column.dtype.type(column[i] - first) <= width:
            inside += weights[i]
            n_inside += 1
        else:
            outside += weights[i]
    return inside, outside, n_inside


@kernel(numba.void(_CODE[::1], _CODE, _CODE, numba.float64, numba.float64, numba.float64[::1]))
def rescale_sides(column, first, width, inside, outside, weights):  # type: ignore[no-untyped-def]
    """Multiply the weights inside an interval by one factor and those outside by another."""
    for i in range(len(column)):
        weights[i] *= inside if column.dtype.type(column[i] - first) <= width else outside


@kernel(
    numba.int64(
        _CODE[::1],
        _CODE,
        _CODE,
        numba.float64,
        numba.float64[::1],
        numba.int64,
        numba.uint32[::1],
        numba.float64[::1],
    )
)
def rescale_and_list(column, first, width, factor, weights, start, rows, changes):  # type: ignore[no-untyped-def]
    """Multiply the weights inside an interval, and list those rows with the change of each.

    The i-th row of the column is called start + i. `rows` and `changes` need room for one entry
    more than there are rows inside, since each row is written before it is known to count.
    Returns the number listed.
    """
    listed = np.uint64(0)  # unsigned, so that numba drops the test for negative indices
    for i in range(len(column)):
        weight = weights[np.uint64(i)]
        is_inside = column.dtype.type(column[np.uint64(i)] - first) <= width
        rescaled = weight * factor if is_inside else weight
        weights[np.uint64(i)] = rescaled
        rows[listed] = np.uint32(start + i)
        changes[listed] = rescaled - weight
        listed += np.uint64(1) if is_inside else np.uint64(0)
    return np.int64(listed)


class Masses(NamedTuple):
    """Both sides of a cut, each added up from its own rows: what is empty is exactly 0.

    Attributes
    ----------
    above_p, below_p, above_n, below_n : float
        Mass of positives (p) and negatives (n), each class summing to 1.
    total_p, total_n : float
        Sum of the weights as they are kept.
    rows_above : int
    """

    above_p: float
    below_p: float
    above_n: float
    below_n: float
    total_p: float
    total_n: float
    rows_above: int


class PairWeights(Resumable):
    """The weights of all crucial pairs of bipartite data, and the loss they come from.

    With v_i ∝ w_i e^{-f(x_i)} on positives and v_k ∝ w_k e^{f(x_k)} on negatives, each class
    summing to 1, the pair (i, k) weighs v_i v_k: no pair is ever listed. A step multiplies each
    side of a cut by a factor of its own. As only ratios within a class matter, one side may stay
    as it is: on large data the rows of the smaller side are changed and listed, and only they are
    added to the histograms. Totals are brought back to 1 before they leave their range, so that no
    class underflows, however far the scores have gone.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8 or uint16
        Positives first.
    weight : ndarray of shape (n_rows,), float64
        Sample weights, above 0.
    n_positives : int
    n_slots : int
        Length of a histogram.
    counts : ndarray of shape (n_rows,), float64, or None
        For how many rows each stands; None where no feature is categorical.

    Attributes
    ----------
    histograms : ndarray of shape (n_features, 2, n_slots), float64
        Mass per class and code under the present weights; a class's total may not be 1.
    log_f_plus, log_f_minus : float
        Logarithms of F₊ = Σ w_i e^{-f(x_i)} over positives and F₋ = Σ w_k e^{f(x_k)} over negatives.
    """

    changing = ("_weights", "histograms", "_changed_since_fill", "log_f_plus", "log_f_minus")

    def __init__(
        self,
        codes: Codes,
        weight: Floats,
        n_positives: int,
        n_slots: int,
        counts: Floats | None,
    ) -> None:
        self._codes = codes
        self._counts = counts
        self._n_positives = n_positives
        total_p = float(weight[:n_positives].sum())
        total_n = float(weight[n_positives:].sum())
        self._weights = weight.copy()
        self._weights[:n_positives] /= total_p
        self._weights[n_positives:] /= total_n
        self.log_f_plus = math.log(total_p)
        self.log_f_minus = math.log(total_n)
        self.histograms = np.empty((len(codes), 2, n_slots))
        self._fill()
        n_listed = len(weight) // 2 + 1 if codes.size >= LISTED_CELLS else 0
        self._rows = np.empty(n_listed, dtype=np.uint32)
        self._changes = np.empty(n_listed)

    @property
    def share_p(self) -> float:
        """The positives' share F₊/(F₊ + F₋) of all rows' weight."""
        return 1.0 / (1.0 + math.exp(min(self.log_f_minus - self.log_f_plus, 700.0)))

    def bin_shares(self) -> Floats:
        """Give the share of all rows' weight in each bin: (n_features, n_slots).

        Before any step these are the shares of the sample weights.
        """
        positive, negative = self.histograms[:, 0], self.histograms[:, 1]
        return self.share_p * positive + (1.0 - self.share_p) * negative

    def spread(self) -> Spread:
        """Say how finely the present weights are divided; see `core.coding.categories`."""
        if self._counts is None:
            return NO_SPREAD
        return measure_spread(self._weights, self._counts, self._n_positives)

    def masses(self, split: Split) -> Masses:
        """Add up both sides of a cut under the present weights."""
        m = self._n_positives
        column, above, _ = divide(self._codes[split.feature], split)
        above_p, below_p, rows_p = sum_sides(column[:m], *above, self._weights[:m])
        above_n, below_n, rows_n = sum_sides(column[m:], *above, self._weights[m:])
        total_p, total_n = above_p + below_p, above_n + below_n
        return Masses(
            above_p / total_p,
            below_p / total_p,
            above_n / total_n,
            below_n / total_n,
            total_p,
            total_n,
            rows_p + rows_n,
        )

    def shift(self, rise: float) -> None:
        """Let f grow by one amount everywhere, which changes no ratio within a class."""
        self.log_f_plus -= rise
        self.log_f_minus += rise

    def update(self, split: Split, masses: Masses, rise_above: float, rise_below: float) -> None:
        """Let f grow by one amount above the cut and by another below it.

        Parameters
        ----------
        split : Split
        masses : Masses
            Of that cut, under the present weights.
        rise_above, rise_below : float
        """
        shrink_p = masses.above_p * math.exp(-rise_above) + masses.below_p * math.exp(-rise_below)
        shrink_n = masses.above_n * math.exp(rise_above) + masses.below_n * math.exp(rise_below)
        self.log_f_plus += math.log(shrink_p)
        self.log_f_minus += math.log(shrink_n)
        # f rises by `common` everywhere, which changes no ratio, and by `rise` on the smaller side.
        column, above, below = divide(self._codes[split.feature], split)
        if 2 * masses.rows_above <= len(self._weights):
            smaller, rise, common = above, rise_above - rise_below, rise_below
        else:
            smaller, rise, common = below, rise_below - rise_above, rise_above
        total_p = masses.total_p * shrink_p * math.exp(common)
        total_n = masses.total_n * shrink_n * math.exp(-common)
        low, high = TOTALS
        in_range = low < total_p < high and low < total_n < high
        if self._rows.size and self._changed_since_fill < FILL_EVERY and in_range:
            self._change(column, smaller, rise)
        else:
            self._rescale(column, smaller, rise, total_p, total_n)
            self._fill()

    def _fill(self) -> None:
        fill_histograms(self._codes, self._weights, self._n_positives, self.histograms)
        self._changed_since_fill = 0

    def _rescale(
        self,
        column: Codes,
        side: Interval,
        rise: float,
        total_p: float,
        total_n: float,
    ) -> None:
        """Let f grow by `rise` on one side, and bring both totals back to 1."""
        m = self._n_positives
        rescale_sides(column[:m], *side, math.exp(-rise) / total_p, 1 / total_p, self._weights[:m])
        rescale_sides(column[m:], *side, math.exp(rise) / total_n, 1 / total_n, self._weights[m:])

    def _change(self, column: Codes, side: Interval, rise: float) -> None:
        """Let f grow by `rise` on one side, the smaller, and carry it to the histograms."""
        m, rows, changes = self._n_positives, self._rows, self._changes
        n_p = rescale_and_list(
            column[:m], *side, math.exp(-rise), self._weights[:m], 0, rows, changes
        )
        n_n = rescale_and_list(
            column[m:], *side, math.exp(rise), self._weights[m:], m, rows[n_p:], changes[n_p:]
        )
        n = n_p + n_n
        change_histograms(self._codes, rows[:n], changes[:n], n_p, self.histograms)
        self._changed_since_fill += 1
