"""Training jobs as they are submitted: every rule is checked and every default filled in before a row is written. Also
the algorithms as callers see them, from the estimators' signatures; and how a model was evaluated.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from pydantic import ConfigDict, Field, create_model
from typing_extensions import TypedDict

from app.datasets.service import (
    check_pairs_ready,
    count_features,
    find_misfit,
    label_values,
    lineage_of,
    lock_datasets,
    ready_dataset,
    show_labels,
)
from app.ingest.hints import time_column
from app.jobs.parameters import TrainingParameters
from app.jobs.service import TRAIN, enqueue
from app.models.objectives import LIST_METRICS, check_objective, list_metric_of, window_of
from app.models.service import find
from app.platform.documents import Objective, Parameters, SearchSpec, Validation
from app.platform.errors import (
    MAX_ERRORS,
    Conflict,
    NotFound,
    check_name,
    escape,
    invalid,
    refuse_all,
    shown,
)
from app.platform.ids import is_id
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import (
    Dataset,
    DatasetKind,
    Job,
    Model,
    ModelBaselines,
    ModelLeaderboard,
    ModelOutOfFold,
)
from app.training import baselines, search
from app.training.records import AlgorithmSpec, TrainSpec
from app.training.search import (
    AUTO,
    DEFAULT_BUDGET_SECONDS,
    MAX_BUDGET_SECONDS,
    MAX_SCORE_MICROSECONDS,
)
from app.training.splits import (
    BYTES_PER_CELL,
    BYTES_PER_CELL_OF_FOLDS,
    BYTES_PER_JUDGE_CELL,
    BYTES_PER_ROW,
    CROSS_VALIDATION,
    HOLDOUT,
    folds_of,
)
from core import selection
from core.base.monotone import find_directions
from core.base.parameters import check_values, leave_out_newer, list_parameters
from core.errors import InvalidParameter
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.base.ranker import Ranker

JsonSchema = dict[str, Any]
VALIDATION_METHODS = ("holdout", "cross_validation", "dataset", "none")
JOB_LEVEL_PARAMETERS = {
    "random_state": "seed",
    "fpr_min": "objective",
    "fpr_max": "objective",
    "noise_rate": "label_noise",
}
"""Parameters of algorithms that a job sets by a field of its own: parameter -> field."""

_SECONDS_PER_CELL_TO_BIN = 40e-9
_SECONDS_PER_CELL_AND_ROUND = 0.6e-9
_SECONDS_OF_A_JOB = 1.0  # a process begins, loads its compiled code and reads the table
_SECONDS_PER_LEAF_AND_FEATURE = (
    2.5e-6  # the bins of a leaf are looked through, however few its rows
)
_USUAL_LEAVES = 31
_SECONDS_PER_CELL_OF_BASELINES = 0.5e-6
_SECONDS_PER_CELL_AND: Mapping[str, tuple[float, str | None]] = {
    "additive": (2.5e-6, "n_bags"),
    "greedy_pairs": (12e-6, None),
    "treerank_forest": (80e-9, "n_trees"),
    "komori_eguchi_boost": (28e-9, "n_rounds"),
    "sampled_martirank": (250e-9, "n_rounds"),
    "asymmetric_svm": (1.4e-6, None),
    **dict.fromkeys(
        ("auc_svm", "pauc_svm", "pauc_svm_dc", "top_push", "p_norm_push", "logistic", "treerank"),
        (0.5e-6, None),
    ),
}
"""Algorithms whose work is no pass over the bins by round -> their seconds per cell, of each of such a parameter;
measured on tables of 160,000 to 3 million cells. A map of rows makes its components the columns."""
_SECONDS_PER_PAIR_FEATURE_AND_ROUND = 5e-9
_SECONDS_PER_PAIR_AND_TREE = 20e-9  # trees look at items; only their weights come from the pairs
_BYTES_PER_PAIR = 80  # rows, weights, sorting and merging
_COLUMNS_PER_CROSS = (
    2  # core.coding.crosses.COLUMNS, whose module the API must not import: it compiles
)


@dataclass(frozen=True)
class TrainRequest(TrainingParameters):
    """What a caller asked for, with the defaults of the contract, before anything is looked up."""

    dataset_id: str
    algorithm: Mapping[str, Any]
    objective: Objective
    validation: Validation
    search: SearchSpec | None = None
    baselines: bool | None = None
    name: str | None = None
    timeout_seconds: float | None = None
    priority: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)


def refuse_unknown_methods(job: object) -> None:
    """Raise Invalid, with the methods that there are, for an unknown method of search or validation."""
    if not isinstance(job, Mapping):
        return
    asked = job.get("search")
    method = asked.get("method") if isinstance(asked, Mapping) else None
    if isinstance(method, str) and method not in search.METHODS:
        raise invalid(
            "/search/method",
            f"search.method must be one of {', '.join(search.METHODS)}, got {shown(method)}",
            code="unsupported",
        )
    validation = job.get("validation")
    method = validation.get("method") if isinstance(validation, Mapping) else None
    if isinstance(method, str) and method not in VALIDATION_METHODS:
        raise invalid(
            "/validation/method",
            f"validation.method must be one of {', '.join(VALIDATION_METHODS)}, got {shown(method)}",
            code="unsupported",
        )


def check(session: Session, settings: Settings, owner: str, request: TrainRequest) -> TrainSpec:
    """Check everything and return the complete spec; raises Invalid, NotFound or Conflict.

    It changes nothing, and locks nothing.
    """
    objective = request.objective.copy()
    check_objective(objective)
    algorithm = _resolve_algorithm(request, objective)
    budget = algorithm["parameters"].get("budget_seconds")
    _check_seconds(settings, "timeout_seconds", request.timeout_seconds)
    _check_seconds(settings, "algorithm/budget_seconds", budget)
    name = request.name or algorithm["name"]
    check_name("name", name, pointer="/name")
    if is_id(name, "mdl"):
        raise invalid("/name", f"name must not look like an id, got {name!r}")
    dataset = ready_dataset(session, owner, request.dataset_id, {"pointer": "/dataset_id"})
    if algorithm["name"] == AUTO:
        check_auto(dataset)
    elif dataset.kind == DatasetKind.PREFERENCES:
        objective = check_pair_learner(algorithm, objective)
    else:
        check_target(algorithm["name"], dataset)
        check_curve(objective, dataset)
    check_lists(algorithm, objective, dataset)
    if algorithm["name"] != AUTO:
        check_categories(algorithm, dataset)
    check_pairs_ready(dataset, "/dataset_id")
    validation = resolve_validation(request.validation, dataset)
    check_validation(validation, dataset)
    check_constraints(algorithm, dataset, validation.get("time_column"))
    judge, evaluated_rows = None, count_validation_rows(validation, dataset)
    if validation["method"] == "dataset":
        other = ready_dataset(
            session, owner, validation["dataset_id"], {"pointer": "/validation/dataset_id"}
        )
        check_pairs_ready(other, "/validation/dataset_id")
        _check_fits(dataset, other)
        judge, evaluated_rows = lineage_of(other), other.rows
        if not is_listed(dataset):
            check_list_size(objective, other, evaluated_rows)
    if not is_listed(dataset):
        check_list_size(objective, dataset, evaluated_rows)
    spec: TrainSpec = {
        "dataset": lineage_of(dataset),
        "validation_dataset": judge,
        "algorithm": algorithm,
        "objective": objective,
        "validation": validation,
        "search": check_search(request.search, dataset),
        "baselines": baselines.resolve(
            request.baselines,
            kind=dataset.kind,
            query=dataset.query,
            validation=validation,
        ),
        "seed": request.seed,
        "model_name": name,
    }
    cast(dict[str, Any], spec).update(request.as_spec())
    if "count" in objective and not is_listed(dataset):
        spec["evaluated_rows"] = evaluated_rows
    search.check_size(spec, 1 + len(folds_of(validation)))
    return spec


def submit(session: Session, settings: Settings, owner: str, request: TrainRequest) -> Job:
    """Check the request, and write its job in the caller's transaction."""
    lock_datasets(session, owner, request.dataset_id, request.validation.get("dataset_id"))
    spec = check(session, settings, owner, request)
    return enqueue(
        session,
        settings,
        owner=owner,
        kind=TRAIN,
        name=spec["model_name"],
        spec=cast(dict[str, Any], spec),
        tags=dict(request.tags),
        dataset_id=request.dataset_id,
        timeout_seconds=request.timeout_seconds or _timeout(settings, spec),
        priority=request.priority,
    )


