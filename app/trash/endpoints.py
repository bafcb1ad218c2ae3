"""Routes of /v1/trash: list, restore or permanently delete deleted resources."""

from __future__ import annotations

from fastapi import APIRouter

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.trash import repository
from app.trash import service as trash
from app.trash.schemas import TrashItem, TrashPage, item_of

router = APIRouter(prefix="/v1/trash", tags=["trash"], route_class=GuardedRoute)


@router.get("", summary="List the trash")
@needs("read")
def list_trash(context: ContextDep, caller: CallerDep, paging: PagingDep) -> TrashPage:
    """Return the datasets, models, evaluations and comparisons that were deleted in the last 30 days, the most recently
    deleted first.
    """
    page = context.db.reading(repository.list_page, caller.owner, **vars(paging))
    return TrashPage.of(page, item_of)


@router.post("/{item_id}/restore", summary="Restore a deleted resource")
@needs("train", model=False)
def restore_item(item_id: str, context: ContextDep, caller: CallerDep) -> TrashItem:
    """Restore a deleted resource, unchanged and under its id. The response says what it is."""
    return item_of(context.db.writing(trash.restore, caller.owner, item_id))


@router.delete("/{item_id}", status_code=204, summary="Delete a resource permanently")
@needs("train", model=False)
def delete_item(item_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Permanently delete a resource in the trash. Its bytes are removed within `RANKWRIGHT_BLOB_GRACE_SECONDS`. Up to
    64 rows of each class of a dataset are kept with each model that was trained on it, for its reasons. Deleting the
    last version of a name also deletes the reason codes of the name.
    """
    context.db.writing(trash.delete, caller.owner, item_id)
