"""SVG elements, and the drawing of a plot with them: for reports, pictures and pages.

The look is set by attributes, because a picture is a separate file. A page's style sheet overrides them by class.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape
from rankwright.plots import Mark, Plot, Points

from app import svg_parts as svg

_CURVE, _CUT = "#0b6bcb", "#b2182b"
# Colours of several curves, in their order.
_SERIES = (
    *("#0b5cad", "#b3430a", "#1c7a3d", "#8a2b8f"),
    *("#8a6500", "#b0204f", "#12716f", "#55606b"),
)
_LOOK: dict[str, dict[str, object]] = {
    "grid-line": {"stroke": svg.LINE, "fill": "none"},
    "tick": {"font-size": 14, "fill": svg.SOFT},
    "label": {"font-size": 16, "fill": svg.INK},
    "axis": {"fill": "none", "stroke": svg.SOFT},
    "window": {"fill": "#f2b705", "fill-opacity": 0.32},
    "objective": {"stroke": "#b58900", "stroke-width": 1.2, "stroke-dasharray": "4 3"},
    "band": {"fill": _CURVE, "fill-opacity": 0.13},
    "chance": {
        "stroke": svg.FAINT,
        "stroke-width": 1.5,
        "stroke-dasharray": "5 5",
        "fill": "none",
    },
    "line": {"stroke": _CURVE, "stroke-width": 2.5, "stroke-linejoin": "round", "fill": "none"},
    "dot": {"fill": "#ffffff", "stroke": _CUT, "stroke-width": 2.5},
}
"""How the parts of a plot look, by class."""
_TICKS = 7  # at most, about
_ROW = 26  # from one line of the legend to the next


def element(tag: str, *children: str | Markup, **attributes: object) -> Markup:
    """Escape attributes and text. `class_` and `text_anchor` lose their underscore."""
    # Put together as plain text: `Markup.format` takes four times as long, and a page may have thousands of elements.
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_written(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(map(_escape, children))
    return Markup(f"<{tag}{given}>{inside}</{tag}>")  # noqa: S704  # all parts are escaped


def _written(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else _escape(str(value))


def _escape(words: str) -> str:
    return words if isinstance(words, Markup) else escape(svg.replace_unprintable(words))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind)


def text(x: float, y: float, words: str, anchor: str = "start", **attributes: object) -> Markup:
    return element("text", words, x=float(x), y=float(y), text_anchor=anchor, **attributes)


def path(points: Points, kind: str) -> Markup:
    return element("path", d=_through(points), class_=kind)


def _through(points: Points) -> str:
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points)


@dataclass(frozen=True)
class Square:
    """The square in which a plot is drawn. Tick labels and axis names are to the left of it and below it."""

    left: float
    top: float
    side: float

    @property
    def right(self) -> float:
        return self.left + self.side

    @property
    def bottom(self) -> float:
        return self.top + self.side


def draw(plot: Plot, square: Square) -> Markup:
    return Markup("").join(_Drawing(plot, square).elements())


def draw_picture(plot: Plot) -> str:
    """Draw title and notes, the plot, and the legend below it."""
    square = Square(left=74, top=84, side=530)
    legend_top = square.bottom + 74
    note = ", ".join(plot.notes)
    colours = iter(_line_looks(plot))
    legend = [
        element(
            "g",
            _sign(kind, next(colours) if kind == "line" else _LOOK[kind]),
            text(38, 5.5, words, font_size=15.5, fill=svg.INK),
            transform=f"translate({square.left:g} {legend_top + _ROW * i:g})",
        )
        for i, (kind, words) in enumerate(plot.legend())
    ]
    parts = [
        svg.start(640, legend_top + _ROW * len(legend), f"{plot.title}, {note}"),
        svg.text(square.left, 36, plot.title, size=21, weight=600),
        svg.text(square.left, 62, note, size=15, colour=svg.SOFT),
        *_Drawing(plot, square).elements(),
        *legend,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _line_looks(plot: Plot) -> list[dict[str, object]]:
    if len(plot.lines) == 1:
        return [_LOOK["line"]]
    return [_LOOK["line"] | {"stroke": _SERIES[i % len(_SERIES)]} for i, _ in enumerate(plot.lines)]


def _sign(kind: str, look: dict[str, object]) -> Markup:
    """Return the symbol in the legend."""
    if kind == "dot":
        return element("circle", cx=13, cy=0, r=5, **look)
    if kind in {"window", "band"}:
        return element("rect", x=0, y=-7, width=26, height=14, **look)
    return element("path", d="M0 0h26", **look)


class _Drawing:
    """Later elements cover earlier ones."""

    def __init__(self, plot: Plot, square: Square) -> None:
        self._plot = plot
        self._square = square

    def elements(self) -> Iterator[Markup]:
        """Yield elements from back to front."""
        plot, square = self._plot, self._square
        yield from self._grid()
        yield from self._window()
        if plot.band is not None:
            upper = [(fpr, high) for fpr, _, high in plot.band.points]
            lower = [(fpr, low) for fpr, low, _ in reversed(plot.band.points)]
            yield self._area("band", [*upper, *lower], plot.band.name)
        if chance := self._chance():
            yield _part("path", "chance", d=self._way(chance))
        for index, (curve, look) in enumerate(zip(plot.lines, _line_looks(plot), strict=True)):
            drawn = element(
                "path", _tip(curve.name), class_="line", d=self._way(curve.points), **look
            )
            # A page's style sheet has other colours in the dark.
            yield element("g", drawn, class_=f"series-{index % 8}") if plot.lines[1:] else drawn
        yield from map(self._mark, plot.marks)
        if plot.cursor is not None:
            yield from self._cursor(*plot.cursor)
        place = {"x": square.left, "y": square.top, "width": square.side, "height": square.side}
        yield _part("rect", "axis", **place)
        across, up = plot.labels
        middle, left = square.top + square.side / 2, square.left - 48
        yield text(
            square.left + square.side / 2, square.bottom + 46, across, "middle", **_LOOK["label"]
        )
        turned = f"rotate(-90 {left:g} {middle:g})"
        yield text(left, middle, up, "middle", transform=turned, **_LOOK["label"])

    def _x(self, fpr: float) -> float:
        return self._square.left + self._square.side * self._plot.x.fraction(fpr)

    def _y(self, tpr: float) -> float:
        return self._square.bottom - self._square.side * self._plot.y.fraction(tpr)

    def _way(self, points: Points) -> str:
        return _through([(self._x(fpr), self._y(tpr)) for fpr, tpr in points])

    def _area(self, kind: str, points: Points, name: str) -> Markup:
        return _part("path", kind, _tip(name), d=f"{self._way(points)}Z")

    def _mark(self, mark: Mark) -> Markup:
        tip = _tip(f"{mark.name}: FPR {mark.fpr:.4g}, TPR {mark.tpr:.4g}")
        return _part("circle", "dot", tip, cx=self._x(mark.fpr), cy=self._y(mark.tpr), r=5)

    def _chance(self) -> Points:
        """The diagonal is a curve on a logarithmic axis."""
        x = self._plot.x
        if self._plot.chance is not None:
            return self._plot.chance
        steps = 40 if x.log else 1
        return [(rate, rate) for rate in (x.at(n / steps) for n in range(steps + 1))]

    def _grid(self) -> Iterator[Markup]:
        plot, square = self._plot, self._square
        for tick in plot.x.ticks(_TICKS):
            x = self._x(tick)
            yield _part("path", "grid-line", d=f"M{x:.2f} {square.top:g}V{square.bottom:g}")
            yield text(x, square.bottom + 20, f"{tick:.6g}", "middle", **_LOOK["tick"])
        for tick in plot.y.ticks(_TICKS):
            y = self._y(tick)
            yield _part("path", "grid-line", d=f"M{square.left:g} {y:.2f}H{square.right:g}")
            yield text(square.left - 7, y + 5, f"{tick:g}", "end", **_LOOK["tick"])

    def _window(self) -> Iterator[Markup]:
        """Yield the area under the curve, and limits."""
        plot, window, square = self._plot, self._plot.window, self._square
        if window is None:
            return
        ends = [max(window.fpr_min, plot.x.low), max(window.fpr_max, plot.x.low)]
        if ends[1] > ends[0]:
            points = plot.lines[0].points
            inside = [(fpr, tpr) for fpr, tpr in points if ends[0] < fpr < ends[1]]
            first, last = _height_at(points, ends[0], top=True), _height_at(points, ends[1])
            area = [(ends[0], 0.0), (ends[0], first), *inside, (ends[1], last), (ends[1], 0.0)]
            yield self._area("window", area, window.name)
        for end in dict.fromkeys(ends):
            if plot.x.low < end < plot.x.high:
                x = self._x(end)
                yield _part("path", "objective", d=f"M{x:.2f} {square.top:g}V{square.bottom:g}")

    def _cursor(self, fpr: float, tpr: float | None) -> Iterator[Markup]:
        """Without a TPR it is only a vertical line."""
        square, x = self._square, self._x(fpr)
        y = square.top if tpr is None else self._y(tpr)
        yield line(x, y, x, square.bottom, "cross down")
        if tpr is not None:
            yield line(square.left, y, x, y, "cross across")
            yield element("circle", class_="cutoff", cx=x, cy=y, r=7)


def _part(tag: str, kind: str, *children: Markup, **attributes: object) -> Markup:
    return element(tag, *children, class_=kind, **attributes, **_LOOK[kind])


def _tip(name: str) -> Markup:
    return element("title", name) if name else Markup("")


def _height_at(points: Points, fpr: float, *, top: bool = False) -> float:
    """Return the TPR at an FPR, interpolated linearly; on a vertical rise, at its foot or `top`."""
    find = bisect_right if top else bisect_left
    after = find(points, fpr, key=lambda point: point[0])
    if after and points[after - 1][0] == fpr:
        return points[after - 1][1]
    if after == 0 or after == len(points):
        return points[min(after, len(points) - 1)][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (fpr - x0) / (x1 - x0)
