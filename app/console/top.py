"""The top of a ranked list: guaranteed cutoffs, the first rows, metrics with intervals, and probabilities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from fastapi import APIRouter
from markupsafe import Markup
from rankwright import plots
from rankwright.errors import ProblemError
from rankwright.plots import Band
from rankwright.resources import AsyncEvaluation, AsyncModel
from rankwright.types import (
    AliasSummary,
    CalibrationDrift,
    EvaluationGains,
    EvaluationMetricEstimates,
    EvaluationOperatingPoint,
    Gain,
    Model,
    ModelGains,
    ModelMetricEstimates,
    OperatingPoint,
    Reliability,
)
from starlette.responses import Response

from app.console import charts
from app.console.alias_requests import request_page
from app.console.api import alias_segment, at, attempt, refusal
from app.console.choices import mark_misfits, offer_datasets
from app.console.model_aliases import needs_more
from app.console.model_parts import model_page, read_or_error, show_part, show_tab
from app.console.session import ConsoleRoute, ModelDep, Page, PageDep
from app.console.words import FieldLabel, FormFaults, place_faults
from app.measures import SEPARATED_CALIBRATION

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
T = TypeVar("T")
METRICS = ("average_precision", "precision@1%", "precision@10%", "ndcg")
CONFIDENCE = "0.95"
FIELDS = {
    "fpr": FieldLabel("limit", "Rate"),
    "tpr": FieldLabel("limit", "Rate"),
    "confidence": FieldLabel("confidence", "Confidence"),
    "count": FieldLabel("count", "Top rows"),
    "metric": FieldLabel("metric", "Another metric"),
}
"""The fields of the form, by the parameter of the API that each one fills."""


@dataclass(frozen=True)
class TopForm:
    """The fields as they were typed: the API reports their errors."""

    rate: str
    limit: str
    confidence: str
    count: str
    metric: str


@dataclass(frozen=True)
class TopOfList:
    """Each query of the form has an answer, or an error in `faults`."""

    entered: TopForm
    guaranteed: OperatingPoint | EvaluationOperatingPoint | None
    first_rows: Sequence[Gain]
    requested_rows: Sequence[Gain]
    chart: Markup | None
    metrics: ModelMetricEstimates | EvaluationMetricEstimates | None
    faults: FormFaults
    words: str | None
    """Why there is no list at all."""


async def read_top_of_list(
    page: Page,
    of: AsyncModel | AsyncEvaluation,
    *,
    grouped: bool = False,
) -> TopOfList:
    """Return the top of the list, with answers to the form.

    With `grouped`, a guarantee is also kept in each group of the evaluation.
    """
    entered = TopForm(
        rate=page.choice("rate", ("fpr", "tpr")),
        limit=page.asked("limit") or "",
        confidence=page.asked("confidence") or CONFIDENCE,
        count=page.asked("count") or "",
        metric=page.asked("metric") or "",
    )
    read_gains = cast(Callable[..., Awaitable[ModelGains | EvaluationGains]], of.gains)
    read_cutoff = cast(
        Callable[..., Awaitable[OperatingPoint | EvaluationOperatingPoint]], of.operating_point
    )
    gains, words = await read_or_error(read_gains())
    guaranteed = requested = guarantee_problem = rows_problem = None
    if entered.limit:
        asked: Json = {entered.rate: entered.limit, "confidence": entered.confidence}
        if grouped:
            asked["by_group"] = "together"
        guaranteed, guarantee_problem = await attempt(read_cutoff(**asked), 404, 422)
    if entered.count:
        requested, rows_problem = await attempt(read_gains(count=[entered.count]), 404, 422)
    metrics, metrics_problem = await _metrics(of, [*METRICS], entered.metric)
    return TopOfList(
        entered,
        guaranteed,
        [] if gains is None else gains.rows,
        [] if requested is None else requested.rows,
        None if gains is None else _gains_chart(gains.rows),
        metrics,
        place_faults(_joined(guarantee_problem, rows_problem, metrics_problem), FIELDS),
        words,
    )


def _joined(*problems: Json | None) -> Json | None:
    """Return several problems as one."""
    found = [each for each in problems if each is not None]
    errors = [error for each in found for error in each.get("errors") or [each]]
    return {**found[0], "errors": errors} if found else None


async def _metrics(
    of: AsyncModel | AsyncEvaluation, names: Sequence[str], more: str
) -> tuple[ModelMetricEstimates | EvaluationMetricEstimates | None, Json | None]:
    """The entered metric is the first."""
    read = cast(
        Callable[..., Awaitable[ModelMetricEstimates | EvaluationMetricEstimates]],
        of.metric_estimates,
    )
    wanted = [*filter(None, [more]), *(name for name in names if name != more)]
    found, problem = await attempt(read(wanted), 404, 422)
    if found is None and more:  # the entered metric may be invalid
        found, _ = await attempt(read(names), 404, 422)
    if found is None:  # ranks of weighted rows have no NDCG
        found, _ = await attempt(read([name for name in names if name != "ndcg"]), 404, 422)
    return found, problem if more else None


def _gains_chart(rows: Sequence[Gain]) -> Markup:
    """Draw the recall over the reviewed fraction, at the table's sizes."""
    sizes = [row for row in rows if row.recall.value is not None]
    points = [(0.0, 0.0), *((row.share, row.recall.value or 0.0) for row in sizes)]
    limits = [
        (row.share, row.recall.low, row.recall.high)
        for row in sizes
        if row.recall.low is not None and row.recall.high is not None
    ]
    return charts.square(plots.gains(points, band=Band("", [(0.0, 0.0, 0.0), *limits])))


