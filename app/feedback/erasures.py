"""Requests to erase an entity. Housekeeping carries them out (`upkeep`)."""

from __future__ import annotations

from app.feedback import outcome_repository as repository
from app.platform.audit import allow_over_quota
from app.platform.callers import Caller, check_all_models
from app.platform.errors import NotFound, shown
from app.platform.ids import new_id
from app.platform.sql import Page, Session
from app.platform.tables import Erasure

DUE_SECONDS = 7 * 86_400.0
"""Longest time from a request until it is done."""


def create(session: Session, caller: Caller, entity_id: str) -> Erasure:
    """Store a request to erase an entity. It is allowed over the quota, because it frees bytes."""
    check_all_models()
    allow_over_quota(session)
    now = repository.now(session)
    erasure = Erasure(
        id=new_id("era"),
        owner=caller.owner,
        entity_id=entity_id,
        requested_at=now,
        due_at=now + DUE_SECONDS,
        done_at=None,
        erased=None,
        author=caller.name,
    )
    repository.add_erasure(session, erasure)
    return erasure


def find(session: Session, owner: str, erasure_id: str) -> Erasure:
    """Return the owner's request with this id. Raises NotFound."""
    found = repository.get_erasure(session, owner, erasure_id)
    if found is None:
        raise NotFound(f"there is no erasure {shown(erasure_id)}")
    return found


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[Erasure]:
    """Return a page of the owner's requests, newest first."""
    return repository.list_erasures(session, owner, limit=limit, after=after)
