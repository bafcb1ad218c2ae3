"""Imports the science (numba, scikit-learn, pyarrow, and what uses them) in one step, before it is needed.

A process that only responds from the database does not need it: without it, it takes a third of the memory, and starts
in half the time. The API calls `preload` in a background thread after the first use of a key, or at its start if there
are models to score with. A fit process calls it with its first job.
"""

from __future__ import annotations

import sys
import threading
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_importing = threading.Lock()


class _NoPandas(MetaPathFinder):
    """Makes every import of pandas fail, as if it were not installed."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("the service does not use pandas", name=fullname)
        return None


def import_sklearn() -> None:
    """Import scikit-learn without `scipy.stats` (40 MB) and pandas (60 MB), which it does not need here.

    pyarrow would import pandas later; this process therefore blocks its import. `scipy.stats` is imported when it is
    first used. If scikit-learn is already imported, nothing changes.
    """
    if "sklearn" in sys.modules:
        return
    sys.meta_path.insert(0, _NoPandas())
    stand_in = ModuleType("scipy.stats")
    sys.modules.setdefault("scipy.stats", stand_in)
    try:
        import sklearn.base  # noqa: F401
    finally:
        if sys.modules["scipy.stats"] is stand_in:
            del sys.modules["scipy.stats"]


def preload() -> None:
    """Import all scientific libraries once; other calls wait.

    If two threads import modules that import each other, Python may show one of them a half-loaded module.
    """
    with _importing:
        import_sklearn()
        import app.science  # noqa: F401
