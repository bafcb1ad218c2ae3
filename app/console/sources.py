"""Pages on datasets from a source: the form, and the refresh."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.transport import parameter_value
from rankwright.types import SourceList, SourceQuery
from starlette.responses import Response

from app.access.authentication import needs
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.upload_fields import for_templates, form_fields, upload_fields
from app.console.words import FieldLabel, place_faults

router = APIRouter(prefix="/console/datasets", include_in_schema=False, route_class=ConsoleRoute)

PARAMETER = "parameter."
"""Prefix of the form's fields that are parameters of a query."""
TYPES = {
    "text": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "date": "date, such as 2026-01-31",
    "timestamp": "time, such as 2026-01-31T12:00:00Z",
}
"""Labels of the types of parameters."""


@router.get("/from-source")
async def read_form(page: PageDep) -> Response:
    return await _show_form(page, page.query)


@router.post("/from-source")
@needs("train")
async def create(page: PageDep) -> Response:
    form = await page.form()
    given = page.filled()
    try:
        known = await page.client.datasets.sources()
        made = await page.client.datasets.create(
            _source_of(given, known),
            wait=False,
            name=given.get("name", ""),
            **cast(Any, {name: form[name] for name in _fields(page, given)}),
        )
    except ProblemError as error:
        return await _show_form(page, given, error)
    return page.go(f"/console/datasets/{made.id}")


def _fields(page: Page, given: Mapping[str, str]) -> list[str]:
    """Return the fields that are filled in, without the name."""
    return [name for name in upload_fields(page.request.app) if name in given and name != "name"]


def _source_of(given: Mapping[str, str], known: SourceList) -> dict[str, Any]:
    connection, separator, name = given.get("of", "").partition("/")
    if not separator:
        return {"url": given.get("url", "")}
    query = _query_of(known, connection, name)
    types = {each.name: each.type for each in query.parameters} if query is not None else {}
    parameters = {
        (name := field.removeprefix(PARAMETER)): parameter_value(text, types.get(name))
        for field, text in given.items()
        if field.startswith(PARAMETER)
    }
    return {"connection": connection, "query": name, "parameters": parameters}


def _query_of(known: SourceList, connection: str, name: str) -> SourceQuery | None:
    for each in known.data:
        for query in each.queries or []:
            if (each.name, query.name) == (connection, name):
                return query
    return None


async def _show_form(
    page: Page, given: Mapping[str, str], error: ProblemError | None = None
) -> Response:
    known = await page.client.datasets.sources()
    of = given.get("of", "")
    connection, _, name = of.partition("/")
    query = _query_of(known, connection, name) if of else None
    if of and query is None:
        page.tell(f"There is no query {of[:100]!r}.")
        of = ""
    problem = None if error is None else error.problem
    shown = for_templates(page.request.app)
    labels = form_fields(shown["fields"]) | {
        "source/url": FieldLabel("url", "URL"),
        **{
            f"source/parameters/{each.name}": FieldLabel(f"{PARAMETER}{each.name}", each.name)
            for each in (query.parameters if query is not None else ())
        },
    }
    return page.show(
        "dataset_from_source.html",
        200 if error is None else error.status,
        connections=known.data,
        of=of,
        query=query,
        prefix=PARAMETER,
        types=TYPES,
        given=given,
        faults=place_faults(problem, labels),
        **shown,
    )
