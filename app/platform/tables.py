"""All tables, for SQLite and PostgreSQL. They are in one module because they refer to each other across domains.

Times are in seconds since 1970; `sql` has the clock.
"""

from __future__ import annotations

import functools
import operator
from enum import StrEnum
from typing import Annotated, Any, TypeVar, cast

from sqlalchemy import (
    JSON,
    BindParameter,
    CheckConstraint,
    ColumnElement,
    Computed,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Table,
    UniqueConstraint,
    column,
    event,
    exists,
    false,
    func,
    literal,
    or_,
    select,
    text,
)
from sqlalchemy.orm import (
    Mapped,
    column_property,
    declared_attr,
    foreign,
    mapped_column,
    query_expression,
    relationship,
)

from app.platform.callers import acting_principal
from app.platform.documents import (
    AliasCutoff,
    Baseline,
    BatchSummary,
    BestMargin,
    DatasetLineage,
    ErasureReport,
    EvidenceFile,
    FeatureImportance,
    FoldAuc,
    FoldMembers,
    HeldOutBins,
    Imported,
    LabelValues,
    LeaderboardRow,
    Member,
    MetricBaselines,
    ModelFeature,
    MonotoneProof,
    Objective,
    Parameters,
    ProtectedColumn,
    ProxyTest,
    Reliability,
    RequestedChange,
    Search,
    StoredFeedback,
    StoredGuarantee,
    StoredMemo,
    StoredReasonEntry,
    TableDialect,
    TableProfile,
    Validation,
    Window,
    WindowBaselines,
)
from app.platform.sql import Base, Json, contains, db_now

T = TypeVar("T")
Document = Annotated[T, mapped_column(JSON(none_as_null=True))]
"""A column of JSON whose keys `platform.documents` says."""


class JobState(StrEnum):
    """The state of a job: queued → running → succeeded | failed | cancelled | timed_out. A running job whose lease is
    lost is queued again.

    A job that fans out waits until its child jobs are done, and is then queued again to join their results.
    """

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


FINAL_STATES = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT)


class DatasetKind(StrEnum):
    """Rows with a label of two values, items that pairs compare, rows with several labels, or rows with a grade."""

    BIPARTITE = "bipartite"
    PREFERENCES = "preferences"
    MULTILABEL = "multilabel"
    GRADED = "graded"


class VersionMode(StrEnum):
    """The rows of a new version: its parent's followed by the upload's, or the upload's alone."""

    APPEND = "append"
    REPLACE = "replace"


class DatasetStatus(StrEnum):
    """The status of a dataset: processing → ready | invalid | unchanged (a refresh that read the rows it refreshed)."""

    PROCESSING = "processing"
    READY = "ready"
    INVALID = "invalid"
    UNCHANGED = "unchanged"


class BlobState(StrEnum):
    """The state of a blob in the catalogue: stored → deleted."""

    STORED = "stored"
    DELETED = "deleted"


class Upkeep(StrEnum):
    """Upkeep of the whole service whose last success is recorded: a backup, a round of housekeeping."""

    BACKUP = "backup"
    HOUSEKEEPING = "housekeeping"


class BlobEntry(Base):
    """The catalogue entry of a blob in the store (`app.platform.catalogue`).

    The entry of a deleted blob is kept for a while, so that no transaction can refer to the blob afterwards.
    """

    __tablename__ = "blobs"

    key: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    sha256: Mapped[str]
    bytes: Mapped[int]
    state: Mapped[str]
    published_at: Mapped[float]


class BlobHold(Base):
    """A hold on all blobs by a running backup: until it ends, the sweeper deletes none."""

    __tablename__ = "blob_holds"

    id: Mapped[str] = mapped_column(primary_key=True)
    since: Mapped[float]


class LastSuccess(Base):
    """When upkeep of the whole service last succeeded: one row for each kind, `Upkeep`."""

    __tablename__ = "last_successes"

    what: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[float]


def file_bytes(table: Table) -> ColumnElement[int]:
    """Return the SQL expression for the size of a row's files: the sum of its columns `bytes` and `…_bytes`."""
    sizes = [
        func.coalesce(column, 0)
        for column in table.c
        if column.name == "bytes" or column.name.endswith("_bytes")
    ]
    return functools.reduce(operator.add, sizes, literal(0))


class Owned(Base):
    """A table whose rows belong to owners. A query for an owner selects by `readable_by`, and by nothing else.

    All rules on whose rows a caller may read, change or delete are in this one place.
    """

    __abstract__ = True

    owner: Mapped[str]

    @classmethod
    def belongs_to(cls, owner: str | BindParameter[str]) -> ColumnElement[bool]:
        """Return the condition that a row is this owner's, including rows in the trash, which count towards quotas."""
        return cls.owner == owner

    @classmethod
    def readable_by(cls, owner: str | BindParameter[str]) -> ColumnElement[bool]:
        """Return the condition that a row is readable by this owner: it belongs to the owner."""
        return cls.belongs_to(owner)

    @classmethod
    def stored_bytes(cls) -> ColumnElement[int]:
        """Return the SQL expression for the size in bytes of a row's files in the blob store."""
        return file_bytes(cast(Table, cls.__table__))


class Trashable(Owned):
    """A table whose rows are moved to the trash when they are deleted (`app.trash`).

    Queries do not return rows in the trash. They can be restored until they are deleted permanently.
    """

    __abstract__ = True

    deleted_at: Mapped[float | None]
    """When the row was put into the trash; null outside it."""

    @classmethod
    def readable_by(cls, owner: str | BindParameter[str]) -> ColumnElement[bool]:
        """Return the condition that a row is readable by this owner: it belongs to the owner, and is not deleted."""
        return cls.belongs_to(owner) & cls.deleted_at.is_(None)

    @classmethod
    def in_trash_of(cls, owner: str | BindParameter[str]) -> ColumnElement[bool]:
        """Return the condition that a row is in the trash of this owner."""
        return cls.belongs_to(owner) & cls.deleted_at.is_not(None)


class Principal(Base):
    """A person or thing that can act; sessions, the audit log and revisions refer to it.

    `kind` is `key`, `person` or `service`. The issuer vouches for the subject: for a key, the service itself (`ISSUER`)
    and the id of the first key, which its successors share. It has no owner: a person may act for several. `name` is
    for people, and may change. `created_by` is the principal that created this one (null: none did).
    """

    __tablename__ = "principals"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    ISSUER = "rankwright"

    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    issuer: Mapped[str]
    subject: Mapped[str]
    name: Mapped[str | None]
    created_by: Mapped[str | None]
    created_at: Mapped[float]


class ApiKey(Owned):
    """A caller's key. Only its SHA-256 is stored; a person recognises it in a list by its `prefix`.

    `holder_id` is the principal that the key is for, if its creator named one.
    """

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
    principal_id: Mapped[str] = mapped_column(ForeignKey("principals.id"), index=True)
    holder_id: Mapped[str | None]
    owner: Mapped[str]
    name: Mapped[str]
    prefix: Mapped[str]
    sha256: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    created_at: Mapped[float]
    expires_at: Mapped[float | None]
    last_used_at: Mapped[float | None]
    revoked_at: Mapped[float | None]
    successor_id: Mapped[str | None]


