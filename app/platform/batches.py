"""Deleting many rows a few at a time, so that no transaction holds up the others for long."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, CursorResult, delete, inspect, select, tuple_
from sqlalchemy.orm import Session

from app.platform.sql import Base


def delete_some(
    session: Session, table: type[Base], *conditions: ColumnElement[bool], limit: int
) -> int:
    """Delete so many of the rows that meet the conditions; returns how many. Fewer than `limit` were the last."""
    columns = inspect(table).primary_key
    doomed = select(*columns).where(*conditions).limit(limit)
    done: CursorResult[Any] = session.execute(  # type: ignore[assignment]  # a DELETE's result counts its rows
        delete(table).where(tuple_(*columns).in_(doomed)),
        execution_options={"synchronize_session": False},
    )
    return done.rowcount
