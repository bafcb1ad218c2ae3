"""What a picture of a ROC curve shows, whatever it is drawn with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from app.models import service as models
from app.models.objectives import target_fpr, window_of
from app.models.service import Judged
from app.platform.database import Database

if TYPE_CHECKING:
    from core.metrics import Interval, OperatingPoint, RocBand, RocCurve
    from core.metrics.bands import BandKind


Kind = Literal["roc", "pauc"]
Floats = npt.NDArray[np.float64]

MARKED_FPRS = (0.01, 0.05, 0.1)
MOST_POINTS = 600
BAND_POINTS = 301
_BESIDE = 1.6  # a window is shown with so much of the curve, in widths of its own


@dataclass(frozen=True)
class Window:
    """A window of false positive rates and the partial AUC there; without ends of an interval if it has none."""

    fpr_min: float
    fpr_max: float
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Mark:
    """The best cut with at most this false positive rate, as a dot."""

    rate: float
    point: OperatingPoint


@dataclass(frozen=True, eq=False)
class CurvePlot:
    """A ROC curve, or its part in and around a window.

    `fpr` and `tpr` are cut off at `view`, the false positive rates that are shown; `band` has its limits there. True
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
    marks: tuple[Mark, ...]


def plot_model(
    db: Database, owner: str, ref: str, part: str, kind: Kind, band: BandKind | None
) -> CurvePlot:
    """The picture of a model's curve on a part."""
    judged = models.roc(db, owner, ref, part)
    return plot_of(judged, models.metrics(db, owner, judged.model.id, part), kind, band)


def plot_of(
    judged: Judged, metrics: Mapping[str, Any], kind: Kind, band: BandKind | None
) -> CurvePlot:
    """Prepare the picture of a model's curve. `metrics` are those of the same part."""
    from core.metrics import Interval, roc_band_on_curve

    curve, totals, level = judged.curve, judged.totals, judged.level
    window = _window_shown(metrics["pauc"], judged.model.objective)
    view = (0.0, 1.0)
    if kind == "pauc" and window is not None:
        view = _around(window)
    fpr, tpr = _within(curve.thin(MOST_POINTS) if view == (0.0, 1.0) else curve, view)
    limits = None
    if band is not None:
        rates = np.linspace(*view, BAND_POINTS)
        limits = roc_band_on_curve(curve, totals, rates, kind=band, level=level)
    rows = rows_of(judged.model.validation, judged.part)
    return CurvePlot(
        title=f"{'ROC' if kind == 'roc' else 'Partial ROC'} of {judged.model.name}:{judged.model.version}",
        note=f"on {rows} rows: {metrics['positives']:,} positive, {metrics['negatives']:,} negative",
        view=view,
        top=1.0 if kind == "roc" else _top(max(view[1], *(tpr if limits is None else limits.high))),
        fpr=fpr,
        tpr=tpr,
        band=limits,
        window=window,
        auc=Interval(**metrics["auc"]),
        marks=tuple(_marks(judged, view)),
    )


def rows_of(validation: Mapping[str, Any], part: str) -> str:
    """Say which rows a part is."""
    if part != models.VALIDATION:
        return "its own training"
    return "out-of-fold" if validation["method"] == "cross_validation" else "held-out"


def _top(height: float) -> float:
    """A round number that is no less."""
    return next(top for top in (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0) if height <= top)


def _window_shown(
    windows: Sequence[Mapping[str, Any]], objective: Mapping[str, Any]
) -> Window | None:
    """The window of the objective, else the first that was measured."""
    own = window_of(objective)
    shown = next((w for w in windows if (w["fpr_min"], w["fpr_max"]) == own), None)
    shown = shown or next(iter(windows), None)
    if shown is None:
        return None
    return Window(**{field.name: shown[field.name] for field in fields(Window)})


def _around(window: Window) -> tuple[float, float]:
    """The window with a little beside it."""
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
    if inside.size > MOST_POINTS:
        way = (curve.fpr[inside] - low) / (high - low) + curve.tpr[inside]
        steps = np.linspace(way[0], way[-1], MOST_POINTS)
        inside = inside[np.unique(np.searchsorted(way, steps))]
    ends = curve.tpr_at([low, high])
    fpr = np.concatenate(([low], curve.fpr[inside], [high]))
    start = ends[0] if low > 0.0 else 0.0
    return fpr, np.concatenate(([start], curve.tpr[inside], [ends[1]]))


def _marks(judged: Judged, view: tuple[float, float]) -> list[Mark]:
    """The cut of the objective, if it asks for one; else the best cuts at a few rates, those that are in view."""
    from core.metrics import operating_point_on_curve

    target = target_fpr(judged.model.objective)
    rates = MARKED_FPRS if target is None else (target,)
    marks = []
    for rate in rates:
        point = operating_point_on_curve(judged.curve, judged.totals, fpr=rate, level=judged.level)
        if view[0] <= point.fpr.value <= view[1] and view[0] < rate <= view[1]:
            marks.append(Mark(rate, point))
    return marks
