"""Prometheus metrics: of one process, or of all API processes that share a port."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    values,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from app import __version__

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
STATUSES = (0, *map(int, HTTPStatus))  # the status 0: the connection ended before an answer
OTHER = "other"  # a method that no client has reason to send, and requests beyond MAX_SERIES
UNROUTED = "unrouted"  # the route of requests that no route takes
# Of requests, by method, route and status. A caller without a key chooses among them: so there is a bound.
MAX_SERIES = 512
FIT_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 24 * 3600.0)

WAIT_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 600.0, 3600.0, 4 * 3600.0)

# The creation times would be a second, useless series for each metric.
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Build(Collector):
    """The metric with the version and the build of the code."""

    def __init__(self, build: str) -> None:
        self._build = build

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily(
            "rankwright_build_info",
            "1, with the version and the build of the code.",
            labels=["version", "build"],
        )
        info.add_metric([__version__, self._build], 1)
        yield info


def describe_process(registry: CollectorRegistry, build: str) -> None:
    """Add version, build, and this process's CPU time, memory and open files."""
    registry.register(_Build(build))
    ProcessCollector(registry=registry)


_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's name
# A series of requests has at most 16 values of 384 bytes: routes are shorter than 150 characters.
_FILE_BYTES = {"histogram": MAX_SERIES * 16 * 384, "gauge_sum": 8192, "counter": 16384}
SHARED_BYTES = sum(_FILE_BYTES.values())  # bytes of each process's file
shared: tuple[Path, int] | None = None  # the folder, and the number of this process


def prepare_shared(folder: Path, processes: int) -> None:
    """Create the files of API processes' counters, all 0. Raises OSError if there is no space.

    All their bytes are allocated at the start: on a full disk, a process that writes to an unallocated part of a mapped
    file is killed. Files of an earlier start are overwritten, so that they take no more space.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    sizes = {
        folder / f"{kind}_{number}.db": size
        for number in range(1, processes + 1)
        for kind, size in _FILE_BYTES.items()
    }
    for path in folder.iterdir():
        if path not in sizes:
            path.unlink()
    for path, size in sizes.items():
        _fill(path, size)


def _fill(path: Path, size: int) -> None:
    with path.open("r+b" if path.exists() else "xb") as file:
        file.write(bytes(size))
        file.truncate()


def share(folder: Path, number: int) -> None:
    """Use the counters of API process `number`, continuing its predecessor's. A removed folder is created again."""
    global shared  # noqa: PLW0603 - a process counts in one folder, as its environment says
    folder.mkdir(mode=0o700, exist_ok=True)
    for kind, size in _FILE_BYTES.items():
        path = folder / f"{kind}_{number}.db"
        if not path.exists() or path.stat().st_size < size:
            _fill(path, size)
    os.environ[_FOLDER] = str(folder)
    values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]
    shared = folder, number


def write_pid(folder: Path, number: int) -> None:
    """API process `number` responds now."""
    path = folder / f"{number}.new"
    path.write_text(str(os.getpid()))
    path.replace(folder / f"{number}.pid")


def read_pids(folder: Path) -> dict[str, int]:
    """Return pids of API processes that have responded, by number."""
    found = {}
    for path in sorted(folder.glob("*.pid")):
        # the file was removed meanwhile, or does not contain a number
        with contextlib.suppress(OSError, ValueError):
            found[path.stem] = int(path.read_text())
    return found


def _is_sibling(pid: int) -> bool:
    """Check for a child of this process's parent: another program may have the same pid."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return int(stat.rpartition(b")")[2].split()[1]) == os.getppid()


class _SharedProcesses(Collector):
    """CPU time, memory and open files of each API process, with its number as label `process`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        found: dict[str, Metric] = {}
        for number, pid in read_pids(self._folder).items():
            if not _is_sibling(pid):
                continue
            for family in ProcessCollector(pid=lambda: pid, registry=None).collect():  # noqa: B023 - asked at once
                metric = Metric(family.name, family.documentation, family.type)
                metric = found.setdefault(family.name, metric)
                for sample in family.samples:
                    metric.add_sample(sample.name, {"process": number}, sample.value)
        yield from found.values()


def _stored(folder: Path, number: int) -> set[tuple[str, str, int]]:
    """Return the (method, route, status) of stored series."""
    path = folder / f"histogram_{number}.db"
    found = set()
    for key, *_ in MmapedDict.read_all_values_from_file(path):  # type: ignore[no-untyped-call]
        labels = json.loads(key)[2]
        found.add((labels["method"], labels["route"], int(labels["status"])))
    return found


UPDATE_SECONDS = 1.0
"""How often a process that shares a folder with others writes its sampled metrics there."""


