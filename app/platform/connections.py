"""The connections from which the service may read datasets, as the operator's JSON file lists them.

A request names a URL below the prefix of a connection, or a connection and one of its queries, with parameters. Hosts,
credentials and SQL come from this file only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from app.platform.bucket_credentials import BadCredentials, options_of
from app.platform.buckets import Bucket, check_bucket_url, check_endpoint
from app.platform.errors import Invalid, check_name, shown
from app.platform.json_files import BadFile, WatchedFile, read_json

STORES = ("s3", "gs", "az")
POSTGRESQL = "postgresql"
DRIVERS = (*STORES, POSTGRESQL)
PARAMETER_TYPES = ("text", "integer", "number", "boolean", "date", "timestamp")
MAX_FILE_BYTES = 4 << 20
MAX_CONNECTIONS = 1_000
MAX_OWNERS = 1_000
MAX_QUERIES = 1_000
MAX_PARAMETERS = 100
MAX_TEXT = 1_000
MAX_SQL = 100_000
MAX_PORT = 65_535
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        STORES, ("driver", "owners", "prefix", "endpoint", "credentials_file", "ca_file")
    ),
    POSTGRESQL: ("driver", "owners", "url_file", "queries"),
}


class BadUrl(ValueError):
    """The URL of a database cannot be used. The message has the rule, and no part of the URL."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query that the operator has named."""

    sql: str
    """One SELECT statement, in which `$1` is the first of the parameters."""
    parameters: Mapping[str, str]
    """Type of each parameter (one of `PARAMETER_TYPES`) by name, in the order of `$1`, `$2`, …"""


@dataclass(frozen=True, slots=True)
class Connection:
    """A source of datasets: the objects of a bucket below a prefix, or the queries of a database."""

    name: str
    driver: str
    owners: frozenset[str]
    """The owners who may read from it."""
    prefix: str = ""
    """Of a store: the URL below which objects may be read, such as s3://bucket/exports/. It ends with a slash."""
    endpoint: str | None = None
    credentials_file: Path | None = None
    ca_file: Path | None = None
    url_file: Path | None = None
    """Of a database: the file with its URL."""
    queries: Mapping[str, Query] = field(default_factory=dict)

    @property
    def bucket(self) -> Bucket:
        """Where the store is, with its prefix."""
        return Bucket(self.prefix.rstrip("/"), self.endpoint, self.credentials_file, self.ca_file)

    def database_url(self) -> str:
        """Read it from its file. Raises OSError."""
        assert self.url_file is not None
        return self.url_file.read_text().strip()


Connections = Mapping[str, Connection]


def read_connections(file: Path) -> Connections:
    """Raises BadFile."""
    given = read_json(file, MAX_FILE_BYTES)
    if not isinstance(given, dict) or len(given) > MAX_CONNECTIONS:
        got = f"{len(given):,} entries" if isinstance(given, dict) else type(given).__name__
        raise BadFile(f"{file} must be an object of at most {MAX_CONNECTIONS:,} entries, got {got}")
    found = {}
    for name, entry in given.items():
        try:
            _check_name("the name of a connection", name)
            found[name] = _connection_of(name, entry)
        except ValueError as error:
            raise BadFile(f"{file}, {shown(name)}: {error}") from None
    return found


class ConnectionsFile(WatchedFile[Connections]):
    def __init__(self, file: Path | None) -> None:
        """Without a file there are no connections. Raises BadFile."""
        super().__init__(file, read_connections, {}, "connections")

    def of(self, owner: str) -> Connections:
        """In alphabetical order."""
        found = self.content()
        return {name: found[name] for name in sorted(found) if owner in found[name].owners}


def _check_name(thing: str, name: Any) -> None:
    """Raise ValueError unless the name follows the rules for owners."""
    try:
        check_name(thing, name if isinstance(name, str) else "")
    except Invalid as error:
        raise ValueError(error.detail) from None


def _connection_of(name: str, entry: Any) -> Connection:
    """Raises ValueError."""
    if not isinstance(entry, dict):
        raise ValueError(f"must be an object, got {shown(entry)}")
    driver = entry.get("driver")
    if driver not in DRIVERS:
        raise ValueError(f"driver must be one of {', '.join(DRIVERS)}, got {shown(driver)}")
    fields = _FIELDS[driver]
    if unknown := [field for field in entry if field not in fields]:
        raise ValueError(
            f"has the unknown field {shown(unknown[0])}; the fields of {driver} are {', '.join(fields)}"
        )
    owners = entry.get("owners")
    if not isinstance(owners, list) or not 1 <= len(owners) <= MAX_OWNERS:
        raise ValueError(
            f"owners must be a list of 1 to {MAX_OWNERS:,} owners, got {shown(owners)}"
        )
    for owner in owners:
        _check_name("an owner", owner)
    make = _database_of if driver == POSTGRESQL else _store_of
    return Connection(name, driver, frozenset(owners), **make(driver, entry))


