"""Models: found by reference, listed, measured by their curves, named by aliases, deleted."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from typing_extensions import TypedDict

from app.models import repository
from app.models.objectives import metric_among, target_fpr, without_count
from app.platform.audit import allow_over_quota
from app.platform.documents import AliasCutoff, AliasGuarantee, DecisionMemo, ListMetrics
from app.platform.documents import Interval as StoredInterval
from app.platform.errors import (
    NAME,
    Conflict,
    Invalid,
    NotFound,
    PreconditionFailed,
    PreconditionRequired,
    check_id,
    check_name,
    invalid,
)
from app.platform.ids import is_id
from app.platform.sql import ALL_ROWS, Page, RowFilter, Session
from app.platform.tables import (
    DatasetKind,
    EvaluationCurve,
    Model,
    ModelAlias,
    ModelAliasHistory,
    ModelCurve,
    ModelListMetrics,
    ModelMetrics,
    ModelPartialAuc,
    ReasonCodes,
)
from core import metrics as core_metrics
from core.errors import InvalidParameter

if TYPE_CHECKING:
    from core.metrics.curve import Definition
    from core.metrics.functionals.base import Metric
    from core.metrics.gains import ListCurveKind

VALIDATION = "validation"
PARTS = (VALIDATION, "train")
PartName = Literal["metrics", "roc", "operating_points", "operating_point"]
"""What can be read together with a model."""
REPORTED_FPRS = (0.001, 0.01, 0.05, 0.1, 0.2)
HISTORY_SHOWN = 100
"""The folder of the blob store that has the rankers."""

_REF = re.compile(rf"({NAME})(?:@({NAME})|:([1-9][0-9]{{0,8}}))?")


class ResolvedModel(NamedTuple):
    """A model, and the cut of the alias that it was asked for by, if the alias keeps a promise."""

    model: Model
    cutoff: AliasCutoff | None


def find(session: Session, owner: str, ref: str) -> Model:
    """Return the owner's model by id, `name` (the latest version), `name@alias` or `name:version`; raises NotFound."""
    return find_with_cutoff(session, owner, ref).model


def find_with_cutoff(session: Session, owner: str, ref: str) -> ResolvedModel:
    """Return the same as `find`, with the cut of the alias; raises NotFound."""
    model, cutoff = None, None
    if is_id(ref, "mdl"):
        model = repository.find(session, owner, ref)
    elif match := _REF.fullmatch(ref):
        name, alias, version = match.groups()
        if alias is not None:
            model, cutoff = repository.find_by_alias(session, owner, name, alias) or (None, None)
        elif version is not None:
            model = repository.find_version(session, owner, name, int(version))
        else:
            model = repository.find_latest(session, owner, name)
    if model is None:
        raise NotFound(f"there is no model {ref[:200]!r}")
    return ResolvedModel(model, cutoff)


def flag_threshold(cutoff: AliasCutoff | None) -> float | None:
    """Return the score from which a cut flags, inf if it flags none; None without a cut."""
    if cutoff is None:
        return None
    return math.inf if cutoff["threshold"] is None else cutoff["threshold"]


def get(
    session: Session, owner: str, ref: str
) -> tuple[Model, list[str], core_metrics.OperatingPoint | None]:
    """Return the model, its aliases, and the operating point of its objective if it has one."""
    model = find(session, owner, ref)
    aliases = list(repository.pointing_at(session, owner, model.id))
    return model, aliases, prepare_point_of_objective(session, model)()


def is_approximate(model: Model, part: str) -> bool:
    """Return True if the curve of a part is of out-of-fold scores: its thresholds were never tried on the model."""
    return part == VALIDATION and model.validation.get("method") == "cross_validation"


@dataclass(frozen=True)
class Listed:
    """A model in a list, with its aliases and its metrics on validation repository."""

    model: Model
    aliases: list[str]
    metrics: ModelMetrics | None


def list_page(
    session: Session,
    owner: str,
    *,
    name: str | None,
    dataset_id: str | None = None,
    aliased: bool = False,
    outdated: bool = False,
    only: RowFilter = ALL_ROWS,
    limit: int,
    after: str | None,
) -> Page[Listed]:
    """Return the owner's models, newest first: all, those of one name or dataset, or as a filter says. `aliased` leaves
    those that an alias points to, `outdated` those of them that have a newer version.
    """
    if name is not None:
        check_name("name", name)
    check_id("dataset_id", dataset_id, "ds")
    page = repository.list_page(
        session,
        owner,
        name=name,
        dataset_id=dataset_id,
        aliased=aliased,
        outdated=outdated,
        only=only,
        limit=limit,
        after=after,
    )
    ids = [model.id for model in page.data]
    aliases: dict[str, list[str]] = {model_id: [] for model_id in ids}
    for model_id, alias in repository.aliases_of(session, owner, ids):
        aliases[model_id].append(alias)
    metrics = {row.model_id: row for row in repository.areas_of(session, ids, VALIDATION)}
    data = [Listed(model, aliases[model.id], metrics.get(model.id)) for model in page.data]
    return Page(data, page.has_more, page.next)


