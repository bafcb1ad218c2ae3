"""A ROC curve as a picture: what is drawn, as SVG, as PNG, and as a Vega-Lite specification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from app.models import service as models
from app.models.objectives import target_fpr, window_of
from app.models.service import PartCurve
from core.explain import svg

if TYPE_CHECKING:
    from core.metrics import Interval, OperatingPoint, RocBand, RocCurve
    from core.metrics.bands import BandKind

Kind = Literal["roc", "pauc"]
Floats = npt.NDArray[np.float64]

MARKED_FPRS = (0.01, 0.05, 0.1)
MAX_POINTS = 600
BAND_POINTS = 301
_BESIDE = 1.6  # a window is shown with so much of the curve, in widths of its own


@dataclass(frozen=True)
class Window:
    """A window of false positive rates, the partial AUC there, and its interval if it has one."""

    fpr_min: float
    fpr_max: float
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PointMark:
    """The best operating point with at most this false positive rate, drawn as a dot."""

    rate: float
    point: OperatingPoint


@dataclass(frozen=True, eq=False)
class CurvePlot:
    """A ROC curve, or the part of it around a window.

    `view` is the range of false positive rates that is shown: `fpr` and `tpr` end there, and so does `band`. True
    positive rates are shown from 0 to `top`.
    """

    title: str
    note: str
    view: tuple[float, float]
    top: float
    fpr: Floats
    tpr: Floats
    band: RocBand | None
    window: Window | None
    auc: Interval
    marks: tuple[PointMark, ...]


def plot_of(
    curve_part: PartCurve, metrics: Mapping[str, Any], kind: Kind, band: BandKind | None
) -> CurvePlot:
    """Prepare the picture of a model's curve. `metrics` are those of the same part."""
    from core.metrics import Interval, roc_band_on_curve

    curve, totals, level = curve_part.curve, curve_part.totals, curve_part.level
    window = _window_shown(metrics["pauc"], curve_part.model.objective)
    view = (0.0, 1.0)
    if kind == "pauc" and window is not None:
        view = _around(window)
    fpr, tpr = _within(curve.thin(MAX_POINTS) if view == (0.0, 1.0) else curve, view)
    limits = None
    if band is not None:
        rates = np.linspace(*view, BAND_POINTS)
        limits = roc_band_on_curve(curve, totals, rates, kind=band, level=level)
    rows = rows_of(curve_part.model.validation, curve_part.part)
    return CurvePlot(
        title=f"{'ROC' if kind == 'roc' else 'Partial ROC'} of {curve_part.model.name}:{curve_part.model.version}",
        note=f"on {rows} rows: {metrics['positives']:,} positive, {metrics['negatives']:,} negative",
        view=view,
        top=1.0 if kind == "roc" else _top(max(view[1], *(tpr if limits is None else limits.high))),
        fpr=fpr,
        tpr=tpr,
        band=limits,
        window=window,
        auc=Interval(**metrics["auc"]),
        marks=tuple(_marks(curve_part, view)),
    )


def rows_of(validation: Mapping[str, Any], part: str) -> str:
    """The rows of a part, in words."""
    if part != models.VALIDATION:
        return "its own training"
    return "out-of-fold" if validation["method"] == "cross_validation" else "held-out"


def _top(height: float) -> float:
    """The next round number."""
    return next(top for top in (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0) if height <= top)


def _window_shown(
    windows: Sequence[Mapping[str, Any]], objective: Mapping[str, Any]
) -> Window | None:
    """The window of the objective, else the first one measured."""
    own = window_of(objective)
    shown = next((w for w in windows if (w["fpr_min"], w["fpr_max"]) == own), None)
    shown = shown or next(iter(windows), None)
    if shown is None:
        return None
    return Window(**{field.name: shown[field.name] for field in fields(Window)})


