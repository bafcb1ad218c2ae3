"""The schema: made by migrations from empty, the one that the tables describe, the same on both databases."""

from __future__ import annotations

import ast
import functools
import json
import re
import shutil
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.util import CommandError
from pydantic import SecretStr
from sqlalchemy import delete, inspect, make_url, select, text
from sqlalchemy.types import TypeEngine

from app.jobs import service as jobs
from app.platform import migrate
from app.platform.database import Database
from app.platform.schema import FIRST_REVISION, REVISION
from app.platform.settings import Settings
from app.platform.sql import Base
from app.platform.tables import Job, JobEvent
from tests.app.live_service import running
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


def test_the_newest_revision_is_named_where_alembic_is_not_imported() -> None:
    assert migrate.head() == REVISION
    oldest = min(revision for folder in FOLDERS for revision in revisions(folder))
    assert oldest == FIRST_REVISION


FOLDERS = (migrate.VERSIONS, *migrate.BRIDGES)


def revisions(folder: Path) -> set[str]:
    return {path.name.partition("_")[0] for path in folder.glob("*.py")}


def test_no_revision_that_there_ever_was_is_refused() -> None:
    """A squash without a bridge would leave a gap."""
    every = {f"{number:04d}" for number in range(1, int(REVISION) + 1)}
    assert {revision for revision in every if not migrate.is_known(revision)} == set()
    assert set().union(*map(revisions, FOLDERS)) == every
    for bridge in migrate.BRIDGES:  # it ends where one of the others begins, or goes on
        assert max(revisions(bridge)) in revisions(migrate.VERSIONS)


def test_tables_of_no_version_that_there_was_are_refused_and_stay(
    empty_url: str,
) -> None:
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    for revision in ("0000", f"{int(REVISION) + 1:04d}", "ae1027a6acf"):
        with db.write() as session:
            session.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))
        with pytest.raises(CommandError):
            migrate.upgrade(empty_url)
        assert migrate.current(empty_url) == revision
    db.close()


# --- states that the code of before 0020 has made -------------------------------------------------

OLD_STATES = Path(__file__).parents[1] / "stored_state" / "before_0020.tar.xz"


@pytest.fixture(params=["sqlite", "postgres"])
def old_state(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[str], tuple[Settings, dict[str, Any]]]]:
    """A state at a revision, as `serve` of then left it, and what it told: the settings to open it, and the words."""
    with tarfile.open(OLD_STATES) as tar:
        tar.extractall(tmp_path, filter="data")
    server: PostgresServer = request.getfixturevalue("postgres")
    made: list[str] = []

    def open_state(revision: str) -> tuple[Settings, dict[str, Any]]:
        folder = tmp_path / f"{revision}-{request.param}"
        url = f"sqlite:///{folder / 'rankwright.db'}"
        if request.param == "postgres":
            url = server.create(f"old_{revision}")
            made.append(f"old_{revision}")
            dump = server.folder / "old.dump"
            shutil.copy(folder / "dump", dump)
            server.load(dump, made[-1])
        settings = Settings(state_dir=folder, database_url=SecretStr(url))
        told: dict[str, Any] = json.loads((folder / "told.json").read_text())
        return settings, told

    yield open_state
    for name in made:
        server.drop(name)


@pytest.mark.parametrize("revision", ["0001", "0018", "0019"])
def test_a_state_of_before_0020_is_brought_over(
    old_state: Callable[[str], tuple[Settings, dict[str, Any]]],
    revision: str,
    sqlite_url: str,
    postgres: PostgresServer,
    postgres_url: str,
) -> None:
    settings, told = old_state(revision)
    url = settings.sqlalchemy_url
    assert migrate.current(url) == revision
    before = counts(url)
    assert migrate.upgrade(url) == REVISION
    fresh = sqlite_url if url.startswith("sqlite") else postgres_url
    assert statements(url, postgres) == statements(fresh, postgres)
    assert schema(url) == schema(fresh)
    after = counts(url)
    assert {table: after[table] for table in before} == before
    assert before["jobs"] >= 2
    with running(settings) as service:
        client = service.client(told["key"])
        assert client.get(f"/v1/datasets/{told['dataset']}").json()["rows"] == 120
        assert client.get(f"/v1/models/{told['model']}").json()["name"] == "churn"
        score = client.get("/v1/models/churn/score", params={"a": "1.5", "b": "2"})
        if revision == "0001":  # no artifact of then tells what it knows of categories
            assert (score.status_code, score.json()["code"]) == (422, "invalid_artifact")
        else:
            assert score.json() == told["score"] | {"probability": None}
        job = {
            "dataset_id": told["dataset"],
            "name": "again",
            "algorithm": {"name": "rankboost", "n_rounds": 2},
            "controls": False,
        }
        address = client.post("/v1/jobs", json=job).headers["Location"]
        service.work()
        assert client.get(address).json()["state"] == "succeeded"


def counts(url: str) -> dict[str, int]:
    """The number of rows of each table."""
    db = Database(url)
    with db.read() as session:
        found = {
            table: int(session.execute(text(f'SELECT count(*) FROM "{table}"')).scalar_one())
            for table in inspect(db.engine).get_table_names()
        }
    db.close()
    return found


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


# --- migrations after the first only add, so that processes of the version before work on ---------------

FIRST = "0020"
"""Makes the tables, and so has nothing that it could take away; to be raised to the last one of each release."""
SINCE = sorted(path for path in migrate.VERSIONS.glob("*.py") if path.name[:4] > FIRST)
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
    assert {path.name: found for path in SINCE if (found := breaks(path.read_text()))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "batch_op.drop_column('name')",
        "op.rename_table('a', 'b')",
        "op.alter_column('a', 'b', nullable=False)",
        "op.add_column('a', sa.Column('b', sa.Text(), nullable=False))",
        "batch_op.add_column(sa.Column('b', sa.Text()))",
    ],
)
def test_what_takes_away_is_seen(line: str) -> None:
    source = f"def upgrade():\n    {line}\ndef downgrade():\n    op.drop_table('a')"
    assert breaks(source) == [line]
