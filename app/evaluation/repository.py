"""Queries on evaluations and comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.platform.sql import Json
from app.platform.tables import ComparisonModel, EvaluationCurve


def insert_models(session: Session, comparison_id: str, models: Sequence[Json]) -> None:
    """Add the models of a comparison (`model_id`, `name`, `version`), in their order."""
    entries = [
        {"comparison_id": comparison_id, "position": position, **model}
        for position, model in enumerate(models)
    ]
    session.execute(insert(ComparisonModel), entries)


def find_curve(session: Session, evaluation_id: str) -> EvaluationCurve | None:
    """The ROC curve. The caller has seen that the evaluation is the owner's."""
    return session.get(EvaluationCurve, evaluation_id)


def find_group_scores(session: Session, evaluation_id: str) -> bytes | None:
    """Return the scores by group of an evaluation that has a curve, if they are kept."""
    statement = select(EvaluationCurve.group_scores).where(
        EvaluationCurve.evaluation_id == evaluation_id
    )
    return session.scalar(statement)
