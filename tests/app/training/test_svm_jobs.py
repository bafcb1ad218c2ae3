"""Jobs of SVMs: what a collapse looks like to who asked, progress as the gap, and machines over feature maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from workbench import Workbench

from app.platform.tables import JobState
from app.scoring import service as scoring
from app.scoring.service import Served
from app.training.service import describe_all
from core import PAUCSVM
from core.errors import InvalidParameter

WINDOW = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.05}
WIDE = WINDOW | {"fpr_max": 0.2}


def table(shift: float, n: int = 1200) -> str:
    """Return three columns of numbers and one of words, and a label that the first moves by `shift`."""
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.2
    X = rng.normal(size=(n, 3))
    X[y, 0] += shift
    words = np.where(rng.random(n) < 0.5 + 0.4 * y, "red", "blue")
    lines = [
        f"{a:.6g},{b:.6g},{c:.6g},{word},{int(label)}"
        for (a, b, c), word, label in zip(X, words, y, strict=True)
    ]
    return "\n".join(["a,b,c,colour,y", *lines, ""])


@pytest.mark.parametrize(("shift", "collapses"), [(0.5, True), (4.0, False)])
def test_a_collapse_is_told_on_the_model(bench: Workbench, shift: float, collapses: bool) -> None:
    dataset = bench.ready(table(shift), label="y")
    job = bench.work_on(
        dataset, name="m", algorithm={"name": "pauc_svm", "C": 1.0}, objective=WINDOW
    )
    assert job.state == JobState.SUCCEEDED, job.error
    model = bench.model(job)
    assert (model.optimised_for, model.parameters["fpr_max"]) == (WINDOW, 0.05)
    assert any("constant scores are the optimum" in w for w in model.warnings) == collapses

    structure = scoring.structure(bench.serve(model))
    assert structure["collapsed"] is collapses
    assert (structure["critical_fpr"] is None) != collapses
    weights = {(t["feature"], t.get("is", "")): t["weight"] for t in structure["terms"]}
    assert weights["a", ""] > abs(weights["b", ""])
    assert weights["colour", "red"] > weights["colour", "blue"]


def test_progress_is_the_gap() -> None:
    seen: list[tuple[int, int, dict[str, Any]]] = []
    rows = np.random.default_rng(0).normal(size=(500, 3))
    y = rows[:, 0] > 1
    PAUCSVM(C=100.0, fpr_max=0.2).fit(
        rows, y, callback=lambda step, of, info: seen.append((step, of, info))
    )
    shares = [step / of for step, of, _ in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert seen[-1][2]["gap"] <= 1e-4 * 100.0 < seen[0][2]["gap"]


# --- feature maps --------------------------------------------------------------------------------


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
    job = bench.work_on(dataset, name="m", algorithm=algorithm, objective=WIDE)
    assert job.state == JobState.SUCCEEDED, job.error
    return bench.serve(bench.model(job))


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
