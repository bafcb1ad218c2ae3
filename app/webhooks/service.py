"""Creating, changing and deleting webhooks, and the log of their deliveries."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.access import repository as access_rows
from app.platform import events
from app.platform.addresses import check_url
from app.platform.audit import allow_over_quota, describe, describe_changes
from app.platform.callers import Caller
from app.platform.errors import Conflict, NotFound, TooMany, invalid, shown
from app.platform.ids import is_id, new_id
from app.platform.settings import Settings
from app.platform.sql import Page, Session, read_clock
from app.platform.tables import (
    Delivery,
    DeliveryAttempt,
    OutboxEvent,
    Webhook,
    WebhookDisabled,
)
from app.webhooks import repository
from app.webhooks.secrets import cipher_of, new_secret

MAX_WEBHOOKS = 20
"""Webhooks of an owner."""
OVERLAP_SECONDS = 86_400.0
"""For how long the previous secret also signs, after a rotation."""
MAX_PINGS, PING_SECONDS = 60, 3600.0
"""Test events of an owner within a time."""
MAX_ATTEMPTS = 100
"""Attempts at a delivery after which it cannot be replayed."""
ATTEMPTS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class LoggedDelivery:
    """A delivery with its event, and its last attempts, the newest first."""

    delivery: Delivery
    event: OutboxEvent
    attempts: Sequence[DeliveryAttempt]


def create(
    session: Session,
    settings: Settings,
    caller: Caller,
    url: str,
    types: Iterable[str] | None,
    description: str,
) -> tuple[Webhook, str]:
    """Create a webhook for types of events (None: all); returns it and its secret.

    Raises Invalid for a URL to which this service does not send, Conflict above `MAX_WEBHOOKS`, and if the service has
    no keys to encrypt secrets with.
    """
    _check_url(settings, url)
    access_rows.take_turn(session, caller.owner)  # for the number of webhooks
    if repository.count(session, caller.owner) >= MAX_WEBHOOKS:
        raise Conflict(
            f"an owner can have at most {MAX_WEBHOOKS} webhooks: delete one first",
            code="too_many_webhooks",
        )
    secret = new_secret()
    row = Webhook(
        id=new_id("wh"),
        owner=caller.owner,
        url=url,
        description=description,
        events=_stored(types),
        secret=cipher_of(settings).encrypt(secret),
        previous_secret=None,
        previous_valid_until=None,
        author=caller.name,
        created_at=read_clock(session),
        disabled_at=None,
        disabled_reason=None,
        failing_since=None,
    )
    describe_changes(session, f"Webhook {row.id}", {}, _audited(row))
    repository.add(session, row)
    return row, secret


def update(
    session: Session,
    settings: Settings,
    owner: str,
    webhook_id: str,
    *,
    url: str | None = None,
    types: Iterable[str] | str | None = "keep",
    description: str | None = None,
    enabled: bool | None = None,
) -> Webhook:
    """None (for `types`, "keep") leaves a value. Disabling fails queued deliveries. Raises NotFound and Invalid."""
    if url is not None:
        _check_url(settings, url)
    if enabled is False:
        allow_over_quota(session)
    row = find(session, owner, webhook_id, lock=True)
    before = _audited(row)
    if url is not None:
        row.url = url
    if types != "keep":
        row.events = _stored(types)
    if description is not None:
        row.description = description
    if enabled is True:
        row.disabled_at = row.disabled_reason = row.failing_since = None
    elif enabled is False and row.disabled_at is None:
        row.disabled_at = read_clock(session)
        row.disabled_reason = WebhookDisabled.REQUESTED
        repository.give_up_queued(session, row.id)
    describe_changes(session, f"Webhook {row.id}", before, _audited(row))
    session.flush()
    return row


def delete(session: Session, owner: str, webhook_id: str) -> None:
    """Delete queued deliveries, too. Raises NotFound."""
    allow_over_quota(session)
    row = find(session, owner, webhook_id, lock=True)
    describe_changes(session, f"Webhook {row.id} deleted", _audited(row), {})
    repository.remove(session, row)


def rotate(
    session: Session, settings: Settings, owner: str, webhook_id: str
) -> tuple[Webhook, str]:
    """Replace the secret of a webhook; returns both. Deliveries have two signatures for `OVERLAP_SECONDS`.

    Raises NotFound, and Conflict if the service has no keys to encrypt secrets with.
    """
    allow_over_quota(session)  # a secret that leaked must be replaced at once
    row = find(session, owner, webhook_id, lock=True)
    secret = new_secret()
    row.previous_secret = row.secret
    row.previous_valid_until = read_clock(session) + OVERLAP_SECONDS
    row.secret = cipher_of(settings).encrypt(secret)
    describe(session, f"Webhook {row.id}: the secret was rotated")
    session.flush()
    return row, secret


def ping(session: Session, owner: str, webhook_id: str) -> LoggedDelivery:
    """Queue a test event. Raises NotFound, Conflict if it is disabled, and TooMany."""
    row = _find_enabled(session, owner, webhook_id)
    if repository.count_recent(session, owner, events.PING, PING_SECONDS) >= MAX_PINGS:
        raise TooMany(
            f"an owner can send at most {MAX_PINGS} test events in an hour",
            code="too_many_pings",
            retry_after=60,
        )
    event_id = events.record_ping(session, owner, row.id)
    describe(session, f"Webhook {row.id}: test event {event_id}")
    return _find_delivery(session, owner, row.id, event_id or "")


def replay(session: Session, owner: str, webhook_id: str, event_id: str) -> LoggedDelivery:
    """Send an event again, with the same id. Raises NotFound, and Conflict if disabled, or after `MAX_ATTEMPTS`."""
    row = _find_enabled(session, owner, webhook_id)
    found = _find_delivery(session, owner, row.id, event_id)
    if found.delivery.attempt >= MAX_ATTEMPTS:
        raise Conflict(
            f"the delivery of {event_id} has {found.delivery.attempt} attempts: one with {MAX_ATTEMPTS} or more "
            "cannot be replayed",
            code="too_many_attempts",
        )
    repository.replay(session, found.delivery)
    describe(session, f"Webhook {row.id}: {event_id} is sent again")
    return found


def find(session: Session, owner: str, webhook_id: str, *, lock: bool = False) -> Webhook:
    """Raises NotFound."""
    found = None
    if is_id(webhook_id, "wh"):
        found = repository.find(session, owner, webhook_id, lock=lock)
    if found is None:
        raise NotFound(f"there is no webhook {shown(webhook_id)}")
    return found


def list_deliveries(
    session: Session,
    owner: str,
    webhook_id: str,
    *,
    state: str | None,
    limit: int,
    after: str | None,
) -> Page[LoggedDelivery]:
    """The newest event is the first. Raises NotFound."""
    find(session, owner, webhook_id)
    page = repository.list_deliveries(session, webhook_id, state, limit=limit, after=after)
    return Page(_logged(session, owner, webhook_id, page.data), page.has_more, page.next)


def _find_enabled(session: Session, owner: str, webhook_id: str) -> Webhook:
    row = find(session, owner, webhook_id, lock=True)
    if row.disabled_at is not None:
        raise Conflict(f"{webhook_id} is disabled: enable it first", code="webhook_disabled")
    return row


def _find_delivery(session: Session, owner: str, webhook_id: str, event_id: str) -> LoggedDelivery:
    found = None
    if is_id(event_id, "evt"):
        found = repository.find_delivery(session, webhook_id, event_id)
    if found is None:
        raise NotFound(f"there is no delivery of {shown(event_id)} to {webhook_id}")
    (logged,) = _logged(session, owner, webhook_id, [found])
    return logged


def _logged(
    session: Session, owner: str, webhook_id: str, deliveries: Sequence[Delivery]
) -> list[LoggedDelivery]:
    ids = [each.event_id for each in deliveries]
    found = repository.events_of(session, owner, ids)
    attempts = repository.attempts_of(session, webhook_id, ids, ATTEMPTS_SHOWN)
    return [
        LoggedDelivery(each, found[each.event_id], attempts.get(each.event_id, ()))
        for each in deliveries
        if each.event_id in found
    ]


def _stored(types: Iterable[str] | None) -> list[str]:
    return [] if types is None else sorted(set(types))


def _check_url(settings: Settings, url: str) -> None:
    try:
        proxied = settings.webhook_proxy is not None
        check_url(url, settings.networks_of_webhooks, proxied=proxied)
    except ValueError as error:
        raise invalid("/url", f"url {error}") from None


def _audited(row: Webhook) -> dict[str, object]:
    """Paths may contain secrets, so the audit log has only their hash."""
    parts = urlsplit(row.url)
    path = hashlib.sha256(f"{parts.path}?{parts.query}".encode()).hexdigest()[:8]
    return {
        "server": f"{parts.scheme}://{parts.netloc}",
        "path (hash)": path,
        "events": ", ".join(row.events) or "all",
        "description": row.description,
        "state": "enabled" if row.disabled_at is None else f"disabled ({row.disabled_reason})",
    }
