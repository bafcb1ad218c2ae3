"""Build the table of bin codes on which trees are grown from a matrix, one chunk of rows at a time.

Columns are in groups of eight. The codes of a row in a group are one word of 64 bits, or two if the group has more than
256 codes: to add a row to the histogram of the group takes one or two reads, and the histogram stays in the cache of a
core. Columns with similar numbers of codes share a group, so that no histogram is larger than its columns need.

Columns of two codes that exclude one another, such as those of a one-hot encoding, are bundled (Ke et al. 2017,
section 4; here without any conflict): one column whose code k says that the k-th member has the one of its values
that excludes the others', and whose code 0 says that none has. A cut of member k sets code k apart from all others,
so that nothing is lost.

No column is kept besides the matrix and the coded table: bins are learnt from a few columns at a time, and rows are
coded straight into their words.

References
----------
G. Ke, Q. Meng, T. Finley, T. Wang, W. Chen, W. Ma, Q. Ye and T.-Y. Liu, "LightGBM: a highly efficient gradient
boosting decision tree", NIPS 2017.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.base import state
from core.base.columns import ColumnTable
from core.base.monotone import Directions
from core.base.ranker import Floats
from core.base.shards import Piece
from core.coding import Bins, ThreadPool, effective_counts
from core.coding.bins import (
    MAX_NARROW_BINS,
    RUN_ROWS,
    Codes,
    learn_bins,
    missing_code,
    share_out,
)
from core.coding.stored import StoredCodes, mapped, runs_of, store_codes
from core.coding.threads import take
from core.kernels import kernel

Words = state.Words
Integers = state.Integers

LANES = 8  # columns of a group
CATEGORY_ROWS = 5.0
"""Minimum rows of a category that has a place in the order of categories: chance would put others at an end."""

ROWS_AT_ONCE = (
    1024  # rows coded together: their values of thirty columns stay in the second-level cache
)
MAX_ON_FRACTION = (
    0.9  # of the rows, that a member of a bundle may take: a value of more would keep others out
)
MAX_MEMBERS = 255  # members of a bundle, whose code 0 is none of them
# Words of 64 rows that are compared first: they separate most columns that do not exclude each other.
SAMPLED_WORDS = 16


class Kind(IntEnum):
    """The kind of a column of the coded table: padding, numeric, categorical or a bundle of two-valued columns."""

    PADDING = 0
    ORDERED = 1
    CATEGORICAL = 2
    BUNDLE = 3


GROUP = np.dtype(
    [
        ("first_word", np.int64),  # of its rows
        ("row_words", np.int64),  # 1 or 2
        ("n_codes", np.int64),  # the last of which is the missing one's, if any is missing
        ("has_missing", np.int64),
        ("first_cell", np.int64),  # of its histogram: [code, column]
        ("has_cuts", np.int64),  # whether any column is ordered or a bundle
        ("is_constrained", np.int64),  # whether any column has a direction
    ],
    align=True,
)
COLUMN = np.dtype(
    [
        ("kind", np.int64),
        ("feature", np.int64),  # of a bundle that of its first member
        ("n_bins", np.int64),
        ("first_member", np.int64),
        ("has_missing", np.int64),
        ("direction", np.int64),  # of a monotone constraint: 1, -1, or 0 for none; 0 for a bundle
    ],
    align=True,
)
MEMBER = np.dtype(
    [
        ("feature", np.int64),
        (
            "on_above",
            np.int64,
        ),  # 1 if the value that its code stands for lies above the feature's cut
        ("direction", np.int64),  # of its code against all others
    ],
    align=True,
)
LOCATION = np.dtype(
    [
        ("group", np.int64),
        ("lane", np.int64),
        ("code", np.int64),  # in a bundle, else 0
        ("on", np.int64),  # the feature's own code that the code in the bundle stands for
    ],
    align=True,
)


@dataclass(frozen=True)
class Layout:
    """The columns of a coded table (groups, positions and bins) without the codes of its rows.

    members: of all bundles.
    """

    groups: npt.NDArray[np.void]
    """Without rows `first_word` means nothing. Shape (n_groups,), `GROUP`."""
    columns: npt.NDArray[np.void]
    """Shape (n_groups, 8), `COLUMN`."""
    members: npt.NDArray[np.void]
    locations: npt.NDArray[np.void]
    """Group, lane and code of each feature. Shape (n_features,), `LOCATION`."""
    cell_feature: npt.NDArray[np.int32]
    """For each cell [code, column] of all groups the feature that is cut there, -1 for none. In an ordered column the
    cut is between this code and the next, in a bundle between this code and all others, at the code of the missing
    between the missing and all others. Shape (n_cells,), int32."""

    @property
    def n_features(self) -> int:
        return len(self.locations)

    @property
    def n_cells(self) -> int:
        return len(self.cell_feature)

    def constrain(self, directions: Directions) -> None:
        ordered = self.columns["kind"] == Kind.ORDERED
        self.columns["direction"][ordered] = directions[self.columns["feature"][ordered]]
        sign = np.where(self.members["on_above"] != 0, 1, -1)
        self.members["direction"] = sign * directions[self.members["feature"]]
        self.groups["is_constrained"] = (self.columns["direction"] != 0).any(axis=1)
        for j in np.flatnonzero(directions).tolist():
            self.groups["is_constrained"][self.locations["group"][j]] = 1

    def make_table(self, n_rows: int, n_positives: int, folder: Path | None = None) -> "Table":
        """Return a table with these columns and all codes 0; its words are in memory, or in a file in `folder`."""
        groups = self.groups.copy()
        # an even number of words, so that no row of two lies across cache lines
        n_words = groups["row_words"] * (n_rows + n_rows % 2)
        groups["first_word"] = np.cumsum(n_words) - n_words
        words = mapped(folder, (int(n_words.sum()),), np.uint64)
        rest = self.columns, self.members, self.locations, self.cell_feature
        return Table(groups, *rest, words, n_rows, n_positives)


@dataclass(frozen=True)
class Table(Layout):
    """A coded table: the bin codes of all rows, with rows sorted by class, positives first."""

    words: Words
    """Codes, group by group, row by row: eight uint8 in one word, or eight uint16 in two."""
    n_rows: int
    n_positives: int

    def fill(self, pieces: Iterable[Piece], codes: Iterable[Sequence[tuple[Codes, ...]]]) -> None:
        """Write the codes of all rows; codes: of each piece those of each of its files, column by column."""
        places = [0, self.n_positives]
        for piece, of_files in zip(pieces, codes, strict=True):
            for columns, rows, k in runs_of(piece, of_files):
                self._write(columns, rows, places[k])
                places[k] += len(rows)

    def _write(self, codes: Sequence[Codes], taken: Integers, first: int) -> None:
        def write_group(g: int) -> None:
            group = self.groups[g]
            n_words = int(group["row_words"])
            block = np.zeros((len(taken), LANES), dtype=np.uint16 if n_words == 2 else np.uint8)
            for j in np.flatnonzero(self.locations["group"] == g).tolist():
                location, own = self.locations[j], codes[j][taken]
                lane = block[:, location["lane"]]
                if location["code"] > 0:  # the other members' rows stay as they are
                    lane[own == location["on"]] = location["code"]
                    continue
                lane[:] = own
                if self.columns["has_missing"][g, location["lane"]]:
                    lane[own == missing_code(own.dtype)] = group["n_codes"] - 1
            start = int(group["first_word"]) + n_words * first
            self.words[start : start + n_words * len(taken)] = block.view(np.uint64).reshape(-1)

        share_out(write_group, range(len(self.groups)), len(taken) * self.n_features)


def code_table(
    X: Floats | StoredCodes,
    rows: npt.NDArray[np.uint32],
    n_positives: int,
    weight: Floats,
    max_bins: tuple[int, int],
    n_categories: Integers,
) -> tuple[Bins, Table]:
    """Learn the bins of every column and code the rows with them.

    X: (n_rows, n_features); or StoredCodes; finite values or NaN; for a categorical feature the indices of categories.
        Or the codes that `store_table` has stored, with the same weights and bins: the words of the table are then
        mapped to a file.
    rows: (n_rows,), uint32; all rows, positives first.
    weight: (n_rows,); of the rows of X; above 0.
    max_bins: greatest number of bins of a numeric and of a categorical feature, at most 65,535, without the bin of the
        missing. If there are more categories than bins of a number, those of few rows are pooled.

    O(n_features · n_rows log n_rows). Memory: that of `learn_bins`, and then 8 bytes per row and group of eight
    columns, 16 where a column has more than 256 codes.
    """
    if isinstance(X, StoredCodes):
        layout = lay_out_stored(X, len(rows))
        table = layout.make_table(len(rows), n_positives, X.table.folder)
        positive = np.zeros(len(rows), dtype=np.bool_)
        positive[rows[:n_positives]] = True
        pieces = list(X.pieces(positive, weight))
        table.fill(pieces, map(X.columns_of, pieces))
        return X.bins, table
    least = _least_mass(weight)
    bins = learn_bins(X, np.sort(rows), weight, max_bins[0], n_categories, max_bins[1], least)
    bundles, on = find_bundles(_pack_columns(X, bins), len(X))
    table = _lay_out(bins, bundles, on).make_table(len(X), n_positives)
    n_runs = -(-len(X) // RUN_ROWS)
    narrow, wide = table.words.view(np.uint8), table.words.view(np.uint16)
    coding = (*_tables(bins), table.locations, table.groups, narrow, wide)
    ThreadPool(X.size).deal(_encode, n_runs, X, rows, *coding)
    return bins, table


def store_table(
    X: ColumnTable, weight: Floats, max_bins: tuple[int, int], n_categories: Integers
) -> StoredCodes:
    return store_codes(X, weight, max_bins[0], n_categories, max_bins[1], _least_mass(weight))


def _least_mass(weight: Floats) -> float:
    """Return the minimum sample weight for a category to get a bin of its own."""
    return CATEGORY_ROWS * float(weight[0] / effective_counts(weight)[0])


def lay_out_stored(stored: StoredCodes, n_rows: int) -> Layout:
    return _lay_out(stored.bins, *find_bundles(pack_stored(stored), n_rows))


class _TwoValued(NamedTuple):
    """The two-valued columns without missing values, as bits: candidates for bundling."""

    features: Integers
    """Shape (n,)."""
    bits: Words
    """For each row whether it has the higher value. Shape (n, n_words)."""
    n_above: Integers
    """Number of these rows. Shape (n,)."""
    n_features: int
    """Of the table."""
    folder: Path | None
    """For arrays that are mapped to a file; None: they are in memory."""

    @classmethod
    def of(cls, bins: Bins, n_rows: int, folder: Path | None = None) -> "_TwoValued":
        two = (bins.n_bins == 2) & ~bins.has_missing & ~bins.is_categorical
        features = np.flatnonzero(two)
        bits = mapped(folder, (len(features), -(-n_rows // 64)), np.uint64)
        return cls(features, bits, np.zeros(len(features), dtype=np.int64), len(bins.edges), folder)


def _pack_columns(X: Floats, bins: Bins) -> _TwoValued:
    two = _TwoValued.of(bins, len(X))
    edges = np.array([bins.edges[j][0] for j in two.features.tolist()])
    counts = np.zeros(two.bits.shape, dtype=np.uint8)
    ThreadPool(len(X) * len(edges)).deal(
        _pack, -(-two.bits.shape[1] // 256), X, two.features, edges, two.bits, counts
    )
    counts.sum(axis=1, dtype=np.int64, out=two.n_above)
    return two


def pack_stored(stored: StoredCodes) -> _TwoValued:
    """Return the two-valued columns of stored codes, as bits; one byte per row in memory."""
    table = stored.table
    two = _TwoValued.of(stored.bins, len(table), table.folder)
    is_above = np.zeros(two.bits.shape[1] * 64, dtype=np.bool_)
    for k, j in enumerate(two.features.tolist()):
        done = 0
        for shard in stored.shards:
            own = shard.codes[j]
            if table.is_taken is not None:
                own = own[table.is_taken[shard.start : shard.stop]]
            np.greater(own, 0, out=is_above[done : done + len(own)])
            done += len(own)
        two.bits[k] = np.packbits(is_above, bitorder="little").view("<u8")
        two.n_above[k] = np.count_nonzero(is_above)
    return two


def find_bundles(two: _TwoValued, n_rows: int) -> tuple[list[list[int]], Integers]:
    """Bundle two-valued features of which at most one has its marked value in any row: one column codes a bundle.

    Each feature joins the first bundle where it fits. Return (bundles, on): the features of each bundle of two or more,
    and for every feature its marked value, 1 (the higher) or 0. The lower value is marked if the higher one is so
    frequent that it would exclude other features.
    """
    on = np.ones(two.n_features, dtype=np.int64)
    features, bits = two.features, two.bits
    if len(features) < 2:
        return [], on
    n_words = bits.shape[1]
    share = two.n_above / n_rows
    padding = np.zeros(n_words, dtype=np.uint64)
    padding[-1] = ~np.uint64((1 << ((n_rows - 1) % 64 + 1)) - 1)
    sampled = np.linspace(0, n_words - 1, min(SAMPLED_WORDS, n_words)).astype(np.intp)
    bundles: list[list[int]] = []
    unions = mapped(two.folder, bits.shape, np.uint64)  # of the members' bits
    of_sample = np.empty((len(features), len(sampled)), dtype=np.uint64)
    n_members = np.zeros(len(features), dtype=np.int64)

    def first_fit(own: Words) -> int | None:
        n = len(bundles)
        apart = ~(of_sample[:n] & own[sampled]).any(axis=1) & (n_members[:n] < MAX_MEMBERS)
        fitting = (b for b in np.flatnonzero(apart).tolist() if not (unions[b] & own).any())
        return next(fitting, None)

    for k, feature in enumerate(features.tolist()):
        own = bits[k]
        b = first_fit(own)
        if b is None and share[k] > 0.5:  # the lower value may exclude other columns
            flipped = ~(own | padding)
            b = first_fit(flipped)
            if b is not None or share[k] > MAX_ON_FRACTION:
                own, on[feature] = flipped, 0
        if b is None:
            b = len(bundles)
            bundles.append([])
            unions[b] = 0
        bundles[b].append(feature)
        n_members[b] += 1
        unions[b] |= own
        of_sample[b] = unions[b, sampled]
    return [bundle for bundle in bundles if len(bundle) > 1], on


def _lay_out(bins: Bins, bundles: list[list[int]], on: Integers) -> Layout:
    n_bins, is_categorical = bins.n_bins, bins.is_categorical
    members = np.zeros(sum(map(len, bundles)), dtype=MEMBER)
    locations = np.zeros(len(n_bins), dtype=LOCATION)
    listed: list[tuple[int, ...]] = []  # in the order of `COLUMN`, without a direction
    bundled = {j for bundle in bundles for j in bundle}
    first = 0
    for bundle in bundles:
        listed.append((Kind.BUNDLE, bundle[0], len(bundle) + 1, first, 0))
        members["feature"][first : first + len(bundle)] = bundle
        members["on_above"][first : first + len(bundle)] = on[bundle]
        locations["code"][bundle] = np.arange(1, len(bundle) + 1)
        locations["on"][bundle] = on[bundle]
        first += len(bundle)
    for j, n in enumerate(n_bins.tolist()):
        if j not in bundled:
            kind = Kind.CATEGORICAL if is_categorical[j] else Kind.ORDERED
            listed.append((kind, j, n, 0, int(bins.has_missing[j])))
    # Columns with the missing and those without, categories and numbers need other scans.
    listed.sort(
        key=lambda c: (c[2] + c[4] <= MAX_NARROW_BINS, c[0] == Kind.CATEGORICAL, -c[4], -c[2], c[1])
    )
    columns = np.zeros((-(-len(listed) // LANES), LANES), dtype=COLUMN)
    columns.reshape(-1)[: len(listed)] = [(*column, 0) for column in listed]
    groups = np.zeros(len(columns), dtype=GROUP)
    groups["has_missing"] = columns["has_missing"].any(axis=1)
    groups["n_codes"] = columns["n_bins"].max(axis=1) + groups["has_missing"]
    groups["row_words"] = np.where(groups["n_codes"] > MAX_NARROW_BINS + 1, 2, 1)
    is_cut = (columns["kind"] == Kind.ORDERED) | (columns["kind"] == Kind.BUNDLE)
    groups["has_cuts"] = is_cut.any(axis=1)
    n_cells = groups["n_codes"] * LANES
    groups["first_cell"] = np.cumsum(n_cells) - n_cells
    cell_feature = np.full(int(n_cells.sum()), -1, dtype=np.int32)
    for g, group in enumerate(groups):
        cells = cell_feature[group["first_cell"] :][: n_cells[g]].reshape(-1, LANES)
        for lane, column in enumerate(columns[g]):
            n = int(column["n_bins"])
            if column["kind"] == Kind.BUNDLE:
                own = members["feature"][column["first_member"] :][: n - 1]
                cells[1:n, lane] = own
                locations["group"][own], locations["lane"][own] = g, lane
            elif column["kind"] != Kind.PADDING:
                locations["group"][column["feature"]] = g
                locations["lane"][column["feature"]] = lane
                if column["kind"] == Kind.ORDERED:
                    cells[: n - 1, lane] = column["feature"]
                    if column["has_missing"]:
                        cells[-1, lane] = column["feature"]
    return Layout(groups, columns, members, locations, cell_feature)


class _Tables(NamedTuple):
    """Lookup tables that map the values of every column to bins."""

    values: Floats
    """One column after the other: edges, padded with infinity to 2**n_steps - 1; or the bin of each category."""
    starts: Integers
    """Shape (n_features,)."""
    n_steps: Integers
    """Of the search among the edges; -1 for a categorical column. Shape (n_features,)."""


def _tables(bins: Bins) -> _Tables:
    values: list[Floats] = []
    n_steps = []
    for edges, category_bins in zip(bins.edges, bins.category_bins, strict=True):
        if category_bins is None:
            n_steps.append(len(edges).bit_length())
            values.append(np.full((1 << n_steps[-1]) - 1, np.inf))
            values[-1][: len(edges)] = edges
        else:
            n_steps.append(-1)
            values.append(category_bins.astype(np.float64))
    starts = np.cumsum([0, *map(len, values)])[:-1]
    return _Tables(np.concatenate(values), starts, np.array(n_steps))


_READ_ONLY_MATRIX = numba.types.Array(numba.float64, 2, "A", readonly=True)


@kernel(
    numba.void(
        numba.int64[::1],
        numba.int64,
        _READ_ONLY_MATRIX,
        numba.int64[::1],
        numba.float64[::1],
        numba.uint64[:, ::1],
        numba.uint8[:, ::1],
    )
)
def _pack(queue, n_runs, X, features, edges, bits, counts):  # type: ignore[no-untyped-def]
    """Write whether values exceed each feature's edge, as bits, for blocks of 256 words from the queue; count them."""
    run = take(queue)
    while run < n_runs:
        for word in range(run * 256, min((run + 1) * 256, bits.shape[1])):
            low = word * 64
            n = min(64, X.shape[0] - low)
            for k in range(len(features)):
                packed, count = np.uint64(0), 0
                for i in range(n):
                    above = X[low + i, features[k]] > edges[k]
                    packed |= np.uint64(above) << np.uint64(i)
                    count += above
                bits[k, word] = packed
                counts[k, word] = count
        run = take(queue)


