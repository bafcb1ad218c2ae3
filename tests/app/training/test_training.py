"""From a ready table to a model in SQL, on SQLite and on PostgreSQL."""

from __future__ import annotations

import hashlib
import re
import shutil
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select

from app.datasets.matrices import Columns, read_table
from app.jobs import execution, queue
from app.jobs import service as jobs
from app.models import repository as model_rows
from app.platform.errors import CancelRequested, LeaseLost
from app.platform.tables import Job, JobState, Measurement, Model
from app.training.splits import split
from core import artifact
from core.metrics import RocCurve, auc, partial_auc, roc_curve
from tests.app.training_jobs import few_columns
from tests.app.workbench import OWNER, Workbench, breast_cancer, on_both, quiet
from tests.long_form import rest
from tests.sentences import Sentences

PARTS = ("train", "validation")


def curve_of(bench: Workbench, model: Model, part: str) -> RocCurve:
    """Read a curve as the API does."""
    with bench.db.read() as session:
        row = model_rows.find_curve(session, model.id, part)
    columns = [np.frombuffer(column, "<f8") for column in (row.fpr, row.tpr, row.thresholds)]
    assert [len(column) for column in columns] == [row.points] * 3
    return RocCurve(*columns)


def count(bench: Workbench, table: Any) -> int:
    """Count the rows of a table."""
    with bench.db.read() as session:
        return session.scalar(select(func.count()).select_from(table)) or 0


@on_both
def test_model_metrics_and_curves_agree_with_the_artifact(bench: Workbench) -> None:
    dataset = bench.ready(breast_cancer(), positive="malignant")
    job = bench.work_on(
        dataset,
        name="cancer",
        algorithm={"name": "rankboost", "n_rounds": 50},
        objective={"metric": "pauc", "fpr_min": 0.1, "fpr_max": 0.4},
        tags={"team": "x"},
        seed=3,
    )
    model = bench.model(job)
    assert (model.name, model.version, model.dataset_id, model.job_id) == (
        "cancer",
        1,
        dataset.id,
        job.id,
    )
    assert (model.label, model.positive, model.negative) == ("diagnosis", "malignant", "benign")
    assert model.algorithm == "rankboost"
    assert model.parameters["n_rounds"] == 50
    assert (model.optimised_for, model.selected_by) == ({"metric": "auc"}, None)
    assert (model.tags, model.seed) == ({"team": "x"}, 3)
    # 53 positives are few for such an AUC, and the windows hold 4 and 27 of the 89 negatives
    of_auc, of_early, of_window = model.warnings
    assert "the AUC" in of_auc
    assert "FPR 0 to 0.05" in of_early
    assert "FPR 0.1 to 0.4" in of_window
    assert model.features[0] == {"name": "mean_radius", "type": "numeric", "missing": False}

    data = bench.artifact(model)
    assert hashlib.sha256(data).hexdigest() == model.artifact_sha256
    assert len(data) == model.artifact_bytes
    ranker = artifact.load(data)
    names = [feature["name"] for feature in model.features]
    assert list(ranker.feature_names_in_) == names

    assert dataset.table_key
    table = read_table(bench.blobs.path(dataset.table_key), Columns(names, "diagnosis", None, None))
    scores = ranker.score_rows(np.ascontiguousarray(table.X))
    for part, rows in zip(PARTS, split(table, 0.25, seed=3), strict=True):
        with bench.db.read() as session:
            metrics = model_rows.find_roc_metrics(session, model.id, part)
        assert metrics is not None
        whole, windows = metrics["auc"], metrics["pauc"]
        assert whole["low"] <= whole["value"] <= whole["high"]
        assert whole["value"] == pytest.approx(auc(table.y[rows], scores[rows]), abs=1e-12)
        assert [(w["fpr_min"], w["fpr_max"]) for w in windows] == [(0.0, 0.05), (0.1, 0.4)]
        for w in windows:
            area = partial_auc(table.y[rows], scores[rows], w["fpr_min"], w["fpr_max"])
            assert w["value"] == pytest.approx(area, abs=1e-12)
        curve, expected = curve_of(bench, model, part), roc_curve(table.y[rows], scores[rows])
        for name in ("fpr", "tpr", "thresholds"):
            assert np.array_equal(getattr(curve, name), getattr(expected, name))
        assert np.isposinf(curve.thresholds[0])
    with bench.db.read() as session:
        sizes = {
            part: (m["positives"], m["negatives"])
            for part in PARTS
            if (m := model_rows.find_roc_metrics(session, model.id, part))
        }
    assert sizes == {"train": (159, 268), "validation": (53, 89)}
    assert bench.left_over() == []


