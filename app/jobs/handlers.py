"""What each kind of job does: the four steps that a worker runs, hooks for the queue, and what an exception means to
the job's owner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from app.platform import resources
from app.platform.errors import Invalid, ServiceError, Unavailable
from core.errors import CoreError

if TYPE_CHECKING:
    from pathlib import Path

    from app.jobs import queue
    from app.platform.blobs import BlobStore
    from app.platform.settings import Settings
    from app.platform.sql import Session
    from app.platform.tables import Job

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]


class Handler(Protocol):
    """The steps of a kind of job, each a function of its module.

    `prepare` reads, in one transaction, and returns a JSON payload; `workdir` is a fresh folder, which the caller
    removes in the end. `run` computes in the fit process, knows only the payload and returns a small JSON result.
    `publish` puts what was made where the transaction can name it, and computes what is to be written: no transaction
    waits for a disk or for the packing of a curve. `complete` writes that and the job's end in one transaction. The
    last two may be called again with the same result when the database was away, and `complete` after a deadlock with
    what `publish` returned.
    A result `{"fan_out": …}` asks for child jobs instead, with the fields of `child_jobs.FanOut`; once they are done
    the steps begin anew.

    The science is imported by `run` itself: the worker, which calls the others, never holds it.
    """

    def prepare(
        self,
        session: Session,
        blobs: BlobStore,
        settings: Settings,
        claim: queue.Claim,
        workdir: Path,
    ) -> Json:
        """Gather what `run` needs."""

    def run(self, payload: Mapping[str, Any], callback: Callback) -> Json:
        """Compute."""

    def publish(self, blobs: BlobStore, claim: queue.Claim, result: Mapping[str, Any]) -> Any:
        """Bring what was made to where it stays; returns what `complete` needs of it."""

    def complete(
        self, session: Session, claim: queue.Claim, result: Mapping[str, Any], published: Any
    ) -> None:
        """Write what was made."""


# The module of each kind, imported with its first job. The kinds are the constants of jobs, submission and so on.
HANDLERS: Mapping[str, str] = {
    "ingest": "app.datasets.tasks",
    "ingest_pairs": "app.datasets.pairs_tasks",
    "evaluate": "app.evaluation.tasks",
    "compare": "app.evaluation.comparison_tasks",
    "batch_score": "app.scoring.tasks",
    "train": "app.training.tasks",
    "train_part": "app.training.child_tasks",
}


SHOWN_KINDS = tuple(kind for kind in HANDLERS if not kind.endswith("_part"))
"""The kinds of job that their owners see."""

# Beside its steps a module may have hooks: functions for what else may happen to a job of its kind. They are named
# here, so that no module is imported only to find no hook in it: the dispatcher ends jobs of all kinds, and runs none.
HOOKS: Mapping[str, frozenset[str]] = {
    "ended": frozenset({"ingest", "ingest_pairs"}),
    "retry": frozenset({"ingest", "ingest_pairs", "evaluate", "compare", "batch_score", "train"}),
    "may_skip": frozenset({"train_part"}),
}


def ended(session: Session, job: Job, error: Json | None) -> None:
    """The job has just ended without a result: what waited for it is let go, in the same transaction."""
    if (hook := _hook("ended", job.kind)) is not None:
        hook(session, job, error)


def retry(session: Session, old: Job, again: Callable[[], Job]) -> Job:
    """Do the work of a job that ended without a result as another job, which `again` writes; returns that.

    What the work needs is locked and checked before, and what the old job was to make is the new one's to make. Raises
    Conflict where the work cannot be done again.
    """
    hook = _hook("retry", old.kind)
    return again() if hook is None else cast("Job", hook(session, old, again))


def may_skip(kind: str, spec: Mapping[str, Any]) -> bool:
    """Whether a job that is to end early can do without a child job of this kind and specification."""
    hook = _hook("may_skip", kind)
    return hook is not None and bool(hook(spec))


def prepare(
    session: Session, blobs: BlobStore, settings: Settings, claim: queue.Claim, workdir: Path
) -> Json:
    """Gather what the fit process needs; see `Handler`."""
    payload = _handler(claim.kind).prepare(session, blobs, settings, claim, workdir)
    return payload | {"kind": claim.kind, "workdir": str(workdir)}


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Compute; see `Handler`. What the callback raises stops it."""
    return _handler(payload["kind"]).run(payload, callback)


def publish(blobs: BlobStore, claim: queue.Claim, result: Mapping[str, Any]) -> Any:
    """Bring what was made to where it stays, and return what `complete` needs of it; see `Handler`."""
    return None if "fan_out" in result else _handler(claim.kind).publish(blobs, claim, result)


def complete(
    session: Session, claim: queue.Claim, result: Mapping[str, Any], published: Any
) -> None:
    """Write what was made and end the job, or have it wait for child jobs; see `Handler`. Raises as `queue.finish`."""
    if "fan_out" in result:
        from app.jobs import child_jobs

        child_jobs.fan_out(session, claim, child_jobs.FanOut(**result["fan_out"]))
        return
    _handler(claim.kind).complete(session, claim, result, published)


def problem_of(error: BaseException) -> tuple[Json, bool]:
    """Return the problem that the job's owner reads, and whether the input is at fault: then no retry would help."""
    if isinstance(error, ServiceError):
        problem = {
            "code": error.code,
            "title": error.title,
            "detail": error.detail,
            "errors": error.errors,
        }
        return problem, error.status < 500 and not isinstance(error, Unavailable)
    if isinstance(error, CoreError):
        return {
            "code": error.code,
            "title": "Invalid input",
            "detail": str(error),
            "errors": [],
        }, True
    if resources.is_full(error):
        detail = "the worker's disk is full"
        return {
            "code": "out_of_space",
            "title": "Out of space",
            "detail": detail,
            "errors": [],
        }, False
    detail = f"{type(error).__name__} in the worker; its log says more"
    return {"code": "internal", "title": "Internal error", "detail": detail, "errors": []}, False


def _hook(name: str, kind: str) -> Callable[..., object] | None:
    return getattr(_handler(kind), name) if kind in HOOKS[name] else None


def _handler(kind: str) -> Handler:
    if kind not in HANDLERS:
        raise Invalid(
            f"a job must be of kind {' or '.join(HANDLERS)}, got {kind!r}", code="unsupported"
        )
    return cast(Handler, import_module(HANDLERS[kind]))
