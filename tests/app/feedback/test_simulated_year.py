"""A year of weekly tests with a known truth, through the application's own code: the model selects whose outcomes are
known, some others are explored, and the rate of alarms of all families together is what the settings say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from app.feedback import scheduled_tests
from app.feedback.period_rows import UNKNOWN, PeriodRows
from app.feedback.periods import Period, period_at
from app.feedback.scheduled_tests import (
    CALIBRATION,
    GUARANTEE,
    RANKING,
    Acknowledged,
    CalibratedCurve,
    StoredTest,
    held_out_reference,
    reference_of,
    renewed_reference,
    side_of_cutoff,
    stored,
)
from app.platform.documents import StoredGuarantee
from core.metrics import ClassTotals, roc_curve
from core.monitoring import CalibrationMeasurement, Measurement, measure_validation, window
from tests.long_form import LONG_FORM, long_form

PLAN = scheduled_tests.MonitorPlan({"period": "week", "alpha": 0.05, "tolerance": {}}, None)
GUARANTEED: StoredGuarantee = {"fpr": None, "tpr": None, "flagged": 0.06, "confidence": 0.95}
CALIBRATED = CalibrationMeasurement(
    Measurement(0.0, 1e-9, 1e5, 1e6), Measurement(1.0, 1e-9, 1e5, 1e6)
)
"""The probabilities are the true ones."""
VALIDATION_ROWS, WEEKLY_ROWS = 8000, 3500 if LONG_FORM else 2000
YEARS = 40 if LONG_FORM else 3
DESIGNS = {"explored": 0.35, "all outcomes known": 1.0}
MISSING = {"at random": (0.3, 0.3), "more of the positives": (0.0, 0.08)}
"""The fractions of the negatives and of the positives whose outcome is missing, without exploration."""


@pytest.fixture(autouse=True)
def _few_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has critical values of its own here: the service simulates them more exactly."""
    monkeypatch.setattr(window, "N_PATHS", 1 << 13)


def truth(scores: np.ndarray, slope: float = 1.5) -> np.ndarray:
    """Return the probability of a positive: 13 % on average, with an AUC of .8."""
    probability: np.ndarray = 1.0 / (1.0 + np.exp(2.6 - slope * scores))
    return probability


@dataclass
class Year:
    """The tests of a simulated year. From the week `changes` on, the scores say less (`slope`)."""

    rng: np.random.Generator
    explore: float
    changes: int = 1000
    slope: float = 0.5
    missing: tuple[float, float] | None = None
    before: dict[str, list[StoredTest]] = field(default_factory=dict)

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
        known, propensity = flag | explored, np.where(flag, 1.0, self.explore)
        if self.missing is not None:
            known = rng.random(n) >= np.where(positive, self.missing[1], self.missing[0])
            explored, propensity = np.zeros(n, np.bool_), np.full(n, np.nan)
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
            propensity=propensity,
            keep=np.ones(n),
            label=np.where(known, positive, UNKNOWN).astype(np.int8),
            weight=np.ones(n),
            corrected=np.zeros(n, np.int32),
            ambiguous=np.zeros(n, np.bool_),
            entity=rng.integers(0, 2**63, n).astype(np.uint64),
            identified=np.ones(n, np.bool_),
            kept=np.arange(n),
        )

    def tests(self) -> Iterator[tuple[int, str, StoredTest]]:
        """Make the tests of the families that need outcomes, as the job of the monitor does."""
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
                series = scheduled_tests.series_of(period, "mdl_1", before, None)
                test = scheduled_tests.begin_with_rows(period, series, "mdl_1", metric, rows)
                if family == RANKING:
                    test = scheduled_tests.run_ranking_test(test, series, rows, reference, PLAN)
                elif family == CALIBRATION:
                    test = scheduled_tests.run_calibration_test(
                        test, series, rows, CALIBRATED, PLAN
                    )
                else:
                    test = scheduled_tests.run_guarantee_test(test, series, rows, GUARANTEED, PLAN)
                assert test["status"] in ("passed", "alarm"), test["reason"]
                before.append(test)
                yield number, family, test
            period = period.next()


def most(n: int, rate: float) -> int:
    """Return the number of events that n trials at the rate exceed once in a thousand times."""
    counts = np.random.default_rng(0).binomial(n, rate, 200_000)
    return int(np.quantile(counts, 0.999))