def _timeout(settings: Settings, spec: TrainSpec) -> float:
    """Return the seconds of a job that names no timeout: the service's own, or twice the budget of `auto`."""
    budget: float = spec["algorithm"]["parameters"].get("budget_seconds", 0.0)
    return max(settings.job_timeout_seconds, 2.0 * float(budget))


def _check_seconds(settings: Settings, name: str, seconds: float | None) -> None:
    most = settings.max_job_seconds
    if seconds is not None and seconds > most:
        raise invalid(
            f"/{name}",
            f"{name.rpartition('/')[2]} can be at most {most:g} (RANKWRIGHT_MAX_JOB_SECONDS), got "
            f"{seconds:g}",
        )


class Estimate(TypedDict):
    """A rough guess of what a job takes."""

    seconds: float
    memory_bytes: int


def estimate(session: Session, owner: str, request: TrainRequest, spec: TrainSpec) -> Estimate:
    """Return a guess of time and memory from the table's size: within a factor of about 3, on one core."""
    dataset = ready_dataset(session, owner, request.dataset_id, {"pointer": "/dataset_id"})
    features = count_features(dataset)
    cells = (dataset.rows or 0) * features
    chosen = spec["algorithm"]
    parameters = {**chosen.get("defaults", {}), **chosen["parameters"]}
    rounds = parameters.get("n_rounds", 1)
    if rounds is None:  # chosen by the fit: of trees in two fits, together about so many
        rounds = 500 if parameters["weak_ranker"] == "tree" else 100
    seconds = cells * _SECONDS_PER_CELL_TO_BIN
    memory = cells * BYTES_PER_CELL + (dataset.rows or 0) * BYTES_PER_ROW
    validation = spec["validation"]
    if validation["method"] == "dataset":
        judge = ready_dataset(
            session, owner, validation["dataset_id"], {"pointer": "/validation/dataset_id"}
        )
        memory += (judge.rows or 0) * features * BYTES_PER_JUDGE_CELL
    if dataset.kind == DatasetKind.PREFERENCES and dataset.pairs is not None:
        pairs = dataset.pairs.pairs or 0
        if spec["algorithm"]["parameters"]["weak_ranker"] == "tree":
            seconds += rounds * cells * _SECONDS_PER_CELL_AND_ROUND
            seconds += rounds * pairs * _SECONDS_PER_PAIR_AND_TREE
        else:
            seconds += rounds * pairs * features * _SECONDS_PER_PAIR_FEATURE_AND_ROUND
        memory += pairs * _BYTES_PER_PAIR
    else:
        labels = len(dataset.labels or [None])
        if (own := _SECONDS_PER_CELL_AND.get(chosen["name"])) is not None:
            each, parameter = own
            mapped = parameters.get("feature_map") is not None
            columns = parameters["n_components"] if mapped else features
            times = 1 if parameter is None else parameters[parameter]
            seconds += times * (dataset.rows or 0) * columns * labels * each
        else:
            seconds += rounds * cells * labels * _SECONDS_PER_CELL_AND_ROUND
            if parameters.get("weak_ranker") == "tree":
                leaves = parameters.get("max_leaves")
                leaves = leaves if isinstance(leaves, int) else _USUAL_LEAVES
                seconds += rounds * leaves * features * labels * _SECONDS_PER_LEAF_AND_FEATURE
        if spec.get("baselines", {}).get("algorithms"):
            seconds += cells * _SECONDS_PER_CELL_OF_BASELINES
        if crosses := min(parameters.get("crosses", 0), features * (features - 1) // 2):
            # Two more columns each, and the table is copied beside them.
            columns = (dataset.rows or 0) * crosses * _COLUMNS_PER_CROSS
            memory += columns * BYTES_PER_CELL + cells * 8
    if spec["algorithm"]["name"] == AUTO:
        seconds = spec["algorithm"]["parameters"]["budget_seconds"]
        return {"seconds": seconds, "memory_bytes": memory}
    if spec["validation"]["method"] == CROSS_VALIDATION:
        memory += cells * BYTES_PER_CELL_OF_FOLDS
    seconds *= (1 + len(folds_of(spec["validation"]))) * (1.0 + search.count_fits(spec))
    return {"seconds": round(_SECONDS_OF_A_JOB + seconds, 3), "memory_bytes": memory}


def own_parameters(estimator: type[Ranker]) -> Parameters:
    """Return the parameters that a job sets beside the algorithm's name, with their defaults."""
    return {
        parameter.name: parameter.default
        for parameter in list_parameters(estimator)
        if parameter.name not in JOB_LEVEL_PARAMETERS
    }


def _resolve_algorithm(request: TrainRequest, objective: Objective) -> AlgorithmSpec:
    given, searched = dict(request.algorithm), request.search
    name = given.pop("name", None)
    if name == AUTO:
        if searched is not None:
            raise invalid("/search", f"{AUTO} has a built-in search: omit search")
        return {"name": name, "parameters": search.check_auto(given, request.timeout_seconds)}
    if not isinstance(name, str) or name not in ALGORITHMS:
        known = ", ".join([*ALGORITHMS, AUTO])
        got = "it is missing" if name is None else f"got {shown(name)}"
        raise invalid(
            "/algorithm/name",
            f"algorithm.name must be one of {known}; {got}",
            code="unknown_algorithm",
        )
    estimator = ALGORITHMS[name]
    own = own_parameters(estimator)
    wrong = (
        {"pointer": f"/algorithm/{escape(parameter)}", "detail": detail}
        for parameter, value in given.items()
        if (detail := _parameter_error(name, estimator, own, parameter, value)) is not None
    )
    refuse_all(list(islice(wrong, MAX_ERRORS)), "invalid_parameter")
    if searched is not None:
        _check_searched(searched, given)
    fpr_min, fpr_max = window_of(objective)
    job_level = {
        "random_state": request.seed,
        "noise_rate": request.label_noise,
        "fpr_min": fpr_min,
        "fpr_max": fpr_max,
    }
    known_parameters = {parameter.name for parameter in list_parameters(estimator)}
    parameters = {**own, **given, **{k: v for k, v in job_level.items() if k in known_parameters}}
    if searched is not None:
        parameters = search.check(searched, name, parameters, request.seed)
    else:
        try:
            estimator(**parameters).check_parameters()
        except InvalidParameter as error:
            raise invalid("/algorithm", str(error), code="invalid_parameter") from error
    space: Parameters = {} if searched is None else dict.fromkeys(searched["space"], ...)
    kept = leave_out_newer(estimator, parameters | space)  # what is searched is at no default
    return {
        "name": name,
        "parameters": {it: value for it, value in parameters.items() if it in kept},
        "defaults": {it: value for it, value in parameters.items() if it not in kept},
    }


def _check_searched(searched: SearchSpec, given: Mapping[str, Any]) -> None:
    """Check that a parameter that is searched is not set elsewhere."""
    for parameter in searched["space"]:
        if parameter == "monotone":
            raise invalid(
                "/search/space/monotone",
                "monotone constraints are not searched: write them in the algorithm",
                code="invalid_parameter",
            )
        if parameter in JOB_LEVEL_PARAMETERS:
            raise invalid(
                f"/search/space/{parameter}",
                f"{parameter} is set by the job's {JOB_LEVEL_PARAMETERS[parameter]!r}; omit it from the search",
                code="invalid_parameter",
            )
        if parameter in given:
            raise invalid(
                f"/algorithm/{parameter}",
                f"{parameter} is set by the search; omit it from the algorithm",
                code="invalid_parameter",
            )


def _parameter_error(
    name: str, estimator: type[Ranker], own: Parameters, parameter: str, value: object
) -> str | None:
    if parameter in JOB_LEVEL_PARAMETERS:
        return (
            f"{parameter} is set by the job's {JOB_LEVEL_PARAMETERS[parameter]!r}; omit it from the "
            "algorithm"
        )
    if parameter == "monotone" and parameter not in own:
        able = [other for other, it in ALGORITHMS.items() if parameter in own_parameters(it)]
        return (
            f"{name} does not support monotone constraints; algorithms that do are {', '.join(able)}, "
            f"{AUTO}"
        )
    if parameter not in own:
        return f"{name} has no parameter {shown(parameter)}; it has {', '.join(own)}"
    try:
        check_values(estimator, {parameter: value})
    except InvalidParameter as error:
        return str(error)
    return None


def check_auto(dataset: Dataset) -> None:
    """Check that the dataset is of the kind that `auto` has rankers for."""
    if dataset.kind != DatasetKind.BIPARTITE:
        raise invalid(
            "/algorithm/name",
            f"{AUTO} trains on datasets of kind bipartite; {dataset.id} is of kind {dataset.kind}",
            code="wrong_kind",
        )


def check_target(name: str, dataset: Dataset) -> None:
    """Check that the algorithm learns from labels of the dataset's kind: of two values, several, or grades."""
    if dataset.kind not in kinds_of(name):
        able = ", ".join(other for other in ALGORITHMS if dataset.kind in kinds_of(other))
        raise invalid(
            "/algorithm/name",
            f"{name} cannot train on datasets of kind {dataset.kind}; algorithms that can are {able or 'none yet'}",
            code="wrong_kind",
        )


def is_listed(dataset: Dataset) -> bool:
    """Return True if a ranker of the dataset is judged by figures of lists: of queries, or of grades."""
    return dataset.query is not None or dataset.kind == DatasetKind.GRADED


def check_lists(algorithm: AlgorithmSpec, objective: Objective, dataset: Dataset) -> None:
    """Check that the algorithm, with these parameters, learns within queries or from grades, where the dataset has
    them, and that the objective is a figure of lists.
    """
    if not is_listed(dataset):
        return
    graded = dataset.kind == DatasetKind.GRADED
    name = algorithm["name"]
    if name == AUTO or not ALGORITHMS[name].takes_query:
        able = ", ".join(other for other, it in ALGORITHMS.items() if it.takes_query)
        raise invalid(
            "/algorithm/name",
            f"{name} cannot train within the queries of dataset {dataset.id} (column "
            f"{shown(dataset.query)}); algorithms that can are {able}",
            code="wrong_kind",
        )
    try:
        ALGORITHMS[name](**algorithm["parameters"]).check_lists(
            query=dataset.query is not None, graded=graded
        )
    except InvalidParameter as error:
        raise invalid("/algorithm", str(error), code="invalid_parameter") from error
    metric = objective["metric"]
    if metric not in LIST_METRICS or "share" in objective:
        what = "share of rows" if metric in LIST_METRICS else f"metric {metric!r}"
        raise invalid(
            "/objective/metric",
            "queries and grades are evaluated as lists: the objective must be one of "
            f"{', '.join(LIST_METRICS)}, with a count where it has one; got the {what}",
        )
    try:
        list_metric_of(objective)
    except InvalidParameter as error:
        raise invalid("/objective/count", str(error)) from error


def check_curve(objective: Objective, dataset: Dataset) -> None:
    """Check that the model will have the one curve that a threshold or a figure of the objective is read from."""
    metric = objective["metric"]
    if metric not in ("auc", "pauc") and dataset.kind == DatasetKind.MULTILABEL:
        raise invalid(
            "/objective/metric",
            f"objective.metric {metric} needs one score per row, but a dataset of kind multilabel has one "
            "per label; use auc or pauc",
        )


def count_validation_rows(validation: Validation, dataset: Dataset) -> int | None:
    """Return about how many rows of the dataset validate a model; None if there are none of it."""
    rows = dataset.rows or 0
    if validation["method"] == HOLDOUT:
        return max(1, round(validation["fraction"] * rows))
    if validation["method"] != CROSS_VALIDATION:
        return None
    folds = validation["folds"]  # by time the first of folds + 1 parts only trains
    return rows * folds // (folds + 1) if validation.get("time_column") else rows


def check_list_size(objective: Objective, dataset: Dataset, evaluated_rows: int | None) -> None:
    """Check that a count of first rows is one of validation rows that count alike, and that there are so many."""
    metric, count = objective["metric"], objective.get("count")
    if dataset.weight is not None and (count is not None or metric == "ndcg"):
        way_out = "set share" if metric == "precision" else "use average_precision"
        what = "count" if count is not None else "metric"
        raise invalid(
            f"/objective/{what}",
            f"the rows of {dataset.id} have weights, but {metric} of a number of rows needs rows of equal "
            f"weight; {way_out}",
        )
    if count is None:
        return
    if evaluated_rows is None:
        way_out = "set share" if metric == "precision" else "omit it"
        raise invalid(
            "/objective/count",
            f"objective.count is a number of validation rows, but there are none; {way_out}",
        )
    if count > evaluated_rows:
        raise invalid(
            "/objective/count",
            f"objective.count must be at most the number of validation rows, about {evaluated_rows:,}, got {count:,}",
        )


def check_categories(algorithm: AlgorithmSpec, dataset: Dataset) -> None:
    """Check that the algorithm, with these parameters, takes the dataset's categorical features, if it has any."""
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
            f"{algorithm['name']} takes only numeric features with these parameters, but {named} are "
            f"categorical; algorithms that accept them by default are {able or 'none yet'}",
            code="categorical_features",
        )


