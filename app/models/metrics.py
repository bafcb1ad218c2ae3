"""Metrics of a model on a part of its data, by its kind; metrics by name and gains tables from a stored curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypedDict

from app.measures import describe_segments
from app.models import repository
from app.models.curves import PartCurve, find_curve_on, invalid_query, no_curve
from app.models.objectives import metric_among, without_count
from app.models.operating_points import ObjectiveCurves, find_objective_curves, objective_point
from app.models.service import find, is_approximate
from app.platform.documents import (
    GradedMetrics,
    MultilabelMetrics,
    PairMetrics,
    RocMetrics,
)
from app.platform.documents import Interval as StoredInterval
from app.platform.errors import invalid
from app.platform.sql import Session
from app.platform.tables import DatasetKind, Model
from core import metrics as core_metrics
from core.errors import InvalidParameter

if TYPE_CHECKING:
    from core.metrics.curve import Definition
    from core.metrics.functionals.base import Metric

REPORTED_FPRS = (0.001, 0.01, 0.05, 0.1, 0.2)


@dataclass(frozen=True)
class RocInput:
    """The stored data of metrics on rows with one label; the curve is None if the part has none."""

    model: Model
    part: str
    stored: RocMetrics
    measured: PartCurve | None
    objective: ObjectiveCurves | None
    metric: Metric | None


MetricsInput = RocInput | dict[str, Any]
"""Metrics of pairs, of several labels and of grades are stored: nothing is computed."""


def metrics(session: Session, owner: str, ref: str, part: str) -> dict[str, Any]:
    """Return AUC, partial AUCs and a few points of the curve on a part, with the counts of its rows.

    For a model trained on pairs: the weighted fraction of pairs in order. For one with several labels: AUC and partial
    AUCs of each, and their means.
    """
    return compute(find_input(session, find(session, owner, ref), part))


def find_input(session: Session, model: Model, part: str) -> MetricsInput:
    """Read what the metrics of a part are computed from. Raises NotFound."""
    shown: dict[str, Callable[[Any], dict[str, Any]]] = {
        DatasetKind.PREFERENCES: _pair_metrics,
        DatasetKind.MULTILABEL: _label_metrics,
        DatasetKind.GRADED: _graded_metrics,
    }
    found = repository.find_metrics(session, model.id, part)
    if found is None:
        raise no_curve(model, part)
    if (show := shown.get(model.kind)) is not None:
        return {"model_id": model.id, "on": part, **show(found)}
    measured = find_curve_on(session, model, part)
    return RocInput(
        model,
        part,
        cast(RocMetrics, found),
        measured,
        objective=find_objective_curves(session, model, part),
        metric=None
        if measured is None or model.query is not None
        else _metric_of_objective(session, measured),
    )


def compute(found: MetricsInput) -> dict[str, Any]:
    if isinstance(found, dict):
        return found
    model, part, stored, measured = found.model, found.part, found.stored, found.measured
    return {
        "model_id": model.id,
        "on": part,
        "approximate": is_approximate(model, part),
        "level": stored["level"],
        "auc": stored["auc"],
        "gini": gini_of(**stored["auc"]),
        "ks": None if measured is None else measured.curve.ks,
        "ks_threshold": None
        if measured is None
        else float(measured.curve.thresholds[measured.curve.ks_point]),
        "pauc": [
            {
                **window,
                "empirical": None
                if measured is None
                else core_metrics.empirical_area_of(
                    measured.curve, measured.totals.negative, window["fpr_min"], window["fpr_max"]
                ),
            }
            for window in stored["pauc"]
        ],
        "tpr_at_fpr": []
        if measured is None
        else heights_of(measured.curve, measured.totals, measured.level),
        "operating_point": objective_point(found.objective),
        "metric": None if measured is None else _measured_metric(measured, found.metric),
        "positives": stored["positives"],
        "negatives": stored["negatives"],
        "positive_weight": stored["positive_weight"],
        "negative_weight": stored["negative_weight"],
        "ties": stored["ties"],
        "weak_segments": describe_segments(stored.get("weak_segments")),
        "lists": stored.get("lists"),
    }


def _metric_of_objective(session: Session, measured: PartCurve) -> Metric | None:
    """Return the objective's metric; None for areas and rates. A count of validation rows is the same fraction of
    training rows.
    """
    objective, rows = measured.model.objective, float(sum(measured.rows))
    if "count" in objective and measured.part != "validation":
        evaluated = repository.find_roc_metrics(session, measured.model.id, "validation")
        if evaluated is None:
            return None
        objective = without_count(objective, evaluated["positives"] + evaluated["negatives"])
    return metric_among(objective, rows)


def _measured_metric(measured: PartCurve, metric: Metric | None) -> dict[str, Any] | None:
    """Return None if the metric cannot be computed."""
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


def metric_record(found: core_metrics.MetricEstimate) -> dict[str, Any]:
    """The ends of the interval are members."""
    return {**vars(found), **found.interval._asdict(), "metric": found.metric.name}


class CurveHeight(TypedDict):
    """The TPR at a false positive rate, with its interval."""

    fpr: float
    tpr: float
    low: float
    high: float


def gini_of(value: float, low: float, high: float) -> StoredInterval:
    return {"value": 2.0 * value - 1.0, "low": 2.0 * low - 1.0, "high": 2.0 * high - 1.0}


def heights_of(
    curve: core_metrics.RocCurve, totals: core_metrics.ClassTotals, level: float
) -> list[CurveHeight]:
    heights: list[CurveHeight] = []
    for fpr in REPORTED_FPRS:
        tpr, low, high = core_metrics.tpr_at_fpr_interval(curve, totals, fpr, level)
        heights.append({"fpr": fpr, "tpr": tpr, "low": low, "high": high})
    return heights


def _pair_metrics(found: PairMetrics) -> dict[str, Any]:
    counts: dict[str, Any] = {**found}
    interval = {name: counts.pop(name) for name in ("value", "low", "high")}
    return {"pair_order": interval, **counts}


def _graded_metrics(found: GradedMetrics) -> dict[str, Any]:
    return {**found}


def _label_metrics(found: MultilabelMetrics) -> dict[str, Any]:
    """The means are over the labels that have an AUC."""
    labels = found["labels"]
    measured = [label for label in labels if label["auc"] is not None]
    windows = measured[0]["pauc"] if measured else []
    shown = ("label", "auc", "pauc", "positives", "negatives", "ties")
    return {
        "level": labels[0]["level"],
        "labels": [
            {name: label[name] for name in shown} for label in cast(list[dict[str, Any]], labels)
        ],
        "evaluated": len(measured),
        "mean_auc": _mean([label["auc"]["value"] for label in measured if label["auc"]]),
        "mean_pauc": [
            {
                "fpr_min": window["fpr_min"],
                "fpr_max": window["fpr_max"],
                "value": _mean([label["pauc"][k]["value"] for label in measured]),
            }
            for k, window in enumerate(windows)
        ],
    }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


MAX_METRICS = 20
"""Maximum number of metrics in a request."""


MAX_SIZES = 100
"""Maximum number of list sizes in a gains table."""


def metrics_named(
    names: Sequence[str], pointer: str | None = None, definition: Definition = "interpolated"
) -> list[Metric]:
    """Return metrics by name. Raises Invalid for an unknown or repeated one.

    Error messages refer to the query parameter `metric`, or to the `pointer` in the body. With definition="empirical"
    areas under the curve count tied pairs as misranked.
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
                raise invalid_query("metric", str(error)) from error
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
    """Estimate metrics by name from a stored curve. Raises Invalid."""
    metrics = metrics_named(names, definition=definition)
    try:
        return core_metrics.measure_on_curve(
            curve, totals, metrics, level=level, fixed_prevalence=fixed_prevalence
        )
    except InvalidParameter as error:
        raise invalid_query("metric", str(error)) from error


def gains_on(
    curve: core_metrics.RocCurve,
    totals: core_metrics.ClassTotals,
    level: float,
    *,
    shares: Sequence[float],
    counts: Sequence[int],
    prevalence: float | None,
) -> tuple[core_metrics.Gain, ...]:
    """Raises Invalid."""
    try:
        return core_metrics.gains_table(
            curve, totals, shares=shares, counts=counts, level=level, prevalence=prevalence
        )
    except InvalidParameter as error:
        named = str(error).split()[0]
        parameter = named if named in ("share", "prevalence") else "count"
        raise invalid_query(parameter, str(error)) from error
