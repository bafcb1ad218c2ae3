"""The worker processes that were heard from."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import Session

from app.platform.sql import db_now, delete_some
from app.platform.tables import Worker


def hello(session: Session, worker_id: str, *, host: str, version: str, slots: int) -> None:
    """Enter a worker process at its start. The id is new at every boot: host names repeat, and so do pids."""
    session.execute(
        insert(Worker).values(
            id=worker_id,
            host=host,
            version=version,
            slots=slots,
            started_at=db_now(),
            seen_at=db_now(),
            by_message=0,
            by_look=0,
        )
    )


def seen(
    session: Session, worker_id: str, *, by_message: int, by_look: int, note: str | None = None
) -> bool:
    """Note that the worker lives and how it found its jobs; False when its row is gone: say hello again."""
    updated = session.execute(
        update(Worker)
        .where(Worker.id == worker_id)
        .values(seen_at=db_now(), by_message=by_message, by_look=by_look, note=note)
        .returning(Worker.id),
        execution_options={"synchronize_session": False},
    )
    return updated.one_or_none() is not None


def goodbye(session: Session, worker_id: str) -> None:
    """Remove a worker that ends in good order."""
    session.execute(delete(Worker).where(Worker.id == worker_id))


def alive(session: Session, within_seconds: float) -> Sequence[Worker]:
    """The workers heard from within that time, oldest first."""
    return session.scalars(
        select(Worker)
        .where(Worker.seen_at > db_now() - within_seconds)
        .order_by(Worker.started_at, Worker.id)
    ).all()


def prune(session: Session, age_seconds: float, limit: int) -> int:
    """Forget so many workers that were silent for that long; returns how many."""
    return delete_some(session, Worker, Worker.seen_at < db_now() - age_seconds, limit=limit)
