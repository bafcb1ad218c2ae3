"""What the service answers: every object of its API, by the name that /openapi.json has for it.

Made from that description by tools/make_client.py; not written by hand.
"""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any, Literal

from rankwright.records import Record


class AbsentPart(Record):
    """A requested part that the model does not have."""

    part: Literal['metrics', 'roc', 'operating_points', 'operating_point']
    """Name of the part."""
    code: str
    """Error code that the part's own route returns."""
    detail: str
    """Why the part is absent."""

class Acknowledgement(Record):
    """A person has seen that an evaluation found a change. It holds until a new evaluation."""

    reason: str
    """The reason for taking no further action."""
    author: str | None
    """Name of the key that acknowledged it."""
    at: str
    """Time of the acknowledgement."""

class Alarm(Record):
    """An alarm of the monitor: a scheduled test found a change. A person acknowledges it with a reason."""

    id: str
    """Id of the alarm."""
    name: str
    """Name of the model."""
    alias: str
    """The alias."""
    family: Literal['unlabelled', 'ranking', 'calibration', 'guarantee', 'selection', 'group_calibration']
    """What was tested."""
    words: str
    """The result in one sentence."""
    period_start: str
    """Start of the tested period."""
    model_id: str | None
    """Id of the model whose decisions were tested."""
    raised_at: str
    """Time of the alarm."""
    acknowledged_at: str | None
    """Time of the acknowledgement. Null if there is none."""
    reason: str | None
    """Reason of the acknowledgement. It is not HTML: escape it where it is shown."""
    reference: Literal['keep', 'renew'] | None
    """What later tests are compared with: see the acknowledgement."""
    author: str | None
    """Name of the key that acknowledged it."""

class Algorithm(Record):
    """An algorithm that can be trained."""

    name: str
    """Name of the algorithm."""
    summary: str
    """What the algorithm does, in one sentence."""
    paper: str
    """Publication that describes the algorithm."""
    kinds: list[Literal['bipartite', 'preferences', 'multilabel', 'graded']]
    """Kinds of datasets that the algorithm can train on."""
    parameters: dict[str, Any]
    """JSON Schema of the algorithm's parameters: types, bounds and defaults. In a job they go next to
    `name` in `algorithm`.
    """

class Algorithms(Record):
    """All ranking algorithms."""

    data: list[Algorithm]
    """The algorithms."""

class AliasSummary(Record):
    """An alias: a name that can be moved from one version of a model to another."""

    name: str
    """Name of the models."""
    alias: str
    """The alias, such as `live`."""
    revision: int
    """Revision number, from 1. It is also the ETag."""
    model_id: str
    """Id of the model that the alias points to."""
    guarantee: StoredGuarantee | None
    """What every version behind the alias keeps. Null: nothing, and score responses have no `flag`."""
    cutoff: AliasCutoff | None
    """Threshold with which the current version meets the guarantee or target. Null without one."""
    memo: StoredMemo | None
    """Why the alias was last moved. Null if no memo was given."""
    author: str | None
    """Name of the key that last moved the alias. Null if it was moved without a key."""
    protected: bool
    """True if another person must approve every change of the alias, and of the calibration of its model."""
    break_glass_until: str | None
    """Until when the protection is suspended, so that admins can change the alias directly. Null if it is
    not suspended.
    """
    updated_at: str
    """Time of the last change, apart from changes of the protection."""

class DeletedAlias(AliasSummary):
    """A deleted alias, as it was. `revision` and `memo` are those of the deletion, `updated_at` is its
    time.
    """


class Alias(DeletedAlias):
    """An alias with its history."""

    history: list[AliasStep]
    """The revisions of the alias, the newest first."""

class AliasCutoff(Record):
    """The threshold with which a version meets the guarantee or target, and its rates on the validation
    rows.
    """

    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    fpr: float
    """False positive rate on the validation rows."""
    tpr: float
    """True positive rate on the validation rows."""

class AliasMonitor(Record):
    """The results of the monitor of an alias."""

    name: str
    """Name of the model."""
    alias: str
    """The alias."""
    as_of: str
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

class AliasPreview(Record):
    """What a change of an alias would do. Nothing was changed."""

    name: str
    """Name of the models."""
    alias: str
    """The alias."""
    revision: int | None
    """Newest revision, also of a deleted alias: send it as `If-Match`. Null for a new alias."""
    protected: bool
    """True if the alias is protected."""
    approval_required: bool
    """True if another person must approve this change: use `POST /v1/alias-requests`."""
    before: AliasSide | None
    """What the alias serves now. Null if it does not exist."""
    after: AliasSide
    """What it would serve."""

class AliasRequest(Record):
    """A request to change a protected alias. It is bound to `alias_revision`, `model_id`,
    `artifact_sha256` and `calibration`: with any other of these it is void.
    """

    id: str
    """Id of the request."""
    kind: Literal['set', 'restore', 'delete', 'unprotect', 'recalibrate', 'restore_calibration']
    """`set`: point the alias to `model_id`. `restore`: restore its `revision`. `delete`: delete it.
    `unprotect`: lift its protection. `recalibrate`: fit the calibration of its model on `dataset_id`.
    `restore_calibration`: serve the calibration `calibration_version` of its model again.
    """
    state: Literal['open', 'approved', 'rejected', 'withdrawn', 'expired', 'void']
    """`open`; `approved`: the change was made, or its job was started; `rejected`; `withdrawn` by the
    requester; `expired`; `void`: the alias, the model or its calibration was changed, or the model was
    deleted.
    """
    name: str
    """Name of the models."""
    alias: str
    """The alias."""
    reason: str
    """Reason for the change."""
    before: str
    """What the alias served when the change was requested, in words."""
    after: str
    """What it would serve, in words."""
    alias_revision: int
    """Revision of the alias for which the change was requested."""
    model_id: str
    """The model that the change concerns."""
    model_version: int
    """Version of this model."""
    artifact_sha256: str
    """SHA-256 of its artifact."""
    calibration: int | None
    """Version of its calibration when the change was requested. Null without one."""
    keeps_guarantee: bool
    """True if the alias keeps its guarantee or target, or if the kind is not `set`."""
    guarantee: StoredGuarantee | None
    """The requested guarantee or target. Null if `keeps_guarantee`, or if it is to be removed."""
    revision: int | None
    """The revision to restore. Null for other kinds."""
    dataset_id: str | None
    """The dataset of a recalibration. Null for other kinds."""
    calibration_version: int | None
    """The calibration to restore. Null for other kinds."""
    author: str | None
    """Name of the principal that requested the change."""
    principal_id: str | None
    """Id of this principal."""
    created_at: str
    """Time of creation."""
    expires_at: str
    """When an open request expires."""
    decided_at: str | None
    """When the request was approved, rejected, withdrawn or void. Null before."""
    decided_by: str | None
    """Name of the principal that approved, rejected or withdrew it. Null before, and if it is void."""
    decided_by_id: str | None
    """Id of this principal."""
    decision_reason: str | None
    """Why the request was approved, rejected or is void. Null if no reason was given, and before."""
    applied_revision: int | None
    """The revision of the alias that the approval made. Null without one."""
    applied_calibration: int | None
    """The calibration that the approval made; of a recalibration, once its job has succeeded. Null without
    one.
    """
    job_id: str | None
    """The job of an approved recalibration. It fails if the alias, the model or its calibration was
    changed in the meantime. Null otherwise.
    """
    evidence: list[EvidenceFile]
    """The decision, and what was known about the model when the change was requested, as files with their
    SHA-256. `…/evidence` returns them. The approval is added to the decision.
    """
    evidence_available: bool
    """True if the files are stored. They are deleted when the model is permanently deleted, and when an
    erasure finds the erased id in them.
    """

class AliasShadow(Record):
    """The model behind an alias (the champion) compared with its shadow model (the challenger). The
    challenger scores the recorded features after the horizon, so it costs nothing when a request is
    answered. To promote it, move the alias: `PUT /v1/models/{name}/aliases/{alias}` with
    `challenger_id` as `model_id`.
    """

    name: str
    """Name of the model."""
    alias: str
    """The alias."""
    shadow: str | None
    """Shadow model of the feedback settings. Null if there is none."""
    unseen_from: str | None
    """The shadow model may have been trained on decisions before this time: the end of the decisions in
    its training dataset or, if that dataset was not made from decisions, the time at which it was
    created. Null without a shadow model.
    """
    compared_before: bool
    """True if decisions before `unseen_from` are compared, too, unless their entity is in the training
    dataset. The dataset needs a column of groups with the ids of the decisions. If false, only later
    periods are compared.
    """
    champion_id: str | None
    """Id of the model that decided. Null before the first test."""
    challenger_id: str | None
    """Id of the shadow model. Null before the first test."""
    tolerance: float | None
    """Difference of the AUC that does not matter: `tolerance.auc` of the monitor, or else 0.01. Null
    before the first test.
    """
    comparison: ShadowComparison | None
    """The newest comparison of these two models. Null until there is one."""
    swap: SwapSet | None
    """Sum over the periods. Null if the champion has no threshold."""
    tests: list[ShadowTest]
    """Tests of the comparison of these two models, newest first, at most 100."""

class AliasSide(Record):
    """What an alias serves, before or after a change."""

    model_id: str
    """Id of the model."""
    version: int
    """Version of the model."""
    guarantee: StoredGuarantee | None
    """The guarantee or target. Null without one."""
    cutoff: AliasCutoff | None
    """The cutoff. Null without a guarantee or target."""
    point: OperatingPoint | None
    """The rates of the cutoff on the validation rows of this model, with intervals. Null without a cutoff,
    if it flags no row, or without a validation curve.
    """
    calibration_version: int | None
    """Calibration that the model serves. Null without one."""
    calibration_method: str | None
    """Its method. Null without one."""
    probability: float | None
    """Calibrated probability of a positive at the threshold. Null without both."""
    words: str
    """Model and threshold in words."""

class AliasStep(Record):
    """One revision of an alias: its model, guarantee and cutoff from this time on. It remains when the
    alias or the model is deleted.
    """

    revision: int
    """Revision number, from 1."""
    change: Literal['set', 'restored', 'deleted', 'protection']
    """`set`: the alias was created or moved, or got another guarantee or memo. `restored`: an earlier
    revision was restored. `deleted`: the alias was deleted. `protection`: its protection was set or
    lifted.
    """
    restores: int | None
    """The restored revision. Null for other changes."""
    model_id: str
    """Id of the model."""
    model_version: int
    """Version of the model."""
    calibration_version: int | None
    """Calibration that the model served at that time. Null without one."""
    protected: bool
    """True if the alias is protected from this revision on."""
    guarantee: StoredGuarantee | None
    """Guarantee or target of this revision. Null without one."""
    cutoff: AliasCutoff | None
    """Cutoff of this revision. Null without a guarantee or target."""
    memo: StoredMemo | None
    """Why the alias was moved. Null if no memo was given."""
    author: str | None
    """Name of the principal that changed the alias; of an approved change, the one that requested it. Null
    if it was changed without a key.
    """
    principal_id: str | None
    """Id of this principal. Null if there was no key."""
    alias_request_id: str | None
    """The approved request that made this revision. Null for a direct change."""
    approved_by_id: str | None
    """Id of the principal that approved it; `memo.approved_by` is its name. Null for a direct change."""
    break_glass: bool
    """True if the alias was protected, and was changed without approval during a break-glass."""
    at: str
    """Time of the change."""
    evidence: list[EvidenceFile] | None
    """What was known about the model at that time, as files with their SHA-256: its report, its newest
    evaluation, those that its checks are based on, and the newest comparison with the model before.
    `…/revisions/{revision}/evidence` returns them. Null if none was recorded.
    """
    evidence_available: bool
    """True if the files are stored. They are deleted when the model is permanently deleted, and when an
    erasure finds the erased id in them.
    """

class AreaDrift(Record):
    """Change of one metric between the model's validation and this dataset, as two independent samples."""

    of: Literal['auc', 'pauc', 'pair_order', 'list', 'grades', 'prevalence']
    """`auc`, `pauc`, `pair_order`, `list` (a metric within queries), `grades` or `prevalence`."""
    metric: str | None = None
    """Name of the metric, such as `ndcg@10`. Null for areas."""
    label: str | None = None
    """Name of the label. Null unless the model has several labels."""
    fpr_min: float | None = None
    """Lower end of the window of a partial AUC; otherwise null."""
    fpr_max: float | None = None
    """Upper end of the window of a partial AUC; otherwise null."""
    before: Interval
    """Value on the model's validation."""
    after: Interval
    """Value on this dataset."""
    change: Interval
    """`after` minus `before`, with the interval of Zou and Donner."""
    p_value: float
    """p-value of the hypothesis that there is no difference."""
    adjusted_p_value: float
    """p-value adjusted with Holm's method over all tests of this drift."""
    changed: bool
    """True if the change is statistically significant by the adjusted p-value."""
    words: str
    """The result in one sentence."""

class Arrival(Record):
    """The outcomes that have arrived by a time after the decision, with 95 % confidence limits
    (Aalen–Johansen).
    """

    days: float
    """Days since the decision."""
    at_risk: int
    """Decisions that still wait for their outcome before this time."""
    positive: float | None
    """Probability that an outcome has arrived and is positive. Null if no decision is that old."""
    positive_low: float | None
    """Lower limit."""
    positive_high: float | None
    """Upper limit."""
    negative: float | None
    """Probability that an outcome has arrived and is negative."""
    negative_low: float | None
    """Lower limit."""
    negative_high: float | None
    """Upper limit."""
    pending: float | None
    """Probability that no outcome has arrived."""

class Artifact(Record):
    """The file of the trained model."""

    sha256: str
    """SHA-256 of the file."""
    bytes: int
    """Size of the file in bytes."""
    not_exportable: dict[str, str]
    """For each format of `…/artifact` that cannot hold the model: why not. A model can also be too large
    for a format.
    """

class AuditEntry(Record):
    """One entry of the audit log."""

    id: str
    """Id of the entry."""
    created_at: str
    """Time of the change or of the request."""
    outcome: Literal['done', 'denied', 'read']
    """`done`: something was changed. `denied`: the request was not permitted. `read`: decisive or personal
    data was read.
    """
    principal_id: str | None
    """Id of the principal that sent the request. Null for the command line on the server, and for failed
    authentications.
    """
    author: str | None
    """Name of the principal at that time. Null as `principal_id` is."""
    key_id: str | None
    """Id of the key of the request. Null for a person, a service account, and the command line on the
    server.
    """
    action: str
    """The route or command."""
    path: str | None
    """Path of the request, without its query. Null for the command line."""
    made: list[str]
    """Ids of the created resources."""
    summary: str | None
    """The change in words, such as the versions and thresholds between which an alias moved; for `denied`,
    the reason. Null if the route and the path say it.
    """
    request_id: str | None
    """Id of the request. Null for the command line."""
    client: str | None
    """Network address of the caller. Null for the command line."""
    position: int | None
    """Position in the order of sealing, in which the export returns entries. It grows, and entries of
    other owners lie between. Null until the entry is sealed, which takes about a second.
    """

class Band(Record):
    """The confidence band of a ROC curve."""

    kind: Literal['pointwise', 'simultaneous']
    """`pointwise`: the limits hold for each point separately. `simultaneous`: they hold for the whole
    curve at once.
    """
    level: float
    """Confidence level of the band."""

class Baseline(Record):
    """A baseline: a simple model fitted on the same splits."""

    algorithm: str
    """Name of the algorithm."""
    parameters: dict[str, Any]
    """Parameters of the algorithm."""
    fit_seconds: float
    """Fit time over all folds, in seconds."""
    failed: str | None
    """Why the fit failed; otherwise null."""
    rows: int | None
    """Number of training rows in the first fold. Null if the fit failed before the rows were read."""
    of_rows: int | None
    """Number of available training rows. Greater than `rows` if the baseline was trained on a sample."""
    random_split: RandomSplits | None = None
    """For validation on the newest rows: the AUC on random splits of the same rows, with a test of the
    effect of time. Null for other validation methods, for tables with groups, and for all baselines but
    the first.
    """

class BaselineArea(Record):
    """The value of one baseline."""

    algorithm: str
    """Name of the baseline's algorithm."""
    area: Interval
    """Value of the baseline."""
    difference: Difference
    """Difference between the two values: that of the model minus that of the baseline."""

class BaselineWindow(Record):
    """A window of false positive rates."""

    fpr_min: float
    """Lower end of the window of false positive rates."""
    fpr_max: float
    """Upper end of the window of false positive rates."""

class Baselines(Record):
    """Whether a model is significantly better than its baselines."""

    model_id: str
    """Id of the model."""
    level: float
    """Confidence level of each interval."""
    beats: bool | None
    """True if the model is better than every baseline, by `metric` or else by the area over `decided_on`,
    each with an adjusted p-value below 1 − `level`. False also if there are too few rows for a test.
    Null if no baseline was trained, or if `is_baseline`.
    """
    is_baseline: bool | None = None
    """True if the model is itself of the same kind as a baseline: a logistic regression or a linear SVM
    for the AUC. The differences then show only the effect of its parameters. Default: `false`.
    """
    decided_on: BaselineWindow
    """Window of the job's objective. For `tpr`: the window that the model is trained for."""
    baselines: list[Baseline]
    """The baselines."""
    windows: list[WindowBaselines]
    """Comparison over each window."""
    metric: MetricBaselines | None = None
    """Comparison by the metric of an objective such as `average_precision` or `precision`. Null for other
    objectives.
    """
    skipped: str | None
    """Why no baselines were trained; otherwise null."""
    finding: Finding
    """The answer in words, as in `GET /v1/models/{ref}/checks`."""

class BatchDrift(Record):
    """Changes of the scores and the columns since the model's validation and training, without labels. A
    test reports `changed` if its p-value, adjusted with Holm's method over all tests of the batch, is
    below `alpha` and its PSI is at least 0.1. Long tables are compared by a sample.
    """

    batch_score_id: str
    """Id of the batch score."""
    finding: Finding
    """Are scores and columns as at validation and training? `no`: the scores, or a column with at least 1
    % of the importance, have changed. `yes`: they have not, and a PSI of 0.25 or more can be excluded
    for the scores and for columns with at least 90 % of the importance. `unknown`: neither.
    """
    level: float
    """Confidence level of the intervals."""
    alpha: float
    """Significance level of all tests of the batch together."""
    rows: int
    """Number of rows that were scored."""
    sampled_rows: int
    """Number of rows that were compared: all rows of a table of up to 16,384 (fewer with more than 64
    columns), and a random sample of a longer one.
    """
    scores: ScoreDrift | None
    """Change of the scores since validation. Null if the model has no validation scores; `no_scores` says
    why.
    """
    no_scores: str | None
    """Why the scores were not compared. Null if they were."""
    flagged: FlaggedDrift | None
    """Change of the fraction of flagged rows. Null without a threshold."""
    features: list[FeatureDrift]
    """Change of up to 100 columns since training: changed ones first, then by importance and size."""
    n_features: int
    """Number of columns that were compared."""
    reason: str | None
    """Why the columns, or nothing at all, were not compared. Null if they were."""

class BatchReasons(Record):
    """Options of the reasons in the result."""

    n: int
    """Number of reasons per row."""
    reference: Literal['negative', 'average', 'cutoff']
    """Reference that the scores are compared with."""
    direction: Literal['raises', 'lowers', 'both']
    """Contributions that are returned: those that raise the score, those that lower it, or both."""
    threshold: float | None
    """Score to compare with, for the reference `cutoff`. Null: the cutoff of the alias, or another
    reference.
    """
    dictionary: int | None
    """Revision of the reason codes. Null if the model name had none."""
    exclude_protected: bool | None = None
    """Whether protected columns are left out of the reasons. Default: `false`."""

class BatchScore(Record):
    """A table that a job scores. Once it is `ready`, `…/result` returns the kept columns, row numbers and
    scores, in the order of the rows, and `…/summary` describes them.
    """

    id: str
    """Id of the batch score."""
    status: Literal['processing', 'ready', 'failed', 'cancelled', 'timed_out']
    """`processing`, `ready`, or how its job ended without a result: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    """Id of the job that scores the table."""
    model_id: str
    """Id of the model."""
    model_name: str
    """Name of the model."""
    model_version: int
    """Version of the model."""
    dataset_id: str | None
    """Id of the dataset that was scored. Null if the rows were sent with the request."""
    dataset_name: str | None
    """Name of the dataset that was scored. Null if the rows were sent with the request."""
    file_name: str | None = None
    """Name of the file that was sent, from `file_name` or a form. Null if there was none."""
    alias: str | None = None
    """The alias that the request used. Null if it named the model by version, name or id."""
    keep: list[str]
    """Columns that are copied to the result."""
    top: int | None = None
    """Maximum number of rows of the result: those with the highest scores, best first, ties in their
    original order. Null: all rows.
    """
    reasons: BatchReasons | None = None
    """Options of the reasons in the result. Null if none were requested."""
    rows: int | None
    """Number of rows that were scored. Null until `ready`."""
    flagged: int | None = None
    """Number of rows that the alias flags. Null until `ready`, and if the request did not use an alias
    with a cutoff.
    """
    warnings: list[ScoreWarning] | None = None
    """What may be wrong with the rows. Null until `ready`."""
    stable: Literal['yes', 'no', 'unknown', 'not_applicable'] | None = None
    """Whether scores and columns are as at the model's validation and training, without labels; `…/drift`
    has the finding and the tests. `yes`: they are. `no`: the scores, or columns that matter to the
    model, have changed. `unknown`: the rows are inconclusive. Null until `ready`.
    """
    columns: list[ResultColumn] | None
    """Columns of the result. Null until `ready`."""
    bytes: int | None
    """Size of the result in bytes. Null until `ready`."""
    sha256: str | None
    """SHA-256 of the result, which is also its ETag. Null until `ready`."""
    error: dict[str, Any] | None
    """The problem, if the job failed; otherwise null. Its `errors` give lines and columns."""
    created_at: str
    """Time of creation."""

class BatchSummary(Record):
    """Summary of the result of a batch score."""

    batch_score_id: str
    """Id of the batch score."""
    rows: int
    """Number of rows that were scored."""
    scores: list[ScoreHistogram]
    """Distribution of the scores of all rows, even with `top`. One entry per label."""
    threshold: float | None
    """Cutoff of the alias. Null if the request did not use an alias with a guarantee, or if no score is
    flagged.
    """
    flagged: int | None
    """Number of rows with a score at or above the cutoff. Null if the request did not use an alias with a
    guarantee.
    """
    ignored: list[str]
    """Up to 100 columns of the sent rows that were not read, such as the model's label."""
    columns: list[str]
    """Columns of `first`: up to 150 columns of the result. If there are more, kept columns are omitted."""
    first: list[list[float | bool | str | None]] | None
    """The 50 rows with the highest scores, best first, with one value per column. `row_number` is the
    row's number in the table, from 1. Strings are truncated to 200 characters. Null for a model with
    several labels.
    """

class ProgressRow(Record):
    """A candidate of a search, with its value on the validation rows of all inner splits."""

    trial: int
    """Number of the trial that completed this candidate. 0 for a mean rank of several candidates."""
    algorithm: str
    """Name of the algorithm."""
    parameters: dict[str, Any]
    """Up to 8 searched parameters; for `auto` those that it changed."""
    rows: int | None
    """Number of training rows, or of pairs. Null if it is unknown."""
    splits: int
    """Number of inner splits that `value` is the mean of: all of them. A candidate that is not yet
    evaluated on all splits is not listed.
    """
    value: float
    """Mean value of the job's objective over the inner splits."""
    seconds: float
    """Fit time over all inner splits, in seconds."""

class Best(ProgressRow):
    """The best candidate so far."""

    metric: Literal['auc', 'pauc', 'tpr', 'average_precision', 'precision', 'lift', 'precision_at_recall', 'ndcg', 'pair_order']
    """Metric of the job's objective."""

class BestPossibleMargin(Record):
    """The largest margin of any combination of the weak rankers, computed by linear programming."""

    rho: float
    """The largest possible margin, between `margin` and `edge`."""
    margin: float
    """Margin of the best combination found: a lower bound on `rho`."""
    edge: float
    """Largest edge under the pair weights found: an upper bound on `rho`."""
    short_by: float
    """`rho` minus the margin of the model."""

class BinCounts(Record):
    """The rows of a bin."""

    rows: int
    """Number of rows."""
    share: float
    """Fraction of the rows, by weight."""
    events: int
    """Number of positive rows."""
    event_rate: float | None
    """Fraction of positive rows, by weight. Null without rows."""
    woe: float
    """Weight of evidence: the logarithm of the fraction of the positives that are in the bin, divided by
    that of the negatives. Above 0: more events than on average. 0 without rows. If a class has no rows,
    half a row is added to both.
    """
    woe_low: float | None
    """Lower confidence limit. Null: no limit, because the bin has no positive row."""
    woe_high: float | None
    """Upper confidence limit. Null: no limit, because the bin has no negative row."""

class BinnedFeature(Record):
    """A feature of a scorecard."""

    name: str
    """Name of the feature."""
    type: Literal['numeric', 'boolean', 'datetime', 'categorical']
    """Type of the feature."""
    monotone: Literal['increasing', 'decreasing'] | None
    """`increasing` or `decreasing` if the model was trained with a constraint, otherwise null."""
    coefficient: float
    """Coefficient of the WOE, at least 0."""
    iv: InformationValue
    """Information value on the training rows. If the bins were chosen on these rows, it is too high."""
    held_out_iv: InformationValue | None
    """Information value on rows that the model was not trained on. Null without such rows."""
    bins: list[ScorecardBin]
    """The bins."""

class BreakGlass(Record):
    """A suspended protection: until it ends, admins can change the alias directly."""

    name: str
    """Name of the models."""
    alias: str
    """The alias."""
    reason: str
    """Reason for the emergency."""
    author: str | None
    """Name of the principal that suspended the protection."""
    principal_id: str | None
    """Id of this principal."""
    at: str
    """When it was suspended."""
    until: str
    """When it expires."""

class CalibrationSummary(Record):
    """One version of a calibration."""

    version: int
    """Version number of the calibration, from 1."""
    method: Literal['platt', 'beta', 'isotonic']
    """`platt`, `beta` or `isotonic`: the method with the lowest log loss on held-out folds."""
    trained_on: Literal['validation', 'out_of_fold', 'dataset']
    """Rows that the calibration was fitted on. `validation`: the validation rows. `out_of_fold`: the out-
    of-fold scores of a cross-validated model, on the scale of the served ranker. `dataset`: a later
    dataset.
    """
    dataset: DatasetVersion | None
    """Dataset of these rows. Null if it was not recorded."""
    rows: int
    """Number of rows that the calibration was fitted on."""
    positives: int
    """Number of positive rows."""
    prevalence: float
    """Fraction of positives among these rows, by weight. Probabilities assume this prevalence unless a
    request states another.
    """
    job_id: str
    """Id of the job that made this."""
    restores: int | None
    """The earlier version that was restored: this one is a copy of it. Null for others."""
    reason: str | None
    """Reason for this version. Null if none was given."""
    author: str | None
    """Name of the principal that requested this version. Null for the one of the training."""
    alias_request_id: str | None
    """The approved request that made this version. Null for a direct change."""
    approved_by: str | None
    """Name of the principal that approved it. Null for a direct change."""
    approved_by_id: str | None
    """Id of the principal that approved it. Null for a direct change."""
    break_glass: bool
    """True if a protected alias served the model, and the calibration was changed without approval during
    a break-glass.
    """
    created_at: str
    """Time of creation."""

class Calibration(CalibrationSummary):
    """The calibration of a model: a non-decreasing map from scores to probabilities."""

    model_id: str
    """Id of the model."""
    log_losses: dict[str, float]
    """Mean log loss of each compared method on held-out folds. Empty if a class has too few rows to
    compare methods; the method is then `platt`.
    """
    reliability: Reliability | None
    """How well the probabilities match the outcomes, on held-out rows. Null if there are too few rows."""
    history: list[CalibrationSummary]
    """All versions, the newest first. The newest is served."""

