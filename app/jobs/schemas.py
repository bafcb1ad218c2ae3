"""Jobs over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from pydantic.config import JsonDict

from app.http.schemas import DatasetVersion, Resource, Timestamp
from app.jobs.kinds import SHOWN_KINDS, find_output
from app.platform.tables import Job as JobRow
from app.platform.tables import JobState

KINDS = ", ".join(f"`{kind}`" for kind in SHOWN_KINDS) + "."
"""The kinds of job that are shown."""


class ProgressRow(Resource):
    """What a search has tried, judged on the rows that it holds out to choose by."""

    trial: int = Field(description="The number of the trial that completed it.")
    algorithm: str
    parameters: dict[str, Any] = Field(
        description="Those that are searched; of `auto` those that it has set. In short: 8 at most."
    )
    rows: int | None = Field(description="Rows, or pairs, that it has learnt from.")
    value: float = Field(description="By the job's objective, the mean over the inner splits.")
    seconds: float = Field(description="Of its fits, all inner splits together.")


class Best(ProgressRow):
    """The best candidate so far."""

    metric: str = Field(description="That of the job's objective.")


class Progress(Resource):
    """What a running job is doing, how far it is, and the best that it has found."""

    fraction: float | None = Field(
        default=None,
        description="Share of the whole job that is done; of a job with a budget, the share that is spent.",
    )
    phase: str | None = Field(
        default=None,
        description="`reading the table`, `compiling`, `preparing` (what a fit does before its first step), `fitting`, "
        "`measuring` or `comparing` (with plain algorithms).",
    )
    algorithm: str | None = Field(default=None, description="What is being fitted.")
    parameters: dict[str, Any] | None = Field(
        default=None, description="Of a candidate, as on the leaderboard."
    )
    rows: int | None = Field(default=None, description="Rows, or pairs, that it learns from.")
    trial: int | None = Field(
        default=None,
        description="Of a search, the number of the trial under way: one fit on one inner split.",
    )
    trials: int | None = Field(
        default=None, description="How many there will be, where that is known: not with `auto`."
    )
    fold: int | None = Field(
        default=None, description="Under cross-validation, the fold whose ranker is fitted."
    )
    step: int | None = Field(
        default=None,
        description="Rounds, or other steps, of the fit under way; of a job in parts the parts that are done.",
    )
    of: int | None = Field(default=None, description="As many steps, or parts, there are.")
    detail: str | None = Field(
        default=None,
        description="Figures of the last step, for people: the loss; the AUC of a sample of the rows trained on, "
        "while it is cheap; the AUC of the validation rows where a fit may stop early.",
    )
    best: Best | None = None
    leaderboard: list[ProgressRow] = Field(
        default_factory=list, description="The best ten candidates so far, the best first."
    )
    keepable: bool = Field(
        default=False, description="Whether `POST …/cancel?keep=true` would keep something now."
    )
    elapsed_seconds: float | None = Field(
        default=None, description="Since the start, when this was told: a job tells once a second."
    )
    seconds_left: float | None = Field(
        default=None, description="Of the budget of `auto`, when this was told."
    )


class JobOutput(Resource):
    """What a job makes."""

    kind: str = Field(
        description="`model`, `evaluation`, `comparison`, `batch_score`, `dataset` or `pairs` (by the dataset's id)."
    )
    id: str


_DEPRECATED: JsonDict = {"deprecated": True}


class Job(Resource):
    """One long piece of work."""

    id: str
    kind: str = Field(description=KINDS)
    name: str
    state: str = Field(
        description="`queued`, `running`, `cancelling`, `succeeded`, `failed`, `cancelled` or `timed_out`."
    )
    dataset_id: str | None
    dataset: DatasetVersion | None = Field(
        description="What the job trains on or judges by, as it was called when the job was handed in."
    )
    validation_dataset: DatasetVersion | None = Field(
        description="What the model is judged by, with validation.method `dataset`."
    )
    algorithm: dict[str, Any] | None = Field(
        description="With every parameter resolved; the greatest value of one that is searched."
    )
    objective: dict[str, Any] | None
    validation: dict[str, Any] | None
    search: dict[str, Any] | None
    controls: dict[str, Any] | None = Field(
        description="`algorithms` that are fitted for comparison, why they are `skipped` where they are, and the "
        "`share` of the job's time that they may take; null for as long as it takes."
    )
    seed: int | None
    label_noise: float | None
    timeout_seconds: float
    priority: int
    tags: dict[str, str]
    attempt: int
    max_attempts: int
    progress: Progress | None
    error: dict[str, Any] | None = Field(description="A problem, once the job has failed.")
    output: JobOutput | None = Field(
        default=None,
        description="What the job makes; read its status there. A model is there once the job has succeeded.",
    )
    model_id: str | None = Field(
        description="Of a job that trains: `output.id`.", json_schema_extra=_DEPRECATED
    )
    retry_of: str | None
    last_event: int = Field(
        description="Number (`seq`) of the job's last event: `…/events?after=` goes on from there."
    )
    evaluation_id: str | None = Field(
        default=None,
        description="Of a job of kind `evaluate`: `output.id`.",
        json_schema_extra=_DEPRECATED,
    )
    comparison_id: str | None = Field(
        default=None,
        description="Of a job of kind `compare`: `output.id`.",
        json_schema_extra=_DEPRECATED,
    )
    batch_score_id: str | None = Field(
        default=None,
        description="Of a job of kind `batch_score`: `output.id`.",
        json_schema_extra=_DEPRECATED,
    )
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    cancel_requested_at: Timestamp | None
    keep_requested_at: Timestamp | None = Field(
        default=None, description="When the job was asked to end early and keep the best so far."
    )

    @classmethod
    def of_row(cls, row: JobRow) -> Job:
        """Show a row: `cancelling` is running with a cancel request, and a job that waits for its parts is running;
        parameters stand beside the algorithm's name.
        """
        spec = row.spec
        algorithm, output = spec.get("algorithm"), find_output(row)
        state = JobState.RUNNING if row.state == JobState.WAITING else row.state
        cancelling = state == JobState.RUNNING and row.cancel_requested_at is not None
        return cls(
            id=row.id,
            kind=row.kind,
            name=row.name,
            state="cancelling" if cancelling else state,
            dataset_id=row.dataset_id,
            dataset=spec.get("dataset"),
            validation_dataset=spec.get("validation_dataset"),
            algorithm=algorithm and {"name": algorithm["name"], **algorithm["parameters"]},
            objective=spec.get("objective"),
            validation=spec.get("validation"),
            search=spec.get("search"),
            controls=spec.get("controls"),
            seed=spec.get("seed"),
            label_noise=spec.get("label_noise"),
            timeout_seconds=row.timeout_seconds,
            priority=row.priority,
            tags=row.tags,
            attempt=row.attempt,
            max_attempts=row.max_attempts,
            progress=Progress.model_validate(row.progress) if row.progress else None,
            error=row.error,
            output=output and JobOutput(kind=output[0], id=output[1]),
            model_id=row.model_id,
            retry_of=row.retry_of,
            last_event=row.event_seq,
            evaluation_id=spec.get("evaluation_id"),
            comparison_id=spec.get("comparison_id"),
            batch_score_id=spec.get("batch_score_id"),
            created_at=row.created_at,
            started_at=row.started_at,
            finished_at=row.finished_at,
            cancel_requested_at=row.cancel_requested_at,
            keep_requested_at=row.keep_requested_at,
        )


class Event(Resource):
    """Something that happened to a job."""

    seq: int = Field(description="Counts from 1 without gaps.")
    at: Timestamp
    type: str = Field(description="`state`, `progress` or `message`.")
    data: dict[str, Any]


class EventPage(Resource):
    """Events in order; `next` is the number to pass as `after`."""

    data: list[Event]
    has_more: bool
    next: int | None
