"""Commands for webhooks: URLs to which the service sends events."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer

from rankwright import types
from rankwright.cli.common import (
    CommandFailed,
    Service,
    asks,
    err,
    given,
    out,
    print_lines,
)
from rankwright.operations import NULL

Webhook = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Id of the webhook, wh_….")]
Event = Annotated[str, typer.Argument(metavar="EVENT", help="Id of the event, evt_….")]
EVENTS = "Type of events to send, such as job.failed. Repeat it for several."

webhooks = typer.Typer(
    no_args_is_help=True,
    help="Create, list, change, test and delete webhooks, and read and replay their deliveries.",
)


@webhooks.command()
@asks()
def create(
    client: Service,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="https:// URL that receives the events.")
    ],
    *,
    event: Annotated[list[str] | None, typer.Option(help=f"{EVENTS} Default: all types.")] = None,
    description: Annotated[str, typer.Option(help="Description, for your own use.")] = "",
) -> None:
    """Create a webhook. Its secret is shown once."""
    made = client.webhooks.create(address, description=description, **given(events=event or None))
    _show_secret(client, made)


@webhooks.command("list")
@asks()
def list_webhooks(client: Service) -> None:
    """List the webhooks, newest first."""
    found = [*client.webhooks.list()]
    if client.prints_json([each.to_json() for each in found]):
        return
    if not found:
        err.print_line("there is no webhook")
        return
    print_lines((each.id, _state(each), each.url, _types(each)) for each in found)


@webhooks.command()
@asks()
def update(
    client: Service,
    webhook: Webhook,
    *,
    address: Annotated[str | None, typer.Option(help="New URL.")] = None,
    event: Annotated[list[str] | None, typer.Option(help=EVENTS)] = None,
    all_events: Annotated[
        bool, typer.Option("--all-events", help="Send events of all types.")
    ] = False,
    description: Annotated[str | None, typer.Option(help="New description.")] = None,
    enable: Annotated[
        bool | None,
        typer.Option("--enable/--disable", help="Enable or disable the webhook."),
    ] = None,
) -> None:
    """Change a webhook, disable it, or enable it."""
    if event and all_events:
        raise CommandFailed("--all-events cannot be combined with --event")
    changes: dict[str, Any] = given(
        url=address,
        events=NULL if all_events else event or None,
        description=description,
        enabled=enable,
    )
    if not changes:
        raise CommandFailed("pass at least one change, such as --disable")
    found = client.webhooks.update(webhook, **changes)
    _show(client, found)


@webhooks.command()
@asks()
def rotate(client: Service, webhook: Webhook) -> None:
    """Give a webhook a new secret. The previous one also signs for 24 hours."""
    made = client.webhooks.rotate(webhook)
    _show_secret(client, made)


@webhooks.command()
@asks(json=None)
def ping(client: Service, webhook: Webhook) -> None:
    """Send a test event."""
    sent = client.webhooks.ping(webhook)
    out.print_line(f"{sent.event_id}  {sent.state}")


class State(str, Enum):
    """The states of a delivery."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    FAILED = "failed"


@webhooks.command()
@asks()
def deliveries(
    client: Service,
    webhook: Webhook,
    *,
    state: Annotated[State | None, typer.Option(help="Only deliveries in this state.")] = None,
    limit: Annotated[int, typer.Option(help="Most deliveries to show.", min=1)] = 20,
) -> None:
    """List the deliveries to a webhook with their last attempts, newest first."""
    chosen = None if state is None else state.value
    listed = client.webhooks.deliveries(webhook, limit=limit + 1, **given(state=chosen))
    found = [each for each, _ in zip(listed, range(limit + 1), strict=False)]
    shown = found[:limit]
    if client.prints_json([each.to_json() for each in shown]):
        return
    if not shown:
        err.print_line("there is no delivery")
        return
    print_lines(
        (each.event_id, each.created_at[:19], each.type, each.state, _last_attempt(each))
        for each in shown
    )
    if len(found) > limit:
        err.print_line(f"… and more: --limit is {limit}")


@webhooks.command()
@asks(json=None)
def replay(client: Service, webhook: Webhook, event: Event) -> None:
    """Send an event to a webhook again."""
    sent = client.webhooks.replay(webhook, event)
    out.print_line(f"{sent.event_id}  {sent.state}")


@webhooks.command()
@asks(json=None)
def delete(client: Service, webhook: Webhook) -> None:
    """Delete a webhook, with its queued deliveries and its log."""
    client.webhooks.delete(webhook)
    out.print_line(f"{webhook}  deleted")


def _show_secret(client: Service, made: types.WebhookWithSecret) -> None:
    if client.prints_json(made.to_json()):
        return
    print_lines([("webhook", made.id), ("url", made.url), ("secret", made.secret or "")])
    err.print_line("store the secret now: it is not shown again")


def _show(client: Service, found: types.Webhook) -> None:
    if client.prints_json(found.to_json()):
        return
    print_lines(
        [
            ("webhook", found.id),
            ("url", found.url),
            ("events", _types(found)),
            ("description", found.description),
            ("state", _state(found)),
        ]
    )


def _types(webhook: types.Webhook) -> str:
    return "all events" if webhook.events is None else ", ".join(webhook.events)


def _state(webhook: types.Webhook) -> str:
    if not webhook.enabled:
        return f"disabled ({webhook.disabled_reason})"
    return "enabled" if webhook.failing_since is None else f"failing since {webhook.failing_since}"


def _last_attempt(delivery: types.WebhookDelivery) -> str:
    if not delivery.attempts:
        return ""
    last = delivery.attempts[0]
    return f"attempt {last.attempt}: {last.error if last.status is None else last.status}"