def check_constraints(algorithm: AlgorithmSpec, dataset: Dataset, by_time: str | None) -> None:
    """Check that monotone constraints name numeric features of the model: the column of times is none."""
    if not algorithm["parameters"].get("monotone"):
        return
    features = [
        column
        for column in dataset.columns
        if column["role"] == "feature" and column["name"] != by_time
    ]
    try:
        find_directions(
            algorithm["parameters"].get("monotone"),
            [column["name"] for column in features],
            [int(column["type"] == "categorical") for column in features],
        )
    except InvalidParameter as error:
        raise invalid("/algorithm/monotone", str(error), code="invalid_parameter") from error


def check_pair_learner(algorithm: AlgorithmSpec, objective: Objective) -> Objective:
    """Check that the algorithm, with these parameters, learns from pairs; return the objective of pairs."""
    estimator = ALGORITHMS[algorithm["name"]]
    if not hasattr(estimator, "fit_pairs"):
        able = ", ".join(name for name, other in ALGORITHMS.items() if hasattr(other, "fit_pairs"))
        raise invalid(
            "/algorithm/name",
            f"{algorithm['name']} cannot train on pairs; algorithms that can are {able}",
            code="wrong_kind",
        )
    if objective["metric"] != "auc":
        raise invalid(
            "/objective/metric",
            f"pairs have no positive and negative rows: omit the objective, got {objective['metric']!r}",
        )
    try:
        estimator(**algorithm["parameters"]).check_pair_parameters()
    except InvalidParameter as error:
        raise invalid("/algorithm", str(error), code="invalid_parameter") from error
    return {"metric": "pair_order"}


