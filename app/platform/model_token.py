"""Tells the processes of a host that a reference to a model may have another meaning: another version, guarantee or
settings, or none.

SQLite's `data_version` changes with every commit, also of unrelated tables, and PostgreSQL's notifications may arrive
after COMMIT has returned.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import ORMExecuteState, Session, sessionmaker

from app.platform.tables import AliasFeedback, Model, ModelAlias

log = logging.getLogger(__name__)

FILE = "models.token"
_TABLES = (Model, ModelAlias, AliasFeedback)
_NAMES = frozenset(table.__tablename__ for table in _TABLES)
_CHANGED = "model references changed"  # a key of Session.info


class ModelToken:
    """Eight random bytes in a file. Each transaction that changes models, aliases or their feedback replaces them after
    its COMMIT, before it returns.

    What was read from the database after the token was read is valid until the token changes. A counter would lose
    concurrent increments. Without a path there is no token.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._descriptor: int | None = None

    def create(self) -> None:
        """Create the file unless it exists, and open it for `read`. An error is logged, and then there is no token."""
        if self._path is None:
            return
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if not os.pread(self._descriptor, 1, 0):
                self._write(self._descriptor)
        except OSError as error:
            log.warning(
                "each request looks its model up in the database, because a file cannot be opened: %s",
                error,
            )
            self.close()

    def read(self) -> bytes | None:
        """Return the token; None if there is none, and so nothing may be cached. Takes about a microsecond."""
        if self._descriptor is None:
            return None
        try:
            return os.pread(self._descriptor, 8, 0)
        except OSError:
            return None

    def replace(self) -> None:
        """Write another token. Does nothing on a host without a process that reads it, where the file is missing."""
        if self._path is None:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("other processes see a change of models up to a second late: %s", error)
            return
        try:
            self._write(descriptor)
        except OSError as error:
            log.warning("other processes see a change of models up to a second late: %s", error)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @staticmethod
    def _write(descriptor: int) -> None:
        os.pwrite(descriptor, os.urandom(8), 0)


def watch(sessions: sessionmaker[Session]) -> None:
    """Note which transactions of these sessions change what references mean (`has_changed`)."""
    event.listen(sessions, "do_orm_execute", _note_statement)
    event.listen(sessions, "after_flush", _note_flush)


def has_changed(session: Session) -> bool:
    """Return True if the session's transaction has changed, or tried to change, what references mean."""
    return _CHANGED in session.info


def _note_statement(state: ORMExecuteState) -> None:
    if state.is_insert or state.is_update or state.is_delete:
        statement: Any = state.statement
        if statement.table.name in _NAMES:
            state.session.info[_CHANGED] = True


def _note_flush(session: Session, _context: object) -> None:
    changed = (*session.new, *session.dirty, *session.deleted)
    if any(isinstance(row, _TABLES) for row in changed):
        session.info[_CHANGED] = True
