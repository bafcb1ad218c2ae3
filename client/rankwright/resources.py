"""Resources of the service: datasets, jobs, models, evaluations, comparisons and batch scores.

Each operation is described once, as steps (`transport`), and is a method of two classes: one whose methods block, and
one whose methods are awaited. Most are operations of `api` unchanged; those written here make more than one request.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, TextIO, TypeVar, cast

from rankwright import api, types
from rankwright.errors import (
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    InvalidTable,
    JobFailed,
    ProblemError,
    RankwrightError,
    SeveralLabels,
)
from rankwright.operations import (
    NULL,
    PAGE,
    ApiRequest,
    Asynchronous,
    Blocking,
    Either,
    ask,
    bound,
    bound_items,
    bytes_of,
    iteration,
    keywords_of,
    operation,
    returning,
)
from rankwright.records import Record, html_table
from rankwright.tables import (
    ARROW,
    MEDIA_TYPES,
    SCORED_PART_BYTES,
    Body,
    Progress,
    Table,
    body_of,
    folder_bodies,
    frame_of,
    is_folder,
    score_media_type,
)
from rankwright.transport import (
    BASE_DELAY,
    RETRIES,
    BrokenConnection,
    Close,
    Compute,
    Item,
    Items,
    Pause,
    ReadChunk,
    Response,
    Steps,
    as_text,
    pause_unless_held,
    segment,
    send,
)

T = TypeVar("T")
S = TypeVar("S")
A = TypeVar("A")

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled", "timed_out"})
HOLD_SECONDS = 30
"""Seconds that one request of `wait` asks the service to hold its answer."""
POLL_SECONDS = 0.5
"""Seconds between two looks at a job whose end the service does not hold its answer for."""

PROGRESS_SECONDS = 1
"""The same, of one that shows the progress."""

JobProgress = Callable[[types.Job], object]
"""Is called with a job as it is now."""

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rankwright.types import BatchScore as _BatchScoreFields
    from rankwright.types import Comparison as _ComparisonFields
    from rankwright.types import Dataset as _DatasetFields
    from rankwright.types import Evaluation as _EvaluationFields
    from rankwright.types import Job as _JobFields
else:  # whose fields `Resource` finds in `data`
    _BatchScoreFields = _ComparisonFields = _DatasetFields = _EvaluationFields = _JobFields = object


class ApiObject:
    """Base of the clients and of every object that sends requests: it has the transport to the service. `_key` is what
    the service knows the object by.
    """

    _transport: Any
    _key: Any

    def _find_interrupted(
        self, fields: Mapping[str, str], files: Sequence[Body]
    ) -> Steps[types.Upload | None]:
        """Return an upload with these fields of which each part is one of these files; None if there is none. One that
        is closed has all of them, and its dataset is not invalid.
        """
        after = None
        while True:
            page = yield from ask(api.list_uploads(limit=PAGE, after=after))
            for upload in page.data:
                is_open = upload.status == "open"
                if upload.fields != fields or not (is_open or upload.n_parts == len(files)):
                    continue
                if not is_open:
                    made = yield from ask(api.read_dataset(cast(str, upload.dataset_id)))
                    if made.status == "invalid":
                        continue
                found = yield from ask(api.read_upload(upload.id))
                if (yield from _are_files(found.parts or (), files)):
                    return found
            if not page.has_more:
                return None
            after = cast(str, page.next)

    def _send_files(
        self, files: Sequence[Body], opening: ApiRequest[types.Upload], progress: Progress | None
    ) -> Steps[types.Dataset]:
        """Send files as the parts of one dataset, but for those that an interrupted call has sent; return it."""
        said = {name: as_text(value) for name, value in opening.query.items()}
        upload = yield from self._find_interrupted(said, files)
        if upload is None:
            upload = yield from ask(opening)
        there = {part.number for part in upload.parts or ()}
        total, done = sum(file.size or 0 for file in files), 0
        for number, file in enumerate(files, start=1):
            if number not in there:
                show = None if progress is None else partial(_add_to, progress, done, total)
                yield from ask(with_table(api.put_part(upload.id, number), file, show))
            done += file.size or 0
        return (yield from ask(api.close_upload(upload.id, len(files))))

    def _download(
        self, request: ApiRequest[bytes], to: str | os.PathLike[str] | BinaryIO | None
    ) -> Steps[bytes]:
        """Return the bytes of the answer, or write them to a file and return b""."""
        if to is None:
            return (yield from ask(request))
        request.stream = True
        response = yield from send(request)
        with _opened(to) as file:
            try:
                while chunk := (yield ReadChunk(response)):
                    file.write(chunk)
            except BrokenConnection as error:
                raise ConnectionFailed(f"the response is incomplete: {error}") from error
        yield Close(response)
        return b""

    def _ended(self, new: T, wait: bool) -> Steps[T]:
        """Return a new thing, if `wait` says so once the service has made it."""
        if wait:
            yield from _steps_of(cast(Any, type(new)).wait)(new)
        return new

    def _make(self, blocking: type[S], asynchronous: type[A], record: Any) -> Either[S, A]:
        """Return a resource of the kind of client that this object belongs to."""
        kind: Any = asynchronous if isinstance(self, Asynchronous) else blocking
        return cast("Either[S, A]", kind._of(self._transport, record))


class Resource(ApiObject):
    """Base class of what the service stores: `data` is its last known state.

    The fields of `data` are also attributes of the resource.
    """

    _record_kind: ClassVar[type[Record]]

    data: Any

    @classmethod
    def _of(cls, transport: Any, record: Any) -> Any:
        new = cls.__new__(cls)
        new._transport = transport
        new.data = record
        return new

    @classmethod
    def _of_id(cls, transport: Any, id: str) -> Any:
        return cls._of(transport, cls._record_kind.from_json({"id": id}))

    @property
    def _key(self) -> str:
        return str(self.data.id)

    if not TYPE_CHECKING:  # a type checker is to know the declared fields alone

        def __getattr__(self, name: str) -> Any:
            if name == "data" or name.startswith("_"):
                raise AttributeError(name)
            return getattr(self.data, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(set(dir(self.data)) - set(dir(Record)))})

    def __repr__(self) -> str:
        return f"<{self.data!r}>"

    def _repr_html_(self) -> str:
        return str(self.data._repr_html_())


def refuse_key(idempotency_key: str | None) -> None:
    """Raise ConfigurationError for a key with a folder."""
    if idempotency_key is not None:
        raise ConfigurationError(
            f"idempotency_key applies to one file, got {idempotency_key!r} with a folder: to resume a "
            "folder, repeat the same call"
        )


def with_table(
    request: ApiRequest[T], body: Body, progress: Progress | None = None
) -> ApiRequest[T]:
    """Return the request with a table as its body."""
    request.headers = {"Prefer": "wait=1", **request.headers, **body.headers()}
    request.body = body.chunks_with_progress(progress)
    request.repeatable = body.repeatable
    return request


def _held(job_id: str, seconds: float) -> ApiRequest[types.Job]:
    """Return the request for a job whose answer the service holds until the job has ended, at most so many seconds."""
    request = api.read_job(job_id, prefer=f"wait={seconds:.0f}")
    request.held = seconds
    return request


def _are_files(parts: Sequence[types.UploadPart], files: Sequence[Body]) -> Steps[bool]:
    """Return True if each part that was sent has the bytes of the file with its number. Hashes are computed last."""
    if any(part.number > len(files) or part.bytes != files[part.number - 1].size for part in parts):
        return False
    for part in parts:
        if part.sha256 != (yield Compute(files[part.number - 1].sha256)):
            return False
    return True


def _add_to(progress: Progress, before: int, total: int, sent: int, size: int | None) -> None:
    """Report the bytes sent of one file of several."""
    progress(before + sent, total)


def _opened(to: str | os.PathLike[str] | BinaryIO) -> AbstractContextManager[BinaryIO]:
    if isinstance(to, (str, os.PathLike)):
        return Path(to).open("wb")
    return nullcontext(to)


def _is_missing(value: Any) -> bool:
    """Return True for None, NaN of any library, and what cannot be compared with itself, as pandas.NA."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  # so is NaN of any library
    except (TypeError, ValueError):
        return not isinstance(value, (Sequence, Mapping))


