"""Whether a dataset suits what a job asks of it: the algorithm, the objective, the validation and the search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.platform.errors import invalid, shown
from app.platform.sql import Json
from app.platform.tables import Dataset, DatasetKind
from app.training.search import AUTO
from app.training.splits import CROSS_VALIDATION
from core.errors import InvalidParameter
from core.registry import ALGORITHMS


def count_features(dataset: Dataset) -> int:
    """How many columns are learnt from."""
    return sum(column["role"] == "feature" for column in dataset.columns)


def check_search(searched: Mapping[str, Any] | None, dataset: Dataset) -> Json | None:
    """Check that the dataset's rows can be divided as the search wants it; return it."""
    if searched is None:
        return None
    if searched.get("folds") is not None and dataset.kind != DatasetKind.BIPARTITE:
        raise invalid(
            "/search/folds",
            f"search.folds are for datasets of kind bipartite, {dataset.id} is of kind {dataset.kind}: "
            "leave it out, and one part is held out",
            code="unsupported",
        )
    return dict(searched)


def check_validation(validation: Json, dataset: Dataset) -> None:
    """Check that the dataset's rows can be divided in folds, or by time, where that is asked."""
    method, time_column = validation["method"], validation.get("time_column")
    for asked, pointer in (
        (method == CROSS_VALIDATION, "method"),
        (time_column is not None, "time_column"),
    ):
        if asked and dataset.kind != DatasetKind.BIPARTITE:
            raise invalid(
                f"/validation/{pointer}",
                f"validation.{pointer} {shown(validation[pointer])} is for datasets of kind bipartite, "
                f"{dataset.id} is of kind {dataset.kind}; it can be validated by holdout or dataset",
                code="unsupported",
            )
    if time_column is None:
        return
    if validation.get("repeats", 1) > 1:
        raise invalid(
            "/validation/repeats",
            f"there is one order of time: repeats must be 1 with a time_column, got {validation['repeats']}",
        )
    _check_time_column(time_column, dataset)


def _check_time_column(name: str, dataset: Dataset) -> None:
    pointer = "/validation/time_column"
    column = next((column for column in dataset.columns if column["name"] == name), None)
    if column is None:
        raise invalid(pointer, f"dataset {dataset.id} has no column {shown(name)}")
    if column["role"] not in {"feature", "identifier"} or column["type"] == "boolean":
        raise invalid(
            pointer,
            "time_column must name a column of numbers or ISO 8601 dates that has no other role, "
            f"{shown(name)} is the {column['role']}, of type {column['type']}",
        )
    if column["role"] == "feature" and count_features(dataset) == 1:
        raise invalid(
            pointer, f"time_column is no feature, and the dataset has none beside {shown(name)}"
        )


def check_auto(dataset: Dataset) -> None:
    """Check that the dataset is one that `auto` knows rankers for."""
    if dataset.kind != DatasetKind.BIPARTITE:
        raise invalid(
            "/algorithm/name",
            f"{AUTO} learns from datasets of kind bipartite, {dataset.id} is of kind {dataset.kind}",
            code="wrong_kind",
        )


def check_target(name: str, dataset: Dataset) -> None:
    """Check that the algorithm learns from as many labels as the dataset has: one or several."""
    target = "multilabel" if dataset.kind == DatasetKind.MULTILABEL else "binary"
    if ALGORITHMS[name].target != target:
        able = ", ".join(other for other, it in ALGORITHMS.items() if it.target == target)
        raise invalid(
            "/algorithm/name",
            f"{name} does not learn from datasets of kind {dataset.kind}; those that do are {able}",
            code="wrong_kind",
        )


def check_curve(objective: Json, dataset: Dataset) -> None:
    """Check that the model will have the one curve that a rate is cut at."""
    if objective["metric"] == "tpr" and dataset.kind == DatasetKind.MULTILABEL:
        raise invalid(
            "/objective/metric",
            "objective.metric tpr needs a score per row to cut, a dataset of kind multilabel has one per label; "
            "use auc or pauc",
        )


def check_categories(algorithm: Json, dataset: Dataset) -> None:
    """Check that the algorithm takes categorical features, with these parameters, where there are any."""
    categorical = [
        column["name"]
        for column in dataset.columns
        if (column["role"], column["type"]) == ("feature", "categorical")
    ]
    if (
        categorical
        and not ALGORITHMS[algorithm["name"]](**algorithm["parameters"]).takes_categories()
    ):
        able = ", ".join(name for name, other in ALGORITHMS.items() if other().takes_categories())
        named = ", ".join(map(repr, categorical[:10])) + (", …" if len(categorical) > 10 else "")
        raise invalid(
            "/algorithm/name",
            f"{algorithm['name']} takes numeric features only with these parameters, {named} are categorical; "
            f"those that take them by default are {able or 'none yet'}",
            code="categorical_features",
        )


def check_pair_learner(algorithm: Json, objective: Json) -> Json:
    """Check that the algorithm learns from pairs, with these parameters; return what it aims at."""
    estimator = ALGORITHMS[algorithm["name"]]
    if not hasattr(estimator, "fit_pairs"):
        able = ", ".join(name for name, other in ALGORITHMS.items() if hasattr(other, "fit_pairs"))
        raise invalid(
            "/algorithm/name",
            f"{algorithm['name']} does not learn from pairs; those that do are {able}",
            code="wrong_kind",
        )
    if objective["metric"] != "auc":
        raise invalid(
            "/objective/metric",
            "pairs have no false positive rate: leave the objective out, "
            f"got {objective['metric']!r}",
        )
    try:
        estimator(**algorithm["parameters"]).check_pair_parameters()
    except InvalidParameter as error:
        raise invalid("/algorithm", str(error), code="invalid_parameter") from error
    return {"metric": "pair_order"}
