"""The JSON documents of a training job: specification, payload, parts, their outcomes, the result.

They are stored in a job's row or sent through a pipe to the fit process. Stored keys never change, because old rows
must stay readable. `NotRequired` marks keys that only some kinds or versions have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, Literal, NotRequired, TypeGuard, TypeVar

from typing_extensions import TypedDict

from app.models.calibrations import CalibrationRecord
from app.models.groups import Grouping
from app.models.row_order import RowOrder
from app.platform.documents import (
    Baseline,
    DatasetLineage,
    Feature,
    FoldAuc,
    FoldMembers,
    HeldOutBins,
    Imported,
    LabelValues,
    LeaderboardRow,
    Member,
    MetricBaselines,
    ModelFeature,
    MonotoneProof,
    Objective,
    Parameters,
    PartMetrics,
    ProtectedColumn,
    ProxyTest,
    RandomSplits,
    SameModel,
    Search,
    SearchSpec,
    TableFile,
    Validation,
    Window,
    WindowBaselines,
)
from app.platform.sql import Json

TRIAL: Final = "tryout"
SHARD: Final = "share"
FIT: Final = "fit"
BASELINE: Final = "baseline"
"""The kinds of parts, as they are stored; see `plan`."""


class AlgorithmSpec(TypedDict):
    """The algorithm of a job, with every parameter."""

    name: str
    parameters: Parameters
    defaults: NotRequired[Parameters]
    """The other parameters, which `core.base.parameters.leave_out_newer` has left out, for those who read the job: at
    defaults that never change, or without meaning, as a seed that nothing draws from. A fit does not need them.
    """


class BaselineSpec(TypedDict):
    """The baselines of a job; `skipped` says why there are none. `share` is the fraction of the budget of `auto` that
    they may take; None: they are trained on all rows, whatever it takes, and else on a sample of many.
    """

    algorithms: list[str]
    skipped: str | None
    share: float | None


class ImportSpec(TypedDict):
    """What an import knows before the file is read."""

    model: SameModel | None
    imported_by: str | None


class AutoPlan(TypedDict):
    """The fits of a model of `auto`, which another job repeats without a search.

    A fold that it does not have is fitted as the served ranker is.
    """

    members: list[Member]
    rows: float
    folds: list[FoldMembers]
    score_microseconds: float | None
    fit_seconds: float
    """Of the served ranker."""


class TrainSpec(TypedDict):
    """The validated specification of a training job, with all defaults. Stored in the job's row."""

    dataset: NotRequired[DatasetLineage]
    validation_dataset: DatasetLineage | None
    algorithm: AlgorithmSpec
    objective: Objective
    evaluated_rows: NotRequired[int | None]
    """The validation rows, as far as they are known in advance, that a count in the objective is of."""
    validation: Validation
    automatic_validation: NotRequired[bool]
    """True if the job did not request a validation: a holdout then takes the place of folds that are not possible."""
    search: SearchSpec | None
    plan: NotRequired[AutoPlan]
    """Of the model that the parameter `plan` of `auto` names."""
    baselines: NotRequired[BaselineSpec]
    """Of every job but an import."""
    seed: int
    model_name: str
    imported: NotRequired[ImportSpec]
    protected_columns: list[ProtectedColumn]
    """The protected columns of the dataset."""


class TrainTable(TableFile):
    features: list[Feature]


# The parts of a plan


class TrialKeyRecord(TypedDict):
    """A `core.selection.TrialKey`."""

    phase: str
    candidate: str
    change: int
    attempt: int


class TrialRecord(TypedDict):
    """A `core.selection.Trial`."""

    algorithm: str
    parameters: Parameters
    path: Sequence[Any]
    rows: float
    split: int
    keep_scores: bool
    limit: float | None
    key: TrialKeyRecord | None
    hurried: bool
    patience: int | None


class InnerSplitsRecord(TypedDict):
    """A `splits.InnerSplits`."""

    n_splits: int
    fraction: float


class TrialPart(TypedDict):
    """A trial: a candidate to fit and evaluate on an inner split."""

    what: Literal["tryout"]
    scope: list[int] | None
    tryout: TrialRecord
    inner: InnerSplitsRecord


class ShardPart(TypedDict):
    """A shard of one large fit: the pieces `first` to `last` - 1."""

    what: Literal["share"]
    scope: list[int] | None
    members: list[Member]
    first: int
    last: int


class ShardFile(TypedDict):
    """A finished shard, for the part that joins the shards."""

    file: str
    seconds: float
    notes: list[str]


class FitPart(TypedDict):
    """The fit of the chosen members: on a fraction `rows` of training rows, within `limit` seconds, or of `shares`."""

    what: Literal["fit"]
    scope: list[int] | None
    members: list[Member]
    rows: NotRequired[float]
    limit: NotRequired[float]
    shares: NotRequired[list[ShardFile]]


