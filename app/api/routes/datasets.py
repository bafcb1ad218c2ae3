"""/v1/datasets: upload, read, look into, delete."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.api.acceptance import accepted
from app.api.context import Context
from app.api.dependencies import (
    CallerDep,
    ContextDep,
    IdempotencyKeyDep,
    PagingDep,
    PatienceDep,
    ValidateOnly,
)
from app.api.schemas.common import PageOf
from app.api.schemas.datasets import Dataset, DatasetProfile, Preview, TableCheck
from app.api.security import GuardedRoute, needs
from app.api.uploads import Received, body_docs, receive
from app.db.tables import DatasetStatus
from app.errors import Conflict
from app.services import datasets, idempotency, pairs, previews

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=GuardedRoute)

ROUTE = "POST /v1/datasets"
Table = Received[datasets.Description]
_FIELDS_SCHEMA = {
    "name": "Name of the dataset.",
    "label": "The label's column.",
    "positive": "The label's value that counts as positive.",
    "weight": "Column of row weights.",
    "group": "Column whose equal values stay on one side of a split.",
    "item": "Column of the items' names, for `preferences`.",
    "labels": "Columns of the labels with commas between, for `multilabel`.",
    "categorical": "Columns to be taken as categories though they hold numbers, with commas between; "
    "a name that holds a comma stands in quotes.",
    "drop": "Columns that are not to be used, with commas between.",
    "missing": "What stands for a missing value beside the empty one, with commas between, in any case; "
    "`NA,N/A,null,NaN,?` unless it is given.",
    "encoding": "Of a CSV: `utf-8`, `utf-16`, `latin-1` or `windows-1252`; UTF-8 or UTF-16 unless it is given.",
    "delimiter": "Of a CSV: `comma`, `semicolon`, `tab` or `pipe`; read off the header unless it is given.",
    "decimal": "Of a CSV: `point` or `comma`, what stands before decimals; the point unless it is given.",
    "kind": "`bipartite`: rows with a label of two values. `preferences`: rows are items, "
    "and `PUT /v1/datasets/{dataset_id}/pairs` says which is better than which. "
    "`multilabel`: rows with several labels of two values each.",
}
_FIELDS_EXAMPLES = {
    "categorical": {"example": "zip,shop"},
    "drop": {"example": 'customer_id,"name, first"'},
    "missing": {"example": "NA,unknown,-999"},
}
_UPLOAD_DOCS: dict[str, Any] = {
    "parameters": [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": text,
            "schema": {"type": "string", "minLength": 1, "maxLength": datasets.longest(name)},
            **_FIELDS_EXAMPLES.get(name, {}),
        }
        for name, text in _FIELDS_SCHEMA.items()
    ],
    "requestBody": body_docs(
        "age,income,contract,left\n41,52000,two year,no\n23,?,month-to-month,yes\n", _FIELDS_SCHEMA
    ),
}


@router.post(
    "",
    status_code=202,
    response_model=Dataset,
    summary="Upload a table",
    openapi_extra=_UPLOAD_DOCS,
    responses={
        200: {"model": TableCheck, "description": "Only checked (`?validate=true`)."},
        201: {"model": Dataset, "description": "Read within the wait: `ready` or `invalid`."},
    },
)
@needs("train")
async def upload_dataset(
    *,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    patience: PatienceDep,
    key: IdempotencyKeyDep,
    validate: ValidateOnly = False,
) -> Response:
    """Send the raw bytes of a table with its Content-Type, or a form with a part `file`.

    The bytes are durable before the answer. A worker reads them; the dataset then is `ready`, or `invalid` with
    the lines and columns at fault. `Content-Encoding` may be gzip or zstd.
    """
    claim = (caller.owner, key)
    if key is not None:
        if claim in context.uploading:
            raise Conflict(
                "an upload under this Idempotency-Key is still under way", code="upload_under_way"
            )
        context.uploading.add(claim)
    try:
        with context.blobs.writer("uploads") as writer:
            table = await receive(request, writer, _describe)
            if validate:
                return JSONResponse(await run_in_threadpool(_check, context, table))
            answer = await run_in_threadpool(_accept, context, caller.owner, table, key)
    finally:
        context.uploading.discard(claim)

    def look(dataset_id: str) -> tuple[dict[str, Any], bool]:
        dataset = datasets.get(context.db, caller.owner, dataset_id)
        return _shown(dataset), dataset.status != DatasetStatus.PROCESSING

    return await accepted(context, answer, patience, "/v1/datasets", look)


def _describe(given: Mapping[str, str]) -> datasets.Description:
    return datasets.describe({field: given[field] for field in given if field != "validate"})


def _check(context: Context, table: Table) -> dict[str, Any]:
    table.writer.flush()
    path = table.writer.path
    return datasets.check_table(
        context.blobs, context.settings, table.description, path, table.format
    )


def _accept(context: Context, owner: str, table: Table, key: str | None) -> idempotency.Answer:
    writer = table.writer
    writer.sync()  # the slow part, before the transaction

    def work(session: Session) -> tuple[int, dict[str, Any]]:
        # Published here, so that a replay or a refused key leaves no blob behind.
        blob_key, sha256 = writer.commit()
        upload = datasets.Upload(blob_key, writer.size, sha256, table.format)
        dataset = datasets.accept(session, context.settings, owner, table.description, upload)
        return 202, _shown(dataset)

    same = orjson.dumps([vars(table.description), vars(table.format), writer.sha256])
    fingerprint = hashlib.sha256(same).hexdigest()
    answer = idempotency.replay_or_run(context.db, owner, ROUTE, key, fingerprint, work)
    if not answer.replayed:
        context.wake_a_worker(answer.response["job_id"])
    return answer


@router.get("", summary="List datasets")
@needs("read")
def list_datasets(context: ContextDep, caller: CallerDep, paging: PagingDep) -> PageOf[Dataset]:
    """The owner's datasets, newest first."""
    page: Any = datasets.list_page(context.db, caller.owner, limit=paging.limit, after=paging.after)
    return PageOf[Dataset].model_validate(page)


