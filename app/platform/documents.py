"""The JSON documents in database columns, each declared once, for storage and for responses.

A class with `@described` has below each key its description, for OpenAPI. A document has a second class in the schemas
of its domain only if responses show less of it, or another form.

Never change a stored key: old rows must stay readable. `NotRequired` marks keys that only some kinds or versions have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, with_config
from pydantic.json_schema import WithJsonSchema
from typing_extensions import TypedDict  # Pydantic asks for this one before Python 3.12


def on_one_line(schema: dict[str, Any]) -> None:
    """Join the lines of the descriptions of members, which docstrings wrap."""
    for member in schema.get("properties", {}).values():
        if "description" in member:
            member["description"] = " ".join(member["description"].split())


described = with_config(ConfigDict(use_attribute_docstrings=True, json_schema_extra=on_one_line))
"""Make the docstrings below the keys of a document their descriptions. Inherited keys need `Field(description=…)`."""

NULL_IF_ABSENT: Any = Field(default=None)
"""The default of a key that old rows lack."""

Parameters = dict[str, Any]
"""An algorithm's parameters by name. What each may be, its estimator's signature says."""


def document_of(found: Any) -> Any:
    """Convert results of `core`: dataclasses and named tuples to objects, numbers that are not finite to null."""
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if is_dataclass(found):
        return {each.name: document_of(getattr(found, each.name)) for each in fields(found)}
    if hasattr(found, "_asdict"):
        found = found._asdict()
    if isinstance(found, Mapping):
        return {name: document_of(value) for name, value in found.items()}
    return list(map(document_of, found)) if isinstance(found, list | tuple) else found


CandidateState = Literal["chosen", "left", "failed", "untried"]
"""What became of a candidate of a search or of `auto`."""
PeriodKind = Literal["day", "week", "month"]
ReasonDirection = Literal["raises", "lowers"]


class DatasetLineage(TypedDict):
    """A version of a dataset and its content hash at the time when a job was submitted."""

    id: str
    name: str
    version: int
    sha256: str
    pairs_sha256: str | None
    rows_from: str | None


@described
class SameModel(TypedDict):
    """A model whose artifact is the file that was imported."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    version: int
    """Its version."""


@described
class UnknownCategories(TypedDict):
    """A feature with categories that the imported model does not know."""

    feature: str
    """Name of the feature."""
    rows: int
    """Number of rows of the dataset with such a category, which counts as missing."""


@described
class Imported(TypedDict):
    """Where an imported model comes from."""

    source: str
    """The library that trained the model and the version of the file, such as `LightGBM v4`, or `Rankwright` and the
    version that wrote the artifact. Stated by the file, not verified."""
    sha256: str
    """SHA-256 of the file. For an artifact, it is `artifact.sha256` of the original model."""
    dataset_sha256: str | None
    """SHA-256 of the training dataset, in artifacts of this service. Stated by the file, not verified. Null if the file
    does not state it."""
    model: SameModel | None
    """The model of this installation with this artifact, when it was imported. Null if there was none."""
    imported_by: str | None
    """Name of the key or user that imported the model. Null if it has none."""
    unknown_categories: NotRequired[Annotated[list[UnknownCategories] | None, NULL_IF_ABSENT]]
    """Features with rows of the dataset whose category the model does not know."""


class TableFile(TypedDict):
    """The path of a dataset's table, and the roles of its columns; `pairs` is the file of its pairs."""

    path: str
    pairs: str | None
    label: str | None
    labels: list[str]
    weight: str | None
    group: str | None
    query: NotRequired[str | None]


@described
class QuerySizes(TypedDict):
    """Number and sizes of the queries of a dataset."""

    queries: int
    """Number of queries."""
    with_pairs: int
    """Number of queries that have rows with different labels. Only these are used for training and metrics."""
    min_rows: int
    """Number of rows in the smallest query."""
    median_rows: float
    """Median number of rows per query."""
    max_rows: int
    """Number of rows in the largest query."""


@described
class GradeRows(TypedDict):
    """A grade and the number of rows that have it."""

    grade: int
    """The grade, a whole number from 0."""
    rows: int
    """Number of rows with this grade."""


