"""/v1/datasets/{dataset_id}/versions: rows added to a table, or another in its place."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.datasets import service as datasets
from app.datasets import versions
from app.datasets.endpoints import DIALECT_FIELDS, field_docs
from app.datasets.intake import Purpose, SendingDep, take_in
from app.datasets.schemas import Dataset, TableCheck
from app.datasets.uploads import FORM, Received, body_docs
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.schemas import PageOf
from app.platform.tables import Dataset as DatasetRow
from app.platform.tables import VersionMode

PATH = "/v1/datasets/{dataset_id}/versions"
router = APIRouter(prefix=PATH, tags=["datasets"], route_class=GuardedRoute)

Table = Received[versions.NewVersion]
_FIELDS = {
    "mode": "`append`, the default: the rows of the version and after them those of the upload. `replace`: those of "
    "the upload alone.",
    **{
        name: f"{text} What the version says, unless it is given."
        for name, text in DIALECT_FIELDS.items()
    },
}
_SCHEMAS = {"mode": {"enum": list(versions.MODES)}}


@router.post(
    "",
    status_code=202,
    response_model=Dataset,
    summary="Make another version",
    openapi_extra={
        "parameters": field_docs(_FIELDS, _SCHEMAS),
        "requestBody": body_docs("age,income,contract,left\n37,48000,one year,no\n", _FIELDS),
    },
    responses={
        200: {"model": TableCheck, "description": "Only checked (`?validate=true`)."},
        201: {"model": Dataset, "description": "Read within the wait: `ready` or `invalid`."},
    },
)
@needs("train")
async def create_version(dataset_id: str, sending: SendingDep) -> Response:
    """Send more rows of a table, or with `mode=replace` another table of the same roles. What comes of it is a dataset
    of its own; the version that it is made from stays as it is.

    Roles and declarations are those of that version. Under `append` names, types and the label's two values are, too;
    it must be the newest version of its series (else 409 `not_the_newest_version`). The rest is as `POST /v1/datasets`
    has it.
    """
    context, owner = sending.context, sending.owner
    if (
        sending.key is None
    ):  # under a key the first answer may be asked for, whatever has become of the version
        await run_in_threadpool(
            versions.check_open, context.db, owner, dataset_id, _likely_mode(sending)
        )

    def check(table: Table) -> dict[str, Any]:
        return versions.check_table(
            context.db,
            context.blobs,
            context.settings,
            owner,
            dataset_id,
            table.description,
            table.writer.path,
            table.format,
        )

    def accept(session: Session, table: Table, upload: datasets.Upload) -> DatasetRow:
        new = table.description
        return versions.accept(session, context.settings, owner, dataset_id, new, upload)

    purpose = Purpose(f"POST {PATH}", [dataset_id], versions.describe, check, accept)
    return await take_in(sending, purpose)


def _likely_mode(sending: SendingDep) -> str:
    """What is known of the mode before the body: a form may yet say the one that asks for less."""
    of_form = sending.request.headers.get("content-type", "").lower().startswith(FORM)
    unsaid = VersionMode.REPLACE if of_form else VersionMode.APPEND
    return sending.request.query_params.get("mode", unsaid)


@router.get("", summary="List the versions")
@needs("read")
def list_versions(
    dataset_id: str, context: ContextDep, caller: CallerDep, paging: PagingDep
) -> PageOf[Dataset]:
    """Those of the dataset's series, newest first; any of them may be asked."""
    page: Any = versions.list_page(
        context.db, caller.owner, dataset_id, limit=paging.limit, after=paging.after
    )
    return PageOf[Dataset].model_validate(page)
