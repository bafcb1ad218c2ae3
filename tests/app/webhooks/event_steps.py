"""Steps that the tests of events share."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select

from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.sql import Json, db_now
from app.platform.tables import OutboxEvent, Webhook
from tests.app.queue_steps import OWNER


def subscribe(db: Database, owner: str = OWNER, types: Iterable[str] = ()) -> str:
    """Insert a webhook, as the API does; returns its id."""
    id_ = new_id("wh")
    with db.write() as session:
        session.add(
            Webhook(
                id=id_,
                owner=owner,
                url="https://example.com/",
                description="",
                events=[*types],
                secret="",
                created_at=db_now(),
            )
        )
    return id_


def recorded(db: Database, owner: str = OWNER) -> list[tuple[str, Json]]:
    """Return type and data of the owner's events, the oldest first."""
    with db.read() as session:
        found = session.scalars(
            select(OutboxEvent).where(OutboxEvent.readable_by(owner)).order_by(OutboxEvent.id)
        ).all()
        return [(each.type, each.data) for each in found]
