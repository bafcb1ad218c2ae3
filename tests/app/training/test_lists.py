"""Datasets with queries and with grades: trained, judged within queries, evaluated and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.evaluation.comparisons import COMPARISONS
from app.models import calibrations, curves
from app.models import metrics as model_metrics
from app.platform.errors import Invalid, NotFound
from app.platform.tables import Dataset, JobState, Model
from app.training import service as training_service
from app.training.algorithms import kinds_of
from app.training.lists import METRICS, count_informative, draw_queries
from core.metrics import (
    compare_lists,
    list_metric_named,
    measure_graded,
    measure_lists,
)
from core.registry import ALGORITHMS
from tests.app.evaluated_people import ask_comparison, evaluate
from tests.app.workbench import OWNER, Workbench, on_both
from tests.long_form import long_form, rest
from tests.sentences import Sentences

BOOST = {"name": "rankboost", "n_rounds": 30}


class Answers:
    """Rows of queries. A query shifts the worth of all its rows, so that only the order within queries is learnt."""

    def __init__(self, n_queries: int, seed: int, top: int = 1) -> None:
        rng = np.random.default_rng(seed)
        self.query = rng.permutation(np.repeat(np.arange(n_queries), rng.integers(3, 9, n_queries)))
        n = len(self.query)
        self.X = rng.normal(size=(n, 2)).round(3)
        self.weight = rng.integers(0, 3, n).astype(float)
        worth = self.X[:, 0] + 0.5 * rng.normal(size=n) + rng.normal(size=n_queries)[self.query]
        self.y = np.clip(np.round(worth + top / 2), 0, top).astype(int)

    def csv(self) -> str:
        rows = zip(self.X.tolist(), self.query, self.weight, self.y, strict=True)
        lines = [f"{a},{b},q{q},{w:g},{y}" for (a, b), q, w, y in rows]
        return "\n".join(["a,b,q,w,y", *lines, ""])

    def upload(self, bench: Workbench, **given: str) -> Dataset:
        fields = {"label": "y", "query": "q"} | given
        if "weight" not in fields:
            fields["drop"] = "w" if "query" in fields else "w,q"
        if fields.get("query") == "":
            del fields["query"]
            fields["drop"] = "w,q"
        return bench.ready(self.csv(), **fields)

    def scores(self, bench: Workbench, model: Model) -> np.ndarray:
        table = pa.table({"a": self.X[:, 0], "b": self.X[:, 1]})
        return np.asarray(bench.ranker(model).decision_function(table))


def measured(answers: Answers, scores: np.ndarray, *, graded: bool, **more: Any) -> list[Any]:
    metrics = [list_metric_named(name) for name in METRICS]
    return [
        (each.metric.name, each.interval.value, each.interval.low, each.queries, each.skipped)
        for each in measure_lists(answers.y, scores, answers.query, metrics, graded=graded, **more)
    ]


def shown(found: Any) -> list[Any]:
    return [
        (each["metric"], each["value"], each["low"], each["queries"], each["skipped"])
        for each in found["metrics"]
    ]


def ends_of(interval: Any) -> dict[str, float]:
    return {end: getattr(interval, end) for end in ("value", "low", "high")}


def evaluated_by(
    bench: Workbench, learn: Answers, judge: Answers, algorithm: dict[str, Any], **given: str
) -> tuple[Model, Any]:
    """Train on some rows and evaluate on others; return the model and its metrics on these."""
    first, second = learn.upload(bench, **given), judge.upload(bench, **given)
    validation = {"method": "dataset", "dataset_id": second.id}
    job = bench.work_on(first, algorithm=algorithm, validation=validation)
    assert job.state == JobState.SUCCEEDED, job.error
    model = bench.model(job)
    return model, bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")


def assert_same(found: list[Any], expected: list[Any]) -> None:
    assert [each[0] for each in found] == [each[0] for each in expected]
    for one, other in zip(found, expected, strict=True):
        assert one[1:] == pytest.approx(other[1:])


@on_both
def test_figures_within_queries_are_those_of_the_artifact_s_scores(bench: Workbench) -> None:
    learn, judge = Answers(60, 0), Answers(40, 1)
    model, found = evaluated_by(bench, learn, judge, BOOST)
    assert (model.kind, model.query, model.label) == ("bipartite", "q", "y")
    scores = judge.scores(bench, model)
    assert_same(shown(found["lists"]), measured(judge, scores, graded=False))
    assert found["lists"]["queries"] == 40
    # Within queries it ranks better than over all rows as one list, which is what `auc` is of.
    assert found["lists"]["metrics"][0]["value"] > found["auc"]["value"] + 0.05
    train = bench.db.reading(model_metrics.metrics, OWNER, model.id, "train")
    assert_same(shown(train["lists"]), measured(learn, learn.scores(bench, model), graded=False))
    assert bench.left_over() == []


@on_both
def test_a_model_of_grades_has_figures_and_neither_curve_nor_probability(
    bench: Workbench, sentences: Sentences
) -> None:
    learn, judge = Answers(60, 2, top=3), Answers(40, 3, top=3)
    boost = {"name": "lambdamart", "n_rounds": 10}
    model, found = evaluated_by(bench, learn, judge, boost, kind="graded", weight="w")
    assert (model.kind, model.query, model.positive) == ("graded", "q", None)
    scores = judge.scores(bench, model)
    expected = measured(judge, scores, graded=True, sample_weight=judge.weight)
    assert_same(shown(found["lists"]), expected)
    present = judge.y[judge.weight > 0]
    assert found["grades"] == [
        {"grade": grade, "rows": int((present == grade).sum())} for grade in np.unique(present)
    ]
    assert found["order"] is None
    with sentences.raises(NotFound):
        bench.db.reading(curves.roc, OWNER, model.id, "validation")
    assert model.calibration_version is None
    assert "grades" in calibrations.why_none(model)


def test_grades_without_queries_are_one_list(bench: Workbench) -> None:
    learn, judge = Answers(30, 4, top=2), Answers(30, 5, top=2)
    model, found = evaluated_by(bench, learn, judge, BOOST, kind="graded", query="")
    expected = measure_graded(judge.y, judge.scores(bench, model))
    assert found["lists"] is None
    assert expected.volume is not None
    for name, interval in (
        ("c_index", expected.c_index),
        ("mean_auc", expected.mean_auc),
        ("volume", expected.volume),
    ):
        assert found["order"][name] == pytest.approx(ends_of(interval))
    assert np.array(found["order"]["pairwise"], dtype=float) == pytest.approx(
        np.array(expected.pairwise, dtype=float), nan_ok=True
    )
    again = judge.upload(bench, kind="graded", query="")
    evaluation = evaluate(bench, model.id, again.id)
    assert evaluation.metrics["order"]["c_index"] == pytest.approx(ends_of(expected.c_index))


def test_cross_validation_judges_each_query_by_a_ranker_that_has_not_seen_it(
    bench: Workbench,
) -> None:
    answers = Answers(50, 6)
    dataset = answers.upload(bench)
    validation = {"method": "cross_validation", "folds": 4}
    job = bench.work_on(dataset, algorithm=BOOST, validation=validation)
    assert job.state == JobState.SUCCEEDED, job.error
    model = bench.model(job)
    with bench.db.read() as session:
        _, stored = training_service.read_out_of_fold(session, OWNER, model.id)
    rows = pq.read_table(bench.fetch(stored.blob_key))
    row, fold = rows.column("row").to_numpy(), rows.column("fold").to_numpy()
    for query in np.unique(answers.query):
        assert len(np.unique(fold[answers.query[row] == query])) == 1
    found = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")
    scores = np.empty(len(row))
    scores[row] = rows.column("score").to_numpy()
    assert_same(shown(found["lists"]), measured(answers, scores, graded=False))


@long_form
def test_a_search_chooses_by_the_figure_of_lists(bench: Workbench) -> None:
    for top, kind in ((1, "bipartite"), (3, "graded")):
        dataset = Answers(160, 7, top=top).upload(bench, kind=kind)
        search = {"method": "grid", "space": {"n_rounds": [1, 20]}}
        job = bench.work_on(dataset, algorithm={"name": "rankboost"}, search=search)
        assert job.state == JobState.SUCCEEDED, job.error
        model = bench.model(job)
        assert model.search is not None
        values = [each["value"] for each in model.search["candidates"]]
        assert all(0.5 < value <= 1.0 for value in values), values
        assert model.parameters["n_rounds"] == 20
        halving = {"method": "halving", "space": {"n_rounds": [1, 20]}, "n_candidates": 9}
        job = bench.work_on(dataset, algorithm={"name": "rankboost"}, search=halving)
        assert job.state == JobState.SUCCEEDED, job.error


@pytest.mark.parametrize(
    ("objective", "metric"),
    [
        ({"metric": "ndcg", "count": 3}, "ndcg@3"),
        *rest(
            ({"metric": "precision", "count": 2}, "precision@2"),
            ({"metric": "average_precision"}, "map"),
        ),
    ],
)
def test_objectives_of_lists(bench: Workbench, objective: dict[str, Any], metric: str) -> None:
    search = {"method": "grid", "space": {"n_rounds": [1, 5]}}
    for given in (
        {"weight": "w"},
        {"kind": "graded"},
        {"kind": "graded", "query": ""},
    ):
        dataset = Answers(60, 19, top=1 if "weight" in given else 2).upload(bench, **given)
        job = bench.work_on(
            dataset, algorithm={"name": "rankboost"}, objective=objective, search=search
        )
        assert job.state == JobState.SUCCEEDED, job.error
        model = bench.model(job)
        assert model.objective == objective
        found = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")
        if found["lists"] is not None:
            assert metric in [each["metric"] for each in found["lists"]["metrics"]]
        assert model.kind == "graded" or found["metric"] is None


ABLE = [name for name, each in ALGORITHMS.items() if each.takes_query]


def test_jobs_that_lists_cannot_have(bench: Workbench, sentences: Sentences) -> None:
    dataset, other = Answers(20, 8).upload(bench), Answers(20, 11).upload(bench, query="")
    graded = Answers(20, 9, top=2).upload(bench, kind="graded")
    folds = {"method": "cross_validation", "folds": 3}
    column = {"name": "rankboost", "weak_ranker": "column"}
    for of, request, code in (
        (dataset, {"algorithm": {"name": "logistic"}}, "wrong_kind"),
        (dataset, {"algorithm": {"name": "auto"}}, "wrong_kind"),
        (dataset, {"algorithm": {"name": "adaboost_mh"}}, "wrong_kind"),
        (dataset, {"algorithm": column}, "invalid_parameter"),
        (dataset, {"objective": {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.1}}, "invalid"),
        (dataset, {"objective": {"metric": "tpr", "fpr": 0.1}}, "invalid"),
        (dataset, {"objective": {"metric": "precision", "share": 0.1}}, "invalid"),
        (dataset, {"objective": {"metric": "ndcg", "count": 10**10}}, "invalid"),
        (dataset, {"validation": folds | {"repeats": 2}}, "invalid"),
        (dataset, {"validation": {"method": "dataset", "dataset_id": other.id}}, None),
        (graded, {"algorithm": {"name": "logistic"}}, "wrong_kind"),
        (graded, {"algorithm": {"name": "auto"}}, "wrong_kind"),
        (graded, {"validation": folds}, None),
        (graded, {"validation": {"method": "holdout", "time_column": "a"}}, None),
    ):
        with sentences.raises(Invalid) as caught:
            bench.submit(of, **({"algorithm": BOOST} | request))
        assert code is None or caught.value.code == code
    assert "graded" in kinds_of("rankboost")
    assert "graded" not in kinds_of("logistic")


def test_parts_without_enough_queries_are_refused(bench: Workbench, sentences: Sentences) -> None:
    rows = "".join(f"{a},q,{a % 2}\n" for a in range(12)) + "".join(
        f"{a},r{a},{a % 2}\n" for a in range(60)
    )
    dataset = bench.ready("a,q,y\n" + rows, label="y", query="q")
    job = bench.work_on(dataset, algorithm=BOOST)
    assert job.error["code"] == "too_few_rows"
    sentences(job.error)
    job = bench.work_on(dataset, algorithm=BOOST, validation={"method": "none"})
    assert job.state == JobState.SUCCEEDED, job.error


def test_an_evaluation_of_grades(bench: Workbench, sentences: Sentences) -> None:
    learn, later = Answers(80, 14, top=3), Answers(40, 15, top=3)
    first, second = (each.upload(bench, kind="graded") for each in (learn, later))
    model = bench.model(bench.work_on(first, algorithm=BOOST))
    evaluation = evaluate(bench, model.id, second.id)
    scores = later.scores(bench, model)
    assert_same(shown(evaluation.metrics["lists"]), measured(later, scores, graded=True))
    assert [each["metric"] for each in evaluation.drift["areas"]] == ["auc", "ndcg@10"]
    with sentences.raises(Invalid):
        evaluate(bench, model.id, second.id, windows=[(0.0, 0.1)])
    with sentences.raises(Invalid):
        evaluate(bench, model.id, Answers(20, 16).upload(bench).id)


def test_models_are_compared_query_by_query(bench: Workbench) -> None:
    learn, judge = Answers(80, 17), Answers(40, 18)
    first, second = learn.upload(bench), judge.upload(bench)
    fitted = [
        bench.model(bench.work_on(first, algorithm=BOOST | {"n_rounds": rounds}, name=f"m{rounds}"))
        for rounds in (1, 30)
    ]
    asked = ask_comparison(bench, [model.id for model in fitted], second.id)
    job = bench.work()
    assert job.state == JobState.SUCCEEDED, job.error
    result = bench.db.reading(COMPARISONS.find, OWNER, asked.id).result
    scores = [judge.scores(bench, model) for model in fitted]
    names = ["auc", "ndcg@10", "map"]
    expected = compare_lists(
        judge.y, scores, judge.query, [list_metric_named(name) for name in names]
    )
    assert [each["metric"] for each in result["lists"]] == names
    for found, other in zip(result["lists"], expected, strict=True):
        assert (found["queries"], found["skipped"]) == (other.queries, other.skipped)
        assert found["p_value"] == pytest.approx(other.joint_p_value)
        (difference,) = found["differences"]
        assert difference["value"] == pytest.approx(other.differences[0].value)
        assert difference["adjusted_p_value"] == pytest.approx(
            other.differences[0].adjusted_p_value
        )


def test_queries_are_drawn_whole_and_more_contain_fewer() -> None:
    query = np.random.default_rng(0).integers(40, size=300).astype(np.uint64)
    before = np.empty(0, dtype=np.intp)
    for fraction in (0.01, 0.2, 0.5, 1.0):
        rows = draw_queries(query, fraction, 3)
        assert set(before) <= set(rows)
        assert not set(query[rows]) & set(np.delete(query, rows))
        assert len(rows) >= fraction * 300
        before = rows
    assert len(before) == 300
    assert not np.array_equal(draw_queries(query, 0.2, 3), draw_queries(query, 0.2, 4))


def test_queries_that_say_something_have_rows_of_two_labels() -> None:
    y = np.array([0, 1, 1, 1, 0, 2], dtype=np.int8)
    query = np.array([7, 7, 8, 8, 9, 9], dtype=np.uint64)
    assert count_informative(y, query, None) == 2
    assert count_informative(y, query, np.array([1.0, 0, 1, 1, 1, 1])) == 1
    assert count_informative(y, query, np.zeros(6)) == 0


def test_what_learns_from_grades_learns_within_queries() -> None:
    """The form of a job relies on it."""
    assert [name for name, each in ALGORITHMS.items() if each.takes_grades] == ABLE
