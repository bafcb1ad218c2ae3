"""/v1/datasets: upload, read, look into, delete."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, check_reads, needs, records_reads
from app.datasets import rereading
from app.datasets import service as datasets
from app.datasets.description import (
    describe,
    describe_version,
)
from app.datasets.fields import TableFields, VersionFields
from app.datasets.schemas import (
    Dataset,
    DatasetPage,
    DatasetRequest,
    Preview,
    QueryParameter,
    SourceConnection,
    SourceList,
    SourceQuery,
    TableCheck,
    TableReading,
)
from app.datasets.source_requests import fields_of, json_object_of, parse_request
from app.datasets.sources import REMOTE, DatasetSource, remote_source_of, source_of
from app.datasets.uploads import (
    DATASET,
    Received,
    TableRequest,
    TableRequestDep,
    UploadHandler,
    accept_upload,
    body_docs,
    field_docs,
    receive,
    shown,
)
from app.http.bodies import takes_body
from app.http.dependencies import (
    CallerDep,
    Context,
    ContextDep,
    PagingDep,
    RowFilterDep,
    Sort,
    refuse_unknown,
)
from app.http.forms import FORM
from app.http.idempotency import validated
from app.jobs.acceptance import JobCreation, JobCreationDep, PreferWaitDep, wake_a_worker
from app.platform import catalogue
from app.platform.connections import Connection
from app.platform.sql import NEWEST_FIRST, Json, Session
from app.platform.tables import Dataset as DatasetRow
from app.platform.tables import DatasetStatus, VersionMode

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=GuardedRoute)

Table = Received[TableFields]
_UPLOAD_DOCS: dict[str, Any] = {
    "parameters": field_docs(TableFields.schemas()),
    "requestBody": body_docs(
        "TableForm",
        "age,income,contract,left\n41,52000,two year,no\n23,?,month-to-month,yes\n",
        TableFields.schemas(),
    ),
}


# After the formats of tables: a generated client that knows one type of body takes the first.
_UPLOAD_DOCS["requestBody"]["content"]["application/json"] = {
    "schema": {"$ref": "#/components/schemas/DatasetRequest"}
}


DESCRIBED = (DatasetRequest,)
"""Schemas of bodies that no signature names."""

_READ: dict[int | str, dict[str, Any]] = {
    201: {
        "model": Dataset,
        "description": "The table was read within the wait: `ready` or `invalid`.",
    },
}


@validated(router, "", "table", TableCheck, openapi_extra=_UPLOAD_DOCS)
@router.post(
    "",
    status_code=202,
    response_model=Dataset,
    summary="Upload a table",
    openapi_extra=_UPLOAD_DOCS,
    responses=_READ,
)
@needs("train", model=False)
@takes_body("max_upload_bytes")
async def upload_dataset(sending: TableRequestDep) -> Response:
    """Send the raw bytes of a table with its `Content-Type`, or a form with a part `file`. The formats are CSV,
    Parquet, Arrow, NDJSON, a JSON array of objects, and .xlsx. `Content-Encoding` can be gzip or zstd. A ZIP archive of
    one table is also accepted.

    The service stores the bytes before it responds. A worker then reads them: the dataset becomes `ready`, or `invalid`
    with the lines and columns of the errors.

    Or send a JSON object with a `name` and a `source`: then a worker takes the rows from the decisions of an alias and
    their outcomes, from an object store, or from a query. `GET /v1/sources` lists the connections.
    """
    sending, body = await json_object_of(sending)
    if body is not None:
        return await _of_source(sending, body)
    context = sending.context

    def check(table: Table) -> dict[str, Any]:
        path, described = table.writer.path, table.description
        return datasets.check_table(context.blobs, context.settings, described, path, table.format)

    def accept(session: Session, table: Table, upload: datasets.StoredUpload) -> DatasetRow:
        return datasets.accept(session, context.settings, sending.owner, table.description, upload)

    handler = UploadHandler("POST /v1/datasets", [], describe, check, accept)
    return await accept_upload(sending, handler)


async def _of_source(sending: TableRequest, body: bytes) -> Response:
    """Create the dataset, or only check the request."""
    refuse_unknown(sending.request.query_params, [])
    context, owner = sending.context, sending.owner
    asked = parse_request(body)
    fields = fields_of(asked)
    new = JobCreation(
        context,
        "POST /v1/datasets",
        owner,
        sending.key,
        hashlib.sha256(body).hexdigest(),
        sending.validate,
        sending.wait,
    )

    def described(session: Session) -> DatasetSource:
        kind, given = asked.source.kind, asked.source.model_dump()
        if kind in REMOTE:
            return remote_source_of(kind).describe(context.connections.of(owner), given)
        return source_of(kind).describe(session, owner, given)

    if new.only_check:
        return await new.check(described)

    def accept(session: Session, empty: datasets.StoredUpload) -> DatasetRow:
        source = described(session)
        return datasets.accept_source(session, context.settings, owner, fields, source, empty)

    return await _create_unread(new, accept)


async def _create_unread(
    new: JobCreation, accept: Callable[[Session, datasets.StoredUpload], DatasetRow]
) -> Response:
    """Create a dataset whose rows a job takes from a source; until then an empty file replaces an upload."""
    with new.context.blobs.writer("uploads") as writer:
        await run_in_threadpool(writer.sync)

        def create(session: Session) -> Json:
            empty = datasets.StoredUpload.unread(writer.blob)
            answer = shown(accept(session, empty))
            catalogue.commit(session, writer)
            return answer

        return await new.create_and_respond(DATASET, create)


REFRESH = "/{dataset_id}/refresh"


@validated(router, REFRESH, "refresh")
@router.post(
    REFRESH,
    status_code=202,
    response_model=Dataset,
    summary="Refresh a dataset from its source",
    responses=_READ,
)
@needs("train", model=False)
async def refresh_dataset(
    *, dataset_id: str, context: ContextDep, caller: CallerDep, new: JobCreationDep
) -> Response:
    """Read the source of this dataset again. The result is a new dataset: the next version, with the same name, source
    and upload fields. This dataset does not change, and neither do models and aliases. If the source has the rows of
    this dataset, the `status` of the new one becomes `unchanged`: it has no table.

    The job fails with `source_columns_changed` if the source now has other columns, or columns of other types. Returns
    409 `not_refreshable` for a dataset that was uploaded, or made from decisions.
    """
    owner = caller.owner

    def check(session: Session) -> None:
        found = datasets.find(session, owner, dataset_id)
        datasets.check_refresh(context.connections.of(owner), found)

    if new.only_check:
        return await new.check(check)

    def accept(session: Session, empty: datasets.StoredUpload) -> DatasetRow:
        known = context.connections.of(owner)
        return datasets.accept_refresh(session, context.settings, known, owner, dataset_id, empty)

    return await _create_unread(new, accept)


@router.get("", summary="List datasets")
@needs("read")
def list_datasets(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    only: RowFilterDep,
    sort: Sort = NEWEST_FIRST,
    name: Annotated[
        str | None,
        Query(min_length=1, max_length=255, description="Only datasets with exactly this name."),
    ] = None,
    latest: Annotated[
        bool, Query(description="`true`: only the newest ready version of each series.")
    ] = False,
) -> DatasetPage:
    """Return the owner's datasets, in the order of `sort`. Columns, labels, errors and warnings are omitted here: read
    the dataset itself.
    """
    page: Any = context.db.reading(
        datasets.list_page,
        caller.owner,
        name=name,
        only=replace(only, sort=sort),
        latest=latest,
        **vars(paging),
    )
    return DatasetPage.model_validate(page)


@router.get("/{dataset_id}", summary="Read a dataset")
@needs("read")
def read_dataset(dataset_id: str, context: ContextDep, caller: CallerDep) -> Dataset:
    """Return the dataset and its status. If it is `ready`, it has profiles of its columns. If it is `invalid`, it has
    the errors with their lines and columns.
    """
    return Dataset.model_validate(context.db.reading(datasets.find, caller.owner, dataset_id))


READ = "/{dataset_id}/read"


@validated(router, READ, "reading", TableCheck)
@router.post(
    READ,
    status_code=202,
    response_model=Dataset,
    summary="Reread a table with other fields",
    responses=_READ,
)
@needs("train", model=False)
@records_reads
async def read_table_again(
    *,
    dataset_id: str,
    body: TableReading,
    context: ContextDep,
    caller: CallerDep,
    new: JobCreationDep,
) -> Response:
    """Create a new version from the bytes uploaded for this one, with another label, positive value, group or any other
    upload field. No data is sent again. The original dataset may be invalid; it does not change. With another `name`,
    the result is the first version of a separate series.

    A column that is given a role loses its previous role. The response contains values of the columns, so the key also
    needs the scope `read`. Returns 409 `appended_version` for rows that were appended to another version.
    """
    check_reads(caller, "reading a table again")
    owner, settings, changes = caller.owner, context.settings, body.changes()

    def check() -> Json:
        def find(session: Session) -> tuple[DatasetRow, int]:
            dataset = rereading.find_readable(session, owner, dataset_id)
            return dataset, rereading.count_parts(session, dataset)

        dataset, n_parts = context.db.reading(find)
        return rereading.check(context.blobs, context.fetch, settings, dataset, changes, n_parts)

    if new.only_check:  # its memory is limited only by its bounds
        return JSONResponse(await context.compute(owner, check))

    def accept(session: Session) -> Json:
        return shown(rereading.accept(session, settings, owner, dataset_id, changes))

    return await new.create_and_respond(DATASET, accept)


@router.get("/{dataset_id}/preview", summary="Preview a dataset")
@needs("read")
@records_reads
def preview_dataset(
    *,
    dataset_id: str,
    context: ContextDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=200, description="Maximum number of rows.")] = 20,
) -> Preview:
    """Return the first rows of a ready dataset, with the types that were detected. Dates are ISO 8601; missing values
    are null.
    """
    dataset = context.db.reading(datasets.find, caller.owner, dataset_id)
    return Preview(**datasets.preview(context.fetch, dataset, limit))


@router.put(
    "/{dataset_id}/pairs",
    status_code=202,
    response_model=Dataset,
    summary="Upload pairs of items",
    openapi_extra={
        "requestBody": body_docs("FileForm", "better,worse,weight\nb7,a3,1\nb7,c1,0.5\n", {})
    },
    responses={200: {"model": Dataset, "description": "The pairs were read within the wait."}},
)
@needs("train", model=False)
@takes_body("max_upload_bytes")
async def put_pairs(
    *,
    dataset_id: str,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    wait: PreferWaitDep,
) -> Response:
    """Send the pairs of a dataset of kind `preferences`: a table with the columns `better` and `worse`, which name
    items. A column `weight` is optional. These pairs replace any earlier ones.

    The service stores the bytes before it responds. A worker then reads them: `pairs.status` becomes `ready`, or
    `invalid` with the lines of the errors. Returns 409 while an unfinished job uses the dataset.
    """
    await run_in_threadpool(context.db.reading, datasets.check_pairs_open, caller.owner, dataset_id)
    with context.blobs.writer("uploads") as writer:
        table = await receive(request, writer, datasets.refuse_pair_fields)
        body = await run_in_threadpool(_accept_pairs, context, caller.owner, dataset_id, table)
    headers = {"Location": f"/v1/datasets/{dataset_id}"}
    job_id = body["pairs"]["job_id"]
    if await wait.for_end(caller.owner, job_id):
        dataset = await run_in_threadpool(
            context.db.reading, datasets.find, caller.owner, dataset_id
        )
        body = shown(dataset)
        if dataset.pairs is None or dataset.pairs.status != DatasetStatus.PROCESSING:
            response = JSONResponse(body, 200, headers)
            wait.applied(response)
            return response
    return JSONResponse(body, 202, headers | {"Retry-After": "1"})


def _accept_pairs(
    context: Context, owner: str, dataset_id: str, table: Received[None]
) -> dict[str, Any]:
    """Store the pairs and submit the job that reads them."""
    writer = table.writer
    writer.sync()  # the slow part, before the transaction
    upload = datasets.StoredUpload.of(writer.blob, table.format)

    def work(session: Session) -> dict[str, Any]:
        body = shown(datasets.accept_pairs(session, context.settings, owner, dataset_id, upload))
        catalogue.commit(session, writer)  # late, so that a refusal leaves no blob behind
        return body

    body = context.db.writing(work)
    wake_a_worker(context, body["pairs"]["job_id"])
    return body


@router.delete("/{dataset_id}", status_code=204, summary="Delete a dataset")
@needs("train", model=False)
def delete_dataset(dataset_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Move the dataset to the trash. It can be restored for 30 days. Its models are kept. Returns 409 while an
    unfinished job uses the dataset.
    """
    context.db.writing(datasets.delete, caller.owner, dataset_id)