@described
class ListMetric(TypedDict):
    """A metric within queries: its mean over the queries in which it is defined."""

    metric: Annotated[str, Field(examples=["ndcg@10"])]
    """Name of the metric. `auc` is the fraction of a query's pairs that are in order."""
    value: float
    """Mean over the queries."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""
    queries: int
    """Number of queries in which the metric is defined."""
    skipped: int
    """Number of queries in which the metric is undefined, because all rows have the same label or none is relevant."""
    effective_queries: float
    """Effective number of queries: this many queries of equal weight would be as informative."""


@described
class ListMetrics(TypedDict):
    """Metrics within queries. The intervals treat the queries, not the rows, as the random sample."""

    level: float
    """Confidence level of the intervals."""
    queries: int
    """Number of queries."""
    metrics: list[ListMetric]
    """One entry for each metric."""


class GradedOrder(TypedDict):
    """The ranking quality of graded rows as one list; `pairwise` is the AUC of each grade over each lower grade."""

    c_index: Interval
    mean_auc: Interval
    volume: Interval | None
    pairwise: list[list[float | None]]


class Objective(TypedDict):
    """The objective of a job: its name and parameters, such as `pauc` in a window."""

    metric: str
    fpr_min: NotRequired[float]
    fpr_max: NotRequired[float]
    fpr: NotRequired[float]
    count: NotRequired[int]
    share: NotRequired[float]
    recall: NotRequired[float]


class Validation(TypedDict):
    """The validation of a job's ranker: `holdout`, `cross_validation`, `dataset` or `none`."""

    method: str
    fraction: NotRequired[float]
    folds: NotRequired[int]
    repeats: NotRequired[int]
    time_column: NotRequired[str | None]
    dataset_id: NotRequired[str]


class Feature(TypedDict):
    """A feature of a dataset."""

    name: str
    type: str


@described
class ModelFeature(TypedDict):
    """A feature that the model uses."""

    name: str
    """Name of the column."""
    type: Annotated[
        str,
        WithJsonSchema(
            {"type": "string", "enum": ["numeric", "boolean", "datetime", "categorical"]}
        ),
    ]
    """`numeric`, `boolean`, `datetime` or `categorical`."""
    missing: bool
    """True if the feature had missing values in training. Rows to score may then omit it."""
    categories: NotRequired[Annotated[list[str] | None, NULL_IF_ABSENT]]
    """The first 100 categories in text order; the artifact has all. An unknown category counts as missing. Null unless
    the feature is categorical.
    """
    n_categories: NotRequired[Annotated[int | None, NULL_IF_ABSENT]]
    """Number of categories. Null unless the feature is categorical."""


@described
class LabelValues(TypedDict):
    """One label of a model with several labels, and its two values."""

    name: str
    """Name of the label column."""
    positive: str
    """Value that counts as positive."""
    negative: str
    """Value that counts as negative."""


class TableDialect(TypedDict):
    """The training table's missing-value tokens (None: defaults), and the fields of `app.ingest.formats.passed_on`."""

    missing: list[str] | None


class Interval(TypedDict):
    """A metric with its confidence interval."""

    value: Annotated[float, Field(description="The estimate.")]
    low: Annotated[float, Field(description="Lower end of the confidence interval.")]
    high: Annotated[float, Field(description="Upper end of the confidence interval.")]


def interval_of(found: Any) -> Interval:
    """Convert an interval of `core`."""
    return {"value": found.value, "low": found.low, "high": found.high}


class Window(TypedDict):
    """A window of false positive rates."""

    fpr_min: float
    fpr_max: float


class PartialAuc(Interval, Window):
    """The partial AUC in a window."""


class SearchMethod(TypedDict):
    """The method of a parameter search and its space."""

    method: Annotated[
        str,
        WithJsonSchema({"type": "string", "enum": ["grid", "random", "halving"]}),
        Field(description="`grid`, `random` or `halving`."),
    ]
    space: Annotated[
        dict[str, Any],
        Field(description="The searched parameters, each with its values or its range."),
    ]
    n_candidates: NotRequired[
        Annotated[
            int | None,
            Field(default=None, description="Number of candidates drawn. Null for a grid search."),
        ]
    ]
    folds: NotRequired[
        Annotated[
            int | None,
            Field(default=None, description="Number of inner folds. Null: one part was held out."),
        ]
    ]


class SearchSpec(SearchMethod):
    """The search of a job. Old jobs have no fraction."""

    fraction: NotRequired[float]


