"""Closed-end window monitor: has a metric changed since the validation, at any of the planned tests?

Tests are planned, one at the end of each period (52 weeks). Let Â be the value of the validation with the sampling
variance V, and Â_i the values of the periods with the variances V_i. The statistic of test t is the maximum over the
windows that end there,

    T_t = max_j (Â − tolerance − Â_jt) / √(V + V_jt),   Â_jt = Σ w_i Â_i / Σ w_i,   V_jt = Σ w_i w_k C_ik / (Σ w_i)²,

over i, k = j … t, at most `MAX_WINDOW` tests, the weight w_i being the rows of the scarcer class. Windows find a fall
that begins late, which a mean since the beginning dilutes (Chu, Stinchcombe & White 1996; Aue & Kirch 2024). C_ii is
V_i. The covariance C_ik of two periods comes from the entities (customers, patients) that both have, see `recurrence`:
what the model does not know about a customer is there every week, and says nothing new each time.

There is an alarm if T_t exceeds a critical value c_t. The critical values are chosen so that the probability of any
alarm, if no period is worse than the validation by more than the tolerance, is at most α in all planned tests together:

* all T_t are functions of jointly normal values: one shared draw for the validation and one for each period. They are
  simulated with the covariances of the data, `N_PATHS` times, with fixed seeds;
* c_t is the value at which the first alarm comes at test t with probability α times the part of the plan that has
  passed since the last test (Lan & DeMets 1983, for group-sequential trials). So c_t depends on the past only: later
  periods, or periods with other numbers of rows, do not change an earlier answer. With equal periods c_t hardly varies.

Since the maxima are simulated for values minus their means, the limits Â − Â_jt ± c_t √(V + V_jt) hold for all windows
of all tests at once, with probability 1 − 2 α at least, and the lower one with 1 − α; so they also hold for the window
that raised the alarm, though it was chosen.

V_i is the variance of the test, but at least the variance of its effective trials at the value under H₀, as in Wilson's
interval. Where partial areas are below .5, low values come with small variances: without this, tests at 55 positives
over [0, .05] had 16 % of false alarms at α = .05.

With few entities their variances are themselves uncertain: from the first test with entities on, c_t is Student's
quantile for the entities of the scarcer class in the smallest test so far.

**Assumptions.** Rows are independent except those of the same entity, the validation is a sample of the same
population, and values are normal: at least `MIN_POSITIVES` rows (entities) of each class in a test. Effects that are
common to the rows of a week add a variance that one stream does not show: declare a tolerance.

References
----------
Aue & Kirch, "The state of cumulative sum sequential changepoint testing 70 years after Page", Biometrika 111 (2024).
Chu, Stinchcombe & White, "Monitoring structural change", Econometrica 64 (1996).
Lan & DeMets, "Discrete sequential boundaries for clinical trials", Biometrika 70 (1983).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from statistics import NormalDist
from typing import Literal

import numba
import numpy as np
from numpy.typing import NDArray

from core.base.parameters import check_items, check_value
from core.errors import InvalidData, InvalidParameter
from core.kernels import kernel
from core.metrics.groups import FloatArray
from core.metrics.window import check_prevalence, check_rate
from core.monitoring.measuring import MIN_POSITIVES, Measurement, check_alpha, check_plan
from core.monitoring.recurrence import covariance_factor

N_PATHS = 1 << 16
"""Simulated paths. With so many, the probability of a false alarm is α ± 3.5 % of α (α = .02: ± .0007)."""

PLANNING_PATHS = 1 << 13
"""The same for the smallest detectable fall, which needs only two digits."""

MAX_WINDOW = 100
"""Maximum number of interim tests in a window. Compared with the validation, their mean is nearly exact."""

RANKING_ALPHA = 0.02
"""The share of the ranking in a budget of .05; see `budget`."""

_SEED = 7023
_STEPS_TO_DROP = 3  # until the variance at the fall and the fall agree
_ROUNDING = 1e-9


@dataclass(frozen=True)
class WindowTest:
    """The result of one interim test.

    Attributes
    ----------
    first, last : int
        The periods of the window with the greatest standardised fall.
    drop, drop_low, drop_high : float
        Value of the validation minus the value of the window, with limits that hold for all windows of all interim
        tests at once, with probability 1 − 2 α (1 − α for `change="shift"`). A negative drop is a rise.

    Examples
    --------
    >>> from core.monitoring import Measurement, monitor_windows
    >>> week = Measurement(0.78, 0.0003, 200, 1800, first=1, last=1)
    >>> (test,) = monitor_windows(Measurement(0.80, 0.00006, 1000, 9000), [week], planned=52).tests
    >>> test.alarm, round(test.drop, 3)
    (False, 0.02)
    """

    period: int
    """Last period of the interim test, from 1."""
    value: float
    """The metric at this interim test alone."""
    statistic: float
    """T_t, the greatest standardised fall over all windows that end here."""
    critical_value: float
    """c_t."""
    alarm: bool
    """Whether the statistic exceeds the critical value."""
    first: int
    last: int
    window_value: float
    """Mean of the metric over this window."""
    drop: float
    drop_low: float
    drop_high: float
    alpha_spent: float
    """Probability of a false alarm up to and including this interim test."""
    inflation: float = 1.0
    """Variance of the window's value over what it would be if each period had other entities; 1 without recurring
    ones."""


@dataclass(frozen=True)
class WindowMonitor:
    """The interim tests of a window monitor so far.

    Examples
    --------
    >>> from core.monitoring import Measurement, monitor_windows
    >>> monitor_windows(Measurement(0.80, 0.00006, 1000, 9000), [], planned=52)
    WindowMonitor(tests=(), alarm=None)
    """

    tests: tuple[WindowTest, ...]
    """In the order of time."""
    alarm: WindowTest | None
    """The first interim test with an alarm."""


Change = Literal["fall", "rise", "shift"]


def monitor_windows(
    validation: Measurement,
    periods: Sequence[Measurement],
    *,
    planned: int,
    alpha: float = RANKING_ALPHA,
    tolerance: float = 0.0,
    since: int = 0,
    change: Change = "fall",
) -> WindowMonitor:
    """Test after each period whether a metric has changed; one error rate covers all interim tests.

    Adding periods never changes the answers of earlier interim tests. O(planned² · n_paths): .2 s for 52 weeks and
    7 s for 365 days, .4 and 10 s if entities recur. Answers for the same input are cached.

    Parameters
    ----------
    validation : Measurement
        The reference. Its variance is that of all that was estimated there.
    periods : sequence of Measurement
        The matured interim tests, as `measure_auc` and `measure_periods` return them, each with at least 50 rows of
        both classes.
    planned : int
        Number of periods of the plan, at most 400; 52 for a year of weeks.
    alpha : float in (0, 0.5)
        Probability of any false alarm in the planned periods.
    tolerance : float >= 0
        Change of the metric up to which nothing is wrong.
    since : int
        Windows begin after this period, and the part of `alpha` that belongs to earlier periods is not spent. 0: from
        the first period.
    change : {"fall", "rise", "shift"}
        What raises an alarm: a fall or a rise of an area or a rate in [0, 1], or a shift of any value in either
        direction, for which each direction has half of `alpha`.

    Returns
    -------
    WindowMonitor
        The interim tests after `since`.

    Raises
    ------
    InvalidData
        Periods overlap, are not in order or beyond the plan, an interim test has fewer than 50 rows of a class, or a
        value that may fall or rise is not in [0, 1].

    Examples
    --------
    >>> from core.monitoring import Measurement, monitor_windows
    >>> validation = Measurement(0.80, 0.00006, positives=1000, negatives=9000)
    >>> values = [0.81, 0.80, 0.74, 0.75]
    >>> weeks = [Measurement(each, 0.0003, 200, 1800, i, i) for i, each in enumerate(values, start=1)]
    >>> alarm = monitor_windows(validation, weeks, planned=52).alarm
    >>> alarm.period, alarm.first, alarm.last, round(alarm.drop, 3)
    (4, 3, 4, 0.055)
    """
    check_value("validation", Measurement, validation)
    check_items("periods", periods, Measurement)
    planned = check_plan(planned, since)
    check_alpha(alpha)
    check_value("change", Change, change)
    if change != "shift":
        check_rate("tolerance", tolerance)
    elif not 0.0 <= check_value("tolerance", Real, tolerance) < math.inf:
        raise InvalidParameter(f"tolerance must be at least 0 and finite, got {tolerance}")
    chosen = _checked_tests(periods, planned, since)
    if change != "shift" and any(not 0.0 <= each.value <= 1.0 for each in (validation, *chosen)):
        raise InvalidData("values that may fall or rise must be in [0, 1]")
    if not chosen:
        return WindowMonitor((), None)
    left = alpha * (planned - since) / planned
    signs = {"fall": (1.0,), "rise": (-1.0,), "shift": (1.0, -1.0)}[change]
    values, weights = (
        np.array([getattr(each, name) for each in chosen]) for name in ("value", "weight")
    )
    variances = np.array([each.variance for each in chosen])
    if change != "shift":
        at = validation.value - signs[0] * tolerance
        variances = np.array([_variance_at(at, each) for each in chosen])
    errors = covariance_factor([each.by_entity for each in chosen], variances)
    critical = _for_few_entities(
        _critical_values(
            validation.variance,
            tuple(weights.tolist()),
            tuple((each.last - since) / (planned - since) for each in chosen),
            left / len(signs),
            N_PATHS,
            errors.tobytes(),
        ),
        weights,
        [bool(each.by_entity) for each in chosen],
    )
    alone = np.diag(np.sqrt(variances))
    tests = []
    for t, (each, c) in enumerate(zip(chosen, critical, strict=True)):
        mean, variance = _windows(values, weights, t, errors)
        error = np.sqrt(validation.variance + variance)
        changes = np.array([sign * (validation.value - mean) for sign in signs])
        statistics = (changes - tolerance) / error
        sign, j = np.unravel_index(int(np.argmax(statistics)), statistics.shape)
        drop, half = validation.value - float(mean[j]), c * float(error[j])
        widest = math.inf if change == "shift" else 1.0
        tests.append(
            WindowTest(
                period=each.last,
                value=each.value,
                statistic=float(statistics[sign, j]),
                critical_value=c,
                alarm=bool(statistics[sign, j] > c),
                first=chosen[_longest(t) + int(j)].first,
                last=each.last,
                window_value=float(mean[j]),
                drop=drop,
                drop_low=max(-widest, drop - half),
                drop_high=min(widest, drop + half),
                alpha_spent=left * (each.last - since) / (planned - since),
                inflation=max(1.0, float(variance[j] / _windows(values, weights, t, alone)[1][j])),
            )
        )
    return WindowMonitor(tuple(tests), next((test for test in tests if test.alarm), None))


def _for_few_entities(
    critical: Sequence[float], weights: FloatArray, by_entity: Sequence[bool]
) -> tuple[float, ...]:
    """Return critical values: normal quantiles before the first test with entities, Student's t from then on."""
    from scipy.special import ndtr, stdtrit

    degrees, has = np.minimum.accumulate(weights) - 1.0, np.logical_or.accumulate(by_entity)
    return tuple(
        -float(stdtrit(d, ndtr(-c))) if few else c
        for c, d, few in zip(critical, degrees, has, strict=True)
    )


