"""Evaluations and comparisons over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from app.evaluation import margins
from app.evaluation.amounts import BY_AMOUNT, Amounts
from app.evaluation.checks import CheckName, Evidence
from app.evaluation.groups import BY_GROUP, MAX_PROTECTED, PROTECTED, Groups
from app.evaluation.service import (
    CURVE_POINTS,
    DEFAULT_LEVEL,
    LEVELS,
    MAX_MODELS,
    MAX_WINDOWS,
    MIN_MODELS,
    ComparisonInputs,
    EvaluationInputs,
    Seen,
    seen_in,
    seen_of,
)
from app.http.schemas import (
    GINI,
    KS,
    NULL_IF_TOO_FEW,
    Body,
    Interval,
    Kind,
    Rate,
    Resource,
    Text,
    Timestamp,
    one_of,
)
from app.jobs.kinds import STATUS, STATUSES, status_of
from app.models.schemas import (
    GradedOrder,
    Height,
    MeanArea,
    MeasuredReliability,
    WindowArea,
)
from app.models.service import MAX_METRICS
from app.platform.documents import GradeRows, ListMetrics, ReliabilityPoint
from app.platform.tables import Comparison as ComparisonRow
from app.platform.tables import DatasetKind
from app.platform.tables import Evaluation as EvaluationRow
from core.base.target import MAX_WEIGHT
from core.metrics.window import CUTOFFS, MAX_GROUPS

LEVEL = Field(
    default=DEFAULT_LEVEL,
    ge=LEVELS[0],
    le=LEVELS[1],
    description="Confidence level of the intervals.",
)


class NewWindow(Body):
    """A window of false positive rates."""

    fpr_min: Rate = 0.0
    fpr_max: Rate


class Fit(Resource):
    """Whether a dataset can be used with a model."""

    model: str = Field(description="The model, as the request named it.")
    dataset_id: str
    fits: bool
    reason: str | None = Field(
        description="What the dataset lacks, in words that follow “the dataset”. Null if it fits."
    )


class Fits(Resource):
    """Which models and datasets fit each other: an entry for each pair."""

    data: list[Fit]


Windows = Annotated[list[NewWindow], Field(min_length=1, max_length=MAX_WINDOWS)]


def pairs_of(windows: list[NewWindow]) -> list[tuple[float, float]]:
    """The windows as the service takes them."""
    return [(float(window.fpr_min), float(window.fpr_max)) for window in windows]


def same_fields(shape: type[Resource]) -> set[str]:
    """What a row has as its shape does."""
    return shape.model_fields.keys() - {"status", "metrics", "error"}


class RateOrThreshold(Body):
    """The cut that an evaluation is judged at. Pass one of the three."""

    fpr: Rate | None = Field(
        default=None,
        description="The model's cut with at most this FPR, chosen on its validation rows.",
    )
    tpr: Rate | None = Field(
        default=None,
        description="The model's cut with at least this TPR, chosen on its validation rows.",
    )
    threshold: float | None = Field(
        default=None, description="Flag every row whose score is at least this."
    )

    def given(self) -> dict[str, float]:
        """What is not null, by its name."""
        return {name: float(value) for name, value in self if value is not None}


Cutoffs = Literal["equal_fpr", "equal_tpr"]

Cost = Annotated[float, Field(ge=0, le=MAX_WEIGHT)]


class Price(Body):
    """What one row costs: `fixed` + `rate` times its amount. Each is 0 or at least 1e-100."""

    fixed: Cost = 0.0
    rate: Cost = Field(default=0.0, description="Needs `amount`.")


class NewCosts(Body):
    """What decisions cost, in the unit of the amounts. Something must speak for flagging a row, and something against
    it.
    """

    false_positive: Price = Field(
        default=Price(), description="Cost of flagging a negative, besides its review."
    )
    false_negative: Price = Field(
        default=Price(), description="Cost of a positive that is not flagged."
    )
    benefit: Price = Field(default=Price(), description="What a flagged positive brings in.")
    review: Cost = Field(default=0.0, description="Cost of each flagged row.")


AMOUNT = Field(
    default=None,
    description="A column of numbers from 0 on, without missing values: what each row is worth. The models need not "
    "use it.",
)


def amounts_of(column: str | None, costs: NewCosts | None) -> Amounts:
    """The column of amounts and the costs as the service takes them."""
    return Amounts(column, None if costs is None else costs.model_dump())


class EvaluationRequest(Body):
    """A model, and the dataset to evaluate it on."""

    model: Text = Field(description="The model: id, name, name:version or name@alias.")
    dataset_id: Text
    windows: Windows | None = Field(
        default=None,
        description="Windows of partial AUCs. Null: [0, 0.05] and the window of the model's objective. Not for pairs.",
    )
    level: float = LEVEL
    group_by: Text | None = Field(
        default=None,
        description="A column of the dataset whose values are compared as groups: categories, booleans or few numbers. "
        f"At most {MAX_GROUPS} groups. The model need not use it. Rows without a value are a group of their own.",
    )
    at: RateOrThreshold | None = Field(
        default=None,
        description="The cut whose rates are measured. Default: the present cut of the alias, if `model` is "
        "name@alias and the alias keeps a promise; otherwise the cut of a model of the objective `tpr`.",
    )
    cutoffs: Cutoffs | None = Field(
        default=None,
        description="Also choose a cut for each group, on these rows, with one FPR (`equal_fpr`) or one TPR "
        "(`equal_tpr`) within each group: the rate of `at`, or that of all rows at the cut.",
    )
    protected: Annotated[list[Text], Field(max_length=MAX_PROTECTED)] | None = Field(
        default=None,
        description="Columns by whose groups the model is compared, too, each as `group_by` does it; many numbers make "
        "four bands. The p-values are adjusted for all of these columns together. Null: the columns whose names say "
        "that law often protects what they hold (`columns[].protected` of the dataset). An empty list: none.",
        examples=[["sex"]],
    )
    amount: Text | None = AMOUNT
    costs: NewCosts | None = Field(
        default=None,
        description="What errors cost. The cut of least cost is chosen on these rows, and judged on rows held out.",
    )

    def to_request(self) -> EvaluationInputs:
        """What the service takes."""
        windows = None if self.windows is None else pairs_of(self.windows)
        at = None if self.at is None else self.at.given()
        groups = Groups(self.group_by, at, self.cutoffs, self.protected)
        amounts = amounts_of(self.amount, self.costs)
        return EvaluationInputs(
            self.model, self.dataset_id, windows, float(self.level), groups, amounts
        )


class EvaluationCutoff(Resource):
    """The cut that the rows were judged at, and where it comes from."""

    threshold: float | None = Field(description="Null: no row is flagged.")
    source: Annotated[str, one_of(("at", "alias", "objective"))] = Field(
        description="`at`: the request. `alias`: the promise of the alias, at the time of the request. "
        "`objective`: the model's objective `tpr`."
    )
    alias: str | None = Field(description="The alias, if the cut is an alias's.")


class EvaluatedCutoff(Resource):
    """The rates on these rows at the threshold of `cutoff`."""

    threshold: float | None
    fpr: Interval
    tpr: Interval
    precision: Interval
    lift: Interval


class Totals(Resource):
    """Total weight of each class, and its effective number of independent observations."""

    positive: float
    negative: float
    positive_effective: float = Field(
        description="Effective number of positive rows, given the weights. With a group column: effective number of "
        "groups."
    )
    negative_effective: float


class CalibrationDrift(MeasuredReliability):
    """How good the probabilities of a model's calibration are on later rows."""

    version: int = Field(description="The version of the calibration that was served.")


