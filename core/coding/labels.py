"""The best split for several labels at once: one threshold, with a vote of each label for one of its sides.

Each row carries a signed mass per label, d y: above 0 where it has the label, below 0 where it has
not. With S_l(above) and S_l(below) the sums on both sides of a cut, the vote v_l = ±1 that says v_l
above the cut and -v_l below it has the edge v_l (S_l(above) - S_l(below)); so the best votes of a cut
are the signs, and its edge is Σ_l |S_l(above) - S_l(below)|.

Categories have no one order for all labels. For given votes v the best set holds the bins k with Σ_l v_l S_l(k) > 0,
which is a cut along that sum per mass; for a given set the best votes are signs. So cuts and votes are chosen in turn,
from the votes of the bin that differs most from the mean, until no turn gains: for one label the best set there is, for
several one that no change of votes alone or of the set alone can better. How far a bin's sums are shrunk to the mean is
measured as in `categories`.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.kernels import kernel

from .best_split import GAIN_RTOL, Split, bins_after
from .bins import N_CODES, Codes, share_out
from .categories import credibility
from .histogram import WIDTHS, slot, slots_of
from .threads import ThreadPool

Floats = npt.NDArray[np.float64]


# Turns of choosing cut and votes. Each turn gains, and few are needed.
MAX_TURNS = 20


class Scatter(NamedTuple):
    """How finely a feature's weight is divided over rows; it determines how strongly bins are shrunk to the mean."""

    mass: Floats
    """Fraction of Σ|signed| in each row. Shape (n_rows,), float64."""
    chance: float
    """The scatter of bins' sums that chance alone explains: Σ |x - wT|² over rows, with x a row's signed mass per
    label, w its mass and T the sum of all x."""


def find_best_label_split(
    codes: Codes,
    signed: npt.NDArray[np.float64],
    n_bins: npt.NDArray[np.int64],
    has_missing: npt.NDArray[np.bool_],
    is_categorical: npt.NDArray[np.bool_] | None = None,
    rows: npt.NDArray[np.float64] | None = None,
) -> Split:
    """Return the split whose votes have the greatest edge.

    O(n_features · n_labels · (n_rows + n_bins)). A feature is summed by one thread in the order of the rows, so the
    result is the same for any number of threads.

    codes: (n_features, n_rows), uint8 or uint16.
    signed: (n_rows, n_labels), float64; signed mass, in all Σ |signed| = 1.
    n_bins: (n_features,), int64.
    has_missing: (n_features,), bool; if true, each cut is tried with the missing on both sides, and the missing are
        also tried against all values. If false, missing values of later rows go below.
    is_categorical: (n_features,), bool; None: all features are numeric.
    rows: (n_rows,), float64; the number of rows that each row stands for (`categories.effective_counts`); None: the
        shares of categories are not shrunk.

    Result: its gain is the edge. The feature is -1 if no cut is best: votes that are the same for all rows have the
        edge Σ_l |S_l|. Among equals no cut comes first, then the lowest feature, the lowest cut, the missing below.
    """
    n_slots = N_CODES if codes.dtype == np.uint8 else int(n_bins.max()) + 1
    if is_categorical is None:
        is_categorical = np.zeros(len(codes), dtype=np.bool_)
    best = np.empty((len(codes), 4))
    ThreadPool(codes.size).run(
        _scan_numeric, len(codes), codes, signed, n_slots, n_bins, has_missing, is_categorical, best
    )
    bins_above: list[npt.NDArray[np.bool_] | None] = [None] * len(codes)
    if is_categorical.any():
        scatter = measure_scatter(signed, rows)

        def scan(j: int) -> None:
            histogram = _sum_bins(codes[j], signed, n_slots)
            masses = _sum_bins(codes[j], scatter.mass[:, None], n_slots)[: n_bins[j], 0]
            bins_above[j] = _cut_categories(
                histogram, masses, bool(has_missing[j]), scatter, best[j]
            )
            best[j, 3] = np.abs(histogram.sum(axis=0)).sum()

        share_out(scan, np.flatnonzero(is_categorical).tolist(), codes.size)
    everywhere = float(best[0, 3])
    greatest = max(everywhere, best[:, 0].max())
    least = greatest * (1.0 - GAIN_RTOL)
    if everywhere >= least:
        return Split(-1, -1, False, everywhere)
    feature = int(np.argmax(best[:, 0] >= least))
    gain, cut, missing_above, _ = best[feature].tolist()
    return Split(feature, int(cut), bool(missing_above), gain, bins_above[feature])


def _cut_categories(
    histogram: Floats, masses: Floats, has_missing: bool, scatter: Scatter, best: Floats
) -> npt.NDArray[np.bool_]:
    """Write the best split of a categorical feature to `best`, and return the bins above it; see `_cut`."""
    best[:] = -1.0
    n_bins, present = len(masses), np.flatnonzero(masses > 0.0)
    if len(present) == 0:
        return np.zeros(n_bins, dtype=np.bool_)
    missing, masses = histogram[-1], masses[present]
    sums = shrink(histogram[present], masses, scatter.chance)
    votes = first_votes(sums, masses)
    candidate = np.empty(4)
    order = best_order = np.arange(len(present))
    for _ in range(MAX_TURNS):
        order = order_by_votes(sums, masses, votes)
        ordered = sums[order]
        _cut(np.vstack([ordered, missing]), len(order), has_missing, candidate)
        if candidate[0] * (1.0 - GAIN_RTOL) <= best[0]:
            break
        best[:], best_order = candidate, order
        votes = best_votes(ordered, missing, int(candidate[1]), bool(candidate[2]))
    return bins_after(present[best_order], int(best[1]), bool(best[2]), n_bins)


