"""Keys over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from app.access.service import MAX_GRACE_SECONDS
from app.http.schemas import Body, Resource, Text, Timestamp


class NewKey(Body):
    """A key to make, for the caller's own owner."""

    name: Text
    scopes: Annotated[
        list[Literal["read", "train", "score", "admin", "operator"]],
        Field(min_length=1, max_length=20),
    ]
    expires_in_seconds: Annotated[float, Field(gt=0, le=3.2e9)] | None = None


class Rotation(Body):
    """How a key gives way to its successor."""

    grace_seconds: Annotated[float, Field(ge=0, le=MAX_GRACE_SECONDS)] = Field(
        default=0.0, description="How long the old key stays good; 0 revokes it at once."
    )


class Key(Resource):
    """A key without its secret."""

    id: str
    owner: str
    name: str
    prefix: str = Field(description="The secret's first characters, to recognise it by.")
    scopes: list[str]
    created_at: Timestamp
    expires_at: Timestamp | None
    last_used_at: Timestamp | None
    revoked_at: Timestamp | None
    successor_id: str | None = Field(description="The key that it was rotated to.")


class KeyWithSecret(Key):
    """A key just made."""

    secret: str | None = Field(
        description="Shown this once; null in a replay.",
        examples=["rw_Q3J5cHRvZ3JhcGhpY2FsbHktcmFuZG9tLXNlY3JldA"],
    )


class AuditEntry(Resource):
    """One change."""

    id: str
    created_at: Timestamp
    key_id: str | None = Field(description="Whose; null for the server's own command line.")
    action: str = Field(description="The route, or the command.")
    path: str | None = Field(description="The address without its query.")
    made: list[str] = Field(description="Ids of what was created.")
    request_id: str | None
    client: str | None = Field(
        description="The address that it came from; null for the command line, and for changes of before 0.2.0."
    )
