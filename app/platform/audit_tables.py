"""Who changed what, and when."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.sql import Base


class AuditEntry(Base):
    """One change that a caller made, written in the transaction that made it.

    `action` is the route, `path` the address without its query, `made` the ids of what it created. `key_id` is null for
    a change from the server's own command line. Nothing of a body is kept.
    """

    __tablename__ = "audit_entries"
    __table_args__ = (Index(None, "owner", "created_at", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    key_id: Mapped[str | None]
    action: Mapped[str]
    path: Mapped[str | None]
    made: Mapped[list[str]]
    request_id: Mapped[str | None]
    created_at: Mapped[float]
