"""Aliases of a model: the list, and the forms that move and delete them."""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter
from rankwright.errors import ProblemError
from starlette.responses import Response

from app.console.api import path_segment, refusal
from app.console.model_parts import model_page, show_part
from app.console.session import ConsoleRoute, Page, PageDep

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
MAX_ALIASES = 20
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
NAME_RULE = (
    "An alias has at most 63 small letters, digits, dots, dashes or underscores, and begins with a "
    "letter or digit"
)


@router.get("/{ref}/aliases")
async def read_aliases(page: PageDep, ref: str) -> Response:
    """Show the aliases, with their history."""
    return await _show_aliases(page, ref)


async def _show_aliases(
    page: Page, ref: str, status: int = 200, problem: Json | None = None, entered: str = ""
) -> Response:
    model = await page.client.models[ref].read()
    models = page.client.models
    found = await models.alias_page(model.name, limit=MAX_ALIASES)
    aliases = [await models.read_alias(model.name, each.alias) for each in found.data]
    listed = await models.page(name=model.name, limit=200)
    versions = {each.id: each.version for each in listed.data}
    return await show_part(
        page,
        model,
        "aliases",
        status,
        aliases=aliases,
        more=found.has_more,
        versions=versions,
        problem=problem,
        entered=entered,
    )


@router.post("/{ref}/aliases")
async def move_alias(page: PageDep, ref: str) -> Response:
    """Point an alias at this model. `revision` is the one that the page has shown; without it the alias is new."""
    form = await page.form()
    alias, revision = str(form.get("alias", "")).strip(), str(form.get("revision", ""))
    model = await page.client.models[ref].read()
    try:
        if "threshold" in form:  # of a page that was opened before the service was replaced
            rule = "open the tab Decide again, and save the cut there: nothing was saved"
            raise refusal(422, "Invalid request", rule)
        if NAME.fullmatch(alias) is None:
            raise refusal(422, "Invalid request", f"{NAME_RULE}, got {alias[:100]!r}")
        await page.client.models.set_alias(
            model.name, path_segment(alias), model.id, promise="keep", revision=revision or None
        )
    except ProblemError as error:
        if error.status not in (404, 412, 422):
            raise
        return await _show_aliases(page, ref, error.status, error.problem, alias)
    return page.go(model_page(model.id) + "/lineage#aliases")


@router.post("/{ref}/aliases/{alias}/remove")
async def remove_alias(page: PageDep, ref: str, alias: str) -> Response:
    """Delete an alias. `revision` is the one that the page has shown."""
    form = await page.form()
    model = await page.client.models[ref].read()
    try:
        await page.client.models.delete_alias(
            model.name, alias, revision=str(form.get("revision", ""))
        )
    except ProblemError as error:
        if error.status not in (404, 412, 422):
            raise
        return await _show_aliases(page, ref, error.status, error.problem)
    return page.go(model_page(model.id) + "/lineage#aliases")
