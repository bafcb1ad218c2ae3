"""The first page: three steps if there is nothing yet, else running jobs, ended jobs and what needs attention."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from fastapi import APIRouter
from rankwright.client import AsyncClient
from rankwright.types import Comparison, Evaluation, Job, ListedModel
from starlette.responses import Response

from app.console.jobs import KINDS
from app.console.session import ConsoleRoute, PageDep

router = APIRouter(include_in_schema=False, route_class=ConsoleRoute)

UNDER_WAY = ("running", "cancelling", "queued")
SHOWN = 10
"""Most entries of a list on the page. Of failed jobs, the older ones are a page further."""
COMPARISONS_READ = 20
"""Newest comparisons of a model among which one with the model of an alias is looked for."""


@router.get("/console")
async def read_start(page: PageDep) -> Response:
    """Show the current state."""
    if not page.can("read"):
        return page.show("start.html", is_empty=None)
    client, after = page.client, page.asked("after")
    datasets, jobs, models, evaluations, failed = await asyncio.gather(
        client.datasets.page(limit=SHOWN),
        client.jobs.page(kind="all", limit=50),
        client.models.page(limit=8),
        client.evaluations.page(limit=50),
        client.jobs.page(kind="all", unresolved=True, limit=SHOWN, after=after),
    )
    outdated = await client.models.page(outdated=True, limit=SHOWN)
    return page.show(
        "start.html",
        is_empty=not (datasets.data or jobs.data or models.data),
        datasets=datasets.data,
        models=models.data,
        running=await _under_way(client),
        ended=[job for job in jobs.data if job.finished_at][:8],
        ended_none_of=len(jobs.data) if jobs.has_more else None,
        failed=failed,
        older=after is not None,
        drifted=_drifted(evaluations.data)[:5],
        outdated=await _outdated(client, outdated.data),
        kinds=KINDS,
        place_of=place_of,
    )


@router.get("/console/under-way")
async def read_under_way(page: PageDep) -> Response:
    """Return the jobs that are under way as a fragment, which the page asks for while there are any."""
    return page.show("under_way.html", running=await _under_way(page.client), kinds=KINDS)


async def _under_way(client: AsyncClient) -> list[Job]:
    pages = await asyncio.gather(
        *(client.jobs.page(kind="all", state=state, limit=SHOWN) for state in UNDER_WAY)
    )
    return [job for each in pages for job in each.data]


def place_of(job: Job) -> tuple[str, str]:
    """Return the page that says most about a failed job, as a collection and an id: the page of a table has the lines
    and columns that could not be read.
    """
    if job.kind in ("ingest", "ingest_files") and job.dataset_id:
        return "datasets", job.dataset_id
    return "jobs", job.id


def _drifted(newest_first: list[Evaluation]) -> list[Evaluation]:
    """Return the newest evaluation of each model that found a change."""
    newest: dict[str, Evaluation] = {}
    for each in newest_first:
        if each.status == "ready":
            newest.setdefault(each.model_id, each)
    return [each for each in newest.values() if each.drift and each.drift.changed]


class OutdatedAlias(NamedTuple):
    """An alias that does not point to the newest version, and both versions."""

    alias: str
    model: ListedModel
    newest: ListedModel


async def _outdated(client: AsyncClient, behind: list[ListedModel]) -> list[OutdatedAlias]:
    """Return the aliases of models that have a newer version, unless a comparison has shown that one to be worse."""
    names = list(dict.fromkeys(each.name for each in behind))
    pages = await asyncio.gather(*(client.models.page(name=name, limit=1) for name in names))
    newest = {page.data[0].name: page.data[0] for page in pages if page.data}
    compared = await asyncio.gather(
        *(
            client.comparisons.page(model_id=each.id, limit=COMPARISONS_READ)
            for each in newest.values()
        )
    )
    judged = {name: page.data for name, page in zip(newest, compared, strict=True)}
    return [
        OutdatedAlias(alias, each, newest[each.name])
        for each in behind
        if each.name in newest and not _is_worse(judged[each.name], newest[each.name].id, each.id)
        for alias in each.aliases
    ]


def _is_worse(newest_first: list[Comparison], model_id: str, other_id: str) -> bool:
    """Return True if the newest comparison of two models has shown the first to rank worse in one of its windows, and
    better in none. A comparison shows nothing on rows that the other model was trained on, or may have been.
    """
    for each in newest_first:
        seen = {model.model_id: model.seen for model in each.models}
        if each.result is None or seen.get(other_id) not in ("new", "validated"):
            continue
        leads = [
            pair.value if pair.first == model_id else -pair.value
            for window in each.result.windows
            for pair in window.differences
            if {pair.first, pair.second} == {model_id, other_id}
            and pair.adjusted_p_value < 1 - each.level
        ]
        return bool(leads) and max(leads) < 0
    return False
