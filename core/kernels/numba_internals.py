"""All that this project takes from numba's inside, in one place: none of it is promised to stay.

A new version of numba may change any of it. `tests/core/kernels/test_numba_internals.py` then says which part it was,
in words, and what numba has to do there.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Protocol, TypeAlias

from numba.core.compiler import DEFAULT_FLAGS, CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.core.targetconfig import ConfigStack

Compiled: TypeAlias = CompileResult
"""A compiled function of one signature: a cache stores these."""


class Cache(Protocol):
    """What a dispatcher asks of its cache, `_cache`; numba's own are of the class `numba.core.caching._Cache`."""

    def load_overload(self, signature: Any, target: Any) -> Compiled | None:
        """Return the compiled function for a signature; None if it must be compiled. Asked before a compilation."""

    def save_overload(self, signature: Any, compiled: Compiled) -> None:
        """Store a compiled function. Called after a compilation."""


def attach(dispatcher: Any, cache: Cache, load: Callable[[], None]) -> Callable[[Any], Any]:
    """Attach this cache to a dispatcher, and have it call `load` when it meets types that it has no machine code for.

    Returns the dispatcher's own `compile`: it takes a signature, and loads from the cache or compiles.

    Parameters
    ----------
    dispatcher : Dispatcher
        What `numba.njit` returns.
    load : callable () -> None
    """
    compile_one: Callable[[Any], Any] = dispatcher.compile

    def settle(*_: object) -> Any:
        load()
        return dispatcher

    dispatcher._cache = cache
    # A call from Python asks `_compile_for_args`, and calls what that returns. Another kernel that is being compiled
    # asks `compile`.
    dispatcher._compile_for_args = dispatcher.compile = settle
    return compile_one


@contextmanager
def compiling() -> Iterator[None]:
    """Hold the lock of numba's compiler, with its default options.

    Numba takes the same lock. A function that is compiled while another one is would inherit the other's options.
    """
    with global_compiler_lock, ConfigStack().enter(DEFAULT_FLAGS):
        yield


def to_bytes(compiled: Compiled) -> bytes | None:
    """Write a compiled function; None if its machine code holds addresses of this process."""
    has_own_code = any(not each.can_cache for each in compiled.lifted)
    if has_own_code or compiled.library.has_dynamic_globals:
        return None
    payload: bytes = dumps(compiled._reduce())
    return payload


def from_bytes(payload: bytes, target: Any) -> Compiled:
    """Read a compiled function that `to_bytes` wrote. It runs code of the payload: its source must be trusted."""
    return Compiled._rebuild(target, *pickle.loads(payload))  # noqa: S301 - as safe as the code beside it


def address_of_kernel(dispatcher: Any) -> int:
    """Return the address of a kernel's machine code of its one signature, which is loaded or compiled.

    It takes arguments as numba's functions do among themselves: `core.coding.threads.call` calls it.
    """
    dispatcher.compile(None)
    (compiled,) = dispatcher.overloads.values()
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


def processor_of(target: Any) -> tuple[Any, ...]:
    """Return what numba knows of the processor it compiles for: its triple, its name and its features."""
    described: tuple[Any, ...] = target.codegen().magic_tuple()
    return described


def python_function(value: Any) -> FunctionType | None:
    """Return the Python function behind a dispatcher (`py_func`) or an intrinsic (`_defn`); None for other values."""
    for candidate in (value, getattr(value, "py_func", None), getattr(value, "_defn", None)):
        if isinstance(candidate, FunctionType):
            return candidate
    return None
