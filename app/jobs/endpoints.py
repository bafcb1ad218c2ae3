"""Routes of /v1/jobs: list, read, cancel and retry jobs, and stream events. `app.training.endpoints` submits them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from app.access.authentication import GuardedRoute, check_again, needs
from app.http.dependencies import CallerDep, Context, ContextDep, PagingDep, Sort, TaggedFilterDep
from app.http.idempotency import validated
from app.http.limits import Permit
from app.http.schemas import one_of
from app.jobs import child_jobs
from app.jobs import service as jobs
from app.jobs.acceptance import (
    WAIT_HEADERS,
    WAITED_DOCS,
    JobCreationDep,
    JobResource,
    PreferWaitDep,
    WatcherDep,
)
from app.jobs.kinds import SHOWN_KINDS, SHOWN_STATES
from app.jobs.schemas import KINDS_DOCS, Event, EventPage, Job, JobPage
from app.jobs.watcher import Snapshot, Watcher
from app.platform.errors import Invalid, Unauthenticated, Unavailable
from app.platform.sql import NEWEST_FIRST, Json, Session
from app.platform.tables import FINAL_STATES
from app.platform.tables import Job as JobRow

PATH = "/v1/jobs"
router = APIRouter(prefix=PATH, tags=["jobs"], route_class=GuardedRoute)

PING_SECONDS = 15.0
CHECK_SECONDS = 2.0
"""Between two looks at whether the key, or the browser's session, that lets a stream go on has ended."""
_EVENTS_PER_POLL = 200


def read_shown(session: Session, owner: str, job_id: str) -> tuple[Json, bool]:
    job = jobs.find(session, owner, job_id)
    return show(job), job.state in FINAL_STATES


JOB = JobResource(PATH, "id", read_shown)
"""A job, as the response to its own creation."""


@router.get("", summary="List jobs")
@needs("read")
def list_jobs(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    only: TaggedFilterDep,
    sort: Sort = NEWEST_FIRST,
    state: Annotated[
        Annotated[str, one_of(SHOWN_STATES)] | None, Query(description="Only jobs in this state.")
    ] = None,
    kind: Annotated[
        Annotated[str, one_of((*SHOWN_KINDS, jobs.ALL))],
        Query(description=f"Only jobs of this kind: {KINDS_DOCS} Or of every kind: {jobs.ALL}."),
    ] = jobs.TRAIN,
    dataset_id: Annotated[str | None, Query(description="Only jobs that use this dataset.")] = None,
    unresolved: Annotated[
        bool,
        Query(
            description="`true`: only jobs that failed or timed out and are unresolved. Excluded are jobs that were "
            "retried, jobs whose output was deleted, and jobs followed by a successful job of the same "
            "kind and name."
        ),
    ] = False,
) -> JobPage:
    """Return the owner's jobs of one `kind`, or of all kinds, in the order of `sort`."""
    page = context.db.reading(
        jobs.list_page,
        caller.owner,
        state=state,
        kind=kind,
        dataset_id=dataset_id,
        unresolved=unresolved,
        only=replace(only, sort=sort),
        **vars(paging),
    )
    return JobPage.of(page, Job.of_row)


@router.get(
    "/{job_id}",
    response_model=Job,
    summary="Read a job",
    responses={200: {"headers": WAIT_HEADERS}},
)
@needs("read")
async def read_job(
    *,
    job_id: str,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    wait: PreferWaitDep,
) -> Response:
    """Return the job's state and progress; after its end, also `output` or `error`. With `Prefer: wait=N` the response
    is sent when the job has ended, or after N seconds.
    """
    owner = caller.owner
    body, ended = await run_in_threadpool(context.db.reading, read_shown, owner, job_id)
    if not ended and await wait.for_end(owner, job_id):
        await check_again(request)
        body, ended = await run_in_threadpool(context.db.reading, read_shown, owner, job_id)
    response = JSONResponse(body)
    if wait.seconds:
        if ended:
            wait.applied(response)
        else:
            response.headers["Retry-After"] = "1"
    return response


@router.post(
    "/{job_id}/cancel",
    status_code=202,
    response_model=Job,
    summary="Cancel a job",
    response_description="The job will stop, or has stopped.",
    responses={200: {"model": Job, "description": "The job had already been asked to stop."}},
)
@needs("train")
def cancel_job(
    job_id: str,
    context: ContextDep,
    caller: CallerDep,
    *,
    keep: Annotated[
        bool,
        Query(
            description="`true`: end the search now and keep its best candidate. That candidate is fitted and served, "
            "and the job succeeds with a warning. Returns 409 `nothing_to_keep` unless "
            "`progress.keepable` is true."
        ),
    ] = False,
) -> Response:
    """Ask the job to stop. A queued job ends immediately, a running job within about a second. Returns 409 if the job
    has already ended in another way.
    """
    ask = child_jobs.end_early if keep else jobs.cancel
    job, changed = context.db.writing(ask, caller.owner, job_id)
    return JSONResponse(show(job), 202 if changed else 200)


