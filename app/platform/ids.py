"""Ids: a prefix for the kind, and a UUIDv7, so that they sort by age (RFC 9562 §5.7)."""

from __future__ import annotations

import os
import re
import time
from typing import Literal, get_args

Prefix = Literal["ds", "job", "mdl", "evl", "cmp", "bat", "key", "aud", "req", "wrk"]
_ID = re.compile(rf"(?:{'|'.join(get_args(Prefix))})_[0-9a-f]{{32}}")


def uuid7() -> str:
    """Return 32 hexadecimal digits: 48 bits of Unix milliseconds, version and variant, 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & (2**48 - 1)) << 80
    value |= 0x7 << 76
    value |= (random >> 68) << 64
    value |= 0b10 << 62
    value |= random & (2**62 - 1)
    return f"{value:032x}"


def new_id(prefix: Prefix) -> str:
    """Return an id such as `job_0198f0c2a4d37c1e8a4b5c6d7e8f9012`."""
    return f"{prefix}_{uuid7()}"


def is_id(text: str, prefix: Prefix) -> bool:
    """Return True if a caller's text may be an id. Anything else must not reach SQL (NUL, surrogates)."""
    return text.startswith(prefix + "_") and _ID.fullmatch(text) is not None
