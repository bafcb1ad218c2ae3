"""The trash: what is deleted is read by nobody, and comes back as it was, or goes for good."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from app.access.repository import stored_bytes
from app.operations.housekeeping import Housekeeper
from app.platform.tables import Dataset
from app.trash.service import DAY_SECONDS, DAYS
from tests.app.live_service import OWNER, STRANGER, Service, table

KINDS = ("dataset", "model", "evaluation", "comparison")


@pytest.fixture
def made(service: Service) -> tuple[Service, httpx.Client, dict[str, str]]:
    """One of each kind, by the path where it is read."""
    client = service.client(service.key())
    dataset_id = service.upload(client)
    first, second = (
        service.train(client, dataset_id, seed=seed)["output"]["id"] for seed in (0, 1)
    )
    other = service.upload(client, table(seed=1))
    made = {
        "evaluations": {"model": first, "dataset_id": other},
        "comparisons": {"models": [first, second], "dataset_id": other},
    }
    paths = {"dataset": f"/v1/datasets/{other}", "model": f"/v1/models/{second}"}
    for kind, (name, body) in zip(KINDS[2:], made.items(), strict=True):
        answer = client.post(f"/v1/{name}", json=body)
        assert answer.status_code == 202, answer.text
        paths[kind] = answer.headers["Location"]
    service.work()
    return service, client, paths


def id_of(path: str) -> str:
    return path.rpartition("/")[2]


def listed(client: httpx.Client, path: str) -> list[str]:
    return [each["id"] for each in client.get(path.rpartition("/")[0]).json()["data"]]


def trash_of(client: httpx.Client) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in client.get("/v1/trash").json()["data"]}


def test_what_is_deleted_is_read_by_nobody_and_comes_back_as_it_was(
    made: tuple[Service, httpx.Client, dict[str, str]],
) -> None:
    service, client, paths = made
    before = {kind: client.get(path).json() for kind, path in paths.items()}
    for path in paths.values():
        assert client.delete(path).status_code == 204
        assert client.delete(path).status_code == 404  # it is there no more
    for path in paths.values():
        assert client.get(path).status_code == 404
        assert id_of(path) not in listed(client, path)
    found = trash_of(client)
    assert {kind: each["id"] for kind, each in found.items()} == {
        kind: id_of(path) for kind, path in paths.items()
    }
    assert (found["dataset"]["name"], found["model"]["name"]) == ("people", "churn")
    assert found["model"]["version"] == 2
    assert found["evaluation"]["name"] == "churn"
    assert found["comparison"]["name"] == "people"
    assert all(each["deleted_at"] < each["expires_at"] for each in found.values())
    first = client.get("/v1/trash", params={"limit": 3}).json()  # the last deleted is the first
    rest = client.get("/v1/trash", params={"limit": 3, "after": first["next"]}).json()
    listed_kinds = [each["kind"] for page in (first, rest) for each in page["data"]]
    assert (listed_kinds, rest["next"]) == ([*reversed(KINDS)], None)
    stranger = service.client(service.key(STRANGER))
    assert trash_of(stranger) == {}
    for kind, path in paths.items():
        back = f"/v1/trash/{id_of(path)}/restore"
        assert stranger.post(back).status_code == 404
        answer = client.post(back)
        assert (answer.status_code, answer.json()["kind"]) == (200, kind)
        assert client.get(path).json() == before[kind]
        assert id_of(path) in listed(client, path)
        assert client.post(back).status_code == 404
    assert trash_of(client) == {}


def test_what_is_deleted_for_good_is_gone_with_its_bytes(
    made: tuple[Service, httpx.Client, dict[str, str]],
) -> None:
    service, client, paths = made
    db, blobs = service.context.db, service.context.blobs

    def stored() -> int:
        with db.read() as session:
            return stored_bytes(session, OWNER)

    whole = stored()
    for path in paths.values():
        client.delete(path)
    assert stored() == whole  # the quota counts what can be restored
    for kind, path in paths.items():
        forever = f"/v1/trash/{id_of(path)}"
        assert client.delete(forever).status_code == 204, kind
        assert client.delete(forever).status_code == 404
        assert client.post(f"{forever}/restore").status_code == 404
    assert stored() < whole
    settings = service.settings.model_copy(update={"blob_grace_seconds": 0.0})
    removed = Housekeeper(db, blobs, settings, threading.Event()).round()
    assert removed["blobs"] >= 3
    assert service.train(client, trash_free_dataset(client), seed=2)["output"] is not None
    newest = client.get("/v1/models/churn").json()
    assert newest["version"] == 3  # the number of a deleted model is never used again


def trash_free_dataset(client: httpx.Client) -> str:
    (left,) = client.get("/v1/datasets").json()["data"]
    return str(left["id"])


def test_after_thirty_days_it_is_deleted_for_good(
    made: tuple[Service, httpx.Client, dict[str, str]],
) -> None:
    service, client, paths = made
    for path in paths.values():
        client.delete(path)
    keeper = Housekeeper(
        service.context.db, service.context.blobs, service.settings, threading.Event()
    )
    assert keeper.round()["deleted resources"] == 0
    with service.context.db.write() as session:
        session.execute(
            update(Dataset)
            .where(Dataset.deleted_at.is_not(None))
            .values(deleted_at=Dataset.deleted_at - DAYS * DAY_SECONDS)
        )
    assert keeper.round()["deleted resources"] == 1
    assert sorted(trash_of(client)) == sorted(set(KINDS) - {"dataset"})


@pytest.mark.parametrize("item_id", ["mdl_1", "churn", "x" * 5000, "ds_" + "0" * 32])
def test_what_is_not_in_the_trash_is_not_found(client: httpx.Client, item_id: str) -> None:
    for answer in (
        client.post(f"/v1/trash/{item_id}/restore"),
        client.delete(f"/v1/trash/{item_id}"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