PATH = "/v1/datasets/{dataset_id}/versions"
versions_router = APIRouter(prefix=PATH, tags=["datasets"], route_class=GuardedRoute)

VersionTable = Received[VersionFields]
_VERSION_DOCS: dict[str, Any] = {
    "parameters": field_docs(VersionFields.schemas()),
    "requestBody": body_docs(
        "VersionForm",
        "age,income,contract,left\n37,48000,one year,no\n",
        VersionFields.schemas(),
    ),
}


@validated(versions_router, "", "version", TableCheck, openapi_extra=_VERSION_DOCS)
@versions_router.post(
    "",
    status_code=202,
    response_model=Dataset,
    summary="Create a version of a dataset",
    openapi_extra=_VERSION_DOCS,
    responses=_READ,
)
@needs("train", model=False)
@records_reads
@takes_body("max_upload_bytes")
async def create_version(dataset_id: str, sending: TableRequestDep) -> Response:
    """Send more rows of a table, or with `mode=replace` a new table with the same roles. The result is a new dataset;
    the version in the URL does not change.

    The new version has the roles and reading options of the old one. With `append` it must also have the same column
    names, types and label values, and the old version must be the newest of its series (otherwise 409
    `not_the_newest_version`). Everything else is as for `POST /v1/datasets`.
    """
    context, owner = sending.context, sending.owner
    if (
        sending.key is None
    ):  # under an Idempotency-Key the first answer is repeated, whatever has happened to the version
        await run_in_threadpool(
            context.db.reading, datasets.find_parent, owner, dataset_id, _likely_mode(sending)
        )

    def check(table: VersionTable) -> dict[str, Any]:
        new, path = table.description, table.writer.path
        parent = context.db.reading(datasets.find_parent, owner, dataset_id, new.mode)
        return datasets.check_version(
            context.blobs, context.fetch, context.settings, parent, new, path, table.format
        )

    def accept(session: Session, table: VersionTable, upload: datasets.StoredUpload) -> DatasetRow:
        new = table.description
        return datasets.accept_version(session, context.settings, owner, dataset_id, new, upload)

    handler = UploadHandler(f"POST {PATH}", [dataset_id], describe_version, check, accept)
    return await accept_upload(sending, handler)


