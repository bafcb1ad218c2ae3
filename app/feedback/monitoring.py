"""The monitor of an alias: which looks are due, and their jobs.

A look at columns and scores is due when its period has ended, and looks that need outcomes when the horizon has passed
since then. Each look is made exactly once: the primary key of its row is the alias, the family and the period.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, cast

from app.feedback import monitor_repository as repository
from app.feedback.looks import (
    CALIBRATION,
    GUARANTEE,
    RANKING,
    SHADOW,
    TESTED,
    UNLABELLED,
    CalibrationReference,
    StoredLook,
    alpha_of,
    measurements,
    reference_of,
)
from app.feedback.monitor_repository import MonitoredAlias
from app.feedback.periods import DAY, PLANNED, Period, PeriodKind, period_at, periods_between
from app.feedback.shadow import total_swap
from app.jobs import service as jobs
from app.models import aliases, curves
from app.models import repository as model_repository
from app.models import service as models
from app.models.service import VALIDATION
from app.platform.documents import Interval, MonitorSettings, OutcomeRule, StoredFeedback
from app.platform.errors import NotFound, check_name
from app.platform.settings import Settings
from app.platform.sql import Json, Session, read_clock
from app.platform.tables import Alarm, AliasFeedback, Job, Model, MonitorLook
from core.errors import InvalidParameter

MONITOR = "monitor"
"""The kind of job that makes looks."""
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
    """A period with its due looks: looks at columns and scores, looks that need outcomes, and the comparison with the
    shadow model.
    """

    period: Period
    early: bool
    mature: bool
    shadow: bool


class Due(NamedTuple):
    """The settings of an alias, and its periods with looks that are due, oldest first."""

    row: AliasFeedback
    settings: StoredFeedback
    periods: list[DuePeriod]
    looks: Sequence[MonitorLook]


def may_be_due(session: Session, of: MonitoredAlias) -> bool:
    """Return False if no look of an alias is due; True if one may be, which `schedule` finds out.

    It reads a few rows, without a lock: it is asked for every recorded alias every minute.
    """
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
        last = repository.last_looked(session, *of, family)
        if last is None:
            last = repository.first_decision(session, *of)
            if last is not None and period_at(last, kind).end <= at:
                return True
        elif period_at(period_at(last, kind).end, kind).end <= at:
            return True
    return False


def schedule(session: Session, settings: Settings, of: MonitoredAlias) -> Job | None:
    """Queue the job for the due looks of an alias. Returns None if there are none, or if a job for them is unfinished.

    Raises TooMany or Unavailable if the owner may not queue another job now.
    """
    # Several dispatchers may find the same looks due: the first one to lock the settings queues the job.
    if repository.settings_of(session, *of, lock=True) is None:
        return None
    now = read_clock(session)
    if repository.is_busy(session, of.owner, MONITOR, of.reference, now - RETRY_SECONDS):
        return None
    settings_now = _watched(session, of)
    if settings_now is None or not _due(
        session, of, settings_now[1], repository.looked_periods(session, *of)
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
    """Return the looks of an alias that are due; None if it has neither a monitor nor a shadow model."""
    if (watched := _watched(session, of)) is None:
        return None
    looks = repository.looks_of(session, *of)
    return Due(*watched, _due(session, of, watched[1], looks), looks)


def _watched(session: Session, of: MonitoredAlias) -> tuple[AliasFeedback, StoredFeedback] | None:
    """Return the settings of an alias that has a monitor or a shadow model."""
    row = repository.settings_of(session, *of)
    if row is None or row.settings is None:
        return None
    if row.settings["monitor"] is None and row.settings["shadow"] is None:
        return None
    return row, row.settings


class _Looked(Protocol):
    """The family and the period of a look."""

    @property
    def family(self) -> str: ...
    @property
    def period_start(self) -> float: ...
    @property
    def period_end(self) -> float: ...


def _due(
    session: Session, of: MonitoredAlias, settings: StoredFeedback, looks: Sequence[_Looked]
) -> list[DuePeriod]:
    """Return the first periods with looks that are due."""
    monitor = settings["monitor"]
    kind: PeriodKind = SHADOW_PERIOD if monitor is None else monitor["period"]
    now = read_clock(session)
    # Later looks keep to the first one, also if decisions are added that are earlier.
    own = [look for look in looks if _is_of(look, kind)]
    if own:
        start: float | None = own[0].period_start
    else:
        start = repository.first_decision(session, *of)
        if start is not None:  # or the length of the periods was changed
            start = max([start, *(look.period_end for look in looks)])
    if start is None:
        return []
    made = {(look.family, look.period_start) for look in own}
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
    session: Session, of: MonitoredAlias, settings: StoredFeedback, looks: Sequence[_Looked]
) -> float | None:
    """Return the time from which periods are compared with the shadow model: after the last compared period, and after
    the decisions that the model may have been trained on. None without a shadow model.
    """
    if settings["shadow"] is None:
        return None
    last = max((look.period_end for look in looks if look.family == SHADOW), default=0.0)
    # Without the model, each period says that it was deleted.
    return max(last, _unseen_from(session, of.owner, settings["shadow"]) or 0.0)


def _unseen_from(session: Session, owner: str, shadow: str | None) -> float | None:
    """Return the time from which on no decision is in the shadow model's training data; None without such a model."""
    if shadow is None:
        return None
    try:
        return repository.unseen_from(session, owner, models.find(session, owner, shadow))
    except NotFound:
        return None