@described
class SearchTrial(TypedDict):
    """A candidate of a parameter search."""

    parameters: Parameters
    """The searched parameters of the candidate."""
    value: float | None
    """Mean value of the objective `selected_by` on the inner validation rows. Higher is better. Null if the fit failed.
    """
    auc: NotRequired[Annotated[float | None, NULL_IF_ABSENT]]
    """Mean AUC on the inner validation rows. Null if it was not measured."""
    rows: NotRequired[Annotated[float, Field(default=1.0)]]
    """Fraction of the training rows in the candidate's last fit."""
    seconds: NotRequired[Annotated[float | None, NULL_IF_ABSENT]]
    """Fit time in seconds. Null if it was not measured."""
    state: NotRequired[Annotated[CandidateState | None, NULL_IF_ABSENT]]
    """`chosen`, `left` (not chosen), `failed` or `untried`. Null if it was not recorded."""
    reason: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """Why the candidate failed or was not tried. Null otherwise."""


@described
class FoldChosen(TypedDict):
    """The parameters that the search of one fold chose."""

    repeat: int
    """Number of the repeat, from 1."""
    fold: int
    """Number of the fold, from 1."""
    chosen: Parameters
    """The chosen parameters."""


@described
class Search(SearchMethod):
    """The candidates and the choice of a parameter search on splits of the training rows. The inner validation rows are
    not used for any metrics.

    With cross-validation each fold has its own search on its own training rows: see `folds_chosen`. All other members
    describe the search for the served ranker.
    """

    fraction: float
    """Fraction of the training rows held out to compare candidates. Not used with `folds`."""
    candidates: list[SearchTrial]
    """The candidates and their results."""
    chosen: Parameters
    """The best parameters; among ties, those with the fewest rounds. The served ranker is fitted with them on all
    training rows.
    """
    folds_chosen: list[FoldChosen]
    """The parameters chosen in each fold. Empty without cross-validation."""
    seconds: float
    """Duration of the search in seconds, without `fit_seconds`."""


@described
class Member(TypedDict):
    """One ranker of the ensemble."""

    algorithm: str
    """Name of the algorithm."""
    parameters: Parameters
    """Parameters of the algorithm."""
    weight: float
    """Weight of the ranker in the ensemble."""


@described
class FoldMembers(TypedDict):
    """The rankers that `auto` has fitted for a fold."""

    repeat: int
    """Number of the repetition, from 1."""
    fold: int
    """Number of the fold, from 1."""
    rows: float
    """Fraction of the fold's training rows that the rankers were fitted on."""
    members: list[Member]
    """The rankers, with their numbers of rounds or trees."""


@described
class LeaderboardRow(TypedDict):
    """A candidate of `auto`. Its metrics were measured on the rows that chose it, so those of the best candidates are
    optimistic.
    """

    algorithm: str
    """Name of the algorithm."""
    parameters: Parameters
    """Parameters of the algorithm."""
    value: float | None
    """Value of the objective. Null if the fit failed or was never started."""
    auc: float | None
    """AUC on the inner validation rows. Null if it was not measured."""
    rows: float
    """Fraction of the training rows in the candidate's last fit."""
    seconds: float
    """Total fit time in seconds."""
    state: CandidateState
    """`chosen`, `left` (not chosen), `failed` or `untried`."""
    reason: str
    """Why the candidate has this state."""


class ProtectedColumn(TypedDict):
    """A column that the training dataset declares as protected."""

    name: str
    """Name of the column."""
    type: str
    """`numeric`, `boolean`, `datetime` or `categorical`."""
    feature: bool
    """True if the column is a feature of the model, because the training job named it in `protected_features`."""
    decided_by: str | None
    """Name of the key that created the training job. Null if the column is not a feature."""
    decided_at: float | None
    """When the training job was created. Null if the column is not a feature."""


@described
class ProxyAuc(TypedDict):
    """AUC of scores that predict a protected column, with its confidence interval."""

    feature: str | None
    """The feature that alone makes the scores. Null: all features of the model together."""
    value: float | None
    """The AUC, from scores of rows that the scores were not fitted on; 0.5 is random. Null if `reason` says why."""
    low: float | None
    """Lower end of the confidence interval."""
    high: float | None
    """Upper end of the confidence interval."""
    reason: str | None
    """Why there is no value. Null if there is one."""


@described
class ProxyTest(TypedDict):
    """How well the features of a model predict one value of a protected column, against the other values."""

    column: str
    """The protected column."""
    value: str
    """The value that is predicted; for a column of numbers a range of values."""
    rows: int
    """Number of rows that were used: all training rows with a value, or a random sample of them."""
    positives: int
    """Number of those rows that have the value."""
    level: float
    """Confidence level of each interval. The intervals are not adjusted for the number of features."""
    together: ProxyAuc
    """The AUC of all features together."""
    features: list[ProxyAuc]
    """The AUC of each feature alone, the most predictive first."""


