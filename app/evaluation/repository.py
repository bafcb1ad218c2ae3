"""Queries on evaluations and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert
from sqlalchemy.orm import Session

from app.jobs.repository import insert_made
from app.platform.sql import Json
from app.platform.tables import (
    Comparison,
    ComparisonModel,
    EvaluationCurve,
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
