"""The monitor of an alias: which looks are due, and their jobs.

A look at columns and scores is due when its period has ended, and looks that need outcomes when the horizon has passed
since then. Each is made once, whatever happens: the primary key of its row is the alias, the family and the period.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.feedback import monitor_repository as repository
from app.feedback.looks import RANKING, UNLABELLED
from app.feedback.monitor_repository import MonitoredAlias
from app.feedback.periods import DAY, PlannedPeriod, period_at, planned_periods
from app.jobs import service as jobs
from app.platform.documents import StoredFeedback
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import AliasFeedback, Job, MonitorLook

MONITOR = "monitor"
"""The kind of job that makes looks."""
SEALED_SECONDS = 3600.0
"""Time after the end of a period until which its last decisions are stored."""
RETRY_SECONDS = 3600.0
"""Time after a failed job in which the alias gets no other one."""
MAX_PERIODS_OF_JOB = 60
"""Periods of a job: after a backfill there may be years of them."""


class DuePeriod(NamedTuple):
    """A period with the looks that are due: those of columns and scores, and those that need outcomes."""

    planned: PlannedPeriod
    early: bool
    mature: bool


class Due(NamedTuple):
    """The settings of an alias, and its periods with looks that are due, oldest first."""

    row: AliasFeedback
    settings: StoredFeedback
    periods: list[DuePeriod]
    looks: Sequence[MonitorLook]


def schedule(session: Session, settings: Settings, of: MonitoredAlias) -> Job | None:
    """Queue the job for the due looks of an alias. Returns None if there are none, or if a job works on them.

    Raises TooMany or Unavailable if the owner may not queue another job now.
    """
    # Several dispatchers may find the same looks due: the first one to lock the settings queues the job.
    if repository.settings_of(session, of, lock=True) is None:
        return None
    now = repository.now(session)
    if repository.is_busy(session, of, MONITOR, now - RETRY_SECONDS):
        return None
    due = find_due(session, of)
    if due is None or not due.periods:
        return None
    return jobs.enqueue(
        session,
        settings,
        owner=of.owner,
        kind=MONITOR,
        name=of.reference,
        spec={"name": of.name, "alias": of.alias},
    )


def find_due(session: Session, of: MonitoredAlias) -> Due | None:
    """Return the looks of an alias that are due; None if it is not monitored."""
    row = repository.settings_of(session, of)
    if row is None or row.settings is None or row.settings["monitor"] is None:
        return None
    looks = repository.looks_of(session, of)
    return Due(row, row.settings, list(_due(session, of, row.settings, looks)), looks)


def _due(
    session: Session, of: MonitoredAlias, settings: StoredFeedback, looks: Sequence[MonitorLook]
) -> list[DuePeriod]:
    """Return the first periods with looks that are due."""
    monitor = settings["monitor"]
    assert monitor is not None
    kind = monitor["period"]
    now = repository.now(session)
    # A plan begins with the first stored decision. Later looks keep to it, also if earlier decisions are added.
    own = [
        look
        for look in looks
        if period_at(look.period_start, kind) == period_at(look.period_end - 1.0, kind)
        and look.period_start == period_at(look.period_start, kind).start
        and look.period_end == period_at(look.period_start, kind).end
    ]
    if own:
        start: float | None = min(look.found["plan_start"] for look in own)
    else:
        start = repository.first_decision(session, of)
        latest = max((look.period_end for look in looks), default=None)
        if start is not None and latest is not None:
            start = max(start, latest)  # the length of the periods was changed
    if start is None:
        return []
    made = {(look.family, look.period_start) for look in looks}
    oldest = now - settings["days"] * DAY
    horizon = settings["outcome"]["horizon_days"] * DAY
    found: list[DuePeriod] = []
    for planned in planned_periods(start, kind, now - SEALED_SECONDS):
        period = planned.period
        if period.start < oldest:
            continue  # its decisions are deleted
        early = (UNLABELLED, period.start) not in made
        mature = (
            RANKING,
            period.start,
        ) not in made and period.end + horizon <= now - SEALED_SECONDS
        if early or mature:
            found.append(DuePeriod(planned, early, mature))
        if len(found) == MAX_PERIODS_OF_JOB:
            break
    return found
