"""Signing in and out, and the base of all pages: session, API client, templates, and the check of every change."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

from fastapi import APIRouter, Depends, Query
from fastapi.routing import APIRoute
from rankwright import AsyncClient
from rankwright.errors import ConfigurationError, ProblemError
from rankwright.types import Model
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.access import sessions
from app.access.authentication import ANY, actor_of, authenticator_of, scope_of
from app.console.api import Api, ApiPath, path_segment
from app.console.rendering import render
from app.console.words import FieldLabel, place_faults
from app.http import cookies, guide, problems
from app.http.dependencies import MAX_UNKNOWN, Context, ContextDep, context_of
from app.http.forms import FORM, Fields, FormReader, media_type_of, read_fields
from app.http.proxies import root_path_of
from app.http.responses import CompressedPage
from app.http.static import POLICY
from app.platform.callers import Caller, Credential, acting_as
from app.platform.encryption import Cipher, Undecryptable
from app.platform.errors import Forbidden, ServiceError, TooMany, Unauthenticated, nearest, shown

HOME = "/console"
SIGN_IN = "/console/sign-in"
COOKIE = f"{cookies.PREFIX}session"
CSRF_FIELD, CSRF_HEADER = "csrf", "x-csrf-token"
MAX_FORM_BYTES, MAX_SIGN_IN_BYTES = 1 << 20, 1 << 15
MAX_TRAIL = 40
"""Most earlier pages of a list that an address names: it must not grow without end."""
_NOTE_SECONDS = 60
_SAFE = ("GET", "HEAD")
Json = dict[str, Any]
_ADDRESS = re.compile(rf"{HOME}(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?(\?[!-\[\]-~]*)?")
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[^/?#@]+)(?=[/?#]|$)")
_PORTS = {"http": ":80", "https": ":443"}
_PATH_OF = re.compile(r"https?://[^/?#]+(?P<path>/[^?#]*)")


_READERS: Mapping[str, Callable[[AsyncClient, str], Awaitable[object]]] = {
    "mdl": lambda client, id_: client.models[id_].read(),
    "ds": lambda client, id_: client.datasets[id_].refresh(),
    "evl": lambda client, id_: client.evaluations.get(id_),
    "cmp": lambda client, id_: client.comparisons.get(id_),
    "bat": lambda client, id_: client.batch_scores.get(id_),
}
"""What reads a thing, by the beginning of its id."""


class NavLink(NamedTuple):
    address: str
    name: str
    scope: str | None = None


class Group(NamedTuple):
    name: str
    entries: Sequence[NavLink]
    current: NavLink | None = None


NAVIGATION = (
    Group(
        "Data",
        (
            NavLink("/console/datasets", "Datasets", "read"),
            NavLink("/console/datasets/new", "Upload", "train"),
            NavLink("/console/trash", "Trash", "read"),
        ),
    ),
    Group(
        "Train",
        (
            NavLink("/console/train", "Train", "train"),
            NavLink("/console/import", "Import a model", "train"),
            NavLink("/console/jobs", "Jobs", "read"),
        ),
    ),
    Group(
        "Models",
        (
            NavLink("/console/models", "Models", "read"),
            NavLink("/console/alias-requests", "Alias requests", "read"),
            NavLink("/console/comparisons", "Compare", "read"),
            NavLink("/console/evaluations", "Evaluations", "read"),
            NavLink("/console/batch-scores", "Batch scores", "score"),
        ),
    ),
    Group(
        "Monitor",
        (
            NavLink("/console/monitoring", "Aliases and alarms", "read"),
            NavLink("/console/outcomes", "Outcomes", "outcomes"),
            NavLink("/console/erasures", "Erasures", "read"),
            NavLink("/console/holds", "Legal holds", "read"),
        ),
    ),
    Group(
        "Admin",
        (
            NavLink("/console/keys", "Keys", "admin"),
            NavLink("/console/webhooks", "Webhooks", "admin"),
            NavLink("/console/audit", "Audit", "admin"),
            NavLink("/console/health", "Health"),
            NavLink("/docs", "API"),
            *([NavLink("/guide/", "Guide")] if guide.is_here() else []),
        ),
    ),
)


class AddressQuery(QueryParams):
    """Records which parameters the page has read, so that it can report unused ones."""

    def __init__(self, given: QueryParams) -> None:
        super().__init__(given)
        self.read: set[Any] = set()

    def __getitem__(self, name: Any) -> str:
        self.read.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: Any) -> bool:
        self.read.add(name)
        return super().__contains__(name)

    def get(self, name: Any, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)

    def getlist(self, name: Any) -> list[str]:
        self.read.add(name)
        return super().getlist(name)

    def unread(self) -> list[str]:
        """Return parameters with a value that were not read."""
        return [name for name, value in self.items() if value and name not in self.read]


@dataclass
class Page:
    """A request of a signed-in browser, with everything that a page needs to answer it."""

    request: Request
    api: Api
    client: AsyncClient
    caller: Caller
    token: str
    _fields: Fields | None = None
    table: TableForm | None = None
    notices: list[str] = field(default_factory=list)
    """What the address asks and the page could not follow, in sentences."""

    def __post_init__(self) -> None:
        self.query = AddressQuery(self.request.query_params)

    @property
    def owner(self) -> str:
        return self.caller.owner

    @property
    def scopes(self) -> frozenset[str]:
        return self.caller.scopes

    def can(self, scope: str, model_name: str | None = None) -> bool:
        """Return True if the caller may act (on models of this name): pages hide actions that it may not do."""
        if model_name is None:
            return scope in self.scopes
        return self.caller.may_change(scope, model_name)

    def lacks(self, scope: str, model_name: str | None = None) -> str:
        """Return why `can` is False, in a sentence."""
        caller = self.caller
        if scope in caller.scopes:
            return (
                f"Your role allows changes only of models named {', '.join(caller.models[scope])}."
            )
        if caller.kind == "key":
            return f"Your key lacks the scope {scope}."
        which = "Your role" if len(caller.roles) == 1 else "Your roles"
        verb = "does" if len(caller.roles) == 1 else "do"
        return f"{which} {', '.join(caller.roles)} {verb} not include {scope}."

    def navigation(self) -> list[Group]:
        path = self.request.url.path
        found = []
        for group in NAVIGATION:
            entries = [each for each in group.entries if each.scope is None or self.can(each.scope)]
            here = [each for each in entries if f"{path}/".startswith(f"{each.address}/")]
            if entries:
                # A group of which the key sees one page has that page's name: "Jobs", without the right to train.
                name = entries[0].name if len(entries) == 1 < len(group.entries) else group.name
                current = max(here, key=lambda each: len(each.address), default=None)
                found.append(Group(name, entries, current))
        return found

    def check_scope(self, scope: str | None) -> None:
        """Raise Forbidden without the route's scope, so that no table is uploaded in vain."""
        if scope is not None and scope != ANY and scope not in self.scopes:
            raise Forbidden(f"this requires the scope {scope!r}; {self.caller.has()}")

    def asked(self, name: str) -> str | None:
        """Return None if it is absent or empty."""
        return self.query.get(name) or None

    def choice(self, name: str, known: Sequence[str]) -> str:
        """Return a known value; for an unknown one the first, with a notice on the page."""
        asked = self.asked(name)
        if asked is None or asked in known:
            return asked or known[0]
        self.tell(
            f"{name} must be one of {', '.join(known)}, got {shown(asked)}: the parameter was ignored."
        )
        return known[0]

    def tell(self, words: str) -> None:
        """Add a notice about a query parameter that could not be used."""
        if self.request.method in _SAFE and words not in self.notices:
            self.notices.append(words)

    def _tell_unread(self) -> bool:
        """Add notices about unread parameters."""
        unread, known = self.query.unread(), sorted(map(str, self.query.read))
        for name in unread[:MAX_UNKNOWN]:
            words = f"{shown(name)} is not a parameter of this page and was ignored."
            self.tell(f"{words} {nearest(name, known).capitalize()}".strip())
        return bool(unread)

    async def find_gone(self, *ids: str | None) -> frozenset[str]:
        """A resource that the key may not read counts as existing."""
        known = [each for each in dict.fromkeys(ids) if each]
        gone = await asyncio.gather(*map(self._is_gone, known))
        return frozenset(id_ for id_, is_gone in zip(known, gone, strict=True) if is_gone)

    async def _is_gone(self, id_: str) -> bool:
        """The API must return 404."""
        read = _READERS.get(id_.partition("_")[0])
        try:
            if read is not None:
                await read(self.client, path_segment(id_))
        except ProblemError as error:
            if error.status not in (403, 404):
                raise
            return error.status == 404
        return False

    def trail(self) -> list[str]:
        """Return the cursors of the pages of a list that lead here, the first page as "0"."""
        asked = self.asked("trail")
        return asked.split(".")[-MAX_TRAIL:] if asked else []

    async def form(self) -> Fields:
        """Raises UnsupportedMedia, TooLarge or Malformed."""
        if self._fields is None:
            self._fields = await read_fields(self.request, MAX_FORM_BYTES)
        return self._fields

    def filled(self) -> dict[str, str]:
        """Without the token."""
        fields = (self._fields or {}) if self.table is None else self.table.fields
        return {name: value for name, value in fields.items() if value and name != CSRF_FIELD}

    async def check_sender(self, *, of_table: bool) -> None:
        """Raise Forbidden unless a page of this session sent the request.

        The token of a form is in its body; of a form with a table, only the part before the table is read.
        """
        given = self.request.headers.get(CSRF_HEADER)
        if of_table and media_type_of(self.request) == FORM:
            self.table = TableForm(self.request)
            if given is None:
                given = await self.table.read_token()
        elif given is None:
            given = (await self.form()).get(CSRF_FIELD, "")
        self.check_token(given)

    def check_token(self, given: str) -> None:
        """Raise Forbidden for another token."""
        if not sessions.is_csrf_token(self.token, given):
            raise _other_page(code="session_changed", headers={"X-Session-Changed": "yes"})

    def show_form(
        self,
        template: str,
        problem: Mapping[str, Any] | None,
        labels: Mapping[str, FieldLabel],
        /,
        **values: Any,
    ) -> Response:
        """Show a problem at the fields of the form."""
        status = 200 if problem is None else problem["status"]
        return self.show(template, status, faults=place_faults(problem, labels), **values)

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """The page names unused query parameters."""
        values |= {
            "page": self,
            "path": self.request.url.path,
            "csrf": sessions.csrf_token(self.token),
        }
        shown = answer(self.request, template, status, **values)
        # Templates read parameters, too, so unused parameters are known only afterwards.
        if status < 400 and self.request.method in _SAFE and self._tell_unread():
            shown = answer(self.request, template, status, **values)
        return shown

    def download(self, path: ApiPath, **query: object) -> Response:
        """Return a file of the API, or a page with its error."""
        return self.api.download(
            path, lambda error: self.show("error.html", error.status, error=error.problem), **query
        )

    def go(self, path: str, **query: str) -> Response:
        """Redirect to a page of the console."""
        return RedirectResponse(path + ("?" + urlencode(query) if query else ""), 303)

    def outside(self, path: str) -> str:
        """Add the service's path prefix."""
        return root_path_of(self.request.scope) + path

    def leave_note(self, response: Response, name: str, path: str, note: Json) -> None:
        """Set an encrypted cookie for one page of this session, valid for a minute."""
        response.set_cookie(
            name,
            self._cipher().encrypt(json.dumps(note, ensure_ascii=False)),
            max_age=_NOTE_SECONDS,
            path=self.outside(path),
            secure=self.request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def take_note(self, name: str) -> Json | None:
        """Return None if the note is old or of another session."""
        try:
            text = self._cipher().decrypt(self.request.cookies.get(name, ""), _NOTE_SECONDS)
        except Undecryptable:
            return None
        note: Json = json.loads(text)
        return note

    def show_note(self, template: str, name: str, path: str) -> Response:
        """The note does not appear when the page is loaded again."""
        shown = self.show(template, made=self.take_note(name))
        shown.delete_cookie(name, path=self.outside(path), httponly=True, samesite="strict")
        return shown

    def _cipher(self) -> Cipher:
        return Cipher([hashlib.sha256(f"note {self.token}".encode()).digest()])


def answer(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Render a page with the console's content security policy.

    The referrer policy is not `no-referrer`: a browser's forms would then have the origin `null`, which forms of
    another site can have, too.
    """
    text = render(template, root=root_path_of(request.scope), **values)
    # The API's message may repeat lone surrogates from the caller, which UTF-8 cannot encode.
    headers = {"Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}
    return CompressedPage(text.encode("utf-8", "replace"), status, headers)


async def show_problem(
    request: Request, problem: Mapping[str, Any], *, plain: bool = False
) -> Response:
    """Show an unknown address, with navigation if signed in. A `plain` page has none, and needs no database."""
    try:
        page = None if plain else await _find_page(request)
    except ServiceError:
        page = None
    shown: dict[str, Any] = {"error": problem}
    if page is None:
        return answer(request, "error.html", problem["status"], **shown)
    return page.show("error.html", problem["status"], **shown)


async def _find_page(request: Request) -> Page | None:
    """Return None without a valid session. Raises TooMany."""
    token = request.cookies.get(COOKIE, "")
    if not token:
        return None
    session = Credential.of("session", token)
    try:
        caller = await authenticator_of(request).look_up(session, client_of(request))
    except Unauthenticated:
        return None
    request.scope["caller"] = caller
    api = Api(request, session)
    return Page(request, api, AsyncClient(transport=api), caller, token)


class ConsoleRoute(APIRoute):
    """A route that needs a session and, for a change, its token; errors become pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check session, scope and sender first."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            context = context_of(request)
            try:
                page = await _find_page(request)
            except TooMany as error:
                return _too_many(request, error)
            if page is None:
                return _ask_to_sign_in(request)
            request.state.page = page
            try:
                for segment in request.path_params.values():
                    path_segment(str(segment))
                if request.method not in _SAFE:
                    with context.requests.hold(page.owner):  # a slow body occupies a permit
                        page.check_scope(scope_of(self.endpoint))
                        check_site(request)
                        await self.check_sender(page)
                response = await handle(request)
            except ProblemError as error:
                if error.status == 401:  # the key has just expired or been revoked
                    return _ask_to_sign_in(request)
                request.scope["error_code"] = error.problem.get("code")
                request.scope["error_detail"] = error.problem.get("detail")
                response = page.show("error.html", error.status, error=error.problem)
            except ConfigurationError as error:  # a value that the client cannot send
                shown = {"title": "Invalid request", "detail": str(error)}
                response = page.show("error.html", 422, error=shown)
            except ServiceError as error:
                request.scope["error_code"] = error.code
                request.scope["error_detail"] = error.detail
                shown = {"title": error.title, "detail": error.detail, "code": error.code}
                response = page.show("error.html", error.status, error=shown)
                response.headers.update(error.headers)
            except HTTPException as error:  # a body that is too large or too slow
                refused = problems.of_http_exception(request, error)
                body = json.loads(bytes(refused.body))
                response = page.show("error.html", error.status_code, error=body)
                response.headers.update(error.headers or {})
            if response.status_code >= 400:
                response.headers.update(page.api.passed_on)
            return response

        return guarded

    async def check_sender(self, page: Page) -> None:
        """Raise Forbidden unless a page of the session sent the request."""
        await page.check_sender(of_table=scope_of(self.endpoint) is not None)


class PassingRoute(ConsoleRoute):
    """A route that passes the body to the API unread: the session's token must be in a header."""

    async def check_sender(self, page: Page) -> None:
        """Only a script of the session's pages may send the request."""
        page.check_token(page.request.headers.get(CSRF_HEADER, ""))


async def _page_of(request: Request) -> Page:
    page: Page = request.state.page
    return page


PageDep = Annotated[Page, Depends(_page_of)]


async def _model_of(page: PageDep, ref: str) -> Model:
    return await page.client.models[ref].read()


ModelDep = Annotated[Model, Depends(_model_of)]
Handler = Callable[..., Awaitable[Response]]


def or_form(
    show: Handler, *statuses: int, unless: Sequence[int] = ()
) -> Callable[[Handler], Handler]:
    """If the API refuses with one of these statuses (any but `unless`), let `show` return the form and the problem."""

    def put(change: Handler) -> Handler:
        @wraps(change)
        async def changed(page: Page, **path: str) -> Response:
            try:
                return await change(page=page, **path)
            except ProblemError as error:
                if error.status in unless or (statuses and error.status not in statuses):
                    raise
                return await show(page, problem=error.problem, given=await page.form(), **path)

        return changed

    return put


def check_site(request: Request) -> None:
    """Raise Forbidden if the browser's headers say that a page of another site sent the request.

    The check uses `Sec-Fetch-Site`. Browsers do not send it over plain HTTP; then `Origin`, else `Referer`, is compared
    with `Host`. The scheme is ignored, because a proxy that terminates TLS may not report it. A client that sends none
    of these headers is not a browser.
    """
    headers = request.headers
    site = headers.get("sec-fetch-site")
    if site is not None:
        if site != "same-origin":
            raise _other_page()
        return
    said = headers.get("origin") or headers.get("referer")
    if said is None:
        return
    found = _ORIGIN.match(said)
    own = headers.get("host", "")
    if found is None or found["host"].lower() not in (
        own.lower(),
        own.lower().removesuffix(_PORTS[found["scheme"]]),
    ):
        raise Forbidden(
            f"this change came from a page of {said[:100]!r}, but the service runs at {own[:100]!r}: reload the page "
            "and try again. A proxy must forward the Host header unchanged, with its port; in nginx: "
            "proxy_set_header Host $http_host;"
        )


def _other_page(**given: Any) -> Forbidden:
    return Forbidden(
        "this change did not come from a page of your session: reload the page and try again",
        **given,
    )


class TableForm:
    """A form with a table, streamed to the API: only its small fields are kept."""

    def __init__(self, request: Request) -> None:
        self._reader = FormReader(request.headers["content-type"], MAX_FORM_BYTES)
        self._pieces = self._reader.file(request.stream())
        self._first: bytes | None = None
        self._begun = False

    async def _begin(self) -> None:
        """Read up to the first bytes of the table."""
        if not self._begun:
            self._first, self._begun = await anext(self._pieces, None), True

    async def read_token(self) -> str:
        """Read up to the table; the token must come before."""
        await self._begin()
        return self.fields.get(CSRF_FIELD, "")

    @property
    def fields(self) -> dict[str, str]:
        return self._reader.form.fields

    @property
    def file_name(self) -> str:
        """Empty if the file has no name, or is not reached yet."""
        return self._reader.form.file_name or ""

    async def read_name(self) -> str:
        """Read up to the table."""
        await self._begin()
        return self.file_name

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the table."""
        await self._begin()
        yield self._first or b""
        async for piece in self._pieces:
            yield piece

    async def passed_on(self, boundary: str) -> AsyncIterator[bytes]:
        """Yield the table, and then the filled-in fields without the token."""
        yield _part(boundary, "file", await self.read_name()).encode()
        async for piece in self.read():
            yield piece
        for name, value in self.fields.items():
            if not value or name == CSRF_FIELD:
                continue
            yield f"{_part(boundary, name)}{value}".encode()
        yield f"\r\n--{boundary}--\r\n".encode()


def _part(boundary: str, name: str, file_name: str | None = None) -> str:
    """Names are quoted as the WHATWG specifies."""
    words = [name] if file_name is None else [name, file_name]
    quoted = [word.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22") for word in words]
    of_file = "" if file_name is None else f'; filename="{quoted[1]}"'
    return (
        f'\r\n--{boundary}\r\ncontent-disposition: form-data; name="{quoted[0]}"{of_file}\r\n\r\n'
    )


def client_of(request: Request) -> tuple[str, int] | None:
    client: tuple[str, int] | None = request.scope.get("client")
    return client


def refused(request: Request, error: ServiceError, where: str) -> Response:
    """Return the sign-in page with an error."""
    request.scope["error_code"] = error.code
    shown = _sign_in_page(request, where, error.detail, error.status)
    shown.headers.update(error.headers)
    return shown


def _sign_in_page(
    request: Request, where: str, message: str | None = None, status: int = 200
) -> Response:
    """Offer a form for a key, and links to identity providers."""
    sign_ins = authenticator_of(request).sign_ins
    issuers = () if sign_ins is None else sign_ins.issuers
    return answer(request, "sign_in.html", status, next=where, message=message, issuers=issuers)


def _too_many(request: Request, error: TooMany) -> Response:
    if "hx-request" in request.headers:
        return Response(status_code=error.status, headers=error.headers)
    return refused(request, error, HOME)


def _ask_to_sign_in(request: Request) -> Response:
    """Redirect to the sign-in page, and back. For a fragment, the script reloads the page."""
    if "hx-request" in request.headers:
        shown = _PATH_OF.match(request.headers.get("hx-current-url", ""))
        here = shown["path"].removeprefix(root_path_of(request.scope)) if shown else HOME
        where = _sign_in_and_back(here)
        return Response(status_code=401, headers={"HX-Redirect": where})
    is_stream = request.scope["path"].endswith("/events")
    if is_stream and "text/event-stream" in request.headers.get("accept", ""):
        return Response(status_code=401)  # a stream of events cannot show a page
    if request.method in _SAFE:
        scope = request.scope
        query = scope["query_string"].decode("latin-1")
        here = quote(scope["path"]) + (f"?{query}" if query else "")
        return RedirectResponse(_sign_in_and_back(here), 303)
    return RedirectResponse(SIGN_IN, 303)


def _sign_in_and_back(address: str) -> str:
    return f"{SIGN_IN}?next={quote(inside(address), safe='')}"


open_router = APIRouter(prefix="/console", include_in_schema=False)
"""Paths that need no session."""
router = APIRouter(prefix="/console", include_in_schema=False, route_class=ConsoleRoute)


@open_router.get("/sign-in")
async def read_sign_in(
    request: Request,
    next: Annotated[str, Query(description="The page to go to.")] = HOME,
    link: Annotated[
        str | None, Query(description="The token of a link that signs in once.")
    ] = None,
) -> Response:
    """Show the form, or for a link a page with a button: opening it does not use it up. No log contains the query."""
    if link:
        return answer(request, "sign_in_link.html", link=link)
    return _sign_in_page(request, inside(next))


@open_router.post("/sign-in")
async def sign_in(request: Request, context: ContextDep) -> Response:
    """Exchange a key or a link for a session."""
    where = HOME
    try:
        check_site(request)
        form = await read_fields(request, MAX_SIGN_IN_BYTES)
        where = inside(form.get("next", HOME))
        if link := form.get("link", ""):
            session = await _follow(request, context, link)
        else:
            session = await _exchange(request, context, form.get("key", "").strip())
    except ServiceError as error:
        return refused(request, error, where)
    return _signed_in(request, session, where)


async def _follow(request: Request, context: Context, link: str) -> str:
    """Use a link up after a read: only a valid one takes the database's write lock."""
    try:
        caller = await authenticator_of(request).look_up(
            Credential.of("link", link), client_of(request)
        )
    except Unauthenticated:
        raise Unauthenticated(sessions.BAD_LINK) from None
    with acting_as(actor_of(request, caller, SIGN_IN)):
        return await run_in_threadpool(context.db.writing, sessions.follow_link, link)


async def _exchange(request: Request, context: Context, secret: str) -> str:
    """Return the token of a new session."""
    caller = await authenticator_of(request).look_up(
        Credential.of("key", secret), client_of(request)
    )
    with acting_as(actor_of(request, caller, SIGN_IN)):
        return await run_in_threadpool(context.db.writing, sessions.start, caller)


@router.post("/sign-out")
async def sign_out(page: PageDep, context: ContextDep) -> Response:
    """A person's page links to the sign-out at the provider: a redirect would break the policy for forms."""
    caller: Caller = page.request.scope["caller"]
    with acting_as(actor_of(page.request, caller, f"{HOME}/sign-out")):
        await run_in_threadpool(context.db.writing, sessions.end, page.token)
    authenticator = authenticator_of(page.request)
    authenticator.known.recent.drop(Credential.of("session", page.token))
    response: Response = RedirectResponse(SIGN_IN, 303)
    if caller.kind == "person" and authenticator.sign_ins is not None:
        there = await authenticator.sign_ins.sign_out_address(caller.principal_id or "")
        response = answer(page.request, "signed_out.html", there=there)
    response.delete_cookie(COOKIE, path=page.outside(HOME), httponly=True, samesite="strict")
    return response


def _signed_in(request: Request, token: str, where: str) -> Response:
    """Set the cookie of the new session."""
    response = RedirectResponse(where, 303)
    remember(request, response, token)
    return response


def remember(request: Request, response: Response, token: str) -> None:
    authenticator_of(request).known.expect(Credential.of("session", token))
    response.set_cookie(
        COOKIE,
        token,
        max_age=int(sessions.SESSION_SECONDS),
        path=root_path_of(request.scope) + HOME,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def inside(address: str) -> str:
    """Return the address if it is a page of the console, else the first page: a link must not lead to another site.

    It must begin with the console's path, contain only URL characters, and have no empty or `..` segment,
    percent-encoded or not.
    """
    path, _, _ = address.partition("?")
    steps = unquote(path).split("/")[2:]
    if (
        not _ADDRESS.fullmatch(address)
        or path.startswith(SIGN_IN)
        or any(step in ("", ".", "..") or "\\" in step or not step.isprintable() for step in steps)
    ):
        return HOME
    return address
