"""Signing in and out, and what every page needs: the session, the API, a template, a check of every change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, urlencode, urlsplit

from fastapi import APIRouter, Depends, Query
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.access import sessions
from app.access.authentication import authenticator_of
from app.console.api import Api, ApiError
from app.console.rendering import render
from app.http import problems
from app.http.dependencies import Context, ContextDep, context_of
from app.http.responses import CompressedPage
from app.http.static import POLICY
from app.platform.errors import Forbidden, ServiceError

HOME = "/console"
SIGN_IN = "/console/sign-in"
COOKIE = "rankwright_session"
CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"
_SAFE = ("GET", "HEAD")


@dataclass
class Page:
    """One request of a browser that is signed in."""

    request: Request
    api: Api
    owner: str
    scopes: frozenset[str]
    token: str

    def can(self, scope: str) -> bool:
        """Whether the key has this scope: what it may not do is not shown."""
        return scope in self.scopes

    def asked(self, name: str) -> str | None:
        """A query parameter; None where it is absent or empty."""
        return self.request.query_params.get(name) or None

    async def form(self) -> FormData:
        """The fields of the form that was sent."""
        return await self.request.form()

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page made of a template. A fragment is shown the same way."""
        return answer(
            template,
            status,
            page=self,
            path=self.request.url.path,
            csrf=sessions.csrf_token(self.token),
            **values,
        )

    def download(self, path: str, **query: object) -> Response:
        """The API's file at a path; its error as a page."""
        return self.api.download(
            path, lambda error: self.show("error.html", error.status, error=error.body), **query
        )

    def go(self, path: str, **query: str) -> Response:
        """Send the browser to another page, after a change."""
        return RedirectResponse(path + ("?" + urlencode(query) if query else ""), 303)


def answer(template: str, status: int = 200, **values: Any) -> Response:
    """A page as a response with the console's content security policy."""
    return CompressedPage(render(template, **values), status, {"Content-Security-Policy": POLICY})


def nothing_here(request: Request, problem: Mapping[str, Any]) -> Response:
    """What a browser is shown at an address that leads nowhere, whether somebody is signed in or not."""
    return answer("error.html", problem["status"], error=problem)


class ConsoleRoute(APIRoute):
    """A route of the console: it takes a session, and for a change the session's own token; errors become pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's handler."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            token = request.cookies.get(COOKIE, "")
            context = context_of(request)
            key = None
            if token:
                key = await run_in_threadpool(context.db.reading, sessions.find_key, token)
            if key is None:
                return _ask_to_sign_in(request)
            request.state.page = page = Page(
                request,
                Api(request, bytes.fromhex(key.sha256)),
                key.owner,
                frozenset(key.scopes),
                token,
            )
            try:
                if request.method not in _SAFE:
                    await _check_origin(request, token)
                return await handle(request)
            except ApiError as error:
                if error.status == 401:  # the key ended a moment ago
                    return _ask_to_sign_in(request)
                return page.show("error.html", error.status, error=error.body)
            except ServiceError as error:
                return page.show(
                    "error.html", error.status, error={"title": error.title, "detail": error.detail}
                )
            except HTTPException as error:  # a body that is too large or too slow, or no form
                refused = problems.of_http_exception(request, error)
                shown = page.show(
                    "error.html", error.status_code, error=json.loads(bytes(refused.body))
                )
                shown.headers.update(error.headers or {})
                return shown

        return guarded


def _page_of(request: Request) -> Page:
    page: Page = request.state.page
    return page


PageDep = Annotated[Page, Depends(_page_of)]


async def _check_origin(request: Request, token: str) -> None:
    """Raise Forbidden unless a page of this session sent the request."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    given = request.headers.get(CSRF_HEADER)
    if given is None and request.headers.get("content-type", "").startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        given = str((await request.form()).get(CSRF_FIELD, ""))
    if site != "same-origin" or not sessions.is_csrf_token(token, given or ""):
        raise Forbidden(
            "this change was not sent by a page of your session: reload the page and try again"
        )


def _ask_to_sign_in(request: Request) -> Response:
    """Send a browser to the sign-in page, and back afterwards. A fragment's script has the whole page reloaded."""
    if "hx-request" in request.headers:
        page = urlsplit(request.headers.get("hx-current-url", ""))
        where = f"{SIGN_IN}?next={quote(page.path, safe='')}" if page.path else SIGN_IN
        return Response(status_code=401, headers={"HX-Redirect": where})
    if request.method in _SAFE:
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"{SIGN_IN}?next={quote(here, safe='')}", 303)
    return RedirectResponse(SIGN_IN, 303)


open_router = APIRouter(prefix="/console", include_in_schema=False)
"""What needs no session."""
router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@open_router.get("/sign-in")
async def read_sign_in(
    next: Annotated[str, Query(description="The page to go to.")] = HOME,
    link: Annotated[
        str | None, Query(description="The token of a link that signs in once.")
    ] = None,
) -> Response:
    """The form that takes a key. Of a link a page with a button: to look at it does not use it up, and the token stands
    in the query, which no log has.
    """
    if link:
        return answer("sign_in_link.html", link=link)
    return answer("sign_in.html", next=_inside(next), message=None)


@open_router.post("/sign-in")
async def sign_in(request: Request, context: ContextDep) -> Response:
    """Exchange a key, or a link, for a session."""
    form = await request.form()
    where = _inside(str(form.get("next", HOME)))
    try:
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Forbidden("this sign-in was sent by another site")
        if link := str(form.get("link", "")):
            session = await run_in_threadpool(context.db.writing, sessions.follow_link, link)
        else:
            session = await _exchange(request, context, str(form.get("key", "")).strip())
    except ServiceError as error:
        return answer("sign_in.html", error.status, next=where, message=error.detail)
    return _signed_in(request, session, where)


async def _exchange(request: Request, context: Context, secret: str) -> str:
    """The token of a new session for the key with this secret."""
    digest = hashlib.sha256(secret.encode("utf-8", "replace")).digest()
    caller = await authenticator_of(request).look_up(digest, request.scope.get("client"))
    return await run_in_threadpool(context.db.writing, sessions.start, caller.key_id)


@router.post("/sign-out")
async def sign_out(page: PageDep, context: ContextDep) -> Response:
    """End the session."""
    await run_in_threadpool(context.db.writing, sessions.end, page.token)
    response = RedirectResponse(SIGN_IN, 303)
    response.delete_cookie(COOKIE, path=HOME, httponly=True, samesite="strict")
    return response


def _signed_in(request: Request, token: str, where: str) -> Response:
    response = RedirectResponse(where, 303)
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(sessions.SESSION_SECONDS),
        path=HOME,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


def _inside(address: str) -> str:
    """The address if it is a page of the console, else the first page: a link must not lead away from here."""
    parts = urlsplit(address)
    inside = parts.path == HOME or parts.path.startswith(HOME + "/")
    if (
        parts.scheme
        or parts.netloc
        or not inside
        or "\\" in address
        or parts.path.startswith(SIGN_IN)
    ):
        return HOME
    return address
