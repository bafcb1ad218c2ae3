"""Legal holds and retention over HTTP: what they keep and delete, and bad input."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from sqlalchemy import update

from app.operations.audit_seals import Sealer
from app.platform.audit_keys import AuditKeys
from app.platform.tables import AuditEntry, BatchScore, Dataset, Evaluation, Job, Model
from tests.app.feedback.test_upkeep import keeper
from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.refusals import refused

YEAR = 365 * 86_400.0


@pytest.fixture
def client(service: Service) -> httpx.Client:
    return service.client(service.key())


def place(client: httpx.Client, kind: str, resource_id: str | None = None) -> str:
    answer = client.post(
        "/v1/holds", json={"kind": kind, "resource_id": resource_id, "reason": "a case"}
    )
    assert answer.status_code == 201, answer.text
    placed: str = answer.json()["id"]
    return placed


def age(service: Service, *tables: Any) -> None:
    """Make everything of these tables a year older."""
    with service.context.db.write() as session:
        for table in tables:
            session.execute(update(table).values(created_at=table.created_at - YEAR))


def test_what_is_on_hold_is_not_deleted(service: Service, client: httpx.Client) -> None:
    dataset = service.upload(client)
    model = service.train(client, dataset)["output"]["id"]
    holds = place(client, "dataset", dataset), place(client, "model", model)
    for path in (f"/v1/datasets/{dataset}", f"/v1/models/{model}"):
        answer = client.delete(path)
        assert (answer.status_code, answer.json()["code"]) == (409, "on_hold"), answer.text
        assert any(hold in answer.json()["detail"] for hold in holds)
    other = service.upload(client)
    assert client.delete(f"/v1/datasets/{other}").status_code == 204
    in_trash = place(client, "dataset", other)
    assert client.delete(f"/v1/trash/{other}").json()["code"] == "on_hold"
    with service.context.db.write() as session:
        session.execute(
            update(Dataset).where(Dataset.id == other).values(deleted_at=Dataset.deleted_at - YEAR)
        )
    keeper(service).round()
    assert client.post(f"/v1/trash/{other}/restore").status_code == 200
    for hold in (*holds, in_trash):
        released = client.post(f"/v1/holds/{hold}/release", json={"reason": "closed"})
        assert released.json()["released_at"] is not None
        again = client.post(f"/v1/holds/{hold}/release", json={"reason": "closed"})
        assert (again.status_code, again.json()["code"]) == (409, "hold_released")
    assert client.get("/v1/holds", params={"active": True}).json()["data"] == []
    assert len(client.get("/v1/holds").json()["data"]) == 3
    assert client.delete(f"/v1/models/{model}").status_code == 204
    assert client.delete(f"/v1/datasets/{dataset}").status_code == 204


def test_a_hold_on_the_owner_keeps_everything(service: Service, client: httpx.Client) -> None:
    dataset = service.upload(client)
    model = service.train(client, dataset)["output"]["id"]
    asked = {"model": model, "dataset_id": dataset}
    evaluation = client.post("/v1/evaluations", json=asked).json()["id"]
    scores = client.post("/v1/batch-scores", json=asked).json()["id"]
    service.work()
    commented = client.post(f"/v1/models/{model}/comments", json={"text": "evidence"})
    hold = place(client, "owner")
    for path in (
        f"/v1/models/{model}/comments/{commented.json()['id']}",
        f"/v1/datasets/{dataset}",
        f"/v1/models/{model}",
        f"/v1/evaluations/{evaluation}",
        f"/v1/batch-scores/{scores}",
    ):
        assert client.delete(path).json()["code"] == "on_hold", path
    asked_to_erase = client.post("/v1/erasures", json={"id": "c1"})
    assert (asked_to_erase.status_code, asked_to_erase.json()["code"]) == (409, "on_hold")
    # Only entries that the dispatcher has numbered are removed
    Sealer(service.context.db, service.blobs, AuditKeys()).seal()
    age(service, AuditEntry, BatchScore)
    with service.setting(keep_audit_days=1.0, keep_scores_days=1.0):
        before = len(client.get("/v1/audit", params={"limit": 100}).json()["data"])
        keeper(service).round()
        assert len(client.get("/v1/audit", params={"limit": 100}).json()["data"]) == before
        assert client.get(f"/v1/batch-scores/{scores}").status_code == 200
        client.post(f"/v1/holds/{hold}/release", json={"reason": "closed"})
        keeper(service).round()
        assert client.get(f"/v1/batch-scores/{scores}").status_code == 404
        assert len(client.get("/v1/audit", params={"limit": 100}).json()["data"]) == 1
    assert client.delete(f"/v1/evaluations/{evaluation}").status_code == 204


def test_an_owner_has_so_many_holds(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.access.holds.MAX_ACTIVE", 2)
    first, _ = place(client, "owner"), place(client, "owner")
    more = {"kind": "owner", "reason": "a case"}
    refused(client.post("/v1/holds", json=more), 409, "too_many_holds")
    assert client.post(f"/v1/holds/{first}/release", json={"reason": "closed"}).is_success
    assert client.post("/v1/holds", json=more).status_code == 201


def test_bad_holds_are_refused(service: Service, client: httpx.Client) -> None:
    theirs = service.client(service.key(owner=STRANGER))
    dataset = service.upload(theirs)
    for body, status in (
        ({"kind": "dataset", "resource_id": dataset, "reason": "x"}, 404),
        ({"kind": "dataset", "resource_id": "ds_\0", "reason": "x"}, 404),
        ({"kind": "model", "resource_id": "mdl_1", "reason": "x"}, 404),
        ({"kind": "dataset", "reason": "x"}, 422),
        ({"kind": "owner", "resource_id": dataset, "reason": "x"}, 422),
        ({"kind": "job", "resource_id": dataset, "reason": "x"}, 422),
        ({"kind": "owner", "reason": " "}, 422),
        ({"kind": "owner", "reason": "x" * 2001}, 422),
        ({"kind": "owner", "reason": 1}, 422),
        ({"kind": "owner", "reason": "x", "until": 1}, 422),
    ):
        answer = client.post("/v1/holds", json=body)
        assert answer.status_code == status, (body, answer.text)
    hold = place(theirs, "owner")
    for unknown in (hold, "hld_1", "x" * 5000):
        assert client.get(f"/v1/holds/{unknown}").status_code == 404
        released = client.post(f"/v1/holds/{unknown}/release", json={"reason": "x"})
        assert released.status_code == 404
    assert client.get("/v1/holds").json()["data"] == []


def test_retention_deletes_what_is_older_and_nothing_else(
    service: Service, client: httpx.Client
) -> None:
    old, held = service.upload(client), service.upload(client)
    models = [service.train(client, old)["output"]["id"] for _ in range(4)]
    client.put("/v1/models/churn/aliases/live", json={"model_id": models[1]})
    for alias, shadow in (("live", "churn:3"), ("spare", models[3])):
        address = f"/v1/models/churn/aliases/{alias}"
        client.put(address, json={"model_id": models[1]})
        answer = client.put(f"{address}/feedback", json={"shadow": shadow})
        assert answer.is_success, answer.text
    asked = {"model": models[1], "dataset_id": old}
    client.post("/v1/evaluations", json=asked)
    client.post("/v1/batch-scores", json=asked)
    service.work()
    stranger = service.client(service.key(owner=STRANGER))
    theirs = service.upload(stranger)
    place(client, "dataset", held)
    age(service, Dataset, Model, Evaluation, BatchScore)
    fresh = service.upload(client)
    days = {"datasets": 300, "models": 300, "evaluations": 300, "batch_scores": 300}
    shown = client.post(f"/v1/retention/{OWNER}/preview", json=days).json()
    assert shown == dict.fromkeys(days, 1) | {"decisions": None, "jobs": None}
    keeper(service).round()
    assert client.get(f"/v1/datasets/{old}").status_code == 200  # a preview changes nothing
    answer = client.put(f"/v1/retention/{OWNER}", json=days)
    assert (answer.status_code, answer.json()["datasets"]) == (200, 300)
    keeper(service).round()
    assert client.get(f"/v1/datasets/{old}").status_code == 404
    left = {each["id"] for each in client.get("/v1/models").json()["data"]}
    assert left == set(models[1:])  # served, or compared as the challenger
    for path in ("/v1/evaluations", "/v1/batch-scores", "/v1/trash"):
        assert client.get(path).json()["data"] == [], path
    left = {each["id"] for each in client.get("/v1/datasets").json()["data"]}
    assert left == {held, fresh}
    assert stranger.get(f"/v1/datasets/{theirs}").status_code == 200
    assert [each["owner"] for each in client.get("/v1/retention").json()["data"]] == [OWNER]
    assert client.put(f"/v1/retention/{OWNER}", json={}).json()["updated_at"] is None
    assert client.get("/v1/retention").json()["data"] == []


def test_days_of_the_owner_replace_the_setting(service: Service, client: httpx.Client) -> None:
    dataset = service.upload(client)
    model = service.train(client, dataset)["output"]["id"]
    asked = {"model": model, "dataset_id": dataset}
    scores = client.post("/v1/batch-scores", json=asked).json()["id"]
    service.work()
    age(service, BatchScore)
    client.put(f"/v1/retention/{OWNER}", json={"batch_scores": 400, "jobs": 400})
    with service.setting(keep_scores_days=1.0, keep_jobs_days=1.0):
        keeper(service).round()
        assert client.get(f"/v1/batch-scores/{scores}").status_code == 200
        client.put(f"/v1/retention/{OWNER}", json={"batch_scores": 300, "jobs": 300})
        with service.context.db.write() as session:
            session.execute(update(Job).values(finished_at=Job.finished_at - YEAR))
        keeper(service).round()
    assert client.get(f"/v1/batch-scores/{scores}").status_code == 404
    keeper(service).round()
    kinds = {each["kind"] for each in client.get("/v1/jobs").json()["data"]}
    assert "batch_score" not in kinds
    assert "train" in kinds


def test_bad_days_are_refused(service: Service, client: httpx.Client) -> None:
    wrong: list[Any] = [[], {"uploads": 3}, {"decisions": [1]}, {"jobs": 1e9}, {"models": "soon"}]
    for body in (*wrong, {"datasets": 0}, {"datasets": -1}):
        for path in (f"/v1/retention/{OWNER}/preview", f"/v1/retention/{OWNER}"):
            method = "POST" if path.endswith("preview") else "PUT"
            answer = client.request(method, path, json=body)
            assert answer.status_code == 422, (body, answer.text)
