"""Protected aliases: another person approves each change of one, and of the calibration of its model.

In an emergency an admin suspends the protection for some hours (break-glass). Admins then change the alias directly,
with a reason, and each of these changes is marked.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from app.models import alias_request_repository as rows
from app.models import repository
from app.platform.audit import allow_over_quota, describe
from app.platform.callers import acting
from app.platform.documents import EvidenceFile
from app.platform.errors import Conflict, Invalid, NotFound
from app.platform.sql import Session, after_commit
from app.platform.tables import BreakGlass, ModelAliasHistory
from app.platform.text import is_blank

MAX_SECONDS = 4 * 3600.0
"""Longest time in seconds for which a protection can be suspended."""
DEFAULT_SECONDS = 3600.0
BREAK_GLASS = ". BREAK-GLASS: changed without approval"
"""What an audit entry says about a change while the protection was suspended."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Approval:
    """An approved request, on which a protected alias is changed: who asked, who approved, and the evidence."""

    alias_request_id: str
    author: str | None
    principal_id: str | None
    approved_by: str | None
    approved_by_id: str | None
    evidence: list[EvidenceFile]
    evidence_key: str | None
    evidence_bytes: int | None


def protected_aliases(session: Session, owner: str, model_id: str) -> dict[str, int]:
    """Return the protected aliases of a model, such as `churn@live`, with their revisions."""
    return {
        f"{each.name}@{each.alias}": each.revision
        for each in repository.decisions_of(session, owner, model_id)
        if each.protected
    }


def permit(
    session: Session,
    owner: str,
    alias: str,
    reason: str | None,
    position: Mapping[str, str],
) -> None:
    """Permit a direct change of `name@alias` while its protection is suspended.

    Raises Conflict otherwise, and for a caller that is not an admin; and Invalid without a reason, whose position in
    the request is `position`.
    """
    if needs_approval(session, owner, *alias.split("@")):
        raise approval_required(alias)
    if is_blank(reason or ""):
        raise reason_required(alias, position)


def needs_approval(session: Session, owner: str, name: str, alias: str) -> bool:
    """Return False if the protection is suspended and the caller is an admin. The alias is protected."""
    actor = acting.get()
    is_admin = actor is not None and actor.caller is not None and "admin" in actor.caller.scopes
    return not is_admin or rows.find_break_glass(session, owner, name, alias) is None


def approval_required(alias: str) -> Conflict:
    detail = f"{alias} is protected: request the change with POST /v1/alias-requests, and another person approves it"
    return Conflict(detail, code="approval_required", errors=[{"alias": alias, "detail": detail}])


def reason_required(alias: str, position: Mapping[str, str]) -> Invalid:
    """`position` is that of the reason in the request."""
    detail = f"{alias} is protected: the change needs a reason"
    return Invalid(detail, code="reason_required", errors=[{**position, "detail": detail}])


def suspend(
    session: Session,
    owner: str,
    name: str,
    alias: str,
    *,
    reason: str,
    seconds: float,
    author: str | None,
) -> BreakGlass:
    """Suspend the protection of an alias, which may be deleted; an earlier suspension is replaced.

    Raises NotFound, and Conflict if the alias is not protected.
    """
    allow_over_quota(session)  # an emergency
    newest = _find_newest(session, owner, name, alias)
    current = repository.find_alias(session, owner, name, alias, lock=True)
    if not (newest if current is None else current).protected:
        raise not_protected(f"{name}@{alias}")
    row = rows.put_break_glass(session, owner, name, alias, reason, seconds, author)
    hours = f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min"
    words = f"BREAK-GLASS: protection of {name}@{alias} suspended for {hours}"
    describe(session, f"{words}. Reason: {reason}")
    after_commit(session, partial(log.warning, "%s by %s (owner %s)", words, author, owner))
    return row


def resume(session: Session, owner: str, name: str, alias: str) -> None:
    """Raises NotFound if the protection is not suspended."""
    _find_newest(session, owner, name, alias)
    if not rows.end_break_glass(session, owner, name, alias):
        raise NotFound(
            f"the protection of {name[:100]}@{alias[:100]} is not suspended", code="no_break_glass"
        )
    describe(session, f"break-glass of {name}@{alias} ended")


def _find_newest(session: Session, owner: str, name: str, alias: str) -> ModelAliasHistory:
    """The alias may be deleted. Raises NotFound."""
    newest = repository.last_alias_revision(session, owner, name, alias)
    if newest is None:
        raise NotFound(f"there is no alias {name[:100]}@{alias[:100]}")
    return newest


def not_protected(alias: str) -> Conflict:
    """Only protected aliases allow this."""
    return Conflict(f"{alias} is not protected: change it directly", code="not_protected")
