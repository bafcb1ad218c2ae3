"""The form that scores one row: its score, its place on the curve, its probability and the reasons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.types import (
    Feature,
    LabelScores,
    Model,
)
from starlette.responses import Response

from app.console import charts
from app.console.api import refusal
from app.console.model_parts import show_part
from app.console.session import ConsoleRoute, Page, PageDep
from app.http.forms import Fields, number_or_text

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
MAX_FORM_FEATURES = 100
"""Most fields of the form that scores a row; for a model with more features the row is entered as JSON."""


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
