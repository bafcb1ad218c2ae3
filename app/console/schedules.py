"""The page of schedules: the list with what can be done, and a form for a new one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.types import Schedule
from starlette.responses import Response

from app.access.authentication import needs
from app.console.session import ConsoleRoute, Page, PageDep, or_form
from app.console.words import FieldLabel
from app.http.forms import Fields

router = APIRouter(prefix="/console/schedules", include_in_schema=False, route_class=ConsoleRoute)

PAGE = "/console/schedules"
FIELDS = {
    "dataset_id": FieldLabel("dataset_id", "Dataset"),
    "cron": FieldLabel("cron", "Times"),
}
PAUSED = {
    "requested": "paused",
    "key_ended": "paused: the key of its author has expired or is revoked",
    "scope_missing": "paused: the key of its author lacks the scope train",
    "role_missing": "paused: its author has no role with the scope train",
    "dataset_deleted": "paused: its dataset was deleted",
}


def state_of(schedule: Schedule) -> tuple[str, str]:
    if schedule.paused_reason is None:
        return "ok", "active"
    badge = "revoked" if schedule.paused_reason == "requested" else "failed"
    return badge, PAUSED.get(schedule.paused_reason, "paused")


@router.get("")
async def list_schedules(page: PageDep) -> Response:
    return await _show(page)


async def _show(
    page: Page, problem: dict[str, Any] | None = None, given: Fields | None = None
) -> Response:
    return page.show_form(
        "schedules.html",
        problem,
        FIELDS,
        found=await page.client.schedules.page(limit=50, after=page.asked("after")),
        given=given or {"dataset_id": page.asked("dataset")},
        state=state_of,
    )


@router.post("")
@needs("train")
@or_form(_show, 404, 409, 422, 429)
async def create_schedule(page: PageDep) -> Response:
    form = await page.form()
    await page.client.schedules.create(form.get("dataset_id", ""), form.get("cron", ""))
    return page.go(PAGE)


@router.post("/{schedule_id}")
@needs("train")
async def update_schedule(page: PageDep, schedule_id: str) -> Response:
    form = await page.form()
    try:
        await page.client.schedules.update(schedule_id, paused=form.get("paused") == "yes")
    except ProblemError as error:
        if error.status not in (409, 422):
            raise
        return await _show(page, error.problem)
    return page.go(PAGE)


@router.post("/{schedule_id}/delete")
@needs("train")
async def delete_schedule(page: PageDep, schedule_id: str) -> Response:
    await page.client.schedules.delete(schedule_id)
    return page.go(PAGE)
