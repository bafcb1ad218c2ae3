"""Compiled functions: each declares its types where it is defined, and is loaded when it is first called.

A process needs few of them. Numba by itself would load each from its cache as its module is imported, which takes as
long as all the rest of the import; or, where there is no cache yet, compile it.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]  # it carries no types
import numba

from .cache import KernelCache
from .folders import CPU, CPU_LEVELS, levels_that_fit
from .numba_internals import attach, compiling


def use_cpu_level(levels: str, *, must_run: bool = True) -> str | None:
    """Make numba compile for the first of these processor levels that this machine supports; return the level.

    ValueError: a name is none of the levels. Returns None if none fits, so that kernels are compiled for this very
    processor.

    levels: names of `CPU_LEVELS` with commas between them.
    must_run: whether this processor must be able to run the level. An image is built for others than its builder's.
    """
    features = llvmlite.binding.get_host_cpu_features()
    fitting = levels_that_fit(
        levels, (lambda name: features.get(name, False)) if must_run else None
    )
    if not fitting:
        return None
    level = CPU_LEVELS[fitting[0]]
    numba.config.CPU_NAME = level.model
    numba.config.CPU_FEATURES = ",".join(f"-{feature}" for feature in level.without)
    return fitting[0]


class Kernel:
    """A declared kernel: the function, its signatures, and whether its machine code is loaded.

    name: str; the function's module and name.
    signatures: the types that it is compiled for.
    is_loaded: bool; whether a call runs machine code at once.
    """

    def __init__(self, dispatcher: Any, signatures: tuple[Any, ...], cache: KernelCache) -> None:
        self.name = cache.name
        self.signatures = signatures
        self.is_loaded = False
        self._dispatcher = dispatcher
        self._cache = cache
        self._compile = attach(dispatcher, cache, self.load)

    @property
    def files(self) -> list[str]:
        return [self._cache.file_name(s, self._dispatcher.targetctx) for s in self.signatures]

    @property
    def is_cached(self) -> bool:
        """Return True if the cache has the kernel: loading takes milliseconds, compiling about a second."""
        return all(self._cache.has(s, self._dispatcher.targetctx) for s in self.signatures)

    @property
    def is_compiled_elsewhere(self) -> bool:
        """Return True if another process is compiling the kernel now: `load` would wait for it."""
        return any(self._cache.is_locked(s, self._dispatcher.targetctx) for s in self.signatures)

    def load(self) -> None:
        with compiling(), _loading():
            if self.is_loaded:
                return
            try:
                for signature in self.signatures:
                    self._compile(signature)
            finally:
                self._cache.unlock()
            self._dispatcher.disable_compile()
            self.is_loaded = True


# Options of `numba.njit` for functions that only kernels call, and that declare no signature. They have no code to read
# arguments from Python objects, which for a record of many arrays would be larger than the function itself.
INNER: dict[str, bool] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

KERNELS: list[Kernel] = []  # all kernels declared by the modules imported so far

Listener = Callable[[str | None], None]
_listeners: list[Listener] = []
_depth = 0  # of loads within loads: a kernel that calls another loads it
_compiled: list[str] = []  # names of the kernels that the outermost load had to compile


def kernel(
    *signatures: Any, inner: bool = False, by_address: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function to be compiled for these types and no others, outside of the interpreter's lock, and cached.

    Called with arguments of other types it raises TypeError: nothing is compiled behind the caller's back.

    signatures: numba signature; types of arguments and result; one or more.
    inner: whether only other kernels call it, by its name. Python then cannot call it, and it compiles in less time:
        without code to read arguments from Python objects, and with machine code only as a part of its callers.
    by_address: whether only other kernels call it, by its address (`address_of_kernel`). Python cannot call it either.
    options: object; more options of `numba.njit`.
    """

    def declare(function: Callable[..., Any]) -> Any:
        all_options = {
            "nogil": True,
            "no_cfunc_wrapper": True,
            "no_cpython_wrapper": inner or by_address,
            **options,
        }
        dispatcher = numba.njit(**all_options)(function)
        if numba.config.DISABLE_JIT:
            return dispatcher  # the Python function itself, for debugging
        cache = KernelCache(
            dispatcher.py_func, all_options, is_only_linked=inner, about_to_compile=_begin
        )
        KERNELS.append(Kernel(dispatcher, signatures, cache))
        return dispatcher

    return declare


@contextmanager
def when_compiling(listener: Listener) -> Iterator[None]:
    """Report compilations, which take a second or some each, to `listener`.

    It is called with a kernel's name before the kernel is compiled, and with None when all kernels that a call needs
    are loaded; in the thread that compiles. Kernels that are loaded from the cache are not reported.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _begin(name: str) -> None:
    _compiled.append(name)
    for listener in list(_listeners):
        listener(name)


@contextmanager
def _loading() -> Iterator[None]:
    """Load a kernel: the outermost context reports the end. The garbage collector is off.

    A compiler makes many objects that stay, and the collector would take a tenth of its time to go through them.
    """
    global _depth  # noqa: PLW0603 - under numba's lock
    gc_was_on = gc.isenabled()
    gc.disable()
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if gc_was_on:
            gc.enable()
        if _depth == 0 and _compiled:
            _compiled.clear()
            for listener in list(_listeners):
                listener(None)


if levels := os.environ.get(CPU):
    use_cpu_level(levels)
