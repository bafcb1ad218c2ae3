"""Webhooks from a shell: created, listed, changed, rotated, tested, replayed, deleted."""

from __future__ import annotations

import json
from collections.abc import Callable

from typer.testing import Result

Run = Callable[..., Result]
URL = "https://example.com/hooks"


def test_a_webhook_is_created_changed_and_deleted(run: Run) -> None:
    assert "whsec_" in run("webhooks", "create", URL, "--event", "job.failed").stdout
    (made,) = json.loads(run("webhooks", "list", "--json").stdout)
    assert (made["url"], made["events"]) == (URL, ["job.failed"])
    id_ = made["id"]
    rotated = json.loads(run("webhooks", "rotate", id_, "--json").stdout)
    assert rotated["secret"].startswith("whsec_")
    changed = json.loads(
        run("webhooks", "update", id_, "--all-events", "--description", "x", "--json").stdout
    )
    assert (changed["events"], changed["description"], changed["enabled"]) == (None, "x", True)
    assert "queued" in run("webhooks", "ping", id_).stdout
    (sent,) = json.loads(run("webhooks", "deliveries", id_, "--json").stdout)
    assert sent["event_id"] in run("webhooks", "deliveries", id_).stdout
    assert "queued" in run("webhooks", "replay", id_, sent["event_id"]).stdout
    assert "requested" in run("webhooks", "update", id_, "--disable").stdout
    assert run("webhooks", "deliveries", id_, "--state", "delivered").stdout == ""
    assert "requested" in run("webhooks", "list").stdout
    run("webhooks", "delete", id_)
    assert run("webhooks", "list").stdout == ""
