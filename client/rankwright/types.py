"""What the service answers: every object of its API, by the name that /openapi.json has for it.

Made from that description by tests/app/client/make_types.py; not written by hand.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal

from rankwright.records import Record


class Algorithm(Record):
    """An algorithm of the registry."""

    name: str
    summary: str
    paper: str
    kinds: list[str]
    """Kinds of datasets that it learns from: `bipartite`, `preferences`, `multilabel`."""
    parameters: dict[str, Any]
    """JSON Schema of what goes beside `name` in a job's `algorithm`: types, bounds and defaults."""

class Algorithms(Record):
    """All of them."""

    data: list[Algorithm]

class Alias(Record):
    """An alias with where it pointed before."""

    name: str
    alias: str
    revision: int
    model_id: str
    updated_at: str
    history: list[AliasStep]

class AliasStep(Record):
    """Where an alias pointed from then on."""

    revision: int
    model_id: str
    at: str

class AliasSummary(Record):
    """A name that moves. `revision` is also its ETag."""

    name: str
    alias: str
    revision: int
    model_id: str
    updated_at: str

class AreaDrift(Record):
    """One area, at the model's validation and here: two independent samples."""

    of: str
    """`auc`, `pauc` or `pair_order`."""
    label: str | None = None
    """Of a model with several labels."""
    fpr_min: float | None = None
    fpr_max: float | None = None
    before: Interval
    after: Interval
    change: Interval
    """`after` less `before`; its interval is Zou and Donner's."""
    p_value: float
    adjusted_p_value: float
    """Holm's, over all tests of this drift."""
    changed: bool
    """Whether the adjusted p-value is below 1 - level."""
    words: str

class Artifact(Record):
    """The model's bytes."""

    sha256: str
    bytes: int

class AskedCut(Record):
    """An operating point, and what was asked for."""

    threshold: float | None
    fpr: Interval
    """Share of the negatives that this threshold flags."""
    tpr: Interval
    """Share of the positives that it flags."""
    precision: Interval
    lift: Interval
    flagged: Interval
    """Share of all rows that it flags, at the same share of positives as the precision."""
    threshold_low: float | None
    """Above here and up to `threshold_high` the population's threshold may lie, of the rate or of the
    least cost asked for. Null where the data set no end.
    """
    threshold_high: float | None
    prevalence: float
    """Share of positives that precision, lift and cost stand on: the data's, unless given."""
    tpr_at_fpr: Interval | None
    """Asked by `fpr`: the TPR at exactly this FPR. Its threshold is not known, and the interval allows for
    that.
    """
    fpr_at_tpr: Interval | None
    """Asked by `tpr`: the FPR at exactly this TPR."""
    cost: Cost | None
    """Of a row, if costs were given."""
    asked: str

class AuditEntry(Record):
    """One change."""

    id: str
    created_at: str
    key_id: str | None
    """Whose; null for the server's own command line."""
    action: str
    """The route, or the command."""
    path: str | None
    """The address without its query."""
    made: list[str]
    """Ids of what was created."""
    request_id: str | None
    client: str | None
    """The address that it came from; null for the command line, and for changes of before 0.2.0."""

class Band(Record):
    """What the limits of the points are."""

    kind: Literal['pointwise', 'simultaneous']
    """`pointwise`: of each height by itself. `simultaneous`: of the whole curve."""
    level: float

class BaselineWindow(Record):
    """A window of false positive rates."""

    fpr_min: float
    fpr_max: float

class BatchScore(Record):
    """A table scored by a job: once `ready`, `…/result` has its kept columns and its scores in row order."""

    id: str
    status: str
    """`processing`, `ready`, or how its job ended otherwise: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    model_id: str
    model_name: str
    model_version: int
    dataset_id: str | None
    """Null for a table that was sent for it alone."""
    dataset_name: str | None
    keep: list[str]
    """Columns carried to the result."""
    rows: int | None
    columns: list[ResultColumn] | None
    """Of the result, once `ready`."""
    bytes: int | None
    """Of the result, once `ready`."""
    sha256: str | None
    """Of the result, once `ready`; its ETag."""
    error: dict[str, Any] | None
    """A problem, where the job failed: its `errors` have lines and columns."""
    created_at: str

class Best(Record):
    """The best candidate so far."""

    trial: int
    """The number of the trial that completed it."""
    algorithm: str
    parameters: dict[str, Any]
    """Those that are searched; of `auto` those that it has set. In short: 8 at most."""
    rows: int | None
    """Rows, or pairs, that it has learnt from."""
    value: float
    """By the job's objective, the mean over the inner splits."""
    seconds: float
    """Of its fits, all inner splits together."""
    metric: str
    """That of the job's objective."""

class BestPossibleMargin(Record):
    """The best margin of any combination of the weak rankers, by linear programming."""

    rho: float
    margin: float
    """Margin of the combination found: rho is no less."""
    edge: float
    """Greatest edge under the pair weights found, the certificate: rho is no more."""
    short_by: float
    """rho less the model's own margin."""

