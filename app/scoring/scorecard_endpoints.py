"""Routes for scorecards: bins, points of rows, cutoffs in points, and the effect of rounding."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Query
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs, require_json
from app.http.dependencies import CallerDep, ContextDep
from app.models import service as models
from app.models.curve_schemas import DataPart
from app.models.reason_code_schemas import ReasonCodesRequest
from app.platform.documents import HeldOutBins
from app.platform.sql import Session
from app.scoring import bins, dependence, json_rows, letters, points, turns
from app.scoring import scorecard as scorecards
from app.scoring.bins import ModelBins
from app.scoring.dependence import DependenceInput
from app.scoring.dependencies import ModelsDep, is_lenient
from app.scoring.endpoints import BesideDep
from app.scoring.json_rows import IdAndIgnored
from app.scoring.letters import LettersAnswer
from app.scoring.points import PointsAnswer, PointsCutoff, RoundingEffect
from app.scoring.reasons import MAX_REASONS
from app.scoring.schemas import ROWS_BODY, Cell
from app.scoring.scorecard import ScaleDep
from app.scoring.table_rows import bounds_of

MAX_PREVIEWED = 100
"""Rows of a preview of letters."""

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)
scoring_router = APIRouter(prefix="/v1/models", tags=["scoring"], route_class=GuardedRoute)
"""Routes that take rows. An operation has one tag: generators write an operation with two tags twice."""

ReasonsInLetter = Annotated[
    int, Query(alias="reasons", ge=1, le=MAX_REASONS, description="Maximum number of reasons.")
]
LetterReference = Annotated[
    Literal["negative", "average"],
    Query(
        description="Row that the reasons compare with: the average negative or the average training row."
    ),
]


class LettersPreviewRequest(ReasonCodesRequest):
    """Reason codes that are not stored, and rows."""

    rows: Annotated[list[dict[str, Cell]], Field(min_length=1, max_length=MAX_PREVIEWED)]
    """The rows. Each maps feature names to values."""


@router.get("/{ref}/bins", summary="Read the bins of a scorecard")
@needs("read")
async def read_bins(
    *,
    ref: str,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    level: Annotated[
        float, Query(ge=0.5, le=0.9999, description="Confidence level of the intervals.")
    ] = 0.95,
    scale: ScaleDep,
) -> ModelBins:
    """Return the bins of each feature with their rows, event rates, weight of evidence (WOE) and points, and the
    information value (IV) of the feature. All are given on the training rows and on held-out rows. `refit` has the
    algorithm that trains a model with the same bins: edit it, and create a training job. Only for models of the
    algorithm `scorecard`; returns 404 `no_scorecard` for others.
    """

    def work() -> ModelBins:
        model, held_out = context.db.reading(bins.find_input, caller.owner, ref)
        served = cache.serve(model)
        return bins.make_bins(served, held_out, scale.of(served), level)

    return await context.compute(caller.owner, work)


@router.get("/{ref}/scorecard/cutoff", summary="Convert a cutoff in points")
@needs("read")
async def read_points_cutoff(
    *,
    ref: str,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    points_: Annotated[
        float | None,
        Query(
            alias="points",
            ge=-1e12,
            le=1e12,
            description="Cutoff in points: rows with at most these points are flagged. Give exactly one of `points`, "
            "`threshold` and `probability`.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        Query(ge=-1e9, le=1e9, description="Score from which on rows are flagged."),
    ] = None,
    probability: Annotated[
        float | None,
        Query(
            gt=0,
            lt=1,
            description="Probability of a positive from which on rows are flagged, by the odds of the scorecard.",
        ),
    ] = None,
    scale: ScaleDep,
) -> PointsCutoff:
    """Return a cutoff in points as a threshold of the score and as a probability, or the reverse. The conversion is
    exact: the same rows are flagged. Returns the same errors as the scorecard.
    """

    def work() -> PointsCutoff:
        model = context.db.reading(models.find, caller.owner, ref)
        scorecards.check_log_odds(model.algorithm)
        served = cache.serve(model)
        return points.find_cutoff(
            served,
            scale.of(served),
            points=points_,
            threshold=threshold,
            probability=probability,
        )

    return await context.compute(caller.owner, work)


@router.get("/{ref}/scorecard/rounding", summary="Read the effect of rounding points")
@needs("read")
async def read_rounding(
    *,
    ref: str,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    on: Annotated[
        DataPart,
        Query(
            description="Rows to compare: those kept from the validation part or from the training part."
        ),
    ] = "train",
    scale: ScaleDep,
) -> RoundingEffect:
    """Return how rounding the points of each value to whole numbers changes the points and the order of up to 1,000
    rows kept from training, and the AUC. Returns the same errors as the scorecard, 409 if the rows were deleted, and
    422 `incomplete_scorecard` if the scorecard does not show the whole score.
    """

    def find(session: Session) -> tuple[DependenceInput, HeldOutBins | None]:
        model = models.find(session, caller.owner, ref)
        scorecards.check_log_odds(model.algorithm)
        return dependence.find_rows(session, model, on), model.held_out_bins

    def work() -> RoundingEffect:
        input, held_out = context.db.reading(find)
        X, _ = dependence.read_rows(input, context.blobs)
        served = cache.serve(input.model)
        return points.measure_rounding(served, X, scale.of(served), held_out)

    return await context.compute(caller.owner, work)


@scoring_router.post(
    "/{ref}/points",
    response_model=PointsAnswer,
    summary="Compute the points of rows",
    openapi_extra=ROWS_BODY,
)
@needs("score")
async def score_points(
    *,
    ref: str,
    request: Request,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    fields: BesideDep,
    scale: ScaleDep,
) -> Response:
    """Return the points of up to 1,000 rows by the table of the scorecard, in total and by feature. Their sum is the
    score on the scale of the points. Returns the same errors as the scorecard, and 422 `incomplete_scorecard` if it
    does not show the whole score.
    """
    require_json(request)
    body, lenient = await request.body(), is_lenient(request)
    beside = IdAndIgnored.of(fields)
    served = await turns.find_model(cache, caller.owner, ref)

    def begin() -> json_rows.JsonRows:
        model = context.db.reading(models.find, caller.owner, served.model_id)
        scorecards.check_log_odds(model.algorithm)
        bounds = bounds_of(context.settings, len(body))
        return served.read_features(body, beside, bounds, lenient=lenient)

    rows = await run_in_threadpool(begin)

    def work() -> bytes:
        answer = points.points_of_rows(served, rows, scale.of(served))
        return orjson.dumps(answer.model_dump(mode="json"))

    content = await turns.run(context, caller.owner, served.cost.of(rows.X.size), work)
    headers = {"Preference-Applied": "handling=lenient"} if lenient else None
    return Response(content, media_type="application/json", headers=headers)


@scoring_router.post(
    "/{ref}/letters",
    response_model=LettersAnswer,
    summary="Write the letters of rows",
    openapi_extra=ROWS_BODY,
)
@needs("score")
async def write_letters(
    *,
    ref: str,
    request: Request,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    fields: BesideDep,
    reasons_: ReasonsInLetter = 4,
    reference: LetterReference = "negative",
    scale: ScaleDep,
) -> Response:
    """Return an adverse-action letter for each of up to 1,000 rows: its largest reasons for a high score, each as the
    paragraph that the reason codes define (`letter`). Reasons and their errors are as in `…/score`, and points as in
    `…/points`. With an alias that has a cutoff, returns 422 `row_not_flagged` for rows that it does not flag.
    """
    require_json(request)
    body, lenient = await request.body(), is_lenient(request)
    beside = IdAndIgnored.of(fields)
    served = await turns.find_model(cache, caller.owner, ref)

    def work() -> bytes:
        bounds = bounds_of(context.settings, len(body))
        rows = served.read_features(body, beside, bounds, lenient=lenient)
        writer = letters.prepare(
            context.db.reading, caller.owner, served, reasons_, reference, scale.of(served)
        )
        answer = writer.write(rows)
        return orjson.dumps(answer.model_dump(mode="json"))

    content = await turns.run(context, caller.owner, math.inf, work)
    headers = {"Preference-Applied": "handling=lenient"} if lenient else None
    return Response(content, media_type="application/json", headers=headers)


@scoring_router.post(
    "/{ref}/letters/preview",
    summary="Preview the letters of rows",
)
@needs("score")
async def preview_letters(
    *,
    ref: str,
    body: LettersPreviewRequest,
    context: ContextDep,
    cache: ModelsDep,
    caller: CallerDep,
    reasons_: ReasonsInLetter = 4,
    reference: LetterReference = "negative",
    scale: ScaleDep,
) -> LettersAnswer:
    """Return the letters of rows as `…/letters` would if the name had these reason codes. Nothing is stored. Returns
    the same errors as `…/letters` and as replacing the reason codes. Features of other versions are unknown.
    """
    served = await turns.find_model(cache, caller.owner, ref)
    entries = [entry.as_stored() for entry in body.entries]

    def work() -> LettersAnswer:
        writer = letters.prepare(
            context.db.reading,
            caller.owner,
            served,
            reasons_,
            reference,
            scale.of(served),
            given=entries,
        )
        rows = json_rows.of_objects(
            served.features, body.rows, IdAndIgnored(), MAX_PREVIEWED, lenient=False
        )
        return writer.write(rows)

    return await turns.run(context, caller.owner, math.inf, work)
