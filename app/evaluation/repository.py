"""Queries for evaluations and comparisons."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Subquery, case, func, insert, select, tuple_
from sqlalchemy.orm import Session, aliased, joinedload, selectinload, undefer_group

from app.findings.finding import OF_CALIBRATION
from app.models import repository as model_rows
from app.platform.documents import DatasetLineage
from app.platform.sql import Json, db_now
from app.platform.tables import (
    Acknowledgement,
    Comparison,
    ComparisonModel,
    Dataset,
    Evaluation,
    Job,
    Measurement,
    Model,
    StoredFinding,
)

# Built once: SQLAlchemy takes longer to build an alias than SQLite to run a statement with it.
_FIRST, _SECOND = aliased(ComparisonModel), aliased(ComparisonModel)
_ALIAS = Job.spec["alias"].as_string()  # of evaluations
_OLDER, _SEEN = Job.spec["older"].as_boolean(), Job.spec["seen"].as_string()
_OVERLAPS = Measurement.metrics["overlaps"].as_boolean()
_ERASE = "erase"
"""The kind of the jobs that replace datasets."""


def insert_models(session: Session, comparison_id: str, models: Sequence[Json]) -> None:
    """`models` have `model_id`, `name` and `version`."""
    entries = [
        {"comparison_id": comparison_id, "position": position, **model}
        for position, model in enumerate(models)
    ]
    session.execute(insert(ComparisonModel), entries)


def find_measured(session: Session, evaluation_id: str) -> Measurement | None:
    """The caller must have checked the owner."""
    statement = select(Measurement).where(Measurement.id == evaluation_id)
    return session.scalar(statement.options(undefer_group("curve")))


def list_of_model(session: Session, owner: str, model_id: str, limit: int) -> Sequence[Evaluation]:
    """Return ready evaluations, the one with the newest rows first."""
    statement = (
        select(Evaluation)
        .where(Evaluation.readable_by(owner), Evaluation.of_model(model_id))
        .where(Evaluation.measured.has())
        .order_by(*Evaluation.newest_rows_first())
        .limit(limit)
        .options(selectinload(Evaluation.job))
    )
    return session.scalars(statement).all()


def _current(owner: str, subject: Sequence[Any], *conditions: ColumnElement[bool]) -> Subquery:
    """Select the newest ready evaluation of each model, alias that requests named, and value of `subject`.

    One that was requested without an alias replaces those on older rows of all aliases. Evaluations on rows that the
    model has seen, or that are not newer than its own, do not count. The columns of `subject` are selected, too.
    """
    alias = _ALIAS.label("alias")
    newest_first = Evaluation.newest_rows_first()
    of_model = (Evaluation.model_id, *subject)
    place = func.row_number().over(partition_by=(*of_model, alias), order_by=newest_first)
    in_model = func.row_number().over(partition_by=of_model, order_by=newest_first)
    # Metrics are written as the job succeeds.
    ready = Evaluation.readable_by(owner), Evaluation.measured.has(_OVERLAPS.is_(False))
    statement = (
        select(Evaluation.id, Evaluation.model_id, alias, *subject)
        .add_columns(place.label("place"), in_model.label("of_model"))
        .join(Evaluation.job)
        .where(*ready, *conditions, _SEEN == "new", func.coalesce(_OLDER, False).is_(False))
    )
    if subject:
        statement = statement.join(StoredFinding, StoredFinding.evaluation_id == Evaluation.id)
    ranked = statement.subquery()
    parts = [ranked.c.model_id, *(ranked.c[each.key] for each in subject)]
    of_version = func.min(case((ranked.c.alias.is_(None), ranked.c.of_model))).over(
        partition_by=parts
    )
    placed = select(ranked, of_version.label("of_version")).subquery()
    is_current = placed.c.of_model <= func.coalesce(placed.c.of_version, placed.c.of_model)
    return select(placed).where(placed.c.place == 1, is_current).subquery()


def newest_of_models(
    session: Session, owner: str, model_ids: Collection[str]
) -> dict[tuple[str, str | None], Evaluation]:
    """Return the newest ready ones by id of the model and alias; None: the request named no alias."""
    ready = _current(owner, (), Evaluation.model_id.in_(model_ids))
    statement = (
        select(ready.c.alias, Evaluation)
        .join(ready, ready.c.id == Evaluation.id)
        .options(joinedload(Evaluation.job))
    )
    return {(each.model_id, alias): each for alias, each in session.execute(statement)}


class StandingAnswer(NamedTuple):
    """A stored finding that answers a question now, and what it is about."""

    evaluation_id: str
    model_id: str
    model_name: str
    model_version: int
    alias: str | None
    dataset_id: str
    dataset_name: str
    created_at: float
    question: str
    answer: str
    document: Json
    tested: int | None
    """The version of the calibration that was tested."""
    served: int | None
    """The present version of the calibration."""
    reason: str | None
    author: str | None
    at: float | None
    """When a person has seen it; None if nobody has."""


def standing_answers(
    session: Session,
    owner: str,
    *conditions: ColumnElement[bool],
    answers: Sequence[str] = ("yes", "no"),
    limit: int | None = None,
) -> list[StandingAnswer]:
    """Return the newest answer to each question, if it is one of `answers`, of models and the aliases that requests
    named: first those that nobody has acknowledged, then by the newest evaluation. This is the rule of
    `findings.finding.current`: inconclusive rows do not replace an answer.

    Findings that a recalibration has made obsolete are left out, and so are deleted models.
    """
    answered = StoredFinding.answer.in_(("yes", "no"))
    newest = _current(owner, (StoredFinding.question,), answered, *conditions)
    statement = (
        select(
            Evaluation.id,
            Evaluation.model_id,
            Evaluation.model_name,
            Evaluation.model_version,
            newest.c.alias,
            Evaluation.dataset_id,
            Evaluation.dataset_name,
            Evaluation.created_at,
            StoredFinding.question,
            StoredFinding.answer,
            StoredFinding.document,
            Measurement.metrics[("calibration", "version")].as_integer(),
            Model.calibration_version,
            Acknowledgement.reason,
            Acknowledgement.author,
            Acknowledgement.at,
        )
        .join(newest, newest.c.id == Evaluation.id)
        .join(StoredFinding, StoredFinding.evaluation_id == Evaluation.id)
        .join(Measurement, Measurement.id == Evaluation.id)
        .join(Model, Model.id == Evaluation.model_id)
        .outerjoin(Acknowledgement, Acknowledgement.evaluation_id == Evaluation.id)
        .where(Model.readable_by(owner), StoredFinding.answer.in_(answers))
        .where(StoredFinding.question == newest.c.question)
        .order_by(
            Acknowledgement.at.is_not(None),
            Evaluation.created_at.desc(),
            Evaluation.id.desc(),
            StoredFinding.number,
        )
        .limit(limit)
    )
    found = [StandingAnswer(*row) for row in session.execute(statement)]
    fits = model_rows.calibration_fits(session, {each.model_id for each in found})
    return [
        each
        for each in found
        if each.question not in OF_CALIBRATION
        or not is_recalibrated(each.tested, each.served, fits.get(each.model_id, {}))
    ]


def is_recalibrated(tested: int | None, served: int | None, fits: Mapping[int, int]) -> bool:
    """Return True if an evaluation is of an earlier calibration than the present one, and probabilities differ.

    `fits` has the version in which each version was fitted, so an undone recalibration does not count.
    """
    if tested is None or served is None or tested >= served:
        return False
    return fits.get(tested) != fits.get(served)


def put_acknowledgement(
    session: Session, evaluation_id: str, reason: str, author: str | None
) -> Acknowledgement:
    delete_acknowledgement(session, evaluation_id)
    row = Acknowledgement(evaluation_id=evaluation_id, reason=reason, author=author, at=db_now())
    session.add(row)
    session.flush()
    session.refresh(row)
    return row


def delete_acknowledgement(session: Session, evaluation_id: str) -> bool:
    found = session.get(Acknowledgement, evaluation_id)
    if found is None:
        return False
    session.delete(found)
    session.flush()
    return True


def find_comparisons_of_pairs(
    session: Session, owner: str, pairs: Collection[tuple[str, str]], limit: int
) -> Sequence[tuple[tuple[str, str], Comparison]]:
    """Return each pair with its newest comparisons, newest first."""
    first, second = _FIRST, _SECOND
    newest_first = Comparison.created_at.desc(), Comparison.id.desc()
    of_pair = func.row_number().over(
        partition_by=(first.model_id, second.model_id), order_by=newest_first
    )
    ranked = (
        select(Comparison.id, first.model_id, second.model_id, of_pair.label("place"))
        .join(first, first.comparison_id == Comparison.id)
        .join(second, second.comparison_id == Comparison.id)
        .where(Comparison.readable_by(owner))
        .where(tuple_(first.model_id, second.model_id).in_(pairs))
        .subquery()
    )
    _, one, other, place = ranked.c
    rows = session.execute(
        select(one, other, Comparison)
        .join(ranked, ranked.c[0] == Comparison.id)
        .where(place <= limit)
        .order_by(*newest_first)
        .options(selectinload("*"))
    )
    return [((model_id, other_id), comparison) for model_id, other_id, comparison in rows]


def replaces(session: Session, owner: str, known: DatasetLineage | None, dataset: Dataset) -> bool:
    """Return True if an erasure has replaced the known version by this one, or by the one whose rows it begins with.

    The new one has the same name and number, but another id and other content.
    """
    if known is None:
        return False
    statement = (
        select(Dataset.id)
        .join(Job, Job.id == Dataset.job_id)
        .where(Dataset.belongs_to(owner), Dataset.id.in_({dataset.id, dataset.rows_from}))
        .where(Dataset.name == known["name"], Dataset.version == known["version"])
        .where(Job.kind == _ERASE)
    )
    return session.scalar(statement.limit(1)) is not None
