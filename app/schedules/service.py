"""Creating, changing and deleting schedules, and running those that are due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.access import repository as access_rows
from app.access.service import caller_of_principal
from app.datasets import service as datasets
from app.platform import catalogue, failpoints
from app.platform.audit import Outcome, allow_over_quota, describe_changes, record_of_service
from app.platform.blobs import BlobWriter
from app.platform.callers import Caller
from app.platform.connections import Connections
from app.platform.errors import Conflict, NotFound, shown
from app.platform.ids import is_id, new_id
from app.platform.roles import Rule
from app.platform.settings import Settings
from app.platform.sql import Page, Session, read_clock
from app.platform.tables import FINAL_STATES, JobState, Schedule, SchedulePaused
from app.schedules import cron, due_repository, repository
from app.schedules.due_repository import DueSchedule

MAX_SCHEDULES = 100
"""Schedules of an owner."""
SCOPE = "train"
"""What the principal of a schedule needs at each run."""
RUN_IN_PROGRESS = "run_in_progress"
"""The code of a due time that was skipped, because the job of an earlier one had not ended."""


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """A schedule, the dataset that its next run refreshes, and the state of its last job (None: none, or deleted)."""

    row: Schedule
    dataset_id: str
    last_job_state: str | None


def create(
    session: Session, connections: Connections, caller: Caller, dataset_id: str, expression: str
) -> ScheduleState:
    """Raises NotFound, Conflict or Invalid for dataset or expression, and Conflict above `MAX_SCHEDULES`."""
    now = read_clock(session)
    expression = cron.checked(expression, now)
    datasets.check_refresh(connections, datasets.find(session, caller.owner, dataset_id))
    access_rows.take_turn(session, caller.owner)  # for the number of schedules
    if repository.count(session, caller.owner) >= MAX_SCHEDULES:
        raise Conflict(
            f"an owner can have at most {MAX_SCHEDULES} schedules: delete one first",
            code="too_many_schedules",
        )
    row = Schedule(
        id=new_id("sch"),
        owner=caller.owner,
        dataset_id=dataset_id,
        cron=expression,
        due_at=cron.next_due(expression, now),
        created_at=now,
        paused_at=None,
        paused_reason=None,
        last_run_at=None,
        last_job_id=None,
        last_dataset_id=None,
        last_error=None,
    )
    _let_act(row, caller)
    describe_changes(session, f"Schedule {row.id}", {}, _audited(row))
    repository.add(session, row)
    return ScheduleState(row, row.dataset_id, None)


def update(
    session: Session,
    connections: Connections,
    caller: Caller,
    schedule_id: str,
    *,
    expression: str | None = None,
    paused: bool | None = None,
) -> ScheduleState:
    """None leaves a value as it is. Who resumes a schedule is the principal of later runs.

    Raises NotFound and Invalid, and what `create` raises when it is resumed.
    """
    if paused:
        allow_over_quota(session)
    row = find(session, caller.owner, schedule_id, lock=True)
    state = _state_of(session, row)
    before, now = _audited(row), read_clock(session)
    if expression is not None:
        row.cron = cron.checked(expression, now)
        if row.due_at is not None:
            row.due_at = cron.next_due(row.cron, now)
    if paused is True and row.paused_at is None:
        _pause(row, SchedulePaused.REQUESTED, now)
    elif paused is False and row.paused_at is not None:
        refreshed = datasets.find(session, caller.owner, state.dataset_id)
        datasets.check_refresh(connections, refreshed)
        row.paused_at = row.paused_reason = None
        row.due_at = cron.next_due(row.cron, now)
        _let_act(row, caller)
    describe_changes(session, f"Schedule {row.id}", before, _audited(row))
    session.flush()
    return state


def delete(session: Session, owner: str, schedule_id: str) -> None:
    """A job that it has queued continues. Raises NotFound."""
    allow_over_quota(session)
    row = find(session, owner, schedule_id, lock=True)
    describe_changes(session, f"Schedule {row.id} deleted", _audited(row), {})
    repository.remove(session, row)


def find(session: Session, owner: str, schedule_id: str, *, lock: bool = False) -> Schedule:
    """Raises NotFound."""
    found = None
    if is_id(schedule_id, "sch"):
        found = repository.find(session, owner, schedule_id, lock=lock)
    if found is None:
        raise NotFound(f"there is no schedule {shown(schedule_id)}")
    return found


def read(session: Session, owner: str, schedule_id: str) -> ScheduleState:
    """Raises NotFound."""
    return _state_of(session, find(session, owner, schedule_id))


def list_page(
    session: Session, owner: str, *, limit: int, after: str | None
) -> Page[ScheduleState]:
    """Newest first."""
    page = repository.list_page(session, owner, limit=limit, after=after)
    return Page(_states_of(session, owner, page.data), page.has_more, page.next)


def prepare_run(
    session: Session, rules: Sequence[Rule], due: DueSchedule
) -> Caller | SchedulePaused | str | None:
    """Return what a due time asks for: a run by a caller, a pause, a note with an unfinished job's id, or nothing."""
    row = repository.find(session, due.owner, due.id)
    if row is None or row.due_at != due.due_at:
        return None
    state = _state_of(session, row)
    if state.last_job_state is not None and state.last_job_state not in FINAL_STATES:
        return row.last_job_id
    caller = caller_of_principal(session, rules, row.owner, row.principal_id, row.groups)
    if caller is None:
        return SchedulePaused.KEY_ENDED if row.groups is None else SchedulePaused.ROLE_MISSING
    if SCOPE not in caller.scopes:
        return SchedulePaused.SCOPE_MISSING if row.groups is None else SchedulePaused.ROLE_MISSING
    try:
        datasets.find(session, row.owner, state.dataset_id)
    except NotFound:
        return SchedulePaused.DATASET_DELETED
    return caller


