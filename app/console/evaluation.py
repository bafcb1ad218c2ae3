"""Pages on comparisons of models on a dataset, and on evaluations of a model on later data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from starlette.responses import Response

from app.console import charts
from app.console.api import at
from app.console.charts import Estimate
from app.console.choices import Offer, offer_datasets, offer_models
from app.console.rendering import number, when
from app.console.session import ConsoleRoute, Page, PageDep
from app.http.forms import Fields
from app.roc_plot import Line, RocPlot

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

CURVE_POINTS = 300
MAX_EVALUATIONS_DRAWN = 200
"""Most evaluations of a model that are drawn over time."""


async def _offered(page: Page, models: Sequence[str], dataset_id: str) -> dict[str, Offer]:
    """Return the options of a form; none for a key that may not send it."""
    if not page.can("train"):
        return {}
    return {
        "models": await offer_models(page, models),
        "datasets": await offer_datasets(page, [dataset_id]),
    }


async def find_gone(page: Page, found: Mapping[str, Any]) -> dict[str, bool]:
    """Return which of model and dataset have been deleted since."""
    gone = {}
    for name, collection in (("model", "/v1/models"), ("dataset", "/v1/datasets")):
        try:
            if found[f"{name}_id"]:
                await page.api.get(at(collection, found[f"{name}_id"]))
            gone[name] = False
        except ProblemError as error:
            if error.status != 404:
                raise
            gone[name] = True
    return gone


@router.get("/comparisons")
async def list_comparisons(page: PageDep) -> Response:
    """Show the comparisons, and the form for a new one."""
    return await _comparisons(page)


async def _comparisons(
    page: Page, error: dict[str, Any] | None = None, given: Fields | None = None
) -> Response:
    found = await page.api.get(at("/v1/comparisons"), limit=50, after=page.asked("after"))
    asked = page.request.query_params
    chosen = given.getlist("models") if given else asked.getlist("models")
    offered = await _offered(page, chosen, (given or asked).get("dataset_id", ""))
    return page.show(
        "comparisons.html",
        200 if error is None else error["status"],
        found=found,
        error=error,
        given=given or asked,
        chosen=chosen,
        **offered,
    )


@router.post("/comparisons")
async def create_comparison(page: PageDep) -> Response:
    """Submit a comparison."""
    form = await page.form()
    body: dict[str, Any] = {
        "models": form.getlist("models"),
        "dataset_id": form.get("dataset_id", ""),
    }
    if window := _window(form):
        body["windows"] = [{"fpr_min": 0.0, "fpr_max": 1.0}, window]
    try:
        made = await page.api.post(at("/v1/comparisons"), body)
    except ProblemError as error:
        if error.status == 403:
            raise
        return await _comparisons(page, error.problem, form)
    return page.go(f"/console/comparisons/{made['id']}")


@router.get("/comparisons/{comparison_id}")
async def read_comparison(comparison_id: str, page: PageDep) -> Response:
    """Show areas, curves and paired differences."""
    found = await page.api.get(at("/v1/comparisons", comparison_id))
    names = {each["model_id"]: f"{each['name']}:{each['version']}" for each in found["models"]}
    windows = [_drawn(window, names) for window in (found["result"] or {}).get("windows", ())]
    drawn = await _curves(page, names) if windows else []
    return page.show(
        "comparison.html",
        found=found,
        names=names,
        windows=windows,
        curves=charts.roc(
            RocPlot("ROC curves of the models, each on its own held-out rows", drawn), 440
        )
        if drawn
        else None,
        drawn=[line.name for line in drawn],
    )


@router.post("/comparisons/{comparison_id}/delete")
async def delete_comparison(comparison_id: str, page: PageDep) -> Response:
    """Delete a comparison."""
    await page.api.delete(at("/v1/comparisons", comparison_id))
    return page.go("/console/comparisons")


def _drawn(window: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Return the figures of a window with its two charts."""
    areas = [
        Estimate(names[each["model_id"]], each["value"], each["low"], each["high"])
        for each in window["values"]
        if each["value"] is not None
    ]
    differences = [
        Estimate(
            f"{names[each['first']]} − {names[each['second']]}",
            each["value"],
            each["low"],
            each["high"],
        )
        for each in window["differences"]
        if each["value"] is not None
    ]
    return {
        **window,
        "title": _title(window),
        "areas": charts.forest(areas, "Areas with their intervals"),
        "forest": charts.forest(differences, "Differences with their intervals", zero=0.0),
    }


def _title(window: dict[str, Any]) -> str:
    if (window["fpr_min"], window["fpr_max"]) == (0, 1):
        return "AUC"
    return f"Partial AUC, FPR {window['fpr_min']:g} to {window['fpr_max']:g}"


async def _curves(page: Page, names: dict[str, str]) -> list[Line]:
    """Return the curve of each model on its own held-out rows; models that are gone or have none are left out."""
    drawn = []
    for model_id, name in list(names.items())[:8]:
        try:
            roc = await page.api.get(at("/v1/models", model_id, "roc"), max_points=CURVE_POINTS)
        except ProblemError:
            continue
        points = [(point["fpr"], point["tpr"]) for point in roc["points"]]
        drawn.append(Line(name, points))
    return drawn


