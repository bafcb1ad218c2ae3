"""Train: a ready table in, a ranker with its metrics and curves out, and all of it into SQL at once."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from app.datasets import repository as dataset_rows
from app.datasets.service import (
    check_pairs_ready,
    count_features,
    find_misfit,
    label_values,
    notes_on,
    show_labels,
    table_dialect_of,
)
from app.datasets.tasks import find_to_read, lock_inputs, table_of
from app.jobs import child_jobs as parts
from app.jobs import queue
from app.jobs import repository as job_rows
from app.jobs.kinds import Claim, JobKind
from app.jobs.progress import Callback
from app.jobs.service import TRAIN
from app.models import margins
from app.models import repository as model_rows
from app.models import service as models
from app.models.service import ARTIFACTS
from app.platform.blobs import BlobStore
from app.platform.errors import Conflict, Invalid
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Base, Json, Session
from app.platform.tables import (
    Dataset,
    DatasetKind,
    DatasetStatus,
    Job,
    ModelControls,
    ModelCurve,
    ModelImportance,
    ModelLabelMetrics,
    ModelLeaderboard,
    ModelMetrics,
    ModelOutOfFold,
    ModelPairMetrics,
    ModelPartialAuc,
    ModelSample,
)
from app.training import search
from app.training.plan import Plan, fits_a_part, pack, share_of, unpack
from app.training.progress import (
    BASELINE,
    MEASURING,
    SHARD,
    TRIAL,
    EndEarly,
    Reporter,
    leave_out,
)

if TYPE_CHECKING:
    from app.training.fitting import FitContext


OUT_OF_FOLD = "out-of-fold"


def prepare(
    session: Session, blobs: BlobStore, settings: Settings, claim: Claim, workdir: Path
) -> Json:
    """Gather what the fit needs to know: where the tables lie and which column is what."""
    validation = claim.spec["validation"]
    dataset = _ready(session, claim.owner, claim.dataset_id)
    judge = None
    if validation["method"] == "dataset":
        judge = _ready(session, claim.owner, validation["dataset_id"])
    cells = (dataset.rows or 0) * count_features(dataset)
    payload: Json = {
        "spec": claim.spec,
        "table": _table_of(dataset, blobs, validation.get("time_column")),
        "validation_table": None,
        "dataset_kind": dataset.kind,
        "pair": [dataset.negative, dataset.positive],
        "labels": dataset.labels,
        "finished": unpack(parts.finished(session, blobs, claim.job_id)),
        "ended": claim.keep_requested,
        "fan_out_from": max(2, math.ceil(settings.fan_out_cells / max(cells, 1))),
        "fits_a_part": fits_a_part(cells, settings.fan_out_cells),
    }
    if judge is not None:
        payload["validation_table"] = _table_of(judge, blobs, None)
        _check_judge(dataset, judge)
    return payload


def _ready(session: Session, owner: str, dataset_id: str | None) -> Dataset:
    dataset = find_to_read(session, owner, dataset_id)
    if dataset.status != DatasetStatus.READY or dataset.table_key is None:
        raise Conflict(
            f"dataset {dataset.id} must be ready, it is {dataset.status}", code="dataset_not_ready"
        )
    check_pairs_ready(dataset)
    return dataset


def _table_of(dataset: Dataset, blobs: BlobStore, time_column: str | None) -> Json:
    """What a table's columns are; the one that rows are ordered by is no feature."""
    features = [
        {"name": column["name"], "type": column["type"]}
        for column in dataset.columns
        if column["role"] == "feature" and column["name"] != time_column
    ]
    return table_of(dataset, blobs) | {"features": features}


