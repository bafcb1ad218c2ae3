"""The training form, checked by the API as it is filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.types import Dataset
from starlette.responses import Response

from app.console.api import path_segment
from app.console.choices import offer_datasets
from app.console.job_form import N_MORE, JobForm, as_curl, as_python, schemas_of
from app.console.session import CSRF_FIELD, ConsoleRoute, Page, PageDep
from app.console.words import group_algorithms
from app.http.proxies import root_path_of

MAX_LISTED = 40
"""Most columns that each have a field for a monotone constraint."""

router = APIRouter(prefix="/console/train", include_in_schema=False, route_class=ConsoleRoute)


@router.get("")
async def read_form(page: PageDep) -> Response:
    """The address may set fields."""
    return await _show(page, page.query)


@router.post("/form")
async def change_form(page: PageDep) -> Response:
    """Return the fields of the chosen options and the API's errors."""
    return await _show(page, await _preset(page), check=True)


@router.post("/check")
async def check(page: PageDep) -> Response:
    form, dataset = await form_of(page, await _preset(page))
    checked = await _checked(page, form)
    return page.show("train_check.html", whole=False, dataset=dataset, **checked)


@router.post("")
async def submit(page: PageDep) -> Response:
    given = await _preset(page)
    form, _ = await form_of(page, given)
    try:
        job = await page.client.jobs.submit(form.body())
    except ProblemError as error:
        if error.status == 403:
            raise
        return await _show(page, given, error=error)
    return page.go(f"/console/jobs/{job.id}")


async def _preset(page: Page) -> dict[str, str]:
    form = await page.form()
    return {name: value for name, value in form.items() if name != CSRF_FIELD}


async def form_of(page: Page, given: Mapping[str, str]) -> tuple[JobForm, Dataset | None]:
    """Return None for an unknown dataset."""
    dataset = None
    if given.get("dataset_id"):
        try:
            dataset = await page.client.datasets[path_segment(given["dataset_id"])].refresh()
        except ProblemError as error:
            if error.status not in (404, 422):
                raise
    kind = "bipartite" if dataset is None else dataset.kind
    if dataset is not None and dataset.query is not None:
        kind = "graded"  # an algorithm that learns from grades also learns within queries; no other one does
    algorithms = [
        each
        for each in await page.client.algorithms()
        if kind in each.kinds or each.name == given.get("algorithm.name")
    ]
    form = JobForm(
        given,
        algorithms=algorithms,
        schemas=schemas_of(page.request.app),
        kind=kind,
    )
    return form, dataset


def _constrained(form: JobForm, dataset: Dataset | None) -> dict[str, Any]:
    """Return columns that can be monotone, and those with a field: all of a small table, else the constrained ones."""
    if dataset is None:
        return {"ordered": None}
    ordered = [
        each.name
        for each in dataset.columns
        if each.role == "feature" and each.type != "categorical"
    ]
    few = len(ordered) <= MAX_LISTED
    listed = [*form.monotone] if not few else [*dict.fromkeys([*ordered, *form.monotone])]
    return {"ordered": ordered, "listed": listed, "n_more": 0 if few else N_MORE}


def _about(seconds: float) -> str:
    if seconds < 1:
        return "less than a second"
    if seconds < 55:
        rounded = max(2, round(seconds) if seconds < 10 else 5 * round(seconds / 5))
        return f"about {rounded} seconds"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"about {minutes} minutes" if minutes > 1 else "about a minute"
    hours = round(seconds / 3600)
    return f"about {hours} hours" if hours > 1 else "about an hour"


async def _checked(page: Page, form: JobForm, error: ProblemError | None = None) -> dict[str, Any]:
    """Return the check, and the request in other forms."""
    body, sound = form.body(), None
    if error is None and form.dataset.value:
        try:
            sound = await page.client.jobs.check_request(body)
        except ProblemError as refused:
            if refused.status == 403:
                raise
            error = refused
    if error is not None:
        form.place(error.problem)
    base = f"{str(page.request.base_url).rstrip('/')}{root_path_of(page.request.scope)}/"
    return {
        "form": form,
        "sound": sound,
        "takes": None if sound is None else _about(sound.estimate.seconds),
        "problem": None if error is None else error.problem,
        "curl": as_curl(base, body),
        "python": as_python(base, body),
    }


async def _show(
    page: Page, given: Mapping[str, str], *, check: bool = False, error: ProblemError | None = None
) -> Response:
    """The API checks the form if `check`."""
    chosen = [given.get("dataset_id", ""), given.get("validation.dataset_id", "")]
    offered = await offer_datasets(page, chosen)
    form, dataset = await form_of(page, given)
    checked = await _checked(page, form, error) if check or error is not None else {"form": form}
    return page.show(
        "train.html",
        200 if error is None else error.status,
        whole=True,
        checked=bool(check or error),
        datasets=offered,
        dataset=dataset,
        algorithms=group_algorithms([each.name for each in form.algorithms]),
        **_constrained(form, dataset),
        **checked,
    )
