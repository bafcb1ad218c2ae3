"""Alarms of the monitor. A person acknowledges each with a reason, and chooses the reference of the next tests."""

from __future__ import annotations

from typing import Literal

from app.feedback import monitor_repository as repository
from app.feedback.monitor_repository import MonitoredAlias
from app.platform import events
from app.platform.audit import describe
from app.platform.callers import acting_principal, check_model
from app.platform.errors import Conflict, NotFound, check_name, shown
from app.platform.ids import is_id
from app.platform.sql import Json, Page, Session, read_clock
from app.platform.tables import Alarm

Reference = Literal["keep", "renew"]


def raise_alarm(
    session: Session, of: MonitoredAlias, family: str, period_start: float, found: Json
) -> Alarm | None:
    """Insert an alarm with its event, unless an earlier one of the family waits: the change is reported once."""
    known = repository.alarms_of(session, *of)
    if any(each.family == family and each.acknowledged_at is None for each in known):
        return None
    alarm = repository.add_alarm(session, of, family, period_start, found)
    _record_event(session, "raised", alarm)
    return alarm


def _record_event(session: Session, what: str, alarm: Alarm) -> None:
    events.record(
        session,
        alarm.owner,
        f"alarm.{what}",
        alarm.id,
        name=alarm.name,
        alias=alarm.alias,
        family=alarm.family,
    )


def list_page(
    session: Session,
    owner: str,
    *,
    name: str | None,
    alias: str | None,
    acknowledged: bool | None,
    limit: int,
    after: str | None,
) -> Page[Alarm]:
    """Newest first. Raises Invalid for a name that no model can have."""
    for parameter, value in (("name", name), ("alias", alias)):
        if value is not None:
            check_name(parameter, value)
    return repository.list_alarms(
        session,
        owner,
        name=name,
        alias=alias,
        acknowledged=acknowledged,
        limit=limit,
        after=after,
    )


def find(session: Session, owner: str, alarm_id: str, *, lock: bool = False) -> Alarm:
    """Raises NotFound."""
    found = None
    if is_id(alarm_id, "alm"):
        found = repository.find_alarm(session, owner, alarm_id, lock=lock)
    if found is None:
        raise NotFound(f"there is no alarm {shown(alarm_id)}")
    return found


def acknowledge(
    session: Session,
    owner: str,
    alarm_id: str,
    reason: str,
    reference: Reference,
    author: str | None,
) -> Alarm:
    """Raises NotFound, and Conflict if it is already acknowledged."""
    alarm = find(session, owner, alarm_id, lock=True)
    check_model(alarm.name)
    if alarm.acknowledged_at is not None:
        by = "" if alarm.author is None else f" by {alarm.author}"
        raise Conflict(
            f"alarm {alarm_id} was acknowledged{by}: an acknowledgement cannot be changed",
            code="already_acknowledged",
        )
    alarm.acknowledged_at = read_clock(session)
    alarm.reason, alarm.reference, alarm.author = reason, reference, author
    alarm.principal_id = acting_principal()
    goes_on = "the reference is kept" if reference == "keep" else "the reference is renewed"
    describe(
        session, f"{alarm.name}@{alarm.alias}: alarm of {alarm.family} acknowledged; {goes_on}"
    )
    session.flush()
    _record_event(session, "cleared", alarm)
    return alarm
