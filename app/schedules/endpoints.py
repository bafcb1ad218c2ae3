"""/v1/schedules: times at which the sources of datasets are read again."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.idempotency import CreationDep, validated
from app.platform.sql import Json, Session
from app.schedules import service as schedules
from app.schedules.schemas import Schedule, ScheduleChange, SchedulePage, ScheduleRequest, show

router = APIRouter(prefix="/v1/schedules", tags=["schedules"], route_class=GuardedRoute)


@validated(router, "", "schedule")
@router.post("", status_code=201, response_model=Schedule, summary="Create a schedule")
@needs("train", model=False)
async def create_schedule(
    *, body: ScheduleRequest, context: ContextDep, caller: CallerDep, new: CreationDep
) -> Response:
    """Refresh a dataset at the times of a cron expression. Each run acts as you: it needs your scope `train` at that
    time.

    Times that are missed while the service is down are run once. A time is skipped while the job of an earlier one has
    not ended.
    """

    def create(session: Session) -> Json:
        known = context.connections.of(caller.owner)
        made = schedules.create(session, known, caller, body.dataset_id, body.cron)
        return show(made).model_dump(mode="json")

    if new.only_check:
        return await new.rehearse(create)
    created = await new.run_once(create)
    headers = {"Location": f"/v1/schedules/{created.body['id']}"} | created.headers
    return JSONResponse(created.body, 201, headers)


@router.get("", summary="List schedules")
@needs("read")
def list_schedules(context: ContextDep, caller: CallerDep, paging: PagingDep) -> SchedulePage:
    """Return the schedules of the owner, newest first."""
    page = context.db.reading(schedules.list_page, caller.owner, **vars(paging))
    return SchedulePage.of(page, show)


@router.get("/{schedule_id}", summary="Read a schedule")
@needs("read")
def read_schedule(schedule_id: str, context: ContextDep, caller: CallerDep) -> Schedule:
    """Return a schedule with the result of its last run."""
    return show(context.db.reading(schedules.read, caller.owner, schedule_id))


@router.patch("/{schedule_id}", summary="Update a schedule")
@needs("train", model=False)
def update_schedule(
    *, schedule_id: str, body: ScheduleChange, context: ContextDep, caller: CallerDep
) -> Schedule:
    """Change the cron expression of a schedule, pause it, or resume it. What is absent stays as it is. After you have
    resumed it, its runs act as you.
    """
    changed = context.db.writing(
        schedules.update,
        context.connections.of(caller.owner),
        caller,
        schedule_id,
        expression=body.cron,
        paused=body.paused,
    )
    return show(changed)


@router.delete("/{schedule_id}", status_code=204, summary="Delete a schedule")
@needs("train", model=False)
def delete_schedule(schedule_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Delete a schedule. Datasets that it has made stay, and a job that it has queued continues."""
    context.db.writing(schedules.delete, caller.owner, schedule_id)