class Column(Record):
    """One column's profile."""

    name: str
    type: str | None
    """`numeric`, `boolean`, `datetime` or `categorical`; null where the column was dropped."""
    role: str
    """`feature`, `label`, `item`, `weight` or `group`; `identifier`: text of which nearly every row has
    its own, which is no feature; `dropped`: not read.
    """
    missing: int | None
    distinct: int | None = None
    constant: bool | None = None
    """Of a feature: whether all rows have the same value, or all have none. It tells no rows apart."""
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
    """What one feature holds, and how it ranks the label by itself. Missing values have no part in it.
    Dates are seconds since 1970 here, which have a mean and a distance.
    """

    name: str
    quantiles: list[Quantile] | None
    """Null for a categorical feature."""
    histogram: Histogram | None
    """Null for a categorical feature."""
    auc: ColumnInterval | None
    """Of its values as scores; a category's score is its share of positives among other rows. Null without
    a label of two values.
    """
    missing_auc: ColumnInterval | None
    """How well it ranks by which values are missing; null where none is, or all are."""
    leak: bool
    """Whether it ranks so well that it has probably seen the label."""

class ComparedModel(Record):
    """One of the models, as it was called when the comparison was asked for."""

    model_id: str
    name: str
    version: int

class ComparedPair(Record):
    """How much greater the area of `first` is than that of `second`, on the same rows."""

    first: str
    """A model's id."""
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float
    """Holm's, over all pairs and all windows."""

class ComparedValue(Record):
    """The area of one model over a window, divided by the window's width."""

    value: float | None
    low: float | None
    high: float | None
    model_id: str

class ComparedWindow(Record):
    """The models over one window."""

    fpr_min: float
    fpr_max: float
    values: list[ComparedValue]
    differences: list[ComparedPair]
    p_value: float
    """Joint: of all areas over this window being equal."""

class Comparison(Record):
    """Models on one dataset. It stays when a model or the dataset is deleted."""

    id: str
    status: str
    """`processing`, `ready`, or how its job ended otherwise: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    models: list[ComparedModel]
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None
    """Of the content of that version."""
    windows: list[NewWindow]
    level: float
    warnings: list[str]
    """Among them which models were trained on rows of the dataset."""
    result: ComparisonResult | None
    """Null until it is ready."""
    error: dict[str, Any] | None
    """A problem, once its job has failed."""
    created_at: str

class ComparisonResult(Record):
    """What the rows say of the models."""

    positives: int
    negatives: int
    groups: int | None
    """Where the dataset has a group column: the tests allow for rows of a group being alike."""
    n_tests: int
    """Pairs times windows."""
    p_value: float
    """Joint: of all areas being equal in every window."""
    windows: list[ComparedWindow]

class Control(Record):
    """A plain algorithm that was fitted on the same divisions."""

    algorithm: str
    parameters: dict[str, Any]
    fit_seconds: float
    """Of all folds."""
    failed: str | None
    """Why it could not be fitted."""
    rows: int | None = None
    """Rows that it learnt from, in the first fold; null for models of earlier versions."""
    of_rows: int | None = None
    """Rows that it could have learnt from: more than `rows` of a sample."""

class ControlArea(Record):
    """A control over one window."""

    algorithm: str
    area: Interval
    difference: Difference

class ControlWindow(Record):
    """The model and the controls over one window of false positive rates; [0, 1] is the AUC."""

    fpr_min: float
    fpr_max: float
    chosen: Interval
    controls: list[ControlArea]

class Controls(Record):
    """Whether a model is better than plain algorithms, beyond chance."""

    model_id: str
    level: float
    beats: bool | None
    """Greater than every control in the window `decided_on`, each with an adjusted p-value below 1 -
    level. Null where there is none to compare with.
    """
    decided_on: BaselineWindow
    """That of the job's objective; of `tpr` the one it is trained by."""
    controls: list[Control]
    windows: list[ControlWindow]
    skipped: str | None
    """Why no controls were fitted."""

class Cost(Record):
    """What a row costs on average with this cut."""

    value: float | None
    low: float | None
    high: float | None
    flag_none: float
    """What it costs to flag nothing."""
    flag_all: float
    """What it costs to flag everything."""
    false_positive: float
    false_negative: float

class Cut(Record):
    """A cut of the ranking: what it means to flag every score at or above `threshold`; null flags nothing."""

    threshold: float | None
    fpr: Interval
    """Share of the negatives that this threshold flags."""
    tpr: Interval
    """Share of the positives that it flags."""
    precision: Interval
    lift: Interval
    flagged: Interval
    """Share of all rows that it flags, at the same share of positives as the precision."""
    threshold_low: float | None
    """Above here and up to `threshold_high` the population's threshold may lie, of the rate or of the
    least cost asked for. Null where the data set no end.
    """
    threshold_high: float | None
    prevalence: float
    """Share of positives that precision, lift and cost stand on: the data's, unless given."""
    tpr_at_fpr: Interval | None
    """Asked by `fpr`: the TPR at exactly this FPR. Its threshold is not known, and the interval allows for
    that.
    """
    fpr_at_tpr: Interval | None
    """Asked by `tpr`: the FPR at exactly this TPR."""
    cost: Cost | None
    """Of a row, if costs were given."""

