"""Samples, importances and partial dependence: stored at training, read later, deleted with the dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from app.datasets import service as datasets
from app.datasets.matrices import Table
from app.jobs import execution
from app.jobs import service as jobs
from app.models import repository
from app.models import service as models
from app.models.curve_schemas import DataPart
from app.operations.repository import is_still_so, is_unused
from app.platform import failpoints
from app.platform.errors import Conflict, Invalid, NotFound
from app.platform.tables import REFERENCE_ROWS, Dataset, Job, JobEvent, Model, ModelSample
from app.reports.sections import document_of
from app.reports.service import gather
from app.scoring import dependence
from app.scoring.reasons import read_references
from app.scoring.service import ModelCache
from app.training import fitting, interpretation
from app.trash import service as trash
from core.base.ranker import Floats
from tests.app.preference_data import draw_pairs, pairs_csv, upload_items
from tests.app.workbench import OWNER, Workbench, on_both, quiet
from tests.long_form import rest
from tests.raising import raises
from tests.sentences import Sentences


def people(
    n: int = 300, seed: int = 0, *, weight: bool = False, colours: str = "red green blue"
) -> str:
    """A CSV of a number, a yes-or-no, a colour with missing values, noise and a label."""
    rng = np.random.default_rng(seed)
    lines = ["age,member,colour,noise,y" + (",w" if weight else "")]
    for _ in range(n):
        age, member, noise = rng.normal(), rng.random() < 0.5, rng.normal()
        k = rng.integers(4)
        colour = [*colours.split(), ""][k]
        y = int(2 * age + member + 2 * (k == 0) + rng.normal() > 0.8)
        cells = [f"{age:.3f}", str(member).lower(), colour, f"{noise:.3f}", str(y)]
        lines.append(",".join([*cells, *([str(rng.integers(0, 3))] if weight else [])]))
    return "\n".join([*lines, ""])


def numbers(seed: int = 0) -> str:
    """Return the same table with numbers for colours."""
    return people(seed=seed, colours="5 1 2")


def cache(bench: Workbench) -> ModelCache:
    """Return models as an API process holds them."""
    return ModelCache(bench.db.reading, bench.blobs, 10, lambda task: task())


def depend(
    bench: Workbench, ref: str, *names: str, part: DataPart = "train", label: str | None = None
) -> dependence.Dependence:
    """Ask for partial dependence."""
    subject = bench.db.reading(dependence.find_input, OWNER, ref, names, part=part)
    served = cache(bench).serve(subject.model)
    return dependence.average(subject, bench.blobs, served, label=label, n_points=8)


def kept(bench: Workbench, model: Model, part: str) -> tuple[Floats, Floats]:
    """Return the rows that were kept, and their weights."""
    with bench.db.read() as session:
        row = repository.find_sample(session, model.id, part)
    assert isinstance(row, ModelSample)
    data = bench.fetch(row.sample_key).read_bytes()
    return interpretation.read_sample(data, row.rows, len(model.features))


def table_of(n: int, weight: Floats | None = None, n_features: int = 2) -> Table:
    """Return a table whose first column numbers its rows."""
    X = np.zeros((n, n_features), order="F")
    X[:, 0] = np.arange(n)
    names = tuple(f"x{j}" for j in range(n_features))
    return Table(X, np.zeros(n, dtype=np.int8), weight, None, names, (None,) * n_features)


def test_draws_are_few_rows_in_random_order() -> None:
    drawn = interpretation.draw(table_of(5_000), 7).X[:, 0]
    assert len(drawn) == len(set(drawn)) == interpretation.MAX_ROWS
    assert abs(drawn[:200].mean() - 2_500) < 500
    assert np.array_equal(drawn, interpretation.draw(table_of(5_000), 7).X[:, 0])
    assert not np.array_equal(drawn, interpretation.draw(table_of(5_000), -8).X[:, 0])
    assert sorted(interpretation.draw(table_of(50), 0).X[:, 0]) == list(range(50))
    wide = interpretation.draw(table_of(500, n_features=2_000), 0)
    assert len(wide.X) == 250
    assert (
        len(interpretation.draw(table_of(500, n_features=20_000), 0).X) == interpretation.MIN_ROWS
    )


def test_rows_without_weight_are_not_drawn() -> None:
    weight = np.tile([0.0, 2.0], 50)
    drawn = interpretation.draw(table_of(100, weight), 0)
    assert sorted(drawn.X[:, 0]) == list(range(1, 100, 2))
    assert (drawn.weight == 2).all()
    some = interpretation.draw(table_of(100, weight), 0, np.array([0, 1, 3]))
    assert sorted(some.X[:, 0]) == [1, 3]


def test_rows_to_judge_by_are_of_both_classes_alike() -> None:
    table = table_of(9_000)
    table.y[:30] = 1
    drawn = interpretation.draw_classes(table, 0)
    assert (int(drawn.y.sum()), len(drawn.y)) == (30, 530)
    table.y[:4_000] = 1
    drawn = interpretation.draw_classes(table, 0)
    assert (int(drawn.y.sum()), len(drawn.y)) == (500, 1_000)


@pytest.mark.parametrize("weighted", [True, *rest(False)])
def test_what_is_kept_are_rows_of_the_parts(bench: Workbench, weighted: bool) -> None:
    given = {"weight": "w"} if weighted else {}
    dataset = bench.ready(people(weight=weighted), label="y", **given)
    model = bench.model(bench.work_on(dataset, algorithm={"name": "treerank"}))
    train, validation = kept(bench, model, "train"), kept(bench, model, "validation")
    assert train[0].shape[1] == validation[0].shape[1] == len(model.features) == 4
    if not weighted:
        assert len(train[0]) + len(validation[0]) == 300
    assert (train[1] > 0).all()
    assert ({1.0, 2.0} if weighted else {1.0}) == set(train[1])
    ages = {float(line.split(",")[0]) for line in people(weight=weighted).splitlines()[1:]}
    assert set(train[0][:, 0]) | set(validation[0][:, 0]) <= ages
    # The first ones are rows of their own: reasons compare with them.
    references = bench.db.reading(read_references, model.id)["average"]
    np.testing.assert_array_equal(references.X, train[0][:REFERENCE_ROWS])
    np.testing.assert_array_equal(references.weight, train[1][:REFERENCE_ROWS])
    assert bench.left_over() == []


def test_dependence_is_the_mean_over_the_rows_kept(bench: Workbench) -> None:
    dataset = bench.ready(people(weight=True), label="y", weight="w")
    model = bench.model(bench.work_on(dataset, algorithm={"name": "treerank"}))
    ranker = cache(bench).find(OWNER, model.id).ranker
    for part in ("train", "validation"):
        X, weight = kept(bench, model, part)
        found = depend(bench, model.id, "colour", "member", part=part)
        colours = [
            None if np.isnan(v) else found.categories[0][int(v)] for v in found.axes[0].values
        ]
        assert colours == ["blue", "green", "red", None]
        assert found.axes[1].values.tolist() == [0.0, 1.0]
        assert found.averaged == len(X)
        moved = X.copy()
        moved[:, [2, 1]] = 2.0, 1.0
        expected = np.average(ranker.score_rows(moved), weights=weight)
        assert found.scores[2, 1] == pytest.approx(expected, rel=1e-12)
        assert found.scores[2, 1] > found.scores[0, 0]
    assert len(depend(bench, model.id, "age").scores) == 8


def test_categories_that_the_ranker_does_not_know_are_missing(bench: Workbench) -> None:
    """A ranker learns no category from rows without weight, so it may know fewer categories than the table."""
    rows = ["colour,age,w,y"]
    for i in range(200):
        colour, w = ("amber", 0) if i % 5 == 0 else (["blue", "red"][i % 2], 1)
        rows.append(f"{colour},{i % 17},{w},{int(colour == 'red' or i % 7 == 0)}")
    dataset = bench.ready("\n".join([*rows, ""]), label="y", weight="w")
    model = bench.model(bench.work_on(dataset, algorithm={"name": "treerank"}))
    found = depend(bench, model.id, "colour")
    assert found.categories == [("blue", "red")]
    assert found.scores[1] > found.scores[0]
    X, _ = kept(bench, model, "train")
    column = [feature["name"] for feature in model.features].index("colour")
    assert set(X[:, column]) == {0.0, 1.0}


def test_importances_by_contribution(bench: Workbench) -> None:
    dataset = bench.ready(numbers(), label="y")
    model = bench.model(bench.work_on(dataset, algorithm={"name": "rankboost", "n_rounds": 60}))
    found = bench.db.reading(interpretation.read_importance, OWNER, model.id, None)
    assert (found.row.method, found.row.part) == ("mean_absolute_contribution", "train")
    names = [feature["name"] for feature in found.features]
    assert names[:2] == ["age", "colour"]
    assert names[-1] == "noise"
    sizes = [feature["importance"] for feature in found.features]
    assert sizes == sorted(sizes, reverse=True)
    X, _ = kept(bench, model, "train")
    ranker = cache(bench).find(OWNER, model.id).ranker
    scores = ranker.score_rows(np.ascontiguousarray(X))
    assert 0.3 * np.abs(scores - scores.mean()).mean() < sum(sizes)


def test_a_model_whose_scores_have_no_parts_is_permuted(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core import RankBoost

    monkeypatch.delattr("core.base.ranker.ContributionRanker.contributions")
    assert not hasattr(RankBoost, "contributions")
    dataset = bench.ready(numbers(), label="y")
    model = bench.model(bench.work_on(dataset))
    found = bench.db.reading(interpretation.read_importance, OWNER, model.id, None)
    assert (found.row.method, found.row.part) == ("permutation_auc", "validation")
    assert found.features[0]["name"] == "age"
    assert found.features[0]["importance"] > 0.05
    unevaluated = bench.model(bench.work_on(dataset, validation={"method": "none"}))
    found = bench.db.reading(interpretation.read_importance, OWNER, unevaluated.id, None)
    assert found.row.part == "train"


@on_both
def test_importance_that_has_no_time_comes_after_the_model(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    """Queued in the transaction that writes the model: a process that dies there leaves neither."""
    monkeypatch.setattr(fitting, "MIN_IMPORTANCE_SECONDS", -1e9)
    dataset = bench.ready(numbers(), label="y")
    bench.submit(dataset, algorithm={"name": "auto", "budget_seconds": 1e-6})
    claim = bench.claim()
    result = execution.run(bench.prepare(claim), quiet)
    monkeypatch.setattr(failpoints, "armed", failpoints.parse("finish=raise"))
    with pytest.raises(failpoints.FailpointError):
        bench.complete(claim, result)
    with bench.db.read() as session:
        assert not session.scalars(select(Model)).all()
        assert not session.scalars(select(Job).where(Job.kind == "importance")).all()
    bench.complete(claim, result)
    model = bench.model(bench.db.reading(jobs.find, OWNER, claim.job_id))
    # Said of the job alone: the model's importance comes, and no reader of a report is to be warned.
    assert not any("importance" in each for each in model.warnings)
    with bench.db.read() as session:
        said = session.scalars(select(JobEvent).where(JobEvent.job_id == claim.job_id)).all()
    assert any("feature importance" in str(each.data) for each in said)
    assert cache(bench).find(OWNER, model.id).ranker is not None
    with sentences.raises(NotFound):
        bench.db.reading(interpretation.read_importance, OWNER, model.id, None)
    job = bench.work()
    assert (job.id, job.state, job.model_id) == (model.importance_job_id, "succeeded", model.id)
    found = bench.db.reading(interpretation.read_importance, OWNER, model.id, None)
    X, _ = kept(bench, model, "train")
    expected = np.abs(cache(bench).find(OWNER, model.id).ranker.contributions(X)).mean(axis=0)
    names = [feature["name"] for feature in model.features]
    assert {each["name"]: each["importance"] for each in found.features} == pytest.approx(
        dict(zip(names, expected.tolist(), strict=True))
    )


def train_without_importance(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, dataset: Dataset, **request: Any
) -> Model:
    """Return a model whose importance is left to a job of its own, as if the budget had no time for it."""
    later = {"importance": None, "importance_later": True}
    monkeypatch.setattr(fitting.FitContext, "measure_importance", lambda *_: later)
    return bench.model(bench.work_on(dataset, algorithm={"name": "logistic"}, **request))


@on_both
def test_a_dataset_that_judges_stays_while_importance_is_to_be_measured(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, judge = (bench.ready(numbers(seed), label="y") for seed in (0, 1))
    validation = {"method": "dataset", "dataset_id": judge.id}
    model = train_without_importance(bench, monkeypatch, own, validation=validation)
    for dataset in (own, judge):
        with raises(Conflict, model.importance_job_id):
            bench.db.writing(datasets.delete, OWNER, dataset.id)
    bench.db.writing(models.delete, OWNER, model.id)
    bench.db.writing(trash.delete, OWNER, model.id)
    unused = is_unused(-60.0)
    assert not bench.db.reading(is_still_so, unused, judge.id)
    bench.db.writing(jobs.cancel, OWNER, model.importance_job_id)
    assert bench.db.reading(is_still_so, unused, judge.id)
    bench.db.writing(datasets.delete, OWNER, judge.id)


@on_both
def test_a_retry_of_the_job_of_importance_is_the_job_of_the_model(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    dataset = bench.ready(numbers(), label="y")
    model = train_without_importance(bench, monkeypatch, dataset)
    first = model.importance_job_id
    bench.db.writing(jobs.cancel, OWNER, first)
    second = bench.db.writing(jobs.retry, bench.settings, OWNER, first).id
    with sentences.raises(NotFound):
        bench.db.reading(interpretation.read_importance, OWNER, model.id, None)
    with sentences.raises(Conflict):
        bench.db.writing(jobs.retry, bench.settings, OWNER, first)
    bench.db.writing(jobs.cancel, OWNER, second)
    third = bench.db.writing(jobs.retry, bench.settings, OWNER, second).id
    job = bench.work()
    assert (job.id, job.state) == (third, "succeeded")
    with sentences.raises(Conflict):
        bench.db.writing(jobs.retry, bench.settings, OWNER, second)
    bench.db.writing(models.delete, OWNER, model.id)
    with raises(Conflict, model.id):
        bench.db.writing(jobs.retry, bench.settings, OWNER, first)


def test_importance_that_is_not_there_names_the_state_that_the_job_shows(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = train_without_importance(bench, monkeypatch, bench.ready(numbers(), label="y"))
    report = document_of(bench.db.reading(gather, OWNER, model.id)())
    written = {section.title: str(section.blocks) for section in report.appendix}
    assert f"job {model.importance_job_id} computes it" in written["Feature importance"]
    bench.claim()
    bench.db.writing(jobs.cancel, OWNER, model.importance_job_id)
    with raises(NotFound, model.importance_job_id, "cancelling"):
        bench.db.reading(interpretation.read_importance, OWNER, model.id, None)


def test_a_model_deleted_meanwhile_has_no_importance(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, sentences: Sentences
) -> None:
    model = train_without_importance(bench, monkeypatch, bench.ready(numbers(), label="y"))
    claim = bench.claim()
    result = execution.run(bench.prepare(claim), quiet)
    bench.db.writing(models.delete, OWNER, model.id)
    with sentences.raises(Conflict):
        bench.complete(claim, result)


def test_a_booster_whose_weak_rankers_have_no_parts_is_permuted(bench: Workbench) -> None:
    dataset = bench.ready(people(), label="y")
    job = bench.work_on(
        dataset, algorithm={"name": "aucboost", "weak_ranker": "logistic", "n_rounds": 5}
    )
    found = bench.db.reading(interpretation.read_importance, OWNER, bench.model(job).id, None)
    assert found.row.method == "permutation_auc"
    assert {feature["name"] for feature in found.features[:2]} == {"age", "colour"}


def test_models_on_pairs(bench: Workbench) -> None:
    dataset, _, worth = upload_items(bench)
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 600)))
    job = bench.work_on(
        dataset, algorithm={"name": "rankboost", "n_rounds": 30}, objective={"metric": "auc"}
    )
    model = bench.model(job)
    found = bench.db.reading(interpretation.read_importance, OWNER, model.id, None)
    assert found.row.method == "mean_absolute_contribution"
    assert found.features[0]["name"] == "a"
    scores = depend(bench, model.id, "a").scores
    assert scores[-1] > scores[0]
    held, _ = kept(bench, model, "validation")
    train, _ = kept(bench, model, "train")
    assert not set(held[:, 0]) & set(train[:, 0])  # divided by items
    assert depend(bench, model.id, "a", part="validation").averaged == len(held)


def test_with_several_labels_one_is_asked_for(bench: Workbench, sentences: Sentences) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 2))
    body = "a,b,p,q\n" + "".join(f"{a:.3f},{b:.3f},{int(a > 0)},{int(b > 0)}\n" for a, b in values)
    dataset = bench.ready(body, kind="multilabel", labels="p,q")
    model = bench.model(bench.work_on(dataset, algorithm={"name": "adaboost_mh", "n_rounds": 5}))
    for label, feature in (("p", "a"), ("q", "b")):
        found = bench.db.reading(interpretation.read_importance, OWNER, model.id, label)
        assert (found.label, found.features[0]["name"]) == (label, feature)
        scores = depend(bench, model.id, feature, label=label).scores
        assert scores.shape == (8,)
        assert scores[-1] > scores[0]
    asking: list[Callable[[str | None], object]] = [
        lambda label: bench.db.reading(interpretation.read_importance, OWNER, model.id, label),
        lambda label: depend(bench, model.id, "a", label=label),
    ]
    for ask in asking:
        with sentences.raises(Invalid):
            ask(None)
        with sentences.raises(Invalid):
            ask("a")
    subject = bench.db.reading(
        dependence.find_input, OWNER, model.id, ["a", "b"], part="train", max_features=2
    )
    with sentences.raises(Invalid):
        dependence.decompose(subject, bench.blobs, cache(bench).serve(subject.model))


@on_both
def test_the_rows_go_with_their_dataset(bench: Workbench, sentences: Sentences) -> None:
    learnt, evaluated = bench.ready(numbers(), label="y"), bench.ready(numbers(seed=1), label="y")
    asked = {"method": "dataset", "dataset_id": evaluated.id}
    model = bench.model(bench.work_on(learnt, validation=asked))
    depend(bench, model.id, "age", part="validation")
    bench.db.writing(datasets.delete, OWNER, evaluated.id)
    depend(bench, model.id, "age", part="validation")  # in the trash they are still there
    bench.db.writing(trash.delete, OWNER, evaluated.id)
    with sentences.raises(Conflict) as refusal:
        depend(bench, model.id, "age", part="validation")
    assert refusal.value.code == "dataset_deleted"
    depend(bench, model.id, "age")
    bench.db.writing(datasets.delete, OWNER, learnt.id)
    bench.db.writing(trash.delete, OWNER, learnt.id)
    with sentences.raises(Conflict):
        depend(bench, model.id, "age")
    assert bench.db.reading(interpretation.read_importance, OWNER, model.id, None).features
    bench.db.writing(models.delete, OWNER, model.id)
    bench.db.writing(trash.delete, OWNER, model.id)
    with bench.db.read() as session:
        assert repository.find_importance(session, model.id) is None


def test_the_job_of_importance_has_priority_tags_and_time_of_the_training(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit that ended the training early does not end this job too, nor its retries."""
    given = {"priority": -100, "tags": {"team": "a"}}
    dataset = bench.ready(numbers(), label="y")
    for seconds in (3.0, 8e4):
        more = given | {"timeout_seconds": seconds}
        model = train_without_importance(bench, monkeypatch, dataset, **more)
        job = bench.db.reading(jobs.find, OWNER, model.importance_job_id)
        assert (job.priority, job.tags) == (-100, {"team": "a"})
        assert job.timeout_seconds == max(seconds, bench.settings.job_timeout_seconds)
        bench.db.writing(jobs.cancel, OWNER, job.id)


def test_models_from_before_and_without_validation_say_so(bench: Workbench) -> None:
    dataset = bench.ready(numbers(), label="y")
    model = bench.model(bench.work_on(dataset, validation={"method": "none"}))
    with pytest.raises(NotFound) as missing:
        depend(bench, model.id, "age", part="validation")
    assert missing.value.code == "no_part"
    assert depend(bench, model.id, "age").averaged == 300
    with bench.db.write() as session:
        session.delete(repository.find_importance(session, model.id))
        session.delete(repository.find_sample(session, model.id, "train"))
    with pytest.raises(Conflict) as refusal:
        depend(bench, model.id, "age")
    assert refusal.value.code == "no_sample"
    with raises(NotFound, model.id):
        bench.db.reading(interpretation.read_importance, OWNER, model.id, None)
