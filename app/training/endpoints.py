"""/v1/algorithms: what can be trained, and by which parameters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep
from app.http.responses import StoredFile
from app.http.schemas import Resource
from app.platform.errors import NotFound
from app.training import service
from app.training import service as algorithms
from app.training.schemas import Controls, Leaderboard, OutOfFold, controls_of, leaderboard_of

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


validation_router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)

_ROWS_A_CHUNK = 10_000


@validation_router.get(
    "/{ref}/out-of-fold",
    response_model=OutOfFold,
    summary="The scores of cross-validation",
    responses={
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/vnd.apache.parquet": {
                    "schema": {"type": "string", "format": "binary"}
                },
            }
        }
    },
)
@needs("read")
def read_out_of_fold(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    format: Annotated[
        Literal["json", "csv", "parquet"], Query(description="All entries in either form.")
    ] = "json",
) -> Response:
    """Every row's score by a ranker that has not learnt from it, with its fold and label. 404 for a model that was not
    cross-validated, 409 once its dataset is deleted: the scores go with it.
    """
    model, found, path = service.read_out_of_fold(context.db, context.blobs, caller.owner, ref)
    if format == "parquet":
        return StoredFile(
            path,
            media_type="application/vnd.apache.parquet",
            filename=f"{model.name}-{model.version}-out-of-fold.parquet",
        )
    if format == "csv":
        return StreamingResponse(_csv(path), media_type="text/csv; charset=utf-8")
    head = {
        "model_id": model.id,
        "repeats": found.repeats,
        "folds": found.folds,
        "fold_aucs": found.fold_aucs,
    }
    return StreamingResponse(_json(head, path), media_type="application/json")


def _csv(path: Path) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    options = pa_csv.WriteOptions(include_header=False)
    with pq.ParquetFile(path) as file:
        yield (",".join(file.schema_arrow.names) + "\n").encode()
        for batch in file.iter_batches(_ROWS_A_CHUNK):
            sink = pa.BufferOutputStream()
            pa_csv.write_csv(batch, sink, options)
            yield sink.getvalue().to_pybytes()


def _json(head: dict[str, Any], path: Path) -> Iterator[bytes]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        yield orjson.dumps(head | {"columns": names})[:-1] + b',"data":['
        separator = b""
        for batch in file.iter_batches(_ROWS_A_CHUNK):
            columns = [column.to_pylist() for column in batch.columns]
            rows = orjson.dumps(list(zip(*columns, strict=True)))
            yield separator + rows[1:-1]
            separator = b","
        yield b"]}"


@validation_router.get("/{ref}/controls", summary="Is it better than plain algorithms?")
@needs("read")
def read_controls(*, ref: str, context: ContextDep, caller: CallerDep) -> Controls:
    """Logistic regression and an SVM for the AUC, fitted on the same divisions, and paired comparisons with the model.
    404 for a model that was trained without.
    """
    return controls_of(*service.read_controls(context.db, caller.owner, ref))


@validation_router.get("/{ref}/leaderboard", summary="What has auto tried?")
@needs("read")
def read_leaderboard(*, ref: str, context: ContextDep, caller: CallerDep) -> Leaderboard:
    """The candidates of a model of algorithm `auto`. 404 for others."""
    return leaderboard_of(*service.read_leaderboard(context.db, caller.owner, ref))
