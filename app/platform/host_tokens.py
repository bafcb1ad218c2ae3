"""Tokens by which the processes of a host notice each other's changes without asking the database.

SQLite's `data_version` changes with every commit, also of unrelated tables, and PostgreSQL's notifications may arrive
after COMMIT has returned.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import event
from sqlalchemy.orm import ORMExecuteState, Session, sessionmaker

from app.platform.sql import Base
from app.platform.tables import AliasFeedback, Job, JobEvent, Model, ModelAlias

log = logging.getLogger(__name__)

_CHANGED = "changed tables"  # a key of Session.info


class HostToken:
    """Eight random bytes in a file, replaced after the COMMIT of a change to one of `tables`, before it returns.

    What was read from these tables after the token was read is valid until the token changes, but for changes by other
    hosts. A counter would lose concurrent increments. Without a path there is no token.
    """

    def __init__(self, path: Path | None, tables: Collection[type[Base]]) -> None:
        self.tables = frozenset(table.__tablename__ for table in tables)
        self._path = path
        self._descriptor: int | None = None
        self._is_writable = True  # as far as the last commit knows: a fault is logged once

    def create(self) -> None:
        """Create the file unless it exists. After an error, which is logged, there is no token."""
        if self._path is None:
            return
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if not os.pread(self._descriptor, 1, 0):
                os.pwrite(self._descriptor, os.urandom(8), 0)
        except OSError as error:
            log.warning(
                "each request reads the database, because the token file cannot be opened: %s",
                error,
            )
            self.close()

    def read(self) -> bytes | None:
        """Return None if there is no token: then nothing may be remembered. Takes about a microsecond."""
        if self._descriptor is None:
            return None
        try:
            return os.pread(self._descriptor, 8, 0)
        except OSError:
            return None

    def replace(self) -> None:
        """Do nothing without the file: no process of the host reads it."""
        if self._path is None:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(descriptor, os.urandom(8), 0)
            finally:
                os.close(descriptor)
            self._is_writable = True
        except FileNotFoundError:
            return
        except OSError as error:
            if self._is_writable:
                log.warning("other processes notice changes up to a second late: %s", error)
            self._is_writable = False

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class HostTokens(NamedTuple):
    """The tokens of a database's clients on one host."""

    models: HostToken
    """Changes with what references to models mean: their version, guarantee and feedback, or that there is none."""
    jobs: HostToken
    """Changes with the states and events of jobs."""

    @classmethod
    def of(cls, folder: Path | None) -> HostTokens:
        """Without a folder there are none."""
        return cls(
            HostToken(folder and folder / "models.token", (Model, ModelAlias, AliasFeedback)),
            HostToken(folder and folder / "jobs.token", (Job, JobEvent)),
        )

    def watch(self, sessions: sessionmaker[Session]) -> None:
        """Note the tables that these sessions change."""
        event.listen(sessions, "do_orm_execute", _note_statement)
        event.listen(sessions, "after_flush", _note_flush)

    def replace(self, session: Session) -> None:
        """Replace the tokens of tables that the transaction changed, or tried to."""
        changed = session.info.get(_CHANGED, frozenset())
        for token in self:
            if not token.tables.isdisjoint(changed):
                token.replace()


def _note_statement(state: ORMExecuteState) -> None:
    if state.is_insert or state.is_update or state.is_delete:
        statement: Any = state.statement
        state.session.info.setdefault(_CHANGED, set()).add(statement.table.name)


def _note_flush(session: Session, _context: object) -> None:
    for row in (*session.new, *session.dirty, *session.deleted):
        session.info.setdefault(_CHANGED, set()).add(row.__tablename__)