@validated(router, "/{job_id}/retry", "retry")
@router.post(
    "/{job_id}/retry",
    status_code=202,
    response_model=Job,
    summary="Retry a job",
    responses={201: WAITED_DOCS | {"model": Job}},
)
@needs("train")
async def retry_job(*, job_id: str, new: JobCreationDep) -> Response:
    """Run the same work again as a new job, whose `retry_of` is this job. Returns 409 unless this job has failed, was
    cancelled or timed out.

    The output of the job (an evaluation, comparison, batch score or dataset) then belongs to the new job. Returns 409
    if it already belongs to another job; the error names that job.
    """

    def retry(session: Session) -> Json:
        return show(jobs.retry(session, new.settings, new.owner, job_id))

    return await (new.rehearse(retry) if new.only_check else new.create_and_respond(JOB, retry))


@router.get(
    "/{job_id}/events",
    response_model=EventPage,
    summary="Follow a job",
    responses={
        200: {
            "description": "A page of events, or with `Accept: text/event-stream` a stream of them.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
@needs("read")
async def read_job_events(
    *,
    job_id: str,
    request: Request,
    context: ContextDep,
    watcher: WatcherDep,
    caller: CallerDep,
    after: Annotated[
        int, Query(ge=0, description="Number (`seq`) of the last event you have read.")
    ] = 0,
    limit: Annotated[
        int, Query(ge=1, le=200, description="Maximum number of events on the page.")
    ] = 50,
    last_event_id: Annotated[
        str | None,
        Header(
            description="Number of the last event you have read; the stream continues after it."
        ),
    ] = None,
) -> Response:
    """Return the job's events, in order. A stream ends when the job has ended, or when its key becomes invalid. It
    sends a ping every 15 seconds.
    """
    if "text/event-stream" in request.headers.get("accept", ""):
        if last_event_id is not None:
            after = _event_number(last_event_id)
        await run_in_threadpool(context.db.reading, jobs.find, caller.owner, job_id)
        return _EventStream(
            context.waiters.hold(caller.owner),
            _stream(request, context, watcher, caller.owner, job_id, after),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
        )
    rows = await run_in_threadpool(
        context.db.reading,
        jobs.events,
        caller.owner,
        job_id,
        after=after,
        limit=limit,
    )
    events = [Event.model_validate(row) for row in rows]
    full = len(events) == limit
    page = EventPage(data=events, has_more=full, next=events[-1].seq if full else None)
    return JSONResponse(page.model_dump(mode="json"))


class _EventStream(StreamingResponse):
    """A stream that acquires a permit before its first byte, and releases it however it ends. Raises TooMany."""

    def __init__(
        self, permit: AbstractContextManager[Permit], content: AsyncIterator[bytes], **options: Any
    ) -> None:
        super().__init__(content, **options)
        self._permit = permit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises TooMany if no permit is free."""
        with self._permit:
            await super().__call__(scope, receive, send)


async def _stream(
    request: Request, context: Context, watcher: Watcher, owner: str, job_id: str, after: int
) -> AsyncIterator[bytes]:
    """Yield events while the key is valid. The state is read before the events: if it is final, all have been read."""
    since = time.monotonic()
    while True:
        try:
            snapshot = await _next(request, watcher, job_id, after, since)
        except Unauthenticated:
            return
        if snapshot is None:
            yield b": ping\n\n"
            if watcher.closed:
                return
            continue
        while after < snapshot.seq:
            rows = await run_in_threadpool(
                context.db.reading, jobs.events, owner, job_id, after=after, limit=_EVENTS_PER_POLL
            )
            if not rows:
                break
            for row in rows:
                event = Event.model_validate(row)
                data = orjson.dumps(event.model_dump(mode="json"))
                yield b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, event.type.encode(), data)
                after = event.seq
        if snapshot.final:
            return


async def _next(
    request: Request, watcher: Watcher, job_id: str, after: int, since: float
) -> Snapshot | None:
    """Return None when a ping is due. Raises Unauthenticated soon after the key or the session has ended."""
    waiting = asyncio.ensure_future(watcher.wait(job_id, _newer_than(after), PING_SECONDS, since))
    try:
        while True:
            await asyncio.wait([waiting], timeout=CHECK_SECONDS)
            try:
                await check_again(request)
            except Unavailable:
                if waiting.done() and waiting.result() is not None:
                    raise
            if waiting.done():
                return waiting.result()
    finally:
        waiting.cancel()


def _newer_than(seq: int) -> Callable[[Snapshot], bool]:
    return lambda snapshot: snapshot.final or snapshot.seq > seq


def _event_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid(f"Last-Event-ID must be the number of an event, got {text[:100]!r}")
    return int(text)


def show(job: JobRow) -> Json:
    return Job.of_row(job).model_dump(mode="json")
