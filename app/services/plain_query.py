"""A row from the plainest of query strings, compiled: all features, in the model's order, in short decimal fractions.

Most callers send such queries, and reading one must not cost more than answering it. Whatever else a query holds
is left to `features.FeatureIndex`, which knows all the rules; here nothing is refused, only left undone.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

_MAX_DIGITS = 18  # as many always fit int64; more may have wrapped around
_EXACT = 1 << 53  # every integer up to here is a float64, and so is every power of ten up to 10**22
_POWERS = 10.0 ** np.arange(_MAX_DIGITS + 1)
_AND, _IS, _MINUS, _POINT, _0, _9 = b"&=-.09"

Bytes = npt.NDArray[np.uint8]
_BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)


@numba.njit(
    numba.boolean(_BYTES, _BYTES, numba.int64[::1], numba.float64[::1], numba.float64[:, ::1]),
    nogil=True,
    cache=True,
)
def _read_row(query, names, ends, powers, row):  # type: ignore[no-untyped-def]
    """Read name=number for each name in order, joined by &, into the row; false if the query is of another kind."""
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
            continue
        # -?digits[.digits], the digits as one integer
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
                return False
        # Both are exact, so one division rounds once: the very float64 that was meant (Clinger 1990).
        if digits == 0 or digits + decimals > _MAX_DIGITS or number > _EXACT:
            return False
        value = number / powers[decimals]
        row[0, feature] = -value if negative else value
    return at == len(query)


class PlainQuery:
    """Reads queries of one model.

    Parameters
    ----------
    names : list of str
        The features in the model's order, each as callers spell it in a query.
    """

    def __init__(self, names: list[str]) -> None:
        spelled = [name.encode() for name in names]
        self._names: Bytes = np.frombuffer(b"".join(spelled), dtype=np.uint8)
        self._ends = np.cumsum([len(name) for name in spelled], dtype=np.int64)

    def read(self, query: bytes) -> npt.NDArray[np.float64] | None:
        """The row, of shape (1, n_features), or None where the query is not of the plainest kind."""
        row = np.empty((1, self._ends.size))
        read = _read_row(
            np.frombuffer(query, dtype=np.uint8), self._names, self._ends, _POWERS, row
        )
        return row if read else None
