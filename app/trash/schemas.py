"""The trash over HTTP."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from app.http.schemas import PageOf, Resource, Timestamp, one_of
from app.trash.repository import Kind, TrashEntry
from app.trash.service import DAY_SECONDS, DAYS


class TrashItem(Resource):
    """Something that was deleted, and can be restored."""

    id: str
    kind: Annotated[str, one_of(get_args(Kind))]
    name: str = Field(
        description="Its own name; of an evaluation that of the model, of a comparison that of the dataset."
    )
    version: int | None = Field(description="The version of that name.")
    bytes: int = Field(
        description="Stored bytes, which the quota counts until it is deleted for good."
    )
    created_at: Timestamp
    deleted_at: Timestamp
    expires_at: Timestamp = Field(description="When it is deleted for good.")


class TrashPage(PageOf[TrashItem]):
    """One page of the trash."""


def item_of(entry: TrashEntry) -> TrashItem:
    """Return an entry as it is shown."""
    return TrashItem(**entry._asdict(), expires_at=entry.deleted_at + DAYS * DAY_SECONDS)
