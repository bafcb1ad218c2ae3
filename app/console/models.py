"""Pages on models: the list, and one model with its curve and slider, its structure, aliases and scores."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, TypeVar, cast
from urllib.parse import quote

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.errors import ProblemError
from rankwright.resources import AsyncModel
from rankwright.resources import Page as ApiPage
from rankwright.types import Band as RocBand
from rankwright.types import (
    ControlFigure,
    Controls,
    ControlWindow,
    Cut,
    Difference,
    Feature,
    Interval,
    LabelScores,
    ListedModel,
    Metrics,
    Model,
    ModelParts,
    OperatingPoint,
    OperatingPoints,
    Roc,
)
from starlette.responses import JSONResponse, Response

from app.console import charts
from app.console.api import at, path_segment, refusal
from app.console.rendering import date
from app.console.session import ConsoleRoute, Page, PageDep
from app.http.forms import Fields, number_or_text
from app.http.static import POLICY
from app.roc_plot import Axis, Band, Line, RocPlot, Window

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
T = TypeVar("T")
Limits = tuple[float, float, float]
CUTS, CURVE_POINTS = 300, 400
TERMS = ("cost_false_positive", "cost_false_negative", "prevalence")
MAX_FORM_FEATURES = 100
"""Most fields of the form that scores a row; for a model with more features the row is entered as JSON."""
MAX_ALIASES = 20
SHOWN_JSON = 20_000
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
_FIGURES = ("fpr", "tpr", "precision", "lift", "flagged", "cost")


@router.get("")
async def read_models(page: PageDep) -> Response:
    """List the models, newest first."""
    name, problem = page.asked("name"), None
    try:
        found = await page.client.models.page(name=name, after=page.asked("after"))
    except ProblemError as error:
        found, problem = ApiPage[ListedModel]([], has_more=False, next=None), error.problem
    address = "/console/models" + (f"?name={quote(name, safe='')}" if name else "")
    return page.show(
        "models.html",
        422 if problem else 200,
        found=found,
        name=name or "",
        address=address,
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
    found = await _read_parts(
        page.client.models[ref],
        ("metrics", "roc", "operating_points"),
        {"on": on, "max_points": CURVE_POINTS, "band": "pointwise"},
        _terms(page),
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
        curve=_curve(page, found, metrics) if isinstance(metrics, Metrics) else None,
        problem=problem,
        parameters={
            name: value
            for name, value in model.algorithm.items()
            if name not in ("name", "members")
        },
    )


def _terms(page: Page) -> dict[str, Any]:
    """Return the costs and the prevalence as they were entered."""
    return {name: page.asked(name) for name in TERMS}


@dataclass(frozen=True)
class ShownModel:
    """A model with its parts, and what the API says is wrong with the terms and with the requested cut."""

    model: Model
    parts: ModelParts
    cut: OperatingPoint | None = None
    terms_problem: Json | None = None
    cut_problem: Json | None = None

    def absent(self, part: str) -> str | None:
        """Return the API's words for a part that the model lacks, else None."""
        return next((each.detail for each in self.parts.absent if each.part == part), None)


async def _read_parts(
    of: AsyncModel,
    include: Sequence[str],
    how: Mapping[str, Any],
    terms: Mapping[str, Any],
    cut: Mapping[str, Any] | None = None,
) -> ShownModel:
    """Return a model with its parts, which are asked for at once.

    If the terms or the cut are invalid, the parts are asked for without them, and the answer says what is wrong.
    """
    how = {**how, "points": CUTS}
    names = include if cut is None else (*include, "operating_point")
    try:
        model = await of.read(include=names, **how, **terms, **(cut or {}))
    except ProblemError as error:
        if error.status != 422:
            raise
    else:
        parts = cast(ModelParts, model.included)
        return ShownModel(model, parts, parts.operating_point)
    # Apart, so that each error stands beside its own fields.
    terms_problem, cut_problem, point = None, None, None
    try:
        model = await of.read(include=include, **how, **terms)
    except ProblemError as error:
        if error.status != 422:
            raise
        terms_problem, terms = error.problem, {}
        model = await of.read(include=include, **how)
    parts = cast(ModelParts, model.included)
    if cut is not None and parts.operating_points is not None:
        try:
            point = await of.operating_point(on=how["on"], **terms, **cut)
        except ProblemError as error:
            cut_problem = error.problem
    return ShownModel(model, parts, point, terms_problem, cut_problem)


