"""A categorical column on its way in: its categories, what breaks their rules, and whether it is one at all.

Text of which nearly every row has a value of its own, as a name or an id has, is *identifier-like*: it would be learnt
by heart and say nothing of rows to come. It stays in the table, but is no feature, unless the caller declares it
categorical. Of other columns with too many words the rarest are pooled: they count as missing, as every word does that
a model does not know, so that a row to score is treated as one to learn from.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest.errors import Faults, show
from app.ingest.evidence import Evidence
from app.ingest.row_hashes import mix
from app.ingest.rows import Rows
from app.ingest.value_columns import count_codes, encode, find_unfit
from app.ingest.values import MissingTokens

LEAST_IDENTIFIERS = 20
"""Known values that a column needs to be taken for identifiers: of fewer, nearly all may differ by chance."""
MOSTLY = 0.9
"""Share of the known values that differ, above which text is identifier-like."""
_TOP = 10
_MOST_WORDS = 1 << 18
"""Distinct words whose rows are counted; of those that come first when there are more."""
_MOST_WAITING = 1 << 16


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
    """One column of text, batch by batch. With `kept`, all other words are pooled."""

    def __init__(
        self, name: str, limits: CategoryLimits, *, declared: bool, kept: pa.Array | None = None
    ) -> None:
        self.pooled = 0
        """Rows whose words are pooled."""
        self._name = name
        self._limits = limits
        self._declared = declared
        self._kept = kept
        self._rows = 0
        self._known = 0
        self._unfit = 0
        self._waiting: list[tuple[pa.Array, npt.NDArray[np.int64]]] = []
        self._n_waiting = 0
        self._words = pa.array([], pa.string())
        self._counts = np.empty(0, dtype=np.int64)
        self._beyond: DistinctCounter | None = None

    def take(self, rows: Rows, missing: MissingTokens, slips: Faults) -> pa.DictionaryArray:
        """Take the column's part of a batch in, and return it as it is kept; what is no category goes to `slips`."""
        coded = encode(rows.batch.column(self._name), missing)
        counts = count_codes(coded)
        unfit = find_unfit(coded.dictionary, self._limits.length) & (counts > 0)
        if unfit.any():
            self._report(rows, coded, unfit, slips)
            self._unfit += int(np.count_nonzero(unfit))
        self._rows += len(coded)
        self._known += int(counts.sum())
        present = counts > 0
        self._count(coded.dictionary.filter(pa.array(present)), counts[present])
        if self._kept is not None:
            others = ~pc.is_in(coded.dictionary, self._kept).to_numpy(zero_copy_only=False)
            self.pooled += int(counts[others & ~unfit].sum())
            coded = _without(coded, others)
        return coded

    @property
    def known(self) -> int:
        """Values that are not missing."""
        return self._known

    @property
    def distinct(self) -> int:
        """Number of words: exact up to a quarter of a million."""
        self._merge()
        return len(self._words) if self._beyond is None else self._beyond.count

    def evidence(self) -> Evidence:
        """What the words look like."""
        self._merge()
        found = Evidence()
        found.weigh(self._words, self._counts)
        return found

    def is_identifier(self) -> bool:
        """Tell whether the column is identifier-like."""
        return (
            not self._declared
            and self._known >= LEAST_IDENTIFIERS
            and self.distinct > MOSTLY * self._known
        )

    def most_frequent(self) -> pa.Array | None:
        """The words to keep, as many as may be and the most frequent, where some may not stay."""
        if (self.distinct <= self._limits.number and not self._unfit) or self.is_identifier():
            return None
        return self._ordered()[: self._limits.number].column("word").combine_chunks()

    def _ordered(self) -> pa.Table:
        """The words that may be categories, the most frequent first."""
        table = pa.table({"word": self._words, "rows": self._counts})
        fit = table.filter(pa.array(~find_unfit(self._words, self._limits.length)))
        return fit.sort_by([("rows", "descending"), ("word", "ascending")])

    def summary(self) -> dict[str, Any]:
        """Return the members of the column's profile that come from its values."""
        summary: dict[str, Any] = {
            "missing": self._rows - self._known,
            "distinct": min(self.distinct, self._limits.number),
            "min": None,
            "max": None,
            "mean": None,
        }
        if not self.is_identifier():
            top = self._ordered()[:_TOP].to_pylist()
            summary["top"] = [{"value": one["word"], "count": one["rows"]} for one in top]
        return summary

    def _report(
        self, rows: Rows, coded: pa.DictionaryArray, unfit: npt.NDArray[np.bool_], slips: Faults
    ) -> None:
        codes = coded.indices.fill_null(len(unfit)).to_numpy()
        at = np.flatnonzero(np.append(unfit, False)[codes])
        described = []
        for row in at[: slips.wanted(self._name)].tolist():
            value = coded.dictionary[int(codes[row])].as_py()
            rule = f"at most {self._limits.length} characters without NUL"
            detail = f"a category must have {rule}, got {len(value)}: {show(value)}"
            described.append(rows.fault(row, self._name, detail))
        slips.add_many(self._name, len(at), described)

    def _count(self, words: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        self._waiting.append((words, counts))
        self._n_waiting += len(words)
        if self._n_waiting > _MOST_WAITING:
            self._merge()

    def _merge(self) -> None:
        """Add the counts of the batches up."""
        if not self._waiting:
            return
        words = pa.chunked_array([self._words, *(words for words, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
        self._waiting, self._n_waiting = [], 0
        if self._beyond is not None:
            self._beyond.add(words.combine_chunks())
            counts = counts.copy()
            known = pc.is_in(words, self._words).to_numpy()
            words, counts = words.filter(pa.array(known)), counts[known]
        coded = words.combine_chunks().dictionary_encode()
        self._words = coded.dictionary
        sums = np.zeros(len(self._words), dtype=np.int64)
        np.add.at(sums, coded.indices.to_numpy(), counts)
        self._counts = sums
        if self._beyond is None and len(self._words) > _MOST_WORDS:
            self._beyond = DistinctCounter()
            self._beyond.add(self._words)
            self._words, self._counts = self._words[:_MOST_WORDS], self._counts[:_MOST_WORDS]


def _without(coded: pa.DictionaryArray, which: npt.NDArray[np.bool_]) -> pa.DictionaryArray:
    """The same with some values missing."""
    codes = coded.indices.fill_null(len(which)).to_numpy()
    away = np.append(which, True)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=away), coded.dictionary)
