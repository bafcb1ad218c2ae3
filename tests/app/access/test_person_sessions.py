"""Sessions of persons in the database: who refreshes one, and what ends it. On SQLite and on PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from app.access import person_repository as rows
from app.access import sessions
from app.access.person_repository import DueSession
from app.access.sessions import Confirmation
from app.platform.callers import Caller, Credential
from app.platform.database import Database
from app.platform.errors import Unauthenticated
from app.platform.roles import Identity
from app.platform.tables import BrowserSession

ISSUER = "https://idp.example"
ANN = Identity(ISSUER, "ann", "person", "Ann", frozenset({"risk"}), None)


def start(db: Database, identity: Identity = ANN, sid: str | None = None) -> str:
    principal = db.writing(rows.put_principal, identity)
    caller = Caller("bank", frozenset({"read"}), principal, "person", identity.name)
    confirmed = Confirmation(identity, 3600.0, sid, "encrypted")
    return db.writing(sessions.start_of_person, caller, confirmed)


def is_valid(db: Database, token: str) -> bool:
    return db.reading(rows.find_session, Credential.of("session", token)) is not None


def make_due(db: Database) -> None:
    with db.write() as session:
        session.execute(update(BrowserSession).values(refresh_at=1.0))


def test_a_principal_is_stored_once_with_its_latest_name(db: Database) -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = set(pool.map(lambda _: db.writing(rows.put_principal, ANN), range(8)))
    assert len(ids) == 1
    later = Identity(ISSUER, "ann", "service", "Ann B", frozenset(), None)
    assert {db.writing(rows.put_principal, later)} == ids
    assert db.reading(rows.find_principal, ISSUER, "ann") == (*ids, "Ann B")
    assert db.reading(rows.find_principal, ISSUER + "/", "ann") is None


def test_one_of_many_processes_refreshes_a_session(db: Database) -> None:
    tokens = [start(db) for _ in range(5)]
    assert not db.reading(rows.any_due)
    make_due(db)
    assert db.reading(rows.any_due)
    with ThreadPoolExecutor(4) as pool:
        claimed = list(pool.map(lambda _: db.writing(rows.claim_due, 3), range(8)))
    hashes = [each.sha256 for batch in claimed for each in batch]
    assert sorted(hashes) == sorted(Credential.of("session", each).sha256 for each in tokens)
    assert not db.reading(rows.any_due)


@pytest.mark.parametrize("is_lost", [False, True])
def test_the_result_counts_only_with_the_lease(db: Database, is_lost: bool) -> None:
    token = start(db)
    make_due(db)
    (due,) = db.writing(rows.claim_due, 10)
    if is_lost:
        make_due(db)
        db.writing(rows.claim_due, 10)
        due = DueSession(**{name: getattr(due, name) for name in due.__slots__} | {"lease": 5.0})
    until = due.created_at + 100.0
    db.writing(rows.store_refresh, due, "new", until, groups=["a"], expires_at=until)
    found = db.reading(rows.find_session, Credential.of("session", token))
    assert found is not None
    assert found.identity.groups == frozenset({"risk"} if is_lost else {"a"})
    db.writing(rows.end_refused, due, "refused")
    assert is_valid(db, token)  # its lease has ended with the first result


def test_a_session_that_has_ended_is_not_refreshed(db: Database) -> None:
    start(db)
    make_due(db)
    with db.write() as session:
        session.execute(update(BrowserSession).values(expires_at=2.0))
    assert not db.reading(rows.any_due)
    assert db.writing(rows.claim_due, 10) == []


def test_whom_a_logout_at_the_provider_ends(db: Database) -> None:
    bob = Identity(ISSUER, "bob", "person", "Bob", frozenset(), None)
    other = Identity("https://other.example", "ann", "person", "Ann", frozenset(), None)
    first, second = start(db, sid="1"), start(db, sid="2")
    kept = [start(db, bob, "3"), start(db, other, "1")]
    later = 1e12
    assert db.writing(rows.end_at_provider, ISSUER, "ann", "2", 1.0) == 0  # it began later
    assert db.writing(rows.end_at_provider, ISSUER, "bob", "1", later) == 0
    assert db.writing(rows.end_at_provider, ISSUER, None, "1", later) == 1
    assert (is_valid(db, first), is_valid(db, second)) == (False, True)
    assert db.writing(rows.end_at_provider, ISSUER, "ann", None, later) == 1
    assert not is_valid(db, second)
    assert all(is_valid(db, each) for each in kept)


def test_another_owner_takes_another_token(db: Database) -> None:
    token = start(db)
    new = db.writing(sessions.choose_owner, token, "shop")
    assert not is_valid(db, token)
    found = db.reading(rows.find_session, Credential.of("session", new))
    assert found is not None
    assert found.owner == "shop"
    with pytest.raises(Unauthenticated):
        db.writing(sessions.choose_owner, token, "bank")
