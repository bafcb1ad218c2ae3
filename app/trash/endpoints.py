"""Routes of /v1/trash: list, restore or permanently delete deleted resources."""

from __future__ import annotations

from typing import Annotated, get_args

from fastapi import APIRouter

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.schemas import CreatedAt, PageOf, Resource, Timestamp, one_of
from app.trash import repository
from app.trash import service as trash
from app.trash.repository import Kind, TrashEntry
from app.trash.service import DAY_SECONDS, DAYS

router = APIRouter(prefix="/v1/trash", tags=["trash"], route_class=GuardedRoute)


class TrashItem(Resource):
    """A deleted resource that can be restored."""

    id: str
    """Id of the resource."""
    kind: Annotated[str, one_of(get_args(Kind))]
    """Kind of resource."""
    name: str
    """Name of the resource. For an evaluation: that of the model. For a comparison: that of the dataset."""
    version: int | None
    """Version of that name. Null if it has none."""
    bytes: int
    """Stored bytes. They count towards the quota until the resource is permanently deleted."""
    created_at: CreatedAt
    deleted_at: Timestamp
    """Time of deletion."""
    expires_at: Timestamp
    """Time of permanent deletion."""


class TrashPage(PageOf[TrashItem]):
    """One page of the trash."""


def item_of(entry: TrashEntry) -> TrashItem:
    return TrashItem(**entry._asdict(), expires_at=entry.deleted_at + DAYS * DAY_SECONDS)


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
def restore_trash_item(item_id: str, context: ContextDep, caller: CallerDep) -> TrashItem:
    """Restore a deleted resource, unchanged and under its id. The response says what it is."""
    return item_of(context.db.writing(trash.restore, caller.owner, item_id))


@router.delete("/{item_id}", status_code=204, summary="Delete a resource permanently")
@needs("train", model=False)
def delete_trash_item(item_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Permanently delete a resource in the trash. Its bytes are removed within `RANKWRIGHT_BLOB_GRACE_SECONDS`. Up to
    64 rows of each class of a dataset are kept with each model that was trained on it, for its reasons. Deleting the
    last version of a name also deletes the reason codes of the name.
    """
    context.db.writing(trash.delete, caller.owner, item_id)