def _around(window: Window) -> tuple[float, float]:
    """The window with a margin on both sides."""
    beside = (window.fpr_max - window.fpr_min) * (_BESIDE - 1.0)
    start = window.fpr_min - beside
    if start < beside:  # so near to 0 that the corner may as well be seen
        start = 0.0
    return round(start, 12), round(min(1.0, window.fpr_max + beside), 12)


def _within(curve: RocCurve, view: tuple[float, float]) -> tuple[Floats, Floats]:
    """The part of the curve that is shown, thinned to what a picture can show."""
    low, high = view
    first = int(np.searchsorted(curve.fpr, low, side="left"))
    last = int(np.searchsorted(curve.fpr, high, side="right"))
    inside = np.arange(first, last)
    if inside.size > MAX_POINTS:
        way = (curve.fpr[inside] - low) / (high - low) + curve.tpr[inside]
        steps = np.linspace(way[0], way[-1], MAX_POINTS)
        inside = inside[np.unique(np.searchsorted(way, steps))]
    ends = curve.tpr_at([low, high])
    fpr = np.concatenate(([low], curve.fpr[inside], [high]))
    start = ends[0] if low > 0.0 else 0.0
    return fpr, np.concatenate(([start], curve.tpr[inside], [ends[1]]))


def _marks(curve_part: PartCurve, view: tuple[float, float]) -> list[PointMark]:
    """The operating point of the objective, else the best ones at a few rates; only those in view."""
    from core.metrics import operating_point_on_curve

    target = target_fpr(curve_part.model.objective)
    rates = MARKED_FPRS if target is None else (target,)
    marks = []
    for rate in rates:
        point = operating_point_on_curve(
            curve_part.curve, curve_part.totals, fpr=rate, level=curve_part.level
        )
        if view[0] <= point.fpr.value <= view[1] and view[0] < rate <= view[1]:
            marks.append(PointMark(rate, point))
    return marks


CURVE, SHADE, EDGE, CUT = "#0b6bcb", "#f2b705", "#b58900", "#b2182b"
AREA, BAND = 0.32, 0.13  # how opaque the area and the band are

_WIDTH = 640
_LEFT, _TOP, _SIDE = 74, 84, 530  # of the square that the curve is in
_LINE = 26  # from one line of the legend to the next


def to_svg(plot: CurvePlot) -> str:
    """Draw the curve, its band, window and operating points, and the diagonal of chance. The legend is below."""
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
                *_svg_marks(plot),
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
    """The area under the curve within the window."""
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


def _svg_marks(plot: CurvePlot) -> list[str]:
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
    """A line for each thing drawn: its sign and its name."""
    from core.metrics import Interval

    lines = [
        (
            f'<path d="M0 0h26" stroke="{CURVE}" stroke-width="2.5"/>',
            f"AUC {interval_text(plot.auc)}",
        ),
    ]
    if plot.window is not None:
        window = plot.window
        area = f"{window.value:.4f}"
        if window.low is not None and window.high is not None:
            area = interval_text(Interval(window.value, window.low, window.high))
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


def interval_text(interval: Interval) -> str:
    """A value with its interval, as text."""
    return f"{interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]"


SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Json = dict[str, Any]


def to_vega(plot: CurvePlot) -> Json:
    """The plot as a Vega-Lite specification: a layer each for window, band, chance, curve and operating points."""
    layers: list[Json] = []
    if plot.window is not None:
        layers.append(_vega_window(plot))
    if plot.band is not None:
        layers.append(_vega_band(plot))
    ends = [{"fpr": end, "tpr": end} for end in plot.view]
    layers.append(
        _layer(
            ends,
            {"type": "line", "clip": True, "color": svg.FAINT, "strokeDash": [5, 5]},
            _vega_axes(plot),
        )
    )
    points = [
        {"place": place, "fpr": fpr, "tpr": tpr}
        for place, (fpr, tpr) in enumerate(zip(plot.fpr.tolist(), plot.tpr.tolist(), strict=True))
    ]
    # Without an order of its own the line is drawn along FPR alone, and vertical steps come out shuffled.
    order = {"order": {"field": "place", "type": "quantitative"}}
    layers.append(
        _layer(
            points, {"type": "line", "color": CURVE, "strokeWidth": 2.5}, _vega_axes(plot) | order
        )
    )
    if plot.marks:
        layers.append(_vega_marks(plot))
    return {
        "$schema": SCHEMA,
        "title": {"text": plot.title, "subtitle": [plot.note, f"AUC {interval_text(plot.auc)}"]},
        "width": 500,
        "height": 500,
        "layer": layers,
    }


