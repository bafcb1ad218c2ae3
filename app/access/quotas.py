"""Quotas: the limits of each owner, what counts against them, and the checks before anything is created.

An owner's limit is that of its row in the table `quotas`; without one, the service's setting; without that, there is
none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Literal

from app.access import repository
from app.platform import resources
from app.platform.audit import allow_over_quota, describe_changes
from app.platform.errors import TooMany, Unavailable, check_name, counted
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import OwnerQuota

FREE_ROW_BYTES = 2**20
"""An owner's rows count against the quota of bytes only as far as they take more than this."""
QUEUE_RETRY_SECONDS = 10
BYTES_RETRY_SECONDS = 60

Counted = Literal["dataset_rows", "models", "aliases", "keys"]
"""The quotas of things that are counted, and that have no setting."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an owner. None: no limit, or for jobs the fair share of the service."""

    bytes: int | None = None
    dataset_rows: int | None = None
    models: int | None = None
    aliases: int | None = None
    keys: int | None = None
    queued_jobs: int | None = None
    running_jobs: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What an owner stores, in bytes: its files, and the database rows that it can delete."""

    files: int
    rows: int

    @property
    def counted(self) -> int:
        """The bytes that count against the quota."""
        return self.files + max(0, self.rows - FREE_ROW_BYTES)


def set_by_operator(session: Session, owner: str) -> Limits:
    """All are None without a row."""
    row = repository.find_quota(session, owner)
    return Limits() if row is None else limits_in(row)


def limits_in(row: OwnerQuota) -> Limits:
    return Limits(*(getattr(row, field.name) for field in fields(Limits)))


def limits_of(session: Session, settings: Settings, owner: str) -> Limits:
    """Use the row, otherwise the settings."""
    own = asdict(set_by_operator(session, owner))
    for name in ("bytes", "queued_jobs", "running_jobs"):
        if own[name] is None:
            own[name] = getattr(settings, f"quota_{name}")
    return Limits(**own)


def find(session: Session, owner: str) -> OwnerQuota | None:
    """Return None if only the settings apply. Raises Invalid for a text that is no owner."""
    check_name("owner", owner)
    return repository.find_quota(session, owner)


def replace(session: Session, owner: str, limits: Limits) -> OwnerQuota | None:
    """Return None if no limit is left. The owner need not have a key; what exists is kept, even above a new limit.

    Raises Invalid for a text that is no owner.
    """
    check_name("owner", owner)
    allow_over_quota(session)  # an operator over the quota must be able to raise it
    repository.take_turn(session, owner)
    before, after = asdict(set_by_operator(session, owner)), asdict(limits)
    describe_changes(session, f"Quotas of {owner}", before, after, "the setting")
    is_given = any(limit is not None for limit in after.values())
    repository.put_quota(session, owner, after if is_given else None)
    return repository.find_quota(session, owner)


def usage_of(session: Session, owner: str, stored: Usage) -> Limits:
    """`stored` is what the owner stores."""
    return Limits(
        bytes=stored.counted,
        dataset_rows=repository.dataset_rows(session, owner),
        models=repository.models(session, owner),
        aliases=repository.aliases(session, owner),
        keys=repository.usable_keys(session, owner),
        queued_jobs=repository.queued_jobs(session, owner),
        running_jobs=repository.running_jobs(session, owner),
    )


def admit(
    session: Session,
    settings: Settings,
    owner: str,
    adds_bytes: int = 0,
    makes: Counted | None = None,
) -> None:
    """Check that the owner may queue a job with `adds_bytes` of upload and output of the kind `makes`.

    The counts cannot change before the transaction ends: other transactions of the owner wait. Raises TooMany,
    Unavailable or OutOfSpace.
    """
    repository.take_turn(session, owner)
    check(session, settings, owner, adds_bytes, makes)


def admit_bytes(session: Session, settings: Settings, owner: str, adds_bytes: int = 0) -> None:
    """Check `adds_bytes` that no job reads yet, as `admit` does."""
    repository.take_turn(session, owner)
    resources.check(settings)
    check_bytes(session, settings, owner, adds_bytes)


def admit_one(session: Session, owner: str, quota: Counted) -> None:
    """Check one more, as `admit` does. Raises TooMany."""
    repository.take_turn(session, owner)
    check_one(session, owner, quota)


def check_one(session: Session, owner: str, quota: Counted) -> None:
    """As `admit_one`, without a lock."""
    _check_count(set_by_operator(session, owner), session, owner, quota, 1)


def admit_rows(session: Session, owner: str, adds: int) -> None:
    """Check `adds` more rows in datasets, as `admit` does. Raises TooMany."""
    repository.take_turn(session, owner)
    _check_count(set_by_operator(session, owner), session, owner, "dataset_rows", adds)


def check(
    session: Session,
    settings: Settings,
    owner: str,
    adds_bytes: int = 0,
    makes: Counted | None = None,
) -> None:
    """As `admit`, without a lock: it may refuse an upload before it is sent, but not accept one."""
    resources.check(settings)
    limits = limits_of(session, settings, owner)
    most = settings.max_queued_jobs
    in_all = repository.queued_in_all(session, most)
    queued = repository.queued_jobs(session, owner)
    limit = limits.queued_jobs
    if limit is None:  # no more than are left free, so that no owner fills the queue for the others
        limit = max(1, math.ceil((most - (in_all - queued)) / 2))
    if queued >= limit:
        what = counted(limit, "queued job", "queued jobs")
        raise _exceeded("queued_jobs", what, limit, queued, retry_after=QUEUE_RETRY_SECONDS)
    _check_files(limits, session, owner, adds_bytes)
    if makes is not None:
        _check_count(limits, session, owner, makes, 1)
    if in_all >= most:
        raise Unavailable(
            f"the service queues at most {counted(most, 'job', 'jobs')}, and the queue is full: try again later",
            code="queue_full",
            retry_after=QUEUE_RETRY_SECONDS,
        )


def check_bytes(session: Session, settings: Settings, owner: str, adds_bytes: int) -> None:
    """Raise TooMany for `adds_bytes` more in files. `check_usage` checks rows before the transaction commits."""
    _check_files(limits_of(session, settings, owner), session, owner, adds_bytes)


def bytes_left(session: Session, settings: Settings, owner: str) -> int | None:
    """Return None if there is no limit."""
    limit = limits_of(session, settings, owner).bytes
    return None if limit is None else max(0, limit - repository.stored_bytes(session, owner))


def _check_files(limits: Limits, session: Session, owner: str, adds_bytes: int) -> None:
    if limits.bytes is not None:
        files = repository.stored_bytes(session, owner)
        _check_bytes(limits.bytes, files, f"{files} in files", adds_bytes)


def check_usage(settings: Settings, limit: int, usage: Usage) -> None:
    """Raises TooMany or OutOfSpace."""
    resources.check(settings)
    has = f"{usage.files} in files and {usage.rows} in rows ({FREE_ROW_BYTES} of these are free)"
    _check_bytes(limit, usage.counted, has)


def _check_bytes(limit: int, stored: int, has: str, adds_bytes: int = 0) -> None:
    """Raises TooMany. `has` describes the stored bytes in the message."""
    if stored + adds_bytes > limit:
        more = f" and needs {adds_bytes} more" if adds_bytes else ""
        advice = (
            "delete datasets, uploads, models, aliases, evaluations, comparisons or batch scores, and "
            "then empty the trash, which also counts"
        )
        raise _exceeded(
            "bytes",
            f"{limit} stored bytes",
            limit,
            stored,
            f"{has}{more}: {advice}",
            retry_after=BYTES_RETRY_SECONDS,
        )


_WORDS: dict[Counted, tuple[str, str, str]] = {
    "dataset_rows": (
        "row in datasets",
        "rows in datasets",
        "delete datasets, and then empty the trash, which also counts",
    ),
    "models": (
        "model",
        "models",
        "delete models, and then empty the trash, which also counts; so do unfinished training jobs",
    ),
    "aliases": ("alias", "aliases", "delete an alias"),
    "keys": ("valid key", "valid keys", "revoke a key"),
}
"""One and several of what is counted, and how the owner gets below the quota."""
_COUNTS: dict[Counted, Callable[[Session, str], int]] = {
    "dataset_rows": repository.dataset_rows,
    "models": repository.models,
    "aliases": repository.aliases,
    "keys": repository.usable_keys,
}


def _check_count(limits: Limits, session: Session, owner: str, quota: Counted, adds: int) -> None:
    """Raises TooMany."""
    limit: int | None = getattr(limits, quota)
    if limit is None:
        return
    value = _COUNTS[quota](session, owner)
    if value + adds > limit:
        one, several, advice = _WORDS[quota]
        more = f" and needs {adds} more" if adds > 1 else ""
        raise _exceeded(
            quota,
            counted(limit, one, several),
            limit,
            value,
            f"{value}{more}: {advice}",
            retry_after=BYTES_RETRY_SECONDS,
        )


def _exceeded(
    quota: str, what: str, limit: int, value: int, has: str | None = None, *, retry_after: int
) -> TooMany:
    """`what` is the limit, `has` the current value, both in words."""
    detail = f"an owner can have at most {what}; this one has {has or value}"
    return TooMany(
        detail,
        code="quota_exceeded",
        errors=[{"quota": quota, "limit": limit, "value": value, "detail": detail}],
        retry_after=retry_after,
    )
