"""Boosted trees over HTTP: train, score, explain, read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from live_service import Service

from core import artifact

ALGORITHMS = {
    "closed": {"name": "rankboost", "weak_ranker": "tree", "n_rounds": 8},
    "sampled": {
        "name": "rankboost",
        "weak_ranker": "tree",
        "leaf": "newton",
        "push": 2.0,
        "max_depth": 3,
        "max_leaves": None,
        "subsample": 0.5,
        "max_features": 0.7,
        "n_rounds": 8,
    },
    "logistic": {"name": "logitboost", "n_rounds": 8, "early_stopping_rounds": 5},
}


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
def test_from_a_table_to_scores(service: Service, algorithm: dict[str, Any]) -> None:
    client = service.client(service.key())
    job = service.train(client, service.upload(client), algorithm=algorithm)
    assert job["state"] == "succeeded", job
    row = {"age": 0.5, "income": -0.25, "score 1": 0.1}
    score = client.get("/v1/models/churn/score", params=row).json()["score"]
    parts = client.post("/v1/models/churn/explain", json={"rows": [row]}).json()["explanations"][0]
    assert parts["offset"] + sum(parts["contributions"].values()) == pytest.approx(score)
    structure = client.get("/v1/models/churn/structure").json()
    leaves = structure["trees"][0]["leaves"]
    assert any(name in leaves[0]["rule"] for name in row)
    assert leaves[0]["adds"] > 0 > leaves[-1]["adds"]
    ranker = artifact.load(client.get("/v1/models/churn/artifact").content)
    assert ranker.score_rows(np.array([list(row.values())])).item() == score


@pytest.mark.parametrize(
    ("algorithm", "detail"),
    [
        ({"name": "logitboost", "weak_ranker": "stump"}, "tree"),
        ({"name": "logitboost", "max_leaves": 2000}, "1024"),
        ({"name": "rankboost", "weak_ranker": "tree", "subsample": 0}, "0"),
        (
            {"name": "rankboost", "weak_ranker": "tree", "max_depth": 11, "max_leaves": None},
            "at most 10",
        ),
        ({"name": "rankboost", "push": 2}, "push must be 1"),
    ],
)
def test_bad_trees_are_refused(service: Service, algorithm: dict[str, Any], detail: str) -> None:
    client = service.client(service.key())
    dataset_id = service.upload(client)
    answer = client.post("/v1/jobs", json={"dataset_id": dataset_id, "algorithm": algorithm})
    assert answer.status_code == 422, answer.text
    assert detail in answer.text
