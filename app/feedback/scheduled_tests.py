"""The scheduled tests of one period by family, from its decisions and the earlier tests of its plan.

This module only computes. A test contains everything that later tests of its plan need. So the rows of a closed period
are never read again, and later corrections do not change it.

**Terms.** The tests of a family belong to terms of a year at most, whose periods are numbered from 1; α belongs to a
term. `core.monitoring.budget` defines when a new term begins: with another model, or with an alarm that is acknowledged
with "renew". With "keep", windows and bets begin again within the term, after the period `since`.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.feedback.period_rows import UNKNOWN, PeriodRows
from app.feedback.periods import PLANNED, Period, count_periods
from app.findings.shift import matters
from app.http.schemas import ModelId, PositiveOutcomes
from app.models.calibrations import CalibrationFile
from app.platform.documents import (
    Interval,
    MonitoredGroups,
    MonitorSettings,
    PeriodLevel,
    Reliability,
    StoredFeedback,
    StoredGuarantee,
    described,
)
from app.platform.sql import Json

if TYPE_CHECKING:
    from core.metrics.curve import ClassTotals, RocCurve
    from core.monitoring import CalibrationMeasurement, Measurement, PairedMeasurement, WindowTest

Measured = TypeVar("Measured", bound="Measurement | PairedMeasurement")
UNLABELLED, RANKING, CALIBRATION, GUARANTEE = "unlabelled", "ranking", "calibration", "guarantee"
SELECTION: Final = "selection"
GROUP_CALIBRATION: Final = "group_calibration"
SHADOW = "shadow"
TESTED = (UNLABELLED, RANKING, CALIBRATION, GUARANTEE, SELECTION, GROUP_CALIBRATION)
FAMILIES = (*TESTED, SHADOW)
Status = Literal["passed", "alarm", "waiting", "not_tested"]
STATUSES: Mapping[Status, str] = {
    "passed": "tested, without an alarm",
    "alarm": "tested, with an alarm",
    "waiting": "too few rows of a class: tested together with the next period",
    "not_tested": "not tested; the reason says why",
}
_NOTHING_KNOWN = "no outcome became known before the horizon ended"

MAX_VERSIONS = 20


@described
class PeriodVersion(TypedDict):
    """The recorded decisions of a period that one model made at one threshold."""

    model_id: ModelId
    threshold: float | None
    """Lowest score that was flagged. Null without one."""
    rows: int
    """Number of recorded decisions."""
    known: int
    """Number of these whose outcome was known. 0 before the horizon."""
    positives: PositiveOutcomes
    flagged: int
    """Number of flagged decisions."""
    flagged_known: int
    """Number of flagged decisions that were to be reviewed and have an outcome."""
    flagged_positives: int
    """Number of positives among these."""
    explored: int
    """Number of decisions that were chosen at random for review."""


class StoredTest(TypedDict):
    """What a test found. `metric` is null if the family has none for this alias.

    `rows` and `known` count decisions of the tested model. `state` contains what later tests of the family need, and
    `details` contains further results to show.
    """

    term_start: float
    number: int
    planned: int
    since: int
    status: Status
    reason: str | None
    model_id: str | None
    metric: str | None
    population: str | None
    rows: int
    known: int
    positives: int
    value: float | None
    low: float | None
    high: float | None
    variance: float | None
    expected: float | None
    statistic: float | None
    critical_value: float | None
    alpha_spent: float
    from_period: int | None
    details: Json
    state: Json


class AcceptedShift(TypedDict):
    """The PSI of a column when its change was accepted, with its upper limit."""

    psi: float
    high: float


class Acknowledged(TypedDict):
    """An acknowledged alarm. `number` and `term_start` are of the last test before it; `next` starts the following
    period.

    `accepted` are the columns that it reported, and `window` the first and the last
    period whose AUC it reported.
    """

    family: str
    term_start: float
    number: int
    next: float
    reference: str
    model_id: str | None
    window: list[int] | None
    accepted: dict[str, AcceptedShift]


class Series(NamedTuple):
    """The earlier tests of a series to which a new test is added: the tests of its term after `since`."""

    tests: list[StoredTest]
    term_start: float
    number: int
    since: int


def series_of(
    period: Period,
    model_id: str | None,
    before: Sequence[StoredTest],
    acknowledged: Acknowledged | None,
) -> Series:
    """`before` are all earlier tests of the family, and `acknowledged` is its newest acknowledgement."""
    planned = PLANNED[period.kind]
    if not before:
        return Series([], period.start, 1, 0)
    last = before[-1]
    start, since = last["term_start"], last["since"]
    if acknowledged is not None and acknowledged["term_start"] == start:
        if acknowledged["reference"] == "renew":
            start, since = acknowledged["next"], 0
        else:
            since = max(since, acknowledged["number"])
    if model_id is not None and last["model_id"] not in (None, model_id):
        start, since = period.start, 0
    number = count_periods(start, period)
    if number > planned or since >= planned:  # a year has passed
        start, since = period.start, 0
        number = 1
    tests = [each for each in before if each["term_start"] == start and each["number"] > since]
    return Series(tests, start, number, since)


def versions_of(rows: PeriodRows) -> list[PeriodVersion]:
    """The most frequent first."""
    keys = np.stack([rows.model.astype(np.float64), np.nan_to_num(rows.threshold, nan=np.inf)])
    distinct, place = np.unique(keys, axis=1, return_inverse=True)
    reviewed = (rows.flag == 1) & (rows.label != UNKNOWN) & to_review(rows, chances(rows))
    found: list[PeriodVersion] = []
    for i in np.argsort(-np.bincount(place.ravel(), minlength=distinct.shape[1]), kind="stable"):
        mine = place.ravel() == i
        own, of_flagged = rows.take(mine), rows.label[mine & reviewed]
        threshold = float(distinct[1, i])
        found.append(
            {
                "model_id": rows.models[int(distinct[0, i])],
                "threshold": threshold if np.isfinite(threshold) else None,
                "rows": own.size,
                "known": int(np.count_nonzero(own.label != UNKNOWN)),
                "positives": int(np.count_nonzero(own.label == 1)),
                "flagged": int(np.count_nonzero(own.flag == 1)),
                "flagged_known": of_flagged.size,
                "flagged_positives": int(np.count_nonzero(of_flagged == 1)),
                "explored": int(np.count_nonzero(own.explored)),
            }
        )
    return found[:MAX_VERSIONS]


def tested_model(rows: PeriodRows) -> str | None:
    """Return the model of the last decision."""
    return rows.models[int(rows.model[np.argmax(rows.at)])] if rows.size else None


def rows_of_model(rows: PeriodRows, model_id: str) -> PeriodRows:
    """Return the decisions of a model."""
    if model_id not in rows.models:
        return rows.take(np.zeros(rows.size, np.bool_))
    return rows.take(rows.model == rows.models.index(model_id))


def chances(rows: PeriodRows) -> npt.NDArray[np.float64]:
    """Return the probability with which the outcome of each decision is looked for.

    If it was not recorded, because nothing is explored, a side of the threshold counts as observed if any of its
    outcomes is known. What the others could change is stated with the result (`_sensitivity`).
    """
    found = rows.propensity.astype(np.float64)
    for side in (rows.flag == 1, rows.flag != 1):
        unstated = side & np.isnan(found)
        if unstated.any():
            found[unstated] = 1.0 if (rows.label[unstated] != UNKNOWN).any() else 0.0
    return np.clip(found, 0.0, 1.0)


def to_review(rows: PeriodRows, chance: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which outcomes are looked for. Whether others become known may depend on them."""
    return (chance >= 1.0) | (rows.explored & (chance > 0.0))