def test_reported_metrics_are_those_of_rows_that_were_not_fitted(bench: Workbench) -> None:
    """Random labels: the fit looks good on its own rows; the validation part shows that it is not."""
    rng = np.random.default_rng(0)
    body = "a,b,c,y\n" + "".join(
        f"{a:.6f},{b:.6f},{c:.6f},{y}\n"
        for (a, b, c), y in zip(rng.normal(size=(400, 3)), rng.integers(0, 2, 400), strict=True)
    )
    job = bench.work_on(bench.ready(body), algorithm={"name": "rankboost", "n_rounds": 300})
    with bench.db.read() as session:
        train, validation = (
            session.get_one(Measurement, f"{job.model_id}:{part}").metrics["auc"]["value"]
            for part in PARTS
        )
    assert train > 0.85
    assert abs(validation - 0.5) < 0.15


def test_weights_groups_missing_values_and_booleans(bench: Workbench, sentences: Sentences) -> None:
    rng = np.random.default_rng(1)
    rows = []
    for i in range(600):
        y = i % 3 == 0
        a = "" if i % 10 == 0 else f"{rng.normal() + y:.4f}"
        rows.append(
            f"{a},{'true' if rng.random() < 0.5 + 0.3 * y else 'false'},,{1 + i % 2},g{i % 60},{y}\n"
        )
    dataset = bench.ready("a,b,empty,w,g,y\n" + "".join(rows), weight="w", group="g", label="y")
    model = bench.model(bench.work_on(dataset))
    assert model.features == [
        {"name": "a", "type": "numeric", "missing": True},
        {"name": "b", "type": "boolean", "missing": False},
        {"name": "empty", "type": "numeric", "missing": True},
    ]
    sentences(model.warnings[0])
    with bench.db.read() as session:
        parts = [model_rows.find_metrics(session, model.id, part) or {} for part in PARTS]
    assert sum(part["positives"] + part["negatives"] for part in parts) == 600
    assert sum(part["positive_weight"] + part["negative_weight"] for part in parts) == 900
    for part in parts:
        assert part["positive_weight"] > part["positives"]
        assert part["positive_effective"] < part["positives"]


@pytest.mark.parametrize(
    "validation",
    [
        {"method": "holdout", "fraction": 0.25},
        *rest({"method": "cross_validation", "folds": 3, "repeats": 2}),
    ],
)
def test_rows_on_both_sides_of_a_split_are_counted(
    bench: Workbench, validation: dict[str, Any]
) -> None:
    """Copies of rows that nothing tells apart but their groups; with the right groups, or none, they stay together."""
    rng = np.random.default_rng(4)
    rows = [
        f"{a:.6f},{'word' if a > 0 else 'other'},{k},{y}"
        for k, (a, y) in enumerate(zip(rng.normal(size=150), rng.integers(0, 2, 150), strict=True))
    ]
    # Each row twice, the copy as the group of its own; and some that come once.
    copies = [f"{text},{k}" for k, text in enumerate([*rows, *rows[:100]])]
    body = "a,w,row,y,copy\n" + "\n".join(copies) + "\n"

    def warned(**roles: str) -> list[str]:
        job = bench.work_on(bench.ready(body, label="y", **roles), validation=validation)
        return [each for each in bench.model(job).warnings if "equal in every feature" in each]

    (warning,) = warned(group="copy", drop="row")
    found = re.match(r"(\d+) of the (\d+) validation rows", warning)
    assert found is not None
    assert "as the group" in warning
    repeated, judging = map(int, found.groups())
    assert 0 < repeated < judging
    if validation["method"] == "cross_validation":
        # A copy is in another of three folds two times in three.
        assert judging == 2 * 250
        assert abs(repeated / (2 * 200) - 2 / 3) < 0.15
    assert warned(group="row", drop="copy") == []
    assert warned(drop="row,copy") == []


def test_without_validation_there_is_no_curve(bench: Workbench) -> None:
    bench.work_on(bench.ready(few_columns()), validation={"method": "none"})
    with bench.db.read() as session:
        (row,) = session.scalars(select(Measurement)).all()
        assert (row.part, row.metrics["positives"], row.points) == ("train", 212, None)


def test_validation_on_another_dataset(bench: Workbench) -> None:
    head, *rows = few_columns().splitlines()
    train = bench.ready("\n".join([head, *rows[:400]]))
    # Its columns stand in another order, with one more.
    turned = [",".join([*line.split(",")[::-1], "1"]) for line in rows[400:]]
    judge = bench.ready(
        "\n".join([",".join([*head.split(",")[::-1], "extra"]), *turned]), label="diagnosis"
    )
    job = bench.work_on(train, validation={"method": "dataset", "dataset_id": judge.id})
    model = bench.model(job)
    assert judge.table_key
    names = [feature["name"] for feature in model.features]
    table = read_table(bench.blobs.path(judge.table_key), Columns(names, "diagnosis", None, None))
    scores = bench.ranker(model).score_rows(np.ascontiguousarray(table.X))
    with bench.db.read() as session:
        found = model_rows.find_roc_metrics(session, model.id, "validation")
    assert found is not None
    (window,) = found["pauc"]
    assert found["auc"]["value"] == pytest.approx(auc(table.y, scores), abs=1e-12)
    assert window["value"] == pytest.approx(partial_auc(table.y, scores, 0, 0.05))


