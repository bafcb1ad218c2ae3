"""Pictures of every curve there may be: finite, well-formed, within their frame, and true to the curve."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rankwright.plots import Plot

from app.models.curves import PartCurve
from app.models.service import VALIDATION
from app.platform.tables import Model
from app.reports.plots import plot_of, reliability_plot
from app.svg import draw_picture
from core.metrics import summarise

WINDOWS = [(0.0, 0.05), (0.4, 0.4 + 1e-6), (0.2, 0.9), (0.0, 1.0)]
SVG = "{http://www.w3.org/2000/svg}"


def evaluated(
    y: Any, scores: Any, window: tuple[float, float], metric: str = "pauc"
) -> tuple[PartCurve, dict[str, Any]]:
    """A curve as a model has it, and its metrics."""
    summary = summarise(y, scores, windows=[(0.0, 0.05), window])
    objective: dict[str, Any] = {"metric": "pauc", "fpr_min": window[0], "fpr_max": window[1]}
    if metric == "tpr":
        objective = {"metric": "tpr", "fpr": window[1]}
    model = Model(name="m", version=1, objective=objective, validation={"method": "holdout"})
    ends = ("value", "low", "high")
    metrics = {
        "auc": dict(zip(ends, summary.auc, strict=True)),
        "pauc": [
            {"fpr_min": area.fpr_min, "fpr_max": area.fpr_max}
            | dict(zip(ends, area.interval, strict=True))
            for area in summary.partial_aucs
        ],
        "positives": summary.positives,
        "negatives": summary.negatives,
    }
    rows = (summary.positives, summary.negatives)
    curve = PartCurve(model, VALIDATION, summary.curve, summary.totals, summary.level, rows)
    return curve, metrics


def test_the_gains_chart_is_the_recall_by_the_share_of_the_list() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [50, 150])
    plot = plot_of(*evaluated(y, rng.normal(size=200) + y, (0.0, 0.1)), "gains", "pointwise")
    shares, recalls = np.array(plot.lines[0].points).T
    assert (shares[0], recalls[0], shares[-1], recalls[-1]) == (0.0, 0.0, 1.0, 1.0)
    # twice the area above the diagonal is the accuracy ratio, over the fraction of negatives
    fpr = (shares - 0.25 * recalls) / 0.75
    area = np.trapezoid(recalls, fpr)
    assert 2 * (np.trapezoid(recalls, shares) - 0.5) / 0.75 == pytest.approx(2 * area - 1)
    drawn = draw_picture(plot)
    assert "Fraction of the list" in drawn
    assert "False positive rate" not in drawn


def test_the_histogram_and_the_reliability_are_drawn() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [50, 150])
    plot = plot_of(*evaluated(y, rng.normal(size=200) + y, (0.0, 0.1)), "histogram", None)
    for line in plot.lines:
        points = np.array(line.points)
        widths = np.diff(points[1:-1:2, 0], append=points[-1, 0])
        assert points[1:-1:2, 1].sum() == pytest.approx(1.0)  # all rows of the class are in a bin
        assert widths.min() > 0
    drawn = draw_picture(plot)
    assert "positives" in drawn
    assert "Fraction of the class" in drawn
    places = ("probability", "observed", "consistent_low", "consistent_high")
    record: Any = {
        "points": [
            dict(zip(places, (p, p / 2, p - 0.1, p + 0.1), strict=True)) for p in (0.2, 0.6)
        ],
        "level": 0.95,
        "n": 200,
        "n_positives": 50,
    }
    model = Model(name="m", version=1, objective={}, validation={"method": "holdout"})
    drawn = draw_picture(reliability_plot(model, record))
    assert "95 % consistency band" in drawn
    assert " 200 held-out rows: 50" in drawn


def rankings() -> Iterator[tuple[Any, Any]]:
    """Perfect, upside down, tied, all equal, two rows, many rows."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3 == 0
    yield y, y.astype(float)
    yield y, -y.astype(float)
    yield y, rng.integers(0, 3, 60)
    yield y, np.zeros(60)
    yield [0, 1], [1.0, 2.0]
    many = rng.random(5_000) < 0.3
    yield many, rng.normal(size=5_000) + many


