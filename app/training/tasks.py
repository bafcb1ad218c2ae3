"""The training job: reads a table, fits a ranker, and writes the model with metrics and curves in one transaction."""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import orjson

from app.datasets import repository as dataset_repository
from app.datasets.matrices import TOO_FEW_ROWS
from app.datasets.protected import protected_columns
from app.datasets.service import (
    check_pairs_ready,
    feature_columns,
    find_misfit,
    label_values,
    notes_on,
    show_labels,
    table_dialect_of,
)
from app.datasets.tasks import find_to_read, lock_inputs, table_of
from app.jobs import child_jobs, queue
from app.jobs import repository as job_repository
from app.jobs.kinds import Claim, FanOutResult, JobKind
from app.jobs.objectives import PAIR_ORDER
from app.jobs.parameters import protected_features
from app.jobs.progress import Callback, concluded
from app.jobs.service import IMPORTANCE, TRAIN, enqueue_rest
from app.models import calibrations, margins
from app.models import repository as model_repository
from app.models.artifacts import ARTIFACTS
from app.models.curves import store_curve
from app.models.groups import protected_groupings, read_steps_file
from app.models.row_order import row_order
from app.models.service import VALIDATION
from app.platform.blobs import Publisher
from app.platform.documents import (
    Feature,
    FeatureImportance,
    LabelValues,
    Objective,
    PartMetrics,
    ProtectedColumn,
    TableProfile,
)
from app.platform.errors import Conflict, Invalid
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Base, Session
from app.platform.tables import (
    REFERENCE_ROWS,
    Dataset,
    DatasetKind,
    DatasetStatus,
    Job,
    Measurement,
    ModelBaselines,
    ModelGroups,
    ModelHeldOut,
    ModelImportance,
    ModelLeaderboard,
    ModelOutOfFold,
    ModelProfile,
    ModelReference,
    ModelReferenceRows,
    ModelSample,
)
from app.training import search
from app.training.plan import (
    SERVED,
    Plan,
    as_finished,
    fits_a_part,
    fraction_of,
    pack,
    trials_for_served,
    unpack,
)
from app.training.progress import (
    MEASURING,
    EndEarly,
    Reporter,
    kept_board,
    leave_out,
)
from app.training.records import (
    BASELINE,
    SHARD,
    TRIAL,
    Finished,
    ImportanceRecord,
    ImportanceSpec,
    ModelColumns,
    Outcome,
    PlanPart,
    TrainPayload,
    TrainResult,
    TrainSpec,
    TrainTable,
)
from app.training.splits import HOLDOUT, HOLDOUT_FRACTION, folds_of
from core import kernels

if TYPE_CHECKING:
    from app.training.fitting import FitContext


OUT_OF_FOLD = "out-of-fold"
HELD_OUT = "held-out"
SAMPLES = "samples"
FIRST_CALIBRATION = 1


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> TrainPayload:
    """Return the payload of the fit process: the paths of the tables, and the roles of their columns."""
    spec = spec_of(claim)
    validation = spec["validation"]
    dataset = _ready(session, claim.owner, claim.dataset_id)
    other = None
    if validation["method"] == "dataset":
        other = _ready(session, claim.owner, validation["dataset_id"])
    also = protected_features(spec)
    cells = (dataset.rows or 0) * len(feature_columns(dataset, also))
    payload: TrainPayload = {
        "workdir": str(workdir),
        "spec": spec,
        "table": _table_of(dataset, validation.get("time_column"), also),
        "validation_table": None,
        "order": row_order(validation, dataset),
        "dataset_kind": dataset.kind,
        "groupings": [],
        "pair": [dataset.negative, dataset.positive],
        "labels": cast(list[LabelValues] | None, dataset.labels),
        "finished": unpack(child_jobs.finished(session, claim.job_id)),
        "ended": claim.keep_requested,
        "fan_out_from": max(2, math.ceil(settings.fan_out_cells / max(cells, 1))),
        "fits_a_part": fits_a_part(cells, settings.fan_out_cells),
        "job_timeout_seconds": settings.job_timeout_seconds,
        "seconds_left": claim.seconds_left,
        "cluster": None,
    }
    if settings.dask_address is not None:
        payload["cluster"] = {
            "address": settings.dask_address,
            "secret": str(settings.dask_secret),
            "seconds": settings.dask_seconds,
        }
    if other is not None:
        payload["validation_table"] = _table_of(other, None, also)
        _check_fits(dataset, other, also)
    if dataset.kind == DatasetKind.BIPARTITE and validation["method"] != "none":
        declared = protected_columns(dataset)
        payload["groupings"] = protected_groupings(other or dataset, declared)
    return payload


