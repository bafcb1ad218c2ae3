"""What submission and scoring need of the science, imported before it is asked for.

A process that only answers for the database does without: it is a third as large, and starts in half the time. So the
API imports this in the background, once there is somebody who will want it; a fit process does with its first job.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from app.infra.deferred import defer_scipy_stats

_MODULES = (
    "app.services.assembly",
    "app.services.execution",
    "app.services.fitting",
    "app.services.ingest.append",
    "app.services.ingest.build",
    "app.services.ingest.pairs",
    "app.services.judging.measuring",
    "app.services.plain_query",
    "app.services.plain_rows",
    "app.services.score_tables",
    "app.services.training",
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
