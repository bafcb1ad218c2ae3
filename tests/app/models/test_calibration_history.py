"""A recalibration has a reason and an author, and is undone."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx

from tests.app.live_service import NAMES, STRANGER, Service, table
from tests.app.queue_steps import at_once
from tests.app.refusals import refused
from tests.sentences import Sentences


def restore(client: httpx.Client, address: str, to: object, now: int | None, **body: Any) -> Any:
    headers = {} if now is None else {"If-Match": f'"{now}"'}
    return client.post(f"{address}/restore", json={"version": to, **body}, headers=headers)


def test_a_recalibration_is_explained_and_undone(
    service_on_both: Service, sentences: Sentences
) -> None:
    service = service_on_both
    client = service.client(service.key(name="Ann"))
    model_id = service.train(client, service.upload(client, table(600)))["output"]["id"]
    later = service.upload(client, table(600, seed=4), name="later")
    address = f"/v1/models/{model_id}/calibration"
    row = dict.fromkeys(NAMES, 0.25)

    def probability() -> float:
        found: float = client.get("/v1/models/churn:1/score", params=row).json()["probability"]
        return found

    def recalibrate(**body: Any) -> Any:
        return client.put(address, json={"dataset_id": later, **body})

    before = probability()
    assert recalibrate(reason="Default rate has doubled").status_code == 202
    entry = client.get("/v1/audit").json()["data"][0]
    sentences(entry["summary"])
    service.work()
    second = client.get(address)
    assert second.headers["ETag"] == '"2"'
    found = second.json()
    assert (found["reason"], found["author"]) == ("Default rate has doubled", "Ann")
    assert probability() != before

    assert restore(client, address, 1, None).status_code == 428
    assert restore(client, address, 1, 1).status_code == 412
    undone = restore(client, address, 1, 2)
    assert (undone.status_code, undone.headers["ETag"]) == (200, '"3"')
    assert (undone.json()["restores"], undone.json()["author"]) == (1, "Ann")
    assert probability() == before
    summary = client.get("/v1/audit").json()["data"][0]["summary"]
    assert summary.startswith("churn v1: calibration 2 (")
    both = at_once(*(partial(restore, client, address, 2, 3) for _ in range(2)))
    assert sorted(answer.status_code for answer in both) == [200, 412]
    history = client.get(address).json()["history"]
    assert [(each["version"], each["restores"]) for each in history] == [
        (4, 2),
        (3, 1),
        (2, None),
        (1, None),
    ]


def test_wrong_restorations_are_refused(service: Service) -> None:
    client = service.client(service.key())
    model_id = service.train(client, service.upload(client, table(300)))["output"]["id"]
    address = f"/v1/models/{model_id}/calibration"
    refused(restore(client, address, 1, 1), 422, "invalid", "version", "current")
    assert restore(client, address, 2, 1).status_code == 404
    for version in (0, 2**31, "1", None, True):
        refused(restore(client, address, version, 1), 422, "invalid", "version")
    refused(restore(client, address, 1, 1, reason=""), 422, "invalid", "reason")
    reader = service.client(service.key(scopes=["read"]))
    stranger = service.client(service.key(STRANGER))
    assert restore(reader, address, 1, 1).status_code == 403
    assert restore(stranger, address, 1, 1).status_code == 404
    later = service.upload(client, table(300, seed=4), name="later")
    for reason in ("", "x" * 2001, 5):
        body = {"dataset_id": later, "reason": reason}
        refused(client.put(address, json=body), 422, "invalid", "reason")
