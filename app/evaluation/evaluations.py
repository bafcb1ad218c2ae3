"""The job that evaluates a model on a table: reads its artifact, and returns metrics, the curve and drift."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, cast

import numpy as np
from typing_extensions import TypedDict

from app.datasets import repository as datasets
from app.datasets.service import lineage_of, shares_rows
from app.datasets.tasks import find_to_read, lock_inputs, table_of
from app.evaluation import drift, metrics, repository
from app.evaluation.amounts import BY_AMOUNT, AmountSpec, amounts_of, measure_amounts
from app.evaluation.drift import Remembered
from app.evaluation.groups import (
    BY_GROUP,
    PROTECTED,
    grouping_of,
    groupings_of_protected,
    groups_of,
)
from app.evaluation.metrics import (
    MEASURES,
    OVERLAPS,
    BipartiteMeasure,
    EvaluatedModel,
    Overlap,
)
from app.evaluation.requests import EvaluationRequest
from app.evaluation.service import (
    Seen,
    are_older,
    check_evaluation,
    how_seen,
    say_older,
    say_seen,
)
from app.evaluation.vintages import BY_PERIOD, TimeOfRows, measure_periods, time_of_rows
from app.jobs import service as jobs
from app.jobs.execution import complete_output
from app.jobs.kinds import (
    PROCESSING,
    Claim,
    Docs,
    JobKind,
    Output,
    PublishedOutput,
    Routes,
    Submission,
    Work,
    status_of,
)
from app.jobs.progress import Callback
from app.models import calibrations, curves, operating_points, threshold_groups
from app.models import repository as model_rows
from app.models import service as models
from app.models.calibrations import CalibrationFile
from app.models.groups import (
    GROUP_STEPS_FILE,
    Grouping,
    adjust_together,
    measure_groups,
    pack_steps,
    read_groups,
    read_steps_file,
    split_scores,
    steps_of,
)
from app.models.objectives import Window
from app.models.row_order import RowOrder, newest_date, row_order
from app.models.service import VALIDATION
from app.models.threshold_groups import GroupsInput
from app.platform.blobs import Publisher
from app.platform.documents import DatasetLineage, TableFile
from app.platform.errors import NotFound
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import Evaluation, Measurement, Model, StoredFinding
from core import metrics as core_metrics

if TYPE_CHECKING:
    from core.base.ranker import Floats
    from core.metrics import (
        ClassTotals,
        GroupGuarantee,
        GroupGuarantees,
        Guarantee,
        Interval,
        OperatingPoint,
        RocCurve,
    )

EVALUATE = "evaluate"
"""The kind of job."""
EVALUATIONS = Output(Evaluation, "evl", "evaluation")
PATH = "/v1/evaluations"
_CURVE_FILE = "evaluation.curve"
_CALIBRATED_HERE = (
    "the model's calibration was fitted on rows of this dataset: its probabilities, and decisions "
    "based on them, look better here than they are"
)
_GROUPS_FILE = "evaluation.groups"


class EvaluationSpec(TypedDict):
    """`independent` is false if the model has seen rows of the dataset; see `seen`.

    `alias` is the one that the request named, and `alias_threshold` its threshold at that time; None: no row is
    flagged. `older`: no row is later than the last training or validation row.
    """

    evaluation_id: str
    independent: bool
    dataset: DatasetLineage
    seen: NotRequired[Seen]
    older: NotRequired[bool]
    alias: NotRequired[str]
    at: NotRequired[dict[str, float]]
    alias_threshold: NotRequired[float | None]
    grouping: NotRequired[Grouping]
    protected: NotRequired[list[Grouping]]
    amounts: NotRequired[AmountSpec]


class EvaluationPayload(Work):
    """The input of an evaluation in the fit process."""

    dataset_kind: str
    table: TableFile
    model: EvaluatedModel
    windows: list[Window]
    level: float
    threshold: float | None
    grouping: Grouping | None
    protected: list[Grouping]
    amounts: AmountSpec | None
    validation: Remembered | None
    orders: list[RowOrder]
    time: TimeOfRows | None
    calibration: CalibrationFile | None
    warnings: list[str]


class EvaluationResult(Work):
    """The output of an evaluation in the fit process; `curve` is a file, `rows_until` the newest row's date."""

    metrics: Json
    drift: Json | None
    findings: list[Json]
    rows_until: float | None
    curve: str | None
    group_scores: str | None
    warnings: list[str]