class Selected(TypedDict):
    """Rows that tests use, with weights, and those without outcome; `population` is how many they represent."""

    rows: npt.NDArray[np.bool_]
    missing: npt.NDArray[np.bool_]
    weight: npt.NDArray[np.float64]
    population: str
    by_chance: bool


def select(rows: PeriodRows) -> tuple[Selected, Json]:
    """Select decisions whose outcomes were chosen independently of their values; returns also the period's metrics."""
    from core.monitoring import weighted_metrics

    chance, known = chances(rows), rows.label != UNKNOWN
    has_flags = bool((rows.flag != UNKNOWN).any())
    positive = rows.label == 1
    found = weighted_metrics(
        rows.score,
        positive=positive,
        known=known,
        flag=rows.flag == 1 if has_flags else None,
        explored=rows.explored,
        propensity=chance,
        keep=rows.keep,
        entity=rows.entities,
    )
    to_know = to_review(rows, chance)
    used = known & to_know
    weight = rows.weight / np.where(used, chance * rows.keep, 1.0)
    for side in (rows.flag == 1, rows.flag != 1):  # each side counts as much as its decisions do
        if (used & side).any() and (to_know & ~known & side).any():
            wanted = np.where(
                to_know & side, rows.weight / (np.where(to_know, chance, 1.0) * rows.keep), 0.0
            )
            weight[used & side] *= wanted.sum() / weight[used & side].sum()
    selected: Selected = {
        "rows": used,
        "missing": to_know & ~known,
        "weight": weight,
        "population": found.population,
        "by_chance": bool((chance[used] < 1.0).any()),
    }
    return selected, asdict(found)


def why_selection(population: str) -> str | None:
    """Return why probabilities cannot be tested on the outcomes of one side of the threshold; None if they can.

    The line of other rows is no reference for them: it may be right for all rows and wrong for those above a threshold.
    """
    if population in ("all", "none"):
        return None
    return (
        f"outcomes are known for {population} decisions only: their probabilities cannot be compared with those of all "
        "validation rows. Explore the other side"
    )


def begin(period: Period, series: Series, model_id: str | None, metric: str) -> StoredTest:
    """Nothing was tested yet."""
    return {
        "term_start": series.term_start,
        "number": series.number,
        "planned": PLANNED[period.kind],
        "since": series.since,
        "status": "not_tested",
        "reason": None,
        "model_id": model_id,
        "metric": metric,
        "population": None,
        "rows": 0,
        "known": 0,
        "positives": 0,
        "value": None,
        "low": None,
        "high": None,
        "variance": None,
        "expected": None,
        "statistic": None,
        "critical_value": None,
        "alpha_spent": 0.0,
        "from_period": None,
        "details": {},
        "state": {},
    }


