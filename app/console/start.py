"""The first page: three steps without data, else running and ended jobs, and what needs attention."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from rankwright.client import AsyncClient
from rankwright.operations import Page
from rankwright.types import Job
from starlette.responses import RedirectResponse, Response

from app.console.jobs import kinds_in_words
from app.console.monitoring import FAMILIES
from app.console.session import ConsoleRoute, PageDep

router = APIRouter(include_in_schema=False, route_class=ConsoleRoute)
root_router = APIRouter(include_in_schema=False)


@root_router.get("/")
async def read_root() -> Response:
    return RedirectResponse("/console")


MOST_SHOWN = 200
"""Most entries of a list on the page that shows more."""
UNDER_WAY = ("running", "cancelling", "queued")
SHOWN = 10
"""Most entries of a list on the page. Of failed jobs, the older ones are a page further."""


@router.get("/console")
async def read_start(page: PageDep) -> Response:
    if not page.can("read"):
        return page.show("start.html", is_empty=None)
    client, after = page.client, page.asked("after")
    shown = MOST_SHOWN if page.asked("show") == "more" else SHOWN
    found = await client.overview(limit=shown)
    failed = Page(found.failed, found.failed_next is not None, found.failed_next)
    if after is not None:
        failed = await client.jobs.page(kind="all", unresolved=True, limit=SHOWN, after=after)
    requests = await client.alias_requests.page(state="open", limit=SHOWN)
    alarms = await client.alarms.page(acknowledged=False, limit=shown)
    return page.show(
        "start.html",
        found=found,
        alarms=alarms,
        requests=requests,
        families=FAMILIES,
        more=None if shown == MOST_SHOWN else MOST_SHOWN,
        is_empty=not (found.datasets or found.searched_jobs or found.models),
        failed=failed,
        older=after is not None,
        running=found.under_way,
        kinds=kinds_in_words(page),
        place_of=place_of,
    )


@router.get("/console/under-way")
async def read_under_way(page: PageDep) -> Response:
    """The page requests the fragment again as long as there are unfinished jobs."""
    return page.show(
        "under_way.html", running=await _under_way(page.client), kinds=kinds_in_words(page)
    )


async def _under_way(client: AsyncClient) -> list[Job]:
    pages = await asyncio.gather(
        *(client.jobs.page(kind="all", state=state, limit=SHOWN) for state in UNDER_WAY)
    )
    return [job for each in pages for job in each.data]


def place_of(job: Job) -> tuple[str, str]:
    """Return a collection and an id: for a table's job the dataset, whose page has the lines and columns of errors."""
    if job.kind in ("ingest", "ingest_files", "ingest_source") and job.dataset_id:
        return "datasets", job.dataset_id
    return "jobs", job.id
