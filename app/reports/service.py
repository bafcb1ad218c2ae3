"""Collection of the data for a model's report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rankwright.plots import Plot

from app.datasets import repository as dataset_rows
from app.evaluation import evaluations
from app.evaluation.checks import check_model, standing_findings
from app.evaluation.equal_groups import ComparedGroups, compared_groups
from app.findings.finding import Finding, Question
from app.jobs import repository as job_rows
from app.models import calibrations, curves, operating_points, threshold_groups
from app.models import metrics as model_metrics
from app.models import repository as model_rows
from app.models import service as models
from app.models.curves import PartCurve
from app.models.metrics import MetricsInput
from app.models.objectives import target_fpr
from app.models.rows import ModelRows, find_rows
from app.models.threshold_groups import GroupsAtThreshold
from app.platform.documents import Reliability
from app.platform.errors import NotFound
from app.platform.sql import Session
from app.platform.tables import (
    Dataset,
    DatasetKind,
    DatasetProfile,
    Evaluation,
    Job,
    Model,
    ModelAlias,
    ModelBaselines,
    ModelCalibration,
    ModelImportance,
    ModelLeaderboard,
    ModelOutOfFold,
)
from app.reports.plots import Kind, plot_of, reliability_plot
from core import metrics as core_metrics

if TYPE_CHECKING:
    from core.metrics import Gain, OperatingPoint
    from core.metrics.bands import BandKind


FPRS = (0.01, 0.05, 0.1, 0.2)
TPRS = (0.9,)

Json = dict[str, Any]


@dataclass(frozen=True)
class NamedPoint:
    """An operating point, and a text on what was requested."""

    asked: str
    point: OperatingPoint
    note: str | None
    """A caution on its rates."""
    alias: ModelAlias | None = None
    """The alias whose cutoff it is."""


@dataclass(frozen=True)
class Facts:
    """All stored data about a model, for its report. Data that was deleted or never existed is None.

    `metrics` has the metrics of each measured part; `part` is the main one: validation, if there is one.
    """

    model: Model
    rows: ModelRows
    aliases: list[str]
    """The aliases of the model, in alphabetical order."""
    decisions: Sequence[ModelAlias]
    """The aliases of the model, with their cutoffs and memos; first the one that is proposed for it."""
    proposed: ModelAlias | None
    """The alias of a decision that this report is evidence for."""
    findings: Sequence[Finding]
    """Whether the model is ready for use."""
    evaluations: Mapping[Question, Evaluation]
    """The evaluations that findings are based on, by their questions."""
    newest: Sequence[Finding]
    """What the evaluation of `ranking_kept` has found and still stands."""
    job: Job | None
    dataset: Dataset | None
    profile: DatasetProfile | None
    metrics: dict[str, Json]
    part: str | None
    curve_part: PartCurve | None
    cutoffs: tuple[NamedPoint, ...]
    importance: ModelImportance | None
    baselines: ModelBaselines | None
    leaderboard: ModelLeaderboard | None
    out_of_fold: ModelOutOfFold | None
    calibration: ModelCalibration | None
    calibrations: Sequence[ModelCalibration]
    """All versions, the latest first."""
    groups: GroupsAtThreshold | None
    """The groups of protected columns on the validation rows, at the threshold in use, else at the default one."""
    compared_groups: ComparedGroups | None
    """The groups of the evaluation that the check of the groups uses, at its threshold; None without one."""
    threshold_in_use: tuple[float, str] | None
    """The threshold of an alias, or of the objective, and whose it is, such as `alias live`; None without one."""
    written_at: float

    def plots(self) -> Iterator[Plot]:
        """Yield the whole ROC curve, and the objective's window if it is smaller."""
        if self.curve_part is None:
            return
        metrics = self.metrics[self.curve_part.part]
        whole = plot_of(self.curve_part, metrics, "roc", "pointwise")
        yield whole
        if whole.window is not None and whole.window.fpr_max - whole.window.fpr_min < 1.0:
            yield plot_of(self.curve_part, metrics, "pauc", "pointwise")

    def gains(self) -> tuple[Gain, ...]:
        """Empty without a curve."""

        of = self.curve_part
        return () if of is None else core_metrics.gains_table(of.curve, of.totals, level=of.level)


def read_reliability(session: Session, owner: str, ref: str) -> tuple[Model, Reliability]:
    """Raises NotFound with the reason if there is no calibration, or too few rows."""
    model, row, _ = calibrations.read(session, owner, ref)
    if row.reliability is None:
        raise NotFound(
            f"the probabilities of model {model.id} were not evaluated: there were too few rows of a class",
            code="no_calibration",
        )
    return model, row.reliability