def check_search(searched: SearchSpec | None, dataset: Dataset) -> SearchSpec | None:
    """Check that the dataset's rows can be divided as the search asks; return a copy of the search."""
    if searched is None:
        return None
    if searched.get("folds") is not None and dataset.kind != DatasetKind.BIPARTITE:
        raise invalid(
            "/search/folds",
            f"search.folds requires a dataset of kind bipartite; {dataset.id} is of kind {dataset.kind}: "
            "omit it, and one part is held out",
            code="unsupported",
        )
    return searched.copy()


def resolve_validation(validation: Validation, dataset: Dataset) -> Validation:
    """Return the validation with its time_column: by default the newest rows judge, where the dataset has dates.

    Not so where rows of a group or a query stay together: those that were learnt from do not judge, and few rows might
    be left. Nor with several repeats, since time has one order.
    """
    resolved = validation.copy()
    if (
        validation["method"] in (HOLDOUT, CROSS_VALIDATION)
        and "time_column" not in validation
        and dataset.kind == DatasetKind.BIPARTITE
        and dataset.group is None
        and dataset.query is None
        and validation.get("repeats", 1) == 1
        and (name := time_column(dataset.columns)) is not None
    ):
        resolved["time_column"] = name
    return resolved


def check_validation(validation: Validation, dataset: Dataset) -> None:
    """Check that the dataset's rows can be divided in folds, or by time, where the job asks for it."""
    method, by_time = validation["method"], validation.get("time_column")
    for asked, pointer, value in (
        (method == CROSS_VALIDATION, "method", method),
        (by_time is not None, "time_column", by_time),
    ):
        if asked and dataset.kind != DatasetKind.BIPARTITE:
            raise invalid(
                f"/validation/{pointer}",
                f"validation.{pointer} {shown(value)} requires a dataset of kind bipartite; {dataset.id} is of "
                f"kind {dataset.kind}: use holdout or dataset",
                code="unsupported",
            )
    if dataset.query is not None and validation.get("repeats", 1) > 1:
        raise invalid(
            "/validation/repeats",
            "repeats must be 1 with queries, because each query is evaluated once, got "
            f"{validation['repeats']}",
        )
    if by_time is None:
        return
    if validation.get("repeats", 1) > 1:
        raise invalid(
            "/validation/repeats",
            f"repeats must be 1 with a time_column, because time has one order, got {validation['repeats']}",
        )
    _check_time_column(by_time, dataset)