def _check_judge(dataset: Dataset, judge: Dataset) -> None:
    if label_values(dataset) != label_values(judge):
        raise Invalid(
            f"the validation dataset {judge.id} must have the label values {show_labels(dataset)}, "
            f"it has {show_labels(judge)}",
            code="label_mismatch",
        )
    if (misfit := find_misfit(dataset, judge)) is not None:
        raise Invalid(f"the validation dataset {judge.id} {misfit}", code="unknown_column")


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Fit and judge; pure computing on the files that the payload names.

    A first stage of many fits, each taken for all cells of the table, is handed out to be run as jobs of their own, and
    so are those after it; a large fit of many pieces is divided for that. Baselines go where the fits go that they are
    compared with. What has run here is known to this process alone, so that from there on all is done here.

    A job that its owner has asked to end early tries nothing more once each scope has something to choose among.
    """
    from app.training.fitting import FitContext
    from app.training.result import put_together

    workdir, ended = Path(payload["workdir"]), payload.get("ended", False)
    reporter = Reporter(payload["spec"], callback, ended=ended)
    context = FitContext(payload, reporter)
    plan = Plan(payload["spec"], context, reporter.ends)
    finished = list(payload.get("finished", ()))
    for each in finished:
        reporter.board.add(each["spec"], each["result"])
    clock = _Clock()
    least = 2 if finished else payload.get("fan_out_from", math.inf)
    if ended or (search.budget_of(payload["spec"], 1) is not None and not plan.folds):
        least = (
            math.inf
        )  # a queue knows nothing of a budget, and who wants an end wants no more parts
    begun = stage = finished[-1]["stage"] + 1 if finished else 0
    share_from = payload.get("fan_out_from", math.inf)
    done = 0.0
    while stage_parts := plan.next(finished, share_from if stage == begun else math.inf):
        fits = sum(part["what"] != BASELINE for part in stage_parts)
        is_divided = any(part["what"] == SHARD for part in stage_parts)
        if stage == begun and (is_divided or fits >= least):
            packed = pack(stage_parts, 1 if is_divided else payload["fits_a_part"])
            share = share_of(stage_parts)
            return {"fan_out": {"stage": stage, "parts": packed, "share": share}}
        ran = _run_stage(context, reporter, stage, stage_parts, workdir, 1.0 - done)
        finished += clock.share_out(ran)
        done += (1.0 - done) * share_of(stage_parts)
        stage += 1
    reporter.enter(MEASURING)
    return put_together(payload, plan, context, finished, reporter.notes())


def _run_stage(
    context: FitContext,
    reporter: Reporter,
    stage: int,
    stage_parts: Sequence[Json],
    workdir: Path,
    left: float,
) -> list[Json]:
    """Run the parts of a stage in this process: trials some at once, other parts one after the other.

    `left` is the share of all work that is left; baselines go unnoticed in what is told of it. Once the job's owner has
    asked for the best so far, parts that the job can do without are left out.
    """
    from core.ensemble import fit_together

    n_counted = sum(part["what"] != BASELINE for part in stage_parts)
    share = left * share_of(stage_parts) / max(n_counted, 1)
    trials = all(part["what"] == TRIAL for part in stage_parts)
    results: dict[int, Json] = {}

    def run_part(number: int, part: Json) -> Callable[[Callback], None]:
        def run(callback: Callback) -> None:
            if reporter.may_leave_out(part):
                results[number] = leave_out(part)
                return
            folder = workdir / f"{stage}-{number}"
            folder.mkdir(exist_ok=True)
            progress = reporter.begin(
                part, 0.0 if part["what"] == BASELINE else share, callback if trials else None
            )
            results[number] = context.run(part, folder, progress)
            progress.finish(results[number])

        return run

    def report(_: int, step: int, of: int, info: Mapping[str, float]) -> None:
        reporter.send(step, of, info)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model hears of those of its own fit
        while todo := [number for number in range(len(stage_parts)) if number not in results]:
            fits = [run_part(number, stage_parts[number]) for number in todo]
            try:
                # who wants an end wants no more tries than it takes
                at_once = context.at_once if trials and not reporter.ended else 1
                fit_together(fits, report, at_once)
            except EndEarly:
                reporter.ended = True
    return [
        {"stage": stage, "part": number, "spec": part, "result": results[number]}
        for number, part in enumerate(stage_parts)
    ]


class _Clock:
    """Shares out the time of a stage, reading the table and planning included, among its parts.

    So what the parts of a job have taken adds up to the time of the job, whichever of them ran at once.
    """

    def __init__(self) -> None:
        self._latest = time.perf_counter()

    def share_out(self, finished: list[Json]) -> list[Json]:
        """Give the parts of a stage that has just ended, with the seconds of it that are theirs as `elapsed`."""
        seconds, self._latest = time.perf_counter() - self._latest, time.perf_counter()
        total = sum(each["result"]["elapsed"] for each in finished)
        for each in finished:
            each["result"]["elapsed"] *= seconds / max(total, 1e-9)
        return finished


class Published(NamedTuple):
    """What there is to write of a model: its id, and its rows beside the first."""

    model_id: str
    rows: list[Base]


def publish(blobs: BlobStore, claim: Claim, result: Mapping[str, Any]) -> Published:
    """Publish the artifact, and pack what is kept in rows: curves may have many points."""
    workdir, made = Path(result["workdir"]), result["artifact"]
    blobs.publish(workdir / made["file"], ARTIFACTS, made["sha256"])
    model_id = new_id("mdl")
    rows: list[Base] = []
    for part, metrics in result["parts"].items():
        rows += _rows_of_part(result["dataset_kind"], model_id, part, metrics, workdir)
    rows += _rows_to_interpret(claim, model_id, result)
    rows += _rows_of_validation(blobs, claim, model_id, result)
    return Published(model_id, rows)


def complete(
    session: Session, claim: Claim, result: Mapping[str, Any], published: Published
) -> None:
    """Write model, metrics, curves and the job's end."""
    spec, made = claim.spec, result["artifact"]
    dataset = dataset_rows.find(session, claim.owner, claim.dataset_id or "")
    warnings = [*result["warnings"], *notes_on(spec, dataset)]
    queue.finish(session, claim, model_id=published.model_id, messages=warnings)
    job = job_rows.find(session, claim.owner, claim.job_id)
    model_rows.insert(
        session,
        id=published.model_id,
        owner=claim.owner,
        name=spec["model_name"],
        job_id=claim.job_id,
        dataset_id=claim.dataset_id,
        dataset=spec.get("dataset"),
        validation_dataset=spec.get("validation_dataset"),
        kind=result["dataset_kind"],
        algorithm=spec["algorithm"]["name"],
        parameters=result["parameters"],
        objective=spec["objective"],
        validation=spec["validation"],
        optimised_for=_optimised_for(spec),
        selected_by=spec["objective"] if search.searches(spec) else None,
        search=result["search"],
        beats_controls=(result["controls"] or {}).get("beats"),
        features=result["features"],
        label=result["label"],
        negative=result["pair"][0],
        positive=result["pair"][1],
        labels=result["labels"],
        spelling=table_dialect_of(dataset),
        seed=spec["seed"],
        tags=job.tags if job else {},
        warnings=warnings,
        fit_seconds=result["fit_seconds"],
        artifact_sha256=made["sha256"],
        artifact_bytes=made["bytes"],
    )
    session.add_all(published.rows)


