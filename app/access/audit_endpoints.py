"""/v1/audit: who changed what, and when."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from app.access import audit
from app.access.authentication import GuardedRoute, needs
from app.access.schemas import AuditEntry
from app.http.dependencies import CallerDep, ContextDep, PagingDep
from app.http.schemas import PageOf

router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=GuardedRoute)


@router.get("", summary="Read the audit log")
@needs("admin")
def list_audit_entries(
    context: ContextDep, caller: CallerDep, paging: PagingDep
) -> PageOf[AuditEntry]:
    """Every change made with the owner's keys, newest first: written in the transaction that made it."""
    page: Any = audit.list_page(context.db, caller.owner, limit=paging.limit, after=paging.after)
    return PageOf[AuditEntry].model_validate(page)
