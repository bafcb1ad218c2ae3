"""The objective of a job sets the window of its algorithm; a model reports the collapse of its SVM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from app.models import service as models
from app.models.objectives import TPR_WINDOW_START, value_of
from app.platform.documents import Objective
from app.platform.tables import JobState
from app.scoring import service as scoring
from tests.app.workbench import OWNER, Workbench, breast_cancer, on_both

Json = dict[str, Any]
WINDOW = {"metric": "pauc", "fpr_min": 0.02, "fpr_max": 0.3}
TOP = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.05}
RATE: Objective = {"metric": "tpr", "fpr": 0.1}
RATE_WINDOW = {"metric": "pauc", "fpr_min": TPR_WINDOW_START * 0.1, "fpr_max": 0.1}


@pytest.mark.parametrize(
    ("algorithm", "objective", "optimised_for"),
    [
        ({"name": "komori_eguchi_boost", "n_rounds": 5}, WINDOW, WINDOW),
        ({"name": "pauc_svm", "C": 0.1}, RATE, RATE_WINDOW),  # by a window that ends there
        ({"name": "komori_eguchi_boost", "n_rounds": 3}, {"metric": "auc"}, {"metric": "auc"}),
    ],
)
def test_the_objective_fills_the_window(
    bench: Workbench, algorithm: Json, objective: Json, optimised_for: Json
) -> None:
    dataset = bench.ready(breast_cancer(), positive="malignant")
    model = bench.model(bench.work_on(dataset, algorithm=algorithm, objective=objective))
    assert (model.objective, model.optimised_for) == (objective, optimised_for)
    window = {"fpr_min": 0.0, "fpr_max": 1.0} | optimised_for
    ranker = bench.ranker(model)
    for name in ("fpr_min", "fpr_max"):
        assert model.parameters[name] == getattr(ranker, name) == window[name]


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_worth_what_their_best_plain_cut_catches(weighted: bool) -> None:
    counts = np.array([90, 10, 30, 70])  # positives at 2 and at 0, negatives at 2 and at 0
    y, scores = np.array([1, 1, 0, 0]), np.array([2.0, 0.0, 2.0, 0.0])
    rows = np.arange(4) if weighted else np.repeat(np.arange(4), counts)
    weight = counts.astype(float) if weighted else None
    # .1 lies below the first cut's FPR of .3: the curve's height there, .3, is that of a cut drawn by lot
    for fpr, worth in ((0.1, 0.0), (0.29, 0.0), (0.3, 0.9), (0.99, 0.9), (1.0, 1.0)):
        assert value_of(y[rows], scores[rows], weight, RATE | {"fpr": fpr}) == worth


@on_both
def test_the_cut_at_a_rate_comes_with_the_model(bench: Workbench) -> None:
    """The validation rows set the threshold; the figures on training rows use the same one."""
    dataset = bench.ready(breast_cancer(), positive="malignant")
    job = bench.work_on(dataset, name="m", algorithm={"name": "logistic"}, objective=RATE)
    model = bench.model(job)
    assert model.optimised_for == {"metric": "auc"}
    point = bench.db.reading(models.point_of_objective, model)
    assert 0.0 < point.fpr.value <= 0.1
    assert point.tpr.low < point.tpr.value <= point.tpr.high
    curve = bench.db.reading(models.roc, OWNER, model.id, "validation").curve
    assert point.tpr.value == curve.tpr[curve.fpr <= 0.1].max()
    assert (
        bench.db.reading(models.metrics, OWNER, model.id, "validation")["operating_point"] == point
    )
    trained = bench.db.reading(models.metrics, OWNER, model.id, "train")["operating_point"]
    assert trained.threshold == point.threshold
    curve = bench.db.reading(models.roc, OWNER, model.id, "train").curve
    above = curve.thresholds >= point.threshold
    assert (trained.fpr.value, trained.tpr.value) == (curve.fpr[above][-1], curve.tpr[above][-1])


def test_without_validation_there_is_no_cut(bench: Workbench) -> None:
    dataset = bench.ready(breast_cancer(), positive="malignant")
    job = bench.work_on(
        dataset,
        name="m",
        algorithm={"name": "logistic"},
        objective=RATE,
        validation={"method": "none"},
    )
    assert bench.db.reading(models.point_of_objective, bench.model(job)) is None


def shifted(shift: float, n: int = 1200) -> str:
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
    dataset = bench.ready(shifted(shift), label="y")
    job = bench.work_on(dataset, name="m", algorithm={"name": "pauc_svm", "C": 1.0}, objective=TOP)
    assert job.state == JobState.SUCCEEDED, job.error
    model = bench.model(job)
    assert (model.optimised_for, model.parameters["fpr_max"]) == (TOP, 0.05)
    assert any("constant scores are the optimum" in w for w in model.warnings) == collapses

    structure = scoring.structure(bench.serve(model))
    assert structure["collapsed"] is collapses
    assert (structure["critical_fpr"] is None) != collapses
    weights = {(t["feature"], t.get("is", "")): t["weight"] for t in structure["terms"]}
    assert weights["a", ""] > abs(weights["b", ""])
    assert weights["colour", "red"] > weights["colour", "blue"]
