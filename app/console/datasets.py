"""Pages on datasets: the list, the upload, one dataset with its profile and its versions."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from fastapi import APIRouter
from markupsafe import Markup
from rankwright.errors import ProblemError
from rankwright.types import (
    Column,
    ColumnProfile,
    CountedValue,
    Dataset,
    DatasetProfile,
    ListedDataset,
)
from starlette.responses import Response

from app.access.authentication import needs
from app.console import charts, samples
from app.console.api import at, attempt, refusal
from app.console.lists import read_list
from app.console.rendering import count, date, percent
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.upload_fields import (
    changes_of,
    for_templates,
    form_fields,
    joined,
    said_of,
    sheets_of,
    upload_fields,
)
from app.console.uploads import send_form, send_table
from app.console.words import place_faults
from app.http.dependencies import context_of
from app.platform.errors import counted

router = APIRouter(prefix="/console/datasets", include_in_schema=False, route_class=ConsoleRoute)

R = TypeVar("R")
COLUMNS = 20
"""Columns on a page; of a wider table those first that rank the label best."""
PREVIEWED = 100
"""Most columns of the first rows, and of the candidates for groups."""
MODELS = 50
"""Most models that a dataset's page counts."""
VERSIONS = 10
"""Versions on the page of one: the API tells all columns of each."""
SORTS = {
    "table": "table order",
    "name": "name",
    "auc": "feature AUC, farthest from 0.5 first",
    "missing": "missing values, most first",
    "distinct": "distinct values, most first",
}
_ID = re.compile(
    r"(?:^|[^a-z])(?:id|nr|no|number|key|customer|client|patient|user|account|kunden?|konto|vertrag)(?:[^a-z]|$)|[a-z]I[dD]$",
    re.IGNORECASE,
)
"""Names of columns that say whom a row is about."""
MIN_SUGGESTED_GROUPS = 30
"""Fewest values of a column that a button offers as the group column: with fewer groups, folds and intervals are poor,
and a column of four values is hardly a customer.
"""
MODES = ("append", "replace")


@router.get("")
async def list_datasets(page: PageDep) -> Response:
    filters = ("search", "name", "latest")
    listed = await read_list(page, "/console/datasets", page.client.datasets.page, filters)
    return page.show("datasets.html", **listed)


@router.get("/new")
async def read_form(page: PageDep) -> Response:
    return _show_form(page, page.query)


@router.get("/new/namesake")
async def find_namesake(page: PageDep) -> Response:
    """Tell whether a dataset already has the entered name."""
    found: list[ListedDataset] = []
    if name := page.asked("name"):
        with suppress(ProblemError):  # the upload itself reports an invalid name
            found = (await page.client.datasets.page(name=name, limit=1)).data
    return page.show("dataset_namesake.html", found=found[0] if found else None)


@router.post("")
@needs("train")
async def upload(page: PageDep) -> Response:
    try:
        dataset_id = await send_form(page, "POST", at("/v1/datasets"))
    except ProblemError as error:
        return _show_form(page, page.filled(), error)
    return page.go(f"/console/datasets/{dataset_id}")


@router.post("/check")
@needs("train")
async def check(page: PageDep) -> Response:
    try:
        found = await send_table(page, "POST", at("/v1/datasets", "validate"))
    except ProblemError as error:
        return _show_form(page, page.filled(), error)
    return _show_form(page, page.filled(), checked=found)


@router.post("/sample")
async def upload_sample(page: PageDep) -> Response:
    made = await page.client.upload(
        samples.customers(),
        name=samples.NAME,
        label=samples.LABEL,
        positive=samples.POSITIVE,
        media_type="text/csv",
        wait=False,
    )
    return page.go(f"/console/datasets/{made.id}")


def _show_form(
    page: Page,
    given: Mapping[str, str],
    error: ProblemError | None = None,
    checked: dict[str, Any] | None = None,
) -> Response:
    """Show entered values, and the messages of an error, or what a check found."""
    problem = None if error is None else error.problem
    shown = for_templates(page.request.app, sheets_of(problem, checked))
    return page.show(
        "dataset_new.html",
        200 if error is None else error.status,
        given=given,
        error=problem,
        faults=place_faults(problem, form_fields(shown["fields"])),
        checked=checked,
        shown_columns=PREVIEWED,
        **shown,
        most=context_of(page.request).settings.max_body_bytes,
    )


@router.get("/{dataset_id}")
async def read_dataset(dataset_id: str, page: PageDep) -> Response:
    """Show one dataset with its versions, preview, profile and models."""
    return await _show(page, dataset_id, "dataset.html")


