"""Request and response bodies of /v1/keys and /v1/audit."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from app.access.authentication import Scope
from app.access.service import MAX_GRACE_SECONDS
from app.http.schemas import Body, CreatedAt, Name, PageOf, Resource, Timestamp, one_of

MAX_LIFETIME_SECONDS = 3.2e9
"""Longest lifetime of a key, in seconds: a century."""


class KeyRequest(Body):
    """An API key to create, for the same owner as the caller's key."""

    name: Name = Field(description="Name of the key, for your own use.")
    scopes: Annotated[
        list[Scope], Field(min_length=1, max_length=20, description="Scopes of the key.")
    ]
    expires_in_seconds: Annotated[float, Field(gt=0, le=MAX_LIFETIME_SECONDS)] | None = Field(
        default=None, description="Lifetime in seconds. Null: the key does not expire."
    )


class Rotation(Body):
    """How to replace an API key."""

    grace_seconds: Annotated[float, Field(ge=0, le=MAX_GRACE_SECONDS)] = Field(
        default=0.0,
        description="Seconds for which the old key remains valid. 0: it is revoked immediately.",
    )


class Key(Resource):
    """An API key, without its secret."""

    id: str = Field(description="Id of the key.")
    owner: str = Field(description="Owner of the key and of all resources created with it.")
    name: str = Field(description="Name of the key.")
    prefix: str = Field(description="First characters of the secret, to identify the key.")
    scopes: list[Annotated[str, one_of(get_args(Scope))]] = Field(description="Scopes of the key.")
    created_at: CreatedAt
    expires_at: Timestamp | None = Field(
        description="Time of expiry. Null: the key does not expire."
    )
    last_used_at: Timestamp | None = Field(
        description="Time of the last use. Null: it has not been used."
    )
    revoked_at: Timestamp | None = Field(
        description="Time of revocation. Null: it has not been revoked."
    )
    successor_id: str | None = Field(
        description="Id of the key that replaced this one. Null if it has not been replaced."
    )


class KeyPage(PageOf[Key]):
    """One page of keys."""


class KeyWithSecret(Key):
    """A new API key with its secret."""

    secret: str | None = Field(
        description="The secret. It is shown only once; null in a replayed response.",
        examples=["rw_Q3J5cHRvZ3JhcGhpY2FsbHktcmFuZG9tLXNlY3JldA"],
    )


class AuditEntry(Resource):
    """One change in the audit log."""

    id: str = Field(description="Id of the entry.")
    created_at: Timestamp = Field(description="Time of the change.")
    key_id: str | None = Field(
        description="Id of the key that made the change. Null for the command line on the server."
    )
    action: str = Field(description="The route or command.")
    path: str | None = Field(
        description="Path of the request, without its query. Null for the command line."
    )
    made: list[str] = Field(description="Ids of the created resources.")
    summary: str | None = Field(
        description="The change in words, such as the versions and thresholds between which an alias moved. Null if "
        "the route and the path say it."
    )
    request_id: str | None = Field(description="Id of the request. Null for the command line.")
    client: str | None = Field(
        description="Network address of the caller. Null for the command line."
    )


class AuditEntryPage(PageOf[AuditEntry]):
    """One page of the audit log."""
