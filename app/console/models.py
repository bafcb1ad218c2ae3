"""Pages on models: the list, one model, its downloads and its deletion."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.resources import Page as ApiPage
from rankwright.types import (
    ListedModel,
    Metrics,
)
from starlette.responses import Response

from app.console.api import at, refusal
from app.console.model_curve import CURVE_POINTS, make_curve, read_parts, read_terms
from app.console.session import ConsoleRoute, Page, PageDep
from app.http.static import POLICY

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
DOWNLOADS: dict[str, tuple[str, dict[str, str]]] = {
    "report.html": ("report", {"format": "html"}),
    "report.md": ("report", {"format": "markdown"}),
    "report.json": ("report", {"format": "json"}),
    "roc.csv": ("roc", {"format": "csv", "band": "pointwise"}),
    "out-of-fold.csv": ("out-of-fold", {"format": "csv"}),
    "artifact": ("artifact", {}),
    "structure.json": ("structure", {}),
    "tree.svg": ("structure", {"format": "svg"}),
}


@router.get("")
async def read_models(page: PageDep) -> Response:
    """List the models, newest first: all, those with a text in their names, with a tag, or of exactly one name."""
    asked = {name: page.asked(name) for name in ("name", "search", "tag")}
    problem = None
    try:
        found = await page.client.models.page(
            name=asked["name"],
            search=asked["search"],
            tag=asked["tag"],
            after=page.asked("after"),
        )
    except ProblemError as error:
        found, problem = ApiPage[ListedModel]([], has_more=False, next=None), error.problem
    kept = {name: value for name, value in asked.items() if value is not None}
    return page.show(
        "models.html",
        422 if problem else 200,
        found=found,
        asked=asked,
        address="/console/models" + (f"?{urlencode(kept)}" if kept else ""),
        filtered=bool(kept),
        problem=problem,
    )


@router.get("/{ref}")
async def read_model(page: PageDep, ref: str) -> Response:
    """Show one model: its description, its figures, and its curve with a slider."""
    return await _show_model(page, ref)


async def _show_model(
    page: Page, ref: str, status: int = 200, problem: Json | None = None
) -> Response:
    on = page.asked("on") or "validation"
    by, at = page.asked("by"), page.asked("at")
    cut = None
    if by in ("fpr", "tpr", "threshold", "cost"):
        # As it was entered: the API says what is wrong with it.
        cut = {} if by == "cost" else {by: at}
    found = await read_parts(
        page.client.models[ref],
        ("metrics", "roc", "operating_points"),
        {"on": on, "max_points": CURVE_POINTS, "band": "pointwise"},
        read_terms(page),
        cut,
    )
    model, metrics = found.model, found.parts.metrics
    return page.show(
        "model.html",
        status,
        model=model,
        on=on,
        metrics=metrics,
        missing=found.absent("metrics"),
        curve=make_curve(page, found, metrics) if isinstance(metrics, Metrics) else None,
        problem=problem,
        parameters={
            name: value
            for name, value in model.algorithm.items()
            if name not in ("name", "members")
        },
    )


@router.post("/{ref}/delete")
async def delete_model(page: PageDep, ref: str) -> Response:
    """Delete the model and show the list; or show its page again with the error."""
    try:
        await page.client.models[ref].delete()
    except ProblemError as error:
        if error.status != 409:
            raise
        return await _show_model(page, ref, error.status, error.problem)
    return page.go("/console/models")


@router.get("/{ref}/download/{name}")
async def download(page: PageDep, ref: str, name: str) -> Response:
    """Return a download: report, artifact, points of the curve, and others."""
    if name not in DOWNLOADS:
        raise refusal(404, "Not found", f"there is no download {name[:100]!r}")
    part, query = DOWNLOADS[name]
    asked = query | ({"on": page.asked("on") or "validation"} if part == "roc" else {})
    if name == "tree.svg":
        drawing = await page.client.models[ref].download(part, format="svg")
        headers = {"Content-Security-Policy": POLICY + "; sandbox", "Cache-Control": "no-cache"}
        return Response(drawing, media_type="image/svg+xml", headers=headers)
    return page.api.stream("GET", at("/v1/models", ref, part), query=asked)