def _rows_of_part(
    kind: str, model_id: str, part: str, metrics: Mapping[str, Any], workdir: Path
) -> list[Base]:
    """What is kept of a part's metrics, in the figures of its kind of dataset."""
    own: Json = {"model_id": model_id, "part": part}
    if kind == DatasetKind.MULTILABEL:
        return [
            ModelLabelMetrics(**own, position=position, **label)
            for position, label in enumerate(metrics["labels"])
        ]
    large = {"auc", "partial_aucs", "curve", "margins"}
    figures = {name: value for name, value in metrics.items() if name not in large}
    rows: list[Base] = []
    if kind == DatasetKind.PREFERENCES:
        rows.append(ModelPairMetrics(**own, **figures))
    else:
        auc = metrics["auc"]
        rows.append(
            ModelMetrics(
                **own, auc=auc["value"], auc_low=auc["low"], auc_high=auc["high"], **figures
            )
        )
        rows += [ModelPartialAuc(**own, **area) for area in metrics["partial_aucs"]]
        if metrics["curve"]:
            rows.append(ModelCurve(**own, **models.curve_columns(workdir / metrics["curve"])))
    if metrics["margins"]:
        rows.append(margins.row_of(model_id, metrics["margins"], workdir))
    return rows


def _rows_to_interpret(claim: Claim, model_id: str, result: Mapping[str, Any]) -> list[Base]:
    """What is kept to ask the model what it has learnt."""
    own = claim.dataset_id or ""
    of_part = {"train": own, models.VALIDATION: claim.spec["validation"].get("dataset_id") or own}
    workdir = Path(result["workdir"])
    rows: list[Base] = []
    for part, written in result["samples"].items():
        data = (workdir / written["file"]).read_bytes()
        end = 8 * written["rows"] * written["features"]
        rows.append(
            ModelSample(
                model_id=model_id,
                part=part,
                dataset_id=of_part[part],
                rows=written["rows"],
                values=data[:end],
                weight=data[end:] or None,
            )
        )
    if (found := result["importance"]) is not None:
        names = [feature["name"] for feature in result["features"]]
        features = [
            {"name": name, "importance": value}
            for name, value in zip(names, found["values"], strict=True)
        ]
        if "gains" in found:
            for feature, gain in zip(features, found["gains"], strict=True):
                feature |= {"root": math.sqrt(feature["importance"]), "auc_gain": gain}
        rows.append(
            ModelImportance(
                model_id=model_id, method=found["method"], part=found["part"], features=features
            )
        )
    return rows


