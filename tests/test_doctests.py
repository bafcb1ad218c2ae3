"""The examples in docstrings: they run as they are printed, and every public name has one."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import app
import core

# Packages whose every public function and class has an example. The others are the inside of these: part of what they
# export runs in compiled code alone.
PACKAGES = (
    "core",
    "core.boosting",
    "core.bounds",
    "core.explain",
    "core.martirank",
    "core.metrics",
    "core.monitoring",
    "core.probability",
    "core.selection",
    "core.linear",
    "core.treerank",
)

EXAMPLES = doctest.DocTestFinder(exclude_empty=True)


def has_examples(module: pkgutil.ModuleInfo) -> bool:
    """Whether the text of a module has an example, which takes no import."""
    spec = importlib.util.find_spec(module.name)
    assert spec is not None
    assert spec.origin is not None
    return ">>> " in Path(spec.origin).read_text(encoding="utf-8")


MODULES = sorted(
    module.name
    for package in (core, app)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if has_examples(module)
)


def examples_of(thing: Any, name: str) -> list[doctest.DocTest]:
    return [test for test in EXAMPLES.find(thing, name) if test.examples]


def is_result(value: type) -> bool:
    """A tuple, or a frozen dataclass that takes its fields unchecked: a reader gets one, and does not make it."""
    params: Any = getattr(value, "__dataclass_params__", None)
    frozen = params is not None and bool(params.frozen)
    return issubclass(value, tuple) or (frozen and not hasattr(value, "__post_init__"))


def public(package: ModuleType) -> dict[str, Any]:
    """Functions and classes of a package's `__all__` that a reader calls: no results, errors or type aliases."""
    named = {name: getattr(package, name) for name in package.__all__}
    return {
        name: value
        for name, value in named.items()
        if inspect.isroutine(value)
        or (
            isinstance(value, type)
            and not issubclass(value, BaseException)
            and not is_result(value)
        )
    }


@pytest.mark.parametrize("name", ["core", *MODULES])
def test_the_examples_of_a_module_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0, "see the output above"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_function_and_class_has_an_example(package: str) -> None:
    named = public(importlib.import_module(package))
    assert named
    assert [name for name, value in named.items() if not examples_of(value, name)] == []
