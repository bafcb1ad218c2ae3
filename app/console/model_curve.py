"""The decision panel of a model: charts of a table of cutoffs, in which the selected cutoff is marked."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast

from fastapi import APIRouter
from markupsafe import Markup
from rankwright import plots
from rankwright.client import AsyncModels
from rankwright.errors import ProblemError
from rankwright.plots import Axis, Band, Window
from rankwright.types import (
    Alias,
    AliasSummary,
    Calibration,
    Cutoff,
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
from app.console.api import attempt, refusal
from app.console.model_parts import PointsConverter, points_converter, read_or_error
from app.console.rendering import number, percent
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.top import draw_reliability
from app.console.words import FieldLabel, FormFaults, place_faults
from app.http.forms import cost_or_text
from app.measures import CHOSEN_ON_ROWS, OPTIMISTIC, note_of_kept
from app.platform.errors import advise_on_number, shown

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
CUTOFFS, CURVE_POINTS = 300, 400
CUTOFF_KINDS = ("fpr", "tpr", "threshold", "cost")
"""What a threshold can be asked by."""
TERMS = {
    "cost_false_positive": "The cost of a false positive must be 0 or more",
    "cost_false_negative": "The cost of a false negative must be 0 or more",
    "prevalence": "The fraction of positives must be a number between 0 and 1, such as 0.05",
}
"""The fields of costs, and the rule of each."""
COST_COLUMNS = ("amount", "rule", "rule_flags")
"""The fields of columns that costs depend on, and of the value of the rule that means flagged."""
_DIGITS = re.compile(r"[0-9]{1,13}")
MAX_REVIEWED = 1e12
"""Greatest number of rows that can be entered."""
CAPACITY = {
    "review": {
        "wrong": "The number of rows to review must be a whole number above 0 without separators, such as 1000",
        "missing": "Also enter how many rows you can review.",
        "above": "The number of rows to review must not exceed the number of rows per day.",
    },
    "rows": {
        "wrong": "The number of rows per day must be a whole number above 0 without separators, such as 1000",
        "missing": "Also enter how many rows you get per day.",
    },
}
"""The fields of what can be reviewed, and what is said of a wrong value, a missing one, and one that is too great."""
_METRICS = (
    "fpr",
    "tpr",
    "precision",
    "lift",
    "flagged",
    "cost",
    "saved_to_random",
    "saved_to_rule",
)
NOTHING = "none"
"""The cutoff that flags nothing, in an address."""
MAX_ALIASES = 50
"""Aliases of a name that are offered to save a cutoff to."""
SIZE = 400.0
"""Side of a picture, in units of its words: small, because several stand side by side."""


def read_terms(page: Page) -> dict[str, str | None]:
    return {name: page.asked(name) for name in (*TERMS, *COST_COLUMNS)}


def number_terms(
    terms: Mapping[str, str | None], dialect: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return the entered terms for the API: numbers have a decimal point, or the notation of the training table. Text
    that is not a number, or that means another number in the table, stays text, so that the API reports the error.
    """
    found: dict[str, Any] = {}
    for name, text in terms.items():
        value = cost_or_text(text or "", dialect) if name in TERMS else text
        # The API would read 1.234 as a number, whatever it means in the table.
        found[name] = repr(value) if name in TERMS and isinstance(value, str) else value
    return found


async def read_dialect(models: AsyncModels, ref: str, terms: Mapping[str, str | None]) -> Any:
    """Return the training table's notation; None if only digits were entered, which mean the same in each."""
    entered = [text for name in TERMS if (text := terms[name])]
    if all(_DIGITS.fullmatch(each.strip()) for each in entered):
        return None
    return (await models[ref].read()).dialect


def term_errors(problem: Json | None, terms: Mapping[str, str | None]) -> dict[str, str]:
    """Return errors of costs, prevalence and columns by field."""
    errors = (problem or {}).get("errors") or []
    named = [each.get("parameter") for each in errors]
    found = {
        each["parameter"]: f"{each['detail']}."
        for each in errors
        if each.get("parameter") in COST_COLUMNS
    }
    for name in (name for name in TERMS if name in named):
        entered = terms[name]
        if entered is None:
            found[name] = "Enter both costs."
        else:
            rule = f"{TERMS[name]}, got {shown(entered)}"
            value = _number(entered)
            # A number in the range was refused: by the notation of the table it is another one.
            is_plain = value is not None and value >= 0 and (name != "prevalence" or 0 < value < 1)
            whole, part = entered.strip().replace(".", ""), entered.strip().replace(".", ",")
            found[name] = (
                f"{shown(entered)} can mean {whole} or {part} here. Write {whole}, or {part} with a decimal comma."
                if is_plain
                else f"{advise_on_number(rule, entered)}."
            )
    return found


