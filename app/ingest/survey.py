"""What a table holds beyond the sums of its columns: how well each column ranks alone, and which rows come twice.

A column that by itself ranks the label nearly perfectly has mostly seen it: an outcome written down as a feature. So
does one that is missing for one class only. And rows that are equal but for their label set a bound on what any ranker
can do. Such things are for people to judge; the profile points at them.

Memory is bounded whatever the table: a column is looked at in up to 131,072 rows, drawn once for all columns and read
back where a table has more, and of the rows' hashes only a share is kept once there are too many.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.ingest.reader import TableReader
from app.ingest.row_hash_kernels import add_column
from app.ingest.row_hashes import Hashes, hash_words
from core.metrics.column import QUANTILES, ColumnSurvey, binary_auc, survey_column

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Json = dict[str, Any]
Callback = Callable[[], object]

LEAK = 0.99
"""A column whose AUC alone, or its mirror image, reaches this is pointed at."""

MOST_ROWS = 1 << 17
MOST_CELLS = 1 << 23
"""Of a table with more it is not worth the memory to hold all; the rows that are looked at are read back."""
MOST_HASHES = 1 << 19
"""Of more, the odd half of all hashes is let go of. Equal rows have equal hashes: they stay, or go, together."""
_MOST_AT_ONCE = 2
_SHRINKAGE = 10.0  # rows of the average kind that a category's share is mixed with
_SEED = 0
_ONE = np.uint64(1)


class Survey:
    """The look at a typed table while it is written, batch by batch, with a label of 0 and 1 where there is one.

    Where the number of rows is known, those to look at are drawn beforehand.
    """

    def __init__(self, features: Sequence[str], label: str | None, rows: int | None = None) -> None:
        self._features = list(features)
        self._label = label
        self._texts: dict[str, _Texts] = {}
        self._duplicates = _Duplicates()
        self._rows = 0
        self._drawn = _draw(MOST_ROWS if rows is None else rows)
        self._most_rows = MOST_ROWS if rows is None else rows
        self._n_held = 0
        self._held: dict[str, list[Floats]] | None = defaultdict(list)

    def add(self, columns: Mapping[str, pa.Array], n_rows: int) -> None:
        """Take the next rows in."""
        first, self._rows = self._rows, self._rows + n_rows
        held = _within(self._drawn, first, n_rows)
        self._n_held += len(held)
        too_many = self._n_held * len(self._features) > MOST_CELLS
        if too_many or self._rows > self._most_rows:
            self._held = None
        hashes = np.zeros(n_rows, dtype=np.uint64)
        for name in self._features:
            values = self._numbers(name, columns[name])
            add_column(hashes, name, values, self._hashes_of(name))
            if self._held is not None:
                self._held[name].append(values if len(held) == n_rows else values[held])
        label = None if self._label is None else columns[self._label].to_numpy()
        self._duplicates.add(hashes, label)
        if label is not None and self._held is not None:
            self._held[str(self._label)].append(label[held])

    def describe(self, path: Path, features: Sequence[str], callback: Callback) -> Json:
        """Survey the features of the table, which by now lies in a file.

        The callback is called again and again; what it raises stops the survey. Returns `columns`, one entry a
        feature by its name, the number of `rows` that they were looked at in, and what `duplicates` there are.
        """
        pa.default_memory_pool().release_unused()  # of what the reading of the table has left behind
        chosen = _draw(self._rows)
        if not np.array_equal(chosen, self._drawn[: len(chosen)]):
            self._held = None
        own = threading.local()

        def read(name: str) -> Floats:
            if self._held is not None and name in self._held:
                return np.concatenate(self._held.pop(name))
            if not hasattr(own, "table"):
                own.table = TableReader(path)
            parts, first = [], 0
            for part in own.table.column(name):
                parts.append(self._numbers(name, part)[_within(chosen, first, len(part))])
                first += len(part)
            return np.concatenate(parts)

        def look(name: str) -> Json:
            if not hasattr(own, "scratch"):
                own.scratch = np.empty(len(chosen))
            values, texts = read(name), self._hashes_of(name)
            return _describe(values, None if texts is None else len(texts), positive, own.scratch)

        positive = None if self._label is None else read(self._label) == 1.0
        with ThreadPoolExecutor(min(_MOST_AT_ONCE, numba.get_num_threads())) as pool:
            try:
                looks = pool.map(look, features)
                duplicates = self._count_duplicates(path, features, callback)  # in the meantime
                columns: dict[str, Json] = {}
                for name, found in zip(features, looks, strict=True):
                    columns[name] = found
                    callback()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return {"rows": len(chosen), "columns": columns, "duplicates": duplicates}

    def _numbers(self, name: str, column: pa.Array) -> Floats:
        """A column as numbers, NaN where missing; of a column of texts their places among the texts so far."""
        if not pa.types.is_dictionary(column.type):
            numbers: Floats = column.to_numpy().astype(np.float64, copy=False)
            return numbers
        return self._texts.setdefault(name, _Texts()).find(column)

    def _hashes_of(self, name: str) -> Hashes | None:
        return self._texts[name].hashes if name in self._texts else None

    def _count_duplicates(self, path: Path, features: Sequence[str], callback: Callback) -> Json:
        if set(features) == set(self._features):
            return self._duplicates.count(with_classes=self._label is not None)
        # What the first rows said of identifiers was wrong.
        duplicates = _Duplicates()
        with TableReader(path) as table:
            for group in range(table.groups):
                label = None if self._label is None else table.read(group, self._label).to_numpy()
                duplicates.add(_hash_group(table, group, features), label)
                callback()
        return duplicates.count(with_classes=self._label is not None)


class _Texts:
    """The distinct texts of a column in the order in which they come, with the hash of each."""

    def __init__(self) -> None:
        self.hashes: Hashes = np.empty(0, dtype=np.uint64)
        self._places: dict[str, int] = {}

    def find(self, column: pa.DictionaryArray) -> Floats:
        """Return the place of each row's text, NaN where it is missing."""
        n = len(column.dictionary)
        codes = column.indices.fill_null(n).to_numpy()
        used = np.flatnonzero(np.bincount(codes, minlength=n + 1)[:n])
        texts = column.dictionary.take(pa.array(used)).to_pylist()
        if new := [text for text in dict.fromkeys(texts) if text not in self._places]:
            self._places |= zip(
                new, range(len(self._places), len(self._places) + len(new)), strict=True
            )
            self.hashes = np.append(self.hashes, hash_words(new))
        places = np.full(n + 1, np.nan)
        places[used] = [self._places[text] for text in texts]
        found: Floats = places[codes]
        return found