def _ready(session: Session, owner: str, dataset_id: str | None) -> Dataset:
    """Raises Conflict if the dataset was deleted or is not ready."""
    dataset = find_to_read(session, owner, dataset_id)
    if dataset.status != DatasetStatus.READY or dataset.table_key is None:
        raise Conflict(
            f"dataset {dataset.id} must be ready, but is {dataset.status}", code="dataset_not_ready"
        )
    check_pairs_ready(dataset)
    return dataset


def spec_of(claim: Claim) -> TrainSpec:
    return cast(TrainSpec, claim.spec)


def _table_of(dataset: Dataset, time_column: str | None, also: Collection[str]) -> TrainTable:
    """Return the blob key and roles of a table. The time column is no feature; protected columns only if in `also`."""
    features: list[Feature] = [
        {"name": column["name"], "type": column["type"]}
        for column in feature_columns(dataset, also)
        if column["name"] != time_column
    ]
    return {**table_of(dataset), "features": features}


def _check_fits(dataset: Dataset, other: Dataset, also: Collection[str]) -> None:
    """Raise Invalid if the validation dataset does not fit."""
    if label_values(dataset) != label_values(other):
        raise Invalid(
            f"the validation dataset {other.id} must have the label values {show_labels(dataset)}, but has "
            f"{show_labels(other)}",
            code="label_mismatch",
        )
    if (misfit := find_misfit(dataset, other, also)) is not None:
        raise Invalid(f"the validation dataset {other.id} {misfit}", code="unknown_column")


def run(payload: TrainPayload, callback: Callback) -> TrainResult | FanOutResult:
    """Run the plan; return the result, or a request for child jobs. Only computes, on the files of the payload.

    A first stage of many fits (each counted with all cells of the table) is run by child jobs, and so are the stages
    after it; a large fit of many pieces is divided into child jobs, too. Baselines run where the fits run with which
    they are compared. Once a stage has run in this process, whose files other processes cannot read, the other stages
    run here as well.

    A job whose owner requested an early end starts no more trials once each scope has a candidate to choose.
    """
    from app.training.fitting import FitContext

    def begin() -> tuple[Reporter, FitContext]:
        reporter = Reporter(payload["spec"], callback, ended=payload.get("ended", False))
        return reporter, FitContext(payload, reporter)

    reporter, context = begin()
    notes = []
    if payload["spec"].get("automatic_validation") and folds_of(payload["spec"]["validation"]):
        try:
            _ = context.data
        except Invalid as error:
            if error.code != TOO_FEW_ROWS:
                raise
            payload = _with_holdout(payload)
            reporter, context = begin()
            notes.append(
                f"a quarter of the rows was held out, because cross-validation is not possible: {error.detail}"
            )
    with kernels.when_compiling(context.clock.listen):
        return _run(payload, context, reporter, notes)


def _with_holdout(payload: TrainPayload) -> TrainPayload:
    spec = payload["spec"].copy()
    spec["validation"] = {"method": HOLDOUT, "fraction": HOLDOUT_FRACTION}
    if (rows := spec.get("evaluated_rows")) is not None:
        spec["evaluated_rows"] = max(1, round(HOLDOUT_FRACTION * rows))
    return {**payload, "spec": spec}


def _run(
    payload: TrainPayload, context: FitContext, reporter: Reporter, notes: Sequence[str]
) -> TrainResult | FanOutResult:
    """Run stage after stage; `notes` are the first warnings of the model."""
    from app.training.result import put_together

    workdir, ended = Path(payload["workdir"]), payload.get("ended", False)
    plan = Plan(payload["spec"], context, reporter.ends)
    finished = list(payload.get("finished", ()))
    for each in finished:
        reporter.board.add(each["spec"], each["result"])
    clock = _Clock(payload.get("started"))
    least_pieces = payload.get("fan_out_from", math.inf)
    least_fits = 2 if finished else least_pieces
    if ended or (search.budget_of(payload["spec"], 1) is not None and not plan.folds):
        # A budget cannot be kept across the queue; and after a request to end, no parts are needed.
        least_fits = math.inf
    begun = stage = finished[-1]["stage"] + 1 if finished else 0
    done = 0.0
    while stage_parts := plan.next(finished, least_pieces if stage == begun else math.inf):
        fits = sum(part["what"] != BASELINE for part in stage_parts)
        is_divided = any(part["what"] == SHARD for part in stage_parts)
        if stage == begun and (is_divided or fits >= least_fits):
            packed = pack(stage_parts, 1 if is_divided else payload["fits_a_part"])
            share = fraction_of(stage_parts)
            return {"fan_out": {"stage": stage, "parts": packed, "share": share}}
        ran = _run_stage(context, reporter, stage, stage_parts, workdir, 1.0 - done)
        finished += clock.divide(ran, context.uncounted)
        done += (1.0 - done) * fraction_of(stage_parts)
        stage += 1
    reporter.enter(MEASURING)
    notes = [*notes, *reporter.notes(), *context.notes()]
    result = put_together(payload, plan, context.data, finished, notes)
    if search.searches(payload["spec"]):
        chosen = plan.chosen(SERVED, finished)
        result["progress"] = kept_board(payload["spec"], chosen, trials_for_served(finished))
    return result