class CalibrationDrift(Record):
    """How well the probabilities of a model's calibration match the outcomes on these rows."""

    level: float
    """Confidence level of each interval."""
    n: int
    """Number of rows."""
    n_positives: int
    """Number of positive rows."""
    predicted: float
    """Mean predicted probability."""
    observed: float
    """Observed fraction of positives."""
    brier: ScoreParts
    """Brier score: the mean of (probability − label)²."""
    log: ScoreParts
    """Log loss, with natural logarithms."""
    in_the_large: Interval | None
    """Calibration in the large: the log odds to add to every probability so that predicted and observed
    positives agree. Null if it cannot be estimated.
    """
    slope: Interval | None
    """Calibration slope: the factor of the log odds. Below 1: the probabilities are too extreme. Null if
    all probabilities are equal, or `separated`.
    """
    separated: bool
    """True if each positive has a higher probability than all negatives. Slope and shape cannot be
    estimated then.
    """
    shape: CalibrationShape | None
    """Calibration errors that change sign along the probabilities, which level and slope do not show. Null
    if there are too few rows to test it, or no slope.
    """
    histogram: list[float]
    """Fraction of the rows with a probability in [0, 0.1), [0.1, 0.2), …, [0.9, 1]."""
    points: list[ReliabilityPoint]
    """Points of the reliability diagram, by ascending probability."""
    version: int
    """Version of the calibration that was served."""

class CalibrationPeriods(Record):
    """Calibration level of each time window of a validation by time."""

    levels: list[PeriodLevel]
    """Log odds of each window's rows relative to the calibration, the earliest window first. Below 0:
    fewer rows were positive than the calibration now predicts.
    """
    step: float
    """Standard deviation of the change of the level between consecutive windows. 0: all windows have equal
    weight; otherwise later windows have more weight.
    """
    p_value: float
    """p-value of the hypothesis that the level is the same in all windows."""

class CalibrationShape(Record):
    """Distance between the log odds of the outcome and a straight line in the log odds of the
    probabilities.
    """

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

class ChangeOverTime(Record):
    """Consecutive periods in which columns, or the fraction of positives, differ from all other periods."""

    first: str
    """Name of the first period of the change."""
    last: str | None
    """Name of its last period. Null: the change lasts until the end of the table."""
    rows: int
    """Number of profiled rows in these periods."""
    other_rows: int
    """Number of profiled rows in all other periods."""
    columns: list[ChangedColumn]
    """The columns that have changed, those with the greatest PSI first; 20 at most."""
    more_columns: int
    """Number of columns that are not in the list."""
    positives: PositivesOfChange | None
    """Fractions of positives. Null without a binary label."""
    words: str
    """The result in one sentence."""

class ChangeWindow(Record):
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
    """Variance of the value over what it would be if every period had other entities: how much recurring
    entities cost. Null if decisions have no entity ids; rows are then assumed to be independent.
    """

class ChangedColumn(Record):
    """A column that has changed over time."""

    name: str
    """Name of the column."""
    psi: Interval
    """Population stability index (PSI) of the rows in the periods of the change against those of all other
    periods, corrected for sampling noise.
    """
    adjusted_p_value: float
    """p-value, adjusted for all stretches of periods and all columns."""
    by_period: list[float | None]
    """PSI of each of the `periods` against all others. Null if the period or the others have fewer than
    100 rows.
    """

class Cohort(Record):
    """The decisions of a period, with the state of their outcomes."""

    start: str
    """Start of the period, which is included."""
    end: str
    """End of the period, which is not included."""
    is_mature: bool
    """True if the horizon of all its decisions has passed."""
    lost: int
    """Decisions that were not recorded, in files that begin in this period."""
    counts: CohortCounts
    """Numbers of decisions."""
    parts: list[CohortPart]
    """The same by model and threshold."""
    arrival: list[Arrival]
    """How outcomes have arrived, up to the horizon."""

class CohortCounts(Record):
    """Numbers of decisions. Each decision is in one of `with_outcome`, `silent`, `withdrawn`,
    `unrecognised`, `pending` and `missing`.
    """

    decisions: int
    """Number of recorded decisions."""
    estimated: float
    """Number of decisions that were made, estimated from the fraction that is recorded."""
    mature: int
    """Decisions whose horizon has passed."""
    with_outcome: int
    """Decisions with a known label."""
    positives: int
    """Positive decisions."""
    negatives: int
    """Negative decisions, `silent` ones included."""
    silent: int
    """Mature decisions without an outcome that count as negative by the declared rule."""
    withdrawn: int
    """Decisions whose outcome was withdrawn."""
    unrecognised: int
    """Decisions whose label is not a value of the label column of their model."""
    pending: int
    """Decisions without an outcome whose horizon has not passed."""
    missing: int
    """Mature decisions without an outcome, unless they count as negative."""
    corrections: int
    """Earlier outcomes that a later one corrects."""
    flagged: int
    """Flagged decisions."""
    explored: int
    """Decisions marked for review at random."""

class CohortPart(Record):
    """The decisions of a cohort that one model made at one threshold."""

    model_id: str
    """Id of the model."""
    threshold: float | None
    """Lowest score that was flagged. Null without one."""
    counts: CohortCounts
    """Numbers of decisions."""

class CohortTable(Record):
    """Decisions of an alias by the period in which they were made."""

    name: str
    """Name of the models."""
    alias: str
    """The alias."""
    as_of: str
    """The counts use what was known at this time."""
    period: Literal['day', 'week', 'month']
    """Length of the periods."""
    outcome: OutcomeRule
    """Attribution and maturity of outcomes."""
    cohorts: list[Cohort]
    """Periods with decisions, oldest first."""
    total: CohortCounts
    """Numbers of all these decisions."""
    arrival: list[Arrival]
    """How outcomes have arrived, over all periods."""

class Column(Record):
    """The profile of one column."""

    name: str
    """Name of the column."""
    type: Literal['numeric', 'boolean', 'datetime', 'categorical'] | None
    """`numeric`, `boolean`, `datetime` or `categorical`. Null if the column was dropped."""
    role: Literal['feature', 'protected', 'label', 'item', 'weight', 'group', 'query', 'identifier', 'dropped']
    """`feature`, `label`, `item`, `weight`, `group` or `query`. `protected`: declared in the upload field
    `protected`; it is a feature only of models whose training job names it in `protected_features`.
    `identifier`: a text column with a different value in nearly every row; it is not used as a feature.
    `dropped`: not read.
    """
    protected: bool | None = None
    """True if the upload declared the column as protected. Evaluations compare its groups. Default:
    `false`.
    """
    seems_protected: bool | None = None
    """True if the column is not declared as protected, but its name suggests a legally protected
    attribute, such as `sex` or `age`. Evaluations compare its groups, too. Default: `false`.
    """
    missing: int | None
    """Number of rows without a value. Null if the column was not read."""
    distinct: int | None = None
    """Number of different values. Null if the column was not read."""
    distinct_is_bound: bool | None = None
    """True if the actual number of different values may be greater than `distinct`. Default: `false`."""
    constant: bool | None = None
    """True if all rows of a feature have the same value or none has a value. Such a feature is useless for
    ranking. Null if the column is not a feature.
    """
    min: float | None = None
    """Smallest value. Null unless the column has numbers or dates."""
    max: float | None = None
    """Largest value. Null unless the column has numbers or dates."""
    mean: float | None = None
    """Mean value. Null unless the column has numbers or dates."""
    top: list[TopValue] | None = None
    """The most frequent values. Null if they were not counted."""

class ColumnInterval(Record):
    """An AUC with its confidence interval at level 0.95."""

    value: float
    """The AUC."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""

class ColumnProfile(Record):
    """Distribution of a feature, and how well it ranks the label by itself. Missing values are excluded.
    Dates are in seconds since 1970.
    """

    name: str
    """Name of the column."""
    quantiles: list[Quantile] | None
    """Quantiles of the values. Null for a categorical feature."""
    histogram: Histogram | None
    """Histogram of the values. Null for a categorical feature."""
    auc: ColumnInterval | None
    """AUC of the feature's values as scores. A category is scored by the fraction of positives among its
    other rows. Null without a binary label.
    """
    missing_auc: ColumnInterval | None
    """AUC of a score that is 1 for a missing value and 0 otherwise. Null if no value or every value is
    missing.
    """
    leak: bool
    """True if the feature probably states the label: see `leak_pattern` and `order_auc`."""
    leak_pattern: LeakPattern | None = None
    """A pattern that nearly only rows of one class have. Null if there is none."""
    order_auc: ColumnInterval | None = None
    """AUC of rows that are scored by the rows with the nearest values of a whole number without
    repetitions, such as a row number. Null unless the order of the numbers follows the label; the level
    allows for the number of features.
    """
    leak_words: str | None = None
    """Sentence about the leak. Null if there is none."""

class Comment(Record):
    """A comment on a model."""

    id: str
    """Id of the comment."""
    model_id: str
    """Id of the model."""
    author: str | None
    """Name of the key that wrote it."""
    own: bool
    """True if the caller wrote it, and may delete it."""
    text: str
    """The text. It is not HTML: escape it where it is shown."""
    created_at: str
    """Time of creation."""

class ComparedAtCapacity(Record):
    """The models compared by the number of positives among the rows that can be reviewed."""

    differences: list[ComparedPair]
    """Difference of each pair of models."""
    winner: str | None = None
    """Id of the model that is better than every other one, each difference with an adjusted p-value of at
    most 0.05. Null if there is none.
    """
    review: int
    """Number of rows that can be reviewed, as requested."""
    rows: int
    """Number of rows that they are chosen from, as requested."""
    metric: str
    """The metric that the numbers are computed from: the precision in this fraction of the rows."""
    values: list[ComparedValue]
    """For each model, the expected number of positives among the reviewed rows: `review` times the
    precision. The interval is that of the mean; the number in a single list also varies by chance.
    """
    p_value: float | None
    """Joint p-value of the hypothesis that all models find equally many."""

class LeastCost(Record):
    """The cutoff with the lowest cost on these rows."""

    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    flagged: float
    """Fraction of the rows that are flagged."""
    in_sample: float
    """Mean cost per row on the rows that chose the cutoff. This is too low as an estimate for new rows."""
    held_out: DecisionCost | None
    """Cost on held-out rows: each part of the rows is evaluated at the cutoff that the other parts choose.
    Null if all rows belong to one group.
    """
    parts: int
    """Number of parts that the rows were divided into."""
    threshold_low: float | None
    """Lowest cutoff that a part chose. Null: no row is flagged."""
    threshold_high: float | None
    """Highest cutoff that a part chose. Null: no row is flagged."""

class ComparedCost(LeastCost):
    """Costs of one model at its cutoff of lowest cost."""

    model_id: str
    """Id of the model."""

class ComparedCostPair(Record):
    """Held-out cost per row of `first` minus that of `second`. Below 0: `first` is cheaper."""

    first: str
    """Id of the first model."""
    second: str
    """Id of the second model."""
    value: float
    """The difference."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""
    p_value: float
    """p-value of the hypothesis that there is no difference."""
    adjusted_p_value: float
    """p-value adjusted with Holm's method over all pairs."""

class ComparedCosts(Record):
    """The models compared by the costs of their errors."""

    models: list[ComparedCost]
    """Costs of each model."""
    differences: list[ComparedCostPair]
    """Difference of each pair of models."""

class ComparedCurve(Record):
    """The ROC curve of one model on the compared rows."""

    model_id: str
    """Id of the model."""
    points: list[ComparedPoint]
    """At most 100 points, from (0, 0) to (1, 1)."""

class ComparedGroup(Record):
    """A group of a protected column, compared with the reference group."""

    column: str
    """Name of the column."""
    group: str
    """Value of the group."""
    reference: str
    """Value of the reference group."""
    status: Literal['passed', 'alarm', 'waiting', 'not_tested']
    """Result of the test."""
    rows: int
    """Number of decisions about the group that were compared, of this period and of earlier ones with too
    few rows. For the calibration, only those with an outcome.
    """
    reference_rows: int
    """The same of the reference group."""
    rate: float | None
    """Fraction of these decisions that are favourable; for the calibration, of positives. Null without
    rows.
    """
    reference_rate: float | None
    """The same of the reference group."""
    ratio: float | None
    """Ratio of the group to the reference group in the tested window: of the selection rates, or of the
    odds of a positive relative to the predicted ones. Null without a test.
    """
    low: float | None
    """Lower limit of the ratio. The limits hold for all windows of all tests of the term together."""
    high: float | None
    """Upper limit of the ratio."""
    first: int | None
    """Number of the first period of the window."""
    last: int | None
    """Number of the last period of the window."""

class ComparedMetric(Record):
    """The models compared by one metric."""

    differences: list[ComparedPair]
    """Difference of each pair of models. p-values are adjusted with Holm's method over all pairs and
    metrics, separately from the windows.
    """
    winner: str | None = None
    """Id of the model that is better than every other one, each difference with an adjusted p-value of at
    most 0.05. Null if there is none.
    """
    metric: str
    """Name of the metric."""
    values: list[ComparedValue]
    """Value of each model."""
    p_value: float | None
    """Joint p-value of the hypothesis that the metric is equal for all models. Null for an area over a
    window that holds fewer than 3 effective negatives.
    """

class ComparedLists(ComparedMetric):
    """The models compared by the mean of one metric over the queries. The tests are paired by query."""

    queries: int
    """Number of queries in which the metric is defined."""
    skipped: int
    """Number of queries in which the metric is undefined."""

class ComparedModel(Record):
    """One of the compared models, under its name at the time of the request."""

    model_id: str
    """Id of the model."""
    name: str
    """Name of the model."""
    version: int
    """Version of the model."""
    seen: Literal['trained', 'validated', 'overlaps', 'new'] | None = None
    """Whether the model has seen these rows before. `trained`: it was trained on rows of the dataset, so
    its metrics are optimistic. `validated`: it was validated on rows of the dataset. `overlaps`: too
    many rows are equal to training rows; a warning gives the number. `new`: none of these. Null until
    this is known, and if the training table was deleted before.
    """

class ComparedPair(Record):
    """The value of `first` minus the value of `second`, on the same rows."""

    first: str
    """Id of the first model."""
    second: str
    """Id of the second model."""
    value: float
    """The difference."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""
    p_value: float | None
    """Null if the window holds fewer than 3 effective negatives (4 in each fold), or if there are fewer
    than 3 positives. A warning says how many are needed.
    """
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all pairs and windows. Null without `p_value`."""

class ComparedPoint(Record):
    """A point of a ROC curve."""

    fpr: float
    """False positive rate."""
    tpr: float
    """True positive rate."""

class Interval(Record):
    """An estimate with its confidence interval. All three are null if the value cannot be estimated."""

    value: float | None
    """The estimate. Null if it cannot be computed."""
    low: float | None
    """Lower end of the confidence interval. Null if there is no finite bound."""
    high: float | None
    """Upper end of the confidence interval. Null if there is no finite bound."""

class ComparedValue(Interval):
    """The value of one model."""

    model_id: str
    """Id of the model."""

class ComparedWindow(Record):
    """Areas of the models over one window, and their differences."""

    differences: list[ComparedPair]
    """Difference of each pair of models."""
    winner: str | None = None
    """Id of the model that is better than every other one, each difference with an adjusted p-value of at
    most 0.05. Null if there is none.
    """
    fpr_min: float
    """Lower end of the window of false positive rates."""
    fpr_max: float
    """Upper end of the window of false positive rates."""
    values: list[ComparedValue]
    """Area of each model over the window, divided by its width."""
    p_value: float | None
    """Joint p-value of the hypothesis that all areas over this window are equal. Null if the window holds
    fewer than 3 effective negatives (4 in each fold), or if there are fewer than 3 positives. A warning
    says how many are needed.
    """

class Comparison(Record):
    """A comparison of models on one dataset. A comparison remains when a model or the dataset is deleted."""

    id: str
    """Id of the evaluation or of the comparison."""
    status: Literal['processing', 'ready', 'failed', 'cancelled', 'timed_out']
    """`processing`, `ready`, or how its job ended without a result: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    """Id of the job that made this."""
    dataset_id: str
    """Id of the dataset."""
    dataset_name: str
    """Name of the dataset."""
    dataset_version: int | None
    """Version of the dataset. Null if it was not recorded."""
    dataset_sha256: str | None
    """SHA-256 of the content of that version. Null if it was not recorded."""
    windows: list[NewWindow]
    """The windows of the partial AUCs."""
    level: float
    """Confidence level of each interval."""
    amount: str | None = None
    """The column of amounts. Null if none was requested."""
    costs: NewCosts | None = None
    """The requested costs. Null if none were requested."""
    warnings: list[str]
    """Warnings about the rows and the result. One names the models that were trained on rows of the
    dataset.
    """
    error: dict[str, Any] | None
    """The problem, if the job failed; otherwise null."""
    created_at: str
    """Time of creation."""
    models: list[ComparedModel]
    """The compared models, in the order of the request."""
    capacity: ReviewCapacity | None = None
    """The requested review capacity. Null if none was requested."""
    result: ComparisonResult | None
    """The result. Null until the comparison is ready."""

class ComparisonResult(Record):
    """The result of a comparison."""

    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""
    groups: int | None
    """Number of groups. Null unless the dataset has a group column; the tests then allow for correlation
    within a group.
    """
    n_tests: int
    """Number of tests: pairs of models times windows that have p-values."""
    p_value: float | None
    """Joint p-value of the hypothesis that all areas are equal in every window that has p-values. Null if
    no window has.
    """
    windows: list[ComparedWindow]
    """The comparison over each window."""
    metrics: list[ComparedMetric] | None = None
    """The comparison by each of the requested `metrics`."""
    capacity: ComparedAtCapacity | None = None
    """The comparison at the requested review capacity. Null without one."""
    costs: ComparedCosts | None = None
    """The comparison by costs. Null if no costs were requested."""
    lists: list[ComparedLists] | None = None
    """The comparison within queries, by `auc`, `ndcg@10` and `map`. Empty without a query column."""
    curves: list[ComparedCurve] | None = None
    """ROC curve of each model on these rows. Empty in a list of comparisons."""

class Cost(Record):
    """Mean cost per row at this threshold, and what it saves."""

    value: float | None
    """The estimate. Null if it cannot be computed."""
    low: float | None
    """Lower end of the confidence interval. Null if there is no finite bound."""
    high: float | None
    """Upper end of the confidence interval. Null if there is no finite bound."""
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
    """Mean cost per row of the other rule's decisions. Null without `rule`, and for a rule that is a
    score: it flags as many rows as the threshold.
    """
    rule_flagged: float | None = None
    """Fraction of the rows that the other rule flags. Null where `of_rule` is null."""
    saved_to_rule: Interval | None = None
    """Mean cost per row of the other rule, minus this cost. Null without `rule`."""
    totals: CostTotals | None = None
    """The costs of `total_rows` rows. Null on evaluations."""

class CostTotals(Record):
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

class CountedValue(Record):
    """A value of the label, and the number of rows that have it."""

    value: str
    """The value, as text."""
    count: int | None
    """Number of rows with this value. Null for a version to which rows were appended."""
    positive: bool
    """True if the value counts as positive."""

class GroupMetric(Interval):
    """A metric of one group, or the reason why it is unavailable."""

    reason: str | None
    """Why the metric is unavailable, such as missing rows of a class. Null if it is available."""

class CrossGroupAuc(GroupMetric):
    """xAUC: the probability that a positive of one group scores above a negative of another; a tie counts
    half (Kallus & Zhou 2019).
    """

    positives_of: str | None
    """Group of the positives. Null: the rows without a value."""
    negatives_of: str | None
    """Group of the negatives. Null: the rows without a value."""

class Cutoff(Record):
    """A cutoff: a threshold, and the rates that result from flagging every row with at least this score."""

    threshold: float | None
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
    threshold_low: float | None
    """Lower end of a confidence interval for the threshold that has the requested rate, or the lowest
    cost, in the population. Null: the data set no limit.
    """
    threshold_high: float | None
    """Upper end of that interval. Null: the data set no limit."""
    prevalence: float
    """Fraction of positives that precision, lift and cost assume. Default: that of the data."""
    tpr_at_fpr: Interval | None
    """The TPR at exactly the requested `fpr`. The interval includes the uncertainty of the threshold. Null
    if no `fpr` was requested.
    """
    fpr_at_tpr: Interval | None
    """The FPR at exactly the requested `tpr`. Null if no `tpr` was requested."""
    cost: Cost | None
    """Mean cost per row. Null if no costs were given."""

class Dataset(Record):
    """An uploaded table."""

    id: str
    """Id of the dataset."""
    series_id: str
    """Id of the first version of this series."""
    version: int
    """Version number: counts the datasets of this name, from 1. Numbers are never reused."""
    parent_id: str | None
    """The version that this one was made from; it may have been deleted. Null for the first version."""
    refresh_of: str | None = None
    """The dataset that this one refreshes: its source was read again. It may have been deleted. Null for
    any other dataset.
    """
    mode: Literal['append', 'replace'] | None
    """`append`: the rows of the parent, followed by the uploaded rows. `replace`: only the uploaded rows.
    Null for the first version.
    """
    name: str
    """Name of the dataset."""
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    """Kind of dataset."""
    status: Literal['processing', 'ready', 'invalid', 'unchanged']
    """`processing`, `ready`, `invalid`, or `unchanged`: a refresh has read the rows of `refresh_of`."""
    job_id: str | None
    """Id of the job that reads the table. Null if there is none."""
    content_type: Literal['text/csv', 'application/vnd.apache.parquet', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.arrow.file', 'application/x-ndjson', 'application/json', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet']
    """Media type of the upload."""
    content_encoding: Literal['gzip', 'zstd', 'zip'] | None
    """Compression of the upload. Null: none."""
    label: str | None
    """Name of the label column. Null without a single label, and until the service has chosen one."""
    positive: str | None
    """Label value that counts as positive. Null without a single binary label, and until the table has
    been read.
    """
    negative: str | None
    """Label value that counts as negative. Null without a single binary label, and until the table has
    been read.
    """
    weight: str | None
    """Name of the weight column. Null without one."""
    group: str | None
    """Name of the group column. Null without one."""
    query: str | None
    """Name of the query column: rows are ranked within each query. Null without one."""
    item: str | None
    """Name of the column of item names. Null unless the dataset is of kind `preferences`."""
    bytes: int
    """Size of the upload in bytes. 0 if the rows come from a source that was not read successfully."""
    sha256: str
    """SHA-256 of the content. For a first or replaced version: of the uploaded bytes. For an appended
    version: of the parent's `sha256` and `upload_sha256`, joined as text. For several files: as if each
    had been appended to the previous ones.
    """
    upload_sha256: str
    """SHA-256 of the uploaded bytes. For several files: of the list of their hashes."""
    rows: int | None
    """Number of rows. Null until the table has been read."""
    positives: int | None
    """Number of positive rows. Null without a single binary label, and until the table has been read."""
    negatives: int | None
    """Number of negative rows. Null without a single binary label, and until the table has been read."""
    pairs: Pairs | None
    """The pairs of a dataset of kind `preferences`. Null until they are uploaded."""
    created_at: str
    """Time of creation."""
    positive_guessed: bool | None
    """True if the service guessed which label value is positive, because the upload did not say and the
    values are not self-explanatory, such as `1` and `0` or `yes` and `no`. Check the guess. Null if it
    was not recorded.
    """
    label_values: list[CountedValue] | None
    """Values of the label in the upload, most frequent first: all positive values, and up to 100 in total.
    Null without a single label of classes, and until the table has been read.
    """
    queries: QuerySizes | None
    """Number and sizes of the queries. Null without a query column, and until the table has been read."""
    grades: list[GradeRows] | None
    """The grades of a dataset of kind `graded`, the lowest first; otherwise null."""
    labels: list[Label] | None
    """The labels of a dataset of kind `multilabel`; otherwise null."""
    source: DatasetSource | None
    """Where the service took the rows from. Null: they were uploaded."""
    dialect: dict[str, str] | None
    """How the upload is written: `encoding`, `delimiter`, `decimal`, `thousands`, `dates`, `sheet`. For a
    workbook of several sheets, `sheet` is the one that was read.
    """
    columns: list[Column]
    """Profiles of the columns. Empty until the table has been read."""
    errors: list[TableFault]
    """Errors in the table. Empty unless `status` is `invalid`."""
    warnings: list[TableWarning]
    """How values were changed because they could not be used as they are, and what columns may mean."""
    categorical: list[str] | None
    """Columns of numbers to read as categories."""
    numeric: list[str] | None
    """Columns to read as numbers. Any other value in them counts as missing."""
    drop: list[str] | None
    """Columns to ignore."""
    protected: list[str] | None
    """Columns with a legally protected attribute, such as sex or age. They are stored, compared between
    groups and monitored, but are not features of a model unless the training job names them in
    `protected_features`.
    """
    missing: list[str] | None
    """Strings that mean a missing value, ignoring case. An empty cell is always missing, and so are `.`,
    `-`, `None` in columns of numbers, dates or booleans. Default: `NA,N/A,#N/A,<NA>,null,\\N,NaN,?`.
    """
    strict: bool
    """`true`: a value that does not fit its column, or a row without a label, is an error. `false`: it is
    a warning. Default: `false`.
    """

class DatasetProfile(Record):
    """The profile of a ready dataset."""

    dataset_id: str
    """Id of the dataset."""
    rows: int | None
    """Number of rows. Null until the table has been read."""
    positives: int | None
    """Number of positive rows. Null without a single binary label, and until the table has been read."""
    negatives: int | None
    """Number of negative rows. Null without a single binary label, and until the table has been read."""
    queries: QuerySizes | None
    """Number and sizes of the queries. Null without a query column."""
    grades: list[GradeRows] | None
    """Number of rows of each grade. Null unless the dataset is of kind `graded`."""
    columns: list[ColumnProfile]
    """The features and their distributions."""
    profiled_rows: int
    """Number of rows that were read: all, or a random sample of a large table."""
    duplicates: Duplicates
    """Rows that are equal to another row."""
    over_time: OverTime | None
    """What has changed over time. Null without a column of dates that orders the rows, or if all rows are
    of one period.
    """
    warnings: list[TableWarning]
    """Warnings about the table."""

class DatasetSource(Record):
    """Where the service took the rows of a dataset from. Members that belong to another kind are null, and
    those that the job finds out are null until it has succeeded.
    """

    kind: Literal['decisions', 'object', 'query']
    """`decisions`: decisions with their outcomes; `object`: objects of a store; `query`: rows of a query."""
    decisions: str | None = None
    """The alias whose decisions these are, as name@alias."""
    since: str | None = None
    """Time of the earliest decision. Null: no limit."""
    until: str | None = None
    """Only decisions before this time. Null: no limit."""
    as_of: str | None = None
    """Outcomes that became known later do not count."""
    revision: int | None = None
    """Revision of the feedback settings, which have the horizon."""
    time_column: str | None = None
    """Column with the time of each decision. Jobs split the rows by it unless `time_column` is given."""
    files: int | None = None
    """Number of files of decisions, or of objects, that were read."""
    sha256: str | None = None
    """SHA-256 of the bytes that were read. For several files: of the list of their hashes."""
    rows: list[DecisionRows] | None = None
    """Rows by origin and label."""
    excluded: ExcludedDecisions | None = None
    """Decisions of these dates that are not in the dataset, by reason."""
    connection: str | None = None
    """Name of the connection that was used."""
    url: str | None = None
    """URL of the object; with a slash at the end: of all objects below it."""
    query: str | None = None
    """Name of the query."""
    parameters: dict[str, Any] | None = None
    """Values of the parameters of the query, by name."""
    read_at: str | None = None
    """When the service began to read the source."""
    bytes: int | None = None
    """Bytes that were read."""
    objects: list[SourceFile] | None = None
    """The objects that were read, in the order of their rows."""
    snapshot: str | None = None
    """Snapshot of the database in which the query ran, as `pg_current_snapshot()` returns it."""

class DatasetVersion(Record):
    """The dataset version that was used, under its name at that time. It may have been deleted since."""

    id: str
    """Id of the dataset."""
    name: str
    """Name of the dataset at the time of use."""
    version: int
    """Version number, from 1."""
    sha256: str
    """SHA-256 of the content."""
    pairs_sha256: str | None = None
    """SHA-256 of the pairs. Null unless the dataset is of kind `preferences`."""

class Decision(Record):
    """A recorded decision: one scoring of one entity by an alias."""

    decision_id: str
    """Id of the decision."""
    id: str | None
    """Id of the entity, as it was sent. Null if none was sent."""
    at: str
    """Time of the decision."""
    name: str
    """Name of the models."""
    alias: str
    """The alias."""
    revision: int
    """Revision of the feedback settings."""
    alias_revision: int
    """Revision of the alias."""
    model_id: str
    """Id of the model."""
    score: float
    """Score."""
    points: float | None
    """The score in points. Null unless the model is of the algorithm `scorecard` and still exists."""
    probability: float | None
    """Calibrated probability. Null if the model had no calibration."""
    threshold: float | None
    """Scores of at least this are flagged. Null if the alias had no guarantee, or flagged no score."""
    flag: bool | None
    """Whether the row was flagged. Null without a guarantee."""
    explored: bool
    """Whether the row was drawn for review at random."""
    propensity: float | None
    """Probability that the outcome is looked for. Null if it is unknown, because nothing is explored."""
    keep: float
    """Probability with which the decision was recorded."""
    caller: str | None
    """Id of the key of the request."""
    origin: Literal['score', 'batch', 'backfill']
    """How the row was scored."""
    request_id: str | None
    """Id of the request."""
    features: dict[str, float | bool | str | None]
    """The recorded features. Null: missing, or a category that did not occur in training."""
    protected: dict[str, str | None]
    """The recorded protected columns, which are not scored. Null: missing, or not one of the groups of the
    settings.
    """

class DecisionCost(Record):
    """Cost per row of a decision rule, on rows that were not used to choose it."""

    flagged: float
    """Fraction of the rows that are flagged."""
    cost: Interval
    """Mean cost per row. Below 0 if the benefits exceed the costs."""
    saved_to_none: Interval
    """Cost per row of flagging no row, minus `cost`. Above 0: this rule is cheaper."""
    saved_to_all: Interval
    """Cost per row of flagging every row, minus `cost`. Above 0: this rule is cheaper."""

class DecisionFile(Record):
    """A final file of decisions. It never changes, unless an entity is erased from it."""

    id: str
    """Id of the file."""
    name: str
    """Name of the models."""
    alias: str
    """The alias."""
    origin: Literal['score', 'batch', 'backfill']
    """How the rows were scored."""
    rows: int
    """Number of decisions in the file."""
    lost: int
    """Number of decisions that are missing, because the log was full or a process was killed."""
    first_at: str
    """Time of the first decision."""
    last_at: str
    """Time of the last decision."""
    sealed_at: str
    """Time at which the last of the decisions were stored."""
    bytes: int
    """Size of the file."""
    sha256: str
    """SHA-256 of the file."""

class DecisionRows(Record):
    """Rows of a dataset that are decisions of one origin."""

    origin: Literal['score', 'batch', 'backfill']
    """How the rows were scored."""
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""

class DecisionTableCheck(Record):
    """The decisions can be stored. Nothing was stored."""

    valid: bool
    """Always true. An invalid request returns an error instead."""
    rows: int
    """Number of rows."""

class DeliveryAttempt(Record):
    """One attempt at a delivery."""

    attempt: int
    """Number of the attempt, from 1."""
    at: str
    """When it ended."""
    status: int | None
    """HTTP status of the response. Null: there was none."""
    error: str | None
    """Code of the reason why there was no response. Null if there was one."""
    seconds: float
    """How long it took, in seconds."""
    response: str | None
    """Beginning of the response body, at most 1,024 characters. Null: there was no response, or it came
    from a network of RANKWRIGHT_WEBHOOK_NETWORKS.
    """

class DependenceAxis(Record):
    """A feature and its grid values."""

    name: str
    """Name of the feature."""
    type: Literal['numeric', 'boolean', 'datetime', 'categorical']
    """`numeric`, `boolean`, `datetime` or `categorical`."""
    values: list[float | bool | str | None]
    """The grid values; dates in ISO 8601. The last value is null: a missing value."""

class DetectableDrop(Record):
    """The smallest lasting fall of the AUC that the monitor finds."""

    drop: float | None
    """Fall that is found with probability `power` within a term. Null until a period with outcomes is
    known, and if no fall can be found.
    """
    floor: float | None
    """The same with unlimited rows per period: only a larger validation lowers it. Null if no fall can be
    found.
    """
    odds: float | None
    """Smallest lasting factor of the odds of a positive that is found with probability `power`, with
    unlimited rows per period: the calibration is itself an estimate. Null without one whose error is
    known.
    """
    power: float
    """Probability of an alarm."""
    rows: float | None
    """Rows per period that this is computed from. Null if none are known."""
    periods_per_test: int | None
    """Number of periods that are tested together, so that there are 50 rows of each class. Null if `rows`
    is null.
    """
    words: str
    """The result in one sentence."""
    validation_positives: float
    """Effective number of positive validation rows."""
    validation_negatives: float
    """Effective number of negative validation rows."""

class Difference(Interval):
    """The model's value minus the baseline's value."""

    p_value: float | None
    """p-value of the hypothesis that both values are equal. Null if the window holds fewer than 3
    effective negatives (4 in each fold), or if there are fewer than 3 positives. A warning says how
    many are needed.
    """
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all baselines and windows. Null without `p_value`."""

