"""What is kept of how a model was judged and chosen, read: out-of-fold scores, controls, the leaderboard."""

from __future__ import annotations

from pathlib import Path

from app.models.service import find
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.errors import Conflict, NotFound, Unavailable
from app.platform.tables import Model, ModelControls, ModelLeaderboard, ModelOutOfFold


def read_out_of_fold(
    db: Database, blobs: BlobStore, owner: str, ref: str
) -> tuple[Model, ModelOutOfFold, Path]:
    """The model, what is known of its out-of-fold scores, and their Parquet file."""
    with db.read() as session:
        model = find(session, owner, ref)
        found = session.get(ModelOutOfFold, model.id)
    if model.validation["method"] != "cross_validation":
        raise NotFound(
            f"model {model.id} has no out-of-fold scores: it was trained with validation.method "
            f"{model.validation['method']!r}",
            code="not_cross_validated",
        )
    if found is None:
        raise Conflict(
            f"the out-of-fold scores of model {model.id} went with its dataset {model.dataset_id}",
            code="dataset_deleted",
        )
    path = blobs.path(found.blob_key)
    if not path.exists():
        raise Unavailable(
            f"the out-of-fold scores of model {model.id} are not in the blob store",
            code="blob_missing",
        )
    return model, found, path


def read_controls(db: Database, owner: str, ref: str) -> tuple[Model, ModelControls]:
    """How the model compares with plain algorithms."""
    with db.read() as session:
        model = find(session, owner, ref)
        found = session.get(ModelControls, model.id)
    if found is None:
        raise NotFound(f"model {model.id} was trained without controls", code="no_controls")
    return model, found


def read_leaderboard(db: Database, owner: str, ref: str) -> tuple[Model, ModelLeaderboard]:
    """What `auto` has tried for the model."""
    with db.read() as session:
        model = find(session, owner, ref)
        found = session.get(ModelLeaderboard, model.id)
    if found is None:
        raise NotFound(
            f"model {model.id} has no leaderboard: its algorithm is {model.algorithm}, not auto",
            code="no_leaderboard",
        )
    return model, found
