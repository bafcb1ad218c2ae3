"""Sessions: whole transactions, and outages that say what they are."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Executable, delete, select, text, update
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError
from sqlalchemy.orm import Session

from app.jobs import repository as workers
from app.platform import database as session_module
from app.platform import migrate
from app.platform import postgres as postgres_module
from app.platform.database import Database
from app.platform.errors import Deadlock, OutOfSpace, Refused, Unavailable
from app.platform.login_errors import describe_refusal
from app.platform.tables import Idempotency, Worker
from tests.app.queue_steps import at_once
from tests.long_form import long_form
from tests.sentences import Sentences
from tests.servers import PostgresServer
from tests.waiting import patience

READ_ONLY = {"25006", "SQLITE_READONLY"}


def code_of(error: DBAPIError) -> str:
    """Return the SQLSTATE of an error of PostgreSQL, or the name of one of SQLite."""
    cause: Any = error.orig
    return str(getattr(cause, "sqlstate", None) or cause.sqlite_errorname)


def register(db: Database, worker_id: str) -> None:
    with db.write() as session:
        workers.register(session, worker_id, host="h", version="1", slots=1)


def test_a_block_that_raises_leaves_nothing(db: Database) -> None:
    def fail() -> None:
        with db.write() as session:
            workers.register(session, "wrk_a", host="h", version="1", slots=1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with db.read() as session:
        assert session.scalars(select(Worker)).all() == []


def test_a_read_changes_nothing_and_holds_nothing(db: Database) -> None:
    register(db, "wrk_a")
    one = Database(db.url.render_as_string(hide_password=False), pool_size=1)
    row = select(Worker).where(Worker.id == "wrk_a")
    locks = row.with_for_update(read=True)
    refused: list[Executable] = [
        update(Worker).values(slots=7),
        delete(Worker),
        text("DROP TABLE workers"),
    ]
    for statement in [*refused, *([locks] if db.dialect == "postgresql" else [])]:
        with pytest.raises(DBAPIError) as refusal, one.read() as session:
            session.execute(statement)
        assert code_of(refusal.value) in READ_ONLY
        with one.write() as session:  # the same connection may write again
            session.scalars(locks).one().slots += 1
    with one.read() as session:
        assert session.scalars(row).one().slots == 1 + len(refused) + (db.dialect == "postgresql")
    one.close()


def test_work_in_a_transaction_gets_its_session_and_gives_its_answer(db: Database) -> None:
    def rename(session: Session, worker_id: str, *, host: str) -> str:
        row = session.scalars(select(Worker).where(Worker.id == worker_id)).one()
        row.host, before = host, row.host
        return before

    register(db, "wrk_a")
    assert db.writing(rename, "wrk_a", host="other") == "h"
    assert db.writing(rename, "wrk_a", host="third") == "other"
    with pytest.raises(DBAPIError) as refusal:
        db.reading(rename, "wrk_a", host="fourth")
    assert code_of(refusal.value) in READ_ONLY
    with pytest.raises(ZeroDivisionError):
        db.writing(lambda session: rename(session, "wrk_a", host="fifth") and 1 / 0)
    assert db.reading(lambda session: session.scalars(select(Worker.host)).one()) == "third"


def test_work_that_fell_victim_to_a_deadlock_runs_again_from_nothing(db: Database) -> None:
    tries: list[int] = []

    def victim(session: Session) -> int:
        tries.append(len(session.scalars(select(Worker)).all()))
        workers.register(session, f"wrk_{len(tries)}", host="h", version="1", slots=1)
        if len(tries) == 1:
            raise Deadlock("another transaction changed the same rows")
        return len(tries)

    assert db.writing(victim) == 2
    assert tries == [0, 0]
    assert db.reading(lambda session: list(session.scalars(select(Worker.id)))) == ["wrk_2"]


def test_a_write_within_a_write_is_named_at_once(db: Database, sentences: Sentences) -> None:
    with db.write(), sentences.raises(RuntimeError):
        register(db, "wrk_a")
    register(db, "wrk_a")  # what was refused holds up nobody
    with db.write(), ThreadPoolExecutor() as pool, db.read() as session:
        assert pool.submit(db.reading, lambda other: other.scalar(select(Worker.id))).result()
        assert session.scalar(select(Worker.id)) == "wrk_a"


def test_what_is_not_a_number_is_stored_as_null(db: Database) -> None:
    with db.write() as session:
        session.add(
            Idempotency(
                owner="o",
                route="r",
                key="k",
                fingerprint="f",
                response={"auc": float("nan"), "threshold": float("inf"), "1": [0.5]},
                created_at=1.5,
            )
        )
    with db.read() as session:
        kept = session.scalars(select(Idempotency.response)).one()
    assert kept == {"auc": None, "threshold": None, "1": [0.5]}


def test_a_database_without_its_tables_says_so(db: Database) -> None:
    with pytest.raises(Unavailable) as caught, db.read() as session:
        session.execute(text("SELECT id FROM jobs_of_a_later_version"))
    assert caught.value.code == "database_not_migrated"


def test_a_fault_in_our_sql_is_not_an_outage(db: Database) -> None:
    with pytest.raises((OperationalError, ProgrammingError)), db.read() as session:
        session.execute(text("SELECT nothing FROM jobs"))


def test_a_database_that_is_away(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path / 'no' / 'folder.db'}", f"postgresql:///x?host={tmp_path}"):
        with pytest.raises(Unavailable) as caught:
            register(Database(url), "wrk_a")
        assert caught.value.code == "database_unavailable"


def test_a_login_that_is_refused(postgres: PostgresServer, sentences: Sentences) -> None:
    postgres.require_password("locked", "right")
    socket = f"host={postgres.folder}"
    for url, reason in {
        f"postgresql://locked:wr0ng@/postgres?{socket}": 'authentication failed for user "locked"',
        f"postgresql://locked@/postgres?{socket}": "no password supplied",
        f"postgresql://postgres@/none?{socket}": 'database "none" does not exist',
        f"postgresql://nobody@/postgres?{socket}": 'role "nobody" does not exist',
    }.items():
        with pytest.raises(Refused) as caught:
            register(Database(url), "wrk_a")
        assert reason in str(caught.value)
        assert str(postgres.folder) in str(caught.value)
        assert "wr0ng" not in str(caught.value)
        # Callers learn neither host nor user.
        sentences(caught.value)
        assert (caught.value.status, caught.value.code) == (503, "database_unavailable")


def test_a_new_password_needs_no_restart(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.require_password("rotated", "first")
    file = tmp_path / "password"
    file.write_text("first\n")
    url = f"postgresql://rotated:first@/postgres?host={postgres.folder}"
    db = Database(url, password_file=file)

    def connect() -> bool:
        db.engine.dispose()
        with db.read() as session:
            return bool(session.scalars(select(1)).one())

    try:
        assert connect()
        postgres.run("ALTER ROLE rotated PASSWORD 'second'")
        with pytest.raises(Refused):
            connect()
        file.write_text("second\n")
        assert connect()
    finally:
        db.close()


@pytest.mark.parametrize("how", ["read-only", "another format"])
def test_a_file_that_cannot_be_used(
    tmp_path: Path, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(
        session_module, "SQLITE_BUSY_SECONDS", 1e9
    )  # nobody waits for this to mend itself
    if how == "read-only":
        sqlite_url = f"sqlite:///file:{tmp_path / 'rankwright.db'}?mode=ro&uri=true"
    else:
        (tmp_path / "rankwright.db").write_bytes(b"x" * 4096)
    db = Database(sqlite_url)
    with pytest.raises(Refused) as caught:
        register(db, "wrk_a")
    assert "rankwright.db" in str(caught.value)
    db.close()


def test_a_folder_that_may_still_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "SQLITE_BUSY_SECONDS", 0.0)
    db = Database(f"sqlite:///{tmp_path / 'later' / 'rankwright.db'}")
    with pytest.raises(Unavailable) as caught:
        register(db, "wrk_a")
    assert not isinstance(caught.value, Refused)
    db.close()


def test_a_full_disk(sqlite_url: str, sentences: Sentences) -> None:
    db = Database(sqlite_url, pool_size=1)
    with db.read() as session:  # no page more than there are
        pages = session.execute(text("PRAGMA page_count")).scalar_one()
        session.execute(text(f"PRAGMA max_page_count = {pages}"))
    with sentences.raises(OutOfSpace) as caught:
        register(db, "wrk_" + "a" * 100_000)
    assert (caught.value.status, caught.value.code) == (507, "out_of_space")
    with db.read() as session:
        assert session.scalars(select(Worker)).all() == []
    db.close()


def test_a_full_disk_of_postgresql(postgres_url: str) -> None:
    db = Database(postgres_url)
    with pytest.raises(OutOfSpace), db.write() as session:
        session.execute(text("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$"))
    db.close()


def test_a_lock_beyond_patience(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr(session_module, "SQLITE_BUSY_SECONDS", 0.05)
    first, second = Database(sqlite_url), Database(sqlite_url)
    with first.write() as session:
        session.execute(text("SELECT 1"))
        with ThreadPoolExecutor() as pool:
            for other in (first, second):  # the same process's turn, and another process's lock
                with sentences.raises(Unavailable):
                    pool.submit(register, other, "wrk_b").result()
        with second.read() as reader:  # a writer holds up no reader
            assert reader.scalars(select(Worker)).all() == []
    register(second, "wrk_b")


def test_more_threads_than_connections(
    db: Database, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    monkeypatch.setattr(session_module, "POOL_SECONDS", 0.05)
    small = Database(db.url.render_as_string(hide_password=False), pool_size=1)
    both_hold, done = threading.Barrier(3), threading.Event()

    def hold() -> None:
        with small.read() as session:
            session.execute(text("SELECT 1"))
            both_hold.wait(patience())
            done.wait(patience())

    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    both_hold.wait(patience())
    with (
        sentences.raises(Unavailable),
        small.read() as session,
    ):
        session.execute(text("SELECT 1"))
    done.set()
    for thread in threads:
        thread.join(patience())
    small.close()


def test_writers_of_one_process_all_get_their_turn(db: Database) -> None:
    assert at_once(*(partial(register, db, f"wrk_{n:02}") for n in range(16))) == [None] * 16
    with db.read() as session:
        assert len(session.scalars(select(Worker)).all()) == 16


def test_the_victim_of_a_deadlock_tries_again(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Two transactions lock two rows in opposite orders, the first time they try."""
    db = Database(postgres_url)
    pairs = (("wrk_a", "wrk_b"), ("wrk_b", "wrk_a"))
    for worker_id, _ in pairs:
        register(db, worker_id)
    both_hold = threading.Barrier(2)
    tries: Counter[str] = Counter()

    def change(session: Session, ids: tuple[str, str]) -> None:
        tries[ids[0]] += 1
        for id_ in ids:
            row = select(Worker).where(Worker.id == id_).with_for_update()
            session.scalars(row).one().slots += 1
            session.flush()
            if id_ == ids[0] and tries[id_] == 1:
                both_hold.wait(patience())

    assert at_once(*(partial(db.writing, change, ids) for ids in pairs)) == [None, None]
    with db.read() as session:
        assert session.scalars(select(Worker.slots)).all() == [3, 3]
    assert tries.total() > 2
    assert "deadlock detected" in caplog.text
    assert "SELECT" not in caplog.text  # no statement, and so no values of a caller's
    db.close()


