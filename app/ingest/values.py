"""Which texts stand for a missing value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.ingest.numerals import read_number

if TYPE_CHECKING:
    import pyarrow as pa


DEFAULT_TOKENS = ("NA", "N/A", "null", "NaN", "?")
SPACES = " \t"
_MOST_SPELLED = 4  # letters of which every mixture of cases is worth listing


class MissingTokens:
    """The empty text and the tokens, in any case, with or without spaces around.

    A token that is a number stands for that number however it is written.
    """

    def __init__(self, tokens: Sequence[str] | None = None) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        self._tokens = DEFAULT_TOKENS if tokens is None else tuple(tokens)
        self._lower = pc.utf8_lower(pa.array(["", *self._tokens], pa.string()))
        self._numbers = np.array([n for n in map(read_number, self._tokens) if n is not None])

    def spellings(self) -> list[str]:
        """List the usual ways to write them, for a reader that compares exactly; others are found later."""
        return sorted({"", *itertools.chain.from_iterable(map(_cases, self._tokens))})

    def tidy(self, column: pa.Array) -> pa.Array:
        """Return text without spaces around, and null where a value is missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.utf8_trim(column.cast(pa.string()), SPACES)
        missing = pc.is_in(pc.utf8_lower(text), self._lower)
        return pc.if_else(missing, pa.scalar(None, pa.string()), text)

    def blank(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return numbers with NaN where one stands for a missing value."""
        if not len(self._numbers):
            return values
        return np.where(np.isin(values, self._numbers), np.nan, values)


def _cases(token: str) -> set[str]:
    if sum(letter.isalpha() for letter in token) <= _MOST_SPELLED:
        return set(map("".join, itertools.product(*((c.lower(), c.upper()) for c in token))))
    return {token, token.lower(), token.upper(), token.capitalize()}
