"""The tabs of a model's page, and parts of them: importance, dependence, structure, baselines and others."""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.types import (
    AliasSummary,
    MetricBaselines,
    Model,
    ScorecardAttribute,
    ScorecardCharacteristic,
    WindowBaselines,
)
from starlette.responses import Response

from app.console import charts
from app.console.api import attempt
from app.console.rendering import date, percent, points
from app.console.session import ConsoleRoute, ModelDep, Page, PageDep
from app.console.words import PARAMETERS
from app.http.forms import number_or_text
from app.measures import (
    baseline,
    is_separated,
    time_effect,
)
from app.platform.errors import shown

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
T = TypeVar("T")
PointsConverter = Callable[[float], float]
"""Converts a score of a scorecard to points."""
Limits = tuple[float, float, float]
SHOWN_JSON = 20_000
MAX_VERSIONS = 50


TABS = {
    "decide": "Decide",
    "score": "Score",
    "explain": "Explain",
    "validation": "Validation",
    "history": "History and files",
}
"""The tabs of a model's page and their titles. The first one is the page itself."""
DECISION = ("cutoff", "review", "rows", "cost_false_positive", "cost_false_negative", "prevalence")
"""The parameters of the decision panel that the links to the tabs keep, so that nothing has to be typed again."""
_TAB_OF = {
    "top": "decide",
    "groups": "decide",
    "score": "score",
    **dict.fromkeys(("scorecard", "importance", "dependence", "structure"), "explain"),
    **dict.fromkeys(("calibration", "baselines", "bounds"), "validation"),
    **dict.fromkeys(("aliases", "comments", "leaderboard", "versions"), "history"),
}
"""The tab that each part belongs to."""


async def show_tab(
    page: Page, model: Model, template: str, tab: str, status: int = 200, **values: Any
) -> Response:
    here = page.outside(model_page(model.id))
    came_by = str(page.request.path_params["ref"]).rpartition("@")
    alias = page.asked("alias") or (came_by[2] if came_by[1] else "")
    if alias not in model.aliases:
        if asked := page.asked("alias"):
            known = (
                f"known aliases: {', '.join(model.aliases)}"
                if model.aliases
                else "it has no aliases"
            )
            page.tell(f"{model.name}:{model.version} has no alias {shown(asked)}: {known}.")
        alias = next(iter(model.aliases), "")
    scored_as = f"{model.name}@{alias}" if alias else model.id
    decision = {name: entered for name in DECISION if (entered := page.asked(name))}
    return page.show(
        template,
        status,
        model=model,
        here=here,
        suspended=await _suspended(page, model),
        scored_as=scored_as,
        tabs=TABS,
        tab=tab,
        kept=DECISION,
        decision=f"?{urlencode(decision)}" if decision else "",
        **values,
    )


async def _suspended(page: Page, model: Model) -> list[AliasSummary]:
    if not model.aliases:
        return []
    found = await page.client.models.alias_page(model.name, limit=200)
    return [each for each in found.data if each.break_glass_until is not None]


async def show_part(
    page: Page, model: Model, name: str, status: int = 200, **values: Any
) -> Response:
    """Return a fragment for the script, else the tab with only this part."""
    template = f"model_{name}.html"
    if "hx-request" in page.request.headers:
        here = page.outside(model_page(model.id))
        return page.show(template, status, model=model, here=here, alone=False, **values)
    return await show_tab(
        page,
        model,
        "model_part.html",
        _TAB_OF[name],
        status,
        name=name,
        part=template,
        alone=False,
        **values,
    )


async def read_or_error(asked: Awaitable[T]) -> tuple[T | None, str | None]:
    """Return the answer and None; or None and the error text if there is no such resource."""
    found, problem = await attempt(asked, 404, 409, 422, 429)
    return found, None if problem is None else problem["detail"]


@router.get("/{ref}/explain")
async def read_explain(page: PageDep, model: ModelDep) -> Response:
    """Each part is requested after the page is loaded."""
    return await show_tab(page, model, "model_explain.html", "explain", scorecards=SCORECARDS)


@router.get("/{ref}/versions")
async def read_versions(page: PageDep, model: ModelDep) -> Response:
    """Each version links to the same tab of its page."""
    found = await page.client.models.page(name=model.name, limit=MAX_VERSIONS)
    at = page.asked("tab")
    tab = "" if at not in TABS or at == next(iter(TABS)) else f"/{at}"
    return await show_part(
        page, model, "versions", versions=found.data, more=found.has_more, same_tab=tab
    )


@router.get("/{ref}/importance")
async def read_importance(page: PageDep, model: ModelDep) -> Response:
    label = _label(page, model)
    found, words = await read_or_error(page.client.models[model.id].importance(label=label))
    chart = None
    if found is not None:
        whole = sum(max(each.importance, 0.0) for each in found.features) or 1.0
        values = [(each.name, each.importance / whole) for each in found.features[:20]]
        chart = charts.bars(values, "Relative feature importance", write=percent)
    return await show_part(
        page, model, "importance", found=found, words=words, chart=chart, label=label
    )


@router.get("/{ref}/dependence")
async def read_dependence(page: PageDep, model: ModelDep) -> Response:
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


def seconds(written: str) -> float:
    """Raises ValueError."""
    try:
        return datetime.fromisoformat(written).replace(tzinfo=UTC).timestamp()
    except ValueError:  # a typed time beyond the calendar is written as a number
        return float(written)


_PLACES: Mapping[str, Callable[[Any], float]] = {"numeric": float, "datetime": seconds}


