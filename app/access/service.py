"""Creation, rotation and revocation of API keys, and the checks of owners' quotas. Of a key only the hash is stored."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from app.access import repository
from app.platform import resources
from app.platform.audit import allow_over_quota
from app.platform.callers import Actor, Caller, Credential, acting_as
from app.platform.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    TooMany,
    Unavailable,
    check_name,
    counted,
    is_plain,
    shown,
)
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Page, Session
from app.platform.tables import ApiKey, Principal

OPERATOR = "operator"
SCOPES = ("read", "train", "score", "outcomes", "admin", OPERATOR)
MAX_GRACE_SECONDS = 30 * 86_400.0
"""Longest time in seconds that a key may stay valid after its rotation."""
_PREFIX = "rw_"
_SHOWN = len(_PREFIX) + 6


def create(
    session: Session,
    owner: str,
    name: str,
    scopes: Iterable[str],
    *,
    expires_in_seconds: float | None = None,
    by: Caller | None = None,
    principal_id: str | None = None,
) -> tuple[ApiKey, str]:
    """Create a key; returns it and its secret, of which only the SHA-256 is stored.

    `by` is the caller; None on the server's command line. The key is a new principal unless `principal_id` names the
    one whose earlier key it replaces.
    """
    chosen = sorted(set(scopes), key=lambda scope: (*SCOPES, scope).index(scope))
    unknown = [scope for scope in chosen if scope not in SCOPES]
    if unknown or not chosen:
        raise Invalid(
            f"scopes must be one or more of {', '.join(SCOPES)}, got {', '.join(unknown) or 'none'}"
        )
    if by is not None and OPERATOR in set(chosen) - by.scopes:
        has = ", ".join(sorted(by.scopes))
        raise Forbidden(
            f"a key with the scope {OPERATOR!r} can be created only with a key that has this scope, or on "
            f"the server (rankwright keys create); the key has {has}"
        )
    check_name("owner", owner)
    if not 1 <= len(name) <= 255 or not is_plain(name):
        raise Invalid(
            f"name must have 1 to 255 characters and no control characters, got {shown(name)}"
        )
    secret = _PREFIX + secrets.token_urlsafe(32)
    now = repository.now(session)
    key_id = new_id("key")
    if principal_id is None:
        principal_id = new_id("prn")
        session.add(
            Principal(
                id=principal_id,
                kind="key",
                issuer=Principal.ISSUER,
                subject=key_id,
                created_at=now,
            )
        )
        session.flush()
    key = ApiKey(
        id=key_id,
        principal_id=principal_id,
        owner=owner,
        name=name,
        prefix=secret[:_SHOWN],
        sha256=Credential.of("key", secret).sha256,
        scopes=chosen,
        created_at=now,
        expires_at=None if expires_in_seconds is None else now + expires_in_seconds,
        last_used_at=None,
        revoked_at=None,
        successor_id=None,
    )
    session.add(key)
    session.flush()
    return key, secret


def rotate(
    session: Session,
    owner: str,
    key_id: str,
    grace_seconds: float = 0.0,
    by: Caller | None = None,
) -> tuple[ApiKey, str]:
    """Create a key's successor with the same name, scopes and lifetime. The key itself ends after the grace period.

    The grace period never extends the key's own lifetime. A key has at most one successor: with two, nobody would know
    the first one's secret.
    """
    if not 0.0 <= grace_seconds <= MAX_GRACE_SECONDS:
        raise Invalid(
            f"grace_seconds must be from 0 to {MAX_GRACE_SECONDS:g}, got {grace_seconds:g}"
        )
    allow_over_quota(session)  # a leaked key must be replaced at once
    old = repository.get(session, owner, key_id, lock=True)
    if old is None:
        raise NotFound(f"there is no key {key_id!r}")
    now = repository.now(session)
    end = math.inf if old.expires_at is None else old.expires_at
    if old.revoked_at is not None or end <= now:
        how = "has expired" if old.revoked_at is None else "is revoked"
        raise Conflict(f"only a valid key can be rotated; {key_id} {how}", code="key_not_usable")
    if old.successor_id is not None:
        raise Conflict(
            f"a key can be rotated only once; {key_id} has the successor {old.successor_id}",
            code="key_rotated",
        )
    lifetime = None if old.expires_at is None else old.expires_at - old.created_at
    made = create(
        session,
        owner,
        old.name,
        old.scopes,
        expires_in_seconds=lifetime,
        by=by,
        principal_id=old.principal_id,
    )
    old.successor_id = made[0].id
    if grace_seconds > 0.0:
        old.expires_at = min(end, now + grace_seconds)
    else:
        old.revoked_at = now
    session.flush()
    return made


def administers_all(session: Session, caller: Caller) -> bool:
    """Return True if the caller is an admin and no other owner has or had a key."""
    return "admin" in caller.scopes and not repository.has_others(session, caller.owner)


def get(session: Session, owner: str, key_id: str) -> ApiKey:
    """Return the owner's key with this id. Raises NotFound."""
    key = repository.get(session, owner, key_id)
    if key is None:
        raise NotFound(f"there is no key {key_id!r}")
    return key


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[ApiKey]:
    """Return a page of the owner's keys, newest first, revoked ones included."""
    return repository.list_page(session, owner, limit=limit, after=after)


