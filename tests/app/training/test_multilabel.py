"""Several labels, from the upload to a model in SQL, on SQLite and on PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets import service
from app.models import curves
from app.models import metrics as model_metrics
from app.platform.errors import Invalid, NotFound
from app.platform.tables import Dataset, JobState
from core.metrics import auc, partial_auc
from tests.app.uploads import read
from tests.app.workbench import OWNER, Workbench, on_both
from tests.raising import raises
from tests.sentences import Sentences

LABELS = "hot,big,rare"


def table(n: int = 240, rare: int = 20, seed: int = 0) -> str:
    """Three features, a group, a weight and three labels: yes/no, 1/0 and true/false."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(3)
    lines = ["a,b,c,w,g,hot,big,rare"]
    for i, (a, b, c) in enumerate(X.tolist()):
        hot = "yes" if a + 0.3 * rng.normal() > 0 else "no"
        big = int(b - a > 0.2)
        lines.append(
            f"{a},{b},{c},{1 + i % 2},g{i // 2},{hot},{big},{'true' if i < rare else 'false'}"
        )
    return "\n".join([*lines, ""])


def upload(bench: Workbench, body: str | None = None, **given: str) -> Dataset:
    fields = {"kind": "multilabel", "labels": LABELS, "weight": "w", "group": "g"} | given
    return bench.ready(table() if body is None else body, **fields)


@on_both
def test_a_table_with_several_labels(bench: Workbench) -> None:
    dataset = upload(bench)
    assert [label["name"] for label in dataset.labels] == LABELS.split(",")
    values = [(label["negative"], label["positive"]) for label in dataset.labels]
    assert values == [("no", "yes"), ("0", "1"), ("false", "true")]
    assert {label["negatives"] + label["positives"] for label in dataset.labels} == {240}
    assert dataset.labels[2]["positives"] == 20
    assert (dataset.label, dataset.positive, dataset.positives) == (None, None, None)
    roles = {column["name"]: column["role"] for column in dataset.columns}
    assert [name for name, role in roles.items() if role == "label"] == LABELS.split(",")
    assert [name for name, role in roles.items() if role == "feature"] == ["a", "b", "c"]
    seen = service.preview(bench.blobs.path, bench.db.reading(service.find, OWNER, dataset.id), 1)
    first = dict(zip(seen["columns"], seen["data"][0], strict=True))
    assert first["rare"] == "true"
    assert first["hot"] in {"yes", "no"}


def test_metrics_are_those_of_each_label_s_scores_on_rows_that_were_not_fitted(
    bench: Workbench,
    sentences: Sentences,
) -> None:
    dataset = upload(bench)
    window = {"metric": "pauc", "fpr_min": 0.1, "fpr_max": 0.5}
    for algorithm in ("adaboost_mh", "adaboost_mr"):
        job = bench.work_on(
            dataset, algorithm={"name": algorithm, "n_rounds": 20}, objective=window
        )
        assert job.state == JobState.SUCCEEDED, job.error
        model = bench.model(job)
        assert (model.kind, model.label) == ("multilabel", None)
        assert [label["name"] for label in model.labels or []] == LABELS.split(",")
        found = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")
        train = bench.db.reading(model_metrics.metrics, OWNER, model.id, "train")
        typed = pq.read_table(bench.blobs.path(dataset.table_key or ""))
        ranker = bench.ranker(model)
        scores = ranker.decision_function(typed.select(["a", "b", "c"]))
        # Which rows judge is found by the counts: groups of two rows go by hash.
        assert 0.2 < sum(_rows(label) for label in found["labels"]) / (3 * 240) < 0.3
        for k, (here, there) in enumerate(zip(found["labels"], train["labels"], strict=True)):
            assert _rows(here) + _rows(there) == 240
            assert here["positives"] + there["positives"] == dataset.labels[k]["positives"]
            if here["label"] == "rare" and here["auc"] is None:
                continue
            assert here["auc"]["low"] <= here["auc"]["value"] <= here["auc"]["high"]
            assert [(w["fpr_min"], w["fpr_max"]) for w in here["pauc"]] == [(0.0, 0.05), (0.1, 0.5)]
        evaluated = [label for label in found["labels"] if label["auc"]]
        assert found["evaluated"] == len(evaluated)
        assert found["mean_auc"] == pytest.approx(
            np.mean([label["auc"]["value"] for label in evaluated])
        )
        assert found["mean_pauc"][1]["value"] == pytest.approx(
            np.mean([label["pauc"][1]["value"] for label in evaluated])
        )
        assert found["labels"][0]["auc"]["value"] > 0.8
        assert scores.shape == (240, 3)
        with sentences.raises(NotFound):
            bench.db.reading(curves.roc, OWNER, model.id, "validation")


