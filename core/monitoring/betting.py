"""Tests by betting: a guaranteed rate and the calibration, at any number of looks, without approximations.

An *e-process* is the capital of a gambler who bets against H₀ and on average gains nothing if it holds. The probability
that it ever reaches 1 / α is then at most α (Ville), at any number of looks and with any number of rows.

**Rate.** H₀: in no period is the rate of events above a bound β. The bet on the rate q > β multiplies the capital by
q / β at an event and by (1 − q) / (1 − β) otherwise (Waudby-Smith & Ramdas 2024, for Bernoulli variables). On average
that is at most 1 at every rate up to β. The capital is divided among several q. Events are, for example, the flagged
rows among the negatives (a guarantee bounds their rate), or the negatives among the flagged rows.

**Calibration.** H₀: the log odds of each outcome differ from the log odds of its forecast p by at most the tolerance,
so its probability is in [p₋, p₊]. A bet on another forecast p' multiplies the capital by the likelihood ratio of p' and
the nearest value of [p₋, p₊], on average at most 1 for every probability in this interval. Without a tolerance these
are the e-values of Henzi & Ziegel (2022) for two forecasts with the logarithmic score. The p' are p with shifted,
steeper and flatter log odds, and mixtures of p and the mean forecast.

**Start.** A bettor who begins in the first period has lost nearly everything by the time of a late change. So the
capital is divided among bettors who begin in each of the planned periods (Shin, Ramdas & Rinaldo 2024, with weights
that sum to 1).

**Assumptions.** Rows are independent given their forecasts, and all rows whose outcome matters are known: with selected
outcomes only rates within the selection are tested.

References
----------
Arnold, Henzi & Ziegel, "Sequentially valid tests for forecast calibration", Annals of Applied Statistics 17 (2023).
Henzi & Ziegel, "Valid sequential inference on probability forecast performance", Biometrika 109 (2022).
Shin, Ramdas & Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", New England Journal of
Statistics in Data Science 2 (2024).
Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from core.base.parameters import check_items, check_value
from core.base.target import as_array
from core.errors import InvalidData, InvalidParameter
from core.metrics.groups import FloatArray, check_probabilities, finite_vector
from core.metrics.window import check_rate
from core.monitoring.measuring import check_alpha, check_plan, labels_and_periods
from core.probability.score_test import log_odds, sigmoid

GUARANTEE_ALPHA = 0.01
CALIBRATION_ALPHA = 0.01
"""The shares of a guarantee and of the calibration in a budget of .05; see `budget`."""

_ODDS = (1.15, 1.4, 2.0, 3.0, 5.0)  # of the rates that are bet on, relative to the bound
_SHIFTS = (0.15, 0.3, 0.6, 1.2)  # of log-odds, beyond the tolerance
_SLOPES = (0.6, 0.8, 1.25, 1.6)
_MIXED = (
    0.02,
    0.1,
)  # parts of the mean forecast in mixtures with p: against forecasts near 0 and 1
_LEAST = 1e-6  # a forecast below is not held against an outcome more than this one would be
_MOST_LOG = 700.0  # of a capital: exp overflows above


@dataclass(frozen=True)
class BettingLook:
    """The result of one look of a test by betting.

    Attributes
    ----------
    period : int
        The look is made at the end of this period, from 1.
    e_value : float
        The capital. Under H₀, the probability that it ever reaches 1 / α is at most α.
    alarm : bool
        Whether it has reached 1 / α at this look or an earlier one.
    first : int
        First period of the most successful bettor: the change probably began then.
    observed, expected : float or None
        Rate of events from `first` to `period`, and the rate under H₀ (the bound, or the mean forecast); None without
        rows.

    Examples
    --------
    >>> from core.monitoring import monitor_rate
    >>> monitor_rate([5], [100], 0.05, planned=52).looks[0].observed
    0.05
    """

    period: int
    e_value: float
    alarm: bool
    first: int
    observed: float | None
    expected: float | None


@dataclass(frozen=True)
class BettingMonitor:
    """The looks of a test by betting so far.

    Attributes
    ----------
    looks : tuple of BettingLook
        In the order of time.
    alarm : BettingLook or None
        The first look with an alarm.

    Examples
    --------
    >>> from core.monitoring import monitor_rate
    >>> monitor_rate([], [], 0.05, planned=52)
    BettingMonitor(looks=(), alarm=None)
    """

    looks: tuple[BettingLook, ...]
    alarm: BettingLook | None


def monitor_rate(
    events: ArrayLike,
    trials: ArrayLike,
    bound: float,
    *,
    planned: int,
    alpha: float = GUARANTEE_ALPHA,
    since: int = 0,
) -> BettingMonitor:
    """Test whether a rate has exceeded a bound in any period, such as a guaranteed false positive rate.

    Parameters
    ----------
    events : array_like of int, shape (n_periods,)
        Events in each period, from the first period of the plan, such as flagged negatives.
    trials : array_like of int, shape (n_periods,)
        Rows in each period, such as negatives; 0 is allowed.
    bound : float in (0, 1)
        Largest rate under H₀.
    planned : int
        Number of periods of the plan, at most 400.
    alpha : float in (0, 0.5)
        Probability of any false alarm.
    since : int
        Bets begin after this period, with the part of `alpha` that belongs to later periods. 0: from the first period.

    Returns
    -------
    BettingMonitor
        The looks after `since`.

    Raises
    ------
    InvalidData
        Lengths differ, there are more periods than planned, or a number of events is not in 0 to its trials.
    InvalidParameter
        A parameter is out of range.

    Examples
    --------
    >>> from core.monitoring import monitor_rate
    >>> alarm = monitor_rate([48, 52, 80, 82], [1000] * 4, 0.05, planned=52).alarm
    >>> alarm.period, alarm.first, alarm.observed
    (4, 3, 0.081)
    """
    if not 0.0 < check_rate("bound", bound) < 1.0:
        raise InvalidParameter(f"bound must be strictly between 0 and 1, got {bound}")
    planned = check_plan(planned, since)
    check_alpha(alpha)
    if as_array("events", events).size != as_array("trials", trials).size:
        raise InvalidData(
            f"events and trials must have one value per period, got {np.size(events)} and {np.size(trials)}"
        )
    if np.size(trials) > planned:
        raise InvalidData(
            f"there must be at most {planned} periods (planned), got {np.size(trials)}"
        )
    if np.size(trials) == 0:
        return BettingMonitor((), None)
    k, n = finite_vector("events", events), finite_vector("trials", trials)
    wrong = (k < 0.0) | (k > n) | (k != np.rint(k)) | (n != np.rint(n))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidData(
            f"events and trials must be whole numbers with 0 <= events <= trials, got {k[at]:g} and {n[at]:g} in "
            f"period {at + 1}"
        )
    odds = np.array(_ODDS) * bound / (1.0 - bound)
    q = odds / (1.0 + odds)
    gains = np.outer(k, np.log(q / bound)) + np.outer(n - k, np.log((1.0 - q) / (1.0 - bound)))
    return _bet(gains, k, n, bound * n, planned, alpha, since)


def monitor_calibration(
    probability: ArrayLike,
    y: ArrayLike,
    period: ArrayLike,
    *,
    planned: int,
    alpha: float = CALIBRATION_ALPHA,
    tolerance: float = 0.0,
    since: int = 0,
) -> BettingMonitor:
    """Test whether outcomes still have the probabilities that a calibrated model predicted.

    An alarm does not always mean that the ranking is worse: a change of the prevalence raises an alarm as well,
    correctly.

    Parameters
    ----------
    probability : array_like of float in [0, 1], shape (n_samples,)
        The predicted probability of each row.
    y : array_like of bool, shape (n_samples,)
        Whether the row is positive.
    period : array_like of int, shape (n_samples,)
        Number of the period in which the row was scored, from 1.
    planned : int
        Number of periods of the plan, at most 400.
    alpha : float in (0, 0.5)
        Probability of any false alarm.
    tolerance : float >= 0
        Difference of log-odds up to which nothing is wrong; .1 is about a tenth of a small probability.
    since : int
        Bets begin after this period, with the part of `alpha` that belongs to later periods. 0: from the first period.

    Returns
    -------
    BettingMonitor
        A look for each period up to the last one with rows.

    Raises
    ------
    InvalidData
        Lengths differ, or a value is not finite or not a probability.
    InvalidParameter
        A parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from core.monitoring import monitor_calibration
    >>> rng = np.random.default_rng(0)
    >>> p, period = rng.uniform(0.05, 0.3, 3000), np.repeat([1, 2, 3], 1000)
    >>> y = rng.random(3000) < np.where(period == 3, 1.5 * p, p)
    >>> alarm = monitor_calibration(p, y, period, planned=52).alarm
    >>> alarm.period, alarm.first
    (3, 3)
    """
    if as_array("y", y).size == 0:
        check_plan(planned, since)
        return BettingMonitor((), None)
    positive, number = labels_and_periods(y, period)
    p = finite_vector("probability", probability, positive.size)
    check_probabilities(p)
    if number.max() > check_plan(planned, since):
        raise InvalidData(f"period must be at most {planned} (planned), got {number.max()}")
    order = np.argsort(number, kind="stable")
    bounds = np.searchsorted(number[order], np.arange(1, int(number.max()) + 2))
    bets = [
        bet_on_calibration(p[rows], positive[rows], tolerance=tolerance)
        for rows in np.split(order, bounds)[1:-1]
    ]
    return monitor_calibration_bets(bets, planned=planned, alpha=alpha, since=since)


@dataclass(frozen=True)
class CalibrationBets:
    """The gains of the bets against the calibration in one period. Store them instead of the rows.

    Attributes
    ----------
    gains : tuple of float
        Logarithm of the factor by which each bet multiplies its capital.
    rows, positives : int
        Numbers of rows.
    expected : float
        Sum of the predicted probabilities.

    Examples
    --------
    >>> from core.monitoring import bet_on_calibration
    >>> bet_on_calibration([0.2, 0.4], [0, 1]).positives
    1
    """

    gains: tuple[float, ...]
    rows: int
    positives: int
    expected: float


def bet_on_calibration(
    probability: ArrayLike, y: ArrayLike, *, tolerance: float = 0.0
) -> CalibrationBets:
    """Compute the gains of the bets of one period; see `monitor_calibration`.

    Parameters
    ----------
    probability : array_like of float in [0, 1], shape (n_samples,)
        The predicted probability of each row.
    y : array_like of bool, shape (n_samples,)
        Whether the row is positive.
    tolerance : float >= 0
        Difference of log-odds up to which nothing is wrong.

    Returns
    -------
    CalibrationBets
        The gains. O(n).

    Raises
    ------
    InvalidData
        Lengths differ, or a value is not finite or not a probability.
    InvalidParameter
        `tolerance` is negative.

    Examples
    --------
    >>> from core.monitoring import bet_on_calibration
    >>> round(bet_on_calibration([0.2, 0.4], [0, 1]).expected, 1)
    0.6
    """
    check_value("tolerance", Real, tolerance)
    if not 0.0 <= tolerance < math.inf:
        raise InvalidParameter(f"tolerance must be at least 0 and finite, got {tolerance}")
    n = as_array("y", y).size
    if n == 0:
        n_bets = 2 * len(_SHIFTS) + len(_SLOPES) + len(_MIXED)
        return CalibrationBets((0.0,) * n_bets, 0, 0, 0.0)
    positive, _ = labels_and_periods(y, np.ones(n))
    p = finite_vector("probability", probability, n)
    check_probabilities(p)
    odds = log_odds(p)
    # Forecasts are known before the outcomes of their period, so bets may depend on all of them.
    centre = float(odds.mean())
    low = np.minimum(sigmoid(odds - tolerance), 1.0 - _LEAST)
    high = np.maximum(sigmoid(odds + tolerance), _LEAST)
    mean = float(p.mean())
    rivals = [
        *(odds + sign * (tolerance + shift) for shift in _SHIFTS for sign in (1.0, -1.0)),
        *(centre + slope * (odds - centre) for slope in _SLOPES),
        *(log_odds((1.0 - part) * p + part * mean) for part in _MIXED),
    ]
    gains = []
    for rival in rivals:
        q = np.clip(sigmoid(rival), _LEAST, 1.0 - _LEAST)
        nearest = np.clip(q, low, high)
        ratio = np.where(positive, q / nearest, (1.0 - q) / (1.0 - nearest))
        gains.append(float(np.log(ratio).sum()))
    return CalibrationBets(tuple(gains), n, int(np.count_nonzero(positive)), float(p.sum()))


def monitor_calibration_bets(
    bets: Sequence[CalibrationBets],
    *,
    planned: int,
    alpha: float = CALIBRATION_ALPHA,
    since: int = 0,
) -> BettingMonitor:
    """Test the calibration from the gains of each period; see `monitor_calibration`.

    Parameters
    ----------
    bets : sequence of CalibrationBets, length n_periods
        The gains in each period, from the first period of the plan.
    planned : int
        Number of periods of the plan, at most 400.
    alpha : float in (0, 0.5)
        Probability of any false alarm.
    since : int
        Bets begin after this period.

    Returns
    -------
    BettingMonitor
        The looks after `since`.

    Raises
    ------
    InvalidData
        There are more periods than planned.
    InvalidParameter
        A parameter is out of range.

    Examples
    --------
    >>> from core.monitoring import bet_on_calibration, monitor_calibration_bets
    >>> monitor_calibration_bets([bet_on_calibration([0.2, 0.4], [0, 1])], planned=52).alarm
    """
    check_items("bets", bets, CalibrationBets)
    planned = check_plan(planned, since)
    if len(bets) > planned:
        raise InvalidData(f"there must be at most {planned} periods (planned), got {len(bets)}")
    if not len(bets):
        return BettingMonitor((), None)
    gains = np.array([each.gains for each in bets])
    events, trials, expected = (
        np.array([getattr(each, name) for each in bets], dtype=np.float64)
        for name in ("positives", "rows", "expected")
    )
    return _bet(gains, events, trials, expected, planned, alpha, since)


def _bet(
    gains: FloatArray,
    events: FloatArray,
    trials: FloatArray,
    expected: FloatArray,
    planned: int,
    alpha: float,
    since: int,
) -> BettingMonitor:
    """Return the looks of bets that begin in every planned period.

    Parameters
    ----------
    gains : ndarray of shape (n_periods, n_bets), float64
        Logarithm of the factor by which each bet multiplies its capital in each period.
    events, trials, expected : ndarray of shape (n_periods,), float64
        Numbers of events, of rows, and of events under H₀.
    """
    check_alpha(alpha)
    left = planned - since
    threshold = planned / (alpha * left)
    sums = np.vstack([np.zeros(gains.shape[1]), np.cumsum(gains[since:], axis=0)])
    totals = [
        np.concatenate([[0.0], np.cumsum(each[since:])]) for each in (events, trials, expected)
    ]
    share = -math.log(left * gains.shape[1])
    looks: list[BettingLook] = []
    for t in range(1, len(sums)):
        capital = sums[t] - sums[:t] + share  # shape (first period, bet)
        e_value = float(np.exp(np.minimum(capital, _MOST_LOG)).sum()) + (left - t) / left
        first = int(np.argmax(capital.max(axis=1)))
        k, n, by_null = (float(each[t] - each[first]) for each in totals)
        before = bool(looks) and looks[-1].alarm
        looks.append(
            BettingLook(
                period=since + t,
                e_value=e_value,
                alarm=before or e_value >= threshold,
                first=since + first + 1,
                observed=k / n if n else None,
                expected=by_null / n if n else None,
            )
        )
    return BettingMonitor(tuple(looks), next((look for look in looks if look.alarm), None))
