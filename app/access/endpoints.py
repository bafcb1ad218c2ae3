"""/v1/keys, /v1/me and /v1/audit: manage API keys, read who the caller is, and read the audit log."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.access import repository
from app.access import service as keys
from app.access.authentication import (
    Authenticator,
    AuthenticatorDep,
    GuardedRoute,
    check_again,
    needs,
    record_read,
)
from app.access.schemas import (
    AuditEntry,
    AuditEntryPage,
    Key,
    KeyPage,
    KeyRequest,
    KeyWithSecret,
    Me,
    OutcomeName,
    Rotation,
)
from app.http.dependencies import CallerDep, Context, ContextDep, Paging, PagingDep, TimesDep
from app.http.idempotency import Creation, CreationDep, validated
from app.http.responses import choose_media_type, json_response
from app.http.server import cut_off
from app.platform import audit
from app.platform.audit import AuditFilter, Outcome
from app.platform.errors import ServiceError
from app.platform.sql import Session
from app.platform.tables import ApiKey
from app.platform.tables import AuditEntry as AuditRow

log = logging.getLogger(__name__)
router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=GuardedRoute)


@validated(router, "", "key")
@router.post(
    "",
    status_code=201,
    response_model=KeyWithSecret,
    summary="Create a key",
)
@needs("admin")
async def create_key(
    *, body: KeyRequest, authenticator: AuthenticatorDep, caller: CallerDep, new: CreationDep
) -> Response:
    """Create a key for the owner of the caller's key. Only this response contains the secret.

    A repeated request with the same `Idempotency-Key` returns the key without its secret. The first key of another
    owner must be created on the server with `rankwright keys create`. So must a key with the scope `operator`, unless
    the caller's key has this scope.
    """

    def create(session: Session) -> tuple[ApiKey, str]:
        return keys.create(
            session,
            new.owner,
            body.name,
            body.scopes,
            expires_in_seconds=body.expires_in_seconds,
            holder_id=body.holder_id,
            by=caller,
        )

    return await _answer(authenticator, new, create)


@validated(router, "/{key_id}/rotate", "rotation")
@router.post(
    "/{key_id}/rotate",
    status_code=201,
    response_model=KeyWithSecret,
    summary="Rotate a key",
)
@needs("admin")
async def rotate_key(
    *,
    key_id: str,
    body: Rotation,
    authenticator: AuthenticatorDep,
    caller: CallerDep,
    new: CreationDep,
) -> Response:
    """Create a new key with the same name and scopes, and the same lifetime if it has one. The old key stays valid for
    up to `grace_seconds` more; with 0 it is revoked immediately. Returns 409 if the old key is revoked or has expired.

    Only this response contains the secret. A repeated request with the same `Idempotency-Key` returns the new key
    without it.
    """

    def rotate(session: Session) -> tuple[ApiKey, str]:
        return keys.rotate(session, new.owner, key_id, body.grace_seconds, caller)

    return await _answer(authenticator, new, rotate)


async def _answer(
    authenticator: Authenticator,
    new: Creation,
    create: Callable[[Session], tuple[ApiKey, str]],
) -> Response:
    """The answer stored for the `Idempotency-Key` omits the secret."""
    if new.only_check:
        return await new.rehearse(create)
    secret = None

    def create_and_show(session: Session) -> dict[str, Any]:
        nonlocal secret
        made, secret = create(session)
        return Key.model_validate(made).model_dump(mode="json")

    created = await new.run_once(create_and_show)
    if created.replayed:
        secret = None
    else:
        authenticator.known.recent.clear()  # the rotated key must not stay in the cache
    headers = {"Location": f"/v1/keys/{created.body['id']}"} | created.headers
    return JSONResponse(created.body | {"secret": secret}, 201, headers)


@router.get("", summary="List keys")
@needs("admin")
def list_keys(context: ContextDep, caller: CallerDep, paging: PagingDep) -> KeyPage:
    """Return all keys of the owner, newest first, including revoked ones."""
    page = context.db.reading(repository.list_page, caller.owner, **vars(paging))
    return KeyPage.of(page, Key.model_validate)


@router.get("/{key_id}", summary="Read a key")
@needs("admin")
def read_key(key_id: str, context: ContextDep, caller: CallerDep) -> Key:
    """Return one API key, without its secret."""
    return Key.model_validate(context.db.reading(keys.get, caller.owner, key_id))


@router.delete("/{key_id}", status_code=204, summary="Revoke a key")
@needs("admin")
def revoke_key(
    key_id: str, context: ContextDep, authenticator: AuthenticatorDep, caller: CallerDep
) -> None:
    """Permanently revoke the key. Every process rejects it within one second."""
    context.db.writing(keys.revoke, caller.owner, key_id)
    authenticator.known.recent.clear()


me_router = APIRouter(prefix="/v1/me", tags=["keys"], route_class=GuardedRoute)


@me_router.get("", summary="Read the caller")
@needs("any")
async def read_me(caller: CallerDep) -> Me:
    """Return who sends the request, for which owner, and what the caller may do there."""
    return Me(
        principal_id=caller.principal_id or "",
        kind=caller.kind,
        name=caller.name or "",
        owner=caller.owner,
        roles=list(caller.roles),
        scopes=[scope for scope in keys.SCOPES if scope in caller.scopes],
        models={scope: list(patterns) for scope, patterns in caller.models.items()},
        key_id=caller.key_id,
        expires_at=caller.expires_at,
    )


audit_router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=GuardedRoute)


EXPORT_PAGE = 1_000
"""Entries that one transaction of the export reads."""
EXPORT = "GET /v1/audit"
NDJSON = "application/x-ndjson"


@audit_router.get(
    "",
    response_model=AuditEntryPage,
    responses={
        200: {
            "content": {
                NDJSON: {
                    "schema": {"type": "string"},
                    "example": '{"id":"aud_…","position":1042,…}\n',
                }
            }
        }
    },
    summary="Read the audit log",
)
@needs("admin")
async def list_audit_entries(
    *,
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    authenticator: AuthenticatorDep,
    paging: PagingDep,
    times: TimesDep,
    key_id: Annotated[
        str | None,
        Query(
            max_length=255,
            description="Only entries of the key with this id. Empty: entries of the server's command line, "
            "and of the service itself.",
        ),
    ] = None,
    principal: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Only entries of the principal with this id, or whose name contained this text.",
        ),
    ] = None,
    action: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Only entries whose route or command contains this text, such as `DELETE` or `aliases`. "
            "Letters A to Z match in upper and lower case.",
        ),
    ] = None,
    resource: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Only entries whose path, or the id of a created resource, contains this text.",
        ),
    ] = None,
    outcome: Annotated[
        OutcomeName | None, Query(description="Only entries with this outcome.")
    ] = None,
    of_service: Annotated[
        bool,
        Query(
            description="Instead of the owner's entries, those that concern all owners: failed authentications, "
            "backups, and entries that were lost. Requires the scope `operator`."
        ),
    ] = False,
) -> Response:
    """Return what the owner's principals did, were denied, and read, newest first: when, from which address, who, with
    which route and request, and what it created. A change and its entry are written in one transaction.

    With `Accept: application/x-ndjson`, the response is an export for other systems: one entry per line, in the order
    of `position`, from the entry after the position `after` to the last sealed one. `limit` does not apply. Save the
    `position` of the last line, and continue with it as `after`: no entry is skipped, even if its transaction ended
    late. An empty response means that there is nothing new.
    """
    if of_service:
        await authenticator.check_operator(caller)
    owner = AuditRow.SERVICE if of_service else caller.owner
    only = AuditFilter(key_id, action, resource, *times, principal, outcome and Outcome(outcome))
    if choose_media_type(request, ("application/json", NDJSON)) == NDJSON:
        read = partial(_export_page, context, owner, only)
        # The first page before the response, so that an outage is a 503.
        first = await run_in_threadpool(read, audit.position_of(paging.after))
        if first.is_news:
            await record_read(request, audit_router.prefix)
        headers = {"Content-Disposition": 'attachment; filename="audit.ndjson"'}
        return StreamingResponse(_export(request, read, first), headers=headers, media_type=NDJSON)
    return await run_in_threadpool(_audit_page, context, owner, only, paging)


def _audit_page(context: Context, owner: str, only: AuditFilter, paging: Paging) -> Response:
    page: Any = context.db.reading(audit.list_page, owner, only, **vars(paging))
    return json_response(AuditEntryPage.model_validate(page))


class ExportPage(NamedTuple):
    """Lines of JSON, and the last position; None if there are none.

    Entries of exports alone are no news: otherwise each poll of a system that follows the log would cause the next
    entry.
    """

    lines: bytes
    position: int | None
    is_news: bool


async def _export(
    request: Request, read: Callable[[int], ExportPage], page: ExportPage
) -> AsyncIterator[bytes]:
    """Yield a page and all after it. No transaction is open while the caller reads.

    `read` returns the page after a position. If the credential ends, or the database, the connection is cut off.
    """
    try:
        while page.position is not None:
            yield page.lines
            await check_again(request)
            page = await run_in_threadpool(read, page.position)
    except ServiceError as error:
        log.info("an export of the audit log ended early: %s", error)
        cut_off(request.scope)


def _export_page(context: Context, owner: str, only: AuditFilter, position: int) -> ExportPage:
    found = context.db.reading(audit.list_after, owner, only, position, EXPORT_PAGE)
    lines = b"".join(to_json(AuditEntry.model_validate(each)) + b"\n" for each in found)
    is_news = any(each.action != EXPORT for each in found)
    return ExportPage(lines, found[-1].position if found else None, is_news)