def _named(thing: Any) -> str:
    """Return the id of a resource, or the id itself, for a body or a query: the service says what is wrong with it."""
    return thing if isinstance(thing, str) else str(thing.id)


def _ref(model: Any) -> str:
    """Return what names a model, for a body or a query: its reference or its id."""
    return model if isinstance(model, str) else str(model.ref)


def in_notebook() -> bool:
    """Return True in a notebook, which shows lines that are written anew, as a terminal does."""
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if find is None else find()
    return hasattr(shell, "kernel")


def progress_stream() -> TextIO:
    """Return where a line of progress goes: a notebook shows the standard error as if something were wrong."""
    return sys.stdout if in_notebook() else sys.stderr


def _job_progress(given: JobProgress | bool | None) -> JobProgress | None:
    if callable(given):
        return given
    return _show_job if given or (given is None and in_notebook()) else None


def _show_job(job: types.Job) -> None:
    """Write how far a job is, over the line that was written before."""
    words: list[str | None] = [job.state]
    if job.progress is not None:
        if job.progress.fraction is not None:
            words.append(f"{100.0 * job.progress.fraction:.0f} %")
        words += [job.progress.phase, job.progress.algorithm]
    end = "\n" if job.state in FINAL_STATES else ""
    stream = progress_stream()
    stream.write(f"\r{f'{job.id}: ' + ', '.join(filter(None, words)):<79}{end}")
    stream.flush()


# --- jobs -----------------------------------------------------------------------------------------


