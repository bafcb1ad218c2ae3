"""The audit log as its owner reads it, and the name under which the server's own command line goes into it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial

from app.platform import audit as rows
from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.sql import Page
from app.platform.tables import AuditEntry


def list_page(db: Database, owner: str, *, limit: int, after: str | None) -> Page[AuditEntry]:
    """What was changed on the owner's behalf, newest first."""
    with db.read() as session:
        return rows.list_page(session, owner, limit=limit, after=after)


def by_command(owner: str, command: str) -> AbstractContextManager[None]:
    """Have what is changed within a block go into the owner's log as the command's doing."""
    return rows.acting_as(rows.Actor(owner, None, command, partial(new_id, "aud")))
