"""Algorithms as callers see them, from the registry and the estimators' signatures; and how a model was judged."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, create_model

from app.models.service import find
from app.platform.blobs import BlobStore
from app.platform.errors import Conflict, NotFound, Unavailable
from app.platform.sql import Session
from app.platform.tables import Model, ModelControls, ModelLeaderboard, ModelOutOfFold
from app.training.search import AUTO, BUDGET_SECONDS, MOST_SECONDS
from app.training.submission import own_parameters
from core.parameters import list_parameters
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.ranker import Ranker


def describe_all() -> list[dict[str, Any]]:
    """Name, summary, paper and JSON Schema of the parameters of every algorithm, and of `auto` before them."""
    from core.selection import Auto

    return [
        _described(AUTO, Auto, _auto_schema()),
        *(
            _described(name, estimator, parameter_schema(name, estimator))
            for name, estimator in ALGORITHMS.items()
        ),
    ]


def _described(name: str, of: type, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "summary": _summary(of), "paper": _paper(of), "parameters": parameters}


def parameter_schema(name: str, estimator: type[Ranker]) -> dict[str, Any]:
    """JSON Schema of the parameters that a job may set."""
    own = own_parameters(estimator)
    fields: dict[str, Any] = {
        parameter.name: (
            parameter.json_annotation,
            Field(default=parameter.default, description=parameter.doc),
        )
        for parameter in list_parameters(estimator)
        if parameter.name in own
    }
    return _schema(name, fields)


def _auto_schema() -> dict[str, Any]:
    """The same of `auto`, whose one parameter `search.check_auto` checks."""
    budget = Field(
        default=BUDGET_SECONDS,
        gt=0,
        le=MOST_SECONDS,
        description="Seconds that it may take by the clock, the fits on all rows included.",
    )
    return _schema(AUTO, {"budget_seconds": (float, budget)})


def _schema(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    schema: dict[str, Any] = model.model_json_schema()
    return schema


def _summary(of: type) -> str:
    return (inspect.getdoc(of) or "").partition("\n\n")[0].replace("\n", " ")


def _paper(of: type) -> str:
    """The first entry under References in the docstring."""
    _, _, references = (inspect.getdoc(of) or "").partition("References\n----------\n")
    first = references.partition("\n\n")[0]
    return re.sub(r"\s+", " ", first).strip()


def read_out_of_fold(
    session: Session, blobs: BlobStore, owner: str, ref: str
) -> tuple[Model, ModelOutOfFold, Path]:
    """The model, what is known of its out-of-fold scores, and their Parquet file."""
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


def read_controls(session: Session, owner: str, ref: str) -> tuple[Model, ModelControls]:
    """How the model compares with plain algorithms."""
    model = find(session, owner, ref)
    found = session.get(ModelControls, model.id)
    if found is None:
        raise NotFound(f"model {model.id} was trained without controls", code="no_controls")
    return model, found


def read_leaderboard(session: Session, owner: str, ref: str) -> tuple[Model, ModelLeaderboard]:
    """What `auto` has tried for the model."""
    model = find(session, owner, ref)
    found = session.get(ModelLeaderboard, model.id)
    if found is None:
        raise NotFound(
            f"model {model.id} has no leaderboard: its algorithm is {model.algorithm}, not auto",
            code="no_leaderboard",
        )
    return model, found
