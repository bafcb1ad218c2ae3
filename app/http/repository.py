"""Queries for the stored responses of creating requests, by owner, route and Idempotency-Key."""

from __future__ import annotations

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.platform.sql import Json, db_now, delete_some, upsert_into
from app.platform.tables import Idempotency

KEPT_SECONDS = 24 * 3600.0


def reserve(session: Session, owner: str, route: str, key: str, fingerprint: str) -> bool:
    """Return False if the key exists. Waits for a transaction that is inserting it now."""
    statement = (
        upsert_into(session, Idempotency)
        .values(
            owner=owner,
            route=route,
            key=key,
            fingerprint=fingerprint,
            response={},
            created_at=db_now(),
        )
        .on_conflict_do_nothing()
        .returning(Idempotency.key)
    )
    return session.execute(statement).one_or_none() is not None


def answer(session: Session, owner: str, route: str, key: str, *, response: Json) -> None:
    session.execute(
        update(Idempotency)
        .where(Idempotency.readable_by(owner), Idempotency.route == route, Idempotency.key == key)
        .values(response=response),
        execution_options={"synchronize_session": False},
    )


def find(session: Session, owner: str, route: str, key: str) -> Idempotency | None:
    return session.scalars(
        select(Idempotency).where(
            Idempotency.readable_by(owner), Idempotency.route == route, Idempotency.key == key
        )
    ).one_or_none()


def prune(session: Session, age_seconds: float, limit: int) -> int:
    """Delete up to `limit` responses older than `age_seconds`."""
    old = Idempotency.created_at < db_now() - age_seconds
    return delete_some(session, Idempotency, old, limit=limit)
