"""Retention by owner: after how many days the resources of an owner are deleted. Housekeeping does it."""

from __future__ import annotations

from collections.abc import Mapping

from app.operations import repository
from app.platform.audit import allow_over_quota, describe
from app.platform.errors import check_name
from app.platform.sql import Session
from app.platform.tables import RetentionRule

KINDS = ("datasets", "models", "batch_scores", "evaluations", "decisions", "jobs")
Days = Mapping[str, float | None]
"""Days for which resources are kept, by kind. None: the setting of the service if there is one, else no limit."""


def days_of(rule: RetentionRule | None) -> Days:
    """All days are None without a row."""
    return {kind: getattr(rule, kind, None) for kind in KINDS}


def _given(days: Days) -> dict[str, float]:
    return {kind: limit for kind, limit in days.items() if limit is not None}


def rules(session: Session) -> list[tuple[str, dict[str, float]]]:
    """Return the owners with their own days by kind."""
    return [(rule.owner, _given(days_of(rule))) for rule in repository.all_retention(session)]


def find(session: Session, owner: str) -> RetentionRule | None:
    """Raises Invalid for a text that is no owner."""
    check_name("owner", owner)
    return repository.find_retention(session, owner)


def replace(session: Session, owner: str, days: Days) -> RetentionRule | None:
    """Return None if no days are left. The owner needs no key yet. Raises Invalid for a text that is no owner."""
    check_name("owner", owner)
    allow_over_quota(session)
    given = _given(days)
    words = ", ".join(f"{kind} {limit:g} days" for kind, limit in given.items())
    describe(session, f"Retention of {owner}: {words or 'the settings apply'}")
    repository.put_retention(session, owner, days if given else None)
    return repository.find_retention(session, owner)


def preview(session: Session, owner: str, days: Days) -> dict[str, int]:
    """Count what a round of housekeeping would delete now."""
    check_name("owner", owner)
    return {
        kind: repository.count_expired(session, kind, owner, limit)
        for kind, limit in _given(days).items()
    }
