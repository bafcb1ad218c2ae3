"""Pages of webhooks: the list with a form, and each webhook with the log of its deliveries."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from rankwright.operations import NULL
from rankwright.types import Webhook, WebhookWithSecret
from starlette.responses import Response

from app.console.api import path_segment
from app.console.session import ConsoleRoute, Page, PageDep, or_form
from app.console.words import FieldLabel
from app.http import cookies
from app.http.forms import Fields
from app.platform.events import SUBSCRIBABLE, TYPES

router = APIRouter(prefix="/console/webhooks", include_in_schema=False, route_class=ConsoleRoute)

PAGE = "/console/webhooks"
NOTE, NOTE_PATH = f"{cookies.PREFIX}note", f"{PAGE}/made"
FIELDS = {
    "url": FieldLabel("url", "URL"),
    "events": FieldLabel("events", "Events"),
    "description": FieldLabel("description", "Description"),
}
EVENTS = {name: TYPES[name] for name in SUBSCRIBABLE}
STATES = ("queued", "delivered", "failed")
BADGES = {"queued": "waiting", "delivered": "ok", "failed": "failed"}
"""The class of the badge of a delivery, by its state."""


def state_of(webhook: Webhook) -> tuple[str, str]:
    if not webhook.enabled:
        return "revoked", "disabled"
    return ("ok", "enabled") if webhook.failing_since is None else ("warn", "failing")


@router.get("")
async def list_webhooks(page: PageDep) -> Response:
    return await _show_list(page)


async def _show_list(
    page: Page, problem: dict[str, Any] | None = None, given: Fields | None = None
) -> Response:
    return page.show_form(
        "webhooks.html",
        problem,
        FIELDS,
        found=await page.client.webhooks.page(limit=50, after=page.asked("after")),
        given=given or {},
        chosen=given.getlist("events") if given else (),
        events=EVENTS,
        state=state_of,
    )


@router.post("")
@or_form(_show_list, 409, 422, 429)
async def create_webhook(page: PageDep) -> Response:
    form = await page.form()
    chosen = form.getlist("events")
    made = await page.client.webhooks.create(
        form.get("url", ""), events=chosen or None, description=form.get("description", "")
    )
    return _show_once(page, made)


@router.get("/made")
async def read_made(page: PageDep) -> Response:
    """The secret does not appear when the page is loaded again."""
    return page.show_note("webhook_made.html", NOTE, NOTE_PATH)


def _show_once(page: Page, made: WebhookWithSecret) -> Response:
    """A cookie carries the secret: the service stores nothing of it."""
    response = page.go(NOTE_PATH)
    page.leave_note(response, NOTE, NOTE_PATH, {"id": made.id, "secret": made.secret})
    return response


@router.get("/{webhook_id}")
async def read_webhook(page: PageDep, webhook_id: str) -> Response:
    return await _show(page, webhook_id)


async def _show(
    page: Page,
    webhook_id: str,
    problem: dict[str, Any] | None = None,
    given: Fields | None = None,
) -> Response:
    webhook = await page.client.webhooks.get(webhook_id)
    state = page.choice("state", ("all", *STATES))
    found = await page.client.webhooks.deliveries_page(
        webhook_id, state=None if state == "all" else state, limit=50, after=page.asked("after")
    )
    entered = given or {"url": webhook.url, "description": webhook.description}
    return page.show_form(
        "webhook.html",
        problem,
        FIELDS,
        webhook=webhook,
        found=found,
        given=entered,
        chosen=(webhook.events or []) if given is None else given.getlist("events"),
        events=EVENTS,
        state=state_of,
        chosen_state=state,
        states=("all", *STATES),
        badges=BADGES,
    )


@router.post("/{webhook_id}")
@or_form(_show, 422)
async def update_webhook(page: PageDep, webhook_id: str) -> Response:
    form = await page.form()
    if "enabled" in form:
        await page.client.webhooks.update(webhook_id, enabled=form["enabled"] == "yes")
        return page.go(f"{PAGE}/{path_segment(webhook_id)}")
    await page.client.webhooks.update(
        webhook_id,
        url=form.get("url", ""),
        events=form.getlist("events") or NULL,
        description=form.get("description", ""),
    )
    return page.go(f"{PAGE}/{path_segment(webhook_id)}")


@router.post("/{webhook_id}/rotate")
async def rotate_webhook(page: PageDep, webhook_id: str) -> Response:
    return _show_once(page, await page.client.webhooks.rotate(webhook_id))


@router.post("/{webhook_id}/ping")
async def ping_webhook(page: PageDep, webhook_id: str) -> Response:
    await page.client.webhooks.ping(webhook_id)
    return page.go(f"{PAGE}/{path_segment(webhook_id)}")


@router.post("/{webhook_id}/deliveries/{event_id}/replay")
async def replay_delivery(page: PageDep, webhook_id: str, event_id: str) -> Response:
    await page.client.webhooks.replay(webhook_id, event_id)
    return page.go(f"{PAGE}/{path_segment(webhook_id)}")


@router.post("/{webhook_id}/delete")
async def delete_webhook(page: PageDep, webhook_id: str) -> Response:
    await page.client.webhooks.delete(webhook_id)
    return page.go(PAGE)
