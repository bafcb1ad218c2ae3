"""A row from the plainest of query strings, compiled: all features, in the model's order.

Numbers are short decimal fractions, words are decoded and looked up. Most callers send such queries, and reading one
must not cost more than answering it. Whatever else a query holds is left to `features.FeatureIndex`, which knows all
the rules; here nothing is refused, only left undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

_MAX_DIGITS = 18  # as many always fit int64; more may have wrapped around
_EXACT = 1 << 53  # every integer up to here is a float64, and so is every power of ten up to 10**22
_POWERS = 10.0 ** np.arange(_MAX_DIGITS + 1)
_AND, _IS, _MINUS, _POINT, _PERCENT, _PLUS, _SPACE, _TAB, _0, _9 = b"&=-.%+ \t09"
_ASCII_END = 0x80
_OTHER = -1  # where something is not plain

_DIGITS = np.full(256, _OTHER, dtype=np.int64)  # the value of each hexadecimal digit
for _digit in b"0123456789abcdefABCDEF":
    _DIGITS[_digit] = int(chr(_digit), 16)

Bytes = npt.NDArray[np.uint8]
_BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_INTS = numba.int64[::1]


@numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _read_number(query, at, row, feature):  # type: ignore[no-untyped-def]
    """Read -?digits[.digits], the digits as one integer, and return where it ends, or -1."""
    negative = query[at] == _MINUS
    if negative:
        at += 1
    first = at
    number = 0
    while at < len(query) and _0 <= query[at] <= _9:
        number = 10 * number + (query[at] - _0)
        at += 1
    digits = at - first
    decimals = 0
    if digits > 0 and at < len(query) and query[at] == _POINT:
        at += 1
        first = at
        while at < len(query) and _0 <= query[at] <= _9:
            number = 10 * number + (query[at] - _0)
            at += 1
        decimals = at - first
        if decimals == 0:
            return _OTHER
    # Both are exact, so one division rounds once: the very float64 that was meant (Clinger 1990).
    if digits == 0 or digits + decimals > _MAX_DIGITS or number > _EXACT:
        return _OTHER
    value = number / _POWERS[decimals]
    row[0, feature] = -value if negative else value
    return at


@numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _decode_word(query, at, word):  # type: ignore[no-untyped-def]
    """Undo the encoding of a value into `word`; return where the value ends, or -1, and the length of the word."""
    length = 0
    while at < len(query) and query[at] != _AND:
        byte = query[at]
        if byte == _PLUS:
            byte = np.uint8(_SPACE)
        elif byte == _PERCENT:
            if at + 2 >= len(query):
                return _OTHER, 0
            high, low = _DIGITS[query[at + 1]], _DIGITS[query[at + 2]]
            if high < 0 or low < 0:
                return _OTHER, 0
            byte = np.uint8(16 * high + low)
            at += 2
        word[length] = byte
        length += 1
        at += 1
    return at, length


@numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _find_word(word, start, stop, text, starts, low, high):  # type: ignore[no-untyped-def]
    """Find word[start:stop] among the ascending words low to high - 1 by bisection, or return -1."""
    while low < high:
        middle = (low + high) // 2
        at, place, end = start, starts[middle], starts[middle + 1]
        while at < stop and place < end and word[at] == text[place]:
            at += 1
            place += 1
        if at == stop and place == end:
            return middle
        if place == end or (at < stop and word[at] > text[place]):
            low = middle + 1
        else:
            high = middle
    return _OTHER


@numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _place_word(word, length, text, starts, low, high):  # type: ignore[no-untyped-def]
    """Return the position of a word among those of its feature, NaN for any other, or -1 if it may not be UTF-8."""
    first = np.int64(0)  # a literal 0 would have the search compiled twice
    found = _find_word(word, first, length, text, starts, low, high)
    if found < 0:
        while first < length and (word[first] == _SPACE or word[first] == _TAB):
            first += 1
        while length > first and (word[length - 1] == _SPACE or word[length - 1] == _TAB):
            length -= 1
        found = _find_word(word, first, length, text, starts, low, high)
    if found >= 0:
        return float(found - low)
    for i in range(length):
        if word[i] >= _ASCII_END:
            return float(_OTHER)
    return np.nan


@kernel(numba.boolean(_BYTES, _BYTES, _INTS, numba.int64[:, ::1], numba.float64[:, ::1]))
def _read_row(query, text, starts, features, row):  # type: ignore[no-untyped-def]
    """Read name=value for each name in order, joined by &, into the row; false if the query is of another kind.

    `starts` says where each word begins in `text`: first the names, then the categories. Those of a feature are the
    words features[0] to features[1] - 1; one without any takes numbers.
    """
    at = 0
    for feature in range(features.shape[1]):
        if feature > 0:
            if at == len(query) or query[at] != _AND:
                return False
            at += 1
        start = starts[feature]
        length = starts[feature + 1] - start
        if at + length >= len(query) or query[at + length] != _IS:
            return False
        for i in range(length):
            if query[at + i] != text[start + i]:
                return False
        at += length + 1
        if at == len(query) or query[at] == _AND:
            row[0, feature] = np.nan
        elif features[0, feature] == features[1, feature]:
            at = _read_number(query, at, row, feature)
            if at < 0:
                return False
        else:
            word = np.empty(len(query) - at, dtype=np.uint8)
            at, length = _decode_word(query, at, word)
            if at < 0:
                return False
            low, high = features[0, feature], features[1, feature]
            place = _place_word(word, length, text, starts, low, high)
            if place < 0:
                return False
            row[0, feature] = place
    return at == len(query)


class PlainQuery:
    """Reads queries of one model.

    Parameters
    ----------
    names : list of str
        The features in the model's order, each as callers spell it in a query.
    categories : list of (sequence of str or None), one per feature
        The categories of a categorical feature, ascending, whose positions are its values.
    """

    def __init__(self, names: list[str], categories: Sequence[Sequence[str] | None]) -> None:
        spelled = [word.encode() for word in chain(names, *(words or () for words in categories))]
        self._text: Bytes = np.frombuffer(b"".join(spelled), dtype=np.uint8)
        self._starts = np.cumsum([0, *map(len, spelled)], dtype=np.int64)
        ends = len(names) + np.cumsum([len(words or ()) for words in categories], dtype=np.int64)
        self._features = np.stack([np.r_[len(names), ends[:-1]], ends])
        self._shape = (1, len(names))

    def read(self, query: bytes) -> npt.NDArray[np.float64] | None:
        """The row, of shape (1, n_features), or None where the query is not of the plainest kind."""
        row = np.empty(self._shape)
        read = _read_row(
            np.frombuffer(query, dtype=np.uint8), self._text, self._starts, self._features, row
        )
        return row if read else None
