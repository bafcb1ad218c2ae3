"""What an owner has at present, for quotas: queued jobs and stored bytes."""

from __future__ import annotations

from sqlalchemy import bindparam, func, select, text
from sqlalchemy.orm import Session

from app.platform.tables import (
    BatchScore,
    Dataset,
    DatasetPairs,
    Job,
    JobState,
    Model,
    ModelOutOfFold,
)

# The statements are built once: SQLAlchemy takes longer to build one than SQLite to run it.
_QUEUED = (Job.state == JobState.QUEUED, Job.parent_id.is_(None))
_QUEUED_OF_OWNER = (
    select(func.count()).select_from(Job).where(*_QUEUED, Job.owner == bindparam("of_owner"))
)
_QUEUED_IN_ALL = select(func.count()).select_from(
    select(Job.state).where(*_QUEUED).limit(bindparam("most")).subquery()
)
_PAIRS_OF_OWNER = DatasetPairs.dataset_id.in_(
    select(Dataset.id).where(Dataset.owner == bindparam("of_owner"))
)
_STORED = select(
    *(
        select(func.coalesce(func.sum(size), 0)).where(whose).scalar_subquery()
        for size, whose in (
            (
                Dataset.bytes + func.coalesce(Dataset.table_bytes, 0),
                Dataset.owner == bindparam("of_owner"),
            ),
            (DatasetPairs.bytes + func.coalesce(DatasetPairs.table_bytes, 0), _PAIRS_OF_OWNER),
            (
                func.coalesce(BatchScore.upload_bytes, 0)
                + func.coalesce(BatchScore.result_bytes, 0),
                BatchScore.owner == bindparam("of_owner"),
            ),
            (Model.artifact_bytes, Model.owner == bindparam("of_owner")),
            (
                ModelOutOfFold.bytes,
                ModelOutOfFold.model_id.in_(
                    select(Model.id).where(Model.owner == bindparam("of_owner"))
                ),
            ),
        )
    )
)

_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended(:whose, 7236512903))")


def take_turn(session: Session, owner: str) -> None:
    """Wait until no other transaction counts what this owner has; the turn ends with the transaction.

    So of a hundred jobs at once each is counted by the next. SQLite's writers take turns anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.execute(_TURN, {"whose": owner})


def queued_jobs(session: Session, owner: str) -> int:
    """How many of the owner's jobs are queued, parts of jobs aside."""
    return session.execute(_QUEUED_OF_OWNER, {"of_owner": owner}).scalar_one()


def queued_in_all(session: Session, most: int) -> int:
    """How many jobs of all owners are queued, parts of jobs aside; counted up to `most`."""
    return session.execute(_QUEUED_IN_ALL, {"most": most}).scalar_one()


def owners_at_limit(session: Session, state: JobState, limit: int) -> int:
    """How many owners have as many jobs in this state as they may; parts count where they run."""
    jobs = select(Job.owner).where(Job.state == state)
    if state == JobState.QUEUED:
        jobs = jobs.where(Job.parent_id.is_(None))
    owners = jobs.group_by(Job.owner).having(func.count() >= limit).subquery()
    return session.execute(select(func.count()).select_from(owners)).scalar_one()


def stored_bytes(session: Session, owner: str) -> int:
    """Bytes of the owner's uploads, tables, artifacts and scores, each as often as a row names them."""
    return sum(map(int, session.execute(_STORED, {"of_owner": owner}).one()))
