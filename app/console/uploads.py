"""Tables on their way from a browser to the API: streamed as they come by a script, or as a plain form without one."""

from __future__ import annotations

import secrets
from urllib.parse import quote

from fastapi import APIRouter
from starlette.datastructures import FormData, UploadFile
from starlette.responses import Response

from app.console.session import CSRF_FIELD, ConsoleRoute, Page, PageDep

router = APIRouter(prefix="/console/uploads", include_in_schema=False, route_class=ConsoleRoute)
_HEADERS = ("content-type", "content-length")


@router.post("/datasets")
async def upload_dataset(page: PageDep) -> Response:
    """Pass a form with a table on to the API as it comes."""
    return _pass_on(page, "POST", "/v1/datasets")


@router.post("/datasets/{dataset_id}/versions")
async def upload_version(dataset_id: str, page: PageDep) -> Response:
    """The same for another version of a dataset."""
    return _pass_on(page, "POST", f"/v1/datasets/{dataset_id}/versions")


@router.post("/datasets/{dataset_id}/pairs")
async def upload_pairs(dataset_id: str, page: PageDep) -> Response:
    """The same for the pairs of a dataset of items."""
    return _pass_on(page, "PUT", f"/v1/datasets/{dataset_id}/pairs")


@router.post("/batch-scores")
async def upload_rows(page: PageDep) -> Response:
    """The same for rows to score."""
    return _pass_on(page, "POST", "/v1/batch-scores")


def _pass_on(page: Page, method: str, path: str) -> Response:
    given = page.request.headers
    headers = {name: given[name] for name in _HEADERS if name in given}
    return page.api.stream(method, path, query=page.request.query_params, headers=headers)


async def send_form(page: Page, method: str, path: str) -> str:
    """Send what a plain form holds, a part `file` and fields, on to the API; returns the id of what came of it. Fields
    that were left empty are left out. Raises ApiError.
    """
    form = await page.form()
    file = form.get("file")
    content, name = b"", ""
    if isinstance(file, UploadFile):
        content, name = await file.read(), file.filename or ""
    return await send(page, method, path, content, name, filled(form))


async def send(
    page: Page, method: str, path: str, content: bytes, name: str, fields: dict[str, str]
) -> str:
    """Send a table with a file's name, which says its format; returns the id of what came of it. Raises ApiError."""
    boundary = secrets.token_hex(16)
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{quote(name)}"\r\n\r\n'
    answer = await page.api.call(
        method,
        path,
        query=fields,
        content=head.encode() + content + f"\r\n--{boundary}--\r\n".encode(),
        headers={"content-type": f"multipart/form-data; boundary={boundary}"},
    )
    made: str = answer.json()["id"]
    return made


def filled(form: FormData) -> dict[str, str]:
    """The fields of a form that hold something, but for the file and the token."""
    return {
        name: value
        for name, value in form.items()
        if isinstance(value, str) and value and name not in ("file", CSRF_FIELD)
    }
