"""What an idle fit process imports, so that the first job need not wait for it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from app.platform.preload import defer_scipy_stats

# For an upload, and for a training job of the default algorithm with its baselines. No kernels: a job loads those that
# it calls in some milliseconds each, and all together would take as much memory as the libraries.
_MODULES = (
    "app.jobs.handlers",
    "app.training.tasks",
    "app.datasets.tasks",
    "core.svm.baselines",
    "core.svm.estimators",
    "core.boosting.rankboost",
    "core.metrics.intervals",
)


def warm_up(job_waits: Callable[[], bool]) -> None:
    """Import them one by one, until `job_waits` says that a real job has come."""
    defer_scipy_stats()
    for name in _MODULES:
        if job_waits():
            return
        import_module(name)
