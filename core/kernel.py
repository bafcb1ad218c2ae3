"""Compiled functions: each declares its types where it is defined, and is loaded when it is first called.

A process needs few of the two hundred. Numba by itself would load each of them from its cache as its module is
imported, which takes as long as all the rest of the import; or, where there is no cache yet, compile it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core.compiler_lock import global_compiler_lock

_declared: list[tuple[str, Callable[[], None]]] = []  # the module of each, and how it is loaded


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
        compiled = numba.njit(
            nogil=True, cache=True, no_cfunc_wrapper=True, no_cpython_wrapper=inner, **options
        )(function)
        if numba.config.DISABLE_JIT:
            return compiled  # Python's own function, to be debugged
        compile_one = compiled.compile
        is_loaded = False

        def load() -> None:
            nonlocal is_loaded
            # Whoever compiles holds the lock: numba asks for the same one.
            with global_compiler_lock, _no_garbage_collection():
                if not is_loaded:
                    for signature in signatures:
                        try:
                            compile_one(signature)
                        except OSError:  # its cache finds no room: it is compiled all the same
                            compile_one(signature)
                    compiled.disable_compile()
                    is_loaded = True

        def settle(*_: object) -> Any:
            load()
            return compiled

        # Numba asks for a compilation from Python (`_compile_for_args`, which answers what is to be called
        # instead) and, for another kernel that calls this one, by `compile`.
        compiled._compile_for_args = compiled.compile = settle
        _declared.append((function.__module__, load))
        return compiled

    return declare


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Leave garbage lie meanwhile: a compiler makes many objects that live, and going through them takes a tenth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load_all(package: str = "") -> None:
    """Load the kernels of the modules imported so far whose name begins so; compile those that no cache holds."""
    for module, load in list(_declared):
        if module.startswith(package):
            load()
