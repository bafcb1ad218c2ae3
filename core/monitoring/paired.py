"""Challenger in shadow: two models on the same rows, compared after every period without inflating the error rate.

In each period both models score the same rows. With D_i the difference of a metric in test i (challenger less
champion), V_i its variance from the paired influences (errors that both have in common cancel), and the weights w_i the
metric's effective trials,

    D = Σ w_i D_i / W,   W = Σ w_i,   Q = Σ w_i w_k C_ik,

and with probability 1 − α for all tests at once, as the rows per test grow, D is within

    √((Q + ρ²) log((Q + ρ²) / (α² ρ²))) / W

of the mean difference so far: Robbins's normal mixture, as an asymptotic confidence sequence (Waudby-Smith, Arbour,
Sinha, Kennedy & Ramdas 2024, theorem 2.2). You may stop as soon as one model is better or both
are equivalent up to the tolerance. ρ sets where the sequence is narrowest: where its half-width is the tolerance, by
the variance of the first test.

C_ik is the covariance of two tests by the entities (customers) that both have, see `recurrence`, and C_ii is V_i. With
recurring entities the differences of tests are positively correlated. The sum then has the variance Q of the theorem,
and its correlations in time are at least as large as with independent tests, so it leaves the limits at most as often
(Slepian 1962).

**Assumptions.** Rows are independent except those of the same entity. The difference describes the rows with outcomes.
If only rows that the champion flags are reviewed, rows that only the challenger flags have outcomes only if they were
explored; then pass the weights 1 / propensity.

References
----------
Slepian, "The one-sided barrier problem for Gaussian noise", Bell System Technical Journal 41 (1962).
Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41
(1970).
Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences",
Annals of Statistics 52 (2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import lambertw

from core.base.parameters import check_items, check_value
from core.base.target import as_array
from core.errors import InvalidParameter
from core.metrics.functionals.base import Metric, metric_of
from core.metrics.groups import (
    EvaluatedRows,
    check_rows,
    check_weights,
    finite_vector,
    inner,
)
from core.metrics.measuring import estimate_metrics
from core.monitoring.measuring import (
    check_alpha,
    check_booleans,
    column,
    entity_numbers,
    rows_by_test,
)
from core.monitoring.recurrence import check_sketch, covariance_factor, sketch_of

_MOST = 1e15  # further rows: more is "never"


@dataclass(frozen=True)
class PairedTest:
    """The comparison of two models after an interim test.

    Attributes
    ----------
    rows, positives : int
        Rows so far, and positives among them.
    difference, low, high : float
        The challenger's metric minus the champion's, over all rows so far, with limits that hold for all tests at once.

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import compare_by_period
    >>> y = np.repeat([0, 1], [900, 100])
    >>> compare_by_period(y, y, y, np.ones(1000))[0].difference
    0.0
    """

    period: int
    """Last period of the interim test, from 1."""
    rows: int
    positives: int
    difference: float
    low: float
    high: float
    winner: Literal["challenger", "champion"] | None
    """The better model, if the limits exclude 0."""
    equivalent: bool
    """Whether the limits are within the tolerance."""
    further_rows: int | None
    """Rows with outcomes that are still needed until the half-width of the limits is the tolerance; 0 if there is a
    winner or the models are equivalent. None if that is out of reach."""


def compare_by_period(
    y: ArrayLike,
    champion: ArrayLike,
    challenger: ArrayLike,
    period: ArrayLike,
    metric: str | Metric = "auc",
    *,
    tolerance: float = 0.01,
    alpha: float = 0.05,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> list[PairedTest]:
    """Compare two models on the same rows after each period; the limits hold for any number of tests.

    Periods with fewer than 50 positives or negatives are merged with the next.

    Parameters
    ----------
    y, period, sample_weight, group
        As for `measure_periods`.
    champion, challenger : array_like of float, shape (n_samples,)
        Finite scores of both models.
    metric : str or Metric
        Such as "auc", "pauc:0,0.05" or "precision@1%".
    tolerance : float > 0
        Difference that does not matter.
    alpha : float in (0, 0.5)
        Probability that any of the limits is wrong, and so of a false winner.

    Returns
    -------
    list of PairedTest
        One per interim test, in the order of time. O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import compare_by_period
    >>> rng = np.random.default_rng(0)
    >>> y, noise = rng.random(20_000) < 0.1, rng.normal(size=(2, 20_000))
    >>> scores = [y + noise[0], 1.3 * y + 0.8 * noise[0] + 0.6 * noise[1]]
    >>> tests = compare_by_period(y, *scores, np.repeat(np.arange(1, 11), 2000))
    >>> tests[-1].winner, round(tests[-1].difference, 2)
    ('challenger', 0.06)
    """
    check_value("tolerance", Real, tolerance)
    check_alpha(alpha)
    if not 0.0 < tolerance < math.inf:
        raise InvalidParameter(f"tolerance must be positive and finite, got {tolerance}")
    chosen = metric_of(metric)
    tests = rows_by_test(
        y,
        {"champion": champion, "challenger": challenger},
        period,
        sample_weight=sample_weight,
        group=group,
    )
    measured = [_measured(rows, chosen, last, entity) for _, last, rows, entity in tests]
    return compare_measurements(measured, tolerance=tolerance, alpha=alpha)


@dataclass(frozen=True)
class PairedMeasurement:
    """The difference of two models on the rows of one interim test. Store it instead of the rows.

    Attributes
    ----------
    rows, positives : int
        Rows of the interim test, and positives among them.

    Examples
    --------
    >>> from core.monitoring import measure_pair
    >>> measure_pair([1, 0, 1, 0], [4, 3, 2, 1], [4, 2, 3, 1], last=1).difference
    0.25
    """

    last: int
    """Last period of the interim test."""
    difference: float
    """The challenger's metric minus the champion's."""
    variance: float
    """Sampling variance of the difference. At least 0."""
    trials: float
    """The metric's effective trials, its weight. Above 0."""
    rows: int
    positives: int
    by_entity: bytes = b""
    """The sketch of the influences by entity; see `Measurement`."""

    def __post_init__(self) -> None:
        check_value("difference", float, self.difference)
        for name, least in (("last", 1), ("rows", 1), ("positives", 0)):
            if check_value(name, int, getattr(self, name)) < least:
                raise InvalidParameter(
                    f"{name} must be at least {least}, got {getattr(self, name)}"
                )
        if not 0.0 <= check_value("variance", Real, self.variance) < math.inf:
            raise InvalidParameter(f"variance must be finite and not negative, got {self.variance}")
        if not 0.0 < check_value("trials", Real, self.trials) < math.inf:
            raise InvalidParameter(f"trials must be positive and finite, got {self.trials}")
        check_sketch("by_entity", check_value("by_entity", bytes, self.by_entity))


