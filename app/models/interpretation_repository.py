"""Queries on what is kept of models to interpret them. The caller has seen that the model is the owner's."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.platform.tables import ModelImportance, ModelSample


def find_sample(session: Session, model_id: str, part: str) -> ModelSample | None:
    """The rows of one part that were kept."""
    return session.get(ModelSample, (model_id, part))


def find_importance(session: Session, model_id: str) -> ModelImportance | None:
    """How much each feature matters."""
    return session.get(ModelImportance, model_id)
