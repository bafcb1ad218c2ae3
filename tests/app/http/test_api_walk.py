"""The whole way, on both databases: upload, train, judge, score, explain, download."""

from __future__ import annotations

import hashlib
from functools import partial

import pytest

from core import artifact
from tests.app.live_service import NAMES, Service, table
from tests.long_form import long_form


def test_from_a_table_to_scores(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = service.upload(client)
    dataset = client.get(f"/v1/datasets/{dataset_id}").json()
    assert dataset["status"] == "ready"
    assert (dataset["label"], dataset["positive"], dataset["negative"]) == ("left", "yes", "no")
    assert dataset["rows"] == dataset["positives"] + dataset["negatives"] == 120
    assert [column["role"] for column in dataset["columns"]].count("feature") == 3

    job = service.train(client, dataset_id, tags={"team": "risk"})
    assert job["state"] == "succeeded"
    assert job["algorithm"]["n_rounds"] == 10
    assert job["algorithm"]["max_bins"] == 255  # resolved at submit

    model = client.get(f"/v1/models/{job['output']['id']}").json()
    assert (model["name"], model["version"]) == ("churn", 1)
    assert [feature["name"] for feature in model["features"]] == NAMES
    assert [feature["missing"] for feature in model["features"]] == [False, False, True]

    metrics = client.get("/v1/models/churn/metrics").json()
    assert 0.5 < metrics["auc"]["low"] < metrics["auc"]["value"] < metrics["auc"]["high"] <= 1
    assert (metrics["pauc"][0]["fpr_min"], metrics["pauc"][0]["fpr_max"]) == (0.0, 0.05)

    roc = client.get("/v1/models/churn/roc").json()
    assert roc["exact"]
    assert (roc["points"][0]["fpr"], roc["points"][0]["tpr"]) == (0, 0)
    assert roc["points"][0]["threshold"] is None
    assert (roc["points"][-1]["fpr"], roc["points"][-1]["tpr"]) == (1, 1)

    row = {"age": 0.5, "income": -0.25, "score 1": 0.1}
    score = client.get(f"/v1/models/{model['id']}/score", params=row).json()
    assert score["model_id"] == model["id"]
    assert {"fpr": score["fpr"], "tpr": score["tpr"]} in [
        {"fpr": point["fpr"], "tpr": point["tpr"]} for point in roc["points"]
    ]
    many = client.post("/v1/models/churn/score", json={"rows": [row, row]}).json()
    assert many["scores"] == [score["score"]] * 2
    assert many["fprs"] == [score["fpr"]] * 2

    parts = client.post("/v1/models/churn/explain", json={"rows": [row]}).json()["explanations"][0]
    total = parts["offset"] + sum(parts["contributions"].values())
    assert total == pytest.approx(score["score"])

    download = client.get("/v1/models/churn:1/artifact")
    assert hashlib.sha256(download.content).hexdigest() == model["artifact"]["sha256"]
    assert artifact.load(download.content).score_rows is not None


@long_form
def test_head_answers_as_get_without_its_body(service: Service) -> None:
    client = service.client(service.key())
    dataset_id = service.upload(client)
    job = service.train(client, dataset_id)
    ids = {"{dataset_id}": dataset_id, "{job_id}": job["id"], "{model}": job["output"]["id"]}
    described = client.get("/openapi.json").json()["paths"]
    found = 0
    for template in [path for path, of_path in described.items() if "get" in of_path]:
        path = "/".join(ids.get(part, part) for part in template.split("/"))
        if "{" in path or path == "/metrics":  # its counts move
            continue
        got, head = client.get(path), client.head(path)
        assert head.status_code == got.status_code, path
        assert head.headers.get("Content-Type") == got.headers.get("Content-Type"), path
        assert head.content == b""
        found += got.status_code == 200
    assert found > 15
    assert client.head("/v1/jobs/job_none").status_code == 404
    assert client.head("/v1/fits", params={"nix": 1}).status_code == 422
    assert client.head("/v1/keys", headers={"Authorization": "Bearer no"}).status_code == 401


def test_the_replay_of_a_waiting_upload_waits_too(service: Service) -> None:
    client = service.client(service.key())
    headers = {"Content-Type": "text/csv", "Prefer": "wait=60", "Idempotency-Key": "nightly"}
    send = partial(client.post, "/v1/datasets", content=table().encode(), headers=headers)
    with service.at_work():
        first, again = send(), send()
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert client.delete(f"/v1/datasets/{first.json()['id']}").status_code == 204
    late = send()  # at once, for there is nothing to wait for
    assert (late.status_code, late.json()["status"]) == (202, "processing")
