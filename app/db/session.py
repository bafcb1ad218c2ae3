"""Sessions: one short transaction each, on SQLite and PostgreSQL alike."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker

from app.errors import Unavailable

SQLITE_BUSY_SECONDS = 10.0


class Database:
    """The door to SQL. `write()` and `read()` each span one transaction; nothing else opens one."""

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.url = make_url(url)
        if self.url.drivername in {"postgresql", "postgres"}:
            self.url = self.url.set(drivername="postgresql+psycopg")
        self.dialect = self.url.get_backend_name()
        self.engine = self._engine(pool_size)
        self._write = sessionmaker(self.engine, expire_on_commit=False)
        self._read = sessionmaker(
            self.engine.execution_options(read_only=True), expire_on_commit=False
        )

    def _engine(self, pool_size: int) -> Engine:
        if self.dialect == "sqlite":
            engine = create_engine(
                self.url,
                pool_size=pool_size,
                max_overflow=pool_size,
                connect_args={"timeout": SQLITE_BUSY_SECONDS, "check_same_thread": False},
            )
            event.listen(engine, "connect", _sqlite_connect)
            event.listen(engine, "begin", _sqlite_begin)
            return engine
        return create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 5},
        )

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One read-write transaction: commits at the end of the block, rolls back on any exception."""
        with _outages(), self._write() as session, session.begin():
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One read-only look. On SQLite it takes no lock that would hold up a writer."""
        with _outages(), self._read() as session, session.begin():
            yield session

    def close(self) -> None:
        """Give back every connection."""
        self.engine.dispose()


@contextmanager
def _outages() -> Iterator[None]:
    """Turn a database that is away, or locked beyond patience, into `Unavailable`: the caller may come back."""
    try:
        yield
    except PoolTimeout as error:
        raise Unavailable(
            "every database connection is in use", code="database_unavailable"
        ) from error
    except DBAPIError as error:
        if error.connection_invalidated or isinstance(
            error.orig, (sqlite3.OperationalError, psycopg.OperationalError)
        ):
            raise Unavailable("the database is away", code="database_unavailable") from error
        raise


def _sqlite_connect(connection: Any, _record: Any) -> None:
    # The driver must not open transactions by itself: `_sqlite_begin` says which kind each one is.
    connection.isolation_level = None
    _switch_to_wal(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _switch_to_wal(connection: Any) -> None:
    # The first connection to a new file switches it for good. SQLite's busy timeout does not cover the switch:
    # whoever opens the file at that moment is refused at once.
    deadline = time.monotonic() + SQLITE_BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _sqlite_begin(connection: Connection) -> None:
    # A deferred transaction that turns to writing later fails at once when another wrote meanwhile: writers
    # therefore queue at the start, where the busy timeout applies.
    read_only = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