class BrowserSession(Base):
    """A browser that is signed in to the console, or a link that signs one in once (`is_link`).

    It belongs to a principal. It expires, or ends with the key that started it (`key_id`), if one did. Only the SHA-256
    of the browser's token is stored.

    A person's session has the `owner` that the person chose, the `groups` that the identity provider named, and its
    `provider_session` (`sid`), if it has one. It is refreshed from `refresh_at` on with the encrypted `refresh_token`;
    each refresh postpones its expiry. Both are null without a refresh token.
    """

    __tablename__ = "browser_sessions"

    sha256: Mapped[str] = mapped_column(primary_key=True)
    principal_id: Mapped[str] = mapped_column(
        ForeignKey("principals.id", ondelete="CASCADE"), index=True
    )
    key_id: Mapped[str | None] = mapped_column(
        ForeignKey("api_keys.id", ondelete="CASCADE"), index=True
    )
    is_link: Mapped[bool]
    created_at: Mapped[float]
    expires_at: Mapped[float] = mapped_column(index=True)
    owner: Mapped[str | None]
    groups: Mapped[list[str] | None]
    provider_session: Mapped[str | None]
    refresh_token: Mapped[str | None]
    refresh_at: Mapped[float | None] = mapped_column(index=True)


class JobOutputRow(Owned):
    """The output of a job. The row is inserted with the job, belongs to it, and is completed when the job succeeds."""

    __abstract__ = True

    id: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[str] = mapped_column(index=True)
    created_at: Mapped[float]

    @declared_attr
    def job(cls) -> Mapped[Job]:  # noqa: N805 - SQLAlchemy passes the class
        """The job that creates the output. It is kept as long as the output."""
        return relationship(
            primaryjoin=lambda: foreign(cls.__table__.c.job_id) == Job.id, viewonly=True
        )

    @classmethod
    def sort_name(cls) -> ColumnElement[str]:
        """Return the name that a list is ordered by: the model's name, or the dataset's if there are several models."""
        columns = cls.__table__.c
        return columns["model_name" if "model_name" in columns else "dataset_name"]

    @classmethod
    def of_model(cls, model_id: str) -> ColumnElement[bool]:
        """Return the condition that a row belongs to this model; false for a table without models."""
        columns = cls.__table__.c
        return columns["model_id"] == model_id if "model_id" in columns else false()

    @classmethod
    def of_dataset(cls, dataset_id: str) -> ColumnElement[bool]:
        """Return the condition that a row belongs to this dataset."""
        return cls.__table__.c.dataset_id == dataset_id


class UploadRow(JobOutputRow):
    """Bytes that a job reads: the original bytes (`upload_key`) and, once ready, the Parquet file (`table_key`).

    The status is a column of its own, and not only the job's, because queries select datasets by it.
    """

    __abstract__ = True

    status: Mapped[str]
    content_type: Mapped[str]
    content_encoding: Mapped[str | None]
    upload_key: Mapped[str]
    table_key: Mapped[str | None]
    table_bytes: Mapped[int | None]
    bytes: Mapped[int]
    sha256: Mapped[str]
    errors: Mapped[list[Json]]


class Dataset(Trashable, UploadRow):
    """An uploaded table.

    A later version is a row of its own; no version ever changes. `first_id` is the first version of the series,
    `parent_id` the version that this one was made from, and `base_id` the version whose rows it begins with. `first_id`
    and `base_id` are null if they equal the row's own id. All three versions may have been deleted.

    `version` numbers the owner's datasets of a name. All versions of a series have the same name. Datasets of a name
    that were accepted before revision 0116 may share a number.
    """

    __tablename__ = "datasets"
    __table_args__ = (
        UniqueConstraint("first_id", "version"),
        Index(None, "owner", "created_at", "id"),
        Index(None, "owner", "deleted_at"),
        Index(None, "parent_id"),
        Index(None, "base_id"),
    )

    name: Mapped[str]
    kind: Mapped[str]
    job_id: Mapped[str] = mapped_column(nullable=True, index=True)
    upload_sha256: Mapped[str] = mapped_column(server_default="")
    label: Mapped[str | None]
    positive: Mapped[str | None]
    negative: Mapped[str | None]
    weight: Mapped[str | None]
    group: Mapped[str | None] = mapped_column("group_column")
    query: Mapped[str | None] = mapped_column("query_column")
    queries: Mapped[Json | None]
    grades: Mapped[list[Json] | None]
    item: Mapped[str | None]
    labels: Mapped[list[Json] | None]
    reading: Mapped[Json]
    dialect: Mapped[Json | None]
    rows: Mapped[int | None]
    positives: Mapped[int | None]
    negatives: Mapped[int | None]
    columns: Mapped[list[Json]]
    warnings: Mapped[list[Json]] = mapped_column(server_default="[]")
    first_id: Mapped[str | None]
    version: Mapped[int] = mapped_column(server_default="1")
    parent_id: Mapped[str | None]
    base_id: Mapped[str | None]
    source: Mapped[Json | None]
    """Where the service took the rows from, and what it found there. Null: they were uploaded."""
    refresh_of: Mapped[str | None]
    """The version whose source was read again. It may have been deleted."""

    pairs: Mapped[DatasetPairs | None] = relationship(viewonly=True)
    n_columns: Mapped[int | None] = query_expression()  # for lists, which do not read the columns

    @property
    def series_id(self) -> str:
        """The id of the first version."""
        return self.first_id or self.id

    @property
    def rows_from(self) -> str:
        """The id of the version whose rows this version begins with. Versions with the same id share these rows."""
        return self.base_id or self.id

    @property
    def mode(self) -> str | None:
        """How the version was derived from its parent; None for a first version."""
        if self.parent_id is None:
            return None
        return VersionMode.REPLACE if self.base_id is None else VersionMode.APPEND

    @property
    def label_values(self) -> list[Json] | None:
        """The values of the only label in the upload, with their numbers of rows; None if unknown."""
        return self._of_label().get("values") or None

    @property
    def positive_guessed(self) -> bool | None:
        """True if the service guessed which value of the label is positive; None if unknown."""
        return self._of_label().get("guessed")

    def _of_label(self) -> Json:
        return next((each for each in self.columns or () if each["name"] == self.label), {})


