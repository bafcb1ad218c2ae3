"""Datasets: accept, list, preview and delete them; their versions and pairs; and the checks of jobs that use them.

A version of a dataset is another table with the same roles, a table with more rows appended, or the same table read
with other fields. No version ever changes. The versions of a table are its *series*, identified by the first one. They
have one name. Version numbers are assigned under a lock of the name, and never reused, so a name and a version identify
one of an owner's datasets. Rows can be appended only to the newest version of a series. If two callers append rows at
the same time, the second gets an error, so that every later version has all accepted rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from app.access import holds
from app.datasets import repository
from app.datasets import tasks as ingest_job
from app.datasets.description import (
    Format,
    find_dialect,
    refuse_clash,
)
from app.datasets.fields import TableFields, VersionFields
from app.datasets.protected import PROTECTED, marks_of
from app.datasets.sources import REMOTE, DatasetSource, remote_source_of
from app.ingest import hints
from app.ingest.fields import MAX_TEXT_LENGTH
from app.ingest.formats import PARQUET, Dialect, merge, passed_on
from app.ingest.values import DATETIME, spell_date
from app.jobs import service as jobs
from app.jobs.parameters import protected_features
from app.platform.audit import describe
from app.platform.blobs import Blob, BlobStore
from app.platform.connections import Connections
from app.platform.documents import DatasetLineage, TableDialect
from app.platform.errors import Conflict, Invalid, NotFound, TooLarge, counted, shown
from app.platform.ids import is_id, new_id
from app.platform.settings import Settings
from app.platform.sql import ALL_ROWS, Json, Page, RowFilter, Session
from app.platform.tables import (
    Dataset,
    DatasetKind,
    DatasetProfile,
    DatasetStatus,
    Model,
    VersionMode,
)
from core.base.columns import MIN_DISTINCT_ROWS, are_kinds

if TYPE_CHECKING:
    import pyarrow as pa

MAX_NAMED = 10
CHECKED_ROWS = 5
"""Rows of a checked table that are shown."""
_READ_ROWS = 1 << 14
COPIES = ("together", "groups", "few_kinds", "time")
"""Where equal rows of a table stand in a split: on one side, or on both sides for this reason."""


Fetch = Callable[[str], Path]
"""Returns a local file with the bytes of a blob, by its key."""


@dataclass(frozen=True)
class StoredUpload:
    """The stored bytes of a table and their format. `size` and `sha256`: of the table, or of its parts' manifest."""

    blob: Blob
    size: int
    sha256: str
    format: Format

    @classmethod
    def of(cls, blob: Blob, format_: Format) -> StoredUpload:
        return cls(blob, blob.bytes, blob.sha256, format_)

    @classmethod
    def unread(cls, blob: Blob) -> StoredUpload:
        """Return an empty blob, in the place of an upload until a source is read."""
        return cls.of(blob, Format(PARQUET, None))


@dataclass(frozen=True)
class VersionSource:
    """The parent dataset (None for a first version), the version's number, and whether the parent's rows come first."""

    parent: Dataset | None
    version: int
    appends: bool = False

    def columns(self, upload: StoredUpload) -> dict[str, Any]:
        """Return the columns of the row that describe the version's origin."""
        if self.parent is None:
            return {"version": self.version, "sha256": upload.sha256}
        return {
            "first_id": self.parent.series_id,
            "version": self.version,
            "parent_id": self.parent.id,
            "base_id": self.parent.rows_from if self.appends else None,
            "source": self.parent.source if self.appends else None,
            "sha256": ingest_job.hash_appended(self.parent.sha256, upload.sha256)
            if self.appends
            else upload.sha256,
        }


def find(session: Session, owner: str, dataset_id: str, *, lock: bool = False) -> Dataset:
    """With `lock`, locked until the transaction ends. Raises NotFound."""
    dataset = None
    if is_id(dataset_id, "ds"):
        dataset = repository.find(session, owner, dataset_id, lock=lock)
    if dataset is None:
        raise NotFound(f"there is no dataset {dataset_id[:100]!r}")
    return dataset


