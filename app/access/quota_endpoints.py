"""/v1/quotas and /v1/usage: read and set the limits of owners, and read what they use."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from fastapi import APIRouter, Path

from app.access import quotas, repository, schemas
from app.access.authentication import AuthenticatorDep, GuardedRoute, needs
from app.access.quotas import Limits
from app.access.schemas import OwnerQuotaPage, QuotaLimits, Used
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.platform.errors import NAME_PATTERN, Forbidden
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import OwnerQuota

router = APIRouter(prefix="/v1/quotas", tags=["quotas"], route_class=GuardedRoute)
usage_router = APIRouter(prefix="/v1/usage", tags=["quotas"], route_class=GuardedRoute)

OwnerPath = Annotated[str, Path(pattern=NAME_PATTERN, description="The owner.", examples=["acme"])]


def _shown(owner: str, row: OwnerQuota | None) -> schemas.OwnerQuota:
    if row is not None:
        return schemas.OwnerQuota.model_validate(row)
    return schemas.OwnerQuota(
        owner=owner, updated_at=None, **{field.name: None for field in fields(Limits)}
    )


@router.get("", summary="List quotas")
@needs("operator")
def list_quotas(context: ContextDep, paging: PagingDep) -> OwnerQuotaPage:
    """Return the owners with individual limits, the last changed first. The settings apply to all others."""
    page = context.db.reading(repository.list_quotas, **vars(paging))
    return OwnerQuotaPage.of(page, lambda row: _shown(row.owner, row))


@router.get("/{owner}", summary="Read the quotas of an owner")
@needs("operator")
def read_quota(owner: OwnerPath, context: ContextDep) -> schemas.OwnerQuota:
    """Return the limits of an owner. All are null if the owner has no individual limits."""
    return _shown(owner, context.db.reading(quotas.find, owner))


@router.put("/{owner}", summary="Replace the quotas of an owner")
@needs("operator")
def put_quota(
    owner: OwnerPath, body: QuotaLimits, context: ContextDep, caller: CallerDep
) -> schemas.OwnerQuota:
    """Replace all limits of an owner. Without any limit, the settings of the service apply again.

    A limit below what the owner has deletes nothing: it only blocks what is new. API processes use a new limit within
    one second. The owner need not have a key yet. The key must also have the scope `admin`, so that a key that only
    reads metrics cannot set quotas.
    """
    if "admin" not in caller.scopes:
        has = ", ".join(sorted(caller.scopes))
        raise Forbidden(
            f"quotas can be set only by a key that also has the scope 'admin'; the key has {has}"
        )
    limits = Limits(**body.model_dump())
    return _shown(owner, context.db.writing(quotas.replace, owner, limits))


@router.get("/{owner}/usage", summary="Read what an owner uses")
@needs("operator")
def read_owner_usage(
    owner: OwnerPath, context: ContextDep, authenticator: AuthenticatorDep
) -> schemas.Usage:
    """Return what counts against each limit of an owner, and the limits that apply."""
    stored = authenticator.usage.get(owner)
    return context.db.reading(_usage, context.settings, owner, stored)


@usage_router.get("", summary="Read your usage")
@needs("read")
def read_usage(
    caller: CallerDep, context: ContextDep, authenticator: AuthenticatorDep
) -> schemas.Usage:
    """Return what counts against each limit of the owner of the key, and the limits that apply."""
    stored = authenticator.usage.get(caller.owner)
    return context.db.reading(_usage, context.settings, caller.owner, stored)


def _usage(session: Session, settings: Settings, owner: str, stored: quotas.Usage) -> schemas.Usage:
    limits = quotas.limits_of(session, settings, owner)
    used = quotas.usage_of(session, owner, stored)
    counts = {
        field.name: Used(used=getattr(used, field.name), limit=getattr(limits, field.name))
        for field in fields(Limits)
    }
    return schemas.Usage(owner=owner, **counts)