class _Duplicates:
    """Counts rows that equal another in every feature, by their hashes in bounded memory."""

    def __init__(self) -> None:
        self._kept: list[Hashes] = []
        self._level = 0

    def add(self, hashes: Hashes, label: npt.NDArray[np.int8] | None) -> None:
        """Take the rows' hashes in, whose lowest bit makes room for the label."""
        words = hashes & ~_ONE
        self._kept.append(self._share(words if label is None else words | label.astype(np.uint64)))
        if sum(map(len, self._kept)) > MOST_HASHES:
            self._level += 1
            self._kept = [self._share(np.concatenate(self._kept))]

    def count(self, *, with_classes: bool) -> Json:
        """Count rows that equal another, and those of them whose equals are of both classes.

        Counts are exact unless `estimated`: then they are those of a share of the rows, scaled up.
        """
        words = np.sort(np.concatenate(self._kept)) if self._kept else np.empty(0, dtype=np.uint64)
        units = words >> _ONE
        starts = np.flatnonzero(np.r_[True, units[1:] != units[:-1]]) if len(units) else units[:0]
        sizes = np.diff(np.r_[starts, len(units)])
        found = {"rows": int(np.sum(sizes[sizes > 1])), "repeated": len(words) - len(starts)}
        if with_classes:
            hits = (
                np.add.reduceat((words & _ONE).astype(np.int64), starts) if len(starts) else sizes
            )
            found["rows_of_both_classes"] = int(np.sum(sizes[(hits > 0) & (hits < sizes)]))
        counts = {name: count << self._level for name, count in found.items()}
        return counts | {"estimated": self._level > 0}

    def _share(self, words: Hashes) -> Hashes:
        """Those of a share of 1 in 2^level of all possible hashes."""
        below = np.uint64((1 << self._level) - 1)
        return words if self._level == 0 else words[(words >> _ONE) & below == 0]


