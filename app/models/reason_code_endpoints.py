"""/v1/models/{name}/reason-codes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from app.access.authentication import GuardedRoute, needs
from app.http.dependencies import CallerDep, ContextDep, IfMatch, IfNoneMatch
from app.models import reason_codes
from app.models.reason_code_schemas import ReasonCodes, ReasonCodesRequest, reason_codes_of
from app.models.revisions import must_be_new_of, revision_of

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=GuardedRoute)


@router.get("/{name}/reason-codes", summary="Read the reason codes")
@needs("read")
def read_reason_codes(
    *,
    name: str,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    revision: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="Revision to read. Default: the latest.")
    ] = None,
) -> ReasonCodes:
    """Return the reason codes used for all versions of this name. Returns 404 if it has none; reasons then have generic
    texts.
    """
    shown = reason_codes_of(context.db.reading(reason_codes.read, caller.owner, name, revision))
    response.headers["ETag"] = f'"{shown.revision}"'
    return shown


@router.put(
    "/{name}/reason-codes",
    summary="Replace the reason codes",
    responses={201: {"model": ReasonCodes, "description": "The name has its first reason codes."}},
)
@needs("train")
def put_reason_codes(
    *,
    name: str,
    body: ReasonCodesRequest,
    context: ContextDep,
    caller: CallerDep,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> ReasonCodes:
    """Set the codes and texts of reasons for all versions of this name, so that a retrained model states its reasons
    like the one before. Identical entries change nothing. Other entries create a new revision, whose number is returned
    with reasons; the newest 100 revisions are kept. Returns 422 for features that the latest version does not have, and
    for more than 256 KiB.
    """
    found, created = context.db.writing(
        reason_codes.replace,
        caller.owner,
        name,
        [entry.as_stored() for entry in body.entries],
        if_revision=revision_of(if_match),
        must_be_new=must_be_new_of(if_none_match),
    )
    shown = reason_codes_of(found)
    response.status_code = 201 if created else 200
    response.headers["ETag"] = f'"{shown.revision}"'
    return shown
