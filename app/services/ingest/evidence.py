"""Is a column of numbers, of dates or of categories? All its values have a say, not a sample.

A column whose values are dates, more than nine in ten, is one of dates, and the others are taken for mistakes. Else a
column with a value that is neither a number nor a boolean is text, and so categorical. But where more than nine in
ten known values are numbers, the others are taken for mistakes and told with their lines: to make categories of a
whole column of numbers for one slip of the pen would be the worse surprise. The caller can settle it by `categorical`
or `missing`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from app.services.ingest.faults import Faults
from app.services.ingest.missing import MissingTokens
from app.services.ingest.rows import Source
from app.services.ingest.text import count_codes, encode
from app.services.times import DATE_PATTERN

MOSTLY = 0.9
# What is meant as a number: too large for a double or with a decimal comma too.
_NUMBER_LIKE = (
    r"^[+-]?(([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
)
TRUTH = pa.array(["true", "false"])


@dataclass
class Evidence:
    """How many of a column's known values look like numbers, booleans, dates and text."""

    numbers: int = 0
    booleans: int = 0
    dates: int = 0
    texts: int = 0

    def weigh(self, coded: pa.DictionaryArray) -> None:
        """Take the tidy texts of a batch in."""
        values, counts = coded.dictionary, count_codes(coded)
        number = pc.match_substring_regex(values, _NUMBER_LIKE).to_numpy(zero_copy_only=False)
        boolean = pc.is_in(pc.utf8_lower(values), TRUTH).to_numpy(zero_copy_only=False)
        date = pc.match_substring_regex(values, DATE_PATTERN).to_numpy(zero_copy_only=False)
        found = [int(counts[mask].sum()) for mask in (number, boolean, date)]
        self.numbers += found[0]
        self.booleans += found[1]
        self.dates += found[2]
        self.texts += int(counts.sum()) - sum(found)

    @property
    def known(self) -> int:
        """Values that are not missing."""
        return self.numbers + self.booleans + self.dates + self.texts

    def speaks_for_dates(self) -> bool:
        """Tell whether the column is one of dates."""
        return self.dates > MOSTLY * self.known

    def speaks_for_text(self) -> bool:
        """Tell whether the column is categorical."""
        others = self.texts + self.dates
        return others > 0 and self.numbers <= MOSTLY * self.known and not self.speaks_for_dates()


@dataclass(frozen=True)
class Found:
    """Which columns are of text, and which of dates; the others are of numbers or booleans."""

    text: Collection[str]
    dates: Collection[str]


def find_types(source: Source, columns: Collection[str], missing: MissingTokens) -> Found:
    """Tell which of the columns are text, and which dates: by all rows, or by the first ones if the source is hasty."""
    evidence = {name: Evidence() for name in columns}
    faults = Faults()  # rows at fault are told when the table is built
    for rows in source.batches(faults, list(columns)) if columns else ():
        for name, found in evidence.items():
            found.weigh(encode(rows.batch.column(name), missing))
        if source.hasty:
            break
    return Found(
        {name for name, found in evidence.items() if found.speaks_for_text()},
        {name for name, found in evidence.items() if found.speaks_for_dates()},
    )
