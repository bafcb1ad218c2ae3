"""Warnings that point at the caller's line, whichever internal thread and depth they come from."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, NamedTuple

_PACKAGE = __name__.partition(".")[0]


class Caller(NamedTuple):
    """The location of the code that called this package, as `warnings.warn_explicit` needs it."""

    file: str
    line: int
    module: str
    registry: Any


_CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


def find_caller() -> Caller:
    """Return the innermost stack location outside this package; inside `called_from`, the given one."""
    if (given := _CALLER.get()) is not None:
        return given
    frame: FrameType = sys._getframe(1)
    while _is_own(frame) and frame.f_back is not None:
        frame = frame.f_back
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    return Caller(
        frame.f_code.co_filename, frame.f_lineno, names.get("__name__", "<unknown>"), registry
    )


def _is_own(frame: FrameType) -> bool:
    # The module's name, not the file's: generated code, such as the __init__ of a dataclass, has no file.
    return str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE


@contextmanager
def called_from(caller: Caller) -> Iterator[None]:
    """Attribute this thread's warnings to a caller on another thread's stack."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    warnings.warn_explicit(message, category, *find_caller())