def list_page(
    session: Session,
    owner: str,
    *,
    name: str | None = None,
    only: RowFilter = ALL_ROWS,
    latest: bool = False,
    limit: int,
    after: str | None,
) -> Page[Dataset]:
    """Newest first. `latest`: only the newest ready version of each series."""
    if name is not None and (not 0 < len(name) <= MAX_TEXT_LENGTH or "\0" in name):
        detail = f"name must have 1 to {MAX_TEXT_LENGTH} characters and no NUL"
        raise Invalid(detail, errors=[{"parameter": "name", "detail": detail}])
    return repository.list_page(
        session, owner, name=name, only=only, latest=latest, limit=limit, after=after
    )


def profile(session: Session, owner: str, dataset_id: str) -> tuple[Dataset, DatasetProfile]:
    """Raises Conflict if there is no profile."""
    dataset = find(session, owner, dataset_id)
    found = repository.find_profile(session, dataset.id)
    if found is None:
        raise Conflict(
            f"dataset {dataset.id} must be ready and read by this version of the service or a later one to "
            f"have a profile; it is {dataset.status}",
            code="dataset_not_ready",
        )
    return dataset, found


def describe_copies(
    dataset: Dataset, counts: Mapping[str, Any], *, by_time: bool = False
) -> dict[str, Any]:
    """Return a profile's counts of duplicates; `in_splits` (one of `COPIES`): whether a job's splits keep them
    together.

    A split by time ignores equal rows. Otherwise the rows of a group, of a query, or else with equal features stay
    together (`app.training.splits.Units`), except in a table of two classes with few distinct rows. Null for pairs: a
    job splits the pairs.
    """
    rows, where = dataset.rows or 0, "together"
    kinds = counts.get("kinds", None if counts["estimated"] else rows - counts["repeated"])
    if dataset.kind == DatasetKind.PREFERENCES:
        return {**counts, "kinds": kinds, "in_splits": None}
    if by_time:
        where = "time"
    elif dataset.group is not None or dataset.query is not None:
        where = "groups"
    elif dataset.kind == DatasetKind.BIPARTITE and kinds is not None and are_kinds(kinds, rows):
        where = "few_kinds"
    few = kinds if kinds is not None and kinds < MIN_DISTINCT_ROWS else None
    return {**counts, "kinds": few, "in_splits": where}


def find_copies(session: Session, owner: str, dataset_id: str, *, by_time: bool) -> Any:
    """Return `describe_copies`; None if there is no profile."""
    counts = repository.find_duplicates(session, owner, dataset_id)
    if counts is None:
        return None
    return describe_copies(find(session, owner, dataset_id), counts, by_time=by_time)


def preview(fetch: Fetch, dataset: Dataset, limit: int) -> dict[str, Any]:
    """Return the first rows of a ready dataset, with the columns in the dataset's order."""
    if dataset.status != DatasetStatus.READY or dataset.table_key is None:
        raise Conflict(
            f"dataset {dataset.id} must be ready, but is {dataset.status}", code="dataset_not_ready"
        )
    labels = dataset.labels or [
        {"name": dataset.label, "negative": dataset.negative, "positive": dataset.positive}
    ]
    return _first_rows(fetch(dataset.table_key), dataset.columns, labels, limit)


def _first_rows(
    path: Path, described: Sequence[Json], labels: Sequence[Json], limit: int, after: int = 0
) -> dict[str, Any]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        batch = None
        for read in file.iter_batches(batch_size=min(after + limit, _READ_ROWS)):
            if after < read.num_rows:
                batch = read.slice(after, limit)
                break
            after -= read.num_rows
    columns = [] if batch is None else [_plain(column) for column in batch.columns]
    dates = {
        each["name"] for each in described if each["role"] == "feature" and each["type"] == DATETIME
    }
    for at, name in enumerate(names if columns else ()):
        if name in dates:
            columns[at] = [None if value is None else spell_date(value) for value in columns[at]]
    for label in labels:  # stored as 0 and 1; the preview has the caller's values
        if label["name"] in names and columns and label["positive"] is not None:
            words = (label["negative"], label["positive"])
            at = names.index(label["name"])
            columns[at] = [words[int(value)] for value in columns[at]]
    return {"columns": names, "data": [list(row) for row in zip(*columns, strict=True)]}


def _plain(column: pa.Array) -> list[Any]:
    """NaN and infinity become null."""
    import pyarrow as pa

    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [
            value if value is not None and abs(value) < float("inf") else None for value in values
        ]
    return [
        value if isinstance(value, bool | int | float | None) else _cut(str(value))
        for value in values
    ]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT_LENGTH else text[:MAX_TEXT_LENGTH] + "…"


