"""Train: a ready table in, a ranker with its metrics and curves out, and all of it into SQL at once."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from app.db import datasets as dataset_rows
from app.db import jobs as job_rows
from app.db import models as model_rows
from app.db.session import Database
from app.db.tables import Dataset, DatasetStatus, ModelCurve, ModelMetrics, ModelPartialAuc
from app.errors import Conflict, Invalid
from app.infra.blobs import BlobStore
from app.infra.ids import new_id
from app.infra.settings import Settings
from app.services import queue
from app.services.staging import publish
from app.services.tables import Columns, Floats, Table, check_classes, read_table, split
from core import artifact
from core.metrics import Summary, summarise
from core.ranker import Ranker
from core.registry import ALGORITHMS

ARTIFACTS = "artifacts"
TRAIN, VALIDATION = "train", "validation"
DEFAULT_WINDOW = (0.0, 0.05)
_ARTIFACT_FILE = "ranker.safetensors"
_SCORE_ROWS = 1 << 16

Callback = Callable[[int, int, Mapping[str, float]], None]
Json = dict[str, Any]


def prepare(db: Database, blobs: BlobStore, settings: Settings, claim: queue.Claim) -> Json:
    """Gather what the fit needs to know: where the tables lie and which column is what."""
    validation = claim.spec["validation"]
    with db.read() as session:
        dataset = _ready(
            dataset_rows.find(session, claim.owner, claim.dataset_id or ""), claim.dataset_id
        )
        judge = None
        if validation["method"] == "dataset":
            other = validation["dataset_id"]
            judge = _ready(dataset_rows.find(session, claim.owner, other), other)
    payload: Json = {
        "kind": claim.kind,
        "spec": claim.spec,
        "table": _table_of(dataset, blobs),
        "validation_table": None,
        "pair": [dataset.negative, dataset.positive],
    }
    if judge is not None:
        payload["validation_table"] = _table_of(judge, blobs)
        _check_judge(dataset, judge)
    return payload | {"workdir": str(blobs.staging_dir())}


def _ready(dataset: Dataset | None, dataset_id: str | None) -> Dataset:
    if dataset is None:
        raise Conflict(
            f"dataset {dataset_id} was deleted before the job ran", code="dataset_deleted"
        )
    if dataset.status != DatasetStatus.READY or dataset.table_key is None:
        raise Conflict(
            f"dataset {dataset.id} must be ready, it is {dataset.status}", code="dataset_not_ready"
        )
    return dataset


def _table_of(dataset: Dataset, blobs: BlobStore) -> Json:
    return {
        "path": str(blobs.path(dataset.table_key or "")),
        "label": dataset.label,
        "weight": dataset.weight,
        "group": dataset.group,
        "features": [
            {"name": column["name"], "type": column["type"]}
            for column in dataset.columns
            if column["role"] == "feature"
        ],
    }


def _check_judge(dataset: Dataset, judge: Dataset) -> None:
    pair, other = (dataset.negative, dataset.positive), (judge.negative, judge.positive)
    if pair != other:
        raise Invalid(
            f"the validation dataset {judge.id} must have the label values {pair} (negative, positive), "
            f"got {other}",
            code="label_mismatch",
        )
    has = {column["name"] for column in judge.columns if column["role"] == "feature"}
    lacks = [c["name"] for c in dataset.columns if c["role"] == "feature" and c["name"] not in has]
    if lacks:
        raise Invalid(
            f"the validation dataset {judge.id} must have every feature, it lacks "
            + ", ".join(repr(name) for name in lacks[:10]),
            code="unknown_column",
        )


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Fit and judge; pure computing on the files that the payload names."""
    spec, workdir = payload["spec"], Path(payload["workdir"])
    features = payload["table"]["features"]
    names = [feature["name"] for feature in features]
    train, validation = _parts(payload, names)
    ranker, seconds, notes = _fit(spec["algorithm"], train, callback)
    parts: Json = {}
    windows = _windows(spec["objective"])
    for part, table in ((TRAIN, train), (VALIDATION, validation)):
        if table is not None:
            summary = summarise(table.y, _score(ranker, table.X), table.weight, windows)
            curve = None
            if validation is not None:  # without a validation part the model has no curve at all
                curve = f"{part}.curve"
                _write_curve(workdir / curve, summary)
            parts[part] = _metrics(summary) | {"curve": curve}
    ranker.feature_names_in_ = np.array(names, dtype=object)  # so that the artifact explains itself
    data = artifact.save(ranker)
    (workdir / _ARTIFACT_FILE).write_bytes(data)
    missing = [bool(np.isnan(column).any()) for column in train.X.T]
    return {
        "workdir": str(workdir),
        "artifact": {
            "file": _ARTIFACT_FILE,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
        },
        "parts": parts,
        "features": [f | {"missing": m} for f, m in zip(features, missing, strict=True)],
        "label": payload["table"]["label"],
        "pair": payload["pair"],
        "fit_seconds": seconds,
        "warnings": notes + _notes_on(train, names),
    }


