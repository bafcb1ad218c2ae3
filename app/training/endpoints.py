"""/v1/algorithms: what can be trained, and by which parameters."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter
from pydantic import Field

from app.access.authentication import GuardedRoute, needs
from app.http.schemas import Resource
from app.platform.errors import NotFound
from app.training import service as algorithms

router = APIRouter(prefix="/v1/algorithms", tags=["algorithms"], route_class=GuardedRoute)


class Algorithm(Resource):
    """An algorithm of the registry."""

    name: str = Field(examples=["rankboost"])
    summary: str
    paper: str
    parameters: dict[str, Any] = Field(
        description="JSON Schema of what goes beside `name` in a job's `algorithm`: types, bounds and defaults."
    )


class Algorithms(Resource):
    """All of them."""

    data: list[Algorithm]


@cache
def _all() -> Algorithms:
    return Algorithms(data=[Algorithm(**entry) for entry in algorithms.describe_all()])


@router.get("", summary="List algorithms")
@needs("read")
async def list_algorithms() -> Algorithms:
    """Names, papers, and parameters as JSON Schema, generated from the estimators themselves."""
    return _all()


@router.get("/{name}", summary="Read an algorithm")
@needs("read")
async def read_algorithm(name: str) -> Algorithm:
    """One algorithm of the list."""
    for algorithm in _all().data:
        if algorithm.name == name:
            return algorithm
    known = ", ".join(algorithm.name for algorithm in _all().data)
    raise NotFound(f"there is no algorithm {name[:100]!r}; there are {known}")
