"""Calibrations: non-decreasing maps from scores to probabilities, and the choice of a method by log loss.

* **Platt**: P = σ(a z + c), z the score moved and scaled. The targets are Platt's: (n₊ + 1) / (n₊ + 2) for a positive
  and 1 / (n₋ + 2) for a negative, so the fit is finite where the classes do not overlap. Few positives suffice.
* **beta** (Kull, Silva Filho & Flach): log odds a ln x − b ln (1 − x) + c for x in (0, 1). A score is no number in
  (0, 1), so x = σ(z): the tails of the score have slopes of their own, b above the centre and a below it. With a = b it
  is Platt's; and since z follows any linear change of the scores, so does the calibration. The centre of z is halfway
  between the medians of the classes, so it does not depend on how many positives there are. Targets are Platt's.
* **isotonic**: any shape, from many rows; smoothed at both ends so that no probability is 0 or 1 (see
  `isotonic.smoothed_isotonic`), and linear between blocks.

All slopes are at least 0: a calibration that would turn the order round is constant instead. Between two scores the
probability may be equal, never in another order.

The method is the one with the least log loss on held-out folds: the rows are divided into five parts, stratified by
class, units undivided, and each part is evaluated by the fit on the others. Rows of a unit count as fewer rows as far
as their residuals are alike. Log loss is a proper score: no method gains by probabilities that it does not believe.
Isotonic regression takes part from 100 effective rows of the rarer class, beta from 30; below 10 it is Platt's without
a choice.

Where rows come in **periods**, their level may move. Then the rows of all periods give the shape, and the level is that
expected next, an average in which recent periods count more if the levels differ (see `periods`). The calibration is
evaluated on the rows of the last period, with the calibration that is fitted on those before it.

Another **prevalence** π' multiplies the odds by (π' / (1 − π')) · ((1 − π) / π): the densities of the score within each
class are the same, as long as only the share of the classes changes (Saerens, Latinne & Decaestecker).

References
----------
Platt, "Probabilistic outputs for support vector machines", Advances in Large Margin Classifiers (1999).
Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support vector machines", Machine Learning 68 (2007).
Kull, Silva Filho & Flach, "Beyond sigmoids: how to obtain well-calibrated probabilities from binary classifiers with
beta calibration", Electronic Journal of Statistics 11 (2017).
Saerens, Latinne & Decaestecker, "Adjusting the outputs of a classifier to new a priori probabilities: a simple
procedure", Neural Computation 14 (2002).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.parameters import check_seed, check_value
from core.base.target import as_numbers
from core.errors import InvalidData, InvalidParameter
from core.metrics.estimates import Interval
from core.metrics.groups import (
    EvaluatedRows,
    FloatArray,
    check_probabilities,
    check_rows,
    effective_units,
)
from core.metrics.logistic import log_odds, minimise_log_loss
from core.metrics.window import check_prevalence
from core.probability.isotonic import ScoreMasses, masses_of, smoothed_isotonic
from core.probability.periods import Periods, at_forecast, levels_of, number_periods

Method = Literal["platt", "beta", "isotonic"]
METHODS: tuple[Method, ...] = ("platt", "beta", "isotonic")
"""The methods, the simplest first: among equals it is chosen."""

MIN_ROWS: Mapping[str, float] = {"platt": 0.0, "beta": 30.0, "isotonic": 100.0}
"""Effective rows of the rarer class that a method needs to be compared."""

MIN_ROWS_OF_CHOICE = 10.0
"""Effective rows of the rarer class below which no methods are compared."""

N_FOLDS = 5
MAX_ROWS_OF_CHOICE = 100_000
"""Rows that the folds divide: of more rows a stratified sample, since the losses no longer change."""

_MAX_CELLS = 1 << 15  # distinct scores of a parametric fit
_MAX_Z = 1e6
_MAX_LOG_ODDS = 36.0  # beyond it a probability would round to 1
_MAX_DOUBLE = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibration: a non-decreasing map from scores to probabilities.

    `fit_calibration` and `choose_calibration` make one.

    Examples
    --------
    >>> from core.probability import Calibration
    >>> calibration = Calibration("isotonic", [0.0, 2.0, 0.1, 0.7], prevalence=0.3)
    >>> calibration.probability([-1.0, 1.0, 5.0]).tolist()
    [0.1, 0.4, 0.7]
    """

    method: Method
    """Kind of map."""
    parameters: FloatArray
    """Platt and beta, shape (5,): centre and scale of the scores, slope a below the centre and b above it (equal for
    Platt), and c. Isotonic, shape (2 · n_knots,): the scores of the knots, then the probabilities there."""
    prevalence: float
    """Weighted fraction of positives among the rows that it was fitted on. In (0, 1)."""

    def __post_init__(self) -> None:
        values = np.asarray(self.parameters, dtype=np.float64).view()
        values.flags.writeable = False
        object.__setattr__(self, "parameters", values)
        if self.method not in METHODS:
            raise InvalidData(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        if values.ndim != 1 or not np.all(np.isfinite(values)):
            raise InvalidData("the parameters of a calibration must be a vector of finite numbers")
        if self.method == "isotonic":
            scores, heights = np.split(values, 2) if values.size % 2 == 0 else (values, values[:0])
            rising = scores.size == heights.size > 0 and np.all(scores[1:] > scores[:-1])
            if not (rising and np.all(np.diff(heights) >= 0)):
                raise InvalidData(
                    "the knots of a calibration must increase, and their values must not decrease"
                )
            if not np.all((heights > 0.0) & (heights < 1.0)):
                raise InvalidData(
                    "the probabilities of a calibration must be strictly between 0 and 1"
                )
        elif values.size != 5 or values[1] <= 0.0 or values[2] < 0.0 or values[3] < 0.0:
            raise InvalidData(
                "the parameters of a calibration must be centre, scale, two slopes and an intercept, "
                f"with a scale above 0 and no slope below 0, got {values.tolist()}"
            )
        object.__setattr__(self, "prevalence", check_prevalence(self.prevalence))

    def probability(self, scores: ArrayLike) -> FloatArray:
        """Return the probability of a positive at each score.

        Parameters
        ----------
        scores : array_like of float
            Scores of the ranker.

        Returns
        -------
        ndarray of float64, the shape of `scores`
            Probabilities in (0, 1). O(log n_knots) each.
        """
        values = np.asarray(scores, dtype=np.float64)
        if self.method != "isotonic":
            return self._parametric(values)
        knots, heights, slopes = self._knots
        at = np.searchsorted(knots, values, side="right") - 1
        inside = np.clip(at, 0, max(knots.size - 2, 0))
        with np.errstate(over="ignore"):
            beyond = np.clip(values - knots[inside], -_MAX_DOUBLE, _MAX_DOUBLE)
            found = heights[inside] + slopes[inside] * beyond
        np.minimum(found, heights[np.minimum(inside + 1, knots.size - 1)], out=found)
        return np.where(at < 0, heights[0], np.where(at >= knots.size - 1, heights[-1], found))

    def probability_of(self, score: float) -> float:
        """Return the probability at one score; faster than `probability` for a single score.

        Parameters
        ----------
        score : float
            Score of the ranker.

        Returns
        -------
        float
        """
        if self.method != "isotonic":
            return self._parametric_of(score)
        knots, heights, slopes = self._lists
        at = bisect_right(knots, score) - 1
        if at < 0:
            return heights[0]
        if at >= len(knots) - 1:
            return heights[-1]
        beyond = min(score - knots[at], _MAX_DOUBLE)
        return min(heights[at] + slopes[at] * beyond, heights[at + 1])

    def _parametric(self, scores: FloatArray) -> FloatArray:
        centre, scale, below, above, intercept = self.parameters
        z = _standardised(scores, centre, scale)
        if below == above:
            return _sigmoid(below * z + intercept)
        line = above * np.maximum(z, 0.0) + below * np.minimum(z, 0.0)
        return _sigmoid(line + (above - below) * _gap_to_asymptotes(z) + intercept)

    def _parametric_of(self, score: float) -> float:
        """Return `_parametric` of a single score, faster; the result has the same bits."""
        centre, scale, below, above, intercept = self._coefficients
        z = min(max((score - centre) / scale, -_MAX_Z), _MAX_Z)
        if below == above:
            odds = below * z + intercept
        else:
            gap = float(np.log1p(np.exp(-abs(z))))
            line = above * max(z, 0.0) + below * min(z, 0.0)
            odds = line + (above - below) * gap + intercept
        part = float(np.exp(-min(abs(odds), _MAX_LOG_ODDS)))
        return (1.0 if odds >= 0.0 else part) / (1.0 + part)

    @cached_property
    def _coefficients(self) -> list[float]:
        coefficients: list[float] = self.parameters.tolist()
        return coefficients

    @cached_property
    def _knots(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        knots, heights = np.split(self.parameters, 2)
        if knots.size == 1:
            return knots, heights, np.zeros(1)
        with np.errstate(
            over="ignore"
        ):  # knots may be next to each other, or as far apart as doubles are
            slopes = np.diff(heights) / np.minimum(np.diff(knots), _MAX_DOUBLE)
        return knots, heights, np.minimum(slopes, _MAX_DOUBLE)

    @cached_property
    def _lists(self) -> tuple[array[float], array[float], array[float]]:
        knots, heights, slopes = self._knots
        return array("d", knots.tolist()), array("d", heights.tolist()), array("d", slopes.tolist())


def _standardised(scores: FloatArray, centre: float, scale: float) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.clip((scores - centre) / scale, -_MAX_Z, _MAX_Z)


def _gap_to_asymptotes(z: FloatArray) -> FloatArray:
    """Return log(1 + e^−|z|), the distance of ln σ(z) from the nearer of its asymptotes."""
    return np.log1p(np.exp(-np.abs(z)))


def _sigmoid(log_odds: FloatArray) -> FloatArray:
    part = np.exp(-np.minimum(np.abs(log_odds), _MAX_LOG_ODDS))
    return np.where(log_odds >= 0.0, 1.0, part) / (1.0 + part)


def at_prevalence(probability: ArrayLike, learnt: float, prevalence: float) -> FloatArray:
    """Convert probabilities to another prevalence of positives by Bayes' rule; 0 and 1 do not change.

    Use it if the fraction of positives differs between training data and application.

    Parameters
    ----------
    probability : array_like of float in [0, 1]
        Probabilities for rows of which a fraction `learnt` is positive.
    learnt, prevalence : float in (0, 1)
        The old and the new fraction of positives.

    Returns
    -------
    ndarray of float64, the shape of `probability`

    Examples
    --------
    >>> from core.probability import at_prevalence
    >>> at_prevalence([0.0, 0.5, 1.0], learnt=0.5, prevalence=0.1).tolist()
    [0.0, 0.1, 1.0]
    """
    learnt, prevalence = check_prevalence(learnt, "learnt"), check_prevalence(prevalence)
    values = as_numbers("probability", probability)
    check_probabilities(np.ravel(values))
    positive = values * (prevalence / learnt)
    negative = (1.0 - values) * ((1.0 - prevalence) / (1.0 - learnt))
    return np.asarray(positive / (positive + negative))


def fit_calibration(
    y: ArrayLike,
    scores: ArrayLike,
    method: Method,
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> Calibration:
    """Fit a calibration of a given method on held-out rows.

    `choose_calibration` also chooses the method.

    Parameters
    ----------
    y, sample_weight
        As for `core.metrics.auc`.
    scores : array_like of float, shape (n_samples,)
        Finite scores of rows that the ranker was not fitted on.
    method : {"platt", "beta", "isotonic"}
        Kind of map.
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together, such as several rows of one patient. They count as fewer rows.

    Returns
    -------
    Calibration
        The fitted map. O(n log n).

    Examples
    --------
    >>> from core.probability import fit_calibration
    >>> calibration = fit_calibration([0, 0, 1, 0, 1, 1], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "platt")
    >>> calibration.probability([1.0, 3.5, 6.0]).round(3).tolist()
    [0.208, 0.5, 0.792]
    """
    check_value("method", str, method)
    if method not in METHODS:
        raise InvalidParameter(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    effective = _effective_rows(rows)
    return _fit(masses_of(rows, effective), method, effective)


class HeldOutProbabilities(NamedTuple):
    """Rows with probabilities by calibrations of the chosen method that were fitted on other rows.

    The calibrations were fitted on other rows: the other folds, or the earlier periods if `later`.
    """

    y: NDArray[np.bool_]
    probability: FloatArray
    weight: FloatArray | None
    group: NDArray[np.intp] | None
    later: bool


class ChosenCalibration(NamedTuple):
    """A calibration and the log losses by which its method was chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from core.probability import choose_calibration
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=400)
    >>> chosen = choose_calibration(scores > rng.normal(size=400), scores)
    >>> chosen.calibration.method, sorted(chosen.log_loss)
    ('platt', ['beta', 'isotonic', 'platt'])
    """

    calibration: Calibration
    """The calibration, fitted on all rows."""
    log_loss: dict[str, float]
    """Mean log loss of each compared method on held-out folds; empty if there were too few rows to compare."""
    masses: ScoreMasses
    """The rows that it was fitted on, by score."""
    held_out: HeldOutProbabilities | None
    """Held-out probabilities, to evaluate the calibration; None if there were too few rows."""
    periods: Periods | None
    """Level of each period relative to that of the calibration; None without periods, or with too few rows."""


def choose_calibration(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    period: ArrayLike | None = None,
    random_state: int = 0,
    masses: ScoreMasses | None = None,
) -> ChosenCalibration:
    """Choose and fit the calibration with the lowest log loss on held-out folds.

    Parameters
    ----------
    y, scores, sample_weight, group
        As for `fit_calibration`.
    period : array_like of float, shape (n_samples,), optional
        Period of each row; a later one is greater. At most 100 distinct values, such as months, not time stamps.
    random_state : int
        Seed of the folds.
    masses : ScoreMasses, optional
        The rows by score, if you have them (`isotonic.cells_of`); nothing is sorted then. They exclude periods.

    Returns
    -------
    ChosenCalibration
        The calibration and how it was chosen. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from core.probability import choose_calibration
    >>> generator = np.random.default_rng(0)
    >>> y = generator.random(2000) < 0.2
    >>> scores = y + generator.normal(size=2000)
    >>> chosen = choose_calibration(y, scores)
    >>> chosen.calibration.method, sorted(chosen.log_loss)
    ('platt', ['beta', 'isotonic', 'platt'])
    """
    check_value("masses", ScoreMasses | None, masses)
    seed = check_seed(random_state)
    if period is None:
        rows = check_rows(y, {"scores": scores}, sample_weight, group)
        return _choose(rows, seed, masses)
    if masses is not None:
        raise InvalidParameter("masses must be None with period: they do not have the periods")
    every = check_rows(y, {"scores": scores, "period": period}, sample_weight, group)
    rows = every._replace(scores=every.scores[:1])
    number = number_periods(every.scores[1])
    levelled, periods = _at_next_level(rows, number)
    chosen = _choose(levelled, seed, None)._replace(periods=periods)
    if periods is not None and chosen.held_out is not None:
        latest = _evaluate_on_latest(rows, number, chosen.calibration.method)
        chosen = chosen._replace(held_out=latest or chosen.held_out)
    return chosen


def _choose(rows: EvaluatedRows, seed: int, masses: ScoreMasses | None) -> ChosenCalibration:
    effective = _effective_rows(rows)
    masses = masses_of(rows, effective) if masses is None else masses
    if min(effective) < MIN_ROWS_OF_CHOICE:
        return ChosenCalibration(_fit(masses, METHODS[0], effective), {}, masses, None, None)
    methods = [method for method in METHODS if min(effective) >= MIN_ROWS[method]]
    generator = np.random.default_rng(seed)
    sample = _sample(rows, generator)
    found = _out_of_fold(sample, methods, generator)
    if found is None:
        return ChosenCalibration(_fit(masses, METHODS[0], effective), {}, masses, None, None)
    weight = np.ones(sample.positive.size) if sample.weight is None else sample.weight
    losses: dict[str, float] = {}
    for method, p in found.items():
        of_row = -np.log(np.where(sample.positive, p, 1.0 - p))
        losses[method] = float(np.einsum("i,i->", weight, of_row) / weight.sum())
    best = min(methods, key=losses.__getitem__)
    held_out = HeldOutProbabilities(
        sample.positive, found[best], sample.weight, sample.unit, later=False
    )
    return ChosenCalibration(_fit(masses, best, effective), losses, masses, held_out, None)


def _at_next_level(
    rows: EvaluatedRows, period: NDArray[np.intp]
) -> tuple[EvaluatedRows, Periods | None]:
    effective = _effective_rows(rows)
    if min(effective) < MIN_ROWS_OF_CHOICE:
        return rows, None
    pooled = _fit(masses_of(rows, effective), METHODS[0], effective)
    odds = log_odds(pooled.probability(rows.scores[0]))
    found = levels_of(rows, odds, period)
    if found is None:
        return rows, None
    levels = [Interval(*(end - found.forecast for end in level)) for level in found.levels]
    relative = found._replace(levels=levels, forecast=0.0)
    if found.step == 0.0:
        return rows, relative
    return at_forecast(rows, period, np.array([level.value for level in levels])), relative


def _evaluate_on_latest(
    rows: EvaluatedRows, period: NDArray[np.intp], method: Method
) -> HeldOutProbabilities | None:
    """Return the last period with probabilities from a calibration of earlier ones; None with too few rows."""
    last = period == period.max()
    earlier, latest = rows.take(~last), rows.take(last)
    for part in (earlier, latest):
        if min(effective_units(part)) < MIN_ROWS_OF_CHOICE:
            return None
    earlier, _ = _at_next_level(earlier, np.unique(period[~last], return_inverse=True)[1])
    effective = _effective_rows(earlier)
    fitted = _fit(masses_of(earlier, effective), method, effective)
    probability = fitted.probability(latest.scores[0])
    return HeldOutProbabilities(
        latest.positive, probability, latest.weight, latest.unit, later=True
    )


def _out_of_fold(
    rows: EvaluatedRows, methods: Sequence[Method], generator: np.random.Generator
) -> dict[Method, FloatArray] | None:
    """Return each row's probability by each method, fitted on the other folds; None if a class is missing there."""
    fold = _folds(rows, generator)
    (scores,) = rows.scores
    found = {method: np.empty(scores.size) for method in methods}
    for number in range(N_FOLDS):
        out = fold == number
        learning = rows.take(~out)
        n_learning = np.count_nonzero(learning.positive)
        if n_learning in (0, learning.positive.size):
            return None
        try:
            effective = _effective_rows(learning)
            masses = masses_of(learning, effective)
        except InvalidData:  # next to no weight is left to a class
            return None
        for method in methods:
            found[method][out] = _fit(masses, method, effective).probability(scores[out])
    return found


def _sample(rows: EvaluatedRows, generator: np.random.Generator) -> EvaluatedRows:
    n = rows.positive.size
    if n <= MAX_ROWS_OF_CHOICE:
        return rows
    drawn = []
    for of_class in (np.flatnonzero(rows.positive), np.flatnonzero(~rows.positive)):
        size = round(MAX_ROWS_OF_CHOICE * of_class.size / n)
        drawn.append(np.sort(generator.permutation(of_class)[: max(size, 1)]))
    return rows.take(np.sort(np.concatenate(drawn)))


def _folds(rows: EvaluatedRows, generator: np.random.Generator) -> NDArray[np.intp]:
    """Return the random fold of each row; rows of a group share one, and positives are spread evenly."""
    positive = rows.positive
    if rows.unit is not None:
        positive = np.bincount(rows.unit, rows.positive) > 0
    order = generator.permutation(positive.size)
    order = order[np.argsort(~positive[order], kind="stable")]
    fold = np.empty(positive.size, dtype=np.intp)
    fold[order] = np.arange(positive.size) % N_FOLDS
    return fold if rows.unit is None else fold[rows.unit]


def _effective_rows(rows: EvaluatedRows) -> tuple[float, float]:
    """Return the effective numbers of positives and negatives, reduced for correlation within units (groups).

    A unit of copies counts as one row, and a unit whose rows differ by chance alone as all of its rows. The design
    effect tells which: the variance of a sum of residuals by unit, divided by what it would be if all rows were drawn
    alone (Kish, Survey Sampling, 1965). The residuals are those of Platt's fit.
    """
    alone = rows._replace(unit=None)
    by_row = effective_units(alone)
    if rows.unit is None:
        return by_row
    (scores,) = rows.scores
    residuals = rows.positive - _fit(masses_of(alone), METHODS[0], by_row).probability(scores)
    if rows.weight is not None:
        residuals *= rows.weight / rows.weight.max()  # so that no square underflows in all rows
    own = float(np.square(residuals).sum())
    of_units = float(np.square(np.bincount(rows.unit, residuals)).sum())
    design_effect = of_units / own if own > 0.0 else 1.0
    positives, negatives = (
        min(max(n_rows / design_effect, n_units), n_rows)
        for n_rows, n_units in zip(by_row, effective_units(rows), strict=True)
    )
    return positives, negatives


def _fit(masses: ScoreMasses, method: Method, effective: tuple[float, float]) -> Calibration:
    prevalence = float(masses.positive.sum() / masses.mass.sum())
    if method == "isotonic":
        fitted = smoothed_isotonic(masses)
        return Calibration(method, np.append(fitted.scores, fitted.values), prevalence)
    centre, scale = _centre_and_scale(masses)
    n_positives, n_negatives = effective
    high, low = (n_positives + 1.0) / (n_positives + 2.0), 1.0 / (n_negatives + 2.0)
    z, mass, positive = _cells(masses, centre, scale)
    target = high * positive + low * (mass - positive)
    if method == "platt":
        features = z[np.newaxis]
        candidates = [((0, 0), features)]
    else:
        gap = _gap_to_asymptotes(z)
        below, above = np.minimum(z, 0.0) - gap, np.maximum(z, 0.0) + gap
        # The loss is convex: if a slope is below 0 at its minimum, the best without it is one of the others.
        candidates = [
            ((0, 1), np.stack((below, above))),
            ((0, -1), below[np.newaxis]),
            ((-1, 0), above[np.newaxis]),
        ]
    best, least = np.zeros(3), math.inf
    for places, features in [*candidates, ((-1, -1), np.empty((0, z.size)))]:
        loss, theta, _ = minimise_log_loss(np.ascontiguousarray(features), mass, target)
        slopes = [theta[place] if place >= 0 else 0.0 for place in places]
        if min(slopes) >= 0.0 and loss < least:
            best, least = np.array([*slopes, theta[-1]]), loss
            if places[0] >= 0 and places[1] >= 0:
                break
    return Calibration(method, np.array([centre, scale, *best]), prevalence)


def _centre_and_scale(masses: ScoreMasses) -> tuple[float, float]:
    """Return a centre (between the class medians) and a scale (half an inner range; of equal scores 1)."""
    negative = masses.mass - masses.positive
    medians = [_quantiles(masses.scores, mass, 0.5)[0] for mass in (masses.positive, negative)]
    low, high = _quantiles(masses.scores, masses.mass, 0.1, 0.9)
    scale = (high / 2.0 - low / 2.0) or (masses.scores[-1] / 2.0 - masses.scores[0] / 2.0) or 1.0
    return float(medians[0] / 2.0 + medians[1] / 2.0), float(max(scale, np.finfo(np.float64).tiny))


def _quantiles(scores: FloatArray, mass: FloatArray, *levels: float) -> FloatArray:
    sums = np.cumsum(mass)
    at = np.searchsorted(sums, np.array(levels) * sums[-1], side="left")
    found: FloatArray = scores[np.minimum(at, scores.size - 1)]
    return found


def _cells(
    masses: ScoreMasses, centre: float, scale: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return standardised score, weight and positive weight of at most `_MAX_CELLS` groups of neighbouring scores."""
    cells = masses.in_cells(_MAX_CELLS)
    return _standardised(cells.scores, centre, scale), cells.mass, cells.positive
