"""How much each feature matters to a model: measured in the fit process, stored, and read.

There is one definition per kind of ranker, and an answer names it: figures of two methods cannot be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from app.datasets.matrices import Floats, Table
from app.models import repository as rows
from app.models.service import find, find_label
from app.platform.errors import NotFound
from app.platform.sql import Json, Session
from app.platform.tables import ModelImportance
from app.training.samples import as_scored
from app.training.split_data import SplitData
from core.errors import InvalidParameter

if TYPE_CHECKING:
    from core.ranker import Ranker


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
MOST_SCORED = 500_000
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
    judges = split_data.judges(seed)
    if judges is None:
        return None
    part, table = judges
    few = _few(as_scored(table, ranker))
    losses = permutation_importance(
        ranker.score_rows, few.X, few.y, few.weight, n_repeats=DEALS, random_state=seed % 2**64
    )
    return _found(PERMUTATION, part, losses)


def _few(table: Table) -> Table:
    """So many rows, of each class, that scoring their deals stays within its bound."""
    each = max(FEWEST_JUDGES, MOST_SCORED // (2 * DEALS * table.X.shape[1]))
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


def row_of(model_id: str, names: Sequence[str], found: Mapping[str, Any]) -> ModelImportance:
    """What `measure` found, as a row."""
    features: list[Json] = [
        {"name": name, "importance": value}
        for name, value in zip(names, found["values"], strict=True)
    ]
    if "gains" in found:
        for feature, gain in zip(features, found["gains"], strict=True):
            feature |= {"root": math.sqrt(feature["importance"]), "auc_gain": gain}
    return ModelImportance(
        model_id=model_id, method=found["method"], part=found["part"], features=features
    )


def read(session: Session, owner: str, ref: str, label: str | None) -> Json:
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