class NetBenefit(Resource):
    """The net benefit of acting on the rows with a probability of at least `threshold`, in true positives per row: the
    fraction of true positives, minus that of false positives times threshold / (1 - threshold) (Vickers & Elkin 2006).
    Acting on no row has 0.
    """

    threshold: float = Field(description="In (0, 1).")
    flagged: float = Field(description="Fraction of the rows with such probabilities.")
    benefit: Interval = Field(description="Above 0: better than acting on no row.")
    flag_all: Interval = Field(description="Net benefit of acting on every row.")
    over_all: Interval = Field(
        description="`benefit` minus `flag_all`, paired: above 0, better than acting on every row."
    )


class EvaluatedCurve(Resource):
    """Quality of the ranking on rows with one label."""

    auc: Interval
    gini: Interval | None = Field(
        default=None, description=GINI + " Null for evaluations that were made before it was added."
    )
    ks: float | None = Field(
        default=None, description=KS + " Null for evaluations that were made before it was added."
    )
    ks_interval: Interval | None = Field(
        default=None,
        description="`ks` with an interval. Its lower end is from thresholds that were chosen on other rows. "
        "Null for evaluations that were made before it was added.",
    )
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: EvaluatedCutoff | None = Field(
        description="At the threshold of `cutoff`; null without one."
    )
    positives: int
    negatives: int
    totals: Totals
    groups: int | None = Field(
        description="Number of groups, if the dataset has a column of groups or queries. The intervals then "
        "allow for correlation within a group."
    )
    ties: float = Field(
        description="Fraction of the pairs of a positive and a negative that have equal scores."
    )
    calibration: CalibrationDrift | None = Field(
        default=None,
        description="How good the model's probabilities are on these rows. Null if it had no calibration.",
    )
    decision_curve: list[NetBenefit] | None = Field(
        default=None,
        description="Net benefit by threshold probability: 0.01 to 0.50, then 0.55 to 0.95. Each interval is for one "
        "threshold. The rows must have the prevalence of those that decisions are made on. Null if the model had no "
        "calibration, and for evaluations that were made before it was added.",
    )
    lists: ListMetrics | None = Field(
        default=None,
        description="Figures within queries. The figures above are of all rows as one list. Null without queries.",
    )


class EvaluatedGrades(Resource):
    """Quality of the ranking on rows with grades."""

    grades: list[GradeRows] = Field(
        description="The rows of each grade, without those of weight 0."
    )
    lists: ListMetrics | None = Field(description="Figures within queries. Null without queries.")
    order: GradedOrder | None = Field(
        description="Figures of all rows as one list. Null with queries."
    )


