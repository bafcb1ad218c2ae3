"""A plot of a ranking written as SVG, for reports and the console.

The description of a plot is the client's: the command line draws from it, too. It needs the standard library only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rankwright.plot import (
    FPR,
    TPR,
    Axis,
    Band,
    Line,
    Mark,
    Plot,
    Points,
    Window,
    ticks,
)

from core.explain.svg import escape

__all__ = ["FPR", "TPR", "Axis", "Band", "Line", "Mark", "Plot", "Style", "Window"]
__all__ += ["draw", "ticks"]


@dataclass(frozen=True)
class Style:
    """How a plot looks as SVG: the square it fills, the distances of its words, and the attributes of each part.

    Lengths are in the units of the picture. `attributes` has those of "grid", "tick", "label", "frame", "window",
    "edge", "band", "chance", "line" and "mark"; a part without any is left out. `mark_radius` is that of a dot.
    """

    left: float
    top: float
    side: float
    tick_below: float
    tick_rise: float
    label_below: float
    label_left: float
    labels: tuple[str, str]
    ticks: int
    attributes: Mapping[str, str]
    mark_radius: float = 5.0

    @property
    def right(self) -> float:
        """The right edge of the square."""
        return self.left + self.side

    @property
    def bottom(self) -> float:
        """The lower edge of the square."""
        return self.top + self.side


def draw(plot: Plot, style: Style) -> list[str]:
    """Return the elements of the plot as SVG; whoever asked puts them into a document."""
    return list(_Drawing(plot, style).elements())


class _Drawing:
    """A plot and its style; what is drawn first lies lowest."""

    def __init__(self, plot: Plot, style: Style) -> None:
        self._plot = plot
        self._style = style

    def elements(self) -> Iterator[str]:
        plot, style = self._plot, self._style
        yield from self._grid()
        yield from self._window()
        if plot.band is not None:
            upper = [(fpr, high) for fpr, _, high in plot.band.points]
            lower = [(fpr, low) for fpr, low, _ in reversed(plot.band.points)]
            yield self._path("band", self._through([*upper, *lower]) + "Z", plot.band.name)
        steps = 40 if plot.x.log else 1
        low, high = plot.x.low, plot.x.high
        rates = [
            low * (high / low) ** (n / steps) if plot.x.log else low + (high - low) * n / steps
            for n in range(steps + 1)
        ]
        chance = [(rate, rate) for rate in rates] if plot.chance is None else plot.chance
        if chance:
            yield self._path("chance", self._through(chance))
        for index, line in enumerate(plot.lines):
            drawn = self._path("line", self._through(line.points), line.name)
            yield f'<g class="series-{index % 8}">{drawn}</g>' if len(plot.lines) > 1 else drawn
        for mark in plot.marks:
            tip = f"{mark.name}: FPR {mark.fpr:.4g}, TPR {mark.tpr:.4g}"
            yield self._circle(mark.fpr, mark.tpr, tip)
        if plot.cursor is not None:
            yield from self._cursor(*plot.cursor)
        if frame := style.attributes.get("frame"):
            yield (
                f'<rect x="{style.left:g}" y="{style.top:g}" width="{style.side:g}" '
                f'height="{style.side:g}" {frame}/>'
            )
        across, up = style.labels
        middle_x, middle_y = style.left + style.side / 2, style.top + style.side / 2
        yield self._text("label", middle_x, style.bottom + style.label_below, across, "middle")
        turned = f' transform="rotate(-90 {style.label_left:g} {middle_y:g})"'
        yield self._text("label", style.label_left, middle_y, up, "middle", turned)

    def _x(self, fpr: float) -> float:
        return self._style.left + self._style.side * self._plot.x.fraction(fpr)

    def _y(self, tpr: float) -> float:
        return self._style.bottom - self._style.side * self._plot.y.fraction(tpr)

    def _through(self, points: Points) -> str:
        return "M" + "L".join(f"{self._x(fpr):.2f} {self._y(tpr):.2f}" for fpr, tpr in points)

    def _path(self, part: str, way: str, name: str = "") -> str:
        tip = f"<title>{escape(name)}</title>" if name else ""
        return f'<path d="{way}" {self._style.attributes[part]}>{tip}</path>'

    def _text(self, part: str, x: float, y: float, words: str, anchor: str, more: str = "") -> str:
        attributes = self._style.attributes[part]
        return (
            f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" {attributes}{more}>'
            f"{escape(words)}</text>"
        )

    def _circle(self, fpr: float, tpr: float, tip: str) -> str:
        place = f'cx="{self._x(fpr):.2f}" cy="{self._y(tpr):.2f}" r="{self._style.mark_radius:g}"'
        return f"<circle {place} {self._style.attributes['mark']}><title>{escape(tip)}</title></circle>"

    def _grid(self) -> Iterator[str]:
        plot, style = self._plot, self._style
        for tick in plot.x.ticks(style.ticks):
            x = self._x(tick)
            yield self._path("grid", f"M{x:.2f} {style.top:g}V{style.bottom:g}")
            yield self._text("tick", x, style.bottom + style.tick_below, f"{tick:.6g}", "middle")
        for tick in plot.y.ticks(style.ticks):
            y = self._y(tick)
            yield self._path("grid", f"M{style.left:g} {y:.2f}H{style.right:g}")
            yield self._text("tick", style.left - 7, y + style.tick_rise, f"{tick:g}", "end")

    def _window(self) -> Iterator[str]:
        plot, window = self._plot, self._plot.window
        if window is None:
            return
        ends = [max(window.fpr_min, plot.x.low), max(window.fpr_max, plot.x.low)]
        if ends[1] > ends[0]:
            points = plot.lines[0].points
            inside = [(fpr, tpr) for fpr, tpr in points if ends[0] < fpr < ends[1]]
            first, last = _height_at(points, ends[0], top=True), _height_at(points, ends[1])
            area = [(ends[0], 0.0), (ends[0], first), *inside, (ends[1], last)]
            way = self._through([*area, (ends[1], 0.0)])
            yield self._path("window", way + "Z", window.name)
        for end in dict.fromkeys(ends):
            if plot.x.low < end < plot.x.high:
                x, style = self._x(end), self._style
                yield self._path("edge", f"M{x:.2f} {style.top:g}V{style.bottom:g}")

    def _cursor(self, fpr: float, tpr: float | None) -> Iterator[str]:
        x, style = self._x(fpr), self._style
        y = style.top if tpr is None else self._y(tpr)
        yield f'<line class="cross down" x1="{x:.2f}" y1="{y:.2f}" x2="{x:.2f}" y2="{style.bottom:g}"/>'
        if tpr is None:
            return
        yield f'<line class="cross across" x1="{style.left:g}" y1="{y:.2f}" x2="{x:.2f}" y2="{y:.2f}"/>'
        yield f'<circle class="cut" cx="{x:.2f}" cy="{y:.2f}" r="7"/>'


def _height_at(points: Points, fpr: float, *, top: bool = False) -> float:
    """Return the TPR of a curve at an FPR, between two points on the straight line that joins them.

    Where the curve rises vertically it is the height at the foot of the rise, or at its `top`.
    """
    find = bisect_right if top else bisect_left
    after = find(points, fpr, key=lambda point: point[0])
    if after and points[after - 1][0] == fpr:
        return points[after - 1][1]
    if after == 0 or after == len(points):
        return points[min(after, len(points) - 1)][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (fpr - x0) / (x1 - x0)