@dataclass(frozen=True)
class DetectableDrop:
    """The smallest lasting fall that a plan finds, and the floor that the validation sets.

    Examples
    --------
    >>> from core.monitoring import Measurement, smallest_detectable_drop
    >>> validation = Measurement(0.80, 0.00006, positives=1000, negatives=9000)
    >>> found = smallest_detectable_drop(validation, rows=500, prevalence=0.05, planned=52)
    >>> found.periods_per_test
    2
    """

    drop: float
    """Fall that is found with probability `power`; above 1: no fall is."""
    floor: float
    """The same with unlimited rows per period: only a larger validation lowers it. Smaller falls are found, too, but
    with a lower probability."""
    power: float
    """Probability of an alarm."""
    within: int
    """Number of periods after the fall within which the alarm comes."""
    periods_per_test: int
    """Number of periods that are merged so that an interim test has 50 positives and 50 negatives."""


def smallest_detectable_drop(
    validation: Measurement,
    *,
    rows: float,
    prevalence: float,
    planned: int,
    alpha: float = RANKING_ALPHA,
    tolerance: float = 0.0,
    power: float = 0.8,
    within: int | None = None,
    recurrence: float | None = None,
) -> DetectableDrop:
    """Compute the smallest fall that a monitor finds, to show when it is switched on.

    The fall begins in the first period and lasts. The variance of a period is the variance of the validation, scaled by
    1 / positives + 1 / negatives, and to the value after the fall.

    Parameters
    ----------
    validation : Measurement
        The reference.
    rows : float > 0
        Rows per period whose outcomes become known.
    prevalence : float in (0, 1)
        Fraction of positives.
    planned : int
        Number of periods of the plan.
    alpha : float in (0, 0.5)
        Probability of any false alarm in the planned periods.
    tolerance : float in [0, 1]
        Fall up to which nothing is wrong.
    power : float in (0, 1)
        Probability with which the fall is to be found.
    within : int, optional
        Number of periods within which it is to be found. Default: all planned.
    recurrence : float in [0, 1), optional
        Correlation of the values of two interim tests, because the same entities come back; see `recurrence_of`.
        Default: the rows have no ids of entities.

    Returns
    -------
    DetectableDrop
        The fall, with the floor that the validation sets.

    Raises
    ------
    InvalidParameter
        A parameter is out of range, or the plan has too few rows for a single interim test.

    Examples
    --------
    >>> from core.monitoring import Measurement, smallest_detectable_drop
    >>> validation = Measurement(0.80, 0.00006, positives=1000, negatives=9000)
    >>> found = smallest_detectable_drop(validation, rows=2000, prevalence=0.1, planned=52, within=8)
    >>> round(found.drop, 2), round(found.floor, 2), found.periods_per_test
    (0.04, 0.03, 1)
    """
    check_value("validation", Measurement, validation)
    check_value("power", Real, power)
    if not 0.0 < power < 1.0:
        raise InvalidParameter(f"power must be strictly between 0 and 1, got {power}")
    check_value("recurrence", Real | None, recurrence)
    if recurrence is not None and not 0.0 <= recurrence < 1.0:
        raise InvalidParameter(f"recurrence must be from 0 to below 1, got {recurrence}")
    plan = _plan(validation, rows, prevalence, planned, alpha, tolerance, within)
    of_value = max(validation.value * (1.0 - validation.value), _ROUNDING)

    def least(drop: float, part: float) -> float:
        """The fall that is found, if the tests have part of the variance that they have after a fall of `drop`."""
        after = min(1.0, max(0.0, validation.value - drop))
        scale = part * max(1.0, after * (1.0 - after) / of_value)
        scaled = tuple(scale * each for each in plan[0])
        found = np.sort(_least_drops(validation.variance, scaled, *plan[1:3], alpha, recurrence))
        return float(found[math.ceil(power * found.size) - 1]) + tolerance

    drop = tolerance
    for _ in range(_STEPS_TO_DROP):
        drop = least(drop, 1.0)
    # A part of 1e-6 of the variances: as good as none, and still above 0.
    return DetectableDrop(
        drop, least(0.0, 1e-6), power, planned if within is None else within, plan[3]
    )