class Dataset(Record):
    """An uploaded table."""

    id: str
    series_id: str
    """The id of the first version."""
    version: int
    """Its number in the series, from 1; never given again."""
    parent_id: str | None
    """The version that it was made from, which may be gone; null for the first."""
    mode: str | None
    """`append`: the rows of its parent, and those of the upload. `replace`: those of the upload alone.
    Null for the first.
    """
    name: str
    kind: str
    status: str
    """`processing`, `ready` or `invalid`."""
    job_id: str | None
    """The job that reads the table."""
    content_type: str
    content_encoding: str | None
    label: str | None
    positive: str | None
    """The label's value that counts as positive."""
    negative: str | None
    weight: str | None
    group: str | None
    item: str | None
    """The column of the items' names."""
    labels: list[Label] | None
    """Of a dataset of kind `multilabel`."""
    categorical: list[str] | None
    """Columns that were declared categorical."""
    numeric: list[str] | None
    """Columns that were declared numeric."""
    drop: list[str] | None
    """Columns that were left out."""
    missing: list[str] | None
    """What was said to stand for a missing value; null where the defaults do."""
    strict: bool
    """Whether a value that does not fit its column, or a row without a label, is an error."""
    dialect: dict[str, str] | None
    """What was said of how a CSV is written: `encoding`, `delimiter`, `decimal`."""
    bytes: int
    """Of the upload."""
    sha256: str
    """Of the content: that of the upload's bytes; where rows were added to a version, that of the text of
    the version's `sha256` and of `upload_sha256`, one after the other.
    """
    upload_sha256: str
    """Of the bytes as they came."""
    rows: int | None
    positives: int | None
    negatives: int | None
    columns: list[Column]
    errors: list[TableFault]
    warnings: list[TableWarning]
    """What was done with values that could not be taken as they are."""
    pairs: Pairs | None
    """Of a dataset of kind `preferences`, once there are any."""
    created_at: str

class DatasetProfile(Record):
    """The second look at a ready dataset."""

    dataset_id: str
    rows: int | None
    positives: int | None
    negatives: int | None
    columns: list[ColumnProfile]
    rows_looked_at: int
    """All, or in a large table so many drawn at random."""
    duplicates: Duplicates
    warnings: list[TableWarning]
    """Those of the dataset."""

class DatasetVersion(Record):
    """The data that something was made with, under the name it had then. The dataset may be gone."""

    id: str
    name: str
    version: int
    sha256: str
    """Of its content."""
    pairs_sha256: str | None = None
    """Of its pairs, in a dataset of kind `preferences`."""

class DependenceAxis(Record):
    """A feature, and the values that it was set to."""

    name: str
    type: str
    """`numeric`, `boolean`, `datetime` or `categorical`."""
    values: list[float | bool | str | None]
    """Dates as ISO 8601, as rows to score have them. Null, always last, is missing."""

class Difference(Record):
    """By how much the model's area is greater than the control's, and the p-value of there being no
    difference.
    """

    value: float | None
    low: float | None
    high: float | None
    p_value: float
    adjusted_p_value: float
    """By Holm, over all controls and windows."""

class Drift(Record):
    """What is otherwise than at the model's validation, beyond chance."""

    level: float
    """Of the model's own intervals, and so of these tests."""
    changed: bool
    summary: str
    areas: list[AreaDrift]
    scores: list[ScoreDrift]
    """Scores may move while the order stays as good: then thresholds are to be set anew."""

class Duplicates(Record):
    """Rows that are equal in every feature."""

    rows: int
    """Rows that have an equal."""
    repeated: int
    """Rows less distinct rows."""
    rows_of_both_classes: int | None = None
    """Rows whose equals are of both classes: no ranker can tell them apart."""
    estimated: bool
    """Whether the counts are scaled up from a share of the rows."""

class Estimate(Record):
    """A rough guess from the table's size."""

    seconds: float
    memory_bytes: int

class EvaluatedCurve(Record):
    """How well a model ranks rows with one label."""

    auc: Interval
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: EvaluatedCut | None
    """Of a model of the objective `tpr`."""
    positives: int
    negatives: int
    totals: Totals
    groups: int | None
    """Where the dataset has a group column: the intervals allow for rows of a group being alike."""
    ties: float
    """Share of the pairs of a positive and a negative."""

class EvaluatedCut(Record):
    """What the model's own threshold, set on its validation rows, does to these rows."""

    threshold: float | None
    fpr: Interval
    tpr: Interval
    precision: Interval
    lift: Interval

class EvaluatedLabel(Record):
    """How well one label's scores rank."""

    label: str
    auc: Interval | None
    """Null where the dataset has too few rows of a class."""
    pauc: list[WindowArea]
    positives: int
    negatives: int

class EvaluatedLabels(Record):
    """How well a model with several labels ranks."""

    labels: list[EvaluatedLabel]
    judged: int
    """Labels that have an AUC: the means are over these."""
    mean_auc: float
    mean_pauc: list[MeanArea]

class EvaluatedPairs(Record):
    """How well a model puts pairs of items in order."""

    pair_order: Interval
    misrank_fraction: float
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float

class Evaluation(Record):
    """How good a model is on a dataset. It stays when the model or the dataset is deleted."""

    id: str
    status: str
    """`processing`, `ready`, or how its job ended otherwise: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    model_id: str
    model_name: str
    model_version: int
    kind: str
    """Of the dataset: `bipartite`, `preferences` or `multilabel`."""
    dataset_id: str
    dataset_name: str
    dataset_version: int | None
    dataset_sha256: str | None
    """Of the content of that version."""
    windows: list[NewWindow]
    level: float
    warnings: list[str]
    metrics: EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | None
    """By the kind; null until it is ready."""
    drift: Drift | None
    """Null where there is no validation to compare with, or it is not independent of these rows: a warning
    says which.
    """
    error: dict[str, Any] | None
    """A problem, once its job has failed."""
    created_at: str

class EvaluationRoc(Record):
    """The curve of an evaluation."""

    exact: bool
    """False where points were left out to keep to `max_points`."""
    total_points: int
    band: Band | None = None
    points: list[Point]
    evaluation_id: str

class Event(Record):
    """Something that happened to a job."""

    seq: int
    """Counts from 1 without gaps."""
    at: str
    type: str
    """`state`, `progress` or `message`."""
    data: dict[str, Any]

class Explanation(Record):
    """`offset`, the mean training score, plus the contributions is the score."""

    score: float
    fpr: float | None
    tpr: float | None
    offset: float
    contributions: dict[str, float]

class Explanations(Record):
    """One explanation a row."""

    model_id: str
    explanations: list[Explanation]

class Feature(Record):
    """A feature that the model takes."""

    name: str
    type: str
    """`numeric`, `boolean` or `categorical`."""
    missing: bool
    """Had missing values in training, so it may be absent."""
    categories: list[str] | None = None
    """Of a categorical feature: its first hundred categories in text order; the artifact has all. Any
    other text counts as missing.
    """
    n_categories: int | None = None
    """How many there are."""

class FeatureImportance(Record):
    """How much one feature matters."""

    name: str
    importance: float
    root: float | None = None
    """Of `squared_auc_gain`: the square root of `importance`."""
    auc_gain: float | None = None
    """Of `squared_auc_gain`: the sum of the gains themselves, in training AUC."""

class FoldAuc(Record):
    """A fold's AUC."""

    repeat: int
    fold: int
    auc: float

