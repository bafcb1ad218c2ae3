"""Callers: the credential in a request, the principal that it authenticates, and the current actor.

A principal is a person or thing that can act: a key, or a person or a service account of an identity provider. It has
one id, to which sessions, the audit log and revisions refer. A key and the keys that replaced it by rotation are one
principal, if the person who created it rotated it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from app.platform.errors import Forbidden, shown

PrincipalKind = Literal["key", "person", "service"]
CredentialKind = Literal["key", "token", "session", "link"]


class Credential(NamedTuple):
    """The proof of identity in a request, as a hash. A kind is part of it: a browser session is no key."""

    kind: CredentialKind
    sha256: str
    """SHA-256 of the secret, in hexadecimal digits, by which the database finds it."""

    @classmethod
    def of(cls, kind: CredentialKind, secret: str | bytes) -> Credential:
        secret = secret.encode("utf-8", "replace") if isinstance(secret, str) else secret
        return cls(kind, hashlib.sha256(secret).hexdigest())


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: a principal that acts for an owner, with some scopes."""

    owner: str
    """The owner whose resources are visible."""
    scopes: frozenset[str]
    principal_id: str | None = None
    """None for a caller without a credential, for whom an owner's model is served."""
    kind: PrincipalKind = "key"
    name: str | None = None
    """Name of the principal, for people."""
    roles: tuple[str, ...] = ()
    """The roles of a person or a service account. A key has none."""
    groups: frozenset[str] = frozenset()
    """The groups of a person or a service account, as the identity provider names them."""
    models: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of the names of models of which the caller may change something with a scope. A scope that is absent
    holds for all.
    """
    key_id: str | None = None
    """The key that the credential is, or that started the session."""
    expires_at: float | None = None
    """When the credential expires, in seconds since 1970; None: never."""

    @property
    def permit_holder(self) -> str:
        """The owner whose permits a request uses; callers without a credential share one artificial owner's."""
        return "" if self.principal_id is None else self.owner

    def has(self) -> str:
        """Say what the caller may do."""
        scopes = ", ".join(sorted(self.scopes))
        if self.kind == "key":
            return f"the key has {scopes}"
        which = "your role" if len(self.roles) == 1 else "your roles"
        allow = "allows" if len(self.roles) == 1 else "allow"
        return f"{which} {', '.join(self.roles)} at {shown(self.owner)} {allow} {scopes}"

    def may_change(self, scope: str, model_name: str) -> bool:
        """True with the scope, for models of this name."""
        if scope not in self.scopes:
            return False
        patterns = self.models.get(scope)
        return patterns is None or any(fnmatchcase(model_name, each) for each in patterns)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who makes a change: a caller by a route, or the server's command line (`principal_id` is None).

    `make_id` returns an id for each entry of the audit log. `quota_check` is called before each writing transaction, so
    that it can read without a lock. The function that it returns is called when the transaction has changed something
    and is about to commit; it raises an error if the caller may not store more.
    """

    owner: str
    principal_id: str | None
    key_id: str | None
    action: str
    make_id: Callable[[], str]
    path: str | None = None
    request_id: str | None = None
    client: str | None = None
    scope: str = ""
    """The scope that the route needs."""
    caller: Caller | None = None
    quota_check: Callable[[], Callable[[], None]] | None = None


acting: ContextVar[Actor | None] = ContextVar("acting", default=None)
"""Who this thread or task works for; None for the service itself."""


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    token = acting.set(actor)
    try:
        yield
    finally:
        acting.reset(token)


def acting_principal() -> str | None:
    """Return the acting principal; None for the service and its command line."""
    actor = acting.get()
    return None if actor is None else actor.principal_id


def check_model(model_name: str) -> None:
    """Raise Forbidden if the actor may not change models of this name."""
    actor = acting.get()
    if actor is None or (caller := actor.caller) is None or not caller.models:
        return
    if not caller.may_change(actor.scope, model_name):
        allowed = ", ".join(caller.models[actor.scope])
        raise Forbidden(
            f"your role allows changes with {actor.scope!r} only for models named {allowed}, not for "
            f"{shown(model_name)}",
            code="model_not_allowed",
        )


def check_all_models() -> None:
    """Raise Forbidden if the actor may change only some models."""
    actor = acting.get()
    if actor is None or actor.caller is None:
        return
    if (patterns := actor.caller.models.get(actor.scope)) is not None:
        raise Forbidden(
            f"this concerns all models, and your role allows {actor.scope!r} only for models named "
            f"{', '.join(patterns)}",
            code="model_not_allowed",
        )
