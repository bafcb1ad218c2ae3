"""What submission and scoring need of the science, imported before it is asked for.

A process that only answers for the database does without: it is a third as large, and starts in half the time. So the
API imports this in the background, once there is somebody who will want it; a fit process does with its first job.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from app.platform.deferred import defer_scipy_stats

_MODULES = (
    "app.training.result",
    "app.jobs.handlers",
    "app.training.fitting",
    "app.ingest.append",
    "app.ingest.build",
    "app.ingest.pairs",
    "app.evaluation.metrics",
    "app.scoring.fastpath_query",
    "app.scoring.fastpath",
    "app.scoring.table_rows",
    "app.training.tasks",
    "core.artifact",
    "core.bounds.game",
    "core.bounds.generalisation",
    "core.checkpoint",
    "core.explain",
    "core.metrics.comparison",
    "core.metrics.intervals",
    "core.metrics.margins",
    "core.selection",
    "narwhals.stable.v2",
    "pyarrow.csv",
    "pyarrow.parquet",
    "safetensors.numpy",
    "threadpoolctl",
)


@cache
def preload() -> None:
    """Import it; all but the first call do nothing."""
    defer_scipy_stats()
    from core.registry import ALGORITHMS

    for algorithm in ALGORITHMS:  # first what a submission is checked against
        ALGORITHMS[algorithm]
    for name in _MODULES:
        import_module(name)