def submit(
    session: Session, settings: Settings, owner: str, request: EvaluationRequest
) -> Evaluation:
    """Check a request, and create the evaluation and its job in the caller's transaction."""
    inputs, windows = check_evaluation(session, owner, request, lock=True)
    (model,), (cutoff,), dataset = inputs.models, inputs.cutoffs, inputs.dataset
    seen = how_seen(session, model, dataset)
    spec: EvaluationSpec = {
        "evaluation_id": EVALUATIONS.new_id(),
        "independent": seen == "new",
        "seen": seen,
        "dataset": lineage_of(dataset),
    }
    ids = filter(None, (model.dataset_id, model.validation.get("dataset_id")))
    known = [datasets.find(session, owner, each) for each in ids]
    if seen == "new" and known and are_older(model, known, dataset):
        spec["older"] = True
    if "@" in request.model:
        spec["alias"] = request.model.rpartition("@")[2]
    if request.at is not None:
        spec["at"] = request.at.model_dump(exclude_none=True)
    elif cutoff is not None:
        spec["alias_threshold"] = cutoff["threshold"]
    if (grouping := grouping_of(dataset, request)) is not None:
        spec["grouping"] = grouping
    if protected := groupings_of_protected(dataset, request):
        spec["protected"] = protected
    if (amounts := amounts_of(request)) is not None:
        spec["amounts"] = amounts
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=EVALUATE,
        name=model.name,
        spec=spec,
        dataset_id=dataset.id,
    )
    return EVALUATIONS.insert(
        session,
        job,
        model_id=model.id,
        model_name=model.name,
        model_version=model.version,
        kind=model.kind,
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        dataset_version=dataset.version,
        dataset_sha256=dataset.sha256,
        windows=windows,
        level=request.level,
        warnings=[*say_seen(model, seen), *([say_older(model)] if "older" in spec else [])],
    )


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> EvaluationPayload:
    evaluation = EVALUATIONS.find_to_make(session, claim)
    model = models.find_to_read(session, claim.owner, evaluation.model_id)
    dataset = find_to_read(session, claim.owner, claim.dataset_id)
    described = metrics.model_of(session, model, dataset)
    spec = cast(EvaluationSpec, claim.spec)
    remembered: Remembered | None = None
    notes: list[str] = []
    if spec["independent"]:
        remembered, notes = drift.remember_validation(session, model, workdir)
    threshold, warnings = _threshold(session, model, spec)
    calibration = calibrations.find_served(session, model)
    known = None if calibration is None else calibration.dataset
    if spec["independent"] and shares_rows(
        known, lineage_of(dataset)
    ):  # else there is a warning already
        warnings = [*warnings, _CALIBRATED_HERE]
    return {
        "workdir": str(workdir),
        "dataset_kind": dataset.kind,
        "table": table_of(dataset),
        "model": described,
        "windows": [(window["fpr_min"], window["fpr_max"]) for window in evaluation.windows],
        "level": evaluation.level,
        "threshold": threshold,
        "grouping": spec.get("grouping"),
        "protected": spec.get("protected", []),
        "amounts": spec.get("amounts"),
        "validation": remembered,
        "orders": [
            row_order(model.validation, each)
            for each in (datasets.find(session, claim.owner, model.dataset_id), dataset)
            if each is not None
        ],
        "time": time_of_rows(model.validation, dataset),
        "calibration": None
        if calibration is None
        else calibrations.write_file(calibration, workdir),
        "warnings": [*evaluation.warnings, *notes, *warnings],
    }


def _threshold(
    session: Session, model: Model, spec: EvaluationSpec
) -> tuple[float | None, list[str]]:
    """Return the threshold for the rates, and warnings about it."""
    at, has_alias = spec.get("at"), "alias_threshold" in spec
    if at is not None and "threshold" in at:
        return at["threshold"], []
    if at is None and not has_alias:
        point = operating_points.objective_point(
            operating_points.find_objective_curves(session, model)
        )
        return (None if point is None else point.threshold), []
    warnings = []
    if model.validation.get("method") == "cross_validation":
        warnings = [
            "the cutoff was chosen on scores of the rankers of the folds, not of the served ranker: its "
            "rates here may differ"
        ]
    if at is not None:
        return operating_points.point_on(
            curves.curve_on(session, model, VALIDATION), **at
        ).threshold, warnings
    threshold = spec["alias_threshold"]
    return (math.inf if threshold is None else threshold), warnings