@dataclass(frozen=True)
class SliderPositions:
    """The first position of the slider, why it is there, and the positions of the buttons."""

    index: int
    name: str
    places: dict[str, int]


@dataclass(frozen=True)
class ConfusionCounts:
    """The confusion table of a cut."""

    true_positives: float
    false_negatives: float
    false_positives: float
    true_negatives: float


@dataclass(frozen=True)
class Curve:
    """What the card of the curve shows: pictures, a table of cuts, the first cut, and a requested one."""

    cuts: OperatingPoints
    table: Json
    start: SliderPositions
    chosen: Cut
    counts: ConfusionCounts
    linear: Markup
    log: Markup
    scale: str
    band: RocBand | None
    terms: Mapping[str, str | None]
    problem: Json | None
    by: str
    at: str
    asked: OperatingPoint | None
    refused: Json | None


def _curve(page: Page, found: ShownModel, metrics: Metrics) -> Curve:
    """Return what the card of the curve shows. A model with these metrics has a curve."""
    cuts, roc = cast(OperatingPoints, found.parts.operating_points), cast(Roc, found.parts.roc)
    objective = found.model.objective
    start = _start(cuts, objective)
    chosen = cuts.points[start.index]
    return Curve(
        cuts=cuts,
        table=_table(cuts, metrics, start),
        start=start,
        chosen=chosen,
        counts=_counts(chosen, metrics),
        linear=_drawn(roc, objective, chosen, log=False),
        log=_drawn(roc, objective, chosen, log=True),
        scale="log" if page.asked("scale") == "log" else "linear",
        band=roc.band,
        terms=_terms(page),
        problem=found.terms_problem,
        by=page.asked("by") or "fpr",
        at=page.asked("at") or "",
        asked=found.cut,
        refused=found.cut_problem,
    )


def _rate(interval: Interval | Difference) -> float:
    """Return the value of a rate, which every cut has."""
    return cast(float, interval.value)


def _start(cuts: OperatingPoints, objective: Json) -> SliderPositions:
    """Return the first position of the slider, its reason, and the positions of the buttons."""
    points = cuts.points

    def gain(index: int) -> float:
        return _rate(points[index].tpr) - _rate(points[index].fpr)

    places = {"balance": max(range(len(points)), key=gain)}
    if objective["metric"] == "pauc":
        fpr_max = objective["fpr_max"] + 1e-12
        inside = [i for i, cut in enumerate(points) if _rate(cut.fpr) <= fpr_max]
        places["objective"] = max(inside, key=lambda i: _rate(points[i].tpr))
    if cuts.of_objective is not None:
        places["objective"] = cuts.of_objective
    if cuts.least_cost is not None:
        places["cost"] = cuts.least_cost
    name = next(name for name in ("cost", "objective", "balance") if name in places)
    return SliderPositions(places[name], name, places)


def _table(cuts: OperatingPoints, metrics: Metrics, start: SliderPositions) -> Json:
    """Return the cuts for the script: thresholds exactly, other values to nine digits."""
    figures = [name for name in _FIGURES if getattr(cuts.points[0], name) is not None]
    figures_of = attrgetter(*figures)
    return {
        "figures": figures,
        "thresholds": [cut.threshold for cut in cuts.points],
        "cuts": [
            [
                None if limit is None else float(f"{limit:.9g}")
                for figure in figures_of(cut)
                for limit in (figure.value, figure.low, figure.high)
            ]
            for cut in cuts.points
        ],
        "classes": [metrics.positive_weight, metrics.negative_weight],
        "places": start.places,
    }


