"""Idempotency-Key: the first answer to a creating POST is replayed to its equals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.http import repository as rows
from app.platform.database import Database, again_after_deadlock
from app.platform.errors import Invalid
from app.platform.sql import Json

MAX_KEY = 255
KEPT_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered, now or the first time."""

    status_code: int
    response: Json
    replayed: bool


@again_after_deadlock
def replay_or_run(
    db: Database,
    owner: str,
    route: str,
    key: str | None,
    fingerprint: str,
    work: Callable[[Session], tuple[int, Json]],
) -> Answer:
    """Run `work` in one transaction with the key, or replay the answer that the same key and body got.

    Concurrent equals wait for the first. If it fails, nothing is kept and the next of them runs. The same key
    with another `fingerprint` (hash of the body) is `Invalid`. Without a key, `work` simply runs. It runs again, from
    nothing, in the rare case of a deadlock.
    """
    if key is not None:
        _check(key)
    with db.write() as session:
        if key is None:
            status_code, response = work(session)
            return Answer(status_code, response, False)
        # PostgreSQL makes the second insert of a key wait for the first one's transaction; SQLite's writers are
        # alone. So whoever inserts runs, and whoever finds a row finds a finished one.
        if rows.reserve(session, owner, route, key, fingerprint):
            status_code, response = work(session)
            rows.answer(session, owner, route, key, status_code=status_code, response=response)
            return Answer(status_code, response, False)
        first = rows.find(session, owner, route, key)
        assert first is not None
        if first.fingerprint != fingerprint:
            raise Invalid(
                f"an Idempotency-Key stands for one body; {key!r} was used with another",
                code="idempotency_key_reused",
            )
        return Answer(first.status_code, first.response, True)


def is_known(session: Session, owner: str, route: str, key: str) -> bool:
    """Whether an answer is kept under the key: then a request may be a replay, which makes nothing."""
    return rows.find(session, owner, route, key) is not None


def _check(key: str) -> None:
    if not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise Invalid(
            f"Idempotency-Key must be 1 to {MAX_KEY} printable ASCII characters, got {key[:100]!r}"
            f" ({len(key)} characters)",
            code="invalid_idempotency_key",
        )


class _Undo(Exception):
    """Ends the transaction without a commit."""


@again_after_deadlock
def rehearse(db: Database, work: Callable[[Session], object]) -> None:
    """Run `work` in a transaction that is rolled back; what it raises comes through."""
    try:
        with db.write() as session:
            work(session)
            raise _Undo
    except _Undo:
        pass