class DatasetPairs(UploadRow):
    """The pairs of a dataset of kind `preferences`; once ready, pairs of row numbers. Their id is the dataset's."""

    __tablename__ = "dataset_pairs"

    id: Mapped[str] = mapped_column(
        "dataset_id", ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    pairs: Mapped[int | None]
    items: Mapped[int | None]
    weighted: Mapped[bool | None]

    @declared_attr
    def owner(cls) -> Mapped[str]:  # noqa: N805 - SQLAlchemy passes the class
        """The dataset's owner."""
        own = select(Dataset.owner).where(Dataset.id == cls.id)
        return column_property(own.correlate_except(Dataset).scalar_subquery())

    @classmethod
    def belongs_to(cls, owner: str | BindParameter[str]) -> ColumnElement[bool]:
        """Return the condition that the dataset belongs to this owner; it uses the index of the datasets."""
        return cls.id.in_(select(Dataset.id).where(Dataset.belongs_to(owner)))

    @classmethod
    def readable_by(cls, owner: str | BindParameter[str]) -> ColumnElement[bool]:
        """Return the condition that the dataset is readable by this owner; it uses the index of the datasets."""
        return cls.id.in_(select(Dataset.id).where(Dataset.readable_by(owner)))


class Upload(Owned):
    """Files that are sent one by one, and then become one dataset.

    `fields` is the caller's description of the table. `touched_at` is the time of the last part. `dataset_id` is set
    when the upload is closed: then the parts belong to the dataset, and are deleted with it.
    """

    __tablename__ = "uploads"
    __table_args__ = (
        Index(None, "owner", "created_at", "id"),
        Index(None, "touched_at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    fields: Mapped[Json]
    created_at: Mapped[float]
    touched_at: Mapped[float]
    dataset_id: Mapped[str | None] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), unique=True
    )

    @classmethod
    def readable_by(cls, owner: str | BindParameter[str]) -> ColumnElement[bool]:
        """Return the condition that an upload is readable by this owner: its dataset, if any, is not in the trash."""
        trashed = exists().where(Dataset.id == cls.dataset_id, Dataset.deleted_at.is_not(None))
        return cls.belongs_to(owner) & ~trashed


class UploadPart(Base):
    """One file of an upload: bytes in the store (`upload_key`), or a file on the server (`path`).

    `stamp` has the size and the modification time of a file on the server when it was added. The id is the upload's id
    followed by the part's number, so ids have the order of the parts.
    """

    __tablename__ = "upload_parts"
    __table_args__ = (UniqueConstraint("upload_id", "number"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    upload_id: Mapped[str] = mapped_column(ForeignKey("uploads.id", ondelete="CASCADE"))
    number: Mapped[int]
    content_type: Mapped[str]
    content_encoding: Mapped[str | None]
    charset: Mapped[str | None]
    bytes: Mapped[int]
    sha256: Mapped[str | None]
    upload_key: Mapped[str | None] = mapped_column(index=True)
    path: Mapped[str | None]
    stamp: Mapped[Json | None]
    created_at: Mapped[float]


def _validation_dataset(column_name: str, *path: str) -> ColumnElement[str]:
    """Return the SQL of the member `dataset_id` of a validation: of a JSON column, or of the object at `path` in it."""
    member: ColumnElement[str] = column(column_name, JSON)[(*path, "dataset_id")].as_string()
    return member


class Job(Owned):
    """A background job. The rows are the queue: a conditional UPDATE claims a job, and assigns lease and token.

    A child job is a row with a parent, and `stage` and `part` number it there. `deadline_at` is set when a job fans
    out, and is the same for its child jobs. The next attempt resumes from `checkpoint_key`. `keep_requested_at` is set
    when the owner asks to end early with the best model so far: then the job ends early, and succeeds. `beaten_at` is
    the machine's time of the claim or the last heartbeat; NULL on PostgreSQL. `yield_requested_at` is set when the job
    is to give way at its next checkpoint to a job of another owner, and cleared when it is queued again. `yielded_at`
    is when it last did so, and `yielded_seconds` the time that it had run until then. `request_id` is the id of the
    request that submitted the job, and `traceparent` the trace context in which it did (`app.platform.trace`).
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("parent_id", "stage", "part"),
        Index(None, "state", "not_before", "priority", "created_at"),
        Index(None, "state", "owner", "parent_id"),
        Index(None, "finished_at"),
        Index(None, "yielded_at"),
        Index(None, "owner", "created_at", "id"),
        Index(None, "name", "owner", "kind", "state", "created_at"),
        Index(None, "retry_of"),
        Index(None, "dataset_id"),
        Index(None, "validation_dataset_id"),
        CheckConstraint(
            "state IN ('queued','running','waiting','succeeded','failed','cancelled','timed_out')",
            name="state",
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    name: Mapped[str]
    state: Mapped[str]
    spec: Mapped[Json]
    tags: Mapped[Json]
    dataset_id: Mapped[str | None]
    validation_dataset_id: Mapped[str | None] = mapped_column(
        Computed(
            func.coalesce(
                _validation_dataset("spec", "validation"),
                _validation_dataset("spec", "training", "validation"),
            ),
            persisted=True,
        )
    )
    """The dataset that `spec` validates on. A job that measures importance keeps the specification of its training as
    `training`.
    """
    retry_of: Mapped[str | None]
    request_id: Mapped[str | None]
    traceparent: Mapped[str | None]
    parent_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    stage: Mapped[int | None]
    part: Mapped[int | None]
    priority: Mapped[int]
    attempt: Mapped[int]
    max_attempts: Mapped[int]
    timeout_seconds: Mapped[float]
    deadline_at: Mapped[float | None]
    not_before: Mapped[float]
    lease_token: Mapped[int]
    lease_expires_at: Mapped[float | None]
    heartbeat_count: Mapped[int] = mapped_column("beats")
    beaten_at: Mapped[float | None]
    worker_id: Mapped[str | None]
    cancel_requested_at: Mapped[float | None]
    keep_requested_at: Mapped[float | None]
    yield_requested_at: Mapped[float | None]
    yielded_at: Mapped[float | None]
    yielded_seconds: Mapped[float | None]
    progress: Mapped[Json]
    event_seq: Mapped[int]
    error: Mapped[Json | None]
    result: Mapped[Json | None]
    model_id: Mapped[str | None]
    checkpoint_key: Mapped[str | None]
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]


class JobEvent(Base):
    """An event of a job. Events are numbered from 1 without gaps (by `jobs.event_seq`)."""

    __tablename__ = "job_events"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[float]
    type: Mapped[str]
    data: Mapped[Json]


class JobUpload(Owned):
    """A file that a job reads, as it was sent. The row exists until the job has ended: then the file is deleted."""

    __tablename__ = "job_uploads"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    part: Mapped[str] = mapped_column(primary_key=True)
    """What the job calls the file, such as `table`."""
    owner: Mapped[str]
    content_type: Mapped[str]
    content_encoding: Mapped[str | None]
    upload_key: Mapped[str] = mapped_column(index=True)
    upload_bytes: Mapped[int]


class OutboxEvent(Owned):
    """An event about a resource of the owner, for subscribers (`app.platform.outbox`)."""

    __tablename__ = "events"
    __table_args__ = (Index(None, "owner", "at", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    type: Mapped[str]
    data: Mapped[Json]
    at: Mapped[float]


class DeliveryState(StrEnum):
    """The state of a delivery. One that is being sent is queued: its lease is the time until it is due again."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(Base):
    """The delivery of an event to a target. A process that claims it increments `lease_token`, and moves `due_at` to
    the end of its lease.
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        Index(None, "state", "due_at"),
        Index(None, "target", "created_at", "event_id"),
        Index(None, "target", "state", "due_at"),
        CheckConstraint("state IN ('queued','delivered','failed')", name="state"),
    )

    event_id: Mapped[str] = mapped_column(
        ForeignKey("events.id", ondelete="CASCADE"), primary_key=True
    )
    target: Mapped[str] = mapped_column(primary_key=True)
    """Id of a webhook, which may be deleted."""
    attempt: Mapped[int]
    earlier_attempts: Mapped[int] = mapped_column(server_default="0")
    """Attempts before the last replay. The schedule of retries starts again with each replay."""
    due_at: Mapped[float]
    lease_token: Mapped[int]
    state: Mapped[str]
    created_at: Mapped[float] = mapped_column(server_default="0")
    """The time of the event."""


class DeliveryAttempt(Base):
    """One attempt at a delivery: the status of the response, or why there was none (`error`, a code)."""

    __tablename__ = "delivery_attempts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["event_id", "target"], ["deliveries.event_id", "deliveries.target"], ondelete="CASCADE"
        ),
    )

    event_id: Mapped[str] = mapped_column(primary_key=True)
    target: Mapped[str] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[float]
    status: Mapped[int | None]
    """HTTP status of the response; null without one."""
    error: Mapped[str | None]
    seconds: Mapped[float]
    response: Mapped[str | None]
    """The first kilobyte of the response body."""


class WebhookDisabled(StrEnum):
    """Why a webhook is disabled: by its owner, because the receiver answered 410, or because it failed for too long."""

    REQUESTED = "requested"
    GONE = "gone"
    FAILING = "failing"


class Webhook(Owned):
    """A URL to which events of the owner are sent.

    `secret` signs the deliveries, and is encrypted (`app.webhooks.secrets`). After a rotation, `previous_secret` signs
    them, too, until `previous_valid_until`. `disabled_reason` is a `WebhookDisabled`. `failing_since` is the time of
    the first failed attempt since the last success; null if the last attempt succeeded.
    """

    __tablename__ = "webhooks"
    __table_args__ = (Index(None, "owner", "created_at", "id"), Index(None, "failing_since"))

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    url: Mapped[str]
    description: Mapped[str]
    events: Mapped[list[str]]
    """Types of events, sorted; empty: all."""
    secret: Mapped[str]
    previous_secret: Mapped[str | None]
    previous_valid_until: Mapped[float | None]
    author: Mapped[str | None]
    principal_id: Mapped[str | None] = mapped_column(default=acting_principal)
    created_at: Mapped[float]
    disabled_at: Mapped[float | None]
    disabled_reason: Mapped[str | None]
    failing_since: Mapped[float | None]


class SchedulePaused(StrEnum):
    """Why a schedule is paused: by a request, because its principal may no longer act, or without its dataset."""

    REQUESTED = "requested"
    KEY_ENDED = "key_ended"
    SCOPE_MISSING = "scope_missing"
    ROLE_MISSING = "role_missing"
    DATASET_DELETED = "dataset_deleted"


class Schedule(Owned):
    """Times at which a dataset is refreshed (`app.schedules`).

    `dataset_id` is the dataset that the last run has refreshed. If the job of that run, `last_job_id`, has succeeded,
    the next run refreshes what it has made, `last_dataset_id`. `due_at` is the next due time; null while it is paused.
    Runs act as the principal; `groups` are its groups when it created or resumed the schedule, null for a key.
    `last_run_at` is when a due time was handled last, and `last_error` why that time has no job.
    """

    __tablename__ = "schedules"
    __table_args__ = (Index(None, "owner", "created_at", "id"), Index(None, "due_at"))

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    dataset_id: Mapped[str]
    cron: Mapped[str]
    due_at: Mapped[float | None]
    principal_id: Mapped[str]
    groups: Mapped[list[str] | None] = mapped_column("principal_groups")
    author: Mapped[str | None]
    created_at: Mapped[float]
    paused_at: Mapped[float | None]
    paused_reason: Mapped[str | None]
    last_run_at: Mapped[float | None]
    last_job_id: Mapped[str | None]
    last_dataset_id: Mapped[str | None]
    last_error: Mapped[Json | None]


class Idempotency(Owned):
    """The first response to a creating POST, which the same key and body get again."""

    __tablename__ = "idempotency"
    __table_args__ = (Index(None, "created_at"),)

    owner: Mapped[str] = mapped_column(primary_key=True)
    route: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    response: Mapped[Json]
    created_at: Mapped[float]


class Role(StrEnum):
    """The role of a process that sends heartbeats."""

    WORKER = "worker"
    DISPATCHER = "dispatcher"


class Worker(Base):
    """A running worker or dispatcher: the time of its last heartbeat, and how a worker found its jobs."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(primary_key=True)
    role: Mapped[str] = mapped_column(server_default=Role.WORKER)
    host: Mapped[str]
    version: Mapped[str]
    slots: Mapped[int]
    started_at: Mapped[float]
    seen_at: Mapped[float]
    by_message: Mapped[int]
    by_poll: Mapped[int]
    note: Mapped[str | None]


class PrunedJobs(Base):
    """The number of deleted jobs by kind and final state, so that the counters of ended jobs never fall."""

    __tablename__ = "pruned_jobs"

    kind: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(primary_key=True)
    jobs: Mapped[int]


class AuditEntry(Owned):
    """What a caller did or was refused.

    `outcome` is `done` (a change, written in the same transaction), `denied` (a request that was refused) or `read`
    (decisive or personal data left the service). `action` is the route, `path` the address without its query, and
    `made` are the ids of new resources. `principal_id`, `author` (the principal's name at that time), `key_id` and
    `client` (the caller's address) are null for the server's own command line. Bodies are not stored. The owner is
    `SERVICE` for what concerns all owners.

    `position` and `mac` are null until the entry is sealed: see `AuditSeal`.
    """

    __tablename__ = "audit_entries"
    __table_args__ = (
        Index(None, "owner", "created_at", "id"),
        Index(None, "owner", "position"),
        # Both are partial: see `_make_partial`.
        Index(None, "position", unique=True),
        Index("ix_audit_entries_unsealed", "created_at", "id"),
    )

    SERVICE = ""
    """The owner of entries that concern all owners: no real owner has an empty name."""

    id: Mapped[str] = mapped_column(primary_key=True)
    principal_id: Mapped[str | None]
    author: Mapped[str | None]
    key_id: Mapped[str | None]
    action: Mapped[str]
    path: Mapped[str | None]
    made: Mapped[list[str]]
    summary: Mapped[str | None]
    """The change in words, if the code that made it says so (`app.platform.audit.describe`); the reason of a denial."""
    outcome: Mapped[str] = mapped_column(server_default="done")
    request_id: Mapped[str | None]
    client: Mapped[str | None]
    created_at: Mapped[float]
    position: Mapped[int | None]
    mac: Mapped[str | None]


@event.listens_for(AuditEntry.__table__, "before_create")
def _make_partial(table: Any, connection: Any, **_: Any) -> None:
    """Add the conditions of partial indexes for one database. Said with the index, they would load the dialects of both
    in each process.

    Without them, SQLite would look for unsealed entries in the index of positions, and sort all of them for each seal.
    """
    conditions = {
        "ix_audit_entries_position": "position IS NOT NULL",
        "ix_audit_entries_unsealed": "position IS NULL",
    }
    for index in table.indexes:
        if (condition := conditions.get(index.name)) is not None:
            index.dialect_options[connection.dialect.name]["where"] = text(condition)


class AuditSeal(Base):
    """A proof of the audit entries at the positions `first_position` to `last_position`.

    `mac` is an HMAC-SHA256 over the other columns and the entries' own MACs, with the key `key_id`, which the database
    does not have. `previous_mac` is the MAC of the seal before it, so seals form a chain.
    """

    __tablename__ = "audit_seals"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    first_position: Mapped[int]
    last_position: Mapped[int]
    entries: Mapped[int]
    key_id: Mapped[str]
    previous_mac: Mapped[str]
    mac: Mapped[str]
    sealed_at: Mapped[float]


class AuditStart(Base):
    """Where the audit log starts: what retention has removed before it. One row, which whoever seals or prunes locks.

    `seal_number`, `position` and `seal_mac` are those of the last removed seal (0, 0 and an empty text before any was),
    `entries` is the number of all removed entries. `mac` signs the row, and is null as long as nothing was sealed.
    """

    __tablename__ = "audit_start"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    seal_number: Mapped[int]
    position: Mapped[int]
    entries: Mapped[int]
    seal_mac: Mapped[str]
    pruned_at: Mapped[float | None]
    key_id: Mapped[str | None]
    mac: Mapped[str | None]


class DatasetProfile(Base):
    """Quantiles, histograms and AUC of each feature in column order, over `rows` rows; the counts of equal rows; and
    what has changed over time (`ingest.over_time`), null without times.
    """

    __tablename__ = "dataset_profiles"

    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    rows: Mapped[int]
    columns: Mapped[list[Json]]
    duplicates: Mapped[Json]
    over_time: Mapped[Json | None]


class DatasetName(Owned):
    """The highest version number of a name of datasets. The number of a deleted version is never used again."""

    __tablename__ = "dataset_names"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    last_version: Mapped[int]


OfModel = Annotated[
    str, mapped_column(ForeignKey("models.id", ondelete="CASCADE"), primary_key=True)
]


class Model(Trashable):
    """A trained ranker. Its bytes are in the blob store under their hash."""

    __tablename__ = "models"
    __table_args__ = (
        UniqueConstraint("owner", "name", "version"),
        UniqueConstraint("job_id"),
        Index(None, "owner", "created_at", "id"),
        Index(None, "owner", "deleted_at"),
        Index(None, "dataset_id"),
        Index(None, "validation_dataset_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    version: Mapped[int]
    job_id: Mapped[str]
    dataset_id: Mapped[str]
    dataset: Mapped[Document[DatasetLineage] | None]
    validation_dataset: Mapped[Document[DatasetLineage] | None]
    kind: Mapped[str] = mapped_column(server_default="bipartite")
    algorithm: Mapped[str]
    parameters: Mapped[Document[Parameters]]
    objective: Mapped[Document[Objective]]
    validation: Mapped[Document[Validation]]
    validation_dataset_id: Mapped[str | None] = mapped_column(
        Computed(_validation_dataset("validation"), persisted=True)
    )
    optimised_for: Mapped[Document[Objective]]
    selected_by: Mapped[Document[Objective] | None]
    search: Mapped[Document[Search] | None]
    beats_baselines: Mapped[bool | None]
    features: Mapped[Document[list[ModelFeature]]]
    label: Mapped[str | None]
    query: Mapped[str | None] = mapped_column("query_column")
    positive: Mapped[str | None]
    negative: Mapped[str | None]
    labels: Mapped[Document[list[LabelValues]] | None]
    table_dialect: Mapped[Document[TableDialect] | None] = mapped_column("spelling")
    seed: Mapped[int]
    tags: Mapped[Json]
    warnings: Mapped[list[str]]
    monotone: Mapped[Document[MonotoneProof] | None]
    protected: Mapped[Document[list[ProtectedColumn]]]
    proxies: Mapped[Document[list[ProxyTest]] | None]
    held_out_bins: Mapped[Document[HeldOutBins] | None]
    fit_seconds: Mapped[float]
    imported: Mapped[Document[Imported] | None]
    artifact_key: Mapped[str] = mapped_column(index=True, server_default="")
    artifact_sha256: Mapped[str]
    artifact_bytes: Mapped[int]
    calibration_version: Mapped[int | None]
    importance_job_id: Mapped[str | None]
    created_at: Mapped[float]

    @classmethod
    def name_contains(cls, text: str) -> ColumnElement[bool]:
        """Return the condition that the name, or one of the aliases that point here, contains a text."""
        named = exists().where(
            ModelAlias.owner == cls.owner,
            ModelAlias.name == cls.name,
            ModelAlias.model_id == cls.id,
            contains(ModelAlias.alias, text),
        )
        return super().name_contains(text) | named


class ModelName(Owned):
    """The highest version number of a name. The number of a deleted model is never used again."""

    __tablename__ = "model_names"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    last_version: Mapped[int]


class BreakGlass(Owned):
    """The protection of an alias is suspended until a time: an emergency. It may outlive the alias."""

    __tablename__ = "break_glass"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    until: Mapped[float] = mapped_column(index=True)
    reason: Mapped[str]
    author: Mapped[str | None]
    principal_id: Mapped[str | None]
    at: Mapped[float]


class AliasRow(Owned):
    """A row of one alias."""

    __abstract__ = True

    name: Mapped[str]
    alias: Mapped[str]

    @declared_attr
    def break_glass_until(cls) -> Mapped[float | None]:  # noqa: N805 - SQLAlchemy passes the class
        """Until when the protection of the alias is suspended; None if it is not."""
        until = select(BreakGlass.until).where(
            BreakGlass.owner == cls.owner,
            BreakGlass.name == cls.name,
            BreakGlass.alias == cls.alias,
            BreakGlass.until > db_now(),
        )
        return column_property(until.correlate_except(BreakGlass).scalar_subquery())


class ModelAlias(AliasRow):
    """A movable name for a model version, such as `champion`; `revision` is its ETag."""

    __tablename__ = "model_aliases"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    revision: Mapped[int]
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"))
    guarantee: Mapped[Document[StoredGuarantee] | None]
    cutoff: Mapped[Document[AliasCutoff] | None]
    memo: Mapped[Document[StoredMemo] | None]
    author: Mapped[str | None]
    protected: Mapped[bool] = mapped_column(server_default=false())
    """Whether each change needs the approval of another person."""
    updated_at: Mapped[float]


class AliasChange(StrEnum):
    """What created a revision of an alias: a new target, guarantee or memo; the restoration of an earlier revision;
    its deletion; or a change of its protection.
    """

    SET = "set"
    RESTORED = "restored"
    DELETED = "deleted"
    PROTECTION = "protection"


class ModelAliasHistory(AliasRow):
    """The history of an alias, revision by revision, so that a rollback is one request. It outlives the alias and the
    models.

    `evidence` lists the files, with their hashes, that were known about the model when the alias was moved. They are in
    a ZIP archive in the blob store until the model is permanently deleted.
    """

    __tablename__ = "model_alias_history"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(primary_key=True)
    model_id: Mapped[str]
    guarantee: Mapped[Document[StoredGuarantee] | None]
    cutoff: Mapped[Document[AliasCutoff] | None]
    memo: Mapped[Document[StoredMemo] | None]
    author: Mapped[str | None]
    principal_id: Mapped[str | None] = mapped_column(default=acting_principal)
    at: Mapped[float]
    model_version: Mapped[int]
    change: Mapped[str]
    restores: Mapped[int | None]
    """The revision that this one restores."""
    protected: Mapped[bool] = mapped_column(server_default=false())
    calibration_version: Mapped[int | None]
    evidence: Mapped[Document[list[EvidenceFile]] | None]
    evidence_key: Mapped[str | None] = mapped_column(index=True)
    evidence_bytes: Mapped[int | None]
    alias_request_id: Mapped[str | None]
    """The approved request that made this revision. `author` and `principal_id` are then those of the requester."""
    approved_by_id: Mapped[str | None]
    """The principal that approved it."""
    break_glass: Mapped[bool] = mapped_column(server_default=false())
    """Whether a protected alias was changed without approval, while its protection was suspended."""


class AliasRequestKind(StrEnum):
    """What a request asks for: to move an alias, restore a revision, delete the alias or lift its protection; or to
    recalibrate the model that it serves, or restore an earlier calibration of it.
    """

    SET = "set"
    RESTORE = "restore"
    DELETE = "delete"
    UNPROTECT = "unprotect"
    RECALIBRATE = "recalibrate"
    RESTORE_CALIBRATION = "restore_calibration"


class AliasRequestState(StrEnum):
    """open → approved | rejected | withdrawn | void, or expired, by the clock: such a row is stored as open."""

    OPEN = "open"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    VOID = "void"


class AliasRequest(Owned):
    """A request to change a protected alias, or the calibration that it serves, which another person approves.

    It is bound to the revision of the alias, and to the model that it concerns: its id, the SHA-256 of its artifact and
    its calibration. With any other of these it is void. It outlives the alias and the model.
    """

    __tablename__ = "alias_requests"
    __table_args__ = (
        Index(None, "owner", "created_at", "id"),
        Index(None, "owner", "name", "alias", "state"),
        Index(None, "owner", "model_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    alias: Mapped[str]
    kind: Mapped[str]
    state: Mapped[str]
    change: Mapped[Document[RequestedChange]]
    reason: Mapped[str]
    before: Mapped[str]
    """What the alias serves, in words."""
    after: Mapped[str]
    alias_revision: Mapped[int]
    model_id: Mapped[str]
    model_version: Mapped[int]
    artifact_sha256: Mapped[str]
    calibration_version: Mapped[int | None]
    evidence: Mapped[Document[list[EvidenceFile]]]
    evidence_key: Mapped[str | None] = mapped_column(index=True)
    evidence_bytes: Mapped[int | None]
    author: Mapped[str | None]
    principal_id: Mapped[str | None]
    created_at: Mapped[float]
    expires_at: Mapped[float]
    decided_at: Mapped[float | None]
    decided_by: Mapped[str | None]
    decided_by_id: Mapped[str | None]
    decision_reason: Mapped[str | None]
    """Why it was approved, rejected or void."""
    applied_revision: Mapped[int | None]
    """The revision of the alias that the approval made."""
    applied_calibration: Mapped[int | None]
    job_id: Mapped[str | None]
    """The job of an approved recalibration."""


class ModelComment(Owned):
    """A comment of a person on a model."""

    __tablename__ = "model_comments"
    __table_args__ = (Index(None, "model_id", "created_at", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"))
    author: Mapped[str | None]
    principal_id: Mapped[str | None]
    text: Mapped[str]
    created_at: Mapped[float]


class Measurement(Base):
    """The metrics of a model on one part of its data (`train`, `validation`), or of an evaluation, and the ROC curve
    from (0, 0) to (1, 1) as three little-endian float64 columns, if there is one.

    `docs/architecture.md` has examples of queries.
    """

    __tablename__ = "measurements"
    __table_args__ = (UniqueConstraint("model_id", "part"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    """Of a model: its id and the part (`id_of`). Of an evaluation: its id."""
    model_id: Mapped[str | None] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"))
    part: Mapped[str | None]
    evaluation_id: Mapped[str | None] = mapped_column(
        ForeignKey("evaluations.id", ondelete="CASCADE"), index=True
    )
    metrics: Mapped[Json]
    """Of a model: `app.platform.documents.PartMetrics`. Of an evaluation: what `app.evaluation.metrics` returns."""
    points: Mapped[int | None]
    fpr: Mapped[bytes | None] = mapped_column(deferred=True, deferred_group="curve")
    tpr: Mapped[bytes | None] = mapped_column(deferred=True, deferred_group="curve")
    thresholds: Mapped[bytes | None] = mapped_column(deferred=True, deferred_group="curve")
    group_scores: Mapped[bytes | None] = mapped_column(deferred=True)
    """Of each group in the order of the result: the scores of its positives, ascending, then those of its negatives;
    float64. Null without groups, or if the rows allow no guarantee.
    """
    group_steps: Mapped[bytes | None] = mapped_column(deferred=True)
    """As `ModelGroups.steps`, of the column of `group_by` and then of the protected columns. Null without groups."""

    @staticmethod
    def id_of(model_id: str, part: str) -> str:
        """Return the id of the measurement of a model on a part."""
        return f"{model_id}:{part}"


class ModelMargins(Base):
    """Margins of a model's training pairs as little-endian float64 columns; `best` is ρ if it was computed."""

    __tablename__ = "model_margins"

    model_id: Mapped[OfModel]
    l1_norm: Mapped[float]
    smooth_margin: Mapped[float]
    thetas: Mapped[bytes]
    fractions: Mapped[bytes]
    d_plus: Mapped[bytes]
    d_minus: Mapped[bytes]
    weak_rankers: Mapped[int]
    depends_on_data: Mapped[str | None]
    best: Mapped[Document[BestMargin] | None]


class ModelGroups(Base):
    """The comparison of the groups of protected columns on a model's validation rows.

    `columns` has the metrics of each column. `steps` has, for the same columns, what each threshold flags in each
    group: see `app.models.groups`. Neither has a row.
    """

    __tablename__ = "model_groups"

    model_id: Mapped[OfModel]
    level: Mapped[float]
    columns: Mapped[list[Json]]
    steps: Mapped[bytes] = mapped_column(deferred=True)


class ModelCalibration(Base):
    """A calibration of a model's scores to probabilities, and its Venn–Abers pair, fitted on rows that the model did
    not see.

    The model's `calibration_version` names the served one. `parameters` are those of `core.probability`'s
    `Calibration`; `low` and `high` have the scores, followed by the values, of the two step functions; all are
    little-endian float64. `trained_on` is `validation`, `out_of_fold` or `dataset`.
    """

    __tablename__ = "model_calibrations"

    model_id: Mapped[OfModel]
    version: Mapped[int] = mapped_column(primary_key=True)
    method: Mapped[str]
    parameters: Mapped[bytes]
    low: Mapped[bytes]
    high: Mapped[bytes]
    prevalence: Mapped[float]
    trained_on: Mapped[str]
    dataset: Mapped[Document[DatasetLineage] | None]
    rows: Mapped[int]
    positives: Mapped[int]
    log_losses: Mapped[Document[dict[str, float]]]
    reliability: Mapped[Document[Reliability] | None]
    job_id: Mapped[str]
    restores: Mapped[int | None]
    """The earlier version of which this one is a copy."""
    reason: Mapped[str | None]
    author: Mapped[str | None]
    principal_id: Mapped[str | None] = mapped_column(default=acting_principal)
    created_at: Mapped[float]
    alias_request_id: Mapped[str | None]
    """The approved request that made this version. `author` is then the requester."""
    approved_by: Mapped[str | None]
    approved_by_id: Mapped[str | None]
    break_glass: Mapped[bool] = mapped_column(server_default=false())
    """Whether a protected alias served the model, and its protection was suspended."""


class ModelReference(Base):
    """The mean parts of a model's scores over rows of each class, little-endian float64: the references of reasons."""

    __tablename__ = "model_references"

    model_id: Mapped[OfModel]
    part: Mapped[str]
    negatives: Mapped[int]
    positives: Mapped[int]
    negative_score: Mapped[float]
    positive_score: Mapped[float]
    negative_parts: Mapped[bytes]
    positive_parts: Mapped[bytes]


class ReasonCodes(Owned):
    """A revision of the dictionary of reasons of a model name; the latest revision is served."""

    __tablename__ = "reason_codes"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(primary_key=True)
    entries: Mapped[Document[list[StoredReasonEntry]]]
    principal_id: Mapped[str | None] = mapped_column(default=acting_principal)
    at: Mapped[float]


class OwnerQuota(Owned):
    """The limits of one owner that differ from the settings of the service. Null: the setting, or no limit.

    What counts against each limit is defined in `app.access.quotas`.
    """

    __tablename__ = "quotas"

    owner: Mapped[str] = mapped_column(primary_key=True)
    bytes: Mapped[int | None]
    dataset_rows: Mapped[int | None]
    models: Mapped[int | None]
    aliases: Mapped[int | None]
    keys: Mapped[int | None]
    queued_jobs: Mapped[int | None]
    running_jobs: Mapped[int | None]
    updated_at: Mapped[float]


class AliasFeedback(Owned):
    """A revision of the feedback settings of an alias; `revision` is its ETag. The newest applies.

    The revisions outlive the alias and the models, because each decision names the one that it was made under.
    """

    __tablename__ = "alias_feedback"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(primary_key=True)
    settings: Mapped[Document[StoredFeedback] | None]
    """Null: decisions are not recorded."""
    author: Mapped[str | None]
    principal_id: Mapped[str | None] = mapped_column(default=acting_principal)
    at: Mapped[float]


class DecisionSegment(Owned):
    """A sealed file of decisions of one alias, in the order of their sequence numbers. The rows are in Parquet.

    A log (`log_id`) is what one process wrote; it numbers its decisions without gaps. `lost` are those with numbers
    from `first_sequence` to `last_sequence` that the file lacks, because the log was full or its process was killed.
    """

    __tablename__ = "decision_segments"
    __table_args__ = (
        UniqueConstraint("log_id", "first_sequence"),
        Index(None, "owner", "name", "alias", "first_at"),
        Index(None, "owner", "sealed_at", "id"),
        Index(None, "owner", "final_at", "id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    name: Mapped[str]
    alias: Mapped[str]
    log_id: Mapped[str]
    first_sequence: Mapped[int]
    last_sequence: Mapped[int]
    origin: Mapped[str]
    """`score`, `batch` or `backfill`."""
    first_at: Mapped[float]
    last_at: Mapped[float]
    rows: Mapped[int]
    lost: Mapped[int]
    segment_key: Mapped[str] = mapped_column(index=True)
    segment_bytes: Mapped[int]
    sealed_at: Mapped[float]
    final_at: Mapped[float | None]
    """Time from which on no other segment replaces this one. Null: it is put together with others later."""


class OutcomeSegment(Owned):
    """Outcomes as they were received: a Parquet file, or the content of a small request until it is compacted into one.

    Outcomes name a decision or an entity, and are attributed when they are read, because the decision may be recorded
    later.
    """

    __tablename__ = "outcome_segments"
    __table_args__ = (Index(None, "owner", "received_at", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    rows: Mapped[int]
    first_known_at: Mapped[float]
    last_known_at: Mapped[float]
    segment_key: Mapped[str | None] = mapped_column(index=True)
    segment_bytes: Mapped[int | None]
    content: Mapped[bytes | None]
    """The rows of a small request as JSON, so that it needs no file. Null: they are in the file."""
    received_at: Mapped[float]


class MonitorTest(Owned):
    """A scheduled test of one family of metrics at the end of a period, and the error probability that it used.

    `rule` is the rule of outcomes, "" for tests without outcomes: after a change of the rule, the periods are tested
    again, because outcomes by two rules are not one series.
    """

    __tablename__ = "monitor_tests"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    family: Mapped[str] = mapped_column(primary_key=True)
    period_start: Mapped[float] = mapped_column(primary_key=True)
    rule: Mapped[str] = mapped_column(primary_key=True)
    period_end: Mapped[float]
    revision: Mapped[int]
    """Revision of the feedback settings."""
    found: Mapped[Json]
    tested_at: Mapped[float]


class Alarm(Owned):
    """An alarm of the monitor. A person acknowledges it with a reason."""

    __tablename__ = "alarms"
    __table_args__ = (Index(None, "owner", "raised_at", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    name: Mapped[str]
    alias: Mapped[str]
    family: Mapped[str]
    period_start: Mapped[float]
    found: Mapped[Json]
    raised_at: Mapped[float]
    acknowledged_at: Mapped[float | None]
    reason: Mapped[str | None]
    reference: Mapped[str | None]
    """`keep` or `renew`: whether the monitor goes on with the same validation rows."""
    author: Mapped[str | None]
    principal_id: Mapped[str | None]


class Erasure(Owned):
    """A request to erase all that is stored about an entity (`app.erasure`). `entity_id` is null once it is done.

    A job erases it from tables, and housekeeping from decisions and outcomes, and then deletes the old blobs.
    """

    __tablename__ = "erasures"
    __table_args__ = (Index(None, "owner", "requested_at", "id"), Index(None, "done_at", "due_at"))

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    entity_id: Mapped[str | None]
    key_columns: Mapped[list[str]] = mapped_column(server_default="[]")
    retire_models: Mapped[bool] = mapped_column(server_default=false())
    job_id: Mapped[str | None] = mapped_column(index=True)
    requested_at: Mapped[float]
    due_at: Mapped[float]
    done_at: Mapped[float | None]
    erased: Mapped[Json | None]
    """Numbers of rows, by kind of file."""
    report: Mapped[Document[ErasureReport] | None]
    """What the job has searched and removed so far."""
    old_keys: Mapped[list[str] | None]
    """Blobs that the job has replaced, until housekeeping has deleted them."""
    author: Mapped[str | None]
    principal_id: Mapped[str | None]


class LegalHold(Owned):
    """A legal hold: while it is active, nothing that it covers is deleted (`app.access.holds`).

    `kind` is `owner` (everything of the owner), `dataset` or `model` (`resource_id`).
    """

    __tablename__ = "legal_holds"
    __table_args__ = (Index(None, "owner", "placed_at", "id"), Index(None, "owner", "released_at"))

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    kind: Mapped[str]
    resource_id: Mapped[str | None]
    reason: Mapped[str]
    author: Mapped[str | None]
    principal_id: Mapped[str | None] = mapped_column(default=acting_principal)
    placed_at: Mapped[float]
    released_at: Mapped[float | None]
    release_reason: Mapped[str | None]
    released_by: Mapped[str | None]
    releasing_principal_id: Mapped[str | None]

    @classmethod
    def covers(cls, owner: Any, resource_id: Any = None) -> ColumnElement[bool]:
        """Return the condition that an active hold covers everything of an owner, or the resource: each a value, or a
        column of the query around it.
        """
        of_resource = false() if resource_id is None else cls.resource_id == resource_id
        return exists().where(
            cls.owner == owner, cls.released_at.is_(None), or_(cls.kind == "owner", of_resource)
        )


class RetentionRule(Owned):
    """For how many days an owner's resources are kept (`app.operations.retention`). Null: the setting, or no limit."""

    __tablename__ = "retention_rules"

    owner: Mapped[str] = mapped_column(primary_key=True)
    datasets: Mapped[float | None]
    models: Mapped[float | None]
    batch_scores: Mapped[float | None]
    evaluations: Mapped[float | None]
    decisions: Mapped[float | None]
    jobs: Mapped[float | None]
    updated_at: Mapped[float]


class ModelOutOfFold(Base):
    """The out-of-fold scores of a cross-validated model: a Parquet file in the blob store.

    They are personal data, like the rows and labels, so they are deleted with the dataset.
    """

    __tablename__ = "model_out_of_fold"

    model_id: Mapped[OfModel]
    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), index=True
    )
    blob_key: Mapped[str] = mapped_column(index=True)
    bytes: Mapped[int]
    entries: Mapped[int]
    repeats: Mapped[int]
    folds: Mapped[int]
    fold_aucs: Mapped[Document[list[FoldAuc]]]


class ModelHeldOut(Base):
    """The scores of a model on its validation rows, one file of row, label and score: a Parquet file in the blob store.
    A cross-validated model has `ModelOutOfFold` instead.

    `dataset_id` is the dataset of these rows. They are personal data, so they are deleted with it.
    """

    __tablename__ = "model_held_out"

    model_id: Mapped[OfModel]
    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), index=True
    )
    scores_key: Mapped[str] = mapped_column(index=True)
    scores_bytes: Mapped[int]


class ModelBaselines(Base):
    """The comparison of a model with baselines on the same splits; `skipped` says why there are none.

    `windows` also has the metric of the objective, if the objective is a metric.
    """

    __tablename__ = "model_baselines"

    model_id: Mapped[OfModel]
    level: Mapped[float]
    baselines: Mapped[Document[list[Baseline]]]
    windows: Mapped[Document[list[WindowBaselines | MetricBaselines]]]
    decided_on: Mapped[Document[Window]]
    skipped: Mapped[str | None]


class ModelLeaderboard(Base):
    """The candidates that `auto` tried for a model, best first, and what it has fitted.

    A model that was trained by the plan of another has no budget.
    """

    __tablename__ = "model_leaderboards"

    model_id: Mapped[OfModel]
    budget_seconds: Mapped[float | None]
    seconds: Mapped[float]
    candidates: Mapped[Document[list[LeaderboardRow]]]
    members: Mapped[Document[list[Member]]]
    rows: Mapped[float]
    folds: Mapped[Document[list[FoldMembers]]]
    repeatable: Mapped[bool]
    notes: Mapped[list[str]]


REFERENCE_ROWS = 64
"""Rows of each class that stand for what is unknown of a row, where scores have no exact parts."""


class ModelSample(Base):
    """A sample of the rows of a part (`train`, `validation`), in random order, in the form that the ranker reads.

    The blob has rows × features little-endian float64, row by row, and then one float64 per row if rows have weights.
    The rows are people's data, so they are deleted with the dataset.
    """

    __tablename__ = "model_sample_files"

    model_id: Mapped[OfModel]
    part: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), index=True
    )
    rows: Mapped[int]
    sample_key: Mapped[str] = mapped_column(index=True)
    sample_bytes: Mapped[int]


class ModelReferenceRows(Base):
    """A few rows of a part, or of one class in it (`validation_negative`), at most `REFERENCE_ROWS`, with which reasons
    compare. They are kept when the dataset is deleted.

    `values` has rows × features little-endian float64, row by row; `weight` has one float64 per row if rows have
    weights.
    """

    __tablename__ = "model_reference_rows"

    model_id: Mapped[OfModel]
    part: Mapped[str] = mapped_column(primary_key=True)
    rows: Mapped[int]
    values: Mapped[bytes]
    weight: Mapped[bytes | None]


class ModelImportance(Base):
    """The importance of each feature of a model: `features` has the artifact's order, and `method` names the method."""

    __tablename__ = "model_importances"

    model_id: Mapped[OfModel]
    method: Mapped[str]
    part: Mapped[str]
    features: Mapped[Document[list[FeatureImportance]]]


class ModelProfile(Base):
    """The distributions of the columns of a model's training table, with which later tables are compared."""

    __tablename__ = "model_profiles"

    model_id: Mapped[OfModel]
    profile: Mapped[Document[TableProfile]]


class Evaluation(Trashable, JobOutputRow):
    """An evaluation of a model on a dataset. Its metrics, `drift` and findings are written when the job succeeds."""

    __tablename__ = "evaluations"
    __table_args__ = (
        Index(None, "owner", "created_at", "id"),
        Index(None, "owner", "deleted_at"),
        Index(None, "model_id"),
        Index(None, "dataset_id"),
    )

    model_id: Mapped[str]
    model_name: Mapped[str]
    model_version: Mapped[int]
    kind: Mapped[str]
    dataset_id: Mapped[str]
    dataset_name: Mapped[str]
    dataset_version: Mapped[int | None]
    dataset_sha256: Mapped[str | None]
    windows: Mapped[list[Json]]
    level: Mapped[float]
    warnings: Mapped[list[str]]
    drift: Mapped[Json | None]
    rows_until: Mapped[float | None]
    """The time of the newest row; None without a column of dates."""

    measured: Mapped[Measurement | None] = relationship(viewonly=True, lazy="selectin")
    findings: Mapped[list[StoredFinding]] = relationship(
        viewonly=True, lazy="selectin", order_by="StoredFinding.number"
    )
    acknowledgement: Mapped[Acknowledgement | None] = relationship(viewonly=True, lazy="selectin")

    @property
    def metrics(self) -> Json | None:
        """The metrics; None until the job succeeds."""
        return None if self.measured is None else self.measured.metrics

    @classmethod
    def newest_rows_first(cls) -> tuple[ColumnElement[Any], ...]:
        """Return the order in which an evaluation precedes those on older rows, whenever they were made. Rows without
        dates are as old as their evaluation.
        """
        newest = func.coalesce(cls.rows_until, cls.created_at)
        return newest.desc(), cls.created_at.desc(), cls.id.desc()


class StoredFinding(Base):
    """The answer of an evaluation to one question: `app.findings.finding.Finding` as `document`. It never changes."""

    __tablename__ = "findings"

    evaluation_id: Mapped[str] = mapped_column(
        ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True
    )
    question: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int]
    """The place in the list of the evaluation's findings."""
    answer: Mapped[str]
    document: Mapped[Json]


class Acknowledgement(Base):
    """A person has seen that an evaluation found a change, with the reason for taking no further action."""

    __tablename__ = "evaluation_acknowledgements"

    evaluation_id: Mapped[str] = mapped_column(
        ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True
    )
    reason: Mapped[str]
    author: Mapped[str | None]
    principal_id: Mapped[str | None] = mapped_column(default=acting_principal)
    at: Mapped[float]


class Comparison(Trashable, JobOutputRow):
    """Several models on one dataset. `result` is written when the job succeeds."""

    __tablename__ = "comparisons"
    __table_args__ = (
        Index(None, "owner", "created_at", "id"),
        Index(None, "owner", "deleted_at"),
        Index(None, "dataset_id"),
    )

    dataset_id: Mapped[str]
    dataset_name: Mapped[str]
    dataset_version: Mapped[int | None]
    dataset_sha256: Mapped[str | None]
    windows: Mapped[list[Json]]
    level: Mapped[float]
    warnings: Mapped[list[str]]
    result: Mapped[Json | None]

    models: Mapped[list[ComparisonModel]] = relationship(
        order_by=lambda: ComparisonModel.position, viewonly=True
    )

    @classmethod
    def of_model(cls, model_id: str) -> ColumnElement[bool]:
        """Return the condition that this model is one of the compared models."""
        compared = select(ComparisonModel.comparison_id).where(ComparisonModel.model_id == model_id)
        return cls.id.in_(compared)

    @classmethod
    def name_contains(cls, text: str) -> ColumnElement[bool]:
        """Return the condition that the name of the dataset or of one of the models contains a text."""
        return super().name_contains(text) | cls.models.any(contains(ComparisonModel.name, text))


class ComparisonModel(Base):
    """One of the compared models, with its name at that time."""

    __tablename__ = "comparison_models"
    __table_args__ = (Index(None, "model_id"),)

    comparison_id: Mapped[str] = mapped_column(
        ForeignKey("comparisons.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    model_id: Mapped[str]
    name: Mapped[str]
    version: Mapped[int]


class BatchScore(JobOutputRow):
    """The scores that a model gives to the rows of a table. The result's columns are written when the job succeeds.

    The rows belong to a dataset, or to an upload that is deleted as soon as it is scored; `file_name` is then the
    upload's file name. `alias` is the alias in the request. `summary` and `drift` may be long, so only queries that
    name them read them.
    """

    __tablename__ = "batch_scores"
    __table_args__ = (
        Index(None, "owner", "created_at", "id"),
        Index(None, "model_id"),
        Index(None, "dataset_id"),
    )

    model_id: Mapped[str]
    model_name: Mapped[str]
    model_version: Mapped[int]
    dataset_id: Mapped[str | None]
    dataset_name: Mapped[str | None]
    content_type: Mapped[str | None]
    content_encoding: Mapped[str | None]
    upload_key: Mapped[str | None] = mapped_column(index=True)
    upload_bytes: Mapped[int | None]
    read_options: Mapped[Json] = mapped_column("terms")
    rows: Mapped[int | None]
    columns: Mapped[list[Json] | None]
    result_key: Mapped[str | None] = mapped_column(index=True)
    result_sha256: Mapped[str | None]
    result_bytes: Mapped[int | None]
    file_name: Mapped[str | None]
    alias: Mapped[str | None]
    summary: Mapped[BatchSummary | None] = mapped_column(JSON(none_as_null=True), deferred=True)
    drift: Mapped[Json | None] = mapped_column(JSON(none_as_null=True), deferred=True)
    flagged: Mapped[int | None] = column_property(cast(Any, summary).column["flagged"].as_integer())
    warnings: Mapped[list[dict[str, str]] | None] = column_property(
        cast(Any, summary).column["warnings"].as_json()
    )
    stable: Mapped[str | None] = column_property(
        cast(Any, drift).column[("finding", "answer")].as_string()
    )


def output_tables() -> list[type[JobOutputRow]]:
    """Return the output table of every kind of job that has an output."""
    found: list[type[JobOutputRow]] = []
    left = JobOutputRow.__subclasses__()
    while left:
        table = left.pop()
        left += table.__subclasses__()
        if "__tablename__" in vars(table):
            found.append(table)
    return sorted(found, key=lambda table: table.__tablename__)
