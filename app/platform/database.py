"""Sessions with one short transaction each, on SQLite and PostgreSQL."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import orjson
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import Connection, ExceptionContext, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session, sessionmaker

from app.platform import audit, tracing
from app.platform.errors import Deadlock, OutOfSpace, Refused, Unavailable
from app.platform.host_tokens import HostTokens
from app.platform.login_errors import describe_refusal
from app.platform.settings import Settings
from app.platform.sql import MACHINE_CLOCK

log = logging.getLogger(__name__)

SQLITE_BUSY_SECONDS = 10.0
POOL_SECONDS = 10.0
IDLE_SECONDS = 60
DEADLOCK_PAUSES = (0.05, 0.25)
_PRIMARY = 0xFF  # the bits of SQLite's error code with the primary code, without the reason
# Reasons for which waiting for a file does not help.
_USELESS_FILE = {
    sqlite3.SQLITE_READONLY: "cannot be written",
    sqlite3.SQLITE_PERM: "cannot be opened by this user",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened by this user",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database",
}
P = ParamSpec("P")
Result = TypeVar("Result")


class Database:
    """A database and its transactions. Transactions are opened only here, at the edge of the service.

    `reading` and `writing` run a function that takes a session; `read` and `write` do the same for a block.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        bounded: bool = True,
        tokens: HostTokens | None = None,
        password_file: Path | None = None,
    ) -> None:
        """`bounded` limits PostgreSQL's statements; migrations may take hours. `tokens`: replaced after changes.
        `password_file` is read for each connection, so that a new password needs no restart.
        """
        self.url = make_url(url)
        self._password_file = password_file
        if self.url.drivername in {"postgresql", "postgres"}:
            self.url = self.url.set(drivername="postgresql+psycopg")
        self.dialect = self.url.get_backend_name()
        self.engine = self._engine(pool_size, bounded=bounded)
        self._log = OutageLog()
        self._turn = _WriteLock() if self.dialect == "sqlite" else nullcontext()
        self._thread = threading.local()
        self._write = sessionmaker(self.engine, expire_on_commit=False)
        audit.watch(self._write)
        self.tokens = tokens or HostTokens.of(None)
        self.tokens.watch(self._write)
        self._read = sessionmaker(
            self.engine.execution_options(read_only=True), expire_on_commit=False
        )

    def _engine(self, pool_size: int, *, bounded: bool) -> Engine:
        """`bounded` limits the duration of PostgreSQL's statements."""
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
            # A server that vanished silently must not block a heartbeat for the hours that TCP would wait.
            connect_args={
                "connect_timeout": 5,
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 20_000,
                "application_name": "rankwright",
                # overrides PGCLIENTENCODING and the settings of role and database
                "client_encoding": "UTF8",
            },
        )
        event.listen(engine, "connect", _postgres_connect)
        event.listen(engine, "begin", _postgres_begin)
        event.listen(engine, "handle_error", _leave_standby)
        if self._password_file is not None:
            event.listen(engine, "do_connect", self._read_password)
        if bounded:
            event.listen(engine, "do_connect", _connect_bounded)
        return engine

    def _read_password(
        self, _dialect: Any, _record: Any, _given: Any, named: dict[str, Any]
    ) -> None:
        """A file that cannot be read now leaves the password of the start."""
        assert self._password_file is not None
        with suppress(OSError):
            named["password"] = self._password_file.read_text(encoding="utf-8").rstrip("\r\n")

    def reading(
        self, work: Callable[Concatenate[Session, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        """Run `work` in a read-only transaction."""
        with tracing.transaction(work), self.read() as session:
            return work(session, *args, **kwargs)

    def writing(
        self, work: Callable[Concatenate[Session, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result:
        """Run `work` in one transaction, which is rolled back if it raises, and return its result.

        After a deadlock it runs again from the beginning. So its changes outside the session must be idempotent.
        """
        for pause in DEADLOCK_PAUSES:
            try:
                with tracing.transaction(work), self.write() as session:
                    return work(session, *args, **kwargs)
            except Deadlock as error:
                # PostgreSQL's own message: SQLAlchemy's message contains the statement's values, which come from
                # callers.
                reason = getattr(error.__cause__, "orig", error)
                log.warning("retrying %s: %s", getattr(work, "__qualname__", "it"), reason)
            # PostgreSQL takes a moment to wake the other transaction: without a pause this one would take the lock
            # again.
            time.sleep(pause)
        with tracing.transaction(work), self.write() as session:
            return work(session, *args, **kwargs)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Commit at the end of the block, roll back on any exception."""
        if getattr(self._thread, "writes", False):
            raise RuntimeError("this thread is already in a write transaction: pass its session on")
        quota_check = audit.prepare_quota_check()  # it reads: before this takes a lock or a turn
        self._thread.writes = True
        try:
            with self._outages(), self._turn, self._write() as session:
                try:
                    with session.begin():
                        audit.require_quota_check(session, quota_check)
                        yield session
                finally:
                    # Also if COMMIT failed: the server may have committed.
                    self.tokens.replace(session)
        finally:
            self._thread.writes = False

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Read one snapshot; changes are refused. It never blocks a writer."""
        with self._outages(read_only=True), self._read() as session, session.begin():
            yield session

    @contextmanager
    def _outages(self, *, read_only: bool = False) -> Iterator[None]:
        """Convert the driver's outages and deadlocks to Unavailable: the caller may try again.

        Log the begin and the end of an outage once. Refused, a subclass, means that waiting does not help.
        """
        try:
            yield
        except PoolTimeout as error:
            raise Unavailable(
                "all database connections are in use", code="database_unavailable"
            ) from error
        except DBAPIError as error:
            found = self._unavailable(error, read_only=read_only)
            if found is None:
                raise
            if not isinstance(found, Deadlock):
                self._log.note(found, error, of_reads=read_only)
            raise found from error
        except Unavailable as error:  # the connection was refused, or the writer got no turn
            if isinstance(error, Refused):
                self._log.note(error, error, of_reads=read_only)
            raise
        self._log.end(of_reads=read_only)

    def _unavailable(self, error: DBAPIError, *, read_only: bool) -> Unavailable | None:
        """Return None for an error in our SQL."""
        if _no_tables(error.orig):
            return Unavailable(
                "the database has no tables: run `rankwright migrate`", code="database_not_migrated"
            )
        if _is_full(error.orig):
            return OutOfSpace("the database's disk is full", retry_after=60)
        if _is_postgres(error.orig, "DeadlockDetected"):
            return Deadlock("another transaction changed the same rows: try again")
        if _is_locked(error.orig):
            return Unavailable("the database is locked", code="database_unavailable")
        if _is_a_change(error.orig):
            # In a read-only transaction this is an error in our SQL. Otherwise PostgreSQL is a standby server.
            if read_only:
                return None
            if self.dialect == "postgresql":
                return Unavailable(
                    "the database is read-only: it is a standby, or configured to be read-only",
                    code="database_unavailable",
                )
        if (reason := self.refusal(error)) is not None:
            return Refused(reason)
        if error.connection_invalidated or _is_outage(error.orig):
            return Unavailable("the database is unavailable", code="database_unavailable")
        return None

    def refusal(self, error: DBAPIError) -> str | None:
        """Return why the database permanently refuses this service; None for a temporary error."""
        return _refusal(error.orig, self.url.database)

    def check_changes(self) -> None:
        """Raise Unavailable for a standby, or a file without write permission."""
        if self.dialect == "postgresql":
            self.writing(change_nothing)
            return
        # Without a transaction: another writer may hold the lock for seconds although the file is healthy.
        file = Path(self.url.database or "")
        if not (os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK | os.X_OK)):
            raise Refused(f"the file {file} cannot be written")

    def apart(self) -> Database:
        """Use a connection of its own. Only one of the two logs an outage."""
        url = self.url.render_as_string(hide_password=False)
        other = Database(url, pool_size=1, password_file=self._password_file)
        other._log = self._log
        return other

    def connections_in_use(self) -> int:
        """Never waits."""
        pool: Any = self.engine.pool  # one that counts, as `_engine` sets sizes
        return int(pool.checkedout())

    def close(self) -> None:
        self.engine.dispose()
        for token in self.tokens:
            token.close()


def open_database(settings: Settings) -> Database:
    tokens = HostTokens.of(settings.state_dir)
    return Database(
        settings.sqlalchemy_url,
        pool_size=settings.database_pool,
        tokens=tokens,
        password_file=settings.database_password_file,
    )


def change_nothing(session: Session) -> None:
    """A read-only database refuses this update, too."""
    session.execute(text("DELETE FROM alembic_version WHERE 1 = 0"))


SETTLED_SECONDS = 5.0
"""Seconds without a failure after which an outage has ended. While connections are exhausted, some transactions succeed
between those that fail.
"""


class OutageLog:
    """Logs an outage and its end once."""

    def __init__(self) -> None:
        self._detail: str | None = None
        self._of_reads = False
        self._failed_at = 0.0

    def note(self, found: Unavailable, error: BaseException, *, of_reads: bool) -> None:
        """`of_reads`: the failed transaction was read-only."""
        if self._detail != found.detail:
            cause = getattr(error, "orig", error)
            log.warning("%s: %s", found.detail, str(cause).strip().partition("\n")[0])
        self._detail, self._of_reads = found.detail, of_reads
        self._failed_at = time.monotonic()

    def end(self, *, of_reads: bool) -> None:
        """A successful reader does not end an outage of writers."""
        if self._detail is None or (of_reads and not self._of_reads):
            return
        if time.monotonic() - self._failed_at >= SETTLED_SECONDS:
            self._detail = None
            log.info("the database is available again")


class _WriteLock:
    """A lock for which the writers of one process queue, on SQLite.

    SQLite's own writers poll for the lock, up to a tenth of a second apart and in no order. When 16 threads submitted
    at once, the last one waited 3.7 s; with this queue it waits 0.5 s.
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
    """A read-only database refused a change."""
    # SQLite's code has further bits if the file itself is read-only.
    return _is_postgres(error, "ReadOnlySqlTransaction") or (
        isinstance(error, sqlite3.OperationalError)
        and error.sqlite_errorcode == sqlite3.SQLITE_READONLY
    )


def _is_outage(error: BaseException | None) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        # SQLITE_ERROR is an error in our SQL; the other codes concern disks and files.
        return error.sqlite_errorcode != sqlite3.SQLITE_ERROR
    return _is_postgres(error, "OperationalError")


def _is_postgres(error: BaseException | None, name: str) -> bool:
    """Compare by name: a process on SQLite has not imported psycopg."""
    psycopg = sys.modules.get("psycopg")
    return psycopg is not None and isinstance(error, getattr(psycopg.errors, name))


def _refusal(error: BaseException | None, database: str | None) -> str | None:
    """Return why an error is permanent: a useless file, or a refused login."""
    if isinstance(error, sqlite3.DatabaseError):
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        # The cause may also be a full disk, or a folder that is about to be created.
        if code == sqlite3.SQLITE_CANTOPEN and database and _may_open(Path(database)):
            return None
        why = _USELESS_FILE.get(code)
        return None if why is None else f"the file {database} {why}"
    if not _is_postgres(error, "OperationalError") or getattr(error, "sqlstate", None) is not None:
        return None
    return describe_refusal(str(error))


def _may_open(file: Path) -> bool:
    """True also if the folder does not exist yet."""
    if not os.path.exists(file):
        return not os.path.isdir(file.parent) or os.access(file.parent, os.W_OK | os.X_OK)
    return os.access(file.parent, os.W_OK | os.X_OK) and os.access(file, os.R_OK | os.W_OK)


def _to_json(value: Any) -> str:
    # NaN and infinity become null, which PostgreSQL can store and every reader can read.
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


def _connect_bounded(_dialect: Any, _record: Any, given: Any, named: dict[str, Any]) -> Any:
    """Set a statement timeout."""
    from app.platform.postgres import STATEMENT_SECONDS, BoundedConnection

    connection = BoundedConnection.connect(*given, **named)
    connection.execute(f"SET statement_timeout = '{STATEMENT_SECONDS:g}s'")
    connection.commit()
    return connection


def _leave_standby(context: ExceptionContext) -> None:
    """Close all connections if one leads to a standby: of several hosts, another may be the primary now."""
    connection = context.connection
    if connection is not None and _is_postgres(
        context.original_exception, "ReadOnlySqlTransaction"
    ):
        context.is_disconnect = context.is_disconnect or not _is_read_only(connection)


def _postgres_connect(connection: Any, _record: Any) -> None:
    # The server reports it at the start of every connection, so it costs no query. With another encoding the driver
    # would return bytes for text, or PostgreSQL would refuse names that callers may choose.
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        connection.close()
        raise Refused(
            f"its encoding must be UTF8, got {encoding}: create it with CREATE DATABASE … TEMPLATE "
            "template0 ENCODING 'UTF8'"
        )
    # A process that is stopped in the middle of a transaction keeps its locks, and its connection looks healthy. So the
    # server ends the connection after a while. Our transactions are short, and wait for nothing but the database.
    connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'")
    connection.commit()


def _postgres_begin(connection: Connection) -> None:
    """Set mode and isolation level before the transaction begins."""
    from psycopg import IsolationLevel

    # None, not False: False would try to make a standby or a read-only database writable.
    driver: Any = connection.connection.driver_connection
    read_only = _is_read_only(connection)
    driver.read_only = True if read_only else None
    # One snapshot for all queries of a reader, as SQLite has it: otherwise an answer of several queries mixes what was
    # there before another transaction with what is there after it. Without writes it cannot fail to serialize.
    driver.isolation_level = IsolationLevel.REPEATABLE_READ if read_only else None


def _is_read_only(connection: Connection) -> bool:
    return bool(connection.get_execution_options().get("read_only", False))


def _sqlite_connect(connection: Any, _record: Any) -> None:
    # The driver must not open transactions by itself: `_sqlite_begin` says which kind each one is.
    connection.isolation_level = None
    _switch_to_wal(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.create_function(MACHINE_CLOCK, 0, time.monotonic)


def _switch_to_wal(connection: Any) -> None:
    """Wait while the file is locked."""
    # The first connection to a new file switches it for good. SQLite's busy timeout does not cover the switch:
    # a process that opens the file at that moment is refused at once.
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
    """Use the mode of the session."""
    # A deferred transaction that turns to writing later fails at once when another wrote meanwhile: writers
    # therefore queue at the start, where the busy timeout applies.
    read_only = _is_read_only(connection)
    # the mode of the connection's last transaction
    if connection.info.get("read_only") != read_only:
        connection.exec_driver_sql(f"PRAGMA query_only = {read_only:d}")
        connection.info["read_only"] = read_only
    connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
