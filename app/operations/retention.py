"""Retention by owner: after how many days the resources of an owner are deleted. Housekeeping does it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields

from app.operations import repository
from app.platform.audit import allow_over_quota, describe
from app.platform.errors import check_name
from app.platform.sql import Session
from app.platform.tables import RetentionRule


@dataclass(frozen=True, slots=True)
class Days:
    """Days for which resources are kept, by kind. None: the setting of the service if there is one, else no limit."""

    datasets: float | None = None
    models: float | None = None
    batch_scores: float | None = None
    evaluations: float | None = None
    decisions: float | None = None
    jobs: float | None = None

    @classmethod
    def of(cls, rule: RetentionRule | None) -> Days:
        """All days are None without a row."""
        if rule is None:
            return cls()
        return cls(**{field.name: getattr(rule, field.name) for field in fields(cls)})

    def given(self) -> dict[str, float]:
        """Return the days that are not None, by kind."""
        return {kind: days for kind, days in asdict(self).items() if days is not None}


def rules(session: Session) -> list[tuple[str, dict[str, float]]]:
    """Return the owners with their own days by kind."""
    return [(rule.owner, Days.of(rule).given()) for rule in repository.all_retention(session)]


def find(session: Session, owner: str) -> RetentionRule | None:
    """Raises Invalid for a text that is no owner."""
    check_name("owner", owner)
    return repository.find_retention(session, owner)


def replace(session: Session, owner: str, days: Days) -> RetentionRule | None:
    """Return None if no days are left. The owner needs no key yet. Raises Invalid for a text that is no owner."""
    check_name("owner", owner)
    allow_over_quota(session)
    given = days.given()
    words = ", ".join(f"{kind} {limit:g} days" for kind, limit in given.items())
    describe(session, f"Retention of {owner}: {words or 'the settings apply'}")
    repository.put_retention(session, owner, asdict(days) if given else None)
    return repository.find_retention(session, owner)


def preview(session: Session, owner: str, days: Days) -> dict[str, int]:
    """Count what a round of housekeeping would delete now."""
    check_name("owner", owner)
    return {
        kind: repository.count_expired(session, kind, owner, limit)
        for kind, limit in days.given().items()
    }
