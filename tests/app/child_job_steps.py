"""Steps that the tests of jobs in parts share."""

from __future__ import annotations

from typing import Any

from app.jobs import child_jobs as parts
from app.jobs import queue_repository
from app.jobs.kinds import Claim
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import Job
from tests.app.queue_steps import claimed, submit

SETTINGS = Settings(job_max_attempts=2)


def fan_out(db: Database, claim: Claim, n: int = 3, stage: int = 0, **more: Any) -> None:
    asked: Any = {"stage": stage, "parts": [{"fold": i} for i in range(n)], **more}
    db.writing(parts.fan_out, claim, asked)


def divided(db: Database, n: int = 3, **values: Any) -> Job:
    """Submit a job and divide it; no other job is queued."""
    job = submit(db, SETTINGS, **values)
    fan_out(db, claimed(db), n)
    return job


def end_part(db: Database, claim: Claim, **files: str) -> None:
    with db.write() as session:
        parts.finish(session, claim, {"auc": claim.spec["part"]["fold"] / 10}, files)


def of(db: Database, job: Job) -> list[Job]:
    with db.read() as session:
        return list(queue_repository.of_parent(session, job.id))


def states(db: Database, job: Job) -> tuple[str, list[str]]:
    """The job's state, and those of its parts."""
    with db.read() as session:
        state = session.get_one(Job, job.id).state
    return state, [part.state for part in of(db, job)]
