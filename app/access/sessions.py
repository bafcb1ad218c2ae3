"""Browser sessions of the console.

A browser has a random token in a cookie; the database has its SHA-256 and the principal. The session of a key ends with
the key. The session of a person ends unless the identity provider confirms it again in time. The token opens only the
console: no other route reads the cookie, and it is not a key.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

from app.access import person_repository, repository
from app.platform.callers import Caller, Credential
from app.platform.errors import Unauthenticated
from app.platform.roles import Identity
from app.platform.sql import Session, read_clock
from app.platform.tables import BrowserSession

SESSION_SECONDS = 12 * 3600.0
LINK_SECONDS = 3600.0
MAX_SESSIONS = 100
"""Sessions of a principal, and its links, that are valid at once; a newer one ends the oldest."""
BAD_LINK = "this sign-in link is unknown, already used, or more than an hour old"


def start(session: Session, caller: Caller) -> str:
    """Sign a browser in; the token for its cookie is stored nowhere. The session ends with the caller's key."""
    return _add(session, caller, SESSION_SECONDS, is_link=False)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What an identity provider states of a person at the sign-in, and what it takes to ask again."""

    identity: Identity
    valid_seconds: float
    """How long the session lasts without another confirmation."""
    provider_session: str | None = None
    refresh_token: str | None = None
    """Encrypted."""


def start_of_person(session: Session, caller: Caller, confirmed: Confirmation) -> str:
    """Sign a person's browser in for the caller's owner; returns the token for its cookie."""
    return _add(
        session,
        caller,
        min(SESSION_SECONDS, confirmed.valid_seconds),
        is_link=False,
        confirmed=confirmed,
    )


def refresh_seconds(valid_seconds: float) -> float:
    """Return the seconds until the next refresh."""
    return valid_seconds / 4


def choose_owner(session: Session, token: str, owner: str) -> str:
    """Let a person's session act for another owner; returns a new token. Raises Unauthenticated.

    So a page that was opened for the former owner cannot change anything.
    """
    new = secrets.token_urlsafe(32)
    old_sha256, new_sha256 = (Credential.of("session", each).sha256 for each in (token, new))
    if not person_repository.move(session, old_sha256, new_sha256, owner):
        raise Unauthenticated("the session has ended: sign in again")
    return new


def make_link(session: Session, secret: str) -> str | None:
    """Return a link that signs one browser in with this key, once, within an hour; None for a key that has ended."""
    caller = repository.find_caller(session, Credential.of("key", secret))
    return None if caller is None else _add(session, caller, LINK_SECONDS, is_link=True)


def follow_link(session: Session, token: str) -> str:
    """Use a link up; returns the session's token. Raises Unauthenticated."""
    link = Credential.of("link", token)
    caller = repository.find_caller(session, link)
    if caller is None or not repository.end_session(session, link):
        raise Unauthenticated(BAD_LINK)
    return start(session, caller)


def end(session: Session, token: str) -> None:
    repository.end_session(session, Credential.of("session", token))


def csrf_token(token: str) -> str:
    """Return the token that only a session's pages know and send with a change; it does not reveal the session's token.

    Each call masks it with another random pad: pages are compressed, so from the lengths of many answers a constant
    text could be guessed letter by letter (BREACH).
    """
    pad = secrets.token_bytes(_CSRF_BYTES)
    return (pad + _xor(pad, _csrf(token))).hex()


def is_csrf_token(token: str, given: str) -> bool:
    """Return True if `csrf_token` wrote this text for the session."""
    try:
        written = bytes.fromhex(given)
    except ValueError:
        return False
    pad, masked = written[:_CSRF_BYTES], written[_CSRF_BYTES:]
    return len(masked) == _CSRF_BYTES and hmac.compare_digest(_xor(pad, masked), _csrf(token))


_CSRF_BYTES = 32


def _csrf(token: str) -> bytes:
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).digest()


def _xor(pad: bytes, text: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(pad, text, strict=True))


def _add(
    session: Session,
    caller: Caller,
    seconds: float,
    *,
    is_link: bool,
    confirmed: Confirmation | None = None,
) -> str:
    """Store a session, or link, for so many seconds, and delete the oldest over the limit; returns the token."""
    token = secrets.token_urlsafe(32)
    now = read_clock(session)
    repository.keep_newest_sessions(session, caller, MAX_SESSIONS - 1, links=is_link)
    row = BrowserSession(
        sha256=Credential.of("link" if is_link else "session", token).sha256,
        principal_id=caller.principal_id,
        key_id=caller.key_id,
        is_link=is_link,
        created_at=now,
        expires_at=now + seconds,
    )
    if confirmed is not None:
        row.owner = caller.owner
        row.groups = sorted(confirmed.identity.groups)
        row.provider_session = confirmed.provider_session
        row.refresh_token = confirmed.refresh_token
        if confirmed.refresh_token is not None:
            row.refresh_at = now + refresh_seconds(confirmed.valid_seconds)
    session.add(row)
    session.flush()
    return token
