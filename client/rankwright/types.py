"""What the service answers: every object of its API, by the name that /openapi.json has for it.

Made from that description by tests/app/client/make_client.py; not written by hand.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal

from rankwright.records import Record


class AbsentPart(Record):
    """A part that the model does not have."""

    part: Literal['metrics', 'roc', 'operating_points', 'operating_point']
    code: str
    """The code of the problem that the part's own address answers."""
    detail: str

class Algorithm(Record):
    """An algorithm that can be trained."""

    name: str
    summary: str
    paper: str
    kinds: list[Literal['bipartite', 'preferences', 'multilabel', 'graded']]
    """Kinds of datasets that it can train on."""
    parameters: dict[str, Any]
    """JSON Schema of the parameters, which a job's `algorithm` has beside `name`: types, bounds and
    defaults.
    """

class Algorithms(Record):
    """All algorithms."""

    data: list[Algorithm]

class Alias(Record):
    """An alias with its history."""

    name: str
    alias: str
    revision: int
    model_id: str
    guarantee: CurrentGuarantee | None
    """What every version behind the alias keeps. Null: nothing is promised, and answers have no `flag`."""
    cutoff: AliasCutoff | None
    """How the present version keeps the promise."""
    memo: StoredMemo | None
    """Why the alias was moved, as the caller said."""
    author: str | None
    """Name of the key that moved the alias. Null: the alias was moved without a key."""
    updated_at: str
    history: list[AliasStep]

class AliasCutoff(Record):
    """The threshold by which a version keeps the promise, and its rates on the validation rows."""

    threshold: float | None
    """Scores of at least this are flagged. Null: nothing is flagged."""
    fpr: float
    tpr: float

class AliasStep(Record):
    """The model that an alias pointed to from this time, with the promise and the cut of that time."""

    revision: int
    model_id: str
    guarantee: CurrentGuarantee | None
    cutoff: AliasCutoff | None
    memo: StoredMemo | None
    author: str | None
    at: str

class AliasSummary(Record):
    """An alias: a name that can be moved to another model. `revision` is also its ETag."""

    name: str
    alias: str
    revision: int
    model_id: str
    guarantee: CurrentGuarantee | None
    """What every version behind the alias keeps. Null: nothing is promised, and answers have no `flag`."""
    cutoff: AliasCutoff | None
    """How the present version keeps the promise."""
    memo: StoredMemo | None
    """Why the alias was moved, as the caller said."""
    author: str | None
    """Name of the key that moved the alias. Null: the alias was moved without a key."""
    updated_at: str

class AreaDrift(Record):
    """Change of one figure between the model's validation and this dataset: two independent samples."""

    of: Literal['auc', 'pauc', 'pair_order', 'list', 'grades', 'prevalence']
    """`auc`, `pauc`, `pair_order`, `list` (a figure within queries), `grades` or `prevalence`."""
    metric: str | None = None
    """The name of the figure, such as ndcg@10; null for areas."""
    label: str | None = None
    """The label, for a model with several labels."""
    fpr_min: float | None = None
    fpr_max: float | None = None
    before: Interval
    after: Interval
    change: Interval
    """`after` minus `before`, with the interval of Zou and Donner."""
    p_value: float
    adjusted_p_value: float
    """p-value adjusted by Holm over all tests of this drift."""
    changed: bool
    words: str

class Artifact(Record):
    """The file of the model."""

    sha256: str
    bytes: int

class AuditEntry(Record):
    """One change, as the audit log records it."""

    id: str
    created_at: str
    key_id: str | None
    """The key that made the change. Null for the command line on the server."""
    action: str
    """The route or the command."""
    path: str | None
    """Path of the request, without its query."""
    made: list[str]
    """Ids of the resources that were created."""
    request_id: str | None
    client: str | None
    """Network address of the caller. Null for the command line."""

class Band(Record):
    """The kind of the confidence limits."""

    kind: Literal['pointwise', 'simultaneous']
    """`pointwise`: for each point by itself. `simultaneous`: for the whole curve at once."""
    level: float

class Baseline(Record):
    """A control: a simple benchmark model fitted on the same splits."""

    algorithm: str
    parameters: dict[str, Any]
    fit_seconds: float
    """Fit time of all folds, in seconds."""
    failed: str | None
    """Why the fit failed; otherwise null."""
    rows: int | None
    """Number of training rows, in the first fold. Null if it failed before it had any."""
    of_rows: int | None
    """Number of available training rows. Greater than `rows` if only a sample was used."""
    random_split: SeemingArea | None = None
    """AUC where the newest rows judge: what it would seem to be if rows of the training part that are
    drawn at random judged in their place. Its difference from the control's AUC is what time does. Null
    otherwise, and for all but the first control.
    """

class BaselineArea(Record):
    """The area of one control over one window."""

    algorithm: str
    area: Interval
    difference: Difference

class BaselineWindow(Record):
    """A window of false positive rates."""

    fpr_min: float
    fpr_max: float

class Baselines(Record):
    """Whether a model is significantly better than simple benchmark models."""

    model_id: str
    level: float
    beats: bool | None
    """True if the model's `metric`, or without one its area over the window `decided_on`, is greater than
    that of every control, each with an adjusted p-value below 1 - level. False also if there are too
    few rows for a test. Null if no control was fitted.
    """
    decided_on: BaselineWindow
    """Window of the job's objective. For `tpr`: the window that it is trained on."""
    baselines: list[Baseline]
    windows: list[WindowBaselines]
    metric: MetricBaselines | None = None
    """For an objective such as `average_precision` or `precision`: the same by its figure."""
    skipped: str | None
    """Why no controls were fitted; otherwise null."""

class BatchReasons(Record):
    """The reasons beside the scores of a table."""

    n: int
    """Reasons per row."""
    reference: Literal['negative', 'average', 'cutoff']
    direction: Literal['raises', 'lowers', 'both']
    threshold: float | None
    dictionary: int | None
    """Revision of the reason codes. Null: the name had none."""

class BatchScore(Record):
    """A table that a job scores. If it is `ready`, `…/result` has the kept columns, row numbers and
    scores, in the order of the rows, and `…/summary` tells what is in it.
    """

    id: str
    status: Literal['processing', 'ready', 'failed', 'cancelled', 'timed_out']
    """`processing`, `ready`, or how its job ended without a result: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    model_id: str
    model_name: str
    model_version: int
    dataset_id: str | None
    """The dataset that was scored. Null if the rows were sent with the request."""
    dataset_name: str | None
    file_name: str | None = None
    """Name of the file of the rows, if it was sent: as `file_name`, or by a form."""
    alias: str | None = None
    """The alias that the model was named by. Null: it was named by version, name or id."""
    keep: list[str]
    """Columns that are copied to the result."""
    top: int | None = None
    """The result has at most this many rows: those with the highest scores, best first; equal scores in
    their order. Null: all rows.
    """
    reasons: BatchReasons | None = None
    """The reasons in the result. Null: none were asked for."""
    rows: int | None
    """Number of rows that were scored, if `ready`."""
    flagged: int | None = None
    """Number of rows that the alias flags, if `ready`. Null: the model was not named by an alias with a
    cut.
    """
    columns: list[ResultColumn] | None
    """Columns of the result, if `ready`."""
    bytes: int | None
    """Size of the result in bytes, if `ready`."""
    sha256: str | None
    """SHA-256 of the result, if `ready`. It is also the ETag."""
    error: dict[str, Any] | None
    """The problem, if the job failed. Its `errors` have lines and columns."""
    created_at: str

class BatchSummary(Record):
    """What the result of a batch score holds, in short."""

    batch_score_id: str
    rows: int
    """Number of rows that were scored."""
    scores: list[ScoreHistogram]
    """The scores of all rows, also with `top`. One entry per label."""
    threshold: float | None
    """Cut of the alias, if it keeps a promise and flags a score."""
    flagged: int | None
    """Number of rows with a score of at least the cut. Null if the model was not named by an alias that
    keeps a promise.
    """
    ignored: list[str]
    """Columns of the rows sent that were not read, such as the model's label; at most 100."""
    columns: list[str]
    """Columns of `first`: those of the result, at most 150. Of more, kept columns are left out."""
    first: list[list[float | bool | str | None]] | None
    """The 50 rows with the highest scores, best first; one value per column. `row_number` is the row's
    number in the table, from 1. Texts end after 200 characters. Null for a model with several labels.
    """

class Best(Record):
    """The best candidate up to now."""

    trial: int
    """Number of the trial that completed this candidate; 0 for a mean rank of several candidates."""
    algorithm: str
    parameters: dict[str, Any]
    """The searched parameters; for `auto` those that it changed. At most 8."""
    rows: int | None
    """Number of training rows (or pairs)."""
    splits: int
    """Number of inner splits whose mean `value` is: all of them. A candidate that waits for some of its
    splits has no row yet.
    """
    value: float
    """Value of the job's objective, as mean over the inner splits."""
    seconds: float
    """Fit time over all inner splits, in seconds."""
    metric: Literal['auc', 'pauc', 'tpr', 'average_precision', 'precision', 'lift', 'precision_at_recall', 'ndcg', 'pair_order']
    """The metric of the job's objective."""

class BestPossibleMargin(Record):
    """The greatest margin of any combination of the weak rankers, computed by linear programming."""

    rho: float
    margin: float
    """Margin of the best combination found. rho is at least this."""
    edge: float
    """Greatest edge under the pair weights found. rho is at most this."""
    short_by: float
    """rho minus the margin of the model."""

class Calibration(Record):
    """What makes probabilities of a model's scores: a map that never decreases."""

    version: int
    method: Literal['platt', 'beta', 'isotonic']
    """`platt`, `beta` or `isotonic`: the one with the least log loss on held-out folds."""
    trained_on: Literal['validation', 'out_of_fold', 'dataset']
    """`validation`: the validation rows. `out_of_fold`: the out-of-fold scores of a cross-validated model,
    on the scale of the served ranker. `dataset`: a later dataset.
    """
    dataset: DatasetVersion | None
    """The dataset of the rows."""
    rows: int
    positives: int
    prevalence: float
    """Fraction of positives, by weight, in the rows: the population that probabilities are for, unless a
    request states another.
    """
    job_id: str
    created_at: str
    model_id: str
    log_losses: dict[str, float]
    """Mean log loss of each compared method on held-out folds. Empty if there were too few rows of a class
    to compare: then the method is `platt`.
    """
    reliability: Reliability | None
    """How good the probabilities are, on held-out rows of these. Null if there were too few."""
    history: list[CalibrationSummary]
    """All versions, the latest first. The first of them is served."""

class CalibrationDrift(Record):
    """How good the probabilities of a model's calibration are on later rows."""

    level: float
    """Confidence level of each interval by itself."""
    n: int
    """Number of rows."""
    n_positives: int
    predicted: float
    """Mean probability."""
    observed: float
    """Fraction of positives."""
    brier: ScoreParts
    """Brier score: the mean of (probability − label)²."""
    log: ScoreParts
    """Log loss, with natural logarithms."""
    in_the_large: Interval | None
    """Log odds to add to every probability so that as many positives are predicted as there are."""
    slope: Interval | None
    """Factor of the log odds. Below 1: the probabilities are too extreme. Null if they are all equal."""
    shape: CalibrationShape | None = None
    """Errors that change their sign along the probabilities, which level and slope do not show. Null if
    there are too few rows to test it, or if an earlier version measured the rows.
    """
    histogram: list[float]
    """Fraction of the rows with a probability in [0, .1), [.1, .2), …, [.9, 1]."""
    points: list[ReliabilityPoint]
    version: int
    """The version of the calibration that was served."""

class CalibrationPeriods(Record):
    """The level of the probabilities in each time window of a validation by time."""

    levels: list[PeriodLevel]
    """Log odds of each window's rows relative to the calibration, the earliest window first. Below 0:
    fewer rows were positive than the calibration now predicts.
    """
    step: float
    """Standard deviation of the change of the level from one window to the next. 0: all windows count
    alike; otherwise later windows count more.
    """
    p_value: float
    """Of the hypothesis that the level is the same in all windows."""

class CalibrationShape(Record):
    """How far the log odds of the outcome are from a line in the log odds of the probabilities."""

    value: float
    """Root mean square distance in log odds, corrected for chance."""
    low: float
    high: float
    p_value: float
    """Of the hypothesis that they are on a line."""
    degrees: int
    """Degrees of freedom of the test."""
    information: float
    """Sum of p (1 − p) of as many independent rows as these are worth."""

class CalibrationSummary(Record):
    """One version of a calibration."""

    version: int
    method: Literal['platt', 'beta', 'isotonic']
    """`platt`, `beta` or `isotonic`: the one with the least log loss on held-out folds."""
    trained_on: Literal['validation', 'out_of_fold', 'dataset']
    """`validation`: the validation rows. `out_of_fold`: the out-of-fold scores of a cross-validated model,
    on the scale of the served ranker. `dataset`: a later dataset.
    """
    dataset: DatasetVersion | None
    """The dataset of the rows."""
    rows: int
    positives: int
    prevalence: float
    """Fraction of positives, by weight, in the rows: the population that probabilities are for, unless a
    request states another.
    """
    job_id: str
    created_at: str

class Column(Record):
    """The profile of one column."""

    name: str
    type: Literal['numeric', 'boolean', 'datetime', 'categorical'] | None
    """`numeric`, `boolean`, `datetime` or `categorical`. Null if the column was dropped."""
    role: Literal['feature', 'label', 'item', 'weight', 'group', 'query', 'identifier', 'dropped']
    """`feature`, `label`, `item`, `weight`, `group` or `query`. `identifier`: a text column with a
    different value in nearly every row; it is not used as a feature. `dropped`: not read.
    """
    protected: bool | None = None
    """True if the name says that law often protects what the column holds, as `sex` or `age`. Evaluations
    compare its groups by themselves. Default: `false`.
    """
    missing: int | None
    distinct: int | None = None
    """Number of different values."""
    distinct_is_bound: bool | None = None
    """True if the column has `distinct` different values or more. Default: `false`."""
    constant: bool | None = None
    """For a feature: true if all rows have the same value, or all are missing. Such a feature cannot rank."""
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    top: list[TopValue] | None = None

