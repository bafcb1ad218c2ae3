"""Helpers for tables and queries on both databases: types, the clock, pages of lists, inserts, batches."""

from __future__ import annotations

import base64
import binascii
import json
import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    CursorResult,
    Float,
    LargeBinary,
    MetaData,
    Select,
    Text,
    delete,
    event,
    inspect,
    or_,
    select,
    tuple_,
)
from sqlalchemy.exc import DBAPIError as DBAPIError  # noqa: PLC0414 - re-exported for modules without SQL
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase, InstrumentedAttribute
from sqlalchemy.orm import Session as Session  # noqa: PLC0414 - the same
from sqlalchemy.sql.base import ExecutableOption
from sqlalchemy.sql.functions import FunctionElement

from app.platform.errors import Invalid

Json = dict[str, Any]

P = ParamSpec("P")
Result = TypeVar("Result")
T = TypeVar("T")


class Reading(Protocol):
    """Runs a function in a read-only transaction, as `Database.reading` does, for caches that load by themselves."""

    def __call__(
        self, work: Callable[Concatenate[Session, P], Result], *args: P.args, **kwargs: P.kwargs
    ) -> Result: ...


class Base(DeclarativeBase):
    """Base of all tables. Every constraint gets a name, so that migrations can refer to it on both databases."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it once, at class creation
        float: Float(53),
        int: BigInteger,
        str: Text,  # without a length, because only one of the two databases would enforce it
        # None is SQL's NULL here, never the JSON text `null`.
        Json: JSON(none_as_null=True),
        list[Json]: JSON(none_as_null=True),
        list[str]: JSON(none_as_null=True),
        bytes: LargeBinary,
    }
    __searched__: ClassVar[tuple[str, ...]] = ("name", "model_name", "dataset_name")

    @classmethod
    def name_contains(cls, text: str) -> ColumnElement[bool]:
        columns = cls.__table__.c
        return or_(*(contains(columns[name], text) for name in cls.__searched__ if name in columns))


MACHINE_CLOCK = "rankwright_machine_clock"
"""Name of the function that `app.platform.database` registers with SQLite."""


def _spell(element: type[FunctionElement[Any]], postgresql: str, sqlite: str) -> None:
    """Register how an expression is written in the SQL of each database; `{}` stands for its arguments."""
    for dialect, spelling in (("postgresql", postgresql), ("sqlite", sqlite)):

        def write(it: Any, compiler: Any, spelling: str = spelling, **kw: Any) -> str:
            return spelling.format(compiler.process(it.clauses, **kw))

        compiles(element, dialect)(write)


class db_now(FunctionElement[float]):  # noqa: N801 - reads as the SQL function it is
    """The present time by the database's clock, not by the clock of this process.

    PostgreSQL: `clock_timestamp()`, which moves within a transaction. SQLite: the process clock in milliseconds;
    `unixepoch('subsec')` would be simpler but is NULL before SQLite 3.42.
    """

    type = Float(53)
    inherit_cache = True


_spell(
    db_now,
    "CAST(extract(epoch from clock_timestamp()) AS double precision)",
    "((julianday('now') - 2440587.5) * 86400.0)",
)


def read_clock(session: Session) -> float:
    return session.execute(select(db_now())).scalar_one()


class machine_now(FunctionElement[float]):  # noqa: N801 - as above
    """Seconds of the machine's monotonic clock, which nobody can set and which restarts with the machine.

    All processes that share an SQLite file read the same clock. On PostgreSQL it is NULL: the server's clock is enough.
    """

    type = Float(53)
    inherit_cache = True


_spell(machine_now, "CAST(NULL AS double precision)", f"{MACHINE_CLOCK}()")


class stored_size(FunctionElement[int]):  # noqa: N801 - as above
    """The number of bytes of a value in its row; NULL for NULL. On PostgreSQL as stored, possibly compressed."""

    type = BigInteger()
    inherit_cache = True


# `octet_length` is missing before SQLite 3.43, and `length` counts the characters of a text.
_spell(stored_size, "pg_column_size({})", "length(CAST({} AS BLOB))")


class ascii_lower(FunctionElement[str]):  # noqa: N801 - as above
    """A to Z in lower case, the same on both databases, in any locale."""

    type = Text()
    inherit_cache = True


_spell(ascii_lower, 'lower({} COLLATE "C")', "lower({})")


_TO_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def contains(column: Any, text: str) -> ColumnElement[bool]:
    """Ignore the case of A to Z."""
    return ascii_lower(column).contains(text.translate(_TO_LOWER), autoescape=True)


def has_tag(tags: Any, tag: str) -> ColumnElement[bool]:
    """Test for a member `name` or `name:value`. Both may contain colons, so every split is tried."""
    member = each_member(tags).table_valued("key", "value")
    is_meant = or_(member.c.key == tag, member.c.key.concat(":").concat(member.c.value) == tag)
    return select(member.c.key).where(is_meant).exists()


class each_member(FunctionElement[Any]):  # noqa: N801 - as above
    """The members of a JSON object of texts, as rows of `key` and `value`."""

    inherit_cache = True


_spell(each_member, "json_each_text({})", "json_each({})")


NEWEST_FIRST: Final = "-created_at"


@dataclass(frozen=True)
class RowFilter:
    """The filters and the order of a list. The time `created_before` itself is excluded, `created_after` is included.

    Each of `tags` is a name, or `name:value`; `a:b:c` matches the tag `a` with the value `b:c`, the tag `a:b` with the
    value `c`, and the tag `a:b:c`. `sort` names the order; `-` before it means descending.
    """

    search: str | None = None
    created_after: float | None = None
    created_before: float | None = None
    tags: tuple[str, ...] = ()
    sort: str = NEWEST_FIRST

    def apply(self, statement: Select[T], table: Any) -> Select[T]:
        if self.search is not None:
            statement = statement.where(table.name_contains(self.search))
        if self.created_after is not None:
            statement = statement.where(table.created_at >= self.created_after)
        if self.created_before is not None:
            statement = statement.where(table.created_at < self.created_before)
        for tag in self.tags:
            statement = statement.where(has_tag(table.tags, tag))
        return statement


ALL_ROWS = RowFilter()
MAX_PAGE_SIZE = 200
SortKeys = Mapping[str, Sequence[Any]]
"""By the name of an order, the columns that rows are ordered by; the id comes last."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of rows. `next` is the cursor for the page after it."""

    data: list[T]
    has_more: bool
    next: str | None