class _JobOperations(ApiObject):
    data: types.Job

    @operation
    def refresh(self) -> Steps[types.Job]:
        """Read the job again.

        Returns
        -------
        types.Job
            The job as it is now.
        """
        self.data = yield from ask(api.read_job(self._key))
        return self.data

    @returning
    def wait(
        self, timeout: float | None = None, *, progress: JobProgress | bool | None = None
    ) -> Steps[Either[Model, AsyncModel]]:
        """Wait until the job has ended and return the model that it made.

        The job continues if you interrupt the wait (KeyboardInterrupt, a cancelled task), and if the service restarts.

        Parameters
        ----------
        timeout : float, optional
            Maximum wait in seconds. Default: no limit.
        progress : callable (job) or bool, optional
            Called with the job about once a second. True shows a line of progress, which is the default in a notebook.

        Returns
        -------
        Model
            The trained model.

        Raises
        ------
        JobFailed
            The job ended without a model.
        TimeoutError
            The job did not end within `timeout` seconds. It continues.
        """
        yield from self._until_end(timeout, _job_progress(progress))
        if self.data.state != "succeeded":
            raise JobFailed(self.data.id, self.data.state, cast(Any, self.data.error))
        made = self.data.output
        if made is None or made.kind != "model":
            raise RankwrightError(
                f"job {self.data.id} of kind {self.data.kind} does not create a model"
            )
        model = self._make(Model, AsyncModel, None)
        yield from cast(Any, model)._load(made.id)
        return model

    def _until_end(self, timeout: float | None, show: JobProgress | None) -> Steps[None]:
        end = None if timeout is None else time.monotonic() + timeout
        while self.data.state not in FINAL_STATES:
            hold = float(HOLD_SECONDS if show is None else PROGRESS_SECONDS)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(
                        f"job {self.data.id} has not ended after {timeout} s; it continues to run"
                    )
                hold = min(hold, max(1.0, left))
            held = _held(self._key, hold)
            response = yield from send(held)
            self.data = held.read(response)
            if show is not None:
                show(self.data)
            if self.data.state not in FINAL_STATES:
                yield from pause_unless_held(
                    response, None if end is None else end - time.monotonic()
                )

    events = bound(api.read_job_events)

    @iteration
    def follow(self, after: int = 0) -> Items[types.Event]:
        """Iterate over the events of the job as they happen, until it has ended.

        If the connection breaks, the client continues after the last event.

        Parameters
        ----------
        after : int
            Number of the event to start after. Default: from the first.

        Yields
        ------
        types.Event
            The next event.

        Raises
        ------
        ConnectionFailed
            Several attempts to reconnect brought no event.
        """
        failures = 0
        while True:
            request = api.read_job_events(self._key, last_event_id=str(after))
            request.headers["Accept"] = "text/event-stream"
            request.stream = True
            response = yield from send(request)
            parser = EventParser()
            try:
                while chunk := (yield ReadChunk(response)):
                    for data in parser.feed(chunk):
                        event = types.Event.from_json(data)
                        after, failures = event.seq, 0
                        yield Item(event)
            except BrokenConnection as error:
                failures += 1
                if failures > RETRIES:
                    raise ConnectionFailed(str(error)) from error
                yield Pause(BASE_DELAY * 2.0**failures)
            yield Close(response)
            self.data = yield from ask(api.read_job(self._key))
            if self.data.state in FINAL_STATES and self.data.last_event <= after:
                return

    @operation
    @keywords_of(api.cancel_job)
    def cancel(self, **fields: Unpack[api.CancelJob]) -> Steps[types.Job]:
        """Cancel the job.

        Returns
        -------
        types.Job
            The job as it is now.

        Raises
        ------
        Conflict
            The job has already ended in another way, or there is nothing to keep.
        """
        request = api.cancel_job(self._key, **fields)
        try:
            self.data = yield from ask(request)
        except Conflict:
            if not (fields.get("keep") and request.lost_answer):
                raise
            self.data = yield from ask(api.read_job(self._key))
            if self.data.keep_requested_at is None:
                raise
        return self.data

    @returning
    @keywords_of(api.retry_job)
    def retry(self, **fields: Unpack[api.RetryJob]) -> Steps[Either[Job, AsyncJob]]:
        """Submit the same work again.

        Returns
        -------
        Job
            The new job.
        """
        return self._make(Job, AsyncJob, (yield from ask(api.retry_job(self._key, **fields))))


class Job(_JobOperations, Resource, Blocking, _JobFields):
    """A job: work that the service does in the background.

    The fields of `rankwright.types.Job`, such as `state`, `name` and `progress`, are attributes as of the last request.

    Attributes
    ----------
    data : types.Job
        All fields, as of the last request.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> job = next(client.jobs.list(kind="train"))
    >>> job.wait(timeout=60).name
    'churn'
    >>> [event.type for event in job.follow()][-1]
    'state'
    """

    _record_kind = types.Job


class AsyncJob(_JobOperations, Resource, Asynchronous, _JobFields):
    """Like `Job`; await its calls."""

    _record_kind = types.Job


class EventParser:
    """Reads server-sent events from chunks of bytes: the JSON of each whole event."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """Return the events that this chunk completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = []
        for raw in lines:
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            if line.startswith("data:"):
                self._data.append(line[5:].lstrip(" "))
            elif not line and self._data:
                found.append(json.loads("\n".join(self._data)))
                self._data = []
        return found


# --- datasets -------------------------------------------------------------------------------------