def test_validation_dataset_must_fit(bench: Workbench) -> None:
    """Both datasets are checked again when the job runs."""
    train = bench.ready("a,b,y\n" + "1,2,no\n2,3,yes\n" * 4)
    judge = bench.ready("a,b,y\n" + "1,2,no\n2,3,yes\n" * 4)
    wrong = bench.ready("a,y\n" + "1,no\n2,maybe\n" * 4)
    job = bench.submit(train, validation={"method": "dataset", "dataset_id": judge.id})
    with bench.db.write() as session:
        stored = session.get_one(Job, job.id)
        stored.spec = stored.spec | {"validation": {"method": "dataset", "dataset_id": wrong.id}}
    done = bench.work()
    assert done.state == JobState.FAILED
    assert done.error["code"] == "label_mismatch"
    assert bench.left_over() == []


def test_too_few_rows_of_a_class(bench: Workbench, sentences: Sentences) -> None:
    dataset = bench.ready("a,y\n" + "".join(f"{i},0\n" for i in range(50)) + "50,1\n51,1\n52,1\n")
    job = bench.work_on(dataset)
    assert job.state == JobState.FAILED
    sentences(job.error.pop("detail"))
    assert job.error == {"code": "too_few_rows", "title": "Invalid request", "errors": []}
    one = bench.ready("a,y\n1,0\n2,0\n3,0\n4,1\n")
    job = bench.work_on(one, validation={"method": "none"})
    sentences(job.error)
    assert count(bench, Model) == 0
    assert bench.left_over() == []


def test_weights_that_leave_one_class(bench: Workbench, sentences: Sentences) -> None:
    body = "a,w,y\n" + "".join(f"{i},{i % 2},{i % 2}\n" for i in range(100))
    job = bench.work_on(bench.ready(body, weight="w"))
    assert job.state == JobState.FAILED
    assert job.error["code"] == "invalid_data"
    sentences(job.error)


def test_progress_is_told_and_stops_the_fit(bench: Workbench) -> None:
    bench.submit(bench.ready(few_columns()))
    claim = bench.claim()
    payload = bench.prepare(claim)
    steps: list[tuple[int, int]] = []

    class Stop(BaseException):
        pass

    def stop(step: int, of: int, info: Any) -> None:
        if of:  # what comes before the first step has none
            steps.append((step, of))
        if step == 4:
            raise Stop

    with pytest.raises(Stop):
        execution.run(payload, stop)
    assert steps == [(1, 10), (2, 10), (3, 10), (4, 10)]


@on_both
def test_stale_attempt_writes_nothing(bench: Workbench) -> None:
    """A worker stopped past its lease and resumed: the newer token wins, and there is one model."""
    bench.submit(bench.ready(few_columns()))
    stale = bench.claim()
    payload = bench.prepare(stale)
    result = execution.run(payload, quiet)
    bench.db.writing(queue.give_back, stale)
    fresh = bench.claim()
    with pytest.raises(LeaseLost):
        bench.complete(stale, result)
    assert count(bench, Model) == 0
    again = bench.prepare(fresh)
    bench.complete(fresh, execution.run(again, quiet))
    with pytest.raises(LeaseLost):
        bench.complete(stale, result)
    assert (count(bench, Model), count(bench, Measurement)) == (1, 2)
    for each in (payload, again):
        shutil.rmtree(each["workdir"])


@on_both
def test_cancelled_job_makes_no_model(bench: Workbench) -> None:
    job = bench.submit(bench.ready(few_columns()))
    claim = bench.claim()
    payload = bench.prepare(claim)
    result = execution.run(payload, quiet)
    bench.db.writing(jobs.cancel, OWNER, job.id)
    with pytest.raises(CancelRequested):
        bench.complete(claim, result)
    assert [count(bench, t) for t in (Model, Measurement)] == [0, 0]
    shutil.rmtree(payload["workdir"])


@on_both
def test_finishing_may_be_tried_again(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database goes away after the artifact was published; the same result is written again later."""
    job = bench.submit(bench.ready(few_columns()))
    claim = bench.claim()
    payload = bench.prepare(claim)
    result = execution.run(payload, quiet)

    def away(*_: Any, **__: Any) -> Any:
        raise ConnectionError("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(model_rows, "insert", away)
        with pytest.raises(ConnectionError):
            bench.complete(claim, result)
    assert bench.db.reading(jobs.find, OWNER, job.id).state == JobState.RUNNING
    bench.complete(claim, result)
    assert bench.db.reading(jobs.find, OWNER, job.id).state == JobState.SUCCEEDED
    assert count(bench, Model) == 1
    shutil.rmtree(payload["workdir"])
