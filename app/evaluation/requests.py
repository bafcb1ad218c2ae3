"""What evaluations and comparisons ask for: models that exist, a dataset that fits them, windows and a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.datasets.lineage import lineage_of, shares_rows
from app.models.objectives import Window
from app.models.use import find_named, find_to_use
from app.platform.errors import Invalid
from app.platform.tables import Dataset, DatasetKind, Model
from app.training.submission import (
    check_pairs_ready,
    find_lack,
    hold_datasets,
    label_values,
    ready_dataset,
    show_labels,
)
from core.errors import InvalidParameter
from core.metrics.window import check_window

EVALUATE, COMPARE = "evaluate", "compare"
"""The kinds of job that judge models."""

MOST_WINDOWS = 10
LEVELS = (0.5, 0.999)
DEFAULT_LEVEL = 0.95

Json = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """Models on a dataset, as the check found them."""

    models: Sequence[Model]
    dataset: Dataset


def find_judged(
    session: Session,
    owner: str,
    refs: Sequence[str],
    pointers: Sequence[str],
    dataset_id: str,
    *,
    hold: bool,
) -> Judged:
    """Find models and dataset, and see that the one fits the others; raises NotFound, Conflict or Invalid. `hold` keeps
    them as they are until a job on them is written.
    """
    find_model = find_to_use if hold else find_named
    found = [
        find_model(session, owner, ref, {"pointer": pointer})
        for ref, pointer in zip(refs, pointers, strict=True)
    ]
    if hold:
        hold_datasets(session, owner, dataset_id)
    dataset = ready_dataset(session, owner, dataset_id, "/dataset_id")
    for model in found:
        _check_fits(model, dataset)
    check_pairs_ready(dataset, "/dataset_id")
    return Judged(found, dataset)


def _check_fits(model: Model, dataset: Dataset) -> None:
    """The dataset must be of the model's kind, have its features, and the two values of its label."""
    name = f"{model.name}:{model.version}"
    if dataset.kind != model.kind:
        raise _invalid(
            "/dataset_id",
            f"dataset {dataset.id} must be of kind {model.kind}, which {name} was trained on, "
            f"it is {dataset.kind}",
            code="wrong_kind",
        )
    if (lack := find_lack(model.features, dataset)) is not None:
        detail = f"dataset {dataset.id} {lack}, which {name} takes"
        raise _invalid("/dataset_id", detail, code="unknown_column")
    if label_values(dataset) != label_values(model):
        raise _invalid(
            "/dataset_id",
            f"dataset {dataset.id} must have the label values {show_labels(model)} of {name}, "
            f"it has {show_labels(dataset)}",
            code="label_mismatch",
        )


def check_windows(windows: Sequence[Window]) -> list[Json]:
    """The windows as they are kept; raises Invalid for one that is none, too many of them, or one twice."""
    if not 1 <= len(windows) <= MOST_WINDOWS:
        raise _invalid("/windows", f"windows must be 1 to {MOST_WINDOWS}, got {len(windows)}")
    for number, window in enumerate(windows):
        try:
            check_window(*window)
        except InvalidParameter as error:
            raise _invalid(f"/windows/{number}/fpr_max", str(error)) from error
        if window in windows[:number]:
            detail = f"windows must differ, [{window[0]:g}, {window[1]:g}] is there twice"
            raise _invalid(f"/windows/{number}", detail)
    return [{"fpr_min": fpr_min, "fpr_max": fpr_max} for fpr_min, fpr_max in windows]


def check_level(level: float) -> None:
    """Raise Invalid for a level of the intervals that nobody means."""
    if not LEVELS[0] <= level <= LEVELS[1]:
        raise _invalid(
            "/level", f"level must be from {LEVELS[0]:g} to {LEVELS[1]:g}, got {level:g}"
        )


def refuse_windows(dataset: Dataset) -> None:
    """Raise Invalid for windows that were asked for where rows have no false positive rate."""
    if dataset.kind == DatasetKind.PREFERENCES:
        raise _invalid("/windows", "pairs have no false positive rate: leave the windows out")


def seen_before(model: Model, dataset: Dataset) -> str | None:
    """Say what the model has to do with the dataset already: equal content, or rows that versions have in common."""
    name, judged = f"{model.name}:{model.version}", lineage_of(dataset)
    # By id as well: a worker of a version without lineage names no more, and works on during an upgrade.
    if model.dataset_id == dataset.id or shares_rows(model.dataset, judged):
        return (
            f"{name} was trained on rows of this dataset: its figures here flatter it, "
            "and say nothing of rows to come"
        )
    validated_on = model.validation.get("dataset_id")
    if validated_on == dataset.id or shares_rows(model.validation_dataset, judged):
        return f"{name} was validated on rows of this dataset"
    return None


def _invalid(pointer: str, detail: str, *, code: str | None = None) -> Invalid:
    return Invalid(detail, code=code, errors=[{"pointer": pointer, "detail": detail}])
