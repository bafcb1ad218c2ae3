"""Models that another library trained: their training rows are unknown, and all rows of their dataset are held out."""

from __future__ import annotations

from app.platform.documents import DatasetLineage
from app.platform.tables import Model

IMPORTED = "imported_trees"
"""The algorithm of a model that was imported; `core.importing.ranker.NAME`."""
SOURCE = "source"
"""The parameter that names the library."""


def is_imported(model: Model) -> bool:
    return model.algorithm == IMPORTED


def imported_from(model: Model) -> str | None:
    """Return the library that trained the model; None for a model that was trained here."""
    source: str | None = model.parameters[SOURCE] if is_imported(model) else None
    return source


def dataset_of(model: Model) -> DatasetLineage | None:
    """Return the dataset of `dataset_id`: what the model was trained on or, if it was imported, evaluated on."""
    return model.validation_dataset if is_imported(model) else model.dataset