def delete(session: Session, owner: str, dataset_id: str) -> None:
    """Move the dataset to the trash, unless a queued or running job uses it. Its models are kept."""
    dataset = _find_unused(session, owner, dataset_id)
    repository.trash_dataset(session, owner, dataset.id)
    describe(session, f"Dataset {dataset.name}:{dataset.version} → trash")


def delete_for_good(
    session: Session, owner: str, dataset_id: str, check: Callable[[Session], None]
) -> None:
    """Delete the dataset permanently, unless a queued or running job uses it. Its models are kept.

    The sweeper later removes the bytes, to which no row refers any more. `check` is called after the dataset is locked,
    and may raise an error.
    """
    dataset = _find_unused(session, owner, dataset_id)
    check(session)
    repository.delete_dataset(session, owner, dataset.id)
    describe(session, f"Dataset {dataset.name}:{dataset.version} → permanently deleted")


def _find_unused(session: Session, owner: str, dataset_id: str) -> Dataset:
    """Lock the dataset; raises Conflict if an unfinished job uses it, or a legal hold covers it."""
    holds.lock(session, owner)
    holds.check(session, owner, dataset_id=dataset_id)
    dataset = find(session, owner, dataset_id, lock=True)
    busy = repository.unfinished_jobs(session, owner, dataset.id)
    if busy:
        raise Conflict(
            f"dataset {dataset.id} is used by {len(busy)} unfinished job{'' if len(busy) == 1 else 's'}: "
            f"{', '.join(busy[:5])}",
            code="dataset_in_use",
        )
    return dataset


def accept(
    session: Session,
    settings: Settings,
    owner: str,
    fields: TableFields,
    upload: StoredUpload,
    source: VersionSource | None = None,
    upload_id: str | None = None,
) -> Dataset:
    """Create the dataset and its job in the caller's transaction.

    With `upload_id`, the bytes are the parts of that upload, which already count towards the quota.
    """
    dataset_id = new_id("ds")
    if (
        source is None
    ):  # this locks the name, before the quota, so that two transactions cannot deadlock
        source = VersionSource(None, repository.next_version(session, owner, fields.name))
    spec: dict[str, Any] = {"dataset_id": dataset_id}
    if upload_id is not None:
        spec["upload_id"] = upload_id
    if source.parent is not None and source.appends:
        spec["append_to"] = source.parent.id
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=jobs.INGEST if upload_id is None else jobs.INGEST_FILES,
        name=fields.name,
        spec=spec,
        dataset_id=dataset_id,
        adds_bytes=0 if upload_id is not None else upload.size,
    )
    roles = [f"{name} {text}" for name, text in fields.texts().items() if name != "name"]
    described = ", ".join([f"version {source.version}", *roles])
    describe(session, f"Dataset {fields.name}: {described}")
    return repository.insert_dataset(
        session,
        id=dataset_id,
        owner=owner,
        job_id=job.id,
        content_type=upload.format.content_type,
        content_encoding=upload.format.content_encoding,
        reading=fields.reading(),
        dialect=find_dialect(fields, upload.format),
        upload_key=upload.blob.key,
        upload_sha256=upload.blob.sha256,
        bytes=upload.size,
        **fields.roles(),
        **source.columns(upload),
    )


def accept_source(
    session: Session,
    settings: Settings,
    owner: str,
    fields: TableFields,
    source: DatasetSource,
    empty: StoredUpload,
    refreshed: Dataset | None = None,
) -> Dataset:
    """Create a dataset whose rows a job takes from a source, and that job, in the caller's transaction.

    `empty` replaces an upload until the job has succeeded. `refreshed` is the dataset whose source is read again: the
    new one is the next version of its series, and needs about as many bytes.
    """
    dataset_id = new_id("ds")
    # this locks the name, before the quota
    number = repository.next_version(session, owner, fields.name)
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=jobs.INGEST_FETCHED if source["kind"] in REMOTE else jobs.INGEST_SOURCE,
        name=fields.name,
        spec={"dataset_id": dataset_id},
        dataset_id=dataset_id,
        adds_bytes=0 if refreshed is None else refreshed.bytes,
    )
    origin = VersionSource(refreshed, number).columns(empty) | {"source": source}
    again = "" if refreshed is None else f", refresh of {refreshed.id}"
    describe(session, f"Dataset {fields.name}: version {number}, from {_name_of(source)}{again}")
    return repository.insert_dataset(
        session,
        id=dataset_id,
        owner=owner,
        job_id=job.id,
        content_type=empty.format.content_type,
        content_encoding=empty.format.content_encoding,
        reading=fields.reading(),
        dialect=fields.dialect,
        upload_key=empty.blob.key,
        upload_sha256=empty.blob.sha256,
        bytes=empty.size,
        refresh_of=None if refreshed is None else refreshed.id,
        **fields.roles(),
        **origin,
    )