def _text_of(entry: Mapping[str, Any], field: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_TEXT:
        got = shown(value) if field in entry else "nothing"
        raise ValueError(f"{field} must be a text of 1 to {MAX_TEXT} characters, got {got}")
    return value


def _store_of(driver: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ValueError."""
    prefix = _text_of(entry, "prefix")
    if not prefix.startswith(f"{driver}://"):
        raise ValueError(f"prefix must begin with {driver}://, got {shown(prefix)}")
    try:
        check_bucket_url(prefix)
    except ValueError as error:
        raise ValueError(f"prefix {error}, got {shown(prefix)}") from None
    found: dict[str, Any] = {"prefix": f"{prefix.rstrip('/')}/"}
    if entry.get("endpoint") is not None:
        found["endpoint"] = _text_of(entry, "endpoint")
        try:
            check_endpoint(found["endpoint"], driver)
        except ValueError as error:
            raise ValueError(f"endpoint {error}") from None
    if entry.get("credentials_file") is not None:
        found["credentials_file"] = file = Path(_text_of(entry, "credentials_file"))
        try:
            options_of(driver, file)
        except BadCredentials as error:
            raise ValueError(str(error)) from None
    if entry.get("ca_file") is not None:
        found["ca_file"] = file = Path(_text_of(entry, "ca_file"))
        if "-----BEGIN CERTIFICATE-----" not in _read(file, "ca_file"):
            raise ValueError(f"ca_file must be a PEM file with certificates, got {file}")
    return found


def _database_of(driver: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ValueError, without a word of the URL, which may have a password."""
    file = Path(_text_of(entry, "url_file"))
    try:
        check_database_url(_read(file, "url_file").strip())
    except BadUrl as error:
        raise ValueError(f"url_file {file} {error}") from None
    given = entry.get("queries")
    if not isinstance(given, dict) or not 1 <= len(given) <= MAX_QUERIES:
        got = shown(given) if "queries" in entry else "nothing"
        raise ValueError(f"queries must be an object of 1 to {MAX_QUERIES:,} queries, got {got}")
    queries = {}
    for name, query in given.items():
        _check_name("the name of a query", name)
        try:
            queries[name] = _query_of(query)
        except ValueError as error:
            raise ValueError(f"query {shown(name)}: {error}") from None
    return {"url_file": file, "queries": MappingProxyType(queries)}


def check_database_url(url: str) -> None:
    """Raise BadUrl, without a word of the URL, unless it is one of PostgreSQL."""
    import psycopg  # only a service with such a connection needs it here
    from psycopg.conninfo import conninfo_to_dict

    if not re.match(r"postgres(ql)?://[^/]", url) or re.search(r"\s", url):
        raise BadUrl("must contain one URL that begins with postgresql:")
    try:
        found = conninfo_to_dict(url)
    except psycopg.Error:  # whose message may have the password
        raise BadUrl(
            "must contain a valid URL of PostgreSQL, in which % begins an escape, with known parameters"
        ) from None
    ports = str(found.get("port", "")).split(",")
    if any(port and not re.fullmatch(r"[0-9]{1,5}", port) for port in ports) or any(
        not 1 <= int(port) <= MAX_PORT for port in ports if port
    ):
        raise BadUrl(f"must contain a URL whose port is a number from 1 to {MAX_PORT}")
    if found.get("sslmode", SSL_MODES[0]) not in SSL_MODES:
        raise BadUrl(f"must contain a URL whose sslmode is one of {', '.join(SSL_MODES)}")


def _query_of(entry: Any) -> Query:
    """Raises ValueError."""
    if not isinstance(entry, dict):
        raise ValueError(f"must be an object, got {shown(entry)}")
    if unknown := [field for field in entry if field not in ("sql", "parameters")]:
        raise ValueError(
            f"has the unknown field {shown(unknown[0])}; the fields are sql, parameters"
        )
    sql, parameters = entry.get("sql"), entry.get("parameters", {})
    if not isinstance(sql, str) or not 1 <= len(sql.strip()) <= MAX_SQL:
        raise ValueError(f"sql must be a text of 1 to {MAX_SQL:,} characters, got {shown(sql)}")
    if not isinstance(parameters, dict) or len(parameters) > MAX_PARAMETERS:
        raise ValueError(
            f"parameters must be an object of at most {MAX_PARAMETERS} types, got {shown(parameters)}"
        )
    for name, type_ in parameters.items():
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name):
            raise ValueError(
                "the name of a parameter must have at most 63 lowercase letters, digits and _, and no digit first, "
                f"got {shown(name)}"
            )
        if type_ not in PARAMETER_TYPES:
            raise ValueError(
                f"the type of {name} must be one of {', '.join(PARAMETER_TYPES)}, got {shown(type_)}"
            )
    return Query(sql, MappingProxyType(cast(dict[str, str], parameters)))


def _read(file: Path, field: str) -> str:
    """Raises ValueError."""
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"{field} {file} cannot be read: {why}") from None
