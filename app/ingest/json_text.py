"""JSON as it was sent: whole numbers of any size keep their digits, and a key may occur only once in an object.

orjson parses nearly all texts. It reads a whole number of more than 64 bits as a float, and of equal keys the last one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import chain
from typing import Any

import orjson

from app.ingest.delimiters import has_more_delimiters
from app.ingest.errors import show
from app.platform.errors import Invalid

_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else ord(" ") for byte in range(256))
_LONG = b"0" * 19
"""So many digits, after `_DIGITS`: numbers of fewer have at most 64 bits."""
_MAX_DIGITS = 300
"""Digits of the longest whole number that is also a float."""


class RepeatedKey(Invalid):
    """A key occurs several times in an object: parsers would silently use the last one."""

    code = "duplicate_column"

    def __init__(self, key: str, times: int) -> None:
        self.key = key
        super().__init__(f"the key {show(key)} occurs {times} times in one object")


def parse(text: bytes | memoryview) -> Any:
    """Raises orjson.JSONDecodeError, and RepeatedKey."""
    found = orjson.loads(text)
    if _LONG in bytes(text).translate(_DIGITS) or _may_have_doubled(text, found):
        try:
            return _EXACT.decode(bytes(text).decode())
        except RecursionError:
            raise Invalid("the JSON is nested too deeply") from None
    return found


def types_of_flat(texts: Sequence[bytes], found: Sequence[Any]) -> Set[type] | None:
    """Return the types of the values, if orjson has read flat objects as `parse` would.

    Returns None if one is no object, has a list or an object as value, or must be read by `parse`.
    """
    if not {dict}.issuperset(map(type, found)):
        return None
    types = set(map(type, _values_of(found)))
    text = b"".join(texts)
    if types & {dict, list} or _LONG in text.translate(_DIGITS):
        return None
    strings = sum(type(value) is str for value in _values_of(found)) if str in types else 0
    return types if text.count(b'"') == _quotes(sum(map(len, found)), strings) else None


def _values_of(found: Sequence[dict[str, Any]]) -> Iterator[Any]:
    return chain.from_iterable(map(dict.values, found))


def _quotes(members: int, strings: int) -> int:
    """Return the number of quotes in flat objects without escaped quotes, by their members and string values.

    An object that repeats a key has more quotes than its parsed members need.
    """
    return 2 * (members + strings)


def _may_have_doubled(text: bytes | memoryview, found: Any) -> bool:
    """False means that no key is repeated."""
    if isinstance(found, dict) and isinstance(text, bytes):
        strings = sum(type(value) is str for value in found.values())
        if text.count(b'"') == _quotes(len(found), strings):
            return False
    return has_more_delimiters(text, _count_members(found), ":")


def _count_members(found: Any) -> int:
    """Count the members of an object and of the objects in its lists, no deeper."""
    values = [found, *(found.values() if isinstance(found, dict) else ())]
    lists = [value for value in values if isinstance(value, list)]
    objects = [value for value in values if isinstance(value, dict)]
    flat = (sum(len(each) for each in value if isinstance(each, dict)) for value in lists)
    return sum(map(len, objects)) + sum(flat)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((key, times),) = Counter(key for key, _ in pairs).most_common(1)
        raise RepeatedKey(key, times)
    return found


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


_EXACT = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_whole)