@router.get("/{dataset_id}/now")
async def read_dataset_now(dataset_id: str, page: PageDep) -> Response:
    """Return a fragment, which the browser requests while the table is read."""
    return await _show(page, dataset_id, "dataset_now.html")


@router.get("/{dataset_id}/profile")
async def read_profile(dataset_id: str, page: PageDep) -> Response:
    """Return the API's own page of the profile."""
    return page.download(at("/v1/datasets", dataset_id, "profile"), format="html")


@router.post("/{dataset_id}/versions")
@needs("train")
async def upload_version(dataset_id: str, page: PageDep) -> Response:
    try:
        made = await send_form(page, "POST", at("/v1/datasets", dataset_id, "versions"))
    except ProblemError as error:
        return await _show(page, dataset_id, "dataset.html", error)
    return page.go(f"/console/datasets/{made}")


@router.post("/{dataset_id}/read")
async def read_again(dataset_id: str, page: PageDep) -> Response:
    """Read the table again with the form's changed fields, or with the ticked label values as positive."""
    table, form = page.client.datasets[dataset_id], await page.form()
    dataset = await table.refresh()
    try:
        changes, reset = changes_of(dataset, form, upload_fields(page.request.app))
        if "ticks" in form:
            ticked = form.getlist("tick")
            if not ticked:
                detail = "select at least one positive value of the label"
                raise refusal(422, "No value selected", detail)
            changes["positive"] = ticked[0] if len(ticked) == 1 else joined(ticked)
        if not changes and not reset:
            raise refusal(
                422,
                "No changes",
                "the table was already read with these options: change at least one",
            )
        made = await table.read_again(**cast(Any, changes), reset=reset, wait=False)
    except ProblemError as error:
        chosen = form.getlist("tick") if "ticks" in form else None
        return await _show(page, dataset_id, "dataset.html", error, chosen)
    return page.go(f"/console/datasets/{made.id}")


@router.post("/{dataset_id}/pairs")
@needs("train")
async def upload_pairs(dataset_id: str, page: PageDep) -> Response:
    try:
        await send_form(page, "PUT", at("/v1/datasets", dataset_id, "pairs"))
    except ProblemError as error:
        return await _show(page, dataset_id, "dataset.html", error)
    return page.go(f"/console/datasets/{dataset_id}")


@router.post("/{dataset_id}/refresh")
@needs("train")
async def refresh(dataset_id: str, page: PageDep) -> Response:
    """Read the source of a dataset again, and show the new version."""
    try:
        made = await page.client.datasets.refresh(dataset_id, wait=False)
    except ProblemError as error:
        if error.status == 404:
            raise
        return await _show(page, dataset_id, "dataset.html", error)
    return page.go(f"/console/datasets/{made.id}")


@router.post("/{dataset_id}/delete")
async def delete_dataset(dataset_id: str, page: PageDep) -> Response:
    try:
        await page.client.datasets[dataset_id].delete()
    except ProblemError as error:
        if error.status == 404:
            raise
        return await _show(page, dataset_id, "dataset.html", error)
    return page.go("/console/datasets", deleted=dataset_id)


async def _show(
    page: Page,
    dataset_id: str,
    template: str,
    error: ProblemError | None = None,
    ticked: list[str] | None = None,
) -> Response:
    """Show versions, preview, profile and models, and the error of a form."""
    table = page.client.datasets[dataset_id]
    dataset = await table.refresh()
    versions, preview, profile, models = await asyncio.gather(
        table.version_page(limit=VERSIONS),
        _if_ready(dataset, partial(table.preview, limit=10)),
        _if_ready(dataset, table.profile),
        page.client.models.page(dataset_id=dataset_id, limit=MODELS),
    )
    shown = for_templates(page.request.app)
    said = said_of(dataset, shown["fields"])
    profiles = {} if profile is None else {each.name: each for each in profile.columns}
    return page.show(
        template,
        200 if error is None else error.status,
        dataset=dataset,
        versions=versions,
        learnt=models,
        live=[f"{each.name}@{alias}" for each in models.data for alias in each.aliases],
        preview=preview,
        profile=profile,
        columns=_columns(page, dataset, profiles),
        sorts=SORTS,
        notices=_notices(dataset, profile),
        without_leaks=_without_leaks(dataset, profile),
        suggested=(suggested := _suggested(dataset)),
        dates_unknown="dates" not in suggested
        and any(each.code == "dates_of_unknown_order" for each in dataset.warnings),
        error=None if error is None else error.problem,
        faults=place_faults(None if error is None else error.problem, form_fields(shown["fields"])),
        modes=MODES,
        said=said,
        given=said | page.filled(),
        ticked=ticked,
        label_step=_label_step(dataset),
        likely_groups=(likely := _likely_groups(dataset, profile)),
        likely_ids=[
            each
            for each in likely
            if _names_an_id(each) and (each.distinct or 0) >= MIN_SUGGESTED_GROUPS
        ][:3],
        **shown,
        job_id=_job_of(dataset),
        most=PREVIEWED,
    )


