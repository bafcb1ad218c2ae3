"""Detection of a column's type from its values, and conversion of batches to numbers, categories, labels and groups.

A value of a feature that does not fit its column is a value error: it counts as missing, and is reported. In a label,
an item, a weight, a group or a query it is an error of the table.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.ingest.errors import BadTable, Errors, RowError, brief, show
from app.ingest.formats import changes, fields_of
from app.ingest.profile import (
    BOUND,
    MAX_DISTINCT,
    MIN_IDENTIFIERS,
    Floats,
    NumberProfile,
    TextProfile,
    as_json,
    from_json,
)
from app.ingest.roles import Roles
from app.ingest.rows import MAX_NAME_LENGTH, Rows, mix
from app.ingest.value_columns import (
    NAMES,
    TRUTH,
    Mask,
    MissingTokens,
    as_categories,
    as_text,
    bare_numbers,
    count_codes,
    encode,
    find_unfit,
    is_dated,
    is_text,
    may_be_missing,
    propose_notations,
    read_column,
    shape,
    to_mask,
)
from app.ingest.values import (
    BOOLEAN,
    CATEGORICAL,
    DATE_WITH_DOTS,
    DATE_WITH_SLASHES,
    DATETIME,
    DAY_FIRST,
    ISO_DATE,
    MAX_WHOLE,
    MONTH_FIRST,
    NUMERIC,
    PADDED,
    SPACES,
    USUAL,
    Notation,
)
from core.base.target import MAX_GRADE, WEIGHT_RULE, are_weights

TYPE_FRACTION = 0.9
"""Fraction of the known values above which a column is numeric, of dates, or (if they differ) an identifier."""
MANY_WORDS = 20
"""Distinct words from which a column of mostly numbers is categorical: fewer may be mistakes."""
_SHARE_OF_DISTINCT = 0.05
_SHARE_OF_ROWS = 0.01
# Texts that mean a number, also one too large for a double or with a decimal comma.
_NUMBER_LIKE = (
    r"^[+-]?(([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?)$"
)
# Numbers with marks between thousands; 1.234 may be a number itself.
_GROUPED = (
    r"^[+-]?[1-9][0-9]{0,2}((\.[0-9]{3})+,[0-9]+|(,[0-9]{3})+\.[0-9]+|([.,][0-9]{3}){2,}"
    "|([ '\u2019\u00a0\u2009\u202f][0-9]{3})+([.,][0-9]*)?)$"
)
_SLASHED = "^[0-9]{1,2}[/-]"
_MONTH = "(?i:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-zä]*[.]?"
_OTHER_DATES = (
    rf"^([0-9]{{1,2}}[.]?[ /-]?{_MONTH},?[ /-]?[0-9]{{4}}|{_MONTH} [0-9]{{1,2}},? [0-9]{{4}}|"
    r"[0-9]{4}[/.](0?[1-9]|1[0-2])[/.][0-3]?[0-9])([T: ].*)?$"
)
"""Dates that are not read: 31JAN2024 and 31-Jan-2024 of SAS and Oracle, Jan 31, 2024, and 2024/01/31."""
_WHOLE = "^[0-9]+$"
_MIN_CODE_DIGITS = 3  # 01 to 12 are months, and 00 to 23 hours
_MIXED = "[0-9].*[A-Za-z]|[A-Za-z].*[0-9]"


@dataclass
class LeadingZeros:
    """Whole numbers with leading zeros in a column: their rows, and the alphabetically first. `shortest` and `longest`
    are the digits of all whole numbers (0 before the first).
    """

    rows: int = 0
    example: str = ""
    shortest: int = 0
    longest: int = 0

    def add(self, padded: pa.Array, rows: int) -> None:
        """Count texts with leading zeros, which are in so many rows."""
        least = pc.min(padded).as_py()
        if least is not None:
            self.rows += rows
            self.example = min(self.example or least, least)
            self.add_lengths(padded)

    def add_lengths(self, texts: pa.Array) -> None:
        """Count the digits of unsigned whole numbers."""
        found = pc.min_max(pc.utf8_length(texts))
        if found["min"].is_valid:
            self._widen(found["min"].as_py(), found["max"].as_py())

    def add_range(self, low: float, high: float) -> None:
        """Count the digits of whole numbers in this range, written without leading zeros."""
        if 0.0 <= low <= high < MAX_WHOLE:
            self._widen(len(str(int(low))), len(str(int(high))))

    def _widen(self, shortest: int, longest: int) -> None:
        self.shortest = min(self.shortest or shortest, shortest)
        self.longest = max(self.longest, longest)

    def absorb(self, rows: int, example: str, shortest: int, longest: int) -> None:
        """Add the statistics of further rows."""
        self.rows += rows
        self.example = min(self.example or example, example or self.example)
        if longest:
            self._widen(shortest, longest)

    def are_codes(self) -> bool:
        """Return True for codes such as postcodes: some begin with zero, all have equally many digits, at least 3."""
        return self.rows > 0 and self.shortest == self.longest >= _MIN_CODE_DIGITS


@dataclass
class Evidence:
    """Counts of a column's known values, by rows and by distinct values: numbers, booleans, dates and words.

    Dates with slashes are counted separately, because each may determine the order of day and month: 31/01/2026 is
    `day_first`, 01/31/2026 `month_first`, 03/04/2026 `either`. `mixed` counts distinct words of letters and digits;
    `whole` is True if no number has a sign, a point or an exponent. `zeros` has the numbers with leading zeros.
    """

    notation: Notation = USUAL
    """What says which marks stand between thousands."""
    numbers: int = 0
    booleans: int = 0
    dates: int = 0
    day_first: int = 0
    month_first: int = 0
    either: int = 0
    words: int = 0
    distinct_numbers: int = 0
    distinct_others: int = 0
    mixed: int = 0
    whole: bool = True
    zeros: LeadingZeros = field(default_factory=LeadingZeros)

    def weigh(self, values: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        """Count distinct normalized texts by their rows, except those that are missing in a typed column."""
        known = to_mask(pc.invert(may_be_missing(values)))
        values, counts = values.filter(pa.array(known)), counts[known]
        grouped = f"|{self.notation.grouped}" if self.notation.thousands else ""
        plain = bare_numbers(values)
        number = to_mask(pc.match_substring_regex(plain, _NUMBER_LIKE + grouped))
        self.numbers += int(counts[number].sum())
        self.distinct_numbers += int(np.count_nonzero(number))
        if number.any():
            self._weigh_zeros(plain.filter(number), counts[number])
        others, rows = values.filter(pa.array(~number)), counts[~number]
        if not len(others):
            return
        boolean = to_mask(pc.is_in(pc.utf8_lower(others), TRUTH))
        date = to_mask(pc.match_substring_regex(others, f"{ISO_DATE}|{DATE_WITH_DOTS}"))
        self.dates += int(rows[date].sum())
        if pc.any(pc.match_substring_regex(others, _SLASHED)).as_py():
            day, month = (
                to_mask(pc.match_substring_regex(others, DATE_WITH_SLASHES[order]))
                for order in (DAY_FIRST, MONTH_FIRST)
            )
            self.day_first += int(rows[day & ~month].sum())
            self.month_first += int(rows[month & ~day].sum())
            self.either += int(rows[day & month].sum())
            date |= day | month
        mixed = to_mask(pc.match_substring_regex(others, _MIXED)) & ~date
        self.booleans += int(rows[boolean].sum())
        self.words += int(rows[~(boolean | date)].sum())
        self.distinct_others += len(others)
        self.mixed += int(np.count_nonzero(mixed))

    def _weigh_zeros(self, numbers: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        """Count leading zeros, and the digits of whole numbers."""
        digits = to_mask(pc.match_substring_regex(numbers, _WHOLE))
        self.whole = self.whole and bool(digits.all())
        padded = to_mask(pc.match_substring_regex(numbers, PADDED))
        self.zeros.add(numbers.filter(padded), int(counts[padded].sum()))
        self.zeros.add_lengths(numbers.filter(digits))

    def add_numbers(self, rows: int, distinct: int, *, whole: bool) -> None:
        self.numbers += rows
        self.distinct_numbers += distinct
        self.whole = self.whole and whole

    def state(self) -> dict[str, Any]:
        """Return the counts as JSON, for `absorb`."""
        aside = ("notation", "zeros")  # the latter do not matter for dates
        return {name: value for name, value in vars(self).items() if name not in aside}

    def absorb(self, state: Mapping[str, Any]) -> None:
        """Add the counts of further rows, from `state`."""
        for name, value in state.items():
            own = getattr(self, name)
            setattr(self, name, own and value if name == "whole" else own + value)

    def is_empty(self) -> bool:
        return self.known == 0

    @property
    def known(self) -> int:
        """The number of values that are not missing."""
        slashed = self.day_first + self.month_first + self.either
        return self.numbers + self.booleans + self.dates + slashed + self.words

    def has_dates(self, order: str | None) -> bool:
        """Return True if more than 90 % of the values are dates; those with slashes count if they have this order."""
        slashed = {DAY_FIRST: self.day_first, MONTH_FIRST: self.month_first}
        dates = self.dates + (self.either + slashed[order] if order is not None else 0)
        return dates > TYPE_FRACTION * self.known

    def orders(self) -> list[str]:
        """Return the possible orders of day and month; empty unless the column has dates with slashes."""
        found = [order for order in (DAY_FIRST, MONTH_FIRST) if self.has_dates(order)]
        if self.has_dates(None):
            return []
        if len(found) == 2 and bool(self.day_first) != bool(self.month_first):
            return [DAY_FIRST if self.day_first else MONTH_FIRST]
        return found

    def type(self, order: str | None = None) -> str:
        """A column without values is numeric."""
        known = self.known
        if self.has_dates(order):
            return DATETIME
        if self.booleans == known > 0:
            return BOOLEAN
        if self.whole and self.zeros.are_codes():
            return CATEGORICAL
        if self.numbers == known:
            return NUMERIC
        return (
            NUMERIC
            if self.numbers > TYPE_FRACTION * known and not self._has_codes()
            else CATEGORICAL
        )

    def text_type(self, order: str | None = None) -> str:
        """Return the type of a column that the file declares as text, even if all values are digits."""
        return DATETIME if self.has_dates(order) else CATEGORICAL

    def _has_codes(self) -> bool:
        others = self.known - self.numbers
        many = self.distinct_others >= MANY_WORDS
        often = others > _SHARE_OF_ROWS * self.known and others > self.distinct_others
        distinct = self.distinct_numbers + self.distinct_others
        if self.distinct_others > _SHARE_OF_DISTINCT * distinct and (many or often):
            return True
        return self.whole and self.mixed >= MANY_WORDS


def weigh(counts: Mapping[str, int], notation: Notation) -> Evidence:
    evidence = Evidence(notation)
    if counts:
        rows = np.fromiter(counts.values(), np.int64, len(counts))
        evidence.weigh(pa.array(list(counts), pa.string()), rows)
    return evidence


_TOP = 10
MAX_WORDS = 1 << 18
"""Most distinct words whose rows are counted; later words are only counted as distinct."""
MAX_WAITING = 1 << 16
_MAX_SPELLED = 100
"""Most spellings of words for missing values that are counted."""
_MIN_CODES = 2
MAX_STRAY = 5
"""Most words beside numbers that are taken for words of a missing value: more of them may be codes."""


@dataclass(frozen=True)
class CategoryLimits:
    """The maximum number of categories of a column, and of characters of a category."""

    number: int
    length: int


@dataclass(frozen=True)
class UnreadableWords:
    """The few words of a column that otherwise contains `what` (numbers or dates), their rows, all distinct values."""

    what: str
    words: list[str]
    rows: int
    distinct: int


class DistinctCounter:
    """Counts distinct texts in bounded memory: exactly up to 16,384, above that within a few percent.

    Adaptive sampling (Wegman; Flajolet 1990): only hashes with `level` trailing zeros are stored.
    """

    ROOM = 1 << 14

    def __init__(self) -> None:
        self._kept: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._level = 0

    def add(self, texts: pa.Array) -> None:
        values = texts.cast(pa.binary()).to_pylist()
        hashes = mix(np.fromiter(map(zlib.crc32, values), np.uint64, len(values)))
        self._kept = np.union1d(self._kept, self._sample(hashes))
        while len(self._kept) > self.ROOM:
            self._level += 1
            self._kept = self._sample(self._kept)

    def state(self) -> dict[str, Any]:
        """Return the state as JSON, for `absorb`."""
        return {"level": self._level, "kept": as_json(self._kept)}

    def absorb(self, state: Mapping[str, Any]) -> None:
        """Add the texts of another counter from its `state`."""
        self._level = max(self._level, state["level"])
        both = np.union1d(self._kept, from_json(state["kept"], np.uint64))
        self._kept = self._sample(both)
        while len(self._kept) > self.ROOM:
            self._level += 1
            self._kept = self._sample(self._kept)

    @property
    def count(self) -> int:
        return len(self._kept) << self._level

    def _sample(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        sampled: npt.NDArray[np.uint64] = hashes[hashes & np.uint64((1 << self._level) - 1) == 0]
        return sampled


class TextColumn:
    """A text column, read batch by batch. With `kept`, other words are pooled as missing."""

    def __init__(
        self,
        name: str,
        limits: CategoryLimits,
        notation: Notation,
        *,
        declared: bool,
        kept: pa.Array | None = None,
    ) -> None:
        self.pooled = 0
        """Number of rows whose word is pooled."""
        self.undercounted = False
        """True if rows that were absorbed had more words than are counted, and earlier rows may know those words."""
        self._name = name
        self._limits = limits
        self._notation = notation
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
        self._spelled: Counter[str] = Counter()

    def take(self, rows: Rows, missing: MissingTokens, value_errors: Errors) -> pa.DictionaryArray:
        """Return a batch as it is stored, and count its words. Texts too long for a category are errors."""
        column = rows.batch.column(self._name)
        raw = column.dictionary_encode() if is_text(column.type) else column
        coded = encode(raw, missing)
        if raw is not column and coded.null_count > raw.null_count:
            _add_counts(self._spelled, missing.spelled(raw), _MAX_SPELLED)
        counts = count_codes(coded)
        unfit = find_unfit(coded.dictionary, self._limits.length) & (counts > 0)
        if unfit.any():
            self._report(rows, coded, unfit, value_errors)
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
        return self._known

    @property
    def distinct(self) -> int:
        """The number of distinct words: exact up to 2¹⁸."""
        self._merge()
        return len(self._words) if self._beyond is None else self._beyond.count

    def evidence(self) -> Evidence:
        """The evidence of the words for the column's type."""
        self._merge()
        found = Evidence(self._notation)
        found.weigh(self._words, self._counts)
        return found

    def is_identifier(self) -> bool:
        """Return True if nearly all values differ."""
        return (
            not self._declared
            and self._known >= MIN_IDENTIFIERS
            and self.distinct > TYPE_FRACTION * self._known
        )

    def grouped_number(self) -> tuple[str, list[Notation]] | None:
        """Return the smallest number with thousands separators (1.234,56) and its possible notations, if nearly all
        values are such numbers. None otherwise, for a declared categorical column, and for a declared separator.
        """
        self._merge()
        if self._notation.thousands:
            return None
        for words, counts in (
            (self._words[:1000], self._counts[:1000]),
            (self._words, self._counts),
        ):
            grouped = pc.match_substring_regex(words, _GROUPED)
            numbers = to_mask(pc.or_(grouped, pc.match_substring_regex(words, _NUMBER_LIKE)))
            if self._declared or not counts[numbers].sum() > TYPE_FRACTION * counts.sum():
                return None  # in most columns the first words are enough to know
        least: str | None = pc.min(words.filter(grouped)).as_py()
        return None if least is None else (least, propose_notations(words, self._notation))

    def unread_date(self) -> tuple[str, list[str]] | None:
        """Return the smallest date with slashes and its possible orders of day and month, if nearly all values are such
        dates. None otherwise, and for a declared categorical column.
        """
        self._merge()
        slashed = pc.match_substring_regex(self._words[:1000], _SLASHED)
        if (
            self._declared
            or not pc.any(slashed).as_py()
            or not (orders := self.evidence().orders())
        ):
            return None
        dates = pc.match_substring_regex(self._words, DATE_WITH_SLASHES[orders[0]])
        return pc.min(self._words.filter(dates)).as_py(), orders

    def other_date(self) -> str | None:
        """Return the smallest word if nearly all are dates that are not read; else None, as for a declared column."""
        self._merge()
        if self._declared:
            return None
        for words, counts in (
            (self._words[:1000], self._counts[:1000]),
            (self._words, self._counts),
        ):
            dates = to_mask(pc.match_substring_regex(words, _OTHER_DATES))
            if not counts[dates].sum() > TYPE_FRACTION * counts.sum():
                return None  # in most columns the first words are enough to know
        found: str = pc.min(self._words.filter(pa.array(dates))).as_py()
        return found

    def codes(self) -> LeadingZeros | None:
        """Return the leading zeros that made the column text; None for others, and for a declared categorical one."""
        self._merge()
        padded = pc.match_substring_regex(self._words, PADDED)
        if self._declared or not pc.any(padded).as_py():
            return None
        found = self.evidence()
        return found.zeros if found.whole and found.zeros.are_codes() else None

    def stray_words(self, *, of_text: bool) -> UnreadableWords | None:
        """Return the few words in a column of numbers or dates. None if there are none or many, and for a declared
        categorical column. `of_text`: numbers count as words, too.
        """
        self._merge()
        known = to_mask(pc.invert(may_be_missing(self._words)))
        words, counts = self._words.filter(pa.array(known)), self._counts[known]
        if self._declared:
            return None
        patterns = {"dates": f"{ISO_DATE}|{DATE_WITH_DOTS}"}
        if not of_text:
            patterns["numbers"] = _NUMBER_LIKE
        for what, pattern in patterns.items():
            stray = ~to_mask(pc.match_substring_regex(words, pattern))
            found = words.filter(pa.array(stray)).to_pylist()
            if 0 < len(found) <= MAX_STRAY and len(words) - len(found) > TYPE_FRACTION * len(words):
                return UnreadableWords(what, sorted(found), int(counts[stray].sum()), len(words))
        return None

    def coded_missing(self) -> tuple[str, int] | None:
        """Return the most frequent word for missing values that may be a category, and its rows; None if there is none.

        Such a word is written like the categories and, unless it begins with a capital, as long as some.
        """
        words = self._ordered().column("word").to_pylist() if self._spelled else []
        if len(words) < _MIN_CODES or self.is_identifier():
            return None
        shapes, lengths = {*map(shape, words)}, {*map(len, words)}
        for word, rows in self._spelled.most_common():
            like = shape(word)
            if like in shapes and (like == "title" or min(lengths) <= len(word) <= max(lengths)):
                return word, rows
        return None

    def most_frequent(self) -> pa.Array | None:
        """Return the words that remain categories; None if all words can."""
        if (self.distinct <= self._limits.number and not self._unfit) or self.is_identifier():
            return None
        return self._ordered()[: self._limits.number].column("word").combine_chunks()

    def pool(self, coded: pa.DictionaryArray, kept: pa.Array) -> pa.DictionaryArray:
        """Replace all words but the kept ones by missing values, and count the affected rows."""
        others = ~pc.is_in(coded.dictionary, kept).to_numpy(zero_copy_only=False)
        fit = ~find_unfit(coded.dictionary, self._limits.length)
        self.pooled += int(count_codes(coded)[others & fit].sum())
        return _without(coded, others)

    def state(self) -> dict[str, Any]:
        """Return the state as JSON, for `absorb`."""
        self._merge()
        return {
            "rows": self._rows,
            "known": self._known,
            "unfit": self._unfit,
            "words": self._words.to_pylist(),
            "counts": as_json(self._counts),
            "beyond": None if self._beyond is None else self._beyond.state(),
            "spelled": self._spelled,
        }

    def absorb(self, state: Mapping[str, Any]) -> None:
        """Add the words of further rows from `state`."""
        # Of the first rows the words that are counted are the same, and later ones would not be counted either way.
        self.undercounted |= state["beyond"] is not None and self._rows > 0
        self._rows += state["rows"]
        self._known += state["known"]
        _add_counts(self._spelled, state["spelled"], _MAX_SPELLED)
        self._unfit += state["unfit"]
        self._count(pa.array(state["words"], pa.string()), from_json(state["counts"], np.int64))
        if state["beyond"] is not None:
            self._merge()
            if self._beyond is None:
                self._beyond = DistinctCounter()
                self._beyond.add(self._words)
            self._beyond.absorb(state["beyond"])

    def recount(self, batches: Iterable[pa.DictionaryArray]) -> None:
        """Count the words of all rows again, and discard the absorbed counts."""
        self._waiting, self._n_waiting = [], 0
        self._words, self._counts = pa.array([], pa.string()), np.empty(0, dtype=np.int64)
        self._beyond, self.undercounted = None, False
        for coded in batches:
            codes = coded.indices.drop_null().to_numpy()
            used, first, counts = np.unique(codes, return_index=True, return_counts=True)
            order = np.argsort(first)  # words are counted in the order in which they come
            self._count(coded.dictionary.take(pa.array(used[order])), counts[order])

    def _ordered(self) -> pa.Table:
        table = pa.table({"word": self._words, "rows": self._counts})
        fit = table.filter(pa.array(~find_unfit(self._words, self._limits.length)))
        return fit.sort_by([("rows", "descending"), ("word", "ascending")])

    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = {
            "missing": self._rows - self._known,
            "distinct": min(self.distinct, self._limits.number),
            "min": None,
            "max": None,
            "mean": None,
        }
        if self.distinct > self._limits.number:
            summary[BOUND] = True
        if not self.is_identifier():
            top = self._ordered()[:_TOP].to_pylist()
            summary["top"] = [{"value": one["word"], "count": one["rows"]} for one in top]
        return summary

    def _report(
        self,
        rows: Rows,
        coded: pa.DictionaryArray,
        unfit: npt.NDArray[np.bool_],
        value_errors: Errors,
    ) -> None:
        """Report the rows whose text is too long for a category."""
        codes = coded.indices.fill_null(len(unfit)).to_numpy()

        def detail(row: int) -> str:
            value = coded.dictionary[int(codes[row])].as_py()
            rule = f"at most {self._limits.length} characters (RANKWRIGHT_MAX_CATEGORY_LENGTH) without NUL"
            return f"a category must have {rule}, got {len(value)}: {show(value)}"

        rows.report(value_errors, self._name, np.append(unfit, False)[codes], detail)

    def _count(self, words: pa.Array, counts: npt.NDArray[np.int64]) -> None:
        self._waiting.append((words, counts))
        self._n_waiting += len(words)
        if self._n_waiting > MAX_WAITING:
            self._merge()

    def _merge(self) -> None:
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
        if self._beyond is None and len(self._words) > MAX_WORDS:
            self._beyond = DistinctCounter()
            self._beyond.add(self._words)
            self._words, self._counts = self._words[:MAX_WORDS], self._counts[:MAX_WORDS]


