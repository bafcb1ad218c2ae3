"""Submission of training jobs: validation of a request, with all defaults. Also reading of results of validation."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from app.datasets.matrices import MIN_PER_CLASS
from app.datasets.protected import PROTECTED, protected_columns
from app.datasets.service import (
    check_pairs_ready,
    feature_columns,
    find_misfit,
    label_values,
    lineage_of,
    lock_datasets,
    ready_dataset,
    show_labels,
)
from app.ingest.hints import time_column
from app.jobs.objectives import OBJECTIVES, PAIR_ORDER
from app.jobs.parameters import TrainingParameters
from app.jobs.service import TRAIN, enqueue
from app.models.objectives import (
    LIST_METRICS,
    check_objective,
    declaration_of,
    list_metric_of,
    window_of,
)
from app.models.service import find, find_named
from app.platform.callers import check_model
from app.platform.documents import (
    Objective,
    Parameters,
    ProtectedColumn,
    SearchSpec,
    Validation,
)
from app.platform.errors import (
    Conflict,
    NotFound,
    check_name,
    invalid,
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
from app.training.algorithms import kinds_of, resolve_algorithm
from app.training.records import AlgorithmSpec, AutoPlan, TrainSpec
from app.training.search import (
    AUTO,
)
from app.training.splits import (
    CROSS_VALIDATION,
    FOLDS,
    HOLDOUT,
    HOLDOUT_FRACTION,
    folds_of,
)
from core.base.monotone import find_directions
from core.errors import InvalidParameter
from core.registry import ALGORITHMS

JsonSchema = dict[str, Any]

SMALL_ROWS, SMALL_CLASS = 3_000, 100
"""Rows, and rows of the rarer class, below which a table is cross-validated by default."""

MAX_ROWS_OF_FOLDS = 100_000
"""Rows of a table up to which it is cross-validated by default for its rare class: each fold costs a fit."""

REPEATS, FEWER_REPEATS = 4, 3
"""Repeats of this cross-validation; fewer where a fit is costly. The interval needs some: it covers less with 2."""

SECONDS_OF_FOLD, MIN_SECONDS_OF_FOLD = 2.5, 1.0
"""Seconds of the budget of `auto` that each fold of a table of `SMALL_ROWS` must have by default: in proportion for
a smaller table, down to the least."""


@dataclass(frozen=True)
class TrainRequest(TrainingParameters):
    """The parameters of a training job with the API's defaults, not yet validated against the database."""

    dataset_id: str
    algorithm: Mapping[str, Any]
    objective: Objective
    validation: Validation | None = None
    search: SearchSpec | None = None
    baselines: bool | None = None
    protected_features: Sequence[str] = ()
    author: str | None = None
    """Name of the caller, which a decision is stored with."""
    name: str | None = None
    timeout_seconds: float | None = None
    priority: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)


def check(session: Session, settings: Settings, owner: str, request: TrainRequest) -> TrainSpec:
    """Complete and validate a requested job, without changes or locks. Raises Invalid, NotFound or Conflict."""
    objective = request.objective.copy()
    check_objective(objective)
    algorithm = resolve_algorithm(
        request.algorithm, request.search, _values_of_job(request), request.timeout_seconds
    )
    budget = algorithm["parameters"].get("budget_seconds")
    _check_seconds(settings, "timeout_seconds", request.timeout_seconds)
    _check_seconds(settings, "algorithm/budget_seconds", budget)
    name = request.name or algorithm["name"]
    check_name("name", name, pointer="/name")
    check_model(name)
    if is_id(name, "mdl"):
        raise invalid("/name", f"name must not look like an id, got {name!r}")
    dataset = ready_dataset(session, owner, request.dataset_id, {"pointer": "/dataset_id"})
    also = check_protected_features(request.protected_features, dataset)
    objective = _check_learner(algorithm, objective, dataset, also)
    check_pairs_ready(dataset, "/dataset_id")
    asked = request.validation or default_validation(dataset, algorithm, request.search)
    validation = resolve_validation(asked, dataset)
    check_validation(validation, dataset, also)
    plan = _read_plan(session, owner, algorithm)
    by_time = validation.get("time_column")
    check_constraints(algorithm["parameters"], dataset, by_time, also)
    for member in plan["members"] if plan else ():
        check_constraints(member["parameters"], dataset, by_time, also, f"/algorithm/{search.PLAN}")
    other = None
    if validation["method"] == "dataset":
        other = _find_validation_dataset(session, owner, validation["dataset_id"], dataset, also)
    evaluated_rows = count_validation_rows(validation, dataset) if other is None else other.rows
    if not is_listed(dataset):
        for one in (dataset,) if other is None else (other, dataset):
            check_list_size(objective, one, evaluated_rows)
    spec: TrainSpec = {
        "dataset": lineage_of(dataset),
        "validation_dataset": None if other is None else lineage_of(other),
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
        "protected_columns": describe_protected(dataset, also, request.author),
    }
    if plan is not None:
        spec["plan"] = plan
    if request.validation is None:
        spec["automatic_validation"] = True
    if "count" in objective and not is_listed(dataset):
        spec["evaluated_rows"] = evaluated_rows
    search.check_size(spec, 1 + len(folds_of(validation)))
    return cast(TrainSpec, {**spec, **request.as_spec()})  # the members that parameters.py declares