def _is_of(look: _Looked, kind: PeriodKind) -> bool:
    """Return True if a look is at a period of this kind."""
    period = period_at(look.period_start, kind)
    return (look.period_start, look.period_end) == (period.start, period.end)


MAX_SHOWN = 100
"""Maximum number of periods, and of alarms, in a response."""
POWER = 0.8
"""Probability with which the smallest detectable fall is found."""
_UNLIMITED = 1e9
_RECURRING = 1.2  # of the variance: less is within the error of a few sketches


@dataclass(frozen=True)
class Budget:
    """The error probability of a family in the current plan, and the part that its looks have used."""

    family: str
    alpha: float
    spent: float


@dataclass(frozen=True)
class Detectable:
    """The smallest lasting fall of the AUC that the monitor finds with probability `power`; None: no fall is found, or
    no rows are known. `odds` is the smallest lasting factor of the odds of a positive that can be found with unlimited
    rows; None without a calibration whose error is known.
    """

    drop: float | None
    floor: float | None
    odds: float | None
    power: float
    rows: float | None
    periods_per_look: int | None
    validation_positives: float
    validation_negatives: float


@dataclass(frozen=True)
class PeriodOfLooks:
    """A period with its looks, and the counts of its decisions."""

    start: float
    end: float
    decisions: int
    lost: int
    corrections: int | None
    versions: Sequence[Json]
    looks: Sequence[MonitorLook]


@dataclass(frozen=True)
class Monitor:
    """The results of the monitor of an alias as of a time."""

    name: str
    alias: str
    as_of: float
    revision: int | None
    settings: MonitorSettings | None
    outcome: OutcomeRule | None
    budget: Sequence[Budget]
    detectable: Detectable | None
    recorded: int
    lost: int
    alarms: Sequence[Alarm]
    periods: Sequence[PeriodOfLooks]


def read(
    session: Session, owner: str, name: str, alias: str, as_of: float | None
) -> Callable[[], Monitor]:
    """Read the results of the monitor of an alias as of a time, by default now; returns a function that computes the
    rest without the database. Raises NotFound if there is no such alias.
    """
    check_name("alias", alias)
    of = MonitoredAlias(owner, name, alias)
    at = read_clock(session) if as_of is None else as_of
    current = model_repository.find_alias(session, owner, name, alias)
    row = repository.settings_of(session, *of, at=at)
    if current is None and row is None:
        aliases.get_alias(session, owner, name, alias)  # raises NotFound
    settings = None if row is None else row.settings
    monitor = None if settings is None else settings["monitor"]
    looks = repository.looks_of(session, *of, at=at)
    counts = repository.count_decisions(session, *of)
    alarms = repository.alarms_of(session, *of, at=at)[:MAX_SHOWN]
    for alarm in alarms:
        # A later acknowledgement was not known then.
        if alarm.acknowledged_at is not None and alarm.acknowledged_at > at:
            session.expunge(alarm)
            alarm.acknowledged_at = alarm.reason = alarm.reference = alarm.author = None
    compute = None if current is None else find_detectable(session, of, settings, looks)
    return lambda: Monitor(
        name=name,
        alias=alias,
        as_of=at,
        revision=None if row is None else row.revision,
        settings=monitor,
        outcome=None if settings is None else settings["outcome"],
        budget=[] if monitor is None else _budget(monitor, looks),
        detectable=None if compute is None else compute(),
        recorded=counts[0],
        lost=counts[1],
        alarms=alarms,
        periods=_periods(looks),
    )


