"""Authentication: each route names its scope, and the key is checked before the body is read."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Callable, Collection, Coroutine, MutableMapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

from fastapi import Depends
from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.access import repository, sessions
from app.access.service import OPERATOR, administers_all
from app.access.usage import UsageCache
from app.http.dependencies import Caller, Context, context_of, refuse_unknown
from app.http.limits import RateLimiter
from app.http.responses import choose_media_type
from app.http.server import client_address, network_of
from app.platform.audit import Actor, acting
from app.platform.background import TtlCache
from app.platform.database import Database
from app.platform.errors import (
    Forbidden,
    TooLarge,
    TooMany,
    Unauthenticated,
    Unavailable,
    UnsupportedMedia,
)
from app.platform.ids import new_id
from app.platform.outage import OutageMemory
from app.platform.preload import preload
from app.platform.sql import Session
from app.platform.tables import ApiKey

NOTED_EVERY = 60.0
"""Seconds between two updates of a key's last use: each is a write to the database."""
MAX_NOTED = 10_000
"""Keys and sessions that a process remembers, to bound its memory."""
REFUSED_FOR = 60.0
"""Seconds for which a process remembers that a secret is not valid."""
MAX_COMMAS = 30_000
"""Commas of a JSON body other than rows to score: what they separate costs a hundred times its bytes."""
LOOKUPS_AT_ONCE = 3
"""Unknown keys that are looked up at once: other threads stay free for known keys."""
MAX_LOOKUPS_TOGETHER = 500
"""Secrets of addresses over the limit of unknown keys that one query looks up."""
Scope = Literal["read", "train", "score", "admin", "operator"]
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
Found = TypeVar("Found")
SESSION_KEY, SESSION_TOKEN = "rankwright.session_key", "rankwright.session_token"
"""Key in the ASGI scope under which the console puts the SHA-256 of a session's key and the session's token. No
caller can set it.
"""
_BEARER = b"bearer "
_READING = ("GET", "HEAD")


def needs(scope: Scope) -> Callable[[Endpoint], Endpoint]:
    """Declare the scope that an endpoint needs. An endpoint without a scope is open to all: only /health and the docs
    are.
    """

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.needs = scope  # type: ignore[attr-defined]  # read back by `scope_of`
        return endpoint

    return mark


def keyless(endpoint: Endpoint) -> Endpoint:
    """Declare that an endpoint needs no key where a setting names the owner whose model it serves."""
    endpoint.keyless = True  # type: ignore[attr-defined]  # read back by `GuardedRoute`
    return endpoint


def check_reads(caller: Caller, field: str) -> None:
    """Raise Forbidden if `field` of a request answers values of a dataset's columns, and the caller may not read."""
    if "read" not in caller.scopes:
        has = ", ".join(sorted(caller.scopes))
        raise Forbidden(
            f"{field} returns values of the dataset's columns, which requires the scope 'read'; the key "
            f"has {has}"
        )


def scope_of(endpoint: Callable[..., Any]) -> Scope | None:
    """Return the scope that `needs` declared for this endpoint."""
    scope: Scope | None = getattr(endpoint, "needs", None)
    return scope


class KeyRing:
    """Authenticate keys by the SHA-256 of their secret, and cache the database's answer for a short time.

    `later` runs work in the background and returns at once. While the database is away, `memory` tells which keys it
    accepted before. The look-up uses the hash, so its duration says nothing about how much of a guess was right.
    """

    def __init__(
        self,
        db: Database,
        later: Callable[[Callable[[], object]], object],
        memory: OutageMemory,
    ) -> None:
        self._db = db
        self._later = later
        self.recent: TtlCache[bytes, Caller] = TtlCache(
            lambda digest: later(partial(self._look, digest))
        )
        self._refused: TtlCache[bytes, bool] = TtlCache(lambda _: None, seconds=REFUSED_FOR)
        self._memory = memory
        self._noted: dict[bytes, float] = {}

    def cached(self, digest: bytes) -> Caller | None:
        """The caller, if the database accepted the key within the last second. Never waits."""
        return self.recent.get(digest)

    def was_good(self, digest: bytes) -> bool:
        """Return True if the database accepted the key when this process last asked, however long ago. Never waits."""
        return digest in self._noted

    def refuse_again(self, digest: bytes) -> None:
        """Raise Unauthenticated if the database refused the key lately. Never waits.

        A refused key does not become good later: a revoked or expired one stays so, and nobody knows a secret before
        its key is there.
        """
        if self._refused.get(digest):
            raise _refusal()

    def authenticate(self, digest: bytes) -> Caller:
        """Ask the database for the caller. Raises Unauthenticated for unknown, revoked and expired keys alike."""
        caller = self._look(digest)
        if caller is None:
            raise _refusal()
        return caller

    def _look(self, digest: bytes) -> Caller | None:
        looked_at = time.monotonic()
        key = self._memory.ask(
            ("key", digest), lambda: self._db.reading(repository.find_usable, digest.hex())
        )
        if self._memory.away_seconds is not None:
            looked_at = time.monotonic()  # the next request need not wait for the database, too
            if key is not None and key.expires_at is not None and key.expires_at <= time.time():
                key = None
        if key is None:
            self.recent.drop(digest)
            self._noted.pop(digest, None)
            self._refused.put(digest, True, looked_at)
            return None
        caller = Caller(key.id, key.owner, frozenset(key.scopes), key.name)
        self.recent.put(digest, caller, looked_at)
        self._note(digest, key.id)
        return caller

    def _note(self, digest: bytes, key_id: str) -> None:
        """Write down that the key was used, at most once a minute."""
        now = time.monotonic()
        if now - self._noted.get(digest, -math.inf) >= NOTED_EVERY:
            if len(self._noted) >= MAX_NOTED:
                self._noted.clear()
            self._noted[digest] = now
            self._later(partial(self._db.writing, repository.touch, key_id))


