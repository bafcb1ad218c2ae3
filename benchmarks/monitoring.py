"""How often monitors raise false alarms, and how late true ones, by simulation: `python -m benchmarks.monitoring`.

`windows`: the window monitor over a year of weeks, in the designs of tests/core/monitoring/simulator.py. False alarms
in percent: at α .05 and .02, of weekly tests with Bonferroni's level, and of weekly tests at 5 %. Delay: weeks from a
fall of the AUC by .05 after week 8 (from .99 to .97) to the alarm, at α .05, as quartiles; beside it that of
Bonferroni's. For a quarter of the trials.

`effects`: the same where the AUC of a week varies around .8 as an AR(1) process with correlation .5, by the tolerance.

`weighted`: how often the 95 % intervals of weighted metrics cover, and the AUC of the rows with outcomes beside them.

`betting`: false alarms of tests by betting at α .05, and delays at α .01, as quartiles.

`calibration`: see `benchmarks.calibration_monitor`. `line`: how often the 95 % intervals of level and slope cover.

`guarantee`: guaranteed rates with missing outcomes, at α .01: years with an alarm of the known outcomes as if none were
missing, with a capital at random, with an alarm, and without one but with an unknown answer.

`customers`: guaranteed rates of the same customers every week, at α .01: years with an alarm by weighted rates with
ids, by the known outcomes with ids, and by betting as if rows were independent; and years in which the autocorrelation
of the rows, in random order, is significant in some week. For a quarter of the trials.

`paired`: two models on the same rows, 2,000 a week: how often one of two equal ones wins, and weeks until the better
one has won.

`drift`: how often the test of a population stability index finds a change where there is none, over nominal, for
50 pairs of samples a trial.

`accepted`: years with an alarm of a shift that was accepted and stays, at 1 %, and how often one that is 1.3 and 1.9
times as far is found in one week.

`limits`: how often the 95 % intervals of 200 customers with ten rows each cover, without and with their ids.

By chance alone a rate of n trials is within ±2 √(p (1 − p) / n): ±1.5 points of 5 % for 800.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.stats import norm

from app.feedback.scheduled_tests import has_grown
from benchmarks import at_least_one, calibration_monitor
from core.metrics import WindowArea, auc_interval, compare_metrics
from core.metrics.drift import population_stability
from core.metrics.serial import order_matters
from core.monitoring import (
    Measurement,
    compare_by_period,
    monitor_rate,
    monitor_windows,
    window,
)
from tests.core.monitoring import guaranteed
from tests.core.monitoring.simulator import DESIGNS, WEEKS, Design
from tests.core.monitoring.test_paired import EQUAL, draw
from tests.core.monitoring.test_weighted import SELECTIONS, decisions, draw_customers, metrics_of

BEGINS = 8  # the week after which something changes
NEVER = 99.0
PATHS = (
    1 << 13
)  # each trial has critical values of its own: those of the service are simulated more exactly
FEW: dict[str, tuple[int, dict[str, float]]] = {"2,000": (2_000, {}), "8,000": (8_000, {})}


def quartiles(weeks: Sequence[float]) -> str:
    """Write the quartiles of delays; a dash for more weeks than were simulated."""
    found = np.quantile(weeks, [0.25, 0.5, 0.75], method="higher")
    return " / ".join("–" if each >= NEVER else f"{each:.0f}" for each in found)


def percent(part: float | np.floating[Any]) -> str:
    return f"{100.0 * part:.1f}"


def scores_of(validation: Measurement, periods: Sequence[Measurement]) -> np.ndarray:
    """Standardised fall of each test alone."""
    return np.array(
        [
            (validation.value - each.value) / math.sqrt(validation.variance + each.variance)
            for each in periods
        ]
    )


def raised(
    validation: Measurement, periods: Sequence[Measurement], alpha: float, tolerance: float = 0.0
) -> bool:
    found = monitor_windows(validation, periods, planned=WEEKS, alpha=alpha, tolerance=tolerance)
    return found.alarm is not None


def changing(before: float, after: float) -> Callable[[int], float]:
    """Return a metric by week that changes once."""
    return lambda week: after if week > BEGINS else before


def windows(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of the window monitor."""
    yield "| design | α .05 | α .02 | Bonferroni | uncorrected | delay | Bonferroni's delay |"
    yield "|---|---:|---:|---:|---:|---|---|"
    weekly, plain = (NormalDist().inv_cdf(1.0 - level) for level in (0.05 / WEEKS, 0.05))
    for name in [each for each in DESIGNS if not chosen or each in chosen]:
        design, false = DESIGNS[name], np.zeros(4)
        delays: tuple[list[float], list[float]] = ([], [])
        for trial in range(trials):
            validation, periods = design.run(np.random.default_rng([31, trial]))
            z = scores_of(validation, periods)
            false += np.array(
                [
                    *(raised(validation, periods, alpha) for alpha in (0.05, 0.02)),
                    (z > weekly).any(),
                    (z > plain).any(),
                ]
            )
            if trial % 4:
                continue
            low = 0.97 if design.area > 0.9 else design.area - 0.05
            validation, periods = design.run(
                np.random.default_rng([32, trial]),
                area_in=changing(design.area, low),
            )
            alarm = monitor_windows(validation, periods, planned=WEEKS, alpha=0.05).alarm
            z = scores_of(validation, periods)
            alone = [each.last for each, at in zip(periods, z, strict=True) if at > weekly]
            firsts = (alarm.period if alarm else NEVER, alone[0] if alone else NEVER)
            for first, into in zip(firsts, delays, strict=True):
                if first > BEGINS:
                    into.append(first - BEGINS if first < NEVER else NEVER)
        shown = " | ".join(percent(each) for each in false / trials)
        yield f"| {name} | {shown} | {quartiles(delays[0])} | {quartiles(delays[1])} |"


