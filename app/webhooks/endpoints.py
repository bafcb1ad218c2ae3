"""/v1/webhooks: URLs that receive events, and the log of the deliveries to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.idempotency import Creation, CreationDep, validated
from app.platform.sql import Json, Session
from app.platform.tables import Webhook as WebhookRow
from app.webhooks import repository, schemas
from app.webhooks import service as webhooks
from app.webhooks.schemas import (
    Webhook,
    WebhookChange,
    WebhookDelivery,
    WebhookDeliveryPage,
    WebhookPage,
    WebhookRequest,
    WebhookWithSecret,
    show,
    show_delivery,
)

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=GuardedRoute)


@validated(router, "", "webhook")
@router.post("", status_code=201, response_model=WebhookWithSecret, summary="Create a webhook")
@needs("admin")
async def create_webhook(*, body: WebhookRequest, caller: CallerDep, new: CreationDep) -> Response:
    """Create a webhook: events of the owner are sent to its URL. Only this response contains the secret, with which
    the receiver verifies them.

    A repeated request with the same `Idempotency-Key` returns the webhook without its secret. Nothing is sent before
    the first event. `…/ping` sends a test event.
    """

    def create(session: Session) -> tuple[WebhookRow, str]:
        return webhooks.create(
            session, new.settings, caller, body.url, body.events, body.description
        )

    return await _answer(new, create)


@router.post(
    "/{webhook_id}/rotate",
    status_code=201,
    response_model=WebhookWithSecret,
    summary="Rotate the secret of a webhook",
)
@needs("admin")
async def rotate_webhook(*, webhook_id: str, new: CreationDep) -> Response:
    """Give the webhook a new secret. For 24 hours, deliveries are also signed with the previous secret; an older
    secret ends at once.

    Only this response contains the secret. A repeated request with the same `Idempotency-Key` returns the webhook
    without it.
    """

    def rotate(session: Session) -> tuple[WebhookRow, str]:
        return webhooks.rotate(session, new.settings, new.owner, webhook_id)

    return await _answer(new, rotate)


async def _answer(new: Creation, create: Callable[[Session], tuple[WebhookRow, str]]) -> Response:
    """The answer stored for the `Idempotency-Key` omits the secret."""
    if new.only_check:
        return await new.rehearse(create)
    secret = None

    def create_and_show(session: Session) -> dict[str, Any]:
        nonlocal secret
        made, secret = create(session)
        return show(made).model_dump(mode="json")

    created = await new.run_once(create_and_show)
    headers = {"Location": f"/v1/webhooks/{created.body['id']}"} | created.headers
    shown = None if created.replayed else secret
    return JSONResponse(created.body | {"secret": shown}, 201, headers)


@router.get("", summary="List webhooks")
@needs("admin")
def list_webhooks(context: ContextDep, caller: CallerDep, paging: PagingDep) -> WebhookPage:
    """Return the webhooks of the owner, newest first."""
    page = context.db.reading(repository.list_page, caller.owner, **vars(paging))
    return WebhookPage.of(page, show)


@router.get("/{webhook_id}", summary="Read a webhook")
@needs("admin")
def read_webhook(webhook_id: str, context: ContextDep, caller: CallerDep) -> Webhook:
    """Return a webhook, without its secret."""
    return show(context.db.reading(webhooks.find, caller.owner, webhook_id))


@router.patch("/{webhook_id}", summary="Update a webhook")
@needs("admin")
def update_webhook(
    *, webhook_id: str, body: WebhookChange, context: ContextDep, caller: CallerDep
) -> Webhook:
    """Change the URL, the types of events or the description of a webhook, disable it, or enable it. What is absent
    stays as it is. Queued deliveries go to the new URL.
    """
    changed = context.db.writing(
        webhooks.update,
        context.settings,
        caller.owner,
        webhook_id,
        url=body.url,
        types=body.events if "events" in body.model_fields_set else "keep",
        description=body.description,
        enabled=body.enabled,
    )
    return show(changed)


@router.delete("/{webhook_id}", status_code=204, summary="Delete a webhook")
@needs("admin")
def delete_webhook(webhook_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Delete a webhook, with its queued deliveries and its log."""
    context.db.writing(webhooks.delete, caller.owner, webhook_id)


@router.post(
    "/{webhook_id}/ping",
    status_code=202,
    response_model=WebhookDelivery,
    summary="Send a test event",
    response_description="The event will be sent.",
)
@needs("admin")
async def ping_webhook(*, webhook_id: str, new: CreationDep) -> Response:
    """Send an event of the type `webhook.ping` to this webhook. The log has the result.

    Returns 409 if the webhook is disabled, and 429 after 60 test events of the owner in an hour.
    """

    def create(session: Session) -> Json:
        made = webhooks.ping(session, new.owner, webhook_id)
        return show_delivery(made).model_dump(mode="json")

    created = await new.run_once(create)
    return JSONResponse(created.body, 202, created.headers)


@router.get("/{webhook_id}/deliveries", summary="List deliveries to a webhook")
@needs("admin")
def list_webhook_deliveries(
    *,
    webhook_id: str,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    state: Annotated[
        schemas.State | None, Query(description="Only deliveries in this state.")
    ] = None,
) -> WebhookDeliveryPage:
    """Return the deliveries to a webhook with their last attempts, the newest event first. They are kept for 30
    days.
    """
    page = context.db.reading(
        webhooks.list_deliveries,
        caller.owner,
        webhook_id,
        state=state,
        **vars(paging),
    )
    return WebhookDeliveryPage.of(page, show_delivery)


@router.post(
    "/{webhook_id}/deliveries/{event_id}/replay",
    status_code=202,
    summary="Replay a delivery",
    response_description="The event will be sent again.",
)
@needs("admin")
def replay_webhook_delivery(
    webhook_id: str, event_id: str, context: ContextDep, caller: CallerDep
) -> WebhookDelivery:
    """Send an event to this webhook again, now, whatever the state of its delivery. The id is the same, so a receiver
    may recognize it. If the attempt fails, the schedule of retries starts again.

    Returns 409 if the webhook is disabled, or after 100 attempts at the delivery.
    """
    return show_delivery(context.db.writing(webhooks.replay, caller.owner, webhook_id, event_id))