class _Total:
    """A counter that follows a total kept elsewhere."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._counted = 0

    def follow(self, total: int) -> None:
        """Count what the total has grown by."""
        self._counter.inc(total - self._counted)
        self._counted = total


class ApiMetrics:
    """Metrics of one API process, or of all that share a folder.

    Permits, look-ups of models and connections are sampled by `update`, before a scrape and once a second where
    processes share a folder: writing a file there takes longer than much of what a request does.
    """

    def __init__(self, build: str) -> None:
        self.registry = CollectorRegistry()
        own: CollectorRegistry | None = None
        if shared is None:
            own = self.registry
            describe_process(own, build)
        else:
            self.registry.register(_Build(build))
            folder, _ = shared
            self.registry.register(_SharedProcesses(folder))
            MultiProcessCollector(self.registry, str(folder))  # type: ignore[no-untyped-call]
        self.requests = Histogram(
            "rankwright_http_request_seconds",
            "Duration of a request, by method, route and status.",
            ["method", "route", "status"],
            buckets=SECONDS,
            registry=own,
        )
        self._series = {
            key: self.requests.labels(*key) for key in ([] if shared is None else _stored(*shared))
        }
        self._in_use = Gauge(
            "rankwright_permits_in_use",
            "Permits in use, by limit: requests, anonymous_requests, uploads, waiters, computations, tables.",
            ["limit"],
            multiprocess_mode="sum",
            registry=own,
        )
        self._refused = Counter(
            "rankwright_permits_refused",
            "Permits that were refused because the limit was reached, by limit.",
            ["limit"],
            registry=own,
        )
        self._lookups = Counter(
            "rankwright_model_cache_lookups",
            "Look-ups of models to score with, by result: hit (in memory) or miss (loaded from the blob store).",
            ["result"],
            registry=own,
        )
        self._pool = Gauge(
            "rankwright_database_pool_in_use",
            "Database connections that transactions of the API are using.",
            multiprocess_mode="sum",
            registry=own,
        )
        self._updates: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self.body_bytes = Gauge(
            "rankwright_body_bytes",
            "Bytes in memory of request bodies, and of responses that wait for their readers.",
            multiprocess_mode="sum",
            registry=own,
        )
        self.body_bytes.set(0)
        self._cut_off = Counter(
            "rankwright_answers_cut_off",
            "Responses whose connection was closed before they were sent, by reason: too_slow (slow reader), "
            "too_many_bytes (memory budget), too_many_requests.",
            ["reason"],
            registry=own,
        )
        self.without_database = Counter(
            "rankwright_answers_without_database",
            "Scores from memory while the database was down.",
            registry=own,
        )

        self.decisions_bytes = Gauge(
            "rankwright_decisions_log_bytes",
            "Bytes of the files of decisions that wait to be stored.",
            multiprocess_mode="sum",
            registry=own,
        )
        self.decisions_bytes.set(0)
        self.decisions_lost = Counter(
            "rankwright_decisions_lost",
            "Decisions that were not recorded, because the log was full or not writable.",
            registry=own,
        )

    def watch_permits(self, limit: str, usage: Callable[[], tuple[int, int]]) -> None:
        """`usage` returns the permits in use, and how many were ever refused."""
        in_use, refused = self._in_use.labels(limit), _Total(self._refused.labels(limit))

        def update() -> None:
            n_taken, n_refused = usage()
            in_use.set(n_taken)
            refused.follow(n_refused)

        self._updates.append(update)
        update()  # a predecessor may have been killed with permits in use

    def watch_models(self, lookups: Callable[[], tuple[int, int]]) -> None:
        """`lookups` returns how many look-ups hit, and missed."""
        hits, misses = (_Total(self._lookups.labels(result)) for result in ("hit", "miss"))

        def update() -> None:
            n_hits, n_misses = lookups()
            hits.follow(n_hits)
            misses.follow(n_misses)

        self._updates.append(update)

    def watch_pool(self, in_use: Callable[[], int]) -> None:
        """Show the database connections in use, which `in_use` returns."""
        self._updates.append(lambda: self._pool.set(in_use()))

    def update(self) -> None:
        with self._lock:
            for update in self._updates:
                update()

    def note_cut_off(self, reason: str) -> None:
        """A connection was closed before the response was complete."""
        self._cut_off.labels(reason).inc()

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """There are at most MAX_SERIES series, by route template."""
        series = self._series.get((method, route, status))
        if series is None:
            series = self._find_series(method, route, status)
        series.observe(seconds)

    def _find_series(self, method: str, route: str, status: int) -> Histogram:
        """Use a common series if there are too many."""
        method = method if method in METHODS else OTHER
        route = UNROUTED if status == HTTPStatus.METHOD_NOT_ALLOWED else route
        status = status if status in STATUSES else 0
        key = method, route, status
        if key not in self._series:
            if len(self._series) >= MAX_SERIES - len(STATUSES):
                key = OTHER, OTHER, status
            self._series[key] = self.requests.labels(*key)
        return self._series[key]


class WorkerMetrics:
    """Metrics of a worker: how long jobs waited, the time to claim one, the time of an attempt, and its outcome."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.claims = Histogram(
            "rankwright_claim_seconds",
            "Duration of the transaction that claims a job.",
            buckets=SECONDS,
            registry=registry,
        )
        self.waits = Histogram(
            "rankwright_queue_wait_seconds",
            "Time from when a job was due until a worker claimed it, by kind; first attempts, without parts of jobs.",
            ["kind"],
            buckets=WAIT_SECONDS,
            registry=registry,
        )
        self.fits = Histogram(
            "rankwright_fit_seconds",
            "Duration of an attempt at a job, from its claim to its end in the database, by kind.",
            ["kind"],
            buckets=FIT_SECONDS,
            registry=registry,
        )
        self.attempts = Counter(
            "rankwright_attempts",
            "Attempts at jobs since the start of the worker, by kind and by the state of the job afterwards.",
            ["kind", "outcome"],
            registry=registry,
        )
