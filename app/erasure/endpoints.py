"""/v1/erasures: requests to erase everything that is stored about an entity."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.erasure import service as erasures
from app.erasure.schemas import Erasure, ErasurePage, ErasureRequest, show, show_in_list
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.idempotency import CreationDep, validated
from app.platform.sql import Json, Session

router = APIRouter(prefix="/v1/erasures", tags=["erasures"], route_class=GuardedRoute)


@validated(router, "", "erasure")
@router.post("", status_code=202, response_model=Erasure, summary="Erase an entity")
@needs("train")
async def create_erasure(
    *, body: ErasureRequest, caller: CallerDep, context: ContextDep, new: CreationDep
) -> Response:
    """Erase everything that is stored about an entity, by `due_at`: its decisions and outcomes, and its rows in
    datasets and results of batch scores.

    A job searches all versions of datasets with a key column, also in the trash. A version with rows of the entity is
    replaced by a dataset without them: it has a new id, and the old version's number. The old version is deleted
    permanently, with everything that was derived from it. Unfinished jobs that use it are cancelled. The job ends with
    a search that finds nothing; `report` says what was searched and removed, which models used the rows, and what
    remains.

    The request is done when no process can still have a decision in its log, and the old files are deleted. Then the
    service deletes the id, too. A legal hold on a dataset or a model with such rows ends the job with the code
    `on_hold`, and changes nothing.
    """

    def create(session: Session) -> Json:
        made = erasures.create(
            session,
            context.settings,
            caller,
            body.id,
            body.key_columns,
            retire_models=body.retire_models,
        )
        return show(made).model_dump(mode="json")

    if new.only_check:
        return await new.rehearse(create)
    created = await new.run_once(create)
    headers = {"Location": f"/v1/erasures/{created.body['id']}"} | created.headers
    return JSONResponse(created.body, 202, headers)


@router.get("", summary="List erasures")
@needs("read")
def list_erasures(context: ContextDep, caller: CallerDep, paging: PagingDep) -> ErasurePage:
    """Return all requests to erase an entity, newest first, without the ids of the entities and without reports."""
    page = context.db.reading(erasures.list_page, caller.owner, **vars(paging))
    return ErasurePage.of(page, show_in_list)


@router.get("/{erasure_id}", summary="Read an erasure")
@needs("read")
def read_erasure(erasure_id: str, context: ContextDep, caller: CallerDep) -> Erasure:
    """Return a request to erase an entity with its report, without the id of the entity. The report is the proof of
    the erasure: download it before you delete anything else.
    """
    return show(context.db.reading(erasures.find, caller.owner, erasure_id))
