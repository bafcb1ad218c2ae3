"""Request and response bodies of /v1/jobs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from app.http.schemas import (
    CreatedAt,
    DatasetVersion,
    PageOf,
    Resource,
    Timestamp,
    one_of,
    with_members,
)
from app.jobs import parameters
from app.jobs.kinds import KINDS, SHOWN_KINDS, SHOWN_STATES, find_output, shown_state
from app.jobs.objectives import OBJECTIVES, PAIR_ORDER
from app.platform.documents import Parameters, described
from app.platform.tables import Job as JobRow

KINDS_DOCS = ", ".join(f"`{kind}`" for kind in SHOWN_KINDS) + "."
"""The kinds of job that are shown."""
OUTPUTS = tuple(dict.fromkeys(each.output for each in KINDS.values() if each.output is not None))
"""The kinds of what jobs create."""
METRICS = (*OBJECTIVES, PAIR_ORDER)
EVENTS = ("state", "progress", "message")


class ProgressRow(TypedDict):
    """A candidate of a search, with its value on the validation rows of all inner splits."""

    trial: Annotated[
        int,
        Field(
            description="Number of the trial that completed this candidate. 0 for a mean rank of several candidates."
        ),
    ]
    algorithm: Annotated[str, Field(description="Name of the algorithm.")]
    parameters: Annotated[
        Parameters,
        Field(description="Up to 8 searched parameters; for `auto` those that it changed."),
    ]
    rows: Annotated[
        int | None,
        Field(description="Number of training rows, or of pairs. Null if it is unknown."),
    ]
    splits: Annotated[
        int,
        Field(
            description="Number of inner splits that `value` is the mean of: all of them. A candidate that is not yet "
            "evaluated on all splits is not listed.",
        ),
    ]
    value: Annotated[
        float, Field(description="Mean value of the job's objective over the inner splits.")
    ]
    seconds: Annotated[float, Field(description="Fit time over all inner splits, in seconds.")]


@described
class Best(ProgressRow):
    """The best candidate so far."""

    metric: Annotated[str, one_of(METRICS)]
    """Metric of the job's objective."""


class Improvement(Resource):
    """A new best value during a search."""

    seconds: float
    """Seconds from the start of the job to the report of this value."""
    value: float
    """Value of the job's objective, as on the leaderboard."""


class Progress(Resource):
    """Progress of a running job: its phase, its steps and its best candidates. After a job has succeeded, `fraction`
    (1), `best`, `leaderboard` and `improvements` remain.
    """

    fraction: float | None = None
    """Fraction of the job that is done, from 0 to 1. For a job with a time budget: the fraction of the budget that is
    used. Null if it is unknown."""
    phase: str | None = None
    """`reading the source`, `reading the table`, `compiling`, `preparing` (before the first step of a fit), `fitting`,
    `measuring` or `comparing` (with baselines). Null if it is unknown."""
    auto_phase: str | None = None
    """For the algorithm auto: the phase that currently uses its budget, such as portfolio or last fits. Null
    otherwise."""
    algorithm: str | None = None
    """Algorithm that is currently being fitted. Null if none is."""
    parameters: dict[str, Any] | None = None
    """Parameters of the current candidate, as on the leaderboard. Null if there is none."""
    rows: int | None = None
    """Number of training rows, or of pairs, of the current fit. Null if none is running."""
    trial: int | None = None
    """For a search: number of the current trial. A trial is one fit on one inner split. Null otherwise."""
    trials: int | None = None
    """Total number of trials. Null if it is unknown, as with `auto`."""
    fold: int | None = None
    """For cross-validation: number of the current fold. Null otherwise."""
    step: int | None = None
    """Number of rounds, or other steps, that the current fit has completed. For a job in parts: number of finished
    parts. Null if it is unknown."""
    of: int | None = None
    """Total number of steps or parts. Null if it is unknown."""
    detail: str | None = None
    """Metrics of the last step, as text for people: the loss; the AUC on a sample of the training rows, if it is cheap;
    the AUC on the validation rows of early stopping. Null if there are none."""
    best: Best | None = None
    """The best candidate so far. Null until there is one."""
    leaderboard: list[ProgressRow] = Field(default_factory=list)
    """The ten best candidates so far, best first. After a job has succeeded: the chosen one, then the best of the
    others, with the values that the model stores (`/v1/models/{id}/leaderboard`, or `search`)."""
    improvements: list[Improvement] = Field(default_factory=list)
    """Up to 100 reports in which the best value improved, in order of time."""
    keepable: bool = False
    """True if `POST …/cancel?keep=true` can keep a candidate now."""
    elapsed_seconds: float | None = None
    """Seconds from the start of the job to this report. A job reports once a second. Null if it is unknown."""
    seconds_left: float | None = None
    """Seconds left of the budget of `auto` at this report. The budget is paused in the phase `compiling`. Null without
    a budget."""


class JobOutput(Resource):
    """The resource that a job creates."""

    kind: Annotated[str, one_of(OUTPUTS)] = Field(
        description=f"{', '.join(f'`{output}`' for output in OUTPUTS)}. For `pairs`, `id` is the id of the dataset."
    )
    id: str
    """Id of the resource."""


