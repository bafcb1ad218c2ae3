"""Calendar periods in UTC, and the plans of a year that a monitor's looks belong to.

A plan has one look at the end of each period. Its periods are numbered from 1, and its error rate covers all of them; a
new plan, with a new error rate, begins with the period after the last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

PeriodKind = Literal["day", "week", "month"]
PLANNED: dict[PeriodKind, int] = {"day": 365, "week": 52, "month": 12}
"""Periods of a plan: about a year."""
DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Period:
    """A calendar period: the start is included, the end is not. Times are seconds since 1970."""

    kind: PeriodKind
    start: float
    end: float

    def next(self) -> Period:
        """Return the period after this one."""
        return period_at(self.end, self.kind)


@dataclass(frozen=True, slots=True)
class PlannedPeriod:
    """A period with its number in its plan, from 1, and the start of the plan."""

    period: Period
    number: int
    plan_start: float


def period_at(at: float, kind: PeriodKind) -> Period:
    """Return the period of a time.

    >>> from datetime import UTC, datetime
    >>> found = period_at(datetime(2026, 1, 1, tzinfo=UTC).timestamp(), "week")
    >>> datetime.fromtimestamp(found.start, UTC).date().isoformat()
    '2025-12-29'
    """
    midnight = datetime.fromtimestamp(at, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if kind == "month":
        first = midnight.replace(day=1)
        after = (first + timedelta(days=32)).replace(day=1)
    else:
        days = 1 if kind == "day" else 7
        first = midnight - timedelta(days=midnight.weekday() if kind == "week" else 0)
        after = first + timedelta(days=days)
    return Period(kind, first.timestamp(), after.timestamp())


def planned_periods(plan_start: float, kind: PeriodKind, until: float) -> Iterator[PlannedPeriod]:
    """Yield the periods that have ended by `until`, from the first one of a plan on, plan after plan."""
    period, number, start = period_at(plan_start, kind), 1, period_at(plan_start, kind).start
    while period.end <= until:
        yield PlannedPeriod(period, number, start)
        period, number = period.next(), number + 1
        if number > PLANNED[kind]:
            number, start = 1, period.start
