"""Pages on evaluations of a model on later data, and functions that they share with the pages on comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from fastapi import APIRouter
from markupsafe import Markup
from rankwright import plots
from rankwright.errors import ProblemError
from rankwright.types import (
    ComparedPair,
    ComparedValue,
    EvaluatedCurve,
    EvaluatedGroups,
    Evaluation,
    Gain,
    GroupTest,
    Interval,
    ListedEvaluation,
    Metrics,
    NetBenefit,
)
from starlette.responses import Response

from app.console import charts
from app.console.api import attempt, path_segment
from app.console.charts import Dated, Estimate
from app.console.choices import Offer, offer_datasets, offer_models
from app.console.drift import say_share, view_drift
from app.console.lists import read_list
from app.console.rendering import exact, number, percent
from app.console.session import ConsoleRoute, Page, PageDep, or_form
from app.console.top import draw_reliability, read_top_of_list
from app.console.words import FieldLabel
from app.http.forms import Fields, cost_or_text, number_or_text
from app.measures import SEPARATED_CALIBRATION, Measure, measures
from app.platform.errors import shown
from app.platform.ids import is_id

router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)

CURVE_POINTS = 300
SEEN = {
    "new": "new to the model",
    "validated": "used to validate the model",
    "trained": "used to train the model",
    "overlaps": "partly used to train the model",
}
"""What a model has seen of the rows that it is evaluated on, in words."""
TOP = 0.1
"""The fraction of the rows for which the captured amount and the captured positives are compared."""
MAX_EVALUATIONS_DRAWN = 200
"""Most evaluations of a model that are drawn over time."""


LABELS = {
    "models": "Models",
    "model": "Model",
    "dataset_id": "Dataset",
    "fpr_max": "Partial AUC up to FPR",
    "group_by": "Group by column",
    "at_fpr": "Cutoff at FPR",
    "amount": "Amount column",
    "false_negative": "Cost of a false negative (× amount)",
    "false_positive": "Cost of a false positive",
    "review": "Cost per flagged row",
    "capacity": "I can review",
    "rows": "of",
}
"""The fields of both forms by name, and their labels."""
FIELDS = {
    place: FieldLabel(name, LABELS[name])
    for place, name in {
        "models": "models",
        "model": "model",
        "dataset_id": "dataset_id",
        "windows": "fpr_max",
        "capacity": "capacity",
        "group_by": "group_by",
        "at": "at_fpr",
        "amount": "amount",
        "costs/false_negative": "false_negative",
        "costs/false_positive": "false_positive",
        "costs/review": "review",
    }.items()
}
"""The field of the forms that each part of a request is made of."""


async def offered(page: Page, models: Sequence[str], dataset_id: str) -> dict[str, Offer]:
    """Return nothing if the key has no scope to submit the form."""
    if not page.can("train"):
        return {}
    return {
        "models": await offer_models(page, models),
        "datasets": await offer_datasets(page, [dataset_id]),
    }


def estimate_of(
    name: str, found: Measure | ComparedValue | ComparedPair | Interval
) -> Estimate | None:
    """Return None if the metric has no value or no interval."""
    if found.value is None or found.low is None or found.high is None:
        return None
    return Estimate(name, found.value, found.low, found.high)


def window_of(form: Fields) -> dict[str, float | str] | None:
    """Text that is not a number stays text, so that the API reports the error."""
    given = number_or_text(form.get("fpr_max", ""))
    return None if given is None else {"fpr_min": 0.0, "fpr_max": given}


async def _costs(page: Page, form: Fields) -> dict[str, Any] | None:
    """Use the training table's notation. With a column of amounts, a missed positive costs the number times that."""
    entered = {name: form.get(name, "") for name in ("false_positive", "false_negative", "review")}
    dialect = None
    if any(entered.values()):
        model, _ = await attempt(page.client.models[form.get("model", "")].read(), 404, 422)
        dialect = None if model is None else model.dialect
    found = {name: cost_or_text(text, dialect) for name, text in entered.items()}
    asked: dict[str, Any] = {name: cost for name, cost in found.items() if cost is not None}
    if "false_negative" in asked and form.get("amount"):
        asked["false_negative"] = {"rate": asked["false_negative"]}
    return asked or None


@router.get("/evaluations")
async def list_evaluations(page: PageDep) -> Response:
    """If all belong to one model, show its areas over the time of the rows, or of the evaluations, too."""
    return await _evaluations(page)