@dataclass(frozen=True)
class ShownModel:
    """A model with its parts, and the API's errors for the terms and for the requested cutoff."""

    model: Model
    parts: ModelParts
    cutoff: OperatingPoint | None = None
    terms_problem: Json | None = None
    cutoff_problem: Json | None = None

    def absent(self, part: str) -> str | None:
        """Return why the model lacks a part."""
        return next((each.detail for each in self.parts.absent if each.part == part), None)


async def read_parts(
    models: AsyncModels,
    ref: str,
    include: Sequence[str],
    how: Mapping[str, Any],
    terms: Mapping[str, Any],
    cutoff: Mapping[str, Any] | None = None,
) -> ShownModel:
    """Request the parts of a model concurrently.

    If the terms or the cutoff are invalid, the parts are requested without them, and the result has the errors.
    """
    how, of = {**how, "points": CUTOFFS}, models[ref]
    terms = number_terms(terms, await read_dialect(models, ref, terms))
    names = include if cutoff is None else (*include, "operating_point")
    model, _ = await attempt(of.read(include=names, **how, **terms, **(cutoff or {})), 409, 422)
    if model is not None:
        parts = cast(ModelParts, model.included)
        return ShownModel(model, parts, parts.operating_point)
    # Separate requests, so that each error appears next to its own fields.
    cutoff_problem, point = None, None
    model, terms_problem = await attempt(of.read(include=include, **how, **terms), 409, 422)
    if model is None:
        terms, model = {}, await of.read(include=include, **how)
    parts = cast(ModelParts, model.included)
    if cutoff is not None and parts.operating_points is not None:
        try:
            point = await models[model.id].operating_point(on=how["on"], **terms, **cutoff)
        except ProblemError as error:
            cutoff_problem = error.problem
    return ShownModel(model, parts, point, terms_problem, cutoff_problem)


@dataclass(frozen=True)
class PanelQuery:
    """The entered query of the decision panel: a cutoff, or an alias that has one, and the review capacity.

    `place` names one of the cutoffs that the panel searches (`PLACES`). `why` (one of `WHY`) is the reason for the
    cutoff; `errors` are the errors by field.
    """

    cutoff: str = ""
    alias: str = ""
    place: str = ""
    review: str = ""
    rows: str = ""
    why: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """The fraction of rows that can be reviewed; None if absent or invalid."""
        review, rows = _positive(self.review), _positive(self.rows)
        return None if review is None or rows is None or review > rows else review / rows


def read_query(page: Page) -> PanelQuery:
    """Each invalid parameter has an error."""
    cutoff, alias, review, rows = (
        page.asked(name) or "" for name in ("cutoff", "alias", "review", "rows")
    )
    errors = {}
    if cutoff not in ("", NOTHING) and _number(cutoff) is None:
        errors["cutoff"] = (
            advise_on_number(f"The cutoff must be a score, got {shown(cutoff)}", cutoff) + "."
        )
    for name, entered, other in (("review", review, rows), ("rows", rows, review)):
        if entered and _positive(entered) is None:
            errors[name] = f"{CAPACITY[name]['wrong']}, got {entered[:100]!r}."
        elif other and not entered:
            errors[name] = CAPACITY[name]["missing"]
    if not errors and review and cast(float, _positive(review)) > cast(float, _positive(rows)):
        errors["review"] = CAPACITY["review"]["above"]
    return PanelQuery(cutoff, alias, page.asked("place") or "", review, rows, errors=errors)


def _number(entered: str) -> float | None:
    """Return None for text that is no finite number."""
    try:
        value = float(entered)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _positive(entered: str) -> float | None:
    """Only digits are allowed, because a separator may mean thousands or decimals."""
    value = int(entered) if _DIGITS.fullmatch(entered.strip()) else 0
    return value if 0 < value <= MAX_REVIEWED else None


