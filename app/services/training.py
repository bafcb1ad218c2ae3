"""Train: a ready table in, a ranker with its metrics and curves out, and all of it into SQL at once."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.db import datasets as dataset_rows
from app.db import jobs as job_rows
from app.db import models as model_rows
from app.db.base import Base
from app.db.session import Database
from app.db.tables import Dataset, DatasetStatus
from app.errors import Conflict, Invalid
from app.infra.blobs import BlobStore
from app.infra.ids import new_id
from app.infra.settings import Settings
from app.services import importances, queue, samples, search
from app.services.staging import publish
from app.services.submission import check_pairs_ready, find_misfit, label_values, show_labels
from app.services.trials import KINDS, Trial
from core import artifact
from core.ranker import Ranker
from core.registry import ALGORITHMS

ARTIFACTS = "artifacts"
VALIDATION = "validation"
MOST_CATEGORIES_SHOWN = 100
_ARTIFACT_FILE = "ranker.safetensors"

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
        "dataset_kind": dataset.kind,
        "pair": [dataset.negative, dataset.positive],
        "labels": dataset.labels,
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
    check_pairs_ready(dataset)
    return dataset


def _table_of(dataset: Dataset, blobs: BlobStore) -> Json:
    return {
        "path": str(blobs.path(dataset.table_key or "")),
        "pairs": str(blobs.path(dataset.pairs.table_key or "")) if dataset.pairs else None,
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
    if label_values(dataset) != label_values(judge):
        raise Invalid(
            f"the validation dataset {judge.id} must have the label values {show_labels(dataset)}, "
            f"it has {show_labels(judge)}",
            code="label_mismatch",
        )
    if (misfit := find_misfit(dataset, judge)) is not None:
        raise Invalid(f"the validation dataset {judge.id} {misfit}", code="unknown_column")


def run(payload: Mapping[str, Any], callback: Callback) -> Json:
    """Fit and judge; pure computing on the files that the payload names."""
    spec, workdir = payload["spec"], Path(payload["workdir"])
    features = payload["table"]["features"]
    names = [feature["name"] for feature in features]
    trial = KINDS[payload["dataset_kind"]].start(payload, names)
    algorithm, selection = spec["algorithm"], None
    if spec.get("search") is not None:  # jobs of earlier versions have no such entry
        selection = search.run(spec, trial, callback)
        callback = search.after(spec["search"], callback)
        parameters = algorithm["parameters"] | selection["chosen"]
        algorithm = algorithm | {"parameters": parameters}
    ranker, seconds, notes = _fit(algorithm, trial, callback)
    parts = trial.judge(ranker, spec["objective"], workdir)
    drawn = {part: trial.sample(part, spec["seed"]) for part in parts}
    kept = {
        part: samples.as_scored(sample, ranker)
        for part, sample in drawn.items()
        if sample is not None
    }
    data = artifact.save(ranker)
    (workdir / _ARTIFACT_FILE).write_bytes(data)
    missing = [_missing_among(trial.training_values(i)) for i in range(len(names))]
    return {
        "workdir": str(workdir),
        "dataset_kind": payload["dataset_kind"],
        "artifact": {
            "file": _ARTIFACT_FILE,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
        },
        "parts": parts,
        "samples": {part: samples.write(workdir, part, sample) for part, sample in kept.items()},
        "importance": importances.measure(ranker, trial, kept["train"], spec["seed"]),
        "features": [
            feature | {"missing": any_missing} | _categories_of(texts)
            for feature, (any_missing, _), texts in zip(
                features, missing, ranker.categories_, strict=True
            )
        ],
        "label": payload["table"]["label"],
        "pair": payload["pair"],
        "labels": payload["labels"],
        "parameters": algorithm["parameters"],
        "search": selection,
        "fit_seconds": seconds,
        "warnings": [
            *(selection.pop("notes") if selection else []),
            *trial.notes,
            *notes,
            *_note_empty([n for n, (_, empty) in zip(names, missing, strict=True) if empty]),
        ],
    }


def _fit(
    algorithm: Mapping[str, Any], trial: Trial, callback: Callback
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
        trial.fit(ranker, callback)
    seconds = time.perf_counter() - started
    return ranker, seconds, [str(w.message) for w in caught if issubclass(w.category, UserWarning)]


def _missing_among(values: npt.NDArray[np.float64]) -> tuple[bool, bool]:
    """Whether any is missing, and whether all are."""
    missing = np.isnan(values)
    return bool(missing.any()), bool(missing.all())


def _categories_of(texts: Sequence[str] | None) -> Json:
    """What is kept of a feature's categories in SQL: the artifact has them all."""
    if texts is None:
        return {}
    return {"categories": list(texts[:MOST_CATEGORIES_SHOWN]), "n_categories": len(texts)}


def _note_empty(names: list[str]) -> list[str]:
    if not names:
        return []
    shown = ", ".join(repr(name) for name in names[:10])
    return [f"{len(names)} features have no value in the training part: {shown}"]


def complete(db: Database, blobs: BlobStore, claim: queue.Claim, result: Mapping[str, Any]) -> None:
    """Publish the artifact, then write model, metrics, curves and the job's end in one transaction.

    May be called again with the same result when the database was away.
    """
    workdir, made = Path(result["workdir"]), result["artifact"]
    publish(blobs, workdir / made["file"], ARTIFACTS, made["sha256"])
    spec, model_id = claim.spec, new_id("mdl")
    kind = result["dataset_kind"]
    rows: list[Base] = [
        row
        for part, metrics in result["parts"].items()
        for row in KINDS[kind].rows_of(model_id, part, metrics, workdir)
    ]
    rows += _rows_to_interpret(claim, model_id, result)
    with db.write() as session:
        queue.finish(session, claim, model_id=model_id, messages=result["warnings"])
        job = job_rows.find(session, claim.owner, claim.job_id)
        model_rows.insert(
            session,
            id=model_id,
            owner=claim.owner,
            name=spec["model_name"],
            job_id=claim.job_id,
            dataset_id=claim.dataset_id,
            kind=kind,
            algorithm=spec["algorithm"]["name"],
            parameters=result["parameters"],
            objective=spec["objective"],
            validation=spec["validation"],
            optimised_for=_optimised_for(spec),
            selected_by=spec["objective"] if result["search"] else None,
            search=result["search"],
            features=result["features"],
            label=result["label"],
            negative=result["pair"][0],
            positive=result["pair"][1],
            labels=result["labels"],
            seed=spec["seed"],
            tags=job.tags if job else {},
            warnings=result["warnings"],
            fit_seconds=result["fit_seconds"],
            artifact_sha256=made["sha256"],
            artifact_bytes=made["bytes"],
        )
        session.add_all(rows)


def _rows_to_interpret(claim: queue.Claim, model_id: str, result: Mapping[str, Any]) -> list[Base]:
    """What is kept to ask the model what it has learnt."""
    own = claim.dataset_id or ""
    of_part = {"train": own, VALIDATION: claim.spec["validation"].get("dataset_id") or own}
    workdir = Path(result["workdir"])
    rows: list[Base] = [
        samples.row_of(model_id, part, of_part[part], written, workdir)
        for part, written in result["samples"].items()
    ]
    if result["importance"] is not None:
        names = [feature["name"] for feature in result["features"]]
        rows.append(importances.row_of(model_id, names, result["importance"]))
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
