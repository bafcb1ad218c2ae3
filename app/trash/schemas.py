"""Response bodies of /v1/trash."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from app.http.schemas import CreatedAt, PageOf, Resource, Timestamp, one_of
from app.trash.repository import Kind, TrashEntry
from app.trash.service import DAY_SECONDS, DAYS


class TrashItem(Resource):
    """A deleted resource that can be restored."""

    id: str = Field(description="Id of the resource.")
    kind: Annotated[str, one_of(get_args(Kind))] = Field(description="Kind of resource.")
    name: str = Field(
        description="Name of the resource. For an evaluation: that of the model. For a comparison: that of the "
        "dataset."
    )
    version: int | None = Field(description="Version of that name. Null if it has none.")
    bytes: int = Field(
        description="Stored bytes. They count towards the quota until the resource is permanently deleted."
    )
    created_at: CreatedAt
    deleted_at: Timestamp = Field(description="Time of deletion.")
    expires_at: Timestamp = Field(description="Time of permanent deletion.")


class TrashPage(PageOf[TrashItem]):
    """One page of the trash."""


def item_of(entry: TrashEntry) -> TrashItem:
    return TrashItem(**entry._asdict(), expires_at=entry.deleted_at + DAYS * DAY_SECONDS)