class FoldChosen(Record):
    """What a fold's search has chosen."""

    repeat: int
    fold: int
    chosen: dict[str, Any]

class Health(Record):
    """Whether the service is well."""

    status: str
    """`ok` or `unavailable`."""
    version: str | None = None
    build: str
    """`RANKWRIGHT_BUILD` of the process, which an image sets."""
    parts: dict[str, Part] | None = None

class Height(Record):
    """The curve's height at a false positive rate, and its interval, which allows for the threshold's own
    variance.
    """

    fpr: float
    tpr: float
    low: float
    high: float

class Histogram(Record):
    """Counts between edges of equal distance; one more edge than counts."""

    edges: list[float]
    counts: list[int]

class Importance(Record):
    """The features, the one that matters most first. Figures of two methods cannot be compared."""

    model_id: str
    method: str
    """`squared_auc_gain` of ranking trees, `mean_absolute_contribution` of sums of parts per feature,
    `permutation_auc` of all others.
    """
    description: str
    """What the method measures, in a sentence."""
    on: Literal['validation', 'train']
    """The rows that it was measured on."""
    label: str | None
    """Of several labels, the one whose scores are meant."""
    features: list[FeatureImportance]

class Interval(Record):
    """An estimate with its confidence interval."""

    value: float | None
    low: float | None
    high: float | None

class Job(Record):
    """One long piece of work."""

    id: str
    kind: str
    """`ingest`, `ingest_pairs`, `evaluate`, `compare`, `batch_score`, `train`."""
    name: str
    state: str
    """`queued`, `running`, `cancelling`, `succeeded`, `failed`, `cancelled` or `timed_out`."""
    dataset_id: str | None
    dataset: DatasetVersion | None
    """What the job trains on or judges by, as it was called when the job was handed in."""
    validation_dataset: DatasetVersion | None
    """What the model is judged by, with validation.method `dataset`."""
    algorithm: dict[str, Any] | None
    """With every parameter resolved; the greatest value of one that is searched."""
    objective: dict[str, Any] | None
    validation: dict[str, Any] | None
    search: dict[str, Any] | None
    controls: dict[str, Any] | None
    """`algorithms` that are fitted for comparison, why they are `skipped` where they are, and the `share`
    of the job's time that they may take; null for as long as it takes.
    """
    seed: int | None
    label_noise: float | None
    timeout_seconds: float
    priority: int
    tags: dict[str, str]
    attempt: int
    max_attempts: int
    progress: Progress | None
    error: dict[str, Any] | None
    """A problem, once the job has failed."""
    output: JobOutput | None = None
    """What the job makes; read its status there. A model is there once the job has succeeded."""
    model_id: str | None
    """Of a job that trains: `output.id`."""
    retry_of: str | None
    last_event: int
    """Number (`seq`) of the job's last event: `…/events?after=` goes on from there."""
    evaluation_id: str | None = None
    """Of a job of kind `evaluate`: `output.id`."""
    comparison_id: str | None = None
    """Of a job of kind `compare`: `output.id`."""
    batch_score_id: str | None = None
    """Of a job of kind `batch_score`: `output.id`."""
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None
    keep_requested_at: str | None = None
    """When the job was asked to end early and keep the best so far."""

class JobCheck(Record):
    """What `?validate=true` found: a sound job. Nothing was created."""

    valid: bool
    algorithm: dict[str, Any]
    objective: dict[str, Any]
    validation: dict[str, Any]
    search: dict[str, Any] | None
    controls: dict[str, Any]
    seed: int
    label_noise: float | None
    estimate: Estimate

class JobOutput(Record):
    """What a job makes."""

    kind: str
    """`model`, `evaluation`, `comparison`, `batch_score`, `dataset` or `pairs` (by the dataset's id)."""
    id: str

class Key(Record):
    """A key without its secret."""

    id: str
    owner: str
    name: str
    prefix: str
    """The secret's first characters, to recognise it by."""
    scopes: list[str]
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None
    successor_id: str | None
    """The key that it was rotated to."""

class KeyWithSecret(Record):
    """A key just made."""

    id: str
    owner: str
    name: str
    prefix: str
    """The secret's first characters, to recognise it by."""
    scopes: list[str]
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    revoked_at: str | None
    successor_id: str | None
    """The key that it was rotated to."""
    secret: str | None
    """Shown this once; null in a replay."""

