"""The audit log over HTTP."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from app.api.schemas.common import Resource, Timestamp


class AuditEntry(Resource):
    """One change."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "aud_0198f0c2b1e27d3f8a9b0c1d2e3f4a5b",
                    "created_at": "2026-01-31T12:00:00.000Z",
                    "key_id": "key_0198f0c2b1e27d3f8a9b0c1d2e3f4a5b",
                    "action": "POST /v1/jobs",
                    "path": "/v1/jobs",
                    "made": ["job_0198f0c2b1e27d3f8a9b0c1d2e3f4a5b"],
                    "request_id": "req_0198f0c2b1e27d3f8a9b0c1d2e3f4a5b",
                }
            ]
        }
    )

    id: str
    created_at: Timestamp
    key_id: str | None = Field(description="Whose; null for the server's own command line.")
    action: str = Field(description="The route, or the command.")
    path: str | None = Field(description="The address without its query.")
    made: list[str] = Field(description="Ids of what was created.")
    request_id: str | None