def fetch_page(
    session: Session,
    statement: Select[T],
    created_at: InstrumentedAttribute[float],
    id_: InstrumentedAttribute[str],
    *,
    limit: int,
    after: str | None,
    sort: str = NEWEST_FIRST,
    keys: SortKeys = MappingProxyType({}),
    options: Sequence[ExecutableOption] = (),
) -> Page[T]:
    """Return one page, newest first, or in the order of `sort`: by `created_at`, or by one of `keys`.

    Raises Invalid for a limit outside 1..200, an unknown order, an invalid cursor, or a cursor of another order.
    """
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise Invalid(f"limit must be between 1 and {MAX_PAGE_SIZE}, got {limit}")
    if sort != NEWEST_FIRST:
        columns = {"created_at": (created_at,), **keys}
        if sort.removeprefix("-") not in columns:
            known = ", ".join(f"{name}, -{name}" for name in columns)
            raise Invalid(f"sort must be one of {known}, got {sort[:100]!r}")
        ordered = (*columns[sort.removeprefix("-")], id_)
        return _fetch_sorted(session, statement, ordered, sort, limit, after, options)
    statement = statement.options(*options)
    if after is not None:
        statement = statement.where(tuple_(created_at, id_) < tuple_(*decode_cursor(after)))
    statement = statement.order_by(created_at.desc(), id_.desc()).limit(limit + 1)
    rows = list(session.scalars(statement))
    if len(rows) <= limit:
        return Page(rows, False, None)
    last: Any = rows[limit - 1]
    cursor = encode_cursor(getattr(last, created_at.key), getattr(last, id_.key))
    return Page(rows[:limit], True, cursor)