@described
class MonotoneProof(TypedDict):
    """Verification of the monotone constraints of the fitted model, over all its steps or leaves."""

    verdict: Literal["proven", "violated", "not_proven"]
    """`proven`: the constraints hold for every row. `violated`: `violation` is a counterexample. `not_proven`: neither
    a proof nor a counterexample was found.
    """
    columns: dict[str, Literal["increasing", "decreasing"]]
    """The constrained columns and their directions."""
    compared: int
    """Number of comparisons: of neighbouring steps, of coefficients with 0, or of pairs of leaves."""
    missing: str
    """Rule for missing values."""
    violation: dict[str, Any] | None
    """Two rows that differ only in one constrained column and have scores in the wrong order. Null unless `verdict` is
    `violated`.
    """


@described
class FoldAuc(TypedDict):
    """The AUC of one fold."""

    repeat: Annotated[int, Field(description="Number of the repeat, from 1.")]
    fold: Annotated[int, Field(description="Number of the fold, from 1.")]
    auc: Annotated[float, Field(description="AUC of the fold's rows.")]


class NewestArea(Interval):
    """AUC on the newest rows, with its confidence interval."""


@described
class RandomSplits(Interval):
    """AUCs of a baseline on random splits of the rows: their mean, the lowest and the highest. Models of releases up to
    0.3 have the AUC of one split with its confidence interval, without the other members.
    """

    newest: NotRequired[NewestArea]
    """AUC of the baseline on the newest of these rows, trained on the others."""
    splits: NotRequired[int]
    """Number of random splits."""
    rows: NotRequired[int]
    """Number of rows of each split: a sample if the dataset has more."""
    p_value: NotRequired[float]
    """Two-sided p-value of a permutation test. At most 0.05 if the AUC on the newest rows is outside the range of the
    random splits: then there is a significant effect of time. Above 0.05, the difference may be due to chance.
    """


@described
class Baseline(TypedDict):
    """A baseline: a simple model fitted on the same splits."""

    algorithm: str
    """Name of the algorithm."""
    parameters: Parameters
    """Parameters of the algorithm."""
    fit_seconds: float
    """Fit time over all folds, in seconds."""
    failed: str | None
    """Why the fit failed; otherwise null."""
    rows: int | None
    """Number of training rows in the first fold. Null if the fit failed before the rows were read."""
    of_rows: int | None
    """Number of available training rows. Greater than `rows` if the baseline was trained on a sample."""
    random_split: NotRequired[RandomSplits | None]
    """For validation on the newest rows: the AUC on random splits of the same rows, with a test of the effect of time.
    Null for other validation methods, for tables with groups, and for all baselines but the first.
    """


class AreaDifference(Interval):
    """By how much the chosen ranker's area is greater than a baseline's."""

    p_value: float | None
    adjusted_p_value: float | None
    """None if the window holds too few rows for a test."""


class BaselineArea(TypedDict):
    """A baseline's area in one window, and how the chosen ranker's differs from it."""

    algorithm: str
    area: Interval
    difference: AreaDifference


class WindowBaselines(Window):
    """The chosen ranker and the baselines in one window."""

    chosen: Interval
    baselines: list[BaselineArea]


class MetricBaselines(TypedDict):
    """The values of the chosen ranker and the baselines in the metric of the objective."""

    metric: str
    chosen: Interval
    baselines: list[BaselineArea]


class BestMargin(TypedDict):
    """The best margin of any combination of the weak rankers, with the two certificates."""

    rho: float
    margin: float
    edge: float


class FeatureImportance(TypedDict):
    """How much a feature matters; with several labels, to the scores of each."""

    name: str
    importance: Any
    root: NotRequired[float]
    auc_gain: NotRequired[float]


class MarginsRecord(TypedDict):
    """The margins of the training pairs: `spread` and `rounds` are files in the work folder."""

    spread: str
    rounds: str
    l1_norm: float
    smooth_margin: float
    weak_rankers: int
    depends_on_data: str | None
    best: BestMargin | None


class SegmentCondition(TypedDict):
    """What the rows of a segment have in a column: a category, a number or a range of numbers; None: no value."""

    column: str
    value: str | None


class WeakSegment(TypedDict):
    """A segment in which a model ranks worse than in the others; see `core.metrics.segments.WeakSegment`."""

    conditions: list[SegmentCondition]
    verdict: str
    auc: float
    auc_of_others: float
    drop_low: float
    rows: int
    positives: int
    share: float


