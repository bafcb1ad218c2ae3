"""A job's output belongs to one job at a time: retries, races of them, and jobs that come too late."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from sqlalchemy import update

from app.datasets import service as datasets
from app.evaluation.comparisons import COMPARISONS
from app.evaluation.evaluations import EVALUATIONS
from app.jobs import execution, queue
from app.jobs import service as jobs
from app.jobs.endpoints import show
from app.jobs.kinds import Output as JobOutput
from app.jobs.kinds import status_of
from app.platform.errors import Conflict
from app.platform.tables import (
    BatchScore,
    Comparison,
    Dataset,
    DatasetPairs,
    Evaluation,
    Job,
    JobState,
)
from app.scoring import batch
from tests.app.evaluated_people import People, ask, ask_comparison, train
from tests.app.preference_data import upload_items
from tests.app.queue_steps import at_once
from tests.app.workbench import OWNER, Workbench, on_both, quiet
from tests.long_form import long_form
from tests.raising import raises


class Output(NamedTuple):
    """A job's output: its kind, its name in messages, its owner, its status, and its row."""

    kind: str
    name: str
    job_id: Callable[[], str]
    status: Callable[[], str]
    row: tuple[Any, str]


def made(bench: Workbench, resource: JobOutput[Any], asked: Any) -> Output:
    """An evaluation, a comparison or a batch score."""

    def read() -> Any:
        return bench.db.reading(resource.find, OWNER, asked.id)

    return Output(
        resource.code,
        f"{resource.name} {asked.id}",
        lambda: read().job_id,
        lambda: status_of(read()),
        (resource.table.id, asked.id),
    )


def uploaded(bench: Workbench, dataset: Dataset, *, pairs: bool = False) -> Output:
    """A dataset's table or its pairs."""

    def read() -> Any:
        found = bench.db.reading(datasets.find, OWNER, dataset.id)
        return found.pairs if pairs else found

    key = DatasetPairs.id if pairs else Dataset.id
    name = f"the upload of {dataset.id}"
    return Output(
        "pairs" if pairs else "dataset",
        name,
        lambda: read().job_id,
        lambda: read().status,
        (key, dataset.id),
    )


def ask_for_all(bench: Workbench) -> list[Output]:
    """One output of each kind, whose jobs are cancelled so that none has run."""
    old, new = People(120, 0).upload(bench), People(80, 1).upload(bench)
    for name in ("churn", "other"):
        train(bench, old, name)
    items, _, _ = upload_items(bench, 20)
    with bench.db.write() as session:
        scores = batch.submit(session, bench.settings, OWNER, "churn", new)
    outputs = [
        made(bench, EVALUATIONS, ask(bench, "churn", new)),
        made(bench, COMPARISONS, ask_comparison(bench, ["churn", "other"], new)),
        made(bench, batch.BATCH_SCORES, scores),
        uploaded(
            bench, bench.upload(People(60, 2).csv(), label="left", positive="yes", drop="w,g")
        ),
        uploaded(
            bench, bench.put_pairs(items, "better,worse\nitem0,item1\nitem1,item2\n"), pairs=True
        ),
    ]
    for output in outputs:
        bench.db.writing(jobs.cancel, OWNER, output.job_id())
    return outputs


def retry(bench: Workbench, job_id: str) -> Job:
    return bench.db.writing(jobs.retry, bench.settings, OWNER, job_id)


@long_form
@on_both
def test_only_the_job_that_it_belongs_to_is_retried(bench: Workbench) -> None:
    for output in ask_for_all(bench):
        first = output.job_id()
        second = retry(bench, first).id

        def refused(job_id: str, *named: object) -> None:
            with raises(Conflict, *named) as caught:
                retry(bench, job_id)
            assert caught.value.code == "job_not_retryable"

        refused(first, second, JobState.QUEUED)
        bench.db.writing(jobs.cancel, OWNER, second)
        refused(first, second, JobState.CANCELLED)
        third = retry(bench, second).id
        done = bench.work()
        assert (done.id, done.state) == (third, "succeeded"), done.error
        for job_id in (first, second):
            refused(job_id, third, JobState.SUCCEEDED)
        refused(third, third, JobState.SUCCEEDED)
        assert (output.job_id(), output.status()) == (third, "ready")
        assert show(done)["output"] == {"kind": output.kind, "id": output.row[1]}
    assert bench.db.writing(queue.claim, bench.settings, "wrk_idle") is None


@on_both
def test_of_retries_at_once_one_is_accepted(bench: Workbench) -> None:
    for output in ask_for_all(bench):
        first = output.job_id()
        found = at_once(*[partial(retry, bench, first)] * 3)
        (again,) = (job.id for job in found if isinstance(job, Job))
        assert sum(isinstance(error, Conflict) for error in found) == 2, found
        assert output.job_id() == again
        bench.db.writing(jobs.cancel, OWNER, again)
        # The newest is retried while somebody tries the oldest.
        found = at_once(partial(retry, bench, first), partial(retry, bench, again))
        assert [type(each) for each in found] == [Conflict, Job], found
        assert output.job_id() == found[1].id
        assert bench.work().state == "succeeded"
        assert output.status() == "ready"


@on_both
def test_a_job_writes_to_nothing_of_another_job(bench: Workbench) -> None:
    """As a queue may hold it that an earlier version has filled: two live jobs for one output."""
    for output in ask_for_all(bench):
        own = retry(bench, output.job_id())
        key, id_ = output.row

        def belongs_to(job_id: str) -> None:
            with bench.db.write() as session:
                session.execute(update(key.class_).where(key == id_).values(job_id=job_id))  # noqa: B023 - called at once

        # One is prepared and computed before it is another's, one begins after that.
        claim = bench.claim()
        result = execution.run(bench.prepare(claim), quiet)
        belongs_to("job_" + "0" * 32)
        with pytest.raises(Conflict) as late:
            bench.complete(claim, result)
        with pytest.raises(Conflict) as later:
            bench.prepare(claim)
        assert late.value.code == later.value.code
        assert bench.db.reading(jobs.find, OWNER, own.id).state == "running"
        with bench.db.read() as session:
            row = session.get_one(key.class_, id_)
            if isinstance(row, Dataset | DatasetPairs):
                assert (row.status, row.table_key) == ("processing", None)
            elif isinstance(row, BatchScore):
                assert row.result_key is None
            elif isinstance(row, Evaluation):
                assert (row.metrics, row.drift) == (None, None)
            else:
                assert isinstance(row, Comparison)
                assert row.result is None
        belongs_to(own.id)
        bench.complete(claim, result)
        assert output.status() == "ready"