def _budget(monitor: MonitorSettings, looks: Sequence[MonitorLook]) -> list[Budget]:
    """Return the α that each family has used in its newest term. The α of a look belongs to its series; the α of
    earlier series of the term is added.
    """
    found = []
    for family in TESTED:
        own = [look.found for look in looks if look.family == family]
        term = own[-1]["term_start"] if own else None
        by_series = {
            each["since"]: each["alpha_spent"] for each in own if each["term_start"] == term
        }
        alpha = alpha_of(family, monitor)
        found.append(Budget(family, alpha, min(alpha, sum(by_series.values()))))
    return found


def _periods(looks: Sequence[MonitorLook]) -> list[PeriodOfLooks]:
    by_period: dict[float, list[MonitorLook]] = {}
    for look in looks:
        if look.family == SHADOW:
            continue
        by_period.setdefault(look.period_start, []).append(look)
    found = []
    for start in sorted(by_period, reverse=True)[:MAX_SHOWN]:
        own = by_period[start]
        details = {look.family: look.found["details"] for look in own}
        early, mature = details.get(UNLABELLED, {}), details.get(RANKING)
        versions = (early if mature is None else mature).get("versions") or early.get("versions")
        first = own[0]
        found.append(
            PeriodOfLooks(
                start=start,
                end=first.period_end,
                decisions=early.get("decisions", 0),
                lost=early.get("lost", 0),
                corrections=None if mature is None else mature.get("corrections", 0),
                versions=versions or [],
                looks=own,
            )
        )
    return found


def find_detectable(
    session: Session,
    of: MonitoredAlias,
    settings: StoredFeedback | None,
    looks: Sequence[MonitorLook] | None = None,
) -> Callable[[], Detectable | None] | None:
    """Read the validation of the alias's model and the rows of its newest tested period; returns a function that
    computes the smallest detectable fall of the AUC. None if the monitor is off, or the model has no validation curve.
    """
    monitor = None if settings is None else settings["monitor"]
    if monitor is None:
        return None
    model = models.find(session, of.owner, of.reference)
    measured = curves.find_curve_on(session, model, VALIDATION)
    if measured is None:
        return None
    if looks is None:
        looks = repository.looks_of(session, *of)
    own = [
        cast(StoredLook, look.found)
        for look in looks
        if look.family == RANKING and look.found["model_id"] == model.id and look.found["known"]
    ]
    calibrations = calibrations_of(session, model)
    return partial(_detectable, measured, monitor, own, calibrations[-1] if calibrations else None)


def calibrations_of(session: Session, model: Model) -> list[CalibrationReference]:
    """Return what the held-out rows of each calibration of a model say about it, oldest first."""

    def limits(interval: Interval | None) -> list[float] | None:
        return interval and [interval["value"], interval["low"], interval["high"]]

    found: list[CalibrationReference] = []
    for each in reversed(model_repository.list_calibrations(session, model.id, _MOST_CALIBRATIONS)):
        held_out = each.reliability
        found.append(
            {
                # Decisions of the past may be recorded later, by a model that was made later.
                "at": each.created_at if found else 0.0,
                "in_the_large": None if held_out is None else limits(held_out["in_the_large"]),
                "slope": None if held_out is None else limits(held_out["slope"]),
                "level": 0.95 if held_out is None else held_out["level"],
                "positives": each.positives,
                "negatives": each.rows - each.positives,
            }
        )
    return found


