"""The job that reads an uploaded dataset: its steps before and after the reader."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypeVar, cast

import orjson
from typing_extensions import TypedDict

from app.access import quotas
from app.datasets import repository
from app.datasets.fields import TableFields
from app.datasets.sources import REMOTE
from app.ingest.formats import Dialect
from app.jobs.execution import complete_output
from app.jobs.kinds import Claim, JobKind, Output, PublishedOutput, Work
from app.jobs.progress import Callback
from app.platform.blobs import BlobKey, Publisher
from app.platform.documents import GradeRows, QuerySizes, TableFile
from app.platform.errors import Conflict
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import Dataset, DatasetStatus, Job, UploadRow, VersionMode

Row = TypeVar("Row", bound=UploadRow)

TABLES = "tables"


class Limits(TypedDict):
    rows: int
    columns: int
    bytes: int
    categories: int
    category_length: int


class Bytes(TypedDict):
    path: str
    content_type: str
    content_encoding: str | None


class BoundedBytes(Bytes):
    """The bytes of a table, and the limits that apply to it."""

    limits: Limits


class ParentTable(TypedDict):
    """A ready table to which rows are appended. `pairs` has each label's negative value and positive class, then the
    values of a class of several.
    """

    path: str
    sha256: str
    rows: int | None
    columns: list[Json]
    pairs: dict[str, list[str]]


class Described(Work):
    """What a reader of tables gets: the fields of `TableFields` by name, and limits. `bytes_setting` is the setting of
    the limit of bytes, if it is not that of uploads.
    """

    limits: Limits
    bytes_setting: NotRequired[str]
    dataset_kind: str
    dialect: Json | None


class IngestPayload(Described, Bytes):
    """The payload of the reader of an upload."""

    parent: ParentTable | None


class Found(TypedDict):
    """What the reader determines for the dataset's row; `dialect` if a part of it was detected."""

    rows: int
    positives: int | None
    negatives: int | None
    label: str | None
    labels: list[Json] | None
    item: str | None
    positive: str | None
    negative: str | None
    queries: QuerySizes | None
    grades: list[GradeRows] | None
    columns: list[Json]
    warnings: list[Json]
    dialect: NotRequired[Json]


class WrittenTable(Work):
    """A Parquet file in the work folder."""

    file: str
    sha256: str


class IngestResult(WrittenTable, Found):
    """`profile` is a file; `sheets` are a workbook's readable sheets. Only parts have `content_sha256`."""

    profile: str
    sheet: str | None
    sheets: list[str] | None
    content_sha256: NotRequired[str]


class UploadOutput(Output[Row]):
    """The output of a job that reads an upload: the dataset, or its pairs."""

    @property
    def key(self) -> str:
        """The key of the dataset's id in the job's specification."""
        return "dataset_id"

    def find_to_make(self, session: Session, claim: Claim) -> Row:
        """Raises Conflict if the upload does not wait for this job."""
        row = super().find_to_make(session, claim)
        if row.status != DatasetStatus.PROCESSING:
            raise self.lost(claim)
        return row

    def find_to_retry(self, session: Session, old: Job) -> Row:
        """Lock the row that a retry completes; raises Conflict unless it is invalid and that job's."""
        row = super().find_to_retry(session, old)
        if row.status != DatasetStatus.INVALID:
            raise Conflict(
                f"an upload can be read again only if it is invalid; that of {row.id} is {row.status}",
                code="job_not_retryable",
            )
        return row

    def reassign(self, row: Row, job: Job) -> None:
        super().reassign(row, job)
        row.status, row.errors = DatasetStatus.PROCESSING, []

    def on_end(self, session: Session, job: Job, error: Json | None) -> None:
        """Set the upload of a job without a result to invalid."""
        if error is None:
            errors = [{"detail": f"the upload's job was {job.state}"}]
        else:
            errors = error.get("errors") or [{"detail": error.get("detail")}]
        repository.mark_invalid(session, self.table, job.id, errors)

    def describe(self, id_: str) -> str:
        return f"the upload of {id_}"

    def deleted(self, id_: str) -> Conflict:
        return Conflict(f"{self.describe(id_)} is not waiting to be read", code="dataset_deleted")

    def lost(self, claim: Claim) -> Conflict:
        """Another job reads or has read the upload."""
        return self.deleted(claim.spec[self.key])

    def _update_row(self, session: Session, claim: Claim, columns: Mapping[str, Any]) -> bool:
        if (rows := columns.get("rows")) is not None:
            quotas.admit_rows(session, claim.owner, rows)
        id_ = claim.spec[self.key]
        return repository.mark_ready(session, self.table, claim.owner, id_, claim.job_id, columns)


