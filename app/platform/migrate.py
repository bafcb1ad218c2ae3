"""Migration of a database to the newest tables, in one transaction, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.operations import BatchOperations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Column, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from app.platform.database import Database
from app.platform.errors import Refused
from app.platform.schema import REVISION, describe_other_build, describe_unknown, way_back

FOLDER = Path(__file__).resolve().parents[2] / "migrations"

# Two simultaneous `migrate` run one after the other. The number is arbitrary, but no other lock on this database may
# use it.
_ADVISORY_LOCK = 7_236_512_903


def upgrade(database_url: str, to: str = "head") -> str:
    """Return the new revision."""
    db = Database(database_url, bounded=False)
    try:
        with _refusals(db), exclusive_transaction(db) as connection:
            before = _revision(connection)
            if before is not None and not is_known(before):
                raise CommandError(f"its {describe_unknown(before)}; {way_back(before)}")
            command.upgrade(config(connection), to)
            revision = _revision(connection)
            if revision == REVISION and (found := describe_other_build(connection)) is not None:
                raise CommandError(f"its {found}; {way_back(revision)}")
    finally:
        db.close()
    assert revision is not None
    return revision


@contextmanager
def _refusals(db: Database) -> Iterator[None]:
    """Raise Refused for a refused login or an unusable file; pass other errors on."""
    try:
        yield
    except DBAPIError as error:
        if (reason := db.refusal(error)) is not None:
            raise Refused(reason) from error
        raise


@contextmanager
def exclusive_transaction(db: Database) -> Iterator[Connection]:
    """Exclude all other changes of tables."""
    with db.engine.connect() as connection:
        if db.dialect == "sqlite":
            # Most changes copy a table and drop the old one, and with enforcement on that drop would delete the
            # rows that refer to it. The switch works only outside of a transaction, hence on the driver.
            driver = connection.connection.driver_connection
            assert driver is not None
            driver.execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            if db.dialect == "postgresql":
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK}
                )
            yield connection
            if db.dialect == "sqlite":
                broken = connection.execute(text("PRAGMA foreign_key_check")).first()
                if broken is not None:
                    raise RuntimeError(
                        f"a migration left references to missing rows: {tuple(broken)}"
                    )
        connection.invalidate()  # with this switch the connection must not be used again


def keep_computed(batch: BatchOperations, column: Column[Any]) -> None:
    """Preserve a computed column in a table that an Alembic batch copies: Alembic would insert its values.

    `column` is its definition, with `Computed`; its indexes are kept.
    """
    batch.drop_column(column.name)
    batch.add_column(column)


def current(database_url: str) -> str | None:
    """None for an empty database. Raises Refused."""
    return _asked(database_url, _revision)


def other_build(database_url: str) -> str | None:
    """Describe tables of another build of this revision; None for the right ones. Raises Refused."""
    return _asked(database_url, describe_other_build)


def _asked(database_url: str, ask: Callable[[Connection], str | None]) -> str | None:
    db = Database(database_url)
    try:
        with _refusals(db), db.engine.connect() as connection:
            return ask(connection)
    finally:
        db.close()


def head() -> str:
    return revisions()[-1]


def is_known(revision: str) -> bool:
    """True with a migration to the revision."""
    return revision in revisions()


def revisions() -> list[str]:
    scripts = ScriptDirectory.from_config(config())
    return [script.revision for script in scripts.walk_revisions()][::-1]


def config(connection: Connection | None = None) -> Config:
    """`migrations/env.py` gets the connection."""
    alembic = Config()
    alembic.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    alembic.set_main_option("path_separator", "newline")  # a path may contain any other character
    alembic.attributes["connection"] = connection
    return alembic


def describe_failure(error: Exception) -> str:
    """Leave out the statement and the links that SQLAlchemy adds."""
    if isinstance(error, DBAPIError):
        return f"the database returned an error: {error.orig}"
    if isinstance(error, CommandError):
        return f"the database cannot be migrated: {error}"
    return str(error)


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
