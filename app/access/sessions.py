"""Browser sessions of the console, signed in with a key.

A browser holds a random token in a cookie; the database holds its SHA-256 and the key. So the cookie opens only the
console, and ends with the key.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from app.access import repository
from app.platform.errors import Unauthenticated
from app.platform.sql import Session
from app.platform.tables import ApiKey, BrowserSession

SESSION_SECONDS = 12 * 3600.0
LINK_SECONDS = 3600.0
MAX_SESSIONS = 100
"""Sessions of a key, and its links, that are valid at once; a newer one ends the oldest."""
BAD_LINK = "this sign-in link is unknown, already used, or more than an hour old"


def start(session: Session, key_id: str) -> str:
    """Sign a browser in with this key; returns the token for its cookie, which is stored nowhere else."""
    return _add(session, key_id, SESSION_SECONDS, is_link=False)


def make_link(session: Session, secret: str) -> str | None:
    """Return the token of a link that signs one browser in with this key, once, within an hour; None for a key that
    has ended.
    """
    key = repository.find_usable(session, hash_of(secret))
    return None if key is None else _add(session, key.id, LINK_SECONDS, is_link=True)


def find_link(session: Session, token: str) -> ApiKey | None:
    """Return the key of a sign-in link; None if the link or the key has ended. Nothing is written."""
    return repository.find_key_of_session(session, hash_of(token), link=True)


def follow_link(session: Session, token: str) -> str:
    """Sign a browser in by a link, which is used up; returns the session's token. Raises Unauthenticated."""
    key_id = repository.end_session(session, hash_of(token), link=True)
    if key_id is None:
        raise Unauthenticated(BAD_LINK)
    return start(session, key_id)


def find_key(session: Session, token: str) -> ApiKey | None:
    """Return the key of a browser's token; None if the session or the key has ended."""
    return repository.find_key_of_session(session, hash_of(token))


def end(session: Session, token: str) -> None:
    """Sign a browser out."""
    repository.end_session(session, hash_of(token), link=False)


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


def _add(session: Session, key_id: str, seconds: float, *, is_link: bool) -> str:
    token = secrets.token_urlsafe(32)
    now = repository.now(session)
    repository.keep_newest_sessions(session, key_id, MAX_SESSIONS - 1, links=is_link)
    session.add(
        BrowserSession(
            sha256=hash_of(token),
            key_id=key_id,
            is_link=is_link,
            created_at=now,
            expires_at=now + seconds,
        )
    )
    session.flush()
    return token


def hash_of(token: str) -> str:
    """Return the SHA-256 by which the database knows a token or a secret, in hexadecimal digits."""
    return hashlib.sha256(token.encode()).hexdigest()