def _detectable(
    measured: curves.PartCurve,
    monitor: MonitorSettings,
    looks: Sequence[StoredLook],
    calibration: CalibrationReference | None,
) -> Detectable:
    """Compute the smallest detectable changes. `looks` are those of the ranking with outcomes."""
    from core.monitoring import (
        measure_on_stored_curve,
        recurrence_of,
        smallest_detectable_drop,
        smallest_detectable_shift,
    )

    validation = measure_on_stored_curve(measured.curve, measured.totals)
    known = looks[-1] if looks else None
    rows = prevalence = None
    if known is not None and 0 < known["positives"] < known["known"]:
        rows, prevalence = float(known["known"]), known["positives"] / known["known"]
    if prevalence is None:
        positive, negative = measured.totals.positive, measured.totals.negative
        prevalence = positive / (positive + negative)
    # Of days the time would be half a minute: seven are taken together, with nearly the same result.
    days = 7 if monitor["period"] == "day" else 1
    planned = PLANNED[monitor["period"]] // days
    try:
        found = smallest_detectable_drop(
            validation,
            rows=_UNLIMITED if rows is None else rows * days,
            prevalence=prevalence,
            planned=planned,
            alpha=alpha_of(RANKING, monitor),
            tolerance=monitor["tolerance"].get("auc", 0.0),
            power=POWER,
            recurrence=recurrence_of([each.by_entity for each in measurements(looks)]),
        )
    except InvalidParameter:  # too few rows for a single look within a plan
        found = None
    drop = None if found is None or rows is None or found.drop > 1.0 else found.drop
    floor = None if found is None or found.floor > 1.0 else found.floor
    odds = None
    if calibration is not None and (held_out := reference_of(calibration)) is not None:
        shift = smallest_detectable_shift(
            held_out.level,
            planned=planned,
            alpha=alpha_of(CALIBRATION, monitor) / 2.0,
            tolerance=monitor["tolerance"].get("calibration", 0.0),
            power=POWER,
        )
        odds = math.exp(shift)
    return Detectable(
        drop,
        floor,
        odds,
        POWER,
        rows,
        None if found is None or rows is None else found.periods_per_look * days,
        validation.positives,
        validation.negatives,
    )


def say_look(family: str, found: Json) -> str:
    """Return the result of a look in one sentence."""
    status, reason = found["status"], found["reason"]
    if status == "waiting":
        return f"Not tested yet: {reason}."
    if status == "not_tested":
        return f"Not tested: {reason}."
    if family == UNLABELLED:
        names = [each["name"] or "the score" for each in found["details"]["shifted"]]
        if status == "alarm":
            return f"Shifted since training: {', '.join(names[:5])}."
        if names:
            return f"Still shifted, as acknowledged: {', '.join(names[:5])}."
        return "No significant shift of the score or of a column that matters."
    details = found["details"]
    if family == SHADOW:
        return say_comparison(details["comparison"])
    if family == GUARANTEE:
        said = _say_guarantee(found)
    else:
        said = _say_auc(found) if family == RANKING else _say_calibration(found)
        said += _say_missing(found)
    window = details.get("window")
    if window is None or window["inflation"] is None:
        return f"{said} Decisions have no entity ids, so rows are assumed to be independent."
    if window["inflation"] >= _RECURRING:
        times = window["inflation"]
        return f"{said} Entities come back in later periods: the variance is {times:.1f} times that of new ones."
    return said


def _when(window: Json) -> str:
    if window["first"] == window["last"]:
        return f"in period {window['last']}"
    return f"in periods {window['first']} to {window['last']}"


def _say_auc(found: Json) -> str:
    window = found["details"]["window"]
    said = f"AUC {window['value']:.3f} {_when(window)}, {found['expected']:.3f} in the reference: "
    if found["status"] == "alarm":
        return f"{said}it has fallen by at least {max(0.0, window['drop_low']):.3f}."
    return f"{said}no significant fall."


def _say_calibration(found: Json) -> str:
    """Name what has moved most, the level or the slope, with its interval."""
    window, is_slope = found["details"]["window"], found["details"]["tested"] == "slope"
    when = _when(window)
    ends = "" if found["status"] == "alarm" else ", no significant difference"
    if is_slope:
        change = f"{-window['drop_high']:+.2f} to {-window['drop_low']:+.2f}"
        said = f"The slope of the calibration is {window['value']:.2f} {when}, a change of {change}{ends}"
        if not ends:
            said += (
                ": the probabilities are too far apart"
                if window["drop"] > 0.0
                else ": the probabilities are too close together"
            )
        return f"{said}."
    low, value, high = (math.exp(-window[each]) for each in ("drop_high", "drop", "drop_low"))
    said = (
        f"The odds of a positive {when} are {value:.2f} times those that the calibration predicts "
        f"({low:.2f} to {high:.2f}){ends}"
    )
    if not ends:
        said += ": the probabilities are too " + ("high" if value < 1.0 else "low")
    return f"{said}."