class WeakSegments(TypedDict):
    """The weak segments of a part, and the number of segments and of rows that were looked at."""

    segments: int
    rows: int
    found: list[WeakSegment]


class RocMetrics(TypedDict):
    """The metrics of rows with one label."""

    auc: Interval
    pauc: list[PartialAuc]
    level: float
    positives: int
    negatives: int
    positive_weight: float
    negative_weight: float
    positive_effective: float
    negative_effective: float
    ties: float
    weak_segments: NotRequired[WeakSegments | None]
    """None if no segment was looked at."""
    lists: NotRequired[ListMetrics]
    curve: NotRequired[str | None]
    """A file in the work folder. It is stored beside the document, and the margins in a table of their own."""
    margins: NotRequired[MarginsRecord | None]


class PairCounts(TypedDict):
    """The counts that are reported with the fraction of correctly ordered pairs."""

    misrank_fraction: float
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float


class PairMetrics(Interval, PairCounts):
    """The metrics of pairs; the interval is that of the weighted fraction of correctly ordered pairs."""

    level: float
    margins: NotRequired[MarginsRecord | None]


class LabelMetrics(TypedDict):
    """The metrics of one of several labels; None if the part has too few rows of a class."""

    label: str
    auc: Interval | None
    pauc: list[PartialAuc]
    level: float
    positives: int
    negatives: int
    ties: float | None


class MultilabelMetrics(TypedDict):
    """The metrics of rows with several labels."""

    labels: list[LabelMetrics]


class GradedMetrics(TypedDict):
    """The metrics of graded rows: within queries, else `order`."""

    level: float
    grades: list[GradeRows]
    lists: ListMetrics | None
    order: GradedOrder | None


PartMetrics = RocMetrics | PairMetrics | MultilabelMetrics | GradedMetrics
"""The metrics of a part (`train` or `validation`), by the kind of dataset."""


@described
class ScoreParts(TypedDict):
    """A mean score (lower is better) and its parts: score = miscalibration − discrimination + uncertainty."""

    score: float | None
    """The mean score. Null if it is infinite."""
    miscalibration: float | None
    """Improvement that an isotonic regression of the labels on the probabilities would bring. 0: perfectly calibrated.
    Null if it is infinite.
    """
    discrimination: float
    """Improvement of that regression over one constant probability."""
    uncertainty: float
    """Score of the prevalence as a constant probability."""
    low: NotRequired[float | None]
    """Lower end of the score's confidence interval. Null if the score is infinite, or if it was measured before
    intervals were added.
    """
    high: NotRequired[float | None]
    """Upper end of the score's confidence interval. Null in the same cases."""


@described
class ReliabilityPoint(TypedDict):
    """One point of a reliability diagram."""

    probability: float
    """Predicted probability."""
    observed: float
    """Observed fraction of positives, from the isotonic regression of the labels."""
    low: float
    """Lower confidence limit of the fraction in the population."""
    high: float
    """Upper confidence limit of the fraction in the population."""
    consistent_low: float
    """Lower end of the consistency band: where `observed` would be if the probabilities were correct."""
    consistent_high: float
    """Upper end of the consistency band."""


@described
class CalibrationShape(TypedDict):
    """Distance between the log odds of the outcome and a straight line in the log odds of the probabilities."""

    value: float
    """Root mean square distance in log odds, corrected for sampling noise."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""
    p_value: float
    """p-value of the hypothesis that the log odds are on a line."""
    degrees: int
    """Degrees of freedom of the test."""
    information: float
    """Sum of p (1 − p) over the effective number of rows."""


@described
class PeriodLevel(TypedDict):
    """Calibration level of one time window, with its confidence interval."""

    value: float
    """The level, in log odds."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""


@described
class CalibrationPeriods(TypedDict):
    """Calibration level of each time window of a validation by time."""

    levels: list[PeriodLevel]
    """Log odds of each window's rows relative to the calibration, the earliest window first. Below 0: fewer rows were
    positive than the calibration now predicts.
    """
    step: float
    """Standard deviation of the change of the level between consecutive windows. 0: all windows have equal weight;
    otherwise later windows have more weight.
    """
    p_value: float
    """p-value of the hypothesis that the level is the same in all windows."""


