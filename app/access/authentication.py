"""Authentication: each route names its scope, and the key is checked before the body is read."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

from fastapi import Depends
from fastapi.datastructures import DefaultPlaceholder
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app.access import person_repository, repository
from app.access.person_repository import PersonSession
from app.access.service import KEY_PREFIX, OPERATOR, administers_all
from app.access.usage import UsageCache
from app.http.addresses import client_address, network_of
from app.http.dependencies import Context, check_query, context_of
from app.http.limits import RateLimiter
from app.http.responses import choose_media_type
from app.platform import audit
from app.platform.audit import Outcome
from app.platform.background import TtlCache
from app.platform.callers import Actor, Caller, Credential, acting
from app.platform.database import Database
from app.platform.errors import (
    Forbidden,
    Malformed,
    ServiceError,
    TooLarge,
    TooMany,
    Unauthenticated,
    Unavailable,
    UnsupportedMedia,
    shown,
)
from app.platform.ids import new_id
from app.platform.outage import OutageMemory
from app.platform.roles import CHANGING, OWNER_HEADER, RoleFile, caller_of
from app.platform.sql import Session

if TYPE_CHECKING:
    from app.access.sign_in import SignIns
    from app.access.tokens import TokenCallers

NOTED_EVERY = 60.0
"""Seconds between two updates of a key's last use: each is a write to the database."""
MAX_NOTED = 10_000
"""Credentials that a process remembers, to bound its memory."""
REFUSED_FOR = 60.0
"""Seconds for which a process remembers that a secret is not valid."""
MAX_COMMAS = 30_000
"""Commas of a JSON body other than rows to score: what they separate costs a hundred times its bytes."""
LOOKUPS_AT_ONCE = 3
"""Unknown keys that are looked up at once: other threads stay free for known keys."""
MAX_LOOKUPS_TOGETHER = 500
"""Secrets of addresses over the limit of unknown keys that one query looks up."""
Scope = Literal["read", "train", "score", "outcomes", "approve", "admin", "operator"]
ANY = "any"
"""What a route needs that every authenticated caller may call."""
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
CREDENTIAL = "rankwright.credential"
"""Key in the ASGI scope under which the console puts the credential of its session. No caller can set it."""
_BEARER = b"bearer "
_OWNER_HEADER = OWNER_HEADER.lower().encode()
_READING = ("GET", "HEAD")


def needs(
    scope: Scope | Literal["any"], *, model: bool | None = None
) -> Callable[[Endpoint], Endpoint]:
    """Declare the scope that an endpoint needs (`any`: each caller has it). Without one it is open: only /health and
    docs.

    `model` declares whether what it changes belongs to a model, so that a role that is restricted to other models is
    refused. By default it does if the scope changes models. With `score` it does not: scoring changes no model.
    """

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.needs = scope  # type: ignore[attr-defined]  # read back by `scope_of`
        endpoint.of_model = scope in CHANGING if model is None else model  # type: ignore[attr-defined]
        return endpoint

    return mark


def keyless(endpoint: Endpoint) -> Endpoint:
    """Declare that no key is needed where a setting names the owner whose model is served."""
    endpoint.keyless = True  # type: ignore[attr-defined]  # read back by `GuardedRoute`
    return endpoint


def records_reads(endpoint: Endpoint) -> Endpoint:
    """Record in the audit log who reads decisive or personal data, before the response begins.

    If the entry cannot be committed, the response is its error.
    """
    endpoint.records_reads = True  # type: ignore[attr-defined]  # read back by `GuardedRoute`
    return endpoint


def check_reads(caller: Caller, field: str) -> None:
    """Raise Forbidden without the scope `read`: `field` makes the answer have values of a dataset's columns."""
    if "read" not in caller.scopes:
        raise Forbidden(
            f"{field} returns values of the dataset's columns, which requires the scope 'read'; {caller.has()}"
        )


def scope_of(endpoint: Callable[..., Any]) -> Scope | Literal["any"] | None:
    """Return what `needs` declared."""
    scope: Scope | Literal["any"] | None = getattr(endpoint, "needs", None)
    return scope


