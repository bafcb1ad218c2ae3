"""Queries of PostgreSQL as sources of datasets: runs the process that reads the rows, within time and size limits.

The driver is optional (`pip install rankwright-server[postgresql]`), and only that process imports it.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import selectors
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn

from app.ingest.errors import BadTable
from app.jobs.fetching import Fetching, SourceError
from app.platform.errors import Unavailable
from app.platform.login_errors import describe_refusal
from app.platform.processes import child_environment, describe_exit, python_command
from app.platform.sql import Json

EXTRA = "postgresql"
"""The optional dependencies with the driver."""
POLL_SECONDS = 0.1
STOP_SECONDS = 3.0
"""Time for the process to cancel its query; then it is killed."""
DRIVER = "adbc_driver_postgresql"


@dataclass(frozen=True)
class Query:
    """A query that the operator has named, with the values of a caller. `url` has the password."""

    connection: str
    """The name of the connection."""
    name: str
    url: str = field(repr=False)
    sql: str = field(repr=False)
    types: Mapping[str, str]
    """The type of each parameter (a key of `query_parameters.TYPES`). The first is $1 in the SQL."""
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class QueryRows:
    """The rows that were written, and the state of the database in which the query has seen them."""

    rows: int
    snapshot: str
    """PostgreSQL's `pg_current_snapshot()`: which transactions were visible."""
    at: float
    """The time of the snapshot by the database's clock."""


def read_query(query: Query, file: Path, fetching: Fetching) -> QueryRows:
    """Run a query and write its rows to a Parquet file, in bounded memory.

    Raises BadTable for columns that no dataset can have, Unavailable if the database is away (a repetition may help),
    SourceError for everything else, and FetchStopped. No message has the URL or values of rows.
    """
    found = _run(query, file, fetching)
    return QueryRows(found["rows"], found["snapshot"], found["at"])


def check_query(query: Query, fetching: Fetching) -> str | None:
    """Check the login, the role's privileges, and the SQL, with NULL for each parameter. No row is read.

    Returns a table that the role could change; None if there is none. Raises as `read_query` does.
    """
    writable: str | None = _run(query, None, fetching)["writable"]
    return writable


def _run(query: Query, file: Path | None, fetching: Fetching) -> Json:
    if importlib.util.find_spec(DRIVER) is None:
        raise SourceError(
            "source_driver_missing",
            f"connection {query.connection}: this installation has no driver for PostgreSQL; run pip install "
            f"'rankwright-server[{EXTRA}]'",
        )
    task = {
        "connection": query.connection,
        "url": query.url,
        "query": query.name,
        "sql": query.sql,
        "types": list(query.types.values()),
        "parameters": [query.parameters.get(name) for name in query.types],
        "seconds": fetching.seconds_left,
        "file": None if file is None else str(file),
    }
    process = subprocess.Popen(
        python_command("app.datasets.postgres_process"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
        process_group=0,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(task).encode() + b"\n")
        process.stdin.flush()
        for message in _messages(process.stdout):
            if message is None:
                fetching.check()
            elif "result" in message:
                result: Json = message["result"]
                return result
            elif "problem" in message:
                _raise(query.connection, message["problem"])
            else:
                fetching.check_size(message["bytes"])
                fetching.report(message["bytes"])
    finally:
        _end(process)
    raise RuntimeError(f"the process of a query {describe_exit(process.returncode)}")


def _environment() -> dict[str, str]:
    """Hide what is meant for the service's own database, such as PGPASSWORD or ~/.pgpass, from the client library."""
    kept = {
        name: value
        for name, value in child_environment().items()
        if not name.startswith(("PG", "RANKWRIGHT_"))
    }
    return kept | {"PGPASSFILE": f"{os.devnull}/none"}  # it warns of a file that is not plain


def _messages(stream: IO[bytes]) -> Iterator[Json | None]:
    """Yield the lines of a process, and None at least each `POLL_SECONDS`."""
    os.set_blocking(stream.fileno(), False)
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            yield None
            if not selector.select(POLL_SECONDS):
                continue
            found = os.read(stream.fileno(), 1 << 16)
            if not found:
                return
            *lines, pending = (pending + found).split(b"\n")
            yield from map(json.loads, lines)


def _raise(connection: str, problem: Mapping[str, Any]) -> NoReturn:
    detail, code = problem["detail"], problem["code"]
    if problem["kind"] == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if (
        describe_refusal(problem.get("said", "")) is not None
    ):  # it may name user and host: not for callers
        raise SourceError(
            "source_forbidden",
            f"connection {connection}: the database refuses the login; check the user, the password and the name of "
            "the database",
        )
    if problem["kind"] == "away":
        raise Unavailable(detail, code=code)
    if problem["kind"] == "source":
        raise SourceError(code, detail)
    error = BadTable(detail, code=code)
    error.errors = problem["errors"]
    error.total = len(error.errors)
    raise error


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the process's standard input: it then cancels its query."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
