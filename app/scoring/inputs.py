"""What a job that evaluates or scores reads: a dataset's table, models' artifacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.datasets import repository as dataset_rows
from app.datasets.matrices import Columns, Table, check_classes, read_table
from app.models import repository as model_rows
from app.models.service import artifact_key
from app.platform.blobs import BlobStore
from app.platform.errors import Conflict
from app.platform.sql import Json, Session
from app.platform.tables import Dataset, Model

if TYPE_CHECKING:
    from core.ranker import Ranker


def find_dataset(session: Session, owner: str, dataset_id: str | None) -> Dataset:
    """The dataset that a job reads: ready when that was asked for, and so ever since, unless it was deleted."""
    dataset = dataset_rows.find(session, owner, dataset_id or "")
    if dataset is None:
        raise _deleted("dataset", dataset_id)
    return dataset


def find_model(session: Session, owner: str, model_id: str) -> Model:
    """The model that a job uses."""
    model = model_rows.find(session, owner, model_id)
    if model is None:
        raise _deleted("model", model_id)
    return model


def _deleted(what: str, id_: str | None) -> Conflict:
    """The refusal of a job whose subject has gone."""
    return Conflict(f"{what} {id_} was deleted before the job ran", code=f"{what}_deleted")


def table_of(dataset: Dataset, blobs: BlobStore) -> Json:
    """Where a dataset's table lies, and which column is what."""
    return {
        "path": str(blobs.path(dataset.table_key or "")),
        "pairs": str(blobs.path(dataset.pairs.table_key or "")) if dataset.pairs else None,
        "label": dataset.label,
        "labels": [label["name"] for label in dataset.labels or []],
        "weight": dataset.weight,
        "group": dataset.group,
    }


def model_of(session: Session, model: Model, dataset: Dataset, blobs: BlobStore) -> Json:
    """Where a model's artifact lies, the features that it takes, in its order, and where the table lies that it was
    trained on, if that is there still and is another than the dataset that judges.
    """
    trained = dataset_rows.find(session, model.owner, model.dataset_id)
    is_other = trained is not None and trained.sha256 != dataset.sha256
    return {
        "name": f"{model.name}:{model.version}",
        "trained_on": str(blobs.path(trained.table_key or "")) if trained and is_other else None,
        "path": str(blobs.path(artifact_key(model))),
        "features": [feature["name"] for feature in model.features],
    }


def load_ranker(model: Mapping[str, Any]) -> Ranker:
    """Load what `model_of` names."""
    from core import artifact

    return artifact.load(Path(model["path"]).read_bytes())


def read_rows(table: Mapping[str, Any], features: Sequence[str]) -> Table:
    """Read a table whose rows have one label; raises Invalid where a class has too few."""
    columns = Columns(features, table["label"], table["weight"], table["group"])
    rows = read_table(Path(table["path"]), columns)
    present = rows.y if rows.weight is None else rows.y[rows.weight > 0]
    check_classes(present, "the dataset")
    return rows
