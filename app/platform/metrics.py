"""Metrics of a process for Prometheus."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from app import __version__

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
FIT_SECONDS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 4 * 3600.0, 24 * 3600.0)

# They would be a second, useless series for each metric.
disable_created_metrics()  # type: ignore[no-untyped-call]


def describe_process(registry: CollectorRegistry, build: str) -> None:
    """Add metrics to a registry: version, build, and this process's CPU time, memory and open files."""
    info = Gauge(
        "rankwright_build_info",
        "1, with the version and the build of the process's code.",
        ["version", "build"],
        registry=registry,
    )
    info.labels(__version__, build).set(1)
    ProcessCollector(registry=registry)


def request_histogram(registry: CollectorRegistry) -> Histogram:
    """Return the histogram of the time to answer a request, in an API process."""
    return Histogram(
        "rankwright_http_request_seconds",
        "Duration of a request in seconds.",
        ["method", "route", "status"],
        buckets=SECONDS,
        registry=registry,
    )


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
