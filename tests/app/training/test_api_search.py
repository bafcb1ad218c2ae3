"""A search over HTTP: asked for, checked, shown."""

from __future__ import annotations

import httpx

from tests.app.live_service import Service, table

GRID = {"method": "grid", "space": {"n_rounds": [40, 3, 12]}}


def test_a_search_is_shown_with_its_model(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = service.upload(client, table(300))
    job = service.train(client, dataset_id, algorithm={"name": "rankboost"}, search=GRID)
    assert job["state"] == "succeeded", job
    assert job["search"] == GRID | {"fraction": 0.25}
    assert job["algorithm"]["n_rounds"] == 40
    model = client.get("/v1/models/churn").json()
    found = model["search"]
    assert found["chosen"]["n_rounds"] in (3, 12, 40)
    assert model["algorithm"]["n_rounds"] == found["chosen"]["n_rounds"]
    assert [c["parameters"]["n_rounds"] for c in found["candidates"]] == [3, 12, 40]
    best = max(candidate["value"] for candidate in found["candidates"])
    (winner,) = (c for c in found["candidates"] if c["state"] == "chosen")
    assert (winner["parameters"], winner["value"]) == (found["chosen"], best)
    assert (found["method"], found["fraction"], found["folds"]) == ("grid", 0.25, None)
    assert (found["space"], found["folds_chosen"]) == (GRID["space"], [])
    assert model["selected_by"] == {"metric": "auc"}
    structure = client.get("/v1/models/churn/structure").json()
    assert structure["rounds"] == found["chosen"]["n_rounds"]
    assert client.get("/v1/models").json()["data"][0]["selected_by"] == {"metric": "auc"}


def test_without_a_search_there_is_none(service: Service, client: httpx.Client) -> None:
    job = service.train(client, service.upload(client), search=None)
    assert job["search"] is None
    model = client.get("/v1/models/churn").json()
    assert (model["search"], model["selected_by"]) == (None, None)


def test_a_check_tells_what_a_search_would_cost(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client, table(300))
    found = []
    for algorithm, search in (
        ({"name": "rankboost", "n_rounds": 100_000}, None),
        ({"name": "rankboost"}, {"method": "grid", "space": {"n_rounds": [10, 100_000]}}),
    ):
        body = {"dataset_id": dataset_id, "algorithm": algorithm, "search": search}
        answer = client.post("/v1/jobs?validate=true", json=body)
        assert answer.status_code == 200, answer.text
        found.append(answer.json())
    assert found[1]["search"]["fraction"] == 0.25
    assert found[1]["algorithm"]["n_rounds"] == 100_000
    assert 1.5 < found[1]["estimate"]["seconds"] / found[0]["estimate"]["seconds"] < 2
    assert client.get("/v1/jobs").json()["data"] == []
