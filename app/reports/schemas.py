"""The report on a model over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field

from app import __version__
from app.findings.finding import Finding
from app.http.schemas import CreatedAt, DatasetId, Resource, Timestamp, one_of
from app.models import service as models
from app.models.alias_schemas import AliasSummary
from app.models.calibration_schemas import Calibration
from app.models.curve_schemas import DataPart
from app.models.metric_schemas import AnyMetrics, metrics_of
from app.models.operating_point_schemas import Cutoff, point_of
from app.models.schemas import Model, model_of
from app.platform.documents import FoldAuc
from app.reports.sections import warnings
from app.reports.service import Facts
from app.training.interpretation import METHODS
from app.training.schemas import Baselines, Leaderboard, baselines_of


class RequestedCutoff(Cutoff):
    """An operating point and the rate that was requested."""

    asked: str = Field(examples=["FPR ≤ 0.05"])
    """The requested rate."""
    note: str | None
    """A caution: the cutoff was chosen on the rows that its rates are from, so they are optimistic. Null otherwise."""


class ReportedData(Resource):
    """The dataset that the model was trained on."""

    id: DatasetId
    name: str
    """Name of the dataset."""
    version: int
    """Version of the dataset."""
    created_at: CreatedAt
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


class ReportedJob(Resource):
    """The job that trained the model."""

    id: str
    """Id of the job."""
    created_at: CreatedAt
    started_at: Timestamp | None
    """Start of the last attempt. Null if it was not recorded."""
    finished_at: Timestamp | None
    """Time at which the job ended. Null if it was not recorded."""
    attempt: int
    """Number of the attempt that trained the model."""
    max_attempts: int
    """Maximum number of attempts."""


class ReportedImportance(Resource):
    """Feature importances, in the order of the artifact."""

    method: Annotated[str, one_of(METHODS)]
    """Method that measured the importance."""
    description: str
    """What the method measures, in one sentence."""
    on: Annotated[str, one_of(get_args(DataPart))]
    """Part of the data that the importance was measured on."""
    features: list[dict[str, Any]]
    """The features with their `importance`. For a model with several labels, `importance` is a list with one value per
    label."""


class Report(Resource):
    """A report with all stored results of a model."""

    written_at: Timestamp
    """Time at which the report was created."""
    written_by: str = Field(examples=["0.1.0"])
    """Version of the service that created the report."""
    model: Model
    """The model."""
    data: ReportedData | None
    """The training dataset. Null if it was deleted."""
    job: ReportedJob | None
    """The job that trained the model. Null if it was deleted."""
    warnings: list[str]
    """Warnings of the model, and others that a reader needs to interpret the metrics."""
    metrics: list[AnyMetrics]
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
    """Feature importances. Null if the model has none, or none yet; then the model's `importance_job_id` is not
    null."""
    calibration: Calibration | None = None
    """The calibration and how well its probabilities match the outcomes. Null if the model has none."""


def report_of(facts: Facts) -> Report:
    point = facts.metrics.get(models.VALIDATION, {}).get("operating_point")
    found, folds = facts.importance, facts.out_of_fold
    return Report(
        written_at=facts.written_at,
        written_by=__version__,
        model=model_of(facts.model, facts.aliases, facts.rows, point),
        data=None if facts.dataset is None else ReportedData.model_validate(facts.dataset),
        job=None if facts.job is None else ReportedJob.model_validate(facts.job),
        warnings=warnings(facts),
        metrics=[metrics_of(part) for part in facts.metrics.values()],
        findings=list(facts.findings),
        decisions=[AliasSummary.model_validate(each) for each in facts.decisions],
        operating_points=[
            RequestedCutoff(asked=cutoff.asked, note=cutoff.note, **dict(point_of(cutoff.point)))
            for cutoff in facts.cutoffs
        ],
        fold_aucs=None if folds is None else folds.fold_aucs,
        baselines=None if facts.baselines is None else baselines_of(facts.model, facts.baselines),
        leaderboard=None
        if facts.leaderboard is None
        else Leaderboard.model_validate(facts.leaderboard),
        importance=None
        if found is None
        else ReportedImportance(
            method=found.method,
            description=METHODS[found.method],
            on=found.part,
            features=[{**feature} for feature in found.features],
        ),
        calibration=None
        if facts.calibration is None
        else Calibration.from_row(facts.calibration, history=facts.calibrations),
    )