class GroupMetric(Interval):
    """A figure of one group, or the reason why it has none."""

    reason: str | None = Field(
        description="Null if there is a figure. Else what the group lacks, such as rows of a class."
    )


class GroupArea(GroupMetric):
    """Partial AUC within one group, over a window of FPR within the group."""

    fpr_min: float
    fpr_max: float


class GroupCutoff(Resource):
    """A group's own cut, chosen on these same rows: see `note`. The intervals do not include its choice."""

    threshold: float | None = Field(description="Null: no row is flagged.")
    threshold_low: float | None = Field(
        description="The cut of the population lies between this and `threshold_high`. Null: the rows set no limit."
    )
    threshold_high: float | None
    fpr: Interval
    tpr: Interval


class GroupCalibration(Resource):
    """The positives that the served probabilities predict in a group, and those that there are."""

    predicted: float | None = Field(description="Mean probability. Null if no row has a weight.")
    observed: GroupMetric = Field(description="Fraction of positives.")
    in_the_large: GroupMetric = Field(
        description="Log odds to add to every probability so that as many positives are predicted as there are. 0 lies "
        "outside of the interval: the group's probabilities are too low (above 0) or too high."
    )
    points: list[ReliabilityPoint] = Field(
        description="The group's reliability diagram, at most 11 points. Empty where `in_the_large` has none."
    )


class EvaluatedGroup(Resource):
    """The counts and figures of one group."""

    value: str | None = Field(
        description="Value of the column as text. Null: the rows without a value."
    )
    rows: int = Field(description="Number of rows of weight above 0.")
    positives: int
    negatives: int
    auc: GroupMetric
    pauc: list[GroupArea]
    tpr: GroupMetric | None = Field(
        description="Fraction of the group's positives at or above `threshold`. Null without a cut."
    )
    fpr: GroupMetric | None = Field(
        description="Fraction of the group's negatives at or above `threshold`. Null without a cut."
    )
    cutoff: GroupCutoff | None = Field(description="Null unless `cutoffs` was asked for.")
    cutoff_reason: str | None = Field(description="Why the group has no cut of its own.")
    calibration: GroupCalibration | None = Field(
        default=None, description="Null if the model had no calibration."
    )


class CrossGroupAuc(GroupMetric):
    """xAUC: the probability that a positive of one group scores above a negative of another; a tie counts half
    (Kallus & Zhou 2019).
    """

    positives_of: str | None = Field(description="The group of the positives.")
    negatives_of: str | None = Field(description="The group of the negatives.")


GroupMeasure = Annotated[str, one_of(("auc", "pauc", "tpr", "fpr"))]
TestedMeasure = Annotated[str, one_of(("auc", "pauc", "tpr", "fpr", "calibration"))]


class GroupTest(Resource):
    """A joint test that a figure is the same in all groups that have it."""

    of: TestedMeasure = Field(
        description="`calibration` is the calibration in the large: the groups' probabilities are wrong by the same "
        "log odds, or right."
    )
    fpr_min: float | None = Field(description="Of a partial AUC; otherwise null.")
    fpr_max: float | None
    groups: int = Field(description="Number of groups that have the figure.")
    p_value: float | None = Field(description="Null if fewer than two groups have the figure.")
    adjusted_p_value: float | None = Field(
        description="p-value adjusted by Holm over all tests shown here."
    )
    differs: bool | None = Field(
        description="True if the adjusted p-value is below 1 - level. Null without a test."
    )
    words: str


class WorstGroup(Interval):
    """The lowest area or TPR, or the greatest FPR, among the groups that have the figure. The value is that of the
    group observed to be worst; the interval is for the worst group of the population, whichever it is.
    """

    of: GroupMeasure
    fpr_min: float | None
    fpr_max: float | None
    value_of: str | None = Field(description="The group observed to be worst.")


class EvaluatedGroups(Resource):
    """Quality of the ranking by groups of rows."""

    column: str
    threshold: float | None = Field(description="The cut that all groups are judged at, if any.")
    cutoffs: Annotated[str, one_of(CUTOFFS)] | None = Field(
        description="How the groups' own cuts were chosen. Null: there are none."
    )
    rate: float | None = Field(
        description="The FPR or TPR within each group that its own cut aims at."
    )
    note: str | None = Field(description="What must be known of the groups' own cuts.")
    groups: list[EvaluatedGroup] = Field(
        description="Ascending by value; the rows without one are last."
    )
    xauc: list[CrossGroupAuc] = Field(
        description="Every group's positives against every group's negatives; with its own negatives it is the AUC."
    )
    tests: list[GroupTest]
    worst: list[WorstGroup] = Field(description="Empty if fewer than two groups have a figure.")


Over = Annotated[str, one_of(("rows", "negatives", "amount_of_negatives"))]


class ValueRecall(Interval):
    """The share of the positives' amount that is caught."""

    share: float = Field(description="The share of the rows, or of the negatives, that is flagged.")
    threshold: float = Field(
        description="The lowest score among the flagged. Of a tie there, a part is flagged."
    )


