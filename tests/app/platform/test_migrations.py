"""The schema: made by migrations from empty, the one that the tables describe, the same on both databases."""

from __future__ import annotations

import ast
import functools
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.util import CommandError
from sqlalchemy import MetaData, delete, insert, inspect, make_url, select, text
from sqlalchemy.types import TypeEngine

from app.jobs import service as jobs
from app.platform import migrate
from app.platform.database import Database
from app.platform.schema import FIRST_REVISION, REVISION, CannotBegin, SchemaCheck, describe
from app.platform.settings import Settings
from app.platform.sql import Base
from app.platform.tables import Job, JobEvent
from tests.app.queue_steps import at_once
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences
from tests.servers import PostgresServer


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    yield server.create("empty")
    server.drop("empty")


@long_form
def test_two_upgrades_at_once_both_succeed(empty_url: str) -> None:
    revisions = at_once(*[functools.partial(migrate.upgrade, empty_url)] * 2)
    assert revisions == [migrate.head()] * 2


def test_copying_a_table_keeps_the_rows_that_refer_to_it(sqlite_url: str) -> None:
    db = Database(sqlite_url)
    spec = {"validation": {"dataset_id": "ds_1"}}
    with db.write() as session:
        job = jobs.enqueue(session, Settings(), owner="o", kind="train", name="n", spec=spec)
    indexes = schema(sqlite_url)["jobs"]["indexes"]
    with migrate.exclusive_transaction(db) as connection:
        operations = Operations(MigrationContext.configure(connection))
        computed = Job.__table__.c["validation_dataset_id"]._copy()
        with operations.batch_alter_table("jobs", recreate="always") as table:
            table.alter_column("name", nullable=True)
            migrate.keep_computed(table, computed)
    assert schema(sqlite_url)["jobs"]["indexes"] == indexes
    assert db.reading(jobs.find, "o", job.id).validation_dataset_id == "ds_1"
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

    with raises(RuntimeError, "job_events", "'jobs'"):
        break_it()
    with db.read() as session:
        assert session.scalars(select(Job)).one()
    db.close()


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


def test_the_newest_and_the_first_revision_are_named_where_alembic_is_not_imported() -> None:
    numbers = range(int(FIRST_REVISION), int(REVISION) + 1)
    assert migrate.revisions() == [f"{number:04d}" for number in numbers]
    assert migrate.head() == REVISION


# Of a version that was never released, and of no version.
NEVER_RELEASED = ("0001", "0129", "ae1027a6acf")


def test_tables_of_no_release_and_of_a_later_one_are_refused_and_stay(
    sqlite_url: str, sentences: Sentences
) -> None:
    before = schema(sqlite_url)
    for revision in NEVER_RELEASED:
        set_revision(sqlite_url, revision)
        with sentences.raises(CommandError):
            migrate.upgrade(sqlite_url)
        assert migrate.current(sqlite_url) == revision
    later = f"{int(REVISION) + 1:04d}"
    set_revision(sqlite_url, later)
    with raises(CommandError, later, REVISION):
        migrate.upgrade(sqlite_url)
    assert migrate.current(sqlite_url) == later
    assert schema(sqlite_url) == before


