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

    level: Level = Field(description="Confidence level of each interval by itself.")
    n: int = Field(description="Number of rows.")
    n_positives: Positives
    predicted: float = Field(description="Mean predicted probability.")
    observed: float = Field(description="Observed fraction of positives.")
    brier: ScoreParts = Field(description="Brier score: the mean of (probability − label)².")
    log: ScoreParts = Field(description="Log loss, with natural logarithms.")
    in_the_large: Interval | None = Field(
        description="Calibration in the large: the log odds to add to every probability so that predicted and "
        "observed positives agree. Null if it cannot be estimated."
    )
    slope: Interval | None = Field(
        description="Calibration slope: the factor of the log odds. Below 1: the probabilities are too extreme. "
        "Null if all probabilities are equal."
    )
    shape: CalibrationShape | None = Field(
        default=None,
        description="Calibration errors that change sign along the probabilities, which level and slope do not "
        "show. Null if there are too few rows to test it, or if an earlier version measured the rows.",
    )
    histogram: list[float] = Field(
        description="Fraction of the rows with a probability in [0, 0.1), [0.1, 0.2), …, [0.9, 1]."
    )
    points: list[ReliabilityPoint] = Field(
        description="Points of the reliability diagram, by ascending probability."
    )


class Reliability(MeasuredReliability):
    """How well the probabilities match the outcomes on the calibration's own rows. Each row is predicted by a
    calibration fitted on other rows.
    """

    later: bool = Field(
        default=False,
        description="True: the rows are those of the last time window, and the calibration was fitted on the "
        "windows before. False: the rows are cross-fitted, which does not test later rows.",
    )
    periods: CalibrationPeriods | None = Field(
        default=None,
        description="Calibration level of each time window. Null without validation by time windows, or with too "
        "few rows.",
    )


class CalibrationRequest(Body):
    """The dataset to fit a calibration on."""

    dataset_id: Text = Field(
        description="A ready dataset with the model's features and label. The model must not have been trained on "
        "its rows."
    )
    reason: ReasonText | None = Field(
        default=None,
        description="Reason for the recalibration.",
        examples=["Default rate has doubled since March."],
    )


class CalibrationRestoration(Body):
    """The version of a calibration to restore."""

    version: int = Field(ge=1, le=2**31 - 1, description="An earlier version.", examples=[1])
    reason: ReasonText | None = Field(
        default=None,
        description="Reason for the change.",
    )


class CalibrationSummary(Resource):
    """One version of a calibration."""

    version: int = Field(description="Version number of the calibration, from 1.")
    method: Annotated[str, one_of(CALIBRATION_METHODS)] = Field(
        description="`platt`, `beta` or `isotonic`: the method with the lowest log loss on held-out folds."
    )
    trained_on: Annotated[str, one_of(LEARNT_ON)] = Field(
        description="Rows that the calibration was fitted on. `validation`: the validation rows. `out_of_fold`: "
        "the out-of-fold scores of a cross-validated model, on the scale of the served ranker. "
        "`dataset`: a later dataset."
    )
    dataset: DatasetVersion | None = Field(
        description="Dataset of these rows. Null if it was not recorded."
    )
    rows: int = Field(description="Number of rows that the calibration was fitted on.")
    positives: Positives
    prevalence: float = Field(
        description="Fraction of positives among these rows, by weight. Probabilities assume this prevalence "
        "unless a request states another."
    )
    job_id: JobId
    restores: int | None = Field(
        description="The earlier version that was restored: this one is a copy of it. Null for others."
    )
    reason: str | None = Field(description="Reason for this version. Null if none was given.")
    author: str | None = Field(
        description="Name of the principal that requested this version. Null for the one of the training."
    )
    alias_request_id: str | None = Field(
        description="The approved request that made this version. Null for a direct change."
    )
    approved_by: str | None = Field(
        description="Name of the principal that approved it. Null for a direct change."
    )
    approved_by_id: str | None = Field(
        description="Id of the principal that approved it. Null for a direct change."
    )
    break_glass: bool = Field(
        description="True if a protected alias served the model, and the calibration was changed without approval "
        "during a break-glass."
    )
    created_at: CreatedAt


class Calibration(CalibrationSummary):
    """The calibration of a model: a non-decreasing map from scores to probabilities."""

    model_id: ModelId
    log_losses: dict[str, float] = Field(
        description="Mean log loss of each compared method on held-out folds. Empty if a class has too few rows "
        "to compare methods; the method is then `platt`."
    )
    reliability: Reliability | None = Field(
        description="How well the probabilities match the outcomes, on held-out rows. Null if there are too few "
        "rows."
    )
    history: list[CalibrationSummary] = Field(
        description="All versions, the newest first. The newest is served."
    )