def smallest_detectable_shift(
    reference: Measurement,
    *,
    planned: int,
    alpha: float,
    tolerance: float = 0.0,
    power: float = 0.8,
) -> float:
    """Compute the smallest lasting shift that a monitor finds with unlimited rows.

    Parameters
    ----------
    reference : Measurement
        The reference, such as the level of a calibration.
    planned, power
        As for `smallest_detectable_drop`.
    alpha : float in (0, 0.5)
        Probability of any false alarm of `monitor_windows` with `change="shift"`.
    tolerance : float >= 0
        Shift up to which nothing is wrong.

    Returns
    -------
    float
        The shift, in the unit of the reference.

    Examples
    --------
    >>> from core.monitoring import Measurement, smallest_detectable_shift
    >>> round(smallest_detectable_shift(Measurement(0.0, 0.01, 100, 900), planned=52, alpha=0.005), 2)
    0.36
    """
    check_value("reference", Measurement, reference)
    check_value("power", Real, power)
    check_value("tolerance", Real, tolerance)
    planned = check_plan(planned, 0)
    check_alpha(alpha)
    if not 0.0 < power < 1.0:
        raise InvalidParameter(f"power must be strictly between 0 and 1, got {power}")
    if not 0.0 <= tolerance < math.inf:
        raise InvalidParameter(f"tolerance must be at least 0 and finite, got {tolerance}")
    exact = (1e-6 * reference.variance,) * planned
    parts = tuple((t + 1) / planned for t in range(planned))
    found = np.sort(
        _least_drops(reference.variance, exact, (1.0,) * planned, parts, alpha / 2.0, None)
    )
    return float(found[math.ceil(power * found.size) - 1]) + tolerance


