"""Legal holds: while one is active, nothing that it covers is deleted, by whomever.

A hold covers a dataset, a model, or everything of the owner. Whoever deletes locks the owner's holds first (`lock`),
and whoever places one does, too. So a deletion either sees the hold, or is finished before the hold is placed.
"""

from __future__ import annotations

from typing import Literal

from app.access import repository
from app.platform.audit import allow_over_quota, describe
from app.platform.callers import Caller
from app.platform.errors import Conflict, NotFound, shown
from app.platform.ids import new_id
from app.platform.sql import Session, read_clock
from app.platform.tables import LegalHold

HoldKind = Literal["owner", "dataset", "model"]
MAX_ACTIVE = 1_000
"""Holds of an owner that are active at once."""
ON_HOLD = "on_hold"
"""The code of the error for a deletion that a hold forbids."""


def lock(session: Session, owner: str) -> None:
    """Until the transaction ends, none is placed or released."""
    repository.lock_holds(session, owner)


def check(
    session: Session, owner: str, *, dataset_id: str | None = None, model_id: str | None = None
) -> None:
    """Raise Conflict if an active hold covers one of these, or everything. The holds must be locked."""
    resources = [each for each in (dataset_id, model_id) if each is not None]
    if (found := repository.active_hold(session, owner, resources)) is None:
        return
    what = (
        f"everything of {owner}" if found.kind == "owner" else f"{found.kind} {found.resource_id}"
    )
    raise Conflict(
        f"the legal hold {found.id} on {what} forbids this deletion: release it first",
        code=ON_HOLD,
    )


def place(
    session: Session, caller: Caller, kind: HoldKind, resource_id: str | None, reason: str
) -> LegalHold:
    """Covers the trash, too. Raises NotFound for an unknown dataset or model, Conflict above `MAX_ACTIVE` holds."""
    allow_over_quota(session)
    lock(session, caller.owner)
    if repository.count_active_holds(session, caller.owner) >= MAX_ACTIVE:
        raise Conflict(
            f"an owner can have {MAX_ACTIVE:,} active holds: release one first, or hold everything of the owner",
            code="too_many_holds",
        )
    if kind != "owner" and not repository.exists_to_hold(
        session, caller.owner, kind, resource_id or ""
    ):
        raise NotFound(
            f"there is no {kind} {shown(resource_id)}",
            errors=[
                {"pointer": "/resource_id", "detail": f"there is no {kind} {shown(resource_id)}"}
            ],
        )
    hold = LegalHold(
        id=new_id("hld"),
        owner=caller.owner,
        kind=kind,
        resource_id=resource_id,
        reason=reason,
        author=caller.name,
        placed_at=read_clock(session),
        released_at=None,
        release_reason=None,
        released_by=None,
        releasing_principal_id=None,
    )
    what = "everything of the owner" if kind == "owner" else f"{kind} {resource_id}"
    describe(session, f"Legal hold {hold.id} placed on {what}: {reason}")
    repository.add_hold(session, hold)
    return hold


def release(session: Session, caller: Caller, hold_id: str, reason: str) -> LegalHold:
    """Raises NotFound, and Conflict if it was released already."""
    allow_over_quota(session)
    lock(session, caller.owner)
    hold = find(session, caller.owner, hold_id)
    if hold.released_at is not None:
        raise Conflict(f"the legal hold {hold_id} was released already", code="hold_released")
    hold.released_at = read_clock(session)
    hold.release_reason, hold.released_by = reason, caller.name
    hold.releasing_principal_id = caller.principal_id
    describe(session, f"Legal hold {hold_id} released: {reason}")
    session.flush()
    return hold


def find(session: Session, owner: str, hold_id: str) -> LegalHold:
    """Raises NotFound."""
    found = repository.find_hold(session, owner, hold_id)
    if found is None:
        raise NotFound(f"there is no legal hold {shown(hold_id)}")
    return found
