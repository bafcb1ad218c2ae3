"""Operating points over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import model_validator

from app.http.schemas import FiniteOrNull, Interval, Level, Resource, one_of
from app.models.curve_schemas import OfEvaluation, OfPart

if TYPE_CHECKING:
    from core import metrics


class CostTotals(Resource):
    """The costs of so many rows: the numbers per row times `rows`."""

    rows: float
    """Number of rows, as requested in `total_rows`."""
    cost: Interval
    """Cost at this threshold."""
    flag_none: float
    """Cost if no row is flagged."""
    flag_all: float
    """Cost if every row is flagged."""
    saved_to_random: Interval
    """Saving compared with random flagging."""
    saved_to_rule: Interval | None
    """Saving compared with the other rule. Null without `rule`."""


class Cost(Interval):
    """Mean cost per row at this threshold, and what it saves."""

    flag_none: float
    """Mean cost per row if no row is flagged."""
    flag_all: float
    """Mean cost per row if every row is flagged."""
    false_positive: float
    """Cost of a false positive, as requested."""
    false_negative: float
    """Cost of a false negative, as requested: with `amount`, per unit of the amount."""
    saved_to_random: Interval
    """Mean cost per row if as many rows are flagged at random, minus this cost."""
    amount: str | None = None
    """The column of amounts, as requested. Null: the costs are per row."""
    rule: str | None = None
    """The column of the other rule, as requested. Null without one."""
    of_rule: Interval | None = None
    """Mean cost per row of the other rule's decisions. Null without `rule`, and for a rule that is a score: it flags as
    many rows as the threshold."""
    rule_flagged: float | None = None
    """Fraction of the rows that the other rule flags. Null where `of_rule` is null."""
    saved_to_rule: Interval | None = None
    """Mean cost per row of the other rule, minus this cost. Null without `rule`."""
    totals: CostTotals | None = None
    """The costs of `total_rows` rows. Null on evaluations."""

    def add_totals(self, rows: float) -> None:
        def total(of: Interval) -> Interval:
            ends = {name: getattr(of, name) for name in ("value", "low", "high")}
            return Interval(**{name: end and rows * end for name, end in ends.items()})

        self.totals = CostTotals(
            rows=rows,
            cost=total(self),
            flag_none=rows * self.flag_none,
            flag_all=rows * self.flag_all,
            saved_to_random=total(self.saved_to_random),
            saved_to_rule=None if self.saved_to_rule is None else total(self.saved_to_rule),
        )

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, cost: Any) -> Any:
        if isinstance(cost, dict):
            return cost
        return {**vars(cost), **vars(cost.costs), **cost.a_row._asdict()}


class Cutoff(Resource):
    """A cutoff: a threshold, and the rates that result from flagging every row with at least this score."""

    threshold: FiniteOrNull
    """Lowest score that is flagged. Null: no row is flagged."""
    fpr: Interval
    """Fraction of the negatives that are flagged."""
    tpr: Interval
    """Fraction of the positives that are flagged."""
    precision: Interval
    """Fraction of the flagged rows that are positive, at this `prevalence`."""
    lift: Interval
    """`precision` divided by `prevalence`. Random flagging has a lift of 1."""
    flagged: Interval
    """Fraction of all rows that are flagged, at this `prevalence`."""
    threshold_low: FiniteOrNull
    """Lower end of a confidence interval for the threshold that has the requested rate, or the lowest cost, in the
    population. Null: the data set no limit."""
    threshold_high: FiniteOrNull
    """Upper end of that interval. Null: the data set no limit."""
    prevalence: float
    """Fraction of positives that precision, lift and cost assume. Default: that of the data."""
    tpr_at_fpr: Interval | None
    """The TPR at exactly the requested `fpr`. The interval includes the uncertainty of the threshold. Null if no `fpr`
    was requested."""
    fpr_at_tpr: Interval | None
    """The FPR at exactly the requested `tpr`. Null if no `tpr` was requested."""
    cost: Cost | None
    """Mean cost per row. Null if no costs were given."""


class RateGuarantee(Resource):
    """The guarantee of a threshold for future rows from the same population."""

    rate: Annotated[str, one_of(("fpr", "tpr"))]
    """The guaranteed rate."""
    limit: float
    """The guaranteed limit: the FPR is at most this, or the TPR is at least this."""
    confidence: float
    """Probability, over samples like this one, with which the guarantee holds at least."""
    rows: int
    """Number of rows that the guarantee is based on: negatives for an FPR, positives for a TPR."""
    needed: int
    """Smallest number of these rows with which any threshold can be guaranteed."""
    errors: int
    """Largest number of these rows that the threshold may get wrong: negatives flagged or positives missed."""
    broken: float
    """Upper bound on the probability that the guarantee fails: at most 1 − `confidence`."""


class GuaranteedCutoff(Cutoff):
    """A cutoff, and its guarantee if one was requested."""

    note: str | None = None
    """A caution: the cutoff was chosen on the rows that its rates are from, by an FPR, a TPR or the lowest cost, so
    they are optimistic. Null for a given threshold or fraction of flagged rows, and with a confidence."""

    guarantee: RateGuarantee | None = None
    """The guarantee. Null if no `confidence` was requested."""


class OperatingPoint(OfPart, GuaranteedCutoff):
    """One threshold and its consequences on one part of the data."""


TOGETHER, EACH = "together", "each"


TOGETHER_OR_EACH = (TOGETHER, EACH)


CUTOFFS_BY_GROUP = (
    "Each cutoff applies only to the rows of its group. Check whether a cutoff that depends on "
    "the group is allowed."
)


class GroupGuarantee(Resource):
    """A cutoff for the rows of one group, with a guarantee within that group."""

    value: str | None
    """Value of the column as text. Null: the rows without a value."""
    threshold: float | None
    """Lowest score that is flagged in this group. Null if the group has too few rows."""
    rows: int
    """Number of rows of the group that the guarantee is based on: negatives for an FPR, positives for a TPR."""
    needed: int
    """Smallest number of these rows with which a cutoff can be guaranteed."""
    errors: int | None
    """Largest number of these rows that the cutoff may get wrong. Null without a cutoff."""
    broken: float | None
    """Upper bound on the probability that the guarantee fails in this group. Null without a cutoff."""
    fpr: Interval | None
    """FPR of the cutoff in the group. Null if there is no cutoff, if the group has no negatives, or if their weights
    differ."""
    tpr: Interval | None
    """TPR of the cutoff in the group. Null if there is no cutoff, if the group has no positives, or if their weights
    differ."""


class GuaranteesByGroup(Resource):
    """Cutoffs by group, all with the same guarantee."""

    column: str
    """The column that defines the groups."""
    by_group: Annotated[str, one_of(TOGETHER_OR_EACH)]
    """`together`: all guarantees hold at once with the confidence. `each`: each guarantee holds separately with the
    confidence."""
    threshold: float | None
    """One cutoff whose guarantee holds in every group. Null if a group has too few rows."""
    groups: list[GroupGuarantee]
    """The cutoff of each group."""
    note: str
    """A caution about cutoffs by group."""


class EvaluationOperatingPoint(OfEvaluation, GuaranteedCutoff):
    """One threshold and its consequences on the rows of an evaluation."""

    groups: GuaranteesByGroup | None = None
    """Cutoffs by group. Null unless `by_group` was requested."""


class OperatingPoints(OfPart):
    """Thresholds along the ROC curve of one part of the data, from flagging no row to flagging all rows."""

    level: Level
    exact: bool
    """False if points of the curve were omitted."""
    total_points: int
    """Number of points of the full curve."""
    of_ks: int
    """Index in `points`, from 0, of the point with the largest TPR − FPR on the full curve. If the model ranks better
    than chance, this difference is the KS statistic. Of equal points, the one that flags the fewest rows."""
    least_cost: int | None
    """Index in `points`, from 0, of the point with the lowest cost. Null if no costs were given."""
    of_objective: int | None
    """Index in `points`, from 0, of the best point at the FPR of the objective `tpr`, or at the highest FPR that
    the objective `pauc` counts. Null for other objectives."""
    of_flagged: int | None
    """Index in `points`, from 0, of the best point that flags at most the fraction `flagged` of the rows. Null if
    `flagged` was not given."""
    of_aliases: dict[str, int]
    """Alias → index in `points`, from 0, of the point that flags the same rows. Only aliases with a cutoff; if there
    are more than 20, the most recently moved."""
    probabilities: list[float | None] | None
    """For each entry of `points`, the calibrated probability of a row with exactly this score; null where no row is
    flagged. Null if the model has no calibration."""
    points: list[Cutoff]
    """The thresholds with their rates, from flagging no row to flagging all rows."""


def point_of(point: metrics.OperatingPoint) -> Cutoff:
    return Cutoff.model_validate(point)


def guarantee_of(guarantee: metrics.Guarantee | None) -> RateGuarantee | None:
    return None if guarantee is None else RateGuarantee.model_validate(guarantee)
