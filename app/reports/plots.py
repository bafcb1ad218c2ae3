"""The plots of a model, and rendering of a picture as PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rankwright import plots
from rankwright.plots import Axis, Band, Mark, Plot, Window

from app.measures import percent
from app.models import service as models
from app.models.curves import PartCurve
from app.models.objectives import target_fpr, window_of
from app.platform.documents import Objective, Reliability
from app.platform.tables import Model
from core import metrics as core_metrics

if TYPE_CHECKING:
    from core.base.state import Floats
    from core.metrics import Interval, RocCurve
    from core.metrics.bands import BandKind

Kind = Literal["roc", "pauc", "gains", "precision_recall", "cost", "histogram", "reliability"]

MARKED_FPRS = (0.01, 0.05, 0.1)
MAX_POINTS = 600
"""Points of a curve beyond which a picture looks no different."""
BAND_POINTS = 301
MARGIN = 0.6
"""How much of the curve is shown on either side of a window, as a fraction of its width."""
TOPS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def plot_of(
    curve_part: PartCurve, metrics: Mapping[str, Any], kind: Kind, band: BandKind | None
) -> Plot:
    """`metrics` are those of the same part. Reliability belongs to no part: see `reliability_plot`."""

    if kind == "gains":
        return gains_plot(curve_part, metrics)
    if kind == "precision_recall":
        return precision_recall_plot(curve_part, metrics)
    if kind == "cost":
        return cost_plot(curve_part, metrics)
    if kind == "histogram":
        return histogram_plot(curve_part, metrics)
    curve, model = curve_part.curve, curve_part.model
    measured = _window_shown(metrics["pauc"], model.objective)
    view = (0.0, 1.0)
    if kind == "pauc" and measured is not None:
        view = _around(measured["fpr_min"], measured["fpr_max"])
    fpr, tpr = _within(curve.thin(MAX_POINTS) if view == (0.0, 1.0) else curve, view)
    limits, highest = None, max(view[1], *tpr)
    if band is not None:
        rates = np.linspace(*view, BAND_POINTS)
        found = core_metrics.roc_band(
            curve, curve_part.totals, rates, kind=band, level=curve_part.level
        )
        of = "pointwise" if band == "pointwise" else "simultaneous"
        points = zip(found.fpr.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
        limits = Band(f"{percent(found.level, 0)} confidence band, {of}", list(points))
        highest = max(view[1], *found.high)
    rates_marked, marks = _marks(curve_part, view)
    return plots.roc(
        list(zip(fpr.tolist(), tpr.tolist(), strict=True)),
        _title("ROC" if kind == "roc" else "Partial ROC", model),
        f"AUC {interval_text(core_metrics.Interval(**metrics['auc']))}",
        notes=_notes(curve_part, metrics),
        x=Axis(*view),
        y=Axis(0.0, 1.0 if kind == "roc" else next(top for top in TOPS if highest <= top)),
        window=None if measured is None else _window(measured),
        band=limits,
        marks=marks,
        marks_name=f"best cutoff with FPR ≤ {_join([f'{rate:g}' for rate in rates_marked])}",
    )


def gains_plot(curve_part: PartCurve, metrics: Mapping[str, Any]) -> Plot:
    """Plot the recall over the reviewed fraction of the list, from its top."""
    found = core_metrics.list_curve(
        "gains", curve_part.curve.thin(MAX_POINTS), curve_part.totals.prevalence
    )
    return plots.gains(
        list(zip(found.x.tolist(), found.y.tolist(), strict=True)),
        _title("Gains", curve_part.model),
        "fraction of positives found by fraction of the list reviewed",
        notes=_notes(curve_part, metrics),
    )


def precision_recall_plot(curve_part: PartCurve, metrics: Mapping[str, Any]) -> Plot:
    """Between two cutoffs, the line is that of a random choice."""

    curve, prevalence = curve_part.curve, curve_part.totals.prevalence
    (found,) = core_metrics.measure_on_curve(
        curve, curve_part.totals, [core_metrics.AveragePrecision()], level=curve_part.level
    )
    way = curve.fpr + curve.tpr
    least = float(way[1])
    places = np.union1d(
        np.linspace(least, 2.0, MAX_POINTS // 2), np.geomspace(least, 2.0, MAX_POINTS // 2)
    ).clip(least, 2.0)
    tpr, fpr = (np.interp(places, way, rates) for rates in (curve.tpr, curve.fpr))
    caught = prevalence * tpr
    precision = caught / (caught + (1.0 - prevalence) * fpr)
    return plots.precision_recall(
        list(zip(tpr.tolist(), precision.tolist(), strict=True)),
        prevalence,
        _title("Precision and recall", curve_part.model),
        f"average precision {interval_text(found.interval)}",
        notes=_notes(curve_part, metrics),
    )


def cost_plot(curve_part: PartCurve, metrics: Mapping[str, Any]) -> Plot:
    """Plot the lowest expected cost of any cutoff, by the weight of a missed positive."""

    found = core_metrics.list_curve("cost", curve_part.curve, curve_part.totals.prevalence).thin(
        MAX_POINTS
    )
    return plots.cost_curve(
        list(zip(found.x.tolist(), found.y.tolist(), strict=True)),
        _title("Costs", curve_part.model),
        "expected cost of the best cutoff",
        notes=_notes(curve_part, metrics),
    )


def histogram_plot(curve_part: PartCurve, metrics: Mapping[str, Any]) -> Plot:
    found = core_metrics.score_histogram(curve_part.curve)
    edges = found.edges.tolist()
    positives, negatives = (
        list(zip(edges, edges[1:], heights.tolist(), strict=False))
        for heights in (found.positives, found.negatives)
    )
    return plots.histogram(
        positives,
        negatives,
        _title("Scores by class", curve_part.model),
        notes=_notes(curve_part, metrics),
    )


def _title(words: str, model: Model) -> str:
    return f"{words} of {model.name}:{model.version}"


def _notes(curve_part: PartCurve, metrics: Mapping[str, Any]) -> list[str]:
    rows = rows_of(curve_part.model.validation, curve_part.part)
    return [f"on {rows} rows: {metrics['positives']:,} positive, {metrics['negatives']:,} negative"]


def reliability_plot(model: Model, found: Reliability) -> Plot:
    """Draw the region in which the line stays if probabilities are correct, too."""
    points = found["points"]
    return plots.reliability(
        [(point["probability"], point["observed"]) for point in points],
        [
            (point["probability"], point["consistent_low"], point["consistent_high"])
            for point in points
        ],
        found["level"],
        _title("Reliability", model),
        notes=[f"on {found['n']:,} held-out rows: {found['n_positives']:,} positive"],
    )


def rows_of(validation: Mapping[str, Any], part: str) -> str:
    """Return training, out-of-fold or held-out."""
    if part != models.VALIDATION:
        return "training"
    return "out-of-fold" if validation["method"] == "cross_validation" else "held-out"


def _window_shown(
    windows: Sequence[Mapping[str, Any]], objective: Objective
) -> Mapping[str, Any] | None:
    """Return the objective's window, else the first measured one."""
    own = window_of(objective)
    shown = next((w for w in windows if (w["fpr_min"], w["fpr_max"]) == own), None)
    return shown or next(iter(windows), None)


