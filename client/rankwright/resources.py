"""What can be asked of datasets, jobs, models, evaluations, comparisons, batch scores and keys.

Each operation is described once, as steps (`transport`), and stands in two classes: one whose methods block, and one
whose methods are awaited.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Generic, TypeVar, cast

from rankwright import types
from rankwright.errors import (
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    InvalidTable,
    JobFailed,
    NotFound,
    ProblemError,
    RankwrightError,
    SeveralLabels,
)
from rankwright.operations import (
    Asynchronous,
    Blocking,
    Either,
    iteration,
    operation,
    returning,
)
from rankwright.records import Record, html_table, read_one_of
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
    Request,
    Response,
    Steps,
    as_text,
    pause_unless_held,
    segment,
    send,
)

R = TypeVar("R", bound=Record)
S = TypeVar("S")
A = TypeVar("A")

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled", "timed_out"})
PAGE = 200
"""Things that one page of a list holds: the most that the service allows."""
HOLD_SECONDS = 30
"""Seconds that one request of `wait` asks the service to hold its answer."""
POLL_SECONDS = 0.5
"""Seconds between two looks at a job whose end the service does not hold its answer for."""

PROGRESS_SECONDS = 1
"""The same, of one that shows the progress."""

Names = str | Sequence[str] | None
JobProgress = Callable[[types.Job], object]
"""Is called with a job as it is now."""

if TYPE_CHECKING:
    from rankwright.types import BatchScore as _BatchScoreFields
    from rankwright.types import Comparison as _ComparisonFields
    from rankwright.types import Dataset as _DatasetFields
    from rankwright.types import Evaluation as _EvaluationFields
    from rankwright.types import Job as _JobFields
else:  # whose fields `Resource` finds in `data`
    _BatchScoreFields = _ComparisonFields = _DatasetFields = _EvaluationFields = _JobFields = object


@dataclass(frozen=True)
class Page(Generic[R]):
    """One page of a list.

    Attributes
    ----------
    data : list
        The records on it.
    has_more : bool
        Whether there are further ones behind it.
    next : str or int or None
        What to pass as `after` for the page behind it.
    """

    data: list[R]
    has_more: bool
    next: str | int | None


class ApiObject:
    """Base of the clients and of every object that sends requests: it has the transport to the service."""

    _transport: Any

    def _get(self, path: str, /, **query: Any) -> Steps[Any]:
        response = yield from send(Request("GET", path, query))
        return response.json()

    def _record(self, kind: type[R], path: str, **query: Any) -> Steps[R]:
        data = yield from self._get(path, **query)
        return kind.from_json(data)

    def _page(self, record: type[R], path: str, /, **query: Any) -> Steps[Page[R]]:
        found = yield from self._get(path, **query)
        data = [record.from_json(each) for each in found["data"]]
        return Page(data, found["has_more"], found["next"])

    def _pages(self, path: str, make: Callable[[Any], Any], **query: Any) -> Items[Any]:
        after = None
        while True:
            response = yield from send(
                Request("GET", path, {"limit": PAGE, **query, "after": after})
            )
            page = response.json()
            for each in page["data"]:
                yield Item(make(each))
            after = page.get("next")
            if not page.get("has_more") or after is None:
                return

    def _post(
        self,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Steps[Any]:
        more: dict[str, Any] = {"query": query or {}, "headers": key_header(key)}
        if body is None:
            request = Request("POST", path, **more)
        else:
            request = Request.of_json("POST", path, _without_none(body), **more)
        response = yield from send(request)
        return response.json()

    def _send_table(
        self, path: str, body: Body, progress: Progress | None, key: str | None, **query: Any
    ) -> Steps[Any]:
        request = table_request("POST", path, body, progress, query)
        request.headers |= key_header(key)
        response = yield from send(request)
        return response.json()

    def _put_part(
        self, upload_id: str, number: int, body: Body, progress: Progress | None
    ) -> Steps[types.UploadPart]:
        path = f"/v1/uploads/{segment(upload_id)}/parts/{number}"
        response = yield from send(table_request("PUT", path, body, progress, {}))
        return types.UploadPart.from_json(response.json())

    def _find_interrupted(
        self, fields: Mapping[str, str], files: Sequence[Body]
    ) -> Steps[types.Upload | None]:
        """Return an upload with these fields of which each part is one of these files; None if there is none. One that
        is closed has all of them, and its dataset is not invalid.
        """
        after = None
        while True:
            page = yield from self._get("/v1/uploads", limit=PAGE, after=after)
            for data in page["data"]:
                is_open = data["status"] == "open"
                if data["fields"] != fields or not (is_open or data["n_parts"] == len(files)):
                    continue
                if not is_open:
                    made = yield from self._get(f"/v1/datasets/{segment(data['dataset_id'])}")
                    if made["status"] == "invalid":
                        continue
                found = yield from self._record(types.Upload, f"/v1/uploads/{segment(data['id'])}")
                if (yield from _are_files(found.parts or (), files)):
                    return found
            if not page["has_more"]:
                return None
            after = page["next"]

    def _send_files(
        self, files: Sequence[Body], fields: Mapping[str, Any], progress: Progress | None
    ) -> Steps[Any]:
        """Send files as the parts of one dataset, but for those that an interrupted call has sent; return it."""
        said = {name: as_text(value) for name, value in fields.items() if value is not None}
        upload = yield from self._find_interrupted(said, files)
        if upload is None:
            upload = types.Upload.from_json((yield from self._post("/v1/uploads", query=said)))
        there = {part.number for part in upload.parts or ()}
        total, done = sum(file.size or 0 for file in files), 0
        for number, file in enumerate(files, start=1):
            if number not in there:
                show = None if progress is None else partial(_add_to, progress, done, total)
                yield from self._put_part(upload.id, number, file, show)
            done += file.size or 0
        return (
            yield from self._post(f"/v1/uploads/{segment(upload.id)}/close", {"parts": len(files)})
        )

    def _delete(self, path: str, headers: Mapping[str, str] | None = None) -> Steps[None]:
        """Delete what is at a path. If it is gone after a try whose answer was lost, that try has deleted it."""
        request = Request("DELETE", path, headers=dict(headers or {}))
        try:
            yield from send(request)
        except NotFound:
            if not request.lost_answer:
                raise

    def _download(
        self, path: str, to: str | os.PathLike[str] | BinaryIO | None, **query: Any
    ) -> Steps[bytes]:
        """Return the bytes at a path, or write them to a file and return b""."""
        if to is None:
            response = yield from send(Request("GET", path, query))
            return response.content
        response = yield from send(Request("GET", path, query, stream=True))
        with _opened(to) as file:
            try:
                while chunk := (yield ReadChunk(response)):
                    file.write(chunk)
            except BrokenConnection as error:
                raise ConnectionFailed(f"the answer is incomplete: {error}") from error
        yield Close(response)
        return b""

    def _make(self, blocking: type[S], asynchronous: type[A], data: Any) -> Either[S, A]:
        """Return a resource of the kind of client that this object belongs to."""
        kind: Any = asynchronous if isinstance(self, Asynchronous) else blocking
        return cast("Either[S, A]", kind._of(self._transport, data))


class Resource(ApiObject):
    """A thing of the service. `data` is what the service said of it when it was last asked; its fields are attributes
    of the thing, too.
    """

    _record_kind: ClassVar[type[Record]]

    @classmethod
    def _of(cls, transport: Any, data: Any) -> Any:
        new = cls.__new__(cls)
        new._transport = transport
        new._take(data)
        return new

    @classmethod
    def _of_id(cls, transport: Any, id: str) -> Any:
        return cls._of(transport, {"id": id})

    def _take(self, data: Any) -> None:
        self.data: Any = self._record_kind.from_json(data)

    if not TYPE_CHECKING:  # a type checker is to know the declared fields alone

        def __getattr__(self, name: str) -> Any:
            if name == "data" or name.startswith("_"):
                raise AttributeError(name)
            return getattr(self.data, name)

    def __repr__(self) -> str:
        return f"<{self.data!r}>"

    def _repr_html_(self) -> str:
        return str(self.data._repr_html_())


def refuse_key(idempotency_key: str | None) -> None:
    """Raise ConfigurationError for a key with a folder."""
    if idempotency_key is not None:
        raise ConfigurationError(
            f"idempotency_key is for one file, got {idempotency_key!r} with a folder: the same call goes on with what "
            "it has sent"
        )


def key_header(idempotency_key: str | None) -> dict[str, str]:
    """Return the header of a caller's own key for a request. ConfigurationError: if no header can hold it."""
    if idempotency_key is None:
        return {}
    if not (idempotency_key.isascii() and idempotency_key.isprintable() and idempotency_key):
        raise ConfigurationError(
            f"idempotency_key must be printable ASCII characters, got {idempotency_key!r}"
        )
    return {"Idempotency-Key": idempotency_key}