def _say_guarantee(found: Json) -> str:
    observed, expected = found["details"]["observed_since"], found["details"]["expected_since"]
    if observed is None or expected is None:
        return "No rows yet."
    said = f"The {found['metric']} has been {observed:.4f} since period {found['from_period']}, {expected:.4f} allowed"
    if found["status"] == "alarm":
        return f"{said}: the guarantee is broken."
    return f"{said}: no significant excess."


_OF_SIDE = {"all": "", "flagged": " of flagged decisions", "unflagged": " of the other decisions"}


def _say_missing(found: Json) -> str:
    """Return what missing outcomes could change; empty if none is missing, or they cannot change the result."""
    missing = found["details"].get("missing")
    if missing is None:
        return ""
    count, is_alarm = f"{missing['outcomes']:,} missing outcomes", found["status"] == "alarm"
    within = {side: each for side, each in missing["unchanged"].items() if each is not None}
    if is_alarm and not missing["unchanged"]:
        return f" What the {count} could change is not known."
    if is_alarm and not within:
        if found["metric"] == "auc":
            return f" The {count} alone cannot explain it, if they have scores like the known ones of their class."
        return f" The {count} alone cannot explain it."
    for side, (low, high) in within.items():
        if low <= 0.0 and high >= 1.0:
            continue
        share = f"from {100.0 * low:.0f} % to {100.0 * high:.0f} %"
        known = missing["known_share"]
        beside = "" if known is None else f" ({100.0 * known:.1f} % of the known ones are)"
        if is_alarm:
            return f" The {count} alone could explain it, if {share} of those{_OF_SIDE[side]} are positive{beside}."
        return f" This holds if {share} of the {count}{_OF_SIDE[side]} are positive{beside}."
    return ""


def say_comparison(found: Json) -> str:
    """Return the result of a comparison with the shadow model in one sentence."""
    said = (
        f"AUC of the challenger less that of the champion {found['difference']:+.4f}, from {found['low']:+.4f} to "
        f"{found['high']:+.4f}"
    )
    if found["winner"] is not None:
        return f"{said}: the {found['winner']} is better."
    if found["equivalent"]:
        return f"{said}: no difference that matters."
    if found["further_rows"] is None:
        return f"{said}: not settled."
    return f"{said}: not settled. It needs about {found['further_rows']:,} more rows with outcomes."


@dataclass(frozen=True)
class Shadow:
    """The comparison of the model behind an alias with its shadow model."""

    name: str
    alias: str
    shadow: str | None
    unseen_from: float | None
    champion_id: str | None
    challenger_id: str | None
    tolerance: float | None
    comparison: Json | None
    swap: Json | None
    looks: Sequence[MonitorLook]


def read_shadow(session: Session, owner: str, name: str, alias: str) -> Shadow:
    """Return the newest comparison of an alias with its shadow model. Raises NotFound if there is no such alias."""
    check_name("alias", alias)
    of = MonitoredAlias(owner, name, alias)
    aliases.get_alias(session, owner, name, alias)
    row = repository.settings_of(session, *of)
    shadow = None if row is None or row.settings is None else row.settings["shadow"]
    looks = [look for look in repository.looks_of(session, *of) if look.family == SHADOW]
    looks = [look for look in looks if look.found["model_id"] is not None]
    start = looks[-1].found["term_start"] if looks else None
    own = [look for look in looks if look.found["term_start"] == start]
    details = own[-1].found["details"] if own else {}
    compared = [each for each in own if each.found["details"]["comparison"] is not None]
    return Shadow(
        name=name,
        alias=alias,
        shadow=shadow,
        unseen_from=_unseen_from(session, owner, shadow),
        champion_id=details.get("champion_id"),
        challenger_id=details.get("challenger_id"),
        tolerance=details.get("tolerance"),
        comparison=compared[-1].found["details"]["comparison"] if compared else None,
        swap=total_swap([cast(StoredLook, look.found) for look in own]),
        looks=own[: -MAX_SHOWN - 1 : -1],
    )
