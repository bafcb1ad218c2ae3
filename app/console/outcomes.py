"""Pages of outcomes, and of requests to erase an entity."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from rankwright.errors import ConfigurationError, ProblemError
from rankwright.tables import format_of
from rankwright.types import OutcomesReceived
from starlette.responses import Response

from app.access.authentication import needs
from app.console.api import at, refusal
from app.console.session import ConsoleRoute, Page, PageDep, or_form
from app.console.upload_fields import UploadField, form_fields, upload_fields
from app.console.words import FieldLabel
from app.http.dependencies import context_of

router = APIRouter(prefix="/console/outcomes", include_in_schema=False, route_class=ConsoleRoute)
erasures_router = APIRouter(
    prefix="/console/erasures", include_in_schema=False, route_class=ConsoleRoute
)

Json = dict[str, Any]
DIALECT = ("encoding", "delimiter", "decimal", "thousands", "dates")
"""Fields that say how a text file is written."""
ENTITY = {
    "id": FieldLabel("id", "Id of the entity"),
    "key_columns": FieldLabel("key_columns", "Columns with ids of entities"),
}


@router.get("")
async def read_outcomes(page: PageDep) -> Response:
    page.check_scope("outcomes")
    return _show(page)


def _show(
    page: Page,
    problem: Json | None = None,
    given: Mapping[str, str] | None = None,
    received: OutcomesReceived | None = None,
) -> Response:
    fields = _fields(page)
    return page.show_form(
        "outcomes.html",
        problem,
        form_fields(fields),
        received=received,
        file_name=None if page.table is None else page.table.file_name,
        given=given or {},
        fields=fields,
        most=context_of(page.request).settings.max_body_bytes,
    )


def _fields(page: Page) -> dict[str, UploadField]:
    """Return the fields that say how a text file is written."""
    known = upload_fields(page.request.app)
    return {name: known[name] for name in DIALECT}


@router.post("")
@needs("outcomes")
async def send_outcomes(page: PageDep) -> Response:
    try:
        found = await _send(page)
    except ProblemError as error:
        if error.status == 403:
            raise
        return _show(page, error.problem, page.filled())
    return _show(page, received=found)


async def _send(page: Page) -> OutcomesReceived:
    """Raises ProblemError."""
    table = page.table
    if table is None or not await table.read_name():
        raise refusal(422, "Invalid request", "the form must contain a file")
    try:
        media_type, encoding = format_of(table.file_name)
    except ConfigurationError as error:
        raise refusal(422, "Invalid request", str(error)) from error
    headers = {"content-type": media_type} | ({"content-encoding": encoding} if encoding else {})
    dialect = {name: value for name, value in page.filled().items() if name in _fields(page)}
    answer = await page.api.send(
        "POST", at("/v1/outcomes"), table.read(), headers, urlencode(dialect)
    )
    return OutcomesReceived.from_json(answer.json())


@erasures_router.get("")
async def read_erasures(page: PageDep) -> Response:
    return await _show_erasures(page)


async def _show_erasures(
    page: Page, problem: Json | None = None, given: Mapping[str, str] | None = None
) -> Response:
    found = await page.client.erasures.page(limit=50, after=page.asked("after"))
    return page.show_form("erasures.html", problem, ENTITY, found=found, entered=given or {})


@erasures_router.get("/{erasure_id}")
async def read_erasure(page: PageDep, erasure_id: str) -> Response:
    return page.show("erasure.html", found=await page.client.erasures.get(erasure_id))


async def _no_body() -> AsyncIterator[bytes]:
    pieces: tuple[bytes, ...] = ()
    for piece in pieces:
        yield piece


@erasures_router.get("/{erasure_id}/download/report")
async def download_report(page: PageDep, erasure_id: str) -> Response:
    """The JSON is the proof."""
    answer = await page.api.send("GET", at("/v1/erasures", erasure_id), _no_body(), {})
    name = f'attachment; filename="{erasure_id}.json"'
    return Response(
        answer.content, media_type="application/json", headers={"Content-Disposition": name}
    )


@erasures_router.post("")
@or_form(_show_erasures, 422)
async def erase(page: PageDep) -> Response:
    """The id is in the body, never in an address."""
    form = await page.form()
    columns = [name.strip() for name in form.get("key_columns", "").split(",") if name.strip()]
    await page.client.erasures.create(
        form.get("id", ""), key_columns=columns, retire_models="retire_models" in form
    )
    return page.go("/console/erasures", requested="yes")
