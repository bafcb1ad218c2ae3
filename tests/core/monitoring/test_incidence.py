"""Incidence of outcomes since the decision: by brute force, by hand, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import InvalidData, InvalidParameter
from core.metrics.estimates import wilson_interval
from core.monitoring import outcome_incidence
from core.monitoring.incidence import _Steps
from tests.long_form import LONG_FORM
from tests.sentences import Sentences


def by_brute_force(delay: np.ndarray, outcome: np.ndarray, time: float) -> tuple[float, float]:
    """Positive and negative incidence: each decision that is censored passes its mass on to those that still wait."""
    mass = np.ones(delay.size)
    found = [0.0, 0.0]
    for t in np.unique(delay[delay <= time]):
        for i in np.flatnonzero((delay == t) & (outcome >= 0)):
            found[int(outcome[i])] += mass[i]
            mass[i] = 0.0
        for i in np.flatnonzero((delay == t) & (outcome < 0)):
            later = delay > t
            if later.any():
                mass[later] += mass[i] / later.sum()
                mass[i] = 0.0
    return found[1] / delay.size, found[0] / delay.size


def test_incidence_by_redistribution_to_the_right() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(1, 30))
        delay, outcome = rng.integers(0, 8, n).astype(float), rng.integers(-1, 2, n)
        time = float(rng.integers(0, int(delay.max()) + 1))
        (point,) = outcome_incidence(delay, outcome, [time])
        assert (point.positive, point.negative) == pytest.approx(
            by_brute_force(delay, outcome, time)
        )
        assert point.pending == pytest.approx(1 - sum(by_brute_force(delay, outcome, time)))
        assert point.at_risk == int((delay >= time).sum())


def test_without_pending_decisions_it_is_a_fraction_with_its_binomial_variance() -> None:
    delay = np.array([1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 7.0, 9.0])
    outcome = np.array([1, 0, 1, 0, 0, 1, 1, 0])
    steps = _Steps.of(delay, outcome.astype(float))
    for n, time in enumerate((1.0, 2.0, 3.0, 7.0, 9.0), start=1):
        (point,) = outcome_incidence(delay, outcome, [time])
        for k, value in ((1, point.positive), (0, point.negative)):
            share = np.mean((delay <= time) & (outcome == k))
            assert value == pytest.approx(share)
            assert steps.variance(k, n) == pytest.approx(share * (1 - share) / 8)


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """30 % positive; positives after about 40 days, negatives after 15; decisions over the last 60 days."""
    positive = rng.random(n) < 0.3
    arrival = rng.exponential(np.where(positive, 40.0, 15.0))
    age = rng.uniform(0.0, 60.0, n)
    known = arrival <= age
    return np.minimum(arrival, age), np.where(known, positive.astype(int), -1)


def test_coverage_with_pending_decisions_and_the_naive_fraction_beside_it() -> None:
    runs = 1000 if LONG_FORM else 50
    time, truth = 40.0, (0.3 * (1 - np.exp(-1.0)), 0.7 * (1 - np.exp(-40 / 15)))
    inside, naive = np.zeros(2), []
    rng = np.random.default_rng(1)
    for _ in range(runs):
        delay, outcome = draw(rng, 300)
        (point,) = outcome_incidence(delay, outcome, [time])
        assert point.positive_low is not None
        inside += (
            point.positive_low <= truth[0] <= point.positive_high,
            point.negative_low <= truth[1] <= point.negative_high,
        )
        naive.append(np.mean(outcome[outcome >= 0] == 1))
    assert (inside / runs >= (0.93 if LONG_FORM else 0.84)).all()
    assert np.mean(naive) < 0.25  # of the known outcomes; 30 % of the decisions are positive


def test_times_that_nothing_is_known_of() -> None:
    points = outcome_incidence([5.0, 10.0, 12.0], [1, 0, -1], [0.0, 12.0, 13.0])
    assert [point.positive for point in points] == pytest.approx([0.0, 1 / 3, None])
    assert points[2].pending is None
    # the last decision has its outcome: nothing can come later
    (late,) = outcome_incidence([5.0, 10.0], [1, 0], [99.0])
    assert (late.positive, late.negative, late.pending) == (0.5, 0.5, 0.0)
    (none,) = outcome_incidence([5.0, 6.0], [-1, -1], [4.0])
    assert (none.positive, none.pending) == (0.0, 1.0)
    assert none.positive_high is not None
    assert none.positive_high > 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], [1]), "at least one decision"),
        (([-1.0], [1], [1]), "delay must not be negative"),
        (([1.0], [1], [-1]), "times must not be negative"),
        (([1.0], [2], [1]), "outcome must be 1, 0 or -1"),
        (([1.0, 2.0], [1], [1]), "outcome must have one value"),
        (([np.nan], [1], [1]), "delay must be finite"),
    ],
)
def test_bad_outcomes(
    arguments: tuple[list[float], list[int], list[float]], message: str, sentences: Sentences
) -> None:
    with sentences.raises(InvalidData) as caught:
        outcome_incidence(*arguments)
    assert message in str(caught.value)
    with sentences.raises(InvalidParameter):
        outcome_incidence([1.0], [1], [1.0], 2.0)


def test_limits_without_pending_decisions_are_those_of_a_proportion() -> None:
    delay, outcome = np.arange(1.0, 41.0), np.arange(40) % 4 == 0
    (point,) = outcome_incidence(delay, outcome.astype(int), [20.0], level=0.9)
    assert (point.positive, point.positive_low, point.positive_high) == pytest.approx(
        wilson_interval(5 / 40, 40, 0.9)
    )
    assert (point.negative, point.negative_low, point.negative_high) == pytest.approx(
        wilson_interval(15 / 40, 40, 0.9)
    )


def test_nothing_is_pending_after_the_last_of_several_outcomes() -> None:
    (late,) = outcome_incidence([5.0, 5.0, 10.0], [1, 0, 1], [99.0])
    assert (late.positive, late.negative, late.pending) == pytest.approx((2 / 3, 1 / 3, 0.0))
