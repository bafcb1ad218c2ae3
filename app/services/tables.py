"""Ready tables as matrices, and their split into a training and a validation part."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.errors import Invalid

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.intp]

LEAST_PER_CLASS = 2
"""Rows of each class that a part needs, to be fitted on or to be judged by."""

_BLOCK = 1 << 15
_FACTOR_1 = np.uint64(0xBF58476D1CE4E5B9)
_FACTOR_2 = np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True)
class Columns:
    """The columns of a typed table by their roles, the features in the order that the model will have."""

    features: Sequence[str]
    label: str | None
    weight: str | None
    group: str | None


@dataclass(frozen=True)
class Table:
    """A table in memory: X of shape (rows, features) in Fortran order with NaN for missing, y with 1 for positive
    (0 everywhere where there is no label), and weights and hashed groups where it has them.
    """

    X: Floats
    y: npt.NDArray[np.int8]
    weight: Floats | None
    group: Hashes | None

    def take(self, rows: Rows) -> Table:
        """Return a copy of some rows, in their order."""
        X = np.empty((len(rows), self.X.shape[1]), order="F")
        for feature in range(X.shape[1]):
            np.take(self.X[:, feature], rows, out=X[:, feature])
        return Table(
            X,
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            None if self.group is None else self.group[rows],
        )


def read_table(path: Path, columns: Columns) -> Table:
    """Read a typed table, row group by row group: beside the matrix only one group is ever in memory."""
    numeric = [*columns.features, *([columns.weight] if columns.weight else [])]
    with pq.ParquetFile(path) as file:
        rows = file.metadata.num_rows
        place = {name: index for index, name in enumerate(file.schema_arrow.names)}
        X = np.empty((rows, len(columns.features)), order="F")
        y = np.zeros(rows, dtype=np.int8)
        weight = np.empty(rows) if columns.weight else None
        group = np.empty(rows, dtype=np.uint64) if columns.group else None
        wanted = [*numeric, *(name for name in (columns.label, columns.group) if name)]
        start = 0
        for number in range(file.num_row_groups):
            part = file.read_row_group(number, columns=sorted(wanted, key=place.__getitem__))
            end = start + part.num_rows
            for feature, name in enumerate(columns.features):
                X[start:end, feature] = part.column(name).to_numpy()
            if columns.label is not None:
                y[start:end] = part.column(columns.label).to_numpy()
            if weight is not None:
                weight[start:end] = part.column(columns.weight).to_numpy()
            if group is not None:
                group[start:end] = _hash_text(part.column(columns.group))
            start = end
    return Table(X, y, weight, group)


def split(table: Table, names: Sequence[str], fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Divide the rows into training and validation, both in the order of the table.

    Rows with equal hash stay together: those of a group, or without groups those of equal features. Such units are
    put into two strata, with a positive row and without, sorted by hash within each, and cut where the share of
    the stratum comes nearest to `fraction`. So the split depends on seed and content alone, not on the order of
    rows or columns. Raises Invalid when a part would lack a class.
    """
    hashes = hash_units(table, names, fraction, seed)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, len(ordered)])
    positives = np.add.reduceat(table.y[order].astype(np.int64), starts)
    chosen = np.zeros(len(starts), dtype=bool)
    for stratum, mass in (((positives > 0), positives), ((positives == 0), sizes)):
        units = np.flatnonzero(stratum)
        chosen[units[: cut(mass[units], fraction)]] = True
    validation = np.zeros(len(hashes), dtype=bool)
    validation[order] = np.repeat(chosen, sizes)
    train_rows, validation_rows = np.flatnonzero(~validation), np.flatnonzero(validation)
    check_classes(table.y[train_rows], "the training part")
    check_classes(table.y[validation_rows], "the validation part")
    return train_rows, validation_rows


def hash_units(table: Table, names: Sequence[str], fraction: float, seed: int) -> Hashes:
    """Give each row the hash of the unit that it is split with: its group, or without groups its features."""
    if not 0 < fraction < 1:
        raise Invalid(f"validation.fraction must lie between 0 and 1, got {fraction}")
    hashes = _hash_rows(table.X, names) if table.group is None else table.group
    return mix(hashes ^ np.uint64(seed % 2**64))


def check_classes(y: npt.NDArray[np.int8], what: str) -> None:
    """Raise Invalid unless there are enough rows of each class."""
    positives = int(np.count_nonzero(y))
    negatives = len(y) - positives
    if min(positives, negatives) < LEAST_PER_CLASS:
        raise Invalid(
            f"{what} must have at least {LEAST_PER_CLASS} rows of each class, "
            f"got {positives} positive and {negatives} negative",
            code="too_few_rows",
        )


def cut(mass: npt.NDArray[np.int64], fraction: float) -> int:
    """Return how many units, from the first, come nearest to that share of the mass, leaving both sides some."""
    if len(mass) < 2:
        return 0
    sums = np.cumsum(mass)
    nearest = int(np.argmin(np.abs(sums[:-1] - fraction * sums[-1])))
    return nearest + 1


def _hash_rows(X: Floats, names: Sequence[str]) -> Hashes:
    """Hash the rows of X: the sum over the columns of their values' bits, each mixed with its column's name."""
    keys = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") for name in names]
    hashes = np.zeros(len(X), dtype=np.uint64)
    for start in range(0, len(X), _BLOCK):  # a block's columns stay in the processor's cache
        block = X[start : start + _BLOCK]
        total = hashes[start : start + _BLOCK]
        for feature, key in enumerate(keys):
            values = block[:, feature] + 0.0  # a copy in which -0.0 is 0.0
            values[np.isnan(values)] = np.nan
            total += mix(values.view(np.uint64) ^ np.uint64(key))
    return hashes


def mix(values: Hashes) -> Hashes:
    """Scramble 64 bits one to one: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    values = values ^ (values >> np.uint64(30))
    values *= _FACTOR_1
    values ^= values >> np.uint64(27)
    values *= _FACTOR_2
    values ^= values >> np.uint64(31)
    return values


def _hash_text(column: object) -> Hashes:
    """Hash texts by the first eight bytes of their SHA-256; each distinct one once."""
    coded = pc.dictionary_encode(column).combine_chunks()
    hashes = [
        int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        for text in coded.dictionary.to_pylist()
    ]
    codes: Rows = coded.indices.to_numpy()
    return np.array(hashes, dtype=np.uint64)[codes]