class _DatasetOperations(ApiObject):
    data: types.Dataset

    @operation
    def refresh(self) -> Steps[types.Dataset]:
        """Read the dataset again.

        Returns
        -------
        types.Dataset
            The dataset as it is now.
        """
        self.data = yield from ask(api.read_dataset(self._key))
        return self.data

    @operation
    def wait(self, timeout: float | None = None) -> Steps[types.Dataset]:
        """Wait until the service has read the table and its pairs.

        Parameters
        ----------
        timeout : float, optional
            Maximum wait in seconds. Default: no limit.

        Returns
        -------
        types.Dataset
            The dataset as it is now.

        Raises
        ------
        InvalidTable
            The table cannot be used. Each error has line and column.
        TimeoutError
            The table was not read within `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.data.status == "processing" or (
            self.data.pairs is not None and self.data.pairs.status == "processing"
        ):
            hold = float(HOLD_SECONDS)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"dataset {self.data.id} was not ready after {timeout} s")
                hold = min(hold, max(1.0, left))
            reads = self.data if self.data.status == "processing" else self.data.pairs
            if reads is not None and reads.job_id is not None:
                response = yield from send(_held(reads.job_id, hold))
                yield from pause_unless_held(response, hold)
            else:
                yield Pause(POLL_SECONDS)
            self.data = yield from ask(api.read_dataset(self._key))
        if self.data.status == "invalid":
            raise InvalidTable(self.data.id, cast(Any, self.data.to_json().get("errors") or []))
        pairs = self.data.pairs
        if pairs is not None and pairs.status == "invalid":
            raise InvalidTable(self.data.id, cast(Any, pairs.to_json().get("errors") or []))
        return self.data

    preview = bound(api.preview_dataset)
    profile = bound(api.profile_dataset)
    versions = bound_items(api.list_versions)
    version_page = bound(api.list_versions)
    delete = bound(api.delete_dataset)

    @operation
    def profile_page(self, format: str = "html") -> Steps[bytes]:
        """Return the profile of the columns as a page.

        Parameters
        ----------
        format : {"html", "markdown"}
            Format of the page.

        Returns
        -------
        bytes
            The page.
        """
        request = api.profile_dataset(self._key)
        request.query = {"format": format}
        return (yield from send(request)).content

    @returning
    @keywords_of(api.create_version)
    def add_version(
        self,
        table: Table,
        *,
        media_type: str | None = None,
        progress: Progress | None = None,
        wait: bool = True,
        **fields: Unpack[api.CreateVersion],
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Make a new version of the dataset from more rows, or from other rows.

        Parameters
        ----------
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            The rows. The files of a folder are sent as by `Client.upload`.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".
        progress : callable (sent, size), optional
            Called with the bytes sent so far and the total.
        wait : bool
            False returns at once.

        Returns
        -------
        Dataset
            The new version.

        Raises
        ------
        InvalidTable
            The table cannot be used. Each error has line and column.
        """
        if is_folder(table):
            refuse_key(fields.get("idempotency_key"))
            opening = api.open_upload(
                version_of=self._key, **cast(Any, {"mode": "append", **fields})
            )
            made = yield from self._send_files(folder_bodies(table, media_type), opening, progress)
        else:
            body = body_of(table, media_type)
            request = with_table(api.create_version(self._key, **fields), body, progress)
            made = yield from ask(request)
        return (yield from self._ended(self._make(Dataset, AsyncDataset, made), wait))

    @returning
    @keywords_of(api.read_table_again)
    def read_again(
        self,
        *,
        reset: Sequence[str] = (),
        wait: bool = True,
        **fields: Unpack[api.ReadTableAgain],
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Read the uploaded bytes again with other options, as a new dataset.

        The current dataset may be invalid, and does not change. Options that you do not set keep their values.

        Parameters
        ----------
        reset : sequence of str
            Names of options that get their defaults.
        wait : bool
            False returns at once.

        Returns
        -------
        Dataset
            The new dataset.

        Raises
        ------
        InvalidTable
            The new dataset cannot be used either.
        """
        said = {name: value for name, value in fields.items() if value is not None}
        changed = cast(Any, dict.fromkeys(reset, NULL) | said)
        made = yield from ask(api.read_table_again(self._key, **changed))
        return (yield from self._ended(self._make(Dataset, AsyncDataset, made), wait))

    @operation
    @keywords_of(api.put_pairs)
    def put_pairs(
        self,
        pairs: Table,
        *,
        media_type: str | None = None,
        progress: Progress | None = None,
        wait: bool = True,
        **fields: Unpack[api.PutPairs],
    ) -> Steps[types.Dataset]:
        """Set the pairs of a dataset of kind `preferences`: which item is better than which.

        Pairs that were set before are replaced.

        Parameters
        ----------
        pairs : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            A table of pairs.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".
        progress : callable (sent, size), optional
            Called with the bytes sent so far and the total.
        wait : bool
            False returns at once.

        Returns
        -------
        types.Dataset
            The dataset as it is now.

        Raises
        ------
        InvalidTable
            The pairs cannot be used. Each error has line and column.
        """
        body = body_of(pairs, media_type)
        request = with_table(api.put_pairs(self._key, **fields), body, progress)
        try:
            self.data = yield from ask(request)
        except Conflict:
            if not request.lost_answer:
                raise
            # The job that reads these very pairs would refuse them, too.
            found = yield from ask(api.read_dataset(self._key))
            if found.pairs is None or found.pairs.sha256 != (yield Compute(body.sha256)):
                raise
            self.data = found
        if wait:
            yield from _steps_of(_DatasetOperations.wait)(self)
        return self.data


class Dataset(_DatasetOperations, Resource, Blocking, _DatasetFields):
    """A table that was uploaded.

    The fields of `rankwright.types.Dataset`, such as `id`, `rows` and `status`, are attributes as of the last request.

    Attributes
    ----------
    data : types.Dataset
        All fields, as of the last request.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> rows = [{"age": age, "plan": "basic", "churned": int(age % 3 == 0)} for age in range(20, 80)]
    >>> data = client.upload(rows, name="later", label="churned")
    >>> data.name, data.rows, data.status
    ('later', 60, 'ready')
    >>> data.preview(limit=1).columns
    ['age', 'plan', 'churned']
    >>> data.add_version(rows[:30], mode="replace").rows
    30
    """

    _record_kind = types.Dataset


class AsyncDataset(_DatasetOperations, Resource, Asynchronous, _DatasetFields):
    """Like `Dataset`; await its calls."""

    _record_kind = types.Dataset


def _steps_of(described: Any) -> Callable[..., Steps[Any]]:
    """Return the steps of an operation, to be taken within another."""
    return cast("Callable[..., Steps[Any]]", described.describe)


# --- models ---------------------------------------------------------------------------------------

Metrics = types.Metrics | types.PairMetrics | types.MultilabelMetrics | types.GradedMetrics
SCORE_FORMATS = {
    "csv": MEDIA_TYPES[".csv"],
    "parquet": MEDIA_TYPES[".parquet"],
    "arrow": ARROW,
}
_LONG_SECONDS = 900.0
"""How long the service may be silent while it scores a large file, in seconds."""
_SCORE_TRIES = 3


class _ModelOperations(ApiObject):
    ref: str
    _data: types.Model | None
    _metrics: Metrics | None

    @property
    def _key(self) -> str:
        return self.ref

    def _load(self, ref: str) -> Steps[None]:
        """Read what the service says of the model, and its figures on the rows that were held out, if it has such."""
        self.ref = ref
        self._data = yield from ask(api.read_model(ref, include=["metrics"]))
        included = self._data.included
        self._metrics = None if included is None else included.metrics

    @operation
    def refresh(self) -> Steps[types.Model]:
        """Read the model and its metrics again.

        Returns
        -------
        types.Model
            The model as it is now.
        """
        yield from self._load(self.ref)
        return cast(types.Model, self._data)

    read = bound(api.read_model)
    read_metrics = bound(api.read_metrics)

    @operation
    @keywords_of(api.score_rows)
    def score(
        self, table: Table, *, media_type: str | None = None, **fields: Unpack[api.ScoreRows]
    ) -> Steps[Any]:
        """Score the rows of a table.

        Large tables are sent in several requests that one version of the model scores. A file is sent in one request.

        Parameters
        ----------
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            Rows with the columns of the model. Each dict is one row.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".

        Returns
        -------
        table or list of dict
            One row per row of `table`, in the same order: a table of the same library (pandas, polars, pyarrow), or a
            list of dict. See Notes for the columns.

        Raises
        ------
        Invalid
            A row cannot be scored. Each error has line and column.
        TooLarge
            A file exceeds the limit of the service (1 GiB by default). Use `Client.score_batch`.

        Notes
        -----
        The columns are `score`, `fpr` and `tpr` (the rates on the validation rows with this score as the threshold),
        and `probability`. `probability=False` omits the last. `interval=True` adds `probability_low` and
        `probability_high`.

        `reasons=3` adds the three parts of each score that differ most from a `reference`: "negative", the average
        negative row; "average", the average training row; or "cutoff", a `threshold` or that of the alias. `direction`
        is "raises" (why is the score high?), "lowers" or "both". The columns are `reason_1_code`, `reason_1_text`,
        `reason_1_contribution`, `reason_1_error` and so on, `reasons_rest` and `reference_score`.
        """
        body = body_of(table, media_type)
        for _ in range(_SCORE_TRIES):
            responses: list[Response] = yield from self._score_parts(body, fields)
            if len({response.headers.get("x-model-id") for response in responses}) == 1:
                break
        else:
            raise RankwrightError(
                f"{self.ref} was moved to another model {_SCORE_TRIES} times while a table was being scored"
            )
        answers = [(each.content, each.headers.get("content-type", "")) for each in responses]
        return frame_of(answers, body, fields.get("reasons") or 0)

    def _score_parts(self, body: Body, fields: api.ScoreRows) -> Steps[list[Response]]:
        """Score the parts of a table under the name that was asked for, so that an alias answers what it promises."""
        responses: list[Response] = []
        for part in body.parts() if body.parts is not None else [None]:
            sent = body if part is None else body.of_part(part)
            try:
                request = api.score_rows(self.ref, **fields)
                request.headers["Accept"] = score_media_type(body.kind)
                response = yield from send(_with_rows(request, sent))
            except ProblemError as error:
                if part is None or part.first == 0:
                    raise
                raise error.of_lines_after(part.first) from error
            responses.append(response)
        return responses

    @operation
    @keywords_of(api.score_rows)
    def score_to_bytes(
        self,
        table: Table,
        format: str = "csv",
        *,
        media_type: str | None = None,
        **fields: Unpack[api.ScoreRows],
    ) -> Steps[bytes]:
        """Score the rows of a table in one request and return the scores as a file.

        Parameters
        ----------
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            Rows with the columns of the model.
        format : {"csv", "parquet", "arrow"}
            Format of the file.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".

        Returns
        -------
        bytes
            The file.

        Raises
        ------
        ConfigurationError
            The format is unknown.
        """
        if format not in SCORE_FORMATS:
            known = ", ".join(SCORE_FORMATS)
            raise ConfigurationError(f"the format of scores must be one of {known}, got {format!r}")
        request = api.score_rows(self.ref, **fields)
        request.headers["Accept"] = SCORE_FORMATS[format]
        return (yield from send(_with_rows(request, body_of(table, media_type)))).content

    @operation
    @keywords_of(api.score_row)
    def score_row(
        self, features: Mapping[str, Any] | None = None, /, **more: Any
    ) -> Steps[types.Score]:
        """Score one row that you pass as arguments.

        Parameters
        ----------
        features : mapping, optional
            Features by name. None and NaN are missing values.
        **more
            More features, and the options of `score`, such as `interval` and `reasons`. If the model has a feature of
            that name, the service reads it as the feature. `id` names the argument that is the row's id, which comes
            back with the score. `ignore` names arguments that are not features, separated by commas; "*" ignores all of
            them.

        Returns
        -------
        types.Score
            The score with its rates and probability.

        Raises
        ------
        ConfigurationError
            A name is a key of `features` and also an option, or `features` is not a mapping.
        SeveralLabels
            The model has several labels. Use `score_row_by_label`.
        """
        found = yield from self._score_row(features, more)
        if isinstance(found, types.LabelScore):
            raise SeveralLabels(
                f"{self.ref} has one score for each of several labels: use score_row_by_label"
            )
        return found

    @operation
    @keywords_of(api.score_row)
    def score_row_by_label(
        self, features: Mapping[str, Any] | None = None, /, **more: Any
    ) -> Steps[types.LabelScore]:
        """Score one row with a model that has several labels.

        Parameters
        ----------
        features : mapping, optional
            As for `score_row`.
        **more
            As for `score_row`.

        Returns
        -------
        types.LabelScore
            One score per label.
        """
        return cast(types.LabelScore, (yield from self._score_row(features, more)))

    def _score_row(
        self, features: Mapping[str, Any] | None, more: Mapping[str, Any]
    ) -> Steps[types.Score | types.LabelScore]:
        if features is not None and not isinstance(features, Mapping):
            raise ConfigurationError(
                f"features must be a mapping of names to values, got {type(features).__name__}; convert a "
                "Series with to_dict()"
            )
        options = {
            name: value
            for name, value in more.items()
            if name in api.ScoreRow.__annotations__ and value is not None
        }
        row = {**(features or {}), **{n: v for n, v in more.items() if n not in options}}
        for name in options.keys() & row.keys():
            raise ConfigurationError(
                f"{name!r} is both a feature of the row and an option: use score_rows"
            )
        request = api.score_row(self.ref, **cast(Any, options))
        written = {name: "" if _is_missing(value) else value for name, value in row.items()}
        request.query = {**written, **request.query}
        return (yield from ask(request))

    @operation
    @keywords_of(api.score_rows)
    def score_rows(
        self, rows: Sequence[Mapping[str, Any]], **fields: Unpack[api.ScoreRows]
    ) -> Steps[types.Scores | types.LabelScores]:
        """Score rows that are sent as JSON objects.

        Parameters
        ----------
        rows : sequence of mapping
            Each mapping is one row: features by name, and optionally the field that `id` names.

        Returns
        -------
        types.Scores or types.LabelScores
            The scores, in the order of the rows.
        """
        request = api.score_rows(self.ref, **fields)
        request.set_json({"rows": list(rows)})
        return (yield from ask(request))

    read_calibration = bound(api.read_calibration)

    @returning
    @keywords_of(api.put_calibration)
    def recalibrate(
        self, dataset: Any, *, wait: bool = True, **fields: Unpack[api.PutCalibration]
    ) -> Steps[Either[Job, AsyncJob]]:
        """Fit the calibration of the probabilities again on another dataset.

        Parameters
        ----------
        dataset : Dataset or str
            Rows that the model was not trained on.
        wait : bool
            False returns at once.

        Returns
        -------
        Job
            The job that fits the calibration.
        """
        job = yield from ask(api.put_calibration(self.ref, _named(dataset), **fields))
        return (yield from self._ended(self._make(Job, AsyncJob, job), wait))

    @operation
    def restore_calibration(
        self,
        version: int | None = None,
        *,
        reason: str | None = None,
        revision: int | str | None = None,
    ) -> Steps[types.Calibration]:
        """Serve an earlier calibration again: undo a recalibration.

        Parameters
        ----------
        version : int, optional
            The version to restore. Default: the one before the current.
        reason : str, optional
            Reason for the change. Required if a protected alias points at the model, except to undo the last change.
        revision : int or str, optional
            Restore only if this is the current version. Default: the version that is current now.

        Returns
        -------
        types.Calibration
            The calibration as it is now.

        Raises
        ------
        NotFound
            There is no such version.
        Conflict
            The calibration was changed in the meantime.
        """
        if version is None or revision is None:
            now = (yield from ask(api.read_calibration(self.ref))).version
            version = now - 1 if version is None else version
            revision = now if revision is None else revision
        request = api.restore_calibration(
            self.ref, version, reason=reason, if_match=f'"{revision}"'
        )
        return (yield from ask(request))

    comments = bound_items(api.list_comments)
    comment_page = bound(api.list_comments)
    add_comment = bound(api.create_comment)
    delete_comment = bound(api.delete_comment)

    @operation
    @keywords_of(api.rank_rows)
    def rank(
        self, table: Table, *, media_type: str | None = None, **fields: Unpack[api.RankRows]
    ) -> Steps[types.Ranking]:
        """Return the rows of a table with the highest scores, best first.

        Parameters
        ----------
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            Rows with the columns of the model.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".

        Returns
        -------
        types.Ranking
            The best rows with their scores.
        """
        request = api.rank_rows(self.ref, **fields)
        return (yield from ask(_with_rows(request, body_of(table, media_type))))

    @operation
    @keywords_of(api.explain_rows)
    def explain(
        self, rows: Sequence[Mapping[str, Any]], **fields: Unpack[api.ExplainRows]
    ) -> Steps[types.Explanations]:
        """Return the contribution of each feature to the score of each row.

        Parameters
        ----------
        rows : sequence of mapping
            Each mapping is one row: features by name.

        Returns
        -------
        types.Explanations
            One explanation per row.
        """
        request = api.explain_rows(self.ref, **fields)
        request.set_json({"rows": list(rows)})
        return (yield from ask(request))

    @operation
    @keywords_of(api.score_points)
    def points(
        self, rows: Sequence[Mapping[str, Any]], **fields: Unpack[api.ScorePoints]
    ) -> Steps[types.PointsAnswer]:
        """Return the points of rows by a scorecard, in total and by feature.

        Parameters
        ----------
        rows : sequence of mapping
            Each mapping is one row: features by name.

        Returns
        -------
        types.PointsAnswer
            The points of each row.
        """
        request = api.score_points(self.ref, **fields)
        request.set_json({"rows": list(rows)})
        return (yield from ask(request))

    @operation
    @keywords_of(api.write_letters)
    def letters(
        self, rows: Sequence[Mapping[str, Any]], **fields: Unpack[api.WriteLetters]
    ) -> Steps[types.LettersAnswer]:
        """Return the adverse-action letters of rows, with the paragraphs of the reason codes.

        Parameters
        ----------
        rows : sequence of mapping
            Each mapping is one row: features by name.

        Returns
        -------
        types.LettersAnswer
            One letter per row.
        """
        request = api.write_letters(self.ref, **fields)
        request.set_json({"rows": list(rows)})
        return (yield from ask(request))

    @operation
    @keywords_of(api.preview_letters)
    def preview_letters(
        self,
        rows: Sequence[Mapping[str, Any]],
        entries: Sequence[Mapping[str, Any]],
        **fields: Unpack[api.PreviewLetters],
    ) -> Steps[types.LettersAnswer]:
        """Return the letters that rows would get with other reason codes, which are not stored.

        Parameters
        ----------
        rows : sequence of mapping
            Each mapping is one row: features by name.
        entries : sequence of mapping
            The reason codes, as for `client.models.set_reason_codes`.

        Returns
        -------
        types.LettersAnswer
            One letter per row.
        """
        request = api.preview_letters(self.ref, list(entries), list(rows), **fields)
        return (yield from ask(request))

    roc = bound(api.read_roc)
    operating_point = bound(api.read_operating_point)
    operating_points = bound(api.read_operating_points)
    groups_at = bound(api.read_groups)
    metric_estimates = bound(api.read_metric_estimates)
    gains = bound(api.read_gains)
    curve = bound(api.read_list_curve)
    importance = bound(api.read_importance)
    partial_dependence = bound(api.read_partial_dependence)
    variable_dependence = bound(api.read_variable_dependence)
    margins = bound(api.read_margins)
    bounds = bound(api.read_bounds)
    baselines = bound(api.read_baselines)
    checks = bound(api.read_checks)
    scorecard = bound(api.read_scorecard)
    bins = bound(api.read_bins)
    points_cutoff = bound(api.read_points_cutoff)
    rounding = bound(api.read_rounding)
    leaderboard = bound(api.read_leaderboard)
    structure = bound(api.read_structure)
    out_of_fold = bound(api.read_out_of_fold)
    report = bound(api.read_report)
    delete = bound(api.delete_model)

    @operation
    def download(
        self, /, what: str, to: str | os.PathLike[str] | BinaryIO | None = None, **query: Any
    ) -> Steps[bytes]:
        """Download a part of the model as a file.

        Parameters
        ----------
        what : {"artifact", "plot", "report", "roc", "structure", "out-of-fold"}
            The part.
        to : path or binary file, optional
            Where to write it. Default: return the bytes.
        **query
            Options of the part. `format` is "svg" or "png" for a plot, "html" or "markdown" for a report, "csv" for the
            ROC curve and for out-of-fold scores, "svg" or "text" for a structure.

        Returns
        -------
        bytes
            The file; empty if it was written to `to`. A notebook shows a plot as a picture.
        """
        path = f"/v1/models/{segment(self.ref)}/{what}"
        read = _picture_of if what == "plot" else bytes_of
        return (yield from self._download(ApiRequest("GET", path, query, read=read), to))

    @operation
    def export(
        self, /, format: str, to: str | os.PathLike[str] | BinaryIO | None = None
    ) -> Steps[bytes]:
        """Return the model as a file that scores without the service.

        Parameters
        ----------
        format : {"onnx", "python", "sql"}
            A model for onnxruntime, a Python file without dependencies, or a query for SQLite, PostgreSQL and DuckDB.
        to : path or binary file, optional
            Where to write it. Default: return the bytes.

        Returns
        -------
        bytes
            The file; empty if it was written to `to`.
        """
        request = api.read_artifact(self.ref, format=format)
        return (yield from self._download(request, to))


class _Picture(bytes):
    """The bytes of an SVG or a PNG, which a notebook shows."""

    def __repr__(self) -> str:
        return f"<{'PNG' if self._is_png else 'SVG'} picture>"

    @property
    def _is_png(self) -> bool:
        return self.startswith(b"\x89PNG")

    def _repr_png_(self) -> bytes | None:
        return bytes(self) if self._is_png else None

    def _repr_svg_(self) -> str | None:
        return None if self._is_png else self.decode()


def _picture_of(response: Response) -> bytes:
    return _Picture(response.content)


def _with_rows(request: ApiRequest[T], body: Body) -> ApiRequest[T]:
    request.headers |= body.headers()
    request.body, request.repeatable = body.chunks, body.repeatable
    if body.size is None or body.size > SCORED_PART_BYTES:
        request.timeout = _LONG_SECONDS
    return request


class _KnownModel:
    """What is known of a model without asking."""

    ref: str
    _data: types.Model | None
    _metrics: Metrics | None

    def _model(self) -> types.Model:
        raise NotImplementedError

    @property
    def data(self) -> types.Model:
        """All fields of the model, as of the last request."""
        return self._model()

    @property
    def id(self) -> str:
        """Id of the model."""
        return self.data.id

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.data.name

    @property
    def version(self) -> int:
        """Version of the model within its name, from 1."""
        return self.data.version

    @property
    def metrics(self) -> Metrics | None:
        """Metrics of the model on held-out rows; None if no rows were held out."""
        self._model()
        return self._metrics

    @property
    def auc(self) -> types.Interval:
        """The AUC on held-out rows with its confidence interval."""
        metrics = self.metrics
        found = getattr(metrics, "auc", None) or getattr(metrics, "pair_order", None)
        if found is None:
            raise AttributeError(f"{self.ref} has no single AUC: see `metrics`")
        return cast(types.Interval, found)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ref}>"

    def _repr_html_(self) -> str:
        """Return a table of what is known; nothing is asked for it."""
        found: dict[str, Any] = {"ref": self.ref}
        if (data := self._data) is not None:
            found |= {
                "name": data.name,
                "version": data.version,
                "algorithm": data.algorithm["name"],
                "dataset": None if data.dataset is None else data.dataset.name,
                "created_at": data.created_at,
            }
        area = getattr(self._metrics, "auc", None) or getattr(self._metrics, "pair_order", None)
        if area is not None:
            found["auc"] = f"{area.value:.4f} [{area.low:.4f}, {area.high:.4f}]"
        return html_table("Model", found)


class Model(_ModelOperations, _KnownModel, Blocking):
    """A trained model: score rows with it, and read its metrics, curves and explanations.

    A model from `client.models[...]` reads its fields from the service when you first use them.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> model = client.models["churn"]
    >>> model.name, model.version
    ('churn', 1)
    >>> model.score_row(age=71, plan="basic").score > 0
    True
    >>> model.operating_point(fpr=0.1).fpr.value <= 0.1
    True
    """

    @classmethod
    def _of(cls, transport: Any, data: Any) -> Model:
        new = cls.__new__(cls)
        new._transport, new._data, new._metrics, new.ref = transport, None, None, data
        return new

    def _model(self) -> types.Model:
        if self._data is None:
            self.refresh()
        return cast(types.Model, self._data)


class AsyncModel(_ModelOperations, _KnownModel, Asynchronous):
    """Like `Model`; await its calls.

    A model from `client.models[...]` has its fields after `await model.refresh()`.
    """

    @classmethod
    def _of(cls, transport: Any, data: Any) -> AsyncModel:
        new = cls.__new__(cls)
        new._transport, new._data, new._metrics, new.ref = transport, None, None, data
        return new

    def _model(self) -> types.Model:
        if self._data is None:
            raise AttributeError(
                f"{self.ref} has not been loaded yet: call `await model.refresh()`"
            )
        return self._data


# --- evaluations, comparisons, batch scores -------------------------------------------------------


class _EndedOperations(ApiObject):
    """Base of what a job makes: its status is `processing`, `ready` or `failed`."""

    data: Any

    def _read(self) -> ApiRequest[Any]:
        raise NotImplementedError

    @operation
    def refresh(self) -> Steps[None]:
        """Read it again; its fields are then up to date."""
        self.data = yield from ask(self._read())

    @operation
    def wait(self, timeout: float | None = None) -> Steps[None]:
        """Wait until its job has ended.

        Parameters
        ----------
        timeout : float, optional
            Maximum wait in seconds. Default: no limit.

        Raises
        ------
        JobFailed
            The job ended without a result.
        TimeoutError
            The job did not end within `timeout` seconds. It continues.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.data.status == "processing":
            hold = float(HOLD_SECONDS)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{self._key} is not ready after {timeout} s")
                hold = min(hold, max(1.0, left))
            try:
                response = yield from send(_held(self.data.job_id, hold))
                yield from pause_unless_held(response, hold)
            except Forbidden:  # a key that may score need not read jobs
                yield Pause(POLL_SECONDS)
            yield from _steps_of(_EndedOperations.refresh)(self)
        if self.data.status != "ready":
            raise JobFailed(self.data.job_id, self.data.status, self.data.error)


class _EvaluationOperations(_EndedOperations):
    _record_kind: ClassVar[type[Record]] = types.Evaluation
    data: types.Evaluation

    def _read(self) -> ApiRequest[types.Evaluation]:
        return api.read_evaluation(self._key)

    delete = bound(api.delete_evaluation)

    roc = bound(api.read_evaluation_roc)
    operating_point = bound(api.read_evaluation_operating_point)
    groups_at = bound(api.read_evaluation_groups)
    metric_estimates = bound(api.read_evaluation_metric_estimates)
    gains = bound(api.read_evaluation_gains)
    curve = bound(api.read_evaluation_list_curve)
    acknowledge = bound(api.put_acknowledgement)
    withdraw_acknowledgement = bound(api.delete_acknowledgement)


class Evaluation(_EvaluationOperations, Resource, Blocking, _EvaluationFields):
    """An evaluation of a model on a dataset: metrics, curves and operating points.

    The fields of `rankwright.types.Evaluation`, such as `metrics` and `status`, are attributes as of the last request.

    Attributes
    ----------
    data : types.Evaluation
        All fields, as of the last request.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> evaluation = client.evaluate("churn", next(client.datasets.list(name="later")).id)
    >>> evaluation.status, 0 <= evaluation.metrics.auc.value <= 1
    ('ready', True)
    >>> evaluation.roc(max_points=10).points[0].fpr
    0.0
    """


class AsyncEvaluation(_EvaluationOperations, Resource, Asynchronous, _EvaluationFields):
    """Like `Evaluation`; await its calls."""


class _ComparisonOperations(_EndedOperations):
    _record_kind: ClassVar[type[Record]] = types.Comparison
    data: types.Comparison

    def _read(self) -> ApiRequest[types.Comparison]:
        return api.read_comparison(self._key)

    delete = bound(api.delete_comparison)


class Comparison(_ComparisonOperations, Resource, Blocking, _ComparisonFields):
    """A comparison of models on a dataset: differences with confidence intervals and p-values.

    The fields of `rankwright.types.Comparison`, such as `result` and `status`, are attributes as of the last request.

    Attributes
    ----------
    data : types.Comparison
        All fields, as of the last request.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> data = client.upload("churn.csv", label="churned")
    >>> other = client.train(data, "logistic", name="simple").wait()
    >>> comparison = client.compare(["churn", other], next(client.datasets.list(name="later")).id)
    >>> len(comparison.result.windows[0].differences)
    1
    """


class AsyncComparison(_ComparisonOperations, Resource, Asynchronous, _ComparisonFields):
    """Like `Comparison`; await its calls."""


class _BatchScoreOperations(_EndedOperations):
    _record_kind: ClassVar[type[Record]] = types.BatchScore
    data: types.BatchScore

    def _read(self) -> ApiRequest[types.BatchScore]:
        return api.read_batch_score(self._key)

    delete = bound(api.delete_batch_score)

    summary = bound(api.read_batch_score_summary)
    drift = bound(api.read_batch_score_drift)

    @operation
    @keywords_of(api.read_batch_score_result)
    def result(
        self,
        to: str | os.PathLike[str] | BinaryIO | None = None,
        **fields: Unpack[api.ReadBatchScoreResult],
    ) -> Steps[bytes]:
        """Return the scores as a file.

        Parameters
        ----------
        to : path or binary file, optional
            Where to write it. Default: return the bytes.

        Returns
        -------
        bytes
            The file; empty if it was written to `to`.
        """
        return (yield from self._download(api.read_batch_score_result(self._key, **fields), to))


class BatchScore(_BatchScoreOperations, Resource, Blocking, _BatchScoreFields):
    """A table that a job scores; its `result()` is a file.

    The fields of `rankwright.types.BatchScore`, such as `rows` and `status`, are attributes as of the last request.

    Attributes
    ----------
    data : types.BatchScore
        All fields, as of the last request.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> batch = client.score_batch("churn", [{"age": 71, "plan": "basic"}, {"age": 20, "plan": "gold"}])
    >>> batch.status
    'ready'
    >>> batch.result(format="csv").decode().splitlines()[0]
    'row_number,score,fpr,tpr,probability'
    """


class AsyncBatchScore(_BatchScoreOperations, Resource, Asynchronous, _BatchScoreFields):
    """Like `BatchScore`; await its calls."""
