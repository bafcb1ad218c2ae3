"""Checks of requests for evaluations and comparisons of models on a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from app.datasets.service import (
    check_pairs_ready,
    label_values,
    lineage_of,
    lock_datasets,
    missing_features,
    ready_dataset,
    shares_rows,
    show_labels,
)
from app.evaluation import repository
from app.evaluation.amounts import check_amounts
from app.evaluation.groups import check_groups
from app.evaluation.metrics import OVERLAPS
from app.evaluation.requests import ComparisonRequest, EvaluationRequest, NewWindow
from app.models.metrics import metrics_named
from app.models.objectives import Window
from app.models.service import find_named, find_to_use
from app.platform.documents import AliasCutoff
from app.platform.errors import Conflict, Invalid, invalid
from app.platform.sql import Json, Session
from app.platform.tables import (
    Comparison,
    Dataset,
    DatasetKind,
    Evaluation,
    Model,
)
from app.training.bipartite import windows_of
from core import metrics as core_metrics
from core.errors import InvalidParameter
from core.metrics.window import check_window

CURVE_POINTS = 100
"""Most points of a model's curve in the result of a comparison."""
Seen = Literal["trained", "validated", "overlaps", "new"]
"""What a model has seen of rows: it was trained on rows of their dataset, or validated; too many of them equal rows of
its training; or none of these.
"""
Use = Literal["evaluation", "comparison", "scoring", "calibration"]
"""What a model and a dataset are to be used for together. Scores need no label."""
MAX_FITS = 200
"""Most pairs of a model and a dataset that are looked at for one answer."""
TRAINED_HERE = "was trained on rows of this dataset"


@dataclass(frozen=True)
class Inputs:
    """The models and the dataset of a request after the check, and the cutoffs of the aliases that the request used."""

    models: Sequence[Model]
    cutoffs: Sequence[AliasCutoff | None]
    dataset: Dataset


def find_inputs(
    session: Session,
    owner: str,
    refs: Sequence[str],
    pointers: Sequence[str],
    dataset_id: str,
    *,
    lock: bool,
) -> Inputs:
    """Check that models and dataset fit. Raises NotFound, Conflict or Invalid. `lock` locks them."""
    find_model = find_to_use if lock else find_named
    found = [
        find_model(session, owner, ref, {"pointer": pointer})
        for ref, pointer in zip(refs, pointers, strict=True)
    ]
    models = [each.model for each in found]
    if lock:
        lock_datasets(session, owner, dataset_id)
    dataset = ready_dataset(session, owner, dataset_id, {"pointer": "/dataset_id"})
    for model in models:
        _check_fits(session, model, dataset)
    check_pairs_ready(dataset, "/dataset_id")
    return Inputs(models, [each.cutoff for each in found], dataset)


def _check_fits(session: Session, model: Model, dataset: Dataset) -> None:
    """Raise Invalid unless kind, features and label values fit."""
    if (misfit := _find_misfit(session, model, dataset)) is not None:
        code, words = misfit
        detail = f"dataset {dataset.id} does not fit {model.name}:{model.version}: it {words}"
        raise invalid("/dataset_id", detail, code=code)


def _find_misfit(
    session: Session, model: Model, dataset: Dataset, use: Use = "evaluation"
) -> tuple[str, str] | None:
    """Return why a dataset cannot be used: a code, and what it must have."""
    if use != "scoring" and dataset.kind != model.kind:
        return "wrong_kind", f"must be of kind {model.kind}, but is of kind {dataset.kind}"
    if use in ("comparison", "calibration") and dataset.kind != DatasetKind.BIPARTITE:
        kinds = f"must be of kind {DatasetKind.BIPARTITE}, but is of kind {dataset.kind}"
        return "wrong_kind", kinds
    if use == "calibration" and was_trained_on(session, model, dataset):
        return "rows_seen", "must have rows that the model was not trained on"
    if (missing := missing_features(model.features, dataset)) is not None:
        return "unknown_column", missing
    if use != "scoring" and label_values(dataset) != label_values(model):
        return (
            "label_mismatch",
            f"must have the label values {show_labels(model)}, but has {show_labels(dataset)}",
        )
    return None


