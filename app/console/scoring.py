"""Pages on batch scores: tables whose rows a worker scores."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.errors import ConfigurationError, ProblemError
from rankwright.types import BatchScore, BatchSummary
from starlette.responses import Response

from app.access.authentication import needs
from app.console import charts
from app.console.api import at, attempt, path_segment
from app.console.choices import offer_datasets, offer_models
from app.console.drift import view_batch_drift
from app.console.lists import read_list
from app.console.model_parts import PointsConverter, points_converter
from app.console.row_score import cutoffs_of_aliases
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.upload_fields import (
    UploadField,
    describe_form,
    form_fields,
    sheets_of,
    upload_fields,
    with_sheets,
)
from app.console.uploads import send_form, send_table
from app.console.words import FieldLabel, place_faults
from app.http.dependencies import context_of
from app.http.forms import Fields, number_or_text

router = APIRouter(
    prefix="/console/batch-scores", include_in_schema=False, route_class=ConsoleRoute
)
MAX_NAMED = 100
"""Columns that the service names at most in a refusal."""
LABELS = {
    "model": "Model",
    "dataset_id": "Dataset",
    "keep": "Columns to keep",
    "ignore": "Columns to ignore",
    "reasons": "Reasons per row",
    "top": "Top rows only",
    "prevalence": "Fraction of positives",
}
"""The fields of both forms by name, and their labels; but those that say how a table is written."""


@router.get("")
async def list_batch_scores(page: PageDep) -> Response:
    return await _list(page)


async def _list(
    page: Page,
    error: dict[str, Any] | None = None,
    given: Mapping[str, object] | None = None,
    *,
    of_rows: bool = False,
    checked: dict[str, Any] | None = None,
) -> Response:
    """Show entered values, and an error or what a check found; `of_rows` if that was the form with a table."""
    listed = await read_list(page, "/console/batch-scores", page.client.batch_scores.page)
    offered: dict[str, Any] = {"cutoffs": {}}
    if page.can("read"):
        chosen = given or page.query
        named = str(chosen.get("model") or chosen.get("model_id") or "")
        offered = {
            "models": await offer_models(page, [named]),
            "datasets": await offer_datasets(
                page, [str(chosen.get("dataset_id", ""))], labelled=False
            ),
            "cutoffs": await _cutoffs(page, named),
        }
    written = with_sheets(_table_fields(page), sheets_of(error, checked))
    labels = {name: FieldLabel(name, label) for name, label in LABELS.items()}
    return page.show(
        "batch_scores.html",
        200 if error is None else error["status"],
        **listed,
        error=error,
        given=given or page.query,
        of_rows=of_rows,
        labels=LABELS,
        checked=checked,
        faults=place_faults(error, labels | form_fields(written)),
        fields=written,
        written=list(written),
        most=context_of(page.request).settings.max_body_bytes,
        **offered,
    )


def _table_fields(page: Page) -> dict[str, UploadField]:
    """Only the dialect applies to a table to score."""
    taken = describe_form(page.request.app, "/v1/batch-scores")
    # These apply only to a table that they fit.
    unset = dict.fromkeys(("encoding", "delimiter"), "as in the training table, or detected")
    unset["sheet"] = "as in the training table, or the first"
    return {
        name: each._replace(unset=unset.get(name, "as in the training table"))
        for name, each in upload_fields(page.request.app).items()
        if name in taken
    }


async def _cutoffs(page: Page, named: str) -> dict[str, float | None]:
    """Return thresholds by `name@alias`; none for an unknown model."""
    if not named:
        return {}
    try:
        model = await page.client.models[named].read()
    except (ProblemError, ConfigurationError):
        return {}
    found = await cutoffs_of_aliases(page, model)
    return {f"{model.name}@{alias}": cutoff for alias, cutoff in found.items()}


@router.post("")
async def score_dataset(page: PageDep) -> Response:
    form = await page.form()
    written = " ".join(str(form.get("keep", "")).splitlines())
    keep = [name.strip() for name in next(csv.reader([written], skipinitialspace=True), [])]
    dataset = page.client.datasets[form.get("dataset_id", "")]
    try:
        made = await page.client.score_batch(
            form.get("model", ""),
            dataset,
            keep=[name for name in keep if name] or None,
            top=_number(form, "top"),
            reasons=_number(form, "reasons"),
            prevalence=_number(form, "prevalence"),
            wait=False,
        )
    except ProblemError as error:
        if error.status == 403:
            raise
        return await _list(page, error.problem, form)
    return page.go(f"/console/batch-scores/{made.id}")


def _number(form: Fields, name: str) -> Any:
    """Text that is no whole number stays text, so that the API reports the error."""
    found = number_or_text(str(form.get(name, "")))
    return int(found) if isinstance(found, float) and found.is_integer() else found


@router.post("/rows")
@needs("score")
async def score_rows(page: PageDep) -> Response:
    try:
        made = await send_form(page, "POST", at("/v1/batch-scores"))
    except ProblemError as error:
        if error.status == 403:
            raise
        return await _list(page, error.problem, page.filled(), of_rows=True)
    return page.go(f"/console/batch-scores/{made}")


@router.post("/rows/check")
@needs("score")
async def check_rows(page: PageDep) -> Response:
    """Nothing is stored."""
    try:
        found = await send_table(page, "POST", at("/v1/batch-scores", "validate"))
    except ProblemError as error:
        if error.status == 403:
            raise
        return await _list(page, error.problem, page.filled(), of_rows=True)
    return await _list(page, None, page.filled(), of_rows=True, checked=found)


@router.get("/{batch_id}")
async def read_batch_score(batch_id: str, page: PageDep) -> Response:
    batch = await page.client.batch_scores.get(batch_id)
    found = batch.data
    gone = await page.find_gone(found.model_id, found.dataset_id)
    summary, no_summary, to_points = None, None, None
    cutoffs: dict[str, float | None] = {}
    drift = None
    if found.status == "ready":
        if page.can("read"):
            drift = await view_batch_drift(page, found.model_id, await batch.drift())
        try:
            summary = await batch.summary()
            to_points = await _points_of(page, found.model_id)
            if page.can("read") and summary.flagged is None:
                cutoffs = await _cutoffs(page, found.model_id)
        except ProblemError as error:
            if error.status not in (403, 409):
                raise
            no_summary = error.detail
    return page.show(
        "batch_score.html",
        found=found,
        gone=gone,
        misfit=_misfit(found),
        summary=summary,
        cutoffs=cutoffs,
        no_summary=no_summary,
        drift=drift,
        charts=[] if summary is None else _histograms(summary),
        first=None if summary is None else _first_rows(summary, found.keep, to_points),
        listed=LISTED,
    )


async def _points_of(page: Page, model_id: str) -> PointsConverter | None:
    """Return None for a model without points, or one that was deleted or may not be read."""
    if not page.can("read"):
        return None
    model, _ = await attempt(page.client.models[model_id].read(), 404)
    return None if model is None else await points_converter(page, model)


class Misfit(NamedTuple):
    """The columns that do not fit the model, and the query with which unknown ones are ignored."""

    unknown: list[str]
    missing: list[str]
    not_there: list[str]
    again: str


def _misfit(batch: BatchScore) -> Misfit | None:
    """Return None if the batch has no such error."""
    errors: Sequence[Mapping[str, Any]] = (batch.error or {}).get("errors") or []
    unknown, missing, not_there = (
        [each["column"] for each in errors if each.get("code") == code and "column" in each]
        for code in ("unknown_feature", "absent_feature", "unknown_column")
    )
    if not (unknown or missing or not_there):
        return None
    given = {
        "model": f"{batch.model_name}{f'@{batch.alias}' if batch.alias else f':{batch.model_version}'}",
        "keep": _listed([name for name in batch.keep if name not in not_there]),
        "ignore": "*" if len(unknown) >= MAX_NAMED else _listed(unknown),
        "top": batch.top,
        "reasons": None if batch.reasons is None else batch.reasons.n,
    }
    query = urlencode({name: value for name, value in given.items() if value})
    return Misfit(unknown, missing, not_there, query)


def _listed(names: Sequence[str]) -> str:
    """Quote a name with a comma or a quote."""
    return ",".join(
        '"{}"'.format(name.replace('"', '""')) if set(name) & {",", '"'} else name for name in names
    )


def _histograms(summary: BatchSummary) -> list[tuple[str, Markup]]:
    return [
        (
            each.name,
            charts.histogram(
                each.edges,
                each.counts,
                f"Distribution of {each.name}",
                cutoff=summary.threshold,
            ),
        )
        for each in summary.scores
        if each.counts
    ]


LISTED = 10
"""Rows that are shown at once; the others are behind a disclosure."""


class FirstRow(NamedTuple):
    """A row with a high score. Reasons have a text, a contribution to the score, and a standard error; of a scorecard
    both are in points.
    """

    number: int | None
    kept: list[object]
    score: float
    """In points, of a scorecard."""
    probability: float | None
    flag: bool | None
    reasons: list[tuple[str, float, float | None]]


class FirstRows(NamedTuple):
    kept: list[str]
    rows: list[FirstRow]
    has_probability: bool
    n_reasons: int
    in_points: bool
    cutoff_points: float | None


def _first_rows(
    summary: BatchSummary, keep: Sequence[str], to_points: PointsConverter | None
) -> FirstRows | None:
    """Return None for a model with several labels."""
    if summary.first is None:
        return None
    names = summary.columns
    kept = [name for name in names if name in {*keep, "id"}]
    n_reasons = sum(name.startswith("reason_") and name.endswith("_text") for name in names)
    per_unit = 1.0 if to_points is None else to_points(1.0) - to_points(0.0)
    rows = []
    for values in summary.first:
        row: dict[str, Any] = dict(zip(names, values, strict=True))
        reasons = []
        for k in range(1, n_reasons + 1):
            if (text := row[f"reason_{k}_text"]) is not None:
                error = row.get(f"reason_{k}_error")
                part = per_unit * row[f"reason_{k}_contribution"]
                reasons.append((text, part, None if error is None else abs(per_unit) * error))
        cutoff = summary.threshold
        flag = None if cutoff is None else row["score"] >= cutoff
        number = None if "row_number" in keep else row.get("row_number")
        rows.append(
            FirstRow(
                number,
                [row[name] for name in kept],
                row["score"] if to_points is None else to_points(row["score"]),
                row.get("probability"),
                flag,
                reasons,
            )
        )
    has_probability = any(row.probability is not None for row in rows)
    cutoff_points = (
        None if to_points is None or summary.threshold is None else to_points(summary.threshold)
    )
    return FirstRows(kept, rows, has_probability, n_reasons, to_points is not None, cutoff_points)


@router.get("/{batch_id}/result.{kind}")
async def download(batch_id: str, kind: str, page: PageDep) -> Response:
    """A CSV has a decimal comma if the training table has one."""
    more = {}
    if kind == "csv":
        found = (await page.client.batch_scores.get(path_segment(batch_id))).data
        try:
            dialect = (await page.client.models[found.model_id].read()).dialect
        except ProblemError as error:
            if error.status not in (403, 404):
                raise
            dialect = None
        more["decimal"] = (dialect or {}).get("decimal", "point")
    return page.download(at("/v1/batch-scores", batch_id, "result"), format=kind, **more)


@router.post("/{batch_id}/delete")
async def delete_batch_score(batch_id: str, page: PageDep) -> Response:
    await page.client.batch_scores[batch_id].delete()
    return page.go("/console/batch-scores")
