"""Queries for the people and service accounts of identity providers, and for the browser sessions of people."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, exists, select, update

from app.access.repository import valid_session
from app.platform.audit import Outcome, record_of_service
from app.platform.callers import Credential
from app.platform.ids import new_id
from app.platform.roles import Identity
from app.platform.sql import Session, db_now, upsert_into
from app.platform.tables import BrowserSession, Principal

LEASE_SECONDS = 60.0
"""How long a process may take to refresh a session before another one tries."""


@dataclass(frozen=True, slots=True)
class PersonSession:
    """A valid session of a person, who acts for `owner` in it."""

    identity: Identity
    principal_id: str
    owner: str


@dataclass(frozen=True, slots=True)
class DueSession:
    """A session that the process must refresh, and the lease with which it does so."""

    sha256: str
    principal_id: str
    issuer: str
    subject: str
    owner: str
    refresh_token: str
    """Encrypted."""
    created_at: float
    lease: float


def find_principal(session: Session, issuer: str, subject: str) -> tuple[str, str | None] | None:
    """Return id and name."""
    found = session.execute(
        select(Principal.id, Principal.name).where(
            Principal.issuer == issuer, Principal.subject == subject
        )
    ).one_or_none()
    return None if found is None else (found.id, found.name)


def put_principal(session: Session, identity: Identity) -> str:
    """Return the id; a new principal is created, and the name updated."""
    new = upsert_into(session, Principal).values(
        id=new_id("prn"),
        kind=identity.kind,
        issuer=identity.issuer,
        subject=identity.subject,
        name=identity.name,
        created_at=db_now(),
    )
    statement = new.on_conflict_do_update(
        index_elements=["issuer", "subject"], set_={"name": new.excluded.name}
    )
    id_: str = session.execute(statement.returning(Principal.id)).scalar_one()
    return id_


def find_session(session: Session, credential: Credential) -> PersonSession | None:
    """Return None if it is unknown, has ended, or was started by a key."""
    found = session.execute(
        select(BrowserSession, Principal)
        .join(Principal, Principal.id == BrowserSession.principal_id)
        .where(*valid_session(credential), BrowserSession.key_id.is_(None))
    ).one_or_none()
    if found is None:
        return None
    row, principal = found
    return PersonSession(
        Identity(
            principal.issuer,
            principal.subject,
            "person",
            principal.name or principal.subject,
            frozenset(row.groups or ()),
            row.expires_at,
        ),
        principal.id,
        row.owner or "",
    )


def issuer_of(session: Session, principal_id: str) -> str | None:
    return session.scalar(select(Principal.issuer).where(Principal.id == principal_id))


def move(session: Session, old_sha256: str, new_sha256: str, owner: str) -> bool:
    """Replace token and owner; returns False if the session has ended."""
    moved = session.scalar(
        update(BrowserSession)
        .where(BrowserSession.sha256 == old_sha256, BrowserSession.expires_at > db_now())
        .values(sha256=new_sha256, owner=owner)
        .returning(BrowserSession.sha256),
        execution_options={"synchronize_session": False},
    )
    return moved is not None


def any_due(session: Session) -> bool:
    return bool(session.scalar(select(exists().where(*_due()))))


def _due() -> tuple[ColumnElement[bool], ...]:
    return BrowserSession.refresh_at <= db_now(), BrowserSession.expires_at > db_now()


def claim_due(session: Session, limit: int) -> list[DueSession]:
    """Return sessions to refresh. No other process gets them for `LEASE_SECONDS`."""
    due = (
        select(BrowserSession.sha256)
        .where(*_due())
        .order_by(BrowserSession.refresh_at)
        .limit(limit)
    )
    claimed = session.scalars(
        update(BrowserSession)
        # checked again, because another process may have claimed one meanwhile
        .where(BrowserSession.sha256.in_(due), *_due())
        .values(refresh_at=db_now() + LEASE_SECONDS)
        .returning(BrowserSession),
        execution_options={"populate_existing": True},
    ).all()
    found = {each.principal_id for each in claimed}
    principals = {
        each.id: each for each in session.scalars(select(Principal).where(Principal.id.in_(found)))
    }
    return [
        DueSession(
            each.sha256,
            each.principal_id,
            principals[each.principal_id].issuer,
            principals[each.principal_id].subject,
            each.owner or "",
            each.refresh_token or "",
            each.created_at,
            each.refresh_at or 0.0,
        )
        for each in claimed
    ]


def store_refresh(
    session: Session,
    due: DueSession,
    refresh_token: str,
    refresh_at: float,
    *,
    groups: Collection[str] | None = None,
    expires_at: float | None = None,
) -> None:
    """Store a refresh, unless the lease was lost. Without `groups` they stay; without `expires_at`: not confirmed."""
    values: dict[str, object] = {"refresh_token": refresh_token, "refresh_at": refresh_at}
    if groups is not None:
        values["groups"] = sorted(groups)
    if expires_at is not None:
        values["expires_at"] = expires_at
    session.execute(
        update(BrowserSession).where(*_leased(due)).values(values),
        execution_options={"synchronize_session": False},
    )


def end_refused(session: Session, due: DueSession, why: str) -> None:
    """Delete a session whose refresh was refused, and record why, unless the lease was lost."""
    ended = session.execute(
        delete(BrowserSession).where(*_leased(due)).returning(BrowserSession.sha256),
        execution_options={"synchronize_session": False},
    )
    if ended.first() is not None:
        summary = f"Ended the session of {due.subject}: {why}"
        record_of_service(session, "ended session", Outcome.DONE, summary, owner=due.owner)


def _leased(due: DueSession) -> tuple[ColumnElement[bool], ...]:
    return BrowserSession.sha256 == due.sha256, BrowserSession.refresh_at == due.lease


def end_at_provider(
    session: Session, issuer: str, subject: str | None, sid: str | None, before: float
) -> int:
    """Delete sessions of a subject, of a provider's session, or of both, that began before a time."""
    principals = select(Principal.id).where(Principal.issuer == issuer)
    if subject is not None:
        principals = principals.where(Principal.subject == subject)
    ended = delete(BrowserSession).where(
        BrowserSession.principal_id.in_(principals),
        BrowserSession.key_id.is_(None),
        BrowserSession.created_at < before,
    )
    if sid is not None:
        ended = ended.where(BrowserSession.provider_session == sid)
    gone = session.scalars(
        ended.returning(BrowserSession.sha256),
        execution_options={"synchronize_session": False},
    )
    return len(gone.all())
