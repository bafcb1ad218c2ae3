"""How a creating POST answers whose resource is made by a job: at once with 202, or once it is made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from app.api.context import Context
from app.api.dependencies import Patience
from app.services.idempotency import Answer, replay_or_run

Json = dict[str, Any]


@dataclass(frozen=True)
class Asking:
    """A creating POST: its path, who asks, their Idempotency-Key, and the body as it came."""

    path: str
    owner: str
    key: str | None
    body: bytes


async def create(
    context: Context,
    asking: Asking,
    patience: Patience,
    work: Callable[[Session], Json],
    look: Callable[[str], tuple[Json, bool]],
) -> Response:
    """Write a resource and its job, wake a worker, and answer; `work` gives the resource as it is shown."""
    answer = await run_in_threadpool(
        replay_or_run,
        context.db,
        asking.owner,
        f"POST {asking.path}",
        asking.key,
        hashlib.sha256(asking.body).hexdigest(),
        lambda session: (202, work(session)),
    )
    if not answer.replayed:
        context.wake_a_worker(answer.response["job_id"])
    return await accepted(context, answer, patience, asking.path, look)


async def accepted(
    context: Context,
    answer: Answer,
    patience: Patience,
    path: str,
    look: Callable[[str], tuple[Json, bool]],
) -> Response:
    """Answer with a resource under `path` that was just accepted, or once its job has ended if the caller waits.

    `look` reads the resource of an id again, and says whether its job has ended.
    """
    body = answer.response
    headers = {"Location": f"{path}/{body['id']}", "Retry-After": "1"}
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
        return JSONResponse(body, answer.status_code, headers)
    if patience.seconds and not context.watcher.full:
        await context.watcher.wait(body["job_id"], lambda sight: sight.final, patience.seconds)
        body, ended = await run_in_threadpool(look, body["id"])
        if ended:
            response = JSONResponse(body, 201, {"Location": headers["Location"]})
            patience.applied(response)
            return response
    return JSONResponse(body, answer.status_code, headers)
