"""A row from the plainest of query strings, compiled: all features, in the model's order, none of it encoded.

Numbers are short decimal fractions, words are looked up. Most callers send such queries, and reading one must not cost
more than answering it. Whatever else a query holds is left to `features.FeatureIndex`, which knows all the rules; here
nothing is refused, only left undone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

_MAX_DIGITS = 18  # as many always fit int64; more may have wrapped around
_EXACT = 1 << 53  # every integer up to here is a float64, and so is every power of ten up to 10**22
_POWERS = 10.0 ** np.arange(_MAX_DIGITS + 1)
_AND, _IS, _MINUS, _POINT, _PERCENT, _PLUS, _0, _9 = b"&=-.%+09"
_ASCII_END = 0x80
_NO_NUMBER = -1

Bytes = npt.NDArray[np.uint8]
_BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_FLOATS = numba.float64[::1]
_INTS = numba.int64[::1]


@numba.njit(numba.int64(_BYTES, numba.int64, _FLOATS, numba.float64[:, ::1], numba.int64))
def _read_number(query, at, powers, row, feature):  # type: ignore[no-untyped-def]
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
            return _NO_NUMBER
    # Both are exact, so one division rounds once: the very float64 that was meant (Clinger 1990).
    if digits == 0 or digits + decimals > _MAX_DIGITS or number > _EXACT:
        return _NO_NUMBER
    value = number / powers[decimals]
    row[0, feature] = -value if negative else value
    return at


@numba.njit(numba.int64(_BYTES, numba.int64, numba.int64, _BYTES, _INTS, numba.int64, numba.int64))
def _find_word(query, start, stop, text, starts, low, high):  # type: ignore[no-untyped-def]
    """Find query[start:stop] among the ascending words low to high - 1 by bisection, or return -1."""
    while low < high:
        middle = (low + high) // 2
        at, word, word_end = start, starts[middle], starts[middle + 1]
        while at < stop and word < word_end and query[at] == text[word]:
            at += 1
            word += 1
        if at == stop and word == word_end:
            return middle
        if word == word_end or (at < stop and query[at] > text[word]):
            low = middle + 1
        else:
            high = middle
    return -1


@numba.njit(
    numba.boolean(_BYTES, _BYTES, _INTS, _FLOATS, _BYTES, _INTS, _INTS, numba.float64[:, ::1]),
    nogil=True,
    cache=True,
)
def _read_row(query, names, ends, powers, text, starts, words, row):  # type: ignore[no-untyped-def]
    """Read name=value for each name in order, joined by &, into the row; false if the query is of another kind.

    Words `words[feature]` to `words[feature + 1]` are those of a feature; one without any takes numbers.
    """
    at = 0
    start = 0
    for feature in range(len(ends)):
        if feature > 0:
            if at == len(query) or query[at] != _AND:
                return False
            at += 1
        length = ends[feature] - start
        if at + length >= len(query) or query[at + length] != _IS:
            return False
        for i in range(length):
            if query[at + i] != names[start + i]:
                return False
        at += length + 1
        start = ends[feature]
        if at == len(query) or query[at] == _AND:
            row[0, feature] = np.nan
        elif words[feature] == words[feature + 1]:
            at = _read_number(query, at, powers, row, feature)
            if at < 0:
                return False
        else:
            first = at
            while at < len(query) and query[at] != _AND:
                if query[at] == _PERCENT or query[at] == _PLUS or query[at] >= _ASCII_END:
                    return False
                at += 1
            word = _find_word(query, first, at, text, starts, words[feature], words[feature + 1])
            if word < 0:
                return False
            row[0, feature] = word - words[feature]
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
        self._names, starts = _join(names)
        self._ends = starts[1:]
        self._text, self._starts = _join([word for words in categories for word in words or ()])
        self._words = np.cumsum([0, *(len(words or ()) for words in categories)], dtype=np.int64)

    def read(self, query: bytes) -> npt.NDArray[np.float64] | None:
        """The row, of shape (1, n_features), or None where the query is not of the plainest kind."""
        row = np.empty((1, self._ends.size))
        read = _read_row(
            np.frombuffer(query, dtype=np.uint8),
            self._names,
            self._ends,
            _POWERS,
            self._text,
            self._starts,
            self._words,
            row,
        )
        return row if read else None


def _join(words: Sequence[str]) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """The words' UTF-8 one after the other, and where each begins; the last entry is the end."""
    spelled = [word.encode() for word in words]
    starts = np.cumsum([0, *map(len, spelled)], dtype=np.int64)
    return np.frombuffer(b"".join(spelled), dtype=np.uint8), starts
