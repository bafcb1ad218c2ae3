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

import numba
from numba.core.compiler import DEFAULT_FLAGS
from numba.core.compiler_lock import global_compiler_lock
from numba.core.targetconfig import ConfigStack

from .kernel_cache import KernelCache, use_cpu_level
from .kernel_folders import CPU

if levels := os.environ.get(CPU):
    use_cpu_level(levels)


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
        self._compile = dispatcher.compile
        self._cache = dispatcher._cache = cache
        # Numba asks for a compilation from Python (`_compile_for_args`, which answers what is to be called
        # instead) and, for another kernel that calls this one, by `compile`.
        dispatcher._compile_for_args = dispatcher.compile = self._settle

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
        # Whoever compiles holds the lock: numba asks for the same one.
        # A kernel compiled while another is would inherit that one's options, and its bits with them.
        with global_compiler_lock, _loading(), ConfigStack().enter(DEFAULT_FLAGS):
            if self.is_loaded:
                return
            try:
                for signature in self.signatures:
                    self._compile(signature)
            finally:
                self._cache.unlock()
            self._dispatcher.disable_compile()
            self.is_loaded = True

    def _settle(self, *_: object) -> Any:
        self.load()
        return self._dispatcher


KERNELS: list[Kernel] = []  # of all modules imported so far

Listener = Callable[[str | None], None]
_listeners: list[Listener] = []
_depth = 0  # of kernels that load others
_compiled: list[str] = []  # for the one whose loading is under way


def kernel(
    *signatures: Any, inner: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Declare a function to be compiled for these types and no others, outside of the interpreter's lock, and cached.

    Parameters
    ----------
    *signatures : numba signature
        What it takes and returns; one or more.
    inner : bool
        Called by other kernels only. Python cannot call it then, and it compiles in less time: there is no code to
        take its arguments out of Python objects.
    **options : object
        More options of `numba.njit`.

    Raises
    ------
    TypeError
        When it is called: for arguments of other types, which nothing is compiled for behind the caller's back.
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


def load_all(package: str = "") -> None:
    """Load the kernels of the modules imported so far whose name begins so; compile those that no cache holds."""
    for one in list(KERNELS):
        if one.name.startswith(package):
            one.load()