class EvaluatedValue(Resource):
    """How much of the positives' amount the ranking catches."""

    over: Over = Field(
        description="What is flagged for it: a share of all rows, of the negatives (FPR), or of the negatives' amount."
    )
    area: Interval | None = Field(
        description="Mean height of the curve. Scores that say nothing have 0.5."
    )
    recalls: list[ValueRecall]
    reason: str | None = Field(description="Why there is no figure: all amounts of a class are 0.")


class ValuePoint(Resource):
    """A point of the value curves."""

    threshold: float | None = Field(description="Null: no row is flagged.")
    rows: float = Field(description="Share of the rows with such scores.")
    negatives: float
    amount_of_negatives: float | None
    value: float = Field(description="Share of the positives' amount.")


class DecisionCost(Resource):
    """What a way to decide costs per row, on rows that did not choose it."""

    flagged: float = Field(description="Fraction of the rows that is flagged.")
    cost: Interval = Field(
        description="Mean cost of a row. Below 0 if benefits outweigh the costs."
    )
    saved_to_none: Interval = Field(
        description="What flagging no row costs more, per row: above 0 if this way is cheaper."
    )
    saved_to_all: Interval = Field(description="The same of flagging every row.")


class LeastCost(Resource):
    """The cut of least cost on these rows."""

    threshold: float | None = Field(
        description="Flag every row whose score is at least this. Null: no row."
    )
    flagged: float = Field(description="Fraction of the rows with such scores.")
    in_sample: float = Field(
        description="Mean cost of a row on the rows that chose the cut: too low."
    )
    held_out: DecisionCost | None = Field(
        description="Each part of the rows is judged by the cut that the others choose. Null if all rows are one group."
    )
    parts: int
    threshold_low: float | None = Field(
        description="The least cut that the parts have chosen. Null: no row is flagged."
    )
    threshold_high: float | None = Field(description="The greatest of these. Null: no row.")


class ProbabilitySaving(Interval):
    """What the cut costs more per row, held out, than deciding by probability: above 0 if probabilities cost less."""

    p_value: float


class EvaluatedCosts(Resource):
    """What errors cost by the ranking, per row."""

    rows: float = Field(
        description="Weight of all rows. A cost per row times this is that of all rows."
    )
    flag_none: Interval = Field(description="Mean cost of a row if no row is flagged.")
    flag_all: Interval
    least: LeastCost
    threshold: float | None = Field(
        description="The cut of `at`, or of a model of the objective `tpr`."
    )
    at: DecisionCost | None = Field(
        description="At `threshold`, which these rows did not choose. Null if there is none."
    )
    by_probability: DecisionCost | None = Field(
        description="Each row is flagged if that costs less on average, by its own probability and amount. Null if the "
        "model has no calibration."
    )
    probability_saves: ProbabilitySaving | None
    note: str = Field(description="Which rows chose the cut, and which judge it.")


class EvaluatedAmounts(Resource):
    """The ranking by money."""

    column: str | None = Field(description="The column of amounts. Null if all costs are fixed.")
    amount_of_positives: float | None = Field(description="Their total, weighted.")
    effective: float | None = Field(
        description="Effective number of positives by amount: few if a few are most of the total. Intervals then are "
        "wide."
    )
    values: list[EvaluatedValue]
    curve: list[ValuePoint] = Field(
        description="At most 100 points of the value curves. Empty in a list."
    )
    costs: EvaluatedCosts | None = Field(description="Null if no `costs` were asked for.")


class EvaluatedPairs(Resource):
    """Quality of the order of pairs of items."""

    pair_order: Interval
    misrank_fraction: float
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float


class EvaluatedLabel(Resource):
    """Quality of the ranking by one label's scores."""

    label: str
    auc: Interval | None = Field(description="Null if the dataset has too few rows of a class.")
    pauc: list[WindowArea]
    positives: int
    negatives: int


class EvaluatedLabels(Resource):
    """Quality of the ranking of a model with several labels."""

    labels: list[EvaluatedLabel]
    evaluated: int = Field(
        description="Number of labels that have an AUC. The means are over these."
    )
    mean_auc: float
    mean_pauc: list[MeanArea]


class AreaDrift(Resource):
    """Change of one figure between the model's validation and this dataset: two independent samples."""

    of: Annotated[str, one_of(("auc", "pauc", "pair_order", "list", "grades", "prevalence"))] = (
        Field(
            description="`auc`, `pauc`, `pair_order`, `list` (a figure within queries), `grades` or `prevalence`."
        )
    )
    metric: str | None = Field(
        default=None, description="The name of the figure, such as ndcg@10; null for areas."
    )
    label: str | None = Field(
        default=None, description="The label, for a model with several labels."
    )
    fpr_min: float | None = None
    fpr_max: float | None = None
    before: Interval
    after: Interval
    change: Interval = Field(
        description="`after` minus `before`, with the interval of Zou and Donner."
    )
    p_value: float
    adjusted_p_value: float = Field(
        description="p-value adjusted by Holm over all tests of this drift."
    )
    changed: bool
    words: str


