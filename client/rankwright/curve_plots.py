"""The plots of a ranking, each described once: whoever has points, or an answer of the service, can draw them.

Points are pairs (x, y) of floats in the order of x. Each function takes the title, the name of the curve and the lines
of text below the title, and returns a plot for `to_terminal`, or for the service's pictures. It needs the standard
library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from rankwright.plot import Axis, Band, Line, Plot, Points

if TYPE_CHECKING:
    from rankwright.types import (
        CalibrationDrift,
        EvaluationCurve,
        ModelCurve,
        Reliability,
    )

Bins = Sequence[tuple[float, float, float]]
"""Bins of a histogram, (lower end, upper end, height), in their order."""


def roc(points: Points, title: str = "ROC curve", name: str = "", **more: Any) -> Plot:
    """Describe the true positive rate by the false positive rate. By chance they are equal."""
    return Plot(title, [Line(name, points)], **more)


def of_curve(found: ModelCurve | EvaluationCurve, title: str, **more: Any) -> Plot:
    """Describe a curve of a list, or the histogram of its scores, as the service answers it."""
    points = [(each.x, each.y) for each in found.points]
    if found.kind == "histogram":
        ends = [(each.x, cast(float, each.high)) for each in found.points]
        negatives = [cast(float, each.negatives) for each in found.points]
        return histogram(
            [(*end, each.y) for end, each in zip(ends, found.points, strict=True)],
            [(*end, height) for end, height in zip(ends, negatives, strict=True)],
            title,
            **more,
        )
    if found.kind == "precision_recall":
        return precision_recall(points, cast(float, found.prevalence), title, **more)
    return (gains if found.kind == "gains" else cost_curve)(points, title, **more)


def of_reliability(found: Reliability | CalibrationDrift, title: str, **more: Any) -> Plot:
    """Describe how good probabilities are, as the service answers it."""
    return reliability(
        [(each.probability, each.observed) for each in found.points],
        [(each.probability, each.consistent_low, each.consistent_high) for each in found.points],
        found.level,
        title,
        **more,
    )


def precision_recall(
    points: Points,
    prevalence: float,
    title: str = "Precision and recall",
    name: str = "",
    **more: Any,
) -> Plot:
    """Describe the precision by the recall. By chance the precision is the prevalence."""
    return Plot(
        title,
        [Line(name, points)],
        labels=("Recall", "Precision"),
        diagonal=f"chance: the prevalence, {prevalence:.4g}",
        chance=[(0.0, prevalence), (1.0, prevalence)],
        **more,
    )


def gains(points: Points, title: str = "Gains", name: str = "", **more: Any) -> Plot:
    """Describe the recall by the share of the list that is worked off, from its top."""
    labels = ("Share of the list", "Recall")
    return Plot(title, [Line(name, points)], labels=labels, **more)


def cost_curve(points: Points, title: str = "Costs", name: str = "", **more: Any) -> Plot:
    """Describe the least expected cost of any cut by the weight of a missed positive (Drummond & Holte 2006)."""
    return Plot(
        title,
        [Line(name, points)],
        labels=("Weight of a missed positive: prevalence and cost", "Expected cost"),
        diagonal="all rows flagged, or none",
        chance=[(0.0, 0.0), (0.5, 0.5), (1.0, 0.0)],
        y=Axis(0.0, 0.5),
        **more,
    )


def cost_of_cuts(
    points: Points, what: str = "Cost of a row", title: str = "Cost", name: str = "", **more: Any
) -> Plot:
    """Describe the mean cost of a row by the share of the list that is flagged, from none to all of it."""
    return Plot(
        title,
        [Line(name, points)],
        labels=("Share of the list", what),
        diagonal="rows flagged at random",
        chance=[points[0], points[-1]],
        y=Axis(0.0, 1.05 * max(y for _, y in points) or 1.0),
        **more,
    )


def reliability(
    points: Points,
    consistent: Sequence[tuple[float, float, float]],
    level: float,
    title: str = "Reliability",
    name: str = "observed fraction of positives",
    **more: Any,
) -> Plot:
    """Describe the fraction of positives by the probability. `consistent` has (probability, low, high): where the
    fraction lies in a fraction `level` of all samples if the probabilities are right.
    """
    return Plot(
        title,
        [Line(name, points)],
        band=Band(f"where it lies if the probabilities are right, {level:.0%}", consistent),
        labels=("Probability", "Fraction of positives"),
        diagonal="right probabilities",
        **more,
    )


def histogram(
    positives: Bins, negatives: Bins, title: str = "Scores of each class", **more: Any
) -> Plot:
    """Describe the fraction of each class in bins of the score, as two outlines."""
    return Plot(
        title,
        [Line("positives", _outline(positives)), Line("negatives", _outline(negatives))],
        x=Axis(positives[0][0], positives[-1][1]),
        y=Axis(0.0, 1.05 * max(height for *_, height in (*positives, *negatives))),
        labels=("Score", "Fraction of the class"),
        chance=(),
        **more,
    )


def _outline(bins: Bins) -> Points:
    top = [point for low, high, height in bins for point in ((low, height), (high, height))]
    return [(bins[0][0], 0.0), *top, (bins[-1][1], 0.0)]
