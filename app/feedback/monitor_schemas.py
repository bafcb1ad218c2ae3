"""The monitor and its alarms over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from app.feedback.group_tests import ComparedGroup
from app.feedback.scheduled_tests import FAMILIES, STATUSES, TESTED, PeriodVersion
from app.feedback.wording import say_comparison, say_test
from app.http.schemas import (
    AliasName,
    Body,
    ModelId,
    ModelName,
    PageOf,
    PositiveOutcomes,
    ReasonText,
    Resource,
    Timestamp,
    Words,
    one_of,
)
from app.platform.documents import MonitorSettings, OutcomeRule
from app.platform.sql import Json
from app.platform.tables import Alarm as AlarmRow
from app.platform.tables import MonitorTest

_FAMILY = {
    "unlabelled": "drift of scores and columns",
    "ranking": "AUC",
    "calibration": "calibration of the probabilities",
    "guarantee": "guaranteed rate of the alias",
    "selection": "ratios of selection rates between groups",
    "group_calibration": "differences of the calibration between groups",
    "shadow": "comparison with the shadow model",
}
Family = Annotated[str, one_of({name: _FAMILY[name] for name in FAMILIES})]
TestedFamily = Annotated[str, one_of({name: _FAMILY[name] for name in TESTED})]
_POPULATION = {
    "all": "all decisions",
    "flagged": "flagged decisions",
    "unflagged": "decisions that were not flagged",
    "none": "none: no outcome of a decision that was to be reviewed is known",
}


_METRIC = {
    "psi": "stability index of the score",
    "auc": "AUC",
    "calibration": "level and slope of the calibration; `value` is the fraction of positives",
    "fpr": "false positive rate",
    "fnr": "fraction of positives that were not flagged",
    "flagged": "fraction of flagged decisions",
    "rate": "guaranteed rate of a period without decisions",
    "selection_ratio": "selection rate of a group over that of the reference group",
    "odds_ratio": "odds of a positive, relative to the predicted ones, of a group over those of the reference group",
}


class PeriodEstimate(Resource):
    """A metric with its 95 % confidence interval, which holds for this period alone, not for all tests together."""

    value: float
    """The metric."""
    low: float | None
    """Lower confidence limit. Null if the effective number of positives among explored decisions is below 20."""
    high: float | None
    """Upper confidence limit. Null if `low` is null."""
    rows: float
    """Effective number of rows."""


class PeriodMetrics(Resource):
    """Metrics of the decisions of a period, weighted by the inverse of the probability of review."""

    population: Annotated[str, one_of(_POPULATION)]
    """Decisions that the AUC describes."""
    decisions: int
    """Number of decisions."""
    reviewed: int
    """Decisions that were to be reviewed and have an outcome."""
    missing: int
    """Decisions that were to be reviewed and have no outcome."""
    unselected: int
    """Decisions with an outcome that were not to be reviewed. They are left out: whether such an outcome becomes known
    may depend on it."""
    explored: int
    """Explored decisions with an outcome."""
    explored_positives: int
    """Positives among them."""
    explored_needed: int | None
    """Further explored outcomes until the effective number of positives among them is 20, at the present rate. Null if
    the rate is not known, or nothing is explored."""
    auc: PeriodEstimate | None
    """AUC. Null if the outcomes are of one class."""
    precision: PeriodEstimate | None
    """Fraction of positives among flagged decisions. Null if these have no outcomes."""
    miss_rate: PeriodEstimate | None
    """Fraction of positives among decisions that were not flagged. Null if these have no outcomes."""
    recall: PeriodEstimate | None
    """Fraction of the positives that were flagged. Null unless the population is `all`."""


class ChangeWindow(Resource):
    """The periods with the greatest standardised change."""

    first: int
    """Number of the first period."""
    last: int
    """Number of the last period."""
    value: float
    """Mean of the AUC, the rate, or the level (in log-odds) or slope of the calibration."""
    drop: float
    """Value of the reference minus the value of the window."""
    drop_low: float
    """Lower limit. The limits hold for all windows of all tests of the term together."""
    drop_high: float
    """Upper limit."""
    inflation: float | None
    """Variance of the value over what it would be if every period had other entities: how much recurring entities cost.
    Null if decisions have no entity ids; rows are then assumed to be independent."""


class UnchangedShares(Resource):
    """Shares of positives among missing outcomes, by side: the least and the greatest. Null: none."""

    all: list[float] | None = None
    """Least and greatest share, the same on both sides."""
    flagged: list[float] | None = None
    """Of the missing outcomes of flagged decisions."""
    unflagged: list[float] | None = None
    """Of the missing outcomes of the other decisions."""


class MissingOutcomes(Resource):
    """What missing outcomes could change. Tests use known outcomes only."""

    outcomes: int
    """Number of missing outcomes in the window."""
    known_share: float | None
    """Share of positives among the known outcomes. Null without any."""
    unchanged: UnchangedShares
    """Shares of positives among the missing outcomes at which the test would have found nothing."""
    explains: bool | None
    """Whether missing outcomes alone could explain an alarm: there is a share of positives among them at which the test
    would have found nothing. Null for the slope of the calibration: it is not known."""


class ShiftedColumn(Resource):
    """A column that has shifted significantly and matters to the model."""

    name: str
    """Name of the column. Empty for the score."""
    psi: float
    """Population stability index."""
    words: Words


class ScheduledTest(Resource):
    """A scheduled test of one family of metrics at the end of a period. It never changes: outcomes that arrive or are
    corrected later have no effect on it.
    """

    family: Family
    """What was tested."""
    status: Annotated[str, one_of(STATUSES)]
    """Result of the test."""
    reason: str | None
    """Why there was no test. Null if there was one."""
    words: Words
    tested_at: Timestamp
    """Time of the test."""
    revision: int
    """Revision of the feedback settings."""
    model_id: ModelId | None
    """Id of the model whose decisions were tested: the last one that the alias served in the period. Null without
    decisions."""
    metric: Annotated[str, one_of(_METRIC)] | None
    """Tested metric. Null if the alias has none."""
    population: Annotated[str, one_of(_POPULATION)] | None
    """Decisions that the metric describes. Null if outcomes are not needed."""
    rows: int
    """Number of decisions of the model."""
    known: int
    """Number of these whose outcome was known."""
    positives: PositiveOutcomes
    value: float | None
    """PSI of the score, AUC, fraction of positives, rate (for outcomes missing at random), or ratio of the group with
    the greatest statistic. Null if not measured."""
    low: float | None
    """Lower confidence limit of the value in this period. Of a guarantee: the rate with the most favourable missing
    outcomes; null if none is missing."""
    high: float | None
    """Upper confidence limit of the value in this period. Of a guarantee: the rate with the least favourable missing
    outcomes; null if none is missing."""
    variance: float | None
    """Sampling variance of the AUC, by entity. Null for other metrics."""
    expected: float | None
    """AUC of the reference, mean predicted probability, or bound of the rate. Null if there is none."""
    statistic: float | None
    """Test statistic: the greatest standardised change over windows that end here. Of a guarantee whose
    entities have one decision each: the e-value, whatever the missing outcomes are. Null without a test."""
    critical_value: float | None
    """Value of the statistic that raises an alarm. Null if `statistic` is null."""
    alpha_spent: float
    """Probability of a false alarm that this series of tests has used so far."""
    term_start: Timestamp
    """Start of the term. Its tests share the error probability. A new term begins after a year, with another model, and
    with an alarm that is acknowledged with `renew` (not of the calibration)."""
    number: int
    """Number of the period in the term, from 1."""
    planned: int
    """Number of periods of a term."""
    since: int
    """Number of the last period before the test began again, because an alarm was acknowledged with `keep`, the bound
    of the guarantee has changed, or its entities have come back. 0: it has not begun again."""
    from_period: int | None
    """Number of the period in which the change probably began. Null without a test."""
    window: ChangeWindow | None
    """The window of the test. Null without a test, and for other families."""
    missing: MissingOutcomes | None
    """What missing outcomes could change. Null without a test of the AUC or the calibration, or if none is missing."""
    metrics: PeriodMetrics | None
    """All metrics of the period, given with the AUC. Null for other families."""
    shifted: list[ShiftedColumn] | None
    """Columns that have shifted. Null unless the family is `unlabelled`."""
    psi: dict[str, float] | None
    """Population stability index by column, the largest changes of important columns first, at most 100. Null unless
    the family is `unlabelled`."""
    groups: list[ComparedGroup] | None
    """The compared groups. Null unless the family is `selection` or `group_calibration`."""


class MonitoredPeriod(Resource):
    """A period with its scheduled tests."""

    start: Timestamp
    """Start of the period, which is included."""
    end: Timestamp
    """End of the period, which is not included."""
    decisions: int
    """Number of recorded decisions when the period ended."""
    lost: int
    """Number of decisions that were not recorded: a log was full, or a process ended."""
    corrections: int | None
    """Corrected outcomes, when the horizon had passed. Null before."""
    ambiguous: int | None
    """Decisions whose outcome names an entity that has another decision before the event, within the horizon. By
    another rule, the outcome would belong to that decision. Null before the horizon has passed."""
    versions: list[PeriodVersion]
    """Decisions by model and threshold, the most frequent first, at most 20."""
    tests: list[ScheduledTest]
    """The scheduled tests of this period so far, one for each family."""


class FamilyBudget(Resource):
    """The error probability of one family in its current term."""

    family: TestedFamily
    """What is tested."""
    alpha: float
    """Probability of a false alarm in all tests of a term together. The sum over all families is the `alpha` of the
    settings."""
    spent: float
    """The part that the tests so far have used."""
    left: float
    """The part that remains for later tests."""


class DetectableDrop(Resource):
    """The smallest lasting fall of the AUC that the monitor finds."""

    drop: float | None
    """Fall that is found with probability `power` within a term. Null until a period with outcomes is known, and if no
    fall can be found."""
    floor: float | None
    """The same with unlimited rows per period: only a larger validation lowers it. Null if no fall can be found."""
    odds: float | None
    """Smallest lasting factor of the odds of a positive that is found with probability `power`, with unlimited rows per
    period: the calibration is itself an estimate. Null without one whose error is known."""
    power: float
    """Probability of an alarm."""
    rows: float | None
    """Rows per period that this is computed from. Null if none are known."""
    periods_per_test: int | None
    """Number of periods that are tested together, so that there are 50 rows of each class. Null if `rows` is null."""
    words: Words
    validation_positives: float
    """Effective number of positive validation rows."""
    validation_negatives: float
    """Effective number of negative validation rows."""


class Alarm(Resource):
    """An alarm of the monitor: a scheduled test found a change. A person acknowledges it with a reason."""

    id: str
    """Id of the alarm."""
    name: ModelName
    alias: AliasName
    family: TestedFamily
    """What was tested."""
    words: Words
    period_start: Timestamp
    """Start of the tested period."""
    model_id: ModelId | None
    """Id of the model whose decisions were tested."""
    raised_at: Timestamp
    """Time of the alarm."""
    acknowledged_at: Timestamp | None
    """Time of the acknowledgement. Null if there is none."""
    reason: str | None
    """Reason of the acknowledgement. It is not HTML: escape it where it is shown."""
    reference: Annotated[str, one_of(("keep", "renew"))] | None
    """What later tests are compared with: see the acknowledgement."""
    author: str | None
    """Name of the key that acknowledged it."""


class AlarmPage(PageOf[Alarm]):
    """One page of alarms."""


class AlarmAcknowledgement(Body):
    """The acknowledgement of an alarm."""

    reason: ReasonText = Field(
        examples=["The new tariff has changed who applies. Retraining is planned for June."]
    )
    """Reason, of up to 2,000 characters."""
    reference: Literal["keep", "renew"] = Field(examples=["keep"])
    """`keep`: later tests are compared with the validation as before. `renew`: the change is the new normal. The AUC is
    then compared with the periods that raised the alarm, and the calibration with the first four tested periods after
    the acknowledgement. Shifts of the same columns raise no further alarm while the alias serves the same model. In
    both cases the test begins again after this test."""


class AliasMonitor(Resource):
    """The results of the monitor of an alias."""

    name: ModelName
    alias: AliasName
    as_of: Timestamp
    """The results use what was known at this time."""
    revision: int | None
    """Revision of the feedback settings. Null if the alias never had any."""
    settings: MonitorSettings | None
    """Settings of the monitor. Null if it is off."""
    outcome: OutcomeRule | None
    """Attribution and maturity of outcomes. Null if decisions are not recorded."""
    budget: list[FamilyBudget]
    """Error probabilities in the current term of each family. Empty if the monitor is off."""
    detectable: DetectableDrop | None
    """The fall that the monitor can find. Null if it is off, or if the model has no validation curve."""
    recorded: int
    """Number of decisions that are stored."""
    lost: int
    """Number of decisions that were lost while these were recorded."""
    alarms: list[Alarm]
    """Alarms of the alias, newest first, at most 100."""
    periods: list[MonitoredPeriod]
    """Periods with scheduled tests, newest first, at most 100; `as_of` shows earlier ones."""


class SwapCell(Resource):
    """Decisions that champion and challenger flag in the same way."""

    rows: int
    """Number of decisions."""
    known: int
    """Number of these whose outcome is known."""
    positives: PositiveOutcomes


class SwapSet(Resource):
    """What would change if the challenger decided, with as many flagged decisions in each period."""

    both: SwapCell
    """Flagged by both."""
    champion_only: SwapCell
    """Flagged by the champion only."""
    challenger_only: SwapCell
    """Flagged by the challenger only. The champion did not flag them, so if outcomes come from reviews of flagged
    decisions, only explored ones have an outcome: compare rates of positives with care."""
    neither: SwapCell
    """Flagged by neither."""


class ShadowComparison(Resource):
    """The AUC of the challenger minus the AUC of the champion, on the same decisions."""

    difference: float
    """Difference over all compared decisions."""
    low: float
    """Lower limit. The limits hold for all tests together, with 95 % confidence."""
    high: float
    """Upper limit."""
    winner: Annotated[str, one_of(("challenger", "champion"))] | None
    """The better model, if the limits exclude 0. Null otherwise."""
    equivalent: bool
    """Whether the limits are within the tolerance."""
    rows: int
    """Number of compared decisions with an outcome."""
    positives: PositiveOutcomes
    further_rows: int | None
    """Decisions with outcomes that are still needed until the half-width of the limits is the tolerance. 0 if it is,
    also without a winner, and if there is a winner or the models are equivalent. Null if out of reach."""
    words: Words


class ShadowTest(Resource):
    """The comparison in one period."""

    period_start: Timestamp
    """Start of the period."""
    period_end: Timestamp
    """End of the period."""
    status: Annotated[str, one_of(STATUSES)]
    """`passed`: the models were compared."""
    reason: str | None
    """Why the models were not compared. Null if they were."""
    words: Words
    rows: int
    """Number of compared decisions of the champion."""
    left_out: int
    """Number of other decisions of the champion, which may be in the training data of the challenger."""
    known: int
    """Number of these whose outcome was known."""
    positives: PositiveOutcomes
    difference: float | None
    """Difference of the AUC in this period. Null if not compared."""
    comparison: ShadowComparison | None
    """The comparison of all periods so far. Null if not compared."""


class AliasShadow(Resource):
    """The model behind an alias (the champion) compared with its shadow model (the challenger).

    The challenger scores the recorded features after the horizon, so it costs nothing when a request is answered. To
    promote it, move the alias: `PUT /v1/models/{name}/aliases/{alias}` with `challenger_id` as `model_id`.
    """

    name: ModelName
    alias: AliasName
    shadow: str | None
    """Shadow model of the feedback settings. Null if there is none."""
    unseen_from: Timestamp | None
    """The shadow model may have been trained on decisions before this time: the end of the decisions in its training
    dataset or, if that dataset was not made from decisions, the time at which it was created. Null without a shadow
    model."""
    compared_before: bool
    """True if decisions before `unseen_from` are compared, too, unless their entity is in the training dataset. The
    dataset needs a column of groups with the ids of the decisions. If false, only later periods are compared."""
    champion_id: ModelId | None
    """Id of the model that decided. Null before the first test."""
    challenger_id: ModelId | None
    """Id of the shadow model. Null before the first test."""
    tolerance: float | None
    """Difference of the AUC that does not matter: `tolerance.auc` of the monitor, or else 0.01. Null before the first
    test."""
    comparison: ShadowComparison | None
    """The newest comparison of these two models. Null until there is one."""
    swap: SwapSet | None
    """Sum over the periods. Null if the champion has no threshold."""
    tests: list[ShadowTest]
    """Tests of the comparison of these two models, newest first, at most 100."""


def shadow_comparison_of(found: Json | None) -> ShadowComparison | None:
    """Return a stored comparison as a response; None if nothing was compared."""
    if found is None:
        return None
    return ShadowComparison.model_validate({**found, "words": say_comparison(found)})


def shadow_test_of(row: MonitorTest) -> ShadowTest:
    names = ("status", "reason", "rows", "known", "positives")
    return ShadowTest.from_row(
        row,
        **{name: row.found[name] for name in names},
        left_out=row.found["details"]["left_out"],
        difference=row.found["value"],
        comparison=shadow_comparison_of(row.found["details"]["comparison"]),
        words=say_test(row.family, row.found),
    )


def alarm_of(row: AlarmRow) -> Alarm:
    return Alarm.from_row(
        row, model_id=row.found["model_id"], words=say_test(row.family, row.found)
    )


def scheduled_test_of(row: MonitorTest) -> ScheduledTest:
    found: dict[str, Any] = row.found
    details = found["details"]
    shifted = psi = None
    if row.family == "unlabelled":
        shifted, psi = details.get("shifted") or [], details.get("psi", {})
    members = {name: found[name] for name in ScheduledTest.model_fields if name in found}
    return ScheduledTest.from_row(
        row,
        **members,
        words=say_test(row.family, row.found),
        window=details.get("window"),
        missing=details.get("missing"),
        metrics=details.get("metrics"),
        shifted=shifted,
        psi=psi,
        groups=details.get("groups"),
    )
