"""Sessions: whole transactions, and outages that say what they are."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from app.db import session as session_module
from app.db import workers
from app.db.session import Database
from app.db.tables import Idempotency, Worker
from app.errors import OutOfSpace, Unavailable


def hello(db: Database, worker_id: str) -> None:
    with db.write() as session:
        workers.hello(session, worker_id, host="h", version="1", slots=1)


def test_a_block_that_raises_leaves_nothing(db: Database) -> None:
    def fail() -> None:
        with db.write() as session:
            workers.hello(session, "wrk_a", host="h", version="1", slots=1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with db.read() as session:
        assert session.scalars(select(Worker)).all() == []


def test_what_is_not_a_number_is_stored_as_null(db: Database) -> None:
    with db.write() as session:
        session.add(
            Idempotency(
                owner="o",
                route="r",
                key="k",
                fingerprint="f",
                status_code=200,
                response={"auc": float("nan"), "threshold": float("inf"), "1": [0.5]},
                created_at=1.5,
            )
        )
    with db.read() as session:
        kept = session.scalars(select(Idempotency.response)).one()
    assert kept == {"auc": None, "threshold": None, "1": [0.5]}


def test_a_database_without_its_tables_says_so(db: Database) -> None:
    with pytest.raises(Unavailable, match="rankwright migrate") as caught, db.read() as session:
        session.execute(text("SELECT id FROM jobs_of_a_later_version"))
    assert caught.value.code == "database_not_migrated"


def test_a_fault_in_our_sql_is_not_an_outage(db: Database) -> None:
    with pytest.raises((OperationalError, ProgrammingError)), db.read() as session:
        session.execute(text("SELECT nothing FROM jobs"))


def test_a_database_that_is_away(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path / 'no' / 'folder.db'}", f"postgresql:///x?host={tmp_path}"):
        with pytest.raises(Unavailable, match="the database is away") as caught:
            hello(Database(url), "wrk_a")
        assert caught.value.code == "database_unavailable"


def test_a_full_disk(sqlite_url: str) -> None:
    db = Database(sqlite_url, pool_size=1)
    with db.read() as session:  # no page more than there are
        pages = session.execute(text("PRAGMA page_count")).scalar_one()
        session.execute(text(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(OutOfSpace, match="the database's disk is full") as caught:
        hello(db, "wrk_" + "a" * 100_000)
    assert (caught.value.status, caught.value.code) == (507, "out_of_space")
    with db.read() as session:
        assert session.scalars(select(Worker)).all() == []
    db.close()


def test_a_full_disk_of_postgresql(postgres_url: str) -> None:
    db = Database(postgres_url)
    with pytest.raises(OutOfSpace, match="full"), db.write() as session:
        session.execute(text("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$"))
    db.close()


def test_a_lock_beyond_patience(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "SQLITE_BUSY_SECONDS", 0.05)
    first, second = Database(sqlite_url), Database(sqlite_url)
    with first.write() as session:
        session.execute(text("SELECT 1"))
        for other in (first, second):  # the same process's turn, and another process's lock
            with pytest.raises(Unavailable, match="the database is"):
                hello(other, "wrk_b")
        with second.read() as reader:  # a writer holds up no reader
            assert reader.scalars(select(Worker)).all() == []
    hello(second, "wrk_b")


def test_more_threads_than_connections(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "POOL_SECONDS", 0.05)
    small = Database(db.url.render_as_string(hide_password=False), pool_size=1)
    both_hold, done = threading.Barrier(3), threading.Event()

    def hold() -> None:
        with small.read() as session:
            session.execute(text("SELECT 1"))
            both_hold.wait(30)
            done.wait(30)

    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    both_hold.wait(30)
    with (
        pytest.raises(Unavailable, match="every database connection is in use"),
        small.read() as session,
    ):
        session.execute(text("SELECT 1"))
    done.set()
    for thread in threads:
        thread.join(30)
    small.close()


def test_writers_of_one_process_all_get_their_turn(db: Database) -> None:
    threads = [threading.Thread(target=hello, args=(db, f"wrk_{n:02}")) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with db.read() as session:
        assert len(session.scalars(select(Worker)).all()) == 16