def _run_stage(
    context: FitContext,
    reporter: Reporter,
    stage: int,
    stage_parts: Sequence[PlanPart],
    workdir: Path,
    left: float,
) -> list[Finished]:
    """Run a stage in this process: several trials in parallel, other parts one after the other.

    `left` is the fraction of all work that is left; baselines do not count in it. Once the job's owner has asked for
    the best so far, parts that the job can do without are left out.
    """
    from core.ensemble import fit_together

    n_counted = sum(part["what"] != BASELINE for part in stage_parts)
    fraction = left * fraction_of(stage_parts) / max(n_counted, 1)
    trials = all(part["what"] == TRIAL for part in stage_parts)
    results: dict[int, Outcome] = {}

    def run_part(number: int, part: PlanPart) -> Callable[[Callback], None]:
        def run(callback: Callback) -> None:
            if reporter.may_leave_out(part):
                results[number] = leave_out(part)
                return
            folder = workdir / f"{stage}-{number}"
            folder.mkdir(exist_ok=True)
            progress = reporter.begin(
                part, 0.0 if part["what"] == BASELINE else fraction, callback if trials else None
            )
            results[number] = context.run(part, folder, progress)
            progress.finish(results[number])

        return run

    def report(_: int, step: int, of: int, info: Mapping[str, float]) -> None:
        reporter.send(step, of, info)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model gets the warnings of its own fit
        while todo := [number for number in range(len(stage_parts)) if number not in results]:
            fits = [run_part(number, stage_parts[number]) for number in todo]
            try:
                # after a request to end, no more trials than needed
                at_once = context.at_once if trials and not reporter.ended else 1
                fit_together(fits, report, at_once)
            except EndEarly:
                reporter.ended = True
    return [
        as_finished(stage, number, part, results[number]) for number, part in enumerate(stage_parts)
    ]


class _Clock:
    """Divides the duration of a stage among its parts, so that they add up to the time of the job.

    The first stage includes the imports and the reading of the table since the start of the attempt.
    """

    def __init__(self, started: float | None) -> None:
        self._latest = time.monotonic() if started is None else started

    def divide(self, finished: list[Finished], uncounted: float) -> list[Finished]:
        """Set each part's share of the duration as `elapsed`. uncounted: seconds since the start outside the budget."""
        now = time.monotonic() - uncounted
        seconds, self._latest = max(now - self._latest, 0.0), now
        total = sum(each["result"]["elapsed"] for each in finished)
        for each in finished:
            each["result"]["elapsed"] *= seconds / max(total, 1e-9)
        return finished


class Published(NamedTuple):
    """The id of a new model, the blob of its artifact, and its rows in all tables except `models`."""

    model_id: str
    artifact_key: str
    rows: list[Base]


def publish(blobs: Publisher, claim: Claim, result: TrainResult) -> Published:
    """Store the artifact and construct the rows outside a transaction: curves may have many points."""
    workdir, artifact = Path(result["workdir"]), result["artifact"]
    stored = blobs.publish(workdir / artifact["file"], ARTIFACTS, artifact["sha256"])
    model_id = new_id("mdl")
    rows: list[Base] = []
    for part, metrics in result["parts"].items():
        rows += _rows_of_part(model_id, part, metrics, workdir)
    rows += _rows_to_interpret(blobs, claim, model_id, result)
    rows += _rows_of_validation(blobs, claim, model_id, result)
    rows += _rows_of_calibration(claim, model_id, result)
    return Published(model_id, stored.key, rows)


