"""/v1/models/{ref}/operating-point(s): thresholds and their rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.http.responses import json_response
from app.models import calibrations, curves, operating_points
from app.models import service as models
from app.models.curve_endpoints import CurvePart
from app.models.curve_schemas import Part
from app.models.operating_point_schemas import (
    OperatingPoint,
    OperatingPoints,
    cutoffs_of,
    guarantee_of,
    point_of,
)
from app.platform.errors import Invalid
from app.platform.sql import Session
from app.platform.tables import Model as ModelRow
from app.platform.tables import ModelCalibration
from core import metrics

if TYPE_CHECKING:
    from core.metrics import Costs, Guarantee
    from core.metrics import OperatingPoint as CurvePoint

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@dataclass(frozen=True)
class CostTerms:
    """The costs of both errors, and the fraction of positives among future rows."""

    false_positive: float | None
    false_negative: float | None
    prevalence: float | None

    def costs(self) -> Costs | None:
        """Return both costs, or None; raises Invalid if only one of them is given."""
        return _costs(self.false_positive, self.false_negative)


async def _terms(
    cost_false_positive: Annotated[
        float | None,
        Query(
            ge=0,
            allow_inf_nan=False,
            description="Cost of a false positive: a negative row that is flagged.",
        ),
    ] = None,
    cost_false_negative: Annotated[
        float | None,
        Query(
            ge=0,
            allow_inf_nan=False,
            description="Cost of a false negative: a positive row that is not flagged.",
        ),
    ] = None,
    prevalence: Annotated[
        float | None,
        Query(
            gt=0,
            lt=1,
            description="Fraction of positives among future rows. Default: that of the data.",
        ),
    ] = None,
) -> CostTerms:
    return CostTerms(cost_false_positive, cost_false_negative, prevalence)


CostTermsDep = Annotated[CostTerms, Depends(_terms)]


@dataclass(frozen=True)
class CutoffQuery:
    """The cut that is asked for: at a rate, a threshold or a share of the rows, or of least cost; and how sure its rate
    must be.
    """

    fpr: float | None
    tpr: float | None
    threshold: float | None
    flagged: float | None
    confidence: float | None
    terms: CostTerms

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `core.metrics.operating_point`."""
        return {
            "fpr": self.fpr,
            "tpr": self.tpr,
            "threshold": self.threshold,
            "flagged": self.flagged,
            "costs": self.terms.costs(),
            "prevalence": self.terms.prevalence,
        }


Flagged = Annotated[
    float | None,
    Query(
        ge=0,
        le=1,
        description="Maximum fraction of the rows to flag: returns the lowest threshold that flags no more. With "
        "costs, it returns the cheapest such threshold. All thresholds of the curve are considered.",
    ),
]


async def _cutoff_query(
    terms: CostTermsDep,
    fpr: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Maximum FPR: returns the threshold with the highest TPR at no more than this FPR.",
        ),
    ] = None,
    tpr: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Minimum TPR: returns the threshold with the lowest FPR at no less than this TPR.",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        Query(allow_inf_nan=False, description="Flag every row with a score of at least this."),
    ] = None,
    flagged: Flagged = None,
    confidence: Annotated[
        float | None,
        Query(
            gt=0,
            lt=1,
            description="Guarantee `fpr` or `tpr` for future rows with this confidence, instead of reading it off "
            "these rows. The threshold is then more conservative. Returns an error that says how many "
            "rows are needed if there are too few.",
        ),
    ] = None,
) -> CutoffQuery:
    return CutoffQuery(fpr, tpr, threshold, flagged, confidence, terms)


CutoffQueryDep = Annotated[CutoffQuery, Depends(_cutoff_query)]


@router.get("/{ref}/operating-point", summary="Read an operating point")
@needs("read")
async def read_operating_point(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    asked: CutoffQueryDep,
    on: CurvePart = "validation",
) -> OperatingPoint:
    """Return a threshold with its rates, precision, lift and cost, with confidence intervals. Pass one of `fpr`, `tpr`,
    `threshold` and `flagged`, or only both costs for the threshold with the lowest cost. With costs, the response has
    the mean cost per row. With `confidence` the rate is guaranteed: see `guarantee`.
    """

    def work() -> OperatingPoint:
        of = context.db.reading(curves.roc, caller.owner, ref, on)
        found = operating_points.cutoff_on(of, confidence=asked.confidence, **asked.keywords())
        return operating_point_of(of.model, on, *found)

    return await context.compute(caller.owner, work)


def operating_point_of(
    model: ModelRow, on: Part, point: CurvePoint, guarantee: Guarantee | None
) -> OperatingPoint:
    return OperatingPoint(
        model_id=model.id,
        on=on,
        approximate=models.is_approximate(model, on),
        guarantee=guarantee_of(guarantee),
        **dict(point_of(point)),
    )


MaxCutoffs = Annotated[int, Query(ge=10, le=1000, description="Maximum number of thresholds.")]


@router.get(
    "/{ref}/operating-points",
    response_model=OperatingPoints,
    summary="List operating points",
)
@needs("read")
async def read_operating_points(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    terms: CostTermsDep,
    on: CurvePart = "validation",
    points: MaxCutoffs = 200,
    flagged: Flagged = None,
) -> Response:
    """Return many thresholds at once, each with the same metrics as `…/operating-point`, for example for a slider. Half
    of them are evenly spaced along the curve. The other half are evenly spaced in log FPR, for the top of the list.
    """

    def read(
        session: Session,
    ) -> tuple[Callable[[], operating_points.CutoffsAlong], ModelCalibration | None]:
        measured = curves.roc(session, caller.owner, ref, on)
        compute = operating_points.prepare_cutoffs(
            session,
            measured,
            max_points=points,
            costs=terms.costs(),
            prevalence=terms.prevalence,
            flagged=flagged,
        )
        return compute, calibrations.find_served(session, measured.model)

    def work() -> Response:
        compute, calibration = context.db.reading(read)
        return json_response(operating_points_of(compute(), calibration, on))

    return await context.compute(caller.owner, work)


def operating_points_of(
    found: operating_points.CutoffsAlong, calibration: ModelCalibration | None, on: Part
) -> OperatingPoints:
    thresholds = [point.threshold for point in found.points]
    return cutoffs_of(found, on, calibrations.probabilities_at(calibration, thresholds))


def _costs(false_positive: float | None, false_negative: float | None) -> metrics.Costs | None:
    if false_positive is None and false_negative is None:
        return None
    if false_positive is None or false_negative is None:
        absent = "cost_false_positive" if false_positive is None else "cost_false_negative"
        detail = f"{absent} is missing: the two costs must be given together"
        raise Invalid(detail, errors=[{"parameter": absent, "detail": detail}])
    return metrics.Costs(false_positive, false_negative)
