"""The steps of a job: ingest from upload to ready or invalid, and what an exception means."""

from __future__ import annotations

import json
import shutil

import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from app.datasets import service as datasets
from app.ingest.errors import BadTable
from app.jobs import execution, queue
from app.jobs import service as jobs
from app.jobs.kinds import KINDS, Claim, find_kind, kind_of
from app.platform.errors import Conflict, Deadlock, Invalid, LeaseLost, Unavailable
from app.platform.sql import Session
from app.platform.tables import Dataset, DatasetStatus, Job, JobState, Measurement, Model
from core.errors import InvalidData, InvalidParameter
from tests.app.workbench import OWNER, Workbench, breast_cancer, on_both, quiet
from tests.long_form import long_form
from tests.sentences import Sentences


@on_both
def test_upload_becomes_ready(bench: Workbench) -> None:
    dataset = bench.ready(breast_cancer(), name="cancer", positive="malignant")
    assert dataset.status == DatasetStatus.READY
    assert (dataset.rows, dataset.positives, dataset.negatives) == (569, 212, 357)
    assert (dataset.label, dataset.positive, dataset.negative) == (
        "diagnosis",
        "malignant",
        "benign",
    )
    assert dataset.errors == []
    assert len(dataset.columns) == 31
    assert dataset.columns[0]["mean"] == pytest.approx(14.127291739894552)
    assert dataset.table_key is not None
    assert pq.read_metadata(bench.blobs.path(dataset.table_key)).num_rows == 569
    assert bench.left_over() == []


def test_bad_upload_becomes_invalid(bench: Workbench) -> None:
    dataset = bench.upload("a,y\n1,0\ninf,1\n")
    fault = {"line": 3, "column": "a", "detail": "'inf' is not a finite number"}
    job = bench.work()
    assert job.state == JobState.FAILED
    assert job.error is not None
    assert job.error["errors"] == [fault]
    found = bench.db.reading(datasets.find, OWNER, dataset.id)
    assert found.status == DatasetStatus.INVALID
    assert found.errors == [fault]
    assert (found.table_key, found.rows, found.columns) == (None, None, [])
    assert bench.left_over() == []
    assert not (bench.blobs.root / "tables").exists()


def test_groups_of_odd_text_are_kept(bench: Workbench) -> None:
    odd = ["\x01", "\u2028", "'; --", "😀", "\\u0000"]
    rows = "".join(f'{i},"{text}",{i % 2}\n' for i, text in enumerate(odd))
    dataset = bench.ready("a,g,y\n" + rows, group="g")
    top = next(column["top"] for column in dataset.columns if column["name"] == "g")
    assert sorted(value["value"] for value in top) == sorted(odd)


def test_payload_and_result_are_small_json(bench: Workbench) -> None:
    dataset = bench.upload(breast_cancer())
    claim = bench.claim()
    payload = json.loads(json.dumps(bench.prepare(claim), allow_nan=False))
    result = json.dumps(execution.run(payload, quiet), allow_nan=False)
    bench.complete(claim, json.loads(result))
    shutil.rmtree(payload["workdir"])
    bench.submit(dataset.id)
    claim = bench.claim()
    payload = json.loads(json.dumps(bench.prepare(claim), allow_nan=False))
    result = json.dumps(execution.run(payload, quiet), allow_nan=False)
    assert len(result) < 10_000
    bench.complete(claim, json.loads(result))
    shutil.rmtree(payload["workdir"])


@on_both
def test_stale_reading_writes_nothing(bench: Workbench) -> None:
    dataset = bench.upload("a,y\n1,0\n2,1\n")
    stale = bench.claim()
    payload = bench.prepare(stale)
    result = execution.run(payload, quiet)
    bench.db.writing(queue.give_back, stale)
    with pytest.raises(LeaseLost):
        bench.complete(stale, result)
    assert bench.db.reading(datasets.find, OWNER, dataset.id).status == DatasetStatus.PROCESSING
    shutil.rmtree(payload["workdir"])


@on_both
def test_finishing_may_be_tried_again(bench: Workbench) -> None:
    bench.upload("a,y\n1,0\n2,1\n")
    claim = bench.claim()
    payload = bench.prepare(claim)
    result = execution.run(payload, quiet)
    lost = Claim(**{name: getattr(claim, name) for name in claim.__slots__} | {"token": -1})
    published = execution.publish(bench.blobs, claim, result)
    with pytest.raises(LeaseLost):
        bench.db.writing(execution.complete, lost, result, published)
    bench.db.writing(execution.complete, claim, result, published)
    shutil.rmtree(payload["workdir"])