def _without(coded: pa.DictionaryArray, which: npt.NDArray[np.bool_]) -> pa.DictionaryArray:
    """Return the column with the values of the mask missing."""
    codes = coded.indices.fill_null(len(which)).to_numpy()
    away = np.append(which, True)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=away), coded.dictionary)


class ItemNames:
    """Collects item names, finds repeats at the end. The first `rows_before` are the parent's, without line numbers."""

    def __init__(self) -> None:
        self.rows_before = 0
        self.parts: list[tuple[int, int]] = []
        """For each part of a table of several files its number and its first row."""
        self._texts: list[pa.Array] = []
        self._lines: list[npt.NDArray[np.int64]] = []

    def add(self, rows: Rows, text: pa.Array) -> None:
        self._texts.append(text.cast(pa.large_string()))  # all of them may be over 2 GiB
        if rows.lines is not None:
            self._lines.append(rows.lines)

    def report_repeated(self, column: str, errors: Errors) -> None:
        """Report an error for every name that an earlier row has, too."""
        names = pa.chunked_array(self._texts, pa.large_string())
        coded = names.combine_chunks().dictionary_encode()
        code = coded.indices.to_numpy()
        repeated = np.ones(len(code), dtype=bool)
        first = np.unique(code, return_index=True)[1]
        repeated[first] = False
        if not repeated.any():
            return
        at = np.flatnonzero(repeated)
        lines = np.concatenate(self._lines) if self._lines else None
        described = []
        for row in at[: errors.wanted(column)].tolist():
            name = show(coded.dictionary[int(code[row])].as_py())
            detail = f"item {name} is already in {self._describe_row(int(first[code[row]]), lines)}"
            number = row - self.rows_before
            if lines is None:
                where = self._describe_row(row, lines)
                part = self._part_of(number)
                described.append(
                    RowError(f"{where}: {detail}", None, column, number + 1, part and part[0])
                )
            else:
                described.append(RowError(detail, int(lines[number]), column))
        errors.add_many(column, len(at), described)

    def _describe_row(self, row: int, lines: npt.NDArray[np.int64] | None) -> str:
        number = row - self.rows_before
        if number < 0:
            return "the version before"
        if part := self._part_of(number):
            return f"row {number - part[1] + 1} of part {part[0]}"
        return f"row {number + 1}" if lines is None else f"line {int(lines[number])}"

    def _part_of(self, number: int) -> tuple[int, int] | None:
        """Return the number and the first row of the part that contains a row; None for a table of one file."""
        return next((part for part in reversed(self.parts) if part[1] <= number), None)

    def summary(self) -> dict[str, object]:
        """Return the profile of the item column."""
        count = sum(map(len, self._texts))
        return {
            "missing": 0,
            "distinct": min(count, MAX_DISTINCT),
            **({BOUND: True} if count > MAX_DISTINCT else {}),
            "min": None,
            "max": None,
            "mean": None,
        }


