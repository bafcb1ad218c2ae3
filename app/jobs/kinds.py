"""Declarations of the kinds of job: the steps that a worker runs, and the output that the job creates.

The module of a kind declares it as `KIND`. `KINDS` has the modules' names; each is imported with the first job of the
kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, NotRequired, TypeVar, cast

from typing_extensions import TypedDict

from app.access import holds
from app.http.schemas import Body, Resource
from app.jobs import repository
from app.jobs.fetching import Fetching
from app.jobs.progress import Callback
from app.platform.blobs import Publisher
from app.platform.errors import Conflict, Invalid, NotFound, check_id
from app.platform.ids import is_id, new_id
from app.platform.settings import Settings
from app.platform.sql import ALL_ROWS, Base, Json, Page, RowFilter, Session
from app.platform.tables import FINAL_STATES, Job, JobOutputRow, JobState

MODEL = "model"
"""The output of a training job, which exists only after the job has succeeded."""


class Entry(NamedTuple):
    """What every process knows of a kind of job without importing its module; `KIND` in the module repeats it.

    `label` is the kind's name for people, and `output` the code of its output. A child job, which the API does not
    show, has neither. A process that ends jobs of all kinds imports only the modules that declare `on_end`.
    """

    module: str
    label: str = ""
    output: str | None = None
    has_end_hook: bool = False


KINDS: Mapping[str, Entry] = {
    "ingest": Entry("app.datasets.tasks", "reading a table", "dataset", has_end_hook=True),
    "ingest_files": Entry(
        "app.datasets.files_tasks", "reading a table of several files", "dataset", has_end_hook=True
    ),
    "ingest_files_part": Entry("app.datasets.part_tasks"),
    "ingest_pairs": Entry("app.datasets.pairs_tasks", "reading pairs", "pairs", has_end_hook=True),
    "ingest_source": Entry(
        "app.datasets.source_tasks", "reading a table of decisions", "dataset", has_end_hook=True
    ),
    "ingest_fetched": Entry(
        "app.datasets.fetch_tasks", "reading a table from a source", "dataset", has_end_hook=True
    ),
    "evaluate": Entry("app.evaluation.evaluations", "evaluation", "evaluation"),
    "compare": Entry("app.evaluation.comparisons", "comparison", "comparison"),
    "calibrate": Entry("app.evaluation.recalibration", "calibration"),
    "batch_score": Entry("app.scoring.tasks", "batch score", "batch_score"),
    "backfill": Entry("app.feedback.backfill", "backfill of decisions", has_end_hook=True),
    "train": Entry("app.training.tasks", "training", MODEL),
    "train_part": Entry("app.training.child_tasks"),
    "import": Entry("app.training.imports", "import of a model", MODEL, has_end_hook=True),
    "importance": Entry("app.training.importances", "importance of features"),
    "monitor": Entry("app.feedback.monitor_tasks", "monitoring of an alias"),
    "erase": Entry("app.erasure.tasks", "erasure"),
}
"""Every kind of job, by name."""

CHILD = "_part"
"""A kind of child job is named after its parent's kind, with this at the end."""
SHOWN_KINDS = {name: kind.label for name, kind in KINDS.items() if not name.endswith(CHILD)}
"""The kinds of job that their owners see, each with its name in words."""
SHOWN_STATES = (*(state for state in JobState if state != JobState.WAITING), "cancelling")
"""The states that their owners see. A job that waits for its child jobs is shown as running."""

PROCESSING, READY = "processing", "ready"
STATUSES = (PROCESSING, READY, *(state for state in FINAL_STATES if state != JobState.SUCCEEDED))
STATUS = "`processing`, `ready`, or how its job ended without a result: `failed`, `cancelled`, `timed_out`."

Row = TypeVar("Row", bound=JobOutputRow)
Payload = TypeVar("Payload")
Result = TypeVar("Result")
Published = TypeVar("Published")


