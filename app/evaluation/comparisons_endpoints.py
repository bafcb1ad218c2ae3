"""/v1/comparisons: several models on one dataset."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.evaluation import comparisons
from app.evaluation import service as judgements
from app.evaluation.comparisons_schemas import Comparison, NewComparison, comparison_of
from app.http.dependencies import CallerDep, ContextDep, JudgedDep, PagingDep, PatienceDep
from app.http.schemas import PageOf, Valid
from app.jobs.acceptance import AskingDep, create, look_only
from app.platform.tables import Comparison as ComparisonRow

PATH = "/v1/comparisons"
router = APIRouter(prefix=PATH, tags=["comparisons"], route_class=GuardedRoute)


@router.post(
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
    patience: PatienceDep,
    asking: AskingDep,
) -> Response:
    """Score a dataset with 2 to 20 models and say whether they differ beyond chance: the area of each over every
    window, the difference of each pair with its interval, p-values adjusted for their number, and joint ones. The
    tests are paired: all models rank the same rows. A job of kind `compare` does it.

    The dataset must fit every model, as for an evaluation, and have one label.
    """
    asked = body.to_request()

    def work(session: Session) -> dict[str, Any]:
        row = comparisons.submit(session, context.settings, caller.owner, asked)
        return _shown(row)

    def look(comparison_id: str) -> tuple[dict[str, Any], bool]:
        row = judgements.get(context.db, ComparisonRow, caller.owner, comparison_id)
        return _shown(row), judgements.status_of(row) != judgements.PROCESSING

    check = look_only(
        context, caller.owner, lambda session: comparisons.check(session, caller.owner, asked)
    )
    return await create(context, asking, patience, PATH, work, look, check=check)


@router.get("", summary="List comparisons")
@needs("read")
def list_comparisons(
    *, context: ContextDep, caller: CallerDep, paging: PagingDep, judged: JudgedDep
) -> PageOf[Comparison]:
    """The owner's comparisons, newest first, of one model or dataset if you like."""
    page = judgements.list_page(
        context.db, ComparisonRow, caller.owner, **vars(judged), **vars(paging)
    )
    return PageOf[Comparison](
        data=[comparison_of(row) for row in page.data], has_more=page.has_more, next=page.next
    )


@router.get("/{comparison_id}", summary="Read a comparison")
@needs("read")
def read_comparison(comparison_id: str, context: ContextDep, caller: CallerDep) -> Comparison:
    """Its status, and once it is `ready` the result."""
    return comparison_of(judgements.get(context.db, ComparisonRow, caller.owner, comparison_id))


@router.delete("/{comparison_id}", status_code=204, summary="Delete a comparison")
@needs("train")
def delete_comparison(comparison_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Forget it. 409 while its job is unfinished."""
    judgements.delete(context.db, ComparisonRow, caller.owner, comparison_id)


def _shown(row: ComparisonRow) -> dict[str, Any]:
    return comparison_of(row).model_dump(mode="json")
