"""Keys, datasets, jobs and workers, the same on SQLite and PostgreSQL. Times are seconds since 1970 (see `time.py`)."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column, relationship

from app.platform.sql import Base, Json


class JobState(StrEnum):
    """queued → running → succeeded | failed | cancelled | timed_out; a lost lease takes running back to queued.

    A running job that fans out is waiting until its parts are done, and then queued to be joined.
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
    """Rows with a label of two values, items that pairs compare, or rows with several labels."""

    BIPARTITE = "bipartite"
    PREFERENCES = "preferences"
    MULTILABEL = "multilabel"


class VersionMode(StrEnum):
    """What a new version holds: its parent's rows and after them the upload's, or the upload's alone."""

    APPEND = "append"
    REPLACE = "replace"


class DatasetStatus(StrEnum):
    """processing → ready | invalid."""

    PROCESSING = "processing"
    READY = "ready"
    INVALID = "invalid"


class ApiKey(Base):
    """A caller's key. Only its SHA-256 is kept; `prefix` lets a person recognise it in a list."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
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


class Dataset(Base):
    """An uploaded table: the bytes as they came (`upload_key`), and once ready the typed Parquet (`table_key`).

    A later version of a table is a row of its own, never changed either. `first_id` is the first version of its series,
    `parent_id` the version that it was made from, `base_id` the one whose rows it begins with; `first_id` and `base_id`
    are null where they would be the row's own id. None of the three need be there any more.
    """

    __tablename__ = "datasets"
    __table_args__ = (
        UniqueConstraint("first_id", "version"),
        Index(None, "owner", "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    name: Mapped[str]
    kind: Mapped[str]
    status: Mapped[str]
    job_id: Mapped[str | None]
    content_type: Mapped[str]
    content_encoding: Mapped[str | None]
    label: Mapped[str | None]
    positive: Mapped[str | None]
    negative: Mapped[str | None]
    weight: Mapped[str | None]
    group: Mapped[str | None] = mapped_column("group_column")
    item: Mapped[str | None]
    labels: Mapped[list[Json] | None]
    categorical: Mapped[list[str] | None]
    numeric: Mapped[list[str] | None] = mapped_column("numeric_columns")
    drop: Mapped[list[str] | None] = mapped_column("dropped")
    missing: Mapped[list[str] | None]
    strict: Mapped[bool] = mapped_column(server_default=false())
    dialect: Mapped[Json | None]
    upload_key: Mapped[str]
    table_key: Mapped[str | None]
    table_bytes: Mapped[int | None]
    bytes: Mapped[int]
    sha256: Mapped[str]
    rows: Mapped[int | None]
    positives: Mapped[int | None]
    negatives: Mapped[int | None]
    columns: Mapped[list[Json]]
    errors: Mapped[list[Json]]
    warnings: Mapped[list[Json]] = mapped_column(server_default="[]")
    first_id: Mapped[str | None]
    version: Mapped[int] = mapped_column(server_default="1")
    parent_id: Mapped[str | None]
    base_id: Mapped[str | None]
    created_at: Mapped[float]

    pairs: Mapped[DatasetPairs | None] = relationship(viewonly=True)

    @property
    def series_id(self) -> str:
        """The id of the first version."""
        return self.first_id or self.id

    @property
    def rows_from(self) -> str:
        """The id of the version whose rows it begins with: versions that share it share these rows."""
        return self.base_id or self.id

    @property
    def mode(self) -> str | None:
        """How it was made of its parent; None of a first version."""
        if self.parent_id is None:
            return None
        return VersionMode.REPLACE if self.base_id is None else VersionMode.APPEND

    @property
    def upload_sha256(self) -> str:
        """Of the bytes as they came: the blob's name."""
        return self.upload_key.rpartition("/")[2]


class DatasetPairs(Base):
    """The pairs of a dataset of kind `preferences`: the bytes as they came, and once ready pairs of row numbers."""

    __tablename__ = "dataset_pairs"

    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    status: Mapped[str]
    job_id: Mapped[str]
    content_type: Mapped[str]
    content_encoding: Mapped[str | None]
    upload_key: Mapped[str]
    table_key: Mapped[str | None]
    table_bytes: Mapped[int | None]
    bytes: Mapped[int]
    sha256: Mapped[str]
    pairs: Mapped[int | None]
    items: Mapped[int | None]
    weighted: Mapped[bool | None]
    errors: Mapped[list[Json]]
    created_at: Mapped[float]


class Job(Base):
    """One long piece of work. The row is the queue: claimed by a conditional UPDATE that hands out lease and token.

    A part of a job is a row of its own, numbered by `stage` and `part` within its parent. `deadline_at` is set once a
    job fans out, and is then the same for all its rows. `checkpoint_key` names what the next attempt may go on from.
    `keep_requested_at` is set once the owner has asked for the best so far: the job ends early, and well.
    `beaten_at` is the machine's time of the claim or the last heartbeat, and NULL on PostgreSQL.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("parent_id", "stage", "part"),
        Index(None, "state", "not_before", "priority", "created_at"),
        Index(None, "state", "owner", "parent_id"),
        Index(None, "finished_at"),
        Index(None, "owner", "created_at", "id"),
        Index(None, "dataset_id"),
        CheckConstraint(
            "state IN ('queued','running','waiting','succeeded','failed','cancelled','timed_out')",
            name="state",
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    kind: Mapped[str]
    name: Mapped[str]
    state: Mapped[str]
    spec: Mapped[Json]
    tags: Mapped[Json]
    dataset_id: Mapped[str | None]
    retry_of: Mapped[str | None]
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
    beats: Mapped[int]
    beaten_at: Mapped[float | None]
    worker_id: Mapped[str | None]
    cancel_requested_at: Mapped[float | None]
    keep_requested_at: Mapped[float | None]
    progress: Mapped[Json]
    event_seq: Mapped[int]
    error: Mapped[Json | None]
    result: Mapped[Json | None]
    model_id: Mapped[str | None]
    checkpoint_key: Mapped[str | None]
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]


class Outbox(Base):
    """A wake-up that is owed to the queue: written with the job, published after the commit."""

    __tablename__ = "outbox"
    __table_args__ = (Index(None, "published_at", "created_at"),)

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    created_at: Mapped[float]
    published_at: Mapped[float | None]
    tries: Mapped[int]


class JobEvent(Base):
    """What happened to a job, numbered from 1 without gaps (`jobs.event_seq` hands out the numbers)."""

    __tablename__ = "job_events"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[float]
    type: Mapped[str]
    data: Mapped[Json]


class Idempotency(Base):
    """The first answer to a creating POST, to be replayed to the same key and body."""

    __tablename__ = "idempotency"
    __table_args__ = (Index(None, "created_at"),)

    owner: Mapped[str] = mapped_column(primary_key=True)
    route: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    fingerprint: Mapped[str]
    status_code: Mapped[int]
    response: Mapped[Json]
    created_at: Mapped[float]


class Worker(Base):
    """A worker process of this boot, when it was last heard from, and how it found its work."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str]
    version: Mapped[str]
    slots: Mapped[int]
    started_at: Mapped[float]
    seen_at: Mapped[float]
    by_message: Mapped[int]
    by_look: Mapped[int]
    note: Mapped[str | None]
