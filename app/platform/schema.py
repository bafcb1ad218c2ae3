"""The database revision that this version needs, and the behaviour of a process with tables of another revision."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from app import __version__
from app.platform.database import Database, change_nothing
from app.platform.errors import Refused, Unavailable
from app.platform.tables import ApiKey

log = logging.getLogger(__name__)

REVISION = "0200"
"""Revision of the newest migration. It is stated here because most processes need not import Alembic."""
FIRST_REVISION = "0200"
"""Oldest revision that can be migrated. Revisions below it were made by versions that were never released."""
RETRY_SECONDS = 1.0


class CannotBegin(Exception):
    """The process cannot start, and waiting does not help; the message says what to do."""


class OtherTables(CannotBegin):
    """The tables are of another version or build; the message names it. `older`: this version can migrate them."""

    def __init__(self, message: str, *, older: bool = False) -> None:
        super().__init__(message)
        self.older = older


class SchemaCheck:
    """Checks that this process may use the tables of the database.

    It starts only with the tables of its own version. Once started, it continues when they are migrated, since
    migrations only add: so a deployment is upgraded process by process.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._revision: str | None = None

    def passed(self) -> str:
        """Return the revision of the start. Raises OtherTables, and Unavailable: down, without tables or read-only."""
        if self._revision is None:
            revision = self._db.reading(_revision)
            if revision != REVISION:
                raise OtherTables(describe(revision), older=is_older(revision))
            if (found := self._db.reading(describe_other_build)) is not None:
                raise OtherTables(f"the database's {found}; {way_back(revision)}")
            self._db.writing(change_nothing)
            self._revision = revision
        return self._revision

    def begin(self) -> str:
        """Check at the start of a process. Raises CannotBegin, also for a refused login."""
        try:
            return self.passed()
        except Refused as error:
            raise CannotBegin(str(error)) from error

    def wait(self, pause: Callable[[float], bool], *, migrated: bool = False) -> bool:
        """Wait for the right revision; returns False if `pause(seconds)` returns True first. Raises CannotBegin.

        With `migrated`, also wait for another process to migrate older tables.
        """
        told = False
        while True:
            try:
                self.begin()
                return True
            except Unavailable:  # `Database` logs it
                pass
            except OtherTables as error:
                if not (migrated and error.older):
                    raise
                if not told:
                    log.info("waiting for the migration: %s", error)
                told = True
            if pause(RETRY_SECONDS):
                return False


def describe(revision: str) -> str:
    """Describe tables with another revision, and what to do."""
    if is_older(revision):
        return (
            f"the database's tables are at revision {revision}, but rankwright {__version__} needs "
            f"{REVISION}: run `rankwright migrate`"
        )
    return f"the database's {describe_unknown(revision)}; {way_back(revision)}"


def describe_unknown(revision: str) -> str:
    """Describe tables whose revision this version does not know."""
    if _is_later(revision):
        return (
            f"tables are at revision {revision}, which is unknown to rankwright {__version__}; it can "
            f"migrate revisions {FIRST_REVISION} to {REVISION}"
        )
    return f"tables are at revision {revision}, which no release of rankwright has created"


_COLUMNS = {
    # Computed columns, too.
    "sqlite": "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table'",
    "postgresql": "SELECT table_name, column_name FROM information_schema.columns "
    "WHERE table_schema = current_schema()",
}


def describe_other_build(of: Session | Connection) -> str | None:
    """Describe tables at this revision whose columns are not those that this build declares; None if they are.

    Before a release a revision is edited in place, so several builds may have made different tables of its name.
    """
    dialect = (of.get_bind() if isinstance(of, Session) else of).dialect.name
    tables = ApiKey.metadata.tables  # all of them
    declared = {(name, column.name) for name, table in tables.items() for column in table.c}
    rows = of.execute(text(_COLUMNS[dialect])).all()
    found = {(table, column) for table, column in rows if table in tables}
    for does, columns in (("lack", declared - found), ("have", found - declared)):
        if columns:
            table, column = min(columns)
            more = f" and {len(columns) - 1} more columns" if len(columns) > 1 else ""
            return (
                f"tables are at revision {REVISION}, but of another build: they {does} the column "
                f"{table}.{column}{more}"
            )
    return None


def way_back(revision: str) -> str:
    """Say what to do with tables whose revision this version does not know."""
    if _is_later(revision):
        return "run the version that created them, or a later one"
    return "start with an empty database, or keep using the version that created them"


def is_older(revision: str) -> bool:
    """Return True if this version can migrate tables from this revision."""
    return revision.isdigit() and FIRST_REVISION <= revision < REVISION


def _is_later(revision: str) -> bool:
    return revision.isdigit() and revision > REVISION


def _revision(session: Session) -> str:
    return str(session.scalars(text("SELECT version_num FROM alembic_version")).one())
