"""The series that versions make up: their order, what they may be made from, and who knows them."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from app.datasets import service as datasets
from app.evaluation import evaluations
from app.evaluation.requests import EvaluationRequest
from app.jobs import service as jobs
from app.platform.errors import Conflict, NotFound
from app.platform.tables import Dataset, Job, Model
from app.reports.sections import document_of
from app.reports.service import gather
from app.reports.writers import to_markdown
from tests.app.queue_steps import at_once
from tests.app.version_steps import FIRST, GIVEN, HEAD, MORE, data, made, make
from tests.app.workbench import OWNER, Workbench, on_both
from tests.raising import raises
from tests.sentences import Sentences


@on_both
def test_two_who_add_at_once(bench: Workbench) -> None:
    first = bench.ready(FIRST, **GIVEN)
    modes = ("append", "append", "replace", "replace")
    outcomes = at_once(
        *(functools.partial(make, bench, first.id, MORE, mode=mode) for mode in modes)
    )
    numbers = sorted(outcome.version for outcome in outcomes if isinstance(outcome, Dataset))
    assert numbers == list(range(2, 2 + len(numbers)))
    assert len(numbers) >= 2  # those that replace; of those that add one at most
    refused = [outcome.code for outcome in outcomes if isinstance(outcome, Conflict)]
    assert refused == ["not_the_newest_version"] * (4 - len(numbers)) != []


@on_both
def test_a_version_that_is_being_added_to_stays_until_that_is_done(bench: Workbench) -> None:
    first = bench.ready(FIRST, **GIVEN)
    second = make(bench, first.id, MORE)
    with raises(Conflict, second.job_id):
        bench.db.writing(datasets.delete, OWNER, first.id)
    bench.work()
    bench.db.writing(datasets.delete, OWNER, first.id)
    second = bench.db.reading(datasets.find, OWNER, second.id)
    assert (second.parent_id, len(data(bench, second))) == (first.id, 5)
    third = made(bench, second.id, MORE)
    assert (third.version, third.series_id) == (3, first.id)
    page = bench.db.reading(datasets.list_versions, OWNER, third.id, limit=10, after=None)
    assert [version.id for version in page.data] == [third.id, second.id]


@on_both
def test_reading_again_what_failed(bench: Workbench) -> None:
    first = bench.ready(FIRST, **GIVEN)
    bad = make(bench, first.id, f"{HEAD}\n")
    failed = bench.work()

    def retry() -> None:
        with bench.db.write() as session:
            jobs.retry(session, bench.settings, OWNER, failed.id)

    retry()
    assert bench.work().state == "failed"
    with bench.db.read() as session:
        failed = bench.db.reading(jobs.find, OWNER, str(session.get_one(Dataset, bad.id).job_id))
    made(bench, first.id, MORE)
    with pytest.raises(Conflict) as caught:
        retry()
    assert caught.value.code == "not_the_newest_version"
    bench.db.writing(datasets.delete, OWNER, first.id)
    with raises(Conflict, first.id):
        retry()


def table(rows: int, seed: int) -> str:
    """Rows of one feature that says something, and one that says nothing."""
    rng = np.random.default_rng(seed)
    lines = (f"{x:.3f},7,{'p' if x + 0.5 * e > 0 else 'n'}" for x, e in rng.normal(size=(rows, 2)))
    return "\n".join(["x,same,y", *lines, ""])


@on_both
def test_a_model_knows_the_versions_it_was_made_with(
    bench: Workbench, sentences: Sentences
) -> None:
    first = bench.ready(table(80, 0), label="y", name="days")
    second = made(bench, first.id, table(40, 1))
    other = bench.ready(table(60, 2), label="y")

    def train(dataset: Dataset, judge: Dataset) -> tuple[Job, Model]:
        validation = {"method": "dataset", "dataset_id": judge.id}
        job = bench.work_on(dataset, name="m", validation=validation)
        return job, bench.model(job)

    job, model = train(second, other)
    named = {"id": second.id, "name": "days", "version": 2, "sha256": second.sha256}
    evaluated = {"id": other.id, "name": "table", "version": 1, "sha256": other.sha256}
    assert job.spec["dataset"].items() >= named.items()
    assert job.spec["validation_dataset"].items() >= evaluated.items()
    assert model.dataset == job.spec["dataset"]
    assert model.validation_dataset == job.spec["validation_dataset"]
    repeated, *_, constant = model.warnings  # the others: few validation rows
    assert "validation rows" in repeated
    sentences(constant)
    # A version that has rows in common flatters, whichever of the two is the longer.
    for learnt, by in ((first, second), (second, first)):
        assert any("model was trained on" in w for w in train(learnt, by)[1].warnings)

    for dataset in (second, other):
        bench.db.writing(datasets.delete, OWNER, dataset.id)
    with bench.db.write() as session:
        for judge, words in ((first, "m:1 was trained on rows of this dataset"), (other, None)):
            asked = EvaluationRequest(model="m:1", dataset_id=judge.id)
            if words is None:
                with pytest.raises(NotFound):
                    evaluations.submit(session, bench.settings, OWNER, asked)
                continue
            evaluation = evaluations.submit(session, bench.settings, OWNER, asked)
            assert evaluation.warnings[0].startswith(words)
            assert (evaluation.dataset_version, evaluation.dataset_sha256) == (1, first.sha256)
    told = to_markdown(document_of(bench.db.reading(gather, OWNER, "m:1")()))
    assert f"days, version 2 ({second.id})" in told
    assert second.sha256 in told
    assert f"table, version 1 ({other.id})" in told