class Label(Record):
    """One of several labels; its values and their counts are known once the table is read."""

    name: str
    positive: str | None = None
    negative: str | None = None
    positives: int | None = None
    negatives: int | None = None

class LabelMetrics(Record):
    """How well one label's scores rank one part."""

    label: str
    auc: Interval | None
    """Null where the part has too few rows of a class."""
    pauc: list[WindowArea]
    positives: int
    negatives: int
    ties: float | None

class LabelScore(Record):
    """One row's score for each label of a model with several."""

    model_id: str
    scores: dict[str, float]

class LabelScores(Record):
    """A list of scores a row, one score a label, of a model with several."""

    model_id: str
    labels: list[str]
    scores: list[list[float]]

class LabelValues(Record):
    """One of several labels, and its values."""

    name: str
    positive: str
    negative: str

class Leaderboard(Record):
    """What `auto` has tried, the best first, and what it made of it."""

    model_id: str
    budget_seconds: float
    seconds: float
    """What the search has taken of it; the last fit comes on top."""
    members: list[Member]
    candidates: list[LeaderboardRow]
    notes: list[str]

class LeaderboardRow(Record):
    """A candidate of `auto`. Its figures are of the rows that chose, on which the best are too good to be
    true.
    """

    algorithm: str
    parameters: dict[str, Any]
    value: float | None
    """By the objective; null where it failed or never came."""
    auc: float | None
    low: float | None
    high: float | None
    p_value: float | None
    """Of no difference from the best single candidate, on the same rows."""
    rows: float
    """Share of the rows to learn from that it was last given."""
    seconds: float
    state: str
    """`chosen`, `left`, `failed` or `untried`."""
    reason: str

class ListedModel(Record):
    """A model in a list, with what one looks for there."""

    id: str
    name: str
    version: int
    algorithm: dict[str, Any]
    """With every parameter."""
    objective: dict[str, Any]
    validation: dict[str, Any]
    optimised_for: dict[str, Any]
    selected_by: dict[str, Any] | None
    """The objective by which a search chose parameters; null without a search."""
    beats_controls: bool | None
    """Whether its area is greater than that of every control, beyond chance: see …/controls. Null without
    controls.
    """
    dataset_id: str
    dataset: DatasetVersion | None
    """What it was trained on, as it was called then; it stays when the dataset goes. Null where nobody
    wrote it down.
    """
    validation_dataset: DatasetVersion | None
    """What it was judged by, with validation.method `dataset`."""
    kind: str
    """Of the dataset: `bipartite`, `preferences` or `multilabel`."""
    job_id: str
    seed: int
    tags: dict[str, str]
    created_at: str
    aliases: list[str]
    auc: Interval | None
    """On validation rows. Null without validation, and for pairs and several labels: see …/metrics."""

class MarginRound(Record):
    """One round of boosting, under the pair weights of its time."""

    round: int
    edge: float
    """r = d+ - d-."""
    tied: float
    """d0, the mass of the pairs that the weak ranker ties."""
    most_tied: float
    """Theorem 7 asks for d0 below 2/3 (1 - r)(1 - r²)."""
    holds: bool

class MarginRounds(Record):
    """Theorem 7's condition, round by round, the first rounds first."""

    total: int
    holds: int
    """In how many of all rounds the condition holds."""
    data: list[MarginRound]

class MarginShare(Record):
    """Share of the training pairs with a margin of at most `theta`."""

    theta: float
    fraction: float

class Margins(Record):
    """How far apart the training pairs are, with scores divided by the sum of the steps, and what follows
    from it.
    """

    model_id: str
    on: Literal['validation', 'train']
    l1_norm: float
    """Sum of the steps, by which scores are divided."""
    margin: float
    """Least margin of a pair: above 0 when all are in order."""
    smooth_margin: float
    """-ln of the ranking loss, divided by `l1_norm`: below `margin`, nearer as boosting goes on."""
    weak_rankers: int
    """How many there are, at most."""
    distribution: list[MarginShare]
    """From the least margin to the greatest."""
    theta: float
    delta: float
    bounds: list[MisrankBound]
    best: BestPossibleMargin | None
    """Null where the programme is too large."""
    rounds: MarginRounds
    losses: RoundLosses

class MeanArea(Record):
    """A partial AUC's mean over the labels."""

    fpr_min: float
    fpr_max: float
    value: float | None

class Member(Record):
    """A ranker that the model is made of."""

    algorithm: str
    parameters: dict[str, Any]
    weight: float

class Metrics(Record):
    """How well the model ranks one part of the data."""

    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """Of the curve and what is read off it, not of the areas. The model was cross-validated: the curve is
    put together from the folds' scores, brought onto the scale of the ranker that is served, whose own
    thresholds were never tried.
    """
    level: float
    """Of the intervals."""
    auc: Interval
    pauc: list[WindowArea]
    tpr_at_fpr: list[Height]
    operating_point: Cut | None
    """Of the objective `tpr`: what the model's threshold, set on validation rows, does to this part."""
    positives: int
    negatives: int
    positive_weight: float
    negative_weight: float
    ties: float
    """Share of pairs of a positive and a negative with equal scores."""

class MisrankBound(Record):
    """A bound on the probability that the model misranks a pair of rows to come: a share of pairs plus
    epsilon.
    """

    name: str
    source: str
    value: float | None
    """`margin_fraction + epsilon`; null where it has none."""
    margin_fraction: float
    """Share of the training pairs with a margin of at most theta, or of the held-out pairs misranked."""
    epsilon: float | None
    terms: dict[str, float | None]
    """What epsilon was computed from."""
    applies: bool
    """False where a condition of the theorem is not met."""
    reasons: list[str]
    """Why it does not apply."""
    vacuous: bool
    """True from 1 on: a probability is no more anyway."""

