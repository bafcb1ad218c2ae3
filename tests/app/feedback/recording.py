"""Helpers of tests: an alias whose decisions are recorded, its decisions, and alarms about an alias."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import select

from app.feedback.monitor_repository import MonitoredAlias, add_alarm
from app.platform.tables import DecisionSegment
from tests.app.live_service import OWNER, Service

ALIAS = "/v1/models/churn/aliases/live"
FEEDBACK = f"{ALIAS}/feedback"
UNDER = "/v1/models/churn@live"


def point(client: httpx.Client, model_id: str, **body: Any) -> None:
    """Point the alias at a model, whatever it pointed at."""
    now = client.get(ALIAS)
    headers = {"If-Match": now.headers["ETag"]} if now.is_success else {}
    answer = client.put(ALIAS, json={"model_id": model_id, **body}, headers=headers)
    assert answer.is_success, answer.text


def record(client: httpx.Client, **settings: Any) -> httpx.Response:
    """Store feedback settings, whatever they were."""
    now = client.get(FEEDBACK)
    headers = {"If-Match": now.headers["ETag"]} if now.is_success else {}
    answer = client.put(FEEDBACK, json=settings, headers=headers)
    assert answer.is_success, answer.text
    return answer


def segments(service: Service, alias: str = "live") -> list[DecisionSegment]:
    """Seal the decisions so far; return all segments of the alias, oldest first."""
    service.app.state.decisions.flush()
    with service.context.db.read() as session:
        statement = select(DecisionSegment).where(DecisionSegment.alias == alias)
        rows = list(session.scalars(statement.order_by(DecisionSegment.sealed_at)))
        session.expunge_all()
    return rows


def recorded(service: Service, after: int = 0, alias: str = "live") -> list[dict[str, Any]]:
    """Return the recorded decisions of all segments but the first `after`."""
    found: list[dict[str, Any]] = []
    for segment in segments(service, alias)[after:]:
        table: pa.Table = pq.read_table(service.context.fetch(segment.segment_key))
        assert table.num_rows == segment.rows
        found += table.to_pylist()
    return found


def raise_alarm(service: Service, alias: str) -> str:
    """Insert an alarm of OWNER about an alias of churn, in a transaction that is not repeated; return its id."""
    found = {"model_id": None, "status": "not_tested", "reason": "there are no decisions"}
    of = MonitoredAlias(OWNER, "churn", alias)
    with service.context.db.write() as session:
        return add_alarm(session, of, "ranking", 0.0, found).id
