"""The files in which compiled kernels are stored, which any number of processes may read and write.

Numba's own cache looks only at the source file of a function: if a function that it calls changes in another file,
stale machine code is loaded. Here a file's name has a stamp of everything that a kernel is made of, so that a stale
file is never loaded:

- the bytes of its source file and of the file of every project function that it reaches,
- the values of the constants that it reads,
- the versions of Python, numba and llvmlite, and the processor that the code is for.

Files are looked for in several folders and written to the first that can be written to, so that an image can have a
read-only folder. Every file begins with a checksum: a file that is cut off or damaged counts as missing. A problem with
a folder is no error: a kernel that cannot be stored is compiled again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np

from .folders import KEEP_SECONDS, folders
from .numba_internals import (
    FORMAT,
    Compiled,
    from_bytes,
    processor_of,
    python_function,
    to_bytes,
)

log = logging.getLogger(__name__)

SUFFIX = ".kernel"
_DIGEST_BYTES = 32
_PACKAGES = ("core", "app", "workers")


class KernelCache:
    """The file cache of one kernel's machine code, which replaces numba's own.

    function: the kernel as Python.
    options: the options of `numba.njit`.
    is_only_linked: whether only other kernels take it in: its files have no machine code.
    about_to_compile: called with the kernel's name if no folder has it: it is then compiled here, or by another process
        that is doing so already.
    """

    def __init__(
        self,
        function: FunctionType,
        options: dict[str, Any],
        *,
        is_only_linked: bool,
        about_to_compile: Callable[[str], None],
    ) -> None:
        self.name = f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
        self._function = function
        self._options = options
        self._is_only_linked = is_only_linked
        self._about_to_compile = about_to_compile
        self._locks: list[int] = []

    def is_locked(self, signature: Any, target: Any) -> bool:
        name = self.file_name(signature, target)
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
        name = self.file_name(signature, target)
        return any(os.path.isfile(folder / name) for folder in folders())

    def load_overload(self, signature: Any, target: Any) -> Compiled | None:
        """Return None if it must be compiled. Waits for another process that compiles it, to finish or to die."""
        target.refresh()
        name = self.file_name(signature, target)
        found = self._read(name, target)
        if found is None:
            self._about_to_compile(self.name)
            if self._lock(name):
                found = self._read(name, target)  # another process may have compiled it meanwhile
        return found

    def save_overload(self, signature: Any, compiled: Compiled) -> None:
        """Store a compiled kernel in the first folder that can be written to, and remove its older editions there."""
        payload = to_bytes(compiled, is_only_linked=self._is_only_linked)
        if payload is None:
            log.warning("%s cannot be cached: it contains addresses of this process", self.name)
            return
        name = self.file_name(signature, compiled.target_context)
        contents = hashlib.sha256(payload).digest() + payload
        for folder in folders():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                _write(folder / name, contents)
            except OSError as error:
                log.debug("%s was not cached in %s: %s", self.name, folder, error)
                continue
            self._remove_older(folder, name)
            return

    def unlock(self) -> None:
        """Release the locks of `load_overload`, after the compilation or its failure."""
        while self._locks:
            os.close(self._locks.pop())

    def file_name(self, signature: Any, target: Any) -> str:
        edition = stamp_of(self._function)
        return f"{self._base_name(signature, target)}.{edition}{SUFFIX}"

    def _base_name(self, signature: Any, target: Any) -> str:
        cells = self._function.__closure__ or ()
        options = sorted((name, _text(value)) for name, value in self._options.items())
        variant = [signature, options, [_text(cell.cell_contents) for cell in cells]]
        compiler = [
            *(FORMAT, numba.__version__, llvmlite.__version__, sys.implementation.cache_tag),
            processor_of(target),
        ]
        return f"{self.name}.{_digest(repr(variant), 8)}.{_digest(repr(compiler), 8)}"

    def _read(self, name: str, target: Any) -> Compiled | None:
        """Return the kernel of the first folder with an intact, trusted file."""
        for folder in folders():
            try:
                with (folder / name).open("rb") as file:
                    if os.fstat(file.fileno()).st_uid not in _trusted():
                        log.warning("%s belongs to another user and is not loaded", folder / name)
                        continue
                    contents = file.read()
            except OSError:
                continue
            payload = contents[_DIGEST_BYTES:]
            if hashlib.sha256(payload).digest() != contents[:_DIGEST_BYTES]:
                log.warning("%s is damaged and will be compiled again", folder / name)
                continue
            return from_bytes(payload, target)
        return None

    def _lock(self, name: str) -> bool:
        """Return False, without waiting, if no folder is writable."""
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
        base = name.removesuffix(SUFFIX).rpartition(".")[0]
        (folder / f"{name}.lock").unlink(missing_ok=True)
        for path in folder.glob(f"{base}.*"):
            with contextlib.suppress(OSError):
                if path.name != name and path.stat().st_mtime < time.time() - KEEP_SECONDS:
                    path.unlink()


@cache
def _trusted() -> set[int]:
    """Return the user ids whose machine code is loaded: this process's, root's, and the program files' owner's."""
    return {0, os.geteuid(), os.stat(__file__).st_uid}


def _write(path: Path, contents: bytes) -> None:
    """The file exists completely or not at all."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        fresh.write_bytes(contents)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def stamp_of(function: FunctionType) -> str:
    """Hash everything that a kernel is made of to 16 hexadecimal digits."""
    files: dict[str, str] = {}
    values: dict[str, set[str]] = {}
    for reached in _reached(function, {function.__module__.partition(".")[0], *_PACKAGES}, values):
        path = reached.__code__.co_filename
        if path not in files:
            files[path] = _hash_of_file(path)
        if (
            reached.__module__ == "__main__" or files[path] == ""
        ):  # no file to read: use its own code
            code = _digest(repr(_code(reached.__code__)), 32)
            values.setdefault(f"{reached.__qualname__}()", set()).add(code)
    constants = sorted((name, sorted(texts)) for name, texts in values.items())
    return _digest(repr((sorted(files.values()), constants)), 16)


def _reached(
    function: FunctionType, packages: set[str], values: dict[str, set[str]]
) -> Iterator[FunctionType]:
    """Yield a function and the project functions that it calls; add the constants that they read to `values`.

    Closures that one function made have the same names for different constants, so a name has a set of them.
    """
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
            callee = python_function(value)
            if callee is None:
                values.setdefault(f"{current.__module__}.{name}", set()).add(_text(value))
            elif callee not in seen and callee.__module__.partition(".")[0] in packages:
                seen.add(callee)
                waiting.append(callee)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _code(code: CodeType) -> tuple[Any, ...]:
    consts = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return (code.co_code, consts, code.co_names)


def _text(value: Any) -> str:
    """Return a constant as text that is equal in every process; other objects by type or name."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, type) and hasattr(value, "_fields"):  # a NamedTuple: its order of fields
        return f"{value.__name__}{value._fields}"
    if isinstance(value, bool | int | float | complex | str | bytes | np.generic | np.dtype | None):
        return repr(value)
    if isinstance(value, numba.types.Type):
        return str(value)
    if (callee := python_function(value)) is not None:
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
