"""The schema: made by migrations from empty, the one that the tables describe, the same on both databases."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from servers import PostgresServer
from sqlalchemy import delete, inspect, select, text
from sqlalchemy.engine import Connection
from sqlalchemy.types import TypeEngine

from app.db import migrate
from app.db.evaluation_tables import Evaluation
from app.db.model_tables import Model
from app.db.schema import Base
from app.db.session import Database
from app.db.tables import Job, JobEvent
from app.infra.settings import Settings
from app.services import jobs


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
    revisions: list[str] = []
    threads = [
        threading.Thread(target=lambda: revisions.append(migrate.upgrade(empty_url)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert revisions == [migrate.head()] * 2


def test_copying_a_table_keeps_the_rows_that_refer_to_it(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    with db.write() as session:
        job = jobs.enqueue(session, Settings(), owner="o", kind="train", name="n", spec={})
    with migrate.alone(db) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("jobs", recreate="always") as table:
            table.alter_column("name", nullable=True)
    assert [event.seq for event in jobs.events(db, "o", job.id)] == [1]
    with db.write() as session:  # and references are enforced again
        session.execute(delete(Job))
        assert session.scalars(select(JobEvent)).all() == []
    db.close()


def test_a_migration_that_breaks_a_reference_is_undone(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    with db.write() as session:
        jobs.enqueue(session, Settings(), owner="o", kind="train", name="n", spec={})

    def break_it() -> None:
        with migrate.alone(db) as connection:
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


def test_what_was_made_before_learns_of_its_data(empty_url: str) -> None:
    db = Database(empty_url)
    with migrate.alone(db) as connection:
        command.upgrade(migrate.config(connection), "0012")

    def insert(connection: Connection, table: str, **values: Any) -> None:
        """Insert a row of the old schema; what else must be there is empty."""
        columns = inspect(connection).get_columns(table)
        empty = {"TEXT": "", "JSON": "{}"}
        needed = {
            column["name"]: empty.get(str(column["type"]), 0)
            for column in columns
            if not column["nullable"]
        }
        row = needed | values
        marks = ", ".join(f":{name}" for name in row)
        connection.execute(text(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"), row)

    with db.engine.connect() as connection, connection.begin():
        written = {"missing": '["NA"]', "dialect": '{"decimal": "comma"}'}
        insert(connection, "datasets", id="ds_1", owner="o", name="days", sha256="ab", **written)
        judged = {"validation": '{"method": "dataset", "dataset_id": "ds_1"}'}
        insert(
            connection,
            "models",
            id="m1",
            owner="o",
            name="m",
            job_id="a",
            dataset_id="ds_0",
            **judged,
        )
        insert(connection, "models", id="m2", owner="o", name="n", job_id="b", dataset_id="ds_1")
        for owner, id_, dataset_id in (("o", "e1", "ds_0"), ("o", "e2", "ds_1")):
            insert(connection, "evaluations", id=id_, owner=owner, dataset_id=dataset_id)
    migrate.upgrade(empty_url)
    with db.read() as session:
        data = {"id": "ds_1", "name": "days", "version": 1, "sha256": "ab", "rows_from": "ds_1"}
        models = {model.id: model for model in session.scalars(select(Model))}
        assert (models["m1"].dataset, models["m1"].validation_dataset) == (None, data)
        assert (models["m2"].dataset, models["m2"].validation_dataset) == (data, None)
        assert models["m1"].spelling is None
        assert models["m2"].spelling == {"missing": ["NA"], "decimal": "comma"}
        found = session.execute(
            select(Evaluation.id, Evaluation.dataset_version, Evaluation.dataset_sha256)
        )
        assert set(found) == {("e1", None, None), ("e2", 1, "ab")}
    db.close()
