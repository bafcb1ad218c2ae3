"""Everything that this project uses of numba's internals, which may change with any version of numba.

A new version of numba may change any of it: pyproject.toml takes none that was not tried. With a new one
`tests/core/kernels/test_numba_internals.py` says in words which part it was, and what numba has to do there.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Protocol, TypeAlias

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import DEFAULT_FLAGS, CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.core.targetconfig import ConfigStack

Compiled: TypeAlias = CompileResult
"""A compiled function of one signature: a cache stores these."""

FORMAT = 3
"""The form of what `to_bytes` writes. Files of another form have other names."""


class Cache(Protocol):
    """Interface of a dispatcher's cache (`_cache`), as numba calls it."""

    def load_overload(self, signature: Any, target: Any) -> Compiled | None:
        """Return the compiled function for a signature; None if it must be compiled. Asked before a compilation."""

    def save_overload(self, signature: Any, compiled: Compiled) -> None:
        """Store a compiled function. Called after a compilation."""


def attach(dispatcher: Any, cache: Cache, load: Callable[[], None]) -> Callable[[Any], Any]:
    """Attach this cache to a dispatcher, and have it call `load` when it meets types that it has no machine code for.

    Returns the dispatcher's own `compile`: it takes a signature, and loads from the cache or compiles.

    dispatcher: what `numba.njit` returns.
    load: callable () -> None.
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


class LazyLibrary(JITCodeLibrary):
    """A compiled function's code library that generates machine code only when it is needed.

    Numba by itself optimises every function and makes machine code of it, and then again with each function that calls
    it, whose module takes all of it in. For functions that only others call, all of that but the last time is lost.
    """

    has_machine_code = False
    is_only_linked = False
    """Whether only other functions take it in, so that the cache needs no machine code."""

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        if not self.has_machine_code:
            if name not in {function.name for function in self.get_defined_functions()}:
                return 0
            self._make_machine_code()
        address: int = super().get_pointer_to_function(name)
        return address

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """Return the library's data for the cache: machine code if it is needed, and the code that callers link."""
        state: tuple[str, str, Any]
        if self.is_only_linked and not self.has_machine_code:
            state = self.serialize_using_bitcode()
        else:
            self._make_machine_code()
            state = super().serialize_using_object_code()
        return state

    def _make_machine_code(self) -> None:
        if not self.has_machine_code:
            self._get_module_for_linking()  # what others take in is not optimised yet
            self.has_machine_code = True
            self._optimize_final_module()
            self._finalize_final_module()

    def _optimize_final_module(self) -> None:
        if self.has_machine_code:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Generate machine code only if it is wanted; otherwise only finish the globals."""
        if self.has_machine_code:
            super()._finalize_final_module()
        else:
            self._finalize_dynamic_globals()
            self._finalized = True

    def _set_compiled_object(self, value: bytes) -> None:
        self.has_machine_code = True
        super()._set_compiled_object(value)


@contextmanager
def compiling() -> Iterator[None]:
    """Hold numba's compiler lock with default options, which a nested compilation would inherit, and `LazyLibrary`."""
    codegen = cpu_target.target_context.codegen()
    set_env = type(codegen).set_env

    def set_env_if_defined(name: str, env: Any) -> None:
        if codegen._engine.is_symbol_defined(name):
            set_env(codegen, name, env)

    with global_compiler_lock, ConfigStack().enter(DEFAULT_FLAGS):
        before = codegen._library_class
        codegen._library_class, codegen.set_env = LazyLibrary, set_env_if_defined
        try:
            yield
        finally:
            codegen._library_class = before
            if before is not LazyLibrary:
                del codegen.set_env


def load_registries() -> None:
    """Load numba's own registries in advance; doing so takes longer than loading a hundred kernels."""
    with compiling():
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()


def to_bytes(compiled: Compiled, *, is_only_linked: bool = False) -> bytes | None:
    """Return bytes for the cache, without machine code if `is_only_linked`; None if it contains process addresses."""
    has_own_code = any(not each.can_cache for each in compiled.lifted)
    if has_own_code or compiled.library.has_dynamic_globals:
        return None
    compiled.library.is_only_linked = is_only_linked
    payload: bytes = dumps(compiled._reduce())
    return payload


def from_bytes(payload: bytes, target: Any) -> Compiled:
    """Return the compiled function that `to_bytes` wrote. It can run code of the payload: trust its source."""
    return Compiled._rebuild(target, *pickle.loads(payload))  # noqa: S301 - as safe as the code beside it


def address_of_kernel(dispatcher: Any) -> int:
    """Load or compile a kernel with one signature; return its address for `core.coding.threads.call_at`."""
    dispatcher.compile(None)
    (compiled,) = dispatcher.overloads.values()
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    if not address:
        raise RuntimeError(f"the kernel {dispatcher.py_func.__qualname__} has no machine code")
    return address


def processor_of(target: Any) -> tuple[Any, ...]:
    """Return the target triple, processor name and features for which numba compiles."""
    described: tuple[Any, ...] = target.codegen().magic_tuple()
    return described


def python_function(value: Any) -> FunctionType | None:
    """Return the Python function behind a dispatcher (`py_func`) or an intrinsic (`_defn`); None for other values."""
    for candidate in (value, getattr(value, "py_func", None), getattr(value, "_defn", None)):
        if isinstance(candidate, FunctionType):
            return candidate
    return None
