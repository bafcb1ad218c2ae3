"""Objects of a store as the source of a dataset: one object, or all below a prefix."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from app.datasets.sources import DatasetSource, FetchedRows
from app.ingest.formats import SUFFIXES, type_of_file
from app.jobs.fetching import Fetching
from app.platform.connections import STORES, Connection, Connections
from app.platform.errors import invalid, shown

KIND = "object"
POINTER = "/source/url"
_URL = re.compile(r"[a-z0-9]+://[a-z0-9][a-z0-9._-]*(/[\w!.'()&$@=;:+, -]+)*/?")


class ObjectSource:
    def describe(self, connections: Connections, given: Mapping[str, Any]) -> DatasetSource:
        """Raises Invalid for a URL that is not below the prefix of a connection."""
        url = given["url"]
        connection = connection_of(connections, url)
        if not url.endswith("/"):
            _check_suffix(url)
        return {"kind": KIND, "connection": connection.name, "url": url}

    def fetch(
        self, connection: Connection, source: Mapping[str, Any], folder: Path, fetching: Fetching
    ) -> FetchedRows:
        """Raises SourceError, and FetchStopped."""
        found: FetchedRows = asyncio.run(
            _download().fetch(connection, source["url"], folder, fetching)
        )
        return found

    def probe(self, connection: Connection) -> str | None:
        """Return why the objects cannot be listed; None if they can."""
        problem: str | None = _download().probe(connection)
        return problem


SOURCE = ObjectSource()


def _download() -> ModuleType:
    """Import by name: a process that only checks URLs needs no obstore."""
    return import_module("app.datasets.object_download")


def connection_of(connections: Connections, url: str) -> Connection:
    """Return the connection with the longest prefix of a URL. Raises Invalid if there is none.

    Also for a URL that is not written plainly: with a query, a fragment, percent signs, empty steps, `.` or `..`.
    """
    if _URL.fullmatch(url) is None or {".", ".."} & set(url.split("/")):
        raise invalid(
            POINTER,
            "url must be scheme://bucket/key, with a key of letters, digits, spaces and _-.!'()&$@=;:+, between single "
            f"slashes, without the steps . and .., got {shown(url)}",
        )
    found = [
        each
        for each in connections.values()
        if each.driver in STORES and url.startswith(each.prefix)
    ]
    if not found:
        known = ", ".join(each.prefix for each in connections.values() if each.driver in STORES)
        raise invalid(
            POINTER,
            f"url must begin with the prefix of a connection ({known or 'there is none'}), got {shown(url)}",
            code="source_not_allowed",
        )
    return max(found, key=lambda each: (len(each.prefix), each.name))


def _check_suffix(url: str) -> None:
    """Raise Invalid for an object whose name is not that of a table."""
    if type_of_file(url.rpartition("/")[2])[0] is None:
        known = ", ".join(SUFFIXES)
        raise invalid(
            POINTER,
            f"url must end in one of {known}, optionally followed by .gz or .zst, or in a slash, got {shown(url)}",
        )
