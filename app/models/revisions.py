"""Optimistic locking of aliases, feedback settings, reason codes and calibrations: a change names the revision seen."""

from __future__ import annotations

from app.platform.errors import Invalid, PreconditionFailed, PreconditionRequired
from app.platform.tables import (
    AliasFeedback,
    ModelAlias,
    ModelAliasHistory,
    ModelCalibration,
    ReasonCodes,
)


def check_revision(
    shown: str,
    current: AliasFeedback | ModelAlias | ModelAliasHistory | ReasonCodes | ModelCalibration | None,
    if_revision: int | None,
    must_be_new: bool,
) -> None:
    """Raise PreconditionFailed or PreconditionRequired unless `if_revision` is current. shown: the name in messages."""
    if current is None:
        raise PreconditionFailed(f"{shown} does not exist yet: create it without If-Match")
    revision = current.version if isinstance(current, ModelCalibration) else current.revision
    if must_be_new:
        raise PreconditionFailed(f"{shown} already exists, at revision {revision}")
    if if_revision is None:
        raise PreconditionRequired(
            f'{shown} exists: send If-Match: "{revision}" to change this revision'
        )
    if if_revision != revision:
        raise PreconditionFailed(f"{shown} is at revision {revision}, not {if_revision}")


def revision_of(if_match: str | None) -> int | None:
    """Raises Invalid."""
    if if_match is None:
        return None
    text = if_match.strip().strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid(f"If-Match must be the ETag that was read, got {if_match[:100]!r}")
    return int(text)


def must_be_new_of(if_none_match: str | None) -> bool:
    """Return True if only a creation is allowed. Raises Invalid."""
    if if_none_match not in (None, "*"):
        raise Invalid(f"If-None-Match can only be * here, got {if_none_match[:100]!r}")
    return if_none_match == "*"
