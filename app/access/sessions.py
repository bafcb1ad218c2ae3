"""Browser sessions of the console.

A browser has a random token in a cookie; the database has its SHA-256, the principal, and the key that started the
session, with which the session ends. The token opens only the console: no other route reads the cookie, and it is not a
key.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from app.access import repository
from app.platform.callers import Caller, Credential
from app.platform.errors import Unauthenticated
from app.platform.sql import Session
from app.platform.tables import BrowserSession

SESSION_SECONDS = 12 * 3600.0
LINK_SECONDS = 3600.0
MAX_SESSIONS = 100
"""Sessions of a principal, and its links, that are valid at once; a newer one ends the oldest."""
BAD_LINK = "this sign-in link is unknown, already used, or more than an hour old"


def start(session: Session, caller: Caller) -> str:
    """Sign a browser in; returns the token for its cookie, which is stored nowhere else. The session ends with the
    caller's key.
    """
    return _add(session, caller, SESSION_SECONDS, is_link=False)


def make_link(session: Session, secret: str) -> str | None:
    """Return the token of a link that signs one browser in with this key, once, within an hour; None for a key that
    has ended.
    """
    caller = repository.find_caller(session, Credential.of("key", secret))
    return None if caller is None else _add(session, caller, LINK_SECONDS, is_link=True)


def follow_link(session: Session, token: str) -> str:
    """Sign a browser in by a link, which is used up; returns the session's token. Raises Unauthenticated."""
    link = Credential.of("link", token)
    caller = repository.find_caller(session, link)
    if caller is None or not repository.end_session(session, link):
        raise Unauthenticated(BAD_LINK)
    return start(session, caller)


def end(session: Session, token: str) -> None:
    """Sign a browser out."""
    repository.end_session(session, Credential.of("session", token))


def csrf_token(token: str) -> str:
    """Return the token that a session's pages send with a change. Only they know it, and it does not reveal the
    session's token.

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


def _add(session: Session, caller: Caller, seconds: float, *, is_link: bool) -> str:
    """Store a new session, or link, of a caller for so many seconds, and delete its oldest ones over the limit; returns
    the token.
    """
    token = secrets.token_urlsafe(32)
    now = repository.now(session)
    repository.keep_newest_sessions(session, caller, MAX_SESSIONS - 1, links=is_link)
    session.add(
        BrowserSession(
            sha256=Credential.of("link" if is_link else "session", token).sha256,
            principal_id=caller.principal_id,
            key_id=caller.key_id,
            is_link=is_link,
            created_at=now,
            expires_at=now + seconds,
        )
    )
    session.flush()
    return token
