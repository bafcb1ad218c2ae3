"""A principal has one id in sessions, the audit log and revisions, whatever key it uses."""

from __future__ import annotations

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.access import repository, sessions
from app.access import service as keys
from app.platform.callers import Actor, Caller, Credential, acting_as
from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.sql import db_now
from app.platform.tables import (
    ApiKey,
    AuditEntry,
    BrowserSession,
    ModelAliasHistory,
    Principal,
    ReasonCodes,
)

KINDS = ("key", "session", "link")


def find(db: Database, kind: str, secret: str) -> Caller | None:
    """Return who presents this secret."""
    return db.reading(repository.find_caller, Credential.of(kind, secret))  # type: ignore[arg-type]


def sign_in(db: Database, key: ApiKey) -> str:
    """Return the token of a new session."""
    caller = Caller(
        owner=key.owner,
        scopes=frozenset(key.scopes),
        principal_id=key.principal_id,
        name=key.name,
        key_id=key.id,
    )
    return db.writing(sessions.start, caller)


def actor_of(caller: Caller) -> Actor:
    """Return a caller who changes something."""
    return Actor(caller.owner, caller.principal_id, caller.key_id, "PUT /x", lambda: new_id("aud"))


@pytest.fixture
def caller(db: Database) -> Caller:
    """The caller of a key that was rotated twice."""
    key, _ = db.writing(keys.create, "ann", "batch", ["read", "train"])
    for _ in range(2):
        key, secret = db.writing(keys.rotate, "ann", key.id, 60.0)
    found = find(db, "key", secret)
    assert found is not None
    assert found.key_id == key.id
    return found


def test_keys_that_replace_each_other_are_one_principal(db: Database, caller: Caller) -> None:
    other, _ = db.writing(keys.create, "ann", "other", ["read"])
    of_ann = db.reading(repository.list_page, "ann", limit=10, after=None).data
    assert {key.principal_id for key in of_ann if key.name == "batch"} == {caller.principal_id}
    assert other.principal_id != caller.principal_id
    with db.read() as session:
        rows = {row.id: row for row in session.scalars(select(Principal))}
    first = min((key for key in of_ann if key.name == "batch"), key=lambda key: key.created_at)
    assert len(rows) == 2
    assert rows[str(caller.principal_id)].subject == first.id


def test_a_subject_of_an_issuer_is_one_principal(db: Database, caller: Caller) -> None:
    with db.read() as session:
        row = session.get(Principal, caller.principal_id)
    assert row is not None

    def add(session: Session) -> None:
        session.add(
            Principal(
                id=new_id("prn"),
                kind=row.kind,
                issuer=row.issuer,
                subject=row.subject,
                created_at=db_now(),
            )
        )
        session.flush()

    with pytest.raises(IntegrityError):
        db.writing(add)


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_of_one_kind_is_none_of_another(db: Database, kind: str) -> None:
    key, secret = db.writing(keys.create, "ann", "k", ["read"])
    link = db.writing(sessions.make_link, secret)
    assert link is not None
    secrets = {
        "key": secret,
        "session": sign_in(db, key),
        "link": link,
    }
    for each in KINDS:
        found = find(db, each, secrets[kind])
        if each == kind:
            assert found is not None
            assert (found.principal_id, found.key_id) == (key.principal_id, key.id)
        else:
            assert found is None


def test_sessions_audit_and_revisions_name_the_principal(db: Database, caller: Caller) -> None:
    def change(session: Session) -> None:
        sessions.start(session, caller)
        session.add(ReasonCodes(owner="ann", name="m", revision=1, entries=[], at=db_now()))
        session.add(
            ModelAliasHistory(
                owner="ann",
                name="m",
                alias="live",
                revision=1,
                model_id="mdl_1",
                model_version=1,
                change="set",
                guarantee=None,
                cutoff=None,
                memo=None,
                author=caller.name,
                at=db_now(),
            )
        )

    with acting_as(actor_of(caller)):
        db.writing(change)
    with db.read() as session:
        for table in (BrowserSession, AuditEntry, ReasonCodes, ModelAliasHistory):
            found = session.scalars(select(table.principal_id)).all()
            assert found == [caller.principal_id], table


def test_the_service_and_its_command_line_are_no_principal(db: Database) -> None:
    def change(session: Session) -> None:
        session.add(ReasonCodes(owner="ann", name="m", revision=1, entries=[], at=db_now()))

    db.writing(change)
    with keys.by_command("ann", "rankwright keys create"):
        db.writing(keys.create, "ann", "k", ["read"])
    with db.read() as session:
        assert session.scalars(select(ReasonCodes.principal_id)).all() == [None]
        assert session.scalars(select(AuditEntry.principal_id)).all() == [None]


def test_a_session_ends_with_its_key_and_not_with_another_of_the_principal(db: Database) -> None:
    old, _ = db.writing(keys.create, "ann", "k", ["read"])
    token = sign_in(db, old)
    new, _ = db.writing(keys.rotate, "ann", old.id, 60.0)
    later = sign_in(db, new)
    assert find(db, "session", token) is not None
    db.writing(keys.revoke, "ann", old.id)
    assert find(db, "session", token) is None
    found = find(db, "session", later)
    assert found is not None
    assert found.key_id == new.id