@pytest.mark.parametrize("window", WINDOWS)
def test_every_curve_can_be_drawn(window: tuple[float, float]) -> None:
    for y, scores in rankings():
        asked: list[tuple[Any, Any]] = [
            ("roc", None),
            ("roc", "simultaneous"),
            ("pauc", "pointwise"),
        ]
        for kind, band in asked:
            plot = plot_of(*evaluated(y, scores, window), kind, band)
            check(plot)
            low, high = plot.x.low, plot.x.high
            assert (low, high) == (0.0, 1.0) if kind == "roc" else low <= window[0]
            assert (plot.window.fpr_min, plot.window.fpr_max) == window


def check(plot: Plot) -> None:
    fpr, tpr = np.transpose(plot.lines[0].points)
    assert fpr.size < 1000
    assert (fpr[0], fpr[-1]) == (plot.x.low, plot.x.high)
    assert np.all(np.diff(fpr) >= 0.0)
    assert np.all(np.diff(tpr) >= 0.0)
    drawn = draw_picture(plot)
    root = ET.fromstring(drawn)
    width, height = (float(side) for side in root.attrib["viewBox"].split()[2:])
    for path in root.iter(f"{SVG}path"):
        numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path.attrib["d"])]
        assert all(math.isfinite(number) for number in numbers)
        assert min(numbers) >= -1e-6
        assert max(numbers) <= max(width, height)
    assert "nan" not in drawn


def test_a_thinned_line_keeps_to_the_curve() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(50_000) < 0.2
    found, metrics = evaluated(y, rng.normal(size=50_000) + y, (0.0, 0.1))
    for kind in ("roc", "pauc"):
        plot = plot_of(found, metrics, kind, None)
        grid = np.linspace(plot.x.low, plot.x.high, 500)
        shown = np.interp(grid, *np.transpose(plot.lines[0].points))
        np.testing.assert_allclose(shown, found.curve.tpr_at(grid), atol=0.005)


def test_the_cut_of_the_objective_is_marked_alone() -> None:
    y = np.arange(300) % 3 == 0
    scores = np.random.default_rng(2).normal(size=300) + y
    found, metrics = evaluated(y, scores, (0.1, 0.2), "tpr")
    plot = plot_of(found, metrics, "pauc", "pointwise")
    assert [mark.name for mark in plot.marks] == ["FPR ≤ 0.2"]
    assert (plot.window.fpr_min, plot.window.fpr_max) == (0.1, 0.2)
    assert " FPR ≤ 0.2<" in draw_picture(plot)
    plain = plot_of(*evaluated(y, scores, (0.0, 0.05)), "roc", None)
    assert [mark.name for mark in plain.marks] == [f"FPR ≤ {fpr}" for fpr in (0.01, 0.05, 0.1)]
    (together,) = re.findall(r" FPR ≤ ([^<]+)<", draw_picture(plain))
    assert re.findall(r"\d[\d.]+", together) == ["0.01", "0.05", "0.1"]


def test_the_window_of_a_curve_that_rises_at_once_is_shaded_up_to_it() -> None:
    """Three of four positives stand above every negative, so the window is a rectangle of that height."""
    y, scores = [1, 1, 1, 0, 1, 0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    root = ET.fromstring(draw_picture(plot_of(*evaluated(y, scores, (0.0, 0.05)), "roc", None)))
    (way,) = (p.attrib["d"] for p in root.iter(f"{SVG}path") if p.attrib["d"].endswith("Z"))
    corners = [float(number) for number in re.findall(r"-?\d+\.?\d*", way)]
    xs, ys = corners[::2], corners[1::2]
    assert (xs[0], xs[2], ys[0], ys[1]) == (xs[1], xs[3], ys[3], ys[2])
    assert ys[1] < ys[0]