def test_deadlocks_without_end_and_other_errors_come_through(db: Database) -> None:
    tried: list[str] = []

    def run(session: Session, error: Exception) -> None:
        tried.append(str(error))
        raise error

    for error, times in ((Deadlock("x"), 3), (Unavailable("x"), 1)):
        tried.clear()
        with pytest.raises(type(error)):
            db.writing(run, error)
        assert len(tried) == times


SERVER = "connection to server at"


@pytest.mark.parametrize(
    ("said", "useless"),
    [
        (f'{SERVER} "certificate-db" (10.0.0.1), port 5432 failed: Connection refused', False),
        ("failed to resolve host 'certificate-db': [Errno -3] Temporary failure in name", False),
        (f'{SERVER} "db" failed: FATAL:  too many connections for role "certificate"', False),
        (f'{SERVER} "db", port 5432 failed: SSL error: certificate verify failed', True),
        (f'{SERVER} "db", port 5432 failed: FATAL:  database "x" does not exist', True),
    ],
)
def test_the_names_in_a_refusal_are_no_reason(said: str, useless: bool) -> None:
    found = describe_refusal(f"connection failed: {said}")
    assert found == (said if useless else None)


def outages_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The levels of what the database's log says; services of other tests may still end, and log that."""
    name = session_module.log.name
    return [record.levelname for record in caplog.records if record.name == name]