def draw_reliability(
    found: Reliability | CalibrationDrift,
    *,
    size: float = 440.0,
    cursor: tuple[float, float | None] | None = None,
    metrics: tuple[str, str | None] | None = None,
) -> Markup:
    """Draw the region in which the line stays if the probabilities are correct, too."""
    plot = plots.of_reliability(found, "Reliability diagram", cursor=cursor)
    return charts.square(plot, size=size, metrics=metrics)


@router.get("/{ref}/top")
async def read_top(page: PageDep, model: ModelDep) -> Response:
    """Show positives, a guaranteed cutoff, and metrics with tests against random scores."""
    top = await read_top_of_list(page, page.client.models[model.id])
    return await show_part(page, model, "top", top=top)


@router.get("/{ref}/calibration")
async def read_calibration(page: PageDep, ref: str) -> Response:
    return await _show_calibration(page, ref)


async def _show_calibration(
    page: Page, ref: str, status: int = 200, problem: Json | None = None, chosen: str = ""
) -> Response:
    """Show the calibration and the form that fits it again, and a problem after an error."""
    model = await page.client.models[ref].read()
    found, words = await read_or_error(page.client.models[model.id].read_calibration())
    evaluated = None if found is None else found.reliability
    offered = {}
    if page.can("train") and model.kind == "bipartite":
        found_datasets = await offer_datasets(page, [chosen])
        offered["datasets"] = await mark_misfits(
            page, found_datasets, "dataset", "calibration", [model.id]
        )
    return await show_part(
        page,
        model,
        "calibration",
        status,
        found=found,
        words=words,
        evaluated=evaluated,
        chart=None if evaluated is None else draw_reliability(evaluated),
        separated_words=SEPARATED_CALIBRATION,
        problem=problem,
        chosen=chosen,
        **offered,
    )


@router.post("/{ref}/calibration")
async def recalibrate(page: PageDep, ref: str) -> Response:
    """Show what is served now and ask for a reason; if the form says `confirmed`, submit the job."""
    form = await page.form()
    dataset, reason = str(form.get("dataset_id", "")), str(form.get("reason", "")).strip()
    try:
        if "confirmed" not in form:
            asked = {"dataset_id": dataset, "reason": "not entered yet"}
            await page.api.check(at("/v1/models", ref, "calibration", "validate"), asked)
            return await _confirm_calibration(page, ref, dataset)
        if alias := str(form.get("request", "")):
            model = await page.client.models[ref].read()
            made = await page.client.alias_requests.create(
                "recalibrate", model.name, alias_segment(alias), reason, dataset=dataset
            )
            return page.go(request_page(made.id))
        job = await page.client.models[ref].recalibrate(dataset, wait=False, reason=reason or None)
    except ProblemError as error:
        if error.status not in (404, 409, 422, 429):
            raise
        if "confirmed" not in form and error.problem.get("code") == "approval_required":
            return await _confirm_calibration(page, ref, dataset)
        if "confirmed" in form:
            return await _confirm_calibration(page, ref, dataset, error.status, error.problem)
        return await _show_calibration(page, ref, error.status, error.problem, dataset)
    return page.go(f"/console/jobs/{job.id}")


async def _confirm_calibration(
    page: Page, ref: str, dataset_id: str, status: int = 200, problem: Json | None = None
) -> Response:
    """Ask for a reason; or show the form, if there is no such dataset."""
    model = await page.client.models[ref].read()
    dataset, refused = await attempt(page.client.datasets.get(dataset_id), 404, 422)
    if dataset is None:
        return await _show_calibration(page, model.id, 404, refused, dataset_id)
    found, _ = await read_or_error(page.client.models[model.id].read_calibration())
    listed = await page.client.models.alias_page(model.name, limit=200)
    return await show_tab(
        page,
        model,
        "model_calibration_change.html",
        "validation",
        status,
        dataset=dataset.data,
        found=found,
        problem=problem,
        **_served_as(model, listed.data),
    )


def _served_as(model: Model, aliases: Sequence[AliasSummary]) -> Json:
    """Return the aliases, and the one whose calibration must be changed by a request."""
    served_as = [each for each in aliases if each.model_id == model.id]
    asks = [each.alias for each in served_as if each.protected and not each.break_glass_until]
    return {"served_as": served_as, "asks": asks[0] if asks else None}


@router.post("/{ref}/calibration/restore")
async def restore_calibration(page: PageDep, ref: str) -> Response:
    """`revision` is the current version on the page."""
    form = await page.form()
    version, reason = str(form.get("version", "")), str(form.get("reason", "")).strip()
    model = await page.client.models[ref].read()
    try:
        if not (version.isascii() and version.isdigit() and len(version) < 10):
            rule = f"version must be a number of the list, got {version[:100]!r}"
            raise refusal(422, "Invalid request", rule)
        if alias := str(form.get("request", "")):
            made = await page.client.alias_requests.create(
                "restore_calibration",
                model.name,
                alias_segment(alias),
                reason,
                calibration_version=int(version),
            )
            return page.go(request_page(made.id))
        await page.client.models[model.id].restore_calibration(
            int(version), reason=reason or None, revision=str(form.get("revision", ""))
        )
    except ProblemError as error:
        if error.status not in (404, 409, 412, 422, 429):
            raise
        if needs_more(error) or form.get("request"):
            listed = await page.client.models.alias_page(model.name, limit=200)
            found, _ = await read_or_error(page.client.models[model.id].read_calibration())
            return await show_tab(
                page,
                model,
                "model_calibration_change.html",
                "validation",
                error.status,
                dataset=None,
                version=version,
                found=found,
                problem=error.problem,
                **_served_as(model, listed.data),
            )
        return await _show_calibration(page, model.id, error.status, error.problem)
    return page.go(model_page(model.id) + "/validation#calibration")