class Model(Record):
    """A trained ranker."""

    id: str
    name: str
    version: int
    algorithm: dict[str, Any]
    """With every parameter."""
    objective: dict[str, Any]
    validation: dict[str, Any]
    optimised_for: dict[str, Any]
    selected_by: dict[str, Any] | None
    """The objective by which a search chose parameters; null without a search."""
    beats_controls: bool | None
    """Whether its area is greater than that of every control, beyond chance: see …/controls. Null without
    controls.
    """
    dataset_id: str
    dataset: DatasetVersion | None
    """What it was trained on, as it was called then; it stays when the dataset goes. Null where nobody
    wrote it down.
    """
    validation_dataset: DatasetVersion | None
    """What it was judged by, with validation.method `dataset`."""
    kind: str
    """Of the dataset: `bipartite`, `preferences` or `multilabel`."""
    job_id: str
    seed: int
    tags: dict[str, str]
    created_at: str
    aliases: list[str]
    features: list[Feature]
    """In the order of the artifact."""
    label: str | None
    """Null where it was trained on pairs or several labels."""
    positive: str | None
    negative: str | None
    labels: list[LabelValues] | None
    """Of a model with several labels."""
    search: Search | None
    operating_point: Cut | None
    """Of the objective `tpr`: the best cut of the validation rows at its FPR. Null for others, and without
    validation.
    """
    warnings: list[str]
    fit_seconds: float
    artifact: Artifact

class MultilabelMetrics(Record):
    """How well a model with several labels ranks one part: label by label, and on average."""

    model_id: str
    on: Literal['validation', 'train']
    level: float
    """Of the intervals."""
    labels: list[LabelMetrics]
    judged: int
    """Labels that have an AUC: the means are over these."""
    mean_auc: float | None
    mean_pauc: list[MeanArea]

class NewWindow(Record):
    """A window of false positive rates."""

    fpr_min: float | None = None
    """Default: `0.0`."""
    fpr_max: float

class OperatingPoint(Record):
    """One cut of the ranking on one part of the data."""

    threshold: float | None
    fpr: Interval
    """Share of the negatives that this threshold flags."""
    tpr: Interval
    """Share of the positives that it flags."""
    precision: Interval
    lift: Interval
    flagged: Interval
    """Share of all rows that it flags, at the same share of positives as the precision."""
    threshold_low: float | None
    """Above here and up to `threshold_high` the population's threshold may lie, of the rate or of the
    least cost asked for. Null where the data set no end.
    """
    threshold_high: float | None
    prevalence: float
    """Share of positives that precision, lift and cost stand on: the data's, unless given."""
    tpr_at_fpr: Interval | None
    """Asked by `fpr`: the TPR at exactly this FPR. Its threshold is not known, and the interval allows for
    that.
    """
    fpr_at_tpr: Interval | None
    """Asked by `tpr`: the FPR at exactly this TPR."""
    cost: Cost | None
    """Of a row, if costs were given."""
    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """The model was cross-validated: the curve is put together from the folds' scores, brought onto the
    scale of the ranker that is served, whose own thresholds were never tried.
    """

class OperatingPoints(Record):
    """Cuts along the curve of one part of the data, from the one that flags nothing to the one that flags
    all.
    """

    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """The model was cross-validated: the curve is put together from the folds' scores, brought onto the
    scale of the ranker that is served, whose own thresholds were never tried.
    """
    level: float
    """Of each interval by itself."""
    exact: bool
    """False where points of the curve were left out."""
    total_points: int
    """Of the curve."""
    least_cost: int | None
    """Which of `points`, from 0, costs least, if costs were given."""
    of_objective: int | None
    """Which of `points` is the best cut at the FPR of the objective `tpr`."""
    points: list[Cut]

class OutOfFold(Record):
    """The scores that a cross-validated model's AUC and curve come from."""

    model_id: str
    repeats: int
    folds: int
    fold_aucs: list[FoldAuc]
    columns: list[str]
    data: list[list[float]]
    """An entry per row and repeat. `row` counts from 0 in the order of the dataset; `repeat` and `fold`
    from 1; `y` is 1 for positive. `score` is on the scale of the fold's own ranker, `aligned_score` on
    that of the ranker that is served.
    """

class PairMetrics(Record):
    """How well a model trained on pairs puts the pairs of one part in order."""

    model_id: str
    on: Literal['validation', 'train']
    level: float
    """Of the interval."""
    pair_order: Interval
    """Weighted share of pairs in order, ties counted half. The interval allows for pairs that share an
    item.
    """
    misrank_fraction: float
    """Weighted share of pairs out of order, ties counted whole."""
    ties: float
    pairs: int
    items: int
    weight: float
    effective_pairs: float
    """So many pairs without a common item would tell as much, at the worst."""

class Pairs(Record):
    """Which item is better than which, in a dataset of kind `preferences`."""

    status: str
    """`processing`, `ready` or `invalid`."""
    job_id: str
    """The job that reads them."""
    content_type: str
    content_encoding: str | None
    bytes: int
    sha256: str
    pairs: int | None
    """Their number."""
    items: int | None
    """How many items occur in them."""
    weighted: bool | None
    """Whether they have a column of weights."""
    errors: list[TableFault]
    created_at: str

class Part(Record):
    """One part of the service."""

    ok: bool
    detail: str

