"""/v1/models: list, read and delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BeforeValidator
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, PagingDep, TaggedFilterDep
from app.http.responses import json_response
from app.models import calibrations, included, row_costs
from app.models import metrics as model_metrics
from app.models import service as models
from app.models.curve_endpoints import (
    BandParameter,
    CurveForm,
    CurvePart,
    MaxPoints,
    of_part,
    roc_document,
)
from app.models.included import IncludeName
from app.models.metric_schemas import metrics_of
from app.models.operating_point_endpoints import (
    CostTerms,
    CutoffQueryDep,
    MaxCutoffs,
    operating_point_of,
    operating_points_of,
)
from app.models.operating_points import cutoff_on, cutoffs_along, note_on, objective_point
from app.models.row_costs import RowsInput
from app.models.schemas import AbsentPart, Model, ModelPage, ModelParts, listed_of, model_of
from app.platform.errors import refuse_all, shown
from app.platform.sql import NEWEST_FIRST, Session
from app.platform.tables import ModelCalibration

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


async def _forget(request: Request) -> Callable[[str, str], object]:
    forget: Callable[[str, str], object] = request.app.state.models.forget
    return forget


ForgetDep = Annotated[Callable[[str, str], object], Depends(_forget)]
"""Makes the process drop a loaded model, by owner and id. The cache of models is in a higher package."""


ModelSort = Annotated[
    Literal["created_at", "-created_at", "name", "-name", "auc", "-auc"],
    Query(
        description="Sort key; a leading `-` sorts in descending order. `name`: by name, then version. `auc`: by "
        "AUC on the validation rows; models without one come last."
    ),
]


@router.get("", summary="List models")
@needs("read")
def list_models(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    only: TaggedFilterDep,
    sort: ModelSort = NEWEST_FIRST,
    name: Annotated[str | None, Query(description="Only models with exactly this name.")] = None,
    dataset_id: Annotated[
        str | None, Query(description="Only models trained on this dataset.")
    ] = None,
    aliased: Annotated[
        bool, Query(description="`true`: only models that an alias points to.")
    ] = False,
    outdated: Annotated[
        bool,
        Query(
            description="`true`: only models that an alias points to although there is a newer version of their name."
        ),
    ] = False,
) -> ModelPage:
    """Return the owner's models, in the order of `sort`, each with its aliases and its AUC on the validation rows."""
    page: Any = context.db.reading(
        models.list_page,
        caller.owner,
        name=name,
        dataset_id=dataset_id,
        aliased=aliased,
        outdated=outdated,
        only=replace(only, sort=sort),
        **vars(paging),
    )
    return ModelPage.of(page, listed_of)


@router.delete("/{ref}", status_code=204, summary="Delete a model")
@needs("train")
def delete_model(
    ref: Annotated[str, Path(description="Id of the model.")],
    context: ContextDep,
    caller: CallerDep,
    forget: ForgetDep,
) -> None:
    """Move a model to the trash. It can be restored for 30 days. Returns 409 while an alias points to the model, or
    while an unfinished job evaluates it, scores with it or recalibrates it.
    """
    context.db.writing(models.delete, caller.owner, ref)
    forget(caller.owner, ref)


_COSTS = tuple(each.name for each in fields(CostTerms))


_PARAMETERS: Mapping[IncludeName, tuple[str, ...]] = {
    "metrics": ("on",),
    "roc": ("on", "max_points", "band"),
    "operating_points": ("on", "points", "flagged", *_COSTS),
    "operating_point": ("on", "fpr", "tpr", "threshold", "flagged", "confidence", *_COSTS),
}
"""The query parameters of each part that can be read with a model."""


def _split_parts(given: Sequence[str]) -> list[str]:
    """Split a comma-separated, repeatable parameter. Raises ValueError for an unknown name."""
    names = [name for text in given for name in text.split(",")]
    for name in names:
        if name not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise ValueError(f"include must be one or more of {known}; got {shown(name)}")
    return names


