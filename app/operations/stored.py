"""What the rows say is stored: every blob that one of them names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from app.operations import blobs_repository as rows
from app.platform.database import Database

_PAGE = 500


class Stored(NamedTuple):
    """A blob's key, and the row that names it in words."""

    key: str
    row: str


def each(db: Database) -> Iterator[Stored]:
    """Every blob that a row names, as often as one does, read page by page in transactions of their own."""
    for namer in rows.NAMERS:
        after = ""
        while True:
            with db.read() as session:
                page = rows.page(session, namer, after, _PAGE)
            for id_, key in page:
                yield Stored(key, f"{namer.what} {id_}")
            if len(page) < _PAGE:
                break
            after = page[-1][0]
    with db.read() as session:
        of_parts = rows.of_parts(session)
    for id_, key in of_parts:
        yield Stored(key, f"result of part {id_}")


def is_named(db: Database, key: str) -> bool:
    """Whether a row still names the blob."""
    with db.read() as session:
        return bool(rows.named(session, [key]))
