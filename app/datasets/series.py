"""Rows are added to the newest version of a series alone."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.datasets import repository as rows
from app.platform.errors import Conflict
from app.platform.tables import Dataset


def check_newest(session: Session, parent: Dataset) -> None:
    """Raise Conflict unless rows may be added to this version: no other that is not invalid came after it."""
    newest = rows.newest_version(session, parent.owner, parent.series_id)
    if newest is None or newest.id == parent.id:
        return
    raise Conflict(
        f"rows are added to the newest version: {parent.id} is version {parent.version}, and version "
        f"{newest.version} ({newest.id}) is {newest.status}",
        code="not_the_newest_version",
    )
