"""Helpers of the tests of bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import ColumnElement, Table, func, select, true

from app.platform.sql import Base
from app.platform.tables import AuditEntry
from tests.app.live_service import Service
from tests.raising import mentions

CSV = {"Content-Type": "text/csv"}
JSON = {"Content-Type": "application/json"}
MAX_BODY, MAX_UPLOAD = 10_000, 50_000


def _counts(table: Table) -> ColumnElement[bool]:
    return table.c.outcome == "done" if table.name == AuditEntry.__tablename__ else true()


def everything(service: Service) -> tuple[dict[str, int], set[str]]:
    """Return the number of rows of each table, but for keys and their principals, and the names of all blobs. Of the
    audit log, only changes count: a denied request has an entry, too.
    """
    with service.context.db.read() as session:
        rows = {
            name: session.scalar(select(func.count()).select_from(table).where(_counts(table))) or 0
            for name, table in Base.metadata.tables.items()
            if name not in ("api_keys", "principals")
        }
    root = Path(service.blobs.root)
    return rows, {str(path.relative_to(root)) for path in root.rglob("*")}


def refused(answer: httpx.Response, status: int, code: str, *values: object) -> dict[str, Any]:
    """Check the problem, which must name each value, and give it back."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["type"] == f"urn:rankwright:problem:{code}"
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    assert "?" not in problem["instance"]
    text = answer.text.replace('\\"', '"')
    assert [value for value in values if not mentions(text, value)] == [], text
    return problem


def job(dataset: str, **changes: Any) -> dict[str, Any]:
    return {"dataset_id": dataset, "algorithm": {"name": "rankboost"}} | changes
