"""The private parts of numba in `core.kernels.numba_internals`. A failure names the part that changed, and its purpose.

Each test tries one part with nothing of ours around it, and says in its message what to look for in the new numba.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numba
from numba.core import caching
from packaging.requirements import Requirement
from packaging.version import Version

import core
from core.kernels.numba_internals import (
    Cache,
    attach,
)

SIGNATURE = numba.float64(numba.float64)
NEW = f"numba {numba.__version__} has changed: "


def half(x: Any) -> Any:
    return x / 2.0


def test_no_version_of_numba_is_installed_that_was_not_tried() -> None:
    project = tomllib.loads((Path(core.__file__).parents[1] / "pyproject.toml").read_text())
    given = [Requirement(each) for each in project["project"]["dependencies"]]
    allowed = next(each.specifier for each in given if each.name == "numba")
    tried = Version(numba.__version__)
    assert tried in allowed
    assert f"{tried.major}.{tried.minor + 1}.0" not in allowed
    assert f"{tried.major + 1}.0.0" not in allowed


class Recorder:
    """A cache that holds nothing, or one compiled function, and notes what it is asked."""

    def __init__(self, compiled: Any = None) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.compiled = compiled

    def load_overload(self, signature: Any, target: Any) -> Any:
        self.asked.append(("load", signature, target))
        return self.compiled

    def save_overload(self, signature: Any, compiled: Any) -> None:
        self.asked.append(("save", signature))
        self.compiled = compiled


def test_a_cache_has_the_methods_that_numbas_own_has() -> None:
    kinds = caching.FunctionCache.__mro__
    of_numba = {
        name
        for kind in kinds
        for name, method in vars(kind).items()
        if getattr(method, "__isabstractmethod__", False)
    }
    asked_elsewhere = {
        "cache_path",
        "enable",
        "disable",
        "flush",
    }  # of `stats`, `cache=True`, `recompile`
    ours = {name for name in vars(Cache) if name.endswith("_overload")}
    assert of_numba == ours | asked_elsewhere, (
        f"{NEW}its caches have other methods. See in numba/core/caching.py and dispatcher.py what `_cache` is asked "
        "for, and give core.kernels.cache.KernelCache the same."
    )


def test_a_dispatcher_asks_its_cache_before_and_after_a_compilation() -> None:
    dispatcher = numba.njit(half)
    cache = Recorder()
    attach(dispatcher, cache, lambda: None)(SIGNATURE)
    assert cache.asked == [("load", SIGNATURE, dispatcher.targetctx), ("save", SIGNATURE)], (
        f"{NEW}`Dispatcher.compile` no longer asks `_cache.load_overload(signature, targetctx)` first and "
        "`_cache.save_overload(signature, result)` last. See numba/core/dispatcher.py; without it nothing is kept."
    )
    assert dispatcher(3.0) == 1.5


def test_no_other_module_of_ours_reaches_into_numba() -> None:
    """But for `cgutils`, by which intrinsics write code, as numba's manual shows."""
    root = Path(core.__file__).parents[1]
    inside = re.compile(
        r"^ *(from numba\.core(?! import cgutils$)|import numba\.core)", re.MULTILINE
    )
    reaching = [
        path.name
        for folder in ("core", "app", "workers")
        for path in (root / folder).rglob("*.py")
        if inside.search(path.read_text(encoding="utf-8"))
    ]
    assert reaching == ["numba_internals.py"]
