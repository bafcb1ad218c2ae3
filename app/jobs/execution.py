"""The steps of a job that a worker runs, and the problem that the job's owner reads for an exception."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from app.jobs import child_jobs, queue
from app.jobs.kinds import Claim, PublishedOutput, kind_of
from app.jobs.progress import Callback
from app.jobs.queue import problem
from app.platform import resources
from app.platform.blobs import BlobStore
from app.platform.errors import ServiceError, Unavailable
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from core.errors import CoreError, ShardsLost

FAN_OUT = "fan_out"
"""The member of a result that asks for child jobs."""


def prepare(
    session: Session, blobs: BlobStore, settings: Settings, claim: Claim, workdir: Path
) -> Json:
    """Return the payload of the fit process: the result of `JobKind.prepare`, the kind, and the trace context."""
    payload = kind_of(claim.kind).prepare(session, blobs, settings, claim, workdir)
    return {**payload, "kind": claim.kind, "traceparent": claim.traceparent}


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Return the result of the job's computation. An exception of the callback stops it."""
    return cast(Json, kind_of(payload["kind"]).run(payload, callback))


def publish(blobs: BlobStore, claim: Claim, result: Mapping[str, Any]) -> Any:
    """Publish the files of the result, and return the values that `complete` needs."""
    return None if FAN_OUT in result else kind_of(claim.kind).publish(blobs, claim, result)


def complete(session: Session, claim: Claim, result: Mapping[str, Any], published: Any) -> None:
    """Write the result and end the job, or let it wait for child jobs. Raises as `queue.finish`."""
    if FAN_OUT in result:
        child_jobs.fan_out(session, claim, result[FAN_OUT])
        return
    kind_of(claim.kind).complete(session, claim, result, published)


def complete_output(session: Session, claim: Claim, result: object, made: PublishedOutput) -> None:
    """End the job well and write its output, which must still be this job's. Raises as `queue.finish`, and Conflict."""
    output = kind_of(claim.kind).output
    assert output is not None
    queue.finish(session, claim, messages=made.messages)
    output.write(session, claim, made.columns)
    session.add_all(made.rows)


def problem_of(error: BaseException) -> tuple[Json, bool]:
    """Return the problem that the job's owner reads, and True if the input is at fault: then no retry would help."""
    if isinstance(error, ServiceError):
        made = problem(error.code, error.title, error.detail, error.errors)
        return made, error.status < 500 and not isinstance(error, Unavailable)
    if isinstance(error, CoreError):
        return problem(error.code, "Invalid input", str(error)), True
    if isinstance(error, ShardsLost):
        return problem("cluster_lost", "Cluster lost", str(error)), False
    if resources.is_full(error):
        return problem("out_of_space", "Out of space", "the worker's disk is full"), False
    detail = f"{type(error).__name__} in the worker; the worker's log has the details"
    return problem("internal", "Internal error", detail), False
