"""Evaluations by groups: the check of a request, and the columns that define the groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.evaluation.requests import EvaluationRequest
from app.models import repository as model_rows
from app.models.groups import (
    Grouping,
    grouping_of_protected,
    makes_groups,
    protected_groupings,
)
from app.models.objectives import target_fpr
from app.models.service import VALIDATION
from app.platform.errors import invalid, shown
from app.platform.sql import Json, Session
from app.platform.tables import Dataset, DatasetKind, Evaluation, Model
from core.metrics.window import MAX_GROUPS

RATES = ("fpr", "tpr")
BY_GROUP = "by_group"
"""Key of the metrics by group in an evaluation's stored metrics."""
PROTECTED = "protected"


def check_groups(
    session: Session, model: Model, dataset: Dataset, asked: EvaluationRequest, *, has_cutoff: bool
) -> None:
    """Raise Invalid for a column without groups, or undetermined cutoffs. `has_cutoff`: an alias has a guarantee."""
    if not (asked.group_by or asked.at or asked.cutoffs or asked.protected):
        return
    if dataset.kind != DatasetKind.BIPARTITE:
        detail = (
            f"group_by, at and cutoffs require rows with one label; dataset {dataset.id} is of kind "
            f"{dataset.kind}"
        )
        fields = ("group_by", "at", "cutoffs", "protected")
        pointer = next(f"/{name}" for name in fields if getattr(asked, name))
        raise invalid(pointer, detail, code="wrong_kind")
    if asked.at is not None:
        _check_at(session, model, asked.at.model_dump(exclude_none=True))
    if asked.group_by is not None:
        _check_column(dataset, asked.group_by)
    for index, name in enumerate(asked.protected or ()):
        _check_protected(dataset, name, index)
    if asked.cutoffs is None:
        return
    if asked.group_by is None:
        raise invalid("/cutoffs", "cutoffs are chosen by group: name the column in group_by")
    if asked.at is not None or has_cutoff:
        return
    if target_fpr(model.objective) is None or not _has_curve(session, model):
        rate = asked.cutoffs.removeprefix("equal_")
        detail = (
            f"cutoffs={asked.cutoffs} needs a rate, and the model has no cutoff: pass at, for example "
            f'{{"{rate}": 0.1}}'
        )
        raise invalid("/cutoffs", detail)


def _check_at(session: Session, model: Model, at: Mapping[str, float]) -> None:
    """Raise Invalid unless `at` has one member, and a rate has a curve."""
    if len(at) != 1:
        got = ", ".join(at) or "none"
        raise invalid("/at", f"at must have exactly one of fpr, tpr and threshold, got {got}")
    (name,) = at
    if name in RATES and not _has_curve(session, model):
        detail = (
            f"at.{name} chooses the model's cutoff on its validation rows, but "
            f"{model.name}:{model.version} has no validation curve: pass at.threshold"
        )
        raise invalid(f"/at/{name}", detail, code="no_curve")


def _has_curve(session: Session, model: Model) -> bool:
    return model_rows.has_curve(session, model.id, VALIDATION)


def _check_column(dataset: Dataset, name: str) -> None:
    """Raise Invalid for too many distinct values."""
    what = "a column of categories, booleans or few numbers"
    column = usable_column(dataset, name, "group_by", what)
    if column["type"] == "datetime":
        raise invalid("/group_by", f"group_by must be {what}; {shown(name)} is of type datetime")
    groups = column["distinct"] + (1 if column["missing"] else 0)
    if groups > MAX_GROUPS:
        raise invalid(
            "/group_by",
            f"group_by must have at most {MAX_GROUPS} groups; {shown(name)} has {groups}",
        )


def _check_protected(dataset: Dataset, name: str, index: int) -> None:
    """Raise Invalid unless the column defines groups. `index` is its position in the request."""
    what = "a column of categories, booleans or numbers"
    column = usable_column(dataset, name, f"protected/{index}", what)
    if not makes_groups(column):
        detail = (
            f"protected must be columns of numbers, or of at most {MAX_GROUPS} categories; {shown(name)} "
            f"is of type {column['type']} with {column['distinct']} values"
        )
        raise invalid(f"/protected/{index}", detail)


def groupings_of_protected(dataset: Dataset, asked: EvaluationRequest) -> list[Grouping]:
    """Return requested, or else declared and suggested groupings, without `group_by`. The request must be checked."""
    if dataset.kind != DatasetKind.BIPARTITE:
        return []
    if asked.protected is None:
        found = protected_groupings(dataset)
    else:
        columns = (each for each in dataset.columns if each["name"] in asked.protected)
        found = [grouping_of_protected(each) for each in columns]
    return [each for each in found if each["column"] != asked.group_by]


def usable_column(dataset: Dataset, name: str, field: str, what: str) -> Mapping[str, Any]:
    """Return the profile of a requested column. Raises Invalid if it is unknown, empty, dropped or the label.

    `what` describes the allowed columns in the message.
    """
    column = find_column(dataset, name)
    if column is None:
        known = [each["name"] for each in dataset.columns]
        listed = ", ".join(map(repr, known[:20])) + (", …" if len(known) > 20 else "")
        detail = (
            f"{field} must be a column of dataset {dataset.id}, got {shown(name)}; it has {listed}"
        )
        raise invalid(f"/{field}", detail, code="unknown_column")
    why = None
    if column["role"] == "label":
        why = "is the label"
    elif column["role"] == "dropped":
        why = "was dropped in the upload"
    elif not column["distinct"]:
        why = "is empty"
    if why is not None:
        raise invalid(f"/{field}", f"{field} must be {what}; {shown(name)} {why}")
    return column


def find_column(dataset: Dataset, name: str) -> Mapping[str, Any] | None:
    return next((column for column in dataset.columns if column["name"] == name), None)


def grouping_of(dataset: Dataset, asked: EvaluationRequest) -> Grouping | None:
    """Return None without `group_by`. The request must be checked."""
    if asked.group_by is None:
        return None
    column = find_column(dataset, asked.group_by)
    assert column is not None
    rate = None
    if asked.cutoffs is not None and asked.at is not None:
        rate = getattr(asked.at, asked.cutoffs.removeprefix("equal_"))
    return {
        "column": asked.group_by,
        "type": column["type"],
        "cutoffs": asked.cutoffs,
        "rate": rate,
    }


def groups_of(evaluation: Evaluation) -> list[Json]:
    """The requested one is the first."""
    metrics = evaluation.metrics or {}
    asked = metrics.get(BY_GROUP)
    return [*([] if asked is None else [asked]), *metrics.get(PROTECTED, [])]