class KnownCallers:
    """Checks credentials against the database, and caches its answers for a short time.

    `later` schedules a function in the background and returns at once. During an outage of the database, `memory` has
    the credentials that it accepted before. Hashes are looked up, not secrets, so that the duration reveals nothing
    about a guess.
    """

    def __init__(
        self,
        db: Database,
        later: Callable[[Callable[[], object]], object],
        memory: OutageMemory,
        roles: RoleFile,
    ) -> None:
        self._db = db
        self._roles = roles
        self._later = later
        self.recent: TtlCache[Credential, Caller] = TtlCache(
            lambda credential: later(partial(self._look, credential))
        )
        self._refused: TtlCache[Credential, bool] = TtlCache(lambda _: None, seconds=REFUSED_FOR)
        self._memory = memory
        self._noted: OrderedDict[Credential, float] = OrderedDict()

    def cached(self, credential: Credential) -> Caller | None:
        """Return the caller accepted within the last second. Never waits."""
        return self.recent.get(credential)

    def was_good(self, credential: Credential) -> bool:
        """Return True if the credential was accepted when this process last asked, however long ago. Never waits."""
        return credential in self._noted

    def refuse_again(self, credential: Credential) -> None:
        """Raise Unauthenticated if the credential was refused recently. Never waits.

        A refused credential cannot become valid later: revocation and expiry are permanent, and a new secret is not
        known before it exists.
        """
        if self._refused.get(credential):
            raise _refusal()

    def authenticate(self, credential: Credential) -> Caller:
        """Raise the same Unauthenticated for an unknown, a revoked and an expired credential."""
        caller = self._look(credential)
        if caller is None:
            raise _refusal()
        return caller

    def expect(self, credential: Credential) -> None:
        """Accept a credential that was just created, even if others guess from the same address."""
        self._remember(credential, -math.inf)

    def _look(self, credential: Credential) -> Caller | None:
        """Look up a credential and update the caches; during an outage, use the answers before it."""
        looked_at = time.monotonic()

        def look() -> Caller | PersonSession | None:
            return self._db.reading(_find, credential)

        found: Caller | PersonSession | None
        found = self._memory.ask(credential, look)  # type: ignore[assignment]  # mypy joins the two into object
        caller = self._caller_of_person(found) if isinstance(found, PersonSession) else found
        if self._memory.away_seconds is not None:
            looked_at = time.monotonic()  # the next request need not wait for the database, too
            if caller is not None and (caller.expires_at or math.inf) <= time.time():
                caller = None
        if caller is None:
            self.recent.drop(credential)
            self._noted.pop(credential, None)
            if not isinstance(found, PersonSession):  # a person may get a role back
                self._refused.put(credential, True, looked_at)
            return None
        self.recent.put(credential, caller, looked_at)
        self._note(credential, caller)
        return caller

    def _caller_of_person(self, found: PersonSession) -> Caller | None:
        """Use the roles that the groups have now; None without one."""
        try:
            return caller_of(found.identity, found.principal_id, self._roles.content(), found.owner)
        except Forbidden:
            return None

    def _note(self, credential: Credential, caller: Caller) -> None:
        """Record the use of a key, at most once a minute."""
        now = time.monotonic()
        if now - self._noted.get(credential, -math.inf) >= NOTED_EVERY:
            self._remember(credential, now)
            if caller.key_id is not None:
                self._later(partial(self._db.writing, repository.touch, caller.key_id))

    def _remember(self, credential: Credential, noted_at: float) -> None:
        self._noted.pop(credential, None)  # the oldest stands first
        if len(self._noted) >= MAX_NOTED:
            self._noted.popitem(last=False)
        self._noted[credential] = noted_at


def _find(session: Session, credential: Credential) -> Caller | PersonSession | None:
    """Return the caller of a key, a link or a key's session, or the session of a person."""
    found = repository.find_caller(session, credential)
    if found is None and credential.kind == "session":
        return person_repository.find_session(session, credential)
    return found


def _refusal() -> Unauthenticated:
    return Unauthenticated("the key is unknown, revoked or expired")