class Drift(Record):
    """Changes since the model's validation. A test reports `changed` if its adjusted p-value is
    significant and the effect is large enough: a PSI of at least 0.1, or a difference of at least 0.1
    in log odds or slope. Areas have no minimum effect. The tests that use outcomes have a significance
    level of 1 − `level` together, those of the scores of all rows and of the features `alpha`.
    """

    level: float
    """Confidence level of the model's intervals."""
    alpha: float
    """Significance level of the tests of all scores and of the features together."""
    areas: list[AreaDrift]
    """Change of the AUC and the other ranking metrics."""
    prevalence: AreaDrift | None = None
    """Change of the fraction of positives. Null unless there is exactly one label."""
    probabilities: list[ProbabilityDrift] | None = None
    """Change of the calibration. Empty if the model has no calibration. Default: `[]`."""
    features: list[FeatureDrift]
    """Change of up to 100 features, the most important first, by importance and size."""
    scores: list[ScoreDrift]
    """Change of the scores. If the scores change but the areas do not, choose new thresholds."""

class DriftedModel(Record):
    """A model, and an evaluation that found significant changes since its validation that still apply."""

    evaluation_id: str
    """Id of the evaluation."""
    model_id: str
    """Id of the model."""
    model_name: str
    """Name of the model."""
    model_version: int
    """Version of the model."""
    alias: str | None
    """Alias that the evaluation was requested for. Null: for the version."""
    dataset_id: str
    """Id of the dataset."""
    dataset_name: str
    """Name of the dataset."""
    findings: list[Finding]
    """What changed: findings whose answer is `no`, which no newer evaluation has answered otherwise."""
    created_at: str
    """Time at which the evaluation was requested."""
    acknowledgement: Acknowledgement | None
    """Who has seen it, when, and why nothing else is done. Null if nobody has."""

class Duplicates(Record):
    """Rows that are equal to another row in every feature."""

    rows: int
    """Number of rows that are equal to another row."""
    repeated: int
    """Number of rows minus number of distinct rows."""
    rows_of_both_classes: int | None = None
    """Number of rows with an equal row of the other class; no ranker can separate them. Null without a
    binary label.
    """
    estimated: bool
    """True if the counts are estimated from a sample of the rows."""
    kinds: int | None = None
    """Exact number of distinct rows if it is below 30; otherwise null."""
    in_splits: Literal['together', 'groups', 'few_kinds', 'time'] | None
    """Where equal rows go when a job splits the table. `together`: to the same side and the same fold.
    Equal rows can be on both sides with `groups` (they belong to different groups or queries),
    `few_kinds` (fewer than 30 distinct rows, each about 10 times or more) and `time` (the job splits by
    time). Null for a dataset of kind `preferences`.
    """

class ErasedRows(Record):
    """Numbers of recorded rows that were erased."""

    decisions: int
    """Number of decisions."""
    outcomes: int
    """Number of outcomes."""

class ErasureItem(Record):
    """A request to erase an entity, without its report."""

    id: str
    """Id of the request."""
    state: Literal['running', 'settling', 'done', 'on_hold', 'failed']
    """`running`: a job searches and removes rows. `settling`: no table has rows of the entity any more;
    decisions may still arrive from the log of a process. `done`. `on_hold`: a legal hold covers some of
    the rows; retry the job after its release. `failed`: see `problem`.
    """
    key_columns: list[str]
    """Columns that have ids of entities."""
    job_id: str | None
    """The job that searches tables. Null for an old request."""
    problem: str | None
    """The error of the job. Null without one."""
    requested_at: str
    """Time of the request."""
    due_at: str
    """Time until which the request is done. If its job has failed, the service forgets the id then. If the
    service was off, it finishes the request later.
    """
    done_at: str | None
    """When the last check found no row of the entity, and all old files were deleted. Null if that is
    still to come.
    """
    erased: ErasedRows | None
    """Decisions and outcomes erased so far. Null before the first pass."""

class Erasure(ErasureItem):
    """A request to erase an entity, with its report."""

    report: ErasureReport | None
    """What was searched and removed in tables, and what remains. Null before the first search."""

class ErasureRemainder(Record):
    """Something that the erasure does not remove."""

    what: str
    """`backups`, `bucket_versions`, `caches`, `database_free_space`, `downloads`, `files_on_the_server`,
    `logs`, `source`, `text` (words of people that name the entity) or `unsearchable_dataset`,
    `values_in_models`.
    """
    resource: str | None
    """The file, dataset, model or connection, if it is one; of a text its table and the key of its row."""
    until: str
    """When it is removed, in words."""

class ErasureReport(Record):
    """What an erasure has searched and removed, and what remains."""

    rounds: int
    """Searches so far. The last one found nothing."""
    searched: ErasureSearch
    """What the last search has read."""
    datasets: list[ReplacedDataset]
    """Versions of datasets that had rows of the entity."""
    models: list[ModelOfErasedRows]
    """Models that used these rows. Their stored sample and reference rows, out-of-fold and held-out scores
    are deleted.
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

class ErasureSearch(Record):
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

class Estimate(Record):
    """A rough estimate from the size of the table."""

    seconds: float
    """Expected run time in seconds."""
    memory_bytes: int
    """Expected peak memory in bytes."""

class EvaluatedAmounts(Record):
    """Metrics weighted by the amount of each row."""

    column: str | None
    """The column of amounts. Null if all costs are fixed."""
    amount_of_positives: float | None
    """Total amount of the positives, weighted. Null without `column`."""
    effective: float | None
    """Effective number of positives by amount. It is small, and intervals are wide, if a few positives
    make up most of the total. Null without `column`.
    """
    values: list[EvaluatedValue]
    """Captured amount, over each horizontal axis."""
    curve: list[ValuePoint]
    """Up to 100 points of the value curves. Empty in a list of evaluations."""
    costs: EvaluatedCosts | None
    """Costs of errors. Null if no `costs` were requested."""

class EvaluatedCosts(Record):
    """Costs of errors per row."""

    rows: float
    """Total weight of the rows. Multiply a cost per row by this for the total cost."""
    flag_none: Interval
    """Mean cost per row if no row is flagged."""
    flag_all: Interval
    """Mean cost per row if every row is flagged."""
    least: LeastCost
    """The cutoff with the lowest cost."""
    threshold: float | None
    """The cutoff of `at`, or of a model with the objective `tpr`. Null without one."""
    at: DecisionCost | None
    """Cost at `threshold`, which these rows did not choose. Null without a threshold."""
    by_probability: DecisionCost | None
    """Cost if each row is flagged when its probability and amount make that cheaper on average. Null if
    the model has no calibration.
    """
    probability_saves: ProbabilitySaving | None
    """Saving of deciding by probability. Null if the model has no calibration."""
    note: str
    """Which rows chose the cutoff, and which evaluate it."""

class EvaluatedCurve(Record):
    """Ranking metrics on rows with one label."""

    auc: Interval
    """Area under the ROC curve."""
    pauc: list[WindowArea]
    """Partial AUC over each window."""
    tpr_at_fpr: list[Height]
    """TPR at fixed false positive rates."""
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""
    ties: float
    """Fraction of the positive–negative pairs that have equal scores."""
    lists: ListMetrics | None = None
    """Metrics within queries; all other metrics treat the rows as one list. Null without queries."""
    weak_segments: WeakSegments | None = None
    """Segments of the rows in which the model ranks worse than elsewhere. Null for training rows, with too
    few rows of a class, with queries, if the model separates the classes, and for a validation table
    that is read column by column.
    """
    gini: Interval | None = None
    """2 AUC − 1: the Gini coefficient, also called the accuracy ratio. Null for evaluations that were made
    before it was added.
    """
    ks: float | None = None
    """Kolmogorov–Smirnov distance: the largest difference between TPR and FPR. It is biased upwards in
    small samples. Null for evaluations that were made before it was added.
    """
    ks_interval: Interval | None = None
    """`ks` with a confidence interval. The lower end comes from thresholds that were chosen on other rows.
    Null for evaluations made before it was added.
    """
    operating_point: EvaluatedCutoff | None
    """Rates at the threshold of `cutoff`. Null without a cutoff."""
    totals: Totals
    """Weights of the two classes."""
    groups: int | None
    """Number of groups. Null unless the dataset has a column of groups or queries; the intervals then
    allow for correlation within a group.
    """
    calibration: CalibrationDrift | None = None
    """How well the model's probabilities match the outcomes on these rows. Null if the model had no
    calibration.
    """
    decision_curve: list[NetBenefit] | None = None
    """Net benefit by threshold probability: 0.01 to 0.50, then 0.55 to 0.95. Each interval covers one
    threshold. The rows must have the same prevalence as those on which decisions are made. Null if the
    model had no calibration, and for evaluations made before it was added.
    """

class EvaluatedCutoff(Record):
    """Rates on these rows at the threshold of `cutoff`."""

    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    fpr: Interval
    """Fraction of the negatives that are flagged."""
    tpr: Interval
    """Fraction of the positives that are flagged."""
    precision: Interval
    """Fraction of the flagged rows that are positive."""
    lift: Interval
    """Precision divided by the fraction of positives."""

class EvaluatedGrades(Record):
    """Ranking metrics on rows with grades."""

    grades: list[GradeRows]
    """Number of rows of each grade, without rows of weight 0."""
    lists: ListMetrics | None
    """Metrics within queries. Null if there are fewer than two queries with rows of different grades."""
    order: GradedOrder | None
    """Metrics of all rows as one list. Null with queries."""

class EvaluatedGroup(Record):
    """Counts and metrics of one group."""

    value: str | None
    """Value of the column as text. Null: the rows without a value."""
    rows: int
    """Number of rows with a weight above 0."""
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""
    auc: GroupMetric
    """Area under the ROC curve within the group."""
    pauc: list[GroupArea]
    """Partial AUC within the group, over each window."""
    tpr: GroupMetric | None
    """Fraction of the group's positives with a score of at least `threshold`. Null without a cutoff."""
    fpr: GroupMetric | None
    """Fraction of the group's negatives with a score of at least `threshold`. Null without a cutoff."""
    cutoff: GroupCutoff | None
    """The cutoff of this group. Null unless `cutoffs` was requested, or if the group has none."""
    cutoff_reason: str | None
    """Why no cutoff could be chosen for the group. Null otherwise."""
    calibration: GroupCalibration | None = None
    """Predicted and observed positives. Null if the model had no calibration."""

class EvaluatedGroups(Record):
    """Ranking metrics by group."""

    column: str
    """The column that defines the groups."""
    threshold: float | None
    """The cutoff that all groups are evaluated at. Null without one."""
    cutoffs: Literal['equal_fpr', 'equal_tpr'] | None
    """How the cutoffs of the groups were chosen. Null if none were requested."""
    rate: float | None
    """FPR or TPR that each group's cutoff is chosen for. Null without cutoffs by group."""
    note: str | None
    """A caution about cutoffs by group. Null without them."""
    groups: list[EvaluatedGroup]
    """The groups by ascending value; rows without a value come last."""
    xauc: list[CrossGroupAuc]
    """xAUC of each group's positives against each group's negatives. Within one group it is the AUC."""
    tests: list[GroupTest]
    """Tests of equality between the groups."""
    worst: list[WorstGroup]
    """The worst group by each metric. Empty if fewer than two groups have metrics."""

class EvaluatedLabel(Record):
    """Ranking metrics of one label's scores."""

    label: str
    """Name of the label."""
    auc: Interval | None
    """Area under the ROC curve. Null if there are too few rows of a class."""
    pauc: list[WindowArea]
    """Partial AUC over each window."""
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""
    ties: float | None
    """Fraction of the positive–negative pairs that have equal scores. Null if `auc` is null."""

class EvaluatedLabels(Record):
    """Ranking metrics of a model with several labels."""

    labels: list[EvaluatedLabel]
    """Metrics of each label."""
    evaluated: int
    """Number of labels that have an AUC. The means are over these."""
    mean_auc: float
    """Mean AUC over these labels."""
    mean_pauc: list[MeanArea]
    """Mean partial AUC over these labels, for each window."""

class EvaluatedPairs(Record):
    """Metrics of the order of pairs of items."""

    pair_order: Interval
    """Weighted fraction of the pairs in order; a tie counts half. The interval allows for pairs that share
    an item.
    """
    misrank_fraction: float
    """Weighted fraction of the pairs out of order; a tie counts fully."""
    ties: float
    """Weighted fraction of the pairs that have equal scores."""
    pairs: int
    """Number of pairs."""
    items: int
    """Number of different items in the pairs."""
    weight: float
    """Total weight of the pairs."""
    effective_pairs: float
    """Effective number of pairs in the worst case: this many pairs without shared items would be as
    informative.
    """

class EvaluatedPeriod(Record):
    """The AUC of the rows of one period."""

    name: str
    """Name, such as 2026-03, 2026-Q1, 2026 or 2020s; for a column of numbers its value."""
    start: str | None
    """First day of the period, UTC. Null for a column of numbers."""
    end: str | None
    """First day after the period, UTC. Null for a column of numbers."""
    rows: int
    """Number of rows with positive weight."""
    positives: int
    """Number of positives among them."""
    negatives: int
    """Number of negatives among them."""
    auc: Interval | None
    """AUC of these rows. Null if a class has too few rows; `reason` says which."""
    reason: str | None
    """Why there is no AUC. Null if there is one."""

class EvaluatedPeriods(Record):
    """The AUC by period of the rows' time (vintages), the earliest first."""

    column: str
    """The column with the time of the rows."""
    unit: Literal['month', 'quarter', 'year', 'decade', 'value']
    """Length of the periods: the shortest with at most 60 periods that have rows. `value`: each value of a
    column of numbers.
    """
    missing: int
    """Number of rows without a time. They are in no period."""
    omitted: int
    """Number of rows of periods before the last 60."""
    reason: str | None
    """Why there are no periods. Null if there are any."""
    periods: list[EvaluatedPeriod]
    """The periods that have rows."""

class EvaluatedValue(Record):
    """How much of the positives' total amount the ranking captures."""

    over: Literal['rows', 'negatives', 'amount_of_negatives']
    """Horizontal axis of the curve: the flagged fraction of all rows, of the negatives (FPR), or of the
    negatives' amount.
    """
    area: Interval | None
    """Mean height of the curve. A random order has 0.5. Null if `reason` is set."""
    recalls: list[ValueRecall]
    """Captured fraction of the amount at several list sizes."""
    reason: str | None
    """Why the values are unavailable: all amounts of a class are 0. Null otherwise."""

class Evaluation(Record):
    """Metrics of a model on a dataset. An evaluation remains when the model or the dataset is deleted."""

    id: str
    """Id of the evaluation or of the comparison."""
    status: Literal['processing', 'ready', 'failed', 'cancelled', 'timed_out']
    """`processing`, `ready`, or how its job ended without a result: `failed`, `cancelled`, `timed_out`."""
    job_id: str
    """Id of the job that made this."""
    dataset_id: str
    """Id of the dataset."""
    dataset_name: str
    """Name of the dataset."""
    dataset_version: int | None
    """Version of the dataset. Null if it was not recorded."""
    dataset_sha256: str | None
    """SHA-256 of the content of that version. Null if it was not recorded."""
    windows: list[NewWindow]
    """The windows of the partial AUCs."""
    level: float
    """Confidence level of each interval."""
    amount: str | None = None
    """The column of amounts. Null if none was requested."""
    costs: NewCosts | None = None
    """The requested costs. Null if none were requested."""
    warnings: list[str]
    """Warnings about the rows and the result."""
    error: dict[str, Any] | None
    """The problem, if the job failed; otherwise null."""
    created_at: str
    """Time of creation."""
    model_id: str
    """Id of the model."""
    model_name: str
    """Name of the model."""
    model_version: int
    """Version of the model."""
    alias: str | None = None
    """The alias that the request named. Null if it named the version."""
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    """Kind of the dataset."""
    group_by: str | None = None
    """The column that defines the groups. Null if none was requested."""
    at: RateOrThreshold | None = None
    """The requested cutoff. Null if none was requested."""
    cutoff: EvaluationCutoff | None = None
    """The cutoff that the rows were evaluated at. Null without one, and until the evaluation is ready."""
    cutoffs: Literal['equal_fpr', 'equal_tpr'] | None = None
    """Requested cutoffs by group. Null if none were requested."""
    seen: Literal['trained', 'validated', 'overlaps', 'new'] | None = None
    """Whether the model has seen these rows before. `trained`: it was trained on rows of the dataset, so
    its metrics are optimistic. `validated`: it was validated on rows of the dataset. `overlaps`: too
    many rows are equal to training rows; a warning gives the number. `new`: none of these. Null until
    this is known, and if the training table was deleted before.
    """
    metrics: EvaluatedCurve | EvaluatedPairs | EvaluatedLabels | EvaluatedGrades | None
    """The metrics; the members depend on `kind`. Null until the evaluation is ready."""
    groups: EvaluatedGroups | None = None
    """Metrics by group. Null without `group_by`, and until the evaluation is ready."""
    protected: list[EvaluatedGroups] | None = None
    """Metrics by group for each protected column."""
    periods: EvaluatedPeriods | None = None
    """AUC by period of the rows' time. Null if the dataset has no column of times, if rows do not have
    exactly one label, and until the evaluation is ready.
    """
    amounts: EvaluatedAmounts | None = None
    """Captured amounts and costs of errors. Null without `amount` and `costs`, and until the evaluation is
    ready.
    """
    drift: Drift | None
    """Changes since the model's validation. Null if the model has no validation, or if it is not
    independent of these rows; a warning says which.
    """
    findings: list[Finding] | None = None
    """The answers of this evaluation, which `GET …/models/{ref}/checks` uses if its rows are the newest:
    first how the model ranks. Empty without `drift`.
    """
    acknowledgement: Acknowledgement | None
    """Who has seen the change that the evaluation found, when, and the reason for taking no further
    action. Null if nobody has.
    """

class EvaluationCurve(Record):
    """A curve of a model on the rows of an evaluation."""

    kind: Literal['precision_recall', 'gains', 'cost', 'histogram']
    """Kind of curve."""
    axes: list[str]
    """Meaning of `x` and `y`: recall and precision; fraction of the rows and recall; weight and cost; or
    the lowest score of a bin and the fraction of the positives in it.
    """
    prevalence: float | None
    """Fraction of positives that the curve assumes. Default: that of the data. Null for cost curves, whose
    weight includes it, and for histograms, which show each class separately.
    """
    exact: bool
    """False if points were omitted because of `max_points`."""
    total_points: int
    """Number of points of the full curve."""
    points: list[ListPoint]
    """The points of the curve, from the highest threshold to the lowest; the bins of a histogram, from the
    lowest score to the highest.
    """
    evaluation_id: str
    """Id of the evaluation."""
    model_id: str
    """Id of the model."""

class EvaluationCutoff(Record):
    """The cutoff that the rows were evaluated at, and its source."""

    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    source: Literal['at', 'alias', 'objective']
    """`at`: the request. `alias`: the cutoff of the alias at the time of the request. `objective`: the
    model's objective `tpr`.
    """

class EvaluationGains(Record):
    """The gains table of a model on the rows of an evaluation."""

    level: float
    """Confidence level of each interval."""
    prevalence: float
    """Fraction of positives that the table assumes. Default: that of the data."""
    rows: list[Gain]
    """One entry for each list size, ascending."""
    evaluation_id: str
    """Id of the evaluation."""
    model_id: str
    """Id of the model."""

class EvaluationMetricEstimates(Record):
    """Metrics of a model on the rows of an evaluation."""

    level: float
    """Confidence level of each interval."""
    metrics: list[MetricEstimate]
    """One entry for each requested metric."""
    evaluation_id: str
    """Id of the evaluation."""
    model_id: str
    """Id of the model."""

class EvaluationOperatingPoint(Cutoff):
    """One threshold and its consequences on the rows of an evaluation."""

    note: str | None = None
    """A caution: the cutoff was chosen on the rows that its rates are from, by an FPR, a TPR or the lowest
    cost, so they are optimistic. Null for a given threshold or fraction of flagged rows, and with a
    confidence.
    """
    guarantee: RateGuarantee | None = None
    """The guarantee. Null if no `confidence` was requested."""
    evaluation_id: str
    """Id of the evaluation."""
    model_id: str
    """Id of the model."""
    groups: GuaranteesByGroup | None = None
    """Cutoffs by group. Null unless `by_group` was requested."""

class EvaluationRoc(Record):
    """The ROC curve of an evaluation."""

    exact: bool
    """False if points were omitted because of `max_points`."""
    total_points: int
    """Number of points of the full curve."""
    band: Band | None = None
    """The confidence band. Present only if `band` was requested."""
    points: list[Point]
    """The points of the curve, by ascending FPR."""
    evaluation_id: str
    """Id of the evaluation."""

class EvaluationThresholdGroups(Record):
    """Groups on the rows of an evaluation, at one threshold: by `group_by`, and then by the protected
    columns.
    """

    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    chosen_by: Literal['request', 'alias', 'objective', 'ks']
    """Where the threshold comes from. `request`: the parameter. `alias`: the cutoff of the alias.
    `objective`: the model's objective. `ks`: the largest difference between TPR and FPR.
    """
    favourable: Literal['not_flagged', 'flagged']
    """The favourable outcome, to which the verdicts refer, as requested."""
    level: float
    """Confidence level of each interval."""
    rule: float
    """Lowest ratio that is acceptable by the four-fifths rule."""
    passes: bool | None
    """True: all columns pass. False: one fails. Null: not enough data."""
    columns: list[ThresholdColumn]
    """The compared columns."""
    evaluation_id: str
    """Id of the evaluation."""
    model_id: str
    """Id of the model."""

class Event(Record):
    """One event of a job."""

    seq: int
    """Number of the event within its job: 1, 2, 3, and so on."""
    at: str
    """Time of the event."""
    type: Literal['state', 'progress', 'message']
    """`state`, `progress` or `message`."""
    data: dict[str, Any]
    """Content of the event; its members depend on `type`."""

class EvidenceFile(Record):
    """A file of the evidence that an alias was moved on."""

    name: str
    """Name of the file in the archive."""
    of: Literal['decision', 'report', 'evaluation', 'comparison']
    """What the file is."""
    id: str
    """Id of the evaluation or of the comparison; of other files that of the model."""
    sha256: str
    """SHA-256 of the file."""
    bytes: int
    """Size of the file."""

class ExcludedDecisions(Record):
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

