"""Figures on the state of the whole service, for /metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from app.db import health as rows
from app.db import quotas as quota_rows
from app.db import workers as worker_rows
from app.db.session import Database
from app.db.tables import JobState
from app.infra import space
from app.infra.settings import Settings
from app.services.health import SILENT_BEATS

Labels = tuple[tuple[str, str], ...]


class Gauge(NamedTuple):
    """A figure that goes up and down, one value for each set of labels."""

    name: str
    help: str
    values: Mapping[Labels, float]


def gauges(db: Database, settings: Settings) -> Iterator[Gauge]:
    """Jobs, workers, the queue's age, quotas and room, over all owners, as one moment has them."""
    limits = {
        "queued_jobs": (JobState.QUEUED, settings.quota_queued_jobs),
        "running_jobs": (JobState.RUNNING, settings.quota_running_jobs),
    }
    with db.read() as session:
        jobs = rows.job_counts(session)
        oldest = rows.oldest_due(session)
        alive = worker_rows.alive(session, SILENT_BEATS * settings.heartbeat_seconds)
        full: dict[Labels, float] = {
            (("quota", quota),): float(quota_rows.owners_at_limit(session, state, limit))
            for quota, (state, limit) in limits.items()
            if limit is not None
        }
    counts: dict[Labels, float] = {
        (("kind", kind), ("state", state)): float(n) for (kind, state), n in sorted(jobs.items())
    }
    yield Gauge("jobs", "Jobs by kind and state.", counts)
    help_ = "How long the oldest job that may begin has waited for a worker."
    yield Gauge("queue_oldest_seconds", help_, {(): oldest or 0.0})
    yield Gauge("workers", "Workers heard from lately.", {(): float(len(alive))})
    if full:
        yield Gauge("owners_at_quota", "Owners who have as many jobs as they may.", full)
    folders = zip(("blobs", "database"), space.folders(settings), strict=False)
    free: dict[Labels, float] = {
        (("disk", disk),): float(space.free_bytes(path)) for disk, path in folders
    }
    yield Gauge("disk_free_bytes", "Free space where this process writes.", free)
