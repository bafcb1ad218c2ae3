"""The decision panel of a model: pictures of its list over one table of cuts, and the cut that is linked in them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, cast

from fastapi import APIRouter
from markupsafe import Markup
from rankwright import curve_plots
from rankwright.errors import ProblemError
from rankwright.resources import AsyncModel
from rankwright.types import (
    AliasSummary,
    Calibration,
    Cut,
    Difference,
    Interval,
    Metrics,
    Model,
    ModelCurve,
    ModelParts,
    OperatingPoint,
    OperatingPoints,
    Roc,
)
from rankwright.types import Band as RocBand
from starlette.responses import JSONResponse, Response

from app.console import charts
from app.console.api import refusal
from app.console.model_parts import read_or_error
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.top import draw_reliability
from app.roc_plot import Axis, Band, Line, RocPlot, Window

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
CUTS, CURVE_POINTS = 300, 400
TERMS = ("cost_false_positive", "cost_false_negative", "prevalence")
_FIGURES = ("fpr", "tpr", "precision", "lift", "flagged", "cost")
NOTHING = "none"
"""The cut that flags nothing, in an address."""
MAX_ALIASES = 50
"""Aliases of a name that are offered to save a cut to."""
SIZE = 400.0
"""Side of a picture, in units of its words: small, because several stand side by side."""


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
class Wishes:
    """What the address asks of the panel, as it was entered: a cut, and how many rows of how many can be reviewed."""

    cut: str
    review: str
    rows: str
    problems: list[str]

    @property
    def share(self) -> float | None:
        """Return the fraction of the rows that can be reviewed, at most 1; None if it was not entered, or badly."""
        review, rows = _positive(self.review), _positive(self.rows)
        return None if review is None or rows is None else min(review / rows, 1.0)


def read_wishes(page: Page) -> Wishes:
    """Return what the address asks of the panel, and what is wrong with it."""
    cut, review, rows = (page.asked(name) or "" for name in ("cut", "review", "rows"))
    problems = []
    if cut not in ("", NOTHING) and _number(cut) is None:
        problems.append(f"The cut must be a score, got {cut[:100]!r}.")
    for words, entered, other in (
        ("of rows that you can review", review, rows),
        ("of rows that come", rows, review),
    ):
        if entered and _positive(entered) is None:
            problems.append(f"The number {words} must be greater than 0, got {entered[:100]!r}.")
        elif other and not entered:
            problems.append(f"The number {words} is missing.")
    return Wishes(cut, review, rows, problems)


def _number(entered: str) -> float | None:
    try:
        value = float(entered)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _positive(entered: str) -> float | None:
    value = _number(entered)
    return value if value is not None and value > 0 else None


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
class Picture:
    """A picture of the panel: its name in the page, its title, the drawing, and what it shows."""

    name: str
    title: str
    drawn: Markup
    note: str


@dataclass(frozen=True)
class Panel:
    """What the decision panel shows: pictures, a table of cuts, the first cut, and a requested one."""

    cuts: OperatingPoints
    table: Json
    start: SliderPositions
    chosen: Cut
    counts: ConfusionCounts
    workload: str
    linear: Markup
    log: Markup
    pictures: list[Picture]
    scale: str
    band: RocBand | None
    wishes: Wishes
    terms: Mapping[str, str | None]
    problem: Json | None
    by: str
    at: str
    asked: OperatingPoint | None
    refused: Json | None
    aliases: Sequence[AliasSummary] | None
    """Those of the model's name that a cut can be saved to; None if the key may not save."""