def measure_pair(
    y: ArrayLike,
    champion: ArrayLike,
    challenger: ArrayLike,
    metric: str | Metric = "auc",
    *,
    last: int,
    sample_weight: ArrayLike | None = None,
    entity: ArrayLike | None = None,
) -> PairedMeasurement:
    """Measure the difference of two models on the rows of one interim test.

    Parameters
    ----------
    y, sample_weight, entity
        As for `measure_calibration`.
    champion, challenger, metric
        As for `compare_by_period`.
    last : int
        Last period of the interim test.

    Returns
    -------
    PairedMeasurement
        The difference with its variance. O(n log n).

    Examples
    --------
    >>> from core.monitoring import measure_pair
    >>> measure_pair([1, 0, 1, 0], [4, 3, 2, 1], [4, 3, 2, 1], last=1).variance
    0.0
    """
    chosen = metric_of(metric)
    n = as_array("y", y).size
    numbers = None if entity is None else entity_numbers(entity, n)
    weight = None if sample_weight is None else check_weights(sample_weight, n)
    scores = {"champion": champion, "challenger": challenger}
    rows = check_rows(y, scores, weight, numbers)
    if numbers is not None and weight is not None:
        numbers = numbers[weight > 0.0]
    return _measured(rows, chosen, last, None if numbers is None else np.unique(numbers))