def _layer(values: list[Json], mark: Json, encoding: Json) -> Json:
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}


def _vega_axes(plot: CurvePlot) -> Json:
    return {
        "x": {
            "field": "fpr",
            "type": "quantitative",
            "title": "False positive rate",
            "scale": {"domain": list(plot.view), "nice": False},
        },
        "y": {
            "field": "tpr",
            "type": "quantitative",
            "title": "True positive rate",
            "scale": {"domain": [0, plot.top]},
        },
    }


def _vega_window(plot: CurvePlot) -> Json:
    assert plot.window is not None
    window = plot.window
    value = {
        "fpr": window.fpr_min,
        "fpr_max": window.fpr_max,
        "partial_auc": window.value,
        "low": window.low,
        "high": window.high,
    }
    encoding = {
        "x": _vega_axes(plot)["x"],
        "x2": {"field": "fpr_max"},
        "tooltip": [
            {"field": name, "type": "quantitative"} for name in ("partial_auc", "low", "high")
        ],
    }
    return _layer([value], {"type": "rect", "color": SHADE, "opacity": AREA}, encoding)


def _vega_band(plot: CurvePlot) -> Json:
    assert plot.band is not None
    band = plot.band
    values = [
        {"fpr": fpr, "tpr": low, "high": high}
        for fpr, low, high in zip(
            band.fpr.tolist(), band.low.tolist(), band.high.tolist(), strict=True
        )
    ]
    encoding = _vega_axes(plot) | {"y2": {"field": "high"}}
    return _layer(values, {"type": "area", "clip": True, "color": CURVE, "opacity": BAND}, encoding)


def _vega_marks(plot: CurvePlot) -> Json:
    values = [
        {
            "cut": f"FPR ≤ {mark.rate:g}",
            "fpr": mark.point.fpr.value,
            "tpr": mark.point.tpr.value,
            "threshold": mark.point.threshold if mark.point.threshold < float("inf") else None,
        }
        for mark in plot.marks
    ]
    mark = {
        "type": "point",
        "filled": True,
        "opacity": 1,
        "size": 80,
        "fill": "white",
        "stroke": CUT,
        "strokeWidth": 2.5,
    }
    tips = [{"field": "cut", "type": "nominal"}] + [
        {"field": name, "type": "quantitative"} for name in ("fpr", "tpr", "threshold")
    ]
    return _layer(values, mark, _vega_axes(plot) | {"tooltip": tips})


FONTS = [Path(__file__).parent / "fonts" / f"Roboto-{name}.ttf" for name in ("Regular", "Medium")]


def to_png(svg: str, width: int) -> bytes:
    """Render an SVG picture at this width in pixels. FileNotFoundError without its fonts: text would be left out."""
    import resvg_py

    for font in FONTS:
        if not font.is_file():
            raise FileNotFoundError(f"the font {font} is missing")
    return resvg_py.svg_to_bytes(
        svg_string=svg,
        width=width,
        skip_system_fonts=True,
        font_files=[str(font) for font in FONTS],
        font_family="Roboto",
        sans_serif_family="Roboto",
        background="#ffffff",
    )


__all__ = [
    "CurvePlot",
    "Kind",
    "interval_text",
    "plot_of",
    "rows_of",
    "to_png",
    "to_svg",
    "to_vega",
]
