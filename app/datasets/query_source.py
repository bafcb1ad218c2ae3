"""Rows of a query as the source of a dataset. The operator has named the query; callers give its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.datasets.sources import FetchedRows
from app.jobs.fetching import Fetching, SourceError
from app.platform.connections import POSTGRESQL, Connection, Connections
from app.platform.documents import DatasetSource
from app.platform.errors import NotFound, shown

KIND = "query"


class QuerySource:
    """The queries of a database."""

    def describe(self, connections: Connections, given: Mapping[str, Any]) -> DatasetSource:
        """Return the source of a request as the dataset stores it. Raises NotFound and Invalid."""
        connection = connections.get(given["connection"])
        if connection is None or connection.driver != POSTGRESQL:
            raise _missing("connection", given["connection"])
        if given["query"] not in connection.queries:
            raise _missing("query", given["query"])
        return {
            "kind": KIND,
            "connection": connection.name,
            "query": given["query"],
            "parameters": dict(given["parameters"]),
        }

    def fetch(
        self, connection: Connection, source: DatasetSource, folder: Path, fetching: Fetching
    ) -> FetchedRows:
        """Write the rows of the query to a file in a folder. Raises SourceError, and FetchStopped."""
        raise SourceError(
            "source_driver_missing",
            f"connection {connection.name}: this installation has no driver for {connection.driver}",
        )


SOURCE = QuerySource()


def _missing(what: str, name: str) -> NotFound:
    detail = f"there is no {what} {shown(name)}: GET /v1/sources"
    return NotFound(detail, errors=[{"pointer": f"/source/{what}", "detail": detail}])
