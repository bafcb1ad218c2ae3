"""The types of the JSON documents in columns of tables.

Never change a stored key: old rows must stay readable. `NotRequired` marks keys that only some kinds or versions have.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Parameters = dict[str, Any]
"""An algorithm's parameters by name. What each may be, its estimator's signature says."""


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


class QueryCounts(TypedDict):
    """How many queries a dataset has, how many of them have rows of different labels, and the rows of one query."""

    queries: int
    with_pairs: int
    min_rows: int
    median_rows: float
    max_rows: int


class GradeCount(TypedDict):
    """A grade and the number of its rows."""

    grade: int
    rows: int


class ListFigure(TypedDict):
    """The mean over queries of a metric of ranked lists; `skipped` queries have no value."""

    figure: str
    value: float
    low: float
    high: float
    queries: int
    skipped: int
    effective_queries: float


class ListFigures(TypedDict):
    """The metrics of ranked lists on some rows, and the number of queries."""

    level: float
    queries: int
    figures: list[ListFigure]


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


class FoldChoice(TypedDict):
    """The choice of the search in one fold; repeat and fold count from 1."""

    repeat: int
    fold: int
    chosen: Parameters


class SearchRecord(SearchSpec):
    """The candidates and the choice of a search."""

    chosen: Parameters
    candidates: list[SearchCandidate]
    seconds: float
    folds_chosen: list[FoldChoice]


class MemberRecord(TypedDict):
    """One of the rankers that a model consists of: several rankers form a rank average."""

    algorithm: str
    parameters: Parameters
    weight: float


class LeaderboardEntry(TypedDict):
    """A candidate of `auto`."""

    algorithm: str
    parameters: Parameters
    value: float | None
    auc: float | None
    rows: float
    seconds: float
    state: str
    reason: str


class MonotoneRecord(TypedDict):
    """The proof that a model keeps its monotone constraints; see `core.base.monotone.MonotoneCheck`."""

    verdict: str
    columns: dict[str, str]
    compared: int
    missing: str
    violation: dict[str, Any] | None


class FoldAuc(TypedDict):
    """The AUC of one fold; repeat and fold count from 1."""

    repeat: int
    fold: int
    auc: float


class Control(TypedDict):
    """A baseline that was fitted for comparison; `rows` of `of_rows` in the first fold."""

    algorithm: str
    parameters: Parameters
    fit_seconds: float
    failed: str | None
    rows: int | None
    of_rows: int | None


class AreaDifference(Interval):
    """By how much the chosen ranker's area is greater than a baseline's."""

    p_value: float
    adjusted_p_value: float


class ControlArea(TypedDict):
    """A baseline's area in one window, and how the chosen ranker's differs from it."""

    algorithm: str
    area: Interval
    difference: AreaDifference


class ControlWindow(Window):
    """The chosen ranker and the baselines in one window."""

    chosen: Interval
    controls: list[ControlArea]


class ControlFigure(TypedDict):
    """The values of the chosen ranker and the baselines in the metric of the objective."""

    figure: str
    chosen: Interval
    controls: list[ControlArea]


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
    """A mean score and its parts; None where it is infinite."""

    score: float | None
    miscalibration: float | None
    discrimination: float
    uncertainty: float


class ReliabilityPoint(TypedDict):
    """A point of a reliability diagram, with the limits of its two intervals."""

    probability: float
    observed: float
    low: float
    high: float
    consistent_low: float
    consistent_high: float


class Reliability(TypedDict):
    """The quality of probabilities on some rows; an interval with an infinite end is None."""

    level: float
    n: int
    n_positives: int
    predicted: float
    observed: float
    brier: ScoreParts
    log: ScoreParts
    in_the_large: Interval | None
    slope: Interval | None
    histogram: list[float]
    points: list[ReliabilityPoint]


class AliasPromise(TypedDict):
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


class AliasCut(TypedDict):
    """The cut by which a version keeps its alias's promise, with its rates on the validation rows.

    Scores of at least `threshold` are flagged; None: no score.
    """

    threshold: float | None
    fpr: float
    tpr: float


class ReasonEntry(TypedDict):
    """An entry of a dictionary of reasons: the code and the text of some columns' parts of a score.

    It holds for a row whose value of the column is in the range or among the categories; `missing` says whether a
    missing value is; None: any, or with a range or categories no missing one. `direction` None: both.
    """

    code: str
    text: str
    columns: list[str]
    direction: str | None
    min: float | str | None
    max: float | str | None
    categories: list[str] | None
    missing: bool | None


class ScoreHistogram(TypedDict):
    """The distribution of a column of scores: `counts` of the bins between `edges`. A score on an edge is in the bin
    above.
    """

    name: str
    low: float | None
    high: float | None
    mean: float | None
    edges: list[float]
    counts: list[int]


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
