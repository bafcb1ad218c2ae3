"""Metrics of a process for Prometheus; of all API processes if several share a port."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from app import __version__

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
FIT_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 24 * 3600.0)

# They would be a second, useless series for each metric.
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Build(Collector):
    """The version and the build of the code."""

    def __init__(self, build: str) -> None:
        self._build = build

    def collect(self) -> Iterator[Metric]:
        """Yield it."""
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
_FILE_BYTES = {"histogram": 1 << 21, "gauge_sum": 1 << 16}  # of some 500 series of requests


def prepare_shared(folder: Path, processes: int) -> None:
    """Make the files in which API processes count. They have all their bytes from the start: a process that writes
    to a part of a file for which a full disk has no block is killed.
    """
    for number in range(1, processes + 1):
        for kind, size in _FILE_BYTES.items():
            (folder / f"{kind}_{number}.db").write_bytes(bytes(size))


def share(folder: Path, number: int) -> None:
    """Count in the files of API process `number`, from now on. What its predecessor counted stays counted."""
    os.environ[_FOLDER] = str(folder)
    values.ValueClass = values.MultiProcessValue(lambda: number)  # type: ignore[no-untyped-call]
    (folder / f"{number}.pid").write_text(str(os.getpid()))


class _SharedProcesses(Collector):
    """CPU time, memory and open files of each API process, with its number as label `process`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        found: dict[str, Metric] = {}
        for path in sorted(self._folder.glob("*.pid")):
            pid = path.read_text()
            for family in ProcessCollector(pid=lambda: pid, registry=None).collect():  # noqa: B023 - asked at once
                metric = Metric(family.name, family.documentation, family.type)
                metric = found.setdefault(family.name, metric)
                for sample in family.samples:
                    metric.add_sample(sample.name, {"process": path.stem}, sample.value)
        yield from found.values()


class ApiMetrics:
    """Metrics of an API process, or of all that count in one folder: durations of requests, and open uploads."""

    def __init__(self, build: str) -> None:
        self.registry = CollectorRegistry()
        folder = os.environ.get(_FOLDER)
        own: CollectorRegistry | None = None
        if folder is None:
            own = self.registry
            describe_process(own, build)
        else:
            self.registry.register(_Build(build))
            self.registry.register(_SharedProcesses(Path(folder)))
            MultiProcessCollector(self.registry, folder)  # type: ignore[no-untyped-call]
        self.requests = Histogram(
            "rankwright_http_request_seconds",
            "Duration of a request in seconds.",
            ["method", "route", "status"],
            buckets=SECONDS,
            registry=own,
        )
        self.uploads = Gauge(
            "rankwright_uploads",
            "Uploads that are being received.",
            multiprocess_mode="sum",
            registry=own,
        )
        self.uploads.set(0)  # a predecessor may have been killed during some


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
