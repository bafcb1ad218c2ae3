"""Request and response bodies of /v1/schedules."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from app.http.schemas import Body, CreatedAt, PageOf, Resource, Timestamp, one_of
from app.platform.tables import JobState, SchedulePaused
from app.schedules.cron import MAX_LENGTH, MIN_MINUTES
from app.schedules.service import ScheduleState

Cron = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LENGTH)]
_CRON = (
    "When the dataset is refreshed: a cron expression of five fields (minute, hour, day of month, month, day of week), "
    f"in UTC. It may be due at most every {MIN_MINUTES} minutes."
)


class ScheduleRequest(Body):
    """A schedule to create."""

    dataset_id: str = Field(examples=["ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012"])
    """Id of the dataset to refresh. It must have come from a connection, and be ready."""
    cron: Cron = Field(description=_CRON, examples=["0 5 * * 1-5"])


class ScheduleChange(Body):
    """Changes of a schedule. What is absent stays as it is."""

    cron: Cron | None = Field(default=None, description=_CRON)
    paused: bool | None = None
    """True: pause the schedule. False: resume it; times that it has missed are not run, and later runs act as you."""

    @model_validator(mode="after")
    def _not_null(self) -> Self:
        for name in self.model_fields_set:
            if getattr(self, name) is None:
                raise ValueError(f"{name} must not be null: leave it out to keep it")
        return self


class ScheduleError(Resource):
    """Why the last due time has no job."""

    code: str = Field(examples=["run_in_progress"])
    """Stable code of the error."""
    message: str
    """What is wrong, in words."""


class Schedule(Resource):
    """Times at which a dataset is refreshed."""

    id: str
    """Id of the schedule."""
    dataset_id: str
    """Id of the dataset that the next run refreshes: the newest that a run has made."""
    cron: str
    """Cron expression of five fields, in UTC."""
    next_run_at: Timestamp | None
    """When the next run is due. Null: the schedule is paused."""
    author: str | None
    """Name of the principal as which it runs: who created it, or has resumed it last."""
    created_at: CreatedAt
    paused_at: Timestamp | None
    """When it was paused. Null: it is active."""
    paused_reason: Annotated[str, one_of(SchedulePaused)] | None
    """Why it is paused. `requested`: by a request. `key_ended`: the key of its author has expired or is revoked.
    `scope_missing`: that key lacks the scope `train`. `role_missing`: its author has no role with that scope.
    `dataset_deleted`: its dataset was deleted."""
    last_run_at: Timestamp | None
    """When a due time was handled last. Null: none was."""
    last_job_id: str | None
    """Id of the last job that it has queued."""
    last_dataset_id: str | None
    """Id of the dataset of that job."""
    last_job_state: Annotated[str, one_of(JobState)] | None
    """State of that job. Null: there is none, or it was deleted."""
    last_error: ScheduleError | None
    """Why the last due time has no job. Null: it has one. The job may have failed: see `last_job_state`."""


class SchedulePage(PageOf[Schedule]):
    """One page of schedules."""


def show(found: ScheduleState) -> Schedule:
    return Schedule.from_row(
        found.row,
        dataset_id=found.dataset_id,
        next_run_at=found.row.due_at,
        last_job_state=found.last_job_state,
    )
