"""Import in advance the modules of `core` that submission and scoring need.

A process that only answers from the database does not need it: it is a third as large, and starts in half the time.
The API imports this in the background once somebody may use it; a fit process does so with its first job.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import types
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from core import kernels
from core.registry import ALGORITHMS


class _Deferred(types.ModuleType):
    """A placeholder for a module, until one of its attributes is needed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in {"__path__", "__all__"}:
            raise AttributeError(name)  # attributes that the import system itself reads
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


class _WithoutPandas(PathFinder):
    """A finder of installed modules that does not find pandas."""

    @classmethod
    def find_spec(
        cls,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        return None if fullname == "pandas" else super().find_spec(fullname, path, target)


def import_lean() -> None:
    """Import scikit-learn without `scipy.stats` and pandas, which it would import although nothing here needs them.

    `scipy.stats` (40 MB, a third of a second) is imported at its first use. If pandas (60 MB, half a second) is
    installed, this process no longer finds it: pyarrow would import it, too. Nothing is changed in a process that has
    already imported scikit-learn or pandas.
    """
    if "sklearn" in sys.modules:
        return
    name = "scipy.stats"
    if name not in sys.modules:
        import scipy

        module = _Deferred(name)
        module.__spec__ = importlib.util.find_spec(name)
        sys.modules[name] = module
        scipy.stats = module
    sys.meta_path[:] = [
        _WithoutPandas if finder is PathFinder else finder for finder in sys.meta_path
    ]
    import_module("sklearn.base")


MODULES = (
    "app.training.result",
    "app.jobs.execution",
    "app.training.fitting",
    "app.ingest.build",
    "app.ingest.pairs",
    "app.evaluation.metrics",
    "app.scoring.table_rows",
    "app.training.tasks",
    "core.artifact",
    "core.bounds.game",
    "core.bounds.generalisation",
    "core.base.checkpoint",
    "core.explain.dependence",
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


_importing = threading.Lock()


def preload() -> None:
    """Import everything. Only the first call imports; other calls wait for its end.

    If two threads import modules that import each other, Python may show one of them a half-loaded module.
    """
    with _importing:
        import_all()


@cache
def import_all() -> None:
    import_lean()
    for algorithm in ALGORITHMS:  # first the modules that check a submission
        ALGORITHMS[algorithm]
    for name in MODULES:
        import_module(name)
    kernels.load_registries()
