"""Years of weekly tests of a calibration that was estimated: the table `calibration` of `benchmarks.monitoring`.

Each year draws validation rows (10,000 by default), fits a calibration on them as a training does, and takes the
reference from its held-out rows. Then 52 weeks of 2,000 rows follow, 13 % of them positive. The score is normal with
an AUC of about .79. Nothing changes after the validation, unless the case says so. Rows are selected, weighted and
compared as the service does it; α is .01 a year. An alarm of level or slope counts.

The cases are the normal ones of the field: outcomes of a selection, sampled outcomes, time windows, groups, customers
or rings whose rows go together, and an acknowledged alarm.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from app.feedback.period_rows import UNKNOWN, PeriodRows
from app.feedback.scheduled_tests import (
    CalibratedCurve,
    CalibrationReference,
    StoredTest,
    held_out_reference,
    reference_of,
    renewed_reference,
    select,
    side_of_cutoff,
    stored,
)
from app.models.calibrations import reliability_record
from core.metrics import ClassTotals, roc_curve
from core.monitoring import (
    CalibrationMeasurement,
    log_odds_gap,
    measure_calibration,
    measure_calibration_difference,
    monitor_calibration,
    monitor_differences,
)
from core.monitoring.measuring import MIN_POSITIVES
from core.probability import Calibration, choose_calibration, reliability
from tests.core.metrics.test_cox import DESIGNS, sigmoid
from tests.core.metrics.test_cox import draw as draw_rows

WEEKS, ALPHA, BEGINS = 52, 0.01, 8
FLAGGED = 1.2815515655446004  # the score that 10 % of the rows exceed
GROUP_ALPHA = 0.0042  # the share of a group in a budget of .05


@dataclass(frozen=True)
class World:
    """Where the rows come from, and which outcomes become known."""

    validation: int = 10_000
    flat: bool = False
    """The risk does not rise above the threshold."""
    explored: float = 1.0
    """The share of unflagged rows whose outcome is looked for. 0: of flagged ones only."""
    halved: bool = False
    """Half of the negatives are sampled, and have weight 2."""
    windows: int = 1
    """Time windows of the validation."""
    spread: float = 0.0
    """Standard deviation of the level of the windows before the last, which is that of all weeks."""
    months: float = 0.0
    """Standard deviation of the level of each four weeks."""
    ring: int = 1
    """Rows of each positive, which have one score and one id."""
    shift: float = 0.0
    """Change of the level after week `BEGINS`."""
    slope: float = 1.0
    """Factor of the log odds after week `BEGINS`."""


@dataclass(frozen=True)
class Rows:
    """Drawn rows: score, outcome, and the number of the ring."""

    score: np.ndarray
    positive: np.ndarray
    ring: np.ndarray


def draw(
    rng: np.random.Generator, world: World, n: int, level: float = 0.0, slope: float = 1.0
) -> Rows:
    score = rng.normal(size=n)
    odds = level - 2.2 + 1.2 * slope * (np.minimum(score, FLAGGED) if world.flat else score)
    positive = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    if world.ring == 1:
        return Rows(score, positive, np.arange(n))
    # A ring is as likely as the positives of all its rows would be one by one.
    kept = ~positive | (rng.random(n) < 1.0 / world.ring)
    rows = np.repeat(np.flatnonzero(kept), np.where(positive[kept], world.ring, 1))
    return Rows(score[rows], positive[rows], rows)


def calibrate(
    rng: np.random.Generator, world: World
) -> tuple[Calibration, CalibrationReference, CalibratedCurve]:
    """Fit a calibration as a training does, and return what the monitor knows of it."""
    n = world.validation // world.windows
    levels = [*rng.normal(0.0, world.spread, world.windows - 1), 0.0]
    parts = [draw(rng, world, n, level) for level in levels]
    rows = Rows(
        *(
            np.concatenate([getattr(each, name) for each in parts])
            for name in ("score", "positive", "ring")
        )
    )
    group = None if world.ring == 1 else rows.ring
    period = np.repeat(np.arange(world.windows), [each.score.size for each in parts])
    chosen = choose_calibration(
        rows.positive, rows.score, group=group, period=period if world.windows > 1 else None
    )
    held = chosen.held_out
    assert held is not None
    found = reliability(held.y, held.probability, group=held.group, n_bootstrap=20)
    document: Any = reliability_record(found) | {"later": held.later, "periods": None}
    if chosen.periods is not None:
        levels_of = [each._asdict() for each in chosen.periods.levels]
        document["periods"] = {"levels": levels_of}
    document = json.loads(json.dumps(document, default=vars))
    positives = int(rows.positive.sum())
    classes = (positives, rows.positive.size - positives)
    curve = roc_curve(rows.positive, rows.score)
    return (
        chosen.calibration,
        held_out_reference(document, 0.0, classes),
        CalibratedCurve(
            curve,
            ClassTotals.of_counts(*classes),
            chosen.calibration.probability(curve.thresholds[1:]),
        ),
    )


def decisions(
    rng: np.random.Generator,
    world: World,
    calibration: Calibration,
    week: int,
    level: float = 0.0,
) -> PeriodRows:
    """Draw the decisions of a week, of which some outcomes are known."""
    shift, slope = (world.shift, world.slope) if week > BEGINS else (0.0, 1.0)
    drawn = draw(rng, world, 2_000, level + shift, slope)
    n, flag = drawn.score.size, drawn.score >= FLAGGED
    explored = ~flag & (rng.random(n) < world.explored)
    weight = np.ones(n)
    if world.halved:
        weight[~drawn.positive] = 2.0
    rows = PeriodRows(
        models=["mdl_1"],
        model=np.zeros(n, np.int32),
        alias_revision=np.ones(n, np.int32),
        at=np.zeros(n),
        score=drawn.score,
        probability=calibration.probability(drawn.score),
        threshold=np.full(n, FLAGGED),
        flag=flag.astype(np.int8),
        explored=explored,
        propensity=np.where(flag, 1.0, world.explored),
        keep=np.ones(n),
        label=np.where(flag | explored, drawn.positive, UNKNOWN).astype(np.int8),
        weight=weight,
        corrected=np.zeros(n, np.int32),
        ambiguous=np.zeros(n, np.bool_),
        entity=drawn.ring.astype(np.uint64) + np.uint64(week * 1_000_000),
        identified=np.full(n, world.ring > 1),
        kept=np.arange(n),
    )
    return rows.take(drawn.positive | (rng.random(n) < 0.5)) if world.halved else rows


def measured(
    rng: np.random.Generator, world: World, calibration: Calibration
) -> list[CalibrationMeasurement]:
    """Measure the interim tests of a year."""
    found, waiting = [], []
    levels = world.months * rng.normal(size=WEEKS // 4 + 1) if world.months else np.zeros(WEEKS)
    for week in range(1, WEEKS + 1):
        waiting.append((week, decisions(rng, world, calibration, week, levels[(week - 1) // 4])))
        parts = []
        for _, rows in waiting:
            selected, _ = select(rows)
            used = rows.take(selected["rows"])
            parts.append(
                (
                    used.probability,
                    used.label == 1,
                    selected["weight"][selected["rows"]],
                    used.entity,
                )
            )
        p, y, weight, entity = (np.concatenate(each) for each in zip(*parts, strict=True))
        own = measure_calibration(
            p,
            y,
            first=waiting[0][0],
            last=week,
            sample_weight=weight,
            entity=entity if world.ring > 1 else None,
        )
        if own.level.weight >= MIN_POSITIVES:
            found.append(own)
            waiting = []
    return found


def alarm_of(
    reference: CalibrationMeasurement,
    tests: Sequence[CalibrationMeasurement],
    alpha: float = ALPHA,
    tolerance: float = 0.0,
    since: int = 0,
) -> int | None:
    found = monitor_calibration(
        reference,
        [each for each in tests if each.level.first > since],
        planned=WEEKS,
        alpha=alpha,
        tolerance=tolerance,
        since=since,
    )
    both = [
        each.alarm.period
        for each in (found.level, found.slope)
        if each is not None and each.alarm is not None
    ]
    return min(both, default=None)


def year(
    rng: np.random.Generator, world: World, alpha: float = ALPHA, tolerance: float = 0.0
) -> float | None:
    """Return the week of the first alarm, infinite without one; None if the calibration is not tested."""
    calibration, held_out, curve = calibrate(rng, world)
    reference = reference_of(held_out)
    if world.explored == 0.0:
        side = side_of_cutoff(decisions(rng, world, calibration, 0), flagged=True)
        reference = None if side is None else side.level_on(curve)
    if reference is None:
        return None
    return alarm_of(reference, measured(rng, world, calibration), alpha, tolerance) or math.inf


def after_renewal(rng: np.random.Generator, world: World, second: float) -> float | None:
    """Return the week of the first alarm after the first one was acknowledged with "renew"; None without a first one.

    The level has moved by `world.shift`, and moves by `second` more, twelve weeks after the acknowledgement.
    """
    calibration, held_out, _ = calibrate(rng, world)
    reference = reference_of(held_out)
    tests = measured(rng, world, calibration)
    assert reference is not None
    first = alarm_of(reference, tests)
    if first is None or first > 30:
        return None
    later = replace(world, shift=world.shift + second)
    for week in range(first + 13, WEEKS + 1):
        rows = decisions(rng, later, calibration, week)
        tests[week - 1] = measure_calibration(
            rows.probability, rows.label == 1, first=week, last=week
        )
    after = [
        cast(
            StoredTest,
            {"state": {"level": stored(each.level), "slope": each.slope and stored(each.slope)}},
        )
        for each in tests[first:]
    ]
    for used in range(1, len(after)):
        renewed = renewed_reference(held_out, after[:used])
        if not isinstance(renewed, str):
            again = alarm_of(renewed, tests, since=first + used)
            return math.inf if again is None else again - first - 12
    return math.inf


def of_group(rng: np.random.Generator, world: World, difference: float) -> float | None:
    """Return the week of the first alarm of a group whose scores are one standard deviation higher."""
    calibration, held_out, _ = calibrate(rng, world)
    reference = reference_of(held_out)
    if reference is None or reference.slope is None:
        return None
    tests, gaps = [], []
    for week in range(1, WEEKS + 1):
        group = rng.random(2_000) < 0.5
        score = rng.normal(size=2_000) + np.where(group, 0.5, -0.5)
        odds = -2.2 + 1.2 * score + difference * group
        y = rng.random(2_000) < 1.0 / (1.0 + np.exp(-odds))
        p = calibration.probability(score)
        found = measure_calibration_difference(p, y, group, first=week, last=week)
        if found is not None and found.weight >= MIN_POSITIVES:
            tests.append(found)
            gaps.append(log_odds_gap(p, group))
    variance = float(np.mean(gaps[:4])) ** 2 * reference.slope.variance
    alarm = monitor_differences(
        tests, planned=WEEKS, alpha=GROUP_ALPHA, reference_variance=variance
    ).alarm
    return math.inf if alarm is None else alarm.period


@dataclass(frozen=True)
class Case:
    """A row of the table: what the world does, the nominal percentage of false alarms, and a year."""

    nominal: str
    run: Callable[..., float | None]
    world: World = field(default_factory=World)
    options: tuple[float, ...] = ()


CASES: dict[str, Case] = {
    "steady": Case("1", year),
    "nothing changes, 1,000 validation rows": Case("1", year, World(validation=1_000)),
    "positives in rings of four": Case("5", year, World(ring=4), (0.05,)),
    "half of the negatives sampled, weight 2": Case("1", year, World(halved=True)),
    **{
        f"outcomes of flagged rows only{', flat at the top' if flat else ''}, {n:,} validation rows": Case(
            "1", year, World(validation=n, explored=0.0, flat=flat)
        )
        for n in (1_000, 2_500, 10_000)
        for flat in (False, True)
    },
    "2 % explored": Case("1", year, World(explored=0.02)),
    "2 % explored, flat at the top": Case("1", year, World(explored=0.02, flat=True)),
    "20 % explored, flat at the top": Case("1", year, World(explored=0.2, flat=True)),
    **{
        f"{n} time windows, levels before the last ± {spread:g}": Case(
            "1", year, World(windows=n, spread=spread)
        )
        for n in (6, 12)
        for spread in (0.0, 0.15, 0.3)
    },
    **{
        f"12 time windows and each four weeks ± {spread:g}, tolerance {tolerance:g}": Case(
            "1", year, World(windows=12, spread=spread, months=spread), (ALPHA, tolerance)
        )
        for spread in (0.15, 0.3)
        for tolerance in (0.0, 2.0 * spread, 3.0 * spread)
    },
    **{
        f"groups one sd apart, {n:,} validation rows": Case(
            "0.42", of_group, World(validation=n), (0.0,)
        )
        for n in (1_000, 2_500, 10_000)
    },
    "after renewal of a shift of .15": Case("1", after_renewal, World(shift=0.15), (0.0,)),
    "after renewal of a shift of .3": Case("1", after_renewal, World(shift=0.3), (0.0,)),
    "found: level + .3": Case("", year, World(shift=0.3)),
    "found: level + .4, 2,500 validation rows": Case("", year, World(validation=2_500, shift=0.4)),
    "found: level + .3, 6 time windows": Case("", year, World(windows=6, shift=0.3)),
    "found: level + .3, 20 % explored": Case("", year, World(explored=0.2, shift=0.3)),
    "found: level + .4, outcomes of flagged rows only": Case(
        "", year, World(explored=0.0, shift=0.4)
    ),
    "found: level + .4, outcomes of flagged rows only, 2,500 validation rows": Case(
        "", year, World(validation=2_500, explored=0.0, shift=0.4)
    ),
    "found: slope .7": Case("", year, World(slope=0.7)),
    "found: groups differ by .4": Case("", of_group, World(), (0.4,)),
    "found: groups differ by .4, 1,000 validation rows": Case(
        "", of_group, World(validation=1_000), (0.4,)
    ),
    "found: level − .3 after renewal of + .3": Case("", after_renewal, World(shift=0.3), (-0.3,)),
}


def table(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table: percent of the tested years with an alarm, and the median week of the alarms."""
    yield "| what the world does | nominal | years | not tested | alarms | standard error | median week |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for number, (name, case) in enumerate(CASES.items()):
        if chosen and name not in chosen:
            continue
        found = [
            case.run(np.random.default_rng([38, number, trial]), case.world, *case.options)
            for trial in range(trials)
        ]
        tested = [each for each in found if each is not None]
        alarms = [each for each in tested if each < math.inf]
        shown = ["–", "–", "–"]
        if tested:
            rate = len(alarms) / len(tested)
            error = math.sqrt(max(rate * (1.0 - rate), 0.25 / len(tested)) / len(tested))
            week = f"{np.median(alarms):.0f}" if alarms else "–"
            shown = [f"{100.0 * rate:.1f}", f"{100.0 * error:.1f}", week]
        yield f"| {name} | {case.nominal} | {trials} | {trials - len(tested)} | {' | '.join(shown)} |"


def line(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of Cox's line."""
    yield "| sample | drawn rows | level, % | slope, % |"
    yield "|---|---:|---:|---:|"
    for name in [each for each in DESIGNS if not chosen or each in chosen]:
        for n in (1_000, 3_000, 10_000):
            inside = np.zeros(2)
            for trial in range(trials):
                y, odds, options = draw_rows(name, np.random.default_rng([39, trial]), n)
                found = reliability(y, sigmoid(odds), n_bootstrap=20, **options)
                for i, (each, truth) in enumerate(((found.in_the_large, 0.0), (found.slope, 1.0))):
                    inside[i] += each.low <= truth <= each.high
            level, slope = 100.0 * inside / trials
            yield f"| {name} | {n:,} | {level:.1f} | {slope:.1f} |"