def _counts(cut: Cut, metrics: Metrics) -> ConfusionCounts:
    """Return the confusion table of a cut on the rows of the part."""
    caught = _rate(cut.tpr) * metrics.positive_weight
    flagged = _rate(cut.fpr) * metrics.negative_weight
    return ConfusionCounts(
        true_positives=caught,
        false_negatives=metrics.positive_weight - caught,
        false_positives=flagged,
        true_negatives=metrics.negative_weight - flagged,
    )


def _drawn(shape: Roc, objective: Json, cut: Cut, *, log: bool) -> Markup:
    points = [(point.fpr, point.tpr) for point in shape.points]
    window = None
    if objective["metric"] == "pauc":
        window = Window("partial AUC", objective["fpr_min"], objective["fpr_max"])
    elif objective["metric"] == "tpr":
        window = Window("FPR of the objective", objective["fpr"], objective["fpr"])
    # The axis begins at the power of ten below the first FPR that is not zero.
    decade = min(-1, math.floor(math.log10(min(fpr for fpr, _ in points if fpr > 0))))
    limits = [(each.fpr, cast(float, each.low), cast(float, each.high)) for each in shape.points]
    plot = RocPlot(
        "ROC curve" + (", FPR on a logarithmic scale" if log else ""),
        [Line("", points)],
        x=Axis(10.0**decade, 1.0, log=True) if log else Axis(),
        window=window,
        band=Band("", limits),
        cursor=(_rate(cut.fpr), _rate(cut.tpr)),
    )
    return charts.roc(plot)


@router.get("/{ref}/cuts")
async def read_cuts(page: PageDep, ref: str) -> Response:
    """Return the table of cuts for other costs, for the slider; or the API's error."""
    on = page.asked("on") or "validation"
    found = await _read_parts(
        page.client.models[ref], ("metrics", "operating_points"), {"on": on}, _terms(page)
    )
    metrics, cuts = found.parts.metrics, found.parts.operating_points
    if not isinstance(metrics, Metrics) or cuts is None:
        raise refusal(404, "Not found", found.absent("operating_points") or "there is no curve")
    start, problem = _start(cuts, found.model.objective), found.terms_problem
    return JSONResponse(
        {"problem": problem and problem["detail"], **_table(cuts, metrics, start)},
        headers={"Cache-Control": "no-store"},
    )


async def show_part(
    page: Page, model: Model, name: str, status: int = 200, **values: Any
) -> Response:
    """Return a part of a model's page: as a fragment for the script, else as a page."""
    template = f"model_{name}.html"
    if "hx-request" in page.request.headers:
        return page.show(template, status, model=model, alone=False, **values)
    return page.show("model_part.html", status, model=model, part=template, alone=True, **values)


async def read_or_error(asked: Awaitable[T]) -> tuple[T | None, str | None]:
    """Return an answer; or the API's error text if the model has no such resource."""
    try:
        return await asked, None
    except ProblemError as error:
        if error.status not in (404, 409, 422, 429):
            raise
        return None, error.detail


@router.get("/{ref}/importance")
async def read_importance(page: PageDep, ref: str) -> Response:
    """Show which features matter."""
    model = await page.client.models[ref].read()
    label = _label(page, model)
    found, words = await read_or_error(page.client.models[model.id].importance(label=label))
    chart = None
    if found is not None:
        values = [(each.name, each.importance) for each in found.features[:20]]
        chart = charts.bars(values, "Importance of features")
    return await show_part(
        page,
        model,
        "importance",
        found=found,
        words=words,
        chart=chart,
        label=label,
    )


@router.get("/{ref}/dependence")
async def read_dependence(page: PageDep, ref: str) -> Response:
    """Show mean scores by the values of a feature."""
    model = await page.client.models[ref].read()
    label = _label(page, model)
    feature = page.asked("feature")
    of = page.client.models[model.id]
    if feature is None:  # the most important feature first
        ranked, _ = await read_or_error(of.importance(label=label))
        best = None if ranked is None else next(iter(ranked.features), None)
        feature = model.features[0].name if best is None else best.name
    found, words = await read_or_error(of.partial_dependence(feature, label=label))
    chart = None
    if found is not None:
        axis = found.features[0]
        place = _PLACES.get(axis.type, _word)
        places = [
            (_word(value) if value is None else place(value), score)
            for value, score in zip(axis.values, cast(list[float], found.scores), strict=True)
        ]
        spell = date if axis.type == "datetime" else None
        chart = charts.dependence(places, f"Mean score by {feature}", feature, spell)
    return await show_part(
        page,
        model,
        "dependence",
        found=found,
        words=words,
        chart=chart,
        feature=feature,
        label=label,
    )


