"""Routes for interpreting a model: …/importance, …/partial-dependence, …/structure and others."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.http.responses import json_response
from app.models import margins
from app.models import service as models
from app.models.curve_schemas import DataPart
from app.models.margin_schemas import Margins
from app.scoring import dependence
from app.scoring import scorecard as scorecards
from app.scoring import service as scoring
from app.scoring.dependence import VariableDependence
from app.scoring.dependencies import LabelQuery, ModelsDep
from app.scoring.schemas import (
    Importance,
    PartialDependence,
    dependence_of,
    importance_of,
)
from app.scoring.scorecard import ScaleDep, Scorecard
from app.training import interpretation
from core.bounds import MIN_THETA

# A picture contains names that users chose. They are escaped, and the policy forbids scripts and requests.
PICTURE_HEADERS = {"Content-Security-Policy": "default-src 'none'; sandbox"}

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{ref}/importance", summary="Read feature importance")
@needs("read")
def read_importance(
    *, ref: str, context: ContextDep, caller: CallerDep, label: LabelQuery = None
) -> Importance:
    """Return the importance of each feature, measured by the training or by the model's `importance_job_id`. `method`
    says how. Returns 404 if the model has no importances, or none yet.
    """
    return importance_of(
        context.db.reading(interpretation.read_importance, caller.owner, ref, label)
    )


@router.get("/{ref}/partial-dependence", summary="Read partial dependence")
@needs("read")
async def read_partial_dependence(
    *,
    ref: str,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    feature: Annotated[
        list[str],
        Query(description="Name of a feature. Pass it twice for two features.", examples=[["age"]]),
    ],
    on: Annotated[
        DataPart | None,
        Query(
            description="Rows to average over: those kept from the validation part or from the training part. "
            "Default: `train`, or `validation` for an imported model."
        ),
    ] = None,
    points: Annotated[
        int, Query(ge=2, le=100, description="Maximum number of grid values of a numeric feature.")
    ] = 20,
    label: LabelQuery = None,
) -> PartialDependence:
    """Return mean scores when one or two features are set to each value of a grid. The mean is over up to 1,000 rows
    kept from training. Returns 409 if their dataset was permanently deleted, because the rows are deleted with it, and
    429 if other computations take too long.
    """

    def work() -> PartialDependence:
        input = context.db.reading(dependence.find_input, caller.owner, ref, feature, part=on)
        served = cache.serve(input.model)
        found = dependence.average(input, context.blobs, served, label=label, n_points=points)
        return dependence_of(found, input.part, label)

    return await context.compute(caller.owner, work)


@router.get("/{ref}/variable-dependence", summary="Read variable dependence")
@needs("read")
async def read_variable_dependence(
    *,
    ref: str,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    feature: Annotated[
        list[str],
        Query(
            description="Name of a feature. Pass it 1 to 10 times.", examples=[["age", "income"]]
        ),
    ],
    on: Annotated[
        DataPart | None,
        Query(
            description="Rows to use: those kept from the validation part or from the training part. Default: "
            "`train`, or `validation` for an imported model."
        ),
    ] = None,
) -> VariableDependence:
    """Return the fraction of the scores' variance that each feature explains separately, and the fraction that two
    features explain beyond their sum. It uses 100 of the rows kept from training. Returns the same errors as partial
    dependence, and 422 for a model with several labels.
    """

    def work() -> VariableDependence:
        input = context.db.reading(
            dependence.find_input,
            caller.owner,
            ref,
            feature,
            part=on,
            max_features=dependence.MAX_VARIABLES,
        )
        return dependence.decompose(input, context.blobs, cache.serve(input.model))

    return await context.compute(caller.owner, work)


@router.get(
    "/{ref}/structure",
    response_model=dict[str, Any],
    summary="Read the structure",
    responses={
        200: {
            "content": {
                "text/plain": {"schema": {"type": "string"}},
                "image/svg+xml": {"schema": {"type": "string"}},
            }
        }
    },
)
@needs("read")
async def read_structure(
    *,
    ref: str,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    format: Annotated[
        Literal["json", "text", "svg"],
        Query(
            description="Format of the response. `text` and `svg` are only for a single ranking tree."
        ),
    ] = "json",
) -> Response:
    """Return the whole ranker in readable form. For boosted stumps: each feature's step function, and the rules by
    descending weight. For a ranking tree: its nodes; as `text` an indented tree, as `svg` a picture with the ROC curve
    of the training rows.
    """

    def work() -> Response:
        model = context.db.reading(models.find, caller.owner, ref)
        served = cache.serve(model)
        if format == "text":
            return PlainTextResponse(scoring.text(served))
        if format == "svg":
            drawn = scoring.picture(served, f"{model.name}:{model.version}")
            return Response(drawn, media_type="image/svg+xml", headers=PICTURE_HEADERS)
        return json_response({"model_id": served.model_id, **scoring.structure(served)})

    return await context.compute(caller.owner, work)


@router.get("/{ref}/scorecard", summary="Read the scorecard")
@needs("read")
async def read_scorecard(
    *,
    ref: str,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    scale: ScaleDep,
) -> Scorecard:
    """Return what each value of each feature adds to the log odds, as an odds ratio and in points. A row's points are
    `base_points` plus the points of its values; more points mean that it is less likely to be positive. Only for models
    of the algorithms `logistic`, `scorecard` and `additive`, whose scores are sums of log odds; returns 404
    `no_scorecard` for others.
    """

    def work() -> Scorecard:
        model = context.db.reading(models.find, caller.owner, ref)
        scorecards.check_log_odds(model.algorithm)
        served = cache.serve(model)
        structure = scoring.structure(served)
        return scorecards.make_scorecard(model.id, structure, scale.of(served), served.calibration)

    return await context.compute(caller.owner, work)


@router.get(
    "/{ref}/margins",
    response_model=Margins,
    summary="Read margins and bounds on misranked pairs",
)
@needs("read")
async def read_margins(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    cache: ModelsDep,
    theta: Annotated[
        float,
        Query(
            ge=MIN_THETA,
            le=1,
            description="Pairs with a margin of at most this count as misranked.",
        ),
    ] = 0.1,
    delta: Annotated[
        float, Query(gt=0, lt=1, description="Probability that a bound fails.")
    ] = 0.05,
    max_rounds: Annotated[
        int, Query(ge=0, le=100_000, description="Maximum number of rounds, from the first.")
    ] = 100,
) -> Response:
    """Return the margins of the training pairs, and the bounds of Rudin & Schapire (2009) on future pairs. `applies`
    and `vacuous` say whether a bound is meaningful. Returns 404 for a ranker that does not combine weak rankers with
    values 0 and 1.
    """

    def work() -> Response:
        found = context.db.reading(
            margins.read_margins, caller.owner, ref, theta=theta, delta=delta
        )
        losses = margins.losses_of(cache.serve(found.model).ranker, found.row)
        return json_response(
            margins.describe(found, losses, theta=theta, delta=delta, max_rounds=max_rounds)
        )

    return await context.compute(caller.owner, work)