@long_form
def test_a_standby_is_an_outage_for_who_writes_until_it_is_promoted(
    caplog: pytest.LogCaptureFixture,
    sentences: Sentences,
) -> None:
    caplog.set_level("INFO", session_module.log.name)
    server = PostgresServer()
    try:
        url = server.create("standby")
        migrate.upgrade(url)
        server.become_standby()
        db = Database(url, pool_size=1)
        for _ in range(3):
            with sentences.raises(Unavailable) as caught:
                register(db, "wrk_a")
            assert (caught.value.status, caught.value.code) == (503, "database_unavailable")
            assert db.reading(lambda session: session.scalars(select(Worker)).all()) == []
        with pytest.raises(DBAPIError) as refusal, db.read() as session:
            session.execute(delete(Worker))  # in a transaction that only reads it is our error
        assert code_of(refusal.value) in READ_ONLY
        assert outages_in(caplog) == ["WARNING"]
        server.promote()
        register(db, "wrk_a")
        assert outages_in(caplog) == ["WARNING", "INFO"]
        db.close()
    finally:
        server.close()


def test_connections_to_what_was_the_primary_are_made_anew(
    postgres: PostgresServer, postgres_url: str, sentences: Sentences
) -> None:
    db = Database(postgres_url, pool_size=1)
    option = f'ALTER DATABASE "{db.url.database}"'
    postgres.run(f"{option} SET default_transaction_read_only = on")
    try:
        with sentences.raises(Unavailable):
            register(db, "wrk_a")
    finally:
        postgres.run(f"{option} RESET default_transaction_read_only")
    register(db, "wrk_a")
    db.close()


