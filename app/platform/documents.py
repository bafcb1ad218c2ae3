"""The JSON documents in columns of tables, each declared once: as it is stored, and as an answer shows it.

A field has its description here if answers show it. A document of which answers show less, or with other members where
nothing is stored, has a class of its own in the schemas of its domain.

Never change a stored key: old rows must stay readable. `NotRequired` marks keys that only some kinds or versions have.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # Pydantic asks for this one before Python 3.12

Parameters = dict[str, Any]
"""An algorithm's parameters by name. What each may be, its estimator's signature says."""


CandidateState = Literal["chosen", "left", "failed", "untried"]
"""What became of a candidate of a search or of `auto`."""
ReasonDirection = Literal["raises", "lowers"]


class DatasetLineage(TypedDict):
    """A version of a dataset and its content hash at the time when a job was submitted."""

    id: str
    name: str
    version: int
    sha256: str
    pairs_sha256: str | None
    rows_from: str | None


class TableFile(TypedDict):
    """The path of a dataset's table, and the roles of its columns; `pairs` is the file of its pairs."""

    path: str
    pairs: str | None
    label: str | None
    labels: list[str]
    weight: str | None
    group: str | None
    query: NotRequired[str | None]


class QuerySizes(TypedDict):
    """Number and sizes of the queries of a dataset."""

    queries: Annotated[int, Field(description="Number of queries.")]
    with_pairs: Annotated[
        int,
        Field(
            description="Number of queries that have rows with different labels. Only these are used for training and "
            "metrics."
        ),
    ]
    min_rows: Annotated[int, Field(description="Number of rows in the smallest query.")]
    median_rows: Annotated[float, Field(description="Median number of rows per query.")]
    max_rows: Annotated[int, Field(description="Number of rows in the largest query.")]


class GradeRows(TypedDict):
    """A grade and the number of rows that have it."""

    grade: Annotated[int, Field(description="The grade, a whole number from 0.")]
    rows: Annotated[int, Field(description="Number of rows with this grade.")]


class ListMetric(TypedDict):
    """A metric within queries: its mean over the queries in which it is defined."""

    metric: Annotated[
        str,
        Field(
            description="Name of the metric. `auc` is the fraction of a query's pairs that are in order.",
            examples=["ndcg@10"],
        ),
    ]
    value: Annotated[float, Field(description="Mean over the queries.")]
    low: Annotated[float, Field(description="Lower end of the confidence interval.")]
    high: Annotated[float, Field(description="Upper end of the confidence interval.")]
    queries: Annotated[int, Field(description="Number of queries in which the metric is defined.")]
    skipped: Annotated[
        int,
        Field(
            description="Number of queries in which the metric is undefined, because all rows have the same label or "
            "none is relevant."
        ),
    ]
    effective_queries: Annotated[
        float,
        Field(
            description="Effective number of queries: this many queries of equal weight would be as informative."
        ),
    ]


class ListMetrics(TypedDict):
    """Metrics within queries. The intervals treat the queries, not the rows, as the random sample."""

    level: Annotated[float, Field(description="Confidence level of the intervals.")]
    queries: Annotated[int, Field(description="Number of queries.")]
    metrics: Annotated[list[ListMetric], Field(description="One entry for each metric.")]


class GradedOrder(TypedDict):
    """The ranking quality of graded rows as one list; `pairwise` is the AUC of each grade over each lower grade."""

    c_index: Interval
    mean_auc: Interval
    volume: Interval | None
    pairwise: list[list[float | None]]


class Objective(TypedDict):
    """The objective of a job: `auc`, `pauc` in a window, `tpr` at a rate, `average_precision`, `precision_at_recall`,
    `precision`, `lift` or `ndcg` of the first rows, or `pair_order` of pairs.
    """

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


class ModelFeature(Feature):
    """A feature that a model takes; `categories` are the first hundred of `n_categories`."""

    missing: bool
    categories: NotRequired[list[str]]
    n_categories: NotRequired[int]


class LabelValues(TypedDict):
    """A label, the two values of its column, and how many rows have each."""

    name: str
    negative: str
    positive: str
    negatives: NotRequired[int]
    positives: NotRequired[int]


