"""Queries for rows in the trash."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from sqlalchemy import ColumnElement, Select, delete, literal, select, tuple_, union_all, update

from app.platform.ids import is_id
from app.platform.sql import Page, Session, db_now, decode_cursor, encode_cursor
from app.platform.tables import Comparison, Dataset, Evaluation, LegalHold, Model, Trashable

Kind = Literal["dataset", "model", "evaluation", "comparison"]


class TrashEntry(NamedTuple):
    """A resource in the trash. `name` is its own, or what it was made with: a model, or a comparison's dataset.

    `version` belongs to that name.
    """

    kind: Kind
    id: str
    name: str
    version: int | None
    bytes: int
    created_at: float
    deleted_at: float


_KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "ds": "dataset",
        "mdl": "model",
        "evl": "evaluation",
        "cmp": "comparison",
    }
)

_TABLES: Mapping[Kind, type[Trashable]] = MappingProxyType(
    {
        "dataset": Dataset,
        "model": Model,
        "evaluation": Evaluation,
        "comparison": Comparison,
    }
)


def _entries_of(kind: Kind, *conditions: ColumnElement[bool]) -> Select[Any]:
    """Select the fields of `TrashEntry`."""
    table, columns = _TABLES[kind], _TABLES[kind].__table__.c
    of = next(of for of in ("", "model_", "dataset_") if f"{of}name" in columns)
    fields = {
        "kind": literal(kind),
        "id": columns.id,
        "name": columns[f"{of}name"],
        "version": columns[f"{of}version"],
        "bytes": table.stored_bytes(),
        "created_at": columns.created_at,
        "deleted_at": table.deleted_at,
    }
    shown: list[Any] = [field.label(name) for name, field in fields.items()]
    return select(*shown).where(*conditions)


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[TrashEntry]:
    """The last deleted entry is the first."""
    found = union_all(
        *(_entries_of(kind, table.in_trash_of(owner)) for kind, table in _TABLES.items())
    ).subquery()
    statement = select(found).order_by(found.c.deleted_at.desc(), found.c.id.desc())
    if after is not None:
        place = tuple_(found.c.deleted_at, found.c.id)
        statement = statement.where(place < tuple_(*decode_cursor(after)))
    rows = [TrashEntry(*row) for row in session.execute(statement.limit(limit + 1))]
    if len(rows) <= limit:
        return Page(rows, False, None)
    last = rows[limit - 1]
    return Page(rows[:limit], True, encode_cursor(last.deleted_at, last.id))


def _in_trash(table: type[Trashable], owner: str, id_: str) -> ColumnElement[bool]:
    has_id: ColumnElement[bool] = table.__table__.c.id == id_
    return table.in_trash_of(owner) & has_id


def find(session: Session, owner: str, id_: str) -> TrashEntry | None:
    """Lock the entry until the transaction ends."""
    kind = next((_KINDS[prefix] for prefix in _KINDS if is_id(id_, prefix)), None)
    if kind is None:
        return None
    statement = _entries_of(kind, _in_trash(_TABLES[kind], owner, id_)).with_for_update()
    row = session.execute(statement).one_or_none()
    return None if row is None else TrashEntry(*row)


def restore(session: Session, owner: str, entry: TrashEntry) -> None:
    table = _TABLES[entry.kind]
    session.execute(update(table).where(_in_trash(table, owner, entry.id)).values(deleted_at=None))


def delete_for_good(session: Session, owner: str, entry: TrashEntry) -> None:
    table = _TABLES[entry.kind]
    session.execute(delete(table).where(_in_trash(table, owner, entry.id)))


class OwnedEntry(NamedTuple):
    id: str
    owner: str


def find_old(session: Session, age_seconds: float, limit: int) -> list[OwnedEntry]:
    """Return what has been there for `age_seconds`, without a legal hold."""
    old = [
        select(table.__table__.c.id, table.__table__.c.owner).where(
            table.deleted_at < db_now() - age_seconds,
            ~LegalHold.covers(table.__table__.c.owner, table.__table__.c.id),
        )
        for table in _TABLES.values()
    ]
    return [OwnedEntry(*row) for row in session.execute(union_all(*old).limit(limit))]