class BatchedLookups:
    """Looks up hashes by one query for up to `most` waiting requests. For the event loop only.

    One query runs at a time. A valid secret waits for one query per `most` secrets before it, however many of these are
    guesses, and none is refused without a look-up.
    """

    def __init__(
        self, find: Callable[[list[str]], Collection[str]], most: int = MAX_LOOKUPS_TOGETHER
    ) -> None:
        self._find = find
        self._most = most
        self._waiting: dict[str, asyncio.Future[bool]] = {}
        self._task: asyncio.Task[None] | None = None

    async def is_stored(self, sha256: str) -> bool:
        """Wait for the next query. Raises what `find` raises."""
        answer = self._waiting.get(sha256)
        if answer is None:
            answer = self._waiting[sha256] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._answer_all())
        return await asyncio.shield(answer)  # others may wait for the same hash

    async def _answer_all(self) -> None:
        """Query in batches until no hash waits."""
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
    """Authenticates callers by their key, or by a token of an identity provider, and limits their request rate.

    The secrets from addresses that send many unknown keys are looked up together, hundreds per query and one query at a
    time, so that an attacker who guesses keys occupies few queries and threads. A valid key is never refused because of
    its address, since all callers may share one behind a proxy.
    """

    def __init__(self, context: Context) -> None:
        settings = context.settings
        self.roles = RoleFile(settings.roles_file)
        self.known = KnownCallers(context.db, context.background.add, context.memory, self.roles)
        self._db = context.db
        self.tokens: TokenCallers | None = None
        self.sign_ins: SignIns | None = None
        if settings.oidc_file is not None:
            from app.access.sign_in import SignIns  # their libraries take memory
            from app.access.tokens import TokenCallers

            self.tokens = TokenCallers(context, self.roles)
            if settings.secrets_keys_file is not None:
                self.sign_ins = SignIns(context, self.tokens, self.roles)
        self.usage = UsageCache(context.db.reading, settings)
        self._background = context.background
        self._preload = context.preload
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
        self._key_rate: RateLimiter | None = None
        if (per_second := settings.rate_per_second) is not None:
            burst = settings.rate_burst
            rule = f"a key can send {per_second:g} requests per second, and {burst} at once"
            self._key_rate = RateLimiter(per_second, burst, rule, "rate_limited")

    async def authenticate(
        self,
        credential: Credential,
        scope: Scope | Literal["any"],
        request: MutableMapping[str, Any],
    ) -> Caller:
        """Return the caller with this credential, and store it in the request's ASGI scope.

        Raises Unauthenticated for an invalid credential, Forbidden if it lacks the scope or is of another owner than
        the header names, and TooMany above its request rate. For a token also Malformed, if its caller has roles at
        several owners and the header names none.
        """
        if credential.kind == "token":
            caller = await self._of_token(credential, request)
        else:
            caller = await self._of_key(credential, request)
        if scope == OPERATOR:
            await self.check_operator(caller)
        elif scope not in (*caller.scopes, ANY):
            raise Forbidden(f"this requires the scope {scope!r}; {caller.has()}")
        self._take_rate(caller)
        return caller

    async def check_operator(self, caller: Caller) -> None:
        """Raise Forbidden unless the caller is an operator, or a key with `admin` of the only owner."""
        if OPERATOR not in caller.scopes and not await run_in_threadpool(
            self._db.reading, administers_all, caller, self.roles.content()
        ):
            raise Forbidden(
                f"this requires the scope {OPERATOR!r}, or a key with 'admin' if there are no other owners; "
                f"{caller.has()}"
            )

    async def _of_key(self, credential: Credential, request: MutableMapping[str, Any]) -> Caller:
        """Store the caller in the ASGI scope."""
        caller = self.known.cached(credential)
        if caller is None:
            caller = await self.look_up(credential, request.get("client"))
            self._background.add(
                self._preload
            )  # a caller with a key may need any of these modules next
        _admit(request, caller)
        owner = asked_owner(request)
        if owner not in (None, caller.owner):
            raise Forbidden(
                f"the header {OWNER_HEADER} names {shown(owner)}, but the key belongs to {shown(caller.owner)}"
            )
        return caller

    async def _of_token(self, credential: Credential, request: MutableMapping[str, Any]) -> Caller:
        """Store the caller in the ASGI scope. Refused tokens count as unknown keys of their address."""
        if self.tokens is None:
            return await self._of_key(credential._replace(kind="key"), request)
        owner = asked_owner(request)
        caller = self.tokens.cached(credential.sha256, owner)
        if caller is None:
            token = _bearer_of(_authorization_of(request))
            async with self.counted(request.get("client")):
                caller = await self.tokens.find(credential.sha256, token, owner)
            self._background.add(self._preload)
        _admit(request, caller)
        return caller

    @asynccontextmanager
    async def counted(self, client: tuple[str, int] | None) -> AsyncIterator[None]:
        """Count Unauthenticated as an unknown key of the address; raise TooMany instead if there were too many."""
        address, refusal = network_of(client), None
        try:  # counted before the answer, so that parallel requests count, too
            self._unknown_key_rate.take(address)
        except TooMany as error:
            refusal = error
        try:
            yield
        except Unauthenticated as error:
            raise (refusal or error) from None
        except ServiceError:
            self._give_back(address, refusal)
            raise
        self._give_back(address, refusal)

    @asynccontextmanager
    async def limited(self, client: tuple[str, int] | None) -> AsyncIterator[None]:
        """Count a refusal as an unknown key. Raises TooMany before the block if there were too many."""
        address = network_of(client)
        self._unknown_key_rate.take(address)
        try:
            yield
        except ServiceError as error:
            if isinstance(error, Unavailable):
                self._unknown_key_rate.give_back(address)
            raise
        self._unknown_key_rate.give_back(address)

    async def check_again(self, request: Request) -> None:
        """Raise Unauthenticated if the credential has ended meanwhile."""
        credential = _credential_of(request)
        if credential.kind == "token" and self.tokens is not None:
            owner = asked_owner(request.scope)
            if self.tokens.cached(credential.sha256, owner) is None:
                token = _bearer_of(_authorization_of(request.scope))
                await self.tokens.find(credential.sha256, token, owner)
        elif self.known.cached(credential) is None:
            await run_in_threadpool(self.known.authenticate, credential)

    def admit_keyless(self, owner: str, request: MutableMapping[str, Any]) -> Caller:
        """Admit a request without a key for the served model's owner; all of them share the rate of one key."""
        self._background.add(self._preload)
        caller = request["caller"] = Caller(owner, frozenset({"score"}))
        self._take_rate(caller)
        return caller

    def _take_rate(self, caller: Caller) -> None:
        if self._key_rate is not None:
            self._key_rate.take(caller.principal_id or "")

    async def look_up(self, credential: Credential, client: tuple[str, int] | None) -> Caller:
        """Ask the database. Raises Unauthenticated, or TooMany if the address has sent too many invalid credentials."""
        if self.known.was_good(credential):
            return await run_in_threadpool(self.known.authenticate, credential)
        self.known.refuse_again(credential)
        address, refusal = network_of(client), None
        try:  # counted before the answer, so that parallel requests count, too
            self._unknown_key_rate.take(address)
        except TooMany as error:
            refusal = error
        try:
            if refusal is not None and not await self._may_be_stored(credential.sha256):
                raise refusal
            async with self._lookups:
                caller = await run_in_threadpool(self.known.authenticate, credential)
        except Unauthenticated as error:
            raise (refusal or error) from None
        except Unavailable:
            self._give_back(address, refusal)
            raise
        self._give_back(address, refusal)
        return caller

    async def _may_be_stored(self, sha256: str) -> bool:
        try:
            return await self._lookups_over_limit.is_stored(sha256)
        except Unavailable:  # the memory of an outage may have the key
            return True

    def _give_back(self, address: str, refusal: TooMany | None) -> None:
        if refusal is None:
            self._unknown_key_rate.give_back(address)


