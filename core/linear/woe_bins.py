"""Bins of single columns for scorecards: found from the rows, or given by edges and groups of categories.

Automatic bins start from quantiles, or from the categories in the order of their positive rates, and neighbours are
merged: bins that break a monotone constraint, bins with few rows, and bins whose positive rates do not differ
significantly. A bin without a row of a class is a bin like any other: a column that separates the classes has two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.monotone import Directions, find_column
from core.base.table import Categories
from core.coding.bins import fit_edges
from core.errors import InvalidParameter, shorten
from core.metrics.woe import ZERO_COUNT

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
GivenBins = Mapping[str | int, list[Any]] | None
SpecialValues = Mapping[str | int, list[float]] | None

MAX_EDGES = 200
"""Largest number of edges or groups that can be given for a column."""
MAX_SPECIAL = 20
"""Largest number of special values of a column."""
MAX_EDGE = 1e300
"""Largest absolute value of an edge."""
MAX_SHOWN = 60
N_QUANTILES = 40  # bins of a numeric column before neighbours are merged
CRITICAL = 7.879438576622417
"""99.5 % quantile of chi-square with 1 degree of freedom. Neighbours are compared after a search for the closest ones,
so the level is far below 5 %: about 85 % of the columns without information get one bin."""


@dataclass(frozen=True)
class ColumnBins:
    """The bins of a column. Their numbers: ranges or groups first, then the special values, then missing values."""

    edges: Floats
    """Upper ends of the ranges, except for the last range; empty for a categorical column."""
    special: Floats
    """Numbers that have their own bins."""
    groups: Integers | None
    """The group of each category; None for a numeric column."""

    @property
    def n_regular(self) -> int:
        """Number of ranges or groups."""
        if self.groups is None:
            return len(self.edges) + 1
        return int(self.groups.max()) + 1 if len(self.groups) else 1

    @property
    def n_bins(self) -> int:
        return self.n_regular + len(self.special) + 1

    def assign(self, x: Floats) -> Integers:
        """Return the bin of each value, shape (n_rows,); a category is its index, and NaN or an unknown one missing."""
        missing = self.n_bins - 1
        if self.groups is not None:
            n = len(self.groups)
            is_known = (x >= 0.0) & (x < n)
            index = np.where(is_known, x, 0.0).astype(np.int64)
            found = self.groups[index] if n else np.zeros(len(x), dtype=np.int64)
            return np.where(is_known, found, missing)
        bins = np.searchsorted(self.edges, x, side="left").astype(np.int64)
        for k, value in enumerate(self.special):
            bins[x == value] = self.n_regular + k
        bins[np.isnan(x)] = missing
        return bins


class BinRules(NamedTuple):
    """The limits of automatic bins."""

    max_bins: int
    min_bin_fraction: float


class Given(NamedTuple):
    """The bins and special values that parameters give, by index of the column."""

    edges: dict[int, Floats]
    groups: dict[int, Integers]
    special: dict[int, Floats]


def check_given(bins: GivenBins, special_values: SpecialValues) -> None:
    for key, own in (bins or {}).items():
        at = f"bins[{_shown(key)}]"
        if len(own) > MAX_EDGES:
            raise InvalidParameter(f"{at} can have at most {MAX_EDGES} items, got {len(own)}")
        seen: dict[str, int] = {}
        last: float | None = None
        for place, item in enumerate(own):
            if not _is_edge_or_group(item):
                raise InvalidParameter(
                    f"{at} must be a list of finite numbers, or a list of lists of categories, got {_shown(own)}"
                )
            if not isinstance(item, list):
                if last is not None and not item > last:
                    raise InvalidParameter(
                        f"{at} must have ascending edges, got {item!r} after {last!r}"
                    )
                last = item
                continue
            if not item:
                raise InvalidParameter(f"{at} must have groups of at least 1 category, got []")
            for name in item:
                if name in seen:
                    raise InvalidParameter(
                        f"{at} has the category {_shown(name)} in the groups {seen[name]} and {place}"
                    )
                seen[name] = place
    for key, values in (special_values or {}).items():
        at = f"special_values[{_shown(key)}]"
        if len(values) > MAX_SPECIAL:
            raise InvalidParameter(f"{at} can have at most {MAX_SPECIAL} values, got {len(values)}")
        if len({float(value) for value in values}) < len(values):
            raise InvalidParameter(f"{at} must have distinct values, got {_shown(values)}")


def find_given(
    bins: GivenBins,
    special_values: SpecialValues,
    names: Sequence[str] | None,
    categories: Categories,
    directions: Directions | None,
) -> Given:
    """Return the given bins by column.

    A category that the groups do not name belongs to one more group. A name that is no category has no effect: a fold
    may lack a rare one.

    names: of the columns; None if they have none.
    categories: of each column; None for a numeric one.
    directions: (n_features,), int8, or None; monotone constraints.

    InvalidParameter: a key is no column or names one twice, a numeric column has groups or a categorical one edges, or
        a column with a monotone constraint has special values.
    """
    given = Given({}, {}, {})
    for key, own in (bins or {}).items():
        j = find_column("bins", key, names, len(categories))
        if j in given.edges or j in given.groups:
            raise InvalidParameter(f"bins names column {j} twice")
        known = categories[j]
        has_groups = any(isinstance(item, list) for item in own)
        if known is None:
            if has_groups:
                raise InvalidParameter(
                    f"bins[{_shown(key)}] must be a list of numbers, because the column is numeric, got "
                    f"{_shown(own)}"
                )
            given.edges[j] = np.array(own, dtype=np.float64)
            continue
        if own and not has_groups:
            raise InvalidParameter(
                f"bins[{_shown(key)}] must be a list of lists of categories, because the column is categorical, got "
                f"{_shown(own)}"
            )
        group_of = {name: k for k, group in enumerate(_lists(own)) for name in group}
        groups = np.array([group_of.get(name, len(own)) for name in known], dtype=np.int64)
        # numbered without gaps, in the order of the groups
        given.groups[j] = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    for key, values in (special_values or {}).items():
        j = find_column("special_values", key, names, len(categories))
        if j in given.special:
            raise InvalidParameter(f"special_values names column {j} twice")
        if categories[j] is not None:
            raise InvalidParameter(
                f"special_values requires a numeric column; {_shown(key)} is categorical: make a group of the category"
            )
        if values and directions is not None and directions[j]:
            raise InvalidParameter(
                f"special_values cannot have {_shown(key)}, which has a monotone constraint: special values have no "
                "place in the order. Read them as missing values, or remove the constraint"
            )
        given.special[j] = np.array(values, dtype=np.float64)
    return given


def fit_column_bins(
    j: int,
    x: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    categories: Sequence[str] | None,
    given: Given,
    direction: int,
    rules: BinRules,
) -> ColumnBins:
    """Return the bins of column `j`, given by the parameters or found from the rows.

    x: (n_rows,); the column: NaN is missing, a category is its index.
    weight: (n_rows,); the number of rows that each row counts as.
    direction: 1 if the WOE must not fall as the value grows, -1 if it must not rise, 0 if it is free.
    """
    none = np.empty(0)
    if categories is not None:
        groups = given.groups.get(j)
        if groups is None:
            groups = _group_categories(x, positive, weight, len(categories), rules)
        return ColumnBins(none, none, groups)
    special = given.special.get(j, none)
    used = ~(np.isnan(x) | np.isin(x, special))
    values, is_positive, mass = x[used], positive[used], weight[used]
    edges = given.edges.get(j)
    if edges is None:
        edges = fit_edges(values, mass, N_QUANTILES) if len(values) else none
        counts = count_classes(np.searchsorted(edges, values), is_positive, mass, len(edges) + 1)
        starts = merge_bins(
            counts, direction, rules.max_bins, rules.min_bin_fraction * float(mass.sum())
        )
    else:
        counts = count_classes(np.searchsorted(edges, values), is_positive, mass, len(edges) + 1)
        starts = merge_bins(counts, direction, len(edges) + 1, None)
    return ColumnBins(edges[starts[1:] - 1], special, None)


def count_classes(
    bins: npt.NDArray[Any], positive: npt.NDArray[np.bool_], weight: Floats, n_bins: int
) -> Floats:
    return np.array(
        [
            np.bincount(bins[chosen], weight[chosen], minlength=n_bins)
            for chosen in (positive, ~positive)
        ],
        dtype=np.float64,
    )


def merge_bins(counts: Floats, direction: int, max_bins: int, min_rows: float | None) -> Integers:
    """Return the first bin of each merged bin, ascending from 0.

    counts: (2, n_bins); weight of the positives and of the negatives of each bin, in order.
    direction: 1, -1 or 0: see `fit_column_bins`.
    min_rows: least weight of a bin. None: bins are merged only where they break the direction.

    Result: (n_merged,), int64.
    """
    starts = list(range(counts.shape[1]))
    blocks = [counts[:, k].copy() for k in starts]
    if direction:
        _pool(starts, blocks, direction)
    if min_rows is not None:
        while len(blocks) > 1:
            at = _next_merge(np.array(blocks).T, max_bins, min_rows)
            if at is None:
                break
            blocks[at] = blocks[at] + blocks.pop(at + 1)
            del starts[at + 1]
        if (
            direction
        ):  # a bin without a class counts with a correction, so that merging it can break the order
            _pool(starts, blocks, direction)
    return np.array(starts, dtype=np.int64)


def _pool(starts: list[int], blocks: list[Floats], direction: int) -> None:
    """Merge neighbours, in place, until the odds of the positives follow the direction (pool adjacent violators)."""
    kept_starts: list[int] = []
    kept: list[Floats] = []
    for start, block in zip(starts, blocks, strict=True):
        kept_starts.append(start)
        kept.append(block)
        while len(kept) > 1 and not _in_order(kept[-2], kept[-1], direction):
            last = kept.pop()
            kept[-1] = kept[-1] + last
            kept_starts.pop()
    starts[:], blocks[:] = kept_starts, kept


def _in_order(one: Floats, other: Floats, direction: int) -> bool:
    if not one.any() or not other.any():
        return False
    odds = [float(np.divide(*_filled(each))) for each in (one, other)]
    return direction * (odds[1] - odds[0]) >= 0.0


def _filled(counts: Floats) -> Floats:
    """Return counts with `ZERO_COUNT` added to both classes of a bin that lacks one."""
    return np.where((counts == 0.0).any(axis=0), counts + ZERO_COUNT, counts)


def _next_merge(counts: Floats, max_bins: int, min_rows: float) -> int | None:
    """Return the first of the two neighbours to merge next; None if all bins are large and different enough."""
    rows = counts.sum(axis=0)
    is_small = (rows < min_rows) | (rows == 0.0)
    if is_small.any():
        at = int(np.flatnonzero(is_small)[np.argmin(rows[is_small])])
        filled = _filled(counts)
        log_odds = np.log(filled[0]) - np.log(filled[1])
        sides = [side for side in (at - 1, at + 1) if 0 <= side < len(rows)]
        closest = min(sides, key=lambda side: float(abs(log_odds[side] - log_odds[at])))
        return min(at, closest)
    a, b = counts[:, :-1], counts[:, 1:]
    both, pairs = a + b, (a.sum(axis=0), b.sum(axis=0))
    difference = a[0] * b[1] - a[1] * b[0]
    product = both[0] * both[1] * pairs[0] * pairs[1]
    # Neighbours that lack the same class have equal rates.
    chi = np.divide(
        difference**2 * both.sum(axis=0), product, where=product > 0.0, out=np.zeros_like(product)
    )
    at = int(np.argmin(chi))
    return at if len(rows) > max_bins or chi[at] < CRITICAL else None


def _group_categories(
    x: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_categories: int,
    rules: BinRules,
) -> Integers:
    """Return the group of each category: rare ones form one, then neighbours by positive rate are merged."""
    known = ~np.isnan(x)
    counts = count_classes(x[known].astype(np.int64), positive[known], weight[known], n_categories)
    rows = counts.sum(axis=0)
    min_rows = rules.min_bin_fraction * float(rows.sum())
    is_rare = rows < min_rows
    unit = np.where(is_rare, n_categories, np.arange(n_categories))  # rare categories are one unit
    units, unit_of = np.unique(unit, return_inverse=True)
    pooled = np.array([np.bincount(unit_of, row, minlength=len(units)) for row in counts])
    filled = _filled(pooled)
    order = np.argsort(np.log(filled[0]) - np.log(filled[1]), kind="stable")
    starts = merge_bins(pooled[:, order], 0, rules.max_bins, min_rows)
    group_of_unit = np.empty(len(units), dtype=np.int64)
    group_of_unit[order] = np.searchsorted(starts, np.arange(len(units)), side="right") - 1
    return group_of_unit[unit_of].astype(np.int64)


def _is_edge_or_group(item: object) -> bool:
    if isinstance(item, list):
        return all(isinstance(name, str) for name in item)
    is_number = isinstance(item, int | float) and not isinstance(item, bool)
    return is_number and abs(item) <= MAX_EDGE  # type: ignore[arg-type]  # a number


def _lists(own: Sequence[Any]) -> list[list[str]]:
    return [item for item in own if isinstance(item, list)]


def _shown(value: Any) -> str:
    return shorten(repr(value), MAX_SHOWN)