NULL_WITHOUT_TEST = "Null without a test; `reason` says why."
WHY_NO_TEST = (
    "Why there is no test. Either neighbouring rows of the table are alike and no column of times orders them, or the "
    "rows are too few for the serial dependence that they have in time. Null with a test."
)


class ScoreDrift(Resource):
    """Change of the scores of one class between the model's validation and this dataset."""

    of: Annotated[str, one_of(("positives", "negatives"))] = Field(
        description="`positives` or `negatives`."
    )
    distance: float = Field(
        description="Kolmogorov-Smirnov distance between the two samples of scores, from 0 to 1; `p_value` is that of "
        "its test."
    )
    higher: float = Field(
        description="Probability that a score on this dataset is greater than one of the validation; a tie counts half."
    )
    psi: Interval | None = Field(
        default=None,
        description="Population stability index over tenths of the scores of the validation, corrected for chance. "
        "Null without a test.",
    )
    p_value: float | None = Field(description=NULL_WITHOUT_TEST)
    adjusted_p_value: float | None = Field(description=NULL_WITHOUT_TEST)
    changed: bool | None = Field(description=NULL_WITHOUT_TEST)
    reason: str | None = Field(default=None, description=WHY_NO_TEST)
    words: str


class ProbabilityRange(Resource):
    """A range of probabilities, and whether more or fewer rows there are positive than the probabilities say."""

    low: float
    high: float
    observed: Annotated[str, one_of(("more", "fewer"))] = Field(description="`more` or `fewer`.")


class ProbabilityDrift(Interval):
    """How far the model's probabilities are from what has happened on this dataset."""

    of: Annotated[str, one_of(("in_the_large", "slope", "shape"))] = Field(
        description="`in_the_large`: the constant that the log odds lack, 0 if as many rows are positive as expected. "
        "`slope`: of the log odds, 1 if the probabilities are neither too extreme nor too moderate. `shape`: root mean "
        "square distance of the log odds from a line, 0 if no error changes its sign along the probabilities."
    )
    predicted: float = Field(description="Mean probability.")
    observed: float = Field(description="Fraction of positives.")
    ranges: list[ProbabilityRange] | None = Field(
        default=None,
        description="Of `shape`: where the observed fraction leaves its consistency band. Null for others.",
    )
    p_value: float = Field(
        description="It allows for the error of the calibration itself, which was learnt on the validation rows; the "
        "interval is of these rows alone."
    )
    adjusted_p_value: float
    changed: bool
    words: str


class FeatureBin(Resource):
    """A bin of a feature's values, and the fraction of the rows that it has."""

    of: Annotated[str, one_of(("values", "category", "rare", "new", "missing"))] = Field(
        description="`values`: numbers above `low` and up to `high`; dates as seconds since 1970. `category`: one "
        "category. `rare`: all other categories of the training table. `new`: categories that it does not have. "
        "`missing`: no value."
    )
    low: float | None = Field(description="Null: no limit.")
    high: float | None = Field(description="Null: no limit.")
    category: str | None
    before: float = Field(description="Fraction of the rows of the training table.")
    after: float = Field(description="Fraction of the rows here.")


class FeatureDrift(Resource):
    """How far the values of a feature are from those of the training table, over tenths of its numbers or over its most
    frequent categories; missing values have a bin of their own.
    """

    name: str
    importance: float | None = Field(
        description="Share of the feature in the importance of all. Null if that was not measured."
    )
    psi: Interval | None = Field(
        description="Population stability index, corrected for chance: below 0.1 little, from 0.25 much. Null "
        "without a test."
    )
    distance: float = Field(description="Total variation distance over the bins, from 0 to 1.")
    p_value: float | None = Field(description=NULL_WITHOUT_TEST)
    adjusted_p_value: float | None = Field(description=NULL_WITHOUT_TEST)
    changed: bool | None = Field(description=NULL_WITHOUT_TEST)
    reason: str | None = Field(default=None, description=WHY_NO_TEST)
    words: str
    bins: list[FeatureBin] | None = Field(
        default=None, description="The bins of the first 20 features. Null for others."
    )


class Drift(Resource):
    """What has changed since the model's validation. `changed` of a test: beyond chance, by the adjusted p-value, and
    of a size that matters: of a psi from 0.1, or of log odds or a slope by 0.1. An area has no such least size.
    """

    level: float = Field(
        description="Confidence level of the model's intervals. The tests use 1 - level."
    )
    changed: bool = Field(
        description="True if a test has changed; of the features one that has at least 1 % of the importance."
    )
    summary: str
    areas: list[AreaDrift]
    prevalence: AreaDrift | None = Field(
        default=None, description="The fraction of positives. Null without one label."
    )
    probabilities: list[ProbabilityDrift] = Field(
        default=[], description="Empty if the model has no calibration."
    )
    features: list[FeatureDrift] | None = Field(
        default=None,
        description="At most 100, those first that matter most, by importance and size. Null if the training table is "
        "gone.",
    )
    scores: list[ScoreDrift] = Field(
        description="Change of the scores. If the scores change but the areas do not, choose new thresholds."
    )


