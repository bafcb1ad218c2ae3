"""/v1/keys: who may come in."""

from __future__ import annotations

import hashlib
from typing import Any

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import JSONResponse, Response

from app.api.dependencies import CallerDep, ContextDep, IdempotencyKeyDep, PagingDep, ValidateOnly
from app.api.schemas.common import PageOf, Valid
from app.api.schemas.keys import Key, KeyWithSecret, NewKey
from app.api.security import GuardedRoute, needs
from app.services import idempotency, keys
from app.services.rehearsal import rehearse

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=GuardedRoute)


@router.post(
    "",
    status_code=201,
    response_model=KeyWithSecret,
    summary="Make a key",
    responses={200: {"model": Valid, "description": "Only checked (`?validate=true`)."}},
)
@needs("admin")
def create_key(
    *,
    body: NewKey,
    context: ContextDep,
    caller: CallerDep,
    key: IdempotencyKeyDep,
    validate: ValidateOnly = False,
) -> Response:
    """Make a key for the caller's own owner. The secret is in this answer and nowhere else.

    A replay by Idempotency-Key shows the key without it. Other owners' first keys are made on the server:
    `rankwright keys create`.
    """
    secrets: list[str] = []

    def work(session: Session) -> tuple[int, dict[str, Any]]:
        made, secret = keys.create_within(
            session,
            caller.owner,
            body.name,
            body.scopes,
            expires_in_seconds=body.expires_in_seconds,
        )
        secrets.append(secret)
        return 201, Key.model_validate(made).model_dump(mode="json")

    if validate:
        rehearse(context.db, work)
        return JSONResponse({"valid": True})
    fingerprint = hashlib.sha256(body.model_dump_json().encode()).hexdigest()
    answer = idempotency.replay_or_run(
        context.db, caller.owner, "POST /v1/keys", key, fingerprint, work
    )
    headers = {"Location": f"/v1/keys/{answer.response['id']}"}
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
    shown = answer.response | {"secret": None if answer.replayed else secrets[-1]}
    return JSONResponse(shown, answer.status_code, headers)


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
    context.keys.memory.clear()
