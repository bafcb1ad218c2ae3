"""/v1/keys: who may come in."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.api.dependencies import CallerDep, ContextDep, PagingDep
from app.api.schemas.common import PageOf
from app.api.schemas.keys import Key, KeyWithSecret, NewKey
from app.api.security import GuardedRoute, needs
from app.services import keys

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=GuardedRoute)


@router.post("", status_code=201, summary="Make a key")
@needs("admin")
def create_key(
    *, body: NewKey, context: ContextDep, caller: CallerDep, response: Response
) -> KeyWithSecret:
    """Make a key for the caller's own owner. The secret is in this answer and nowhere else.

    Other owners' first keys are made on the server: `rankwright keys create`.
    """
    key, secret = keys.create(
        context.db,
        caller.owner,
        body.name,
        body.scopes,
        expires_in_seconds=body.expires_in_seconds,
    )
    response.headers["Location"] = f"/v1/keys/{key.id}"
    return KeyWithSecret(**Key.model_validate(key).model_dump(), secret=secret)


@router.get("", summary="List keys")
@needs("admin")
def list_keys(context: ContextDep, caller: CallerDep, paging: PagingDep) -> PageOf[Key]:
    """The owner's keys, newest first, the revoked ones included."""
    page: Any = keys.list_page(context.db, caller.owner, limit=paging.limit, after=paging.after)
    return PageOf[Key].model_validate(page)


@router.get("/{key_id}", summary="Read a key")
@needs("admin")
def read_key(key_id: str, context: ContextDep, caller: CallerDep) -> Key:
    """A key without its secret."""
    return Key.model_validate(keys.get(context.db, caller.owner, key_id))


@router.delete("/{key_id}", status_code=204, summary="Revoke a key")
@needs("admin")
def revoke_key(key_id: str, context: ContextDep, caller: CallerDep) -> None:
    """Revoke the key for good. Every process refuses it within a second."""
    keys.revoke(context.db, caller.owner, key_id)
    context.keys.forget()
