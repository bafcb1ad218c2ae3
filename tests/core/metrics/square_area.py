"""The smallest metric: what CONTRIBUTING says that a new one needs."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

from core.metrics import WindowArea
from core.metrics.functionals.base import METRICS, Derivatives, Masses, Metric

WITH_SQUARE_AREA = deepcopy(METRICS)
"""The metrics by name, and this one."""


@WITH_SQUARE_AREA.named("square_area:{fpr_max}")
@dataclass(frozen=True)
class SquareArea(Metric):
    """The square of a partial area."""

    fpr_max: float

    @property
    def name(self) -> str:
        return f"square_area:{self.fpr_max:g}"

    @property
    def area(self) -> WindowArea:
        return WindowArea(0.0, self.fpr_max)

    def of(self, masses: Masses) -> Derivatives:
        value, up, down, slope = self.area.of(masses)
        factor = 2.0 * value
        return Derivatives(value**2, factor * up, factor * down, factor * slope)

    def chance(self, masses: Masses) -> float | None:
        chance = self.area.chance(masses)
        return None if chance is None else chance**2

    def top(self, masses: Masses) -> float:
        return 1.0

    def trials(self, masses: Masses) -> float:
        return self.area.trials(masses)
