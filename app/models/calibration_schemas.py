"""Calibrations over HTTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.http.schemas import (
    Body,
    CreatedAt,
    DatasetVersion,
    Interval,
    JobId,
    Level,
    ModelId,
    Positives,
    ReasonText,
    Resource,
    Text,
    one_of,
)
from app.models.calibrations import LEARNT_ON
from app.platform.documents import (
    CalibrationPeriods,
    CalibrationShape,
    ReliabilityPoint,
    ScoreParts,
)

CALIBRATION_METHODS = ("platt", "beta", "isotonic")


class MeasuredReliability(Resource):
    """How well probabilities match the outcomes on rows that the calibration was not fitted on.

    A class beside the stored document: responses have one type of interval, whose members may be null.
    """

    level: Level
    n: int
    """Number of rows."""
    n_positives: Positives
    predicted: float
    """Mean predicted probability."""
    observed: float
    """Observed fraction of positives."""
    brier: ScoreParts
    """Brier score: the mean of (probability − label)²."""
    log: ScoreParts
    """Log loss, with natural logarithms."""
    in_the_large: Interval | None
    """Calibration in the large: the log odds to add to every probability so that predicted and observed positives
    agree. Null if it cannot be estimated."""
    slope: Interval | None
    """Calibration slope: the factor of the log odds. Below 1: the probabilities are too extreme. Null if all
    probabilities are equal, or `separated`."""
    separated: bool
    """True if each positive has a higher probability than all negatives. Slope and shape cannot be estimated then."""
    shape: CalibrationShape | None
    """Calibration errors that change sign along the probabilities, which level and slope do not show. Null if there are
    too few rows to test it, or no slope."""
    histogram: list[float]
    """Fraction of the rows with a probability in [0, 0.1), [0.1, 0.2), …, [0.9, 1]."""
    points: list[ReliabilityPoint]
    """Points of the reliability diagram, by ascending probability."""


class Reliability(MeasuredReliability):
    """How well the probabilities match the outcomes on the calibration's own rows. Each row is predicted by a
    calibration fitted on other rows.
    """

    later: bool = False
    """True: the rows are in the last time window, and the calibration was fitted on the windows before. False:
    the rows are cross-fitted, which does not test later rows."""
    periods: CalibrationPeriods | None = None
    """Calibration level of each time window. Null without validation by time windows, or with too few rows."""


class CalibrationRequest(Body):
    """The dataset to fit a calibration on."""

    dataset_id: Text
    """A ready dataset with the model's features and label. The model must not have been trained on its rows."""
    reason: ReasonText | None = Field(
        default=None, examples=["Default rate has doubled since March."]
    )
    """Reason for the recalibration."""


class CalibrationRestoration(Body):
    """The version of a calibration to restore."""

    version: int = Field(ge=1, le=2**31 - 1, examples=[1])
    """An earlier version."""
    reason: ReasonText | None = None
    """Reason for the change."""


class CalibrationSummary(Resource):
    """One version of a calibration."""

    version: int
    """Version number of the calibration, from 1."""
    method: Annotated[str, one_of(CALIBRATION_METHODS)]
    """`platt`, `beta` or `isotonic`: the method with the lowest log loss on held-out folds."""
    trained_on: Annotated[str, one_of(LEARNT_ON)]
    """Rows that the calibration was fitted on. `validation`: the validation rows. `out_of_fold`: the out-of-fold scores
    of a cross-validated model, on the scale of the served ranker. `dataset`: a later dataset."""
    dataset: DatasetVersion | None
    """Dataset of these rows. Null if it was not recorded."""
    rows: int
    """Number of rows that the calibration was fitted on."""
    positives: Positives
    prevalence: float
    """Fraction of positives among these rows, by weight. Probabilities assume this prevalence unless a request states
    another."""
    job_id: JobId
    restores: int | None
    """The earlier version that was restored: this one is a copy of it. Null for others."""
    reason: str | None
    """Reason for this version. Null if none was given."""
    author: str | None
    """Name of the principal that requested this version. Null for the one of the training."""
    alias_request_id: str | None
    """The approved request that made this version. Null for a direct change."""
    approved_by: str | None
    """Name of the principal that approved it. Null for a direct change."""
    approved_by_id: str | None
    """Id of the principal that approved it. Null for a direct change."""
    break_glass: bool
    """True if a protected alias served the model, and the calibration was changed without approval during a
    break-glass."""
    created_at: CreatedAt


class Calibration(CalibrationSummary):
    """The calibration of a model: a non-decreasing map from scores to probabilities."""

    model_id: ModelId
    log_losses: dict[str, float]
    """Mean log loss of each compared method on held-out folds. Empty if a class has too few rows to compare methods;
    the method is then `platt`."""
    reliability: Reliability | None
    """How well the probabilities match the outcomes, on held-out rows. Null if there are too few rows."""
    history: list[CalibrationSummary]
    """All versions, the newest first. The newest is served."""
