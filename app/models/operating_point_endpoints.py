"""/v1/models/{ref}/operating-point(s): thresholds and their rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, from_query
from app.http.responses import json_response
from app.models import calibrations, curves, operating_points, row_costs
from app.models.curve_endpoints import CurvePart, of_part
from app.models.curves import PartCurve
from app.models.operating_point_schemas import OperatingPoint, OperatingPoints
from app.models.row_costs import CostsAsked
from app.platform.errors import Invalid, shown
from app.platform.sql import Session
from app.platform.tables import ModelCalibration
from core import metrics

if TYPE_CHECKING:
    from core.metrics import Costs, Guarantee
    from core.metrics import OperatingPoint as CurvePoint

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


TOTAL_ROWS = 1000.0
"""Rows of the total costs, unless the caller names a number."""


@dataclass(frozen=True)
class CostTerms:
    """The costs of both errors, and the fraction of positives among future rows."""

    cost_false_positive: Annotated[
        float | None,
        Query(
            ge=0,
            allow_inf_nan=False,
            description="Cost of a false positive: a negative row that is flagged.",
        ),
    ] = None
    cost_false_negative: Annotated[
        float | None,
        Query(
            ge=0,
            allow_inf_nan=False,
            description="Cost of a false negative: a positive row that is not flagged.",
        ),
    ] = None
    prevalence: Annotated[
        float | None,
        Query(
            gt=0,
            lt=1,
            description="Fraction of positives among future rows. Default: that of the data.",
        ),
    ] = None

    amount: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Numeric column of the dataset of the validation rows, such as the loan. A false negative then "
            "costs `cost_false_negative` times the row's amount.",
        ),
    ] = None
    rule: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Column of that dataset with the rule in use today, to compare costs with: a decision "
            "(booleans, 0 and 1, or categories), or a score (other numbers); as many rows are flagged by the score "
            "as by the model.",
        ),
    ] = None
    rule_flags: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="What `rule` flags: a value of the column, or `high` or `low` for a score. Default: `true`, "
            "`1` or `high`. Required for categories.",
        ),
    ] = None
    total_rows: Annotated[
        float,
        Query(
            gt=0, le=1e12, description="Number of rows of `cost.totals`, such as the rows of a day."
        ),
    ] = TOTAL_ROWS

    def costs(self) -> Costs | None:
        """None if neither is given. Raises Invalid for only one of them."""
        false_positive, false_negative = self.cost_false_positive, self.cost_false_negative
        if false_positive is not None and false_negative is not None:
            return metrics.Costs(false_positive, false_negative)
        if false_positive is None and false_negative is None:
            return None
        absent = "cost_false_positive" if false_positive is None else "cost_false_negative"
        detail = f"{absent} is missing: the two costs must be given together"
        raise Invalid(detail, errors=[{"parameter": absent, "detail": detail}])

    def keywords(self) -> dict[str, Any]:
        return {"costs": self.costs(), "prevalence": self.prevalence}

    def asked(self) -> CostsAsked:
        return CostsAsked(self.costs(), self.prevalence, self.amount, self.rule, self.rule_flags)

    def refuse_columns(self) -> None:
        """Raise Invalid for a parameter that needs the validation rows of a model."""
        for name in ("amount", "rule", "rule_flags"):
            if (given := getattr(self, name)) is not None:
                detail = f"{name} applies to the operating points of a model, got {shown(given)}"
                raise Invalid(detail, errors=[{"parameter": name, "detail": detail}])


CostTermsDep = Annotated[CostTerms, from_query(CostTerms)]


Flagged = Annotated[
    float | None,
    Query(
        ge=0,
        le=1,
        description="Maximum fraction of the rows to flag: returns the lowest threshold that flags no more. With "
        "costs, it returns the threshold of lowest cost if that flags fewer. All thresholds of the curve are "
        "considered.",
    ),
]


@dataclass(frozen=True)
class CutoffQuery:
    """The requested cutoff: at a rate, a threshold or a fraction of the rows, or of lowest cost; and the confidence of
    a guarantee.
    """

    terms: CostTermsDep
    fpr: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Maximum FPR: returns the threshold with the highest TPR at no more than this FPR.",
        ),
    ] = None
    tpr: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="Minimum TPR: returns the threshold with the lowest FPR at no less than this TPR.",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        Query(allow_inf_nan=False, description="Flag every row with a score of at least this."),
    ] = None
    flagged: Flagged = None
    confidence: Annotated[
        float | None,
        Query(
            gt=0,
            lt=1,
            description="Guarantee `fpr` or `tpr` for future rows with this confidence, instead of reading it off "
            "these rows. The threshold is then more conservative. Returns an error that says how many "
            "rows are needed if there are too few.",
        ),
    ] = None

    def keywords(self) -> dict[str, Any]:
        return {
            "fpr": self.fpr,
            "tpr": self.tpr,
            "threshold": self.threshold,
            "flagged": self.flagged,
            **self.terms.keywords(),
        }


CutoffQueryDep = Annotated[CutoffQuery, from_query(CutoffQuery)]


@router.get("/{ref}/operating-point", summary="Read an operating point")
@needs("read")
async def read_operating_point(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    query: CutoffQueryDep,
    on: CurvePart = "validation",
) -> OperatingPoint:
    """Return a threshold with its rates, precision, lift and cost, with confidence intervals. Pass one of `fpr`, `tpr`,
    `threshold` and `flagged`, or only both costs for the threshold with the lowest cost. With costs, the response has
    the mean cost per row. With `confidence` the rate is guaranteed: see `guarantee`.
    """

    def read(session: Session) -> tuple[PartCurve, row_costs.RowsInput | None]:
        of = curves.roc(session, caller.owner, ref, on)
        return of, row_costs.find_rows(session, of, query.terms.asked())

    def work() -> OperatingPoint:
        of, rows = context.db.reading(read)
        found = operating_points.cutoff_on(
            of,
            confidence=query.confidence,
            by_row=row_costs.load(context.fetch, rows),
            **query.keywords(),
        )
        note = operating_points.note_on(query.confidence, **query.keywords())
        return operating_point_of(of, *found, query.terms.total_rows, note)

    return await context.compute(caller.owner, work)


def operating_point_of(
    measured: PartCurve,
    point: CurvePoint,
    guarantee: Guarantee | None,
    total_rows: float,
    note: str | None = None,
) -> OperatingPoint:
    """The response has the guarantee, a caution, and the costs of so many rows."""
    found = OperatingPoint.model_validate(
        {**of_part(measured), **vars(point), "guarantee": guarantee, "note": note}
    )
    if found.cost is not None:
        found.cost.add_totals(total_rows)
    return found


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
    ) -> tuple[operating_points.CutoffsInput, ModelCalibration | None, row_costs.RowsInput | None]:
        measured = curves.roc(session, caller.owner, ref, on)
        found = operating_points.find_cutoffs_input(session, measured, points)
        rows = row_costs.find_rows(session, measured, terms.asked())
        return found, calibrations.find_served(session, measured.model), rows

    def work() -> Response:
        found, calibration, rows = context.db.reading(read)
        along = operating_points.cutoffs_along(
            found,
            max_points=points,
            flagged=flagged,
            by_row=row_costs.load(context.fetch, rows),
            **terms.keywords(),
        )
        return json_response(operating_points_of(along, calibration, terms.total_rows))

    return await context.compute(caller.owner, work)


def operating_points_of(
    along: operating_points.CutoffsAlong,
    calibration: ModelCalibration | None,
    total_rows: float,
) -> OperatingPoints:
    """The response has calibrated probabilities, and the costs of so many rows."""
    of = along.of
    thresholds = [point.threshold for point in along.points]
    found = OperatingPoints.model_validate(
        {
            **vars(along),
            **of_part(of),
            "level": of.level,
            "exact": len(along.points) == len(of.curve),
            "total_points": len(of.curve),
            "probabilities": calibrations.probabilities_at(calibration, thresholds),
        }
    )
    for point in found.points:
        if point.cost is not None:
            point.cost.add_totals(total_rows)
    return found