@kernel(
    numba.void(numba.float64[::1], numba.float64[::1], numba.int64, numba.int64, numba.int64[::1]),
    inner=True,
)
def find_bins(values, table, n_steps, missing, bins):  # type: ignore[no-untyped-def]
    """Write the bin of each value of a column to bins, (n,) int64.

    values: (n,) float64; table: (2**n_steps - 1,) float64, edges padded with infinity; for n_steps = -1 the bin of each
    category. missing: the bin of NaN.
    """
    for i in range(len(bins)):
        bins[i] = 0
    for s in range(n_steps - 1, -1, -1):  # a binary search for all values side by side
        half = 1 << s
        for i in range(len(values)):
            bins[i] += half if table[bins[i] + half - 1] < values[i] else 0
    for i in range(len(values)):
        if np.isnan(values[i]):
            bins[i] = missing
        elif n_steps < 0:
            bins[i] = np.int64(table[np.int64(values[i])])


@kernel(
    numba.void(
        numba.int64[::1],
        numba.int64,
        _READ_ONLY_MATRIX,
        numba.uint32[::1],
        numba.float64[::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.from_dtype(LOCATION)[::1],
        numba.from_dtype(GROUP)[::1],
        numba.uint8[::1],
        numba.uint16[::1],
    )
)
def _encode(queue, n_runs, X, rows, tables, starts, n_steps, locations, groups, narrow, wide):  # type: ignore[no-untyped-def]
    """Write the bin codes of blocks of rows from the queue into the table's words. tables, starts, n_steps: see
    `_Tables`.
    """
    values = np.empty(ROWS_AT_ONCE)
    codes = np.empty(ROWS_AT_ONCE, dtype=np.int64)
    run = take(queue)
    while run < n_runs:
        end = min((run + 1) * RUN_ROWS, len(rows))
        for low in range(run * RUN_ROWS, end, ROWS_AT_ONCE):
            n = min(ROWS_AT_ONCE, end - low)
            for j in range(X.shape[1]):
                for i in range(n):
                    values[i] = X[rows[low + i], j]
                location = locations[j]
                group = groups[location.group]
                find_bins(values[:n], tables[starts[j] :], n_steps[j], group.n_codes - 1, codes[:n])
                if location.code > 0:  # the other members' rows stay as they are
                    for i in range(n):
                        codes[i] = location.code if codes[i] == location.on else 0
                per_word = LANES // group.row_words
                first = (group.first_word + group.row_words * low) * per_word + location.lane
                for i in range(n):
                    if location.code > 0 and codes[i] == 0:
                        continue
                    if group.row_words == 2:
                        wide[first + i * LANES] = codes[i]
                    else:
                        narrow[first + i * LANES] = codes[i]
        run = take(queue)
