"""Routes for /v1/models/{ref}/report and …/plot, and the profile of a dataset as a page."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.datasets import service as datasets
from app.datasets.schemas import DatasetProfile
from app.http.dependencies import CallerDep, ContextDep
from app.http.responses import CompressedPage, CompressedResponse, choose_media_type
from app.models.curve_endpoints import CurvePart
from app.reports import plots
from app.reports.document import Document
from app.reports.profile import describe_profile
from app.reports.schemas import Report, report_of
from app.reports.sections import document_of
from app.reports.service import gather, prepare_plot
from app.reports.writers import to_html, to_markdown
from app.scoring.interpretation_endpoints import PICTURE_HEADERS
from app.svg import draw_picture

Format = Literal["json", "markdown", "html"]
WRITTEN: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/markdown": {"schema": {"type": "string"}},
            "text/html": {"schema": {"type": "string"}},
        }
    }
}
"""OpenAPI's words for what comes beside JSON."""

_OFFERS: dict[str, Format] = {
    "application/json": "json",
    "text/html": "html",
    "text/markdown": "markdown",
}


async def _format(
    request: Request,
    format: Annotated[
        Format | None,
        Query(description="Format of the response; it overrides `Accept`. Default: `json`."),
    ] = None,
) -> Format:
    return format or _OFFERS[choose_media_type(request, list(_OFFERS))]


FormatDep = Annotated[Format, Depends(_format)]


def answer_page(document: Document, format: Format) -> Response:
    """Write Markdown, or HTML without external files."""
    if format == "markdown":
        return CompressedResponse(to_markdown(document), media_type="text/markdown; charset=utf-8")
    page = to_html(document)
    return CompressedPage(page.html, headers={"Content-Security-Policy": f"{page.policy}; sandbox"})


router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)

_PICTURES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The picture.",
        "content": {
            "image/svg+xml": {"schema": {"type": "string"}},
            "image/png": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.get(
    "/{ref}/plot",
    response_class=Response,
    summary="Draw a plot",
    responses=_PICTURES,
)
@needs("read")
async def read_plot(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    on: CurvePart = "validation",
    kind: Annotated[
        plots.Kind,
        Query(
            description="Kind of plot. `roc`: the whole ROC curve. `pauc`: the window of the partial AUC, enlarged. "
            "`gains`: recall by the fraction of the list that is processed. `precision_recall`: precision "
            "at every recall. `cost`: lowest expected cost by the weight of a missed positive. "
            "`histogram`: distribution of the scores of each class. `reliability`: observed fraction of "
            "positives by probability, on rows that the calibration was not fitted on, regardless of "
            "`on`. `band` applies to `roc` and `pauc`."
        ),
    ] = "roc",
    band: Annotated[
        Literal["pointwise", "simultaneous", "none"],
        Query(
            description="Confidence band. `pointwise`: for each point separately. `simultaneous`: for the whole curve "
            "at once. `none`: no band."
        ),
    ] = "pointwise",
    format: Annotated[Literal["svg", "png"], Query(description="`svg` or `png`.")] = "svg",
    width: Annotated[int, Query(ge=200, le=4000, description="Width of a PNG in pixels.")] = 1280,
) -> Response:
    """Return a picture of the ROC curve with its confidence band, the area of the window, the best operating points at
    several rates (or that of the objective), and the diagonal of random scores; or the plot of another `kind`. The
    picture needs no other file.
    """
    shown_band = None if band == "none" else band

    def work() -> Response:
        plot = context.db.reading(prepare_plot, caller.owner, ref, on, kind, shown_band)()
        drawn = draw_picture(plot)
        if format == "svg":
            return Response(drawn, media_type="image/svg+xml", headers=PICTURE_HEADERS)
        return Response(plots.to_png(drawn, width), media_type="image/png")

    return await context.compute(caller.owner, work)


@router.get(
    "/{ref}/report",
    response_model=Report,
    summary="Read the report",
    responses=WRITTEN,
)
@needs("read")
async def read_report(
    *, ref: str, context: ContextDep, caller: CallerDep, format: FormatDep
) -> Response:
    """Return everything an auditor needs: data, parameters and seed, warnings, all metrics with intervals, curves,
    operating points, the comparison with baselines, importances, lineage, and how to read the report. As Markdown or
    HTML it contains its pictures and needs no other file.
    """

    def work() -> Response:
        facts = context.db.reading(gather, caller.owner, ref)()
        if format == "json":
            return JSONResponse(report_of(facts).model_dump(mode="json"))
        return answer_page(document_of(facts), format)

    return await context.compute(caller.owner, work)


datasets_router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=GuardedRoute)


@datasets_router.get(
    "/{dataset_id}/profile",
    response_model=DatasetProfile,
    summary="Read the profile of a dataset",
    responses=WRITTEN,
)
@needs("read")
async def profile_dataset(
    *, dataset_id: str, context: ContextDep, caller: CallerDep, format: FormatDep
) -> Response:
    """Return for each feature its quantiles, its histogram, and how well it ranks the label by itself; and the rows
    that occur more than once. As Markdown or HTML it is one page for people that needs no other file.

    `leak` marks the columns that probably state the label; `leak_words` says why.
    """

    def work() -> Response:
        dataset, found = context.db.reading(datasets.profile, caller.owner, dataset_id)
        if format == "json":
            return JSONResponse(DatasetProfile.of_rows(dataset, found).model_dump(mode="json"))
        return answer_page(describe_profile(dataset, found), format)

    return await context.compute(caller.owner, work)