def check_protected_features(named: Sequence[str], dataset: Dataset) -> list[str]:
    """Return the protected columns that are features. Raises Invalid for a name that is not a protected column."""
    protected = protected_columns(dataset)
    known = {column["name"]: column["role"] for column in dataset.columns}
    for index, name in enumerate(named):
        why = None
        if name not in known:
            why = "the dataset has no such column"
        elif name not in protected:
            why = f"it has the role {known[name]}"
        elif name in named[:index]:
            why = "it is listed twice"
        if why is not None:
            listed = ", ".join(map(repr, protected[:20])) or "none"
            raise invalid(
                f"/protected_features/{index}",
                f"protected_features must list protected columns of dataset {dataset.id}, each once, got "
                f"{shown(name)}: {why}; its protected columns: {listed}",
                code="unknown_column" if name not in known else "invalid_parameter",
            )
    return list(named)


def describe_protected(
    dataset: Dataset, also: Collection[str], author: str | None
) -> list[ProtectedColumn]:
    types = {column["name"]: column["type"] for column in dataset.columns}
    return [
        {
            "name": name,
            "type": types[name],
            "feature": name in also,
            "decided_by": author if name in also else None,
            "decided_at": None,
        }
        for name in protected_columns(dataset)
    ]


def _values_of_job(request: TrainRequest) -> Parameters:
    """Return the values of `JOB_LEVEL_PARAMETERS`: seed, label noise, and the range of false positive rates of the
    objective.
    """
    fpr_min, fpr_max = window_of(request.objective)
    return {
        "random_state": request.seed,
        "noise_rate": request.label_noise,
        "fpr_min": fpr_min,
        "fpr_max": fpr_max,
    }


def _check_learner(
    algorithm: AlgorithmSpec, objective: Objective, dataset: Dataset, also: Collection[str]
) -> Objective:
    """Return the objective (for pairs another one). Raises Invalid unless the algorithm can be trained for it."""
    if algorithm["name"] == AUTO:
        check_auto(dataset)
    elif dataset.kind == DatasetKind.PREFERENCES:
        objective = check_pair_learner(algorithm, objective)
    else:
        check_target(algorithm["name"], dataset)
        check_curve(objective, dataset)
    check_lists(algorithm, objective, dataset)
    if algorithm["name"] != AUTO:
        check_categories(algorithm, dataset, also)
    return objective


def _find_validation_dataset(
    session: Session, owner: str, dataset_id: str, dataset: Dataset, also: Collection[str]
) -> Dataset:
    """Raises Invalid if it does not fit."""
    pointer = "/validation/dataset_id"
    other = ready_dataset(session, owner, dataset_id, {"pointer": pointer})
    check_pairs_ready(other, pointer)
    _check_fits(dataset, other, also)
    return other


def submit(session: Session, settings: Settings, owner: str, request: TrainRequest) -> Job:
    """Check the request, and create its job in the caller's transaction."""
    asked = request.validation
    other_id = None if asked is None else asked.get("dataset_id")
    lock_datasets(session, owner, request.dataset_id, other_id)
    spec = check(session, settings, owner, request)
    return enqueue(
        session,
        settings,
        owner=owner,
        kind=TRAIN,
        name=spec["model_name"],
        spec=spec,
        tags=dict(request.tags),
        dataset_id=request.dataset_id,
        timeout_seconds=request.timeout_seconds or _timeout(settings, spec),
        priority=request.priority,
    )


