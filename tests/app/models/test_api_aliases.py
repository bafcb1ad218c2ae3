"""Aliases over HTTP: moved, removed, and at once by two."""

from __future__ import annotations

from functools import partial

import httpx

from tests.app.live_service import STRANGER, Service
from tests.app.queue_steps import at_once
from tests.long_form import LONG_FORM

ABSENT = "churn/aliases/none", "other/aliases/champion", "A!/aliases/B!", "a/aliases/%F0"


def test_aliases(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = service.upload(client)
    first, second = (service.train(client, dataset_id)["output"]["id"] for _ in range(2))
    other = service.train(client, dataset_id, name="other")["output"]["id"]
    address = "/v1/models/churn/aliases/champion"

    def put(model_id: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.put(address, json={"model_id": model_id}, headers=named)

    assert put(first, If_Match='"1"').status_code == 412  # there is nothing to match yet
    made = put(first, If_None_Match="*")
    assert (made.status_code, made.headers["ETag"]) == (201, '"1"')
    assert put(second, If_None_Match="*").status_code == 412
    missing = put(second)
    assert (missing.status_code, missing.json()["code"]) == (428, "precondition_required")
    moved = put(second, If_Match='"1"')
    assert (moved.status_code, moved.headers["ETag"]) == (200, '"2"')
    stale = put(first, If_Match='"1"')
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    assert "revision 2, not 1" in stale.json()["detail"]
    assert put(other, If_Match='"2"').status_code == 422
    for unknown in ("mdl_" + "0" * 32, "churn:99", "churn@nix", "nix", "a:b:c", "", "x" * 9000):
        assert put(unknown, If_Match='"2"').status_code in (404, 422)
    assert put(first, If_Match="x").status_code == 422
    alias = client.get(address)
    assert alias.headers["ETag"] == '"2"'
    assert [(step["revision"], step["model_id"]) for step in alias.json()["history"]] == [
        (2, second),
        (1, first),
    ]
    back = put(alias.json()["history"][1]["model_id"], If_Match='"2"')
    assert back.json()["model_id"] == first
    again = put("churn:2", If_Match='"3"')
    assert (again.status_code, again.json()["model_id"]) == (200, second)
    assert put("churn:1", If_Match='"4"').json()["model_id"] == first
    assert (
        client.put("/v1/models/churn/aliases/canary", json={"model_id": second}).status_code == 201
    )
    pages = [client.get("/v1/models/churn/aliases?limit=1").json()]
    pages.append(client.get(f"/v1/models/churn/aliases?after={pages[0]['next']}").json())
    assert [(each["alias"], each["model_id"]) for page in pages for each in page["data"]] == [
        ("canary", second),
        ("champion", first),
    ]
    assert [page["has_more"] for page in pages] == [True, False]
    assert pages[1]["data"][0] == {
        name: value for name, value in client.get(address).json().items() if name != "history"
    }
    assert client.get("/v1/models/other/aliases").json()["data"] == []
    listed = client.get("/v1/models").json()["data"]
    assert {each["id"]: each["aliases"] for each in listed} == {
        first: ["champion"],
        second: ["canary"],
        other: [],
    }
    for each in listed:
        metrics = client.get(f"/v1/models/{each['id']}/metrics").json()
        assert each["auc"] == metrics["auc"]
    stranger = service.client(service.key(STRANGER))
    for caller, name in ((stranger, "churn"), (client, "nothing"), (client, "A!")):
        assert caller.get(f"/v1/models/{name}/aliases").status_code == 404
    assert client.put("/v1/models/churn/aliases/A!", json={"model_id": first}).status_code == 422
    # It is removed by who may, and who has seen what it is now.
    reader, seen = service.client(service.key(scopes=["read"])), {"If-Match": '"5"'}
    for caller, path, headers, status in (
        (reader, address, seen, 403),
        (stranger, address, seen, 404),
        (client, address, {}, 428),
        (client, address, {"If-Match": '"1"'}, 412),
        (client, address, {"If-Match": "x"}, 422),
        *((client, f"/v1/models/{name}", seen, 404) for name in ABSENT),
    ):
        assert caller.delete(path, headers=headers).status_code == status, path
    gone = client.delete(address, headers=seen)
    assert (gone.status_code, gone.content) == (204, b"")
    assert client.get("/v1/models/churn@champion").status_code == 404
    # What was seen of it before it went is no match for it when it comes again.
    again = put(first)
    assert (again.status_code, again.headers["ETag"]) == (201, '"7"')
    assert client.delete(address, headers=seen).status_code == 412


def test_an_alias_is_moved_and_removed_at_once(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    model_id = service.train(client, service.upload(client))["output"]["id"]
    address, target = "/v1/models/churn/aliases/champion", {"model_id": model_id}
    for _ in range(5 if LONG_FORM else 1):
        tag = {"If-Match": client.put(address, json=target).headers["ETag"]}
        found = at_once(
            partial(client.delete, address, headers=tag),
            partial(client.put, address, json=target, headers=tag),
            partial(client.put, address, json=target),
        )
        statuses = tuple(answer.status_code for answer in found)
        # Who removes it, or moves it, or makes it anew: one after the other, and nobody by what went before.
        assert statuses in {(204, 412, 428), (204, 412, 201), (412, 200, 428)}, statuses
        left = client.get(address)
        if left.status_code == 200:
            answer = client.delete(address, headers={"If-Match": left.headers["ETag"]})
            assert answer.status_code == 204