def _rows_of_validation(
    blobs: BlobStore, claim: Claim, model_id: str, result: Mapping[str, Any]
) -> list[Base]:
    """What is kept of how the model was judged; publishes the out-of-fold scores."""
    rows: list[Base] = []
    if (kept := result["out_of_fold"]) is not None:
        key = blobs.publish(Path(result["workdir"]) / kept["file"], OUT_OF_FOLD, kept["sha256"])
        same = ("bytes", "entries", "repeats", "folds", "fold_aucs")
        figures = {name: kept[name] for name in same}
        dataset_id = claim.dataset_id or ""
        rows.append(
            ModelOutOfFold(model_id=model_id, dataset_id=dataset_id, blob_key=key, **figures)
        )
    if (ranked := result["leaderboard"]) is not None:
        rows.append(ModelLeaderboard(model_id=model_id, **ranked))
    if (compared := result["controls"]) is not None:
        same = ("level", "controls", "windows", "decided_on", "skipped")
        rows.append(ModelControls(model_id=model_id, **{name: compared[name] for name in same}))
    return rows


def _optimised_for(spec: Mapping[str, Any]) -> Json:
    """Say what the algorithm itself optimises: the window where it takes one, the pairs where it learns from
    pairs, else the whole curve."""
    objective, parameters = spec["objective"], spec["algorithm"]["parameters"]
    if objective["metric"] == "tpr" and "fpr_max" in parameters:
        return {"metric": "pauc", **{end: parameters[end] for end in ("fpr_min", "fpr_max")}}
    if objective["metric"] == "pair_order" or "fpr_max" in parameters:
        return dict(objective)
    return {"metric": "auc"}


def _lock_inputs(session: Session, old: Job) -> None:
    """Lock the datasets for another job that trains on them; raises Conflict if one was deleted."""
    lock_inputs(session, old, (old.spec.get("validation") or {}).get("dataset_id"))


KIND = JobKind(
    name=TRAIN,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
    before_retry=_lock_inputs,
)
