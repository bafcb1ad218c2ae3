"""Rows from the plainest of JSON bodies, compiled: numbers and nulls under a list of all the features.

Many rows are mostly sent as `{"columns": […], "data": [[…], …]}`, and to make a Python object of each number takes
longer than to score it. Whatever else a body holds is left to `features.FeatureIndex`, which knows all the rules; here
nothing is refused, only left undone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt
import orjson

from app.services.plain_numbers import MOST_DIGITS, nearest

Floats = npt.NDArray[np.float64]

_HEAD = re.compile(rb'\s*\{\s*"columns"\s*:\s*(\[[^\]]*\])\s*,\s*"data"\s*:\s*\[')
_OTHER = -1  # where something is not plain
_MOST_EXPONENT = 999
_OPEN, _SHUT, _COMMA, _END, _MINUS, _PLUS, _POINT, _0, _9, _E, _e = b"[],}-+.09Ee"
_SPACE, _TAB, _LINE, _RETURN = b" \t\n\r"
_N, _U, _L = b"nul"
_TEN = np.uint64(10)
_BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)


@numba.njit(nogil=True)
def _skip(body, at):  # type: ignore[no-untyped-def]
    """Return where the next byte stands that is no space."""
    while at < len(body) and (
        body[at] == _SPACE or body[at] == _LINE or body[at] == _TAB or body[at] == _RETURN
    ):
        at += 1
    return at


@numba.njit(nogil=True)
def _zeros(body, at):  # type: ignore[no-untyped-def]
    """Count the zeros before the first other digit of 0.00…, that before the point included; `at` is behind that."""
    zeros = 1
    while at < len(body) and body[at] == _0:
        zeros += 1
        at += 1
    return zeros


@numba.njit(nogil=True)
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


@numba.njit(
    numba.int64(_BYTES, numba.int64, numba.float64[:, ::1]),
    nogil=True,
    cache=True,
)
def _read_rows(body, at, X):  # type: ignore[no-untyped-def]
    """Read rows until the list of them and the body end; return how many, or -1 if the body is of another kind."""
    n, width = len(body), X.shape[1]
    row = 0
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
                if at + 4 <= n and body[at] == _N:
                    if body[at + 1] != _U or body[at + 2] != _L or body[at + 3] != _L:
                        return _OTHER
                    X[row, column] = np.nan
                    at += 4
                else:
                    at = _read_number(body, at, X, row, column)
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


def read_plain(body: bytes, names: Sequence[str]) -> Floats | None:
    """The rows of a body whose columns are these features, all of numbers, in any order; None for any other body."""
    head = _HEAD.match(body)
    if head is None:
        return None
    try:
        columns = orjson.loads(head[1])
    except orjson.JSONDecodeError:  # a bracket within a name
        return None
    if len(columns) != len(names) or not all(isinstance(name, str) for name in columns):
        return None
    if columns != list(names) and set(columns) != set(names):
        return None
    # A row has a digit and a comma or bracket for each value: what is no more than brackets gets no room.
    most_rows = (len(body) - head.end()) // (2 * len(names) + 1)
    X = np.empty((min(body.count(b"[", head.end()), most_rows), len(names)))
    rows = _read_rows(np.frombuffer(body, dtype=np.uint8), head.end(), X)
    if rows < 0:
        return None
    X = X[:rows]
    if columns == list(names):
        return X
    place = {name: i for i, name in enumerate(columns)}
    return np.ascontiguousarray(X[:, [place[name] for name in names]])