class Explanation(Record):
    """One score as a sum: `offset` plus all contributions."""

    id: str | float | bool | None = None
    """Id of the row, if `id` was requested."""
    score: float
    """Score of the row."""
    fpr: float | None
    """Fraction of the validation negatives with at least this score. Null without a validation curve."""
    tpr: float | None
    """Fraction of the validation positives with at least this score. Null without a validation curve."""
    probability: float | None = None
    """Probability that the row is positive, by the model's calibration. Null if the model has no
    calibration. Absent with `probability=false`.
    """
    probability_low: float | None = None
    """Lower value of the Venn–Abers pair: the probability if the row itself is counted as a negative.
    Present only with `interval=true`.
    """
    probability_high: float | None = None
    """Upper value of the Venn–Abers pair: the probability if the row itself is counted as a positive.
    Present only with `interval=true`.
    """
    points: float | None = None
    """The score in points, by the scale of the model. More points mean lower odds of a positive. Absent
    unless the model is of the algorithm `scorecard`.
    """
    offset: float
    """Mean score of the training rows, or of a sample of them."""
    contributions: dict[str, float]
    """Contribution of each feature. `offset` plus all contributions is the score."""
    method: Literal['contributions', 'rows']
    """`contributions`: the score is a sum over features; in trees, the change at each split is attributed
    to its feature. `rows`: Shapley values in which an unknown feature has its value from a row of the
    reference. They are exact for ranking trees, and where at most seven features differ from that row;
    otherwise they are estimated from permutations, with an `error`.
    """
    exact: bool
    """False if the contributions are estimates, because the score is not a sum over features. Even then
    they sum exactly to the score.
    """
    errors: dict[str, float] | None
    """Standard error of each contribution. Null: the contributions are exact."""

class Explanations(Record):
    """One explanation for each row."""

    model_id: str
    """Id of the model."""
    explanations: list[Explanation]
    """One explanation for each row, in the order of the rows."""
    no_probability: str | None = None
    """Why there is no probability. Present only if one was requested and the model has no calibration."""

class Exploration(Record):
    """Rows that are reviewed at random, so that the outcomes of the others can be estimated."""

    of: Literal['unflagged', 'flagged']
    """Rows to draw from."""
    rate: float
    """Fraction of these rows that is drawn."""

class FamilyBudget(Record):
    """The error probability of one family in its current term."""

    family: Literal['unlabelled', 'ranking', 'calibration', 'guarantee', 'selection', 'group_calibration']
    """What is tested."""
    alpha: float
    """Probability of a false alarm in all tests of a term together. The sum over all families is the
    `alpha` of the settings.
    """
    spent: float
    """The part that the tests so far have used."""
    left: float
    """The part that remains for later tests."""

class FeatureBin(Record):
    """A bin of a feature's values, and the fractions of the rows in it."""

    of: Literal['below', 'values', 'above', 'category', 'rare', 'new', 'missing']
    """`values`: numbers above `low` and up to `high`, of the first bin also `low`; dates in seconds since
    1970. `below`, `above`: numbers below the lowest and above the highest training value. `category`:
    one category. `rare`: all other categories of the training table. `new`: categories not in the
    training table. `missing`: no value.
    """
    low: float | None
    """Lower end of the bin. Null: no limit."""
    high: float | None
    """Upper end of the bin. Null: no limit."""
    category: str | None
    """The category. Null for any other kind of bin."""
    before: float
    """Fraction of the rows of the training table."""
    after: float
    """Fraction of these rows."""

class FeatureDrift(Record):
    """Difference between a feature's values here and in the training table, over deciles of its numbers or
    over its most frequent categories. Missing values have a separate bin.
    """

    name: str
    """Name of the feature."""
    importance: float | None
    """Fraction of the total feature importance. 0 for a protected column that is not a feature, which is
    monitored, too. Null if importance was not measured.
    """
    psi: Interval | None
    """Population stability index, corrected for sampling noise: below 0.1 is small, 0.25 or more is large.
    Null without a test.
    """
    distance: float
    """Total variation distance over the bins, from 0 to 1."""
    p_value: float | None
    """p-value of the hypothesis that nothing has changed. Null without a test; `reason` says why."""
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all tests of this drift. Null without a test; `reason` says
    why.
    """
    changed: bool | None
    """True if the change is statistically significant and large enough to matter. Null without a test;
    `reason` says why.
    """
    reason: str | None = None
    """Why there is no test: neighbouring rows, in time or in the table, are too similar, or there are too
    few. Null with a test.
    """
    words: str
    """The result in one sentence."""
    missing: ShareChange
    """Fraction of missing values."""
    new_categories: float | None = None
    """Fraction of these rows with a category that is new to the model, which treats it as missing. Null
    for numbers.
    """
    out_of_range: float | None = None
    """Fraction of the present values below the lowest or above the highest training value. Null for
    categories.
    """
    bins: list[FeatureBin] | None = None
    """The bins, for the first 20 features. Null for others."""

class FeatureImportance(Record):
    """The importance of one feature."""

    name: str
    """Name of the feature."""
    importance: float
    """Importance, in the unit of `method`."""
    root: float | None = None
    """Square root of `importance`. Null unless the method is `squared_auc_gain`."""
    auc_gain: float | None = None
    """Sum of the gains in training AUC, not squared. Null unless the method is `squared_auc_gain`."""

class FeaturePoints(Record):
    """The points of a row for one feature."""

    name: str
    """Name of the feature."""
    points: float
    """Points for the row's value."""
    rounded: int
    """The points rounded to a whole number."""

class Feedback(Record):
    """The feedback settings of an alias."""

    name: str
    """Name of the models."""
    alias: str
    """The alias."""
    revision: int
    """Revision number, from 1. It is also the ETag."""
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
    """Model to compare on the same rows. Null: none."""
    protected: MonitoredGroups | None
    """Groups to record with each decision. They are compared if `monitor` is set. Null: none."""
    monitor: MonitorSettings | None
    """Scheduled tests. Null: none."""
    detectable: DetectableDrop | None
    """The smallest fall of the AUC that the monitor can find. Null without a monitor or a validation
    curve, and if the service is busy: `…/monitor` also returns it.
    """
    author: str | None
    """Name of the key that made this revision."""
    at: str
    """Time of this revision."""

class Finding(Record):
    """The answer to one question about a model."""

    question: Literal['ranks', 'beats_baselines', 'probabilities', 'ranking_kept', 'positives_kept', 'stable', 'rates_kept', 'groups']
    """`ranks`: does the model rank better than random? `beats_baselines`: significantly better than each
    baseline? `probabilities`: do its probabilities match the outcomes? `ranking_kept`: does it rank as
    well as at validation? `positives_kept`: is the fraction of positives as at validation? `stable`:
    are scores and features as at validation and training? `rates_kept`: are the scores of the
    positives, and those of the negatives, so that the rates at a cutoff still hold? `groups`: are
    metrics equal across groups, and does each group pass the four-fifths rule at the cutoff?
    """
    answer: Literal['yes', 'no', 'unknown', 'not_applicable']
    """`no` if a deviation is statistically significant. `yes` if the data exclude every deviation larger
    than `margin` (`ranks`, `beats_baselines`: if they show it significantly). `unknown` otherwise, with
    the `reason`. `not_applicable`: the question does not apply to the model, and the answer does not
    count.
    """
    words: str
    """The answer in words, with its values."""
    details: list[str]
    """The values behind `words`, one sentence each: each significant difference between groups; further
    alarms; newer rows that are inconclusive.
    """
    rows: FindingRows | None
    """The rows that the answer is based on. Null if there are none."""
    cutoff: FindingCutoff | None
    """The cutoff that the answer is about. Null if it depends on none."""
    size: FindingSize | None
    """The measured value that decides. Null without one."""
    margin: float | None
    """Largest difference that is considered negligible, in the unit of the question: a drop of the AUC; a
    PSI; log odds; a difference between the AUC, TPR or FPR of two groups. Null if the question has
    none.
    """
    reason: Literal['not_measured', 'too_few_rows', 'untested', 'no_interval', 'no_cutoff', 'not_better_than_random', 'no_probabilities', 'is_baseline'] | None
    """Why there is no answer. `not_measured`: no stored result answers. `too_few_rows`: the interval
    includes differences beyond the margin. `untested`: columns or scores that matter could not be
    tested. `no_interval`: a metric has none. `no_cutoff`: neither an alias nor the objective has a
    cutoff. `not_better_than_random`: at validation, so no drop is negligible. `no_probabilities`: the
    model has no calibration. `is_baseline`: the model is itself one. Null if there is an answer.
    """
    more_rows: int | None
    """If there are too few rows: the number of additional rows that would decide with probability 0.8, if
    nothing changes and their variance stays the same (pairs, for a model of pairs). Null if not even 10
    times the rows would decide, or if it is unknown.
    """
    used: list[str]
    """The measurements that the answer is based on. `ranks`: metrics of the validation, and
    `random_splits` if they show a significant effect of time. `beats_baselines`: the baselines.
    `probabilities`: `in_the_large`, `slope`, `shape`. `ranking_kept`: metrics of the ranking. `stable`:
    `scores`, `features`. `rates_kept`: the classes. `groups`: `auc`, `tpr`, `fpr`, `calibration`,
    `four_fifths`. Of an alarm: its families.
    """
    missing: list[str]
    """Those that were not taken or have no value. `words` says at most why they are missing."""
    measured_at: str | None
    """Time of the evaluation or alarm that the answer is based on. Null for results of the training."""
    acknowledgement: Acknowledgement | None
    """Who has seen the `no` of an evaluation, when, and the reason for taking no further action."""

class FindingCutoff(Record):
    """The cutoff that an answer is about."""

    threshold: float | None
    """The lowest score that is flagged. Null: no row is."""
    source: str
    """Where the cutoff is from, such as `alias live`."""

class FindingRows(Record):
    """The rows that an answer is based on."""

    of: Literal['validation', 'cross_fitted', 'later_rows', 'evaluation', 'batch_score', 'monitor']
    """`validation`: the validation rows of the training. `cross_fitted`: the calibration's rows, each
    predicted by a calibration of other rows; this does not test later rows. `later_rows`: the last time
    window of the validation, with a calibration of the windows before. `evaluation` and `batch_score`:
    the rows of `id`. `monitor`: recorded decisions, which raised the alarm `id` that nobody has
    acknowledged.
    """
    name: str
    """The rows in words: the dataset with its version, such as `loans:3`, or `the validation rows`."""
    id: str | None
    """Id of the evaluation or of the alarm. Null for rows of the training."""
    until: str | None
    """Time of the newest row. Null without a column of dates."""

class FindingSize(Record):
    """The measured value that decides, with its interval."""

    of: Literal['auc', 'pauc', 'pair_order', 'list', 'grades', 'prevalence', 'in_the_large', 'slope', 'shape', 'periods', 'psi']
    """What was measured: a ranking metric; `psi` of the scores; `in_the_large`, `slope`, `shape` or
    `periods` of the calibration (`periods`: range of the levels of time windows); `prevalence`: the
    fraction of positives.
    """
    value: float
    """The value; for `ranking_kept` and `positives_kept` the change since validation."""
    low: float | None
    """Lower limit. Null without an interval."""
    high: float | None
    """Upper limit. Null without an interval."""

class Fit(Record):
    """Whether a dataset can be used with a model."""

    model: str
    """The model, as the request named it."""
    dataset_id: str
    """Id of the dataset."""
    fits: bool
    """True if the dataset has what the model needs."""
    reason: str | None
    """What the dataset lacks. Completes a sentence that starts with “the dataset”. Null if it fits."""

class Fits(Record):
    """Compatibility of models and datasets, with one entry for each pair."""

    data: list[Fit]
    """One entry for each pair of a model and a dataset."""

class FlaggedDrift(Record):
    """The fraction of rows with a score at or above a threshold: that of the alias, or of the model's
    objective.
    """

    threshold: float
    """The lowest score that is flagged."""
    before: Interval
    """Fraction of the validation rows."""
    after: Interval
    """Fraction of these rows."""
    change: Interval
    """`after` minus `before`, with the interval of Zou and Donner."""
    p_value: float
    """p-value of the hypothesis that there is no difference."""

class FoldAuc(Record):
    """The AUC of one fold."""

    repeat: int
    """Number of the repeat, from 1."""
    fold: int
    """Number of the fold, from 1."""
    auc: float
    """AUC of the fold's rows."""

class FoldChosen(Record):
    """The parameters that the search of one fold chose."""

    repeat: int
    """Number of the repeat, from 1."""
    fold: int
    """Number of the fold, from 1."""
    chosen: dict[str, Any]
    """The chosen parameters."""

class FoldMembers(Record):
    """The rankers that `auto` has fitted for a fold."""

    repeat: int
    """Number of the repetition, from 1."""
    fold: int
    """Number of the fold, from 1."""
    rows: float
    """Fraction of the fold's training rows that the rankers were fitted on."""
    members: list[Member]
    """The rankers, with their numbers of rounds or trees."""

class Gain(Record):
    """One row of a gains table: the highest-scored rows down to a given fraction."""

    share: float
    """Fraction of all rows."""
    count: float
    """Number of rows, or their total weight if rows are weighted."""
    threshold: float
    """Lowest score among these rows."""
    tied: float
    """Number of rows with exactly that score."""
    taken: float
    """Number of those that are included. They are chosen at random."""
    positives: float
    """Number of positives among these rows. If the threshold splits a tie: the expected number."""
    precision: Interval
    """Fraction of these rows that are positive."""
    recall: Interval
    """Fraction of all positives that are among these rows."""
    lift: Interval
    """`precision` divided by `prevalence`. A random order has a lift of 1."""

class GradeRows(Record):
    """A grade and the number of rows that have it."""

    grade: int
    """The grade, a whole number from 0."""
    rows: int
    """Number of rows with this grade."""

class GradedMetrics(Record):
    """Metrics of a model trained on grades, on one part of the data."""

    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    level: float
    """Confidence level of each interval."""
    grades: list[GradeRows]
    """Number of rows of each grade, without rows of weight 0."""
    lists: ListMetrics | None
    """Metrics within queries. Null if there are fewer than two queries with rows of different grades."""
    order: GradedOrder | None
    """Metrics of all rows as one list. Null with queries."""

class GradedOrder(Record):
    """Ranking metrics of graded rows, treated as one list."""

    c_index: Interval
    """Fraction of the pairs of rows with different grades that are in order; a tie counts half."""
    mean_auc: Interval
    """Mean of the AUC over all pairs of grades."""
    volume: Interval | None
    """Probability that one random row of each grade are all in order. Null for more than nine grades."""
    pairwise: list[list[float | None]]
    """AUC of each grade (column) over each lower grade (row), by ascending grade; other entries are null."""

class GroupArea(GroupMetric):
    """Partial AUC within one group. The window refers to the FPR within the group."""

    fpr_min: float
    """Lower end of the window of false positive rates."""
    fpr_max: float
    """Upper end of the window of false positive rates."""

class GroupCalibration(Record):
    """Predicted and observed positives of one group."""

    predicted: float | None
    """Mean predicted probability. Null if all rows have weight 0."""
    observed: GroupMetric
    """Observed fraction of positives."""
    in_the_large: GroupMetric
    """Log odds to add to every probability of the group so that predicted and observed positives agree. If
    the interval excludes 0, the probabilities are too low (above 0) or too high (below 0).
    """
    points: list[ReliabilityPoint]
    """Reliability diagram of the group, up to 11 points. Empty if `in_the_large` is unavailable."""

class GroupCutoff(Record):
    """The cutoff of one group, chosen on these same rows: see `note`. The intervals do not include the
    uncertainty of this choice.
    """

    threshold: float | None
    """Lowest score that is flagged in this group. Null: no row is flagged."""
    threshold_low: float | None
    """Lower end of a confidence interval for the cutoff in the population. Null: the rows set no limit."""
    threshold_high: float | None
    """Upper end of that interval. Null: the rows set no limit."""
    fpr: Interval
    """FPR within the group."""
    tpr: Interval
    """TPR within the group."""

class GroupGuarantee(Record):
    """A cutoff for the rows of one group, with a guarantee within that group."""

    value: str | None
    """Value of the column as text. Null: the rows without a value."""
    threshold: float | None
    """Lowest score that is flagged in this group. Null if the group has too few rows."""
    rows: int
    """Number of rows of the group that the guarantee is based on: negatives for an FPR, positives for a
    TPR.
    """
    needed: int
    """Smallest number of these rows with which a cutoff can be guaranteed."""
    errors: int | None
    """Largest number of these rows that the cutoff may get wrong. Null without a cutoff."""
    broken: float | None
    """Upper bound on the probability that the guarantee fails in this group. Null without a cutoff."""
    fpr: Interval | None
    """FPR of the cutoff in the group. Null if there is no cutoff, if the group has no negatives, or if
    their weights differ.
    """
    tpr: Interval | None
    """TPR of the cutoff in the group. Null if there is no cutoff, if the group has no positives, or if
    their weights differ.
    """

class GroupTest(Record):
    """A joint test of the hypothesis that a metric is equal in all groups."""

    of: Literal['auc', 'pauc', 'tpr', 'fpr', 'calibration']
    """The tested metric. `calibration`: whether the probabilities of all groups are off by the same log
    odds.
    """
    fpr_min: float | None
    """Lower end of the window of a partial AUC; otherwise null."""
    fpr_max: float | None
    """Upper end of the window of a partial AUC; otherwise null."""
    groups: int
    """Number of groups for which the metric is available."""
    p_value: float | None
    """p-value of the test. Null if the metric is available for fewer than two groups."""
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all tests shown here. Null without `p_value`."""
    differs: bool | None
    """True if the adjusted p-value is below 1 − `level`. Null without a test."""
    words: str
    """The result in one sentence."""

class GuaranteesByGroup(Record):
    """Cutoffs by group, all with the same guarantee."""

    column: str
    """The column that defines the groups."""
    by_group: Literal['together', 'each']
    """`together`: all guarantees hold at once with the confidence. `each`: each guarantee holds separately
    with the confidence.
    """
    threshold: float | None
    """One cutoff whose guarantee holds in every group. Null if a group has too few rows."""
    groups: list[GroupGuarantee]
    """The cutoff of each group."""
    note: str
    """A caution about cutoffs by group."""

class Health(Record):
    """State of the service and its components."""

    status: Literal['ok', 'unavailable']
    """`ok` or `unavailable`."""
    version: str
    """Version of the service."""
    build: str
    """The build: `RANKWRIGHT_BUILD` of the process. An image sets it."""
    parts: dict[str, Part] | None = None
    """State of each component, by name. Empty for `/health/live`."""

class Height(Record):
    """The TPR at a given FPR. The interval includes the uncertainty of the threshold."""

    fpr: float
    """False positive rate."""
    tpr: float
    """True positive rate at this FPR."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""

class Histogram(Record):
    """A histogram with bins of equal width."""

    edges: list[float]
    """Edges of the bins, ascending; one more than `counts`."""
    counts: list[int]
    """Number of rows in each bin."""

class Hold(Record):
    """A legal hold."""

    id: str
    """Id of the hold."""
    kind: Literal['owner', 'dataset', 'model']
    """What the hold covers."""
    resource_id: str | None
    """Id of the dataset or the model. Null for kind `owner`."""
    reason: str
    """Why the hold was placed."""
    author: str | None
    """Name of who placed it."""
    placed_at: str
    """When it was placed."""
    released_at: str | None
    """When it was released. Null: it is active."""
    release_reason: str | None
    """Why it was released."""
    released_by: str | None
    """Name of who released it."""

class Importance(Record):
    """The features, most important first. Values of different methods are not comparable."""

    model_id: str
    """Id of the model."""
    method: Literal['squared_auc_gain', 'mean_absolute_contribution', 'permutation_auc']
    """`squared_auc_gain` for ranking trees, `mean_absolute_contribution` for models that are a sum over
    features, `permutation_auc` for all others.
    """
    description: str
    """What the method measures, in one sentence."""
    on: Literal['validation', 'train']
    """Part of the data that the importance was measured on."""
    label: str | None
    """Label whose scores were used. Null for a model with one label."""
    features: list[FeatureImportance]
    """The features, most important first."""

class Imported(Record):
    """Where an imported model comes from."""

    source: str
    """The library that trained the model and the version of the file, such as `LightGBM v4`, or
    `Rankwright` and the version that wrote the artifact. Stated by the file, not verified.
    """
    sha256: str
    """SHA-256 of the file. For an artifact, it is `artifact.sha256` of the original model."""
    dataset_sha256: str | None
    """SHA-256 of the training dataset, in artifacts of this service. Stated by the file, not verified.
    Null if the file does not state it.
    """
    model: SameModel | None
    """The model of this installation with this artifact, when it was imported. Null if there was none."""
    imported_by: str | None
    """Name of the key or user that imported the model. Null if it has none."""
    unknown_categories: list[UnknownCategories] | None = None
    """Features with rows of the dataset whose category the model does not know."""

class Improvement(Record):
    """A new best value during a search."""

    seconds: float
    """Seconds from the start of the job to the report of this value."""
    value: float
    """Value of the job's objective, as on the leaderboard."""

class InformationValue(Record):
    """The information value of a feature."""

    value: float
    """Information value: the sum of (fraction of the positives - fraction of the negatives) · WOE."""
    adjusted: float
    """The value minus its bias, at least 0. The bias is (bins - 1) · (1/positives + 1/negatives)."""
    low: float
    """Lower confidence limit."""
    high: float
    """Upper confidence limit."""
    sparse: bool
    """Whether a bin has fewer than five rows of a class: the interval is then too optimistic."""

