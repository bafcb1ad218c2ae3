"""A categorical column on its way in: its categories, what breaks their rules, and whether it is one at all.

Text of which nearly every row has a value of its own, as a name or an id has, is *identifier-like*: it would be learnt
by heart and say nothing of rows to come. It stays in the table, but is no feature, unless the caller declares it
categorical.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.services.ingest.evidence import Evidence
from app.services.ingest.faults import PER_COLUMN, BadTable, Fault, Faults, show
from app.services.ingest.missing import MissingTokens
from app.services.ingest.rows import Rows
from app.services.ingest.text import count_codes, encode, find_unfit
from app.services.row_hashes import mix

LEAST_IDENTIFIERS = 20
"""Known values that a column needs to be taken for identifiers: of fewer, nearly all may differ by chance."""
MOSTLY = 0.9
"""Share of the known values that differ, above which text is identifier-like."""
_TOP = 10


@dataclass(frozen=True)
class CategoryLimits:
    """Most categories of a column, and most characters of each."""

    number: int
    length: int


class DistinctCounter:
    """Counts distinct texts in bounded memory: exactly up to 16,384, beyond within some percent.

    Adaptive sampling (Wegman; Flajolet 1990): of the hashes only those with `level` trailing zeros are kept.
    """

    _ROOM = 1 << 14

    def __init__(self) -> None:
        self._kept: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._level = 0

    def add(self, texts: pa.Array) -> None:
        """Take texts in; those that were there before change nothing."""
        values = texts.cast(pa.binary()).to_pylist()
        hashes = mix(np.fromiter(map(zlib.crc32, values), np.uint64, len(values)))
        self._kept = np.union1d(self._kept, self._sample(hashes))
        while len(self._kept) > self._ROOM:
            self._level += 1
            self._kept = self._sample(self._kept)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._kept) << self._level

    def _sample(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        sampled: npt.NDArray[np.uint64] = hashes[hashes & np.uint64((1 << self._level) - 1) == 0]
        return sampled


class TextColumn:
    """One column of text, batch by batch."""

    def __init__(self, name: str, limits: CategoryLimits, *, declared: bool) -> None:
        self.evidence = Evidence()
        self._name = name
        self._limits = limits
        self._declared = declared
        self._rows = 0
        self._known = 0
        self._distinct = DistinctCounter()
        self._counts: dict[str, int] = {}
        self._complete = True  # whether `_counts` has every value
        self._wrong = 0
        self._described: list[Fault] = []

    def take(self, rows: Rows, missing: MissingTokens) -> pa.DictionaryArray:
        """Take the column's part of a batch in, and return it as it is kept."""
        coded = encode(rows.batch.column(self._name), missing)
        counts = count_codes(coded)
        self._rows += len(coded)
        self._known += int(counts.sum())
        if not self._declared:
            self.evidence.weigh(coded)
        wrong = find_unfit(coded.dictionary, self._limits.length) & (counts > 0)
        if wrong.any():
            self._describe(rows, coded, wrong)
            self._let_go()
        present = counts > 0
        self._count(coded.dictionary.filter(pa.array(present)), counts[present])
        return coded

    def is_identifier(self) -> bool:
        """Tell whether the column is identifier-like."""
        return (
            not self._declared
            and self._known >= LEAST_IDENTIFIERS
            and (len(self._counts) or self._distinct.count) > MOSTLY * self._known
        )

    def judge(self, faults: Faults) -> None:
        """Add what breaks the rules of categories. Raises BadTable for too many of them."""
        if self._wrong:
            faults.add_many(self._name, self._wrong, self._described)
        elif not self._complete:
            raise BadTable(
                f"a categorical column must have at most {self._limits.number} categories, "
                f"{show(self._name)} has more; leave it out by drop, or join some of them",
                column=self._name,
                code="too_many_categories",
            )

    def summary(self) -> dict[str, Any]:
        """Return the members of the column's profile that come from its values."""
        summary: dict[str, Any] = {
            "missing": self._rows - self._known,
            "distinct": len(self._counts) if self._complete else self._limits.number,
            "min": None,
            "max": None,
            "mean": None,
        }
        if self._complete and not self.is_identifier():
            top = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
            summary["top"] = [{"value": value, "count": count} for value, count in top]
        return summary

    def _describe(
        self, rows: Rows, coded: pa.DictionaryArray, wrong: npt.NDArray[np.bool_]
    ) -> None:
        codes = coded.indices.fill_null(len(wrong)).to_numpy()
        at = np.flatnonzero(np.append(wrong, False)[codes])
        self._wrong += len(at)
        for row in at[: PER_COLUMN - len(self._described)].tolist():
            value = coded.dictionary[int(codes[row])].as_py()
            rule = f"at most {self._limits.length} characters without NUL"
            detail = f"a category must have {rule}, got {len(value)}: {show(value)}"
            self._described.append(rows.fault(row, self._name, detail))

    def _count(self, values: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        if self._complete and len(values) > self._limits.number:
            self._let_go()
        if not self._complete:
            if not self._declared:
                self._distinct.add(values)
            return
        seen = self._counts
        for value, count in zip(values.to_pylist(), counts.tolist(), strict=True):
            seen[value] = seen.get(value, 0) + count
        if len(seen) > self._limits.number:
            self._let_go()

    def _let_go(self) -> None:
        """From now on do no more than to count the distinct values, which takes little memory."""
        self._complete = False
        if not self._declared:
            self._distinct.add(pa.array(list(self._counts), pa.string()))
        self._counts = {}