def run(payload: EvaluationPayload, callback: Callback) -> EvaluationResult:
    """Only computes, on the files that the payload names."""
    workdir = Path(payload["workdir"])
    model = payload["model"]
    measured = MEASURES[payload["dataset_kind"]]
    ranker = metrics.load_ranker(model)
    known = dict(zip(model["features"], ranker.categories_, strict=True))
    measure = measured(ranker, payload["table"], model["features"])
    callback(1, 2, {})
    windows = [(fpr_min, fpr_max) for fpr_min, fpr_max in payload["windows"]]
    found = measure.metrics(windows, payload["level"], payload["threshold"])
    curve = group_scores = None
    if isinstance(measure, BipartiteMeasure):
        found["weak_segments"] = measure.weak_segments(model.get("types", {}))
        served = probability = None
        table = payload["table"]["path"]
        if (stored := payload["calibration"]) is not None:
            served = calibrations.read_file(stored, workdir)
            reliable = measure.reliability(served, payload["level"])
            probability = served.calibration.probability(measure.scores)
            found["calibration"] = {"version": served.version, **reliable}
            found["decision_curve"] = measure.decision_curve(served, payload["level"])
        rows, of_rows = measure.table, measure.scores
        level, threshold = payload["level"], payload["threshold"]
        steps = []
        if (grouping := payload["grouping"]) is not None:
            groups = read_groups(table, grouping)
            found[BY_GROUP] = measure_groups(
                rows, of_rows, groups, grouping, windows, level, threshold, probability
            )
            steps.append(steps_of(rows, of_rows, groups))
            if (scores := measure.group_scores(groups)) is not None:
                group_scores = _GROUPS_FILE
                (workdir / group_scores).write_bytes(scores.astype("<f8").tobytes())
        by_protected = []
        for each in payload["protected"]:
            groups = read_groups(table, each)
            by_protected.append(
                measure_groups(rows, of_rows, groups, each, windows, level, threshold, probability)
            )
            steps.append(steps_of(rows, of_rows, groups))
        if by_protected:
            adjust_together(by_protected, payload["level"])
            found[PROTECTED] = by_protected
        if steps:
            (workdir / GROUP_STEPS_FILE).write_bytes(pack_steps(steps))
        if (time := payload["time"]) is not None:
            by_period = measure_periods(
                measure.table, measure.scores, table, time, payload["level"]
            )
            found[BY_PERIOD] = by_period
        if (amounts := payload["amounts"]) is not None:
            found[BY_AMOUNT] = measure_amounts(
                rows, of_rows, table, amounts, level, threshold, probability
            )
        curve = _CURVE_FILE
        curves.write_curve(workdir / curve, measure.curve)
    drifted: Json | None = None
    findings: list[Json] = []
    if (before := payload["validation"]) is not None:
        drifted, findings = drift.measure_drift(
            before,
            measure,
            metrics.rows_of(found),
            found.get("calibration"),
            payload["table"],
            model,
            known,
            payload["orders"],
            workdir,
        )
    callback(2, 2, {})
    overlaps, equal_rows = Overlap(payload["table"]["path"]).describe(model)
    return {
        "workdir": str(workdir),
        "metrics": found | {OVERLAPS: overlaps},
        "drift": drifted,
        "findings": findings,
        "rows_until": newest_date(payload["table"]["path"], payload["orders"][-1]),
        "curve": curve,
        "group_scores": group_scores,
        "warnings": [
            *payload["warnings"],
            *measure.notes,
            *equal_rows,
        ],
    }


def publish(blobs: Publisher, claim: Claim, result: EvaluationResult) -> PublishedOutput:
    """Return the evaluation's columns, and the rows of its metrics and findings."""
    columns = {name: result[name] for name in ("drift", "rows_until", "warnings")}
    evaluation_id, workdir = claim.spec[EVALUATIONS.key], Path(result["workdir"])
    row = Measurement(id=evaluation_id, evaluation_id=evaluation_id, metrics=result["metrics"])
    if result["curve"]:
        scores = result["group_scores"]
        row.group_scores = None if scores is None else (workdir / scores).read_bytes()
        row.group_steps = read_steps_file(workdir)
        curves.store_curve(row, workdir / result["curve"])
    dataset = claim.spec["dataset"]
    rows = {
        "of": "evaluation",
        "name": f"{dataset['name']}:{dataset['version']}",
        "id": evaluation_id,
        "until": result["rows_until"],
    }
    findings = [
        StoredFinding(
            evaluation_id=evaluation_id,
            question=each["question"],
            number=number,
            answer=each["answer"],
            document={**each, "rows": rows},
        )
        for number, each in enumerate(result["findings"])
    ]
    return PublishedOutput(columns, [row, *findings], messages=result["warnings"])


