"""Objectives: what a job aims at, and the window of false positive rates that its algorithm is trained for.

A size of the top of the list is a share of the rows, or a count of the validation rows. A part of the rows, such as
that by which a search chooses, has fewer rows: there a count becomes the same share (`without_count`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

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
    "auc": "auc",
    "average_precision": "map",
    "ndcg": "ndcg",
    "precision": "precision",
}
"""Metrics of an objective that lists have -> their names as figures of lists (`core.metrics.list_metric_named`)."""

TPR_WINDOW_START = 0.5
"""Start of the window that trains the TPR at a rate, as a fraction of that rate.

The TPR at one rate is a partial AUC on a window of no width, which learns badly; Narasimhan & Agarwal (§8.3) train on a
wider one that ends at the rate. See docs/papers.md for the two that were compared.
"""


def check_objective(objective: Objective) -> None:
    """Raise Invalid for an objective whose window is empty, or too narrow to be one, or whose size has two names."""
    if objective["metric"] == "precision" and ("count" in objective) == ("share" in objective):
        got = "both" if "count" in objective else "none"
        raise invalid(
            "/objective", f"objective must have exactly one of count and share, got {got}"
        )
    try:
        check_window(*window_of(objective))
    except InvalidParameter as error:
        pointer, detail = "/objective/fpr_max", str(error)
        if objective["metric"] == "tpr":
            least = MIN_WIDTH / (1.0 - TPR_WINDOW_START)
            pointer = "/objective/fpr"
            detail = f"fpr must be from {least:g} to 1, got {objective['fpr']:g}"
        raise Invalid(detail, errors=[{"pointer": pointer, "detail": detail}]) from error


def window_of(objective: Objective) -> Window:
    """Return the window of false positive rates: the `fpr_min` and `fpr_max` of algorithms that have them."""
    match objective["metric"]:
        case "pauc":
            return float(objective["fpr_min"]), float(objective["fpr_max"])
        case "tpr":
            fpr = float(objective["fpr"])
            return TPR_WINDOW_START * fpr, fpr
    return WHOLE


def metric_of(objective: Objective) -> Metric | None:
    """Return the figure of the top of the list that the objective names; None for areas and rates."""
    match objective["metric"]:
        case "average_precision":
            return metrics.AveragePrecision()
        case "precision":
            return metrics.PrecisionAt(objective.get("count"), objective.get("share"))
        case "lift":
            return metrics.Lift(share=objective["share"])
        case "precision_at_recall":
            return metrics.PrecisionAtRecall(objective["recall"])
        case "ndcg":
            return metrics.Ndcg(objective.get("count"), objective.get("share"))
    return None


def list_metric_of(objective: Objective) -> ListMetric:
    """Return the figure of lists that the objective names, one of `LIST_METRICS`; a count is of each list.

    Raises InvalidParameter for a count that is out of range.
    """
    name, count = LIST_METRICS[objective["metric"]], objective.get("count")
    return metrics.list_metric_named(name if count is None else f"{name}@{count}")


def without_count(objective: Objective, rows: int | None) -> Objective:
    """Return the objective with the share that its count is of these rows; unchanged if it has none, or if `rows` is
    None: then the count is of each list.
    """
    if "count" not in objective or rows is None:
        return objective
    share = min(1.0, objective["count"] / rows)
    return {"metric": objective["metric"], "share": share}


def metric_among(objective: Objective, rows: float) -> Metric | None:
    """Return the figure of the objective on validation rows of this total weight: a count is at most all of them."""
    if "count" in objective:
        objective = {**objective, "count": min(objective["count"], int(rows))}
    return metric_of(objective)


def value_of(y: ArrayLike, scores: Floats, weight: Floats | None, objective: Objective) -> float:
    """Return the value of scores by the objective: AUC, partial AUC in its window, TPR at its threshold, or figure.

    The threshold is the best one whose FPR is at most that of the objective, as a model is served with: between two
    thresholds the curve has heights that none reaches.
    """
    if objective["metric"] == "tpr":
        fpr = float(objective["fpr"])
        return metrics.operating_point(y, scores, fpr=fpr, sample_weight=weight).tpr.value
    if (metric := metric_of(objective)) is not None:
        return metrics.value_of_metric(metric, y, scores, weight)
    return metrics.partial_auc(y, scores, *window_of(objective), sample_weight=weight)


def target_fpr(objective: Objective) -> float | None:
    """Return the false positive rate that the objective `tpr` names; None for other objectives."""
    return float(objective["fpr"]) if objective["metric"] == "tpr" else None
