"""Rows that equal another in every feature, counted by their hashes in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from app.services.ingest.reader import TableReader
from app.services.row_hashes import Hashes, add_column

Json = dict[str, Any]
Callback = Callable[[], object]

MOST_HASHES = 1 << 19
"""Of more, the odd half of all hashes is let go of. Equal rows have equal hashes: they stay, or go, together."""

_ONE = np.uint64(1)


def count_duplicates(
    path: Path, features: Sequence[str], label: str | None, callback: Callback
) -> Json:
    """Count rows that equal another in every feature, and those of them whose equals are of both classes.

    Counts are exact unless `estimated`: then they are those of a share of the rows, scaled up.
    """
    kept: list[Hashes] = []
    level = 0
    with TableReader(path) as table:
        for group in range(table.groups):
            words = _words(table, group, features, label)
            kept.append(_share(words, level))
            if sum(map(len, kept)) > MOST_HASHES:
                level += 1
                kept = [_share(np.concatenate(kept), level)]
            callback()
    words = np.concatenate(kept) if kept else np.empty(0, dtype=np.uint64)
    found = _count(words, with_classes=label is not None)
    return {name: count << level for name, count in found.items()} | {"estimated": level > 0}


def hash_rows(path: Path, features: Sequence[str]) -> Hashes:
    """The hash of each row's features; the lowest bit is 0."""
    with TableReader(path) as table:
        words = [_words(table, group, features, None) for group in range(table.groups)]
    return np.concatenate(words) if words else np.empty(0, dtype=np.uint64)


def _words(table: TableReader, group: int, features: Sequence[str], label: str | None) -> Hashes:
    """The hash of each row's features, with its label in the lowest bit."""
    hashes = np.zeros(table.rows_of(group), dtype=np.uint64)
    for name in features:
        column = table.read(group, name)
        if pa.types.is_dictionary(column.type):
            codes = column.indices.cast(pa.float64()).fill_null(np.nan).to_numpy()
            add_column(hashes, name, codes, column.dictionary.to_pylist())
        else:
            add_column(hashes, name, column.to_numpy())
    words = hashes & ~_ONE
    return words if label is None else words | table.read(group, label).to_numpy().astype(np.uint64)


def _share(words: Hashes, level: int) -> Hashes:
    """Those of a share of 1 in 2^level of all possible hashes."""
    below = np.uint64((1 << level) - 1)
    return words if level == 0 else words[(words >> _ONE) & below == 0]


def _count(words: Hashes, *, with_classes: bool) -> dict[str, int]:
    words = np.sort(words)
    units = words >> _ONE
    starts = np.flatnonzero(np.r_[True, units[1:] != units[:-1]]) if len(units) else units[:0]
    sizes = np.diff(np.r_[starts, len(units)])
    found = {"rows": int(np.sum(sizes[sizes > 1])), "repeated": len(words) - len(starts)}
    if with_classes:
        hits = np.add.reduceat((words & _ONE).astype(np.int64), starts) if len(starts) else sizes
        found["rows_of_both_classes"] = int(np.sum(sizes[(hits > 0) & (hits < sizes)]))
    return found
