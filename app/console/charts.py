"""Charts as SVG: geometry here, colours by class in console.css, because the pages' policy forbids inline styles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup
from rankwright.plots import Plot, ticks

from app.console.rendering import percent
from app.svg import Square, draw, element, line, path, text

CHARACTER = 7.2
"""Approximate width of a character of an axis label, in units of a chart."""


class Estimate(NamedTuple):
    name: str
    value: float
    low: float
    high: float

    @property
    def hint(self) -> str:
        """The text of the tooltip: name, estimate and interval."""
        return f"{self.name}: {self.value:.4g}, {self.low:.4g} to {self.high:.4g}"


@dataclass(frozen=True)
class Scale:
    """A linear map from values in `low` … `high` to coordinates in `start` … `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Values outside are moved to the nearest end."""
        fraction = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + (self.end - self.start) * min(max(fraction, 0.0), 1.0)

    @classmethod
    def around(
        cls, values: Sequence[float], start: float, end: float, margin: float, least: float = 0.1
    ) -> Scale:
        """The margins are a fraction of the range, or of `least` if all values are equal."""
        low, high = min(values, default=0.0), max(values, default=1.0)
        beside = margin * ((high - low) or least)
        return cls(low - beside, high + beside, start, end)

    def ticks(self, most: int = 5) -> list[float]:
        """Return about `most` or fewer round values."""
        return ticks(self.low, self.high, most)


def picture(
    width: float, height: float, title: str, *parts: Markup, **attributes: object
) -> Markup:
    """Screen readers read the title."""
    return element(
        "svg",
        *parts,
        class_="chart",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=title,
        **attributes,
    )


def forest(estimates: Sequence[Estimate], title: str, *, zero: float | None = None) -> Markup:
    """Draw estimates one below the other; a line at `zero`, if given."""
    left = min(320.0, 12 + CHARACTER * max((len(each.name) for each in estimates), default=0))
    width, row, top = 720.0, 28.0, 8.0
    bottom = top + row * len(estimates)
    values = [value for each in estimates for value in each[1:]] + ([] if zero is None else [zero])
    scale = Scale.around(values, left + 10, width - 10, 0.05, 1.0)
    parts = [_vertical(scale, tick, top, bottom) for tick in scale.ticks()]
    if zero is not None:
        parts.append(line(scale(zero), top, scale(zero), bottom, "zero"))
    longest = int(left / CHARACTER)
    for index, each in enumerate(estimates):
        y = top + row * (index + 0.5)
        parts += [
            text(left, y + 4, _shortened(each.name, longest), "end"),
            line(scale(each.low), y, scale(each.high), y, "whisker"),
            line(scale(each.low), y - 5, scale(each.low), y + 5, "whisker"),
            line(scale(each.high), y - 5, scale(each.high), y + 5, "whisker"),
            _dot(scale(each.value), y, each.hint),
        ]
    return picture(width, bottom + 24, title, *parts)


def in_order(
    estimates: Sequence[Estimate], title: str, *, reference: float | None = None, look: str = "dot"
) -> Markup:
    """Draw estimates from left to right, with a dashed line at `reference`, if given."""
    width, height, left, top, bottom = 720.0, 260.0, 52.0, 10.0, 216.0
    values = [value for each in estimates for value in each[1:]]
    values += [] if reference is None else [reference]
    scale = Scale.around(values, bottom, top, 0.08)
    parts = [_horizontal(scale, tick, left, width - 10) for tick in scale.ticks()]
    if reference is not None:
        parts.append(line(left, scale(reference), width - 10, scale(reference), "chance"))
    step = (width - left - 10) / max(len(estimates), 1)
    places = [(left + step * (index + 0.5), each) for index, each in enumerate(estimates)]
    if len(places) > 1:
        parts.append(path([(x, scale(each.value)) for x, each in places], "line"))
    every = max(1, math.ceil(len(places) * 11 * CHARACTER / (width - left)))
    for index, (x, each) in enumerate(places):
        parts += [
            line(x, scale(each.low), x, scale(each.high), "whisker"),
            _dot(x, scale(each.value), each.hint, look=look),
        ]
        if index % every == 0:
            parts.append(text(x, bottom + 20, each.name[:10], "middle"))
    return picture(width, height, title, *parts)


class Dated(NamedTuple):
    """An estimate of the rows of a period. `start` and `end` are months since January 1970."""

    start: int
    end: int
    estimate: Estimate


def by_date(
    series: Sequence[Sequence[Dated]], title: str, *, reference: float | None = None
) -> Markup:
    """Draw series over the time of their rows, joined, with a dashed line at `reference`, if given."""
    width, height, left, top, bottom = 720.0, 260.0, 52.0, 10.0, 216.0
    points = [each for one in series for each in one]
    values = [value for each in points for value in each.estimate[1:]]
    y = Scale.around([*values, *([] if reference is None else [reference])], bottom, top, 0.08)
    first, last = min(each.start for each in points), max(each.end for each in points)
    x = Scale(first, last, left + 4, width - 14)
    parts = [_horizontal(y, tick, left, width - 10) for tick in y.ticks()]
    if reference is not None:
        parts.append(line(left, y(reference), width - 10, y(reference), "chance"))
    every = next((each for each in (1, 3, 6, 12, 24, 60, 120) if (last - first) / each <= 8), 240)
    for month in range(-(-first // every) * every, last + 1, every):
        name = f"{1970 + month // 12}" + ("" if every >= 12 else f"-{month % 12 + 1:02d}")
        parts.append(text(x(month), bottom + 20, name, "middle"))
        parts.append(line(x(month), bottom, x(month), bottom + 5, "zero"))
    for one in series:
        places = [(x((each.start + each.end) / 2), each) for each in one]
        if len(places) > 1:
            parts.append(path([(at, y(each.estimate.value)) for at, each in places], "line"))
        for at, each in places:
            low, value, high = each.estimate.low, each.estimate.value, each.estimate.high
            if each.end - each.start > 1:  # the width of the period
                parts.append(line(x(each.start), y(value), x(each.end), y(value), "whisker"))
            parts += [
                line(at, y(low), at, y(high), "whisker"),
                _dot(at, y(value), each.estimate.hint),
            ]
    return picture(width, height, title, *parts)


class Compared(NamedTuple):
    """A period: its name, its estimate if there is one, and the estimate that it is compared with."""

    name: str
    estimate: Estimate | None
    reference: Estimate | None
    alarm: bool


def over_periods(periods: Sequence[Compared], title: str) -> Markup:
    """Draw the estimates of periods; behind them the references, as a dashed line and a band of their intervals."""
    width, height, left, top, bottom = 720.0, 260.0, 58.0, 10.0, 216.0
    shown = [each for one in periods for each in (one.estimate, one.reference) if each is not None]
    y = Scale.around([value for each in shown for value in each[1:]], bottom, top, 0.08)
    step = (width - left - 10) / max(len(periods), 1)
    bands: list[Markup] = []
    parts = [_horizontal(y, tick, left, width - 10) for tick in y.ticks()]
    run: list[tuple[float, float]] = []
    every = max(1, math.ceil(len(periods) * 11 * CHARACTER / (width - left)))
    for index, each in enumerate(periods):
        start, x = left + step * index, left + step * (index + 0.5)
        if (against := each.reference) is not None:
            low, high = y(against.low), y(against.high)
            ends = [(start, low), (start + step, low), (start + step, high), (start, high)]
            bands += [
                path(ends, "band"),
                line(start, y(against.value), start + step, y(against.value), "chance"),
            ]
        if (found := each.estimate) is None:
            parts.append(path(run, "line") if len(run) > 1 else Markup(""))
            run = []
        else:
            run.append((x, y(found.value)))
        if index % every == 0:
            parts.append(text(x, bottom + 20, each.name[:10], "middle"))
    parts.append(path(run, "line") if len(run) > 1 else Markup(""))
    for index, each in enumerate(periods):
        if (found := each.estimate) is not None:
            x = left + step * (index + 0.5)
            if found.low < found.high:
                parts.append(line(x, y(found.low), x, y(found.high), "whisker"))
            hint = f"{found.hint}, alarm" if each.alarm else found.hint
            parts.append(_dot(x, y(found.value), hint, look="dot changed" if each.alarm else "dot"))
    return picture(width, height, title, *bands, *parts)


class Benefit(NamedTuple):
    """The net benefit at a threshold with its limits, and that of acting on every row."""

    threshold: float
    value: float
    low: float
    high: float
    flag_all: float


def decision_curve(points: Sequence[Benefit], title: str) -> Markup:
    """Draw the net benefit over the thresholds with a band of its intervals, beside acting on all rows and on none."""
    width, height, left, top, bottom = 720.0, 340.0, 64.0, 12.0, 290.0
    most = max(*(each.high for each in points), *(each.flag_all for each in points), 1e-9)
    x = Scale(0.0, max(each.threshold for each in points), left, width - 14)
    y = Scale(-0.25 * most, 1.05 * most, bottom, top)
    parts = [_horizontal(y, tick, left, width - 14) for tick in y.ticks()]
    parts += [_vertical(x, tick, top, bottom) for tick in x.ticks(10)]
    upper = [(x(each.threshold), y(each.high)) for each in points]
    lower = [(x(each.threshold), y(each.low)) for each in reversed(points)]
    shown = [each for each in points if each.flag_all >= y.low]
    parts += [
        path([*upper, *lower], "band"),
        line(left, y(0.0), width - 14, y(0.0), "zero"),
        path([(x(each.threshold), y(each.flag_all)) for each in shown], "chance"),
        path([(x(each.threshold), y(each.value)) for each in points], "line"),
    ]
    for each in points:
        ends = f"{each.low:.4g} to {each.high:.4g}"
        hint = f"at {percent(each.threshold, 0)}: {each.value:.4g}, {ends}; all rows {each.flag_all:.4g}"
        parts.append(_dot(x(each.threshold), y(each.value), hint, 3))
    parts.append(text((left + width) / 2, bottom + 40, "threshold probability", "middle"))
    return picture(width, height, title, *parts)


def steps(points: Sequence[tuple[float, float]], title: str) -> Markup:
    """Draw a value that changes in steps: pairs of ascending times (seconds since the start) and values."""
    width, height, left, top, bottom = 720.0, 220.0, 60.0, 10.0, 160.0
    end = max(points[-1][0], 1.0)
    unit, words = next(
        (each for each in ((3600.0, "hours"), (60.0, "minutes")) if end >= 2 * each[0]),
        (1.0, "seconds"),
    )
    values = [value for _, value in points]
    x = Scale(0.0, end / unit, left, width - 10)
    y = Scale.around(values, bottom, top, 0.08)
    parts = [_horizontal(y, tick, left, width - 10) for tick in y.ticks()]
    parts += [_vertical(x, tick, top, bottom) for tick in x.ticks()]
    parts.append(text((left + width) / 2, bottom + 42, f"{words} since the start", "middle"))
    run = [(x(points[0][0] / unit), y(values[0]))]
    for (seconds, value), before in zip(points[1:], values, strict=False):
        run += [(x(seconds / unit), y(before)), (x(seconds / unit), y(value))]
    parts.append(path(run, "line"))
    for index, (seconds, value) in enumerate(points):
        if index and value == values[index - 1]:
            continue
        parts.append(_dot(x(seconds / unit), y(value), f"{value:.4f} after {seconds:.0f} s", 4))
    return picture(width, height, title, *parts)


def _dot(x: float, y: float, hint: str, r: int = 5, look: str = "dot") -> Markup:
    return element("circle", element("title", hint), cx=x, cy=y, r=r, class_=look)


def _bar(
    start: float, end: float, y: float, height: float, look: str, hint: str = "", least: float = 1.0
) -> Markup:
    """Draw from x `start` to x `end`, in either order, at least `least` wide."""
    tip = (element("title", hint),) if hint else ()
    wide = max(abs(end - start), least)
    return element("rect", *tip, x=min(start, end), y=y, width=wide, height=height, class_=look)


def _shortened(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _vertical(x: Scale, tick: float, top: float, bottom: float, words: str = "") -> Markup:
    """Draw the grid line of a tick, with its number or `words` below."""
    at = x(tick)
    return line(at, top, at, bottom, "grid-line") + text(
        at, bottom + 18, words or f"{tick:g}", "middle"
    )


def _horizontal(y: Scale, tick: float, left: float, right: float, words: str = "") -> Markup:
    """Draw the grid line of a tick, with its number or `words` to the left."""
    at = y(tick)
    return line(left, at, right, at, "grid-line") + text(
        left - 6, at + 4, words or f"{tick:g}", "end"
    )


def columns(counts: Sequence[float], title: str) -> Markup:
    width, height = 6.0 * len(counts), 32.0
    scale = Scale(0, max(counts, default=1) or 1, 0, height - 2)
    heights = [scale(value) + (1 if value else 0) for value in counts]
    bars = "".join(
        f"M{6 * index + 0.5:g} {height:g}v{-tall:.1f}h5v{tall:.1f}"
        for index, tall in enumerate(heights)
        if tall
    )
    return picture(width, height, title, element("path", d=bars, class_="bar"))


def placed(value: float, low: float, high: float, title: str, *, middle: float = 0.5) -> Markup:
    """Draw an estimate and its interval on a small line from 0 to 1, with a mark in the middle."""
    scale = Scale(0, 1, 4, 116)
    return picture(
        120,
        20,
        title,
        line(scale(0), 10, scale(1), 10, "axis"),
        line(scale(middle), 3, scale(middle), 17, "axis"),
        line(scale(low), 10, scale(high), 10, "whisker"),
        element("circle", cx=scale(value), cy=10, r=3, class_="dot"),
    )


def square(
    plot: Plot, size: float = 440.0, metrics: tuple[str, str | None] | None = None
) -> Markup:
    """Draw the curves of a plot. Data attributes give the script the positions of the axes, to move the cursor.

    `metrics` are the metrics of a cutoff on the x axis and on the y axis, for the same script. There is none on the y
    axis if the cursor is a vertical line.
    """
    place = Square(left=58, top=12, side=size - 70)
    edges = {"left": place.left, "right": place.right, "top": place.top, "bottom": place.bottom}
    hints = {f"data-{name}": f"{value:g}" for name, value in edges.items()}
    if metrics is not None:
        ranges = {"x-low": plot.x.low, "x-high": plot.x.high, "y-low": plot.y.low}
        hints |= {f"data-{name}": repr(end) for name, end in ranges.items()}
        hints |= {"data-y-high": repr(plot.y.high), "data-x": metrics[0]}
        hints |= {} if metrics[1] is None else {"data-y": metrics[1]}
    if plot.x.log:
        hints["data-decades"] = f"{math.log10(plot.x.low):.0f}"
    return picture(size, size, plot.title, draw(plot, place), **hints)


def bars(
    values: Sequence[tuple[str, float]],
    title: str,
    write: Callable[[float], str] = "{:.3g}".format,
    width: float = 720.0,
) -> Markup:
    """Negative bars go to the left."""
    longest = max((len(name) for name, _ in values), default=0)
    left = min(0.42 * width, 12 + CHARACTER * longest)
    row, top = 24.0, 4.0
    low = min(0.0, min((value for _, value in values), default=0.0))
    high = max(0.0, max((value for _, value in values), default=0.0))
    room = min(11 * CHARACTER, 0.15 * width)  # width of a number next to its bar
    scale = Scale(low, high, left + 8 + (room if low < 0 else 0), width - room)
    most = int(left / CHARACTER)
    parts = []
    for index, (name, value) in enumerate(values):
        y, end, zero = top + row * index, scale(value), scale(0.0)
        look, at, anchor = ("bar less", end - 6, "end") if value < 0 else ("bar", end + 6, "start")
        parts += [
            text(left, y + row / 2 + 4, _shortened(name, most), "end"),
            _bar(zero, end, y + 4, row - 8, look, f"{name}: {write(value)}"),
            text(at, y + row / 2 + 4, write(value), anchor),
        ]
    bottom = top + row * len(values)
    parts.append(line(scale(0.0), top, scale(0.0), bottom, "zero"))
    return picture(width, bottom + 4, title, *parts)


def dependence(
    places: Sequence[tuple[float | str, float]],
    title: str,
    name: str,
    spell: Callable[[float], str] | None = None,
) -> Markup:
    """Draw mean scores by a feature's values: a line for numbers (by `spell`), points for categories."""
    width, height, left, top, bottom = 720.0, 310.0, 60.0, 26.0, 250.0
    scores = [score for _, score in places]
    y = Scale.around(scores, bottom, top, 0.08)
    parts = [_horizontal(y, tick, left, width - 10) for tick in y.ticks(8)]
    numbers = [value for value, _ in places if not isinstance(value, str)]
    words = [(word, score) for word, score in places if isinstance(word, str)]
    beside = (width - left - 10) * (0.12 if words else 0.0) if numbers else width - left - 10
    end = width - 10 - beside if numbers else left
    if numbers:
        x = Scale(min(numbers), max(numbers), left + 10, end - 10)
        # Round numbers are not round dates, so dates have their ticks at values of the grid.
        ticks = x.ticks() if spell is None else numbers[:: math.ceil(len(numbers) / 6)]
        for tick in ticks:
            parts.append(_vertical(x, tick, top, bottom, spell(tick) if spell else ""))
        run = [(x(value), y(score)) for value, score in places if not isinstance(value, str)]
        parts.append(path(run, "line"))
        parts += [element("circle", cx=at, cy=up, r=3, class_="dot") for at, up in run]
    step = beside / max(len(words), 1)
    most = max(3, int(step / CHARACTER))
    for index, (word, score) in enumerate(words):
        at = end + step * (index + 0.5)
        parts.append(_dot(at, y(score), f"{word}: {score:.4g}"))
        if index % max(1, math.ceil(4 * CHARACTER / step)) == 0:
            parts.append(text(at, bottom + 18, _shortened(word, most), "middle"))
    parts.append(text((left + width) / 2, bottom + 42, name, "middle"))
    parts.append(text(left, top - 12, "mean score", "start"))
    return picture(width, height, title, *parts)


def histogram(
    edges: Sequence[float], counts: Sequence[int], title: str, *, cutoff: float | None = None
) -> Markup:
    """Draw equal bins between `edges`; a line marks the cutoff, or the nearest end."""
    width, height, left, top, bottom = 720.0, 240.0, 56.0, 22.0, 206.0
    values = Scale(edges[0], edges[-1], left, width - 14)
    numbers = Scale(0.0, float(max(counts)), bottom, top)
    parts = [
        _horizontal(numbers, tick, left, width - 14, f"{tick:,.0f}")
        for tick in numbers.ticks(4)
        if tick == int(tick)
    ]
    for low, high, n in zip(edges, edges[1:], counts, strict=False):
        if n:
            hint = f"{n:,} from {low:.6g} to {high:.6g}"
            y, tall = min(numbers(n), bottom - 1.5), max(bottom - numbers(n), 1.5)
            parts.append(_bar(values(low) + 0.5, values(high) - 0.5, y, tall, "bar", hint))
    for tick in values.ticks(8):
        parts.append(text(values(tick), bottom + 18, f"{tick:g}", "middle"))
    parts.append(line(left, bottom, width - 14, bottom, "axis"))
    if cutoff is not None:
        x = values(cutoff)
        anchor = "end" if x > width - 120 else "start"
        parts += [
            line(x, top - 8, x, bottom, "cross"),
            text(x + (-6 if anchor == "end" else 6), top - 8, f"cutoff {cutoff:.4g}", anchor),
        ]
    return picture(width, height, title, *parts)


def step_function(ends: Sequence[float], heights: Sequence[float], title: str) -> Markup:
    """Draw the heights up to each of the ends, and above the last one."""
    width, height, left, top, bottom = 360.0, 180.0, 46.0, 8.0, 148.0
    x = Scale.around(ends, left, width - 8, 0.08, 1.0)
    least, most = min(0.0, *heights), max(0.0, *heights)
    y = Scale(least - 0.05 * (most - least), most + 0.05 * (most - least), bottom, top)
    parts = [_horizontal(y, tick, left, width - 8) for tick in y.ticks(4)]
    # Around a single end, ticks of the axis would be numbers that mean nothing.
    ticks = x.ticks(4) if len(set(ends)) > 1 else ends[:1]
    parts += [_vertical(x, tick, top, bottom) for tick in ticks]
    parts.append(line(left, y(0.0), width - 8, y(0.0), "zero"))
    places = [x.low, *ends, x.high]
    run = [
        (x(at), y(value))
        for value, ends_of in zip(heights, pairwise(places), strict=True)
        for at in ends_of
    ]
    parts.append(path(run, "line"))
    return picture(width, height, title, *parts)


class Weighed(NamedTuple):
    """A column of the scatter plot: its part of the importance, and the PSI of its values."""

    name: str
    importance: float
    psi: float
    changed: bool


def scatter(
    columns: Sequence[Weighed], title: str, bands: tuple[float, float], most_named: int = 8
) -> Markup:
    """Draw the drift of columns (PSI) against their importance; lines mark the bands, labels the largest products."""
    width, height, left, top, bottom = 560.0, 320.0, 62.0, 24.0, 262.0
    x = Scale(0.0, max(0.05, *(each.psi for each in columns), 1.2 * bands[1]), left, width - 14)
    y = Scale(0.0, 1.08 * max(0.01, *(each.importance for each in columns)), bottom, top)
    if x.high > 2.0:  # one far column would push all others together
        x = Scale(0.0, 2.0, left, width - 14)
    parts = [_vertical(x, tick, top, bottom) for tick in x.ticks()]
    parts += [_horizontal(y, tick, left, width - 14, f"{100 * tick:.3g} %") for tick in y.ticks(4)]
    parts += [line(x(band), top, x(band), bottom, "cross") for band in bands]
    ranked = sorted(columns, key=lambda each: each.psi * each.importance, reverse=True)
    named = {each.name for each in ranked[:most_named] if each.changed}
    for each in columns:
        at, up = x(each.psi), y(each.importance)
        hint = f"{each.name}: PSI {each.psi:.3g}, {100 * each.importance:.3g} % of the importance"
        look = "dot changed" if each.changed else "dot"
        parts.append(_dot(at, up, hint, 5, look))
        if each.name in named:
            side = ("end", -9) if at > width - 130 else ("start", 9)
            parts.append(text(at + side[1], up + 4, _shortened(each.name, 20), side[0]))
    most = ", at most 2" if x.high == 2.0 else ""
    parts.append(text((left + width) / 2, bottom + 42, f"PSI{most}", "middle"))
    parts.append(text(left, top - 8, "importance", "start"))
    return picture(width, height, title, *parts)


class Bin(NamedTuple):
    """A bin of values, and the fractions of the rows that it contained then and contains now."""

    name: str
    before: float
    after: float


def then_and_now(bins: Sequence[Bin], title: str) -> Markup:
    """Draw two bars for each bin: the fraction of the rows then, above, and now, below."""
    width, row, left = 460.0, 24.0, 170.0
    scale = Scale(0.0, max((max(each[1:]) for each in bins), default=1.0), left, width - 56)
    parts = []
    for index, each in enumerate(bins):
        y = row * index
        parts.append(text(left - 6, y + 15, _shortened(each.name, 22), "end"))
        for share, down, look in ((each.before, 2.0, "bar then"), (each.after, 11.0, "bar")):
            hint = f"{each.name}: {100 * share:.3g} %"
            parts.append(_bar(left, scale(share), y + down, 8, look, hint, least=0.5))
        end = max(scale(each.before), scale(each.after)) + 6
        parts.append(text(end, y + 15, f"{100 * each.after:.3g} %", "start"))
    return picture(width, row * len(bins) + 4, title, *parts)


def part_bar(part: float, greatest: float) -> Markup:
    """Draw a part of a score to the right of a middle line; a negative one to the left."""
    width, height = 120.0, 14.0
    scale = Scale(-greatest, greatest, 2.0, width - 2.0)
    middle, end = scale(0.0), scale(part)
    bar = _bar(middle, end, 2.0, height - 4, "bar less" if part < 0 else "bar")
    axis = line(middle, 0.0, middle, height, "zero")
    box = f"0 0 {width:g} {height:g}"
    return element("svg", bar, axis, class_="chart part", viewBox=box, aria_hidden="true")