_Plan = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...], int]


def _plan(
    validation: Measurement,
    rows: float,
    prevalence: float,
    planned: int,
    alpha: float,
    tolerance: float,
    within: int | None,
) -> _Plan:
    """Return the expected variance, weight and part of the plan of each test, and the periods per test."""
    check_value("rows", Real, rows)
    check_value("within", int | None, within)
    planned = check_plan(planned, 0)
    check_alpha(alpha)
    check_rate("tolerance", tolerance)
    check_prevalence(prevalence)
    if not 0.0 < rows < math.inf:
        raise InvalidParameter(f"rows must be positive and finite, got {rows}")
    if within is not None and not 1 <= within <= planned:
        raise InvalidParameter(f"within must be from 1 to planned ({planned}), got {within}")
    scarcer = rows * min(prevalence, 1.0 - prevalence)
    each = max(1, math.ceil(MIN_POSITIVES / scarcer * (1.0 - _ROUNDING)))
    n_tests = (planned if within is None else within) // each
    if n_tests == 0:
        raise InvalidParameter(
            f"rows must give {MIN_POSITIVES} positives and {MIN_POSITIVES} negatives within the periods, got {rows} "
            f"per period with prevalence {prevalence}"
        )
    of_row = validation.variance / (1.0 / validation.positives + 1.0 / validation.negatives)
    of_test = of_row / (each * rows * prevalence * (1.0 - prevalence))
    parts = tuple((t + 1) * each / planned for t in range(n_tests))
    return (of_test,) * n_tests, (each * scarcer,) * n_tests, parts, each


