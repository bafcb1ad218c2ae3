"""The outbox: events, and their deliveries to targets, written in the transaction that causes them.

An event is recorded if and only if its cause is committed, and it is delivered at least once.

- `app.platform.events` calls `record(session, owner, type, data, targets)` in the transaction of the change, with the
  ids of the owner's webhooks for this type. Without a target nothing is written.
- In any number of dispatchers, `app.operations.deliveries` calls `claim` for a target in a separate transaction, sends
  each delivery, and then calls `succeed`, `retry` or `fail`. No transaction is open while a delivery is sent. A
  dispatcher that dies loses its lease, and the delivery is claimed again with another token. A repeated delivery has
  the same `event_id`, by which a receiver recognizes it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import select, update

from app.platform.ids import new_id
from app.platform.sql import Json, Session, db_now, read_clock
from app.platform.tables import Delivery, DeliveryState, OutboxEvent


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that this process may send until its lease ends. `attempt` counts since the last replay, `number` from
    the first; `at` is the event's time.
    """

    event_id: str
    target: str
    owner: str
    type: str
    data: Json
    at: float
    attempt: int
    number: int
    lease_token: int


def record(
    session: Session, owner: str, type_: str, data: Json, targets: Collection[str]
) -> str | None:
    """Insert an event, and due deliveries. Returns its id; None without a target."""
    if not targets:
        return None
    event = OutboxEvent(id=new_id("evt"), owner=owner, type=type_, data=data, at=db_now())
    session.add(event)
    session.flush()
    session.add_all(
        Delivery(
            event_id=event.id,
            target=target,
            attempt=0,
            due_at=event.at,
            lease_token=0,
            state=DeliveryState.QUEUED,
            created_at=event.at,
        )
        for target in set(targets)
    )
    session.flush()
    return event.id


def is_any_due(session: Session) -> bool:
    """Read one row of an index, so that an idle dispatcher can ask each second."""
    earliest = (
        select(Delivery.due_at)
        .where(Delivery.state == DeliveryState.QUEUED)
        .order_by(Delivery.due_at)
        .limit(1)
        .scalar_subquery()
    )
    late = session.scalar(select(db_now() - earliest))
    return late is not None and late >= 0


def claim(session: Session, target: str, limit: int, lease_seconds: float) -> list[ClaimedDelivery]:
    """Claim up to `limit` deliveries, the longest due first, until the lease ends."""
    # Read first: PostgreSQL does not look in an index for a time that moves.
    now = read_clock(session)
    due = (
        select(Delivery, OutboxEvent)
        .join(OutboxEvent)
        .where(
            Delivery.target == target,
            Delivery.state == DeliveryState.QUEUED,
            Delivery.due_at <= now,
        )
        .order_by(Delivery.due_at)
        .limit(limit)
        .with_for_update(skip_locked=True, of=Delivery)
    )
    rows = session.execute(due).all()
    for delivery, _ in rows:
        delivery.attempt += 1
        delivery.lease_token += 1
        delivery.due_at = db_now() + lease_seconds  # SQL, until it is flushed
    session.flush()
    return [
        ClaimedDelivery(
            event.id,
            delivery.target,
            event.owner,
            event.type,
            event.data,
            event.at,
            delivery.attempt - delivery.earlier_attempts,
            delivery.attempt,
            delivery.lease_token,
        )
        for delivery, event in rows
    ]


def succeed(session: Session, delivery: ClaimedDelivery) -> bool:
    return _update(session, delivery, state=DeliveryState.DELIVERED)


def fail(session: Session, delivery: ClaimedDelivery) -> bool:
    """The failure is permanent. Returns False if the lease was lost."""
    return _update(session, delivery, state=DeliveryState.FAILED)


def retry(session: Session, delivery: ClaimedDelivery, after_seconds: float) -> bool:
    """Returns False if the lease was lost."""
    return _update(session, delivery, due_at=db_now() + after_seconds)


def _update(session: Session, delivery: ClaimedDelivery, **values: object) -> bool:
    """End the lease, whose token is then invalid. Returns False if it was lost."""
    statement = (
        update(Delivery)
        .where(
            Delivery.event_id == delivery.event_id,
            Delivery.target == delivery.target,
            Delivery.lease_token == delivery.lease_token,
            Delivery.state == DeliveryState.QUEUED,
        )
        .values(**values, lease_token=Delivery.lease_token + 1)
        .returning(Delivery.event_id)
    )
    options = {"synchronize_session": False}
    return session.execute(statement, execution_options=options).one_or_none() is not None