def _window(form: Fields) -> dict[str, Any] | None:
    """Return the requested window. Text that is not a number is sent to the API unchanged, which says what is wrong."""
    given = str(form.get("fpr_max", "")).strip()
    if not given:
        return None
    try:
        return {"fpr_min": 0.0, "fpr_max": float(given)}
    except ValueError:
        return {"fpr_min": 0.0, "fpr_max": given}


@router.get("/evaluations")
async def list_evaluations(page: PageDep) -> Response:
    """Show the evaluations, with areas over time if they are of one model, and the form for a new one."""
    return await _evaluations(page)


async def _evaluations(
    page: Page, error: dict[str, Any] | None = None, given: Fields | None = None
) -> Response:
    model_id = page.asked("model_id")
    limit = MAX_EVALUATIONS_DRAWN if model_id else 50
    found = await page.api.get(
        at("/v1/evaluations"), limit=limit, after=page.asked("after"), model_id=model_id
    )
    chosen = given or page.request.query_params
    offered = await _offered(
        page, [chosen.get("model") or model_id or ""], chosen.get("dataset_id", "")
    )
    drawn, reference, gone = None, None, False
    if model_id:
        gone = (await find_gone(page, {"model_id": model_id, "dataset_id": None}))["model"]
        reference = None if gone else await _own_area(page, model_id)
        if estimates := _areas(found["data"]):
            drawn = charts.over_time(estimates, "Area over time", reference=reference)
    return page.show(
        "evaluations.html",
        200 if error is None else error["status"],
        found=found,
        error=error,
        given=chosen,
        model_id=model_id,
        gone=gone,
        reference=reference is not None,
        chart=drawn,
        area=area,
        **offered,
    )


async def _own_area(page: Page, model_id: str) -> float | None:
    """Return the model's area at validation, if it has one."""
    try:
        metrics = await page.api.get(at("/v1/models", model_id, "metrics"))
    except ProblemError as error:
        if error.status != 404:
            raise
        return None
    own: float | None = (metrics.get("auc") or {}).get("value")
    return own


def area(evaluation: dict[str, Any]) -> dict[str, Any] | None:
    """Return the area that a list shows: the AUC, or the fraction of pairs in order."""
    metrics = evaluation["metrics"] or {}
    found: dict[str, Any] | None = metrics.get("auc") or metrics.get("pair_order")
    return found


def _areas(newest_first: list[dict[str, Any]]) -> list[Estimate]:
    return [
        Estimate(when(each["created_at"]), found["value"], found["low"], found["high"])
        for each in reversed(newest_first)
        if (found := area(each)) and found["value"] is not None and found["low"] is not None
    ]


@router.post("/evaluations")
async def create_evaluation(page: PageDep) -> Response:
    """Submit an evaluation."""
    form = await page.form()
    body: dict[str, Any] = {
        "model": form.get("model", ""),
        "dataset_id": form.get("dataset_id", ""),
    }
    if window := _window(form):
        body["windows"] = [window]
    try:
        made = await page.api.post(at("/v1/evaluations"), body)
    except ProblemError as error:
        if error.status == 403:
            raise
        return await _evaluations(page, error.problem, form)
    return page.go(f"/console/evaluations/{made['id']}")


@router.get("/evaluations/{evaluation_id}")
async def read_evaluation(evaluation_id: str, page: PageDep) -> Response:
    """Show the figures on the dataset, and the changes since validation."""
    found = await page.api.get(at("/v1/evaluations", evaluation_id))
    drawn = None
    if found["kind"] == "bipartite" and found["status"] == "ready":
        roc = await page.api.get(
            at("/v1/evaluations", evaluation_id, "roc"), max_points=CURVE_POINTS
        )
        points = [(point["fpr"], point["tpr"]) for point in roc["points"]]
        drawn = charts.roc(
            RocPlot("ROC curve on this dataset", [Line(found["dataset_name"], points)]), 440
        )
    return page.show(
        "evaluation.html",
        found=found,
        figures=_figures(found),
        curve=drawn,
        gone=await find_gone(page, found),
    )


def _figures(evaluation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the evaluation's figures with their intervals, each with its name."""
    metrics = evaluation["metrics"] or {}
    found = [
        (name, metrics[key])
        for key, name in (("auc", "AUC"), ("pair_order", "Pairs in order"))
        if metrics.get(key)
    ]
    found += [(_title(each), each) for each in metrics.get("pauc") or ()]
    found += [
        (f"TPR at FPR {number(each['fpr'])}", {**each, "value": each["tpr"]})
        for each in metrics.get("tpr_at_fpr") or ()
    ]
    for label in metrics.get("labels") or ():
        if label.get("auc"):
            found.append((f"AUC of {label.get('label') or label.get('name')}", label["auc"]))
    return found


@router.post("/evaluations/{evaluation_id}/delete")
async def delete_evaluation(evaluation_id: str, page: PageDep) -> Response:
    """Delete an evaluation."""
    await page.api.delete(at("/v1/evaluations", evaluation_id))
    return page.go("/console/evaluations")
