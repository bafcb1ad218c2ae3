"""Acknowledgements: a person has seen that an evaluation found a change, with the reason for taking no further action.

An acknowledgement belongs to one evaluation, so the next one raises the alarm again.
"""

from __future__ import annotations

from app.evaluation import repository
from app.evaluation.evaluations import EVALUATIONS
from app.platform.audit import describe
from app.platform.callers import check_model
from app.platform.errors import Conflict, NotFound
from app.platform.sql import Session
from app.platform.tables import Acknowledgement, Evaluation


def acknowledge(
    session: Session, owner: str, evaluation_id: str, reason: str, author: str | None
) -> Acknowledgement:
    """An earlier acknowledgement is replaced. Raises NotFound, and Conflict if the evaluation is not ready."""
    evaluation = EVALUATIONS.find(session, owner, evaluation_id, lock=True)
    check_model(evaluation.model_name)
    if evaluation.metrics is None:
        raise Conflict(
            f"evaluation {evaluation_id} is not ready, so there is nothing to acknowledge",
            code="not_ready",
        )
    describe(session, f"{_named(evaluation)} acknowledged")
    return repository.put_acknowledgement(session, evaluation_id, reason, author)


def withdraw(session: Session, owner: str, evaluation_id: str) -> None:
    """Raises NotFound."""
    evaluation = EVALUATIONS.find(session, owner, evaluation_id, lock=True)
    check_model(evaluation.model_name)
    if not repository.delete_acknowledgement(session, evaluation_id):
        raise NotFound(f"evaluation {evaluation_id} is not acknowledged")
    describe(session, f"{_named(evaluation)}: acknowledgement withdrawn")


def _named(evaluation: Evaluation) -> str:
    return f"{evaluation.model_name} v{evaluation.model_version} on {evaluation.dataset_name}"
