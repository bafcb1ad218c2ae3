"""A table on its way in: checked only, or accepted once for each Idempotency-Key and read by a worker."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Generic

import orjson
from fastapi import Depends
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.datasets import service as datasets
from app.datasets.schemas import Dataset
from app.datasets.uploads import Received, Said, receive
from app.http import idempotency
from app.http.dependencies import (
    CallerDep,
    Context,
    ContextDep,
    IdempotencyKeyDep,
    Patience,
    PatienceDep,
    ValidateOnly,
)
from app.jobs.acceptance import Look, accepted
from app.platform.errors import Conflict
from app.platform.tables import Dataset as DatasetRow
from app.platform.tables import DatasetStatus

Json = dict[str, Any]


@dataclass(frozen=True)
class Sending:
    """A request that uploads a table: who sends it, under which Idempotency-Key, and what is to come of it."""

    request: Request
    context: Context
    owner: str
    key: str | None
    patience: Patience
    validate: bool


def _sending(
    *,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    key: IdempotencyKeyDep,
    patience: PatienceDep,
    validate: ValidateOnly = False,
) -> Sending:
    return Sending(request, context, caller.owner, key, patience, validate)


SendingDep = Annotated[Sending, Depends(_sending)]


def shown(dataset: DatasetRow) -> Json:
    """A dataset as JSON."""
    return Dataset.model_validate(dataset).model_dump(mode="json")


@dataclass(frozen=True)
class Purpose(Generic[Said]):
    """What an upload is for: `describe` reads its fields, `check` reads the table and keeps nothing, `accept` writes
    what becomes of it: a dataset, or whatever is found under `path`, shown by `show` and read again by `look`. `of` is
    what beside the upload makes two requests the same.
    """

    route: str
    of: Sequence[str]
    describe: Callable[[Mapping[str, str]], Said]
    check: Callable[[Received[Said]], Json]
    accept: Callable[[Session, Received[Said], datasets.Upload], Any]
    path: str = "/v1/datasets"
    show: Callable[[Any], Json] = shown
    look: Look | None = None


async def take_in(sending: Sending, purpose: Purpose[Said]) -> Response:
    """Stream the table to disk, and answer with what it becomes."""
    context = sending.context

    def describe(given: Mapping[str, str]) -> Said:
        return purpose.describe({name: given[name] for name in given if name != "validate"})

    with _alone(sending), context.blobs.writer("uploads") as writer:
        table = await receive(
            sending.request,
            writer,
            describe,
            replays=None if sending.key is None else (purpose.route, sending.key),
            check_only=sending.validate,
        )
        if sending.validate:
            writer.flush()
            return JSONResponse(await run_in_threadpool(_check, context, purpose, table))
        answer = await run_in_threadpool(_accept, sending, purpose, table)

    def look(dataset_id: str) -> tuple[Json, bool]:
        dataset = datasets.get(context.db, sending.owner, dataset_id)
        return shown(dataset), dataset.status != DatasetStatus.PROCESSING

    path, again = purpose.path, purpose.look or look
    return await accepted(context, sending.owner, answer, sending.patience, path, again)


def _check(context: Context, purpose: Purpose[Said], table: Received[Said]) -> Json:
    with context.turn():  # it takes memory that nothing but its bounds limits
        return purpose.check(table)


@contextmanager
def _alone(sending: Sending) -> Iterator[None]:
    """Refuse a second upload under a key while the first is under way."""
    uploading, claim = sending.context.uploading, (sending.owner, sending.key)
    if sending.key is None:
        yield
        return
    if claim in uploading:
        raise Conflict(
            "an upload under this Idempotency-Key is still under way", code="upload_under_way"
        )
    uploading.add(claim)
    try:
        yield
    finally:
        uploading.discard(claim)


def _accept(sending: Sending, purpose: Purpose[Said], table: Received[Said]) -> idempotency.Answer:
    writer, context = table.writer, sending.context
    writer.sync()  # the slow part, before the transaction

    def work(session: Session) -> tuple[int, Json]:
        upload = datasets.Upload(writer.key, writer.size, writer.sha256, table.format)
        answer = purpose.show(purpose.accept(session, table, upload))
        writer.commit()  # so late that a replay or a refusal leaves no blob behind
        return 202, answer

    same = orjson.dumps([vars(table.description), vars(table.format), writer.sha256, *purpose.of])
    answer = idempotency.replay_or_run(
        context.db,
        sending.owner,
        purpose.route,
        sending.key,
        hashlib.sha256(same).hexdigest(),
        work,
    )
    if not answer.replayed:
        context.wake_a_worker(answer.response["job_id"])
    return answer