@router.get("/{dataset_id}", summary="Read a dataset")
@needs("read")
def read_dataset(dataset_id: str, context: ContextDep, caller: CallerDep) -> Dataset:
    """Its status, and once `ready` the profile of its columns, or once `invalid` the faults."""
    return Dataset.model_validate(datasets.get(context.db, caller.owner, dataset_id))


@router.get("/{dataset_id}/preview", summary="Look at the first rows")
@needs("read")
def preview_dataset(
    *,
    dataset_id: str,
    context: ContextDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=200, description="Most rows.")] = 20,
) -> Preview:
    """The first rows of a ready dataset, typed as they were read; missing values are null."""
    return Preview(**previews.preview(context.db, context.blobs, caller.owner, dataset_id, limit))


@router.get("/{dataset_id}/profile", summary="Look at the columns")
@needs("read")
def profile_dataset(dataset_id: str, context: ContextDep, caller: CallerDep) -> DatasetProfile:
    """Quantiles and a histogram of each feature, how well it ranks the label by itself, and the rows that come twice.

    A column with an AUC of at least 0.99, or of 0.01 at most, has probably seen the label: `leak` says so.
    """
    dataset, found = datasets.profile(context.db, caller.owner, dataset_id)
    return DatasetProfile.of_rows(dataset, found)


@router.put(
    "/{dataset_id}/pairs",
    status_code=202,
    response_model=Dataset,
    summary="Say which item is better",
    openapi_extra={"requestBody": body_docs("better,worse,weight\nb7,a3,1\nb7,c1,0.5\n", {})},
    responses={200: {"model": Dataset, "description": "Read within the wait."}},
)
@needs("train")
async def put_pairs(
    *,
    dataset_id: str,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    patience: PatienceDep,
) -> Response:
    """Send the pairs of a dataset of kind `preferences`: a table with the columns `better` and `worse`, which name
    items, and if you like `weight`. They take the place of any that it has.

    The bytes are durable before the answer. A worker reads them; `pairs.status` then is `ready`, or `invalid` with
    the lines at fault. 409 while an unfinished job uses the dataset.
    """
    await run_in_threadpool(pairs.check_open, context.db, caller.owner, dataset_id)
    with context.blobs.writer("uploads") as writer:
        table = await receive(request, writer, pairs.refuse_fields)
        body = await run_in_threadpool(_accept_pairs, context, caller.owner, dataset_id, table)
    headers = {"Location": f"/v1/datasets/{dataset_id}"}
    job_id = body["pairs"]["job_id"]
    if patience.seconds and not context.watcher.full:
        await context.watcher.wait(job_id, lambda sight: sight.final, patience.seconds)
        dataset = await run_in_threadpool(datasets.get, context.db, caller.owner, dataset_id)
        body = _shown(dataset)
        if dataset.pairs is None or dataset.pairs.status != DatasetStatus.PROCESSING:
            response = JSONResponse(body, 200, headers)
            patience.applied(response)
            return response
    return JSONResponse(body, 202, headers | {"Retry-After": "1"})


def _accept_pairs(
    context: Context, owner: str, dataset_id: str, table: Received[None]
) -> dict[str, Any]:
    table.writer.sync()  # the slow part, before the transaction
    with context.db.write() as session:
        key, sha256 = table.writer.commit()
        upload = datasets.Upload(key, table.writer.size, sha256, table.format)
        body = _shown(pairs.accept(session, context.settings, owner, dataset_id, upload))
    context.wake_a_worker(body["pairs"]["job_id"])
    return body


@router.delete("/{dataset_id}", status_code=204, summary="Delete a dataset")
@needs("train")
def delete_dataset(dataset_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Delete the table; its models stay. 409 while an unfinished job uses it."""
    datasets.delete(context.db, caller.owner, dataset_id)


def _shown(dataset: Any) -> dict[str, Any]:
    return Dataset.model_validate(dataset).model_dump(mode="json")
