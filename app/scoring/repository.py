"""Queries on tables scored by a job."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.platform.tables import FINAL_STATES, BatchScore, Job


def unfinished_of_model(session: Session, owner: str, model_id: str) -> list[str]:
    """Ids of the jobs that have yet to score with this model."""
    statement = (
        select(Job.id)
        .join(BatchScore, BatchScore.job_id == Job.id)
        .where(
            Job.owner == owner,
            Job.state.not_in(FINAL_STATES),
            BatchScore.model_id == model_id,
        )
    )
    return list(session.scalars(statement))
