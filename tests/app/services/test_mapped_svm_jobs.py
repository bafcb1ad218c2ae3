"""Jobs of SVMs over feature maps: from a request to scores, their parts and what the model says of itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from workbench import OWNER, Workbench

from app.platform.errors import Invalid
from app.platform.tables import JobState
from app.scoring import service as scoring
from app.scoring.service import ModelCache, Served
from app.training.service import describe_all
from core.errors import InvalidParameter

WINDOW = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.2}


def ring() -> str:
    """Return a table whose positives lie around 0: no linear score ranks them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = (X * X).sum(axis=1) < 1.0
    words = np.where(rng.random(400) < 0.5, "red", "")
    lines = [
        f"{a:.6g},{b:.6g},{word},{int(label)}"
        for (a, b), word, label in zip(X, words, y, strict=True)
    ]
    return "\n".join(["a,b,colour,y", *lines, ""])


def serve(bench: Workbench, **algorithm: Any) -> Served:
    """Train with these parameters and load the model."""
    dataset = bench.ready(ring(), label="y")
    job = bench.work_on(dataset, name="m", algorithm=algorithm, objective=WINDOW)
    assert job.state == JobState.SUCCEEDED, job.error
    cache = ModelCache(bench.db, bench.blobs, 10, lambda task: None)
    return cache.find(OWNER, bench.model(job).id)


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "auc_svm", "feature_map": "fourier", "n_components": 60},
        {"name": "pauc_svm", "feature_map": "nystroem", "surrogate": "sigmoid", "bandwidth": 1.5},
        {"name": "pauc_svm_dc", "feature_map": "nystroem", "n_components": 50},
        {"name": "pauc_svm", "feature_map": "bins", "max_bins": 10},
    ],
    ids=["fourier", "sigmoid", "difference", "bins"],
)
def test_a_mapped_machine_is_served(bench: Workbench, algorithm: dict[str, Any]) -> None:
    served = serve(bench, C=100.0, **algorithm)
    scores, _, _ = served.score(np.array([[0.0, 0.1, np.nan], [2.0, -2.0, np.nan]]))
    assert scores[0] > scores[1]
    told = scoring.structure(served)
    assert told["map"] == algorithm["feature_map"]
    assert len(told["terms"]) > 10
    assert (told["gap"] is None) == (algorithm.get("surrogate") == "sigmoid")


def test_bins_explain_a_score_and_kernels_do_not(bench: Workbench) -> None:
    row = np.array([[0.0, 0.1, np.nan]])
    (parts,) = scoring.explain(serve(bench, name="auc_svm", feature_map="bins", C=10.0), row)
    assert parts["offset"] + sum(parts["contributions"].values()) == pytest.approx(parts["score"])
    kernel = serve(bench, name="auc_svm", feature_map="fourier", C=10.0)
    with pytest.raises(InvalidParameter, match="scores are not sums of parts per feature"):
        scoring.explain(kernel, row)


def test_wrong_parameters_are_refused_when_handed_in(bench: Workbench) -> None:
    dataset = bench.ready(ring(), label="y")
    for parameters, fault in [
        ({"feature_map": "rbf"}, "feature_map must be one of"),
        ({"feature_map": "fourier", "n_components": 10**9}, "n_components must be at most 4096"),
        ({"feature_map": "fourier", "bandwidth": 0}, "bandwidth must be at least 1e-06"),
        ({"feature_map": "bins", "max_bins": 1000}, "max_bins must be at most 255"),
        ({"surrogate": "hinge"}, "surrogate must be one of 'tight', 'naive', 'sigmoid'"),
    ]:
        algorithm = {"name": "pauc_svm", **parameters}
        with pytest.raises(Invalid, match=fault):
            bench.work_on(dataset, name="m", algorithm=algorithm, objective=WINDOW)


def test_the_schema_tells_the_parameters() -> None:
    parameters = {one["name"]: one["parameters"]["properties"] for one in describe_all()}
    for name in ("auc_svm", "pauc_svm", "pauc_svm_dc"):
        choices = parameters[name]["feature_map"]["anyOf"]
        assert choices == [
            {"enum": ["fourier", "nystroem", "bins"], "type": "string"},
            {"type": "null"},
        ]
        assert parameters[name]["n_components"]["maximum"] == 4096
        assert parameters[name]["bandwidth"]["default"] == "auto"
    assert parameters["pauc_svm"]["surrogate"]["enum"] == ["tight", "naive", "sigmoid"]
