"""Routes for /v1/models/{ref}/metrics, …/metric-estimates and …/gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, from_query
from app.models import curves
from app.models import metrics as model_metrics
from app.models import service as models
from app.models.curve_endpoints import CurvePart, of_part
from app.models.metric_schemas import (
    AnyMetrics,
    Gain,
    ModelGains,
    ModelMetricEstimates,
    metric_estimates_of,
    metrics_of,
)
from app.platform.sql import Session
from core.metrics.window import MIN_WIDTH

if TYPE_CHECKING:
    from core.metrics import ClassTotals, RocCurve

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{ref}/metrics", summary="Read the metrics")
@needs("read")
async def read_metrics(
    *, ref: str, context: ContextDep, caller: CallerDep, on: CurvePart = "validation"
) -> AnyMetrics:
    """Return the AUC, partial AUCs and the TPR at several FPRs, with confidence intervals."""

    def read(session: Session) -> model_metrics.MetricsInput:
        return model_metrics.find_input(session, models.find(session, caller.owner, ref), on)

    def work() -> AnyMetrics:
        return metrics_of(model_metrics.compute(context.db.reading(read)))

    return await context.compute(caller.owner, work)


MetricsQuery = Annotated[
    list[str],
    Query(
        alias="metric",
        min_length=1,
        max_length=model_metrics.MAX_METRICS,
        description="Metric to compute; repeat it for several. `average_precision`; `precision@100` and "
        "`precision@1%`, at the top of the list, and `lift@15%`; `precision_at_recall:0.8`; `ndcg` "
        "and `ndcg@10`; `auc`; `gini`; `pauc:0,0.05`, over a window of FPR, and `empirical:0,0.05`, "
        "the fraction of pairs strictly in order in the window; `two_way:0.1,0.8`, the area with an "
        "FPR of at most 0.1 and a TPR of at least 0.8.",
    ),
]


DefinitionQuery = Annotated[
    Literal["interpolated", "empirical"],
    Query(
        description="Definition of `auc` and `pauc`. `interpolated`: a tie counts half. `empirical`: the fraction "
        "of pairs strictly in order, over the positives and the negatives of certain ranks "
        "(Narasimhan & Agarwal 2016, eq. 2)."
    ),
]


FixedPrevalenceQuery = Annotated[
    bool,
    Query(
        description="`true`: assume that the population has exactly the fraction of positives of these rows. By "
        "default, the intervals allow for its sampling variation."
    ),
]


@router.get("/{ref}/metric-estimates", summary="Estimate metrics")
@needs("read")
async def read_metric_estimates(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    names: MetricsQuery,
    on: CurvePart = "validation",
    definition: DefinitionQuery = "interpolated",
    fixed_prevalence: FixedPrevalenceQuery = False,
) -> ModelMetricEstimates:
    """Return average precision, precision at k, NDCG and areas, each with its confidence interval and a test against
    random scores, from the model's curve on one part of the data.
    """

    def work() -> ModelMetricEstimates:
        of = context.db.reading(curves.roc, caller.owner, ref, on)
        found = model_metrics.measured_on(
            of.curve, of.totals, names, of.level, definition, fixed_prevalence=fixed_prevalence
        )
        return ModelMetricEstimates(**of_part(of), **metric_estimates_of(found, of.level))

    return await context.compute(caller.owner, work)


@dataclass(frozen=True)
class GainsQuery:
    """The requested list sizes of a gains table, and the assumed fraction of positives."""

    share: Annotated[
        list[Annotated[float, Field(ge=MIN_WIDTH, le=1)]] | None,
        Query(
            max_length=model_metrics.MAX_SIZES,
            description="Size of the list as a fraction of all rows; repeat it for several. Default, without `count`: "
            "0.01, 0.02, 0.05, 0.1, 0.2, …, 1.",
        ),
    ] = None
    count: Annotated[
        list[Annotated[int, Field(ge=1, le=2**53)]] | None,
        Query(
            max_length=model_metrics.MAX_SIZES,
            description="Size of the list as a number of rows, at most all; repeat it for several.",
        ),
    ] = None
    prevalence: Annotated[
        float | None,
        Query(
            ge=MIN_WIDTH,
            le=1.0 - MIN_WIDTH,
            description="Fraction of positives among future rows, assumed to be exact. Default: that of the data, "
            "with intervals that allow for its sampling variation. Not with `count`.",
        ),
    ] = None

    def table(self, curve: RocCurve, totals: ClassTotals, level: float) -> dict[str, Any]:
        rows = model_metrics.gains_on(
            curve,
            totals,
            level,
            shares=self.share or (),
            counts=self.count or (),
            prevalence=self.prevalence,
        )
        share = totals.prevalence if self.prevalence is None else self.prevalence
        return {
            "level": level,
            "prevalence": share,
            "rows": [Gain.model_validate(row) for row in rows],
        }


GainsQueryDep = Annotated[GainsQuery, from_query(GainsQuery)]


@router.get("/{ref}/gains", summary="Read the gains table")
@needs("read")
async def read_gains(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    query: GainsQueryDep,
    on: CurvePart = "validation",
) -> ModelGains:
    """Return precision, recall and lift at the top of the list for several list sizes, with confidence intervals."""

    def work() -> ModelGains:
        of = context.db.reading(curves.roc, caller.owner, ref, on)
        table = query.table(of.curve, of.totals, of.level)
        return ModelGains(**of_part(of), **table)

    return await context.compute(caller.owner, work)
