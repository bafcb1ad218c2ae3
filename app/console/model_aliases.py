"""Aliases of a model: the list, and the forms that move and delete them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.types import Alias, AliasPreview, Model
from starlette.responses import Response

from app.console.alias_requests import request_page
from app.console.api import alias_segment, at, attempt, refusal
from app.console.model_parts import model_page, show_part, show_tab
from app.console.session import ConsoleRoute, ModelDep, Page, PageDep
from app.console.words import slug

router = APIRouter(prefix="/console/models", include_in_schema=False, route_class=ConsoleRoute)

Json = dict[str, Any]
MAX_ALIASES = 20
HOURS = ("1", "2", "4")
"""Hours for which a protection can be suspended."""


class Shares(NamedTuple):
    """The fractions of validation rows that an alias flags: now, with the page's model, and with its previous model at
    the same threshold. None if unknown.
    """

    now: float | None
    here: float | None
    before: float | None


def needs_more(error: ProblemError) -> bool:
    """True if a protected alias needs a reason, or a request."""
    return error.problem.get("code") in ("reason_required", "approval_required")


async def read_shares(page: Page, model: Model, alias: Alias) -> Shares:
    """They are unknown for an alias without a cutoff."""
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
    """Return the flagged fraction; None without the model or its curve."""
    if threshold is None:
        return 0.0
    asked = page.client.models[model_id].operating_point(threshold=threshold)
    point, _ = await attempt(asked, 404, 409, 422)
    return None if point is None else point.flagged.value


@router.get("/{ref}/aliases")
async def read_aliases(page: PageDep, ref: str) -> Response:
    return await _show_aliases(page, ref)


async def _show_aliases(
    page: Page, ref: str, status: int = 200, problem: Json | None = None, entered: str = ""
) -> Response:
    model = await page.client.models[ref].read()
    models = page.client.models
    found = await models.alias_page(model.name, limit=MAX_ALIASES)
    aliases = [await models.read_alias(model.name, each.alias) for each in found.data]
    shares = await asyncio.gather(*(read_shares(page, model, each) for each in aliases))
    listed = await models.page(name=model.name, limit=200)
    versions = {each.id: each.version for each in listed.data}
    deleted = [each async for each in models.deleted_aliases(model.name, limit=MAX_ALIASES)]
    return await show_part(
        page,
        model,
        "aliases",
        status,
        aliases=aliases,
        shares=dict(zip((each.alias for each in aliases), shares, strict=True)),
        more=found.has_more,
        deleted=deleted[:MAX_ALIASES],
        may_protect=page.can("admin"),
        hours=HOURS,
        versions=versions,
        problem=problem,
        entered=entered,
    )


@router.get("/{ref}/aliases/{alias}/change")
async def confirm_change(page: PageDep, model: ModelDep, alias: str) -> Response:
    """Show what changes, and ask for a reason, before the alias points here, or the revision `to` is restored."""
    return await _show_change(page, model, alias, page.asked("keep") or "", page.asked("to") or "")


async def _show_change(
    page: Page,
    model: Model,
    alias: str,
    keep: str,
    to: str,
    *,
    status: int = 200,
    problem: Json | None = None,
    reason: str = "",
) -> Response:
    preview, refused = await attempt(_preview(page, model, alias, keep, to), 404, 409, 422)
    if preview is None:
        return await _show_aliases(page, model.id, 422, refused)
    change = AliasChangeForm(alias, reason, keep=keep, to=to)
    return await show_preview(page, model, preview, change, status, problem)


class SavedCutoff(NamedTuple):
    """A cutoff to save: the address of its form, hidden fields, the memo, and the address of the panel with it."""

    action: str
    fields: Mapping[str, str]
    memo: Mapping[str, Any]
    back: str


@dataclass(frozen=True)
class AliasChangeForm:
    """The values of a change: the alias points here and keeps `keep`, gets a cutoff, is restored `to`, or deleted."""

    alias: str
    reason: str = ""
    keep: str = ""
    to: str = ""
    removal: bool = False
    saving: SavedCutoff | None = None


async def show_preview(
    page: Page,
    model: Model,
    preview: AliasPreview,
    change: AliasChangeForm,
    status: int = 200,
    problem: Json | None = None,
) -> Response:
    """Show what an alias serves before and after a change, and the form that makes it."""
    tab = "decide" if change.saving else "history"
    template = "model_alias_change.html"
    return await show_tab(
        page, model, template, tab, status, preview=preview, problem=problem, **vars(change)
    )


async def _preview(page: Page, model: Model, alias: str, keep: str, to: str) -> AliasPreview:
    models, segment = page.client.models, alias_segment(alias)
    if to:
        if not (to.isascii() and to.isdigit() and len(to) < 10):
            raise refusal(422, "Invalid request", f"to must be a revision, got {to[:100]!r}")
        return await models.preview_alias(model.name, segment, to=int(to))
    guarantee: Any = "keep"
    if keep in KEEPS:
        guarantee = await _present(page, model.name, segment, keep)
    return await models.preview_alias(model.name, segment, model.id, guarantee=guarantee)


KEEPS = ("flagged", "threshold")
"""What an alias may keep instead of its guarantee."""


@router.post("/{ref}/aliases")
async def move_alias(page: PageDep, ref: str) -> Response:
    """Point an alias at this model. `revision` is the revision on the page; it is absent for a new alias.

    `keep` says what the alias keeps: its guarantee; or `flagged`, its current fraction of flagged rows; or `threshold`,
    its current threshold.
    """
    form = await page.form()
    alias, revision = slug(str(form.get("alias", ""))), str(form.get("revision", ""))
    reason, keep = str(form.get("reason", "")).strip(), str(form.get("keep", ""))
    model = await page.client.models[ref].read()
    try:
        if "threshold" in form:  # sent by a page that was opened before the service was upgraded
            rule = "nothing was saved: open the Decide tab again and save the cutoff there"
            raise refusal(422, "Invalid request", rule)
        segment = alias_segment(alias)
        guarantee: Any = "keep"
        if keep in KEEPS:
            guarantee = await _present(page, model.name, segment, keep)
        if form.get("request"):
            made = await page.client.alias_requests.create(
                "set", model.name, segment, reason, model=model.id, guarantee=guarantee
            )
            return page.go(request_page(made.id))
        await page.client.models.set_alias(
            model.name,
            segment,
            model.id,
            guarantee=guarantee,
            memo={"reason": reason} if reason else None,
            revision=revision or None,
        )
    except ProblemError as error:
        if error.status not in (404, 409, 412, 422, 429):
            raise
        if needs_more(error) or form.get("request"):
            return await _show_change(
                page,
                model,
                alias,
                keep,
                "",
                status=error.status,
                problem=error.problem,
                reason=reason,
            )
        return await _show_aliases(page, ref, error.status, error.problem, alias)
    return page.go(model_page(model.id) + "/history#aliases")


@router.post("/{ref}/aliases/{alias}/restore")
async def restore_alias(page: PageDep, ref: str, alias: str) -> Response:
    """`revision` is the newest one on the page."""
    form = await page.form()
    to, reason = str(form.get("to", "")), str(form.get("reason", "")).strip()
    model = await page.client.models[ref].read()
    try:
        if not (to.isascii() and to.isdigit() and len(to) < 10):
            raise refusal(422, "Invalid request", f"to must be a revision, got {to[:100]!r}")
        if form.get("request"):
            made = await page.client.alias_requests.create(
                "restore", model.name, alias_segment(alias), reason, revision=int(to)
            )
            return page.go(request_page(made.id))
        await page.client.models.restore_alias(
            model.name,
            alias_segment(alias),
            int(to),
            reason=reason or None,
            revision=str(form.get("revision", "")),
        )
    except ProblemError as error:
        if error.status not in (404, 409, 412, 422, 429):
            raise
        if needs_more(error) or form.get("request"):
            return await _show_change(
                page,
                model,
                alias,
                "",
                to,
                status=error.status,
                problem=error.problem,
                reason=reason,
            )
        return await _show_aliases(page, ref, error.status, error.problem)
    return page.go(model_page(model.id) + "/history#aliases")


async def _present(page: Page, name: str, alias: str, keep: str) -> Json:
    """Return the guarantee that preserves the current threshold, or fraction of flagged rows.

    Raises ProblemError if the alias has no cutoff, or no threshold can keep the fraction.
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


