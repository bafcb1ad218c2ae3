"""The first page: three steps if there is nothing yet, else running jobs, ended jobs and what needs attention."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from fastapi import APIRouter
from rankwright.types import Evaluation, ListedModel
from starlette.responses import Response

from app.console.session import ConsoleRoute, PageDep

router = APIRouter(include_in_schema=False, route_class=ConsoleRoute)

UNDER_WAY = ("queued", "running", "cancelling")
GONE_WRONG = ("failed", "timed_out")


@router.get("/console")
async def read_start(page: PageDep) -> Response:
    """Show the current state."""
    if not page.can("read"):
        return page.show("start.html", is_empty=None)
    client = page.client
    datasets, jobs, models, evaluations = await asyncio.gather(
        client.datasets.page(limit=10),
        client.jobs.page(limit=50),
        client.models.page(limit=50),
        client.evaluations.page(limit=50),
    )
    return page.show(
        "start.html",
        is_empty=not (datasets.data or jobs.data or models.data),
        datasets=datasets.data,
        models=models.data[:8],
        running=[job for job in jobs.data if job.state in UNDER_WAY],
        ended=[job for job in jobs.data if job.finished_at][:8],
        failed=[job for job in jobs.data if job.state in GONE_WRONG][:5],
        invalid=[dataset for dataset in datasets.data if dataset.status == "invalid"],
        drifted=_drifted(evaluations.data)[:5],
        outdated=_outdated(models.data),
    )


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


def _outdated(newest_first: list[ListedModel]) -> list[OutdatedAlias]:
    newest: dict[str, ListedModel] = {}
    return [
        OutdatedAlias(alias, each, newest[each.name])
        for each in newest_first
        if newest.setdefault(each.name, each) is not each
        for alias in each.aliases
    ]
