"""The order in which categories are split: by their fraction of positives, shrunk towards the mean.

A categorical feature has no order of its own, so a scan gives it one. For any of the criteria that
grow with P and fall with N it is enough to look at cuts along the bins' share of positives,
s_k = P_k/(P_k + N_k): the points (P, N) of all sets of bins fill a zonotope, whose corners are the
cuts along s_k. |P - N| and the edge are convex and so greatest at a corner. What eq. 5 minimises,
√(PN) + √((1-P)(1-N)), is concave and so least at one. So K log K steps find the best of 2^K sets
(Breiman et al. 1984, Theorem 4.5, says the same of impurities). One caveat: some corners are no cut
at all, to which the edge of AdaBoost's constant classifier belongs. Where that is the best, so may
a set be that is no cut along s_k the best of the others.

**How far a share is shrunk.** Of many bins with few rows each, half lie above the mean share by
chance alone, and a set of those seems to tell much. So a bin's masses are mixed with the feature's
mean share s,

    P'_k = f_k P_k + (1 - f_k) s M_k,    M_k = P_k + N_k,    f_k = M_k/(M_k + σ²/τ²),

where σ² is the variance of a share that one unit of mass has by chance, and τ² that of the bins' true
shares: what their shares differ by, less what chance explains. Both are taken from the very rows and
weights, by moments; this is the credibility of Bühlmann & Straub (1970). With one row a category the
shares differ by chance alone, τ² is 0, and the feature has no gain whatever the labels: an
identifier is never chosen for its training fit. With few large categories f_k is near 1. Order and
gain are those of the mixed masses; steps and leaf values are measured on the true ones.

**Sets of categories** are bits: bit c % 64 of word c // 64 tells whether category c is in the set. A model keeps its
sets in one array, one behind the other; a set is known by the index of its first word.

References
----------
H. Bühlmann and E. Straub, "Glaubwürdigkeit für Schadensätze", Bulletin of the Swiss Association of
Actuaries 70, 1970.

L. Breiman, J. Friedman, R. Olshen and C. Stone, "Classification and Regression Trees", 1984:
Section 4.2.2.
"""

from typing import NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from core.base import state
from core.kernels import kernel

WORD_BITS = 64

Bools = state.Booleans
Words = state.Words
Count = TypeVar("Count", int, npt.NDArray[np.int64])

# Relative excess of the observed scatter over that of chance, below which it is rounding.
SCATTER_RTOL = 1e-9

# Difference of shrunken shares up to which they count as equal.
SHARE_ATOL = 1e-12


class InverseESS(NamedTuple):
    """The inverse of each class's effective sample size: Σ v²/(Σ v)² over its weights v, 1/n for n equal weights."""

    positive: float
    negative: float


INFINITE_ESS = InverseESS(0.0, 0.0)
"""Of infinitely many rows: no share is shrunk."""


