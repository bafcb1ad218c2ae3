"""The class totals of a ranking: what its ROC curve forgets, and the intervals at its points need."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.errors import InvalidData
from core.metrics.groups import Rows, ScoreGroups
from core.metrics.influence import effective_units


@dataclass(frozen=True)
class ClassTotals:
    """What a curve forgets about its data and an operating point needs.

    Parameters
    ----------
    positive, negative : float > 0
        Total weight of each class; the numbers of rows when unweighted.
    positive_effective, negative_effective : float > 0
        Kish's effective numbers of rows, (Σw)² / Σw²; the numbers of rows when unweighted. Of rows that are drawn
        in groups, the effective numbers of groups: as if the rows of a group were all flagged or none. That errs to the
        safe side.

    Raises
    ------
    InvalidData
        If one is not positive and finite.
    """

    positive: float
    negative: float
    positive_effective: float
    negative_effective: float

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0.0 < value < math.inf:
                raise InvalidData(f"{name} must be positive and finite, got {value}")

    @classmethod
    def of_counts(cls, positives: int, negatives: int) -> ClassTotals:
        """The totals of unweighted data."""
        return cls(positives, negatives, positives, negatives)

    @property
    def prevalence(self) -> float:
        """Positive share of the weight."""
        return self.positive / (self.positive + self.negative)


def totals_of(rows: Rows, groups: ScoreGroups) -> ClassTotals:
    """The class totals of rows and their tie groups."""
    return ClassTotals(
        float(groups.flagged_positive[-1]),
        float(groups.flagged_negative[-1]),
        *effective_units(rows),
    )
