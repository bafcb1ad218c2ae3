"""A year of weekly looks with a known truth, through the application's own code: the model selects whose outcomes are
known, some others are explored, and the rate of alarms of all families together is what the settings say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from app.feedback import looks as looking
from app.feedback.looks import CALIBRATION, GUARANTEE, RANKING, StoredLook
from app.feedback.period_rows import UNKNOWN, PeriodRows
from app.feedback.periods import Period, period_at
from app.platform.documents import MonitorSettings, StoredGuarantee
from core.monitoring import Measurement, measure_validation
from tests.long_form import LONG_FORM, rest

SETTINGS: MonitorSettings = {"period": "week", "alpha": 0.05, "tolerance": {}}
GUARANTEED: StoredGuarantee = {"fpr": None, "tpr": None, "flagged": 0.06, "confidence": 0.95}
VALIDATION_ROWS, WEEKLY_ROWS = 8000, 3500 if LONG_FORM else 2000
YEARS = 300 if LONG_FORM else 3
DESIGNS = {"explored": 0.35, "all outcomes known": 1.0}


def truth(scores: np.ndarray, slope: float = 1.5) -> np.ndarray:
    """Return the probability of a positive: 13 % on average, with an AUC of .8."""
    probability: np.ndarray = 1.0 / (1.0 + np.exp(2.6 - slope * scores))
    return probability


@dataclass
class Year:
    """The looks of a simulated year. From the week `changes` on, the scores say less (`slope`)."""

    rng: np.random.Generator
    explore: float
    changes: int = 1000
    slope: float = 0.5
    before: dict[str, list[StoredLook]] = field(default_factory=dict)

    def reference(self) -> Measurement:
        """Return the AUC of a validation."""
        scores = self.rng.normal(size=VALIDATION_ROWS)
        return measure_validation(self.rng.random(VALIDATION_ROWS) < truth(scores), scores)

    def week(self, number: int, period: Period) -> PeriodRows:
        """Draw the decisions of a week. Outcomes are known of flagged and explored ones."""
        n, rng = WEEKLY_ROWS, self.rng
        scores = rng.normal(size=n)
        slope = self.slope if number >= self.changes else 1.5
        positive = rng.random(n) < truth(scores, slope)
        threshold = 1.6448536269514722  # of the highest 5 %
        flag = scores >= threshold
        explored = ~flag & (rng.random(n) < self.explore)
        return PeriodRows(
            models=["mdl_1"],
            model=np.zeros(n, np.int32),
            alias_revision=np.ones(n, np.int32),
            at=period.start + np.arange(n, dtype=float),
            score=scores,
            probability=truth(scores),
            threshold=np.full(n, threshold),
            flag=flag.astype(np.int8),
            explored=explored,
            propensity=np.where(flag, 1.0, self.explore),
            keep=np.ones(n),
            label=np.where(flag | explored, positive, UNKNOWN).astype(np.int8),
            weight=np.ones(n),
            corrected=np.zeros(n, np.int32),
            entity=np.arange(n, dtype=np.uint64),
            kept=np.arange(n),
        )

    def looks(self) -> Iterator[tuple[int, str, StoredLook]]:
        """Make the looks of the families that need outcomes, as the job of the monitor does."""
        reference = self.reference()
        period = period_at(1_767_571_200.0, "week")
        for number in range(1, 53):
            rows = self.week(number, period)
            for family, metric in (
                (RANKING, "auc"),
                (CALIBRATION, "calibration"),
                (GUARANTEE, "rate"),
            ):
                before = self.before.setdefault(family, [])
                series = looking.series_of(period, "mdl_1", before, None)
                look = looking.look_at(period, series, "mdl_1", metric, rows)
                if family == RANKING:
                    look = looking.look_at_ranking(look, series, rows, reference, SETTINGS)
                elif family == CALIBRATION:
                    look = looking.look_at_calibration(look, series, rows, SETTINGS)
                else:
                    look = looking.look_at_guarantee(look, series, rows, GUARANTEED, SETTINGS)
                assert look["status"] in ("passed", "alarm"), look["reason"]
                before.append(look)
                yield number, family, look
            period = period.next()


def most(n: int, rate: float) -> int:
    """Return the number of events that n trials at the rate exceed once in a thousand times."""
    counts = np.random.default_rng(0).binomial(n, rate, 200_000)
    return int(np.quantile(counts, 0.999))


@pytest.mark.parametrize("design", ["explored", *rest("all outcomes known")])
def test_false_alarms_of_a_year(design: str) -> None:
    alarms = dict.fromkeys((RANKING, CALIBRATION, GUARANTEE), 0)
    years = 0
    for seed in range(YEARS):
        found = {
            family
            for _, family, look in Year(np.random.default_rng(seed), DESIGNS[design]).looks()
            if look["status"] == "alarm"
        }
        years += bool(found)
        for family in found:
            alarms[family] += 1
    assert years <= most(YEARS, 0.05)
    for family, count in alarms.items():
        assert count <= most(YEARS, looking.alpha_of(family, SETTINGS)), family


@pytest.mark.parametrize("design", DESIGNS)
def test_a_model_that_says_less_is_found(design: str) -> None:
    """From week 9 on. The guarantee, a fraction of flagged rows, is kept; the AUC and the probabilities are not."""
    delays: dict[str, list[int]] = {RANKING: [], CALIBRATION: []}
    for seed in range(40 if LONG_FORM else 2):
        year = Year(np.random.default_rng(1000 + seed), DESIGNS[design], changes=9)
        first: dict[str, int] = {}
        for number, family, look in year.looks():
            if look["status"] == "alarm":
                first.setdefault(family, number)
            if first.keys() >= delays.keys():
                break
        assert GUARANTEE not in first
        for family, found in delays.items():
            found.append(first.get(family, 53) - 8)
    for found in delays.values():
        assert np.median(found) <= 4
