"""Calendar periods in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.platform.documents import PeriodKind

PLANNED: dict[PeriodKind, int] = {"day": 365, "week": 52, "month": 12}
"""Periods of a term of a monitor: about a year."""
DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Period:
    """A calendar period: the start is included, the end is not. Times are seconds since 1970."""

    kind: PeriodKind
    start: float
    end: float

    def next(self) -> Period:
        return period_at(self.end, self.kind)


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


def periods_between(start: float, kind: PeriodKind, until: float) -> Iterator[Period]:
    """Yield periods that have ended by `until`, from that of `start` on."""
    period = period_at(start, kind)
    while period.end <= until:
        yield period
        period = period.next()


def numbered_period(start: float, kind: PeriodKind, number: int) -> Period:
    """Return a period by its number from 1, the number of the period of `start`."""
    found = period_at(start, kind)
    for _ in range(number - 1):
        found = found.next()
    return found


def count_periods(start: float, last: Period) -> int:
    """Count the periods from the one that begins at `start` to `last`."""
    return sum(1 for _ in periods_between(start, last.kind, last.end))