def without_decisions(period: Period, metric: str, before: Sequence[StoredTest]) -> StoredTest:
    """The series, if any, continues."""
    last = before[-1] if before else None
    model_id = None if last is None else last["model_id"]
    series = series_of(period, model_id, before, None)
    found = begin(period, series, model_id, metric)
    if last is not None and series.tests:
        found["alpha_spent"] = last["alpha_spent"]
        if "accepted" in last["state"]:
            found["state"] = last["state"]
    return {**found, "reason": "there are no decisions"}


def begin_with_rows(
    period: Period, series: Series, model_id: str, metric: str, rows: PeriodRows
) -> StoredTest:
    """Return a test of a model's rows; nothing was tested yet."""
    found = begin(period, series, model_id, metric)
    found["rows"] = rows.size
    found["known"] = int(np.count_nonzero(rows.label != UNKNOWN))
    found["positives"] = int(np.count_nonzero(rows.label == 1))
    return found


class MonitorPlan(NamedTuple):
    """What the feedback settings of an alias say of its tests."""

    monitor: MonitorSettings
    protected: MonitoredGroups | None

    @classmethod
    def of(cls, settings: StoredFeedback | None) -> MonitorPlan | None:
        """Return None without tests."""
        if settings is None or settings["monitor"] is None:
            return None
        return cls(settings["monitor"], settings["protected"])

    def tolerance(self, metric: str) -> float:
        return self.monitor["tolerance"].get(metric, 0.0)


def tested_families(plan: MonitorPlan) -> Sequence[str]:
    """Groups are only compared if they are declared."""
    return [
        each
        for each in TESTED
        if plan.protected is not None or each not in (SELECTION, GROUP_CALIBRATION)
    ]


def alpha_of(family: str, plan: MonitorPlan) -> float:
    """The probability of a false alarm is within a term."""
    from core.monitoring import allot

    families: dict[Any, int] = dict.fromkeys(tested_families(plan), 1)
    return allot(plan.monitor["alpha"], families)[family]  # type: ignore[index]  # one of these


def pending_from(series: Series) -> int:
    """Return the first period whose rows wait for the new test, because earlier periods had too few."""
    first = series.number
    for test in reversed(series.tests):
        if test["status"] == "waiting":
            first = test["number"]
        elif test["rows"]:  # it was tested, or cannot be
            break
    return first


def without_waiting(series: Series) -> Series:
    """Return the series in which no earlier period waits: the new test then begins with its own period."""
    return series._replace(tests=[each for each in series.tests if each["status"] != "waiting"])


def run_ranking_test(
    found: StoredTest,
    series: Series,
    rows: PeriodRows,
    reference: Measurement | str,
    plan: MonitorPlan,
) -> StoredTest:
    """Test the AUC of the rows of all waiting periods. A text as `reference` says why there is none."""
    from core.monitoring import measure_auc, monitor_windows
    from core.monitoring.measuring import MIN_POSITIVES

    if rows.size == 0:
        return {**found, "status": "waiting", "reason": "there are no decisions"}
    selected, metrics = select(rows)
    found = {**found, "population": selected["population"], "details": {"metrics": metrics}}
    if (whole := metrics["auc"]) is not None:
        found["value"], found["low"], found["high"] = whole["value"], whole["low"], whole["high"]
    if isinstance(reference, str):
        return {**found, "reason": reference}
    found["expected"] = reference.value
    if selected["population"] == "none" or not selected["rows"].any():
        return {**found, "status": "waiting", "reason": _NOTHING_KNOWN}
    if selected["population"] != "all":
        reason = (
            f"outcomes are known for {selected['population']} decisions only: their AUC cannot be compared with that "
            "of all validation rows. Explore the other side"
        )
        return {**found, "reason": reason}
    used, first = rows.take(selected["rows"]), pending_from(series)
    y, weight = used.label == 1, selected["weight"][selected["rows"]]
    if not y.any() or y.all():
        return {**found, "status": "waiting", "reason": "the outcomes are of one class"}
    own = measure_auc(
        y,
        used.score,
        first=first,
        last=found["number"],
        sample_weight=None if np.ptp(weight) == 0.0 else weight,
        entity=used.entities,
    )
    found["value"], found["variance"] = own.value, own.variance
    if own.weight < MIN_POSITIVES:
        reason = _too_few(own.weight, by_entity=used.entities is not None)
        return {**found, "status": "waiting", "reason": reason}
    shares = _auc_by_share(rows, selected)
    found["state"] = {
        "measurement": stored(own),
        "reference": stored(reference),
        "missing": int(np.count_nonzero(selected["missing"])),
        "shares": shares,
    }
    measured = measurements([*series.tests, found])
    test = monitor_windows(
        reference,
        measured,
        planned=found["planned"],
        alpha=alpha_of(RANKING, plan),
        tolerance=plan.tolerance("auc"),
        since=found["since"],
    ).tests[-1]
    found = _of_window(found, test, own.by_entity != b"")
    most = test.drop - test.drop_low + plan.tolerance("auc")
    found["details"]["missing"] = _sensitivity(
        [*series.tests, found], test, "measurement", reference.value - most, np.inf
    )
    return found


