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
    """The queries of a dataset."""

    queries: Annotated[int, Field(description="Number of queries.")]
    with_pairs: Annotated[
        int,
        Field(
            description="Number of queries that have rows of different labels. The others neither teach nor judge "
            "an order."
        ),
    ]
    min_rows: Annotated[int, Field(description="Number of rows of the smallest query.")]
    median_rows: float
    max_rows: int


class GradeRows(TypedDict):
    """A grade, and how many rows have it."""

    grade: int
    rows: int


class ListMetric(TypedDict):
    """A figure of lists: its mean over the queries in which it has a value."""

    metric: Annotated[
        str,
        Field(
            description="The name of the figure; auc is the fraction of the pairs of a query that are in order.",
            examples=["ndcg@10"],
        ),
    ]
    value: float
    low: float
    high: float
    queries: Annotated[int, Field(description="Number of queries in which it has a value.")]
    skipped: Annotated[
        int,
        Field(
            description="Number of queries in which it has none: all their rows have the same label, or none is "
            "relevant."
        ),
    ]
    effective_queries: Annotated[
        float, Field(description="Number of queries of equal weight that would be as informative.")
    ]


class ListMetrics(TypedDict):
    """Figures within queries. The intervals take the queries, not the rows, as drawn by chance."""

    level: Annotated[float, Field(description="Confidence level of the intervals.")]
    queries: Annotated[int, Field(description="Number of queries.")]
    metrics: list[ListMetric]


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

    value: float
    low: float
    high: float


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

    repeat: int
    fold: int
    chosen: Parameters


class SearchRecord(SearchSpec):
    """The candidates and the choice of a search."""

    chosen: Parameters
    candidates: list[SearchCandidate]
    seconds: float
    folds_chosen: list[FoldChosen]


class Member(TypedDict):
    """One ranker of the model's ensemble."""

    algorithm: str
    parameters: Parameters
    weight: float


class LeaderboardRow(TypedDict):
    """A candidate of `auto`. Its figures are measured on the rows that chose it, so those of the best are too
    optimistic.
    """

    algorithm: str
    parameters: Parameters
    value: Annotated[
        float | None,
        Field(description="Value of the objective. Null if the fit failed or was never started."),
    ]
    auc: float | None
    rows: Annotated[float, Field(description="Fraction of the training rows in its last fit.")]
    seconds: float
    state: Annotated[CandidateState, Field(description="`chosen`, `left`, `failed` or `untried`.")]
    reason: str


class MonotoneProof(TypedDict):
    """What is known of the monotone constraints of the fitted model, by walking all its steps or leaves."""

    verdict: Annotated[
        Literal["proven", "violated", "not_proven"],
        Field(
            description="proven: the constraints hold for every row. violated: `violation` is an example. not_proven: "
            "neither was found."
        ),
    ]
    columns: dict[str, Literal["increasing", "decreasing"]]
    compared: Annotated[
        int,
        Field(
            description="Comparisons of the proof: of neighbouring steps, of coefficients with 0, or of pairs "
            "of leaves."
        ),
    ]
    missing: Annotated[str, Field(description="The rule for missing values.")]
    violation: Annotated[
        dict[str, Any] | None,
        Field(
            description="Two rows that differ in one constrained column alone, whose scores are in the wrong order."
        ),
    ]


class FoldAuc(TypedDict):
    """The AUC of one fold; repeat and fold count from 1."""

    repeat: int
    fold: int
    auc: float


class SeemingArea(Interval):
    """An AUC by rows that are drawn at random, with its interval."""


