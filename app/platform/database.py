"""Sessions: one short transaction each, on SQLite and PostgreSQL alike."""

from __future__ import annotations

import logging
import os
import re
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import orjson
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker

from app.platform import audit
from app.platform.errors import Deadlock, OutOfSpace, Refused, Unavailable
from app.platform.sql import MACHINE_CLOCK

log = logging.getLogger(__name__)

SQLITE_BUSY_SECONDS = 10.0
POOL_SECONDS = 10.0
IDLE_SECONDS = 60
DEADLOCK_PAUSES = (0.05, 0.25)
_READ_ONLY = {"sqlite": {"read_only": True}, "postgresql": {"postgresql_readonly": True}}
_PRIMARY = 0xFF  # the bits of an error code of SQLite that say which, not why
# Reasons for which waiting for a file does not help.
_USELESS_FILE = {
    sqlite3.SQLITE_READONLY: "cannot be written",
    sqlite3.SQLITE_PERM: "may not be opened by this user",
    sqlite3.SQLITE_CANTOPEN: "may not be opened by this user",
    sqlite3.SQLITE_NOTADB: "is not a database of SQLite",
}
# Before a connection is made PostgreSQL's client gives no code, only words. A server that says them in another
# language counts as away.
_USELESS_LOGIN = re.compile(
    r"authentication failed|password supplied|authentication method|does not exist|no pg_hba\.conf entry"
    r"|permission denied for database|not permitted to log in|not currently accepting connections"
    r"|does not support SSL|certificate"
)
# Names of hosts, users and databases, which may be like any of these words. Not the apostrophe within a word.
_QUOTED = re.compile(r""" "[^"]*" | (?<!\w)'[^']*' """, re.VERBOSE)

P = ParamSpec("P")
Result = TypeVar("Result")


