"""JSON as it was sent: whole numbers of any size keep their digits, and a key may occur only once in an object.

orjson parses nearly all texts. It reads a whole number of more than 64 bits as a float, and of equal keys the last one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import orjson

from app.ingest.delimiters import has_more_delimiters
from app.ingest.errors import show
from app.platform.errors import Invalid

Floats = npt.NDArray[np.float64]

_DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else ord(" ") for byte in range(256))
_LONG = b"0" * 19
"""So many digits, after `_DIGITS`: numbers of fewer have at most 64 bits."""
_MAX_DIGITS = 300
"""Digits of the longest whole number that is also a float."""


MIN_OBJECTS = 100
"""Fewer objects are parsed one by one: creating a decoder for new keys takes as long as parsing about 100 objects."""
_EXACT_BELOW = 1e18
"""Whole numbers below it have at most 64 bits."""


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


def are_flat(text: bytes, found: Sequence[Any]) -> bool:
    """Return whether orjson has read flat objects, `found`, as `parse` would.

    Returns False if one is no object, has a list or an object as value, or must be read by `parse`.
    """
    if not {dict}.issuperset(map(type, found)):
        return False
    types = set(map(type, _values_of(found)))
    if types & {dict, list} or _LONG in text.translate(_DIGITS):
        return False
    strings = sum(type(value) is str for value in _values_of(found)) if str in types else 0
    return text.count(b'"') == _quotes(sum(map(len, found)), strings)


def numbers_of_flat(
    text: bytes, n_lines: int, max_delimiters: int
) -> tuple[Sequence[str], Floats] | None:
    """Return the keys and the numbers, NaN for null, of lines with objects that all have the same keys. `parse` returns
    the same values.

    Returns None if there are few lines, if an object has another key or another value, if a key has to be escaped, and
    if the lines must be read one by one: for blanks around them, whole numbers of many digits, or errors.

    max_delimiters: the length up to which the first line is parsed, whatever it contains.
    """
    if n_lines < MIN_OBJECTS:
        return None
    # Each line begins and ends with a brace. So as many objects as lines are one in each line.
    if not text.startswith(b"{") or not text.endswith(b"}"):
        return None
    first = text.split(b"\n", 1)[0]
    if len(first) > max_delimiters or text.count(b"}\n{") != n_lines - 1:
        return None
    try:
        keys = tuple(orjson.loads(first))
        # Every object must have every key. So there are no more quotes only if no key is repeated.
        if _count(text, b'"') != _quotes(n_lines * len(keys), 0):
            return None
        decoder = _decoder_of(keys, may_be_null=b"null" in text)
        rows = [] if decoder is None else decoder.decode_lines(text)
    except (orjson.JSONDecodeError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if len(rows) != n_lines:
        return None
    size = len(rows) * len(keys)
    try:
        cells = chain.from_iterable(map(msgspec.structs.astuple, rows))
        matrix: Floats = np.fromiter(cells, np.float64, size)
    except TypeError:  # there is a null, which only the slower `array` converts
        matrix = np.array(list(map(msgspec.structs.astuple, rows)), np.float64)
    matrix = matrix.reshape(len(rows), len(keys))
    # `parse` keeps all digits of a whole number.
    return None if (np.abs(matrix) >= _EXACT_BELOW).any() else (keys, matrix)


@lru_cache(maxsize=16)
def _decoder_of(keys: tuple[str, ...], *, may_be_null: bool) -> msgspec.json.Decoder[Any] | None:
    """Return None if there is no key, or one that has to be escaped in JSON, which msgspec does not support."""
    if not keys:
        return None
    names = [f"f{i}" for i in range(len(keys))]  # a key need not be an identifier
    try:
        row = msgspec.defstruct(
            "Row",
            [(name, float | None if may_be_null else float) for name in names],
            rename=dict(zip(names, keys, strict=True)),
            forbid_unknown_fields=True,
            gc=False,
        )
    except ValueError:
        return None
    return msgspec.json.Decoder(row)


def _values_of(found: Sequence[dict[str, Any]]) -> Iterator[Any]:
    return chain.from_iterable(map(dict.values, found))


def _count(text: bytes, byte: bytes) -> int:
    """Faster than `bytes.count` for a frequent byte."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == byte[0]))


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
