"""Pages on comparisons of models on a dataset."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.plots import Axis, Line, Plot, Points
from rankwright.types import ComparedWindow, Model
from starlette.responses import Response

from app.console import charts
from app.console.evaluation import FIELDS, LABELS, estimate_of, offered, window_of
from app.console.lists import read_list
from app.console.rendering import count, number
from app.console.session import ConsoleRoute, Page, PageDep, or_form
from app.http.forms import Fields
from app.measures import area, area_by_chance

if TYPE_CHECKING:
    from rankwright.types import ComparedAtCapacity

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

MAX_CURVES_DRAWN = 8
"""Most curves of a comparison that are drawn: so many colours there are."""
_DIGITS = re.compile(r"[0-9]{1,13}")


@router.get("/comparisons")
async def list_comparisons(page: PageDep) -> Response:
    return await _comparisons(page)


async def _comparisons(
    page: Page, problem: dict[str, Any] | None = None, given: Fields | None = None
) -> Response:
    listed = await read_list(page, "/console/comparisons", page.client.comparisons.page)
    query = page.query
    chosen = (
        given.getlist("models") if given else query.getlist("models") + query.getlist("model_id")
    )
    choices = await offered(page, chosen, (given or query).get("dataset_id", ""))
    return page.show_form(
        "comparisons.html",
        problem,
        FIELDS,
        **listed,
        error=problem,
        labels=LABELS,
        given=given or query,
        chosen=chosen,
        **choices,
    )


@router.post("/comparisons")
@or_form(_comparisons, unless=[403])
async def create_comparison(page: PageDep) -> Response:
    form = await page.form()
    window = window_of(form)
    made = await page.client.compare(
        form.getlist("models"),
        form.get("dataset_id", ""),
        windows=None if window is None else [{"fpr_min": 0.0, "fpr_max": 1.0}, window],
        capacity=_capacity(form.get("capacity", ""), form.get("rows", "")),
        wait=False,
    )
    return page.go(f"/console/comparisons/{made.id}")


@router.get("/comparisons/{comparison_id}")
async def read_comparison(comparison_id: str, page: PageDep) -> Response:
    found = (await page.client.comparisons.get(comparison_id)).data
    names = {each.model_id: f"{each.name}:{each.version}" for each in found.models}
    compared = [] if found.result is None else found.result.windows
    windows = [_drawn(window, names, found.level) for window in compared]
    gone = await page.find_gone(found.dataset_id, *names)
    capacity = None if found.result is None else found.result.capacity
    curves = (found.result and found.result.curves) or []
    drawn = [
        Line(names[curve.model_id], [(point.fpr, point.tpr) for point in curve.points])
        for curve in curves[:MAX_CURVES_DRAWN]
    ]
    fpr = None
    if found.result is not None and capacity is not None:
        rows = found.result.positives + found.result.negatives
        share = capacity.review / capacity.rows, found.result.positives / rows
        fpr = max((fpr_of_flagged(each.points, *share) for each in drawn), default=None)
    return page.show(
        "comparison.html",
        found=found,
        names=names,
        gone=gone,
        capacity=capacity,
        first=None if capacity is None else say_first_rows(capacity, names, found.level),
        settings=await _differing(page, [each for each in names if each not in gone]),
        near=charts.square(_near(drawn, fpr, found.dataset_name), 440) if drawn else None,
        near_cutoff=fpr,
        windows=windows,
        curves=charts.square(Plot(f"ROC curves of the models on {found.dataset_name}", drawn), 440)
        if drawn
        else None,
        drawn=[line.name for line in drawn],
        undrawn=len(curves) - len(drawn),
    )


@router.post("/comparisons/{comparison_id}/delete")
async def delete_comparison(comparison_id: str, page: PageDep) -> Response:
    await page.client.comparisons[comparison_id].delete()
    return page.go("/console/comparisons", deleted=comparison_id)


def _capacity(review: str, rows: str) -> dict[str, int | str] | None:
    """Text that is not a whole number stays text, so that the API reports the error."""
    entered = {"review": review.strip(), "rows": rows.strip()}
    if not any(entered.values()):
        return None
    return {name: int(text) if _DIGITS.fullmatch(text) else text for name, text in entered.items()}


def say_first_rows(found: ComparedAtCapacity, names: Mapping[str, str], level: float) -> str:
    """Say which model finds the most positives within the review capacity."""
    best = max(found.values, key=lambda each: each.value or 0.0)
    capacity = f"If you can review {found.review:,} of {found.rows:,} rows"
    most = best.value or 0.0
    # Neither may the numbers look the same, nor their difference look like 0.
    equal = [
        each
        for each in found.values
        if count(each.value) == count(most) or count(most - (each.value or 0.0)) == "0"
    ]
    if len(equal) > 1:
        named = [names[each.model_id] for each in equal]
        listed = f"{', '.join(named[:-1])} and {named[-1]}"
        least = count(min(each.value or 0.0 for each in equal))
        chosen = {each.model_id for each in equal}
        within = max(
            abs(end)
            for each in found.differences
            if {each.first, each.second} <= chosen
            for end in (each.low, each.high)
        )
        apart = f" By its interval, the difference is at most {count(within)}."
        if least != count(most):
            return f"{capacity}, {listed} find about equally many positives: {least} to {count(most)}.{apart}"
        return f"{capacity}, {listed} find about equally many positives: {least} each.{apart}"
    pair = min(
        (each for each in found.differences if best.model_id in (each.first, each.second)),
        key=lambda each: abs(each.value),
    )
    sign = 1.0 if pair.first == best.model_id else -1.0
    low, high = sorted((sign * pair.low, sign * pair.high))
    other = names[pair.second if pair.first == best.model_id else pair.first]
    p_value = pair.adjusted_p_value
    sure = p_value is not None and p_value < 1.0 - level
    chance = "" if sure else ". The difference is not statistically significant"
    return (
        f"{capacity}, {names[best.model_id]} finds the most positives: "
        f"{count(best.value)}, {count(abs(pair.value))} more than {other} ({count(low)} to {count(high)}){chance}."
    )


LOW_FPR, LEAST_FPR = 0.1, 0.01
"""The FPR up to which curves are drawn large without a cutoff, and at least with one."""


def fpr_of_flagged(points: Points, share: float, prevalence: float) -> float:
    """Return the FPR at which a curve flags a fraction of all rows, interpolated."""
    before = (0.0, 0.0)
    for fpr, tpr in points:
        start, end = (prevalence * y + (1.0 - prevalence) * x for x, y in (before, (fpr, tpr)))
        if end >= share:
            part = (share - start) / (end - start) if end > start else 1.0
            return before[0] + part * (fpr - before[0])
        before = fpr, tpr
    return 1.0


def _near(curves: Sequence[Line], cutoff: float | None, dataset: str) -> Plot:
    """Plot up to twice the FPR at the cutoff, so that the cutoff is in the middle; without one, up to a low FPR."""
    end = LOW_FPR if cutoff is None else min(1.0, max(2.0 * cutoff, LEAST_FPR))
    inside = [replace(each, points=_up_to(each.points, end)) for each in curves]
    top = max(height for each in inside for _, height in each.points)
    title = f"ROC curves up to an FPR of {end:.3g} on {dataset}"
    return Plot(title, inside, x=Axis(0.0, end), y=Axis(0.0, min(1.0, max(1.05 * top, end))))


def _up_to(points: Points, end: float) -> list[tuple[float, float]]:
    """The last point is interpolated."""
    kept = [point for point in points if point[0] <= end]
    beyond = next((point for point in points if point[0] > end), None)
    if beyond is not None:
        (x, y), (u, v) = kept[-1], beyond
        kept.append((end, y + (v - y) * (end - x) / (u - x)))
    return kept


class Setting(NamedTuple):
    name: str
    values: list[str]


async def _differing(page: Page, models: Sequence[str]) -> tuple[list[str], list[Setting]]:
    """Return the models' names and the parameters in which they differ; none for fewer than two models."""
    read = await asyncio.gather(*(page.client.models[each].read() for each in models))
    told = [_settings(each) for each in read]
    known = list(dict.fromkeys(name for each in told for name in each))
    rows = [Setting(name, [each.get(name, "–") for each in told]) for name in known]
    differing = [row for row in rows if len(set(row.values)) > 1]
    return [f"{each.name}:{each.version}" for each in read], differing


