"""Plots of a ranking, as data: axes, ticks, lines, bands, marks and their names.

`to_terminal` (`rankwright.terminal_plot`) draws a plot in characters; the service draws it as SVG. Each function below
describes one kind of plot: it takes the points, the title, the name of the curve and the lines of text below the
title. It needs the standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from rankwright.types import (
        CalibrationDrift,
        EvaluationCurve,
        ModelCurve,
        Reliability,
    )

FPR, TPR = "False positive rate (FPR)", "True positive rate (TPR)"

Points = Sequence[tuple[float, float]]
"""Points (x, y) of a curve in the order of x; of a ROC curve, FPR and TPR."""


@dataclass(frozen=True)
class Axis:
    """The range of rates that is shown. On a logarithmic axis, rates below `low` are drawn at `low`."""

    low: float = 0.0
    high: float = 1.0
    log: bool = False

    def fraction(self, rate: float) -> float:
        """Return the position of a rate: 0.0 at `low`, 1.0 at `high`."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(rate, self.low)) - low) / (high - low)
        # By halves, for the difference of two finite scores may be infinite.
        return (0.5 * rate - 0.5 * self.low) / (0.5 * self.high - 0.5 * self.low)

    def at(self, fraction: float) -> float:
        """Return the rate at a position: the inverse of `fraction`."""
        if self.log:
            return float(self.low * (self.high / self.low) ** fraction)
        return (1.0 - fraction) * self.low + fraction * self.high

    def ticks(self, most: int) -> list[float]:
        """Return round rates, or powers of ten on a logarithmic axis."""
        if self.log:
            powers = range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)
            return [10.0**power for power in powers]
        return ticks(self.low, self.high, most)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return the multiples of 1, 2 or 5 times a power of ten from `low` to `high`: about `most` or fewer."""
    if not high > low:
        return [low]
    half = 0.5 * high - 0.5 * low  # the whole may be infinite
    unit = 10.0 ** math.floor(math.log10(half / most * 2.0))
    step = unit * next(factor for factor in (1, 2, 5, 10) if 0.5 * factor * unit * most >= half)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


@dataclass(frozen=True)
class Line:
    """A curve and its name."""

    name: str
    points: Points


@dataclass(frozen=True)
class Band:
    """A confidence band: its points are (FPR, lower TPR, upper TPR)."""

    name: str
    points: Sequence[tuple[float, float, float]]


@dataclass(frozen=True)
class Window:
    """A range of FPRs. The area under the first curve is shaded there; a window without width is a vertical line."""

    name: str
    fpr_min: float
    fpr_max: float


@dataclass(frozen=True)
class Mark:
    """A point that is marked by a dot. `threshold` is its cut; None flags nothing."""

    name: str
    fpr: float
    tpr: float
    threshold: float | None = None


@dataclass(frozen=True)
class Plot:
    """What is drawn: curves over the diagonal of chance, and what is known of the first one.

    `notes` are lines of text below the title, `marks_name` is the name of all marks together, and `cursor` is the
    point that a reader can move, or with None in place of its height an upright line. `labels` name the axes, and
    `diagonal` the diagonal, or the line `chance` that is drawn in its place, if it has points: not every plot is of a
    ROC curve.
    """

    title: str
    lines: Sequence[Line]
    notes: Sequence[str] = ()
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    window: Window | None = None
    band: Band | None = None
    marks: Sequence[Mark] = ()
    marks_name: str = ""
    cursor: tuple[float, float | None] | None = None
    labels: tuple[str, str] = (FPR, TPR)
    diagonal: str = "random"
    chance: Points | None = None

    def legend(self) -> list[tuple[str, str]]:
        """Return the kind and the name of each thing that is drawn."""
        found = [("line", line.name) for line in self.lines]
        found += [("window", self.window.name)] if self.window else []
        found += [("band", self.band.name)] if self.band else []
        found += [("dot", self.marks_name)] if self.marks else []
        return [*found, ("chance", self.diagonal)] if self.chance != () else found


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
        diagonal=f"random (prevalence {prevalence:.4g})",
        chance=[(0.0, prevalence), (1.0, prevalence)],
        **more,
    )


def gains(points: Points, title: str = "Gains", name: str = "", **more: Any) -> Plot:
    """Describe the recall by the share of the list that is worked off, from its top."""
    labels = ("Fraction of the list", "Recall")
    return Plot(title, [Line(name, points)], labels=labels, **more)


def cost_curve(points: Points, title: str = "Costs", name: str = "", **more: Any) -> Plot:
    """Describe the least expected cost of any cut by the weight of a missed positive (Drummond & Holte 2006)."""
    return Plot(
        title,
        [Line(name, points)],
        labels=("Weight of a false negative (prevalence and cost)", "Expected cost"),
        diagonal="flag all rows or none",
        chance=[(0.0, 0.0), (0.5, 0.5), (1.0, 0.0)],
        y=Axis(0.0, 0.5),
        **more,
    )


def cost_of_cutoffs(
    points: Points, what: str = "Cost per row", title: str = "Cost", name: str = "", **more: Any
) -> Plot:
    """Describe the mean cost of a row by the share of the list that is flagged, from none to all of it."""
    return Plot(
        title,
        [Line(name, points)],
        labels=("Fraction of the list", what),
        diagonal="random",
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
        band=Band(f"{100.0 * level:.0f} % consistency band", consistent),
        labels=("Probability", "Fraction of positives"),
        diagonal="perfect calibration",
        **more,
    )


def histogram(
    positives: Bins, negatives: Bins, title: str = "Scores by class", **more: Any
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