async def _evaluations(
    page: Page, problem: dict[str, Any] | None = None, given: Fields | None = None
) -> Response:
    ref = page.asked("model_id")
    model_id, gone = await _find_model(page, ref)
    limit = MAX_EVALUATIONS_DRAWN if model_id else 50
    path, read = "/console/evaluations", page.client.evaluations.page
    listed = await read_list(page, path, read, limit=limit, model_id=model_id)
    evaluations = listed["found"].data
    chosen = given or page.query
    choices = await offered(
        page, [chosen.get("model") or ("" if gone else ref or "")], chosen.get("dataset_id", "")
    )
    drawn, by_day, reference, left_out, unknown = None, None, None, 0, 0
    if model_id:
        reference = None if gone else await _own_area(page, model_id)
        evaluated = [each for each in evaluations if each.metric is not None]
        fresh = [each for each in evaluated if each.seen == "new"]
        unknown = sum(each.seen is None for each in evaluated)
        left_out = len(evaluated) - len(fresh) - unknown
        dated = [(each, _vintages(each)) for each in fresh]
        if series := [found for _, found in dated if found]:
            drawn = charts.by_date(series, "AUC by time of the rows", reference=reference)
        if estimates := _areas([each for each, found in dated if not found]):
            title = "AUC by day of the evaluation"
            by_day = charts.in_order(estimates, title, reference=reference, look="dot open")
    return page.show_form(
        "evaluations.html",
        problem,
        FIELDS,
        **listed,
        error=problem,
        labels=LABELS,
        given=chosen,
        model_id=model_id,
        ref=ref,
        gone=gone,
        reference=reference is not None,
        left_out=left_out,
        unknown=unknown,
        chart=drawn,
        by_day=by_day,
        seen_in_words=SEEN,
        **choices,
    )


async def _find_model(page: Page, ref: str | None) -> tuple[str | None, bool]:
    """Return the id, and True if it was deleted: evaluations outlive their model. The page reports an unknown one."""
    if ref is None:
        return None, False
    try:
        return (await page.client.models[path_segment(ref)].read()).id, False
    except ProblemError as error:
        if error.status not in (404, 422):
            raise
    if is_id(ref, "mdl"):
        return ref, True
    page.tell(f"There is no model {shown(ref)}. Showing the evaluations of all models.")
    return None, False


async def _own_area(page: Page, model_id: str) -> float | None:
    """Return the area at the model's validation."""
    metrics, _ = await attempt(page.client.models[model_id].read_metrics(), 404)
    return metrics.auc.value if isinstance(metrics, Metrics) else None


def _vintages(evaluation: Evaluation | ListedEvaluation) -> list[Dated]:
    """Return the AUC by period of the rows; of all rows if no period has enough; empty without dates."""
    periods = [] if evaluation.periods is None else evaluation.periods.periods
    dated = [
        (_month(each.start), _month(each.end), each)
        for each in periods
        if each.start is not None and each.end is not None
    ]
    name = f"{evaluation.dataset_name}:{evaluation.dataset_version or ''}".rstrip(":")
    found = [
        Dated(start, end, estimate)
        for start, end, each in dated
        if each.auc is not None
        and (estimate := estimate_of(f"{each.name}, {name}", each.auc)) is not None
    ]
    whole = evaluation.metric
    if found or not dated or whole is None:
        return found
    estimate = estimate_of(f"{dated[0][2].name} to {dated[-1][2].name}, {name}", whole)
    return [] if estimate is None else [Dated(dated[0][0], dated[-1][1], estimate)]


def _month(day: str) -> int:
    """Count from January 1970."""
    year, month, _ = day.rsplit("-", 2)
    return 12 * (int(year) - 1970) + int(month) - 1


def _draw_periods(evaluation: Evaluation) -> Markup | None:
    if evaluation.periods is None:
        return None
    title = f"AUC by {evaluation.periods.unit}"
    if any(each.start for each in evaluation.periods.periods):
        found = [each for each in _vintages(evaluation) if len(evaluation.periods.periods) > 1]
        return charts.by_date([found], title) if found else None
    estimates = [
        estimate
        for each in evaluation.periods.periods
        if each.auc is not None and (estimate := estimate_of(each.name, each.auc)) is not None
    ]
    return charts.in_order(estimates, title) if len(estimates) > 1 else None


def _areas(evaluated: list[ListedEvaluation]) -> list[Estimate]:
    oldest_first = sorted(evaluated, key=lambda each: each.created_at)
    found = ((exact(each.created_at), each.metric) for each in oldest_first)
    return [
        estimate
        for name, each in found
        if each is not None and (estimate := estimate_of(name, each)) is not None
    ]


@router.post("/evaluations")
@or_form(_evaluations, unless=[403])
async def create_evaluation(page: PageDep) -> Response:
    form = await page.form()
    window, at_fpr = window_of(form), number_or_text(form.get("at_fpr", ""))
    made = await page.client.evaluate(
        form.get("model", ""),
        form.get("dataset_id", ""),
        windows=None if window is None else [window],
        group_by=form.get("group_by") or None,
        at=None if at_fpr is None else {"fpr": cast(float, at_fpr)},
        amount=form.get("amount") or None,
        costs=await _costs(page, form),
        wait=False,
    )
    return page.go(f"/console/evaluations/{made.id}")


