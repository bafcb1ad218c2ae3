"""Models and what is known of each. A model's own facts go with it."""

from __future__ import annotations

from typing import Annotated

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.sql import Base, Json

OfModel = Annotated[
    str, mapped_column(ForeignKey("models.id", ondelete="CASCADE"), primary_key=True)
]


class Model(Base):
    """A trained ranker as a resource; its bytes lie in the blob store under their own hash."""

    __tablename__ = "models"
    __table_args__ = (
        UniqueConstraint("owner", "name", "version"),
        UniqueConstraint("job_id"),
        Index(None, "owner", "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    name: Mapped[str]
    version: Mapped[int]
    job_id: Mapped[str]
    dataset_id: Mapped[str]
    dataset: Mapped[Json | None]
    validation_dataset: Mapped[Json | None]
    kind: Mapped[str] = mapped_column(server_default="bipartite")
    algorithm: Mapped[str]
    parameters: Mapped[Json]
    objective: Mapped[Json]
    validation: Mapped[Json]
    optimised_for: Mapped[Json]
    selected_by: Mapped[Json | None]
    search: Mapped[Json | None]
    beats_controls: Mapped[bool | None]
    features: Mapped[list[Json]]
    label: Mapped[str | None]
    positive: Mapped[str | None]
    negative: Mapped[str | None]
    labels: Mapped[list[Json] | None]
    spelling: Mapped[Json | None]
    seed: Mapped[int]
    tags: Mapped[Json]
    warnings: Mapped[list[str]]
    fit_seconds: Mapped[float]
    artifact_sha256: Mapped[str]
    artifact_bytes: Mapped[int]
    created_at: Mapped[float]


class ModelName(Base):
    """The last version that a name has given out: one that was deleted is never given again."""

    __tablename__ = "model_names"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    last_version: Mapped[int]


class ModelAlias(Base):
    """A name that moves, such as `champion`; `revision` is its ETag."""

    __tablename__ = "model_aliases"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    revision: Mapped[int]
    model_id: Mapped[str] = mapped_column(ForeignKey("models.id"))
    updated_at: Mapped[float]


class ModelAliasHistory(Base):
    """Where an alias pointed, revision by revision, so that a rollback is one PUT."""

    __tablename__ = "model_alias_history"

    owner: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    revision: Mapped[int] = mapped_column(primary_key=True)
    model_id: Mapped[str]
    at: Mapped[float]


class ModelMetrics(Base):
    """AUC of a model on one part (`validation` or `train`), with its interval. Effective rows are Kish's."""

    __tablename__ = "model_metrics"

    model_id: Mapped[OfModel]
    part: Mapped[str] = mapped_column(primary_key=True)
    auc: Mapped[float]
    auc_low: Mapped[float]
    auc_high: Mapped[float]
    level: Mapped[float]
    positives: Mapped[int]
    negatives: Mapped[int]
    positive_weight: Mapped[float]
    negative_weight: Mapped[float]
    positive_effective: Mapped[float]
    negative_effective: Mapped[float]
    ties: Mapped[float]


class ModelPartialAuc(Base):
    """Partial AUC on one window of FPR, divided by its width, with its interval."""

    __tablename__ = "model_partial_aucs"

    model_id: Mapped[OfModel]
    part: Mapped[str] = mapped_column(primary_key=True)
    fpr_min: Mapped[float] = mapped_column(primary_key=True)
    fpr_max: Mapped[float] = mapped_column(primary_key=True)
    value: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]


class ModelPairMetrics(Base):
    """Weighted share of the pairs of one part that a model puts in order, with its interval."""

    __tablename__ = "model_pair_metrics"

    model_id: Mapped[OfModel]
    part: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]
    level: Mapped[float]
    misrank_fraction: Mapped[float]
    ties: Mapped[float]
    pairs: Mapped[int]
    items: Mapped[int]
    weight: Mapped[float]
    effective_pairs: Mapped[float]


class ModelMargins(Base):
    """Margins of a model's training pairs: little-endian float64 columns, and `best`, ρ where it was looked for."""

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
    best: Mapped[Json | None]


class ModelLabelMetrics(Base):
    """AUC of one label's scores on one part; null where the part lacks one of its classes."""

    __tablename__ = "model_label_metrics"

    model_id: Mapped[OfModel]
    part: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    label: Mapped[str]
    auc: Mapped[Json | None]
    partial_aucs: Mapped[list[Json]]
    level: Mapped[float]
    positives: Mapped[int]
    negatives: Mapped[int]
    ties: Mapped[float | None]


class ModelCurve(Base):
    """A ROC curve as three little-endian float64 columns from (0, 0) to (1, 1), in one row: it is read whole."""

    __tablename__ = "model_curves"

    model_id: Mapped[OfModel]
    part: Mapped[str] = mapped_column(primary_key=True)
    points: Mapped[int]
    fpr: Mapped[bytes]
    tpr: Mapped[bytes]
    thresholds: Mapped[bytes]
