"""A worker or dispatcher that does its work is well; one that does not is told from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import update
from typer.testing import CliRunner

from app.cli import commands
from app.jobs import repository as worker_rows
from app.jobs.dispatcher import Reaper
from app.operations.health import HealthProbes
from app.operations.self_check import dispatcher_problem, worker_problem
from app.platform.blobs import FolderStore
from app.platform.broker import Producer
from app.platform.database import Database
from app.platform.schema import SchemaCheck
from app.platform.settings import Settings
from app.platform.tables import Role, Worker
from tests.app.queue_steps import claimed, hear_nothing, submit
from tests.sentences import Sentences
from tests.servers import PostgresServer

SETTINGS = Settings()
LONG = 3600.0


def register(db: Database, host: str) -> None:
    with db.write() as session:
        worker_rows.register(session, f"wrk_{host}", host=host, version="0", slots=1)


def work_as_dispatcher(db: Database) -> None:
    with db.write() as session:
        worker_rows.register(
            session, "dsp_alpha", host="alpha", version="0", slots=0, role=Role.DISPATCHER
        )


def test_a_worker_is_well_while_its_host_is_heard_from(db: Database) -> None:
    silent = "no worker of alpha has sent a heartbeat within 30 s"
    assert worker_problem(db, SETTINGS, "alpha") == silent
    register(db, "beta")
    assert worker_problem(db, SETTINGS, "alpha") == silent
    register(db, "alpha")
    assert worker_problem(db, SETTINGS, "alpha") is None
    with db.write() as session:
        session.execute(update(Worker).values(seen_at=Worker.seen_at - LONG))
    assert worker_problem(db, SETTINGS, "alpha") == silent


def test_a_dispatcher_is_well_until_it_leaves_lost_leases_for_long(
    db: Database, sentences: Sentences
) -> None:
    work_as_dispatcher(db)
    submit(db)
    claim = claimed(db)
    assert dispatcher_problem(db, SETTINGS, "alpha") is None
    hear_nothing(db, claim.job_id, seconds=LONG)
    sentences(dispatcher_problem(db, SETTINGS, "alpha"))
    Reaper(db, SETTINGS).reap()
    assert dispatcher_problem(db, SETTINGS, "alpha") is None


def test_a_database_that_is_away_is_named(tmp_path: Path, sentences: Sentences) -> None:
    db = Database(f"postgresql:///x?host={tmp_path}")
    sentences(worker_problem(db, SETTINGS, "alpha"))
    sentences(dispatcher_problem(db, SETTINGS, "alpha"))
    db.close()


def test_who_asks_for_health_learns_no_host_and_no_user(
    postgres: PostgresServer, producer: Producer, tmp_path: Path, sentences: Sentences
) -> None:
    db = Database(postgres.url("not_there"))
    settings = Settings(database_url=SecretStr(postgres.url("not_there")))
    probes = HealthProbes(db, settings, SchemaCheck(db), FolderStore(tmp_path), producer)
    asked = asyncio.run(probes.can_serve())
    probes.close()
    first, second = [check.detail for check in asked if not check.ok]
    assert first == second
    sentences(first)
    # The command is the operator's.
    assert str(postgres.folder) in (worker_problem(db, SETTINGS, "alpha") or "")
    db.close()


@pytest.fixture
def environment(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """The database of a process whose environment names it."""
    monkeypatch.setenv("RANKWRIGHT_DATABASE_URL", database_url)
    db = Database(database_url)
    yield db
    db.close()


def test_the_command_tells_by_its_exit_code(
    environment: Database, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "alpha")
    app, run = commands(), CliRunner()
    sick = run.invoke(app, ["health", "worker"])
    assert (sick.exit_code, sick.stdout) == (1, "")
    sentences(sick.stderr)
    register(environment, "alpha")
    assert run.invoke(app, ["health", "worker"]).exit_code == 0
    assert run.invoke(app, ["health", "dispatcher"]).exit_code == 1
    work_as_dispatcher(environment)
    assert run.invoke(app, ["health", "dispatcher"]).exit_code == 0
    assert run.invoke(app, ["health", "workers"]).exit_code == 2