class Database:
    """The database. Transactions are opened here, at the edge of the service, and nowhere else.

    `reading` and `writing` run a function that takes a session; `read` and `write` do the same for a block.
    """

    def __init__(self, url: str, *, pool_size: int = 10) -> None:
        self.url = make_url(url)
        if self.url.drivername in {"postgresql", "postgres"}:
            self.url = self.url.set(drivername="postgresql+psycopg")
        self.dialect = self.url.get_backend_name()
        self.engine = self._engine(pool_size)
        self._turn = _WriteLock() if self.dialect == "sqlite" else nullcontext()
        self._thread = threading.local()
        self._write = sessionmaker(self.engine, expire_on_commit=False)
        audit.watch(self._write)
        self._read = sessionmaker(
            self.engine.execution_options(**_READ_ONLY[self.dialect]), expire_on_commit=False
        )

    def _engine(self, pool_size: int) -> Engine:
        common: dict[str, Any] = {
            "pool_size": pool_size,
            "max_overflow": pool_size,
            "pool_timeout": POOL_SECONDS,
            "json_serializer": _to_json,
            "json_deserializer": orjson.loads,
        }
        if self.dialect == "sqlite":
            engine = create_engine(
                self.url,
                **common,
                connect_args={"timeout": SQLITE_BUSY_SECONDS, "check_same_thread": False},
            )
            event.listen(engine, "connect", _sqlite_connect)
            event.listen(engine, "begin", _sqlite_begin)
            return engine
        engine = create_engine(
            self.url,
            **common,
            pool_pre_ping=True,
            # A server that vanished without a word must not hold a heartbeat for the hours TCP would.
            connect_args={
                "connect_timeout": 5,
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 20_000,
                "application_name": "rankwright",
                "client_encoding": "UTF8",  # whatever PGCLIENTENCODING, the role or the database would have
            },
        )
        event.listen(engine, "connect", _postgres_connect)
        return engine

    def reading(
        self, work: Callable[Concatenate[Session, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        """Run `work` in one transaction that may not write."""
        with self.read() as session:
            return work(session, *args, **kwargs)

    def writing(
        self, work: Callable[Concatenate[Session, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        """Run `work` in one transaction, which is rolled back if it raises.

        After a deadlock it runs again from the beginning. So outside the session it may only change what can be done
        twice.
        """
        for pause in DEADLOCK_PAUSES:
            try:
                with self.write() as session:
                    return work(session, *args, **kwargs)
            except Deadlock as error:
                # PostgreSQL's own words: SQLAlchemy's have the statement's values, which are the callers'.
                reason = getattr(error.__cause__, "orig", error)
                log.warning("%s is tried again: %s", getattr(work, "__qualname__", "it"), reason)
            # PostgreSQL takes a moment to wake the other transaction: a faster one takes the lock again.
            time.sleep(pause)
        with self.write() as session:
            return work(session, *args, **kwargs)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a read-write transaction: commits at the end of the block, rolls back on any exception."""
        if getattr(self._thread, "writes", False):
            raise RuntimeError("this thread is already in a write transaction: pass its session on")
        self._thread.writes = True
        try:
            with self._outages(), self._turn, self._write() as session, session.begin():
                yield session
        finally:
            self._thread.writes = False

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a read-only transaction: the database refuses changes. It never blocks a writer."""
        with self._outages(read_only=True), self._read() as session, session.begin():
            yield session

    @contextmanager
    def _outages(self, *, read_only: bool = False) -> Iterator[None]:
        """Raise Unavailable for a database that is away, full or locked, and for a deadlock: the caller may try
        again.

        Refused, a subclass, says that waiting is of no use.
        """
        try:
            yield
        except PoolTimeout as error:
            raise Unavailable(
                "all database connections are in use", code="database_unavailable"
            ) from error
        except DBAPIError as error:
            if _no_tables(error.orig):
                raise Unavailable(
                    "the database has no tables: run `rankwright migrate`",
                    code="database_not_migrated",
                ) from error
            if _is_full(error.orig):
                raise OutOfSpace("the database's disk is full", retry_after=60) from error
            if _is_postgres(error.orig, "DeadlockDetected"):
                raise Deadlock("another transaction changed the same rows: try again") from error
            if _is_locked(error.orig):
                raise Unavailable("the database is locked", code="database_unavailable") from error
            if read_only and _is_a_change(error.orig):
                raise  # our own error, like one in our SQL
            if (reason := self.refusal(error)) is not None:
                raise Refused(reason) from error
            if error.connection_invalidated or _is_outage(error.orig):
                raise Unavailable(
                    "the database is unavailable", code="database_unavailable"
                ) from error
            raise

    def refusal(self, error: DBAPIError) -> str | None:
        """Return why the database refuses this service permanently; None for a passing error."""
        return _refusal(error.orig, self.url.database)

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


class _WriteLock:
    """Queue the writers of one process on SQLite.

    SQLite itself lets them poll for its lock, up to a tenth of a second apart and in no order: of 16 threads that
    submitted at once the last waited 3.7 s; with this queue 0.5 s.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=SQLITE_BUSY_SECONDS):
            raise Unavailable("the database is locked", code="database_unavailable")

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _no_tables(error: BaseException | None) -> bool:
    return _is_postgres(error, "UndefinedTable") or (
        isinstance(error, sqlite3.OperationalError) and str(error).startswith("no such table")
    )


def _is_full(error: BaseException | None) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        return error.sqlite_errorcode == sqlite3.SQLITE_FULL
    return _is_postgres(error, "DiskFull")


def _is_locked(error: BaseException | None) -> bool:
    return (
        isinstance(error, sqlite3.OperationalError)
        and error.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_BUSY
    )


def _is_a_change(error: BaseException | None) -> bool:
    # PostgreSQL's is no outage by its class. SQLite's has further bits where it is the file that is read-only.
    return (
        isinstance(error, sqlite3.OperationalError)
        and error.sqlite_errorcode == sqlite3.SQLITE_READONLY
    )


def _is_outage(error: BaseException | None) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        # SQLITE_ERROR is a fault in our SQL; the others are disks and files.
        return error.sqlite_errorcode != sqlite3.SQLITE_ERROR
    return _is_postgres(error, "OperationalError")


def _is_postgres(error: BaseException | None, name: str) -> bool:
    """Return True for this error of psycopg. A process on SQLite has not imported psycopg."""
    psycopg = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, getattr(psycopg.errors, name))


def _refusal(error: BaseException | None, database: str | None) -> str | None:
    if isinstance(error, sqlite3.DatabaseError):
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        # It may also be a full disk, or a folder that will exist in a moment.
        if code == sqlite3.SQLITE_CANTOPEN and database and _may_open(Path(database)):
            return None
        why = _USELESS_FILE.get(code)
        return None if why is None else f"the file {database} {why}"
    if not _is_postgres(error, "OperationalError") or getattr(error, "sqlstate", None) is not None:
        return None
    return describe_refusal(str(error))


def _may_open(file: Path) -> bool:
    """Return True if this user may read and write the file and its folder, or if the folder does not exist yet."""
    if not os.path.exists(file):
        return not os.path.isdir(file.parent) or os.access(file.parent, os.W_OK | os.X_OK)
    return os.access(file.parent, os.W_OK | os.X_OK) and os.access(file, os.R_OK | os.W_OK)


def describe_refusal(said: str) -> str | None:
    """Return the client's message about an error that waiting does not mend: a line that names user and host; else
    None.
    """
    lines = (line.strip().removeprefix("connection failed: ") for line in said.splitlines())
    return next((line for line in lines if _USELESS_LOGIN.search(_QUOTED.sub("…", line))), None)


def _to_json(value: Any) -> str:
    # NaN and infinity become null, which PostgreSQL can store and every reader can read.
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _postgres_connect(connection: Any, _record: Any) -> None:
    # Reported at the start of every connection, so it costs no query. In another encoding the driver would return bytes
    # for text, or PostgreSQL would refuse names that callers may choose.
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        connection.close()
        raise Refused(
            f"its encoding must be UTF8, got {encoding}: "
            "make one with CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8'"
        )
    # A process that stands still in the middle of a transaction keeps its locks, and its connection is well: after a
    # while the server ends it. Our transactions are short, and none of them waits for anything but the database.
    connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'")
    connection.commit()


def _sqlite_connect(connection: Any, _record: Any) -> None:
    # The driver must not open transactions by itself: `_sqlite_begin` says which kind each one is.
    connection.isolation_level = None
    _switch_to_wal(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.create_function(MACHINE_CLOCK, 0, time.monotonic)


def _switch_to_wal(connection: Any) -> None:
    # The first connection to a new file switches it for good. SQLite's busy timeout does not cover the switch:
    # whoever opens the file at that moment is refused at once.
    deadline = time.monotonic() + SQLITE_BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if not _is_locked(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _sqlite_begin(connection: Connection) -> None:
    # A deferred transaction that turns to writing later fails at once when another wrote meanwhile: writers
    # therefore queue at the start, where the busy timeout applies.
    read_only = connection.get_execution_options().get("read_only", False)
    if connection.info.get("read_only") != read_only:  # as its last transaction left it
        connection.exec_driver_sql(f"PRAGMA query_only = {read_only:d}")
        connection.info["read_only"] = read_only
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