_INFINITE = frozenset({"inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
_HINT = (
    ", unlike nearly all other values; list the string for missing values in missing, or the "
    "column in categorical"
)
_MAX_DISTINCT_ERRORS = 1 << 14
"""Most distinct value errors of a column that are kept; beyond that only their number is known."""
_MAX_LABELS = 1000


def holds_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def check_type(name: str, kind: pa.DataType, *, text: bool) -> None:
    """Raise BadTable unless a typed column can be read as numbers or, if `text`, as categories."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    types = pa.types
    if not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
        or (text and (is_text(kind) or is_dated(kind)))
    ):
        allowed = "numeric, boolean, text, dates or times" if text else "numeric or boolean"
        raise BadTable(
            f"column {show(name)} has the type {brief(kind)}; it must be {allowed}",
            column=name,
            code="unsupported_type",
        )


class Converter:
    """Converts batches to rows of the typed table, and updates the profile of every column.

    For each column with too many words, `kept` has those that are not pooled. `pairs` has for each label the negative
    value and the name of the positive class, then the values of a class of several. With `rest`, every other value of
    the label is negative.
    """

    hint = _HINT
    """The end of a value error's description."""

    def __init__(
        self,
        roles: Roles,
        pairs: Mapping[str, tuple[str, ...]],
        types: Mapping[str, str],
        kept: Mapping[str, pa.Array],
        limits: CategoryLimits,
        missing: MissingTokens,
        errors: Errors,
        notation: Notation = USUAL,
        *,
        order_found: bool = False,
        rest: bool = False,
        strict: bool = False,
    ) -> None:
        self.roles = roles
        self.pairs = pairs
        self.types = dict(types)
        self.errors = errors
        self.value_errors = Errors()
        self.text = {
            name: TextColumn(
                name, limits, notation, declared=name in roles.categorical, kept=kept.get(name)
            )
            for name in roles.features
            if types[name] == CATEGORICAL
        }
        self._missing = missing
        self._notation = notation
        # The order of day and month is a guess from the first rows, which later rows may contradict.
        self._dated = {
            name: Evidence(notation)
            for name in roles.features
            if order_found and types[name] == DATETIME
        }
        self._rest = rest
        self._strict = strict
        numbers = [name for name in roles.features if name not in self.text]
        self.profiles = {
            name: NumberProfile() for name in [*numbers, *([roles.weight] if roles.weight else [])]
        }
        self.label_values: dict[str, Counter[str]] = {label: Counter() for label in roles.labels}
        self.group_profile = TextProfile()
        self.query_profile = TextProfile()
        self.grade_counts = [0] * (MAX_GRADE + 1)
        self.items = ItemNames()
        self.class_counts = {label: [0, 0] for label in roles.labels}
        self.unlabelled = Errors()
        self.weight_sum = 0.0
        self.rows = 0
        self._odd: dict[str, Counter[str]] = {}
        self.zeros = {name: LeadingZeros() for name in numbers if types[name] == NUMERIC}
        """Of each numeric feature."""

    def evidence(self, name: str) -> Evidence:
        if name in self.text:
            return self.text[name].evidence()
        if name in self._dated and not self._dated[name].is_empty():
            return self._dated[name]
        profile = self.profiles[name]
        found = weigh(self._odd.get(name, {}), self._notation)
        if self.types[name] == DATETIME:
            found.dates += profile.known
        elif self.types[name] == BOOLEAN:
            found.booleans += profile.known
        else:
            found.add_numbers(profile.known, profile.distinct, whole=profile.whole)
            found.zeros = self.zeros[name]
        return found

    @property
    def odd(self) -> Mapping[str, int]:
        """The features with value errors, each with the number of distinct erroneous values."""
        return {name: len(values) for name, values in self._odd.items() if name in self.types}

    def odd_values(self, name: str) -> list[str]:
        """Return the distinct erroneous values, the most frequent first."""
        return [value for value, _ in self._odd.get(name, Counter()).most_common()]

    @property
    def padded(self) -> list[str]:
        """The numeric features with leading zeros in some values."""
        return [name for name, found in self.zeros.items() if found.rows]

    def propose_notations(self, *names: str) -> list[Notation]:
        """Return the notations in which the value errors and number-like words would be numbers; empty if the thousands
        separator is declared.
        """
        if self._notation.thousands:
            return []
        texts = [
            text
            for name in names
            if self.types.get(name) != DATETIME
            for text in self._odd.get(name, ())
        ]
        words = (self.text[name].grouped_number() for name in names if name in self.text)
        texts += [each[0] for each in words if each is not None]
        return propose_notations(pa.array(texts, pa.string()), self._notation)

    def state(self) -> dict[str, Any]:
        """Return the statistics of all rows as JSON, for `absorb`; without item names."""
        return {
            "rows": self.rows,
            "weight_sum": min(self.weight_sum, sys.float_info.max),  # JSON has no infinity
            "grade_counts": self.grade_counts,
            "class_counts": self.class_counts,
            "label_values": self.label_values,
            "odd": self._odd,
            "zeros": {name: list(vars(found).values()) for name, found in self.zeros.items()},
            "dated": {name: found.state() for name, found in self._dated.items()},
            "group": self.group_profile.state(),
            "query": self.query_profile.state(),
            "errors": self.errors.state(),
            "value_errors": self.value_errors.state(),
            "unlabelled": self.unlabelled.state(),
            "profiles": {name: profile.state() for name, profile in self.profiles.items()},
            "text": {name: column.state() for name, column in self.text.items()},
        }

    def absorb(self, state: Mapping[str, Any], part: int) -> None:
        """Add the statistics of the rows of the table's next file, which a converter with the same types has read."""
        self.rows += state["rows"]
        self.weight_sum += state["weight_sum"]
        self.grade_counts = [
            a + b for a, b in zip(self.grade_counts, state["grade_counts"], strict=True)
        ]
        for label, counts in state["class_counts"].items():
            for value, count in enumerate(counts):
                self.class_counts[label][value] += count
        for label, values in state["label_values"].items():
            _add_counts(self.label_values[label], values, _MAX_LABELS)
        for name, values in state["odd"].items():
            _add_counts(self._odd.setdefault(name, Counter()), values, _MAX_DISTINCT_ERRORS)
        for name, zeros in state.get("zeros", {}).items():
            self.zeros[name].absorb(*zeros)
        for name, found in state.get("dated", {}).items():
            self._dated.setdefault(name, Evidence(self._notation)).absorb(found)
        self.group_profile.absorb(state["group"])
        self.query_profile.absorb(state["query"])
        self.errors.absorb(state["errors"], part)
        self.value_errors.absorb(state["value_errors"], part)
        self.unlabelled.absorb(state["unlabelled"], part)
        for name, profile in self.profiles.items():
            profile.absorb(state["profiles"][name])
        for name, column in self.text.items():
            column.absorb(state["text"][name])

    def convert(self, rows: Rows) -> list[pa.Array]:
        """Return the columns of the typed table, in order. After an error the result is undefined."""
        if len(self.roles.labels) == 1 and not self._strict:
            rows = self._labelled(rows, self.roles.labels[0])
        self.rows += rows.batch.num_rows
        arrays = []
        for name in self.roles.features:
            if name in self.text:
                arrays.append(self.text[name].take(rows, self._missing, self.value_errors))
            else:
                arrays.append(pa.array(self._feature(rows, name)))
        read_label = self._grade if self.roles.graded else self._label
        arrays += [read_label(rows, label) for label in self.roles.labels]
        if self.roles.item:
            arrays.append(self._item(rows, self.roles.item))
        if self.roles.weight:
            arrays.append(self._weight(rows, self.roles.weight))
        if self.roles.group:
            arrays.append(self._counted_names(rows, self.roles.group, "group", self.group_profile))
        if self.roles.query:
            arrays.append(self._counted_names(rows, self.roles.query, "query", self.query_profile))
        return arrays

    def _labelled(self, rows: Rows, label: str) -> Rows:
        text = as_categories(rows.batch.column(label), self._missing)
        if not text.null_count:
            return rows
        without = to_mask(pc.is_null(text))
        rows.report(self.unlabelled, label, without, lambda _row: "the label is missing")
        return rows.keep(~without)

    def _feature(self, rows: Rows, name: str) -> Floats:
        column, kind = rows.batch.column(name), self.types[name]
        values, bad = read_column(column, kind, self._missing, self._notation)
        if name in self._dated and not is_dated(column.type):
            coded = encode(column, self._missing)
            counts = count_codes(coded)
            known = pa.array(counts > 0)
            self._dated[name].weigh(coded.dictionary.filter(known), counts[counts > 0])
        if bad.any():

            def detail(row: int) -> str:
                if kind == DATETIME:
                    text = as_text(column.slice(row, 1), self._missing)[0].as_py()
                    unsaid = self._notation.dates is None and re.match(_SLASHED, text)
                    order = "; set dates=day_first or dates=month_first" if unsaid else ""
                    return f"{show(text)} is not {self._notation.date_rule}{order or self.hint}"
                return _what_is_wrong(
                    column[row].as_py(), kind == BOOLEAN, self.hint, self._notation
                )

            self._slip(rows, name, bad, detail, self.value_errors)
            values = np.where(bad, np.nan, values)
        ends = self.profiles[name].update(values)
        if kind == NUMERIC:
            self._note_zeros(self.zeros[name], column, values, ends)
        return values

    def _note_zeros(
        self, zeros: LeadingZeros, column: pa.Array, values: Floats, ends: tuple[float, float]
    ) -> None:
        """Count a numeric column's leading zeros and digits; typed ones have none. ends: least and greatest value."""
        if is_text(column.type):
            padded = to_mask(pc.match_substring_regex(column, PADDED)) & ~np.isnan(values)
            if padded.any():
                texts = pc.utf8_trim(column.filter(pa.array(padded)), SPACES)
                zeros.add(texts, len(texts))
                others = values[~padded & ~np.isnan(values)]
                ends = (others.min(initial=np.inf), others.max(initial=-np.inf))
        zeros.add_range(*ends)

    def _slip(
        self, rows: Rows, name: str, bad: Mask, detail: Callable[[int], str], errors: Errors
    ) -> None:
        """Report a column's erroneous values, and add them to the evidence for its type."""
        rows.report(errors, name, bad, detail)
        texts = as_text(rows.batch.column(name).filter(pa.array(bad)), self._missing)
        odd = self._odd.setdefault(name, Counter())
        _add_counts(odd, _counts_of(texts), _MAX_DISTINCT_ERRORS)

    def _label(self, rows: Rows, name: str) -> pa.Array:
        """Return 0 for negative, 1 for positive; other values are errors."""
        pair = self.pairs[name]
        text = as_categories(rows.batch.column(name), self._missing)
        if self._rest and len(pair) >= 2:
            codes = pc.cast(pc.is_in(text, pa.array(pair[1:], pa.string())), pa.int32())
        else:
            found = pc.index_in(text, pa.array(pair, pa.string()))
            codes = pc.min_element_wise(found, pa.scalar(1, pa.int32()), skip_nulls=False)
        codes = pc.if_else(pc.is_valid(text), codes, pa.scalar(None, pa.int32()))
        self._note_values(name, text)
        bad = to_mask(pc.is_null(codes))
        if bad.any():
            beside = " and ".join(show(value) for value in pair[:2])

            def detail(row: int) -> str:
                value = text[row].as_py()
                if value is None:
                    return "the label is missing"
                return f"{show(value)} is a third value of the label, in addition to {beside}"

            rows.report(self.errors, name, bad, detail)
        labels = codes.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int8)
        for value, count in enumerate(np.bincount(labels, minlength=2).tolist()):
            self.class_counts[name][value] += count
        return pa.array(labels)

    def _grade(self, rows: Rows, name: str) -> pa.Array:
        column = rows.batch.column(name)
        values, unread = read_column(column, NUMERIC, self._missing, self._notation)
        fits = (values >= 0) & (values <= MAX_GRADE)  # False for NaN
        fits &= ~unread
        bad = ~fits | (np.where(fits, values, 0.0) % 1 != 0)
        if bad.any():

            def detail(row: int) -> str:
                value = as_text(column.slice(row, 1), self._missing)[0].as_py()
                if value is None:
                    return "the label is missing"
                return f"a grade must be a whole number from 0 to {MAX_GRADE}, got {show(value)}"

            rows.report(self.errors, name, bad, detail)
        grades = np.where(bad, 0.0, values).astype(np.int8)
        for grade, count in enumerate(np.bincount(grades[~bad]).tolist()):
            self.grade_counts[grade] += count
        return pa.array(grades)

    def _note_values(self, name: str, text: pa.Array) -> None:
        _add_counts(self.label_values[name], _counts_of(text.drop_null()), _MAX_LABELS)

    def _weight(self, rows: Rows, name: str) -> pa.Array:
        column = rows.batch.column(name)
        values, reported = read_column(column, NUMERIC, self._missing, self._notation)
        if reported.any():

            def odd(row: int) -> str:
                return _what_is_wrong(column[row].as_py(), False, "", self._notation)

            self._slip(rows, name, reported, odd, self.errors)
            values = np.where(reported, np.nan, values)
        self.profiles[name].update(values)
        bad = ~(are_weights(values) | reported)
        if bad.any():

            def detail(row: int) -> str:
                return (
                    "a weight must not be missing"
                    if np.isnan(values[row])
                    else f"a weight must be {WEIGHT_RULE}, got {values[row]:g}"
                )

            rows.report(self.errors, name, bad, detail)
        self.weight_sum += float(values[~bad].sum())
        return pa.array(values)

    def _item(self, rows: Rows, name: str) -> pa.Array:
        text = self._names(rows, name, "item")
        self.items.add(rows, text)
        return text

    def _names(self, rows: Rows, name: str, role: str) -> pa.Array:
        text = as_text(rows.batch.column(name), NAMES)
        bad = to_mask(pc.is_null(text))
        rows.report(self.errors, name, bad, lambda _row: f"the {role} must not be missing")
        unfit = find_unfit(text, MAX_NAME_LENGTH)
        rule = f"the {role} must have at most {MAX_NAME_LENGTH} characters without NUL"
        rows.report(self.errors, name, unfit, lambda row: f"{rule}, got {show(text[row].as_py())}")
        return text

    def _counted_names(self, rows: Rows, name: str, role: str, profile: TextProfile) -> pa.Array:
        text = self._names(rows, name, role)
        profile.update(_counts_of(text.drop_null()))
        return text


def _counts_of(texts: pa.Array) -> dict[str, int]:
    found = pc.value_counts(texts)
    return dict(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True))


