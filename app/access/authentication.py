"""Who may call what: each route names its scope, and the key is checked before a byte of the body is read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address
from typing import Any, Literal, TypeVar

from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.access.service import OPERATOR, Caller, administers_all
from app.http.dependencies import Context, context_of
from app.http.responses import choose
from app.platform.audit import Actor, acting
from app.platform.errors import Forbidden, Unauthenticated, Unavailable, UnsupportedMedia
from app.platform.ids import new_id
from app.platform.preload import preload

Scope = Literal["read", "train", "score", "admin", "operator"]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_BEARER = b"bearer "
_READING = ("GET", "HEAD")


def needs(scope: Scope) -> Callable[[Endpoint], Endpoint]:
    """Say which scope a route takes. A route that says nothing is open to all: /health and the docs alone."""

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.needs = scope  # type: ignore[attr-defined]  # read back by `scope_of`
        return endpoint

    return mark


def scope_of(endpoint: Callable[..., Any]) -> Scope | None:
    """The scope that `needs` noted on this endpoint."""
    scope: Scope | None = getattr(endpoint, "needs", None)
    return scope


async def authenticate(
    context: Context, authorization: bytes | None, scope: Scope, client: tuple[str, int] | None
) -> Caller:
    """The caller behind the Authorization header; refuses a key that is bad, lacks the scope, or asks too fast, and an
    unknown one unseen where the client's address has sent many of them.
    """
    secret = _secret_of(authorization)
    caller = context.keys.cached(secret)
    if caller is None:
        caller = await _look_up(context, secret, client)
        context.chores.ask(preload)  # whoever has a key may want any of it next
    if scope not in caller.scopes and not (
        scope == OPERATOR and await run_in_threadpool(administers_all, context.db, caller)
    ):
        has = ", ".join(sorted(caller.scopes))
        also = ", or 'admin' where there are no other owners" if scope == OPERATOR else ""
        raise Forbidden(f"this needs the scope {scope!r}{also}; the key has {has}")
    if context.pace is not None:
        context.pace.take(caller.key_id)
    return caller


async def check_again(request: Request) -> None:
    """Raise Unauthenticated if the key that let a request in has ended since: for what takes long. It was good: what
    others send from its address is not counted against it.
    """
    keys, secret = context_of(request).keys, _secret_of(_authorization(request))
    if keys.cached(secret) is None:
        await run_in_threadpool(keys.authenticate, secret)


def _secret_of(authorization: bytes | None) -> bytes:
    if authorization is None:
        raise Unauthenticated("an Authorization header is needed: Bearer rw_…")
    if authorization[: len(_BEARER)].lower() != _BEARER:
        raise Unauthenticated("the Authorization header must be: Bearer rw_…")
    return authorization[len(_BEARER) :].strip()


async def _look_up(context: Context, secret: bytes, client: tuple[str, int] | None) -> Caller:
    """Ask the database. Who only guesses keys gets few of its queries, and few of the threads that others need."""
    if context.keys.vouched_for(secret):
        return await run_in_threadpool(context.keys.authenticate, secret)
    context.keys.refuse_again(secret)
    address = _address(client)
    context.strangers.take(address)  # before the answer, so that many at once are counted too
    try:
        async with context.stranger_lookups:
            caller = await run_in_threadpool(context.keys.authenticate, secret)
    except Unavailable:
        context.strangers.give_back(address)
        raise
    context.strangers.give_back(address)
    return caller


def _address(client: tuple[str, int] | None) -> str:
    """Where the caller is: the address, of IPv6 the network of 64 bits, which is what one host is given."""
    try:
        address = ip_address(client[0] if client else "")
    except ValueError:
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return address.packed[:8].hex()
    return str(getattr(address, "ipv4_mapped", None) or address)


def _authorization(request: Request) -> bytes | None:
    return next(
        (value for name, value in request.scope["headers"] if name == b"authorization"), None
    )


class GuardedRoute(APIRoute):
    """A route that authenticates, then checks the content type of a JSON body, and only then reads on."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's handler."""
        handle = super().get_route_handler()
        scope = scope_of(self.endpoint)
        takes_json = self.body_field is not None
        offers = self._offers()

        async def guarded(request: Request) -> Response:
            if scope is not None:
                context = context_of(request)
                caller = await authenticate(
                    context, _authorization(request), scope, request.scope.get("client")
                )
                request.state.caller = caller
                place = context.requests.enter(caller.owner)
                request.scope["leave"] = partial(context.requests.leave, caller.owner, place)
                if request.method not in _READING:
                    acting.set(self._actor(request, caller))
            if offers and "accept" in request.headers:
                choose(request, offers)
            if takes_json:
                require_json(request)
            return await handle(request)

        return guarded

    def _offers(self) -> list[str]:
        """What the route's answers can be, by its description; it may choose among them by other signs than Accept."""
        described = [
            media_type
            for status, response in self.responses.items()
            if str(status).startswith("2")
            for media_type in response.get("content", ())
        ]
        if self.status_code == HTTPStatus.NO_CONTENT:
            return described
        chosen = self.response_class
        of_class = chosen.value if isinstance(chosen, DefaultPlaceholder) else chosen
        return [*filter(None, [of_class.media_type]), *described]

    def _actor(self, request: Request, caller: Caller) -> Actor:
        return Actor(
            owner=caller.owner,
            key_id=caller.key_id,
            action=f"{request.method} {self.path}",
            path=request.scope[
                "path"
            ],  # not the URL's: that one is put together with the caller's Host
            request_id=request.scope.get("request_id"),
            make_id=partial(new_id, "aud"),
        )


def require_json(request: Request) -> None:
    """Refuse a body that does not say it is JSON."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        got = repr(media_type) if media_type else "none"
        raise UnsupportedMedia(f"Content-Type must be application/json, got {got}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("Content-Encoding is read on uploads only")
