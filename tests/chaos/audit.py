"""The audit: which rules must hold for a deployment at rest, checked by its database and its blobs alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from app.operations import repository as blob_rows
from app.platform import catalogue
from app.platform.blobs import BlobDamaged, BlobMissing, BlobStore
from app.platform.database import Database
from app.platform.sql import db_now
from app.platform.tables import (
    FINAL_STATES,
    BatchScore,
    BlobEntry,
    BlobState,
    Dataset,
    Evaluation,
    Idempotency,
    Job,
    JobEvent,
    JobState,
    Model,
)
from tests.chaos.workload import Ledger

BEGINS = {"queued"}
FOLLOWS: dict[str, set[str]] = {
    "queued": {"running", "cancelled", "failed", "timed_out"},
    # A job that fans out says `running` once more; a claim that is lost or joined says `queued`.
    "running": {"running", "queued", "cancelling", *FINAL_STATES},
    "cancelling": {"cancelled", "failed", "timed_out"},
}
"""Which state may come after which, by a job's events."""


class Counts(NamedTuple):
    """Unfinished jobs, those of them that do not wait for their next attempt, and finished jobs."""

    left: int
    due: int
    ended: int
    parts_ended: int


def count_jobs(db: Database) -> Counts:
    """Count the jobs by how far they are."""
    own, ended = Job.parent_id.is_(None), Job.state.in_(FINAL_STATES)
    waits = and_(Job.state == JobState.QUEUED, Job.not_before > db_now())
    conditions = (
        and_(own, ~ended),
        and_(own, ~ended, ~waits),
        and_(own, ended),
        and_(~own, ended),
    )
    counts = select(*(func.count().filter(condition) for condition in conditions))
    with db.read() as session:
        return Counts._make(session.execute(counts.select_from(Job)).one())


def owners_of_jobs(db: Database) -> dict[str, str]:
    """Return the workers that have a job (not a part of one), each with its job."""
    running = select(Job.worker_id, Job.id).where(
        Job.state == JobState.RUNNING, Job.parent_id.is_(None)
    )
    with db.read() as session:
        return {worker_id: job_id for worker_id, job_id in session.execute(running) if worker_id}


def audit(db: Database, blobs: BlobStore, ledger: Ledger) -> list[str]:
    """Return what is wrong, one sentence each. The deployment is at rest, and was swept since."""
    with db.read() as session:
        jobs = {job.id: job for job in session.scalars(select(Job))}
        found = [
            *_ended(jobs, ledger),
            *_one_model_each(session, jobs, ledger),
            *_as_their_jobs(session, jobs),
            *_one_job_a_key(session, jobs, ledger),
            *_parts_ended(jobs),
            *_events_in_order(session, jobs),
            *_blobs_there(session, blobs),
            *_blobs_named(session, blobs),
        ]
    return [*ledger.broken, *found]


def _ended(jobs: dict[str, Job], ledger: Ledger) -> Iterator[str]:
    for accepted in ledger.accepted:
        job = jobs.get(accepted.job_id)
        if job is None:
            yield f"lost: {accepted.job_id} ({accepted.key}) was accepted and is not there"
    for job in jobs.values():
        if job.state not in FINAL_STATES:
            yield f"lost: {job.id} ({job.kind}) is {job.state} and nobody is at it"
        elif job.finished_at is None or job.lease_expires_at is not None:
            yield f"{job.id} has {job.state}, finished at {job.finished_at}, its lease {job.lease_expires_at}"


def _one_model_each(session: Session, jobs: dict[str, Job], ledger: Ledger) -> Iterator[str]:
    made: defaultdict[str, list[Model]] = defaultdict(list)
    for model in session.scalars(select(Model)):
        made[model.job_id].append(model)
    for job_id, models in made.items():
        if len(models) > 1:
            yield f"doubled: {job_id} has {len(models)} models"
        job = jobs.get(job_id)
        if job is None or job.state != JobState.SUCCEEDED or job.model_id != models[0].id:
            yield f"doubled: {models[0].id} was made by {job_id}, which has {job and job.state}"
    for job in jobs.values():
        succeeded = job.kind == "train" and job.state == JobState.SUCCEEDED
        if succeeded and job.id not in made and job.model_id not in ledger.deleted:
            yield f"lost: {job.id} has succeeded and its model is not there"


