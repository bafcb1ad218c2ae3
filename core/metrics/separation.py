"""Rankings without errors, or nearly so: what they show, and that they are no case for the usual statistics.

If no pair of a positive and a negative is misranked, every standard error is 0, the number of rows that a test needs is
infinite, and a logistic fit has no maximum. What can be said is this: a ranking that misranks each row of the rarer
class against the others with a probability of more than 1 − .05^(1/n) would show some error in 95 % of samples of n
rows of that class. So .05^(1/n) is a lower limit of its AUC.

A ranking is *separated* if it misranks no pair and this limit is at least `MIN_LIMIT`; with fewer rows there are *too
few* to say so. It is *near* to it if hardly any row is on the wrong side of the best threshold, and the AUC's lower
limit is next to 1. Estimated variances vanish there, too, so the standard error has a minimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import number_units
from core.metrics.estimates import quantile
from core.metrics.groups import EvaluatedRows, check_rows, effective_units, inner
from core.metrics.intervals import estimate_areas
from core.metrics.window import WHOLE

RISK = 0.05

MIN_LIMIT = 0.97
"""Lower limit of the AUC of a separated ranking: 99 effective rows of the rarer class."""

MIN_NEAR_ROWS, MIN_NEAR_LIMIT, MAX_WRONG = 100, 0.995, 0.02
"""Effective rows of the rarer class, lower limit of the AUC, and rows on the wrong side of the best threshold as a
fraction of the rarer class, of a ranking that is nearly separated."""

_LEAST_MISRANKED = 1e-3  # of a row, in the minimum of the standard error

State = Literal["separated", "too_few", "near", "none"]


@dataclass(frozen=True)
class Separation:
    """Whether a ranking separates the classes, and how surely.

    Attributes
    ----------
    auc, low : float in [0, 1]
        The AUC, and its lower limit at one-sided 95 %.
    units : float
        Effective number of rows (or groups) of the rarer class.
    wrong : int
        Rows on the wrong side of the best threshold, in each fold of its own.
    threshold : float or None
        The least score that the best threshold counts as positive. None for the scores of several folds.

    Examples
    --------
    >>> from core.metrics.separation import separation
    >>> found = separation([0] * 200 + [1] * 200, range(400))
    >>> found.state, round(found.low, 3)
    ('separated', 0.985)
    """

    state: State
    auc: float
    low: float
    units: float
    wrong: int
    threshold: float | None

    @property
    def is_separated(self) -> bool:
        """Whether sample sizes, standard errors and paired tests mean nothing."""
        return self.state in ("separated", "near")


def separation_warning(found: Separation) -> str | None:
    """Return what to say of a ranking that separates the classes, in place of sample sizes and tests; else None."""
    if not found.is_separated:
        return None
    if found.state == "separated":
        said = (
            f"every positive ranks above every negative. With {found.units:,.0f} independent rows of the rarer class "
            f"the AUC is at least {math.floor(1e3 * found.low) / 1e3:.3f} (95 %)"
        )
    else:
        rows = "row is" if found.wrong == 1 else "rows are"
        said = (
            f"the model separates the classes almost perfectly: {found.wrong:,} {rows} on the wrong side of the best "
            f"threshold, and the AUC is at least {math.floor(1e4 * found.low) / 1e4:.4f} (95 %)"
        )
    return (
        f"{said}. Perfect rankings usually mean that a column states the outcome: check which columns are known when a "
        "row is scored"
    )


def separation(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    fold: ArrayLike | None = None,
) -> Separation:
    """Return whether a ranking separates the classes.

    y, scores, sample_weight, group: as for `core.metrics.auc_interval`.
    fold: (n_samples,); rows are only compared with rows of the same fold, each of which has its own threshold. Folds of
        one class are left out.

    O(n log n).
    """
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    parts = [rows]
    if fold is not None:
        number = number_units("fold", fold, np.size(y))
        if sample_weight is not None:
            number = number[np.asarray(sample_weight) > 0]
        parts = [rows.take(number == each) for each in range(int(number.max()) + 1)]
        parts = [part for part in parts if part.positive.any() and not part.positive.all()]
    if not parts:
        return Separation("none", math.nan, 0.0, 0.0, 0, None)
    units = min(effective_units(rows))
    cuts = [_best_threshold(part) for part in parts]
    wrong = sum(each[0] for each in cuts)
    threshold = cuts[0][1] if fold is None else None
    if all(_misranks_none(part) for part in parts):
        low = RISK ** (1.0 / max(units, 1e-9))
        state: State = "separated" if low >= MIN_LIMIT else "too_few"
        return Separation(state, 1.0, low, units, 0, threshold)
    auc, error = _mean_area(parts)
    error = max(error, math.sqrt(max(1.0 - auc, 1.0 / units) * _LEAST_MISRANKED / units))
    low = max(0.0, auc - quantile(1.0 - 2.0 * RISK, max(units - 1.0, 1.0)) * error)
    rarer = min(np.count_nonzero(rows.positive), np.count_nonzero(~rows.positive))
    near = units >= MIN_NEAR_ROWS and low >= MIN_NEAR_LIMIT and wrong <= MAX_WRONG * rarer
    return Separation("near" if near else "none", auc, low, units, wrong, threshold)


def _misranks_none(rows: EvaluatedRows) -> bool:
    (scores,) = rows.scores
    return bool(scores[rows.positive].min() > scores[~rows.positive].max())


def _best_threshold(rows: EvaluatedRows) -> tuple[int, float]:
    """Return the least number of rows on the wrong side of a threshold, and that threshold."""
    (scores,) = rows.scores
    order = np.argsort(-scores, kind="stable")
    ordered, positive = scores[order], rows.positive[order]
    ends: NDArray[np.intp] = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])
    missed = np.count_nonzero(positive) - np.cumsum(positive)[ends]
    wrong = missed + np.cumsum(~positive)[ends]
    best = int(wrong.argmin())
    return int(wrong[best]), float(ordered[ends[best]])


def _mean_area(parts: list[EvaluatedRows]) -> tuple[float, float]:
    """Return the mean AUC of the parts by their pairs, and its standard error, infinite if none is known."""
    found = [estimate_areas(part, [WHOLE]) for part in parts]
    mass = np.array([_mass(part, True) * _mass(part, False) for part in parts])
    mass /= mass.sum()
    areas = np.array([each.values[0, 0] for each in found])
    variances = [each.variance(0, 0) for each in found]
    known = np.array([math.inf if each is None else each for each in variances])
    return inner(mass, areas), math.sqrt(inner(mass**2, known))


def _mass(rows: EvaluatedRows, positive: bool) -> float:
    own = rows.positive == positive
    return float(np.count_nonzero(own) if rows.weight is None else rows.weight[own].sum())
