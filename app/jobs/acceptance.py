"""The response to a POST whose resource a job creates: 202 at once, or the resource if the caller waits for it."""

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

from app.access import quotas
from app.http.dependencies import Context, ContextDep, preferences
from app.http.idempotency import Created, Creation, CreationDep
from app.http.limits import FairSemaphore
from app.jobs.watcher import Watcher
from app.platform import failpoints
from app.platform.broker import BrokerAway, Producer
from app.platform.errors import NotFound
from app.platform.sql import Json, Session

log = logging.getLogger(__name__)

MAX_WAIT_SECONDS = 60.0  # the timeout of a proxy must be longer
WAIT_HEADERS: Json = {
    "Preference-Applied": {
        "description": "`wait=N`, if the request asked to wait and the job has ended.",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": (
            "Seconds to wait before the next request, if the request asked to wait and the job has not "
            "ended."
        ),
        "schema": {"type": "integer"},
    },
}
"""What a read says to a caller who would wait, for its description in OpenAPI."""
WAITED_DOCS: Json = {"description": "The job ended within the wait."}
"""The description of a POST's 201 in OpenAPI."""


async def _watcher(request: Request) -> Watcher:
    watcher: Watcher = request.app.state.watcher
    return watcher


WatcherDep = Annotated[Watcher, Depends(_watcher)]


@dataclass(frozen=True)
class PreferWait:
    """The seconds that the caller will wait for the end of the job; 0 for no wait."""

    seconds: float
    watcher: Watcher
    waiters: FairSemaphore

    async def for_end(self, owner: str, job_id: str) -> bool:
        """Wait until the job ends or the time is up; returns False at once without a wait, or a permit to wait."""
        if not self.seconds or self.waiters.refusal(owner) is not None:
            return False
        with self.waiters.hold(owner):
            await self.watcher.wait(job_id, lambda snapshot: snapshot.final, self.seconds)
        return True

    def applied(self, response: Response) -> None:
        response.headers["Preference-Applied"] = f"wait={self.seconds:g}"


async def _prefer_wait(
    *,
    request: Request,
    context: ContextDep,
    watcher: WatcherDep,
    prefer: Annotated[
        str | None,
        Header(
            description="`wait=N`: respond only when the work is done, or after N seconds (at most 60).",
            examples=["wait=30"],
        ),
    ] = None,
) -> PreferWait:
    text = preferences(request).get("wait", "")
    # An invalid preference is ignored, as RFC 7240 requires.
    seconds = float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0
    return PreferWait(min(seconds, MAX_WAIT_SECONDS), watcher, context.waiters)


PreferWaitDep = Annotated[PreferWait, Depends(_prefer_wait)]


def wake_a_worker(context: Context, job_id: str) -> None:
    """Wake workers in the background, so that a broker that hangs does not delay a response. Idle workers also poll."""
    context.publishing.add(partial(_wake, context.producer, job_id))


def _wake(producer: Producer, job_id: str) -> None:
    """A failure is only logged."""
    failpoints.reach("accepted")
    try:
        producer.wake()
    except BrokerAway as error:
        log.debug("job %s: the wake-up was not sent; a worker will poll for it: %s", job_id, error)


@dataclass(frozen=True)
class JobResource:
    """A kind of resource that a job creates: the path of its collection, the member with its job's id, and how to read
    it.

    `read(session, owner, id)` returns the resource as JSON, and True if its job has ended. `ended_status` is the status
    of the response if the job ends within the wait.
    """

    path: str
    job_member: str
    read: Callable[[Session, str, str], tuple[Json, bool]]
    ended_status: int = 201


@dataclass(frozen=True)
class JobCreation(Creation):
    """A request whose resource is created by a job. Its caller may wait for the job."""

    wait: PreferWait

    async def check(self, check: Callable[[Session], object]) -> Response:
        """Call `check` and check quotas, without writes or locks; respond that the request is valid."""

        def work(session: Session) -> None:
            check(session)
            quotas.check(session, self.settings, self.owner)

        await run_in_threadpool(self.context.db.reading, work)
        return JSONResponse({"valid": True})

    async def create_and_respond(
        self, made: JobResource, create: Callable[[Session], Json]
    ) -> Response:
        """Call `create` in a transaction unless the key has a stored response, and wake a worker.

        `create` writes the resource and its job, and returns the resource as the caller reads it.
        """
        created = await self.run_once(create)
        if not created.replayed:
            wake_a_worker(self.context, created.body[made.job_member])
        return await respond(self.context, self.owner, created, self.wait, made)


async def _job_creation(creation: CreationDep, wait: PreferWaitDep) -> JobCreation:
    return JobCreation(**vars(creation), wait=wait)


JobCreationDep = Annotated[JobCreation, Depends(_job_creation)]


async def respond(
    context: Context, owner: str, created: Created, wait: PreferWait, made: JobResource
) -> Response:
    """Respond with a new resource: 202, or `ended_status` if its job ended within the wait."""
    body = created.body
    headers = {"Location": f"{made.path}/{body['id']}"} | created.headers
    if await wait.for_end(owner, body[made.job_member]):
        ended = False
        with suppress(NotFound):  # deleted since: respond with what was created
            body, ended = await run_in_threadpool(
                context.db.reading, made.read, owner, str(body["id"])
            )
        if ended:
            response = JSONResponse(body, made.ended_status, headers)
            wait.applied(response)
            return response
    return JSONResponse(body, 202, headers | {"Retry-After": "1"})