class OutdatedAlias(NamedTuple):
    """An alias that points to an older version of its name, and the newest version."""

    alias: str
    model: Model
    newest_id: str
    newest_version: int


def outdated_aliases(session: Session, owner: str, limit: int) -> tuple[list[OutdatedAlias], bool]:
    """Return the aliases of the owner's newest `limit` models that an alias points to although their name has a newer
    version, and whether there are more such models.
    """
    behind = list_page(session, owner, name=None, outdated=True, limit=limit, after=None)
    names = {each.model.name for each in behind.data}
    newest = repository.find_newest(session, owner, names)
    aliases = [
        OutdatedAlias(alias, each.model, *newest[each.model.name])
        for each in behind.data
        for alias in each.aliases
    ]
    return aliases, behind.has_more


def delete(session: Session, owner: str, model_id: str) -> None:
    """Put a model into the trash, by its id only: nobody deletes another version than the one they looked at."""
    if not is_id(model_id, "mdl"):
        raise Invalid(f"to delete a model, use its id (mdl_…), got {model_id[:100]!r}")
    model = repository.find(session, owner, model_id, lock=True)
    if model is None:
        raise NotFound(f"there is no model {model_id!r}")
    names = repository.pointing_at(session, owner, model_id)
    if names:
        shown = ", ".join(f"{model.name}@{alias}" for alias in names[:5])
        raise Conflict(
            f"model {model_id} is in use as {shown}: move or delete these aliases first",
            code="model_in_use",
        )
    busy = repository.unfinished_jobs(session, owner, model_id)
    if busy:
        raise Conflict(
            f"model {model_id} is used by {len(busy)} unfinished job{'' if len(busy) == 1 else 's'}: "
            f"{', '.join(busy[:5])}",
            code="model_in_use",
        )
    repository.trash(session, owner, model_id)


def forget_name(session: Session, owner: str, name: str) -> None:
    """Delete the dictionary of reasons of a name if its last version was deleted for good."""
    repository.lock_name(session, owner, name)
    if not repository.has_version(session, owner, name):
        repository.empty_reason_codes(session, owner, name)


@dataclass(frozen=True)
class AliasState:
    """An alias, and its history."""

    alias: ModelAlias
    history: list[ModelAliasHistory]


def get_alias(session: Session, owner: str, name: str, alias: str) -> AliasState:
    """Return the alias with its history, the latest first."""
    current = None
    if re.fullmatch(NAME, name) and re.fullmatch(NAME, alias):
        current = repository.find_alias(session, owner, name, alias)
    if current is None:
        raise _no_alias(name, alias)
    return AliasState(current, list(repository.history(session, owner, name, alias, HISTORY_SHOWN)))


def _no_alias(name: str, alias: str) -> NotFound:
    return NotFound(f"there is no alias {name[:100]}@{alias[:100]}")


def list_aliases(
    session: Session, owner: str, name: str, *, limit: int, after: str | None
) -> Page[ModelAlias]:
    """Return the aliases of a name, the last moved first; raises NotFound if no model has the name."""
    if not re.fullmatch(NAME, name) or repository.find_latest(session, owner, name) is None:
        raise NotFound(f"there is no model {name[:200]!r}")
    return repository.list_aliases(session, owner, name, limit=limit, after=after)


def set_alias(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    ref: str,
    *,
    guarantee: AliasGuarantee | Literal["keep"] | None = "keep",
    memo: DecisionMemo | None = None,
    author: str | None = None,
    if_revision: int | None,
    must_be_new: bool = False,
) -> tuple[AliasState, bool]:
    """Point the alias at a model of the same name, by any reference to it; return it, and True if it is new.

    To move one that exists the caller gives the revision that they saw (`if_revision`), so that no move is lost.
    `guarantee` replaces the promise of the alias, None takes it away; raises Invalid if the model cannot keep it.
    `memo` and `author` belong to this revision alone.
    """
    check_name("alias", alias)
    model = _check_target(session, owner, name, ref)
    current = repository.find_alias(session, owner, name, alias, lock=True)
    created = False
    if current is None and if_revision is None:
        created = repository.create(session, owner, name, alias, model.id)
        current = repository.find_alias(session, owner, name, alias, lock=True)
    if not created:
        # A bad version must be rolled back at once; an alias keeps at most HISTORY_SHOWN revisions.
        allow_over_quota(session)
        check_revision(f"{name}@{alias}", current, if_revision, must_be_new)
        assert current is not None
        repository.move(session, current, model.id)
    assert current is not None
    kept = current.guarantee if guarantee == "keep" else guarantee
    cutoff = (
        None if kept is None else _cutoff_to_keep(session, model, kept, given=guarantee != "keep")
    )
    repository.keep_guarantee(session, current, kept, cutoff)
    repository.note_decision(session, current, author, memo)
    repository.add_to_history(session, current, HISTORY_SHOWN)
    session.flush()
    return get_alias(session, owner, name, alias), created


