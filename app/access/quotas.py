"""How much may be accepted: quotas of one owner, bounds of the whole service.

An owner over a quota gets 429, which says which one, its limit and what they have. What no owner is to blame for, a
full queue or a full disk, is 503 or 507. The quota of running jobs refuses nothing: the claim passes over owners who
have as many running (`queue.claim`).
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.access import repository as rows
from app.platform import resources as space
from app.platform.errors import TooMany, Unavailable
from app.platform.settings import Settings

QUEUE_RETRY_SECONDS = 10
BYTES_RETRY_SECONDS = 60


def admit(session: Session, settings: Settings, owner: str, adds_bytes: int = 0) -> None:
    """Let another job be queued by the caller's transaction, with so many bytes of its upload, or refuse it.

    What it counts cannot change before the transaction ends: others of the same owner wait for their turn. Raises
    TooMany, Unavailable or OutOfSpace.
    """
    if settings.quota_queued_jobs is not None or settings.quota_bytes is not None:
        rows.take_turn(session, owner)
    check(session, settings, owner, adds_bytes)


def check(session: Session, settings: Settings, owner: str, adds_bytes: int = 0) -> None:
    """The same as the rows stand now: good for refusing an upload before it is sent, too early for accepting it."""
    space.check(settings)
    limit = settings.quota_queued_jobs
    if limit is not None and (queued := rows.queued_jobs(session, owner)) >= limit:
        raise _exceeded(
            "queued_jobs", "queued jobs", limit, queued, retry_after=QUEUE_RETRY_SECONDS
        )
    check_bytes(session, settings, owner, adds_bytes)
    most = settings.max_queued_jobs
    if rows.queued_in_all(session, most) >= most:
        raise Unavailable(
            f"the service queues at most {most} jobs, and has as many: try again later",
            code="queue_full",
            retry_after=QUEUE_RETRY_SECONDS,
        )


def check_bytes(session: Session, settings: Settings, owner: str, adds_bytes: int) -> None:
    """Refuse so many bytes more where the owner may not have them."""
    limit = settings.quota_bytes
    if limit is not None and (stored := rows.stored_bytes(session, owner)) + adds_bytes > limit:
        more = f" and asks for {adds_bytes} more" if adds_bytes else ""
        raise _exceeded(
            "bytes", "stored bytes", limit, stored, more, retry_after=BYTES_RETRY_SECONDS
        )


def _exceeded(
    quota: str, what: str, limit: int, value: int, more: str = "", *, retry_after: int
) -> TooMany:
    detail = f"an owner may have at most {limit} {what}, this one has {value}{more}"
    return TooMany(
        detail,
        code="quota_exceeded",
        errors=[{"quota": quota, "limit": limit, "value": value, "detail": detail}],
        retry_after=retry_after,
    )
