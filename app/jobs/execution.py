"""The steps of a job that a worker runs, and the problem that the job's owner reads for an exception."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from app.jobs import child_jobs, queue
from app.jobs.fetching import Fetching
from app.jobs.kinds import Claim, PublishedOutput, kind_of
from app.jobs.progress import Callback
from app.jobs.queue import problem
from app.platform import catalogue, resources
from app.platform.blobs import Blob, BlobDamaged, BlobKey, BlobMissing, BlobStore, Publisher
from app.platform.errors import ServiceError, Unavailable
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from core.errors import CoreError, ShardsLost

FAN_OUT = "fan_out"
"""The member of a result that asks for child jobs."""


class Published(NamedTuple):
    """The values that `JobKind.publish` returned, and the blobs that it stored."""

    values: Any
    blobs: Sequence[Blob]


class Prepared(NamedTuple):
    """A payload with keys of blobs, the blobs by key, and the work folder."""

    payload: Json
    blobs: Mapping[str, Blob]
    workdir: Path


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> Prepared:
    """Return the payload with its kind and the blobs. Raises BlobMissing."""
    payload = kind_of(claim.kind).prepare(session, settings, claim, workdir)
    find = catalogue.entries if kind_of(claim.kind).skips_damaged else catalogue.find_all
    found = find(session, list(_keys_in(payload)))
    return Prepared({**payload, "kind": claim.kind}, found, workdir)


def fetch(blobs: BlobStore, prepared: Prepared) -> Json:
    """Replace each `BlobKey` by the path of a local file: the fit process has no network.

    The files exist at least as long as the work folder. Raises BlobMissing and BlobDamaged, unless the kind
    `skips_damaged`: the path of such a file is then None.
    """
    skips_damaged = kind_of(prepared.payload["kind"]).skips_damaged
    paths: dict[str, str | None] = {}
    if skips_damaged:
        paths.update((key, None) for key in _keys_in(prepared.payload))
    for key, blob in prepared.blobs.items():
        try:
            if skips_damaged:
                blobs.verify(blob)
            paths[key] = str(blobs.pin(blob, prepared.workdir))
        except (BlobMissing, BlobDamaged):
            if not skips_damaged:
                raise
    return cast(Json, _with_paths(prepared.payload, paths))


def fetch_source(settings: Settings, claim: Claim, payload: Json, fetching: Fetching) -> Json:
    """Fetch what the kind needs from outside. Raises SourceError, FetchStopped, and Unavailable if a retry may help."""
    fetch = kind_of(claim.kind).fetch
    if fetch is None:
        return payload
    return cast(Json, fetch(settings, claim, payload, fetching))


def _keys_in(value: Any) -> Iterator[BlobKey]:
    if isinstance(value, BlobKey):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _keys_in(each)


def _with_paths(value: Any, paths: Mapping[str, str | None]) -> Any:
    """Replace keys by paths."""
    if isinstance(value, BlobKey):
        return paths[value]
    if isinstance(value, dict):
        return {name: _with_paths(each, paths) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_paths(each, paths) for each in value]
    return value


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Run the computation of the job's kind. An exception raised by the callback stops it."""
    return cast(Json, kind_of(payload["kind"]).run(payload, callback))


def publish(blobs: BlobStore, claim: Claim, result: Mapping[str, Any]) -> Published:
    """Store the result's files, and return what `complete` needs. It moves the files, so it can run only once."""
    if FAN_OUT in result:
        return Published(None, ())
    publisher = Publisher(blobs)
    return Published(kind_of(claim.kind).publish(publisher, claim, result), publisher.stored)


def complete(
    session: Session, claim: Claim, result: Mapping[str, Any], published: Published
) -> None:
    """End the job, or set it to wait for child jobs. Raises as `queue.finish` does."""
    if FAN_OUT in result:
        child_jobs.fan_out(session, claim, result[FAN_OUT])
        return
    catalogue.add(session, published.blobs)
    kind_of(claim.kind).complete(session, claim, result, published.values)


def complete_output(session: Session, claim: Claim, result: object, made: PublishedOutput) -> None:
    """End the job and write its output. Raises Conflict if the output is another job's, and as `queue.finish` does."""
    output = kind_of(claim.kind).output
    assert output is not None
    queue.finish(session, claim, messages=made.messages)
    output.write(session, claim, made.columns)
    session.add_all(made.rows)


def problem_of(error: BaseException) -> tuple[Json, bool]:
    """Return the problem for the job's owner, and True if the input is the cause, so that no retry helps."""
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
