"""The report on a model over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Field

from app import __version__
from app.evaluation.schemas import ModelCheck
from app.http.schemas import Resource, Timestamp, one_of
from app.models import service as models
from app.models.schemas import (
    AliasSummary,
    AnyMetrics,
    Calibration,
    Cutoff,
    Model,
    Part,
    calibration_of,
    metrics_of,
    model_of,
    point_of,
)
from app.reports.sections import warnings
from app.reports.service import Facts
from app.training.interpretation import METHODS
from app.training.schemas import Baselines, FoldAuc, Leaderboard, baselines_of, leaderboard_of


class RequestedCutoff(Cutoff):
    """An operating point, and the rate that was asked for."""

    asked: str = Field(examples=["FPR ≤ 0.05"])


class ReportedData(Resource):
    """The dataset that the model was trained on."""

    id: str
    name: str
    version: int
    created_at: Timestamp
    bytes: int
    sha256: str
    upload_sha256: str
    rows: int | None
    positives: int | None
    negatives: int | None
    weight: str | None
    group: str | None


class ReportedJob(Resource):
    """The job that made the model."""

    id: str
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    attempt: int
    max_attempts: int


class ReportedImportance(Resource):
    """Features in the order of the artifact. For a model with several labels `importance` is a list with one value per
    label.
    """

    method: Annotated[str, one_of(METHODS)]
    description: str
    on: Annotated[str, one_of(get_args(Part))]
    features: list[dict[str, Any]]


class Report(Resource):
    """The report: all that is known about a model."""

    written_at: Timestamp
    written_by: str = Field(
        description="Version of the service that wrote the report.", examples=["0.1.0"]
    )
    model: Model
    data: ReportedData | None = Field(description="The training dataset. Null if it was deleted.")
    job: ReportedJob | None
    warnings: list[str] = Field(
        description="Warnings of the model, and others that a reader needs to judge the figures."
    )
    metrics: list[AnyMetrics] = Field(
        description="Metrics of each part of the data, validation first."
    )
    checks: list[ModelCheck] = Field(
        description="Whether the model may be used, as `GET …/checks` says it."
    )
    decisions: list[AliasSummary] = Field(
        description="The aliases of the model, with their cuts and memos, the last moved first."
    )
    operating_points: list[RequestedCutoff] = Field(
        description="Operating points on the validation rows, the cuts of the aliases first."
    )
    fold_aucs: list[FoldAuc] | None = Field(
        description="AUC of each fold of a cross-validated model; otherwise null."
    )
    baselines: Baselines | None = Field(
        description="Comparison with simple benchmark models. Null if the model was trained without controls."
    )
    leaderboard: Leaderboard | None = Field(
        description="Candidates of `auto`; null for other algorithms."
    )
    importance: ReportedImportance | None = Field(
        description="Null if the model has none, or none yet: then `importance_job_id` of the model is not null."
    )
    calibration: Calibration | None = Field(
        default=None,
        description="How scores become probabilities, and how good these are. Null if the model has no calibration.",
    )


def report_of(facts: Facts) -> Report:
    """The report as JSON."""
    point = facts.metrics.get(models.VALIDATION, {}).get("operating_point")
    found, folds = facts.importance, facts.out_of_fold
    return Report(
        written_at=facts.written_at,
        written_by=__version__,
        model=model_of(facts.model, facts.aliases, point),
        data=None if facts.dataset is None else ReportedData.model_validate(facts.dataset),
        job=None if facts.job is None else ReportedJob.model_validate(facts.job),
        warnings=warnings(facts),
        metrics=[metrics_of(part) for part in facts.metrics.values()],
        checks=[ModelCheck.model_validate(each) for each in facts.checks],
        decisions=[AliasSummary.model_validate(each) for each in facts.decisions],
        operating_points=[
            RequestedCutoff(asked=cutoff.asked, **dict(point_of(cutoff.point)))
            for cutoff in facts.cutoffs
        ],
        fold_aucs=None
        if folds is None
        else [FoldAuc.model_validate(fold) for fold in folds.fold_aucs],
        baselines=None if facts.baselines is None else baselines_of(facts.model, facts.baselines),
        leaderboard=None
        if facts.leaderboard is None
        else leaderboard_of(facts.model, facts.leaderboard),
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
        else calibration_of(facts.model, facts.calibration, facts.calibrations),
    )
