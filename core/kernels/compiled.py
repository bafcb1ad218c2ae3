"""Compiled functions: each declares its types where it is defined, and is loaded when it is first called.

A process needs few of them. Numba by itself would load each from its cache as its module is imported, which takes as
long as all the rest of the import; or, where there is no cache yet, compile it.

Compiled kernels are kept in small files that any number of processes may read and write.
Numba's own cache knows only the file in which a function stands: change what it calls in another file, and a stale
machine code is loaded. Here a file's name holds a stamp of everything a kernel is made of, so that a stale one is
never found:

- the bytes of its source file and of the file of every project function that it reaches,
- the values of the constants that it reads,
- the versions of Python, numba and llvmlite, and the processor that the code is for.

Files are looked for in several folders and written to the first that takes them, so that an image can carry a
read-only folder. Every file begins with a checksum: one that is cut off or spoilt counts as absent. Nothing that
goes wrong with a folder is an error: what cannot be kept is compiled again.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import logging
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # it carries no types
import llvmlite.binding  # type: ignore[import-untyped]
import numba
import numpy as np
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.core.compiler import DEFAULT_FLAGS, CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.core.targetconfig import ConfigStack

from .folders import CPU, CPU_LEVELS, folders, levels_that_fit

log = logging.getLogger(__name__)

SUFFIX = ".kernel"
KEEP_SECONDS = 86400.0
_DIGEST_BYTES = 32
_PACKAGES = ("core", "app", "workers")


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


class KernelCache(_Cache):
    """The cache of one kernel, in the place of numba's own (`numba.core.caching.Cache`).

    Parameters
    ----------
    function : callable
        The kernel as Python.
    options : dict
        What it is compiled with.
    about_to_compile : callable
        Called with the kernel's name when no folder holds it: it will be compiled, here or by a process that does so
        now.
    """

    def __init__(
        self,
        function: FunctionType,
        options: dict[str, Any],
        about_to_compile: Callable[[str], None],
    ) -> None:
        self.name = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
        self._function = function
        self._options = options
        self._about_to_compile = about_to_compile
        self._locks: list[int] = []
        self._impl = CompileResultCacheImpl.__new__(CompileResultCacheImpl)
        self._impl._locator, self._impl._lineno = self, function.__code__.co_firstlineno
        self._py_file = (
            function.__code__.co_filename
        )  # for numba's warning of what cannot be cached

    @property
    def cache_path(self) -> str:
        """The folder that is asked first."""
        return str(folders()[0])

    def is_locked(self, signature: Any, target: Any) -> bool:
        """Whether another process compiles it just now."""
        name = self._file_name(signature, target.codegen())
        for folder in folders():
            try:
                descriptor = os.open(folder / f"{name}.lock", os.O_RDWR)
            except OSError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
        return False

    def has(self, signature: Any, target: Any) -> bool:
        """Whether some folder holds the kernel for this signature."""
        name = self._file_name(signature, target.codegen())
        return any(os.path.isfile(folder / name) for folder in folders())

    def load_overload(self, signature: Any, target: Any) -> CompileResult | None:
        """What numba asks before it compiles: the compiled kernel, or None.

        Where another process compiles it just now, wait for that one: its end, even by a signal, ends the wait.
        """
        target.refresh()
        name = self._file_name(signature, target.codegen())
        found = self._read(name, target)
        if found is None:
            self._about_to_compile(self.name)
            if self._lock(name):
                found = self._read(name, target)  # another process may have compiled it meanwhile
        return found

    def save_overload(self, signature: Any, compiled: CompileResult) -> None:
        """Keep a compiled kernel in the first folder that takes it, and remove its older editions there."""
        if not self._impl.check_cachable(compiled):
            return
        name = self._file_name(signature, compiled.codegen)
        payload = dumps(self._impl.reduce(compiled))
        contents = hashlib.sha256(payload).digest() + payload
        for folder in folders():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                _write(folder / name, contents)
            except OSError as error:
                log.debug("%s was not kept in %s: %s", self.name, folder, error)
                continue
            self._remove_older(folder, name)
            return

    def unlock(self) -> None:
        """Let go of what `load_overload` locked, after the compilation or its failure."""
        while self._locks:
            os.close(self._locks.pop())

    def enable(self) -> None:
        """Numba's interface; this cache is always on."""

    def disable(self) -> None:
        """Numba's interface; this cache is always on."""

    def flush(self) -> None:
        """Numba's interface; a stale file is never found, so there is nothing to flush."""

    def _file_name(self, signature: Any, codegen: Any) -> str:
        edition = stamp_of(self._function)
        return f"{self._base_name(signature, codegen)}.{edition}{SUFFIX}"

    def _base_name(self, signature: Any, codegen: Any) -> str:
        cells = self._function.__closure__ or ()
        options = sorted((name, _text(value)) for name, value in self._options.items())
        variant = [signature, options, [_text(cell.cell_contents) for cell in cells]]
        target = [
            *(numba.__version__, llvmlite.__version__, sys.implementation.cache_tag),
            codegen.magic_tuple(),
        ]
        return f"{self.name}.{_digest(repr(variant), 8)}.{_digest(repr(target), 8)}"

    def _read(self, name: str, target: Any) -> CompileResult | None:
        for folder in folders():
            try:
                with (folder / name).open("rb") as file:
                    if os.fstat(file.fileno()).st_uid not in _trusted():
                        log.warning("%s is another user's and is not loaded", folder / name)
                        continue
                    contents = file.read()
            except OSError:
                continue
            payload = contents[_DIGEST_BYTES:]
            if hashlib.sha256(payload).digest() != contents[:_DIGEST_BYTES]:
                log.warning("%s is spoilt and is compiled again", folder / name)
                continue
            return CompileResult._rebuild(target, *pickle.loads(payload))  # noqa: S301 - as safe as the code beside it
        return None

    def _lock(self, name: str) -> bool:
        """Be the one who compiles it; False where no folder can be written to, and nobody is waited for."""
        for folder in folders():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
            except OSError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError:  # a file system without locks
                os.close(descriptor)
                return False
            self._locks.append(descriptor)
            return True
        return False

    def _remove_older(self, folder: Path, name: str) -> None:
        """Remove the lock, and editions of other sources that are a day old: another checkout may share the folder."""
        base = name.removesuffix(SUFFIX).rpartition(".")[0]
        (folder / f"{name}.lock").unlink(missing_ok=True)
        for path in folder.glob(f"{base}.*"):
            with contextlib.suppress(OSError):
                if path.name != name and path.stat().st_mtime < time.time() - KEEP_SECONDS:
                    path.unlink()


