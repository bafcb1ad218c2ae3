"""Routes for the algorithms, for the submission of training jobs, and for results of validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Query
from fastapi import Path as PathParameter
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.access import quotas
from app.access.authentication import GuardedRoute, needs, records_reads
from app.datasets import service as datasets
from app.http.dependencies import CallerDep, ContextDep
from app.http.idempotency import validated
from app.http.openapi import names_resources
from app.http.responses import StoredFile, parquet_as_csv
from app.jobs.acceptance import WAITED_DOCS, JobCreationDep
from app.jobs.endpoints import JOB, PATH, show
from app.jobs.parameters import protected_features
from app.jobs.schemas import Job
from app.jobs.service import TRAIN, quota_of
from app.platform.errors import NotFound
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.training import service, splits
from app.training.algorithms import Algorithm, describe_all
from app.training.estimate import estimate
from app.training.records import TrainSpec
from app.training.schemas import (
    Algorithms,
    Baselines,
    JobCheck,
    JobRequest,
    Leaderboard,
    OutOfFold,
    baselines_of,
)

router = APIRouter(prefix="/v1/algorithms", tags=["algorithms"], route_class=GuardedRoute)


@cache
def _all() -> Algorithms:
    return Algorithms(data=describe_all())


@router.get("", summary="List algorithms")
@needs("read")
async def list_algorithms() -> Algorithms:
    """Return all algorithms, each with its publication and the JSON Schema of its parameters. The schemas are generated
    from the estimators.
    """
    return _all()


@router.get("/{name}", summary="Read an algorithm")
@needs("read")
async def read_algorithm(
    name: Annotated[str, PathParameter(description="Name of the algorithm.")],
) -> Algorithm:
    """Return one algorithm, with its publication and the JSON Schema of its parameters."""
    for algorithm in _all().data:
        if algorithm.name == name:
            return algorithm
    known = ", ".join(algorithm.name for algorithm in _all().data)
    raise NotFound(f"there is no algorithm {name[:100]!r}; available are {known}")


jobs_router = APIRouter(prefix=PATH, tags=["jobs"], route_class=GuardedRoute)


@validated(
    jobs_router, "", "job", JobCheck, more=" The response has an estimate of time and memory."
)
@jobs_router.post(
    "",
    status_code=202,
    response_model=Job,
    summary="Create a job",
    responses={201: WAITED_DOCS | {"model": Job}},
)
@names_resources
@needs("train")
async def submit_job(
    *,
    body: JobRequest,
    new: JobCreationDep,
    caller: CallerDep,
) -> Response:
    """Train a ranker on a dataset. The service stores the job before it responds; a free worker starts it within
    milliseconds.

    With `Prefer: wait=N` the response is sent when the job has ended, with its final state. A failed job has also
    ended; its `error` says why.
    """
    train = body.to_request(caller.name)
    if new.only_check:
        checked = await run_in_threadpool(
            new.context.db.reading, _check, new.settings, new.owner, train
        )
        return JSONResponse(checked)

    def submit(session: Session) -> Json:
        return show(service.submit(session, new.settings, new.owner, train))

    return await new.create_and_respond(JOB, submit)


def _check(session: Session, settings: Settings, owner: str, train: service.TrainRequest) -> Json:
    """Return the complete algorithm, the estimate and warnings."""
    spec = service.check(session, settings, owner, train)
    quotas.check(session, settings, owner, makes=quota_of(TRAIN))
    algorithm = spec["algorithm"]
    return {
        "valid": True,
        "algorithm": {
            "name": algorithm["name"],
            **algorithm["parameters"],
            **algorithm.get("defaults", {}),
        },
        "objective": spec["objective"],
        "validation": spec["validation"],
        "search": spec["search"],
        "baselines": spec["baselines"],
        **train.as_spec(),
        "protected_features": protected_features(spec),
        "estimate": estimate(session, owner, spec),
        "warnings": [*datasets.notes_on(spec, datasets.find(session, owner, train.dataset_id))],
        "duplicates": _duplicates(session, owner, spec),
    }


def _duplicates(session: Session, owner: str, spec: TrainSpec) -> dict[str, Any] | None:
    """Return the counts of duplicate rows if the validation splits the dataset."""
    validation = spec["validation"]
    if validation["method"] not in (splits.HOLDOUT, splits.CROSS_VALIDATION):
        return None
    by_time = validation.get("time_column") is not None
    found: dict[str, Any] | None = datasets.find_copies(
        session, owner, spec["dataset"]["id"], by_time=by_time
    )
    return found


validation_router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)

_ROWS_PER_CHUNK = 10_000


@validation_router.get(
    "/{ref}/out-of-fold",
    response_model=OutOfFold,
    summary="Read out-of-fold scores",
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
@records_reads
def read_out_of_fold(
    *,
    ref: str,
    context: ContextDep,
    caller: CallerDep,
    format: Annotated[
        Literal["json", "csv", "parquet"],
        Query(description="Format of the response. Every format has all entries."),
    ] = "json",
) -> Response:
    """Return for every row its fold, its label, and its score by a ranker that was not trained on it. Returns 404 if
    the model was not cross-validated, and 409 if its dataset was permanently deleted, because the scores are deleted
    with it.
    """
    model, out_of_fold = context.db.reading(service.read_out_of_fold, caller.owner, ref)
    path = context.fetch(out_of_fold.blob_key)
    if format == "parquet":
        return StoredFile(
            path,
            media_type="application/vnd.apache.parquet",
            filename=f"{model.name}-{model.version}-out-of-fold.parquet",
        )
    if format == "csv":
        return StreamingResponse(parquet_as_csv(path), media_type="text/csv; charset=utf-8")
    head = {
        "model_id": model.id,
        "repeats": out_of_fold.repeats,
        "folds": out_of_fold.folds,
        "fold_aucs": out_of_fold.fold_aucs,
    }
    return StreamingResponse(_json(head, path), media_type="application/json")


def _json(head: Mapping[str, object], path: Path) -> Iterator[bytes]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        yield orjson.dumps({**head, "columns": names})[:-1] + b',"data":['
        separator = b""
        for batch in file.iter_batches(_ROWS_PER_CHUNK):
            columns = [column.to_pylist() for column in batch.columns]
            rows = orjson.dumps(list(zip(*columns, strict=True)))
            yield separator + rows[1:-1]
            separator = b","
        yield b"]}"


@validation_router.get("/{ref}/baselines", summary="Read the comparison with baselines")
@needs("read")
def read_baselines(*, ref: str, context: ContextDep, caller: CallerDep) -> Baselines:
    """Return the baselines (logistic regression and an SVM for the AUC, trained on the same splits) with paired
    comparisons to the model. Returns 404 if the model was trained without baselines.
    """
    return baselines_of(*context.db.reading(service.read_baselines, caller.owner, ref))


@validation_router.get("/{ref}/leaderboard", summary="Read the leaderboard of auto")
@needs("read")
def read_leaderboard(*, ref: str, context: ContextDep, caller: CallerDep) -> Leaderboard:
    """Return all candidates that `auto` tried, and the members of the ensemble. Returns 404 for a model of any other
    algorithm.
    """
    _, found = context.db.reading(service.read_leaderboard, caller.owner, ref)
    return Leaderboard.model_validate(found)
