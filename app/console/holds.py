"""The page of legal holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from starlette.responses import Response

from app.console.session import ConsoleRoute, Page, PageDep
from app.console.words import FieldLabel, place_faults

router = APIRouter(prefix="/console/holds", include_in_schema=False, route_class=ConsoleRoute)

FIELDS = {
    "kind": FieldLabel("kind", "What it covers"),
    "resource_id": FieldLabel("resource_id", "Id of the dataset or model"),
    "reason": FieldLabel("reason", "Reason"),
}
KINDS = {"dataset": "a dataset", "model": "a model", "owner": "everything of this owner"}


@router.get("")
async def list_holds(page: PageDep) -> Response:
    """Show the legal holds, and the form for a new one."""
    return await _show(page)


async def _show(
    page: Page, problem: dict[str, Any] | None = None, given: Mapping[str, str] | None = None
) -> Response:
    """Return the list with the form; with the API's problem and the entered values after an error."""
    return page.show(
        "holds.html",
        200 if problem is None else problem["status"],
        found=await page.client.holds.page(limit=50, after=page.asked("after")),
        faults=place_faults(problem, FIELDS),
        given=given or {},
        kinds=KINDS,
    )


@router.post("")
async def place(page: PageDep) -> Response:
    """Place a legal hold."""
    form = await page.form()
    try:
        await page.client.holds.place(
            form.get("kind", ""),
            form.get("reason", ""),
            resource_id=form.get("resource_id", "").strip() or None,
        )
    except ProblemError as error:
        if error.status not in (404, 422):
            raise
        return await _show(page, error.problem, form)
    return page.go("/console/holds")


@router.post("/{hold_id}/release")
async def release(page: PageDep, hold_id: str) -> Response:
    """Release a legal hold."""
    form = await page.form()
    await page.client.holds.release(hold_id, form.get("reason", ""))
    return page.go("/console/holds")
