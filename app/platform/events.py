"""The types of events that webhooks can receive, and the function that records one.

An event is recorded in the transaction of its cause, and only if a webhook of the owner takes its type. Its data names
resources. It has no rows, no keys of rows and no names of people: a receiver reads the rest from the API.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from sqlalchemy import bindparam, select

from app.platform import outbox
from app.platform.sql import Json, Session
from app.platform.tables import Webhook

PING = "webhook.ping"

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "job.succeeded": "A job succeeded.",
        "job.failed": "A job failed.",
        "job.cancelled": "A job was cancelled.",
        "job.timed_out": "A job ran longer than its time limit.",
        "dataset.ready": "A dataset was read, and can be used.",
        "dataset.failed": "A table could not be read, and the dataset is invalid.",
        "evaluation.ready": "An evaluation is complete.",
        "evaluation.failed": "An evaluation ended without a result.",
        "alias.changed": "An alias has a new revision: another model version or cutoff, or another protection.",
        "alias.deleted": "An alias was deleted.",
        "alias_request.created": "A change to a protected alias was requested.",
        "alias_request.approved": "A requested change to an alias was approved and applied.",
        "alias_request.rejected": "A requested change to an alias was rejected.",
        "alias_request.withdrawn": "A requested change to an alias was withdrawn.",
        "alias_request.void": "A requested change to an alias is void: the alias or the model has changed since.",
        "alarm.raised": "The monitor of an alias raised an alarm.",
        "alarm.cleared": "An alarm was acknowledged.",
        PING: "Someone asked for a test event. It is sent to that webhook only.",
    }
)
"""Every type of event, with its description."""
SUBSCRIBABLE = tuple(type_ for type_ in TYPES if type_ != PING)
"""The types that a webhook can choose."""

_ENABLED = select(Webhook.id, Webhook.events).where(
    Webhook.readable_by(bindparam("of")), Webhook.disabled_at.is_(None)
)


def record(session: Session, /, owner: str, type_: str, id_: str, **fields: Any) -> str | None:
    """Record an event about `id_` for the owner's webhooks that take it; returns its id, None without any."""
    targets = [
        webhook_id
        for webhook_id, types in session.execute(_ENABLED, {"of": owner})
        if not types or type_ in types
    ]
    return _record(session, owner, type_, {"id": id_} | fields, targets)


def record_ping(session: Session, owner: str, webhook_id: str) -> str | None:
    """Record a test event for one webhook; returns its id."""
    return _record(session, owner, PING, {"id": webhook_id}, [webhook_id])


def _record(
    session: Session, owner: str, type_: str, data: Json, targets: Collection[str]
) -> str | None:
    assert type_ in TYPES
    data["object"] = type_.partition(".")[0]
    return outbox.record(session, owner, type_, data, targets)
