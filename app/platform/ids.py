"""Ids: a prefix for the kind, and a UUIDv7, so that they sort by age (RFC 9562 §5.7)."""

from __future__ import annotations

import os
import re
import time

_HEX = re.compile(r"[0-9a-f]{32}")


def uuid7() -> str:
    """Return 32 hexadecimal digits: 48 bits of Unix milliseconds, version and variant, 74 random bits."""
    return _uuid7(time.time_ns() // 1_000_000, os.urandom(10).hex())


def _uuid7(milliseconds: int, random: str) -> str:
    variant = "89ab"[int(random[3], 16) & 3]  # the bits 10, and two random ones
    return f"{milliseconds & (2**48 - 1):012x}7{random[:3]}{variant}{random[4:19]}"


def new_id(prefix: str) -> str:
    """Return an id such as `job_0198f0c2a4d37c1e8a4b5c6d7e8f9012`."""
    return f"{prefix}_{uuid7()}"


def id_at(prefix: str, at: float, random: bytes) -> str:
    """`at` is in seconds since 1970, `random` has ten bytes."""
    return f"{prefix}_{_uuid7(int(at * 1000), random.hex())}"


def time_of(id_: str) -> float:
    """Return when an id was made, in seconds since 1970.

    >>> time_of("ds_0198f0c2a4d37c1e8a4b5c6d7e8f9012")
    1756385944.787
    """
    return int(id_.partition("_")[2][:12], 16) / 1000


def is_id(text: str, prefix: str) -> bool:
    """Any other text must not reach SQL (NUL, surrogates)."""
    return text.startswith(prefix + "_") and _HEX.fullmatch(text, len(prefix) + 1) is not None
