"""Find a page, a model or a dataset by a part of its name: the palette, and the same as a page."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from fastapi import APIRouter
from rankwright.types import ListedDataset
from starlette.responses import Response

from app.console.rendering import exact, uploaded
from app.console.session import ConsoleRoute, Page, PageDep
from app.platform.errors import counted

router = APIRouter(prefix="/console/find", include_in_schema=False, route_class=ConsoleRoute)

MOST = 8
"""Most models, and most datasets, that are shown."""


class Hit(NamedTuple):
    """A search result: address, name, kind, and what distinguishes it from others of the same name."""

    address: str
    name: str
    kind: str
    details: str = ""


@router.get("")
async def find(page: PageDep) -> Response:
    """Show matching pages, models and datasets; without a text all pages, and the newest resources."""
    text = (page.asked("q") or "").strip()[:100]
    template = "find_hits.html" if page.asked("part") else "find.html"
    return page.show(template, text=text, hits=await _hits(page, text))


async def _hits(page: Page, text: str) -> list[Hit]:
    pages = [
        Hit(entry.address, entry.name, group.name if group.name != entry.name else "Page")
        for group in page.navigation()
        for entry in group.entries
        if text.casefold() in entry.name.casefold()
    ]
    if not page.can("read"):
        return pages
    models, datasets = await asyncio.gather(
        page.client.models.page(search=text or None, limit=MOST),
        page.client.datasets.page(search=text or None, limit=MOST),
    )
    found = [
        Hit(
            f"/console/models/{each.id}",
            f"{each.name}:{each.version}" + "".join(f" @{alias}" for alias in each.aliases),
            "Model",
            " · ".join((each.algorithm["name"], exact(each.created_at))),
        )
        for each in models.data
    ]
    found += [
        Hit(
            f"/console/datasets/{each.id}",
            f"{each.name}, version {each.version}",
            "Dataset",
            " · ".join((each.kind, _rows_or_status(each), uploaded(each.id))),
        )
        for each in datasets.data
    ]
    return [*found, *pages] if text else [*pages, *found]


def _rows_or_status(dataset: ListedDataset) -> str:
    return dataset.status if dataset.rows is None else counted(dataset.rows, "row", "rows")