DATASETS = UploadOutput(Dataset, "ds", "dataset")


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> IngestPayload:
    """If rows are appended, the payload has the parent table."""
    parent = find_parent_table(session, claim)
    dataset = DATASETS.find_to_make(session, claim)
    return {
        **describe_columns(dataset, settings, workdir),
        "path": BlobKey(dataset.upload_key),
        "content_type": dataset.content_type,
        "content_encoding": dataset.content_encoding,
        "parent": parent,
    }


def describe_columns(dataset: Dataset, settings: Settings, workdir: Path) -> Described:
    described = describe_fields(TableFields.of(dataset), dataset.dialect, settings, workdir)
    if dataset.source is not None and dataset.mode != VersionMode.APPEND:  # not an upload
        is_remote = dataset.source["kind"] in REMOTE
        most, setting = (
            (settings.source_bytes, "RANKWRIGHT_SOURCE_BYTES")
            if is_remote
            else (settings.max_dataset_bytes, "RANKWRIGHT_MAX_DATASET_BYTES")
        )
        described["limits"]["bytes"], described["bytes_setting"] = most, setting
    return described


def describe_fields(
    fields: TableFields, dialect: Json | None, settings: Settings, workdir: Path
) -> Described:
    told = {
        **fields.model_dump(exclude={"name", "kind", *Dialect.model_fields}),
        "dataset_kind": fields.kind,
        "dialect": dialect,
        "limits": limits(settings),
        "workdir": str(workdir),
    }
    return cast(Described, told)


def hash_appended(before: str, added: str) -> str:
    """Return the SHA-256 of both hex digests, concatenated."""
    return hashlib.sha256(f"{before}{added}".encode()).hexdigest()


def find_parent_table(session: Session, claim: Claim) -> ParentTable | None:
    """Return the table to which rows are appended; None otherwise. Raises Conflict if it was deleted."""
    if (parent_id := claim.spec.get("append_to")) is None:
        return None
    parent = repository.find(session, claim.owner, parent_id)
    if parent is None:
        raise Conflict(
            f"dataset {parent_id}, to which the rows should be appended, was deleted",
            code="dataset_deleted",
        )
    return parent_of(parent)


def parent_of(dataset: Dataset) -> ParentTable:
    """Return what the reader of appended rows must know."""
    assert dataset.table_key is not None
    labels = dataset.labels or [
        {"name": dataset.label, "negative": dataset.negative, "positive": dataset.positive}
    ]
    return {
        "path": BlobKey(dataset.table_key),
        "sha256": dataset.sha256,
        "rows": dataset.rows,
        "columns": [
            {member: column[member] for member in ("name", "type", "role")}
            for column in dataset.columns
        ],
        "pairs": {
            label["name"]: [
                label["negative"],
                label["positive"],
                *several_positives(dataset, label["name"]),
            ]
            for label in labels
            if label["name"] is not None and label["positive"] is not None
        },
    }


def several_positives(dataset: Dataset, label: str) -> list[str]:
    """Return a label's positive values, if there are several; otherwise nothing."""
    column = next(each for each in dataset.columns if each["name"] == label)
    found = [each["value"] for each in column.get("values") or () if each["positive"]]
    return found if len(found) > 1 else []