class Baseline(TypedDict):
    """A control: a simple benchmark model fitted on the same splits."""

    algorithm: str
    parameters: Parameters
    fit_seconds: Annotated[float, Field(description="Fit time of all folds, in seconds.")]
    failed: Annotated[str | None, Field(description="Why the fit failed; otherwise null.")]
    rows: Annotated[
        int | None,
        Field(
            description="Number of training rows, in the first fold. Null if it failed before it had any.",
        ),
    ]
    of_rows: Annotated[
        int | None,
        Field(
            description="Number of available training rows. Greater than `rows` if only a sample was used.",
        ),
    ]
    random_split: NotRequired[
        Annotated[
            SeemingArea | None,
            Field(
                description="AUC where the newest rows judge: what it would seem to be if rows of the training part "
                "that are drawn at random judged in their place. Its difference from the control's AUC is what time "
                "does. Null otherwise, and for all but the first control."
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
    """A mean score, lower is better: score = miscalibration − discrimination + uncertainty."""

    score: Annotated[float | None, Field(description="Null if it is infinite.")]
    miscalibration: Annotated[
        float | None,
        Field(
            description="What an isotonic regression of the labels on the probabilities would gain. 0: calibrated."
        ),
    ]
    discrimination: Annotated[
        float, Field(description="What that regression gains over one probability for all rows.")
    ]
    uncertainty: Annotated[
        float, Field(description="The score of the prevalence, the same for every row.")
    ]
    low: NotRequired[
        Annotated[
            float | None,
            Field(
                description="Lower end of the score's confidence interval. Null if the score is infinite, or was "
                "measured before intervals were added."
            ),
        ]
    ]
    high: NotRequired[Annotated[float | None, Field(description="Upper end.")]]


class ReliabilityPoint(TypedDict):
    """A probability, and the fraction of positives that was observed there."""

    probability: float
    observed: Annotated[float, Field(description="The isotonic regression of the labels.")]
    low: Annotated[
        float, Field(description="Lower confidence limit of the fraction in the population.")
    ]
    high: Annotated[float, Field(description="Upper confidence limit.")]
    consistent_low: Annotated[
        float,
        Field(
            description="The observed fraction would lie from here …, if the probabilities were right."
        ),
    ]
    consistent_high: Annotated[float, Field(description="… to here.")]


class CalibrationShape(TypedDict):
    """How far the log odds of the outcome are from a line in the log odds of the probabilities."""

    value: Annotated[
        float, Field(description="Root mean square distance in log odds, corrected for chance.")
    ]
    low: float
    high: float
    p_value: Annotated[float, Field(description="Of the hypothesis that they are on a line.")]
    degrees: Annotated[int, Field(description="Degrees of freedom of the test.")]
    information: Annotated[
        float, Field(description="Sum of p (1 − p) of as many independent rows as these are worth.")
    ]


class PeriodLevel(TypedDict):
    """The level of the probabilities in one time window, with its interval."""

    value: float
    low: float
    high: float


class CalibrationPeriods(TypedDict):
    """The level of the probabilities in each time window of a validation by time."""

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
            description="Standard deviation of the change of the level from one window to the next. 0: all windows "
            "count alike; otherwise later windows count more."
        ),
    ]
    p_value: Annotated[
        float, Field(description="Of the hypothesis that the level is the same in all windows.")
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
    """The threshold by which a version keeps the promise, and its rates on the validation rows."""

    threshold: Annotated[
        float | None,
        Field(description="Scores of at least this are flagged. Null: nothing is flagged."),
    ]
    fpr: float
    tpr: float


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
    """An entry of a dictionary of reasons."""

    code: Annotated[str, Field(examples=["R12"])]
    text: Annotated[str, Field(examples=["Income too low"])]
    columns: Annotated[list[str], Field(examples=[["income"]])]
    direction: ReasonDirection | None
    min: float | str | None
    max: float | str | None
    categories: list[str] | None
    missing: bool | None


class ScoreHistogram(TypedDict):
    """How the scores of a table are distributed."""

    name: Annotated[str, Field(description="`score`, or the label of a model with several.")]
    low: Annotated[float | None, Field(description="Lowest score. Null without rows.")]
    high: Annotated[float | None, Field(description="Highest score.")]
    mean: float | None
    edges: Annotated[
        list[float],
        Field(
            description="Edges of at most 41 equal bins, ascending; one more than `counts`. The width is 1, 2 or 5 "
            "times a power of ten."
        ),
    ]
    counts: Annotated[
        list[int], Field(description="Rows per bin. A score on an edge counts in the bin above.")
    ]


class BatchSummary(TypedDict):
    """The summary of a batch of scores.

    `flagged` counts the rows with a score of at least `threshold`, the cut of the alias; None: there is no cut.
    `ignored` are columns of the rows that were not read. `first` are the rows with the highest scores, best first, a
    value for each of `columns`; None where there are several scores per row.
    """

    scores: list[ScoreHistogram]
    flagged: int | None
    threshold: float | None
    ignored: list[str]
    columns: list[str]
    first: list[list[Any]] | None
