"""Request and response bodies of /v1/webhooks."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from app.http.schemas import Body, CreatedAt, PageOf, Resource, Timestamp, one_of
from app.platform.addresses import MAX_URL
from app.platform.errors import PLAIN_PATTERN
from app.platform.events import SUBSCRIBABLE, TYPES
from app.platform.tables import Webhook as WebhookRow
from app.platform.tables import WebhookDisabled
from app.webhooks.service import ATTEMPTS_SHOWN, LoggedDelivery

# mypy knows no Literal of a tuple's members
EventType: Any = Literal[SUBSCRIBABLE]
Url = Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL)]
Description = Annotated[str, StringConstraints(max_length=255, pattern=PLAIN_PATTERN)]
Types = Annotated[list[EventType], Field(min_length=1, max_length=len(SUBSCRIBABLE))]
State = Literal["queued", "delivered", "failed"]

_URL = (
    "URL that receives the events, by POST. It must begin with `https://`, and have no user, password or fragment. "
    "Internal addresses and `http://` are allowed only if the operator has set RANKWRIGHT_WEBHOOK_NETWORKS."
)
_EVENTS = "Types of events to send."


class WebhookRequest(Body):
    """A webhook to create."""

    url: Url = Field(description=_URL, examples=["https://example.com/hooks/rankwright"])
    events: Types | None = Field(
        default=None,
        description=f"{_EVENTS} Null: all types, including those that later versions add.",
        examples=[["job.succeeded", "job.failed"]],
    )
    description: Description = ""
    """Description, for your own use."""


class WebhookChange(Body):
    """Changes of a webhook. What is absent stays as it is."""

    url: Url | None = Field(default=None, description=_URL)
    events: Types | None = Field(
        default=None,
        description=f"{_EVENTS} Null: all types, including those that later versions add.",
    )
    description: Description | None = None
    """Description, for your own use."""
    enabled: bool | None = None
    """False: disable the webhook. It receives no events while it is disabled, and its queued deliveries fail. True:
    enable it."""

    @model_validator(mode="after")
    def _not_null(self) -> Self:
        for name in ("url", "description", "enabled"):
            if name in self.model_fields_set and getattr(self, name) is None:
                raise ValueError(f"{name} must not be null: leave it out to keep it")
        return self


class Webhook(Resource):
    """A webhook, without its secret."""

    id: str
    """Id of the webhook."""
    url: str
    """URL that receives the events."""
    events: list[Annotated[str, one_of({name: TYPES[name] for name in SUBSCRIBABLE})]] | None
    """Types of events that are sent. Null: all."""
    description: str
    """Description."""
    author: str | None
    """Name of who created it."""
    created_at: CreatedAt
    enabled: bool
    """False if the webhook is disabled and receives nothing."""
    disabled_at: Timestamp | None
    """When it was disabled. Null: it is enabled."""
    disabled_reason: Annotated[str, one_of(WebhookDisabled)] | None
    """Why it is disabled. `requested`: by a request. `gone`: the receiver responded with 410. `failing`: every attempt
    failed for five days."""
    failing_since: Timestamp | None
    """Time of the first failed attempt since the last success. Null: the last attempt succeeded, or there was none."""
    previous_secret_until: Timestamp | None
    """Until when deliveries are also signed with the secret before the last rotation. Null: never rotated."""


class WebhookPage(PageOf[Webhook]):
    """One page of webhooks."""


class WebhookWithSecret(Webhook):
    """A webhook with its new secret."""

    secret: str | None = Field(examples=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw7TrVxIZSoDk="])
    """The secret that signs the deliveries. It is shown only once; null in a replayed response."""


class DeliveryAttempt(Resource):
    """One attempt at a delivery."""

    attempt: int
    """Number of the attempt, from 1."""
    at: Timestamp
    """When it ended."""
    status: int | None
    """HTTP status of the response. Null: there was none."""
    error: str | None = Field(examples=["timed_out"])
    """Code of the reason why there was no response. Null if there was one."""
    seconds: float
    """How long it took, in seconds."""
    response: str | None
    """Beginning of the response body, at most 1,024 characters. Null: there was no response, or it came from a network
    of RANKWRIGHT_WEBHOOK_NETWORKS."""


class WebhookDelivery(Resource):
    """The delivery of an event to a webhook."""

    event_id: str
    """Id of the event. It is the header `webhook-id` of each attempt."""
    type: str = Field(examples=["job.succeeded"])
    """Type of the event."""
    data: dict[str, Any]
    """Data of the event, as it is sent."""
    created_at: Timestamp
    """Time of the event."""
    state: State
    """`queued`: it is being sent, or waits for the next attempt. `delivered`: the receiver responded with 2xx.
    `failed`: all attempts failed, or the webhook was disabled."""
    next_attempt_at: Timestamp | None
    """When the next attempt is due. Null unless the state is `queued`."""
    attempts: list[DeliveryAttempt] = Field(
        description=f"The last {ATTEMPTS_SHOWN} attempts, newest first."
    )


class WebhookDeliveryPage(PageOf[WebhookDelivery]):
    """One page of deliveries."""


def show(row: WebhookRow) -> Webhook:
    return Webhook.from_row(
        row,
        events=row.events or None,
        enabled=row.disabled_at is None,
        previous_secret_until=row.previous_valid_until,
    )


def show_delivery(logged: LoggedDelivery) -> WebhookDelivery:
    delivery, event = logged.delivery, logged.event
    return WebhookDelivery(
        event_id=event.id,
        type=event.type,
        data=event.data,
        created_at=event.at,
        state=delivery.state,  # type: ignore[arg-type]  # the table checks it
        next_attempt_at=delivery.due_at if delivery.state == "queued" else None,
        attempts=[DeliveryAttempt.model_validate(each) for each in logged.attempts],
    )