def _add_counts(counts: Counter[str], more: Mapping[str, int], most: int) -> None:
    """Add counts of texts; new texts are ignored once there are `most`."""
    for value, count in more.items():
        if value in counts or len(counts) < most:
            counts[value] += count


def _what_is_wrong(value: object, boolean: bool, hint: str, notation: Notation) -> str:
    """Return the message for a value that is not a number or a boolean."""
    text = str(value).strip(SPACES)
    if boolean:
        return f"{show(text)} is neither true nor false, unlike nearly all other values"
    if text.lower() in _INFINITE:
        return f"{show(text)} is not a finite number"
    if notation.read_number(text) is not None:
        return f"{show(text)} is outside the range of a float64"
    wrong = f"{show(text)} is not a number"
    if notation.thousands:
        words = fields_of(notation)
        if re.search(notation.mark, text) and re.search("[0-9]", text):
            return (
                f"{wrong} with thousands={words['thousands']} and decimal={words['decimal']}: thousands "
                "separators must be between groups of three digits, before the decimal separator"
            )
        return wrong + hint
    found = propose_notations(pa.array([text]), notation)
    if not found:
        return wrong + hint
    said = [
        " and ".join(f"{field}={word}" for field, word in changes(each, notation).items())
        for each in found
    ]
    plain = [each.plain(text).replace(".", notation.decimal) for each in found]
    if len(found) > 1:
        ways = ", or ".join(f"{how} if it is {text}" for how, text in zip(said, plain, strict=True))
        return f"{wrong}; set {ways}"
    if found[0].thousands:
        return f"{wrong}: it has thousands separators; set {said[0]}, or write {show(plain[0])}"
    mark = "comma" if notation.decimal == "," else "point"
    return f"{wrong}; write the decimal {mark}: {show(plain[0])}, or set {said[0]}"
