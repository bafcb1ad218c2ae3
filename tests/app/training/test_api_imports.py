"""Models of LightGBM and XGBoost imported over HTTP: equal scores, and refusals that store nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from app.models.imported import IMPORTED
from core.importing.ranker import NAME
from tests.app.live_service import STRANGER, Service
from tests.core.importing.test_import_model import MODELS, stored

LIGHTGBM, XGBOOST = "lightgbm-4.7.0-binary.txt", "xgboost-3.2.0-logistic.json"
"""Of the same three columns, of which one is a category."""
OLD = "xgboost-2.1.4-logistic.ubj"


def dataset(service: Service, client: httpx.Client, name: str, **fields: str) -> str:
    """Upload the rows of a fixture with a label that depends on the scores; return the dataset's id."""
    _, rows, scores = stored(name)
    rng = np.random.default_rng(0)
    rows = rows.assign(left=np.where(scores + rng.normal(size=len(rows)) > 0, "yes", "no"))
    return service.upload(client, rows.to_csv(index=False), **fields)


def declared(name: str) -> dict[str, str]:
    """The fields that a fixture must declare."""
    options, _, _ = stored(name)
    return {
        field: json.dumps(value) if field == "categories" else str(value)
        for field, value in options.items()
    }


def send(
    client: httpx.Client, name: str, dataset_id: str, content: bytes | None = None, **fields: str
) -> httpx.Response:
    given = {"name": "churn", "dataset_id": dataset_id, **declared(name), **fields}
    file = MODELS[name].read_bytes() if content is None else content
    return client.post("/v1/models", data=given, files={"file": (name, file)})


def ended(service: Service, client: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """Do the job, and return it."""
    assert answer.status_code == 202, answer.text
    service.work()
    job: dict[str, Any] = client.get(f"/v1/jobs/{answer.json()['id']}").json()
    return job


def lines(scores: np.ndarray) -> str:
    return "\n".join(map(repr, scores.tolist()))


def scores_of(client: httpx.Client, model: str, rows: pd.DataFrame) -> list[float]:
    answer = client.post(
        f"/v1/models/{model}/score", json={"rows": json.loads(rows.to_json(orient="records", double_precision=15))}
    )
    assert answer.status_code == 200, answer.text
    return [each["score"] for each in answer.json()["data"]]


def test_name_of_the_algorithm() -> None:
    assert IMPORTED == NAME


@pytest.mark.parametrize("name", [LIGHTGBM, XGBOOST, OLD])
def test_imported_model_scores_as_its_library(service: Service, name: str) -> None:
    client = service.client(service.key())
    _, rows, expected = stored(name)
    dataset_id = dataset(service, client, name)
    job = ended(service, client, send(client, name, dataset_id, expected=lines(expected)))
    assert job["state"] == "succeeded", job["error"]
    assert (job["kind"], job["output"]["kind"]) == ("import", "model")
    model = client.get("/v1/models/churn").json()
    assert model["imported"].split()[0].lower() == name.partition("-")[0]
    assert model["rows"] == {
        "unit": "rows", "dataset": len(rows), "training": None, "validation": len(rows)
    }
    assert model["dataset"] is None
    assert model["validation_dataset"]["id"] == dataset_id
    assert [each["name"] for each in model["features"]] == list(rows)
    print(client.get("/v1/models/churn/metrics").json())
    np.testing.assert_array_equal(scores_of(client, "churn", rows), expected)
