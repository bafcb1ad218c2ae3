"""The trash: what was deleted, to restore or to delete for good."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from app.console.admin import COLLECTIONS
from app.console.session import ConsoleRoute, PageDep

router = APIRouter(prefix="/console/trash", include_in_schema=False, route_class=ConsoleRoute)


@router.get("")
async def show_trash(page: PageDep) -> Response:
    """Show what was deleted, the last deleted first."""
    found = await page.client.trash.page(limit=50, after=page.asked("after"))
    return page.show("trash.html", found=found, gone=page.asked("gone"))


@router.post("/{item_id}/restore")
async def restore_item(item_id: str, page: PageDep) -> Response:
    """Restore something, and show it."""
    restored = await page.client.trash.restore(item_id)
    collection = COLLECTIONS[restored.id.partition("_")[0]]
    return page.go(f"/console/{collection}/{restored.id}")


@router.post("/{item_id}/delete")
async def delete_item(item_id: str, page: PageDep) -> Response:
    """Delete something for good, and show what is left."""
    await page.client.trash.delete(item_id)
    return page.go("/console/trash", gone="1")
