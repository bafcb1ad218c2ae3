"""Test by betting: a guaranteed rate, at any number of tests, without approximations.

An *e-process* is the capital of a gambler who bets against H₀ and on average gains nothing if it holds. The probability
that it ever reaches 1 / α is then at most α (Ville), at any number of tests and with any number of rows.

**Rate.** H₀: in no period is the rate of events above a bound β. The bet on the rate q > β multiplies the capital by
q / β at an event and by (1 − q) / (1 − β) otherwise (Waudby-Smith & Ramdas 2024, for Bernoulli variables). On average
that is at most 1 at every rate up to β. The capital is divided among several q. Events are, for example, the flagged
rows among the negatives (a guarantee bounds their rate), or the negatives among the flagged rows.

**Start.** A bettor who begins in the first period has lost nearly everything by the time of a late change. So the
capital is divided among bettors who begin in each of the planned periods (Shin, Ramdas & Rinaldo 2024, with weights
that sum to 1).

**Assumptions.** Rows are independent, and all rows whose outcome matters are known: with selected outcomes only rates
within the selection are tested. Where the same entities come back, use `monitor_windows` with `change="rise"`.

References
----------
Shin, Ramdas & Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", New England Journal of
Statistics in Data Science 2 (2024).
Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.base.target import as_array
from core.errors import InvalidData, InvalidParameter
from core.metrics.groups import FloatArray, finite_vector
from core.metrics.window import check_rate
from core.monitoring.measuring import check_alpha, check_plan

GUARANTEE_ALPHA = 0.01
"""The share of a guarantee in a budget of .05; see `budget`."""

_ODDS = (1.15, 1.4, 2.0, 3.0, 5.0)  # of the rates that are bet on, relative to the bound
_MOST_LOG = 700.0  # of a capital: exp overflows above


@dataclass(frozen=True)
class BettingTest:
    """The result of one interim test by betting.

    Attributes
    ----------
    observed, expected : float or None
        Rate of events from `first` to `period`, and the bound; None without rows.

    Examples
    --------
    >>> from core.monitoring import monitor_rate
    >>> monitor_rate([5], [100], 0.05, planned=52).tests[0].observed
    0.05
    """

    period: int
    """The interim test is made at the end of this period, from 1."""
    e_value: float
    """The capital. Under H₀, the probability that it ever reaches 1 / α is at most α."""
    alarm: bool
    """Whether it has reached 1 / α at this interim test or an earlier one."""
    first: int
    """First period of the most successful bettor: the change probably began then."""
    observed: float | None
    expected: float | None


@dataclass(frozen=True)
class BettingMonitor:
    """The results of a test by betting so far.

    Examples
    --------
    >>> from core.monitoring import monitor_rate
    >>> monitor_rate([], [], 0.05, planned=52)
    BettingMonitor(tests=(), alarm=None)
    """

    tests: tuple[BettingTest, ...]
    """In the order of time."""
    alarm: BettingTest | None
    """The first interim test with an alarm."""


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
        The interim tests after `since`.

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


def _bet(
    gains: FloatArray,
    events: FloatArray,
    trials: FloatArray,
    expected: FloatArray,
    planned: int,
    alpha: float,
    since: int,
) -> BettingMonitor:
    """Return the interim tests of bets that begin in every planned period.

    gains: (n_periods, n_bets), log of the factor by which each bet multiplies its capital; expected: events under H₀.
    """
    check_alpha(alpha)
    left = planned - since
    threshold = planned / (alpha * left)
    sums = np.vstack([np.zeros(gains.shape[1]), np.cumsum(gains[since:], axis=0)])
    totals = [
        np.concatenate([[0.0], np.cumsum(each[since:])]) for each in (events, trials, expected)
    ]
    share = -math.log(left * gains.shape[1])
    tests: list[BettingTest] = []
    for t in range(1, len(sums)):
        capital = sums[t] - sums[:t] + share  # shape (first period, bet)
        e_value = float(np.exp(np.minimum(capital, _MOST_LOG)).sum()) + (left - t) / left
        first = int(np.argmax(capital.max(axis=1)))
        k, n, by_null = (float(each[t] - each[first]) for each in totals)
        before = bool(tests) and tests[-1].alarm
        tests.append(
            BettingTest(
                period=since + t,
                e_value=e_value,
                alarm=before or e_value >= threshold,
                first=since + first + 1,
                observed=k / n if n else None,
                expected=by_null / n if n else None,
            )
        )
    return BettingMonitor(tuple(tests), next((test for test in tests if test.alarm), None))