class Reliability(TypedDict):
    """The quality of probabilities on some rows; an interval with an infinite end is None.

    `separated`: whether each positive has a higher probability than all negatives; then there is no slope. `shape` is
    None if there is no slope, or too few rows to test it, and is absent from documents of versions before the test.
    `later` and `periods` are of a calibration's own rows: whether they are from after those that it was fitted on.
    """

    level: float
    n: int
    n_positives: int
    predicted: float
    observed: float
    brier: ScoreParts
    log: ScoreParts
    in_the_large: Interval | None
    slope: Interval | None
    separated: bool
    shape: NotRequired[CalibrationShape | None]
    later: NotRequired[bool]
    periods: NotRequired[CalibrationPeriods | None]
    histogram: list[float]
    points: list[ReliabilityPoint]


@described
class StoredGuarantee(TypedDict):
    """What the cutoff of an alias keeps from version to version. Exactly one of `fpr`, `tpr`, `flagged` and `threshold`
    is set; the others are null. With a `confidence` it is a guarantee for future rows, otherwise a target that the
    validation rows meet."""

    fpr: float | None
    """Upper limit of the FPR."""
    tpr: float | None
    """Lower limit of the TPR."""
    flagged: NotRequired[Annotated[float | None, NULL_IF_ABSENT]]
    """Largest fraction of the rows that is flagged."""
    threshold: NotRequired[Annotated[float | None, NULL_IF_ABSENT]]
    """Lowest score that is flagged."""
    confidence: float | None
    """Confidence with which the rate is guaranteed for future rows. Null: the rate holds on the validation rows."""


@described
class AliasCutoff(TypedDict):
    """The threshold with which a version meets the guarantee or target, and its rates on the validation rows."""

    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    fpr: float
    """False positive rate on the validation rows."""
    tpr: float
    """True positive rate on the validation rows."""


@described
class StoredMemo(TypedDict):
    """Why an alias was moved. Members that were not given are null."""

    reason: str | None
    """Reason for the decision."""
    approved_by: str | None
    """Name of the principal that approved the change of a protected alias. Null without an approval."""
    review: float | None
    """Number of rows that can be reviewed, of every `rows` rows."""
    rows: float | None
    """Number of rows that arrive in a period."""
    cost_false_positive: float | None
    """Cost of a false positive."""
    cost_false_negative: float | None
    """Cost of a false negative, in the same unit."""
    amount: NotRequired[str | None]
    """Column of the amounts that multiply the cost of a false negative. Null if all false negatives cost the same."""
    prevalence: float | None
    """Expected fraction of positives among future rows."""


@described
class Exploration(TypedDict):
    """Rows that are reviewed at random, so that the outcomes of the others can be estimated."""

    of: Literal["unflagged", "flagged"]
    """Rows to draw from."""
    rate: float
    """Fraction of these rows that is drawn."""


@described
class OutcomeRule(TypedDict):
    """How outcomes are attributed to decisions, and when a decision without an outcome is mature."""

    horizon_days: float
    """Days after a decision at which its outcome counts as final."""
    silence: Literal["negative"] | None
    """What a decision without an outcome is at the horizon. Null: unknown."""
    attribute: Literal["last_before_event", "first_before_event", "all_before_event"]
    """Decisions of an entity that an outcome without a decision id belongs to."""


@described
class MonitoredGroups(TypedDict):
    """Groups of entities between which decisions should not differ."""

    columns: dict[str, list[str]]
    """Protected columns, each with the values that are compared; the first one is the reference group."""
    favourable: Literal["not_flagged", "flagged"]
    """Which decision is favourable to the entity. Its rates are compared between groups."""


@described
class MonitorSettings(TypedDict):
    """The scheduled tests of an alias."""

    period: PeriodKind
    """Length of a period. A test is made at the end of each."""
    alpha: float
    """Probability of a false alarm within a year, of all families together."""
    tolerance: dict[str, float]
    """Differences from the validation, by metric, up to which nothing is wrong."""


@described
class StoredFeedback(TypedDict):
    """What is recorded of the decisions that are made with an alias, and what is done with it."""

    keep: float
    """Fraction of the decisions that is recorded."""
    features: list[str] | None
    """Features that are recorded with each decision. Null: all."""
    days: int
    """Days after which decisions are deleted."""
    explore: Exploration | None
    """Rows to review at random. Null: none."""
    outcome: OutcomeRule
    """Attribution and maturity of outcomes."""
    shadow: str | None
    """Model whose scores of the same rows are compared. Null: none."""
    protected: MonitoredGroups | None
    """Groups to record and, if there are scheduled tests, to compare. Null: none."""
    monitor: MonitorSettings | None
    """Scheduled tests. Null: none."""


