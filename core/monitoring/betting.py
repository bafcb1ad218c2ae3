"""Test by betting: a guaranteed rate, at any number of tests, without approximations.

An *e-process* is the capital of a gambler who bets against H₀ and on average gains nothing if it holds. The probability
that it ever reaches 1 / α is then at most α (Ville), at any number of tests and with any number of rows.

**Rate.** H₀: in no period is the rate of events above a bound β. Events are, for example, the flagged rows among the
negatives (a guarantee bounds their rate), or the negatives among the flagged rows. The bet on the rate q > β multiplies
the capital by q / β = 1 + λ (1 − β) at an event and by (1 − q) / (1 − β) = 1 − λ β at another row of the class
(Waudby-Smith & Ramdas 2024, for Bernoulli variables). On average that is at most 1 at every rate up to β. The capital
is divided among several q.

**Missing outcomes.** Whether a row had the event is known (it was flagged or not); whether it belongs to the class (is
negative) only with its outcome. So the class is counted by side: of the n_s rows of side s, k_s outcomes are known and
c_s of these rows belong to the class. If the outcomes of each side are missing at random, at any rate that may differ
between the sides,

    log gain = c_E log(1 + λ (1 − β) n_E / k_E) + c_O log(1 − λ β n_O / k_O),

with E the side of the events and O the other one, still gains nothing on average, because (1 + x / π)^π ≤ 1 + x for the
fraction π = k / n. Periods with less than half of the outcomes of a side are left out. Missing at random is an
assumption, so there are three capitals:

* `e_low`: missing outcomes are those that the bets gain least from. No assumption; only this one raises an alarm.
* `e_value`: at random, as above.
* `e_high`: the odds of the class among the missing rows of a side differ from those among the known ones by the factor
  `MISSING_ODDS`, in the direction that gains more. If even this capital is below 1 / α, the test has passed.

In between, the answer is unknown.

**Start.** A bettor who begins in the first period has lost nearly everything by the time of a late change. So the
capital is divided among bettors who begin in each of the planned periods (Shin, Ramdas & Rinaldo 2024, with weights
that sum to 1).

**Assumptions.** Rows are independent. Where the same entities come back, use `measure_rate` and `monitor_windows` with
`change="rise"`. Outcomes that were selected by score within a side are not missing at random: `e_low` holds, the others
do not.

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
from numpy.typing import ArrayLike, NDArray

from core.base.target import as_array
from core.errors import InvalidData, InvalidParameter
from core.metrics.groups import FloatArray, finite_vector
from core.metrics.window import check_rate
from core.monitoring.measuring import check_alpha, check_plan

GUARANTEE_ALPHA = 0.01
"""The share of a guarantee in a budget of .05; see `budget`."""

MISSING_ODDS = 2.0
"""Factor by which the odds of the class among missing outcomes may differ from those among the known ones of a side."""

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
    e_low: float
    """The capital whatever the missing outcomes are. Under H₀, the probability that it ever reaches 1 / α is at most
    α."""
    e_value: float
    """The capital if the outcomes of each side are missing at random. Equal to `e_low` if none is missing."""
    e_high: float
    """The capital if the odds of the class among missing rows differ from those among known ones by `MISSING_ODDS`."""
    alarm: bool
    """Whether `e_low` has reached 1 / α at this interim test or an earlier one."""
    unknown: bool
    """Whether missing outcomes leave the answer open: there is no alarm, but `e_high` has reached 1 / α, or less than
    half of the outcomes of a side are known in this period."""
    first: int
    """First period of the most successful bettor on `e_value`: the change probably began then."""
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
    known: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
) -> BettingMonitor:
    """Test whether a rate has exceeded a bound in any period, such as a guaranteed false positive rate.

    Parameters
    ----------
    events : array_like of int, shape (n_periods,)
        Events in each period, from the first period of the plan, such as flagged negatives.
    trials : array_like of int, shape (n_periods,)
        Rows of the class in each period, such as negatives; 0 is allowed.
    bound : float in (0, 1)
        Largest rate under H₀.
    planned : int
        Number of periods of the plan, at most 400.
    alpha : float in (0, 0.5)
        Probability of any false alarm.
    since : int
        Bets begin after this period, with the part of `alpha` that belongs to later periods. 0: from the first period.
    known, decisions : array_like of int, shape (n_periods, 2), optional
        Rows with a known outcome, of any class, and all rows: on the side of the events (flagged) and on the other
        side. Give both if outcomes are missing. Default: none is.

    Returns
    -------
    BettingMonitor
        The interim tests after `since`.

    Raises
    ------
    InvalidData
        The numbers are not whole, or of some side there are more rows of the class than known ones, or more known ones
        than decisions.

    Examples
    --------
    >>> from core.monitoring import monitor_rate
    >>> alarm = monitor_rate([48, 52, 80, 82], [1000] * 4, 0.05, planned=52).alarm
    >>> alarm.period, alarm.first, alarm.observed
    (4, 3, 0.081)

    The rate is .045, but of the 1,800 rows that were not flagged 30 % have no outcome:

    >>> test = monitor_rate(
    ...     [81], [1284], 0.05, planned=52, known=[[200, 1260]], decisions=[[200, 1800]]
    ... ).tests[0]
    >>> round(test.observed, 3), test.alarm, test.unknown
    (0.045, False, False)
    """
    if not 0.0 < check_rate("bound", bound) < 1.0:
        raise InvalidParameter(f"bound must be strictly between 0 and 1, got {bound}")
    planned = check_plan(planned, since)
    check_alpha(alpha)
    c, k, n = _checked_counts(events, trials, known, decisions)
    if len(c) > planned:
        raise InvalidData(f"there must be at most {planned} periods (planned), got {len(c)}")
    c, k, n = c[since:], k[since:], n[since:]
    missing, enough = n - k, np.all(2.0 * k >= n, axis=1)[:, np.newaxis]
    shares = np.divide(missing, k, out=np.zeros_like(k), where=enough & (k > 0.0))
    at_random = np.where(enough, 1.0 + shares, 0.0)
    share = (np.cumsum(c, axis=0) + 0.5) / (np.cumsum(k, axis=0) + 1.0)
    odds = np.array([MISSING_ODDS, 1.0 / MISSING_ODDS])
    of_missing = odds / (
        share * odds + 1.0 - share
    )  # share of the class, over that of the known rows
    counts_and_weights = (
        (c + missing * [0.0, 1.0], np.ones_like(c)),
        (c, at_random),
        (c, np.where(enough, 1.0 + shares * of_missing, 0.0)),
    )
    gains = np.stack([_log_gains(rows, weights, bound) for rows, weights in counts_and_weights])
    return _bet(gains, at_random * c, bound, planned, alpha, since, ~enough[:, 0])


def _checked_counts(
    events: ArrayLike, trials: ArrayLike, known: ArrayLike | None, decisions: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rows of the class, the known rows and all rows of each side, (n_periods, 2)."""
    if (known is None) != (decisions is None):
        raise InvalidParameter("known and decisions must be given together")
    if as_array("events", events).size != as_array("trials", trials).size:
        raise InvalidData(
            f"events and trials must have one value per period, got {np.size(events)} and {np.size(trials)}"
        )
    periods = np.size(trials)
    if periods == 0:
        return (np.zeros((0, 2)),) * 3
    happened, every = finite_vector("events", events), finite_vector("trials", trials)
    wrong = (
        (happened < 0.0)
        | (happened > every)
        | (happened != np.rint(happened))
        | (every != np.rint(every))
    )
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidData(
            f"events and trials must be whole numbers with 0 <= events <= trials, got {happened[at]:g} and "
            f"{every[at]:g} in period {at + 1}"
        )
    c = np.column_stack([happened, every - happened])
    if known is None or decisions is None:
        return c, c, c
    sides = []
    for name, given in (("known", known), ("decisions", decisions)):
        if np.shape(given) != (periods, 2):
            raise InvalidData(
                f"{name} must have two values for each of the {periods} periods, got shape {np.shape(given)}"
            )
        sides.append(finite_vector(name, np.ravel(given)).reshape(periods, 2))
    k, n = sides
    wrong = ((c > k) | (k > n) | (k != np.rint(k)) | (n != np.rint(n))).any(axis=1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidData(
            "known and decisions must be whole numbers with rows of the class <= known <= decisions on each side, got "
            f"{c[at].tolist()}, {k[at].tolist()} and {n[at].tolist()} in period {at + 1}"
        )
    return c, k, n


def _log_gains(counts: FloatArray, weights: FloatArray, bound: float) -> FloatArray:
    """Return the log of the factor by which each bet multiplies its capital, (n_periods, n_bets).

    counts, weights: (n_periods, 2); rows of the class on each side, and the n / k by which their stakes are multiplied.
    A bet that could lose more than it has is not made.
    """
    odds = np.array(_ODDS) * bound / (1.0 - bound)
    rates = odds / (1.0 + odds)
    stakes = (rates - bound) / (bound * (1.0 - bound))  # λ
    gain = 1.0 + weights[:, :1] * stakes * (1.0 - bound)
    rest = 1.0 - weights[:, 1:] * stakes * bound
    made = rest > 0.0
    found: FloatArray = np.where(
        made, counts[:, :1] * np.log(gain) + counts[:, 1:] * np.log(np.where(made, rest, 1.0)), 0.0
    )
    return found


def _bet(
    gains: FloatArray,
    rows: FloatArray,
    bound: float,
    planned: int,
    alpha: float,
    since: int,
    unseen: NDArray[np.bool_],
) -> BettingMonitor:
    """Return the interim tests of bets that begin in every planned period.

    gains: (3, n_periods, n_bets), of the capitals `e_low`, `e_value` and `e_high`, after `since`.
    rows: (n_periods, 2); rows of the class on each side, with those expected among the missing ones.
    unseen: (n_periods,); less than half of the outcomes of a side are known.
    """
    left = planned - since
    threshold = planned / (alpha * left)
    sums = np.concatenate([np.zeros_like(gains[:, :1]), np.cumsum(gains, axis=1)], axis=1)
    totals = np.vstack([np.zeros(2), np.cumsum(rows, axis=0)])
    share = -math.log(left * gains.shape[2])
    tests: list[BettingTest] = []
    for t in range(1, sums.shape[1]):
        capital = sums[:, t, np.newaxis] - sums[:, :t] + share  # shape (3, first period, bet)
        low, value, high = (
            float(each)
            for each in np.exp(np.minimum(capital, _MOST_LOG)).sum(axis=(1, 2)) + (left - t) / left
        )
        first = int(np.argmax(capital[1].max(axis=1)))
        happened, others = (float(each) for each in totals[t] - totals[first])
        some = happened + others > 0.0
        tests.append(
            BettingTest(
                period=since + t,
                e_low=low,
                e_value=value,
                e_high=high,
                alarm=low >= threshold or (bool(tests) and tests[-1].alarm),
                unknown=low < threshold and (high >= threshold or bool(unseen[t - 1])),
                first=since + first + 1,
                observed=happened / (happened + others) if some else None,
                expected=bound if some else None,
            )
        )
    return BettingMonitor(tuple(tests), next((test for test in tests if test.alarm), None))
