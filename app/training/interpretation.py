"""What is kept of a model so that it can be asked what it has learnt: a few rows of each part, and importances.

The rows are people's data: they go when the dataset goes that they came from. There is one definition of importance per
kind of ranker, and an answer names it: figures of two methods cannot be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.datasets.matrices import Floats, Rows, Table
from app.models import repository as rows
from app.models.service import find, find_label
from app.platform.errors import NotFound
from app.platform.sql import Json, Session
from app.platform.tables import ModelSample
from core.errors import InvalidParameter

if TYPE_CHECKING:
    from app.training.splits import SplitData
    from core.base.ranker import Ranker

MAX_ROWS = 1_000
MIN_ROWS = 100
MAX_VALUES = 500_000
"""A sample's rows, and its rows times features, are no more: 4 MB, or 100 rows of a wider table."""

_ROWS_AT_ONCE = 1 << 16


def draw(table: Table, seed: int, rows: Rows | None = None) -> Table:
    """A few rows of weight above 0, of all or of some, in random order: the first of them are a sample, too."""
    among = np.arange(len(table.X)) if rows is None else rows
    return table.take(_draw(table, seed, among, _most(table)))


def draw_classes(table: Table, seed: int) -> Table:
    """As many rows of one class as of the other, or all that there are: what AUC is estimated from best."""
    half = _most(table) // 2
    drawn = [_draw(table, seed, np.flatnonzero(table.y == y), half) for y in (0, 1)]
    return table.take(np.concatenate(drawn))


def _most(table: Table) -> int:
    n_features: int = table.X.shape[1]
    return min(MAX_ROWS, max(MIN_ROWS, MAX_VALUES // n_features))


def _draw(table: Table, seed: int, among: Rows, most: int) -> Rows:
    if table.weight is not None:
        among = among[table.weight[among] > 0]
    generator = np.random.Generator(np.random.Philox(key=seed % 2**64))
    return generator.permutation(among)[:most]


def as_scored(sample: Table, ranker: Ranker) -> Table:
    """The rows with the ranker's own categories, which may be fewer than the table's."""
    from core.base.table import to_matrix

    X, categories = to_matrix(sample.coded, ranker.categories_)
    return replace(sample, X=X, categories=categories)


def write_sample(workdir: Path, part: str, sample: Table) -> Json:
    """Put the rows into a file, as they will lie in SQL."""
    name = f"{part}.sample"
    weight = b"" if sample.weight is None else sample.weight.astype("<f8").tobytes()
    (workdir / name).write_bytes(sample.X.astype("<f8").tobytes("C") + weight)
    return {"file": name, "rows": len(sample.X), "features": sample.X.shape[1]}


def read_sample(row: ModelSample) -> tuple[Floats, Floats]:
    """The rows, of shape (rows, features), and their weights."""
    values = np.frombuffer(row.values, dtype="<f8").reshape(row.rows, -1)
    if row.weight is None:
        return values, np.ones(row.rows)
    return values, np.frombuffer(row.weight, dtype="<f8")


def score(ranker: Ranker, table: Table, n_labels: int | None = None) -> Floats:
    """The scores of a table, of shape (rows,), or (rows, labels) of a ranker for several.

    They are computed in blocks: the ranker reads rows, the table lies in columns, and a whole copy would double its
    memory.
    """
    from core.base.table import to_matrix

    scores = np.empty(len(table.X) if n_labels is None else (len(table.X), n_labels))
    X, _ = to_matrix(table.coded, ranker.categories_)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        block = np.ascontiguousarray(X[start : start + _ROWS_AT_ONCE])
        scores[start : start + _ROWS_AT_ONCE] = ranker.score_rows(block)
    return scores


SQUARED_GAIN = "squared_auc_gain"
CONTRIBUTION = "mean_absolute_contribution"
PERMUTATION = "permutation_auc"
METHODS: Mapping[str, str] = {
    SQUARED_GAIN: "Sum of the squared gains of AUC on the training rows, Σ (ΔAUC)², over the cuts on the feature "
    "(Clémençon, Depecker & Vayatis 2011, §5.1). root is its square root, auc_gain is Σ ΔAUC.",
    CONTRIBUTION: "Mean size of the feature's part of the score, |contribution|, over a sample of the training rows; "
    "in units of the score.",
    PERMUTATION: "AUC that is lost on a sample of held-out rows when the feature's values are dealt out to them anew, "
    "mean of 5 deals. 0 where the ranker does not need the feature; below 0 is noise.",
}
DEALS = 5
MAX_SCORED = 500_000
FEWEST_JUDGES = 25
"""Permutation deals each feature out so often, and scores so many rows for it, or 25 of each class per deal."""


def measure(ranker: Ranker, split_data: SplitData, train: Table, seed: int) -> Json | None:
    """Measure importances in the first way that the ranker has; None where it has none of them.

    Runs in the fit process. `train` holds a few rows of the training part, as the ranker scores them.
    """
    from core.explain import mean_absolute, permutation_importance

    squared = getattr(ranker, "feature_importances_", None)
    if squared is not None:
        gains = getattr(ranker, "auc_gains_")  # noqa: B009 - comes with the other, in no common base
        return _found(SQUARED_GAIN, "train", squared) | {"gains": gains.tolist()}
    parts = _parts(ranker, train)
    if parts is not None:
        weight = np.ones(len(parts)) if train.weight is None else train.weight
        return _found(CONTRIBUTION, "train", mean_absolute(parts, weight))
    drawn = split_data.evaluation_rows(seed)
    if drawn is None:
        return None
    part, table = drawn
    few = _few(as_scored(table, ranker))
    losses = permutation_importance(
        ranker.score_rows, few.X, few.y, few.weight, n_repeats=DEALS, random_state=seed
    )
    return _found(PERMUTATION, part, losses)


def _few(table: Table) -> Table:
    """So many rows, of each class, that scoring their deals stays within its bound."""
    each = max(FEWEST_JUDGES, MAX_SCORED // (2 * DEALS * table.X.shape[1]))
    rows = [np.flatnonzero(table.y == y)[:each] for y in (0, 1)]
    few = table.take(np.concatenate(rows))
    return replace(few, X=np.ascontiguousarray(few.X))


def _parts(ranker: Ranker, train: Table) -> Floats | None:
    """The parts that scores are sums of, feature by feature; None where they are not."""
    if not hasattr(ranker, "contributions"):
        return None
    try:
        parts: Floats = ranker.contributions(train.coded)
    except InvalidParameter:  # not with these parameters
        return None
    return parts


def _found(method: str, part: str, values: Any) -> Json:
    return {"method": method, "part": part, "values": np.asarray(values).tolist()}


def read_importance(session: Session, owner: str, ref: str, label: str | None) -> Json:
    """The features by importance, the greatest first; with several labels, to the scores of one."""
    model = find(session, owner, ref)
    found = rows.find_importance(session, model.id)
    labels = None if model.labels is None else [known["name"] for known in model.labels]
    position = find_label(labels, label)
    if found is None:
        raise NotFound(
            f"model {model.id} ({model.algorithm}) has no importances: they are measured at training, and were not "
            "for this one",
            code="no_importance",
        )
    features = [dict(feature) for feature in found.features]
    if labels is not None:
        for feature in features:
            feature["importance"] = feature["importance"][position]
    features.sort(key=lambda feature: -feature["importance"])
    return {
        "model_id": model.id,
        "method": found.method,
        "description": METHODS[found.method],
        "on": found.part,
        "label": label,
        "features": features,
    }