def _measured(
    rows: EvaluatedRows, chosen: Metric, last: int, entity: NDArray[np.uint64] | None
) -> PairedMeasurement:
    estimates, (masses, _) = estimate_metrics(rows, [chosen])
    difference = float(estimates.values[1, 0] - estimates.values[0, 0])
    trials, sketch = chosen.trials(masses), b""
    if estimates.influence is None:
        # the greatest that a difference of proportions has, in the units of the metric
        plain = chosen.plain()
        width = float(chosen.unit(masses) * plain.top(masses))
        variance = width**2 / trials
    else:
        parts = estimates.influence[1, 0] - estimates.influence[0, 0]
        variance = inner(parts, parts)
        sketch = b"" if entity is None else sketch_of(parts, entity)
    positives = int(np.count_nonzero(rows.positive))
    size = rows.positive.size
    return PairedMeasurement(last, difference, variance, trials, size, positives, sketch)


def compare_measurements(
    tests: Sequence[PairedMeasurement], *, tolerance: float = 0.01, alpha: float = 0.05
) -> list[PairedTest]:
    """Compare two models by the differences of their interim tests; see `compare_by_period`.

    Parameters
    ----------
    tests : sequence of PairedMeasurement
        In the order of time.
    tolerance, alpha
        As for `compare_by_period`.

    Returns
    -------
    list of PairedTest

    Examples
    --------
    >>> from core.monitoring import compare_measurements
    >>> compare_measurements([])
    []
    """
    tests = check_items("tests", tests, PairedMeasurement)
    for one, other in pairwise(tests):
        if other.last <= one.last:
            raise InvalidParameter(
                f"tests must be in the order of time, got last {other.last} after {one.last}"
            )
    check_value("tolerance", Real, tolerance)
    check_alpha(alpha)
    if not 0.0 < tolerance < math.inf:
        raise InvalidParameter(f"tolerance must be positive and finite, got {tolerance}")
    sequence: _Sequence | None = None
    found: list[PairedTest] = []
    rows = positives = 0
    weights = np.array([each.trials for each in tests])
    variances = np.array([each.variance for each in tests])
    factor = covariance_factor([each.by_entity for each in tests], variances)
    sums = np.cumsum(weights[:, np.newaxis] * factor, axis=0)
    # Each from its own columns only: later tests must not change a bit of it.
    spreads = np.array([np.square(row[: t + 1]).sum() for t, row in enumerate(sums)])
    for each, spread in zip(tests, np.maximum.accumulate(spreads).tolist(), strict=True):
        if sequence is None:
            sequence = _Sequence.of(each.trials * each.variance, each.trials, tolerance, alpha)
        sequence.add(each.trials, each.difference, spread)
        rows, positives = rows + each.rows, positives + each.positives
        found.append(_test(sequence, each.last, rows, positives))
    return found


@dataclass
class _Sequence:
    rho2: float
    alpha: float
    tolerance: float
    weight: float = 0.0
    total: float = 0.0
    spread: float = 0.0

    @classmethod
    def of(cls, unit: float, trials: float, tolerance: float, alpha: float) -> _Sequence:
        """Return a confidence sequence without tests, tuned to be narrowest when its half-width is the tolerance.

        `unit` is the variance of a difference of one trial, estimated at the first test. A rough `unit` only makes the
        limits wider: they are valid for any ρ.
        """
        unit = max(unit, trials * (tolerance / 10.0) ** 2)
        # Q / ρ² at which the sequence is narrowest (Waudby-Smith et al. 2024, appendix).
        ratio = float(-lambertw(-(alpha**2) / math.e, k=-1).real) - 1.0
        square = (1.0 + 1.0 / ratio) * math.log((1.0 + ratio) / alpha**2)
        return cls((unit / tolerance) ** 2 * square / ratio, alpha, tolerance)

    def add(self, trials: float, difference: float, spread: float) -> None:
        self.weight += trials
        self.total += trials * difference
        self.spread = spread

    def half_width(self, factor: float = 1.0) -> float:
        """Return the half-width, now or with `factor` times as many rows of the same kind."""
        q = self.spread * factor + self.rho2
        return math.sqrt(q * math.log(q / (self.alpha**2 * self.rho2))) / (self.weight * factor)

    def factor_needed(self) -> float | None:
        """Return the factor of rows at which the half-width is the tolerance; None if out of reach."""
        low = high = 0.0  # logarithms
        while self.half_width(math.exp(high)) > self.tolerance:
            low, high = high, high + 1.0
            if high > math.log(_MOST):
                return None
        for _ in range(50):
            middle = (low + high) / 2.0
            if self.half_width(math.exp(middle)) > self.tolerance:
                low = middle
            else:
                high = middle
        return math.exp(high)


