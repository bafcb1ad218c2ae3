"""Counts of the delimiters of a text before it is parsed: each value needs up to thirty times its bytes in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

_NEXT_IN_JSON = r"""(?:[^"{0}]++|"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z))*+(?:([{0}])|\Z)"""
"""A delimiter of JSON (the group) or the end, with all before it that is none. It matches at any position: so no byte
is looked at twice.
"""
_FIELD_OF_CSV = r"""(?:"[^"]*+(?:""[^"]*+)*+(?:"|\Z))?+[^{0}]*+(?:({0})|\Z)"""
"""A value of CSV as Python's csv module reads it, and the delimiter behind it (the group) or the end: a quote counts
only at the beginning of a value.
"""

_PIECE = 1 << 16  # bytes, which fit the CPU's cache


@cache
def _json_pattern(delimiters: str) -> re.Pattern[bytes]:
    return re.compile(_NEXT_IN_JSON.format(re.escape(delimiters)).encode(), re.DOTALL)


@cache
def _csv_pattern(delimiter: str) -> re.Pattern[str]:
    return re.compile(_FIELD_OF_CSV.format(re.escape(delimiter)))


def _count(matches: Iterator[re.Match[Any]], most: int) -> int:
    return sum(match.lastindex is not None for match in islice(matches, most))


def _count_bytes(text: bytes | memoryview, signs: bytes) -> int:
    """Return how often any of the bytes occurs. A view cannot count, so that it is copied in pieces."""
    pieces = (bytes(text[i : i + _PIECE]) for i in range(0, len(text), _PIECE))
    return sum(piece.count(sign) for piece in pieces for sign in signs)


def has_more_delimiters(text: bytes | memoryview, most: int, delimiters: str) -> bool:
    """Return True if more than `most` of the ASCII `delimiters` are in a JSON text outside strings.

    It takes linear time, also for bytes that are not JSON, and no memory.
    """
    if len(text) <= most or _count_bytes(text, delimiters.encode()) <= most:
        return False
    return _count(_json_pattern(delimiters).finditer(text), most + 1) > most


def count_delimiters(text: str, delimiter: str, most: int, *, in_quotes: bool = False) -> int:
    """Count delimiters outside quotes in a CSV line, up to `most`; with `in_quotes` the line begins inside quotes."""
    if delimiter not in text or (in_quotes and '"' not in text):
        return 0
    if '"' not in text:
        return min(most, text.count(delimiter))
    matches = _csv_pattern(delimiter).finditer(f'"{text}' if in_quotes else text)
    return _count(matches, most)
