"""Keys: only their hash is kept, and the database is asked at most once a second a key."""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Literal

import pytest
from sqlalchemy import event, select, update

from app.access import authentication, person_repository, repository, sessions
from app.access import service as keys
from app.access.authentication import (
    MAX_LOOKUPS_TOGETHER,
    REFUSED_FOR,
    BatchedLookups,
    KnownCallers,
)
from app.platform.background import TtlCache
from app.platform.callers import Caller, Credential
from app.platform.database import Database
from app.platform.errors import Invalid, NotFound, Unauthenticated, Unavailable
from app.platform.outage import OutageMemory
from app.platform.roles import Identity, RoleFile, Rule
from app.platform.tables import ApiKey
from tests.raising import raises
from tests.waiting import patience


def key_of(secret: str) -> Credential:
    """Return a key as a caller presents it."""
    return Credential.of("key", secret)


def caller_of(key: ApiKey) -> Caller:
    """Return who presents a key."""
    return Caller(
        owner=key.owner,
        scopes=frozenset(key.scopes),
        principal_id=key.principal_id,
        name=key.name,
        key_id=key.id,
    )


class Later:
    """Background tasks that wait for the test."""

    def __init__(self) -> None:
        self.works: list[Callable[[], object]] = []

    def __call__(self, work: Callable[[], object]) -> None:
        self.works.append(work)

    def do(self) -> int:
        works, self.works = self.works, []
        for work in works:
            work()
        return len(works)


def test_only_the_hash_is_kept(db: Database) -> None:
    key, secret = db.writing(keys.create, "ann", "laptop", ["score", "read"])
    with db.read() as session:
        row = session.scalars(select(ApiKey)).one()
    assert row.sha256 == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in str(vars(row))
    assert secret.startswith(row.prefix)
    assert len(row.prefix) < len(secret) / 4
    assert row.scopes == ["read", "score"]
    assert key.expires_at is None


def test_what_makes_no_key(db: Database) -> None:
    wrong: list[tuple[str, str, list[str], tuple[str, ...]]] = [
        ("ann", "k", ["read", "root"], ("scopes", "root")),
        ("ann", "k", [], ("scopes",)),
        ("Ann!", "k", ["read"], ("owner", "'Ann!'")),
        ("", "k", ["read"], ("owner", "''")),
        ("ann", "", ["read"], ("name", "''")),
        ("ann", "a\0b", ["read"], ("name", repr("a\0b"))),
    ]
    for owner, name, scopes, named in wrong:
        with raises(Invalid, *named):
            db.writing(keys.create, owner, name, scopes)
    assert db.reading(repository.list_page, "ann", limit=10, after=None).data == []


def test_lists_and_revoking_are_the_owner_s(db: Database) -> None:
    own = [db.writing(keys.create, "ann", str(i), ["read"])[0] for i in range(3)]
    # Made within one tick of the clock, their ids decide.
    made = [key.id for key in sorted(own, key=lambda key: (key.created_at, key.id))]
    db.writing(keys.create, "bob", "x", ["read"])
    page = db.reading(repository.list_page, "ann", limit=2, after=None)
    rest = db.reading(repository.list_page, "ann", limit=2, after=page.next)
    assert [key.id for key in page.data + rest.data] == made[::-1]
    for call in (keys.revoke, keys.get):
        with pytest.raises(NotFound):
            db.writing(call, "bob", made[0])
    db.writing(keys.revoke, "ann", made[0])
    first = db.reading(keys.get, "ann", made[0]).revoked_at
    db.writing(keys.revoke, "ann", made[0])
    assert db.reading(keys.get, "ann", made[0]).revoked_at == first is not None


def test_a_cache_asks_once(db: Database) -> None:
    key, secret = db.writing(keys.create, "ann", "k", ["read"])
    known = KnownCallers(db, Later(), OutageMemory(0.0), RoleFile(None))
    known.recent.seconds = 3600.0
    assert known.cached(key_of(secret)) is None
    caller = known.authenticate(key_of(secret))
    assert caller == caller_of(key)
    queries: list[object] = []
    event.listen(db.engine, "before_cursor_execute", lambda *args: queries.append(args))
    assert known.cached(key_of(secret)) is caller
    assert known.cached(key_of("rw_other")) is None
    assert queries == []