class TableDialect(TypedDict):
    """The tokens for missing values in a model's training table; None: the defaults. It also has the fields of the
    table's dialect that apply to the tables that the model scores: `app.ingest.formats.notation_fields`.
    """

    missing: list[str] | None


class Interval(TypedDict):
    """A metric with its confidence interval."""

    value: Annotated[float, Field(description="The estimate.")]
    low: Annotated[float, Field(description="Lower end of the confidence interval.")]
    high: Annotated[float, Field(description="Upper end of the confidence interval.")]


class Window(TypedDict):
    """A window of false positive rates."""

    fpr_min: float
    fpr_max: float


class PartialAuc(Interval, Window):
    """The partial AUC in a window."""


class SearchSpec(TypedDict):
    """The search space and the method of a job's search."""

    method: str
    space: dict[str, Any]
    n_candidates: NotRequired[int | None]
    folds: NotRequired[int | None]
    fraction: NotRequired[float]


class SearchCandidate(TypedDict):
    """A candidate of a search, and its value."""

    parameters: Parameters
    value: float | None
    auc: NotRequired[float | None]
    rows: NotRequired[float]
    seconds: NotRequired[float | None]
    state: NotRequired[str]
    reason: NotRequired[str]


class FoldChosen(TypedDict):
    """The parameters that the search of one fold chose."""

    repeat: Annotated[int, Field(description="Number of the repeat, from 1.")]
    fold: Annotated[int, Field(description="Number of the fold, from 1.")]
    chosen: Annotated[Parameters, Field(description="The chosen parameters.")]


class SearchRecord(SearchSpec):
    """The candidates and the choice of a search."""

    chosen: Parameters
    candidates: list[SearchCandidate]
    seconds: float
    folds_chosen: list[FoldChosen]


class Member(TypedDict):
    """One ranker of the ensemble."""

    algorithm: Annotated[str, Field(description="Name of the algorithm.")]
    parameters: Annotated[Parameters, Field(description="Parameters of the algorithm.")]
    weight: Annotated[float, Field(description="Weight of the ranker in the ensemble.")]


class LeaderboardRow(TypedDict):
    """A candidate of `auto`. Its metrics were measured on the rows that chose it, so those of the best candidates are
    optimistic.
    """

    algorithm: Annotated[str, Field(description="Name of the algorithm.")]
    parameters: Annotated[Parameters, Field(description="Parameters of the algorithm.")]
    value: Annotated[
        float | None,
        Field(description="Value of the objective. Null if the fit failed or was never started."),
    ]
    auc: Annotated[
        float | None,
        Field(description="AUC on the inner validation rows. Null if it was not measured."),
    ]
    rows: Annotated[
        float, Field(description="Fraction of the training rows in the candidate's last fit.")
    ]
    seconds: Annotated[float, Field(description="Total fit time in seconds.")]
    state: Annotated[
        CandidateState, Field(description="`chosen`, `left` (not chosen), `failed` or `untried`.")
    ]
    reason: Annotated[str, Field(description="Why the candidate has this state.")]


class MonotoneProof(TypedDict):
    """Verification of the monotone constraints of the fitted model, over all its steps or leaves."""

    verdict: Annotated[
        Literal["proven", "violated", "not_proven"],
        Field(
            description="`proven`: the constraints hold for every row. `violated`: `violation` is a counterexample. "
            "`not_proven`: neither a proof nor a counterexample was found."
        ),
    ]
    columns: Annotated[
        dict[str, Literal["increasing", "decreasing"]],
        Field(description="The constrained columns and their directions."),
    ]
    compared: Annotated[
        int,
        Field(
            description="Number of comparisons: of neighbouring steps, of coefficients with 0, or of pairs of leaves."
        ),
    ]
    missing: Annotated[str, Field(description="Rule for missing values.")]
    violation: Annotated[
        dict[str, Any] | None,
        Field(
            description="Two rows that differ only in one constrained column and have scores in the wrong order. Null "
            "unless `verdict` is `violated`."
        ),
    ]


class FoldAuc(TypedDict):
    """The AUC of one fold."""

    repeat: int
    fold: int
    auc: float


class SeemingArea(Interval):
    """AUC on random rows, with its confidence interval."""


