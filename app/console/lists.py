"""Functions of all lists: reading a page from the API, filters, deletion by check boxes; and the pages of the trash."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from rankwright import AsyncClient
from rankwright.errors import ProblemError
from starlette.responses import Response

from app.console.api import path_segment, refusal
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.words import PAGES

router = APIRouter(prefix="/console/delete", include_in_schema=False, route_class=ConsoleRoute)
trash_router = APIRouter(prefix="/console/trash", include_in_schema=False, route_class=ConsoleRoute)

MAX_CHOSEN = 200
"""Most entries that one form deletes: as many as a page of a list has at most."""
COLLECTIONS: Mapping[str, Callable[[AsyncClient, str], Awaitable[Any]]] = {
    "models": lambda client, id_: client.models[id_].delete(),
    "datasets": lambda client, id_: client.datasets[id_].delete(),
    "evaluations": lambda client, id_: client.evaluations[id_].delete(),
    "comparisons": lambda client, id_: client.comparisons[id_].delete(),
    "batch-scores": lambda client, id_: client.batch_scores[id_].delete(),
}


async def read_list(
    page: Page,
    path: str,
    read: Callable[..., Awaitable[Any]],
    filters: Sequence[str] = ("search",),
    *,
    limit: int = 50,
    **given: str | None,
) -> dict[str, Any]:
    """Read the page of a list that the query selects, in the query's order and with its (or the given) filters.

    Return the page, the filters, and the address of the list with these filters.
    """
    asked = {name: page.asked(name) for name in filters} | given
    found = await read(**asked, sort=page.asked("sort"), after=page.asked("after"), limit=limit)
    return {"found": found, **describe_filters(path, asked)}


def describe_filters(path: str, asked: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the filters' values, and the address with them."""
    used = {name: value for name, value in asked.items() if value}
    address = f"{path}?{urlencode(used)}" if used else path
    return {"asked": asked, "path": path, "address": address, "filtered": bool(used)}


@router.post("/{collection}")
async def delete_chosen(collection: str, page: PageDep) -> Response:
    """Show the list, or which deletions were refused, and why. What no longer exists counts as deleted."""
    if collection not in COLLECTIONS:
        raise refusal(404, "Not found", f"there is no list {collection[:100]!r}")
    chosen = list(dict.fromkeys((await page.form()).getlist("models")))
    if len(chosen) > MAX_CHOSEN:
        detail = f"at most {MAX_CHOSEN} may be selected, got {len(chosen)}"
        raise refusal(422, "Invalid request", detail, "/models")
    refused = []
    for each in chosen:
        try:
            await COLLECTIONS[collection](page.client, path_segment(each))
        except ProblemError as error:
            if error.status in (401, 403, 429):
                raise
            if error.status != 404:
                refused.append({"detail": error.problem["detail"]})
    if not refused:
        if collection == "batch-scores" or not chosen:
            return page.go(f"/console/{collection}")
        deleted = chosen[0] if len(chosen) == 1 else str(len(chosen))
        return page.go(f"/console/{collection}", deleted=deleted)
    problem = {
        "title": "Some items could not be deleted",
        "detail": f"{len(chosen) - len(refused)} of {len(chosen)} were deleted.",
        "errors": [{"detail": "Not deleted:"}, *refused],
    }
    return page.show("error.html", 409, error=problem, back=f"/console/{collection}")


@trash_router.get("")
async def show_trash(page: PageDep) -> Response:
    """The last deleted resource is the first."""
    found = await page.client.trash.page(limit=50, after=page.asked("after"))
    return page.show("trash.html", found=found, gone=page.asked("gone"))


@trash_router.post("/{item_id}/restore")
async def restore_item(item_id: str, page: PageDep) -> Response:
    restored = await page.client.trash.restore(item_id)
    collection = PAGES[restored.id.partition("_")[0]]
    return page.go(f"/console/{collection}/{restored.id}")


@trash_router.post("/{item_id}/delete")
async def delete_item(item_id: str, page: PageDep) -> Response:
    """It is permanent."""
    await page.client.trash.delete(item_id)
    return page.go("/console/trash", gone="1")