def roc(
    session: Session, owner: str, evaluation_id: str
) -> tuple[Evaluation, RocCurve, core_metrics.ClassTotals]:
    """Return the curve and the class totals for intervals. Raises NotFound."""
    evaluation = EVALUATIONS.find(session, owner, evaluation_id)
    row = repository.find_measured(session, evaluation.id)
    if row is None or row.points is None:
        raise _no_curve(evaluation)
    totals = core_metrics.ClassTotals(**row.metrics["totals"])
    return evaluation, curves.curve_of(row), totals


@dataclass(frozen=True)
class GuaranteedGroup:
    """The cutoff of one group, with its rates; None if it cannot be guaranteed."""

    value: str | None
    found: GroupGuarantee
    fpr: Interval | None
    tpr: Interval | None


@dataclass(frozen=True)
class CutoffOfEvaluation:
    """An operating point, its guarantee with a confidence, and those of the groups if requested."""

    evaluation: Evaluation
    point: OperatingPoint
    guarantee: Guarantee | None
    groups: tuple[GroupGuarantees, list[GuaranteedGroup]] | None


def prepare_operating_point(
    session: Session,
    owner: str,
    evaluation_id: str,
    confidence: float | None,
    asked: Json,
    *,
    together: bool | None,
) -> Callable[[], CutoffOfEvaluation]:
    """Read what an operating point is computed from; the returned function computes it without the database.

    `asked` are the keywords of `core.metrics.operating_point`. `together`: whether the guarantees of all groups hold at
    once, or each separately; None for no groups.
    """
    evaluation, curve, totals = roc(session, owner, evaluation_id)
    independent = evaluation.job.spec["independent"]
    assert evaluation.measured is not None
    scores = None if together is None else evaluation.measured.group_scores

    def compute() -> CutoffOfEvaluation:
        point, guarantee = _cutoff_on(evaluation, curve, totals, independent, confidence, asked)
        groups = None
        if together is not None:
            groups = _guarantees_by_group(evaluation, scores, guarantee, together=together)
        return CutoffOfEvaluation(evaluation, point, guarantee, groups)

    return compute


def _cutoff_on(
    evaluation: Evaluation,
    curve: RocCurve,
    totals: ClassTotals,
    independent: bool,
    confidence: float | None,
    asked: Json,
) -> tuple[OperatingPoint, Guarantee | None]:
    """With a confidence, return a guarantee, too. Raises Invalid if nothing can be guaranteed."""
    if confidence is None:
        return core_metrics.operating_point_on_curve(
            curve, totals, level=evaluation.level, **asked
        ), None
    if not independent:
        detail = (
            f"a cutoff cannot be guaranteed on evaluation {evaluation.id}: the model has seen rows of its "
            "dataset"
        )
        raise operating_points.no_guarantee("confidence", detail)
    assert evaluation.metrics is not None
    rows = (evaluation.metrics["positives"], evaluation.metrics["negatives"])
    found = operating_points.guaranteed_on(
        curve, totals, rows, evaluation.level, confidence, **asked
    )
    return found.point, found.guarantee


def _guarantees_by_group(
    evaluation: Evaluation, stored: bytes | None, guarantee: Guarantee | None, *, together: bool
) -> tuple[GroupGuarantees, list[GuaranteedGroup]]:
    """Guarantee the same rate in each group. Raises Invalid."""
    from core.metrics.guarantees import counts_alike

    if guarantee is None:
        detail = "by_group requires confidence: it returns guaranteed cutoffs"
        raise operating_points.no_guarantee("by_group", detail, code="invalid")
    metrics = evaluation.metrics or {}
    groups = metrics.get(BY_GROUP, {}).get("groups")
    if groups is None:
        detail = f"evaluation {evaluation.id} has no groups: evaluate again with group_by"
        raise operating_points.no_guarantee("by_group", detail)
    if stored is None:
        detail = (
            f"evaluation {evaluation.id} was made by a version that stored no scores by group: evaluate "
            "again"
        )
        raise operating_points.no_guarantee("by_group", detail)
    classes = split_scores(stored, groups)
    of_class = 0 if guarantee.rate == "tpr" else 1
    found = core_metrics.guarantees_on_scores(
        {number: scores[of_class] for number, scores in enumerate(classes)},
        **{guarantee.rate: guarantee.limit},
        confidence=guarantee.confidence,
        together=together,
    )

    def flagged(name: str, scores: Floats, threshold: float | None) -> Interval | None:
        alike = counts_alike(metrics["totals"][f"{name}_effective"], metrics[f"{name}s"])
        if threshold is None or not scores.size or not alike:
            return None
        share = 1.0 - np.searchsorted(scores, threshold).item() / scores.size
        return core_metrics.wilson_interval(share, scores.size, evaluation.level)

    shown = [
        GuaranteedGroup(
            group["value"],
            one,
            flagged("negative", negatives, one.threshold),
            flagged("positive", positives, one.threshold),
        )
        for group, one, (positives, negatives) in zip(groups, found.groups, classes, strict=True)
    ]
    return found, shown


