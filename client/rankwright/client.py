"""The clients, and the collections that are their attributes."""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, update_wrapper
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Literal, TypeVar, cast
from urllib.parse import urlsplit

from rankwright import api, types
from rankwright.errors import (
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    JobFailed,
    NotFound,
    SecretLost,
    Unauthorised,
)
from rankwright.operations import (
    NULL,
    ApiRequest,
    Asynchronous,
    Blocking,
    Either,
    Iteration,
    Page,
    ask,
    bytes_of,
    each_of,
    free,
    free_items,
    iteration,
    keywords_of,
    one,
    operation,
    record_of,
    returning,
)
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
    _named,
    _ref,
    _steps_of,
    in_notebook,
    progress_stream,
    refuse_key,
    with_table,
)
from rankwright.tables import (
    MEDIA_TYPES,
    NDJSON,
    Progress,
    Table,
    body_of,
    folder_bodies,
    in_form,
    is_folder,
)
from rankwright.transport import (
    BASE_DELAY,
    RETRIES,
    AsyncHttpTransport,
    AsyncTransport,
    BrokenConnection,
    Close,
    HttpTransport,
    Item,
    Items,
    Pause,
    ReadChunk,
    Steps,
    Transport,
    as_text,
    segment,
    send,
)

if TYPE_CHECKING:
    from typing import ParamSpec

    from typing_extensions import Unpack

    P = ParamSpec("P")

S = TypeVar("S")
A = TypeVar("A")
C = TypeVar("C")

DEFAULT_URL = "http://127.0.0.1:8000"
TIMEOUT = 90.0
"""Seconds without a byte from the service before a request counts as failed: more than the longest held answer."""


NOW = "now"
"""The revision that a thing has when it is to be changed."""


class _Collection(ApiObject):
    # Python would otherwise iterate by asking for the ids 0, 1, 2, … without end. Lists are fetched by `list()`.
    __iter__ = None

    def __init__(self, transport: Any) -> None:
        self._transport = transport


def things(
    make: Callable[P, ApiRequest[Page[Any]]], blocking: type[S], asynchronous: type[A]
) -> Iteration[P, S, A]:
    """Make a method that yields the entries of a list as objects that can themselves be asked."""

    def describe(self: Any, **fields: Any) -> Items[Any]:
        yield from each_of(make, fields, partial(self._make, blocking, asynchronous))

    return Iteration(update_wrapper(describe, make), (blocking, asynchronous))


# --- datasets -------------------------------------------------------------------------------------


