"""The monitor of an alias, and its alarms."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from app.access.authentication import GuardedRoute, needs
from app.feedback import alarms, monitor_results
from app.feedback.monitor_schemas import (
    Alarm,
    AlarmAcknowledgement,
    AlarmPage,
    AliasMonitor,
    AliasShadow,
    alarm_of,
)
from app.http.dependencies import AsOf, CallerDep, ContextDep, PagingDep

aliases_router = APIRouter(prefix="/v1/models", tags=["feedback"], route_class=GuardedRoute)
router = APIRouter(prefix="/v1/alarms", tags=["feedback"], route_class=GuardedRoute)


@aliases_router.get("/{name}/aliases/{alias}/monitor", summary="Read the monitor of an alias")
@needs("read")
async def read_monitor(
    *,
    name: str,
    alias: str,
    context: ContextDep,
    caller: CallerDep,
    as_of: AsOf = None,
) -> AliasMonitor:
    """Return the settings, the scheduled tests of each period (`tests`), the alarms, the losses, the error probability
    that is spent and left, and the smallest fall of the AUC that the monitor can find.

    A scheduled test is made once, after the end of its period (and after the horizon, if it needs outcomes), and never
    changes. Decisions of several models or thresholds in a period are counted separately, and only the decisions of
    the last model are tested.
    """
    at = None if as_of is None else as_of.timestamp()

    def work() -> AliasMonitor:
        compute = context.db.reading(monitor_results.read, caller.owner, name, alias, at)
        return compute()

    return await context.compute(caller.owner, work)


@aliases_router.get(
    "/{name}/aliases/{alias}/shadow", summary="Compare an alias with its shadow model"
)
@needs("read")
def read_shadow(*, name: str, alias: str, context: ContextDep, caller: CallerDep) -> AliasShadow:
    """Return how the shadow model would have ranked the same decisions, period by period, and which decisions it would
    have flagged instead. The limits hold however often you look.

    Outcomes result from the decisions of the alias. If they come from reviews of flagged decisions, a decision that
    only the shadow model flags has an outcome only if it was explored. To promote the shadow model, move the alias to
    it.
    """
    return context.db.reading(monitor_results.read_shadow, caller.owner, name, alias)


@router.get("", summary="List alarms")
@needs("read")
def list_alarms(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    name: Annotated[
        str | None, Query(description="Only alarms of this model name.", examples=["churn"])
    ] = None,
    alias: Annotated[
        str | None, Query(description="Only alarms of this alias.", examples=["live"])
    ] = None,
    acknowledged: Annotated[
        bool | None,
        Query(description="`true`: only acknowledged alarms. `false`: only the others."),
    ] = None,
) -> AlarmPage:
    """Return the alarms of the monitors, newest first."""
    page = context.db.reading(
        alarms.list_page,
        caller.owner,
        name=name,
        alias=alias,
        acknowledged=acknowledged,
        **vars(paging),
    )
    return AlarmPage.of(page, alarm_of)


@router.get("/{alarm_id}", summary="Read an alarm")
@needs("read")
def read_alarm(*, alarm_id: str, context: ContextDep, caller: CallerDep) -> Alarm:
    """Return an alarm with its acknowledgement."""
    return alarm_of(context.db.reading(alarms.find, caller.owner, alarm_id))


@router.post("/{alarm_id}/acknowledge", summary="Acknowledge an alarm")
@needs("train")
def acknowledge_alarm(
    *, alarm_id: str, body: AlarmAcknowledgement, context: ContextDep, caller: CallerDep
) -> Alarm:
    """Confirm that you have seen the change, with a reason and the reference of later tests. Until then, the same
    family raises no further alarm. Returns 409 `already_acknowledged` if the alarm is already acknowledged.
    """
    row = context.db.writing(
        alarms.acknowledge, caller.owner, alarm_id, body.reason, body.reference, caller.name
    )
    return alarm_of(row)