def remove_alias(
    session: Session, owner: str, name: str, alias: str, *, if_revision: int | None
) -> None:
    """Remove the alias; the caller gives the revision that they saw. Its history stays: an alias of the same name
    continues it.
    """
    current = None
    if re.fullmatch(NAME, name) and re.fullmatch(NAME, alias):
        current = repository.find_alias(session, owner, name, alias, lock=True)
    if current is None:
        raise _no_alias(name, alias)
    check_revision(f"{name}@{alias}", current, if_revision, must_be_new=False)
    repository.remove(session, current)


def _cutoff_to_keep(
    session: Session, model: Model, guarantee: AliasGuarantee, *, given: bool
) -> AliasCutoff:
    """Return the cut of the validation curve by which a model keeps a promise; raises Invalid.

    `given` says that the promise is part of the request.
    """
    try:
        threshold, point = _kept_on(curve_on(session, model, VALIDATION), guarantee)
    except (NotFound, Invalid) as error:
        detail = f"{model.name}:{model.version} cannot meet the guarantee: {error.detail}"
        first: dict[str, Any] = dict(error.errors[0]) if error.errors else {}
        parameter = first.pop("parameter", None)
        pointer = f"/guarantee/{parameter}" if given and parameter else "/model_id"
        errors = [first | {"pointer": pointer, "detail": detail}]
        code = "no_guarantee" if isinstance(error, NotFound) else error.code
        raise Invalid(detail, code=code, errors=errors) from error
    return {
        "threshold": threshold if math.isfinite(threshold) else None,
        "fpr": point.fpr.value,
        "tpr": point.tpr.value,
    }


def _kept_on(
    measured: PartCurve, guarantee: AliasGuarantee
) -> tuple[float, core_metrics.OperatingPoint]:
    """Return the threshold that keeps a promise on a curve, inf if it flags nothing, and its operating point."""
    if (threshold := guarantee.get("threshold")) is not None:
        return threshold, point_on(measured, threshold=threshold)
    if (share := guarantee.get("flagged")) is not None:
        point = point_on(measured, flagged=share)
        return point.threshold, point
    point, _ = cutoff_on(
        measured,
        threshold=None,
        fpr=guarantee["fpr"],
        tpr=guarantee["tpr"],
        confidence=guarantee["confidence"],
    )
    return point.threshold, point


def _check_target(session: Session, owner: str, name: str, ref: str) -> Model:
    """Return the model of a reference, locked; raises NotFound, and Invalid for a model of another name."""
    try:
        found = find(session, owner, ref)
    except NotFound as error:
        raise NotFound(
            error.detail, errors=[{"pointer": "/model_id", "detail": error.detail}]
        ) from None
    if found.name != name:
        detail = f"an alias of {name[:100]!r} must point to a model of that name; {ref[:200]} is {found.name!r}"
        raise Invalid(detail, errors=[{"pointer": "/model_id", "detail": detail}])
    model = repository.find(session, owner, found.id, lock=True)
    if model is None:  # deleted between the two statements
        raise NotFound(f"there is no model {ref[:200]!r}")
    return model


def check_revision(
    shown: str,
    current: ModelAlias | ReasonCodes | None,
    if_revision: int | None,
    must_be_new: bool,
) -> None:
    """Raise PreconditionFailed or PreconditionRequired unless the caller has seen the current revision."""
    if current is None:
        raise PreconditionFailed(f"{shown} does not exist yet: create it without If-Match")
    if must_be_new:
        raise PreconditionFailed(f"{shown} already exists, at revision {current.revision}")
    if if_revision is None:
        raise PreconditionRequired(
            f'{shown} exists: send If-Match: "{current.revision}" to change this revision'
        )
    if if_revision != current.revision:
        raise PreconditionFailed(f"{shown} is at revision {current.revision}, not {if_revision}")


def curve_of(row: ModelCurve | EvaluationCurve) -> core_metrics.RocCurve:
    """Return the stored columns as a curve."""
    fpr, tpr, thresholds = (
        np.frombuffer(column, dtype="<f8") for column in (row.fpr, row.tpr, row.thresholds)
    )
    return core_metrics.RocCurve(fpr, tpr, thresholds)


MAX_CURVE_POINTS = 1_000_000
"""Points of a stored curve: 24 bytes each, in one row of the database."""

FIRST_CURVE_POINTS = 100_000
"""Points from the top of the list that a stored curve always has: what is read off there is exact."""


def write_curve(path: Path, curve: core_metrics.RocCurve) -> None:
    """Write fpr, tpr and thresholds one after the other, float64 little-endian, as SQL stores them.

    Of more than `MAX_CURVE_POINTS` points only so many, by `RocCurve.thin`.
    """
    curve = curve.thin(MAX_CURVE_POINTS, n_first=FIRST_CURVE_POINTS)
    np.stack((curve.fpr, curve.tpr, curve.thresholds)).astype("<f8").tofile(path)


def read_curve(path: Path) -> core_metrics.RocCurve:
    """Return the curve that `write_curve` has written."""
    return core_metrics.RocCurve(*np.fromfile(path, dtype="<f8").reshape(3, -1))


class CurveColumns(TypedDict):
    """The columns of a stored curve."""

    points: int
    fpr: bytes
    tpr: bytes
    thresholds: bytes


