"""A library that is imported when something of it is used, not when another library names it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from typing import Any


class _Deferred(types.ModuleType):
    """Stands in for a module until an attribute of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in {"__path__", "__all__"}:
            raise AttributeError(name)  # what the import system itself looks at
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def defer_scipy_stats() -> None:
    """Have `scipy.stats` imported at its first use.

    scikit-learn imports it with its first base class, for one function that nothing here calls. It takes 40 MB and a
    third of a second.
    """
    name = "scipy.stats"
    if name in sys.modules:
        return
    import scipy

    module = _Deferred(name)
    module.__spec__ = importlib.util.find_spec(name)
    sys.modules[name] = module
    scipy.stats = module