def _check_time_column(name: str, dataset: Dataset) -> None:
    pointer = "/validation/time_column"
    column = next((column for column in dataset.columns if column["name"] == name), None)
    if column is None:
        raise invalid(pointer, f"dataset {dataset.id} has no column {shown(name)}")
    if column["role"] not in {"feature", "identifier"} or column["type"] == "boolean":
        raise invalid(
            pointer,
            "time_column must name a column of numbers or ISO 8601 dates without another role; "
            f"{shown(name)} is the {column['role']}, of type {column['type']}",
        )
    if column["role"] == "feature" and count_features(dataset) == 1:
        raise invalid(
            pointer,
            "the time_column is not used as a feature, and the dataset has no other feature than "
            f"{shown(name)}",
        )


def _check_fits(dataset: Dataset, other: Dataset) -> None:
    """Check that the other dataset is of the same kind, and has every feature and the same two values of the label."""
    pointer = "/validation/dataset_id"
    if other.kind != dataset.kind:
        raise invalid(
            pointer,
            f"dataset {other.id} must be of kind {dataset.kind}, but is of kind {other.kind}",
        )
    if (misfit := find_misfit(dataset, other)) is not None:
        raise invalid(pointer, f"dataset {other.id} {misfit}")
    if dataset.query is not None and other.query is None:
        raise invalid(
            pointer,
            f"dataset {other.id} must have a query column, like dataset {dataset.id}",
        )
    if label_values(other) != label_values(dataset):
        raise invalid(
            pointer,
            f"dataset {other.id} must have the label values {show_labels(dataset)}, but has "
            f"{show_labels(other)}",
        )


