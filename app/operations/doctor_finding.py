"""What the doctor says of one part."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """`FAIL` is trouble; `warn` may become some, or is none where that is how it is meant."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """One part of the state, how it is, and what to do about it where it is not well."""

    part: str
    level: Level
    detail: str
    advice: str | None = None


def ok(part: str, detail: str) -> Finding:
    """All is well."""
    return Finding(part, Level.OK, detail)


def warn(part: str, detail: str, advice: str) -> Finding:
    """Worth a look."""
    return Finding(part, Level.WARN, detail, advice)


def fail(part: str, detail: str, advice: str) -> Finding:
    """Trouble."""
    return Finding(part, Level.FAIL, detail, advice)


def size(count: float) -> str:
    """Bytes as people read them."""
    for unit, many in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= many:
            return f"{count / many:.1f} {unit}"
    return f"{count:.0f} bytes"


def age(seconds: float) -> str:
    """A time as people read it."""
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
