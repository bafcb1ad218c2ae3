"""Submitting a job: resolved names, refusals, and a check that writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select, text

from app.datasets import tasks
from app.jobs import service as jobs
from app.platform.errors import Conflict, Invalid, NotFound
from app.platform.settings import Settings
from app.platform.tables import Dataset
from app.training import service
from app.training.estimate import Estimate
from app.training.estimate import estimate as estimate_job
from app.training.service import TrainRequest
from core.base.parameters import list_parameters
from core.registry import ALGORITHMS
from tests.app.version_steps import make
from tests.app.workbench import OWNER, Workbench, breast_cancer, on_both
from tests.core.test_stored_artifacts import FOLDER, header_of
from tests.raising import raises
from tests.sentences import Sentences
from tests.waiting import eventually


@pytest.fixture
def dataset(bench: Workbench) -> Dataset:
    return bench.ready(breast_cancer(), label="diagnosis", positive="malignant")


def check(
    bench: Workbench, dataset_id: str, settings: Settings | None = None, **changes: Any
) -> Any:
    request = {
        "dataset_id": dataset_id,
        "algorithm": {"name": "rankboost"},
        "objective": {"metric": "auc"},
        "validation": {"method": "holdout", "fraction": 0.25},
    } | changes
    with bench.db.read() as session:
        return service.check(session, settings or Settings(), OWNER, TrainRequest(**request))


def test_the_operator_says_how_long_a_job_may_be(bench: Workbench, dataset: Dataset) -> None:
    for pointer, changes in (
        ("/timeout_seconds", {"timeout_seconds": 86_401.0}),
        ("/algorithm/budget_seconds", {"algorithm": {"name": "auto", "budget_seconds": 86_401.0}}),
    ):
        with pytest.raises(Invalid) as caught:
            check(bench, dataset.id, **changes)
        assert caught.value.errors[0]["pointer"] == pointer
        check(bench, dataset.id, **changes, settings=Settings(max_job_seconds=86_401.0))


def test_every_parameter_is_resolved(bench: Workbench, dataset: Dataset) -> None:
    labels = bench.ready("x,u,v\n1,0,1\n2,1,0\n", kind="multilabel", labels="u,v")
    for name, algorithm in ALGORITHMS.items():
        check_parameters(bench, labels if algorithm.target == "multilabel" else dataset, name)


def check_parameters(bench: Workbench, dataset: Dataset, name: str) -> None:
    expected = {
        parameter.name: parameter.default for parameter in list_parameters(ALGORITHMS[name])
    }
    given = {"n_rounds": 7} if "n_rounds" in expected else {}
    spec = check(bench, dataset.id, algorithm={"name": name} | given, seed=5)
    if "random_state" in expected:
        expected["random_state"] = 5  # the job's seed
    if "fpr_max" in expected:
        expected |= {"fpr_min": 0.0, "fpr_max": 1.0}  # of the job's objective, auc
    algorithm = spec["algorithm"]
    assert algorithm["name"] == name
    assert {**algorithm["parameters"], **algorithm["defaults"]} == expected | given
    assert (spec["seed"], spec["model_name"]) == (5, name)
    # A worker of the version before takes the job: these are all that its algorithms know.
    stored, _ = header_of((FOLDER / f"{name}.rankwright").read_bytes())
    assert algorithm["parameters"].keys() <= stored["parameters"].keys()


def test_a_seed_that_only_crosses_read_is_left_out_without_them(
    bench: Workbench, dataset: Dataset
) -> None:
    def parameters(**changes: Any) -> Any:
        return check(bench, dataset.id, seed=5, **changes)["algorithm"]["parameters"]

    searched = {"method": "grid", "space": {"crosses": [0, 3]}}
    assert "random_state" not in parameters(algorithm={"name": "logistic"})
    assert parameters(algorithm={"name": "logistic", "crosses": 3})["random_state"] == 5
    assert parameters(algorithm={"name": "logistic"}, search=searched)["random_state"] == 5


def test_label_noise_reaches_the_algorithm_that_takes_it_out(
    bench: Workbench, dataset: Dataset
) -> None:
    spec = check(bench, dataset.id, algorithm={"name": "sampled_martirank"}, label_noise=0.2)
    assert spec["algorithm"]["parameters"]["noise_rate"] == spec["label_noise"] == 0.2
    spec = check(bench, dataset.id, label_noise=0.2)
    assert "noise_rate" not in spec["algorithm"]["parameters"]
    assert spec["label_noise"] == 0.2


@on_both
def test_the_stored_spec_is_the_resolved_one(bench: Workbench, dataset: Dataset) -> None:
    job = bench.submit(
        dataset, name="mine", tags={"a": "b"}, priority=3, timeout_seconds=60.0, baselines=None
    )
    stored = bench.db.reading(jobs.find, OWNER, job.id)
    assert stored.spec == check(
        bench, dataset.id, name="mine", algorithm={"name": "rankboost", "n_rounds": 10}
    )
    assert (stored.name, stored.tags, stored.priority, stored.timeout_seconds) == (
        "mine",
        {"a": "b"},
        3,
        60.0,
    )


@on_both
def test_a_check_writes_nothing(bench: Workbench, dataset: Dataset) -> None:
    check(bench, dataset.id)
    assert bench.db.reading(jobs.list_page, OWNER, kind="train").data == []


@on_both
def test_the_dataset_must_be_there_and_ready(bench: Workbench, sentences: Sentences) -> None:
    waiting = bench.upload(breast_cancer(), label="diagnosis")
    with sentences.raises(Conflict):
        check(bench, waiting.id)
    bench.work()
    assert check(bench, waiting.id)
    strangers = bench.ready(breast_cancer(), owner="bob", label="diagnosis")
    for dataset_id in (strangers.id, "ds_x", ""):
        with pytest.raises(NotFound):
            check(bench, dataset_id)
        with pytest.raises(NotFound):
            check(bench, waiting.id, validation={"method": "dataset", "dataset_id": dataset_id})


def test_the_estimate_grows_with_the_work(bench: Workbench, dataset: Dataset) -> None:
    def estimate(**algorithm: Any) -> Estimate:
        spec = check(bench, dataset.id, algorithm=algorithm)
        with bench.db.read() as session:
            return estimate_job(session, OWNER, spec)

    few = estimate(name="rankboost", n_rounds=10)
    assert estimate(name="rankboost", n_rounds=10_000)["seconds"] > few["seconds"]
    assert few["memory_bytes"] == 569 * 30 * 18 + 569 * 90
    plain, crossed, more = (estimate(name="logitboost", crosses=k) for k in (0, 10, 20))
    assert plain["memory_bytes"] == 569 * 30 * 18 + 569 * 90
    # two columns of each cross: of doubles, copied beside the table, and coded
    assert more["memory_bytes"] - crossed["memory_bytes"] == 569 * 10 * 2 * 18
    assert crossed["memory_bytes"] - plain["memory_bytes"] == 569 * (10 * 2 * 18 + 30 * 8)


def test_auto_has_the_time_that_its_budget_needs(bench: Workbench, dataset: Dataset) -> None:
    for budget, timeout in ((60, 3600.0), (10_000, 20_000.0)):
        job = bench.submit(dataset, algorithm={"name": "auto", "budget_seconds": budget})
        assert job.timeout_seconds == timeout
    spec = check(bench, dataset.id, algorithm={"name": "auto"})
    assert spec["algorithm"] == {"name": "auto", "parameters": {"budget_seconds": 60.0}}
    assert spec["model_name"] == "auto"


def test_controls_may_take_a_share_unless_they_are_asked_for(
    bench: Workbench, dataset: Dataset
) -> None:
    both = ["logistic", "auc_svm"]
    few = {"algorithms": both, "skipped": None, "share": 0.1}
    assert check(bench, dataset.id)["baselines"] == few
    assert check(bench, dataset.id, baselines=True)["baselines"] == few | {"share": None}
    assert check(bench, dataset.id, baselines=False)["baselines"] == few | {"algorithms": []}
    none = check(bench, dataset.id, validation={"method": "none"}, baselines=True)["baselines"]
    assert (none["algorithms"], "validation.method is none" in none["skipped"]) == ([], True)


class Meeting:
    """Let two transactions continue only when both are in their middle, or one waits for the other's locks."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._there: set[int] = set()

    def before(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def meet(*args: Any) -> Any:
            self._there.add(threading.get_ident())
            eventually(lambda: len(self._there) == 2 or self._somebody_waits())
            return step(*args)

        return meet

    def _somebody_waits(self) -> bool:
        with self._bench.db.read() as session:
            waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            return bool(session.scalar(text(waits)))


@pytest.mark.parametrize("bench", ["postgres"], indirect=True)
class TestLocks:
    def test_two_jobs_that_each_judge_by_the_other_s_dataset(
        self, bench: Workbench, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = bench.ready(breast_cancer(), label="diagnosis", positive="malignant")
        middle = Meeting(bench).before(service.check_validation)
        monkeypatch.setattr(service, "check_validation", middle)

        def submit(train: Dataset, judge: Dataset) -> str:
            validation = {"method": "dataset", "dataset_id": judge.id}
            return bench.submit(train, validation=validation).state

        with ThreadPoolExecutor() as pool:
            pairs = ((dataset, other), (other, dataset))
            assert list(pool.map(submit, *zip(*pairs, strict=True))) == ["queued", "queued"]

    def test_a_check_waits_for_nobody(self, bench: Workbench, dataset: Dataset) -> None:
        with bench.db.write() as session:
            session.execute(select(Dataset.id).with_for_update())
            validation = {"method": "dataset", "dataset_id": dataset.id}
            assert check(bench, dataset.id, validation=validation)["validation"] == validation

    def test_rows_that_are_added_again_beside_a_job_on_both_versions(
        self, bench: Workbench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parent = bench.ready("x,y\n1,0\n2,1\n3,0\n4,1\n", label="y")
        version = make(bench, parent.id, "x,y\n5,maybe\n")
        failed = bench.work()
        assert failed.state == "failed"
        meeting = Meeting(bench)
        for module, name in ((service, "check_validation"), (tasks, "check_newest")):
            monkeypatch.setattr(module, name, meeting.before(getattr(module, name)))

        def submit() -> str:
            validation = {"method": "dataset", "dataset_id": version.id}
            with raises(Conflict, version.id):
                bench.submit(parent, validation=validation)
            return "refused"

        def retry() -> str:
            with bench.db.write() as session:
                return jobs.retry(session, bench.settings, OWNER, failed.id).state

        with ThreadPoolExecutor() as pool:
            ends = [pool.submit(submit), pool.submit(retry)]
        assert [end.result() for end in ends] == ["refused", "queued"]
