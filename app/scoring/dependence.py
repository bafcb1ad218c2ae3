"""Partial dependence of a model's scores on one or two features, over the rows that were kept beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from app.datasets import repository as dataset_rows
from app.datasets.matrices import Floats
from app.models import repository as rows
from app.models.service import find
from app.platform.errors import Conflict, Invalid, NotFound, ServiceError
from app.platform.sql import Session
from app.platform.tables import Model, ModelSample
from app.scoring.service import Served
from app.training.interpretation import read_sample

if TYPE_CHECKING:
    from core.explain import Axis, VariableDependence


MAX_FEATURES = 2

# Of variable dependence: 55 averages over rows × rows scores.
MAX_VARIABLES, VARIABLE_ROWS = 10, 100

MAX_CATEGORIES = 100
"""Of a feature with more categories the most frequent are shown."""

MAX_SCORED = 400_000
MIN_AVERAGED = 20
"""So many rows are scored for an answer: over many grid points each average is of fewer rows, but of some."""


@dataclass(frozen=True)
class Dependence:
    """Mean scores on the grid of one or two features.

    `features` are theirs in the model, each with its axis and, where it is categorical, the texts of its categories;
    `scores` has a dimension for each; `averaged` says over how many rows.
    """

    model: Model
    features: Sequence[Mapping[str, Any]]
    axes: Sequence[Axis]
    categories: Sequence[Sequence[str] | None]
    scores: Floats
    averaged: int


@dataclass(frozen=True)
class Subject:
    """What is looked at: features of a model, by their columns, and the rows of a part that were kept."""

    model: Model
    columns: Sequence[int]
    kept: ModelSample

    @property
    def features(self) -> Sequence[Mapping[str, Any]]:
        """The features, as the model has them."""
        return [self.model.features[j] for j in self.columns]


def find_subject(
    session: Session,
    owner: str,
    ref: str,
    names: Sequence[str],
    *,
    part: str,
    most: int = MAX_FEATURES,
) -> Subject:
    """Find at most so many features of a model, and the rows; raises NotFound, Invalid, or Conflict without rows."""
    model = find(session, owner, ref)
    columns = _columns(model, names, most)
    kept = rows.find_sample(session, model.id, part)
    if kept is None:
        raise _no_rows(session, model, part)
    return Subject(model, columns, kept)


def average(subject: Subject, served: Served, *, label: str | None, n_points: int) -> Dependence:
    """Average the scores of the rows that were kept, with one or two features set to values on a grid."""
    from core.explain import make_axis, score_grid

    position = served.label(label)
    ranker = served.ranker
    X, weight = read_sample(subject.kept)
    axes = [
        make_axis(
            j,
            X[:, j],
            weight,
            n_points,
            len(ranker.categories_[j] or ()),
            most_categories=MAX_CATEGORIES,
        )
        for j in subject.columns
    ]
    n_cells = int(np.prod([len(axis.values) for axis in axes]))
    averaged = min(len(X), max(MIN_AVERAGED, MAX_SCORED // n_cells))
    # They lie in random order, so the first of them are a sample, too.
    scores = score_grid(ranker.score_rows, X[:averaged], weight[:averaged], axes)
    if served.labels is not None:
        scores = scores[..., position]
    categories = [ranker.categories_[j] for j in subject.columns]
    return Dependence(subject.model, subject.features, axes, categories, scores, averaged)


@dataclass(frozen=True)
class FoundVariables:
    """How much scores depend on features of a model, alone and in pairs; see `core.explain`."""

    model: Model
    features: Sequence[Mapping[str, Any]]
    dependence: VariableDependence
    rows: int


def decompose(subject: Subject, served: Served) -> FoundVariables:
    """Measure how much the scores of the rows that were kept depend on features, alone and in pairs."""
    from core.base.table import CodedTable
    from core.explain import variable_dependence

    model = subject.model
    if served.labels is not None:
        raise Invalid(
            "variable dependence is of one score a row, "
            f"model {model.id} has one for each of {len(served.labels)} labels",
            code="unsupported",
        )
    X, weight = read_sample(subject.kept)
    known = tuple(feature["name"] for feature in model.features)
    table = CodedTable(X, known, served.ranker.categories_)
    found = variable_dependence(
        served.ranker, table, subject.columns, sample_weight=weight, n_rows=VARIABLE_ROWS
    )
    n_rows = min(VARIABLE_ROWS, int((weight > 0).sum()))
    return FoundVariables(model, subject.features, found, n_rows)


def _columns(model: Model, names: Sequence[str], most: int) -> list[int]:
    if not 1 <= len(names) <= most:
        times = "once or twice" if most == MAX_FEATURES else f"1 to {most} times"
        raise _refusal(f"feature must be given {times}, got {len(names)} of them")
    known = [feature["name"] for feature in model.features]
    for name in names:
        if name not in known:
            shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
            detail = f"feature {name[:100]!r} is unknown; the model has {shown}"
            raise _refusal(detail, code="unknown_feature")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        detail = f"features must differ, got {twice[:100]!r} twice"
        raise _refusal(detail, code="duplicate_feature")
    return [known.index(name) for name in names]


def _refusal(detail: str, code: str = "invalid") -> Invalid:
    return Invalid(
        detail, code=code, errors=[{"parameter": "feature", "detail": detail, "code": code}]
    )


def _no_rows(session: Session, model: Model, part: str) -> ServiceError:
    """Say why there is nothing to average over."""
    method = model.validation["method"]
    if part == "validation" and method not in ("holdout", "dataset"):
        return NotFound(
            f"model {model.id} has no validation part: it was trained with validation.method {method!r}",
            code="no_part",
        )
    dataset_id = model.dataset_id
    if part == "validation" and method == "dataset":
        dataset_id = model.validation["dataset_id"]
    if dataset_rows.find(session, model.owner, dataset_id) is None:
        return Conflict(
            f"partial dependence averages over rows of dataset {dataset_id}, which was deleted: none of them is kept",
            code="dataset_deleted",
        )
    return Conflict(
        f"no rows were kept when model {model.id} was trained: train it again to ask for partial dependence",
        code="no_sample",
    )