class PartialDependence(Record):
    """Mean scores of rows that are alike but for one or two features."""

    model_id: str
    on: Literal['validation', 'train']
    """The rows that scores are averaged over."""
    label: str | None
    """Of several labels, the one whose scores are meant."""
    rows: int
    """How many rows each score is the mean of."""
    features: list[DependenceAxis]
    scores: list[float] | list[list[float]]
    """By value of the feature; of two, by value of the first and then of the second."""

class Point(Record):
    """Flagging every score at or above `threshold` gives these rates; null flags nothing."""

    fpr: float
    tpr: float
    threshold: float | None
    low: float | None = None
    """Lower limit of the curve's height at this FPR, if `band` was asked for."""
    high: float | None = None
    """Upper limit."""

class Preview(Record):
    """The first rows of a ready dataset."""

    columns: list[str]
    data: list[list[float | bool | str | None]]

class Progress(Record):
    """What a running job is doing, how far it is, and the best that it has found."""

    fraction: float | None = None
    """Share of the whole job that is done; of a job with a budget, the share that is spent."""
    phase: str | None = None
    """`reading the table`, `compiling`, `preparing` (what a fit does before its first step), `fitting`,
    `measuring` or `comparing` (with plain algorithms).
    """
    algorithm: str | None = None
    """What is being fitted."""
    parameters: dict[str, Any] | None = None
    """Of a candidate, as on the leaderboard."""
    rows: int | None = None
    """Rows, or pairs, that it learns from."""
    trial: int | None = None
    """Of a search, the number of the trial under way: one fit on one inner split."""
    trials: int | None = None
    """How many there will be, where that is known: not with `auto`."""
    fold: int | None = None
    """Under cross-validation, the fold whose ranker is fitted."""
    step: int | None = None
    """Rounds, or other steps, of the fit under way; of a job in parts the parts that are done."""
    of: int | None = None
    """As many steps, or parts, there are."""
    detail: str | None = None
    """Figures of the last step, for people: the loss; the AUC of a sample of the rows trained on, while it
    is cheap; the AUC of the validation rows where a fit may stop early.
    """
    best: Best | None = None
    leaderboard: list[ProgressRow] | None = None
    """The best ten candidates so far, the best first."""
    keepable: bool | None = None
    """Whether `POST …/cancel?keep=true` would keep something now."""
    elapsed_seconds: float | None = None
    """Since the start, when this was told: a job tells once a second."""
    seconds_left: float | None = None
    """Of the budget of `auto`, when this was told."""

class ProgressRow(Record):
    """What a search has tried, judged on the rows that it holds out to choose by."""

    trial: int
    """The number of the trial that completed it."""
    algorithm: str
    parameters: dict[str, Any]
    """Those that are searched; of `auto` those that it has set. In short: 8 at most."""
    rows: int | None
    """Rows, or pairs, that it has learnt from."""
    value: float
    """By the job's objective, the mean over the inner splits."""
    seconds: float
    """Of its fits, all inner splits together."""

class Quantile(Record):
    """The least value that such a share of the rows does not exceed."""

    at: float
    value: float

class Ranking(Record):
    """Row numbers from 0, best first, with their scores."""

    model_id: str
    indices: list[int]
    scores: list[float]

class Report(Record):
    """All that is known of a model, in one answer."""

    written_at: str
    written_by: str
    """Version of the service."""
    model: Model
    data: ReportedData | None
    """Null once the dataset is deleted."""
    job: ReportedJob | None
    warnings: list[str]
    """The model's own, and what else a reader should know before believing the figures."""
    metrics: list[Metrics | PairMetrics | MultilabelMetrics]
    """Of each part that was judged, validation first."""
    operating_points: list[AskedCut]
    """On validation rows."""
    fold_aucs: list[FoldAuc] | None
    """Of a cross-validated model."""
    controls: Controls | None
    """Null for a model that was trained without."""
    leaderboard: Leaderboard | None
    """Of a model of algorithm `auto`."""
    importance: ReportedImportance | None

class ReportedData(Record):
    """The dataset that the model has learnt from."""

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
    """Features in the order of the artifact; of a model with several labels `importance` is a list, a
    value a label.
    """

    method: str
    description: str
    on: str
    features: list[dict[str, Any]]

class ReportedJob(Record):
    """The job that made the model."""

    id: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    attempt: int
    max_attempts: int

class ResultColumn(Record):
    """A column of the result."""

    name: str
    type: str
    """As Arrow calls it."""

class Roc(Record):
    """The curve of a model on one part of its data."""

    exact: bool
    """False where points were left out to keep to `max_points`."""
    total_points: int
    band: Band | None = None
    points: list[Point]
    model_id: str
    on: Literal['validation', 'train']
    approximate: bool
    """The model was cross-validated: the curve is put together from the folds' scores, brought onto the
    scale of the ranker that is served, whose own thresholds were never tried.
    """

class RoundLoss(Record):
    """The losses after one round, on the rows that were learnt from; null beyond the doubles."""

    round: int
    f: float | None
    """F, AdaBoost's loss, of the scores with their intercept."""
    f_skew: float | None
    """The positives' part of F less the negatives'."""
    f_tilde: float | None
    """F̃, RankBoost's loss."""
    smooth_margin: float | None
    """-ln F̃ divided by the sum of the steps so far, the least pair weight as 1; null where the fit held
    out part of its rows.
    """

class RoundLosses(Record):
    """Losses round by round, the first rounds first."""

    total: int
    data: list[RoundLoss]

