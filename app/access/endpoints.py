"""/v1/keys, /v1/me and /v1/audit: manage API keys, read who the caller is, and read the audit log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from app.access import service as keys
from app.access.authentication import Authenticator, AuthenticatorDep, GuardedRoute, needs
from app.access.schemas import (
    AuditEntryPage,
    Key,
    KeyPage,
    KeyRequest,
    KeyWithSecret,
    Me,
    Rotation,
)
from app.http.dependencies import CallerDep, ContextDep, PagingDep, TimesDep
from app.http.idempotency import Creation, CreationDep, validated
from app.platform import audit
from app.platform.audit import AuditFilter
from app.platform.sql import Session
from app.platform.tables import ApiKey

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
    """Return the response with a new key and its secret. The answer stored for the `Idempotency-Key` omits
    the secret.
    """
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
    page: Any = context.db.reading(
        keys.list_page, caller.owner, limit=paging.limit, after=paging.after
    )
    return KeyPage.model_validate(page)


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


@audit_router.get("", summary="Read the audit log")
@needs("admin")
def list_audit_entries(
    *,
    context: ContextDep,
    caller: CallerDep,
    paging: PagingDep,
    times: TimesDep,
    key_id: Annotated[
        str | None,
        Query(
            max_length=255,
            description="Only changes made with the key with this id. Empty: changes made on the server's command "
            "line.",
        ),
    ] = None,
    action: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Only changes whose route or command contains this text, such as `DELETE` or `aliases`. "
            "Letters A to Z match in upper and lower case.",
        ),
    ] = None,
    resource: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=255,
            description="Only changes whose path, or the id of a created resource, contains this text.",
        ),
    ] = None,
) -> AuditEntryPage:
    """Return every change made with the owner's keys, newest first: when, from which address, with which key, route and
    request, and what it created. A change and its entry are written in one transaction.
    """
    only = AuditFilter(key_id, action, resource, *times)
    page: Any = context.db.reading(audit.list_page, caller.owner, only, **vars(paging))
    return AuditEntryPage.model_validate(page)
