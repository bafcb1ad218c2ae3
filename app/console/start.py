"""The first page: three steps if there is nothing yet, else running jobs, ended jobs and what needs attention."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from starlette.responses import Response

from app.console.api import at
from app.console.session import ConsoleRoute, Page, PageDep

router = APIRouter(include_in_schema=False, route_class=ConsoleRoute)

UNDER_WAY = ("queued", "running", "cancelling")
GONE_WRONG = ("failed", "timed_out")
MAX_MODELS_CHECKED = 20
"""Most models whose aliases are checked for a newer version."""


@router.get("/console")
async def read_start(page: PageDep) -> Response:
    """Show the current state."""
    if not page.can("read"):
        return page.show("start.html", is_empty=None)
    datasets, jobs, models, evaluations = await asyncio.gather(
        page.api.get(at("/v1/datasets"), limit=10),
        page.api.get(at("/v1/jobs"), limit=50),
        page.api.get(at("/v1/models"), limit=50),
        page.api.get(at("/v1/evaluations"), limit=50),
    )
    return page.show(
        "start.html",
        is_empty=not (datasets["data"] or jobs["data"] or models["data"]),
        datasets=datasets["data"],
        models=models["data"][:8],
        running=[job for job in jobs["data"] if job["state"] in UNDER_WAY],
        ended=[job for job in jobs["data"] if job["finished_at"]][:8],
        failed=[job for job in jobs["data"] if job["state"] in GONE_WRONG][:5],
        invalid=[dataset for dataset in datasets["data"] if dataset["status"] == "invalid"],
        drifted=_drifted(evaluations["data"])[:5],
        stale=await _stale(page, models["data"]),
    )


def _drifted(newest_first: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the newest evaluation of each model that found a change."""
    newest: dict[str, dict[str, Any]] = {}
    for each in newest_first:
        if each["status"] == "ready":
            newest.setdefault(each["model_id"], each)
    return [each for each in newest.values() if each["drift"] and each["drift"]["changed"]]


async def _stale(page: Page, newest_first: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return aliases that do not point to the newest version, with both versions."""
    newest: dict[str, dict[str, Any]] = {}
    older = []
    for each in newest_first:
        if newest.setdefault(each["name"], each) is not each:
            older.append(each)

    async def aliases(model: dict[str, Any]) -> list[str]:
        try:
            found: list[str] = (await page.api.get(at("/v1/models", model["id"])))["aliases"]
        except ProblemError:  # deleted a moment ago
            return []
        return found

    named = await asyncio.gather(*map(aliases, older[:MAX_MODELS_CHECKED]))
    return [
        {"alias": alias, "model": model, "newest": newest[model["name"]]}
        for model, found in zip(older, named, strict=False)
        for alias in found
    ]
