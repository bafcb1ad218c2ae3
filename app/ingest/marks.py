"""Count what separates values before a text is parsed: each value takes up to thirty times its bytes in memory."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from typing import AnyStr

_OTHER = r"""(?:[^"{0}]++|"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z))*+(?:([{0}])|\Z)"""
"""A mark of JSON (the group) or the end, with all before it that is no mark. It matches at any position: so no byte is
looked at twice.
"""
_OTHER_CSV = r"""(?:[^"{0}]++|"[^"]*+(?:"|\Z))*+(?:([{0}])|\Z)"""


@cache
def _marks_of_json(marks: str) -> re.Pattern[bytes]:
    return re.compile(_OTHER.format(re.escape(marks)).encode(), re.DOTALL)


@cache
def _marks_of_csv(delimiter: str) -> re.Pattern[str]:
    return re.compile(_OTHER_CSV.format(re.escape(delimiter)))


def _count(pattern: re.Pattern[AnyStr], text: AnyStr, most: int) -> int:
    found = islice(pattern.finditer(text), most)
    return sum(match.lastindex is not None for match in found)


def has_more_marks(text: bytes, most: int, marks: str) -> bool:
    """Return True if more than `most` of the ASCII `marks` occur in a JSON text outside its strings.

    It takes linear time, also for bytes that are not JSON, and no memory.
    """
    if len(text) <= most or sum(map(text.count, marks.encode())) <= most:
        return False
    return _count(_marks_of_json(marks), text, most + 1) > most


def count_delimiters(text: str, delimiter: str, most: int) -> int:
    """Return the number of delimiters outside quotes, counted up to `most`."""
    if '"' not in text:
        return min(most, text.count(delimiter))
    return _count(_marks_of_csv(delimiter), text, most)
