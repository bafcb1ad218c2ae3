"""Tests of differences of areas on the same units: of two scorers, of all together, and of many at once.

**A pair over a window.** The difference d = A − A' has the variance Σ (u_g − u'_g)² of `influence`, so what the two
share cancels. The interval is d ± z √Var, cut at ±1, and p is Wald's: for two AUCs without weights this is the test of
DeLong et al., for windows that of He & Escobar, for units Obuchowski's.

**Where the sample shows no variance**: the scorers rank the rows alike, or each is perfect, or a class has the weight
of one unit. Then the n trials of `intervals` are read as n pairs of outcomes of which n |d| favour the one scorer and
none the other. The interval is Tango's for such a table, p is McNemar's, 2 Φ(−√(n |d|)). Scorers that agree have the
difference 0, p = 1, and an interval of ±z² / (n + z²): that they agree on these rows does not prove that they are one.

**All scorers at once.** H₀: all areas of a window are equal; and over all windows: they are equal in each. With d the
differences to the first scorer and S their covariance, of rank r, Wald's statistic is dᵀ S⁺ d: equal scorers, and
windows made up of others, do no harm. As S is estimated, it is held to Hotelling's T² with r and m degrees of freedom;
m is one less than the effective units of the smaller class. (Held to χ², five scorers that were
equally good over three windows were called different in 56 % of samples of 10 + 20 rows.) The p-value is Holm's least
instead where m < 2 r, and where d leaves the range of S, so that a difference has no variance to be judged by. With
r = 1 it is the pair's own.

**Bootstrap.** The same formulas with the covariance of replicates, all scorers and windows on the same draws.

**Groups.** Student's t with m degrees of freedom takes the place of the normal distribution (see `influence`).

**Many tests.** `adjusted_p_value` is Holm's, over all pairs and all windows of the comparison: the chance of any false
"different" among them stays below the level. The intervals are for one difference each.

References
----------
DeLong, DeLong & Clarke-Pearson, "Comparing the areas under two or more correlated ROC curves", Biometrics 44 (1988).
He & Escobar, "Nonparametric statistical inference method for partial areas under ROC curves", Statistics in Medicine
27 (2008).
Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
Hotelling, "The generalization of Student's ratio", Annals of Mathematical Statistics 2 (1931).
McNemar, "Note on the sampling error of the difference between correlated proportions", Psychometrika 12 (1947).
Tango, "Equivalence test and confidence interval for the difference in proportions for the paired-sample design",
Statistics in Medicine 17 (1998).
"""

from __future__ import annotations

import math

import numpy as np

from core.metrics.groups import FloatArray, inner
from core.metrics.influence import NOTHING, Areas
from core.metrics.intervals import (
    Interval,
    least_trials,
    normal_quantile,
    quantile,
    wilson_interval,
)
from core.metrics.window import Window

# Of a correlation matrix: an eigenvalue below this is a contrast that others make up.
_RANK = 1e-9
# Standard errors of a difference along such a contrast that are more than rounding.
_OUT_OF_RANGE = 1e-3


def difference_error(areas: Areas, first: int, second: int, j: int) -> float | None:
    """Standard error of the difference of two areas over the j-th window; None if a class is one unit's."""
    if areas.influence is None:
        return None
    parts = areas.influence[first, j] - areas.influence[second, j]
    return math.sqrt(inner(parts, parts))


def holm(p_values: FloatArray) -> FloatArray:
    """Holm's adjusted p-values, in the shape of `p_values`."""
    flat = p_values.ravel()
    order = np.argsort(flat, kind="stable")
    steps = np.maximum.accumulate(flat[order] * np.arange(flat.size, 0, -1))
    adjusted = np.empty(flat.size)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted.reshape(p_values.shape)


def judge(
    areas: Areas, pair: tuple[int, int], j: int, window: Window, level: float
) -> tuple[Interval, float]:
    """The difference of two areas with its interval, and its p-value."""
    value = float(areas.values[pair[0], j] - areas.values[pair[1], j])
    error = difference_error(areas, *pair, j)
    if error is None or error <= NOTHING:
        trials = least_trials(areas.effective, window)
        return one_sided_table(value, trials, level), _two_sided(math.sqrt(trials * abs(value)))
    reach = quantile(level, areas.degrees) * error
    p_value = _two_sided(value / error, areas.degrees)
    return Interval(value, max(-1.0, value - reach), min(1.0, value + reach)), p_value


def one_sided_table(value: float, trials: float, level: float) -> Interval:
    """Tango's interval of a paired difference of shares, when `trials` |value| pairs favour one and none the other."""
    size, z_squared = abs(value), normal_quantile(level) ** 2
    _, low, high = wilson_interval(min(1.0, size), trials, level)
    mixed = (trials * size - z_squared) / (trials + z_squared)
    if mixed <= size / (2.0 - size):  # there the likeliest table has pairs of both kinds
        low = mixed
    return Interval(value, low, high) if value >= 0.0 else Interval(value, -high, -low)


def _two_sided(z: float, degrees: float = math.inf) -> float:
    from scipy.special import stdtr

    if math.isinf(degrees):
        return math.erfc(abs(z) / math.sqrt(2.0))
    return float(2.0 * stdtr(degrees, -abs(z)))


def _hotelling(statistic: float, rank: int, degrees: float) -> float:
    from scipy.special import fdtrc

    spare = degrees - rank + 1.0
    return float(fdtrc(rank, spare, statistic * spare / (degrees * rank)))


def joint_p_value(areas: Areas, windows: list[int], p_values: FloatArray) -> float:
    """P-value of H₀: in each of these windows all scorers have the same area."""
    least = float(holm(p_values).min())
    if areas.influence is None:
        return least
    values = (areas.values[1:, windows] - areas.values[0, windows]).ravel()
    parts = areas.influence[1:, windows] - areas.influence[0, windows]
    parts = parts.reshape(values.size, -1)
    covariance = np.einsum("ig,jg->ij", parts, parts)
    errors = np.sqrt(np.diag(covariance))
    shown = errors > NOTHING
    if np.any(np.abs(values[~shown]) > NOTHING):
        return least
    if not shown.any():
        return 1.0
    z = values[shown] / errors[shown]
    correlation = covariance[np.ix_(shown, shown)] / np.outer(errors[shown], errors[shown])
    roots, axes = np.linalg.eigh(correlation)
    along = axes.T @ z
    kept = roots > _RANK * roots[-1]
    if np.any(np.abs(along[~kept]) > _OUT_OF_RANGE):
        return least
    statistic = float((along[kept] ** 2 / roots[kept]).sum())
    rank = int(np.count_nonzero(kept))
    if rank == 1:
        return _two_sided(math.sqrt(statistic), areas.degrees)
    degrees = min(areas.effective) - 1.0
    return least if degrees < 2.0 * rank else _hotelling(statistic, rank, degrees)