class BaselinePart(TypedDict):
    """A baseline's fit on `rows` rows (None: all), cancelled after `seconds` (None: never)."""

    what: Literal["baseline"]
    scope: list[int] | None
    algorithm: str
    parameters: Parameters
    rows: int | None
    seconds: float | None


PlanPart = TrialPart | ShardPart | FitPart | BaselinePart


# Results of a part


class PartOutcome(TypedDict):
    """The members of every part's outcome; `files` are paths by name."""

    seconds: float
    elapsed: float
    files: dict[str, str]


class TrialOutcome(PartOutcome):
    """The values of a candidate, one for each value of its path; `failed` is the reason if there are none. `skipped`:
    left out, because its job ended early.
    """

    values: list[float]
    aucs: list[float]
    setup: float
    steps: NotRequired[int]
    fitted: NotRequired[int]
    stopped: NotRequired[bool]
    failed: str | None
    notes: list[str]
    rows: NotRequired[int]
    along: NotRequired[str | None]
    skipped: NotRequired[bool]


class FitOutcome(PartOutcome):
    """The outcome of a fit, or of a shard of one, with its warnings.

    `members` are the fitted members, each with the number of steps that there was time for.
    """

    notes: list[str]
    members: NotRequired[list[Member]]
    repeatable: NotRequired[bool]


class ArtifactFile(TypedDict):
    file: str
    sha256: str
    bytes: int


class SampleFile(TypedDict):
    file: str
    rows: int
    features: int


class ImportanceRecord(TypedDict):
    """The importance of each feature, measured on a part by a method of `interpretation`."""

    method: str
    part: str
    values: list[Any]
    gains: NotRequired[list[float]]


class ReferenceRecord(TypedDict):
    """The average rows of both classes, negatives first: mean contributions in a file, and their scores."""

    file: str
    part: str
    rows: list[int]
    scores: list[float]


class ServedOutcome(FitOutcome):
    """The outcome of the served ranker's fit: artifact, metrics by part, and samples for its interpretation."""

    artifact: ArtifactFile
    parts: dict[str, PartMetrics]
    samples: dict[str, SampleFile]
    importance: ImportanceRecord | None
    importance_later: NotRequired[bool]
    """Whether a job of its own is to measure the importance: the budget had no time for it."""
    reference: NotRequired[ReferenceRecord | None]
    features: list[ModelFeature]
    monotone: NotRequired[MonotoneProof | None]
    held_out_bins: NotRequired[HeldOutBins | None]
    trial_notes: list[str]
    empty_features: list[str]


class BaselineOutcome(PartOutcome):
    """A baseline, fitted on `rows` of `of` rows; `failed` is the reason if it was not fitted, `late`: it took too long,
    `skipped`: left out, because its job ended early.
    """

    rows: NotRequired[int]
    of: NotRequired[int]
    failed: str | None
    late: NotRequired[bool]
    skipped: NotRequired[bool]
    random_split: NotRequired[RandomSplits | None]


Outcome = TrialOutcome | FitOutcome | ServedOutcome | BaselineOutcome


# Parts that are done


P = TypeVar("P")
R = TypeVar("R")


class Done(TypedDict, Generic[P, R]):
    """A finished part: its stage, its number within the stage, its specification and its outcome."""

    stage: int
    part: int
    spec: P
    result: R


FinishedTrial = Done[TrialPart, TrialOutcome]
FinishedShard = Done[ShardPart, FitOutcome]
FinishedFit = Done[FitPart, FitOutcome]
FinishedServed = Done[FitPart, ServedOutcome]
FinishedBaseline = Done[BaselinePart, BaselineOutcome]
Finished = FinishedTrial | FinishedShard | FinishedFit | FinishedServed | FinishedBaseline


def is_trial(finished: Finished) -> TypeGuard[FinishedTrial]:
    return finished["spec"]["what"] == TRIAL


def is_shard(finished: Finished) -> TypeGuard[FinishedShard]:
    return finished["spec"]["what"] == SHARD


def is_fit(finished: Finished) -> TypeGuard[FinishedFit]:
    return finished["spec"]["what"] == FIT


def is_baseline(finished: Finished) -> TypeGuard[FinishedBaseline]:
    return finished["spec"]["what"] == BASELINE


# The job


class ClusterRecord(TypedDict):
    """A Dask cluster: its scheduler, the file of its key, and the silent seconds after which a process is lost."""

    address: str
    secret: str
    seconds: float
    is_lost: NotRequired[bool]
    """The attempt before lost it, and this is the last one: it does without. The attempt's worker adds it."""