def _seconds(written: str) -> float:
    try:
        return datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()
    except ValueError:  # a typed time beyond the calendar is written as a number
        return float(written)


_PLACES: Mapping[str, Callable[[Any], float]] = {"numeric": float, "datetime": _seconds}


def _word(value: object) -> str:
    if value is None:
        return "missing"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _label(page: Page, model: Model) -> str | None:
    """Return the requested label of a model with several, else the first one."""
    if not model.labels:
        return None
    return page.asked("label") or model.labels[0].name


@router.get("/{ref}/structure")
async def read_structure(page: PageDep, ref: str) -> Response:
    """Show the structure of a model: a tree as drawing and text, rules as a table, anything else as JSON."""
    model = await page.client.models[ref].read()
    of = page.client.models[model.id]
    tree, found, shown = None, None, ""
    try:
        tree = (await of.download("structure", format="text")).decode()
    except ProblemError as error:
        if error.status != 422:
            raise
        found = await of.structure()
        found.pop("model_id")
        shown = json.dumps(found, indent=1, ensure_ascii=False)
    return await show_part(
        page,
        model,
        "structure",
        tree=tree,
        found=found,
        rules=[] if found is None else _rules(found),
        shown=shown[:SHOWN_JSON],
        cut_short=len(shown) > SHOWN_JSON,
    )


def _rules(found: Json) -> list[tuple[str | None, list[Json]]]:
    """Return the rules of boosted stumps, for each label if there are several."""
    if found.get("rules"):
        return [(None, found["rules"])]
    labels = found.get("labels") or []
    return [(each["label"], each["rules"]) for each in labels if each.get("rules")]


@router.get("/{ref}/controls")
async def read_controls(page: PageDep, ref: str) -> Response:
    """Show the model beside baselines on the same splits of the data."""
    model = await page.client.models[ref].read()
    found, words = await read_or_error(page.client.models[model.id].controls())
    drawn: list[tuple[ControlWindow | ControlFigure, Markup]] = []
    better: list[str] = []
    compared: list[ControlWindow | ControlFigure] = []
    if found is not None:
        compared += found.windows
        compared += [found.figure] if found.figure is not None else []
    for window in compared:
        estimates = [
            charts.Estimate(name, *cast(Limits, (area.value, area.low, area.high)))
            for name, area in [
                (str(model.algorithm["name"]), window.chosen),
                *((each.algorithm, each.area) for each in window.controls),
            ]
        ]
        drawn.append((window, charts.forest(estimates, "Values with their intervals")))
        if found is not None and _decides(window, found):
            better += [
                each.algorithm
                for each in window.controls
                if _rate(each.difference) < 0
                and each.difference.adjusted_p_value <= 1 - found.level
            ]
    return await show_part(
        page, model, "controls", found=found, words=words, windows=drawn, better=better
    )


def _decides(window: ControlWindow | ControlFigure, found: Controls) -> bool:
    """Return True if the model is judged by this window, or this figure."""
    if isinstance(window, ControlFigure) or found.figure is not None:
        return isinstance(window, ControlFigure)
    decided_on = found.decided_on
    return (window.fpr_min, window.fpr_max) == (decided_on.fpr_min, decided_on.fpr_max)


@router.get("/{ref}/leaderboard")
async def read_leaderboard(page: PageDep, ref: str) -> Response:
    """Show the leaderboard of `auto`."""
    model = await page.client.models[ref].read()
    found, words = await read_or_error(page.client.models[model.id].leaderboard())
    return await show_part(page, model, "leaderboard", found=found, words=words)


