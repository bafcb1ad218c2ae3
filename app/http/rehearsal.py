"""A rehearsal: do the work, see that it goes, and take it all back."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy.orm import Session

from app.platform.database import Database, again_after_deadlock


class _Undo(Exception):
    """Ends the transaction without a commit."""


@again_after_deadlock
def rehearse(db: Database, work: Callable[[Session], object]) -> None:
    """Run `work` in a transaction that is rolled back; what it raises comes through."""
    try:
        with db.write() as session:
            work(session)
            raise _Undo
    except _Undo:
        pass
