"""Requests to change protected aliases: the list, and the page on which one is approved, rejected or withdrawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter
from rankwright.errors import ProblemError
from rankwright.types import AliasPreview, AliasRequest, Finding
from starlette.responses import Response

from app.console.api import at, attempt, path_segment
from app.console.session import ConsoleRoute, Page, PageDep

router = APIRouter(
    prefix="/console/alias-requests", include_in_schema=False, route_class=ConsoleRoute
)

Json = dict[str, Any]
STATES: Mapping[str, tuple[str, str]] = {
    "open": ("waiting", "open"),
    "approved": ("ok", "approved"),
    "rejected": ("leak", "rejected"),
    "withdrawn": ("", "withdrawn"),
    "expired": ("", "expired"),
    "void": ("", "void"),
}
"""States of a request: the class of the badge, and its words."""
KINDS: Mapping[str, str] = {
    "set": "change the model or the cutoff",
    "restore": "restore a revision",
    "delete": "delete the alias",
    "unprotect": "lift the protection",
    "recalibrate": "recalibrate the model",
    "restore_calibration": "restore a calibration",
}
SHOWN = 50


def request_page(alias_request_id: str) -> str:
    return at("/console/alias-requests", alias_request_id)


@router.get("")
async def read_requests(page: PageDep) -> Response:
    """Show the requests, by default the open ones, newest first."""
    state = page.asked("state") or "open"
    every = state == "all"
    found = await page.client.alias_requests.page(
        limit=SHOWN,
        after=page.asked("after"),
        **({} if every else {"state": state}),
    )
    return page.show("alias_requests.html", found=found, state=state, states=STATES, kinds=KINDS)


@router.get("/{alias_request_id}")
async def read_request(page: PageDep, alias_request_id: str) -> Response:
    return await _show(page, alias_request_id)


async def _show(
    page: Page,
    alias_request_id: str,
    status: int = 200,
    problem: Json | None = None,
    reason: str = "",
) -> Response:
    id_ = path_segment(alias_request_id)
    found = await page.client.alias_requests.get(id_)
    preview = await _preview(page, found)
    compared = await _checks(page, found) if found.state == "open" else ()
    return page.show(
        "alias_request.html",
        status,
        found=found,
        preview=preview,
        compared=compared,
        states=STATES,
        kinds=KINDS,
        is_own=found.principal_id == page.caller.principal_id,
        problem=problem,
        reason=reason,
    )


class CheckedModel(NamedTuple):
    """The checks of a model, which the alias has now or would have."""

    label: str
    model_id: str
    findings: Sequence[Finding]


async def _checks(page: Page, found: AliasRequest) -> list[CheckedModel]:
    """Return the checks of the requested version, and of the present one if it is another. They use the evaluation of
    each on the newest rows.
    """
    models = page.client.models
    now, _ = await attempt(models.read_alias(found.name, found.alias), 404)
    versions = [("requested", found.model_version, found.model_id)]
    if now is not None and now.model_id != found.model_id:
        versions.append(("now", now.history[0].model_version, now.model_id))
    checked = []
    for when, version, model_id in versions:
        answer, _ = await attempt(models[model_id].checks(), 404)
        if answer is not None:
            label = f"{found.name}:{version} ({when})"
            checked.append(CheckedModel(label, model_id, answer.findings))
    return checked


async def _preview(page: Page, found: AliasRequest) -> AliasPreview | None:
    """Return what the request would change now; None if that cannot be computed."""
    if found.state != "open" or found.kind not in ("set", "restore"):
        return None
    guarantee: Any = "keep" if found.keeps_guarantee else found.guarantee
    if guarantee not in ("keep", None):
        guarantee = {
            name: value for name, value in guarantee.to_json().items() if value is not None
        }
    models = page.client.models
    asked = (
        models.preview_alias(found.name, found.alias, to=found.revision)
        if found.kind == "restore"
        else models.preview_alias(found.name, found.alias, found.model_id, guarantee=guarantee)
    )
    preview, _ = await attempt(asked, 404, 409, 422)
    return preview


@router.post("/{alias_request_id}/approve")
async def approve_request(page: PageDep, alias_request_id: str) -> Response:
    """Approve a request, with a reason if one was entered, and show it."""
    form = await page.form()
    reason = str(form.get("reason", "")).strip() or None
    try:
        await page.client.alias_requests.approve(path_segment(alias_request_id), reason=reason)
    except ProblemError as error:
        return await _refused(page, alias_request_id, error)
    return page.go(request_page(alias_request_id))


@router.post("/{alias_request_id}/reject")
async def reject_request(page: PageDep, alias_request_id: str) -> Response:
    form = await page.form()
    reason = str(form.get("reason", "")).strip()
    try:
        await page.client.alias_requests.reject(path_segment(alias_request_id), reason=reason)
    except ProblemError as error:
        return await _refused(page, alias_request_id, error, reason)
    return page.go(request_page(alias_request_id))


@router.post("/{alias_request_id}/withdraw")
async def withdraw_request(page: PageDep, alias_request_id: str) -> Response:
    await page.form()
    try:
        await page.client.alias_requests.withdraw(path_segment(alias_request_id))
    except ProblemError as error:
        return await _refused(page, alias_request_id, error)
    return page.go(request_page(alias_request_id))


async def _refused(
    page: Page, alias_request_id: str, error: ProblemError, reason: str = ""
) -> Response:
    """Return the page of a request with the API's problem. Raises the error of a request that cannot be shown."""
    if error.status == 403 and error.problem.get("code") == "forbidden":
        raise error
    if error.status not in (403, 409, 422, 503):
        raise error
    return await _show(page, alias_request_id, error.status, error.problem, reason)


@router.get("/{alias_request_id}/download/evidence")
async def download_evidence(page: PageDep, alias_request_id: str) -> Response:
    file = page.asked("file")
    where = at("/v1/alias-requests", alias_request_id, "evidence")
    return page.download(where, file=file or None)
