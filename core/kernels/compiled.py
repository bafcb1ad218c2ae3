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
    """Have numba compile for the first of these levels that this machine can run, in place of its own processor.

    ValueError: for a name that is none of the levels. Returns str or None: the level; None where none fits: then
    kernels are compiled for this very processor.

    Parameters
    ----------
    levels : str
        Names of `CPU_LEVELS` with commas between them.
    must_run : bool
        Whether this processor must be able to run the level. An image is built for others than its builder's.
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
    """What is declared of a compiled function, and whether it is loaded.

    Attributes
    ----------
    name : str
        Its module and its own name.
    signatures : tuple of numba signature
        The types it is compiled for.
    is_loaded : bool
        Whether a call runs machine code at once.
    """

    def __init__(self, dispatcher: Any, signatures: tuple[Any, ...], cache: KernelCache) -> None:
        self.name = cache.name
        self.signatures = signatures
        self.is_loaded = False
        self._dispatcher = dispatcher
        self._cache = cache
        self._compile = attach(dispatcher, cache, self.load)

    @property
    def is_cached(self) -> bool:
        """Whether loading it takes milliseconds, in place of the second or so of a compilation."""
        return all(self._cache.has(s, self._dispatcher.targetctx) for s in self.signatures)

    @property
    def is_compiled_elsewhere(self) -> bool:
        """Whether another process compiles it just now: to load it would wait for that one."""
        return any(self._cache.is_locked(s, self._dispatcher.targetctx) for s in self.signatures)

    def load(self) -> None:
        """Load it from the cache, or compile it."""
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


# Options of `numba.njit` for what only kernels call, and no signature is declared of: without code to take its
# arguments out of Python objects, which of a record of many arrays is more than the function's own.
INNER: dict[str, bool] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

KERNELS: list[Kernel] = []  # of all modules imported so far

Listener = Callable[[str | None], None]
_listeners: list[Listener] = []
_depth = 0  # of kernels that load others
_compiled: list[str] = []  # for the one whose loading is under way


def kernel(
    *signatures: Any, inner: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function to be compiled for these types and no others, outside of the interpreter's lock, and cached.

    Called with arguments of other types it raises TypeError: nothing is compiled behind the caller's back.

    Parameters
    ----------
    *signatures : numba signature
        What it takes and returns; one or more.
    inner : bool
        Called by other kernels only. Python cannot call it then, and it compiles in less time: there is no code to
        take its arguments out of Python objects.
    **options : object
        More options of `numba.njit`.
    """

    def declare(function: Callable[..., Any]) -> Any:
        all_options = {
            "nogil": True,
            "no_cfunc_wrapper": True,
            "no_cpython_wrapper": inner,
            **options,
        }
        dispatcher = numba.njit(**all_options)(function)
        if numba.config.DISABLE_JIT:
            return dispatcher  # Python's own function, to be debugged
        cache = KernelCache(dispatcher.py_func, all_options, _begin)
        KERNELS.append(Kernel(dispatcher, signatures, cache))
        return dispatcher

    return declare


@contextmanager
def when_compiling(listener: Listener) -> Iterator[None]:
    """Tell `listener` of compilations, each of which takes a second, or some.

    It is called with a kernel's name before that is compiled, and with None when all is loaded that a call needs; in
    the thread that compiles. Kernels that are loaded from the cache are not told of.
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
    """What is around the loading of a kernel. It may load others: only around the first one something is done.

    Garbage lies meanwhile: a compiler makes many objects that live, and going through them takes a tenth of its time.
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