def _digest(kind: bytes, token: str) -> bytes:
    return hashlib.sha256(kind + token.encode()).digest()


def _refusal() -> Unauthenticated:
    return Unauthenticated("the key is unknown, revoked or expired")


class BatchedLookups:
    """Find which hashes are stored, by one query for up to `most` of those that wait. Only the event loop uses it.

    One query runs at a time. So a valid secret waits for one query per `most` that came before it, however many guesses
    these are, and none is refused unasked.
    """

    def __init__(
        self, find: Callable[[list[str]], Collection[str]], most: int = MAX_LOOKUPS_TOGETHER
    ) -> None:
        self._find = find
        self._most = most
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._task: asyncio.Task[None] | None = None

    async def is_stored(self, sha256: str) -> bool:
        """Return whether a hash is stored. Raises what `find` raises."""
        answer = self._waiting.get(sha256)
        if answer is None:
            answer = self._waiting[sha256] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._answer_all())
        return await asyncio.shield(answer)  # others may wait for the same hash

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                hashes = list(islice(self._waiting, self._most))
                batch = {each: self._waiting.pop(each) for each in hashes}
                try:
                    stored = await run_in_threadpool(self._find, hashes)
                except Exception as error:
                    for answer in batch.values():
                        answer.set_exception(error)
                        answer.exception()  # its caller may have left: no warning for that
                else:
                    for sha256, answer in batch.items():
                        answer.set_result(sha256 in stored)
        finally:
            self._task = None


