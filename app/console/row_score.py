"""The form that scores one row: its score, its place on the curve, its probability and the reasons."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.errors import ProblemError
from rankwright.resources import AsyncModel
from rankwright.types import (
    LabelScores,
    Model,
    ModelFeature,
    Scores,
)
from starlette.responses import Response

from app.console import charts
from app.console.api import attempt, refusal
from app.console.model_parts import points_converter, show_part
from app.console.session import ConsoleRoute, ModelDep, Page, PageDep
from app.http.forms import Fields, number_or_text

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
GROUP_SIZE = 100
"""Fields that the form shows at once: of more features, each group of so many is folded."""
MAX_FORM_FEATURES = 900
"""Most fields of the form that scores a row; for a model with more features the row is entered as JSON."""
MAX_ALIASES = 20
MAX_REASONS = 10


@router.get("/{ref}/score")
async def read_score(page: PageDep, model: ModelDep) -> Response:
    """Fill the form with a row of the dataset if it still exists."""
    return await _show_score(
        page, model, await example_row(page, model), await cutoffs_of_aliases(page, model)
    )


@router.post("/{ref}/score")
async def score_row(page: PageDep, ref: str) -> Response:
    """Add reasons if the model can give them."""
    form = await page.form()
    model = await page.client.models[ref].read()
    asked = {name: str(form.get(name, "")) for name in ("label", "compare")}
    entered, cutoffs = entered_fields(form, model.features), await cutoffs_of_aliases(page, model)
    status, problem, answer = 200, None, None
    try:
        row = read_row(form, model)
        answer = await _answer(page, model, row, asked["label"] or None, asked["compare"], cutoffs)
    except ProblemError as error:
        if error.status != 422:
            raise
        status, problem = error.status, error.problem
    if "hx-request" in page.request.headers:
        # the part of the page that sent the request shows the problem; the page itself has loaded
        status = 200
    return await _show_score(page, model, entered, cutoffs, status, problem, answer, asked)


async def cutoffs_of_aliases(page: Page, model: Model) -> dict[str, float | None]:
    """None is a cutoff that flags no row."""
    if model.labels or not model.aliases:
        return {}
    found = await page.client.models.alias_page(model.name, limit=MAX_ALIASES)
    here = [each for each in found.data if each.model_id == model.id]
    return {each.alias: each.cutoff.threshold for each in here if each.cutoff is not None}


async def _show_score(
    page: Page,
    model: Model,
    entered: Mapping[str, str],
    cutoffs: Mapping[str, float | None],
    status: int = 200,
    problem: Json | None = None,
    answer: ScoredRow | None = None,
    asked: Mapping[str, str] | None = None,
) -> Response:
    numbered = list(enumerate(model.features))
    return await show_part(
        page,
        model,
        "score",
        status,
        entered=entered,
        as_fields=len(numbered) <= MAX_FORM_FEATURES,
        field_groups=[numbered[at : at + GROUP_SIZE] for at in range(0, len(numbered), GROUP_SIZE)],
        references=_references(model, cutoffs),
        problem=problem,
        at_fault=faults_of_row(problem, model.features),
        answer=answer,
        asked=asked or {"label": "", "compare": ""},
    )


def faults_of_row(
    problem: Mapping[str, Any] | None, features: Sequence[ModelFeature]
) -> dict[str, str]:
    """Return the API's errors by feature."""
    found = {
        _name_of(str(each.get("pointer", ""))): each["detail"]
        for each in (problem or {}).get("errors") or []
    }
    return {each.name: found[each.name] for each in features if each.name in found}


def _name_of(pointer: str) -> str:
    return pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def _references(model: Model, cutoffs: Mapping[str, float | None]) -> dict[str, str]:
    """Return the form's values and texts."""
    if model.labels:
        return {}
    found = {"negative": "the average negative row", "average": "the average training row"}
    of_cutoffs = {
        f"cutoff:{alias}": f"the cutoff of {alias}"
        for alias, cutoff in cutoffs.items()
        if cutoff is not None
    }
    return found | of_cutoffs


async def example_row(page: Page, model: Model) -> dict[str, str]:
    """Return the first row of the model's dataset by feature; empty if it was deleted or may not be read."""
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
    comma = (model.dialect or {}).get("decimal") == "comma"
    return {name: _field(value, comma=comma) for name, value in known.items()}


def _field(value: object, *, comma: bool = False) -> str:
    """Use a decimal comma if `comma`."""
    if value is None:
        return ""
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < 1e15
        return str(int(value)) if whole else str(value).replace(".", "," if comma else ".")
    return str(value).lower() if isinstance(value, bool) else str(value)


def entered_fields(form: Fields, features: Sequence[ModelFeature]) -> dict[str, str]:
    """A row that was entered as JSON has the empty name."""
    if "row" in form:
        return {"": str(form["row"])}
    return {each.name: str(form.get(f"f{i}", "")) for i, each in enumerate(features)}


def read_row(form: Fields, model: Model) -> Json:
    """The API reads what was entered as text by the rules of all text."""
    if "row" in form:
        try:
            # A number beyond float64 stays text: the API then names its feature.
            row = json.loads(
                str(form["row"]), parse_constant=_no_number, parse_float=number_or_text
            )
        except (ValueError, RecursionError) as error:
            raise refusal(422, "Invalid request", f"the row is not valid JSON: {error}") from None
        if not isinstance(row, dict):
            raise refusal(
                422,
                "Invalid request",
                "the row must be a JSON object with a value for each feature",
            )
        return row
    return {name: text or None for name, text in entered_fields(form, model.features).items()}


