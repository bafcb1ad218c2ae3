"""Ranking trees over HTTP: upload, train, curve, score, structure, artifact; and what is refused."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest
from live_service import Service
from raw_table import raw_table
from refusals import job, refused

from core import artifact

TREE = {"name": "treerank", "pruning": "cv", "n_folds": 3, "order": "validation"}
FOREST = {"name": "treerank_forest", "n_trees": 5}
ROW = {
    "age": "41",
    "workclass": "Private",
    "education": "Masters & more",
    "hours-per-week": "40",
    "native-country": "Country-3",
}


@pytest.mark.parametrize("algorithm", [TREE, FOREST], ids=["tree", "forest"])
def test_from_upload_to_score(
    service: Service, client: httpx.Client, algorithm: dict[str, Any]
) -> None:
    dataset_id = service.upload(client, raw_table(), label="income", positive=">50K")
    done = service.train(client, dataset_id, algorithm=algorithm)
    assert done["state"] == "succeeded", done
    model = f"/v1/models/{done['model_id']}"
    metrics = client.get(f"{model}/metrics").json()
    points = pd.DataFrame(
        client.get(f"{model}/roc", params={"max_points": 10_000}).json()["points"]
    )
    area = np.trapezoid(points["tpr"], points["fpr"])
    assert area == pytest.approx(metrics["auc"]["value"], abs=1e-9)
    assert area > 0.7

    rich = client.get(f"{model}/score", params=ROW).json()["score"]
    assert rich > client.get(f"{model}/score", params=ROW | {"education": "11th"}).json()["score"]
    unseen = client.get(f"{model}/score", params=ROW | {"education": "Kindergarten"})
    absent = client.get(f"{model}/score", params=ROW | {"education": ""})
    assert unseen.json()["score"] == absent.json()["score"]
    structure = client.get(f"{model}/structure").json()
    assert "ranking tree" in structure["type"]
    if algorithm is TREE:
        path = structure["pruning_path"]
        leaves = [step["leaves"] for step in path]
        assert leaves == sorted(set(leaves), reverse=True)
        assert (path[0]["penalty"], leaves[-1], path[-1]["training_auc"]) == (0.0, 1, 0.5)
        (kept,) = (step for step in path if step["leaves"] == structure["leaves"])
        assert kept["training_auc"] == pytest.approx(structure["training_auc"])
        assert kept["validation_auc"] == max(step["validation_auc"] for step in path)
    ranker = artifact.load(client.get(f"{model}/artifact").content)
    row = {name: [float(x) if x.isdigit() else x] for name, x in ROW.items()}
    assert ranker.decision_function(pd.DataFrame(row))[0] == rich


@pytest.mark.parametrize(
    ("parameters", "pointer", "words"),
    [
        ({"splitter": "oblique"}, "splitter", ["'leafrank'", "'oblique'"]),
        ({"max_depth": 63}, "max_depth", ["at most 62, got 63"]),
        ({"max_leaves": 1}, "max_leaves", ["at least 2, got 1"]),
        ({"min_samples_leaf": 0}, "min_samples_leaf", ["greater than 0, got 0"]),
        ({"leafrank_depth": 9}, "leafrank_depth", ["at most 8, got 9"]),
        ({"leafrank_max_leaves": "all"}, "leafrank_max_leaves", ["'all'"]),
        ({"max_bins": 256}, "max_bins", ["at most 255, got 256"]),
        ({"pruning": True}, "pruning", ["got True"]),
        ({"n_folds": 1}, "n_folds", ["at least 2, got 1"]),
        ({"order": "validation"}, "", ["unless pruning holds rows out"]),
        ({"name": "treerank_forest", "n_trees": 0}, "n_trees", ["at least 1, got 0"]),
        ({"name": "treerank_forest", "max_features": 1.5}, "max_features", ["at most 1, got 1.5"]),
        ({"name": "treerank_forest", "splitter": "grid"}, "splitter", ["'axis'", "'grid'"]),
    ],
)
def test_bad_parameters(
    small: Service, parameters: dict[str, Any], pointer: str, words: list[str]
) -> None:
    client = small.client(small.key())
    body = job("ds_none", algorithm={"name": "treerank"} | parameters)
    problem = refused(client.post("/v1/jobs", json=body), 422, "invalid_parameter", *words)
    assert problem["errors"][0]["pointer"].startswith(f"/algorithm/{pointer}".rstrip("/"))
