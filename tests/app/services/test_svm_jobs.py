"""Jobs of the partial-AUC SVMs: what a collapse looks like to who asked, progress as the gap, weights as structure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from workbench import OWNER, Workbench

from app.platform.errors import Invalid
from app.platform.tables import JobState
from app.scoring import service as scoring
from app.scoring.service import ModelCache
from core import PAUCSVM

WINDOW = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.05}


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

    cache = ModelCache(bench.db, bench.blobs, 10, lambda task: None)
    structure = scoring.structure(cache.find(OWNER, model.id))
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


def test_wrong_parameters_are_refused_when_handed_in(bench: Workbench) -> None:
    dataset = bench.ready(table(4.0), label="y")
    for algorithm, fault in [
        ({"name": "pauc_svm", "C": "best"}, "C must be a finite number or one of 'auto'"),
        ({"name": "pauc_svm", "C": -1}, "C must be greater than 0, got -1"),
        ({"name": "pauc_svm", "fpr_max": 0.5}, "fpr_max comes from the job's 'objective'"),
        ({"name": "pauc_svm_dc", "surrogate": "naive"}, "pauc_svm_dc has no parameter 'surrogate'"),
    ]:
        with pytest.raises(Invalid, match=fault):
            bench.work_on(dataset, name="m", algorithm=algorithm, objective=WINDOW)
