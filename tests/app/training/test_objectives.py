"""The objective of a job sets the window of its algorithm; a model reports the collapse of its SVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from app.jobs.objectives import TPR_WINDOW_START
from app.models import curves, operating_points
from app.models import metrics as model_metrics
from app.models.objectives import value_of
from app.platform.documents import Objective
from app.platform.errors import Invalid
from app.platform.tables import JobState, ModelBaselines, ModelOutOfFold
from app.scoring import service as scoring
from app.training.schemas import baselines_of
from core.metrics import PrecisionAt, value_of_metric
from tests.app.training_jobs import AUTO, HOLDOUT, Enough, payload, run
from tests.app.training_jobs import noisy as training_data
from tests.app.workbench import OWNER, Workbench, breast_cancer, on_both
from tests.long_form import long_form, rest
from tests.raising import raises
from tests.sentences import Sentences

TOP = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.05}
RATE: Objective = {"metric": "tpr", "fpr": 0.1}
RATE_WINDOW = {"metric": "pauc", "fpr_min": TPR_WINDOW_START * 0.1, "fpr_max": 0.1}


def test_the_objective_fills_the_window(bench: Workbench) -> None:
    """A rate is optimised by a window that ends there."""
    dataset = bench.ready(breast_cancer(), positive="malignant")
    algorithm = {"name": "pauc_svm", "C": 0.1}
    model = bench.model(bench.work_on(dataset, algorithm=algorithm, objective=RATE))
    assert (model.objective, model.optimised_for) == (RATE, RATE_WINDOW)
    ranker = bench.ranker(model)
    for name in ("fpr_min", "fpr_max"):
        assert model.parameters[name] == getattr(ranker, name) == RATE_WINDOW[name]


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
    point = operating_points.objective_point(
        bench.db.reading(operating_points.find_objective_curves, model)
    )
    assert 0.0 < point.fpr.value <= 0.1
    assert point.tpr.low < point.tpr.value <= point.tpr.high
    curve = bench.db.reading(curves.roc, OWNER, model.id, "validation").curve
    assert point.tpr.value == curve.tpr[curve.fpr <= 0.1].max()
    assert (
        bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")["operating_point"]
        == point
    )
    trained = bench.db.reading(model_metrics.metrics, OWNER, model.id, "train")["operating_point"]
    assert trained.threshold == point.threshold
    curve = bench.db.reading(curves.roc, OWNER, model.id, "train").curve
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
    assert bench.db.reading(operating_points.find_objective_curves, bench.model(job)) is None


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


@pytest.mark.parametrize(("shift", "collapses"), [(0.5, True), *rest((4.0, False))])
def test_a_collapse_is_told_on_the_model(bench: Workbench, shift: float, collapses: bool) -> None:
    dataset = bench.ready(shifted(shift), label="y")
    job = bench.work_on(dataset, name="m", algorithm={"name": "pauc_svm", "C": 1.0}, objective=TOP)
    assert job.state == JobState.SUCCEEDED, job.error
    model = bench.model(job)
    assert (model.optimised_for, model.parameters["fpr_max"]) == (TOP, 0.05)
    assert any("the same score" in w for w in model.warnings) == collapses

    structure = scoring.structure(bench.serve(model))
    assert structure["collapsed"] is collapses
    assert (structure["critical_fpr"] is None) != collapses
    weights = {(t["feature"], t.get("is", "")): t["weight"] for t in structure["terms"]}
    assert weights["a", ""] > abs(weights["b", ""])
    assert weights["colour", "red"] > weights["colour", "blue"]


METRICS: list[tuple[Objective, str]] = [
    ({"metric": "average_precision"}, "average_precision"),
    ({"metric": "precision", "count": 20}, "precision@20"),
]
LIKE_THEM: list[tuple[Objective, str]] = [
    ({"metric": "lift", "share": 0.15}, "lift@15%"),
    ({"metric": "precision_at_recall", "recall": 0.8}, "precision_at_recall:0.8"),
    ({"metric": "ndcg", "count": 10}, "ndcg@10"),
]


@pytest.mark.parametrize(("objective", "name"), [*METRICS, *rest(*LIKE_THEM)])
def test_a_model_has_the_figure_of_its_objective(
    bench: Workbench, objective: Objective, name: str
) -> None:
    """The figure is that of the stored curve; a count is one of the 142 validation rows."""
    dataset = bench.ready(breast_cancer(), positive="malignant")
    search = {"method": "grid", "space": {"C": [0.01, 1.0]}}
    options = {"objective": objective, "search": search, "baselines": True}
    job = bench.work_on(dataset, name="m", algorithm={"name": "logistic"}, **options)
    model = bench.model(job)
    assert model.objective == model.selected_by == objective
    assert model.optimised_for == {"metric": "auc"}
    part = bench.db.reading(curves.roc, OWNER, model.id, "validation")
    (expected,) = model_metrics.measured_on(part.curve, part.totals, [name], part.level)
    found = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")["metric"]
    assert found == model_metrics.metric_record(expected)
    assert found["low"] < found["value"] <= found["high"]
    trained = bench.db.reading(model_metrics.metrics, OWNER, model.id, "train")["metric"]
    if "count" in objective:
        share = 100 * objective["count"] / sum(part.rows)
        assert trained["metric"] == f"{objective['metric']}@{share:.12g}%"
    else:
        assert trained["metric"] == name
    with bench.db.read() as session:
        compared = baselines_of(model, session.get_one(ModelBaselines, model.id))
    assert compared.metric is not None
    assert compared.metric.chosen.value == pytest.approx(found["value"], abs=0.02)
    assert [each.algorithm for each in compared.metric.baselines] == ["logistic", "auc_svm"]
    assert [(each.fpr_min, each.fpr_max) for each in compared.windows] == [(0, 1), (0, 0.05)]
    assert model.beats_baselines is False
    again = bench.model(bench.work_on(dataset, name="m", algorithm={"name": "logistic"}, **options))
    assert again.search is not None
    assert model.search is not None
    values = [candidate["value"] for candidate in model.search["candidates"]]
    assert values == [candidate["value"] for candidate in again.search["candidates"]]
    assert again.artifact_sha256 == model.artifact_sha256


def test_ndcg_of_rows_that_were_scored_twice_is_none(bench: Workbench) -> None:
    """Under repeated cross-validation each score counts for a half of its row, and a rank has no fractions."""
    dataset = bench.ready(shifted(1.0), label="y")
    for metric, repeats, name in (
        ("ndcg", 2, None),
        ("ndcg", 1, "ndcg"),
        ("average_precision", 2, "average_precision"),
    ):
        model = bench.model(
            bench.work_on(
                dataset,
                algorithm={"name": "logistic"},
                objective={"metric": metric},
                validation={"method": "cross_validation", "folds": 2, "repeats": repeats},
            )
        )
        found = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")["metric"]
        assert (None if found is None else found["metric"]) == name


@long_form
def test_under_folds_a_count_is_a_share_of_each_fold(bench: Workbench) -> None:
    dataset = bench.ready(breast_cancer(), positive="malignant")
    objective: Objective = {"metric": "precision", "count": 100}
    job = bench.work_on(
        dataset,
        name="m",
        algorithm={"name": "logistic"},
        objective=objective,
        validation={"method": "cross_validation", "folds": 3, "repeats": 2},
        search={"method": "grid", "space": {"C": [0.01, 1.0]}},
        baselines=True,
    )
    model = bench.model(job)
    found = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")["metric"]
    assert found["metric"] == "precision@100"  # of all 569 rows, each scored by a ranker of a fold
    with bench.db.read() as session:
        compared = baselines_of(model, session.get_one(ModelBaselines, model.id))
        kept = session.get_one(ModelOutOfFold, model.id)
    assert compared.metric is not None
    assert compared.metric.metric == f"precision@{100 * 100 / 569:.12g}%"
    table = pq.read_table(bench.blobs.path(kept.blob_key))
    entry = {name: table.column(name).to_numpy() for name in table.column_names}
    folds = [
        value_of_metric(PrecisionAt(share=100 / 569), entry["y"][own], entry["score"][own])
        for own in (
            (entry["repeat"] == repeat) & (entry["fold"] == fold)
            for repeat in (1, 2)
            for fold in (1, 2, 3)
        )
    ]
    assert compared.metric.chosen.value == pytest.approx(np.mean(folds))
    assert compared.metric.chosen.low < compared.metric.chosen.value


def test_a_count_needs_rows_that_count_alike_and_so_many(
    bench: Workbench, sentences: Sentences
) -> None:
    rows = [(str(k % 7), str(int(k % 3 == 0)), str(1 + k % 2)) for k in range(400)]
    plain = bench.ready("\n".join(["a,y", *(",".join(row[:2]) for row in rows)]), label="y")
    body = "\n".join(["a,y,w", *map(",".join, rows)])
    weighted = bench.ready(body, label="y", weight="w")
    five, linear = {"metric": "precision", "count": 5}, {"name": "logistic"}
    for dataset, objective, *named in (
        (weighted, five, weighted.id, "share"),
        (weighted, {"metric": "ndcg"}, weighted.id, "average_precision"),
        (plain, {"metric": "precision", "count": 1000}, "100", "1,000"),
    ):
        with raises(Invalid, *named) as refusal:
            bench.submit(dataset, algorithm=linear, objective=objective)
        assert refusal.value.errors[0]["pointer"].startswith("/objective/")
    evaluated: Any = {"validation": {"method": "dataset", "dataset_id": weighted.id}}
    with sentences.raises(Invalid):
        bench.submit(plain, algorithm=linear, objective=five, **evaluated)


@long_form
def test_auto_compares_by_the_figure(tmp_path: Path) -> None:
    objective = {"metric": "lift", "share": 0.15}
    data = training_data(200)
    job = payload(tmp_path, data, algorithm=AUTO, objective=objective, validation=HOLDOUT)
    found = run(job, Enough(20))
    board = found["leaderboard"]["candidates"]
    measured = [row["value"] for row in board if row["value"] is not None]
    assert 1.0 < max(measured) <= 1.0 / 0.15 + 1e-9
    assert min(measured) >= 0.0
