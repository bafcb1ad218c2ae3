"""A ROC curve as a Vega-Lite specification with its data inside, for notebooks and dashboards."""

from __future__ import annotations

from typing import Any

from app.reports.plots import CurvePlot
from app.reports.plots_svg import AREA, BAND, CURVE, CUT, SHADE, say
from core import svg

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"

Json = dict[str, Any]


def to_vega(plot: CurvePlot) -> Json:
    """Layers for the window, the band, the diagonal of chance, the curve and the cuts."""
    layers: list[Json] = []
    if plot.window is not None:
        layers.append(_window(plot))
    if plot.band is not None:
        layers.append(_band(plot))
    ends = [{"fpr": end, "tpr": end} for end in plot.view]
    layers.append(
        _layer(
            ends,
            {"type": "line", "clip": True, "color": svg.FAINT, "strokeDash": [5, 5]},
            _axes(plot),
        )
    )
    points = [
        {"place": place, "fpr": fpr, "tpr": tpr}
        for place, (fpr, tpr) in enumerate(zip(plot.fpr.tolist(), plot.tpr.tolist(), strict=True))
    ]
    # Without an order of its own the line is drawn along FPR alone, and vertical steps come out shuffled.
    order = {"order": {"field": "place", "type": "quantitative"}}
    layers.append(
        _layer(points, {"type": "line", "color": CURVE, "strokeWidth": 2.5}, _axes(plot) | order)
    )
    if plot.marks:
        layers.append(_marks(plot))
    return {
        "$schema": SCHEMA,
        "title": {"text": plot.title, "subtitle": [plot.note, f"AUC {say(plot.auc)}"]},
        "width": 500,
        "height": 500,
        "layer": layers,
    }


def _layer(values: list[Json], mark: Json, encoding: Json) -> Json:
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}


def _axes(plot: CurvePlot) -> Json:
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


def _window(plot: CurvePlot) -> Json:
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
        "x": _axes(plot)["x"],
        "x2": {"field": "fpr_max"},
        "tooltip": [
            {"field": name, "type": "quantitative"} for name in ("partial_auc", "low", "high")
        ],
    }
    return _layer([value], {"type": "rect", "color": SHADE, "opacity": AREA}, encoding)


def _band(plot: CurvePlot) -> Json:
    assert plot.band is not None
    band = plot.band
    values = [
        {"fpr": fpr, "tpr": low, "high": high}
        for fpr, low, high in zip(
            band.fpr.tolist(), band.low.tolist(), band.high.tolist(), strict=True
        )
    ]
    encoding = _axes(plot) | {"y2": {"field": "high"}}
    return _layer(values, {"type": "area", "clip": True, "color": CURVE, "opacity": BAND}, encoding)


def _marks(plot: CurvePlot) -> Json:
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
    return _layer(values, mark, _axes(plot) | {"tooltip": tips})