def test_a_cache_refuses_the_unknown_the_revoked_and_the_expired(db: Database) -> None:
    later = Later()
    known = KnownCallers(db, later, OutageMemory(0.0), RoleFile(None))
    with pytest.raises(Unauthenticated):
        known.authenticate(key_of("rw_unknown"))
    old, old_secret = db.writing(keys.create, "ann", "old", ["read"], expires_in_seconds=60)
    assert known.authenticate(key_of(old_secret))
    with db.write() as session:
        session.execute(update(ApiKey).where(ApiKey.id == old.id).values(expires_at=1.0))
    with pytest.raises(Unauthenticated):
        known.authenticate(key_of(old_secret))
    assert known.cached(key_of(old_secret)) is None
    key, secret = db.writing(keys.create, "ann", "k", ["read"])
    known.authenticate(key_of(secret))
    db.writing(keys.revoke, "ann", key.id)
    with pytest.raises(Unauthenticated):
        known.authenticate(key_of(secret))
    assert (
        known.recent.seconds < 1.0
    )  # the contract: refused within a second, wherever it was revoked


def test_a_refusal_is_remembered_for_a_while_and_bounded(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "TtlCache", partial(TtlCache, size=3))
    known = KnownCallers(db, Later(), OutageMemory(0.0), RoleFile(None))
    good, secret = db.writing(keys.create, "ann", "k", ["read"])
    assert not known.was_good(key_of(secret))
    known.authenticate(key_of(secret))
    assert known.was_good(key_of(secret))
    known.refuse_again(key_of(secret))  # does not
    known.refuse_again(key_of("rw_unknown"))  # nobody has asked yet
    with pytest.raises(Unauthenticated):
        known.authenticate(key_of("rw_unknown"))
    with pytest.raises(Unauthenticated):
        known.refuse_again(key_of("rw_unknown"))
    db.writing(keys.revoke, "ann", good.id)
    with pytest.raises(Unauthenticated):
        known.authenticate(key_of(secret))
    assert not known.was_good(key_of(secret))
    with pytest.raises(Unauthenticated):
        known.refuse_again(key_of(secret))
    later = time.monotonic() + REFUSED_FOR
    monkeypatch.setattr(time, "monotonic", lambda: later)
    known.refuse_again(key_of("rw_unknown"))
    for guess in ("1", "2", "3", "4"):
        with pytest.raises(Unauthenticated):
            known.authenticate(key_of(guess))
    known.refuse_again(key_of("1"))  # it was forgotten for others
    with pytest.raises(Unauthenticated):
        known.refuse_again(key_of("4"))


def test_a_person_who_gets_a_role_back_is_accepted_at_once(db: Database) -> None:
    ann = Identity("https://idp.example", "ann", "person", "Ann", frozenset({"risk"}), None)
    principal = db.writing(person_repository.put_principal, ann)
    caller = Caller("bank", frozenset({"read"}), principal, "person", ann.name)
    confirmed = sessions.Confirmation(ann, 3600.0, None, "encrypted")
    token = Credential.of("session", db.writing(sessions.start_of_person, caller, confirmed))
    roles = RoleFile(None)
    known = KnownCallers(db, Later(), OutageMemory(0.0), roles)
    with pytest.raises(Unauthenticated):
        known.authenticate(token)
    roles.content = lambda: (Rule(ann.issuer, "risk", "bank", "viewer"),)  # type: ignore[method-assign]  # no file to wait for
    known.refuse_again(token)  # does not
    assert known.authenticate(token).owner == "bank"


