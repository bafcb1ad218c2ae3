"""The first page: three steps where there is nothing yet, else what runs, what ended and what needs attention."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.console.session import ConsoleRoute, PageDep

router = APIRouter(include_in_schema=False, route_class=ConsoleRoute)


@router.get("/console")
async def read_start(page: PageDep) -> Response:
    """Show where things stand."""
    datasets = await page.api.get("/v1/datasets", limit=5)
    jobs = await page.api.get("/v1/jobs", limit=20)
    models = await page.api.get("/v1/models", limit=5)
    return page.show(
        "start.html", datasets=datasets["data"], jobs=jobs["data"], models=models["data"]
    )
