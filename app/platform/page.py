"""Cursor pages: newest first, by (created_at, id), so that a page never shifts while rows are added."""

from __future__ import annotations

import base64
import binascii
import json
import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from app.platform.errors import Invalid

MAX_LIMIT = 200

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of rows; `next` is the cursor that `after` takes for the page behind it."""

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
) -> Page[T]:
    """Run `statement` for one page. A limit outside 1..200 or a cursor that we did not make is `Invalid`."""
    if not 1 <= limit <= MAX_LIMIT:
        raise Invalid(f"limit must be between 1 and {MAX_LIMIT}, got {limit}")
    if after is not None:
        statement = statement.where(tuple_(created_at, id_) < tuple_(*decode_cursor(after)))
    statement = statement.order_by(created_at.desc(), id_.desc()).limit(limit + 1)
    rows = list(session.scalars(statement))
    if len(rows) <= limit:
        return Page(rows, False, None)
    last: Any = rows[limit - 1]
    cursor = encode_cursor(getattr(last, created_at.key), getattr(last, id_.key))
    return Page(rows[:limit], True, cursor)


def encode_cursor(created_at: float, id_: str) -> str:
    """Name the place behind this row, in characters that a URL takes as they are."""
    text = json.dumps([float(created_at), id_], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> tuple[float, str]:
    """Read what `encode_cursor` wrote; anything else is `Invalid`."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        created_at, id_ = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (ValueError, TypeError, RecursionError, binascii.Error):
        raise _bad_cursor(cursor) from None
    if type(created_at) is not float or not math.isfinite(created_at):
        raise _bad_cursor(cursor)
    if type(id_) is not str or not id_.isascii() or not id_.isprintable():
        raise _bad_cursor(cursor)
    return created_at, id_


def _bad_cursor(cursor: str) -> Invalid:
    return Invalid(
        f"after must be a cursor that a page gave as next, got {cursor[:100]!r}",
        code="invalid_cursor",
    )