@with_members(parameters.shown_members(optional=True))
class Job(Resource):
    """A job: long work that a worker does in the background."""

    id: str
    """Id of the job."""
    kind: Annotated[str, one_of(SHOWN_KINDS)] = Field(description=KINDS_DOCS)
    name: str
    """Name of the resource that the job creates."""
    state: Annotated[str, one_of(SHOWN_STATES)]
    """`queued`, `running`, `cancelling`, `succeeded`, `failed`, `cancelled` or `timed_out`."""
    dataset_id: str | None
    """Id of the dataset that the job uses. Null without one."""
    dataset: DatasetVersion | None
    """The dataset that the job uses, under its name when the job was submitted. Null without one."""
    validation_dataset: DatasetVersion | None
    """The dataset that the model is validated on. Null unless the validation method is `dataset`."""
    algorithm: dict[str, Any] | None
    """Name of the algorithm and all its parameters. A searched parameter has its largest value. Null unless the job
    trains a model."""
    objective: dict[str, Any] | None
    """Objective of the training: `metric` and its parameters. Null unless the job trains a model."""
    validation: dict[str, Any] | None
    """Validation method and its parameters. Null unless the job trains a model."""
    search: dict[str, Any] | None
    """The parameter search. Null without one."""
    baselines: dict[str, Any] | None
    """`algorithms`: the baselines to train. `skipped`: why there are none. `share`: the fraction of the job's time that
    they may take; null: no limit. Null unless the job trains a model."""
    protected_features: list[str] | None = None
    """Protected columns of the dataset that are features of the model. Null unless the job trains a model."""
    timeout_seconds: float
    """Maximum run time in seconds."""
    priority: int
    """Priority from -100 to 100; higher starts first."""
    tags: dict[str, str]
    """Tags of the job."""
    attempt: int
    """Number of the current or last attempt. 0 before the first."""
    max_attempts: int
    """Maximum number of attempts."""
    progress: Progress | None
    """Progress of the job. Null before its first report."""
    error: dict[str, Any] | None
    """The problem, if the job failed; otherwise null."""
    output: JobOutput | None = None
    """The resource that the job creates; it has its own status. A model exists only after the job has succeeded. A
    retried job shows the same resource as its retry, which may have created it. Null if there is none."""
    request_id: str | None
    """Id of the request that submitted the job, from its `X-Request-ID`. All log lines of the API and of the workers
    about the job include it. Null if it was not recorded."""
    retry_of: str | None
    """Id of the job that this one retries. Null if it is not a retry."""
    last_event: int
    """Number (`seq`) of the job's last event. Pass it to `…/events?after=` to continue from there."""
    created_at: CreatedAt
    started_at: Timestamp | None
    """Start of the current or last attempt. Null before the first."""
    finished_at: Timestamp | None
    """Time at which the job reached its final state. Null until then."""
    cancel_requested_at: Timestamp | None
    """Time of the request to cancel. Null without one."""
    keep_requested_at: Timestamp | None = None
    """Time of the request to end early and keep the best candidate. Null without one."""

    @classmethod
    def of_row(cls, row: JobRow) -> Job:
        """Return the response for a job's row. A running job with a request to stop is `cancelling`; a job that waits
        for child jobs is running; the algorithm's parameters are next to its name.
        """
        spec = row.spec
        algorithm, output = spec.get("algorithm"), find_output(row)
        return cls(
            id=row.id,
            kind=row.kind,
            name=row.name,
            state=shown_state(row),
            dataset_id=row.dataset_id,
            dataset=spec.get("dataset"),
            validation_dataset=spec.get("validation_dataset"),
            algorithm=algorithm
            and {
                "name": algorithm["name"],
                **algorithm["parameters"],
                **algorithm.get("defaults", {}),
            },
            objective=spec.get("objective") or None,
            validation=spec.get("validation"),
            search=spec.get("search"),
            baselines=spec.get("baselines"),
            protected_features=parameters.protected_features(spec)
            if "protected_columns" in spec
            else None,
            **{name: spec.get(name) for name in parameters.NAMES},
            timeout_seconds=row.timeout_seconds,
            priority=row.priority,
            tags=row.tags,
            attempt=row.attempt,
            max_attempts=row.max_attempts,
            progress=Progress.model_validate(row.progress) if row.progress else None,
            error=row.error,
            output=output and JobOutput(kind=output[0], id=output[1]),
            retry_of=row.retry_of,
            request_id=row.request_id,
            last_event=row.event_seq,
            created_at=row.created_at,
            started_at=row.started_at,
            finished_at=row.finished_at,
            cancel_requested_at=row.cancel_requested_at,
            keep_requested_at=row.keep_requested_at,
        )


class JobPage(PageOf[Job]):
    """One page of jobs."""


class Event(Resource):
    """One event of a job."""

    seq: int
    """Number of the event within its job: 1, 2, 3, and so on."""
    at: Timestamp
    """Time of the event."""
    type: Annotated[str, one_of(EVENTS)]
    """`state`, `progress` or `message`."""
    data: dict[str, Any]
    """Content of the event; its members depend on `type`."""


class EventPage(Resource):
    """A page of events, in order."""

    data: list[Event]
    """The events of this page."""
    has_more: bool
    """True if more events follow this page."""
    next: int | None
    """Number of the last event of this page: pass it as `after`. Null on the last page."""
