"""Models judged on datasets: evaluations of one, comparisons of several. They outlive the models and the datasets."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, foreign, mapped_column, relationship

from app.platform.sql import Base, Json
from app.platform.tables import Job


class Evaluation(Base):
    """How good a model is on a dataset: asked for with its job, `metrics` and `drift` written as that succeeds."""

    __tablename__ = "evaluations"
    __table_args__ = (
        Index(None, "owner", "created_at", "id"),
        Index(None, "job_id"),
        Index(None, "model_id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    job_id: Mapped[str]
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
    metrics: Mapped[Json | None]
    drift: Mapped[Json | None]
    created_at: Mapped[float]

    job: Mapped[Job] = relationship(
        primaryjoin=lambda: foreign(Evaluation.job_id) == Job.id, viewonly=True
    )


class EvaluationCurve(Base):
    """The ROC curve of an evaluation, in the form of a model's (`ModelCurve`)."""

    __tablename__ = "evaluation_curves"

    evaluation_id: Mapped[str] = mapped_column(
        ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True
    )
    points: Mapped[int]
    fpr: Mapped[bytes]
    tpr: Mapped[bytes]
    thresholds: Mapped[bytes]


class Comparison(Base):
    """Several models on one dataset: asked for with its job, `result` written as that succeeds."""

    __tablename__ = "comparisons"
    __table_args__ = (Index(None, "owner", "created_at", "id"), Index(None, "job_id"))

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    job_id: Mapped[str]
    dataset_id: Mapped[str]
    dataset_name: Mapped[str]
    dataset_version: Mapped[int | None]
    dataset_sha256: Mapped[str | None]
    windows: Mapped[list[Json]]
    level: Mapped[float]
    warnings: Mapped[list[str]]
    result: Mapped[Json | None]
    created_at: Mapped[float]

    job: Mapped[Job] = relationship(
        primaryjoin=lambda: foreign(Comparison.job_id) == Job.id, viewonly=True
    )
    models: Mapped[list[ComparisonModel]] = relationship(
        order_by=lambda: ComparisonModel.position, viewonly=True
    )


class ComparisonModel(Base):
    """One of the models that are compared, as it was called when that was asked for."""

    __tablename__ = "comparison_models"
    __table_args__ = (Index(None, "model_id"),)

    comparison_id: Mapped[str] = mapped_column(
        ForeignKey("comparisons.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    model_id: Mapped[str]
    name: Mapped[str]
    version: Mapped[int]