def _timeout(settings: Settings, spec: TrainSpec) -> float:
    """Return the service's default, or twice the budget of `auto`, or twice the fits of a plan, if that is more."""
    usual = float(spec["algorithm"]["parameters"].get("budget_seconds", 0.0))
    if (plan := spec.get("plan")) is not None:
        usual = plan["fit_seconds"] * (1 + len(folds_of(spec["validation"])))
    return max(settings.job_timeout_seconds, 2.0 * usual)


def _check_seconds(settings: Settings, name: str, seconds: float | None) -> None:
    """Raise Invalid above the service's limit."""
    most = settings.max_job_seconds
    if seconds is not None and seconds > most:
        raise invalid(
            f"/{name}",
            f"{name.rpartition('/')[2]} can be at most {most:g} (RANKWRIGHT_MAX_JOB_SECONDS), got "
            f"{seconds:g}",
        )


def check_auto(dataset: Dataset) -> None:
    """Raise Invalid unless the dataset is of a kind that `auto` supports."""
    if dataset.kind != DatasetKind.BIPARTITE:
        raise invalid(
            "/algorithm/name",
            f"{AUTO} trains on datasets of kind bipartite; {dataset.id} is of kind {dataset.kind}",
            code="wrong_kind",
        )


def check_target(name: str, dataset: Dataset) -> None:
    """Raise Invalid unless the algorithm supports the dataset's labels: of two values, several, or grades."""
    if dataset.kind not in kinds_of(name):
        able = ", ".join(other for other in ALGORITHMS if dataset.kind in kinds_of(other))
        raise invalid(
            "/algorithm/name",
            f"{name} cannot train on datasets of kind {dataset.kind}; algorithms that can are {able or 'none yet'}",
            code="wrong_kind",
        )


def is_listed(dataset: Dataset) -> bool:
    """Return True if rankers of the dataset are evaluated by list metrics: within queries, or of grades."""
    return dataset.query is not None or dataset.kind == DatasetKind.GRADED


def check_lists(algorithm: AlgorithmSpec, objective: Objective, dataset: Dataset) -> None:
    """Raise Invalid unless the algorithm supports the dataset's queries or grades, and the objective is for lists."""
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
    """Raise Invalid unless the model will have a single curve for the objective's threshold or metric."""
    if dataset.kind == DatasetKind.MULTILABEL and not declaration_of(objective).takes_labels:
        able = " or ".join(name for name, it in OBJECTIVES.items() if it.takes_labels)
        raise invalid(
            "/objective/metric",
            f"objective.metric {objective['metric']} needs one score per row, but a dataset of kind multilabel "
            f"has one per label; use {able}",
        )


def count_validation_rows(validation: Validation, dataset: Dataset) -> int | None:
    """Return the approximate number of the dataset's rows in the validation part."""
    rows = dataset.rows or 0
    if validation["method"] == HOLDOUT:
        return max(1, round(validation["fraction"] * rows))
    if validation["method"] != CROSS_VALIDATION:
        return None
    folds = validation["folds"]  # by time the first of folds + 1 parts only trains
    return rows * folds // (folds + 1) if validation.get("time_column") else rows


def check_list_size(objective: Objective, dataset: Dataset, evaluated_rows: int | None) -> None:
    """Raise Invalid for a count of first rows that is not defined on the validation rows, or exceeds them."""
    metric, count, declared = objective["metric"], objective.get("count"), declaration_of(objective)
    if dataset.weight is not None and (count is not None or declared.counts_rows):
        way_out = "set share" if declared.has("share") else "use average_precision"
        what = "count" if count is not None else "metric"
        raise invalid(
            f"/objective/{what}",
            f"the rows of {dataset.id} have weights, but {metric} of a number of rows needs rows of equal "
            f"weight; {way_out}",
        )
    if count is None:
        return
    if evaluated_rows is None:
        way_out = "set share" if declared.has("share") else "omit it"
        raise invalid(
            "/objective/count",
            f"objective.count is a number of validation rows, but there are none; {way_out}",
        )
    if count > evaluated_rows:
        raise invalid(
            "/objective/count",
            f"objective.count must be at most the number of validation rows, about {evaluated_rows:,}, got {count:,}",
        )