async def make_panel(page: Page, found: ShownModel, metrics: Metrics, on: str) -> Panel:
    """Return the decision panel. A model with these metrics has a curve."""
    cuts, roc = cast(OperatingPoints, found.parts.operating_points), cast(Roc, found.parts.roc)
    objective, wishes, terms = found.model.objective, read_wishes(page), read_terms(page)
    of = page.client.models[found.model.id]
    (scores, _), (calibration, _) = await asyncio.gather(
        read_or_error(of.curve("histogram", on=on)), read_or_error(of.read_calibration())
    )
    aliases = None
    if page.can("train") and on == "validation":
        listed = await page.client.models.alias_page(found.model.name, limit=MAX_ALIASES)
        aliases = listed.data
    start = _start(cuts, objective, wishes)
    chosen = cuts.points[start.index]
    pictures = [*_pictures_of_cuts(cuts, chosen), *_pictures_of_scores(cuts, start.index, scores)]
    if on == "validation" and calibration is not None:
        pictures += _picture_of_probabilities(cuts, start.index, calibration)
    return Panel(
        cuts=cuts,
        table=_table(cuts, metrics, start),
        start=start,
        chosen=chosen,
        counts=_counts(chosen, metrics),
        workload=_workload(chosen, _positive(wishes.rows)),
        linear=_drawn(roc, objective, chosen, log=False),
        log=_drawn(roc, objective, chosen, log=True),
        pictures=pictures,
        scale="log" if page.asked("scale") == "log" else "linear",
        band=roc.band,
        wishes=wishes,
        terms=terms,
        problem=found.terms_problem,
        by=page.asked("by") or "fpr",
        at=page.asked("at") or "",
        asked=found.cut,
        refused=found.cut_problem,
        aliases=aliases,
    )


def _rate(interval: Interval | Difference) -> float:
    """Return the value of a rate, which every cut has."""
    return cast(float, interval.value)


def _start(cuts: OperatingPoints, objective: Json, wishes: Wishes) -> SliderPositions:
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
    name: str = next(each for each in ("cost", "objective", "balance") if each in places)
    index = places[name]
    if wishes.share is not None:
        name, index = "capacity", within(points, wishes.share)
    threshold = _number(wishes.cut)
    if wishes.cut == NOTHING:
        name, index = "address", 0
    elif threshold is not None:
        name = "address"
        index = min(range(1, len(points)), key=lambda i: abs(_threshold(points[i]) - threshold))
    return SliderPositions(index, name, places)


def within(points: Sequence[Cut], share: float) -> int:
    """Return the index of the last cut that flags at most this fraction of the rows."""
    return max(i for i, cut in enumerate(points) if i == 0 or _rate(cut.flagged) <= share + 1e-12)


def _threshold(cut: Cut) -> float:
    return math.inf if cut.threshold is None else cut.threshold


def _table(cuts: OperatingPoints, metrics: Metrics, start: SliderPositions) -> Json:
    """Return the cuts for the script: thresholds exactly, other values to six digits."""
    figures = [name for name in _FIGURES if getattr(cuts.points[0], name) is not None]
    figures_of = attrgetter(*figures)
    return {
        "figures": figures,
        "thresholds": [cut.threshold for cut in cuts.points],
        "probabilities": _short(cuts.probabilities or []),
        "cuts": [
            _short(
                [
                    limit
                    for figure in figures_of(cut)
                    for limit in (figure.value, figure.low, figure.high)
                ]
            )
            for cut in cuts.points
        ],
        "prevalence": cuts.points[0].prevalence,
        "classes": [metrics.positive_weight, metrics.negative_weight],
        "places": start.places,
    }


def _short(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.6g}") for value in values]


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


def _workload(cut: Cut, rows: float | None) -> str:
    """Return in words what a cut does with so many rows. The script says the same while the cut is dragged."""
    rows = rows or 1000.0
    positives = cut.prevalence * rows
    flagged, caught = _rate(cut.flagged) * rows, _rate(cut.tpr) * positives
    return (
        f"Of {rows:,.0f} rows this cut flags about {flagged:,.0f}: about {caught:,.0f} positives and "
        f"{flagged - caught:,.0f} false alarms. It misses about {positives - caught:,.0f} positives."
    )


