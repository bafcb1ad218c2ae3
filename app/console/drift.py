"""The drift since a model's validation, on pages of evaluations and batches: cutoff, probabilities, scores, columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup
from rankwright.types import (
    Alias,
    BatchDrift,
    Drift,
    EvaluatedCurve,
    EvaluatedCutoff,
    Evaluation,
    FeatureBin,
    FeatureDrift,
    Interval,
)

from app.console import charts
from app.console.api import attempt
from app.console.charts import Bin, Weighed
from app.console.model_aliases import read_share
from app.console.rendering import date, number, percent
from app.console.session import Page

SMALL, GREAT = 0.1, 0.25
"""Population stability indices from which a shift is moderate, and from which it is great: Siddiqi's rule of thumb."""
WITH_HISTOGRAM = 20


class DriftedColumn(NamedTuple):
    """A column, the size of its drift in words, and a chart of its distribution then and now."""

    of: FeatureDrift
    size: str
    picture: Markup | None


@dataclass(frozen=True)
class DriftView:
    cutoff: str | None
    """What the cutoff was planned to do, and what it does now."""
    miscalibrated: bool
    """Whether a test of the probabilities found a change."""
    recalibrated: str | None
    """That the model has been recalibrated since, if it has."""
    scatter: Markup | None
    columns: Sequence[DriftedColumn]
    n_columns: int


async def view_drift(page: Page, found: Evaluation, drift: Drift) -> DriftView:
    features = drift.features
    dates = await _dates(page, found.model_id) if features else frozenset()
    return DriftView(
        cutoff=await _cutoff(page, found, drift),
        miscalibrated=any(each.changed for each in drift.probabilities or []),
        recalibrated=await _recalibrated(page, found),
        scatter=_scatter(features),
        columns=[_column(each, each.name in dates) for each in features],
        n_columns=len(features),
    )


@dataclass(frozen=True)
class BatchDriftView:
    of: BatchDrift
    scores: Markup | None
    """A chart of the deciles of the validation scores."""
    scatter: Markup | None
    columns: Sequence[DriftedColumn]


async def view_batch_drift(page: Page, model_id: str, drift: BatchDrift) -> BatchDriftView:
    dates = await _dates(page, model_id) if drift.features else frozenset()
    drawn = None
    if drift.scores is not None and drift.scores.bins:
        bins = [
            Bin(_range(each.low, each.high), each.before, each.after) for each in drift.scores.bins
        ]
        drawn = charts.then_and_now(bins, "Scores, validation and now")
    return BatchDriftView(
        of=drift,
        scores=drawn,
        scatter=_scatter(drift.features),
        columns=[_column(each, each.name in dates) for each in drift.features],
    )


def _scatter(features: Sequence[FeatureDrift]) -> Markup | None:
    """Draw PSI against importance; None if that was not measured."""
    weighed = [
        Weighed(each.name, each.importance, each.psi.value, changed=each.changed)
        for each in features
        if each.importance is not None
        and each.psi is not None
        and each.psi.value is not None
        and each.changed is not None
    ]
    if not weighed:
        return None
    return charts.scatter(weighed, "Importance and PSI by column", (SMALL, GREAT))


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return "all scores" if high is None else f"below {number(high)}"
    return f"{number(low)} or more" if high is None else f"{number(low)} to {number(high)}"


async def _dates(page: Page, model_id: str) -> frozenset[str]:
    """There are none for a deleted model."""
    model, _ = await attempt(page.client.models[model_id].read(), 404)
    features = [] if model is None else model.features
    return frozenset(each.name for each in features if each.type == "datetime")


async def _recalibrated(page: Page, found: Evaluation) -> str | None:
    """Say so if the evaluation tested an earlier calibration than the model has now."""
    metrics = found.metrics
    if not isinstance(metrics, EvaluatedCurve) or metrics.calibration is None:
        return None
    tested = metrics.calibration.version
    served, _ = await attempt(page.client.models[found.model_id].read_calibration(), 404)
    if served is None or served.version <= tested:
        return None
    fits: dict[int, int] = {}
    for each in reversed(served.history):
        restored = None if each.restores is None else fits.get(each.restores)
        fits[each.version] = restored or each.version
    if fits.get(tested) == fits.get(served.version):  # the recalibration was undone
        return None
    return (
        f"The probabilities are from before the recalibration of {served.created_at[:10]}. Evaluate again to test the "
        "new ones."
    )


def _column(of: FeatureDrift, is_date: bool) -> DriftedColumn:
    psi = 0.0 if of.psi is None else of.psi.value or 0.0
    size = "large" if psi >= GREAT else "moderate" if psi >= SMALL else "small"
    drawn = None
    if of.bins:
        bins = [Bin(_spell(each, is_date), each.before, each.after) for each in of.bins]
        drawn = charts.then_and_now(bins, f"{of.name}, training and now")
    return DriftedColumn(of, size, drawn)


def _spell(of: FeatureBin, is_date: bool) -> str:
    """Return a category, a range of numbers or dates, or missing."""
    write = date if is_date else number
    match of.of:
        case "category":
            return str(of.category)
        case "rare" | "new":
            return "other categories" if of.of == "rare" else "new categories"
        case "missing":
            return "missing"
    if of.low is None:
        return "any value" if of.high is None else f"below {write(of.high)}"
    if of.high is None:
        return f"above {write(of.low)}"
    return write(of.low) if of.low == of.high else f"{write(of.low)} to {write(of.high)}"


async def _cutoff(page: Page, found: Evaluation, drift: Drift) -> str | None:
    """Compare the fraction of flagged rows at validation with that on these rows; None without a cutoff."""
    metrics, cutoff = found.metrics, found.cutoff
    if not isinstance(metrics, EvaluatedCurve) or cutoff is None or cutoff.threshold is None:
        return None
    planned = await read_share(page, found.model_id, cutoff.threshold)
    at = metrics.operating_point
    if planned is None or at is None:
        return None
    now, rows = _flagged(metrics, drift, at), 1000.0
    name = "The cutoff"
    if cutoff.source == "alias" and found.alias is not None:
        name = f"The cutoff of {found.model_name}@{found.alias}"
        kept, _ = await attempt(page.client.models.read_alias(found.model_name, found.alias), 404)
        if not _is_in_use(found, kept):
            name += ", which has changed since this evaluation,"
        elif kept is not None and kept.memo is not None:
            rows = kept.memo.rows or rows
    return (
        f"{name} was planned to flag {planned * rows:,.0f} of {rows:,.0f} rows and now flags {now * rows:,.0f}. It "
        f"finds {say_share(at.tpr)} of the positives."
    )


def say_share(of: Interval) -> str:
    """Return a fraction with its interval in whole percents."""
    return f"{percent(of.value, 0)} ({percent(of.low, 0)} to {percent(of.high, 0)})"


def _flagged(metrics: EvaluatedCurve, drift: Drift, at: EvaluatedCutoff) -> float:
    share = metrics.positives / (metrics.positives + metrics.negatives)
    if drift.prevalence is not None and drift.prevalence.after.value is not None:
        share = drift.prevalence.after.value  # of weighted rows, too
    return share * (at.tpr.value or 0.0) + (1.0 - share) * (at.fpr.value or 0.0)


def _is_in_use(found: Evaluation, kept: Alias | None) -> bool:
    """Return True if an alias still has the model and the cutoff that an evaluation measured."""
    if kept is None or kept.cutoff is None or found.cutoff is None:
        return False
    same_model = kept.model_id == found.model_id
    return same_model and kept.cutoff.threshold == found.cutoff.threshold