def _word(value: object) -> str:
    if value is None:
        return "missing"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _label(page: Page, model: Model) -> str | None:
    """Default to the first label; None for models without several labels."""
    if not model.labels:
        return None
    return page.asked("label") or model.labels[0].name


SCALE = {name: PARAMETERS[name] for name in ("pdo", "base_score", "base_odds")}
"""The fields of a scorecard's scale, and their labels."""
SCORECARDS = ("logistic", "scorecard", "additive")
"""Algorithms that have a scorecard."""


@router.get("/{ref}/scorecard")
async def read_scorecard(page: PageDep, model: ModelDep) -> Response:
    """Show a table, and the curves of an additive model."""
    of, entered = page.client.models[model.id], {name: page.asked(name) for name in SCALE}
    asked = {name: number_or_text(value) for name, value in entered.items() if value}
    found, problem = await attempt(of.scorecard(**cast(Any, asked)), 422)
    if found is None:
        found = await of.scorecard()
    return await show_part(
        page,
        model,
        "scorecard",
        200 if problem is None else problem["status"],
        found=found,
        labels=SCALE,
        entered={name: entered[name] or f"{getattr(found, name):g}" for name in SCALE},
        in_words=_of_attribute,
        curves={each.name: _curve_of(each) for each in found.characteristics},
        problem=problem,
    )


async def points_converter(page: Page, model: Model) -> PointsConverter | None:
    """Return None if the model is no scorecard, the key has no scope `read`, or the artifact cannot be read: the page
    then shows no points.
    """
    if model.algorithm["name"] != "scorecard" or not page.can("read"):
        return None
    asked = page.client.models[model.id].points_cutoff(threshold=0.0)
    zero, _ = await attempt(asked, 404, 409, 422, 429, 500, 503)
    if zero is None:
        return None
    at_zero, per_unit = zero.points, zero.pdo / math.log(2.0)
    return lambda score: at_zero - per_unit * score


def _curve_of(of: ScorecardCharacteristic) -> Markup | None:
    """Draw points over numbers or categories; None if they are linear in a number."""
    steps = [each for each in of.attributes if each.of == "values"]
    if steps:
        ends = [float(each.high) for each in steps[:-1] if not isinstance(each.high, str | None)]
        if len(ends) == len(steps) - 1:
            heights = [each.points for each in steps]
            return charts.step_function(ends, heights, f"Points by {of.name}")
    words = [(_of_attribute(each), each.points) for each in of.attributes if each.of != "unit"]
    return charts.bars(words, f"Points by {of.name}", points, width=360.0) if words else None


def _of_attribute(each: ScorecardAttribute) -> str:
    match each.of:
        case "category":
            return str(each.category)
        case "unit":
            return "per unit"
        case "missing":
            return "missing"
        case "special":
            return f"special value {each.low}"
    if each.low is None:
        return "any value" if each.high is None else f"up to {each.high}"
    return f"above {each.low}" if each.high is None else f"above {each.low} to {each.high}"


@router.get("/{ref}/structure")
async def read_structure(page: PageDep, model: ModelDep) -> Response:
    """Show a tree as drawing and text, rules as a table, anything else as JSON."""
    of = page.client.models[model.id]
    found, shown = None, ""
    text, _ = await attempt(of.download("structure", format="text"), 422)
    if text is None:
        found = await of.structure()
        found.pop("model_id")
        shown = json.dumps(found, indent=1, ensure_ascii=False)
    return await show_part(
        page,
        model,
        "structure",
        tree=None if text is None else text.decode(),
        found=found,
        rules=[] if found is None else _rules(found),
        shown=shown[:SHOWN_JSON],
        cut_short=len(shown) > SHOWN_JSON,
    )


def _rules(found: Json) -> list[tuple[str | None, list[Json]]]:
    """There may be several labels."""
    if found.get("rules"):
        return [(None, found["rules"])]
    labels = found.get("labels") or []
    return [(each["label"], each["rules"]) for each in labels if each.get("rules")]


@router.get("/{ref}/baselines")
async def read_baselines(page: PageDep, model: ModelDep) -> Response:
    found, words = await read_or_error(page.client.models[model.id].baselines())
    drawn: list[tuple[WindowBaselines | MetricBaselines, Markup]] = []
    compared: list[WindowBaselines | MetricBaselines] = []
    if found is not None:
        compared += found.windows
        compared += [found.metric] if found.metric is not None else []
    for window in compared:
        estimates = [
            charts.Estimate(name, *cast(Limits, (area.value, area.low, area.high)))
            for name, area in [
                (str(model.algorithm["name"]), window.chosen),
                *((baseline(each.algorithm), each.area) for each in window.baselines),
            ]
        ]
        drawn.append((window, charts.forest(estimates, "Values with their intervals")))
    of_time = [
        time_effect(each.algorithm, each.random_split.to_json())
        for each in (() if found is None else found.baselines)
        if each.random_split is not None
    ]
    return await show_part(
        page,
        model,
        "baselines",
        found=found,
        words=words,
        windows=drawn,
        of_time=of_time,
        words_of=baseline,
        is_separated=is_separated,
    )


@router.get("/{ref}/leaderboard")
async def read_leaderboard(page: PageDep, model: ModelDep) -> Response:
    found, words = await read_or_error(page.client.models[model.id].leaderboard())
    return await show_part(page, model, "leaderboard", found=found, words=words)


@router.get("/{ref}/bounds")
async def read_bounds(page: PageDep, model: ModelDep) -> Response:
    found, words = await read_or_error(page.client.models[model.id].bounds())
    return await show_part(page, model, "bounds", found=found, words=words)


def model_page(ref: str) -> str:
    return f"/console/models/{quote(ref, safe='')}"
