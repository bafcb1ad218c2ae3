"""Creation, rotation and revocation of API keys. Of a key only the hash is stored."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import cast

from app.access import quotas, repository
from app.platform.audit import allow_over_quota, describe
from app.platform.callers import Actor, Caller, Credential, PrincipalKind, acting_as
from app.platform.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    check_name,
    invalid,
    is_plain,
    shown,
)
from app.platform.ids import new_id
from app.platform.roles import Identity, Rule, caller_of
from app.platform.sql import Session, read_clock
from app.platform.tables import ApiKey, Principal

OPERATOR = "operator"
SCOPES = ("read", "train", "score", "outcomes", "approve", "admin", OPERATOR)
MAX_GRACE_SECONDS = 30 * 86_400.0
"""Longest time in seconds that a key may stay valid after its rotation."""
KEY_PREFIX = "rw_"
_SHOWN = len(KEY_PREFIX) + 6


def create(
    session: Session,
    owner: str,
    name: str,
    scopes: Iterable[str],
    *,
    expires_in_seconds: float | None = None,
    holder_id: str | None = None,
    by: Caller | None = None,
    principal_id: str | None = None,
    over_quota: bool = False,
) -> tuple[ApiKey, str]:
    """Create a key; returns it and its secret, of which only the SHA-256 is stored.

    `by` is the caller; None on the server's command line, which works over the quota of keys, as rotation does
    (`over_quota`). The key is for the principal `holder_id`; by default, for its creator. It is a new principal unless
    `principal_id` names the one whose earlier key it replaces. Raises TooMany for the quota.
    """
    chosen = sorted(set(scopes), key=lambda scope: (*SCOPES, scope).index(scope))
    unknown = [scope for scope in chosen if scope not in SCOPES]
    if unknown or not chosen:
        raise Invalid(
            f"scopes must be one or more of {', '.join(SCOPES)}, got {', '.join(unknown) or 'none'}"
        )
    if by is not None and OPERATOR in set(chosen) - by.scopes:
        raise Forbidden(
            f"a key with the scope {OPERATOR!r} can be created only with a key that has this scope, or on "
            f"the server (rankwright keys create); {by.has()}"
        )
    check_name("owner", owner)
    if not 1 <= len(name) <= 255 or not is_plain(name):
        raise Invalid(
            f"name must have 1 to 255 characters and no control characters, got {shown(name)}"
        )
    if holder_id is not None and not repository.is_known_at(session, owner, holder_id):
        raise invalid(
            "/holder_id",
            "holder_id must be the id of a person or a service account that has signed in, or of the principal of a "
            f"key of this owner (principal_id of GET /v1/me); got {shown(holder_id)}",
        )
    if by is not None and holder_id is None and "approve" in chosen:
        raise invalid(
            "/holder_id",
            "a key with the scope 'approve' needs holder_id, the principal that it is for: nobody can approve their "
            "own requests with it",
        )
    if by is not None and not over_quota:
        quotas.admit_one(session, owner, "keys")
    secret = KEY_PREFIX + secrets.token_urlsafe(32)
    now = read_clock(session)
    key_id = new_id("key")
    if principal_id is None:
        principal_id = new_id("prn")
        session.add(
            Principal(
                id=principal_id,
                kind="key",
                issuer=Principal.ISSUER,
                subject=key_id,
                name=name,
                created_by=None if by is None else by.principal_id,
                created_at=now,
            )
        )
        session.flush()
    key = ApiKey(
        id=key_id,
        principal_id=principal_id,
        holder_id=holder_id,
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
    ends = "" if expires_in_seconds is None else f", for {expires_in_seconds:g} s"
    describe(session, f"Key {name}: new, with {', '.join(chosen)}{ends}")
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

    The successor is the same principal only if nobody else learns its secret. Any other caller could approve their own
    requests with it: then it is a new principal, created by the caller for the one that the old key was for.
    """
    if not 0.0 <= grace_seconds <= MAX_GRACE_SECONDS:
        raise Invalid(
            f"grace_seconds must be from 0 to {MAX_GRACE_SECONDS:g}, got {grace_seconds:g}"
        )
    allow_over_quota(session)  # a leaked key must be replaced at once
    old = repository.get(session, owner, key_id, lock=True)
    if old is None:
        raise NotFound(f"there is no key {key_id!r}")
    now = read_clock(session)
    end = math.inf if old.expires_at is None else old.expires_at
    if old.revoked_at is not None or end <= now:
        how = "has expired" if old.revoked_at is None else "is revoked"
        raise Conflict(f"only a valid key can be rotated; {key_id} {how}", code="key_not_usable")
    if old.successor_id is not None:
        raise Conflict(
            f"a key can be rotated only once; {key_id} has the successor {old.successor_id}",
            code="key_rotated",
        )
    same = repository.same_person
    is_own = by is None or (same(session, by.principal_id or "") <= same(session, old.principal_id))
    lifetime = None if old.expires_at is None else old.expires_at - old.created_at
    made = create(
        session,
        owner,
        old.name,
        old.scopes,
        expires_in_seconds=lifetime,
        holder_id=old.holder_id if is_own else old.holder_id or old.principal_id,
        by=by,
        principal_id=old.principal_id if is_own else None,
        over_quota=True,
    )
    old.successor_id = made[0].id
    if grace_seconds > 0.0:
        old.expires_at = min(end, now + grace_seconds)
    else:
        old.revoked_at = now
    session.flush()
    left = f"valid for {grace_seconds:g} s more" if grace_seconds > 0.0 else "revoked"
    describe(session, f"Key {old.name}: {old.prefix}… → {made[0].prefix}…; the old one is {left}")
    return made


