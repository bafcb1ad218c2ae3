"""Serial dependence: how much the fraction of rows in each bin varies if the rows are a time series.

With independent rows the variance of a share p is p (1 − p) / n. Rows that follow each other in time often resemble
each other, and then n rows say less than n independent ones: of a series whose neighbours correlate by .9, 19 rows say
about as much as one. A test that assumes independent rows finds a change in most samples of such a series.

The long-run covariance Ω is n times the covariance of the shares. With the cosine transforms of the indicators of the
bins, Λ_j = √(2/n) Σ_t cos(π j (t − ½) / n) 1{x_t = k}, it is estimated by their mean over the lowest B frequencies,

    Ω̂ = (1/B) Σ_j Λ_j Λ_jᵀ   (Müller; Lazarus et al.).

The Λ_j are about independent, so Ω̂ has B degrees of freedom, and tests use Student's or Fisher's distribution in place
of the normal one or χ². B is .41 n^(2/3), Lazarus et al.'s recommendation, but at most n / (π m): m is the lag from
which on autocorrelations are within chance (Politis & White), so that the spectrum is about flat over the frequencies
used. If B is below `MIN_FREQUENCIES`, the rows are too few for their dependence, and there is no estimate. Nor is there
one if they say less than `MIN_INDEPENDENT` rows, n (1 − ρ) / (1 + ρ) with ρ the autocorrelation of neighbours: in some
short samples of a long memory, the autocorrelations seem to end early, and tests of these would reject too often.

References
----------
Lazarus, Lewis, Stock & Watson, "HAR inference: recommendations for practice", Journal of Business & Economic Statistics
36 (2018), eq. 5 to 10.
Müller, "A theory of robust long-run variance estimation", Journal of Econometrics 141 (2007).
Politis & White, "Automatic block-length selection for the dependent bootstrap", Econometric Reviews 23 (2004), §3.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.metrics.groups import FloatArray

Bins = NDArray[np.intp]

MIN_FREQUENCIES = 3
"""Least number of frequencies, and so of degrees of freedom, from which a covariance is estimated."""
MIN_INDEPENDENT = 20.0
"""Least number of independent rows that a series must be worth."""
MAX_CELLS = 1 << 16
"""Longer series are summed over stretches of equal length, at most so many."""
_SHARE = 0.41  # of n^(2/3): frequencies
_NOISE = 2.0  # times √(log10 n / n): an autocorrelation below is within chance
_RUN = 5  # autocorrelations within chance that end the dependence; Politis & White's max(5, √(log10 n))
_EVIDENT = 4.0  # standard errors
_NEAR = 10  # lags whose mean autocorrelation is tested


class SerialDependence(NamedTuple):
    """The long-run covariance of bin fractions in a series of possibly autocorrelated rows."""

    covariance: FloatArray
    """Ω: n times the covariance of the shares. Shape (n_bins, n_bins), float64."""
    degrees: float
    """Degrees of freedom of the estimate."""


def serial_dependence(
    bins: Bins, n_bins: int, *, ordered: bool, worth: float = 1.0
) -> SerialDependence | None:
    """Return the long-run covariance of bin fractions; None if the series is too short to estimate it.

    O(n_bins · n log n) time for at most `MAX_CELLS` rows, O(n) for more.

    bins: (n_rows,), intp; the bin of each row, in the order of time. No rows are too few.
    ordered: whether neighbouring bins are neighbouring values.
    worth: float in (0, 1]; how many independent rows a row is at most, where rows come in groups: the covariance has at
        least the trace of so many independent rows.
    """
    if bins.size == 0:
        return None
    series, size = _indicators(bins, n_bins)
    n = series.shape[1]
    lag, neighbours = _dependence(series, ordered)
    frequencies = int(min(_SHARE * n ** (2.0 / 3.0), n / (math.pi * lag)))
    # of an autoregression, where the estimate of ρ is too low by (1 + 3ρ) / n
    neighbours = min(1.0, neighbours + (1.0 + 3.0 * neighbours) / n)
    independent_rows = n * (1.0 - neighbours) / (1.0 + neighbours)
    if frequencies < MIN_FREQUENCIES or independent_rows < MIN_INDEPENDENT:
        return None
    from scipy.fft import dct

    waves = dct(series, type=2, axis=1)[:, 1 : frequencies + 1] * (0.5 * math.sqrt(2.0 / n))
    covariance = size * np.einsum("if,jf->ij", waves, waves) / frequencies
    covariance = at_least_independent(covariance, series.mean(axis=1), worth)
    return SerialDependence(covariance, float(frequencies))


def at_least_independent(
    covariance: FloatArray, shares: FloatArray, worth: float = 1.0
) -> FloatArray:
    """Scale a covariance of bin fractions to at least the trace that independent rows with these fractions have.

    covariance: (n_bins, n_bins). shares: (n_bins,), they sum to 1. worth: as `serial_dependence`.
    """
    least, found = float((shares * (1.0 - shares)).sum()) / worth, float(np.trace(covariance))
    if found >= least:
        return covariance
    if found > 0.0:
        return covariance * (least / found)
    independent: FloatArray = (np.diag(shares) - np.outer(shares, shares)) / worth
    return independent


def order_matters(
    bins: Bins, n_bins: int, *, ordered: bool, stratum: NDArray[np.generic] | None = None
) -> bool:
    """Return True if neighbouring rows are significantly autocorrelated. O(n_bins · n).

    That is so if an autocorrelation, of neighbours or in the mean over ten lags, is beyond four standard errors.

    bins, n_bins, ordered: as `serial_dependence`.
    stratum: (n_rows,); neighbours must be alike within the strata, too: a table that is sorted by its label is no time
        series.
    """
    if bins.size <= 2 * _NEAR or not _are_alike([bins], n_bins, ordered):
        return False
    if stratum is None:
        return True
    order = np.argsort(stratum, kind="stable")
    ends = np.flatnonzero(stratum[order][1:] != stratum[order][:-1]) + 1
    return _are_alike(np.split(bins[order], ends), n_bins, ordered)


def _are_alike(parts: Sequence[Bins], n_bins: int, ordered: bool) -> bool:
    used = [part for part in parts if part.size > _NEAR]
    if not used:
        return False
    moments = [_lagged_moments(part, n_bins, ordered) for part in used]
    squares, products = (np.sum(of_parts, axis=0) for of_parts in zip(*moments, strict=True))
    varies = squares > 0.0
    if not varies.any():
        return False
    rows = sum(part.size for part in used)
    correlations = products[:, varies] / squares[varies] * math.sqrt(rows)
    together = correlations.sum(axis=0) / math.sqrt(_NEAR)
    return bool(max(correlations[0].max(), together.max()) > _EVIDENT)


def _lagged_moments(bins: Bins, n_bins: int, ordered: bool) -> tuple[FloatArray, FloatArray]:
    """Return sums of squares of `_contrasts`, and of products at lags 1 to `_NEAR`, (n_lags, n_contrasts).

    They follow from the counts of pairs of bins at each lag, which are cheaper than the contrasts.
    """
    n, n_pairs = bins.size, n_bins**2
    later_bins = np.concatenate([bins[lag:] + n_bins * lag for lag in range(_NEAR + 1)])
    earlier_bins = np.concatenate([bins[: n - lag] for lag in range(_NEAR + 1)])
    counts = np.bincount(later_bins * n_bins + earlier_bins, minlength=(_NEAR + 1) * n_pairs)
    pairs = counts.reshape(-1, n_bins, n_bins)
    later, earlier = _totals(pairs.sum(axis=2), ordered), _totals(pairs.sum(axis=1), ordered)
    if ordered and n_bins > 1:
        below = pairs.cumsum(axis=1).cumsum(axis=2)[:, :-1, :-1]
        # The rank, the sum of the contrasts of edges, has the product of each two of them.
        products = np.column_stack((below.diagonal(axis1=1, axis2=2), below.sum(axis=(1, 2))))
    else:
        products = pairs.diagonal(axis1=1, axis2=2)
    mean, rows = later[0] / n, n - np.arange(_NEAR + 1.0)[:, np.newaxis]
    centred = products - mean * (later + earlier) + rows * mean**2
    constant = n * products[0] == later[0] ** 2  # exact: whole numbers
    centred[:, constant] = 0.0
    return centred[0], centred[1:]


def _totals(counts: NDArray[np.intp], ordered: bool) -> NDArray[np.intp]:
    """Return the sums of `_contrasts` before they are centred, from the counts of bins, (n_lags, n_bins)."""
    if not ordered or counts.shape[1] == 1:
        return counts
    below = counts.cumsum(axis=1)[:, :-1]
    return np.column_stack((below, below.sum(axis=1)))


def _indicators(bins: Bins, n_bins: int, most: int = MAX_CELLS) -> tuple[FloatArray, int]:
    """Return bin fractions of consecutive rows, (n_bins, n_entries), and the rows per entry: one up to `most` rows."""
    size = -(-bins.size // most)
    n = bins.size // size
    cells = np.arange(n * size) // size
    counts = np.bincount(cells * n_bins + bins[: n * size], minlength=n * n_bins)
    return np.ascontiguousarray(counts.reshape(n, n_bins).T) / size, size


def _contrasts(series: FloatArray, ordered: bool) -> FloatArray:
    """Return the centred indicator series that are tested for autocorrelation, from the series of bins.

    For unordered bins there is one series per bin: whether a row is in it. For ordered bins there is one per edge
    (whether a row is below it), and the rank.
    """
    if ordered and len(series) > 1:
        below = np.cumsum(series, axis=0)[:-1]
        series = np.concatenate((below, below.sum(axis=0, keepdims=True)))
    centred: FloatArray = series - series.mean(axis=1, keepdims=True)
    centred[(centred**2).mean(axis=1) < np.finfo(np.float64).eps] = 0.0
    return centred


def _dependence(series: FloatArray, ordered: bool) -> tuple[int, float]:
    """Return the lag, at least 1, beyond which no autocorrelation is significant, and that of neighbours, in [0, 1]."""
    from scipy.fft import irfft, next_fast_len, rfft

    n = series.shape[1]
    size = next_fast_len(2 * n, real=True)
    correlations = np.zeros(n)
    for one in _contrasts(series, ordered):
        waves = rfft(one, size)
        products = irfft(np.abs(waves) ** 2, size)[:n]
        if products[0] > 0.0:
            np.maximum(correlations, np.abs(products) / products[0], out=correlations)
    noise = math.log10(max(n, 2))
    beyond = np.append(0, np.cumsum(correlations[1:] >= _NOISE * math.sqrt(noise / n)))
    quiet = np.flatnonzero(beyond[_RUN:] == beyond[:-_RUN])
    neighbours = float(correlations[1]) if n > 1 else 1.0
    return max(1, int(quiet[0])) if quiet.size else n, min(1.0, neighbours)
