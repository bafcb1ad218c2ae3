"""The form that imports a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from starlette.responses import Response

from app.access.authentication import needs
from app.console.api import at
from app.console.choices import offer_datasets
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.uploads import send_form
from app.console.words import FieldLabel
from app.http.bodies import takes_body

router = APIRouter(prefix="/console/import", include_in_schema=False, route_class=ConsoleRoute)

FIELDS = {
    name: FieldLabel(name, label)
    for name, label in {
        "name": "Name of the model",
        "dataset_id": "Dataset",
        "missing": "Missing value",
        "n_trees": "Number of trees",
        "features": "Features",
        "categories": "Categories",
        "protected_features": "Protected features",
        "tags": "Tags",
        "expected": "Expected scores",
    }.items()
}


@router.get("")
async def read_form(page: PageDep) -> Response:
    given = {name: value for name in FIELDS if (value := page.asked(name)) is not None}
    return await _show_form(page, given)


@router.post("")
@needs("train")
@takes_body("max_upload_bytes")
async def import_model(page: PageDep) -> Response:
    try:
        job_id = await send_form(page, "POST", at("/v1/models"))
    except ProblemError as error:
        if error.status == 403:
            raise
        return await _show_form(page, page.filled(), error.problem)
    return page.go(f"/console/jobs/{job_id}")


async def _show_form(
    page: Page, given: Mapping[str, str], problem: Mapping[str, Any] | None = None
) -> Response:
    datasets = await offer_datasets(page, [given.get("dataset_id", "")])
    return page.show_form("import.html", problem, FIELDS, given=given, datasets=datasets)