def _pictures_of_cuts(cuts: OperatingPoints, chosen: Cut) -> list[Picture]:
    """Return the pictures whose points are the cuts: they depend on the costs and on the fraction of positives."""
    points, prevalence = cuts.points, chosen.prevalence
    precise = [(_rate(c.tpr), c.precision.value) for c in points if c.precision.value is not None]
    found = curve_plots.precision_recall(
        precise, prevalence, cursor=(_rate(chosen.tpr), chosen.precision.value or 0.0)
    )
    gained = curve_plots.gains(
        [(_rate(cut.flagged), _rate(cut.tpr)) for cut in points],
        cursor=(_rate(chosen.flagged), _rate(chosen.tpr)),
    )
    costly = chosen.cost is not None
    what = "Cost of a row" if costly else "Share of wrong decisions"
    cost = curve_plots.cost_of_cuts(
        [(_rate(cut.flagged), _cost(cut)) for cut in points],
        what,
        cursor=(_rate(chosen.flagged), _cost(chosen)),
    )
    return [
        Picture(
            "precision_recall",
            "Precision and recall",
            charts.square(found, size=SIZE, figures=("tpr", "precision")),
            "how many of the flagged rows are positives, by the share of the positives that is found; dashed, chance.",
        ),
        Picture(
            "gains",
            "Gains",
            charts.square(gained, size=SIZE, figures=("flagged", "tpr")),
            "the share of the positives that is found, by how much of the list is worked off; dashed, chance.",
        ),
        Picture(
            "cost",
            "Cost" if costly else "Wrong decisions",
            charts.square(cost, size=SIZE, figures=("flagged", "cost" if costly else "wrong")),
            "the mean cost of a row at each cut; dashed, rows flagged at random."
            if costly
            else "missed positives and false alarms at each cut, which count alike until you enter costs; dashed, rows "
            "flagged at random.",
        ),
    ]


def _cost(cut: Cut) -> float:
    """Return the mean cost of a row; without costs, as if each error cost 1."""
    if cut.cost is not None:
        return cast(float, cut.cost.value)
    return (1.0 - cut.prevalence) * _rate(cut.fpr) + cut.prevalence * (1.0 - _rate(cut.tpr))


def _pictures_of_scores(
    cuts: OperatingPoints, index: int, found: ModelCurve | None
) -> list[Picture]:
    if found is None:
        return []
    positives = [(each.x, cast(float, each.high), each.y) for each in found.points]
    negatives = [
        (each.x, cast(float, each.high), cast(float, each.negatives)) for each in found.points
    ]
    plot = curve_plots.histogram(positives, negatives)
    threshold = cuts.points[index].threshold
    at = plot.x.high if threshold is None else min(max(threshold, plot.x.low), plot.x.high)
    return [
        Picture(
            "histogram",
            "Scores of each class",
            charts.square(replace(plot, cursor=(at, None)), size=SIZE, figures=("threshold", None)),
            "",
        )
    ]


def _picture_of_probabilities(
    cuts: OperatingPoints, index: int, found: Calibration
) -> list[Picture]:
    if found.reliability is None or cuts.probabilities is None:
        return []
    at = cuts.probabilities[index]
    drawn = draw_reliability(
        found.reliability,
        size=SIZE,
        cursor=(1.0 if at is None else at, None),
        figures=("probability", None),
    )
    note = (
        "the fraction of positives at each probability; shaded, where it lies if the probabilities are right; dashed, "
        "as many as predicted; upright, the probability of a row at the cut."
    )
    return [Picture("reliability", "Reliability of the probabilities", drawn, note)]


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
    return charts.square(
        plot, ("false positive rate (FPR)", "true positive rate (TPR)"), SIZE, ("fpr", "tpr")
    )


@router.get("/{ref}/cuts")
async def read_cuts(page: PageDep, ref: str) -> Response:
    """Return the table of cuts for other costs, and the pictures that change with them; or the API's error."""
    on = page.asked("on") or "validation"
    found = await read_parts(
        page.client.models[ref], ("metrics", "operating_points"), {"on": on}, read_terms(page)
    )
    metrics, cuts = found.parts.metrics, found.parts.operating_points
    if not isinstance(metrics, Metrics) or cuts is None:
        raise refusal(404, "Not found", found.absent("operating_points") or "there is no curve")
    start, problem = (
        _start(cuts, found.model.objective, Wishes("", "", "", [])),
        found.terms_problem,
    )
    pictures = _pictures_of_cuts(cuts, cuts.points[start.index])
    drawn = {each.name: [each.title, each.drawn, each.note] for each in pictures}
    return JSONResponse(
        {
            "problem": problem and problem["detail"],
            "pictures": drawn,
            **_table(cuts, metrics, start),
        },
        headers={"Cache-Control": "no-store"},
    )