def _no_number(written: str) -> None:
    raise ValueError(f"{written} is no number of JSON")


class RowReason(NamedTuple):
    text: str
    values: str
    part: float
    error: float
    bar: Markup


@dataclass(frozen=True)
class ScoredRow:
    """The score of a row, its position on the curve, its probability, and the reasons, or why there are none.

    `flags` has for each alias its cutoff, also in points, and whether it flags the row. The reasons and `rest` sum to
    the score minus `reference_score`, the score of `reference`.
    """

    score: float | None = None
    points: float | None = None
    """Points of the row, if the model is a scorecard."""
    fpr: float | None = None
    tpr: float | None = None
    probability: float | None = None
    probability_low: float | None = None
    probability_high: float | None = None
    no_probability: str | None = None
    labels: Sequence[tuple[str, float]] = ()
    flags: Sequence[tuple[str, float | None, float | None, bool]] = ()
    reasons: Sequence[RowReason] = ()
    rest: float = 0.0
    exact: bool = True
    reference: str = ""
    reference_score: float = 0.0
    warning: str | None = None
    """Says that the score depends on protected columns."""
    why_not: str | None = None
    letter: str | None = None
    """The letter of the row, if the reason codes of the model have letters."""


async def _letter(page: Page, model: Model, row: Json, kind: str) -> str | None:
    """Return None if no reason has a letter, or the reference has none."""
    if kind not in ("negative", "average"):
        return None
    asked = page.client.models[model.id].letters([row], reference=cast(Any, kind))
    found, _ = await attempt(asked, 422)
    if found is None or not any(each.has_template for each in found.letters[0].reasons):
        return None
    return found.letters[0].text


async def _answer(
    page: Page,
    model: Model,
    row: Json,
    label: str | None,
    compare: str,
    cutoffs: Mapping[str, float | None],
) -> ScoredRow:
    """Add reasons if the model has any."""
    of = page.client.models[model.id]
    scores = await of.score_rows([row], interval=True)
    if isinstance(scores, LabelScores):
        scored = ScoredRow(labels=list(zip(scores.labels, scores.scores[0], strict=True)))
        return await _explained(of, scored, row, label or scores.labels[0])
    score, to_points = scores.scores[0], await points_converter(page, model)
    scored = ScoredRow(
        score=score,
        fpr=scores.fprs[0] if scores.fprs else None,
        tpr=scores.tprs[0] if scores.tprs else None,
        probability=scores.probabilities[0] if scores.probabilities else None,
        probability_low=scores.probabilities_low[0] if scores.probabilities_low else None,
        probability_high=scores.probabilities_high[0] if scores.probabilities_high else None,
        no_probability=scores.no_probability,
        points=scores.points[0] if scores.points else None,
        flags=[
            (
                alias,
                cutoff,
                to_points(cutoff) if to_points is not None and cutoff is not None else None,
                cutoff is not None and score >= cutoff,
            )
            for alias, cutoff in cutoffs.items()
        ],
    )
    # The average negative is the default reference, if the model has one.
    for reference in [compare] if compare else ["negative", "average"]:
        kind, _, alias = reference.partition(":")
        try:
            found = await of.score_rows(
                [row],
                probability=False,
                reasons=min(MAX_REASONS, len(model.features)),
                reference=kind,
                direction="both",
                threshold=cutoffs.get(alias),
            )
        except ProblemError as error:
            if error.status != 422:
                raise
            scored = replace(scored, why_not=error.detail)
            continue
        assert isinstance(found, Scores)
        assert found.reasons is not None
        assert found.reasons_rest is not None
        assert found.reference is not None
        told = [
            (each.text if each.code else "", each.columns, each.contribution, each.error)
            for each in found.reasons[0]
        ]
        return replace(
            scored,
            reasons=_reasons(told, row),
            letter=await _letter(page, model, row, kind),
            rest=found.reasons_rest[0],
            exact=bool(found.exact and found.exact[0]),
            reference=reference,
            reference_score=found.reference.score,
            warning=found.reference.warning,
            why_not=None,
        )
    return scored


async def _explained(of: AsyncModel, scored: ScoredRow, row: Json, label: str) -> ScoredRow:
    """Add reasons for one label of several, relative to the mean training row."""
    try:
        (found,) = (await of.explain([row], label=label)).explanations
    except ProblemError as error:
        if error.status != 422:
            raise
        return replace(scored, why_not=error.detail)
    errors = found.errors or {}
    parts = sorted(found.contributions.items(), key=lambda each: -abs(each[1]))
    told = [("", [name], part, errors.get(name, 0.0)) for name, part in parts if part != 0]
    return replace(
        scored,
        reasons=_reasons(told[:MAX_REASONS], row),
        rest=sum(part for _, _, part, _ in told[MAX_REASONS:]),
        exact=found.exact,
        reference="average",
        reference_score=found.offset,
    )


def _reasons(
    told: Sequence[tuple[str, Sequence[str], float, float]], row: Mapping[str, object]
) -> list[RowReason]:
    """Add the row's values, and a bar for each contribution."""
    greatest = max((abs(part) for _, _, part, _ in told), default=0.0)
    return [
        RowReason(
            text,
            ", ".join(f"{name} = {_shown(row.get(name))}" for name in columns),
            part,
            error,
            charts.part_bar(part, greatest),
        )
        for text, columns, part, error in told
    ]


def _shown(value: object) -> str:
    return "missing" if value is None else _field(value)
