"""What the second look at a dataset found, beside the columns that every list of datasets shows."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.sql import Base, Json


class DatasetProfile(Base):
    """Quantiles, histograms and AUC of each feature, in the order of the columns, seen in so many `rows`; and the rows
    that come twice.
    """

    __tablename__ = "dataset_profiles"

    dataset_id: Mapped[str] = mapped_column(
        ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True
    )
    rows: Mapped[int]
    columns: Mapped[list[Json]]
    duplicates: Mapped[Json]