def accept_refresh(
    session: Session,
    settings: Settings,
    connections: Connections,
    owner: str,
    dataset_id: str,
    empty: StoredUpload,
) -> Dataset:
    """Create the dataset that reads another's source again, and its job; `empty` is as in `accept_source`.

    Raises NotFound, Conflict for a dataset that cannot be refreshed, and Invalid for a source that is no longer
    allowed.
    """
    refreshed = find(session, owner, dataset_id)
    source = check_refresh(connections, refreshed)
    fields = TableFields.of(refreshed)
    return accept_source(session, settings, owner, fields, source, empty, refreshed)


def _name_of(source: Mapping[str, Any]) -> str:
    if source["kind"] == "decisions":
        return f"decisions of {source['decisions']}"
    return source.get("url") or f"{source['connection']}/{source['query']}"


def check_refresh(connections: Connections, refreshed: Dataset) -> DatasetSource:
    """Raises as `accept_refresh` does."""
    source = refreshed.source
    if source is None or source["kind"] not in REMOTE or refreshed.mode == VersionMode.APPEND:
        raise Conflict(
            f"only a dataset from a connection can be refreshed; the rows of {refreshed.id} were "
            f"{'uploaded' if source is None or refreshed.mode == VersionMode.APPEND else 'decisions'}",
            code="not_refreshable",
        )
    if refreshed.status != DatasetStatus.READY:
        raise Conflict(
            f"dataset {refreshed.id} must be ready to be refreshed, but is {refreshed.status}",
            code="dataset_not_ready",
        )
    return remote_source_of(source["kind"]).describe(connections, source)


def check_table(
    blobs: BlobStore,
    settings: Settings,
    fields: TableFields,
    upload: Path,
    kind: Format,
    parent: ingest_job.ParentTable | None = None,
) -> dict[str, Any]:
    """Read a table as the worker would, without storing anything. Raises BadTable with every error.

    It runs in the API's process, so its limits are lower. The table, together with the table that it would be added to,
    may be as large as the largest ordinary body; decompressed, it may be as large as a table for scoring. Parquet is
    refused, because a file of any size can state any number of values.
    """
    from app.ingest.readers import bounded

    size = upload.stat().st_size
    if parent is not None:
        size += Path(parent["path"]).stat().st_size
    if size > settings.max_body_bytes:
        raise TooLarge(
            f"a table to check can have at most {settings.max_body_bytes} bytes "
            f"(RANKWRIGHT_MAX_BODY_BYTES), got {size}"
        )
    workdir = blobs.staging_dir()
    try:
        table, most = (kind.content_type, kind.content_encoding), settings.max_score_bytes
        limits = cast(Mapping[str, int], ingest_job.limits(settings))
        small = bounded(upload, *table, limits, most, workdir)
        payload: ingest_job.IngestPayload = {
            **ingest_job.describe_fields(fields, find_dialect(fields, kind), settings, workdir),
            **cast(ingest_job.BoundedBytes, small),
            "parent": parent,
        }
        result = ingest_job.read_file(payload, lambda step, of, info: None)
        labels = result["labels"] or [
            {
                "name": result["label"],
                "negative": result["negative"],
                "positive": result["positive"],
            }
        ]
        preview = _first_rows(
            workdir / result["file"],
            result["columns"],
            labels,
            CHECKED_ROWS,
            after=0 if parent is None else parent["rows"] or 0,
        )
    finally:
        shutil.rmtree(workdir)
    return {
        "valid": True,
        "rows": result["rows"],
        "positives": result["positives"],
        "negatives": result["negatives"],
        "queries": result["queries"],
        "grades": result["grades"],
        "columns": [column | marks_of(column) for column in result["columns"]],
        "warnings": result["warnings"],
        "sheet": result["sheet"],
        "sheets": result["sheets"],
        "preview": preview,
    }