@dataclass(frozen=True, slots=True)
class Claim:
    """One attempt at a job. The worker owns it while `token` is valid.

    `parent_id` is set for a child job. `seconds_left` is what remains of the timeout, and `fraction_done` the progress
    before this attempt: both differ from those of a new job only for a job that has waited for child jobs.
    `keep_requested` is True if the owner asked this or an earlier attempt to end early with the best model so far.
    `checkpoint_key` names the checkpoint from which the attempt may resume. `request_id` names the request that
    submitted the job, and `traceparent` is the trace context of its caller. `improvements` are in the job's progress
    before this attempt. `waited_seconds` is the time from when the job was due until this claim; None for a later
    attempt and for a child job, which is as old as its parent.
    """

    job_id: str
    owner: str
    kind: str
    name: str
    spec: Json
    dataset_id: str | None
    attempt: int
    token: int
    timeout_seconds: float
    max_attempts: int
    parent_id: str | None
    seconds_left: float
    fraction_done: float
    keep_requested: bool
    checkpoint_key: str | None
    request_id: str | None = None
    traceparent: str | None = None
    improvements: Sequence[Json] = ()
    waited_seconds: float | None = None


def shown_state(job: Job) -> str:
    """Return one of `SHOWN_STATES`."""
    state = JobState.RUNNING if job.state == JobState.WAITING else job.state
    is_asked = state == JobState.RUNNING and job.cancel_requested_at is not None
    return "cancelling" if is_asked else state


def status_of(row: JobOutputRow) -> str:
    """Return `processing` until the job has ended, then `ready`, or its final state."""
    if row.job.state == JobState.SUCCEEDED:
        return READY
    return row.job.state if row.job.state in FINAL_STATES else PROCESSING


def conflict_with_newer_job(session: Session, owner: str, what: str, job_id: str) -> Conflict:
    """The output of the job now belongs to another job."""
    current = repository.find(session, owner, job_id)
    state = "gone" if current is None else current.state
    match state:
        case JobState.SUCCEEDED:
            advice = "it is made"
        case JobState.FAILED | JobState.CANCELLED | JobState.TIMED_OUT:
            advice = "retry that one"
        case "gone":
            advice = "create a new one"
        case _:
            advice = "wait for it to end, or cancel it"
    return Conflict(
        f"{what} now belongs to {job_id}, which is {state}: {advice}", code="job_not_retryable"
    )


class FanOut(TypedDict):
    """The child jobs of a stage that a job requests, by their specifications.

    `share` is the fraction of the remaining work that this stage is, for the progress of the job. Stages are numbered
    in ascending order.
    """

    stage: int
    parts: Sequence[Mapping[str, Any]]
    share: NotRequired[float]


class FanOutResult(TypedDict):
    """The result of `run` that requests child jobs."""

    fan_out: FanOut


@dataclass(frozen=True)
class PublishedOutput:
    """What completes a job: the columns of its output's row, further rows, and messages for its owner."""

    columns: Mapping[str, Any]
    rows: Sequence[Base] = ()
    messages: Sequence[str] = ()


