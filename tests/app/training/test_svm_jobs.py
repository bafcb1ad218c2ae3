"""Jobs of SVMs: what a collapse looks like to who asked."""

from __future__ import annotations

import numpy as np
import pytest

from app.platform.tables import JobState
from app.scoring import service as scoring
from tests.app.workbench import Workbench

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

    structure = scoring.structure(bench.serve(model))
    assert structure["collapsed"] is collapses
    assert (structure["critical_fpr"] is None) != collapses
    weights = {(t["feature"], t.get("is", "")): t["weight"] for t in structure["terms"]}
    assert weights["a", ""] > abs(weights["b", ""])
    assert weights["colour", "red"] > weights["colour", "blue"]