@router.get("/{ref}/aliases/{alias}/remove")
async def confirm_removal(page: PageDep, ref: str, alias: str) -> Response:
    """Ask for a reason."""
    return await _show_removal(page, ref, alias)


async def _show_removal(
    page: Page,
    ref: str,
    alias: str,
    status: int = 200,
    problem: Json | None = None,
    reason: str = "",
) -> Response:
    model = await page.client.models[ref].read()
    preview, refused = await attempt(_preview_now(page, model, alias), 404, 409, 422)
    if preview is None:
        return await _show_aliases(page, model.id, 404, refused)
    change = AliasChangeForm(alias, reason, removal=True)
    return await show_preview(page, model, preview, change, status, problem)


async def _preview_now(page: Page, model: Model, alias: str) -> AliasPreview:
    """Preview the alias unchanged. Raises ProblemError if there is no such alias."""
    found = await page.client.models.read_alias(model.name, alias_segment(alias))
    return await page.client.models.preview_alias(model.name, found.alias, found.model_id)


@router.post("/{ref}/aliases/{alias}/remove")
async def remove_alias(page: PageDep, ref: str, alias: str) -> Response:
    """`revision` is the one on the page."""
    form = await page.form()
    model = await page.client.models[ref].read()
    reason = str(form.get("reason", "")).strip()
    try:
        if form.get("request"):
            made = await page.client.alias_requests.create(
                "delete", model.name, alias_segment(alias), reason
            )
            return page.go(request_page(made.id))
        await page.client.models.delete_alias(
            model.name, alias, revision=str(form.get("revision", "")), reason=reason or None
        )
    except ProblemError as error:
        if error.status not in (404, 409, 412, 422, 429):
            raise
        if needs_more(error) or form.get("request"):
            return await _show_removal(page, ref, alias, error.status, error.problem, reason)
        return await _show_aliases(page, ref, error.status, error.problem)
    return page.go(model_page(model.id) + "/history#aliases")