class LabelStep(NamedTuple):
    """Which values of the label are positive: the label, its values, and the number of counted rows."""

    label: str
    values: list[CountedValue]
    rows: int
    asked: bool
    """True if the table waits for the answer, or the service has guessed it."""


def _label_step(dataset: Dataset) -> LabelStep | None:
    """Return None if the table cannot be read again with another answer."""
    if dataset.mode == "append" or dataset.kind != "bipartite":
        return None
    if dataset.status == "invalid":
        fault = next((each for each in dataset.errors if each.values), None)
        if fault is None or fault.column is None:
            return None
        label, values, asked = fault.column, fault.values or [], True
    elif dataset.label_values and dataset.label is not None:
        share = (dataset.positives or 0) / (dataset.rows or 1)
        asked = bool(dataset.positive_guessed) or share > 0.5
        label, values = dataset.label, dataset.label_values
    else:
        return None
    return LabelStep(label, values, sum(each.count or 0 for each in values), asked)


def _names_an_id(column: Column) -> bool:
    """True by its name, or as it was read."""
    return column.role == "identifier" or _ID.search(column.name) is not None


def _likely_groups(dataset: Dataset, profile: DatasetProfile | None) -> list[Column]:
    """Return possible group columns, identifiers first, if rows are repeated without a group column."""
    if dataset.mode == "append" or dataset.group or dataset.query or profile is None:
        return []
    if not profile.duplicates.repeated:
        return []
    rows = dataset.rows or 0

    def rank(column: Column) -> tuple[bool, int]:
        return not _names_an_id(column), -(column.distinct or 0)

    return [
        each
        for each in sorted(dataset.columns, key=rank)
        if each.role in ("feature", "identifier")
        and not each.missing
        and 1 < (each.distinct or 0) < rows
    ][:PREVIEWED]


class ColumnPage(NamedTuple):
    """One page of the columns whose names contain `find`, in the order of `sort`."""

    shown: list[ShownColumn]
    found: int
    """Number of such columns on all pages."""
    first: int
    """Number of the first one that is shown, from 1."""
    number: int
    pages: int
    find: str
    sort: str