def curve_columns(path: Path) -> CurveColumns:
    """Return what `write_curve` has written, as the columns of a stored curve."""
    fpr, tpr, thresholds = np.fromfile(path, dtype="<f8").reshape(3, -1)
    return {
        "points": len(fpr),
        "fpr": fpr.tobytes(),
        "tpr": tpr.tobytes(),
        "thresholds": thresholds.tobytes(),
    }


@dataclass(frozen=True)
class PartCurve:
    """A model's full ROC curve on a part, with the class totals and level that intervals at its points need.

    `rows` are the numbers of positives and of negatives.
    """

    model: Model
    part: str
    curve: core_metrics.RocCurve
    totals: core_metrics.ClassTotals
    level: float
    rows: tuple[int, int]


def roc(session: Session, owner: str, ref: str, part: str) -> PartCurve:
    """Return the model's full ROC curve on a part; raises NotFound."""
    return curve_on(session, find(session, owner, ref), part)


def curve_on(session: Session, model: Model, part: str) -> PartCurve:
    """Return the full ROC curve of a model on a part; raises NotFound."""
    measured = _curve_on(session, model, part)
    if measured is None:
        raise _no_part(model, part)
    return measured


def _curve_on(session: Session, model: Model, part: str) -> PartCurve | None:
    measured = repository.find_metrics(session, model.id, part)
    curve = repository.find_curve(session, model.id, part)
    if measured is None or curve is None:
        return None
    row = measured[0]
    totals = core_metrics.ClassTotals(
        row.positive_weight, row.negative_weight, row.positive_effective, row.negative_effective
    )
    rows = (row.positives, row.negatives)
    return PartCurve(model, part, curve_of(curve), totals, row.level, rows)


def metrics(session: Session, owner: str, ref: str, part: str) -> dict[str, Any]:
    """Return AUC, partial AUCs and a few points of the curve on a part, with the counts of its rows.

    For a model trained on pairs: the weighted fraction of pairs in order. For one with several labels: AUC and partial
    AUCs of each, and their means.
    """
    return prepare_metrics(session, find(session, owner, ref), part)()


def prepare_metrics(session: Session, model: Model, part: str) -> Callable[[], dict[str, Any]]:
    """Read what the metrics of a model that was found are computed from; return what computes the same as `metrics`,
    and reads nothing.
    """
    readers: dict[str, Callable[[Session, Model, str], dict[str, Any]]] = {
        DatasetKind.PREFERENCES: _pair_metrics,
        DatasetKind.MULTILABEL: _label_metrics,
        DatasetKind.GRADED: _graded_metrics,
    }
    if (read := readers.get(model.kind)) is not None:
        stored = read(session, model, part)
        return lambda: stored
    found = repository.find_metrics(session, model.id, part)
    measured = _curve_on(session, model, part)
    if found is None:
        raise _no_part(model, part)
    return partial(
        _metrics_of,
        model,
        part,
        *found,
        measured,
        point_of_objective=prepare_point_of_objective(session, model, part),
        metric=None
        if measured is None or model.query is not None
        else _metric_of_objective(session, measured),
        lists=lists_of(repository.find_list_metrics(session, model.id, part)),
    )


def _metrics_of(
    model: Model,
    part: str,
    row: ModelMetrics,
    windows: Sequence[ModelPartialAuc],
    measured: PartCurve | None,
    *,
    point_of_objective: Callable[[], core_metrics.OperatingPoint | None],
    metric: Metric | None,
    lists: ListMetrics | None,
) -> dict[str, Any]:
    return {
        "model_id": model.id,
        "on": part,
        "approximate": is_approximate(model, part),
        "level": row.level,
        "auc": {"value": row.auc, "low": row.auc_low, "high": row.auc_high},
        "gini": gini_of(row.auc, row.auc_low, row.auc_high),
        "ks": None if measured is None else measured.curve.ks,
        "pauc": [
            {
                "fpr_min": window.fpr_min,
                "fpr_max": window.fpr_max,
                "value": window.value,
                "low": window.low,
                "high": window.high,
                "empirical": None
                if measured is None
                else core_metrics.empirical_area_of(
                    measured.curve, measured.totals.negative, window.fpr_min, window.fpr_max
                ),
            }
            for window in windows
        ],
        "tpr_at_fpr": []
        if measured is None
        else heights_of(measured.curve, measured.totals, measured.level),
        "operating_point": point_of_objective(),
        "metric": None if measured is None else _measured_metric(measured, metric),
        "positives": row.positives,
        "negatives": row.negatives,
        "positive_weight": row.positive_weight,
        "negative_weight": row.negative_weight,
        "ties": row.ties,
        "lists": lists,
    }


def _metric_of_objective(session: Session, measured: PartCurve) -> Metric | None:
    """Return the figure that the model's objective names, on a part; None for areas and rates.

    A count is of the validation rows; of the training rows it is the same share.
    """
    objective, rows = measured.model.objective, float(sum(measured.rows))
    if "count" in objective and measured.part != "validation":
        evaluated = repository.find_metrics(session, measured.model.id, "validation")
        if evaluated is None:
            return None
        objective = without_count(objective, evaluated[0].positives + evaluated[0].negatives)
    return metric_among(objective, rows)


