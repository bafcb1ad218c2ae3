"""Cron expressions of five fields, in UTC: when they are due, and whether a schedule may have them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from app.platform.errors import invalid, shown

if TYPE_CHECKING:
    from cronsim import CronSim

MIN_MINUTES = 5
"""Shortest time between two due times of a schedule."""
MAX_LENGTH = 100
_EXAMPLE = "such as '0 5 * * 1-5' (minute, hour, day of month, month, day of week)"


def checked(expression: str, now: float) -> str:
    """Return the expression with single spaces. `now` is in seconds since 1970.

    Raises Invalid if it is not one of five fields, is never due, or is due more often than every `MIN_MINUTES`.
    """
    from cronsim import CronSimError

    fields = expression.upper().split()
    if len(fields) != 5:
        raise _invalid(expression, f"it has {len(fields)}")
    normal = " ".join(fields)
    try:
        parsed = _parsed(normal, now)
    except CronSimError as error:
        raise _invalid(expression, str(error).lower()) from None
    if next(parsed, None) is None:
        raise _invalid(expression, "it is never due")
    if (minutes := _least_minutes(parsed)) < MIN_MINUTES:
        raise invalid(
            "/cron",
            f"cron must be due at most every {MIN_MINUTES} minutes, got {shown(expression)}, which is due twice "
            f"within {minutes}",
            code="schedule_too_frequent",
        )
    return normal


def next_due(expression: str, now: float) -> float:
    """Return seconds since 1970; the expression was checked."""
    return next(_parsed(expression, now)).timestamp()


def _parsed(expression: str, now: float) -> CronSim:
    from cronsim import CronSim

    return CronSim(expression, datetime.fromtimestamp(now, UTC))


def _least_minutes(parsed: CronSim) -> int:
    """Assume that every day is one that the expression names."""
    minutes = sorted(parsed.minutes)
    between = [later - earlier for earlier, later in pairwise(minutes)]
    if any((hour + 1) % 24 in parsed.hours for hour in parsed.hours):
        between.append(60 - minutes[-1] + minutes[0])
    return min(between, default=60)


def _invalid(expression: str, why: str) -> Exception:
    return invalid(
        "/cron",
        f"cron must be an expression of five fields, {_EXAMPLE}, got {shown(expression)}: {why}",
    )
