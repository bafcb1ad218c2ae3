"""Which data something was made with, told so that it can be told when the data is gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.datasets.constants import is_constant
from app.platform.tables import Dataset

Json = dict[str, Any]
MOST_NAMED = 10


def lineage_of(dataset: Dataset) -> Json:
    """Name a version and its content, as they are when a job is handed in. `rows_from` is the version whose rows it
    begins with: versions that have it in common have these rows in common.
    """
    return {
        "id": dataset.id,
        "name": dataset.name,
        "version": dataset.version,
        "sha256": dataset.sha256,
        "pairs_sha256": None if dataset.pairs is None else dataset.pairs.sha256,
        "rows_from": dataset.rows_from,
    }


def shares_rows(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether two versions are known to have rows in common: equal content, or rows added to the same ones.

    Either may be None, where nobody wrote down what it was.
    """
    if one is None or other is None:
        return False
    return any(one[name] == other[name] for name in ("id", "sha256", "rows_from"))


def notes_on(spec: Mapping[str, Any], dataset: Dataset | None) -> Iterator[str]:
    """What is to be said of the data that a model was trained with; `dataset` is None where it is gone."""
    judge = spec.get("validation_dataset")  # jobs of earlier versions have no such entry
    if judge is not None and shares_rows(spec.get("dataset"), judge):
        yield (
            f"the validation dataset {judge['id']} has rows that the model was trained on: "
            "the figures flatter it"
        )
    constant = [
        repr(column["name"])
        for column in (dataset.columns if dataset is not None else [])
        if column["role"] == "feature" and column["distinct"] and is_constant(column)
    ]
    if constant:
        shown = ", ".join(constant[:MOST_NAMED]) + (", …" if len(constant) > MOST_NAMED else "")
        yield f"{len(constant)} features are the same in all rows of the dataset: {shown}"