def measure_scatter(signed: Floats, rows: Floats | None) -> Scatter:
    """Measure the `Scatter`; rows: how many each row stands for (None: infinitely many: chance explains nothing)."""
    mass = np.abs(signed).sum(axis=1)
    mass /= mass.sum()
    if rows is None:
        return Scatter(mass, 0.0)
    total = signed.sum(axis=0)
    squares = np.einsum("il,il->i", signed, signed)
    squares -= 2.0 * mass * np.einsum("il,l->i", signed, total)
    squares += mass * mass * float((total * total).sum())
    return Scatter(mass, float((squares / rows).sum()))


def shrink(sums: Floats, masses: Floats, chance: float) -> Floats:
    """Return (n_bins, n_labels) label sums, shrunk towards the overall mean as far as differences may be noise.

    masses: above 0; chance: the scatter that chance alone gives to bins of total mass 1.
    """
    means = masses[:, None] * (sums.sum(axis=0) / masses.sum())
    scatter = float(((sums - means) ** 2).sum())
    own = credibility.py_func(masses, float(masses.sum()), scatter, chance)[:, None]
    return np.asarray(own * sums + (1.0 - own) * means)


def first_votes(sums: Floats, masses: Floats) -> Floats:
    """Return initial votes, (n_labels,) of 1 or -1: the signs of the bin that differs most from the mean."""
    differences = sums - masses[:, None] * (sums.sum(axis=0) / masses.sum())
    sizes = np.abs(differences).sum(axis=1)
    first = int(np.argmax(sizes >= sizes.max() * (1.0 - GAIN_RTOL)))
    return np.asarray(np.where(differences[first] >= 0.0, 1.0, -1.0))


def order_by_votes(sums: Floats, masses: Floats, votes: Floats) -> npt.NDArray[np.int64]:
    """Return the indices that sort bins by their mean signed weight in the direction of the votes."""
    towards = np.einsum("kl,l->k", sums, votes) / masses
    return np.asarray(np.argsort(towards, kind="stable"))


def best_votes(ordered: Floats, missing: Floats, cut: int, missing_above: bool) -> Floats:
    """Return the best votes for a split, (n_labels,) of 1 or -1."""
    edges = ordered[cut + 1 :].sum(axis=0) - ordered[: cut + 1].sum(axis=0)
    edges += missing if missing_above else -missing
    return np.asarray(np.where(edges >= 0.0, 1.0, -1.0))


_MATRIX = numba.float64[:, ::1]


@kernel(*[_MATRIX(width[::1], _MATRIX, numba.int64) for width in WIDTHS])
def _sum_bins(codes, signed, n_slots):  # type: ignore[no-untyped-def]
    """Return label sums by bin, missing values last, (n_slots, n_labels)."""
    n_labels = signed.shape[1]
    # made here, so that the compiler knows that no row of `signed` lies in it
    histogram = np.empty((slots_of(codes, n_slots), n_labels))
    for row in range(len(histogram)):
        for k in range(n_labels):
            histogram[row, k] = 0.0
    last = np.uint64(n_slots - 1)
    for i in range(len(codes)):
        code = slot(codes[i], last)
        for k in range(n_labels):
            histogram[code, k] += signed[i, k]
    return histogram


@kernel(numba.void(_MATRIX, numba.int64, numba.boolean, numba.float64[::1]))
def _cut(histogram, n_bins, has_missing, best):  # type: ignore[no-untyped-def]
    """Write the best split of a histogram to best: edge, bin, missing above?, and the edge without a split."""
    n_labels = histogram.shape[1]
    missing = len(histogram) - 1
    total, below = np.empty(n_labels), np.empty(n_labels)
    for k in range(n_labels):
        total[k] = below[k] = 0.0
    for code in range(n_bins):
        for k in range(n_labels):
            total[k] += histogram[code, k]
    best[0] = best[1] = best[2] = -1.0
    best[3] = 0.0
    for k in range(n_labels):
        best[3] += abs(total[k] + histogram[missing, k])
    for cut in range(-1, n_bins - 1):
        edge_low = edge_high = 0.0
        for k in range(n_labels):
            if cut >= 0:
                below[k] += histogram[cut, k]
            difference = total[k] - 2.0 * below[k]
            edge_low += abs(difference - histogram[missing, k])
            edge_high += abs(difference + histogram[missing, k])
        if cut < 0:
            edge_high = -1.0  # all rows above: no cut
            if not has_missing:
                edge_low = -1.0
        if edge_low * (1.0 - GAIN_RTOL) > best[0]:
            best[0], best[1], best[2] = edge_low, cut, 0.0
        if has_missing and edge_high * (1.0 - GAIN_RTOL) > best[0]:
            best[0], best[1], best[2] = edge_high, cut, 1.0


@kernel(
    *[
        numba.void(
            numba.int64,
            numba.int64,
            numba.int64,
            width[:, ::1],
            _MATRIX,
            numba.int64,
            numba.int64[::1],
            numba.boolean[::1],
            numba.boolean[::1],
            _MATRIX,
        )
        for width in WIDTHS
    ]
)
def _scan_numeric(first, step, n, codes, signed, n_slots, n_bins, has_missing, categorical, best):  # type: ignore[no-untyped-def]
    """Write the best split of every step-th numeric feature to best, (n_features, 4); see `_cut`."""
    for j in range(first, n, step):
        if not categorical[j]:
            histogram = _sum_bins(codes[j], signed, n_slots)
            _cut(histogram, n_bins[j], has_missing[j], best[j])
