"""Tests of groups: do selection rates, or the calibration, differ between the groups of protected columns?

Each group is compared with the reference group of its column, from `since` on. A small group needs more periods than a
large one until it has enough rows, so each comparison has periods of its own that wait.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.feedback.period_rows import UNKNOWN, PeriodRows
from app.feedback.periods import Period
from app.feedback.scheduled_tests import (
    GROUP_CALIBRATION,
    SELECTION,
    STATUSES,
    MonitorPlan,
    Series,
    Status,
    StoredTest,
    alpha_of,
    restored,
    select,
    stored,
    why_selection,
)
from app.http.schemas import ColumnName, one_of
from app.platform.documents import MonitoredGroups, described
from app.platform.sql import Json

if TYPE_CHECKING:
    from core.monitoring import Measurement

GroupFamily = Literal["selection", "group_calibration"]
METRICS: Mapping[GroupFamily, str] = {SELECTION: "selection_ratio", GROUP_CALIBRATION: "odds_ratio"}
Texts = Mapping[str, npt.NDArray[Any]]
"""The values of each protected column, None where missing."""


class GroupPair(NamedTuple):
    """A group that is compared with the reference group of its column."""

    column: str
    reference: str
    group: str


class WaitingRows(TypedDict):
    """The first period whose rows wait: its number and its start."""

    number: int
    start: float


@described
class ComparedGroup(TypedDict):
    """A group of a protected column, compared with the reference group."""

    column: ColumnName
    group: str
    """Value of the group."""
    reference: str
    """Value of the reference group."""
    status: Annotated[Status, one_of(STATUSES)]
    """Result of the test."""
    rows: int
    """Number of decisions about the group that were compared, of this period and of earlier ones with too few rows.
    For the calibration, only those with an outcome.
    """
    reference_rows: int
    """The same of the reference group."""
    rate: float | None
    """Fraction of these decisions that are favourable; for the calibration, of positives. Null without rows."""
    reference_rate: float | None
    """The same of the reference group."""
    ratio: float | None
    """Ratio of the group to the reference group in the tested window: of the selection rates, or of the odds of a
    positive relative to the predicted ones. Null without a test.
    """
    low: float | None
    """Lower limit of the ratio. The limits hold for all windows of all tests of the term together."""
    high: float | None
    """Upper limit of the ratio."""
    first: int | None
    """Number of the first period of the window."""
    last: int | None
    """Number of the last period of the window."""


def pairs_of(groups: MonitoredGroups) -> list[GroupPair]:
    return [
        GroupPair(column, reference, group)
        for column, (reference, *others) in groups["columns"].items()
        for group in others
    ]


def waiting_of(series: Series) -> dict[GroupPair, WaitingRows]:
    """Return what waits for more rows, as the newest test with rows left it."""
    for test in reversed(series.tests):
        if (kept := test["state"].get("waiting")) is not None:
            return {GroupPair(*names): waiting for names, waiting in kept}
    return {}


_GAPS = 4
"""Tests whose mean gap is that of the series: an earlier verdict must not change with later rows."""


def _measured(
    tests: Sequence[StoredTest], pair: GroupPair
) -> tuple[list[Measurement], list[float]]:
    """Return the measurements of a pair, and the gap of the log odds at each."""
    from core.monitoring import Measurement

    own = [
        (restored(Measurement, found), gap)
        for test in tests
        for names, found, gap in test["state"].get("measured", ())
        if GroupPair(*names) == pair
    ]
    return [each for each, _ in own], [gap for _, gap in own]


def run_group_tests(
    family: GroupFamily,
    found: StoredTest,
    series: Series,
    period: Period,
    rows: PeriodRows,
    texts: Texts,
    plan: MonitorPlan,
    slope_variance: float | str,
) -> StoredTest:
    """Compare the groups on the rows of this period and of those that wait; all are of one model.

    `slope_variance` is that of the calibration, 0 for selection rates. A text says why it is not known.
    """
    from core.metrics.four_fifths import FOUR_FIFTHS
    from core.monitoring import monitor_differences
    from core.monitoring.measuring import MIN_POSITIVES

    groups = plan.protected
    assert groups is not None
    prepared = _selections(rows, groups) if family == SELECTION else _outcomes(rows)
    if isinstance(prepared, str):
        return {**found, "metric": None, "reason": prepared}
    if isinstance(slope_variance, str):
        return {**found, "reason": slope_variance}
    pairs, earlier = pairs_of(groups), waiting_of(series)
    alpha = alpha_of(family, plan) / len(pairs)
    tolerance = -math.log(FOUR_FIFTHS)
    if family == GROUP_CALIBRATION:
        tolerance = plan.tolerance("calibration")
    compared: list[ComparedGroup] = []
    waiting: list[tuple[list[str], WaitingRows]] = []
    measured: list[tuple[list[str], Json, float]] = []
    greatest, chosen = -math.inf, None
    for pair in pairs:
        since = earlier.get(pair, {"number": found["number"], "start": period.start})
        own = prepared.of(pair, since["start"], texts[pair.column])
        one = own.compared(pair)
        compared.append(one)
        measurement = own.measure(since["number"], found["number"])
        if measurement is None or measurement.weight < MIN_POSITIVES:
            waiting.append(([*pair], since))
            continue
        tests, gaps = _measured(series.tests, pair)
        gaps.append(own.gap())
        measured.append(([*pair], stored(measurement), gaps[-1]))
        test = monitor_differences(
            [*tests, measurement],
            planned=found["planned"],
            alpha=alpha,
            tolerance=tolerance,
            since=found["since"],
            reference_variance=float(np.mean(gaps[:_GAPS])) ** 2 * slope_variance,
        ).tests[-1]
        one["status"] = "alarm" if test.alarm else "passed"
        one["ratio"], one["first"], one["last"] = math.exp(test.window_value), test.first, test.last
        one["low"], one["high"] = math.exp(-test.drop_high), math.exp(-test.drop_low)
        found["alpha_spent"] += test.alpha_spent
        if test.statistic / test.critical_value > greatest:
            greatest, chosen = test.statistic / test.critical_value, (test, one)
    found["details"] = {"groups": compared}
    found["state"] = {"waiting": waiting, "measured": measured}
    if chosen is None:
        few = f"fewer than {MIN_POSITIVES} effective rows of a kind in one of the groups"
        return {**found, "status": "waiting", "reason": few}
    test, one = chosen
    alarms = any(each["status"] == "alarm" for each in compared)
    return {
        **found,
        "status": "alarm" if alarms else "passed",
        "value": one["ratio"],
        "low": one["low"],
        "high": one["high"],
        "expected": 1.0,
        "statistic": test.statistic,
        "critical_value": test.critical_value,
        "from_period": test.first,
    }


class _Pair(NamedTuple):
    """Rows of a group and of its reference group: what is counted, and the probabilities of outcomes."""

    event: npt.NDArray[np.bool_]
    in_group: npt.NDArray[np.bool_]
    weight: npt.NDArray[np.float64]
    entity: npt.NDArray[np.uint64] | None
    probability: npt.NDArray[np.float64] | None

    def compared(self, pair: GroupPair) -> ComparedGroup:
        rates = [
            float(np.average(self.event[of], weights=self.weight[of])) if of.any() else None
            for of in (self.in_group, ~self.in_group)
        ]
        return {
            "column": pair.column,
            "group": pair.group,
            "reference": pair.reference,
            "status": "waiting",
            "rows": int(self.in_group.sum()),
            "reference_rows": int((~self.in_group).sum()),
            "rate": rates[0],
            "reference_rate": rates[1],
            "ratio": None,
            "low": None,
            "high": None,
            "first": None,
            "last": None,
        }

    def gap(self) -> float:
        from core.monitoring import log_odds_gap

        if self.probability is None:
            return 0.0
        return log_odds_gap(self.probability, self.in_group, self.weight)

    def measure(self, first: int, last: int) -> Measurement | None:
        from core.monitoring import measure_calibration_difference, measure_selection_ratio

        if not len(self.event):
            return None
        own: Any = {
            "first": first,
            "last": last,
            "entity": self.entity,
            "sample_weight": self.weight,
        }
        if self.probability is None:
            return measure_selection_ratio(self.event, self.in_group, **own)
        return measure_calibration_difference(self.probability, self.event, self.in_group, **own)


class _Prepared(NamedTuple):
    """The rows that can be compared: positions in the rows of the period, and what is counted."""

    rows: PeriodRows
    used: npt.NDArray[np.bool_]
    event: npt.NDArray[np.bool_]
    weight: npt.NDArray[np.float64]
    probability: npt.NDArray[np.float64] | None

    def of(self, pair: GroupPair, start: float, texts: npt.NDArray[Any]) -> _Pair:
        rows, entity = self.rows, self.rows.entities
        in_group = texts == pair.group
        some = self.used & (in_group | (texts == pair.reference)) & (rows.at >= start)
        return _Pair(
            self.event[some],
            in_group[some],
            self.weight[some],
            None if entity is None else entity[some],
            None if self.probability is None else self.probability[some],
        )


def _selections(rows: PeriodRows, groups: MonitoredGroups) -> _Prepared | str:
    """Return why there are none."""
    if not (rows.flag != UNKNOWN).any():
        return "the alias has no cutoff, so it flags no decision"
    favourable = 1 if groups["favourable"] == "flagged" else 0
    return _Prepared(rows, rows.flag != UNKNOWN, rows.flag == favourable, 1.0 / rows.keep, None)


def _outcomes(rows: PeriodRows) -> _Prepared | str:
    """Return why there are none."""
    if np.isnan(rows.probability).all():
        return "the decisions have no probability"
    selected, _ = select(rows)
    if (reason := why_selection(selected["population"])) is not None:
        return reason
    used = selected["rows"] & ~np.isnan(rows.probability)
    return _Prepared(rows, used, rows.label == 1, selected["weight"], rows.probability)


def shown_groups(found: Json) -> Iterator[ComparedGroup]:
    """Yield the comparisons to speak of: those with an alarm, or else the tested one that is furthest from equality."""
    tested = [each for each in found["details"]["groups"] if each["ratio"] is not None]
    alarms = [each for each in tested if each["status"] == "alarm"]
    if alarms:
        yield from alarms
    elif tested:
        yield max(tested, key=lambda each: abs(math.log(each["ratio"])))
