"""The clients, and the collections that they hand out."""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast
from urllib.parse import urlsplit

from rankwright import types
from rankwright.errors import ConfigurationError, Conflict, NotFound, SecretLost, Unauthorised
from rankwright.operations import (
    Asynchronous,
    Blocking,
    Either,
    iteration,
    operation,
    returning,
    yielding,
)
from rankwright.records import Record
from rankwright.resources import (
    ApiObject,
    AsyncBatchScore,
    AsyncComparison,
    AsyncDataset,
    AsyncEvaluation,
    AsyncJob,
    AsyncModel,
    BatchScore,
    Comparison,
    Dataset,
    Evaluation,
    Job,
    Model,
    Names,
    Page,
    _fields_of,
    _joined,
    _named,
    _ref,
    _steps_of,
    _table_query,
    in_notebook,
    key_header,
    refuse_key,
)
from rankwright.tables import (
    MEDIA_TYPES,
    NDJSON,
    Progress,
    Table,
    body_of,
    folder_bodies,
    is_folder,
)
from rankwright.transport import (
    RETRIES,
    AsyncHttpTransport,
    AsyncTransport,
    HttpTransport,
    Items,
    Request,
    Steps,
    Transport,
    segment,
    send,
)

R = TypeVar("R", bound=Record)
S = TypeVar("S")
A = TypeVar("A")
T = TypeVar("T")
C = TypeVar("C")

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT = 90.0
"""Seconds without a byte from the service before a request counts as failed: more than the longest held answer."""


NOW = "now"
"""The revision that a thing has when it is to be changed."""

Time = str | datetime | None
"""A time, with its zone: text as in RFC 3339, or a datetime."""


class _Collection(ApiObject):
    def __init__(self, transport: Any) -> None:
        self._transport = transport


# --- datasets -------------------------------------------------------------------------------------