def complete(session: Session, claim: Claim, result: TrainResult, published: Published) -> None:
    """Write the model and the end of the job; queue the job that measures what there was no time for."""
    spec, artifact = spec_of(claim).copy(), result["artifact"]
    spec["validation"] = result.get("validation", spec["validation"])
    dataset = dataset_repository.find(session, claim.owner, claim.dataset_id or "")
    warnings = [*result["warnings"], *notes_on(spec, dataset)]
    later, messages = None, warnings
    if result.get("importance_later", False):
        rest: ImportanceSpec = {"importance_of": published.model_id, "training": spec}
        least = result.get("job_timeout_seconds", 0.0)
        later = enqueue_rest(session, claim, IMPORTANCE, rest, min_timeout_seconds=least).id
        # Of the job alone: the model has its importance soon, and no other reader is to be warned.
        messages = [
            *warnings,
            f"no time left in the budget for the feature importance: job {later} computes it afterwards",
        ]
    progress = result.get("progress") or {}
    job = job_repository.find(session, claim.owner, claim.job_id)
    if progress and job is not None:
        progress = concluded(progress, job.progress)
    queue.finish(session, claim, model_id=published.model_id, messages=messages, progress=progress)
    model_repository.insert(
        session,
        id=published.model_id,
        owner=claim.owner,
        name=spec["model_name"],
        job_id=claim.job_id,
        dataset_id=claim.dataset_id,
        dataset=spec.get("dataset"),
        validation_dataset=spec["validation_dataset"],
        kind=result["dataset_kind"],
        algorithm=spec["algorithm"]["name"],
        objective=spec["objective"],
        validation=spec["validation"],
        optimised_for=_optimised_for(spec) if spec["objective"] else {},
        selected_by=spec["objective"] if search.searches(spec) else None,
        beats_baselines=None if result["baselines"] is None else result["baselines"]["beats"],
        negative=result["pair"][0],
        positive=result["pair"][1],
        table_dialect=table_dialect_of(dataset),
        seed=spec["seed"],
        tags=job.tags if job else {},
        warnings=warnings,
        artifact_key=published.artifact_key,
        artifact_sha256=artifact["sha256"],
        artifact_bytes=artifact["bytes"],
        importance_job_id=later,
        protected=_decided(spec, job),
        calibration_version=None if result.get("calibration") is None else FIRST_CALIBRATION,
        **{name: value for name, value in result.items() if name in ModelColumns.__annotations__},
    )
    for row in published.rows:
        calibrations.stamp(row)
    session.add_all(published.rows)


def _decided(spec: TrainSpec, job: Job | None) -> list[ProtectedColumn]:
    """Return the protected columns, with the time of the decision on those that are features."""
    at = None if job is None else job.created_at
    return [
        {**column, "decided_at": at if column["feature"] else None}
        for column in spec["protected_columns"]
    ]


def _rows_of_part(model_id: str, part: str, metrics: PartMetrics, workdir: Path) -> list[Base]:
    """Return the measurement and, if there are any, the margins."""
    stored: dict[str, Any] = {**metrics}
    curve, measured = stored.pop("curve", None), stored.pop("margins", None)
    if "pauc" in stored:
        stored["pauc"] = sorted(stored["pauc"], key=lambda area: (area["fpr_min"], area["fpr_max"]))
    row = Measurement(
        id=Measurement.id_of(model_id, part),
        model_id=model_id,
        part=part,
        metrics=stored,
    )
    if curve:
        store_curve(row, workdir / curve)
    return [row, margins.row_of(model_id, measured, workdir)] if measured else [row]


def _rows_to_interpret(
    blobs: Publisher, claim: Claim, model_id: str, result: TrainResult
) -> list[Base]:
    own = claim.dataset_id or ""
    other = spec_of(claim)["validation"].get("dataset_id")
    dataset_of = {"train": own, VALIDATION: other or own}
    workdir = Path(result["workdir"])
    rows: list[Base] = []
    for part, sample in result["samples"].items():
        file = workdir / sample["file"]
        data = file.read_bytes()
        if part != VALIDATION:
            few, width = min(sample["rows"], REFERENCE_ROWS), 8 * sample["features"]
            weight = data[width * sample["rows"] :][: 8 * few] or None
            first = data[: width * few]
            rows.append(
                ModelReferenceRows(
                    model_id=model_id, part=part, rows=few, values=first, weight=weight
                )
            )
        if part in dataset_of:
            stored = blobs.publish(file, SAMPLES, hashlib.sha256(data).hexdigest())
            rows.append(
                ModelSample(
                    model_id=model_id,
                    part=part,
                    dataset_id=dataset_of[part],
                    rows=sample["rows"],
                    sample_key=stored.key,
                    sample_bytes=stored.bytes,
                )
            )
    profile: TableProfile = orjson.loads((workdir / result["profile"]).read_bytes())
    rows.append(ModelProfile(model_id=model_id, profile=profile))
    if (importance := result["importance"]) is not None:
        names = [feature["name"] for feature in result["features"]]
        rows.append(row_of_importance(model_id, importance, names))
    if (reference := result.get("reference")) is not None:
        negative, positive = np.load(workdir / reference["file"], allow_pickle=False).astype("<f8")
        rows.append(
            ModelReference(
                model_id=model_id,
                part=reference["part"],
                negatives=reference["rows"][0],
                positives=reference["rows"][1],
                negative_score=reference["scores"][0],
                positive_score=reference["scores"][1],
                negative_parts=negative.tobytes(),
                positive_parts=positive.tobytes(),
            )
        )
    return rows


