"""Rates of a repeatedly cross-validated ranker: how much its dependence on the rows adds to their variance.

The rate S at a threshold is the fraction of a class's rows with at least that score, as the mean over the repeats, in
each of which another ranker scored each row. Were the rankers given, its variance would be that of independent rows,
S (1 − S) / n. But the rows of a fold have a ranker in common, and all of them depend on the same sample. With g the
rows' flags (sums over rows that were drawn together), the rates of R repeats differ by

    τ² = Var_r S_r,   of which   σ² = Σ_i Var_r g_ir / n²

is there because single rows near the threshold are flagged in one repeat and not in another. That part is in
S (1 − S) / n already: it is the variance of a flag, whatever it comes from. The rest, τ² − σ², is common to the rows.
From one sample to another it is V − 1 times as great as from one division into V folds to another (see `comparison`):

    Var S = S (1 − S) / n + (V − 1 + 1/R) max(0, τ² − σ²).

Both terms are summed over tenths of the scores, because R repeats show too little at one threshold. Their ratio is one
factor for all thresholds of a class, by which its effective number of rows is divided (as Rao & Scott's design effect).

References
----------
Rao & Scott, "On chi-squared tests for multiway contingency tables with cell proportions estimated from survey data",
Annals of Statistics 12 (1984).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import number_units
from core.errors import InvalidData
from core.metrics.groups import finite_vector, take_units

_SHARES = np.arange(1, 10) / 10


def rate_inflation(
    scores: ArrayLike,
    row: ArrayLike,
    repeat: ArrayLike,
    n_folds: float,
    effective: float,
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> float:
    """Return how many times the variance of a class's rates is that of independent rows with a given ranker.

    scores: (n_out_of_fold,); out-of-fold scores of the rows of one class, on one scale.
    row, repeat: (n_out_of_fold,); the row behind each score, and its repeat of the cross-validation. Each row has one
        score in each repeat.
    n_folds: float > 1; number of folds of a repeat.
    effective: float > 0; effective number of independent rows of the class.
    sample_weight: (n_out_of_fold,); non-negative weights of the rows.
    group: (n_out_of_fold,); rows with equal values were drawn together. Default: `row`.

    Result: at least 1; 1 with a single repeat, which shows nothing. O(n log n).

    InvalidData: lengths differ, a value is not finite, or a row does not have one score in each repeat.
    """
    values = finite_vector("scores", scores)
    size = values.size
    rows, of_repeat = number_units("row", row, size), number_units("repeat", repeat, size)
    units = rows if group is None else number_units("group", group, size)
    weight = (
        np.ones(size) if sample_weight is None else finite_vector("sample_weight", sample_weight)
    )
    if weight.size == size and weight.any() and not weight.all():
        kept = weight > 0.0
        values, of_repeat, weight = values[kept], of_repeat[kept], weight[kept]
        rows, units, size = take_units(rows, kept), take_units(units, kept), values.size
    order, n_repeats = np.lexsort((rows, of_repeat)), int(of_repeat.max(initial=0)) + 1
    n = size // n_repeats
    if n * n_repeats != size or not np.array_equal(rows[order], np.tile(np.arange(n), n_repeats)):
        raise InvalidData("row must have each row once in each repeat")
    if weight.size != size:
        raise InvalidData(f"sample_weight must have {size} values, got {weight.size}")
    total = float(weight[order[:n]].sum())
    if n_repeats == 1 or not total > 0.0:
        return 1.0
    by_row, unit = values[order].reshape(n_repeats, n), units[order[:n]]
    own, n_units = weight[order[:n]] / total, int(unit.max()) + 1
    common = independent = 0.0
    for threshold in np.unique(np.quantile(values, _SHARES)):
        flags = np.where(by_row >= threshold, own, 0.0)
        rates = flags.sum(axis=1)
        sums: NDArray[np.float64] = np.array([np.bincount(unit, each, n_units) for each in flags])
        common += float(rates.var(ddof=1) - sums.var(axis=0, ddof=1).sum())
        share = min(1.0, float(rates.mean()))
        independent += share * (1.0 - share) / effective
    if independent <= 0.0:
        return 1.0
    return 1.0 + (n_folds - 1.0 + 1.0 / n_repeats) * max(0.0, common) / independent