def find_parent(session: Session, owner: str, parent_id: str, mode: str) -> Dataset:
    """Raises NotFound, or Conflict if the dataset cannot have a new version now."""
    parent = find(session, owner, parent_id)
    _check_takes_version(session, parent, mode)
    return parent


def accept_version(
    session: Session,
    settings: Settings,
    owner: str,
    parent_id: str,
    new: VersionFields,
    upload: StoredUpload,
    upload_id: str | None = None,
) -> Dataset:
    """Create the version and its job in the caller's transaction. `upload_id` is as in `accept`."""
    parent = find(session, owner, parent_id, lock=True)
    number = repository.next_version(session, owner, parent.name)  # this locks the series
    _check_takes_version(session, parent, new.mode)
    source = VersionSource(parent, number, appends=new.mode == VersionMode.APPEND)
    described = describe_as(parent, new, upload.format)
    version = accept(session, settings, owner, described, upload, source, upload_id)
    if source.appends and parent.pairs is not None:
        # Pairs name items by their row numbers, which do not change.
        repository.copy(session, parent.pairs, version.id)
        session.expire(version, ["pairs"])
    return version


def check_version(
    blobs: BlobStore,
    fetch: Fetch,
    settings: Settings,
    parent: Dataset,
    new: VersionFields,
    upload: Path,
    kind: Format,
) -> dict[str, Any]:
    """Read the version's table as the worker would, without storing anything. Raises BadTable with every error."""
    described = describe_as(parent, new, kind)
    append_to = None
    if new.mode == VersionMode.APPEND:
        append_to = ingest_job.parent_of(parent)
        append_to["path"] = str(fetch(append_to["path"]))
    return check_table(blobs, settings, described, upload, kind, append_to)


def list_versions(
    session: Session, owner: str, dataset_id: str, *, limit: int, after: str | None
) -> Page[Dataset]:
    """Return the versions of the dataset's series, newest first."""
    series_id = find(session, owner, dataset_id).series_id
    return repository.list_page(session, owner, series_id=series_id, limit=limit, after=after)


def _check_takes_version(session: Session, parent: Dataset, mode: str) -> None:
    """Raise Conflict unless the dataset is ready and, to append rows, is the newest version of its series."""
    if parent.status != DatasetStatus.READY:
        raise Conflict(
            f"dataset {parent.id} must be ready before a version can be added, but is {parent.status}",
            code="dataset_not_ready",
        )
    if mode == VersionMode.APPEND:
        ingest_job.check_newest(session, parent)


def describe_as(parent: Dataset, new: VersionFields, kind: Format) -> TableFields:
    """Return the parent's fields, and the fields of its dialect that apply to the format."""
    fields = TableFields.of(parent)
    own = fields.dialect or {}
    if kind.charset is not None:
        own = own | {"encoding": kind.charset}
    choices = Dialect.choices()
    own = {
        field: word
        for field, word in own.items()
        if choices[field].means_something(kind.content_type)
    }
    dialect = merge(own, new.dialect or {})
    refuse_clash(dialect)
    return fields.model_copy(update={**dict.fromkeys(Dialect.model_fields), **dialect})


def refuse_pair_fields(given: Mapping[str, str]) -> None:
    """Raise Invalid for any upload field: the columns of pairs are always better, worse and weight."""
    if given:
        detail = (
            "a table of pairs has no fields; its columns are better, worse and weight; got "
            f"{', '.join(given)[:100]}"
        )
        raise Invalid(detail, errors=[{"parameter": field, "detail": detail} for field in given])


def check_pairs_open(session: Session, owner: str, dataset_id: str) -> None:
    """Raise NotFound or Conflict unless pairs are accepted now. Called before the bytes are received."""
    _check_takes_pairs(session, owner, find(session, owner, dataset_id))


def accept_pairs(
    session: Session, settings: Settings, owner: str, dataset_id: str, upload: StoredUpload
) -> Dataset:
    """Replace the pairs and submit the job that reads them, in the caller's transaction."""
    holds.lock(session, owner)
    holds.check(session, owner, dataset_id=dataset_id)
    dataset = find(session, owner, dataset_id, lock=True)
    _check_takes_pairs(session, owner, dataset)
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=jobs.INGEST_PAIRS,
        name=dataset.name,
        spec={"dataset_id": dataset.id},
        dataset_id=dataset.id,
        adds_bytes=upload.size,
    )
    repository.replace(
        session,
        owner,
        dataset.id,
        job_id=job.id,
        content_type=upload.format.content_type,
        content_encoding=upload.format.content_encoding,
        upload_key=upload.blob.key,
        bytes=upload.size,
        sha256=upload.sha256,
    )
    session.expire(dataset, ["pairs"])
    return dataset