def _settings(model: Model) -> dict[str, str]:
    parameters = {
        name: value
        for name, value in model.algorithm.items()
        if name not in ("name", "random_state", "score_microseconds")
        and not isinstance(value, dict | list)
    }
    trained_on = "–" if model.dataset is None else f"{model.dataset.name}:{model.dataset.version}"
    return {
        "Algorithm": str(model.algorithm["name"]),
        "Trained on": trained_on,
        "Features": f"{len(model.features):,}",
        "Objective": _written(model.objective or {}),
        "Validation": _written(model.validation),
        "Seed": str(model.seed),
        **{name: _value(value) for name, value in parameters.items()},
    }


def _written(chosen: Mapping[str, Any]) -> str:
    return ", ".join(_value(value) for value in chosen.values() if value is not None)


def _value(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class DrawnWindow:
    """A window of FPRs, with charts of the areas and their differences."""

    of: ComparedWindow
    title: str
    verdict: str
    chance: float
    areas: Markup
    forest: Markup


def _drawn(window: ComparedWindow, names: Mapping[str, str], level: float) -> DrawnWindow:
    areas = [estimate_of(names[each.model_id], each) for each in window.values]
    differences = [
        estimate_of(f"{names[each.first]} − {names[each.second]}", each)
        for each in window.differences
    ]
    return DrawnWindow(
        window,
        area(window.fpr_min, window.fpr_max),
        say_window(window, names, level),
        area_by_chance(window.fpr_min, window.fpr_max),
        charts.forest([*filter(None, areas)], "Areas with their intervals"),
        charts.forest([*filter(None, differences)], "Differences with their intervals", zero=0.0),
    )


def say_window(window: ComparedWindow, names: Mapping[str, str], level: float) -> str:
    """Say which model is significantly better than all others, by how much it beats the next one, and which of the
    others are significantly worse than which.
    """
    worse: dict[str, list[str]] = {}
    for each in window.differences:
        p_value = each.adjusted_p_value
        if p_value is None or p_value >= 1.0 - level:
            continue
        lower, higher = (each.second, each.first) if each.value > 0 else (each.first, each.second)
        if higher != window.winner:
            worse.setdefault(lower, []).append(names[higher])
    others = "".join(
        f" {names[lower]} is significantly worse than {' and '.join(higher)}."
        for lower, higher in worse.items()
    )
    if window.winner is None:
        return f"No model is significantly better than all others.{others}"
    next_one = min(
        (each for each in window.differences if window.winner in (each.first, each.second)),
        key=lambda each: abs(each.value),
    )
    ends = sorted((abs(next_one.low), abs(next_one.high)))
    other = next_one.second if next_one.first == window.winner else next_one.first
    return (
        f"{names[window.winner]} is significantly better. Its area exceeds that of {names[other]} by "
        f"{number(abs(next_one.value))} ({number(ends[0])} to {number(ends[1])}).{others}"
    )