class AlgorithmEntry(TypedDict):
    """An algorithm as callers see it; `parameters` is a JSON Schema."""

    name: str
    summary: str
    paper: str
    kinds: list[str]
    parameters: JsonSchema


def describe_all() -> list[AlgorithmEntry]:
    """Return `auto` and all algorithms of the registry."""
    return [
        _described(AUTO, selection.Auto, _auto_schema()),
        *(
            _described(name, estimator, parameter_schema(name, estimator))
            for name, estimator in ALGORITHMS.items()
        ),
    ]


def _described(name: str, of: type, parameters: JsonSchema) -> AlgorithmEntry:
    return {
        "name": name,
        "summary": _summary(of),
        "paper": _paper(of),
        "kinds": kinds_of(name),
        "parameters": parameters,
    }


def kinds_of(name: str) -> list[str]:
    """Return the kinds of datasets that an algorithm learns from; of some kinds with certain parameters only."""
    if name == AUTO:
        return [DatasetKind.BIPARTITE]
    estimator = ALGORITHMS[name]
    if estimator.target == "multilabel":
        return [DatasetKind.MULTILABEL]
    pairs = [DatasetKind.PREFERENCES] if hasattr(estimator, "fit_pairs") else []
    grades = [DatasetKind.GRADED] if estimator.takes_grades else []
    return [DatasetKind.BIPARTITE, *pairs, *grades]


