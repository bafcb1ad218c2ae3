"""A ROC plot, described once, and drawn in characters for a terminal.

The service draws the same description as SVG and as a Vega-Lite specification. It needs the standard library only.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

FPR, TPR = "False positive rate", "True positive rate"

Points = Sequence[tuple[float, float]]
"""Points (FPR, TPR) of a curve, neither of which ever falls."""


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
        return (rate - self.low) / (self.high - self.low)

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
    unit = 10.0 ** math.floor(math.log10((high - low) / most))
    step = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit * most >= high - low)
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
class RocPlot:
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


def to_terminal(plot: RocPlot, *, width: int = 48, height: int = 16) -> str:
    """Draw the first curve and the chance diagonal in `height` lines of braille, with axes."""
    columns, rows = width * 2, height * 4
    dots = [[False] * columns for _ in range(rows)]
    # The diagonal is dotted, so that the two lines differ without colour.
    for i in range(0, columns, 6):
        dots[round((1.0 - i / (columns - 1)) * (rows - 1))][i] = True
    for fpr, tpr in _along(plot.lines[0].points, 4 * (rows + columns)):
        row, column = 1.0 - plot.y.fraction(tpr), plot.x.fraction(fpr)
        dots[round(row * (rows - 1))][round(column * (columns - 1))] = True

    text = [plot.title, *(f"  {note}" for note in plot.notes)]
    for row in range(height):
        cells = (chr(_BRAILLE + _cell(dots, row * 4, column * 2)) for column in range(width))
        label = {0: "1.0", height // 2: "0.5", height - 1: "0.0"}.get(row, "")
        text.append(f"{label:>5} ┤{''.join(cells)}")
    text.append(f"{'':>5} └{'─' * width}")
    text.append(f"{'TPR':>5}  0.0{'0.5':^{width - 6}}1.0  FPR")
    return "\n".join(text)


def _along(points: Points, n: int) -> Iterator[tuple[float, float]]:
    """Yield points of a curve in `n` equal steps of FPR + TPR, which grows on a vertical rise, too."""
    way = [fpr + tpr for fpr, tpr in points]
    for step in range(n):
        at = 2.0 * step / (n - 1)
        k = bisect_right(way, at)
        if k == len(way):
            yield points[-1]
            continue
        fraction = (at - way[k - 1]) / (way[k] - way[k - 1])
        (x0, y0), (x1, y1) = points[k - 1], points[k]
        yield x0 + fraction * (x1 - x0), y0 + fraction * (y1 - y0)


def _cell(dots: Sequence[Sequence[bool]], top: int, left: int) -> int:
    return sum(_DOTS[r][c] for r in range(4) for c in range(2) if dots[top + r][left + c])
