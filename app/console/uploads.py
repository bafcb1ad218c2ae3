"""Tables streamed from a browser to the API, by a script or as a plain form."""

from __future__ import annotations

import re
import secrets
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.access.authentication import needs
from app.console.api import ApiPath, at, refusal
from app.console.session import Page, PageDep, PassingRoute
from app.http.bodies import takes_body
from app.http.forms import FORM

router = APIRouter(prefix="/console/uploads", include_in_schema=False, route_class=PassingRoute)
_HEADERS = ("content-type", "content-length")
ROW_PATHS = re.compile(r"/console/uploads/batch-scores(/[a-z]+)?")
"""The paths that take rows."""


@router.post("/datasets")
@needs("train")
@takes_body("max_upload_bytes")
async def upload_dataset(page: PageDep) -> Response:
    return _pass_on(page, "POST", at("/v1/datasets"))


@router.post("/datasets/validate")
@needs("train")
async def validate_dataset(page: PageDep) -> Response:
    """Nothing is stored."""
    return _pass_on(page, "POST", at("/v1/datasets", "validate"))


@router.post("/datasets/{dataset_id}/versions")
@needs("train")
@takes_body("max_upload_bytes")
async def upload_version(dataset_id: str, page: PageDep) -> Response:
    return _pass_on(page, "POST", at("/v1/datasets", dataset_id, "versions"))


@router.post("/datasets/{dataset_id}/pairs")
@needs("train")
@takes_body("max_upload_bytes")
async def upload_pairs(dataset_id: str, page: PageDep) -> Response:
    return _pass_on(page, "PUT", at("/v1/datasets", dataset_id, "pairs"))


@router.post("/batch-scores")
@needs("score")
@takes_body("max_upload_bytes")
async def upload_rows(page: PageDep) -> Response:
    return _pass_on(page, "POST", at("/v1/batch-scores"))


@router.post("/batch-scores/validate")
@needs("score")
async def validate_rows(page: PageDep) -> Response:
    """Nothing is stored."""
    return _pass_on(page, "POST", at("/v1/batch-scores", "validate"))


def _pass_on(page: Page, method: str, path: ApiPath) -> Response:
    given = page.request.headers
    headers = {name: given[name] for name in _HEADERS if name in given}
    return page.api.stream(method, path, query=page.query, headers=headers)


async def send_form(page: Page, method: str, path: ApiPath) -> str:
    """Return the id of the new resource. Raises ProblemError."""
    made: str = (await send_table(page, method, path))["id"]
    return made


async def send_table(page: Page, method: str, path: ApiPath) -> dict[str, Any]:
    """Leave out empty fields. Raises ProblemError."""
    if page.table is None:
        raise refusal(422, "Invalid request", "the form must contain a file")
    boundary = secrets.token_hex(16)
    headers = {"content-type": f"{FORM}; boundary={boundary}"}
    if (length := page.request.headers.get("content-length")) is not None:
        # an estimate, so that a table that is too large is refused early
        headers["content-length"] = length
    content = page.table.passed_on(boundary)
    answer = await page.api.send(method, path, content, headers)
    found: dict[str, Any] = answer.json()
    return found
