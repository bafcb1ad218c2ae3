"""The best split over all thresholds of all features, by a criterion on class weights.

For a cut, A is the mass above it and B the mass below, of positives (A+, B+) and of negatives
(A-, B-). Each is added up from its own end, never subtracted from a total, so that "no mass" is
exactly 0. With each class normalised to 1, P = A+/(A+ + B+) and N likewise, and for the stump that
is 1 above the cut and 0 below

    d+ = P (1 - N),    d- = N (1 - P),    d0 = 1 - d+ - d-,    d+ - d- = P - N.

The bins of a categorical feature are put in order first; see `categories`.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.kernels import kernel

from .bins import Bins
from .categories import INFINITE_ESS, SHARE_ATOL, InverseESS, order_bins


class Criterion(IntEnum):
    """The gain by which splits are compared; every gain is 1 for a perfect split."""

    YOUDEN = 0
    """|P - N|: eq. 3, the slope of the loss."""
    LOSS = 1
    """1 - (√(PN) + √((1-P)(1-N)))² = (√d+ - √d-)²: eq. 5, the fall of the loss after the step."""
    EDGE = 2
    """|p (2P - 1) - n (2N - 1)| = |2 S(t) - S|, where p and n are the fractions of all weight in the two classes
    and S(t) the signed weight above the cut: the edge of h = ±1 as a classifier. With both fractions ½
    it is |P - N|."""
    PUSH = 3
    """1 - P^s N^(1-s) - (1-P)^s (1-N)^(1-s) with s = r/(1 + r): what the best step takes off the p-norm push of power
    r, to the power 1/(1 + r)."""


class Split(NamedTuple):
    """A split of one feature: its bin, the side of missing values, and its gain."""

    feature: int
    """-1 if no cut has a gain above 0."""
    cut: int
    """Codes greater than this are above the cut; -1 separates the missing from all values. For a categorical feature
    the index of a bin in the order of bins that the scan chose."""
    missing_above: bool
    """Whether the missing are above the cut."""
    gain: float
    """In [0, 1]; see `Criterion`."""
    bins_above: npt.NDArray[np.bool_] | None = None
    """For a categorical feature the bins above the cut, shape (n_bins,), bool; bins without mass go with the missing.
    None for a numeric feature."""


# Relative difference of gains up to which they count as equal: it may be rounding. Among equals the lowest feature
# wins, then the lowest cut, then the missing below it.
GAIN_RTOL = 1e-9

# Edge (d+ - d-, or TPR - FPR) below which a cut counts as none: it is rounding.
MIN_EDGE = 1e-12


def find_best_split(
    histograms: npt.NDArray[np.float64],
    n_bins: npt.NDArray[np.int64],
    has_missing: npt.NDArray[np.bool_],
    criterion: Criterion,
    share_p: float = 0.5,
    is_categorical: npt.NDArray[np.bool_] | None = None,
    inverse_ess: InverseESS = INFINITE_ESS,
    directions: npt.NDArray[np.int8] | None = None,
    push: float = 1.0,
) -> Split:
    """Return the best split over all features.

    histograms: (n_features, 2, n_slots), float64; positive and negative mass per code; the last slot is that of the
        missing.
    n_bins: (n_features,), int64.
    has_missing: (n_features,), bool; if true, each cut is tried with the missing on both sides, and the missing are
        also tried against all values. If false, missing values of later rows go to the side with the greater mass, P +
        N against 2 - P - N.
    share_p: fraction of all weight that is on positives, for `Criterion.EDGE`.
    is_categorical: (n_features,), bool; None: all features are numeric.
    inverse_ess: of the weights; it decides how far the shares of categories are shrunk.
    directions: (n_features,), int8; of monotone constraints: 1 if the stump of a cut of a numeric feature must be
        higher above it, -1 if below it, 0 for either. The cut that separates the missing from all values is always
        free.
    push: r of `Criterion.PUSH`, at least 1.

    O(n_features · n_slots), and a sort of the bins of each categorical feature.

    A stump and its reverse have the same gain; the one with d+ >= d-, that
    is P >= N, is meant, and the one that is 1 above the cut where they are equal.
    """
    if is_categorical is None:
        is_categorical = np.zeros(len(n_bins), dtype=np.bool_)
    order = np.empty(histograms.shape[2], dtype=np.int64)
    share = push / (1.0 + push) if criterion is Criterion.PUSH else share_p
    if directions is None:
        directions = np.zeros(len(n_bins), dtype=np.int8)
    feature, cut, missing_above, gain, n_ordered = _find_best_split(
        histograms,
        n_bins,
        has_missing,
        is_categorical,
        directions,
        int(criterion),
        share,
        *inverse_ess,
        order,
    )
    if feature < 0 or not is_categorical[feature]:
        return Split(feature, cut, missing_above, gain)
    bins_above = bins_after(order[:n_ordered], cut, missing_above, int(n_bins[feature]))
    return Split(feature, cut, missing_above, gain, bins_above)


def bins_after(
    order: npt.NDArray[np.int64], cut: int, missing_above: bool, n_bins: int
) -> npt.NDArray[np.bool_]:
    """Return which bins are above a split, shape (n_bins,), bool; `order` lists the nonempty bins."""
    above = np.full(n_bins, missing_above)
    above[order] = np.arange(len(order)) > cut
    return above


def categories_above(bins: Bins, split: Split) -> npt.NDArray[np.bool_] | None:
    """Return which categories are above a split, with unseen ones beside the missing; None for a numeric feature."""
    own = bins.category_bins[split.feature]
    if own is None or split.bins_above is None:
        return None
    return np.where(own >= 0, split.bins_above[own], split.missing_above)


@kernel(numba.float64(numba.float64, numba.float64, numba.float64), inner=True)
def _affinity_loss(p, n, s):  # type: ignore[no-untyped-def]
    """Return p - p^s n^(1-s), which is summed over both sides of a split; rounding error 1e-16 |p - n|."""
    if p <= 0.0:
        return 0.0
    if n <= 0.0:
        return p
    return -p * math.expm1((1.0 - s) * math.log(n / p))


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.types.UniTuple(numba.float64, 4),
        numba.int64,
        numba.float64,
        numba.float64[::1],
    ),
    inner=True,
    error_model="numpy",
)
def _write_gains(sums, n_bins, missing, criterion, share, gains):  # type: ignore[no-untyped-def]
    """Write the gain of every split of a feature.

    sums: see `_scan_feature`; missing: mass of the missing to add below (p, n) and above (p, n); share: fraction of all
    weight that is on positives, for `Criterion.EDGE`; s, for `Criterion.PUSH`.
    """
    below_p, below_n, above_p, above_n = missing
    # The totals: only missing values lie below the first cut.
    scale = 1.0 / ((sums[2, 0] + below_p + above_p) * (sums[3, 0] + below_n + above_n))
    if criterion == 0:
        for c in range(n_bins):
            plus = (sums[2, c] + above_p) * (sums[1, c] + below_n)
            minus = (sums[3, c] + above_n) * (sums[0, c] + below_p)
            gains[c] = scale * abs(plus - minus)
    elif criterion == 2:
        scale_p = share / (sums[2, 0] + below_p + above_p)
        scale_n = (1.0 - share) / (sums[3, 0] + below_n + above_n)
        for c in range(n_bins):
            edge_p = (sums[2, c] + above_p) - (sums[0, c] + below_p)
            edge_n = (sums[3, c] + above_n) - (sums[1, c] + below_n)
            gains[c] = abs(scale_p * edge_p - scale_n * edge_n)
    elif criterion == 3:
        scale_p = 1.0 / (sums[2, 0] + below_p + above_p)
        scale_n = 1.0 / (sums[3, 0] + below_n + above_n)
        for c in range(n_bins):
            above = _affinity_loss(
                scale_p * (sums[2, c] + above_p), scale_n * (sums[3, c] + above_n), share
            )
            below = _affinity_loss(
                scale_p * (sums[0, c] + below_p), scale_n * (sums[1, c] + below_n), share
            )
            gains[c] = max(above + below, 0.0)
    else:
        for c in range(n_bins):
            plus = (sums[2, c] + above_p) * (sums[1, c] + below_n)
            minus = (sums[3, c] + above_n) * (sums[0, c] + below_p)
            # (√d+ - √d-)² by the difference that is known exactly; the tiny term spares 0/0.
            root = plus + minus + 2.0 * math.sqrt(plus * minus) + 1e-300
            gains[c] = scale * (plus - minus) ** 2 / root


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.int64,
        numba.boolean,
        numba.int8,
        numba.int64,
        numba.float64,
        numba.float64[:, ::1],
        numba.float64[:, ::1],
    ),
    inner=True,
)
def _scan_feature(histogram, n_bins, has_missing, direction, criterion, share, sums, gains):  # type: ignore[no-untyped-def]
    """Write the gain of every split c to gains[:, c + 1]: missing values below in row 0, above in row 1.

    It is 0 for a split whose stump would break the direction.

    The mass below cut c is written to sums[:2, c + 1], the mass above it to sums[2:, c + 1]; positives, then negatives.
    """
    missing_p = max(histogram[0, -1], 0.0)
    missing_n = max(histogram[1, -1], 0.0)
    below_p = below_n = above_p = above_n = 0.0
    for k in range(n_bins):  # four chains of additions that do not wait for each other
        sums[0, k] = below_p
        sums[1, k] = below_n
        below_p += max(histogram[0, k], 0.0)
        below_n += max(histogram[1, k], 0.0)
        other = n_bins - 1 - k
        above_p += max(histogram[0, other], 0.0)
        above_n += max(histogram[1, other], 0.0)
        sums[2, other] = above_p
        sums[3, other] = above_n
    _write_gains(sums, n_bins, (missing_p, missing_n, 0.0, 0.0), criterion, share, gains[0])
    if not has_missing:
        gains[0, 0] = 0.0  # all rows above: no cut, though a constant classifier has an edge
    if has_missing:
        _write_gains(sums, n_bins, (0.0, 0.0, missing_p, missing_n), criterion, share, gains[1])
        gains[1, 0] = 0.0
    if direction == 0:
        return
    total_p, total_n = sums[2, 0] + missing_p, sums[3, 0] + missing_n
    of_p, of_n = (share, 1.0 - share) if criterion == 2 else (1.0, 1.0)
    for side in range(2 if has_missing else 1):
        for c in range(1, n_bins):
            share_p = (sums[2, c] + side * missing_p) / total_p
            share_n = (sums[3, c] + side * missing_n) / total_n
            if direction * (of_p * (2.0 * share_p - 1.0) - of_n * (2.0 * share_n - 1.0)) <= 0.0:
                gains[side, c] = 0.0


@kernel(numba.float64(numba.float64[::1]), inner=True, fastmath={"nnan", "nsz"})
def _greatest(values):  # type: ignore[no-untyped-def]
    """Return the maximum of (n,) float64, at least 0; a separate function so that the compiler vectorises it."""
    greatest = 0.0
    for value in values:
        greatest = max(greatest, value)
    return greatest


@kernel(
    numba.int64(
        numba.float64[:, ::1],
        numba.int64,
        numba.float64,
        numba.float64,
        numba.int64[::1],
        numba.float64[:, ::1],
    ),
    inner=True,
)
def _order_feature(histogram, n_bins, inverse_ess_p, inverse_ess_n, order, ordered):  # type: ignore[no-untyped-def]
    """Write a categorical feature's sorted bins and shrunken histogram; return the number of nonempty bins.

    The number is negative if all shares are equal: `ordered` then has one bin, of all rows.
    """
    last = histogram.shape[1] - 1
    masses = np.empty((2, last + 1))
    for k in range(2):
        total = max(histogram[k, last], 0.0)
        for code in range(n_bins):
            total += max(histogram[k, code], 0.0)
        for code in range(n_bins):
            masses[k, code] = max(histogram[k, code], 0.0) / total
        ordered[k, last] = max(histogram[k, last], 0.0) / total
    n = order_bins(masses, n_bins, inverse_ess_p, inverse_ess_n, order, ordered)
    if n >= 2:
        first = ordered[0, 0] / (ordered[0, 0] + ordered[1, 0])
        if ordered[0, n - 1] / (ordered[0, n - 1] + ordered[1, n - 1]) - first > SHARE_ATOL:
            return n
    for k in range(2):
        for r in range(1, n):
            ordered[k, 0] += ordered[k, r]
    return -n


@kernel(
    numba.types.Tuple((numba.int64, numba.int64, numba.boolean, numba.float64, numba.int64))(
        numba.float64[:, :, ::1],
        numba.int64[::1],
        numba.boolean[::1],
        numba.boolean[::1],
        numba.int8[::1],
        numba.int64,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.int64[::1],
    )
)
def _find_best_split(  # type: ignore[no-untyped-def]
    histograms,
    n_bins,
    has_missing,
    is_categorical,
    directions,
    criterion,
    share,
    inverse_ess_p,
    inverse_ess_n,
    order,
):
    """Return the best split: feature, bin, missing above?, gain, and the number of bins in `order` if categorical."""
    n_features = len(n_bins)
    n_slots = histograms.shape[2]
    sums = np.empty((4, n_slots))
    gains = np.empty((2, n_slots))
    ordered = np.empty((2, n_slots))
    best = np.empty(n_features)
    greatest = 0.0
    for j in range(n_features):
        best[j] = 0.0
        histogram, n = histograms[j], n_bins[j]
        if is_categorical[j]:
            n = _order_feature(
                histograms[j], n_bins[j], inverse_ess_p, inverse_ess_n, order, ordered
            )
            n = 1 if n < 0 else n
            histogram = ordered
        if n == 0:
            continue
        _scan_feature(histogram, n, has_missing[j], directions[j], criterion, share, sums, gains)
        best[j] = _greatest(gains[0, :n])
        if has_missing[j]:
            best[j] = max(best[j], _greatest(gains[1, :n]))
        greatest = max(greatest, best[j])
    least = greatest * (1.0 - GAIN_RTOL)
    if least <= 0.0:
        return -1, -1, False, 0.0, 0
    feature = 0
    while best[feature] < least:
        feature += 1
    histogram, n, n_ordered = histograms[feature], n_bins[feature], 0
    if is_categorical[feature]:
        n = _order_feature(
            histograms[feature], n_bins[feature], inverse_ess_p, inverse_ess_n, order, ordered
        )
        n_ordered = abs(n)
        n = 1 if n < 0 else n
        histogram = ordered
    _scan_feature(
        histogram, n, has_missing[feature], directions[feature], criterion, share, sums, gains
    )
    column = 0
    missing_above = False
    while gains[0, column] < least:
        if has_missing[feature] and gains[1, column] >= least:
            missing_above = True
            break
        column += 1
    gain = gains[1 if missing_above else 0, column]
    if not has_missing[feature]:
        above = sums[2, column] / sums[2, 0] + sums[3, column] / sums[3, 0]
        missing_above = above > 1.0
    return feature, column - 1, missing_above, gain, n_ordered
