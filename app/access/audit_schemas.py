"""The audit log over HTTP."""

from __future__ import annotations

from pydantic import Field

from app.http.schemas import Resource, Timestamp


class AuditEntry(Resource):
    """One change."""

    id: str
    created_at: Timestamp
    key_id: str | None = Field(description="Whose; null for the server's own command line.")
    action: str = Field(description="The route, or the command.")
    path: str | None = Field(description="The address without its query.")
    made: list[str] = Field(description="Ids of what was created.")
    request_id: str | None