def _measured_metric(measured: PartCurve, metric: Metric | None) -> MetricRecord | None:
    if metric is None:
        return None
    try:
        found = core_metrics.measure_on_curve(
            measured.curve, measured.totals, [metric], level=measured.level
        )
    except (
        InvalidParameter
    ):  # NDCG where each row was scored several times: a rank has no fractions
        return None
    return metric_record(found[0])


class MetricRecord(TypedDict):
    """A figure by its name, with its interval and its test against chance."""

    metric: str
    value: float
    low: float
    high: float
    chance: float | None
    p_value: float | None
    adjusted_p_value: float | None


def metric_record(found: core_metrics.MetricEstimate) -> MetricRecord:
    """Return a figure as JSON has it."""
    value, low, high = found.interval
    return {
        "metric": found.metric.name,
        "value": value,
        "low": low,
        "high": high,
        "chance": found.chance,
        "p_value": found.p_value,
        "adjusted_p_value": found.adjusted_p_value,
    }


def lists_of(row: ModelListMetrics | None) -> ListMetrics | None:
    """Return the figures of lists of a part; None where its rows have no queries."""
    if row is None or row.queries is None:
        return None
    return {"level": row.level, "queries": row.queries, "metrics": row.metrics}


class CurveHeight(TypedDict):
    """The TPR at a false positive rate, with its interval."""

    fpr: float
    tpr: float
    low: float
    high: float


def gini_of(value: float, low: float, high: float) -> StoredInterval:
    """Return 2 AUC - 1 with its interval."""
    return {"value": 2.0 * value - 1.0, "low": 2.0 * low - 1.0, "high": 2.0 * high - 1.0}


def heights_of(
    curve: core_metrics.RocCurve, totals: core_metrics.ClassTotals, level: float
) -> list[CurveHeight]:
    """Return the TPR at each of `REPORTED_FPRS`, with intervals."""
    heights: list[CurveHeight] = []
    for fpr in REPORTED_FPRS:
        tpr, low, high = core_metrics.tpr_at_fpr_interval(curve, totals, fpr, level)
        heights.append({"fpr": fpr, "tpr": tpr, "low": low, "high": high})
    return heights


def _pair_metrics(session: Session, model: Model, part: str) -> dict[str, Any]:
    row = repository.find_pair_metrics(session, model.id, part)
    if row is None:
        raise _no_part(model, part)
    return {
        "model_id": model.id,
        "on": part,
        "level": row.level,
        "pair_order": {"value": row.value, "low": row.low, "high": row.high},
        "misrank_fraction": row.misrank_fraction,
        "ties": row.ties,
        "pairs": row.pairs,
        "items": row.items,
        "weight": row.weight,
        "effective_pairs": row.effective_pairs,
    }


def _graded_metrics(session: Session, model: Model, part: str) -> dict[str, Any]:
    row = repository.find_list_metrics(session, model.id, part)
    if row is None:
        raise _no_part(model, part)
    return {
        "model_id": model.id,
        "on": part,
        "level": row.level,
        "grades": row.grades,
        "lists": lists_of(row),
        "order": row.order,
    }


def _label_metrics(session: Session, model: Model, part: str) -> dict[str, Any]:
    labels = repository.find_label_metrics(session, model.id, part)
    if not labels:
        raise _no_part(model, part)
    measured = [label for label in labels if label.auc is not None]
    windows = measured[0].partial_aucs if measured else []
    return {
        "model_id": model.id,
        "on": part,
        "level": labels[0].level,
        "labels": [
            {
                "label": label.label,
                "auc": label.auc,
                "pauc": label.partial_aucs,
                "positives": label.positives,
                "negatives": label.negatives,
                "ties": label.ties,
            }
            for label in labels
        ],
        "evaluated": len(measured),
        "mean_auc": _mean([label.auc["value"] for label in measured if label.auc]),
        "mean_pauc": [
            {
                "fpr_min": window["fpr_min"],
                "fpr_max": window["fpr_max"],
                "value": _mean([label.partial_aucs[k]["value"] for label in measured]),
            }
            for k, window in enumerate(windows)
        ],
    }