SEEN = Annotated[str, one_of(get_args(Seen))]
SEEN_WORDS = (
    "What the model has seen of these rows. `trained`: it was trained on rows of the dataset, and its figures are too "
    "optimistic. `validated`: it was validated on rows of the dataset. `overlaps`: too many rows equal rows that "
    "it was trained on, as a warning says. `new`: none of these. "
)


class Evaluation(Resource):
    """The quality of a model on a dataset. It stays when the model or the dataset is deleted."""

    id: str
    status: Annotated[str, one_of(STATUSES)] = Field(description=STATUS)
    job_id: str
    model_id: str
    model_name: str
    model_version: int
    kind: Kind = Field(description="Kind of the dataset.")
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None = Field(description="SHA-256 of the content of that version.")
    windows: list[NewWindow]
    level: float
    group_by: str | None = Field(default=None, description="The column that names the groups.")
    at: RateOrThreshold | None = Field(default=None, description="The cut that was asked for.")
    cutoff: EvaluationCutoff | None = Field(
        default=None,
        description="The cut that the rows were judged at. Null if there is none, and until the evaluation is ready.",
    )
    cutoffs: Annotated[str, one_of(CUTOFFS)] | None = Field(
        default=None, description="The groups' own cuts that were asked for."
    )
    amount: str | None = Field(default=None, description="The column of amounts.")
    costs: NewCosts | None = Field(default=None, description="The costs that were asked for.")
    seen: SEEN | None = Field(
        default=None,
        description=f"{SEEN_WORDS}Null until that is known, and if the training table was gone by then.",
    )
    warnings: list[str]
    metrics: EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | EvaluatedGrades | None = Field(
        description="The metrics; their form depends on `kind`. Null until the evaluation is ready."
    )
    groups: EvaluatedGroups | None = Field(
        default=None,
        description="The metrics by group. Null without `group_by`, and until the evaluation is ready.",
    )
    protected: list[EvaluatedGroups] = Field(
        default_factory=list, description="The same by each protected column."
    )
    amounts: EvaluatedAmounts | None = Field(
        default=None,
        description="The value that is caught, and what errors cost. Null without `amount` and `costs`, and until the "
        "evaluation is ready.",
    )
    drift: Drift | None = Field(
        description="Null if the model has no validation, or if it is not independent of these rows; a warning says "
        "which."
    )
    error: dict[str, Any] | None = Field(description="The problem, if the job failed.")
    created_at: Timestamp


_METRICS: dict[str, type[EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | EvaluatedGrades]] = {
    DatasetKind.BIPARTITE: EvaluatedCurve,
    DatasetKind.PREFERENCES: EvaluatedPairs,
    DatasetKind.MULTILABEL: EvaluatedLabels,
    DatasetKind.GRADED: EvaluatedGrades,
}


def _cutoff_of(row: EvaluationRow) -> EvaluationCutoff | None:
    point = (row.metrics or {}).get("operating_point")
    if point is None:
        return None
    spec, alias, source = row.job.spec, None, "objective"
    if "at" in spec:
        source = "at"
    elif guaranteed := spec.get("alias_cutoff"):
        source, alias = "alias", guaranteed["alias"]
    return EvaluationCutoff(threshold=point["threshold"], source=source, alias=alias)


def evaluation_of(row: EvaluationRow) -> Evaluation:
    """Show a row with the state of its job."""
    kept = same_fields(Evaluation) - {
        *("group_by", "at", "cutoff", "cutoffs", "groups", "protected"),
        *("amount", "costs", "amounts", "seen"),
    }
    shown = {name: getattr(row, name) for name in kept}
    metrics = None if row.metrics is None else _METRICS[row.kind].model_validate(row.metrics)
    spec = row.job.spec
    grouping, money = spec.get("grouping") or {}, spec.get("amounts") or {}
    asked = {
        "group_by": grouping.get("column"),
        "at": spec.get("at"),
        "cutoff": _cutoff_of(row),
        "cutoffs": grouping.get("cutoffs"),
        "groups": (row.metrics or {}).get(BY_GROUP),
        "protected": (row.metrics or {}).get(PROTECTED, []),
        "amount": money.get("column"),
        "costs": money.get("costs"),
        "amounts": (row.metrics or {}).get(BY_AMOUNT),
        "seen": seen_of(row),
    }
    return Evaluation.model_validate(
        shown | asked | {"status": status_of(row), "metrics": metrics, "error": row.job.error}
    )


def evaluation_in_list(row: EvaluationRow) -> Evaluation:
    """Show a row as a list does: without the points of its curves."""
    shown = evaluation_of(row)
    if isinstance(shown.metrics, EvaluatedCurve) and shown.metrics.calibration is not None:
        shown.metrics.calibration.points = []
    for found in [*([] if shown.groups is None else [shown.groups]), *shown.protected]:
        for group in found.groups:
            if group.calibration is not None:
                group.calibration.points = []
    if shown.amounts is not None:
        shown.amounts.curve = []
    return shown