def test_what_to_do_with_tables_of_another_revision(
    monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr("app.platform.schema.REVISION", "0202")
    monkeypatch.setattr("app.platform.schema.__version__", "0.4.0")
    for revision in (FIRST_REVISION, "0201", "0203", "0033"):
        sentences(describe(revision))


def set_revision(url: str, revision: str) -> None:
    db = Database(url)
    with db.write() as session:
        session.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
    db.close()


# --- each migration runs on a database of the one before ------------------------------------------------


def test_each_migration_keeps_the_rows_of_the_revision_before(empty_url: str) -> None:
    """The first is of an empty database. The rows are new before each, so that they have a value in each column."""
    assert migrate.current(empty_url) is None
    for before, after in pairwise([None, *migrate.revisions()]):
        if before is not None:
            fill(empty_url)
        rows = counts(empty_url)
        assert all(rows.values()), before
        assert migrate.upgrade(empty_url, after) == after
        now = counts(empty_url)
        assert now | rows == now, after
    assert migrate.upgrade(empty_url) == migrate.head()  # which changes nothing
    assert migrate.current(empty_url) == migrate.head()


def test_rows_that_a_migration_would_break_are_there(sqlite_url: str) -> None:
    """Those that the test above fills in: one in each table, with a value in each column."""
    fill(sqlite_url)
    assert set(counts(sqlite_url).values()) == {1}


VALUES: dict[type, Any] = {
    str: "queued",  # also the id that each reference names, and the state of a job
    int: 1,
    float: 1.0,
    bool: False,
    bytes: b"",
    object: [],  # JSON
}


def fill(url: str) -> None:
    """Put one row into each table in place of those that it has, with a value in each column that is not computed."""
    db = Database(url)
    metadata = MetaData()
    metadata.reflect(db.engine)
    tables = [table for table in metadata.sorted_tables if table.name != "alembic_version"]
    with db.write() as session:
        for table in reversed(tables):
            session.execute(delete(table))
        for table in tables:
            given = (column for column in table.columns if column.computed is None)
            values = {column.name: VALUES[column.type.python_type] for column in given}
            session.execute(insert(table).values(values))
    db.close()


def counts(url: str) -> dict[str, int]:
    """Return the number of rows of each table."""
    db = Database(url)
    with db.read() as session:
        found = {
            table: int(session.execute(text(f'SELECT count(*) FROM "{table}"')).scalar_one())
            for table in inspect(db.engine).get_table_names()
        }
    db.close()
    return found


def test_the_migrations_make_what_the_tables_declare(
    empty_url: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    """In the databases' own words: names of constraints and defaults, too."""
    migrate.upgrade(empty_url)
    is_sqlite = empty_url.startswith("sqlite")
    url = f"sqlite:///{tmp_path / 'declared.db'}" if is_sqlite else postgres.create("declared")
    db = Database(url)
    Base.metadata.create_all(db.engine)
    db.close()
    migrated, declared = statements(empty_url, postgres), statements(url, postgres)
    if not is_sqlite:
        postgres.drop("declared")
    of_alembic = {each for each in migrated if "alembic_version" in " ".join(each)}
    assert of_alembic
    assert migrated - of_alembic == declared
    assert len(declared) > 60


def statements(url: str, postgres: PostgresServer) -> set[tuple[str, ...]]:
    """Return the definitions of the tables in the database's own words; the order of columns does not matter."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            found = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master") if sql]
    else:
        lines = postgres.dump_schema(make_url(url).database or "").splitlines()
        text_ = "\n".join(line for line in lines if not line.startswith(("\\", "--")))
        found = text_.split(";")
    return {
        tuple(
            sorted(re.sub(r'["\s]+', " ", part).strip() for part in re.split(r",\s|\(\s|\n\)", sql))
        )
        for sql in found
    }


@pytest.mark.parametrize(
    "change", ["ALTER TABLE models DROP COLUMN tags", "ALTER TABLE models ADD COLUMN colour TEXT"]
)
def test_tables_of_another_build_of_the_revision_are_refused(empty_url: str, change: str) -> None:
    migrate.upgrade(empty_url)
    assert migrate.other_build(empty_url) is None
    db = Database(empty_url)
    try:
        with db.engine.begin() as connection:
            connection.execute(text("CREATE TABLE theirs (x TEXT)"))
            connection.execute(text(change))
        with raises(CannotBegin, change.split()[5], REVISION):
            SchemaCheck(db).begin()
    finally:
        db.close()
    assert migrate.other_build(empty_url) is not None
    with raises(CommandError, change.split()[5]):
        migrate.upgrade(empty_url)


# --- migrations after the first only add, so that processes of the version before work on ---------------


# The first makes the tables, and so has nothing that it could take away.
SINCE = [
    path
    for path in sorted((migrate.FOLDER / "versions").glob("*.py"))
    if path.name[:4] > FIRST_REVISION
]
TAKES_AWAY = ("drop_", "rename_", "alter_column")


def calls(source: str) -> Iterator[tuple[str, ast.Call]]:
    """Return the calls of `upgrade`, its own and its helpers': the method's name, and the call."""
    for function in ast.parse(source).body:
        if isinstance(function, ast.FunctionDef) and function.name != "downgrade":
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    yield node.func.attr, node


def breaks(source: str) -> list[str]:
    """Return the changes that would break an older process."""
    found = []
    for name, call in calls(source):
        if name.startswith(TAKES_AWAY):
            found.append(ast.unparse(call))
        if name == "add_column":
            column = next(arg for arg in call.args if isinstance(arg, ast.Call))
            said = {word.arg: ast.unparse(word.value) for word in column.keywords}
            if said.get("nullable") != "True" and "server_default" not in said:
                found.append(ast.unparse(call))
    return found


def test_they_only_add() -> None:
    assert not {path.name: found for path in SINCE if (found := breaks(path.read_text()))}
