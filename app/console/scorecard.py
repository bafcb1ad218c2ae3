"""The scorecard workshop: bins of a scorecard with WOE and IV, edited bins, and a training job with these."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.errors import ProblemError
from rankwright.types import BinnedFeature, Model, ModelBins, PointsCutoff, ScorecardBin
from starlette.responses import Response

from app.console import charts
from app.console.api import attempt, refusal
from app.console.jobs import again_fields
from app.console.model_parts import SCALE, seconds, show_tab
from app.console.session import ConsoleRoute, ModelDep, Page, PageDep
from app.console.train import form_of
from app.http.forms import number_or_text
from app.platform.errors import shown

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

CATEGORICAL, DATETIME = "categorical", "datetime"
"""Types of features in the API."""
MAX_CATEGORIES = 100
"""Categories of a feature whose groups can be edited on the page: a form has a limited number of fields."""
MAX_EDITED = 400
"""Categories of all features together that can be edited on the page."""
MONOTONE = {"": "none", "increasing": "increasing risk", "decreasing": "decreasing risk"}
_SEPARATORS = re.compile(r"[;\s]+")

Fields = dict[str, str]


@router.get("/{ref}/bins")
async def read_bins(page: PageDep, model: ModelDep) -> Response:
    return await _show(page, model, None)


@router.post("/{ref}/bins")
async def change_bins(page: PageDep, model: ModelDep) -> Response:
    """Merge two bins; or train with the bins of the fields, and show the job or the errors."""
    given = {name: value for name, value in (await page.form()).items() if name != "csrf"}
    found = await page.client.models[model.id].bins()
    if not page.can("train", model.name):
        detail = f"you cannot train {model.name}. {page.lacks('train', model.name)}"
        raise refusal(403, "Forbidden", detail)
    if merge := given.pop("merge", ""):
        _merge(found, given, merge)
        return await _show(page, model, given)
    algorithm, faults = _read(found, given)
    if faults:
        return await _show(page, model, given, faults=faults)
    job = (await page.client.jobs.get(model.job_id)).data
    fields = await again_fields(page, job)
    if fields is None:
        return page.go(f"/console/jobs/{job.id}")
    own = {f"algorithm.{name}": value for name, value in algorithm.items()}
    form, _ = await form_of(page, {**fields, **own})
    try:
        started = await page.client.jobs.submit(form.body())
    except ProblemError as error:
        if error.status == 403:
            raise
        return await _show(page, model, given, problem=error.problem)
    return page.go(f"/console/jobs/{started.id}")


async def _show(
    page: Page,
    model: Model,
    given: Mapping[str, str] | None,
    *,
    faults: Mapping[str, str] | None = None,
    problem: Mapping[str, Any] | None = None,
) -> Response:
    of = page.client.models[model.id]
    entered = {name: page.asked(name) for name in (*SCALE, "points")}
    scale = {name: number_or_text(value) for name in SCALE if (value := entered[name])}
    found, wrong = await attempt(of.bins(**cast(Any, scale)), 422)
    if found is None:
        found, scale = await of.bins(), {}
    cutoff: PointsCutoff | None = None
    if entered["points"]:
        asked = cast(Any, {**scale, "points": number_or_text(entered["points"])})
        cutoff, of_cutoff = await attempt(of.points_cutoff(**asked), 422)
        wrong = wrong or of_cutoff
    on = "train" if found.held_out_rows is None else "validation"
    rounding, _ = await attempt(of.rounding(on=cast(Any, on), **cast(Any, scale)), 409, 422, 429)
    fields = _fields_of(found)
    values = fields if given is None else {**fields, **given}
    edited = _edited(found, fields, values)
    status = 422 if faults or wrong else problem["status"] if problem else 200
    return await show_tab(
        page,
        model,
        "model_bins.html",
        "explain",
        status,
        found=found,
        values=values,
        edited=edited,
        unfolded=_unfolded(edited, faults or {}),
        warnings=[_warnings(each) for each in found.features],
        faults=faults or {},
        problem=problem or wrong,
        labels=SCALE,
        entered={name: entered[name] or f"{getattr(found, name):g}" for name in SCALE},
        points_entered=entered["points"] or "",
        cutoff=cutoff,
        rounding=rounding,
        charts=[_chart(each) for each in found.features],
        in_words=bin_in_words,
        directions=MONOTONE,
        editable=_editable(found),
        categories=[_categories(each) for each in found.features],
    )


def bin_in_words(each: ScorecardBin) -> str:
    match each.of:
        case "missing":
            return "missing"
        case "special":
            return f"special value {_number(each.low)}"
        case "categories":
            names = each.categories or []
            more = f" and {len(names) - 8} more" if len(names) > 8 else ""
            return ", ".join(names[:8]) + more
    if each.low is None:
        return "any value" if each.high is None else f"up to {_number(each.high)}"
    above = f"above {_number(each.low)}"
    return above if each.high is None else f"{above} to {_number(each.high)}"


def _number(value: float | str | None) -> str:
    return f"{value:.10g}" if isinstance(value, float | int) else str(value)


def _categories(of: BinnedFeature) -> list[tuple[str, int]]:
    """Return categories with the numbers of their groups, from 1."""
    groups = [each.categories or [] for each in of.bins if each.of == "categories"]
    return [(name, k) for k, group in enumerate(groups, start=1) for name in group]


def _editable(found: ModelBins) -> list[bool]:
    left, editable = MAX_EDITED, []
    for each in found.features:
        n = len(_categories(each))
        fits = n <= min(MAX_CATEGORIES, left)
        left -= n if fits else 0
        editable.append(fits)
    return editable


def _fields_of(found: ModelBins) -> Fields:
    fields: Fields = {}
    for j, each in enumerate(found.features):
        fields[f"monotone.{j}"] = each.monotone or ""
        if each.type == CATEGORICAL:
            for i, (_, group) in enumerate(_categories(each)):
                fields[f"group.{j}.{i}"] = str(group)
            continue
        edges = [one.high for one in each.bins if one.of == "values" and one.high is not None]
        fields[f"edges.{j}"] = "; ".join(map(_number, edges))
        special = [one.low for one in each.bins if one.of == "special"]
        fields[f"special.{j}"] = "; ".join(map(_number, special))
    return fields


def _edited(found: ModelBins, before: Fields, now: Mapping[str, str]) -> list[bool]:
    """Tell which features' fields differ from the model."""
    names = {name for name, value in before.items() if now.get(name, value).strip() != value}
    return [any(name.split(".")[1] == str(j) for name in names) for j in range(len(found.features))]


