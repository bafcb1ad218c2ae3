"""Steps that the tests of the queue share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from sqlalchemy import update

from app.datasets.fields import TableFields
from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.kinds import Claim
from app.models import repository as model_rows
from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.tables import Dataset, DatasetStatus, Job, JobState, Model

OWNER = "ada"


def submit(db: Database, settings: Settings | None = None, **values: Any) -> Job:
    """Accept a job in a transaction of its own."""
    values = {"owner": OWNER, "kind": "train", "name": "churn", "spec": {"seed": 0}} | values
    with db.write() as session:
        return jobs.enqueue(session, settings or Settings(), **values)


def claimed(db: Database, settings: Settings | None = None, worker: str = "wrk_a") -> Claim:
    """Claim a job that must be there."""
    claim = db.writing(queue.claim, settings or Settings(), worker)
    assert claim is not None
    return claim


def finish(db: Database, claim: Claim, **values: Any) -> None:
    """Finish a job in a transaction of its own."""
    with db.write() as session:
        queue.finish(session, claim, **values)


def seen(db: Database, job_id: str) -> list[tuple[int, str, str | None]]:
    """Number, type and state of each of the job's events."""
    return [
        (event.seq, event.type, event.data.get("state"))
        for event in db.reading(jobs.events, OWNER, job_id, limit=200)
    ]


def change(db: Database, job_id: str, **values: Any) -> None:
    """Change a job's row behind everybody's back, as time or a broken clock would."""
    with db.write() as session:
        session.execute(update(Job).where(Job.id == job_id).values(**values))


def hear_nothing(db: Database, *job_ids: str, seconds: float = 60.5) -> None:
    """Have so much time go by since the last heartbeat of these jobs, or of all that run."""
    with db.write() as session:
        session.execute(
            update(Job)
            .where(Job.id.in_(job_ids) if job_ids else Job.state == JobState.RUNNING)
            .values(
                lease_expires_at=Job.lease_expires_at - seconds, beaten_at=Job.beaten_at - seconds
            )
        )


def add_dataset(db: Database, job_id: str | None = None, **values: Any) -> Dataset:
    """Write a dataset's row as an upload does."""
    dataset = Dataset(
        **{
            "id": new_id("ds"),
            "owner": OWNER,
            "name": "table",
            "kind": "bipartite",
            "status": DatasetStatus.PROCESSING,
            "job_id": job_id,
            "content_type": "text/csv",
            "upload_key": "uploads/ab/abcd",
            "bytes": 3,
            "sha256": "abcd",
            "reading": TableFields().reading(),
            "columns": [],
            "errors": [],
            "created_at": 1.5,
        }
        | values
    )
    with db.write() as session:
        session.add(dataset)
    return dataset


def model_values(**changes: Any) -> dict[str, Any]:
    """Return the values that a model's row needs."""
    values = {
        "id": new_id("mdl"),
        "owner": OWNER,
        "name": "churn",
        "job_id": new_id("job"),
        "dataset_id": new_id("ds"),
        "algorithm": "rankboost",
        "parameters": {"n_rounds": 10},
        "objective": {"metric": "auc"},
        "validation": {"method": "none"},
        "optimised_for": {"metric": "auc"},
        "selected_by": None,
        "features": [{"name": "a", "type": "numeric", "missing": False}],
        "label": "y",
        "positive": "1",
        "negative": "0",
        "seed": 0,
        "tags": {},
        "warnings": [],
        "protected": [],
        "fit_seconds": 0.1,
        "artifact_key": "artifacts/00/00",
        "artifact_sha256": "00",
        "artifact_bytes": 1,
    }
    return values | changes


def add_model(db: Database, **changes: Any) -> Model:
    """Write a model's row as a job does."""
    with db.write() as session:
        return model_rows.insert(session, **model_values(**changes))


def find_dataset(db: Database, dataset_id: str) -> Dataset:
    """Read a dataset's row."""
    with db.read() as session:
        return session.get_one(Dataset, dataset_id)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Run the calls in a thread each, started together; what each returned, or the exception it raised."""
    barrier = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = calls[index]()
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