def check_categories(
    algorithm: AlgorithmSpec, dataset: Dataset, also: Collection[str] = ()
) -> None:
    """Raise Invalid unless the algorithm supports the categorical features. Protected columns `also` are features."""
    categorical = [
        column["name"]
        for column in feature_columns(dataset, also)
        if column["type"] == "categorical"
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


def check_constraints(
    parameters: Parameters,
    dataset: Dataset,
    by_time: str | None,
    also: Collection[str],
    pointer: str | None = None,
) -> None:
    """Raise Invalid for monotone constraints on columns that are not numeric features, and for impossible bins.

    The column of times is no feature, and of the protected columns only those in `also` are.
    """
    if not any(parameters.get(name) for name in ("monotone", "bins", "special_values")):
        return
    features = [column for column in feature_columns(dataset, also) if column["name"] != by_time]
    names = [column["name"] for column in features]
    is_categorical = [column["type"] == "categorical" for column in features]
    try:
        directions = find_directions(
            parameters.get("monotone"), names, [int(each) for each in is_categorical]
        )
    except InvalidParameter as error:
        raise invalid(
            pointer or "/algorithm/monotone", str(error), code="invalid_parameter"
        ) from error
    if not any(parameters.get(name) for name in ("bins", "special_values")):
        return
    from core.linear.woe_bins import find_given  # compiled code: only a few jobs name bins

    categories = tuple(() if each else None for each in is_categorical)
    for name in ("bins", "special_values"):
        given = {"bins": None, "special_values": None, name: parameters.get(name)}
        try:
            find_given(**given, names=names, categories=categories, directions=directions)
        except InvalidParameter as error:
            raise invalid(
                pointer or f"/algorithm/{name}", str(error), code="invalid_parameter"
            ) from error


def check_pair_learner(algorithm: AlgorithmSpec, objective: Objective) -> Objective:
    """Return the objective of pairs. Raises Invalid unless the algorithm can be trained on pairs."""
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
    return {"metric": PAIR_ORDER}


def check_search(searched: SearchSpec | None, dataset: Dataset) -> SearchSpec | None:
    """Raise Invalid if the dataset's rows cannot be split as the search requires."""
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


def default_validation(
    dataset: Dataset, algorithm: AlgorithmSpec, searched: SearchSpec | None
) -> Validation:
    """Return the validation of a job that does not request one: see `JobRequest.validation`.

    The AUC of one held-out quarter of a small table says as much about the split as about the ranker. With times to
    split by, the rows are not drawn, and the newest ones remain held out.
    """
    held_out: Validation = {"method": HOLDOUT, "fraction": HOLDOUT_FRACTION}
    rows = dataset.rows or 0
    rarer = min(dataset.positives or 0, dataset.negatives or 0)
    is_small = rows < SMALL_ROWS or (rarer < SMALL_CLASS and rows <= MAX_ROWS_OF_FOLDS)
    if dataset.kind != DatasetKind.BIPARTITE or dataset.query is not None or not is_small:
        return held_out
    if resolve_validation(held_out, dataset).get("time_column") is not None:
        return held_out
    is_costly = searched is not None or algorithm["name"] == AUTO or rows >= SMALL_ROWS
    folded: Validation = {
        "method": CROSS_VALIDATION,
        "folds": min(FOLDS, rarer // MIN_PER_CLASS),
        "repeats": FEWER_REPEATS if is_costly else REPEATS,
    }
    n_scopes = 1 + len(folds_of(folded))
    budget = algorithm["parameters"].get("budget_seconds")
    seconds = SECONDS_OF_FOLD * min(
        1.0, max(rows / SMALL_ROWS, MIN_SECONDS_OF_FOLD / SECONDS_OF_FOLD)
    )
    if folded["folds"] < 2 or (budget is not None and budget < seconds * n_scopes):
        return held_out
    if searched is not None and not search.is_affordable(searched, algorithm, n_scopes):
        return held_out
    return folded


def resolve_validation(validation: Validation, dataset: Dataset) -> Validation:
    """Set the time_column. By default the newest rows are the validation rows if the dataset has dates.

    Not so where rows of a group or a query stay together: rows of a group that was trained on do not validate, and few
    rows might be left. But so for decisions, which have a time, whatever their group. Never with several repeats, since
    time has one order.
    """
    resolved = validation.copy()
    if (
        validation["method"] in (HOLDOUT, CROSS_VALIDATION)
        and "time_column" not in validation
        and dataset.kind == DatasetKind.BIPARTITE
        and validation.get("repeats", 1) == 1
        and (name := _default_time(dataset)) is not None
    ):
        resolved["time_column"] = name
    return resolved


def _default_time(dataset: Dataset) -> str | None:
    if dataset.source is not None and (name := dataset.source.get("time_column")) is not None:
        features = {each["name"] for each in dataset.columns if each["role"] == "feature"}
        return name if name in features else None
    if dataset.group is not None or dataset.query is not None:
        return None
    return time_column(dataset.columns)


def check_validation(validation: Validation, dataset: Dataset, also: Collection[str] = ()) -> None:
    """Raise Invalid for folds or a split by time that the dataset forbids. Protected columns `also` are features."""
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
    _check_time_column(by_time, dataset, also)


def _check_time_column(name: str, dataset: Dataset, also: Collection[str]) -> None:
    pointer = "/validation/time_column"
    column = next((column for column in dataset.columns if column["name"] == name), None)
    if column is None:
        raise invalid(pointer, f"dataset {dataset.id} has no column {shown(name)}")
    if column["role"] not in {"feature", PROTECTED, "identifier"} or column["type"] == "boolean":
        raise invalid(
            pointer,
            "time_column must name a column of numbers or ISO 8601 dates without another role; "
            f"{shown(name)} is the {column['role']}, of type {column['type']}",
        )
    if name in also:
        raise invalid(
            pointer,
            f"the time_column is not used as a feature, but protected_features lists {shown(name)}",
        )
    if [each["name"] for each in feature_columns(dataset, also)] == [name]:
        raise invalid(
            pointer,
            "the time_column is not used as a feature, and the dataset has no other feature than "
            f"{shown(name)}",
        )


def _check_fits(dataset: Dataset, other: Dataset, also: Collection[str]) -> None:
    """Raise Invalid unless the other dataset has the same kind, every feature, and the same label values."""
    pointer = "/validation/dataset_id"
    if other.kind != dataset.kind:
        raise invalid(
            pointer,
            f"dataset {other.id} must be of kind {dataset.kind}, but is of kind {other.kind}",
        )
    if (misfit := find_misfit(dataset, other, also)) is not None:
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


def read_out_of_fold(session: Session, owner: str, ref: str) -> tuple[Model, ModelOutOfFold]:
    """Raises NotFound or Conflict."""
    model = find(session, owner, ref)
    out_of_fold = session.get(ModelOutOfFold, model.id)
    if model.validation["method"] != "cross_validation":
        raise NotFound(
            f"model {model.id} has no out-of-fold scores: its validation.method is "
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
    """Raises NotFound."""
    model = find(session, owner, ref)
    baselines = session.get(ModelBaselines, model.id)
    if baselines is None:
        made = "trained" if model.imported is None else "imported"
        raise NotFound(f"model {model.id} was {made} without baselines", code="no_baselines")
    return model, baselines


def _read_plan(session: Session, owner: str, algorithm: AlgorithmSpec) -> AutoPlan | None:
    """Return the plan that `auto` is to repeat, and name its model by the id. Raises NotFound."""
    parameters = algorithm["parameters"]
    if algorithm["name"] != AUTO or search.PLAN not in parameters:
        return None
    position = {"pointer": f"/algorithm/{search.PLAN}"}
    model = find_named(session, owner, parameters[search.PLAN], position).model
    parameters[search.PLAN] = model.id
    found = session.get(ModelLeaderboard, model.id)
    if found is None:
        raise invalid(
            position["pointer"],
            f"{search.PLAN} must be a model that {AUTO} has trained here, but model {model.id} has no leaderboard",
            code="no_leaderboard",
        )
    return {
        "members": found.members,
        "rows": found.rows,
        "folds": found.folds,
        "score_microseconds": model.parameters.get("score_microseconds"),
        "fit_seconds": model.fit_seconds,
    }


def read_leaderboard(session: Session, owner: str, ref: str) -> tuple[Model, ModelLeaderboard]:
    """Raises NotFound."""
    model = find(session, owner, ref)
    leaderboard = session.get(ModelLeaderboard, model.id)
    if leaderboard is None:
        raise NotFound(
            f"model {model.id} has no leaderboard: its algorithm is {model.algorithm}, not auto",
            code="no_leaderboard",
        )
    return model, leaderboard
