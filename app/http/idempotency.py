"""Requests that create something. A repeated Idempotency-Key returns the first response; `…/validate` only checks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.http import repository
from app.http.bodies import VALIDATE
from app.http.dependencies import CallerDep, Context, ContextDep
from app.http.schemas import Resource, Valid
from app.platform import audit
from app.platform.callers import acting_principal
from app.platform.errors import Invalid
from app.platform.settings import Settings
from app.platform.sql import Json, Session

MAX_KEY_LENGTH = 255

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


async def _idempotency_key(
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Any string that identifies this request. A repeated request with the same key returns the "
            "first response again and creates nothing.",
            examples=["nightly-2026-01-31"],
        ),
    ] = None,
) -> str | None:
    """Raises Invalid for a bad key."""
    if idempotency_key is None:
        return None
    fits = 0 < len(idempotency_key) <= MAX_KEY_LENGTH
    if not fits or not idempotency_key.isascii() or not idempotency_key.isprintable():
        raise Invalid(f"Idempotency-Key must have 1 to {MAX_KEY_LENGTH} printable ASCII characters")
    return idempotency_key


IdempotencyKeyDep = Annotated[str | None, Depends(_idempotency_key)]


def add_validation(
    router: APIRouter,
    path: str,
    name: str,
    endpoint: Callable[..., Any],
    answer: type[Resource] = Valid,
    *,
    method: str = "POST",
    more: str = "",
    **described: Any,
) -> None:
    """Add the route `POST {path}/validate`, on which the endpoint creates nothing and responds with `answer`.

    `method` is that of `path`. `more` is added to the description.
    """
    router.add_api_route(
        path + VALIDATE,
        endpoint,
        methods=["POST"],
        name=f"validate_{name}",
        response_model=answer,
        summary=f"Check {_with_article(name.replace('_', ' '))}",
        description=f"Check a request to `{method} {router.prefix}{path}` without creating anything. It returns "
        f"the same errors as that request would.{more}",
        **described,
    )


def _with_article(name: str) -> str:
    return name if name.endswith("s") else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def validated(
    router: APIRouter, path: str, name: str, answer: type[Resource] = Valid, **options: Any
) -> Callable[[Endpoint], Endpoint]:
    """Decorate the endpoint at `path` with `add_validation`."""

    def add(endpoint: Endpoint) -> Endpoint:
        add_validation(router, path, name, endpoint, answer, **options)
        return endpoint

    return add


def _only_validates(request: Request) -> bool:
    found: bool = request.scope["route"].path.endswith(VALIDATE)
    return found


ValidateOnlyDep = Annotated[bool, Depends(_only_validates)]


@dataclass(frozen=True, slots=True)
class Created:
    """The response body of a request that created something: new, or stored by the first request with its key."""

    body: Json
    replayed: bool

    @property
    def headers(self) -> dict[str, str]:
        """State whether the body is a stored one."""
        return {"Idempotent-Replayed": "true"} if self.replayed else {}


def run_once(
    session: Session,
    owner: str,
    route: str,
    key: str | None,
    fingerprint: str,
    create: Callable[[Session], Json],
) -> Created:
    """Call `create` in the transaction that stores the key, or return the principal's stored response.

    Another principal of the owner may have fewer rights. Equal requests at the same moment wait for the first one. If
    it fails, nothing is stored and the next one runs. Raises Invalid if the key was used with another `fingerprint` (a
    hash of the request). Without a key, `create` is always called.
    """
    # PostgreSQL makes the second insert of a key wait for the first one's transaction; SQLite's writers are
    # alone. So the inserting request runs, and a request that finds a row finds a finished one.
    if key is None:
        return Created(create(session), False)
    stored_key = _of_principal(key)
    if repository.reserve(session, owner, route, stored_key, fingerprint):
        body = create(session)
        repository.answer(session, owner, route, stored_key, response=body)
        return Created(body, False)
    first = repository.find(session, owner, route, stored_key)
    assert first is not None
    if first.fingerprint != fingerprint:
        raise Invalid(
            f"an Idempotency-Key can be used with only one body; {key!r} was used with a different body",
            code="idempotency_key_reused",
        )
    return Created(first.response, True)


def is_known(session: Session, owner: str, route: str, key: str) -> bool:
    """The request may then be a replay, which creates nothing."""
    return repository.find(session, owner, route, _of_principal(key)) is not None


def _of_principal(key: str) -> str:
    """Return the text under which the acting principal's response is stored."""
    return f"{acting_principal() or ''} {key}"


@dataclass(frozen=True)
class Creation:
    """A request that creates something: route, owner, Idempotency-Key, hash, and whether it is only checked."""

    context: Context
    route: str
    owner: str
    key: str | None
    fingerprint: str
    only_check: bool

    @property
    def settings(self) -> Settings:
        return self.context.settings

    async def run_once(self, create: Callable[[Session], Json]) -> Created:
        """Call `create` in a transaction, unless the key has a stored response."""
        return await run_in_threadpool(self.run_once_blocking, create)

    def run_once_blocking(self, create: Callable[[Session], Json]) -> Created:
        """Call `create` like `run_once`, but block this thread."""
        return self.context.db.writing(
            run_once, self.owner, self.route, self.key, self.fingerprint, create
        )

    async def rehearse(self, create: Callable[[Session], object]) -> Response:
        """Call `create` in a transaction that is rolled back; respond that the request is valid."""
        with suppress(_RollBack):
            await run_in_threadpool(self.context.db.writing, _run_and_roll_back, create)
        return JSONResponse({"valid": True})


class _RollBack(Exception):
    """Raised to end the transaction without a commit."""


def _run_and_roll_back(session: Session, create: Callable[[Session], object]) -> None:
    create(session)
    audit.before_commit(session)
    raise _RollBack


async def _creation(
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    key: IdempotencyKeyDep,
    only_check: ValidateOnlyDep,
) -> Creation:
    same = hashlib.sha256(request.scope["path"].encode("utf-8", "surrogatepass"))
    same.update(b"\0" + await request.body())
    route = f"{request.method} {request.scope['route'].path}"
    return Creation(context, route, caller.owner, key, same.hexdigest(), only_check)


CreationDep = Annotated[Creation, Depends(_creation)]