@long_form
@pytest.mark.parametrize("design", DESIGNS)
def test_false_alarms_of_a_year(design: str) -> None:
    alarms = dict.fromkeys((RANKING, CALIBRATION, GUARANTEE), 0)
    years = 0
    for seed in range(YEARS):
        found = {
            family
            for _, family, test in Year(np.random.default_rng(seed), DESIGNS[design]).tests()
            if test["status"] == "alarm"
        }
        years += bool(found)
        for family in found:
            alarms[family] += 1
    assert years <= most(YEARS, 0.05)
    for family, count in alarms.items():
        assert count <= most(YEARS, scheduled_tests.alpha_of(family, PLAN)), family


def test_a_model_is_calibrated_again_while_a_period_waits() -> None:
    year = Year(np.random.default_rng(4), 1.0)
    period = period_at(1_767_571_200.0, "week")
    before: list[StoredTest] = []
    again = CalibrationMeasurement(Measurement(0.0, 1e-4, 1e3, 1e4), None)
    for number, reference in enumerate((CALIBRATED, CALIBRATED, again, again), start=1):
        rows = year.week(number, period)
        rows = rows.take(np.arange(20 if number == 2 else rows.size))
        series = scheduled_tests.series_of(period, "mdl_1", before, None)
        test = scheduled_tests.begin_with_rows(period, series, "mdl_1", "calibration", rows)
        before.append(scheduled_tests.run_calibration_test(test, series, rows, reference, PLAN))
        period = period.next()
    assert [each["status"] for each in before] == ["passed", "waiting", "passed", "passed"]
    assert [each["since"] for each in before] == [0, 0, 1, 1]


@long_form
@pytest.mark.parametrize("missing", MISSING)
def test_missing_outcomes_raise_no_alarm_that_they_do_not_explain(missing: str) -> None:
    unexplained, alarms, years = 0, 0, YEARS if LONG_FORM else 1
    for seed in range(years):
        year = Year(np.random.default_rng(2000 + seed), 1.0, missing=MISSING[missing])
        found = [test for _, _, test in year.tests() if test["status"] == "alarm"]
        alarms += any(test["metric"] == "calibration" for test in found)
        unexplained += any(
            not (test["details"].get("missing") or {}).get("explains") for test in found
        )
    assert unexplained <= most(years, 0.05)
    assert missing == "at random" or alarms == years


@long_form
def test_an_alarm_that_missing_outcomes_cannot_explain_says_so() -> None:
    year = Year(np.random.default_rng(3), 1.0, changes=3, slope=0.7, missing=(0.02, 0.02))
    alarms = [test for number, _, test in year.tests() if test["status"] == "alarm" and number < 9]
    families = {test["metric"]: test["details"]["missing"]["explains"] for test in alarms}
    assert families["auc"] is False


@pytest.mark.parametrize("design", DESIGNS)
def test_a_model_that_says_less_is_found(design: str) -> None:
    """From week 9 on. The guarantee, a fraction of flagged rows, is kept; the AUC and the probabilities are not."""
    delays: dict[str, list[int]] = {RANKING: [], CALIBRATION: []}
    for seed in range(40 if LONG_FORM else 2):
        year = Year(np.random.default_rng(1000 + seed), DESIGNS[design], changes=9)
        first: dict[str, int] = {}
        for number, family, test in year.tests():
            if test["status"] == "alarm":
                first.setdefault(family, number)
            if first.keys() >= delays.keys():
                break
        assert GUARANTEE not in first
        for family, found in delays.items():
            found.append(first.get(family, 53) - 8)
    for found in delays.values():
        assert np.median(found) <= 4


def test_decisions_without_probabilities_do_not_say_that_the_model_has_no_calibration() -> None:
    period = period_at(1_767_571_200.0, "week")
    rows = Year(np.random.default_rng(5), 1.0).week(1, period)
    rows.probability[:] = np.nan
    series = scheduled_tests.series_of(period, "mdl_1", [], None)
    reasons = {}
    for name, reference in (("decisions", CALIBRATED), ("model", None)):
        test = scheduled_tests.begin_with_rows(period, series, "mdl_1", "calibration", rows)
        test = scheduled_tests.run_calibration_test(test, series, rows, reference, PLAN)
        assert test["status"] == "not_tested"
        reasons[name] = test["reason"]
    assert "decisions" in reasons["decisions"]
    assert "model" in reasons["model"]