@router.get("/{ref}/bounds")
async def read_bounds(page: PageDep, ref: str) -> Response:
    """Show generalisation bounds."""
    model = await page.client.models[ref].read()
    found, words = await read_or_error(page.client.models[model.id].bounds())
    return await show_part(page, model, "bounds", found=found, words=words)


@router.get("/{ref}/aliases")
async def read_aliases(page: PageDep, ref: str) -> Response:
    """Show the aliases, with their history."""
    return await _show_aliases(page, ref)


async def _show_aliases(
    page: Page, ref: str, status: int = 200, problem: Json | None = None, entered: str = ""
) -> Response:
    model = await page.client.models[ref].read()
    models = page.client.models
    found = await models.alias_page(model.name, limit=MAX_ALIASES)
    aliases = [await models.read_alias(model.name, each.alias) for each in found.data]
    listed = await models.page(name=model.name, limit=200)
    versions = {each.id: each.version for each in listed.data}
    return await show_part(
        page,
        model,
        "aliases",
        status,
        aliases=aliases,
        more=found.has_more,
        versions=versions,
        problem=problem,
        entered=entered,
    )


@router.post("/{ref}/aliases")
async def move_alias(page: PageDep, ref: str) -> Response:
    """Point an alias at this model. `revision` is the one that the page has shown; without it the alias is new."""
    form = await page.form()
    alias, revision = str(form.get("alias", "")).strip(), str(form.get("revision", ""))
    model = await page.client.models[ref].read()
    try:
        if not alias or "/" in alias:
            rule = f"an alias must not be empty or have a slash, got {alias[:100]!r}"
            raise refusal(422, "Invalid request", rule)
        await page.client.models.set_alias(
            model.name, path_segment(alias), model.id, revision=revision or None
        )
    except ProblemError as error:
        if error.status not in (404, 412, 422):
            raise
        return await _show_aliases(page, ref, error.status, error.problem, alias)
    return page.go(_page(model.id))


@router.post("/{ref}/aliases/{alias}/remove")
async def remove_alias(page: PageDep, ref: str, alias: str) -> Response:
    """Delete an alias. `revision` is the one that the page has shown."""
    form = await page.form()
    model = await page.client.models[ref].read()
    try:
        await page.client.models.delete_alias(
            model.name, alias, revision=str(form.get("revision", ""))
        )
    except ProblemError as error:
        if error.status not in (404, 412, 422):
            raise
        return await _show_aliases(page, ref, error.status, error.problem)
    return page.go(_page(model.id))


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


@router.get("/{ref}/score")
async def read_score(page: PageDep, ref: str) -> Response:
    """Show the form that scores a row, filled with a row of the dataset if it still exists."""
    model = await page.client.models[ref].read()
    return await _show_score(page, model, await _example(page, model))


@router.post("/{ref}/score")
async def score_row(page: PageDep, ref: str) -> Response:
    """Score the entered row, with the reasons if the model can state them."""
    form = await page.form()
    model = await page.client.models[ref].read()
    label = str(form.get("label", "")) or None
    entered = _entered(form, model.features)
    status, problem, answer = 200, None, None
    try:
        row = _row(form, model.features)
        answer = await _answer(page, model, row, label)
    except ProblemError as error:
        if error.status != 422:
            raise
        status, problem = error.status, error.problem
    if "hx-request" in page.request.headers:
        status = 200  # the asking part of the page shows the problem; the page itself has loaded
    return await _show_score(page, model, entered, status, problem, answer, label)


async def _show_score(
    page: Page,
    model: Model,
    entered: Mapping[str, str],
    status: int = 200,
    problem: Json | None = None,
    answer: ScoredRow | None = None,
    label: str | None = None,
) -> Response:
    chart = None
    if answer is not None and answer.contributions:
        parts = [each for each in answer.contributions.items() if each[1] != 0]
        parts = sorted(parts, key=lambda each: -abs(each[1]))[:20]
        chart = charts.bars(parts, "What each feature adds to the score")
    at_fault = {
        str(each.get("pointer", "")).rpartition("/")[2].replace("~1", "/").replace("~0", "~")
        for each in (problem or {}).get("errors") or []
    }
    return await show_part(
        page,
        model,
        "score",
        status,
        entered=entered,
        as_fields=len(model.features) <= MAX_FORM_FEATURES,
        problem=problem,
        at_fault=at_fault,
        answer=answer,
        chart=chart,
        label=label,
    )


