"""Requests to erase an entity: create, read and list them. A job and housekeeping carry them out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from app.access import holds
from app.erasure import repository
from app.erasure.tasks import ERASE
from app.jobs import service as jobs
from app.platform.audit import allow_over_quota
from app.platform.callers import Caller, check_all_models
from app.platform.errors import NotFound, shown
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Page, Session, read_clock
from app.platform.tables import FINAL_STATES, Erasure, Job, JobState

DUE_SECONDS = 7 * 86_400.0
"""Longest time from a request until it is done."""
STATES = ("running", "settling", "done", "on_hold", "failed")


class ShownErasure(NamedTuple):
    """A request and its job, which may have been deleted after it ended."""

    erasure: Erasure
    job: Job | None

    @property
    def state(self) -> str:
        """One of `STATES`."""
        if self.erasure.done_at is not None:
            return "done"
        if self.erasure.report is not None and self.erasure.report["verified_at"] is not None:
            return "settling" if self.erasure.entity_id is not None else "failed"
        if self.job is None or self.job.state in FINAL_STATES:
            return "on_hold" if (self.code or "") == holds.ON_HOLD else "failed"
        return "running"

    @property
    def code(self) -> str | None:
        error = None if self.job is None or self.job.state == JobState.SUCCEEDED else self.job.error
        return None if error is None else error["code"]

    @property
    def detail(self) -> str | None:
        return None if self.code is None or self.job is None else (self.job.error or {})["detail"]


def create(
    session: Session,
    settings: Settings,
    caller: Caller,
    entity_id: str,
    key_columns: Sequence[str],
    *,
    retire_models: bool,
) -> ShownErasure:
    """Store a request and queue its job, also over the quota, because it frees bytes.

    Raises Conflict if a legal hold covers everything of the owner.
    """
    check_all_models()
    allow_over_quota(session)
    holds.lock(session, caller.owner)
    holds.check(session, caller.owner)
    erasure_id, now = new_id("era"), read_clock(session)
    job = _enqueue(session, settings, caller.owner, erasure_id)
    erasure = Erasure(
        id=erasure_id,
        owner=caller.owner,
        entity_id=entity_id,
        key_columns=list(dict.fromkeys(key_columns)),
        retire_models=retire_models,
        job_id=job.id,
        requested_at=now,
        due_at=now + DUE_SECONDS,
        done_at=None,
        erased=None,
        report=None,
        old_keys=None,
        author=caller.name,
    )
    repository.add(session, erasure)
    return ShownErasure(erasure, job)


def search_again(session: Session, settings: Settings, settle_seconds: float, limit: int) -> int:
    """Queue the last search of requests older than `settle_seconds`.

    Until then, somebody may have made a table from decisions that were not yet erased.
    """
    found = repository.to_search_again(session, settle_seconds, limit)
    for each in found:
        each.job_id = _enqueue(session, settings, each.owner, each.id).id
    return len(found)


def _enqueue(session: Session, settings: Settings, owner: str, erasure_id: str) -> Job:
    return jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=ERASE,
        name=erasure_id,
        spec={"erasure_id": erasure_id},
    )


def find(session: Session, owner: str, erasure_id: str) -> ShownErasure:
    """Raises NotFound."""
    found = repository.find(session, owner, erasure_id)
    if found is None:
        raise NotFound(f"there is no erasure {shown(erasure_id)}")
    return _with_job(session, owner, [found])[0]


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[ShownErasure]:
    """Newest first."""
    page = repository.list_page(session, owner, limit=limit, after=after)
    return Page(_with_job(session, owner, page.data), page.has_more, page.next)


def _with_job(session: Session, owner: str, erasures: Sequence[Erasure]) -> list[ShownErasure]:
    ids = [each.job_id for each in erasures if each.job_id is not None]
    found = repository.jobs_of(session, owner, ids)
    return [ShownErasure(each, found.get(each.job_id or "")) for each in erasures]
