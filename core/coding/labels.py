"""The peak reader for several labels at once: one cut, and a vote of each label on its sides.

Each row carries a signed mass per label, d y: above 0 where it has the label, below 0 where it has
not. With S_l(above) and S_l(below) the sums on both sides of a cut, the vote v_l = ±1 that says v_l
above the cut and -v_l below it has the edge v_l (S_l(above) - S_l(below)); so the best votes of a cut
are the signs, and its edge is Σ_l |S_l(above) - S_l(below)|.

Categories have no one order for all labels: see `label_categories`.
"""

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

from .bins import N_CODES, Codes, share_out
from .histogram import WIDTHS, slot, slots_of
from .label_categories import (
    MOST_TURNS,
    Scatter,
    believe,
    best_votes,
    first_votes,
    measure_scatter,
    order_by_votes,
)
from .peak import TIE, Peak, bins_after
from .team import Team

Floats = npt.NDArray[np.float64]


def find_label_peak(
    codes: Codes,
    signed: npt.NDArray[np.float64],
    n_bins: npt.NDArray[np.int64],
    has_missing: npt.NDArray[np.bool_],
    is_categorical: npt.NDArray[np.bool_] | None = None,
    rows: npt.NDArray[np.float64] | None = None,
) -> Peak:
    """Find the cut whose votes have the greatest edge.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8 or uint16, C-contiguous
    signed : ndarray of shape (n_rows, n_labels), float64, C-contiguous
        Signed mass, in all Σ |signed| = 1.
    n_bins : ndarray of shape (n_features,), int64
    has_missing : ndarray of shape (n_features,), bool
        Where true, each cut is tried with the missing on both sides, and the missing are also
        tried against all values. Where false, the missing that may come later go below.
    is_categorical : ndarray of shape (n_features,), bool, optional
        None: all features are numeric.
    rows : ndarray of shape (n_rows,), float64, optional
        For how many rows each stands (`categories.count_rows`); None: the order of categories is
        believed as it is.

    Returns
    -------
    Peak
        Feature -1 where the best is no cut at all: votes that are the same everywhere have the edge
        Σ_l |S_l|. Its gain is the edge. Among equals no cut comes first, then the lowest feature,
        the lowest cut, the missing below.

    Notes
    -----
    O(n_features · n_labels · (n_rows + n_bins)). A feature is summed by one thread in the order of
    the rows, so the result is the same for any number of threads.
    """
    n_slots = N_CODES if codes.dtype == np.uint8 else int(n_bins.max()) + 1
    if is_categorical is None:
        is_categorical = np.zeros(len(codes), dtype=np.bool_)
    best = np.empty((len(codes), 4))
    Team(codes.size).run(
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
    least = greatest * (1.0 - TIE)
    if everywhere >= least:
        return Peak(-1, -1, False, everywhere)
    feature = int(np.argmax(best[:, 0] >= least))
    gain, cut, missing_above, _ = best[feature].tolist()
    return Peak(feature, int(cut), bool(missing_above), gain, bins_above[feature])


def _cut_categories(
    histogram: Floats, masses: Floats, has_missing: bool, scatter: Scatter, best: Floats
) -> npt.NDArray[np.bool_]:
    """Write what `_cut` does, and give the bins above the cut."""
    best[:] = -1.0
    n_bins, present = len(masses), np.flatnonzero(masses > 0.0)
    if len(present) == 0:
        return np.zeros(n_bins, dtype=np.bool_)
    missing, masses = histogram[-1], masses[present]
    sums = believe(histogram[present], masses, scatter.chance)
    votes = first_votes(sums, masses)
    found = np.empty(4)
    order = best_order = np.arange(len(present))
    for _ in range(MOST_TURNS):
        order = order_by_votes(sums, masses, votes)
        ordered = sums[order]
        _cut(np.vstack([ordered, missing]), len(order), has_missing, found)
        if found[0] * (1.0 - TIE) <= best[0]:
            break
        best[:], best_order = found, order
        votes = best_votes(ordered, missing, int(found[1]), bool(found[2]))
    return bins_after(present[best_order], int(best[1]), bool(best[2]), n_bins)


_MATRIX = numba.float64[:, ::1]


@kernel(*[_MATRIX(width[::1], _MATRIX, numba.int64) for width in WIDTHS])
def _sum_bins(codes, signed, n_slots):  # type: ignore[no-untyped-def]
    """Sum the rows of each bin, the missing last: (n_slots, n_labels)."""
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
    """Write the greatest edge, its cut, whether the missing are above, and the edge of no cut."""
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
        if edge_low * (1.0 - TIE) > best[0]:
            best[0], best[1], best[2] = edge_low, cut, 0.0
        if has_missing and edge_high * (1.0 - TIE) > best[0]:
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
    """Cut every step-th feature, those without order apart."""
    for j in range(first, n, step):
        if not categorical[j]:
            histogram = _sum_bins(codes[j], signed, n_slots)
            _cut(histogram, n_bins[j], has_missing[j], best[j])