class _DatasetsOperations(_Collection):
    @returning
    def get(self, dataset_id: str) -> Steps[Either[Dataset, AsyncDataset]]:
        """Return the dataset with this id. NotFound: if there is none."""
        data = yield from self._get(f"/v1/datasets/{segment(dataset_id)}")
        return self._make(Dataset, AsyncDataset, data)

    @iteration
    def list(
        self,
        *,
        name: str | None = None,
        search: str | None = None,
        latest: bool | None = None,
        created_after: Time = None,
        created_before: Time = None,
        sort: str | None = None,
    ) -> Items[types.ListedDataset]:
        """Yield the datasets, the newest first: of one name, or with a text in their names; by when they were made."""
        yield from self._pages(
            "/v1/datasets",
            types.ListedDataset.from_json,
            name=name,
            search=search,
            latest=latest,
            created_after=created_after,
            created_before=created_before,
            sort=sort,
        )

    @operation
    def page(
        self,
        *,
        name: str | None = None,
        search: str | None = None,
        latest: bool | str | None = None,
        created_after: Time = None,
        created_before: Time = None,
        sort: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Steps[Page[types.ListedDataset]]:
        """Return one page of the list."""
        return (
            yield from self._page(
                types.ListedDataset,
                "/v1/datasets",
                name=name,
                search=search,
                latest=latest,
                created_after=created_after,
                created_before=created_before,
                sort=sort,
                limit=limit,
                after=after,
            )
        )

    @operation
    def check(
        self,
        /,
        table: Table,
        *,
        label: str | None = None,
        media_type: str | None = None,
        **options: Any,
    ) -> Steps[types.TableCheck]:
        """Check a table as `upload` would, and create nothing. Options as of `upload`.

        Invalid: if the table cannot be used.
        """
        query = {**_table_query(options), "label": label}
        body = body_of(table, media_type)
        data = yield from self._send_table("/v1/datasets/validate", body, None, None, **query)
        return types.TableCheck.from_json(data)


class Datasets(_DatasetsOperations, Blocking):
    """The tables of this key's owner. `[id]` asks nothing: only the id is known of what it returns."""

    def __getitem__(self, id: str) -> Dataset:
        return cast(Dataset, Dataset._of_id(self._transport, id))


class AsyncDatasets(_DatasetsOperations, Asynchronous):
    """The tables of this key's owner, asked by calls that are awaited."""

    def __getitem__(self, id: str) -> AsyncDataset:
        return cast(AsyncDataset, AsyncDataset._of_id(self._transport, id))


# --- uploads of several files ---------------------------------------------------------------------


class _UploadsOperations(_Collection):
    @operation
    def open(
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
        strict: bool | str | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        dates: str | None = None,
        kind: str | None = None,
        version_of: str | None = None,
        mode: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[types.Upload]:
        """Open an upload of several files; return it. Options as of `upload`; or `version_of`, a dataset's id, with
        `mode` and those of a CSV, as of a dataset's `add_version`.
        """
        fields = {**_fields_of(locals()), "version_of": version_of, "mode": mode}
        data = yield from self._post("/v1/uploads", query=fields, key=idempotency_key)
        return types.Upload.from_json(data)

    @operation
    def get(self, upload_id: str) -> Steps[types.Upload]:
        """Return the upload with this id, and its parts. NotFound: if there is none."""
        return (yield from self._record(types.Upload, f"/v1/uploads/{segment(upload_id)}"))

    @iteration
    def list(self) -> Items[types.Upload]:
        """Yield the uploads, the newest first, without their parts."""
        yield from self._pages("/v1/uploads", types.Upload.from_json)

    @operation
    def put_part(
        self,
        upload_id: str,
        number: int,
        table: Table,
        *,
        media_type: str | None = None,
        progress: Progress | None = None,
    ) -> Steps[types.UploadPart]:
        """Send a part. Parts are numbered from 1, and come in any order; the same bytes may be sent again."""
        return (yield from self._put_part(upload_id, number, body_of(table, media_type), progress))

    @operation
    def add_files(
        self, upload_id: str, path: str, *, idempotency_key: str | None = None
    ) -> Steps[types.Upload]:
        """Add a file of the service, or all tables of a folder, as the next parts.

        `path` is below the service's folder for files.
        """
        body, added = {"path": path}, f"/v1/uploads/{segment(upload_id)}/files"
        data = yield from self._post(added, body, key=idempotency_key)
        return types.Upload.from_json(data)

    @returning
    def close(
        self, upload_id: str, parts: int, *, wait: bool = True
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Make a dataset of all parts, and wait until it has been read; return it. `parts` is their number."""
        path = f"/v1/uploads/{segment(upload_id)}/close"
        data = yield from self._post(path, {"parts": parts})
        dataset = self._make(Dataset, AsyncDataset, data)
        if wait:
            yield from _steps_of(cast(Any, type(dataset)).wait)(dataset)
        return dataset

    @operation
    def delete(self, upload_id: str) -> Steps[None]:
        """Delete an upload that is not closed."""
        yield from self._delete(f"/v1/uploads/{segment(upload_id)}")


class Uploads(_UploadsOperations, Blocking):
    """Uploads of several files, which become one dataset each."""


class AsyncUploads(_UploadsOperations, Asynchronous):
    """Uploads of several files, by calls that are awaited."""


# --- jobs -----------------------------------------------------------------------------------------


class _JobsOperations(_Collection):
    @returning
    def get(self, job_id: str) -> Steps[Either[Job, AsyncJob]]:
        """Return the job with this id. NotFound: if there is none."""
        data = yield from self._get(f"/v1/jobs/{segment(job_id)}")
        return self._make(Job, AsyncJob, data)

    @yielding
    def list(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        dataset: Any = None,
        unresolved: bool | None = None,
        search: str | None = None,
        created_after: Time = None,
        created_before: Time = None,
        sort: str | None = None,
        tag: Names = None,
    ) -> Items[Either[Job, AsyncJob]]:
        """Yield the jobs, the newest first: training jobs, unless another `kind` or `"all"` is named.

        `unresolved` leaves failures that no retry, later job of the same kind and name, or deletion has settled.
        `tag` is `"team:risk"`, or `"team"` for any value; of several a job has all.
        """
        yield from self._pages(
            "/v1/jobs",
            lambda data: self._make(Job, AsyncJob, data),
            state=state,
            kind=kind,
            dataset_id=None if dataset is None else _named(dataset),
            unresolved=unresolved,
            search=search,
            created_after=created_after,
            created_before=created_before,
            sort=sort,
            tag=tag,
        )

    @operation
    def page(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        dataset: Any = None,
        unresolved: bool | None = None,
        search: str | None = None,
        created_after: Time = None,
        created_before: Time = None,
        sort: str | None = None,
        tag: Names = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Steps[Page[types.Job]]:
        """Return one page of the list."""
        return (
            yield from self._page(
                types.Job,
                "/v1/jobs",
                state=state,
                kind=kind,
                dataset_id=None if dataset is None else _named(dataset),
                unresolved=unresolved,
                search=search,
                created_after=created_after,
                created_before=created_before,
                sort=sort,
                tag=tag,
                limit=limit,
                after=after,
            )
        )

    @returning
    def submit(
        self, job: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> Steps[Either[Job, AsyncJob]]:
        """Submit a training job that is written as the body of POST /v1/jobs; return it. See `Client.train`."""
        data = yield from self._send_job("/v1/jobs", job, idempotency_key)
        return self._make(Job, AsyncJob, data)

    @operation
    def check_request(self, job: Mapping[str, Any]) -> Steps[types.JobCheck]:
        """Check a training job as `submit` would send it, and create nothing."""
        data = yield from self._send_job("/v1/jobs/validate", job)
        return types.JobCheck.from_json(data)

    def _send_job(self, path: str, job: Mapping[str, Any], key: str | None = None) -> Steps[Any]:
        response = yield from send(Request.of_json("POST", path, job, headers=key_header(key)))
        return response.json()

    @operation
    def check(
        self, /, dataset: Any, algorithm: str | Mapping[str, Any] = "rankboost", **options: Any
    ) -> Steps[types.JobCheck]:
        """Check a training job as `Client.train` would submit it, with the same options, and create nothing."""
        body = _job_body(dataset, algorithm, options)
        data = yield from self._post("/v1/jobs/validate", body)
        return types.JobCheck.from_json(data)


_JOB_FIELDS = (
    *("name", "objective", "validation", "search", "controls", "label_noise", "seed"),
    *("priority", "tags", "timeout_seconds"),
)


def _prices(costs: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return costs as the service takes them: a number other than `review` is a fixed cost."""
    if costs is None:
        return None
    return {
        name: cost if name == "review" or isinstance(cost, Mapping) else {"fixed": cost}
        for name, cost in costs.items()
    }


def _job_body(
    dataset: Any, algorithm: str | Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the body of a job: options that are no field of it are parameters of the algorithm."""
    chosen = {"name": algorithm} if isinstance(algorithm, str) else dict(algorithm)
    parameters = {name: value for name, value in options.items() if name not in _JOB_FIELDS}
    fields = {name: options.get(name) for name in _JOB_FIELDS}
    return {"dataset_id": _named(dataset), "algorithm": {**chosen, **parameters}, **fields}


class Jobs(_JobsOperations, Blocking):
    """The jobs of this key's owner. `[id]` asks nothing: only the id is known of what it returns."""

    def __getitem__(self, id: str) -> Job:
        return cast(Job, Job._of_id(self._transport, id))


class AsyncJobs(_JobsOperations, Asynchronous):
    """The jobs of this key's owner, asked by calls that are awaited."""

    def __getitem__(self, id: str) -> AsyncJob:
        return cast(AsyncJob, AsyncJob._of_id(self._transport, id))


# --- models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Promotion(Generic[C]):
    """What `promote_if_better` has done.

    Attributes
    ----------
    promoted : bool
        Whether the alias points at the challenger because of this call.
    alias : Alias
        The alias as it is now.
    comparison : Comparison or None
        The comparison; None if there was nothing to compare.
    gain : Interval or None
        The challenger's area minus the champion's, with its interval.
    """

    promoted: bool
    alias: types.Alias
    comparison: C | None
    gain: types.Interval | None


def _either(promotion: Promotion[Any]) -> Either[Any, Any]:
    return cast("Either[Any, Any]", promotion)


class _ModelsOperations(_Collection):
    @returning
    def get(self, ref: str) -> Steps[Either[Model, AsyncModel]]:
        """Return a model with its figures. `ref` is an id, `name`, `name:version` or `name@alias`."""
        model = self._make(Model, AsyncModel, segment(ref))
        yield from cast(Any, model)._load(ref)
        return model

    @iteration
    def list(
        self,
        *,
        name: str | None = None,
        aliased: bool | None = None,
        outdated: bool | None = None,
        search: str | None = None,
        created_after: Time = None,
        created_before: Time = None,
        sort: str | None = None,
        tag: Names = None,
    ) -> Items[types.ListedModel]:
        """Yield the models, the newest first: of one name, or with a text in their names; by when they were made.

        `tag` is `"team:risk"`, or `"team"` for any value; of several a model has all. `aliased` leaves those that an
        alias points to, `outdated` those of them that have a newer version.
        """
        yield from self._pages(
            "/v1/models",
            types.ListedModel.from_json,
            name=name,
            aliased=aliased,
            outdated=outdated,
            search=search,
            created_after=created_after,
            created_before=created_before,
            sort=sort,
            tag=tag,
        )

    @operation
    def page(
        self,
        *,
        name: str | None = None,
        aliased: bool | None = None,
        outdated: bool | None = None,
        search: str | None = None,
        created_after: Time = None,
        created_before: Time = None,
        sort: str | None = None,
        tag: Names = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Steps[Page[types.ListedModel]]:
        """Return one page of the list."""
        return (
            yield from self._page(
                types.ListedModel,
                "/v1/models",
                name=name,
                aliased=aliased,
                outdated=outdated,
                search=search,
                created_after=created_after,
                created_before=created_before,
                sort=sort,
                tag=tag,
                limit=limit,
                after=after,
            )
        )

    @operation
    def alias_page(
        self, name: str, *, limit: int | None = None, after: str | None = None
    ) -> Steps[Page[types.AliasSummary]]:
        """Return one page of the aliases among the versions of a name."""
        path = f"/v1/models/{segment(name)}/aliases"
        return (yield from self._page(types.AliasSummary, path, limit=limit, after=after))

    @iteration
    def aliases(self, name: str) -> Items[types.AliasSummary]:
        """Yield the aliases among the versions of a name."""
        yield from self._pages(f"/v1/models/{segment(name)}/aliases", types.AliasSummary.from_json)

    @operation
    def read_alias(self, name: str, alias: str) -> Steps[types.Alias]:
        """Return where an alias points, and where it pointed before."""
        return (yield from self._record(types.Alias, _alias_path(name, alias)))

    @operation
    def set_alias(
        self,
        name: str,
        alias: str,
        model: Any,
        *,
        promise: Mapping[str, float] | Literal["keep"] | None = "keep",
        revision: int | str | None = NOW,
    ) -> Steps[types.Alias]:
        """Point an alias at a model. It is made if there is none, and moved if there is one.

        With a `revision` it is moved only if that is what it has; with None it is only made.

        `promise={"fpr": 0.01, "confidence": 0.95}`, or with `tpr`, makes answers under the alias have a `flag` by which
        every version keeps the promise; so do `{"flagged": 0.02}`, a share of the rows, and `{"threshold": 1.74}`.
        None takes it away, "keep" leaves the alias the one that it has.

        Conflict: if somebody else moved it meanwhile. Invalid: if the model cannot keep the promise.
        """
        path, target = _alias_path(name, alias), _named(model)
        if revision == NOW:
            revision = yield from self._revision_of(types.Alias, path)
        return (yield from self._set_alias(path, target, revision, promise))

    def _set_alias(
        self,
        path: str,
        target: str,
        revision: int | str | None,
        promise: Mapping[str, float] | str | None = "keep",
    ) -> Steps[types.Alias]:
        condition = _if_it_is(revision)
        body: dict[str, Any] = {"model_id": target}
        if not isinstance(promise, str):
            body["promise"] = None if promise is None else dict(promise)
        request = Request.of_json("PUT", path, body, headers=condition)
        try:
            response = yield from send(request)
        except Conflict as refusal:
            if not request.lost_answer:
                raise
            try:
                found = yield from self._record(types.Alias, path)
            except NotFound:
                raise refusal from None
            follows = revision is None or str(found.revision - 1) == str(revision)
            if found.model_id != target or not follows or not _is_kept(found, promise):
                raise
            return found  # as a try whose answer was lost has left it
        return types.Alias.from_json(response.json())

    @returning
    def promote_if_better(
        self,
        alias: str,
        challenger: Any,
        dataset: Any,
        *,
        window: tuple[float, float] = (0.0, 1.0),
        confidence: float = 0.95,
        idempotency_key: str | None = None,
    ) -> Steps[Either[Promotion[Comparison], Promotion[AsyncComparison]]]:
        """Point an alias at another model if that one ranks the rows of a dataset better.

        It is better if the interval of the difference of the two areas, at the level `confidence`, is on its side of 0.
        An alias that does not exist is made. Nothing is compared then, nor if the alias points at the challenger.

        Parameters
        ----------
        alias : str
            Such as "churn@champion".
        challenger : Model or str
        dataset : Dataset or str
            Rows that neither model was trained on.
        window : (float, float)
            The false positive rates over which the areas are compared. Default: all.
        confidence : float
            Level of the interval, from 0.5 to below 1. If both models rank alike, the alias moves with a probability of
            about (1 - confidence) / 2.
        idempotency_key : str, optional
            Of the comparison; as of `Client.upload`.

        Raises
        ------
        Conflict
            If the alias was moved while the models were compared: it stays as it is.
        """
        name, at, label = alias.partition("@")
        if not (name and at and label):
            raise ConfigurationError(f'an alias must read "name@alias", got {alias!r}')
        path = _alias_path(name, label)
        new = yield from self._record(types.Model, f"/v1/models/{segment(_ref(challenger))}")
        try:
            now = yield from self._record(types.Alias, path)
        except NotFound:
            made = yield from self._set_alias(path, new.id, None)
            return _either(Promotion(True, made, None, None))
        if now.model_id == new.id:
            return _either(Promotion(False, now, None, None))
        body = {
            "models": [new.id, now.model_id],
            "dataset_id": _named(dataset),
            "level": confidence,
            "windows": [{"fpr_min": window[0], "fpr_max": window[1]}],
        }
        found = yield from self._post("/v1/comparisons", body, key=idempotency_key)
        comparison = self._make(Comparison, AsyncComparison, found)
        yield from _steps_of(cast(Any, type(comparison)).wait)(comparison)
        ((difference,),) = [each.differences for each in cast(Any, comparison).data.result.windows]
        sign = 1.0 if difference.first == new.id else -1.0
        gain = sorted((sign * difference.low, sign * difference.high))
        if gain[0] > 0.0:
            now = yield from self._set_alias(path, new.id, now.revision)
        value = types.Interval(value=sign * difference.value, low=gain[0], high=gain[1])
        return _either(Promotion(gain[0] > 0.0, now, comparison, value))

    def _revision_of(
        self, kind: type[types.Alias] | type[types.ReasonCodes], path: str
    ) -> Steps[int | None]:
        """Return the revision that a thing has now; None if there is none."""
        try:
            found = yield from self._record(cast("type[Any]", kind), path)
        except NotFound:
            return None
        return cast(int, found.revision)

    @operation
    def delete_alias(self, name: str, alias: str, *, revision: int | str) -> Steps[None]:
        """Delete an alias that has this revision now."""
        yield from self._delete(_alias_path(name, alias), {"If-Match": f'"{revision}"'})

    @operation
    def read_reason_codes(
        self, name: str, *, revision: int | None = None
    ) -> Steps[types.ReasonCodes]:
        """Return the dictionary by which the reasons of a name's models are told, by default as it is now."""
        path = f"/v1/models/{segment(name)}/reason-codes"
        return (yield from self._record(types.ReasonCodes, path, revision=revision))

    @operation
    def set_reason_codes(
        self,
        name: str,
        entries: Sequence[Mapping[str, Any]],
        *,
        revision: int | str | None = NOW,
    ) -> Steps[types.ReasonCodes]:
        """Replace the dictionary of a name, or make it. `revision` as of `set_alias`.

        An entry has `code`, `text` and `columns`, and may have `direction`, `min`, `max`, `categories` and `missing`.
        """
        path = f"/v1/models/{segment(name)}/reason-codes"
        if revision == NOW:
            revision = yield from self._revision_of(types.ReasonCodes, path)
        condition = _if_it_is(revision)
        body = json.loads(json.dumps({"entries": [dict(entry) for entry in entries]}))
        request = Request.of_json("PUT", path, body, headers=condition)
        try:
            response = yield from send(request)
        except Conflict as refusal:
            if not request.lost_answer:
                raise
            try:
                found = yield from self._record(types.ReasonCodes, path)
            except NotFound:
                raise refusal from None
            follows = revision is None or str(found.revision - 1) == str(revision)
            if not follows or not _are_entries(found, body["entries"]):
                raise
            return found  # as a try whose answer was lost has left it
        return types.ReasonCodes.from_json(response.json())


def _if_it_is(revision: int | str | None) -> dict[str, str]:
    """Return the header by which a thing is changed only if it has this revision; None: only made."""
    return {"If-None-Match": "*"} if revision is None else {"If-Match": f'"{revision}"'}


def _are_entries(found: types.ReasonCodes, entries: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if a dictionary has these entries."""
    kept = [entry.to_json() for entry in found.entries]
    return len(kept) == len(entries) and all(
        {name: value for name, value in each.items() if value is not None}
        == {name: value for name, value in entry.items() if value is not None}
        for each, entry in zip(kept, entries, strict=True)
    )


_KEPT = ("fpr", "tpr", "flagged", "threshold", "confidence")


def _is_kept(found: types.Alias, promise: Mapping[str, float] | str | None) -> bool:
    """Return True if an alias has the promise that it was to get."""
    if isinstance(promise, str):
        return True
    kept = found.promise
    if promise is None or kept is None:
        return (promise is None) == (kept is None)
    return all(getattr(kept, name) == promise.get(name) for name in _KEPT)


def _alias_path(name: str, alias: str) -> str:
    return f"/v1/models/{segment(name)}/aliases/{segment(alias)}"


class Models(_ModelsOperations, Blocking):
    """The models of this key's owner. `models["churn@champion"]` asks nothing until the model is used."""

    def __getitem__(self, ref: str) -> Model:
        return Model._of(self._transport, segment(ref))


class AsyncModels(_ModelsOperations, Asynchronous):
    """The models of this key's owner, asked by calls that are awaited."""

    def __getitem__(self, ref: str) -> AsyncModel:
        return AsyncModel._of(self._transport, segment(ref))


# --- evaluations, comparisons, batch scores -------------------------------------------------------


class _JobResultsOperations(_Collection, Generic[S, A, R]):
    """What jobs make of models and a dataset: S for the blocking client, A for the asynchronous one."""

    _path: ClassVar[str]
    _kinds: ClassVar[tuple[type[Any], type[Any]]]

    @returning
    def get(self, id: str) -> Steps[Either[S, A]]:
        """Return the one with this id. NotFound: if there is none."""
        data = yield from self._get(f"{self._path}/{segment(id)}")
        return self._of(data)

    def _of(self, data: Any) -> Either[S, A]:
        return self._make(*self._kinds, data)

    @yielding
    def list(
        self,
        *,
        model_id: str | None = None,
        dataset: Any = None,
        search: str | None = None,
        created_after: Time = None,
        created_before: Time = None,
        sort: str | None = None,
    ) -> Items[Either[S, A]]:
        """Yield them, the newest first."""
        yield from self._pages(
            self._path,
            self._of,
            model_id=model_id,
            dataset_id=None if dataset is None else _named(dataset),
            search=search,
            created_after=created_after,
            created_before=created_before,
            sort=sort,
        )

    @operation
    def page(
        self,
        *,
        model_id: str | None = None,
        dataset: Any = None,
        search: str | None = None,
        created_after: Time = None,
        created_before: Time = None,
        sort: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Steps[Page[R]]:
        """Return one page of the list."""
        return (
            yield from self._page(
                cast("type[R]", self._kinds[0]._record_kind),
                self._path,
                model_id=model_id,
                dataset_id=None if dataset is None else _named(dataset),
                search=search,
                created_after=created_after,
                created_before=created_before,
                sort=sort,
                limit=limit,
                after=after,
            )
        )


class _EvaluationsOperations(_JobResultsOperations[Evaluation, AsyncEvaluation, types.Evaluation]):
    _path = "/v1/evaluations"
    _kinds = (Evaluation, AsyncEvaluation)


class Evaluations(_EvaluationsOperations, Blocking):
    """Models judged by datasets. `[id]` asks nothing: only the id is known of what it returns."""

    def __getitem__(self, id: str) -> Evaluation:
        return cast(Evaluation, Evaluation._of_id(self._transport, id))


class AsyncEvaluations(_EvaluationsOperations, Asynchronous):
    """Models judged by datasets, asked by calls that are awaited."""

    def __getitem__(self, id: str) -> AsyncEvaluation:
        return cast(AsyncEvaluation, AsyncEvaluation._of_id(self._transport, id))


class _ComparisonsOperations(_JobResultsOperations[Comparison, AsyncComparison, types.Comparison]):
    _path = "/v1/comparisons"
    _kinds = (Comparison, AsyncComparison)


class Comparisons(_ComparisonsOperations, Blocking):
    """Models compared on datasets. `[id]` asks nothing: only the id is known of what it returns."""

    def __getitem__(self, id: str) -> Comparison:
        return cast(Comparison, Comparison._of_id(self._transport, id))


class AsyncComparisons(_ComparisonsOperations, Asynchronous):
    """Models compared on datasets, asked by calls that are awaited."""

    def __getitem__(self, id: str) -> AsyncComparison:
        return cast(AsyncComparison, AsyncComparison._of_id(self._transport, id))


class _BatchScoresOperations(_JobResultsOperations[BatchScore, AsyncBatchScore, types.BatchScore]):
    _path = "/v1/batch-scores"
    _kinds = (BatchScore, AsyncBatchScore)


class BatchScores(_BatchScoresOperations, Blocking):
    """Tables that jobs score. `[id]` asks nothing: only the id is known of what it returns."""

    def __getitem__(self, id: str) -> BatchScore:
        return cast(BatchScore, BatchScore._of_id(self._transport, id))


class AsyncBatchScores(_BatchScoresOperations, Asynchronous):
    """Tables that jobs score, asked by calls that are awaited."""

    def __getitem__(self, id: str) -> AsyncBatchScore:
        return cast(AsyncBatchScore, AsyncBatchScore._of_id(self._transport, id))


# --- keys, algorithms, the audit log --------------------------------------------------------------


class _KeysOperations(_Collection):
    @iteration
    def list(self) -> Items[types.Key]:
        """Yield the keys, the newest first, without their secrets."""
        yield from self._pages("/v1/keys", types.Key.from_json)

    @operation
    def page(self, *, limit: int | None = None, after: str | None = None) -> Steps[Page[types.Key]]:
        """Return one page of the list."""
        return (yield from self._page(types.Key, "/v1/keys", limit=limit, after=after))

    @operation
    def get(self, key_id: str) -> Steps[types.Key]:
        """Return the key with this id."""
        return (yield from self._record(types.Key, f"/v1/keys/{segment(key_id)}"))

    @operation
    def create(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        expires_in_seconds: float | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[types.KeyWithSecret]:
        """Make a key; its secret is shown once. SecretLost: if the answer with the secret was lost on its way."""
        body = {"name": name, "scopes": [*scopes], "expires_in_seconds": expires_in_seconds}
        data = yield from self._post("/v1/keys", body, key=idempotency_key)
        return _with_secret(data)

    @operation
    def rotate(
        self,
        key_id: str,
        *,
        grace_seconds: float | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[types.KeyWithSecret]:
        """Make a key in the place of another, which ends after the grace. Without `grace_seconds` it ends at once.

        SecretLost: if the answer with the new secret was lost on its way.
        """
        path = f"/v1/keys/{segment(key_id)}/rotate"
        body, headers = {"grace_seconds": grace_seconds or 0.0}, key_header(idempotency_key)
        request = Request.of_json("POST", path, body, headers=headers)
        try:
            response = yield from send(request)
        except Unauthorised as refusal:
            if not request.lost_answer:
                raise
            raise SecretLost(
                f"the answer to the rotation of {key_id} was lost, and the key of this client is not valid any more: if"
                " it is the same key, make another on the server with `rankwright keys create`",
                None,
            ) from refusal
        return _with_secret(response.json())

    @operation
    def revoke(self, key_id: str) -> Steps[None]:
        """Revoke a key."""
        yield from self._delete(f"/v1/keys/{segment(key_id)}")


def _with_secret(data: Any) -> types.KeyWithSecret:
    """Read a new key. SecretLost: if a repeated request has found it, without its secret."""
    key = types.KeyWithSecret.from_json(data)
    if key.secret is None:
        raise SecretLost(
            f"the key {key.id} exists, but the answer with its secret was lost, and the secret is shown only once: "
            "rotate it, or revoke it",
            key.id,
        )
    return key


class Keys(_KeysOperations, Blocking):
    """The API keys of this key's owner."""


class AsyncKeys(_KeysOperations, Asynchronous):
    """The API keys of this key's owner, asked by calls that are awaited."""


# --- the clients ----------------------------------------------------------------------------------


class _ClientOperations(ApiObject):
    @returning
    def upload(
        self,
        table: Table,
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
        media_type: str | None = None,
        progress: Progress | bool | None = None,
        idempotency_key: str | None = None,
        wait: bool = True,
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Upload a table, and wait until it has been read; return the dataset.

        Parameters
        ----------
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            Files are streamed. The files of a folder become one dataset, with the rows in the order of their names. If
            it was interrupted, the same call sends only the files that have not come.
        name : str, optional
            Default: the name of the file without its ending, or of the folder.
        label : str
            The column of two values that tells positives from negatives; `positive` is the value of the positives.
        weight, group, query, item : str, optional
            Columns: weights of the rows; what must not be split between training and validation; the list that a row
            belongs to; ids of items.
        labels, categorical, numeric, drop, missing : str or list of str, optional
            Several labels; columns of words, of numbers, and to leave out; values that stand for a missing one.
        media_type : str, optional
            Of a file whose name does not tell it.
        progress : callable or bool, optional
            Is called with the bytes sent and the bytes in all. True: a bar, which is the default for files on a
            terminal and in a notebook.
        idempotency_key : str, optional
            A text that names this request, such as "nightly-2026-01-31", for a program that may be started again: the
            same request with the same key gets the first answer and makes nothing. Not for a folder, whose upload goes
            on by itself. Default: a key of its own for each call.
        wait : bool
            False: return at once.

        Raises
        ------
        InvalidTable
            If the table cannot be used: the errors name line and column.
        """
        if name is None and isinstance(table, (str, os.PathLike)):
            name = Path(table).resolve().name.partition(".")[0] or None
        fields = _fields_of(locals())
        if is_folder(table):
            refuse_key(idempotency_key)
            files = folder_bodies(table, media_type)
            data = yield from self._send_files(files, fields, _progress(progress, True))
        else:
            body = body_of(table, media_type)
            show = _progress(progress, body.kind == "file")
            data = yield from self._send_table(
                "/v1/datasets", body, show, idempotency_key, **fields
            )
        dataset = self._make(Dataset, AsyncDataset, data)
        if wait:
            yield from _steps_of(cast(Any, type(dataset)).wait)(dataset)
        return dataset

    @returning
    def train(
        self,
        /,
        dataset: Any,
        algorithm: str | Mapping[str, Any] = "rankboost",
        *,
        name: str | None = None,
        objective: Mapping[str, Any] | None = None,
        validation: Mapping[str, Any] | None = None,
        search: Mapping[str, Any] | None = None,
        controls: bool | None = None,
        label_noise: float | None = None,
        seed: int | None = None,
        priority: int | None = None,
        tags: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
        idempotency_key: str | None = None,
        **parameters: Any,
    ) -> Steps[Either[Job, AsyncJob]]:
        """Submit a training job; return it. `train(…).wait()` returns the model.

        Parameters
        ----------
        dataset : Dataset or str
        algorithm : str or mapping
            A name as of `algorithms()`, with its parameters as further arguments; or `name` and parameters in one.
        name : str, optional
            Name of the model. Default: the algorithm's name.
        objective, validation, search : mapping, optional
            As in the body of POST /v1/jobs.
        idempotency_key : str, optional
            As of `upload`.
        """
        others = {
            "name": name,
            "objective": objective,
            "validation": validation,
            "search": search,
            "controls": controls,
            "label_noise": label_noise,
            "seed": seed,
            "priority": priority,
            "tags": tags,
            "timeout_seconds": timeout_seconds,
        }
        body = _job_body(dataset, algorithm, others | parameters)
        data = yield from self._post("/v1/jobs", body, key=idempotency_key)
        return self._make(Job, AsyncJob, data)

    @returning
    def evaluate(
        self,
        model: Any,
        dataset: Any,
        *,
        level: float | None = None,
        windows: Sequence[Mapping[str, Any]] | None = None,
        group_by: str | None = None,
        at: Mapping[str, float] | None = None,
        cuts: str | None = None,
        amount: str | None = None,
        costs: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        wait: bool = True,
    ) -> Steps[Either[Evaluation, AsyncEvaluation]]:
        """Judge a model by a dataset, and wait for the result; return the evaluation.

        Parameters
        ----------
        model : Model or str
        dataset : Dataset or str
        level : float, optional
            Confidence level of the intervals.
        windows : list of mappings, optional
            Windows of false positive rates, as `{"fpr_min": 0, "fpr_max": 0.05}`.
        group_by : str, optional
            A column of the dataset whose values are compared as groups.
        at : mapping, optional
            The cut whose rates are measured: `{"fpr": 0.01}`, `{"tpr": 0.9}` or `{"threshold": 1.5}`. By default the
            alias's, if `model` is `name@alias` and the alias keeps a promise.
        cuts : {"equal_fpr", "equal_tpr"}, optional
            Also choose a cut for each group.
        amount : str, optional
            A column of the dataset that says what each row is worth.
        costs : mapping, optional
            What errors cost: `false_positive`, `false_negative`, `benefit` and `review`. Each is a number, or for all
            but the last `{"fixed": 5, "rate": 0.1}`, a fixed cost plus a rate of the amount.
        idempotency_key : str, optional
            As of `upload`.
        wait : bool
            Wait for the result.
        """
        body = {
            "model": _ref(model),
            "dataset_id": _named(dataset),
            "level": level,
            "windows": windows,
            "group_by": group_by,
            "at": at,
            "cuts": cuts,
            "amount": amount,
            "costs": _prices(costs),
        }
        data = yield from self._post("/v1/evaluations", body, key=idempotency_key)
        return (yield from self._ended(self._make(Evaluation, AsyncEvaluation, data), wait))

    @returning
    def compare(
        self,
        models: Sequence[Any],
        dataset: Any,
        *,
        level: float | None = None,
        windows: Sequence[Mapping[str, Any]] | None = None,
        figures: Sequence[str] | None = None,
        amount: str | None = None,
        costs: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        wait: bool = True,
    ) -> Steps[Either[Comparison, AsyncComparison]]:
        """Compare models on a dataset, and wait for the result; return the comparison.

        `figures` are others than the areas over `windows`, such as `average_precision` or `precision@100`. With
        `costs`, and `amount` for costs that depend on a column, models are also compared by what their errors cost:
        both as for `evaluate`. `idempotency_key` as of `upload`.
        """
        body = {
            "models": [_ref(model) for model in models],
            "dataset_id": _named(dataset),
            "level": level,
            "windows": windows,
            "figures": figures,
            "amount": amount,
            "costs": _prices(costs),
        }
        data = yield from self._post("/v1/comparisons", body, key=idempotency_key)
        return (yield from self._ended(self._make(Comparison, AsyncComparison, data), wait))

    @returning
    def score_batch(
        self,
        model: Any,
        table: Table,
        *,
        id: str | None = None,
        keep: Names = None,
        top: int | None = None,
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
        file_name: str | None = None,
        progress: Progress | bool | None = None,
        idempotency_key: str | None = None,
        wait: bool = True,
    ) -> Steps[Either[BatchScore, AsyncBatchScore]]:
        """Have a job score a table of any size, and wait for it; return the batch scores, whose `result` is a file.

        Parameters
        ----------
        model : Model or str
        table : Dataset, or anything that `upload` takes
            A dataset is scored as it is there.
        id : str, optional
            Column of the ids of the rows: it stands first beside the scores, as the column `id`.
        keep : str or list of str, optional
            Columns that stand beside the scores.
        probability, interval : bool, optional
            False leaves the probability out; True adds `probability_low` and `probability_high`.
        prevalence : float, optional
            Fraction of positives in the population of the rows.
        reasons, reference, direction, threshold
            As of `Model.score`, for any number of rows.
        top : int, optional
            Keep only so many rows, those with the highest scores, best first.
        file_name : str, optional
            Name that the service keeps and shows with the scores of rows that are sent, such as "may.csv".
        idempotency_key : str, optional
            As of `upload`.
        """
        query = {
            "model": _ref(model),
            "id": id,
            "keep": _joined(keep),
            "ignore": _joined(ignore),
        }
        wanted = {
            "probability": probability,
            "interval": interval,
            "prevalence": prevalence,
            "reasons": reasons,
            "reference": reference,
            "direction": direction,
            "threshold": threshold,
        }
        if isinstance(table, (Dataset, AsyncDataset)):
            kept = keep.split(",") if isinstance(keep, str) else keep
            body = {
                "model": _ref(model),
                "dataset_id": table.id,
                "id": id,
                "keep": kept,
                "top": top,
                **wanted,
            }
            data = yield from self._post("/v1/batch-scores", body, key=idempotency_key)
        else:
            sent = body_of(table, media_type)
            if (
                sent.media_type == MEDIA_TYPES[".json"]
            ):  # as which this address takes the name of a dataset
                sent = replace(sent, media_type=NDJSON)  # the bytes tell an array
            data = yield from self._send_table(
                "/v1/batch-scores",
                sent,
                _progress(progress, sent.kind == "file"),
                idempotency_key,
                **query,
                top=top,
                file_name=file_name,
                missing=_joined(missing),
                encoding=encoding,
                delimiter=delimiter,
                decimal=decimal,
                thousands=thousands,
                dates=dates,
                **wanted,
            )
        return (yield from self._ended(self._make(BatchScore, AsyncBatchScore, data), wait))

    def _ended(self, new: T, wait: bool) -> Steps[T]:
        if wait:
            yield from _steps_of(cast(Any, type(new)).wait)(new)
        return new

    @operation
    def algorithms(self) -> Steps[list[types.Algorithm]]:
        """Return the algorithms, each with the schema of its parameters."""
        return (yield from self._record(types.Algorithms, "/v1/algorithms")).data

    @operation
    def algorithm(self, name: str) -> Steps[types.Algorithm]:
        """Return one algorithm."""
        return (yield from self._record(types.Algorithm, f"/v1/algorithms/{segment(name)}"))

    @operation
    def fits(
        self,
        model: Sequence[str],
        dataset: Sequence[Any],
        *,
        use: Literal["evaluation", "comparison", "scoring", "calibration"] | None = None,
    ) -> Steps[Sequence[types.Fit]]:
        """Return for each of the models and each of the datasets, at most 200 pairs, whether they can be used together.

        `use` is what for: an evaluation, a comparison, scoring, which needs no label, or a calibration, which needs
        rows that the model was not trained on.
        """
        query = {"model": [*model], "dataset_id": [_named(each) for each in dataset], "use": use}
        return (yield from self._record(types.Fits, "/v1/fits", **query)).data

    @operation
    def overview(self, *, limit: int | None = None) -> Steps[types.Overview]:
        """Return what is under way, what ended lately, what needs attention, and the newest models and datasets: at
        most `limit` of each (1 to 200; 10 unless given).
        """
        return (yield from self._record(types.Overview, "/v1/overview", limit=limit))

    @iteration
    def audit(
        self,
        *,
        key_id: str | None = None,
        action: str | None = None,
        resource: str | None = None,
        created_after: Time = None,
        created_before: Time = None,
    ) -> Items[types.AuditEntry]:
        """Yield what was done by which key, the newest first (scope `admin`): by one key, with a text in the route, or
        in the path or the ids of what was created; by when it was done.
        """
        yield from self._pages(
            "/v1/audit",
            types.AuditEntry.from_json,
            key_id=key_id,
            action=action,
            resource=resource,
            created_after=created_after,
            created_before=created_before,
        )

    @operation
    def audit_page(
        self,
        *,
        key_id: str | None = None,
        action: str | None = None,
        resource: str | None = None,
        created_after: Time = None,
        created_before: Time = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Steps[Page[types.AuditEntry]]:
        """Return one page of the audit log."""
        return (
            yield from self._page(
                types.AuditEntry,
                "/v1/audit",
                key_id=key_id,
                action=action,
                resource=resource,
                created_after=created_after,
                created_before=created_before,
                limit=limit,
                after=after,
            )
        )

    @operation
    def metrics(self) -> Steps[str]:
        """Return the figures of the whole service as Prometheus reads them (scope `operator`)."""
        return (yield from self._download("/metrics", None)).decode()

    @operation
    def health(self, what: str = "ready") -> Steps[types.Health]:
        """Return True if the service is `live`, `ready`, or `staffed` (has a worker). Unavailable: if it is not."""
        request = Request("GET", f"/health/{segment(what)}", repeatable=False)
        response = yield from send(request)
        return types.Health.from_json(response.json())


def _progress(given: Progress | bool | None, is_file: bool) -> Progress | None:
    if callable(given):
        return given
    if given is None:
        given = is_file and (sys.stderr.isatty() or in_notebook())
    return ProgressBar() if given else None


class ProgressBar:
    """A line on the terminal or in a notebook that says how much of a table has been sent."""

    WIDTH = 30

    def __call__(self, sent: int, size: int | None) -> None:
        """Draw it anew."""
        if size:
            part = min(1.0, sent / size)
            bar = "#" * round(part * self.WIDTH)
            line = f"\r[{bar:<{self.WIDTH}}] {part:4.0%} of {size / 1e6:.1f} MB"
        else:
            line = f"\r{sent / 1e6:.1f} MB"
        done = size is not None and sent >= size
        sys.stderr.write(line + ("\n" if done else ""))
        sys.stderr.flush()


def find_service(
    url: str | None, api_key: str | None, state_dir: str | os.PathLike[str] | None
) -> tuple[str, str | None]:
    """Return the address of the service and the key to send, which is None if there is none.

    An argument comes before its variable (RANKWRIGHT_URL, RANKWRIGHT_API_KEY, RANKWRIGHT_STATE_DIR). Both come before
    the files of `rankwright serve` in its state folder, which is `.rankwright` here unless it is named.

    A folder's key is sent to the folder's own address alone. A folder that nobody named may be anybody's: its address
    must be a loopback address, or else the folder in which a program runs would decide where the caller's key goes.

    ConfigurationError: if that is not so, or the address is none.
    """
    named = state_dir or os.environ.get("RANKWRIGHT_STATE_DIR")
    folder = Path(named or ".rankwright")
    url = url or os.environ.get("RANKWRIGHT_URL")
    api_key = api_key or os.environ.get("RANKWRIGHT_API_KEY")
    left = _read(folder / "address")
    if left is not None and not named and not _is_local(left):
        if url is None:
            raise ConfigurationError(
                f"{folder / 'address'} names {left!r}, which is not this machine: name the service by its address, or"
                " that folder by RANKWRIGHT_STATE_DIR"
            )
        left = None
    own = url is None or (left is not None and _is_same(url, left))
    url = (url or left or DEFAULT_URL).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"the address of a service begins with http:// or https://, got {url!r}"
        )
    if api_key is None and own and (named or left is not None):
        api_key = _read(folder / "api-key")
    return url, api_key


def _is_same(one: str, other: str) -> bool:
    if one.rstrip("/") == other.rstrip("/"):
        return True
    if not (_is_local(one) and _is_local(other)):
        return False
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.port, first.path) == (second.scheme, second.port, second.path)


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


class Client(_ClientOperations, Blocking):
    """The service, by calls that block.

    Parameters
    ----------
    url, api_key : str, optional
        Default: RANKWRIGHT_URL and RANKWRIGHT_API_KEY, else what `rankwright serve` left in its state folder.
    state_dir : path, optional
        That folder. Default: RANKWRIGHT_STATE_DIR, else `.rankwright` in the current folder.
    timeout : float
        Seconds without a byte from the service before a request counts as failed, and the longest sum of the pauses
        before a request is sent again.
    retries : int
        Times that a request is sent again if the connection broke or the service is busy.
    transport : Transport, optional
        What takes the place of HTTP.

    Notes
    -----
    A pickle has the arguments without the key, which is no part of a file: where it is loaded, the key is found as
    `Client()` finds it.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()  # doctest: +SKIP
    >>> data = client.upload("churn.csv", label="churned")  # doctest: +SKIP
    >>> model = client.train(data, "auto", budget_seconds=60, name="churn").wait()  # doctest: +SKIP
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        state_dir: str | os.PathLike[str] | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        transport: Transport | None = None,
    ) -> None:
        self._transport = transport or HttpTransport(
            *find_service(url, api_key, state_dir), timeout, retries
        )
        self._found_again = None if transport else (url, state_dir, timeout, retries)
        self.datasets = Datasets(self._transport)
        self.uploads = Uploads(self._transport)
        self.jobs = Jobs(self._transport)
        self.models = Models(self._transport)
        self.evaluations = Evaluations(self._transport)
        self.comparisons = Comparisons(self._transport)
        self.batch_scores = BatchScores(self._transport)
        self.keys = Keys(self._transport)

    @property
    def url(self) -> str:
        """Address of the service."""
        return str(self._transport.url)

    def __reduce__(self) -> Any:
        """Return how a copy in another process is made. TypeError: if the client has a transport of the caller's."""
        if self._found_again is None:
            raise TypeError("a client with a transport of its own cannot be pickled")
        return _find_again, self._found_again

    def __deepcopy__(self, memo: Any) -> Client:
        """Return the client itself: copies of an estimator that holds it ask the same service."""
        return self

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _find_again(
    url: str | None, state_dir: str | os.PathLike[str] | None, timeout: float, retries: int
) -> Client:
    return Client(url, state_dir=state_dir, timeout=timeout, retries=retries)


class AsyncClient(_ClientOperations, Asynchronous):
    """The service, by calls that are awaited. Parameters as of `Client`."""

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        state_dir: str | os.PathLike[str] | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        transport: AsyncTransport | None = None,
    ) -> None:
        self._transport = transport or AsyncHttpTransport(
            *find_service(url, api_key, state_dir), timeout, retries
        )
        self.datasets = AsyncDatasets(self._transport)
        self.uploads = AsyncUploads(self._transport)
        self.jobs = AsyncJobs(self._transport)
        self.models = AsyncModels(self._transport)
        self.evaluations = AsyncEvaluations(self._transport)
        self.comparisons = AsyncComparisons(self._transport)
        self.batch_scores = AsyncBatchScores(self._transport)
        self.keys = AsyncKeys(self._transport)

    @property
    def url(self) -> str:
        """Address of the service."""
        return str(self._transport.url)

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
