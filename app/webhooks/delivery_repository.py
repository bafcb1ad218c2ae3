"""SQL of deliveries, for the dispatcher. It concerns the webhooks of all owners."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ScalarSelect, func, select, update

from app.platform.sql import Session, db_now, read_clock
from app.platform.tables import (
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    Webhook,
    WebhookDisabled,
)
from app.webhooks.repository import give_up_queued

MAX_RESPONSE = 1024
"""Characters of a response body that are stored."""


@dataclass(frozen=True, slots=True)
class DueTarget:
    """A webhook with due deliveries that is not disabled. It fails if the last attempt failed."""

    id: str
    owner: str
    is_failing: bool


def due_targets(session: Session) -> list[DueTarget]:
    """Look into an index once for each webhook."""
    now = read_clock(session)
    statement = select(Webhook.id, Webhook.owner, Webhook.failing_since.is_not(None)).where(
        Webhook.disabled_at.is_(None), _earliest() <= now
    )
    return [DueTarget(*row) for row in session.execute(statement)]


def _earliest() -> ScalarSelect[float]:
    """Look into an index once."""
    return (
        select(Delivery.due_at)
        .where(Delivery.target == Webhook.id, Delivery.state == DeliveryState.QUEUED)
        .order_by(Delivery.due_at)
        .limit(1)
        .scalar_subquery()
    )


def fail_untargeted(session: Session) -> int:
    """Fail due deliveries without an enabled webhook: it was lost while their event was committed."""
    now = read_clock(session)
    is_active = (
        select(Webhook.id)
        .where(Webhook.id == Delivery.target, Webhook.disabled_at.is_(None))
        .exists()
    )
    statement = (
        update(Delivery)
        .where(Delivery.state == DeliveryState.QUEUED, Delivery.due_at <= now, ~is_active)
        .values(state=DeliveryState.FAILED, lease_token=Delivery.lease_token + 1)
        .returning(Delivery.target)
    )
    options = {"synchronize_session": False}
    return len(session.execute(statement, execution_options=options).all())


def exists(session: Session, event_id: str, webhook_id: str) -> bool:
    """The webhook or owner may have been deleted."""
    statement = select(Delivery.target).where(
        Delivery.event_id == event_id, Delivery.target == webhook_id
    )
    return session.scalar(statement) is not None


@dataclass(frozen=True, slots=True)
class WebhookCounts:
    """Webhooks of all owners by state. `late_seconds`: how long a delivery to a working one has been due."""

    working: int
    failing: int
    disabled: int
    late_seconds: float


def count_webhooks(session: Session) -> WebhookCounts:
    """Look into an index once for each."""
    now = read_clock(session)
    is_disabled, is_failing = Webhook.disabled_at.is_not(None), Webhook.failing_since.is_not(None)
    works = ~is_disabled & ~is_failing
    disabled, failing, working = (
        session.scalars(select(func.count()).select_from(Webhook).where(each)).one()
        for each in (is_disabled, ~is_disabled & is_failing, works)
    )
    due_at = session.scalar(select(func.min(_earliest())).select_from(Webhook).where(works))
    late = 0.0 if due_at is None else max(0.0, now - due_at)
    return WebhookCounts(working, failing, disabled, late)


@dataclass(frozen=True, slots=True)
class Target:
    """An enabled webhook. The secrets are encrypted."""

    id: str
    owner: str
    url: str
    secret: str
    previous_secret: str | None
    previous_is_valid: bool


def find_targets(session: Session, ids: Collection[str]) -> dict[str, Target]:
    """Leave out disabled ones."""
    is_valid = func.coalesce(Webhook.previous_valid_until > db_now(), False)
    statement = select(
        Webhook.id,
        Webhook.owner,
        Webhook.url,
        Webhook.secret,
        Webhook.previous_secret,
        is_valid,
    ).where(Webhook.id.in_(ids), Webhook.disabled_at.is_(None))
    return {row[0]: Target(*row) for row in session.execute(statement)}


def log_attempt(
    session: Session,
    event_id: str,
    webhook_id: str,
    attempt: int,
    *,
    seconds: float,
    status: int | None = None,
    error: str | None = None,
    response: str | None = None,
) -> None:
    """Store an attempt that ended now: a status with the start of the body, or an error; `seconds` long."""
    session.add(
        DeliveryAttempt(
            event_id=event_id,
            target=webhook_id,
            attempt=attempt,
            at=db_now(),
            status=status,
            error=error,
            seconds=seconds,
            # PostgreSQL stores no NUL
            response=None if response is None else response[:MAX_RESPONSE].replace("\0", "\ufffd"),
        )
    )
    session.flush()


def note_success(session: Session, webhook_id: str) -> None:
    """Note that the last attempt succeeded."""
    session.execute(
        update(Webhook)
        .where(Webhook.id == webhook_id, Webhook.failing_since.is_not(None))
        .values(failing_since=None)
    )


def note_failure(session: Session, webhook_id: str) -> None:
    """`failing_since` stays that of the first failure in a row."""
    session.execute(
        update(Webhook)
        .where(Webhook.id == webhook_id, Webhook.failing_since.is_(None))
        .values(failing_since=db_now())
    )


def has_failed_for(session: Session, webhook_id: str, seconds: float) -> bool:
    """Return True if all attempts have failed for at least `seconds`."""
    statement = select(Webhook.id).where(
        Webhook.id == webhook_id, Webhook.failing_since <= db_now() - seconds
    )
    return session.scalar(statement) is not None


def disable(session: Session, webhook_id: str, reason: WebhookDisabled) -> bool:
    """Fail queued deliveries, which can be replayed. Returns False if it was disabled, or does not exist."""
    changed = session.scalar(
        update(Webhook)
        .where(Webhook.id == webhook_id, Webhook.disabled_at.is_(None))
        .values(disabled_at=db_now(), disabled_reason=reason)
        .returning(Webhook.id)
    )
    if changed is None:
        return False
    give_up_queued(session, webhook_id)
    return True
