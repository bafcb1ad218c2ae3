"""A job in parts: it fans out into rows of their own, waits for them, and is joined by its own next attempt.

A part is claimed, kept alive, given back and tried again like any job. What is different is how it ends. With the last
part of a stage its parent goes back into the queue, in the same transaction: the join is nothing but the parent's next
claim, whose payload holds what the parts brought back. A part that fails takes its parent with it, and a parent that
ends takes its parts with it. Parent before part is the order of locks everywhere.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.db import jobs as job_rows
from app.db import parts as rows
from app.db.session import Database
from app.db.tables import Job, JobState
from app.errors import CancelRequested
from app.infra import faults
from app.infra.blobs import BlobStore
from app.infra.ids import new_id
from app.services import queue

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 1.0
DEFAULT_SHARE = 0.5

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FanOut:
    """What a job asks for: the parts of a stage by their specs.

    `share` is how much of the work that is left this stage is, for the progress that is shown. Stages are numbered
    upwards.
    """

    stage: int
    parts: Sequence[Json]
    share: float = DEFAULT_SHARE

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError(f"stage {self.stage} must have a part")
        if not 0.0 < self.share <= 1.0:
            raise ValueError(f"share must be above 0 and at most 1, got {self.share}")


def fan_out(db: Database, claim: queue.Claim, asked: FanOut) -> None:
    """Queue the parts of a stage, and have the job wait for them.

    Only while the token holds: an attempt that was replayed after it fanned out has lost its lease. Raises `LeaseLost`,
    `CancelRequested` as `queue.finish` does, and ValueError for a stage that was there before, which could go on
    forever.
    """
    if claim.parent_id is not None:
        raise ValueError(f"{claim.job_id} is a part and cannot be divided")
    with db.write() as session:
        job = queue.hold(session, claim)
        if job.cancel_requested_at is not None:
            raise CancelRequested(f"{job.id} was asked to stop before it could fan out")
        last = rows.last_stage(session, job.id)
        if last is not None and asked.stage <= last:
            raise ValueError(f"stage must be above {last}, the last of {job.id}, got {asked.stage}")
        done = 0.0 if last is None else rows.done(session, job.id).fraction
        share = (1.0 - done) * asked.share / len(asked.parts)
        rows.wait(session, job)
        rows.insert_queued(
            session,
            job,
            asked.stage,
            f"{job.kind}_part",
            sorted(new_id("job") for _ in asked.parts),  # ids decide between rows of one age
            [{"parent": job.spec, "part": part, "share": share} for part in asked.parts],
        )
        # As far as its owner sees, a job that waits for its parts is running.
        queue.say(session, job, state=JobState.RUNNING, stage=asked.stage, parts=len(asked.parts))
        faults.reach("fan_out")


def finish(session: Session, claim: queue.Claim, result: Json, files: Mapping[str, str]) -> None:
    """End a part well, and queue its parent if it was the last; raises as `queue.finish`.

    `result` is kept until the parent is done, and so are `files`, keys of blobs by name.
    """
    if claim.parent_id is None:
        raise ValueError(f"{claim.job_id} is not a part")
    parent = rows.lock_parent(session, claim.parent_id)
    queue.succeed(session, claim, result=result | {"files": dict(files)})
    if not _join(session, parent):
        _tell(session, parent)


def finished(db: Database, blobs: BlobStore, job_id: str) -> list[Json]:
    """What the parts of a job brought back, by stage and part, each file as its path."""
    with db.read() as session:
        parts = rows.of_parent(session, job_id)
    return [
        {
            "stage": part.stage,
            "part": part.part,
            "spec": part.spec["part"],
            "result": part.result | {"files": _paths(blobs, part.result["files"])},
        }
        for part in parts
        if part.result is not None
    ]


def tell(db: Database, parent_id: str) -> None:
    """Tell how far the parts of a job are, unless that was told within the second."""
    with db.write() as session:
        parent = rows.lock_waiting(session, parent_id)
        if parent is not None:
            _tell(session, parent)


def tend(db: Database) -> list[str]:
    """See to the jobs that wait in vain; returns their ids.

    One past its deadline is ended, for its parts may all be in the queue. One without a part to wait for is queued: no
    transaction leaves such a job, but a row that a person has mended may.
    """
    with db.read() as session:
        stuck = rows.stuck(session)
    tended = []
    for job_id in stuck:
        with db.write() as session:
            job = rows.lock_waiting(session, job_id)
            if job is None:
                continue
            if rows.overdue(session, job):
                problem = queue.timed_out(job.timeout_seconds)
                queue.end_held(session, job, JobState.TIMED_OUT, problem)
            elif not _join(session, job):
                continue
        log.warning("job %s waited for its parts in vain; now %s", job_id, job.state)
        tended.append(job_id)
    return tended


def _join(session: Session, parent: Job) -> bool:
    """Queue a locked job whose parts are all done, as if it had never been claimed; whether it was so."""
    if parent.state != JobState.WAITING or rows.any_open(session, parent.id):
        return False
    parent.progress = {"fraction": rows.done(session, parent.id).fraction}
    queue.requeue_held(session, parent, "its parts are done", parent.attempt - 1, 0.0)
    faults.reach("join")
    return True


def _tell(session: Session, parent: Job) -> None:
    if parent.state != JobState.WAITING or rows.told_within(session, parent, PROGRESS_SECONDS):
        return
    done = rows.done(session, parent.id)
    parent.progress = {
        "fraction": done.fraction,
        "step": done.finished,
        "of": done.of,
        "detail": f"{done.finished} of {done.of} parts of stage {done.stage} are done",
    }
    parent.event_seq += 1
    session.flush()
    job_rows.add_event(session, parent.id, parent.event_seq, "progress", parent.progress)


def _paths(blobs: BlobStore, files: Mapping[str, str]) -> dict[str, str]:
    return {name: str(blobs.path(key)) for name, key in files.items()}
