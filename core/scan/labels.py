"""The peak reader for several labels at once: one cut, and a vote of each label on its sides.

Each row carries a signed mass per label, d y: above 0 where it has the label, below 0 where it has
not. With S_l(above) and S_l(below) the sums on both sides of a cut, the vote v_l = ±1 that says v_l
above the cut and -v_l below it has the edge v_l (S_l(above) - S_l(below)); so the best votes of a cut
are the signs, and its edge is Σ_l |S_l(above) - S_l(below)|.
"""

import numba
import numpy as np
import numpy.typing as npt

from .bins import MISSING, N_CODES
from .histogram import run
from .peak import TIE, Peak


def find_label_peak(
    codes: npt.NDArray[np.uint8],
    signed: npt.NDArray[np.float64],
    n_bins: npt.NDArray[np.int64],
    has_missing: npt.NDArray[np.bool_],
) -> Peak:
    """Find the cut whose votes have the greatest edge.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_rows), uint8, C-contiguous
    signed : ndarray of shape (n_rows, n_labels), float64, C-contiguous
        Signed mass, in all Σ |signed| = 1.
    n_bins : ndarray of shape (n_features,), int64
    has_missing : ndarray of shape (n_features,), bool
        Where true, each cut is tried with the missing on both sides, and the missing are also
        tried against all values. Where false, the missing that may come later go below.

    Returns
    -------
    Peak
        Feature -1 where the best is no cut at all: votes that are the same everywhere have the edge
        Σ_l |S_l|. Its gain is the edge. Among equals no cut comes first, then the lowest feature,
        the lowest cut, the missing below.

    Notes
    -----
    O(n_features · n_labels · (n_rows + 256)). A feature is summed by one thread in the order of the
    rows, so the result is the same for any number of threads.
    """
    best = np.empty((len(codes), 4))
    run(_scan_serial, _scan_parallel, codes, signed, n_bins, has_missing, best)
    everywhere = float(best[0, 3])
    greatest = max(everywhere, best[:, 0].max())
    least = greatest * (1.0 - TIE)
    if everywhere >= least:
        return Peak(-1, -1, False, everywhere)
    feature = int(np.argmax(best[:, 0] >= least))
    gain, cut, missing_above, _ = best[feature]
    return Peak(feature, int(cut), bool(missing_above), float(gain))


@numba.njit(
    numba.void(
        numba.uint8[::1],
        numba.float64[:, ::1],
        numba.int64,
        numba.boolean,
        numba.float64[::1],
    ),
    nogil=True,
    cache=True,
)
def _scan_feature(codes, signed, n_bins, has_missing, best):  # type: ignore[no-untyped-def]
    """Write the greatest edge, its cut, whether the missing are above, and the edge of no cut."""
    n_labels = signed.shape[1]
    histogram = np.zeros((N_CODES, n_labels))
    for i in range(len(codes)):
        code = codes[i]
        for k in range(n_labels):
            histogram[code, k] += signed[i, k]
    total = np.zeros(n_labels)
    for code in range(n_bins):
        for k in range(n_labels):
            total[k] += histogram[code, k]
    below = np.zeros(n_labels)
    best[:3] = -1.0
    best[3] = 0.0
    for k in range(n_labels):
        best[3] += abs(total[k] + histogram[MISSING, k])
    for cut in range(-1, n_bins - 1):
        edge_low = edge_high = 0.0
        for k in range(n_labels):
            if cut >= 0:
                below[k] += histogram[cut, k]
            difference = total[k] - 2.0 * below[k]
            edge_low += abs(difference - histogram[MISSING, k])
            edge_high += abs(difference + histogram[MISSING, k])
        if cut < 0:
            edge_high = -1.0  # all rows above: no cut
            if not has_missing:
                edge_low = -1.0
        if edge_low * (1.0 - TIE) > best[0]:
            best[0], best[1], best[2] = edge_low, cut, 0.0
        if has_missing and edge_high * (1.0 - TIE) > best[0]:
            best[0], best[1], best[2] = edge_high, cut, 1.0


_SIGNATURE = numba.void(
    numba.uint8[:, ::1],
    numba.float64[:, ::1],
    numba.int64[::1],
    numba.boolean[::1],
    numba.float64[:, ::1],
)


@numba.njit(_SIGNATURE, nogil=True, cache=True)
def _scan_serial(codes, signed, n_bins, has_missing, best):  # type: ignore[no-untyped-def]
    for j in range(codes.shape[0]):
        _scan_feature(codes[j], signed, n_bins[j], has_missing[j], best[j])


@numba.njit(_SIGNATURE, nogil=True, cache=True, parallel=True)
def _scan_parallel(codes, signed, n_bins, has_missing, best):  # type: ignore[no-untyped-def]
    for j in numba.prange(codes.shape[0]):
        _scan_feature(codes[j], signed, n_bins[j], has_missing[j], best[j])
