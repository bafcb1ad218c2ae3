"""Webhooks as a malicious admin of one owner would use them: to reach internal services, and to read answers, names and
secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from app.operations.deliveries import Courier
from app.platform.sql import Base
from app.webhooks.sending import Sender
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.webhooks.receivers import Receiver, status
from tests.waiting import patience


@pytest.fixture
def inside() -> Iterator[Receiver]:
    """A service on loopback, which nobody outside must reach."""
    with Receiver(answer=status(200, b"inside")).serve() as receiver:
        yield receiver


def attempt(service: Service, client: httpx.Client, sender: Sender, url: str) -> dict[str, Any]:
    """Create a webhook, let the dispatcher send a test event, and return the attempt as the API shows it."""
    made = client.post("/v1/webhooks", json={"url": url})
    assert made.status_code == 201, made.text
    path = f"/v1/webhooks/{made.json()['id']}"
    assert client.post(f"{path}/ping").status_code == 202
    courier = Courier(service.context.db, service.settings, sender)
    while courier.start_due():
        assert courier.wait(patience())
    [delivery] = client.get(f"{path}/deliveries").json()["data"]
    found: dict[str, Any]
    [found] = delivery["attempts"]
    assert client.delete(path).status_code == 204
    return found


@pytest.mark.parametrize(
    "url",
    [
        "https://169.254.169.254/latest/",
        "https://[::ffff:127.0.0.1]/",
        "https://0x7f.1/",
    ],
)
def test_an_internal_url_is_refused_by_each_route(client: httpx.Client, url: str) -> None:
    """Other spellings: tests/app/platform/test_addresses.py."""
    made = client.post("/v1/webhooks", json={"url": "https://example.com/"}).json()
    refused(client.post("/v1/webhooks", json={"url": url}), 422, "invalid")
    refused(client.post("/v1/webhooks/validate", json={"url": url}), 422, "invalid")
    path = f"/v1/webhooks/{made['id']}"
    refused(client.patch(path, json={"url": url}), 422, "invalid")
    assert client.get(path).json()["url"] == "https://example.com/"


def test_a_name_of_an_internal_service_is_refused_like_one_that_does_not_exist(
    service: Service, client: httpx.Client, inside: Receiver
) -> None:
    found = [
        attempt(service, client, Sender(), f"https://{host}:{inside.port}/")
        for host in ("localhost", "no-such-host.invalid")
    ]
    assert [(each["status"], each["error"], each["response"]) for each in found] == [
        (None, "no_allowed_address", None)
    ] * 2
    assert inside.received == []


def test_no_table_has_a_secret(service: Service, client: httpx.Client) -> None:
    headers = {"Idempotency-Key": "once"}
    made = client.post("/v1/webhooks", json={"url": "https://example.com/"}, headers=headers).json()
    path = f"/v1/webhooks/{made['id']}/rotate"
    rotated = client.post(path, headers=headers).json()
    with service.context.db.read() as session:
        for table in Base.metadata.sorted_tables:
            content = str(session.execute(select(table)).all())
            for secret in (made["secret"], rotated["secret"]):
                assert secret not in content, table.name
                assert secret.removeprefix("whsec_") not in content, table.name