def parameter_schema(name: str, estimator: type[Ranker]) -> JsonSchema:
    """Return the JSON Schema of the parameters that a job may set."""
    own = own_parameters(estimator)
    fields: dict[str, Any] = {
        parameter.name: (
            parameter.json_annotation,
            Field(default=parameter.default, description=parameter.doc),
        )
        for parameter in list_parameters(estimator)
        if parameter.name in own
    }
    return _schema(name, fields)


def _auto_schema() -> JsonSchema:
    """Return the same for `auto`, whose parameters `search.check_auto` checks."""
    budget = Field(
        default=DEFAULT_BUDGET_SECONDS,
        gt=0,
        le=MAX_BUDGET_SECONDS,
        description="Time budget in seconds for the whole job, from the start of its attempt to `succeeded`.",
    )
    constraints = next(
        it for it in list_parameters(ALGORITHMS["rankboost"]) if it.name == "monotone"
    )
    keeps = Field(default=None, description=constraints.doc)
    cost = Field(
        default=None,
        gt=0,
        le=MAX_SCORE_MICROSECONDS,
        description="Largest predicted time in microseconds to score a row in bulk, in one thread. Null: no "
        "limit.",
    )
    fields = {
        "budget_seconds": (float, budget),
        "max_score_microseconds": (float | None, cost),
        "monotone": (constraints.json_annotation, keeps),
    }
    return _schema(AUTO, fields)


