"""Health of the parts that the service needs, and the metrics for Prometheus that come from the database."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.access import repository as quota_rows
from app.jobs import repository as worker_rows
from app.operations import repository
from app.operations.self_check import MISSED_BEATS
from app.platform import resources
from app.platform.blobs import BlobStore
from app.platform.broker import BrokerAway, Producer
from app.platform.database import Database
from app.platform.errors import ServiceError
from app.platform.schema import OtherTables, SchemaCheck
from app.platform.settings import Settings
from app.platform.tables import JobState, Worker


@dataclass(frozen=True)
class Check:
    """The health of one part: whether it is well, and a sentence about it."""

    name: str
    ok: bool
    detail: str


def can_serve(db: Database, schema: SchemaCheck, blobs: BlobStore) -> list[Check]:
    """Check the parts that an API needs to answer and to accept work."""
    return [
        _check("database", lambda: _database(db)),
        _check("schema", lambda: _schema(schema)),
        _check("blob_store", lambda: _blob_store(blobs)),
    ]


def does_work(db: Database, producer: Producer, settings: Settings) -> list[Check]:
    """Check the parts that finish accepted work in time."""
    return [
        _check("broker", lambda: _broker(producer)),
        _check("worker", lambda: _worker(db, settings)),
    ]


def _check(name: str, probe: Callable[[], str]) -> Check:
    try:
        return Check(name, True, probe())
    except ServiceError as error:
        return Check(name, False, error.detail)  # names no host or user: anybody may ask
    except (_Unhealthy, OtherTables, BrokerAway, OSError) as error:
        return Check(name, False, str(error))


class _Unhealthy(Exception):
    """A part answers, but is not well."""


def _database(db: Database) -> str:
    with db.read() as session:
        repository.ping(session)
    return "answers"


def _schema(schema: SchemaCheck) -> str:
    return f"began at revision {schema.passed()}"


def _blob_store(blobs: BlobStore) -> str:
    if not os.access(blobs.root, os.R_OK | os.W_OK | os.X_OK):
        raise _Unhealthy("the blob folder cannot be read and written")
    return "can be read and written"


def _broker(producer: Producer) -> str:
    producer.ping()
    return "answers"


def _worker(db: Database, settings: Settings) -> str:
    within = MISSED_BEATS * settings.heartbeat_seconds
    with db.read() as session:
        alive = worker_rows.alive(session, within)
    if not alive:
        raise _Unhealthy(f"no worker has sent a heartbeat within {within:g} s; accepted jobs wait")
    notes = [note for note in map(_note, alive) if note]
    return f"{len(alive)} heard from" + "".join(f"; {note}" for note in notes)


def _note(worker: Worker) -> str | None:
    """Return the note of a worker that finds its jobs by polling because no messages come; else None."""
    return f"{worker.host}: {worker.note}" if worker.note else None


class MetricsCollector(Collector):
    """Metrics of all owners: jobs, workers, age of the queue, quotas and free space."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: the database is not queried at registration."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        settings = self._settings
        limits = {
            "queued_jobs": (JobState.QUEUED, settings.quota_queued_jobs),
            "running_jobs": (JobState.RUNNING, settings.quota_running_jobs),
        }
        with self._db.read() as session:
            counts = repository.job_counts(session)
            ended = repository.ended_counts(session)
            oldest = repository.oldest_due(session)
            alive = worker_rows.alive(session, MISSED_BEATS * settings.heartbeat_seconds)
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
        outcomes = CounterMetricFamily(
            "rankwright_jobs_ended",
            "All jobs that ended, by kind and outcome, without parts of jobs. Every API process reports the same "
            "number.",
            labels=["kind", "outcome"],
        )
        for labels, count in sorted(ended.items()):
            outcomes.add_metric(labels, count)
        yield outcomes
        yield GaugeMetricFamily(
            "rankwright_queue_oldest_seconds",
            "Seconds that the oldest startable job has waited for a worker.",
            oldest or 0.0,
        )
        yield GaugeMetricFamily(
            "rankwright_workers", "Workers that sent a heartbeat recently.", float(len(alive))
        )
        if at_limit:
            owners = GaugeMetricFamily(
                "rankwright_owners_at_quota",
                "Owners whose quota of running jobs is used up.",
                labels=["quota"],
            )
            for quota, count in at_limit.items():
                owners.add_metric([quota], count)
            yield owners
        free = GaugeMetricFamily(
            "rankwright_disk_free_bytes",
            "Free bytes on the disks where this process writes.",
            labels=["disk"],
        )
        for disk, path in zip(("blobs", "database"), resources.folders(settings), strict=False):
            free.add_metric([disk], resources.free_bytes(path))
        yield free
