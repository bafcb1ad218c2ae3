"""Aliases of a model: the list, and the forms that move and delete them."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.types import Alias, Model
from starlette.responses import Response

from app.console.api import alias_segment, attempt, refusal
from app.console.model_parts import model_page, show_part
from app.console.session import ConsoleRoute, Page, PageDep
from app.console.words import slug

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
MAX_ALIASES = 20


class Shares(NamedTuple):
    """The fractions of the validation rows that an alias flags: with its current model, with the page's model at the
    same threshold, and with its previous model, if it had the same threshold there. None if unknown.
    """

    now: float | None
    here: float | None
    before: float | None


async def read_shares(page: Page, model: Model, alias: Alias) -> Shares:
    """Return the fractions that an alias flags; they are unknown for an alias without a cutoff."""
    if alias.cutoff is None:
        return Shares(None, None, None)
    threshold = alias.cutoff.threshold
    steps = alias.history[1:2] if alias.guarantee and alias.guarantee.threshold is not None else []
    came_from = [
        each.model_id
        for each in steps
        if each.model_id != alias.model_id and each.cutoff and each.cutoff.threshold == threshold
    ]
    now, here, *before = await asyncio.gather(
        *(read_share(page, id_, threshold) for id_ in (alias.model_id, model.id, *came_from))
    )
    return Shares(now, here, before[0] if before else None)


async def read_share(page: Page, model_id: str, threshold: float | None) -> float | None:
    """Return the fraction of a model's validation rows that a threshold flags; None if the model or its curve does not
    exist.
    """
    if threshold is None:
        return 0.0
    asked = page.client.models[model_id].operating_point(threshold=threshold)
    point, _ = await attempt(asked, 404, 409, 422)
    return None if point is None else point.flagged.value


@router.get("/{ref}/aliases")
async def read_aliases(page: PageDep, ref: str) -> Response:
    """Show the aliases, with their history."""
    return await _show_aliases(page, ref)


async def _show_aliases(
    page: Page, ref: str, status: int = 200, problem: Json | None = None, entered: str = ""
) -> Response:
    """Return the tab of aliases with their history and flagged fractions; with the API's problem and the entered name
    after an error.
    """
    model = await page.client.models[ref].read()
    models = page.client.models
    found = await models.alias_page(model.name, limit=MAX_ALIASES)
    aliases = [await models.read_alias(model.name, each.alias) for each in found.data]
    shares = await asyncio.gather(*(read_shares(page, model, each) for each in aliases))
    listed = await models.page(name=model.name, limit=200)
    versions = {each.id: each.version for each in listed.data}
    return await show_part(
        page,
        model,
        "aliases",
        status,
        aliases=aliases,
        shares=dict(zip((each.alias for each in aliases), shares, strict=True)),
        more=found.has_more,
        versions=versions,
        problem=problem,
        entered=entered,
    )


@router.post("/{ref}/aliases")
async def move_alias(page: PageDep, ref: str) -> Response:
    """Point an alias at this model. `revision` is the revision on the page; it is absent for a new alias.

    `keep` says what the alias keeps: its guarantee; or `flagged`, its current fraction of flagged rows; or `threshold`,
    its current threshold.
    """
    form = await page.form()
    alias, revision = slug(str(form.get("alias", ""))), str(form.get("revision", ""))
    model = await page.client.models[ref].read()
    try:
        if "threshold" in form:  # sent by a page that was opened before the service was upgraded
            rule = "nothing was saved: open the Decide tab again and save the cutoff there"
            raise refusal(422, "Invalid request", rule)
        segment = alias_segment(alias)
        guarantee: Any = "keep"
        if (keep := form.get("keep", "")) in ("flagged", "threshold"):
            guarantee = await _present(page, model.name, segment, keep)
        await page.client.models.set_alias(
            model.name, segment, model.id, guarantee=guarantee, revision=revision or None
        )
    except ProblemError as error:
        if error.status not in (404, 412, 422):
            raise
        return await _show_aliases(page, ref, error.status, error.problem, alias)
    return page.go(model_page(model.id) + "/history#aliases")


async def _present(page: Page, name: str, alias: str, keep: str) -> Json:
    """Return the guarantee for the API that preserves the alias's current threshold, or its current fraction of flagged
    rows.

    Raises ProblemError if it has no cutoff, or no threshold can keep the fraction.
    """
    found = await page.client.models.read_alias(name, alias)
    threshold = None if found.cutoff is None else found.cutoff.threshold
    if threshold is None:
        raise refusal(
            422, "Invalid request", f"{name}@{alias} flags no rows and has no cutoff to keep"
        )
    if keep == "threshold":
        return {"threshold": threshold}
    share = await read_share(page, found.model_id, threshold)
    if share is None or not 0.0 < share < 1.0:
        some = "all" if share else "none"
        rule = f"{name}@{alias} flags {some} of the validation rows: keep its threshold instead"
        raise refusal(422, "Invalid request", rule)
    return {"flagged": share}


@router.post("/{ref}/aliases/{alias}/remove")
async def remove_alias(page: PageDep, ref: str, alias: str) -> Response:
    """Delete an alias. `revision` is the revision on the page."""
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
    return page.go(model_page(model.id) + "/history#aliases")
