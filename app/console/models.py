"""Pages on models: the list, the tabs of one model, its downloads and its deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.operations import Page as ApiPage
from rankwright.types import ListedModel, Metrics, Model, ModelParts
from starlette.responses import Response

from app.console.alias_requests import request_page
from app.console.api import alias_segment, at, refusal
from app.console.jobs import again_address
from app.console.lists import describe_filters, read_list
from app.console.model_aliases import AliasChangeForm, SavedCutoff, needs_more, show_preview
from app.console.model_curve import (
    COST_COLUMNS,
    CURVE_POINTS,
    CUTOFF_KINDS,
    NOTHING,
    TERMS,
    PanelQuery,
    SaveForm,
    ShownModel,
    make_panel,
    number_terms,
    read_parts,
    read_query,
    read_terms,
)
from app.console.model_parts import model_page, show_tab
from app.console.session import ConsoleRoute, ModelDep, Page, PageDep
from app.console.upload_fields import upload_fields
from app.http import cookies
from app.http.forms import Fields, cost_or_text
from app.http.static import POLICY
from app.measures import rows_used

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
DOWNLOADS: dict[str, tuple[str, dict[str, str]]] = {
    "report.html": ("report", {"format": "html"}),
    "report.md": ("report", {"format": "markdown"}),
    "report.json": ("report", {"format": "json"}),
    "roc.csv": ("roc", {"format": "csv", "band": "pointwise"}),
    "out-of-fold.csv": ("out-of-fold", {"format": "csv"}),
    "artifact": ("artifact", {}),
    "onnx": ("artifact", {"format": "onnx"}),
    "python": ("artifact", {"format": "python"}),
    "sql": ("artifact", {"format": "sql"}),
    "structure.json": ("structure", {}),
    "tree.svg": ("structure", {"format": "svg"}),
}


COLUMNS = {
    "algorithm": "Algorithm",
    "aim": "Objective",
    "auc": "AUC",
    "gini": "Gini",
    "benchmark": "Beats baselines",
    "dataset": "Dataset",
    "tags": "Tags",
    "trained": "Trained",
}
"""Columns of the list beside the name, and their titles."""
_USUAL = tuple(name for name in COLUMNS if name != "aim")
_COOKIE, _YEAR = f"{cookies.PREFIX}columns", 365 * 86_400


@router.post("/columns")
async def choose_columns(page: PageDep) -> Response:
    """They are in a cookie."""
    form = await page.form()
    chosen = [name for name in COLUMNS if name in form.getlist("columns")]
    answer = page.go("/console/models")
    answer.set_cookie(
        _COOKIE,
        ".".join(chosen) or "none",
        max_age=_YEAR,
        path=page.outside("/console/models"),
        secure=page.request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


def _columns(page: Page) -> Sequence[str]:
    """Return the columns in the cookie."""
    kept = page.request.cookies.get(_COOKIE)
    if kept is None:
        return _USUAL
    return [name for name in COLUMNS if name in kept.split(".")]


@router.get("")
async def read_models(page: PageDep) -> Response:
    """Filter by a text in the name, a tag or an exact name; newest first."""
    path, filters = "/console/models", ("name", "search", "tag", "dataset_id")
    columns = _columns(page)
    shown: Json = {"columns": columns, "titles": COLUMNS}
    try:
        listed = await read_list(page, path, page.client.models.page, filters)
    except ProblemError as error:
        found = ApiPage[ListedModel]([], has_more=False, next=None)
        asked = describe_filters(path, {name: page.asked(name) for name in filters})
        return page.show("models.html", 422, found=found, problem=error.problem, **asked, **shown)
    return page.show("models.html", problem=None, **listed, **shown)


@router.get("/{ref}")
async def read_model(page: PageDep, ref: str) -> Response:
    query = read_query(page)
    _, reached_by_alias, alias = ref.rpartition("@")
    return await _show_decide(
        page, ref, replace(query, alias=query.alias or alias) if reached_by_alias else query
    )


@router.post("/{ref}")
async def save_cutoff(page: PageDep, ref: str) -> Response:
    """Show what saving a cutoff to an alias changes; save it if the form says `confirmed`.

    After an error of the alias, show the panel again. `threshold` is the cutoff, empty if it flags nothing. `keep` says
    what later versions keep. `revision` is the revision on the page that was confirmed. The query is the panel's query.
    """
    form = await page.form()
    alias, keep = str(form.get("alias", "")).strip(), str(form.get("keep", ""))
    threshold, why = str(form.get("threshold", "")).strip(), str(form.get("why", ""))
    model = await page.client.models[ref].read()
    query = replace(read_query(page), cutoff=threshold or NOTHING, why=why, errors={})
    names = ("on", "review", "rows", "scale", *TERMS, *COST_COLUMNS)
    kept = {name: value for name in names if (value := page.asked(name))}
    memo = _memo(form, {name: page.asked(name) for name in names}, model.dialect)
    models, here = page.client.models, model_page(model.id)
    status, problem = 200, None
    try:
        if not threshold:
            nothing = "This cutoff flags no rows. Choose a cutoff that flags some rows."
            raise refusal(422, "Invalid request", nothing)
        segment = alias_segment(alias)
        guarantee = await _guarantee(page, model, threshold, keep, query.share)
        await _check_terms(page, model, threshold)
        if form.get("confirmed"):
            revision = str(form.get("revision", "")) or None
            try:
                if form.get("request"):
                    facts = {name: value for name, value in memo.items() if name != REASON}
                    made = await page.client.alias_requests.create(
                        "set",
                        model.name,
                        segment,
                        memo[REASON] or "",
                        model=model.id,
                        guarantee=guarantee,
                        memo=facts,
                    )
                    return page.go(request_page(made.id))
                await models.set_alias(
                    model.name, segment, model.id, guarantee=guarantee, memo=memo, revision=revision
                )
            except ProblemError as error:
                changed = error.status in (412, 428)
                if not changed and not needs_more(error) and not form.get("request"):
                    raise
                if error.status not in (404, 409, 412, 422, 428, 429):
                    raise
                status, problem = error.status, CHANGED if changed else error.problem
            else:
                query_of = urlencode({**kept, "alias": alias, "saved": alias})
                return page.go(f"{here}?{query_of}#curve")
        preview = await models.preview_alias(model.name, segment, model.id, guarantee=guarantee)
    except ProblemError as refused:
        if refused.status not in (404, 412, 422):
            raise
        entered = SaveForm(alias, keep, refused.detail)
        return await _show_decide(page, model.id, query, refused.status, entered)
    fields = {"alias": alias, "keep": keep, "threshold": threshold, "why": why, "confirmed": "yes"}
    chosen = urlencode({**kept, "cutoff": threshold})
    saving = SavedCutoff(
        f"{page.outside(here)}?{urlencode(kept)}",
        fields,
        {**memo, REASON: None, "approved_by": None},
        f"{page.outside(here)}?{chosen}#curve",
    )
    change = AliasChangeForm(alias, memo[REASON] or "", saving=saving)
    return await show_preview(page, model, preview, change, status, problem)


CHANGED = {
    "title": "Not saved",
    "detail": "Somebody changed this alias after you opened the page. The table shows what it serves now.",
}
"""The error if an alias was changed between the page and its form."""


async def _guarantee(
    page: Page, model: Model, threshold: str, keep: str, capacity: float | None
) -> dict[str, float]:
    """Return the guarantee of an alias that keeps a threshold, or the share of the rows that it flags: the review
    capacity, if the cutoff is the one that this capacity chooses. Raises ProblemError.
    """
    asked: Json = {"threshold": threshold}  # sent unchanged: the API reports the error
    point = await page.client.models[model.id].operating_point(**asked)
    share = cast(float, point.flagged.value)
    if keep != "flagged":
        return {"threshold": float(threshold)}
    if not 0.0 < share < 1.0:
        some = "all" if share else "none"
        rule = f"This cutoff flags {some} of the validation rows. Keep the threshold instead."
        raise refusal(422, "Invalid request", rule)
    if capacity is not None and share <= capacity < 1.0:
        of_capacity = await page.client.models[model.id].operating_point(flagged=capacity)
        if of_capacity.threshold == point.threshold:
            return {"flagged": capacity}
    return {"flagged": share}


async def _check_terms(page: Page, model: Model, threshold: str) -> None:
    """Raise ProblemError for a capacity or costs that could not be saved."""
    if wrong := [each for name, each in read_query(page).errors.items() if name != "cutoff"]:
        raise refusal(422, "Invalid request", wrong[0])
    entered = {name: page.asked(name) for name in TERMS}
    terms = number_terms(entered, model.dialect)
    await page.client.models[model.id].operating_point(
        **cast(Any, {"threshold": threshold}), **terms
    )


REASON = "reason"
"""The memo field of the alias form. The panel has the other fields."""


def _memo(form: Fields, asked: Mapping[str, str | None], dialect: Mapping[str, str] | None) -> Json:
    """Return reason, review capacity and costs."""
    said = {REASON: str(form.get(REASON, "")).strip()}
    numbers = {
        name: cost_or_text(asked[name] or "", dialect if name in TERMS else None)
        for name in ("review", "rows", *TERMS)
    }
    amount = asked["amount"] if numbers["cost_false_negative"] else None
    memo = {**said, **numbers, "amount": amount}
    return {name: None if value in (None, "") else value for name, value in memo.items()}


async def _show_decide(
    page: Page, ref: str, query: PanelQuery, status: int = 200, save: SaveForm | None = None
) -> Response:
    """Show the decision panel; with values and errors if a cutoff could not be saved."""
    on = page.asked("on") or "validation"
    by, at = page.asked("by"), page.asked("at")
    cutoff = None
    if by in CUTOFF_KINDS:
        # Sent unchanged: the API reports the error.
        cutoff = {} if by == "cost" else {by: at or ""}
    terms = read_terms(page)
    found = await read_parts(
        page.client.models,
        ref,
        ("metrics", "roc", "operating_points"),
        {
            "on": on,
            "max_points": CURVE_POINTS,
            "band": "pointwise",
            "flagged": query.share if cutoff is None else None,
        },
        terms,
        cutoff,
    )
    if by == "cost" and not (terms["cost_false_positive"] and terms["cost_false_negative"]):
        said = "To find the lowest-cost cutoff, enter both costs under “Cost of errors”."
        problem = {"title": "Costs missing", "detail": said}
        found = replace(found, cutoff=None, cutoff_problem=problem)
    metrics = found.parts.metrics
    checked = await page.client.models[found.model.id].checks()
    panel = None
    if isinstance(metrics, Metrics) and found.parts.operating_points is not None:
        panel = await make_panel(page, found, metrics, on, query, save)
    return await show_tab(
        page,
        found.model,
        "model.html",
        "decide",
        status,
        on=on,
        metrics=metrics,
        missing=found.absent("metrics"),
        panel=panel,
        findings=checked.findings,
    )


@router.get("/{ref}/validation")
async def read_validation(page: PageDep, ref: str) -> Response:
    """Comparisons, probabilities and bounds are loaded after the page."""
    on = page.asked("on") or "validation"
    model = await page.client.models[ref].read(include=("metrics",), on=on)
    found = ShownModel(model, cast(ModelParts, model.included))
    return await show_tab(
        page,
        model,
        "model_validation.html",
        "validation",
        on=on,
        metrics=found.parts.metrics,
        missing=found.absent("metrics"),
    )


@router.get("/{ref}/history")
async def read_history(page: PageDep, ref: str) -> Response:
    return await _show_history(page, ref)


async def _show_history(
    page: Page, ref: str, status: int = 200, problem: Json | None = None
) -> Response:
    model = await page.client.models[ref].read()
    parameters = {
        name: value for name, value in model.algorithm.items() if name not in ("name", "members")
    }
    other = model.validation_dataset
    return await show_tab(
        page,
        model,
        "model_history.html",
        "history",
        status,
        problem=problem,
        parameters=parameters,
        counts=rows_used(model.rows.to_json(), str(model.validation["method"])),
        kinds=upload_fields(page.request.app)["kind"].choices,
        gone=await page.find_gone(model.dataset_id, None if other is None else other.id),
    )


@router.get("/{ref}/retrain")
async def retrain(page: PageDep, model: ModelDep) -> Response:
    """Use the values of the model's job on the newest version of its data. An imported model is imported again."""
    if model.imported is not None:
        return page.go("/console/import", name=model.name)
    job = (await page.client.jobs.get(model.job_id)).data
    address = await again_address(page, job, newest=True)
    return page.go(address or f"/console/jobs/{job.id}")


@router.post("/{ref}/delete")
async def delete_model(page: PageDep, ref: str) -> Response:
    """If it is refused, show the history, where the button is, with the error."""
    try:
        await page.client.models[ref].delete()
    except ProblemError as error:
        if error.status != 409:
            raise
        return await _show_history(page, ref, error.status, error.problem)
    return page.go("/console/models", deleted=ref)


@router.get("/{ref}/download/{name}")
async def download(page: PageDep, ref: str, name: str) -> Response:
    if name not in DOWNLOADS:
        raise refusal(404, "Not found", f"there is no download {name[:100]!r}")
    part, query = DOWNLOADS[name]
    asked = query | ({"on": page.asked("on") or "validation"} if part == "roc" else {})
    if name == "tree.svg":
        drawing = await page.client.models[ref].download(part, format="svg")
        headers = {"Content-Security-Policy": POLICY + "; sandbox", "Cache-Control": "no-cache"}
        return Response(drawing, media_type="image/svg+xml", headers=headers)
    return page.download(at("/v1/models", ref, part), **asked)