def _rows(label: dict[str, Any]) -> int:
    return int(label["positives"] + label["negatives"])


def test_metrics_agree_with_the_artifact_on_another_dataset(bench: Workbench) -> None:
    train = upload(bench)
    judge = upload(bench, table(150, 30, seed=1))
    job = bench.work_on(
        train,
        algorithm={"name": "adaboost_mh", "n_rounds": 15},
        validation={"method": "dataset", "dataset_id": judge.id},
    )
    model = bench.model(job)
    found = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")
    typed = pq.read_table(bench.blobs.path(judge.table_key or ""))
    ranker = bench.ranker(model)
    scores = ranker.decision_function(typed.select(["a", "b", "c"]))
    weight = typed.column("w").to_numpy()
    for k, label in enumerate(found["labels"]):
        y = typed.column(label["label"]).to_numpy()
        assert label["auc"]["value"] == pytest.approx(auc(y, scores[:, k], weight))
        assert label["pauc"][0]["value"] == pytest.approx(
            partial_auc(y, scores[:, k], 0.0, 0.05, sample_weight=weight)
        )
        assert (label["positives"], label["negatives"]) == (y.sum(), 150 - y.sum())


def test_a_label_too_rare_to_judge_by_has_no_figure(bench: Workbench, sentences: Sentences) -> None:
    dataset = upload(bench, table(60, rare=1))
    model = bench.model(bench.work_on(dataset, algorithm={"name": "adaboost_mr", "n_rounds": 5}))
    found = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")
    assert [label["auc"] is None for label in found["labels"]] == [False, False, True]
    assert found["evaluated"] == 2
    sentences(model.warnings[0])
    alone = bench.ready(
        "x,u,v\n" + "".join(f"{i},{int(i == 3)},{int(i == 7)}\n" for i in range(40)),
        kind="multilabel",
        labels="u,v",
    )
    job = bench.work_on(alone, algorithm={"name": "adaboost_mh", "n_rounds": 5})
    assert job.error["code"] == "too_few_rows"


def test_algorithms_and_kinds_that_do_not_go_together(bench: Workbench) -> None:
    several = upload(bench)
    one = bench.ready("a,b,c,y\n" + "1,2,3,0\n2,3,4,1\n" * 4)
    other = upload(bench, labels="big,hot,rare")
    boost: dict[str, Any] = {"algorithm": {"name": "adaboost_mh"}}

    def by(dataset: Dataset) -> dict[str, Any]:
        return {"validation": {"method": "dataset", "dataset_id": dataset.id}}

    for dataset, request, pointer, *named in (
        (several, {}, "/algorithm/name", "rankboost", "multilabel"),
        (one, boost, "/algorithm/name", "adaboost_mh", "bipartite"),
        (several, boost | {"objective": {"metric": "tpr", "fpr": 0.1}}, "/objective/metric", "tpr"),
        (several, boost | by(one), "/validation/dataset_id", one.id, "bipartite"),
        (several, boost | by(other), "/validation/dataset_id", other.id, "'yes'"),
    ):
        with raises(Invalid, *named) as refusal:
            bench.submit(dataset, **request)
        assert refusal.value.errors[0]["pointer"] == pointer


def test_labels_of_a_parquet_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {"u": [True, False, True], "x": [1.0, 2.0, 3.0], "v": ["b", "a", "a"]}
    pq.write_table(pa.table(columns), path)
    ready = read(
        tmp_path,
        path.read_bytes(),
        "application/vnd.apache.parquet",
        kind="multilabel",
        labels=["u", "v"],
    )
    assert ready.columns == {"x": [1.0, 2.0, 3.0], "u": [1, 0, 1], "v": [1, 0, 0]}
