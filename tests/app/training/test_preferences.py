"""From items and pairs to a model in SQL, on SQLite and on PostgreSQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from app.datasets import service as datasets
from app.jobs import service as jobs
from app.models import curves
from app.models import metrics as model_metrics
from app.models import repository as model_rows
from app.platform.errors import Conflict, Invalid, NotFound
from app.platform.tables import JobState
from app.training.preferences import PreferenceSplitData
from core.metrics import pair_order, summarise_pairs
from tests.app.preference_data import (
    draw_pairs,
    items_csv,
    metrics_of,
    pairs_csv,
    upload_items,
    worths,
)
from tests.app.training_jobs import payload_of
from tests.app.workbench import OWNER, Workbench, on_both
from tests.raising import raises
from tests.sentences import Sentences

BOOST = {"name": "rankboost"}
WINDOW = {"metric": "pauc", "fpr_min": 0, "fpr_max": 0.1}


@on_both
def test_model_metrics_agree_with_the_artifact_on_items_that_were_not_fitted(
    bench: Workbench,
    sentences: Sentences,
) -> None:
    dataset, X, worth = upload_items(bench, 120)
    pairs = draw_pairs(worth, 3000)
    weights = np.random.default_rng(1).integers(0, 4, len(pairs)).astype(float)
    job = bench.compare(dataset, pairs_csv(pairs, weights.tolist()))
    assert job.state == JobState.SUCCEEDED, job.error
    ready = bench.db.reading(datasets.find, OWNER, dataset.id)
    assert (ready.pairs.status, ready.pairs.pairs, ready.pairs.weighted) == ("ready", 3000, True)
    job = bench.work_on(dataset, algorithm={"name": "rankboost", "n_rounds": 60}, name="films")
    model = bench.model(job)
    assert (model.kind, model.label, model.positive, model.negative) == ("preferences",) + (
        None,
    ) * 3
    assert model.objective == model.optimised_for == {"metric": "pair_order"}
    assert model.warnings == []
    ranker = bench.ranker(model)
    scores = ranker.decision_function(pa.table({name: X[:, i] for i, name in enumerate("abc")}))
    train, validation = metrics_of(bench, model, "train"), metrics_of(bench, model)
    # The parts, found again: items of the two never meet in a pair.
    split_data = PreferenceSplitData(payload_of(bench, ready), ["a", "b", "c"])
    assert split_data.validation is not None
    seen, unseen = set(split_data.train.rows.ravel()), set(split_data.validation.rows.ravel())
    assert not seen & unseen
    assert abs(len(unseen) / 120 - 0.25) < 0.03
    for part, rows in ((train, split_data.train), (validation, split_data.validation)):
        assert rows.weight is not None
        assert part.pairs == len(rows.rows)
        assert part.value == pytest.approx(pair_order(scores, rows.rows, rows.weight))
        interval = summarise_pairs(scores, rows.rows, rows.weight).order
        assert (part.low, part.high) == pytest.approx(interval[1:])
        assert part.weight == pytest.approx(rows.weight.sum())
    assert validation.value > 0.8
    assert validation.items == len(unseen)
    shown = bench.db.reading(model_metrics.metrics, OWNER, model.id, "validation")
    assert shown["pair_order"]["value"] == validation.value
    with bench.db.read() as session:
        assert model_rows.find_roc_metrics(session, model.id, "validation") is None
        assert model_rows.find_curve(session, model.id, "validation") is None
    with sentences.raises(NotFound):
        bench.db.reading(curves.roc, OWNER, model.id, "validation")
    assert bench.left_over() == []


def test_few_items_are_split_by_pairs_and_the_model_says_so(bench: Workbench) -> None:
    dataset, _, worth = upload_items(bench, 8)
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 100)))
    model = bench.model(bench.work_on(dataset))
    assert "split by pairs" in model.warnings[0]
    train, validation = metrics_of(bench, model, "train"), metrics_of(bench, model)
    assert train.pairs + validation.pairs == 100
    assert abs(validation.pairs / 100 - 0.25) < 0.1


def test_a_split_by_pairs_keeps_both_directions_together(bench: Workbench) -> None:
    dataset, _, worth = upload_items(bench, 8)
    pairs = draw_pairs(worth, 60)
    bench.compare(dataset, pairs_csv(pairs + [(k, i) for i, k in pairs]))
    ready = bench.db.reading(datasets.find, OWNER, dataset.id)
    split_data = PreferenceSplitData(payload_of(bench, ready, seed=3), ["a", "b", "c"])
    assert split_data.validation is not None
    parts = [
        {frozenset(pair) for pair in part.rows.tolist()}
        for part in (split_data.train, split_data.validation)
    ]
    assert parts[0]
    assert parts[1]
    assert not parts[0] & parts[1]


def test_groups_stay_together(bench: Workbench, sentences: Sentences) -> None:
    """Pairs within queries: every pair is used, and no query is on both sides."""
    X, worth = worths(120)
    dataset = bench.ready(items_csv(X, groups=12), kind="preferences", group="query")
    rng = np.random.default_rng(2)
    pairs = []
    for _ in range(600):
        i, k = (rng.integers(0, 12) * 10 + rng.choice(10, 2, replace=False)).tolist()
        pairs.append((i, k) if worth[i] > worth[k] else (k, i))
    bench.compare(dataset, pairs_csv(pairs))
    model = bench.model(bench.work_on(dataset))
    train, validation = metrics_of(bench, model, "train"), metrics_of(bench, model)
    assert train.pairs + validation.pairs == 600
    assert validation.items == 30
    assert [feature["name"] for feature in model.features] == ["a", "b", "c"]
    few = bench.ready(items_csv(X, groups=1), kind="preferences", group="query")
    bench.compare(few, pairs_csv(draw_pairs(worth, 300)))
    job = bench.work_on(few)
    assert job.error["code"] == "too_few_rows"
    sentences(job.error)


def test_order_of_rows_and_pairs_does_not_change_who_judges(bench: Workbench) -> None:
    X, worth = worths(60)
    pairs = draw_pairs(worth, 1500)
    head, *rows = items_csv(X).splitlines()
    found = []
    for lines, listed in ((rows, pairs), (rows[::-1], pairs[::-1])):
        dataset = bench.ready("\n".join([head, *lines]), kind="preferences")
        bench.compare(dataset, pairs_csv(listed))
        found.append(bench.model(bench.work_on(dataset)))
    one, other = (metrics_of(bench, model) for model in found)
    assert [one.value, one.pairs, one.items] == [
        pytest.approx(other.value),
        other.pairs,
        other.items,
    ]


def test_other_ways_of_validation(bench: Workbench) -> None:
    dataset, _, worth = upload_items(bench, 40)
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 300)))
    X, other_worth = worths(30, seed=5)
    judge = bench.ready(items_csv(X), kind="preferences")
    bench.compare(judge, pairs_csv(draw_pairs(other_worth, 200)))
    job = bench.work_on(dataset, validation={"method": "dataset", "dataset_id": judge.id})
    model = bench.model(job)
    assert metrics_of(bench, model, "train").pairs == 300
    assert metrics_of(bench, model).pairs == 200
    alone = bench.model(bench.work_on(dataset, validation={"method": "none"}))
    with bench.db.read() as session:
        assert model_rows.find_metrics(session, alone.id, "validation") is None
    with pytest.raises(NotFound) as caught:
        bench.db.reading(model_metrics.metrics, OWNER, alone.id, "validation")
    assert caught.value.code == "no_curve"


def test_missing_values_and_what_the_features_say_of_them(
    bench: Workbench, sentences: Sentences
) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 2)).tolist()
    lines = [f"i{i},{'' if i % 4 == 0 else x},,{z}" for i, (x, z) in enumerate(values)]
    dataset = bench.ready("\n".join(["item,x,empty,z", *lines]), kind="preferences")
    pairs = [(i, k) for i in range(120) for k in range(120) if i % 4 == 0 and k % 4]
    body = "better,worse\n" + "".join(f"i{i},i{k}\n" for i, k in pairs)
    bench.compare(dataset, body)
    job = bench.work_on(dataset)
    model = bench.model(job)
    assert [feature["missing"] for feature in model.features] == [True, True, False]
    (warning,) = model.warnings
    sentences(warning)
    events = bench.db.reading(jobs.events, OWNER, job.id, after=0, limit=100)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [(event.type, event.data.get("text")) for event in events[-2:]] == [
        ("message", model.warnings[0]),
        ("state", None),
    ]
    assert metrics_of(bench, model).value == 1.0


def test_what_cannot_be_trained_on_pairs(bench: Workbench, sentences: Sentences) -> None:
    dataset, _, worth = upload_items(bench, 40)
    with sentences.raises(Conflict):
        bench.submit(dataset)
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 200)))
    bipartite = bench.ready("a,b,c,y\n" + "1,2,3,0\n2,3,4,1\n" * 4)
    evaluated = {"method": "dataset", "dataset_id": bipartite.id}
    for request, pointer, named in (
        ({"algorithm": {"name": "adaboost"}}, "/algorithm/name", "adaboost"),
        ({"objective": WINDOW}, "/objective/metric", "'pauc'"),
        ({"objective": {"metric": "tpr", "fpr": 0.1}}, "/objective/metric", "'tpr'"),
        ({"objective": {"metric": "ndcg"}}, "/objective/metric", "'ndcg'"),
        ({"algorithm": BOOST | {"weak_ranker": "tree", "push": 2.0}}, "/algorithm", "push"),
        ({"validation": evaluated}, "/validation/dataset_id", bipartite.id),
    ):
        with raises(Invalid, named) as refusal:
            bench.submit(dataset, **request)
        assert refusal.value.errors[0]["pointer"] == pointer
    with sentences.raises(Invalid):
        bench.submit(bipartite, validation={"method": "dataset", "dataset_id": dataset.id})


def test_early_stopping_that_sees_no_new_item_is_told(
    bench: Workbench, sentences: Sentences
) -> None:
    dataset, _, worth = upload_items(bench, 40)
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 600)))
    algorithm = {"name": "rankboost", "weak_ranker": "tree", "early_stopping_rounds": 5}
    model = bench.model(bench.work_on(dataset, algorithm=algorithm))
    (warning,) = model.warnings
    sentences(warning)
    assert metrics_of(bench, model).value > 0.6