def effective_counts(weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A weight k counts as k rows. Weights with a mean below 1 are divided by it: they are no numbers of rows."""
    return np.asarray(weight / min(float(weight.mean()), 1.0))


def measure_inverse_ess(
    weights: npt.NDArray[np.float64], rows: npt.NDArray[np.float64] | None, n_positives: int
) -> InverseESS:
    """Return each class's inverse effective sample size, positives first; `rows` is how many rows each stands for."""
    squares = weights * weights
    if rows is not None:
        squares /= rows
    m = n_positives
    return InverseESS(
        float(squares[:m].sum() / weights[:m].sum() ** 2),
        float(squares[m:].sum() / weights[m:].sum() ** 2),
    )


def _credibility(masses, total, scatter, chance):  # type: ignore[no-untyped-def]
    """Return Bühlmann & Straub's credibility f_k: how much each bin's own fraction counts.

    masses: M_k above 0; scatter: Σ (P_k - s M_k)²; chance: the scatter that chance alone gives to bins of total mass 1.
    All f_k are 0 if chance explains the scatter.
    """
    excess = scatter - chance * total
    if excess <= SCATTER_RTOL * scatter:
        return np.zeros(len(masses))
    signal = masses * excess
    return signal / (signal + chance * (masses * masses).sum())


credibility = numba.njit(inline="always")(_credibility)
"""For kernels; from Python `credibility.py_func`."""


@kernel(numba.void(numba.float64[::1], numba.int64[::1]), inner=True)
def sort_stably(keys, order):  # type: ignore[no-untyped-def]
    """Write the indices that sort keys, (n,) float64, stably to order, (n,) int64: merges of longer and longer runs."""
    n = len(keys)
    merged = np.empty(n, dtype=np.int64)
    for r in range(n):
        order[r] = r
    length = 1
    while length < n:
        for start in range(0, n, 2 * length):
            middle, stop = min(start + length, n), min(start + 2 * length, n)
            i, j = start, middle
            for r in range(start, stop):
                if j == stop or (i < middle and keys[order[i]] <= keys[order[j]]):
                    merged[r] = order[i]
                    i += 1
                else:
                    merged[r] = order[j]
                    j += 1
        for r in range(n):
            order[r] = merged[r]
        length *= 2


@kernel(
    numba.int64(
        numba.float64[:, ::1],
        numba.int64,
        numba.float64,
        numba.float64,
        numba.int64[::1],
        numba.float64[:, ::1],
    ),
    error_model="numpy",
)
def order_bins(masses, n_bins, inverse_ess_p, inverse_ess_n, order, mixed):  # type: ignore[no-untyped-def]
    """Sort a categorical feature's bins by shrunken fraction of positives; return the number of nonempty bins.

    masses: (2, n_slots) float64, positive and negative mass of each bin, at least 0, where each class has the mass 1
    in all rows. order: (n_bins,) int64, gets the bins with mass, lowest share first, among equals the lower bin.
    mixed: (2, n_slots) float64, gets their shrunken masses in that order.
    """
    n = 0
    total_p = total_n = 0.0
    for k in range(n_bins):
        if masses[0, k] + masses[1, k] > 0.0:
            order[n] = k
            n += 1
            total_p += masses[0, k]
            total_n += masses[1, k]
    share = total_p / (total_p + total_n) if n > 0 else 0.0
    # Variance of (1 - s) P - s N by chance, per unit of mass.
    chance = share * (1.0 - share) * ((1.0 - share) * inverse_ess_p + share * inverse_ess_n)
    scatter = 0.0
    bin_masses = np.empty(n)
    for r in range(n):
        bin_masses[r] = masses[0, order[r]] + masses[1, order[r]]
        scatter += (masses[0, order[r]] - share * bin_masses[r]) ** 2
    own = credibility(bin_masses, total_p + total_n, scatter, chance)
    bins, by_share = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    shrunk = np.empty((2, n))
    shares = np.empty(n)
    for r in range(n):
        bins[r] = order[r]
        p, q, mass = masses[0, bins[r]], masses[1, bins[r]], bin_masses[r]
        shrunk[0, r] = own[r] * p + (1.0 - own[r]) * share * mass
        shrunk[1, r] = own[r] * q + (1.0 - own[r]) * (1.0 - share) * mass
        shares[r] = shrunk[0, r] / mass
    sort_stably(shares, by_share)
    for r in range(n):
        order[r] = bins[by_share[r]]
        mixed[0, r] = shrunk[0, by_share[r]]
        mixed[1, r] = shrunk[1, by_share[r]]
    return n


def count_words(n_categories: Count) -> Count:
    return -(-n_categories // WORD_BITS)


def pack(category_mask: Bools) -> Words:
    bits = np.zeros(count_words(len(category_mask)) * WORD_BITS, dtype=np.bool_)
    bits[: len(category_mask)] = category_mask
    return np.packbits(bits, bitorder="little").view("<u8").astype(np.uint64)


def unpack(words: Words, first: int, n_categories: int) -> Bools:
    octets = words[first : first + count_words(n_categories)].astype("<u8").view(np.uint8)
    return np.unpackbits(octets, bitorder="little")[:n_categories].astype(np.bool_)