class ColumnInterval(Record):
    """An AUC and its interval at level 0.95."""

    value: float
    low: float
    high: float

class ColumnProfile(Record):
    """The distribution of one feature, and how well it ranks the label alone, without missing values.
    Dates are seconds since 1970.
    """

    name: str
    quantiles: list[Quantile] | None
    """Null for a categorical feature."""
    histogram: Histogram | None
    """Null for a categorical feature."""
    auc: ColumnInterval | None
    """AUC of the feature's values as scores. The score of a category is the fraction of positives among
    its other rows. Null without a label of two values.
    """
    missing_auc: ColumnInterval | None
    """AUC of the score that is 1 for a missing value and 0 otherwise. Null if no value or every value is
    missing.
    """
    leak: bool
    """True if its AUC is so extreme that it was probably made from the label."""

class ComparedCost(Record):
    """What errors cost by one model, at its own cut of least cost."""

    threshold: float | None
    """Flag every row whose score is at least this. Null: no row."""
    flagged: float
    """Fraction of the rows with such scores."""
    in_sample: float
    """Mean cost of a row on the rows that chose the cut: too low."""
    held_out: DecisionCost | None
    """Each part of the rows is judged by the cut that the others choose. Null if all rows are one group."""
    parts: int
    threshold_low: float | None
    """The least cut that the parts have chosen. Null: no row is flagged."""
    threshold_high: float | None
    """The greatest of these. Null: no row."""
    model_id: str

class ComparedCostPair(Record):
    """Cost per row of `first` minus that of `second`, each held out: below 0 if `first` costs less."""

    first: str
    """Id of a model."""
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float
    """p-value adjusted by Holm over all pairs."""

class ComparedCosts(Record):
    """The models by what their errors cost."""

    models: list[ComparedCost]
    differences: list[ComparedCostPair]

class ComparedCurve(Record):
    """The ROC curve of one model on the compared rows."""

    model_id: str
    points: list[ComparedPoint]
    """At most 100 points, from (0, 0) to (1, 1)."""

class ComparedLists(Record):
    """The models by the mean over the queries of one figure of lists. The tests are paired by query."""

    differences: list[ComparedPair]
    """The adjusted p-values are Holm's over all pairs and figures, apart from the windows."""
    winner: str | None = None
    """Id of the model that is better than every other one, each difference with an adjusted p-value of at
    most 0.05. Null if there is none.
    """
    metric: str
    """The name of the figure."""
    values: list[ComparedValue]
    p_value: float | None
    """Joint p-value of the hypothesis that all models have the same figure. Null for an area over a window
    that holds fewer than 3 effective negatives.
    """
    queries: int
    """Number of queries in which it has a value."""
    skipped: int
    """Number of queries in which it has none."""

class ComparedMetric(Record):
    """The models by one figure, and their differences."""

    differences: list[ComparedPair]
    """The adjusted p-values are Holm's over all pairs and figures, apart from the windows."""
    winner: str | None = None
    """Id of the model that is better than every other one, each difference with an adjusted p-value of at
    most 0.05. Null if there is none.
    """
    metric: str
    """The name of the figure."""
    values: list[ComparedValue]
    p_value: float | None
    """Joint p-value of the hypothesis that all models have the same figure. Null for an area over a window
    that holds fewer than 3 effective negatives.
    """

class ComparedModel(Record):
    """One of the models, under its name when the comparison was requested."""

    model_id: str
    name: str
    version: int
    seen: Literal['trained', 'validated', 'overlaps', 'new'] | None = None
    """What the model has seen of these rows. `trained`: it was trained on rows of the dataset, and its
    figures are too optimistic. `validated`: it was validated on rows of the dataset. `overlaps`: too
    many rows equal rows that it was trained on, as a warning says. `new`: none of these. Null until
    that is known, and if the training table was gone by then.
    """

class ComparedPair(Record):
    """Area of `first` minus area of `second`, on the same rows."""

    first: str
    """Id of a model."""
    second: str
    value: float
    low: float
    high: float
    p_value: float | None
    """Null if the window holds fewer than 3 effective negatives (4 in each fold), or the rows fewer than 3
    positives; a warning says how many are needed.
    """
    adjusted_p_value: float | None
    """p-value adjusted by Holm over all pairs and windows. Null without `p_value`."""

class ComparedPoint(Record):
    """A point of a ROC curve."""

    fpr: float
    tpr: float

class ComparedValue(Record):
    """The area of one model over a window, divided by the window's width."""

    value: float | None
    low: float | None
    high: float | None
    model_id: str

class ComparedWindow(Record):
    """The areas of the models over one window, and their differences."""

    differences: list[ComparedPair]
    winner: str | None = None
    """Id of the model that is better than every other one, each difference with an adjusted p-value of at
    most 0.05. Null if there is none.
    """
    fpr_min: float
    fpr_max: float
    values: list[ComparedValue]
    p_value: float | None
    """Joint p-value of the hypothesis that all areas over this window are equal. Null if the window holds
    fewer than 3 effective negatives (4 in each fold), or the rows fewer than 3 positives; a warning
    says how many are needed.
    """

class Comparison(Record):
    """A comparison of models on one dataset. It stays when a model or the dataset is deleted."""

    id: str
    status: Literal['processing', 'ready', 'failed', 'cancelled', 'timed_out']
    """`processing`, `ready`, or how its job ended without a result: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    models: list[ComparedModel]
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None
    """SHA-256 of the content of that version."""
    windows: list[NewWindow]
    level: float
    warnings: list[str]
    """Warnings; one names the models that were trained on rows of the dataset."""
    amount: str | None = None
    """The column of amounts."""
    costs: NewCosts | None = None
    """The costs that were asked for."""
    result: ComparisonResult | None
    """Null until the comparison is ready."""
    error: dict[str, Any] | None
    """The problem, if the job failed."""
    created_at: str

class ComparisonResult(Record):
    """The result of a comparison."""

    positives: int
    negatives: int
    groups: int | None
    """Number of groups, if the dataset has a group column. The tests then allow for correlation within a
    group.
    """
    n_tests: int
    """Number of tests: pairs of models times the windows that have p-values."""
    p_value: float | None
    """Joint p-value of the hypothesis that all areas are equal in every window that has p-values. Null if
    none has.
    """
    windows: list[ComparedWindow]
    metrics: list[ComparedMetric] | None = None
    """The comparison by each of the `metrics` of the request."""
    costs: ComparedCosts | None = None
    """The comparison by costs. Null if none were asked for."""
    lists: list[ComparedLists] | None = None
    """The comparison within queries, by `auc`, `ndcg@10` and `map`. Empty without a query column."""
    curves: list[ComparedCurve] | None = None
    """The ROC curve of each model on these rows. Empty in a list."""

class Cost(Record):
    """Mean cost per row at this threshold."""

    value: float | None
    low: float | None
    high: float | None
    flag_none: float
    """Mean cost per row if no row is flagged."""
    flag_all: float
    """Mean cost per row if every row is flagged."""
    false_positive: float
    false_negative: float

class CountedValue(Record):
    """A value of the label, and how many rows have it."""

    value: str
    count: int | None
    """Number of rows. Null for a version to which rows were appended."""
    positive: bool
    """True if the value counts as positive."""

class CrossGroupAuc(Record):
    """xAUC: the probability that a positive of one group scores above a negative of another; a tie counts
    half (Kallus & Zhou 2019).
    """

    value: float | None
    low: float | None
    high: float | None
    reason: str | None
    """Null if there is a figure. Else what the group lacks, such as rows of a class."""
    positives_of: str | None
    """The group of the positives."""
    negatives_of: str | None
    """The group of the negatives."""

class CurrentGuarantee(Record):
    """What every version behind an alias keeps: an FPR of at most `fpr`, a TPR of at least `tpr`, at most
    the fraction `flagged` of the rows, or scores of at least `threshold`. The others are null.
    """

    fpr: float | None
    tpr: float | None
    flagged: float | None = None
    threshold: float | None = None
    confidence: float | None
    """The confidence with which the rate of future rows is promised. Null: the rate is that on the
    validation rows.
    """

class Cutoff(Record):
    """A threshold and its consequences: every score of at least `threshold` is flagged. Null: nothing is
    flagged.
    """

    threshold: float | None
    fpr: Interval
    """Fraction of the negatives that are flagged."""
    tpr: Interval
    """Fraction of the positives that are flagged."""
    precision: Interval
    lift: Interval
    flagged: Interval
    """Fraction of all rows that are flagged, at this `prevalence`."""
    threshold_low: float | None
    """Lower end of an interval, up to `threshold_high`, for the threshold that has the requested rate or
    the lowest cost in the population. Null: the data set no limit.
    """
    threshold_high: float | None
    prevalence: float
    """Fraction of positives that precision, lift and cost assume. Default: that of the data."""
    tpr_at_fpr: Interval | None
    """If `fpr` was requested: the TPR at exactly this FPR. The interval includes the uncertainty of the
    threshold.
    """
    fpr_at_tpr: Interval | None
    """If `tpr` was requested: the FPR at exactly this TPR."""
    cost: Cost | None
    """Mean cost per row, if costs were given."""

class Dataset(Record):
    """An uploaded table."""

    id: str
    series_id: str
    """Id of the first version of this series."""
    version: int
    """Number of the version in its series, from 1. It is never used again."""
    parent_id: str | None
    """The version that it was made from; it may have been deleted. Null for the first version."""
    mode: Literal['append', 'replace'] | None
    """`append`: the rows of the parent, then those of the upload. `replace`: only those of the upload.
    Null for the first version.
    """
    name: str
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    status: Literal['processing', 'ready', 'invalid']
    """`processing`, `ready` or `invalid`."""
    job_id: str | None
    """The job that reads the table."""
    content_type: Literal['text/csv', 'application/vnd.apache.parquet', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.arrow.file', 'application/x-ndjson', 'application/json', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet']
    content_encoding: Literal['gzip', 'zstd', 'zip'] | None
    label: str | None
    positive: str | None
    """Value of the label that counts as positive."""
    negative: str | None
    weight: str | None
    group: str | None
    query: str | None
    """Column of the queries: rows are put in order within each query."""
    item: str | None
    """Column of the items' names."""
    bytes: int
    """Size of the upload in bytes."""
    sha256: str
    """SHA-256 of the content. For a first or replaced version: that of the uploaded bytes. For an appended
    version: that of the text made of the parent's `sha256` and `upload_sha256`, joined. For several
    files: as if each had been appended to those before.
    """
    upload_sha256: str
    """SHA-256 of the uploaded bytes; of a dataset of several files: of the list of their hashes."""
    rows: int | None
    positives: int | None
    negatives: int | None
    pairs: Pairs | None
    """The pairs of a dataset of kind `preferences`. Null until they are uploaded."""
    created_at: str
    positive_guessed: bool | None
    """True if the upload did not name the positive value, and the label's two values do not say by
    themselves which one it is, as `1` and `0` or `yes` and `no` do: check it. Null if it is not known.
    """
    label_values: list[CountedValue] | None
    """The values of the label in the upload, the most frequent first: all that count as positive, and at
    most 100 in all. Null without one label of classes, and until the table was read.
    """
    queries: QuerySizes | None
    """Number and sizes of the queries. Null without a query column, and until the table was read."""
    grades: list[GradeRows] | None
    """The grades of a dataset of kind `graded`, the worst first; otherwise null."""
    labels: list[Label] | None
    """The labels of a dataset of kind `multilabel`; otherwise null."""
    dialect: dict[str, str] | None
    """How the text of the upload is written: `encoding`, `delimiter`, `decimal`, `thousands`, `dates`."""
    columns: list[Column]
    errors: list[TableFault]
    warnings: list[TableWarning]
    """How values were changed because they could not be used as they are."""
    categorical: list[str] | None
    """Columns to read as categories although they hold numbers."""
    numeric: list[str] | None
    """Columns to read as numbers. Any other text in them counts as missing."""
    drop: list[str] | None
    """Columns to leave out."""
    missing: list[str] | None
    """Texts that mean a missing value, in upper or lower case. An empty cell is always missing, and so are
    `.`, `-`, `None` in columns of numbers, dates or booleans. Default:
    `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`.
    """
    strict: bool
    """`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is
    a warning. Default: `false`.
    """

class DatasetProfile(Record):
    """The profile of a ready dataset."""

    dataset_id: str
    rows: int | None
    positives: int | None
    negatives: int | None
    queries: QuerySizes | None
    grades: list[GradeRows] | None
    columns: list[ColumnProfile]
    rows_looked_at: int
    """Number of rows that were read: all, or a random sample of a large table."""
    duplicates: Duplicates
    warnings: list[TableWarning]
    """Warnings of the dataset."""

class DatasetVersion(Record):
    """A dataset under its name at the time of use. It may have been deleted since."""

    id: str
    name: str
    version: int
    sha256: str
    """SHA-256 of its content."""
    pairs_sha256: str | None = None
    """SHA-256 of its pairs. Only for a dataset of kind `preferences`."""

class DecisionCost(Record):
    """What a way to decide costs per row, on rows that did not choose it."""

    flagged: float
    """Fraction of the rows that is flagged."""
    cost: Interval
    """Mean cost of a row. Below 0 if benefits outweigh the costs."""
    saved_to_none: Interval
    """What flagging no row costs more, per row: above 0 if this way is cheaper."""
    saved_to_all: Interval
    """The same of flagging every row."""

class DependenceAxis(Record):
    """One feature and the values of its grid."""

    name: str
    type: Literal['numeric', 'boolean', 'datetime', 'categorical']
    """`numeric`, `boolean`, `datetime` or `categorical`."""
    values: list[float | bool | str | None]
    """The values; dates as ISO 8601. The last is null: a missing value."""

class Difference(Record):
    """The model's area minus the control's, and the p-value of the hypothesis that they are equal."""

    value: float | None
    low: float | None
    high: float | None
    p_value: float | None
    """Null if the window holds fewer than 3 effective negatives (4 in each fold), or the rows fewer than 3
    positives; a warning says how many are needed.
    """
    adjusted_p_value: float | None
    """p-value adjusted by Holm over all controls and windows. Null without `p_value`."""