async def _example(page: Page, model: Model) -> dict[str, str]:
    """Return the first row of the dataset as text, by feature; empty if it is gone or may not be read."""
    if not page.can("read"):
        return {}
    try:
        found = await page.client.datasets[model.dataset_id].preview(limit=1)
    except ProblemError:
        return {}
    row = dict(zip(found.columns, found.data[0], strict=True)) if found.data else {}
    known = {feature.name: row.get(feature.name) for feature in model.features}
    if len(known) > MAX_FORM_FEATURES:
        return {"": json.dumps(known, indent=1, ensure_ascii=False)}
    return {name: _field(value) for name, value in known.items()}


def _field(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _entered(form: Fields, features: Sequence[Feature]) -> dict[str, str]:
    if "row" in form:
        return {"": str(form["row"])}
    return {each.name: str(form.get(f"f{i}", "")) for i, each in enumerate(features)}


def _row(form: Fields, features: Sequence[Feature]) -> Json:
    """Return the row for the API; text that is not a number stays text, so that the API says what is wrong."""
    if "row" in form:
        try:
            # A number beyond float64 stays text: the API then names its feature.
            row = json.loads(
                str(form["row"]), parse_constant=_no_number, parse_float=number_or_text
            )
        except (ValueError, RecursionError) as error:
            raise refusal(422, "Invalid request", f"the row is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise refusal(
                422,
                "Invalid request",
                "the row must be a JSON object: each feature's name with its value",
            )
        return row
    row = {}
    for name, entered in _entered(form, features).items():
        text = entered.strip()
        kind = next(each.type for each in features if each.name == name)
        row[name] = _value(text, kind)
    return row


def _no_number(written: str) -> None:
    raise ValueError(f"{written} is no number of JSON")


def _value(text: str, kind: str) -> object:
    if not text:
        return None
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    if kind == "numeric":
        return number_or_text(text)  # JSON has no infinity and no NaN
    return text


@dataclass(frozen=True)
class ScoredRow:
    """The score of a row, its position on the curve, its probability, and the reasons, or why there are none."""

    score: float | None = None
    fpr: float | None = None
    tpr: float | None = None
    probability: float | None = None
    probability_low: float | None = None
    probability_high: float | None = None
    no_probability: str | None = None
    labels: Sequence[tuple[str, float]] = ()
    contributions: Mapping[str, float] = field(default_factory=dict)
    offset: float | None = None
    why_not: str | None = None


async def _answer(page: Page, model: Model, row: Json, label: str | None) -> ScoredRow:
    """Return the score, its position on the curve, its probability, and the reasons; no reasons if the scores are not
    sums of parts.
    """
    of = page.client.models[model.id]
    scores = await of.score_rows([row], interval=True)
    if isinstance(scores, LabelScores):
        label = label or scores.labels[0]
        scored = ScoredRow(labels=list(zip(scores.labels, scores.scores[0], strict=True)))
    else:
        label = None
        scored = ScoredRow(
            score=scores.scores[0],
            fpr=scores.fprs[0] if scores.fprs else None,
            tpr=scores.tprs[0] if scores.tprs else None,
            probability=scores.probabilities[0] if scores.probabilities else None,
            probability_low=scores.probabilities_low[0] if scores.probabilities_low else None,
            probability_high=scores.probabilities_high[0] if scores.probabilities_high else None,
            no_probability=scores.no_probability,
        )
    try:
        (reasons,) = (await of.explain([row], label=label)).explanations
    except ProblemError as error:
        if error.status != 422:
            raise
        return replace(scored, why_not=error.detail)
    return replace(scored, contributions=reasons.contributions, offset=reasons.offset)


def _page(ref: str) -> str:
    return f"/console/models/{quote(ref, safe='')}"