def _as_their_jobs(session: Session, jobs: dict[str, Job]) -> Iterator[str]:
    """Check that a job's output is filled if and only if the job has succeeded."""
    rows: list[tuple[Evaluation | BatchScore, bool]] = [
        *((row, row.metrics is not None) for row in session.scalars(select(Evaluation))),
        *((row, row.result_key is not None) for row in session.scalars(select(BatchScore))),
    ]
    for row, is_filled in rows:
        state = jobs[row.job_id].state
        if is_filled != (state == JobState.SUCCEEDED):
            yield f"{row.id} is {'' if is_filled else 'not '}filled, its job has {state}"
    for dataset in session.scalars(select(Dataset)):
        job = jobs.get(dataset.job_id or "")
        expected = "ready" if job is not None and job.state == JobState.SUCCEEDED else "invalid"
        if dataset.status != expected:
            yield f"{dataset.id} is {dataset.status}, its job has {job and job.state}"


def _one_job_a_key(session: Session, jobs: dict[str, Job], ledger: Ledger) -> Iterator[str]:
    # A key is stored after its principal's id.
    answered = {
        row.key.partition(" ")[2]: row.response["id"]
        for row in session.scalars(select(Idempotency))
    }
    for accepted in ledger.accepted:
        if answered.get(accepted.key) != accepted.id:
            yield f"{accepted.key} was answered {accepted.id}, its record says {answered.get(accepted.key)}"
    keys = [job.tags["key"] for job in jobs.values() if "key" in job.tags]
    keys += session.scalars(select(Dataset.name))
    for key, n in Counter(keys).items():
        if n > 1:
            yield f"doubled: {key} made {n} of its kind"
    for table, what in ((Evaluation, "evaluations"), (BatchScore, "batch-scores")):
        there = session.scalar(select(func.count()).select_from(table))
        asked = {entry.id for entry in ledger.accepted if entry.what == what}
        if there != len(asked):
            yield f"{there} {what} are there, {len(asked)} were accepted"


def _parts_ended(jobs: dict[str, Job]) -> Iterator[str]:
    for job in jobs.values():
        if job.parent_id is not None and job.state not in FINAL_STATES:
            yield f"{job.id}, a part of {job.parent_id}, is {job.state}: its parent has {jobs[job.parent_id].state}"


def _events_in_order(session: Session, jobs: dict[str, Job]) -> Iterator[str]:
    told: defaultdict[str, list[JobEvent]] = defaultdict(list)
    for event in session.scalars(select(JobEvent).order_by(JobEvent.job_id, JobEvent.seq)):
        told[event.job_id].append(event)
    for job in jobs.values():
        events = told[job.id]
        if job.parent_id is not None:  # nobody listens to a part
            if events:
                yield f"{job.id} is a part and has {len(events)} events"
            continue
        if [event.seq for event in events] != list(range(1, job.event_seq + 1)):
            yield f"{job.id}: its events are {[e.seq for e in events]}, its last number {job.event_seq}"
        yield from _history(job, [event.data for event in events if event.type == "state"])


def _history(job: Job, states: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Return True if a job's states follow each other as allowed, and its attempts one after the other."""
    names = [said["state"] for said in states]
    if not names or names[0] not in BEGINS or names[-1] != job.state:
        yield f"{job.id} went {names}, and has {job.state}"
        return
    for before, after in pairwise(names):
        if after not in FOLLOWS.get(before, ()):
            yield f"{job.id} went from {before} to {after}: {names}"
    claims = [said for said in states if "token" in said]
    tokens = [said["token"] for said in claims]
    if any(later <= earlier for earlier, later in pairwise(tokens)):
        yield f"{job.id}: its tokens are {tokens}, and must grow"
    if (
        job.state == JobState.SUCCEEDED
        and claims
        and claims[-1]["attempt"] != states[-1]["attempt"]
    ):
        yield (
            f"doubled: {job.id} was ended by attempt {states[-1]['attempt']}, "
            f"while attempt {claims[-1]['attempt']} owned it"
        )


def _blobs_there(session: Session, blobs: BlobStore) -> Iterator[str]:
    for column in blob_rows.blob_columns():
        named = session.execute(select(column.ids[0], column.key).where(column.key.is_not(None)))
        for owner, key in named.all():
            try:
                blobs.verify(catalogue.find(session, key))
            except (BlobMissing, BlobDamaged) as error:
                yield f"lost: the {column.what} {owner}: {error}"


def _blobs_named(session: Session, blobs: BlobStore) -> Iterator[str]:
    there = {found.key for found in blobs.list()}
    entered = session.scalars(select(BlobEntry.key).where(BlobEntry.state == BlobState.STORED))
    known = there.union(entered)
    for key in known - blob_rows.named(session, list(known)):
        yield f"{key} is named by no row"