class Job(Record):
    """A job: long work that a worker does in the background."""

    id: str
    """Id of the job."""
    kind: Literal['ingest', 'ingest_files', 'ingest_pairs', 'ingest_source', 'ingest_fetched', 'evaluate', 'compare', 'calibrate', 'batch_score', 'backfill', 'train', 'import', 'importance', 'monitor', 'erase']
    """`ingest`, `ingest_files`, `ingest_pairs`, `ingest_source`, `ingest_fetched`, `evaluate`, `compare`,
    `calibrate`, `batch_score`, `backfill`, `train`, `import`, `importance`, `monitor`, `erase`.
    """
    name: str
    """Name of the resource that the job creates."""
    state: Literal['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'cancelling']
    """`queued`, `running`, `cancelling`, `succeeded`, `failed`, `cancelled` or `timed_out`."""
    dataset_id: str | None
    """Id of the dataset that the job uses. Null without one."""
    dataset: DatasetVersion | None
    """The dataset that the job uses, under its name when the job was submitted. Null without one."""
    validation_dataset: DatasetVersion | None
    """The dataset that the model is validated on. Null unless the validation method is `dataset`."""
    algorithm: dict[str, Any] | None
    """Name of the algorithm and all its parameters. A searched parameter has its largest value. Null
    unless the job trains a model.
    """
    objective: dict[str, Any] | None
    """Objective of the training: `metric` and its parameters. Null unless the job trains a model."""
    validation: dict[str, Any] | None
    """Validation method and its parameters. Null unless the job trains a model."""
    search: dict[str, Any] | None
    """The parameter search. Null without one."""
    baselines: dict[str, Any] | None
    """`algorithms`: the baselines to train. `skipped`: why there are none. `share`: the fraction of the
    job's time that they may take; null: no limit. Null unless the job trains a model.
    """
    protected_features: list[str] | None = None
    """Protected columns of the dataset that are features of the model. Null unless the job trains a model."""
    timeout_seconds: float
    """Maximum run time in seconds."""
    priority: int
    """Priority from -100 to 100; higher starts first."""
    tags: dict[str, str]
    """Tags of the job."""
    attempt: int
    """Number of the current or last attempt. 0 before the first."""
    max_attempts: int
    """Maximum number of attempts."""
    progress: Progress | None
    """Progress of the job. Null before its first report."""
    error: dict[str, Any] | None
    """The problem, if the job failed; otherwise null."""
    output: JobOutput | None = None
    """The resource that the job creates; it has its own status. A model exists only after the job has
    succeeded. A retried job shows the same resource as its retry, which may have created it. Null if
    there is none.
    """
    request_id: str | None
    """Id of the request that submitted the job, from its `X-Request-ID`. All log lines of the API and of
    the workers about the job include it. Null if it was not recorded.
    """
    retry_of: str | None
    """Id of the job that this one retries. Null if it is not a retry."""
    last_event: int
    """Number (`seq`) of the job's last event. Pass it to `…/events?after=` to continue from there."""
    created_at: str
    """Time of creation."""
    started_at: str | None
    """Start of the current or last attempt. Null before the first."""
    finished_at: str | None
    """Time at which the job reached its final state. Null until then."""
    cancel_requested_at: str | None
    """Time of the request to cancel. Null without one."""
    keep_requested_at: str | None = None
    """Time of the request to end early and keep the best candidate. Null without one."""
    seed: int | None
    """Seed of all random numbers. Null unless the job trains a model."""
    label_noise: float | None
    """Fraction of the labels that are wrong, if you know it. Algorithms with a `noise_rate` correct for
    it; other algorithms only record it. Null: unknown; `sampled_martirank` estimates it. Null unless
    the job trains a model.
    """

class JobCheck(Record):
    """The job is valid. Nothing was created."""

    valid: bool
    """Always true. An invalid request returns an error instead."""
    algorithm: dict[str, Any]
    """Name of the algorithm and all its parameters."""
    objective: dict[str, Any]
    """Objective of the training: `metric` and its parameters."""
    validation: dict[str, Any]
    """Validation method as it would be stored. `time_column` names the column that selects the newest rows
    for validation.
    """
    search: dict[str, Any] | None
    """The parameter search. Null without one."""
    baselines: dict[str, Any]
    """`algorithms`: the baselines to train. `skipped`: why there are none. `share`: the fraction of the
    budget of `auto` that they may take; null: they are trained on all rows, however long it takes.
    """
    protected_features: list[str]
    """Protected columns of the dataset that are features of the model."""
    estimate: Estimate
    """A rough estimate of time and memory."""
    warnings: list[str]
    """Warnings about the data and the split."""
    duplicates: Duplicates | None
    """Rows of the dataset that are equal to another row, and where they go in the job's splits. Null
    without splits of its rows, and without a profile of the dataset.
    """
    seed: int
    """Seed of all random numbers."""
    label_noise: float | None
    """Fraction of the labels that are wrong, if you know it. Algorithms with a `noise_rate` correct for
    it; other algorithms only record it. Null: unknown; `sampled_martirank` estimates it.
    """

class JobOutput(Record):
    """The resource that a job creates."""

    kind: Literal['dataset', 'pairs', 'evaluation', 'comparison', 'batch_score', 'model']
    """`dataset`, `pairs`, `evaluation`, `comparison`, `batch_score`, `model`. For `pairs`, `id` is the id
    of the dataset.
    """
    id: str
    """Id of the resource."""

class Key(Record):
    """An API key, without its secret."""

    id: str
    """Id of the key."""
    owner: str
    """Owner of the key and of all resources created with it."""
    name: str
    """Name of the key."""
    prefix: str
    """First characters of the secret, to identify the key."""
    holder_id: str | None
    """Id of the principal that the key is for. Null: it is for its creator."""
    scopes: list[Literal['read', 'train', 'score', 'outcomes', 'approve', 'admin', 'operator']]
    """Scopes of the key."""
    created_at: str
    """Time of creation."""
    expires_at: str | None
    """Time of expiry. Null: the key does not expire."""
    last_used_at: str | None
    """Time of the last use. Null: it has not been used."""
    revoked_at: str | None
    """Time of revocation. Null: it has not been revoked."""
    successor_id: str | None
    """Id of the key that replaced this one. Null if it has not been replaced."""

class KeyWithSecret(Key):
    """A new API key with its secret."""

    secret: str | None
    """The secret. It is shown only once; null in a replayed response."""

class Label(Record):
    """One label of a dataset with several labels."""

    name: str
    """Name of the column."""
    positive: str | None = None
    """Value that counts as positive. Null until the table has been read."""
    negative: str | None = None
    """Value that counts as negative. Null until the table has been read."""
    positives: int | None = None
    """Number of positive rows. Null until the table has been read."""
    negatives: int | None = None
    """Number of negative rows. Null until the table has been read."""

class LabelMetrics(EvaluatedLabel):
    """Ranking metrics of one label's scores, on one part of the data."""


class LabelScore(Record):
    """The scores of one row by a model with several labels."""

    model_id: str
    """Id of the model."""
    warnings: list[ScoreWarning] | None = None
    """Absent without warnings. Responses in other formats than JSON have the first ten as JSON in the
    header `X-Warnings`.
    """
    id: str | float | bool | None = None
    """Id of the row, if `id` was requested."""
    scores: dict[str, float]
    """Score of each label, by name."""
    no_probability: str | None = None
    """Why there is no probability. Present only if one was requested and the model has no calibration."""

class LabelScores(Record):
    """The scores of several rows by a model with several labels."""

    model_id: str
    """Id of the model."""
    warnings: list[ScoreWarning] | None = None
    """Absent without warnings. Responses in other formats than JSON have the first ten as JSON in the
    header `X-Warnings`.
    """
    ids: list[str | float | bool | None] | None = None
    """Id of each row. Present only if `id` was requested. In a table, this is the column `id`."""
    labels: list[str]
    """Names of the labels, in the order of the scores."""
    scores: list[list[float]]
    """For each row, a list of scores, one per label."""
    no_probability: str | None = None
    """Why there is no probability. Present only if one was requested and the model has no calibration."""

class LabelValues(Record):
    """One label of a model with several labels, and its two values."""

    name: str
    """Name of the label column."""
    positive: str
    """Value that counts as positive."""
    negative: str
    """Value that counts as negative."""

class Leaderboard(Record):
    """The candidates of `auto`, best first, and the members of the resulting model. `members`, `rows` and
    `folds` are the plan that was carried out: a job with `"algorithm": {"name": "auto", "plan":
    "mdl_…"}` repeats it.
    """

    model_id: str
    """Id of the model."""
    budget_seconds: float | None
    """Time budget in seconds. Null for a model that was trained by a plan."""
    seconds: float
    """Duration of the search in seconds, without the final fit."""
    members: list[Member]
    """Rankers of the resulting ensemble, with the numbers of rounds or trees that they were fitted with."""
    rows: float
    """Fraction of the training rows that they were fitted on."""
    folds: list[FoldMembers]
    """With cross-validation, the same for each fold."""
    repeatable: bool
    """True if a job with this plan, the same dataset, validation and seed gives the same model, bit for
    bit. False if the budget has ended a fit that has no parameter for its number of steps: the plan
    then completes this fit.
    """
    candidates: list[LeaderboardRow]
    """The candidates, best first."""
    notes: list[str]
    """Notes about the search."""

class LeaderboardRow(Record):
    """A candidate of `auto`. Its metrics were measured on the rows that chose it, so those of the best
    candidates are optimistic.
    """

    algorithm: str
    """Name of the algorithm."""
    parameters: dict[str, Any]
    """Parameters of the algorithm."""
    value: float | None
    """Value of the objective. Null if the fit failed or was never started."""
    auc: float | None
    """AUC on the inner validation rows. Null if it was not measured."""
    rows: float
    """Fraction of the training rows in the candidate's last fit."""
    seconds: float
    """Total fit time in seconds."""
    state: Literal['chosen', 'left', 'failed', 'untried']
    """`chosen`, `left` (not chosen), `failed` or `untried`."""
    reason: str
    """Why the candidate has this state."""

class LeakPattern(Record):
    """A pattern of a column that nearly only rows of one class have. The counts are those of the profiled
    rows.
    """

    pattern: str
    """The pattern, such as `is above 0` or `is missing`."""
    positive: bool
    """True if the positives have it, false if the negatives have it."""
    rows: int
    """Number of rows of the class that have it."""
    of_rows: int
    """Number of rows of the class."""
    others: int
    """Number of rows of the other class that have it."""
    of_others: int
    """Number of rows of the other class."""

class Letter(Record):
    """The letter of a row."""

    id: str | float | bool | None
    """Id of the row, if `id` was requested."""
    score: float
    """Score of the row."""
    points: float | None
    """Points of the row, as on the scorecard. Null for a model whose scores are not log odds."""
    reasons: list[LetterReason]
    """At most as many reasons as requested, the largest contribution first, without those whose share is
    below `least_share`.
    """
    text: str
    """The paragraphs, separated by empty lines, as plain text. Escape it before you put it into HTML.
    Paragraphs that occur twice are written once.
    """

class LetterReason(Record):
    """A reason in a letter."""

    code: str | None
    """Reason code. Null if no entry covers the feature."""
    features: list[str]
    """Features of the reason."""
    contribution: float
    """Amount added to the score relative to the reference."""
    share: float
    """Fraction of what all reasons, at most 20, add to the score."""
    points_lost: float | None
    """The same in points. Null for a model whose scores are not log odds."""
    has_template: bool
    """Whether the reason code has a letter. If not, the paragraph is the text of the reason."""
    paragraph: str
    """The paragraph, as plain text."""

class LettersAnswer(Record):
    """The letters of rows."""

    model_id: str
    """Id of the model."""
    revision: int | None
    """Revision of the reason codes. Null in a preview, and if the name has none. The paragraphs are
    generic without codes.
    """
    reference_score: float
    """Score of the reference."""
    cutoff_points: float | None
    """Points at the cutoff of the alias: rows with at most these are flagged. Null unless the request
    names an alias with a cutoff. Null like `points`, too.
    """
    least_share: float
    """Reasons with a smaller share are left out."""
    letters: list[Letter]
    """The letters, in the order of the rows."""

class ListMetric(Record):
    """A metric within queries: its mean over the queries in which it is defined."""

    metric: str
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
    """Number of queries in which the metric is undefined, because all rows have the same label or none is
    relevant.
    """
    effective_queries: float
    """Effective number of queries: this many queries of equal weight would be as informative."""

class ListMetrics(Record):
    """Metrics within queries. The intervals treat the queries, not the rows, as the random sample."""

    level: float
    """Confidence level of the intervals."""
    queries: int
    """Number of queries."""
    metrics: list[ListMetric]
    """One entry for each metric."""

class ListPoint(Record):
    """A point of a curve with the threshold it belongs to, or one bin of the histogram."""

    x: float
    """Horizontal coordinate; see `axes`."""
    y: float
    """Vertical coordinate; see `axes`."""
    threshold: float | None
    """Lowest score that is flagged. For a histogram: lower end of the bin. Null: no row is flagged."""
    high: float | None = None
    """Upper end of the bin. Present only in a histogram."""
    negatives: float | None = None
    """Fraction of the negatives in the bin. Present only in a histogram."""

class ListedDataset(Record):
    """A dataset in a list."""

    id: str
    """Id of the dataset."""
    series_id: str
    """Id of the first version of this series."""
    version: int
    """Version number: counts the datasets of this name, from 1. Numbers are never reused."""
    parent_id: str | None
    """The version that this one was made from; it may have been deleted. Null for the first version."""
    refresh_of: str | None = None
    """The dataset that this one refreshes: its source was read again. It may have been deleted. Null for
    any other dataset.
    """
    mode: Literal['append', 'replace'] | None
    """`append`: the rows of the parent, followed by the uploaded rows. `replace`: only the uploaded rows.
    Null for the first version.
    """
    name: str
    """Name of the dataset."""
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    """Kind of dataset."""
    status: Literal['processing', 'ready', 'invalid', 'unchanged']
    """`processing`, `ready`, `invalid`, or `unchanged`: a refresh has read the rows of `refresh_of`."""
    job_id: str | None
    """Id of the job that reads the table. Null if there is none."""
    content_type: Literal['text/csv', 'application/vnd.apache.parquet', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.arrow.file', 'application/x-ndjson', 'application/json', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet']
    """Media type of the upload."""
    content_encoding: Literal['gzip', 'zstd', 'zip'] | None
    """Compression of the upload. Null: none."""
    label: str | None
    """Name of the label column. Null without a single label, and until the service has chosen one."""
    positive: str | None
    """Label value that counts as positive. Null without a single binary label, and until the table has
    been read.
    """
    negative: str | None
    """Label value that counts as negative. Null without a single binary label, and until the table has
    been read.
    """
    weight: str | None
    """Name of the weight column. Null without one."""
    group: str | None
    """Name of the group column. Null without one."""
    query: str | None
    """Name of the query column: rows are ranked within each query. Null without one."""
    item: str | None
    """Name of the column of item names. Null unless the dataset is of kind `preferences`."""
    bytes: int
    """Size of the upload in bytes. 0 if the rows come from a source that was not read successfully."""
    sha256: str
    """SHA-256 of the content. For a first or replaced version: of the uploaded bytes. For an appended
    version: of the parent's `sha256` and `upload_sha256`, joined as text. For several files: as if each
    had been appended to the previous ones.
    """
    upload_sha256: str
    """SHA-256 of the uploaded bytes. For several files: of the list of their hashes."""
    rows: int | None
    """Number of rows. Null until the table has been read."""
    positives: int | None
    """Number of positive rows. Null without a single binary label, and until the table has been read."""
    negatives: int | None
    """Number of negative rows. Null without a single binary label, and until the table has been read."""
    pairs: Pairs | None
    """The pairs of a dataset of kind `preferences`. Null until they are uploaded."""
    created_at: str
    """Time of creation."""
    n_columns: int
    """Number of columns. 0 until the table has been read."""

class ListedModel(Record):
    """A model in a list."""

    id: str
    """Id of the model."""
    name: str
    """Name of the model. Its versions share the name."""
    version: int
    """Version number under this name, from 1."""
    algorithm: dict[str, Any]
    """Name of the algorithm and all its parameters."""
    objective: dict[str, Any] | None
    """Objective of the training: `metric` and its parameters. Null if the model was imported."""
    validation: dict[str, Any]
    """Validation method and its parameters."""
    optimised_for: dict[str, Any] | None
    """Objective that the algorithm itself optimises. It may differ from `objective`. Null if the model was
    imported.
    """
    selected_by: dict[str, Any] | None
    """Objective by which a search chose the parameters. Null without a search."""
    beats_baselines: bool | None
    """True if the model is significantly better than every baseline: see `…/baselines`. Null without
    baselines, and for a logistic regression or a linear SVM for the AUC, which are baselines
    themselves.
    """
    dataset_id: str
    """Id of the dataset."""
    dataset: DatasetVersion | None
    """The training dataset, under its name at that time. It remains when the dataset is deleted. Null if
    it was not recorded.
    """
    validation_dataset: DatasetVersion | None
    """The dataset that the model was validated on. Null unless the validation method is `dataset`."""
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    """Kind of the training dataset."""
    job_id: str
    """Id of the job that made this."""
    seed: int
    """Seed of all random numbers of the training."""
    tags: dict[str, str]
    """Tags of the training job."""
    created_at: str
    """Time of creation."""
    aliases: list[str]
    """Aliases that point to this version."""
    auc: Interval | None
    """AUC on the validation rows. Null without validation, and for models of pairs or several labels: see
    `…/metrics`.
    """

class LiveAlias(Record):
    """An alias, the fraction of rows it is expected to flag, and its last evaluation."""

    name: str
    """Name of the models."""
    alias: str
    """The alias, such as `live`."""
    model_id: str
    """Id of the model."""
    version: int
    """Version of the model."""
    updated_at: str
    """Time of the last change of the alias."""
    flagged: float | None
    """Fraction of the validation rows that its cutoff flags. Null without a cutoff."""
    memo: StoredMemo | None
    """Why the alias was last moved. Null if no memo was given."""
    evaluation_id: str | None
    """Id of the newest evaluation that was requested for this alias, or for its version without an alias,
    if its rows were new to the model. Null if there is none.
    """
    evaluated_at: str | None
    """Time of that evaluation. Null if there is none."""
    changed: bool | None
    """True if an evaluation found a change that still applies: none on newer rows has answered otherwise,
    and no later recalibration has handled it. Null without an evaluation.
    """
    recalibrated_at: str | None
    """Time of the last recalibration, if it was after that evaluation; otherwise null."""
    acknowledgement: Acknowledgement | None
    """Who has seen that change, when, and the reason for taking no further action. Null if nobody has, or
    if there is no change.
    """
    next_step: Literal['evaluate', 'recalibrate', 'retrain', 'compare'] | None
    """`evaluate`: there is no evaluation on new rows, or none since the recalibration. `recalibrate`: only
    the probabilities are wrong. `retrain`: the model ranks worse than at validation. `compare`: there
    is a newer version. Null: nothing to do, or the change was acknowledged.
    """
    feedback: StoredFeedback | None
    """The feedback settings. Null: its decisions are not recorded."""
    open_alarms: int
    """Number of alarms that nobody has acknowledged."""
    alarms_since: str | None
    """Start of the first period that raised one of these alarms. Null without one."""
    tested_until: str | None
    """End of the last period in which the monitor has tested the model that the alias points to. Null
    without such a period.
    """

class MarginRound(Record):
    """One round of boosting, under the pair weights of that round."""

    round: int
    """Number of the round, from 1."""
    edge: float
    """r = d+ − d−: weight of the pairs in order minus weight of the pairs out of order."""
    tied: float
    """d0: weight of the pairs that the weak ranker ties."""
    most_tied: float
    """Theorem 7 requires `tied` to be below this: 2/3 (1 − r)(1 − r²)."""
    holds: bool
    """True if `tied` is below `most_tied`."""

class MarginRounds(Record):
    """The condition of Theorem 7 for each round, from the first."""

    total: int
    """Number of rounds."""
    holds: int
    """Number of rounds in which the condition holds."""
    data: list[MarginRound]
    """One entry for each round shown."""

class MarginShare(Record):
    """Fraction of the training pairs with a margin of at most `theta`."""

    theta: float
    """Margin."""
    fraction: float
    """Weighted fraction of the training pairs with at most this margin."""

class Margins(Record):
    """Margins of the training pairs (score differences divided by `l1_norm`) and the generalisation bounds
    based on them.
    """

    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    l1_norm: float
    """Sum of the steps of all rounds. Scores are divided by it."""
    margin: float
    """Smallest margin of a pair. Positive if all pairs are in order."""
    smooth_margin: float
    """−ln of the ranking loss, divided by `l1_norm`. It is below `margin` and approaches it with more
    rounds.
    """
    weak_rankers: int
    """Upper bound on the number of different weak rankers."""
    distribution: list[MarginShare]
    """Distribution of the margins, from the smallest to the largest."""
    theta: float
    """Margin at which the bounds are evaluated, as requested."""
    delta: float
    """Probability that a bound fails, as requested."""
    bounds: list[MisrankBound]
    """The bounds on the probability of misranking a future pair."""
    best: BestPossibleMargin | None
    """The best margin of any combination of the weak rankers. Null if the linear programme is too large."""
    rounds: MarginRounds
    """Condition of Theorem 7 in each round."""
    losses: RoundLosses
    """Training losses of each round."""

class Me(Record):
    """The caller of a request, and what it may do."""

    principal_id: str
    """Id of the principal. The audit log and revisions refer to it."""
    kind: Literal['key', 'person', 'service']
    """`key`: an API key. `person` or `service`: from an identity provider."""
    name: str
    """Name of the key, the person or the service account."""
    owner: str
    """Owner of the resources that this request can access."""
    roles: list[Literal['viewer', 'scorer', 'trainer', 'approver', 'admin']]
    """Roles of the person or the service account at this owner. Empty for a key."""
    scopes: list[Literal['read', 'train', 'score', 'outcomes', 'approve', 'admin', 'operator']]
    """Scopes of the key or of the roles."""
    models: dict[str, list[str]]
    """Patterns of the model names that can be changed, for each scope that is restricted. Scopes that are
    absent are not restricted.
    """
    key_id: str | None
    """Id of the key that authenticates the request, or that started the browser session. Null for a person
    or a service account.
    """
    expires_at: str | None
    """Time when the key, token or session expires. Null: never."""

class MeanArea(BaselineWindow):
    """Mean of a partial AUC over the labels."""

    value: float | None
    """Mean over the labels. Null if no label has the value."""

class Member(Record):
    """One ranker of the ensemble."""

    algorithm: str
    """Name of the algorithm."""
    parameters: dict[str, Any]
    """Parameters of the algorithm."""
    weight: float
    """Weight of the ranker in the ensemble."""

class MetricBaselines(Record):
    """The model and the baselines by the metric of the job's objective."""

    metric: str
    """Name of the metric, as in `…/metric-estimates`. A row count is given as a fraction."""
    chosen: Interval
    """Value of the model."""
    baselines: list[BaselineArea]
    """Values of the baselines."""

class MetricEstimate(Record):
    """A metric with its confidence interval and a test against random scores."""

    value: float | None
    """The estimate. Null if it cannot be computed."""
    low: float | None
    """Lower end of the confidence interval. Null if there is no finite bound."""
    high: float | None
    """Upper end of the confidence interval. Null if there is no finite bound."""
    metric: str
    """Name of the metric, as requested."""
    chance: float | None
    """Value of the metric for random scores. Null if that is 0."""
    p_value: float | None
    """One-sided p-value of the hypothesis that the metric is no better than for random scores. Null if
    `chance` is null, if a class has fewer than 10 effective rows, or if the window of a partial AUC
    holds fewer than 3.
    """
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all metrics of the request. Null if `p_value` is null."""

class Metrics(Record):
    """Ranking metrics of a model on one part of the data."""

    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    level: float
    """Confidence level of each interval."""
    auc: Interval
    """Area under the ROC curve."""
    pauc: list[WindowArea]
    """Partial AUC over each window."""
    tpr_at_fpr: list[Height]
    """TPR at fixed false positive rates."""
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""
    ties: float
    """Fraction of the positive–negative pairs that have equal scores."""
    lists: ListMetrics | None = None
    """Metrics within queries; all other metrics treat the rows as one list. Null without queries."""
    weak_segments: WeakSegments | None = None
    """Segments of the rows in which the model ranks worse than elsewhere. Null for training rows, with too
    few rows of a class, with queries, if the model separates the classes, and for a validation table
    that is read column by column.
    """
    approximate: bool
    """Applies to the curve and the values read from it, not to the areas. True if the model was cross-
    validated. The curve then comes from out-of-fold scores, converted to the scale of the served
    ranker. The thresholds of the served ranker itself were not tested.
    """
    gini: Interval
    """2 AUC − 1: the Gini coefficient, also called the accuracy ratio."""
    ks: float | None
    """Kolmogorov–Smirnov distance: the largest difference between TPR and FPR. It is biased upwards in
    small samples. Null without a curve.
    """
    ks_threshold: float | None
    """The threshold with the largest TPR − FPR. If the model ranks better than chance, this difference is
    `ks`. Null without a curve, or if the best is to flag no rows.
    """
    operating_point: Cutoff | None
    """Rates on this part at the model's threshold, which was chosen on the validation rows. Null unless
    the objective is `tpr`.
    """
    metric: MetricEstimate | None = None
    """The metric of an objective such as `average_precision` or `precision` on this part, as in `…/metric-
    estimates`. A row count refers to the validation rows. Null for other objectives, and for `ndcg`
    with repeated cross-validation.
    """
    positive_weight: float
    """Total weight of the positive rows."""
    negative_weight: float
    """Total weight of the negative rows."""

class MisrankBound(Record):
    """Upper bound on the probability that the model misranks a future pair: a measured fraction plus
    `epsilon`.
    """

    name: str
    """Name of the bound."""
    source: str
    """Publication and theorem of the bound."""
    value: float | None
    """`margin_fraction` + `epsilon`. Null if the bound cannot be computed."""
    margin_fraction: float
    """Fraction of the training pairs with a margin of at most theta. For the held-out bound: fraction of
    the held-out pairs that are misranked.
    """
    epsilon: float | None
    """Sum of `terms`. Null if it cannot be computed."""
    terms: dict[str, float | None]
    """The terms of `epsilon`. Null values cannot be computed."""
    applies: bool
    """False if a condition of the theorem is not met."""
    reasons: list[str]
    """Why the bound does not apply. Empty if it does."""
    vacuous: bool
    """True if `value` is 1 or more: the bound then has no content."""

class MissingOutcomes(Record):
    """What missing outcomes could change. Tests use known outcomes only."""

    outcomes: int
    """Number of missing outcomes in the window."""
    known_share: float | None
    """Share of positives among the known outcomes. Null without any."""
    unchanged: UnchangedShares
    """Shares of positives among the missing outcomes at which the test would have found nothing."""
    explains: bool | None
    """Whether missing outcomes alone could explain an alarm: there is a share of positives among them at
    which the test would have found nothing. Null for the slope of the calibration: it is not known.
    """

class Model(Record):
    """A trained ranker."""

    id: str
    """Id of the model."""
    name: str
    """Name of the model. Its versions share the name."""
    version: int
    """Version number under this name, from 1."""
    algorithm: dict[str, Any]
    """Name of the algorithm and all its parameters."""
    objective: dict[str, Any] | None
    """Objective of the training: `metric` and its parameters. Null if the model was imported."""
    validation: dict[str, Any]
    """Validation method and its parameters."""
    optimised_for: dict[str, Any] | None
    """Objective that the algorithm itself optimises. It may differ from `objective`. Null if the model was
    imported.
    """
    selected_by: dict[str, Any] | None
    """Objective by which a search chose the parameters. Null without a search."""
    beats_baselines: bool | None
    """True if the model is significantly better than every baseline: see `…/baselines`. Null without
    baselines, and for a logistic regression or a linear SVM for the AUC, which are baselines
    themselves.
    """
    dataset_id: str
    """Id of the dataset."""
    dataset: DatasetVersion | None
    """The training dataset, under its name at that time. It remains when the dataset is deleted. Null if
    it was not recorded.
    """
    validation_dataset: DatasetVersion | None
    """The dataset that the model was validated on. Null unless the validation method is `dataset`."""
    kind: Literal['bipartite', 'preferences', 'multilabel', 'graded']
    """Kind of the training dataset."""
    job_id: str
    """Id of the job that made this."""
    seed: int
    """Seed of all random numbers of the training."""
    tags: dict[str, str]
    """Tags of the training job."""
    created_at: str
    """Time of creation."""
    aliases: list[str]
    """Aliases that point to this version."""
    features: list[ModelFeature]
    """The features, in the order of the artifact."""
    dialect: dict[str, str] | None = None
    """How the text of the training table is written: `decimal`, `thousands` and `dates`. CSV rows and
    query parameters to score are read in the same way. `encoding`, `delimiter` and `sheet`, if the
    upload set them, apply to tables to score that they fit. Null: the defaults.
    """
    missing: list[str]
    """Strings and numbers that count as missing in every value to score, besides null and the empty
    string; case does not matter. They come from the training table, and the field `missing` of a table
    to score overrides them.
    """
    rows: ModelRows
    """Numbers of rows of the dataset, of training and of validation."""
    label: str | None
    """Name of the label column. Null if the model was trained on pairs or several labels."""
    query: str | None = None
    """Column of the queries within which the model was trained. It is not a feature, so rows to score do
    not need it. Null without queries.
    """
    positive: str | None
    """Label value that counts as positive. Null without a single binary label."""
    negative: str | None
    """Label value that counts as negative. Null without a single binary label."""
    labels: list[LabelValues] | None
    """The labels of a model with several labels; otherwise null."""
    search: Search | None
    """The parameter search. Null without one."""
    operating_point: Cutoff | None
    """Best threshold on the validation rows at the FPR of the objective `tpr`. Null for other objectives
    and without validation.
    """
    warnings: list[str]
    """Warnings from the training."""
    monotone: MonotoneProof | None
    """Verification of the monotone constraints. Null if the model was trained without them."""
    protected: list[ModelProtectedColumn] | None = None
    """The protected columns of the training dataset, and which of them are features by whose decision.
    Null for a model of a release that did not store them.
    """
    proxies: list[ProxyTest] | None = None
    """How well the features predict each protected column of the training dataset that is not a feature.
    Null without such columns, and if it was not measured.
    """
    importance_job_id: str | None
    """Job that measures the feature importances after the training. Null if the training measured them."""
    imported: Imported | None = None
    """Where an imported model comes from. Its training rows are unknown, and all rows of
    `validation_dataset` count as held out. Null for a model that was trained by a job.
    """
    fit_seconds: float
    """Time of the final fit in seconds."""
    artifact: Artifact
    """Checksum and size of the model file."""
    included: ModelParts | None = None
    """The parts requested by `include`. Absent without `include`."""

class ModelBins(Record):
    """The bins of a scorecard."""

    model_id: str
    """Id of the model."""
    level: float
    """Confidence level of the intervals."""
    pdo: float
    """Points to double the odds."""
    base_score: float
    """Points at which the odds are `base_odds`."""
    base_odds: float
    """Number of negatives to one positive at `base_score`."""
    base_points: float
    """Points before the bins of a row add theirs."""
    train_rows: int
    """Number of training rows."""
    held_out_rows: int | None
    """Number of held-out rows that were counted, at most 100,000. Null without such rows."""
    features: list[BinnedFeature]
    """The features, by descending IV on held-out rows, or else on training rows."""
    refit: RefitParameters
    """The algorithm that trains with the same bins."""

class ModelChecks(Record):
    """Whether the model is ready for use: six findings about its stored results."""

    model_id: str
    """Id of the model."""
    answer: Literal['yes', 'no', 'unknown', 'not_applicable']
    """`no` if one of the findings is `no`; else `unknown` if one is; else `yes`. Those that are
    `not_applicable` do not count.
    """
    findings: list[Finding]
    """`ranks`, `beats_baselines`, `probabilities`, `ranking_kept`, `stable` and `groups`, in this order."""

class ModelCurve(Record):
    """A curve of a model on one part of its data."""

    kind: Literal['precision_recall', 'gains', 'cost', 'histogram']
    """Kind of curve."""
    axes: list[str]
    """Meaning of `x` and `y`: recall and precision; fraction of the rows and recall; weight and cost; or
    the lowest score of a bin and the fraction of the positives in it.
    """
    prevalence: float | None
    """Fraction of positives that the curve assumes. Default: that of the data. Null for cost curves, whose
    weight includes it, and for histograms, which show each class separately.
    """
    exact: bool
    """False if points were omitted because of `max_points`."""
    total_points: int
    """Number of points of the full curve."""
    points: list[ListPoint]
    """The points of the curve, from the highest threshold to the lowest; the bins of a histogram, from the
    lowest score to the highest.
    """
    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    approximate: bool
    """True if the model was cross-validated. The curve then comes from out-of-fold scores, converted to
    the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class ModelFeature(Record):
    """A feature that the model uses."""

    name: str
    """Name of the column."""
    type: Literal['numeric', 'boolean', 'datetime', 'categorical']
    """`numeric`, `boolean`, `datetime` or `categorical`."""
    missing: bool
    """True if the feature had missing values in training. Rows to score may then omit it."""
    categories: list[str] | None = None
    """The first 100 categories in text order; the artifact has all. An unknown category counts as missing.
    Null unless the feature is categorical.
    """
    n_categories: int | None = None
    """Number of categories. Null unless the feature is categorical."""

class ModelGains(Record):
    """The gains table of a model on one part of its data."""

    level: float
    """Confidence level of each interval."""
    prevalence: float
    """Fraction of positives that the table assumes. Default: that of the data."""
    rows: list[Gain]
    """One entry for each list size, ascending."""
    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    approximate: bool
    """True if the model was cross-validated. The curve then comes from out-of-fold scores, converted to
    the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class ModelMetricEstimates(Record):
    """Metrics of a model on one part of its data."""

    level: float
    """Confidence level of each interval."""
    metrics: list[MetricEstimate]
    """One entry for each requested metric."""
    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    approximate: bool
    """True if the model was cross-validated. The curve then comes from out-of-fold scores, converted to
    the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class ModelOfErasedRows(Record):
    """A model that was trained, validated or calibrated on rows of the entity."""

    model_id: str
    """Id of the model."""
    name: str
    """Name of the model."""
    version: int
    """Version of the model."""
    retired: bool
    """Whether the model was deleted permanently, because its artifact contains rows or keys."""

class ModelParts(Record):
    """Parts of a model, each as its own route returns it. Parts that the model does not have are listed in
    `absent`.
    """

    metrics: Metrics | PairMetrics | MultilabelMetrics | GradedMetrics | None = None
    """As returned by `…/metrics`."""
    roc: Roc | None = None
    """As returned by `…/roc`."""
    operating_points: OperatingPoints | None = None
    """As returned by `…/operating-points`."""
    operating_point: OperatingPoint | None = None
    """As returned by `…/operating-point`."""
    absent: list[AbsentPart]
    """Requested parts that the model does not have."""

class ModelProtectedColumn(Record):
    """A column that the training dataset declares as protected."""

    name: str
    """Name of the column."""
    type: Literal['numeric', 'boolean', 'datetime', 'categorical']
    """Type of the values: `numeric`, `boolean`, `datetime` or `categorical`."""
    feature: bool
    """True if the column is a feature of the model, because the training job named it in
    `protected_features`.
    """
    decided_by: str | None
    """Name of the key that created the training job. Null if the column is not a feature."""
    decided_at: str | None
    """When the training job was created. Null if the column is not a feature."""

class ModelRows(Record):
    """Numbers of rows of a model: of its dataset, of training, and of validation. A model of pairs counts
    pairs.
    """

    unit: Literal['rows', 'pairs']
    """What is counted."""
    dataset: int | None
    """Number in the training dataset. Null if the dataset was deleted."""
    training: int | None
    """Number that the served ranker was trained on. All of the dataset, except with validation method
    `holdout`. A warning says so if `auto` used a fraction of them. Null if it was not recorded.
    """
    validation: int | None
    """Number that the validation metrics are of, each counted once. With cross-validation, each was scored
    by a ranker that was trained without it; by time, the rows of the first window are not among them.
    Null without validation.
    """

class ModelThresholdGroups(Record):
    """Groups of protected columns on a model's validation rows, at one threshold."""

    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    chosen_by: Literal['request', 'alias', 'objective', 'ks']
    """Where the threshold comes from. `request`: the parameter. `alias`: the cutoff of the alias.
    `objective`: the model's objective. `ks`: the largest difference between TPR and FPR.
    """
    favourable: Literal['not_flagged', 'flagged']
    """The favourable outcome, to which the verdicts refer, as requested."""
    level: float
    """Confidence level of each interval."""
    rule: float
    """Lowest ratio that is acceptable by the four-fifths rule."""
    passes: bool | None
    """True: all columns pass. False: one fails. Null: not enough data."""
    columns: list[ThresholdColumn]
    """The compared columns."""
    model_id: str
    """Id of the model."""
    approximate: bool
    """True for out-of-fold scores (cross-validation), whose thresholds were never applied to the model."""

class MonitorSettings(Record):
    """The scheduled tests of an alias."""

    period: Literal['day', 'week', 'month']
    """Length of a period. A test is made at the end of each."""
    alpha: float
    """Probability of a false alarm within a year, of all families together."""
    tolerance: dict[str, float]
    """Differences from the validation, by metric, up to which nothing is wrong."""

class MonitoredGroups(Record):
    """Groups of entities between which decisions should not differ."""

    columns: dict[str, list[str]]
    """Protected columns, each with the values that are compared; the first one is the reference group."""
    favourable: Literal['not_flagged', 'flagged']
    """Which decision is favourable to the entity. Its rates are compared between groups."""

class MonitoredPeriod(Record):
    """A period with its scheduled tests."""

    start: str
    """Start of the period, which is included."""
    end: str
    """End of the period, which is not included."""
    decisions: int
    """Number of recorded decisions when the period ended."""
    lost: int
    """Number of decisions that were not recorded: a log was full, or a process ended."""
    corrections: int | None
    """Corrected outcomes, when the horizon had passed. Null before."""
    ambiguous: int | None
    """Decisions whose outcome names an entity that has another decision before the event, within the
    horizon. By another rule, the outcome would belong to that decision. Null before the horizon has
    passed.
    """
    versions: list[PeriodVersion]
    """Decisions by model and threshold, the most frequent first, at most 20."""
    tests: list[ScheduledTest]
    """The scheduled tests of this period so far, one for each family."""

class MonotoneProof(Record):
    """Verification of the monotone constraints of the fitted model, over all its steps or leaves."""

    verdict: Literal['proven', 'violated', 'not_proven']
    """`proven`: the constraints hold for every row. `violated`: `violation` is a counterexample.
    `not_proven`: neither a proof nor a counterexample was found.
    """
    columns: dict[str, Literal['increasing', 'decreasing']]
    """The constrained columns and their directions."""
    compared: int
    """Number of comparisons: of neighbouring steps, of coefficients with 0, or of pairs of leaves."""
    missing: str
    """Rule for missing values."""
    violation: dict[str, Any] | None
    """Two rows that differ only in one constrained column and have scores in the wrong order. Null unless
    `verdict` is `violated`.
    """

class MultilabelMetrics(Record):
    """Metrics of a model with several labels on one part of the data: for each label, and their means."""

    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    level: float
    """Confidence level of each interval."""
    labels: list[LabelMetrics]
    """Metrics of each label."""
    evaluated: int
    """Number of labels that have an AUC. The means are over these."""
    mean_auc: float | None
    """Mean AUC over these labels. Null if there are none."""
    mean_pauc: list[MeanArea]
    """Mean partial AUC over these labels, for each window."""

class NetBenefit(Record):
    """Net benefit of acting on the rows with a probability of at least `threshold`, in true positives per
    row: the fraction of true positives minus the fraction of false positives times threshold / (1 −
    threshold) (Vickers & Elkin 2006). Acting on no row has a net benefit of 0.
    """

    threshold: float
    """Threshold probability, between 0 and 1."""
    flagged: float
    """Fraction of the rows with at least this probability."""
    benefit: Interval
    """Net benefit. Above 0: better than acting on no row."""
    flag_all: Interval
    """Net benefit of acting on every row."""
    over_all: Interval
    """`benefit` minus `flag_all`, as a paired difference. Above 0: better than acting on every row."""

class NewCosts(Record):
    """Costs and benefits of decisions, in the unit of the amounts. At least one must favour flagging a
    row, and at least one must favour not flagging it.
    """

    false_positive: Price | None = None
    """Cost of flagging a negative, in addition to its review. Default: `{"fixed": 0.0, "rate": 0.0}`."""
    false_negative: Price | None = None
    """Cost of a positive that is not flagged. Default: `{"fixed": 0.0, "rate": 0.0}`."""
    benefit: Price | None = None
    """Benefit of a positive that is flagged. Default: `{"fixed": 0.0, "rate": 0.0}`."""
    review: float | None = None
    """Cost of each flagged row. Default: `0.0`."""

class NewWindow(Record):
    """A window of false positive rates."""

    fpr_min: float | None = None
    """Lower end of the window. Default: `0.0`."""
    fpr_max: float
    """Upper end of the window. It must be greater than `fpr_min`."""

class NewestArea(Record):
    """AUC on the newest rows, with its confidence interval."""

    value: float
    """The estimate."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""

class OperatingPoint(Cutoff):
    """One threshold and its consequences on one part of the data."""

    note: str | None = None
    """A caution: the cutoff was chosen on the rows that its rates are from, by an FPR, a TPR or the lowest
    cost, so they are optimistic. Null for a given threshold or fraction of flagged rows, and with a
    confidence.
    """
    guarantee: RateGuarantee | None = None
    """The guarantee. Null if no `confidence` was requested."""
    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    approximate: bool
    """True if the model was cross-validated. The curve then comes from out-of-fold scores, converted to
    the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class OperatingPoints(Record):
    """Thresholds along the ROC curve of one part of the data, from flagging no row to flagging all rows."""

    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    approximate: bool
    """True if the model was cross-validated. The curve then comes from out-of-fold scores, converted to
    the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """
    level: float
    """Confidence level of each interval."""
    exact: bool
    """False if points of the curve were omitted."""
    total_points: int
    """Number of points of the full curve."""
    of_ks: int
    """Index in `points`, from 0, of the point with the largest TPR − FPR on the full curve. If the model
    ranks better than chance, this difference is the KS statistic. Of equal points, the one that flags
    the fewest rows.
    """
    least_cost: int | None
    """Index in `points`, from 0, of the point with the lowest cost. Null if no costs were given."""
    of_objective: int | None
    """Index in `points`, from 0, of the best point at the FPR of the objective `tpr`, or at the highest
    FPR that the objective `pauc` counts. Null for other objectives.
    """
    of_flagged: int | None
    """Index in `points`, from 0, of the best point that flags at most the fraction `flagged` of the rows.
    Null if `flagged` was not given.
    """
    of_aliases: dict[str, int]
    """Alias → index in `points`, from 0, of the point that flags the same rows. Only aliases with a
    cutoff; if there are more than 20, the most recently moved.
    """
    probabilities: list[float | None] | None
    """For each entry of `points`, the calibrated probability of a row with exactly this score; null where
    no row is flagged. Null if the model has no calibration.
    """
    points: list[Cutoff]
    """The thresholds with their rates, from flagging no row to flagging all rows."""

class OutOfFold(Record):
    """The out-of-fold scores of a cross-validated model. Its AUC and curve are computed from them."""

    model_id: str
    """Id of the model."""
    repeats: int
    """Number of repeats."""
    folds: int
    """Number of folds in each repeat."""
    fold_aucs: list[FoldAuc]
    """AUC of each fold."""
    columns: list[str]
    """Names of the columns of `data`."""
    data: list[list[float]]
    """One entry per row and repeat. `row` counts from 0 in the order of the dataset; `repeat` and `fold`
    count from 1; `y` is 1 for a positive. `score` is on the scale of the fold's ranker. `aligned_score`
    is on the scale of the served ranker: equal quantiles of the two rankers' scores on the fold's
    training rows have equal scores.
    """

class OutcomeRule(Record):
    """How outcomes are attributed to decisions, and when a decision without an outcome is mature."""

    horizon_days: float
    """Days after a decision at which its outcome counts as final."""
    silence: Literal['negative'] | None
    """What a decision without an outcome is at the horizon. Null: unknown."""
    attribute: Literal['last_before_event', 'first_before_event', 'all_before_event']
    """Decisions of an entity that an outcome without a decision id belongs to."""

class OutcomesReceived(Record):
    """The counts of a request of outcomes."""

    rows: int
    """Number of outcomes."""
    matched: int | None
    """Number of outcomes whose decision, or whose entity, has been recorded. Null if there are too many
    decisions to look up at once.
    """
    unmatched: int | None
    """Number of the other outcomes. They are kept, and wait for their decision."""
    corrected: int | None
    """Number of outcomes that replace an earlier one. Null if there are too many outcomes to look up."""
    duplicates: int | None
    """Number of outcomes with the same content as the newest known one. They are not stored again."""
    replayed: int | None
    """Number of outcomes without `known_at` that equal an earlier outcome, which was corrected since. They
    are ignored: to change back, send `known_at`.
    """

class OutdatedAlias(Record):
    """An alias that points to a model although there is a newer version."""

    name: str
    """Name of the models."""
    alias: str
    """The alias, such as `live`."""
    model_id: str
    """Id of the model."""
    version: int
    """Version of the model."""
    newest_model_id: str
    """Id of the newest version."""
    newest_version: int
    """Number of the newest version."""
    comparison_id: str | None
    """The newest comparison of both. Null if there is none, or if its rows are training rows of one of
    them.
    """

class OverTime(Record):
    """Changes of the table's rows over time, by the column of dates that orders them."""

    column: str
    """Name of the column with the time of each row."""
    unit: Literal['week', 'month', 'quarter', 'year', 'decade']
    """Length of the periods."""
    rows: int
    """Number of profiled rows with a time."""
    tested_rows: int
    """Number of rows whose columns were compared: all, or a random sample."""
    level: float
    """Confidence level of the intervals."""
    alpha: float
    """Probability that a table without a change has a finding."""
    periods: list[RowsOfPeriod]
    """The periods with rows, the earliest first; at most 60, of longer tables longer ones."""
    changes: list[ChangeOverTime]
    """The changes; empty if nothing has changed."""
    varying: list[ChangedColumn]
    """Columns that differ from period to period without one change that explains most of it; 20 at most.
    `psi` is that of the periods that differ most.
    """
    positives_vary: bool
    """True if the fraction of positives differs in this way."""
    untested: list[UntestedColumn]
    """Columns without a test."""
    words: str | None
    """What has changed, and what to do. Null if nothing has."""

class Overview(Record):
    """Running and ended jobs, resources that need attention, and the newest resources."""

    under_way: list[Job]
    """Running jobs, then jobs that are being cancelled, then queued jobs; up to `limit` of each."""
    ended: list[Job]
    """The newest jobs that have ended, among the newest `searched_jobs`."""
    searched_jobs: int
    """Number of newest jobs that were searched for `ended`: at most 50."""
    has_older_jobs: bool
    """True if there are older jobs that were not searched."""
    break_glass: list[BreakGlass]
    """Aliases whose protection is suspended now, the first that ends first."""
    live: list[LiveAlias]
    """The aliases, the most recently moved first."""
    failed: list[Job]
    """The newest unresolved failures, as listed by `GET /v1/jobs?kind=all&unresolved=true`."""
    failed_next: str | None
    """Cursor of the next page of that list: pass it as `after`. Null if there are no more failures."""
    drifted: list[DriftedModel]
    """Models that changed significantly according to the newest answers of evaluations of the version or
    of an alias: those that nobody has acknowledged first, and then the most recently evaluated first.
    If the model was recalibrated afterwards, changes of its probabilities and of the fraction of
    positives do not count.
    """
    has_more_drifted: bool
    """True if there are more such models than `limit`."""
    outdated: list[OutdatedAlias]
    """Aliases of models that have a newer version. Excluded is an alias whose model ranks better than the
    newest version in their newest comparison, on rows that its model was not trained on.
    """
    has_more_outdated: bool
    """True if more than `limit` aliases point to models that have a newer version."""
    models: list[ListedModel]
    """The newest models."""
    datasets: list[ListedDataset]
    """The newest datasets."""

class OwnerQuota(Record):
    """The limits of an owner. Null: the setting of the service applies, otherwise no limit."""

    owner: str
    """The owner."""
    bytes: int | None
    """Bytes in files and deletable database rows."""
    dataset_rows: int | None
    """Rows of all datasets."""
    models: int | None
    """Models and unfinished training jobs."""
    aliases: int | None
    """Aliases of models."""
    keys: int | None
    """Valid keys."""
    queued_jobs: int | None
    """Queued jobs."""
    running_jobs: int | None
    """Running jobs and parts of jobs."""
    updated_at: str | None
    """Time of the last change. Null: the owner has no individual limits."""

class PairMetrics(EvaluatedPairs):
    """Metrics of a model trained on pairs, on the pairs of one part."""

    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    level: float
    """Confidence level of each interval."""

class Pairs(Record):
    """The pairs of a dataset of kind `preferences`: which item is better than which."""

    status: Literal['processing', 'ready', 'invalid']
    """`processing`, `ready` or `invalid`."""
    job_id: str
    """Id of the job that reads the pairs."""
    content_type: Literal['text/csv', 'application/vnd.apache.parquet', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.arrow.file', 'application/x-ndjson', 'application/json', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet']
    """Media type of the upload."""
    content_encoding: Literal['gzip', 'zstd', 'zip'] | None
    """Compression of the upload. Null: none."""
    bytes: int
    """Size of the upload in bytes."""
    sha256: str
    """SHA-256 of the uploaded bytes."""
    pairs: int | None
    """Number of pairs. Null until they have been read."""
    items: int | None
    """Number of different items in the pairs. Null until they have been read."""
    weighted: bool | None
    """True if the pairs have weights. Null until they have been read."""
    errors: list[TableFault]
    """Errors in the table. Empty unless `status` is `invalid`."""
    created_at: str
    """Time of creation."""

class Part(Record):
    """State of one component."""

    ok: bool
    """True if the component works."""
    detail: str
    """What was checked, or what is wrong."""

class PartialDependence(Record):
    """Mean scores when one or two features are set to each value of a grid."""

    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data that the scores are averaged over."""
    label: str | None
    """Label whose scores were used. Null for a model with one label."""
    rows: int
    """Number of rows that each mean is taken over."""
    features: list[DependenceAxis]
    """The one or two features and their grid values."""
    scores: list[Any]
    """Mean scores, one per grid value. For two features: one list for each value of the first, with one
    entry for each value of the second.
    """

class PeriodEstimate(Record):
    """A metric with its 95 % confidence interval, which holds for this period alone, not for all tests
    together.
    """

    value: float
    """The metric."""
    low: float | None
    """Lower confidence limit. Null if the effective number of positives among explored decisions is below
    20.
    """
    high: float | None
    """Upper confidence limit. Null if `low` is null."""
    rows: float
    """Effective number of rows."""

class PeriodLevel(Record):
    """Calibration level of one time window, with its confidence interval."""

    value: float
    """The level, in log odds."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""

class PeriodMetrics(Record):
    """Metrics of the decisions of a period, weighted by the inverse of the probability of review."""

    population: Literal['all', 'flagged', 'unflagged', 'none']
    """Decisions that the AUC describes."""
    decisions: int
    """Number of decisions."""
    reviewed: int
    """Decisions that were to be reviewed and have an outcome."""
    missing: int
    """Decisions that were to be reviewed and have no outcome."""
    unselected: int
    """Decisions with an outcome that were not to be reviewed. They are left out: whether such an outcome
    becomes known may depend on it.
    """
    explored: int
    """Explored decisions with an outcome."""
    explored_positives: int
    """Positives among them."""
    explored_needed: int | None
    """Further explored outcomes until the effective number of positives among them is 20, at the present
    rate. Null if the rate is not known, or nothing is explored.
    """
    auc: PeriodEstimate | None
    """AUC. Null if the outcomes are of one class."""
    precision: PeriodEstimate | None
    """Fraction of positives among flagged decisions. Null if these have no outcomes."""
    miss_rate: PeriodEstimate | None
    """Fraction of positives among decisions that were not flagged. Null if these have no outcomes."""
    recall: PeriodEstimate | None
    """Fraction of the positives that were flagged. Null unless the population is `all`."""

class PeriodVersion(Record):
    """The recorded decisions of a period that one model made at one threshold."""

    model_id: str
    """Id of the model."""
    threshold: float | None
    """Lowest score that was flagged. Null without one."""
    rows: int
    """Number of recorded decisions."""
    known: int
    """Number of these whose outcome was known. 0 before the horizon."""
    positives: int
    """Number of positive outcomes."""
    flagged: int
    """Number of flagged decisions."""
    flagged_known: int
    """Number of flagged decisions that were to be reviewed and have an outcome."""
    flagged_positives: int
    """Number of positives among these."""
    explored: int
    """Number of decisions that were chosen at random for review."""

class Point(Record):
    """A point of a ROC curve: the rates if every row with a score of at least `threshold` is flagged."""

    fpr: float
    """False positive rate at this threshold."""
    tpr: float
    """True positive rate at this threshold."""
    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    low: float | None = None
    """Lower confidence limit of the TPR at this FPR. Present only with `band`."""
    high: float | None = None
    """Upper confidence limit of the TPR at this FPR. Present only with `band`."""

class PointsAnswer(Record):
    """The points of rows."""

    model_id: str
    """Id of the model."""
    pdo: float
    """Points to double the odds."""
    base_score: float
    """Points at which the odds are `base_odds`."""
    base_odds: float
    """Number of negatives to one positive at `base_score`."""
    base_points: float
    """Points before the features of a row add theirs."""
    rows: list[RowPoints]
    """The rows, in the order of the request."""

class PointsCutoff(Record):
    """A cutoff in points, as a threshold of the score, and as a probability."""

    model_id: str
    """Id of the model."""
    pdo: float
    """Points to double the odds."""
    base_score: float
    """Points at which the odds are `base_odds`."""
    base_odds: float
    """Number of negatives to one positive at `base_score`."""
    points: float
    """Rows with at most these points are flagged."""
    threshold: float
    """The same rows have at least this score: the least score whose points are at most `points`."""
    odds: float | None
    """Number of negatives to one positive at the cutoff. Null if it is too large for a float64."""
    probability: float
    """Probability of a positive at the cutoff, by the odds of the scorecard. The calibrated probability of
    a score may differ.
    """
    fpr: float | None
    """Fraction of the negative validation rows that are flagged. Null without validation."""
    tpr: float | None
    """Fraction of the positive validation rows that are flagged. Null without validation."""

class PositivesOfChange(Record):
    """Fractions of positives, in the periods of a change and in all others."""

    inside: Interval
    """Fraction of positives in the periods of the change."""
    outside: Interval
    """Fraction of positives in all other periods."""
    changed: bool | None
    """True if the fraction of positives has changed significantly in these periods, false if it has not
    changed at all. Null if it has changed in other periods, or was not tested.
    """

class Preview(Record):
    """The first rows of a table."""

    columns: list[str]
    """Names of the columns."""
    data: list[list[float | bool | str | None]]
    """The rows, each as a list of values in the order of `columns`. Missing values are null."""

class Price(Record):
    """The cost of one row: `fixed` + `rate` × its amount. Each is 0 or at least 1e-100."""

    fixed: float | None = None
    """Cost per row, independent of its amount. Default: `0.0`."""
    rate: float | None = None
    """Cost per unit of the row's amount. Requires `amount`. Default: `0.0`."""

class ProbabilityDrift(Record):
    """Difference between the model's probabilities and the outcomes on this dataset."""

    value: float | None
    """The estimate. Null if it cannot be computed."""
    low: float | None
    """Lower end of the confidence interval. Null if there is no finite bound."""
    high: float | None
    """Upper end of the confidence interval. Null if there is no finite bound."""
    of: Literal['in_the_large', 'slope', 'shape']
    """`in_the_large`: constant error of the log odds, 0 if predicted and observed positives agree.
    `slope`: slope of the log odds, 1 if the probabilities are neither too extreme nor too moderate.
    `shape`: root mean square distance of the log odds from a line, 0 if no error changes sign along the
    probabilities.
    """
    predicted: float
    """Mean predicted probability."""
    observed: float
    """Observed fraction of positives."""
    p_value: float
    """p-value of the test. It allows for the error of the calibration, which was fitted on the validation
    rows; the interval covers only these rows.
    """
    adjusted_p_value: float
    """p-value adjusted with Holm's method over all tests of this drift."""
    changed: bool
    """True if the change is statistically significant and large enough to matter."""
    words: str
    """The result in one sentence."""

class ProbabilitySaving(Interval):
    """Held-out cost per row of the cutoff, minus that of deciding by probability. Above 0: deciding by
    probability is cheaper.
    """

    p_value: float
    """p-value of the hypothesis that there is no difference."""

class Progress(Record):
    """Progress of a running job: its phase, its steps and its best candidates. After a job has succeeded,
    `fraction` (1), `best`, `leaderboard` and `improvements` remain.
    """

    fraction: float | None = None
    """Fraction of the job that is done, from 0 to 1. For a job with a time budget: the fraction of the
    budget that is used. Null if it is unknown.
    """
    phase: str | None = None
    """`reading the source`, `reading the table`, `compiling`, `preparing` (before the first step of a
    fit), `fitting`, `measuring` or `comparing` (with baselines). Null if it is unknown.
    """
    auto_phase: str | None = None
    """For the algorithm auto: the phase that currently uses its budget, such as portfolio or last fits.
    Null otherwise.
    """
    algorithm: str | None = None
    """Algorithm that is currently being fitted. Null if none is."""
    parameters: dict[str, Any] | None = None
    """Parameters of the current candidate, as on the leaderboard. Null if there is none."""
    rows: int | None = None
    """Number of training rows, or of pairs, of the current fit. Null if none is running."""
    trial: int | None = None
    """For a search: number of the current trial. A trial is one fit on one inner split. Null otherwise."""
    trials: int | None = None
    """Total number of trials. Null if it is unknown, as with `auto`."""
    fold: int | None = None
    """For cross-validation: number of the current fold. Null otherwise."""
    step: int | None = None
    """Number of rounds, or other steps, that the current fit has completed. For a job in parts: number of
    finished parts. Null if it is unknown.
    """
    of: int | None = None
    """Total number of steps or parts. Null if it is unknown."""
    detail: str | None = None
    """Metrics of the last step, as text for people: the loss; the AUC on a sample of the training rows, if
    it is cheap; the AUC on the validation rows of early stopping. Null if there are none.
    """
    best: Best | None = None
    """The best candidate so far. Null until there is one."""
    leaderboard: list[ProgressRow] | None = None
    """The ten best candidates so far, best first. After a job has succeeded: the chosen one, then the best
    of the others, with the values that the model stores (`/v1/models/{id}/leaderboard`, or `search`).
    """
    improvements: list[Improvement] | None = None
    """Up to 100 reports in which the best value improved, in order of time."""
    keepable: bool | None = None
    """True if `POST …/cancel?keep=true` can keep a candidate now. Default: `false`."""
    elapsed_seconds: float | None = None
    """Seconds from the start of the job to this report. A job reports once a second. Null if it is
    unknown.
    """
    seconds_left: float | None = None
    """Seconds left of the budget of `auto` at this report. The budget is paused in the phase `compiling`.
    Null without a budget.
    """

class ProxyAuc(Record):
    """AUC of scores that predict a protected column, with its confidence interval."""

    feature: str | None
    """The feature that alone makes the scores. Null: all features of the model together."""
    value: float | None
    """The AUC, from scores of rows that the scores were not fitted on; 0.5 is random. Null if `reason`
    says why.
    """
    low: float | None
    """Lower end of the confidence interval."""
    high: float | None
    """Upper end of the confidence interval."""
    reason: str | None
    """Why there is no value. Null if there is one."""

class ProxyTest(Record):
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

class Quantile(Record):
    """A quantile: the smallest value that at least the fraction `at` of the rows does not exceed."""

    at: float
    """Fraction of the rows."""
    value: float
    """Value of the quantile."""

class QueryParameter(Record):
    """A parameter of a query."""

    name: str
    """Name of the parameter."""
    type: Literal['text', 'integer', 'number', 'boolean', 'date', 'timestamp']
    """Type of its values."""

class QuerySizes(Record):
    """Number and sizes of the queries of a dataset."""

    queries: int
    """Number of queries."""
    with_pairs: int
    """Number of queries that have rows with different labels. Only these are used for training and
    metrics.
    """
    min_rows: int
    """Number of rows in the smallest query."""
    median_rows: float
    """Median number of rows per query."""
    max_rows: int
    """Number of rows in the largest query."""

class RandomSplits(Record):
    """AUCs of a baseline on random splits of the rows: their mean, the lowest and the highest. Models of
    releases up to 0.3 have the AUC of one split with its confidence interval, without the other
    members.
    """

    value: float
    """The estimate."""
    low: float
    """Lower end of the confidence interval."""
    high: float
    """Upper end of the confidence interval."""
    newest: NewestArea | None = None
    """AUC of the baseline on the newest of these rows, trained on the others."""
    splits: int | None = None
    """Number of random splits."""
    rows: int | None = None
    """Number of rows of each split: a sample if the dataset has more."""
    p_value: float | None = None
    """Two-sided p-value of a permutation test. At most 0.05 if the AUC on the newest rows is outside the
    range of the random splits: then there is a significant effect of time. Above 0.05, the difference
    may be due to chance.
    """

class Ranking(Record):
    """Row numbers, best row first, with their scores and probabilities."""

    model_id: str
    """Id of the model."""
    warnings: list[ScoreWarning] | None = None
    """Absent without warnings. Responses in other formats than JSON have the first ten as JSON in the
    header `X-Warnings`.
    """
    ids: list[str | float | bool | None] | None = None
    """Id of each row. Present only if `id` was requested. In a table, this is the column `id`."""
    indices: list[int]
    """Row numbers, from 0, best row first."""
    scores: list[float]
    """Score of each row, in the order of `indices`."""
    probabilities: list[float] | None = None
    """Probability that each row is positive, by the model's calibration. Null if the model has no
    calibration. Absent with `probability=false`.
    """
    probabilities_low: list[float] | None = None
    """Lower values of the Venn–Abers pairs: the probabilities if the row itself is counted as a negative.
    Present only with `interval=true`.
    """
    probabilities_high: list[float] | None = None
    """Upper values of the Venn–Abers pairs: the probabilities if the row itself is counted as a positive.
    Present only with `interval=true`.
    """
    no_probability: str | None = None
    """Why there is no probability. Present only if one was requested and the model has no calibration."""
    points: list[float] | None = None
    """The scores in points, by the scale of the model. More points mean lower odds of a positive. Absent
    unless the model is of the algorithm `scorecard`.
    """
    decision_ids: list[str] | None = None
    """Id of the decision about each row, to which its outcome refers. Absent if the decisions of the alias
    are not recorded.
    """
    reviews: list[bool] | None = None
    """Whether to review each row: it is flagged, or drawn at random. Absent if the decisions of the alias
    are not recorded.
    """

class RateGuarantee(Record):
    """The guarantee of a threshold for future rows from the same population."""

    rate: Literal['fpr', 'tpr']
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
    """Largest number of these rows that the threshold may get wrong: negatives flagged or positives
    missed.
    """
    broken: float
    """Upper bound on the probability that the guarantee fails: at most 1 − `confidence`."""

class RateOrThreshold(Record):
    """The cutoff to evaluate at. Set exactly one member."""

    fpr: float | None = None
    """Use the model's cutoff with at most this FPR, chosen on its validation rows."""
    tpr: float | None = None
    """Use the model's cutoff with at least this TPR, chosen on its validation rows."""
    threshold: float | None = None
    """Flag every row with a score of at least this."""

class Reason(Record):
    """A reason: a part of the difference between the score and the reference."""

    code: str | None
    """Reason code. Null if no entry of the reason codes matches."""
    text: str
    """Text of the reason."""
    columns: list[str]
    """Features whose contributions are summed."""
    contribution: float
    """Contribution to the difference between the score and the reference."""
    error: float
    """Standard error of an estimated contribution: the exact value is within twice this with 95 %
    confidence. 0: the contribution is exact. For a code that sums several features it is an upper
    bound.
    """
    protected: bool
    """Whether one of the columns is a protected column."""

class ReasonCodes(Record):
    """The reason codes of a model name. They apply to all its versions."""

    name: str
    """Name of the models."""
    revision: int
    """Revision number, from 1. It is also the ETag."""
    entries: list[StoredReasonEntry]
    """The reason codes, in the order in which they are matched."""
    at: str
    """Time of this revision."""
    history: list[ReasonCodesStep]
    """Up to 100 revisions, the newest first. Read one with `?revision=`."""

class ReasonCodesStep(Record):
    """One revision of the reason codes."""

    revision: int
    """Revision number, from 1."""
    at: str
    """Time of the change."""

class ReasonReference(Record):
    """The reference that reasons compare a score with, and how the contributions are computed."""

    kind: Literal['negative', 'average', 'cutoff']
    """`negative`: the average negative row. `average`: the average training row. `cutoff`: a cutoff,
    represented by the point with that score on the line between the average negative and the average
    positive.
    """
    score: float
    """Score of the reference."""
    on: Literal['validation', 'train'] | None
    """Part of the data whose rows were averaged. Null if it was not recorded."""
    rows: int | None
    """Number of rows that were averaged: negatives, or all rows for `average`. Null if it was not
    recorded.
    """
    method: Literal['parts', 'rows']
    """`parts`: the score is a sum over features; exact Shapley values minus those of the average row.
    `rows`: Shapley values in which an unknown feature has its value from a row of the reference. They
    are exact for ranking trees, and where at most seven features differ from that row; otherwise they
    are estimated from permutations, with an `error`.
    """
    direction: Literal['raises', 'lowers', 'both']
    """Contributions that are returned: those that raise the score, those that lower it, or both."""
    dictionary: int | None
    """Revision of the reason codes. Null if the model name has none."""
    protected_features: list[str]
    """Features of the model that are protected columns: declared so in the upload, or by their names."""
    protected_excluded: bool
    """Whether the protected columns are left out of the reasons (`exclude_protected`)."""
    warning: str | None
    """Says that the score depends on protected columns. Null if it does not."""

class RefitParameters(Record):
    """The parameters that train a scorecard with the same bins. Edit them, and send them as `algorithm`."""

    name: Literal['scorecard']
    """The algorithm."""
    bins: dict[str, list[Any]]
    """Edges of the numeric features, and groups (lists) of categories of the others. Dates are seconds
    since 1970.
    """
    special_values: dict[str, list[float]]
    """Special values of numeric features."""
    monotone: dict[str, Literal['increasing', 'decreasing']]
    """Monotone constraints by feature."""
    C: float
    """Regularization parameter of the model."""
    pdo: float
    """Points to double the odds."""
    base_score: float
    """Points at which the odds are `base_odds`."""
    base_odds: float
    """Number of negatives to one positive at `base_score`."""

class Reliability(Record):
    """How well the probabilities match the outcomes on the calibration's own rows. Each row is predicted
    by a calibration fitted on other rows.
    """

    level: float
    """Confidence level of each interval."""
    n: int
    """Number of rows."""
    n_positives: int
    """Number of positive rows."""
    predicted: float
    """Mean predicted probability."""
    observed: float
    """Observed fraction of positives."""
    brier: ScoreParts
    """Brier score: the mean of (probability − label)²."""
    log: ScoreParts
    """Log loss, with natural logarithms."""
    in_the_large: Interval | None
    """Calibration in the large: the log odds to add to every probability so that predicted and observed
    positives agree. Null if it cannot be estimated.
    """
    slope: Interval | None
    """Calibration slope: the factor of the log odds. Below 1: the probabilities are too extreme. Null if
    all probabilities are equal, or `separated`.
    """
    separated: bool
    """True if each positive has a higher probability than all negatives. Slope and shape cannot be
    estimated then.
    """
    shape: CalibrationShape | None
    """Calibration errors that change sign along the probabilities, which level and slope do not show. Null
    if there are too few rows to test it, or no slope.
    """
    histogram: list[float]
    """Fraction of the rows with a probability in [0, 0.1), [0.1, 0.2), …, [0.9, 1]."""
    points: list[ReliabilityPoint]
    """Points of the reliability diagram, by ascending probability."""
    later: bool | None = None
    """True: the rows are in the last time window, and the calibration was fitted on the windows before.
    False: the rows are cross-fitted, which does not test later rows. Default: `false`.
    """
    periods: CalibrationPeriods | None = None
    """Calibration level of each time window. Null without validation by time windows, or with too few
    rows.
    """

class ReliabilityPoint(Record):
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

class ReplacedDataset(Record):
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

class Report(Record):
    """A report with all stored results of a model."""

    written_at: str
    """Time at which the report was created."""
    written_by: str
    """Version of the service that created the report."""
    model: Model
    """The model."""
    data: ReportedData | None
    """The training dataset. Null if it was deleted."""
    job: ReportedJob | None
    """The job that trained the model. Null if it was deleted."""
    warnings: list[str]
    """Warnings of the model, and others that a reader needs to interpret the metrics."""
    metrics: list[Metrics | PairMetrics | MultilabelMetrics | GradedMetrics]
    """Metrics on each part of the data, validation first."""
    findings: list[Finding]
    """Whether the model is ready for use, as in `GET …/checks`."""
    decisions: list[AliasSummary]
    """Aliases of the model with their cutoffs and memos, the most recently moved first."""
    operating_points: list[RequestedCutoff]
    """Operating points on the validation rows, the cutoffs of the aliases first."""
    fold_aucs: list[FoldAuc] | None
    """AUC of each fold. Null unless the model was cross-validated."""
    baselines: Baselines | None
    """Comparison with baselines. Null if the model was trained without them."""
    leaderboard: Leaderboard | None
    """Candidates of `auto`. Null for other algorithms."""
    importance: ReportedImportance | None
    """Feature importances. Null if the model has none, or none yet; then the model's `importance_job_id`
    is not null.
    """
    calibration: Calibration | None = None
    """The calibration and how well its probabilities match the outcomes. Null if the model has none."""

class ReportedData(Record):
    """The dataset that the model was trained on."""

    id: str
    """Id of the dataset."""
    name: str
    """Name of the dataset."""
    version: int
    """Version of the dataset."""
    created_at: str
    """Time of creation."""
    bytes: int
    """Size of the upload in bytes."""
    sha256: str
    """SHA-256 of the content."""
    upload_sha256: str
    """SHA-256 of the uploaded bytes."""
    rows: int | None
    """Number of rows. Null if it was not recorded."""
    positives: int | None
    """Number of positive rows. Null without a single binary label."""
    negatives: int | None
    """Number of negative rows. Null without a single binary label."""
    weight: str | None
    """Name of the weight column. Null without one."""
    group: str | None
    """Name of the group column. Null without one."""

class ReportedImportance(Record):
    """Feature importances, in the order of the artifact."""

    method: Literal['squared_auc_gain', 'mean_absolute_contribution', 'permutation_auc']
    """Method that measured the importance."""
    description: str
    """What the method measures, in one sentence."""
    on: Literal['validation', 'train']
    """Part of the data that the importance was measured on."""
    features: list[dict[str, Any]]
    """The features with their `importance`. For a model with several labels, `importance` is a list with
    one value per label.
    """

class ReportedJob(Record):
    """The job that trained the model."""

    id: str
    """Id of the job."""
    created_at: str
    """Time of creation."""
    started_at: str | None
    """Start of the last attempt. Null if it was not recorded."""
    finished_at: str | None
    """Time at which the job ended. Null if it was not recorded."""
    attempt: int
    """Number of the attempt that trained the model."""
    max_attempts: int
    """Maximum number of attempts."""

class RequestedCutoff(Cutoff):
    """An operating point and the rate that was requested."""

    asked: str
    """The requested rate."""
    note: str | None
    """A caution: the cutoff was chosen on the rows that its rates are from, so they are optimistic. Null
    otherwise.
    """

class ResultColumn(Record):
    """A column of the result."""

    name: str
    """Name of the column."""
    type: str
    """Arrow type of the column."""

class Retention(Record):
    """Days for which an owner's resources are kept. Null: see the request."""

    owner: str
    """The owner."""
    datasets: float | None
    """Days for datasets."""
    models: float | None
    """Days for models without an alias."""
    batch_scores: float | None
    """Days for batch scores."""
    evaluations: float | None
    """Days for evaluations and comparisons."""
    decisions: float | None
    """Days for decisions and outcomes."""
    jobs: float | None
    """Days for jobs that ended."""
    updated_at: str | None
    """Time of the last change. Null: the settings apply to the owner."""

class RetentionPreview(Record):
    """What would be deleted now, by kind. Null: no days are given."""

    datasets: int | None
    """Number of datasets."""
    models: int | None
    """Number of models."""
    batch_scores: int | None
    """Number of batch scores."""
    evaluations: int | None
    """Number of evaluations and comparisons."""
    decisions: int | None
    """Number of files of decisions and outcomes."""
    jobs: int | None
    """Number of jobs."""

class ReviewCapacity(Record):
    """How many of how many rows can be reviewed, such as 200 of 5000 a day."""

    review: int
    """Number of rows that can be reviewed."""
    rows: int
    """Number of rows that they are chosen from."""

class Roc(Record):
    """The ROC curve of a model on one part of its data."""

    exact: bool
    """False if points were omitted because of `max_points`."""
    total_points: int
    """Number of points of the full curve."""
    band: Band | None = None
    """The confidence band. Present only if `band` was requested."""
    points: list[Point]
    """The points of the curve, by ascending FPR."""
    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    approximate: bool
    """True if the model was cross-validated. The curve then comes from out-of-fold scores, converted to
    the scale of the served ranker. The thresholds of the served ranker itself were not tested.
    """

class RoundLoss(Record):
    """Losses on the training rows after one round. Values too large for a float64 are null."""

    round: int
    """Number of the round, from 1."""
    f: float | None
    """F: the loss of AdaBoost, for scores with their intercept."""
    f_skew: float | None
    """The part of F from the positives minus the part from the negatives."""
    f_tilde: float | None
    """F̃: the loss of RankBoost."""
    smooth_margin: float | None
    """−ln F̃ divided by the sum of the steps so far, with the smallest pair weight as 1. Null if the fit
    held out some of its rows.
    """

class RoundLosses(Record):
    """The losses of each round, from the first."""

    total: int
    """Number of rounds."""
    data: list[RoundLoss]
    """One entry for each round shown."""

class RoundingEffect(Record):
    """What changes if the points of each value are rounded to whole numbers."""

    model_id: str
    """Id of the model."""
    pdo: float
    """Points to double the odds."""
    base_score: float
    """Points at which the odds are `base_odds`."""
    base_odds: float
    """Number of negatives to one positive at `base_score`."""
    rows: int
    """Number of compared rows: those kept from training."""
    max_difference: float
    """Largest difference between the exact and the rounded points of a row."""
    inverted: float
    """Fraction of the pairs of rows with different scores that rounding puts in the opposite order."""
    tied: float
    """Fraction of the pairs of rows with different scores that have equal rounded points."""
    auc: float | None
    """AUC of the scores on held-out rows. Null for other algorithms than `scorecard`, and without such
    rows.
    """
    rounded_auc: float | None
    """AUC of the rounded points on held-out rows, for `rounded_pdo`. Null like `auc`."""
    rounded_pdo: float | None
    """The points to double the odds for which the AUC was measured at training: the closest one that is at
    most `pdo`, else the smallest one. Fewer points are coarser.
    """

class RowPoints(Record):
    """The points of a row: `base_points` and those of its features add up to `points`."""

    id: str | float | bool | None
    """Id of the row, if `id` was requested."""
    score: float
    """Score of the model: the log odds of a positive."""
    points: float
    """Points of the row."""
    rounded: int
    """Sum of the rounded base points and the rounded points of the features."""
    features: list[FeaturePoints]
    """Points by feature, in the model's order."""

class RowsOfPeriod(Record):
    """The rows of a calendar period (UTC)."""

    name: str
    """Name of the period, such as `2026-03`, `2026-Q1`, or of a week its first day."""
    start: str
    """First day of the period."""
    end: str
    """First day after the period."""
    rows: int
    """Number of profiled rows."""
    positives: Interval | None
    """Fraction of the rows that is positive. Null without a binary label."""

class SameModel(Record):
    """A model whose artifact is the file that was imported."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    version: int
    """Its version."""

class Schedule(Record):
    """Times at which a dataset is refreshed."""

    id: str
    """Id of the schedule."""
    dataset_id: str
    """Id of the dataset that the next run refreshes: the newest that a run has made."""
    cron: str
    """Cron expression of five fields, in UTC."""
    next_run_at: str | None
    """When the next run is due. Null: the schedule is paused."""
    author: str | None
    """Name of the principal as which it runs: who created it, or has resumed it last."""
    created_at: str
    """Time of creation."""
    paused_at: str | None
    """When it was paused. Null: it is active."""
    paused_reason: Literal['requested', 'key_ended', 'scope_missing', 'role_missing', 'dataset_deleted'] | None
    """Why it is paused. `requested`: by a request. `key_ended`: the key of its author has expired or is
    revoked. `scope_missing`: that key lacks the scope `train`. `role_missing`: its author has no role
    with that scope. `dataset_deleted`: its dataset was deleted.
    """
    last_run_at: str | None
    """When a due time was handled last. Null: none was."""
    last_job_id: str | None
    """Id of the last job that it has queued."""
    last_dataset_id: str | None
    """Id of the dataset of that job."""
    last_job_state: Literal['queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled', 'timed_out'] | None
    """State of that job. Null: there is none, or it was deleted."""
    last_error: ScheduleError | None
    """Why the last due time has no job. Null: it has one. The job may have failed: see `last_job_state`."""

class ScheduleError(Record):
    """Why the last due time has no job."""

    code: str
    """Stable code of the error."""
    message: str
    """What is wrong, in words."""

class ScheduledTest(Record):
    """A scheduled test of one family of metrics at the end of a period. It never changes: outcomes that
    arrive or are corrected later have no effect on it.
    """

    family: Literal['unlabelled', 'ranking', 'calibration', 'guarantee', 'selection', 'group_calibration', 'shadow']
    """What was tested."""
    status: Literal['passed', 'alarm', 'waiting', 'not_tested']
    """Result of the test."""
    reason: str | None
    """Why there was no test. Null if there was one."""
    words: str
    """The result in one sentence."""
    tested_at: str
    """Time of the test."""
    revision: int
    """Revision of the feedback settings."""
    model_id: str | None
    """Id of the model whose decisions were tested: the last one that the alias served in the period. Null
    without decisions.
    """
    metric: Literal['psi', 'auc', 'calibration', 'fpr', 'fnr', 'flagged', 'rate', 'selection_ratio', 'odds_ratio'] | None
    """Tested metric. Null if the alias has none."""
    population: Literal['all', 'flagged', 'unflagged', 'none'] | None
    """Decisions that the metric describes. Null if outcomes are not needed."""
    rows: int
    """Number of decisions of the model."""
    known: int
    """Number of these whose outcome was known."""
    positives: int
    """Number of positive outcomes."""
    value: float | None
    """PSI of the score, AUC, fraction of positives, rate (for outcomes missing at random), or ratio of the
    group with the greatest statistic. Null if not measured.
    """
    low: float | None
    """Lower confidence limit of the value in this period. Of a guarantee: the rate with the most
    favourable missing outcomes; null if none is missing.
    """
    high: float | None
    """Upper confidence limit of the value in this period. Of a guarantee: the rate with the least
    favourable missing outcomes; null if none is missing.
    """
    variance: float | None
    """Sampling variance of the AUC, by entity. Null for other metrics."""
    expected: float | None
    """AUC of the reference, mean predicted probability, or bound of the rate. Null if there is none."""
    statistic: float | None
    """Test statistic: the greatest standardised change over windows that end here. Of a guarantee whose
    entities have one decision each: the e-value, whatever the missing outcomes are. Null without a
    test.
    """
    critical_value: float | None
    """Value of the statistic that raises an alarm. Null if `statistic` is null."""
    alpha_spent: float
    """Probability of a false alarm that this series of tests has used so far."""
    term_start: str
    """Start of the term. Its tests share the error probability. A new term begins after a year, with
    another model, and with an alarm that is acknowledged with `renew` (not of the calibration).
    """
    number: int
    """Number of the period in the term, from 1."""
    planned: int
    """Number of periods of a term."""
    since: int
    """Number of the last period before the test began again, because an alarm was acknowledged with
    `keep`, the bound of the guarantee has changed, or its entities have come back. 0: it has not begun
    again.
    """
    from_period: int | None
    """Number of the period in which the change probably began. Null without a test."""
    window: ChangeWindow | None
    """The window of the test. Null without a test, and for other families."""
    missing: MissingOutcomes | None
    """What missing outcomes could change. Null without a test of the AUC or the calibration, or if none is
    missing.
    """
    metrics: PeriodMetrics | None
    """All metrics of the period, given with the AUC. Null for other families."""
    shifted: list[ShiftedColumn] | None
    """Columns that have shifted. Null unless the family is `unlabelled`."""
    psi: dict[str, float] | None
    """Population stability index by column, the largest changes of important columns first, at most 100.
    Null unless the family is `unlabelled`.
    """
    groups: list[ComparedGroup] | None
    """The compared groups. Null unless the family is `selection` or `group_calibration`."""

class Score(Record):
    """The score of one row, its position on the validation curve, and the probability that it is positive."""

    model_id: str
    """Id of the model."""
    warnings: list[ScoreWarning] | None = None
    """Absent without warnings. Responses in other formats than JSON have the first ten as JSON in the
    header `X-Warnings`.
    """
    id: str | float | bool | None = None
    """Id of the row, if `id` was requested."""
    score: float
    """Score of the row. A higher score means that the row is more likely to be positive."""
    fpr: float | None
    """Fraction of the validation negatives with at least this score. Null without a validation curve."""
    tpr: float | None
    """Fraction of the validation positives with at least this score. Null without a validation curve."""
    probability: float | None = None
    """Probability that the row is positive, by the model's calibration. Null if the model has no
    calibration. Absent with `probability=false`.
    """
    probability_low: float | None = None
    """Lower value of the Venn–Abers pair: the probability if the row itself is counted as a negative.
    Present only with `interval=true`.
    """
    probability_high: float | None = None
    """Upper value of the Venn–Abers pair: the probability if the row itself is counted as a positive.
    Present only with `interval=true`.
    """
    no_probability: str | None = None
    """Why there is no probability. Present only if one was requested and the model has no calibration."""
    points: float | None = None
    """The score in points, by the scale of the model. More points mean lower odds of a positive. Absent
    unless the model is of the algorithm `scorecard`.
    """
    flag: bool | None = None
    """True if the score reaches the threshold with which the model meets the alias's guarantee. Absent if
    `ref` is not an alias with a guarantee.
    """
    decision_id: str | None = None
    """Id of the decision, to which its outcome refers. Absent if the decisions of the alias are not
    recorded.
    """
    review: bool | None = None
    """Whether to review the row: it is flagged, or drawn at random. Absent if the decisions of the alias
    are not recorded.
    """
    approximate: bool | None = None
    """True if `fpr` and `tpr` come from the out-of-fold scores of a cross-validated model. Absent
    otherwise. Default: `false`.
    """
    reasons: list[Reason] | None = None
    """The largest contributions, largest first; fewer than requested if the row has fewer. With
    `reasons_rest` and the score of the reference, they sum to the score. Present only with `reasons`.
    """
    reasons_rest: float | None = None
    """Sum of all other contributions. Present only with `reasons`."""
    reference: ReasonReference | None = None
    """The reference that the reasons compare the score with. Present only with `reasons`."""
    exact: bool | None = None
    """True if no contribution is an estimate. Present only with `reasons`."""

class ScoreBin(Record):
    """A range of scores, and the fractions of the rows in it."""

    low: float | None
    """Lowest score of the bin. Null: no limit."""
    high: float | None
    """All scores of the bin are below. Null: no limit."""
    before: float
    """Fraction of the validation rows."""
    after: float
    """Fraction of these rows."""

class ScoreDrift(Record):
    """Change of the scores, of one class or of all rows, between the model's validation and these rows."""

    of: Literal['positives', 'negatives', 'all']
    """`positives`, `negatives`, or `all` rows whatever their label."""
    distance: float
    """Kolmogorov–Smirnov distance between the two samples of scores, from 0 to 1. `p_value` is that of its
    test.
    """
    higher: float
    """Probability that a score on these rows is greater than a score on the validation; a tie counts half."""
    psi: Interval | None = None
    """Population stability index over deciles of the validation scores, corrected for sampling noise. Null
    without a test.
    """
    p_value: float | None
    """p-value of the hypothesis that nothing has changed. Null without a test; `reason` says why."""
    adjusted_p_value: float | None
    """p-value adjusted with Holm's method over all tests of this drift. Null without a test; `reason` says
    why.
    """
    changed: bool | None
    """True if the change is statistically significant and large enough to matter. Null without a test;
    `reason` says why.
    """
    reason: str | None = None
    """Why there is no test: neighbouring rows, in time or in the table, are too similar, or there are too
    few. Null with a test.
    """
    words: str
    """The result in one sentence."""
    bins: list[ScoreBin]
    """Deciles of the validation scores, from the lowest scores."""

class ScoreHistogram(Record):
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
    """Edges of up to 41 bins of equal width, ascending; one more than `counts`. The width is 1, 2 or 5
    times a power of ten.
    """
    counts: list[int]
    """Number of rows in each bin. A score on an edge belongs to the bin above it."""

class ScoreParts(Record):
    """A mean score (lower is better) and its parts: score = miscalibration − discrimination + uncertainty."""

    score: float | None
    """The mean score. Null if it is infinite."""
    miscalibration: float | None
    """Improvement that an isotonic regression of the labels on the probabilities would bring. 0: perfectly
    calibrated. Null if it is infinite.
    """
    discrimination: float
    """Improvement of that regression over one constant probability."""
    uncertainty: float
    """Score of the prevalence as a constant probability."""
    low: float | None = None
    """Lower end of the score's confidence interval. Null if the score is infinite, or if it was measured
    before intervals were added.
    """
    high: float | None = None
    """Upper end of the score's confidence interval. Null in the same cases."""

class ScoreTableCheck(Record):
    """The rows can be scored. Nothing was created."""

    valid: bool
    """Always true. An invalid request returns an error instead."""
    rows: int | None = None
    """Number of rows. Null if no rows were sent."""
    ignored: list[str] | None = None
    """Up to 100 columns of the rows that are not read, such as the model's label. Null if no rows were
    sent.
    """
    sheet: str | None = None
    """Name of the sheet that was read. Null if no workbook was sent."""
    sheets: list[str] | None = None
    """Names of the workbook's sheets that can be read. Null if no workbook was sent."""

class ScoreWarning(Record):
    """What may be wrong with the rows of a request that was answered."""

    code: str
    """`unknown_categories`: every known value of a feature is a category that the model does not have.
    `errors_in_cells`: cells of a sheet have errors, such as #DIV/0!, and count as missing.
    """
    feature: str
    """Name of the feature."""
    detail: str
    """The warning in one sentence."""

class Scorecard(Record):
    """The model as a scorecard."""

    model_id: str
    """Id of the model."""
    pdo: float
    """Points to double the odds."""
    base_score: float
    """Points at which the odds are `base_odds`."""
    base_odds: float
    """Odds at `base_score`: number of negatives to one positive."""
    calibrated_odds: float | None
    """Odds at `base_score` by the calibration that the model uses: number of negatives to one positive.
    Null without one, and if its probability is 0 or 1.
    """
    base_points: float
    """Points of a row whose values all add nothing."""
    lowest: float | None
    """No row has fewer points. Null if a number has points per unit, and if the scorecard is not complete."""
    highest: float | None
    """No row has more points. Null like `lowest`."""
    complete: bool
    """False if the score has parts that the attributes do not show: pairs of features, or too many terms."""
    characteristics: list[ScorecardCharacteristic]
    """The features, by descending `span`."""

class ScorecardAttribute(Record):
    """The points for a value of a feature."""

    of: Literal['unit', 'values', 'category', 'special', 'missing']
    """`unit`: each unit of a number. `values`: a number above `low` and up to `high`. `category`: a
    category. `special`: a special value of a number, which is `low` and `high`. `missing`: no value.
    """
    low: float | str | None
    """Lower end of the range. Null: no limit. Dates are strings."""
    high: float | str | None
    """Upper end of the range. Null: no limit."""
    category: str | None
    """The category. Null for any other kind of attribute."""
    weight: float
    """Amount added to the log odds of the positives."""
    odds_ratio: float | None
    """Factor for the odds of the positives. Null if it is too large for a float64."""
    points: float
    """Points for this value."""

class ScorecardBin(Record):
    """A bin of a feature."""

    of: Literal['values', 'categories', 'special', 'missing']
    """`values`: numbers above `low` and up to `high`. `categories`: some categories. `special`: a special
    value, which is `low` and `high`. `missing`: no value, or an unknown category.
    """
    low: float | str | None
    """Lower end of the range. Null: no limit. Dates are strings."""
    high: float | str | None
    """Upper end of the range. Null: no limit."""
    categories: list[str] | None
    """The categories. Null for other bins."""
    train: BinCounts
    """The training rows of the bin."""
    held_out: BinCounts | None
    """The same on rows that the model was not trained on. Null without such rows."""
    weight: float
    """Coefficient · WOE: the amount added to the log odds."""
    points: float
    """Points for values of the bin."""

class ScorecardCharacteristic(Record):
    """A feature and its attributes. A pair of features has no attributes here; its table is in the model
    structure.
    """

    name: str
    """Name of the feature."""
    span: float | None
    """Highest minus lowest points. Null for a number with points per unit."""
    attributes: list[ScorecardAttribute]
    """The values and their points."""

class Scores(Record):
    """The scores, in the order of the rows."""

    model_id: str
    """Id of the model."""
    warnings: list[ScoreWarning] | None = None
    """Absent without warnings. Responses in other formats than JSON have the first ten as JSON in the
    header `X-Warnings`.
    """
    ids: list[str | float | bool | None] | None = None
    """Id of each row. Present only if `id` was requested. In a table, this is the column `id`."""
    scores: list[float]
    """Score of each row."""
    fprs: list[float] | None
    """For each row, the fraction of the validation negatives with at least its score. Null without a
    validation curve.
    """
    tprs: list[float] | None
    """For each row, the fraction of the validation positives with at least its score. Null without a
    validation curve.
    """
    probabilities: list[float] | None = None
    """Probability that each row is positive, by the model's calibration. Null if the model has no
    calibration. Absent with `probability=false`.
    """
    probabilities_low: list[float] | None = None
    """Lower values of the Venn–Abers pairs: the probabilities if the row itself is counted as a negative.
    Present only with `interval=true`.
    """
    probabilities_high: list[float] | None = None
    """Upper values of the Venn–Abers pairs: the probabilities if the row itself is counted as a positive.
    Present only with `interval=true`.
    """
    no_probability: str | None = None
    """Why there is no probability. Present only if one was requested and the model has no calibration."""
    points: list[float] | None = None
    """The scores in points, by the scale of the model. More points mean lower odds of a positive. Absent
    unless the model is of the algorithm `scorecard`.
    """
    flags: list[bool] | None = None
    """For each row, true if the score reaches the threshold with which the model meets the alias's
    guarantee. Absent if `ref` is not an alias with a guarantee.
    """
    decision_ids: list[str] | None = None
    """Id of the decision about each row, to which its outcome refers. Absent if the decisions of the alias
    are not recorded.
    """
    reviews: list[bool] | None = None
    """Whether to review each row: it is flagged, or drawn at random. Absent if the decisions of the alias
    are not recorded.
    """
    approximate: bool | None = None
    """True if `fprs` and `tprs` come from the out-of-fold scores of a cross-validated model. Absent
    otherwise. Default: `false`.
    """
    reasons: list[list[Reason]] | None = None
    """The largest contributions to each score; see `Score`. Present only with `reasons`. A table has the
    columns `reason_1_code`, `reason_1_text`, `reason_1_contribution`, `reason_1_error` and so on,
    `reasons_rest` and `reference_score`.
    """
    reasons_rest: list[float] | None = None
    """Sum of all other contributions to each score. Present only with `reasons`."""
    reference: ReasonReference | None = None
    """The reference that the reasons compare the score with. Present only with `reasons`."""
    exact: list[bool] | None = None
    """True if no contribution is an estimate. Present only with `reasons`."""

class Search(Record):
    """The candidates and the choice of a parameter search on splits of the training rows. The inner
    validation rows are not used for any metrics. With cross-validation each fold has its own search on
    its own training rows: see `folds_chosen`. All other members describe the search for the served
    ranker.
    """

    method: Literal['grid', 'random', 'halving']
    """`grid`, `random` or `halving`."""
    space: dict[str, Any]
    """The searched parameters, each with its values or its range."""
    n_candidates: int | None = None
    """Number of candidates drawn. Null for a grid search."""
    folds: int | None = None
    """Number of inner folds. Null: one part was held out."""
    fraction: float
    """Fraction of the training rows held out to compare candidates. Not used with `folds`."""
    candidates: list[SearchTrial]
    """The candidates and their results."""
    chosen: dict[str, Any]
    """The best parameters; among ties, those with the fewest rounds. The served ranker is fitted with them
    on all training rows.
    """
    folds_chosen: list[FoldChosen]
    """The parameters chosen in each fold. Empty without cross-validation."""
    seconds: float
    """Duration of the search in seconds, without `fit_seconds`."""

class SearchTrial(Record):
    """A candidate of a parameter search."""

    parameters: dict[str, Any]
    """The searched parameters of the candidate."""
    value: float | None
    """Mean value of the objective `selected_by` on the inner validation rows. Higher is better. Null if
    the fit failed.
    """
    auc: float | None = None
    """Mean AUC on the inner validation rows. Null if it was not measured."""
    rows: float | None = None
    """Fraction of the training rows in the candidate's last fit. Default: `1.0`."""
    seconds: float | None = None
    """Fit time in seconds. Null if it was not measured."""
    state: Literal['chosen', 'left', 'failed', 'untried'] | None = None
    """`chosen`, `left` (not chosen), `failed` or `untried`. Null if it was not recorded."""
    reason: str | None = None
    """Why the candidate failed or was not tried. Null otherwise."""

class SegmentCondition(Record):
    """What all rows of a segment have in a column."""

    column: str
    """Name of the column."""
    value: str | None
    """The category, number or range of numbers. Null if the value is missing."""

class ShadowComparison(Record):
    """The AUC of the challenger minus the AUC of the champion, on the same decisions."""

    difference: float
    """Difference over all compared decisions."""
    low: float
    """Lower limit. The limits hold for all tests together, with 95 % confidence."""
    high: float
    """Upper limit."""
    winner: Literal['challenger', 'champion'] | None
    """The better model, if the limits exclude 0. Null otherwise."""
    equivalent: bool
    """Whether the limits are within the tolerance."""
    rows: int
    """Number of compared decisions with an outcome."""
    positives: int
    """Number of positive outcomes."""
    further_rows: int | None
    """Decisions with outcomes that are still needed until the half-width of the limits is the tolerance. 0
    if it is, also without a winner, and if there is a winner or the models are equivalent. Null if out
    of reach.
    """
    words: str
    """The result in one sentence."""

class ShadowTest(Record):
    """The comparison in one period."""

    period_start: str
    """Start of the period."""
    period_end: str
    """End of the period."""
    status: Literal['passed', 'alarm', 'waiting', 'not_tested']
    """`passed`: the models were compared."""
    reason: str | None
    """Why the models were not compared. Null if they were."""
    words: str
    """The result in one sentence."""
    rows: int
    """Number of compared decisions of the champion."""
    left_out: int
    """Number of other decisions of the champion, which may be in the training data of the challenger."""
    known: int
    """Number of these whose outcome was known."""
    positives: int
    """Number of positive outcomes."""
    difference: float | None
    """Difference of the AUC in this period. Null if not compared."""
    comparison: ShadowComparison | None
    """The comparison of all periods so far. Null if not compared."""

class ShareChange(Record):
    """A fraction of the rows, before and now."""

    before: float
    """Fraction of the rows of the training table."""
    after: float
    """Fraction of these rows."""

class ShiftedColumn(Record):
    """A column that has shifted significantly and matters to the model."""

    name: str
    """Name of the column. Empty for the score."""
    psi: float
    """Population stability index."""
    words: str
    """The result in one sentence."""

class SourceConnection(Record):
    """A connection from which datasets can be read."""

    name: str
    """Name of the connection."""
    driver: Literal['s3', 'gs', 'az', 'postgresql']
    """Kind of object store or database."""
    prefix: str | None
    """URL below which objects can be read. Null for a database."""
    queries: list[SourceQuery] | None
    """Queries that can be read. Null for an object store."""

class SourceFile(Record):
    """A file that was read from an object store."""

    url: str
    """URL of the object."""
    etag: str | None
    """ETag of the object when it was read."""
    version: str | None
    """Version id of the object. Null if the store keeps no versions."""
    bytes: int
    """Size in bytes."""
    sha256: str
    """SHA-256 of the bytes."""

class SourceList(Record):
    """The connections of the owner, in alphabetical order."""

    data: list[SourceConnection]
    """The connections."""

class SourceQuery(Record):
    """A query that can be read."""

    name: str
    """Name of the query."""
    parameters: list[QueryParameter]
    """Its parameters; each must be given."""

class StoredFeedback(Record):
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

class StoredGuarantee(Record):
    """What the cutoff of an alias keeps from version to version. Exactly one of `fpr`, `tpr`, `flagged`
    and `threshold` is set; the others are null. With a `confidence` it is a guarantee for future rows,
    otherwise a target that the validation rows meet.
    """

    fpr: float | None
    """Upper limit of the FPR."""
    tpr: float | None
    """Lower limit of the TPR."""
    flagged: float | None = None
    """Largest fraction of the rows that is flagged."""
    threshold: float | None = None
    """Lowest score that is flagged."""
    confidence: float | None
    """Confidence with which the rate is guaranteed for future rows. Null: the rate holds on the validation
    rows.
    """

class StoredMemo(Record):
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
    amount: str | None = None
    """Column of the amounts that multiply the cost of a false negative. Null if all false negatives cost
    the same.
    """
    prevalence: float | None
    """Expected fraction of positives among future rows."""

class StoredReasonEntry(Record):
    """One entry of the reason codes."""

    code: str
    """Reason code."""
    text: str
    """Text of the reason."""
    columns: list[str]
    """Features that the code covers."""
    direction: Literal['raises', 'lowers'] | None
    """Contributions that the code applies to: those that raise the score or those that lower it. Null:
    both.
    """
    min: float | str | None
    """Smallest value that the code applies to. Null: no limit."""
    max: float | str | None
    """Largest value that the code applies to. Null: no limit."""
    categories: list[str] | None
    """Categories that the code applies to. Null: all."""
    missing: bool | None
    """Whether the code applies to missing values; see the request. Null: no condition."""
    letter: str | None = None
    """Template of the paragraph in a letter. Null: the text."""

class SwapCell(Record):
    """Decisions that champion and challenger flag in the same way."""

    rows: int
    """Number of decisions."""
    known: int
    """Number of these whose outcome is known."""
    positives: int
    """Number of positive outcomes."""

class SwapSet(Record):
    """What would change if the challenger decided, with as many flagged decisions in each period."""

    both: SwapCell
    """Flagged by both."""
    champion_only: SwapCell
    """Flagged by the champion only."""
    challenger_only: SwapCell
    """Flagged by the challenger only. The champion did not flag them, so if outcomes come from reviews of
    flagged decisions, only explored ones have an outcome: compare rates of positives with care.
    """
    neither: SwapCell
    """Flagged by neither."""

class TableCheck(Record):
    """The table is valid. Nothing was stored."""

    valid: bool
    """Always true. An invalid request returns an error instead."""
    rows: int
    """Number of rows."""
    positives: int | None
    """Number of positive rows. Null without a single binary label."""
    negatives: int | None
    """Number of negative rows. Null without a single binary label."""
    queries: QuerySizes | None
    """Number and sizes of the queries. Null without a query column."""
    grades: list[GradeRows] | None
    """Number of rows of each grade. Null unless the kind is `graded`."""
    columns: list[Column]
    """Profiles of the columns."""
    warnings: list[TableWarning]
    """How values would be changed because they cannot be used as they are, and what columns may mean."""
    sheet: str | None
    """Name of the sheet that was read. Null if the table is not a workbook."""
    sheets: list[str] | None
    """Names of the workbook's sheets that can be read, in its order. Null if the table is not a workbook."""
    preview: Preview
    """The first rows, as they would be stored."""

class TableFault(Record):
    """An error in a table, with its location."""

    detail: str
    """What is wrong: the column, the rule and the value."""
    part: int | None = None
    """Number of the file in an upload of several files. Null for a single file."""
    line: int | None = None
    """Line number, from 1. Null if the error has no line."""
    column: str | None = None
    """Name of the column. Null if the error has no column."""
    sheet: str | None = None
    """Name of the sheet. Null if the table is not in a workbook."""
    cell: str | None = None
    """Address of the cell in the sheet, such as C3. Null if the error has no cell."""
    sheets: list[str] | None = None
    """Names of the workbook's sheets that can be read, if there are several: one for `sheet`."""
    suggestion: dict[str, str] | None = None
    """Upload fields that may correct the error, with a value for each: for example the likely label or
    positive value. Null if there is no suggestion.
    """
    values: list[CountedValue] | None = None
    """For a label with more than two values: up to 100 of the values read, most frequent first. List the
    positive ones in `positive`. Null for other errors.
    """

class TableWarning(Record):
    """How values of a column were changed because they could not be used as they are, or what a column may
    mean.
    """

    code: str
    """`values_taken_for_missing`: rare values that do not fit their column count as missing.
    `words_pooled`: there are too many categories; the rarest count as missing. `identifier`: nearly
    every row has a different value, so the column is not a feature. `column_without_name`: the column
    was ignored. `rows_without_label`: these rows were ignored. `label_of_many_values`: all values but
    the positive one count as negative. `numbers_with_thousands`: numbers such as 1.234,56 were read as
    categories. `dates_of_unknown_order`: dates such as 03/04/2026 were read as categories.
    `dates_not_read`: values that look like dates, such as 20240131, 31JAN2024 or 2024/01/31, were read
    as numbers or categories. `leading_zeros`: whole numbers such as 04109 were read as categories
    because all have the same number of digits, or as numbers, which lose the zeros.
    `words_among_numbers`: a column of numbers or dates was read as categories because it contains a few
    words. `missing_word_like_code`: a word that counts as missing is written like the categories of the
    column, such as NA beside DE and FR. `errors_in_cells`: cells of a sheet have errors, such as
    #DIV/0!, and count as missing. `rows_of_groups`: rows seem to belong together, such as all rows of
    one customer, but the upload has no group column.
    """
    column: str
    """Name of the column."""
    detail: str
    """The warning in one or two sentences."""
    count: int
    """Number of affected values, categories or rows."""
    parameter: str
    """Upload field that changes this."""
    line: int | None
    """Line of the first occurrence. Null if the format has no lines."""
    suggestion: dict[str, str] | None = None
    """Upload fields with which the values would be read, with a value for each. Null if there is no
    suggestion.
    """

class ThresholdColumn(Record):
    """The groups of one column at the threshold."""

    column: str
    """The column that defines the groups."""
    is_feature: bool
    """Whether the column is a feature of the model, so that scores depend on it directly."""
    reference: int | None
    """Position in `groups` of the group with the highest rate of the favourable outcome, among those with
    at least 2 % of the rows. Null if there is not enough data.
    """
    passes: bool | None
    """Four-fifths rule. True: every group passes. False: one fails. Null: not enough data."""
    words: str
    """The result in one sentence."""
    groups: list[ThresholdGroup]
    """The groups."""

class ThresholdGroup(Record):
    """Rates of one group at the threshold."""

    value: str | None
    """Value of the column as text. Null: the rows without a value."""
    rows: int
    """Number of rows with a weight above 0."""
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""
    flagged: GroupMetric
    """Fraction of the group's rows that are flagged."""
    not_flagged: GroupMetric
    """Fraction of the group's rows that are not flagged."""
    flagged_ratio: GroupMetric
    """`flagged` divided by the highest of any group: the adverse impact ratio if a flag is the favourable
    outcome. The interval covers the ratio to the group that is highest in the population.
    """
    not_flagged_ratio: GroupMetric
    """The same for `not_flagged`: the adverse impact ratio if no flag is the favourable outcome."""
    p_value: float | None
    """Of the hypothesis that the ratio of the favourable outcome is at least 0.8."""
    adjusted_p_value: float | None
    """`p_value`, adjusted by Holm's method over all groups of all columns."""
    passes: bool | None
    """Four-fifths rule for the favourable outcome. True: the interval of the ratio is at or above 0.8.
    False: the ratio is significantly below. Null: not enough data.
    """
    tpr: GroupMetric
    """Fraction of the group's positives that are flagged."""
    fpr: GroupMetric
    """Fraction of the group's negatives that are flagged."""
    auc: GroupMetric | None
    """Area under the ROC curve within the group."""
    calibration: GroupCalibration | None
    """Calibration in the group, at any threshold. Null without probabilities."""

class TopValue(Record):
    """A frequent value of a column, and the number of rows that have it."""

    value: float | bool | str | None
    """The value. For a `datetime` column: seconds since 1970, as in `min`, `max` and `mean`."""
    count: int
    """Number of rows with this value."""

class Totals(Record):
    """Total weight and effective number of rows of each class."""

    positive: float
    """Total weight of the positives."""
    negative: float
    """Total weight of the negatives."""
    positive_effective: float
    """Effective number of positive rows, given the weights. With a group column: effective number of
    groups.
    """
    negative_effective: float
    """Effective number of negative rows, or of groups."""

class TrashItem(Record):
    """A deleted resource that can be restored."""

    id: str
    """Id of the resource."""
    kind: Literal['dataset', 'model', 'evaluation', 'comparison']
    """Kind of resource."""
    name: str
    """Name of the resource. For an evaluation: that of the model. For a comparison: that of the dataset."""
    version: int | None
    """Version of that name. Null if it has none."""
    bytes: int
    """Stored bytes. They count towards the quota until the resource is permanently deleted."""
    created_at: str
    """Time of creation."""
    deleted_at: str
    """Time of deletion."""
    expires_at: str
    """Time of permanent deletion."""

class UnchangedShares(Record):
    """Shares of positives among missing outcomes, by side: the least and the greatest. Null: none."""

    all: list[float] | None = None
    """Least and greatest share, the same on both sides."""
    flagged: list[float] | None = None
    """Of the missing outcomes of flagged decisions."""
    unflagged: list[float] | None = None
    """Of the missing outcomes of the other decisions."""

class UnknownCategories(Record):
    """A feature with categories that the imported model does not know."""

    feature: str
    """Name of the feature."""
    rows: int
    """Number of rows of the dataset with such a category, which counts as missing."""

class UntestedColumn(Record):
    """A column without a test."""

    name: str
    """Name of the column."""
    reason: str
    """Why it has no test."""

class Upload(Record):
    """An upload in several files, which are sent one by one and then become one dataset."""

    id: str
    """Id of the upload."""
    status: Literal['open', 'closed']
    """`open`: parts can be added. `closed`: the upload has become a dataset."""
    fields: dict[str, str]
    """How to read the table, as given when the upload was opened."""
    n_parts: int
    """Number of parts received."""
    bytes: int
    """Total size of the parts in bytes."""
    dataset_id: str | None
    """Id of the dataset. Null until the upload is closed."""
    parts: list[UploadPart] | None
    """The parts in order. Null in a list of uploads."""
    created_at: str
    """Time of creation."""

class UploadPart(Record):
    """One file of an upload in several files."""

    number: int
    """Number of the part, from 1. Rows are read in this order."""
    content_type: Literal['text/csv', 'application/vnd.apache.parquet', 'application/vnd.apache.arrow.stream', 'application/vnd.apache.arrow.file', 'application/x-ndjson', 'application/json', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet']
    """Media type of the part."""
    content_encoding: Literal['gzip', 'zstd', 'zip'] | None
    """Compression of the part. Null: none."""
    bytes: int
    """Size of the part in bytes."""
    sha256: str | None
    """SHA-256 of the bytes. Null for a file that the service reads in place."""
    path: str | None
    """Path of a file that the service reads in place, relative to its folder for such files. Null for a
    part that was sent.
    """
    created_at: str
    """Time of creation."""

class Usage(Record):
    """What an owner uses, and the limits that apply to it."""

    owner: str
    """The owner."""
    bytes: Used
    """Bytes in files and in database rows that the owner can delete, with the trash. Measured at
    intervals.
    """
    dataset_rows: Used
    """Rows of all versions of all datasets, with the trash."""
    models: Used
    """Models, with the trash and with unfinished training jobs."""
    aliases: Used
    """Aliases of models."""
    keys: Used
    """Keys that are neither revoked nor expired."""
    queued_jobs: Used
    """Queued jobs, without parts of jobs."""
    running_jobs: Used
    """Running jobs and parts of jobs."""

class Used(Record):
    """What counts against a limit, and the limit."""

    used: int
    """What counts against the limit."""
    limit: int | None
    """The limit that applies. Null: no limit; for jobs, the owner's fair share of the service."""

class Valid(Record):
    """The request is valid. Nothing was created."""

    valid: bool
    """Always true. An invalid request returns an error instead."""

class ValuePoint(Record):
    """A point of the value curves."""

    threshold: float | None
    """Lowest score that is flagged. Null: no row is flagged."""
    rows: float
    """Fraction of the rows that are flagged."""
    negatives: float
    """Fraction of the negatives that are flagged."""
    amount_of_negatives: float | None
    """Fraction of the negatives' total amount that is flagged. Null if that total is 0."""
    value: float
    """Fraction of the positives' total amount that is flagged."""

class ValueRecall(Interval):
    """Fraction of the positives' total amount among the flagged rows."""

    share: float
    """Fraction of the rows, or of the negatives, that are flagged; see `over`."""
    threshold: float
    """Lowest score among the flagged rows. Rows tied at this score are flagged in part."""

class VariableDependence(Record):
    """How much the scores depend on each of several features, and on pairs of them."""

    model_id: str
    """Id of the model."""
    on: Literal['validation', 'train']
    """Part of the data: the validation rows or the training rows."""
    rows: int
    """Number of rows that were used."""
    features: list[str]
    """Names of the features, in the order of `main` and `joint`."""
    main: list[float]
    """Variance of each feature's partial dependence, as a fraction of the variance of the scores."""
    joint: list[list[float]]
    """H² of Friedman & Popescu for each pair of features: the fraction of the variance of their joint
    partial dependence that their separate effects do not explain. 0: the effects are additive.
    """

class WeakSegment(Record):
    """A segment of the rows in which the model ranks worse than elsewhere."""

    conditions: list[SegmentCondition]
    """One or two; the rows meet all of them."""
    verdict: Literal['worse', 'random', 'wrong_way_round']
    """`worse`: than within the other values. `random`: the AUC is also below 0.55. `wrong_way_round`:
    below 0.5. Both at level 0.95 over all segments.
    """
    auc: float
    """AUC within the segment."""
    auc_of_others: float
    """Mean AUC within the other values of the same columns."""
    drop_low: float
    """Lower limit of `auc_of_others` − `auc`, at level 0.95 over all segments that were looked at."""
    rows: int
    """Number of rows in the segment."""
    positives: int
    """Number of positives in the segment."""
    share: float
    """Share of the weight of all rows."""
    words: str
    """The finding as a sentence."""

class WeakSegments(Record):
    """The segments in which the model ranks worse than elsewhere."""

    segments: int
    """Number of segments that were looked at: categories, missing values and ranges of numbers, and pairs
    of them of five columns. Each has at least 10 independent rows of each class, and at most half of
    the rows.
    """
    rows: int
    """Number of rows that were looked at: all, or a random sample."""
    found: list[WeakSegment]
    """The greatest drop first. Empty if no segment is significantly worse."""

class Webhook(Record):
    """A webhook, without its secret."""

    id: str
    """Id of the webhook."""
    url: str
    """URL that receives the events."""
    events: list[Literal['job.succeeded', 'job.failed', 'job.cancelled', 'job.timed_out', 'dataset.ready', 'dataset.failed', 'evaluation.ready', 'evaluation.failed', 'alias.changed', 'alias.deleted', 'alias_request.created', 'alias_request.approved', 'alias_request.rejected', 'alias_request.withdrawn', 'alias_request.void', 'alarm.raised', 'alarm.cleared']] | None
    """Types of events that are sent. Null: all."""
    description: str
    """Description."""
    author: str | None
    """Name of who created it."""
    created_at: str
    """Time of creation."""
    enabled: bool
    """False if the webhook is disabled and receives nothing."""
    disabled_at: str | None
    """When it was disabled. Null: it is enabled."""
    disabled_reason: Literal['requested', 'gone', 'failing'] | None
    """Why it is disabled. `requested`: by a request. `gone`: the receiver responded with 410. `failing`:
    every attempt failed for five days.
    """
    failing_since: str | None
    """Time of the first failed attempt since the last success. Null: the last attempt succeeded, or there
    was none.
    """
    previous_secret_until: str | None
    """Until when deliveries are also signed with the secret before the last rotation. Null: never rotated."""

class WebhookDelivery(Record):
    """The delivery of an event to a webhook."""

    event_id: str
    """Id of the event. It is the header `webhook-id` of each attempt."""
    type: str
    """Type of the event."""
    data: dict[str, Any]
    """Data of the event, as it is sent."""
    created_at: str
    """Time of the event."""
    state: Literal['queued', 'delivered', 'failed']
    """`queued`: it is being sent, or waits for the next attempt. `delivered`: the receiver responded with
    2xx. `failed`: all attempts failed, or the webhook was disabled.
    """
    next_attempt_at: str | None
    """When the next attempt is due. Null unless the state is `queued`."""
    attempts: list[DeliveryAttempt]
    """The last 10 attempts, newest first."""

class WebhookWithSecret(Webhook):
    """A webhook with its new secret."""

    secret: str | None
    """The secret that signs the deliveries. It is shown only once; null in a replayed response."""

class WindowArea(Record):
    """Partial AUC: the mean TPR over a window of false positive rates."""

    value: float | None
    """The estimate. Null if it cannot be computed."""
    low: float | None
    """Lower end of the confidence interval. Null if there is no finite bound."""
    high: float | None
    """Upper end of the confidence interval. Null if there is no finite bound."""
    fpr_min: float
    """Lower end of the window of false positive rates."""
    fpr_max: float
    """Upper end of the window of false positive rates."""
    empirical: float | None = None
    """Fraction of the pairs that are strictly in order, over all positives and the negatives of rank
    ⌊n·fpr_min⌋ + 1 to ⌈n·fpr_max⌉ (Narasimhan & Agarwal 2016, eq. 2). It treats ties and the ends of
    the window differently from `value`. Null without a curve.
    """

class WindowBaselines(Record):
    """The model and the baselines over one window of false positive rates; [0, 1] is the AUC."""

    fpr_min: float
    """Lower end of the window of false positive rates."""
    fpr_max: float
    """Upper end of the window of false positive rates."""
    chosen: Interval
    """Area of the model."""
    baselines: list[BaselineArea]
    """Areas of the baselines."""

class WindowBound(Record):
    """Upper bound on 1 − pAUC of future rows: the measured value plus `epsilon`."""

    name: Literal['theorem_9', 'held_out']
    """`theorem_9` or `held_out`."""
    source: str
    """Publication and theorem of the bound."""
    on: Literal['validation', 'train']
    """Part of the data that `risk` was measured on."""
    risk: float
    """1 − pAUC of these rows, with the curve as a step function: a pair of equal scores counts as an
    error. In the AUC among the metrics, it counts as half an error.
    """
    positives: int
    """Number of positive rows."""
    negatives: int
    """Number of negative rows."""
    vc_dimension: int | None
    """VC dimension of the class of thresholds on all scores that the algorithm can produce from these
    rows. Null if it is unknown, or if the model was trained without these rows.
    """
    epsilon: float | None
    """Width of the bound. Null if it cannot be computed."""
    value: float | None
    """`risk` + `epsilon`. Null if the bound cannot be computed."""
    vacuous: bool
    """True if `value` is null, or 1 or more: the bound then has no content."""
    applies: bool
    """False if a condition of the bound is not met."""
    reasons: list[str]
    """Why the bound does not apply. Empty if it does."""

class WindowBounds(Record):
    """Upper bounds on 1 − pAUC on future rows, over one window of false positive rates."""

    model_id: str
    """Id of the model."""
    fpr_min: float
    """Lower end of the window of false positive rates."""
    fpr_max: float
    """Upper end of the window of false positive rates."""
    delta: float
    """Probability that a bound fails, as requested."""
    bounds: list[WindowBound]
    """The bounds."""

class WorstGroup(Record):
    """The worst group by one metric: the lowest AUC, pAUC or TPR, or the highest FPR. The value is that of
    the group observed to be worst; the interval covers the worst group in the population.
    """

    value: float | None
    """The estimate. Null if it cannot be computed."""
    low: float | None
    """Lower end of the confidence interval. Null if there is no finite bound."""
    high: float | None
    """Upper end of the confidence interval. Null if there is no finite bound."""
    of: Literal['auc', 'pauc', 'tpr', 'fpr']
    """The metric."""
    fpr_min: float | None
    """Lower end of the window of a partial AUC; otherwise null."""
    fpr_max: float | None
    """Upper end of the window of a partial AUC; otherwise null."""
    value_of: str | None
    """The group observed to be worst. Null: the rows without a value."""
