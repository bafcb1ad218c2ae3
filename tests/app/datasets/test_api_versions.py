"""Versions over HTTP: made, listed, refused; and what knows which of them it was made with."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx

from tests.app.live_service import Service, table
from tests.app.refusals import CSV, refused
from tests.sentences import Sentences

MORE = "age,income,score 1,left\n1,2,3,yes\n4,5,,no\n"


def add(
    client: httpx.Client,
    dataset_id: str,
    text: str = MORE,
    *,
    at: str = "",
    **params: str,
) -> httpx.Response:
    address = f"/v1/datasets/{dataset_id}/versions{at}"
    return client.post(address, params=params, content=text, headers=CSV)


def test_from_version_to_version(service_on_both: Service, sentences: Sentences) -> None:
    service = service_on_both
    client = service.client(service.key())
    first = service.upload(client)
    answer = add(client, first)
    assert answer.status_code == 202, answer.text
    second = answer.json()["id"]
    assert answer.headers["Location"] == f"/v1/datasets/{second}"
    sentences(refused(add(client, first), 409, "not_the_newest_version"))
    refused(add(client, second), 409, "dataset_not_ready")
    refused(client.delete(f"/v1/datasets/{first}"), 409, "dataset_in_use")
    service.work()
    shown = client.get(f"/v1/datasets/{second}").json()
    assert (shown["status"], shown["rows"]) == ("ready", 122)
    assert (shown["series_id"], shown["version"]) == (first, 2)
    assert (shown["parent_id"], shown["mode"], shown["name"]) == (first, "append", "people")
    before = client.get(f"/v1/datasets/{first}").json()
    assert shown["upload_sha256"] == hashlib.sha256(MORE.encode()).hexdigest()
    chained = hashlib.sha256((before["sha256"] + shown["upload_sha256"]).encode()).hexdigest()
    assert shown["sha256"] == chained

    def listed(address: str, **asked: str) -> list[str]:
        ids: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = client.get(address, params={"limit": "2"} | asked | after).json()
            ids += [entry["id"] for entry in page["data"]]
            if not page["has_more"]:
                return ids
            after = {"after": page["next"]}

    form = {"file": ("more.csv", MORE)}
    address = f"/v1/datasets/{first}/versions"
    third = client.post(address, files=form, data={"mode": "replace"}).json()["id"]
    assert listed("/v1/datasets", latest="true") == [second]  # the newest that is ready
    service.work()
    refused(add(client, second), 409, "not_the_newest_version", "version 3")
    for dataset_id in (first, second, third):
        assert listed(f"/v1/datasets/{dataset_id}/versions") == [third, second, first]
    assert listed("/v1/datasets", latest="true", name="people") == [third]
    assert listed("/v1/datasets", name="others") == []
    assert client.delete(f"/v1/datasets/{second}").status_code == 204
    assert listed(f"/v1/datasets/{first}/versions") == [third, first]
    assert client.get(f"/v1/datasets/{third}/preview").json()["data"] == [
        *([1, 2, 3, "yes"], [4, 5, None, "no"])
    ]


def test_checking_only(service: Service, client: httpx.Client) -> None:
    first = service.upload(client)
    assert add(client, first, at="/validate").json()["rows"] == 122
    bad = MORE + "7\n"
    problem = refused(add(client, first, bad, at="/validate"), 422, "invalid_table")
    assert problem["errors"][0]["line"] == MORE.count("\n") + 1
    assert len(client.get(f"/v1/datasets/{first}/versions").json()["data"]) == 1


def test_what_cannot_be_said(small: Service, dataset_id: str) -> None:
    for params, parameter in (
        ({"mode": "merge"}, "mode"),
        ({"label": "age"}, "label"),
        ({"decimal": "dot"}, "decimal"),
    ):
        client = small.client(small.key())
        problem = refused(add(client, dataset_id, **params), 422, "invalid", parameter)
        assert problem["errors"][0]["parameter"] == parameter


def test_bad_requests(small: Service, dataset_id: str) -> None:
    client = small.client(small.key())
    address = f"/v1/datasets/{dataset_id}/versions"
    refused(add(client, dataset_id, ""), 422, "empty_body")
    refused(client.post(address, content=b"x", headers={}), 415, "unsupported_media_type")
    refused(add(client, dataset_id, "x" * 60_000), 413, "too_large")
    refused(client.post(f"{address}?mode=append&mode=append", content=MORE), 422, "invalid", "once")
    for other in ("ds_x", "ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012"):
        refused(add(client, other), 404, "not_found")
        refused(client.get(f"/v1/datasets/{other}/versions"), 404, "not_found")
    refused(client.get("/v1/datasets?name="), 422, "invalid")
    refused(client.get("/v1/datasets?latest=perhaps"), 422, "invalid")
    refused(client.get(f"{address}?limit=0"), 422, "invalid")


def test_a_large_version_is_checked_by_a_worker_alone(small: Service) -> None:
    client = small.client(small.key())
    large = small.upload(
        client, table(1000)
    )  # the table that is made of it is beyond a body's bound
    refused(
        add(client, large, at="/validate"),
        413,
        "too_large",
    )
    assert add(client, large, at="/validate", mode="replace").json()["rows"] == 2


def test_what_kinds_of_columns_there_are(service: Service, client: httpx.Client) -> None:
    rows = "".join(
        f"{n}.5,{'true' if n % 3 else 'false'},{n % 4},2026-01-{n % 28 + 1:02},5,,,x{n},z,{n % 2}\n"
        if n
        else "0.5,true,1,2026-01-01,5,,u,x0,z,0\n"
        for n in range(40)
    )
    head = "number,truth,code,day,same,empty,some,name,out,left\n"
    shown: dict[str, Any] = client.get(
        f"/v1/datasets/{service.upload(client, head + rows, positive='1', categorical='code', drop='out')}"
    ).json()
    columns = {c["name"]: (c["type"], c["role"], c["constant"]) for c in shown["columns"]}
    assert columns == {
        "number": ("numeric", "feature", False),
        "truth": ("boolean", "feature", False),
        "code": ("categorical", "feature", False),
        "day": ("datetime", "feature", False),
        "same": ("numeric", "feature", True),
        "empty": ("numeric", "feature", True),
        "some": ("categorical", "feature", False),  # there or not: that may say something
        "name": ("categorical", "identifier", None),
        "out": (None, "dropped", None),
        "left": ("numeric", "label", None),
    }
