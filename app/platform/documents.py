"""Documents: the JSON that columns of tables hold, key by key.

A key that is stored stays as it is, for old rows must read; `NotRequired` marks what only some kinds or versions have.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Parameters = dict[str, Any]
"""An algorithm's parameters by name. What each may be, its estimator's signature says."""


class DatasetLineage(TypedDict):
    """A version of a dataset and its content, as they were when a job was handed in."""

    id: str
    name: str
    version: int
    sha256: str
    pairs_sha256: str | None
    rows_from: str | None


class TableFile(TypedDict):
    """Where a dataset's table lies, and which column is what; `pairs` is the file of its pairs."""

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
    """The mean over queries of a figure of lists; `skipped` queries have no value."""

    figure: str
    value: float
    low: float
    high: float
    queries: int
    skipped: int
    effective_queries: float


class ListFigures(TypedDict):
    """The figures of lists on some rows, and the number of their queries."""

    level: float
    queries: int
    figures: list[ListFigure]


class GradedOrder(TypedDict):
    """How well graded rows that are one list are in order; `pairwise` is the AUC of each grade over each lower one."""

    c_index: Interval
    mean_auc: Interval
    volume: Interval | None
    pairwise: list[list[float | None]]


class Objective(TypedDict):
    """What a job aims at: `auc`, `pauc` in a window, `tpr` at a rate, `average_precision`, `precision_at_recall`,
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
    """How a job's ranker is judged: `holdout`, `cross_validation`, `dataset` or `none`."""

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
    """How a model's own table spells missing values; None: as usual. It also has the fields of its dialect that hold
    for the tables that the model scores: `app.ingest.formats.notation_fields`.
    """

    missing: list[str] | None


class Interval(TypedDict):
    """A figure with its confidence interval."""

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
    """What a job searches, and how."""

    method: str
    space: dict[str, Any]
    n_candidates: NotRequired[int | None]
    folds: NotRequired[int | None]
    fraction: NotRequired[float]


class SearchCandidate(TypedDict):
    """A candidate of a search, and what it was worth."""

    parameters: Parameters
    value: float | None
    auc: NotRequired[float | None]
    rows: NotRequired[float]
    seconds: NotRequired[float | None]
    state: NotRequired[str]
    reason: NotRequired[str]


class FoldChoice(TypedDict):
    """What the search of one fold has chosen; repeat and fold count from 1."""

    repeat: int
    fold: int
    chosen: Parameters


class SearchRecord(SearchSpec):
    """What a search has tried and chosen."""

    chosen: Parameters
    candidates: list[SearchCandidate]
    seconds: float
    folds_chosen: list[FoldChoice]


class MemberRecord(TypedDict):
    """A ranker of which a model is made: several make a rank average."""

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
    """The chosen ranker and the baselines by the figure that the objective names."""

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
    """How good probabilities are on some rows; intervals with an end that is not finite are None."""

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
    """What every version behind an alias keeps: the FPR is at most `fpr`, or the TPR at least `tpr`; or it flags at
    most the fraction `flagged` of the rows, or the scores of at least `threshold`. All but one are None or absent.

    `confidence` None: on the validation rows. Otherwise in the population, with this confidence; of a rate only.
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
    """What a batch of scores holds, in short.

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
