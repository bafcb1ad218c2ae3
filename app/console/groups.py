"""Groups of protected columns at a threshold: parts of the pages of models and of evaluations."""

from __future__ import annotations

import sys
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.console.api import attempt
from app.console.model_parts import show_part
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.words import FieldLabel, place_faults
from app.http.forms import number_or_text

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
SIDES = {
    "not_flagged": "not flagged (a flag is a disadvantage, such as a rejection)",
    "flagged": "flagged (a flag is an advantage, such as an offer)",
}
"""The favourable outcomes, in words."""
NOTHING = "none"
"""A threshold that flags no row, in an address."""


@router.get("/models/{ref}/groups")
async def read_model_groups(page: PageDep, ref: str) -> Response:
    model = await page.client.models[ref].read()
    asked = _read_query(page)
    found, problem = await attempt(page.client.models[ref].groups_at(**asked), 404, 422, 429)
    shown = _values(page, found, problem, f"/console/models/{model.id}/groups")
    return await show_part(page, model, "groups", **shown)


@router.get("/evaluations/{evaluation_id}/groups")
async def read_evaluation_groups(page: PageDep, evaluation_id: str) -> Response:
    evaluation = await page.client.evaluations.get(evaluation_id)
    found, problem = await attempt(evaluation.groups_at(**_read_query(page)), 404, 422, 429)
    shown = _values(page, found, problem, f"/console/evaluations/{evaluation.data.id}/groups")
    is_part = "hx-request" in page.request.headers
    template = "model_groups.html" if is_part else "evaluation_groups.html"
    return page.show(template, evaluation=evaluation.data, **shown)


def _read_query(page: Page) -> Json:
    entered = page.asked("threshold") or ""
    threshold = sys.float_info.max if entered == NOTHING else number_or_text(entered)
    asked: Json = {"favourable": page.choice("favourable", tuple(SIDES))}
    return asked if threshold is None else {**asked, "threshold": threshold}


def _values(page: Page, found: Any, problem: Json | None, action: str) -> Json:
    return {
        "found": found,
        "faults": place_faults(problem, {"threshold": FieldLabel("groups-threshold", "Threshold")}),
        "action": page.outside(action),
        "sides": SIDES,
        "entered": page.asked("threshold") or "",
        "favourable": page.choice("favourable", tuple(SIDES)),
        "flags_none": page.asked("threshold") == NOTHING
        or (found is not None and found.threshold is None),
    }