@dataclass(frozen=True)
class SliderPositions:
    """The initial position of the slider, the reason for it, and the positions of the buttons."""

    index: int
    name: str
    places: dict[str, int]
    """That of an alias is called as the alias, with an @ before it."""


@dataclass(frozen=True)
class ConfusionCounts:
    true_positives: int
    false_negatives: int
    false_positives: int
    true_negatives: int


class Workload(NamedTuple):
    """The consequences of a cutoff for the expected rows: one line of counts, and sentences."""

    line: str
    rest: str


@dataclass(frozen=True)
class Picture:
    name: str
    title: str
    drawn: Markup
    note: str


@dataclass(frozen=True)
class SaveForm:
    """The entered values for saving a cutoff to an alias, and their errors."""

    alias: str
    keep: str
    error: str


@dataclass(frozen=True)
class Panel:
    """Charts, a table of cutoffs, the initial cutoff, and the requested one."""

    cutoffs: OperatingPoints
    table: Json
    start: SliderPositions
    chosen: Cutoff
    counts: ConfusionCounts
    words: Mapping[str, str]
    """Why a position of the slider is one: by its name, or by what the address asks."""
    why: str
    verdict: str
    workload: Workload
    positive: str
    """The rows to be caught, as the table has them: `outcome = bad`."""
    rows: float  # of how many rows the flagged ones are counted
    exceeded: str
    linear: Markup
    log: Markup
    pictures: list[Picture]
    scale: str
    band: RocBand | None
    query: PanelQuery
    terms: Mapping[str, str | None]
    columns: Mapping[str, Sequence[str]]
    """The columns that can be chosen, by field."""
    costs_note: str
    errors: Mapping[str, str]
    problem: Json | None
    """What is wrong with the costs and belongs to none of their fields."""
    by: str
    at: str
    asked: OperatingPoint | None
    refused: FormFaults
    """What is wrong with the threshold that was asked for."""
    aliases: Sequence[AliasSummary] | None
    """Those of the model's name that a cutoff can be saved to; None if the key may not save."""
    save: SaveForm | None
    saved: Alias | None
    """The alias that a cutoff has just been saved to."""
    chosen_here: Json
    """The names of positions that were chosen on the rows whose rates are shown, and what is said of them."""
    capacity: ClassVar = CAPACITY


