"""Groups of protected columns at a threshold, over HTTP."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.http.schemas import FiniteOrNull, Interval, Level, Resource, Words, one_of
from app.measures import percent
from app.models.curve_schemas import OfEvaluation
from app.platform.documents import ReliabilityPoint
from core.metrics.four_fifths import MIN_REFERENCE_SHARE, SIDES

CHOSEN_BY = ("request", "alias", "objective", "ks")


class GroupMetric(Interval):
    """A metric of one group, or the reason why it is unavailable."""

    reason: str | None
    """Why the metric is unavailable, such as missing rows of a class. Null if it is available."""


class GroupCalibration(Resource):
    """Predicted and observed positives of one group."""

    predicted: float | None
    """Mean predicted probability. Null if all rows have weight 0."""
    observed: GroupMetric
    """Observed fraction of positives."""
    in_the_large: GroupMetric
    """Log odds to add to every probability of the group so that predicted and observed positives agree. If the interval
    excludes 0, the probabilities are too low (above 0) or too high (below 0)."""
    points: list[ReliabilityPoint]
    """Reliability diagram of the group, up to 11 points. Empty if `in_the_large` is unavailable."""


class ThresholdGroup(Resource):
    """Rates of one group at the threshold."""

    value: str | None
    """Value of the column as text. Null: the rows without a value."""
    rows: int
    """Number of rows with a weight above 0."""
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""
    flagged: GroupMetric
    """Fraction of the group's rows that are flagged."""
    not_flagged: GroupMetric
    """Fraction of the group's rows that are not flagged."""
    flagged_ratio: GroupMetric
    """`flagged` divided by the highest of any group: the adverse impact ratio if a flag is the favourable outcome. The
    interval covers the ratio to the group that is highest in the population."""
    not_flagged_ratio: GroupMetric
    """The same for `not_flagged`: the adverse impact ratio if no flag is the favourable outcome."""
    p_value: float | None
    """Of the hypothesis that the ratio of the favourable outcome is at least 0.8."""
    adjusted_p_value: float | None
    """`p_value`, adjusted by Holm's method over all groups of all columns."""
    passes: bool | None
    """Four-fifths rule for the favourable outcome. True: the interval of the ratio is at or above 0.8. False: the ratio
    is significantly below. Null: not enough data."""
    tpr: GroupMetric
    """Fraction of the group's positives that are flagged."""
    fpr: GroupMetric
    """Fraction of the group's negatives that are flagged."""
    auc: GroupMetric | None
    """Area under the ROC curve within the group."""
    calibration: GroupCalibration | None
    """Calibration in the group, at any threshold. Null without probabilities."""


class ThresholdColumn(Resource):
    """The groups of one column at the threshold."""

    column: str
    """The column that defines the groups."""
    is_feature: bool
    """Whether the column is a feature of the model, so that scores depend on it directly."""
    reference: int | None = Field(
        description="Position in `groups` of the group with the highest rate of the favourable outcome, among those "
        f"with at least {percent(MIN_REFERENCE_SHARE, 0)} of the rows. Null if there is not enough data."
    )
    passes: bool | None
    """Four-fifths rule. True: every group passes. False: one fails. Null: not enough data."""
    words: Words = Field()
    groups: list[ThresholdGroup]
    """The groups."""


class ThresholdGroups(Resource):
    """Groups of protected columns at one threshold."""

    threshold: FiniteOrNull
    """Lowest score that is flagged. Null: no row is flagged."""
    chosen_by: Annotated[str, one_of(CHOSEN_BY)]
    """Where the threshold comes from. `request`: the parameter. `alias`: the cutoff of the alias. `objective`: the
    model's objective. `ks`: the largest difference between TPR and FPR."""
    favourable: Annotated[str, one_of(SIDES)]
    """The favourable outcome, to which the verdicts refer, as requested."""
    level: Level
    rule: float
    """Lowest ratio that is acceptable by the four-fifths rule."""
    passes: bool | None
    """True: all columns pass. False: one fails. Null: not enough data."""
    columns: list[ThresholdColumn]
    """The compared columns."""


class ModelThresholdGroups(ThresholdGroups):
    """Groups of protected columns on a model's validation rows, at one threshold."""

    model_id: str
    """Id of the model."""
    approximate: bool
    """True for out-of-fold scores (cross-validation), whose thresholds were never applied to the model."""


class EvaluationThresholdGroups(OfEvaluation, ThresholdGroups):
    """Groups on the rows of an evaluation, at one threshold: by `group_by`, and then by the protected columns."""
