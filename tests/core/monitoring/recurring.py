"""A year of decisions in which customers recur, and whether a test raises an alarm in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.monitoring import (
    calibration_reference,
    compare_by_period,
    measure_calibration,
    measure_periods,
    measure_validation,
    monitor_calibration,
    monitor_windows,
)
from core.monitoring.measuring import rows_by_test
from core.probability import choose_calibration, reliability

BEGINS = 20


@dataclass(frozen=True)
class World:
    """Customers and their weeks."""

    customers: int = 500
    each: int = 4
    lognormal: bool = False
    turnover: float = 0.1
    prevalence: float = 0.1
    shown: float = 1.0
    hidden: float = 0.8
    weeks: int = 52
    validation: int = 10_000
    same: bool = False
    missing: float = 0.0
    missing_positives: float = 0.0

    @cached_property
    def intercept(self) -> float:
        """The log-odds at which the mean probability is the prevalence."""
        rng = np.random.default_rng(0)
        odds = self.shown * rng.normal(size=200_000) + self.hidden * rng.normal(size=200_000)
        low, high = -20.0, 20.0
        while high - low > 1e-6:
            middle = (low + high) / 2.0
            mean = float(np.mean(1.0 / (1.0 + np.exp(-odds - middle))))
            low, high = (middle, high) if mean < self.prevalence else (low, middle)
        return low


@dataclass
class Stream:
    """The rows of a validation and of a year."""

    y: np.ndarray
    score: np.ndarray
    rival: np.ndarray
    period: np.ndarray
    customer: np.ndarray
    held: tuple[np.ndarray, np.ndarray, np.ndarray]


def simulate(world: World, rng: np.random.Generator, what: str) -> Stream:
    """Draw a year; `what` is what changes in week 20, or nothing."""
    level = world.intercept

    def customers(n: int) -> np.ndarray:
        sizes = np.full(n, float(world.each))
        if world.lognormal:
            sizes = np.maximum(1.0, np.rint(rng.lognormal(np.log(world.each), 1.0, n)))
        return np.vstack([rng.normal(size=(3, n)), sizes, rng.normal(size=n)])

    def rows(present: np.ndarray, week: int) -> tuple[np.ndarray, ...]:
        at = np.repeat(np.arange(present.shape[1]), present[3].astype(int))
        shown, hidden, other = present[:3, at]
        odds = level + world.shown * shown + world.hidden * hidden
        late = week > BEGINS
        odds = odds + (np.log(1.4) if late and what == "calibration" else 0.0)
        y = rng.random(at.size) < 1.0 / (1.0 + np.exp(-odds))
        lost = 0.6 if late and what == "ranking" else 0.0
        # What the champion's noise is to each customer, the challenger's is, too: equal models.
        own = present[4, at] * 0.3
        score = shown + own + lost * rng.normal(size=at.size)
        rival = shown + (0.3 * hidden if what == "challenger" else 0.3 * other)
        return y, score, rival, at

    present = customers(world.customers)
    if world.same:
        parts = [rows(present, 0) for _ in range(-(-world.validation // int(present[3].sum())))]
        held = [np.concatenate(each)[: world.validation] for each in zip(*parts, strict=True)]
    else:
        others = customers(world.validation)
        others[3] = 1.0
        held = list(rows(others, 0))
    names = np.arange(world.customers)
    found: list[tuple[np.ndarray, ...]] = []
    for week in range(1, world.weeks + 1):
        y, score, rival, at = rows(present, week)
        known = rng.random(y.size) >= np.where(y, world.missing_positives, world.missing)
        found.append(tuple(e[known] for e in (y, score, rival, np.full(y.size, week), names[at])))
        gone = np.flatnonzero(rng.random(world.customers) < world.turnover)
        present[:, gone] = customers(gone.size)
        names[gone] = names.max() + 1 + np.arange(gone.size)
    y, score, rival, period, customer = (np.concatenate(each) for each in zip(*found, strict=True))
    return Stream(y, score, rival, period, customer, (held[0], held[1], held[3]))


def alarms(world: World, rng: np.random.Generator, what: str, test: str, grouped: bool) -> bool:
    """Whether a test raises an alarm in a year."""
    stream = simulate(world, rng, what)
    group: Any = stream.customer if grouped else None
    y, score, at = stream.held
    own = at if world.same else None
    if test == "ranking":
        validation = measure_validation(y, score, group=own)
        periods = measure_periods(stream.y, stream.score, stream.period, group=group)
        found = monitor_windows(validation, periods, planned=world.weeks)
        return found.alarm is not None
    if test == "challenger":
        compared = compare_by_period(
            stream.y, stream.score, stream.rival, stream.period, group=group
        )
        return any(each.winner for each in compared)
    chosen = choose_calibration(y, score, group=own)
    if chosen.held_out is None:
        return False
    held = chosen.held_out
    evaluated = reliability(held.y, held.probability, group=held.group, n_bootstrap=20)
    reference = calibration_reference(
        evaluated.in_the_large,
        evaluated.slope if np.isfinite(evaluated.slope.low) else None,
        level=0.95,
        positives=evaluated.n_positives,
        negatives=evaluated.n - evaluated.n_positives,
    )
    probability = chosen.calibration.probability(stream.score)
    tests = [
        measure_calibration(
            rows.scores[0],
            rows.positive,
            first=first,
            last=last,
            entity=None if entity is None or rows.unit is None else entity[rows.unit],
        )
        for first, last, rows, entity in rows_by_test(
            stream.y, {"p": probability}, stream.period, sample_weight=None, group=group
        )
    ]
    both = monitor_calibration(reference, tests, planned=world.weeks)
    return any(each is not None and each.alarm is not None for each in (both.level, both.slope))