class Authenticator:
    """Authenticate callers by their key, and limit their request rate.

    The secrets of addresses that send many unknown keys are looked up together, hundreds by a query and one query at a
    time, so that an attacker who guesses keys takes few of the queries and threads that others need. A valid key is
    never refused for it, and waits for few queries: behind a proxy, all callers may have one address.
    """

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self.keys = KeyRing(context.db, context.background.add, context.memory)
        self._db = context.db
        self.usage = UsageCache(context.db.reading, settings)
        self._background = context.background
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_ONCE)
        self._lookups_over_limit = BatchedLookups(
            lambda hashes: context.db.reading(repository.usable_among, hashes)
        )
        self._unknown_key_rate = RateLimiter(
            settings.max_unknown_keys / 60.0,
            settings.max_unknown_keys,
            f"an address can send {settings.max_unknown_keys} unknown, revoked or expired keys a minute, "
            "and this one has reached the limit",
            "too_many_unknown_keys",
        )
        self._met: dict[bytes, None] = {}
        self._refused: TtlCache[bytes, bool] = TtlCache(lambda _: None, seconds=REFUSED_FOR)
        self._sessions: TtlCache[str, bool] = TtlCache(lambda _: None)
        self._key_rate: RateLimiter | None = None
        if (per_second := settings.rate_per_second) is not None:
            burst = settings.rate_burst
            rule = f"a key can send {per_second:g} requests per second, and {burst} at once"
            self._key_rate = RateLimiter(per_second, burst, rule, "rate_limited")

    async def authenticate(
        self, digest: bytes, scope: Scope, request: MutableMapping[str, Any]
    ) -> Caller:
        """Return the caller with the key of this SHA-256, and note it in the ASGI scope of the request.

        Raises Unauthenticated for a bad key, Forbidden if it lacks the scope, TooMany if it asks too fast.
        """
        caller = self.keys.cached(digest)
        if caller is None:
            caller = await self.look_up(digest, request.get("client"))
            self._background.add(preload)  # a caller with a key may need any of these modules next
        request["caller"] = caller
        if scope not in caller.scopes and not (
            scope == OPERATOR and await run_in_threadpool(self._db.reading, administers_all, caller)
        ):
            has = ", ".join(sorted(caller.scopes))
            also = ", or 'admin' if there are no other owners" if scope == OPERATOR else ""
            raise Forbidden(f"this requires the scope {scope!r}{also}; the key has {has}")
        if self._key_rate is not None:
            self._key_rate.take(caller.key_id)
        return caller

    def admit_keyless(self, owner: str, request: MutableMapping[str, Any]) -> Caller:
        """Return the caller of a request without a key, for whom an owner's model is served, and note it in the ASGI
        scope. All of them share the rate of one key.
        """
        self._background.add(preload)
        caller = request["caller"] = Caller("", owner, frozenset({"score"}))
        if self._key_rate is not None:
            self._key_rate.take(caller.key_id)
        return caller

    async def look_up(self, digest: bytes, client: tuple[str, int] | None) -> Caller:
        """The caller by the database. Raises Unauthenticated, or TooMany for a bad key of an address that guesses."""
        if self.keys.was_good(digest):
            return await run_in_threadpool(self.keys.authenticate, digest)
        self.keys.refuse_again(digest)
        ask = partial(self.keys.authenticate, digest)
        return await self._ask_for_unknown(ask, digest.hex(), client)

    async def _ask_for_unknown(
        self, ask: Callable[[], Found], sha256: str, client: tuple[str, int] | None
    ) -> Found:
        """Look up a secret of this hash that this process has not met. Raises what `ask` raises for a secret that is
        not good, which counts, and TooMany instead for an address that guesses.
        """
        address, refusal = network_of(client), None
        try:  # counted before the answer, so that parallel requests count, too
            self._unknown_key_rate.take(address)
        except TooMany as error:
            refusal = error
        try:
            if refusal is not None and not await self._may_be_stored(sha256):
                raise refusal
            async with self._lookups:
                found = await run_in_threadpool(ask)
        except Unauthenticated as error:
            raise (refusal or error) from None
        except Unavailable:
            self._give_back(address, refusal)
            raise
        self._give_back(address, refusal)
        return found

    async def _may_be_stored(self, sha256: str) -> bool:
        try:
            return await self._lookups_over_limit.is_stored(sha256)
        except Unavailable:  # the memory of an outage may have the key
            return True

    def _give_back(self, address: str, refusal: TooMany | None) -> None:
        if refusal is None:
            self._unknown_key_rate.give_back(address)

    async def find_session(self, token: str, client: tuple[str, int] | None) -> ApiKey | None:
        """Return the key of a browser's token; None if the session or the key has ended.

        Unknown tokens count as unknown keys: raises TooMany for an address that guesses.
        """
        return await self._find(b"session", sessions.find_key, token, client)

    async def find_link(self, token: str, client: tuple[str, int] | None) -> ApiKey | None:
        """Return the key of a link that signs in once. Nothing is written."""
        return await self._find(b"link", sessions.find_link, token, client)

    async def _find(
        self,
        kind: bytes,
        find: Callable[[Session, str], ApiKey | None],
        token: str,
        client: tuple[str, int] | None,
    ) -> ApiKey | None:
        digest = _digest(kind, token)

        def look() -> ApiKey:
            key = self._db.reading(find, token)
            if key is None:
                raise _refusal()
            return key

        if self._refused.get(digest):  # an ended key does not become valid again
            return None
        try:
            if digest in self._met:
                return await run_in_threadpool(look)
            key = await self._ask_for_unknown(look, sessions.hash_of(token), client)
        except Unauthenticated:
            self._met.pop(digest, None)
            self._refused.put(digest, True, time.monotonic())
            return None
        self._meet(digest)
        return key

    def meet_session(self, token: str) -> None:
        """Record a new session: it is accepted even if others guess from the same address."""
        self._meet(_digest(b"session", token))

    def _meet(self, digest: bytes) -> None:
        if len(self._met) >= MAX_NOTED:
            self._met.clear()
        self._met[digest] = None

    async def check_session(self, token: str) -> None:
        """Raise Unauthenticated if the session or its key has ended. A valid session is checked once a second."""
        looked_at = time.monotonic()
        if self._sessions.get(token):
            return
        if await run_in_threadpool(self._db.reading, sessions.find_key, token) is None:
            raise Unauthenticated("the session has expired")
        self._sessions.put(token, True, looked_at)


