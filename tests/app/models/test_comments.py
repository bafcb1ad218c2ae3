"""Comments on models over HTTP."""

from __future__ import annotations

import httpx

from app.access import service as keys
from tests.app.live_service import STRANGER, Service, table
from tests.app.refusals import refused


def train(service: Service, client: httpx.Client) -> str:
    model_id: str = service.train(client, service.upload(client, table(300)))["output"]["id"]
    return model_id


def test_comments_are_a_thread_on_one_version(service_on_both: Service) -> None:
    service = service_on_both
    ann, bob = (service.client(service.key(name=name)) for name in ("Ann", "Bob"))
    model_id = train(service, ann)
    other = train(service, ann)
    address = f"/v1/models/{model_id}/comments"
    text = "Why does <script>alert(1)</script> rank higher?\nSecond line"
    first = ann.post("/v1/models/churn:1/comments", json={"text": f"  {text} "})
    assert first.status_code == 201, first.text
    assert (first.json()["text"], first.json()["author"], first.json()["own"]) == (
        text,
        "Ann",
        True,
    )
    second = bob.post(address, json={"text": "x" * 2000}).json()
    listed = ann.get(address).json()["data"]
    assert [(each["id"], each["own"]) for each in listed] == [
        (second["id"], False),
        (first.json()["id"], True),
    ]
    page = ann.get(f"{address}?limit=1").json()
    rest = ann.get(f"{address}?after={page['next']}").json()
    assert page["data"] + rest["data"] == listed
    assert ann.get(f"/v1/models/{other}/comments").json()["data"] == []
    entry = ann.get("/v1/audit").json()["data"][0]
    assert (entry["action"], entry["made"]) == ("POST /v1/models/{ref}/comments", [second["id"]])

    refused(ann.delete(f"{address}/{second['id']}"), 403, "forbidden", "author", "Bob")
    assert bob.delete(f"/v1/models/{other}/comments/{second['id']}").status_code == 404
    assert bob.delete(f"{address}/{second['id']}").status_code == 204
    assert bob.delete(f"{address}/{second['id']}").status_code == 404
    assert [each["id"] for each in ann.get(address).json()["data"]] == [first.json()["id"]]
    # They go to the trash with the model, and come back with it.
    assert ann.delete(f"/v1/models/{model_id}").status_code == 204
    assert ann.get(address).status_code == 404
    ann.post(f"/v1/trash/{model_id}/restore")
    assert len(ann.get(address).json()["data"]) == 1
    ann.delete(f"/v1/models/{model_id}")
    assert ann.delete(f"/v1/trash/{model_id}").status_code == 204


def test_wrong_comments_are_refused(service: Service) -> None:
    client = service.client(service.key())
    address = f"/v1/models/{train(service, client)}/comments"
    wrong: list[object] = [None, "", " \n ", "x" * 2001, "a\0b", 5, {}]
    for text in wrong:
        refused(client.post(address, json={"text": text}), 422, "invalid", "text")
    assert client.post(address, json={}).status_code == 422
    assert client.post(address, json={"text": "a", "author": "me"}).status_code == 422
    assert client.post(f"{address}/validate", json={"text": "a"}).json() == {"valid": True}
    assert client.get(address).json()["data"] == []
    twice = [
        client.post(address, json={"text": "a"}, headers={"Idempotency-Key": "k"}).json()["id"]
        for _ in range(2)
    ]
    assert twice[0] == twice[1]
    reader = service.client(service.key(scopes=["read"]))
    stranger = service.client(service.key(STRANGER))
    assert reader.get(address).status_code == 200
    assert stranger.get(address).status_code == 404
    for caller, status in ((reader, 403), (stranger, 404)):
        assert caller.post(address, json={"text": "a"}).status_code == status
        assert caller.delete(f"{address}/{twice[0]}").status_code == status
    assert client.delete(f"{address}/cmt_x").status_code == 404
    assert client.post("/v1/models/none/comments", json={"text": "a"}).status_code == 404
    # A key that was rotated is the same author.
    key, secret = service.context.db.writing(keys.create, "ours", "Ann", ["read", "train"])
    id_ = service.client(secret).post(address, json={"text": "a"}).json()["id"]
    _, rotated = service.context.db.writing(keys.rotate, "ours", key.id, 60.0)
    assert service.client(rotated).delete(f"{address}/{id_}").status_code == 204
