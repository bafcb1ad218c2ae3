"""SQL of requests to change protected aliases, and of suspended protections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy import delete as sql_delete

from app.platform import events
from app.platform.callers import acting_principal
from app.platform.sql import Page, Session, db_now, fetch_page, read_clock, upsert_into
from app.platform.tables import AliasRequest, AliasRequestState, BreakGlass

_OPEN = AliasRequest.state == AliasRequestState.OPEN


def _in_state(state: str) -> ColumnElement[bool]:
    """The clock decides between open and expired."""
    if state == AliasRequestState.EXPIRED:
        return _OPEN & (AliasRequest.expires_at <= db_now())
    if state == AliasRequestState.OPEN:
        return _OPEN & (AliasRequest.expires_at > db_now())
    return AliasRequest.state == state


def add(session: Session, row: AliasRequest, keep_seconds: float) -> AliasRequest:
    """Insert an open request that expires after `keep_seconds`."""
    row.created_at = read_clock(session)
    row.expires_at = row.created_at + keep_seconds
    session.add(row)
    session.flush()
    return row


def find(
    session: Session, owner: str, alias_request_id: str, *, lock: bool = False
) -> AliasRequest | None:
    """With `lock`, read it anew, locked until the transaction ends."""
    statement = select(AliasRequest).where(
        AliasRequest.readable_by(owner), AliasRequest.id == alias_request_id
    )
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    return session.scalars(statement).one_or_none()


def list_page(
    session: Session,
    owner: str,
    *,
    state: str | None,
    name: str | None,
    alias: str | None,
    limit: int,
    after: str | None,
) -> Page[AliasRequest]:
    statement = select(AliasRequest).where(AliasRequest.readable_by(owner))
    if state is not None:
        statement = statement.where(_in_state(state))
    if name is not None:
        statement = statement.where(AliasRequest.name == name)
    if alias is not None:
        statement = statement.where(AliasRequest.alias == alias)
    return fetch_page(
        session, statement, AliasRequest.created_at, AliasRequest.id, limit=limit, after=after
    )


def count_open(session: Session, owner: str, name: str, alias: str) -> tuple[int, int]:
    """Return how many requests are open: of an alias, and of the owner."""
    of_alias = and_(AliasRequest.name == name, AliasRequest.alias == alias)
    statement = select(func.count().filter(of_alias), func.count()).where(
        AliasRequest.readable_by(owner), _in_state(AliasRequestState.OPEN)
    )
    here, in_all = session.execute(statement).one()
    return here, in_all


def void(
    session: Session,
    owner: str,
    reason: str,
    *,
    alias: tuple[str, str] | None = None,
    model_id: str | None = None,
    except_id: str | None = None,
) -> None:
    """End the open requests of an alias (name, alias), or about a model, because what they would change has changed.

    The one with `except_id` is kept.
    """
    statement = update(AliasRequest).where(
        AliasRequest.readable_by(owner), _in_state(AliasRequestState.OPEN)
    )
    if alias is not None:
        statement = statement.where(AliasRequest.name == alias[0], AliasRequest.alias == alias[1])
    if model_id is not None:
        statement = statement.where(AliasRequest.model_id == model_id)
    if except_id is not None:
        statement = statement.where(AliasRequest.id != except_id)
    ended = session.execute(
        statement.values(
            state=AliasRequestState.VOID, decided_at=db_now(), decision_reason=reason
        ).returning(AliasRequest.id, AliasRequest.name, AliasRequest.alias, AliasRequest.kind),
        execution_options={"synchronize_session": False},
    )
    for row in ended.all():
        record_state(session, owner, AliasRequestState.VOID, *row)


def record_state(
    session: Session, owner: str, state: str, id_: str, name: str, alias: str, kind: str
) -> None:
    word = "created" if state == AliasRequestState.OPEN else state
    events.record(session, owner, f"alias_request.{word}", id_, name=name, alias=alias, kind=kind)


def prune_closed(session: Session, owner: str, name: str, alias: str, most: int) -> None:
    """Delete all but the newest `most` requests of an alias that came to nothing."""
    closed = and_(
        AliasRequest.readable_by(owner),
        AliasRequest.name == name,
        AliasRequest.alias == alias,
        AliasRequest.state != AliasRequestState.APPROVED,
        or_(~_OPEN, AliasRequest.expires_at <= db_now()),
    )
    newest = (
        select(AliasRequest.id)
        .where(closed)
        .order_by(AliasRequest.created_at.desc(), AliasRequest.id.desc())
        .limit(most)
    )
    kept: Sequence[Any] = session.scalars(newest).all()
    if len(kept) == most:
        session.execute(
            sql_delete(AliasRequest).where(closed, AliasRequest.id.not_in(kept)),
            execution_options={"synchronize_session": False},
        )


def drop_evidence(session: Session, owner: str, model_id: str) -> None:
    session.execute(
        update(AliasRequest)
        .where(AliasRequest.readable_by(owner), AliasRequest.model_id == model_id)
        .values(evidence_key=None, evidence_bytes=None),
        execution_options={"synchronize_session": False},
    )


def note_calibration(session: Session, owner: str, alias_request_id: str, version: int) -> None:
    """Record the version of the calibration that the job of an approved request has made."""
    session.execute(
        update(AliasRequest)
        .where(AliasRequest.readable_by(owner), AliasRequest.id == alias_request_id)
        .values(applied_calibration=version),
        execution_options={"synchronize_session": False},
    )


def _of_alias(owner: str, name: str, alias: str) -> ColumnElement[bool]:
    return and_(BreakGlass.readable_by(owner), BreakGlass.name == name, BreakGlass.alias == alias)


def find_break_glass(session: Session, owner: str, name: str, alias: str) -> BreakGlass | None:
    """Return the suspension of an alias's protection; None if there is none now."""
    return session.scalars(
        select(BreakGlass).where(_of_alias(owner, name, alias), BreakGlass.until > db_now())
    ).one_or_none()


def list_break_glass(session: Session, owner: str) -> Sequence[BreakGlass]:
    return session.scalars(
        select(BreakGlass)
        .where(BreakGlass.readable_by(owner), BreakGlass.until > db_now())
        .order_by(BreakGlass.until, BreakGlass.name, BreakGlass.alias)
    ).all()


def put_break_glass(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    reason: str,
    seconds: float,
    author: str | None,
) -> BreakGlass:
    values = {
        "reason": reason,
        "author": author,
        "principal_id": acting_principal(),
        "at": db_now(),
        "until": db_now() + seconds,
    }
    session.execute(
        upsert_into(session, BreakGlass)
        .values(owner=owner, name=name, alias=alias, **values)
        .on_conflict_do_update(index_elements=["owner", "name", "alias"], set_=values)
    )
    return session.scalars(
        select(BreakGlass)
        .where(_of_alias(owner, name, alias))
        .execution_options(populate_existing=True)
    ).one()


def end_break_glass(session: Session, owner: str, name: str, alias: str) -> bool:
    """End a suspension; returns False if there is none now."""
    ended = session.execute(
        update(BreakGlass)
        .where(_of_alias(owner, name, alias), BreakGlass.until > db_now())
        .values(until=db_now())
        .returning(BreakGlass.until)
    )
    return ended.one_or_none() is not None
