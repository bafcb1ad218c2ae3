"""The schema: made by migrations from empty, the one that the tables describe, the same on both databases."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.util import CommandError
from sqlalchemy import delete, inspect, select, text
from sqlalchemy.types import TypeEngine

from app.jobs import service as jobs
from app.platform import migrate
from app.platform.database import Database
from app.platform.schema import REVISION
from app.platform.settings import Settings
from app.platform.sql import Base
from app.platform.tables import Job, JobEvent
from tests.app.queue_steps import at_once
from tests.servers import PostgresServer


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    yield server.create("empty")
    server.drop("empty")


def test_upgrade_brings_an_empty_database_to_the_newest_revision(empty_url: str) -> None:
    assert migrate.current(empty_url) is None
    assert migrate.upgrade(empty_url) == migrate.head()
    assert migrate.current(empty_url) == migrate.head()


def test_upgrade_may_run_again_and_changes_nothing(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    before = schema(empty_url)
    assert migrate.upgrade(empty_url) == migrate.head()
    assert schema(empty_url) == before


def test_two_upgrades_at_once_both_succeed(empty_url: str) -> None:
    revisions = at_once(*[functools.partial(migrate.upgrade, empty_url)] * 2)
    assert revisions == [migrate.head()] * 2


def test_copying_a_table_keeps_the_rows_that_refer_to_it(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    with db.write() as session:
        job = jobs.enqueue(session, Settings(), owner="o", kind="train", name="n", spec={})
    with migrate.exclusive_transaction(db) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("jobs", recreate="always") as table:
            table.alter_column("name", nullable=True)
    assert [event.seq for event in db.reading(jobs.events, "o", job.id)] == [1]
    with db.write() as session:  # and references are enforced again
        session.execute(delete(Job))
        assert session.scalars(select(JobEvent)).all() == []
    db.close()


def test_a_migration_that_breaks_a_reference_is_undone(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    with db.write() as session:
        jobs.enqueue(session, Settings(), owner="o", kind="train", name="n", spec={})

    def break_it() -> None:
        with migrate.exclusive_transaction(db) as connection:
            connection.execute(text("DELETE FROM jobs"))

    with pytest.raises(RuntimeError, match="reference to nothing"):
        break_it()
    with db.read() as session:
        assert session.scalars(select(Job)).one()
    db.close()


def test_migrations_and_tables_do_not_drift_apart(db: Database) -> None:
    with db.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_sqlite_and_postgresql_have_the_same_schema(sqlite_url: str, postgres_url: str) -> None:
    sqlite, postgres = schema(sqlite_url), schema(postgres_url)
    assert sqlite.keys() == postgres.keys() >= {"jobs", "outbox", "models", "model_curves"}
    for table in sqlite:
        assert sqlite[table] == postgres[table]


def schema(url: str) -> dict[str, Any]:
    """All that can be read back about each table, in the words of SQL's generic types."""
    database = Database(url)
    inspector = inspect(database.engine)
    tables = {table: _table(inspector, table) for table in inspector.get_table_names()}
    database.close()
    return tables


def _table(inspector: Any, table: str) -> dict[str, Any]:
    return {
        "columns": {
            column["name"]: (_generic(column["type"]), column["nullable"])
            for column in inspector.get_columns(table)
        },
        "key": inspector.get_pk_constraint(table)["constrained_columns"],
        "unique": {
            (unique["name"], tuple(unique["column_names"]))
            for unique in inspector.get_unique_constraints(table)
        },
        "foreign": {
            (
                key["name"],
                tuple(key["constrained_columns"]),
                key["referred_table"],
                tuple(key["referred_columns"]),
                key["options"].get("ondelete"),
            )
            for key in inspector.get_foreign_keys(table)
        },
        "indexes": {
            (index["name"], tuple(index["column_names"]))
            for index in inspector.get_indexes(table)
            if not index.get("duplicates_constraint")
        },
        "checks": {check["name"] for check in inspector.get_check_constraints(table)},
    }


def _generic(type_: TypeEngine[Any]) -> str:
    name = type(type_.as_generic()).__name__
    return {"Double": "Float"}.get(
        name, name
    )  # FLOAT(53) is what PostgreSQL calls double precision


def test_tables_of_before_the_first_release_are_refused_and_stay(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    with db.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '0012'"))
    with pytest.raises(
        CommandError, match=rf"at revision 0012, .* brings any from 0020 on to {REVISION}"
    ):
        migrate.upgrade(empty_url)
    assert migrate.current(empty_url) == "0012"
    db.close()
