"""Sign-in of people at their identity provider, logout by the provider, and the choice of the owner.

The provider leads the browser back from another site, so the browser does not send the session's cookie
(`SameSite=Strict`) with that request or with a redirect from it. A cookie of its own (`SameSite=Lax`) binds the sign-in
to the browser, and a page of the console leads on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from app.access import sessions
from app.access.authentication import actor_of, authenticator_of
from app.console.session import (
    HOME,
    MAX_SIGN_IN_BYTES,
    ConsoleRoute,
    Page,
    PageDep,
    answer,
    client_of,
    inside,
    refused,
    remember,
)
from app.http import cookies
from app.http.dependencies import ContextDep
from app.http.forms import read_fields
from app.http.proxies import root_path_of
from app.platform.callers import Credential, acting_as
from app.platform.errors import Invalid, NotFound, ServiceError, shown

if TYPE_CHECKING:
    from app.access.sign_in import SignIns

PATH = f"{HOME}/oidc"
STARTED = f"{cookies.PREFIX}oidc_"
"""How the names of cookies of started sign-ins begin: each tab has its own."""
MAX_STARTED = 6
"""Started sign-ins of a browser. One more removes the others: browsers limit the size of all cookies."""
_STATE_SHOWN = 16
_NAME = re.compile(rf"{STARTED}[A-Za-z0-9_-]{{{_STATE_SHOWN}}}")
_ANSWER = ("state", "code", "iss", "error", "error_description")

open_router = APIRouter(prefix=PATH, include_in_schema=False)
router = APIRouter(prefix=HOME, include_in_schema=False, route_class=ConsoleRoute)


@open_router.get("/start")
async def start(
    request: Request,
    issuer: Annotated[str, Query(description="The issuer to sign in at.")] = "",
    next: Annotated[str, Query(description="The page to go to.")] = HOME,
) -> Response:
    """A cookie completes the sign-in."""
    from app.access.sign_in import STARTED_SECONDS

    where = inside(next)
    try:
        address, state, cookie = await _sign_ins(request).begin(issuer, where)
    except ServiceError as error:
        return refused(request, error, where)
    response = RedirectResponse(address, 303)
    started = [name for name in request.cookies if name.startswith(STARTED)]
    for name in started if len(started) >= MAX_STARTED else ():
        _forget(request, response, name)
    response.set_cookie(
        STARTED + state[:_STATE_SHOWN],
        cookie,
        max_age=STARTED_SECONDS,
        path=root_path_of(request.scope) + PATH,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",
    )
    return response


@open_router.get("/callback")
async def callback(request: Request, context: ContextDep) -> Response:
    """Set the cookie of the new session, and show a page that leads on."""
    authenticator = authenticator_of(request)
    given = {name: request.query_params.get(name) for name in _ANSWER}
    found = {name: value for name, value in given.items() if value is not None}
    cookie = STARTED + found.get("state", "")[:_STATE_SHOWN]
    try:
        sign_ins = _sign_ins(request)
        started, code = sign_ins.check_answer(request.cookies.get(cookie, ""), found)
        async with authenticator.limited(
            client_of(request)
        ):  # each code is a request to the provider
            confirmed = await sign_ins.redeem(started, code)
        caller, owners = await sign_ins.caller_of(confirmed)
        with acting_as(actor_of(request, caller, f"{PATH}/callback")):
            token = await run_in_threadpool(
                context.db.writing, sessions.start_of_person, caller, confirmed
            )
    except ServiceError as error:
        response = refused(request, error, HOME)
    else:
        choose = f"{HOME}/owner" if len(owners) > 1 else None
        response = answer(request, "signed_in.html", next=inside(started.next), choose=choose)
        remember(request, response, token)
    _forget(request, response, cookie)
    return response


@open_router.post("/backchannel-logout")
async def backchannel_logout(request: Request) -> Response:
    try:
        sign_ins = _sign_ins(request)
        fields = await read_fields(request, MAX_SIGN_IN_BYTES)
        token = fields.get("logout_token", "")
        async with authenticator_of(request).counted(client_of(request)):
            await sign_ins.end_by_provider(token)
    except ServiceError as error:
        request.scope["error_code"] = error.code
        status = 400 if error.status == 401 else error.status
        body = {"error": "invalid_request", "error_description": error.detail}
        return JSONResponse(body, status, {"Cache-Control": "no-store", **_plain(error)})
    return Response(status_code=200, headers={"Cache-Control": "no-store"})


def _plain(error: ServiceError) -> dict[str, str]:
    return {name: value for name, value in error.headers.items() if name == "Retry-After"}


@router.get("/owner")
async def show_owners(page: PageDep) -> Response:
    return page.show("owner.html", owners=await _owners(page))


@router.post("/owner")
async def choose_owner(page: PageDep, context: ContextDep) -> Response:
    """The session gets another token, so that forms of the former owner fail."""
    owner, owners = (await page.form()).get("owner", ""), await _owners(page)
    if owner not in owners:
        known = ", ".join(owners[:20]) or "none: only a person can choose"
        raise Invalid(f"owner must be one of your owners ({known}), got {shown(owner)}")
    with acting_as(actor_of(page.request, page.caller, f"{HOME}/owner")):
        token = await run_in_threadpool(
            context.db.writing, sessions.choose_owner, page.token, owner
        )
    authenticator_of(page.request).known.recent.drop(Credential.of("session", page.token))
    response = page.go(HOME)
    remember(page.request, response, token)
    return response


async def _owners(page: Page) -> list[str]:
    sign_ins = authenticator_of(page.request).sign_ins
    return [] if sign_ins is None else await sign_ins.owners(page.token)


def _sign_ins(request: Request) -> SignIns:
    """Raises NotFound without a provider."""
    sign_ins = authenticator_of(request).sign_ins
    if sign_ins is None:
        raise NotFound("no identity provider is configured: sign in with an API key")
    return sign_ins


def _forget(request: Request, response: Response, cookie: str) -> None:
    """Remove the cookie if this is the name of a started sign-in's."""
    if not _NAME.fullmatch(cookie):
        return
    path = root_path_of(request.scope) + PATH
    response.delete_cookie(cookie, path=path, httponly=True, samesite="lax")