@described
class DecisionRows(TypedDict):
    """Rows of a dataset that are decisions of one origin."""

    origin: Annotated[
        str, WithJsonSchema({"type": "string", "enum": ["score", "batch", "backfill"]})
    ]
    """How the rows were scored."""
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""


@described
class ExcludedDecisions(TypedDict):
    """Numbers of decisions that a dataset leaves out, by reason."""

    pending: int
    """Decisions whose horizon has not passed."""
    missing: int
    """Decisions without an outcome."""
    withdrawn: int
    """Decisions whose outcome was withdrawn."""
    unrecognised: int
    """Decisions whose label is not a value of the model's label column."""
    not_explored: int
    """Decisions that could have been drawn for review, and were not. Those that were drawn count for them."""


@described
class SourceFile(TypedDict):
    """A file that was read from an object store."""

    url: Annotated[str, Field(examples=["s3://warehouse/exports/loans.parquet"])]
    """URL of the object."""
    etag: str | None
    """ETag of the object when it was read."""
    version: str | None
    """Version id of the object. Null if the store keeps no versions."""
    bytes: int
    """Size in bytes."""
    sha256: str
    """SHA-256 of the bytes."""


class RequestedChange(TypedDict):
    """What a request asks for. Absent members are not of its kind, or leave guarantee and memo as they are."""

    guarantee: NotRequired[StoredGuarantee | None]
    memo: NotRequired[Mapping[str, Any] | None]
    revision: NotRequired[int]
    dataset_id: NotRequired[str]
    calibration_version: NotRequired[int]


@described
class EvidenceFile(TypedDict):
    """A file of the evidence that an alias was moved on."""

    name: Annotated[str, Field(examples=["report.html"])]
    """Name of the file in the archive."""
    of: Annotated[
        str,
        WithJsonSchema(
            {"type": "string", "enum": ["decision", "report", "evaluation", "comparison"]}
        ),
    ]
    """What the file is."""
    id: str
    """Id of the evaluation or of the comparison; of other files that of the model."""
    sha256: str
    """SHA-256 of the file."""
    bytes: int
    """Size of the file."""


@described
class StoredReasonEntry(TypedDict):
    """One entry of the reason codes."""

    code: Annotated[str, Field(examples=["R12"])]
    """Reason code."""
    text: Annotated[str, Field(examples=["Income too low"])]
    """Text of the reason."""
    columns: Annotated[list[str], Field(examples=[["income"]])]
    """Features that the code covers."""
    direction: ReasonDirection | None
    """Contributions that the code applies to: those that raise the score or those that lower it. Null: both."""
    min: float | str | None
    """Smallest value that the code applies to. Null: no limit."""
    max: float | str | None
    """Largest value that the code applies to. Null: no limit."""
    categories: list[str] | None
    """Categories that the code applies to. Null: all."""
    missing: bool | None
    """Whether the code applies to missing values; see the request. Null: no condition."""
    letter: NotRequired[Annotated[str | None, NULL_IF_ABSENT]]
    """Template of the paragraph in a letter. Null: the text."""


class HeldOutFeature(TypedDict):
    """The held-out rows in the bins of a feature: positives first, then negatives, each by bin."""

    rows: list[list[int]]
    mass: list[list[float]]
    """Sums of weights."""
    squares: list[list[float]]
    """Sums of squared weights."""


class RoundedAuc(TypedDict):
    """The AUC of whole points on held-out rows."""

    pdo: float
    """Points to double the odds: it decides how coarse whole points are."""
    auc: float


class HeldOutBins(TypedDict):
    """The held-out rows in the bins of a scorecard."""

    rows: int
    features: list[HeldOutFeature]
    auc: float
    rounded: list[RoundedAuc]


@described
class ScoreHistogram(TypedDict):
    """Distribution of the scores of a table."""

    name: str
    """`score`, or the label name for a model with several labels."""
    low: float | None
    """Lowest score. Null if there are no rows."""
    high: float | None
    """Highest score. Null if there are no rows."""
    mean: float | None
    """Mean score. Null if there are no rows."""
    edges: list[float]
    """Edges of up to 41 bins of equal width, ascending; one more than `counts`. The width is 1, 2 or 5 times a power of
    ten.
    """
    counts: list[int]
    """Number of rows in each bin. A score on an edge belongs to the bin above it."""