def _window(measured: Mapping[str, Any]) -> Window:
    area = f"{measured['value']:.4f}"
    if measured["low"] is not None and measured["high"] is not None:
        area = interval_text(
            core_metrics.Interval(measured["value"], measured["low"], measured["high"])
        )
    low, high = measured["fpr_min"], measured["fpr_max"]
    return Window(f"partial AUC {area}, FPR {low:g} to {high:g}", low, high)


def _around(fpr_min: float, fpr_max: float) -> tuple[float, float]:
    """Return a window with margins."""
    margin = (fpr_max - fpr_min) * MARGIN
    start = fpr_min - margin
    if start < margin:  # so near to 0 that the axis may begin at 0
        start = 0.0
    return round(start, 12), round(min(1.0, fpr_max + margin), 12)


def _within(curve: RocCurve, view: tuple[float, float]) -> tuple[Floats, Floats]:
    """Thin the points to what a picture can show."""
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


def _marks(curve_part: PartCurve, view: tuple[float, float]) -> tuple[list[float], list[Mark]]:
    """Return marked rates and points in view: of the objective, else of the best cutoffs at a few rates."""

    target = target_fpr(curve_part.model.objective)
    rates, marks = [], []
    for rate in MARKED_FPRS if target is None else (target,):
        point = core_metrics.operating_point_on_curve(
            curve_part.curve, curve_part.totals, fpr=rate, level=curve_part.level
        )
        if view[0] <= point.fpr.value <= view[1] and view[0] < rate <= view[1]:
            threshold = point.threshold if point.threshold < float("inf") else None
            rates.append(rate)
            marks.append(Mark(f"FPR ≤ {rate:g}", point.fpr.value, point.tpr.value, threshold))
    return rates, marks


def _join(words: list[str]) -> str:
    *others, last = words or [""]
    return f"{', '.join(others)} and {last}" if others else last


def interval_text(interval: Interval) -> str:
    """Write a value with its interval."""
    return f"{interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]"


FONTS = [Path(__file__).parent / "fonts" / f"Roboto-{name}.ttf" for name in ("Regular", "Medium")]


def to_png(svg: str, width: int) -> bytes:
    """The width is in pixels. Raises FileNotFoundError without fonts: text would be missing."""
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
