"""The page of legal holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.console.session import ConsoleRoute, Page, PageDep, or_form
from app.console.words import FieldLabel

router = APIRouter(prefix="/console/holds", include_in_schema=False, route_class=ConsoleRoute)

FIELDS = {
    "kind": FieldLabel("kind", "What it covers"),
    "resource_id": FieldLabel("resource_id", "Id of the dataset or model"),
    "reason": FieldLabel("reason", "Reason"),
}
KINDS = {"dataset": "a dataset", "model": "a model", "owner": "everything of this owner"}


@router.get("")
async def list_holds(page: PageDep) -> Response:
    return await _show(page)


async def _show(
    page: Page, problem: dict[str, Any] | None = None, given: Mapping[str, str] | None = None
) -> Response:
    return page.show_form(
        "holds.html",
        problem,
        FIELDS,
        found=await page.client.holds.page(limit=50, after=page.asked("after")),
        given=given or {},
        kinds=KINDS,
    )


@router.post("")
@or_form(_show, 404, 422)
async def place(page: PageDep) -> Response:
    form = await page.form()
    await page.client.holds.place(
        form.get("kind", ""),
        form.get("reason", ""),
        resource_id=form.get("resource_id", "").strip() or None,
    )
    return page.go("/console/holds")


@router.post("/{hold_id}/release")
async def release(page: PageDep, hold_id: str) -> Response:
    form = await page.form()
    await page.client.holds.release(hold_id, form.get("reason", ""))
    return page.go("/console/holds")
