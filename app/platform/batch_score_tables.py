"""Tables scored by a job. They outlive the models and the datasets."""

from __future__ import annotations

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, foreign, mapped_column, relationship

from app.platform.sql import Base, Json
from app.platform.tables import Job


class BatchScore(Base):
    """A table and what a model gives its rows: asked for with its job, `result_key` and what is told of it written as
    that succeeds.

    The rows are those of a dataset, or of an upload of their own; that goes as soon as it is scored.
    """

    __tablename__ = "batch_scores"
    __table_args__ = (
        Index(None, "owner", "created_at", "id"),
        Index(None, "job_id"),
        Index(None, "model_id"),
        Index(None, "dataset_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    job_id: Mapped[str]
    model_id: Mapped[str]
    model_name: Mapped[str]
    model_version: Mapped[int]
    dataset_id: Mapped[str | None]
    dataset_name: Mapped[str | None]
    content_type: Mapped[str | None]
    content_encoding: Mapped[str | None]
    upload_key: Mapped[str | None] = mapped_column(index=True)
    upload_bytes: Mapped[int | None]
    terms: Mapped[Json]
    rows: Mapped[int | None]
    columns: Mapped[list[Json] | None]
    result_key: Mapped[str | None] = mapped_column(index=True)
    result_bytes: Mapped[int | None]
    created_at: Mapped[float]

    job: Mapped[Job] = relationship(
        primaryjoin=lambda: foreign(BatchScore.job_id) == Job.id, viewonly=True
    )