@router.get("/evaluations/{evaluation_id}")
async def read_evaluation(evaluation_id: str, page: PageDep) -> Response:
    evaluation = await page.client.evaluations.get(evaluation_id)
    found, drawn, top, evaluated, reliability = evaluation.data, None, None, None, None
    benefits: list[NetBenefit] = []
    if found.kind == "bipartite" and found.status == "ready":
        roc = await evaluation.roc(max_points=CURVE_POINTS)
        points = [(point.fpr, point.tpr) for point in roc.points]
        drawn = charts.square(plots.roc(points, "ROC curve on this dataset", found.dataset_name))
        top = await read_top_of_list(page, evaluation, grouped=found.groups is not None)
        evaluated = found.metrics.calibration if isinstance(found.metrics, EvaluatedCurve) else None
        if evaluated is not None:
            reliability = draw_reliability(evaluated)
        if isinstance(found.metrics, EvaluatedCurve):
            benefits = found.metrics.decision_curve or []
    return page.show(
        "evaluation.html",
        found=found,
        measures=[] if found.metrics is None else measures(found.metrics.to_json()),
        drift=None if found.drift is None else await view_drift(page, found, found.drift),
        seen_in_words=SEEN,
        periods=_draw_periods(found),
        curve=drawn,
        top=top,
        caught=say_caught(found, () if top is None else top.first_rows),
        evaluated=evaluated,
        separated_words=SEPARATED_CALIBRATION,
        chart=reliability,
        benefits=benefits,
        decisions=_draw_benefits(benefits),
        gone=await page.find_gone(found.model_id, found.dataset_id),
        say_difference=say_difference,
        group_metrics=GROUP_METRICS,
    )


GROUP_METRICS = {
    "auc": "AUC",
    "pauc": "partial AUC",
    "tpr": "TPR",
    "fpr": "FPR",
    "calibration": "calibration error, log odds",
}
"""The metrics that are compared between groups."""


def say_difference(by: EvaluatedGroups, test: GroupTest) -> str:
    """Name a metric that differs, and the groups with its greatest and its least value."""
    name = GROUP_METRICS[test.of]
    values: dict[str, float] = {}
    for each in by.groups:
        found: Any = getattr(each, test.of)
        if test.of == "pauc":
            windows = {(one.fpr_min, one.fpr_max): one for one in found}
            found = windows.get((test.fpr_min, test.fpr_max))
        elif test.of == "calibration" and found is not None:
            found = found.in_the_large
        if found is not None and found.value is not None:
            values["no value" if each.value is None else each.value] = found.value
    if len(values) < 2:
        return name
    most, least = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
    return f"{name}: {number(values[most])} in {most}, {number(values[least])} in {least}"


def say_caught(found: Evaluation, gains: Sequence[Gain]) -> str:
    """Say how much of the amount and how many of the positives are at the top of the list; empty without amounts."""
    values = [] if found.amounts is None else found.amounts.values
    by_amount = [
        one for each in values if each.over == "rows" for one in each.recalls if one.share == TOP
    ]
    by_row = [each.recall for each in gains if each.share == TOP]
    if not by_amount or not by_row:
        return ""
    amount, row = (say_share(each[0]) for each in (by_amount, by_row))
    of = f"The top {percent(TOP, 0)} of the rows"
    return f"{of} have {amount} of the amount of the positives, and {row} of the positives."


def _draw_benefits(found: list[NetBenefit]) -> Markup | None:
    """The curve ends at the highest threshold at which a row is acted on."""
    acted = [each for each in found if each.flagged > 0.0] or found[:1]
    points = [
        charts.Benefit(
            each.threshold,
            each.benefit.value,
            each.benefit.low,
            each.benefit.high,
            each.flag_all.value,
        )
        for each in acted
        if each.benefit.value is not None
        and each.benefit.low is not None
        and each.benefit.high is not None
        and each.flag_all.value is not None
    ]
    return charts.decision_curve(points, "Net benefit by threshold") if points else None


@router.post("/evaluations/{evaluation_id}/delete")
async def delete_evaluation(evaluation_id: str, page: PageDep) -> Response:
    await page.client.evaluations[evaluation_id].delete()
    return page.go("/console/evaluations", deleted=evaluation_id)


@router.post("/evaluations/{evaluation_id}/acknowledgement")
async def acknowledge_evaluation(evaluation_id: str, page: PageDep) -> Response:
    form = await page.form()
    await page.client.evaluations[evaluation_id].acknowledge(form.get("reason", ""))
    return page.go(f"/console/evaluations/{path_segment(evaluation_id)}#acknowledge")


@router.post("/evaluations/{evaluation_id}/acknowledgement/withdraw")
async def withdraw_acknowledgement(evaluation_id: str, page: PageDep) -> Response:
    await page.client.evaluations[evaluation_id].withdraw_acknowledgement()
    return page.go(f"/console/evaluations/{path_segment(evaluation_id)}#acknowledge")
