"""ROC curves of models: storage, reading, and the curves and histograms derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.models import repository
from app.models.service import find
from app.platform.errors import Invalid, NotFound
from app.platform.sql import Session
from app.platform.tables import DatasetKind, Measurement, Model
from core import metrics as core_metrics

if TYPE_CHECKING:
    from core.metrics.gains import ListCurveKind


def curve_of(row: Measurement) -> core_metrics.RocCurve:
    fpr, tpr, thresholds = (
        np.frombuffer(column or b"", dtype="<f8") for column in (row.fpr, row.tpr, row.thresholds)
    )
    return core_metrics.RocCurve(fpr, tpr, thresholds)


MAX_CURVE_POINTS = 1_000_000
"""Points of a stored curve: 24 bytes each, in one row of the database."""


FIRST_CURVE_POINTS = 100_000
"""Points from the top of the list that a stored curve always has: what is read off there is exact."""


def write_curve(path: Path, curve: core_metrics.RocCurve) -> None:
    """Write fpr, tpr and thresholds one after the other, float64 little-endian, as the database stores them.

    Of more than `MAX_CURVE_POINTS` points only so many, by `RocCurve.thin`.
    """
    curve = curve.thin(MAX_CURVE_POINTS, n_first=FIRST_CURVE_POINTS)
    np.stack((curve.fpr, curve.tpr, curve.thresholds)).astype("<f8").tofile(path)


def read_curve(path: Path) -> core_metrics.RocCurve:
    """Inverse of `write_curve`."""
    return core_metrics.RocCurve(*np.fromfile(path, dtype="<f8").reshape(3, -1))


def store_curve(row: Measurement, path: Path) -> None:
    columns = np.fromfile(path, dtype="<f8").reshape(3, -1)
    row.points = columns.shape[1]
    row.fpr, row.tpr, row.thresholds = (column.tobytes() for column in columns)


@dataclass(frozen=True)
class PartCurve:
    """A full ROC curve on a part, with class totals and level for intervals. `rows` counts positives and negatives."""

    model: Model
    part: str
    curve: core_metrics.RocCurve
    totals: core_metrics.ClassTotals
    level: float
    rows: tuple[int, int]


def roc(session: Session, owner: str, ref: str, part: str) -> PartCurve:
    return curve_on(session, find(session, owner, ref), part)


def curve_on(session: Session, model: Model, part: str) -> PartCurve:
    measured = find_curve_on(session, model, part)
    if measured is None:
        raise no_curve(model, part)
    return measured


def find_curve_on(session: Session, model: Model, part: str) -> PartCurve | None:
    """Return None if there is none."""
    row = repository.find_curve(session, model.id, part)
    if row is None:
        return None
    measured = row.metrics
    totals = core_metrics.ClassTotals(
        measured["positive_weight"],
        measured["negative_weight"],
        measured["positive_effective"],
        measured["negative_effective"],
    )
    rows = (measured["positives"], measured["negatives"])
    return PartCurve(model, part, curve_of(row), totals, measured["level"], rows)


AXES: Mapping[str, tuple[str, str]] = {
    "precision_recall": ("recall", "precision"),
    "gains": ("share", "recall"),
    "cost": ("weight", "cost"),
    "histogram": ("score", "positives"),
}
"""What x and y of a curve of the list are."""


def list_curve_on(
    kind: ListCurveKind,
    curve: core_metrics.RocCurve,
    totals: core_metrics.ClassTotals,
    prevalence: float | None,
) -> tuple[core_metrics.ListCurve, float | None]:
    """Compute a curve of the list from a ROC curve; returns it with the assumed prevalence. Raises Invalid."""
    if kind == "cost":
        if prevalence is not None:
            detail = (
                f"prevalence is part of the weight of a cost curve: omit it, got {prevalence:g}"
            )
            raise invalid_query("prevalence", detail)
        return core_metrics.list_curve(kind, curve, totals.prevalence), None
    share = totals.prevalence if prevalence is None else prevalence
    return core_metrics.list_curve(kind, curve, share), share


MAX_BINS = 40
"""Maximum number of bins of a histogram of scores: more are narrower than a plot can show."""


def histogram_on(
    curve: core_metrics.RocCurve, max_bins: int, prevalence: float | None
) -> core_metrics.ScoreHistogram:
    """Return the score histogram by class. Raises Invalid for a `prevalence`, which has no meaning here."""
    if prevalence is not None:
        detail = f"a histogram shows each class separately: omit prevalence, got {prevalence:g}"
        raise invalid_query("prevalence", detail)
    return core_metrics.score_histogram(curve, min(max_bins, MAX_BINS))


def invalid_query(parameter: str, detail: str) -> Invalid:
    """Return the error for a query parameter."""
    return Invalid(
        detail, code="invalid_parameter", errors=[{"parameter": parameter, "detail": detail}]
    )


def no_curve(model: Model, part: str) -> NotFound:
    """The error says why there is no ROC curve on this part."""
    if model.kind != DatasetKind.BIPARTITE and model.validation.get("method") != "none":
        return NotFound(
            f"model {model.id} was trained on a dataset of kind {model.kind}, so it has no ROC curve: see "
            "GET …/metrics",
            code="no_curve",
        )
    return NotFound(
        f"model {model.id} has no {part} curve: "
        f"its validation.method is {model.validation.get('method')!r}",
        code="no_curve",
    )
