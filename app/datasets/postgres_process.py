"""The process that runs a query of PostgreSQL and writes its rows to a Parquet file.

Only a process can be killed: the client library waits without limit for a frozen server. It reads one line of JSON
(`Task`) from standard input, which may have a password, and writes lines of JSON to standard output: `{"bytes"}` while
it reads, and at the end `{"result"}` or `{"problem"}`. When its standard input is closed, because the job was cancelled
or the worker has died, it cancels the query.

All statements run in one read-only transaction with one snapshot. The rows come through a cursor: so only a single
SELECT can be run, its parameters are bound by the server, and memory is bounded by one batch.
"""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import date, datetime
from typing import Any, TypedDict

import adbc_driver_postgresql
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from adbc_driver_manager import AdbcConnection, AdbcStatement, AdbcStatusCode
from adbc_driver_manager import Error as DriverError
from psycopg.conninfo import make_conninfo

from app.datasets.postgres_types import convert, schema_of
from app.ingest.errors import BadTable
from app.ingest.rows import check_names
from app.platform.connections import BadUrl, check_database_url

CONNECT_SECONDS = 10
IDLE_SECONDS = 60
"""The server ends the session of a process that was stopped in the middle of a transaction after this time."""
SERVER_SECONDS = 10
"""The server ends a query this much later than the parent process, which names the limit."""
FIRST_ROWS, MAX_ROWS = 1_000, 65_536
MAX_GROWTH = 8
BATCH_BYTES = 16 << 20
"""A batch is read whole: the number of its rows follows from the size of the rows before."""
MEMORY_BYTES = 1 << 30
"""Memory that the process may take. Rows may suddenly be much longer than those before."""
EXIT_SECONDS = 1.0
"""Time for the server to cancel the query. Then the process ends anyway, which the server notices within a second."""

_INVALID = re.compile(r"invalid \w+ value|definition of service|could not match \d+ ")
"""What the client library says of a URL before it connects."""
MAX_SNAPSHOT = 1_000_000
"""Characters of a snapshot, which the dataset keeps: it names each transaction that is open."""
MAX_COLUMNS = 1_664  # of a SELECT of PostgreSQL: the reader of the dataset has a limit of its own

PRIVILEGES = (
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_create_subscription",
)
"""Predefined roles of PostgreSQL that can reach beyond the database, also in a read-only transaction."""

_ARROW: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}
_READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
# The names are qualified, because the role may have another search path.
_SETTINGS = """
SELECT pg_catalog.set_config(name, CASE name
    WHEN 'idle_in_transaction_session_timeout' THEN '{idle}s'
    WHEN 'client_connection_check_interval' THEN '1s'
    WHEN 'cursor_tuple_fraction' THEN '1'
    ELSE '{seconds}s' END, true)
FROM pg_catalog.pg_settings
WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout',
    'client_connection_check_interval', 'cursor_tuple_fraction')
    AND (name <> 'client_connection_check_interval' OR pg_catalog.version() LIKE '%linux%')
"""
_SNAPSHOT = """
SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text,
    extract(epoch FROM pg_catalog.now())::pg_catalog.float8
"""
_PRIVILEGED = """
SELECT r.rolname::pg_catalog.text, r.rolsuper, r.rolcreaterole, r.rolreplication, r.rolbypassrls,
    r.rolname OPERATOR(pg_catalog.=) session_user
FROM pg_catalog.pg_roles r
WHERE pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')
    AND (r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls OR r.rolname IN ({names}))
ORDER BY r.rolname OPERATOR(pg_catalog.=) session_user DESC, r.rolsuper DESC, r.rolname
LIMIT 1
"""
_WRITABLE = """
SELECT pg_catalog.format('%I.%I', n.nspname, c.relname)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f', 'v') AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
    AND pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
ORDER BY 1
LIMIT 1
"""
_CONDITIONS_OF_SERVER = ("08", "53", "57P", "40", "58")
"""The classes of SQLSTATE (or their beginnings) of a server that is away, full or shutting down."""


class Task(TypedDict):
    """What the process is to do. `file` is None for a check, which reads no row."""

    connection: str
    url: str
    query: str
    sql: str
    types: list[str]
    parameters: list[Any]
    seconds: float
    file: str | None


class _Problem(Exception):
    """Why the query cannot be run. `said` is the driver's message on a failed connection, for the parent process."""

    def __init__(self, code: str, detail: str, *, kind: str = "source", said: str = "") -> None:
        super().__init__(code)
        self.members = {"kind": kind, "code": code, "detail": detail, "said": said}