def _test(sequence: _Sequence, period: int, rows: int, positives: int) -> PairedTest:
    difference, half = sequence.total / sequence.weight, sequence.half_width()
    low, high = difference - half, difference + half
    winner: Literal["challenger", "champion"] | None = None
    if low > 0.0 or high < 0.0:
        winner = "challenger" if low > 0.0 else "champion"
    equivalent = -sequence.tolerance < low and high < sequence.tolerance
    further: int | None = 0
    if winner is None and not equivalent:
        factor = sequence.factor_needed()
        further = None if factor is None else math.ceil(rows * (factor - 1.0))
    return PairedTest(period, rows, positives, difference, low, high, winner, equivalent, further)


@dataclass(frozen=True)
class SwapCell:
    """The rows that two models flag in the same way.

    Examples
    --------
    >>> from core.monitoring import swap_set
    >>> swap_set([1, 0], [1, 1], [1, 0], [1, 0]).challenger_only
    SwapCell(rows=1, known=0, positives=0)
    """

    rows: float
    """All rows, or their weight."""
    known: float
    """Those whose outcome is known."""
    positives: float
    """The positive ones among these."""


@dataclass(frozen=True)
class SwapSet:
    """Which rows a change of models would newly flag, and no longer flag.

    Attributes
    ----------
    both, champion_only, challenger_only, neither : SwapCell
        Rows that both models flag, one of them, or none.

    Examples
    --------
    >>> from core.monitoring import swap_set
    >>> swap_set([1, 1, 0], [1, 0, 1], [1, 0, 1], [1, 1, 1]).both.positives
    1
    """

    both: SwapCell
    champion_only: SwapCell
    challenger_only: SwapCell
    neither: SwapCell


def swap_set(
    champion_flag: ArrayLike,
    challenger_flag: ArrayLike,
    positive: ArrayLike,
    known: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
) -> SwapSet:
    """Count the rows on which two models agree and differ, with their outcomes.

    If only rows that the champion flags are reviewed, outcomes of the rows that only the challenger flags are missing
    or a selection: compare rates only among explored rows.

    Parameters
    ----------
    champion_flag, challenger_flag : array_like of bool, shape (n_samples,)
        Whether each model flags the row.
    positive : array_like of bool, shape (n_samples,)
        Whether the outcome is positive; any value where it is not known.
    known : array_like of bool, shape (n_samples,)
        Whether the outcome is known.
    sample_weight : array_like of float, shape (n_samples,), optional
        Number of rows that each one stands for, such as 1 / keep of a sampled decision.

    Returns
    -------
    SwapSet

    Examples
    --------
    >>> from core.monitoring import swap_set
    >>> found = swap_set([1, 1, 0, 0], [1, 0, 1, 0], positive=[1, 0, 1, 0], known=[1, 1, 1, 0])
    >>> found.challenger_only
    SwapCell(rows=1, known=1, positives=1)
    """
    first = finite_vector("champion_flag", champion_flag)
    old = check_booleans("champion_flag", first)
    new, y, seen = (
        check_booleans(name, column(name, values, "champion_flag", old.size))
        for name, values in (
            ("challenger_flag", challenger_flag),
            ("positive", positive),
            ("known", known),
        )
    )

    weight = None if sample_weight is None else check_weights(sample_weight, old.size)

    def cell(rows: NDArray[np.bool_]) -> SwapCell:
        chosen = (rows, rows & seen, rows & seen & y)
        if weight is None:
            return SwapCell(*(int(np.count_nonzero(each)) for each in chosen))
        return SwapCell(*(float(weight[each].sum()) for each in chosen))

    return SwapSet(cell(old & new), cell(old & ~new), cell(~old & new), cell(~old & ~new))