def hash_rows(path: Path, features: Sequence[str]) -> Hashes:
    """The hash of each row's features."""
    with TableReader(path) as table:
        hashes = [_hash_group(table, group, features) for group in range(table.groups)]
    return np.concatenate(hashes) if hashes else np.empty(0, dtype=np.uint64)


def _hash_group(table: TableReader, group: int, features: Sequence[str]) -> Hashes:
    hashes = np.zeros(table.rows_of(group), dtype=np.uint64)
    for name in features:
        column = table.read(group, name)
        if pa.types.is_dictionary(column.type):
            texts = _Texts()
            add_column(hashes, name, texts.find(column), texts.hashes)
        else:
            add_column(hashes, name, column.to_numpy())
    return hashes


def _within(chosen: Rows, first: int, n_rows: int) -> Rows:
    """The places of the chosen ones among so many rows from the first on."""
    start, end = np.searchsorted(chosen, (first, first + n_rows))
    return chosen[start:end] - first


def _draw(rows: int) -> Rows:
    """The rows to look at, ascending: all, or so many drawn at random."""
    if rows <= MOST_ROWS:
        return np.arange(rows)
    rng = np.random.Generator(np.random.Philox(_SEED))
    return np.sort(rng.choice(rows, MOST_ROWS, replace=False, shuffle=False))


def _describe(values: Floats, n_texts: int | None, positive: Mask | None, scratch: Floats) -> Json:
    if n_texts is not None:
        scores = values if positive is None else _shares(values, n_texts, positive)
        survey = survey_column(scores, positive, scratch=scratch)
        found: Json = {"quantiles": None, "histogram": None, "auc": _interval(survey)}
    else:
        survey = survey_column(values, positive, scratch=scratch)
        found = {
            "quantiles": [
                {"at": at, "value": value}
                for at, value in zip(QUANTILES, survey.quantiles, strict=False)
            ],
            "histogram": {"edges": list(survey.edges), "counts": list(survey.counts)},
            "auc": _interval(survey),
        }
    found["missing_auc"] = None
    if positive is not None and 0 < survey.known < len(values):
        missing = np.isnan(values)
        of_positives, gaps = int(positive.sum()), int(missing.sum())
        among = int(np.count_nonzero(missing & positive))
        others = len(values) - of_positives
        found["missing_auc"] = binary_auc(among, of_positives, gaps - among, others)._asdict()
    aucs = [entry["value"] for entry in (found["auc"], found["missing_auc"]) if entry]
    found["leak"] = any(max(auc, 1.0 - auc) >= LEAK for auc in aucs)
    return found


def _interval(survey: ColumnSurvey) -> Json | None:
    return None if survey.auc is None else survey.auc._asdict()


def _shares(codes: Floats, n_texts: int, positive: Mask) -> Floats:
    """Score each row by its category's share of positives among the *other* half of the rows, mixed with the average.

    A row must not judge by its own label: a column of names would else rank without fault.
    """
    rng = np.random.Generator(np.random.Philox(_SEED))
    known = np.flatnonzero(~np.isnan(codes))
    half = (rng.random(len(codes)) < 0.5)[known].astype(np.intp)
    place, is_positive = codes[known].astype(np.intp), positive[known]
    cell = place + n_texts * half
    rows = np.bincount(cell, minlength=2 * n_texts).reshape(2, n_texts)
    hits = np.bincount(cell[is_positive], minlength=2 * n_texts).reshape(2, n_texts)
    with np.errstate(invalid="ignore"):  # a half without a known row teaches nothing
        average = hits.sum(axis=1, keepdims=True) / rows.sum(axis=1, keepdims=True)
    share = (hits + _SHRINKAGE * average) / (rows + _SHRINKAGE)
    # The halves differ in their averages by chance: what counts is the distance to it.
    scores = np.full(len(codes), np.nan)
    scores[known] = (share - average)[1 - half, place]
    return scores