def effects(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of week effects."""
    tolerances = (0.0, 0.01, 0.02)
    yield (
        "| standard deviation of week effects | "
        + " | ".join(f"tolerance {each:g}" for each in tolerances)
        + " |"
    )
    yield "|---:|---:|---:|---:|"
    for deviation in (0.005, 0.01):
        false = np.zeros(len(tolerances))
        for trial in range(trials):
            rng = np.random.default_rng([33, trial])
            level = [deviation * rng.normal()]
            for _ in range(WEEKS):
                level.append(0.5 * level[-1] + math.sqrt(0.75) * deviation * rng.normal())
            validation, periods = Design().run(
                rng, area_in=[0.8 + each for each in level].__getitem__
            )
            false += np.array([raised(validation, periods, 0.05, each) for each in tolerances])
        yield f"| {deviation:g} | " + " | ".join(percent(each) for each in false / trials) + " |"


def weighted(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of weighted metrics."""
    yield (
        "| decisions | explored positives | have intervals | AUC | recall | precision | miss rate | true AUC | "
        "AUC of rows with outcomes | covers |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    every = {**FEW, **SELECTIONS}
    for name in [each for each in every if not chosen or each in chosen]:
        n, options = every[name]
        inside: dict[str, list[bool]] = {"auc": [], "recall": [], "precision": [], "miss_rate": []}
        explored, naive, covers = [], [], []
        truth: dict[str, float] = {}
        for trial in range(trials):
            rows, truth = decisions(n, 5000 + trial, **options)
            found = metrics_of(rows)
            explored.append(found.explored_positives)
            for metric, covered in inside.items():
                each = getattr(found, metric)
                if each is not None and each.low is not None:
                    covered.append(each.low <= truth[metric] <= each.high)
            known = rows["known"]
            of_known = auc_interval(rows["positive"][known], rows["score"][known])
            naive.append(of_known.value)
            covers.append(of_known.low <= truth["auc"] <= of_known.high)
        shown = " | ".join(
            percent(np.mean(covered)) if covered else "–" for covered in inside.values()
        )
        yield (
            f"| {name} | {np.mean(explored):.1f} | {percent(len(inside['auc']) / trials)} | {shown} "
            f"| {truth['auc']:.3f} | {np.mean(naive):.3f} | {percent(np.mean(covers))} |"
        )


def alarm_week(found: object, begins: int) -> float:
    """Return the delay of an alarm of a betting monitor."""
    alarm = getattr(found, "alarm", None)
    return NEVER if alarm is None else alarm.period - begins


def betting(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the tables of tests by betting."""
    yield "| negatives a week, bound | false alarms | delay, rate 1.4 times | delay, rate twice |"
    yield "|---|---:|---|---|"
    for n, bound in ((1800, 0.05), (200, 0.05), (1800, 0.01), (60, 0.01)):
        rng, weeks = np.random.default_rng(34), np.arange(1, WEEKS + 1)
        false = [
            monitor_rate(
                rng.binomial(n, bound, WEEKS), [n] * WEEKS, bound, planned=WEEKS, alpha=0.05
            ).alarm
            is not None
            for _ in range(trials)
        ]
        delays = []
        for factor in (1.4, 2.0):
            rate = np.where(weeks > BEGINS, factor * bound, 0.9 * bound)
            delays.append(
                [
                    alarm_week(
                        monitor_rate(rng.binomial(n, rate), [n] * WEEKS, bound, planned=WEEKS),
                        BEGINS,
                    )
                    for _ in range(max(1, trials // 4))
                ]
            )
        yield f"| {n:,}, {bound:g} | {percent(np.mean(false))} | {quartiles(delays[0])} | {quartiles(delays[1])} |"


def guarantee(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of guaranteed rates with missing outcomes."""
    yield "| rate; missing | raw | at random | alarm | unknown | week of the alarm |"
    yield "|---|---:|---:|---:|---:|---|"
    for name, design in guaranteed.DESIGNS.items():
        counts, weeks = np.zeros(4), []
        for trial in range(trials):
            found, raw = design.monitor(np.random.default_rng([39, trial]))
            alarm = found.alarm is not None
            counts += [
                raw.alarm is not None,
                any(map(guaranteed.is_at_random, found.tests)),
                alarm,
                not alarm and any(test.unknown for test in found.tests),
            ]
            weeks.append(alarm_week(found, 0))
        shown = " | ".join(percent(each) for each in counts / trials)
        yield f"| {name} | {shown} | {quartiles(weeks)} |"


def customers(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of guaranteed rates of customers who come back."""
    few = max(1, trials // 4)
    yield "| FPR; missing; customers, sd | weighted | raw | independent | autocorrelated | week of the alarm |"
    yield "|---|---:|---:|---:|---:|---|"
    worlds = [
        *(guaranteed.Customers(rate, 0.3) for rate in (0.045, 0.05, 0.07)),
        *(guaranteed.Customers(0.05, 0.0, 500, sd=sd) for sd in (1.0, 2.0)),
    ]
    for world in worlds:
        counts, weeks = np.zeros(4), []
        for trial in range(few):
            found = world.monitor(np.random.default_rng([40, trial]))
            rng = np.random.default_rng([41, trial])
            flags = [week["event"][week["of_class"] == 1.0] for week in world.draw(rng, WEEKS)]
            counts += [
                *(each.alarm is not None for each in found),
                any(
                    order_matters(rng.permutation(each).astype(np.intp), 2, ordered=True)
                    for each in flags
                ),
            ]
            weeks.append(alarm_week(found[0], 0))
        shown = " | ".join(percent(each) for each in counts / few)
        yield (
            f"| {world.rate}; {100 * world.missing:.0f} %; {world.customers:,} × {world.each}, {world.sd:g} | {shown} "
            f"| {quartiles(weeks)} |"
        )


def peeks(y: np.ndarray, champion: np.ndarray, challenger: np.ndarray, period: np.ndarray) -> bool:
    """Whether a paired test at 5 % after some week calls two models different."""
    for week in range(1, WEEKS + 1):
        seen = period <= week
        (found,) = compare_metrics(y[seen], [champion[seen], challenger[seen]], [WindowArea()])
        p_value = found.differences[0].p_value
        if p_value is not None and p_value < 0.05:
            return True
    return False


def paired(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the tables of two models."""
    few = max(1, trials // 4)
    yield "| equal models | false winners | weeks until equivalent up to .01 |"
    yield "|---|---:|---|"
    for name, (metric, options) in EQUAL.items():
        false, equivalent = 0, []
        for trial in range(few):
            tests = compare_by_period(
                *draw(np.random.default_rng([36, trial]), WEEKS, **options), metric
            )
            false += any(test.winner for test in tests)
            weeks = [test.period for test in tests if test.equivalent]
            equivalent.append(weeks[0] if weeks else NEVER)
        yield f"| {name} | {percent(false / few)} | {quartiles(equivalent)} |"
    peeking = [
        peeks(*draw(np.random.default_rng([36, trial]), WEEKS)) for trial in range(max(1, few // 2))
    ]
    yield f"| usual, paired test at 5 % every week | {percent(np.mean(peeking))} | |"
    yield ""
    yield (
        "| AUC of champion, challenger | weeks until the challenger wins | wins of the worse model "
        "| weeks predicted in week 2 |"
    )
    yield "|---|---|---:|---|"
    for areas in ((0.8, 0.805), (0.8, 0.81), (0.8, 0.82)):
        won, wrong, foreseen = [], 0, []
        for trial in range(few):
            tests = compare_by_period(*draw(np.random.default_rng([37, trial]), WEEKS, areas=areas))
            weeks = [test.period for test in tests if test.winner == "challenger"]
            won.append(weeks[0] if weeks else NEVER)
            wrong += any(test.winner == "champion" for test in tests)
            foreseen.append(math.ceil((tests[1].rows + (tests[1].further_rows or 0)) / 2000))
        yield f"| {areas[0]:g}, {areas[1]:g} | {quartiles(won)} | {percent(wrong / few)} | {quartiles(foreseen)} |"


SHARES = {
    "10 equal bins": np.full(10, 0.1),
    "10 bins and 2 rare": np.array([0.001, *[0.0998] * 10, 0.001]),
    "10 bins, Zipf": (1.0 / np.arange(1, 11) ** 1.5) / (1.0 / np.arange(1, 11) ** 1.5).sum(),
}


def drift(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of tests of drift."""
    levels = (5e-5, 1e-3, 0.05)
    yield (
        "| distribution | rows before, after | " + " | ".join(f"{each:g}" for each in levels) + " |"
    )
    yield "|---|---|---:|---:|---:|"
    for name, shares in SHARES.items():
        for n, m in ((500, 100), (10_000, 100), (10_000, 300), (10_000, 1_000), (10_000, 5_000)):
            rng, found = np.random.default_rng([41, n, m]), np.zeros(len(levels))
            for _ in range(50 * trials):
                before, after = rng.multinomial(n, shares), rng.multinomial(m, shares)
                p_value = population_stability(before, after, (n, m)).p_value
                found += p_value <= np.array(levels)
            ratios = " | ".join(f"{each:.2f}" for each in found / (50 * trials * np.array(levels)))
            yield f"| {name} | {n:,}, {m:,} | {ratios} |"


def psi_after(
    rng: np.random.Generator, before: np.ndarray, n: int, shift: float
) -> dict[str, float]:
    """Draw n rows of a normal distribution that has moved, and compare them over the tenths before."""
    shares = np.diff([0.0, *norm.cdf(norm.ppf(np.arange(1, 10) / 10) - shift), 1.0])
    of = population_stability(before, rng.multinomial(n, shares), (before.sum(), n)).psi
    return {"psi": of.value, "low": of.low, "high": of.high}


def accepted(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of accepted shifts."""
    yield "| rows a week | PSI | years with an alarm | 1.3 times | 1.9 times |"
    yield "|---:|---:|---:|---:|---:|"
    period = {"alpha": 0.01 / WEEKS, "level": 0.95, "features": []}
    for n, shift in ((300, 0.45), (300, 0.4), (1_000, 0.4), (2_000, 0.4), (2_000, 1.0)):
        sizes, found = [], np.zeros(3)
        for trial in range(trials):
            rng = np.random.default_rng([42, n, trial])
            before = rng.multinomial(5_000, np.full(10, 0.1))
            at_first: Any = psi_after(rng, before, n, shift)
            year = [psi_after(rng, before, n, shift) for _ in range(WEEKS - 1)]
            later = [[psi_after(rng, before, n, factor * shift)] for factor in (1.3, 1.9)]
            sizes += [each["psi"] for each in year]
            found += [
                any(has_grown(each, at_first, period) for each in weeks) for weeks in (year, *later)
            ]
        shown = " | ".join(percent(each) for each in found / trials)
        yield f"| {n:,} | {np.mean(sizes):.2f} | {shown} |"


def limits(trials: int, chosen: Sequence[str]) -> Iterator[str]:
    """Yield the rows of the table of intervals where customers have several rows."""
    yield "| metric | without ids | with ids |"
    yield "|---|---:|---:|"
    rng, names = np.random.default_rng(43), ("auc", "precision", "miss_rate", "recall")
    truth = draw_customers(rng, 200_000, with_ids=False)
    covers = np.zeros((2, len(names)))
    for _ in range(trials):
        for i in range(2):
            found = draw_customers(rng, 200, with_ids=i == 1)
            of = [(getattr(found, name), getattr(truth, name).value) for name in names]
            covers[i] += [each.low <= value <= each.high for each, value in of]
    for name, shares in zip(names, covers.T / trials, strict=True):
        yield f"| {name} | " + " | ".join(percent(each) for each in shares) + " |"


TABLES: dict[str, Callable[[int, Sequence[str]], Iterator[str]]] = {
    "windows": windows,
    "effects": effects,
    "weighted": weighted,
    "betting": betting,
    "guarantee": guarantee,
    "customers": customers,
    "paired": paired,
    "calibration": calibration_monitor.table,
    "line": calibration_monitor.line,
    "drift": drift,
    "accepted": accepted,
    "limits": limits,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=at_least_one, default=800)
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=[*TABLES])
    parser.add_argument(
        "--designs", nargs="+", default=[], metavar="NAME",
        choices=[*DESIGNS, *FEW, *SELECTIONS, *calibration_monitor.CASES],
        help="rows of the tables windows, weighted and calibration; default: all",
    )  # fmt: skip
    given = parser.parse_args()
    usual = window.N_PATHS
    try:
        _simulate(PATHS)
        for name in given.tables:
            print(f"{name}, {given.trials} trials\n")
            for line in TABLES[name](given.trials, given.designs):
                print(line, flush=True)
            print()
    finally:
        _simulate(usual)


def _simulate(paths: int) -> None:
    """Set the number of paths of the window monitor."""
    window.N_PATHS = paths
    window._critical_values.cache_clear()


if __name__ == "__main__":
    main()
