"""SQL of webhooks, and of the log of their deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete as sql_delete
from sqlalchemy import exists, func, select, update

from app.platform.sql import Page, Session, db_now, delete_some, fetch_page
from app.platform.tables import (
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    OutboxEvent,
    Webhook,
)

KEEP_SECONDS = 30 * 86_400.0
"""For how long events and the log of their deliveries are kept."""
_AS_IT_IS = {"synchronize_session": False}


def add(session: Session, row: Webhook) -> None:
    session.add(row)
    session.flush()


def count(session: Session, owner: str) -> int:
    statement = select(func.count()).select_from(Webhook).where(Webhook.readable_by(owner))
    return session.scalars(statement).one()


def find(session: Session, owner: str, webhook_id: str, *, lock: bool = False) -> Webhook | None:
    """With `lock`, read it anew, locked until the transaction ends."""
    statement = select(Webhook).where(Webhook.readable_by(owner), Webhook.id == webhook_id)
    if lock:
        statement = statement.with_for_update().execution_options(populate_existing=True)
    return session.scalars(statement).one_or_none()


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[Webhook]:
    statement = select(Webhook).where(Webhook.readable_by(owner))
    return fetch_page(session, statement, Webhook.created_at, Webhook.id, limit=limit, after=after)


def lock_all(session: Session) -> Sequence[Webhook]:
    """Lock those of all owners until the transaction ends."""
    return session.scalars(select(Webhook).order_by(Webhook.id).with_for_update()).all()


def remove(session: Session, row: Webhook) -> None:
    """Delete queued deliveries, too. Housekeeping deletes the others."""
    session.execute(
        sql_delete(Delivery).where(
            Delivery.target == row.id, Delivery.state == DeliveryState.QUEUED
        ),
        execution_options=_AS_IT_IS,
    )
    session.delete(row)
    session.flush()


def give_up_queued(session: Session, webhook_id: str) -> None:
    """Fail queued deliveries. Who is sending one loses its lease."""
    session.execute(
        update(Delivery)
        .where(Delivery.target == webhook_id, Delivery.state == DeliveryState.QUEUED)
        .values(state=DeliveryState.FAILED, lease_token=Delivery.lease_token + 1),
        execution_options=_AS_IT_IS,
    )


def count_recent(session: Session, owner: str, type_: str, seconds: float) -> int:
    """Count events of the last `seconds`."""
    statement = select(func.count()).where(
        OutboxEvent.readable_by(owner),
        OutboxEvent.at > db_now() - seconds,
        OutboxEvent.type == type_,
    )
    return session.scalars(statement).one()


def list_deliveries(
    session: Session, webhook_id: str, state: str | None, *, limit: int, after: str | None
) -> Page[Delivery]:
    """The newest event is the first."""
    statement = select(Delivery).where(Delivery.target == webhook_id)
    if state is not None:
        statement = statement.where(Delivery.state == state)
    return fetch_page(
        session, statement, Delivery.created_at, Delivery.event_id, limit=limit, after=after
    )


def find_delivery(session: Session, webhook_id: str, event_id: str) -> Delivery | None:
    """Lock it until the transaction ends."""
    return session.scalars(
        select(Delivery)
        .where(Delivery.target == webhook_id, Delivery.event_id == event_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one_or_none()


def replay(session: Session, delivery: Delivery) -> None:
    """Make a delivery due now. Who is sending it loses its lease."""
    delivery.state = DeliveryState.QUEUED
    delivery.earlier_attempts = delivery.attempt
    delivery.lease_token += 1
    delivery.due_at = db_now()  # SQL, until it is flushed
    session.flush()
    session.refresh(delivery)


def events_of(session: Session, owner: str, ids: Sequence[str]) -> dict[str, OutboxEvent]:
    statement = select(OutboxEvent).where(OutboxEvent.readable_by(owner), OutboxEvent.id.in_(ids))
    return {event.id: event for event in session.scalars(statement)}


def attempts_of(
    session: Session, webhook_id: str, event_ids: Sequence[str], most: int
) -> dict[str, list[DeliveryAttempt]]:
    """Return the last `most` attempts by event, the newest first."""
    statement = (
        select(DeliveryAttempt)
        .join(
            Delivery,
            (Delivery.event_id == DeliveryAttempt.event_id)
            & (Delivery.target == DeliveryAttempt.target),
        )
        .where(
            DeliveryAttempt.target == webhook_id,
            DeliveryAttempt.event_id.in_(event_ids),
            DeliveryAttempt.attempt > Delivery.attempt - most,
        )
        .order_by(DeliveryAttempt.event_id, DeliveryAttempt.attempt.desc())
    )
    found: dict[str, list[DeliveryAttempt]] = {}
    for attempt in session.scalars(statement):
        found.setdefault(attempt.event_id, []).append(attempt)
    return found


def prune_orphans(session: Session, limit: int) -> int:
    """Delete deliveries without a webhook, of all owners."""
    orphaned = ~exists().where(Webhook.id == Delivery.target)
    return delete_some(session, Delivery, orphaned, limit=limit)


def prune_events(session: Session, age_seconds: float, limit: int) -> int:
    """Delete old events, and those without deliveries, unless one is queued."""
    of_event = Delivery.event_id == OutboxEvent.id
    queued = exists().where(of_event, Delivery.state == DeliveryState.QUEUED)
    is_old = OutboxEvent.at < db_now() - age_seconds
    return delete_some(
        session, OutboxEvent, (is_old & ~queued) | ~exists().where(of_event), limit=limit
    )