class Score(Record):
    """One row's score, and where it lies on the model's validation curve."""

    model_id: str
    score: float
    fpr: float | None
    """Share of the negatives that a cut here would flag; null without a validation curve."""
    tpr: float | None
    """Share of the positives that a cut here would catch."""
    approximate: bool | None = None
    """True, and there, where the model was cross-validated."""

class ScoreDrift(Record):
    """The scores of one class, at the model's validation and here."""

    of: str
    """`positives` or `negatives`."""
    distance: float
    """Kolmogorov and Smirnov's; the p-value is its."""
    higher: float
    """Probability that a score here is above one of the validation, ties counted half."""
    p_value: float
    adjusted_p_value: float
    changed: bool
    words: str

class ScoreTableCheck(Record):
    """What `?validate=true` found: the rows could be scored. Nothing was created."""

    valid: bool
    rows: int | None = None
    """Of a table that was sent."""

class Scores(Record):
    """Scores in row order. `fprs` and `tprs` are null without a validation curve."""

    model_id: str
    scores: list[float]
    fprs: list[float] | None
    tprs: list[float] | None
    approximate: bool | None = None
    """True, and there, where the model was cross-validated."""

class Search(Record):
    """What was tried, on splits of the training part, and chosen. These rows are not those of any metrics.
    Under cross-validation every fold has chosen for itself, by its own rows to learn from:
    `folds_chosen`. The rest is how the served ranker was chosen.
    """

    method: str
    space: dict[str, Any]
    n_candidates: int | None = None
    folds: int | None = None
    """Inner folds; null where one part was held out."""
    fraction: float
    """Share of the training part that judged the candidates, without folds."""
    candidates: list[SearchTrial]
    chosen: dict[str, Any]
    """The best, the fewest rounds among equals; with it the whole training part was fitted anew."""
    folds_chosen: list[FoldChosen] | None = None
    seconds: float
    """Time of the search, beside `fit_seconds` of the model's own fit."""

class SearchTrial(Record):
    """Values that a search has tried."""

    parameters: dict[str, Any]
    value: float | None
    """Of `selected_by`, on the rows that chose, the mean over the folds; higher is better. Null where it
    could not be fitted.
    """
    auc: float | None = None
    rows: float | None = None
    """Share of the rows to learn from that it was last given."""
    seconds: float | None = None
    state: str | None = None
    """`chosen`, `left` or `failed`."""
    reason: str | None = None

class TableCheck(Record):
    """What `?validate=true` found: a sound table. Nothing was kept."""

    valid: bool
    rows: int
    positives: int | None
    negatives: int | None
    columns: list[Column]
    warnings: list[TableWarning]

class TableFault(Record):
    """What is wrong with a table, and where."""

    detail: str
    line: int | None = None
    column: str | None = None
    suggestion: dict[str, str] | None = None
    """Fields of the upload that may mend it, with a value for each: a likely label, a positive value."""

class TableWarning(Record):
    """What was done with values of a column that could not be taken as they are."""

    code: str
    """`values_taken_for_missing`: rare values that do not fit their column. `words_pooled`: more words
    than categories; the rarest count as missing. `identifier`: nearly every row has its own value: no
    feature. `column_without_name`: left out. `rows_without_label`: rows left out.
    `label_of_many_values`: all but the positive one are negative.
    """
    column: str
    detail: str
    count: int
    """Values, words or rows that it is about."""
    parameter: str
    """The field of the upload that decides otherwise."""
    line: int | None
    """Of the first, where the format has lines."""

class TopValue(Record):
    """A frequent value of a column."""

    value: float | bool | str | None
    """Of a `datetime` column seconds since 1970, as its `min`, `max` and `mean` are."""
    count: int

class Totals(Record):
    """Weight of each class, and how many independent observations it is worth."""

    positive: float
    negative: float
    positive_effective: float
    """By the weights; where rows come in groups, of groups."""
    negative_effective: float

class Valid(Record):
    """What `?validate=true` found: the request is sound. Nothing was created."""

    valid: bool

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
    """Partial AUC on a window of false positive rates: the mean height of the curve there."""

    value: float | None
    low: float | None
    high: float | None
    fpr_min: float
    fpr_max: float
    empirical: float | None = None
    """The share of pairs strictly in order, of every positive with the negatives ranked ⌊n·fpr_min⌋ + 1 to
    ⌈n·fpr_max⌉ (Narasimhan & Agarwal 2016, eq. 2). Ties, and the ends of the window, are counted
    otherwise than in `value`. Null without a curve.
    """

class WindowBound(Record):
    """A bound on 1 - pAUC of rows to come: what was measured on a part, plus epsilon."""

    name: str
    """`theorem_9` or `held_out`."""
    source: str
    on: Literal['validation', 'train']
    """The rows that were measured."""
    risk: float
    """1 - pAUC of these rows, the curve taken as steps."""
    positives: int
    negatives: int
    vc_dimension: int | None
    """Of the cuts of all scores that the algorithm might have learnt from these rows; null where it is not
    known, and where the model was fixed before the rows were seen.
    """
    epsilon: float | None
    value: float | None
    """`risk + epsilon`; null where it has none."""
    vacuous: bool
    """True from 1 on, a risk is no more anyway; and without a value."""
    applies: bool
    """False where a condition is not met."""
    reasons: list[str]
    """Why it does not apply."""

class WindowBounds(Record):
    """What can be said of a model's partial AUC on rows to come, in one window of false positive rates."""

    model_id: str
    fpr_min: float
    fpr_max: float
    delta: float
    bounds: list[WindowBound]