class Baseline(TypedDict):
    """A baseline: a simple model fitted on the same splits."""

    algorithm: Annotated[str, Field(description="Name of the algorithm.")]
    parameters: Annotated[Parameters, Field(description="Parameters of the algorithm.")]
    fit_seconds: Annotated[float, Field(description="Fit time over all folds, in seconds.")]
    failed: Annotated[str | None, Field(description="Why the fit failed; otherwise null.")]
    rows: Annotated[
        int | None,
        Field(
            description="Number of training rows in the first fold. Null if the fit failed before the rows were read.",
        ),
    ]
    of_rows: Annotated[
        int | None,
        Field(
            description="Number of available training rows. Greater than `rows` if the baseline was trained on a "
            "sample.",
        ),
    ]
    random_split: NotRequired[
        Annotated[
            SeemingArea | None,
            Field(
                description="For validation on the newest rows: the AUC on random rows of the training part. Its "
                "difference from the baseline's AUC shows the effect of time. Null for other validation "
                "methods and for all baselines but the first."
            ),
        ]
    ]


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


class ScoreParts(TypedDict):
    """A mean score (lower is better) and its parts: score = miscalibration − discrimination + uncertainty."""

    score: Annotated[float | None, Field(description="The mean score. Null if it is infinite.")]
    miscalibration: Annotated[
        float | None,
        Field(
            description="Improvement that an isotonic regression of the labels on the probabilities would bring. 0: "
            "perfectly calibrated. Null if it is infinite."
        ),
    ]
    discrimination: Annotated[
        float, Field(description="Improvement of that regression over one constant probability.")
    ]
    uncertainty: Annotated[
        float, Field(description="Score of the prevalence as a constant probability.")
    ]
    low: NotRequired[
        Annotated[
            float | None,
            Field(
                description="Lower end of the score's confidence interval. Null if the score is infinite, or if it was "
                "measured before intervals were added."
            ),
        ]
    ]
    high: NotRequired[
        Annotated[
            float | None,
            Field(
                description="Upper end of the score's confidence interval. Null in the same cases."
            ),
        ]
    ]


class ReliabilityPoint(TypedDict):
    """One point of a reliability diagram."""

    probability: Annotated[float, Field(description="Predicted probability.")]
    observed: Annotated[
        float,
        Field(
            description="Observed fraction of positives, from the isotonic regression of the labels."
        ),
    ]
    low: Annotated[
        float, Field(description="Lower confidence limit of the fraction in the population.")
    ]
    high: Annotated[
        float, Field(description="Upper confidence limit of the fraction in the population.")
    ]
    consistent_low: Annotated[
        float,
        Field(
            description="Lower end of the consistency band: where `observed` would be if the probabilities were "
            "correct."
        ),
    ]
    consistent_high: Annotated[float, Field(description="Upper end of the consistency band.")]


class CalibrationShape(TypedDict):
    """Distance between the log odds of the outcome and a straight line in the log odds of the probabilities."""

    value: Annotated[
        float,
        Field(description="Root mean square distance in log odds, corrected for sampling noise."),
    ]
    low: Annotated[float, Field(description="Lower end of the confidence interval.")]
    high: Annotated[float, Field(description="Upper end of the confidence interval.")]
    p_value: Annotated[
        float, Field(description="p-value of the hypothesis that the log odds are on a line.")
    ]
    degrees: Annotated[int, Field(description="Degrees of freedom of the test.")]
    information: Annotated[
        float, Field(description="Sum of p (1 − p) over the effective number of rows.")
    ]


class PeriodLevel(TypedDict):
    """Calibration level of one time window, with its confidence interval."""

    value: Annotated[float, Field(description="The level, in log odds.")]
    low: Annotated[float, Field(description="Lower end of the confidence interval.")]
    high: Annotated[float, Field(description="Upper end of the confidence interval.")]


class CalibrationPeriods(TypedDict):
    """Calibration level of each time window of a validation by time."""

    levels: Annotated[
        list[PeriodLevel],
        Field(
            description="Log odds of each window's rows relative to the calibration, the earliest window first. Below "
            "0: fewer rows were positive than the calibration now predicts."
        ),
    ]
    step: Annotated[
        float,
        Field(
            description="Standard deviation of the change of the level between consecutive windows. 0: all windows "
            "have equal weight; otherwise later windows have more weight."
        ),
    ]
    p_value: Annotated[
        float,
        Field(description="p-value of the hypothesis that the level is the same in all windows."),
    ]


