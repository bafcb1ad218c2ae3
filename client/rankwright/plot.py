"""A plot of a ranking, described once, and drawn in characters for a terminal. `curve_plots` describes each kind.

The service draws the same description as SVG. It needs the standard library only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

FPR, TPR = "False positive rate", "True positive rate"

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
    diagonal: str = "chance"
    chance: Points | None = None

    def legend(self) -> list[tuple[str, str]]:
        """Return the kind and the name of each thing that is drawn."""
        found = [("line", line.name) for line in self.lines]
        found += [("window", self.window.name)] if self.window else []
        found += [("band", self.band.name)] if self.band else []
        found += [("mark", self.marks_name)] if self.marks else []
        return [*found, ("chance", self.diagonal)] if self.chance != () else found


_BRAILLE = 0x2800
# The bit of each dot in a braille cell of 4 rows × 2 columns (Unicode 16, §21.1).
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def to_terminal(plot: Plot, *, width: int = 48, height: int = 16) -> str:
    """Draw the curves in `height` lines of `width` braille characters, with axes, and name what differs.

    The first curve is a whole line, others are dashed, and what chance does is dotted: there is no colour. Bands,
    windows and marks are left out. What lies beyond an axis is drawn at its end.

    Examples
    --------
    >>> print(to_terminal(Plot("Two rows", [Line("", [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0)])]), width=12, height=3))
    Two rows
    True positive rate
          1 ┤⡏⠉⠉⠉⠉⠉⠉⠉⠉⠍⠉⠉
        0.5 ┤⡇⠀⠀⠀⠀⠀⠂⠀⠀⠀⠀⠀
          0 ┤⡇⠀⠀⠁⠀⠀⠀⠀⠀⠀⠀⠀
            └────────────
             0   0.5    1
             False positive rate; dotted: chance
    """
    dots = [[False] * (2 * width) for _ in range(4 * height)]
    ends = [(end, end) for end in (plot.x.low, plot.x.high)]
    chance = ends if plot.chance is None else plot.chance
    lines = [(chance, (1, 6)), *((line.points, (4, 8)) for line in plot.lines[1:])]
    for points, (on, of) in [*lines, *((line.points, (1, 1)) for line in plot.lines[:1])]:
        for step, (row, column) in enumerate(_dots_along(plot, points, dots)):
            if step % of < on:
                dots[row][column] = True
    text = [plot.title, *(f"  {note}" for note in plot.notes), plot.labels[1]]
    shown = {0: plot.y.at(1.0), height // 2: plot.y.at(0.5), height - 1: plot.y.at(0.0)}
    for row in range(height):
        cells = (chr(_BRAILLE + _cell(dots, row * 4, column * 2)) for column in range(width))
        label = f"{shown[row]:.3g}" if row in shown else ""
        text.append(f"{label:>7} ┤{''.join(cells)}")
    low, middle, high = (f"{plot.x.at(fraction):.3g}" for fraction in (0.0, 0.5, 1.0))
    text.append(f"{'':>7} └{'─' * width}")
    text.append(f"{'':>9}{low}{middle:^{width - len(low) - len(high)}}{high}")
    names = [line.name for line in plot.lines]
    keys = [f"line: {names[0]}"] if len(names) > 1 else []
    keys += [f"dashed: {name}" for name in names[1:]]
    keys += [f"dotted: {plot.diagonal}"] if chance else []
    text.append(f"{'':>9}" + "; ".join([plot.labels[0], *keys]))
    return "\n".join(text)


def _dots_along(
    plot: Plot, points: Points, dots: Sequence[Sequence[bool]]
) -> Iterator[tuple[int, int]]:
    """Yield the dots, by row and column, that the straight lines through the points pass."""
    bottom, right = len(dots) - 1, len(dots[0]) - 1
    places = [
        (bottom * (1.0 - _inside(plot.y.fraction(y))), right * _inside(plot.x.fraction(x)))
        for x, y in points
    ]
    for (row, column), (to_row, to_column) in pairwise(places):
        steps = math.ceil(max(abs(to_row - row), abs(to_column - column))) or 1
        for step in range(steps):
            part = step / steps
            yield round(row + part * (to_row - row)), round(column + part * (to_column - column))
    if places:
        yield round(places[-1][0]), round(places[-1][1])


def _inside(fraction: float) -> float:
    return min(max(fraction, 0.0), 1.0)


def _cell(dots: Sequence[Sequence[bool]], top: int, left: int) -> int:
    return sum(_DOTS[r][c] for r in range(4) for c in range(2) if dots[top + r][left + c])
