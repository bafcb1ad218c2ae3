"""Pages on datasets: the list, the upload, one dataset with its profile and its versions."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.access.authentication import needs
from app.console import charts, samples
from app.console.api import ApiError, ApiPath, at
from app.console.rendering import count, date, percent
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.uploads import send_form
from app.http.dependencies import context_of

router = APIRouter(prefix="/console/datasets", include_in_schema=False, route_class=ConsoleRoute)

MAX_COLUMNS = 200
MAIN_FIELDS = ("name", "label", "positive")
ROLE_FIELDS = ("weight", "group")
OTHER_FIELDS = (
    *("kind", "labels", "item", "categorical", "numeric", "drop", "missing", "strict"),
    *("encoding", "delimiter", "decimal"),
)
CHOICES = {
    "kind": ("bipartite", "preferences", "multilabel"),
    "strict": ("false", "true"),
    "encoding": ("utf-8", "utf-16", "latin-1", "windows-1252"),
    "delimiter": ("comma", "semicolon", "tab", "pipe"),
    "decimal": ("point", "comma"),
}
MODES = ("append", "replace")


@router.get("")
async def list_datasets(page: PageDep) -> Response:
    """Show the owner's datasets, newest first."""
    name, latest = page.asked("name"), page.asked("latest")
    found = await page.api.get(
        at("/v1/datasets"), name=name, latest=latest, after=page.asked("after"), limit=50
    )
    return page.show("datasets.html", found=found, name=name, latest=latest)


@router.get("/new")
async def read_form(page: PageDep) -> Response:
    """Show the form for a table."""
    return _show_form(page, dict(page.request.query_params))


@router.post("")
@needs("train")
async def upload(page: PageDep) -> Response:
    """Accept a table from the plain form."""
    try:
        dataset_id = await send_form(page, "POST", at("/v1/datasets"))
    except ApiError as error:
        return _show_form(page, page.filled(), error)
    return page.go(f"/console/datasets/{dataset_id}")


@router.post("/sample")
async def upload_sample(page: PageDep) -> Response:
    """Upload the sample table."""
    fields = {"name": samples.NAME, "label": samples.LABEL, "positive": samples.POSITIVE}
    content = samples.customers()
    answer = await page.api.call(
        "POST",
        at("/v1/datasets"),
        query=fields,
        content=content,
        headers={"content-type": "text/csv"},
    )
    dataset_id = answer.json()["id"]
    return page.go(f"/console/datasets/{dataset_id}")


def _show_form(page: Page, given: dict[str, str], error: ApiError | None = None) -> Response:
    described = page.request.app.openapi()["paths"]["/v1/datasets"]["post"]["parameters"]
    return page.show(
        "dataset_new.html",
        200 if error is None else error.status,
        docs={each["name"]: each["description"] for each in described},
        given=given,
        error=None if error is None else error.body,
        main=MAIN_FIELDS,
        roles=ROLE_FIELDS,
        others=OTHER_FIELDS,
        choices=CHOICES,
        most=context_of(page.request).settings.max_body_bytes,
    )


@router.get("/{dataset_id}")
async def read_dataset(dataset_id: str, page: PageDep) -> Response:
    """Show one dataset."""
    return await _show(page, dataset_id, "dataset.html")


@router.get("/{dataset_id}/now")
async def read_dataset_now(dataset_id: str, page: PageDep) -> Response:
    """Return the page's changing part as a fragment, while the table is read."""
    return await _show(page, dataset_id, "dataset_now.html")


@router.get("/{dataset_id}/profile")
async def read_profile(dataset_id: str, page: PageDep) -> Response:
    """Return the API's own page of the profile."""
    return page.download(at("/v1/datasets", dataset_id, "profile"), format="html")


@router.post("/{dataset_id}/versions")
@needs("train")
async def upload_version(dataset_id: str, page: PageDep) -> Response:
    """Accept a new version from the plain form."""
    try:
        made = await send_form(page, "POST", at("/v1/datasets", dataset_id, "versions"))
    except ApiError as error:
        return await _show(page, dataset_id, "dataset.html", error)
    return page.go(f"/console/datasets/{made}")


@router.post("/{dataset_id}/pairs")
@needs("train")
async def upload_pairs(dataset_id: str, page: PageDep) -> Response:
    """Accept the pairs of a dataset of items from the plain form."""
    try:
        await send_form(page, "PUT", at("/v1/datasets", dataset_id, "pairs"))
    except ApiError as error:
        return await _show(page, dataset_id, "dataset.html", error)
    return page.go(f"/console/datasets/{dataset_id}")


@router.post("/{dataset_id}/delete")
async def delete_dataset(dataset_id: str, page: PageDep) -> Response:
    """Delete one version."""
    try:
        await page.api.delete(at("/v1/datasets", dataset_id))
    except ApiError as error:
        if error.status == 404:
            raise
        return await _show(page, dataset_id, "dataset.html", error)
    return page.go("/console/datasets")


