"""Dependencies of the scoring endpoints: the cache of loaded models, query parameters, and headers."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request

from app.http.dependencies import preferences, query_of
from app.scoring.answers import JSON
from app.scoring.service import ModelCache
from app.scoring.table_rows import IdFields

IdDep = Annotated[IdFields, Depends(query_of(IdFields))]
LabelQuery = Annotated[
    str | None,
    Query(description="Label whose scores are used. Only for a model with several labels."),
]


async def models_of(request: Request) -> ModelCache:
    models: ModelCache = request.app.state.models
    return models


ModelsDep = Annotated[ModelCache, Depends(models_of)]


def is_lenient(request: Request) -> bool:
    """`Prefer: handling=lenient`."""
    return preferences(request).get("handling") == "lenient"


def is_json(request: Request) -> bool:
    return media_type_of(request) == JSON


def media_type_of(request: Request) -> str:
    """Without parameters; empty if there is none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