def _likely_mode(sending: TableRequestDep) -> str:
    """Return the `mode` before the body is read: append, or, for a form, which may set it, the less strict one."""
    of_form = sending.request.headers.get("content-type", "").lower().startswith(FORM)
    unsaid = VersionMode.REPLACE if of_form else VersionMode.APPEND
    return sending.request.query_params.get("mode", unsaid)


@versions_router.get("", summary="List the versions of a dataset")
@needs("read")
def list_versions(
    dataset_id: str, context: ContextDep, caller: CallerDep, paging: PagingDep
) -> DatasetPage:
    """Return all versions in the series of this dataset, newest first. Any version of the series can be used in the
    URL.
    """
    page: Any = context.db.reading(datasets.list_versions, caller.owner, dataset_id, **vars(paging))
    return DatasetPage.model_validate(page)


sources_router = APIRouter(prefix="/v1/sources", tags=["sources"], route_class=GuardedRoute)


@sources_router.get("", summary="List the sources of datasets")
@needs("read")
def list_sources(context: ContextDep, caller: CallerDep) -> SourceList:
    """Return the object stores and databases that the owner may read datasets from, as the operator has configured
    them: names, prefixes, queries and their parameters. Credentials, hosts and SQL are not shown.
    """
    found = context.connections.of(caller.owner).values()
    return SourceList(data=[_shown_connection(each) for each in found])


def _shown_connection(connection: Connection) -> SourceConnection:
    queries = [
        SourceQuery(
            name=name,
            parameters=[
                QueryParameter(name=parameter, type=type_)
                for parameter, type_ in query.parameters.items()
            ],
        )
        for name, query in connection.queries.items()
    ]
    return SourceConnection(
        name=connection.name,
        driver=connection.driver,
        prefix=connection.prefix or None,
        queries=queries or None,
    )
