"""Jobs: the list, one job as it goes on, and what can be asked of it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.console.session import ConsoleRoute, PageDep

router = APIRouter(prefix="/console/jobs", include_in_schema=False, route_class=ConsoleRoute)


@router.get("/{job_id}/events")
async def follow(job_id: str, page: PageDep) -> Response:
    """The API's stream of the job's events, for a browser; it goes on behind the last one that was seen."""
    headers = {"accept": "text/event-stream"}
    last = page.request.headers.get("last-event-id")
    if last is not None:
        headers["last-event-id"] = last
    path = f"/v1/jobs/{job_id}/events"
    return page.api.stream("GET", path, query={"after": page.asked("after")}, headers=headers)