def asked_owner(request: MutableMapping[str, Any]) -> str | None:
    """Return the owner that the header names. Raises Malformed for two."""
    found = [value for name, value in request["headers"] if name == _OWNER_HEADER]
    if len(found) > 1:
        raise Malformed(f"the header {OWNER_HEADER} must not be repeated")
    return found[0].decode("latin-1") if found else None


def actor_of(request: Request, caller: Caller, route: str, scope: str = "") -> Actor:
    """Return the actor for the audit log. `route` is a path, `scope` the one that it needs."""
    return Actor(
        scope=scope,
        caller=caller,
        owner=caller.owner,
        principal_id=caller.principal_id,
        key_id=caller.key_id,
        action=f"{request.method} {route}",
        path=request.scope["path"],  # not the URL's path, which depends on the caller's Host
        request_id=request.scope.get("request_id"),
        client=client_address(request.scope),
        make_id=partial(new_id, "aud"),
    )


async def record_read(request: Request, route: str) -> None:
    """Write an audit entry."""
    actor = actor_of(request, request.scope["caller"], route)
    db = context_of(request).db
    await run_in_threadpool(db.writing, audit.record, actor, Outcome.READ)


def authenticator_of(request: Request) -> Authenticator:
    """Return this process's authenticator."""
    authenticator: Authenticator = request.app.state.authenticator
    return authenticator


