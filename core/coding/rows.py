"""Row lists with the positives first, their weights, and their division into shards."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.base.columns import ROWS_AT_ONCE
from core.base.shards import OwnShards, Piece, Shards, add_in_order
from core.errors import InvalidData

from . import stored
from .bins import Bins, Codes, code_columns

Floats = npt.NDArray[np.float64]

MAX_ROWS = 1 << 32


def positives_first(positive: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.uint32], int]:
    """Return row indices, positives first, and the number of positives. InvalidData: too many rows for uint32."""
    if len(positive) >= MAX_ROWS:
        raise InvalidData(f"a table must have fewer than {MAX_ROWS:,} rows, got {len(positive):,}")
    rows, n_positives = np.empty(len(positive), dtype=np.uint32), int(np.count_nonzero(positive))
    places = [0, n_positives]
    for start in range(0, len(positive), ROWS_AT_ONCE):  # a list of all would take 8 bytes a row
        some = positive[start : start + ROWS_AT_ONCE]
        for k, of_class in enumerate((some, ~some)):
            own = start + np.flatnonzero(of_class)
            rows[places[k] : places[k] + len(own)] = own
            places[k] += len(own)
    return rows, n_positives


def take_weights(weight: Floats, rows: npt.NDArray[np.uint32]) -> Floats:
    """Return weight[rows]; if all weights are equal, a broadcast view that takes no memory."""
    if (weight != weight[0]).any():
        return np.asarray(weight[rows])
    return np.broadcast_to(weight[0], len(rows))


@dataclass(frozen=True, eq=False)
class Division:
    """The division of a table's rows, positives first, into shards; some of them are held here (locally).

    Rows of a class are in the order of the table: a shard has a run of the positives, and one of the negatives. The
    shards that are here are consecutive, so that all their positives are one run, and all their negatives another.
    """

    starts: npt.NDArray[np.int64]
    """Positives and negatives of the table before each shard that is here, and at last behind all of these. Shape
    (n_shards + 1, 2)."""
    first: int
    """Number of the first shard."""
    n_rows: int
    n_positives: int
    """Of the table."""
    scale: float | None
    """What sample weights are divided by to be numbers of rows (`effective_counts`); None if all of them are 1."""
    row_weight: float
    """The sample weight that counts as one row, at most 1."""

    @classmethod
    def of(
        cls, weight: Floats, n_positives: int, rows: npt.NDArray[np.uint32] | None = None
    ) -> Division:
        """Return the division of a whole table into shards.

        rows: (n_rows,), uint32; their numbers in the table, ascending in each class: shards are runs of `SHARD_ROWS` of
            them. None: all rows are in one shard.
        """
        n_rows = len(weight)
        ends = np.array([[0, 0], [n_positives, n_rows - n_positives]])
        if rows is not None:
            edges = np.arange(-(-n_rows // stored.SHARD_ROWS) + 1) * stored.SHARD_ROWS
            edges = np.minimum(edges, n_rows).astype(rows.dtype)  # else the rows would be copied
            of_classes = rows[:n_positives], rows[n_positives:]
            ends = np.stack([np.searchsorted(own, edges) for own in of_classes], axis=1)
        division = cls(ends.astype(np.int64), 0, n_rows, n_positives, None, 1.0)
        if not (weight != 1.0).any():
            return division
        totals = [
            np.array([np.concatenate([weight[own] for own in runs]).sum()])
            for runs in division.runs
        ]
        scale = min(float(add_in_order(totals)[0]) / n_rows, 1.0)
        row_weight = float(weight[0] / (weight[0] / scale))
        return replace(division, scale=scale, row_weight=row_weight)

    def part(self, first: int, last: int) -> Division:
        return replace(self, starts=self.starts[first : last + 1], first=self.first + first)

    @property
    def n_shards(self) -> int:
        return len(self.starts) - 1

    @property
    def n_own(self) -> int:
        return int((self.starts[-1] - self.starts[0]).sum())

    @property
    def n_own_positives(self) -> int:
        return int(self.starts[-1, 0] - self.starts[0, 0])

    @property
    def offsets(self) -> tuple[int, int]:
        """The offsets from local to global row indices, of positives and of negatives."""
        before = self.starts[0].tolist()
        return before[0], self.n_positives + before[1] - self.n_own_positives

    @property
    def runs(self) -> list[tuple[slice, slice]]:
        """The slices of the local positives and negatives that belong to each shard."""
        own = self.starts - self.starts[0] + [0, self.n_own_positives]
        return [(slice(a, c), slice(b, d)) for (a, b), (c, d) in pairwise(own.tolist())]

    def sum_classes(self, values: Floats) -> Floats:
        """Return the sums of `values` over positives and negatives, (2,) float64; all shards must be local."""
        sums = [np.array([values[own].sum() for own in runs]) for runs in self.runs]
        return add_in_order(sums)

    def count_rows(self, weight: Floats) -> Floats:
        """Return the effective numbers of positives and of negatives, (2,) float64; all shards must be local."""
        if self.scale is None:
            return np.array([self.n_positives, self.n_rows - self.n_positives], dtype=np.float64)
        return self.sum_classes(weight / self.scale)


@dataclass
class MakeCodedShard(ABC):
    """Factory that builds a shard from the codes of its rows, positives first; see `core.base.shards.MakeShard`."""

    bins: Bins

    @abstractmethod
    def shard(
        self, codes: Codes, weight: Floats, n_positives: int, folder: Path | None = None
    ) -> Any:
        """Return the shard; `folder` is for files of its own, None: it is in memory."""

    def __call__(self, piece: Piece, codes: Sequence[tuple[Codes, ...]], folder: Path) -> Any:
        rows, n_positives = positives_first(piece.positive)
        laid_out = stored.lay_out_piece(piece, codes, self.bins.dtype, folder)
        weight = take_weights(np.broadcast_to(piece.weight, len(rows)), rows)
        return self.shard(laid_out, weight, n_positives, folder)


def divide_rows(
    X: Floats | stored.StoredCodes,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    make: MakeCodedShard,
) -> Shards:
    """Return the shards of a fit, in this process or, for stored codes, where their table says."""
    if isinstance(X, stored.StoredCodes):
        pieces, placement, folder = X.pieces(positive, weight), X.table.placement, X.table.folder
        if placement is not None:
            return placement.place(make, list(pieces), X.read)
        return OwnShards([make(piece, X.columns_of(piece), folder) for piece in pieces])
    shards = []
    for start in range(0, len(X), stored.SHARD_ROWS):
        run = slice(start, start + stored.SHARD_ROWS)
        rows, n_positives = positives_first(positive[run])
        codes = code_columns(X, rows + np.uint32(start), make.bins)
        shards.append(make.shard(codes, take_weights(weight[run], rows), n_positives))
    return OwnShards(shards)