def run(
    session: Session,
    settings: Settings,
    connections: Connections,
    caller: Caller,
    due: DueSchedule,
    writer: BlobWriter,
) -> str | None:
    """Queue the refresh and set the next time, in one transaction; returns the job. None if another dispatcher does it.

    `writer` has written an empty blob. Raises what `app.datasets.service.accept_refresh` raises.
    """
    row = due_repository.claim(session, due)
    if row is None or row.principal_id != caller.principal_id:
        return None
    row.dataset_id = _state_of(session, row).dataset_id
    unread = datasets.StoredUpload.unread(writer.blob)
    made = datasets.accept_refresh(
        session, settings, connections, row.owner, row.dataset_id, unread
    )
    catalogue.commit(session, writer)
    _set_next(session, row)
    row.last_job_id, row.last_dataset_id, row.last_error = made.job_id, made.id, None
    session.flush()
    failpoints.reach("schedule")
    return made.job_id


def note_error(session: Session, due: DueSchedule, code: str, detail: str) -> bool:
    """Say why a due time has no job, and set the next; returns False if it is done already."""
    row = due_repository.claim(session, due)
    if row is None:
        return False
    _set_next(session, row)
    row.last_error = {"code": code, "message": detail}
    return True


def pause(session: Session, due: DueSchedule, reason: SchedulePaused) -> bool:
    """Return False if the due time is done already."""
    row = due_repository.claim(session, due)
    if row is None:
        return False
    row.last_run_at = read_clock(session)
    row.last_error = {"code": str(reason), "message": _WHY[reason]}
    _pause(row, reason, row.last_run_at)
    record_of_service(
        session,
        "paused schedule",
        Outcome.DONE,
        f"Paused the schedule {row.id}: {_WHY[reason]}",
        owner=row.owner,
    )
    return True


def _set_next(session: Session, row: Schedule) -> None:
    """However many times were missed, they are run once."""
    row.last_run_at = read_clock(session)
    row.due_at = cron.next_due(row.cron, row.last_run_at)


def _pause(row: Schedule, reason: SchedulePaused, now: float) -> None:
    row.paused_at, row.paused_reason, row.due_at = now, reason, None


def _let_act(row: Schedule, caller: Caller) -> None:
    assert caller.principal_id is not None  # a route with a scope
    row.principal_id, row.author = caller.principal_id, caller.name
    row.groups = None if caller.kind == "key" else sorted(caller.groups)


def _state_of(session: Session, row: Schedule) -> ScheduleState:
    return _states_of(session, row.owner, [row])[0]


def _states_of(session: Session, owner: str, rows: Sequence[Schedule]) -> list[ScheduleState]:
    jobs = {row.last_job_id for row in rows if row.last_job_id is not None}
    states = repository.states_of_jobs(session, owner, jobs)
    return [_with_state(row, *states.get(row.last_job_id or "", (None, None))) for row in rows]


def _with_state(row: Schedule, job_state: str | None, made: str | None) -> ScheduleState:
    """If the last job has succeeded, the next run refreshes that job's dataset."""
    dataset_id = made if job_state == JobState.SUCCEEDED else None
    return ScheduleState(row, dataset_id or row.dataset_id, job_state)


def _audited(row: Schedule) -> dict[str, object]:
    return {
        "dataset": row.dataset_id,
        "cron": row.cron,
        "acts as": row.author,
        "state": "active" if row.paused_at is None else f"paused ({row.paused_reason})",
    }


_WHY = {
    SchedulePaused.REQUESTED: "by request",
    SchedulePaused.KEY_ENDED: "the key that it acts as has expired or is revoked",
    SchedulePaused.SCOPE_MISSING: f"the key that it acts as lacks the scope {SCOPE!r}",
    SchedulePaused.ROLE_MISSING: f"who it acts as has no role with the scope {SCOPE!r}",
    SchedulePaused.DATASET_DELETED: "its dataset was deleted",
}