class _DatasetsOperations(_Collection):
    list = free_items(api.list_datasets)
    page = free(api.list_datasets)
    get = one(api.read_dataset, Dataset, AsyncDataset)

    sources = free(api.list_sources)

    @returning
    @keywords_of(api.upload_dataset)
    def create(
        self,
        /,
        source: Mapping[str, Any] | str,
        *,
        wait: bool = True,
        **fields: Unpack[api.UploadDataset],
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Create a dataset whose rows the service takes from a source, and wait until it is ready.

        Parameters
        ----------
        source : str or mapping
            The URL of an object, or with a slash at the end, of all objects below it; or a mapping of "connection",
            "query" and "parameters". `sources()` lists the connections.
        wait : bool
            False returns at once.

        Returns
        -------
        Dataset
            The new dataset. Its `source` says what was read, and when.

        Raises
        ------
        InvalidTable
            The source cannot be read, or its table cannot be used.
        Invalid
            The source is not one that you may read.
        """
        request = api.upload_dataset(**fields)
        told = {field: as_text(value) for field, value in request.query.items()}
        request.query = {}
        given = {"url": source} if isinstance(source, str) else dict(source)
        request.set_json({**told, "source": given})
        made = yield from ask(request)
        return (yield from self._ended(self._make(Dataset, AsyncDataset, made), wait))

    @returning
    @keywords_of(api.refresh_dataset)
    def refresh(
        self, dataset: Any, *, wait: bool = True, **fields: Unpack[api.RefreshDataset]
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Read the source of a dataset again, into a new dataset, and wait until it is ready.

        Parameters
        ----------
        dataset : Dataset or str
            The dataset or its id. It does not change.
        wait : bool
            False returns at once.

        Returns
        -------
        Dataset
            The new dataset: the next version of the same name. Its `status` is `unchanged` if the source has the rows
            of `dataset`; then continue to use that one.

        Raises
        ------
        Conflict
            The dataset is not from a connection.
        InvalidTable
            The source cannot be read, or has other columns than before.
        """
        made = yield from ask(api.refresh_dataset(_named(dataset), **fields))
        return (yield from self._ended(self._make(Dataset, AsyncDataset, made), wait))

    @operation
    @keywords_of(api.validate_table)
    def check(
        self, /, table: Table, *, media_type: str | None = None, **fields: Unpack[api.ValidateTable]
    ) -> Steps[types.TableCheck]:
        """Check a table as `Client.upload` would, without creating anything.

        Parameters
        ----------
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            As for `Client.upload`.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".

        Returns
        -------
        types.TableCheck
            What the service found: columns, types and problems.

        Raises
        ------
        Invalid
            The table cannot be used.
        """
        request = api.validate_table(**fields)
        return (yield from ask(with_table(request, body_of(table, media_type))))


class Datasets(_DatasetsOperations, Blocking):
    """Your datasets: list, read and check them. It is `client.datasets`.

    `client.datasets[id]` returns a `Dataset` without a request; only its id is known until you call `refresh`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> [each.name for each in client.datasets.list()]
    ['later', 'later', 'churn']
    >>> client.datasets.check("churn.csv", label="churned").rows
    200
    """

    def __getitem__(self, id: str) -> Dataset:
        return cast(Dataset, Dataset._of_id(self._transport, id))


class AsyncDatasets(_DatasetsOperations, Asynchronous):
    """Like `Datasets`; await its calls."""

    def __getitem__(self, id: str) -> AsyncDataset:
        return cast(AsyncDataset, AsyncDataset._of_id(self._transport, id))


# --- uploads of several files ---------------------------------------------------------------------


class _UploadsOperations(_Collection):
    open = free(api.open_upload)
    get = free(api.read_upload)
    list = free_items(api.list_uploads)
    add_files = free(api.add_files)

    @operation
    @keywords_of(api.put_part)
    def put_part(
        self,
        upload_id: str,
        number: int,
        table: Table,
        *,
        media_type: str | None = None,
        progress: Progress | None = None,
        **fields: Unpack[api.PutPart],
    ) -> Steps[types.UploadPart]:
        """Send one part of an upload.

        Parts come in any order, and you may send the same bytes again.

        Parameters
        ----------
        upload_id : str
            Id of the upload.
        number : int
            Number of the part, from 1.
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            The rows of the part.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".
        progress : callable (sent, size), optional
            Called with the bytes sent so far and the number of bytes of the part.

        Returns
        -------
        types.UploadPart
            The part with its size and hash.
        """
        request = api.put_part(upload_id, number, **fields)
        return (yield from ask(with_table(request, body_of(table, media_type), progress)))

    @returning
    @keywords_of(api.close_upload)
    def close(
        self, upload_id: str, parts: int, *, wait: bool = True, **fields: Unpack[api.CloseUpload]
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Make one dataset of all parts and wait until the service has read it.

        Parameters
        ----------
        upload_id : str
            Id of the upload.
        parts : int
            Number of parts. The service checks that all have arrived.
        wait : bool
            False returns at once.

        Returns
        -------
        Dataset
            The new dataset.

        Raises
        ------
        InvalidTable
            The table cannot be used. Each error has part, line and column.
        Conflict
            Parts are missing.
        """
        made = yield from ask(api.close_upload(upload_id, parts, **fields))
        return (yield from self._ended(self._make(Dataset, AsyncDataset, made), wait))

    delete = free(api.delete_upload)


class Uploads(_UploadsOperations, Blocking):
    """Uploads of several files that become one dataset. It is `client.uploads`.

    `Client.upload` with a folder does all of this for you. Use `uploads` to send the parts from several machines.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> upload = client.uploads.open(name="parts", label="churned")
    >>> rows = [{"age": age, "churned": age % 2} for age in range(20, 60)]
    >>> part = client.uploads.put_part(upload.id, 1, rows)
    >>> client.uploads.close(upload.id, parts=1).rows
    40
    """


class AsyncUploads(_UploadsOperations, Asynchronous):
    """Like `Uploads`; await its calls."""


# --- jobs -----------------------------------------------------------------------------------------


class _JobsOperations(_Collection):
    list = things(api.list_jobs, Job, AsyncJob)
    page = free(api.list_jobs)
    get = one(api.read_job, Job, AsyncJob)

    @returning
    def submit(
        self, job: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> Steps[Either[Job, AsyncJob]]:
        """Submit a training job written as the JSON body of POST /v1/jobs.

        `Client.train` builds this body from arguments.

        Parameters
        ----------
        job : mapping
            The body.
        idempotency_key : str, optional
            Any text that identifies this request. The same request with the same key returns the first response again
            and creates nothing.

        Returns
        -------
        Job
            The new job. `wait()` returns the model.

        Raises
        ------
        Invalid
            The body is not valid.
        """
        request = api.submit_job("", {}, idempotency_key=idempotency_key)
        request.set_json(job)
        return self._make(Job, AsyncJob, (yield from ask(request)))

    @operation
    def check_request(self, job: Mapping[str, Any]) -> Steps[types.JobCheck]:
        """Check the JSON body of a training job without creating anything.

        Parameters
        ----------
        job : mapping
            The body, as for `submit`.

        Returns
        -------
        types.JobCheck
            What the job would do.

        Raises
        ------
        Invalid
            The body is not valid.
        """
        request = api.validate_job("", {})
        request.set_json(job)
        return (yield from ask(request))

    @operation
    @keywords_of(api.validate_job)
    def check(
        self, /, dataset: Any, algorithm: str | Mapping[str, Any] = "rankboost", **options: Any
    ) -> Steps[types.JobCheck]:
        """Check a training job as `Client.train` would submit it, without creating anything.

        Parameters
        ----------
        dataset : Dataset or str
            The dataset or its id.
        algorithm : str or mapping
            As for `Client.train`.
        **options
            As for `Client.train`.

        Returns
        -------
        types.JobCheck
            What the job would do.

        Raises
        ------
        Invalid
            The service would reject the job.
        """
        chosen, fields = _algorithm_and_fields(algorithm, options)
        return (yield from ask(api.validate_job(_named(dataset), chosen, **fields)))


def _prices(costs: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return costs as the service takes them: a number other than `review` is a fixed cost."""
    if costs is None:
        return None
    return {
        name: cost if name == "review" or isinstance(cost, Mapping) else {"fixed": cost}
        for name, cost in costs.items()
    }


def _algorithm_and_fields(
    algorithm: str | Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """Return the algorithm and the fields of a job: options that are no field of it are the algorithm's parameters."""
    chosen = {"name": algorithm} if isinstance(algorithm, str) else dict(algorithm)
    fields = {n: value for n, value in options.items() if n in api.SubmitJob.__annotations__}
    return chosen | {n: value for n, value in options.items() if n not in fields}, fields


class Jobs(_JobsOperations, Blocking):
    """Your jobs: list, read, submit and check them. It is `client.jobs`.

    `client.jobs[id]` returns a `Job` without a request; only its id is known until you call `refresh`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> job = next(client.jobs.list(kind="train"))
    >>> job.name, job.state
    ('churn', 'succeeded')
    """

    def __getitem__(self, id: str) -> Job:
        return cast(Job, Job._of_id(self._transport, id))


class AsyncJobs(_JobsOperations, Asynchronous):
    """Like `Jobs`; await its calls."""

    def __getitem__(self, id: str) -> AsyncJob:
        return cast(AsyncJob, AsyncJob._of_id(self._transport, id))


# --- models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Promotion(Generic[C]):
    """The result of `Models.promote_if_better`.

    Attributes
    ----------
    promoted : bool
        Whether this call moved the alias to the challenger.
    alias : Alias
        The alias as it is now.
    comparison : Comparison or None
        The comparison of the two models; None if there was nothing to compare.
    gain : Interval or None
        Area of the challenger minus that of the champion, with its confidence interval.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> data = client.upload("churn.csv", label="churned")
    >>> client.models.promote_if_better("simple@champion", "simple", data).promoted
    True
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
        """Read one model with its metrics.

        Parameters
        ----------
        ref : str
            An id, "name" (its latest version), "name:version" or "name@alias".

        Returns
        -------
        Model
            The model.

        Raises
        ------
        NotFound
            There is no such model.
        """
        model = self._make(Model, AsyncModel, segment(ref))
        yield from cast(Any, model)._load(ref)
        return model

    list = free_items(api.list_models)
    page = free(api.list_models)
    alias_page = free(api.list_aliases)
    aliases = free_items(api.list_aliases)
    read_alias = free(api.read_alias)
    alias_revisions = free_items(api.list_alias_revisions)
    alias_revision_page = free(api.list_alias_revisions)
    read_cohorts = free(api.read_cohorts)
    deleted_aliases = free_items(api.list_deleted_aliases)
    start_break_glass = free(api.start_break_glass)
    end_break_glass = free(api.end_break_glass)
    read_reason_codes = free(api.read_reason_codes)
    read_feedback = free(api.read_feedback)
    monitor = free(api.read_monitor)
    shadow = free(api.read_shadow)

    @operation
    def set_alias(
        self,
        name: str,
        alias: str,
        model: Any,
        *,
        guarantee: Mapping[str, float] | Literal["keep"] | None = "keep",
        memo: Mapping[str, Any] | None = None,
        revision: int | str | None = NOW,
    ) -> Steps[types.Alias]:
        """Point an alias at a model; create the alias if it does not exist.

        Use aliases in production: callers score with "churn@champion", and you move the alias to a new version.

        Parameters
        ----------
        name : str
            Name of the model.
        alias : str
            Name of the alias, such as "champion".
        model : Model or str
            The model, its id or its reference.
        guarantee : mapping, "keep" or None
            A guaranteed rate: `{"fpr": 0.01, "confidence": 0.95}`, or with "tpr". Scores under the alias then have a
            `flag`, and every version that the alias points at keeps the guarantee. `{"flagged": 0.02}` flags a share of
            the rows, and `{"threshold": 1.74}` uses a fixed threshold. None removes it; "keep" leaves it as it is.
        memo : mapping, optional
            Notes that are stored with this revision: "reason", "review", "rows", "cost_false_positive",
            "cost_false_negative", "amount", "prevalence". Capacity, costs and prevalence that are not given stay as
            they are.
        revision : int, str or None
            Move the alias only if it has this revision. None only creates it. Default: its current revision.

        Returns
        -------
        types.Alias
            The alias as it is now.

        Raises
        ------
        Conflict
            Somebody else moved the alias in the meantime, or it is protected: use `client.alias_requests`.
        Invalid
            The model cannot keep the guarantee.
        """
        if revision == NOW:
            revision = yield from self._revision_of(api.read_alias(name, alias))
        return (yield from self._set_alias(name, alias, _named(model), revision, guarantee, memo))

    def _set_alias(
        self,
        name: str,
        alias: str,
        target: str,
        revision: int | str | None,
        guarantee: Mapping[str, float] | str | None = "keep",
        memo: Mapping[str, Any] | None = None,
    ) -> Steps[types.Alias]:
        said = (
            {}
            if isinstance(guarantee, str)
            else {"guarantee": NULL if guarantee is None else guarantee}
        )
        if memo is not None:
            said["memo"] = memo
        request = api.put_alias(name, alias, target, **cast(Any, said | _if_it_is(revision)))
        try:
            return (yield from ask(request))
        except Conflict as refusal:
            if not request.lost_answer:
                raise
            try:
                found = yield from ask(api.read_alias(name, alias))
            except NotFound:
                raise refusal from None
            follows = revision is None or str(found.revision - 1) == str(revision)
            if found.model_id != target or not follows or not _is_kept(found, guarantee):
                raise
            return found  # as a try whose answer was lost has left it

    @returning
    def promote_if_better(
        self,
        alias: str,
        challenger: Any,
        dataset: Any,
        *,
        window: tuple[float, float] = (0.0, 1.0),
        confidence: float = 0.95,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Either[Promotion[Comparison], Promotion[AsyncComparison]]]:
        """Compare a challenger with the model of an alias, and move the alias if the challenger is better.

        The challenger is better if the confidence interval of the difference of the areas lies above 0. If the alias
        does not exist, it is created without a comparison. If it already points at the challenger, nothing is compared.

        Parameters
        ----------
        alias : str
            Such as "churn@champion".
        challenger : Model or str
            The challenger, its id or its reference.
        dataset : Dataset or str
            Rows that neither model was trained on.
        window : (float, float)
            Window of false positive rates over which the areas are compared. Default: the entire AUC.
        confidence : float
            Confidence level of the interval, from 0.5 to below 1. If both models rank equally well, the alias moves
            with a probability of about (1 - confidence) / 2.
        reason : str, optional
            Reason that is stored with the move. Default: the difference with its interval, and the id of the
            comparison.
        idempotency_key : str, optional
            Identifies the comparison, so that a repeated call does not make another.

        Returns
        -------
        Promotion
            What was done, and why.

        Raises
        ------
        Conflict
            The alias was moved during the comparison. It stays as it is.
        ConfigurationError
            `alias` is not written as "name@alias".
        """
        name, at, label = alias.partition("@")
        if not (name and at and label):
            raise ConfigurationError(f'an alias must have the form "name@alias", got {alias!r}')
        new = yield from ask(api.read_model(_ref(challenger)))
        try:
            now = yield from ask(api.read_alias(name, label))
        except NotFound:
            memo = None if reason is None else {"reason": reason}
            made = yield from self._set_alias(name, label, new.id, None, memo=memo)
            return _either(Promotion(True, made, None, None))
        if now.model_id == new.id:
            return _either(Promotion(False, now, None, None))
        request = api.create_comparison(
            [new.id, now.model_id],
            _named(dataset),
            level=confidence,
            windows=[{"fpr_min": window[0], "fpr_max": window[1]}],
            idempotency_key=idempotency_key,
        )
        comparison = self._make(Comparison, AsyncComparison, (yield from ask(request)))
        yield from _steps_of(cast(Any, type(comparison)).wait)(comparison)
        ((difference,),) = [each.differences for each in cast(Any, comparison).data.result.windows]
        sign = 1.0 if difference.first == new.id else -1.0
        gain = sorted((sign * difference.low, sign * difference.high))
        if gain[0] > 0.0:
            found = (
                f"The area is larger by {sign * difference.value:.4g} ({gain[0]:.4g} to {gain[1]:.4g}) in "
                f"{cast(Any, comparison).id}."
            )
            memo = {"reason": found if reason is None else reason}
            now = yield from self._set_alias(name, label, new.id, now.revision, memo=memo)
        value = types.Interval(value=sign * difference.value, low=gain[0], high=gain[1])
        return _either(Promotion(gain[0] > 0.0, now, comparison, value))

    def _revision_of(
        self,
        request: ApiRequest[types.Alias]
        | ApiRequest[types.Feedback]
        | ApiRequest[types.ReasonCodes],
    ) -> Steps[int | None]:
        """Return the revision that a thing has now; None if there is none."""
        try:
            found = yield from ask(cast("ApiRequest[Any]", request))
        except NotFound:
            return None
        return cast(int, found.revision)

    @operation
    def preview_alias(
        self,
        name: str,
        alias: str,
        model: Any = None,
        *,
        guarantee: Mapping[str, float] | Literal["keep"] | None = "keep",
        to: int | None = None,
    ) -> Steps[types.AliasPreview]:
        """Read what a change of an alias would do, without changing anything.

        Parameters
        ----------
        name : str
            Name of the model.
        alias : str
            Name of the alias.
        model : Model or str, optional
            The model that the alias would point at, its id or its reference.
        guarantee : mapping, "keep" or None
            The guarantee that the alias would get, as for `set_alias`.
        to : int, optional
            The revision that would be restored, instead of `model`.

        Returns
        -------
        types.AliasPreview
            What the alias serves now, and what it would serve: threshold, rates, share of flagged rows, calibration.
        """
        fields: dict[str, Any] = {} if model is None else {"model_id": _named(model)}
        if not isinstance(guarantee, str):
            fields["guarantee"] = NULL if guarantee is None else guarantee
        if to is not None:
            fields["revision"] = to
        return (yield from ask(api.preview_alias(name, alias, **cast(Any, fields))))

    @operation
    def restore_alias(
        self,
        name: str,
        alias: str,
        to: int | None = None,
        *,
        reason: str | None = None,
        revision: int | str | None = NOW,
    ) -> Steps[types.Alias]:
        """Restore an earlier revision of an alias: undo its last change, its deletion too.

        Parameters
        ----------
        name : str
            Name of the model.
        alias : str
            Name of the alias.
        to : int, optional
            The revision to restore. Default: the one before the newest, which undoes the last change.
        reason : str, optional
            Reason for the change.
        revision : int or str
            Restore only if this is the newest revision. Default: its current one.

        Returns
        -------
        types.Alias
            The alias as it is now.

        Raises
        ------
        NotFound
            There is no such revision.
        Conflict
            The alias was changed in the meantime, it is protected, or the model was deleted.
        """
        if to is None or revision == NOW:
            found = (yield from ask(api.list_alias_revisions(name, alias, limit=2))).data
            if to is None and len(found) < 2:
                raise ConfigurationError(f"{name}@{alias} has no earlier revision to restore")
            to = found[1].revision if to is None else to
            revision = found[0].revision if revision == NOW else revision
        request = api.restore_alias(name, alias, to, reason=reason, if_match=f'"{revision}"')
        return (yield from ask(request))

    @operation
    def protect_alias(
        self,
        name: str,
        alias: str,
        protected: bool = True,
        *,
        reason: str | None = None,
        revision: int | str | None = NOW,
    ) -> Steps[types.Alias]:
        """Set or lift the protection of an alias. Scope: admin.

        Another person must approve each change of a protected alias: use `client.alias_requests`, also to lift the
        protection.

        Parameters
        ----------
        name : str
            Name of the model.
        alias : str
            Name of the alias.
        protected : bool
            False lifts the protection.
        reason : str, optional
            Reason for the change.
        revision : int or str
            Change the alias only if it has this revision. Default: its current one.

        Returns
        -------
        types.Alias
            The alias as it is now.

        Raises
        ------
        Conflict
            The alias has another revision, or it is protected already.
        """
        if revision == NOW:
            revision = (yield from ask(api.read_alias(name, alias))).revision
        request = api.put_alias_protection(
            name, alias, protected, reason=reason, if_match=f'"{revision}"'
        )
        return (yield from ask(request))

    @operation
    def alias_evidence(
        self,
        name: str,
        alias: str,
        revision: int,
        to: str | os.PathLike[str] | BinaryIO | None = None,
        *,
        file: str | None = None,
    ) -> Steps[bytes]:
        """Download the evidence that was stored with a revision of an alias.

        It is the report, the evaluations and the comparison at that time.

        Parameters
        ----------
        name : str
            Name of the model.
        alias : str
            Name of the alias.
        revision : int
            The revision.
        to : path or binary file, optional
            Where to write it. Default: return the bytes.
        file : str, optional
            Name of one file, such as "report.html". Default: a ZIP archive of all files.

        Returns
        -------
        bytes
            The archive or the file; empty if it was written to `to`.

        Raises
        ------
        NotFound
            The revision has no evidence, or it was deleted with the model.
        """
        path = f"/v1/models/{segment(name)}/aliases/{segment(alias)}/revisions/{revision}/evidence"
        request = ApiRequest("GET", path, {} if file is None else {"file": file}, read=bytes_of)
        return (yield from self._download(request, to))

    @operation
    def delete_alias(
        self, name: str, alias: str, *, revision: int | str, reason: str | None = None
    ) -> Steps[None]:
        """Delete an alias. `restore_alias` undoes it.

        Parameters
        ----------
        name : str
            Name of the model.
        alias : str
            Name of the alias.
        revision : int or str
            Its current revision.
        reason : str, optional
            Reason for the deletion.

        Raises
        ------
        Conflict
            The alias has another revision.
        """
        request = api.delete_alias(name, alias, if_match=f'"{revision}"', reason=reason)
        yield from ask(request)

    @operation
    @keywords_of(api.put_feedback)
    def set_feedback(
        self, /, name: str, alias: str, *, revision: int | str | None = NOW, **settings: Any
    ) -> Steps[types.Feedback]:
        """Record the decisions that are made with an alias, and set what is done with them.

        Parameters
        ----------
        name : str
            Name of the model.
        alias : str
            Name of the alias.
        revision : int, str or None
            Change the settings only if they have this revision; None: only if there are none. Default: their current
            one.
        **settings
            `features`, `days`, `explore`, … Without any, all features are recorded for 400 days.

        Returns
        -------
        types.Feedback
            The settings as they are now.

        Raises
        ------
        InvalidRequest
            The settings do not fit the alias or its model.
        Conflict
            The settings have another revision.
        """
        if revision == NOW:
            revision = yield from self._revision_of(api.read_feedback(name, alias))
        request = api.put_feedback(name, alias, **cast(Any, {**settings, **_if_it_is(revision)}))
        return (yield from ask(request))

    @operation
    def delete_feedback(self, name: str, alias: str, *, revision: int | str = NOW) -> Steps[None]:
        """Record no more decisions of an alias. Those that are recorded are kept for the days of the settings.

        Parameters
        ----------
        name : str
            Name of the model.
        alias : str
            Name of the alias.
        revision : int or str
            The current revision of the settings. Default: whatever it is.

        Raises
        ------
        Conflict
            The settings have another revision.
        """
        if revision == NOW:
            revision = (yield from ask(api.read_feedback(name, alias))).revision
        yield from ask(api.delete_feedback(name, alias, if_match=f'"{revision}"'))

    @operation
    def set_reason_codes(
        self,
        name: str,
        entries: Sequence[Mapping[str, Any]],
        *,
        revision: int | str | None = NOW,
    ) -> Steps[types.ReasonCodes]:
        """Set the dictionary of reason codes of a model name.

        Parameters
        ----------
        name : str
            Name of the model.
        entries : sequence of mapping
            Each entry has "code", "text" and "columns", and may have "direction", "min", "max", "categories",
            "missing" and "letter".
        revision : int, str or None
            Replace the dictionary only if it has this revision. None only creates it. Default: its current revision.

        Returns
        -------
        types.ReasonCodes
            The dictionary as it is now.

        Raises
        ------
        Conflict
            Somebody else changed the dictionary in the meantime.
        """
        if revision == NOW:
            revision = yield from self._revision_of(api.read_reason_codes(name))
        sent = json.loads(json.dumps([dict(entry) for entry in entries]))
        request = api.put_reason_codes(name, sent, **cast(Any, _if_it_is(revision)))
        try:
            return (yield from ask(request))
        except Conflict as refusal:
            if not request.lost_answer:
                raise
            try:
                found = yield from ask(api.read_reason_codes(name))
            except NotFound:
                raise refusal from None
            follows = revision is None or str(found.revision - 1) == str(revision)
            if not follows or not _are_entries(found, sent):
                raise
            return found  # as a try whose answer was lost has left it


def _if_it_is(revision: int | str | None) -> dict[str, str]:
    """Return the condition by which a thing is changed only if it has this revision; None: only made."""
    return {"if_none_match": "*"} if revision is None else {"if_match": f'"{revision}"'}


def _are_entries(found: types.ReasonCodes, entries: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if a dictionary has these entries."""
    kept = [entry.to_json() for entry in found.entries]
    return len(kept) == len(entries) and all(
        {name: value for name, value in each.items() if value is not None}
        == {name: value for name, value in entry.items() if value is not None}
        for each, entry in zip(kept, entries, strict=True)
    )


_KEPT = ("fpr", "tpr", "flagged", "threshold", "confidence")


def _is_kept(found: types.Alias, guarantee: Mapping[str, float] | str | None) -> bool:
    """Return True if an alias has the promise that it was to get."""
    if isinstance(guarantee, str):
        return True
    kept = found.guarantee
    if guarantee is None or kept is None:
        return (guarantee is None) == (kept is None)
    return all(getattr(kept, name) == guarantee.get(name) for name in _KEPT)


class Models(_ModelsOperations, Blocking):
    """Your models: list and read them, move aliases, set reason codes. It is `client.models`.

    `client.models["churn@champion"]` returns a `Model` without a request. The service resolves the reference in each
    call.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> client.models["churn"].version
    1
    >>> client.models.set_alias("churn", "champion", "churn:1").alias
    'champion'
    >>> [each.name for each in client.models.list()]
    ['churn']
    """

    def __getitem__(self, ref: str) -> Model:
        return Model._of(self._transport, segment(ref))


class AsyncModels(_ModelsOperations, Asynchronous):
    """Like `Models`; await its calls."""

    def __getitem__(self, ref: str) -> AsyncModel:
        return AsyncModel._of(self._transport, segment(ref))


# --- evaluations, comparisons, batch scores -------------------------------------------------------


class _EvaluationsOperations(_Collection):
    list = free_items(api.list_evaluations)
    page = free(api.list_evaluations)
    get = one(api.read_evaluation, Evaluation, AsyncEvaluation)


class Evaluations(_EvaluationsOperations, Blocking):
    """Your evaluations of models on datasets: list and read them. It is `client.evaluations`.

    `client.evaluations[id]` returns an `Evaluation` without a request; only its id is known until you call `refresh`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> evaluation = client.evaluate("churn", next(client.datasets.list(name="later")).id)
    >>> client.evaluations.get(evaluation.id).status
    'ready'
    """

    def __getitem__(self, id: str) -> Evaluation:
        return cast(Evaluation, Evaluation._of_id(self._transport, id))


class AsyncEvaluations(_EvaluationsOperations, Asynchronous):
    """Like `Evaluations`; await its calls."""

    def __getitem__(self, id: str) -> AsyncEvaluation:
        return cast(AsyncEvaluation, AsyncEvaluation._of_id(self._transport, id))


class _ComparisonsOperations(_Collection):
    list = free_items(api.list_comparisons)
    page = free(api.list_comparisons)
    get = one(api.read_comparison, Comparison, AsyncComparison)


class Comparisons(_ComparisonsOperations, Blocking):
    """Your comparisons of models: list and read them. It is `client.comparisons`.

    `client.comparisons[id]` returns a `Comparison` without a request; only its id is known until you call `refresh`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> [each.status for each in client.comparisons.list()]
    ['ready']
    """

    def __getitem__(self, id: str) -> Comparison:
        return cast(Comparison, Comparison._of_id(self._transport, id))


class AsyncComparisons(_ComparisonsOperations, Asynchronous):
    """Like `Comparisons`; await its calls."""

    def __getitem__(self, id: str) -> AsyncComparison:
        return cast(AsyncComparison, AsyncComparison._of_id(self._transport, id))


class _BatchScoresOperations(_Collection):
    list = things(api.list_batch_scores, BatchScore, AsyncBatchScore)
    page = free(api.list_batch_scores)
    get = one(api.read_batch_score, BatchScore, AsyncBatchScore)

    @operation
    @keywords_of(api.validate_batch_score)
    def check(
        self,
        model: Any,
        table: Table,
        /,
        *,
        media_type: str | None = None,
        **fields: Unpack[api.ValidateBatchScore],
    ) -> Steps[types.ScoreTableCheck]:
        """Check rows as `Client.score_batch` would, without scoring them.

        Parameters
        ----------
        model : Model or str
            The model, its id or its reference.
        table : Dataset, or anything that `Client.upload` takes
            The rows, as for `Client.score_batch`.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".

        Returns
        -------
        types.ScoreTableCheck
            The number of rows, and the columns that are ignored.

        Raises
        ------
        Invalid
            The model cannot score the rows.
        """
        fields["model"] = _ref(model)
        request = api.validate_batch_score(**fields)
        return (yield from ask(_with_rows(request, table, media_type, fields)))


class BatchScores(_BatchScoresOperations, Blocking):
    """Your batch scores, tables that jobs score: list and read them. It is `client.batch_scores`.

    `client.batch_scores[id]` returns a `BatchScore` without a request; only its id is known until you call `refresh`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> [each.status for each in client.batch_scores.list()]
    ['ready']
    """

    def __getitem__(self, id: str) -> BatchScore:
        return cast(BatchScore, BatchScore._of_id(self._transport, id))


class AsyncBatchScores(_BatchScoresOperations, Asynchronous):
    """Like `BatchScores`; await its calls."""

    def __getitem__(self, id: str) -> AsyncBatchScore:
        return cast(AsyncBatchScore, AsyncBatchScore._of_id(self._transport, id))


# --- the trash ------------------------------------------------------------------------------------


class _TrashOperations(_Collection):
    list = free_items(api.list_trash)
    page = free(api.list_trash)
    restore = free(api.restore_trash_item)
    delete = free(api.delete_trash_item)


class Trash(_TrashOperations, Blocking):
    """What you deleted in the last 30 days: list, restore and delete it. It is `client.trash`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> data = client.upload([{"age": age, "churned": age % 2} for age in range(40)], name="old", label="churned")
    >>> data.delete()
    >>> [each.name for each in client.trash.list()]
    ['old']
    >>> client.trash.restore(data.id).name
    'old'
    """


class AsyncTrash(_TrashOperations, Asynchronous):
    """Like `Trash`; await its calls."""


# --- erasures -------------------------------------------------------------------------------------


class _ErasuresOperations(_Collection):
    list = free_items(api.list_erasures)
    page = free(api.list_erasures)
    get = free(api.read_erasure)
    create = free(api.create_erasure)


class Erasures(_ErasuresOperations, Blocking):
    """Your requests to erase all that is stored of an entity: list, read and make them. It is `client.erasures`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> made = client.erasures.create("c1", key_columns=["customer_id"])
    >>> client.erasures.get(made.id).done_at is None
    True
    """


class AsyncErasures(_ErasuresOperations, Asynchronous):
    """Like `Erasures`; await its calls."""


# --- requests to change protected aliases ---------------------------------------------------------

ChangeKind = Literal["set", "restore", "delete", "unprotect", "recalibrate", "restore_calibration"]


class _AliasRequestsOperations(_Collection):
    list = free_items(api.list_alias_requests)
    page = free(api.list_alias_requests)
    get = free(api.read_alias_request)
    approve = free(api.approve_alias_request)
    reject = free(api.reject_alias_request)
    withdraw = free(api.withdraw_alias_request)

    @operation
    def create(
        self,
        kind: ChangeKind,
        name: str,
        alias: str,
        reason: str,
        *,
        model: Any = None,
        guarantee: Mapping[str, float] | Literal["keep"] | None = "keep",
        memo: Mapping[str, Any] | None = None,
        revision: int | None = None,
        dataset: Any = None,
        calibration_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[types.AliasRequest]:
        """Request a change of a protected alias, which another person approves. Scope: train.

        Parameters
        ----------
        kind : str
            "set" points the alias at `model`, "restore" restores its `revision`, "delete" deletes it, "unprotect"
            lifts its protection. "recalibrate" fits the calibration of its model on `dataset`, and
            "restore_calibration" serves its `calibration_version` again.
        name : str
            Name of the model.
        alias : str
            Name of the alias.
        reason : str
            Reason for the change.
        model : Model or str, optional
            Of "set": the model, its id or its reference.
        guarantee : mapping, "keep" or None
            Of "set": as for `client.models.set_alias`.
        memo : mapping, optional
            Of "set": "review", "rows", "cost_false_positive", "cost_false_negative", "amount", "prevalence".
        revision : int, optional
            Of "restore": the revision.
        dataset : Dataset or str, optional
            Of "recalibrate": rows that the model was not trained on.
        calibration_version : int, optional
            Of "restore_calibration": the earlier calibration.
        idempotency_key : str, optional
            Identifies this request, so that a repeated call does not make another.

        Returns
        -------
        types.AliasRequest
            The open request.

        Raises
        ------
        Conflict
            The alias is not protected.
        Invalid
            The change itself would be refused.
        """
        fields: dict[str, Any] = {
            "model_id": None if model is None else _named(model),
            "memo": memo,
            "revision": revision,
            "dataset_id": None if dataset is None else _named(dataset),
            "calibration_version": calibration_version,
            "idempotency_key": idempotency_key,
        }
        if not isinstance(guarantee, str):
            fields["guarantee"] = NULL if guarantee is None else guarantee
        request = api.create_alias_request(kind, name, alias, reason, **cast(Any, fields))
        return (yield from ask(request))

    @operation
    def evidence(
        self,
        alias_request: str,
        to: str | os.PathLike[str] | BinaryIO | None = None,
        *,
        file: str | None = None,
    ) -> Steps[bytes]:
        """Download the evidence that was stored with a request: the report, the evaluations and the comparison.

        Parameters
        ----------
        alias_request : str
            Id of the request.
        to : path or binary file, optional
            Where to write it. Default: return the bytes.
        file : str, optional
            Name of one file, such as "report.html". Default: a ZIP archive of all files.

        Returns
        -------
        bytes
            The archive or the file; empty if it was written to `to`.
        """
        path = f"/v1/alias-requests/{segment(alias_request)}/evidence"
        request = ApiRequest("GET", path, {} if file is None else {"file": file}, read=bytes_of)
        return (yield from self._download(request, to))


class AliasRequests(_AliasRequestsOperations, Blocking):
    """Changes of protected aliases: request, approve, reject and withdraw them. It is `client.alias_requests`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> for request in client.alias_requests.list(state="open"):
    ...     client.alias_requests.reject(request.id, reason="Compare both versions first.")
    """


class AsyncAliasRequests(_AliasRequestsOperations, Asynchronous):
    """Like `AliasRequests`; await its calls."""


# --- alarms ---------------------------------------------------------------------------------------


class _AlarmsOperations(_Collection):
    list = free_items(api.list_alarms)
    page = free(api.list_alarms)
    get = free(api.read_alarm)
    acknowledge = free(api.acknowledge_alarm)


class Alarms(_AlarmsOperations, Blocking):
    """The alarms of the monitors of your aliases: list, read and acknowledge them. It is `client.alarms`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> for alarm in client.alarms.list(acknowledged=False):
    ...     client.alarms.acknowledge(alarm.id, reason="The new tariff, as planned.", reference="renew")
    """


class AsyncAlarms(_AlarmsOperations, Asynchronous):
    """Like `Alarms`; await its calls."""


# --- keys, algorithms, the audit log --------------------------------------------------------------


class _KeysOperations(_Collection):
    list = free_items(api.list_keys)
    page = free(api.list_keys)
    get = free(api.read_key)
    revoke = free(api.revoke_key)

    @operation
    @keywords_of(api.create_key)
    def create(
        self, name: str, scopes: Sequence[Any], **fields: Unpack[api.CreateKey]
    ) -> Steps[types.KeyWithSecret]:
        """Create an API key. Its secret is shown only once.

        Parameters
        ----------
        name : str
            Name of the key.
        scopes : sequence of str
            What the key may do: "read", "train", "score", "outcomes", "approve", "admin" or "operator".

        Returns
        -------
        types.KeyWithSecret
            The key with its `secret`.

        Raises
        ------
        SecretLost
            The key exists, but the response with its secret was lost.
        """
        return _with_secret((yield from ask(api.create_key(name, [*scopes], **fields))))

    @operation
    @keywords_of(api.rotate_key)
    def rotate(self, key_id: str, **fields: Unpack[api.RotateKey]) -> Steps[types.KeyWithSecret]:
        """Replace a key by a new one.

        The old key stays valid for `grace_seconds`. Without it, the old key ends at once.

        Parameters
        ----------
        key_id : str
            Id of the old key.

        Returns
        -------
        types.KeyWithSecret
            The new key with its `secret`.

        Raises
        ------
        SecretLost
            The response with the new secret was lost.
        """
        request = api.rotate_key(key_id, **fields)
        try:
            return _with_secret((yield from ask(request)))
        except Unauthorised as refusal:
            if not request.lost_answer:
                raise
            raise SecretLost(
                f"the response to the rotation of {key_id} was lost, and the key of this client is no longer "
                "valid: if it is the rotated key, create another one on the server with `rankwright keys "
                "create`",
                None,
            ) from refusal


def _with_secret(key: types.KeyWithSecret) -> types.KeyWithSecret:
    """Return a new key. SecretLost: if a repeated request has found it, without its secret."""
    if key.secret is None:
        raise SecretLost(
            f"the key {key.id} exists, but the response with its secret was lost, and the secret is shown "
            "only once: rotate or revoke the key",
            key.id,
        )
    return key


class Keys(_KeysOperations, Blocking):
    """Your API keys: list, create, rotate and revoke them. It is `client.keys`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> key = client.keys.create("nightly scoring", ["score"])
    >>> key.scopes
    ['score']
    >>> client.keys.revoke(key.id)
    """


class AsyncKeys(_KeysOperations, Asynchronous):
    """Like `Keys`; await its calls."""


# --- quotas ---------------------------------------------------------------------------------------


class _QuotasOperations(_Collection):
    list = free_items(api.list_quotas)
    page = free(api.list_quotas)
    get = free(api.read_quota)
    set = free(api.put_quota)
    usage = free(api.read_owner_usage)


class Quotas(_QuotasOperations, Blocking):
    """The limits of owners, for operators: list, read and set them. It is `client.quotas`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> client.quotas.set("acme", models=50, keys=10).models
    50
    >>> client.quotas.usage("acme").models.limit
    50
    >>> client.quotas.set("acme").models is None
    True
    """


class AsyncQuotas(_QuotasOperations, Asynchronous):
    """Like `Quotas`; await its calls."""


# --- retention ------------------------------------------------------------------------------------


class _RetentionOperations(_Collection):
    list = free_items(api.list_retention)
    page = free(api.list_retention)
    get = free(api.read_retention)
    set = free(api.put_retention)
    preview = free(api.preview_retention)


class Retention(_RetentionOperations, Blocking):
    """For how many days the resources of owners are kept, for operators. It is `client.retention`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> client.retention.preview("acme", datasets=730).datasets
    0
    >>> client.retention.set("acme", datasets=730).datasets
    730
    >>> client.retention.set("acme").datasets is None
    True
    """


class AsyncRetention(_RetentionOperations, Asynchronous):
    """Like `Retention`; await its calls."""


# --- holds ----------------------------------------------------------------------------------------


class _HoldsOperations(_Collection):
    list = free_items(api.list_holds)
    page = free(api.list_holds)
    get = free(api.read_hold)
    place = free(api.place_hold)
    release = free(api.release_hold)


class Holds(_HoldsOperations, Blocking):
    """Legal holds, which forbid deletions: list, read, place and release them. It is `client.holds`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> hold = client.holds.place("owner", "Case 2026-17")
    >>> client.holds.release(hold.id, "Case closed").released_at is None
    False
    """


class AsyncHolds(_HoldsOperations, Asynchronous):
    """Like `Holds`; await its calls."""


# --- schedules ------------------------------------------------------------------------------------


class _SchedulesOperations(_Collection):
    list = free_items(api.list_schedules)
    page = free(api.list_schedules)
    get = free(api.read_schedule)
    create = free(api.create_schedule)
    update = free(api.update_schedule)
    delete = free(api.delete_schedule)


class Schedules(_SchedulesOperations, Blocking):
    """Schedules: times at which datasets are refreshed. It is `client.schedules`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> dataset = client.datasets.create("s3://exports/people.csv", label="left")
    >>> schedule = client.schedules.create(dataset.id, "0 5 * * 1-5")
    >>> client.schedules.update(schedule.id, paused=True).paused_reason
    'requested'
    >>> client.schedules.delete(schedule.id)
    """


class AsyncSchedules(_SchedulesOperations, Asynchronous):
    """Like `Schedules`; await its calls."""


# --- webhooks -------------------------------------------------------------------------------------


class _WebhooksOperations(_Collection):
    list = free_items(api.list_webhooks)
    page = free(api.list_webhooks)
    get = free(api.read_webhook)
    create = free(api.create_webhook)
    update = free(api.update_webhook)
    delete = free(api.delete_webhook)
    rotate = free(api.rotate_webhook)
    ping = free(api.ping_webhook)
    deliveries = free_items(api.list_webhook_deliveries)
    deliveries_page = free(api.list_webhook_deliveries)
    replay = free(api.replay_webhook_delivery)


class Webhooks(_WebhooksOperations, Blocking):
    """Webhooks: URLs to which the service sends events. It is `client.webhooks`.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> webhook = client.webhooks.create("https://example.com/hooks", events=["job.failed"])
    >>> webhook.secret[:6]
    'whsec_'
    >>> client.webhooks.ping(webhook.id).state
    'queued'
    >>> client.webhooks.update(webhook.id, enabled=False).disabled_reason
    'requested'
    >>> client.webhooks.delete(webhook.id)
    """


class AsyncWebhooks(_WebhooksOperations, Asynchronous):
    """Like `Webhooks`; await its calls."""


# --- the clients ----------------------------------------------------------------------------------


class _ClientOperations(ApiObject):
    @returning
    @keywords_of(api.upload_dataset)
    def upload(
        self,
        table: Table,
        *,
        media_type: str | None = None,
        progress: Progress | bool | None = None,
        wait: bool = True,
        **fields: Unpack[api.UploadDataset],
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Upload a table and wait until the service has read it.

        Parameters
        ----------
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            Files are streamed. The files of a folder become one dataset, with the rows in the order of the file names.
            After an interruption, the same call sends only the files that are missing.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".
        progress : callable (sent, size) or bool, optional
            Called with the bytes sent so far and the total. True shows a bar. Default: a bar for files, on a terminal
            and in a notebook.
        wait : bool
            False returns at once.

        Returns
        -------
        Dataset
            The new dataset. By default its `name` is that of the file without its ending, or that of the folder.

        Raises
        ------
        InvalidTable
            The table cannot be used. Each error has line and column.
        ConfigurationError
            The client does not know the format of the table, or you passed `idempotency_key` with a folder.
        """
        if fields.get("name") is None and isinstance(table, (str, os.PathLike)):
            fields["name"] = Path(table).resolve().name.partition(".")[0] or None
        if is_folder(table):
            refuse_key(fields.get("idempotency_key"))
            opening = api.open_upload(**cast(Any, fields))
            files = folder_bodies(table, media_type)
            made = yield from self._send_files(files, opening, _progress(progress, True))
        else:
            body = body_of(table, media_type)
            show = _progress(progress, body.kind == "file")
            made = yield from ask(with_table(api.upload_dataset(**fields), body, show))
        return (yield from self._ended(self._make(Dataset, AsyncDataset, made), wait))

    @returning
    @keywords_of(api.submit_job)
    def train(
        self, /, dataset: Any, algorithm: str | Mapping[str, Any] = "rankboost", **options: Any
    ) -> Steps[Either[Job, AsyncJob]]:
        """Submit a training job. `train(...).wait()` returns the model.

        Parameters
        ----------
        dataset : Dataset or str
            The dataset or its id.
        algorithm : str or mapping
            A name that `algorithms()` lists, with its parameters as further arguments; or a mapping of "name" and
            parameters. "auto" tries several algorithms within `budget_seconds`.
        **options
            Parameters of the algorithm, such as `n_rounds=200`.

        Returns
        -------
        Job
            The new job.

        Raises
        ------
        Invalid
            A field or a parameter is not valid.
        """
        chosen, fields = _algorithm_and_fields(algorithm, options)
        job = yield from ask(api.submit_job(_named(dataset), chosen, **fields))
        return self._make(Job, AsyncJob, job)

    @returning
    @keywords_of(api.import_model)
    def import_model(
        self,
        name: str,
        file: str | os.PathLike[str] | BinaryIO | bytes,
        dataset: Any,
        /,
        *,
        expected: Any = None,
        **fields: Unpack[api.ImportModel],
    ) -> Steps[Either[Job, AsyncJob]]:
        """Import a model of LightGBM or XGBoost, or an artifact. `import_model(...).wait()` returns the model.

        Parameters
        ----------
        name : str
            Name of the model.
        file : path, binary file or bytes
            What `Booster.save_model` wrote (LightGBM's text, or XGBoost's JSON or UBJSON), or the artifact of a model.
        dataset : Dataset or str
            Rows to evaluate the model on. It must not have been trained on them.
        expected : sequence of float, optional
            The library's raw scores of all rows of the dataset, in their order. The job fails if the model has others.

        Returns
        -------
        Job
            The new job. Its error says what must be declared.

        Raises
        ------
        Invalid
            A field is not valid.
        """
        fields["name"], fields["dataset_id"] = name, _named(dataset)
        categories = fields.get("categories")
        if categories is not None and not isinstance(categories, str):
            fields["categories"] = json.dumps(categories)
        request = api.import_model(**fields)
        told = {field: as_text(value) for field, value in request.query.items()}
        if expected is not None:
            told["expected"] = "\n".join(repr(float(score)) for score in expected)
        body = in_form(told, body_of(file, "application/octet-stream"))
        request.query = {}
        request.headers |= body.headers()
        request.body, request.repeatable = body.chunks, body.repeatable
        job = yield from ask(request)
        return self._make(Job, AsyncJob, job)

    @returning
    @keywords_of(api.create_evaluation)
    def evaluate(
        self,
        model: Any,
        dataset: Any,
        *,
        wait: bool = True,
        **fields: Unpack[api.CreateEvaluation],
    ) -> Steps[Either[Evaluation, AsyncEvaluation]]:
        """Evaluate a model on a dataset and wait for the result.

        Parameters
        ----------
        model : Model or str
            The model, its id or its reference.
        dataset : Dataset or str
            Rows that the model was not trained on.
        wait : bool
            False returns at once.

        Returns
        -------
        Evaluation
            The evaluation; its metrics are in `metrics`. Each of the `costs` may also be a number, which is a fixed
            cost.

        Raises
        ------
        JobFailed
            The evaluation failed.
        """
        fields["costs"] = _prices(fields.get("costs"))
        made = yield from ask(api.create_evaluation(_ref(model), _named(dataset), **fields))
        return (yield from self._ended(self._make(Evaluation, AsyncEvaluation, made), wait))

    @returning
    @keywords_of(api.create_comparison)
    def compare(
        self,
        models: Sequence[Any],
        dataset: Any,
        *,
        wait: bool = True,
        **fields: Unpack[api.CreateComparison],
    ) -> Steps[Either[Comparison, AsyncComparison]]:
        """Compare models on a dataset and wait for the result.

        Parameters
        ----------
        models : sequence of Model or str
            Two or more models, their ids or their references.
        dataset : Dataset or str
            Rows that no model was trained on.
        wait : bool
            False returns at once.

        Returns
        -------
        Comparison
            The comparison. Each of the `costs` may also be a number, which is a fixed cost.

        Raises
        ------
        JobFailed
            The comparison failed.
        """
        fields["costs"] = _prices(fields.get("costs"))
        refs = [_ref(model) for model in models]
        made = yield from ask(api.create_comparison(refs, _named(dataset), **fields))
        return (yield from self._ended(self._make(Comparison, AsyncComparison, made), wait))

    @returning
    @keywords_of(api.create_batch_score)
    def score_batch(
        self,
        model: Any,
        table: Table,
        /,
        *,
        media_type: str | None = None,
        progress: Progress | bool | None = None,
        wait: bool = True,
        **fields: Unpack[api.CreateBatchScore],
    ) -> Steps[Either[BatchScore, AsyncBatchScore]]:
        """Score a table of any size in a job and wait for the result.

        For a table that fits in one request, `Model.score` is faster.

        Parameters
        ----------
        model : Model or str
            The model, its id or its reference.
        table : Dataset, or anything that `upload` takes
            The rows. A dataset is not sent again; options that say how to read a file do not apply to it.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".
        progress : callable (sent, size) or bool, optional
            As for `upload`.
        wait : bool
            False returns at once.

        Returns
        -------
        BatchScore
            The batch score. Its `result()` returns the scores as a file.

        Raises
        ------
        JobFailed
            Scoring failed.
        """
        fields["model"] = _ref(model)
        request = _with_rows(api.create_batch_score(**fields), table, media_type, fields, progress)
        made = yield from ask(request)
        return (yield from self._ended(self._make(BatchScore, AsyncBatchScore, made), wait))

    @operation
    @keywords_of(api.create_decisions)
    def send_decisions(
        self,
        model: str,
        table: Table,
        /,
        *,
        media_type: str | None = None,
        progress: Progress | bool | None = None,
        wait: bool = True,
        **fields: Unpack[api.CreateDecisions],
    ) -> Steps[Either[Job, AsyncJob]]:
        """Store decisions that another system has made, and wait until they are stored.

        Parameters
        ----------
        model : str
            The alias that the decisions are recorded for, such as "churn@live". It must record decisions.
        table : anything that `upload` takes, but no folder
            A row for each decision, with the columns `at`, `score`, `id` or `decision_id`, the recorded features, and
            optionally `threshold`, `flag`, `probability`, `explored`, `propensity` and `keep`. Rows that are stored
            already are skipped.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".
        progress : callable (sent, size) or bool, optional
            As for `upload`.
        wait : bool
            False returns at once.

        Returns
        -------
        Job
            The job that stores the decisions.

        Raises
        ------
        JobFailed
            A row is invalid, and nothing was stored. Each error has line and column.
        Conflict
            The alias does not record decisions.
        """
        fields["model"] = model
        body = body_of(table, media_type)
        request = with_table(
            api.create_decisions(**fields), body, _progress(progress, body.kind == "file")
        )
        job: Any = self._make(Job, AsyncJob, (yield from ask(request)))
        if wait:
            yield from job._until_end(None, None)
            if job.data.state != "succeeded":
                raise JobFailed(job.data.id, job.data.state, job.data.error)
        return cast("Either[Job, AsyncJob]", job)

    @operation
    def dataset_from_decisions(
        self,
        model: str,
        /,
        *,
        name: str,
        since: str | None = None,
        until: str | None = None,
        wait: bool = True,
        idempotency_key: str | None = None,
    ) -> Steps[Either[Dataset, AsyncDataset]]:
        """Create a dataset from the decisions of an alias and their outcomes, and wait until it is ready.

        Parameters
        ----------
        model : str
            The alias, such as "churn@live".
        name : str
            Name of the dataset.
        since, until : str, optional
            Only decisions from `since` until before `until`: dates, such as "2026-01-31", or times.
        wait : bool
            False returns at once.
        idempotency_key : str, optional
            Any string that identifies this request. A repeated request with the same key returns the same dataset.

        Returns
        -------
        Dataset
            The dataset. Its `source` has the number of decisions that were left out, by reason.

        Raises
        ------
        InvalidTable
            No decision of these dates is mature and has a known label.
        Conflict
            The alias does not record decisions.
        """
        source = {"decisions": model, "since": since, "until": until}
        request = api.upload_dataset(idempotency_key=idempotency_key)
        request.set_json({"name": name, "source": source})
        made = yield from ask(request)
        return (yield from self._ended(self._make(Dataset, AsyncDataset, made), wait))

    @operation
    @keywords_of(api.create_outcomes)
    def send_outcomes(
        self,
        table: Table,
        *,
        media_type: str | None = None,
        progress: Progress | bool | None = None,
        **fields: Unpack[api.CreateOutcomes],
    ) -> Steps[types.OutcomesReceived]:
        """Send what happened to the entities that were scored.

        Parameters
        ----------
        table : path, binary file, bytes, list of dict, or a table of pandas, polars or pyarrow
            The outcomes: `decision_id` or `id`, `label`, and optionally `event_at`, `known_at`, `source`, `weight` and
            `amount`. Files are CSV, NDJSON, JSON or Arrow.
        media_type : str, optional
            Media type of a file whose name does not show its format, such as "text/csv".
        progress : callable (sent, size) or bool, optional
            As for `upload`.

        Returns
        -------
        types.OutcomesReceived
            How many outcomes match a decision, correct an earlier outcome or repeat one.

        Raises
        ------
        Invalid
            An outcome is not valid. Nothing is stored.
        """
        body = body_of(table, media_type)
        request = with_table(
            api.create_outcomes(**fields), body, _progress(progress, body.kind == "file")
        )
        return (yield from ask(request))

    algorithm = free(api.read_algorithm)
    overview = free(api.read_overview)
    usage = free(api.read_usage)
    me = free(api.read_me)
    audit = free_items(api.list_audit_entries)
    audit_page = free(api.list_audit_entries)

    @iteration
    def export_audit(self, /, after: int = 0, **fields: Any) -> Items[types.AuditEntry]:
        """Iterate over the sealed entries of the audit log, oldest first, from a position to the last one.

        If the connection breaks, the client continues after the last entry.

        Parameters
        ----------
        after : int
            Position after which to begin: the `position` of the last entry that you have. Default: from the first.
        **fields
            The filters of `audit`: `principal`, `outcome`, `key_id`, `action`, `resource`, `created_after`,
            `created_before` and `of_service`.

        Yields
        ------
        types.AuditEntry
            The next entry.

        Raises
        ------
        ConnectionFailed
            Several attempts to reconnect brought no entry.
        """
        failures = 0
        while True:
            request = api.list_audit_entries(**fields, after=str(after))
            request.headers["Accept"] = NDJSON
            request.stream = True
            response = yield from send(request)
            rest = b""
            try:
                while chunk := (yield ReadChunk(response)):
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        entry = types.AuditEntry.from_json(json.loads(line))
                        after, failures = entry.position or after, 0
                        yield Item(entry)
            except BrokenConnection as error:
                failures += 1
                if failures > RETRIES:
                    raise ConnectionFailed(str(error)) from error
                yield Pause(BASE_DELAY * 2.0**failures)
                continue
            yield Close(response)
            return

    read_decision = free(api.read_decision)
    decision_files = free_items(api.list_decision_files)
    decision_file_page = free(api.list_decision_files)

    @operation
    def download_decision_file(
        self, file_id: str, to: str | os.PathLike[str] | BinaryIO | None = None
    ) -> Steps[bytes]:
        """Download a file of decisions (Parquet).

        Parameters
        ----------
        file_id : str
            Id of the file, as `decision_files` has it.
        to : path or binary file, optional
            Where to write it. Default: return the bytes.

        Returns
        -------
        bytes
            The file; empty if it was written to `to`.

        Raises
        ------
        NotFound
            There is no such file.
        """
        return (yield from self._download(api.read_decision_file(file_id), to))

    @operation
    def algorithms(self) -> Steps[list[types.Algorithm]]:
        """List the algorithms, each with the schema of its parameters.

        Returns
        -------
        list of types.Algorithm
            In the order of the service.
        """
        return (yield from ask(api.list_algorithms())).data

    @operation
    @keywords_of(api.read_fits)
    def fits(
        self, model: Sequence[str], dataset: Sequence[Any], **fields: Unpack[api.ReadFits]
    ) -> Steps[Sequence[types.Fit]]:
        """Return whether models and datasets fit together, for every pair.

        Parameters
        ----------
        model : sequence of str
            References of models.
        dataset : sequence of Dataset or str
            Datasets or their ids. At most 200 pairs in all.

        Returns
        -------
        sequence of types.Fit
            One entry per pair.
        """
        request = api.read_fits(model, [_named(each) for each in dataset], **fields)
        return (yield from ask(request)).data

    @operation
    def metrics(self) -> Steps[str]:
        """Return the operational metrics of the service in the text format of Prometheus.

        Requires the scope `operator`.

        Returns
        -------
        str
            Lines of the exposition format.
        """
        return (yield from ask(api.read_service_metrics())).decode()

    @operation
    def health(self, what: str = "ready") -> Steps[types.Health]:
        """Return the health of the service.

        Parameters
        ----------
        what : {"ready", "live", "staffed"}
            "live": the process runs. "ready": it can answer requests. "staffed": a worker is running.

        Returns
        -------
        types.Health
            The status.

        Raises
        ------
        Unavailable
            The service is not healthy.
        """
        path = f"/health/{segment(what)}"
        request = ApiRequest("GET", path, read=record_of(types.Health), repeatable=False)
        return (yield from ask(request))


def _with_rows(
    request: ApiRequest[S],
    table: Table,
    media_type: str | None,
    fields: Mapping[str, Any],
    progress: Progress | bool | None = None,
) -> ApiRequest[S]:
    """Return a request for the scores of a table with its rows, or with the id of a dataset."""
    if isinstance(table, (Dataset, AsyncDataset)):
        keep = fields.get("keep")
        columns = keep.split(",") if isinstance(keep, str) else keep
        said = {name: value for name, value in request.query.items() if name != "ignore"}
        request.set_json(
            {**said, "dataset_id": table.id, **({"keep": [*columns]} if columns else {})}
        )
        request.query = {}
        return request
    body = body_of(table, media_type)
    if body.media_type == MEDIA_TYPES[".json"]:  # of which this address reads a dataset
        body = replace(body, media_type=NDJSON)  # the bytes tell an array
    return with_table(request, body, _progress(progress, body.kind == "file"))


def _progress(given: Progress | bool | None, is_file: bool) -> Progress | None:
    if callable(given):
        return given
    if given is None:
        given = is_file and (sys.stderr.isatty() or in_notebook())
    return ProgressBar() if given else None


class ProgressBar:
    """A line on the terminal or in a notebook that shows how much of a table was sent."""

    WIDTH = 30

    def __call__(self, sent: int, size: int | None) -> None:
        """Draw the line again."""
        if size:
            part = min(1.0, sent / size)
            bar = "#" * round(part * self.WIDTH)
            line = f"\r[{bar:<{self.WIDTH}}] {part:4.0%} of {size / 1e6:.1f} MB"
        else:
            line = f"\r{sent / 1e6:.1f} MB"
        done = size is not None and sent >= size
        stream = progress_stream()
        stream.write(line + ("\n" if done else ""))
        stream.flush()


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
    url = url or os.environ.get("RANKWRIGHT_URL") or None
    api_key = api_key or os.environ.get("RANKWRIGHT_API_KEY") or None
    left = _read(folder / "address")
    if left is not None and not named and not _is_local(left):
        if url is None:
            raise ConfigurationError(
                f"{folder / 'address'} contains {left!r}, which is not this machine: pass the address of the "
                "service, or set RANKWRIGHT_STATE_DIR to another folder"
            )
        left = None
    own = url is None or (left is not None and _is_same(url, left))
    url = (url or left or DEFAULT_URL).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"the address of a service must start with http:// or https://, got {url!r}"
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
    """Client of a Rankwright service: upload tables, train models, evaluate them and score rows.

    Calls block until the service has responded. Use `AsyncClient` in asynchronous programs. A client keeps connections
    open; close it with `close()` or use it in a `with` block.

    Parameters
    ----------
    url : str, optional
        Address of the service. Default: RANKWRIGHT_URL, or else the address in the state folder of `rankwright serve`.
    api_key : str, optional
        API key. Default: RANKWRIGHT_API_KEY, or else the key in the state folder.
    state_dir : path, optional
        State folder of `rankwright serve`. Default: RANKWRIGHT_STATE_DIR, or else `.rankwright` in the current folder.
    timeout : float
        Seconds without a byte from the service after which a request fails. Also the maximum sum of the pauses between
        retries.
    retries : int
        Number of retries if the connection breaks or the service is busy.
    transport : Transport, optional
        Replaces HTTP, for tests.

    Attributes
    ----------
    datasets : Datasets
        List, read and check datasets.
    uploads : Uploads
        Upload several files as one dataset, part by part.
    jobs : Jobs
        List, read and submit jobs.
    models : Models
        List and read models, move aliases.
    evaluations : Evaluations
        List and read evaluations.
    comparisons : Comparisons
        List and read comparisons.
    batch_scores : BatchScores
        List and read batch scores.
    trash : Trash
        Restore what was deleted.
    erasures : Erasures
        Erase all that is stored of an entity.
        Erase what was recorded of an entity.
    alias_requests : AliasRequests
        Request and approve changes of protected aliases.
    alarms : Alarms
        Acknowledge the alarms of monitors.
    keys : Keys
        Create, rotate and revoke API keys.
    quotas : Quotas
        The limits of owners, for operators.
    retention : Retention
        For how many days the resources of owners are kept, for operators.
    holds : Holds
        Legal holds, which forbid deletions.
    schedules : Schedules
        Times at which datasets are refreshed.
    webhooks : Webhooks
        URLs to which the service sends events.

    Notes
    -----
    A pickle contains the arguments without the API key. Where it is loaded, the client finds a key as `Client()` does.

    Examples
    --------
    >>> import rankwright
    >>> client = rankwright.Client()
    >>> data = client.upload("churn.csv", label="churned")
    >>> data.rows, data.positives
    (200, 95)
    >>> model = client.train(data, "rankboost", n_rounds=20, name="churn").wait()
    >>> 0.8 < model.auc.value < 1
    True
    >>> [row["score"] > 0 for row in model.score([{"age": 71, "plan": "basic"}, {"age": 20, "plan": "gold"}])]
    [True, False]
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
        self.trash = Trash(self._transport)
        self.erasures = Erasures(self._transport)
        self.alias_requests = AliasRequests(self._transport)
        self.alarms = Alarms(self._transport)
        self.keys = Keys(self._transport)
        self.quotas = Quotas(self._transport)
        self.retention = Retention(self._transport)
        self.holds = Holds(self._transport)
        self.schedules = Schedules(self._transport)
        self.webhooks = Webhooks(self._transport)

    @property
    def url(self) -> str:
        """Address of the service."""
        return str(self._transport.url)

    def __reduce__(self) -> Any:
        """Return how a copy in another process is made. TypeError: if the client has a transport of the caller's."""
        if self._found_again is None:
            raise TypeError("a client with a custom transport cannot be pickled")
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
    """Client for asynchronous programs: the same operations as `Client`, awaited.

    Iterate over lists with `async for`. Close it with `await client.close()` or use it in an `async with` block.

    Parameters
    ----------
    url, api_key, state_dir, timeout, retries
        As for `Client`.
    transport : AsyncTransport, optional
        Replaces HTTP, for tests.

    Attributes
    ----------
    datasets, uploads, jobs, models, evaluations, comparisons, batch_scores, trash, erasures, alias_requests, alarms
    keys, quotas, retention, holds, schedules, webhooks
        As for `Client`; await their calls.

    Examples
    --------
    >>> import asyncio
    >>> import rankwright
    >>> async def score() -> bool:
    ...     async with rankwright.AsyncClient() as client:
    ...         found = await client.models["churn"].score([{"age": 71, "plan": "basic"}])
    ...         return found[0]["score"] > 0
    >>> asyncio.run(score())
    True
    """

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
        self.trash = AsyncTrash(self._transport)
        self.erasures = AsyncErasures(self._transport)
        self.alias_requests = AsyncAliasRequests(self._transport)
        self.alarms = AsyncAlarms(self._transport)
        self.keys = AsyncKeys(self._transport)
        self.quotas = AsyncQuotas(self._transport)
        self.retention = AsyncRetention(self._transport)
        self.holds = AsyncHolds(self._transport)
        self.schedules = AsyncSchedules(self._transport)
        self.webhooks = AsyncWebhooks(self._transport)

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
