"""/v1/erasures: requests to erase everything that was recorded about an entity."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app.access.authentication import GuardedRoute, needs
from app.feedback import erasures
from app.feedback.erasure_schemas import Erasure, ErasurePage, ErasureRequest
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.idempotency import CreationDep, validated
from app.platform.sql import Json, Session

router = APIRouter(prefix="/v1/erasures", tags=["feedback"], route_class=GuardedRoute)


@validated(router, "", "erasure")
@router.post("", status_code=202, response_model=Erasure, summary="Erase an entity")
@needs("train")
async def create_erasure(*, body: ErasureRequest, caller: CallerDep, new: CreationDep) -> Response:
    """Erase all decisions about an entity, and its outcomes, by `due_at`. The request is done when no row is left, and
    no process can still have one in its log. Then the service deletes the id, too.



    It does not reach backups, files that you have downloaded, and datasets and batch scores that you have created.
    `erased.datasets` lists the datasets made from decisions that have rows of the entity.
    """

    def create(session: Session) -> Json:
        made = erasures.create(session, caller, body.id)
        return Erasure.model_validate(made).model_dump(mode="json")

    if new.only_check:
        return await new.rehearse(create)
    created = await new.run_once(create)
    headers = {"Location": f"/v1/erasures/{created.body['id']}"} | created.headers
    return JSONResponse(created.body, 202, headers)


@router.get("", summary="List erasures")
@needs("read")
def list_erasures(context: ContextDep, caller: CallerDep, paging: PagingDep) -> ErasurePage:
    """Return all requests to erase an entity, newest first, without the ids of the entities."""
    page = context.db.reading(
        erasures.list_page, caller.owner, limit=paging.limit, after=paging.after
    )
    data = [Erasure.model_validate(each) for each in page.data]
    return ErasurePage(data=data, has_more=page.has_more, next=page.next)


@router.get("/{erasure_id}", summary="Read an erasure")
@needs("read")
def read_erasure(erasure_id: str, context: ContextDep, caller: CallerDep) -> Erasure:
    """Return a request to erase an entity, without the id of the entity."""
    return Erasure.model_validate(context.db.reading(erasures.find, caller.owner, erasure_id))