async def _authenticator(request: Request) -> Authenticator:
    return authenticator_of(request)


AuthenticatorDep = Annotated[Authenticator, Depends(_authenticator)]


async def check_again(request: Request) -> None:
    """Raise Unauthenticated if key or session have ended during a long request; its address counts no guess."""
    await authenticator_of(request).check_again(request)


def credential_of(authorization: bytes | None) -> Credential:
    """Return a key if the header has its prefix, else a token. Raises Unauthenticated."""
    secret = _bearer_of(authorization)
    return Credential.of("key" if secret.startswith(KEY_PREFIX.encode()) else "token", secret)


def _bearer_of(authorization: bytes | None) -> bytes:
    """Raises Unauthenticated."""
    if authorization is None:
        raise Unauthenticated("an Authorization header is needed: Bearer rw_…")
    if authorization[: len(_BEARER)].lower() != _BEARER:
        raise Unauthenticated("the Authorization header must have the form: Bearer rw_…")
    return authorization[len(_BEARER) :].strip()


def _admit(request: MutableMapping[str, Any], caller: Caller) -> None:
    """Store the caller, and begin the request's span: from now on it may be recorded."""
    request["caller"] = caller
    if (traced := request.get("trace")) is not None:
        traced.begin(caller.owner, request["request_id"])


def _authorization_of(request: MutableMapping[str, Any]) -> bytes | None:
    """Return the Authorization header of a request (given by its ASGI scope)."""
    headers = request["headers"]
    return next((value for name, value in headers if name == b"authorization"), None)


def _credential_of(request: Request) -> Credential:
    """Return the console's session, or the Authorization header."""
    of_session: Credential | None = request.scope.get(CREDENTIAL)
    return of_session or credential_of(_authorization_of(request.scope))


class GuardedRoute(APIRoute):
    """Authenticates, then checks the content type of JSON, and only then reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Check scope, query parameters and content type first."""
        handle = super().get_route_handler()
        scope = scope_of(self.endpoint)
        may_lack_key = getattr(self.endpoint, "keyless", False)
        records = getattr(self.endpoint, "records_reads", False)
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
                        _credential_of(request), scope, request.scope
                    )
                else:
                    caller = authenticator.admit_keyless(owner, request.scope)
                context.occupy(request.scope, caller.permit_holder)
                if request.method not in _READING:
                    actor = actor_of(request, caller, self.path_format, scope)
                    if request.method != "DELETE":
                        check = partial(authenticator.usage.quota_check_for, caller.owner)
                        actor = replace(actor, quota_check=check)
                    acting.set(actor)
            if offers and "accept" in request.headers:
                choose_media_type(request, offers)
            if parameters is not None and request.scope["query_string"]:
                check_query(request.query_params, parameters)
            if takes_json:
                require_json(request)
                check_count(await request.body())
            response = await handle(request)
            if records and response.status_code == HTTPStatus.OK:
                await record_read(request, self.path_format)
            return response

        return guarded

    def _parameters(self) -> dict[str, bool] | None:
        """Return the parameters, and whether each is a list; None if the endpoint checks them itself or is open."""
        described = (self.openapi_extra or {}).get("parameters", ())
        if scope_of(self.endpoint) is None or any(each["in"] == "query" for each in described):
            return None
        found: dict[str, bool] = {}
        dependants = [self.dependant]
        while dependants:
            dependant = dependants.pop()
            for field in dependant.query_params:
                annotation = field.field_info.annotation
                members = annotation, *get_args(annotation)
                found[field.alias] = any(get_origin(each) is list for each in members)
            dependants += dependant.dependencies
        return found

    def _offers(self) -> list[str]:
        """Return the media types of a route's answers."""
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
    """Raise TooLarge for more than `MAX_COMMAS` commas: an error takes a hundred times the bytes of a value."""
    if (count := body.count(b",")) > MAX_COMMAS:
        raise TooLarge(f"a body can have at most {MAX_COMMAS} commas here, got {count}")


def require_json(request: Request) -> None:
    """Raises UnsupportedMedia."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        got = repr(media_type) if media_type else "none"
        raise UnsupportedMedia(f"Content-Type must be application/json, got {got}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMedia("Content-Encoding is allowed only on uploads")