def _columns(page: Page, dataset: Dataset, profiles: dict[str, ColumnProfile]) -> ColumnPage:
    """Raises ProblemError for an unknown order or page."""
    powers = len(dataset.columns) > COLUMNS and any(each.auc for each in profiles.values())
    usual = "auc" if powers else "table"
    find, sort, asked = page.asked("find") or "", page.asked("sort") or usual, page.asked("page")
    if sort not in SORTS:
        detail = f"sort must be one of {', '.join(SORTS)}, got {sort[:100]!r}"
        raise refusal(422, "Invalid request", detail)
    found = [each for each in dataset.columns if find.casefold() in each.name.casefold()]

    def by_auc(column: Column) -> float:
        profile = profiles.get(column.name)
        auc = None if profile is None or profile.auc is None else profile.auc.value
        return 1.0 if auc is None else -abs(auc - 0.5)

    if sort == "name":
        found.sort(key=lambda each: (each.name.casefold(), each.name))
    elif sort == "auc":
        found.sort(key=by_auc)
    elif sort == "missing":
        found.sort(key=lambda each: -(each.missing or 0))
    elif sort == "distinct":
        found.sort(key=lambda each: -(each.distinct or 0))
    pages = max(1, -(-len(found) // COLUMNS))
    number = int(asked[:9]) if asked is not None and asked.isdecimal() else 1 if not asked else 0
    if not 1 <= number <= pages:
        detail = f"page must be a whole number from 1 to {pages}, got {str(asked)[:100]!r}"
        raise refusal(422, "Invalid request", detail)
    first = (number - 1) * COLUMNS
    shown = [
        ShownColumn(each, profiles.get(each.name), dataset.rows)
        for each in found[first : first + COLUMNS]
    ]
    return ColumnPage(shown, len(found), first + 1, number, pages, find, sort)


async def _if_ready(dataset: Dataset, read: Callable[[], Awaitable[R]]) -> R | None:
    """Return None if the dataset is not ready or its file is missing."""
    if dataset.status != "ready":
        return None
    return (await attempt(read(), 404, 409, 503))[0]


def _job_of(dataset: Dataset) -> str | None:
    pairs = dataset.pairs
    if pairs is not None and pairs.status == "processing":
        return pairs.job_id
    return dataset.job_id if dataset.status == "processing" else None


class ShownColumn:
    """A column with its profile and a picture of its distribution."""

    def __init__(self, column: Column, profile: ColumnProfile | None, rows: int | None) -> None:
        self.of = column
        self.drawn: Markup | None = None
        self.placed: Markup | None = None
        self.shown_text = ""
        self.auc = None if profile is None else profile.auc
        self.missing_auc = None if profile is None else profile.missing_auc
        self.leak_words = None if profile is None else profile.leak_words
        self.share_missing = column.missing / rows if column.missing and rows else None
        known = (rows or 0) - (column.missing or 0)
        of_dates = column.type == "datetime"
        if profile is not None and profile.histogram is not None:
            edges, metric = profile.histogram.edges, date if of_dates else _metric
            self.shown_text = f"{metric(edges[0])} to {metric(edges[-1])}"
            title = f"Distribution, {self.shown_text}"
            self.drawn = charts.columns(profile.histogram.counts, title)
        elif column.top and known:
            top, word = column.top[:3], _day if of_dates else _word
            self.shown_text = ", ".join(
                f"{word(each.value)} {percent(each.count / known, 0)}" for each in top
            )
            if column.distinct is not None and column.distinct > len(top):
                self.shown_text += ", …"
        if self.auc is not None:
            auc = self.auc
            self.placed = charts.placed(auc.value, auc.low, auc.high, title="Feature AUC")


def _metric(value: float) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _day(value: object) -> str:
    return date(value) if isinstance(value, (int, float)) else str(value)


def _word(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else text[:23] + "…"


def _suggested(dataset: Dataset) -> dict[str, str]:
    """Return upload fields that make rejected values readable; none if two columns need different ones."""
    said = [item for each in dataset.warnings for item in (each.suggestion or {}).items()]
    found = dict(said)
    return found if all(found[name] == value for name, value in said) else {}


MAX_LEAKS = 3
"""Leaks that have a button of their own."""


def _without_leaks(dataset: Dataset, profile: DatasetProfile | None) -> dict[str, str]:
    """Return `drop` fields by the text of a button, each without a column that probably leaks the label.

    Columns that are already dropped stay dropped.
    """
    leaks = [] if profile is None else [each.name for each in profile.columns if each.leak]
    dropped = [column.name for column in dataset.columns if column.role == "dropped"]
    choices = {f"Leave out {name}": [name] for name in leaks[:MAX_LEAKS]}
    if len(leaks) > 1:
        choices[f"Leave out all {len(leaks)}"] = leaks
    return {words: joined([*dropped, *names]) for words, names in choices.items()}


FEW_ROWS = 10
"""Rows of a class below which a page says that they are few."""


def _notices(dataset: Dataset, profile: DatasetProfile | None) -> list[str]:
    """Say what a person should check before training."""
    found = []
    features = [column for column in dataset.columns if column.role == "feature"]
    if profile is not None:
        leaks = [each.leak_words for each in profile.columns if each.leak_words]
        found += leaks[:MAX_LEAKS]
        if (more := len(leaks) - MAX_LEAKS) > 0:
            found.append(
                f"{counted(more, 'more feature states', 'more features state')} the label: see the table of columns."
            )
        if profile.over_time is not None and profile.over_time.words is not None:
            found.append(profile.over_time.words)
        both = profile.duplicates.rows_of_both_classes
        if both:
            found.append(
                f"{count(both)} rows have the same features as a row of the other class, so no ranker can "
                "separate them."
            )
    classes = (("positive", dataset.positives), ("negative", dataset.negatives))
    found += [
        f"The table has only {count(rows)} {what} rows, so all confidence intervals will be wide."
        for what, rows in classes
        if rows is not None and rows < FEW_ROWS
    ]
    fraction = (dataset.positives or 0) / (dataset.rows or 1)
    if fraction > 0.5:
        found.append(
            f"{percent(fraction)} of the rows are positive (“{dataset.positive}”). The rarer value is usually the "
            "positive one. Check that these rows should rank at the top."
        )
    constant = [column.name for column in features if column.constant]
    if constant:
        found.append(
            f"{_named(constant)} {'has' if len(constant) == 1 else 'have'} the same value in all rows and cannot "
            "help to rank."
        )
    gaps = [
        column.name
        for column in features
        if not column.constant and (column.missing or 0) > 0.5 * (dataset.rows or 0)
    ]
    if gaps:
        found.append(
            f"{_named(gaps)} {'is' if len(gaps) == 1 else 'are'} missing in more than half of the rows."
        )
    return found


def _named(names: list[str]) -> str:
    shown = ", ".join(f"“{name}”" for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