def row_of_importance(
    model_id: str, importance: ImportanceRecord, names: Sequence[str]
) -> ModelImportance:
    """Return the database row with the importance of each feature."""
    features: list[FeatureImportance] = [
        {"name": name, "importance": value}
        for name, value in zip(names, importance["values"], strict=True)
    ]
    if "gains" in importance:
        for feature, gain in zip(features, importance["gains"], strict=True):
            feature["root"], feature["auc_gain"] = math.sqrt(feature["importance"]), gain
    return ModelImportance(
        model_id=model_id,
        method=importance["method"],
        part=importance["part"],
        features=features,
    )


def _rows_of_validation(
    blobs: Publisher, claim: Claim, model_id: str, result: TrainResult
) -> list[Base]:
    rows: list[Base] = []
    if (scored := result["out_of_fold"]) is not None:
        file = Path(result["workdir"]) / scored["file"]
        rows.append(
            ModelOutOfFold(
                model_id=model_id,
                dataset_id=claim.dataset_id or "",
                blob_key=blobs.publish(file, OUT_OF_FOLD, scored["sha256"]).key,
                bytes=scored["bytes"],
                entries=scored["entries"],
                repeats=scored["repeats"],
                folds=scored["folds"],
                fold_aucs=scored["fold_aucs"],
            )
        )
    if (compared_groups := result.get("protected_groups")) is not None:
        steps = read_steps_file(Path(result["workdir"]))
        assert steps is not None
        rows.append(ModelGroups(model_id=model_id, steps=steps, **compared_groups))
    if (held_out := result.get("held_out")) is not None:
        file = Path(result["workdir"]) / held_out["file"]
        other = spec_of(claim)["validation"].get("dataset_id")
        rows.append(
            ModelHeldOut(
                model_id=model_id,
                dataset_id=other or claim.dataset_id or "",
                scores_key=blobs.publish(file, HELD_OUT, held_out["sha256"]).key,
                scores_bytes=held_out["bytes"],
            )
        )
    if (ranked := result["leaderboard"]) is not None:
        rows.append(ModelLeaderboard(model_id=model_id, **ranked))
    if (compared := result["baselines"]) is not None:
        fields = {name: value for name, value in compared.items() if name != "beats"}
        rows.append(ModelBaselines(model_id=model_id, **fields))
    return rows


def _rows_of_calibration(claim: Claim, model_id: str, result: TrainResult) -> list[Base]:
    """Return one row in a list; empty without a calibration."""
    if (learnt := result.get("calibration")) is None:
        return []
    spec = spec_of(claim)
    other = spec["validation_dataset"]
    return [
        calibrations.row_of(
            model_id,
            learnt,
            Path(result["workdir"]),
            version=FIRST_CALIBRATION,
            job_id=claim.job_id,
            dataset=other or spec.get("dataset"),
        )
    ]


def _optimised_for(spec: TrainSpec) -> Objective:
    """Return what the algorithm itself optimizes: its window, or the pairs it is trained on, else the whole curve."""
    objective, parameters = spec["objective"], spec["algorithm"]["parameters"]
    if objective["metric"] == "tpr" and "fpr_max" in parameters:
        fpr_min, fpr_max = parameters["fpr_min"], parameters["fpr_max"]
        return {"metric": "pauc", "fpr_min": fpr_min, "fpr_max": fpr_max}
    if objective["metric"] == PAIR_ORDER or "fpr_max" in parameters:
        return objective
    return {"metric": "auc"}


def _lock_inputs(session: Session, old: Job) -> None:
    """Lock the datasets for a retry. Raises Conflict if one was deleted."""
    lock_inputs(session, old, (old.spec.get("validation") or {}).get("dataset_id"))


KIND = JobKind(
    name=TRAIN,
    changes_model=True,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
    before_retry=_lock_inputs,
)
