"""The objective of a job applied to rows: its window of false positive rates, and the value of scores.
`app.jobs.objectives` declares the objectives.

A top of the list is a fraction of the rows, or a count of the validation rows. A subset, such as the rows by which a
search chooses, has fewer: there a count becomes the corresponding fraction (`without_count`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from app.jobs.objectives import OBJECTIVES, TPR_WINDOW_START, ObjectiveBody
from app.platform.documents import Objective
from app.platform.errors import Invalid, invalid
from core import metrics
from core.errors import InvalidParameter
from core.metrics.window import MIN_WIDTH, WHOLE, check_window

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.metrics.functionals.base import Metric
    from core.metrics.lists import ListMetric

Window = tuple[float, float]

LIST_METRICS: Mapping[str, str] = {
    name: objective.list_metric
    for name, objective in sorted(OBJECTIVES.items())
    if objective.list_metric is not None
}
"""Objectives that lists have -> their names as metrics of lists (`core.metrics.list_metric_named`)."""


def declaration_of(objective: Objective) -> type[ObjectiveBody]:
    """For the objective of pairs, and the unknown one of an imported model, it is the base class."""
    return OBJECTIVES.get(objective.get("metric", ""), ObjectiveBody)


def check_objective(objective: Objective) -> None:
    """Raise Invalid for an empty or too narrow window, and unless one of `count` and `share` is given."""
    if declaration_of(objective).has("count", "share") and (
        ("count" in objective) == ("share" in objective)
    ):
        got = "both" if "count" in objective else "none"
        raise invalid(
            "/objective", f"objective must have exactly one of count and share, got {got}"
        )
    try:
        check_window(*window_of(objective))
    except InvalidParameter as error:
        pointer, detail = "/objective/fpr_max", str(error)
        if "fpr" in objective:
            least = MIN_WIDTH / (1.0 - TPR_WINDOW_START)
            pointer = "/objective/fpr"
            detail = f"fpr must be from {least:g} to 1, got {objective['fpr']:g}"
        raise Invalid(detail, errors=[{"pointer": pointer, "detail": detail}]) from error


def own_window(objective: Objective) -> Window | None:
    return declaration_of(objective).own_window(objective)


def window_of(objective: Objective) -> Window:
    """Return the window for algorithms with `fpr_min` and `fpr_max`."""
    return own_window(objective) or WHOLE


def metric_of(objective: Objective) -> Metric | None:
    """Return the metric of the top of the list; None for areas and rates."""
    return declaration_of(objective).own_metric(objective)


def list_metric_of(objective: Objective) -> ListMetric:
    """Return the metric of `LIST_METRICS`; a count applies to each list. InvalidParameter: it is out of range."""
    name, count = LIST_METRICS[objective["metric"]], objective.get("count")
    return metrics.list_metric_named(name if count is None else f"{name}@{count}")


def without_count(objective: Objective, rows: int | None) -> Objective:
    """Replace a count by the fraction of `rows` rows; with None, the count applies to each list and stays."""
    if "count" not in objective or rows is None:
        return objective
    share = min(1.0, objective["count"] / rows)
    return {"metric": objective["metric"], "share": share}


def metric_among(objective: Objective, rows: float) -> Metric | None:
    """Return the metric on validation rows of this total weight, which limits a count."""
    if "count" in objective:
        objective = {**objective, "count": min(objective["count"], int(rows))}
    return metric_of(objective)


def value_of(y: ArrayLike, scores: Floats, weight: Floats | None, objective: Objective) -> float:
    """Return the scores' AUC, partial AUC in the window, TPR at the threshold, or metric.

    The threshold is the best one whose FPR is at most the objective's, as in serving: between two thresholds the curve
    has values that no threshold attains.
    """
    if (fpr := target_fpr(objective)) is not None:
        return metrics.operating_point(y, scores, fpr=fpr, sample_weight=weight).tpr.value
    if (metric := metric_of(objective)) is not None:
        return metrics.value_of_metric(metric, y, scores, weight)
    return metrics.partial_auc(y, scores, *window_of(objective), sample_weight=weight)


def target_fpr(objective: Objective) -> float | None:
    """None for objectives without one."""
    return float(objective["fpr"]) if "fpr" in objective else None