@cache
def _trusted() -> set[int]:
    """Whose machine code this process runs: its own user's, root's, and that of whoever put the program there."""
    return {0, os.geteuid(), os.stat(__file__).st_uid}


def _write(path: Path, contents: bytes) -> None:
    """Write a file that is there whole or not at all."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        fresh.write_bytes(contents)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def stamp_of(function: FunctionType) -> str:
    """Sum up all that a kernel is made of, as 16 hexadecimal digits: the same only for the same sources.

    Parameters
    ----------
    function : function
        The kernel as Python.
    """
    files: dict[str, str] = {}
    values: dict[str, str] = {}
    for reached in _reached(function, {function.__module__.partition(".")[0], *_PACKAGES}, values):
        path = reached.__code__.co_filename
        if path not in files:
            files[path] = _hash_of_file(path)
        if (
            reached.__module__ == "__main__" or files[path] == ""
        ):  # no file to read: its own code then
            values[f"{reached.__qualname__}()"] = _digest(repr(_code(reached.__code__)), 32)
    return _digest(repr((sorted(files.values()), sorted(values.items()))), 16)


def _reached(
    function: FunctionType, packages: set[str], values: dict[str, str]
) -> Iterator[FunctionType]:
    """The project's functions that a function calls, itself included; what constants they read goes into `values`."""
    waiting, seen = [function], {function}
    while waiting:
        current = waiting.pop()
        yield current
        names = set(_names(current.__code__))
        scope = {name: current.__globals__[name] for name in names & current.__globals__.keys()}
        cells = zip(current.__code__.co_freevars, current.__closure__ or (), strict=True)
        scope |= {name: cell.cell_contents for name, cell in cells}
        for name, value in list(scope.items()):
            if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in packages:
                found = vars(value)
                scope |= {f"{name}.{n}": found[n] for n in names & found.keys()}
        for name, value in scope.items():
            callee = _python_function(value)
            if callee is None:
                values[f"{current.__module__}.{name}"] = _text(value)
            elif callee not in seen and callee.__module__.partition(".")[0] in packages:
                seen.add(callee)
                waiting.append(callee)


def _python_function(value: Any) -> FunctionType | None:
    """The Python function behind a kernel or an intrinsic; None for what is none."""
    for candidate in (value, getattr(value, "py_func", None), getattr(value, "_defn", None)):
        if isinstance(candidate, FunctionType):
            return candidate
    return None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _code(code: CodeType) -> tuple[Any, ...]:
    consts = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return (code.co_code, consts, code.co_names)


def _text(value: Any) -> str:
    """A constant as text that two processes agree on; other things by their kind alone."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, type) and hasattr(value, "_fields"):  # a NamedTuple: which field is where
        return f"{value.__name__}{value._fields}"
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic | np.dtype | None):
        return repr(value)
    if isinstance(value, numba.types.Type):
        return str(value)
    if (callee := _python_function(value)) is not None:
        return f"{callee.__module__}.{callee.__qualname__}"
    return str(getattr(value, "__name__", type(value).__name__))


@cache
def _hash_of_file(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def _digest(text: str, n_digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:n_digits]


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
