"""The body of a delivery, as Standard Webhooks defines it."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson

from app.platform.sql import Json


def body_of(type_: str, at: float, data: Json) -> bytes:
    """Return what is sent and signed: type, timestamp (RFC 3339, UTC) and data; the same at each attempt."""
    moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return orjson.dumps({"type": type_, "timestamp": moment.replace("+00:00", "Z"), "data": data})
