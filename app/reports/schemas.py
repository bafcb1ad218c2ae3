"""The report on a model over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from app import __version__
from app.http.schemas import Resource, Timestamp
from app.models import service as models
from app.models.schemas import AnyMetrics, Cut, Model, metrics_of, model_of, point_of
from app.reports.sections import warnings
from app.reports.service import Facts
from app.training.interpretation import METHODS
from app.training.schemas import Controls, FoldAuc, Leaderboard, controls_of, leaderboard_of


class AskedCut(Cut):
    """An operating point, and what was asked for."""

    asked: str = Field(examples=["FPR ≤ 0.05"])


class ReportedData(Resource):
    """The dataset that the model has learnt from."""

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
    """Features in the order of the artifact; of a model with several labels `importance` is a list, a value a label."""

    method: str
    description: str
    on: str
    features: list[dict[str, Any]]


class Report(Resource):
    """All that is known of a model, in one answer."""

    written_at: Timestamp
    written_by: str = Field(description="Version of the service.", examples=["0.1.0"])
    model: Model
    data: ReportedData | None = Field(description="Null once the dataset is deleted.")
    job: ReportedJob | None
    warnings: list[str] = Field(
        description="The model's own, and what else a reader should know before believing the figures."
    )
    metrics: list[AnyMetrics] = Field(description="Of each part that was judged, validation first.")
    operating_points: list[AskedCut] = Field(description="On validation rows.")
    fold_aucs: list[FoldAuc] | None = Field(description="Of a cross-validated model.")
    controls: Controls | None = Field(description="Null for a model that was trained without.")
    leaderboard: Leaderboard | None = Field(description="Of a model of algorithm `auto`.")
    importance: ReportedImportance | None


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
        operating_points=[
            AskedCut(asked=cut.asked, **dict(point_of(cut.point))) for cut in facts.cuts
        ],
        fold_aucs=None
        if folds is None
        else [FoldAuc.model_validate(fold) for fold in folds.fold_aucs],
        controls=None if facts.controls is None else controls_of(facts.model, facts.controls),
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
    )
