"""How many rows of its dataset a model was trained on, and how many validated it."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from app.datasets import repository as datasets
from app.models import repository
from app.models.service import PARTS
from app.platform.documents import described
from app.platform.sql import Session
from app.platform.tables import DatasetKind, Model


@described
class ModelRows(TypedDict):
    """Numbers of rows of a model: of its dataset, of training, and of validation. A model of pairs counts pairs."""

    unit: Literal["rows", "pairs"]
    """What is counted."""
    dataset: int | None
    """Number in the training dataset. Null if the dataset was deleted."""
    training: int | None
    """Number that the served ranker was trained on. All of the dataset, except with validation method `holdout`. A
    warning says so if `auto` used a fraction of them. Null if it was not recorded.
    """
    validation: int | None
    """Number that the validation metrics are of, each counted once. With cross-validation, each was scored by a ranker
    that was trained without it; by time, the rows of the first window are not among them. Null without validation.
    """


def find_rows(session: Session, model: Model) -> ModelRows:
    """Use the stored metrics and the dataset."""
    is_pairs = model.kind == DatasetKind.PREFERENCES
    dataset = datasets.find(session, model.owner, model.dataset_id)
    total = None
    if dataset is not None:
        pairs = None if dataset.pairs is None else dataset.pairs.pairs
        total = pairs if is_pairs else dataset.rows
    trained, validated = (_count(session, model, part) for part in reversed(PARTS))
    method = model.validation["method"]
    # The training metrics may be of a sample of the training rows.
    by_time = model.validation.get("time_column") is not None
    may_leave_out = is_pairs or (by_time and dataset is not None and dataset.group is not None)
    if model.imported is not None:
        trained = None
    elif method != "holdout":
        trained = total if total is not None else trained
    elif not may_leave_out and total is not None and validated is not None:
        trained = total - validated
    elif any(SAMPLED in warning for warning in model.warnings):
        trained = None
    return {
        "unit": "pairs" if is_pairs else "rows",
        "dataset": total,
        "training": trained,
        "validation": validated,
    }


SAMPLED = "training metrics are from a sample"
"""Part of the warning of a model whose training metrics are of fewer rows than it was trained on."""


def _count(session: Session, model: Model, part: str) -> int | None:
    """Return the rows, or pairs, that the metrics of a part are of; None if they lack it."""
    found = repository.find_metrics(session, model.id, part)
    if found is None:
        return None
    sizes: set[int] = set()
    if "pairs" in found:
        sizes = {found["pairs"]}
    elif "grades" in found:
        sizes = {sum(each["rows"] for each in found["grades"])}
    else:
        sizes = {each["positives"] + each["negatives"] for each in found.get("labels", [found])}
    return sizes.pop() if len(sizes) == 1 else None
