"""Streams of scored rows with a known truth, and how often a monitor raises an alarm on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from core.monitoring import Measurement, measure_periods, measure_validation

WEEKS = 52
Rows = tuple[np.ndarray, np.ndarray]


def gap(area: float) -> float:
    """Distance of two normal distributions with this AUC."""
    return math.sqrt(2.0) * NormalDist().inv_cdf(area)


def as_they_are(scores: np.ndarray) -> np.ndarray:
    return scores


def in_six_grades(scores: np.ndarray) -> np.ndarray:
    return np.clip(np.round(scores), -1.0, 4.0)


def steady(week: int) -> float:
    return 1.0


def swinging(week: int) -> float:
    """A prevalence from half to one and a half times the usual one, over a year."""
    return 1.0 + 0.5 * math.sin(2.0 * math.pi * week / WEEKS)


def uneven(week: int) -> float:
    """Volumes of which some weeks are merged."""
    return (0.15, 1.0, 3.0, 0.3)[week % 4]


@dataclass(frozen=True)
class Design:
    """A validation and a year of weeks."""

    area: float = 0.8
    rows: int = 2000
    prevalence: float = 0.1
    validation: int = 10_000
    observed: Callable[[np.ndarray], np.ndarray] = as_they_are
    prevalence_in: Callable[[int], float] = steady
    volume_in: Callable[[int], float] = steady
    metric: str = "auc"

    def draw(self, rng: np.random.Generator, n: int, prevalence: float, area: float) -> Rows:
        y = rng.random(n) < prevalence
        y[:2] = False, True
        return y, self.observed(rng.normal(size=n) + gap(area) * y)

    def weeks(
        self,
        rng: np.random.Generator,
        n: int = WEEKS,
        *,
        area_in: Callable[[int], float] | None = None,
    ) -> Iterator[Rows]:
        for week in range(1, n + 1):
            size = int(self.rows * self.volume_in(week))
            area = self.area if area_in is None else area_in(week)
            yield self.draw(rng, size, self.prevalence * self.prevalence_in(week), area)

    def run(
        self,
        rng: np.random.Generator,
        n: int = WEEKS,
        *,
        area_in: Callable[[int], float] | None = None,
    ) -> tuple[Measurement, list[Measurement]]:
        y, scores = self.draw(rng, self.validation, self.prevalence, self.area)
        weeks = list(self.weeks(rng, n, area_in=area_in))
        period = np.repeat(np.arange(1, n + 1), [each.size for each, _ in weeks])
        measured: Any = [np.concatenate(parts) for parts in zip(*weeks, strict=True)]
        return (
            measure_validation(y, scores, self.metric),
            measure_periods(measured[0], measured[1], period, self.metric),
        )


DESIGNS = {
    "usual": Design(),
    "few positives": Design(rows=1100, prevalence=0.05, validation=4000),
    "ties": Design(observed=in_six_grades),
    "near 1": Design(area=0.99, rows=1100, prevalence=0.05),
    "prevalence": Design(prevalence_in=swinging),
    "volumes": Design(rows=1000, volume_in=uneven),
    "small validation": Design(validation=2000),
    "partial": Design(metric="pauc:0,0.1"),
    "narrow": Design(metric="pauc:0,0.05", rows=1100, prevalence=0.05),
}
"""Seven designs of the AUC, and two of the partial AUC."""
