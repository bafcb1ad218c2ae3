"""Partial dependence of a model's scores on one or two features, averaged over the rows sampled at training."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from app.datasets import repository as dataset_repository
from app.datasets.matrices import Floats
from app.http.schemas import ModelId, Resource
from app.models import repository as model_repository
from app.models.curve_schemas import DataPart, OnPart
from app.models.service import find
from app.platform import catalogue
from app.platform.blobs import Blob, BlobStore
from app.platform.documents import ModelFeature
from app.platform.errors import Conflict, Invalid, NotFound, ServiceError
from app.platform.sql import Session
from app.platform.tables import Model
from app.scoring.service import Served
from app.training.interpretation import read_sample
from core import explain
from core.base.table import CodedTable

if TYPE_CHECKING:
    from core.base.ranker import Ranker
    from core.explain import Axis


MAX_FEATURES = 2
"""Features of partial dependence."""

MAX_VARIABLES, VARIABLE_ROWS = 10, 100
"""Features and rows of variable dependence: it takes up to 55 averages over rows × rows scores."""

MAX_CATEGORIES = 100
"""Categories of a feature that are shown: the most frequent ones."""

MAX_SCORED = 400_000
"""Rows that are scored for an answer: with more grid points each average is over fewer rows."""

MAX_SECONDS = 10.0
"""CPU seconds that an answer may take, by the measured cost of a row: others wait for its permit."""

MIN_AVERAGED = 20
"""Rows of each average, however many grid points there are."""


@dataclass(frozen=True)
class Dependence:
    """Mean scores on a grid. `features` have axes and, if categorical, texts; `averaged` is the number of rows in the
    mean.

    `scores` has one dimension per feature.
    """

    model: Model
    features: Sequence[ModelFeature]
    axes: Sequence[Axis]
    categories: Sequence[Sequence[str] | None]
    scores: Floats
    averaged: int


@dataclass(frozen=True)
class DependenceInput:
    """Features of a model (positions), and a part's stored sample: its number of rows, and a blob or the bytes."""

    model: Model
    part: DataPart
    columns: Sequence[int]
    rows: int
    sample: Blob | bytes

    @property
    def features(self) -> Sequence[ModelFeature]:
        return [self.model.features[j] for j in self.columns]


def find_input(
    session: Session,
    owner: str,
    ref: str,
    names: Sequence[str],
    *,
    part: DataPart | None,
    max_features: int = MAX_FEATURES,
) -> DependenceInput:
    """Without a part, the training rows, or all rows of an imported model.

    Raises NotFound, Invalid, or Conflict if there are no rows.
    """
    model = find(session, owner, ref)
    if part is None:
        part = "validation" if model.imported is not None else "train"
    return find_rows(session, model, part, _columns(model, names, max_features))


def find_rows(
    session: Session, model: Model, part: DataPart, columns: Sequence[int] = ()
) -> DependenceInput:
    """Raises NotFound, or Conflict if there are no rows."""
    sample = model_repository.find_sample(session, model.id, part)
    if sample is None:
        raise _no_rows(session, model, part)
    stored = catalogue.find(session, sample.sample_key)
    return DependenceInput(model, part, columns, sample.rows, stored)


def find_kept(session: Session, model: Model) -> DependenceInput | None:
    """Return the held-out rows that are kept, or else the training rows; None if none are."""
    parts: tuple[DataPart, ...] = ("validation", "train")
    for part in parts:
        if model_repository.find_sample(session, model.id, part) is not None:
            return find_rows(session, model, part)
    return None


def read_rows(input: DependenceInput, blobs: BlobStore) -> tuple[Floats, Floats]:
    """Raises BlobMissing and BlobDamaged."""
    sample = input.sample
    data = sample if isinstance(sample, bytes) else blobs.fetch(sample).read_bytes()
    return read_sample(data, input.rows, len(input.model.features))