def prepare_plot(
    session: Session, owner: str, ref: str, part: str, kind: Kind, band: BandKind | None
) -> Callable[[], Plot]:
    """The returned function computes the plot without the database."""
    if kind == "reliability":
        return partial(reliability_plot, *read_reliability(session, owner, ref))
    of = curves.roc(session, owner, ref, part)
    found = model_metrics.find_input(session, of.model, part)
    return lambda: plot_of(of, model_metrics.compute(found), kind, band)


def gather(
    session: Session, owner: str, ref: str, proposed: ModelAlias | None = None
) -> Callable[[], Facts]:
    """Read all data about a model from the database; return a function that computes its metrics without
    the database. With an alias that is `proposed` for the model, as they are once it points there.
    """
    model, findings = check_model(session, owner, ref, proposed=proposed)
    evaluated = {
        each.question: row
        for each in findings
        if each.rows is not None
        and each.rows.of == "evaluation"
        and (row := evaluations.EVALUATIONS.find(session, owner, each.rows.id or "")) is not None
    }
    newest: list[Finding] = []
    if (evaluation := evaluated.get("ranking_kept")) is not None:
        fits = model_rows.calibration_fits(session, [model.id]).get(model.id, {})
        newest = standing_findings(evaluation, model, fits)
    decisions = model_rows.decisions_of(session, owner, model.id, proposed)
    dataset = dataset_rows.find(session, owner, model.dataset_id)
    measured: dict[str, MetricsInput] = {}
    for part in models.PARTS:
        try:
            measured[part] = model_metrics.find_input(session, model, part)
        except NotFound:
            continue
    curve_part = None
    if models.VALIDATION in measured and model.kind == DatasetKind.BIPARTITE:
        curve_part = curves.roc(session, owner, model.id, models.VALIDATION)
    known = partial(
        Facts,
        model=model,
        rows=find_rows(session, model),
        aliases=[alias for _, alias in model_rows.aliases_of(session, owner, [model.id])],
        decisions=decisions,
        proposed=proposed,
        findings=findings,
        evaluations=evaluated,
        newest=newest,
        job=job_rows.find(session, owner, model.job_id),
        dataset=dataset,
        profile=None if dataset is None else dataset_rows.find_profile(session, dataset.id),
        part=next(iter(measured), None),
        curve_part=curve_part,
        importance=model_rows.find_importance(session, model.id),
        baselines=session.get(ModelBaselines, model.id),
        leaderboard=session.get(ModelLeaderboard, model.id),
        out_of_fold=session.get(ModelOutOfFold, model.id),
        calibration=calibrations.find_served(session, model),
        calibrations=model_rows.list_calibrations(session, model.id, models.HISTORY_SHOWN),
        written_at=time.time(),
    )
    groups, used = None, threshold_groups.threshold_in_use(session, model, proposed)
    compared = compared_groups(evaluated["groups"], used) if "groups" in evaluated else None
    if model_rows.find_groups(session, model.id) is not None:
        _, groups = threshold_groups.read(session, owner, model.id, used and used[0])
    return lambda: known(
        groups=None if groups is None else groups.compute(threshold_groups.NOT_FLAGGED),
        compared_groups=compared,
        threshold_in_use=used,
        metrics={part: model_metrics.compute(found) for part, found in measured.items()},
        cutoffs=() if curve_part is None else tuple(_cutoffs(curve_part, decisions)),
    )


def _cutoffs(curve_part: PartCurve, decisions: Sequence[ModelAlias]) -> Iterator[NamedPoint]:
    """Yield those of aliases, of the objective, and the usual ones."""
    for alias in decisions:
        threshold = None if alias.cutoff is None else alias.cutoff["threshold"]
        if threshold is not None:
            point = operating_points.point_on(curve_part, threshold=threshold)
            note = operating_points.note_on_alias(curve_part, alias)
            yield NamedPoint(f"{alias.name}@{alias.alias}", point, note, alias)
    target = target_fpr(curve_part.model.objective)
    if target is not None:
        yield _point_at(curve_part, f"objective: FPR ≤ {target:g}", fpr=target)
    for fpr in FPRS:
        if fpr != target:
            yield _point_at(curve_part, f"FPR ≤ {fpr:g}", fpr=fpr)
    for tpr in TPRS:
        yield _point_at(curve_part, f"TPR ≥ {tpr:g}", tpr=tpr)


def _point_at(curve_part: PartCurve, asked: str, **rate: float) -> NamedPoint:
    point = operating_points.point_on(curve_part, **rate)
    return NamedPoint(asked, point, operating_points.note_on(None, **rate))