def first_test(rows: PeriodRows) -> StoredTest:
    """Return the first test of the calibration."""
    period = period_at(1_767_571_200.0, "week")
    series = scheduled_tests.series_of(period, "mdl_1", [], None)
    test = scheduled_tests.begin_with_rows(period, series, "mdl_1", "calibration", rows)
    return scheduled_tests.run_calibration_test(test, series, rows, CALIBRATED, PLAN)


def test_sampled_negatives_count_by_their_weight() -> None:
    year = Year(np.random.default_rng(6), 1.0)
    rows = year.week(1, period_at(1_767_571_200.0, "week"))
    negative = rows.label == 0
    rows.weight[negative] = 2.0
    rows = rows.take(~negative | (np.arange(rows.size) % 2 == 0))
    assert first_test(rows)["status"] == "passed"
    rows.weight[:] = 1.0
    assert first_test(rows)["status"] == "alarm"


def test_outcomes_of_flagged_rows_only_are_not_compared_with_all_rows() -> None:
    year = Year(np.random.default_rng(7), 0.0)
    test = first_test(year.week(1, period_at(1_767_571_200.0, "week")))
    assert (test["status"], test["population"]) == ("not_tested", "flagged")


def flat_at_the_top(scores: np.ndarray) -> np.ndarray:
    """Return the true probability where the risk does not rise above the threshold."""
    return truth(np.minimum(scores, 1.2))


@pytest.mark.parametrize("side", ["flagged", "unflagged"])
def test_outcomes_of_one_side_are_compared_with_the_validation_rows_there(side: str) -> None:
    """The probabilities are wrong for the highest scores, as they were in the validation: that is no change."""
    rng = np.random.default_rng(9)
    year, period = Year(rng, 0.0), period_at(1_767_571_200.0, "week")
    scores = rng.normal(size=20_000)
    y = rng.random(scores.size) < flat_at_the_top(scores)
    curve = roc_curve(y, scores)
    totals = ClassTotals.of_counts(int(y.sum()), int((~y).sum()))
    validated = CalibratedCurve(curve, totals, truth(curve.thresholds[1:]))
    reference = held_out_reference(held_out(later=False, periods=None), 0.0, (400, 4000))

    def tested(shift: float, curve: CalibratedCurve | None = validated) -> StoredTest:
        rows = year.week(1, period)
        rows.threshold[:], rows.flag[:] = 1.0, rows.score >= 1.0
        of_side = (rows.flag == 1) == (side == "flagged")
        true = truth(np.minimum(rows.score, 1.2) + shift)
        rows.label[:] = np.where(of_side, rng.random(rows.size) < true, UNKNOWN)
        rows.propensity[:] = of_side
        series = scheduled_tests.series_of(period, "mdl_1", [], None)
        test = scheduled_tests.begin_with_rows(period, series, "mdl_1", "calibration", rows)
        return scheduled_tests.run_calibration_test(
            test, series, rows, reference, PLAN, lambda _: curve
        )

    unchanged = tested(0.0)
    assert (unchanged["status"], unchanged["population"]) == ("passed", side)
    assert tested(1.5)["status"] == "alarm"
    assert tested(0.0, None)["status"] == "not_tested"
    few = validated._replace(totals=ClassTotals.of_counts(40, 400))
    assert tested(0.0, few)["status"] == "not_tested"


def test_a_side_of_the_cutoff_is_that_of_all_cutoffs_or_there_is_none() -> None:
    rows = Year(np.random.default_rng(10), 0.0).week(1, period_at(1_767_571_200.0, "week"))
    rows.threshold[:100] = 2.0
    rows.flag[:] = rows.score >= rows.threshold
    for flagged, expected in ((True, rows.score >= 2.0), (False, rows.score < rows.threshold[-1])):
        side = side_of_cutoff(rows, flagged=flagged)
        assert side is not None
        assert np.array_equal(side.rows, expected)
    rows.flag[:] = 1 - rows.flag  # somebody else decided
    assert side_of_cutoff(rows, flagged=True) is None
    rows.threshold[0] = np.nan
    assert side_of_cutoff(rows, flagged=False) is None


