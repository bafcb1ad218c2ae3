"""Helpers of tests: an alias whose decisions are recorded, its decisions, and alarms about an alias."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import select

from app.feedback.monitor_repository import MonitoredAlias, add_alarm
from app.feedback.segments import hash_ids, schema_of, write_segment
from app.platform import catalogue
from app.platform.ids import new_id
from app.platform.sql import db_now
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


COMMON = {"revision": 1, "alias_revision": 1, "model_id": "mdl_1", "score": 0.5, "explored": False}
COMMON |= {"propensity": 1.0, "keep": 1.0, "origin": "score"}


def add_decisions(
    service: Service,
    rows: list[dict[str, Any]],
    lost: int = 0,
    alias: str = "live",
    owner: str = OWNER,
) -> list[str]:
    """Store a segment of decisions about entities, as the log does; return the ids of the decisions."""
    schema = schema_of()
    made = [new_id("dec") for _ in rows]
    whole = [
        {**COMMON, "decision_id": id_, "id_hash": int(hash_ids(owner, [row["id"]])[0]), **row}
        for id_, row in zip(made, rows, strict=True)
    ]
    arrays = []
    for field in schema:
        is_dictionary = pa.types.is_dictionary(field.type)
        plain = field.type.value_type if is_dictionary else field.type
        values = pa.array([row.get(field.name) for row in whole], plain)
        arrays.append(values.cast(field.type) if is_dictionary else values)
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    blob = write_segment(service.blobs, [batch], schema)
    times = [row["at"] for row in rows]
    segment = DecisionSegment(
        id=new_id("seg"),
        owner=owner,
        name="churn",
        alias=alias,
        log_id=new_id("log"),
        first_sequence=0,
        last_sequence=len(rows) + lost - 1,
        origin="score",
        first_at=min(times),
        last_at=max(times),
        rows=len(rows),
        lost=lost,
        segment_key=blob.key,
        segment_bytes=blob.bytes,
        sealed_at=db_now(),
    )
    with service.context.db.write() as session:
        catalogue.add(session, [blob])
        session.add(segment)
    return made
