"""The series that versions of a table make up."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from app.platform.sql import Base


class DatasetSeries(Base):
    """The last version that a series has given out: one that was deleted is never given again.

    A table of which there is but the first version has no row here.
    """

    __tablename__ = "dataset_series"

    owner: Mapped[str] = mapped_column(primary_key=True)
    first_id: Mapped[str] = mapped_column(primary_key=True)
    last_version: Mapped[int]
