"""The validation of a job that requests none: repeated cross-validation for small tables, a holdout for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import numpy as np

from app.platform.tables import Dataset
from app.training.records import AlgorithmSpec
from app.training.service import default_validation
from tests.app.live_service import Service
from tests.app.training_jobs import noisy, payload, run

RANKBOOST: AlgorithmSpec = {"name": "rankboost", "parameters": {}}
HOLDOUT = {"method": "holdout", "fraction": 0.25}


def folded(folds: int = 5, repeats: int = 4) -> dict[str, Any]:
    return {"method": "cross_validation", "folds": folds, "repeats": repeats}


def auto(budget: float) -> AlgorithmSpec:
    return {"name": "auto", "parameters": {"budget_seconds": budget}}


GRID = {"method": "grid", "space": {"n_rounds": [5, 10]}}
WIDE = {
    "method": "grid",
    "space": {"max_leaves": list(range(2, 27)), "learning_rate": [k / 100 for k in range(1, 40)]},
}


def test_small_tables_are_cross_validated_where_it_is_affordable() -> None:
    cases: list[tuple[dict[str, Any], Any, Any, Any]] = [
        ({"rows": 2_999, "positives": 1_000}, RANKBOOST, None, folded()),
        ({"rows": 3_000, "positives": 1_000}, RANKBOOST, None, HOLDOUT),
        ({"rows": 3_000, "positives": 99}, RANKBOOST, None, folded(repeats=3)),
        ({"rows": 3_000, "positives": 2_901}, RANKBOOST, None, folded(repeats=3)),
        ({"rows": 3_000, "positives": 100}, RANKBOOST, None, HOLDOUT),
        ({"rows": 100_000, "positives": 99}, RANKBOOST, None, folded(repeats=3)),
        ({"rows": 100_001, "positives": 99}, RANKBOOST, None, HOLDOUT),
        ({"rows": 100, "positives": 9}, RANKBOOST, None, folded(folds=4)),
        ({"rows": 100, "positives": 3}, RANKBOOST, None, HOLDOUT),
        ({"rows": 500, "positives": 200}, RANKBOOST, GRID, folded(repeats=3)),
        ({"rows": 500, "positives": 200}, RANKBOOST, WIDE, HOLDOUT),
        ({"rows": 500, "positives": 200}, auto(60.0), None, folded(repeats=3)),
        ({"rows": 500, "positives": 200}, auto(10.0), None, HOLDOUT),
        ({"rows": 180, "positives": 14}, auto(20.0), None, folded(repeats=3)),
        ({"rows": 2_400, "positives": 200}, auto(20.0), None, HOLDOUT),
        ({"rows": 500, "positives": 200, "query": "q"}, RANKBOOST, None, HOLDOUT),
        ({"rows": 500, "positives": 200, "group": "g"}, RANKBOOST, None, folded()),
        ({"rows": 500, "positives": None, "kind": "graded"}, RANKBOOST, None, HOLDOUT),
    ]
    for dataset, algorithm, search, expected in cases:
        rows, positives = dataset["rows"], dataset["positives"]
        negatives = None if positives is None else rows - positives
        row = Dataset(**({"kind": "bipartite", "columns": [], "negatives": negatives} | dataset))
        assert default_validation(row, algorithm, search) == expected


def submit(service: Service, client: httpx.Client, dataset_id: str, **more: Any) -> Any:
    """Train without a validation; returns the model."""
    body = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost", "n_rounds": 5}} | more
    answer = client.post("/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["Location"]).json()
    assert job["state"] == "succeeded", job
    return client.get(f"/v1/models/{job['output']['id']}").json()


def test_a_quarter_is_held_out_where_rows_are_too_alike_for_folds(
    service: Service, client: httpx.Client
) -> None:
    """The positives are in three groups: enough for one split, and too few for five folds."""
    rng = np.random.default_rng(2)
    lines = ["a,who,y"]
    for k in range(120):
        lines.append(f"{rng.normal():.4f},{f'c{k % 3}' if k < 30 else f'n{k}'},{int(k < 30)}")
    dataset_id = service.upload(
        client, "\n".join(lines) + "\n", name="loans", label="y", positive="1", group="who"
    )
    body = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost", "n_rounds": 5}}
    checked = client.post("/v1/jobs/validate", json=body).json()
    assert checked["validation"] == folded()
    once = client.post("/v1/jobs/validate", json=body | {"validation": HOLDOUT}).json()
    assert checked["estimate"]["seconds"] > once["estimate"]["seconds"]
    model = submit(service, client, dataset_id)
    assert model["validation"] == HOLDOUT
    assert any("cross-validation" in each for each in model["warnings"])
    metrics = client.get(f"/v1/models/{model['id']}/metrics").json()
    assert not metrics["approximate"]
    job = service.train(client, dataset_id, validation=folded())  # requested folds are an error
    assert (job["state"], job["error"]["code"]) == ("failed", "too_few_rows")


def test_weights_and_missing_values_may_be_cross_validated_by_default(tmp_path: Path) -> None:
    found = run(payload(tmp_path, noisy(200), validation=folded(), automatic_validation=True))
    assert found["validation"] == folded()
    assert found["out_of_fold"]["entries"] == 4 * 200