def _check_takes_pairs(session: Session, owner: str, dataset: Dataset) -> None:
    """Raise Conflict unless the dataset is ready, compares items by pairs, and no unfinished job uses it."""
    if dataset.kind != DatasetKind.PREFERENCES:
        raise Conflict(
            f"pairs require a dataset of kind {DatasetKind.PREFERENCES}; {dataset.id} is of kind "
            f"{dataset.kind}",
            code="wrong_kind",
        )
    if dataset.status != DatasetStatus.READY:
        raise Conflict(
            f"dataset {dataset.id} must be ready before pairs can be added, but is {dataset.status}",
            code="dataset_not_ready",
        )
    busy = repository.unfinished_jobs(session, owner, dataset.id)
    if busy:
        raise Conflict(
            f"dataset {dataset.id} is used by {len(busy)} unfinished job{'' if len(busy) == 1 else 's'}: "
            f"{', '.join(busy[:5])}",
            code="dataset_in_use",
        )


def feature_columns(dataset: Dataset, also: Collection[str] = ()) -> list[Json]:
    """Return the profiles of features, in the order of the table; protected columns `also` are features, too."""
    return [
        column
        for column in dataset.columns
        if column["role"] == "feature" or (column["role"] == PROTECTED and column["name"] in also)
    ]


def lock_datasets(session: Session, owner: str, *ids: str | None) -> None:
    """Lock the datasets of a new job in one statement, before they are checked."""
    repository.lock_shared(session, owner, [id_ for id_ in ids if id_ and is_id(id_, "ds")])


def ready_dataset(
    session: Session, owner: str, dataset_id: str, position: Mapping[str, str]
) -> Dataset:
    """Raises NotFound and Conflict with the `position` in the request, such as `{"pointer": "/dataset_id"}`."""
    dataset = None
    if is_id(dataset_id, "ds"):
        dataset = repository.find_alone(session, owner, dataset_id)
    if dataset is None:
        detail = f"there is no dataset {shown(dataset_id)}"
        raise NotFound(detail, errors=[{**position, "detail": detail}])
    if dataset.status != DatasetStatus.READY:
        detail = f"dataset {dataset.id} must be ready, but is {dataset.status}"
        if dataset.status == DatasetStatus.UNCHANGED:
            detail += f": use {dataset.refresh_of}, which has the same rows"
        raise Conflict(detail, code="dataset_not_ready", errors=[{**position, "detail": detail}])
    return dataset


def check_pairs_ready(dataset: Dataset, pointer: str | None = None) -> None:
    """Raise Conflict for a dataset of kind `preferences` without ready pairs."""
    if dataset.kind != DatasetKind.PREFERENCES:
        return
    status = dataset.pairs.status if dataset.pairs is not None else None
    if status == DatasetStatus.READY:
        return
    state = "it has none" if status is None else f"they are {status}"
    detail = f"dataset {dataset.id} must have ready pairs, but {state}: PUT /v1/datasets/{dataset.id}/pairs"
    errors = [] if pointer is None else [{"pointer": pointer, "detail": detail}]
    raise Conflict(detail, code="pairs_not_ready", errors=errors)


def find_misfit(dataset: Dataset, other: Dataset, also: Collection[str] = ()) -> str | None:
    """Return a phrase with the features that the other dataset lacks or has with another type; None without any.

    Protected columns `also` are features, too.
    """
    return missing_features(feature_columns(dataset, also), other)


def missing_features(features: Sequence[Mapping[str, Any]], other: Dataset) -> str | None:
    """Return a phrase with the features that a dataset lacks or has with another type; None without any."""
    has = {
        column["name"]: column
        for column in other.columns
        if column["role"] in {"feature", PROTECTED, "identifier"}
    }
    missing = [column["name"] for column in features if column["name"] not in has]
    if missing:
        features_named = counted(len(missing), "feature", "features")
        return f"lacks {features_named}: {', '.join(map(repr, missing[:10]))}"
    kinds = {name: c["type"] == "categorical" for name, c in has.items() if c["distinct"]}
    differ = [
        f"{column['name']!r} {'' if is_categorical else 'not '}categorical"
        for column in features
        if (is_categorical := column["type"] == "categorical")
        != kinds.get(column["name"], is_categorical)
    ]
    return f"must have {', '.join(differ[:10])}: declare this in the upload" if differ else None