class ModelFit(NamedTuple):
    """Whether a dataset can be used with a model; if not, the reason."""

    model: str
    dataset_id: str
    reason: str | None

    @property
    def fits(self) -> bool:
        return self.reason is None


def find_fits(
    session: Session, owner: str, refs: Sequence[str], dataset_ids: Sequence[str], use: Use
) -> list[ModelFit]:
    """Raises NotFound, and Invalid for more than MAX_FITS pairs."""
    if len(refs) * len(dataset_ids) > MAX_FITS:
        detail = (
            f"the number of models times the number of datasets must be at most {MAX_FITS}, got "
            f"{len(refs)} × {len(dataset_ids)}"
        )
        more = "model" if len(refs) > len(dataset_ids) else "dataset_id"
        raise Invalid(detail, errors=[{"parameter": more, "detail": detail}])
    models = [find_named(session, owner, ref, {"parameter": "model"}).model for ref in refs]
    found = []
    for dataset_id in dataset_ids:
        try:
            dataset = ready_dataset(session, owner, dataset_id, {"parameter": "dataset_id"})
        except Conflict as error:
            reason = error.detail.removeprefix(f"dataset {dataset_id} ")
            found += [ModelFit(ref, dataset_id, reason) for ref in refs]
            continue
        for ref, model in zip(refs, models, strict=True):
            misfit = _find_misfit(session, model, dataset, use)
            found.append(ModelFit(ref, dataset_id, None if misfit is None else misfit[1]))
    return found


def seen_of(row: Evaluation) -> str | None:
    """Return how the model knows the rows, one of `Seen`; None if that is not known yet."""
    return _seen(row.job.spec["seen"], (row.metrics or {}).get(OVERLAPS))


def seen_in(row: Comparison, model_id: str) -> str | None:
    """Return how a model knows the rows, one of `Seen`; None if that is not known."""
    seen = row.job.spec.get("seen", {}).get(model_id)
    return _seen(seen, (row.result or {}).get("overlaps", {}).get(model_id))


def _seen(before: str | None, overlaps: bool | None) -> str | None:
    """Combine what was known before the job with whether it found equal rows."""
    if before != "new":
        return before
    return None if overlaps is None else "overlaps" if overlaps else "new"


def check_windows(asked: Sequence[NewWindow]) -> list[Json]:
    """Raises Invalid for an empty or repeated window."""
    windows = [(window.fpr_min, window.fpr_max) for window in asked]
    for number, window in enumerate(windows):
        try:
            check_window(*window)
        except InvalidParameter as error:
            raise invalid(f"/windows/{number}/fpr_max", str(error)) from error
        if window in windows[:number]:
            detail = f"windows must differ; [{window[0]:g}, {window[1]:g}] occurs twice"
            raise invalid(f"/windows/{number}", detail)
    return _stored(windows)


def _stored(windows: Sequence[Window]) -> list[Json]:
    return [{"fpr_min": fpr_min, "fpr_max": fpr_max} for fpr_min, fpr_max in windows]


def refuse_windows(dataset: Dataset) -> None:
    """Raise Invalid for windows on rows without a false positive rate."""
    if dataset.kind == DatasetKind.PREFERENCES:
        raise invalid("/windows", "pairs have no false positive rate: omit windows")
    if dataset.kind == DatasetKind.GRADED:
        raise invalid("/windows", "grades have no false positive rate: omit windows")


def was_trained_on(session: Session, model: Model, dataset: Dataset) -> bool:
    """True for equal content, and for versions that share rows."""
    if model.imported is not None:
        return model.imported["dataset_sha256"] == dataset.sha256
    # By id, too, if the lineage is not known.
    return (
        model.dataset_id == dataset.id
        or shares_rows(model.dataset, lineage_of(dataset))
        or repository.replaces(session, model.owner, model.dataset, dataset)
    )


def how_seen(session: Session, model: Model, dataset: Dataset) -> Seen:
    """Compare content and versions; "new" if nothing is shared."""
    if was_trained_on(session, model, dataset):
        return "trained"
    validated_on = model.validation.get("dataset_id")
    validation = model.validation_dataset
    if (
        validated_on == dataset.id
        or shares_rows(validation, lineage_of(dataset))
        or repository.replaces(session, model.owner, validation, dataset)
    ):
        return "validated"
    return "new"


