"""Models that were trained elsewhere: their training rows are unknown, and all rows of their dataset are held out."""

from __future__ import annotations

from app.platform.documents import DatasetLineage
from app.platform.tables import Model

IMPORTED = "imported_trees"
"""The algorithm of trees of another library; `core.importing.ranker.NAME`."""


def imported_from(model: Model) -> str | None:
    """Return the library that trained the model; None for a model that was trained here."""
    return None if model.imported is None else model.imported["source"]


def dataset_of(model: Model) -> DatasetLineage | None:
    """Return the dataset of `dataset_id`: what the model was trained on or, if it was imported, evaluated on."""
    return model.dataset if model.imported is None else model.validation_dataset