def main() -> None:
    """Do the task on standard input. An unexpected error is logged without its message, which may have values."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    task: Task = json.loads(sys.stdin.buffer.readline())
    try:
        _write_line({"result": _run(task)})
    except BadTable as error:
        table = {
            "kind": "table",
            "code": error.code,
            "detail": error.detail,
            "errors": error.errors,
        }
        _write_line({"problem": table})
    except _Problem as problem:
        _write_line({"problem": problem.members})
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            _write_line({"problem": {"kind": "full", "code": "out_of_space", "detail": ""}})
        else:
            frames = "".join(traceback.format_tb(error.__traceback__))
            sys.exit(f"{type(error).__name__} in the process of a query\n{frames}")


def _write_line(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _run(task: Task) -> dict[str, Any]:
    read = [0]  # rows
    try:
        with closing(_connect(task)) as connection:
            watcher = threading.Thread(target=_cancel_when_closed, args=(connection,), daemon=True)
            watcher.start()
            try:
                return _in_transaction(connection, task, read)
            finally:
                with suppress(DriverError):
                    connection.rollback()
    except MemoryError:
        raise _too_wide(task, read[0]) from None
    except DriverError as error:
        raise _problem_of(error, task, read[0]) from None


def _cancel_when_closed(connection: AdbcConnection) -> None:
    """Cancel the query when nobody waits for it any more, and end the process."""
    while os.read(
        sys.stdin.fileno(), 1
    ):  # not by the buffer, whose lock would outlive the main thread
        pass
    ending = threading.Timer(EXIT_SECONDS, os._exit, (1,))
    ending.daemon = True
    ending.start()
    with suppress(DriverError):
        connection.cancel()


def _connect(task: Task) -> AdbcConnection:
    try:
        check_database_url(task["url"])
    except BadUrl as error:
        raise _Problem(
            "source_misconfigured",
            f"connection {task['connection']}: the file with the URL of the database {error}",
        ) from None
    url = make_conninfo(
        task["url"], application_name="rankwright", connect_timeout=str(CONNECT_SECONDS)
    )
    try:
        return AdbcConnection(adbc_driver_postgresql.connect(url))
    except DriverError as error:
        if _INVALID.search(str(error)):
            raise _Problem(
                "source_misconfigured",
                f"connection {task['connection']}: a parameter in the URL of the database has no valid value",
            ) from None
        raise _Problem(
            "source_unreachable",
            f"connection {task['connection']}: the database cannot be reached",
            kind="away",
            said=str(error),
        ) from None


def _in_transaction(connection: AdbcConnection, task: Task, read: list[int]) -> dict[str, Any]:
    connection.set_autocommit(False)  # begins a transaction
    _rows(connection, _READ_ONLY)
    seconds = int(task["seconds"]) + SERVER_SECONDS
    _rows(connection, _SETTINGS.format(seconds=seconds, idle=IDLE_SECONDS))
    _check_privileges(connection, task)
    if task["file"] is None:
        writable = _rows(connection, _WRITABLE)
        _declare(connection, task)
        return {"writable": writable[0][0] if writable else None}
    snapshot, at = _rows(connection, _SNAPSHOT)[0]
    if len(snapshot) > MAX_SNAPSHOT:
        raise _Problem(
            "source_query_failed",
            f"connection {task['connection']}: the database has a snapshot of more than {MAX_SNAPSHOT} characters",
        )
    _declare(connection, task)
    return {**_write(connection, task, read), "snapshot": snapshot, "at": at}


@contextmanager
def _executed(
    connection: AdbcConnection, sql: str, bound: pa.RecordBatch | None = None
) -> Iterator[pa.RecordBatchReader]:
    with AdbcStatement(connection) as statement:
        # Otherwise the driver wraps each statement into a COPY, which FETCH does not allow.
        statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        statement.set_sql_query(sql)
        if bound is not None:
            schema, array = bound.__arrow_c_array__()
            statement.bind(array, schema)
        result, _ = statement.execute_query()
        with pa.RecordBatchReader.from_stream(result) as reader:
            yield reader


def _rows(connection: AdbcConnection, sql: str) -> list[tuple[Any, ...]]:
    with _executed(connection, sql) as reader:
        return [tuple(row.values()) for row in reader.read_all().to_pylist()]


def _check_privileges(connection: AdbcConnection, task: Task) -> None:
    """Raise _Problem for a role that can do more than read tables, even in a read-only transaction."""
    names = ", ".join(f"'{name}'" for name in PRIVILEGES)
    found = _rows(connection, _PRIVILEGED.format(names=names))
    if not found:
        return
    role, *flags, is_own = found[0]
    words = ("superuser", "CREATEROLE", "REPLICATION", "BYPASSRLS")
    has = [word for word, flag in zip(words, flags, strict=True) if flag] or [role]
    through = "" if is_own or has == [role] else f", through the role {role}"
    raise _Problem(
        "source_privileged",
        f"connection {task['connection']}: its role is privileged ({', '.join(has)}{through}): a read-only "
        "transaction does not restrict it. Use a role that can only read the tables of the queries",
    )


def _declare(connection: AdbcConnection, task: Task) -> None:
    """Without a file, the parameters are NULL."""
    values = task["parameters"] if task["file"] is not None else [None] * len(task["types"])
    bound = None
    if values:
        arrays = [
            pa.array([_value(type_, value)], _ARROW[type_])
            for type_, value in zip(task["types"], values, strict=True)
        ]
        bound = pa.record_batch(arrays, names=[str(number) for number, _ in enumerate(arrays, 1)])
    with _executed(connection, f"DECLARE rankwright NO SCROLL CURSOR FOR {task['sql']}", bound):
        pass


def _value(type_: str, value: Any) -> Any:
    """Return a parameter as Arrow takes it."""
    if value is None or type_ not in ("date", "timestamp"):
        return value
    return date.fromisoformat(value) if type_ == "date" else datetime.fromisoformat(value)


def _write(connection: AdbcConnection, task: Task, read: list[int]) -> dict[str, Any]:
    """Write all rows to the file; the result has their number."""
    rows = FIRST_ROWS
    file = task["file"] or ""
    writer: pq.ParquetWriter | None = None
    schema: pa.Schema | None = None
    try:
        while True:
            count = in_memory = 0
            with _executed(connection, f"FETCH FORWARD {rows} FROM rankwright") as reader:
                if schema is None:
                    check_names(reader.schema.names, MAX_COLUMNS, None)
                    schema = schema_of(reader.schema)
                for batch in reader:
                    if batch.num_rows == 0:
                        continue
                    count += batch.num_rows
                    in_memory += batch.nbytes
                    if writer is None:
                        writer = pq.ParquetWriter(file, schema, compression="zstd")
                    writer.write_batch(convert(batch, schema))
            read[0] += count
            _write_line({"bytes": os.path.getsize(file) if writer is not None else 0})
            if count < rows:
                break
            fitting = BATCH_BYTES * count // max(in_memory, 1)
            rows = max(1, min(MAX_ROWS, MAX_GROWTH * rows, fitting))
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise _Problem("source_empty", f"the query {task['query']} has no rows")
    return {"rows": read[0]}


def _problem_of(error: DriverError, task: Task, rows: int) -> _Problem:
    """The driver's message may have values of rows, or the URL."""
    state = error.sqlstate
    if state is None and "out of memory" in str(error):
        return _too_wide(task, rows)
    where = f"connection {task['connection']}: the database"
    if state is None and error.status_code == AdbcStatusCode.IO:
        return _Problem("source_unreachable", f"{where} was lost after {rows} rows", kind="away")
    if state is None:
        what = f"the driver reports {error.status_code.name}"
        return _Problem(
            "source_query_failed", f"{where} cannot run the query {task['query']}: {what}"
        )
    name = _condition(state)
    shown = f"{name} (SQLSTATE {state})"
    query = f"the query {task['query']}"
    if state.startswith(_CONDITIONS_OF_SERVER) and state != "08P01":
        return _Problem("source_unreachable", f"{where} has ended {query}: {shown}", kind="away")
    if state in ("42501", "28000", "28P01"):
        return _Problem("source_forbidden", f"{where} does not permit {query}: {shown}")
    if state in ("42P01", "3F000"):
        return _Problem("source_not_found", f"{query} names a table that does not exist: {shown}")
    return _Problem("source_query_failed", f"{where} cannot run {query}: {shown}")


def _too_wide(task: Task, rows: int) -> _Problem:
    return _Problem(
        "source_too_large",
        f"the query {task['query']} has rows that are too long for {MEMORY_BYTES >> 20} MiB of memory, after {rows} "
        "rows: leave out the longest columns, or shorten them in the query",
    )


def _condition(state: str) -> str:
    """Return PostgreSQL's name of an SQLSTATE."""
    try:
        return psycopg.errors.lookup(state).__name__
    except KeyError:
        return "an error"


if __name__ == "__main__":
    main()
