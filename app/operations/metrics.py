"""Prometheus metrics that are computed from the database, for all owners together."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, Literal, NamedTuple, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.access import repository as quota_rows
from app.jobs import queue_repository as queue_rows
from app.jobs import repository as worker_rows
from app.jobs.kinds import SHOWN_KINDS
from app.operations import repository
from app.platform import resources
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import FINAL_STATES, Upkeep
from app.webhooks.delivery_repository import WebhookCounts, count_webhooks

log = logging.getLogger(__name__)

MAX_OWNERS = 20
"""Owners whose bytes are shown; those of the others are shown together."""
KNOWN_FACTOR = 50.0
"""How long a slow measurement is used, in multiples of the time that it took."""
WAIT_SECONDS = 0.5
"""How long a scrape waits for measurements that it begins."""
COUNTS_SECONDS = 1.0
BYTES_SECONDS = 10.0

Value = TypeVar("Value")
Counts = Mapping[tuple[str, str], int]


class _Measurement(Generic[Value]):
    """A measurement made once in `seconds`; one in proportion to the rows takes at most a fiftieth of the time."""

    def __init__(self, measure: Callable[[], Value], seconds: float) -> None:
        self._measure = measure
        self._seconds = seconds
        self._lock = threading.Lock()
        self._ends: threading.Event | None = None
        self._valid_until = 0.0
        self.value: Value | None = None
        """The newest value; None if there is none yet."""
        self.measured_at = 0.0
        """When it was measured, in seconds since 1970."""

    def begin(self) -> threading.Event | None:
        """Begin a measurement if the value is old, and return what is set at its end; None if one is running."""
        with self._lock:
            if self._ends is not None or time.monotonic() < self._valid_until:
                return None
            self._ends = ends = threading.Event()
        # A thread: it may take longer than Prometheus waits for a scrape.
        threading.Thread(target=self._run, name="metrics", daemon=True).start()
        return ends

    def _run(self) -> None:
        begun = time.monotonic()
        try:
            self.value = self._measure()
            self.measured_at = time.time()
        except Unavailable:
            pass  # `Database` logs it
        except Exception:
            log.exception("a metric could not be measured")
        with self._lock:
            now = time.monotonic()
            busy = KNOWN_FACTOR * (now - begun) if self._seconds else 0.0
            self._valid_until = now + max(self._seconds, busy)
            ends, self._ends = self._ends, None
        if ends is not None:
            ends.set()


SHOWN_SECONDS = 3600.0
"""How long a suspended protection is shown after it has ended: one may be shorter than the interval of scrapes."""


class _Now(NamedTuple):
    """What is read for each scrape: few rows, by indexes."""

    ages: dict[repository.Lane, float]
    workers: int
    dispatchers: int
    leases: int
    successes: dict[str, float]
    at_quota: dict[str, int]
    connections: tuple[int, int] | None
    break_glass: int
    webhooks: WebhookCounts


class _Bytes(NamedTuple):
    """Bytes of the database, of the owners with the most files, and of all other owners' files."""

    database: int
    owners: dict[str, int]
    others: int


