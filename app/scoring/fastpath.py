"""Rows from the plainest of JSON bodies, compiled: numbers, words and nulls under a list of all the features.

Many rows are mostly sent as `{"columns": […], "data": [[…], …]}`, and to make a Python object of each value takes
longer than to score it. A word is plain without escapes, and so is what stands for one: `true`, `false`, a whole
number. Whatever else a body holds is left to `features.FeatureIndex`, which knows all the rules; here nothing is
refused, only left undone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt
import orjson

from app.scoring.fastpath_numbers import MOST_DIGITS, nearest
from app.scoring.fastpath_words import (
    BYTES,
    EIGHTS,
    WORDS,
    Words,
    by_eights,
    code_of,
    flat,
    hash_quoted,
    hash_text,
)
from core.kernel import kernel

Floats = npt.NDArray[np.float64]

# A regular expression's \s takes form feeds, too, which are no space to JSON.
_HEAD = re.compile(rb'~\{~"columns"~:~(\[[^\]]*\])~,~"data"~:~\['.replace(b"~", rb"[ \t\n\r]*"))
_OTHER = -1  # where something is not plain
_MOST_EXPONENT = 999
_OPEN, _SHUT, _COMMA, _END, _MINUS, _PLUS, _POINT, _0, _9, _E, _e = b"[],}-+.09Ee"
_SPACE, _TAB, _LINE, _RETURN, _QUOTE = b' \t\n\r"'
_NULL, _TRUE, _FALSE = (np.frombuffer(said, np.uint8) for said in (b"null", b"true", b"false"))
_TEN = np.uint64(10)
_MOST_WHOLE = 18  # digits of a number that is an integer to every reader
_FEW_ROWS = 50  # for which room is no matter
_NO_EIGHTS = by_eights(bytes(16))

NUMBER, BOOLEAN, WORD = range(3)
"""What a feature holds."""


@flat
def _skip(body, at):  # type: ignore[no-untyped-def]
    """Return where the next byte stands that is no space."""
    while at < len(body) and (
        body[at] == _SPACE or body[at] == _LINE or body[at] == _TAB or body[at] == _RETURN
    ):
        at += 1
    return at


@flat
def _is_at(body, at, literal):  # type: ignore[no-untyped-def]
    """Whether the body goes on with this."""
    if at + len(literal) > len(body):
        return False
    i = 0
    while i < len(literal) and body[at + i] == literal[i]:
        i += 1
    return i == len(literal)


@flat
def _zeros(body, at):  # type: ignore[no-untyped-def]
    """Count the zeros before the first other digit of 0.00…, that before the point included; `at` is behind that."""
    zeros = 1
    while at < len(body) and body[at] == _0:
        zeros += 1
        at += 1
    return zeros


@flat
def _read_number(body, at, X, row, column):  # type: ignore[no-untyped-def]
    """Read a number as JSON has it, and return where it ends, or -1."""
    n = len(body)
    negative = at < n and body[at] == _MINUS
    if negative:
        at += 1
    if at == n or body[at] < _0 or body[at] > _9:
        return _OTHER
    begins_with_0 = body[at] == _0
    w, power, first = np.uint64(0), 0, at
    while at < n and _0 <= body[at] <= _9:
        w = w * _TEN + np.uint64(body[at] - _0)
        at += 1
    digits = at - first
    if begins_with_0 and digits > 1:
        return _OTHER
    if begins_with_0 and negative and (at == n or body[at] != _POINT):
        return _OTHER  # -0 is an integer, which has no sign
    if at < n and body[at] == _POINT:
        first = at + 1
        at = first
        while at < n and _0 <= body[at] <= _9:
            w = w * _TEN + np.uint64(body[at] - _0)
            at += 1
        if at == first:
            return _OTHER
        power = first - at
        digits += at - first
    if at < n and (body[at] == _e or body[at] == _E):
        at += 1
        downwards = at < n and body[at] == _MINUS
        if at < n and (body[at] == _MINUS or body[at] == _PLUS):
            at += 1
        exponent, begun = 0, at
        while at < n and _0 <= body[at] <= _9 and exponent <= _MOST_EXPONENT:
            exponent = 10 * exponent + (body[at] - _0)
            at += 1
        if at == begun or exponent > _MOST_EXPONENT:
            return _OTHER
        power += -exponent if downwards else exponent
    if digits > MOST_DIGITS and not (begins_with_0 and digits - _zeros(body, first) <= MOST_DIGITS):
        return _OTHER
    value = nearest(w, power)
    if np.isnan(value):
        return _OTHER
    X[row, column] = -value if negative else value
    return at


@flat
def _read_boolean(body, at, X, row, column):  # type: ignore[no-untyped-def]
    """Read true, false, or a number that is 1 or 0, and return where it ends, or -1."""
    if _is_at(body, at, _TRUE):
        X[row, column] = 1.0
        return at + len(_TRUE)
    if _is_at(body, at, _FALSE):
        X[row, column] = 0.0
        return at + len(_FALSE)
    at = _read_number(body, at, X, row, column)
    if at >= 0 and X[row, column] != 0.0 and X[row, column] != 1.0:
        return _OTHER
    return at


@flat
def _end_of_bare_word(body, at):  # type: ignore[no-untyped-def]
    """Return where true, false or a whole number ends that stands for its own text, or -1."""
    if _is_at(body, at, _TRUE):
        return at + len(_TRUE)
    if _is_at(body, at, _FALSE):
        return at + len(_FALSE)
    n, begun = len(body), at
    if at < n and body[at] == _MINUS:
        at += 1
    first = at
    while at < n and _0 <= body[at] <= _9:
        at += 1
    if at == first or at - first > _MOST_WHOLE or (body[first] == _0 and at - begun > 1):
        return _OTHER
    return at


@flat
def _read_word(body, eights, at, X, row, column, feature, words):  # type: ignore[no-untyped-def]
    """Read the text of a category as its position, and return where it ends, or -1."""
    if at < len(body) and body[at] == _QUOTE:
        first = at + 1
        stop, mixed, last = hash_quoted(body, eights, first)
        at = stop + 1
    else:
        first = at
        stop = _end_of_bare_word(body, at)
        at = stop
        if stop >= 0:
            mixed, last = hash_text(body, eights, first, stop)
    if stop < 0:
        return _OTHER
    code = code_of(body, eights, first, stop, mixed, last, feature, words)
    if code < 0:
        return _OTHER
    X[row, column] = code
    return at


@kernel(numba.int64(BYTES, EIGHTS, numba.int64, numba.int64[:, ::1], WORDS, numba.float64[:, ::1]))
def _read_rows(body, eights, at, columns, words, X):  # type: ignore[no-untyped-def]
    """Read rows until the list of them and the body end; return how many, or -1 if the body is of another kind.

    `columns` says of each what it holds, and of which feature it is.
    """
    n, width = len(body), X.shape[1]
    row = np.int64(0)  # a literal 0 would have all that take it compiled once more
    at = _skip(body, at)
    if at < n and body[at] == _SHUT:
        at += 1
    else:
        while True:
            if at == n or body[at] != _OPEN or row == X.shape[0]:
                return _OTHER
            at += 1
            for column in range(width):
                if at < n and body[at] <= _SPACE:
                    at = _skip(body, at)
                if _is_at(body, at, _NULL):
                    X[row, column] = np.nan
                    at += len(_NULL)
                elif columns[0, column] == NUMBER:
                    at = _read_number(body, at, X, row, column)
                elif columns[0, column] == WORD:
                    at = _read_word(body, eights, at, X, row, column, columns[1, column], words)
                else:
                    at = _read_boolean(body, at, X, row, column)
                if at < 0:
                    return _OTHER
                if at < n and body[at] <= _SPACE:
                    at = _skip(body, at)
                if at == n or body[at] != (_COMMA if column < width - 1 else _SHUT):
                    return _OTHER
                at += 1
            row += 1
            at = _skip(body, at)
            if at == n:
                return _OTHER
            at += 1
            if body[at - 1] == _SHUT:
                break
            if body[at - 1] != _COMMA:
                return _OTHER
            at = _skip(body, at)
    at = _skip(body, at)
    if at == n or body[at] != _END:
        return _OTHER
    return row if _skip(body, at + 1) == n else _OTHER


class PlainRows:
    """Reads bodies for one model.

    Parameters
    ----------
    names : list of str
        The features in the model's order.
    kinds : list of int
        What each holds: NUMBER, BOOLEAN or WORD.
    words : Words
        The categories of each.
    """

    def __init__(self, names: list[str], kinds: list[int], words: Words) -> None:
        self._names = names
        self._words = words
        self._has_words = WORD in kinds
        self._features = np.array([kinds, range(len(names))], dtype=np.int64)
        self._place = {name: i for i, name in enumerate(names)}

    def read(self, body: bytes) -> Floats | None:
        """The rows of a body whose columns are these features, in any order; None for one that is not plain."""
        head = _HEAD.match(body)
        if head is None:
            return None
        try:
            columns = orjson.loads(head[1])
        except orjson.JSONDecodeError:  # a bracket within a name
            return None
        if columns == self._names:
            features = self._features
        elif _is_rearranged(columns, self._place):
            features = np.ascontiguousarray(
                self._features[:, [self._place[name] for name in columns]]
            )
        else:
            return None
        # A row has a character and a comma or bracket for each value: what is no more than brackets gets no room.
        most_rows = (len(body) - head.end()) // (2 * len(columns) + 1)
        text = np.frombuffer(body, dtype=np.uint8)
        if most_rows > _FEW_ROWS:  # and often too many: bytes.count would be slower
            most_rows = min(most_rows, int(np.count_nonzero(text[head.end() :] == _OPEN)))
        X = np.empty((most_rows, len(columns)))
        eights = by_eights(body) if self._has_words else _NO_EIGHTS
        rows = _read_rows(text, eights, head.end(), features, self._words, X)
        if rows < 0:
            return None
        X = X[:rows]
        if features is self._features:
            return X
        return np.ascontiguousarray(X[:, np.argsort(features[1])])


def _is_rearranged(columns: Sequence[object], place: dict[str, int]) -> bool:
    """Whether columns are the features in another order, each of them once."""
    if len(columns) != len(place) or not all(isinstance(name, str) for name in columns):
        return False
    return set(columns) == place.keys()