def _checked_tests(periods: Sequence[Measurement], planned: int, since: int) -> list[Measurement]:
    last = 0
    for each in periods:
        if each.first <= last or each.last > planned:
            raise InvalidData(
                f"periods must follow each other within 1 to planned ({planned}), got {each.first} to {each.last} "
                f"after {last}"
            )
        if each.weight < MIN_POSITIVES * (1.0 - _ROUNDING):
            raise InvalidData(
                f"an interim test must have at least {MIN_POSITIVES} positives and {MIN_POSITIVES} negatives, got "
                f"{each.positives:g} and {each.negatives:g} in periods {each.first} to {each.last}"
            )
        last = each.last
    return [each for each in periods if each.first > since]


def _variance_at(value: float, test: Measurement) -> float:
    """Return a test's variance if its metric were `value`, as a proportion with its trials; at least its own."""
    own, value = test.value * (1.0 - test.value), min(1.0, max(0.0, value))
    return test.variance * max(1.0, value * (1.0 - value) / own) if own > 0.0 else test.variance


def _windows(
    values: FloatArray, weights: FloatArray, t: int, errors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return means and variances of windows that end at test t, longest first; `errors` as of `covariance_factor`."""
    inside = slice(_longest(t), t + 1)
    w = weights[inside]
    total = _sums_to_end(w)
    mean = _sums_to_end(w * values[inside]) / total
    # Row j has the weighted sum of the tests from j to t, by the independent draws that they are made of.
    sums = np.cumsum((w[:, np.newaxis] * errors[inside, : t + 1])[::-1], axis=0)[::-1]
    return mean, np.einsum("ij,ij->i", sums, sums) / total**2


def _longest(t: int) -> int:
    return max(0, t + 1 - MAX_WINDOW)


def _sums_to_end(values: FloatArray) -> FloatArray:
    sums: FloatArray = np.cumsum(values[::-1])[::-1]
    return sums


@lru_cache(maxsize=64)
def _critical_values(
    shared: float,
    weights: tuple[float, ...],
    parts: tuple[float, ...],
    alpha: float,
    n_paths: int,
    factor: bytes,
) -> tuple[float, ...]:
    """Return c_t of each interim test.

    shared: variance of the validation; weights: of each test; parts: of the plan that has passed at each test,
    increasing, in (0, 1]; alpha: probability of an alarm in the whole plan; factor: of the tests' covariance matrix.
    """
    w = np.array(weights)
    errors = np.frombuffer(factor).reshape(w.size, w.size)
    paths = _Paths(math.sqrt(shared), w, n_paths, errors)
    found, before = [], 0.0
    crossed = 0  # paths, so far
    alive = np.ones(n_paths, dtype=bool)
    for t, part in enumerate(parts):
        error = np.sqrt(shared + _windows(w, w, t, errors)[1])
        maxima = paths.maxima(t, 1.0 / error, np.zeros(error.size))[alive]
        allowed = int(alpha * part * n_paths + _ROUNDING) - crossed
        # Bonferroni over the windows is valid, too, and is there where the paths are too few to tell.
        c = NormalDist().inv_cdf(1.0 - alpha * (part - before) / error.size)
        if 0 < allowed < maxima.size:
            c = min(c, float(np.partition(maxima, -allowed - 1)[-allowed - 1]))
        found.append(c)
        above = maxima > c
        crossed += int(np.count_nonzero(above))
        alive[np.flatnonzero(alive)[above]] = False
        before = part
    return tuple(found)


def _least_drops(
    shared: float,
    variances: tuple[float, ...],
    weights: tuple[float, ...],
    parts: tuple[float, ...],
    alpha: float,
    recurrence: float | None,
) -> FloatArray:
    """Return the fall, beyond the tolerance, above which each simulated path has an alarm, shape (n_paths,)."""
    w = np.array(weights)
    correlation = np.full((w.size, w.size), recurrence or 0.0)
    np.fill_diagonal(correlation, 1.0)
    errors = np.sqrt(variances)[:, np.newaxis] * np.linalg.cholesky(correlation)
    critical = _for_few_entities(
        _critical_values(shared, weights, parts, alpha, PLANNING_PATHS, errors.tobytes()),
        w,
        [recurrence is not None] * w.size,
    )
    paths = _Paths(math.sqrt(shared), w, PLANNING_PATHS, errors)
    most = np.full(PLANNING_PATHS, -np.inf)
    for t, c in enumerate(critical):
        error = np.sqrt(shared + _windows(w, w, t, errors)[1])
        np.maximum(most, paths.maxima(t, np.ones(error.size), -c * error), out=most)
    return -most


class _Paths:
    """Simulated deviations of validation and tests. A test's draws depend on its number alone, however many tests
    follow.
    """

    def __init__(self, error: float, weights: FloatArray, n_paths: int, factor: FloatArray) -> None:
        self._n = n_paths
        self._weights = weights
        self._factor = factor
        self._seen: dict[int, NDArray[np.float32]] = {}
        self._validation = error * self._draws(0)
        self._sums = np.zeros((min(weights.size, MAX_WINDOW) + 1, n_paths))

    def maxima(self, t: int, factor: FloatArray, shift: FloatArray) -> FloatArray:
        """Return the maximum over windows that end at test t, longest first, of factor · (validation − mean) + shift.

        Calls must be in the order of t.
        """
        of_test = self._weights[t] * self._deviation(t)
        n = factor.size
        if t >= MAX_WINDOW:
            self._sums[:-1] = self._sums[1:]
        np.add(self._sums[n - 1], of_test, out=self._sums[n])
        of_sum = factor / _sums_to_end(self._weights[_longest(t) : t + 1])
        most = np.full(self._n, -np.inf)
        _maxima(self._sums[: n + 1], self._validation, factor, of_sum, shift, most)
        return most

    def _deviation(self, t: int) -> FloatArray:
        draws = self._draws(t + 1)
        if self._factor[t + 1 :, t].any():
            self._seen[t] = draws.astype(np.float32)
        found: FloatArray = self._factor[t, t] * draws
        for s in np.flatnonzero(self._factor[t, :t]).tolist():
            _add(self._factor[t, s], self._seen[s], found)
        return found

    def _draws(self, number: int) -> FloatArray:
        """Return the standard normal draws of the validation (0) or of a test (from 1), shape (n_paths,)."""
        return np.random.default_rng((_SEED, number)).standard_normal(self._n)


@kernel(
    numba.void(
        numba.float64[:, ::1],
        numba.types.Array(numba.float64, 1, "C", readonly=True),
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
    )
)
def _maxima(sums, validation, factor, of_sum, shift, most):  # type: ignore[no-untyped-def]
    """Raise `most` to the maximum over windows; O(n_windows · n_paths).

    sums: (n_windows + 1, n_paths), prefix sums of the tests' deviations times their weights. A window counts with
    factor · validation − of_sum · (its sum) + shift.
    """
    n_windows, n_paths = factor.size, validation.size
    for j in range(n_windows):
        a, b, c = factor[j], of_sum[j], shift[j]
        for i in range(n_paths):
            x = a * validation[i] - b * (sums[n_windows, i] - sums[j, i]) + c
            most[i] = x if x > most[i] else most[i]


@kernel(numba.void(numba.float64, numba.float32[::1], numba.float64[::1]))
def _add(factor, values, into):  # type: ignore[no-untyped-def]
    """Add factor · values to `into`, without an array in between."""
    for i in range(into.size):
        into[i] += factor * values[i]