class Drift(Record):
    """What has changed since the model's validation. `changed` of a test: beyond chance, by the adjusted
    p-value, and of a size that matters: of a psi from 0.1, or of log odds or a slope by 0.1. An area
    has no such least size.
    """

    level: float
    """Confidence level of the model's intervals. The tests use 1 - level."""
    changed: bool
    """True if a test has changed; of the features one that has at least 1 % of the importance."""
    summary: str
    areas: list[AreaDrift]
    prevalence: AreaDrift | None = None
    """The fraction of positives. Null without one label."""
    probabilities: list[ProbabilityDrift] | None = None
    """Empty if the model has no calibration. Default: `[]`."""
    features: list[FeatureDrift] | None = None
    """At most 100, those first that matter most, by importance and size. Null if the training table is
    gone.
    """
    scores: list[ScoreDrift]
    """Change of the scores. If the scores change but the areas do not, choose new thresholds."""

class DriftedModel(Record):
    """A model whose newest evaluation found a significant change since its validation."""

    evaluation_id: str
    model_id: str
    model_name: str
    model_version: int
    dataset_id: str
    dataset_name: str
    summary: str
    """What changed, in words."""
    created_at: str
    """Time of the request for the evaluation."""

class Duplicates(Record):
    """Rows that are equal to another row in every feature."""

    rows: int
    """Number of rows that equal another row."""
    repeated: int
    """Number of rows minus number of distinct rows."""
    rows_of_both_classes: int | None = None
    """Number of rows with an equal row of the other class. No ranker can separate them."""
    estimated: bool
    """True if the counts are estimated from a sample of the rows."""
    kinds: int | None = None
    """Number of distinct rows, exactly, if there are fewer than 30; null otherwise."""
    in_splits: Literal['together', 'groups', 'few_kinds', 'time'] | None
    """Where equal rows stand when a job splits the rows of the table. `together`: on one side, and in one
    fold. On both sides they may stand with `groups` (equal rows of different groups or queries), with
    `few_kinds` (fewer than 30 distinct rows, each about 10 times or more), and with `time` (the check
    of a job that splits by time). Null for a dataset of kind `preferences`.
    """

class Estimate(Record):
    """Rough estimate from the size of the table."""

    seconds: float
    memory_bytes: int

class EvaluatedAmounts(Record):
    """The ranking by money."""

    column: str | None
    """The column of amounts. Null if all costs are fixed."""
    amount_of_positives: float | None
    """Their total, weighted."""
    effective: float | None
    """Effective number of positives by amount: few if a few are most of the total. Intervals then are
    wide.
    """
    values: list[EvaluatedValue]
    curve: list[ValuePoint]
    """At most 100 points of the value curves. Empty in a list."""
    costs: EvaluatedCosts | None
    """Null if no `costs` were asked for."""

class EvaluatedCosts(Record):
    """What errors cost by the ranking, per row."""

    rows: float
    """Weight of all rows. A cost per row times this is that of all rows."""
    flag_none: Interval
    """Mean cost of a row if no row is flagged."""
    flag_all: Interval
    least: LeastCost
    threshold: float | None
    """The cut of `at`, or of a model of the objective `tpr`."""
    at: DecisionCost | None
    """At `threshold`, which these rows did not choose. Null if there is none."""
    by_probability: DecisionCost | None
    """Each row is flagged if that costs less on average, by its own probability and amount. Null if the
    model has no calibration.
    """
    probability_saves: ProbabilitySaving | None
    note: str
    """Which rows chose the cut, and which judge it."""

class EvaluatedCurve(Record):
    """Quality of the ranking on rows with one label."""

    auc: Interval
    gini: Interval | None = None
    """2 AUC − 1: the Gini coefficient, or accuracy ratio. Null for evaluations that were made before it
    was added.
    """
    ks: float | None = None
    """The Kolmogorov–Smirnov distance: the greatest difference of TPR and FPR. Biased upwards in small
    samples. Null for evaluations that were made before it was added.
    """
    ks_interval: Interval | None = None
    """`ks` with an interval. Its lower end is from thresholds that were chosen on other rows. Null for
    evaluations that were made before it was added.
    """
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: EvaluatedCutoff | None
    """At the threshold of `cutoff`; null without one."""
    positives: int
    negatives: int
    totals: Totals
    groups: int | None
    """Number of groups, if the dataset has a column of groups or queries. The intervals then allow for
    correlation within a group.
    """
    ties: float
    """Fraction of the pairs of a positive and a negative that have equal scores."""
    calibration: CalibrationDrift | None = None
    """How good the model's probabilities are on these rows. Null if it had no calibration."""
    decision_curve: list[NetBenefit] | None = None
    """Net benefit by threshold probability: 0.01 to 0.50, then 0.55 to 0.95. Each interval is for one
    threshold. The rows must have the prevalence of those that decisions are made on. Null if the model
    had no calibration, and for evaluations that were made before it was added.
    """
    lists: ListMetrics | None = None
    """Figures within queries. The figures above are of all rows as one list. Null without queries."""

class EvaluatedCutoff(Record):
    """The rates on these rows at the threshold of `cutoff`."""

    threshold: float | None
    fpr: Interval
    tpr: Interval
    precision: Interval
    lift: Interval

class EvaluatedGrades(Record):
    """Quality of the ranking on rows with grades."""

    grades: list[GradeRows]
    """The rows of each grade, without those of weight 0."""
    lists: ListMetrics | None
    """Figures within queries. Null without queries."""
    order: GradedOrder | None
    """Figures of all rows as one list. Null with queries."""

class EvaluatedGroup(Record):
    """The counts and figures of one group."""

    value: str | None
    """Value of the column as text. Null: the rows without a value."""
    rows: int
    """Number of rows of weight above 0."""
    positives: int
    negatives: int
    auc: GroupMetric
    pauc: list[GroupArea]
    tpr: GroupMetric | None
    """Fraction of the group's positives at or above `threshold`. Null without a cut."""
    fpr: GroupMetric | None
    """Fraction of the group's negatives at or above `threshold`. Null without a cut."""
    cutoff: GroupCutoff | None
    """Null unless `cutoffs` was asked for."""
    cutoff_reason: str | None
    """Why the group has no cut of its own."""
    calibration: GroupCalibration | None = None
    """Null if the model had no calibration."""

class EvaluatedGroups(Record):
    """Quality of the ranking by groups of rows."""

    column: str
    threshold: float | None
    """The cut that all groups are judged at, if any."""
    cutoffs: Literal['equal_fpr', 'equal_tpr'] | None
    """How the groups' own cuts were chosen. Null: there are none."""
    rate: float | None
    """The FPR or TPR within each group that its own cut aims at."""
    note: str | None
    """What must be known of the groups' own cuts."""
    groups: list[EvaluatedGroup]
    """Ascending by value; the rows without one are last."""
    xauc: list[CrossGroupAuc]
    """Every group's positives against every group's negatives; with its own negatives it is the AUC."""
    tests: list[GroupTest]
    worst: list[WorstGroup]
    """Empty if fewer than two groups have a figure."""

class EvaluatedLabel(Record):
    """Quality of the ranking by one label's scores."""

    label: str
    auc: Interval | None
    """Null if the dataset has too few rows of a class."""
    pauc: list[WindowArea]
    positives: int
    negatives: int

class EvaluatedLabels(Record):
    """Quality of the ranking of a model with several labels."""

    labels: list[EvaluatedLabel]
    evaluated: int
    """Number of labels that have an AUC. The means are over these."""
    mean_auc: float
    mean_pauc: list[MeanArea]

class EvaluatedPairs(Record):
    """Quality of the order of pairs of items."""

    pair_order: Interval
    misrank_fraction: float
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float

class EvaluatedValue(Record):
    """How much of the positives' amount the ranking catches."""

    over: Literal['rows', 'negatives', 'amount_of_negatives']
    """What is flagged for it: a share of all rows, of the negatives (FPR), or of the negatives' amount."""
    area: Interval | None
    """Mean height of the curve. Scores that say nothing have 0.5."""
    recalls: list[ValueRecall]
    reason: str | None
    """Why there is no figure: all amounts of a class are 0."""

class Evaluation(Record):
    """The quality of a model on a dataset. It stays when the model or the dataset is deleted."""

    id: str
    status: Literal['processing', 'ready', 'failed', 'cancelled', 'timed_out']
    """`processing`, `ready`, or how its job ended without a result: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    model_id: str
    model_name: str
    model_version: int
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    """Kind of the dataset."""
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None
    """SHA-256 of the content of that version."""
    windows: list[NewWindow]
    level: float
    group_by: str | None = None
    """The column that names the groups."""
    at: RateOrThreshold | None = None
    """The cut that was asked for."""
    cutoff: EvaluationCutoff | None = None
    """The cut that the rows were judged at. Null if there is none, and until the evaluation is ready."""
    cutoffs: Literal['equal_fpr', 'equal_tpr'] | None = None
    """The groups' own cuts that were asked for."""
    amount: str | None = None
    """The column of amounts."""
    costs: NewCosts | None = None
    """The costs that were asked for."""
    seen: Literal['trained', 'validated', 'overlaps', 'new'] | None = None
    """What the model has seen of these rows. `trained`: it was trained on rows of the dataset, and its
    figures are too optimistic. `validated`: it was validated on rows of the dataset. `overlaps`: too
    many rows equal rows that it was trained on, as a warning says. `new`: none of these. Null until
    that is known, and if the training table was gone by then.
    """
    warnings: list[str]
    metrics: EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | EvaluatedGrades | None
    """The metrics; their form depends on `kind`. Null until the evaluation is ready."""
    groups: EvaluatedGroups | None = None
    """The metrics by group. Null without `group_by`, and until the evaluation is ready."""
    protected: list[EvaluatedGroups] | None = None
    """The same by each protected column."""
    amounts: EvaluatedAmounts | None = None
    """The value that is caught, and what errors cost. Null without `amount` and `costs`, and until the
    evaluation is ready.
    """
    drift: Drift | None
    """Null if the model has no validation, or if it is not independent of these rows; a warning says
    which.
    """
    error: dict[str, Any] | None
    """The problem, if the job failed."""
    created_at: str

class EvaluationCurve(Record):
    """A curve of a model's list on the rows of an evaluation."""

    kind: Literal['precision_recall', 'gains', 'cost', 'histogram']
    axes: list[str]
    """What x and y are: recall and precision; share of the list and recall; weight and cost; or the lowest
    score of a bin and the fraction of the positives in it.
    """
    prevalence: float | None
    """Fraction of positives that the curve assumes. Default: that of the data. Null for costs, whose
    weight includes it, and for a histogram, which has each class by itself.
    """
    exact: bool
    """True if these are all points; false if only some of them, `max_points` at most."""
    total_points: int
    points: list[ListPoint]
    evaluation_id: str
    model_id: str

class EvaluationCutoff(Record):
    """The cut that the rows were judged at, and where it comes from."""

    threshold: float | None
    """Null: no row is flagged."""
    source: Literal['at', 'alias', 'objective']
    """`at`: the request. `alias`: the promise of the alias, at the time of the request. `objective`: the
    model's objective `tpr`.
    """
    alias: str | None
    """The alias, if the cut is an alias's."""

class EvaluationGains(Record):
    """The gains table of a model on the rows of an evaluation."""

    level: float
    """Confidence level of each interval by itself."""
    prevalence: float
    """Fraction of positives that the table assumes. Default: that of the data."""
    rows: list[Gain]
    evaluation_id: str
    model_id: str

class EvaluationMetricEstimates(Record):
    """Figures of a model on the rows of an evaluation."""

    level: float
    """Confidence level of each interval by itself."""
    metrics: list[MetricEstimate]
    evaluation_id: str
    model_id: str

class EvaluationOperatingPoint(Record):
    """One threshold and its consequences on the rows of an evaluation."""

    threshold: float | None
    fpr: Interval
    """Fraction of the negatives that are flagged."""
    tpr: Interval
    """Fraction of the positives that are flagged."""
    precision: Interval
    lift: Interval
    flagged: Interval
    """Fraction of all rows that are flagged, at this `prevalence`."""
    threshold_low: float | None
    """Lower end of an interval, up to `threshold_high`, for the threshold that has the requested rate or
    the lowest cost in the population. Null: the data set no limit.
    """
    threshold_high: float | None
    prevalence: float
    """Fraction of positives that precision, lift and cost assume. Default: that of the data."""
    tpr_at_fpr: Interval | None
    """If `fpr` was requested: the TPR at exactly this FPR. The interval includes the uncertainty of the
    threshold.
    """
    fpr_at_tpr: Interval | None
    """If `tpr` was requested: the FPR at exactly this TPR."""
    cost: Cost | None
    """Mean cost per row, if costs were given."""
    guarantee: RateGuarantee | None = None
    """The promise, if a `confidence` was requested; otherwise null."""
    evaluation_id: str
    model_id: str
    groups: GuaranteesByGroup | None = None
    """Cuts by group, if `by_group` asked for them; otherwise null."""

class EvaluationRoc(Record):
    """The ROC curve of an evaluation."""

    exact: bool
    """False if points were left out because of `max_points`."""
    total_points: int
    band: Band | None = None
    points: list[Point]
    evaluation_id: str

class Event(Record):
    """One event of a job."""

    seq: int
    """Number of the event in its job: 1, 2, 3, and so on."""
    at: str
    type: Literal['state', 'progress', 'message']
    """`state`, `progress` or `message`."""
    data: dict[str, Any]

class Explanation(Record):
    """One score as a sum: `offset` (the mean score of the training rows, or of some of them) plus all
    contributions.
    """

    id: str | float | bool | None = None
    """The id of the row, if one was asked to come back (`id`)."""
    score: float
    fpr: float | None
    tpr: float | None
    probability: float | None = None
    """Probability that the row is positive, by the model's calibration. Null without one. Absent with
    `probability=false`.
    """
    probability_low: float | None = None
    """With `interval=true`: the probability if the row itself counts as a negative."""
    probability_high: float | None = None
    """With `interval=true`: the probability if the row itself counts as a positive."""
    offset: float
    contributions: dict[str, float]
    method: Literal['contributions', 'rows']
    """`contributions`: the score is a sum by feature; in trees each split's change goes to its feature.
    `rows`: Shapley values, where a feature that is not yet known has its value in a row of the
    reference. Exact for ranking trees, and where at most seven features differ from that row's; else
    estimated from permutations, with an `error`.
    """
    exact: bool
    """False: the contributions are estimates, for the model's scores are no sums by feature. They sum to
    the score exactly nevertheless.
    """
    errors: dict[str, float] | None
    """Standard error of each contribution. Null: they are exact."""

