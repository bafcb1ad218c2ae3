"""What submission and scoring need of the science, imported before it is asked for.

A process that only answers for the database does without: it is a third as large, and starts in half the time. So the
API imports this in the background, once there is somebody who will want it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

_MODULES = (
    "app.services.fitting",
    "app.services.ingest.convert",
    "app.services.margins",
    "app.services.plain_query",
    "app.services.plain_rows",
    "app.services.score_tables",
    "core.artifact",
    "core.bounds.report",
    "core.interpretation",
    "core.metrics.summary",
    "core.selection",
    "pyarrow.parquet",
)


@cache
def preload() -> None:
    """Import it; all but the first call do nothing."""
    from core.registry import ALGORITHMS

    for name in _MODULES:
        import_module(name)
    for algorithm in ALGORITHMS:
        ALGORITHMS[algorithm]