def find_label(labels: Sequence[str] | None, name: str | None) -> int:
    """Return the position of a label; None is the name for a model with one score per row. Raises Invalid."""
    if labels is None and name is None:
        return 0
    known = labels or []
    if name not in known:
        rule = f"must be one of {', '.join(map(repr, known[:20]))}"
        if labels is None:
            rule = "is not allowed: the model has one score per row"
        got = "it is missing" if name is None else f"got {name[:100]!r}"
        detail = f"label {rule}; {got}"
        raise Invalid(detail, errors=[{"parameter": "label", "detail": detail}])
    return known.index(name)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def cutoff_on(
    measured: PartCurve, *, confidence: float | None, **asked: Any
) -> tuple[core_metrics.OperatingPoint, core_metrics.Guarantee | None]:
    """Return the operating point at a false or true positive rate, a threshold, or the least cost.

    With a confidence, the rate is promised of the population, and the promise is returned, too. `asked` are the
    keywords of `core.metrics.operating_point`.
    """
    part = measured.part
    if confidence is None:
        return point_on(measured, **asked), None
    if part != VALIDATION:
        detail = f"on must be {VALIDATION} with confidence: a guarantee requires held-out rows"
        raise no_guarantee("on", f"{detail}, got {part}")
    if is_approximate(measured.model, part):
        raise no_guarantee(
            "confidence",
            f"a cutoff of model {measured.model.id} cannot be guaranteed, because it was cross-validated: "
            "its scores belong to rows that it was trained on. Evaluate it on other rows, and request the "
            "operating point of that evaluation",
        )
    found = guaranteed_on(
        measured.curve, measured.totals, measured.rows, measured.level, confidence, **asked
    )
    return found.point, found.guarantee


def guaranteed_on(
    curve: core_metrics.RocCurve,
    totals: core_metrics.ClassTotals,
    rows: tuple[int, int],
    level: float,
    confidence: float,
    *,
    fpr: float | None,
    tpr: float | None,
    threshold: float | None,
    flagged: float | None = None,
    **terms: Any,
) -> core_metrics.GuaranteedPoint:
    """Return the cut that keeps a promise, from a stored curve of rows that the model has not learnt from.

    Raises Invalid, with the number of rows that are needed, if no cut can be promised.
    """
    for name, given in (("threshold", threshold), ("flagged", flagged)):
        if given is not None:
            raise no_guarantee(name, f"{name} cannot be combined with confidence, got {given:g}")
    if fpr is None and tpr is None and terms.get("costs") is not None:
        raise _invalid_query(
            "confidence",
            "confidence guarantees fpr or tpr: pass one of them, not only costs",
        )
    try:
        return core_metrics.guaranteed_point_on_curve(
            curve, totals, rows, fpr=fpr, tpr=tpr, confidence=confidence, level=level, **terms
        )
    except core_metrics.TooFewRows as error:
        raise no_guarantee(
            "tpr" if fpr is None else "fpr", str(error), code=error.code, needed=error.needed
        ) from error
    except core_metrics.NoGuarantee as error:
        raise no_guarantee("confidence", str(error)) from error
    except InvalidParameter as error:
        raise _invalid_query("tpr" if fpr is None else "fpr", str(error)) from error


MAX_METRICS = 20
"""Most figures that one question may name."""
MAX_SIZES = 100
"""Most sizes of a list in one gains table."""


def metrics_named(
    names: Sequence[str], pointer: str | None = None, definition: Definition = "interpolated"
) -> list[Metric]:
    """Return the figures of these names; raises Invalid that names the one that is none, or twice there.

    The names are those of the query parameter `metric`, unless a `pointer` says where in the body they stand. With
    definition="empirical" the areas among them are the strict ones.
    """
    found: list[Metric] = []
    for number, name in enumerate(names):
        try:
            metric = core_metrics.metric_named(name)
            if definition == "empirical" and isinstance(metric, core_metrics.WindowArea):
                metric = core_metrics.EmpiricalArea(metric.fpr_min, metric.fpr_max)
            if metric in found:
                raise InvalidParameter(f"metrics must differ; {metric.name} occurs twice")
        except InvalidParameter as error:
            if pointer is None:
                raise _invalid_query("metric", str(error)) from error
            raise invalid(f"{pointer}/{number}", str(error), code="invalid_parameter") from error
        found.append(metric)
    return found


def measured_on(
    curve: core_metrics.RocCurve,
    totals: core_metrics.ClassTotals,
    names: Sequence[str],
    level: float,
    definition: Definition = "interpolated",
    *,
    fixed_prevalence: bool = False,
) -> tuple[core_metrics.MetricEstimate, ...]:
    """Return the figures of these names, from a stored curve; raises Invalid."""
    metrics = metrics_named(names, definition=definition)
    try:
        return core_metrics.measure_on_curve(
            curve, totals, metrics, level=level, fixed_prevalence=fixed_prevalence
        )
    except InvalidParameter as error:
        raise _invalid_query("metric", str(error)) from error


def gains_on(
    curve: core_metrics.RocCurve,
    totals: core_metrics.ClassTotals,
    level: float,
    *,
    shares: Sequence[float],
    counts: Sequence[int],
    prevalence: float | None,
) -> tuple[core_metrics.Gain, ...]:
    """Return the gains table of a stored curve; raises Invalid."""
    try:
        return core_metrics.gains_on_curve(
            curve, totals, shares=shares, counts=counts, level=level, prevalence=prevalence
        )
    except InvalidParameter as error:
        named = str(error).split()[0]
        parameter = named if named in ("share", "prevalence") else "count"
        raise _invalid_query(parameter, str(error)) from error


AXES: Mapping[str, tuple[str, str]] = {
    "precision_recall": ("recall", "precision"),
    "gains": ("share", "recall"),
    "cost": ("weight", "cost"),
    "histogram": ("score", "positives"),
}
"""What x and y of a curve of the list are."""