def _parts(payload: Mapping[str, Any], names: list[str]) -> tuple[Table, Table | None]:
    """Return the training part and, unless there is none, the validation part."""
    spec = payload["spec"]
    validation = spec["validation"]
    table = read_table(Path(payload["table"]["path"]), _columns(payload["table"], names))
    check_classes(table.y, "the table")
    match validation["method"]:
        case "none":
            return table, None
        case "holdout":
            rows = split(table, names, validation["fraction"], spec["seed"])
            return table.take(rows[0]), table.take(rows[1])
        case "dataset":
            other = payload["validation_table"]
            judge = read_table(Path(other["path"]), _columns(other, names))
            check_classes(judge.y, "the validation dataset")
            return table, judge
    raise Invalid(
        f"validation.method must be holdout, dataset or none in this version, got {validation['method']!r}",
        code="unsupported",
    )


def _columns(table: Mapping[str, Any], names: list[str]) -> Columns:
    return Columns(names, table["label"], table["weight"], table["group"])


def _fit(
    algorithm: Mapping[str, Any], train: Table, callback: Callback
) -> tuple[Ranker, float, list[str]]:
    """Fit by the algorithm of the registry; its parameters were resolved and checked when the job was taken in."""
    if algorithm["name"] not in ALGORITHMS:
        raise Invalid(
            f"algorithm.name must be one of {', '.join(ALGORITHMS)}, got {algorithm['name']!r}",
            code="unknown_algorithm",
        )
    ranker = ALGORITHMS[algorithm["name"]](**algorithm["parameters"])
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        ranker.fit(train.X, train.y, train.weight, callback=callback)
    seconds = time.perf_counter() - started
    return ranker, seconds, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def _score(ranker: Ranker, X: Floats) -> Floats:
    """Score in blocks: the ranker reads rows, the table lies in columns, and a whole copy would double its memory."""
    scores = np.empty(len(X))
    for start in range(0, len(X), _SCORE_ROWS):
        block = np.ascontiguousarray(X[start : start + _SCORE_ROWS])
        scores[start : start + _SCORE_ROWS] = ranker.score_rows(block)
    return scores


def _windows(objective: Mapping[str, Any]) -> list[tuple[float, float]]:
    windows = [DEFAULT_WINDOW]
    if objective["metric"] == "pauc":
        own = (float(objective["fpr_min"]), float(objective["fpr_max"]))
        if own not in windows:
            windows.append(own)
    return windows


def _metrics(summary: Summary) -> Json:
    return {
        "auc": summary.auc._asdict(),
        "level": summary.level,
        "positives": summary.positives,
        "negatives": summary.negatives,
        "positive_weight": summary.totals.positive,
        "negative_weight": summary.totals.negative,
        "positive_effective": summary.totals.positive_effective,
        "negative_effective": summary.totals.negative_effective,
        "ties": summary.ties,
        "partial_aucs": [
            {"fpr_min": area.fpr_min, "fpr_max": area.fpr_max, **area.interval._asdict()}
            for area in summary.partial_aucs
        ],
    }


