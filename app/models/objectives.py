"""Objectives: what a job aims at, and the window of false positive rates that algorithms are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from app.platform.errors import Invalid
from core.errors import InvalidParameter
from core.metrics.window import MIN_WIDTH, check_window

if TYPE_CHECKING:
    from core.base.ranker import Floats


Window = tuple[float, float]

WHOLE: Window = (0.0, 1.0)

TPR_WINDOW_START = 0.5
"""Of the false positive rate asked for: where the window begins by which its TPR is trained.

The TPR at one rate is a partial AUC on a window of no width, which learns badly; Narasimhan & Agarwal (§8.3) train on a
wider one that ends at the rate. See docs/papers.md for the two that were compared.
"""


def check_objective(objective: Mapping[str, Any]) -> None:
    """Raise Invalid for an objective whose window is empty, or too narrow to be one."""
    try:
        check_window(*window_of(objective))
    except InvalidParameter as error:
        pointer, detail = "/objective/fpr_max", str(error)
        if objective["metric"] == "tpr":
            least = MIN_WIDTH / (1.0 - TPR_WINDOW_START)
            pointer = "/objective/fpr"
            detail = f"fpr must be from {least:g} to 1, got {objective['fpr']:g}"
        raise Invalid(detail, errors=[{"pointer": pointer, "detail": detail}]) from error


def window_of(objective: Mapping[str, Any]) -> Window:
    """The window that fills `fpr_min` and `fpr_max` of the algorithms that have them."""
    match objective["metric"]:
        case "pauc":
            return float(objective["fpr_min"]), float(objective["fpr_max"])
        case "tpr":
            fpr = float(objective["fpr"])
            return TPR_WINDOW_START * fpr, fpr
    return WHOLE


def value_of(y: Any, scores: Floats, weight: Floats | None, objective: Mapping[str, Any]) -> float:
    """What scores are worth by the objective: their AUC, the partial AUC in its window, or the TPR of its cut.

    That cut is the best one of at most its FPR, as a model is served with: between two cuts the curve has heights
    that none reaches.
    """
    from core.metrics import operating_point, partial_auc

    if objective["metric"] == "tpr":
        fpr = float(objective["fpr"])
        return operating_point(y, scores, fpr=fpr, sample_weight=weight).tpr.value
    return partial_auc(y, scores, *window_of(objective), sample_weight=weight)


def target_fpr(objective: Mapping[str, Any]) -> float | None:
    """The false positive rate at which the model is to be cut; None where there is none."""
    return float(objective["fpr"]) if objective["metric"] == "tpr" else None
