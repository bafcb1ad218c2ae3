"""A rough estimate of the duration and the memory of a training job, from the size of its table."""

from __future__ import annotations

from typing_extensions import TypedDict

from app.datasets.service import feature_columns, ready_dataset
from app.jobs.parameters import protected_features
from app.platform.documents import Parameters
from app.platform.sql import Session
from app.platform.tables import Dataset, DatasetKind
from app.training import search
from app.training.records import TrainSpec
from app.training.search import AUTO
from app.training.splits import (
    BYTES_PER_CELL,
    BYTES_PER_CELL_OF_FOLDS,
    BYTES_PER_ROW,
    BYTES_PER_VALIDATION_CELL,
    CROSS_VALIDATION,
    folds_of,
)
from core.registry import ALGORITHMS

_SECONDS_OF_A_JOB = 1.0  # a process begins, loads its compiled code and reads the table
_SECONDS_OF_A_FIT = 0.02  # on however few rows: a table is divided, coded, fitted on and scored
_SECONDS_OF_BASELINES = 0.05
_SECONDS_PER_CELL_TO_BIN = 40e-9
_SECONDS_PER_CELL_AND_ROUND = 0.6e-9
_SECONDS_PER_LEAF_AND_FEATURE = (
    2.5e-6  # the bins of a leaf are looked through, however few its rows
)
_USUAL_LEAVES = 31
_SECONDS_PER_CELL_OF_BASELINES = 0.5e-6
_SECONDS_PER_PAIR_FEATURE_AND_ROUND = 5e-9
_SECONDS_PER_PAIR_AND_TREE = 20e-9  # trees look at items; only their weights come from the pairs
_BYTES_PER_PAIR = 80  # rows, weights, sorting and merging
_COLUMNS_PER_CROSS = (
    2  # core.coding.crosses.COLUMNS, whose module the API must not import: it compiles
)


class Estimate(TypedDict):
    seconds: float
    memory_bytes: int


def estimate(session: Session, owner: str, spec: TrainSpec) -> Estimate:
    """Estimate within a factor of about 3, on one core."""
    dataset = ready_dataset(session, owner, spec["dataset"]["id"], {"pointer": "/dataset_id"})
    algorithm, validation = spec["algorithm"], spec["validation"]
    parameters = {**algorithm.get("defaults", {}), **algorithm["parameters"]}
    other = None
    if validation["method"] == "dataset":
        other = ready_dataset(
            session, owner, validation["dataset_id"], {"pointer": "/validation/dataset_id"}
        )
    memory = _memory_bytes(spec, parameters, dataset, other)
    if (budget := search.budget_of(spec, 1)) is not None:
        return {"seconds": budget, "memory_bytes": memory}
    fits = [(algorithm["name"], parameters)]
    if (plan := spec.get("plan")) is not None:
        fits = [(each["algorithm"], each["parameters"]) for each in plan["members"]]
    seconds = sum(_fit_seconds(name, given, spec, dataset) for name, given in fits)
    seconds *= 1.0 + search.count_fits(spec)
    if spec["baselines"]["algorithms"]:
        cells = (dataset.rows or 0) * len(feature_columns(dataset, protected_features(spec)))
        seconds += _SECONDS_OF_BASELINES + cells * _SECONDS_PER_CELL_OF_BASELINES
    seconds *= 1 + len(folds_of(validation))
    return {"seconds": round(_SECONDS_OF_A_JOB + seconds, 3), "memory_bytes": memory}


def _memory_bytes(
    spec: TrainSpec, parameters: Parameters, dataset: Dataset, other: Dataset | None
) -> int:
    rows, features = dataset.rows or 0, len(feature_columns(dataset, protected_features(spec)))
    memory = rows * features * BYTES_PER_CELL + rows * BYTES_PER_ROW
    if other is not None:
        memory += (other.rows or 0) * features * BYTES_PER_VALIDATION_CELL
    if spec["validation"]["method"] == CROSS_VALIDATION and spec["algorithm"]["name"] != AUTO:
        memory += rows * features * BYTES_PER_CELL_OF_FOLDS
    if (pairs := _count_pairs(dataset)) is not None:
        return memory + pairs * _BYTES_PER_PAIR
    if crosses := min(parameters.get("crosses", 0), features * (features - 1) // 2):
        # Each adds two columns, and the table is copied.
        memory += rows * crosses * _COLUMNS_PER_CROSS * BYTES_PER_CELL + rows * features * 8
    return memory


def _fit_seconds(name: str, given: Parameters, spec: TrainSpec, dataset: Dataset) -> float:
    parameters = {**ALGORITHMS[name]().get_params(deep=False), **given}
    rows, features = dataset.rows or 0, len(feature_columns(dataset, protected_features(spec)))
    cells = rows * features
    seconds: float = _SECONDS_OF_A_FIT + cells * _SECONDS_PER_CELL_TO_BIN
    rounds = parameters.get("n_rounds", 1)
    if rounds is None:  # chosen by the fit: of trees in two fits, together about so many
        rounds = 500 if parameters["weak_ranker"] == "tree" else 100
    if (pairs := _count_pairs(dataset)) is not None:
        if parameters["weak_ranker"] == "tree":
            seconds += rounds * cells * _SECONDS_PER_CELL_AND_ROUND
            seconds += rounds * pairs * _SECONDS_PER_PAIR_AND_TREE
        else:
            seconds += rounds * pairs * features * _SECONDS_PER_PAIR_FEATURE_AND_ROUND
        return seconds
    labels = len(dataset.labels or [None])
    cost = ALGORITHMS[name].fit_cost
    if cost is not None:
        mapped = parameters.get("feature_map") is not None
        columns = parameters["n_components"] if mapped else features
        times = 1 if cost.times is None else parameters[cost.times]
        seconds += times * rows * columns * labels * cost.seconds_per_cell
    else:
        seconds += rounds * cells * labels * _SECONDS_PER_CELL_AND_ROUND
        if parameters.get("weak_ranker") == "tree":
            leaves = parameters.get("max_leaves")
            leaves = leaves if isinstance(leaves, int) else _USUAL_LEAVES
            seconds += rounds * leaves * features * labels * _SECONDS_PER_LEAF_AND_FEATURE
    return seconds


def _count_pairs(dataset: Dataset) -> int | None:
    if dataset.kind != DatasetKind.PREFERENCES or dataset.pairs is None:
        return None
    return dataset.pairs.pairs or 0
