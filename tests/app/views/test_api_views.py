"""Saved views: a name for the query of a list of the console."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from app.views.service import MAX_FIELDS, MAX_VIEWS
from tests.app.live_service import STRANGER, Service
from tests.app.refusals import everything, refused
from tests.sentences import Sentences


@pytest.fixture
def client(service: Service) -> httpx.Client:
    return service.client(service.key())


def save(client: httpx.Client, name: str, query: str = "", of: str = "models") -> httpx.Response:
    return client.put(f"/v1/views/{of}/{quote(name, safe='')}", json={"query": query})


def test_a_view_is_saved_listed_replaced_and_deleted(
    service: Service, client: httpx.Client
) -> None:
    made = save(client, "best first", "sort=-auc&columns=auc&columns=tags")
    assert made.status_code == 201
    view = made.json()
    assert (view["list"], view["name"], view["author"]) == ("models", "best first", "test")
    assert save(client, "überfällig", "state=failed", "jobs").status_code == 201
    again = save(client, "best first", "sort=auc")
    assert again.status_code == 200
    assert again.json()["id"] == view["id"]
    found = client.get("/v1/views", params={"list": "models"}).json()["data"]
    assert [(each["name"], each["query"]) for each in found] == [("best first", "sort=auc")]
    assert len(client.get("/v1/views").json()["data"]) == 2
    assert client.delete("/v1/views/models/best%20first").status_code == 204
    refused(client.delete("/v1/views/models/best%20first"), 404, "not_found")
    assert client.get("/v1/views", params={"list": "models"}).json()["data"] == []


def test_views_belong_to_their_owner(service: Service, client: httpx.Client) -> None:
    save(client, "mine", "sort=auc")
    stranger = service.client(service.key(STRANGER))
    assert stranger.get("/v1/views").json()["data"] == []
    refused(stranger.delete("/v1/views/models/mine"), 404, "not_found")
    assert save(stranger, "mine", "sort=name").status_code == 201
    (found,) = client.get("/v1/views").json()["data"]
    assert found["query"] == "sort=auc"
    reader = service.client(service.key(scopes=["read"]))
    assert len(reader.get("/v1/views").json()["data"]) == 1
    refused(save(reader, "other"), 403, "forbidden")
    refused(reader.delete("/v1/views/models/mine"), 403, "forbidden")


@pytest.mark.parametrize(
    ("of", "name", "body"),
    [
        ("keys", "x", {"query": ""}),
        ("models", "x" * 101, {"query": ""}),
        ("models", "a\nb", {"query": ""}),
        ("models", " ", {"query": ""}),
        ("models", "...", {"query": ""}),
        ("models", "x", {}),
        ("models", "x", {"query": 5}),
        ("models", "x", {"query": "a=ü"}),
        ("models", "x", {"query": "no-parameter"}),
        ("models", "x", {"query": "a=" + "b" * 2000}),
        ("models", "x", {"query": "&".join(f"a{i}=1" for i in range(MAX_FIELDS + 1))}),
        ("models", "x", {"query": "", "color": "red"}),
    ],
)
def test_what_is_refused(
    service: Service,
    client: httpx.Client,
    sentences: Sentences,
    of: str,
    name: str,
    body: dict[str, Any],
) -> None:
    before = everything(service)
    answer = client.put(f"/v1/views/{of}/{quote(name, safe='')}", json=body)
    assert answer.status_code == 422
    sentences(answer.json())
    assert everything(service) == before
    assert client.get("/v1/views", params={"list": "keys"}).status_code == 422
    # Clients remove such a part of an address, so nobody could delete the view.
    assert client.put("/v1/views/models/%2E%2E", json={"query": ""}).status_code == 422


def test_an_owner_has_at_most_so_many(client: httpx.Client) -> None:
    for number in range(MAX_VIEWS):
        assert save(client, f"view {number}").status_code == 201
    refused(save(client, "one more"), 409, "too_many_views", str(MAX_VIEWS))
    assert save(client, "view 7", "sort=auc").status_code == 200
    page = client.get("/v1/views", params={"limit": 60}).json()
    rest = client.get("/v1/views", params={"limit": 60, "after": page["next"]}).json()
    names = [each["name"] for each in page["data"] + rest["data"]]
    assert len(set(names)) == MAX_VIEWS
    assert names[0] == "view 7"


def test_two_that_save_the_same_name_at_once_make_one_view(service_on_both: Service) -> None:
    client = service_on_both.client(service_on_both.key())
    with ThreadPoolExecutor(4) as pool:
        made: list[httpx.Response] = list(
            pool.map(lambda i: save(client, "same", f"search={i}"), range(12))
        )
    assert {each.status_code for each in made} <= {200, 201}
    (view,) = client.get("/v1/views").json()["data"]
    assert view["query"] in {f"search={i}" for i in range(12)}
