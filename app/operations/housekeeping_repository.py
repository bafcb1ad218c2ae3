"""What has outlived its use: events, jobs and datasets that nobody needs, found and removed a few at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, exists, or_, select, tuple_
from sqlalchemy.orm import Session, aliased

from app.platform.sql import db_now, delete_some
from app.platform.tables import (
    FINAL_STATES,
    AuditEntry,
    BatchScore,
    Comparison,
    Dataset,
    DatasetPairs,
    DatasetSeries,
    DatasetStatus,
    Evaluation,
    Job,
    JobEvent,
    Model,
)


class Ended(NamedTuple):
    """A job that ended, and when: a place in the order of ends."""

    finished_at: float
    id: str


FIRST = Ended(0.0, "")

Conditions = tuple[ColumnElement[bool], ...]


class Owned(NamedTuple):
    """A dataset and whose it is."""

    id: str
    owner: str


def prune_audit(session: Session, age_seconds: float, limit: int) -> int:
    """Remove so many entries of the audit log that are older than that; returns how many."""
    return delete_some(
        session, AuditEntry, AuditEntry.created_at < db_now() - age_seconds, limit=limit
    )


def prune_batch_scores(session: Session, age_seconds: float, limit: int) -> int:
    """Remove so many batch scores that were asked for that long ago and whose job has ended; returns how many."""
    going_on = exists().where(Job.id == BatchScore.job_id, Job.state.not_in(FINAL_STATES))
    old = BatchScore.created_at < db_now() - age_seconds
    return delete_some(session, BatchScore, old, ~going_on, limit=limit)


def prune_series(session: Session, limit: int) -> int:
    """Remove so many counters of series of which no version is left; returns how many."""
    of_it = or_(Dataset.first_id == DatasetSeries.first_id, Dataset.id == DatasetSeries.first_id)
    return delete_some(session, DatasetSeries, ~exists().where(of_it), limit=limit)


def ended_jobs(
    session: Session, age_seconds: float, after: Ended, limit: int, *, unneeded: bool
) -> Sequence[Ended]:
    """Jobs that ended that long ago, in the order of their ends; of them only those that nothing needs, if asked."""
    conditions = [
        Job.parent_id.is_(None),
        Job.finished_at < db_now() - age_seconds,
        tuple_(Job.finished_at, Job.id) > tuple_(after.finished_at, after.id),
    ]
    if unneeded:
        conditions.append(_unneeded())
    statement = select(Job.finished_at, Job.id).where(*conditions)
    statement = statement.order_by(Job.finished_at, Job.id).limit(limit)
    return [Ended(at, id_) for at, id_ in session.execute(statement) if at is not None]


def prune_events(session: Session, job_ids: Sequence[str], limit: int, *, spare_last: bool) -> int:
    """Remove so many events of these jobs, all or all but each one's last; returns how many."""
    of_these: ColumnElement[bool] = JobEvent.job_id.in_(job_ids)
    if spare_last:
        last = select(Job.event_seq).where(Job.id == JobEvent.job_id).scalar_subquery()
        of_these = and_(of_these, JobEvent.seq < last)
    return delete_some(session, JobEvent, of_these, limit=limit)


def prune_jobs(session: Session, job_ids: Sequence[str]) -> int:
    """Remove those of these jobs that still nothing needs, with what is left of their rows; returns how many."""
    return delete_some(session, Job, Job.id.in_(job_ids), _unneeded(), limit=len(job_ids))


def _unneeded() -> ColumnElement[bool]:
    """A job that ended, and that no model, dataset, pairs, evaluation, comparison or batch score names as its own."""
    part = aliased(Job)
    return and_(
        Job.state.in_(FINAL_STATES),
        *(
            ~exists().where(table.job_id == Job.id)
            for table in (Model, Evaluation, Comparison, BatchScore)
        ),
        ~exists().where(Dataset.id == Job.dataset_id, Dataset.job_id == Job.id),
        Job.id.not_in(select(DatasetPairs.job_id)),  # those that a later version took over as well
        ~exists().where(part.parent_id == Job.id),  # its parts go first, by themselves
    )


def is_invalid(age_seconds: float) -> Conditions:
    """Datasets that were refused that long ago."""
    return (Dataset.status == DatasetStatus.INVALID, *_at_rest(age_seconds))


def is_unused(age_seconds: float) -> Conditions:
    """Datasets of which nothing was made, and with which no job has had to do for that long."""
    used = (
        select(table.dataset_id).where(table.dataset_id.is_not(None))
        for table in (Model, Evaluation, Comparison, BatchScore)
    )
    judged_on = Model.validation["dataset_id"].as_string()
    child = aliased(Dataset)
    return (
        Dataset.status == DatasetStatus.READY,
        *_at_rest(age_seconds),
        *(Dataset.id.not_in(made) for made in used),
        Dataset.id.not_in(select(judged_on).where(judged_on.is_not(None))),
        ~exists().where(or_(child.parent_id == Dataset.id, child.base_id == Dataset.id)),
    )


def _at_rest(age_seconds: float) -> Conditions:
    """Made that long ago, and no job that reads it, learns from it or judges by it has ended since."""
    recent = or_(Job.finished_at.is_(None), Job.finished_at > db_now() - age_seconds)
    judges_by = Job.spec["validation"]["dataset_id"].as_string()
    return (
        Dataset.created_at < db_now() - age_seconds,
        ~exists().where(Job.dataset_id == Dataset.id, recent),
        Dataset.id.not_in(select(judges_by).where(judges_by.is_not(None), recent)),
    )


def find_datasets(
    session: Session, conditions: Conditions, after: str, limit: int
) -> Sequence[Owned]:
    """So many datasets of which that is true, in the order of their ids."""
    statement = select(Dataset.id, Dataset.owner).where(Dataset.id > after, *conditions)
    return [Owned(*row) for row in session.execute(statement.order_by(Dataset.id).limit(limit))]


def is_still_so(session: Session, conditions: Conditions, dataset_id: str) -> bool:
    """Whether it is true of this dataset now."""
    return session.scalar(select(exists().where(Dataset.id == dataset_id, *conditions))) or False
