"""Pages of the monitor: the aliases in use, the monitor of one alias, its alarms, and its challenger."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.errors import ProblemError
from rankwright.types import (
    Alarm,
    AliasShadow,
    Interval,
    LiveAlias,
    Metrics,
    MonitoredPeriod,
    OutcomeRule,
    PeriodVersion,
    ScheduledTest,
)
from starlette.responses import Response

from app.console import charts
from app.console.api import alias_segment, attempt, path_segment
from app.console.feedback import alias_page, read_settings, read_suspended
from app.console.session import ConsoleRoute, Page, PageDep
from app.measures import is_within_reach, share_interval
from app.platform.errors import shown

router = APIRouter(prefix="/console/monitoring", include_in_schema=False, route_class=ConsoleRoute)
alarms_router = APIRouter(
    prefix="/console/alarms", include_in_schema=False, route_class=ConsoleRoute
)

Json = dict[str, Any]
MAX_ALIASES = 50
"""Aliases of the first page."""
MAX_ALARMS = 50
MAX_MODELS = 5
"""Models whose validation is drawn: each is a request."""
DRAWN = 60
"""Periods of the chart."""
MONTHS, COLUMNS = 12, 20
"""Months and columns of the table of PSI."""
FAMILIES: Mapping[str, str] = {
    "ranking": "AUC",
    "calibration": "Calibration",
    "guarantee": "Guarantee of the alias",
    "selection": "Selection rates of groups",
    "group_calibration": "Calibration of groups",
    "unlabelled": "Drift of scores and columns",
    "shadow": "Challenger",
}
"""Families of tests, the most important first, and their names on the pages."""
STATUSES: Mapping[str, tuple[str, str]] = {
    "passed": ("ok", "no significant change"),
    "alarm": ("leak", "alarm"),
    "waiting": ("", "too few rows yet"),
    "not_tested": ("", "not tested"),
}
"""Statuses of a test: the class of the badge, and its words."""
ACKNOWLEDGED = ("waiting", "acknowledged alarm")
"""The badge of an alarm that is no longer open."""
TESTS = ("passed", "alarm")
"""Statuses of tests that were made."""
POPULATIONS: Mapping[str, str] = {
    "all": "all decisions",
    "flagged": "flagged decisions only",
    "unflagged": "decisions that were not flagged only",
    "none": "no decisions",
}


@router.get("")
async def read_monitoring(page: PageDep) -> Response:
    found = await page.client.overview(limit=MAX_ALIASES)
    alarms = await page.client.alarms.page(acknowledged=False, limit=MAX_ALARMS)
    monitored = [each for each in found.live if each.open_alarms or _has_monitor(each)]
    return page.show(
        "monitoring.html",
        rows=sorted(found.live, key=_urgency),
        monitored=len(monitored),
        alarmed=sum(each.open_alarms > 0 for each in found.live),
        untested=sum(each.tested_until is None for each in monitored),
        alarms=alarms,
        alarms_shown=sorted(alarms.data, key=_importance),
        families=FAMILIES,
        most=MAX_ALIASES,
    )


def is_open(alarms: Sequence[Alarm], family: str, period: MonitoredPeriod) -> bool:
    """Say whether an alarm of a period belongs to one of the open alarms: the one that was raised then, or before."""
    start = datetime.fromisoformat(period.start)
    return any(
        each.family == family and datetime.fromisoformat(each.period_start) <= start
        for each in alarms
    )


def _importance(of: Alarm) -> int:
    return list(FAMILIES).index(of.family)


def _urgency(of: LiveAlias) -> tuple[bool, bool]:
    """Sort aliases with alarms first, then those with a monitor."""
    return of.open_alarms == 0, not _has_monitor(of)


def _has_monitor(of: LiveAlias) -> bool:
    return of.feedback is not None and of.feedback.monitor is not None


@router.get("/{name}/{alias}")
async def read_monitor(page: PageDep, name: str, alias: str) -> Response:
    """Show it as it was known on a day `as_of`."""
    return await _show_monitor(page, name, alias)


async def _show_monitor(
    page: Page,
    name: str,
    alias: str,
    problem: Json | None = None,
    entered: Mapping[str, str] | None = None,
) -> Response:
    """Show a problem and entered values if an alarm could not be acknowledged."""
    settings = await read_settings(page, name, alias)
    day = _day(page)
    at = None if day is None else datetime.combine(day + timedelta(days=1), time(), UTC)
    found = await page.client.models.monitor(name, alias_segment(alias), as_of=at)
    periods = [period_row(each, found.outcome) for each in found.periods]
    validation = await _validation(page, periods)
    months = by_month(periods)
    pointed, _ = await attempt(page.client.models.read_alias(name, alias_segment(alias)), 404)
    open_alarms = [each for each in found.alarms if each.acknowledged_at is None]
    return page.show(
        "alias_monitor.html",
        200 if problem is None else problem["status"],
        name=name,
        alias=alias,
        suspended=await read_suspended(page, name, alias),
        tab="",
        settings=settings,
        found=found,
        open_alarms=sorted(open_alarms, key=_importance),
        is_open=partial(is_open, open_alarms),
        is_within_reach=is_within_reach,
        acknowledged=ACKNOWLEDGED,
        as_of=None if day is None else day.isoformat(),
        newest=newest_tests(periods),
        served=None if pointed is None else pointed.model_id,
        months=_with_gaps(months),
        columns=_by_column(months),
        chart=_chart(periods[::-1], validation),
        families=FAMILIES,
        statuses=STATUSES,
        tests=TESTS,
        populations=POPULATIONS,
        models=await _names(page, name),
        problem=problem,
        entered=entered or {},
    )


def _day(page: Page) -> date | None:
    """Return None, with a notice, if it is no day that the API can take."""
    asked = page.asked("as_of")
    if asked is None:
        return None
    try:
        found = date.fromisoformat(asked)
    except ValueError:
        found = None
    if found is None or not 1970 <= found.year <= 9998:
        page.tell(f"as_of must be a day such as 2026-06-30, got {shown(asked)}: it was ignored.")
        return None
    return found


async def _names(page: Page, name: str) -> dict[str, str]:
    """Return newest versions as `name:version`, by id."""
    listed = await page.client.models.page(name=name, limit=200)
    return {each.id: f"{each.name}:{each.version}" for each in listed.data}


class PeriodRow(NamedTuple):
    """A period, its tests by family, its counts. `known`, `positives`: None until outcomes are final, at `final_at`."""

    of: MonitoredPeriod
    tests: Mapping[str, ScheduledTest]
    known: int | None
    positives: int | None
    final_at: str | None

    @property
    def ranking(self) -> ScheduledTest | None:
        return self.tests.get("ranking")

    @property
    def missing(self) -> int | None:
        """Decisions without an outcome, once outcomes are final."""
        if self.known is None:
            return None
        return max(0, sum(each.rows for each in self.of.versions) - self.known)

    @property
    def first_day(self) -> str:
        return self.of.start[:10]

    @property
    def last_day(self) -> str:
        end = datetime.fromisoformat(self.of.end) - timedelta(seconds=1)
        return end.date().isoformat()


class Fraction(NamedTuple):
    """A count of decisions, and of those it is compared with."""

    part: int
    whole: int
    inflation: float = 1.0
    """Factor of the variance, because entities recur."""

    @property
    def value(self) -> float | None:
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float] | None:
        return share_interval(self.part, self.whole, self.inflation) if self.whole else None


class Month(NamedTuple):
    """The periods that begin in a month, newest first."""

    name: str
    periods: Sequence[PeriodRow]

    @property
    def decisions(self) -> int:
        return sum(each.of.decisions for each in self.periods)

    @property
    def lost(self) -> int:
        return sum(each.of.lost for each in self.periods)

    @property
    def mature(self) -> Sequence[PeriodRow]:
        """Periods whose outcomes are final."""
        return [each for each in self.periods if each.known is not None]

    @property
    def flagged(self) -> Fraction:
        """Of the decisions that had a threshold."""
        own = [each for each in self._versions(self.periods) if each.threshold is not None]
        return Fraction(sum(each.flagged for each in own), sum(each.rows for each in own))

    @property
    def positives(self) -> Fraction:
        """Of the decisions with an outcome."""
        own = self._versions(self.mature)
        known = sum(each.known for each in own)
        return Fraction(sum(each.positives for each in own), known, self._inflation)

    @property
    def precision(self) -> Fraction:
        """Positives of the flagged decisions with an outcome that was looked for."""
        own = self._versions(self.mature)
        of = sum(each.flagged_known for each in own)
        return Fraction(sum(each.flagged_positives for each in own), of, self._inflation)

    @property
    def aucs(self) -> Sequence[float]:
        """In ascending order."""
        tests = [each.ranking for each in self.periods]
        return sorted(each.value for each in tests if each is not None and each.value is not None)

    @property
    def psi(self) -> float | None:
        """The greatest PSI of the score in a period."""
        tests = [each.tests.get("unlabelled") for each in self.periods]
        return max((each.value for each in tests if each and each.value is not None), default=None)

    @property
    def alarms(self) -> Sequence[str]:
        """Families with an alarm."""
        return [name for name in FAMILIES if "alarm" in self._statuses(name)]

    @property
    def is_tested(self) -> bool:
        return any("passed" in self._statuses(name) for name in FAMILIES)

    def column_psi(self) -> dict[str, float]:
        """Return the greatest PSI of each column in a period."""
        found: dict[str, float] = {}
        for each in self.periods:
            test = each.tests.get("unlabelled")
            for name, psi in ((test and test.psi) or {}).items():
                found[name] = max(psi, found.get(name, psi))
        return found

    @property
    def _inflation(self) -> float:
        """The greatest factor of the variance of an AUC, because entities come back in later periods; 1 for one period,
        and without their ids.
        """
        if len(self.mature) == 1:
            return 1.0
        windows = [each.ranking.window for each in self.mature if each.ranking is not None]
        return max((each.inflation or 1.0 for each in windows if each is not None), default=1.0)

    def _statuses(self, family: str) -> set[str]:
        return {each.tests[family].status for each in self.periods if family in each.tests}

    def _versions(self, periods: Sequence[PeriodRow]) -> list[PeriodVersion]:
        return [version for each in periods for version in each.of.versions]


def by_month(periods: Sequence[PeriodRow]) -> list[Month]:
    """Newest first, as the periods."""
    grouped = groupby(periods, key=lambda each: each.first_day[:7])
    return [Month(name, list(own)) for name, own in grouped]


class Gap(NamedTuple):
    """Neighbouring months without decisions: the first and the last."""

    first: str
    last: str


def _with_gaps(months: Sequence[Month]) -> list[Month | Gap]:
    """Newest first; a `Gap` replaces neighbours without decisions."""
    found: list[Month | Gap] = []
    for empty, group in groupby(months, key=lambda each: not each.decisions):
        own = list(group)
        found += [Gap(own[-1].name, own[0].name)] if empty else own
    return found


class ColumnRow(NamedTuple):
    """The PSI of a column in each month, oldest first; None if it was not compared."""

    name: str
    psi: Sequence[float | None]


class ColumnTable(NamedTuple):
    months: Sequence[str]
    rows: Sequence[ColumnRow]
    left_out: int


def _by_column(months: Sequence[Month]) -> ColumnTable | None:
    """Return the columns with the greatest PSI first; None if no column was compared. `months` are newest first."""
    compared = [(each.name, psi) for each in months if (psi := each.column_psi())]
    found = compared[MONTHS - 1 :: -1]
    greatest: dict[str, float] = {}
    for _, psi in found:
        for column, value in psi.items():
            greatest[column] = max(value, greatest.get(column, value))
    names = sorted(greatest, key=lambda name: -greatest[name])
    rows = [ColumnRow(name, [psi.get(name) for _, psi in found]) for name in names[:COLUMNS]]
    if not rows:
        return None
    return ColumnTable([name for name, _ in found], rows, len(names) - len(rows))


def newest_tests(periods: Sequence[PeriodRow]) -> list[ScheduledTest]:
    """Return each family's newest test of a period with decisions or, if none was made, the newest reason.

    Tests come before reasons.
    """
    found: dict[str, ScheduledTest] = {}
    for each in periods:
        for family, test in each.tests.items() if each.of.decisions else ():
            known = found.get(family)
            if known is None or (known.status not in TESTS and test.status in TESTS):
                found[family] = test
    newest = [found[family] for family in FAMILIES if family in found]
    return sorted(newest, key=lambda test: test.status not in TESTS)


def period_row(of: MonitoredPeriod, outcome: OutcomeRule | None) -> PeriodRow:
    """`outcome` is the rule of the monitor."""
    tests: dict[str, ScheduledTest] = {each.family: each for each in of.tests}
    known = positives = final_at = None
    if "ranking" in tests:
        known = sum(each.known for each in of.versions)
        positives = sum(each.positives for each in of.versions)
    elif outcome is not None:
        end = datetime.fromisoformat(of.end)
        final_at = (end + timedelta(days=outcome.horizon_days)).date().isoformat()
    return PeriodRow(of, tests, known, positives, final_at)


async def _validation(page: Page, periods: Sequence[PeriodRow]) -> dict[str, Interval]:
    """Return validation AUCs of the models that were tested last."""
    ids = [test.model_id for each in periods if (test := each.ranking) is not None]
    known = list(dict.fromkeys(id_ for id_ in ids if id_ is not None))[:MAX_MODELS]
    found = await asyncio.gather(
        *(attempt(page.client.models[id_].read_metrics(), 404, 409, 422) for id_ in known)
    )
    return {
        id_: metrics.auc
        for id_, (metrics, _) in zip(known, found, strict=True)
        if isinstance(metrics, Metrics)
    }


def _chart(periods: Sequence[PeriodRow], validation: Mapping[str, Interval]) -> Markup | None:
    """Draw each AUC beside the one it is compared with."""
    drawn: list[charts.Compared] = []
    for each in periods:
        test = each.ranking
        found = reference = None
        if test is not None and test.value is not None:
            low, high = (test.value if end is None else end for end in (test.low, test.high))
            found = charts.Estimate(each.first_day, test.value, low, high)
        if test is not None and test.expected is not None:
            auc = validation.get(test.model_id or "")
            limits = test.expected, test.expected
            # After an alarm the reference may be that of later periods.
            if auc is not None and abs((auc.value or 0.0) - test.expected) < 1e-6:
                limits = auc.low or test.expected, auc.high or test.expected
            reference = charts.Estimate("reference", test.expected, *limits)
        alarm = test is not None and test.status == "alarm"
        drawn.append(charts.Compared(each.first_day, found, reference, alarm))
    measured = [number for number, each in enumerate(drawn) if each.estimate]
    if not measured:
        return None
    drawn = drawn[measured[0] : measured[-1] + 1][-DRAWN:]
    return charts.over_periods(drawn, "AUC of each period, and of the reference")


@router.get("/{name}/{alias}/shadow")
async def read_shadow(page: PageDep, name: str, alias: str) -> Response:
    """Show the difference of the AUC, and what would be flagged instead."""
    settings = await read_settings(page, name, alias)
    found = await page.client.models.shadow(name, alias_segment(alias))
    names = await _names(page, name)
    for compared in (found.challenger_id, found.champion_id):
        if compared is not None and compared not in names:
            other, _ = await attempt(page.client.models[compared].read(), 404)
            names |= {} if other is None else {compared: f"{other.name}:{other.version}"}
    served, _ = await attempt(page.client.models.read_alias(name, alias_segment(alias)), 404)
    return page.show(
        "alias_shadow.html",
        name=name,
        alias=alias,
        suspended=served if served and served.break_glass_until else None,
        is_promoted=served is not None and served.model_id == found.challenger_id,
        tab="shadow",
        settings=settings,
        found=found,
        chart=_shadow_chart(found),
        is_within_reach=is_within_reach,
        models=names,
        statuses=STATUSES,
    )


def _shadow_chart(found: AliasShadow) -> Markup | None:
    """Draw the difference of the AUC with its limits, and the tolerance around 0."""
    tolerance = found.tolerance or 0.0
    equal = charts.Estimate("no difference", 0.0, -tolerance, tolerance)
    drawn = []
    for test in found.tests[:DRAWN][::-1]:
        if (of := test.comparison) is not None:
            day = test.period_start[:10]
            estimate = charts.Estimate(day, of.difference, of.low, of.high)
            drawn.append(charts.Compared(day, estimate, equal, alarm=False))
    if not drawn:
        return None
    return charts.over_periods(drawn, "Difference of the AUC so far, after each period")


@alarms_router.post("/{alarm_id}/acknowledge")
async def acknowledge_alarm(page: PageDep, alarm_id: str) -> Response:
    form = await page.form()
    alarm = await page.client.alarms.get(path_segment(alarm_id))
    try:
        await page.client.alarms.acknowledge(
            alarm.id, reason=form.get("reason", ""), reference=form.get("reference", "")
        )
    except ProblemError as error:
        if error.status not in (409, 422):
            raise
        entered = {"alarm": alarm.id, **{name: form.get(name, "") for name in ACKNOWLEDGEMENT}}
        return await _show_monitor(page, alarm.name, alarm.alias, error.problem, entered)
    return page.go(f"{alias_page(alarm.name, alarm.alias)}#alarms")


ACKNOWLEDGEMENT = ("reason", "reference")
"""The fields of the form that acknowledges an alarm."""
