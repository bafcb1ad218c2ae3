"""Health of the components that the service needs, and Prometheus metrics computed from the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from app.access import repository as quota_rows
from app.jobs import repository as worker_rows
from app.operations import repository
from app.platform import resources
from app.platform.background import BackgroundTasks
from app.platform.blobs import BlobStore
from app.platform.broker import BrokerAway, Producer
from app.platform.database import Database
from app.platform.errors import ServiceError, Unavailable
from app.platform.schema import OtherTables, SchemaCheck
from app.platform.settings import Settings
from app.platform.tables import Worker


@dataclass(frozen=True)
class Check:
    """The health of one component: whether it works, and a sentence about it."""

    name: str
    ok: bool
    detail: str


ANSWER_SECONDS = 0.8
"""How long a part may take to answer; then it is not well. So health answers within a second."""


class HealthProbes:
    """The health checks of the components, to be called on an event loop.

    Requests never wait for it: each component has a thread of its own that checks it, over a database connection that
    only health uses.
    """

    def __init__(
        self,
        db: Database,
        settings: Settings,
        schema: SchemaCheck,
        blobs: BlobStore,
        producer: Producer,
    ) -> None:
        self._db = db.apart()
        self._scores = (
            _Probe("database", lambda: _database(self._db)),
            _Probe("schema", lambda: _schema(schema)),
            _Probe("blob_store", lambda: _blob_store(blobs)),
        )
        self._disk = _Probe("disk", lambda: _disk(settings))
        self._works = (
            _Probe("broker", lambda: _broker(producer)),
            _Probe("worker", lambda: _worker(self._db, settings)),
            _Probe("dispatcher", lambda: _dispatcher(self._db)),
        )

    async def can_score(self) -> list[Check]:
        """Return the checks of the components that an API process needs to score."""
        return await asyncio.gather(*(probe.ask() for probe in self._scores))

    async def can_serve(self) -> list[Check]:
        """Return the checks of the components that an API process needs to respond and to accept work."""
        return await asyncio.gather(*(probe.ask() for probe in (*self._scores, self._disk)))

    async def does_work(self) -> list[Check]:
        """Return the checks of the components that finish accepted work in time: broker, worker and dispatcher."""
        return await asyncio.gather(*(probe.ask() for probe in self._works))

    def close(self) -> None:
        """End the threads, and close the connection."""
        for probe in (*self._scores, self._disk, *self._works):
            probe.close()
        self._db.close()


class _Probe:
    """A check of one component in its own thread. Simultaneous callers share its result, so a component that hangs
    blocks only one thread.
    """

    def __init__(self, name: str, look: Callable[[], str]) -> None:
        self._name = name
        self._look = look
        self._thread: BackgroundTasks | None = None
        self._looking: Future[Check] | None = None

    async def ask(self) -> Check:
        """Return the result of the check, begun now or already running; a failed check after `ANSWER_SECONDS`."""
        if self._looking is None or self._looking.done():
            self._looking = Future()
            if self._thread is None:
                self._thread = BackgroundTasks(f"health-{self._name}")
            self._thread.add(partial(self._answer, self._looking))
        looking = asyncio.wrap_future(self._looking)
        await asyncio.wait([looking], timeout=ANSWER_SECONDS)
        if looking.done():
            return looking.result()
        return Check(self._name, False, f"has not responded within {ANSWER_SECONDS:g} s")

    def close(self) -> None:
        """End the thread, without waiting for a check that hangs."""
        if self._thread is not None:
            self._thread.close(timeout=0.0)

    def _answer(self, looking: Future[Check]) -> None:
        try:
            looking.set_result(_check(self._name, self._look))
        except Exception as error:
            looking.set_exception(error)


def _check(name: str, probe: Callable[[], str]) -> Check:
    """Return the result of a probe; an expected error is a failed check."""
    try:
        return Check(name, True, probe())
    except ServiceError as error:
        # the message names no host or user: anybody may read it
        return Check(name, False, error.detail)
    except (_Unhealthy, OtherTables, BrokerAway, OSError) as error:
        return Check(name, False, str(error))


class _Unhealthy(Exception):
    """Raised if a component responds but does not work properly; the message is the reason."""


def _database(db: Database) -> str:
    db.reading(repository.ping)
    db.check_changes()
    return "responds and accepts changes"


def _schema(schema: SchemaCheck) -> str:
    return f"started at revision {schema.passed()}"


def _blob_store(blobs: BlobStore) -> str:
    """Check that the blob folder can be read and written; returns a sentence."""
    try:
        blobs.check_writable()
    except OSError as error:
        raise _Unhealthy("the blob folder cannot be read and written") from error
    return "can be read and written"


def _disk(settings: Settings) -> str:
    resources.check(settings)
    return f"at least {settings.min_free_bytes} bytes are free"


def _broker(producer: Producer) -> str:
    producer.ping()
    return "answers"


def _worker(db: Database, settings: Settings) -> str:
    """Check that a worker has sent a heartbeat; returns a sentence."""
    within = worker_rows.MISSED_BEATS * settings.heartbeat_seconds
    with db.read() as session:
        alive = worker_rows.alive(session, within)
    if not alive:
        raise _Unhealthy(f"no worker has sent a heartbeat within {within:g} s; accepted jobs wait")
    notes = [note for note in map(_note, alive) if note]
    return f"{len(alive)} heard from" + "".join(f"; {note}" for note in notes)


def _dispatcher(db: Database) -> str:
    """Check that a dispatcher has sent a heartbeat; returns a sentence."""
    n_alive = len(db.reading(worker_rows.dispatchers))
    if not n_alive:
        raise _Unhealthy(
            f"no dispatcher has sent a heartbeat within {worker_rows.DISPATCHER_SILENCE_SECONDS:g} s; jobs "
            "of dead workers are not restarted"
        )
    return f"{n_alive} heard from"


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
        """Yield all metrics; while the database is unavailable, only `rankwright_database_up`."""
        up = GaugeMetricFamily("rankwright_database_up", "1 if the database responds, else 0.")
        try:
            metrics = [*self._metrics()]
        except Unavailable:
            metrics = []
        up.add_metric([], float(bool(metrics)))
        yield up
        yield from metrics

    def _metrics(self) -> Iterator[Metric]:
        """Yield the metrics that are computed from the database."""
        settings = self._settings
        limits: dict[Literal["queued_jobs", "running_jobs"], int | None] = {
            "queued_jobs": settings.quota_queued_jobs,
            "running_jobs": settings.quota_running_jobs,
        }
        with self._db.read() as session:
            counts = repository.job_counts(session)
            ended = repository.ended_counts(session)
            oldest = repository.oldest_due(session)
            alive = worker_rows.alive(
                session, worker_rows.MISSED_BEATS * settings.heartbeat_seconds
            )
            dispatchers = worker_rows.dispatchers(session)
            at_limit = {
                quota: count
                for quota, limit in limits.items()
                if (count := quota_rows.owners_at_limit(session, quota, limit)) is not None
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
        yield GaugeMetricFamily(
            "rankwright_dispatchers",
            "Dispatchers that sent a heartbeat recently; without one, jobs of dead workers stay running.",
            float(len(dispatchers)),
        )
        if at_limit:
            owners = GaugeMetricFamily(
                "rankwright_owners_at_quota",
                "Owners whose quota of running jobs is exhausted.",
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