async def _included(
    request: Request,
    include: Annotated[
        list[IncludeName],
        BeforeValidator(_split_parts),
        Query(
            description="Parts to include in `included`, each as its own route returns it. Repeat the parameter or "
            "give several, separated by commas. The other parameters apply to these parts.",
            examples=[["metrics", "roc"]],
        ),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> frozenset[IncludeName]:
    """Raises Invalid for a parameter that belongs to none of the requested parts."""
    used = {"include", *(name for part in include for name in _PARAMETERS[part])}
    errors = []
    for name in request.query_params:
        if name not in used:
            parts = [part for part, names in _PARAMETERS.items() if name in names]
            detail = f"{name} must come with include={' or '.join(parts)}"
            errors.append({"parameter": name, "detail": detail})
    refuse_all(errors)
    return frozenset(include)


@router.get("/{ref}", response_model=Model, summary="Read a model")
@needs("read")
async def read_model(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    include: Annotated[frozenset[IncludeName], Depends(_included)],
    on: CurvePart = "validation",
    max_points: MaxPoints = 1000,
    band: BandParameter = None,
    points: MaxCutoffs = 200,
    cutoff: CutoffQueryDep,
) -> Response:
    """Return the model and how it was trained. With `include`, the response also has its metrics, its curve and its
    operating points, on the rows of `on`. `included.absent` lists the parts that the model does not have, and why.
    """
    if not include:
        return await run_in_threadpool(
            lambda: json_response(model_of(*context.db.reading(included.get, caller.owner, ref)))
        )
    query = included.IncludeQuery(
        include,
        on,
        point={"confidence": cutoff.confidence, **cutoff.keywords()},
        cutoffs={"max_points": points, "flagged": cutoff.flagged, **cutoff.terms.keywords()},
    )
    form = CurveForm(max_points, "json", band)

    def read(
        session: Session,
    ) -> tuple[included.IncludedInput, ModelCalibration | None, RowsInput | None]:
        model = models.find(session, caller.owner, ref)
        found = included.find_input(session, model, query)
        of, asked = found.curve, cutoff.terms.asked()
        rows = None if of is None else row_costs.find_rows(session, of, asked)
        return found, calibrations.find_served(session, model), rows

    def work() -> Response:
        found, calibration, rows = context.db.reading(read)
        by_row = row_costs.load(context.fetch, rows)
        answer = _with_included(found, calibration, query, form, by_row, cutoff.terms.total_rows)
        return json_response(answer)

    return await context.compute(caller.owner, work)


def _with_included(
    found: included.IncludedInput,
    calibration: ModelCalibration | None,
    query: included.IncludeQuery,
    form: CurveForm,
    by_row: row_costs.RowCosts | None,
    total_rows: float,
) -> dict[str, Any]:
    """Compute the requested parts as JSON, without the database."""
    shown = model_of(found.model, found.aliases, found.rows, objective_point(found.objective))
    shown.included = ModelParts(
        absent=[
            AbsentPart(part=part, code=error.code, detail=error.detail)
            for part, error in found.absent.items()
        ]
    )
    if found.metrics is not None:
        shown.included.metrics = metrics_of(model_metrics.compute(found.metrics))
    if found.cutoffs is not None:
        along = cutoffs_along(found.cutoffs, by_row=by_row, **query.cutoffs)
        shown.included.operating_points = operating_points_of(along, calibration, total_rows)
    curve = found.curve
    if curve is not None and "operating_point" in query.names:
        point = cutoff_on(curve, by_row=by_row, **query.point)
        shown.included.operating_point = operating_point_of(
            curve, *point, total_rows, note_on(**query.point)
        )
    document = shown.model_dump(mode="json", by_alias=True)
    if curve is not None and "roc" in query.names:
        roc = roc_document(of_part(curve), curve.curve, curve.totals, curve.level, form)
        document["included"]["roc"] = roc
    return document