@dataclass(frozen=True)
class Output(Generic[Row]):
    """The output of a kind of job: its table, the prefix of its ids, and its name in messages.

    The row is inserted with the job, and completed as the job succeeds. It belongs to one job at a time: a retry takes
    it over, and only the job that it belongs to can write it.
    """

    table: type[Row]
    prefix: str
    name: str

    @property
    def code(self) -> str:
        return self.name.replace(" ", "_")

    @property
    def key(self) -> str:
        """The name of the output's id in a job's specification."""
        return f"{self.code}_id"

    def new_id(self) -> str:
        return new_id(self.prefix)

    def insert(self, session: Session, job: Job, **columns: Any) -> Row:
        """Insert the row that this new job will complete."""
        return repository.insert_output(
            session, self.table, id=job.spec[self.key], owner=job.owner, job_id=job.id, **columns
        )

    def find(self, session: Session, owner: str, id_: str, *, lock: bool = False) -> Row:
        """With `lock`, locked until the transaction ends. Raises NotFound."""
        found = None
        if is_id(id_, self.prefix):
            found = self._find_row(session, owner, id_, lock=lock)
        if found is None:
            raise NotFound(f"there is no {self.name} {id_[:100]!r}")
        return found

    def list_page(
        self,
        session: Session,
        owner: str,
        *,
        model_id: str | None,
        dataset_id: str | None,
        only: RowFilter = ALL_ROWS,
        limit: int,
        after: str | None,
    ) -> Page[Row]:
        """Newest first."""
        check_id("model_id", model_id, "mdl")
        check_id("dataset_id", dataset_id, "ds")
        return repository.list_outputs(
            session,
            self.table,
            owner,
            model_id=model_id,
            dataset_id=dataset_id,
            only=only,
            limit=limit,
            after=after,
        )

    def delete(self, session: Session, owner: str, id_: str) -> None:
        """Raises Conflict while the job is unfinished. The sweeper removes the blobs."""
        holds.lock(session, owner)
        holds.check(session, owner)
        found = self.find(session, owner, id_, lock=True)
        if status_of(found) == PROCESSING:
            raise Conflict(
                f"{self.name} {id_} has the unfinished job {found.job_id}: wait for it to end, or cancel it",
                code=f"{self.code}_in_use",
            )
        repository.delete_output(session, self.table, owner, id_)

    def find_to_make(self, session: Session, claim: Claim) -> Row:
        """Return the row to complete. Raises Conflict if it was deleted or is another job's."""
        id_ = claim.spec[self.key]
        found = self._find_row(session, claim.owner, id_)
        if found is None:
            raise self.deleted(id_)
        if found.job_id != claim.job_id:
            raise self.lost(claim)
        return found

    def write(self, session: Session, claim: Claim, columns: Mapping[str, Any]) -> None:
        """Write the result. Raises Conflict if the row was deleted or is another job's."""
        if not self._update_row(session, claim, columns):
            self.find_to_make(session, claim)  # says which of the two
            raise self.lost(claim)

    def find_to_retry(self, session: Session, old: Job) -> Row:
        """Lock the row that a retry of `old` completes. Raises Conflict if it was deleted, or is another job's.

        So two jobs (retries, or uploads) never make the same output.
        """
        id_ = old.spec[self.key]
        row = self._find_row(session, old.owner, id_, lock=True)
        if row is None:
            raise self.deleted(id_)
        if row.job_id == old.id:
            return row
        raise conflict_with_newer_job(session, old.owner, self.describe(id_), row.job_id)

    def reassign(self, row: Row, job: Job) -> None:
        row.job_id = job.id

    def describe(self, id_: str) -> str:
        return f"{self.name} {id_}"

    def deleted(self, id_: str) -> Conflict:
        return Conflict(
            f"{self.name} {id_} was deleted before the job ran", code=f"{self.code}_deleted"
        )

    def lost(self, claim: Claim) -> Conflict:
        """The output no longer belongs to this job."""
        return Conflict(
            f"{self.name} {claim.spec[self.key]} belongs to a different job than {claim.job_id}",
            code=f"{self.code}_of_another_job",
        )

    def _find_row(
        self, session: Session, owner: str, id_: str, *, lock: bool = False
    ) -> Row | None:
        return repository.find_output(session, self.table, owner, id_, lock=lock)

    def _update_row(self, session: Session, claim: Claim, columns: Mapping[str, Any]) -> bool:
        id_ = claim.spec[self.key]
        return repository.write_output(
            session, self.table, claim.owner, id_, claim.job_id, **columns
        )


class Work(TypedDict):
    """The base of every kind's payload and result: the folder of the attempt."""

    workdir: str


@dataclass(frozen=True)
class Docs:
    """The summary and the description of a route in OpenAPI."""

    summary: str
    description: str


@dataclass(frozen=True)
class Submission:
    """The POST route that submits a job with an output.

    `check(session, owner, body)` raises an error if the request is invalid; `submit(session, settings, owner, body)`
    checks it, and creates the output's row and its job. `read_field(body)` returns the field of the request, if any,
    because of which the output contains values of a dataset's columns: then the scope `read` is also required.
    """

    body: type[Body]
    check: Callable[[Session, str, Any], object]
    submit: Callable[[Session, Settings, str, Any], Any]
    docs: Docs
    read_field: Callable[[Any], str | None] | None = None