def _too_few(effective: float, *, by_entity: bool = False) -> str:
    from core.monitoring.measuring import MIN_POSITIVES

    found = f"{effective:.0f} effective rows of the scarcer class; a test needs {MIN_POSITIVES}"
    return f"{found}. Further rows of the same entities add little" if by_entity else found


def stored(measurement: Measurement | PairedMeasurement) -> Json:
    found = asdict(measurement)
    return {**found, "by_entity": base64.b64encode(found["by_entity"]).decode()}


def restored(kind: Callable[..., Measured], found: Json) -> Measured:
    """Inverse of `stored`."""
    return kind(**{**found, "by_entity": base64.b64decode(found["by_entity"])})


def measurements(tests: Sequence[StoredTest], name: str = "measurement") -> list[Measurement]:
    from core.monitoring import Measurement

    return [restored(Measurement, each["state"][name]) for each in tests if each["state"].get(name)]


def _of_window(found: StoredTest, test: WindowTest, by_entity: bool) -> StoredTest:
    window = {
        "first": test.first,
        "last": test.last,
        "value": test.window_value,
        "drop": test.drop,
        "drop_low": test.drop_low,
        "drop_high": test.drop_high,
        "inflation": test.inflation if by_entity else None,
    }
    return {
        **found,
        "status": "alarm" if test.alarm else "passed",
        "statistic": test.statistic,
        "critical_value": test.critical_value,
        "alpha_spent": test.alpha_spent,
        "from_period": test.first,
        "details": found["details"] | {"window": window},
    }


SIDES = ("all", "flagged", "unflagged")
MIN_CALIBRATION = 30
"""Positive rows of a calibration below which its own error is too uncertain for a test."""
_EXACT = 1e-12
"""The variance of a declared bound."""


def _sides(rows: PeriodRows, missing: npt.NDArray[np.bool_]) -> dict[str, npt.NDArray[np.bool_]]:
    flagged = rows.flag == 1
    sides = {"all": missing, "flagged": missing & flagged, "unflagged": missing & ~flagged}
    return {name: each for name, each in sides.items() if each.any()}


def _auc_by_share(rows: PeriodRows, selected: Selected) -> dict[str, list[float]]:
    from core.monitoring.missing import auc_by_share

    if selected["by_chance"]:  # a missing outcome of a random sample is weighted as the others are
        return {}
    part = rows.take(selected["rows"] | selected["missing"])
    known, missing = part.label != UNKNOWN, part.label == UNKNOWN
    found = {
        name: auc_by_share(part.score, part.label == 1, known, part.flag == 1, changed)
        for name, changed in _sides(part, missing).items()
    }
    return {name: each.tolist() for name, each in found.items() if each is not None}


def _sensitivity(
    tests: Sequence[StoredTest], test: WindowTest, name: str, low: float, high: float
) -> Json | None:
    """Return for which shares of positives among missing outcomes the window's mean stays within limits; None: none."""
    from core.monitoring.missing import SHARES, unchanged_shares

    inside = [
        each
        for each in tests
        if each["state"].get(name)
        and test.first <= each["state"][name]["first"]
        and each["state"][name]["last"] <= test.last
    ]
    missing = sum(each["state"]["missing"] for each in inside)
    if not missing:
        return None
    weights = np.array([each.weight for each in measurements(inside, name)])
    shares: dict[str, list[float] | None] = {}
    for side in SIDES:
        if not any(side in each["state"]["shares"] for each in inside):
            continue
        values = [
            each["state"]["shares"].get(side, [each["state"][name]["value"]] * SHARES.size)
            for each in inside
        ]
        within = unchanged_shares(weights @ np.array(values) / weights.sum(), low, high)
        shares[side] = None if within is None else list(within)
    known = sum(each["known"] for each in inside)
    positives = sum(each["positives"] for each in inside)
    return {
        "outcomes": missing,
        "known_share": positives / known if known else None,
        "unchanged": shares,
        "explains": any(each is not None for each in shares.values()),
    }


def bounded_rate(guarantee: StoredGuarantee | None) -> tuple[str, float] | str:
    """Return the metric that a guarantee bounds, and its largest value; a text says why it bounds none."""
    if guarantee is None:
        return "the alias has no guarantee"
    if guarantee["confidence"] is None:
        return "the alias keeps a target of its validation rows, not a guarantee"
    if (bound := guarantee.get("flagged")) is not None:
        metric = "flagged"
    elif (bound := guarantee["fpr"]) is not None:
        metric = "fpr"
    elif guarantee["tpr"] is not None:
        metric, bound = "fnr", 1.0 - guarantee["tpr"]
    else:
        return "the alias keeps a threshold, which bounds no rate"
    return (metric, bound) if 0.0 < bound < 1.0 else f"a rate of {bound:g} cannot be tested"


