"""Queries on evaluations and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select, union
from sqlalchemy.orm import Session

from app.jobs.repository import insert_made
from app.platform.sql import Json
from app.platform.tables import (
    FINAL_STATES,
    Comparison,
    ComparisonModel,
    Evaluation,
    EvaluationCurve,
    Job,
)


def insert_comparison(
    session: Session, models: Sequence[Json], *, id: str, **values: Any
) -> Comparison:
    """Add a comparison of these models (`model_id`, `name`, `version`) that its job has yet to make."""
    row = insert_made(session, Comparison, id=id, **values)
    entries = [
        {"comparison_id": id, "position": position, **model}
        for position, model in enumerate(models)
    ]
    session.execute(insert(ComparisonModel), entries)
    return row


def find_curve(session: Session, evaluation_id: str) -> EvaluationCurve | None:
    """The ROC curve. The caller has seen that the evaluation is the owner's."""
    return session.get(EvaluationCurve, evaluation_id)


def unfinished_of_model(session: Session, owner: str, model_id: str) -> list[str]:
    """Ids of the jobs that have yet to judge this model."""
    statement = union(
        select(Job.id)
        .join(Evaluation, Evaluation.job_id == Job.id)
        .where(
            Job.owner == owner,
            Job.state.not_in(FINAL_STATES),
            Evaluation.model_id == model_id,
        ),
        select(Job.id)
        .join(Comparison, Comparison.job_id == Job.id)
        .join(ComparisonModel, ComparisonModel.comparison_id == Comparison.id)
        .where(
            Job.owner == owner,
            Job.state.not_in(FINAL_STATES),
            ComparisonModel.model_id == model_id,
        ),
    )
    return list(session.scalars(statement))
