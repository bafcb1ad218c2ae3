"""Is a column of numbers, of dates or of categories? All its values have a say, not a sample.

A column whose values are dates, more than nine in ten, is one of dates. One in which numbers stand beside words is of
numbers only if they are more than nine in ten of its known values and the words among them look like slips. They look
like codes instead, and the column is categorical:

- where they are many among the *distinct* values, more than one in twenty, and come again: `V58` beside `250.83`, or
  `3+` beside 0, 1 and 2. Those in at most one row of a hundred count so only if there are twenty of them;
- where twenty of them mix letters and digits beside whole numbers: `2A032` beside `75056`.

What looks like a slip is missing, and told (see `Converter`). The caller can settle it by `categorical`, `numeric` and
`missing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest.times import DATE_PATTERN

MOSTLY = 0.9
NUMERIC, BOOLEAN, DATETIME, CATEGORICAL = "numeric", "boolean", "datetime", "categorical"
MANY_WORDS = 20
"""Distinct words beside numbers that are no accident."""
_SHARE_OF_DISTINCT = 0.05
_SHARE_OF_ROWS = 0.01
# What is meant as a number: too large for a double or with a decimal comma too.
_NUMBER_LIKE = (
    r"^[+-]?(([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
)
_WHOLE = "^[0-9]+$"
_MIXED = "[0-9].*[A-Za-z]|[A-Za-z].*[0-9]"
TRUTH = pa.array(["true", "false"])


@dataclass
class Evidence:
    """What a column's known values look like: rows, and distinct values, that are numbers, booleans, dates and words.

    `mixed` are the distinct words of letters and digits, `whole` tells whether no number has a sign, a point or an
    exponent.
    """

    numbers: int = 0
    booleans: int = 0
    dates: int = 0
    words: int = 0
    distinct_numbers: int = 0
    distinct_others: int = 0
    mixed: int = 0
    whole: bool = True

    def weigh(self, values: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        """Take distinct tidy texts in, each with the number of rows that have it."""
        number = _mask(pc.match_substring_regex(values, _NUMBER_LIKE))
        self.numbers += int(counts[number].sum())
        self.distinct_numbers += int(np.count_nonzero(number))
        if number.any() and self.whole:
            self.whole = bool(
                pc.all(pc.match_substring_regex(values.filter(number), _WHOLE)).as_py()
            )
        others, rows = values.filter(pa.array(~number)), counts[~number]
        if not len(others):
            return
        boolean = _mask(pc.is_in(pc.utf8_lower(others), TRUTH))
        date = _mask(pc.match_substring_regex(others, DATE_PATTERN))
        mixed = _mask(pc.match_substring_regex(others, _MIXED)) & ~date
        self.booleans += int(rows[boolean].sum())
        self.dates += int(rows[date].sum())
        self.words += int(rows[~(boolean | date)].sum())
        self.distinct_others += len(others)
        self.mixed += int(np.count_nonzero(mixed))

    def add_numbers(self, rows: int, distinct: int, *, whole: bool) -> None:
        """Take values in that are known to be numbers."""
        self.numbers += rows
        self.distinct_numbers += distinct
        self.whole = self.whole and whole

    @property
    def known(self) -> int:
        """Values that are not missing."""
        return self.numbers + self.booleans + self.dates + self.words

    def type(self) -> str:
        """Tell what the column is of; without a single value it counts as one of numbers."""
        known = self.known
        if self.dates > MOSTLY * known:
            return DATETIME
        if self.numbers == known:
            return NUMERIC
        if self.booleans == known:
            return BOOLEAN
        return NUMERIC if self.numbers > MOSTLY * known and not self._has_codes() else CATEGORICAL

    def text_type(self) -> str:
        """Tell the same of a column whose values are text by their type, be they digits."""
        return DATETIME if self.dates > MOSTLY * self.known else CATEGORICAL

    def _has_codes(self) -> bool:
        others = self.known - self.numbers
        many = self.distinct_others >= MANY_WORDS
        often = others > _SHARE_OF_ROWS * self.known and others > self.distinct_others
        distinct = self.distinct_numbers + self.distinct_others
        if self.distinct_others > _SHARE_OF_DISTINCT * distinct and (many or often):
            return True
        return self.whole and self.mixed >= MANY_WORDS


def weigh(counts: Mapping[str, int]) -> Evidence:
    """Return the evidence of distinct texts and the numbers of their rows."""
    evidence = Evidence()
    rows = np.fromiter(counts.values(), np.int64, len(counts))
    evidence.weigh(pa.array(list(counts), pa.string()), rows)
    return evidence


def _mask(column: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = column.to_numpy(zero_copy_only=False)
    return mask
