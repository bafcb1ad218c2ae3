"""Keys over HTTP."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from app.access.authentication import Scope
from app.access.service import MAX_GRACE_SECONDS
from app.http.schemas import Body, Name, PageOf, Resource, Timestamp, one_of

MAX_LIFETIME_SECONDS = 3.2e9
"""Longest lifetime of a key, in seconds: a century."""


class KeyRequest(Body):
    """A key to create, for the owner of the caller's key."""

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=20)]
    expires_in_seconds: Annotated[float, Field(gt=0, le=MAX_LIFETIME_SECONDS)] | None = None


class Rotation(Body):
    """How to replace a key."""

    grace_seconds: Annotated[float, Field(ge=0, le=MAX_GRACE_SECONDS)] = Field(
        default=0.0, description="Seconds that the old key stays valid; 0: it is revoked at once."
    )


class Key(Resource):
    """An API key, without its secret."""

    id: str
    owner: str
    name: str
    prefix: str = Field(description="First characters of the secret, to recognise the key.")
    scopes: list[Annotated[str, one_of(get_args(Scope))]]
    created_at: Timestamp
    expires_at: Timestamp | None
    last_used_at: Timestamp | None
    revoked_at: Timestamp | None
    successor_id: str | None = Field(description="The key that replaced it.")


class KeyPage(PageOf[Key]):
    """One page of keys."""


class KeyWithSecret(Key):
    """A new key, with its secret."""

    secret: str | None = Field(
        description="The secret. It is shown only once; null in a repeated answer.",
        examples=["rw_Q3J5cHRvZ3JhcGhpY2FsbHktcmFuZG9tLXNlY3JldA"],
    )


class AuditEntry(Resource):
    """One change, as the audit log records it."""

    id: str
    created_at: Timestamp
    key_id: str | None = Field(
        description="The key that made the change. Null for the command line on the server."
    )
    action: str = Field(description="The route or the command.")
    path: str | None = Field(description="Path of the request, without its query.")
    made: list[str] = Field(description="Ids of the resources that were created.")
    request_id: str | None
    client: str | None = Field(
        description="Network address of the caller. Null for the command line."
    )


class AuditEntryPage(PageOf[AuditEntry]):
    """One page of the audit log."""