def _unfolded(edited: Sequence[bool], faults: Mapping[str, str]) -> list[bool]:
    """Unfold edited features and wrong fields at first; without any, the first feature, which has the highest IV."""
    wrong = {name.split(".")[1] for name in faults}
    shown_first = [each or str(j) in wrong for j, each in enumerate(edited)]
    return shown_first if any(shown_first) else [j == 0 for j in range(len(edited))]


def _warnings(of: BinnedFeature) -> list[str]:
    """Say what a person should look at in the bins."""
    found = []
    if (of.held_out_iv or of.iv).sparse:
        found.append("sparse bins")
    woes = [each.train.woe for each in of.bins if each.of == "values"]
    if woes not in (sorted(woes), sorted(woes, reverse=True)):
        found.append("WOE not monotone")
    return found


def _merge(found: ModelBins, given: Fields, asked: str) -> None:
    """Merge a bin with the next one; `asked` has the numbers of the feature and of the bin."""
    place = [int(part[:9]) if part.isdecimal() else -1 for part in asked.split(".")[:2]]
    if len(place) < 2 or not 0 <= place[0] < len(found.features):
        return
    j, k = place
    feature = found.features[j]
    bins = [each for each in feature.bins if each.of in ("values", "categories")]
    if not 0 <= k < len(bins) - 1:
        return
    if feature.type != CATEGORICAL:
        edge = _number(bins[k].high)
        edges = _SEPARATORS.split(given.get(f"edges.{j}", "").strip())
        given[f"edges.{j}"] = "; ".join(each for each in edges if each and each != edge)
        return
    groups = _categories(feature)
    first = next(i for i, (_, group) in enumerate(groups) if group == k + 1)
    target = given.get(f"group.{j}.{first}", str(k + 1))
    for i, (_, group) in enumerate(groups):
        if group == k + 2:
            given[f"group.{j}.{i}"] = target


def _read(found: ModelBins, given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return parameters as fields of the training form, and faults by field."""
    bins: dict[str, Any] = dict(found.refit.bins)
    special: dict[str, list[float]] = {}
    monotone: dict[str, str] = {}
    faults: dict[str, str] = {}
    for j, each in enumerate(found.features):
        if direction := given.get(f"monotone.{j}", ""):
            monotone[each.name] = direction
        if each.type == CATEGORICAL:
            own = _categories(each)
            if any(f"group.{j}.{i}" in given for i in range(len(own))):
                bins[each.name] = _groups(j, own, given, faults)
            continue
        for name, into in (("edges", bins), ("special", special)):
            field = f"{name}.{j}"
            texts = [part for part in _SEPARATORS.split(given.get(field, "")) if part]
            numbers = [_read_number(each.type, text) for text in texts]
            known = [number for number in numbers if number is not None]
            if len(known) < len(numbers):
                wrong = texts[numbers.index(None)]
                what = "a date" if each.type == DATETIME else "a number with a decimal point"
                faults[field] = f"Each value must be {what}, got {shown(wrong)}. Separate them by ;"
            elif name == "edges" or known:
                into[each.name] = known
    return {
        "bins": json.dumps(bins),
        "special_values": json.dumps(special) if special else "none",
        "monotone": json.dumps(monotone) if monotone else "none",
        "C": json.dumps(found.refit.C),
    }, faults


def _groups(
    j: int, own: Sequence[tuple[str, int]], given: Mapping[str, str], faults: dict[str, str]
) -> list[list[str]]:
    """Group categories by the numbers in the fields."""
    by_number: dict[int, list[str]] = {}
    for i, (name, group) in enumerate(own):
        field = f"group.{j}.{i}"
        text = given.get(field, str(group)).strip()
        if not text.isascii() or not text.isdecimal() or not 1 <= len(text) <= 4:
            faults[field] = f"The group of {shown(name)} must be a whole number, got {shown(text)}."
            continue
        by_number.setdefault(int(text), []).append(name)
    return [by_number[number] for number in sorted(by_number)]


def _read_number(kind: str, text: str) -> float | None:
    """Return None if the text is no number or date."""
    try:
        number = seconds(text) if kind == DATETIME else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _chart(of: BinnedFeature) -> Markup:
    """Use held-out rows if there are any."""
    estimates = []
    for each in of.bins:
        counts = each.held_out or each.train
        if counts.rows == 0:
            continue
        low = counts.woe if counts.woe_low is None else counts.woe_low
        high = counts.woe if counts.woe_high is None else counts.woe_high
        name = bin_in_words(each)
        estimates.append(
            charts.Estimate(name, counts.woe, min(low, counts.woe), max(high, counts.woe))
        )
    return charts.forest(estimates, f"WOE of the bins of {of.name}", zero=0.0)
