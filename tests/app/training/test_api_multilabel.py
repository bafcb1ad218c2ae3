"""Several labels over HTTP: upload, train, judge and score label by label."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.live_service import Service

CSV = {"Content-Type": "text/csv"}


def table() -> str:
    rng = np.random.default_rng(0)
    lines = ["a,b,hot,big"]
    for a, b in rng.normal(size=(160, 2)).round(3).tolist():
        lines.append(f"{a},{b},{'yes' if a > 0.1 else 'no'},{int(b - a > 0)}")
    return "\n".join([*lines, ""])


def upload(service: Service, client: httpx.Client) -> str:
    answer = client.post(
        "/v1/datasets",
        params={"kind": "multilabel", "labels": "hot, big"},
        content=table(),
        headers=CSV,
    )
    assert answer.status_code == 202, answer.text
    assert [label["name"] for label in answer.json()["labels"]] == ["hot", "big"]
    service.work()
    dataset_id: str = answer.json()["id"]
    return dataset_id


def test_from_a_table_to_a_score_for_each_label(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = upload(service, client)
    ready = client.get(f"/v1/datasets/{dataset_id}").json()
    assert ready["status"] == "ready"
    assert ready["labels"][0]["positive"] == "yes"
    assert sum(ready["labels"][0][side] for side in ("positives", "negatives")) == 160
    job = service.train(
        client, dataset_id, name="both", algorithm={"name": "adaboost_mr", "n_rounds": 10}
    )
    assert job["state"] == "succeeded", job
    model = client.get("/v1/models/both").json()
    assert (model["kind"], model["label"]) == ("multilabel", None)
    assert model["labels"][1] == {"name": "big", "positive": "1", "negative": "0"}
    metrics = client.get("/v1/models/both/metrics").json()
    assert [label["label"] for label in metrics["labels"]] == ["hot", "big"]
    assert metrics["labels"][0]["auc"]["value"] > 0.9
    values = [label["auc"]["value"] for label in metrics["labels"]]
    assert metrics["mean_auc"] == pytest.approx(np.mean(values))
    assert metrics["mean_pauc"][0]["fpr_max"] == 0.05

    one = client.get("/v1/models/both/score?a=2&b=3").json()
    assert set(one["scores"]) == {"hot", "big"}
    assert one["scores"]["hot"] > 0
    by_id = client.get(f"/v1/models/{model['id']}/score?a=2&b=3")
    assert by_id.json()["scores"] == one["scores"]
    assert "ETag" in by_id.headers
    rows = {"rows": [{"a": -2, "b": 0}, {"a": 2, "b": 3}]}
    many = client.post("/v1/models/both/score", json=rows).json()
    assert many["labels"] == ["hot", "big"]
    assert many["scores"][1] == [one["scores"]["hot"], one["scores"]["big"]]
    table: dict[str, Any] = {"content": "b,a\n0,-2\n3,2\n", "headers": CSV | {"Accept": "text/csv"}}
    text = client.post("/v1/models/both/score", **table).text.splitlines()
    assert text[0] == "hot,big"
    assert list(map(float, text[2].split(","))) == many["scores"][1]
    table["headers"] = CSV
    batch = client.post("/v1/batch-scores?model=both", **table).json()["id"]
    service.work()
    assert client.get(f"/v1/batch-scores/{batch}/result?format=csv").text.splitlines() == text
    ranked = client.post("/v1/models/both/rank?label=hot", json=rows).json()
    assert ranked["indices"] == [1, 0]
    assert ranked["scores"][0] == one["scores"]["hot"]
    explained = client.post("/v1/models/both/explain?label=big", json=rows).json()
    parts = explained["explanations"][1]
    assert parts["score"] == one["scores"]["big"]
    assert parts["offset"] + sum(parts["contributions"].values()) == pytest.approx(parts["score"])
    structure = client.get("/v1/models/both/structure").json()
    assert [label["label"] for label in structure["labels"]] == ["hot", "big"]
    assert client.get("/v1/models/both/artifact").status_code == 200
    written = client.get("/v1/models/both/report?format=markdown").text
    assert f"| AUC, big | {metrics['labels'][1]['auc']['value']:.4f} (" in written
    assert f"| Mean AUC | {metrics['mean_auc']:.4f} |" in written
    assert client.get("/v1/models/both/report").json()["metrics"][0] == metrics
    refused = client.get("/v1/models/both/roc")
    assert (refused.status_code, refused.json()["code"]) == (404, "no_curve")


def test_a_label_is_named_where_one_is_looked_at_alone(
    service: Service, client: httpx.Client
) -> None:
    several = upload(service, client)
    service.train(client, several, name="both", algorithm={"name": "adaboost_mh", "n_rounds": 5})
    service.train(client, service.upload(client), name="one")
    rows = {"rows": [{"a": 1, "b": 2}]}
    one_row = {"rows": [{"age": 1, "income": 2, "score 1": 3}]}
    for action in ("rank", "explain"):
        for query, word in (("", "it is missing"), ("?label=cold", "got 'cold'")):
            answer = client.post(f"/v1/models/both/{action}{query}", json=rows)
            assert answer.status_code == 422, answer.text
            assert word in answer.json()["detail"]
            assert "'hot', 'big'" in answer.json()["detail"]
            assert answer.json()["errors"][0]["parameter"] == "label"
        answer = client.post(f"/v1/models/one/{action}?label=hot", json=one_row)
        assert answer.status_code == 422
        assert "the model has one score a row" in answer.json()["detail"]