def test_a_server_that_stands_still_is_an_outage(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    db = Database(postgres_url, pool_size=1)
    stopped = []

    def stand_still(session: Session) -> None:
        stopped.append(session.execute(text("SELECT pg_backend_pid()")).scalar_one())
        os.kill(stopped[0], signal.SIGSTOP)
        monkeypatch.setattr(postgres_module, "SILENCE_SECONDS", 0.2)
        session.execute(select(Worker))

    try:
        with pytest.raises(Unavailable):
            db.writing(stand_still)
    finally:
        os.kill(stopped[0], signal.SIGCONT)
        monkeypatch.undo()
    assert outages_in(caplog) == ["WARNING"]
    register(db, "wrk_a")  # by another connection
    db.close()


def test_a_statement_that_takes_too_long_is_ended_by_the_server(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_module, "STATEMENT_SECONDS", 0.05)
    wait = text("SELECT pg_sleep(0.5)")
    db = Database(postgres_url, pool_size=1)
    with pytest.raises(Unavailable) as caught, db.read() as session:
        session.execute(wait)
    assert caught.value.code == "database_unavailable"
    db.close()
    unbounded = Database(postgres_url, pool_size=1, bounded=False)
    with unbounded.read() as session:
        session.execute(wait)
    unbounded.close()


def test_an_outage_is_logged_once_and_so_is_its_end(
    tmp_path: Path,
    sqlite_url: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("INFO", session_module.log.name)
    monkeypatch.setattr(session_module, "SETTLED_SECONDS", 0.0)
    away = tmp_path / "away"
    db = Database(f"sqlite:///{away / 'rankwright.db'}", pool_size=1)
    for _ in range(3):
        with pytest.raises(Unavailable):
            register(db, "wrk_a")
        with pytest.raises(Unavailable), db.read() as session:
            session.execute(select(Worker))
    assert outages_in(caplog) == ["WARNING"]
    away.mkdir()
    shutil.copy(tmp_path / "rankwright.db", away)
    register(db, "wrk_a")
    db.reading(lambda session: session.scalar(select(1)))
    assert outages_in(caplog) == ["WARNING", "INFO"]
    db.close()