def list_curve_on(
    kind: ListCurveKind,
    curve: core_metrics.RocCurve,
    totals: core_metrics.ClassTotals,
    prevalence: float | None,
) -> tuple[core_metrics.ListCurve, float | None]:
    """Return a curve of the list from a stored curve, and the prevalence that it assumes; raises Invalid."""
    if kind == "cost":
        if prevalence is not None:
            detail = (
                f"prevalence is part of the weight of a cost curve: omit it, got {prevalence:g}"
            )
            raise _invalid_query("prevalence", detail)
        return core_metrics.list_curve(kind, curve, totals.prevalence), None
    share = totals.prevalence if prevalence is None else prevalence
    return core_metrics.list_curve(kind, curve, share), share


MAX_BINS = 40
"""Most bins of a histogram of scores: more are narrower than a picture shows."""


def histogram_on(
    curve: core_metrics.RocCurve, max_bins: int, prevalence: float | None
) -> core_metrics.ScoreHistogram:
    """Return the histogram of the scores of each class from a stored curve; raises Invalid for a prevalence."""
    if prevalence is not None:
        detail = f"a histogram shows each class separately: omit prevalence, got {prevalence:g}"
        raise _invalid_query("prevalence", detail)
    return core_metrics.score_histogram(curve, min(max_bins, MAX_BINS))


def _invalid_query(parameter: str, detail: str) -> Invalid:
    return Invalid(
        detail, code="invalid_parameter", errors=[{"parameter": parameter, "detail": detail}]
    )


def no_guarantee(parameter: str, detail: str, code: str = "no_guarantee", **more: int) -> Invalid:
    """Return the refusal of a promise; `more` says what a program should know beside the detail."""
    return Invalid(detail, code=code, errors=[{"parameter": parameter, "detail": detail, **more}])


MAX_ALIAS_CUTOFFS = 20
"""Most aliases whose cuts are among the operating points along a curve."""


@dataclass(frozen=True)
class CutoffsAlong:
    """Operating points along a curve, those that flag fewest first.

    `least_cost`, `of_objective`, `of_flagged` and `of_aliases`, by alias, are indices of `points`.
    """

    of: PartCurve
    points: list[core_metrics.OperatingPoint]
    least_cost: int | None
    of_objective: int | None
    of_flagged: int | None
    of_aliases: dict[str, int]


