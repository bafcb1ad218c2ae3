"""/v1/webhooks: create, change, rotate and delete webhooks, and read and replay their deliveries."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update

from app.operations.housekeeping import Housekeeper
from app.platform import events, outbox
from app.platform.encryption import Cipher, Undecryptable, make_keys, read_keys
from app.platform.sql import Base
from app.platform.tables import AuditEntry, Delivery, DeliveryAttempt, OutboxEvent, Webhook
from app.webhooks import delivery_repository, repository
from app.webhooks.secrets import signing_secrets
from app.webhooks.service import MAX_ATTEMPTS, MAX_PINGS, MAX_WEBHOOKS
from tests.app.live_service import OWNER, Service
from tests.app.refusals import everything, refused
from tests.sentences import Sentences

URL = "https://hooks.example.com/in?token=sesame"
UNKNOWN = "wh_" + "0" * 32


@pytest.fixture
def client(service: Service) -> httpx.Client:
    return service.client(service.key())


def create(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/webhooks", json={"url": URL} | body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def ping(client: httpx.Client, webhook_id: str) -> str:
    answer = client.post(f"/v1/webhooks/{webhook_id}/ping")
    assert answer.status_code == 202, answer.text
    event_id: str = answer.json()["event_id"]
    return event_id


def deliveries(client: httpx.Client, webhook_id: str, **params: str) -> list[dict[str, Any]]:
    answer = client.get(f"/v1/webhooks/{webhook_id}/deliveries", params=params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def count(service: Service, table: type[Base]) -> int:
    with service.context.db.read() as session:
        return session.scalars(select(func.count()).select_from(table)).one()


def test_a_webhook_is_created_listed_changed_and_deleted(
    service: Service, client: httpx.Client
) -> None:
    answer = client.post("/v1/webhooks", json={"url": URL, "events": ["job.failed"]})
    made = answer.json()
    assert answer.headers["Location"] == f"/v1/webhooks/{made['id']}"
    assert made["secret"].startswith("whsec_")
    shown = client.get(f"/v1/webhooks/{made['id']}").json()
    assert shown == {name: value for name, value in made.items() if name != "secret"}
    assert (shown["url"], shown["events"], shown["enabled"]) == (URL, ["job.failed"], True)
    assert client.get("/v1/webhooks").json()["data"] == [shown]
    where = f"/v1/webhooks/{made['id']}"
    changed = client.patch(where, json={"events": None, "description": "pages us"}).json()
    assert (changed["events"], changed["description"], changed["url"]) == (None, "pages us", URL)
    assert client.patch(where, json={}).json() == changed
    assert client.delete(where).status_code == 204
    refused(client.get(where), 404, "not_found")


def test_the_secret_is_shown_once(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "once"}
    first = client.post("/v1/webhooks", json={"url": URL}, headers=key)
    again = client.post("/v1/webhooks", json={"url": URL}, headers=key)
    assert again.json() == first.json() | {"secret": None}
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len(client.get("/v1/webhooks").json()["data"]) == 1


def test_after_a_rotation_both_secrets_sign(service: Service, client: httpx.Client) -> None:
    made = create(client)
    rotated = client.post(f"/v1/webhooks/{made['id']}/rotate").json()
    assert rotated["secret"] not in (None, made["secret"])
    assert rotated["previous_secret_until"] > rotated["created_at"]
    cipher = Cipher(service.settings.read_secrets_keys())

    def secrets() -> list[str]:
        found = service.context.db.reading(delivery_repository.find_targets, [made["id"]])
        of = found[made["id"]]
        return signing_secrets(
            cipher, of.secret, of.previous_secret, previous_is_valid=of.previous_is_valid
        )

    assert secrets() == [rotated["secret"], made["secret"]]
    with service.context.db.write() as session:
        session.execute(update(Webhook).values(previous_valid_until=1.0))
    assert secrets() == [rotated["secret"]]


def test_secrets_are_encrypted_with_a_newer_key(
    service: Service, client: httpx.Client, tmp_path: Path
) -> None:
    made = create(client)
    client.post(f"/v1/webhooks/{made['id']}/rotate")
    old = service.settings.read_secrets_keys()
    make_keys(tmp_path / "new")
    new = read_keys(tmp_path / "new")
    file = service.settings.own_secrets_keys
    before = file.read_text()
    file.write_text((tmp_path / "new").read_text() + before)
    house = Housekeeper(service.context.db, service.blobs, service.settings, Event())
    house.round()
    file.write_text(before)
    with service.context.db.read() as session:
        (row,) = session.scalars(select(Webhook)).all()
        for encrypted in (row.secret, row.previous_secret or ""):
            assert Cipher(new).decrypt(encrypted).startswith("whsec_")
            with pytest.raises(Undecryptable):
                Cipher(old).decrypt(encrypted)


def test_without_keys_for_secrets_there_are_no_webhooks(service: Service) -> None:
    file = service.settings.own_secrets_keys
    keys = file.read_bytes()
    file.unlink()
    client = service.client(service.key())
    refused(client.post("/v1/webhooks", json={"url": URL}), 409, "no_secrets_keys")
    refused(client.post("/v1/webhooks/validate", json={"url": URL}), 409, "no_secrets_keys")
    file.write_bytes(keys)


NEW: list[tuple[str, dict[str, Any]]] = [
    *(("/url", {"url": url}) for url in (None, 5, "", "https://example.com/" + "x" * 2000)),
    *(("/url", {"url": url}) for url in ("http://example.com/", "https://ann:secret@example.com/")),
    *(("/events", {"events": types}) for types in ([], "job.failed", ["job.failed"] * 100)),
    *(("/events/0", {"events": [type_]}) for type_ in ("job.started", events.PING)),
    *(("/description", {"description": text}) for text in ("x" * 256, "\x1b[2J")),
    ("/secret", {"secret": "whsec_mine"}),
]
CHANGES: list[Any] = [
    *({"url": url} for url in ("http://example.com/", None)),
    *({"enabled": wrong} for wrong in (None, "yes")),
    *({"events": []}, {"secret": "whsec_mine"}, []),
]


def test_a_wrong_webhook_or_change_is_refused(
    service: Service, client: httpx.Client, sentences: Sentences
) -> None:
    """Wrong URLs: tests/app/platform/test_addresses.py."""
    where = f"/v1/webhooks/{create(client)['id']}"
    before = everything(service)
    for pointer, body in [("/url", {}), *NEW]:
        given = body if pointer == "/url" else {"url": URL} | body
        problem = refused(client.post("/v1/webhooks", json=given), 422, "invalid")
        assert problem["errors"][0]["pointer"] == pointer
        sentences(problem)
        refused(client.post("/v1/webhooks/validate", json=given), 422, "invalid")
    for change in CHANGES:
        refused(client.patch(where, json=change), 422, "invalid")
    assert everything(service) == before


def test_a_check_creates_nothing(service: Service, client: httpx.Client) -> None:
    before = everything(service)
    answer = client.post("/v1/webhooks/validate", json={"url": URL})
    assert answer.json() == {"valid": True}
    assert everything(service) == before


def test_an_owner_has_a_maximum_of_webhooks(client: httpx.Client) -> None:
    for _ in range(MAX_WEBHOOKS):
        create(client)
    refused(client.post("/v1/webhooks", json={"url": URL}), 409, "too_many_webhooks")
    last = client.get("/v1/webhooks").json()["data"][0]
    client.delete(f"/v1/webhooks/{last['id']}")
    create(client)


def test_a_disabled_webhook_receives_nothing(service: Service, client: httpx.Client) -> None:
    made = create(client)
    where = f"/v1/webhooks/{made['id']}"
    event_id = ping(client, made["id"])
    disabled = client.patch(where, json={"enabled": False}).json()
    assert (disabled["enabled"], disabled["disabled_reason"]) == (False, "requested")
    assert [each["state"] for each in deliveries(client, made["id"])] == ["failed"]
    refused(client.post(f"{where}/ping"), 409, "webhook_disabled")
    refused(client.post(f"{where}/deliveries/{event_id}/replay"), 409, "webhook_disabled")
    assert service.context.db.writing(events.record, OWNER, "job.failed", "job_1") is None
    assert client.patch(where, json={"enabled": False}).json() == disabled
    enabled = client.patch(where, json={"enabled": True}).json()
    assert (enabled["enabled"], enabled["disabled_at"]) == (True, None)
    assert service.context.db.writing(events.record, OWNER, "job.failed", "job_1") is not None


def test_the_log_has_attempts_and_is_filtered_by_state(
    service: Service, client: httpx.Client
) -> None:
    made = create(client)
    first, second = ping(client, made["id"]), ping(client, made["id"])
    db = service.context.db
    claims = {each.event_id: each for each in db.writing(outbox.claim, made["id"], 10, 60.0)}
    db.writing(
        delivery_repository.log_attempt,
        first,
        made["id"],
        1,
        seconds=0.5,
        status=200,
        response="ok\0",
    )
    assert db.writing(outbox.succeed, claims[first])
    db.writing(
        delivery_repository.log_attempt, second, made["id"], 1, seconds=10.0, error="timed_out"
    )
    assert [each["event_id"] for each in deliveries(client, made["id"])] == [second, first]
    (done,) = deliveries(client, made["id"], state="delivered")
    assert (done["event_id"], done["next_attempt_at"]) == (first, None)
    assert done["data"] == {"id": made["id"], "object": "webhook"}
    (attempt,) = done["attempts"]
    assert (attempt["status"], attempt["error"], attempt["response"]) == (200, None, "ok\ufffd")
    (waiting,) = deliveries(client, made["id"], state="queued")
    assert [each["error"] for each in waiting["attempts"]] == ["timed_out"]
    assert waiting["next_attempt_at"] is not None
    where = f"/v1/webhooks/{made['id']}/deliveries"
    refused(client.get(where, params={"state": "lost"}), 422, "invalid")
    page = client.get(where, params={"limit": 1}).json()
    rest = client.get(where, params={"limit": 1, "after": page["next"]}).json()
    assert [page["data"][0]["event_id"], rest["data"][0]["event_id"]] == [second, first]


def test_a_replay_sends_the_same_event_again(service: Service, client: httpx.Client) -> None:
    made = create(client)
    event_id = ping(client, made["id"])
    db = service.context.db
    (claim,) = db.writing(outbox.claim, made["id"], 10, 60.0)
    assert db.writing(outbox.fail, claim)
    replay = f"/v1/webhooks/{made['id']}/deliveries/{event_id}/replay"
    answer = client.post(replay)
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    (again,) = db.writing(outbox.claim, made["id"], 10, 60.0)
    assert (again.event_id, again.number, again.attempt) == (event_id, 2, 1)
    client.post(replay)  # while it is sent: that attempt no longer counts
    assert not db.writing(outbox.succeed, again)
    (third,) = db.writing(outbox.claim, made["id"], 10, 60.0)
    assert db.writing(outbox.succeed, third)
    with db.write() as session:
        session.execute(update(Delivery).values(attempt=MAX_ATTEMPTS))
    refused(client.post(replay), 409, "too_many_attempts")
    of_another_webhook = ping(client, create(client)["id"])
    for wrong in ("evt_1", "evt_" + "0" * 32, "%ff", of_another_webhook):
        path = f"/v1/webhooks/{made['id']}/deliveries/{wrong}/replay"
        refused(client.post(path), 404, "not_found")


def test_pings_are_bounded(service: Service, client: httpx.Client) -> None:
    made, other = create(client), create(client)
    for _ in range(MAX_PINGS):
        service.context.db.writing(events.record_ping, OWNER, other["id"])
    before = count(service, OutboxEvent)
    refused(client.post(f"/v1/webhooks/{made['id']}/ping"), 429, "too_many_pings")
    assert count(service, OutboxEvent) == before


def test_a_ping_with_a_key_is_sent_once(client: httpx.Client) -> None:
    made = create(client)
    key = {"Idempotency-Key": "test"}
    first, again = (
        client.post(f"/v1/webhooks/{made['id']}/ping", headers=key).json() for _ in range(2)
    )
    assert first == again
    assert len(deliveries(client, made["id"])) == 1


def test_the_audit_log_has_changes_without_secrets(service: Service, client: httpx.Client) -> None:
    made = create(client)
    where = f"/v1/webhooks/{made['id']}"
    client.patch(where, json={"url": "https://other.example.com/in?token=open"})
    rotated = client.post(f"{where}/rotate").json()
    client.patch(where, json={"enabled": False})
    client.delete(where)
    with service.context.db.read() as session:
        entries = session.scalars(select(AuditEntry).order_by(AuditEntry.id)).all()
        said = [each.summary or "" for each in entries if "webhooks" in each.action]
        assert next(each.made for each in entries if "webhooks" in each.action) == [made["id"]]
    assert len(said) == 5
    assert "https://hooks.example.com → https://other.example.com" in said[1]
    assert "enabled → disabled (requested)" in said[3]
    for hidden in ("sesame", "open", made["secret"], rotated["secret"]):
        assert not any(hidden in each for each in said)


def test_a_deleted_webhook_leaves_nothing(service: Service, client: httpx.Client) -> None:
    made, other = create(client), create(client)
    db = service.context.db
    shared = db.writing(events.record, OWNER, "job.failed", "job_1")
    ping(client, made["id"])
    sent = ping(client, made["id"])
    claim = next(
        each for each in db.writing(outbox.claim, made["id"], 10, 60.0) if each.event_id == sent
    )
    db.writing(delivery_repository.log_attempt, sent, made["id"], 1, seconds=0.1, status=200)
    assert db.writing(outbox.succeed, claim)
    client.delete(f"/v1/webhooks/{made['id']}")
    house = Housekeeper(db, service.blobs, service.settings, Event())
    house.round()
    with db.read() as session:
        assert session.scalars(select(OutboxEvent.id)).all() == [shared]
        assert session.scalars(select(Delivery.target)).all() == [other["id"]]
    assert count(service, DeliveryAttempt) == 0


def test_old_events_are_deleted_unless_they_are_queued(
    service: Service, client: httpx.Client
) -> None:
    made = create(client)
    kept, gone, queued = (ping(client, made["id"]) for _ in range(3))
    db = service.context.db
    for claim in db.writing(outbox.claim, made["id"], 10, 60.0):
        if claim.event_id != queued:
            db.writing(outbox.succeed, claim)
    with db.write() as session:
        old = OutboxEvent.at - repository.KEEP_SECONDS
        session.execute(
            update(OutboxEvent).where(OutboxEvent.id.in_([gone, queued])).values(at=old)
        )
    Housekeeper(db, service.blobs, service.settings, Event()).round()
    assert {each["event_id"] for each in deliveries(client, made["id"])} == {kept, queued}
