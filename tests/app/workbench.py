"""A worker's steps with a job, in one process: claim, prepare, run, complete."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_breast_cancer

from app.datasets import service as datasets
from app.datasets.description import check_format, describe
from app.jobs import execution, queue
from app.jobs import service as jobs
from app.jobs.kinds import Claim
from app.platform import catalogue
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.errors import ServiceError
from app.platform.settings import Settings
from app.platform.tables import Dataset, Job, Model
from app.scoring.service import ModelCache, Served
from app.training import service
from core import artifact
from core.errors import CoreError
from tests.app.uploads import put
from tests.long_form import DATABASES

OWNER = "ann"

on_both = pytest.mark.parametrize("bench", DATABASES, indirect=True)
"""For tests of what SQL does. What a job computes does not depend on the database."""


def quiet(step: int, of: int, info: Mapping[str, float]) -> None:
    """Take a step's report and do nothing."""


def breast_cancer() -> str:
    """Return the table of the Wisconsin breast cancer data as CSV: 569 rows, 30 features."""
    data = load_breast_cancer()
    head = ",".join([*(name.replace(" ", "_") for name in data.feature_names), "diagnosis"])
    rows = (
        ",".join([*map(repr, map(float, row)), data.target_names[target]])
        for row, target in zip(data.data, data.target, strict=True)
    )
    return "\n".join([head, *rows, ""])


class Workbench:
    """A database, a blob store, and a worker without processes."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.db = db
        self.settings = Settings(state_dir=folder)
        self.blobs = FolderStore(folder / "blobs")
        self._published: list[tuple[Mapping[str, Any], execution.Published]] = []

    def fetch(self, key: str) -> Path:
        """Return the file of a blob."""
        return self.blobs.fetch(self.db.reading(catalogue.find, key))

    def received(
        self, body: str | bytes, content_type: str = "text/csv", encoding: str | None = None
    ) -> datasets.StoredUpload:
        """Store the bytes of an upload."""
        content = body.encode() if isinstance(body, str) else body
        kind = check_format(content_type, encoding)
        return datasets.StoredUpload.of(put(self.blobs, "uploads", content, self.db), kind)

    def upload(
        self,
        body: str | bytes,
        *,
        owner: str = OWNER,
        content_type: str = "text/csv",
        encoding: str | None = None,
        **given: str,
    ) -> Dataset:
        """Accept a table as the API does; its ingest job is queued."""
        upload = self.received(body, content_type, encoding)
        with self.db.write() as session:
            described = describe(given)
            return datasets.accept(session, self.settings, owner, described, upload)

    def put_pairs(
        self, dataset: Dataset, body: str | bytes, content_type: str = "text/csv"
    ) -> Dataset:
        """Accept pairs as the API does; their job is queued."""
        upload = self.received(body, content_type)
        with self.db.write() as session:
            return datasets.accept_pairs(session, self.settings, dataset.owner, dataset.id, upload)

    def compare(self, dataset: Dataset, body: str | bytes, content_type: str = "text/csv") -> Job:
        """Accept pairs and read them."""
        self.put_pairs(dataset, body, content_type)
        return self.work()

    def submit(self, dataset: Dataset | str, *, owner: str = OWNER, **request: Any) -> Job:
        """Submit a training job as the API does, by default without baselines, which take longest."""
        asked: dict[str, Any] = {
            "dataset_id": dataset if isinstance(dataset, str) else dataset.id,
            "algorithm": {"name": "rankboost", "n_rounds": 10},
            "objective": {"metric": "auc"},
            "validation": {"method": "holdout", "fraction": 0.25},
            "baselines": False,
        }
        with self.db.write() as session:
            train = service.TrainRequest(**(asked | request))
            return service.submit(session, self.settings, owner, train)

    def submit_stored(self, dataset: Dataset, *, owner: str = OWNER) -> Job:
        """Queue a job as if its request had passed the check earlier."""
        spec = {
            "algorithm": {"name": "rankboost", "parameters": {"n_rounds": 10}},
            "objective": {"metric": "auc"},
            "validation": {"method": "holdout", "fraction": 0.25},
            "search": None,
            "baselines": {"algorithms": [], "skipped": None, "share": None},
            "validation_dataset": None,
            "protected_columns": [],
            "seed": 0,
            "model_name": "m",
        }
        with self.db.write() as session:
            return jobs.enqueue(
                session,
                self.settings,
                owner=owner,
                kind="train",
                name="m",
                spec=spec,
                dataset_id=dataset.id,
            )

    def work_on(self, dataset: Dataset, **request: Any) -> Job:
        """Submit a training job and run it."""
        self.submit(dataset, **request)
        return self.work()

    def claim(self) -> Claim:
        """Claim the next job."""
        claim = self.db.writing(queue.claim, self.settings, "wrk_test")
        assert claim is not None
        return claim

    def prepare(self, claim: Claim) -> dict[str, Any]:
        """Do the first step."""
        workdir = self.blobs.staging_dir()
        try:
            return execution.fetch(
                self.blobs, self.db.reading(execution.prepare, self.settings, claim, workdir)
            )
        except BaseException:
            shutil.rmtree(workdir)
            raise

    def complete(self, claim: Claim, result: Mapping[str, Any]) -> None:
        """Do the last two steps. Called again with the same result, repeat only the last one, as a worker does."""
        published = next((done for of, done in self._published if of is result), None)
        if published is None:
            published = execution.publish(self.blobs, claim, result)
            self._published.append((result, published))
        self.db.writing(execution.complete, claim, result, published)

    def work(self) -> Job:
        """Run the next job to its end as a worker does, and return it."""
        claim = self.claim()
        payload: dict[str, Any] = {}
        try:
            payload = self.prepare(claim)
            self.complete(claim, execution.run(payload, quiet))
        except (ServiceError, CoreError) as error:
            problem, user_fault = execution.problem_of(error)
            assert user_fault, problem
            self.db.writing(queue.fail, claim, problem)
        finally:
            if payload:
                shutil.rmtree(payload["workdir"])
        return self.db.reading(jobs.find, claim.owner, claim.job_id)

    def ready(self, body: str | bytes, **given: Any) -> Dataset:
        """Upload a table and read it."""
        dataset = self.upload(body, **given)
        job = self.work()
        assert job.state == "succeeded", job.error
        return self.db.reading(datasets.find, dataset.owner, dataset.id)

    def model(self, job: Job) -> Model:
        """Return the model that a job made."""
        assert job.model_id, job.error
        with self.db.read() as session:
            return session.get_one(Model, job.model_id)

    def artifact(self, model: Model) -> bytes:
        """Return the bytes of a model's artifact."""
        return self.blobs.path(model.artifact_key).read_bytes()

    def ranker(self, model: Model) -> Any:
        """Return the ranker that a model's artifact holds."""
        return artifact.load(self.artifact(model))

    def serve(self, model: Model) -> Served:
        """Load a model as the API does."""
        cache = ModelCache(self.db.reading, self.blobs, 10, lambda task: None)
        return cache.find(model.owner, model.id)

    def left_over(self) -> list[str]:
        """Return the names in the staging folder."""
        return [path.name for path in (self.blobs.root / "staging").iterdir()]
