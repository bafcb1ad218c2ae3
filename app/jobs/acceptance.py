"""How creating POSTs answer: once for each Idempotency-Key, with a mere check if that is asked for, and where a job
makes the resource either at once with 202, or once it is made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Depends
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.access import service
from app.http.dependencies import CallerDep, Context, IdempotencyKeyDep, Patience, ValidateOnly
from app.http.idempotency import Answer, rehearse, replay_or_run

Json = dict[str, Any]
Check = Callable[[], Json]
Look = Callable[[str], tuple[Json, bool]]
"""Reads the resource of an id again, and says whether its job has ended."""


@dataclass(frozen=True)
class Asking:
    """A creating POST: by which route, who asks, under which Idempotency-Key, a hash of the request, and whether it is
    to be checked only.
    """

    route: str
    owner: str
    key: str | None
    fingerprint: str
    validate: bool


async def _asking(
    request: Request, caller: CallerDep, key: IdempotencyKeyDep, validate: ValidateOnly = False
) -> Asking:
    same = hashlib.sha256(request.scope["path"].encode("utf-8", "surrogatepass"))
    same.update(b"\0" + await request.body())
    route = f"{request.method} {request.scope['route'].path}"
    return Asking(route, caller.owner, key, same.hexdigest(), validate)


AskingDep = Annotated[Asking, Depends(_asking)]


async def make(
    context: Context,
    asking: Asking,
    work: Callable[[Session], tuple[int, Json]],
    show: Callable[[Answer], Awaitable[Response]],
    check: Check | None = None,
) -> Response:
    """Run `work` once in a transaction and show its answer; for `?validate=true` run `check`, which says what it
    found, or else rehearse the work.
    """
    if asking.validate:
        return JSONResponse(await run_in_threadpool(check or partial(_rehearse, context, work)))
    answer = await run_in_threadpool(
        replay_or_run, context.db, asking.owner, asking.route, asking.key, asking.fingerprint, work
    )
    return await show(answer)


def look_only(context: Context, owner: str, check: Callable[[Session], object]) -> Check:
    """What `?validate=true` does where `check` looks at all but the quotas: it writes nothing, and locks nothing."""

    def look() -> Json:
        with context.db.read() as session:
            check(session)
            service.check(session, context.settings, owner)
        return {"valid": True}

    return look


def _rehearse(context: Context, work: Callable[[Session], object]) -> Json:
    rehearse(context.db, work)
    return {"valid": True}


async def create(
    context: Context,
    asking: Asking,
    patience: Patience,
    path: str,
    work: Callable[[Session], Json],
    look: Look,
    *,
    check: Check | None = None,
    done: int = 201,
) -> Response:
    """Write a resource under `path` and its job, wake a worker, and answer; `work` gives the resource as shown."""

    async def show(answer: Answer) -> Response:
        if not answer.replayed:
            context.wake_a_worker(_job_of(answer.response))
        return await accepted(context, asking.owner, answer, patience, path, look, done)

    return await make(context, asking, lambda session: (202, work(session)), show, check)


async def accepted(
    context: Context,
    owner: str,
    answer: Answer,
    patience: Patience,
    path: str,
    look: Look,
    done: int = 201,
) -> Response:
    """Answer with a resource under `path` that was just accepted, or with `done` once its job has ended if the caller
    waits.
    """
    body = answer.response
    headers = {"Location": f"{path}/{body['id']}", "Retry-After": "1"}
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
        return JSONResponse(body, answer.status_code, headers)
    if patience.seconds and await context.wait_for_end(owner, _job_of(body), patience.seconds):
        body, ended = await run_in_threadpool(look, body["id"])
        if ended:
            response = JSONResponse(body, done, {"Location": headers["Location"]})
            patience.applied(response)
            return response
    return JSONResponse(body, answer.status_code, headers)


def _job_of(body: Json) -> str:
    """The job that makes the resource, which may be the job itself."""
    job_id: str = body["job_id"] if "job_id" in body else body["id"]
    return job_id