class TrainPayload(TypedDict):
    """The payload of a training job in the fit process. The queue adds the kind of job."""

    kind: NotRequired[str]
    started: NotRequired[float]
    """When the attempt began, by the machine's monotonic clock; its worker adds it."""
    memory_bytes: NotRequired[int | None]
    """Bytes that the attempt may take, None without a limit; its worker adds it."""
    codes_folder: NotRequired[str]
    """Where codes in files are kept for the job's next attempt, without it the work folder; its worker adds it."""
    cluster: NotRequired[ClusterRecord | None]
    """The Dask cluster that takes what would not fit the memory; None: there is none."""
    workdir: str
    spec: TrainSpec
    table: TrainTable
    validation_table: TrainTable | None
    order: RowOrder
    dataset_kind: str
    pair: list[str | None]
    labels: list[LabelValues] | None
    groupings: NotRequired[list[Grouping]]
    """The protected columns whose groups are compared on the validation rows."""
    finished: NotRequired[list[Finished]]
    ended: NotRequired[bool]
    fan_out_from: NotRequired[float]
    fits_a_part: NotRequired[int]
    job_timeout_seconds: NotRequired[float]
    """The service's own timeout of a job, for the job that measures importance later."""
    seconds_left: NotRequired[float]
    """Seconds that the attempt may take by the timeout of its job."""


class PackedParts(TypedDict):
    fits: list[PlanPart]


class ChildSpec(TypedDict):
    """The specification of a claimed child job: its parent's, and its own parts, which are all that its row stores."""

    parent: TrainSpec
    part: PackedParts


class ImportanceSpec(TypedDict):
    """The specification of the job that measures a model's importance later. Stored in its row."""

    importance_of: str
    training: TrainSpec


class ChildPayload(TrainPayload):
    """The payload of a child job in the fit process."""

    fits: list[PlanPart]


class PublishedFile(TypedDict):
    """A file of a child job that will be stored as a blob."""

    path: str
    sha256: str


class ChildResult(TypedDict):
    """The result of a child job: an outcome for each part, without its files, and the files of all."""

    results: list[Outcome]
    files: dict[str, PublishedFile]


class OutOfFoldRecord(TypedDict):
    """The out-of-fold scores as a file in the work folder, and the AUC of each fold."""

    file: str
    sha256: str
    bytes: int
    entries: int
    repeats: int
    folds: int
    fold_aucs: list[FoldAuc]


class ProtectedGroupsRecord(TypedDict):
    """The comparison of protected groups on the validation rows; what each threshold flags is in a file."""

    level: float
    columns: list[Json]


class HeldOutRecord(TypedDict):
    """The scores of the validation rows as a file in the work folder."""

    file: str
    sha256: str
    bytes: int


class LeaderboardRecord(TypedDict):
    """The candidates that `auto` tried, how the time of its budget was used, and what it has fitted."""

    budget_seconds: float | None
    seconds: float
    candidates: list[LeaderboardRow]
    members: list[Member]
    rows: float
    folds: list[FoldMembers]
    repeatable: bool
    notes: list[str]


class BaselineComparison(TypedDict):
    """The comparison of the ranker with the baselines, by window and by the objective's metric.

    `beats` refers to this metric, or to the window `decided_on`, and is None without either.
    """

    level: float
    windows: list[WindowBaselines | MetricBaselines]
    decided_on: Window
    beats: bool | None


class BaselinesRecord(BaselineComparison):
    """The baselines, or the reason why there are none, and the comparison with them."""

    baselines: list[Baseline]
    skipped: str | None


class ModelColumns(TypedDict):
    """The columns of the model's database row that a training job determines."""

    features: list[ModelFeature]
    label: str | None
    query: str | None
    labels: list[LabelValues] | None
    parameters: Parameters
    search: Search | None
    monotone: MonotoneProof | None
    proxies: list[ProxyTest] | None
    held_out_bins: HeldOutBins | None
    fit_seconds: float
    imported: NotRequired[Imported]


class TrainResult(ModelColumns):
    """The result of a training job: small JSON, and files in the work folder."""

    workdir: str
    dataset_kind: str
    validation: NotRequired[Validation]
    """The validation of the model, which is another one than the job's if its folds were not possible."""
    algorithm: NotRequired[str]
    """Of an imported model."""
    artifact: ArtifactFile
    samples: dict[str, SampleFile]
    importance: ImportanceRecord | None
    importance_later: NotRequired[bool]
    job_timeout_seconds: NotRequired[float]
    reference: NotRequired[ReferenceRecord | None]
    profile: str
    """A JSON file in the work folder: the distributions of the features, whose size grows with the table's width."""
    parts: dict[str, PartMetrics]
    out_of_fold: OutOfFoldRecord | None
    held_out: NotRequired[HeldOutRecord | None]
    calibration: CalibrationRecord | None
    baselines: BaselinesRecord | None
    protected_groups: NotRequired[ProtectedGroupsRecord | None]
    pair: list[str | None]
    leaderboard: LeaderboardRecord | None
    progress: NotRequired[dict[str, Any]]
    warnings: list[str]