def run_guarantee_test(
    found: StoredTest,
    series: Series,
    rows: PeriodRows,
    guarantee: StoredGuarantee | None,
    plan: MonitorPlan,
) -> StoredTest:
    """Test whether the guaranteed rate of the alias is exceeded.

    By betting if each entity has one decision, by the window monitor if entities come back. Without ids it is unknown
    whether they do, so nothing is tested. Missing outcomes raise no alarm and let no test pass if they could change it.

    rows: the decisions of all waiting periods that were made under this guarantee.
    """
    from core.monitoring.recurrence import entities_recur, presence_of

    rated = bounded_rate(guarantee)
    if isinstance(rated, str):
        return {**found, "metric": None, "reason": rated}
    found["metric"], found["expected"] = rated
    rows = rows.take(rows.flag != UNKNOWN)
    if not rows.size:
        return {**found, "reason": "no decision says whether it was flagged"}
    if np.ptp(rows.keep) > 0.0:  # those that are explored are always recorded
        return {**found, "reason": "the decisions were recorded with different probabilities"}
    event, known, of_class = rows.flag == 1, rows.label != UNKNOWN, rows.label == 0
    if found["metric"] == "flagged":
        found["population"] = "all"
        known = of_class = np.ones(rows.size, np.bool_)
    else:
        selected, _ = select(rows)
        found["population"] = selected["population"]
        if selected["population"] != "all" or selected["by_chance"]:
            reason = "the outcomes of all decisions must be known, not only those of selected ones"
            return {**found, "reason": reason}
        if np.ptp(rows.weight[known]) > 0.0:
            return {**found, "reason": "the outcomes have different weights"}
        if found["metric"] == "fnr":
            event, of_class = ~event, rows.label == 1
    sides = np.stack([event, ~event])
    c, k, n = ((sides & each).sum(axis=1) for each in (of_class, known, event | ~event))
    missing = n - k
    if c.any():
        at_random = c * n / np.maximum(k, 1)
        found["value"] = float(at_random[0] / at_random.sum())
        if missing.any():
            found["low"] = float(c[0] / (c.sum() + missing[1]))
            found["high"] = float((c[0] + missing[0]) / (c.sum() + missing[0]))
    if (entities := rows.entities) is None:
        reason = "the decisions have no entity ids, so it is unknown whether they are independent"
        return {**found, "reason": reason}
    tests = [each for each in series.tests if each["state"]]
    recurring = any("measurement" in each["state"] for each in tests) or entities_recur(
        entities, [base64.b64decode(each["state"]["entities"]) for each in tests]
    )
    if any(
        (each["metric"], each["expected"]) != rated or (recurring and "counts" in each["state"])
        for each in tests
    ):
        found["since"], tests = found["number"] - 1, []
    few = (2 * k < n).any()
    half = "less than half of the outcomes of the decisions on a side of the cutoff are known"
    if recurring:
        if few:
            return {**found, "reason": half}
        return _test_recurring_rate(found, series, tests, (event, known, of_class), entities, plan)
    found["state"] = {
        "counts": [each.tolist() for each in (c, k, n)],
        "entities": base64.b64encode(presence_of(entities)).decode(),
    }
    return _test_independent_rate(found, tests, plan, half if few else None)


def _test_independent_rate(
    found: StoredTest, tests: Sequence[StoredTest], plan: MonitorPlan, few: str | None
) -> StoredTest:
    """Test a rate by betting. `few`: why this period cannot pass."""
    from core.monitoring import monitor_rate

    counts = np.zeros((found["number"], 3, 2))
    for each in [*tests, found]:
        counts[each["number"] - 1] = each["state"]["counts"]
    c, k, n = (counts[:, i] for i in range(3))
    alpha = alpha_of(GUARANTEE, plan)
    test = monitor_rate(
        c[:, 0], c.sum(axis=1), found["expected"] or 0.0,
        known=k, decisions=n, planned=found["planned"], alpha=alpha, since=found["since"],
    ).tests[-1]  # fmt: skip
    left = found["planned"] - found["since"]
    critical = found["planned"] / (alpha * left)
    found |= {
        "statistic": test.e_low,
        "critical_value": critical,
        "alpha_spent": alpha * (found["number"] - found["since"]) / found["planned"],
        "from_period": test.first,
    }
    return _of_rate(found, test.observed, test.e_low >= critical, test.unknown, few)


def _test_recurring_rate(
    found: StoredTest,
    series: Series,
    tests: Sequence[StoredTest],
    rows: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]],
    entities: npt.NDArray[np.uint64],
    plan: MonitorPlan,
) -> StoredTest:
    """Test a rate by the window monitor: at random, and with the least and the greatest that missing outcomes allow.

    rows: whether each has the event, has an outcome, and is known to be of the class.
    """
    from core.monitoring import Measurement, measure_rate, monitor_windows
    from core.monitoring.betting import MISSING_ODDS
    from core.monitoring.measuring import MIN_POSITIVES

    event, known, of_class = rows
    bound = found["expected"] or 0.0
    given = np.where(known, of_class, np.nan)
    named = {"measurement": (given, 1.0)}
    if not known.all():
        # Whatever they are: those without the event are of the class, the others are not.
        named |= {"low": (np.where(known, of_class, ~event), 1.0), "high": (given, MISSING_ODDS)}
    for name, (classes, odds) in named.items():
        own = measure_rate(
            event,
            bound,
            first=max(pending_from(series), found["since"] + 1),
            last=found["number"],
            entity=entities,
            of_class=classes,
            missing_odds=odds,
        )
        if own is None:
            reason = f"a test needs {MIN_POSITIVES} entities with an event, and without one, expected at the bound"
            return {**found, "status": "waiting", "reason": reason, "state": {}}
        found["state"][name] = stored(own)

    def rise(name: str) -> WindowTest:
        states = [each["state"] for each in [*tests, found]]
        measured = [restored(Measurement, each.get(name, each["measurement"])) for each in states]
        reference = Measurement(bound, _EXACT, measured[-1].positives, measured[-1].negatives)
        return monitor_windows(
            reference,
            measured,
            planned=found["planned"],
            alpha=alpha_of(GUARANTEE, plan),
            since=found["since"],
            change="rise",
        ).tests[-1]

    low, even, high = (rise(name) for name in ("low", "measurement", "high"))
    found = _of_window(found, even, by_entity=True)
    found["statistic"], found["critical_value"] = low.statistic, low.critical_value
    return _of_rate(found, even.window_value, low.alarm, high.alarm, None)