def average(
    input: DependenceInput, blobs: BlobStore, served: Served, *, label: str | None, n_points: int
) -> Dependence:
    """Return the mean scores of the sampled rows, with one or two features set to values on a grid."""

    position = served.label(label)
    ranker = served.ranker
    X, weight = read_rows(input, blobs)
    axes = [
        explain.make_axis(
            j,
            X[:, j],
            weight,
            n_points,
            len(ranker.categories_[j] or ()),
            most_categories=MAX_CATEGORIES,
        )
        for j in input.columns
    ]
    n_cells = int(np.prod([len(axis.values) for axis in axes]))
    averaged = min(len(X), max(MIN_AVERAGED, MAX_SCORED // n_cells))
    _check_time(ranker, X, n_cells * averaged, "request fewer points, or one feature")
    # The rows are in random order, so the first ones are a sample, too.
    scores = explain.score_grid(ranker.score_rows, X[:averaged], weight[:averaged], axes)
    if served.labels is not None:
        scores = scores[..., position]
    categories = [ranker.categories_[j] for j in input.columns]
    return Dependence(input.model, input.features, axes, categories, scores, averaged)


class VariableDependence(Resource):
    """How much the scores depend on each of several features, and on pairs of them."""

    model_id: ModelId
    on: OnPart
    rows: int
    """Number of rows that were used."""
    features: list[str]
    """Names of the features, in the order of `main` and `joint`."""
    main: list[float]
    """Variance of each feature's partial dependence, as a fraction of the variance of the scores."""
    joint: list[list[float]]
    """H² of Friedman & Popescu for each pair of features: the fraction of the variance of their joint partial
    dependence that their separate effects do not explain. 0: the effects are additive."""


def decompose(input: DependenceInput, blobs: BlobStore, served: Served) -> VariableDependence:
    """Return how much the variance of the sampled rows' scores depends on features, alone and in pairs."""

    model = input.model
    if served.labels is not None:
        raise Invalid(
            f"variable dependence requires one score per row; model {model.id} has one for each of "
            f"{len(served.labels)} labels",
            code="unsupported",
        )
    X, weight = read_rows(input, blobs)
    n_averages = len(input.columns) * (len(input.columns) + 1) // 2
    _check_time(served.ranker, X, n_averages * VARIABLE_ROWS**2, "request fewer features")
    known = tuple(feature["name"] for feature in model.features)
    table = CodedTable(X, known, served.ranker.categories_)
    found = explain.variable_dependence(
        served.ranker, table, input.columns, sample_weight=weight, n_rows=VARIABLE_ROWS
    )
    n_rows = min(VARIABLE_ROWS, int((weight > 0).sum()))
    return VariableDependence(
        model_id=model.id,
        on=input.part,
        rows=n_rows,
        features=[feature["name"] for feature in input.features],
        main=found.main.tolist(),
        joint=found.joint.tolist(),
    )


def _check_time(ranker: Ranker, X: Floats, n_rows: int, advice: str) -> None:
    """Raise Invalid if `n_rows` rows would take longer than `MAX_SECONDS`, extrapolated from the time for X."""
    ranker.score_rows(X[:1])  # the first call loads its kernels
    started = time.thread_time()
    ranker.score_rows(X)
    seconds = (time.thread_time() - started) / len(X) * n_rows
    if seconds > MAX_SECONDS:
        raise _refusal(
            f"a response can take at most {MAX_SECONDS:g} s, but with this model {n_rows} rows take about "
            f"{seconds:.0f} s: {advice}",
            code="invalid_parameter",
        )


def _columns(model: Model, names: Sequence[str], max_features: int) -> list[int]:
    """Raises Invalid for wrong, repeated or too many names."""
    if not 1 <= len(names) <= max_features:
        times = "once or twice" if max_features == MAX_FEATURES else f"1 to {max_features} times"
        raise _refusal(f"feature must be given {times}, got {len(names)} of them")
    known = [feature["name"] for feature in model.features]
    for name in names:
        if name not in known:
            shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
            detail = f"feature {name[:100]!r} is unknown; the model has {shown}"
            raise _refusal(detail, code="unknown_feature")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        detail = f"features must differ; {twice[:100]!r} occurs twice"
        raise _refusal(detail, code="duplicate_feature")
    return [known.index(name) for name in names]


def _refusal(detail: str, code: str = "invalid") -> Invalid:
    return Invalid(
        detail, code=code, errors=[{"parameter": "feature", "detail": detail, "code": code}]
    )


def _no_rows(session: Session, model: Model, part: str) -> ServiceError:
    """The error says why the part has no sampled rows."""
    method = model.validation["method"]
    if part == "validation" and method not in ("holdout", "dataset"):
        return NotFound(
            f"model {model.id} has no validation part: it was trained with validation.method {method!r}",
            code="no_part",
        )
    dataset_id = model.dataset_id
    if part == "validation" and method == "dataset":
        dataset_id = model.validation["dataset_id"]
    if dataset_repository.find(session, model.owner, dataset_id) is None:
        return Conflict(
            f"partial dependence needs rows of dataset {dataset_id}, which was deleted with its rows",
            code="dataset_deleted",
        )
    return Conflict(
        f"no rows were kept when model {model.id} was trained: train it again to get partial dependence",
        code="no_sample",
    )