def prepare_cutoffs(
    session: Session, measured: PartCurve, *, max_points: int, **asked: Any
) -> Callable[[], CutoffsAlong]:
    """Read what operating points along a curve depend on; return what computes them, and reads nothing. `asked` are
    further keywords of `_cutoffs_on`.
    """
    model = measured.model
    most = min(MAX_ALIAS_CUTOFFS, max_points // 2)
    return partial(
        _cutoffs_on,
        measured,
        prepare_point_of_objective(session, model, measured.part),
        repository.flagging(session, model.owner, model.id, most),
        max_points=max_points,
        **asked,
    )


def _cutoffs_on(
    measured: PartCurve,
    point_of_objective: Callable[[], core_metrics.OperatingPoint | None],
    flagging: Sequence[tuple[str, AliasCutoff]],
    *,
    max_points: int,
    costs: core_metrics.Costs | None,
    prevalence: float | None,
    flagged: float | None = None,
) -> CutoffsAlong:
    """Return operating points along a curve. Among them are that of the objective, the least costly one, the best that
    flags at most `flagged` of the rows, and the cuts of the aliases of the model.
    """
    curve, totals = measured.curve, measured.totals
    required: dict[str, int] = {}

    def place(threshold: float) -> int:
        """Return the index of the point that flags the same rows as this threshold."""
        return int(np.searchsorted(-curve.thresholds, -threshold, side="right")) - 1

    if costs is not None:
        fraction = totals.prevalence if prevalence is None else prevalence
        required["least_cost"] = core_metrics.least_costly(curve, costs, fraction)
    chosen = point_of_objective()
    if chosen is not None:
        required["of_objective"] = place(chosen.threshold)
    if flagged is not None:
        best = point_on(measured, flagged=flagged, costs=costs, prevalence=prevalence)
        required["of_flagged"] = place(best.threshold)
    of_aliases = {
        alias: 0 if cutoff["threshold"] is None else place(cutoff["threshold"])
        for alias, cutoff in flagging
    }
    kept = [*required.values(), *of_aliases.values()]
    indices = core_metrics.cutoffs_along(curve, max_points, kept)
    points = core_metrics.operating_points_on_curve(
        curve, totals, indices, costs=costs, prevalence=prevalence, level=measured.level
    )
    at = {name: int(np.searchsorted(indices, index)) for name, index in required.items()}
    by_alias = {name: int(np.searchsorted(indices, index)) for name, index in of_aliases.items()}
    return CutoffsAlong(
        measured,
        points,
        at.get("least_cost"),
        at.get("of_objective"),
        at.get("of_flagged"),
        by_alias,
    )


@dataclass(frozen=True)
class PartsQuery:
    """The members that a caller asked to be included with a model, and how. `part`: the rows that they are of.

    `point` are the keywords of `cutoff_on`, and `cutoffs` those of `prepare_cutoffs`.
    """

    names: frozenset[PartName]
    part: str
    point: Mapping[str, Any]
    cutoffs: Mapping[str, Any]


@dataclass(frozen=True)
class MeasuredParts:
    """The requested members that the model has, and for each that it lacks the error that says why."""

    metrics: dict[str, Any] | None
    curve: PartCurve | None
    cutoffs: CutoffsAlong | None
    point: tuple[core_metrics.OperatingPoint, core_metrics.Guarantee | None] | None
    absent: Mapping[PartName, NotFound]


if TYPE_CHECKING:
    ModelWithParts = tuple[Model, list[str], core_metrics.OperatingPoint | None, MeasuredParts]


def prepare_parts(
    session: Session, model: Model, asked: PartsQuery
) -> Callable[[], ModelWithParts]:
    """Read what the requested members of a model are computed from; return what computes the same as `get` and these
    members, and reads nothing.
    """
    # A session has a row at hand while something holds it: otherwise each member would read the curve again.
    rows = repository.find_curve(session, model.id, asked.part)
    absent: dict[PartName, NotFound] = {}
    compute_metrics, compute_cutoffs, measured = None, None, None
    if "metrics" in asked.names:
        try:
            compute_metrics = prepare_metrics(session, model, asked.part)
        except NotFound as error:
            absent["metrics"] = error
    if of_curve := asked.names - {"metrics"}:
        try:
            measured = curve_on(session, model, asked.part)
        except NotFound as error:
            absent |= dict.fromkeys(sorted(of_curve), error)
    if measured is not None and "operating_points" in asked.names:
        compute_cutoffs = prepare_cutoffs(session, measured, **asked.cutoffs)
    aliases = list(repository.pointing_at(session, model.owner, model.id))
    compute_chosen = prepare_point_of_objective(session, model)
    del rows

    def compute() -> ModelWithParts:
        found = MeasuredParts(
            None if compute_metrics is None else compute_metrics(),
            measured,
            None if compute_cutoffs is None else compute_cutoffs(),
            cutoff_on(measured, **asked.point)
            if measured is not None and "operating_point" in asked.names
            else None,
            absent,
        )
        return model, aliases, compute_chosen(), found

    return compute


def prepare_point_of_objective(
    session: Session, model: Model, part: str = VALIDATION
) -> Callable[[], core_metrics.OperatingPoint | None]:
    """Read the curves of the operating point of the objective `tpr` on a part; return what computes it, and reads
    nothing. Its threshold is chosen on the validation rows.

    It is None for other objectives, and without validation.
    """
    fpr = target_fpr(model.objective)
    measured = _curve_on(session, model, VALIDATION) if fpr is not None else None
    other = measured if part == VALIDATION or measured is None else _curve_on(session, model, part)

    def compute() -> core_metrics.OperatingPoint | None:
        if measured is None or other is None:
            return None
        chosen = point_on(measured, fpr=fpr)
        return chosen if other is measured else point_on(other, threshold=chosen.threshold)

    return compute


def point_on(measured: PartCurve, **asked: Any) -> core_metrics.OperatingPoint:
    """Return an operating point of a stored curve; `asked` are the keywords of `core.metrics.operating_point`."""
    return core_metrics.operating_point_on_curve(
        measured.curve, measured.totals, level=measured.level, **asked
    )


def _no_part(model: Model, part: str) -> NotFound:
    if model.kind != DatasetKind.BIPARTITE and model.validation.get("method") != "none":
        return NotFound(
            f"model {model.id} was trained on a dataset of kind {model.kind}, so it has no ROC curve: see "
            "GET …/metrics",
            code="no_curve",
        )
    return NotFound(
        f"model {model.id} has no {part} curve: "
        f"it was trained with validation.method {model.validation.get('method')!r}",
        code="no_curve",
    )


def find_named(session: Session, owner: str, ref: str, position: dict[str, Any]) -> ResolvedModel:
    """Return the owner's model, with the cut of the alias; raises NotFound with the position in the request, such as
    `{"pointer": "/model"}`.
    """
    try:
        return find_with_cutoff(session, owner, ref)
    except NotFound as error:
        raise NotFound(error.detail, errors=[position | {"detail": error.detail}]) from error


def find_to_read(session: Session, owner: str, model_id: str) -> Model:
    """Return the model that a job uses; raises Conflict if it was deleted."""
    model = repository.find(session, owner, model_id)
    if model is None:
        raise Conflict(f"model {model_id} was deleted before the job ran", code="model_deleted")
    return model


def find_to_use(session: Session, owner: str, ref: str, position: dict[str, Any]) -> ResolvedModel:
    """Return the same for a job that is about to be written, and lock it: nobody deletes it until the commit."""
    found = find_named(session, owner, ref, position)
    if not repository.lock_shared(session, owner, found.model.id):
        detail = f"model {found.model.id} was just deleted"
        raise NotFound(detail, errors=[position | {"detail": detail}])
    return found
