"""Queries on the names that move from model to model, and on where they pointed before."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.platform.sql import db_now, upsert_into
from app.platform.tables import ModelAlias, ModelAliasHistory


def find(
    session: Session, owner: str, name: str, alias: str, *, lock: bool = False
) -> ModelAlias | None:
    """The alias as it stands. `lock` holds the row until the transaction ends."""
    statement = select(ModelAlias).where(
        ModelAlias.owner == owner, ModelAlias.name == name, ModelAlias.alias == alias
    )
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def history(
    session: Session, owner: str, name: str, alias: str, limit: int
) -> Sequence[ModelAliasHistory]:
    """Where the alias pointed, the latest first."""
    statement = (
        select(ModelAliasHistory)
        .where(
            ModelAliasHistory.owner == owner,
            ModelAliasHistory.name == name,
            ModelAliasHistory.alias == alias,
        )
        .order_by(ModelAliasHistory.revision.desc())
        .limit(limit)
    )
    return session.scalars(statement).all()


def pointing_at(session: Session, owner: str, model_id: str) -> Sequence[str]:
    """The aliases of a model."""
    statement = (
        select(ModelAlias.alias)
        .where(ModelAlias.owner == owner, ModelAlias.model_id == model_id)
        .order_by(ModelAlias.alias)
    )
    return session.scalars(statement).all()


def create(session: Session, owner: str, name: str, alias: str, model_id: str) -> bool:
    """Insert the alias; false if it is there already, be it since a moment."""
    statement = (
        upsert_into(session, ModelAlias)
        .values(
            owner=owner,
            name=name,
            alias=alias,
            revision=1,
            model_id=model_id,
            updated_at=db_now(),
        )
        .on_conflict_do_nothing()
        .returning(ModelAlias.alias)
    )
    return session.execute(statement).one_or_none() is not None


def move(session: Session, alias: ModelAlias, model_id: str) -> None:
    """Point a locked alias at another model, under the next revision."""
    alias.revision += 1
    alias.model_id = model_id
    alias.updated_at = db_now()
    session.flush()


def remember(session: Session, alias: ModelAlias) -> None:
    """Add the alias as it stands to its history."""
    session.add(
        ModelAliasHistory(
            owner=alias.owner,
            name=alias.name,
            alias=alias.alias,
            revision=alias.revision,
            model_id=alias.model_id,
            at=alias.updated_at,
        )
    )
