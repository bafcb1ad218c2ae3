"""INSERT … ON CONFLICT, which both databases know, each by a statement of its own."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session


def upsert_into(session: Session, table: Any) -> Any:
    """The session's database's own INSERT into a table; only that database's dialect is imported."""
    if session.get_bind().dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    return insert(table)