class Explanations(Record):
    """One explanation per row."""

    model_id: str
    explanations: list[Explanation]
    no_probability: str | None = None
    """Why there is no probability, if one was asked for and the model has no calibration."""

class Feature(Record):
    """A feature that the model uses."""

    name: str
    type: Literal['numeric', 'boolean', 'datetime', 'categorical']
    """`numeric`, `boolean`, `datetime` or `categorical`."""
    missing: bool
    """True if the feature had missing values in training. Then a row may leave it out."""
    categories: list[str] | None = None
    """For a categorical feature: its first 100 categories in text order. The artifact has all. Any unknown
    text counts as missing.
    """
    n_categories: int | None = None
    """Number of all categories."""

class FeatureBin(Record):
    """A bin of a feature's values, and the fraction of the rows that it has."""

    of: Literal['values', 'category', 'rare', 'new', 'missing']
    """`values`: numbers above `low` and up to `high`; dates as seconds since 1970. `category`: one
    category. `rare`: all other categories of the training table. `new`: categories that it does not
    have. `missing`: no value.
    """
    low: float | None
    """Null: no limit."""
    high: float | None
    """Null: no limit."""
    category: str | None
    before: float
    """Fraction of the rows of the training table."""
    after: float
    """Fraction of the rows here."""

class FeatureDrift(Record):
    """How far the values of a feature are from those of the training table, over tenths of its numbers or
    over its most frequent categories; missing values have a bin of their own.
    """

    name: str
    importance: float | None
    """Share of the feature in the importance of all. Null if that was not measured."""
    psi: Interval | None
    """Population stability index, corrected for chance: below 0.1 little, from 0.25 much. Null without a
    test.
    """
    distance: float
    """Total variation distance over the bins, from 0 to 1."""
    p_value: float | None
    """Null without a test; `reason` says why."""
    adjusted_p_value: float | None
    """Null without a test; `reason` says why."""
    changed: bool | None
    """Null without a test; `reason` says why."""
    reason: str | None = None
    """Why there is no test. Either neighbouring rows of the table are alike and no column of times orders
    them, or the rows are too few for the serial dependence that they have in time. Null with a test.
    """
    words: str
    bins: list[FeatureBin] | None = None
    """The bins of the first 20 features. Null for others."""

class FeatureImportance(Record):
    """How much one feature matters."""

    name: str
    importance: float
    root: float | None = None
    """For `squared_auc_gain`: the square root of `importance`."""
    auc_gain: float | None = None
    """For `squared_auc_gain`: the sum of the gains in training AUC, not squared."""

class Fit(Record):
    """Whether a dataset can be used with a model."""

    model: str
    """The model, as the request named it."""
    dataset_id: str
    fits: bool
    reason: str | None
    """What the dataset lacks, in words that follow “the dataset”. Null if it fits."""

class Fits(Record):
    """Which models and datasets fit each other: an entry for each pair."""

    data: list[Fit]

class FoldAuc(Record):
    """The AUC of one fold."""

    repeat: int
    fold: int
    auc: float

class FoldChosen(Record):
    """The parameters that the search of one fold chose."""

    repeat: int
    fold: int
    chosen: dict[str, Any]

class Gain(Record):
    """The first rows of the list, down to one size."""

    share: float
    """Fraction of all rows."""
    count: float
    """Number of rows; their weight, if rows are weighted."""
    threshold: float
    """Lowest score among them."""
    tied: float
    """Number of all rows with that score."""
    taken: float
    """Number of those that are within the size; they are taken at random."""
    positives: float
    """Number of positives among the first rows; the mean, if a tie lies across the cut."""
    precision: Interval
    recall: Interval
    lift: Interval

class GradeRows(Record):
    """A grade, and how many rows have it."""

    grade: int
    rows: int

class GradedMetrics(Record):
    """Quality of a model that was trained on grades, on one part."""

    model_id: str
    on: Literal['validation', 'train']
    level: float
    """Confidence level of the intervals."""
    grades: list[GradeRows]
    """The rows of each grade, without those of weight 0."""
    lists: ListMetrics | None
    """Figures within queries. Null without queries, and with fewer than two queries that have rows of
    different grades.
    """
    order: GradedOrder | None
    """Figures of all rows as one list. Null with queries."""

class GradedOrder(Record):
    """How well rows with grades are in order, all of them as one list."""

    c_index: Interval
    """Fraction of the pairs of rows of different grades that are in order; a tie counts half."""
    mean_auc: Interval
    """Mean over all pairs of grades of the AUC between them."""
    volume: Interval | None
    """Probability that one row of each grade, drawn at random, are all in order. Null for more than nine
    grades.
    """
    pairwise: list[list[float | None]]
    """AUC of each grade (column) over each lower one (row), in ascending order of the grades; otherwise
    null.
    """

class GroupArea(Record):
    """Partial AUC within one group, over a window of FPR within the group."""

    value: float | None
    low: float | None
    high: float | None
    reason: str | None
    """Null if there is a figure. Else what the group lacks, such as rows of a class."""
    fpr_min: float
    fpr_max: float

class GroupCalibration(Record):
    """The positives that the served probabilities predict in a group, and those that there are."""

    predicted: float | None
    """Mean probability. Null if no row has a weight."""
    observed: GroupMetric
    """Fraction of positives."""
    in_the_large: GroupMetric
    """Log odds to add to every probability so that as many positives are predicted as there are. 0 lies
    outside of the interval: the group's probabilities are too low (above 0) or too high.
    """
    points: list[ReliabilityPoint]
    """The group's reliability diagram, at most 11 points. Empty where `in_the_large` has none."""

class GroupCutoff(Record):
    """A group's own cut, chosen on these same rows: see `note`. The intervals do not include its choice."""

    threshold: float | None
    """Null: no row is flagged."""
    threshold_low: float | None
    """The cut of the population lies between this and `threshold_high`. Null: the rows set no limit."""
    threshold_high: float | None
    fpr: Interval
    tpr: Interval

class GroupGuarantee(Record):
    """A cut for the rows of one group that keeps the promise among them."""

    value: str | None
    """Value of the column as text. Null: the rows without a value."""
    threshold: float | None
    """Rows of the group with at least this score are flagged. Null if the group has too few rows."""
    rows: int
    """Number of the group's negatives (of its positives for a TPR), on which the promise rests."""
    needed: int
    """Least number of them with which the cut can be promised."""
    errors: int | None
    """The cut flags at most this many of the negatives, or misses at most this many of the positives."""
    broken: float | None
    """Greatest probability that this group's promise is broken."""
    fpr: Interval | None
    """FPR of the cut on the group's rows. Null without a cut or negatives, or if their weights differ."""
    tpr: Interval | None
    """TPR of the cut on the group's rows. Null without a cut or positives, or if their weights differ."""

class GroupMetric(Record):
    """A figure of one group, or the reason why it has none."""

    value: float | None
    low: float | None
    high: float | None
    reason: str | None
    """Null if there is a figure. Else what the group lacks, such as rows of a class."""

class GroupTest(Record):
    """A joint test that a figure is the same in all groups that have it."""

    of: Literal['auc', 'pauc', 'tpr', 'fpr', 'calibration']
    """`calibration` is the calibration in the large: the groups' probabilities are wrong by the same log
    odds, or right.
    """
    fpr_min: float | None
    """Of a partial AUC; otherwise null."""
    fpr_max: float | None
    groups: int
    """Number of groups that have the figure."""
    p_value: float | None
    """Null if fewer than two groups have the figure."""
    adjusted_p_value: float | None
    """p-value adjusted by Holm over all tests shown here."""
    differs: bool | None
    """True if the adjusted p-value is below 1 - level. Null without a test."""
    words: str

class GuaranteesByGroup(Record):
    """Cuts that keep one promise in every group."""

    column: str
    by_group: Literal['together', 'each']
    """`together`: all promises hold at once with the confidence. `each`: each by itself."""
    threshold: float | None
    """The single cut that keeps the promise in every group. Null if a group has too few rows."""
    groups: list[GroupGuarantee]
    note: str
    """What must be known of cuts by group."""

class Health(Record):
    """State of the service and of its parts."""

    status: Literal['ok', 'unavailable']
    """`ok` or `unavailable`."""
    version: str
    build: str
    """The build: `RANKWRIGHT_BUILD` of the process. An image sets it."""
    parts: dict[str, Part] | None = None

class Height(Record):
    """The TPR at a given FPR, with its interval. The interval includes the uncertainty of the threshold."""

    fpr: float
    tpr: float
    low: float
    high: float

class Histogram(Record):
    """A histogram with bins of equal width. There is one more edge than counts."""

    edges: list[float]
    counts: list[int]

class Importance(Record):
    """The features, most important first. Values of different methods cannot be compared."""

    model_id: str
    method: Literal['squared_auc_gain', 'mean_absolute_contribution', 'permutation_auc']
    """`squared_auc_gain` for ranking trees, `mean_absolute_contribution` for models that are a sum over
    features, `permutation_auc` for all others.
    """
    description: str
    """One sentence that says what the method measures."""
    on: Literal['validation', 'train']
    """The part of the data that it was measured on."""
    label: str | None
    """Label whose scores were used. Null for a model with one label."""
    features: list[FeatureImportance]

class Improvement(Record):
    """The value of the best candidate from a time on."""

    seconds: float
    """Seconds from the start of the job to the report of it."""
    value: float
    """Value of the job's objective, as on the leaderboard."""

class Interval(Record):
    """An estimate with its confidence interval."""

    value: float | None
    low: float | None
    high: float | None