def _of_rate(
    found: StoredTest, observed: float | None, alarm: bool, unknown: bool, few: str | None
) -> StoredTest:
    """Return the test with its answer. `few`: why this period cannot pass; else missing outcomes are why."""
    found["details"] |= {"observed_since": observed, "expected_since": found["expected"]}
    if alarm:
        return {**found, "status": "alarm"}
    if not unknown:
        return {**found, "status": "passed", "reason": None}
    reason = few or (
        f"missing outcomes leave it open; if they are missing at random, the rate has been {observed:.4f}, "
        f"{found['expected']:.4f} allowed"
    )
    return {**found, "status": "not_tested", "reason": reason}


class CalibrationReference(TypedDict):
    """What held-out rows say about a calibration: limits in log-odds, for `core.monitoring.calibration_reference`. `at`
    is when it was made, and `file` has the calibration if it was fitted on the rows of the validation curve.
    """

    at: float
    in_the_large: list[float] | None
    slope: list[float] | None
    level: float
    positives: int
    negatives: int
    file: CalibrationFile | None


class CalibratedCurve(NamedTuple):
    """The validation curve of a model, and the probability of each of its thresholds but the first."""

    curve: RocCurve
    totals: ClassTotals
    probability: npt.NDArray[np.float64]


def held_out_reference(
    held_out: Reliability | None, at: float, classes: tuple[int, int]
) -> CalibrationReference:
    """Return the reference of a calibration. `classes`: numbers of positives and negatives that it was fitted on.

    With time windows, the probabilities of `held_out` are of an earlier calibration. Its error says nothing about the
    served one, which has a slope of 1 on its windows together, and in the last one the level of `periods`.
    """
    found: CalibrationReference = {
        "at": at,
        "in_the_large": None,
        "slope": None,
        "level": 0.95,
        "positives": classes[0],
        "negatives": classes[1],
        "file": None,
    }
    if held_out is None or held_out["in_the_large"] is None:
        return found
    level: Interval | PeriodLevel = held_out["in_the_large"]
    slope, periods = held_out["slope"], held_out.get("periods")
    if periods is not None:
        if not held_out.get("later"):
            return found  # the last window has too few rows
        level = periods["levels"][-1]
        found["positives"] = held_out["n_positives"]
        found["negatives"] = held_out["n"] - held_out["n_positives"]
        if slope is not None:
            half = (slope["high"] - slope["low"]) / 2.0
            slope = {"value": 1.0, "low": 1.0 - half, "high": 1.0 + half}
    found["level"] = held_out["level"]
    found["in_the_large"] = [level["value"], level["low"], level["high"]]
    found["slope"] = slope and [slope["value"], slope["low"], slope["high"]]
    return found


def reference_of(found: CalibrationReference) -> CalibrationMeasurement | None:
    """Return None if the calibration's own error is not known well enough."""
    from core.monitoring import calibration_reference

    if found["in_the_large"] is None or found["positives"] < MIN_CALIBRATION:
        return None
    return calibration_reference(
        found["in_the_large"],
        found["slope"],
        level=found["level"],
        positives=found["positives"],
        negatives=found["negatives"],
    )


RENEWAL_PERIODS = 4
"""Periods after an acknowledged alarm that become the reference, or fewer that are as precise as the validation."""


def renewed_reference(
    validated: CalibrationReference, after: Sequence[StoredTest]
) -> CalibrationMeasurement | str:
    """Return the reference of a calibration whose alarm was acknowledged, or why there is none yet.

    `after` are the tests after the acknowledgement. The window that raised the alarm was selected because it is far
    from the old reference, so it is not part of the new one.
    """
    from core.monitoring import CalibrationMeasurement

    before, parts = reference_of(validated), []
    for test in after:
        if not test["state"].get("level"):
            continue
        parts.append(_calibration_of(test))
        level = mean_of([each.level for each in parts])
        is_precise = before is not None and level.variance <= before.level.variance
        if is_precise or len(parts) == RENEWAL_PERIODS:
            slopes = [each.slope for each in parts if each.slope is not None]
            return CalibrationMeasurement(
                level, mean_of(slopes) if len(slopes) == len(parts) else None
            )
    return "the first periods after the acknowledged alarm become the new reference"


