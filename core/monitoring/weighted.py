"""Metrics of decisions of which only some have an outcome, weighted by the inverse of their probability of review.

Reviewers see the rows that a model flags; lenders see outcomes of the rows that it does not flag. Metrics of the rows
with outcomes are then metrics of a selection that the model made, and wrong for all rows: the AUC of flagged rows is
far below the AUC of all rows. If a random sample of the other side is reviewed, too (*explored*), each row with an
outcome counts for 1 / (propensity · keep) decisions, where the propensity is the probability that it was to be
reviewed, and keep that it was recorded (Hájek 1971).

* Rows that were neither always reviewed nor explored are left out even if their outcome is known, because whether it
  becomes known (by a complaint) depends on the outcome.
* Within each side, flagged and not, weights are scaled so that they sum to the decisions of the side, which are known
  (post-stratification; Särndal, Swensson & Wretman 1992, §7.6). So rows of a side whose outcome is missing are assumed
  to be like the others of that side.
* The variance is Σ φ² over the influences φ of weighted rows (see `core.metrics.estimates`). It is right for a new
  sample of decisions, and slightly too great, since the scaling is left out of it. With entities φ is summed over the
  rows of each.

The AUC and the recall depend on the positives among the explored rows, each of which counts for many. With fewer than
`MIN_EXPLORED_POSITIVES` their intervals are too narrow, and there are none. The precision of flagged rows and the rate
of positives among explored ones have Wilson's interval for effective rows at any number.

Without exploration only one side has outcomes. Metrics then describe that side, and there is no recall.

References
----------
Hájek, comment on "An essay on the logical foundations of survey sampling" by Basu, in *Foundations of Statistical
Inference* (1971).
Särndal, Swensson & Wretman, *Model Assisted Survey Sampling* (1992).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidData
from core.metrics.estimates import Interval, logit_interval, proportion_interval, wilson_interval
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    effective_number,
    effective_units,
    finite_vector,
    sum_by_unit,
    take_units,
)
from core.metrics.intervals import interval_of_rows
from core.metrics.window import WHOLE, check_level
from core.monitoring.measuring import check_booleans, column, entity_numbers

MIN_EXPLORED_POSITIVES = 20
"""Minimum effective number of explored positives for an interval of the AUC and the recall."""

Population = Literal["all", "flagged", "unflagged", "none"]
"""The decisions that outcomes represent: all, one side of the threshold, or none."""


@dataclass(frozen=True)
class WeightedEstimate:
    """A metric of weighted rows.

    Attributes
    ----------
    low, high : float or None
        Confidence limits; None unless `explored_needed` is 0, where a part of the decisions is explored.

    Examples
    --------
    >>> from core.monitoring import WeightedEstimate
    >>> WeightedEstimate(0.8, 0.7, 0.9, 120.0).low
    0.7
    """

    value: float
    """The metric."""
    low: float | None
    high: float | None
    rows: float
    """Effective number of rows that it is computed from."""


@dataclass(frozen=True)
class WeightedMetrics:
    """Metrics of decisions by their outcomes, with the population that they describe.

    Examples
    --------
    >>> from core.monitoring import weighted_metrics
    >>> found = weighted_metrics(
    ...     [0.9, 0.8, 0.3, 0.2], positive=[1, 0, 0, 0], known=[1, 1, 0, 0], flag=[1, 1, 0, 0],
    ...     explored=[0, 0, 0, 0], propensity=[1, 1, 0, 0])
    >>> found.population, found.precision.value, found.recall
    ('flagged', 0.5, None)
    """

    population: Population
    """The decisions that the AUC describes."""
    decisions: int
    """All decisions."""
    reviewed: int
    """Decisions that were to be reviewed and have an outcome."""
    missing: int
    """Decisions that were to be reviewed and have no outcome. They are assumed to be like the others of their side."""
    unselected: int
    """Decisions with an outcome that were not to be reviewed. They are left out."""
    explored: int
    """Explored decisions with an outcome."""
    explored_positives: int
    """Positives among them."""
    explored_needed: int | None
    """Further explored outcomes until there are 20 effective positives among them, at the present rate; 0 if there are
    and intervals exist, None if the rate is not known or nothing is explored. Positives of unequal weights count as
    fewer."""
    auc: WeightedEstimate | None
    """AUC of the population; None if its outcomes are of one class."""
    precision: WeightedEstimate | None
    """Fraction of positives among flagged decisions; None if these have no outcomes."""
    miss_rate: WeightedEstimate | None
    """Fraction of positives among decisions that were not flagged; None if these have no outcomes."""
    recall: WeightedEstimate | None
    """Fraction of the positives that are flagged; None unless the population is "all", or without positives."""


def weighted_metrics(
    score: ArrayLike,
    *,
    positive: ArrayLike,
    known: ArrayLike,
    flag: ArrayLike | None,
    explored: ArrayLike,
    propensity: ArrayLike,
    keep: ArrayLike | None = None,
    entity: ArrayLike | None = None,
    level: float = 0.95,
) -> WeightedMetrics:
    """Compute metrics of all decisions from the outcomes of a known random selection.

    Parameters
    ----------
    score : array_like of float, shape (n_decisions,)
        Finite scores; higher means more likely positive.
    positive, known
        As for `swap_set`.
    flag : array_like of bool, shape (n_decisions,), optional
        Whether the decision was flagged. None: the model had no threshold; all decisions are then one side.
    explored : array_like of bool, shape (n_decisions,)
        Whether the decision was chosen at random for review.
    propensity : array_like of float in [0, 1], shape (n_decisions,)
        Probability that the decision was to be reviewed: 1 on the side that always is, the rate of exploration on the
        other side, 0 if that side is not explored. 1 everywhere, if outcomes become known without reviews.
    keep : array_like of float in (0, 1], shape (n_decisions,), optional
        Probability that the decision was recorded. Default: 1.
    entity : array_like of int, shape (n_decisions,), optional
        Number of the entity (customer, patient) of each decision: intervals are those of a sample of entities. Default:
        decisions are independent.
    level : float in (0, 1)
        Level of the intervals.

    Returns
    -------
    WeightedMetrics
        The metrics. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import weighted_metrics
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(60_000) < 0.05
    >>> score = rng.normal(size=y.size) + 1.2 * y
    >>> flag, explored = score > 2.0, rng.random(y.size) < 0.05
    >>> explored &= ~flag
    >>> found = weighted_metrics(
    ...     score, positive=y, known=flag | explored, flag=flag, explored=explored,
    ...     propensity=np.where(flag, 1.0, 0.05))
    >>> "{:.2f} from {:.2f} to {:.2f}".format(found.auc.value, found.auc.low, found.auc.high)
    '0.80 from 0.76 to 0.83'
    """
    level = check_level(level)
    scores = finite_vector("score", score)
    n = scores.size
    y, is_known, is_explored = (
        check_booleans(name, column(name, values, "score", n))
        for name, values in (("positive", positive), ("known", known), ("explored", explored))
    )
    is_flagged = None if flag is None else check_booleans("flag", column("flag", flag, "score", n))
    chance = _rates("propensity", propensity, n)
    kept = np.ones(n) if keep is None else _rates("keep", keep, n)
    if not kept.all():
        raise InvalidData("keep must be above 0, got 0.0")
    chosen = (chance >= 1.0) | (is_explored & (chance > 0.0))
    used = chosen & is_known
    sides = [np.ones(n, dtype=bool)] if is_flagged is None else [is_flagged, ~is_flagged]
    weight = np.zeros(n)
    weight[used] = 1.0 / (chance[used] * kept[used])
    for side in sides:  # post-stratification
        total = float(weight[side].sum())
        if total > 0.0:
            weight[side] *= float((1.0 / kept[side]).sum()) / total
    unit = None if entity is None else np.unique(entity_numbers(entity, n), return_inverse=True)[1]
    population = _population(is_flagged, chance, used)
    sampled = used & (chance < 1.0)
    positives = sampled & y
    n_sampled, n_positives = int(np.count_nonzero(sampled)), int(np.count_nonzero(positives))
    by_chance = bool(((chance > 0.0) & (chance < 1.0)).any())
    needed = None
    if by_chance:
        needed = _needed(n_sampled, effective_number(weight[positives]) if n_positives else 0.0)
    enough = not by_chance or needed == 0
    return WeightedMetrics(
        population=population,
        decisions=n,
        reviewed=int(np.count_nonzero(used)),
        missing=int(np.count_nonzero(chosen & ~is_known)),
        unselected=int(np.count_nonzero(is_known & ~chosen)),
        explored=n_sampled,
        explored_positives=n_positives,
        explored_needed=needed,
        auc=_auc(y, scores, weight, unit, used, level, enough=enough),
        precision=None if is_flagged is None else _rate(y, weight, unit, used & is_flagged, level),
        miss_rate=None if is_flagged is None else _rate(y, weight, unit, used & ~is_flagged, level),
        recall=None
        if is_flagged is None or population != "all"
        else _recall(is_flagged, weight, unit, used & y, level, enough=enough),
    )


def _population(
    flag: NDArray[np.bool_] | None, chance: FloatArray, used: NDArray[np.bool_]
) -> Population:
    if not used.any():
        return "none"
    if flag is None:
        return "all"
    has = [bool(used[side].any()) for side in (flag, ~flag)]
    empty = [not side.any() for side in (flag, ~flag)]
    if all(some or none for some, none in zip(has, empty, strict=True)):
        return "all"
    return "flagged" if has[0] else "unflagged"


def _needed(explored: int, effective: float) -> int | None:
    """Return the explored rows still needed until their positives have the least effective number; None without any
    yet.
    """
    if effective == 0.0:
        return None
    missing = (MIN_EXPLORED_POSITIVES / effective - 1.0) * explored
    return max(0, math.ceil(missing - 1e-6))


def _auc(
    y: NDArray[np.bool_],
    scores: FloatArray,
    weight: FloatArray,
    unit: NDArray[np.intp] | None,
    used: NDArray[np.bool_],
    level: float,
    *,
    enough: bool,
) -> WeightedEstimate | None:
    if not y[used].any() or y[used].all():
        return None
    every = EvaluatedRows(y, (scores,), weight, unit).take(used)
    return _estimate(
        interval_of_rows(every, WHOLE, level), min(effective_units(every)), enough=enough
    )


def _rate(
    event: NDArray[np.bool_],
    weight: FloatArray,
    unit: NDArray[np.intp] | None,
    inside: NDArray[np.bool_],
    level: float,
) -> WeightedEstimate | None:
    if not inside.any():
        return None
    value, variance, rows, units = _mean(event, weight, unit, inside)
    found = (
        wilson_interval(value, rows, level)
        if unit is None
        else proportion_interval(value, variance, units, level, max(units - 1.0, 1.0))
    )
    return _estimate(found, rows, enough=True)


def _recall(
    flag: NDArray[np.bool_],
    weight: FloatArray,
    unit: NDArray[np.intp] | None,
    inside: NDArray[np.bool_],
    level: float,
    *,
    enough: bool,
) -> WeightedEstimate | None:
    if not inside.any():
        return None
    value, variance, rows, units = _mean(flag, weight, unit, inside)
    return _estimate(logit_interval(value, variance, units, level), rows, enough=enough)


def _mean(
    event: NDArray[np.bool_],
    weight: FloatArray,
    unit: NDArray[np.intp] | None,
    inside: NDArray[np.bool_],
) -> tuple[float, float, float, float]:
    """Return a weighted rate inside a mask, its variance, and the effective numbers of rows and of units."""
    w, happened = weight[inside], event[inside]
    total = float(w.sum())
    value = min(1.0, float(w[happened].sum() / total))
    of = None if unit is None else take_units(unit, inside)
    influence = sum_by_unit(w * (happened - value) / total, of)
    units = effective_number(sum_by_unit(w, of))
    variance = float((influence**2).sum()) * units / max(units - 1.0, 1e-9)
    return value, variance, effective_number(w), units


def _estimate(found: Interval, rows: float, *, enough: bool) -> WeightedEstimate:
    low, high = (found.low, found.high) if enough else (None, None)
    return WeightedEstimate(found.value, low, high, rows)


def _rates(name: str, values: ArrayLike, n: int) -> FloatArray:
    vector = column(name, values, "score", n)
    wrong = (vector < 0.0) | (vector > 1.0)
    if wrong.any():
        index = int(np.argmax(wrong))
        raise InvalidData(f"{name} must be in [0, 1], got {vector[index]:g} at index {index}")
    return vector
