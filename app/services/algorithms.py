"""The algorithms as callers see them: generated from the registry and the estimators' signatures."""

from __future__ import annotations

import inspect
import re
from typing import Any

from pydantic import ConfigDict, Field, create_model

from app.services.submission import own_parameters
from core.parameters import list_parameters
from core.ranker import Ranker
from core.registry import ALGORITHMS


def describe_all() -> list[dict[str, Any]]:
    """Name, summary, paper and JSON Schema of the parameters of every algorithm."""
    return [
        {
            "name": name,
            "summary": _summary(estimator),
            "paper": _paper(estimator),
            "parameters": parameter_schema(name, estimator),
        }
        for name, estimator in ALGORITHMS.items()
    ]


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
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    schema: dict[str, Any] = model.model_json_schema()
    return schema


def _summary(estimator: type[Ranker]) -> str:
    return (inspect.getdoc(estimator) or "").partition("\n\n")[0].replace("\n", " ")


def _paper(estimator: type[Ranker]) -> str:
    """The first entry under References in the docstring."""
    _, _, references = (inspect.getdoc(estimator) or "").partition("References\n----------\n")
    first = references.partition("\n\n")[0]
    return re.sub(r"\s+", " ", first).strip()
