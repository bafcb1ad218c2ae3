"""Requests that create something. An Idempotency-Key replays the first answer; the path `…/validate` only checks."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.http import repository
from app.http.bodies import VALIDATE
from app.http.dependencies import CallerDep, Context
from app.http.schemas import Resource, Valid
from app.platform.database import Database
from app.platform.errors import Invalid
from app.platform.sql import Json, Session

MAX_KEY_LENGTH = 255

Check = Callable[[Session], Json]
"""A check for a path `…/validate`: it returns the answer."""
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


async def _idempotency_key(
    idempotency_key: Annotated[
        str | None,
        Header(
            description="Any text that identifies this request. The same request with the same key gets the first "
            "answer "
            "again and creates nothing.",
            examples=["nightly-2026-01-31"],
        ),
    ] = None,
) -> str | None:
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
    """Route `POST {path}/validate` to the endpoint of `path`, which creates nothing there; it answers with `answer`.

    `method` is that of `path`. `more` is added to the description.
    """
    router.add_api_route(
        path + VALIDATE,
        endpoint,
        methods=["POST"],
        name=f"validate_{name}",
        response_model=answer,
        summary=f"Check a {name.replace('_', ' ')}",
        description=f"Check a request to `{method} {router.prefix}{path}` and create nothing. It is refused as that "
        f"request would be.{more}",
        **described,
    )


def validated(
    router: APIRouter, path: str, name: str, answer: type[Resource] = Valid, **options: Any
) -> Callable[[Endpoint], Endpoint]:
    """Decorate the endpoint that creates something at `path`: `add_validation`, with the same arguments."""

    def add(endpoint: Endpoint) -> Endpoint:
        add_validation(router, path, name, endpoint, answer, **options)
        return endpoint

    return add


def _only_validates(request: Request) -> bool:
    found: bool = request.scope["route"].path.endswith(VALIDATE)
    return found


ValidateOnlyDep = Annotated[bool, Depends(_only_validates)]


@dataclass(frozen=True)
class IdempotentRequest:
    """A POST that creates something: its route, owner, Idempotency-Key, hash of the request, and whether it is only
    checked.
    """

    route: str
    owner: str
    key: str | None
    fingerprint: str
    validate: bool


async def _idempotent(
    request: Request, caller: CallerDep, key: IdempotencyKeyDep, validate: ValidateOnlyDep
) -> IdempotentRequest:
    same = hashlib.sha256(request.scope["path"].encode("utf-8", "surrogatepass"))
    same.update(b"\0" + await request.body())
    route = f"{request.method} {request.scope['route'].path}"
    return IdempotentRequest(route, caller.owner, key, same.hexdigest(), validate)


IdempotentDep = Annotated[IdempotentRequest, Depends(_idempotent)]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: made now, or stored from the first time."""

    status_code: int
    response: Json
    replayed: bool


def replay_or_run(
    session: Session,
    owner: str,
    route: str,
    key: str | None,
    fingerprint: str,
    work: Callable[[Session], tuple[int, Json]],
) -> Answer:
    """Run `work` in the transaction that stores the key, or return the answer that the same key got before.

    Equal requests at the same moment wait for the first one. If it fails, nothing is stored and the next one runs.
    Raises Invalid if the key was used with another `fingerprint` (a hash of the request). Without a key, `work`
    simply runs.
    """
    # PostgreSQL makes the second insert of a key wait for the first one's transaction; SQLite's writers are
    # alone. So the inserting request runs, and a request that finds a row finds a finished one.
    if key is None or repository.reserve(session, owner, route, key, fingerprint):
        status_code, response = work(session)
        if key is not None:
            repository.answer(
                session, owner, route, key, status_code=status_code, response=response
            )
        return Answer(status_code, response, False)
    first = repository.find(session, owner, route, key)
    assert first is not None
    if first.fingerprint != fingerprint:
        raise Invalid(
            f"an Idempotency-Key belongs to one body; {key!r} was used with another body",
            code="idempotency_key_reused",
        )
    return Answer(first.status_code, first.response, True)


def is_known(session: Session, owner: str, route: str, key: str) -> bool:
    """Return True if an answer is stored under the key: the request may be a replay, which creates nothing."""
    return repository.find(session, owner, route, key) is not None


async def answer_once(
    context: Context,
    idempotent: IdempotentRequest,
    work: Callable[[Session], tuple[int, Json]],
    show: Callable[[Answer], Awaitable[Response]],
    check: Check | None = None,
) -> Response:
    """Run `work` once in a transaction, and return its answer as `show` writes it.

    At the path `…/validate` run `check` instead; without a `check`, run `work` and roll it back.
    """
    if idempotent.validate:
        if check is not None:
            return JSONResponse(await run_in_threadpool(context.db.reading, check))
        return JSONResponse(await run_in_threadpool(_rehearse, context.db, work))
    answer = await run_in_threadpool(
        context.db.writing,
        replay_or_run,
        idempotent.owner,
        idempotent.route,
        idempotent.key,
        idempotent.fingerprint,
        work,
    )
    return await show(answer)


class _RollBack(Exception):
    """Raised to end the transaction without a commit."""


def _rehearse(db: Database, work: Callable[[Session], object]) -> Json:
    """Run `work` in a transaction that is rolled back. Its exceptions are raised."""

    def work_and_undo(session: Session) -> None:
        work(session)
        raise _RollBack

    with suppress(_RollBack):
        db.writing(work_and_undo)
    return {"valid": True}