async def make_panel(
    page: Page,
    found: ShownModel,
    metrics: Metrics,
    on: str,
    query: PanelQuery,
    save: SaveForm | None = None,
) -> Panel:
    """`metrics` must belong to a model with a ROC curve."""
    cutoffs, roc = cast(OperatingPoints, found.parts.operating_points), cast(Roc, found.parts.roc)
    objective, terms = found.model.objective or {}, read_terms(page)
    of = page.client.models[found.model.id]
    (scores, _), (calibration, _), to_points, columns = await asyncio.gather(
        read_or_error(of.curve("histogram", on=on)),
        read_or_error(of.read_calibration()),
        points_converter(page, found.model),
        _columns(page, found.model) if on == "validation" else _no_columns(),
    )
    may_save = page.can("train", found.model.name) and on == "validation"
    aliases = await _aliases(page, found.model.name) if may_save or cutoffs.of_aliases else []
    cutoffs = _at_own_thresholds(cutoffs, aliases)
    start = _start(cutoffs, query)
    targets = {
        f"@{each.alias}": note_of_kept(each.guarantee.to_json())
        for each in aliases
        if each.guarantee
    }
    chosen_here = [*CHOSEN_ON_ROWS, *(name for name, note in targets.items() if note)]
    chosen = cutoffs.points[start.index]
    rows = _positive(query.rows) or 1000.0
    name, model = found.model.name, found.model
    positive = f"{model.label} = {model.positive}"
    saved = {each: f"The cutoff of {name}{each}" for each in start.places if each[0] == "@"}
    words = {**WHY, **saved}
    # An alias with this cutoff is the first choice of a reason.
    has_it = [name for name, at in start.places.items() if name[0] == "@" and at == start.index]
    of_alias = start.name if start.name in has_it else next(iter(has_it), None)
    pictures = [
        *_pictures_of_cutoffs(cutoffs, chosen),
        *_pictures_of_scores(cutoffs, start.index, scores),
    ]
    if on == "validation" and calibration is not None:
        pictures += _picture_of_probabilities(cutoffs, start.index, calibration)
    errors = term_errors(found.terms_problem, terms)
    saved_as = page.asked("saved")
    saved_to = [
        each.alias
        for each in aliases
        if each.model_id == found.model.id and each.cutoff and each.cutoff.threshold is not None
    ]
    saved_alias = None
    if saved_as in saved_to:  # with its history, to undo the change
        asked = page.client.models.read_alias(found.model.name, saved_as)
        saved_alias, _ = await attempt(asked, 404)
    return Panel(
        cutoffs=cutoffs,
        table=_table(cutoffs, metrics, start, to_points),
        start=start,
        chosen=chosen,
        counts=count_at(
            _rate(chosen.tpr), _rate(chosen.fpr), metrics.positive_weight, metrics.negative_weight
        ),
        words=words,
        why=words[of_alias or start.name],
        verdict=_verdict(
            chosen,
            words[of_alias] if of_alias else "The cutoff below",
            OPTIMISTIC if is_at(start.places, chosen_here, start.index) else "",
        ),
        workload=_workload(chosen, rows, positive),
        positive=positive,
        rows=rows,
        exceeded=_exceeded(cutoffs, start, query),
        linear=_drawn(roc, objective, chosen, log=False),
        log=_drawn(roc, objective, chosen, log=True),
        pictures=pictures,
        scale=page.choice("scale", ("linear", "log")),
        band=roc.band,
        query=query,
        terms=terms,
        columns=columns,
        costs_note=_costs_note(chosen, rows),
        errors={**errors, **query.errors},
        problem=None if errors else found.terms_problem,
        by=page.choice("by", CUTOFF_KINDS),
        at=page.asked("at") or "",
        asked=found.cutoff,
        refused=place_faults(
            found.cutoff_problem, dict.fromkeys(CUTOFF_KINDS, FieldLabel("at", "Value"))
        ),
        aliases=aliases if may_save else None,
        save=save,
        saved=saved_alias,
        chosen_here={"names": chosen_here, "words": OPTIMISTIC},
    )


WHY = {
    "cost": "The lowest-cost cutoff",
    "objective": "The best cutoff for the objective",
    "ks": "The best KS cutoff (maximum of TPR − FPR)",
    "capacity": "The best cutoff for your review capacity",
    "address": "The cutoff in the address of this page",
}


async def _no_columns() -> dict[str, list[str]]:
    return {}


async def _columns(page: Page, model: Model) -> dict[str, list[str]]:
    """Return columns that can be an amount or a rule; none if the dataset was deleted."""
    dataset_id = model.validation.get("dataset_id") or model.dataset_id
    dataset, _ = await attempt(page.client.datasets[dataset_id].refresh(), 404)
    if dataset is None:
        return {}
    features = [each for each in dataset.columns if each.role == "feature"]
    return {
        "amount": [
            each.name
            for each in features
            if each.type == "numeric" and not each.missing and (each.min or 0.0) >= 0.0
        ],
        "rule": [each.name for each in features if each.type != "datetime"],
    }


def _costs_note(cutoff: Cutoff, rows: float) -> str:
    """Say what does not depend on the cutoff: costs of flagging none and all rows, and of today's rule."""
    cost = cutoff.cost
    if cost is None:
        return ""
    said = (
        f"Per {rows:,.0f} rows, flagging none costs {number(rows * cost.flag_none)} and flagging all "
        f"{number(rows * cost.flag_all)}."
    )
    if cost.amount is not None:
        said = (
            f"A false negative costs {number(cost.false_negative)} times its {cost.amount}, a false positive "
            f"{number(cost.false_positive)}. {said}"
        )
    if cost.of_rule is not None and cost.rule_flagged is not None:
        said += (
            f" The rule {cost.rule} flags {percent(cost.rule_flagged)} of the rows and costs "
            f"{number(rows * cast(float, cost.of_rule.value))}."
        )
    elif cost.rule is not None:
        said += f" The rule {cost.rule} is a score: it is compared with as many flagged rows."
    return said


async def _aliases(page: Page, name: str) -> list[AliasSummary]:
    return (await page.client.models.alias_page(name, limit=MAX_ALIASES)).data


