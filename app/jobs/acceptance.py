"""How a POST answers that has a job make its resource: at once with 202, or once it is made."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import Depends, Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.access import service as access
from app.http.dependencies import Context, ContextDep, preferences
from app.http.idempotency import Answer, Check, IdempotentRequest, answer_once
from app.http.limits import FairSemaphore
from app.jobs.watcher import Watcher
from app.platform import failpoints
from app.platform.broker import BrokerAway, Producer
from app.platform.errors import NotFound
from app.platform.settings import Settings
from app.platform.sql import Json, Session

log = logging.getLogger(__name__)

MAX_WAIT_SECONDS = 60.0  # the timeout of a proxy must be longer
WAIT_HEADERS: Json = {
    "Preference-Applied": {
        "description": "`wait=N`, if the request asked to wait and the job has ended.",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds until the next request makes sense, if the request asked to wait and the job has not "
        "ended.",
        "schema": {"type": "integer"},
    },
}
"""What a read says to a caller who would wait, for its description in OpenAPI."""
WAITED_DOCS: Json = {"description": "The job ended within the wait."}
"""The description of a POST's 201 in OpenAPI."""
Refetch = Callable[[Session, str], tuple[Json, bool]]
"""Reads the resource of an id again, and says whether its job has ended."""


async def _watcher(request: Request) -> Watcher:
    watcher: Watcher = request.app.state.watcher
    return watcher


WatcherDep = Annotated[Watcher, Depends(_watcher)]


@dataclass(frozen=True)
class PreferWait:
    """How long the caller will wait for the job itself: `seconds`, 0 for not at all."""

    seconds: float
    watcher: Watcher
    waiters: FairSemaphore

    async def for_end(self, owner: str, job_id: str) -> bool:
        """Wait till the job ends or the time is up; false, at once, for a caller who would not wait, or whose owner has
        no permit to wait.
        """
        if not self.seconds or self.waiters.refusal(owner) is not None:
            return False
        with self.waiters.hold(owner):
            await self.watcher.wait(job_id, lambda snapshot: snapshot.final, self.seconds)
        return True

    def applied(self, response: Response) -> None:
        """Tell the caller that the wait was granted."""
        response.headers["Preference-Applied"] = f"wait={self.seconds:g}"


async def _prefer_wait(
    *,
    request: Request,
    context: ContextDep,
    watcher: WatcherDep,
    prefer: Annotated[
        str | None,
        Header(
            description="`wait=N`: answer only when the work is done, or after N seconds (at most 60).",
            examples=["wait=30"],
        ),
    ] = None,
) -> PreferWait:
    text = preferences(request).get("wait", "")
    # An odd preference is ignored, as RFC 7240 has it.
    seconds = float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0
    return PreferWait(min(seconds, MAX_WAIT_SECONDS), watcher, context.waiters)


PreferWaitDep = Annotated[PreferWait, Depends(_prefer_wait)]


def wake_a_worker(context: Context, job_id: str) -> None:
    """Say that there is work, in the background: a broker that hangs must not hold up an answer.

    It is best effort, because idle workers look for work themselves.
    """
    context.publishing.add(partial(_wake, context.producer, job_id))


def _wake(producer: Producer, job_id: str) -> None:
    failpoints.reach("accepted")
    try:
        producer.wake()
    except BrokerAway as error:
        log.debug("job %s: the wake-up was not sent, a worker will look for it: %s", job_id, error)


def dry_run(settings: Settings, owner: str, check: Callable[[Session], object]) -> Check:
    """What a path `…/validate` does where `check` looks at all but the quotas: it writes nothing, and locks nothing."""

    def check_all(session: Session) -> Json:
        check(session)
        access.check(session, settings, owner)
        return {"valid": True}

    return check_all


async def create(
    context: Context,
    idempotent: IdempotentRequest,
    wait: PreferWait,
    path: str,
    work: Callable[[Session], Json],
    refetch: Refetch,
    *,
    check: Check | None = None,
    done: int = 201,
) -> Response:
    """Write a resource under `path` and its job, wake a worker, and answer; `work` gives the resource as shown."""

    async def show(answer: Answer) -> Response:
        if not answer.replayed:
            wake_a_worker(context, _job_of(answer.response))
        return await accepted(context, idempotent.owner, answer, wait, path, refetch, done)

    return await answer_once(context, idempotent, lambda session: (202, work(session)), show, check)


async def accepted(
    context: Context,
    owner: str,
    answer: Answer,
    wait: PreferWait,
    path: str,
    refetch: Refetch,
    done: int = 201,
) -> Response:
    """Answer with a resource under `path` that was just accepted, or with `done` once its job has ended if the caller
    waits.
    """
    body = answer.response
    headers = {"Location": f"{path}/{body['id']}", "Retry-After": "1"}
    replayed = {"Idempotent-Replayed": "true"} if answer.replayed else {}
    headers |= replayed
    if await wait.for_end(owner, _job_of(body)):
        ended = False
        with suppress(NotFound):  # deleted since: the answer is that of the first time
            body, ended = await run_in_threadpool(context.db.reading, refetch, body["id"])
        if ended:
            response = JSONResponse(body, done, {"Location": headers["Location"]} | replayed)
            wait.applied(response)
            return response
    return JSONResponse(body, answer.status_code, headers)


def _job_of(body: Json) -> str:
    """The job that makes the resource, which may be the job itself."""
    job_id: str = body["job_id"] if "job_id" in body else body["id"]
    return job_id
