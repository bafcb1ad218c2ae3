"""What is kept of how a model was judged and chosen, beside its metrics."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.model_tables import OfModel
from app.platform.sql import Base, Json


class ModelOutOfFold(Base):
    """The out-of-fold scores of a cross-validated model: a Parquet file in the blob store.

    They are scores of people's rows, with their labels: they go when the dataset goes that they came from.
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
    fold_aucs: Mapped[list[Json]]


class ModelControls(Base):
    """How a model compares with plain algorithms on the same divisions; `skipped` says why with none."""

    __tablename__ = "model_controls"

    model_id: Mapped[OfModel]
    level: Mapped[float]
    controls: Mapped[list[Json]]
    windows: Mapped[list[Json]]
    decided_on: Mapped[Json]
    skipped: Mapped[str | None]


class ModelLeaderboard(Base):
    """What `auto` has tried for a model, the best first."""

    __tablename__ = "model_leaderboards"

    model_id: Mapped[OfModel]
    budget_seconds: Mapped[float]
    seconds: Mapped[float]
    candidates: Mapped[list[Json]]
    members: Mapped[list[Json]]
    notes: Mapped[list[str]]