def _at_own_thresholds(
    cutoffs: OperatingPoints, aliases: Sequence[AliasSummary]
) -> OperatingPoints:
    """Use aliases' exact thresholds instead of equivalent ones: between two scores, all flag the same rows."""
    own = {each.alias: each.cutoff.threshold for each in aliases if each.cutoff is not None}
    places = {index: own.get(alias) for alias, index in (cutoffs.of_aliases or {}).items()}
    other = {
        at: own for at, own in places.items() if own not in (None, cutoffs.points[at].threshold)
    }
    if not other:
        return cutoffs
    changed = cutoffs.to_json()
    for at, threshold in other.items():
        changed["points"][at]["threshold"] = threshold
    return OperatingPoints.from_json(changed)


def is_at(places: Mapping[str, int], names: Sequence[str], index: int) -> bool:
    return any(places.get(name) == index for name in names)


def _verdict(cutoff: Cutoff, which: str, optimistic: str) -> str:
    """Say how many positives a cutoff finds, as decide.js does while the slider moves."""
    if cutoff.threshold is None:
        return f"{which} flags no rows."
    return (
        f"{which} flags the top {percent(cutoff.flagged.value)} of the rows and finds "
        f"{percent(cutoff.tpr.value, 0)} ({percent(cutoff.tpr.low, 0)} to {percent(cutoff.tpr.high, 0)}) of the "
        f"positives. {optimistic}".rstrip()
    )


def _rate(interval: Interval | Difference) -> float:
    """Every cutoff has a rate."""
    return cast(float, interval.value)


def _start(cutoffs: OperatingPoints, query: PanelQuery) -> SliderPositions:
    """Return the slider's initial position. Named cutoffs are of the full curve; the slider has some points of it."""
    points, places = cutoffs.points, {"ks": cutoffs.of_ks}
    if cutoffs.of_objective is not None:
        places["objective"] = cutoffs.of_objective
    if cutoffs.least_cost is not None:
        places["cost"] = cutoffs.least_cost
    if cutoffs.of_flagged is not None:
        places["capacity"] = cutoffs.of_flagged
    places |= {f"@{alias}": index for alias, index in (cutoffs.of_aliases or {}).items()}
    saved = [name for name in places if name[0] == "@"]
    wanted = f"@{query.alias}"
    threshold = _number(query.cutoff)
    if query.cutoff == NOTHING:
        return SliderPositions(0, "address", places)
    if threshold is not None:
        index = min(range(1, len(points)), key=lambda i: abs(_threshold(points[i]) - threshold))
        return SliderPositions(index, query.why if query.why in WHY else "address", places)
    for name in (query.place, wanted):
        if name in places:
            return SliderPositions(places[name], name, places)
    if cutoffs.of_flagged is not None:
        cheapest = cutoffs.of_flagged == cutoffs.least_cost
        return SliderPositions(cutoffs.of_flagged, "cost" if cheapest else "capacity", places)
    if "cost" not in places and len(saved) == 1:
        return SliderPositions(places[saved[0]], saved[0], places)
    name = next(each for each in ("cost", "objective", "ks") if each in places)
    return SliderPositions(places[name], name, places)


def _exceeded(cutoffs: OperatingPoints, start: SliderPositions, query: PanelQuery) -> str:
    """Say so if the cheapest cutoff flags more rows than can be reviewed, as decide.js does."""
    if query.share is None or cutoffs.least_cost is None:
        return ""
    least, rows = cutoffs.points[cutoffs.least_cost], cast(float, _positive(query.rows))
    if _rate(least.flagged) <= query.share + 1e-12:
        return ""
    return (
        f"The lowest-cost cutoff flags about {_rate(least.flagged) * rows:,.0f} of {rows:,.0f} rows, more than "
        f"the {cast(float, _positive(query.review)):,.0f} that you can review."
    )


def _threshold(cutoff: Cutoff) -> float:
    return math.inf if cutoff.threshold is None else cutoff.threshold


def _points_column(cutoffs: OperatingPoints, to_points: PointsConverter | None) -> Json:
    """Return the thresholds of a scorecard in points."""
    if to_points is None:
        return {}
    scores = [cutoff.threshold for cutoff in cutoffs.points]
    return {"points": _short([None if each is None else to_points(each) for each in scores])}


