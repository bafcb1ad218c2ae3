"""What is kept of a model so that people can ask what it has learnt."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.model_tables import OfModel
from app.platform.sql import Base, Json


class ModelSample(Base):
    """A few rows of one part (`train` or `validation`), in random order, as the ranker scores them.

    `rows` times the model's features little-endian float64, row by row, and a float64 per row in `weight` where rows
    have weights. They are people's data: they go when the dataset goes that they came from.
    """

    __tablename__ = "model_samples"

    model_id: Mapped[OfModel]
    part: Mapped[str] = mapped_column(primary_key=True)
    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), index=True
    )
    rows: Mapped[int]
    values: Mapped[bytes]
    weight: Mapped[bytes | None]


class ModelImportance(Base):
    """How much each feature matters to a model: `features` in the artifact's order, `method` says in what sense."""

    __tablename__ = "model_importances"

    model_id: Mapped[OfModel]
    method: Mapped[str]
    part: Mapped[str]
    features: Mapped[list[Json]]