def caller_of_principal(
    session: Session,
    rules: Sequence[Rule],
    owner: str,
    principal_id: str,
    groups: Iterable[str] | None,
) -> Caller | None:
    """Return the caller that a principal is at an owner now, without a request; None without a usable key or a role.

    It has the scopes of its newest usable key, or the roles of its groups. `groups` are the groups of a person or a
    service account; None for a key.
    """
    principal = repository.find_principal(session, principal_id)
    if principal is None:
        return None
    if groups is None:
        keys = repository.usable_keys_of(session, owner, principal_id)
        if not keys:
            return None
        return Caller(
            owner=owner,
            scopes=frozenset(keys[0].scopes),
            principal_id=principal_id,
            name=keys[0].name,
            key_id=keys[0].id,
        )
    identity = Identity(
        principal.issuer,
        principal.subject,
        cast(PrincipalKind, principal.kind),
        principal.name or principal.subject,
        frozenset(groups),
        None,
    )
    try:
        return caller_of(identity, principal_id, rules, owner)
    except Forbidden:
        return None


def administers_all(session: Session, caller: Caller, rules: Sequence[Rule]) -> bool:
    """Return True for a key with the scope `admin` if there is no other owner, by a key or a rule.

    Roles never include what concerns all owners.
    """
    return (
        caller.kind == "key"
        and "admin" in caller.scopes
        and {rule.owner for rule in rules} <= {caller.owner}
        and not repository.has_others(session, caller.owner)
    )


def get(session: Session, owner: str, key_id: str) -> ApiKey:
    """Raises NotFound."""
    key = repository.get(session, owner, key_id)
    if key is None:
        raise NotFound(f"there is no key {key_id!r}")
    return key


def revoke(session: Session, owner: str, key_id: str) -> None:
    """Processes that have cached the key refuse it within a second."""
    key = get(session, owner, key_id)
    repository.revoke(session, owner, key_id)
    was = "revoked" if key.revoked_at is not None else f"valid for {', '.join(key.scopes)}"
    describe(session, f"Key {key.name}: {was} → revoked")


def by_command(owner: str, command: str) -> AbstractContextManager[None]:
    """Record the block's changes in the owner's audit log, as made by this command."""
    return acting_as(Actor(owner, None, None, command, partial(new_id, "aud")))
