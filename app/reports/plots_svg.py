"""A ROC curve as a self-contained SVG picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from app.reports.plots import CurvePlot, Floats
from core import svg

if TYPE_CHECKING:
    from core.metrics import Interval


CURVE, SHADE, EDGE, CUT = "#0b6bcb", "#f2b705", "#b58900", "#b2182b"
AREA, BAND = 0.32, 0.13  # how opaque the area and the band are

_WIDTH = 640
_LEFT, _TOP, _SIDE = 74, 84, 530  # of the square that the curve is in
_LINE = 26  # from one line of the legend to the next


def to_svg(plot: CurvePlot) -> str:
    """Draw the curve with its band, its window, its cuts and the diagonal of chance; the legend is below."""
    legend = _legend(plot)
    height = _TOP + _SIDE + 74 + _LINE * len(legend)
    return (
        "\n".join(
            [
                svg.start(_WIDTH, height, f"{plot.title}, {plot.note}"),
                svg.text(_LEFT, 36, plot.title, size=21, weight=600),
                svg.text(_LEFT, 62, plot.note, size=15, colour=svg.SOFT),
                *_grid(plot),
                *_window(plot),
                *_band(plot),
                *_lines(plot),
                *_marks(plot),
                *_axes(plot),
                *legend,
                "</svg>",
            ]
        )
        + "\n"
    )


def _place(plot: CurvePlot, fpr: float, tpr: float) -> tuple[float, float]:
    low, high = plot.view
    return _LEFT + _SIDE * (fpr - low) / (high - low), _TOP + _SIDE * (1.0 - tpr / plot.top)


def _path(plot: CurvePlot, fpr: Floats, tpr: Floats) -> str:
    points = (_place(plot, x, y) for x, y in zip(fpr.tolist(), tpr.tolist(), strict=True))
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points)


def _ticks(low: float, high: float) -> list[float]:
    """Four to eight round numbers."""
    rough = (high - low) / 7.0
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= rough)
    first = int(np.ceil(low / step - 1e-9))
    return [step * k for k in range(first, int(np.floor(high / step + 1e-9)) + 1)]


def _grid(plot: CurvePlot) -> list[str]:
    right, bottom = _LEFT + _SIDE, _TOP + _SIDE
    lines = []
    for tick in _ticks(*plot.view):
        x, _ = _place(plot, tick, 0.0)
        lines.append(f'<path d="M{x:.2f} {_TOP}V{bottom}" stroke="{svg.LINE}" fill="none"/>')
        lines.append(
            svg.text(x, bottom + 21, f"{tick:g}", size=14, colour=svg.SOFT, anchor="middle")
        )
    for tick in _ticks(0.0, plot.top):
        _, y = _place(plot, plot.view[0], tick)
        lines.append(f'<path d="M{_LEFT} {y:.2f}H{right}" stroke="{svg.LINE}" fill="none"/>')
        lines.append(
            svg.text(_LEFT - 8, y + 5, f"{tick:g}", size=14, colour=svg.SOFT, anchor="end")
        )
    return lines


def _window(plot: CurvePlot) -> list[str]:
    """The area that is measured, between the ends of its window."""
    window = plot.window
    if window is None:
        return []
    ends = [window.fpr_min, window.fpr_max]
    inside = (plot.fpr > window.fpr_min) & (plot.fpr < window.fpr_max)
    heights = np.interp(ends, plot.fpr, plot.tpr)
    fpr = np.concatenate((ends[:1], ends[:1], plot.fpr[inside], ends[1:], ends[1:]))
    tpr = np.concatenate(([0.0], heights[:1], plot.tpr[inside], heights[1:], [0.0]))
    tip = f"partial AUC on FPR {window.fpr_min:g} to {window.fpr_max:g}"
    edges = [
        f'<path d="M{x:.2f} {_TOP}V{_TOP + _SIDE}" stroke="{EDGE}" stroke-width="1.2" '
        'stroke-dasharray="2 4" fill="none"/>'
        for end in ends
        for x, _ in [_place(plot, end, 0.0)]
        if plot.view[0] < end < plot.view[1]
    ]
    return [
        f'<path d="{_path(plot, fpr, tpr)}Z" fill="{SHADE}" fill-opacity="{AREA}">'
        f"<title>{tip}</title></path>",
        *edges,
    ]


def _band(plot: CurvePlot) -> list[str]:
    band = plot.band
    if band is None:
        return []
    fpr = np.concatenate((band.fpr, band.fpr[::-1]))
    tpr = np.concatenate((band.low, band.high[::-1]))
    return [
        f'<path d="{_path(plot, fpr, tpr)}Z" fill="{CURVE}" fill-opacity="{BAND}" stroke="{CURVE}" '
        'stroke-opacity="0.35"/>'
    ]


def _lines(plot: CurvePlot) -> list[str]:
    ends = np.array(plot.view)
    return [
        f'<path d="{_path(plot, ends, ends)}" stroke="{svg.FAINT}" stroke-width="1.5" '
        'stroke-dasharray="5 5" fill="none"/>',
        f'<path d="{_path(plot, plot.fpr, plot.tpr)}" stroke="{CURVE}" stroke-width="2.5" '
        'stroke-linejoin="round" fill="none"/>',
    ]


def _marks(plot: CurvePlot) -> list[str]:
    dots = []
    for mark in plot.marks:
        x, y = _place(plot, mark.point.fpr.value, mark.point.tpr.value)
        tip = f"FPR ≤ {mark.rate:g}: FPR {mark.point.fpr.value:.4g}, TPR {mark.point.tpr.value:.4g}"
        dots.append(
            f'<circle cx="{x:.2f}" cy="{y:.2f}" r="5" fill="#ffffff" stroke="{CUT}" '
            f'stroke-width="2.5"><title>{svg.escape(tip)}</title></circle>'
        )
    return dots


def _axes(plot: CurvePlot) -> list[str]:
    middle = _TOP + _SIDE / 2
    return [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" '
        f'stroke="{svg.SOFT}"/>',
        svg.text(
            _LEFT + _SIDE / 2, _TOP + _SIDE + 48, "False positive rate", size=16, anchor="middle"
        ),
        f'<g transform="translate(26 {middle}) rotate(-90)">'
        f"{svg.text(0, 0, 'True positive rate', size=16, anchor='middle')}</g>",
    ]


def _legend(plot: CurvePlot) -> list[str]:
    """A line each: what it looks like, and what it is."""
    from core.metrics import Interval

    lines = [
        (f'<path d="M0 0h26" stroke="{CURVE}" stroke-width="2.5"/>', f"AUC {say(plot.auc)}"),
    ]
    if plot.window is not None:
        window = plot.window
        area = f"{window.value:.4f}"
        if window.low is not None and window.high is not None:
            area = say(Interval(window.value, window.low, window.high))
        words = f"partial AUC {area} on FPR {window.fpr_min:g} to {window.fpr_max:g}"
        lines.append((_swatch(SHADE, AREA), words))
    if plot.band is not None:
        of = "of each height" if plot.band.kind == "pointwise" else "of the whole curve"
        lines.append((_swatch(CURVE, BAND), f"{plot.band.level:.0%} confidence band, {of}"))
    if plot.marks:
        dot = f'<circle cx="13" cy="0" r="5" fill="#ffffff" stroke="{CUT}" stroke-width="2.5"/>'
        lines.append(
            (dot, f"best cut with FPR ≤ {_join([f'{mark.rate:g}' for mark in plot.marks])}")
        )
    dashes = f'<path d="M0 0h26" stroke="{svg.FAINT}" stroke-width="1.5" stroke-dasharray="5 5"/>'
    lines.append((dashes, "chance"))
    below = _TOP + _SIDE + 74
    return [
        f'<g transform="translate({_LEFT} {below + _LINE * i})">{sign}'
        f"{svg.text(38, 5.5, words, size=15.5)}</g>"
        for i, (sign, words) in enumerate(lines)
    ]


def _swatch(colour: str, opacity: float) -> str:
    return f'<rect x="0" y="-7" width="26" height="14" fill="{colour}" fill-opacity="{opacity}"/>'


def _join(words: list[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def say(interval: Interval) -> str:
    """A figure with its interval, in words."""
    return f"{interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]"