def mean_of(parts: Sequence[Measurement]) -> Measurement:
    """Return the mean of periods by their rows, with the variance that recurring entities give it."""
    from core.monitoring import Measurement
    from core.monitoring.recurrence import covariance_factor

    weights = np.array([each.weight for each in parts])
    weights /= weights.sum()
    variances = np.array([each.variance for each in parts])
    errors = covariance_factor([each.by_entity for each in parts], variances)
    return Measurement(
        float(np.einsum("i,i->", weights, [each.value for each in parts])),
        float(np.square(np.einsum("i,ij->j", weights, errors)).sum()),
        sum(each.positives for each in parts),
        sum(each.negatives for each in parts),
    )


def run_calibration_test(
    found: StoredTest,
    series: Series,
    rows: PeriodRows,
    reference: CalibrationReference | CalibrationMeasurement | str | None,
    plan: MonitorPlan,
    curve_of: Callable[[CalibrationReference], CalibratedCurve | None] = lambda _: None,
) -> StoredTest:
    """Test whether level and slope of the calibration are those of its held-out rows. Pass all waiting periods.

    `reference` is None without a calibration. A text says why the rows are measured, but not tested yet. Outcomes of
    one side of the cutoff are compared with the level of the validation rows there, which `curve_of` reads.
    """
    from core.metrics.logistic import log_odds
    from core.monitoring import measure_calibration, monitor_calibration
    from core.monitoring.measuring import MIN_POSITIVES
    from core.monitoring.missing import level_by_share

    if rows.size == 0:
        return {**found, "status": "waiting", "reason": "there are no decisions"}
    if reference is None:
        return {**found, "metric": None, "reason": "the model had no calibration"}
    if np.isnan(rows.probability).all():
        return {**found, "metric": None, "reason": "the decisions have no probability"}
    known_as = reference_of(reference) if isinstance(reference, dict) else reference
    if known_as is None:
        reason = (
            f"its calibration was fitted on fewer than {MIN_CALIBRATION} positive rows (with time windows: in the last "
            "one), so how far it is off is not known well enough"
        )
        return {**found, "reason": reason}
    if isinstance(reference, dict):
        rows = rows.take(rows.at >= reference["at"])
    selected, _ = select(rows)
    found = {**found, "population": selected["population"]}
    if (partial := why_selection(selected["population"])) is not None:
        curve = curve_of(reference) if isinstance(reference, dict) else None
        side = side_of_cutoff(rows, flagged=selected["population"] == "flagged")
        if curve is None or side is None:
            return {**found, "reason": partial}
        known_as = side.level_on(curve)
        if known_as is None:
            return {**found, "reason": f"{partial}, or validate on more rows"}
        rows = rows.take(side.rows)
        selected, _ = select(rows)
    has = ~np.isnan(rows.probability)
    used = rows.take(selected["rows"] & has)
    y, weight = used.label == 1, selected["weight"][selected["rows"] & has]
    if used.size == 0 or not y.any() or y.all():
        reason = _NOTHING_KNOWN if used.size == 0 else "the outcomes are of one class"
        return {**found, "status": "waiting", "reason": reason}
    found["value"] = float(np.average(y, weights=weight))
    found["expected"] = float(np.average(used.probability, weights=weight))
    own = measure_calibration(
        used.probability,
        y,
        first=max(pending_from(series), found["since"] + 1),
        last=found["number"],
        sample_weight=None if np.ptp(weight) == 0.0 else weight,
        entity=used.entities,
    )
    if own.level.weight < MIN_POSITIVES:
        return {**found, "status": "waiting", "reason": _too_few(own.level.weight)}
    own_reference = None
    if not isinstance(known_as, str):
        own_reference = {
            name: None if (each := getattr(known_as, name)) is None else stored(each)
            for name in ("level", "slope")
        }
    tests = [each for each in series.tests if each["state"].get("level")]
    if any(each["state"]["reference"] != own_reference for each in tests):
        found["since"], tests = own.level.first - 1, []  # the model was calibrated again
    part = rows.take((selected["rows"] | selected["missing"]) & has)
    known, missing = part.label != UNKNOWN, part.label == UNKNOWN
    odds, weight = log_odds(part.probability), part.weight / part.keep
    found["state"] = {
        "level": stored(own.level),
        "slope": None if own.slope is None else stored(own.slope),
        "reference": own_reference,
        "missing": int(np.count_nonzero(missing)),
        "shares": {
            name: level_by_share(odds, part.label == 1, known, changed, weight).tolist()
            for name, changed in _sides(part, missing).items()
            if not selected["by_chance"]  # as for the AUC
        },
    }
    if isinstance(known_as, str):
        return {**found, "reason": known_as}
    tolerance = plan.tolerance("calibration")
    monitor = monitor_calibration(
        known_as,
        [_calibration_of(each) for each in [*tests, found]],
        planned=found["planned"],
        alpha=alpha_of(CALIBRATION, plan),
        tolerance=tolerance,
        since=found["since"],
    )
    level = monitor.level.tests[-1]
    slope = None if monitor.slope is None else monitor.slope.tests[-1]
    is_slope = slope is not None and (
        slope.statistic / slope.critical_value > level.statistic / level.critical_value
    )
    chosen = slope if is_slope and slope is not None else level
    found = _of_window(found, chosen, own.level.by_entity != b"")
    half = level.drop - level.drop_low + tolerance
    at = known_as.level.value
    found["details"] |= {
        "tested": "slope" if is_slope else "level",
        "missing": _sensitivity([*tests, found], level, "level", at - half, at + half),
    }
    if is_slope and (missing := found["details"]["missing"]) is not None:
        # The share of positives says nothing about where they are.
        found["details"]["missing"] = {**missing, "unchanged": {}, "explains": None}
    return found