@on_both
def test_dataset_that_is_gone_or_not_ready(bench: Workbench) -> None:
    dataset = bench.ready("a,y\n" + "1,0\n2,1\n" * 8)
    bench.submit(dataset)
    with bench.db.write() as session:
        session.get_one(Dataset, dataset.id).status = DatasetStatus.PROCESSING
    job = bench.work()
    assert job.error is not None
    assert job.error["code"] == "dataset_not_ready"
    bench.submit_stored(dataset)
    with bench.db.write() as session:
        session.delete(session.get_one(Dataset, dataset.id))
    job = bench.work()
    assert job.error is not None
    assert job.error["code"] == "dataset_deleted"


@on_both
def test_another_owners_dataset_is_not_there(bench: Workbench) -> None:
    dataset = bench.ready("a,y\n" + "1,0\n2,1\n" * 8, owner="bob")
    job = bench.submit_stored(dataset, owner=OWNER)
    assert bench.work().id == job.id
    with bench.db.read() as session:
        error = session.get_one(type(job), job.id).error
    assert error is not None
    assert error["code"] == "dataset_deleted"


def test_unknown_kind(bench: Workbench, sentences: Sentences) -> None:
    with sentences.raises(Invalid):
        execution.run({"kind": "bake"}, quiet)


@pytest.mark.parametrize(
    ("error", "code", "user_fault"),
    [
        (BadTable("x", line=3, column="a"), "invalid_table", True),
        (Conflict("x", code="dataset_deleted"), "dataset_deleted", True),
        (InvalidData("x"), "invalid_data", True),
        (InvalidParameter("x"), "invalid_parameter", True),
        (Unavailable("x"), "unavailable", False),
    ],
)
def test_problems_of_known_errors(error: Exception, code: str, user_fault: bool) -> None:
    problem, fault = execution.problem_of(error)
    assert (problem["code"], problem["detail"], fault) == (code, "x", user_fault)
    assert set(problem) == {"code", "title", "detail", "errors"}


def test_unknown_errors_keep_their_text_to_the_log() -> None:
    problem, fault = execution.problem_of(KeyError("secret"))
    assert not fault
    assert problem["code"] == "internal"
    assert "secret" not in str(problem)


@long_form
@on_both
def test_a_deadlock_as_a_job_ends_writes_everything_once(bench: Workbench) -> None:
    bench.submit(bench.ready(breast_cancer()).id)
    claim = bench.claim()
    payload = bench.prepare(claim)
    result = execution.run(payload, quiet)
    published = execution.publish(bench.blobs, claim, result)
    states: list[str] = []

    def complete(session: Session) -> None:
        execution.complete(session, claim, result, published)
        session.flush()
        states.append(session.get_one(Job, claim.job_id).state)
        if len(states) == 1:
            raise Deadlock("another transaction changed the same rows: try again")

    bench.db.writing(complete)
    shutil.rmtree(payload["workdir"])
    assert states == ["succeeded"] * 2
    with bench.db.read() as session:
        (model,) = session.scalars(select(Model))
        assert model.job_id == claim.job_id
        measured = session.scalars(select(Measurement)).all()
    assert {each.part for each in measured} == {"train", "validation"}
    assert all(each.points for each in measured)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_declared_under_its_name(name: str) -> None:
    """The kinds stand in the table as text, so that a worker imports none of their modules before it needs it."""
    assert kind_of(name).name == name


def test_a_kind_of_a_later_version_ends_and_is_tried_again(bench: Workbench) -> None:
    """The queue may hold it while a deployment is upgraded: no worker of this version claims it."""
    with bench.db.write() as session:
        job = jobs.enqueue(session, bench.settings, owner=OWNER, kind="bake", name="cake", spec={})
    assert find_kind("bake") is None
    bench.db.writing(jobs.cancel, OWNER, job.id)
    again = bench.db.writing(jobs.retry, bench.settings, OWNER, job.id)
    assert (again.kind, again.retry_of) == ("bake", job.id)
    assert bench.db.writing(queue.claim, bench.settings, "wrk_test", KINDS) is None
