"""/v1/models/{ref}/…: what a model has learnt."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.api.dependencies import CallerDep, ContextDep
from app.api.routes.scores import LabelQuery
from app.api.schemas.interpretation import Importance, PartialDependence, dependence_of
from app.api.schemas.models import Part
from app.api.security import GuardedRoute, needs
from app.services import dependence, importances, scoring

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{ref}/importance", summary="Which features matter?")
@needs("read")
def read_importance(
    *, ref: str, context: ContextDep, caller: CallerDep, label: LabelQuery = None
) -> Importance:
    """Measured when the model was trained; `method` says in what sense. 404 for a model that has none."""
    return Importance.model_validate(importances.read(context.db, caller.owner, ref, label))


@router.get("/{ref}/partial-dependence", summary="How do scores depend on a feature?")
@needs("read")
def read_partial_dependence(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    feature: Annotated[
        list[str],
        Query(description="A feature; given twice, two of them.", examples=[["age"]]),
    ],
    on: Annotated[
        Part, Query(description="Rows to average over: a few of either part were kept.")
    ] = "train",
    points: Annotated[
        int, Query(ge=2, le=100, description="Most values of a numeric feature.")
    ] = 20,
    label: LabelQuery = None,
) -> PartialDependence:
    """Mean scores with one or two features set to values on a grid, over at most 1,000 rows that were kept at
    training. 409 once their dataset is deleted: the rows go with it. 429 while two others are being averaged.
    """
    with context.turn():
        found = dependence.read(
            context.db,
            context.models,
            caller.owner,
            ref,
            feature,
            part=on,
            label=label,
            n_points=points,
        )
    return dependence_of(found, on, label)


@router.get("/{ref}/structure", summary="What is it made of?")
@needs("read")
def read_structure(ref: str, context: ContextDep, caller: CallerDep) -> dict[str, Any]:
    """The ranker in full, readable: for boosted stumps each feature's step function, and the rules by their weight."""
    served = context.models.find(caller.owner, ref)
    return {"model_id": served.model_id, **scoring.structure(served)}