def held_out(*, later: bool, periods: list[float] | None) -> Any:
    """Return the document of held-out rows whose probabilities are .5 too low."""
    levels = [{"value": each, "low": each - 0.1, "high": each + 0.1} for each in periods or ()]
    return {
        "in_the_large": {"value": 0.5, "low": 0.4, "high": 0.6},
        "slope": {"value": 0.8, "low": 0.6, "high": 1.0},
        "level": 0.95,
        "n": 900,
        "n_positives": 90,
        "later": later,
        "periods": {"levels": levels} if periods else None,
    }


def test_with_time_windows_the_reference_is_the_level_of_the_last_one() -> None:
    """The error of the earlier calibration is not that of the served one."""
    without = held_out_reference(held_out(later=False, periods=None), 0.0, (400, 4000))
    assert (without["in_the_large"], without["slope"]) == ([0.5, 0.4, 0.6], [0.8, 0.6, 1.0])
    windows = held_out_reference(held_out(later=True, periods=[0.3, -0.2]), 0.0, (400, 4000))
    assert windows["in_the_large"] == pytest.approx([-0.2, -0.3, -0.1])
    assert windows["slope"] == pytest.approx([1.0, 0.8, 1.2])
    assert (windows["positives"], windows["negatives"]) == (90, 810)
    few = held_out_reference(held_out(later=False, periods=[0.3, -0.2]), 0.0, (400, 4000))
    assert reference_of(few) is None


def test_a_renewed_reference_has_the_first_periods_after_the_alarm() -> None:
    exact = held_out_reference(held_out(later=False, periods=None), 0.0, (400, 4000))
    rough: Any = {**exact, "in_the_large": [0.5, 0.0, 1.0]}
    after: list[Any] = [
        {"state": {"level": stored(Measurement(value, 0.01, 200, 1800, i, i)), "slope": None}}
        for i, value in enumerate((0.2, 0.4, 0.6, 0.8, 9.0), start=1)
    ]
    after.insert(1, {"state": {}})
    assert isinstance(renewed_reference(exact, after[:4]), str)
    for tests in (after[:5], after):
        found = renewed_reference(exact, tests)
        assert isinstance(found, CalibrationMeasurement)
        assert found.level.value == pytest.approx(0.5)
        assert found.slope is None
        assert found.level.variance == pytest.approx(0.01 / 4)
    early = renewed_reference(rough, after[:1])  # it is as precise as the validation
    assert isinstance(early, CalibrationMeasurement)
    assert early.level.value == pytest.approx(0.2)


def test_while_a_reference_is_renewed_nothing_is_tested_and_no_alpha_is_spent() -> None:
    year = Year(np.random.default_rng(8), 1.0)
    before: list[StoredTest] = []
    period = period_at(1_767_571_200.0, "week")
    exact = CalibrationMeasurement(Measurement(0.1, 1e-3, 1e3, 1e4), None)
    acknowledged: Acknowledged = {
        "family": CALIBRATION,
        "term_start": period.start,
        "number": 1,
        "next": period.end,
        "reference": "keep",
        "model_id": "mdl_1",
        "window": [1, 1],
        "accepted": {},
    }
    references: list[Any] = [exact, "it is renewed", "it is renewed", CALIBRATED, CALIBRATED]
    for number, reference in enumerate(references, start=1):
        rows = year.week(number, period)
        series = scheduled_tests.series_of(
            period, "mdl_1", before, acknowledged if number > 1 else None
        )
        test = scheduled_tests.begin_with_rows(period, series, "mdl_1", "calibration", rows)
        before.append(scheduled_tests.run_calibration_test(test, series, rows, reference, PLAN))
        period = period.next()
    assert [each["status"] for each in before[1:]] == [
        "not_tested",
        "not_tested",
        "passed",
        "passed",
    ]
    assert all(each["state"]["level"] for each in before)
    assert [each["since"] for each in before] == [0, 1, 1, 3, 3]
    share = scheduled_tests.alpha_of(CALIBRATION, PLAN) / 2.0 / 52.0
    assert before[-1]["alpha_spent"] == pytest.approx(2.0 * share)