def _write_curve(path: Path, summary: Summary) -> None:
    """Write fpr, tpr and thresholds one after the other, float64 little-endian, as they will lie in SQL."""
    curve = summary.curve
    np.stack((curve.fpr, curve.tpr, curve.thresholds)).astype("<f8").tofile(path)


def _notes_on(train: Table, names: list[str]) -> list[str]:
    empty = [name for name, column in zip(names, train.X.T, strict=True) if np.isnan(column).all()]
    if not empty:
        return []
    shown = ", ".join(repr(name) for name in empty[:10])
    return [f"{len(empty)} features have no value in the training part: {shown}"]


def complete(db: Database, blobs: BlobStore, claim: queue.Claim, result: Mapping[str, Any]) -> None:
    """Publish the artifact, then write model, metrics, curves and the job's end in one transaction.

    May be called again with the same result when the database was away.
    """
    workdir, made = Path(result["workdir"]), result["artifact"]
    publish(blobs, workdir / made["file"], ARTIFACTS, made["sha256"])
    spec, model_id = claim.spec, new_id("mdl")
    curves = [
        _curve_row(model_id, part, workdir, m) for part, m in result["parts"].items() if m["curve"]
    ]
    with db.write() as session:
        queue.finish(session, claim, model_id=model_id)
        job = job_rows.find(session, claim.owner, claim.job_id)
        model_rows.insert(
            session,
            id=model_id,
            owner=claim.owner,
            name=spec["model_name"],
            job_id=claim.job_id,
            dataset_id=claim.dataset_id,
            algorithm=spec["algorithm"]["name"],
            parameters=spec["algorithm"]["parameters"],
            objective=spec["objective"],
            validation=spec["validation"],
            optimised_for=_optimised_for(spec),
            selected_by=None,  # nothing is selected yet: a search will say by what
            features=result["features"],
            label=result["label"],
            negative=result["pair"][0],
            positive=result["pair"][1],
            seed=spec["seed"],
            tags=job.tags if job else {},
            warnings=result["warnings"],
            fit_seconds=result["fit_seconds"],
            artifact_sha256=made["sha256"],
            artifact_bytes=made["bytes"],
        )
        for part, metrics in result["parts"].items():
            session.add_all(_metric_rows(model_id, part, metrics))
        session.add_all(curves)


def _optimised_for(spec: Mapping[str, Any]) -> Json:
    """Say what the algorithm itself optimises: the window where it takes one, else the whole curve."""
    if "fpr_max" in spec["algorithm"]["parameters"]:
        return dict(spec["objective"])
    return {"metric": "auc"}


def _metric_rows(
    model_id: str, part: str, metrics: Mapping[str, Any]
) -> list[ModelMetrics | ModelPartialAuc]:
    auc = metrics["auc"]
    same = metrics.keys() - {"auc", "partial_aucs", "curve"}
    rows: list[ModelMetrics | ModelPartialAuc] = [
        ModelMetrics(
            model_id=model_id,
            part=part,
            auc=auc["value"],
            auc_low=auc["low"],
            auc_high=auc["high"],
            **{name: metrics[name] for name in same},
        )
    ]
    return rows + [
        ModelPartialAuc(model_id=model_id, part=part, **area) for area in metrics["partial_aucs"]
    ]


def _curve_row(model_id: str, part: str, workdir: Path, metrics: Mapping[str, Any]) -> ModelCurve:
    fpr, tpr, thresholds = np.fromfile(workdir / metrics["curve"], dtype="<f8").reshape(3, -1)
    return ModelCurve(
        model_id=model_id,
        part=part,
        points=len(fpr),
        fpr=fpr.tobytes(),
        tpr=tpr.tobytes(),
        thresholds=thresholds.tobytes(),
    )
