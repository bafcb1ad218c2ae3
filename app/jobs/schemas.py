"""Jobs over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from app.http.schemas import DatasetVersion, PageOf, Resource, Timestamp, one_of, with_members
from app.jobs import parameters
from app.jobs.kinds import SHOWN_KINDS, SHOWN_STATES, find_output, shown_state
from app.platform.tables import Job as JobRow

KINDS = ", ".join(f"`{kind}`" for kind in SHOWN_KINDS) + "."
"""The kinds of job that are shown."""
OUTPUTS = ("model", "evaluation", "comparison", "batch_score", "dataset", "pairs")
METRICS = (
    "auc",
    "pauc",
    "tpr",
    "average_precision",
    "precision",
    "lift",
    "precision_at_recall",
    "ndcg",
    "pair_order",
)
EVENTS = ("state", "progress", "message")


class ProgressRow(Resource):
    """A candidate that a search tried, judged on the validation rows of all inner splits."""

    trial: int = Field(
        description="Number of the trial that completed this candidate; 0 for a mean rank of several candidates."
    )
    algorithm: str
    parameters: dict[str, Any] = Field(
        description="The searched parameters; for `auto` those that it changed. At most 8."
    )
    rows: int | None = Field(description="Number of training rows (or pairs).")
    splits: int = Field(
        description="Number of inner splits whose mean `value` is: all of them. A candidate that waits for some of its "
        "splits has no row yet.",
    )
    value: float = Field(description="Value of the job's objective, as mean over the inner splits.")
    seconds: float = Field(description="Fit time over all inner splits, in seconds.")


class Best(ProgressRow):
    """The best candidate up to now."""

    metric: Annotated[str, one_of(METRICS)] = Field(
        description="The metric of the job's objective."
    )


class Improvement(Resource):
    """The value of the best candidate from a time on."""

    seconds: float = Field(description="Seconds from the start of the job to the report of it.")
    value: float = Field(description="Value of the job's objective, as on the leaderboard.")


class Progress(Resource):
    """The progress of a running job: its phase, its steps, and its best candidates. Of a job that has succeeded
    `fraction` (1), `best`, `leaderboard` and `improvements` are kept.
    """

    fraction: float | None = Field(
        default=None,
        description="Fraction of the whole job that is done, from 0 to 1. For a job with a budget: the fraction that "
        "is used.",
    )
    phase: str | None = Field(
        default=None,
        description="`reading the table`, `compiling`, `preparing` (before the first step of a fit), `fitting`, "
        "`measuring` or `comparing` (with simple benchmark models).",
    )
    auto_phase: str | None = Field(
        default=None,
        description="Of `auto`: the phase in which it spends its budget now, such as portfolio or last fits.",
    )
    algorithm: str | None = Field(default=None, description="The algorithm that is being fitted.")
    parameters: dict[str, Any] | None = Field(
        default=None, description="Parameters of the current candidate, as on the leaderboard."
    )
    rows: int | None = Field(
        default=None, description="Number of training rows (or pairs) of the current fit."
    )
    trial: int | None = Field(
        default=None,
        description="For a search: number of the current trial. A trial is one fit on one inner split.",
    )
    trials: int | None = Field(
        default=None, description="Total number of trials. Null if it is not known, as with `auto`."
    )
    fold: int | None = Field(
        default=None, description="For cross-validation: number of the current fold."
    )
    step: int | None = Field(
        default=None,
        description="Number of rounds, or other steps, that the current fit has done. For a job in parts: number of "
        "finished parts.",
    )
    of: int | None = Field(default=None, description="Total number of steps or parts.")
    detail: str | None = Field(
        default=None,
        description="Figures of the last step, for people: the loss; the AUC on a sample of the training rows, if it "
        "is cheap; the AUC on the validation rows of early stopping.",
    )
    best: Best | None = None
    leaderboard: list[ProgressRow] = Field(
        default_factory=list,
        description="The ten best candidates up to now, best first. Of a job that has succeeded: the chosen one, then "
        "the best of the others, with the values that the model keeps (`/v1/models/{id}/leaderboard`, or `search`).",
    )
    improvements: list[Improvement] = Field(
        default_factory=list,
        description="The value of the best candidate over time: each report in which it was greater than before, at "
        "most 100.",
    )
    keepable: bool = Field(
        default=False, description="True if `POST …/cancel?keep=true` can keep a candidate now."
    )
    elapsed_seconds: float | None = Field(
        default=None,
        description="Seconds from the start of the job to this report. A job reports once a second.",
    )
    seconds_left: float | None = Field(
        default=None,
        description="Seconds left of the budget of `auto` at this report. It does not go down "
        "in the phase `compiling`.",
    )


class JobOutput(Resource):
    """The resource that a job makes."""

    kind: Annotated[str, one_of(OUTPUTS)] = Field(
        description="`model`, `evaluation`, `comparison`, `batch_score`, `dataset` or `pairs`. For `pairs`, `id` is "
        "that of the dataset."
    )
    id: str


@with_members(parameters.shown_members(optional=True))
class Job(Resource):
    """A job: long work that a worker does in the background."""

    id: str
    kind: Annotated[str, one_of(SHOWN_KINDS)] = Field(description=KINDS)
    name: str
    state: Annotated[str, one_of(SHOWN_STATES)] = Field(
        description="`queued`, `running`, `cancelling`, `succeeded`, `failed`, `cancelled` or `timed_out`."
    )
    dataset_id: str | None
    dataset: DatasetVersion | None = Field(
        description="The dataset that the job uses, under its name when the job was submitted."
    )
    validation_dataset: DatasetVersion | None = Field(
        description="The dataset that validates the model, with validation.method `dataset`."
    )
    algorithm: dict[str, Any] | None = Field(
        description="Name and all parameters. For a parameter that is searched: its greatest value."
    )
    objective: dict[str, Any] | None
    validation: dict[str, Any] | None
    search: dict[str, Any] | None
    baselines: dict[str, Any] | None = Field(
        description="`algorithms`: the controls to fit. `skipped`: why there are none. `share`: the fraction of the "
        "job's time that they may take; null: no limit."
    )
    timeout_seconds: float
    priority: int
    tags: dict[str, str]
    attempt: int
    max_attempts: int
    progress: Progress | None
    error: dict[str, Any] | None = Field(description="The problem, if the job failed.")
    output: JobOutput | None = Field(
        default=None,
        description="The resource that the job makes; it has its own status. A model exists only after the job has "
        "succeeded. A retried job shows the same resource as its retry, which may have made it.",
    )
    request_id: str | None = Field(
        description="Id of the request that submitted the job: its `X-Request-ID`. The log of the API and of the "
        "workers has it in each line about the job."
    )
    retry_of: str | None
    last_event: int = Field(
        description="Number (`seq`) of the job's last event. Pass it to `…/events?after=` to continue from there."
    )
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    cancel_requested_at: Timestamp | None
    keep_requested_at: Timestamp | None = Field(
        default=None, description="Time of the request to end early and keep the best candidate."
    )

    @classmethod
    def of_row(cls, row: JobRow) -> Job:
        """Show a row: `cancelling` is running with a cancel request, and a job that waits for its parts is running;
        parameters stand beside the algorithm's name.
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
            objective=spec.get("objective"),
            validation=spec.get("validation"),
            search=spec.get("search"),
            baselines=spec.get("baselines"),
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

    seq: int = Field(description="Number of the event in its job: 1, 2, 3, and so on.")
    at: Timestamp
    type: Annotated[str, one_of(EVENTS)] = Field(description="`state`, `progress` or `message`.")
    data: dict[str, Any]


class EventPage(Resource):
    """Events in order. To read on, pass `next` as `after`."""

    data: list[Event]
    has_more: bool
    next: int | None
