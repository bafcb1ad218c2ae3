"""/v1/evaluations: a model judged on a dataset; /v1/comparisons: several models on one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.evaluation import service
from app.evaluation.schemas import (
    Comparison,
    Evaluation,
    NewComparison,
    NewEvaluation,
    comparison_of,
    evaluation_of,
)
from app.evaluation.service import COMPARISONS, EVALUATIONS
from app.http.dependencies import CallerDep, ContextDep, PagingDep, SubjectDep
from app.http.idempotency import IdempotentDep
from app.http.schemas import PageOf, Valid
from app.jobs.acceptance import PreferWaitDep, create, dry_run
from app.models.endpoints import CurveFormDep, answer_curve
from app.models.schemas import EvaluationRoc
from app.platform.sql import Session
from app.platform.tables import Comparison as ComparisonRow
from app.platform.tables import Evaluation as EvaluationRow

PATH = "/v1/evaluations"
router = APIRouter(prefix=PATH, tags=["evaluations"], route_class=GuardedRoute)


@router.post(
    "",
    status_code=202,
    response_model=Evaluation,
    summary="Judge a model on a dataset",
    responses={
        200: {"model": Valid, "description": "Only checked (`?validate=true`)."},
        201: {"model": Evaluation, "description": "Made within the wait, or it could not be."},
    },
)
@needs("train")
async def create_evaluation(
    *,
    body: NewEvaluation,
    context: ContextDep,
    caller: CallerDep,
    wait: PreferWaitDep,
    idempotent: IdempotentDep,
) -> Response:
    """Score a dataset with a label and say how good the model is on it: areas with intervals, counts, the ROC curve,
    and what is otherwise than at the model's validation. A job of kind `evaluate` does it.

    The dataset must be of the kind that the model was trained on, with its features and its label's values.
    """
    asked = body.to_request()

    def work(session: Session) -> dict[str, Any]:
        row = service.submit_evaluation(session, context.settings, caller.owner, asked)
        return _shown(row)

    poll = EVALUATIONS.refetch(caller.owner, _shown)
    check = dry_run(
        context.settings,
        caller.owner,
        lambda session: service.check_evaluation(session, caller.owner, asked),
    )
    return await create(context, idempotent, wait, PATH, work, poll, check=check)


@router.get("", summary="List evaluations")
@needs("read")
def list_evaluations(
    *, context: ContextDep, caller: CallerDep, paging: PagingDep, only: SubjectDep
) -> PageOf[Evaluation]:
    """The owner's evaluations, newest first, of one model or dataset if you like."""
    page = context.db.reading(EVALUATIONS.list_page, caller.owner, **vars(only), **vars(paging))
    return PageOf[Evaluation](
        data=[evaluation_of(row) for row in page.data], has_more=page.has_more, next=page.next
    )


@router.get("/{evaluation_id}", summary="Read an evaluation")
@needs("read")
def read_evaluation(evaluation_id: str, context: ContextDep, caller: CallerDep) -> Evaluation:
    """Its status, and once it is `ready` metrics and drift."""
    return evaluation_of(context.db.reading(EVALUATIONS.find, caller.owner, evaluation_id))


@router.get(
    "/{evaluation_id}/roc",
    response_model=EvaluationRoc,
    summary="Its ROC curve",
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
@needs("read")
def read_evaluation_roc(
    *,
    evaluation_id: str,
    context: ContextDep,
    caller: CallerDep,
    form: CurveFormDep,
) -> Response:
    """Points from (0, 0) to (1, 1), as of a model. 404 until it is ready, and for pairs and several labels."""
    row, curve, totals = context.db.reading(service.roc, caller.owner, evaluation_id)
    return answer_curve({"evaluation_id": row.id}, curve, totals, row.level, form)


@router.delete("/{evaluation_id}", status_code=204, summary="Delete an evaluation")
@needs("train")
def delete_evaluation(evaluation_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Forget it. 409 while its job is unfinished."""
    context.db.writing(EVALUATIONS.delete, caller.owner, evaluation_id)


def _shown(row: EvaluationRow) -> dict[str, Any]:
    return evaluation_of(row).model_dump(mode="json")


COMPARISONS_PATH = "/v1/comparisons"
comparisons_router = APIRouter(
    prefix=COMPARISONS_PATH, tags=["comparisons"], route_class=GuardedRoute
)


@comparisons_router.post(
    "",
    status_code=202,
    response_model=Comparison,
    summary="Compare models on a dataset",
    responses={
        200: {"model": Valid, "description": "Only checked (`?validate=true`)."},
        201: {"model": Comparison, "description": "Made within the wait, or it could not be."},
    },
)
@needs("train")
async def create_comparison(
    *,
    body: NewComparison,
    context: ContextDep,
    caller: CallerDep,
    wait: PreferWaitDep,
    idempotent: IdempotentDep,
) -> Response:
    """Score a dataset with 2 to 20 models and say whether they differ beyond chance: the area of each over every
    window, the difference of each pair with its interval, p-values adjusted for their number, and joint ones. The
    tests are paired: all models rank the same rows. A job of kind `compare` does it.

    The dataset must fit every model, as for an evaluation, and have one label.
    """
    asked = body.to_request()

    def work(session: Session) -> dict[str, Any]:
        row = service.submit_comparison(session, context.settings, caller.owner, asked)
        return _shown_comparison(row)

    poll = COMPARISONS.refetch(caller.owner, _shown_comparison)
    check = dry_run(
        context.settings,
        caller.owner,
        lambda session: service.check_comparison(session, caller.owner, asked),
    )
    return await create(context, idempotent, wait, COMPARISONS_PATH, work, poll, check=check)


@comparisons_router.get("", summary="List comparisons")
@needs("read")
def list_comparisons(
    *, context: ContextDep, caller: CallerDep, paging: PagingDep, only: SubjectDep
) -> PageOf[Comparison]:
    """The owner's comparisons, newest first, of one model or dataset if you like."""
    page = context.db.reading(COMPARISONS.list_page, caller.owner, **vars(only), **vars(paging))
    return PageOf[Comparison](
        data=[comparison_of(row) for row in page.data], has_more=page.has_more, next=page.next
    )


@comparisons_router.get("/{comparison_id}", summary="Read a comparison")
@needs("read")
def read_comparison(comparison_id: str, context: ContextDep, caller: CallerDep) -> Comparison:
    """Its status, and once it is `ready` the result."""
    return comparison_of(context.db.reading(COMPARISONS.find, caller.owner, comparison_id))


@comparisons_router.delete("/{comparison_id}", status_code=204, summary="Delete a comparison")
@needs("train")
def delete_comparison(comparison_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Forget it. 409 while its job is unfinished."""
    context.db.writing(COMPARISONS.delete, caller.owner, comparison_id)


def _shown_comparison(row: ComparisonRow) -> dict[str, Any]:
    return comparison_of(row).model_dump(mode="json")