class DatabaseCollector(Collector):
    """Metrics of all owners: jobs, workers, age of the queue, quotas, upkeep, bytes and free space."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._settings = settings
        self._now = _Measurement(lambda: db.reading(_now, settings), 0.0)
        self._counts = _Measurement(lambda: db.reading(_counts), COUNTS_SECONDS)
        self._bytes = _Measurement(lambda: db.reading(_bytes), BYTES_SECONDS)

    def describe(self) -> Iterator[Metric]:
        """The database is not queried at registration."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """While the database does not respond, yield the last known values, with their time."""
        begun = [each.begin() for each in (self._now, self._counts, self._bytes)]
        until = time.monotonic() + WAIT_SECONDS
        for ends in begun:
            if ends is not None:
                ends.wait(max(0.0, until - time.monotonic()))
        yield self._free()
        if (now := self._now.value) is None:
            return
        yield GaugeMetricFamily(
            "rankwright_metrics_timestamp_seconds",
            "Time at which the metrics of the database were read. It stands still while the database does not respond.",
            self._now.measured_at,
        )
        yield from _of_queue(now)
        yield from _of_upkeep(now)
        yield GaugeMetricFamily(
            "rankwright_break_glass",
            "Protected aliases whose protection is suspended, or was within the last hour, so that admins changed them "
            "without approval.",
            float(now.break_glass),
        )
        yield from _of_webhooks(now.webhooks)
        if (counts := self._counts.value) is not None:
            yield from _of_jobs(*counts)
        if (found := self._bytes.value) is not None:
            yield from _of_bytes(found)

    def _free(self) -> Metric:
        free = GaugeMetricFamily(
            "rankwright_disk_free_bytes",
            "Free bytes on the disks where this process writes, by disk: blobs, database (SQLite).",
            labels=["disk"],
        )
        folders = resources.folders(self._settings)
        for disk, path in zip(("blobs", "database"), folders, strict=False):
            free.add_metric([disk], resources.free_bytes(path))
        return free


def _now(session: Session, settings: Settings) -> _Now:
    limits: dict[Literal["queued_jobs", "running_jobs"], int | None] = {
        "queued_jobs": settings.quota_queued_jobs,
        "running_jobs": settings.quota_running_jobs,
    }
    within = worker_rows.MISSED_BEATS * settings.heartbeat_seconds
    return _Now(
        ages=repository.queue_ages(session),
        workers=len(worker_rows.alive(session, within)),
        dispatchers=len(worker_rows.dispatchers(session)),
        leases=queue_rows.leases(session, settings.lease_seconds, 0.0),
        successes=repository.last_successes(session),
        at_quota={
            quota: count
            for quota, limit in limits.items()
            if (count := quota_rows.owners_at_limit(session, quota, limit)) is not None
        },
        connections=repository.server_connections(session),
        break_glass=repository.count_break_glass(session, SHOWN_SECONDS),
        webhooks=count_webhooks(session),
    )


def _counts(session: Session) -> tuple[Counts, Counts]:
    counts = repository.job_counts(session)
    return counts, repository.ended_counts(session, counts)


def _bytes(session: Session) -> _Bytes:
    owners, others = quota_rows.stored_bytes_by_owner(session, MAX_OWNERS)
    return _Bytes(repository.database_bytes(session), owners, others)


def _of_queue(now: _Now) -> Iterator[Metric]:
    oldest = GaugeMetricFamily(
        "rankwright_queue_oldest_seconds",
        "Time since the oldest queued job was due, by kind and priority: high (above 0), normal (0), low. Absent if "
        "none waits; without parts of jobs.",
        labels=["kind", "priority"],
    )
    for lane, age in sorted(now.ages.items()):
        oldest.add_metric(lane, age)
    yield oldest
    yield GaugeMetricFamily(
        "rankwright_workers", "Workers with a recent heartbeat.", float(now.workers)
    )
    yield GaugeMetricFamily(
        "rankwright_dispatchers", "Dispatchers with a recent heartbeat.", float(now.dispatchers)
    )
    yield GaugeMetricFamily(
        "rankwright_leases_expired",
        "Running jobs whose lease has expired. A dispatcher queues them again.",
        float(now.leases),
    )
    if now.at_quota:
        owners = GaugeMetricFamily(
            "rankwright_owners_at_quota",
            "Owners that have reached a quota of jobs, by quota. Present only if such a quota is set.",
            labels=["quota"],
        )
        for quota, count in now.at_quota.items():
            owners.add_metric([quota], count)
        yield owners
    if now.connections is not None:
        in_use, most = now.connections
        yield GaugeMetricFamily(
            "rankwright_database_connections",
            "Clients connected to the PostgreSQL server, ours and others. Absent with SQLite.",
            float(in_use),
        )
        yield GaugeMetricFamily(
            "rankwright_database_connections_max",
            "Clients that the PostgreSQL server allows. Absent with SQLite.",
            float(most),
        )


def _of_upkeep(now: _Now) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "rankwright_housekeeping_success_timestamp_seconds",
        "Time of the last complete round of housekeeping, which removes old rows and files. 0 if there was none.",
        now.successes.get(Upkeep.HOUSEKEEPING, 0.0),
    )
    yield GaugeMetricFamily(
        "rankwright_backup_success_timestamp_seconds",
        "Time of the last complete backup. 0 if there was none.",
        now.successes.get(Upkeep.BACKUP, 0.0),
    )


def _of_webhooks(counts: WebhookCounts) -> Iterator[Metric]:
    webhooks = GaugeMetricFamily(
        "rankwright_webhooks",
        "Webhooks by state: working (the last attempt succeeded, or there was none), failing (it failed), disabled.",
        labels=["state"],
    )
    webhooks.add_metric(["working"], counts.working)
    webhooks.add_metric(["failing"], counts.failing)
    webhooks.add_metric(["disabled"], counts.disabled)
    yield webhooks
    yield GaugeMetricFamily(
        "rankwright_webhooks_late_seconds",
        "Time since the oldest delivery to a working webhook was due. 0 if none is due.",
        counts.late_seconds,
    )


def _of_jobs(counts: Counts, ended: Counts) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("rankwright_jobs", "Jobs by kind and state.", labels=["kind", "state"])
    for labels, count in sorted(counts.items()):
        jobs.add_metric(labels, count)
    yield jobs
    outcomes = CounterMetricFamily(
        "rankwright_jobs_ended",
        "All jobs that ever ended, by kind and outcome, without parts of jobs. Removed jobs still count.",
        labels=["kind", "outcome"],
    )
    # A counter that appears with its first failure would never be seen to grow.
    none = {(kind, outcome): 0 for kind in SHOWN_KINDS for outcome in map(str, FINAL_STATES)}
    for labels, count in sorted((none | dict(ended)).items()):
        outcomes.add_metric(labels, count)
    yield outcomes


def _of_bytes(found: _Bytes) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "rankwright_database_size_bytes",
        "Size of the database: tables and indexes of PostgreSQL, or SQLite's file without its log.",
        float(found.database),
    )
    owners = GaugeMetricFamily(
        "rankwright_owner_stored_bytes",
        f"Bytes of an owner's files (uploads, tables, models, scores), of the {MAX_OWNERS} owners with the most.",
        labels=["owner"],
    )
    for owner, size in found.owners.items():
        owners.add_metric([owner], size)
    yield owners
    yield GaugeMetricFamily(
        "rankwright_other_owners_stored_bytes",
        "Bytes of the files of all other owners together.",
        float(found.others),
    )