class ModelCheck(Resource):
    """One question about a model, and the answer of what is stored."""

    name: Annotated[str, one_of(get_args(CheckName))] = Field(
        description="`ranks`: its validation shows that it ranks better than chance. `beats_baselines`: it ranks "
        "significantly better than each control. `probabilities`: they agree with what happened, on the newest rows "
        "that were evaluated with this calibration, else on held-out rows of the calibration. `stable`: its newest "
        "evaluation on new rows found no change, and excludes a drop beyond `margin`. `groups`: no test of its newest "
        "evaluation by groups found a difference, and intervals exclude those beyond `margin`."
    )
    passed: bool | None = Field(
        description="Null if nothing stored tells it, or if the rows are too few to decide; `words` say what is "
        "missing."
    )
    words: str
    evaluation_id: str | None = Field(description="The evaluation that told it, if one did.")
    evidence: Annotated[str, one_of(get_args(Evidence))] | None = Field(
        description="The rows that it is based on. `validation`: of the training. `cross_fitted`: each row of the "
        "calibration with a calibration of other rows, which does not test later rows. `later_rows`: the last time "
        "window of the validation, with a calibration of the windows before. `evaluation`: `evaluation_id`. Null if "
        "there are none."
    )
    margin: float | None = Field(
        description="The greatest difference that counts as none. `stable`: drop of the AUC, C-index or share of "
        f"ordered pairs, {margins.AREA:g} or less for weak models. `probabilities`: {margins.LOG_ODDS:g} in log odds, "
        f"of the level, the slope and the shape. `groups`: {margins.BETWEEN_GROUPS:g} for AUC, TPR and FPR of two "
        f"groups, and {margins.LOG_ODDS:g} for the log odds of their calibration in the large. Null for other checks."
    )
    more_rows: int | None = Field(
        description="If the rows are too few: how many more decide with probability 0.8, if nothing has changed and "
        "their variance stays as it is. Pairs, for a model of pairs. Null if no number of rows does, or if it is not "
        "known."
    )


class ModelChecks(Resource):
    """May the model be used? What is stored about it says, in five checks."""

    model_id: str
    passed: bool | None = Field(
        description="True if all checks passed, false if one failed, else null."
    )
    checks: list[ModelCheck]


class ComparisonRequest(Body):
    """Models, and the dataset to compare them on."""

    models: Annotated[list[Text], Field(min_length=MIN_MODELS, max_length=MAX_MODELS)] = Field(
        description="The models, each as id, name, name:version or name@alias."
    )
    dataset_id: Text
    windows: Windows = Field(
        default=[NewWindow(fpr_max=1.0)],
        description="Windows of false positive rates; [0, 1] is the whole AUC.",
    )
    metrics: Annotated[list[Text], Field(max_length=MAX_METRICS)] = Field(
        default_factory=list,
        description="Other figures to compare by, each by its name in …/metric-estimates, such as `average_precision`, "
        "`precision@100` or `two_way:0.1,0.8`. Default: none.",
    )
    level: float = LEVEL
    amount: Text | None = AMOUNT
    costs: NewCosts | None = Field(
        default=None,
        description="What errors cost: compare the models by it, too, each at its own cut of least cost.",
    )

    def to_request(self) -> ComparisonInputs:
        """What the service takes."""
        return ComparisonInputs(
            self.models,
            self.dataset_id,
            pairs_of(self.windows),
            float(self.level),
            self.metrics,
            amounts_of(self.amount, self.costs),
        )


class ComparedModel(Resource):
    """One of the models, under its name when the comparison was requested."""

    model_id: str
    name: str
    version: int
    seen: SEEN | None = Field(
        default=None,
        description=f"{SEEN_WORDS}Null until that is known, and if the training table was gone by then.",
    )


class ComparedValue(Interval):
    """The area of one model over a window, divided by the window's width."""

    model_id: str


class ComparedPair(Resource):
    """Area of `first` minus area of `second`, on the same rows."""

    first: str = Field(description="Id of a model.")
    second: str
    value: float
    low: float
    high: float
    p_value: float | None = Field(description=NULL_IF_TOO_FEW)
    adjusted_p_value: float | None = Field(
        description="p-value adjusted by Holm over all pairs and windows. Null without `p_value`."
    )


SURE = 0.05
"""The greatest adjusted p-value of a difference by which one model is better than another."""


class _Compared(Resource):
    """Models by one number, greater is better; the last field is computed from the differences."""

    differences: list[ComparedPair]
    winner: str | None = Field(
        default=None,
        description="Id of the model that is better than every other one, each difference with an adjusted p-value of "
        f"at most {SURE}. Null if there is none.",
    )

    @model_validator(mode="after")
    def _name_winner(self) -> _Compared:
        """Name the winner: a model that loses no pair, and wins each surely."""
        pairs = [
            *((each.first, each.value, each) for each in self.differences),
            *((each.second, -each.value, each) for each in self.differences),
        ]
        for model in dict.fromkeys(model for model, _, _ in pairs):
            own = [(by, each) for one, by, each in pairs if one == model]
            p_values = [each.adjusted_p_value for _, each in own]
            sure = all(p_value is not None and p_value <= SURE for p_value in p_values)
            if sure and all(by > 0.0 for by, _ in own):
                self.winner = model
        return self