def label_values(dataset: Dataset | Model) -> list[tuple[str | None, ...]]:
    """Return (negative, positive); for several labels, (negative, positive, name) of each."""
    if dataset.labels is None:
        return [(dataset.negative, dataset.positive)]
    return [(entry["name"], entry["negative"], entry["positive"]) for entry in dataset.labels]


def show_labels(dataset: Dataset | Model) -> str:
    """Return label values for a message, grouped by label if there are several."""
    shown = []
    for *name, negative, positive in label_values(dataset):
        of = f" of {name[0]!r}" if name else ""
        shown.append(f"{positive!r} (positive) and {negative!r}{of}")
    return "; ".join(shown[:5]) + ("; …" if len(shown) > 5 else "")


def table_dialect_of(dataset: Dataset | None) -> TableDialect | None:
    """Return the default dialect for tables that the model scores; None for a deleted dataset."""
    if dataset is None:
        return None
    missing, dialect = dataset.reading["missing"], passed_on(dataset.dialect)
    if not dialect and missing is None:
        return None
    return cast(TableDialect, {"missing": missing, **dialect})


def is_constant(column: Mapping[str, Any]) -> bool:
    """True also if all values are missing; one with only some missing is not: that may separate rows."""
    distinct, missing = column["distinct"], column["missing"]
    return bool(distinct == 0 or (distinct == 1 and missing == 0))


def lineage_of(dataset: Dataset) -> DatasetLineage:
    """Return the version and content hash, to store with a job. Versions with the same `rows_from` share its rows."""
    assert dataset.sha256 is not None  # the dataset is ready
    return {
        "id": dataset.id,
        "name": dataset.name,
        "version": dataset.version,
        "sha256": dataset.sha256,
        "pairs_sha256": None if dataset.pairs is None else dataset.pairs.sha256,
        "rows_from": dataset.rows_from,
    }


def shares_rows(one: DatasetLineage | None, other: DatasetLineage | None) -> bool:
    """Return True if contents are equal, or rows were appended to the same version. None means unknown."""
    if one is None or other is None:
        return False
    return any(one[name] == other[name] for name in ("id", "sha256", "rows_from"))


def notes_on(spec: Mapping[str, Any], dataset: Dataset | None) -> Iterator[str]:
    """Yield the warnings about a training job's data; `dataset` is None if it was deleted."""
    if dataset is not None:
        yield from _notes_on_split(spec["validation"], dataset)
    validation = spec["validation_dataset"]
    if validation is not None and shares_rows(spec.get("dataset"), validation):
        yield (
            f"the validation dataset {validation['id']} has rows that the model was trained on, so the metrics "
            "are too optimistic"
        )
    also = protected_features(spec)
    constant = [
        repr(column["name"])
        for column in (feature_columns(dataset, also) if dataset is not None else [])
        if column["distinct"] and is_constant(column)
    ]
    if constant:
        shown = ", ".join(constant[:MAX_NAMED]) + (", …" if len(constant) > MAX_NAMED else "")
        features = counted(len(constant), "feature has", "features have")
        yield f"{features} the same value in all rows of the dataset: {shown}"


def _notes_on_split(validation: Mapping[str, Any], dataset: Dataset) -> Iterator[str]:
    """Warn of duplicate rows, if the dataset is split at random."""
    if validation["method"] in ("none", "dataset") or validation.get("time_column") is not None:
        return
    dates = hints.date_columns(dataset.columns)
    if dates:
        way_out, name = "validate on a dataset of later rows", hints.time_column(dataset.columns)
        if dataset.kind == DatasetKind.BIPARTITE and name is not None:
            way_out = f"set validation.time_column to {shown(name)} to validate on the newest rows"
        yield (
            f"the rows are split at random although the feature {shown(name or dates[0]['name'])} has "
            f"dates: on later rows the model may be much worse than its metrics; {way_out}"
        )
    grouped = dataset.group is not None or dataset.query is not None
    if not grouped and (group := hints.group_column(dataset.columns, dataset.rows or 0)):
        yield (
            f"the rows are split at random although {shown(group)} seems to identify what a row belongs "
            "to: rows with the same value are on both sides of the split, so the metrics may be too "
            f"optimistic; reread the dataset with group={group}"
        )
