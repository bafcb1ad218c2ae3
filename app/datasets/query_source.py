"""Rows of a query as the source of a dataset. The operator has named the query; callers give its parameters."""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from app.datasets.postgres import Query, QueryRows, check_query, read_query
from app.datasets.query_parameters import check_parameters
from app.datasets.sources import DatasetSource, FetchedFile, FetchedRows
from app.ingest.formats import PARQUET
from app.jobs.fetching import Fetching, SourceError
from app.platform.connections import POSTGRESQL, Connection, Connections
from app.platform.errors import NotFound, Unavailable, shown
from app.platform.issuers import LOOPBACK
from app.platform.settings import Settings

log = logging.getLogger(__name__)

KIND = "query"
FILE = "rows.parquet"
PATIENCE_SECONDS = 300.0
"""How long a query is repeated while its database is away."""
PROBE_SECONDS = 30.0
_WITH_TLS = ("require", "verify-ca", "verify-full")
FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0
"""Seconds between two attempts: from, and up to."""


class QuerySource:
    def describe(self, connections: Connections, given: Mapping[str, Any]) -> DatasetSource:
        """Raises NotFound and Invalid."""
        connection = connections.get(given["connection"])
        if connection is None or connection.driver != POSTGRESQL:
            raise _missing("connection", given["connection"])
        if given["query"] not in connection.queries:
            raise _missing("query", given["query"])
        types = connection.queries[given["query"]].parameters
        check_parameters(types, given["parameters"], "/source/parameters")
        return {
            "kind": KIND,
            "connection": connection.name,
            "query": given["query"],
            "parameters": {name: given["parameters"][name] for name in types},
        }

    def fetch(
        self, connection: Connection, source: Mapping[str, Any], folder: Path, fetching: Fetching
    ) -> FetchedRows:
        """Raises BadTable, SourceError and FetchStopped."""
        query = query_of(connection, source["query"], source["parameters"])
        read_at = time.time()
        found = repeat(lambda: read_query(query, folder / FILE, fetching), fetching)
        with (folder / FILE).open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        size = (folder / FILE).stat().st_size
        fetching.check_size(size)
        fetched: FetchedFile = {
            "file": FILE,
            "name": FILE,
            "content_type": PARQUET,
            "content_encoding": None,
            "bytes": size,
            "sha256": sha256,
        }
        lineage = {"read_at": read_at, "bytes": size, "snapshot": found.snapshot}
        return {"files": [fetched], "found": lineage}


SOURCE = QuerySource()


def _missing(what: str, name: str) -> NotFound:
    detail = f"there is no {what} {shown(name)}; GET /v1/sources lists what you may use"
    return NotFound(detail, errors=[{"pointer": f"/source/{what}", "detail": detail}])


def probe(settings: Settings, connection: Connection, name: str) -> str | None:
    """Check a query without reading rows; returns a table that the role could change, if any.

    Raises SourceError, and Unavailable if the database is away.
    """
    fetching = Fetching(settings.model_copy(update={"source_seconds": PROBE_SECONDS}))
    return check_query(query_of(connection, name, {}), fetching)


def lacks_tls(connection: Connection) -> bool:
    """Tell from the URL whether the connection to another machine may be unencrypted."""
    found = conninfo_to_dict(connection.database_url())
    hosts = str(found.get("host") or found.get("hostaddr") or "").split(",")
    is_remote = any(
        host and host not in LOOPBACK and not host.startswith(("/", "@")) for host in hosts
    )
    return is_remote and found.get("sslmode") not in _WITH_TLS


def query_of(connection: Connection, name: str, parameters: Mapping[str, Any]) -> Query:
    """Raises SourceError."""
    found = connection.queries[name]
    try:
        url = connection.database_url()
    except (OSError, UnicodeDecodeError):
        raise SourceError(
            "source_misconfigured",
            f"connection {connection.name}: the file with the URL of the database cannot be read",
        ) from None
    return Query(connection.name, name, url, found.sql, found.parameters, parameters)


def repeat(read: Callable[[], QueryRows], fetching: Fetching) -> QueryRows:
    """Repeat `read` while the database is away, for `PATIENCE_SECONDS`. Raises SourceError, and as `read` does."""
    until, delay = time.monotonic() + PATIENCE_SECONDS, FIRST_DELAY
    while True:
        try:
            return read()
        except Unavailable as error:
            if time.monotonic() + delay > until:
                raise SourceError(error.code, error.detail) from None
            log.warning("%s; it is tried again", error.detail)
        fetching.wait(delay * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        delay = min(2 * delay, LONGEST_DELAY)