class Side(NamedTuple):
    """The rows on one side of all cutoffs of some decisions, of which `cutoff` is the one on this side."""

    rows: npt.NDArray[np.bool_]
    cutoff: float
    flagged: bool

    def level_on(self, validated: CalibratedCurve) -> CalibrationMeasurement | None:
        """Return the level on the validation rows of this side; None if there are too few."""
        from core.monitoring import CalibrationMeasurement, measure_level_on_stored_curve

        level = measure_level_on_stored_curve(*validated, self.cutoff, flagged=self.flagged)
        if level is None or level.weight < MIN_CALIBRATION:
            return None
        return CalibrationMeasurement(level, None)


def side_of_cutoff(rows: PeriodRows, *, flagged: bool) -> Side | None:
    """Return None if decisions were not made by a cutoff alone."""
    cutoff = float(rows.threshold.max() if flagged else rows.threshold.min())
    inside = (rows.score >= cutoff) == flagged
    if not np.isfinite(cutoff) or not ((rows.flag == 1)[inside] == flagged).all():
        return None
    return Side(inside, cutoff, flagged)


def _calibration_of(test: StoredTest) -> CalibrationMeasurement:
    from core.monitoring import CalibrationMeasurement, Measurement

    level, slope = test["state"]["level"], test["state"]["slope"]
    return CalibrationMeasurement(
        restored(Measurement, level), None if slope is None else restored(Measurement, slope)
    )


def run_drift_test(
    found: StoredTest,
    drift: Json | None,
    before: Sequence[StoredTest],
    acknowledged: Acknowledged | None,
    versions: Sequence[PeriodVersion],
) -> StoredTest:
    """Return the test of the scores and columns of a period; None as `drift` if the model cannot be compared.

    An acknowledgement with "renew" accepts a change up to the size that it then had, as long as the alias serves the
    same model: growth beyond it is tested at the level of the period.
    """
    last = before[-1] if before else None
    accepted: dict[str, AcceptedShift] = {}
    if last is not None and last["model_id"] == found["model_id"]:
        accepted = last["state"].get("accepted", {})
        if (
            acknowledged is not None
            and acknowledged["reference"] == "renew"
            and acknowledged["model_id"] == found["model_id"]
        ):
            accepted = accepted | acknowledged["accepted"]
    found["details"] = {
        "versions": list(versions),
        "shifted": [] if drift is None else _shifted(drift),
        "psi": {} if drift is None else _psi(drift),
    }
    found["state"] = {"accepted": accepted}
    if drift is None:
        return {**found, "reason": "the decisions are not of a model that the alias has served"}
    if drift["finding"]["reason"] == "not_measured":
        return {**found, "reason": drift["reason"]}
    if drift["scores"] is not None and drift["scores"]["psi"] is not None:
        psi = drift["scores"]["psi"]
        found["value"], found["low"], found["high"] = psi["value"], psi["low"], psi["high"]
    spent = drift["alpha"] * found["number"]
    if drift["scores"] is None and not drift["features"]:
        return {**found, "status": "waiting", "reason": drift["reason"]}
    is_new = any(
        each["name"] not in accepted or has_grown(each, accepted[each["name"]], drift)
        for each in found["details"]["shifted"]
    )
    return {**found, "status": "alarm" if is_new else "passed", "alpha_spent": spent}


def has_grown(shifted: Json, accepted: AcceptedShift, drift: Json) -> bool:
    """Return True if a PSI is significantly greater than the one that was accepted, by their limits."""
    normal, n_tests = NormalDist(), 1 + len(drift["features"])
    error = math.hypot(shifted["psi"] - shifted["low"], accepted["high"] - accepted["psi"])
    z = normal.inv_cdf(1.0 - drift["alpha"] / n_tests)
    return bool(
        shifted["psi"] - accepted["psi"] > error * z / normal.inv_cdf((1.0 + drift["level"]) / 2.0)
    )


def _psi(drift: Json) -> dict[str, float]:
    """Return the PSI of the listed columns that have one."""
    return {each["name"]: each["psi"]["value"] for each in drift["features"] if each["psi"]}


def _shifted(drift: Json) -> list[Json]:
    """Return what has shifted significantly and matters: the score, with an empty name, and columns."""
    scores = [] if drift["scores"] is None else [{**drift["scores"], "name": ""}]
    weighty = [each for each in drift["features"] if matters(each)]
    return [
        {
            "name": each["name"],
            "psi": each["psi"]["value"],
            "low": each["psi"]["low"],
            "high": each["psi"]["high"],
            "words": each["words"],
        }
        for each in (*scores, *weighty)
        if each["changed"]
    ]
