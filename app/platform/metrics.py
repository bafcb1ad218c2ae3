"""Prometheus metrics: of one process, or of all API processes that share a port."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
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

# The creation times would be a second, useless series for each metric.
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Build(Collector):
    """The metric with the version and the build of the code."""

    def __init__(self, build: str) -> None:
        self._build = build

    def collect(self) -> Iterator[Metric]:
        """Yield the metric."""
        info = GaugeMetricFamily(
            "rankwright_build_info",
            "1, with the version and the build of the process's code.",
            labels=["version", "build"],
        )
        info.add_metric([__version__, self._build], 1)
        yield info


def describe_process(registry: CollectorRegistry, build: str) -> None:
    """Add metrics to a registry: version, build, and this process's CPU time, memory and open files."""
    registry.register(_Build(build))
    ProcessCollector(registry=registry)


_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # the library's name
# A series of requests has at most 16 values of 384 bytes: routes are shorter than 150 characters.
_FILE_BYTES = {"histogram": MAX_SERIES * 16 * 384, "gauge_sum": 4096, "counter": 4096}
SHARED_BYTES = sum(_FILE_BYTES.values())  # bytes of each process's file
shared: tuple[Path, int] | None = None  # the folder, and the number of this process


def prepare_shared(folder: Path, processes: int) -> None:
    """Create the files with the counters of API processes, all 0. Raises OSError if there is no space.

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
    """Use the counter file of API process `number` from now on, continuing the counts of its predecessor.

    A folder that was removed in the meantime is created again.
    """
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
    """Store the pid of this process as that of API process `number`, which now responds."""
    path = folder / f"{number}.new"
    path.write_text(str(os.getpid()))
    path.replace(folder / f"{number}.pid")


def read_pids(folder: Path) -> dict[str, int]:
    """Return the pids of the API processes that have responded since the start, by number."""
    found = {}
    for path in sorted(folder.glob("*.pid")):
        # the file was removed meanwhile, or does not contain a number
        with contextlib.suppress(OSError, ValueError):
            found[path.stem] = int(path.read_text())
    return found


def _is_sibling(pid: int) -> bool:
    """Return True if process `pid` is a child of this process's parent; another program may have the same pid now."""
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
        """Yield the metrics."""
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
    """Return the (method, route, status) of the time series in the file of API process `number`."""
    path = folder / f"histogram_{number}.db"
    found = set()
    for key, *_ in MmapedDict.read_all_values_from_file(path):  # type: ignore[no-untyped-call]
        labels = json.loads(key)[2]
        found.add((labels["method"], labels["route"], int(labels["status"])))
    return found


class ApiMetrics:
    """Metrics of one API process, or of all processes that share a folder: durations of requests, open uploads, and
    responses during an outage of the database.
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
            "Duration of a request in seconds.",
            ["method", "route", "status"],
            buckets=SECONDS,
            registry=own,
        )
        self._series = {
            key: self.requests.labels(*key) for key in ([] if shared is None else _stored(*shared))
        }
        self.uploads = Gauge(
            "rankwright_uploads",
            "Uploads that are being received.",
            multiprocess_mode="sum",
            registry=own,
        )
        self.uploads.set(0)  # a predecessor may have been killed during open uploads
        self.body_bytes = Gauge(
            "rankwright_body_bytes",
            "Bytes of request bodies and of responses that wait for their readers, held in memory.",
            multiprocess_mode="sum",
            registry=own,
        )
        self.body_bytes.set(0)
        self._cut_off = Counter(
            "rankwright_answers_cut_off",
            "Answers whose connection was ended before they were sent: the caller read too slowly, or what waited for "
            "the caller did not fit the memory budget or the limit of requests.",
            ["reason"],
            registry=own,
        )
        self.without_database = Counter(
            "rankwright_answers_without_database",
            "Answers that were given from memory while the database was away.",
            registry=own,
        )

        self.decisions_bytes = Gauge(
            "rankwright_decisions_log_bytes",
            "Bytes of the files with decisions that are not stored yet.",
            multiprocess_mode="sum",
            registry=own,
        )
        self.decisions_bytes.set(0)
        self.decisions_lost = Counter(
            "rankwright_decisions_lost",
            "Decisions that were not recorded, because the log of the process was full or could not be written.",
            registry=own,
        )

    def note_cut_off(self, reason: str) -> None:
        """Count a response whose connection was closed before it was sent completely."""
        self._cut_off.labels(reason).inc()

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record a request's duration under its route template. There are at most MAX_SERIES time series."""
        series = self._series.get((method, route, status))
        if series is None:
            series = self._find_series(method, route, status)
        series.observe(seconds)

    def _find_series(self, method: str, route: str, status: int) -> Histogram:
        """Return the time series of a request; a common one if there are too many."""
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
    """Metrics of a worker: the time to claim a job, the time of an attempt, and its outcome."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.claims = Histogram(
            "rankwright_claim_seconds",
            "Duration of a claim of a job from the queue, in seconds.",
            buckets=SECONDS,
            registry=registry,
        )
        self.fits = Histogram(
            "rankwright_fit_seconds",
            "Duration of an attempt at a job, from its claim to its end in the database, in seconds.",
            ["kind"],
            buckets=FIT_SECONDS,
            registry=registry,
        )
        self.attempts = Counter(
            "rankwright_attempts",
            "Attempts at jobs since the start of this process, by the state of the job afterwards.",
            ["kind", "outcome"],
            registry=registry,
        )