def table_request(
    method: str, path: str, body: Body, progress: Progress | None, query: Mapping[str, Any]
) -> Request:
    """Return the request that sends a table."""
    return Request(
        method,
        path,
        query,
        headers={**body.headers(), "Prefer": "wait=1"},
        body=body.chunks_with_progress(progress),
        repeatable=body.repeatable,
    )


def _held(job_id: str, seconds: float) -> Request:
    """Return the request for a job whose answer the service holds until the job has ended, at most so many seconds."""
    headers = {"Prefer": f"wait={seconds:.0f}"}
    return Request("GET", f"/v1/jobs/{segment(job_id)}", headers=headers, held=seconds)


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


def _without_none(body: Any) -> Any:
    if isinstance(body, Mapping):
        return {name: value for name, value in body.items() if value is not None}
    return body


def _is_missing(value: Any) -> bool:
    """Return True for None, NaN of any library, and what cannot be compared with itself, as pandas.NA."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124  # so is NaN of any library
    except (TypeError, ValueError):
        return not isinstance(value, (Sequence, Mapping))


def _joined(names: Names) -> str | None:
    """Return names as the API takes them in a query: text with commas between."""
    return names if names is None or isinstance(names, str) else ",".join(names)


TABLE_FIELDS = (
    *("name", "label", "positive", "weight", "group", "query", "item", "labels", "categorical"),
    *("numeric", "drop", "missing", "strict", "encoding", "delimiter", "decimal", "thousands"),
    *("dates", "kind"),
)
"""What can be said of a table."""


def _fields_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the arguments of a call say of a table."""
    return _table_query({name: given[name] for name in TABLE_FIELDS})


def _table_query(options: Mapping[str, Any]) -> dict[str, Any]:
    joined = ("labels", "categorical", "numeric", "drop", "missing")
    return {name: _joined(value) if name in joined else value for name, value in options.items()}


def _id(thing: Any) -> str:
    """Return the id of a resource, or the id itself, as a part of a path."""
    return segment(_named(thing))


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


def _job_progress(given: JobProgress | bool | None) -> JobProgress | None:
    if callable(given):
        return given
    return _show_job if given or (given is None and in_notebook()) else None


def _show_job(job: types.Job) -> None:
    """Write how far a job is, over the line that was written before."""
    words: list[str | None] = [job.state]
    if job.progress is not None:
        if job.progress.fraction is not None:
            words.append(f"{job.progress.fraction:.0%}")
        words += [job.progress.phase, job.progress.algorithm]
    end = "\n" if job.state in FINAL_STATES else ""
    sys.stderr.write(f"\r{f'{job.id}: ' + ', '.join(filter(None, words)):<79}{end}")
    sys.stderr.flush()


# --- jobs -----------------------------------------------------------------------------------------