def actor_of(request: Request, owner: str, key_id: str, route: str) -> Actor:
    """Return who changes something by a request, for the audit log. `route` is the path of its route."""
    return Actor(
        owner=owner,
        key_id=key_id,
        action=f"{request.method} {route}",
        path=request.scope["path"],  # not the URL's path, which depends on the caller's Host
        request_id=request.scope.get("request_id"),
        client=client_address(request.scope),
        make_id=partial(new_id, "aud"),
    )


def authenticator_of(request: Request) -> Authenticator:
    """Return the authenticator of this process."""
    authenticator: Authenticator = request.app.state.authenticator
    return authenticator


async def _authenticator(request: Request) -> Authenticator:
    return authenticator_of(request)


AuthenticatorDep = Annotated[Authenticator, Depends(_authenticator)]


async def check_again(request: Request) -> None:
    """Raise Unauthenticated if the request's key, or browser session, has ended meanwhile.

    For long requests. The key was valid, so the address is not counted as guessing.
    """
    token: str | None = request.scope.get(SESSION_TOKEN)
    if token is not None:
        await authenticator_of(request).check_session(token)
        return
    keys, digest = authenticator_of(request).keys, _key_of(request)
    if keys.cached(digest) is None:
        await run_in_threadpool(keys.authenticate, digest)


def digest_of(authorization: bytes | None) -> bytes:
    """Return the SHA-256 of the secret in an Authorization header."""
    if authorization is None:
        raise Unauthenticated("an Authorization header is needed: Bearer rw_…")
    if authorization[: len(_BEARER)].lower() != _BEARER:
        raise Unauthenticated("the Authorization header must have the form: Bearer rw_…")
    return hashlib.sha256(authorization[len(_BEARER) :].strip()).digest()


def _key_of(request: Request) -> bytes:
    """Return the SHA-256 of the request's key: from its header, or from the session of the console."""
    of_session: bytes | None = request.scope.get(SESSION_KEY)
    if of_session is not None:
        return of_session
    headers = request.scope["headers"]
    return digest_of(next((value for name, value in headers if name == b"authorization"), None))


class GuardedRoute(APIRoute):
    """A route that authenticates, then checks the content type of a JSON body, and only then reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap FastAPI's handler."""
        handle = super().get_route_handler()
        scope = scope_of(self.endpoint)
        may_lack_key = getattr(self.endpoint, "keyless", False)
        takes_json = self.body_field is not None
        offers = self._offers()
        parameters = self._parameters()

        async def guarded(request: Request) -> Response:
            if scope is not None:
                context = context_of(request)
                authenticator = authenticator_of(request)
                owner = context.settings.served_owner if may_lack_key else None
                if owner is None or "authorization" in request.headers:
                    caller = await authenticator.authenticate(
                        _key_of(request), scope, request.scope
                    )
                else:
                    caller = authenticator.admit_keyless(owner, request.scope)
                context.occupy(request.scope, caller.holder)
                if request.method not in _READING:
                    actor = actor_of(request, caller.owner, caller.key_id, self.path)
                    if request.method != "DELETE":
                        check = partial(authenticator.usage.quota_check_for, caller.owner)
                        actor = replace(actor, quota_check=check)
                    acting.set(actor)
            if offers and "accept" in request.headers:
                choose_media_type(request, offers)
            if parameters is not None and request.scope["query_string"]:
                refuse_unknown(request.query_params, parameters)
            if takes_json:
                require_json(request)
                check_count(await request.body())
            return await handle(request)

        return guarded

    def _parameters(self) -> list[str] | None:
        """Return the query parameters of an endpoint's signature; None if it checks them itself or is open to all."""
        described = (self.openapi_extra or {}).get("parameters", ())
        if scope_of(self.endpoint) is None or any(each["in"] == "query" for each in described):
            return None
        names: list[str] = []
        dependants = [self.dependant]
        while dependants:
            dependant = dependants.pop()
            names += [field.alias for field in dependant.query_params]
            dependants += dependant.dependencies
        return list(dict.fromkeys(names))

    def _offers(self) -> list[str]:
        """Return the media types of a route's answers, by its description."""
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


def check_count(body: bytes) -> None:
    """Raise TooLarge for JSON of more values than anybody has to say, before they are read: what is wrong with a value
    takes a hundred times its bytes.
    """
    if (count := body.count(b",")) > MAX_COMMAS:
        raise TooLarge(f"a body can have at most {MAX_COMMAS} commas here, got {count}")


def require_json(request: Request) -> None:
    """Raise UnsupportedMedia if the body does not say that it is JSON."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        got = repr(media_type) if media_type else "none"
        raise UnsupportedMedia(f"Content-Type must be application/json, got {got}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("Content-Encoding is allowed only on uploads")