def revoke(session: Session, owner: str, key_id: str) -> None:
    """Revoke the key. Processes that have cached it refuse it within a second."""
    if not repository.revoke(session, owner, key_id):
        raise NotFound(f"there is no key {key_id!r}")


FREE_ROW_BYTES = 2**20
"""An owner's rows count against the quota of bytes only as far as they take more than this."""
QUEUE_RETRY_SECONDS = 10
BYTES_RETRY_SECONDS = 60


def admit(session: Session, settings: Settings, owner: str, adds_bytes: int = 0) -> None:
    """Check that the owner may queue another job whose upload has `adds_bytes` bytes.

    The counts cannot change before the transaction ends: other transactions of the owner wait. Raises TooMany,
    Unavailable or OutOfSpace.
    """
    repository.take_turn(session, owner)
    check(session, settings, owner, adds_bytes)


def admit_bytes(session: Session, settings: Settings, owner: str, adds_bytes: int = 0) -> None:
    """Check that the owner may store `adds_bytes` more, which no job reads yet; as `admit` does."""
    repository.take_turn(session, owner)
    resources.check(settings)
    check_bytes(session, settings, owner, adds_bytes)


def check(session: Session, settings: Settings, owner: str, adds_bytes: int = 0) -> None:
    """Make the checks of `admit` without a lock. The result may refuse an upload before it is sent, but not
    accept one.
    """
    resources.check(settings)
    most = settings.max_queued_jobs
    in_all = repository.queued_in_all(session, most)
    queued = repository.queued_jobs(session, owner)
    limit = settings.quota_queued_jobs
    if limit is None:  # no more than are left free, so that no owner fills the queue for the others
        limit = max(1, math.ceil((most - (in_all - queued)) / 2))
    if queued >= limit:
        what = counted(limit, "queued job", "queued jobs")
        raise _exceeded("queued_jobs", what, limit, queued, retry_after=QUEUE_RETRY_SECONDS)
    check_bytes(session, settings, owner, adds_bytes)
    if in_all >= most:
        raise Unavailable(
            f"the service queues at most {counted(most, 'job', 'jobs')}, and the queue is full: try again later",
            code="queue_full",
            retry_after=QUEUE_RETRY_SECONDS,
        )


def check_bytes(session: Session, settings: Settings, owner: str, adds_bytes: int) -> None:
    """Raise TooMany if the owner may not store `adds_bytes` more in files. Rows are not measured here: `check_quota`
    checks them before the transaction commits.
    """
    if settings.quota_bytes is not None:
        files = repository.stored_bytes(session, owner)
        _check_bytes(settings.quota_bytes, files, f"{files} in files", adds_bytes)


@dataclass(frozen=True, slots=True)
class Usage:
    """What an owner stores, in bytes: its files, and the database rows that it can delete."""

    files: int
    rows: int

    @property
    def counted(self) -> int:
        """The number of bytes that count against the owner's quota."""
        return self.files + max(0, self.rows - FREE_ROW_BYTES)


def check_quota(settings: Settings, usage: Usage) -> None:
    """Check that an owner with this usage may store anything more. Raises TooMany or OutOfSpace."""
    resources.check(settings)
    if settings.quota_bytes is not None:
        has = (
            f"{usage.files} in files and {usage.rows} in rows ({FREE_ROW_BYTES} of these are free)"
        )
        _check_bytes(settings.quota_bytes, usage.counted, has)


def _check_bytes(limit: int, stored: int, has: str, adds_bytes: int = 0) -> None:
    """Raise TooMany if the stored bytes and `adds_bytes` exceed the limit. `has` describes the stored bytes in the
    message.
    """
    if stored + adds_bytes > limit:
        more = f" and needs {adds_bytes} more" if adds_bytes else ""
        advice = (
            "delete datasets, uploads, models, aliases, evaluations, comparisons or batch scores, and "
            "then empty the trash, which also counts"
        )
        raise _exceeded(
            "bytes",
            f"{limit} stored bytes",
            limit,
            stored,
            f"{has}{more}: {advice}",
            retry_after=BYTES_RETRY_SECONDS,
        )


def _exceeded(
    quota: str, what: str, limit: int, value: int, has: str | None = None, *, retry_after: int
) -> TooMany:
    """Return the error for an exceeded quota: `what` is the limit in words, `has` the current value in words."""
    detail = f"an owner can have at most {what}; this one has {has or value}"
    return TooMany(
        detail,
        code="quota_exceeded",
        errors=[{"quota": quota, "limit": limit, "value": value, "detail": detail}],
        retry_after=retry_after,
    )


def by_command(owner: str, command: str) -> AbstractContextManager[None]:
    """Record the changes of a block in the owner's audit log, as made by this command."""
    return acting_as(Actor(owner, None, None, command, partial(new_id, "aud")))
