"""Figures on the state of the whole service, for /metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from app.access import quotas_repository as quota_rows
from app.jobs import workers_repository as worker_rows
from app.operations import repository as rows
from app.operations.health import SILENT_BEATS
from app.platform import resources as space
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import JobState


class Figures(Collector):
    """Jobs, workers, the queue's age, quotas and room, over all owners, as one moment has them."""

    def __init__(self, db: Database, settings: Settings, uploads: Callable[[], int]) -> None:
        self._db = db
        self._settings = settings
        self._uploads = uploads

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing: the names are known once somebody asks, and the database is not asked at start."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read them all."""
        settings = self._settings
        limits = {
            "queued_jobs": (JobState.QUEUED, settings.quota_queued_jobs),
            "running_jobs": (JobState.RUNNING, settings.quota_running_jobs),
        }
        with self._db.read() as session:
            counts = rows.job_counts(session)
            oldest = rows.oldest_due(session)
            alive = worker_rows.alive(session, SILENT_BEATS * settings.heartbeat_seconds)
            at_limit = {
                quota: quota_rows.owners_at_limit(session, state, limit)
                for quota, (state, limit) in limits.items()
                if limit is not None
            }
        jobs = GaugeMetricFamily(
            "rankwright_jobs", "Jobs by kind and state.", labels=["kind", "state"]
        )
        for labels, count in sorted(counts.items()):
            jobs.add_metric(labels, count)
        yield jobs
        yield GaugeMetricFamily(
            "rankwright_queue_oldest_seconds",
            "How long the oldest job that may begin has waited for a worker.",
            oldest or 0.0,
        )
        yield GaugeMetricFamily(
            "rankwright_workers", "Workers heard from lately.", float(len(alive))
        )
        if at_limit:
            owners = GaugeMetricFamily(
                "rankwright_owners_at_quota",
                "Owners who have as many jobs as they may.",
                labels=["quota"],
            )
            for quota, count in at_limit.items():
                owners.add_metric([quota], count)
            yield owners
        free = GaugeMetricFamily(
            "rankwright_disk_free_bytes", "Free space where this process writes.", labels=["disk"]
        )
        for disk, path in zip(("blobs", "database"), space.folders(settings), strict=False):
            free.add_metric([disk], space.free_bytes(path))
        yield free
        yield GaugeMetricFamily(
            "rankwright_uploads", "Uploads that this process receives.", self._uploads()
        )
