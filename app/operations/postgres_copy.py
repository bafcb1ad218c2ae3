"""Copies all tables of a PostgreSQL database to files, as they were at one moment, and back.

The files have PostgreSQL's binary COPY format, which is the same in all versions of the server. So neither a client
program of the server's version is needed nor a connection of its own for it, and the service goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from psycopg import Cursor, sql

from app.platform import catalogue, migrate
from app.platform.blobs import Blob
from app.platform.database import Database
from app.platform.sql import Base, Session

PREFIX, SUFFIX = "database/", ".copy"
_VERSIONS = "alembic_version"


class TableFile(NamedTuple):
    """A table's rows in a file, with the SHA-256 of its bytes in hexadecimal."""

    name: str
    path: Path
    sha256: str


class Snapshot(NamedTuple):
    """All tables of a database at one moment, and the blobs of its catalogue."""

    revision: str
    tables: Sequence[TableFile]
    blobs: Sequence[Blob]


def dump(url: str, folder: Path) -> Snapshot:
    """Read all tables in one transaction, which blocks no writer."""
    with closing(Database(url, pool_size=1, bounded=False)) as db, db.read() as session:
        with _cursor(session) as cursor:
            ((revision,),) = cursor.execute("SELECT version_num FROM alembic_version").fetchall()
            tables = [
                _dump_table(cursor, name, columns, folder)
                for name, columns in _tables(cursor).items()
            ]
        blobs = catalogue.all_stored(session)
    return Snapshot(revision, tables, blobs)


def load(url: str, revision: str, files: Mapping[str, Path]) -> None:
    """Fill an empty database from the files of `dump`, by table, in one transaction; `migrate` upgrades the revision.

    Raises ValueError if a table has no file, or a file no table.
    """
    migrate.upgrade(url, revision)
    with closing(Database(url, pool_size=1, bounded=False)) as db, db.write() as session:
        with _cursor(session) as cursor:
            tables = _tables(cursor)
            if tables.keys() != files.keys():
                odd = ", ".join(sorted(tables.keys() ^ files.keys()))
                raise ValueError(f"the tables of revision {revision} and the files differ: {odd}")
            names = sql.SQL(", ").join(map(sql.Identifier, tables))
            cursor.execute(sql.SQL("TRUNCATE {}").format(names))  # migrations insert rows
            for name, columns in tables.items():
                with files[name].open("rb") as file:
                    _load_table(cursor, name, columns, file)
        catalogue.release_all(session)


@contextmanager
def _cursor(session: Session) -> Iterator[Cursor[Any]]:
    driver: Any = session.connection().connection.driver_connection
    with driver.cursor() as cursor:
        yield cursor


def _tables(cursor: Cursor[Any]) -> dict[str, list[str]]:
    """Return columns by table, each after the tables to which it refers."""
    cursor.execute(
        "SELECT table_name, column_name FROM information_schema.columns "
        "JOIN information_schema.tables USING (table_schema, table_name) "
        "WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' AND table_name <> %s "
        "AND is_generated = 'NEVER' ORDER BY table_name, column_name",
        (_VERSIONS,),
    )
    found: dict[str, list[str]] = {}
    for table, column in cursor.fetchall():
        found.setdefault(table, []).append(column)
    order = {table.name: place for place, table in enumerate(Base.metadata.sorted_tables)}
    return {name: found[name] for name in sorted(found, key=lambda name: order.get(name, -1))}


def _copied(name: str, columns: Sequence[str], rest: str) -> sql.Composed:
    return sql.SQL("COPY {} ({}) {} (FORMAT binary)").format(
        sql.Identifier(name), sql.SQL(", ").join(map(sql.Identifier, columns)), sql.SQL(rest)
    )


def _dump_table(cursor: Cursor[Any], name: str, columns: Sequence[str], folder: Path) -> TableFile:
    path, digest = folder / (name + SUFFIX), hashlib.sha256()
    with path.open("xb") as file, cursor.copy(_copied(name, columns, "TO STDOUT")) as rows:
        for chunk in rows:
            digest.update(chunk)
            file.write(chunk)
    return TableFile(name, path, digest.hexdigest())


def _load_table(cursor: Cursor[Any], name: str, columns: Sequence[str], file: IO[bytes]) -> None:
    with cursor.copy(_copied(name, columns, "FROM STDIN")) as rows:
        while chunk := file.read(1 << 20):
            rows.write(chunk)