class ColumnProfile(TypedDict):
    """The distribution of a column.

    Numbers have the inner `edges` of their bins, and the lowest and the highest value. Texts have the `common`
    categories, the most frequent one first. `masses` are the weights of the rows in each bin. `alike` and `covariance`
    describe the order of the rows; see `app.models.row_order`.
    """

    name: str
    edges: list[float] | None
    low: float | None
    high: float | None
    common: list[str] | None
    masses: list[float]
    alike: bool
    covariance: list[list[float]] | None
    degrees: float | None


class TableProfile(TypedDict):
    """The columns' distributions. `rows` are sampled rows as rows of equal weight; `by_time`: they are a series, by the
    column `time`; `grouped`: they come in groups.
    """

    rows: float
    by_time: bool
    time: str | None
    time_type: str | None
    grouped: bool
    columns: list[ColumnProfile]


class BatchSummary(TypedDict):
    """The summary of a batch of scores.

    `flagged` counts the rows with a score of at least `threshold`, that of the alias; both are None without a
    threshold. `ignored` are columns of the rows that were not read. `warnings` are as in `ScoreWarning`. `first` are
    the rows with the highest scores, best first, with a value for each of `columns`; None if there are several scores
    per row.
    """

    scores: list[ScoreHistogram]
    flagged: int | None
    threshold: float | None
    ignored: list[str]
    warnings: list[dict[str, str]]
    columns: list[str]
    first: list[list[Any]] | None


@described
class ErasureSearch(TypedDict):
    """What the last search of an erasure has read."""

    datasets: int
    """Versions of datasets with one of the key columns, also in the trash."""
    rows: int
    """Rows of these datasets."""
    batch_scores: int
    """Results of batch scores with one of the key columns."""
    uploads: int
    """Uploads that are no dataset: invalid ones, and files that wait for more."""
    evidence: int
    """Archives with the evidence of alias requests and of revisions of aliases."""


@described
class ReplacedDataset(TypedDict):
    """A version of a dataset that had rows of the entity."""

    dataset_id: str
    """Id of the version that was deleted permanently."""
    name: str
    """Name of the dataset."""
    version: int
    """Its version number, which the new dataset takes over."""
    rows: int
    """Rows removed from its own upload. 0: only the version that it continues had rows of the entity."""
    replaced_by: str | None
    """Id of the dataset without these rows. Null: without them, the table is not valid any more."""


@described
class ModelOfErasedRows(TypedDict):
    """A model that was trained, validated or calibrated on rows of the entity."""

    model_id: str
    """Id of the model."""
    name: str
    """Name of the model."""
    version: int
    """Version of the model."""
    retired: bool
    """Whether the model was deleted permanently, because its artifact contains rows or keys."""


@described
class ErasureRemainder(TypedDict):
    """Something that the erasure does not remove."""

    what: str
    """`backups`, `bucket_versions`, `caches`, `database_free_space`, `downloads`, `files_on_the_server`, `logs`,
    `source`, `text` (words of people that name the entity), `unreadable_copy` (its file is missing or damaged),
    `unsearchable_dataset` or `values_in_models`.
    """
    resource: str | None
    """The file, dataset, upload, batch score, alias request or revision, model or connection, if it is one; of a text
    its table and the key of its row."""
    until: str
    """When it is removed, in words."""


@described
class ErasureReport(TypedDict):
    """What an erasure has searched and removed, and what remains."""

    rounds: int
    """Searches so far. The last one found nothing."""
    searched: ErasureSearch
    """What the last search has read."""
    datasets: list[ReplacedDataset]
    """Versions of datasets that had rows of the entity."""
    models: list[ModelOfErasedRows]
    """Models that used these rows. Their stored sample and reference rows, out-of-fold and held-out scores are
    deleted.
    """
    batch_scores: list[str]
    """Batch scores that were deleted: of these datasets, or with rows of the entity."""
    evaluations: list[str]
    """Evaluations and comparisons that were deleted, because they name the entity."""
    uploads: list[str]
    """Invalid datasets and open uploads that were deleted."""
    evidence: list[str]
    """Requests and revisions of aliases whose archives with evidence named the entity and were deleted."""
    cancelled_jobs: list[str]
    """Unfinished jobs that used these datasets."""
    files: int
    """Files of the blob store that were replaced or deleted."""
    remains: list[ErasureRemainder]
    """What the erasure does not remove, and until when."""
    verified_at: float | None
    """When a search of everything found no row of the entity, in seconds since 1970. Null: not yet."""