async def _show(
    page: Page, dataset_id: str, template: str, error: ApiError | None = None
) -> Response:
    dataset = await page.api.get(at("/v1/datasets", dataset_id))
    versions, preview, profile = await asyncio.gather(
        page.api.get(at("/v1/datasets", dataset_id, "versions"), limit=50),
        _if_ready(page, dataset, at("/v1/datasets", dataset_id, "preview"), limit=10),
        _if_ready(page, dataset, at("/v1/datasets", dataset_id, "profile")),
    )
    looked_at = {} if profile is None else {each["name"]: each for each in profile["columns"]}
    return page.show(
        template,
        200 if error is None else error.status,
        dataset=dataset,
        versions=versions,
        preview=preview,
        profile=profile,
        columns=[
            _column(column, looked_at.get(column["name"]), dataset["rows"])
            for column in dataset["columns"][:MAX_COLUMNS]
        ],
        notices=_notices(dataset, profile),
        error=None if error is None else error.body,
        modes=MODES,
        job_id=_job_of(dataset),
        most=MAX_COLUMNS,
    )


async def _if_ready(page: Page, dataset: dict[str, Any], path: ApiPath, **query: object) -> Any:
    """Return the preview of a table; None if it was not read or its file is missing."""
    if dataset["status"] != "ready":
        return None
    try:
        return await page.api.get(path, **query)
    except ApiError as error:
        if error.status not in (404, 409, 503):
            raise
        return None


def _job_of(dataset: dict[str, Any]) -> str | None:
    """Return the job whose end the page waits for."""
    pairs = dataset["pairs"]
    if pairs is not None and pairs["status"] == "processing":
        found: str | None = pairs["job_id"]
    else:
        found = dataset["job_id"] if dataset["status"] == "processing" else None
    return found


def _column(column: dict[str, Any], profile: dict[str, Any] | None, rows: int | None) -> Any:
    """Return a column with its profile and a picture of its distribution."""
    drawn, shown_text = None, ""
    known = (rows or 0) - (column["missing"] or 0)
    if profile is not None and profile["histogram"] is not None:
        edges, counts = profile["histogram"]["edges"], profile["histogram"]["counts"]
        figure = date if column["type"] == "datetime" else _figure
        shown_text = f"{figure(edges[0])} to {figure(edges[-1])}"
        drawn = charts.columns(counts, f"Distribution, {shown_text}")
    elif column["top"] and known:
        top = column["top"][:3]
        word = date if column["type"] == "datetime" else _word
        shown_text = ", ".join(f"{word(each['value'])} {each['count'] / known:.0%}" for each in top)
        if column["distinct"] is not None and column["distinct"] > len(top):
            shown_text += ", …"
    return {
        **column,
        "share_missing": column["missing"] / rows if column["missing"] and rows else None,
        "drawn": drawn,
        "shown_text": shown_text,
        "placed": profile and profile["auc"] and charts.placed(**profile["auc"], title="AUC alone"),
        "auc": profile and profile["auc"],
        "missing_auc": profile and profile["missing_auc"],
        "leak": profile is not None and profile["leak"],
    }


def _figure(value: float) -> str:
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _word(value: object) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else text[:23] + "…"


def _notices(dataset: dict[str, Any], profile: dict[str, Any] | None) -> list[str]:
    """Return what should be checked before anything is trained."""
    found = []
    features = [column for column in dataset["columns"] if column["role"] == "feature"]
    if profile is not None:
        leaks = [each["name"] for each in profile["columns"] if each["leak"]]
        if leaks:
            found.append(
                f"{_named(leaks)} {'ranks' if len(leaks) == 1 else 'rank'} the label almost perfectly alone, and was "
                f"probably made from it. Leave it out (drop) unless you know that it is right."
            )
        both = profile["duplicates"]["rows_of_both_classes"]
        if both:
            found.append(
                f"{count(both)} rows are equal in every feature to a row of the other class: no ranker can tell them "
                "apart."
            )
    if dataset["positives"] is not None and dataset["positives"] > 0.5 * dataset["rows"]:
        fraction = dataset["positives"] / dataset["rows"]
        found.append(
            f"“{dataset['positive']}” counts as positive, and {percent(fraction)} of the rows have it. Is it the "
            f"value that you want at the top of a list? If not, upload the table again with the other value as "
            f"positive."
        )
    constant = [column["name"] for column in features if column["constant"]]
    if constant:
        found.append(f"{_named(constant)} has the same value in all rows, so it cannot rank.")
    gaps = [
        column["name"]
        for column in features
        if not column["constant"] and (column["missing"] or 0) > 0.5 * (dataset["rows"] or 0)
    ]
    if gaps:
        found.append(f"{_named(gaps)} is missing in more than half of the rows.")
    return found


def _named(names: list[str]) -> str:
    shown = ", ".join(f"“{name}”" for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