def find_groups(
    session: Session, owner: str, evaluation_id: str, threshold: float | None
) -> tuple[Evaluation, GroupsInput]:
    """Use the threshold, that of the evaluation, or that of the largest KS distance. Raises NotFound."""
    evaluation, curve, _ = roc(session, owner, evaluation_id)
    columns = groups_of(evaluation)
    assert evaluation.measured is not None
    steps = evaluation.measured.group_steps
    if steps is None:
        detail = (
            f"evaluation {evaluation.id} has no groups: evaluate again with protected or group_by"
        )
        raise NotFound(detail, code="no_groups")
    chosen: tuple[float, threshold_groups.ThresholdSource]
    spec, point = evaluation.job.spec, (evaluation.metrics or {}).get("operating_point")
    if threshold is not None:
        chosen = threshold, "request"
    elif point is not None:
        own = point["threshold"]
        source: threshold_groups.ThresholdSource = "request" if "at" in spec else "objective"
        if "alias_threshold" in spec:
            source = "alias"
        chosen = (math.inf if own is None else own), source
    else:
        chosen = threshold_groups.ks_threshold(curve), "ks"
    model = model_rows.find(session, owner, evaluation.model_id)
    features = set() if model is None else {feature["name"] for feature in model.features}
    return evaluation, GroupsInput(evaluation.level, columns, steps, features, *chosen)


def _no_curve(evaluation: Evaluation) -> NotFound:
    """The error says why there is no curve."""
    if evaluation.metrics is None:
        why = f"its job {evaluation.job_id} has {evaluation.job.state}"
        if status_of(evaluation) == PROCESSING:
            why = f"its job {evaluation.job_id} has not finished"
    else:
        why = f"it is of kind {evaluation.kind}, which has metrics but no curve"
    return NotFound(f"evaluation {evaluation.id} has no ROC curve: {why}", code="no_curve")


def _read_field(request: EvaluationRequest) -> str | None:
    """Return the field because of which the result contains values of a column."""
    fields = ("group_by", "protected", "amount")
    return next((name for name in fields if getattr(request, name)), None)


def _routes() -> Routes:
    from app.evaluation.schemas import (
        Evaluation,
        ListedEvaluation,
        evaluation_of,
        listed_evaluation_of,
    )

    return Routes(
        path=PATH,
        tag="evaluations",
        shape=Evaluation,
        show=evaluation_of,
        listed=(ListedEvaluation, listed_evaluation_of),
        create=Submission(
            body=EvaluationRequest,
            check=check_evaluation,
            submit=submit,
            docs=Docs(
                "Evaluate a model on a dataset",
                "Score a dataset that has a label, and compute the model's metrics on it: areas with "
                "intervals, counts, the ROC curve, and the drift since the model's validation. A job of kind "
                "`evaluate` does the work.\n\nWith `group_by` the metrics are also computed for each value of "
                "a column: areas, rates at one cutoff, pairs across groups, and joint tests. With `amount`, a "
                "column of amounts, and `costs`, the result has the fraction of the amount that is captured, "
                "the cutoff of lowest cost, and its cost on other rows. `group_by` and `amount` also need the "
                "scope `read`.\n\nThe dataset must have the kind, the features and the label values of the "
                "model's training dataset.",
            ),
            read_field=_read_field,
        ),
        list_docs=Docs(
            "List evaluations",
            "Return the owner's evaluations, in the order of `sort`, each with its main metric.",
        ),
        read_docs=Docs(
            "Read an evaluation",
            "Return the evaluation and its status. If it is `ready`: areas with intervals, counts, and "
            "the drift since the model's validation.",
        ),
        delete_docs=Docs(
            "Delete an evaluation",
            "Move it to the trash. It can be restored for 30 days. Returns 409 while its job is "
            "unfinished.",
        ),
    )


KIND = JobKind(
    name=EVALUATE,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=EVALUATIONS,
    before_retry=lock_inputs,
    routes=_routes,
)