def limits(settings: Settings) -> Limits:
    return {
        "rows": settings.max_rows,
        "columns": settings.max_columns,
        "bytes": settings.max_upload_bytes,
        "categories": settings.max_categories,
        "category_length": settings.max_category_length,
    }


def read_file(payload: IngestPayload, callback: Callback) -> IngestResult:
    """Read an upload of one file and write the typed table."""
    from app.ingest.build import append, ingest

    read = ingest if payload["parent"] is None else append
    return cast(IngestResult, read(payload, callback) | {"workdir": payload["workdir"]})


def publish(blobs: Publisher, claim: Claim, result: IngestResult) -> PublishedOutput:
    """Return the values of the dataset's row, with its profile."""
    workdir = Path(result["workdir"])
    profile = orjson.loads((workdir / result["profile"]).read_bytes())
    found = {name: value for name, value in result.items() if name in Found.__annotations__}
    columns = {**found, **publish_table(blobs, result)}
    if "content_sha256" in result:  # the size of files on the server is known only now
        columns["sha256"] = result["content_sha256"]
    return PublishedOutput(columns, [repository.profile_of(claim.spec[DATASETS.key], profile)])


def publish_table(blobs: Publisher, result: WrittenTable) -> Json:
    table = blobs.publish(Path(result["workdir"]) / result["file"], TABLES, result["sha256"])
    return {"table_key": table.key, "table_bytes": table.bytes}


def find_to_read(session: Session, owner: str, dataset_id: str | None) -> Dataset:
    """Raises Conflict if the dataset was deleted after the job was submitted."""
    dataset = repository.find(session, owner, dataset_id or "")
    if dataset is None:
        raise Conflict(
            f"dataset {dataset_id} was deleted before the job ran", code="dataset_deleted"
        )
    return dataset


def table_of(dataset: Dataset) -> TableFile:
    """Return the blob keys of a dataset's table and pairs, and the roles of the columns."""
    pairs = dataset.pairs
    return {
        "path": BlobKey(dataset.table_key or ""),
        "pairs": BlobKey(pairs.table_key) if pairs and pairs.table_key else None,
        "label": dataset.label,
        "labels": [label["name"] for label in dataset.labels or []],
        "weight": dataset.weight,
        "group": dataset.group,
        "query": dataset.query,
    }


def lock_inputs(
    session: Session, job: Job, *more: str | None, to_change: bool = False
) -> list[Dataset]:
    """Lock the datasets (`more`, too) that a retry reads. Raises Conflict if one was deleted."""
    ids = [id_ for id_ in (job.dataset_id, *more) if id_ is not None]
    repository.lock_shared(session, job.owner, ids, to_change=to_change)
    found = []
    for id_ in ids:
        dataset = repository.find_alone(session, job.owner, id_)
        if dataset is None:
            raise Conflict(
                f"a job can be retried only while its dataset exists, but {id_} was deleted",
                code="dataset_deleted",
            )
        found.append(dataset)
    return found


def check_newest(session: Session, parent: Dataset) -> None:
    """Raise Conflict unless rows may be appended: only to the newest valid version of a series."""
    newest = repository.newest_version(session, parent.owner, parent.series_id)
    if newest is None or newest.id == parent.id:
        return
    raise Conflict(
        f"rows can be appended only to the newest version; {parent.id} is version {parent.version}, and version "
        f"{newest.version} ({newest.id}) is {newest.status}",
        code="not_the_newest_version",
    )


def lock_tables(session: Session, old: Job) -> None:
    """Lock the datasets of a retry. Raises Conflict if its version is no longer the newest to append to."""
    _, *parents = lock_inputs(session, old, old.spec.get("append_to"), to_change=True)
    for parent in parents:
        check_newest(session, parent)


KIND = JobKind(
    name="ingest",
    prepare=prepare,
    run=read_file,
    publish=publish,
    complete=complete_output,
    output=DATASETS,
    before_retry=lock_tables,
    on_end=DATASETS.on_end,
)
