"""The curve of a model, its table of cuts and its slider."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, cast

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.errors import ProblemError
from rankwright.resources import AsyncModel
from rankwright.types import Band as RocBand
from rankwright.types import (
    Cut,
    Difference,
    Interval,
    Metrics,
    Model,
    ModelParts,
    OperatingPoint,
    OperatingPoints,
    Roc,
)
from starlette.responses import JSONResponse, Response

from app.console import charts
from app.console.api import refusal
from app.console.session import ConsoleRoute, Page, PageDep
from app.roc_plot import Axis, Band, Line, RocPlot, Window

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
CUTS, CURVE_POINTS = 300, 400
TERMS = ("cost_false_positive", "cost_false_negative", "prevalence")
_FIGURES = ("fpr", "tpr", "precision", "lift", "flagged", "cost")


def read_terms(page: Page) -> dict[str, Any]:
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


async def read_parts(
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


def make_curve(page: Page, found: ShownModel, metrics: Metrics) -> Curve:
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
        terms=read_terms(page),
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
    found = await read_parts(
        page.client.models[ref], ("metrics", "operating_points"), {"on": on}, read_terms(page)
    )
    metrics, cuts = found.parts.metrics, found.parts.operating_points
    if not isinstance(metrics, Metrics) or cuts is None:
        raise refusal(404, "Not found", found.absent("operating_points") or "there is no curve")
    start, problem = _start(cuts, found.model.objective), found.terms_problem
    return JSONResponse(
        {"problem": problem and problem["detail"], **_table(cuts, metrics, start)},
        headers={"Cache-Control": "no-store"},
    )