def _table(
    cutoffs: OperatingPoints,
    metrics: Metrics,
    start: SliderPositions,
    to_points: PointsConverter | None,
) -> Json:
    """Return thresholds exactly, other values to six digits."""
    names = [name for name in _METRICS if _metric(cutoffs.points[0], name) is not None]
    return {
        "metrics": names,
        "thresholds": [cutoff.threshold for cutoff in cutoffs.points],
        **_points_column(cutoffs, to_points),
        "probabilities": _short(cutoffs.probabilities or []),
        "cutoffs": [
            _short(
                [
                    limit
                    for metric in (_metric(cutoff, name) for name in names)
                    for limit in (metric.value, metric.low, metric.high)
                ]
            )
            for cutoff in cutoffs.points
        ],
        "prevalence": cutoffs.points[0].prevalence,
        "classes": [metrics.positive_weight, metrics.negative_weight],
        "places": start.places,
    }


def _metric(cutoff: Cutoff, name: str) -> Any:
    """Return a metric with its interval; None if it has none."""
    of = cutoff.cost if name.startswith("saved_") else cutoff
    return None if of is None else getattr(of, name)


def _short(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.6g}") for value in values]


def count_at(tpr: float, fpr: float, positives: float, negatives: float) -> ConfusionCounts:
    """Count the rows of each class on both sides of a cutoff, as decide.js does.

    Each count is rounded by itself, after all differences: a difference of rounded counts can be off by one.
    """
    return ConfusionCounts(
        true_positives=_round(tpr * positives),
        false_negatives=_round((1.0 - tpr) * positives),
        false_positives=_round(fpr * negatives),
        true_negatives=_round((1.0 - fpr) * negatives),
    )


def _round(value: float) -> int:
    return math.floor(value + 0.5)


def _workload(cutoff: Cutoff, rows: float, positive: str) -> Workload:
    """decide.js writes the same text while the slider moves."""
    positives = cutoff.prevalence * rows
    counts = count_at(_rate(cutoff.tpr), _rate(cutoff.fpr), positives, rows - positives)
    return Workload(
        f"{_round(_rate(cutoff.flagged) * rows):,} flagged · {counts.true_positives:,} found · "
        f"{counts.false_negatives:,} missed",
        f"Per {rows:,.0f} rows (about {_round(positives):,} with {positive}). {counts.false_positives:,} of the "
        "flagged rows are false positives.",
    )


def _pictures_of_cutoffs(cutoffs: OperatingPoints, chosen: Cutoff) -> list[Picture]:
    """Draw charts of cutoffs, which depend on costs and on the fraction of positives."""
    points, prevalence = cutoffs.points, chosen.prevalence
    precise = [(_rate(c.tpr), c.precision.value) for c in points if c.precision.value is not None]
    found = plots.precision_recall(
        precise, prevalence, cursor=(_rate(chosen.tpr), chosen.precision.value or 0.0)
    )
    gained = plots.gains(
        [(_rate(cutoff.flagged), _rate(cutoff.tpr)) for cutoff in points],
        cursor=(_rate(chosen.flagged), _rate(chosen.tpr)),
    )
    costly = chosen.cost is not None
    what = "Cost per row" if costly else "Fraction of errors"
    cost = plots.cost_of_cutoffs(
        [(_rate(cutoff.flagged), _cost(cutoff)) for cutoff in points],
        what,
        cursor=(_rate(chosen.flagged), _cost(chosen)),
    )
    return [
        Picture(
            "precision_recall",
            "Precision and recall",
            charts.square(found, size=SIZE, metrics=("tpr", "precision")),
            "Precision by recall. Dashed: random.",
        ),
        Picture(
            "gains",
            "Gains",
            charts.square(gained, size=SIZE, metrics=("flagged", "tpr")),
            "Fraction of positives found by the fraction of the list reviewed. Dashed: random.",
        ),
        Picture(
            "cost",
            "Cost" if costly else "Errors",
            charts.square(cost, size=SIZE, metrics=("flagged", "cost" if costly else "wrong")),
            "Mean cost per row at each cutoff. Dashed: rows flagged at random."
            if costly
            else "False negatives and false positives at each cutoff, with equal weight until you enter costs. Dashed: "
            "rows flagged at random.",
        ),
    ]