def _schema(name: str, fields: dict[str, Any]) -> JsonSchema:
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    schema: JsonSchema = model.model_json_schema()
    return schema


def _summary(of: type) -> str:
    return (inspect.getdoc(of) or "").partition("\n\n")[0].replace("\n", " ")


def _paper(of: type) -> str:
    """Return the first entry under References in the docstring."""
    _, _, references = (inspect.getdoc(of) or "").partition("References\n----------\n")
    first = references.partition("\n\n")[0]
    return re.sub(r"\s+", " ", first).strip()


def read_out_of_fold(session: Session, owner: str, ref: str) -> tuple[Model, ModelOutOfFold]:
    """Return the model, and the row of its out-of-fold scores."""
    model = find(session, owner, ref)
    out_of_fold = session.get(ModelOutOfFold, model.id)
    if model.validation["method"] != "cross_validation":
        raise NotFound(
            f"model {model.id} has no out-of-fold scores: it was trained with validation.method "
            f"{model.validation['method']!r}",
            code="not_cross_validated",
        )
    if out_of_fold is None:
        raise Conflict(
            f"the out-of-fold scores of model {model.id} were deleted with its dataset {model.dataset_id}",
            code="dataset_deleted",
        )
    return model, out_of_fold


def read_baselines(session: Session, owner: str, ref: str) -> tuple[Model, ModelBaselines]:
    """Return the model, and its comparison with simple benchmark models."""
    model = find(session, owner, ref)
    baselines = session.get(ModelBaselines, model.id)
    if baselines is None:
        raise NotFound(f"model {model.id} was trained without baselines", code="no_baselines")
    return model, baselines


def read_leaderboard(session: Session, owner: str, ref: str) -> tuple[Model, ModelLeaderboard]:
    """Return the model, and what `auto` has tried for it."""
    model = find(session, owner, ref)
    leaderboard = session.get(ModelLeaderboard, model.id)
    if leaderboard is None:
        raise NotFound(
            f"model {model.id} has no leaderboard: its algorithm is {model.algorithm}, not auto",
            code="no_leaderboard",
        )
    return model, leaderboard
