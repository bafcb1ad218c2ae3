"""The monitor of an alias: which tests are due, and their jobs.

A test of columns and scores is due when its period has ended, and tests that need outcomes when the horizon has passed
since then. Each test is made exactly once: the primary key of its row is the alias, the family and the period.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from app.feedback import monitor_repository as repository
from app.feedback.monitor_repository import MonitoredAlias, TrainingDecisions
from app.feedback.periods import DAY, Period, period_at, periods_between
from app.feedback.scheduled_tests import (
    RANKING,
    SHADOW,
    UNLABELLED,
    CalibrationReference,
    held_out_reference,
)
from app.jobs import service as jobs
from app.models import repository as model_repository
from app.models import service as models
from app.models.calibrations import LEARNT_ON_DATASET, write_file
from app.platform.documents import PeriodKind, StoredFeedback
from app.platform.errors import NotFound
from app.platform.settings import Settings
from app.platform.sql import Session, read_clock
from app.platform.tables import AliasFeedback, Job, Model, MonitorTest

MONITOR = "monitor"
"""The kind of job that makes tests."""
SEALED_SECONDS = 3600.0
"""Time after the end of a period until which its last decisions are stored."""
RETRY_SECONDS = 3600.0
"""Time after a failed job before the alias gets another one."""
SHADOW_PERIOD: PeriodKind = "week"
"""Length of the periods of a comparison if the alias has no monitor."""
MAX_PERIODS_OF_JOB = 60
"""Maximum number of periods of a job: after a backfill there may be years of them."""


_MOST_CALIBRATIONS = 100  # the newest: earlier ones are not in use any more


class DuePeriod(NamedTuple):
    """A period with its due tests: of columns and scores, with outcomes, and of the challenger."""

    period: Period
    early: bool
    mature: bool
    shadow: bool


class Due(NamedTuple):
    """The settings of an alias, and its periods with due tests, oldest first."""

    row: AliasFeedback
    settings: StoredFeedback
    periods: list[DuePeriod]
    tests: Sequence[MonitorTest]


def may_be_due(session: Session, of: MonitoredAlias) -> bool:
    """Return False if no test of an alias is due; else ask `schedule`. Asked every minute: reads few rows, unlocked."""
    row = repository.settings_of(session, *of)
    if row is None or row.settings is None:
        return False
    monitor, now = row.settings["monitor"], read_clock(session) - SEALED_SECONDS
    kind: PeriodKind = SHADOW_PERIOD if monitor is None else monitor["period"]
    horizon = row.settings["outcome"]["horizon_days"] * DAY
    families = [] if monitor is None else [(UNLABELLED, now), (RANKING, now - horizon)]
    if row.settings["shadow"] is not None:
        families.append((SHADOW, now - horizon))
    for family, at in families:
        last = repository.last_tested(session, *of, family)
        if last is not None:
            period = period_at(last, kind).next()
        elif (first := repository.first_decision(session, *of)) is not None:
            period = period_at(first, kind)
        else:
            continue
        if family == SHADOW:
            trained = _trained_until(session, of.owner, row.settings)
            if period.start < trained:
                period = period_at(trained, kind)
            if period.start < trained:
                period = period.next()
        if period.end <= at:
            return True
    return False


def schedule(session: Session, settings: Settings, of: MonitoredAlias) -> Job | None:
    """Queue the job for the due tests, if any, unless such a job is unfinished. Raises TooMany or Unavailable."""
    # Several dispatchers may find the same tests due: the first one to lock the settings queues the job.
    if repository.settings_of(session, *of, lock=True) is None:
        return None
    now = read_clock(session)
    if repository.is_busy(session, of.owner, MONITOR, of.reference, now - RETRY_SECONDS):
        return None
    settings_now = _watched(session, of)
    if settings_now is None or not _due(
        session, of, settings_now[1], repository.tested_periods(session, *of)
    ):
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
    """Return None if the alias has neither a monitor nor a shadow model."""
    if (watched := _watched(session, of)) is None:
        return None
    tests = repository.scheduled_tests_of(session, *of)
    return Due(*watched, _due(session, of, watched[1], tests), tests)


def _watched(session: Session, of: MonitoredAlias) -> tuple[AliasFeedback, StoredFeedback] | None:
    row = repository.settings_of(session, *of)
    if row is None or row.settings is None:
        return None
    if row.settings["monitor"] is None and row.settings["shadow"] is None:
        return None
    return row, row.settings


class _Tested(Protocol):
    @property
    def family(self) -> str: ...
    @property
    def period_start(self) -> float: ...
    @property
    def period_end(self) -> float: ...


def _due(
    session: Session, of: MonitoredAlias, settings: StoredFeedback, tests: Sequence[_Tested]
) -> list[DuePeriod]:
    monitor = settings["monitor"]
    kind: PeriodKind = SHADOW_PERIOD if monitor is None else monitor["period"]
    now = read_clock(session)
    # Later tests keep to the first one, also if decisions are added that are earlier.
    own = [test for test in tests if _is_of(test, kind)]
    if own:
        start: float | None = own[0].period_start
    else:
        start = repository.first_decision(session, *of)
        if start is not None:  # or the length of the periods was changed
            start = max([start, *(test.period_end for test in tests)])
    if start is None:
        return []
    made = {(test.family, test.period_start) for test in own}
    oldest = now - settings["days"] * DAY  # earlier decisions are deleted
    horizon = settings["outcome"]["horizon_days"] * DAY
    compared_from = _compared_from(session, of, settings, own)
    found: list[DuePeriod] = []
    for period in periods_between(max(start, oldest), kind, now - SEALED_SECONDS):
        is_mature = period.end + horizon <= now - SEALED_SECONDS
        due = DuePeriod(
            period,
            early=monitor is not None and (UNLABELLED, period.start) not in made,
            mature=monitor is not None and is_mature and (RANKING, period.start) not in made,
            shadow=compared_from is not None and is_mature and period.start >= compared_from,
        )
        if due.early or due.mature or due.shadow:
            found.append(due)
        if len(found) == MAX_PERIODS_OF_JOB:
            break
    return found


def _compared_from(
    session: Session, of: MonitoredAlias, settings: StoredFeedback, tests: Sequence[_Tested]
) -> float | None:
    """Return the time from which periods are compared: after the last compared one, and after the shadow model's
    training, unless its entities are known.

    None without a shadow model.
    """
    if settings["shadow"] is None:
        return None
    last = max((test.period_end for test in tests if test.family == SHADOW), default=0.0)
    return max(last, _trained_until(session, of.owner, settings))


def _trained_until(session: Session, owner: str, settings: StoredFeedback) -> float:
    """Return 0 if the entities are known, and without the model: then each period says that it was deleted."""
    found = training_of(session, owner, settings["shadow"])
    return 0.0 if found is None or found.group is not None else found.until


def training_of(session: Session, owner: str, shadow: str | None) -> TrainingDecisions | None:
    """Return which decisions may be in the training data of a shadow model; None if there is none."""
    if shadow is None:
        return None
    try:
        return repository.training_of(session, owner, models.find(session, owner, shadow))
    except NotFound:
        return None


def _is_of(test: _Tested, kind: PeriodKind) -> bool:
    period = period_at(test.period_start, kind)
    return (test.period_start, test.period_end) == (period.start, period.end)


def calibrations_of(
    session: Session, model: Model, workdir: Path | None = None
) -> list[CalibrationReference]:
    """Return what held-out rows say about each calibration, oldest first.

    Those that were fitted on the rows of the validation curve are written to `workdir`.
    """
    found: list[CalibrationReference] = []
    for each in reversed(model_repository.list_calibrations(session, model.id, _MOST_CALIBRATIONS)):
        # Decisions of the past may be recorded later, by a model that was made later.
        at = each.created_at if found else 0.0
        classes = each.positives, each.rows - each.positives
        reference = held_out_reference(each.reliability, at, classes)
        by_time = each.reliability is not None and each.reliability.get("periods") is not None
        if workdir is not None and each.trained_on != LEARNT_ON_DATASET and not by_time:
            reference["file"] = write_file(each, workdir, f"{model.id}.{each.version}.npz")
        found.append(reference)
    return found
