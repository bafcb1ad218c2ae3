"""Queries for saved views."""

from __future__ import annotations

from sqlalchemy import delete, func, select

from app.platform.callers import acting_principal
from app.platform.ids import new_id
from app.platform.sql import Page, Session, db_now, fetch_page, upsert_into
from app.platform.tables import SavedView


def list_page(
    session: Session, owner: str, of_list: str | None, *, limit: int, after: str | None
) -> Page[SavedView]:
    """The last saved first; of one list, if given."""
    statement = select(SavedView).where(SavedView.readable_by(owner))
    if of_list is not None:
        statement = statement.where(SavedView.of_list == of_list)
    times, ids = SavedView.saved_at, SavedView.id
    return fetch_page(session, statement, times, ids, limit=limit, after=after)


def find(session: Session, owner: str, of_list: str, name: str) -> SavedView | None:
    """Return the view as the database has it now."""
    statement = select(SavedView).where(
        SavedView.readable_by(owner), SavedView.of_list == of_list, SavedView.name == name
    )
    return session.scalar(statement.execution_options(populate_existing=True))


def count(session: Session, owner: str) -> int:
    statement = select(func.count()).select_from(SavedView).where(SavedView.readable_by(owner))
    return session.scalar(statement) or 0


def save(
    session: Session, owner: str, of_list: str, name: str, query: str, author: str | None
) -> None:
    """Insert or replace."""
    values = {
        "query": query,
        "author": author,
        "principal_id": acting_principal(),
        "saved_at": db_now(),
    }
    statement = upsert_into(session, SavedView).values(
        id=new_id("view"), owner=owner, of_list=of_list, name=name, **values
    )
    session.execute(
        statement.on_conflict_do_update(index_elements=["owner", "of_list", "name"], set_=values)
    )


def remove(session: Session, owner: str, of_list: str, name: str) -> bool:
    """Return False if there was none."""
    statement = delete(SavedView).where(
        SavedView.readable_by(owner), SavedView.of_list == of_list, SavedView.name == name
    )
    return session.execute(statement.returning(SavedView.id)).first() is not None