def _cost(cutoff: Cutoff) -> float:
    """Without entered costs, each error costs 1."""
    if cutoff.cost is not None:
        return cast(float, cutoff.cost.value)
    return (1.0 - cutoff.prevalence) * _rate(cutoff.fpr) + cutoff.prevalence * (
        1.0 - _rate(cutoff.tpr)
    )


def _pictures_of_scores(
    cutoffs: OperatingPoints, index: int, found: ModelCurve | None
) -> list[Picture]:
    """Mark the cutoff in the histogram by class; nothing without a curve."""
    if found is None:
        return []
    plot = plots.of_curve(found, "Scores by class")
    threshold = cutoffs.points[index].threshold
    at = plot.x.high if threshold is None else min(max(threshold, plot.x.low), plot.x.high)
    return [
        Picture(
            "histogram",
            "Scores by class",
            charts.square(replace(plot, cursor=(at, None)), size=SIZE, metrics=("threshold", None)),
            "",
        )
    ]


def _picture_of_probabilities(
    cutoffs: OperatingPoints, index: int, found: Calibration
) -> list[Picture]:
    """Mark the cutoff's probability in the reliability diagram."""
    if found.reliability is None or cutoffs.probabilities is None:
        return []
    at = cutoffs.probabilities[index]
    drawn = draw_reliability(
        found.reliability,
        size=SIZE,
        cursor=(1.0 if at is None else at, None),
        metrics=("probability", None),
    )
    note = (
        "Fraction of positives at each probability. Shaded: consistency band for correct probabilities. Dashed: "
        "perfect calibration. Vertical line: the probability at the cutoff."
    )
    return [Picture("reliability", "Reliability", drawn, note)]


def _drawn(shape: Roc, objective: Json, cutoff: Cutoff, *, log: bool) -> Markup:
    """Draw the curve with its band, the objective's window and the cutoff."""
    points = [(point.fpr, point.tpr) for point in shape.points]
    window = None
    if objective.get("metric") == "pauc":
        window = Window("partial AUC", objective["fpr_min"], objective["fpr_max"])
    elif objective.get("metric") == "tpr":
        window = Window("FPR of the objective", objective["fpr"], objective["fpr"])
    # The axis begins at the power of ten below the first FPR that is not zero.
    decade = min(-1, math.floor(math.log10(min(fpr for fpr, _ in points if fpr > 0))))
    limits = [(each.fpr, cast(float, each.low), cast(float, each.high)) for each in shape.points]
    plot = plots.roc(
        points,
        "ROC curve" + (", logarithmic FPR" if log else ""),
        x=Axis(10.0**decade, 1.0, log=True) if log else Axis(),
        window=window,
        band=Band("", limits),
        cursor=(_rate(cutoff.fpr), _rate(cutoff.tpr)),
    )
    return charts.square(plot, SIZE, ("fpr", "tpr"))


@router.get("/{ref}/cutoffs")
async def read_cutoffs(page: PageDep, ref: str) -> Response:
    """Return cutoffs and charts for other costs, or the API's error."""
    on = page.asked("on") or "validation"
    how = {"on": on, "flagged": read_query(page).share}
    found = await read_parts(
        page.client.models, ref, ("metrics", "operating_points"), how, read_terms(page)
    )
    metrics, cutoffs = found.parts.metrics, found.parts.operating_points
    if not isinstance(metrics, Metrics) or cutoffs is None:
        raise refusal(404, "Not found", found.absent("operating_points") or "there is no curve")
    if cutoffs.of_aliases:
        cutoffs = _at_own_thresholds(cutoffs, await _aliases(page, found.model.name))
    start, problem = _start(cutoffs, PanelQuery()), found.terms_problem
    errors = term_errors(problem, read_terms(page))
    pictures = _pictures_of_cutoffs(cutoffs, cutoffs.points[start.index])
    drawn = {each.name: [each.title, each.drawn, each.note] for each in pictures}
    return JSONResponse(
        {
            "errors": errors,
            "problem": problem["detail"] if problem and not errors else None,
            "pictures": drawn,
            "note": _costs_note(
                cutoffs.points[start.index], _positive(read_query(page).rows) or 1000.0
            ),
            **_table(cutoffs, metrics, start, await points_converter(page, found.model)),
        },
        headers={"Cache-Control": "no-store"},
    )