def test_a_use_is_noted_once_a_minute(db: Database) -> None:
    key, secret = db.writing(keys.create, "ann", "k", ["read"])
    later = Later()
    known = KnownCallers(db, later, OutageMemory(0.0), RoleFile(None))
    for _ in range(5):
        known.authenticate(key_of(secret))
    assert db.reading(keys.get, "ann", key.id).last_used_at is None
    assert later.do() == 1
    assert db.reading(keys.get, "ann", key.id).last_used_at is not None


def test_while_the_database_is_away() -> None:
    known = KnownCallers(
        Database("sqlite:////nowhere/rankwright.db"), Later(), OutageMemory(0.0), RoleFile(None)
    )
    with pytest.raises(Unavailable):
        known.authenticate(key_of("rw_x"))


def test_a_key_has_so_many_sessions_and_links(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signing in once more ends the oldest session of the key, and no other key's."""
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 2)

    def find(kind: Literal["session", "link"], token: str) -> Caller | None:
        return db.reading(repository.find_caller, Credential.of(kind, token))

    (one, secret), (other, _) = (db.writing(keys.create, "o", "k", ["read"]) for _ in range(2))
    elsewhere = db.writing(sessions.start, caller_of(other))
    link = db.writing(sessions.make_link, secret)
    tokens = [db.writing(sessions.start, caller_of(one)) for _ in range(4)]
    alive = [find("session", token) is not None for token in tokens]
    assert sum(alive) == 2
    assert alive[-1]
    assert find("session", elsewhere) is not None
    assert link is not None
    assert find("link", link) is not None


def test_a_good_key_waits_for_few_queries_behind_thousands_of_bad_ones(db: Database) -> None:
    _, secret = db.writing(keys.create, "ann", "k", ["read"])
    good = key_of(secret).sha256
    guesses = [key_of(f"rw_{n}").sha256 for n in range(3000)]
    asked: list[list[str]] = []
    may_answer = threading.Event()

    def find(hashes: list[str]) -> set[str]:
        asked.append(hashes)
        assert may_answer.wait(patience())
        return db.reading(repository.usable_among, hashes)

    async def ask_all() -> None:
        lookups = BatchedLookups(find)
        waiting = [asyncio.create_task(lookups.is_stored(each)) for each in guesses]
        await asyncio.sleep(0)  # all are in the queue
        last = asyncio.create_task(lookups.is_stored(good))
        again = asyncio.create_task(lookups.is_stored(good))
        await asyncio.sleep(0)
        again.cancel()  # a caller who leaves takes nothing from others with the same secret
        may_answer.set()
        assert await last
        assert not any(await asyncio.gather(*waiting))
        assert await lookups.is_stored(good)

    asyncio.run(ask_all())
    assert len(asked) <= 1 + math.ceil(len(guesses) / MAX_LOOKUPS_TOGETHER) + 2
    assert sum(map(len, asked)) == len(guesses) + 2


def test_an_error_of_a_batch_reaches_all_who_wait_and_the_next_is_asked() -> None:
    answers: list[Exception | set[str]] = [Unavailable("away"), {"b"}]

    def find(hashes: list[str]) -> set[str]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask_all() -> None:
        lookups = BatchedLookups(find)
        found = await asyncio.gather(
            *(lookups.is_stored(each) for each in "ab"), return_exceptions=True
        )
        assert [type(each) for each in found] == [Unavailable, Unavailable]
        assert await lookups.is_stored("b")

    asyncio.run(ask_all())


def test_what_is_usable_among_hashes(db: Database) -> None:
    key, secret = db.writing(keys.create, "ann", "k", ["read"])
    ended, old = db.writing(keys.create, "ann", "old", ["read"])
    db.writing(repository.revoke, "ann", ended.id)
    token = db.writing(sessions.start, caller_of(key))
    link = db.writing(sessions.make_link, secret)
    assert link is not None
    hashes = [key_of(each).sha256 for each in (secret, token, link)]
    others = [key_of(each).sha256 for each in (old, "rw_x")]
    assert db.reading(repository.usable_among, [*hashes, *others]) == set(hashes)
