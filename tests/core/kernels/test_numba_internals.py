"""The private parts of numba in `core.kernels.numba_internals`. A failure names the part that changed, and its purpose.

Each test tries one part with nothing of ours around it, and says in its message what to look for in the new numba.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core import caching
from numba.core.compiler import DEFAULT_FLAGS
from numba.core.compiler_lock import global_compiler_lock
from numba.core.targetconfig import ConfigStack
from numba.extending import intrinsic
from packaging.requirements import Requirement
from packaging.version import Version

import core
from core.kernels.numba_internals import (
    Cache,
    LazyLibrary,
    attach,
    compiling,
    from_bytes,
    processor_of,
    python_function,
    to_bytes,
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


def test_a_compiled_function_that_was_written_and_read_is_called_without_a_compilation() -> None:
    first, second = numba.njit(half), numba.njit(half)
    written = Recorder()
    attach(first, written, lambda: None)(SIGNATURE)
    target = second.targetctx
    target.refresh()
    compiled = written.compiled
    assert (tuple(compiled.lifted), compiled.library.has_dynamic_globals) == ((), False), (
        f"{NEW}`CompileResult.lifted` and `library.has_dynamic_globals` no longer say what cannot be kept. See "
        "`CompileResultCacheImpl.check_cachable` in numba/core/caching.py."
    )
    try:
        read = from_bytes(to_bytes(compiled), target)
    except (AttributeError, TypeError) as error:
        raise AssertionError(
            f"{NEW}`CompileResult._reduce` and `_rebuild` do not write and read it ({error}). See "
            "`CompileResultCacheImpl.reduce` and `rebuild` in numba/core/caching.py."
        ) from error
    again = Recorder(read)
    attach(second, again, lambda: None)(SIGNATURE)
    assert [name for name, *_ in again.asked] == ["load"], (
        f"{NEW}what the cache returns is compiled"
    )
    assert second(3.0) == 1.5


@pytest.mark.parametrize("from_python", [True, False], ids=["from Python", "from a kernel"])
def test_a_dispatcher_without_machine_code_asks_for_it_by_names_that_can_be_replaced(
    from_python: bool,
) -> None:
    inner = numba.njit(half)
    asked: list[bool] = []

    def load() -> None:
        asked.append(True)
        compile_one(SIGNATURE)

    compile_one = attach(inner, Recorder(), load)
    outer = inner if from_python else numba.njit(lambda x: inner(x) + 0.0)
    assert outer(3.0) == 1.5
    asker = "`_compile_for_args`, from C," if from_python else "`compile`, in `get_call_template`,"
    assert asked, (
        f"{NEW}a call of types that were not compiled no longer asks {asker} of the dispatcher. See "
        "numba/core/dispatcher.py and _dispatcher.cpp; without it kernels are not loaded when they are first called."
    )


def test_options_of_one_compilation_do_not_reach_another_inside_it() -> None:
    with global_compiler_lock, ConfigStack().enter(DEFAULT_FLAGS):
        flags = ConfigStack().top()
    assert flags is DEFAULT_FLAGS, (
        f"{NEW}`ConfigStack().enter(DEFAULT_FLAGS)` does not put the default options on top. See "
        "numba/core/targetconfig.py; without it a kernel's bits depend on who loads it."
    )


def test_a_function_that_only_others_call_has_no_machine_code_until_it_is_kept() -> None:
    inner = numba.njit(half, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    target = inner.targetctx
    with compiling():
        outer = numba.njit(lambda x: inner(x) + 0.0)
        outer.compile(SIGNATURE)
        (within,), (whole,) = inner.overloads.values(), outer.overloads.values()
        assert isinstance(within.library, LazyLibrary), (
            f"{NEW}`codegen()._library_class` is no longer the class of its libraries. See `Codegen.create_library` in "
            "numba/core/codegen.py; without ours a large kernel takes twice as long."
        )
        has_code = [each.library.has_machine_code for each in (within, whole)]
        again = numba.njit(half, no_cpython_wrapper=True, no_cfunc_wrapper=True)
        linked = from_bytes(to_bytes(within, is_only_linked=True), target)
        attach(again, Recorder(linked), lambda: None)(SIGNATURE)
        calling = numba.njit(lambda x: again(x) + 0.0)
        calling.compile(SIGNATURE)
    assert (has_code, outer(3.0), calling(3.0)) == ([False, True], 1.5, 1.5), (
        f"{NEW}`CPUContext.get_executable` does not ask `library.get_pointer_to_function` for Python's wrapper, or "
        "a library makes machine code elsewhere than in `_finalize_final_module`. See numba/core/cpu.py, codegen.py."
    )
    (kept,) = again.overloads.values()
    assert kept.library.get_pointer_to_function(kept.fndesc.llvm_func_name), "`address_of_kernel`"
    assert "set_env" not in vars(target.codegen()), "others' functions get our libraries"
    assert numba.njit(half)(3.0) == 1.5


def test_the_processor_is_part_of_what_is_known_of_a_target() -> None:
    dispatcher = numba.njit(half)
    triple, processor, features = processor_of(dispatcher.targetctx)
    assert all(isinstance(part, str) for part in (triple, processor, features)), (
        f"{NEW}`codegen().magic_tuple()` no longer names triple, processor and features. Without them machine code "
        "of another processor would be loaded."
    )


def test_the_python_behind_a_dispatcher_and_an_intrinsic_is_found() -> None:
    @intrinsic
    def nothing(typing_context: Any) -> Any:
        return None

    found = python_function(numba.njit(half)), getattr(python_function(nothing), "__name__", None)
    assert found == (half, "nothing"), (
        f"{NEW}`Dispatcher.py_func` or `_Intrinsic._defn` is gone. Without them a kernel's stamp misses the functions "
        "that it calls, and stale machine code is loaded."
    )


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
