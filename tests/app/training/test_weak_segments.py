"""Weak segments of a trained model: stored with its validation, in the response, on the page and in the report."""

from __future__ import annotations

import httpx
import numpy as np
import pytest

from tests.app.live_service import Service

N = 3_000


def table(*, weak: bool) -> str:
    """In the branch N of a weak table the label has nothing to do with x, which elsewhere decides on it."""
    rng = np.random.Generator(np.random.Philox(3))
    x, branch = rng.normal(size=N), rng.choice(list("KLMN"), N)
    effect = np.where((branch == "N") & weak, 0.0, 2.0)
    y = rng.random(N) < 1.0 / (1.0 + np.exp(1.0 - effect * x))
    paid = np.where(y, x + 20.0, x)
    lines = [f"{a:.5f},{b},{c:.5f},{int(d)}" for a, b, c, d in zip(x, branch, paid, y, strict=True)]
    return "\n".join(["x,branch,paid,y", *lines, ""])


def trained(service: Service, client: httpx.Client, content: str, drop: str, method: str) -> str:
    dataset_id = service.upload(client, content, label="y", positive="1", drop=drop)
    validation = {"method": method} | ({"folds": 3} if method == "cross_validation" else {})
    job = service.train(client, dataset_id, algorithm={"name": "logistic"}, validation=validation)
    assert job["state"] == "succeeded", job
    return str(job["output"]["id"])


@pytest.mark.parametrize("method", ["holdout", "cross_validation"])
def test_a_branch_that_is_not_ranked(service: Service, client: httpx.Client, method: str) -> None:
    model_id = trained(service, client, table(weak=True), "paid", method)
    found = client.get(f"/v1/models/{model_id}/metrics").json()["weak_segments"]
    assert [each["conditions"] for each in found["found"]] == [[{"column": "branch", "value": "N"}]]
    (one,) = found["found"]
    assert one["auc"] < 0.6 < 0.8 < one["auc_of_others"]
    assert 0.0 < one["drop_low"] < one["auc_of_others"] - one["auc"]
    assert one["rows"] == pytest.approx(one["share"] * found["rows"])
    report = client.get(f"/v1/models/{model_id}/report", params={"format": "markdown"}).text
    assert one["words"] in report
    body = {
        "model": model_id,
        "dataset_id": client.get(f"/v1/models/{model_id}").json()["dataset_id"],
    }
    made = client.post("/v1/evaluations", json=body)
    assert made.status_code == 202, made.text
    service.work()
    evaluation = client.get(made.headers["Location"]).json()
    (again,) = evaluation["metrics"]["weak_segments"]["found"]
    assert again["conditions"] == one["conditions"]
    assert again["rows"] >= one["rows"]
    assert again["words"]
    on_training = client.get(f"/v1/models/{model_id}/metrics", params={"on": "train"}).json()
    assert on_training["weak_segments"] is None


def test_no_weak_segment_and_separation(service: Service, client: httpx.Client) -> None:
    content = table(weak=False)
    model_id = trained(service, client, content, "paid", "holdout")
    found = client.get(f"/v1/models/{model_id}/metrics").json()["weak_segments"]
    assert (found["found"], found["rows"]) == ([], N // 4)
    assert found["segments"] > 5
    sound = client.get(f"/v1/models/{model_id}").json()["warnings"]
    separated = trained(service, client, content, "branch", "holdout")
    warnings = client.get(f"/v1/models/{separated}").json()["warnings"]
    assert client.get(f"/v1/models/{separated}/metrics").json()["weak_segments"] is None
    assert any("(95 %)" in each for each in warnings)
    assert not any("(95 %)" in each for each in sound)
