"""Pages on models: the list, the tabs of one model, its downloads and its deletion."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.resources import Page as ApiPage
from rankwright.types import (
    Cut,
    ListedModel,
    Metrics,
    ModelParts,
    OperatingPoints,
)
from starlette.responses import Response

from app.console.api import at, refusal
from app.console.jobs import again_address
from app.console.model_curve import CURVE_POINTS, ShownModel, make_panel, read_parts, read_terms
from app.console.model_parts import show_tab
from app.console.session import ConsoleRoute, Page, PageDep
from app.http.static import POLICY

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
TOP_SHARE = 0.01
"""The fraction of the list that the first sentence on a model speaks of."""
MAX_JUDGED = 10
"""The last evaluations of a model among which one is sought that says what has changed."""
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
    """Show what a model is worth, in words, and its curve with a slider."""
    of = page.client.models[ref]
    on = page.asked("on") or "validation"
    by, at = page.asked("by"), page.asked("at")
    cut = None
    if by in ("fpr", "tpr", "threshold", "cost"):
        # As it was entered: the API says what is wrong with it.
        cut = {} if by == "cost" else {by: at}
    found = await read_parts(
        of,
        ("metrics", "roc", "operating_points"),
        {"on": on, "max_points": CURVE_POINTS, "band": "pointwise"},
        read_terms(page),
        cut,
    )
    metrics = found.parts.metrics
    judged = await page.client.evaluations.page(model_id=found.model.id, limit=MAX_JUDGED)
    return show_tab(
        page,
        found.model,
        "model.html",
        "decide",
        on=on,
        metrics=metrics,
        missing=found.absent("metrics"),
        panel=await make_panel(page, found, metrics, on) if isinstance(metrics, Metrics) else None,
        top=_top_share(found.parts.operating_points),
        drifted=next(
            (each for each in judged.data if each.drift is not None and each.seen == "new"), None
        ),
    )


def _top_share(cuts: OperatingPoints | None) -> Cut | None:
    """Return the cut that flags most rows up to `TOP_SHARE`; the first that flags any if all flag more."""
    flagging = [] if cuts is None else cuts.points[1:]
    few = [cut for cut in flagging if cast(float, cut.flagged.value) <= TOP_SHARE + 1e-9]
    return few[-1] if few else next(iter(flagging), None)


@router.get("/{ref}/judge")
async def read_judge(page: PageDep, ref: str) -> Response:
    """Show the figures of a model; comparisons, probabilities and bounds come after the page."""
    on = page.asked("on") or "validation"
    model = await page.client.models[ref].read(include=("metrics",), on=on)
    found = ShownModel(model, cast(ModelParts, model.included))
    return show_tab(
        page,
        model,
        "model_judge.html",
        "judge",
        on=on,
        metrics=found.parts.metrics,
        missing=found.absent("metrics"),
    )


@router.get("/{ref}/lineage")
async def read_lineage(page: PageDep, ref: str) -> Response:
    """Show where a model comes from, its parameters, files and names."""
    return await _show_lineage(page, ref)


async def _show_lineage(
    page: Page, ref: str, status: int = 200, problem: Json | None = None
) -> Response:
    model = await page.client.models[ref].read()
    parameters = {
        name: value for name, value in model.algorithm.items() if name not in ("name", "members")
    }
    return show_tab(
        page,
        model,
        "model_lineage.html",
        "lineage",
        status,
        problem=problem,
        parameters=parameters,
    )


@router.get("/{ref}/retrain")
async def retrain(page: PageDep, ref: str) -> Response:
    """Go to the training form with the values of the job that made this model."""
    model = await page.client.models[ref].read()
    job = (await page.client.jobs.get(model.job_id)).data
    address = await again_address(page, job)
    return page.go(address or f"/console/jobs/{job.id}")


@router.post("/{ref}/delete")
async def delete_model(page: PageDep, ref: str) -> Response:
    """Delete the model and show the list; or show its lineage, where the button is, with the error."""
    try:
        await page.client.models[ref].delete()
    except ProblemError as error:
        if error.status != 409:
            raise
        return await _show_lineage(page, ref, error.status, error.problem)
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
