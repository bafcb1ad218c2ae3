"""Queries on evaluations and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from sqlalchemy import delete as sql_delete
from sqlalchemy import insert, select, union, update
from sqlalchemy.orm import Session, selectinload

from app.platform.sql import Json, Page, db_now, fetch_page
from app.platform.tables import (
    FINAL_STATES,
    Comparison,
    ComparisonModel,
    Evaluation,
    EvaluationCurve,
    Job,
)

Judgement = TypeVar("Judgement", Evaluation, Comparison)
"""Either of the two, which are found, listed and deleted alike."""

_COMPARED = (selectinload(Comparison.models),)


def insert_evaluation(session: Session, **values: Any) -> Evaluation:
    """Add an evaluation that its job has yet to make, created now by the database's clock."""
    statement = insert(Evaluation).values(created_at=db_now(), **values).returning(Evaluation)
    return session.scalars(statement).one()


def insert_comparison(
    session: Session, models: Sequence[Json], *, id: str, **values: Any
) -> Comparison:
    """Add a comparison of these models (`model_id`, `name`, `version`) that its job has yet to make."""
    statement = (
        insert(Comparison).values(id=id, created_at=db_now(), **values).returning(Comparison)
    )
    row = session.scalars(statement).one()
    entries = [
        {"comparison_id": id, "position": position, **model}
        for position, model in enumerate(models)
    ]
    session.execute(insert(ComparisonModel), entries)
    return row


def find(
    session: Session, table: type[Judgement], owner: str, id_: str, *, lock: bool = False
) -> Judgement | None:
    """The owner's evaluation or comparison with its job. `lock` holds the row until the transaction ends."""
    statement = select(table).where(table.owner == owner, table.id == id_)
    statement = statement.options(selectinload(table.job), *_also(table))
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def list_page(
    session: Session,
    table: type[Judgement],
    owner: str,
    *,
    model_id: str | None,
    dataset_id: str | None,
    limit: int,
    after: str | None,
) -> Page[Judgement]:
    """The owner's evaluations or comparisons, newest first, of one model or dataset if one is given."""
    statement = select(table).where(table.owner == owner)
    statement = statement.options(selectinload(table.job), *_also(table))
    if dataset_id is not None:
        statement = statement.where(table.dataset_id == dataset_id)
    if model_id is not None and table is Evaluation:
        statement = statement.where(Evaluation.model_id == model_id)
    elif model_id is not None:
        compared = select(ComparisonModel.comparison_id).where(ComparisonModel.model_id == model_id)
        statement = statement.where(table.id.in_(compared))
    return fetch_page(session, statement, table.created_at, table.id, limit=limit, after=after)


def write(
    session: Session, table: type[Judgement], owner: str, id_: str, **values: Any
) -> str | None:
    """Write what the job has found; returns the id, or None where the row was deleted meanwhile."""
    statement = update(table).where(table.owner == owner, table.id == id_).values(**values)
    return session.scalars(statement.returning(table.id)).one_or_none()


def take_over(session: Session, old_job_id: str, job_id: str) -> None:
    """Have another job make what an earlier one did not."""
    for table in (Evaluation, Comparison):
        session.execute(update(table).where(table.job_id == old_job_id).values(job_id=job_id))


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


def delete(session: Session, table: type[Judgement], owner: str, id_: str) -> None:
    """Remove the row with what hangs on it."""
    session.execute(sql_delete(table).where(table.owner == owner, table.id == id_))


def _also(table: type[Judgement]) -> tuple[Any, ...]:
    return _COMPARED if table is Comparison else ()