class Job(Record):
    """A job: long work that a worker does in the background."""

    id: str
    kind: Literal['ingest', 'ingest_files', 'ingest_pairs', 'evaluate', 'compare', 'calibrate', 'batch_score', 'train', 'importance']
    """`ingest`, `ingest_files`, `ingest_pairs`, `evaluate`, `compare`, `calibrate`, `batch_score`,
    `train`, `importance`.
    """
    name: str
    state: Literal['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'cancelling']
    """`queued`, `running`, `cancelling`, `succeeded`, `failed`, `cancelled` or `timed_out`."""
    dataset_id: str | None
    dataset: DatasetVersion | None
    """The dataset that the job uses, under its name when the job was submitted."""
    validation_dataset: DatasetVersion | None
    """The dataset that validates the model, with validation.method `dataset`."""
    algorithm: dict[str, Any] | None
    """Name and all parameters. For a parameter that is searched: its greatest value."""
    objective: dict[str, Any] | None
    validation: dict[str, Any] | None
    search: dict[str, Any] | None
    baselines: dict[str, Any] | None
    """`algorithms`: the controls to fit. `skipped`: why there are none. `share`: the fraction of the job's
    time that they may take; null: no limit.
    """
    timeout_seconds: float
    priority: int
    tags: dict[str, str]
    attempt: int
    max_attempts: int
    progress: Progress | None
    error: dict[str, Any] | None
    """The problem, if the job failed."""
    output: JobOutput | None = None
    """The resource that the job makes; it has its own status. A model exists only after the job has
    succeeded. A retried job shows the same resource as its retry, which may have made it.
    """
    request_id: str | None
    """Id of the request that submitted the job: its `X-Request-ID`. The log of the API and of the workers
    has it in each line about the job.
    """
    retry_of: str | None
    last_event: int
    """Number (`seq`) of the job's last event. Pass it to `…/events?after=` to continue from there."""
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    keep_requested_at: str | None = None
    """Time of the request to end early and keep the best candidate."""
    seed: int | None
    label_noise: float | None

class JobCheck(Record):
    """The job is valid. Nothing was created."""

    valid: bool
    algorithm: dict[str, Any]
    objective: dict[str, Any]
    validation: dict[str, Any]
    """As it will be stored: `time_column` names the column by which the newest rows judge."""
    search: dict[str, Any] | None
    baselines: dict[str, Any]
    estimate: Estimate
    warnings: list[str]
    """Warnings about the data and the split that the model will have."""
    duplicates: Duplicates | None
    """Rows of the dataset that are equal to another, and where they stand in the job's splits. Null
    without splits of its rows, and without a profile of the dataset.
    """
    seed: int
    label_noise: float | None

class JobOutput(Record):
    """The resource that a job makes."""

    kind: Literal['model', 'evaluation', 'comparison', 'batch_score', 'dataset', 'pairs']
    """`model`, `evaluation`, `comparison`, `batch_score`, `dataset` or `pairs`. For `pairs`, `id` is that
    of the dataset.
    """
    id: str

class Key(Record):
    """An API key, without its secret."""

    id: str
    owner: str
    name: str
    prefix: str
    """First characters of the secret, to recognise the key."""
    scopes: list[Literal['read', 'train', 'score', 'admin', 'operator']]
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None
    successor_id: str | None
    """The key that replaced it."""

class KeyWithSecret(Record):
    """A new key, with its secret."""

    id: str
    owner: str
    name: str
    prefix: str
    """First characters of the secret, to recognise the key."""
    scopes: list[Literal['read', 'train', 'score', 'admin', 'operator']]
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None
    successor_id: str | None
    """The key that replaced it."""
    secret: str | None
    """The secret. It is shown only once; null in a repeated answer."""

class Label(Record):
    """One of several labels. Its values and counts are null until the table was read."""

    name: str
    positive: str | None = None
    negative: str | None = None
    positives: int | None = None
    negatives: int | None = None

class LabelMetrics(Record):
    """Quality of the ranking by one label's scores, on one part."""

    label: str
    auc: Interval | None
    """Null if the part has too few rows of a class."""
    pauc: list[WindowArea]
    positives: int
    negatives: int
    ties: float | None

class LabelScore(Record):
    """The scores of one row, one per label, by a model with several labels."""

    model_id: str
    id: str | float | bool | None = None
    """The id of the row, if one was asked to come back (`id`)."""
    scores: dict[str, float]
    no_probability: str | None = None
    """Why there is no probability, if one was asked for and the model has no calibration."""

class LabelScores(Record):
    """For each row a list of scores, one per label, by a model with several labels."""

    model_id: str
    ids: list[str | float | bool | None] | None = None
    """The id of each row, if ids were asked to come back (`id`). A table has the column `id`."""
    labels: list[str]
    scores: list[list[float]]
    no_probability: str | None = None
    """Why there is no probability, if one was asked for and the model has no calibration."""

class LabelValues(Record):
    """One of several labels, and its two values."""

    name: str
    positive: str
    negative: str

class Leaderboard(Record):
    """The candidates of `auto`, best first, and the members of the resulting model."""

    model_id: str
    budget_seconds: float
    seconds: float
    """Duration of the search in seconds, without the final fit."""
    members: list[Member]
    candidates: list[LeaderboardRow]
    notes: list[str]

class LeaderboardRow(Record):
    """A candidate of `auto`. Its figures are measured on the rows that chose it, so those of the best are
    too optimistic.
    """

    algorithm: str
    parameters: dict[str, Any]
    value: float | None
    """Value of the objective. Null if the fit failed or was never started."""
    auc: float | None
    rows: float
    """Fraction of the training rows in its last fit."""
    seconds: float
    state: Literal['chosen', 'left', 'failed', 'untried']
    """`chosen`, `left`, `failed` or `untried`."""
    reason: str

class LeastCost(Record):
    """The cut of least cost on these rows."""

    threshold: float | None
    """Flag every row whose score is at least this. Null: no row."""
    flagged: float
    """Fraction of the rows with such scores."""
    in_sample: float
    """Mean cost of a row on the rows that chose the cut: too low."""
    held_out: DecisionCost | None
    """Each part of the rows is judged by the cut that the others choose. Null if all rows are one group."""
    parts: int
    threshold_low: float | None
    """The least cut that the parts have chosen. Null: no row is flagged."""
    threshold_high: float | None
    """The greatest of these. Null: no row."""

class ListMetric(Record):
    """A figure of lists: its mean over the queries in which it has a value."""

    metric: str
    """The name of the figure; auc is the fraction of the pairs of a query that are in order."""
    value: float
    low: float
    high: float
    queries: int
    """Number of queries in which it has a value."""
    skipped: int
    """Number of queries in which it has none: all their rows have the same label, or none is relevant."""
    effective_queries: float
    """Number of queries of equal weight that would be as informative."""

class ListMetrics(Record):
    """Figures within queries. The intervals take the queries, not the rows, as drawn by chance."""

    level: float
    """Confidence level of the intervals."""
    queries: int
    """Number of queries."""
    metrics: list[ListMetric]

class ListPoint(Record):
    """A point of a curve of the list, and the cut that has it; or a bin of the histogram. Null: nothing is
    flagged.
    """

    x: float
    y: float
    threshold: float | None
    high: float | None = None
    """Upper end of the bin, of a histogram only."""
    negatives: float | None = None
    """Fraction of the negatives in the bin, of a histogram only."""

class ListedDataset(Record):
    """An uploaded table in a list."""

    id: str
    series_id: str
    """Id of the first version of this series."""
    version: int
    """Number of the version in its series, from 1. It is never used again."""
    parent_id: str | None
    """The version that it was made from; it may have been deleted. Null for the first version."""
    mode: Literal['append', 'replace'] | None
    """`append`: the rows of the parent, then those of the upload. `replace`: only those of the upload.
    Null for the first version.
    """
    name: str
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    status: Literal['processing', 'ready', 'invalid']
    """`processing`, `ready` or `invalid`."""
    job_id: str | None
    """The job that reads the table."""
    content_type: Literal['text/csv', 'application/vnd.apache.parquet', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.arrow.file', 'application/x-ndjson', 'application/json', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet']
    content_encoding: Literal['gzip', 'zstd', 'zip'] | None
    label: str | None
    positive: str | None
    """Value of the label that counts as positive."""
    negative: str | None
    weight: str | None
    group: str | None
    query: str | None
    """Column of the queries: rows are put in order within each query."""
    item: str | None
    """Column of the items' names."""
    bytes: int
    """Size of the upload in bytes."""
    sha256: str
    """SHA-256 of the content. For a first or replaced version: that of the uploaded bytes. For an appended
    version: that of the text made of the parent's `sha256` and `upload_sha256`, joined. For several
    files: as if each had been appended to those before.
    """
    upload_sha256: str
    """SHA-256 of the uploaded bytes; of a dataset of several files: of the list of their hashes."""
    rows: int | None
    positives: int | None
    negatives: int | None
    pairs: Pairs | None
    """The pairs of a dataset of kind `preferences`. Null until they are uploaded."""
    created_at: str
    n_columns: int
    """Number of columns; 0 until the table was read."""

class ListedModel(Record):
    """A model in a list."""

    id: str
    name: str
    version: int
    algorithm: dict[str, Any]
    """Name and all parameters."""
    objective: dict[str, Any]
    validation: dict[str, Any]
    optimised_for: dict[str, Any]
    selected_by: dict[str, Any] | None
    """The objective by which a search chose the parameters. Null without a search."""
    beats_baselines: bool | None
    """True if its area is significantly greater than that of every control: see …/baselines. Null without
    controls.
    """
    dataset_id: str
    dataset: DatasetVersion | None
    """The training dataset, under its name at that time. It stays when the dataset is deleted. Null if it
    was not recorded.
    """
    validation_dataset: DatasetVersion | None
    """The dataset that validated it, with validation.method `dataset`."""
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    """Kind of the dataset."""
    job_id: str
    seed: int
    tags: dict[str, str]
    created_at: str
    aliases: list[str]
    auc: Interval | None
    """AUC on the validation rows. Null without validation, for pairs and for several labels: see
    …/metrics.
    """

class LiveAlias(Record):
    """An alias, what its cut is planned to flag, and how its model did on newer rows."""

    name: str
    alias: str
    model_id: str
    version: int
    updated_at: str
    flagged: float | None
    """Fraction of the validation rows that its cut flags. Null without a cut."""
    memo: StoredMemo | None
    evaluation_id: str | None
    """The newest evaluation of the model, if its rows were new to the model. Null: none."""
    evaluated_at: str | None
    changed: bool | None
    """Whether that evaluation found a change."""
    next_step: Literal['evaluate', 'recalibrate', 'retrain', 'compare'] | None
    """`evaluate`: no evaluation on new rows, or none since the recalibration. `recalibrate`: only the
    probabilities are wrong. `retrain`: it ranks worse than at validation. `compare`: there is a newer
    version. Null: nothing.
    """

class MarginRound(Record):
    """One round of boosting, under the pair weights of that round."""

    round: int
    edge: float
    """r = d+ - d-: weight of the pairs in order minus weight of the pairs out of order."""
    tied: float
    """d0: weight of the pairs that the weak ranker ties."""
    most_tied: float
    """Theorem 7 holds if d0 is below this: 2/3 (1 - r)(1 - r²)."""
    holds: bool

class MarginRounds(Record):
    """The condition of Theorem 7 for each round, from the first."""

    total: int
    holds: int
    """Number of rounds, of all, in which the condition holds."""
    data: list[MarginRound]

class MarginShare(Record):
    """Fraction of the training pairs with a margin of at most `theta`."""

    theta: float
    fraction: float

class Margins(Record):
    """Margins of the training pairs (differences of scores, divided by `l1_norm`), and the bounds that
    follow from them.
    """

    model_id: str
    on: Literal['validation', 'train']
    l1_norm: float
    """Sum of the steps of all rounds. Scores are divided by it."""
    margin: float
    """Smallest margin of a pair. Positive if all pairs are in order."""
    smooth_margin: float
    """-ln of the ranking loss, divided by `l1_norm`. It is below `margin` and approaches it with more
    rounds.
    """
    weak_rankers: int
    """Upper bound on the number of different weak rankers."""
    distribution: list[MarginShare]
    """Distribution of the margins, from the smallest to the greatest."""
    theta: float
    delta: float
    bounds: list[MisrankBound]
    best: BestPossibleMargin | None
    """Null if the linear programme is too large."""
    rounds: MarginRounds
    losses: RoundLosses

class MeanArea(Record):
    """Mean over the labels of a partial AUC."""

    fpr_min: float
    fpr_max: float
    value: float | None

class Member(Record):
    """One ranker of the model's ensemble."""

    algorithm: str
    parameters: dict[str, Any]
    weight: float

class MetricBaselines(Record):
    """The model and the controls by the figure that the job's objective names."""

    metric: str
    """Its name, as …/metric-estimates has it. A count of rows is shown as the share that it is."""
    chosen: Interval
    baselines: list[BaselineArea]

class MetricEstimate(Record):
    """A figure of the ranking, with its interval and a test against chance."""

    value: float | None
    low: float | None
    high: float | None
    metric: str
    """The name of the figure, as it was asked for."""
    chance: float | None
    """The figure of scores that say nothing. Null if that is 0."""
    p_value: float | None
    """One-sided p-value of the hypothesis that the figure is no better than chance. Null without `chance`,
    if the rows of a class are worth fewer than 10 independent ones, or if the window of an area holds
    fewer than 3.
    """
    adjusted_p_value: float | None
    """p-value adjusted by Holm over all figures of the request. Null without `p_value`."""

class Metrics(Record):
    """Quality of the model's ranking on one part of the data."""

    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """Concerns the curve and the figures read from it, not the areas. True if the model was cross-
    validated. The curve then comes from the out-of-fold scores, converted to the scale of the served
    ranker. The thresholds of the served ranker itself were not tested.
    """
    level: float
    """Confidence level of the intervals."""
    auc: Interval
    gini: Interval
    """2 AUC − 1: the Gini coefficient, or accuracy ratio."""
    ks: float | None
    """The Kolmogorov–Smirnov distance: the greatest difference of TPR and FPR. Biased upwards in small
    samples. Null without a curve.
    """
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: Cutoff | None
    """For the objective `tpr`: the rates on this part at the model's threshold, which was chosen on the
    validation rows.
    """
    metric: MetricEstimate | None = None
    """For an objective such as `average_precision` or `precision`: its figure on this part, from the
    curve, as …/metric-estimates has it. A count of first rows is one of the validation rows. Null for
    others, and for `ndcg` under repeated cross-validation.
    """
    positives: int
    negatives: int
    positive_weight: float
    negative_weight: float
    ties: float
    """Fraction of the pairs of a positive and a negative that have equal scores."""
    lists: ListMetrics | None = None
    """Figures within queries. The figures above are of all rows as one list. Null without queries."""

class MisrankBound(Record):
    """Upper bound on the probability that the model misranks a future pair: a measured fraction plus
    epsilon.
    """

    name: str
    source: str
    value: float | None
    """`margin_fraction + epsilon`. Null if the bound cannot be computed."""
    margin_fraction: float
    """Fraction of the training pairs with a margin of at most theta; or fraction of the held-out pairs
    that are misranked.
    """
    epsilon: float | None
    terms: dict[str, float | None]
    """The terms of epsilon."""
    applies: bool
    """False if a condition of the theorem is not met."""
    reasons: list[str]
    """Why the bound does not apply."""
    vacuous: bool
    """True if the value is 1 or more: it then says nothing."""

class Model(Record):
    """A trained ranker."""

    id: str
    name: str
    version: int
    algorithm: dict[str, Any]
    """Name and all parameters."""
    objective: dict[str, Any]
    validation: dict[str, Any]
    optimised_for: dict[str, Any]
    selected_by: dict[str, Any] | None
    """The objective by which a search chose the parameters. Null without a search."""
    beats_baselines: bool | None
    """True if its area is significantly greater than that of every control: see …/baselines. Null without
    controls.
    """
    dataset_id: str
    dataset: DatasetVersion | None
    """The training dataset, under its name at that time. It stays when the dataset is deleted. Null if it
    was not recorded.
    """
    validation_dataset: DatasetVersion | None
    """The dataset that validated it, with validation.method `dataset`."""
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    """Kind of the dataset."""
    job_id: str
    seed: int
    tags: dict[str, str]
    created_at: str
    aliases: list[str]
    features: list[Feature]
    """The features, in the order of the artifact."""
    dialect: dict[str, str] | None = None
    """How the model's own table writes numbers and dates: `decimal`, `thousands`, `dates`. A CSV or a
    query to be scored is read so. Null: as usual.
    """
    label: str | None
    """Column of the label. Null if the model was trained on pairs or several labels."""
    query: str | None = None
    """Column of the queries within which the model was trained. It is no feature: rows to score need none."""
    positive: str | None
    negative: str | None
    labels: list[LabelValues] | None
    """The labels of a model with several labels; otherwise null."""
    search: Search | None
    operating_point: Cutoff | None
    """For the objective `tpr`: the best threshold on the validation rows at its FPR. Null for other
    objectives and without validation.
    """
    warnings: list[str]
    monotone: MonotoneProof | None
    """The proof of its monotone constraints. Null if it was trained without."""
    importance_job_id: str | None
    """The job that measures the importance of the features after the model, where the budget of `auto` had
    no time for it. Null if the training measured it.
    """
    fit_seconds: float
    artifact: Artifact
    included: ModelParts | None = None
    """The parts that `include` names. Only with `include`."""

class ModelCheck(Record):
    """One question about a model, and the answer of what is stored."""

    name: Literal['ranks', 'beats_baselines', 'probabilities', 'stable', 'groups']
    """`ranks`: its validation shows that it ranks better than chance. `beats_baselines`: it ranks
    significantly better than each control. `probabilities`: they agree with what happened, on the
    newest rows that were evaluated with this calibration, else on held-out rows of the calibration.
    `stable`: its newest evaluation on new rows found no change, and excludes a drop beyond `margin`.
    `groups`: no test of its newest evaluation by groups found a difference, and intervals exclude those
    beyond `margin`.
    """
    passed: bool | None
    """Null if nothing stored tells it, or if the rows are too few to decide; `words` say what is missing."""
    words: str
    evaluation_id: str | None
    """The evaluation that told it, if one did."""
    evidence: Literal['validation', 'cross_fitted', 'later_rows', 'evaluation'] | None
    """The rows that it is based on. `validation`: of the training. `cross_fitted`: each row of the
    calibration with a calibration of other rows, which does not test later rows. `later_rows`: the last
    time window of the validation, with a calibration of the windows before. `evaluation`:
    `evaluation_id`. Null if there are none.
    """
    margin: float | None
    """The greatest difference that counts as none. `stable`: drop of the AUC, C-index or share of ordered
    pairs, 0.05 or less for weak models. `probabilities`: 0.25 in log odds, of the level, the slope and
    the shape. `groups`: 0.1 for AUC, TPR and FPR of two groups, and 0.25 for the log odds of their
    calibration in the large. Null for other checks.
    """
    more_rows: int | None
    """If the rows are too few: how many more decide with probability 0.8, if nothing has changed and their
    variance stays as it is. Pairs, for a model of pairs. Null if no number of rows does, or if it is
    not known.
    """

class ModelChecks(Record):
    """May the model be used? What is stored about it says, in five checks."""

    model_id: str
    passed: bool | None
    """True if all checks passed, false if one failed, else null."""
    checks: list[ModelCheck]

class ModelCurve(Record):
    """A curve of a model's list on one part of its data."""

    kind: Literal['precision_recall', 'gains', 'cost', 'histogram']
    axes: list[str]
    """What x and y are: recall and precision; share of the list and recall; weight and cost; or the lowest
    score of a bin and the fraction of the positives in it.
    """
    prevalence: float | None
    """Fraction of positives that the curve assumes. Default: that of the data. Null for costs, whose
    weight includes it, and for a histogram, which has each class by itself.
    """
    exact: bool
    """True if these are all points; false if only some of them, `max_points` at most."""
    total_points: int
    points: list[ListPoint]
    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """True if the model was cross-validated. The curve then comes from the out-of-fold scores, converted
    to the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class ModelGains(Record):
    """The gains table of a model on one part of its data."""

    level: float
    """Confidence level of each interval by itself."""
    prevalence: float
    """Fraction of positives that the table assumes. Default: that of the data."""
    rows: list[Gain]
    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """True if the model was cross-validated. The curve then comes from the out-of-fold scores, converted
    to the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class ModelMetricEstimates(Record):
    """Figures of a model on one part of its data."""

    level: float
    """Confidence level of each interval by itself."""
    metrics: list[MetricEstimate]
    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """True if the model was cross-validated. The curve then comes from the out-of-fold scores, converted
    to the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class ModelParts(Record):
    """Parts of a model, each as its own address answers it. A part that the model lacks is in `absent`."""

    metrics: Metrics | PairMetrics | MultilabelMetrics | GradedMetrics | None = None
    """As …/metrics answers."""
    roc: Roc | None = None
    """As …/roc answers."""
    operating_points: OperatingPoints | None = None
    """As …/operating-points answers."""
    operating_point: OperatingPoint | None = None
    """As …/operating-point answers."""
    absent: list[AbsentPart]

class MonotoneProof(Record):
    """What is known of the monotone constraints of the fitted model, by walking all its steps or leaves."""

    verdict: Literal['proven', 'violated', 'not_proven']
    """proven: the constraints hold for every row. violated: `violation` is an example. not_proven: neither
    was found.
    """
    columns: dict[str, Literal['increasing', 'decreasing']]
    compared: int
    """Comparisons of the proof: of neighbouring steps, of coefficients with 0, or of pairs of leaves."""
    missing: str
    """The rule for missing values."""
    violation: dict[str, Any] | None
    """Two rows that differ in one constrained column alone, whose scores are in the wrong order."""

class MultilabelMetrics(Record):
    """Quality of a model with several labels on one part: for each label, and as mean."""

    model_id: str
    on: Literal['validation', 'train']
    level: float
    """Confidence level of the intervals."""
    labels: list[LabelMetrics]
    evaluated: int
    """Number of labels that have an AUC. The means are over these."""
    mean_auc: float | None
    mean_pauc: list[MeanArea]

class NetBenefit(Record):
    """The net benefit of acting on the rows with a probability of at least `threshold`, in true positives
    per row: the fraction of true positives, minus that of false positives times threshold / (1 -
    threshold) (Vickers & Elkin 2006). Acting on no row has 0.
    """

    threshold: float
    """In (0, 1)."""
    flagged: float
    """Fraction of the rows with such probabilities."""
    benefit: Interval
    """Above 0: better than acting on no row."""
    flag_all: Interval
    """Net benefit of acting on every row."""
    over_all: Interval
    """`benefit` minus `flag_all`, paired: above 0, better than acting on every row."""

class NewCosts(Record):
    """What decisions cost, in the unit of the amounts. Something must speak for flagging a row, and
    something against it.
    """

    false_positive: Price | None = None
    """Cost of flagging a negative, besides its review. Default: `{"fixed": 0.0, "rate": 0.0}`."""
    false_negative: Price | None = None
    """Cost of a positive that is not flagged. Default: `{"fixed": 0.0, "rate": 0.0}`."""
    benefit: Price | None = None
    """What a flagged positive brings in. Default: `{"fixed": 0.0, "rate": 0.0}`."""
    review: float | None = None
    """Cost of each flagged row. Default: `0.0`."""

class NewWindow(Record):
    """A window of false positive rates."""

    fpr_min: float | None = None
    """Default: `0.0`."""
    fpr_max: float

class OperatingPoint(Record):
    """One threshold and its consequences on one part of the data."""

    threshold: float | None
    fpr: Interval
    """Fraction of the negatives that are flagged."""
    tpr: Interval
    """Fraction of the positives that are flagged."""
    precision: Interval
    lift: Interval
    flagged: Interval
    """Fraction of all rows that are flagged, at this `prevalence`."""
    threshold_low: float | None
    """Lower end of an interval, up to `threshold_high`, for the threshold that has the requested rate or
    the lowest cost in the population. Null: the data set no limit.
    """
    threshold_high: float | None
    prevalence: float
    """Fraction of positives that precision, lift and cost assume. Default: that of the data."""
    tpr_at_fpr: Interval | None
    """If `fpr` was requested: the TPR at exactly this FPR. The interval includes the uncertainty of the
    threshold.
    """
    fpr_at_tpr: Interval | None
    """If `tpr` was requested: the FPR at exactly this TPR."""
    cost: Cost | None
    """Mean cost per row, if costs were given."""
    guarantee: RateGuarantee | None = None
    """The promise, if a `confidence` was requested; otherwise null."""
    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """True if the model was cross-validated. The curve then comes from the out-of-fold scores, converted
    to the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class OperatingPoints(Record):
    """Thresholds along the curve of one part of the data, from the one that flags no row to the one that
    flags all.
    """

    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """True if the model was cross-validated. The curve then comes from the out-of-fold scores, converted
    to the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """
    level: float
    """Confidence level of each interval by itself."""
    exact: bool
    """False if points of the curve were left out."""
    total_points: int
    """Number of points of the curve."""
    least_cost: int | None
    """Index in `points`, from 0, of the point with the lowest cost, if costs were given."""
    of_objective: int | None
    """Index in `points`, from 0, of the best point at the FPR of the objective `tpr`."""
    of_flagged: int | None
    """Index in `points`, from 0, of the best point that flags at most the fraction `flagged` of the rows,
    if that was given.
    """
    of_aliases: dict[str, int]
    """For each alias of the model that flags rows, the index in `points`, from 0, of the point that flags
    the same of these rows; of more than 20 aliases, the last moved.
    """
    probabilities: list[float | None] | None
    """For each of `points`, the probability of a row with exactly this score, by the calibration that the
    model is served with; null where nothing is flagged. Null if the model has no calibration.
    """
    points: list[Cutoff]

class OutOfFold(Record):
    """The out-of-fold scores of a cross-validated model. Its AUC and curve come from them."""

    model_id: str
    repeats: int
    folds: int
    fold_aucs: list[FoldAuc]
    columns: list[str]
    data: list[list[float]]
    """One entry per row and repeat. `row` counts from 0 in the order of the dataset; `repeat` and `fold`
    count from 1; `y` is 1 for a positive. `score` is on the scale of the fold's ranker. `aligned_score`
    is the same on the scale of the served ranker: equal quantiles of the scores that both rankers give
    the fold's training rows are equal scores.
    """

class OutdatedAlias(Record):
    """An alias of a model that has a newer version."""

    name: str
    alias: str
    model_id: str
    version: int
    newest_model_id: str
    newest_version: int

class Overview(Record):
    """What is under way, what ended lately, what needs attention, and what is newest."""

    under_way: list[Job]
    """Jobs that run, then those that are being cancelled, then those that wait; at most `limit` of each."""
    ended: list[Job]
    """The newest jobs that have ended, of the newest `jobs_looked_through`."""
    jobs_looked_through: int
    """Number of the newest jobs among which `ended` was looked for: at most 50."""
    has_older_jobs: bool
    """Whether there are jobs that were not looked through."""
    live: list[LiveAlias]
    """The aliases, the last moved first."""
    failed: list[Job]
    """The newest failures that nothing has made good, as `GET /v1/jobs?kind=all&unresolved=true` lists
    them.
    """
    failed_next: str | None
    """Cursor of the next page of that list: pass it as `after`. Null if there are no more failures."""
    drifted: list[DriftedModel]
    """Models that changed significantly, by the newest ready evaluation of each, the last judged first."""
    has_more_drifted: bool
    """Whether there are more of them than `limit`."""
    outdated: list[OutdatedAlias]
    """Aliases of models that have a newer version. Left out is an alias whose model ranks better than the
    newest version by their newest comparison on rows that its model was not trained on.
    """
    has_more_outdated: bool
    """Whether more than `limit` models that an alias points to have a newer version."""
    models: list[ListedModel]
    """The newest models."""
    datasets: list[ListedDataset]
    """The newest datasets."""

class PairMetrics(Record):
    """Quality of a model trained on pairs, on the pairs of one part."""

    model_id: str
    on: Literal['validation', 'train']
    level: float
    """Confidence level of the interval."""
    pair_order: Interval
    """Weighted fraction of the pairs in order; a tie counts half. The interval allows for pairs with a
    common item.
    """
    misrank_fraction: float
    """Weighted fraction of the pairs out of order; a tie counts fully."""
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float
    """Effective number of pairs, in the worst case: as many pairs without common items would be as
    informative.
    """

class Pairs(Record):
    """The pairs of a dataset of kind `preferences`: which item is better than which."""

    status: Literal['processing', 'ready', 'invalid']
    """`processing`, `ready` or `invalid`."""
    job_id: str
    """The job that reads the pairs."""
    content_type: Literal['text/csv', 'application/vnd.apache.parquet', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.arrow.file', 'application/x-ndjson', 'application/json', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet']
    content_encoding: Literal['gzip', 'zstd', 'zip'] | None
    bytes: int
    sha256: str
    pairs: int | None
    """Number of pairs."""
    items: int | None
    """Number of different items in the pairs."""
    weighted: bool | None
    """True if the pairs have weights."""
    errors: list[TableFault]
    created_at: str

class Part(Record):
    """One part of the service."""

    ok: bool
    detail: str

class PartialDependence(Record):
    """Mean scores when one or two features are set to the values of a grid."""

    model_id: str
    on: Literal['validation', 'train']
    """The part of the data that scores are averaged over."""
    label: str | None
    """Label whose scores were used. Null for a model with one label."""
    rows: int
    """Number of rows that each mean is over."""
    features: list[DependenceAxis]
    scores: list[Any]
    """Mean scores, one per value of the feature. For two features: one list per value of the first, one
    entry per value of the second.
    """

class PeriodLevel(Record):
    """The level of the probabilities in one time window, with its interval."""

    value: float
    low: float
    high: float

class Point(Record):
    """The rates when every score of at least `threshold` is flagged. Null: nothing is flagged."""

    fpr: float
    tpr: float
    threshold: float | None
    low: float | None = None
    """Lower confidence limit of the curve's height at this FPR. Only with `band`."""
    high: float | None = None
    """Upper confidence limit. Only with `band`."""

class Preview(Record):
    """The first rows of a ready dataset."""

    columns: list[str]
    data: list[list[float | bool | str | None]]

class Price(Record):
    """What one row costs: `fixed` + `rate` times its amount. Each is 0 or at least 1e-100."""

    fixed: float | None = None
    """Default: `0.0`."""
    rate: float | None = None
    """Needs `amount`. Default: `0.0`."""

class ProbabilityDrift(Record):
    """How far the model's probabilities are from what has happened on this dataset."""

    value: float | None
    low: float | None
    high: float | None
    of: Literal['in_the_large', 'slope', 'shape']
    """`in_the_large`: the constant that the log odds lack, 0 if as many rows are positive as expected.
    `slope`: of the log odds, 1 if the probabilities are neither too extreme nor too moderate. `shape`:
    root mean square distance of the log odds from a line, 0 if no error changes its sign along the
    probabilities.
    """
    predicted: float
    """Mean probability."""
    observed: float
    """Fraction of positives."""
    ranges: list[ProbabilityRange] | None = None
    """Of `shape`: where the observed fraction leaves its consistency band. Null for others."""
    p_value: float
    """It allows for the error of the calibration itself, which was learnt on the validation rows; the
    interval is of these rows alone.
    """
    adjusted_p_value: float
    changed: bool
    words: str

class ProbabilityRange(Record):
    """A range of probabilities, and whether more or fewer rows there are positive than the probabilities
    say.
    """

    low: float
    high: float
    observed: Literal['more', 'fewer']
    """`more` or `fewer`."""

class ProbabilitySaving(Record):
    """What the cut costs more per row, held out, than deciding by probability: above 0 if probabilities
    cost less.
    """

    value: float | None
    low: float | None
    high: float | None
    p_value: float

class Progress(Record):
    """The progress of a running job: its phase, its steps, and its best candidates. Of a job that has
    succeeded `fraction` (1), `best`, `leaderboard` and `improvements` are kept.
    """

    fraction: float | None = None
    """Fraction of the whole job that is done, from 0 to 1. For a job with a budget: the fraction that is
    used.
    """
    phase: str | None = None
    """`reading the table`, `compiling`, `preparing` (before the first step of a fit), `fitting`,
    `measuring` or `comparing` (with simple benchmark models).
    """
    auto_phase: str | None = None
    """Of `auto`: the phase in which it spends its budget now, such as portfolio or last fits."""
    algorithm: str | None = None
    """The algorithm that is being fitted."""
    parameters: dict[str, Any] | None = None
    """Parameters of the current candidate, as on the leaderboard."""
    rows: int | None = None
    """Number of training rows (or pairs) of the current fit."""
    trial: int | None = None
    """For a search: number of the current trial. A trial is one fit on one inner split."""
    trials: int | None = None
    """Total number of trials. Null if it is not known, as with `auto`."""
    fold: int | None = None
    """For cross-validation: number of the current fold."""
    step: int | None = None
    """Number of rounds, or other steps, that the current fit has done. For a job in parts: number of
    finished parts.
    """
    of: int | None = None
    """Total number of steps or parts."""
    detail: str | None = None
    """Figures of the last step, for people: the loss; the AUC on a sample of the training rows, if it is
    cheap; the AUC on the validation rows of early stopping.
    """
    best: Best | None = None
    leaderboard: list[ProgressRow] | None = None
    """The ten best candidates up to now, best first. Of a job that has succeeded: the chosen one, then the
    best of the others, with the values that the model keeps (`/v1/models/{id}/leaderboard`, or
    `search`).
    """
    improvements: list[Improvement] | None = None
    """The value of the best candidate over time: each report in which it was greater than before, at most
    100.
    """
    keepable: bool | None = None
    """True if `POST …/cancel?keep=true` can keep a candidate now. Default: `false`."""
    elapsed_seconds: float | None = None
    """Seconds from the start of the job to this report. A job reports once a second."""
    seconds_left: float | None = None
    """Seconds left of the budget of `auto` at this report. It does not go down in the phase `compiling`."""

class ProgressRow(Record):
    """A candidate that a search tried, judged on the validation rows of all inner splits."""

    trial: int
    """Number of the trial that completed this candidate; 0 for a mean rank of several candidates."""
    algorithm: str
    parameters: dict[str, Any]
    """The searched parameters; for `auto` those that it changed. At most 8."""
    rows: int | None
    """Number of training rows (or pairs)."""
    splits: int
    """Number of inner splits whose mean `value` is: all of them. A candidate that waits for some of its
    splits has no row yet.
    """
    value: float
    """Value of the job's objective, as mean over the inner splits."""
    seconds: float
    """Fit time over all inner splits, in seconds."""

class Quantile(Record):
    """A quantile: the smallest value that at least this fraction of the rows does not exceed."""

    at: float
    value: float

class QuerySizes(Record):
    """The queries of a dataset."""

    queries: int
    """Number of queries."""
    with_pairs: int
    """Number of queries that have rows of different labels. The others neither teach nor judge an order."""
    min_rows: int
    """Number of rows of the smallest query."""
    median_rows: float
    max_rows: int

class Ranking(Record):
    """Row numbers, counted from 0, best row first, with their scores and probabilities."""

    model_id: str
    ids: list[str | float | bool | None] | None = None
    """The id of each row, if ids were asked to come back (`id`). A table has the column `id`."""
    indices: list[int]
    scores: list[float]
    probabilities: list[float] | None = None
    """Probability that each row is positive, by the model's calibration. Null without one. Absent with
    `probability=false`.
    """
    probabilities_low: list[float] | None = None
    """With `interval=true`: the probabilities if the row itself counts as a negative."""
    probabilities_high: list[float] | None = None
    """With `interval=true`: the probabilities if the row itself counts as a positive."""
    no_probability: str | None = None
    """Why there is no probability, if one was asked for and the model has no calibration."""

class RateGuarantee(Record):
    """What the threshold promises of future rows that are drawn like these."""

    rate: Literal['fpr', 'tpr']
    """The rate that is promised."""
    limit: float
    """The FPR stays at or below this, the TPR at or above it."""
    confidence: float
    """Lowest probability that the promise is kept, over samples such as this one."""
    rows: int
    """Number of negatives that the promise rests on; of positives, for a TPR."""
    needed: int
    """Lowest number of them with which a threshold can be promised at all."""
    errors: int
    """The threshold flags at most this many of the negatives, or misses at most this many of the
    positives.
    """
    broken: float
    """Highest probability that the promise is broken: at most 1 - confidence."""

class RateOrThreshold(Record):
    """The cut that an evaluation is judged at. Pass one of the three."""

    fpr: float | None = None
    """The model's cut with at most this FPR, chosen on its validation rows."""
    tpr: float | None = None
    """The model's cut with at least this TPR, chosen on its validation rows."""
    threshold: float | None = None
    """Flag every row whose score is at least this."""

class Reason(Record):
    """A part of the difference between the score and the reference."""

    code: str | None
    """Null if the dictionary has no entry that fits."""
    text: str
    columns: list[str]
    """The features that the code sums."""
    contribution: float
    error: float
    """Standard error of the contribution, where it is estimated: with 95 % confidence it is within twice
    this. 0: it is exact. Of a code that sums several features it is an upper bound.
    """

class ReasonCodes(Record):
    """The dictionary of reasons of a name of models, for all its versions."""

    name: str
    revision: int
    """Also the ETag."""
    entries: list[StoredReasonEntry]
    at: str
    history: list[ReasonCodesStep]
    """At most 100 revisions, the latest first. `?revision=` reads each of them."""

class ReasonCodesStep(Record):
    """A revision of a dictionary of reasons."""

    revision: int
    at: str

class ReasonReference(Record):
    """What reasons compare a score with, and how they are told."""

    kind: Literal['negative', 'average', 'cutoff']
    """`negative`: the average of the negatives. `average`: the average training row. `cutoff`: a score, as
    the point with that score on the line between the average negative and the average positive.
    """
    score: float
    """The score of the reference."""
    on: Literal['validation', 'train'] | None
    """The part of the data whose rows were averaged."""
    rows: int | None
    """Number of rows that were averaged: of negatives, except for `average`."""
    method: Literal['parts', 'rows']
    """`parts`: the score is a sum by feature; exact Shapley values, less those of the average row. `rows`:
    Shapley values, where a feature that is not yet known has its value in a row of the reference. Exact
    for ranking trees, and where at most seven features differ from that row's; else estimated from
    permutations, with an `error`.
    """
    direction: Literal['raises', 'lowers', 'both']
    """`raises`, `lowers` or `both`: the parts that are reasons."""
    dictionary: int | None
    """Revision of the reason codes. Null: the name has none."""

class Reliability(Record):
    """How good the probabilities of a calibration are on rows of its own, each by a calibration of others."""

    level: float
    """Confidence level of each interval by itself."""
    n: int
    """Number of rows."""
    n_positives: int
    predicted: float
    """Mean probability."""
    observed: float
    """Fraction of positives."""
    brier: ScoreParts
    """Brier score: the mean of (probability − label)²."""
    log: ScoreParts
    """Log loss, with natural logarithms."""
    in_the_large: Interval | None
    """Log odds to add to every probability so that as many positives are predicted as there are."""
    slope: Interval | None
    """Factor of the log odds. Below 1: the probabilities are too extreme. Null if they are all equal."""
    shape: CalibrationShape | None = None
    """Errors that change their sign along the probabilities, which level and slope do not show. Null if
    there are too few rows to test it, or if an earlier version measured the rows.
    """
    histogram: list[float]
    """Fraction of the rows with a probability in [0, .1), [.1, .2), …, [.9, 1]."""
    points: list[ReliabilityPoint]
    later: bool | None = None
    """True: the rows are of the last time window, and the calibration that gave their probabilities was
    fitted on the windows before. False: cross-fitted, each row has its probability from a calibration
    of the other folds of the same rows, which says nothing about later rows. Default: `false`.
    """
    periods: CalibrationPeriods | None = None
    """The level in each time window. Null without validation by time windows, or with too few rows."""

class ReliabilityPoint(Record):
    """A probability, and the fraction of positives that was observed there."""

    probability: float
    observed: float
    """The isotonic regression of the labels."""
    low: float
    """Lower confidence limit of the fraction in the population."""
    high: float
    """Upper confidence limit."""
    consistent_low: float
    """The observed fraction would lie from here …, if the probabilities were right."""
    consistent_high: float
    """… to here."""

class Report(Record):
    """The report: all that is known about a model."""

    written_at: str
    written_by: str
    """Version of the service that wrote the report."""
    model: Model
    data: ReportedData | None
    """The training dataset. Null if it was deleted."""
    job: ReportedJob | None
    warnings: list[str]
    """Warnings of the model, and others that a reader needs to judge the figures."""
    metrics: list[Metrics | PairMetrics | MultilabelMetrics | GradedMetrics]
    """Metrics of each part of the data, validation first."""
    checks: list[ModelCheck]
    """Whether the model may be used, as `GET …/checks` says it."""
    decisions: list[AliasSummary]
    """The aliases of the model, with their cuts and memos, the last moved first."""
    operating_points: list[RequestedCutoff]
    """Operating points on the validation rows, the cuts of the aliases first."""
    fold_aucs: list[FoldAuc] | None
    """AUC of each fold of a cross-validated model; otherwise null."""
    baselines: Baselines | None
    """Comparison with simple benchmark models. Null if the model was trained without controls."""
    leaderboard: Leaderboard | None
    """Candidates of `auto`; null for other algorithms."""
    importance: ReportedImportance | None
    """Null if the model has none, or none yet: then `importance_job_id` of the model is not null."""
    calibration: Calibration | None = None
    """How scores become probabilities, and how good these are. Null if the model has no calibration."""

class ReportedData(Record):
    """The dataset that the model was trained on."""

    id: str
    name: str
    version: int
    created_at: str
    bytes: int
    sha256: str
    upload_sha256: str
    rows: int | None
    positives: int | None
    negatives: int | None
    weight: str | None
    group: str | None

class ReportedImportance(Record):
    """Features in the order of the artifact. For a model with several labels `importance` is a list with
    one value per label.
    """

    method: Literal['squared_auc_gain', 'mean_absolute_contribution', 'permutation_auc']
    description: str
    on: Literal['validation', 'train']
    features: list[dict[str, Any]]

class ReportedJob(Record):
    """The job that made the model."""

    id: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    attempt: int
    max_attempts: int

class RequestedCutoff(Record):
    """An operating point, and the rate that was asked for."""

    threshold: float | None
    fpr: Interval
    """Fraction of the negatives that are flagged."""
    tpr: Interval
    """Fraction of the positives that are flagged."""
    precision: Interval
    lift: Interval
    flagged: Interval
    """Fraction of all rows that are flagged, at this `prevalence`."""
    threshold_low: float | None
    """Lower end of an interval, up to `threshold_high`, for the threshold that has the requested rate or
    the lowest cost in the population. Null: the data set no limit.
    """
    threshold_high: float | None
    prevalence: float
    """Fraction of positives that precision, lift and cost assume. Default: that of the data."""
    tpr_at_fpr: Interval | None
    """If `fpr` was requested: the TPR at exactly this FPR. The interval includes the uncertainty of the
    threshold.
    """
    fpr_at_tpr: Interval | None
    """If `tpr` was requested: the FPR at exactly this TPR."""
    cost: Cost | None
    """Mean cost per row, if costs were given."""
    asked: str

class ResultColumn(Record):
    """A column of the result."""

    name: str
    type: str
    """Name of the type in Arrow."""

class Roc(Record):
    """The ROC curve of a model on one part of its data."""

    exact: bool
    """False if points were left out because of `max_points`."""
    total_points: int
    band: Band | None = None
    points: list[Point]
    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """True if the model was cross-validated. The curve then comes from the out-of-fold scores, converted
    to the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class RoundLoss(Record):
    """The losses after one round, on the training rows. Null: too large for a float64."""

    round: int
    f: float | None
    """F: the loss of AdaBoost, of the scores with their intercept."""
    f_skew: float | None
    """The part of F from the positives minus the part from the negatives."""
    f_tilde: float | None
    """F̃: the loss of RankBoost."""
    smooth_margin: float | None
    """-ln F̃ divided by the sum of the steps so far, with the smallest pair weight as 1. Null if the fit
    held out some of its rows.
    """

class RoundLosses(Record):
    """The losses of each round, from the first."""

    total: int
    data: list[RoundLoss]

class Score(Record):
    """The score of one row, its position on the model's validation curve, and the probability that it is
    positive.
    """

    model_id: str
    id: str | float | bool | None = None
    """The id of the row, if one was asked to come back (`id`)."""
    score: float
    fpr: float | None
    """Fraction of the negatives with at least this score, from 0 to 1. Null without a validation curve."""
    tpr: float | None
    """Fraction of the positives with at least this score, from 0 to 1. Null without a validation curve."""
    probability: float | None = None
    """Probability that the row is positive, by the model's calibration. Null without one. Absent with
    `probability=false`.
    """
    probability_low: float | None = None
    """With `interval=true`: the probability if the row itself counts as a negative."""
    probability_high: float | None = None
    """With `interval=true`: the probability if the row itself counts as a positive."""
    no_probability: str | None = None
    """Why there is no probability, if one was asked for and the model has no calibration."""
    flag: bool | None = None
    """True if the score is at least the threshold by which the model keeps the promise of the alias.
    Absent if `ref` is no alias that keeps a promise.
    """
    approximate: bool | None = None
    """True if `fpr` and `tpr` come from the out-of-fold scores of a cross-validated model. Absent
    otherwise. Default: `false`.
    """
    reasons: list[Reason] | None = None
    """With `reasons=3`: the greatest parts, the first the greatest; fewer if the row has fewer. They,
    `reasons_rest` and the score of the reference sum to the score.
    """
    reasons_rest: float | None = None
    """With `reasons`: the sum of all other parts."""
    reference: ReasonReference | None = None
    """With `reasons`: what they compare with."""
    exact: bool | None = None
    """With `reasons`: true if no part of the score is an estimate."""

class ScoreDrift(Record):
    """Change of the scores of one class between the model's validation and this dataset."""

    of: Literal['positives', 'negatives']
    """`positives` or `negatives`."""
    distance: float
    """Kolmogorov-Smirnov distance between the two samples of scores, from 0 to 1; `p_value` is that of its
    test.
    """
    higher: float
    """Probability that a score on this dataset is greater than one of the validation; a tie counts half."""
    psi: Interval | None = None
    """Population stability index over tenths of the scores of the validation, corrected for chance. Null
    without a test.
    """
    p_value: float | None
    """Null without a test; `reason` says why."""
    adjusted_p_value: float | None
    """Null without a test; `reason` says why."""
    changed: bool | None
    """Null without a test; `reason` says why."""
    reason: str | None = None
    """Why there is no test. Either neighbouring rows of the table are alike and no column of times orders
    them, or the rows are too few for the serial dependence that they have in time. Null with a test.
    """
    words: str

class ScoreHistogram(Record):
    """How the scores of a table are distributed."""

    name: str
    """`score`, or the label of a model with several."""
    low: float | None
    """Lowest score. Null without rows."""
    high: float | None
    """Highest score."""
    mean: float | None
    edges: list[float]
    """Edges of at most 41 equal bins, ascending; one more than `counts`. The width is 1, 2 or 5 times a
    power of ten.
    """
    counts: list[int]
    """Rows per bin. A score on an edge counts in the bin above."""

class ScoreParts(Record):
    """A mean score, lower is better: score = miscalibration − discrimination + uncertainty."""

    score: float | None
    """Null if it is infinite."""
    miscalibration: float | None
    """What an isotonic regression of the labels on the probabilities would gain. 0: calibrated."""
    discrimination: float
    """What that regression gains over one probability for all rows."""
    uncertainty: float
    """The score of the prevalence, the same for every row."""
    low: float | None = None
    """Lower end of the score's confidence interval. Null if the score is infinite, or was measured before
    intervals were added.
    """
    high: float | None = None
    """Upper end."""

class ScoreTableCheck(Record):
    """The rows can be scored. Nothing was created."""

    valid: bool
    rows: int | None = None
    """Number of rows, if rows were sent."""
    ignored: list[str] | None = None
    """Columns of the rows that are not read, such as the model's label; at most 100. If rows were sent."""

class Scorecard(Record):
    """A model in points."""

    model_id: str
    pdo: float
    base_score: float
    base_odds: float
    base_points: float
    """Points of a row all of whose values add nothing."""
    complete: bool
    """False if the score has parts that are not among the attributes: those of pairs of features, or of
    too many terms.
    """
    characteristics: list[ScorecardCharacteristic]
    """The greatest span first."""

class ScorecardAttribute(Record):
    """What a value of a feature adds."""

    of: Literal['unit', 'values', 'category', 'missing']
    """`unit`: each unit of a number. `values`: a number above `low` and up to `high`. `category`.
    `missing`: no value.
    """
    low: float | str | None
    """Null: no limit. A date is a text."""
    high: float | str | None
    """Null: no limit."""
    category: str | None
    weight: float
    """Added to the log odds of the positives."""
    odds_ratio: float | None
    """Factor of the odds of the positives. Null: too great."""
    points: float

class ScorecardCharacteristic(Record):
    """A feature and its attributes. A pair of features has none: its table is in the structure."""

    name: str
    span: float | None
    """Greatest points less the least. Null for a number that counts by the unit."""
    attributes: list[ScorecardAttribute]

class Scores(Record):
    """The scores, in the order of the rows. `fprs` and `tprs` are null without a validation curve."""

    model_id: str
    ids: list[str | float | bool | None] | None = None
    """The id of each row, if ids were asked to come back (`id`). A table has the column `id`."""
    scores: list[float]
    fprs: list[float] | None
    tprs: list[float] | None
    probabilities: list[float] | None = None
    """Probability that each row is positive, by the model's calibration. Null without one. Absent with
    `probability=false`.
    """
    probabilities_low: list[float] | None = None
    """With `interval=true`: the probabilities if the row itself counts as a negative."""
    probabilities_high: list[float] | None = None
    """With `interval=true`: the probabilities if the row itself counts as a positive."""
    no_probability: str | None = None
    """Why there is no probability, if one was asked for and the model has no calibration."""
    flags: list[bool] | None = None
    """For each row, true if the score is at least the threshold by which the model keeps the promise of
    the alias. Absent if `ref` is no alias that keeps a promise.
    """
    approximate: bool | None = None
    """True if `fpr` and `tpr` come from the out-of-fold scores of a cross-validated model. Absent
    otherwise. Default: `false`.
    """
    reasons: list[list[Reason]] | None = None
    """With `reasons=3`: the greatest parts of each score, see `Score`. A table has the columns
    `reason_1_code`, `reason_1_text`, `reason_1_contribution`, `reason_1_error` and so on,
    `reasons_rest` and `reference_score`.
    """
    reasons_rest: list[float] | None = None
    """With `reasons`: the sum of all other parts of each score."""
    reference: ReasonReference | None = None
    """With `reasons`: what they compare with."""
    exact: list[bool] | None = None
    """With `reasons`: true if no part of the score is an estimate."""

class Search(Record):
    """What the search tried and chose, on splits of the training rows. These validation rows are not used
    for any metrics. With cross-validation each fold has its own search on its own training rows:
    `folds_chosen`. Everything else here is the search for the served ranker.
    """

    method: Literal['grid', 'random', 'halving']
    space: dict[str, Any]
    n_candidates: int | None = None
    folds: int | None = None
    """Number of inner folds. Null: one part was held out."""
    fraction: float
    """Fraction of the training rows held out to choose by. Not used with folds."""
    candidates: list[SearchTrial]
    chosen: dict[str, Any]
    """The best parameters; among equals those with fewest rounds. The served ranker was fitted with them
    on all training rows.
    """
    folds_chosen: list[FoldChosen]
    seconds: float
    """Duration of the search in seconds, without `fit_seconds`."""

class SearchTrial(Record):
    """Parameters that a search tried."""

    parameters: dict[str, Any]
    value: float | None
    """Value of the objective `selected_by` on the inner validation rows, as mean over the folds. Higher is
    better. Null if the fit failed.
    """
    auc: float | None = None
    rows: float | None = None
    """Fraction of the training rows in its last fit. Default: `1.0`."""
    seconds: float | None = None
    state: Literal['chosen', 'left', 'failed', 'untried'] | None = None
    """`chosen`, `left`, `failed` or `untried`."""
    reason: str | None = None

class SeemingArea(Record):
    """An AUC by rows that are drawn at random, with its interval."""

    value: float
    low: float
    high: float

class StoredMemo(Record):
    """Why an alias was moved. What was not said is null."""

    reason: str | None
    approved_by: str | None
    review: float | None
    rows: float | None
    cost_false_positive: float | None
    cost_false_negative: float | None
    prevalence: float | None

class StoredReasonEntry(Record):
    """An entry of a dictionary of reasons."""

    code: str
    text: str
    columns: list[str]
    direction: Literal['raises', 'lowers'] | None
    min: float | str | None
    max: float | str | None
    categories: list[str] | None
    missing: bool | None

class TableCheck(Record):
    """The table is valid. Nothing was stored."""

    valid: bool
    rows: int
    positives: int | None
    negatives: int | None
    queries: QuerySizes | None
    grades: list[GradeRows] | None
    columns: list[Column]
    warnings: list[TableWarning]

class TableFault(Record):
    """An error in a table, and its place."""

    detail: str
    part: int | None = None
    """Number of the part. Null for a table of one file."""
    line: int | None = None
    column: str | None = None
    suggestion: dict[str, str] | None = None
    """Fields of the upload that may correct the error, each with a value: a likely label, a positive
    value.
    """
    values: list[CountedValue] | None = None
    """For a label of more than two values: the values in the rows that were read, the most frequent first,
    at most 100. Name those that count as positive in `positive`.
    """

class TableWarning(Record):
    """How values of a column were changed because they could not be used as they are; or what a column may
    mean.
    """

    code: str
    """`values_taken_for_missing`: rare values that do not fit their column count as missing.
    `words_pooled`: there are too many categories; the rarest count as missing. `identifier`: nearly
    every row has a different value; the column is not a feature. `column_without_name`: the column was
    left out. `rows_without_label`: these rows were left out. `label_of_many_values`: all values but the
    positive one are negative. `numbers_with_thousands`: numbers such as 1.234,56 are read as words.
    `dates_of_unknown_order`: dates such as 03/04/2026 are read as words. `words_among_numbers`: a
    column of numbers or dates is read as words, because of a few words in it. `rows_of_groups`: rows
    seem to belong together, as those of a customer do, and the upload has no group.
    """
    column: str
    detail: str
    count: int
    """Number of values, words or rows that it concerns."""
    parameter: str
    """Field of the upload that changes this."""
    line: int | None
    """Line of the first one. Null if the format has no lines."""
    suggestion: dict[str, str] | None = None
    """Fields of the upload with which the values would be read. Null: the service knows none."""

class TopValue(Record):
    """A frequent value of a column, and how often it occurs."""

    value: float | bool | str | None
    """The value. For a `datetime` column: seconds since 1970, as in `min`, `max` and `mean`."""
    count: int

class Totals(Record):
    """Total weight of each class, and its effective number of independent observations."""

    positive: float
    negative: float
    positive_effective: float
    """Effective number of positive rows, given the weights. With a group column: effective number of
    groups.
    """
    negative_effective: float

class TrashItem(Record):
    """Something that was deleted, and can be restored."""

    id: str
    kind: Literal['dataset', 'model', 'evaluation', 'comparison']
    name: str
    """Its own name; of an evaluation that of the model, of a comparison that of the dataset."""
    version: int | None
    """The version of that name."""
    bytes: int
    """Stored bytes, which the quota counts until it is deleted for good."""
    created_at: str
    deleted_at: str
    expires_at: str
    """When it is deleted for good."""

class Upload(Record):
    """Files that are sent one by one, and then become one dataset."""

    id: str
    status: Literal['open', 'closed']
    """`open`: parts may be added. `closed`: it is a dataset."""
    fields: dict[str, str]
    """How the table is to be read, as given when the upload was opened."""
    n_parts: int
    """Number of parts that have come."""
    bytes: int
    """Sum of the sizes of the parts."""
    dataset_id: str | None
    """The dataset. Null until the upload is closed."""
    parts: list[UploadPart] | None
    """The parts in their order. Null in a list of uploads."""
    created_at: str

class UploadPart(Record):
    """One file of an upload."""

    number: int
    """Number of the part, from 1: the order of the rows."""
    content_type: Literal['text/csv', 'application/vnd.apache.parquet', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.arrow.file', 'application/x-ndjson', 'application/json', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet']
    content_encoding: Literal['gzip', 'zstd', 'zip'] | None
    bytes: int
    sha256: str | None
    """SHA-256 of the bytes. Null for a file that the service reads where it lies."""
    path: str | None
    """Path of a file that the service reads where it lies, below its folder for such files."""
    created_at: str

class Valid(Record):
    """The request is valid. Nothing was created."""

    valid: bool

class ValuePoint(Record):
    """A point of the value curves."""

    threshold: float | None
    """Null: no row is flagged."""
    rows: float
    """Share of the rows with such scores."""
    negatives: float
    amount_of_negatives: float | None
    value: float
    """Share of the positives' amount."""

class ValueRecall(Record):
    """The share of the positives' amount that is caught."""

    value: float | None
    low: float | None
    high: float | None
    share: float
    """The share of the rows, or of the negatives, that is flagged."""
    threshold: float
    """The lowest score among the flagged. Of a tie there, a part is flagged."""

class VariableDependence(Record):
    """How much scores depend on each of some features, and on two of them together."""

    model_id: str
    on: Literal['validation', 'train']
    rows: int
    """How many were looked at."""
    features: list[str]
    main: list[float]
    """Variance of the feature's partial dependence, as a share of the variance of the scores."""
    joint: list[list[float]]
    """H² of Friedman & Popescu: the share of the variance of two features' partial dependence that is in
    neither's own; 0 where their effects only add up.
    """

class WindowArea(Record):
    """Partial AUC over a window of false positive rates: the mean height of the curve in the window."""

    value: float | None
    low: float | None
    high: float | None
    fpr_min: float
    fpr_max: float
    empirical: float | None = None
    """Fraction of the pairs strictly in order, over every positive and the negatives of rank ⌊n·fpr_min⌋ +
    1 to ⌈n·fpr_max⌉ (Narasimhan & Agarwal 2016, eq. 2). It counts ties and the ends of the window in
    another way than `value`. Null without a curve.
    """

class WindowBaselines(Record):
    """The model and the controls over one window of false positive rates; [0, 1] is the AUC."""

    fpr_min: float
    fpr_max: float
    chosen: Interval
    baselines: list[BaselineArea]

class WindowBound(Record):
    """Upper bound on 1 - pAUC of future rows: the measured value plus epsilon."""

    name: Literal['theorem_9', 'held_out']
    """`theorem_9` or `held_out`."""
    source: str
    on: Literal['validation', 'train']
    """The part of the data that was measured."""
    risk: float
    """1 - pAUC of these rows, with the curve as a step function."""
    positives: int
    negatives: int
    vc_dimension: int | None
    """VC dimension of the thresholds on all scores that the algorithm can learn from these rows. Null if
    it is not known, or if the model was trained without these rows.
    """
    epsilon: float | None
    value: float | None
    """`risk + epsilon`. Null if the bound cannot be computed."""
    vacuous: bool
    """True if the value is null, or 1 or more: it then says nothing."""
    applies: bool
    """False if a condition of the bound is not met."""
    reasons: list[str]
    """Why the bound does not apply."""

class WindowBounds(Record):
    """Bounds on a model's partial AUC on future rows, over one window of false positive rates."""

    model_id: str
    fpr_min: float
    fpr_max: float
    delta: float
    bounds: list[WindowBound]

class WorstGroup(Record):
    """The lowest area or TPR, or the greatest FPR, among the groups that have the figure. The value is
    that of the group observed to be worst; the interval is for the worst group of the population,
    whichever it is.
    """

    value: float | None
    low: float | None
    high: float | None
    of: Literal['auc', 'pauc', 'tpr', 'fpr']
    fpr_min: float | None
    fpr_max: float | None
    value_of: str | None
    """The group observed to be worst."""