@dataclass(frozen=True)
class Routes:
    """The routes of a kind's output under `path`: list, read, delete, and POST unless `create` is None.

    `show` makes the answer (a `shape`) from a row. `listed` are the shape of an item of a list, and what makes
    it, if that is shorter. `reads` and `writes` are the scopes that GET and DELETE need.
    """

    path: str
    tag: str
    shape: type[Resource]
    show: Callable[[Any], Resource]
    list_docs: Docs
    read_docs: Docs
    delete_docs: Docs
    listed: tuple[type[Resource], Callable[[Any], Resource]] | None = None
    create: Submission | None = None
    reads: Literal["read", "score"] = "read"
    writes: Literal["train", "score"] = "train"


def _no_hook(session: Session, job: Job) -> None:
    """Do nothing: the default of `before_retry` and `after_retry`."""


def no_end_hook(session: Session, job: Job, error: Json | None) -> None:
    """Do nothing: the default of `on_end`."""


def _never(spec: Mapping[str, Any]) -> bool:
    return False


@dataclass(frozen=True)
class JobKind(Generic[Payload, Result, Published]):
    """The declaration of a kind of job. The values that one step passes to the next are validated by their types.

    `prepare` reads, in one transaction, and returns a JSON payload with `workdir`, an empty folder that the caller
    removes afterwards. The payload has a `BlobKey` wherever `run` needs the path of a blob. `run` computes in the fit
    process from the payload alone, and returns a small JSON result. `publish` stores the files as blobs and computes
    the values to write, so that no transaction waits for a disk or for packing a curve. `complete` writes these values
    and the end of the job in one transaction; for a kind with an output it is `execution.complete_output`. It may be
    called again with the same values, after a deadlock or an outage of the database. `run` may instead request child
    jobs by a `FanOutResult`; after they have ended, all steps are repeated. `run` must import the libraries of its
    computation itself, because the worker, which calls the other steps, never loads them.

    `fetch`, if there is one, runs between `prepare` and `run`, in a thread of the worker, which has a network. It puts
    files into `workdir`, and returns the payload with what `run` needs of them.

    `before_retry` locks and checks what a retry reads; it raises Conflict if the work cannot be repeated. `after_retry`
    runs with the new job of a retry, in the same transaction. `on_end` runs in the transaction in which a job ends
    without a result; the problem is None for a cancelled job. `may_skip` returns True if a job that is to end early
    does not need a child job of this kind, given the child job's specification. Only the HTTP service calls `routes`,
    which may import modules that a worker does not need. `changes_model`: the name of a job is that of the model that
    it creates or changes. `changes_all_models`: it may change any model of the owner.
    `skips_damaged`: instead of failing, the job gets None as the path of a file that is missing or damaged.
    """

    name: str
    prepare: Callable[[Session, Settings, Claim, Path], Payload]
    run: Callable[[Payload, Callback], Result | FanOutResult]
    publish: Callable[[Publisher, Claim, Result], Published]
    complete: Callable[[Session, Claim, Result, Published], None]
    fetch: Callable[[Settings, Claim, Payload, Fetching], Payload] | None = None
    output: Output[Any] | None = None
    before_retry: Callable[[Session, Job], object] = field(default=_no_hook)
    after_retry: Callable[[Session, Job], object] = field(default=_no_hook)
    on_end: Callable[[Session, Job, Json | None], None] = field(default=no_end_hook)
    may_skip: Callable[[Mapping[str, Any]], bool] = field(default=_never)
    routes: Callable[[], Routes] | None = None
    changes_model: bool = False
    changes_all_models: bool = False
    skips_damaged: bool = False


def find_kind(name: str) -> JobKind[Any, Any, Any] | None:
    """Return None for a kind that only a later version knows."""
    entry = KINDS.get(name)
    return None if entry is None else cast(JobKind[Any, Any, Any], import_module(entry.module).KIND)


def find_output(job: Job) -> tuple[str, str] | None:
    """Return the kind and id of a job's output; None without one, or while its model does not exist."""
    if job.model_id is not None:
        return MODEL, job.model_id
    kind = find_kind(job.kind)
    if kind is None or kind.output is None or kind.output.key not in job.spec:
        return None
    return kind.output.code, job.spec[kind.output.key]


def kind_of(name: str) -> JobKind[Any, Any, Any]:
    kind = find_kind(name)
    if kind is None:
        raise Invalid(
            f"a job must be of kind {' or '.join(KINDS)}, got {name!r}", code="unsupported"
        )
    return kind