class ComparedWindow(_Compared):
    """The areas of the models over one window, and their differences."""

    fpr_min: float
    fpr_max: float
    values: list[ComparedValue]
    differences: list[ComparedPair]
    p_value: float | None = Field(
        description=f"Joint p-value of the hypothesis that all areas over this window are equal. {NULL_IF_TOO_FEW}"
    )


class ComparedMetric(_Compared):
    """The models by one figure, and their differences."""

    metric: str = Field(description="The name of the figure.")
    values: list[ComparedValue]
    differences: list[ComparedPair] = Field(
        description="The adjusted p-values are Holm's over all pairs and figures, apart from the windows."
    )
    p_value: float | None = Field(
        description="Joint p-value of the hypothesis that all models have the same figure. Null for an area over a "
        "window that holds fewer than 3 effective negatives."
    )


class ComparedCost(LeastCost):
    """What errors cost by one model, at its own cut of least cost."""

    model_id: str


class ComparedCostPair(Resource):
    """Cost per row of `first` minus that of `second`, each held out: below 0 if `first` costs less."""

    first: str = Field(description="Id of a model.")
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float = Field(description="p-value adjusted by Holm over all pairs.")


class ComparedCosts(Resource):
    """The models by what their errors cost."""

    models: list[ComparedCost]
    differences: list[ComparedCostPair]


class ComparedLists(ComparedMetric):
    """The models by the mean over the queries of one figure of lists. The tests are paired by query."""

    queries: int = Field(description="Number of queries in which it has a value.")
    skipped: int = Field(description="Number of queries in which it has none.")


class ComparedPoint(Resource):
    """A point of a ROC curve."""

    fpr: float
    tpr: float


class ComparedCurve(Resource):
    """The ROC curve of one model on the compared rows."""

    model_id: str
    points: list[ComparedPoint] = Field(
        description=f"At most {CURVE_POINTS} points, from (0, 0) to (1, 1)."
    )


class ComparisonResult(Resource):
    """The result of a comparison."""

    positives: int
    negatives: int
    groups: int | None = Field(
        description="Number of groups, if the dataset has a group column. The tests then allow for correlation within "
        "a group."
    )
    n_tests: int = Field(
        description="Number of tests: pairs of models times the windows that have p-values."
    )
    p_value: float | None = Field(
        description="Joint p-value of the hypothesis that all areas are equal in every window that has p-values. Null "
        "if none has."
    )
    windows: list[ComparedWindow]
    metrics: list[ComparedMetric] = Field(
        default_factory=list, description="The comparison by each of the `metrics` of the request."
    )
    costs: ComparedCosts | None = Field(
        default=None, description="The comparison by costs. Null if none were asked for."
    )
    lists: list[ComparedLists] = Field(
        default_factory=list,
        description="The comparison within queries, by `auc`, `ndcg@10` and `map`. Empty without a query column.",
    )
    curves: list[ComparedCurve] = Field(
        default_factory=list,
        description="The ROC curve of each model on these rows. Empty in a list.",
    )


class Comparison(Resource):
    """A comparison of models on one dataset. It stays when a model or the dataset is deleted."""

    id: str
    status: Annotated[str, one_of(STATUSES)] = Field(description=STATUS)
    job_id: str
    models: list[ComparedModel]
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None = Field(description="SHA-256 of the content of that version.")
    windows: list[NewWindow]
    level: float
    warnings: list[str] = Field(
        description="Warnings; one names the models that were trained on rows of the dataset."
    )
    amount: str | None = Field(default=None, description="The column of amounts.")
    costs: NewCosts | None = Field(default=None, description="The costs that were asked for.")
    result: ComparisonResult | None = Field(description="Null until the comparison is ready.")
    error: dict[str, Any] | None = Field(description="The problem, if the job failed.")
    created_at: Timestamp


def comparison_of(row: ComparisonRow, *, curves: bool = True) -> Comparison:
    """Show a row with the state of its job; its curves only if they are asked for."""
    kept = same_fields(Comparison) - {"amount", "costs", "models"}
    shown = {name: getattr(row, name) for name in kept}
    if not curves and row.result is not None:
        shown["result"] = row.result | {"curves": []}
    money = row.job.spec.get("amounts") or {}
    models = [
        ComparedModel(
            model_id=one.model_id,
            name=one.name,
            version=one.version,
            seen=seen_in(row, one.model_id),
        )
        for one in row.models
    ]
    asked = {"amount": money.get("column"), "costs": money.get("costs"), "models": models}
    return Comparison.model_validate(
        shown | asked | {"status": status_of(row), "error": row.job.error}
    )


def comparison_in_list(row: ComparisonRow) -> Comparison:
    """Show a row as a list does: without the points of the curves."""
    return comparison_of(row, curves=False)