class _JobOperations(ApiObject):
    data: types.Job

    @operation
    def refresh(self) -> Steps[types.Job]:
        """Ask for the job anew; return what the service says."""
        self.data = yield from self._record(types.Job, f"/v1/jobs/{_id(self)}")
        return self.data

    @returning
    def wait(
        self, timeout: float | None = None, *, progress: JobProgress | bool | None = None
    ) -> Steps[Either[Model, AsyncModel]]:
        """Wait until the job has ended; return the model that it made.

        `progress` is called with the job each time that it is read, about once a second. True: a line that says how far
        it is, which is the default in a notebook.

        The job goes on if waiting is interrupted (KeyboardInterrupt, a cancelled task), and survives a restart of the
        service. JobFailed: if it ended without a model. TimeoutError: after `timeout` seconds.
        """
        yield from self._until_end(timeout, _job_progress(progress))
        if self.data.state != "succeeded":
            raise JobFailed(self.data.id, self.data.state, cast(Any, self.data.error))
        made = self.data.output
        if made is None or made.kind != "model":
            raise RankwrightError(f"job {self.data.id} of kind {self.data.kind} makes no model")
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
                        f"job {self.data.id} has not ended after {timeout} s: it goes on"
                    )
                hold = min(hold, max(1.0, left))
            response = yield from send(_held(self.data.id, hold))
            self.data = types.Job.from_json(response.json())
            if show is not None:
                show(self.data)
            if self.data.state not in FINAL_STATES:
                yield from pause_unless_held(
                    response, None if end is None else end - time.monotonic()
                )

    @operation
    def events(
        self, *, after: int | None = None, limit: int | None = None
    ) -> Steps[Page[types.Event]]:
        """Return the events so far behind number `after`, in their order."""
        path = f"/v1/jobs/{_id(self)}/events"
        return (yield from self._page(types.Event, path, after=after, limit=limit))

    @iteration
    def follow(self, after: int = 0) -> Items[types.Event]:
        """Yield the events of the job as they happen, until it has ended.

        A connection that breaks is taken up again behind the last event. ConnectionFailed: after some such tries
        without an event between.
        """
        path, failures = f"/v1/jobs/{_id(self)}/events", 0
        while True:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
            response = yield from send(Request("GET", path, headers=headers, stream=True))
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
            self.data = yield from self._record(types.Job, f"/v1/jobs/{_id(self)}")
            if self.data.state in FINAL_STATES and self.data.last_event <= after:
                return

    @operation
    def cancel(self, *, keep: bool | None = None) -> Steps[types.Job]:
        """Cancel the job. With `keep`, a fit that can stop early ends in a model of what it has so far.

        Conflict: if it has ended in another way, or there is nothing to keep.
        """
        request = Request("POST", f"/v1/jobs/{_id(self)}/cancel", {"keep": keep})
        try:
            response = yield from send(request)
            self.data = types.Job.from_json(response.json())
        except Conflict:
            if not (keep and request.lost_answer):
                raise
            self.data = yield from self._record(types.Job, f"/v1/jobs/{_id(self)}")
            if self.data.keep_requested_at is None:
                raise
        return self.data

    @returning
    def retry(self, *, idempotency_key: str | None = None) -> Steps[Either[Job, AsyncJob]]:
        """Submit the same work once more; return the new job. `idempotency_key` as of `Client.upload`."""
        data = yield from self._post(f"/v1/jobs/{_id(self)}/retry", key=idempotency_key)
        return self._make(Job, AsyncJob, data)


class Job(_JobOperations, Resource, Blocking, _JobFields):
    """A job."""

    _record_kind = types.Job