def _fetch_sorted(
    session: Session,
    statement: Select[T],
    ordered: Sequence[Any],
    sort: str,
    limit: int,
    after: str | None,
    options: Sequence[ExecutableOption],
) -> Page[T]:
    """The last column is the id. The first query reads only these columns, so that no large rows are sorted."""
    down = sort.startswith("-")
    if after is not None:
        values = _decode_sorted(after, sort, ordered)
        place, last = tuple_(*ordered), tuple_(*values)
        statement = statement.where(place < last if down else place > last)
    found = statement.with_only_columns(*ordered).order_by(
        *(each.desc() if down else each.asc() for each in ordered)
    )
    places: list[Any] = list(session.execute(found.limit(limit + 1)))
    id_ = ordered[-1]
    rows: Any = select(id_.class_).where(id_.in_([place[-1] for place in places[:limit]]))
    by_id = {getattr(row, id_.key): row for row in session.scalars(rows.options(*options))}
    data = [by_id[place[-1]] for place in places[:limit] if place[-1] in by_id]
    if len(places) <= limit:
        return Page(data, False, None)
    return Page(data, True, _encode([sort, *places[limit - 1]]))


def _decode_sorted(cursor: str, sort: str, ordered: Sequence[Any]) -> list[Any]:
    """Return a value for each column. Raises Invalid."""
    values = _decode(cursor)
    if not isinstance(values, list) or values[:1] != [sort] or len(values) != 1 + len(ordered):
        raise _bad_cursor(cursor)
    for value, column in zip(values[1:], ordered, strict=True):
        kind = column.type.python_type
        if type(value) is not kind or not _is_held(value):
            raise _bad_cursor(cursor)
    return values[1:]


def _is_held(value: str | float) -> bool:
    """A column of its type can contain the value."""
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= sign <= "\udfff" for sign in value)
    return math.isfinite(value) if isinstance(value, float) else abs(value) < 2**31


def encode_cursor(created_at: float, id_: str) -> str:
    """Return the position after this row, URL-safe."""
    return _encode([float(created_at), id_])


def _encode(values: Sequence[Any]) -> str:
    text = json.dumps(values, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decode(cursor: str) -> Any:
    """Raises Invalid."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, RecursionError, binascii.Error):
        raise _bad_cursor(cursor) from None


def decode_cursor(cursor: str) -> tuple[float, str]:
    """Inverse of `encode_cursor`. Raises Invalid."""
    try:
        created_at, id_ = _decode(cursor)
    except (ValueError, TypeError):
        raise _bad_cursor(cursor) from None
    if type(created_at) is not float or not math.isfinite(created_at):
        raise _bad_cursor(cursor)
    if type(id_) is not str or not id_.isascii() or not id_.isprintable():
        raise _bad_cursor(cursor)
    return created_at, id_


def _bad_cursor(cursor: str) -> Invalid:
    return Invalid(
        f"after must be the `next` of an earlier page of the same list and order, got {cursor[:100]!r}",
        code="invalid_cursor",
    )


def upsert_into(session: Session, table: Any) -> Any:
    """Only the session's dialect is imported."""
    if session.get_bind().dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    return insert(table)


def next_number(session: Session, counter: InstrumentedAttribute[int], **key: str) -> int:
    """Increment a counter and return it; the first is 1. Simultaneous transactions wait for each other."""
    statement = (
        upsert_into(session, counter.class_)
        .values({counter.key: 1} | key)
        .on_conflict_do_update(index_elements=list(key), set_={counter.key: counter + 1})
        .returning(counter)
    )
    number: int = session.scalars(statement, execution_options={"populate_existing": True}).one()
    return number


_KEPT = "kept"  # key in a session's notes: the functions to call after the commit


def after_commit(session: Session, act: Callable[[], object]) -> None:
    """Never called after a rollback."""
    if _KEPT not in session.info:
        session.info[_KEPT] = []
        event.listen(session, "after_commit", _do_kept)
    session.info[_KEPT].append(act)


def _do_kept(session: Session) -> None:
    for act in session.info.pop(_KEPT, ()):
        act()


def delete_some(
    session: Session, table: type[Base], *conditions: ColumnElement[bool], limit: int
) -> int:
    """Return the number of deleted rows. Fewer than `limit` means that none are left."""
    columns = inspect(table).primary_key
    doomed = select(*columns).where(*conditions).limit(limit)
    done: CursorResult[Any] = session.execute(  # type: ignore[assignment]  # a DELETE's result counts its rows
        delete(table).where(tuple_(*columns).in_(doomed)),
        execution_options={"synchronize_session": False},
    )
    return done.rowcount
