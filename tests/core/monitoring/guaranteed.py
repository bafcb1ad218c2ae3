"""Years of decisions under a guaranteed rate, with outcomes that are missing differently on the sides of the cutoff."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.monitoring import (
    BettingMonitor,
    BettingTest,
    Measurement,
    WindowMonitor,
    measure_rate,
    monitor_rate,
    monitor_windows,
)

ALPHA = 0.01


@dataclass(frozen=True)
class Guaranteed:
    """A rate among the rows of a class: the FPR among negatives, or the fraction of positives that are not flagged.

    `missing` are the fractions of missing outcomes on the side of the events and on the other side, and `odds` the odds
    of being missing of a row of the class, over those of another row of its side.
    """

    rate: float
    bound: float = 0.05
    of_class: float = 0.9
    others: float = 0.82
    """Rate of the events among rows that are not of the class."""
    missing: tuple[float, float] = (0.0, 0.0)
    odds: tuple[float, float] = (1.0, 1.0)
    rows: int = 2000
    weeks: int = 52

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return the counts of a year, as arguments of `monitor_rate`."""
        of_class = rng.binomial(self.rows, self.of_class, self.weeks)
        c = rng.binomial(of_class, self.rate)
        d = rng.binomial(self.rows - of_class, self.others)
        class_rows = np.column_stack([c, of_class - c])
        others = np.column_stack([d, self.rows - of_class - d])
        seen = []
        for s in (0, 1):
            share = class_rows[:, s].sum() / max(1, (class_rows + others)[:, s].sum())
            for rows, gone in zip(
                (class_rows, others), _missing(self.missing[s], self.odds[s], share), strict=True
            ):
                seen.append(rows[:, s] - rng.binomial(rows[:, s], gone))
        known_class = np.column_stack([seen[0], seen[2]])
        return {
            "events": seen[0],
            "trials": known_class.sum(axis=1),
            "known": known_class + np.column_stack([seen[1], seen[3]]),
            "decisions": class_rows + others,
        }

    def monitor(self, rng: np.random.Generator) -> tuple[BettingMonitor, BettingMonitor]:
        """Return the tests of a year, and those of the known outcomes as if none were missing."""
        counts = self.draw(rng)
        plan = {"bound": self.bound, "planned": self.weeks, "alpha": ALPHA}
        raw = {name: counts[name] for name in ("events", "trials")}
        return monitor_rate(**counts, **plan), monitor_rate(**raw, **plan)


def _missing(overall: float, odds: float, share: float) -> tuple[float, float]:
    """Return the fractions of missing outcomes of the class and of the others, from the class's share of a side."""
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        of_others = (low + high) / 2.0
        of_class = of_others * odds / (of_others * odds + 1.0 - of_others)
        is_less = share * of_class + (1.0 - share) * of_others < overall
        low, high = (of_others, high) if is_less else (low, of_others)
    return of_class, of_others


def is_at_random(test: BettingTest) -> bool:
    """Return whether the capital at random has reached 1 / α, whatever the missing outcomes could change."""
    return test.e_value >= 1.0 / ALPHA


FNR = {"bound": 0.2, "of_class": 0.1, "others": 0.955}
"""A guaranteed TPR of .8: the events are positives that were not flagged."""
DESIGNS: dict[str, Guaranteed] = {
    **{
        f"FPR {rate}; unflagged {100 * part:.0f} %": Guaranteed(rate, missing=(0.0, part))
        for rate in (0.045, 0.05, 0.07)
        for part in (0.0, 0.15, 0.2, 0.3, 0.5)
    },
    **{f"FPR {rate}; flagged 30 %": Guaranteed(rate, missing=(0.3, 0.0)) for rate in (0.045, 0.07)},
    "FPR 0.05; both 30 %": Guaranteed(0.05, missing=(0.3, 0.3)),
    **{
        f"FPR 0.045; flagged 30 %, positives at odds × {odds}": Guaranteed(
            0.045, missing=(0.3, 0.0), odds=(1.0 / odds, 1.0)
        )
        for odds in (3, 10)
    },
    **{
        f"FNR {rate}; flagged {100 * part:.0f} %": Guaranteed(rate, missing=(0.0, part), **FNR)
        for rate in (0.18, 0.2, 0.26)
        for part in (0.0, 0.2, 0.4)
    },
}
"""By the rate and the missing outcomes; the bound is .05 for the FPR and .2 for the FNR."""


@dataclass(frozen=True)
class Customers:
    """The same customers every week, some of whose negatives are more often flagged than others."""

    rate: float
    missing: float
    """Fraction of the outcomes of decisions that were not flagged."""
    customers: int = 1000
    each: int = 4
    sd: float = 1.0
    """Of the customers' log odds to be flagged."""

    def draw(self, rng: np.random.Generator, weeks: int) -> list[dict[str, Any]]:
        """Return the rows of each week, as arguments of `measure_rate`."""
        positive = rng.random(self.customers) < 0.1
        deviation = self.sd * rng.normal(size=self.customers)
        low, high = -20.0, 20.0
        grid = self.sd * np.random.default_rng(0).normal(size=100_000)
        while high - low > 1e-6:
            middle = (low + high) / 2.0
            is_less = np.mean(1.0 / (1.0 + np.exp(-grid - middle))) < self.rate
            low, high = (middle, high) if is_less else (low, middle)
        flagged = np.where(positive, 0.82, 1.0 / (1.0 + np.exp(-low - deviation)))
        entity = np.repeat(np.arange(self.customers), self.each)
        found = []
        for _ in range(weeks):
            event = rng.random(entity.size) < flagged[entity]
            is_missing = ~event & (rng.random(entity.size) < self.missing)
            of_class = np.where(is_missing, np.nan, ~positive[entity])
            found.append({"event": event, "entity": entity, "of_class": of_class})
        return found

    def monitor(
        self, rng: np.random.Generator, weeks: int = 52
    ) -> tuple[WindowMonitor, WindowMonitor, BettingMonitor]:
        """Return the tests of the weighted rate, of the known rows only, and of the bets for independent rows."""
        rows = self.draw(rng, weeks)
        weighted, raw = [], []
        for i, week in enumerate(rows, start=1):
            known = ~np.isnan(week["of_class"])
            at = {"bound": 0.05, "first": i, "last": i}
            weighted.append(measure_rate(**week, **at))
            raw.append(measure_rate(**{name: each[known] for name, each in week.items()}, **at))
        sides = [np.stack([week["event"], ~week["event"]]) for week in rows]
        negative = [week["of_class"] == 1.0 for week in rows]
        of_class = np.array(
            [(both & own).sum(axis=1) for both, own in zip(sides, negative, strict=True)]
        )
        alone = monitor_rate(
            of_class[:, 0],
            of_class.sum(axis=1),
            0.05,
            planned=weeks,
            alpha=ALPHA,
            known=[
                (both & ~np.isnan(week["of_class"])).sum(axis=1)
                for both, week in zip(sides, rows, strict=True)
            ],
            decisions=[both.sum(axis=1) for both in sides],
        )
        by_weight, by_known = (
            monitor_windows(
                Measurement(0.05, 1e-12, 1e3, 1e3),
                [each for each in tests if each is not None],
                planned=weeks,
                alpha=ALPHA,
                change="rise",
            )
            for tests in (weighted, raw)
        )
        return by_weight, by_known, alone
