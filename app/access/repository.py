"""Queries on API keys."""

from __future__ import annotations

from sqlalchemy import ColumnElement, exists, func, or_, select, update
from sqlalchemy.orm import Session

from app.platform.sql import Page, db_now, fetch_page
from app.platform.tables import ApiKey


def _usable() -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return (
        ApiKey.revoked_at.is_(None),
        or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > db_now()),
    )


def count_usable(session: Session) -> int:
    """How many keys are neither revoked nor expired, over all owners."""
    return session.execute(select(func.count()).select_from(ApiKey).where(*_usable())).scalar_one()


def find_usable(session: Session, sha256: str) -> ApiKey | None:
    """The key of this hash, unless it is revoked or has expired by the database's clock."""
    return session.scalar(select(ApiKey).where(ApiKey.sha256 == sha256, *_usable()))


def get(session: Session, owner: str, key_id: str, *, lock: bool = False) -> ApiKey | None:
    """The owner's key of this id, revoked or not; locked until the transaction ends if that is asked for."""
    statement = select(ApiKey).where(ApiKey.owner == owner, ApiKey.id == key_id)
    return session.scalar(statement.with_for_update() if lock else statement)


def has_others(session: Session, owner: str) -> bool:
    """Whether another owner has a key, or had one: what it made may still be there."""
    return bool(session.scalar(select(exists().where(ApiKey.owner != owner))))


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[ApiKey]:
    """The owner's keys, newest first."""
    statement = select(ApiKey).where(ApiKey.owner == owner)
    return fetch_page(session, statement, ApiKey.created_at, ApiKey.id, limit=limit, after=after)


def revoke(session: Session, owner: str, key_id: str) -> bool:
    """Mark the key as revoked now, keeping the time of a first revocation; false where there is no such key."""
    revoked = session.scalar(
        update(ApiKey)
        .where(ApiKey.owner == owner, ApiKey.id == key_id)
        .values(revoked_at=func.coalesce(ApiKey.revoked_at, db_now()))
        .returning(ApiKey.id),
        execution_options={"synchronize_session": False},
    )
    return revoked is not None


def touch(session: Session, key_id: str) -> None:
    """Note that the key was used just now."""
    session.execute(
        update(ApiKey).where(ApiKey.id == key_id).values(last_used_at=db_now()),
        execution_options={"synchronize_session": False},
    )