def are_older(model: Model, known: Sequence[Dataset | None], dataset: Dataset) -> bool:
    """Return True if no row of the dataset is later than the last row of the `known` training and validation tables.

    Returns False if that cannot be determined: without a time column, or if a table was deleted.
    """
    if (name := model.validation.get("time_column")) is None or None in known:
        return False
    times: list[Any] = [
        next((column["max"] for column in each.columns or [] if column["name"] == name), None)
        for each in (dataset, *filter(None, known))
    ]
    if any(isinstance(time, str | None) for time in times):
        return False
    last, *before = map(float, times)
    return last <= max(before)


def say_older(model: Model) -> str:
    return (
        f"no row is later than the rows that {model.name}:{model.version} was trained and validated on, so this "
        "evaluation does not say whether the model is stable on newer data"
    )


def say_seen(model: Model, seen: Seen) -> list[str]:
    """Warn of rows that the model was trained or validated on."""
    name = f"{model.name}:{model.version}"
    match seen:
        case "trained":
            return [
                f"{name} {TRAINED_HERE}: its metrics here are too optimistic and do not apply to future rows"
            ]
        case "validated":
            return [f"{name} was validated on rows of this dataset"]
    return []


def check_evaluation(
    session: Session, owner: str, request: EvaluationRequest, *, lock: bool = False
) -> tuple[Inputs, list[Json]]:
    """Return models, dataset and windows. Raises as `find_inputs`."""
    given = None if request.windows is None else check_windows(request.windows)
    inputs = find_inputs(session, owner, [request.model], ["/model"], request.dataset_id, lock=lock)
    has_cutoff = inputs.cutoffs[0] is not None
    check_groups(session, inputs.models[0], inputs.dataset, request, has_cutoff=has_cutoff)
    check_amounts(inputs.dataset, request)
    if given is not None:
        refuse_windows(inputs.dataset)
        return inputs, given
    if inputs.dataset.kind in (DatasetKind.PREFERENCES, DatasetKind.GRADED):
        return inputs, []
    return inputs, _stored(windows_of(inputs.models[0].objective))


def check_comparison(
    session: Session, owner: str, request: ComparisonRequest, *, lock: bool = False
) -> tuple[Inputs, list[Json]]:
    """Return models, dataset and windows. Raises as `find_inputs`."""
    windows = check_windows(request.windows)
    metrics = metrics_named(request.metrics, "/metrics")
    if request.capacity is not None:
        metrics_named([request.capacity.metric], "/capacity")
    pointers = [f"/models/{number}" for number in range(len(request.models))]
    inputs = find_inputs(session, owner, request.models, pointers, request.dataset_id, lock=lock)
    models, dataset = inputs.models, inputs.dataset
    if dataset.kind != DatasetKind.BIPARTITE:
        detail = (
            f"models are compared by their ROC curves, but models of kind {dataset.kind} have none: "
            "evaluate each of them instead"
        )
        raise invalid("/dataset_id", detail, code="wrong_kind")
    check_amounts(dataset, request)
    if request.amount is not None and request.costs is None:
        raise invalid(
            "/costs", "models are compared by the cost of their errors: pass costs with amount"
        )
    for number, metric in enumerate(metrics):
        count = getattr(metric, "count", None)
        if dataset.weight is not None and (
            count is not None or isinstance(metric, core_metrics.Ndcg)
        ):
            detail = (
                f"the rows of dataset {dataset.id} have weights, but {metric.name} needs rows of equal weight: "
                "use a fraction, such as precision@1%, or average_precision"
            )
            raise invalid(f"/metrics/{number}", detail, code="invalid_parameter")
        if (
            isinstance(metric, core_metrics.PrecisionAt | core_metrics.Lift)
            and count is not None
            and count > (dataset.rows or 0)
        ):
            detail = (
                f"{metric.name} needs {count:g} rows, but dataset {dataset.id} has {dataset.rows}"
            )
            raise invalid(f"/metrics/{number}", detail, code="invalid_parameter")
    for number, model in enumerate(models):
        if model.id in [other.id for other in models[:number]]:
            detail = f"models must differ; {model.name}:{model.version} occurs twice"
            raise invalid(pointers[number], detail)
    return inputs, windows