class AsyncJob(_JobOperations, Resource, Asynchronous, _JobFields):
    """A job, asked by calls that are awaited."""

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
        """Ask for the dataset anew; return what the service says."""
        self.data = yield from self._record(types.Dataset, f"/v1/datasets/{_id(self)}")
        return self.data

    @operation
    def wait(self, timeout: float | None = None) -> Steps[types.Dataset]:
        """Wait until the table and its pairs have been read.

        InvalidTable: if it cannot be used. TimeoutError: after `timeout` seconds.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while self.data.status == "processing" or (
            self.data.pairs is not None and self.data.pairs.status == "processing"
        ):
            hold = float(HOLD_SECONDS)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"dataset {self.data.id} was not read after {timeout} s")
                hold = min(hold, max(1.0, left))
            reads = self.data if self.data.status == "processing" else self.data.pairs
            if reads is not None and reads.job_id is not None:
                response = yield from send(_held(reads.job_id, hold))
                yield from pause_unless_held(response, hold)
            else:
                yield Pause(POLL_SECONDS)
            self.data = yield from self._record(types.Dataset, f"/v1/datasets/{_id(self)}")
        if self.data.status == "invalid":
            raise InvalidTable(self.data.id, cast(Any, self.data.to_json().get("errors") or []))
        pairs = self.data.pairs
        if pairs is not None and pairs.status == "invalid":
            raise InvalidTable(self.data.id, cast(Any, pairs.to_json().get("errors") or []))
        return self.data

    @operation
    def preview(self, limit: int | None = None) -> Steps[types.Preview]:
        """Return the first rows."""
        return (
            yield from self._record(types.Preview, f"/v1/datasets/{_id(self)}/preview", limit=limit)
        )

    @operation
    def profile(self) -> Steps[types.DatasetProfile]:
        """Return quantiles, histograms and the AUC of each feature alone, likely leaks, rows that come twice."""
        return (yield from self._record(types.DatasetProfile, f"/v1/datasets/{_id(self)}/profile"))

    @operation
    def profile_page(self, format: str = "html") -> Steps[bytes]:
        """Return the profile as a page, in `html` or `markdown`."""
        return (yield from self._download(f"/v1/datasets/{_id(self)}/profile", None, format=format))

    @iteration
    def versions(self) -> Items[types.ListedDataset]:
        """Yield all versions of the dataset, the newest first."""
        path = f"/v1/datasets/{_id(self)}/versions"
        yield from self._pages(path, types.ListedDataset.from_json)

    @operation
    def version_page(
        self, *, limit: int | None = None, after: str | None = None
    ) -> Steps[Page[types.ListedDataset]]:
        """Return one page of the versions of the dataset, the newest first."""
        path = f"/v1/datasets/{_id(self)}/versions"
        return (yield from self._page(types.ListedDataset, path, limit=limit, after=after))

    @returning
    def add_version(
        self,
        table: Table,
        *,
        mode: str = "append",
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        dates: str | None = None,
        media_type: str | None = None,
        progress: Progress | None = None,
        idempotency_key: str | None = None,
        wait: bool = True,
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Make another version: `append` adds rows to those of this one, `replace` takes the new rows alone.

        `idempotency_key` as of `Client.upload`.
        """
        said = {
            "mode": mode,
            "encoding": encoding,
            "delimiter": delimiter,
            "decimal": decimal,
            "thousands": thousands,
            "dates": dates,
        }
        if is_folder(table):
            refuse_key(idempotency_key)
            files = folder_bodies(table, media_type)
            data = yield from self._send_files(files, {"version_of": _id(self), **said}, progress)
        else:
            path = f"/v1/datasets/{_id(self)}/versions"
            body = body_of(table, media_type)
            data = yield from self._send_table(path, body, progress, idempotency_key, **said)
        return (yield from self._read(data, wait))

    @returning
    def read_again(
        self,
        *,
        name: str | None = None,
        label: str | None = None,
        positive: str | None = None,
        weight: str | None = None,
        group: str | None = None,
        query: str | None = None,
        item: str | None = None,
        labels: Names = None,
        categorical: Names = None,
        numeric: Names = None,
        drop: Names = None,
        missing: Names = None,
        strict: bool | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        dates: str | None = None,
        kind: str | None = None,
        reset: Sequence[str] = (),
        idempotency_key: str | None = None,
        wait: bool = True,
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Make a new dataset of the bytes that were uploaded for this one, with other fields; return it.

        The arguments are those of `Client.upload`. A field that is not given stays as it is; `reset` names fields that
        get their default. The dataset may be invalid, and does not change. InvalidTable: if the new one cannot be used.
        """
        said = {name: value for name, value in _fields_of(locals()).items() if value is not None}
        fields = dict.fromkeys(reset) | said
        headers = key_header(idempotency_key)
        path = f"/v1/datasets/{_id(self)}/read"
        request = Request.of_json("POST", path, fields, headers=headers)
        response = yield from send(request)
        return (yield from self._read(response.json(), wait))

    @operation
    def put_pairs(
        self,
        pairs: Table,
        *,
        media_type: str | None = None,
        progress: Progress | None = None,
        wait: bool = True,
    ) -> Steps[types.Dataset]:
        """Say which item is better than which, for a dataset of kind `preferences`; replaces what was there."""
        path, body = f"/v1/datasets/{_id(self)}", body_of(pairs, media_type)
        request = table_request("PUT", f"{path}/pairs", body, progress, {})
        try:
            response = yield from send(request)
            self.data = types.Dataset.from_json(response.json())
        except Conflict:
            if not request.lost_answer:
                raise
            # The job that reads these very pairs would refuse them, too.
            found = yield from self._record(types.Dataset, path)
            if found.pairs is None or found.pairs.sha256 != (yield Compute(body.sha256)):
                raise
            self.data = found
        if wait:
            yield from _steps_of(_DatasetOperations.wait)(self)
        return self.data

    def _read(self, data: Any, wait: bool) -> Steps[Either[Dataset, AsyncDataset]]:
        new = self._make(Dataset, AsyncDataset, data)
        if wait:
            yield from _steps_of(_DatasetOperations.wait)(new)
        return new

    @operation
    def delete(self) -> Steps[None]:
        """Delete the dataset. Conflict: while a job uses it."""
        yield from self._delete(f"/v1/datasets/{_id(self)}")


class Dataset(_DatasetOperations, Resource, Blocking, _DatasetFields):
    """A table that was uploaded."""

    _record_kind = types.Dataset


class AsyncDataset(_DatasetOperations, Resource, Asynchronous, _DatasetFields):
    """A table that was uploaded, asked by calls that are awaited."""

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
_ROWS_SCORES: list[Any] = [types.Scores, types.LabelScores]
_METRICS: list[Any] = [
    types.Metrics,
    types.PairMetrics,
    types.MultilabelMetrics,
    types.GradedMetrics,
]


class _ModelOperations(ApiObject):
    ref: str
    _data: types.Model | None
    _metrics: Metrics | None

    def _path(self, what: str = "") -> str:
        return f"/v1/models/{segment(self.ref)}" + (f"/{what}" if what else "")

    def _load(self, ref: str) -> Steps[None]:
        """Read what the service says of the model, and its figures on the rows that were held out, if it has such."""
        self.ref = ref
        self._data = yield from self._record(types.Model, self._path(), include="metrics")
        included = self._data.included
        self._metrics = None if included is None else included.metrics

    @operation
    def refresh(self) -> Steps[types.Model]:
        """Ask for the model and its figures anew; return what the service says of the model."""
        yield from self._load(self.ref)
        return cast(types.Model, self._data)

    @operation
    def read(
        self,
        *,
        include: Names = None,
        on: str | None = None,
        max_points: int | None = None,
        band: str | None = None,
        points: int | None = None,
        fpr: float | None = None,
        tpr: float | None = None,
        threshold: float | None = None,
        flagged: float | None = None,
        confidence: float | None = None,
        cost_false_positive: float | None = None,
        cost_false_negative: float | None = None,
        prevalence: float | None = None,
    ) -> Steps[types.Model]:
        """Return what the service says of the model, and in `included` further parts, all in one request.

        Parameters
        ----------
        include : str or list of str, optional
            `metrics`, `roc`, `operating_points`, `operating_point`. A part that the model lacks is in
            `included.absent`, with the reason.
        on, max_points, band, points, fpr, tpr, threshold, flagged, confidence : optional
            As of the methods for the single parts: `read_metrics`, `roc`, `operating_points`, `operating_point`; and so
            are the costs and the prevalence.
        """
        return (
            yield from self._record(
                types.Model,
                self._path(),
                include=_joined(include),
                on=on,
                max_points=max_points,
                band=band,
                points=points,
                fpr=fpr,
                tpr=tpr,
                threshold=threshold,
                flagged=flagged,
                confidence=confidence,
                cost_false_positive=cost_false_positive,
                cost_false_negative=cost_false_negative,
                prevalence=prevalence,
            )
        )

    @operation
    def read_metrics(self, on: str | None = None) -> Steps[Metrics]:
        """Return the figures on one part of the data: `validation` (the default) or `train`."""
        data = yield from self._get(self._path("metrics"), on=on)
        return cast(Metrics, read_one_of(_METRICS, data))

    @operation
    def score(
        self,
        table: Table,
        *,
        id: str | None = None,
        ignore: Names = None,
        missing: Names = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        dates: str | None = None,
        media_type: str | None = None,
        probability: bool | None = None,
        interval: bool | None = None,
        prevalence: float | None = None,
        reasons: int | None = None,
        reference: str | None = None,
        direction: str | None = None,
        threshold: float | None = None,
    ) -> Steps[Any]:
        """Score the rows of a table. `id` names the column of their ids, which come back in the column `id`.

        Returns a table of the caller's kind (pandas, polars, pyarrow), else a list of dict: columns `score`, `fpr` and
        `tpr` (what cutting there would give on the validation rows) and `probability`, a row for each row of the table,
        in order. `probability=False` leaves the last out, `interval=True` adds `probability_low` and
        `probability_high`, and `prevalence` is the fraction of positives in the population of the rows.

        With `reasons=3` there are the three parts of each score that set it most apart from a `reference`: "negative",
        the average negative; "average", the average training row; or "cut", a `threshold` or that of the alias.
        `direction` is "raises" (why is the score high?), "lowers" or "both". They are the columns `reason_1_code`,
        `reason_1_text`, `reason_1_contribution`, `reason_1_error` and so on, `reasons_rest` and `reference_score`.

        A large frame, or many rows as dicts, travel in several requests, which one version of the model answers. A file
        travels in one, which the service scores block by block: TooLarge beyond its limit (a GiB, unless it is set
        otherwise); then use `client.score_batch`.
        """
        body = body_of(table, media_type)
        query: dict[str, Any] = {
            "id": id,
            "ignore": _joined(ignore),
            "missing": _joined(missing),
            "encoding": encoding,
            "delimiter": delimiter,
            "decimal": decimal,
            "thousands": thousands,
            "dates": dates,
            "probability": probability,
            "interval": interval,
            "prevalence": prevalence,
            "reasons": reasons,
            "reference": reference,
            "direction": direction,
            "threshold": threshold,
        }
        for _ in range(_SCORE_TRIES):
            responses: list[Response] = yield from self._score_parts(body, query)
            if len({response.headers.get("x-model-id") for response in responses}) == 1:
                break
        else:
            raise RankwrightError(
                f"{self.ref} moved to another model {_SCORE_TRIES} times while a table was scored"
            )
        answers = [(each.content, each.headers.get("content-type", "")) for each in responses]
        return frame_of(answers, body, reasons or 0)

    def _score_parts(self, body: Body, query: Mapping[str, Any]) -> Steps[list[Response]]:
        """Score the parts of a table under the name that was asked for, so that an alias answers what it promises."""
        responses: list[Response] = []
        for part in body.parts() if body.parts is not None else [None]:
            sent = body if part is None else body.of_part(part)
            try:
                response = yield from self._post_rows(
                    "score", sent, score_media_type(body.kind), **query
                )
            except ProblemError as error:
                if part is None or part.first == 0:
                    raise
                raise error.of_lines_after(part.first) from error
            responses.append(response)
        return responses

    @operation
    def score_to_bytes(
        self,
        table: Table,
        format: str = "csv",
        *,
        id: str | None = None,
        ignore: Names = None,
        missing: Names = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        dates: str | None = None,
        media_type: str | None = None,
        probability: bool | None = None,
        interval: bool | None = None,
        prevalence: float | None = None,
        reasons: int | None = None,
        reference: str | None = None,
        direction: str | None = None,
        threshold: float | None = None,
    ) -> Steps[bytes]:
        """Score the rows of a table in one request; return the scores as a file: `csv`, `parquet` or `arrow`.

        ConfigurationError: for another format.
        """
        if format not in SCORE_FORMATS:
            known = ", ".join(SCORE_FORMATS)
            raise ConfigurationError(f"the format of scores must be one of {known}, got {format!r}")
        response = yield from self._post_rows(
            "score",
            body_of(table, media_type),
            SCORE_FORMATS[format],
            id=id,
            ignore=_joined(ignore),
            missing=_joined(missing),
            encoding=encoding,
            delimiter=delimiter,
            decimal=decimal,
            thousands=thousands,
            dates=dates,
            probability=probability,
            interval=interval,
            prevalence=prevalence,
            reasons=reasons,
            reference=reference,
            direction=direction,
            threshold=threshold,
        )
        return response.content

    def _post_rows(
        self, what: str, body: Body, accept: str | None, **query: Any
    ) -> Steps[Response]:
        headers = body.headers() if accept is None else {**body.headers(), "Accept": accept}
        request = Request(
            "POST",
            self._path(what),
            query,
            headers=headers,
            body=body.chunks,
            repeatable=body.repeatable,
            timeout=_LONG_SECONDS if body.size is None or body.size > SCORED_PART_BYTES else None,
        )
        return (yield from send(request))

    @operation
    def score_row(
        self,
        features: Mapping[str, Any] | None = None,
        /,
        *,
        id: Any = None,
        ignore: Any = None,
        probability: Any = None,
        interval: Any = None,
        prevalence: Any = None,
        reasons: Any = None,
        reference: Any = None,
        direction: Any = None,
        threshold: Any = None,
        **more: Any,
    ) -> Steps[types.Score]:
        """Score one row: a feature for each argument; None and NaN are missing values.

        `id` names the argument that is the row's id: it comes back with the score. `ignore` names, separated by commas,
        arguments that are no features; "*" ignores all such.

        The arguments of `score`, such as `interval` and `reasons`, are options, unless the model has such a feature.
        ConfigurationError: `features` has one of these names, and the option is set, too; use `score_rows`. Or it is no
        mapping, such as a Series. SeveralLabels: the model has a score per label; use `score_row_by_label`.
        """
        options = {
            "id": id,
            "ignore": ignore,
            "probability": probability,
            "interval": interval,
            "prevalence": prevalence,
            "reasons": reasons,
            "reference": reference,
            "direction": direction,
            "threshold": threshold,
        }
        data = yield from self._score_row(features, more, options)
        if "scores" in data:
            raise SeveralLabels(
                f"{self.ref} has a score for each of several labels: use score_row_by_label"
            )
        return types.Score.from_json(data)

    @operation
    def score_row_by_label(
        self, features: Mapping[str, Any] | None = None, /, **more: Any
    ) -> Steps[types.LabelScore]:
        """Score one row by a model with several labels; features as of `score_row`."""
        data = yield from self._score_row(features, more, {})
        return types.LabelScore.from_json(data)

    def _score_row(
        self,
        features: Mapping[str, Any] | None,
        more: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> Steps[Any]:
        if features is not None and not isinstance(features, Mapping):
            raise ConfigurationError(
                f"features must be a mapping of names to values, got {type(features).__name__}; a Series "
                "becomes one by to_dict()"
            )
        row = {**(features or {}), **more}
        query = {name: "" if _is_missing(value) else value for name, value in row.items()}
        for name, value in options.items():
            if value is None:
                continue
            if name in query:
                raise ConfigurationError(
                    f"{name!r} is a feature of the row and an option: score the row by score_rows"
                )
            query[name] = value
        return (yield from self._get(self._path("score"), **query))

    @operation
    def score_rows(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        id: str | None = None,
        ignore: Names = None,
        probability: bool | None = None,
        interval: bool | None = None,
        prevalence: float | None = None,
        reasons: int | None = None,
        reference: str | None = None,
        direction: str | None = None,
        threshold: float | None = None,
    ) -> Steps[types.Scores | types.LabelScores]:
        """Return the scores of rows that are sent as JSON objects, in their order, with the field `id` of each; options
        as of `score`.
        """
        data = yield from self._post(
            self._path("score"),
            {"rows": list(rows)},
            query={
                "id": id,
                "ignore": _joined(ignore),
                "probability": probability,
                "interval": interval,
                "prevalence": prevalence,
                "reasons": reasons,
                "reference": reference,
                "direction": direction,
                "threshold": threshold,
            },
        )
        return cast("types.Scores | types.LabelScores", read_one_of(_ROWS_SCORES, data))

    @operation
    def read_calibration(self) -> Steps[types.Calibration]:
        """Return how scores become probabilities, and how good these are. NotFound: the model has no calibration."""
        return (yield from self._record(types.Calibration, self._path("calibration")))

    @returning
    def recalibrate(
        self, dataset: Any, *, idempotency_key: str | None = None, wait: bool = True
    ) -> Steps[Either[Job, AsyncJob]]:
        """Have a job learn the calibration anew from a dataset that the model was not trained on; return the job.

        `idempotency_key` as of `Client.upload`.
        """
        body = {"dataset_id": getattr(dataset, "id", dataset)}
        headers = key_header(idempotency_key)
        path = self._path("calibration")
        response = yield from send(Request.of_json("PUT", path, body, headers=headers))
        new = self._make(Job, AsyncJob, response.json())
        if wait:
            yield from _steps_of(_JobOperations.wait)(new)
        return new

    @operation
    def rank(
        self,
        table: Table,
        *,
        top: int | None = None,
        label: str | None = None,
        id: str | None = None,
        ignore: Names = None,
        missing: Names = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        dates: str | None = None,
        media_type: str | None = None,
        probability: bool | None = None,
        interval: bool | None = None,
        prevalence: float | None = None,
    ) -> Steps[types.Ranking]:
        """Return the best rows of a table, the best first; `id` and the options of probabilities as of `score`."""
        response = yield from self._post_rows(
            "rank",
            body_of(table, media_type),
            None,
            top=top,
            label=label,
            id=id,
            ignore=_joined(ignore),
            missing=_joined(missing),
            encoding=encoding,
            delimiter=delimiter,
            decimal=decimal,
            thousands=thousands,
            dates=dates,
            probability=probability,
            interval=interval,
            prevalence=prevalence,
        )
        return types.Ranking.from_json(response.json())

    @operation
    def explain(
        self,
        rows: Sequence[Mapping[str, Any]],
        *,
        id: str | None = None,
        ignore: Names = None,
        label: str | None = None,
        probability: bool | None = None,
        interval: bool | None = None,
        prevalence: float | None = None,
    ) -> Steps[types.Explanations]:
        """Return what each feature adds to the score of each row; other options as of `score_rows`."""
        data = yield from self._post(
            self._path("explain"),
            {"rows": list(rows)},
            query={
                "id": id,
                "ignore": _joined(ignore),
                "label": label,
                "probability": probability,
                "interval": interval,
                "prevalence": prevalence,
            },
        )
        return types.Explanations.from_json(data)

    @operation
    def roc(
        self, on: str | None = None, *, max_points: int | None = None, band: str | None = None
    ) -> Steps[types.Roc]:
        """Return the points of the ROC curve."""
        return (
            yield from self._record(
                types.Roc, self._path("roc"), on=on, max_points=max_points, band=band
            )
        )

    @operation
    def operating_point(
        self,
        *,
        on: str | None = None,
        fpr: float | None = None,
        tpr: float | None = None,
        threshold: float | None = None,
        flagged: float | None = None,
        confidence: float | None = None,
        cost_false_positive: float | None = None,
        cost_false_negative: float | None = None,
        prevalence: float | None = None,
    ) -> Steps[types.OperatingPoint]:
        """Return the threshold for a rate or a share of the rows, a threshold's rates, or the threshold of the least
        cost, with intervals.

        With `confidence` the rate is promised of future rows.
        """
        return (
            yield from self._record(
                types.OperatingPoint,
                self._path("operating-point"),
                on=on,
                fpr=fpr,
                tpr=tpr,
                threshold=threshold,
                flagged=flagged,
                confidence=confidence,
                cost_false_positive=cost_false_positive,
                cost_false_negative=cost_false_negative,
                prevalence=prevalence,
            )
        )

    @operation
    def operating_points(
        self,
        *,
        on: str | None = None,
        points: int | None = None,
        flagged: float | None = None,
        cost_false_positive: float | None = None,
        cost_false_negative: float | None = None,
        prevalence: float | None = None,
    ) -> Steps[types.OperatingPoints]:
        """Return operating points along the curve; with `flagged` also the best that flags at most this fraction."""
        return (
            yield from self._record(
                types.OperatingPoints,
                self._path("operating-points"),
                on=on,
                points=points,
                flagged=flagged,
                cost_false_positive=cost_false_positive,
                cost_false_negative=cost_false_negative,
                prevalence=prevalence,
            )
        )

    @operation
    def figures(
        self,
        figure: str | Sequence[str],
        *,
        on: str | None = None,
        definition: str | None = None,
        fixed_prevalence: bool | None = None,
    ) -> Steps[types.ModelFigures]:
        """Return figures of the ranking, such as `average_precision`, `precision@100` or `two_way:0.1,0.8`.

        With the definition `empirical`, areas are those of pairs strictly in order. With `fixed_prevalence` the
        intervals are for a population with the fraction of positives of these rows.
        """
        return (
            yield from self._record(
                types.ModelFigures,
                self._path("figures"),
                figure=figure,
                on=on,
                definition=definition,
                fixed_prevalence=fixed_prevalence,
            )
        )

    @operation
    def gains(
        self,
        *,
        share: Sequence[float] | None = None,
        count: Sequence[int] | None = None,
        prevalence: float | None = None,
        on: str | None = None,
    ) -> Steps[types.ModelGains]:
        """Return precision, recall and lift of the first rows of the list, down to several sizes."""
        return (
            yield from self._record(
                types.ModelGains,
                self._path("gains"),
                share=share,
                count=count,
                prevalence=prevalence,
                on=on,
            )
        )

    @operation
    def curve(
        self,
        kind: str,
        *,
        on: str | None = None,
        max_points: int | None = None,
        prevalence: float | None = None,
    ) -> Steps[types.ModelCurve]:
        """Return the curve of `precision_recall`, of `gains` or of `cost`, or the `histogram` of the scores."""
        return (
            yield from self._record(
                types.ModelCurve,
                self._path(f"curves/{segment(kind)}"),
                on=on,
                max_points=max_points,
                prevalence=prevalence,
            )
        )

    @operation
    def importance(self, *, label: str | None = None) -> Steps[types.Importance]:
        """Return how much each feature matters: by permutation, and by what the model itself is made of."""
        return (yield from self._record(types.Importance, self._path("importance"), label=label))

    @operation
    def partial_dependence(
        self,
        feature: str | Sequence[str],
        *,
        on: str | None = None,
        points: int | None = None,
        label: str | None = None,
    ) -> Steps[types.PartialDependence]:
        """Return the mean score along the values of one feature or two."""
        return (
            yield from self._record(
                types.PartialDependence,
                self._path("partial-dependence"),
                feature=feature,
                on=on,
                points=points,
                label=label,
            )
        )

    @operation
    def variable_dependence(
        self, feature: str | Sequence[str], *, on: str | None = None
    ) -> Steps[types.VariableDependence]:
        """Return what the model's trees say of one feature or two."""
        return (
            yield from self._record(
                types.VariableDependence,
                self._path("variable-dependence"),
                feature=feature,
                on=on,
            )
        )

    @operation
    def margins(
        self,
        *,
        theta: float | None = None,
        delta: float | None = None,
        max_rounds: int | None = None,
    ) -> Steps[types.Margins]:
        """Return the margins of the training pairs, round by round, and what they bound."""
        return (
            yield from self._record(
                types.Margins,
                self._path("margins"),
                theta=theta,
                delta=delta,
                max_rounds=max_rounds,
            )
        )

    @operation
    def bounds(
        self,
        *,
        fpr_min: float | None = None,
        fpr_max: float | None = None,
        delta: float | None = None,
    ) -> Steps[types.WindowBounds]:
        """Return generalisation bounds for a window of false positive rates."""
        return (
            yield from self._record(
                types.WindowBounds,
                self._path("bounds"),
                fpr_min=fpr_min,
                fpr_max=fpr_max,
                delta=delta,
            )
        )

    @operation
    def controls(self) -> Steps[types.Controls]:
        """Return the figures of the plain rankers that were fitted for comparison."""
        return (yield from self._record(types.Controls, self._path("controls")))

    @operation
    def leaderboard(self) -> Steps[types.Leaderboard]:
        """Return what `auto` tried, the best first."""
        return (yield from self._record(types.Leaderboard, self._path("leaderboard")))

    @operation
    def structure(self) -> Steps[dict[str, Any]]:
        """Return what the model is made of: its rules, trees or coefficients."""
        found: dict[str, Any] = yield from self._get(self._path("structure"))
        return found

    @operation
    def out_of_fold(self) -> Steps[types.OutOfFold]:
        """Return the scores of the training rows by the rankers that had not seen them (cross-validation)."""
        return (yield from self._record(types.OutOfFold, self._path("out-of-fold")))

    @operation
    def report(self) -> Steps[types.Report]:
        """Return the report that an auditor asks for, as an object."""
        return (yield from self._record(types.Report, self._path("report")))

    @operation
    def download(
        self,
        what: str,
        to: str | os.PathLike[str] | BinaryIO | None = None,
        *,
        format: str | None = None,
        on: str | None = None,
        kind: str | None = None,
        band: str | None = None,
        width: int | None = None,
        max_points: int | None = None,
    ) -> Steps[bytes]:
        """Return a part of the model as a file, or write it to one and return b"".

        Parameters
        ----------
        what : str
            `artifact`, `plot`, `report`, `roc`, `structure` or `out-of-fold`.
        to : path or binary file, optional
        format : str, optional
            `svg` or `png` of a plot, `html` or `markdown` of a report, `csv` of the curve and of out-of-fold scores,
            `svg` or `text` of a structure.
        """
        return (
            yield from self._download(
                self._path(what),
                to,
                format=format,
                on=on,
                kind=kind,
                band=band,
                width=width,
                max_points=max_points,
            )
        )

    @operation
    def delete(self) -> Steps[None]:
        """Delete the model. Conflict: while something needs it."""
        yield from self._delete(self._path())


class _ModelFigures:
    """What is known of a model without asking."""

    ref: str
    _data: types.Model | None
    _metrics: Metrics | None

    def _known(self) -> types.Model:
        raise NotImplementedError

    @property
    def data(self) -> types.Model:
        """What the service says of the model."""
        return self._known()

    @property
    def id(self) -> str:
        """Its id."""
        return self.data.id

    @property
    def name(self) -> str:
        """Its name."""
        return self.data.name

    @property
    def version(self) -> int:
        """Its version: counts from 1 within a name."""
        return self.data.version

    @property
    def metrics(self) -> Metrics | None:
        """Its figures on the rows that were held out; None where none were."""
        self._known()
        return self._metrics

    @property
    def auc(self) -> types.Interval:
        """The area under the ROC curve on the rows that were held out, with its interval."""
        metrics = self.metrics
        found = getattr(metrics, "auc", None) or getattr(metrics, "pair_order", None)
        if found is None:
            raise AttributeError(f"{self.ref} has no area of its own: see `metrics`")
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


class Model(_ModelOperations, _ModelFigures, Blocking):
    """A trained ranker. Made from a name alone it asks for its figures when they are first read."""

    @classmethod
    def _of(cls, transport: Any, data: Any) -> Model:
        new = cls.__new__(cls)
        new._transport, new._data, new._metrics, new.ref = transport, None, None, data
        return new

    def _known(self) -> types.Model:
        if self._data is None:
            self.refresh()
        return cast(types.Model, self._data)


class AsyncModel(_ModelOperations, _ModelFigures, Asynchronous):
    """A trained ranker, asked by calls that are awaited. Made from a name alone it has figures after `refresh`."""

    @classmethod
    def _of(cls, transport: Any, data: Any) -> AsyncModel:
        new = cls.__new__(cls)
        new._transport, new._data, new._metrics, new.ref = transport, None, None, data
        return new

    def _known(self) -> types.Model:
        if self._data is None:
            raise AttributeError(f"nothing is known of {self.ref} yet: `await model.refresh()`")
        return self._data


# --- evaluations, comparisons, batch scores -------------------------------------------------------


class _EndedOperations(ApiObject):
    """What has a job and a status: `processing`, `ready` or `failed`."""

    _collection: str
    _record_kind: ClassVar[type[Record]]
    data: Any

    @operation
    def refresh(self) -> Steps[None]:
        """Ask for it anew."""
        self.data = yield from self._record(self._record_kind, f"{self._collection}/{_id(self)}")

    @operation
    def wait(self, timeout: float | None = None) -> Steps[None]:
        """Wait until its job has ended. JobFailed: if that made nothing. TimeoutError: after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.data.status == "processing":
            hold = float(HOLD_SECONDS)
            if end is not None:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"{_id(self)} is not ready after {timeout} s")
                hold = min(hold, max(1.0, left))
            try:
                response = yield from send(_held(self.data.job_id, hold))
                yield from pause_unless_held(response, hold)
            except Forbidden:  # a key that may score need not read jobs
                yield Pause(POLL_SECONDS)
            yield from _steps_of(_EndedOperations.refresh)(self)
        if self.data.status != "ready":
            raise JobFailed(self.data.job_id, self.data.status, self.data.error)

    @operation
    def delete(self) -> Steps[None]:
        """Delete it."""
        yield from self._delete(f"{self._collection}/{_id(self)}")


class _EvaluationOperations(_EndedOperations):
    _collection = "/v1/evaluations"
    _record_kind: ClassVar[type[Record]] = types.Evaluation
    data: types.Evaluation

    @operation
    def roc(
        self, *, max_points: int | None = None, band: str | None = None
    ) -> Steps[types.EvaluationRoc]:
        """Return the points of the ROC curve."""
        return (
            yield from self._record(
                types.EvaluationRoc,
                f"/v1/evaluations/{_id(self)}/roc",
                max_points=max_points,
                band=band,
            )
        )

    @operation
    def operating_point(
        self,
        *,
        fpr: float | None = None,
        tpr: float | None = None,
        threshold: float | None = None,
        flagged: float | None = None,
        confidence: float | None = None,
        by_group: str | None = None,
        cost_false_positive: float | None = None,
        cost_false_negative: float | None = None,
        prevalence: float | None = None,
    ) -> Steps[types.EvaluationOperatingPoint]:
        """Return the threshold for a rate or a share of the rows, a threshold's rates, or the threshold of the least
        cost, on these rows.

        With `confidence` the rate is promised of future rows; with `by_group` ("together" or "each") also in each group
        of the evaluation, all at once or each by itself.
        """
        return (
            yield from self._record(
                types.EvaluationOperatingPoint,
                f"/v1/evaluations/{_id(self)}/operating-point",
                fpr=fpr,
                tpr=tpr,
                threshold=threshold,
                flagged=flagged,
                confidence=confidence,
                by_group=by_group,
                cost_false_positive=cost_false_positive,
                cost_false_negative=cost_false_negative,
                prevalence=prevalence,
            )
        )

    @operation
    def figures(
        self,
        figure: str | Sequence[str],
        *,
        definition: str | None = None,
        fixed_prevalence: bool | None = None,
    ) -> Steps[types.EvaluationFigures]:
        """Return figures of the ranking, such as `average_precision`, `precision@100` or `two_way:0.1,0.8`.

        `definition` and `fixed_prevalence` as of a model's figures.
        """
        path = f"/v1/evaluations/{_id(self)}/figures"
        return (
            yield from self._record(
                types.EvaluationFigures,
                path,
                figure=figure,
                definition=definition,
                fixed_prevalence=fixed_prevalence,
            )
        )

    @operation
    def gains(
        self,
        *,
        share: Sequence[float] | None = None,
        count: Sequence[int] | None = None,
        prevalence: float | None = None,
    ) -> Steps[types.EvaluationGains]:
        """Return precision, recall and lift of the first rows of the list, down to several sizes."""
        path = f"/v1/evaluations/{_id(self)}/gains"
        return (
            yield from self._record(
                types.EvaluationGains, path, share=share, count=count, prevalence=prevalence
            )
        )

    @operation
    def curve(
        self, kind: str, *, max_points: int | None = None, prevalence: float | None = None
    ) -> Steps[types.EvaluationCurve]:
        """Return the curve of `precision_recall`, of `gains` or of `cost`, or the `histogram` of the scores."""
        path = f"/v1/evaluations/{_id(self)}/curves/{segment(kind)}"
        return (
            yield from self._record(
                types.EvaluationCurve, path, max_points=max_points, prevalence=prevalence
            )
        )


class Evaluation(_EvaluationOperations, Resource, Blocking, _EvaluationFields):
    """A model judged by a dataset."""


class AsyncEvaluation(_EvaluationOperations, Resource, Asynchronous, _EvaluationFields):
    """A model judged by a dataset, asked by calls that are awaited."""


class _ComparisonOperations(_EndedOperations):
    _collection = "/v1/comparisons"
    _record_kind: ClassVar[type[Record]] = types.Comparison
    data: types.Comparison


class Comparison(_ComparisonOperations, Resource, Blocking, _ComparisonFields):
    """Models compared on a dataset."""


class AsyncComparison(_ComparisonOperations, Resource, Asynchronous, _ComparisonFields):
    """Models compared on a dataset, asked by calls that are awaited."""


class _BatchScoreOperations(_EndedOperations):
    _collection = "/v1/batch-scores"
    _record_kind: ClassVar[type[Record]] = types.BatchScore
    data: types.BatchScore

    @operation
    def result(
        self, to: str | os.PathLike[str] | BinaryIO | None = None, *, format: str = "parquet"
    ) -> Steps[bytes]:
        """Return the scores as a file (`parquet` or `csv`), or write them to one and return b""."""
        return (
            yield from self._download(f"/v1/batch-scores/{_id(self)}/result", to, format=format)
        )

    @operation
    def summary(self) -> Steps[types.BatchSummary]:
        """Return how the scores are distributed, how many rows are flagged, and the first 50 rows."""
        path = f"/v1/batch-scores/{_id(self)}/summary"
        return (yield from self._record(types.BatchSummary, path))


class BatchScore(_BatchScoreOperations, Resource, Blocking, _BatchScoreFields):
    """A table that a job scores."""


class AsyncBatchScore(_BatchScoreOperations, Resource, Asynchronous, _BatchScoreFields):
    """A table that a job scores, asked by calls that are awaited."""