@router.post("/{ref}/aliases/{alias}/protection")
async def protect_alias(page: PageDep, ref: str, alias: str) -> Response:
    """`revision` is the one on the page."""
    form = await page.form()
    model = await page.client.models[ref].read()
    reason = str(form.get("reason", "")).strip()
    try:
        if form.get("request"):
            made = await page.client.alias_requests.create(
                "unprotect", model.name, alias_segment(alias), reason
            )
            return page.go(request_page(made.id))
        await page.client.models.protect_alias(
            model.name,
            alias_segment(alias),
            form.get("protected", "") == "true",
            reason=reason or None,
            revision=str(form.get("revision", "")),
        )
    except ProblemError as error:
        if error.status not in (404, 409, 412, 422, 429):
            raise
        return await _show_aliases(page, ref, error.status, error.problem)
    return page.go(model_page(model.id) + "/history#aliases")


@router.post("/{ref}/aliases/{alias}/break-glass")
async def start_break_glass(page: PageDep, ref: str, alias: str) -> Response:
    """End the suspension if the form says `end`."""
    form = await page.form()
    model = await page.client.models[ref].read()
    hours = str(form.get("hours", "1"))
    try:
        if form.get("end"):
            await page.client.models.end_break_glass(model.name, alias_segment(alias))
        else:
            if hours not in HOURS:
                rule = f"hours must be one of {', '.join(HOURS)}, got {hours[:100]!r}"
                raise refusal(422, "Invalid request", rule)
            await page.client.models.start_break_glass(
                model.name,
                alias_segment(alias),
                str(form.get("reason", "")).strip(),
                seconds=3600.0 * int(hours),
            )
    except ProblemError as error:
        if error.status not in (404, 409, 422):
            raise
        return await _show_aliases(page, ref, error.status, error.problem)
    return page.go(model_page(model.id) + "/history#aliases")


@router.get("/{ref}/aliases/{alias}/evidence/{revision}")
async def download_evidence(page: PageDep, model: ModelDep, alias: str, revision: str) -> Response:
    file = page.asked("file")
    where = at(
        "/v1/models", model.name, "aliases", alias_segment(alias), "revisions", revision, "evidence"
    )
    return page.download(where, file=file or None)