class Reliability(TypedDict):
    """The quality of probabilities on some rows; an interval with an infinite end is None.

    `shape` is None if there are too few rows to test it, and is absent from documents of versions before the test.
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
    shape: NotRequired[CalibrationShape | None]
    later: NotRequired[bool]
    periods: NotRequired[CalibrationPeriods | None]
    histogram: list[float]
    points: list[ReliabilityPoint]


class AliasGuarantee(TypedDict):
    """The rule that every version behind an alias keeps: the FPR is at most `fpr`, or the TPR is at least `tpr`; or it
    flags at most the fraction `flagged` of the rows, or the scores of at least `threshold`. Exactly one is set; the
    others are None or absent.

    With `confidence` None the rule is kept on the validation rows, otherwise in the population with this confidence
    (only for `fpr` and `tpr`).
    """

    fpr: float | None
    tpr: float | None
    confidence: float | None
    flagged: NotRequired[float]
    threshold: NotRequired[float]


class AliasCutoff(TypedDict):
    """The threshold with which a version meets the guarantee, and its rates on the validation rows."""

    threshold: Annotated[
        float | None,
        Field(description="Lowest score that is flagged. Null: no row is flagged."),
    ]
    fpr: Annotated[float, Field(description="False positive rate on the validation rows.")]
    tpr: Annotated[float, Field(description="True positive rate on the validation rows.")]


class DecisionMemo(TypedDict):
    """Why an alias was moved: what can be worked off, what errors cost, and who agreed. What was not said is None."""

    reason: str | None
    approved_by: str | None
    review: float | None
    rows: float | None
    cost_false_positive: float | None
    cost_false_negative: float | None
    prevalence: float | None


class StoredReasonEntry(TypedDict):
    """One entry of the reason codes."""

    code: Annotated[str, Field(examples=["R12"], description="Reason code.")]
    text: Annotated[str, Field(examples=["Income too low"], description="Text of the reason.")]
    columns: Annotated[
        list[str], Field(examples=[["income"]], description="Features that the code covers.")
    ]
    direction: Annotated[
        ReasonDirection | None,
        Field(
            description="Contributions that the code applies to: those that raise the score or those that lower it. "
            "Null: both."
        ),
    ]
    min: Annotated[
        float | str | None,
        Field(description="Smallest value that the code applies to. Null: no limit."),
    ]
    max: Annotated[
        float | str | None,
        Field(description="Largest value that the code applies to. Null: no limit."),
    ]
    categories: Annotated[
        list[str] | None, Field(description="Categories that the code applies to. Null: all.")
    ]
    missing: Annotated[
        bool | None,
        Field(
            description="Whether the code applies to missing values; see the request. Null: no condition."
        ),
    ]


class ScoreHistogram(TypedDict):
    """Distribution of the scores of a table."""

    name: Annotated[
        str, Field(description="`score`, or the label name for a model with several labels.")
    ]
    low: Annotated[float | None, Field(description="Lowest score. Null if there are no rows.")]
    high: Annotated[float | None, Field(description="Highest score. Null if there are no rows.")]
    mean: Annotated[float | None, Field(description="Mean score. Null if there are no rows.")]
    edges: Annotated[
        list[float],
        Field(
            description="Edges of up to 41 bins of equal width, ascending; one more than `counts`. The width is 1, 2 "
            "or 5 times a power of ten."
        ),
    ]
    counts: Annotated[
        list[int],
        Field(
            description="Number of rows in each bin. A score on an edge belongs to the bin above it."
        ),
    ]


class BatchSummary(TypedDict):
    """The summary of a batch of scores.

    `flagged` counts the rows with a score of at least `threshold`, that of the alias; both are None without a
    threshold. `ignored` are columns of the rows that were not read. `first` are the rows with the highest scores, best
    first, with a value for each of `columns`; None if there are several scores per row.
    """

    scores: list[ScoreHistogram]
    flagged: int | None
    threshold: float | None
    ignored: list[str]
    columns: list[str]
    first: list[list[Any]] | None
